//! Since when a step has been in its state, and which steps are stale.

use crate::plan::model::{Plan, Step};
use crate::plan::plans::Plans;
use crate::plan::records::Attempt;
use crate::plan::rules;
use crate::plan::time::{Day, Time};
use crate::plan::words::{PlanStatus, StepStatus};

/// The time of [`since`] for a ready or in-progress step of an active plan, if it is more than `seconds` ago: then the step
/// is stale.
pub(crate) fn stale(plans: &Plans, plan: &Plan, step: &Step, now: Time, seconds: i64) -> Option<Time> {
    let is_candidate = step.standing().is(StepStatus::InProgress) || rules::is_ready(plans, plan, step, now);
    if plan.is_archived || !plan.status.is(PlanStatus::Active) || !is_candidate {
        return None;
    }
    let since = since(plans, plan, step, now)?;
    (now.seconds_since(since) > seconds).then_some(since)
}

/// The due day of an open step, if it is over: its own, else its plan's. The plan's counts only for the first open step
/// without a due day.
pub(crate) fn overdue(plan: &Plan, step: &Step, now: Time) -> Option<Day> {
    let is_open = |it: &Step| !it.is_closed();
    let of_plan = || {
        let day = plan.due?;
        let first = plan.steps.iter().find(|it| is_open(it) && it.due.is_none())?;
        (first.path == step.path).then_some(day)
    };
    step.due.or_else(of_plan).filter(|it| is_open(step) && it.is_over(now))
}

/// The time that the lists of `status` show for a step. For a pending step, since when it has waited; for a closed one, when
/// it was closed; for a lapsed claim, when it was made; otherwise the last activity.
pub(crate) fn since(plans: &Plans, plan: &Plan, step: &Step, now: Time) -> Option<Time> {
    let last = || step.last_activity().map(|(at, _)| at);
    match step.standing().known() {
        Some(StepStatus::Pending) => waiting_since(plans, plan, step),
        Some(StepStatus::Completed | StepStatus::Skipped) => step.closed_at(),
        _ if rules::is_lapsed(plans, step, now) => step.claim.as_ref().and_then(|it| it.at),
        _ => last(),
    }
}

/// When a step became ready or, if it is not pending, when work on it began, as far as that is recorded. Later attempts do not
/// change this time, but a reopening does.
pub(crate) fn begun(plans: &Plans, plan: &Plan, step: &Step) -> Option<Time> {
    let reopened = step.attempts.iter().rfind(|it| it.outcome.as_deref() == Some("reopened"));
    let reopened = reopened.and_then(|it| it.at);
    if !step.standing().is(StepStatus::Pending) {
        let since = |it: &&Attempt| it.at > reopened;
        let first = || step.attempts.iter().filter(since).filter_map(|it| it.at).min();
        return step.claim.as_ref().and_then(|it| it.at).or_else(first).or(step.modified);
    }
    let dependencies = rules::dependencies(plans, plan, step).filter_map(Step::closed_at).max();
    step.created_at.max(dependencies).max(reopened).or(step.modified)
}

/// The newest of the creation, the last dependency's completion, and the last attempt (a reopening is one). If none of
/// them is recorded, the file's modification time.
///
/// A note does not count: it does not change how long the step has waited.
fn waiting_since(plans: &Plans, plan: &Plan, step: &Step) -> Option<Time> {
    let dependencies = rules::dependencies(plans, plan, step).filter_map(Step::closed_at).max();
    let attempts = step.attempts.iter().filter_map(Attempt::newest).max();
    step.created_at.max(dependencies).max(attempts).or(step.modified)
}
