//! `move STEP --after N`: another place in the plan, so another number; what depends on it follows.

use std::path::PathBuf;

use crate::disk::FileOp;
use crate::engine::context::Context;
use crate::engine::error::Error;
use crate::engine::shape::{Shaper, value};
use crate::engine::write::{self, ChangeReport, Changed, Mode, Writing};
use crate::engine::{add, load, repoint, resolve, steps_line};
use crate::plan::change::set_text;
use crate::plan::file_name;
use crate::plan::id::StepId;
use crate::plan::model::{Plan, Step};
use crate::plan::plans::Plans;
use crate::plan::read::{self, STEP_KEYS};
use crate::text::header_edit::Change;
use crate::text::{front_matter, yaml};

#[derive(Debug, Clone, Default)]
pub struct RenumberRequest {
    pub id: String,
    /// The step behind which it goes.
    pub after: String,
    pub mode: Mode,
}

/// Renames a step's file, corrects its `id` and its line in the Steps list, and re-points dependants.
pub fn renumber(context: &Context, request: &RenumberRequest) -> Result<ChangeReport, Error> {
    let id = resolve::step(context, &request.id)?;
    let mut writing = Writing::begin(context, "move", request.mode)?;
    let plans = load::all(context)?;
    let own = load::one_plan(context, &id.plan)?.ok_or_else(|| load::missing(context, &id.plan))?;
    let (_, step) = resolve::find_step(&plans, &id)?;
    let after = add::own_number(&own, &request.after)?;
    if after == id.number {
        return Err(Error::usage("a step cannot go behind itself", "name another step"));
    }
    write::check_writable(context, &step.problems)?;
    write::check_writable(context, &own.problems)?;
    let no_room = |_| Error::Failed {
        code: "no-room",
        message: format!("there is no room behind {after}"),
        hint: "move it elsewhere first".to_owned(),
    };
    let number = add::behind(&own, &after, Some(&id.number))?.map_err(no_room)?;
    let new = StepId { plan: own.id.clone(), number };
    let mut report = ChangeReport::new("move", request.mode);
    if is_in_place(&own, &id, &after) {
        report.changes.push(changed(context, &plans, &own, step, &id, "already there"));
        return Ok(report);
    }
    move_files(context, &mut writing, &plans, (&own, step), &new)?;
    report.changes.push(changed(context, &plans, &own, step, &new, &format!("moved from {}", id.number)));
    report.diff = writing.diff;
    Ok(report)
}

/// Whether nothing stands between the step and the one that it is to follow.
fn is_in_place(plan: &Plan, id: &StepId, after: &crate::plan::step_number::StepNumber) -> bool {
    let before = plan.steps.iter().rfind(|it| it.id.number < id.number);
    before.is_some_and(|it| it.id.number == *after)
}

fn move_files(
    context: &Context,
    writing: &mut Writing<'_>,
    plans: &Plans,
    (plan, step): (&Plan, &Step),
    new: &StepId,
) -> Result<(), Error> {
    let mut ops = Vec::new();
    if step.has_file() {
        let from = PathBuf::from(&step.path);
        let to = from.with_file_name(file_name::step_file(&new.number));
        let before = context.plans.read(&from)?.bytes;
        let after = write::edit(&step.path, &before, &id_changes(&before, new), STEP_KEYS)?;
        if before != after {
            ops.push(FileOp::Change { path: from.clone(), before, after });
        }
        ops.push(FileOp::Rename { from, to });
    }
    ops.extend(moved_line(context, plan, step, new)?);
    ops.extend(repoint::dependants(context, plans, &step.id, std::slice::from_ref(new))?);
    writing.batch("move", ops)
}

/// A file that has an `id` gets the new one; one that has none needs none.
fn id_changes(file: &[u8], new: &StepId) -> Vec<Change> {
    let text = front_matter::split(file).yaml().and_then(|it| std::str::from_utf8(it).ok());
    let has_id = text.and_then(|it| yaml::parse(it).ok()).is_some_and(|it| it.root().get("id").is_some());
    if has_id { vec![set_text("id", &new.to_string())] } else { Vec::new() }
}

fn moved_line(context: &Context, plan: &Plan, step: &Step, new: &StepId) -> Result<Option<FileOp>, Error> {
    if plan.etag.is_none() {
        return Ok(None);
    }
    let path = PathBuf::from(&plan.path);
    let before = context.plans.read(&path)?.bytes;
    let without = steps_line::taken_out(plan, &step.id.number, &before);
    if without == before {
        return Ok(None);
    }
    let moved = Step { id: new.clone(), ..step.clone() };
    let after = steps_line::added(plan, &moved, &without);
    Ok(Some(FileOp::Change { path, before, after }))
}

fn changed(context: &Context, plans: &Plans, plan: &Plan, step: &Step, new: &StepId, did: &str) -> Changed {
    let directory = plan.path.trim_end_matches(file_name::PLAN_FILE);
    let path = format!("{directory}{}", file_name::step_file(&new.number));
    let moved = context.plans.read(std::path::Path::new(&path)).ok().map(|it| {
        let content = read::Content { etag: load::etag(&it.bytes), bytes: it.bytes, modified: context.now };
        read::read_step_of(plan, new, &path, content, &context.config.words)
    });
    let moved = moved.unwrap_or_else(|| Step { id: new.clone(), path: path.clone(), ..step.clone() });
    let root = context.root_name();
    let shaper = Shaper { plans, now: context.now, root: &root };
    Changed {
        id: new.to_string(),
        title: moved.title.clone(),
        path: shaper.path(&path),
        was_written: *new != step.id,
        was: Some(step.id.to_string()),
        status: None,
        did: did.to_owned(),
        now: value(&shaper.step(plan, &moved)),
    }
}
