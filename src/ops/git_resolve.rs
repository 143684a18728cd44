//! `git resolve`: merges conflicted plan files by meaning, and stages those that have no conflict left.
//!
//! Conflicted files that a person has edited since the merge are not merged again.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::{Value, json};

use crate::api::context::{Context, Planned};
use crate::api::error::Error;
use crate::api::requests::Mode;
use crate::api::views::shown_path;
use crate::disk::{DiskError, FileOp};
use crate::git::{Blobs, Favor, FileVersion, Git, LineMerge, Oid};
use crate::plan::merge::{self, Merged, TextMerge, TextMerged, Versions, markers, with_line_ends_of};
use crate::store::decision::Decision;
use crate::store::removed::ARCHIVE;
use crate::store::transaction::{self, Transaction};

mod merging;
mod places;
mod renamed;
mod renumber;
mod restore;

use merging::{Finished, Merging};

#[derive(Debug, Clone, Default)]
pub struct GitResolveRequest {
    /// Files as they were typed, relative to `directory`; all conflicted plan files if empty.
    pub paths: Vec<PathBuf>,
    pub directory: PathBuf,
    /// If both sides added a step with the same number, give the step of THEIRS a free number.
    pub renumber: bool,
    /// Restore this removed step, whose file changed after the removal, and do nothing else.
    pub restore: Option<String>,
    pub mode: Mode,
}

#[derive(Debug, Clone, Default, Serialize)]
pub struct GitResolveReport {
    pub dry_run: bool,
    pub files: Vec<ResolvedFile>,
    pub diff: String,
    /// Plan files with uncommitted changes. Because of them, the last merge, cherry-pick or rebase was not examined.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub not_examined_because_of: Vec<String>,
}

/// A file that git left in conflict, a file without a conflict that this command repaired, or the file that `--restore` is
/// about.
#[derive(Debug, Clone, Serialize)]
pub struct ResolvedFile {
    pub path: String,
    /// `resolved`, `conflict`, `edited`, `number-taken` or `removed`; with `--restore`, `restored` or `carried`.
    pub state: &'static str,
    /// The decisions of the merge, for people.
    pub decided: Vec<String>,
    /// The new path of the step of THEIRS, if it was renumbered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub renumbered: Option<String>,
}

impl GitResolveReport {
    pub fn to_json(&self) -> Value {
        json!(self)
    }

    /// 1 if a person still has to resolve a file, or if the last merge was not examined.
    pub fn exit_code(&self) -> u8 {
        let is_done = |it: &ResolvedFile| matches!(it.state, "resolved" | "restored" | "carried");
        u8::from(!self.files.iter().all(is_done) || !self.not_examined_because_of.is_empty())
    }
}

/// What was done so far. If a change is refused because of a concurrent save, the command is repeated and continues
/// from here.
#[derive(Default)]
struct Done {
    files: Vec<ResolvedFile>,
    /// Files to stage.
    clean: Vec<PathBuf>,
    /// Files whose text this command has written. They contain no edits of a person.
    own: Vec<PathBuf>,
    /// Files that got the version of the side whose step they contain, because git had paired them with another step.
    unpaired: Vec<(PathBuf, Oid)>,
    diff: String,
}

impl Done {
    /// Adds a file, or updates its entry.
    fn report(&mut self, new: ResolvedFile) {
        let Some(file) = self.files.iter_mut().find(|it| it.path == new.path) else {
            return self.files.push(new);
        };
        file.state = new.state;
        let decided = new.decided.into_iter().filter(|it| !file.decided.contains(it));
        file.decided.extend(decided.collect::<Vec<_>>());
        file.renumbered = new.renumbered.or(file.renumbered.take());
    }

    /// Adds a decision to a file's entry. A file without an entry gets one.
    fn decide(&mut self, path: String, said: String) {
        match self.files.iter_mut().find(|it| it.path == path) {
            Some(file) if file.decided.contains(&said) => {}
            Some(file) => file.decided.push(said),
            None => {
                let decided = vec![said];
                self.files.push(ResolvedFile { path, state: "resolved", decided, renumbered: None });
            }
        }
    }

    fn set_resolved(&mut self, path: &str, decided: Option<&str>, renumbered: Option<&str>) {
        for file in self.files.iter_mut().filter(|it| it.path == path) {
            file.state = "resolved";
            let is_new = |it: &&str| !file.decided.iter().any(|known| known == it);
            file.decided.extend(decided.filter(is_new).map(str::to_owned));
            file.renumbered = file.renumbered.take().or_else(|| renumbered.map(str::to_owned));
        }
    }
}

/// Merges by lines without conflicts: if both sides changed the same lines, the result has both versions.
struct Both<'a>(&'a LineMerge);

impl TextMerge for Both<'_> {
    fn merge(&self, base: &[u8], ours: &[u8], theirs: &[u8]) -> Option<TextMerged> {
        let bytes = self.0.favoring(Favor::Both, base, ours, theirs)?;
        Some(TextMerged { bytes, is_clean: true })
    }
}

const STEP_IN_CONFLICT: &str =
    "the file has two steps; one was moved here, and both sides changed the same lines of it";

/// The stages of a conflicted file: base, ours, theirs.
type Stages = [Option<Oid>; 3];

/// One side of a merge.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Ours,
    Theirs,
}

/// A conflicted file: the staged texts, and the versions that [`Resolving::own_version`] returns, merged by meaning.
struct Sides {
    /// The path below the plans directory, with `plans/` before it.
    path: String,
    base: Option<Vec<u8>>,
    ours: Vec<u8>,
    theirs: Vec<u8>,
    /// The version of OURS; see [`Resolving::own_version`].
    own: Vec<u8>,
    /// Whether each side's version is clean; see [`renamed::Version`].
    are_clean: bool,
    merged: Merged,
}

impl Sides {
    fn staged(&self) -> Versions<'_> {
        let Self { path, base, ours, theirs, .. } = self;
        Versions { path, base: base.as_deref(), ours, theirs }
    }
}

struct Resolving<'a> {
    context: &'a Context,
    git: &'a Git,
    blobs: Blobs<'a>,
    lines: LineMerge,
    /// The plans directory relative to the repository's root.
    plans: PathBuf,
    merging: Option<Merging>,
}

/// Merges the conflicted files again by meaning.
pub fn git_resolve(context: &Context, request: &GitResolveRequest) -> Result<GitResolveReport, Error> {
    if let Some(name) = &request.restore {
        return restore::restore(context, name, request.mode);
    }
    let git = Git::at(context.plans.root())?;
    let plans = git.relative(context.plans.root()).unwrap_or_default();
    let lines = LineMerge::new(&git.root, &git.git_dir, 7);
    let is_under_way = git.operation()?.is_some();
    let merging = Merging::under_way(&git)?;
    let mut resolving = Resolving { context, git: &git, blobs: git.blobs(), lines, plans, merging };
    let all = resolving.conflicted()?;
    let wanted = resolving.wanted(request, &all)?;
    let mut uncommitted = Vec::new();
    if wanted.is_empty() && request.paths.is_empty() && !is_under_way {
        match Merging::finished(&git, &resolving.plans)? {
            Finished::None => {}
            Finished::Known(merging) => resolving.merging = Some(merging),
            Finished::Uncommitted(paths) => {
                let inside = |it: &PathBuf| it.strip_prefix(&resolving.plans).unwrap_or(it).to_path_buf();
                uncommitted = paths.iter().map(|it| resolving.shown(&inside(it))).collect();
            }
        }
    }
    if wanted.is_empty() && (!request.paths.is_empty() || !is_under_way && resolving.merging.is_none()) {
        let dry_run = request.mode == Mode::DryRun;
        let not_examined_because_of = uncommitted;
        return Ok(GitResolveReport { dry_run, not_examined_because_of, ..GitResolveReport::default() });
    }
    // A file that git wrote a moment ago looks as if an editor were still saving it.
    let (mut done, written) = (Done::default(), Planned::default());
    let resolved = transaction::once_saved(context, || {
        let mut writing = Transaction::begin(context, "git resolve", request.mode)?;
        writing.noted = Some(written.clone());
        let resolved = resolving.all(request, &wanted, &mut writing, &mut done);
        done.diff.push_str(&std::mem::take(&mut writing.diff));
        resolved
    });
    // If a later file was refused, the files that were resolved before are staged nevertheless.
    if request.mode == Mode::Write {
        resolving.stage(&done, written.take())?;
    }
    resolved?;
    done.files.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    let (dry_run, Done { files, diff, .. }) = (request.mode == Mode::DryRun, done);
    Ok(GitResolveReport { dry_run, files, diff, ..GitResolveReport::default() })
}

impl Resolving<'_> {
    /// Resolves the files that are not `done` yet, under one lock.
    fn all(
        &self,
        request: &GitResolveRequest,
        wanted: &[(PathBuf, Stages)],
        writing: &mut Transaction<'_>,
        done: &mut Done,
    ) -> Result<(), Error> {
        let dry_run = request.mode == Mode::DryRun;
        let left = wanted.iter().filter(|(path, _)| !done.clean.contains(path));
        let is_whole = |stages: &Stages| stages[1].is_some() && stages[2].is_some();
        let (whole, partial): (Vec<_>, Vec<_>) = left.cloned().partition(|(_, stages)| is_whole(stages));
        let mut taken = Vec::new();
        for (path, stages) in whole {
            let file = self.resolve(writing, &path, &stages)?;
            match file.state {
                "resolved" => done.clean.push(path),
                "number-taken" => taken.push((path, stages)),
                _ => {}
            }
            done.report(file);
        }
        let stuck = places::rehome::rehome(self, writing, &taken, request.renumber, done)?;
        taken.retain(|(path, _)| request.renumber && !done.clean.contains(path) && !stuck.contains(path));
        places::place(self, writing, &partial, done)?;
        // In a dry run nothing was written, so these searches would find the old state.
        let searches = request.paths.is_empty() && !dry_run;
        if searches {
            places::recover::recover(self, writing, done)?;
        }
        renumber::renumber(self, writing, &taken, done)?;
        if searches {
            places::reunite::reunite(self, writing, done)?;
            places::moves::follow(self, writing, done)?;
        }
        Ok(())
    }

    /// The conflicted Markdown files of the plans directory, relative to it.
    fn conflicted(&self) -> Result<BTreeMap<PathBuf, Stages>, Error> {
        let mut all: BTreeMap<PathBuf, Stages> = BTreeMap::new();
        let directory = if self.plans.as_os_str().is_empty() { Path::new(".") } else { &self.plans };
        for entry in self.git.unmerged_entries(&[directory])? {
            let path = Path::new(OsStr::from_bytes(&entry.path));
            let Ok(path) = path.strip_prefix(&self.plans) else { continue };
            let is_file = matches!(entry.mode, 0o100_644 | 0o100_755);
            if !is_file || path.extension() != Some(OsStr::new("md")) {
                continue;
            }
            let stages = all.entry(path.to_path_buf()).or_default();
            if let Some(stage) = stages.get_mut(usize::from(entry.stage).wrapping_sub(1)) {
                *stage = Some(entry.oid);
            }
        }
        Ok(all)
    }

    fn wanted(
        &self,
        request: &GitResolveRequest,
        all: &BTreeMap<PathBuf, Stages>,
    ) -> Result<Vec<(PathBuf, Stages)>, Error> {
        if request.paths.is_empty() {
            return Ok(all.iter().map(|(path, stages)| (path.clone(), stages.clone())).collect());
        }
        let find = |typed: &PathBuf| {
            let inside = self.git.relative(&request.directory.join(typed));
            let path = inside.and_then(|it| Some(it.strip_prefix(&self.plans).ok()?.to_path_buf()));
            let found = path.and_then(|it| all.get(&it).map(|stages| (it.clone(), stages.clone())));
            let message = format!("`{}` is not a plan file in conflict", typed.display());
            let hint = "without a path, all files in conflict are merged";
            found.ok_or_else(|| Error::conflict("no-conflict", message, hint))
        };
        request.paths.iter().map(find).collect()
    }

    fn blob(&self, oid: &Oid) -> Result<Vec<u8>, Error> {
        Ok(self.blobs.read(oid)?)
    }

    /// Merges the versions of a file. If the file is in `_archive/` and its versions conflict, the result has both texts,
    /// because no one works on archived or removed files. If that is impossible, the conflict stays.
    fn merge(&self, of: Versions<'_>) -> Merged {
        let words = &self.context.config.words;
        let merged = merge::merge(of, words, &self.lines);
        let is_removed = of.path.split('/').any(|it| it == ARCHIVE);
        if merged.is_clean || merged.is_other_file || !is_removed {
            return merged;
        }
        let both = merge::merge(of, words, &Both(&self.lines));
        let is_step = both.is_clean && merge::likeness(&both.bytes, of.ours) > 0;
        if is_step { both } else { merged }
    }

    fn shown(&self, path: &Path) -> String {
        shown_path(&self.context.root_name(), &path.to_string_lossy())
    }

    fn resolve(
        &self,
        writing: &mut Transaction<'_>,
        path: &Path,
        stages: &Stages,
    ) -> Result<ResolvedFile, Error> {
        let mut file =
            ResolvedFile { path: self.shown(path), state: "removed", decided: Vec::new(), renumbered: None };
        let Some(sides) = self.sides(path, stages)? else { return Ok(file) };
        file.state = "conflict";
        let name = path.to_string_lossy();
        let is_left = || self.context.plans.read(path).is_ok_and(|it| self.is_as_left(&sides, &it.bytes));
        if !sides.are_clean {
            file.state = if is_left() { "conflict" } else { "edited" };
            file.decided = vec![STEP_IN_CONFLICT.to_owned()];
            return Ok(file);
        }
        if sides.merged.is_other_file && merge::FileKind::of(&sides.path).0 == merge::FileKind::Step {
            file.state = if is_left() { "number-taken" } else { "edited" };
            return Ok(file);
        }
        let written = writing.change(&name, &|now: &[u8]| {
            Ok(match self.is_untouched(now, sides.staged(), &sides.merged) {
                true => Decision::Write(with_line_ends_of(now, &sides.merged.bytes), ()),
                false => Decision::Leave(()),
            })
        })?;
        file.state = match written {
            Decision::Leave(()) => "edited",
            Decision::Write(..) if sides.merged.is_clean => "resolved",
            Decision::Write(..) => "conflict",
        };
        if file.state != "edited" {
            file.decided = sides.merged.decided;
        }
        Ok(file)
    }

    /// The sides of a file and their merge; none if one side has no such file.
    fn sides(&self, path: &Path, stages: &Stages) -> Result<Option<Sides>, Error> {
        let [base, Some(ours), Some(theirs)] = stages else { return Ok(None) };
        let base = base.as_ref().map(|it| self.blob(it)).transpose()?;
        let named = format!("plans/{}", path.to_string_lossy());
        let own = self.own_version(path, ours, true)?;
        let other = self.own_version(path, theirs, false)?;
        let are_clean = own.is_clean && other.is_clean;
        let of = Versions { path: &named, base: base.as_deref(), ours: &own.text, theirs: &other.text };
        let merged = self.merge(of);
        let (ours, theirs) = (self.blob(ours)?, self.blob(theirs)?);
        Ok(Some(Sides { path: named, base, ours, theirs, own: own.text, are_clean, merged }))
    }

    /// For a file in which each side added a different step: whether it is as git left it, or equals OURS.
    fn is_as_left(&self, sides: &Sides, now: &[u8]) -> bool {
        with_line_ends_of(&sides.own, now) == sides.own
            || self.is_untouched(now, sides.staged(), &sides.merged)
    }

    /// Checks [`Self::is_as_left`]. If another program has saved the file since, the error makes the command repeat.
    fn check_as_left(&self, path: &Path, stages: &Stages, now: &[u8]) -> Result<(), Error> {
        match self.sides(path, stages)?.is_some_and(|it| self.is_as_left(&it, now)) {
            true => Ok(()),
            false => Err(DiskError::FileChanged { path: self.context.plans.root().join(path) }.into()),
        }
    }

    /// Whether a file is as git or planwatch left it: OURS, a merge by meaning, or the lines of both sides with conflict
    /// markers.
    fn is_untouched(&self, now: &[u8], of: Versions<'_>, merged: &Merged) -> bool {
        let now = with_line_ends_of(of.ours, now);
        // For a file in `_archive/`, the merge driver leaves conflict markers, unlike [`Self::merge`].
        let by_driver = || merge::merge(of, &self.context.config.words, &self.lines).bytes;
        if now == of.ours || now == merged.bytes || now == by_driver() {
            return true;
        }
        let Some(picked) = markers::pick(&now, 7) else { return false };
        let base = of.base.unwrap_or_default();
        let favored = |side| self.lines.favoring(side, base, of.ours, of.theirs);
        favored(Favor::Ours) == Some(picked.ours) && favored(Favor::Theirs) == Some(picked.theirs)
    }

    /// Stages the resolved files with the texts that this command wrote, because an editor may have saved other texts since.
    fn stage(&self, done: &Done, written: Vec<FileOp>) -> Result<(), Error> {
        let mut paths = Vec::new();
        for path in &done.clean {
            let place = self.plans.join(path);
            // This command may have created a file and then merged it into another one. `git add` would fail for such a file.
            let may_be_unknown = done.own.contains(path) && self.context.plans.read(path).is_err();
            if !may_be_unknown || !self.git.index_entries(&[&place])?.is_empty() {
                paths.push(place);
            }
        }
        if paths.is_empty() {
            return Ok(());
        }
        self.git.call(&["add"]).writes_index().paths(paths).run()?;
        let mut texts = texts_after(written);
        let mut overtaken = Vec::new();
        for path in &done.clean {
            let Some(bytes) = texts.remove(path) else { continue };
            if self.context.plans.read(path).ok().map(|it| it.bytes) != bytes {
                overtaken.push(FileVersion { path: self.plans.join(path), bytes });
            }
        }
        if !overtaken.is_empty() {
            self.git.stage_versions(&overtaken)?;
        }
        Ok(())
    }
}

/// The texts of files after these changes; none for a file that was removed. A file whose text the changes do not contain
/// is left out.
fn texts_after(changes: Vec<FileOp>) -> BTreeMap<PathBuf, Option<Vec<u8>>> {
    let mut texts = BTreeMap::new();
    for change in changes {
        match change {
            FileOp::Create { path, bytes } | FileOp::Change { path, after: bytes, .. } => {
                texts.insert(path, Some(bytes));
            }
            FileOp::Discard { path, .. } => {
                texts.insert(path, None);
            }
            FileOp::Rename { from, to } | FileOp::Remove { path: from, to } => {
                if let Some(Some(bytes)) = texts.insert(from, None) {
                    texts.insert(to, Some(bytes));
                }
            }
        }
    }
    texts
}
