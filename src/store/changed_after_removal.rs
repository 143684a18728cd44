//! Finds steps that were removed, squashed or archived, and whose files changed afterwards.
//!
//! If another branch changed such a step, git merges the change into the step's copy below `_archive` and reports no
//! conflict. The first version of the copy in the history is the version that was removed. If another branch added a step to
//! a plan that was archived or removed, git puts the new file into the plan's new directory.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::api::context::Context;
use crate::api::error::{Error, few};
use crate::git::{Blobs, Git, LogQuery, Oid, UNSHALLOW};
use crate::plan::file_name::{self, FileName, PLAN_FILE};
use crate::plan::id::{PlanId, StepId};
use crate::plan::merge;
use crate::plan::problem::{Code, Problem};
use crate::plan::step_number::StepNumber;
use crate::plan::time::Time;
use crate::store::load;
use crate::store::removed::{self, ARCHIVE};
use crate::text::front_matter;
use crate::text::typed::shell_word;

/// A removed step that was changed after its removal, or a step that was added to an archived or removed plan.
pub(crate) struct Changed {
    pub(crate) id: StepId,
    /// Relative to the plans directory.
    pub(crate) path: PathBuf,
    pub(crate) way: Way,
    /// The version that was removed. `None` if it is not known, or if it has the same lines as the present version.
    pub(crate) before: Option<Vec<u8>>,
    pub(crate) now: Vec<u8>,
    /// The changes since the removal, each in a few words. Empty if the step was added after its plan was archived or
    /// removed.
    changes: Vec<String>,
    /// The commit that made the version that was removed.
    removed_by: Option<Oid>,
    /// For a squashed step, whether the step that replaced it has all of its attempts, notes and confirmations.
    pub(crate) is_carried: bool,
    /// Whether the step's plan is archived now, after the step was removed alone.
    has_archived_plan: bool,
}

/// How a step was removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Way {
    Alone,
    /// Squashed into the live step with this file.
    Squashed(PathBuf),
    /// With its plan, whose files are in this directory.
    WithPlan(PathBuf),
    /// The step was not removed, but its plan was archived.
    Archived,
}

/// What a clone lacks, so that a copy cannot be compared with the version that was removed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Lack {
    /// The commit that removed the step.
    History,
    /// The text of the version that was removed.
    Version,
    /// The copy itself.
    File,
}

/// The result of [`find`].
#[derive(Default)]
pub(crate) struct Search {
    pub(crate) changed: Vec<Changed>,
    /// The copies that could not be compared, each with its path in the plans directory.
    unchecked: BTreeMap<Lack, Vec<(StepId, PathBuf)>>,
    archive: PathBuf,
    /// The plans directory, relative to the repository's root.
    pub(crate) plans: PathBuf,
}

impl Search {
    /// The problems that `check --git` adds.
    pub(crate) fn problems(&self) -> Vec<Problem> {
        self.changed.iter().map(|it| it.problem(&self.plans)).chain(self.unchecked(&|_, _| true)).collect()
    }

    /// A problem for each reason why copies could not be compared. Only the copies that `is_meant` accepts count.
    pub(crate) fn unchecked<'a>(
        &'a self,
        is_meant: &'a dyn Fn(&StepId, &Path) -> bool,
    ) -> impl Iterator<Item = Problem> + 'a {
        self.unchecked.iter().filter_map(move |(lack, copies)| {
            let copies: Vec<_> = copies.iter().filter(|(id, path)| is_meant(id, path)).collect();
            let ids: Vec<_> = copies.iter().map(|(id, _)| format!("`{id}`")).collect();
            let path = copies.first()?.1.to_string_lossy();
            let message = format!("it is not known whether {} changed after the removal", few(&ids, MOST));
            let archive = shell_word(&self.archive.display());
            let (why, hint) = match lack {
                Lack::History => ("the clone is shallow", UNSHALLOW.to_owned()),
                Lack::Version => (
                    "in this partial clone, old versions are missing",
                    format!("`git log -p --all -- {archive}` fetches what is missing"),
                ),
                Lack::File => (
                    "the sparse checkout leaves out the files",
                    format!("`git sparse-checkout add {archive}` adds them"),
                ),
            };
            Some(Problem::of_file(&path, Code::NotChecked, format!("{message}: {why}"), hint))
        })
    }
}

/// Finds the copies that differ from the version that was removed. If no such difference is known, the copy of a removed
/// step is found if it has attempts, notes or confirmations that are later than the removal. [`Changed::unless_carried`]
/// then leaves out some squashed steps. Also finds the steps that were added after their plan was archived or removed.
pub(crate) fn find(context: &Context) -> Result<Search, Error> {
    let (git, head) = Git::with_head(context.plans.root())?;
    let plans = git.relative(context.plans.root()).unwrap_or_default();
    let archive = plans.join(ARCHIVE);
    let inside = |path: &[u8]| {
        let path = Path::new(OsStr::from_bytes(path)).strip_prefix(&plans).ok()?.to_path_buf();
        Some((Copy::of(&path)?, path))
    };
    let entries = git.index_entries(&[&archive])?.into_iter();
    let is_file = |mode: u32| matches!(mode, 0o100_644 | 0o100_755);
    let copies: Vec<_> = entries
        .filter(|it| it.stage == 0 && is_file(it.mode))
        .filter_map(|it| Some((inside(&it.path)?, it.oid)))
        .collect();
    let removed_as = if copies.is_empty() { BTreeMap::new() } else { removed_as(&git, &archive, &inside)? };
    let (mut found, mut absent, blobs) = (Search::default(), Vec::new(), git.blobs());
    let from_merges = from_merges(&git, &archive, &copies, &removed_as, &inside)?;
    for ((copy, path), oid) in copies {
        let first = removed_as.get(&path);
        let before = first.map(|it| &it.oid).filter(|it| **it != oid);
        let is_from_merge = from_merges.contains(&path);
        // In a shallow clone, the oldest commits seem to create all files.
        let is_cut = head.is_shallow && first.is_some_and(|it| it.is_in_root);
        if before.is_none() && copy.removed_at.is_none() && !is_from_merge && !is_cut {
            continue;
        }
        let Ok(now) = context.plans.read(&path).map(|it| it.bytes) else {
            absent.push((copy.id, path));
            continue;
        };
        let text = before.map(|it| blobs.find(it.as_str().as_bytes())).transpose()?.flatten();
        let lacks_text = before.is_some() && text.is_none();
        let before = text.filter(|it| !same_lines(it, &now));
        let changes = changes(before.as_deref(), &now, copy.removed_at);
        let way = copy.way(context, &path, &now, !changes.is_empty());
        let is_new = match way {
            Way::Archived | Way::WithPlan(_) if is_from_merge && changes.is_empty() => {
                is_new(&blobs, &removed_as, &path, &now)?
            }
            _ => Some(false),
        };
        if !changes.is_empty() || is_new == Some(true) {
            let (id, removed_by) = (copy.id, first.map(|it| it.commit.clone()));
            let has_archived_plan = way == Way::Alone
                && load::one_plan(context, &id.plan).ok().flatten().is_some_and(|it| it.is_archived);
            let is_carried = false;
            let changed =
                Changed { id, path, way, before, now, changes, removed_by, is_carried, has_archived_plan };
            found.changed.extend(changed.unless_carried(context));
        } else if lacks_text || is_new.is_none() {
            found.unchecked.entry(Lack::Version).or_default().push((copy.id, path));
        } else if is_cut {
            found.unchecked.entry(Lack::History).or_default().push((copy.id, path));
        }
    }
    if !absent.is_empty() {
        // If a file is gone, the step was restored, unless a sparse checkout leaves the file out.
        let left_out = git.left_out(&archive)?;
        absent.retain(|(_, path)| left_out.contains(plans.join(path).as_os_str().as_bytes()));
    }
    if !absent.is_empty() {
        found.unchecked.insert(Lack::File, absent);
    }
    (found.archive, found.plans) = (archive, plans);
    Ok(found)
}

/// For a path relative to the repository, returns the copy at that path, and the path relative to the plans directory.
/// `None` if the path is not that of a step's copy.
type Inside<'a> = &'a dyn Fn(&[u8]) -> Option<(Copy, PathBuf)>;

/// The first version of a copy.
struct First {
    oid: Oid,
    commit: Oid,
    /// Whether the commit that made it has no parent.
    is_in_root: bool,
}

/// The first version of each copy. If a plan was restored and archived again, its last archiving counts.
fn removed_as(git: &Git, archive: &Path, inside: Inside<'_>) -> Result<BTreeMap<PathBuf, First>, Error> {
    let of: Vec<_> = git.head_commit()?.into_iter().collect();
    let mut first = BTreeMap::new();
    if of.is_empty() {
        return Ok(first);
    }
    let paths = vec![archive.to_path_buf()];
    // By default, if a merge and one of its parents have the same files below `archive`, git follows only that parent. It
    // could then omit the commit that removed a step.
    let options = vec!["--diff-filter=A", "--full-history"];
    for entry in git.log(&LogQuery { of, paths, options, ..LogQuery::default() })?.all()? {
        let is_in_root = entry.parents.is_empty();
        for change in entry.changes {
            let Some((copy, path)) = inside(&change.path) else { continue };
            // The newest entry comes first. The directory of a removal has the time in its name and is created only
            // once, so for its files the oldest entry counts.
            if copy.removed_at.is_some() || !first.contains_key(&path) {
                let commit = entry.commit.clone();
                first.insert(path, First { oid: change.new, commit, is_in_root });
            }
        }
    }
    Ok(first)
}

/// The copies that only merge commits made, in directories of which other copies were made by ordinary commits.
fn from_merges(
    git: &Git,
    archive: &Path,
    copies: &[((Copy, PathBuf), Oid)],
    removed_as: &BTreeMap<PathBuf, First>,
    inside: Inside<'_>,
) -> Result<BTreeSet<PathBuf>, Error> {
    let directories: BTreeSet<_> = removed_as.keys().filter_map(|it| it.parent()).collect();
    let is_added = |it: &&PathBuf| {
        !removed_as.contains_key(*it) && it.parent().is_some_and(|it| directories.contains(it))
    };
    let added: BTreeSet<_> = copies.iter().map(|((_, path), _)| path).filter(is_added).cloned().collect();
    let Some(head) = git.head_commit()?.filter(|_| !added.is_empty()) else { return Ok(BTreeSet::new()) };
    // A copy that is not committed yet was not made by a merge commit.
    let committed = git.tree_entries(&head, &[archive])?.into_iter();
    Ok(committed.filter_map(|it| inside(&it.path)).map(|it| it.1).filter(|it| added.contains(it)).collect())
}

/// Whether no step that was archived or removed together with the plan is this step. If one side of a merge moved a step
/// and the other side archived the plan, the copy with the new number is not a new step. `None` if a partial clone lacks the
/// text of such a step.
fn is_new(
    blobs: &Blobs<'_>,
    removed_as: &BTreeMap<PathBuf, First>,
    path: &Path,
    now: &[u8],
) -> Result<Option<bool>, Error> {
    for (_, first) in removed_as.iter().filter(|it| it.0.parent() == path.parent()) {
        let Some(removed) = blobs.find(first.oid.as_str().as_bytes())? else { return Ok(None) };
        if merge::likeness(&removed, now) > 0 || merge::holds_step(now, &removed) {
            return Ok(Some(false));
        }
    }
    Ok(Some(true))
}

/// A step's file in the archive, identified by its path.
struct Copy {
    id: StepId,
    /// `None` if its plan was archived.
    removed_at: Option<Time>,
}

impl Copy {
    fn of(path: &Path) -> Option<Self> {
        let parts: Vec<_> = path.iter().map(OsStr::to_str).collect::<Option<_>>()?;
        let (plan, name, removed_at) = match parts[..] {
            [ARCHIVE, plan, name] => (plan, name, None),
            [ARCHIVE, plan, directory, name] => (plan, name, Some(removed::time_of(directory)?)),
            _ => return None,
        };
        let FileName::Step(number) = file_name::classify(name) else { return None };
        PlanId::is_plan_name(plan)
            .then(|| Self { id: StepId { plan: PlanId::new(plan), number }, removed_at })
    }

    /// The search for a step that was squashed and then moved reads the whole plan, so it is made only if `is_changed`.
    fn way(&self, context: &Context, path: &Path, now: &[u8], is_changed: bool) -> Way {
        let Some(directory) = path.parent().filter(|_| self.removed_at.is_some()) else {
            return Way::Archived;
        };
        if context.plans.read(&directory.join(PLAN_FILE)).is_ok() {
            return Way::WithPlan(directory.to_path_buf());
        }
        let plan = Path::new(self.id.plan.as_str());
        let moved = || is_changed.then(|| moved_successor(context, plan, path, now))?;
        successor(context, path, now).or_else(moved).map_or(Way::Alone, Way::Squashed)
    }
}

fn changes(before: Option<&[u8]>, now: &[u8], removed_at: Option<Time>) -> Vec<String> {
    let Some(before) = before else {
        return removed_at.map(|it| merge::logs_since(now, it)).unwrap_or_default();
    };
    let mut changes = Vec::new();
    let [was, is] = [before, now].map(|it| merge::status_of(it).unwrap_or_else(|| "pending".to_owned()));
    if was != is {
        changes.push(format!("status `{is}`, was `{was}`"));
    }
    changes.extend(merge::lost(now, before));
    if has_other_text(before, now) {
        changes.push(TEXT.to_owned());
    } else if changes.is_empty() {
        changes.push("the front matter changed".to_owned());
    }
    changes
}

const TEXT: &str = "the text changed";

fn has_other_text(before: &[u8], now: &[u8]) -> bool {
    let [before, now] = [before, now].map(|it| front_matter::split(it).body());
    !same_lines(before, now)
}

/// The largest number of changes that a message names.
const MOST: usize = 3;

impl Changed {
    /// For a squashed step, returns `None` if the step that replaced it has all of the changes, or if the file of that
    /// step cannot be read. Whether that step has a new text or status is not known. But a status that came with an
    /// attempt, a note or a confirmation is not needed if that entry was added.
    fn unless_carried(mut self, context: &Context) -> Option<Self> {
        let Way::Squashed(successor) = &self.way else { return Some(self) };
        let live = context.plans.read(successor).ok()?.bytes;
        self.is_carried = self.carried_into(&live).is_none();
        if self.is_carried {
            let before = self.before.as_deref()?;
            if !merge::lost(&self.now, before).is_empty() {
                self.changes = has_other_text(before, &self.now).then(|| vec![TEXT.to_owned()])?;
            }
        }
        Some(self)
    }

    /// `live` is the file of the step that replaced this step. Returns it with the attempts, notes and confirmations that
    /// this step got after its removal. `None` if `live` already has all of them, or if they cannot be added.
    pub(crate) fn carried_into(&self, live: &[u8]) -> Option<Vec<u8>> {
        merge::with_logs_of(live, &self.now, self.before.as_deref())
    }

    pub(crate) fn problem(&self, plans: &Path) -> Problem {
        let path = self.path.to_string_lossy();
        let (id, changes) = (&self.id, few(&self.changes, MOST));
        let restore = format!("`planwatch git resolve --restore {}`", shell_word(id));
        let (message, hint) = match &self.way {
            Way::Alone => {
                let hint = match self.has_archived_plan {
                    true => format!("first `planwatch restore {}`, then {restore}", shell_word(&id.plan)),
                    false => format!("{restore} restores it"),
                };
                (format!("`{id}` changed after it was removed: {changes}"), hint)
            }
            Way::Squashed(into) => {
                let number = number_of(into).map(|it| it.to_string()).unwrap_or_default();
                let message = format!("`{id}` changed after it was squashed: {changes}");
                let hint = match self.removed_by.as_ref().filter(|_| self.is_carried) {
                    None => format!("{restore} adds its attempts and notes to step {number}"),
                    Some(commit) => {
                        let copy = shell_word(&format!(":/{}", plans.join(&self.path).display()));
                        let of = format!("{} -- {copy}", &commit.as_str()[..12]);
                        format!(
                            "add what `git diff {of}` shows to step {number}, then run `git checkout {of}`"
                        )
                    }
                };
                (message, hint)
            }
            Way::WithPlan(_) | Way::Archived => {
                let closed = if self.way == Way::Archived { "archived" } else { "removed" };
                let message = match changes.is_empty() {
                    true => format!("`{id}` was added after its plan was {closed}"),
                    false => format!("`{id}` changed after its plan was {closed}: {changes}"),
                };
                (message, format!("{restore} restores the plan"))
            }
        };
        Problem::of_file(&path, Code::ChangedAfterRemoval, message, hint)
    }
}

pub(crate) fn number_of(path: &Path) -> Option<StepNumber> {
    match file_name::classify(path.file_name()?.to_str()?) {
        FileName::Step(number) => Some(number),
        _ => None,
    }
}

/// The name of the directory of the plan that a live or archived file belongs to.
pub(crate) fn plan_name(path: &Path) -> Option<&OsStr> {
    let path = path.strip_prefix(ARCHIVE).unwrap_or(path);
    path.iter().next().filter(|_| path.iter().count() > 1)
}

/// The step whose removed or archived file has this path.
pub(crate) fn id_of_copy(path: &Path) -> Option<StepId> {
    Copy::of(path).map(|it| it.id)
}

/// The live step into which `squash` merged a removed step. The earlier version of the live step is in the same
/// directory as the removed file.
pub(crate) fn successor(context: &Context, removed: &Path, text: &[u8]) -> Option<PathBuf> {
    let same_number =
        |plan: &Path, copy: &Path| copy.file_name().map(|it| plan.join(it)).into_iter().collect();
    successor_among(context, removed, text, &same_number)
}

/// Like [`successor`], but also finds a step that has another number now. For that, it reads all steps of the plan.
/// The plan may have another directory now, too.
pub(crate) fn moved_successor(
    context: &Context,
    plan: &Path,
    removed: &Path,
    text: &[u8],
) -> Option<PathBuf> {
    let all = |_: &Path, _: &Path| {
        let names = context.plans.names(plan).into_iter().map(|it| plan.join(it));
        names.filter(|it| number_of(it).is_some()).collect()
    };
    successor_among(context, removed, text, &all)
}

fn successor_among(
    context: &Context,
    removed: &Path,
    text: &[u8],
    candidates: &dyn Fn(&Path, &Path) -> Vec<PathBuf>,
) -> Option<PathBuf> {
    let plans = &context.plans;
    let (directory, plan) = (removed.parent()?, Path::new(plan_name(removed)?));
    let read = |path: &Path| plans.read(path).ok().map(|it| it.bytes);
    plans.names(directory).into_iter().map(|it| directory.join(it)).find_map(|copy| {
        if copy == removed || number_of(&copy).is_none() {
            return None;
        }
        let earlier = read(&copy)?;
        // If the live step was renumbered after the squash, it has another title and another id than its earlier version,
        // but it contains the text of that version.
        let is_version = |it: &[u8]| merge::likeness(&earlier, it) > 0 || merge::holds_step(it, &earlier);
        let is_successor =
            |live: &PathBuf| read(live).is_some_and(|it| is_version(&it) && merge::holds_step(&it, text));
        candidates(plan, &copy).into_iter().find(is_successor)
    })
}

fn same_lines(one: &[u8], other: &[u8]) -> bool {
    let lines = |it: &[u8]| {
        it.split(|it| *it == b'\n')
            .map(|it| it.strip_suffix(b"\r").unwrap_or(it).to_vec())
            .collect::<Vec<_>>()
    };
    one == other || lines(one) == lines(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(path: &str, expected: Option<(&str, Option<&str>)>) {
        let found = Copy::of(Path::new(path));
        let found = found.map(|it| (it.id.to_string(), it.removed_at.map(|it| it.to_string())));
        assert_eq!(found, expected.map(|(id, at)| (id.to_owned(), at.map(str::to_owned))), "{path}");
    }

    #[test]
    fn paths_of_copies_say_their_step_and_when_it_was_removed() {
        check("_archive/auth/step-2.5.md", Some(("auth:2.5", None)));
        let removed = Some(("auth:2", Some("2026-11-21T12:00:00Z")));
        check("_archive/auth/removed-20261121T120000Z/step-2.md", removed);
        check("_archive/auth/removed-20261121T120000Z-2/step-2.md", removed);
        for other in [
            "auth/step-2.md",
            "_archive/auth/plan.md",
            "_archive/step-2.md",
            "_archive/auth/removed-soon/step-2.md",
            "_archive/auth/removed-20261321T120000Z/step-2.md",
            "_archive/auth/removed-2026112äT12000Z/step-2.md",
            "_archive/auth/notes/step-2.md",
            "_archive/auth/removed-20261121T120000Z/more/step-2.md",
        ] {
            check(other, None);
        }
    }
}
