//! The line of a step in its plan's Steps list, where the plan keeps one.

use crate::engine::context::Context;
use crate::engine::error::Error;
use crate::engine::write::{self, Writing};
use crate::plan::model::{Plan, Step};
use crate::plan::read;
use crate::plan::step_number::StepNumber;
use crate::plan::steps_list;

/// Adds a line for a step, in the list's own style; a plan without a list stays as it is.
pub(crate) fn add(
    context: &Context,
    writing: &mut Writing<'_>,
    plan: &Plan,
    step: &Step,
) -> Result<(), Error> {
    if plan.etag.is_none() || !steps_list::names_steps(&plan.id, &plan.body) {
        return Ok(());
    }
    writing.change(&plan.path, &mut |bytes| {
        let now = read::read_plan_again(plan, content(context, bytes), &context.config.words);
        write::check_writable(context, &now.problems)?;
        Ok(added(plan, step, bytes))
    })?;
    Ok(())
}

fn content(context: &Context, bytes: &[u8]) -> read::Content {
    read::Content { bytes: bytes.to_vec(), etag: String::new(), modified: context.now }
}

/// Returns `plan.md` with a line for the step.
pub(crate) fn added(plan: &Plan, step: &Step, bytes: &[u8]) -> Vec<u8> {
    let depends = (!step.depends.is_empty()).then(|| step.depends.clone());
    steps_list::with_step(&plan.id, bytes, &step.id.number, &step.title, depends)
}

/// Returns `plan.md` without the step's line.
pub(crate) fn taken_out(plan: &Plan, number: &StepNumber, bytes: &[u8]) -> Vec<u8> {
    steps_list::without_step(&plan.id, bytes, number)
}
