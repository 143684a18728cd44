//! Attempts and notes that a merge dropped. Git drops them when it pairs the wrong files as a rename.

use std::collections::{BTreeSet, HashSet};
use std::path::{Path, PathBuf};

use super::{Done, Places, files_of, is_archived, with_id_of};
use crate::api::error::Error;
use crate::disk::FileOp;
use crate::git::Oid;
use crate::ops::git_resolve::{ResolvedFile, Resolving};
use crate::plan::merge::{self, Versions, markers};
use crate::store::changed_after_removal::{number_of, plan_name};
use crate::store::transaction::Transaction;

/// Restores them.
pub(in crate::ops::git_resolve) fn recover(
    resolving: &Resolving<'_>,
    writing: &mut Transaction<'_>,
    done: &mut Done,
) -> Result<(), Error> {
    let Some(merging) = &resolving.merging else { return Ok(()) };
    let git = resolving.git;
    let plans = &resolving.context.plans;
    let before = files_of(git, Some(&merging.base), &resolving.plans)?;
    let places = Places::read(resolving)?;
    let all = git.index_entries(&[&resolving.plans])?;
    let kept: HashSet<&str> = all.iter().map(|it| it.oid.as_str()).collect();
    for (files, replayed) in [(&places.ours, None), (&places.theirs, merging.replayed.as_deref())] {
        // A rebase can replay the removal of a step that came back in a merge, which it leaves out.
        let is_of_both = |path: &PathBuf, oid: &Oid| {
            merging.replayed.is_some()
                && [&places.ours, &places.theirs].iter().all(|it| it.get(path) == Some(oid))
        };
        let is_wanted = |(path, oid): &(&PathBuf, &Oid)| {
            let is_changed = before.get(*path) != Some(oid) || is_of_both(path, oid);
            number_of(path).is_some() && is_changed && !kept.contains(oid.as_str())
        };
        for (path, oid) in files.iter().filter(is_wanted) {
            let version = resolving.blob(oid)?;
            // Mostly the step is where it was; then no other file has to be read.
            if plans.read(path).is_ok_and(|it| !merge::missing_logs(&version, &[it.bytes])) {
                continue;
            }
            let homes = places.homes(path, &version)?;
            let texts: Vec<_> = homes.iter().filter_map(|it| Some(plans.read(it).ok()?.bytes)).collect();
            // A file with markers has the text of both sides.
            let is_open = texts.iter().any(|it| markers::pick(it, 7).is_some());
            let is_left_out = replayed.is_some_and(|it| merge::missing_logs(&version, it));
            if is_open || is_left_out || !merge::missing_logs(&version, &texts) {
                continue;
            }
            let known = before.get(path).map(|it| resolving.blob(it)).transpose()?;
            let has_all =
                |it: &Vec<u8>| !merge::missing_logs(&version, &[&texts, &[it.clone()][..]].concat());
            if known.as_ref().is_some_and(has_all) && !is_of_both(path, oid) {
                continue;
            }
            let (Some(home), Some(now)) = (homes.first(), texts.first()) else { continue };
            let known = known.filter(|it| merge::likeness(it, &version) > 0);
            let Some(after) = places.joined(home, known, now, &version)? else { continue };
            let is_untouched = places.is_untouched(home, now, &done.own)?;
            let op = FileOp::Change { path: home.clone(), before: now.clone(), after };
            writing.batch("git resolve", vec![op])?;
            let decided = vec!["attempts and notes that git had dropped are back".to_owned()];
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
            sides.filter(|it| number_of(it).is_some() && plan_name(it) == plan_name(path)).collect();
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

    /// A step with the attempts and notes of another version, and with the status that they brought. None if it has all
    /// of them. If the versions do not merge, or the other one is a step that was squashed into this one, only the
    /// attempts and notes are added.
    fn joined(
        &self,
        path: &Path,
        known: Option<Vec<u8>>,
        now: &[u8],
        version: &[u8],
    ) -> Result<Option<Vec<u8>>, Error> {
        if merge::identity(now) == merge::identity(version) {
            let named = format!("plans/{}", path.to_string_lossy());
            let base = known.map(|it| with_id_of(now, it)).transpose()?;
            let theirs = with_id_of(now, version.to_vec())?;
            let of = Versions { path: &named, base: base.as_deref(), ours: now, theirs: &theirs };
            let merged = self.resolving.merge(of);
            if merged.is_clean && [now, version].iter().all(|it| merge::lost(it, &merged.bytes).is_empty()) {
                return Ok(Some(merged.bytes).filter(|it| it != now));
            }
        }
        Ok(merge::with_logs_of(now, version, None))
    }
}
