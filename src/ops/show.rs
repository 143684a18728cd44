//! `show`: one plan, step, decision or insight with its text, and a plan's dependencies as a graph.

pub use crate::api::graph::GraphForm;

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::api::context::Context;
use crate::api::error::Error;
use crate::api::graph;
use crate::api::views::{Awaited, PlanShape, StepShape, Views, held, value};
use crate::ops::decide::{self, DecisionsReport};
use crate::ops::insight::{self, InsightsReport};
use crate::plan::claims::InForce;
use crate::plan::decision::Decision;
use crate::plan::id::StepId;
use crate::plan::model::{Plan, PlanKind};
use crate::plan::plans::Plans;
use crate::plan::records::Confirmation;
use crate::plan::rules;
use crate::plan::time::Time;
use crate::store::load::{self, LoadQuery};
use crate::store::resolve::{self, Target};
use crate::store::step_moves;

pub use crate::api::requests::ShowRequest;

#[derive(Debug, Clone)]
pub enum ShowReport {
    Plan(Box<ShownPlan>),
    Step(Box<ShownStep>),
    /// The report has exactly one decision.
    Decision(Box<DecisionsReport>),
    /// The report has exactly one insight.
    Insight(Box<InsightsReport>),
    Graph {
        plan: String,
        form: GraphForm,
        text: String,
    },
}

#[derive(Debug, Clone)]
pub struct ShownPlan {
    pub plan: PlanShape,
    pub body: String,
    pub steps: Vec<StepShape>,
    /// The steps of other plans that the steps of this plan wait for.
    pub awaited: Vec<OpenStep>,
    /// The plans of a program, including closed ones.
    pub children: Vec<PlanShape>,
    /// The decisions on the plan and on its steps, newest first, without superseded ones.
    pub decisions: Vec<Decision>,
    /// The texts of `steps`, in the same order. `None`: the request is not `full`.
    pub bodies: Option<Vec<String>>,
    pub problems: Vec<Value>,
}

#[derive(Debug, Clone)]
pub struct ShownStep {
    pub step: StepShape,
    pub body: String,
    /// The reasons why the step cannot be claimed, as sentences.
    pub waits_for: Vec<String>,
    /// For each sentence of `waits_for`, the step that the sentence names. `None`: it names no step, or no existing one.
    pub waits_on: Vec<Option<OpenStep>>,
    pub dependants: Vec<String>,
    /// Whether the step or its phase needs a person's confirmation.
    pub is_gated: bool,
    /// The decisions on the step, newest first, without superseded ones.
    pub decisions: Vec<Decision>,
    /// The confirmation of the step or of its phase. A confirmation of the phase contains the phase's name.
    pub confirmation: Option<Confirmation>,
    /// The claim that is in force, even if the step's file does not show it.
    pub held: Option<InForce>,
    pub problems: Vec<Value>,
}

/// A step that another one waits for.
#[derive(Debug, Clone)]
pub struct OpenStep {
    pub id: String,
    pub plan: String,
    pub number: String,
    pub title: String,
    pub status: String,
}

impl OpenStep {
    fn find(plans: &Plans, own: &Plan, id: &StepId) -> Option<Self> {
        let plan = if id.plan == own.id { own } else { plans.get(&id.plan)? };
        let step = plan.find(id)?;
        let (plan, number) = (id.plan.to_string(), id.number.to_string());
        let status = step.standing().word().to_owned();
        Some(Self { id: id.to_string(), plan, number, title: step.title.clone(), status })
    }
}

impl ShowReport {
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Plan(_) => "plan",
            Self::Step(_) => "step",
            Self::Decision(_) => "decision",
            Self::Insight(_) => "insight",
            Self::Graph { .. } => "graph",
        }
    }

    pub fn to_json(&self) -> Value {
        match self {
            Self::Plan(shown) => shown.to_json(),
            Self::Step(shown) => {
                let mut object = value(&shown.step);
                object["body"] = json!(shown.body);
                object["why_not_ready"] = json!(shown.waits_for);
                object["dependants"] = json!(shown.dependants);
                object["confirmation"] = value(&shown.confirmation);
                object["decisions"] = decisions(&shown.decisions);
                object["problem_list"] = json!(shown.problems);
                if let Some(it) = &shown.held {
                    object["held"] = held(it);
                }
                object
            }
            Self::Decision(shown) => shown.first_to_json(),
            Self::Insight(shown) => shown.first_to_json(),
            Self::Graph { plan, form, text } => json!({"plan": plan, "form": form.word(), "text": text}),
        }
    }
}

impl ShownPlan {
    fn to_json(&self) -> Value {
        let mut object = value(&self.plan);
        // The envelope has a key `kind`, which distinguishes plans from steps. So the plan's kind gets another key.
        object["plan_kind"] = value(&self.plan.kind);
        object["body"] = json!(self.body);
        let mut steps = value(&self.steps);
        if let (Some(bodies), Some(steps)) = (&self.bodies, steps.as_array_mut()) {
            for (step, body) in steps.iter_mut().zip(bodies) {
                step["body"] = json!(body);
            }
        }
        object["steps"] = steps;
        if self.plan.kind == PlanKind::Program {
            object["children"] = value(&self.children);
        }
        object["decisions"] = decisions(&self.decisions);
        object["problem_list"] = json!(self.problems);
        object
    }
}

/// The main fields of the decisions. `show` with the id of a decision returns all fields.
fn decisions(of: &[Decision]) -> Value {
    let shape = |it: &Decision| {
        json!({
            "id": it.id, "topic": it.topic, "decision": it.decision, "step": it.step, "by": it.by,
            "decided_at": it.decided_at.map(Time::with_milliseconds),
        })
    };
    of.iter().map(shape).collect()
}

pub fn show(context: &Context, request: &ShowRequest) -> Result<ShowReport, Error> {
    let (target, side) = match resolve::for_reading(context, &request.id) {
        Err(error) if error.code() == "not-found" => return record(context, request).ok_or(error),
        other => other?,
    };
    let plans = match &target {
        Target::Plan(id) => LoadQuery::plan(id).load(context)?.plans,
        Target::Step(_) => LoadQuery::plan_and_dependents(target.plan()).load(context)?.plans,
    };
    let plan =
        resolve::plan_at(&plans, target.plan(), side).ok_or_else(|| load::missing(context, target.plan()))?;
    if let Some(form) = request.graph {
        return Ok(ShowReport::Graph { plan: plan.id.to_string(), form, text: graph::draw(plan, form) });
    }
    let views = Views::of(context, &plans);
    // A plan from the index has no texts, so the plan is read from its files.
    let read_again = if has_texts(plan) { None } else { load::plan_at(context, &plan.id, side)? };
    let texts = read_again.as_ref().unwrap_or(plan);
    match target {
        Target::Plan(_) => {
            let mut shown = shown_plan(&views, plan, texts, request.full);
            shown.decisions = decide::standing(context, plan.id.as_str(), None);
            Ok(ShowReport::Plan(Box::new(shown)))
        }
        Target::Step(named) => {
            let step = resolve::shown_step(plan, &named)?;
            let text = texts.steps.iter().find(|it| it.path == step.path);
            let (is_gated, confirmation) = rules::confirmation(plan, step);
            let obstacles = rules::obstacles(&plans, plan, step, context.now);
            let obstacles = obstacles.iter().filter_map(|it| Some((step_moves::sentence(it)?, it.step())));
            let on = |it: Option<&StepId>| it.and_then(|id| OpenStep::find(&plans, plan, id));
            let (waits_for, waits_on) = obstacles.map(|(sentence, step)| (sentence, on(step))).unzip();
            let shown = ShownStep {
                step: views.step(plan, step),
                body: text.map(|it| it.body.clone()).unwrap_or_default(),
                waits_for,
                waits_on,
                dependants: dependants(&views, plan, &named.id),
                is_gated,
                decisions: decide::standing(context, plan.id.as_str(), Some(&step.id.to_string())),
                confirmation: confirmation.cloned(),
                held: plans.claims().in_force(step, context.now),
                problems: step.problems.iter().map(|it| views.problem(it)).collect(),
            };
            Ok(ShowReport::Step(Box::new(shown)))
        }
    }
}

/// Finds a decision or an insight by its id, or by the path that `search` prints.
fn record(context: &Context, request: &ShowRequest) -> Option<ShowReport> {
    if request.graph.is_some() {
        return None;
    }
    let decision = decide::one(context, &request.id).map(|it| ShowReport::Decision(Box::new(it)));
    decision.or_else(|| insight::one(context, &request.id).map(|it| ShowReport::Insight(Box::new(it))))
}

fn has_texts(plan: &Plan) -> bool {
    !plan.body.is_empty() || plan.steps.iter().any(|it| !it.body.is_empty())
}

fn shown_plan(views: &Views<'_>, plan: &Plan, texts: &Plan, full: bool) -> ShownPlan {
    let body = |path: &str| {
        texts.steps.iter().find(|it| it.path == path).map(|it| it.body.clone()).unwrap_or_default()
    };
    let problems = plan.problems.iter().chain(plan.steps.iter().flat_map(|it| &it.problems));
    let is_program = plan.kind == PlanKind::Program && !plan.is_archived;
    let (live, archived) = (views.plans.children(&plan.id), views.plans.archived_children(&plan.id));
    let children = live.chain(archived).filter(|_| is_program);
    let steps: Vec<_> = plan.steps.iter().map(|it| views.step(plan, it)).collect();
    let waits = steps.iter().flat_map(|it| &it.waits_for);
    let others: BTreeSet<_> = waits
        .filter_map(|it| match it {
            Awaited::Step(id) if id.plan != plan.id => Some(id),
            _ => None,
        })
        .collect();
    let awaited = others.into_iter().filter_map(|id| OpenStep::find(views.plans, plan, id)).collect();
    ShownPlan {
        plan: views.plan(plan),
        children: children.map(|it| views.plan(it)).collect(),
        decisions: Vec::new(),
        body: texts.body.clone(),
        steps,
        awaited,
        bodies: full.then(|| plan.steps.iter().map(|it| body(&it.path)).collect()),
        problems: problems.map(|it| views.problem(it)).collect(),
    }
}

fn dependants(views: &Views<'_>, plan: &Plan, id: &StepId) -> Vec<String> {
    // If an archived and a live plan have the same id, dependencies refer to the live plan. So steps of the archived plan
    // have no dependants.
    let is_meant = views.plans.get(&plan.id).is_some_and(|it| it.path == plan.path);
    let steps = views.plans.live().filter(|_| is_meant).flat_map(|it| &it.steps);
    steps.filter(|it| it.depends_on(id)).map(|it| it.id.to_string()).collect()
}
