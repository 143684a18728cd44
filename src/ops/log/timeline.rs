//! `log PLAN --timeline`: for each step when it waited, was worked on, and was closed.

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;
use serde_json::{Value, json};

use super::{Group, groups};
use crate::api::context::Context;
use crate::api::error::Error;
use crate::api::views::value;
use crate::plan::history::{Change, What};
use crate::plan::model::Plan;
use crate::plan::step_number::StepNumber;
use crate::plan::time::Time;
use crate::store::{load, resolve};

/// A time during which a step had one status.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Span {
    pub status: String,
    pub from: Time,
    /// None: it still has it.
    pub to: Option<Time>,
}

/// A try at a step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Try {
    pub at: Time,
    pub by: Option<String>,
    pub outcome: Option<String>,
}

/// A step's row.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StepTimeline {
    pub step: String,
    pub title: String,
    pub status: String,
    /// In their order, without a gap.
    pub spans: Vec<Span>,
    pub attempts: Vec<Try>,
}

#[derive(Debug, Clone)]
pub struct TimelineReport {
    pub plan: String,
    pub title: String,
    /// From the first to the last time that is known of any step.
    pub from: Option<Time>,
    pub to: Option<Time>,
    /// By number.
    pub steps: Vec<StepTimeline>,
    pub begins_at: Option<String>,
}

impl TimelineReport {
    pub fn to_json(&self) -> Value {
        json!({
            "plan": self.plan, "title": self.title, "from": self.from, "to": self.to,
            "steps": value(&self.steps), "begins_at": self.begins_at,
        })
    }
}

/// Returns when the steps of a plan had which status. Steps that are gone are not shown.
pub fn timeline(context: &Context, plan: &str) -> Result<TimelineReport, Error> {
    let (id, side) = resolve::plan_for_reading(context, plan)?;
    let plan = load::plan_at(context, &id, side)?.ok_or_else(|| load::missing(context, &id))?;
    let (groups, begins_at) = groups(context, None, usize::MAX)?;
    let mut rows = rows(&plan, &groups);
    let steps: Vec<StepTimeline> = plan.steps.iter().filter_map(|it| rows.remove(&it.id.number)).collect();
    let times = |it: &StepTimeline| {
        let spans = it.spans.iter().flat_map(|it| [Some(it.from), it.to]).flatten();
        spans.chain(it.attempts.iter().map(|it| it.at)).collect::<Vec<_>>()
    };
    let times: Vec<Time> = steps.iter().flat_map(times).collect();
    let (from, to) = (times.iter().min().copied(), times.iter().max().copied());
    Ok(TimelineReport { plan: id.to_string(), title: plan.title, from, to, steps, begins_at })
}

fn rows(plan: &Plan, groups: &[Group]) -> BTreeMap<StepNumber, StepTimeline> {
    let mut events: HashMap<StepNumber, Vec<(Time, &Change)>> = HashMap::new();
    let mut names = Names::of(plan);
    for group in groups {
        for change in group.changes.iter().rev() {
            let step = change.step.as_ref().and_then(|it| names.now.get(it));
            if let Some((number, at)) = step.cloned().zip(group.time_of(change)) {
                events.entry(number).or_default().push((at, change));
            }
        }
        names.before(&group.changes);
    }
    let row = |step: &crate::plan::model::Step| {
        let mut events = events.remove(&step.id.number).unwrap_or_default();
        // Newest first until here.
        events.reverse();
        let row = StepTimeline {
            step: step.id.to_string(),
            title: step.title.clone(),
            status: step.status.word().to_owned(),
            spans: spans(&events, step.status.word()),
            attempts: events.iter().filter(|it| it.1.what == What::Attempt).map(tried).collect(),
        };
        (step.id.number.clone(), row)
    };
    plan.steps.iter().map(row).collect()
}

fn tried((at, change): &(Time, &Change)) -> Try {
    Try { at: *at, by: change.by.clone(), outcome: change.outcome.clone() }
}

/// The times of each status, up to the present one. A status never begins before the one that it follows.
fn spans(events: &[(Time, &Change)], now: &str) -> Vec<Span> {
    let mut spans: Vec<Span> = Vec::new();
    for (at, change) in events {
        let is_status = matches!(change.what, What::Created | What::Status);
        let Some(status) = change.to.clone().filter(|_| is_status) else { continue };
        let mut from = *at;
        if let Some(last) = spans.last_mut() {
            from = from.max(last.from);
            last.to = Some(from);
        }
        spans.push(Span { status, from, to: None });
    }
    // A git before 2.35 does not say which of two sides a merge chose.
    if let Some(last) = spans.last_mut().filter(|it| it.status != now) {
        let from = events.last().map_or(last.from, |it| it.0.max(last.from));
        last.to = Some(from);
        spans.push(Span { status: now.to_owned(), from, to: None });
    }
    spans
}

/// What the steps of a plan were called at some time.
struct Names {
    plan: String,
    /// By the full id of that time, the number of today.
    now: HashMap<String, StepNumber>,
}

impl Names {
    fn of(plan: &Plan) -> Self {
        let now = plan.steps.iter().map(|it| (it.id.to_string(), it.id.number.clone())).collect();
        Self { plan: plan.id.to_string(), now }
    }

    /// Goes back before these changes, which one commit made together.
    fn before(&mut self, changes: &[Change]) {
        let moved = changes.iter().filter(|it| it.what == What::Moved && it.step.is_some());
        let moved: Vec<_> = moved.filter_map(|it| Some((it.step.clone()?, it.from.clone()?))).collect();
        let found: Vec<_> =
            moved.into_iter().filter_map(|(to, from)| Some((from, self.now.remove(&to)?))).collect();
        self.now.extend(found);
        let is_plan = |it: &&Change| {
            matches!(it.what, What::Moved | What::Archived | What::Restored)
                && it.step.is_none()
                && it.plan.as_ref() == Some(&self.plan)
        };
        if let Some(from) = changes.iter().find(is_plan).and_then(|it| it.from.clone()) {
            let renamed =
                |(id, number): (String, StepNumber)| match id.strip_prefix(&format!("{}:", self.plan)) {
                    Some(rest) => (format!("{from}:{rest}"), number),
                    None => (id, number),
                };
            self.now = std::mem::take(&mut self.now).into_iter().map(renamed).collect();
            self.plan = from;
        }
    }
}
