//! Conflicts about the place of a step. The place is the path of the step's file. In these conflicts, one side removed,
//! squashed, moved or archived the step, and the other side changed it, too.
//!
//! The file stays at its new place, and the other side's changes are merged into it. A removal takes
//! precedence over a move. Of two removals the earlier one is kept, so that all clones choose the same. If a side
//! deleted the file without a copy in the archive, the step is kept.
//!
//! Git can also mistake one step for another and merge them without a conflict. Three searches repair the result:
//!
//! | after the merge | repair | by |
//! |---|---|---|
//! | an attempt or note of a side is in none of the step's files | that side's version is merged into the step | `recover` |
//! | a rebase lost an attempt or note of a file that is the same on both sides | it is merged into the step | `recover` |
//! | a step that each side has once is there twice | the two are merged | `reunite`, `wrong` |
//! | a step has another step's status or attempts | it is merged again from both sides | `reunite`, `wrong` |
//! | a step's attempts are in another file, such as its removed copy | they go into the step | `reunite`, `wrong` |
//! | one side removed a step, and it is live | it is merged into its removed copy | `reunite`, `returned` |
//! | no file has a step's text | it is written again, with a free number if needed | `reunite`, `bring_back` |
//! | a cherry-pick added a step that OURS already has | it is merged into the step of OURS | `reunite`, `join_picked` |
//! | a side added a reference to a step that the other side moved | it gets the step's new number | `moves` |
//! | a later commit of a rebase refers to a step that got another number | it gets the new number | `moves` |
//!
//! If a file was edited since the merge, or its versions conflict, `recover` adds only attempts and notes, and `reunite`
//! does nothing. `bring_back` is an exception: if the versions of a missing step conflict, it writes the text of OURS with
//! the attempts and notes of THEIRS. After a rebase, a step of THEIRS is brought back only if a commit that the rebase made
//! contains it. Otherwise a person may have dropped the step's commit. A title that only one side has is not brought
//! back if its step stayed at its path: a person chose the other title.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::renumber::{own_depends, plan_of};
use super::{Done, ResolvedFile, Resolving, Stages, with_line_ends_of};
use crate::api::error::Error;
use crate::disk::FileOp;
use crate::git::{Git, Oid};
use crate::plan::change::set_text;
use crate::plan::file_name::PLAN_FILE;
use crate::plan::id::StepId;
use crate::plan::merge::{self, Versions, markers};
use crate::plan::read::STEP_KEYS;
use crate::plan::steps_list;
use crate::store::changed_after_removal::{self, number_of};
use crate::store::relink;
use crate::store::removed::ARCHIVE;
use crate::store::transaction::{self, Transaction};
use crate::text::typed::shell_word;

mod group;
pub(super) mod moves;
mod plan_names;
pub(super) mod recover;
pub(super) mod rehome;
pub(super) mod reunite;

use group::{Group, Settled};
use plan_names::PlanNames;

/// The files of a commit, relative to the plans directory.
pub(super) type Files = BTreeMap<PathBuf, Oid>;

struct Places<'a> {
    resolving: &'a Resolving<'a>,
    ours: Files,
    theirs: Files,
    /// The files of the commit with which both sides are compared.
    before: Files,
    /// The files without a conflict.
    settled: Files,
    names: PlanNames,
}

/// Resolves conflicts in which at least one side has no version of the file.
pub(super) fn place(
    resolving: &Resolving<'_>,
    writing: &mut Transaction<'_>,
    partial: &[(PathBuf, Stages)],
    done: &mut Done,
) -> Result<(), Error> {
    if partial.is_empty() {
        return Ok(());
    }
    let mut places = Places::read(resolving)?;
    places.settled.extend(done.unpaired.iter().cloned());
    let mut groups = places.groups(partial)?;
    // Removed steps come last. Their attempts go to the steps that replaced them, whose own conflicts must be resolved first.
    groups.sort_by_key(|it| it.target().is_some_and(|it| is_archived(it)));
    places.settle_all(writing, groups, done)
}

pub(super) fn is_archived(path: &Path) -> bool {
    path.starts_with(ARCHIVE)
}

/// Files of a commit below the plans directory.
fn files_of(git: &Git, commit: Option<&Oid>, plans: &Path) -> Result<Files, Error> {
    commit.map_or_else(|| Ok(Files::new()), |it| files_in(git, it, plans, Path::new("")))
}

/// Files of a commit below a directory of the plans directory. The paths are relative to the plans directory.
pub(super) fn files_in(git: &Git, commit: &Oid, plans: &Path, directory: &Path) -> Result<Files, Error> {
    let within = if directory.as_os_str().is_empty() { plans.to_path_buf() } else { plans.join(directory) };
    let entries = git.tree_entries(commit, &[within])?;
    let inside =
        |path: &[u8]| Path::new(OsStr::from_bytes(path)).strip_prefix(plans).ok().map(Path::to_path_buf);
    Ok(entries.into_iter().filter_map(|it| Some((inside(&it.path)?, it.oid))).collect())
}

impl<'a> Places<'a> {
    fn read(resolving: &'a Resolving<'a>) -> Result<Self, Error> {
        let git = resolving.git;
        // While a stash is applied, no commit is merged.
        let (ours, theirs) = match &resolving.merging {
            Some(it) => (Some(it.ours.clone()), Some(it.theirs.clone())),
            None => (git.head_commit()?, None),
        };
        let base = resolving.merging.as_ref().map(|it| it.base.clone());
        let files = |commit: Option<Oid>| files_of(git, commit.as_ref(), &resolving.plans);
        let (ours, theirs, before) = (files(ours)?, files(theirs)?, files(base)?);
        let entries = git.index_entries(&[&resolving.plans])?.into_iter().filter(|it| it.stage == 0);
        let inside = |path: &[u8]| {
            Path::new(OsStr::from_bytes(path)).strip_prefix(&resolving.plans).ok().map(Path::to_path_buf)
        };
        let settled = entries.filter_map(|it| Some((inside(&it.path)?, it.oid))).collect();
        let names = PlanNames::find(resolving, &before, [&ours, &theirs])?;
        Ok(Self { resolving, ours, theirs, before, settled, names })
    }

    fn groups(&self, partial: &[(PathBuf, Stages)]) -> Result<Vec<Group>, Error> {
        let mut left: Vec<&(PathBuf, Stages)> = partial.iter().collect();
        let mut groups = Vec::new();
        while let Some(at) = left.iter().position(|(_, stages)| stages[1].is_some() || stages[2].is_some()) {
            let (path, stages) = left.remove(at);
            let mut group = Group { paths: vec![path.clone()], ..Group::default() };
            let is_ours = stages[1].is_some();
            let Some(oid) = stages[1].as_ref().or(stages[2].as_ref()) else { continue };
            let text = self.version(path, oid, is_ours)?;
            if let Some(base) = &stages[0] {
                group.base = Some(self.resolving.blob(base)?);
            } else if let Some(at) =
                self.alike(&left, &text, |it| it[0].as_ref().filter(|_| it[1..] == [None, None]))?
            {
                let (path, stages) = left.remove(at);
                group.base = stages[0].as_ref().map(|it| self.resolving.blob(it)).transpose()?;
                group.paths.push(path.clone());
            }
            // Git's rename detection may pair different steps that look alike.
            group.base = group.base.filter(|it| merge::likeness(it, &text) > 0);
            let common = group.base.clone().unwrap_or_else(|| text.clone());
            let nth = if is_ours { 2 } else { 1 };
            let other =
                match self.alike(&left, &common, |it| it[nth].as_ref().filter(|_| it[3 - nth].is_none()))? {
                    Some(at) => {
                        let (path, stages) = left.remove(at);
                        group.paths.push(path.clone());
                        let oid = stages[nth].as_ref();
                        oid.map(|it| Ok::<_, Error>((path.clone(), self.version(path, it, !is_ours)?)))
                            .transpose()?
                    }
                    None => self.elsewhere(path, [&common, &text], is_ours)?,
                };
            let own = Some((path.clone(), text));
            (group.ours, group.theirs) = if is_ours { (own, other) } else { (other, own) };
            groups.push(group);
        }
        let gone = left.into_iter().map(|(path, _)| Group { paths: vec![path.clone()], ..Group::default() });
        groups.extend(gone);
        Ok(groups)
    }

    /// A side's own version of a file. If both sides renamed it, git stages a merged text instead.
    fn version(&self, path: &Path, staged: &Oid, is_ours: bool) -> Result<Vec<u8>, Error> {
        let files = if is_ours { &self.ours } else { &self.theirs };
        if let Some(oid) = files.get(path) {
            return self.resolving.blob(oid);
        }
        let text = self.resolving.blob(staged)?;
        let picked = markers::SIZES.into_iter().find_map(|size| markers::pick(&text, size));
        Ok(picked.map_or(text, |it| if is_ours { it.ours } else { it.theirs }))
    }

    /// The index of the file that is most similar to a text, among those for which `pick` returns a version.
    fn alike<'p>(
        &self,
        among: &[&'p (PathBuf, Stages)],
        text: &[u8],
        pick: impl Fn(&'p Stages) -> Option<&'p Oid>,
    ) -> Result<Option<usize>, Error> {
        let mut best = (0, None);
        for (at, (path, stages)) in among.iter().enumerate() {
            let Some(oid) = pick(stages) else { continue };
            let found = if stages[0].as_ref() == Some(oid) {
                self.resolving.blob(oid)?
            } else {
                self.version(path, oid, stages[1].as_ref() == Some(oid))?
            };
            let likeness = merge::likeness(text, &found);
            if likeness > best.0 {
                best = (likeness, Some(at));
            }
        }
        Ok(best.1)
    }

    /// Finds the file of a step on the side that has no file at `path`: a live file, else the most similar removed copy.
    ///
    /// A step that was squashed several times has a copy from each squash. The copies are therefore compared with two
    /// versions: `common`, and `text`, which is the version of the side that has `path`.
    fn elsewhere(
        &self,
        path: &Path,
        [common, text]: [&[u8]; 2],
        is_ours: bool,
    ) -> Result<Option<(PathBuf, Vec<u8>)>, Error> {
        // A candidate comes from the other side. If OURS has `path`, a candidate is a file that OURS lacks; if THEIRS has
        // `path`, it is a file of OURS.
        let is_of_other =
            |it: &Path| if is_ours { !self.ours.contains_key(it) } else { self.ours.contains_key(it) };
        let (other, own) = if is_ours { (&self.theirs, &self.ours) } else { (&self.ours, &self.theirs) };
        let is_alike = |files: &Files, it: &Path| {
            let text = files.get(it).and_then(|oid| self.resolving.blob(oid).ok());
            text.is_some_and(|it| merge::likeness(common, &it) > 0)
        };
        // If both sides have the step at one place, git has merged it there, and the file at `path` is a copy.
        let is_wanted = |it: &Path| is_of_other(it) && !(is_alike(other, it) && is_alike(own, it));
        self.most_alike(path, [common, text], &is_wanted)
    }

    /// Of the plan's files without a conflict, finds the one that is most similar to two versions of a step. Live files come
    /// first. The file must be similar to the first version.
    fn most_alike(
        &self,
        path: &Path,
        [common, changed]: [&[u8]; 2],
        is_wanted: &dyn Fn(&Path) -> bool,
    ) -> Result<Option<(PathBuf, Vec<u8>)>, Error> {
        let is_candidate =
            |it: &Path| number_of(it).is_some() && self.names.of(it) == self.names.of(path) && is_wanted(it);
        let candidates: Vec<_> = self.settled.iter().filter(|(it, _)| is_candidate(it)).collect();
        let names: Vec<_> = candidates.iter().map(|(_, oid)| oid.as_str()).collect();
        let mut found = Vec::new();
        self.resolving.git.objects(&names, |at, object| {
            if let Some(text) = object.blob() {
                let likeness = merge::likeness(common, &text);
                if likeness > 0 {
                    let likeness = likeness + merge::likeness(changed, &text);
                    found.push((!is_archived(candidates[at].0), likeness, candidates[at].0.clone(), text));
                }
            }
            Ok(())
        })?;
        let best = found.into_iter().max_by(|a, b| (a.0, a.1, &a.2).cmp(&(b.0, b.1, &b.2)));
        Ok(best.map(|(_, _, path, text)| (path, text)))
    }

    /// First writes all steps to their places. When these texts are final, changes the other files that the steps concern.
    fn settle_all(
        &self,
        writing: &mut Transaction<'_>,
        groups: Vec<Group>,
        done: &mut Done,
    ) -> Result<(), Error> {
        let mut settled = Vec::new();
        for group in groups {
            self.settle(writing, group, done, &mut settled)?;
        }
        settled.into_iter().try_for_each(|it| self.finish(writing, it, done))
    }

    /// Writes the step to its place, and removes its other files.
    fn settle(
        &self,
        writing: &mut Transaction<'_>,
        group: Group,
        done: &mut Done,
        settled: &mut Vec<Settled>,
    ) -> Result<(), Error> {
        let Some(target) = group.target() else {
            done.clean.extend(group.paths.iter().cloned());
            self.report(done, &group, "resolved", &[], None);
            return Ok(());
        };
        let (merged, decided) = match (&group.ours, &group.theirs) {
            (Some((_, ours)), Some((_, theirs))) => {
                let named = format!("plans/{}", target.to_string_lossy());
                let base = group.base.as_deref();
                let of = Versions { path: &named, base, ours, theirs };
                let merged = self.resolving.merge(of);
                if !merged.is_clean {
                    let Some(apart) = self.apart(&group, target) else {
                        self.report(done, &group, "removed", &[], None);
                        return Ok(());
                    };
                    return apart.into_iter().try_for_each(|it| self.settle(writing, it, done, settled));
                }
                (named_by(target, merged.bytes)?, merged.decided)
            }
            (one, other) => {
                let text = one.as_ref().or(other.as_ref()).map(|(_, text)| text.clone()).unwrap_or_default();
                // If neither side has the path, git has moved the file into the new directory of the plan.
                let is_new = !self.ours.contains_key(target) && !self.theirs.contains_key(target);
                let decided = match changed_after_removal::id_of_copy(target)
                    .filter(|_| is_new && group.base.is_none())
                {
                    Some(id) => format!(
                        "a new step of a plan that the other side archived or removed; \
                        after the commit, `planwatch git resolve --restore {}` restores the plan",
                        shell_word(&id)
                    ),
                    None => "kept".to_owned(),
                };
                (if is_new { named_by(target, text)? } else { text }, vec![decided])
            }
        };
        let lost = self.lost(&group, target);
        let Some(ops) = self.ops(target, &lost, &merged, &done.own)? else {
            self.report(done, &group, "edited", &[], None);
            return Ok(());
        };
        let emptied =
            lost.iter().filter(|it| is_archived(it)).filter_map(|it| Some(it.parent()?.to_path_buf()));
        writing.batch_emptying("git resolve", ops, emptied.collect())?;
        // If the command is repeated, `done.own` shows that this text is the command's own and not an edit.
        done.own.push(target.clone());
        settled.push(Settled { target: target.clone(), group, lost, merged, decided });
        Ok(())
    }

    /// Changes the other files that a step concerns: those that depend on it, and the step that replaced it.
    fn finish(&self, writing: &mut Transaction<'_>, it: Settled, done: &mut Done) -> Result<(), Error> {
        let Settled { group, target, lost, merged, decided } = it;
        for path in lost.iter().filter(|it| !is_archived(it)) {
            done.clean.extend(self.follow(writing, path, &target, &merged)?);
        }
        if is_archived(&target) {
            done.clean.extend(self.carry(writing, &target, &merged)?);
        }
        // This comes last, because a repeated command skips clean files.
        done.clean.extend(group.paths.iter().cloned().chain(lost).chain([target.clone()]));
        self.report(done, &group, "resolved", &decided, Some(&target));
        Ok(())
    }

    /// Separates a live step and its removed copy if their texts do not merge. Each keeps its text at its place, and the
    /// step gets the merged front matter of both. None if the sides are not a live step at `target` and its copy, or if the
    /// front matters do not merge.
    fn apart(&self, group: &Group, target: &Path) -> Option<[Group; 2]> {
        let sides = [group.ours.as_ref()?, group.theirs.as_ref()?];
        let live = sides.into_iter().find(|it| it.0 == target && !is_archived(target))?;
        let copy = sides.into_iter().find(|it| is_archived(&it.0))?;
        let with_text = |it: &[u8]| merge::with_body_of(it, &live.1);
        let named = format!("plans/{}", target.to_string_lossy());
        let [ours, theirs] = sides.map(|it| with_text(&it.1));
        let base = group.base.as_deref().map(with_text);
        let merged = self.resolving.merge(Versions {
            path: &named,
            base: base.as_deref(),
            ours: &ours,
            theirs: &theirs,
        });
        let text = named_by(target, merged.bytes).ok().filter(|_| merged.is_clean)?;
        let (copies, paths) = group.paths.iter().cloned().partition(|it| *it == copy.0);
        let step = Group { paths, ours: Some((target.to_path_buf(), text)), ..Group::default() };
        Some([step, Group { paths: copies, ours: Some(copy.clone()), ..Group::default() }])
    }

    /// The other places of the step, whose files are removed.
    fn lost(&self, group: &Group, target: &Path) -> Vec<PathBuf> {
        let sides = group.ours.iter().chain(&group.theirs).map(|(path, _)| path);
        let mut lost: Vec<_> = sides.chain(&group.paths).filter(|it| *it != target).cloned().collect();
        lost.sort_unstable();
        lost.dedup();
        lost
    }

    /// The operations that write the step and remove its other files. None if a file was edited since the merge.
    fn ops(
        &self,
        target: &Path,
        lost: &[PathBuf],
        merged: &[u8],
        own: &[PathBuf],
    ) -> Result<Option<Vec<FileOp>>, Error> {
        let plans = &self.resolving.context.plans;
        let read = |path: &Path| plans.read(path).ok().map(|it| it.bytes);
        let mut ops = Vec::new();
        match read(target) {
            Some(now) if !self.is_untouched(target, &now, own)? && !same_lines(&now, merged) => {
                return Ok(None);
            }
            Some(before) => {
                let after = with_line_ends_of(&before, merged);
                let change = FileOp::Change {
                    path: target.to_path_buf(),
                    before: before.clone(),
                    after: after.clone(),
                };
                ops.extend((before != after).then_some(change));
            }
            None => ops.push(FileOp::Create { path: target.to_path_buf(), bytes: merged.to_vec() }),
        }
        for path in lost {
            let Some(before) = read(path) else { continue };
            if !self.is_untouched(path, &before, own)? {
                return Ok(None);
            }
            ops.push(FileOp::Discard { path: path.clone(), before });
        }
        Ok(Some(ops))
    }

    /// Whether a file is as git or this command left it.
    fn is_untouched(&self, path: &Path, now: &[u8], own: &[PathBuf]) -> Result<bool, Error> {
        if own.iter().any(|it| it == path) {
            return Ok(true);
        }
        let entries = self.resolving.git.index_entries(&[self.resolving.plans.join(path)])?;
        for entry in entries {
            if same_lines(now, &self.resolving.blob(&entry.oid)?) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Replaces dependencies on a step's old number: by the new number or, if the step was removed, by the dependencies of
    /// the removed step. Also updates the step's line in the Steps list.
    fn follow(
        &self,
        writing: &mut Transaction<'_>,
        lost: &Path,
        target: &Path,
        merged: &[u8],
    ) -> Result<Vec<PathBuf>, Error> {
        let kept = self.names.kept(lost);
        let (Some(directory), Some(number)) = (kept.parent(), number_of(lost)) else { return Ok(Vec::new()) };
        let plans = &self.resolving.context.plans;
        let plan = plan_of(directory);
        if *target == kept || plans.read(lost).is_ok() && !writing.is_dry_run() {
            return Ok(Vec::new());
        }
        let old = StepId { plan: plan.clone(), number: number.clone() };
        let new = number_of(target).filter(|_| target.parent() == Some(directory));
        let heirs: Vec<StepId> = match &new {
            Some(new) => vec![StepId { plan: plan.clone(), number: new.clone() }],
            None => {
                let numbers = own_depends(&plan, merged).into_iter().flatten();
                numbers.map(|number| StepId { plan: plan.clone(), number }).filter(|it| *it != old).collect()
            }
        };
        let (mut ops, mut changed) = (Vec::new(), Vec::new());
        for name in plans.names(directory) {
            let path = directory.join(&name);
            let Ok(before) = plans.read(&path).map(|it| it.bytes) else { continue };
            let after = if name == PLAN_FILE {
                match &new {
                    Some(new) => steps_list::with_moved(&plan, &before, &number, new),
                    None => steps_list::without_line(&plan, &before, &number).0,
                }
            } else {
                let Some(own) = number_of(&path).map(|number| StepId { plan: plan.clone(), number }) else {
                    continue;
                };
                let changes = relink::changes(&before, &own, &old, &heirs);
                let edited = transaction::edit(&path.to_string_lossy(), &before, &changes, STEP_KEYS);
                edited.unwrap_or_else(|_| before.clone())
            };
            if after != before {
                changed.push(path.clone());
                ops.push(FileOp::Change { path, before, after });
            }
        }
        if !ops.is_empty() {
            writing.batch("git resolve", ops)?;
        }
        // A changed file that git could not merge is still in conflict, so it is not staged.
        let is_settled = |it: &PathBuf| self.settled.contains_key(it);
        Ok(changed.into_iter().filter(is_settled).collect())
    }

    /// Adds the new attempts and notes of a squashed step to the step that replaced it.
    fn carry(
        &self,
        writing: &mut Transaction<'_>,
        removed: &Path,
        merged: &[u8],
    ) -> Result<Option<PathBuf>, Error> {
        let context = self.resolving.context;
        let successor = changed_after_removal::successor(context, removed, merged).or_else(|| {
            let plan = Path::new(self.names.of(removed)?);
            changed_after_removal::moved_successor(context, plan, removed, merged)
        });
        let Some(successor) = successor else { return Ok(None) };
        let plans = &self.resolving.context.plans;
        let before = plans.read(&successor)?.bytes;
        let Some(after) = merge::with_logs_of(&before, merged, None) else { return Ok(None) };
        writing.batch("git resolve", vec![FileOp::Change { path: successor.clone(), before, after }])?;
        Ok(Some(successor).filter(|it| self.settled.contains_key(it)))
    }

    fn report(
        &self,
        done: &mut Done,
        group: &Group,
        state: &'static str,
        decided: &[String],
        target: Option<&Path>,
    ) {
        for path in &group.paths {
            let shown = self.resolving.shown(path);
            let mut decided = decided.to_vec();
            if let Some(target) = target.filter(|it| *it != path) {
                decided.insert(0, format!("now {}", self.resolving.shown(target)));
            }
            done.report(ResolvedFile { path: shown, state, decided, renumbered: None });
        }
    }
}

/// Sets the id of a live or archived step to the one that its path gives. A removed step keeps its id.
pub(super) fn named_by(path: &Path, file: Vec<u8>) -> Result<Vec<u8>, Error> {
    let (Some(directory), Some(number)) = (path.parent(), number_of(path)) else { return Ok(file) };
    let is_removed = is_archived(path) && path.iter().count() > 3;
    if is_removed || !relink::has_key(&file, "id") {
        return Ok(file);
    }
    let id = StepId { plan: plan_of(directory), number };
    transaction::edit(&path.to_string_lossy(), &file, &[set_text("id", &id.to_string())], STEP_KEYS)
}

/// A version of a step with the id of the other version, if both versions have an id.
fn with_id_of(other: &[u8], file: Vec<u8>) -> Result<Vec<u8>, Error> {
    match merge::id_of(other).filter(|id| merge::id_of(&file).is_some_and(|it| it != *id)) {
        Some(id) => transaction::edit("", &file, &[set_text("id", &id)], STEP_KEYS),
        None => Ok(file),
    }
}

fn same_lines(one: &[u8], other: &[u8]) -> bool {
    one == other || with_line_ends_of(other, one) == other
}
