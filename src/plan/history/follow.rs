//! Follows a plan or a step back through its earlier names.

use crate::plan::history::{Change, What};
use crate::plan::id::{PlanId, StepId};

/// The plan or step whose history is read. The fields contain its ids before the oldest commit that was passed to
/// [`Self::before`].
///
/// The caller passes the changes of one commit after another, newest commit first.
#[derive(Debug, Clone)]
pub struct Followed {
    plan: String,
    step: Option<String>,
}

impl Followed {
    pub fn plan(id: &PlanId) -> Self {
        Self { plan: id.to_string(), step: None }
    }

    pub fn step(id: &StepId) -> Self {
        Self { plan: id.plan.to_string(), step: Some(id.to_string()) }
    }

    /// Returns whether a change is part of the history. The history of a step also has the changes that move, archive,
    /// restore or remove its plan.
    pub fn concerns(&self, change: &Change) -> bool {
        if self.step.is_some() && change.step == self.step {
            return true;
        }
        let is_plans = change.plan.as_ref().is_some_and(|it| *it == self.plan);
        match &self.step {
            None => is_plans || self.leaves(change),
            Some(_) => is_plans && change.step.is_none() && moves_all(change.what),
        }
    }

    /// Whether the change moves a step of this plan, to another number in the plan or to another plan.
    fn leaves(&self, change: &Change) -> bool {
        let from = change.from.as_deref().filter(|_| change.what == What::Moved && change.step.is_some());
        from.and_then(|it| it.rsplit_once(':')).is_some_and(|(plan, _)| plan == self.plan)
    }

    /// Replaces the ids with those that the plan or step had before a commit with these changes.
    pub fn before(&mut self, changes: &[Change]) {
        let moved = |it: &&Change| matches!(it.what, What::Moved | What::Archived | What::Restored);
        let steps = changes.iter().filter(moved).find(|it| it.step.is_some() && it.step == self.step);
        if let Some(from) = steps.and_then(|it| it.from.clone()) {
            if let Some((plan, _)) = from.rsplit_once(':') {
                plan.clone_into(&mut self.plan);
            }
            self.step = Some(from);
            return;
        }
        let plans =
            changes.iter().filter(moved).find(|it| it.step.is_none() && it.plan.as_ref() == Some(&self.plan));
        if let Some(from) = plans.and_then(|it| it.from.clone()) {
            let number = self.step.as_deref().and_then(|it| it.rsplit_once(':')).map(|it| it.1.to_owned());
            self.step = number.map(|it| format!("{from}:{it}"));
            self.plan = from;
        }
    }
}

fn moves_all(what: What) -> bool {
    matches!(what, What::Removed | What::Moved | What::Archived | What::Restored)
}
