//! From what a person typed to a plan or a step.

use std::path::{Component, Path, PathBuf};

use crate::engine::context::Context;
use crate::engine::error::Error;
use crate::engine::load;
use crate::plan::file_name::{self, FileName};
use crate::plan::id::{PlanId, Reference, StepId, read_reference};
use crate::plan::model::{Plan, Step};
use crate::plan::plans::Plans;
use crate::plan::step_number::StepNumber;
use crate::plan::words::PlanStatus;

/// What a reference means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Target {
    Plan(PlanId),
    Step(StepId),
}

impl Target {
    pub(crate) fn plan(&self) -> &PlanId {
        match self {
            Self::Plan(plan) => plan,
            Self::Step(step) => &step.plan,
        }
    }
}

/// Finds out what a reference means, looking at the plan that it names and no other, if it names one.
///
/// An existing plan of the whole name wins over a step. A step need not exist.
pub(crate) fn target(context: &Context, text: &str) -> Result<Target, Error> {
    match read_reference(text) {
        Reference::Number(_) if load::exists(context, &PlanId::new(text)) => {
            Ok(Target::Plan(PlanId::new(text)))
        }
        Reference::Number(number) => {
            Ok(Target::Step(StepId { plan: present_plan(context, &number)?, number }))
        }
        Reference::Path(path) => path_target(context, &path),
        Reference::Name { whole, step } => {
            if load::exists(context, &whole) {
                return Ok(Target::Plan(whole));
            }
            match step {
                Some(step) if load::exists(context, &step.plan) => Ok(Target::Step(step)),
                Some(step) => Err(load::missing(context, &step.plan)),
                None => Err(load::missing(context, &whole)),
            }
        }
    }
}

/// As [`target`], where only a step will do.
pub(crate) fn step(context: &Context, text: &str) -> Result<StepId, Error> {
    match target(context, text)? {
        Target::Step(step) => Ok(step),
        Target::Plan(plan) => {
            let message = format!("`{plan}` is a plan; a step is wanted here");
            Err(Error::usage(message, format!("name one of its steps, as in `{plan}:1`")))
        }
    }
}

/// As [`target`], where only a plan will do; a step's id means its plan nowhere.
pub(crate) fn plan(context: &Context, text: &str) -> Result<PlanId, Error> {
    match target(context, text)? {
        Target::Plan(plan) => Ok(plan),
        Target::Step(step) => {
            let message = format!("`{step}` is a step; a plan is wanted here");
            Err(Error::usage(message, format!("its plan is `{}`", step.plan)))
        }
    }
}

/// Returns the plan that a bare number belongs to: `PLANWATCH_PLAN`, else the one of the working directory, else
/// the only active one.
fn present_plan(context: &Context, number: &StepNumber) -> Result<PlanId, Error> {
    if let Some(name) = &context.here.plan {
        let id = PlanId::new(name.clone());
        return if load::exists(context, &id) { Ok(id) } else { Err(load::missing(context, &id)) };
    }
    let inside = context.here.directory.strip_prefix(context.plans.root()).ok();
    if let Some(Component::Normal(name)) = inside.and_then(|it| it.components().next())
        && let Some(id) = name.to_str().filter(|it| PlanId::is_plan_name(it)).map(PlanId::new)
        && load::exists(context, &id)
    {
        return Ok(id);
    }
    only_active_plan(context, number)
}

fn only_active_plan(context: &Context, number: &StepNumber) -> Result<PlanId, Error> {
    let plans = load::all(context)?;
    let active: Vec<_> = plans.live().filter(|it| it.shown_status().0.is(PlanStatus::Active)).collect();
    if let [only] = active.as_slice() {
        return Ok(only.id.clone());
    }
    let (is_active, mut named) = match active.is_empty() {
        true => (false, plans.live().collect::<Vec<_>>()),
        false => (true, active),
    };
    // The one that was meant has such a step, so those come first.
    let has = |it: &&Plan| it.steps.iter().any(|step| step.id.number == *number);
    named.sort_by_key(|it| !has(it));
    let candidates = named.into_iter().take(12).map(|it| it.id.to_string()).collect();
    Err(Error::WhichPlan { candidates, is_active, number: number.to_string() })
}

/// A path names a plan's directory, its `plan.md`, or a step's file.
fn path_target(context: &Context, path: &str) -> Result<Target, Error> {
    let not_found = || Error::NotFound { what: "plan or step", name: path.to_owned(), nearest: None };
    let absolute = normalize(&context.here.directory.join(path));
    let root = context.plans.root();
    let relative = absolute.strip_prefix(root).ok();
    // Without a leading `./` the path may also be meant as seen from the plans directory.
    let relative = relative
        .map(Path::to_path_buf)
        .or_else(|| Path::new(path).is_relative().then(|| normalize(Path::new(path))));
    let relative = relative.ok_or_else(not_found)?;
    let inside = relative.strip_prefix("_archive");
    let is_archived = inside.is_ok();
    let relative = inside.unwrap_or(&relative);
    let mut names = relative.components().filter_map(|it| it.as_os_str().to_str());
    let (plan, file) = (names.next().ok_or_else(not_found)?, names.next());
    let plan = PlanId::new(plan);
    if !load::exists(context, &plan) {
        return Err(load::missing(context, &plan));
    }
    if is_archived && load::is_live(context, &plan) {
        let message = format!("`{path}` is archived, and a live plan has its name");
        let hint = format!("`{plan}` means the live one; rename one of the directories to tell them apart");
        return Err(Error::Conflict { code: "archived", message, hint });
    }
    match file.map(file_name::classify) {
        None | Some(FileName::Plan) => Ok(Target::Plan(plan)),
        Some(FileName::Step(number)) => Ok(Target::Step(StepId { plan, number })),
        Some(_) => Err(not_found()),
    }
}

/// Takes `.` and `..` out of a path by its letters alone.
fn normalize(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                normal.pop();
            }
            Component::CurDir => {}
            other => normal.push(other),
        }
    }
    normal
}

/// Finds a step in loaded plans, or says which steps there are.
pub(crate) fn find_step<'a>(plans: &'a Plans, id: &StepId) -> Result<(&'a Plan, &'a Step), Error> {
    let plan = plans.get(&id.plan).ok_or_else(|| Error::NotFound {
        what: "plan",
        name: id.plan.to_string(),
        nearest: None,
    })?;
    let step = plan.find(id).ok_or_else(|| missing_step(plan, &id.number))?;
    Ok((plan, step))
}

fn missing_step(plan: &Plan, number: &StepNumber) -> Error {
    let steps = plan.steps.iter().take(20).map(|it| it.id.number.to_string()).collect();
    Error::NoSuchStep { name: format!("{}:{number}", plan.id), steps }
}
