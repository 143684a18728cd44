//! Tools for prompts that were written for other plan tools. The tools in this module have the names and arguments of those
//! other tools. Most are thin wrappers around planwatch's own tools.
//!
//! If tools of two other programs have the same name, the wrapper accepts the arguments of both. Results contain
//! planwatch's words for statuses.

mod memory;
mod plans;
mod steps;

use std::sync::OnceLock;

use serde_json::{Value, json};

use crate::ops::upsert;
use crate::serve::mcp::result::{self, Refusal};
use crate::serve::mcp::schema::Object;
use crate::serve::mcp::tool::{Call, Tool, Turn};
use crate::serve::mcp::toolset::{Toolset, tools as tools_of};

/// The tools of planwatch's own set that this set contains unchanged.
const SAME: [&str; 4] = ["insight", "recall", "decide", "get_decisions"];

pub(super) fn tools() -> Vec<Tool> {
    let same = tools_of(Toolset::All, false).into_iter().filter(|it| SAME.contains(&it.name));
    let covers = plans::tools().into_iter().chain(steps::tools()).chain([memory::tool()]);
    covers.chain(same).map(|it| it.covered(check_ids, reworded)).collect()
}

/// The instructions about this set for the client's model.
pub(super) const INSTRUCTIONS: &str = include_str!("compat/instructions.md");

/// The value of `created_by` in new steps, if the call does not specify it.
const MAKER: &str = "agent";

/// Refuses numeric ids. Other plan tools use them, but planwatch has no such ids. A plan can have a name such as `2026`, so a
/// text of digits is refused only as the id of a step. Otherwise it would be read as a step of the only active plan.
fn check_ids(given: &Object) -> Result<(), Refusal> {
    const A_PLAN: &str = "a plan's id is the name of its directory, such as `auth`; list_plans shows it";
    const A_STEP: &str = "a step's id is its plan and its number, such as `auth:2`; get_plan_steps shows it";
    for (key, form) in [("plan_id", A_PLAN), ("program_id", A_PLAN), ("step_id", A_STEP)] {
        let is_refused = |it: &&Value| match it {
            Value::Number(_) => true,
            Value::String(text) => key == "step_id" && is_number(text.trim()),
            _ => false,
        };
        if let Some(number) = given.get(key).filter(is_refused) {
            return Err(Refusal::usage(
                format!("`{key}` cannot be a number; it was given as {number}"),
                form,
            ));
        }
    }
    Ok(())
}

/// Whether a text is written as a step's number without its plan.
fn is_number(text: &str) -> bool {
    text.starts_with(|it: char| it.is_ascii_digit())
        && text.chars().all(|it| it.is_ascii_digit() || it == '.')
}

fn find(name: &str) -> Result<&'static Tool, Refusal> {
    static OWN: OnceLock<Vec<Tool>> = OnceLock::new();
    let own = OWN.get_or_init(|| tools_of(Toolset::All, false));
    let missing = || Refusal::new("bug", format!("there is no tool `{name}`"), "tell the person");
    own.iter().find(|it| it.name == name).ok_or_else(missing)
}

/// Calls one of planwatch's own tools, which may need a confirmation. Null arguments are omitted.
fn turn(call: &Call, name: &str, arguments: Value) -> Result<Turn, Refusal> {
    let Value::Object(given) = without_nulls(arguments) else { return Ok(Turn::Done(json!({}))) };
    find(name)?.run(call, given)
}

/// Like [`turn`], for a tool without confirmation.
fn own(call: &Call, name: &str, arguments: Value) -> Result<Value, Refusal> {
    match turn(call, name, arguments)? {
        Turn::Done(done) => Ok(done),
        Turn::Asks(_) => Err(Refusal::new("bug", format!("`{name}` asks a person"), "tell the person")),
    }
}

fn without_nulls(mut arguments: Value) -> Value {
    if let Some(map) = arguments.as_object_mut() {
        map.retain(|_, it| !it.is_null());
    }
    arguments
}

/// Replacements in hints: texts about planwatch's own tools, each with the corresponding text about this set.
pub(in crate::serve) const WORDS: [(&str, &str); 12] = [
    ("claim_next_step with the plan alone claims", "peek_next_step names"),
    ("claim_next_step claims", "peek_next_step names"),
    ("give the id of your claim as `claim`; ", "another worker has claimed it; "),
    ("confirm_gate asks", "memory_plan with action `confirm` asks"),
    ("list_assets with kind `templates` names", "memory_plan with action `list_templates` names"),
    ("list_assets with kind `scripts` names", "memory_plan with action `list_build_scripts` names"),
    ("; with if_exists `update` its fields are set", ""),
    ("restructure_plan with op `consolidate`", "memory_plan with action `consolidate`"),
    ("restructure_plan", "memory_plan with action `update`"),
    ("update_plan changes", "memory_plan changes"),
    ("list_plans with status `all` lists", "list_plans lists"),
    ("claim_next_step", "peek_next_step"),
];

/// Replaces texts about planwatch's own tools in a hint, as listed in [`WORDS`].
fn reworded(refusal: Refusal) -> Refusal {
    refusal.reworded(|hint| WORDS.iter().fold(hint, |text, (from, to)| text.replace(from, to)))
}

/// Returns a plan with only those fields that lists show.
fn plan_line(call: &Call, id: &str) -> Result<Value, Refusal> {
    let (plan, _) = upsert::plan(&call.context, id)?;
    Ok(result::plan(&crate::api::views::value(&plan)))
}

/// Copies the field `id` of a change to `plan_id`, the name that the wrappers use.
fn with_plan_id(mut changed: Value) -> Value {
    changed["plan_id"] = changed["id"].clone();
    changed
}

#[cfg(test)]
mod tests;
