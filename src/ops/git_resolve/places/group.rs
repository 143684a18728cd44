//! The versions of one step whose place is in conflict, and the choice between its places.

use std::path::PathBuf;

use super::is_archived;
use crate::ops::git_resolve::renumber::plan_of;
use crate::plan::id;
use crate::plan::merge;
use crate::store::changed_after_removal::number_of;

/// One step: its place on each side, and its paths in conflict.
#[derive(Default)]
pub(super) struct Group {
    pub(super) paths: Vec<PathBuf>,
    pub(super) base: Option<Vec<u8>>,
    pub(super) ours: Option<(PathBuf, Vec<u8>)>,
    pub(super) theirs: Option<(PathBuf, Vec<u8>)>,
}

/// A step that has been written to its place.
pub(super) struct Settled {
    pub(super) group: Group,
    pub(super) target: PathBuf,
    /// Its other places, whose files are removed.
    pub(super) lost: Vec<PathBuf>,
    pub(super) merged: Vec<u8>,
    /// What the merge chose, for people.
    pub(super) decided: Vec<String>,
}

impl Group {
    /// The place that the step gets; none if both sides removed it.
    pub(super) fn target(&self) -> Option<&PathBuf> {
        match (&self.ours, &self.theirs) {
            (Some((own, ours)), Some((other, theirs))) => {
                Some(chosen(self.base.as_deref(), (own, ours), (other, theirs)))
            }
            (one, other) => one.as_ref().or(other.as_ref()).map(|(path, _)| path),
        }
    }
}

/// Chooses between the two places that the sides have for a step.
///
/// A removal wins, with one exception: steps that neither the base nor the removed copy contains may have been squashed into
/// the live step. The live step then wins, because neither side removed those steps.
fn chosen<'p>(
    base: Option<&[u8]>,
    (own, ours): (&'p PathBuf, &[u8]),
    (other, theirs): (&'p PathBuf, &[u8]),
) -> &'p PathBuf {
    let holds_more = |text: &[u8], removed: &[u8]| {
        base.is_some_and(|it| merge::holds_more_steps(text, it)) && merge::holds_more_steps(text, removed)
    };
    let old = base.and_then(merge::id_of).and_then(|it| id::read_step_id(&it));
    let has_old_number = old.as_ref().is_some_and(|it| number_of(own).as_ref() == Some(&it.number));
    let is_of_old_plan = || own.parent().map(plan_of) == old.as_ref().map(|it| it.plan.clone());
    let are_of_one_plan = own.parent() == other.parent();
    match (is_archived(own), is_archived(other)) {
        (true, true) if !are_of_one_plan => own.min(other),
        // Only THEIRS moved the step. If one side archived the plan, the plan's merged files have the new number, too.
        (true, true) | (false, false) if has_old_number && (are_of_one_plan || is_of_old_plan()) => other,
        (false, true) if holds_more(ours, theirs) => own,
        (true, false) if holds_more(theirs, ours) => other,
        (false, true) => other,
        _ => own,
    }
}
