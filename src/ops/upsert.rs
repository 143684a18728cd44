//! Creates plans and steps from whole texts, and reads them with their texts, for scripts. If a script sends the same plan
//! again, or the same step with its number, nothing changes. A text with a confirmation is refused, because it is not known
//! to come from a person.

use std::path::Path;

use serde_json::Value;

use crate::api::context::Context;
use crate::api::error::Error;
use crate::api::precondition;
use crate::api::views::{PlanShape, StepShape, Views};
use crate::ops::add::{self, AddRequest};
use crate::plan::change::NewPlan;
use crate::plan::file_name::PLAN_FILE;
use crate::plan::id::{self, PlanId};
use crate::plan::model::{Order, Plan, Step};
use crate::plan::plans::Plans;
use crate::plan::step_number::StepNumber;
use crate::store::load::{self, LoadQuery, Side};
use crate::store::transaction::{self, Mode, Transaction};
use crate::store::{new_plan, resolve};
use crate::text::typed::shell_word;
use crate::text::yaml::same;
use crate::text::{front_matter, scalar, yaml};

pub use crate::api::requests::{PlanText, StepText};

#[derive(Debug, Clone)]
pub struct Put<T> {
    /// False: it existed already, with the same text.
    pub is_new: bool,
    pub now: T,
}

/// Creates a plan with the requested text. If a plan with this name and text exists already, nothing changes. If the
/// existing plan has another text or is archived, the request is refused.
pub fn put_plan(context: &Context, request: &PlanText) -> Result<Put<PlanShape>, Error> {
    if request.title.trim().is_empty() {
        return Err(Error::usage("the title is empty", "give the plan a title"));
    }
    let id = id_of(context, &request.title);
    let is_sequential = context.config.order == Some(Order::Sequential);
    let new = NewPlan { title: request.title.clone(), is_sequential, ..NewPlan::default() };
    // A plan without a text gets its title as the text.
    let text = if request.body.trim().is_empty() { new.body() } else { request.body.clone() };
    if let Some(same) = same_plan(context, &id, &text)? {
        return Ok(Put { is_new: false, now: same });
    }
    new_plan::refuse_confirmations(context, &request.body)?;
    let mut writing = Transaction::begin(context, "new", Mode::Write)?;
    // Another process may have created the plan meanwhile.
    if let Some(same) = same_plan(context, &id, &text)? {
        return Ok(Put { is_new: false, now: same });
    }
    let files = vec![(PLAN_FILE.to_owned(), new_plan::plan_file(context, &new, &request.body)?)];
    new_plan::refuse_faulty(&new_plan::as_read(context, &id, &files))?;
    if load::exists(context, &id) {
        let (name, bytes) = &files[0];
        writing.create(&format!("{id}/{name}"), bytes)?;
    } else {
        writing.create_directory(id.as_str(), &files)?;
    }
    drop(writing);
    let plan = load::existing_plan(context, &id)?;
    Ok(Put { is_new: true, now: plan_shape(context, &plan)? })
}

/// The existing plan with exactly this name, else the id that a plan with this title gets.
fn id_of(context: &Context, title: &str) -> PlanId {
    let exact = PlanId::new(title);
    if load::exists(context, &exact) { exact } else { PlanId::new(id::slug(title, &|_| false)) }
}

/// The existing plan, if it has this text. `None`: there is no plan with this id, or it has no `plan.md`. Fails if the plan
/// is archived or has another text.
fn same_plan(context: &Context, id: &PlanId, text: &str) -> Result<Option<PlanShape>, Error> {
    let Some(plan) = load::one_plan(context, id)?.filter(|it| it.etag.is_some()) else { return Ok(None) };
    let bytes = context.plans.read(Path::new(&plan.path))?.bytes;
    if !plan.is_archived && is_same(&bytes, text) {
        return plan_shape(context, &plan).map(Some);
    }
    let (message, hint) = if plan.is_archived {
        (
            format!("`{id}` exists, and is archived"),
            format!("planwatch archive --restore {}", shell_word(&id)),
        )
    } else {
        (
            format!("`{id}` exists, with another text"),
            "change the existing plan, or choose another title".to_owned(),
        )
    };
    Err(Error::Conflict { code: "plan-exists", message, hint })
}

fn plan_shape(context: &Context, plan: &Plan) -> Result<PlanShape, Error> {
    let plans = LoadQuery::plan(&plan.id).load(context)?.plans;
    let plan = resolve::plan_at(&plans, &plan.id, Side::LiveFirst).unwrap_or(plan);
    Ok(Views::of(context, &plans).plan(plan))
}

/// Whether a file was created from this text: both have the same body, and the file has each value of the text's front
/// matter. The file may have more keys, because planwatch adds some. Line breaks at the end do not count.
fn is_same(file: &[u8], text: &str) -> bool {
    let ended = |it: &[u8]| it.len() - it.iter().rev().take_while(|it| matches!(it, b'\n' | b'\r')).count();
    let cut = |it: &'_ [u8]| it[..ended(it)].to_vec();
    let (of_file, of_text) = (front_matter::split(file), front_matter::split(text.as_bytes()));
    let is_same_body = cut(of_file.body()) == cut(of_text.body());
    cut(file) == cut(text.as_bytes()) || is_same_body && has_values(of_file.yaml(), of_text.yaml())
}

fn has_values(yaml: Option<&[u8]>, wanted: Option<&[u8]>) -> bool {
    let read = |it: Option<&[u8]>| yaml::parse(str::from_utf8(it.unwrap_or_default()).ok()?).ok();
    let (Some(tree), Some(wanted)) = (read(yaml), read(wanted)) else { return false };
    wanted.root().entries().all(|(key, value)| {
        let own = key.text().and_then(|it| tree.root().get(it));
        own.is_some_and(|it| same(it, value))
    })
}

/// Creates a step with the requested text. If the step with the requested number has this text already, nothing changes. If
/// it has another text, the request is refused. If it is only in the plan's Steps list, its file is created.
pub fn put_step(context: &Context, request: &StepText) -> Result<Put<(StepShape, String)>, Error> {
    let plan = resolve::plan(context, &request.plan)?;
    if let Some(same) = same_step(context, &plan, request)? {
        return Ok(Put { is_new: false, now: same });
    }
    let metadata = request.metadata.clone().map(|it| scalar::json(&Value::Object(it)));
    let add = AddRequest {
        plan: request.plan.clone(),
        title: title(&request.text),
        at: request.at.clone(),
        after: request.after.clone(),
        metadata,
        body: Some(String::from_utf8_lossy(&new_plan::with_end(&request.text)).into_owned()),
        by: request.created_by.clone(),
        keeps_own: true,
        ..AddRequest::default()
    };
    let report = match add::add(context, &add) {
        Err(error) if error.code() == "step-exists" => {
            // Another process created it meanwhile, perhaps with the same text.
            let same = same_step(context, &plan, request)?.ok_or(error)?;
            return Ok(Put { is_new: false, now: same });
        }
        other => other?,
    };
    let id = report.changes.first().and_then(|it| id::read_step_id(&it.id)).map(|it| it.number);
    let found = id.map(|it| step_shape(context, &plan, &it)).transpose()?.flatten();
    let found = found.ok_or_else(|| load::missing(context, &plan))?;
    Ok(Put { is_new: true, now: found })
}

/// The title in a text: its heading without `#`, or else its first line that is not empty.
pub(crate) fn title(text: &str) -> String {
    let body = &text[front_matter::split(text.as_bytes()).body_start()..];
    let line = || body.lines().map(|it| it.trim_start_matches('#').trim()).find(|it| !it.is_empty());
    new_plan::heading(text).or_else(|| line().map(str::to_owned)).unwrap_or_default()
}

fn same_step(
    context: &Context,
    plan: &PlanId,
    request: &StepText,
) -> Result<Option<(StepShape, String)>, Error> {
    let Some(at) = &request.at else { return Ok(None) };
    let Some(number) = id::read_number(at) else {
        return Err(Error::usage(format!("`{at}` is not a step number"), "write it as 2 or 2.5"));
    };
    let found = load::existing_plan(context, plan)?;
    transaction::check_live(&found)?;
    let mut same = found.steps.iter().filter(|it| it.id.number == number && it.has_file()).peekable();
    if same.peek().is_none() {
        return Ok(None);
    }
    for step in same {
        let bytes = context.plans.read(Path::new(&step.path))?.bytes;
        if is_same(&bytes, &request.text) {
            precondition::check_plan(context, &Plans::new(vec![found.clone()]), &found)?;
            return step_shape(context, plan, &number);
        }
    }
    let hint = "change the existing step, or choose another number";
    Err(Error::conflict("step-exists", format!("`{plan}:{number}` exists, with another text"), hint))
}

fn step_shape(
    context: &Context,
    plan: &PlanId,
    number: &StepNumber,
) -> Result<Option<(StepShape, String)>, Error> {
    let plans = LoadQuery::plan(plan).load(context)?.plans;
    let Some(plan) = plans.get(plan) else { return Ok(None) };
    let Some(step) = plan.steps.iter().find(|it| it.id.number == *number) else { return Ok(None) };
    shaped(context, &plans, plan, step).map(Some)
}

pub fn plan(context: &Context, plan: &str) -> Result<(PlanShape, String), Error> {
    let (id, side) = resolve::plan_for_reading(context, plan)?;
    let plans = LoadQuery::plan(&id).load(context)?.plans;
    let plan = resolve::plan_at(&plans, &id, side).ok_or_else(|| load::missing(context, &id))?;
    let shape = Views::of(context, &plans).plan(plan);
    Ok((shape, body(context, &plan.path, plan.etag.is_some())?))
}

pub fn step(context: &Context, step: &str) -> Result<(StepShape, String), Error> {
    let named = resolve::step(context, step)?;
    let plans = LoadQuery::plan(&named.id.plan).load(context)?.plans;
    let plan = plans.get(&named.id.plan).ok_or_else(|| load::missing(context, &named.id.plan))?;
    shaped(context, &plans, plan, resolve::shown_step(plan, &named)?)
}

/// The text below the front matter of a step's file; empty if the step has no file.
pub fn step_text(context: &Context, step: &str) -> Result<String, Error> {
    let named = resolve::step(context, step)?;
    let plan = &named.id.plan;
    let plan = load::existing_plan(context, plan)?;
    Ok(resolve::shown_step(&plan, &named)?.body.clone())
}

fn body(context: &Context, path: &str, exists: bool) -> Result<String, Error> {
    if !exists {
        return Ok(String::new());
    }
    let bytes = context.plans.read(Path::new(path))?.bytes;
    Ok(String::from_utf8_lossy(front_matter::split(&bytes).body()).into_owned())
}

fn shaped(context: &Context, plans: &Plans, plan: &Plan, step: &Step) -> Result<(StepShape, String), Error> {
    let shape = Views::of(context, plans).step(plan, step);
    Ok((shape, body(context, &step.path, step.has_file())?))
}

pub fn steps(context: &Context, plan: &str) -> Result<Vec<(StepShape, String)>, Error> {
    let (id, side) = resolve::plan_for_reading(context, plan)?;
    let plans = LoadQuery::plan(&id).load(context)?.plans;
    let plan = resolve::plan_at(&plans, &id, side).ok_or_else(|| load::missing(context, &id))?;
    let texts = load::plan_at(context, &id, side)?;
    let views = Views::of(context, &plans);
    let body = |path: &str| {
        texts.iter().flat_map(|it| &it.steps).find(|it| it.path == path).map(|it| it.body.clone())
    };
    Ok(plan.steps.iter().map(|it| (views.step(plan, it), body(&it.path).unwrap_or_default())).collect())
}
