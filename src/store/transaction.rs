//! One change, made under the lock, and its report. A dry run takes no lock and only shows the change.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;
use serde_json::{Value, json};

use crate::api::context::{Context, Notice, Planned};
use crate::api::error::Error;
use crate::api::precondition;
use crate::api::views::shown_path;
use crate::disk::{DiskError, Done, FileOp, Kept, KeptWhy, Locked, Outcome, Recovered};
use crate::plan::model::Plan;
use crate::plan::problem::Problem;
use crate::plan::read;
use crate::store::decision::Decision;
use crate::store::idempotency;
use crate::store::sync::state::FileBefore;
use crate::text::front_matter::split;
use crate::text::header_edit::{self, Change};
use crate::text::typed::shell_word;
use crate::text::{diff, includes};

pub use crate::api::requests::Mode;

#[derive(Debug, Clone, Default)]
pub struct ChangeReport {
    pub verb: &'static str,
    pub is_dry_run: bool,
    /// In the order of the request.
    pub changes: Vec<Changed>,
    pub refused: Vec<Refused>,
    /// The unified diff of all files.
    pub diff: String,
    /// Next commands, and other hints.
    pub hints: Vec<String>,
    /// Steps whose `depends` still names a removed, merged, moved or archived step.
    pub not_repointed: Vec<String>,
    /// The git commit that contains the undone change.
    pub committed: Option<String>,
}

/// One plan, step, decision, insight or script that was changed, or needed no change.
#[derive(Debug, Clone, Serialize)]
pub struct Changed {
    pub id: String,
    pub title: String,
    /// The path, starting with the plans directory's name.
    pub path: String,
    #[serde(rename = "written")]
    pub was_written: bool,
    /// The status before. If the plan or step got another id, the old id. `None` if the change reports neither.
    pub was: Option<String>,
    pub status: Option<String>,
    /// What was done, in the past tense, for example `completed`, `attempt recorded` or `added`.
    pub did: String,
    /// Whether an undo removed the file.
    #[serde(skip)]
    pub is_gone: bool,
    /// The plan or step as it is now.
    pub now: Value,
}

impl Changed {
    /// Something that was written, without a status; `path` is relative to the plans directory.
    pub(crate) fn new(
        context: &Context,
        id: &impl ToString,
        (title, path): (&str, &str),
        did: impl Into<String>,
        now: Value,
    ) -> Self {
        let (path, did) = (shown_path(&context.root_name(), path), did.into());
        let (id, title) = (id.to_string(), title.to_owned());
        Self { id, title, path, was_written: true, was: None, status: None, did, is_gone: false, now }
    }
}

/// One refused change among several.
#[derive(Debug)]
pub struct Refused {
    pub id: String,
    pub error: Error,
}

impl Clone for Refused {
    /// Errors contain system errors, which cannot be cloned; the copy has the same text.
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
            object["id"] = it.id.clone().into();
            object
        };
        let mut object = json!({
            "verb": self.verb,
            "dry_run": self.is_dry_run,
            "changes": self.changes,
            "refused": self.refused.iter().map(refused).collect::<Vec<_>>(),
            "diff": self.diff,
        });
        if !self.not_repointed.is_empty() {
            object["not_repointed"] = self.not_repointed.clone().into();
        }
        if let Some(commit) = &self.committed {
            object["committed"] = commit.as_str().into();
        }
        object
    }

    /// The exit code of the first refusal; 0 if there is none.
    pub fn exit_code(&self) -> u8 {
        self.refused.first().map_or(0, |it| it.error.exit_code())
    }
}

/// Decides on the new content of a file, only from the given bytes. May run more than once.
pub(crate) type DecideBytes<'a, T, L> = &'a dyn Fn(&[u8]) -> Result<Decision<Vec<u8>, T, L>, Error>;

/// A change of one file that was made, or found not to be needed.
pub(crate) struct Applied {
    /// The content of the file. If an editor saved over planwatch's version and kept the change, this is the editor's text.
    pub(crate) bytes: Vec<u8>,
    pub(crate) was_written: bool,
}

/// One run of the decision that returned `Decision::Write`.
struct Round<T> {
    base: Vec<u8>,
    ours: Vec<u8>,
    value: T,
}

/// Keys whose new values no other change can produce, such as lists of entries with a time and an author.
const UNIQUE: [&str; 5] = ["claim", "attempts", "notes", "confirmations", "confirmed"];

/// Returns the index of the round whose change `bytes` already contain, because an editor read planwatch's version and
/// saved over it.
///
/// `shown` are the texts of planwatch that have been in the file. A round whose text (`ours`) is not one of them does not
/// count: if the saved text has the same value, another program wrote that value.
fn included<T>(rounds: &[Round<T>], bytes: &[u8], shown: &[Vec<u8>]) -> Option<usize> {
    let is_included = |it: &Round<T>| {
        it.base != it.ours
            && shown.contains(&it.ours)
            && includes::includes(&it.base, &it.ours, bytes, &UNIQUE)
    };
    rounds.iter().rposition(is_included)
}

/// Whether `ours` would discard a body that an editor saved after the first run: the editor changed the body, and the
/// decision produced the same body as on its first run.
fn replaces_a_save<T>(first: &Round<T>, bytes: &[u8], ours: &[u8]) -> bool {
    let [base, given, saved, ours] = [&first.base, &first.ours, bytes, ours].map(|it| split(it).body());
    saved != base && ours != saved && ours == given
}

/// The number and length of the waits for a save in progress. Together they last longer than the time for which a file
/// can count as half saved.
const SAVE_WAITS: usize = 30;
const SAVE_WAIT: Duration = Duration::from_millis(100);

/// Whether a file was left alone because a save of it seems to be under way.
pub(crate) fn is_half_saved(error: &Error) -> bool {
    matches!(error, Error::Disk(DiskError::HalfSaved { .. } | DiskError::Vanished { .. }))
}

/// Whether a file was not written because another program saved it meanwhile.
fn is_changed(error: &Error) -> bool {
    matches!(error, Error::Disk(DiskError::FileChanged { .. }))
}

/// Repeats a change that was refused because of other programs' saves, for a caller that cannot try again itself. The
/// change takes the lock itself, so the lock is free between two attempts.
pub(crate) fn once_saved<T>(
    context: &Context,
    mut change: impl FnMut() -> Result<T, Error>,
) -> Result<T, Error> {
    for _ in 0..SAVE_WAITS {
        match change() {
            Err(error) if is_half_saved(&error) || is_changed(&error) => {
                context.plans.disk().pause(SAVE_WAIT);
            }
            done => return done,
        }
    }
    change()
}

/// The maximum number of attempts at a batch that fails because another program saved a file.
const BATCH_TRIES: usize = 3;

pub(crate) struct Transaction<'a> {
    context: &'a Context,
    verb: String,
    /// `None` in a dry run.
    locked: Option<LockedPlans<'a>>,
    pub(crate) diff: String,
    pub(crate) hints: Vec<String>,
    pub(crate) not_repointed: Vec<String>,
    /// Diffs to render after the lock is released; `None` if they are rendered at once.
    at_end: Option<Shown>,
    /// Receives every change of a file, for a caller that needs the texts afterwards.
    pub(crate) noted: Option<Planned>,
}

/// The lock of the plans directory. When it is released, the preserved texts (`Kept`) that were not reported yet are
/// reported, even if the change failed.
struct LockedPlans<'a> {
    context: &'a Context,
    locked: Locked<'a>,
}

impl Drop for LockedPlans<'_> {
    fn drop(&mut self) {
        report_kept(self.context, &std::mem::take(&mut self.locked.kept));
        if self.locked.take_unrecorded() {
            self.context.notify(Notice::NotRecorded);
        }
    }
}

/// Changes that are not shown yet.
#[derive(Default)]
pub(crate) struct Shown(Vec<FileChange>);

/// Path, earlier content if there was such a file, new content.
type FileChange = (String, Option<Vec<u8>>, Vec<u8>);

impl Shown {
    /// The one changed file as it was before; `None` if not exactly one file changed, or if the file did not exist before
    /// or was not UTF-8.
    pub(crate) fn file_before(&self) -> Option<FileBefore> {
        let [(path, Some(before), after)] = self.0.as_slice() else { return None };
        let before = String::from_utf8(before.clone()).ok()?;
        Some(FileBefore { path: path.clone(), before, left: read::etag(after) })
    }

    pub(crate) fn diff(self, context: &Context) -> String {
        let root = context.root_name();
        let one = |(path, before, after): FileChange| {
            diff::unified(&shown_path(&root, &path), before.as_deref(), Some(&after))
        };
        self.0.into_iter().map(one).collect()
    }
}

impl<'a> Transaction<'a> {
    fn new(context: &'a Context, verb: &str, locked: Option<LockedPlans<'a>>, at_end: Option<Shown>) -> Self {
        let (verb, diff, hints, not_repointed) = (verb.to_owned(), String::new(), Vec::new(), Vec::new());
        Self { context, verb, locked, diff, hints, not_repointed, at_end, noted: None }
    }

    /// Takes the lock, except in a dry run. All writes until the returned transaction is dropped are one unit for
    /// `undo`.
    pub(crate) fn begin(context: &'a Context, verb: &str, mode: Mode) -> Result<Self, Error> {
        let locked = match mode {
            Mode::DryRun => None,
            Mode::Write => Some(LockedPlans { context, locked: lock(context, verb)? }),
        };
        Ok(Self::new(context, verb, locked, None))
    }

    /// Sets the author of the writes that follow. Without such a call, the author is the name in the context.
    pub(crate) fn sign(&mut self, by: &str) {
        if let Some(it) = &mut self.locked {
            it.locked.sign(by);
        }
    }

    /// From now on the diffs of `change` and `create` are collected for [`Self::cut`] and rendered later.
    pub(crate) fn show_at_end(&mut self) {
        self.at_end.get_or_insert_default();
    }

    /// The files that `change` and `create` changed since [`Self::show_at_end`] or the last cut.
    pub(crate) fn cut(&mut self) -> Shown {
        self.at_end.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// A transaction under the same lock for another thread, which writes other files. Its changes are a separate unit
    /// of `undo`, the `nth` after this transaction's.
    pub(crate) fn for_thread(&self, nth: u64, verb: &str, by: &str) -> Self {
        let at = self.context.now.to_string();
        let of_thread = |it: &LockedPlans<'a>| LockedPlans {
            context: self.context,
            locked: it.locked.for_thread(nth, (verb, &at, by)),
        };
        let locked = self.locked.as_ref().map(of_thread);
        Self::new(self.context, verb, locked, Some(Shown::default()))
    }

    /// Releases the lock; returns whether this was a dry run.
    pub(crate) fn end(self) -> bool {
        self.is_dry_run()
    }

    pub(crate) fn is_dry_run(&self) -> bool {
        self.locked.is_none()
    }

    /// Runs `decide` on the current content of a file, and writes the result.
    ///
    /// If another program saves in between, `decide` runs again on the saved text, unless that text already contains
    /// the change. The returned value is that of the run whose result is in the file.
    pub(crate) fn change<T, L>(
        &mut self,
        path: &str,
        decide: DecideBytes<'_, T, L>,
    ) -> Result<Decision<Applied, T, L>, Error> {
        let Some(LockedPlans { locked, .. }) = &mut self.locked else {
            let base = self.context.plans.read(Path::new(path))?.bytes;
            return decide(&base)?.try_map(|ours, value| {
                let applied = Applied { was_written: base != ours, bytes: ours.clone() };
                self.show((path.to_owned(), Some(base), ours));
                Ok((applied, value))
            });
        };
        let mut rounds: Vec<Round<T>> = Vec::new();
        let mut made = None;
        // An `Err` says why nothing is written: `Err(Ok(_))` if the decision leaves the file as it is, `Err(Err(_))` if
        // there was an error.
        let mut run = |bytes: &[u8], shown: &[Vec<u8>]| {
            made = included(&rounds, bytes, shown);
            if made.is_some() {
                return Ok(bytes.to_vec());
            }
            let (ours, value) = match decide(bytes).map_err(Err)? {
                Decision::Write(ours, value) => (ours, value),
                Decision::Leave(left) => return Err(Ok(left)),
            };
            precondition::check_looked_at(self.context).map_err(Err)?;
            if rounds.first().is_some_and(|it| replaces_a_save(it, bytes, &ours)) {
                let path = self.context.plans.root().join(path);
                return Err(Err(Error::Disk(DiskError::FileChanged { path })));
            }
            idempotency::prepare_record(self.context, &self.verb, vec![path.to_owned()], || {
                diff::unified(&shown_path(&self.context.root_name(), path), Some(bytes), Some(&ours))
            });
            rounds.push(Round { base: bytes.to_vec(), ours: ours.clone(), value });
            Ok(ours)
        };
        let mut stop = None;
        let written = locked.change(Path::new(path), &mut |bytes, shown| {
            run(bytes, shown).map_err(|it| stop = Some(it)).ok()
        })?;
        report_kept(self.context, &written.kept);
        if let Some(stop) = stop.filter(|_| written.done == Done::Refused) {
            return stop.map(Decision::Leave);
        }
        // `Locked::change` succeeds only after at least one run of the decision.
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
        for receiver in self.receivers() {
            let (path, before, after) = change.clone();
            let path = PathBuf::from(path);
            receiver.note(match before {
                Some(before) => FileOp::Change { path, before, after },
                None => FileOp::Create { path, bytes: after },
            });
        }
        match &mut self.at_end {
            Some(all) => all.0.push(change),
            None => self.diff.push_str(&Shown(vec![change]).diff(self.context)),
        }
    }

    /// Creates the missing file of a listed step, unless the file disappeared a moment ago.
    pub(crate) fn create_listed(&mut self, path: &str, bytes: &[u8]) -> Result<(), Error> {
        if let Some(held) = &self.locked {
            held.locked.refuse_vanished(Path::new(path))?;
        }
        self.create(path, bytes)
    }

    /// For a file that planwatch has read and moved: if an editor saved into it after it was read, reports that the
    /// saved text is only at the new path.
    pub(crate) fn report_save(&self, path: &str, moved: &Path, read: &[u8]) {
        let is_other = || self.context.plans.read(moved).is_ok_and(|it| it.bytes != read);
        if !self.is_dry_run() && is_other() {
            let kept = moved.to_string_lossy().into_owned();
            let why = KeptWhy::Overtaken.word().to_owned();
            self.context.notify(Notice::Kept { path: path.to_owned(), kept, why });
        }
    }

    /// Creates a file that must not exist yet.
    pub(crate) fn create(&mut self, path: &str, bytes: &[u8]) -> Result<(), Error> {
        precondition::check_looked_at(self.context)?;
        idempotency::prepare_record(self.context, &self.verb, vec![path.to_owned()], || {
            self.diff_of(path, None, Some(bytes))
        });
        self.write(|it| it.create(Path::new(path), bytes))?;
        self.show((path.to_owned(), None, bytes.to_vec()));
        Ok(())
    }

    /// Creates a directory that must not exist yet; it appears with all its files at once.
    pub(crate) fn create_directory(&mut self, path: &str, files: &[(String, Vec<u8>)]) -> Result<(), Error> {
        precondition::check_looked_at(self.context)?;
        idempotency::prepare_record(self.context, &self.verb, vec![path.to_owned()], || {
            let diff = |(name, bytes): &(String, Vec<u8>)| {
                self.diff_of(&format!("{path}/{name}"), None, Some(bytes))
            };
            files.iter().map(diff).collect()
        });
        self.write(|it| it.create_dir_with(Path::new(path), files))?;
        for (name, bytes) in files {
            let path = format!("{path}/{name}");
            for receiver in self.receivers() {
                receiver.note(FileOp::Create { path: PathBuf::from(&path), bytes: bytes.clone() });
            }
            self.diff.push_str(&self.diff_of(&path, None, Some(bytes)));
        }
        Ok(())
    }

    /// Changes several files as one: after a crash all changes are made, or none.
    pub(crate) fn batch(&mut self, verb: &str, ops: Vec<FileOp>) -> Result<(), Error> {
        self.batch_emptying(verb, ops, Vec::new())
    }

    /// Like [`Self::batch`], with operations that `make` derives from the current files. If a file is saved in between,
    /// they are derived again.
    pub(crate) fn batch_on_files(
        &mut self,
        verb: &str,
        make: &mut dyn FnMut() -> Result<Vec<FileOp>, Error>,
    ) -> Result<(), Error> {
        for _ in 1..BATCH_TRIES {
            match self.batch(verb, make()?) {
                Err(Error::Disk(DiskError::FileChanged { .. })) => {}
                other => return other,
            }
        }
        self.batch(verb, make()?)
    }

    /// Like [`Self::batch`]; also removes the directories `emptied` if nothing is left in them.
    pub(crate) fn batch_emptying(
        &mut self,
        verb: &str,
        ops: Vec<FileOp>,
        emptied: Vec<PathBuf>,
    ) -> Result<(), Error> {
        precondition::check_looked_at(self.context)?;
        let shown = self.diff.len();
        self.show_batch(verb, &ops);
        let at = self.context.now.to_string();
        let noted = if self.receivers().next().is_some() { ops.clone() } else { Vec::new() };
        // If the batch is refused, its diff is removed again, and its operations are not noted.
        self.write(|it| it.batch_emptying(verb, &at, ops, emptied))
            .inspect_err(|_| self.diff.truncate(shown))?;
        self.receivers().for_each(|it| noted.iter().cloned().for_each(|op| it.note(op)));
        Ok(())
    }

    /// Undoes the change with this id or, without an id, the last one.
    pub(crate) fn undo(&mut self, id: Option<&str>) -> Result<(), Error> {
        precondition::check_looked_at(self.context)?;
        idempotency::prepare_record(self.context, &self.verb, Vec::new(), String::new);
        self.write(|it| it.undo_change(id))
    }

    /// Makes a change with the lock. In a dry run, does nothing.
    fn write<T, E>(&mut self, make: impl FnOnce(&mut Locked<'a>) -> Result<T, E>) -> Result<(), Error>
    where
        Error: From<E>,
    {
        if let Some(held) = &mut self.locked {
            make(&mut held.locked)?;
            self.context.kept.note_change();
        }
        Ok(())
    }

    fn show_batch(&mut self, verb: &str, ops: &[FileOp]) {
        let diff: String = ops.iter().map(|op| describe(&self.context.root_name(), op)).collect();
        let paths: Vec<_> = ops.iter().map(|op| (matches!(op, FileOp::Create { .. }), path_of(op))).collect();
        idempotency::prepare_record(self.context, verb, idempotency::result_paths(&paths), || diff.clone());
        self.diff.push_str(&diff);
    }

    fn receivers(&self) -> impl Iterator<Item = &Planned> {
        self.context.planned.iter().chain(&self.noted)
    }

    fn diff_of(&self, path: &str, before: Option<&[u8]>, after: Option<&[u8]>) -> String {
        diff::unified(&shown_path(&self.context.root_name(), path), before, after)
    }
}

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
    let mut locked = context.plans.lock(&mut || (context.on_notice)(Notice::WaitingForLock))?;
    let kept = std::mem::take(&mut locked.kept);
    report_kept(context, &kept);
    if let Some(recovered) = &locked.recovered {
        (context.on_notice)(self::recovered(recovered));
    }
    locked.use_records(context);
    locked.sign(&context.by);
    locked.use_key(context.key.as_ref().map(|it| it.keyed()));
    locked.begin(verb, &context.now.to_string());
    Ok(locked)
}

pub(crate) fn recovered(it: &Recovered) -> Notice {
    let done = match it.outcome {
        Outcome::Finished => "was interrupted and is now complete",
        Outcome::TakenBack => "was interrupted; it is now undone, because another program had changed a file",
    };
    Notice::Recovered { what: format!("`{}` of {} {done}", it.verb, it.at) }
}

pub(crate) fn kept(it: &Kept) -> Notice {
    let (path, kept) = (it.path.to_string_lossy().into_owned(), it.kept.to_string_lossy().into_owned());
    Notice::Kept { path, kept, why: it.why.word().to_owned() }
}

fn report_kept(context: &Context, kept: &[Kept]) {
    for it in kept {
        context.notify(self::kept(it));
    }
}

/// Applies edits to a front matter, with an error that names the place.
pub(crate) fn edit(path: &str, bytes: &[u8], changes: &[Change], order: &[&str]) -> Result<Vec<u8>, Error> {
    header_edit::edit(bytes, changes, order).map_err(|together| {
        // The position must refer to the file as it is on disk, so each change is tried alone on that file, and the
        // first that fails gives the error.
        let alone =
            changes.iter().find_map(|it| header_edit::edit(bytes, std::slice::from_ref(it), order).err());
        Error::edit(path, bytes, alone.unwrap_or(together))
    })
}

/// Refuses archived plans: they can be read, but not changed.
pub(crate) fn check_live(plan: &Plan) -> Result<(), Error> {
    if !plan.is_archived {
        return Ok(());
    }
    let hint = format!("`planwatch archive --restore {}` brings it back", shell_word(&plan.id));
    Err(Error::conflict("archived", format!("`{}` is archived", plan.id), hint))
}

/// Refuses a file that must not be written.
pub(crate) fn check_writable(context: &Context, problems: &[Problem]) -> Result<(), Error> {
    let problem = problems.iter().find(|it| it.code.refuses_writing());
    problem.map_or(Ok(()), |it| Err(file_error(context, it)))
}

/// The error for a problem of a file, with its path as it is shown.
pub(crate) fn file_error(context: &Context, problem: &Problem) -> Error {
    let path = shown_path(&context.root_name(), &problem.path);
    Error::File { problem: Box::new(Problem { path, ..problem.clone() }) }
}
