//! Decides whether a run that can begin no step waits for others or is over, and why.

use crate::api::attention;
use crate::api::context::Context;
use crate::api::error::{Error, few};
use crate::ops::claim;
use crate::ops::run::{End, Surface};
use crate::plan::id::{PlanId, StepId, read_step_id};
use crate::plan::model::{Plan, PlanKind, Step};
use crate::plan::plans::Plans;
use crate::plan::rules::{self, State};
use crate::store::leases::Leases;
use crate::store::load::{self, DecisionFiles, LoadQuery};
use crate::store::sync::renewed_elsewhere;
use crate::store::transaction::once_saved;

use super::{Driver, Halt, Next, Progress, halt, is_part};

impl Driver<'_> {
    /// Decides what to do if no step can be begun: wait for others, search again, or end the run.
    ///
    /// Another run may claim or complete a step meanwhile. So the run is over only if both of these are true:
    /// - No live run in this working tree has a claim on a step of the plan. A claim that is just being made counts, too.
    /// - The plan files were the same before and after the claims were read.
    pub(super) fn nothing(&self, context: &Context, state: &mut Progress) -> Result<Next, Error> {
        let plans = self.plans(context)?;
        let own = |id: &StepId| plans.get(&id.plan).is_some_and(|it| is_part(it, &self.plan));
        let live = Leases::of(context).live_runs();
        let others = live.iter().filter_map(|it| read_step_id(&it.step)).filter(|it| own(it));
        let others: Vec<_> = others.map(|it| it.to_string()).collect();
        if !others.is_empty() {
            return Ok(Next::Wait(format!("another run is at work on {}", others.join(", "))));
        }
        if let Some(why) = elsewhere(context, &plans, &self.plan) {
            return Ok(Next::WaitLong(why));
        }
        // Another run may have just completed a step that other steps waited for.
        if !claim::wanted(context, &self.plan)?.is_empty() {
            return Ok(Next::Again);
        }
        let now = self.plans(context)?;
        if etags(&plans) == etags(&now) {
            state.halt = Some(over(context, &now, &self.plan)?);
        }
        Ok(Next::Again)
    }

    /// Called when all attempts have ended. If the run reached a limit, but its last attempts completed the plan, the run
    /// did not end because of the limit.
    pub(super) fn end_if_complete(&self) {
        let mut state = self.lock();
        if state.halt.as_ref().is_some_and(|it| it.end == End::Limit)
            && let Ok(halt) = self.halt_now()
            && halt.end == End::Complete
        {
            state.halt = Some(halt);
        }
    }

    fn halt_now(&self) -> Result<Halt, Error> {
        let context = self.context()?;
        let plans = Leases::of(&context).annotate(self.plans(&context)?);
        over(&context, &plans, &self.plan)
    }

    /// Loads the plan and all files that decide about its steps, as one point of time.
    fn plans(&self, context: &Context) -> Result<Plans, Error> {
        let load = || LoadQuery::plan(&self.plan).settled(DecisionFiles::Plan(&self.plan)).load(context);
        Ok(once_saved(context, load)?.plans)
    }
}

/// The paths and etags of all files of live plans, to find out whether a file has changed.
fn etags(plans: &Plans) -> Vec<(&str, Option<&str>)> {
    let mut all = Vec::new();
    for plan in plans.live() {
        all.push((plan.path.as_str(), plan.etag.as_deref()));
        all.extend(plan.steps.iter().map(|it| (it.path.as_str(), it.etag.as_deref())));
    }
    all
}

/// Names the open steps that processes on other machines have claimed. The run waits for these steps. If such a process
/// dies, the run can take over its step.
fn elsewhere(context: &Context, plans: &Plans, run: &PlanId) -> Option<String> {
    let renewed = renewed_elsewhere(context);
    let is_own = |id: &StepId| plans.get(&id.plan).is_some_and(|it| is_part(it, run));
    let is_open = |id: &StepId| plans.step(id).is_some_and(|it| !it.is_closed());
    let steps = renewed.into_iter().filter(|it| is_own(it) && is_open(it));
    let named: Vec<_> = steps.map(|it| it.to_string()).collect();
    (!named.is_empty()).then(|| format!("other machines are at work on {}", few(&named, 5)))
}

fn over(context: &Context, plans: &Plans, id: &PlanId) -> Result<Halt, Error> {
    let plan = plans.get(id).ok_or_else(|| load::missing(context, id))?;
    let parts: Vec<_> = match plan.kind {
        PlanKind::Program if !plan.is_archived => plans.live().filter(|it| is_part(it, id)).collect(),
        _ => vec![plan],
    };
    let asked: Vec<_> = parts.iter().filter(|it| it.may_have_steps() || parts.len() == 1).copied().collect();
    let states: Vec<_> = asked.iter().map(|it| rules::next(plans, it, context.now)).collect();
    let best = states.iter().map(|it| it.state).min().unwrap_or(State::Empty);
    let why = states.iter().find(|it| it.state == best).map_or("the plan has no steps", |it| it.why.as_str());
    if best == State::Complete {
        return Ok(halt(End::Complete, why));
    }
    let waits = |step: &&Step, plan: &Plan| attention::waits_for_person_alone(plans, plan, step, context.now);
    let gate = asked.iter().find_map(|plan| plan.steps.iter().find(|it| waits(it, plan)));
    Ok(match gate {
        Some(step) => {
            let why = format!("`{}` waits for a person's confirmation", step.id);
            Halt { end: End::ConfirmationNeeded, why, step: Some(step.id.clone()) }
        }
        None => halt(End::NothingReady, why),
    })
}
