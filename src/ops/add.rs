//! `add`: adds a step at the end, after another step, or at a number.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::api::context::Context;
use crate::api::error::Error;
use crate::api::precondition;
use crate::api::views::{Views, value};
use crate::disk::FileOp;
use crate::plan::change::NewStep;
use crate::plan::id::StepId;
use crate::plan::model::{Order, Plan, Step};
use crate::plan::plans::Plans;
use crate::plan::step_number::{NoRoom, StepNumber};
use crate::plan::{file_name, read};
use crate::store::load::{self, LoadQuery, Overlay};
use crate::store::transaction::{self, ChangeReport, Changed, Transaction};
use crate::store::{
    branches, cycles, idempotency, new_plan, new_step, plan_status, resolve, step_file, steps_list_line,
};

pub use crate::api::requests::AddRequest;

/// Creates a step's file and, if the plan has a Steps list, its line there. Both are written, or neither.
pub fn add(context: &Context, request: &AddRequest) -> Result<ChangeReport, Error> {
    if request.title.trim().is_empty() {
        return Err(Error::usage("the title is empty", "give the step a title"));
    }
    if request.metadata.as_deref().is_some_and(|it| !new_step::is_mapping(it)) {
        return Err(Error::usage("the metadata is not a YAML mapping", "write it as '{key: value}'"));
    }
    if let Some(body) = request.body.as_deref().filter(|_| !request.may_confirm) {
        new_plan::refuse_confirmations(context, body)?;
    }
    let plan_id = resolve::plan(context, &request.plan)?;
    let elsewhere = branches::numbers_elsewhere(context, &plan_id, !request.ignores_branches);
    let mut writing = Transaction::begin(context, "add", request.mode)?;
    let plans =
        LoadQuery::plan_and_named(&plan_id).settled(load::DecisionFiles::Plan(&plan_id)).load(context)?.plans;
    let plan = plans.get(&plan_id).ok_or_else(|| load::missing(context, &plan_id))?;
    transaction::check_live(plan)?;
    transaction::check_writable(context, &plan.problems)?;
    precondition::check_plan(context, &plans, plan)?;
    let number = number(plan, request, &elsewhere)?;
    let id = StepId { plan: plan.id.clone(), number };
    let depends = new_step::dependencies(context, plan, &request.depends)?;
    let new = NewStep {
        title: request.title.clone(),
        depends,
        phase: request.phase.clone(),
        kind: request.kind.clone(),
        touches: request.touches.clone(),
        verify: request.verify.clone(),
        metadata: request.metadata.clone(),
        created_by: new_step::maker(context, request.by.as_deref()),
        body: request.body.clone(),
        is_gated: request.is_gated,
        keeps_own: request.keeps_own,
    };
    let bytes = step_file::new_file(&new, &id, context).map_err(|it| it.below(&context.root_name()))?;
    let bytes = new_step::in_line_endings_of(plan, bytes);
    let directory = plan.path.trim_end_matches(file_name::PLAN_FILE);
    let path = format!("{directory}{}", file_name::step_file(&id.number));
    let step = checked(context, plan, &id, &path, &bytes)?;
    refuse_cycle(context, (&plans, plan), &step, &bytes)?;
    idempotency::record(context, || vec![changed(context, &plans, plan, &step)]);
    match steps_list_line::add(context, plan, &step)? {
        None => writing.create(&path, &bytes)?,
        Some(_) => {
            let mut is_made = false;
            writing.batch_on_files("add", &mut || {
                let file = FileOp::Create { path: PathBuf::from(&path), bytes: bytes.clone() };
                let file = Some(file).filter(|_| !is_made || !has_own(context, &path, &step));
                is_made = true;
                Ok(file.into_iter().chain(steps_list_line::add(context, plan, &step)?).collect())
            })?;
        }
    }
    let mut report = ChangeReport::new("add", request.mode);
    report.changes.push(changed(context, &plans, plan, &step));
    report.diff = writing.diff;
    report.hints.extend(plan_status::hint_for_closed(plan));
    Ok(report)
}

/// Whether the file of an earlier try still exists. A try is undone if `plan.md` is saved meanwhile. But if an editor has
/// saved the new file by then, the file stays.
fn has_own(context: &Context, path: &str, step: &Step) -> bool {
    let Ok(read) = context.plans.read(Path::new(path)) else { return false };
    let content = read::Content::new(read.bytes, context.now);
    let saved = read::read_step_alone(&step.id, path, content, &context.config.words);
    saved.created_at.is_some() && saved.created_at == step.created_at
}

fn number(plan: &Plan, request: &AddRequest, elsewhere: &BTreeSet<StepNumber>) -> Result<StepNumber, Error> {
    let no_room = |_: NoRoom| {
        let message = format!("there is no room for another step at this place in `{}`", plan.id);
        Error::failed(
            "no-room",
            message,
            "`planwatch move STEP --to N` gives a step next to it another number",
        )
    };
    match (&request.after, &request.at) {
        (Some(_), Some(_)) => Err(Error::usage(
            "a new step has a number of its own or follows another step, not both",
            "give one of the two",
        )),
        (Some(after), None) => {
            new_step::number_after(plan, &new_step::own_number(plan, after)?, None, elsewhere)?
                .map_err(no_room)
        }
        (None, Some(at)) => free(plan, new_step::own_number(plan, at)?),
        (None, None) => {
            let first = plan.steps.last().map_or(Ok(StepNumber::whole(1)), |it| it.id.number.successor());
            branches::free_after(first, None, elsewhere).map_err(no_room)
        }
    }
}

fn free(plan: &Plan, number: StepNumber) -> Result<StepNumber, Error> {
    let Some(taken) = plan.steps.iter().find(|it| it.id.number == number) else { return Ok(number) };
    if !taken.has_file() {
        return Ok(number);
    }
    let hint = format!("--after {number} inserts it after that step");
    Err(Error::conflict("step-exists", format!("`{}` exists", taken.id), hint))
}

/// Reads the new file as every command will, and refuses it if it has errors.
fn checked(context: &Context, plan: &Plan, id: &StepId, path: &str, bytes: &[u8]) -> Result<Step, Error> {
    let content = read::Content::new(bytes.to_vec(), context.now);
    let step = read::read_step_of(plan, id, path, content, &context.config.words);
    match step.problems.iter().find(|it| it.severity() == crate::plan::problem::Severity::Error) {
        Some(problem) => Err(Error::File { problem: Box::new(problem.clone()) }),
        None => Ok(step),
    }
}

/// Refuses a step that would wait for itself. This can happen if another step already depends on the new step's number, or
/// on "all previous steps".
fn refuse_cycle(
    context: &Context,
    (plans, plan): (&Plans, &Plan),
    step: &Step,
    bytes: &[u8],
) -> Result<(), Error> {
    let is_named = || plan.steps.iter().any(|it| it.depends_on(&step.id));
    let waits =
        !step.depends.is_empty() || !step.ranges.is_empty() || plan.order == Order::Sequential && is_named();
    if !waits || cycles::has(plans, &step.id) {
        return Ok(());
    }
    let own = Overlay { path: &step.path, bytes };
    let others = load::DecisionFiles::Others(&step.path);
    let after = LoadQuery::step_with(&step.id, own).settled(others).load(context)?.plans;
    let hint = "choose another number, or other dependencies";
    cycles::refuse(after.step(&step.id), hint)?;
    let around = after.get(&step.id.plan).unwrap_or(plan);
    cycles::refuse_through_others(context, around, step, hint)
}

fn changed(context: &Context, plans: &Plans, plan: &Plan, step: &Step) -> Changed {
    let mut plan: Plan = plan.clone();
    plan.steps.retain(|it| it.id != step.id);
    plan.steps.push(step.clone());
    plan.steps.sort_by(|a, b| a.id.number.cmp(&b.id.number));
    let others = plans.iter().filter(|it| it.path != plan.path).cloned();
    let plans = Plans::new(others.chain([plan.clone()]).collect());
    let now = value(&Views::of(context, &plans).step(&plan, step));
    let status = Some(step.status.word().to_owned());
    Changed { status, ..Changed::new(context, &step.id, (&step.title, &step.path), "added", now) }
}
