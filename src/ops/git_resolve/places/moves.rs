//! Steps that one side moved while the other side added references to them.
//!
//! The added references have the old number, which no step has now, or another step. A merge does not notice this. The steps
//! whose numbers differ are found by identity, and the references get the new numbers. The same holds after a rebase in
//! which a new step got another number: later commits of the branch refer to it by the old one.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::reunite::single;
use super::{Done, Files, Places, is_archived};
use crate::api::error::Error;
use crate::ops::git_resolve::Resolving;
use crate::ops::git_resolve::renumber::relinking::{self, Cause, Renumbered};
use crate::plan::merge;
use crate::store::changed_after_removal::number_of;
use crate::store::transaction::Transaction;

/// Changes the references that one side added to the old numbers of steps that the other side moved.
pub(in crate::ops::git_resolve) fn follow(
    resolving: &Resolving<'_>,
    writing: &mut Transaction<'_>,
    done: &mut Done,
) -> Result<(), Error> {
    let Some(merging) = &resolving.merging else { return Ok(()) };
    let places = Places::read(resolving)?;
    let (mut by_ours, mut by_theirs) = (Vec::new(), Vec::new());
    for directory in places.with_moves(&places.before)? {
        let known = places.committed(&places.before, directory)?;
        let [ours, theirs] = [&places.ours, &places.theirs].map(|it| places.committed(it, directory));
        let (ours, theirs) = (ours?, theirs?);
        let now = places.in_working_tree(directory);
        for identity in known.keys() {
            let one = |of| single(of, identity).map(|it| it.0.as_path());
            let (Some(base), Some(own), Some(other), Some(now)) =
                (one(&known), one(&ours), one(&theirs), one(&now))
            else {
                continue;
            };
            // If both sides moved the step, it has the number of OURS.
            if now == own && own != base && other != own {
                by_ours.extend(Renumbered::of(other, now));
            } else if now == other && own == base && other != base {
                by_theirs.extend(Renumbered::of(own, now));
            }
        }
    }
    relinking::follow_moved(resolving, writing, by_ours, Cause::MovedByOurs, done)?;
    relinking::follow_moved(resolving, writing, by_theirs, Cause::MovedByTheirs, done)?;
    if merging.replayed.is_none() {
        return Ok(());
    }
    relinking::follow_moved(resolving, writing, places.renumbered_by_rebase()?, Cause::Rebased, done)
}

impl Places<'_> {
    /// The new steps of THEIRS that have another number since the rebase.
    fn renumbered_by_rebase(&self) -> Result<Vec<Renumbered>, Error> {
        let mut renumbered = Vec::new();
        for directory in self.with_moves(&self.theirs)? {
            let [base, ours, theirs] =
                [&self.before, &self.ours, &self.theirs].map(|it| self.committed(it, directory));
            let (base, ours, theirs) = (base?, ours?, theirs?);
            let now = self.in_working_tree(directory);
            for identity in theirs.keys().filter(|it| !base.contains_key(it) && !ours.contains_key(it)) {
                if let (Some((old, _)), Some((new, _))) = (single(&theirs, identity), single(&now, identity))
                    && old != new
                {
                    renumbered.extend(Renumbered::in_rebase(old, new));
                }
            }
        }
        Ok(renumbered)
    }

    /// The directories of live plans in which a side may have moved one of these steps: the file of a step is gone, or is
    /// another step. Without renamed plans.
    fn with_moves<'f>(&self, steps: &'f Files) -> Result<BTreeSet<&'f Path>, Error> {
        let mut directories = BTreeSet::new();
        let is_step = |it: &PathBuf| !is_archived(it) && number_of(it).is_some();
        for (path, oid) in steps.iter().filter(|(path, _)| is_step(path)) {
            let Some(directory) = path.parent().filter(|it| !directories.contains(it)) else { continue };
            if self.names.is_renamed(directory) {
                continue;
            }
            for side in [&self.ours, &self.theirs] {
                let is_left = match side.get(path) {
                    Some(now) if now == oid => false,
                    Some(now) => {
                        let [before, now] = [oid, now].map(|it| self.resolving.blob(it));
                        merge::identity(&before?) != merge::identity(&now?)
                    }
                    None => true,
                };
                if is_left {
                    directories.insert(directory);
                }
            }
        }
        Ok(directories)
    }
}
