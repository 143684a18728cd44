//! Since when a step has been in its state, and which steps are stale.

use crate::plan::model::{Plan, Step};
use crate::plan::plans::Plans;
use crate::plan::records::Attempt;
use crate::plan::rules;
use crate::plan::time::{Day, Time};
use crate::plan::words::{PlanStatus, StepStatus};

/// Returns the time of [`since`] if the step is stale. A step is stale if it is ready or in progress, its plan is active
/// and not archived, and that time is more than `seconds` ago.
pub(crate) fn stale(plans: &Plans, plan: &Plan, step: &Step, now: Time, seconds: i64) -> Option<Time> {
    let is_candidate = step.standing().is(StepStatus::InProgress) || rules::is_ready(plans, plan, step, now);
    if plan.is_archived || !plan.status.is(PlanStatus::Active) || !is_candidate {
        return None;
    }
    let since = since(plans, plan, step, now)?;
    (now.seconds_since(since) > seconds).then_some(since)
}

/// The due day of an open step, if that day is over. Of the plan's open steps that have no due day, the first one has the
/// plan's due day.
pub(crate) fn overdue(plan: &Plan, step: &Step, now: Time) -> Option<Day> {
    let is_open = |it: &Step| !it.is_closed();
    let of_plan = || {
        let day = plan.due?;
        let first = plan.steps.iter().find(|it| is_open(it) && it.due.is_none())?;
        (first.path == step.path).then_some(day)
    };
    step.due.or_else(of_plan).filter(|it| is_open(step) && it.is_over(now))
}

/// The time that the lists of `status` show for a step. For a pending step, it is the time since which the step has waited.
/// For a completed or skipped step, it is the time when the step was closed. For a step with a lapsed claim, it is the time
/// of the claim. For any other step, it is the time of the last activity.
pub(crate) fn since(plans: &Plans, plan: &Plan, step: &Step, now: Time) -> Option<Time> {
    let last = || step.last_activity().map(|(at, _)| at);
    match step.standing().known() {
        Some(StepStatus::Pending) => waiting_since(plans, plan, step),
        Some(StepStatus::Completed | StepStatus::Skipped) => step.closed_at(),
        _ if rules::is_lapsed(plans, step, now) => step.claim.as_ref().and_then(|it| it.at),
        _ => last(),
    }
}

/// For a pending step, the time when it became ready. For any other step, the time of its claim or, if it has no claim, of
/// its first attempt after its last reopening. Later attempts do not change this time, but a reopening does. If none of
/// these times is known: for a pending step, the modification time of its file; for any other step, the time of its last
/// activity.
pub(crate) fn begun(plans: &Plans, plan: &Plan, step: &Step) -> Option<Time> {
    let reopened = step.attempts.iter().rfind(|it| it.outcome.as_deref() == Some("reopened"));
    let reopened = reopened.and_then(|it| it.at);
    if !step.standing().is(StepStatus::Pending) {
        let since = |it: &&Attempt| it.at > reopened;
        let first = || step.attempts.iter().filter(since).filter_map(|it| it.at).min();
        let last = || step.last_activity().map(|(at, _)| at);
        return step.claim.as_ref().and_then(|it| it.at).or_else(first).or_else(last);
    }
    let dependencies = rules::dependencies(plans, plan, step).filter_map(Step::closed_at).max();
    step.created_at.max(dependencies).max(reopened).or(step.modified)
}

/// The newest of three times: when the step was created, when its last dependency was closed, and when its last attempt was
/// made or recorded. A reopening is an attempt, too. If none of the times is known, the modification time of the step's file
/// is used. Notes are ignored, because they do not change how long the step has waited.
fn waiting_since(plans: &Plans, plan: &Plan, step: &Step) -> Option<Time> {
    let dependencies = rules::dependencies(plans, plan, step).filter_map(Step::closed_at).max();
    let attempts = step.attempts.iter().filter_map(Attempt::newest).max();
    step.created_at.max(dependencies).max(attempts).or(step.modified)
}
