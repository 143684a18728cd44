//! Attempts and notes that a merge dropped. Git drops them when it pairs the wrong files as a rename. Files are versions of
//! one step if they look alike, or if one contains the other's text.

use std::collections::{BTreeSet, HashSet};
use std::path::{Path, PathBuf};

use super::{Done, Places, is_archived, same_lines};
use crate::api::error::Error;
use crate::disk::FileOp;
use crate::git::Oid;
use crate::ops::git_resolve::{ResolvedFile, Resolving};
use crate::plan::merge::{self, markers};
use crate::store::changed_after_removal::number_of;
use crate::store::transaction::Transaction;

/// A merged text, and the decisions of the merge.
type Joined = (Vec<u8>, Vec<String>);

/// Adds the dropped attempts and notes to the files of their steps.
pub(in crate::ops::git_resolve) fn recover(
    resolving: &Resolving<'_>,
    writing: &mut Transaction<'_>,
    done: &mut Done,
) -> Result<(), Error> {
    let Some(merging) = &resolving.merging else { return Ok(()) };
    let git = resolving.git;
    let plans = &resolving.context.plans;
    let places = Places::read(resolving)?;
    let all = git.index_entries(&[&resolving.plans])?;
    let kept: HashSet<&str> = all.iter().map(|it| it.oid.as_str()).collect();
    for (files, replayed) in [(&places.ours, None), (&places.theirs, merging.replayed.as_deref())] {
        // A merge does not change a file that is the same on both sides. A rebase that left out merge commits can change it.
        let is_of_both = |path: &PathBuf, oid: &Oid| {
            merging.has_left_out_merges
                && [&places.ours, &places.theirs].iter().all(|it| it.get(path) == Some(oid))
        };
        let is_wanted = |(path, oid): &(&PathBuf, &Oid)| {
            let is_changed = places.before.get(*path) != Some(oid) || is_of_both(path, oid);
            number_of(path).is_some() && is_changed && !kept.contains(oid.as_str())
        };
        for (path, oid) in files.iter().filter(is_wanted) {
            let version = resolving.blob(oid)?;
            // Usually the step still has its path; then no other file has to be read.
            if plans.read(path).is_ok_and(|it| !merge::missing_logs(&version, &[it.bytes])) {
                continue;
            }
            let homes = places.homes(path, &version)?;
            let texts: Vec<_> = homes.iter().filter_map(|it| Some(plans.read(it).ok()?.bytes)).collect();
            // A file with conflict markers has the text of both sides.
            let is_open = texts.iter().any(|it| markers::pick(it, 7).is_some());
            let is_left_out = replayed.is_some_and(|it| merge::missing_logs(&version, it));
            if is_open || is_left_out || !merge::missing_logs(&version, &texts) {
                continue;
            }
            let known = places.before.get(path).map(|it| resolving.blob(it)).transpose()?;
            let has_all =
                |it: &Vec<u8>| !merge::missing_logs(&version, &[&texts, &[it.clone()][..]].concat());
            if known.as_ref().is_some_and(has_all) && !is_of_both(path, oid) {
                continue;
            }
            let (Some(home), Some(now)) = (homes.first(), texts.first()) else { continue };
            let is_untouched = places.is_untouched(home, now, &done.own)?;
            let joined = if is_of_both(path, oid) {
                places.joined(home, Some(now), now, &version)?
            } else if places.is_of_a_side(home, now)?
                && let Some(base) = places.base_of(path, &version)?
            {
                places.joined(home, base.as_deref(), now, &version)?
            } else {
                None
            };
            let logs = || Some((merge::with_logs_of(now, &version, None)?, Vec::new()));
            let Some((after, more)) = joined.or_else(logs) else { continue };
            let op = FileOp::Change { path: home.clone(), before: now.clone(), after };
            writing.batch("git resolve", vec![op])?;
            let mut decided = vec!["attempts and notes that git had dropped are back".to_owned()];
            decided.extend(more);
            let path = resolving.shown(home);
            done.report(ResolvedFile { path, state: "resolved", decided, renumbered: None });
            done.own.extend(is_untouched.then(|| home.clone()));
            done.clean.extend(places.settled.contains_key(home).then(|| home.clone()));
        }
    }
    Ok(())
}

impl Places<'_> {
    /// The files in the working tree that are a version of a step or contain its text, most similar first.
    pub(super) fn homes(&self, path: &Path, version: &[u8]) -> Result<Vec<PathBuf>, Error> {
        let plans = &self.resolving.context.plans;
        let mut found = Vec::new();
        let sides = self.ours.keys().chain(self.theirs.keys()).chain(self.settled.keys());
        let candidates: BTreeSet<&PathBuf> =
            sides.filter(|it| number_of(it).is_some() && self.names.of(it) == self.names.of(path)).collect();
        for candidate in candidates {
            let Ok(text) = plans.read(candidate).map(|it| it.bytes) else { continue };
            let is_open = candidate == path && markers::pick(&text, 7).is_some();
            let likeness = if is_open { 5 } else { merge::likeness(version, &text) };
            if likeness > 0 || merge::holds_step(&text, version) {
                found.push((likeness, !is_archived(candidate), candidate.clone()));
            }
        }
        found.sort_by(|a, b| (b.0, b.1, &a.2).cmp(&(a.0, a.1, &b.2)));
        Ok(found.into_iter().map(|(_, _, path)| path).collect())
    }

    /// Whether a file equals that of one side. Git then took it unchanged, so it contains no edit of a person.
    fn is_of_a_side(&self, path: &Path, now: &[u8]) -> Result<bool, Error> {
        for oid in [&self.ours, &self.theirs].into_iter().filter_map(|it| it.get(path)) {
            if same_lines(now, &self.resolving.blob(oid)?) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The step in the base of the merge. `Some(None)` if the base lacks the step; `None` if it cannot be identified there,
    /// for example because the base has several such steps.
    pub(super) fn base_of(&self, path: &Path, version: &[u8]) -> Result<Option<Option<Vec<u8>>>, Error> {
        let (Some(plan), Some(identity)) = (self.names.of(path), merge::identity(version)) else {
            return Ok(None);
        };
        let steps = self.committed(&self.before, Path::new(plan))?;
        Ok(match steps.get(&identity).map(Vec::as_slice) {
            None => Some(None),
            Some([(_, text)]) => Some(Some(text.clone())),
            Some(_) => None,
        })
    }

    /// A step merged with another version of it, and what was decided.
    ///
    /// None if the merge changes nothing, has a conflict, or loses an attempt or note. Also none if `version` belongs to
    /// another step, such as one that was squashed into this one.
    fn joined(
        &self,
        path: &Path,
        base: Option<&[u8]>,
        now: &[u8],
        version: &[u8],
    ) -> Result<Option<Joined>, Error> {
        if merge::identity(now) != merge::identity(version) {
            return Ok(None);
        }
        let merged = self.merged_at(path, base, now, version)?;
        let holds_all = [now, version].iter().all(|it| merge::lost(it, &merged.bytes).is_empty());
        let is_new = merged.is_clean && holds_all && merged.bytes != now;
        Ok(is_new.then_some((merged.bytes, merged.decided)))
    }
}
