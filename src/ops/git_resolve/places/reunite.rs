//! Steps that are wrong after a merge although their files have no conflict.
//!
//! Git detects renames by the similarity of the lines, and short steps look alike. A step that both sides moved can
//! therefore appear twice, contain another step's changes, or be missing because its text was merged into a removed step. A
//! step is repaired only if each side has it at most once.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::{Done, Files, Group, Places, is_archived, named_by, with_id_of};
use crate::api::error::Error;
use crate::disk::FileOp;
use crate::ops::git_resolve::{ResolvedFile, Resolving, renumber};
use crate::plan::file_name;
use crate::plan::merge::{self, Identity, Versions, markers};
use crate::store::changed_after_removal::number_of;
use crate::store::transaction::Transaction;

/// The live steps of a plan, by identity. Steps that one command created with the same title have the same identity.
type Steps = BTreeMap<Identity, Vec<(PathBuf, Vec<u8>)>>;

/// The step, if exactly one has this identity.
pub(super) fn single<'s>(steps: &'s Steps, identity: &Identity) -> Option<&'s (PathBuf, Vec<u8>)> {
    match steps.get(identity)?.as_slice() {
        [one] => Some(one),
        _ => None,
    }
}

/// Repairs the steps that are wrong after a merge. A file that was edited since the merge is left alone.
pub(in crate::ops::git_resolve) fn reunite(
    resolving: &Resolving<'_>,
    writing: &mut Transaction<'_>,
    done: &mut Done,
) -> Result<(), Error> {
    let Some(merging) = &resolving.merging else { return Ok(()) };
    let places = Places::read(resolving)?;
    for directory in places.changed_by_both() {
        let [known, ours, theirs] = [&places.before, &places.ours, &places.theirs];
        let known = places.committed(known, directory)?;
        let (ours, theirs) = (places.committed(ours, directory)?, places.committed(theirs, directory)?);
        for (identity, now) in places.in_working_tree(directory) {
            let known = single(&known, &identity);
            match (single(&ours, &identity), single(&theirs, &identity)) {
                (Some(own), Some(other)) => {
                    let is_mixed = is_mixed(&now, [own, other], [&ours, &theirs]);
                    if let Some(group) = places.wrong(known, own, other, &now, is_mixed)? {
                        places.settle_again(writing, group, &now, done)?;
                    }
                }
                // One side has removed the step. A rebase may have added it again, even under two numbers.
                (Some(_), None) | (None, Some(_))
                    if ours.contains_key(&identity) != theirs.contains_key(&identity) =>
                {
                    for step in &now {
                        if let Some(group) = places.returned(&identity, step, ours.contains_key(&identity)) {
                            places.settle_again(writing, group, std::slice::from_ref(step), done)?;
                        }
                    }
                }
                _ => {}
            }
        }
        places.bring_all_back(writing, directory, [&known, &ours, &theirs], done)?;
    }
    if merging.is_picked { places.join_picked(writing, done) } else { Ok(()) }
}

/// Whether git merged attempts or notes of another step into a step's file.
fn is_mixed(now: &[(PathBuf, Vec<u8>)], versions: [&(PathBuf, Vec<u8>); 2], sides: [&Steps; 2]) -> bool {
    let [(_, text)] = now else { return false };
    let of_step = versions.map(|it| it.1.clone());
    // A person may have squashed other steps into this one.
    if !merge::missing_logs(text, &of_step) || merge::holds_more_steps(text, &versions[0].1) {
        return false;
    }
    let all: Vec<_> = sides.into_iter().flat_map(BTreeMap::values).flatten().map(|it| it.1.clone()).collect();
    !merge::missing_logs(text, &all)
}

/// Whether a version is not a new step, but a version with a new title of a step that has one path in the base, on both sides
/// and now. `all` are the steps of these four. Git merges such a file at its path, so if a title is missing, a person chose
/// another one. If `squash` added other steps to the version, they may be missing, so the result is false.
fn is_retitled(path: &Path, version: &[u8], all: [&Steps; 4]) -> bool {
    let at_path = |of: &Steps| {
        let found = of.iter().find(|(_, all)| all.iter().any(|it| it.0 == path));
        found.map(|(identity, _)| identity.clone())
    };
    let [known, ..] = all;
    let Some(identity) = at_path(known) else { return false };
    let Some((_, before)) = single(known, &identity) else { return false };
    // A step with the title that another step had may be that step.
    let is_version = |of: &Steps| {
        let is_moved = of.get(&identity).is_some_and(|it| it.iter().any(|it| it.0 != path));
        !is_moved
            && at_path(of).is_some_and(|now| {
                let is_other = now != identity && known.contains_key(&now);
                !is_other && now.is_made_with(&identity)
            })
    };
    all.into_iter().all(is_version) && !merge::holds_more_steps(version, before)
}

/// The path that a step gets: the one to which a side moved it. If both sides moved it, OURS wins.
fn place_of<'p>(
    known: Option<&(PathBuf, Vec<u8>)>,
    own: &'p (PathBuf, Vec<u8>),
    other: &'p (PathBuf, Vec<u8>),
) -> &'p PathBuf {
    let is_moved_by_them = known.is_some_and(|it| it.0 == own.0);
    if is_moved_by_them { &other.0 } else { &own.0 }
}

impl Places<'_> {
    /// A cherry-pick may have added steps that OURS already has under other numbers. Merges these into the steps of OURS.
    fn join_picked(&self, writing: &mut Transaction<'_>, done: &mut Done) -> Result<(), Error> {
        let is_new =
            |it: &&PathBuf| !self.ours.contains_key(*it) && !is_archived(it) && number_of(it).is_some();
        for directory in
            self.theirs.keys().filter(is_new).filter_map(|it| it.parent()).collect::<BTreeSet<_>>()
        {
            let ours = self.committed(&self.ours, directory)?;
            for (identity, now) in self.in_working_tree(directory) {
                let (Some(own), [_, _]) = (single(&ours, &identity), now.as_slice()) else { continue };
                let Some(picked) = now.iter().find(|it| it.0 != own.0) else { continue };
                if let Some(group) = self.wrong(None, own, picked, &now, false)? {
                    self.settle_again(writing, group, &now, done)?;
                }
            }
        }
        Ok(())
    }

    /// Merges a group again if that gives no conflict and its files were not edited since the merge. If a step is there twice
    /// and the two files do not merge, only reports both files.
    fn settle_again(
        &self,
        writing: &mut Transaction<'_>,
        group: Group,
        now: &[(PathBuf, Vec<u8>)],
        done: &mut Done,
    ) -> Result<(), Error> {
        if !self.merges(&group) {
            if now.len() > 1 {
                self.report(done, &group, "removed", &[], None);
            }
            return Ok(());
        }
        if !self.are_untouched(now, &done.own)? {
            return Ok(());
        }
        let shown: Vec<_> = group.paths.iter().map(|it| self.resolving.shown(it)).collect();
        // Earlier decisions about these files no longer hold.
        done.files.retain(|it| !shown.contains(&it.path));
        self.settle_all(writing, vec![group], done)
    }

    /// The step as a group to merge again, if it is wrong in the working tree. It is wrong in four cases: it is there
    /// twice, its status is that of neither side, it has attempts or notes of another step (`is_mixed`), or git put one of
    /// its own into another file, such as its removed copy.
    fn wrong(
        &self,
        known: Option<&(PathBuf, Vec<u8>)>,
        own: &(PathBuf, Vec<u8>),
        other: &(PathBuf, Vec<u8>),
        now: &[(PathBuf, Vec<u8>)],
        is_mixed: bool,
    ) -> Result<Option<Group>, Error> {
        let wanted = place_of(known, own, other);
        let target = now.iter().find(|it| it.0 == *wanted).or(now.first());
        let Some((target, text)) = target else { return Ok(None) };
        let lost = now.iter().find(|it| it.0 != *target);
        let statuses = [own, other].map(|it| merge::status_of(&it.1));
        let (base, ours, theirs) = if let Some((_, twin)) = lost {
            // A version that a rebase added again can be older than the base, so the base is used only if the
            // two texts are those of the sides.
            let are_sides = [(&own.1, &other.1), (&other.1, &own.1)].contains(&(text, twin));
            (known.filter(|_| are_sides), text, twin)
        } else if is_mixed || !statuses.contains(&merge::status_of(text)) {
            // Git mixed it with another step.
            (known, &own.1, &other.1)
        } else if self.went_elsewhere(own, text)? {
            (known, text, &own.1)
        } else if self.went_elsewhere(other, text)? {
            (known, text, &other.1)
        } else {
            return Ok(None);
        };
        let lost = lost.map_or(target, |it| &it.0).clone();
        Ok(Some(Group {
            base: base.map(|it| it.1.clone()),
            ours: Some((target.clone(), ours.clone())),
            theirs: Some((lost, theirs.clone())),
            paths: now.iter().map(|(path, _)| path.clone()).collect(),
        }))
    }

    /// Whether the step's file lacks attempts or notes of a side's version, and other files have them.
    fn went_elsewhere(&self, (path, version): &(PathBuf, Vec<u8>), now: &[u8]) -> Result<bool, Error> {
        if !merge::missing_logs(version, &[now.to_vec()]) {
            return Ok(false);
        }
        let homes = self.homes(path, version)?.into_iter();
        let texts: Vec<_> =
            homes.filter_map(|it| Some(self.resolving.context.plans.read(&it).ok()?.bytes)).collect();
        Ok(!merge::missing_logs(version, &texts))
    }

    /// A live step and its removed copy as a group to merge again, if one side has the live step and the other side only
    /// the copy. The removal takes precedence. Git reports no conflict if both sides added the step, as after a
    /// cherry-pick, or if a rebase adds it once more.
    fn returned(
        &self,
        identity: &Identity,
        step: &(PathBuf, Vec<u8>),
        is_live_in_ours: bool,
    ) -> Option<Group> {
        let (live, removed) =
            if is_live_in_ours { (&self.ours, &self.theirs) } else { (&self.theirs, &self.ours) };
        let is_copy = |it: &&PathBuf| {
            is_archived(it) && self.names.of(it) == self.names.of(&step.0) && !live.contains_key(*it)
        };
        let copies = self.settled.keys().filter(|it| removed.contains_key(*it)).filter(is_copy);
        let read = |it: &PathBuf| Some((it.clone(), self.resolving.context.plans.read(it).ok()?.bytes));
        let mut copies = copies.filter(|it| number_of(it).is_some()).filter_map(read);
        let copy = copies.find(|it| merge::identity(&it.1).as_ref() == Some(identity))?;
        // The ids differ if the step was moved on one side.
        let step = (step.0.clone(), with_id_of(&copy.1, step.1.clone()).ok()?);
        let path = step.0.clone();
        let (ours, theirs) = if is_live_in_ours { (step, copy) } else { (copy, step) };
        // A version that a rebase added again can be older than the base, so no base is used.
        Some(Group { paths: vec![path], base: None, ours: Some(ours), theirs: Some(theirs) })
    }

    /// The place and the text of a step that both sides have. If their texts do not merge, the result is the text of OURS
    /// with the attempts and notes of THEIRS.
    fn of_both<'p>(
        &self,
        known: Option<&(PathBuf, Vec<u8>)>,
        own: &'p (PathBuf, Vec<u8>),
        other: &'p (PathBuf, Vec<u8>),
    ) -> (&'p PathBuf, Vec<u8>) {
        let path = place_of(known, own, other);
        let named = format!("plans/{}", path.to_string_lossy());
        let base = known.map(|it| it.1.as_slice());
        let merged = self.resolving.merge(Versions { path: &named, base, ours: &own.1, theirs: &other.1 });
        let text = match merged.is_clean {
            true => merged.bytes,
            false => merge::with_logs_of(&own.1, &other.1, None).unwrap_or_else(|| own.1.clone()),
        };
        (path, text)
    }

    /// The directories of the plans in which both sides changed, moved, removed or added steps.
    fn changed_by_both(&self) -> BTreeSet<&Path> {
        let before = &self.before;
        let changed = |files: &'_ Files, of: &Files| -> BTreeSet<PathBuf> {
            let new = files.iter().filter(|(path, oid)| of.get(*path) != Some(oid)).map(|(path, _)| path);
            let gone = of.keys().filter(|it| !files.contains_key(*it));
            let steps = new.chain(gone).filter(|it| number_of(it).is_some());
            steps.filter_map(|it| self.names.of(it).map(PathBuf::from)).collect()
        };
        let (ours, theirs) = (changed(&self.ours, before), changed(&self.theirs, before));
        let all = self.settled.keys().filter_map(|it| it.parent());
        all.filter(|it| ours.contains(*it) && theirs.contains(*it)).collect()
    }

    pub(super) fn committed(&self, files: &Files, directory: &Path) -> Result<Steps, Error> {
        let mut steps = Steps::new();
        let is_own = |path: &Path| {
            self.names.kept(path).parent() == Some(directory)
                && number_of(path).is_some()
                && path.iter().count() == 2
        };
        for (path, oid) in files.iter().filter(|it| is_own(it.0)) {
            let text = self.resolving.blob(oid)?;
            if let Some(identity) = merge::identity(&text) {
                steps.entry(identity).or_default().push((path.clone(), text));
            }
        }
        Ok(steps)
    }

    pub(super) fn in_working_tree(&self, directory: &Path) -> Steps {
        let plans = &self.resolving.context.plans;
        let mut steps = Steps::new();
        let in_directory =
            |it: &Path| plans.names(it).into_iter().map(|name| it.join(name)).collect::<Vec<_>>();
        for path in self.names.directories(directory).flat_map(in_directory) {
            let Some(text) = number_of(&path).and_then(|_| plans.read(&path).ok()) else { continue };
            if let Some(identity) = merge::identity(&text.bytes) {
                steps.entry(identity).or_default().push((path, text.bytes));
            }
        }
        steps
    }

    /// Whether a live or removed step of the plan is this step, or contains its text or title. A live file with conflict
    /// markers counts, too.
    fn is_held(&self, directory: &Path, step: &[u8]) -> bool {
        let plans = &self.resolving.context.plans;
        let live = plans.names(directory).into_iter().map(|it| directory.join(it));
        // A file that this command has just resolved is not in `settled` yet.
        let all = self.ours.keys().chain(self.theirs.keys()).chain(self.settled.keys());
        let removed = all.filter(|it| is_archived(it) && self.names.of(it) == directory.file_name());
        let identity = merge::identity(step);
        live.chain(removed.cloned()).filter(|it| number_of(it).is_some()).any(|path| {
            let is_conflict = |it: &[u8]| !is_archived(&path) && markers::pick(it, 7).is_some();
            let holds = |it: &[u8]| merge::identity(it) == identity || merge::holds_step(it, step);
            plans.read(&path).is_ok_and(|it| holds(&it.bytes) || is_conflict(&it.bytes))
        })
    }

    /// Brings back the steps whose text git dropped.
    fn bring_all_back(
        &self,
        writing: &mut Transaction<'_>,
        directory: &Path,
        [known, ours, theirs]: [&Steps; 3],
        done: &mut Done,
    ) -> Result<(), Error> {
        let now = self.in_working_tree(directory);
        // A step that both sides have was removed by neither of them.
        for identity in ours.keys().filter(|it| !now.contains_key(*it)) {
            let sides = (single(ours, identity), single(theirs, identity));
            let (Some(own), Some(other)) = sides else { continue };
            if !self.is_held(directory, &own.1) && !self.is_held(directory, &other.1) {
                let (path, text) = self.of_both(single(known, identity), own, other);
                self.bring_back(writing, path, &text, done)?;
            }
        }
        let replayed = self.resolving.merging.as_ref().and_then(|it| it.replayed.as_ref());
        for (side, replayed) in [(ours, None), (theirs, replayed)] {
            let is_new = |it: &&Identity| !known.contains_key(*it) && !now.contains_key(*it);
            for (path, text) in side.keys().filter(is_new).filter_map(|it| single(side, it)) {
                let is_step = |it: &Vec<u8>| merge::identity(it) == merge::identity(text);
                let is_left_out = replayed.is_some_and(|it| !it.iter().any(is_step));
                let is_retitled = is_retitled(path, text, [known, ours, theirs, &now]);
                if !is_left_out && !is_retitled && !self.is_held(directory, text) {
                    self.bring_back(writing, path, text, done)?;
                }
            }
        }
        Ok(())
    }

    /// Creates the file of a step again, with another number if its own is taken.
    fn bring_back(
        &self,
        writing: &mut Transaction<'_>,
        path: &Path,
        text: &[u8],
        done: &mut Done,
    ) -> Result<(), Error> {
        let path = self.names.kept(path);
        let (Some(directory), Some(number)) = (path.parent(), number_of(&path)) else { return Ok(()) };
        let target = match self.resolving.context.plans.read(&path) {
            Ok(_) => {
                let free = renumber::free(self.resolving, directory, &number, &BTreeMap::new())?;
                directory.join(file_name::step_file(&free))
            }
            Err(_) => path,
        };
        let op = FileOp::Create { path: target.clone(), bytes: named_by(&target, text.to_vec())? };
        writing.batch("git resolve", vec![op])?;
        let decided = vec!["a step that git had dropped is back".to_owned()];
        let shown = self.resolving.shown(&target);
        done.report(ResolvedFile { path: shown, state: "resolved", decided, renumbered: None });
        done.clean.push(target);
        Ok(())
    }

    fn are_untouched(&self, files: &[(PathBuf, Vec<u8>)], own: &[PathBuf]) -> Result<bool, Error> {
        for (path, now) in files {
            if !self.is_untouched(path, now, own)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether the sides of a group merge without a conflict, and without the loss of an attempt or note.
    fn merges(&self, group: &Group) -> bool {
        let (Some((_, ours)), Some((_, theirs)), Some(path)) = (&group.ours, &group.theirs, group.target())
        else {
            return false;
        };
        let named = format!("plans/{}", path.to_string_lossy());
        let of = Versions { path: &named, base: group.base.as_deref(), ours, theirs };
        let merged = self.resolving.merge(of);
        let holds_all = || [ours, theirs].iter().all(|it| merge::lost(it, &merged.bytes).is_empty());
        merged.is_clean && holds_all()
    }
}
