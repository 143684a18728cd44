//! `log PLAN --timeline`: shows for each step when it waited, when it was worked on, and when it was closed.

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;
use serde_json::{Value, json};

use super::{Group, groups};
use crate::api::context::Context;
use crate::api::error::Error;
use crate::api::views::value;
use crate::plan::course::{self, Records, Seen};
use crate::plan::history::{Change, What};
use crate::plan::model::{Plan, Step};
use crate::plan::records::Attempt;
use crate::plan::step_number::StepNumber;
use crate::plan::time::Time;
use crate::plan::words::{Status, StepStatus};
use crate::store::{load, resolve};

pub use crate::plan::course::Span;

/// An attempt at a step, as found in the history.
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
    /// In order of time, without gaps.
    pub spans: Vec<Span>,
    pub attempts: Vec<Try>,
}

#[derive(Debug, Clone)]
pub struct TimelineReport {
    pub plan: String,
    pub title: String,
    /// The earliest time that is known of any step; `to` is the latest.
    pub from: Option<Time>,
    pub to: Option<Time>,
    /// In the order of their numbers.
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

/// Returns the statuses that each step of a plan had over time. Steps that no longer exist are left out.
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

/// A change of a step, in a commit or not committed yet.
struct Done<'a> {
    change: &'a Change,
    /// The time that the file records, else that of the commit or the save.
    at: Time,
    /// The time of the commit or the save. It is used for a status whose own time the file does not record.
    committed_at: Time,
}

fn rows(plan: &Plan, groups: &[Group]) -> BTreeMap<StepNumber, StepTimeline> {
    let mut done: HashMap<StepNumber, Vec<Vec<Done<'_>>>> = HashMap::new();
    let mut names = Names::of(plan);
    for group in groups {
        let mut found: HashMap<StepNumber, Vec<Done<'_>>> = HashMap::new();
        for change in &group.changes {
            let step = change.step.as_ref().and_then(|it| names.now.get(it));
            let times = group.time_of(change).map(|at| (at, group.known_at(change).unwrap_or(at)));
            if let Some((number, (at, committed_at))) = step.cloned().zip(times) {
                found.entry(number).or_default().push(Done { change, at, committed_at });
            }
        }
        found.into_iter().for_each(|(number, changes)| done.entry(number).or_default().push(changes));
        names.before(&group.changes);
    }
    let row = |step: &Step| {
        let mut done = done.remove(&step.id.number).unwrap_or_default();
        // So far, the newest commit is first.
        done.reverse();
        let seen: Vec<Seen> = done.iter().flat_map(|it| seen(it)).collect();
        let tries: Vec<Try> =
            done.iter().flatten().filter(|it| it.change.what == What::Attempt).map(tried).collect();
        let attempts = with_former(&step.attempts, &tries);
        let records = Records {
            status: step.status.word(),
            created_at: step.created_at,
            claim: step.claim.as_deref(),
            attempts: &attempts,
        };
        let row = StepTimeline {
            step: step.id.to_string(),
            title: step.title.clone(),
            status: step.status.word().to_owned(),
            spans: course::spans(&records, &seen),
            attempts: tries,
        };
        (step.id.number.clone(), row)
    };
    plan.steps.iter().map(row).collect()
}

fn tried(it: &Done<'_>) -> Try {
    Try { at: it.at, by: it.change.by.clone(), outcome: it.change.outcome.clone() }
}

/// The attempts in the file, and those that only the history has.
fn with_former(attempts: &[Attempt], tries: &[Try]) -> Vec<Attempt> {
    let is_same = |it: &Attempt, other: &Try| {
        it.at.is_none_or(|at| at.whole_seconds() == other.at) && it.outcome == other.outcome
    };
    let former = tries.iter().filter(|it| !attempts.iter().any(|own| is_same(own, it)));
    let former =
        former.map(|it| Attempt { at: Some(it.at), outcome: it.outcome.clone(), ..Attempt::default() });
    let mut all: Vec<Attempt> = former.chain(attempts.iter().cloned()).collect();
    all.sort_by_key(|it| it.at);
    all
}

/// The statuses that a step got in one group of changes. The time of a status is the one that the file records, else that
/// of the commit or the save.
fn seen(done: &[Done<'_>]) -> Vec<Seen> {
    let status = |it: &Done<'_>| {
        let status = it.change.to.clone()?;
        match it.change.what {
            // A new file records when the step was created. If its status is not pending, the file does not record the time
            // of that status.
            What::Created if status != StepStatus::Pending.word() => {
                Some(Seen { status, at: it.committed_at, is_recorded: false })
            }
            What::Created | What::Status => {
                Some(Seen { status, at: it.at, is_recorded: it.change.at.is_some() })
            }
            _ => None,
        }
    };
    done.iter().filter_map(status).collect()
}

/// The ids that the steps of a plan had at one point in the history.
struct Names {
    plan: String,
    /// The present number of each step. The key is the full id that the step had at that point.
    now: HashMap<String, StepNumber>,
}

impl Names {
    fn of(plan: &Plan) -> Self {
        let now = plan.steps.iter().map(|it| (it.id.to_string(), it.id.number.clone())).collect();
        Self { plan: plan.id.to_string(), now }
    }

    /// Goes back to the ids that the steps had before `changes`. These are the changes of one [`Group`].
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
