//! `stats`: statistics from the plans' files, for example when steps were closed, how often they were tried, and which
//! ready steps wait longest.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Value, json};

use crate::api::context::Context;
use crate::api::error::Error;
use crate::api::staleness;
use crate::api::views::value;
use crate::plan::model::{Plan, Step};
use crate::plan::plans::Plans;
use crate::plan::records::Attempt;
use crate::plan::rules;
use crate::plan::time::Time;
use crate::plan::words::PlanStatus;
use crate::store::load::{self, LoadQuery};
use crate::store::{knowledge, resolve};

pub use crate::api::requests::StatsRequest;

const DAY: i128 = 86_400_000_000_000;
/// The maximum number of waiting steps that are listed.
const LONGEST: usize = 10;
/// If the first and the last week with a closed step are at most this many weeks apart, the weeks between them are listed
/// even if no step was closed in them.
const MOST_WEEKS: i128 = 520;

/// The steps that were closed in a week.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Week {
    /// Its Monday, in UTC.
    pub week: String,
    pub closed: usize,
}

/// The number of steps that had a certain number of tries.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Tries {
    pub tries: usize,
    pub steps: usize,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct OutcomeCount {
    pub outcome: String,
    pub attempts: usize,
}

/// The attempts of one worker, or of all: their number, time and cost.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Effort {
    pub attempts: usize,
    pub completed: usize,
    pub verify_failed: usize,
    pub seconds: i64,
    pub cost: f64,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Worker {
    /// `None`: the attempts do not say who made them.
    pub by: Option<String>,
    #[serde(flatten)]
    pub effort: Effort,
}

/// The time from when a step was ready to when it was closed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Durations {
    /// The number of steps that count: they were closed in the requested period, and both times are recorded and in the
    /// right order.
    pub steps: usize,
    pub median_seconds: Option<i64>,
    pub p90_seconds: Option<i64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct WaitingStep {
    pub id: String,
    pub title: String,
    pub since: Time,
}

#[derive(Debug, Clone)]
pub struct StatsReport {
    pub plan: Option<String>,
    pub since: Option<Time>,
    /// All steps of the plans.
    pub steps: usize,
    /// The steps that are closed now.
    pub closed: usize,
    /// The closed steps whose file does not say when they were closed.
    pub undated: usize,
    pub weeks: Vec<Week>,
    pub ready_to_closed: Durations,
    /// For each number of tries, how many steps had that many. A try is an attempt that [`Attempt::counts_as_try`] counts,
    /// or the attempt that completed the step. Steps without a try are left out, and also steps whose last attempt was made
    /// before `since`.
    pub tries: Vec<Tries>,
    /// The most frequent first.
    pub outcomes: Vec<OutcomeCount>,
    pub total: Effort,
    /// The worker with the most attempts comes first. `None`: the request does not ask for workers.
    pub workers: Option<Vec<Worker>>,
    /// The ready steps that wait longest.
    pub waiting: Vec<WaitingStep>,
}

impl StatsReport {
    pub fn to_json(&self) -> Value {
        json!({
            "plan": self.plan, "since": self.since, "steps": self.steps, "closed": self.closed, "undated": self.undated,
            "weeks": value(&self.weeks), "ready_to_closed": value(&self.ready_to_closed), "tries": value(&self.tries),
            "outcomes": value(&self.outcomes), "total": value(&self.total), "workers": value(&self.workers),
            "waiting": value(&self.waiting),
        })
    }
}

/// Counts over all plans, including archived ones, or over the named plan. If the plan is a program, its children are
/// counted, too.
pub fn stats(context: &Context, request: &StatsRequest) -> Result<StatsReport, Error> {
    let since = request.since.as_deref().map(|it| knowledge::since(it, context.now)).transpose()?;
    let named = request.plan.as_ref().map(|it| resolve::plan(context, it)).transpose()?;
    let plans = match &named {
        Some(id) => LoadQuery::plan(id).load(context)?.plans,
        None => LoadQuery::all().load(context)?.plans,
    };
    if let Some(id) = named.as_ref().filter(|it| plans.get(it).is_none()) {
        return Err(load::missing(context, id));
    }
    let is_asked =
        |it: &&Plan| named.as_ref().is_none_or(|id| it.id == *id || it.program.as_ref() == Some(id));
    let mut count = Count { since, ..Count::default() };
    for plan in plans.iter().filter(is_asked) {
        for step in &plan.steps {
            count.step(&plans, plan, step);
        }
    }
    let mut waiting: Vec<_> =
        plans.live().filter(is_asked).flat_map(|it| waiting(&plans, it, context.now)).collect();
    waiting.sort_unstable_by(|a, b| (a.since, &a.id).cmp(&(b.since, &b.id)));
    waiting.truncate(LONGEST);
    Ok(count.report(named.map(|it| it.to_string()), request.by_agent, waiting))
}

fn waiting(plans: &Plans, plan: &Plan, now: Time) -> Vec<WaitingStep> {
    if !plan.status.is(PlanStatus::Active) {
        return Vec::new();
    }
    let ready = plan.steps.iter().filter(|it| rules::is_ready(plans, plan, it, now));
    let waiting = ready.filter_map(|step| {
        let since = staleness::since(plans, plan, step, now)?.whole_seconds();
        Some(WaitingStep { id: step.id.to_string(), title: step.title.clone(), since })
    });
    waiting.collect()
}

#[derive(Default)]
struct Count {
    since: Option<Time>,
    steps: usize,
    closed: usize,
    undated: usize,
    /// The key is the number of the week.
    weeks: BTreeMap<i128, usize>,
    durations: Vec<i64>,
    tries: BTreeMap<usize, usize>,
    outcomes: BTreeMap<String, usize>,
    total: Effort,
    workers: BTreeMap<Option<String>, Effort>,
}

impl Count {
    fn is_in(&self, at: Option<Time>) -> bool {
        self.since.is_none_or(|since| at.is_some_and(|at| at >= since))
    }

    fn step(&mut self, plans: &Plans, plan: &Plan, step: &Step) {
        self.steps += 1;
        if step.is_closed() {
            self.closed += 1;
            self.closing(plans, plan, step);
        }
        for attempt in step.attempts.iter().filter(|it| self.is_in(it.at)).collect::<Vec<_>>() {
            self.attempt(attempt);
        }
        let last = step.attempts.last().and_then(|it| it.at);
        let is_done = step.closing_attempt().is_some_and(|it| it.outcome.as_deref() == Some("completed"));
        let tries = step.attempts.iter().filter(|it| it.counts_as_try()).count() + usize::from(is_done);
        if tries > 0 && self.is_in(last) {
            *self.tries.entry(tries).or_default() += 1;
        }
    }

    /// Only recorded times count: a file's time changes with every copy.
    fn closing(&mut self, plans: &Plans, plan: &Plan, step: &Step) {
        let recorded = |it: &Step| it.closing_attempt().and_then(|it| it.at);
        let Some(at) = recorded(step) else {
            self.undated += 1;
            return;
        };
        if !self.is_in(Some(at)) {
            return;
        }
        *self.weeks.entry((at.as_nanoseconds().div_euclid(DAY) + 3).div_euclid(7)).or_default() += 1;
        let before = rules::dependencies(plans, plan, step).filter_map(recorded).max();
        let ready = step.created_at.max(before);
        self.durations.extend(ready.map(|it| at.seconds_since(it)).filter(|it| *it >= 0));
    }

    fn attempt(&mut self, attempt: &Attempt) {
        let outcome = attempt.outcome.clone().unwrap_or_else(|| "none".to_owned());
        let number = |key: &str| {
            let it = attempt.more.get(key)?;
            let read = it.as_f64().or_else(|| it.as_str()?.parse().ok());
            read.filter(|it| it.is_finite() && *it >= 0.0)
        };
        let seconds = attempt.more.get("seconds").and_then(Value::as_i64).filter(|it| *it >= 0).unwrap_or(0);
        let by = self.workers.entry(attempt.by.clone()).or_default();
        for effort in [&mut self.total, by] {
            effort.attempts += 1;
            effort.completed += usize::from(outcome == "completed");
            effort.verify_failed += usize::from(outcome == "verify failed");
            effort.seconds = effort.seconds.saturating_add(seconds);
            effort.cost += number("cost").unwrap_or(0.0);
        }
        *self.outcomes.entry(outcome).or_default() += 1;
    }

    fn report(mut self, plan: Option<String>, by_agent: bool, waiting: Vec<WaitingStep>) -> StatsReport {
        self.durations.sort_unstable();
        let mut outcomes: Vec<_> =
            self.outcomes.into_iter().map(|(outcome, attempts)| OutcomeCount { outcome, attempts }).collect();
        outcomes.sort_by_key(|it| std::cmp::Reverse(it.attempts));
        let mut workers: Vec<_> =
            self.workers.into_iter().map(|(by, effort)| Worker { by, effort: rounded(&effort) }).collect();
        workers.sort_by_key(|it| std::cmp::Reverse(it.effort.attempts));
        StatsReport {
            plan,
            since: self.since.map(Time::whole_seconds),
            steps: self.steps,
            closed: self.closed,
            undated: self.undated,
            weeks: weeks(&self.weeks),
            ready_to_closed: Durations {
                steps: self.durations.len(),
                median_seconds: share(&self.durations, 50),
                p90_seconds: share(&self.durations, 90),
            },
            tries: self.tries.into_iter().map(|(tries, steps)| Tries { tries, steps }).collect(),
            outcomes,
            total: rounded(&self.total),
            workers: by_agent.then_some(workers),
            waiting,
        }
    }
}

/// Rounds the cost, because adding many small numbers makes inexact digits.
fn rounded(effort: &Effort) -> Effort {
    Effort { cost: (effort.cost * 1e6).round() / 1e6, ..*effort }
}

/// The weeks in chronological order. [`MOST_WEEKS`] decides whether weeks without a closed step are listed.
fn weeks(closed: &BTreeMap<i128, usize>) -> Vec<Week> {
    let monday = |week: i128| {
        let text = Time::from_nanoseconds((week * 7 - 3) * DAY).to_string();
        text.get(..10).unwrap_or(&text).to_owned()
    };
    let (Some(first), Some(last)) = (closed.keys().next(), closed.keys().last()) else { return Vec::new() };
    let listed: Vec<i128> = if last - first <= MOST_WEEKS {
        (*first..=*last).collect()
    } else {
        closed.keys().copied().collect()
    };
    let week = |it: &i128| Week { week: monday(*it), closed: closed.get(it).copied().unwrap_or(0) };
    listed.iter().map(week).collect()
}

/// A percentile of the sorted values, by the nearest-rank method.
fn share(sorted: &[i64], percent: usize) -> Option<i64> {
    let nth = (sorted.len() * percent).div_ceil(100).max(1);
    sorted.get(nth - 1).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::model::Machine;

    fn report(since: Option<&str>) -> StatsReport {
        let machine = Machine::with(&[
            ("/plans/a/plan.md", "# A\n"),
            (
                "/plans/a/step-1.md",
                "---\nstatus: completed\ncreated_at: 2026-11-01T00:00:00Z\nattempts:\n  - {at: 2026-11-02T00:00:00Z, by: x, outcome: verify failed, claim: h4f09a21, seconds: 10, cost: 0.1}\n  - {at: 2026-11-03T00:00:00Z, by: x, outcome: completed, seconds: 5, cost: 0.2}\n---\n# One\n",
            ),
            (
                "/plans/a/step-2.md",
                "---\nstatus: skipped\ncreated_at: 2026-11-01T00:00:00Z\ndepends: [1]\nattempts:\n  - {at: 2026-11-16T00:00:00Z, by: ann, outcome: skipped}\n---\n# Two\n",
            ),
            ("/plans/a/step-3.md", "---\nstatus: completed\n---\n# Three\n"),
            ("/plans/a/step-4.md", "---\ncreated_at: 2026-11-10T00:00:00Z\ndepends: [1]\n---\n# Four\n"),
        ]);
        let since = since.map(str::to_owned);
        stats(&Context::on_model(&machine), &StatsRequest { plan: None, since, by_agent: true }).unwrap()
    }

    #[test]
    fn closed_steps_tries_and_workers_are_counted() {
        let it = report(None);
        assert_eq!((it.steps, it.closed, it.undated), (4, 3, 1));
        let weeks: Vec<_> = it.weeks.iter().map(|it| (it.week.as_str(), it.closed)).collect();
        assert_eq!(weeks, [("2026-11-02", 1), ("2026-11-09", 0), ("2026-11-16", 1)]);
        let of = Durations { steps: 2, median_seconds: Some(2 * 86_400), p90_seconds: Some(13 * 86_400) };
        assert_eq!(it.ready_to_closed, of);
        assert_eq!(it.tries, [Tries { tries: 2, steps: 1 }]);
        let x = Effort { attempts: 2, completed: 1, verify_failed: 1, seconds: 15, cost: 0.3 };
        assert_eq!(it.workers.as_ref().unwrap()[0], Worker { by: Some("x".to_owned()), effort: x });
        assert_eq!((it.total.attempts, it.total.cost), (3, 0.3));
        let waiting: Vec<_> = it.waiting.iter().map(|it| it.id.as_str()).collect();
        assert_eq!(waiting, ["a:4"]);
    }

    #[test]
    fn since_leaves_out_earlier_attempts() {
        let it = report(Some("2026-11-10"));
        assert_eq!((it.weeks.len(), it.total.attempts, it.ready_to_closed.steps), (1, 1, 1));
        assert_eq!((it.closed, it.tries), (3, vec![]));
    }

    #[test]
    fn a_share_is_one_of_the_values() {
        let values: Vec<i64> = (1..=10).collect();
        assert_eq!([0, 50, 90, 100].map(|it| share(&values, it)), [Some(1), Some(5), Some(9), Some(10)]);
        assert_eq!((share(&[7], 50), share(&[], 50)), (Some(7), None));
    }
}
