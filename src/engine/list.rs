//! `list`: the plans, or one plan's steps.

use serde_json::{Value, json};

use crate::engine::attention;
use crate::engine::context::Context;
use crate::engine::error::Error;
use crate::engine::load;
use crate::engine::resolve::{self, Side};
use crate::engine::shape::{PlanShape, Shaper, StepShape, value};
use crate::engine::sort::Sort;
use crate::plan::id::PlanId;
use crate::plan::model::{Plan, PlanKind, Step};
use crate::plan::plans::Plans;
use crate::plan::rules;
use crate::plan::words::{PlanStatus, Stated, Status, StepStatus, Words};

/// Which plans, or which steps of one plan.
#[derive(Debug, Clone, Default)]
pub struct ListRequest {
    /// List this plan's steps.
    pub plan: Option<String>,
    /// Only these statuses: of plans, or with a plan of steps.
    pub status: Vec<String>,
    pub program: Option<String>,
    pub tag: Option<String>,
    pub stale: bool,
    pub archived: bool,
    pub all: bool,
    pub sort: Sort,
}

#[derive(Debug, Clone)]
pub enum ListReport {
    /// `hidden`: how many more `all` would show.
    Plans {
        plans: Vec<PlanShape>,
        hidden: usize,
    },
    Steps {
        plan: Box<PlanShape>,
        steps: Vec<StepShape>,
    },
}

impl ListReport {
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Plans { .. } => "plan-list",
            Self::Steps { .. } => "step-list",
        }
    }

    pub fn to_json(&self) -> Value {
        match self {
            Self::Plans { plans, hidden } => json!({"plans": value(plans), "hidden": hidden}),
            Self::Steps { plan, steps } => json!({"plan": value(plan), "steps": value(steps)}),
        }
    }
}

/// Lists active and draft plans unless something else is asked for; a plan's steps are always all listed.
pub fn list(context: &Context, request: &ListRequest) -> Result<ListReport, Error> {
    match &request.plan {
        Some(plan) => steps(context, request, &resolve::plan_for_reading(context, plan)?),
        None => plans(context, request),
    }
}

fn plans(context: &Context, request: &ListRequest) -> Result<ListReport, Error> {
    let statuses = read_words::<PlanStatus>(&context.config.words, &request.status)?;
    // When a step was closed is in what the light form leaves out, and a stale step may have waited since then.
    let plans = if request.stale { load::all(context)? } else { load::all_light(context)? };
    if let Some(program) = request.program.as_ref().map(|it| PlanId::new(it.clone()))
        && plans.get(&program).is_none()
    {
        return Err(load::missing(context, &program));
    }
    let root = context.root_name();
    let shaper = Shaper { plans: &plans, now: context.now, root: &root };
    let (shown, hidden): (Vec<_>, Vec<_>) = plans
        .iter()
        .filter(|it| is_asked_for(context, &plans, it, request))
        .partition(|it| is_shown(it, request, &statuses));
    let mut shown = load::map(&shown, |it| shaper.plan(it));
    request.sort.plans(&mut shown);
    let hidden = if request.status.is_empty() { hidden.len() } else { 0 };
    load::let_go(plans);
    Ok(ListReport::Plans { plans: shown, hidden })
}

/// The filters that `all` does not lift.
fn is_asked_for(context: &Context, plans: &Plans, plan: &Plan, request: &ListRequest) -> bool {
    let is_tagged = request.tag.as_ref().is_none_or(|tag| plan.tags.contains(tag));
    let is_child =
        request.program.as_ref().is_none_or(|it| plan.program.as_ref() == Some(&PlanId::new(it.clone())));
    let is_stale = || {
        plan.steps.iter().any(|it| attention::stale(plans, plan, it, context.now, seconds(context)).is_some())
    };
    is_tagged && is_child && (!request.stale || is_stale())
}

fn seconds(context: &Context) -> i64 {
    i64::from(context.config.stale_days()) * 86_400
}

fn is_shown(plan: &Plan, request: &ListRequest, statuses: &[PlanStatus]) -> bool {
    let (status, _) = plan.shown_status();
    let is_open = !matches!(status, Stated::Known(PlanStatus::Completed | PlanStatus::Abandoned));
    let by_status = status.known().is_some_and(|it| statuses.contains(&it));
    match (request.all, request.archived, statuses.is_empty()) {
        (true, _, true) => true,
        (true, _, false) => by_status,
        (_, true, empty) => plan.is_archived && (empty || by_status),
        (_, false, true) => !plan.is_archived && is_open,
        (_, false, false) => !plan.is_archived && by_status,
    }
}

fn steps(context: &Context, request: &ListRequest, (id, side): &(PlanId, Side)) -> Result<ListReport, Error> {
    let (ready, words): (Vec<_>, Vec<_>) = request.status.iter().cloned().partition(|it| is_ready_word(it));
    let statuses = read_words::<StepStatus>(&context.config.words, &words)?;
    let plans = load::some(context, id)?;
    let plan = resolve::plan_at(&plans, id, *side).ok_or_else(|| load::missing(context, id))?;
    if plan.kind == PlanKind::Program && plan.steps.is_empty() {
        return children(context, request, &plans, plan);
    }
    let root = context.root_name();
    let shaper = Shaper { plans: &plans, now: context.now, root: &root };
    let seconds = seconds(context);
    let is_wanted = |it: &&Step| {
        request.status.is_empty()
            || it.standing().known().is_some_and(|it| statuses.contains(&it))
            || !ready.is_empty() && rules::is_ready(&plans, plan, it, context.now)
    };
    let wanted = plan.steps.iter().filter(is_wanted);
    let wanted = wanted.filter(|it| request.tag.as_ref().is_none_or(|tag| it.tags.contains(tag)));
    let wanted = wanted
        .filter(|it| !request.stale || attention::stale(&plans, plan, it, context.now, seconds).is_some());
    let mut steps: Vec<_> = wanted.map(|it| shaper.step(plan, it)).collect();
    request.sort.steps(&mut steps);
    Ok(ListReport::Steps { plan: Box::new(shaper.plan(plan)), steps })
}

/// Whether a word asks for the steps that are ready. In a file it means pending, which steps that wait are, too.
fn is_ready_word(typed: &str) -> bool {
    typed.trim().eq_ignore_ascii_case("ready")
}

/// A program's steps are its plans, closed ones too.
fn children(
    context: &Context,
    request: &ListRequest,
    plans: &Plans,
    program: &Plan,
) -> Result<ListReport, Error> {
    let statuses = read_words::<PlanStatus>(&context.config.words, &request.status)?;
    let root = context.root_name();
    let shaper = Shaper { plans, now: context.now, root: &root };
    let is_wanted = |it: &&Plan| {
        let status = it.shown_status().0.known();
        (statuses.is_empty() || status.is_some_and(|it| statuses.contains(&it)))
            && request.tag.as_ref().is_none_or(|tag| it.tags.contains(tag))
    };
    let mut shown: Vec<_> = plans.children(&program.id).filter(is_wanted).map(|it| shaper.plan(it)).collect();
    request.sort.plans(&mut shown);
    Ok(ListReport::Plans { plans: shown, hidden: 0 })
}

pub(crate) fn read_words<S: Status>(words: &Words, typed: &[String]) -> Result<Vec<S>, Error> {
    typed.iter().map(|it| read_word(words, it)).collect()
}

pub(crate) fn read_word<S: Status>(words: &Words, typed: &str) -> Result<S, Error> {
    words.read(typed).ok_or_else(|| {
        let known = S::ALL.iter().map(|it| it.word()).collect::<Vec<_>>().join(", ");
        let hint = words
            .nearest::<S>(typed)
            .map_or_else(|| format!("known words: {known}"), |it| format!("did you mean `{it}`?"));
        Error::usage(format!("the status `{typed}` is not known"), hint)
    })
}
