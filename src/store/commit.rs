//! Commits the files that planwatch wrote: decides which files these are, and writes the commit message.
//!
//! A file is committed only if planwatch wrote its present content, or if planwatch moved it and it still has the content
//! that it had at the old path. Other changed files are not committed, and the report gives the reasons.

mod message;

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::{Value, json};

use crate::api::context::Context;
use crate::api::error::Error;
use crate::api::requests::Mode;
use crate::api::views::shown_path;
use crate::disk::{self, FileKind, Left, OwnLog};
use crate::git::{FileStatus, FileVersion, Found, Git, LogQuery, Oid, StatusKind};
use crate::plan::id::{PlanId, StepId};
use crate::plan::read;
use crate::plan::time::Time;
use crate::store::idempotency::read_path;
use crate::store::resolve::{self, Target};

/// What was committed, or what a dry run would commit.
#[derive(Debug, Clone, Default, Serialize)]
pub struct CommitReport {
    pub dry_run: bool,
    /// `None` in a dry run, or if there was nothing to commit.
    pub commit: Option<String>,
    /// The name without `refs/heads/`.
    pub branch: Option<String>,
    pub message: Option<String>,
    pub files: Vec<CommittedFile>,
    /// Changed files that are not committed.
    pub left: Vec<LeftFile>,
}

#[derive(Debug, Clone, Serialize)]
pub struct CommittedFile {
    pub path: String,
    /// `added`, `changed` or `removed`.
    pub did: &'static str,
}

#[derive(Debug, Clone, Serialize)]
pub struct LeftFile {
    pub path: String,
    /// `edited`, `staged`, `conflict`, `submodule`, `link`, `unreadable` or `ignored`.
    pub why: &'static str,
}

impl CommitReport {
    pub fn to_json(&self) -> Value {
        json!(self)
    }

    pub fn subject(&self) -> Option<&str> {
        self.message.as_deref().and_then(|it| it.lines().next())
    }
}

/// A changed file of the plans directory.
struct Change {
    /// Relative to the plans directory.
    path: PathBuf,
    /// Relative to the repository's root.
    in_repository: PathBuf,
    head: Option<Oid>,
    /// `None` if it was removed.
    bytes: Option<Vec<u8>>,
}

/// Commits the files that planwatch wrote. If plans and steps are named, commits only their files.
pub(crate) fn commit(
    context: &Context,
    names: &[String],
    message: Option<&str>,
    mode: Mode,
) -> Result<CommitReport, Error> {
    let git = Git::at(context.plans.root())?;
    let branch = git.check_may_commit()?;
    let targets = names.iter().map(|it| resolve::target(context, it)).collect::<Result<Vec<_>, _>>()?;
    let mut log = OwnLog::default();
    log.read(&context.plans);
    let own = Own::of(&log);
    let (mut changes, mut left) = own_changes(context, &git, &targets, &own)?;
    if changes.is_empty() && left.is_empty() {
        left = ignored(context, &git, &targets, &own)?;
    }
    changes.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    let mut report = CommitReport { dry_run: mode == Mode::DryRun, left, ..CommitReport::default() };
    report.branch = Some(branch.strip_prefix("refs/heads/").unwrap_or(&branch).to_owned());
    if changes.is_empty() {
        return if names.is_empty() || report.left.is_empty() { Ok(report) } else { Err(all_left(&report)) };
    }
    let root = context.root_name();
    report.files = changes.iter().map(|it| it.shown(&root)).collect();
    let facts = message::Facts::of(context, &git, &changes)?;
    let text = facts.message(message, context.config.commit_template.as_deref());
    if mode == Mode::Write {
        let files: Vec<_> = changes.into_iter().map(Change::into_version).collect();
        report.commit = git.commit(&files, &text)?.map(|it| it.to_string());
    }
    report.message = Some(text);
    Ok(report)
}

fn all_left(report: &CommitReport) -> Error {
    let named = report.left.first().map(|it| (it.path.as_str(), it.why)).unwrap_or_default();
    let message = format!("nothing was committed: {}", why_left(named.0, named.1));
    Error::conflict("file-changed", message, way_out(named.1))
}

/// What the user can do about a file that is not committed.
fn way_out(why: &str) -> &'static str {
    match why {
        "staged" => "use `git add` and `git commit` to commit the file",
        "conflict" => "resolve the conflict, then try again",
        "submodule" => "commit it in that repository",
        "link" => "use `git add` and `git commit` to commit the link",
        "unreadable" => "make the file readable, then try again",
        "ignored" => "`git check-ignore -v` with this path names the pattern",
        _ => "use `git add` and `git commit` to commit the file with these edits",
    }
}

/// A sentence about a file that is not committed.
pub fn why_left(path: &str, why: &str) -> String {
    let why = match why {
        "staged" => "is partly staged",
        "conflict" => "has a conflict",
        "submodule" => "belongs to another repository",
        "link" => "is a symbolic link",
        "unreadable" => "cannot be read",
        "ignored" => "is ignored by git",
        _ => "has edits that planwatch did not write",
    };
    format!("`{path}` {why}")
}

impl Change {
    fn shown(&self, root: &str) -> CommittedFile {
        let did = match (&self.head, &self.bytes) {
            (None, _) => "added",
            (Some(_), Some(_)) => "changed",
            (Some(_), None) => "removed",
        };
        CommittedFile { path: shown_path(root, &self.path.to_string_lossy()), did }
    }

    fn into_version(self) -> FileVersion {
        FileVersion { path: self.in_repository, bytes: self.bytes }
    }
}

/// Returns the changed files that are to be committed, and the other changed files with the reasons why they are not.
fn own_changes(
    context: &Context,
    git: &Git,
    targets: &[Target],
    own: &Own<'_>,
) -> Result<(Vec<Change>, Vec<LeftFile>), Error> {
    let plans = git.relative(context.plans.root()).unwrap_or_default();
    let (mut changes, mut unknown, mut left) = (Vec::new(), Vec::new(), Vec::new());
    let files = git.status(&[&plans])?;
    // After `git rm --cached` git reports a file twice: as removed from the index, and as untracked.
    let mut seen = BTreeSet::new();
    let unstaged: BTreeSet<_> =
        files.iter().filter(|it| !seen.insert(&it.path)).map(|it| it.path.clone()).collect();
    for file in files {
        let in_repository = PathBuf::from(OsStr::from_bytes(&file.path));
        let Ok(path) = in_repository.strip_prefix(&plans).map(Path::to_path_buf) else { continue };
        if !is_wanted(&path, targets) {
            continue;
        }
        let root = context.root_name();
        let shown = shown_path(&root, &path.to_string_lossy());
        if unstaged.contains(&file.path) {
            if file.kind == StatusKind::Untracked {
                left.push(LeftFile { path: shown, why: "staged" });
            }
            continue;
        }
        match look(context, &file, &path) {
            Err(why) => left.push(LeftFile { path: shown, why }),
            Ok((head, bytes)) => {
                let is_own = own.has(&path, bytes.as_deref());
                let change = Change { path, in_repository, head, bytes };
                if is_own { changes.push(change) } else { unknown.push((change, shown)) }
            }
        }
    }
    // A file that was only moved has the content that `HEAD` has at its old path, or that planwatch wrote there.
    let gone: Vec<_> = changes.iter().filter(|it| it.bytes.is_none()).map(|it| it.path.clone()).collect();
    let moved: BTreeSet<_> =
        changes.iter().filter(|it| it.bytes.is_none()).filter_map(|it| it.head.clone()).collect();
    for (change, shown) in unknown {
        let is_new = change.head.is_none() && !moved.is_empty();
        if is_new && gone.iter().any(|it| own.has(it, change.bytes.as_deref())) {
            changes.push(change);
            continue;
        }
        let bytes = change.bytes.clone().filter(|_| is_new);
        let blob = bytes.map(|it| git.blob_name(&change.in_repository, it)).transpose()?;
        match blob.is_some_and(|it| moved.contains(&it)) {
            true => changes.push(change),
            false => left.push(LeftFile { path: shown, why: "edited" }),
        }
    }
    Ok((changes, left))
}

/// The ignored files and directories that contain something that planwatch wrote.
fn ignored(context: &Context, git: &Git, targets: &[Target], own: &Own<'_>) -> Result<Vec<LeftFile>, Error> {
    let plans = git.relative(context.plans.root()).unwrap_or_default();
    let root = context.root_name();
    let is_wanted = |below: &Path| {
        let mut written = own.left.iter().filter(|(path, hash)| hash.is_some() && path.starts_with(below));
        written.any(|(path, _)| is_wanted(path, targets))
    };
    let shown = |path: PathBuf| {
        let path = path.strip_prefix(&plans).ok().filter(|it| is_wanted(it))?;
        let shown = shown_path(&root, &path.to_string_lossy());
        Some(LeftFile { path: shown.trim_end_matches('/').to_owned(), why: "ignored" })
    };
    Ok(git.ignored(&plans)?.into_iter().filter_map(shown).collect())
}

/// The contents that planwatch wrote, according to its log.
struct Own<'a> {
    /// Each path, with the hash of the content. The hash is `None` if planwatch removed the file or moved it away.
    left: BTreeSet<(&'a Path, Option<&'a str>)>,
}

impl<'a> Own<'a> {
    fn of(log: &'a OwnLog) -> Self {
        let left = log.writes().iter().filter_map(|it| match &it.left {
            Left::Content(hash) => Some((it.path.as_path(), Some(hash.as_str()))),
            Left::Nothing => Some((it.path.as_path(), None)),
            Left::Renamed => None,
        });
        Self { left: left.collect() }
    }

    fn has(&self, path: &Path, bytes: Option<&[u8]>) -> bool {
        match bytes {
            Some(bytes) => self.left.contains(&(path, Some(&read::etag(bytes)[..16]))),
            // A directory may have been moved as a whole.
            None => path.ancestors().any(|it| self.left.contains(&(it, None))),
        }
    }
}

/// Returns the blob of a changed file in `HEAD` and the file's present content, or the reason why it cannot be committed.
fn look(
    context: &Context,
    file: &FileStatus,
    path: &Path,
) -> Result<(Option<Oid>, Option<Vec<u8>>), &'static str> {
    let (head, is_missing) = match &file.kind {
        StatusKind::Conflict => return Err("conflict"),
        StatusKind::Untracked if file.path.ends_with(b"/") => return Err("submodule"),
        StatusKind::Untracked => (None, false),
        StatusKind::Tracked { is_submodule: true, .. } => return Err("submodule"),
        // A staged version that differs from the file belongs to the user.
        StatusKind::Tracked { is_staged: true, is_changed: true, .. } => return Err("staged"),
        StatusKind::Tracked { head, is_missing, .. } => {
            (Some(head.clone()).filter(|it| !it.is_null()), *is_missing)
        }
    };
    let disk = context.plans.disk();
    let full = context.plans.root().join(path);
    if is_missing || disk.lstat(&full).is_err() {
        return Ok((head, None));
    }
    match disk.lstat(&full).map(|it| it.kind) {
        Ok(FileKind::Symlink) => Err("link"),
        _ => disk::read_file(disk, &full).map(|it| (head, Some(it))).map_err(|_| "unreadable"),
    }
}

fn is_wanted(path: &Path, targets: &[Target]) -> bool {
    let of = || read_path(&path.to_string_lossy());
    targets.is_empty()
        || of().is_some_and(|(plan, step)| targets.iter().any(|it| is_of(it, &plan, step.as_ref())))
}

fn is_of(target: &Target, plan: &PlanId, step: Option<&StepId>) -> bool {
    match target {
        Target::Plan(it) => it == plan,
        Target::Step(it) => Some(&it.id) == step,
    }
}

/// The newest commit that changed any of these files since this time. Files with uncommitted changes are ignored. `None` if
/// there is no such commit or no repository, or if git fails.
pub(crate) fn commit_of(context: &Context, paths: &[&Path], since: Time) -> Option<String> {
    context.plans.worktree().filter(|_| !paths.is_empty())?;
    let git = Git::at(context.plans.root()).ok()?;
    let plans = git.relative(context.plans.root())?;
    let mut paths: Vec<_> = paths.iter().map(|it| plans.join(it)).collect();
    let head = git.head_commit().ok()??;
    let changed = git.status(&paths).ok()?;
    paths.retain(|path| !changed.iter().any(|it| Path::new(OsStr::from_bytes(&it.path)).starts_with(path)));
    if paths.is_empty() {
        return None;
    }
    let query = LogQuery { of: vec![head], paths, options: vec!["--max-count=1"], ..LogQuery::default() };
    let newest = git.log(&query).ok()?.all().ok()?;
    // If a file is as in an older commit, a later change took back what the change did.
    let at = |seconds: i64| Time::from_nanoseconds(i128::from(seconds) * 1_000_000_000);
    let newest = newest.first().filter(|it| at(it.committed_at) >= since.whole_seconds());
    newest.map(|it| it.commit.to_string())
}

/// The content of each changed file in `HEAD`.
fn old_versions(git: &Git, changes: &[Change]) -> Result<Vec<Option<Vec<u8>>>, Error> {
    let names: Vec<_> = changes.iter().map(|it| it.head.as_ref().map_or("", Oid::as_str)).collect();
    let mut old = Vec::new();
    git.objects(&names, |_, found: Found| {
        old.push(found.blob());
        Ok(())
    })?;
    Ok(old)
}
