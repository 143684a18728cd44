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
use crate::plan::words::{PlanStatus, nearest};

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
        Reference::Number(number) => Ok(Target::Step(StepId { plan: present_plan(context)?, number })),
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
pub(crate) fn present_plan(context: &Context) -> Result<PlanId, Error> {
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
    only_active_plan(context)
}

fn only_active_plan(context: &Context) -> Result<PlanId, Error> {
    let plans = load::all(context)?;
    let is_active = |it: &&Plan| it.shown_status().0.is(PlanStatus::Active);
    let mut active: Vec<_> = plans.live().filter(is_active).map(|it| it.id.clone()).collect();
    match (active.len(), active.pop()) {
        (1, Some(only)) => Ok(only),
        (0, _) => Err(Error::usage(
            "which plan? none is active",
            "name it, as in `PLAN:1`; `planwatch list --all` names the plans",
        )),
        (_, last) => {
            active.extend(last);
            let candidates = active.into_iter().take(12).map(|it| it.to_string()).collect();
            Err(Error::WhichPlan { candidates })
        }
    }
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
    let relative = relative.strip_prefix("_archive").unwrap_or(&relative);
    let mut names = relative.components().filter_map(|it| it.as_os_str().to_str());
    let (plan, file) = (names.next().ok_or_else(not_found)?, names.next());
    let plan = PlanId::new(plan);
    if !load::exists(context, &plan) {
        return Err(load::missing(context, &plan));
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
    let numbers: Vec<_> = plan.steps.iter().map(|it| it.id.number.to_string()).collect();
    let nearest = nearest(&number.to_string(), numbers.iter().map(String::as_str))
        .map(|it| format!("{}:{it}", plan.id));
    Error::NotFound { what: "step", name: format!("{}:{number}", plan.id), nearest }
}
