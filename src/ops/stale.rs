//! `stale`: lists the stale steps. A stale step is ready or in progress, and has been in this state for a while, as
//! `api::staleness` measures it.

use serde_json::{Value, json};

use crate::api::context::Context;
use crate::api::error::Error;
use crate::api::staleness;
use crate::api::views::{StepShape, Views, with};
use crate::plan::model::Plan;
use crate::plan::time::{self, Time};
use crate::plan::words::StepStatus;
use crate::store::load::{self, LoadQuery};
use crate::store::resolve;

pub use crate::api::requests::StaleRequest;

const DAY: i64 = 86_400;

/// A stale step, and the time that `since` in `api::staleness` returns for it.
#[derive(Debug, Clone)]
pub struct StaleStep {
    pub step: StepShape,
    pub since: Time,
    /// Such as `pending for 9 days, last attempted 8 days ago`.
    pub why: String,
}

#[derive(Debug, Clone)]
pub struct StaleReport {
    /// Longest stale first.
    pub steps: Vec<StaleStep>,
    pub seconds: i64,
}

impl StaleReport {
    pub fn to_json(&self) -> Value {
        let step = |it: &StaleStep| with(&it.step, json!({"since": it.since.whole_seconds(), "why": it.why}));
        json!({"seconds": self.seconds, "steps": self.steps.iter().map(step).collect::<Vec<_>>()})
    }
}

/// Reads a length of time, and returns it in seconds. `7` means 7 days, `36h` 36 hours and `2w` 2 weeks.
pub fn read_length(text: &str) -> Result<i64, Error> {
    let days = text.trim().parse::<u32>().ok().map(|it| i64::from(it) * DAY);
    let weeks = || Some(text.trim().strip_suffix('w')?.parse::<u32>().ok().map(i64::from)? * 7 * DAY);
    days.or_else(weeks).or_else(|| time::read_seconds(text)).ok_or_else(|| {
        let hint = "write a number of days, or for example 36h, 7d or 2w";
        Error::usage(format!("`{text}` is not a length of time"), hint)
    })
}

pub fn stale(context: &Context, request: &StaleRequest) -> Result<StaleReport, Error> {
    let seconds = request.seconds.unwrap_or_else(|| i64::from(context.config.stale_days()) * DAY);
    let named = request.plan.as_ref().map(|it| resolve::plan(context, it)).transpose()?;
    let plans = match &named {
        Some(id) => LoadQuery::plan(id).load(context)?.plans,
        None => LoadQuery::all().load(context)?.plans,
    };
    if let Some(id) = named.as_ref().filter(|it| plans.get(it).is_none()) {
        return Err(load::missing(context, id));
    }
    let views = Views::of(context, &plans);
    let is_asked =
        |it: &&Plan| named.as_ref().is_none_or(|id| it.id == *id || it.program.as_ref() == Some(id));
    let mut steps = Vec::new();
    for plan in plans.live().filter(is_asked) {
        for step in &plan.steps {
            let Some(since) = staleness::stale(&plans, plan, step, context.now, seconds) else { continue };
            let begun = staleness::begun(&plans, plan, step).unwrap_or(since);
            let is_busy = step.standing().is(StepStatus::InProgress);
            let status = if is_busy { "in progress" } else { "pending" };
            let tried = step.attempts.iter().filter_map(|it| it.at).max();
            let mut why = format!("{status} for {}", time::span(context.now, begun));
            if let Some(at) = tried {
                why = format!("{why}, last attempted {}", time::ago(context.now, at));
            }
            steps.push(StaleStep { step: views.step(plan, step), since, why });
        }
    }
    steps.sort_by_key(|it| it.since);
    Ok(StaleReport { steps, seconds })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::model::Machine;

    #[track_caller]
    fn check(seconds: &str, plan: Option<&str>, expected: &[(&str, &str)]) {
        let machine = Machine::with(&[
            ("/plans/a/plan.md", "# A\n"),
            (
                "/plans/a/step-1.md",
                "---\ncreated_at: 2026-11-12T12:00:00Z\nattempts:\n  - {at: 2026-11-18T12:00:00Z, outcome: no answer}\n---\n# One\n",
            ),
            (
                "/plans/a/step-2.md",
                "---\nstatus: in_progress\nclaim: {id: \"h4f09a21\", by: ann, at: 2026-11-01T12:00:00Z}\n---\n# Two\n",
            ),
            ("/plans/a/step-3.md", "---\ncreated_at: 2026-11-01T12:00:00Z\ndepends: [1]\n---\n# Three\n"),
            ("/plans/b/plan.md", "---\nstatus: draft\n---\n# B\n"),
            ("/plans/b/step-1.md", "---\ncreated_at: 2026-11-01T12:00:00Z\n---\n# One\n"),
            ("/plans/c/plan.md", "# C\n"),
            ("/plans/c/step-1.md", "---\ncreated_at: 2026-11-20T12:00:00Z\n---\n# One\n"),
        ]);
        let (plan, seconds) = (plan.map(str::to_owned), Some(read_length(seconds).unwrap()));
        let report = stale(&Context::on_model(&machine), &StaleRequest { plan, seconds }).unwrap();
        let found: Vec<_> = report.steps.iter().map(|it| (it.step.id.as_str(), it.why.as_str())).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn steps_are_listed_with_how_long_they_wait() {
        let one = ("a:1", "pending for 9 days, last attempted 3 days ago");
        let two = ("a:2", "in progress for 2 weeks");
        check("7", None, &[two]);
        check("2", None, &[two, one]);
        check("2d", Some("a"), &[two, one]);
        check("12h", Some("c"), &[("c:1", "pending for 1 day")]);
        check("1d", Some("c"), &[]);
        check("3w", None, &[]);
    }

    #[test]
    fn an_invalid_duration_is_refused() {
        for text in ["", "soon", "-3", "7x", "w"] {
            assert_eq!(read_length(text).unwrap_err().code(), "usage", "{text}");
        }
    }
}
