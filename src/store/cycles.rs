//! Refuses a change after which a step would wait for itself.

use crate::api::error::Error;
use crate::plan::id::StepId;
use crate::plan::model::{Plan, Step};
use crate::plan::plans::Plans;
use crate::plan::problem::{Code, Problem};

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
