//! Tools that make and change plans.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::engine::archive::{self, ArchiveRequest};
use crate::engine::context::Context;
use crate::engine::create::{self, NewRequest};
use crate::engine::import::{self, ImportRequest};
use crate::engine::list::{self, ListReport, ListRequest};
use crate::engine::remove::{self, RemoveRequest};
use crate::engine::replace::{self, ReplaceRequest};
use crate::engine::set::{self, SetOp, SetRequest};
use crate::engine::show::{self, ShowReport, ShowRequest};
use crate::engine::squash::{self, SquashRequest};
use crate::engine::texts::{self, PlanText};
use crate::engine::write::Mode;
use crate::plan::id;
use crate::serve::mcp::named;
use crate::serve::mcp::result::{self, CHANGED, Refusal};
use crate::serve::mcp::tool::{Call, Effect, Tool};
use crate::serve::mcp::write::{Change, MAKER, all};

pub(super) fn tools() -> Vec<Tool> {
    vec![
        Tool::new(
            ("create_plan", "Create a plan"),
            Effect::Adds,
            "Makes a plan with its steps; its id is the slug of the title. Each step small enough to be checked by itself.",
            CHANGED,
            create_plan,
        ),
        Tool::new(
            ("update_plan", "Update a plan"),
            Effect::Sets,
            "Changes a plan's fields, its status, or archives it. Steps have update_step and restructure_plan.",
            CHANGED,
            update_plan,
        ),
        Tool::new(
            ("restructure_plan", "Restructure a plan"),
            Effect::TakesAway,
            "replace: `steps` is the new list, titles or step objects; known ones keep their files. consolidate: makes one step of \
             several. remove: takes steps out.",
            "did written:bool plan steps_before:int steps_after:int changes:list? hint?",
            restructure_plan,
        ),
    ]
}

#[derive(Debug, Clone, Deserialize, JsonSchema)]
struct CreatePlan {
    title: String,
    description: Option<String>,
    /// Titles, in order
    steps: Option<Vec<String>>,
    category: Option<String>,
    /// low, medium, high or critical
    priority: Option<String>,
    goals: Option<Vec<String>>,
    success_criteria: Option<Vec<String>>,
    tags: Option<Vec<String>>,
    template: Option<String>,
    /// Id of the program that it belongs to
    program: Option<String>,
    as_program: Option<bool>,
    /// The text of plan.md, in Markdown
    body: Option<String>,
    /// A document in the repository to import
    from_file: Option<String>,
    if_exists: Option<IfExists>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum IfExists {
    #[default]
    Error,
    Update,
}

fn create_plan(call: &Call, mut asked: CreatePlan) -> Result<Value, Refusal> {
    let context = &call.context;
    let id = id::slug(&asked.title, &|_| false);
    let request = ListRequest { all: true, ..ListRequest::default() };
    let ListReport::Plans { plans, .. } = list::list(context, &request)? else { return Ok(json!({})) };
    if let Some(there) = plans.iter().find(|it| !it.archived && (it.id == id || it.title == asked.title)) {
        let is_same = there.title == asked.title;
        if asked.if_exists == Some(IfExists::Update) && is_same {
            return update_instead(call, &there.id, asked);
        }
        let message = format!("there is a plan `{}` ({}) already", there.id, there.title);
        let hint = match is_same {
            true => {
                "get_plan reads it; with if_exists `update` it gets these fields; else take another title"
            }
            false => "take a title of another name",
        };
        return Err(Refusal::new("plan-exists", message, hint));
    }
    if let Some(path) = asked.from_file {
        return import_plan(call, &id, &path);
    }
    if let Some(body) = asked.body.take() {
        // The text is the plan; what else is asked for is set in it, as in a plan that is there.
        let text = PlanText { title: asked.title.clone(), body };
        let made = texts::put_plan(context, &text)?.now;
        return update_instead(call, &made.id, asked);
    }
    let request = NewRequest {
        title: asked.title,
        steps: asked.steps.unwrap_or_default(),
        description: asked.description,
        goals: asked.goals.unwrap_or_default(),
        criteria: asked.success_criteria.unwrap_or_default(),
        tags: asked.tags.unwrap_or_default(),
        category: asked.category,
        priority: asked.priority,
        program: asked.program,
        is_program: asked.as_program.unwrap_or_default(),
        by: Some(MAKER.to_owned()),
        template: asked.template,
        ..NewRequest::default()
    };
    result::changed(create::new(context, &request)?)
}

/// Makes a plan of a document; the document stays as it is.
fn import_plan(call: &Call, id: &str, path: &str) -> Result<Value, Refusal> {
    let context = &call.context;
    let source = context.here.root.join(path);
    let outside = || {
        let hint = "name a file below the repository's root, by its path from there";
        Refusal::usage(format!("`{path}` is no document in this repository"), hint)
    };
    // Whoever asks over a network may not read what lies elsewhere.
    let parent = source.parent().ok_or_else(outside)?;
    let parent = context.plans.directory_below(&context.here.root, parent).map_err(|_| outside())?;
    let source = parent.join(source.file_name().ok_or_else(outside)?);
    if !context.plans.is_file_beyond(&source) {
        return Err(outside());
    }
    let (shown, name) = (path.to_owned(), Some(id.to_owned()));
    let request = ImportRequest { source, shown, name, mode: Mode::Write, ..ImportRequest::default() };
    let report = import::import(context, &request)?;
    let unmapped = report.unmapped.len();
    let mut object = result::changed(report.change)?;
    if unmapped > 0 {
        object["hint"] =
            format!("{unmapped} lines of it found no place; `planwatch import {path} --dry-run` names them")
                .into();
    }
    Ok(object)
}

/// Gives a plan that is there what a new one would have: its fields, and the steps whose titles it does not have.
fn update_instead(call: &Call, id: &str, asked: CreatePlan) -> Result<Value, Refusal> {
    if asked.template.is_some() || asked.as_program == Some(true) {
        let hint = "update_plan changes what is there; a template makes new plans";
        return Err(Refusal::usage("a plan that is there is not made of a template or into a program", hint));
    }
    let fields = Fields {
        description: asked.description,
        category: asked.category,
        priority: asked.priority,
        goals: asked.goals,
        success_criteria: asked.success_criteria,
        tags: asked.tags,
        program: asked.program,
        ..Fields::default()
    };
    let titles = steps_of(call, id)?;
    let new: Vec<_> = asked.steps.unwrap_or_default().into_iter().filter(|it| !titles.contains(it)).collect();
    let mut changes = changes_of(call, &None, id, fields);
    for title in new {
        let request = crate::engine::add::AddRequest {
            plan: id.to_owned(),
            title,
            by: Some(MAKER.to_owned()),
            ..crate::engine::add::AddRequest::default()
        };
        changes.push(Box::new(move |mode| {
            crate::engine::add::add(
                &call.context,
                &crate::engine::add::AddRequest { mode, ..request.clone() },
            )
        }));
    }
    if changes.is_empty() {
        let shown = show::show(&call.context, &ShowRequest { id: id.to_owned(), ..ShowRequest::default() })?
            .to_json();
        let mut same = result::pick(&shown, "id title path status etag");
        same["did"] = "nothing: it is so already".into();
        same["written"] = false.into();
        return Ok(same);
    }
    let mut done = all(&changes)?;
    done["id"] = id.into();
    Ok(done)
}

/// The titles of a plan's steps.
fn steps_of(call: &Call, id: &str) -> Result<Vec<String>, Refusal> {
    let shown = show::show(&call.context, &ShowRequest { id: id.to_owned(), ..ShowRequest::default() })?;
    let ShowReport::Plan(shown) = shown else {
        return Err(Refusal::usage(format!("`{id}` is no plan"), "list_plans names them"));
    };
    Ok(shown.steps.iter().map(|it| it.title.clone()).collect())
}

#[derive(Debug, Deserialize, JsonSchema)]
struct UpdatePlan {
    /// Id or title
    plan: String,
    /// draft, active, completed or abandoned
    status: Option<String>,
    title: Option<String>,
    description: Option<String>,
    /// low, medium, high or critical
    priority: Option<String>,
    category: Option<String>,
    goals: Option<Vec<String>>,
    success_criteria: Option<Vec<String>>,
    tags: Option<Vec<String>>,
    /// Id of the program that it belongs to
    program: Option<String>,
    convert_to_program: Option<bool>,
    archived: Option<bool>,
    /// Only if plan.md still is this
    etag: Option<String>,
}

/// Fields of a plan that are given a value.
#[derive(Debug, Clone, Default)]
struct Fields {
    status: Option<String>,
    title: Option<String>,
    description: Option<String>,
    priority: Option<String>,
    category: Option<String>,
    goals: Option<Vec<String>>,
    success_criteria: Option<Vec<String>>,
    tags: Option<Vec<String>>,
    program: Option<String>,
    kind: Option<String>,
}

/// The changes, the first of them on a condition if there is one.
fn changes_of<'a>(call: &'a Call, first: &'a Option<Context>, id: &str, fields: Fields) -> Vec<Change<'a>> {
    let texts = [
        ("title", fields.title),
        ("description", fields.description),
        ("priority", fields.priority),
        ("category", fields.category),
        ("kind", fields.kind),
        ("program", fields.program),
        ("status", fields.status),
    ];
    let lists =
        [("goals", fields.goals), ("success_criteria", fields.success_criteria), ("tags", fields.tags)];
    let texts = texts.into_iter().filter_map(|(key, it)| Some((key, SetOp::Text(it?))));
    let lists = lists.into_iter().filter_map(|(key, it)| Some((key, SetOp::Yaml(json!(it?).to_string()))));
    let change = |(nth, (key, op)): (usize, (&str, SetOp))| -> Change<'a> {
        let context = first.as_ref().filter(|_| nth == 0).unwrap_or(&call.context);
        let (id, key) = (id.to_owned(), key.to_owned());
        let request = SetRequest { id, key, op, by: None, claim: None, force: false, mode: Mode::Write };
        Box::new(move |mode| set::set(context, &SetRequest { mode, ..request.clone() }))
    };
    lists.chain(texts).enumerate().map(change).collect()
}

fn update_plan(call: &Call, asked: UpdatePlan) -> Result<Value, Refusal> {
    let context = &call.context;
    let shown = named::plan(call, &asked.plan, |id| {
        show::show(context, &ShowRequest { id: id.to_owned(), ..ShowRequest::default() })
    })?;
    let ShowReport::Plan(shown) = shown else {
        return Err(Refusal::usage(format!("`{}` is no plan", asked.plan), "update_step changes a step"));
    };
    let id = shown.plan.id;
    let fields = Fields {
        status: asked.status,
        title: asked.title,
        description: asked.description,
        priority: asked.priority,
        category: asked.category,
        goals: asked.goals,
        success_criteria: asked.success_criteria,
        tags: asked.tags,
        program: asked.program,
        kind: asked.convert_to_program.filter(|it| *it).map(|_| "program".to_owned()),
    };
    let first = call.on_condition(asked.etag)?;
    let changes = changes_of(call, &first, &id, fields);
    let restored = |restores: bool| {
        let request = ArchiveRequest { plans: vec![id.clone()], restores, mode: Mode::Write };
        let context = first.as_ref().filter(|_| changes.is_empty()).unwrap_or(context);
        archive::archive(context, &request)
    };
    // What is archived is not changed, so it comes back first, and goes last.
    let back = match asked.archived {
        Some(false) if shown.plan.archived => Some(result::changed(restored(true)?)?),
        _ => None,
    };
    let changed = if changes.is_empty() { back } else { Some(all(&changes)?) };
    let away = match asked.archived {
        Some(true) => Some(result::changed(restored(false)?)?),
        _ => None,
    };
    let nothing = || Refusal::usage("nothing is to be changed", "give at least one field beside `plan`");
    away.or(changed).ok_or_else(nothing)
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Restructure {
    /// Id or title
    plan: String,
    op: Op,
    /// replace: the new list, titles or step objects; else numbers
    steps: Vec<String>,
    /// Title of the one step that consolidate makes
    task: Option<String>,
    /// Show, write nothing
    dry_run: Option<bool>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Op {
    Replace,
    Consolidate,
    Remove,
}

/// The most changes that are told one by one.
const MOST_TOLD: usize = 30;

fn restructure_plan(call: &Call, asked: Restructure) -> Result<Value, Refusal> {
    let context = &call.context;
    let mode = if asked.dry_run == Some(true) { Mode::DryRun } else { Mode::Write };
    let shown = named::plan(call, &asked.plan, |id| {
        show::show(context, &ShowRequest { id: id.to_owned(), ..ShowRequest::default() })
    })?;
    let ShowReport::Plan(shown) = shown else {
        return Err(Refusal::usage(format!("`{}` is no plan", asked.plan), "name the step's plan"));
    };
    let id = shown.plan.id.clone();
    if asked.steps.is_empty() {
        return Err(Refusal::usage(
            "no steps are named",
            "replace takes the new list, the others take numbers",
        ));
    }
    let report = match asked.op {
        Op::Replace => {
            let list = Value::Array(asked.steps.iter().map(|it| step_item(it)).collect()).to_string();
            let (plan, shown, by) = (id.clone(), "steps".to_owned(), Some(call.context.by.clone()));
            replace::replace(context, &ReplaceRequest { plan, list, shown, by, force: false, mode })?
        }
        Op::Consolidate => {
            let Some(title) = asked.task else {
                return Err(Refusal::usage(
                    "the argument `task` is missing",
                    "it is the title of the step that they become",
                ));
            };
            let steps = asked.steps.iter().map(|it| number(&id, it)).collect();
            squash::squash(
                context,
                &SquashRequest { plan: id.clone(), steps, title, by: None, force: false, mode },
            )?
        }
        Op::Remove => {
            let ids = asked.steps.iter().map(|it| format!("{id}:{}", number(&id, it))).collect();
            remove::remove(context, &RemoveRequest { ids, mode, ..RemoveRequest::default() })?
        }
    };
    if let Some(refused) = report.refused.into_iter().next() {
        return Err(refused.error.into());
    }
    let told = |it: &crate::engine::write::Changed| json!({"id": it.id, "title": it.title, "did": it.did});
    let mut object = json!({
        "did": if mode == Mode::DryRun { "nothing: shown only" } else { "restructured" },
        "written": mode == Mode::Write && report.changes.iter().any(|it| it.was_written),
        "plan": id,
        "steps_before": shown.plan.steps_total,
        "steps_after": if mode == Mode::Write { steps_of(call, &id)?.len() } else { shown.plan.steps_total },
        "changes": report.changes.iter().filter(|it| it.was_written).take(MOST_TOLD).map(told).collect::<Vec<_>>(),
    });
    if !report.hints.is_empty() {
        object["hint"] = report.hints.join("; ").into();
    }
    Ok(object)
}

/// An item of a list of steps as the engine reads it: a title, or an object that came as its text.
fn step_item(given: &str) -> Value {
    let object = given.trim_start().starts_with('{').then(|| serde_json::from_str(given).ok());
    object.flatten().unwrap_or_else(|| given.into())
}

/// A step's number as somebody gave it: alone, or in the whole id.
fn number(plan: &str, given: &str) -> String {
    given.strip_prefix(plan).and_then(|it| it.strip_prefix(':')).unwrap_or(given).to_owned()
}
