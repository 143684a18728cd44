//! Wrappers of the tools for plans.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::api::views::value;
use crate::ops::set::{self, SetOp};
use crate::ops::upsert::{self, PlanText};
use crate::plan::words::PlanStatus;
use crate::serve::mcp::result::{self, Refusal};
use crate::serve::mcp::schema::Object;
use crate::serve::mcp::tool::{Call, Effect, Tool, Without};
use crate::serve::mcp::write::set_request;
use crate::store::typed_words;

use super::{own, with_plan_id};

/// The fields of a plan after a change, in the notation of results.
const CHANGED: &str = "plan_id id title did written:bool path status? etag? hint?";

pub(super) fn tools() -> Vec<Tool> {
    vec![
        Tool::new(
            ("save_plan", "Save a plan"),
            Effect::Sets,
            "Creates a plan from a text, which becomes its plan.md; its id is the slug of the title. If the plan exists with the same text, only `tags` and `files` are set; if it has another text, the call is refused.",
            CHANGED,
            save_plan,
        )
        .without(|_| Without::Makes),
        Tool::of::<()>(
            ("create_plan", "Create a plan"),
            Effect::Adds,
            "Makes a plan with steps that have the given titles, in the given order. Use it for a goal that takes several actions, which may need several attempts.",
            ("title:str description:str? steps:texts(Titles, in order)", CHANGED),
            |call, given| own(call, "create_plan", given.into()).map(with_plan_id),
        )
        .without(|_| Without::Makes),
        Tool::of::<()>(
            ("get_plan", "Read a plan"),
            Effect::Reads,
            "Reads a plan by its id or title: its text, and all steps with their status and attempts.",
            (
                "plan_id:str?(e.g. auth) title:str?(The title, or a part of it) limit:int?(Maximum number of steps) \
                 cursor:str?(next_cursor of the page before)",
                GOT,
            ),
            get_plan,
        ),
        Tool::of::<()>(
            ("list_plans", "List plans"),
            Effect::Reads,
            "Lists plans with their progress and last activity; active ones unless another status is asked for.",
            ("status:str?(active, complete, abandoned, all, or another word for a status) limit:int? cursor:str?", "plans:plan[] next_cursor? hidden:int?"),
            |call, mut given| {
                given.entry("status").or_insert_with(|| "active".into());
                own(call, "list_plans", given.into())
            },
        ),
        Tool::of::<()>(
            ("search_plans", "Search plans"),
            Effect::Reads,
            "Searches the text of plans, best first.",
            ("query:str limit:int? cursor:str?", "hits:hit[] next_cursor?"),
            |call, mut given| {
                given.insert("kind".to_owned(), "plan".into());
                own(call, "recall", given.into())
            },
        ),
        Tool::of::<()>(
            ("update_plan_status", "Close a plan"),
            Effect::Sets,
            "Marks a whole plan as complete or abandoned.",
            (
                "plan_id=plan:str(e.g. auth) status:str(complete or abandoned) force:bool?(Complete it even if steps are open)",
                CHANGED,
            ),
            update_plan_status,
        ),
    ]
}

fn update_plan_status(call: &Call, given: Object) -> Result<Value, Refusal> {
    let typed = given.get("status").and_then(Value::as_str).unwrap_or_default();
    let status = typed_words::read_word::<PlanStatus>(&call.context.config.words, typed)?;
    if !matches!(status, PlanStatus::Completed | PlanStatus::Abandoned) {
        return Err(Refusal::usage(
            format!("`{typed}` does not close a plan"),
            "`status` is complete or abandoned",
        ));
    }
    own(call, "update_plan", given.into()).map(with_plan_id)
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
    saved["written"] = put.is_new.into();
    let lists = [("tags", tags), ("files", files)];
    for (key, list) in lists.into_iter().filter_map(|(key, it)| Some((key, it?))) {
        let request = set_request(&put.now.id, key, SetOp::of_json(&json!(list)));
        let changed = result::changed(set::set(context, &request)?)?;
        saved["etag"] = changed["etag"].clone();
        saved["written"] = (saved["written"] == true || changed["written"] == true).into();
    }
    saved["did"] = if saved["written"] == true { "saved" } else { "nothing: already done" }.into();
    Ok(with_plan_id(saved))
}

/// The fields of a plan with its steps in full, as planwatch's own `get_plan` returns them.
const GOT: &str = "plan_id id title status state kind priority? due? category? program? tags:strs? goals:strs? success_criteria:strs? \
                   description? steps_total:int steps_completed:int steps_failed:int? steps_blocked:int? \
                   steps_in_progress:int? steps_ready:int? confirm_phases:strs? notes:list? decisions:list? \
                   problem_list:list? archived:bool? path etag? body? steps:list children:list? next_cursor? more?";

fn get_plan(call: &Call, mut given: Object) -> Result<Value, Refusal> {
    let title = given.remove("title");
    let Some(plan) = given.remove("plan_id").or(title) else {
        return Err(Refusal::usage("no plan is named", "give `plan_id` or `title`; list_plans names them"));
    };
    given.extend([("plan".to_owned(), plan), ("detail".to_owned(), "full".into())]);
    own(call, "get_plan", given.into()).map(with_plan_id)
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
