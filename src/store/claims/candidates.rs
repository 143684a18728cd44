//! The steps that can be claimed, in the order in which they are claimed.
//!
//! The list of these steps is called a queue. It is only a hint: before a step is claimed, the rules are checked again
//! under the locks.

use std::collections::HashSet;

use crate::api::context::Context;
use crate::api::error::Error;
use crate::plan::id::{PlanId, StepId};
use crate::plan::model::{Plan, PlanKind, Step};
use crate::plan::plans::Plans;
use crate::plan::rules;
use crate::plan::time::Time;
use crate::store::load::{self, LoadQuery};
use crate::store::resolve::NamedStep;

/// The maximum length of a queue. The limit saves time, because ranking a step means counting the steps that depend on it.
const MOST: usize = 64;

#[derive(Debug, Clone)]
pub(crate) struct Ready {
    pub(crate) step: NamedStep,
    /// Whether an earlier claim of the step is recorded. Such a claim has lapsed, because the step is ready.
    pub(crate) has_lapsed: bool,
}

/// Identifies how a process reads plans: two processes with the same value read the same files in the same way.
pub(crate) fn reader_of(context: &Context) -> String {
    let how = format!("{} {:?}", env!("CARGO_PKG_VERSION"), context.config.words);
    blake3::hash(how.as_bytes()).to_hex()[..16].to_owned()
}

/// Lists the ready steps of one plan or of all plans, without the steps that were already tried. If the plan is a program,
/// the steps of its plans are included.
pub(crate) fn look(
    context: &Context,
    plan: Option<&PlanId>,
    tried: &HashSet<StepId>,
) -> Result<Vec<Ready>, Error> {
    let Some(id) = plan else {
        let all = LoadQuery::all().lazily().with_unfinished_claims_free();
        let plans = all.load_summaries(context).plans;
        let queue = queue_of(plans.with_reduced_steps(), context.now, tried, |_| true);
        load::drop_in_background(plans);
        return Ok(queue);
    };
    let plans = LoadQuery::plan(id).lazily().with_unfinished_claims_free().load(context)?.plans;
    let plan = plans.get(id).ok_or_else(|| load::missing(context, id))?;
    let is_program = plan.kind == PlanKind::Program && !plan.is_archived;
    let is_child = |it: &Plan| is_program && it.program.as_ref() == Some(id);
    let queue = queue_of(&plans, context.now, tried, |it| it.id == *id || is_child(it));
    load::drop_in_background(plans);
    Ok(queue)
}

fn queue_of(
    plans: &Plans,
    now: Time,
    tried: &HashSet<StepId>,
    is_asked: impl Fn(&Plan) -> bool,
) -> Vec<Ready> {
    let steps = rules::in_turn(plans, now, is_asked).map(|it| it.step).filter(|it| !tried.contains(&it.id));
    steps.take(MOST).map(|it| ready(plans, it)).collect()
}

pub(crate) fn ready(plans: &Plans, step: &Step) -> Ready {
    Ready { step: NamedStep::of(step), has_lapsed: plans.claims().has_record(&step.id) }
}
