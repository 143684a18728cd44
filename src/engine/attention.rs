//! What needs a person's eye: stale steps by the time rules of the engine.

use crate::plan::id::StepId;
use crate::plan::model::{Plan, Step};
use crate::plan::plans::Plans;
use crate::plan::rules;
use crate::plan::time::Time;
use crate::plan::words::{PlanStatus, StepStatus};

/// Since when a ready or in-progress step of an active plan has been left alone, if for longer than `days`.
pub(crate) fn stale(plans: &Plans, plan: &Plan, step: &Step, now: Time, days: u32) -> Option<Time> {
    let is_candidate = step.status.is(StepStatus::InProgress) || rules::is_ready(plans, plan, step, now);
    if plan.is_archived || !plan.status.is(PlanStatus::Active) || !is_candidate {
        return None;
    }
    let since = quiet_since(plans, step)?;
    (now.seconds_since(since) > i64::from(days) * 86_400).then_some(since)
}

/// The newest of what was recorded and of when the step became pending; the file's time where nothing is recorded.
fn quiet_since(plans: &Plans, step: &Step) -> Option<Time> {
    let recorded = step.last_activity().filter(|(_, source)| *source != "mtime").map(|(at, _)| at);
    let pending = pending_since(plans, step);
    recorded.max(pending).or(step.modified)
}

/// The newest of the creation, the last dependency's completion and the last reopening.
fn pending_since(plans: &Plans, step: &Step) -> Option<Time> {
    let closed = |id: &StepId| plans.step(id)?.attempts.iter().filter_map(|it| it.at).max();
    let dependencies = step.depends.iter().filter_map(closed).max();
    let reopened = step
        .attempts
        .iter()
        .filter(|it| it.outcome.as_deref() == Some("reopened"))
        .filter_map(|it| it.at)
        .max();
    step.created_at.max(dependencies).max(reopened)
}
