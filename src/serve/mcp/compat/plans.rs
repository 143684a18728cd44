//! Covers of the tools for plans.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::api::views::value;
use crate::ops::set::{self, SetOp};
use crate::ops::upsert::{self, PlanText};
use crate::serve::mcp::result::{self, Refusal};
use crate::serve::mcp::tool::{Call, Effect, Tool, Without};
use crate::serve::mcp::write::set_request;
use crate::text::scalar;

use super::{own, with_plan_id};

/// What a plan is after it was changed, in the notation of results.
const CHANGED: &str = "plan_id id title did written:bool path status? etag? hint?";

pub(super) fn tools() -> Vec<Tool> {
    vec![
        Tool::new(
            ("save_plan", "Save a plan"),
            Effect::Sets,
            "Creates a plan from a text, which becomes its plan.md; its id is the slug of the title. The same text again changes nothing, another text is refused.",
            CHANGED,
            save_plan,
        )
        .without(|_| Without::Makes),
        Tool::new(
            ("create_plan", "Create a plan"),
            Effect::Adds,
            "Makes a plan with steps of these titles, in this order. For a goal of several actions, of which some may need several attempts.",
            CHANGED,
            create_plan,
        )
        .without(|_| Without::Makes),
        Tool::new(
            ("get_plan", "Read a plan"),
            Effect::Reads,
            "Reads a plan by its id or title: its text, and all steps with their status and attempts.",
            GOT,
            get_plan,
        ),
        Tool::new(
            ("list_plans", "List plans"),
            Effect::Reads,
            "Lists plans with their progress and last activity; active ones unless another status is asked for.",
            "plans:plan[] next_cursor? hidden:int?",
            list_plans,
        ),
        Tool::new(
            ("search_plans", "Search plans"),
            Effect::Reads,
            "Searches the text of plans, best first.",
            "hits:hit[] next_cursor?",
            search_plans,
        ),
        Tool::new(
            ("update_plan_status", "Close a plan"),
            Effect::Sets,
            "Marks a whole plan as complete or abandoned.",
            CHANGED,
            update_plan_status,
        ),
    ]
}

#[derive(Debug, Deserialize, JsonSchema)]
struct SavePlan {
    title: String,
    /// The text, in Markdown
    body: String,
    tags: Option<Vec<String>>,
    /// Files that it is about
    files: Option<Vec<String>>,
}

fn save_plan(call: &Call, asked: SavePlan) -> Result<Value, Refusal> {
    let SavePlan { title, body, tags, files } = asked;
    let context = &call.context;
    let put = upsert::put_plan(context, &PlanText { title, body })?;
    let mut saved = result::pick(&value(&put.now), "id title path status etag");
    saved["did"] = if put.is_new { "saved" } else { "nothing: already done" }.into();
    saved["written"] = put.is_new.into();
    let lists = [("tags", tags), ("files", files)];
    for (key, list) in lists.into_iter().filter_map(|(key, it)| Some((key, it?))) {
        let request = set_request(&put.now.id, key, SetOp::Yaml(scalar::json(&json!(list))));
        let changed = result::changed(set::set(context, &request)?)?;
        saved["etag"] = changed["etag"].clone();
        saved["written"] = (saved["written"] == true || changed["written"] == true).into();
    }
    Ok(with_plan_id(saved))
}

#[derive(Debug, Deserialize, JsonSchema)]
struct CreatePlan {
    title: String,
    description: Option<String>,
    /// Titles, in order
    steps: Vec<String>,
}

fn create_plan(call: &Call, asked: CreatePlan) -> Result<Value, Refusal> {
    let CreatePlan { title, description, steps } = asked;
    own(call, "create_plan", json!({"title": title, "description": description, "steps": steps}))
        .map(with_plan_id)
}

/// A plan with its steps in full, as planwatch's own `get_plan` has it.
const GOT: &str = "plan_id id title status state kind priority? due? category? program? tags:strs? goals:strs? success_criteria:strs? \
                   description? steps_total:int steps_completed:int steps_failed:int? steps_blocked:int? \
                   steps_in_progress:int? steps_ready:int? confirm_phases:strs? notes:list? decisions:list? \
                   problem_list:list? archived:bool? path etag? body? steps:list children:list? next_cursor? more?";

#[derive(Debug, Deserialize, JsonSchema)]
struct GetPlan {
    /// As auth
    plan_id: Option<String>,
    /// Or a part of it
    title: Option<String>,
    /// Of steps
    limit: Option<usize>,
    /// next_cursor of the page before
    cursor: Option<String>,
}

fn get_plan(call: &Call, asked: GetPlan) -> Result<Value, Refusal> {
    let GetPlan { plan_id, title, limit, cursor } = asked;
    let Some(plan) = plan_id.or(title) else {
        return Err(Refusal::usage("which plan?", "give `plan_id` or `title`; list_plans names them"));
    };
    whole_plan(call, &plan, limit, cursor.as_deref()).map(with_plan_id)
}

/// A plan with the texts and attempts of its steps.
pub(super) fn whole_plan(
    call: &Call,
    plan: &str,
    limit: Option<usize>,
    cursor: Option<&str>,
) -> Result<Value, Refusal> {
    own(call, "get_plan", json!({"plan": plan, "detail": "full", "limit": limit, "cursor": cursor}))
}

#[derive(Debug, Deserialize, JsonSchema)]
struct ListPlans {
    status: Option<Closing>,
    limit: Option<usize>,
    cursor: Option<String>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Closing {
    #[default]
    Active,
    Complete,
    Abandoned,
    All,
}

impl Closing {
    fn word(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Complete => "complete",
            Self::Abandoned => "abandoned",
            Self::All => "all",
        }
    }
}

fn list_plans(call: &Call, asked: ListPlans) -> Result<Value, Refusal> {
    let ListPlans { status, limit, cursor } = asked;
    let status = status.unwrap_or_default().word();
    own(call, "list_plans", json!({"status": status, "limit": limit, "cursor": cursor}))
}

#[derive(Debug, Deserialize, JsonSchema)]
struct SearchPlans {
    query: String,
    limit: Option<usize>,
    cursor: Option<String>,
}

fn search_plans(call: &Call, asked: SearchPlans) -> Result<Value, Refusal> {
    let SearchPlans { query, limit, cursor } = asked;
    own(call, "recall", json!({"query": query, "kind": "plan", "limit": limit, "cursor": cursor}))
}

#[derive(Debug, Deserialize, JsonSchema)]
struct UpdatePlanStatus {
    /// As auth
    plan_id: String,
    status: Closed,
    /// Complete it with open steps
    force: Option<bool>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Closed {
    Complete,
    Abandoned,
}

fn update_plan_status(call: &Call, asked: UpdatePlanStatus) -> Result<Value, Refusal> {
    let UpdatePlanStatus { plan_id, status, force } = asked;
    let status = match status {
        Closed::Complete => Closing::Complete,
        Closed::Abandoned => Closing::Abandoned,
    };
    own(call, "update_plan", json!({"plan": plan_id, "status": status.word(), "force": force}))
        .map(with_plan_id)
}
