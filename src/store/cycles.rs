//! Refuses a change after which a step would wait for itself.

use std::collections::HashSet;

use crate::api::context::Context;
use crate::api::error::Error;
use crate::plan::id::StepId;
use crate::plan::model::{Order, Plan, Step};
use crate::plan::plans::Plans;
use crate::plan::problem::{Code, Problem};
use crate::store::load::{DecisionFiles, LoadQuery};

/// Refuses a change that makes a step wait for itself. `after` contains the plans after the change. `had` returns whether a
/// step already waited for itself before the change. Its argument is the id that the step has after the change.
pub(crate) fn refuse_new(after: Vec<Plan>, had: impl Fn(&StepId) -> bool, hint: &str) -> Result<(), Error> {
    let mut after = after;
    for plan in after.iter_mut().filter(|it| !it.is_archived) {
        plan.waits_inside = false;
        plan.steps.iter_mut().for_each(|it| it.problems.retain(|it| it.code != Code::DependencyCycle));
    }
    let after = Plans::judged(after);
    refuse(after.live().flat_map(|it| &it.steps).filter(|it| !had(&it.id)), hint)
}

/// Refuses a change of one plan after which a step would wait for itself, possibly through other plans. `change` makes the
/// change in the plan of this path. All plans are loaded, except the files that `settled` leaves out.
pub(crate) fn refuse_in(
    context: &Context,
    path: &str,
    settled: DecisionFiles<'_>,
    hint: &str,
    change: impl FnOnce(&mut Plan),
) -> Result<(), Error> {
    let before = LoadQuery::all().without_claims().settled(settled).load(context)?.plans;
    let steps = before.iter().flat_map(|it| &it.steps);
    let had: HashSet<_> = steps.filter(|it| problem(it).is_some()).map(|it| it.id.clone()).collect();
    let mut after = before.into_vec();
    if let Some(plan) = after.iter_mut().find(|it| it.path == path) {
        change(plan);
    }
    refuse_new(after, |it| had.contains(it), hint)
}

/// Like [`refuse_in`], for a new or changed step. `around` is the step's plan after the change, and contains at least the
/// steps on which the step depends. If these steps depend on no other plan, nothing is loaded.
pub(crate) fn refuse_through_others(
    context: &Context,
    around: &Plan,
    step: &Step,
    hint: &str,
) -> Result<(), Error> {
    let mut depends = around.steps.iter().flat_map(|it| &it.depends);
    if around.order != Order::Sequential && depends.all(|it| it.plan == around.id) {
        return Ok(());
    }
    refuse_in(context, &around.path, DecisionFiles::Others(&step.path), hint, |plan| {
        plan.steps.retain(|it| it.path != step.path);
        plan.steps.push(step.clone());
        plan.steps.sort_by(|a, b| (&a.id.number, &a.path).cmp(&(&b.id.number, &b.path)));
    })
}

/// The problem that says why a step waits for itself.
fn problem(step: &Step) -> Option<&Problem> {
    step.problems.iter().find(|it| it.code == Code::DependencyCycle)
}

/// Refuses steps that wait for themselves.
pub(crate) fn refuse<'a>(steps: impl IntoIterator<Item = &'a Step>, hint: &str) -> Result<(), Error> {
    steps.into_iter().find_map(problem).map_or(Ok(()), |it| Err(refused(it, hint)))
}

/// Whether this step waits for itself.
pub(crate) fn has(plans: &Plans, step: &StepId) -> bool {
    plans.step(step).is_some_and(|it| problem(it).is_some())
}

fn refused(problem: &Problem, hint: &str) -> Error {
    Error::failed(problem.code.text(), format!("refused: {}", problem.message), hint)
}
