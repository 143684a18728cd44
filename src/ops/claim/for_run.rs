//! Claims a step of a plan, or of a program's plans, for a run.
//!
//! A step is left out if it might change the same files as another step that a live run of this working tree works on.

use std::collections::HashSet;

use super::{begin, fresh_id, shared, withdraw_unless_made};

use crate::api::context::Context;
use crate::api::error::Error;
use crate::disk::Process;
use crate::plan::id::{PlanId, StepId};
use crate::plan::model::{Plan, PlanKind, Step};
use crate::plan::plans::Plans;
use crate::plan::rules::{self, Obstacle};
use crate::plan::words::StepStatus;
use crate::plan::{change, touches};
use crate::store::decision::Decision;
use crate::store::fencing;
use crate::store::leases::{Effect, Leases, Locked, NewRecord, RunRecord, Sharing};
use crate::store::load::{self, DecisionFiles, LoadQuery};
use crate::store::resolve::NamedStep;
use crate::store::step_file::{self, StepUpdate};
use crate::store::sync::state::FileBefore;
use crate::store::transaction::{Mode, Transaction, is_half_saved, once_saved};

pub(crate) struct RunAsk<'a> {
    pub(crate) plan: &'a PlanId,
    pub(crate) by: &'a str,
    /// In seconds. It applies only if other processes cannot see whether the run's process is alive.
    pub(crate) lease: i64,
    pub(crate) process: Option<&'a Process>,
    /// Steps to leave out.
    pub(crate) skip: HashSet<StepId>,
    /// Called for a step before anything is written. An error ends the claim.
    pub(crate) check: &'a dyn Fn(&Step) -> Result<(), Error>,
}

/// What a run has to do for a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Task {
    Work,
    /// The step was completed under a run that died before the `verify` commands had succeeded.
    Verify,
}

/// A step that the run has claimed.
#[derive(Debug, Clone)]
pub(crate) struct Begun {
    pub(crate) task: Task,
    pub(crate) claim: String,
    /// The path of the log of the worker's output, relative to the plans directory.
    pub(crate) log: String,
    /// The step after the claim was written.
    pub(crate) step: Step,
    pub(crate) why: String,
    /// The step's file before the claim; none if it did not exist.
    pub(crate) file: Option<FileBefore>,
}

pub(crate) enum RunClaim {
    Begun(Box<Begun>),
    /// No step could be claimed. Either a ready step might change the same files as a step of a live run, or other machines
    /// claimed each candidate first.
    Busy,
    /// The step had too many failed or lapsed attempts; its status is now `failed`.
    Failed(StepId),
    Nothing,
    /// The registry of the shared claims does not answer.
    Unreachable(String),
}

/// Claims the first step that a run may begin now. Waits for saves in progress.
pub(crate) fn claim_for_run(context: &Context, ask: &RunAsk<'_>) -> Result<RunClaim, Error> {
    if context.config.sync.is_some() {
        return shared::claim_for_run(context, ask);
    }
    claim_locally(context, ask, &ask.skip)
}

/// Like [`claim_for_run`], but without the registry.
pub(super) fn claim_locally(
    context: &Context,
    ask: &RunAsk<'_>,
    skip: &HashSet<StepId>,
) -> Result<RunClaim, Error> {
    once_saved(context, || claim_now(context, ask, skip))
}

fn claim_now(context: &Context, ask: &RunAsk<'_>, skip: &HashSet<StepId>) -> Result<RunClaim, Error> {
    let mut wanted = wanted(context, ask.plan)?;
    if wanted.is_empty() {
        // The run may end here, so a step must not be missed because its file is being saved.
        let plans = LoadQuery::plan(ask.plan).settled(DecisionFiles::Plan(ask.plan)).load(context)?.plans;
        wanted = wanted_in(context, ask.plan, plans)?;
    }
    wanted.retain(|it| !skip.contains(&it.id));
    if wanted.is_empty() {
        return Ok(RunClaim::Nothing);
    }
    let (mut writing, locked) = begin(context, "run", Mode::Write, Sharing::Wanted)?;
    let (mut is_busy, mut half_saved) = (false, None);
    for named in wanted {
        match take(context, ask, &mut writing, &locked, &named) {
            Ok(Taken::Begun(begun)) => return Ok(RunClaim::Begun(begun)),
            Ok(Taken::Failed) => return Ok(RunClaim::Failed(named.id)),
            Ok(Taken::Busy) => is_busy = true,
            Ok(Taken::Gone) => {}
            Err(error) if is_half_saved(&error) => half_saved = Some(error),
            Err(error) => return Err(error),
        }
    }
    match half_saved {
        Some(error) => Err(error),
        // The candidates that are not busy can no longer be claimed.
        None => Ok(if is_busy { RunClaim::Busy } else { RunClaim::Nothing }),
    }
}

/// The steps that a run would begin, in order.
pub(crate) fn wanted(context: &Context, id: &PlanId) -> Result<Vec<NamedStep>, Error> {
    wanted_in(context, id, LoadQuery::plan(id).load(context)?.plans)
}

fn wanted_in(context: &Context, id: &PlanId, plans: Plans) -> Result<Vec<NamedStep>, Error> {
    let plans = Leases::of(context).annotate_optimistically(plans);
    let plan = plans.get(id).ok_or_else(|| load::missing(context, id))?;
    let of = |plan: &Plan| {
        let steps = plan.steps.iter().filter(|it| task(context, &plans, plan, it).is_some());
        steps.map(NamedStep::of).collect::<Vec<_>>()
    };
    if plan.kind != PlanKind::Program || plan.is_archived {
        return Ok(of(plan));
    }
    let is_part = |it: &Plan| it.id == *id || it.program.as_ref() == Some(id);
    let found = rules::candidates(&plans, context.now);
    let mut steps: Vec<_> = found.iter().filter(|it| is_part(it.plan)).flat_map(|it| of(it.plan)).collect();
    // Plans without a ready step may have steps to try again or to verify.
    let all: Vec<_> = plans.live().filter(|it| is_part(it)).flat_map(of).collect();
    steps.extend(all.into_iter().filter(|it| !steps.contains(it)).collect::<Vec<_>>());
    Ok(steps)
}

/// The task of a run for a step in its present state; none if there is nothing to do now.
pub(crate) fn task(context: &Context, plans: &Plans, plan: &Plan, step: &Step) -> Option<Task> {
    let is_verify = step.is_unverified();
    let obstacles = rules::obstacles(plans, plan, step, context.now);
    let is_own_status = |it: &Obstacle| matches!(it, Obstacle::Status(_));
    let is_free = obstacles.iter().all(is_own_status);
    match (is_free, obstacles.is_empty()) {
        (true, _) if is_verify => Some(Task::Verify),
        (_, true) => Some(Task::Work),
        (true, _) if may_be_retried(context, step) => Some(Task::Work),
        _ => None,
    }
}

/// Whether a run tries a failed step again: its last attempt was a worker's, and the limit of tries is not reached.
fn may_be_retried(context: &Context, step: &Step) -> bool {
    let is_workers = step.attempts.last().is_some_and(|it| it.counts_as_try());
    step.status.is(StepStatus::Failed) && is_workers && step.tries() < context.config.max_attempts() as usize
}

enum Taken {
    Begun(Box<Begun>),
    Failed,
    Busy,
    Gone,
}

fn take(
    context: &Context,
    ask: &RunAsk<'_>,
    writing: &mut Transaction<'_>,
    locked: &Locked<'_>,
    named: &NamedStep,
) -> Result<Taken, Error> {
    let claim = fresh_id(context)?;
    let run = RunRecord { log: log_name(context, &named.id, &claim), touches: None, worker: None };
    let decided = step_file::write(context, writing, named, &|plans| locked.annotate(plans), &|now| {
        let (plans, step) = (now.plans, now.step);
        let Some(task) = task(context, plans, now.plan, step) else {
            return Ok(Decision::Leave(Taken::Gone));
        };
        let at_work = locked.at_work();
        if at_work.iter().any(|it| touches::overlap(it.touches.as_deref(), step.touches.as_deref())) {
            return Ok(Decision::Leave(Taken::Busy));
        }
        (ask.check)(step)?;
        let update = update_for(context, ask, (plans, step), task, &claim);
        if update.status == Some(StepStatus::Failed) {
            return Ok(Decision::Write(update, None));
        }
        let run = RunRecord { touches: step.touches.clone(), ..run.clone() };
        let (by, at, lease) = (ask.by, context.now, ask.lease);
        let (claim, process) = (claim.as_str(), ask.process);
        locked.prepare(&NewRecord { step, claim, by, at, lease, process, run: Some(&run), key: None })?;
        Ok(Decision::Write(update, Some((task, why(context, now.placed(), task)))))
    });
    let (made, begun) = match withdraw_unless_made(locked, named, decided)? {
        Decision::Write(made, begun) => (made, begun),
        Decision::Leave(taken) => return Ok(taken),
    };
    let file = writing.cut().file_before();
    let done = made.into_done(context)?;
    let Some((task, why)) = begun else {
        locked.changed(&done.before, &done.after, Effect::default());
        return Ok(Taken::Failed);
    };
    locked.confirm(&named.id)?;
    Ok(Taken::Begun(Box::new(Begun { task, claim, log: run.log, step: done.after, why, file })))
}

fn why(context: &Context, (plans, plan, step): (&Plans, &Plan, &Step), task: Task) -> String {
    match task {
        Task::Verify => "the run that worked on it died before verifying it".to_owned(),
        Task::Work if step.status.is(StepStatus::Failed) => "it may be tried again".to_owned(),
        Task::Work => rules::why_ready(plans, plan, step, context.now),
    }
}

fn update_for(
    context: &Context,
    ask: &RunAsk<'_>,
    (plans, step): (&Plans, &Step),
    task: Task,
    claim: &str,
) -> StepUpdate {
    let mut update = StepUpdate { did: "claimed".to_owned(), ..StepUpdate::default() };
    if let Some(lapse) = plans.claims().lapse(step, context.now) {
        update.attempts.push(fencing::lapsed_attempt(context, step, lapse, ask.by));
        if fencing::is_at_limit(context, step) {
            update.status = Some(StepStatus::Failed);
            update.removes_claim = true;
            return update;
        }
    }
    update.status = (task == Task::Work).then_some(StepStatus::InProgress);
    update.keys.push(change::set_claim(claim, ask.by, context.now));
    update
}

/// The path of the log for the output of the worker with this claim, relative to the plans directory.
fn log_name(context: &Context, id: &StepId, claim: &str) -> String {
    // The plan's name and the number are cut, because a file name must not be too long.
    let plan: String = id.plan.as_str().chars().take(40).collect();
    let number: String = id.number.to_string().chars().take(20).collect();
    context.plans.in_state_dir(&format!("logs/{plan}-{number}-{claim}.log")).to_string_lossy().into_owned()
}
