//! The parts of a new step: its number, its dependencies, its author, its text and line endings.

use std::collections::BTreeSet;

use crate::api::context::Context;
use crate::api::error::Error;
use crate::plan::id::{self, StepId};
use crate::plan::model::Plan;
use crate::plan::plans::Plans;
use crate::plan::step_number::{NoRoom, StepNumber};
use crate::store::{branches, load, resolve};
use crate::text::yaml::{self, Kind};
use crate::text::{front_matter, markdown};

pub(crate) fn is_mapping(yaml: &str) -> bool {
    yaml::parse(yaml).is_ok_and(|it| it.root().kind() == Kind::Map)
}

/// If `plan.md` has CRLF line endings everywhere, new files of the plan get them too.
pub(crate) fn in_line_endings_of(plan: &Plan, bytes: Vec<u8>) -> Vec<u8> {
    let is_crlf = plan.body.contains("\r\n") && !plan.body.replace("\r\n", "").contains('\n');
    if !is_crlf {
        return bytes;
    }
    match String::from_utf8(bytes) {
        Ok(text) => text.replace("\r\n", "\n").replace('\n', "\r\n").into_bytes(),
        Err(error) => error.into_bytes(),
    }
}

/// The author: `agent` if this process works on a step, else the given name, if any.
pub(crate) fn maker(context: &Context, by: Option<&str>) -> Option<String> {
    let in_step = context.here.step.as_ref().map(|_| "agent");
    in_step.or(by).map(str::to_owned)
}

/// Reads the number of a step of this plan: `2.5`, `step-2.5`, or the same after the plan's own name.
pub(crate) fn own_number(plan: &Plan, text: &str) -> Result<StepNumber, Error> {
    let own = typed_step(plan, text).filter(|it| it.plan == plan.id).map(|it| it.number);
    let not =
        || Error::usage(format!("`{text}` is not a step number of `{}`", plan.id), "write it as 2 or 2.5");
    own.ok_or_else(not)
}

/// Reads a reference to a step; a bare number means a step of this plan.
fn typed_step(plan: &Plan, text: &str) -> Option<StepId> {
    let own = |number| StepId { plan: plan.id.clone(), number };
    let path = || {
        let (of, number) = id::read_step_path(text)?;
        Some(StepId { plan: of.unwrap_or_else(|| plan.id.clone()), number })
    };
    id::read_number(text).map(own).or_else(path).or_else(|| id::read_step_id(text))
}

/// The number for a step that is placed after `number`: the middle between `number` and the next step's number, or
/// `number` plus 1 if no step follows. The step `moved` is ignored, and the numbers `elsewhere` are skipped.
pub(crate) fn number_after(
    plan: &Plan,
    number: &StepNumber,
    moved: Option<&StepNumber>,
    elsewhere: &BTreeSet<StepNumber>,
) -> Result<Result<StepNumber, NoRoom>, Error> {
    let plans = Plans::new(vec![plan.clone()]);
    resolve::find_step(&plans, &StepId { plan: plan.id.clone(), number: number.clone() })?;
    let rest = plan.steps.iter().map(|it| &it.id.number).filter(|it| Some(*it) != moved);
    let next = rest.filter(|it| *it > number).min();
    let first = next.map_or_else(|| number.plus_one(), |next| number.midpoint(next));
    Ok(branches::free_after(first, next, elsewhere))
}

/// Reads dependencies; each must exist, because a typo would block the step forever.
pub(crate) fn dependencies(context: &Context, plan: &Plan, texts: &[String]) -> Result<Vec<StepId>, Error> {
    let parts = texts.iter().flat_map(|it| it.split(',')).map(str::trim).filter(|it| !it.is_empty());
    let mut found = Vec::new();
    for text in parts {
        let Some(step) = typed_step(plan, text) else {
            let hint = "write a step number, or <plan>:<number>";
            return Err(Error::usage(format!("`{text}` is not a step"), hint));
        };
        if step.plan == plan.id {
            resolve::find_step(&Plans::new(vec![plan.clone()]), &step)?;
        } else {
            let other = load::existing_plan(context, &step.plan)?;
            resolve::find_step(&Plans::new(vec![other]), &step)?;
        }
        if !found.contains(&step) {
            found.push(step);
        }
    }
    Ok(found)
}

/// Prepares a text that is put below the heading `title`: if it begins with the same heading, that heading is removed.
///
/// A text that begins with front matter is refused, because below the heading front matter would be plain text.
pub(crate) fn below_heading(title: &str, text: &str) -> Result<String, Error> {
    if front_matter::split(text.as_bytes()).yaml().is_some() {
        let hint = "remove the front matter, and set its keys with the other fields of the request";
        return Err(Error::usage("the text begins with front matter", hint));
    }
    let text = text.replace("\r\n", "\n");
    let start = text.trim_start_matches('\n');
    let (first, rest) = start.split_once('\n').unwrap_or((start, ""));
    let says_title = first.strip_prefix("# ").is_some_and(|it| it.trim() == title)
        || first.trim_end() == markdown::heading(1, title);
    Ok(if says_title { rest } else { start }.trim_matches('\n').to_owned())
}
