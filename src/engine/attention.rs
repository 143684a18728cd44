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

#[cfg(test)]
mod tests {
    use crate::disk::model::Machine;
    use crate::engine::config::Config;
    use crate::engine::context::{Context, Freshness, Here, Reading};
    use crate::engine::status::{self, StatusRequest};

    /// What `status` says needs attention in a plan whose first step is this one, at a moment of November 2026.
    #[track_caller]
    fn check(plan: &str, step: &str, now: &str, expected: &[&str]) {
        let step = format!("---\n{step}\n---\n# One\n");
        let other =
            "---\nstatus: completed\nattempts:\n  - {at: 2026-11-03T12:00:00Z, outcome: completed}\n---\n";
        let machine = Machine::with(&[
            ("/plans/p/plan.md", &format!("---\nstatus: {plan}\n---\n# P\n")),
            ("/plans/p/step-1.md", &step),
            ("/plans/q/step-1.md", other),
        ]);
        let context = Context {
            plans: machine.plans(),
            now: format!("2026-11-{now}").parse().unwrap(),
            by: "ann".to_owned(),
            config: Config::default(),
            reading: Reading::Files,
            here: Here::default(),
            freshness: Freshness::Unknown,
            tell: Box::new(|_| {}),
        };
        let report = status::status(&context, &StatusRequest::default()).unwrap();
        let said = |it: &status::Attention| match it.since {
            Some(since) => format!("{} since {since}", it.reason.word()),
            None => it.reason.word().to_owned(),
        };
        assert_eq!(report.attention.iter().map(said).collect::<Vec<_>>(), expected, "{step}");
    }

    const MADE: &str = "created_at: 2026-11-01T12:00:00Z";

    #[test]
    fn a_step_is_stale_after_more_than_seven_days_without_a_new_attempt() {
        let of_first = ["stale since 2026-11-01T12:00:00Z"];
        check("active", MADE, "08T12:00:00Z", &[]);
        check("active", MADE, "08T12:00:01Z", &of_first);
        check("active", MADE, "09T12:00:00Z", &of_first);
        check("active", &format!("status: in_progress\n{MADE}"), "09T12:00:00Z", &of_first);
        let tried = format!(
            "status: in_progress\n{MADE}\nattempts:\n  - {{at: 2026-11-04T12:00:00Z, outcome: no answer}}"
        );
        check("active", &tried, "11T12:00:00Z", &[]);
        check("active", &tried, "12T12:00:00Z", &["stale since 2026-11-04T12:00:00Z"]);
    }

    #[test]
    fn pending_counts_from_the_last_dependency_and_the_last_reopening() {
        let waited = format!("{MADE}\ndepends: [\"q:1\"]");
        check("active", &waited, "10T12:00:00Z", &[]);
        check("active", &waited, "10T12:00:01Z", &["stale since 2026-11-03T12:00:00Z"]);
        let reopened = format!("{MADE}\nattempts:\n  - {{at: 2026-11-05T12:00:00Z, outcome: reopened}}");
        check("active", &reopened, "12T12:00:00Z", &[]);
        check("active", &reopened, "12T12:00:01Z", &["stale since 2026-11-05T12:00:00Z"]);
    }

    #[test]
    fn what_is_over_or_waits_is_never_stale() {
        for plan in ["draft", "abandoned", "completed"] {
            check(plan, MADE, "20T12:00:00Z", &[]);
        }
        check("active", &format!("status: completed\n{MADE}"), "20T12:00:00Z", &[]);
        check("active", &format!("status: skipped\n{MADE}"), "20T12:00:00Z", &[]);
        check("active", &format!("{MADE}\nconfirm: required"), "20T12:00:00Z", &["to confirm"]);
    }
}
