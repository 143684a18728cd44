//! Plans that a side renamed. Their files have other directories there, but belong to one plan.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use super::{Files, is_archived};
use crate::api::error::Error;
use crate::git::Oid;
use crate::ops::git_resolve::Resolving;
use crate::plan::merge;
use crate::store::changed_after_removal::{number_of, plan_name};

/// For the other names of a renamed plan, the name that it keeps. If both sides renamed it, this is the name of OURS.
#[derive(Default)]
pub(super) struct PlanNames(BTreeMap<OsString, OsString>);

/// The files of steps, by the plan's name. Without the copies of removed steps.
type Plans<'f> = BTreeMap<&'f OsStr, Vec<&'f Oid>>;

impl PlanNames {
    pub(super) fn find(
        resolving: &Resolving<'_>,
        before: &Files,
        [ours, theirs]: [&Files; 2],
    ) -> Result<Self, Error> {
        let [before, ours, theirs] = [before, ours, theirs].map(plans_of);
        let own = renamed(resolving, &before, &ours, &theirs)?;
        let mut names = BTreeMap::new();
        for (old, new) in renamed(resolving, &before, &theirs, &ours)? {
            match own.get(&old) {
                Some(kept) => names.insert(new, kept.clone()),
                None => names.insert(old, new),
            };
        }
        names.extend(own);
        Ok(Self(names))
    }

    /// The name that the plan of a live, archived or removed file keeps.
    pub(super) fn of<'n>(&'n self, path: &'n Path) -> Option<&'n OsStr> {
        let name = plan_name(path)?;
        Some(self.0.get(name).map_or(name, OsString::as_os_str))
    }

    /// The path that a live file gets in the directory of its plan's name.
    pub(super) fn kept(&self, path: &Path) -> PathBuf {
        match (self.of(path), path.file_name()) {
            (Some(plan), Some(name)) if !is_archived(path) => Path::new(plan).join(name),
            _ => path.to_path_buf(),
        }
    }

    /// The directories that a plan has or had.
    pub(super) fn directories<'n>(&'n self, directory: &'n Path) -> impl Iterator<Item = &'n Path> {
        let others = self.0.iter().filter(move |(name, kept)| *kept == directory && *name != directory);
        [directory].into_iter().chain(others.map(|(name, _)| Path::new(name)))
    }

    pub(super) fn is_renamed(&self, directory: &Path) -> bool {
        self.directories(directory).nth(1).is_some() || self.0.contains_key(directory.as_os_str())
    }
}

fn plans_of(files: &Files) -> Plans<'_> {
    let mut plans = Plans::new();
    for (path, oid) in files.iter().filter(|(path, _)| number_of(path).is_some()) {
        let depth = if is_archived(path) { 3 } else { 2 };
        if let Some(name) = plan_name(path).filter(|_| path.iter().count() == depth) {
            plans.entry(name).or_default().push(oid);
        }
    }
    plans
}

/// The plans that a side renamed: their old names are gone, and a plan with a new name has at least half of their steps.
fn renamed(
    resolving: &Resolving<'_>,
    before: &Plans<'_>,
    side: &Plans<'_>,
    other: &Plans<'_>,
) -> Result<BTreeMap<OsString, OsString>, Error> {
    let mut found = BTreeMap::new();
    let gone: Vec<_> = before.iter().filter(|(name, _)| !side.contains_key(*name)).collect();
    let is_new = |name: &OsStr| !before.contains_key(name);
    let mut new = Vec::new();
    for (name, steps) in side.iter().filter(|(name, _)| !gone.is_empty() && is_new(name)) {
        new.push((*name, identities(resolving, steps)?));
    }
    if new.is_empty() {
        return Ok(found);
    }
    for (old, steps) in gone {
        let steps = identities(resolving, steps)?;
        // If the other side has another plan with the new name, it still has the old one, too.
        let is_free = |name: &OsStr| !other.contains_key(name) || !other.contains_key(*old);
        let shared = |at: usize| new[at].1.intersection(&steps).count();
        let candidates = (0..new.len()).filter(|at| is_free(new[*at].0));
        let Some(best) = candidates.max_by_key(|at| shared(*at)) else { continue };
        if shared(best) > 0 && shared(best) * 2 >= steps.len() {
            found.insert((*old).to_owned(), new.swap_remove(best).0.to_owned());
        }
    }
    Ok(found)
}

fn identities(resolving: &Resolving<'_>, steps: &[&Oid]) -> Result<BTreeSet<merge::Identity>, Error> {
    let mut found = BTreeSet::new();
    for oid in steps {
        found.extend(merge::identity(&resolving.blob(oid)?));
    }
    Ok(found)
}
