//! `edit`: which file an editor opens, and what is wrong with it afterwards.

use std::path::PathBuf;

use crate::api::context::Context;
use crate::api::error::Error;
use crate::plan::problem::Problem;
use crate::store::load::{self, LoadQuery};
use crate::store::plan_file;
use crate::store::resolve::{self, Target};
use crate::store::step_file::{self, StepUpdate};
use crate::store::transaction::{Mode, Transaction};

/// Returns the absolute path of a plan's or step's file; one that is missing is made first.
///
/// The lock is not held while an editor runs: what it saves is a person's edit like any other.
pub fn file(context: &Context, id: &str) -> Result<PathBuf, Error> {
    let target = resolve::target(context, id)?;
    let plan = load::existing_plan(context, target.plan())?;
    let relative = match &target {
        Target::Plan(id) => {
            if plan.etag.is_none() {
                let mut writing = Transaction::begin(context, "edit", Mode::Write)?;
                plan_file::update(context, &mut writing, id, &|_, _| Ok(plan_file::PlanUpdate::default()))?;
            }
            plan.path
        }
        Target::Step(named) => {
            let step = resolve::one_step(context, &plan, named)?;
            if !step.has_file() {
                let mut writing = Transaction::begin(context, "edit", Mode::Write)?;
                step_file::update(context, &mut writing, named, &|_| Ok(StepUpdate::default()))?;
            }
            step.path.clone()
        }
    };
    Ok(context.plans.root().join(relative))
}

pub fn problems(context: &Context, id: &str) -> Result<Vec<Problem>, Error> {
    let target = resolve::target(context, id)?;
    let plans = LoadQuery::plan_and_named(target.plan()).load(context)?.plans;
    let plan = plans.get(target.plan()).ok_or_else(|| load::missing(context, target.plan()))?;
    match &target {
        Target::Plan(_) => Ok(plan.problems.clone()),
        Target::Step(named) => Ok(resolve::one_step(context, plan, named)?.problems.clone()),
    }
}
