//! One change from lock to report: the file is read afresh, decided on, edited, replaced; or only shown.

use std::ops::{Deref, DerefMut};
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use crate::api::context::{Context, Notice};
use crate::api::error::Error;
use crate::api::precondition;
use crate::api::views::shown_path;
use crate::disk::{ChangeError, DiskError, FileOp, Kept, KeptWhy, Locked, Outcome, Recovered};
use crate::plan::model::Plan;
use crate::plan::problem::Problem;
use crate::store::decision::Decision;
use crate::store::idempotency;
use crate::text::header_edit::{self, Change};
use crate::text::{diff, includes};

pub use crate::api::requests::Mode;

/// What a writing verb did.
#[derive(Debug, Clone, Default)]
pub struct ChangeReport {
    pub verb: &'static str,
    pub is_dry_run: bool,
    /// In the order in which they were asked for.
    pub changes: Vec<Changed>,
    pub refused: Vec<Refused>,
    /// The unified diff of all files.
    pub diff: String,
    /// What to type next, or to know.
    pub hints: Vec<String>,
    /// Steps that still wait for what is not there any more, because their `depends` could not be changed.
    pub not_repointed: Vec<String>,
}

/// One thing that was changed, or found to be as it should.
#[derive(Debug, Clone)]
pub struct Changed {
    pub id: String,
    pub title: String,
    /// With the plans directory's name.
    pub path: String,
    pub was_written: bool,
    /// The status before; none where no status is concerned.
    pub was: Option<String>,
    pub status: Option<String>,
    /// What was done, in the past tense: `completed`, `attempt recorded`, `added`.
    pub did: String,
    /// The plan or step as it is now.
    pub now: Value,
}

impl Changed {
    pub(crate) fn to_json(&self) -> Value {
        json!({
            "id": self.id, "title": self.title, "path": self.path, "written": self.was_written,
            "was": self.was, "status": self.status, "did": self.did, "now": self.now,
        })
    }
}

/// One thing that was refused, beside others that were done.
#[derive(Debug)]
pub struct Refused {
    pub id: String,
    pub error: Error,
}

impl Clone for Refused {
    /// Errors hold what the system said, which cannot be copied; the copy says the same.
    fn clone(&self) -> Self {
        let (code, message) = (self.error.code(), self.error.to_string());
        let hint = self.error.hint().unwrap_or_default();
        Self { id: self.id.clone(), error: Error::Failed { code, message, hint } }
    }
}

impl ChangeReport {
    pub(crate) fn new(verb: &'static str, mode: Mode) -> Self {
        Self { verb, is_dry_run: mode == Mode::DryRun, ..Self::default() }
    }

    pub fn to_json(&self) -> Value {
        let refused = |it: &Refused| {
            let mut object = it.error.to_json();
            if let Some(map) = object.as_object_mut() {
                map.insert("id".to_owned(), it.id.clone().into());
            }
            object
        };
        let mut object = json!({
            "verb": self.verb,
            "dry_run": self.is_dry_run,
            "changes": self.changes.iter().map(Changed::to_json).collect::<Vec<_>>(),
            "refused": self.refused.iter().map(refused).collect::<Vec<_>>(),
            "diff": self.diff,
        });
        if !self.not_repointed.is_empty() {
            object["not_repointed"] = self.not_repointed.clone().into();
        }
        object
    }

    /// The first refusal's.
    pub fn exit_code(&self) -> u8 {
        self.refused.first().map_or(0, |it| it.error.exit_code())
    }
}

/// Decides what a file should hold, only on the bytes that it is given. May run more than once.
pub(crate) type Decide<'a, T, L> = &'a dyn Fn(&[u8]) -> Result<Decision<Vec<u8>, T, L>, Error>;

/// A change of one file that was made, or found not to be needed.
pub(crate) struct Applied {
    /// What the file holds; more than planwatch wrote if an editor saved over its version.
    pub(crate) bytes: Vec<u8>,
    pub(crate) was_written: bool,
}

/// One run of a decision that wrote.
struct Round<T> {
    base: Vec<u8>,
    ours: Vec<u8>,
    value: T,
}

/// Why a run of a decision writes nothing.
enum Stop<L> {
    Refused(Error),
    Left(L),
}

impl<L> From<Error> for Stop<L> {
    fn from(error: Error) -> Self {
        Self::Refused(error)
    }
}

/// Keys whose new values are unlike those of any other change.
const UNIQUE: [&str; 5] = ["claim", "attempts", "notes", "confirmations", "confirmed"];

/// The run whose change a text holds already: an editor read planwatch's version and saved over it.
fn included<T>(rounds: &[Round<T>], bytes: &[u8]) -> Option<usize> {
    let is_included =
        |it: &Round<T>| it.base != it.ours && includes::includes(&it.base, &it.ours, bytes, &UNIQUE);
    rounds.iter().rposition(is_included)
}

/// How often and how long a save under way is waited for; longer than a file counts as half saved.
const SAVE_WAITS: usize = 30;
const SAVE_WAIT: Duration = Duration::from_millis(100);

/// Whether a file was left alone because a save of it seems to be under way.
pub(crate) fn is_half_saved(error: &Error) -> bool {
    matches!(error, Error::Disk(DiskError::HalfSaved { .. } | DiskError::Vanished { .. }))
}

/// Repeats a change that was refused because a save seems to be under way, for a caller that cannot be asked to try
/// again. The change takes the lock itself, so it is free meanwhile.
pub(crate) fn once_saved<T>(
    context: &Context,
    mut change: impl FnMut() -> Result<T, Error>,
) -> Result<T, Error> {
    for _ in 0..SAVE_WAITS {
        match change() {
            Err(error) if is_half_saved(&error) => context.plans.disk().pause(SAVE_WAIT),
            done => return done,
        }
    }
    change()
}

/// How often operations are made again before the editor wins.
const BATCH_TRIES: usize = 3;

/// A change under way.
pub(crate) struct Transaction<'a> {
    context: &'a Context,
    verb: String,
    /// None: nothing is written.
    locked: Option<Held<'a>>,
    pub(crate) diff: String,
    /// See [`ChangeReport::hints`].
    pub(crate) hints: Vec<String>,
    /// See [`ChangeReport::not_repointed`].
    pub(crate) not_repointed: Vec<String>,
    /// What is shown once the lock is given back; none: all is shown at once.
    at_end: Option<Shown>,
}

/// The lock; what it kept is reported at the latest when it is given back, also if the change failed.
struct Held<'a> {
    context: &'a Context,
    locked: Locked<'a>,
}

impl<'a> Deref for Held<'a> {
    type Target = Locked<'a>;

    fn deref(&self) -> &Self::Target {
        &self.locked
    }
}

impl DerefMut for Held<'_> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.locked
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        tell_kept(self.context, &std::mem::take(&mut self.locked.news));
        if self.locked.take_unrecorded() {
            self.context.notify(Notice::NotRecorded);
        }
    }
}

/// Changes that are not shown yet.
#[derive(Default)]
pub(crate) struct Shown(Vec<FileChange>);

/// Path, before if there was such a file, after.
type FileChange = (String, Option<Vec<u8>>, Vec<u8>);

impl Shown {
    pub(crate) fn diff(self, context: &Context) -> String {
        let root = context.root_name();
        let one = |(path, before, after): FileChange| {
            diff::unified(&shown_path(&root, &path), before.as_deref(), Some(&after))
        };
        self.0.into_iter().map(one).collect()
    }
}

impl<'a> Transaction<'a> {
    fn new(context: &'a Context, verb: &str, locked: Option<Held<'a>>, at_end: Option<Shown>) -> Self {
        let (verb, diff, hints, not_repointed) = (verb.to_owned(), String::new(), Vec::new(), Vec::new());
        Self { context, verb, locked, diff, hints, not_repointed, at_end }
    }

    /// Takes the lock, unless nothing is to be written; the writes until the drop are one step of `undo`.
    pub(crate) fn begin(context: &'a Context, verb: &str, mode: Mode) -> Result<Self, Error> {
        let locked = match mode {
            Mode::DryRun => None,
            Mode::Write => Some(Held { context, locked: lock(context, verb)? }),
        };
        Ok(Self::new(context, verb, locked, None))
    }

    /// Diffs are rendered from [`Self::cut`], after the lock is released.
    pub(crate) fn show_at_end(&mut self) {
        self.at_end.get_or_insert_default();
    }

    /// What was changed since [`Self::show_at_end`] or the last cut.
    pub(crate) fn cut(&mut self) -> Shown {
        self.at_end.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// The same change for another thread, which writes other files: another step of `undo`, the `nth` after this one's.
    pub(crate) fn beside(&self, nth: u64, verb: &str, by: &str) -> Self {
        let at = self.context.now.to_string();
        let beside = |it: &Held<'a>| Held { context: self.context, locked: it.beside(nth, (verb, &at, by)) };
        let locked = self.locked.as_ref().map(beside);
        Self::new(self.context, verb, locked, Some(Shown::default()))
    }

    /// Gives the lock back; returns whether nothing was written.
    pub(crate) fn end(self) -> bool {
        self.is_dry_run()
    }

    pub(crate) fn is_dry_run(&self) -> bool {
        self.locked.is_none()
    }

    /// Runs `decide` on a file as it is at that moment, and writes the result.
    ///
    /// When another program saves in between, `decide` runs again on what it saved, unless that already contains the
    /// change. The value is that of the run whose result is in the file.
    pub(crate) fn change<T, L>(
        &mut self,
        path: &str,
        decide: Decide<'_, T, L>,
    ) -> Result<Decision<Applied, T, L>, Error> {
        let Some(locked) = &mut self.locked else {
            let base = self.context.plans.read(Path::new(path))?.bytes;
            return decide(&base)?.try_map(|ours, value| {
                let applied = Applied { was_written: base != ours, bytes: ours.clone() };
                self.show((path.to_owned(), Some(base), ours));
                Ok((applied, value))
            });
        };
        let mut rounds: Vec<Round<T>> = Vec::new();
        let mut made = None;
        let changed = locked.change(Path::new(path), &mut |bytes| {
            made = included(&rounds, bytes);
            if made.is_some() {
                return Ok(bytes.to_vec());
            }
            let (ours, value) = match decide(bytes)? {
                Decision::Write(ours, value) => (ours, value),
                Decision::Leave(left) => return Err(Stop::Left(left)),
            };
            precondition::check_looked_at(self.context)?;
            idempotency::about_to(self.context, &self.verb, vec![path.to_owned()], || {
                diff::unified(&shown_path(&self.context.root_name(), path), Some(bytes), Some(&ours))
            });
            rounds.push(Round { base: bytes.to_vec(), ours: ours.clone(), value });
            Ok(ours)
        });
        let written = match changed {
            Ok(written) => written,
            Err(ChangeError::Disk(error)) => return Err(Error::Disk(error)),
            Err(ChangeError::Refused(Stop::Refused(error))) => return Err(error),
            Err(ChangeError::Refused(Stop::Left(left))) => return Ok(Decision::Leave(left)),
        };
        tell_kept(self.context, &written.kept);
        // The disk makes no change without a run of the decision.
        let last = made.unwrap_or(rounds.len().saturating_sub(1));
        let Round { base, ours, value } = rounds.swap_remove(last);
        let was_written = base != ours;
        if was_written {
            self.context.kept.note_change();
        }
        self.show((path.to_owned(), Some(base), ours));
        Ok(Decision::Write(Applied { bytes: written.bytes, was_written }, value))
    }

    fn show(&mut self, change: FileChange) {
        match &mut self.at_end {
            Some(all) => all.0.push(change),
            None => self.diff.push_str(&Shown(vec![change]).diff(self.context)),
        }
    }

    /// Makes the file of a step that the plan lists and that has none, unless it was removed a moment ago.
    pub(crate) fn create_listed(&mut self, path: &str, bytes: &[u8]) -> Result<(), Error> {
        if let Some(locked) = &self.locked {
            locked.refuse_vanished(Path::new(path))?;
        }
        self.create(path, bytes)
    }

    /// Reports a save into a file that was moved, which came after its text was read: it lies in the new place alone.
    pub(crate) fn report_save(&self, path: &str, moved: &Path, read: &[u8]) {
        let is_other = || self.context.plans.read(moved).is_ok_and(|it| it.bytes != read);
        if !self.is_dry_run() && is_other() {
            let kept = moved.to_string_lossy().into_owned();
            let why = KeptWhy::Overtaken.word().to_owned();
            self.context.notify(Notice::Kept { path: path.to_owned(), kept, why });
        }
    }

    /// Makes a file that does not exist.
    pub(crate) fn create(&mut self, path: &str, bytes: &[u8]) -> Result<(), Error> {
        precondition::check_looked_at(self.context)?;
        idempotency::about_to(self.context, &self.verb, vec![path.to_owned()], || {
            self.diff_of(path, None, Some(bytes))
        });
        if let Some(locked) = &mut self.locked {
            locked.create(Path::new(path), bytes)?;
            self.context.kept.note_change();
        }
        self.show((path.to_owned(), None, bytes.to_vec()));
        Ok(())
    }

    /// Makes a directory that appears with all its files at once.
    pub(crate) fn create_directory(&mut self, path: &str, files: &[(String, Vec<u8>)]) -> Result<(), Error> {
        precondition::check_looked_at(self.context)?;
        idempotency::about_to(self.context, &self.verb, vec![path.to_owned()], || {
            let diff = |(name, bytes): &(String, Vec<u8>)| {
                self.diff_of(&format!("{path}/{name}"), None, Some(bytes))
            };
            files.iter().map(diff).collect()
        });
        if let Some(locked) = &mut self.locked {
            locked.create_dir_with(Path::new(path), files)?;
            self.context.kept.note_change();
        }
        for (name, bytes) in files {
            self.diff.push_str(&self.diff_of(&format!("{path}/{name}"), None, Some(bytes)));
        }
        Ok(())
    }

    /// Changes several files as one: after a crash all of it is finished, or none of it is there.
    pub(crate) fn batch(&mut self, verb: &str, ops: Vec<FileOp>) -> Result<(), Error> {
        precondition::check_looked_at(self.context)?;
        self.show_batch(verb, &ops);
        if let Some(locked) = &mut self.locked {
            locked.batch(verb, &self.context.now.to_string(), ops)?;
            self.context.kept.note_change();
        }
        Ok(())
    }

    /// As [`Self::batch`], of operations that `make` derives from the files as they are; after a save in between they are made
    /// again.
    pub(crate) fn batch_on_files(
        &mut self,
        verb: &str,
        make: &mut dyn FnMut() -> Result<Vec<FileOp>, Error>,
    ) -> Result<(), Error> {
        for _ in 1..BATCH_TRIES {
            let shown = self.diff.len();
            match self.batch(verb, make()?) {
                Err(Error::Disk(DiskError::FileChanged { .. })) => self.diff.truncate(shown),
                other => return other,
            }
        }
        self.batch(verb, make()?)
    }

    /// As [`Self::batch`]; a directory that it leaves without anything in it goes.
    pub(crate) fn batch_emptying(
        &mut self,
        verb: &str,
        ops: Vec<FileOp>,
        emptied: &Path,
    ) -> Result<(), Error> {
        precondition::check_looked_at(self.context)?;
        self.show_batch(verb, &ops);
        if let Some(locked) = &mut self.locked {
            let emptied = vec![emptied.to_path_buf()];
            locked.batch_emptying(verb, &self.context.now.to_string(), ops, emptied)?;
            self.context.kept.note_change();
        }
        Ok(())
    }

    /// Takes a change back, the last one or the one with this id.
    pub(crate) fn undo(&mut self, id: Option<&str>) -> Result<(), Error> {
        precondition::check_looked_at(self.context)?;
        idempotency::about_to(self.context, &self.verb, Vec::new(), String::new);
        if let Some(locked) = &mut self.locked {
            locked.undo_change(id)?;
            self.context.kept.note_change();
        }
        Ok(())
    }

    fn show_batch(&mut self, verb: &str, ops: &[FileOp]) {
        let diff: String = ops.iter().map(|op| describe(&self.context.root_name(), op)).collect();
        let paths: Vec<_> = ops.iter().map(|op| (matches!(op, FileOp::Create { .. }), path_of(op))).collect();
        idempotency::about_to(self.context, verb, idempotency::telling(&paths), || diff.clone());
        self.diff.push_str(&diff);
    }

    fn diff_of(&self, path: &str, before: Option<&[u8]>, after: Option<&[u8]>) -> String {
        diff::unified(&shown_path(&self.context.root_name(), path), before, after)
    }
}

/// Shows an operation as a diff.
pub(crate) fn describe(root: &str, op: &FileOp) -> String {
    let shown = |it: &Path| shown_path(root, &it.to_string_lossy());
    match op {
        FileOp::Create { path, bytes } => diff::unified(&shown(path), None, Some(bytes)),
        FileOp::Change { path, before, after } => diff::unified(&shown(path), Some(before), Some(after)),
        FileOp::Discard { path, before } => diff::unified(&shown(path), Some(before), None),
        FileOp::Rename { from, to } | FileOp::Remove { path: from, to } => {
            let (from, to) = (shown(from), shown(to));
            format!("diff --git a/{from} b/{to}\nsimilarity index 100%\nrename from {from}\nrename to {to}\n")
        }
    }
}

/// The file that an operation is about.
pub(crate) fn path_of(op: &FileOp) -> &Path {
    match op {
        FileOp::Create { path, .. } | FileOp::Change { path, .. } | FileOp::Discard { path, .. } => path,
        FileOp::Rename { to: path, .. } | FileOp::Remove { path, .. } => path,
    }
}

/// Takes the lock, and reports what was recovered. Later writes belong to `verb`.
pub(crate) fn lock<'a>(context: &'a Context, verb: &str) -> Result<Locked<'a>, Error> {
    let mut locked = context.plans.lock(&mut || (context.tell)(Notice::WaitingForLock))?;
    let news = std::mem::take(&mut locked.news);
    tell_kept(context, &news);
    if let Some(recovered) = &locked.recovered {
        (context.tell)(self::recovered(recovered));
    }
    locked.ask_for_lengths(context);
    locked.sign(&context.by);
    locked.carry(context.key.as_ref().map(|it| it.keyed()));
    locked.begin(verb, &context.now.to_string());
    Ok(locked)
}

pub(crate) fn recovered(it: &Recovered) -> Notice {
    let done = match it.outcome {
        Outcome::Finished => "was interrupted and is finished now",
        Outcome::TakenBack => "was interrupted and taken back, because somebody had changed a file",
    };
    Notice::Recovered { what: format!("`{}` of {} {done}", it.verb, it.at) }
}

pub(crate) fn kept(it: &Kept) -> Notice {
    let (path, kept) = (it.path.to_string_lossy().into_owned(), it.kept.to_string_lossy().into_owned());
    Notice::Kept { path, kept, why: it.why.word().to_owned() }
}

fn tell_kept(context: &Context, kept: &[Kept]) {
    for it in kept {
        context.notify(self::kept(it));
    }
}

/// Applies edits to a front matter, with an error that names the place.
pub(crate) fn edit(path: &str, bytes: &[u8], changes: &[Change], order: &[&str]) -> Result<Vec<u8>, Error> {
    header_edit::edit(bytes, changes, order).map_err(|together| {
        // The error's position refers to the file as it is, so the failing change is tried on that alone.
        let alone =
            changes.iter().find_map(|it| header_edit::edit(bytes, std::slice::from_ref(it), order).err());
        Error::edit(path, bytes, alone.unwrap_or(together))
    })
}

/// Refuses archived plans: they answer, and stay as they are.
pub(crate) fn check_live(plan: &Plan) -> Result<(), Error> {
    if !plan.is_archived {
        return Ok(());
    }
    let message = format!("`{}` is archived", plan.id);
    Err(Error::Conflict {
        code: "archived",
        message,
        hint: format!("`planwatch archive --restore {}` brings it back", plan.id),
    })
}

/// Refuses a file that must not be written.
pub(crate) fn check_writable(context: &Context, problems: &[Problem]) -> Result<(), Error> {
    let Some(problem) = problems.iter().find(|it| it.code.refuses_writing()) else { return Ok(()) };
    let mut problem = problem.clone();
    problem.path = shown_path(&context.root_name(), &problem.path);
    Err(Error::File { problem: Box::new(problem) })
}
