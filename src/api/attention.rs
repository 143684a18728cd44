//! Why a step or a plan needs attention: one rule for `status`, the list of plans, the board and the pages.

use crate::api::staleness;
use crate::api::views::Reason;
use crate::plan::model::{Plan, Step};
use crate::plan::plans::Plans;
use crate::plan::rules::{self, Obstacle};
use crate::plan::time::Time;
use crate::plan::words::{PlanStatus, StepStatus};

/// The most urgent reason why a plan needs attention: an error in its file, or a step that needs attention. The plans may be
/// summaries (`plan::summary`).
pub(crate) fn of_plan(plans: &Plans, plan: &Plan, now: Time, stale_seconds: i64) -> Option<Reason> {
    if plan.is_archived {
        return None;
    }
    let own = plan.is_faulty().then_some(Reason::Faulty);
    if !plan.status.is(PlanStatus::Active) {
        return own;
    }
    let mut found = own;
    for step in &plan.steps {
        // Nothing is more urgent than a failed step.
        if found == Some(Reason::Failed) {
            break;
        }
        let reason = of_step(plans, plan, step, now, stale_seconds).map(|it| it.0);
        found = found.into_iter().chain(reason).min();
    }
    found
}

/// Why a step of an active plan needs attention, and since when.
pub(crate) fn of_step(
    plans: &Plans,
    plan: &Plan,
    step: &Step,
    now: Time,
    stale_seconds: i64,
) -> Option<(Reason, Option<Time>)> {
    let since = || staleness::since(plans, plan, step, now);
    match step.status.known() {
        Some(StepStatus::Failed) => return Some((Reason::Failed, since())),
        Some(StepStatus::Blocked) => return Some((Reason::Blocked, since())),
        _ if step.is_closed() => return None,
        _ if step.is_unverified() => return Some((Reason::NotVerified, since())),
        _ => {}
    }
    if rules::is_free_again(plans, step, now) {
        return Some((Reason::Lapsed, since()));
    }
    if step.is_faulty() {
        return Some((Reason::Faulty, None));
    }
    if waits_for_person_alone(plans, plan, step, now) {
        return Some((Reason::ToConfirm, None));
    }
    if let Some(day) = staleness::overdue(plan, step, now) {
        return Some((Reason::Overdue, Some(day.end())));
    }
    staleness::stale(plans, plan, step, now, stale_seconds).map(|since| (Reason::Stale, Some(since)))
}

/// Whether a step waits only for a person's confirmation.
pub(crate) fn waits_for_person_alone(plans: &Plans, plan: &Plan, step: &Step, now: Time) -> bool {
    let is_confirmation =
        |it: &Obstacle| matches!(it, Obstacle::Confirmation | Obstacle::PhaseConfirmation { .. });
    // This is checked first, because most steps need no confirmation, and finding all obstacles of a step takes longer.
    rules::missing_confirmation(plan, step).is_some()
        && rules::obstacles(plans, plan, step, now).iter().all(is_confirmation)
}
