//! Which steps are ready, which one is next, and why: pure functions over plans in memory.

mod waiting;

use std::cmp::{Ordering, Reverse};
use std::collections::{BinaryHeap, HashSet};

use crate::plan::claims::{HeldClaim, InForce};
use crate::plan::id::{PlanId, StepId};
use crate::plan::model::{Order, Plan, PlanKind, Step};
use crate::plan::plans::Plans;
use crate::plan::problem::Code;
use crate::plan::ranges::MOST_SPELLED_OUT;
use crate::plan::records::{Confirmation, Priority};
use crate::plan::time::Time;
use crate::plan::words::{PlanStatus, Stated, StepStatus};

use waiting::Waiting;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Obstacle {
    /// A dependency that is not closed; the status is `None` if the step does not exist.
    Dependency {
        step: StepId,
        status: Option<String>,
    },
    /// The plan is sequential, and the preceding step, which is `step`, is not closed.
    Before {
        step: StepId,
    },
    Confirmation,
    PhaseConfirmation {
        phase: String,
    },
    Faulty {
        code: &'static str,
    },
    PlanFaulty,
    /// The plan is archived or its status is not `active`, so its steps cannot be claimed.
    PlanClosed,
    Claimed {
        by: Option<String>,
    },
    /// The step's status, which is [`NOT_VERIFIED`] or any other status except `pending` and `in_progress`.
    Status(String),
}

impl Obstacle {
    /// The step that has to be closed first, if the obstacle is a step.
    pub fn step(&self) -> Option<&StepId> {
        match self {
            Self::Dependency { step, .. } | Self::Before { step } => Some(step),
            _ => None,
        }
    }
}

const HAS_ERROR: &str = "plan.md has an error; `check` names it";

/// The shown status of a completed step whose run ended before verifying it.
pub const NOT_VERIFIED: &str = "completed (not verified)";

pub fn is_lapsed(plans: &Plans, step: &Step, now: Time) -> bool {
    plans.claims().lapse(step, now).is_some()
}

/// Whether the claim of a step in progress has lapsed, and no other recorded claim on the step is in force.
pub fn is_free_again(plans: &Plans, step: &Step, now: Time) -> bool {
    is_lapsed(plans, step, now) && plans.claims().holder(step).and_then(InForce::of).is_none()
}

/// Returns the obstacles of a step; empty if it is ready.
pub fn obstacles(plans: &Plans, plan: &Plan, step: &Step, now: Time) -> Vec<Obstacle> {
    let mut found = Vec::new();
    match step.standing().known() {
        Some(StepStatus::Pending) => {}
        _ if step.is_unverified() => found.push(Obstacle::Status(NOT_VERIFIED.to_owned())),
        Some(StepStatus::InProgress) if is_lapsed(plans, step, now) => {}
        Some(StepStatus::InProgress) => {
            found.push(Obstacle::Claimed { by: step.claim.as_ref().and_then(|it| it.by.clone()) });
        }
        _ => found.push(Obstacle::Status(step.status.word().to_owned())),
    }
    // `holder` is a claim that is not in the file: it was made elsewhere, or the file lost it.
    let holder = plans.claims().holder(step).filter(|_| found.is_empty());
    found.extend(holder.map(|it| Obstacle::Claimed { by: it.by.clone() }));
    found.extend(
        step.problems
            .iter()
            .find(|it| it.code.severity() == crate::plan::problem::Severity::Error)
            .map(|it| Obstacle::Faulty { code: it.code.text() }),
    );
    if !step.has_file() {
        found.push(Obstacle::Faulty { code: "missing-step-file" });
    }
    if plan.is_faulty() {
        found.push(Obstacle::PlanFaulty);
    }
    if plan.is_archived || !plan.status.is(PlanStatus::Active) {
        found.push(Obstacle::PlanClosed);
    }
    found.extend(open_dependencies(plans, plan, step));
    found.extend(missing_confirmation(plan, step));
    found
}

pub fn is_ready(plans: &Plans, plan: &Plan, step: &Step, now: Time) -> bool {
    let is_open = match step.status.known() {
        Some(StepStatus::Pending) => true,
        Some(StepStatus::InProgress) => is_lapsed(plans, step, now),
        _ => false,
    };
    // Most steps are closed or waiting, so the first two conditions decide, and `obstacles` is rarely called.
    is_open && !waits(plans, plan, step) && obstacles(plans, plan, step, now).is_empty()
}

/// Whether there are [`open_dependencies`].
fn waits(plans: &Plans, plan: &Plan, step: &Step) -> bool {
    let is_closed = |id: &StepId| dependency(plans, plan, id).is_some_and(Step::is_closed);
    !step.depends.iter().all(is_closed)
        || open_before(plan, step).is_some()
        || !plans.open_in_ranges(plan, step, 1).is_empty()
}

/// Returns the dependencies that are not closed. In a sequential plan, the preceding step counts as a dependency.
///
/// Of the open steps in ranges, only the first [`MOST_SPELLED_OUT`] are returned.
pub fn open_dependencies(plans: &Plans, plan: &Plan, step: &Step) -> Vec<Obstacle> {
    let status = |it: &Step| it.status.word().to_owned();
    let open = open_dependency_ids(plans, plan, step)
        .map(|(id, found)| Obstacle::Dependency { step: id.clone(), status: found.map(status) });
    let before = open_unnamed_before(plan, step).map(|it| Obstacle::Before { step: it.id.clone() });
    open.chain(before).collect()
}

/// Returns the ids of [`open_dependencies`] without copying them: a dense plan has hundreds of thousands of
/// dependencies.
pub fn waited_for<'a>(plans: &'a Plans, plan: &'a Plan, step: &'a Step) -> impl Iterator<Item = &'a StepId> {
    let before = open_unnamed_before(plan, step).map(|it| &it.id);
    open_dependency_ids(plans, plan, step).map(|(id, _)| id).chain(before)
}

/// Returns the open dependencies of a step with their ids; `None` for a dependency that does not exist. Of the steps in its
/// ranges, at most [`MOST_SPELLED_OUT`] are returned.
pub(crate) fn open_dependency_ids<'a>(
    plans: &'a Plans,
    plan: &'a Plan,
    step: &'a Step,
) -> impl Iterator<Item = (&'a StepId, Option<&'a Step>)> {
    let is_in_range = |id: &StepId| step.has_in_range(id) && plan.find(id).is_some();
    let named = step.depends.iter().map(move |id| (id, dependency(plans, plan, id)));
    let open = named.filter(|(_, found)| found.is_none_or(|it| !it.is_closed()));
    let in_ranges = plans.open_in_ranges(plan, step, MOST_SPELLED_OUT).into_iter();
    open.filter(move |(id, _)| !is_in_range(id)).chain(in_ranges.map(|it| (&it.id, Some(it))))
}

fn open_before<'a>(plan: &'a Plan, step: &Step) -> Option<&'a Step> {
    plan.before(step).filter(|it| !it.is_closed())
}

/// Like [`open_before`]; `None` if that step is also a dependency, by its id or in a range.
fn open_unnamed_before<'a>(plan: &'a Plan, step: &Step) -> Option<&'a Step> {
    open_before(plan, step).filter(|it| !step.depends.contains(&it.id) && !step.has_in_range(&it.id))
}

/// Returns the existing steps that a step depends on. In a sequential plan, the preceding step counts as a dependency.
pub fn dependencies<'a>(plans: &'a Plans, plan: &'a Plan, step: &'a Step) -> impl Iterator<Item = &'a Step> {
    let held = step.ranges.iter().flat_map(|it| &plan.steps[plan.places_in(it)]);
    let named = step.depends.iter().filter_map(move |it| dependency(plans, plan, it));
    named.chain(held).chain(plan.before(step))
}

/// Finds a dependency of a step of `plan`. If the id names that plan, the step is looked up in `plan` itself, even if
/// `plan` is archived and a live plan has the same id.
fn dependency<'a>(plans: &'a Plans, plan: &'a Plan, id: &StepId) -> Option<&'a Step> {
    if id.plan == plan.id { plan.find(id) } else { plans.step(id) }
}

/// Returns whether the step or its phase requires a confirmation, even if it has already been given. Also returns the
/// confirmation. The confirmation is `None` if there is none, or if the step is confirmed but its phase still has to be.
pub fn confirmation<'a>(plan: &'a Plan, step: &'a Step) -> (bool, Option<&'a Confirmation>) {
    let phase = step.phase.as_ref();
    let is_gated = step.needs_confirmation || phase.is_some_and(|it| plan.confirm_phases.contains(it));
    let mut of_phase = plan.confirmations.iter().filter(|it| phase.is_some() && it.phase.as_ref() == phase);
    let given = step.confirmed.as_deref().or(of_phase.next_back());
    (is_gated, given.filter(|_| missing_confirmation(plan, step).is_none()))
}

/// Returns the confirmation that is missing, if one is.
pub fn missing_confirmation(plan: &Plan, step: &Step) -> Option<Obstacle> {
    let confirmed = |phase: &String| plan.confirmations.iter().any(|it| it.phase.as_ref() == Some(phase));
    let phase = step.phase.as_ref();
    if let Some(phase) = phase.filter(|it| plan.confirm_phases.contains(it) && !confirmed(it)) {
        return Some(Obstacle::PhaseConfirmation { phase: phase.clone() });
    }
    let is_given = step.confirmed.is_some() || phase.is_some_and(confirmed);
    (step.needs_confirmation && !is_given).then_some(Obstacle::Confirmation)
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Progress {
    pub total: usize,
    pub completed: usize,
    pub skipped: usize,
    pub failed: usize,
    pub blocked: usize,
    /// Including steps whose claim has lapsed.
    pub in_progress: usize,
    /// Including steps whose claim has lapsed.
    pub ready: usize,
    pub lapsed: usize,
    pub lapsed_ready: usize,
}

impl Progress {
    pub fn closed(&self) -> usize {
        self.completed + self.skipped
    }
}

/// Counts a plan's steps. For a program that is not archived, the steps of its children count, too. Of its archived
/// children, only the closed steps count, because the open ones cannot be claimed.
pub fn progress(plans: &Plans, plan: &Plan, now: Time) -> Progress {
    let mut sum = own_progress(plans, plan, now);
    if plan.kind == PlanKind::Program && !plan.is_archived {
        for child in plans.children(&plan.id) {
            let child = own_progress(plans, child, now);
            sum.total += child.total;
            sum.completed += child.completed;
            sum.skipped += child.skipped;
            sum.failed += child.failed;
            sum.blocked += child.blocked;
            sum.in_progress += child.in_progress;
            sum.ready += child.ready;
            sum.lapsed += child.lapsed;
            sum.lapsed_ready += child.lapsed_ready;
        }
        for child in plans.archived_children(&plan.id) {
            let child = own_progress(plans, child, now);
            sum.total += child.closed();
            sum.completed += child.completed;
            sum.skipped += child.skipped;
        }
    }
    sum
}

fn own_progress(plans: &Plans, plan: &Plan, now: Time) -> Progress {
    let (mut sum, mut others) = (Progress { total: plan.steps.len(), ..Progress::default() }, 0);
    for step in &plan.steps {
        let count = match step.standing().known() {
            Some(StepStatus::Completed) => &mut sum.completed,
            Some(StepStatus::Skipped) => &mut sum.skipped,
            Some(StepStatus::Failed) => &mut sum.failed,
            Some(StepStatus::Blocked) => &mut sum.blocked,
            Some(StepStatus::InProgress) => &mut sum.in_progress,
            Some(StepStatus::Pending) | None => &mut others,
        };
        *count += 1;
        let is_ready = is_ready(plans, plan, step, now);
        let is_lapsed = step.standing().is(StepStatus::InProgress) && is_free_again(plans, step, now);
        sum.ready += usize::from(is_ready);
        sum.lapsed += usize::from(is_lapsed);
        sum.lapsed_ready += usize::from(is_lapsed && is_ready);
    }
    sum
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    Next,
    /// No step can be claimed, and at least one is in progress, or was closed elsewhere and is not merged here.
    Waiting,
    /// No step can be claimed, and none is in progress. For example, the open steps depend on a step that failed, is blocked
    /// or has an error in its file. Steps whose claim has lapsed and completed steps that are not verified do not count as
    /// in progress here.
    Blocked,
    Draft,
    Complete,
    Abandoned,
    Empty,
}

impl State {
    pub const ALL: [Self; 7] =
        [Self::Next, Self::Waiting, Self::Blocked, Self::Draft, Self::Complete, Self::Abandoned, Self::Empty];

    pub fn word(self) -> &'static str {
        match self {
            Self::Next => "next",
            Self::Waiting => "waiting",
            Self::Blocked => "blocked",
            Self::Draft => "draft",
            Self::Complete => "complete",
            Self::Abandoned => "abandoned",
            Self::Empty => "empty",
        }
    }
}

#[derive(Debug, Clone)]
pub struct Next<'a> {
    pub plan: &'a Plan,
    pub state: State,
    pub step: Option<&'a Step>,
    /// A sentence without a full stop.
    pub why: String,
}

/// Returns the state that `next` reports for a plan.
///
/// For a program, considers the program itself and its children, except plans that are known to have no steps, and returns
/// the state that comes first in [`State`]. The children of an archived program do not count. A program whose children are
/// all archived is complete if any step of them is closed.
pub fn state(plans: &Plans, plan: &Plan, now: Time) -> State {
    if plan.kind != PlanKind::Program || plan.is_archived {
        return next(plans, plan, now).state;
    }
    let asked = std::iter::once(plan).chain(plans.children(&plan.id)).filter(|it| it.may_have_steps());
    let is_finished = || {
        let mut archived = plans.archived_children(&plan.id).flat_map(|it| &it.steps);
        plans.children(&plan.id).next().is_none() && archived.any(Step::is_closed)
    };
    let states = asked.map(|it| next(plans, it, now).state);
    states.min().unwrap_or_else(|| if is_finished() { State::Complete } else { State::Empty })
}

/// Returns a plan's ready step with the lowest number, or the reason why there is none. A step that is given up
/// (`Claims::is_given_up`) is not returned.
pub fn next<'a>(plans: &'a Plans, plan: &'a Plan, now: Time) -> Next<'a> {
    let answer = |state, step, why| Next { plan, state, step, why };
    if let Some((state, why)) = closed_state(plan) {
        return answer(state, None, why);
    }
    let ready = || plan.steps.iter().filter(|it| is_ready(plans, plan, it, now));
    if let Some(step) = ready().find(|it| !plans.claims().is_given_up(it, now)) {
        return answer(State::Next, Some(step), why_ready(plans, plan, step, now));
    }
    let held = || plan.steps.iter().filter(|it| !plans.claims().is_given_up(it, now));
    let names: Vec<_> = held().filter_map(|it| worked_on(plans, plan, it, now)).collect();
    let are = if names.len() == 1 { "is" } else { "are" };
    let busy = (!names.is_empty()).then(|| format!("{} {are} in progress", list("step", &names)));
    let end = |it| only_holder(plans, plan, it, now)?.unmerged_end();
    let ended = held().filter_map(|it| Some(format!("step {} {}", it.id.number, end(it)?)));
    let waiting: Vec<_> = busy.into_iter().chain(ended).collect();
    if !waiting.is_empty() {
        return answer(State::Waiting, None, joined(waiting));
    }
    let given_up: Vec<_> = ready().map(|it| it.id.number.to_string()).collect();
    if !given_up.is_empty() {
        let (have, its) = if given_up.len() == 1 { ("has", "its") } else { ("have", "their") };
        let why = format!("{} {have} used all {its} attempts", list("step", &given_up));
        return answer(State::Blocked, None, why);
    }
    answer(State::Blocked, None, why_blocked(plans, plan, now))
}

/// Returns the recorded claim that is the only obstacle of a step.
fn only_holder<'a>(plans: &'a Plans, plan: &Plan, step: &Step, now: Time) -> Option<&'a HeldClaim> {
    let is_only =
        || obstacles(plans, plan, step, now).iter().all(|it| matches!(it, Obstacle::Claimed { .. }));
    plans.claims().holder(step).filter(|_| is_only())
}

/// Returns the number and worker of a step, as in `1 (ann)`, or only the number if the worker is unknown.
///
/// Returns `None` unless the step is in progress or a claim is its only obstacle. Also returns `None` if that claim's work
/// has ended and is not merged here, if the step's claim has lapsed and no other claim on the step is in force, or if the
/// step is completed but not verified.
fn worked_on(plans: &Plans, plan: &Plan, step: &Step, now: Time) -> Option<String> {
    let by = match only_holder(plans, plan, step, now) {
        Some(held) if held.unmerged_end().is_some() => return None,
        Some(held) => held.by.as_deref(),
        _ if step.is_unverified() || is_free_again(plans, step, now) => return None,
        _ if step.standing().is(StepStatus::InProgress) => {
            step.claim.as_ref().and_then(|it| it.by.as_deref())
        }
        _ => return None,
    };
    let number = &step.id.number;
    Some(by.map_or_else(|| number.to_string(), |by| format!("{number} ({by})")))
}

fn closed_state(plan: &Plan) -> Option<(State, String)> {
    if plan.is_archived {
        return Some((State::Abandoned, "the plan is archived".to_owned()));
    }
    let found = match &plan.status {
        Stated::Known(PlanStatus::Draft) => (State::Draft, "the plan is a draft".to_owned()),
        Stated::Known(PlanStatus::Abandoned) => (State::Abandoned, "the plan is abandoned".to_owned()),
        Stated::Known(PlanStatus::Completed) => (State::Complete, "the plan is completed".to_owned()),
        // If the directory cannot be read, the steps are not known.
        _ if plan.steps.is_empty() && plan.is_faulty() => (State::Blocked, HAS_ERROR.to_owned()),
        _ if plan.steps.is_empty() => (State::Empty, "the plan has no steps".to_owned()),
        _ if plan.steps.iter().all(Step::is_closed) => {
            (State::Complete, "all steps are completed or skipped".to_owned())
        }
        _ => return None,
    };
    Some(found)
}

/// Says why a step is ready.
pub fn why_ready(plans: &Plans, plan: &Plan, step: &Step, now: Time) -> String {
    if is_lapsed(plans, step, now) {
        let by = step.claim.as_ref().and_then(|it| it.by.as_deref()).unwrap_or("another worker");
        return format!("the claim of {by} has lapsed");
    }
    let named = step.depends.iter().filter(|it| !step.has_in_range(it));
    let named = named.map(|it| if it.plan == plan.id { it.number.to_string() } else { it.to_string() });
    let ranges = step.ranges.iter().map(|it| format!("{} to {}", it.first, it.last));
    let closed = ranges.chain(named).collect::<Vec<_>>();
    let why = match (closed.len() + step.ranges.len(), plan.order) {
        (0, Order::Sequential) if plan.steps.first().is_some_and(|it| it.id == step.id) => {
            "it is the first step".to_owned()
        }
        (0, Order::Sequential) => "the steps before it are closed".to_owned(),
        (0, Order::Dependencies) => "it depends on nothing".to_owned(),
        (1, _) => format!("{}, which it depends on, is closed", list("step", &closed)),
        (_, _) => format!("{}, which it depends on, are closed", list("step", &closed)),
    };
    // A problem from the Steps list has the path of `plan.md`. Such a problem is ignored, because it has this code only if
    // the step's front matter has `depends`, and then the list does not count.
    let unclear =
        step.problems.iter().find(|it| it.code == Code::DependenciesUnclear && it.path == step.path);
    unclear.map_or_else(|| why.clone(), |it| format!("{why}, but {}", it.message))
}

/// Names at most one obstacle of each open step. An obstacle that several steps have is named once. After five
/// obstacles, only the number of the others follows. Dependencies on steps of the same plan are left out, and so are claims.
fn why_blocked(plans: &Plans, plan: &Plan, now: Time) -> String {
    if plan.is_faulty() {
        return HAS_ERROR.to_owned();
    }
    let open = plan.steps.iter().filter(|it| !it.is_closed());
    let reasons = open.filter_map(|step| {
        let number = &step.id.number;
        obstacles(plans, plan, step, now).into_iter().find_map(|it| match it {
            Obstacle::Faulty { code } => Some(format!("step {number} has the problem {code}")),
            Obstacle::Status(_) if step.is_faulty() => None,
            Obstacle::Status(word) if word == "failed" => Some(format!("step {number} has failed")),
            Obstacle::Status(word) => Some(format!("step {number} is {word}")),
            Obstacle::Confirmation => Some(format!("step {number} waits for a confirmation")),
            Obstacle::PhaseConfirmation { phase } => Some(format!("phase {phase} waits for a confirmation")),
            Obstacle::Dependency { step: id, .. } if id.plan != plan.id => {
                Some(format!("step {number} waits for {id}"))
            }
            _ => None,
        })
    });
    let mut seen = HashSet::new();
    let reasons: Vec<_> = reasons.filter(|it| seen.insert(it.clone())).collect();
    if reasons.is_empty() { why_first_waits(plans, plan, now) } else { joined(reasons) }
}

/// Finds the first open step that waits for another step, and names both. Both are in this plan, because `why_blocked` has
/// already named dependencies on other plans.
fn why_first_waits(plans: &Plans, plan: &Plan, now: Time) -> String {
    let waits = |step: &Step| {
        let on =
            obstacles(plans, plan, step, now).iter().find_map(|it| it.step().map(|it| it.number.clone()));
        Some(format!("step {} waits for {}", step.id.number, on?))
    };
    let found = plan.steps.iter().filter(|it| !it.is_closed()).find_map(waits);
    found.unwrap_or_else(|| "no open step is ready".to_owned())
}

/// Joins the first five reasons, and says how many more there are.
fn joined(mut reasons: Vec<String>) -> String {
    let more = reasons.len().saturating_sub(5);
    reasons.truncate(5);
    let why = reasons.join("; ");
    if more > 0 { format!("{why}; and {more} more") } else { why }
}

/// Returns `step 1` or `steps 1, 2`.
fn list(noun: &str, names: &[String]) -> String {
    let plural = if names.len() == 1 && !names[0].contains(" to ") { "" } else { "s" };
    format!("{noun}{plural} {}", names.join(", "))
}

/// Returns each active plan's next step, most urgent first.
///
/// The order is by priority (the step's own, else its plan's), then by how many open steps wait for the step, then by
/// age, then by the plan's name.
pub fn candidates<'a>(plans: &'a Plans, now: Time) -> Vec<Ranked<'a>> {
    let waiting = Waiting::of(plans);
    let ranked = |it: Next<'a>| {
        let (plan, step) = (it.plan, it.step?);
        Some(Ranked { plan, step, why: it.why, rank: rank(plan, step, &waiting) })
    };
    let mut found: Vec<_> = plans.live().filter_map(|it| ranked(next(plans, it, now))).collect();
    found.sort_by(|a, b| a.rank.cmp(&b.rank));
    found
}

/// The next step of a plan, to be compared with those of other plans.
#[derive(Debug, Clone)]
pub struct Ranked<'a> {
    pub plan: &'a Plan,
    pub step: &'a Step,
    /// See [`Next::why`].
    pub why: String,
    rank: Rank,
}

/// Returns the ready steps of the selected plans in the order in which workers get them.
///
/// Equivalent to calling [`candidates`] repeatedly and each time putting its first step in progress, except that steps
/// that are given up (`Claims::is_given_up`) are included.
pub fn in_turn(plans: &Plans, now: Time, is_asked: impl Fn(&Plan) -> bool) -> impl Iterator<Item = Turn<'_>> {
    let waiting = Waiting::of(plans);
    let asked = plans.live().filter(|it| is_asked(it) && closed_state(it).is_none());
    let mut rest: Vec<_> = asked
        .map(|plan| (plan, plan.steps.iter().filter(move |step| is_ready(plans, plan, step, now))))
        .collect();
    let mut first = BinaryHeap::new();
    let turn = move |at, plan, step| Reverse(Turn { rank: rank(plan, step, &waiting), at, step });
    for (at, (plan, steps)) in rest.iter_mut().enumerate() {
        first.extend(steps.next().map(|step| turn(at, plan, step)));
    }
    std::iter::from_fn(move || {
        let Reverse(found) = first.pop()?;
        let (plan, steps) = &mut rest[found.at];
        first.extend(steps.next().map(|step| turn(found.at, plan, step)));
        Some(found)
    })
}

/// A ready step, ordered among those of all selected plans; the smallest one is claimed first.
pub struct Turn<'a> {
    rank: Rank,
    /// The index of the step's plan among the selected plans.
    pub at: usize,
    pub step: &'a Step,
}

impl Ord for Turn<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        (&self.rank, self.at).cmp(&(&other.rank, other.at))
    }
}

impl PartialOrd for Turn<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Turn<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Turn<'_> {}

/// Explains why the first candidate comes before the second; `None` if there is no second one, or if only the plan's name
/// decides.
pub fn why_first(found: &[Ranked<'_>]) -> Option<String> {
    let [Ranked { rank: a, .. }, Ranked { rank: b, .. }, ..] = found else { return None };
    let because = match (a.0 != b.0, a.1 != b.1, a.2 != b.2) {
        (true, _, _) => format!("its priority is {}", a.0.0.word()),
        (_, true, _) if a.1.0 == 1 => "an open step waits for it".to_owned(),
        (_, true, _) => format!("{} open steps wait for it", a.1.0),
        (_, _, true) => "it is the oldest".to_owned(),
        _ => return None,
    };
    Some(format!("first of {} plans, because {because}", found.len()))
}

type Rank = (Reverse<Priority>, Reverse<usize>, Option<Time>, PlanId);

fn rank(plan: &Plan, step: &Step, waiting: &Waiting<'_>) -> Rank {
    let priority = step.priority.unwrap_or(plan.priority);
    let age = step.created_at.or(plan.created_at).or(step.modified);
    (Reverse(priority), Reverse(waiting.count(&step.id)), age, plan.id.clone())
}

#[cfg(test)]
mod tests;
