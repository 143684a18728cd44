//! The tool `memory_plan`, which has an action for each operation on plans.
//!
//! A table lists the arguments of each action. Other arguments are refused, so that none is silently ignored.

mod scripts;
mod workspace;

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Number, Value, json};

use crate::api::views::value;
use crate::disk::Origin;
use crate::ops::create::{self, NewRequest};
use crate::ops::import::ImportRequest;
use crate::ops::list::{self, ListReport, ListRequest};
use crate::ops::set::{self, SetOp};
use crate::serve::mcp::result::{self, PAGE, Refusal, page, put};
use crate::serve::mcp::schema::Object;
use crate::serve::mcp::tool::{Call, Effect, Question, Tool, Turn, Without};
use crate::serve::mcp::write::{import_document, set_request};
use crate::text::scalar;

use super::plans::whole_plan;
use super::{own, plan_line, turn, with_plan_id};

pub(super) fn tool() -> Tool {
    Tool::asking(
        ("memory_plan", "Everything about plans"),
        Effect::Removes,
        "Reads, creates and changes plans, programs and scripts, as `action` says. delete and confirm ask the person. run_build_script returns the command and does not run it.",
        ANSWER,
        memory_plan,
    )
    .without(without_plans)
}

/// The fields of the results of all actions, in the notation of results.
const ANSWER: &str = "did written:bool state? plan_id? id? title? path? status? etag? hint? plan:obj? plans:plan[]? \
                      program:obj? is_program:bool? workspace:obj? plan_path? steps_before:int? steps_after:int? \
                      changes:list? unmapped:list? scripts:list? templates:list? script_name? command? directory_path? \
                      trusted:bool? run? next_cursor?";

/// Arguments of all actions.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
struct MemoryPlan {
    action: Action,
    /// Id of the served directory
    workspace_id: Option<String>,
    workspace_path: Option<String>,
    /// e.g. auth
    plan_id: Option<String>,
    /// Like plan_id
    program_id: Option<String>,
    title: Option<String>,
    description: Option<String>,
    category: Option<String>,
    /// low, medium, high or critical
    priority: Option<String>,
    goals: Option<Vec<String>>,
    success_criteria: Option<Vec<String>>,
    categorization: Option<Map<String, Value>>,
    template: Option<String>,
    /// update: the new list of {phase, task, type, status, assignee, notes}
    steps: Option<Vec<Map<String, Value>>>,
    include_archived: Option<bool>,
    plan_file_path: Option<String>,
    /// import: even if it was imported before
    again: Option<bool>,
    note: Option<String>,
    /// info, warning or instruction
    note_type: Option<String>,
    confirm: Option<bool>,
    /// Numbers
    step_indices: Option<Vec<Number>>,
    consolidated_task: Option<String>,
    script_name: Option<String>,
    script_description: Option<String>,
    script_command: Option<String>,
    script_directory: Option<String>,
    script_mcp_handle: Option<String>,
    script_id: Option<String>,
    confirmation_scope: Option<Scope>,
    confirm_phase: Option<String>,
    /// Step number
    confirm_step_index: Option<Number>,
    /// Ignored; the person who answers is recorded
    confirmed_by: Option<String>,
    /// Maximum number of items
    limit: Option<usize>,
    /// next_cursor of the page before
    cursor: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Scope {
    Phase,
    Step,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Action {
    List,
    Get,
    Create,
    Update,
    Archive,
    Import,
    Find,
    AddNote,
    Delete,
    Consolidate,
    SetGoals,
    AddBuildScript,
    ListBuildScripts,
    RunBuildScript,
    DeleteBuildScript,
    CreateFromTemplate,
    ListTemplates,
    Confirm,
    CreateProgram,
    AddPlanToProgram,
    UpgradeToProgram,
    ListProgramPlans,
}

/// Names of arguments, separated by spaces: first those that an action needs, then those that it may have.
type Words = (&'static str, &'static str);

impl Action {
    fn arguments(self) -> Words {
        match self {
            Self::List => ("", "include_archived limit cursor"),
            Self::Get | Self::Find => ("plan_id", "limit cursor"),
            Self::Create => ("title description category", "priority goals success_criteria categorization"),
            Self::Update => ("plan_id steps", ""),
            Self::Archive | Self::UpgradeToProgram => ("plan_id", ""),
            Self::Import => ("plan_file_path category", "title priority again"),
            Self::AddNote => ("plan_id note", "note_type"),
            Self::Delete => ("plan_id confirm", ""),
            Self::Consolidate => ("plan_id step_indices consolidated_task", ""),
            Self::SetGoals => ("plan_id", "goals success_criteria"),
            Self::AddBuildScript => (
                "script_name script_command script_directory",
                "plan_id script_description script_mcp_handle",
            ),
            Self::ListBuildScripts => ("", "plan_id limit cursor"),
            Self::RunBuildScript => ("script_id", ""),
            Self::DeleteBuildScript => ("script_id", "plan_id"),
            Self::CreateFromTemplate => ("title template category", "description priority"),
            Self::ListTemplates => ("", ""),
            Self::Confirm => ("plan_id confirmation_scope", "confirm_phase confirm_step_index confirmed_by"),
            Self::CreateProgram => ("title description", "category priority"),
            Self::AddPlanToProgram => ("program_id plan_id", ""),
            Self::ListProgramPlans => ("program_id", "limit cursor"),
        }
    }
}

/// Returns what an action does if there is no plans directory yet.
fn without_plans(given: &Object) -> Without {
    match given.get("action").and_then(Value::as_str).unwrap_or_default() {
        "create" | "create_from_template" | "create_program" | "import" | "add_build_script" => {
            Without::Makes
        }
        "list" | "get" | "find" | "list_build_scripts" | "list_templates" | "list_program_plans" => {
            Without::Looks
        }
        _ => Without::Refuses,
    }
}

/// Refuses a call that lacks arguments, or has arguments that the action does not take.
fn check_arguments(asked: &MemoryPlan) -> Result<(), Refusal> {
    const ALWAYS: [&str; 3] = ["action", "workspace_id", "workspace_path"];
    let given = value(asked);
    let word = given["action"].as_str().unwrap_or_default();
    let (needed, more) = asked.action.arguments();
    let list =
        |words: &str| words.split(' ').filter(|it| !it.is_empty()).map(str::to_owned).collect::<Vec<_>>();
    let (needed, more) = (list(needed), list(more));
    let hint = || match (needed.is_empty(), more.is_empty()) {
        (true, true) => format!("`{word}` takes no arguments"),
        (false, true) => format!("`{word}` takes {}", needed.join(", ")),
        (true, false) => format!("`{word}` may have {}", more.join(", ")),
        (false, false) => format!("`{word}` takes {}, and may have {}", needed.join(", "), more.join(", ")),
    };
    let is_there = |name: &str| !given[name].is_null();
    if let Some(missing) = needed.iter().find(|it| !is_there(it)) {
        return Err(Refusal::usage(format!("the argument `{missing}` is missing"), hint()));
    }
    let is_known =
        |name: &String| ALWAYS.contains(&name.as_str()) || needed.contains(name) || more.contains(name);
    match given.as_object().into_iter().flat_map(Map::keys).find(|it| is_there(it) && !is_known(it)) {
        Some(other) => Err(Refusal::usage(format!("`{word}` does not take `{other}`"), hint())),
        None => Ok(()),
    }
}

fn memory_plan(call: &Call, asked: MemoryPlan) -> Result<Turn, Refusal> {
    check_arguments(&asked)?;
    workspace::check(call, asked.workspace_id.as_deref(), asked.workspace_path.as_deref())?;
    match asked.action {
        Action::Delete => delete(call, &asked),
        Action::Confirm => confirm(call, &asked),
        _ => done(call, asked).map(|it| Turn::Done(finished(it))),
    }
}

fn done(call: &Call, asked: MemoryPlan) -> Result<Value, Refusal> {
    let plan = asked.plan_id.clone().unwrap_or_default();
    match asked.action {
        Action::List | Action::ListProgramPlans => list_plans(call, &asked),
        Action::Get => Ok(json!({"plan": whole_plan(call, &plan, asked.limit, asked.cursor.as_deref())?})),
        Action::Find => Ok(json!({
            "plan": whole_plan(call, &plan, asked.limit, asked.cursor.as_deref())?,
            "workspace": workspace::described(call),
        })),
        Action::Create => create(call, asked),
        Action::CreateFromTemplate | Action::CreateProgram => create_otherwise(call, asked),
        Action::Import => import(call, asked),
        Action::Update => {
            let steps = asked.steps.map(|it| it.into_iter().map(titled).collect::<Vec<_>>());
            own(call, "restructure_plan", json!({"plan": plan, "op": "replace", "steps": steps}))
                .map(with_plan_of)
        }
        Action::Consolidate => {
            let arguments = json!({"plan": plan, "op": "consolidate", "numbers": asked.step_indices, "task": asked.consolidated_task});
            own(call, "restructure_plan", arguments).map(with_plan_of)
        }
        Action::Archive => {
            own(call, "update_plan", json!({"plan": plan, "archived": true})).map(with_plan_id)
        }
        Action::AddNote => {
            own(call, "add_note", json!({"plan": plan, "note": asked.note, "note_type": asked.note_type}))
                .map(with_plan_id)
        }
        Action::SetGoals => set_goals(call, &plan, asked),
        Action::AddPlanToProgram => {
            let program = asked.program_id.unwrap_or_default();
            let changed = own(call, "update_plan", json!({"plan": plan, "program": program}))?;
            let mut object = with_plan_id(changed);
            object["plan"] = plan_line(call, object["id"].as_str().unwrap_or_default())?;
            object["program"] = plan_line(call, &program)?;
            Ok(object)
        }
        Action::UpgradeToProgram => upgrade(call, &plan),
        Action::ListTemplates => {
            let listed = own(call, "list_assets", json!({"kind": "templates"}))?;
            Ok(json!({"templates": listed["items"], "next_cursor": listed["next_cursor"]}))
        }
        Action::AddBuildScript => scripts::add(call, asked),
        Action::ListBuildScripts => scripts::list(call, &asked),
        Action::RunBuildScript => scripts::resolve(call, &asked.script_id.unwrap_or_default()),
        Action::DeleteBuildScript => scripts::remove(call, &asked),
        Action::Delete | Action::Confirm => {
            Err(Refusal::new("bug", "the person is asked first", "tell the person"))
        }
    }
}

/// Removes null fields, and adds `did` and `written` if they are missing.
fn finished(mut object: Value) -> Value {
    if let Some(map) = object.as_object_mut() {
        map.retain(|_, it| !it.is_null());
        map.entry("did").or_insert_with(|| "nothing: only read".into());
        map.entry("written").or_insert_with(|| false.into());
    }
    object
}

/// Renames the field `task` of a step to `title`. If the step has a title already, `task` is only removed.
fn titled(mut step: Map<String, Value>) -> Map<String, Value> {
    if let Some(task) = step.remove("task") {
        step.entry("title").or_insert(task);
    }
    step
}

/// Renames the field `plan` in a result of `restructure_plan` to `plan_id`, the name that the wrappers use.
fn with_plan_of(mut done: Value) -> Value {
    if let Some(map) = done.as_object_mut() {
        let plan = map.remove("plan").unwrap_or_default();
        map.insert("plan_id".to_owned(), plan);
    }
    done
}

fn list_plans(call: &Call, asked: &MemoryPlan) -> Result<Value, Refusal> {
    let request = ListRequest { all: true, program: asked.program_id.clone(), ..ListRequest::default() };
    let ListReport::Plans { mut plans, .. } = list::list(&call.context, &request)? else {
        return Ok(json!({"plans": []}));
    };
    plans.retain(|it| !it.archived || asked.include_archived == Some(true));
    let from = (asked.limit, asked.cursor.as_deref());
    let page = page(&plans, from, PAGE, |_, it| result::plan_key(it), |it| result::plan(&value(it)))?;
    let mut object = json!({});
    put(&mut object, "plans", page);
    Ok(object)
}

fn create(call: &Call, asked: MemoryPlan) -> Result<Value, Refusal> {
    let MemoryPlan {
        title, description, category, priority, goals, success_criteria, categorization, ..
    } = asked;
    let arguments = json!({
        "title": title, "description": description, "category": category, "priority": priority, "goals": goals,
        "success_criteria": success_criteria,
    });
    let mut made = own(call, "create_plan", arguments)?;
    if let Some(categorization) = categorization {
        let op = SetOp::Yaml(scalar::json(&json!({"categorization": categorization})));
        let request = set_request(made["id"].as_str().unwrap_or_default(), "metadata", op);
        made["etag"] = result::changed(set::set(&call.context, &request)?)?["etag"].clone();
    }
    Ok(with_plan_id(made))
}

fn create_otherwise(call: &Call, asked: MemoryPlan) -> Result<Value, Refusal> {
    let is_program = asked.action == Action::CreateProgram;
    let MemoryPlan { title, description, category, priority, template, .. } = asked;
    let made = own(
        call,
        "create_plan",
        json!({
            "title": title, "description": description, "category": category, "priority": priority,
            "template": template, "as_program": is_program.then_some(true),
        }),
    )?;
    let mut object = with_plan_id(made);
    if is_program {
        object["is_program"] = true.into();
    }
    Ok(object)
}

fn import(call: &Call, asked: MemoryPlan) -> Result<Value, Refusal> {
    let MemoryPlan { plan_file_path, title, category, priority, again, .. } = asked;
    let shown = plan_file_path.unwrap_or_default();
    let source = PathBuf::from(&shown);
    let origin = Origin::Elsewhere;
    let request = ImportRequest {
        source,
        origin,
        shown,
        title,
        category,
        priority,
        again: again.unwrap_or_default(),
        ..ImportRequest::default()
    };
    let report = import_document(call, &request)?;
    const MOST_LISTED: usize = 20;
    let unmapped: Vec<_> =
        report.to_json()["unmapped"].as_array().into_iter().flatten().take(MOST_LISTED).cloned().collect();
    let n_plans = report.plans.len();
    let mut object = with_plan_id(result::changed(report.change)?);
    if n_plans > 1 {
        object["did"] = format!("{n_plans} plans made; this answer shows the last one").into();
    }
    object["unmapped"] = unmapped.into();
    Ok(object)
}

fn set_goals(call: &Call, plan: &str, asked: MemoryPlan) -> Result<Value, Refusal> {
    let MemoryPlan { goals, success_criteria, .. } = asked;
    if goals.is_none() && success_criteria.is_none() {
        return Err(Refusal::usage("no goals are given", "give `goals`, `success_criteria`, or both"));
    }
    let arguments = json!({"plan": plan, "goals": goals, "success_criteria": success_criteria});
    own(call, "update_plan", arguments).map(with_plan_id)
}

/// Creates a program with the given plan as its first plan.
fn upgrade(call: &Call, plan: &str) -> Result<Value, Refusal> {
    let line = plan_line(call, plan)?;
    let text = |key: &str| line[key].as_str().map(str::to_owned);
    let id = text("id").unwrap_or_default();
    let request = NewRequest {
        title: format!("{} (program)", text("title").unwrap_or_else(|| id.clone())),
        category: text("category"),
        priority: text("priority"),
        is_program: true,
        children: vec![id.clone()],
        by: Some(super::MAKER.to_owned()),
        ..NewRequest::default()
    };
    let mut object = with_plan_id(result::changed(create::new(&call.context, &request)?)?);
    object["program"] = plan_line(call, object["id"].as_str().unwrap_or_default())?;
    object["plan"] = plan_line(call, &id)?;
    object["is_program"] = true.into();
    Ok(object)
}

/// Asks the person the same question as `delete_plan`. The argument `confirm` alone is not a confirmation.
fn delete(call: &Call, asked: &MemoryPlan) -> Result<Turn, Refusal> {
    if asked.confirm != Some(true) {
        return Err(Refusal::usage("`confirm` must be true", "the server then asks the person"));
    }
    turn(call, "delete_plan", json!({"plan": asked.plan_id})).map(finishing)
}

/// Asks the person the same question as `confirm_gate`.
fn confirm(call: &Call, asked: &MemoryPlan) -> Result<Turn, Refusal> {
    let plan = asked.plan_id.clone().unwrap_or_default();
    let arguments = match (asked.confirmation_scope, &asked.confirm_phase, &asked.confirm_step_index) {
        (Some(Scope::Phase), Some(phase), None) => json!({"plan": plan, "phase": phase}),
        (Some(Scope::Step), None, Some(number)) => json!({"step": format!("{plan}:{number}")}),
        _ => {
            let hint = "scope `phase` takes `confirm_phase`, scope `step` takes `confirm_step_index`";
            return Err(Refusal::usage("it is not clear what to confirm", hint));
        }
    };
    turn(call, "confirm_gate", arguments).map(finishing)
}

fn finishing(turn: Turn) -> Turn {
    match turn {
        Turn::Done(done) => Turn::Done(finished(done)),
        Turn::Asks(question) => {
            let Question { act, .. } = question;
            Turn::Asks(Question {
                act: Box::new(move |call, note| act(call, note).map(finished)),
                ..question
            })
        }
    }
}
