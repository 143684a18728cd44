//! Resolves references as people type them: finds the plan or step that each one means.

use std::path::{Component, Path, PathBuf};

use crate::api::context::Context;
use crate::api::error::Error;
use crate::api::views::shown_path;
use crate::plan::file_name::{self, FileName};
use crate::plan::id::{PlanId, Reference, StepId, read_reference};
use crate::plan::model::{Plan, Step};
use crate::plan::plans::Plans;
use crate::plan::step_number::StepNumber;
use crate::plan::words::PlanStatus;
use crate::store::load::{self, LoadQuery, Side};
use crate::text::typed::shell_word;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Target {
    Plan(PlanId),
    Step(NamedStep),
}

/// A step and how it was named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NamedStep {
    pub(crate) id: StepId,
    /// The name of the step's file, if known, for example from a path. If two files have the same number, the name
    /// selects one of them.
    file: Option<String>,
}

impl NamedStep {
    /// Names a loaded step, with its file.
    pub(crate) fn of(step: &Step) -> Self {
        Self { id: step.id.clone(), file: step.path.rsplit('/').next().map(str::to_owned) }
    }

    /// Names a step by its id and, if known, the name of its file.
    pub(crate) fn in_file(id: StepId, file: Option<String>) -> Self {
        Self { id, file }
    }
}

impl Target {
    pub(crate) fn plan(&self) -> &PlanId {
        match self {
            Self::Plan(plan) => plan,
            Self::Step(step) => &step.id.plan,
        }
    }

    fn step(id: StepId) -> Self {
        Self::Step(NamedStep { id, file: None })
    }
}

/// Finds what a reference means. Loads plans only for a bare number, to find the single active plan.
///
/// If the whole text is the name of an existing plan, it means that plan, not a step. A step need not exist. A path to
/// an archived plan is refused if a live plan has the same name; [`for_reading`] allows it.
pub(crate) fn target(context: &Context, text: &str) -> Result<Target, Error> {
    let (target, side) = for_reading(context, text)?;
    if side == Side::Archived && load::is_live(context, target.plan()) {
        let message = format!("`{text}` is archived, and a live plan has the same name");
        let hint =
            format!("`{}` means the live one; archived plans can be read, but not changed", target.plan());
        return Err(Error::Conflict { code: "archived", message, hint });
    }
    Ok(target)
}

/// Like [`target`], but a path into the archive means the archived plan even if a live plan has the same name.
pub(crate) fn for_reading(context: &Context, text: &str) -> Result<(Target, Side), Error> {
    let target = match read_reference(text) {
        Reference::Number(_) if load::exists(context, &PlanId::new(text)) => Target::Plan(PlanId::new(text)),
        Reference::Number(number) => Target::step(StepId { plan: present_plan(context, &number)?, number }),
        Reference::Path(path) => return path_target(context, &path),
        Reference::Name { whole, .. } if load::exists(context, &whole) => Target::Plan(whole),
        Reference::Name { step: Some(step), .. } if load::exists(context, &step.plan) => Target::step(step),
        Reference::Name { step: Some(step), .. } => return Err(load::missing(context, &step.plan)),
        Reference::Name { whole, .. } => return Err(load::missing(context, &whole)),
    };
    Ok((target, Side::LiveFirst))
}

/// Like [`target`], for a step only.
pub(crate) fn step(context: &Context, text: &str) -> Result<NamedStep, Error> {
    match target(context, text)? {
        Target::Step(step) => Ok(step),
        Target::Plan(plan) => {
            let message = format!("`{plan}` is a plan; a step is needed here");
            Err(Error::usage(
                message,
                format!("name one of its steps, as in `{}`", shell_word(&format!("{plan}:1"))),
            ))
        }
    }
}

/// Like [`target`], for a plan only. The id of a step is refused.
pub(crate) fn plan(context: &Context, text: &str) -> Result<PlanId, Error> {
    only_plan(target(context, text)?)
}

/// Like [`for_reading`], for a plan only.
pub(crate) fn plan_for_reading(context: &Context, text: &str) -> Result<(PlanId, Side), Error> {
    let (target, side) = for_reading(context, text)?;
    Ok((only_plan(target)?, side))
}

fn only_plan(target: Target) -> Result<PlanId, Error> {
    match target {
        Target::Plan(plan) => Ok(plan),
        Target::Step(NamedStep { id, .. }) => {
            let message = format!("`{id}` is a step; a plan is needed here");
            Err(Error::usage(message, format!("its plan is `{}`", id.plan)))
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
    let plans = LoadQuery::all().load(context)?.plans;
    let active: Vec<_> = plans.live().filter(|it| it.shown_status().0.is(PlanStatus::Active)).collect();
    if let [only] = active.as_slice() {
        return Ok(only.id.clone());
    }
    let (is_active, mut named) = match active.is_empty() {
        true => (false, plans.live().collect::<Vec<_>>()),
        false => (true, active),
    };
    // Plans with a step of this number come first.
    let has = |it: &&Plan| it.steps.iter().any(|step| step.id.number == *number);
    named.sort_by_key(|it| !has(it));
    let candidates = named.into_iter().map(|it| it.id.to_string()).collect();
    Err(Error::WhichPlan { candidates, is_active, number: number.to_string() })
}

/// A path names a plan's directory, its `plan.md`, or a step's file.
fn path_target(context: &Context, path: &str) -> Result<(Target, Side), Error> {
    let not_found = || Error::NotFound { what: "plan or step", name: path.to_owned(), nearest: None };
    let absolute = normalize(&context.here.directory.join(path));
    let root = context.plans.root();
    let relative = absolute.strip_prefix(root).ok();
    // A relative path may also be given relative to the plans directory.
    let relative = relative
        .map(Path::to_path_buf)
        .or_else(|| Path::new(path).is_relative().then(|| normalize(Path::new(path))));
    let relative = relative.ok_or_else(not_found)?;
    let inside = relative.strip_prefix("_archive");
    let side = if inside.is_ok() { Side::Archived } else { Side::LiveFirst };
    let relative = inside.unwrap_or(&relative);
    let mut names = relative.components().filter_map(|it| it.as_os_str().to_str());
    let (plan, file) = (names.next().ok_or_else(not_found)?, names.next());
    let plan = PlanId::new(plan);
    if !load::exists_at(context, &plan, side) {
        return Err(load::missing(context, &plan));
    }
    let target = match (file, file.map(file_name::classify)) {
        (_, None | Some(FileName::Plan)) => Target::Plan(plan),
        (Some(name), Some(FileName::Step(number))) => {
            Target::Step(NamedStep { id: StepId { plan, number }, file: Some(name.to_owned()) })
        }
        _ => return Err(not_found()),
    };
    Ok((target, side))
}

/// Removes `.` and `..` from a path without reading the disk.
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

/// Looks up the named plan among loaded plans.
pub(crate) fn plan_at<'a>(plans: &'a Plans, id: &PlanId, side: Side) -> Option<&'a Plan> {
    match side {
        Side::LiveFirst => plans.get(id),
        Side::Archived => plans.archived(id),
    }
}

/// Finds the named step. If two files have its number and `named` does not name one of them, the first one is returned;
/// its problems include the duplicate number.
pub(crate) fn shown_step<'a>(plan: &'a Plan, named: &NamedStep) -> Result<&'a Step, Error> {
    let step = named_step(plan, named)?.or_else(|| plan.find(&named.id));
    step.ok_or_else(|| missing_step(plan, &named.id.number))
}

/// Returns `None` if two files have the step's number and `named` does not name one of them.
fn named_step<'a>(plan: &'a Plan, named: &NamedStep) -> Result<Option<&'a Step>, Error> {
    let same = same_number(plan, named);
    let is_named = |it: &&&Step| named.file.as_deref() == it.path.rsplit('/').next();
    match (same.iter().find(is_named), same.as_slice()) {
        (Some(step), _) | (None, [step]) => Ok(Some(*step)),
        (None, []) => Err(missing_step(plan, &named.id.number)),
        (None, _) => Ok(None),
    }
}

/// Like [`shown_step`], but the file must be unambiguous.
pub(crate) fn one_step<'a>(context: &Context, plan: &'a Plan, named: &NamedStep) -> Result<&'a Step, Error> {
    named_step(plan, named)?.ok_or_else(|| {
        let root = context.root_name();
        let same = same_number(plan, named);
        let paths: Vec<_> = same.iter().map(|it| format!("`{}`", shown_path(&root, &it.path))).collect();
        let hint = format!("use the path of one of them: {}", paths.join(" or "));
        Error::failed("duplicate-step-number", format!("{} have the same number", paths.join(" and ")), hint)
    })
}

fn same_number<'a>(plan: &'a Plan, named: &NamedStep) -> Vec<&'a Step> {
    plan.steps.iter().filter(|it| it.id.number == named.id.number).collect()
}

/// Finds, in plans from another load, the step whose file has the same path.
pub(crate) fn same_file<'a>(plans: &'a Plans, step: &Step) -> Result<(&'a Plan, &'a Step), Error> {
    let in_plan = |plan: &'a Plan| plan.steps.iter().find(|it| it.path == step.path).map(|it| (plan, it));
    let found = plans.iter().find_map(in_plan);
    found.ok_or_else(|| Error::NoSuchStep { name: step.id.to_string(), steps: Vec::new() })
}

/// Finds a step in loaded plans. If only the step is missing, the error lists the steps of the plan.
pub(crate) fn find_step<'a>(plans: &'a Plans, id: &StepId) -> Result<(&'a Plan, &'a Step), Error> {
    let missing = || Error::NotFound { what: "plan", name: id.plan.to_string(), nearest: None };
    let plan = plans.get(&id.plan).ok_or_else(missing)?;
    let step = plan.find(id).ok_or_else(|| missing_step(plan, &id.number))?;
    Ok((plan, step))
}

fn missing_step(plan: &Plan, number: &StepNumber) -> Error {
    let steps = plan.steps.iter().map(|it| it.id.number.to_string()).collect();
    Error::NoSuchStep { name: format!("{}:{number}", plan.id), steps }
}

/// The step that an id names; `None` if the id names a plan, or cannot be resolved.
pub(crate) fn id_of_step(context: &Context, id: &str) -> Option<StepId> {
    match target(context, id).ok()? {
        Target::Step(named) => Some(named.id),
        Target::Plan(_) => None,
    }
}
