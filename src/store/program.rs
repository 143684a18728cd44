//! Programs: plans that group other plans. They cannot be nested.

use std::path::PathBuf;

use crate::api::context::Context;
use crate::api::error::Error;
use crate::disk::FileOp;
use crate::plan::change::set_text;
use crate::plan::id::PlanId;
use crate::plan::model::{Plan, PlanKind};
use crate::plan::read::PLAN_KEYS;
use crate::store::{load, plan_file, resolve, transaction};
use crate::text::typed::shell_word;

/// A plan with more than this many steps should be split.
pub(crate) const MANY_STEPS: usize = 100;

/// The edits that make plans belong to a program that is about to be created.
pub(crate) fn adoption(
    context: &Context,
    (is_program, children): (bool, &[String]),
    program: &PlanId,
) -> Result<Vec<FileOp>, Error> {
    if !is_program && !children.is_empty() {
        return Err(Error::usage("only a program has children", "add --kind program"));
    }
    let mut seen: Vec<PlanId> = Vec::new();
    let mut ops = Vec::new();
    for text in children {
        let id = resolve::plan(context, text)?;
        if seen.contains(&id) {
            continue;
        }
        let plan = load::settled_plan(context, &id)?;
        transaction::check_live(&plan)?;
        transaction::check_writable(context, &plan.problems)?;
        check_child(&plan)?;
        ops.push(adopt(context, &plan, program)?);
        seen.push(id);
    }
    Ok(ops)
}

fn adopt(context: &Context, plan: &Plan, program: &PlanId) -> Result<FileOp, Error> {
    let path = PathBuf::from(&plan.path);
    let changes = [set_text("program", program.as_str())];
    if plan.etag.is_none() {
        let file = plan_file::missing_file(plan, context)?;
        return Ok(FileOp::Create {
            bytes: transaction::edit(&plan.path, &file, &changes, PLAN_KEYS)?,
            path,
        });
    }
    let before = context.plans.read(&path)?.bytes;
    let after = transaction::edit(&plan.path, &before, &changes, PLAN_KEYS)?;
    Ok(FileOp::Change { path, before, after })
}

/// Refuses programs, and plans that belong to another program already.
fn check_child(plan: &Plan) -> Result<(), Error> {
    if plan.kind == PlanKind::Program {
        return Err(nested(plan.id.as_str()));
    }
    let Some(other) = &plan.program else { return Ok(()) };
    let hint = format!(
        "`planwatch set {} program --unset` removes the plan from that program",
        shell_word(&plan.id)
    );
    Err(Error::conflict("has-a-program", format!("`{}` belongs to the program `{other}`", plan.id), hint))
}

pub(crate) fn nested(name: &str) -> Error {
    let hint = "move its plans to the other program";
    Error::usage(format!("`{name}` is a program, and a program cannot belong to a program"), hint)
}

/// Refuses a plan that is not a program.
pub(crate) fn check_program(context: &Context, id: &PlanId) -> Result<(), Error> {
    let plan = load::existing_plan(context, id)?;
    if plan.kind == PlanKind::Program {
        return Ok(());
    }
    let hint = format!(
        "`planwatch set {id_word} kind program` makes `{id}` a program; `planwatch new TITLE --kind program --children {id_word}` creates a program with `{id}` as a child",
        id_word = shell_word(&id)
    );
    Err(Error::usage(format!("`{id}` is not a program"), hint))
}

/// Refuses a `program` or a `kind` that would nest programs, and a `program` that names no program.
pub(crate) fn check_set(context: &Context, plan: &Plan, key: &str, value: &str) -> Result<(), Error> {
    match key {
        "program" if plan.kind == PlanKind::Program => Err(nested(plan.id.as_str())),
        "program" => check_program(context, &PlanId::new(value)),
        "kind" if plan.program.is_some() && value.trim().eq_ignore_ascii_case("program") => {
            let hint = format!(
                "`planwatch set {} program --unset` removes it from its program first",
                shell_word(&plan.id)
            );
            Err(Error::usage(
                format!("`{}` belongs to a program, and a program cannot belong to a program", plan.id),
                hint,
            ))
        }
        _ => Ok(()),
    }
}
