//! The tools for steps in the set `compat`.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Number, Value, json};

use crate::api::views::{StepShape, value};
use crate::ops::add::{self, AddRequest};
use crate::ops::list::{self, ListReport, ListRequest};
use crate::ops::next::{self, NextRequest};
use crate::ops::patch::{self, PatchRequest};
use crate::ops::release::{self, ReleaseRequest};
use crate::ops::update::{self, AttemptRequest, MoveRequest};
use crate::ops::upsert::{self, StepText};
use crate::plan::transitions::Verb;
use crate::plan::words::{Status, StepStatus};
use crate::serve::mcp::lookup;
use crate::serve::mcp::result::{self, PAGE, Refusal, page, put};
use crate::serve::mcp::schema::{Object, take};
use crate::serve::mcp::tool::{Call, Effect, Tool};
use crate::store::transaction::Mode;
use crate::store::typed_words;
use crate::text::scalar;

use super::{MAKER, own};

/// A step after it was made or changed, in the notation of results.
const STEP: &str = "step_id plan_id step_number:num title status created_by result? metadata:obj? path etag? did? \
                    written:bool? hint?";

pub(super) fn tools() -> Vec<Tool> {
    vec![
        Tool::new(
            ("add_step", "Add a step"),
            Effect::Adds,
            "Adds a step. Needs `title`, `description` or both; `notes` is more text. The step goes to the end, or after \
             `after_step` (2 -> 2.5), or to `step_number` or `position`. Without `title`, a repeated call with `step_number` or \
             `position` changes nothing.",
            STEP,
            add_step,
        ),
        Tool::new(
            ("update_step", "Report on a step"),
            Effect::Adds,
            "Marks a step as completed or failed. The result is recorded as an attempt. Metadata merges by key.",
            STEP,
            update_step,
        ),
        Tool::of::<()>(
            ("update_plan_step", "Update a step of a plan"),
            Effect::Adds,
            "Sets a status, logs an attempt, or both. An attempt alone sets an open step to in_progress.",
            (
                "step_id:str(e.g. auth:2) status:str?(pending, in_progress, done, skipped, blocked or failed) \
                 attempt_outcome:str?(In a word or two, e.g. `no answer`) attempt_notes:str?",
                STEP,
            ),
            update_plan_step,
        ),
        Tool::of::<()>(
            ("peek_next_step", "Look at the next step"),
            Effect::Reads,
            "Reads the next step of a plan without changing it. If no step is ready, `state` and `why` give the \
             reason.",
            ("plan_id:str(e.g. auth)", "state why step_id? step_number:num? title? description?"),
            peek_next_step,
        ),
        Tool::of::<()>(
            ("get_plan_steps", "List a plan's steps"),
            Effect::Reads,
            "Lists the steps of a plan, one line per step.",
            (
                "plan_id:str(e.g. auth) status:str? limit:int? cursor:str?",
                "plan_id title steps:list next_cursor?",
            ),
            get_plan_steps,
        ),
        Tool::of::<()>(
            ("get_step", "Read a step"),
            Effect::Reads,
            "Reads a step in full: text, status, result, attempts, metadata.",
            ("step_id=step:str(e.g. auth:2)", GOT),
            get_step,
        ),
    ]
}

/// A step as these tools return it.
fn view(step: &StepShape) -> Value {
    let mut view =
        result::pick(&value(step), "step_number title status created_by result? metadata? path etag?");
    view["step_id"] = step.id.clone().into();
    view["plan_id"] = step.plan.clone().into();
    view
}

/// The step after a change. `did`, `written` and `hint` are copied from `done`, the report on the change.
fn changed(call: &Call, id: &str, done: &Value) -> Result<Value, Refusal> {
    let (step, _) = upsert::step(&call.context, id)?;
    let mut object = view(&step);
    for key in ["did", "written", "hint"] {
        if let Some(value) = done.get(key) {
            object[key] = value.clone();
        }
    }
    Ok(object)
}

#[derive(Debug, Deserialize, JsonSchema)]
struct AddStep {
    /// e.g. auth
    plan_id: String,
    /// The text, in Markdown; its heading or first line is the title
    description: Option<String>,
    /// e.g. 2
    after_step: Option<Number>,
    /// e.g. 2.5
    step_number: Option<Number>,
    created_by: Option<Maker>,
    metadata: Option<Map<String, Value>>,
    title: Option<String>,
    /// More text, below `description` if that is given
    notes: Option<String>,
    /// Another name for step_number
    position: Option<Number>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Maker {
    User,
    Agent,
}

fn add_step(call: &Call, asked: AddStep) -> Result<Value, Refusal> {
    let AddStep { plan_id, description, after_step, step_number, metadata, title, notes, position, .. } =
        asked;
    let by = if asked.created_by == Some(Maker::User) { "user" } else { MAKER };
    let at = step_number.or(position).map(|it| it.to_string());
    let after = after_step.map(|it| it.to_string());
    let context = &call.context;
    let (step, is_new) = match (title, description) {
        (None, Some(text)) => {
            let text = [Some(text), notes].into_iter().flatten().collect::<Vec<_>>().join("\n\n");
            let request =
                StepText { plan: String::new(), text, at, after, created_by: Some(by.to_owned()), metadata };
            let put = lookup::plan(call, &plan_id, |id| {
                upsert::put_step(context, &StepText { plan: id.to_owned(), ..request.clone() })
            })?;
            (put.now.0, put.is_new)
        }
        (Some(title), description) => {
            let texts: Vec<_> = description.into_iter().chain(notes).collect();
            let body = (!texts.is_empty()).then(|| texts.join("\n\n"));
            let metadata = metadata.map(|it| scalar::json(&Value::Object(it)));
            let by = Some(by.to_owned());
            let request = AddRequest { title, at, after, metadata, body, by, ..AddRequest::default() };
            let report = lookup::plan(call, &plan_id, |id| {
                add::add(context, &AddRequest { plan: id.to_owned(), ..request.clone() })
            })?;
            let added = result::changed(report)?;
            (upsert::step(context, added["id"].as_str().unwrap_or_default())?.0, true)
        }
        (None, None) => {
            return Err(Refusal::usage("a step needs a text", "give `description`, or `title`"));
        }
    };
    let mut object = view(&step);
    object["did"] = if is_new { "added" } else { "nothing: already done" }.into();
    object["written"] = is_new.into();
    Ok(object)
}

/// The id of a step's claim, for a report on this step. The tools of this set have no argument for a claim.
///
/// Only a claim by the user who runs this server is used, for example one that a script made over HTTP.
fn claim_of(call: &Call, id: &str) -> Result<Option<String>, Refusal> {
    let (step, _) = upsert::step(&call.context, id)?;
    let claim = step.claim.filter(|it| it.by.as_deref() == Some(call.person.as_str()));
    Ok(claim.map(|it| it.id))
}

#[derive(Debug, Deserialize, JsonSchema)]
struct UpdateStep {
    /// e.g. auth:2
    step_id: String,
    /// completed or failed, or another status that get_step can return
    status: Option<String>,
    /// What was done, or why not
    result: Option<String>,
    metadata: Option<Map<String, Value>>,
}

fn update_step(call: &Call, asked: UpdateStep) -> Result<Value, Refusal> {
    let UpdateStep { step_id, status, result, metadata } = asked;
    if status.is_none() && result.is_none() && metadata.is_none() {
        return Err(Refusal::usage("there is nothing to change", "give `status`, `result` or `metadata`"));
    }
    let claim = claim_of(call, &step_id)?;
    let request =
        PatchRequest { id: step_id.clone(), status, result, metadata, claim, ..PatchRequest::default() };
    let done = result::changed(patch::patch(&call.context, &request)?)?;
    changed(call, &step_id, &done)
}

fn update_plan_step(call: &Call, mut given: Object) -> Result<Value, Refusal> {
    let id: String = take(&mut given, "step_id")?.unwrap_or_default();
    let typed: Option<String> = take(&mut given, "status")?;
    let words = &call.context.config.words;
    let status = typed.map(|it| typed_words::read_word::<StepStatus>(words, &it)).transpose()?;
    let (outcome, notes) = (take(&mut given, "attempt_outcome")?, take(&mut given, "attempt_notes")?);
    let (context, claim) = (&call.context, claim_of(call, &id)?);
    let is_begun = upsert::step(context, &id)?.0.status == "in_progress";
    let report = match (status, outcome) {
        (None, None) if notes.is_none() => {
            return Err(Refusal::usage("there is nothing to change", "give `status` or `attempt_outcome`"));
        }
        (Some(StepStatus::Pending), None) if is_begun => {
            let (ids, message) = (vec![id.clone()], notes);
            release::release(context, &ReleaseRequest { ids, message, claim, ..ReleaseRequest::default() })
        }
        (Some(status), None) => {
            let (verb, ids) = (Verb::giving(status), vec![id.clone()]);
            let request = MoveRequest {
                is_signed: false,
                verb,
                ids,
                message: notes,
                by: None,
                claim,
                force: false,
                mode: Mode::Write,
            };
            update::move_steps(context, &request)
        }
        (status, outcome) => {
            let status = status.map(|it| it.word().to_owned());
            let outcome = outcome.unwrap_or_else(|| "attempted".to_owned());
            let request =
                AttemptRequest { id: id.clone(), outcome, notes, status, claim, ..AttemptRequest::default() };
            update::attempt(context, &request)
        }
    };
    let done = result::changed(report?)?;
    changed(call, &id, &done)
}

fn peek_next_step(call: &Call, mut given: Object) -> Result<Value, Refusal> {
    let context = &call.context;
    let plan_id: String = take(&mut given, "plan_id")?.unwrap_or_default();
    let report = lookup::plan(call, &plan_id, |id| {
        next::next(context, &NextRequest { plan: Some(id.to_owned()), most: Some(1) })
    })?;
    let mut object = json!({"state": report.state.word(), "why": report.why});
    if let Some(step) = report.step {
        let (_, text) = upsert::step(context, &step.id)?;
        object["step_id"] = step.id.into();
        object["step_number"] = step.step_number;
        object["title"] = step.title.into();
        let rest = || format!("\n\n(the rest of the text is in {})", step.path);
        object["description"] = result::cut(&text, result::TEXT).map_or(text, |it| it + &rest()).into();
    }
    Ok(object)
}

fn get_plan_steps(call: &Call, mut given: Object) -> Result<Value, Refusal> {
    let plan_id: String = take(&mut given, "plan_id")?.unwrap_or_default();
    let status: Option<String> = take(&mut given, "status")?;
    let (limit, cursor) = (take(&mut given, "limit")?, take::<String>(&mut given, "cursor")?);
    let request = ListRequest { status: status.into_iter().collect(), ..ListRequest::default() };
    let listed = lookup::plan(call, &plan_id, |id| {
        list::list(&call.context, &ListRequest { plan: Some(id.to_owned()), ..request.clone() })
    })?;
    let ListReport::Steps { plan, steps } = listed else {
        return Err(Refusal::usage(format!("`{plan_id}` is not a plan"), "list_plans names the plans"));
    };
    let shape = |it: &StepShape| {
        json!({
            "step_number": it.step_number, "status": it.status, "created_by": it.created_by, "step_id": it.id,
            "title": result::cut(&it.title, 160).unwrap_or_else(|| it.title.clone()),
        })
    };
    let key = |_: usize, it: &StepShape| result::step_key(&it.path, &it.id);
    let page = page(&steps, (limit, cursor.as_deref()), PAGE, key, shape)?;
    let mut object = json!({"plan_id": plan.id, "title": plan.title});
    put(&mut object, "steps", page);
    Ok(object)
}

/// The fields of a step, in the notation of results.
const GOT: &str = "step_id plan_id step_number:num description title status ready:bool? unverified:bool? depends:strs? \
                   waits_for:strs? why_not_ready:strs? dependants:strs? phase? type? assignee? created_by claim:obj? \
                   lapsed:bool? confirm:bool? confirmation:obj? verify:list? touches:strs? result? attempts:list? \
                   notes:list? decisions:list? metadata:obj? tasks_done:int? tasks_total:int? path etag? more? \
                   problem_list:list? held:obj?";

fn get_step(call: &Call, given: Object) -> Result<Value, Refusal> {
    let step_id = given["step"].as_str().unwrap_or_default().to_owned();
    let mut object = own(call, "get_step", given.into())?;
    let number = upsert::step(&call.context, &step_id)?.0.step_number;
    let Some(map) = object.as_object_mut() else { return Ok(object) };
    for (from, to) in [("id", "step_id"), ("plan", "plan_id"), ("body", "description")] {
        if let Some(value) = map.remove(from) {
            map.insert(to.to_owned(), value);
        }
    }
    map.insert("step_number".to_owned(), number);
    Ok(object)
}
