//! Tools that make and change plans.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::api::context::Context;
use crate::api::views::value;
use crate::disk::Origin;
use crate::ops::add::{self, AddRequest};
use crate::ops::archive::{self, ArchiveRequest};
use crate::ops::create::{self, NewRequest, StepRequest};
use crate::ops::import::ImportRequest;
use crate::ops::list::{self, ListReport, ListRequest};
use crate::ops::patch::NO_DUE;
use crate::ops::remove::{self, RemoveRequest};
use crate::ops::replace::{self, ReplaceRequest};
use crate::ops::set::{self, SetOp, SetRequest};
use crate::ops::show::ShownPlan;
use crate::ops::squash::{self, SquashRequest};
use crate::plan::id;
use crate::plan::model::Order;
use crate::serve::mcp::lookup;
use crate::serve::mcp::result::{self, CHANGED, Refusal};
use crate::serve::mcp::schema::Object;
use crate::serve::mcp::tool::{Call, Effect, Tool, Without};
use crate::serve::mcp::write::{Change, MAKER, all, import_document, set_request};
use crate::store::transaction::Mode;

pub(super) fn tools() -> Vec<Tool> {
    vec![
        Tool::new(
            ("create_plan", "Create a plan"),
            Effect::Adds,
            "Makes a plan with steps; its id is the slug of the title. Keep steps small enough to check.",
            CHANGED,
            create_plan,
        )
        .covered(no_numbers, |refusal| refusal)
        .without(|_| Without::Makes),
        Tool::new(
            ("update_plan", "Update a plan"),
            Effect::Sets,
            "Changes a plan's fields or status, or archives it. For steps, use update_step and restructure_plan.",
            CHANGED,
            update_plan,
        ),
        Tool::new(
            ("restructure_plan", "Restructure a plan"),
            Effect::Removes,
            "replace: `steps` is the new list; steps with unchanged titles keep their files. consolidate: merges steps into \
             one. remove: removes steps.",
            "did written:bool plan steps_before:int steps_after:int? changes:list? hint?",
            restructure_plan,
        ),
    ]
}

/// The fields of both new and existing plans.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
struct Fields {
    description: Option<String>,
    category: Option<String>,
    /// low, medium, high or critical
    priority: Option<String>,
    goals: Option<Vec<String>>,
    success_criteria: Option<Vec<String>>,
    tags: Option<Vec<String>>,
    /// Id of the program
    program: Option<String>,
}

// A step of a list. A string alone is the step's title. The schema for clients does not describe the fields, because
// add_step describes them (`text` is its `description`).
#[derive(Debug, Clone, Deserialize, JsonSchema)]
struct Listed {
    title: String,
    text: Option<String>,
    depends: Option<Vec<String>>,
    touches: Option<Vec<String>>,
    verify: Option<Vec<String>>,
    // Other fields. `replace` checks them. `new_step` refuses them.
    #[serde(flatten)]
    more: Map<String, Value>,
}

impl Listed {
    /// Converts the step to an item of the list that `replace` reads.
    fn item(self) -> Value {
        let Self { title, text, depends, touches, verify, more } = self;
        let mut item = more;
        let texts = |it: Option<Vec<String>>| it.map(|it| json!(it));
        let fields =
            [("body", text.map(Value::from)), ("depends", texts(depends)), ("touches", texts(touches))];
        item.insert("title".to_owned(), title.into());
        for (key, value) in fields.into_iter().chain([("verify", texts(verify))]) {
            item.extend(value.map(|it| (key.to_owned(), it)));
        }
        Value::Object(item)
    }

    /// Converts the step to a step of a new plan. Refuses other fields.
    fn new_step(self) -> Result<StepRequest, Refusal> {
        if let Some(key) = self.more.keys().next() {
            let hint =
                "a step has title, text, depends, touches and verify; add_step and update_step set more";
            return Err(Refusal::usage(format!("`{key}` is not a field of a new step"), hint));
        }
        let Self { title, text, depends, touches, verify, .. } = self;
        let (depends, touches) = (depends.unwrap_or_default(), touches.unwrap_or_default());
        Ok(StepRequest { title, text, depends, touches, verify: verify.unwrap_or_default() })
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
struct CreatePlan {
    title: String,
    /// As in add_step, but `text`, not `description`
    steps: Option<Vec<Listed>>,
    /// Each step waits for the one before
    sequential: Option<bool>,
    /// No claims until update_plan sets active
    draft: Option<bool>,
    #[serde(flatten)]
    fields: Fields,
    template: Option<String>,
    as_program: Option<bool>,
    /// The text of plan.md, in Markdown
    body: Option<String>,
    /// A document of the repository to import
    from_file: Option<String>,
    /// Repeat an import
    again: Option<bool>,
    if_exists: Option<IfExists>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum IfExists {
    #[default]
    Error,
    Update,
}

fn create_plan(call: &Call, asked: CreatePlan) -> Result<Value, Refusal> {
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
                "get_plan reads it; with if_exists `update` its fields are set; otherwise choose another title"
            }
            false => "choose another title",
        };
        return Err(Refusal::new("plan-exists", message, hint));
    }
    if asked.from_file.is_some() {
        return import_plan(call, id, asked);
    }
    let CreatePlan { title, steps, fields, template, as_program, body, .. } = asked;
    let steps = steps.into_iter().flatten().map(Listed::new_step).collect::<Result<_, _>>()?;
    let request = NewRequest {
        title,
        steps,
        is_sequential: asked.sequential.unwrap_or_default(),
        is_draft: asked.draft.unwrap_or_default(),
        description: fields.description,
        goals: fields.goals.unwrap_or_default(),
        criteria: fields.success_criteria.unwrap_or_default(),
        tags: fields.tags.unwrap_or_default(),
        category: fields.category,
        priority: fields.priority,
        program: fields.program,
        is_program: as_program.unwrap_or_default(),
        by: Some(MAKER.to_owned()),
        template,
        body,
        ..NewRequest::default()
    };
    let mut report = create::new(context, &request)?;
    for hint in &mut report.hints {
        if let Some((ready, _)) = hint.split_once("; `planwatch set ") {
            *hint = format!("{ready}; update_step with `depends` makes a step wait for others");
        }
    }
    // In the answer, the hint with the next command comes last.
    report.hints.reverse();
    result::changed(report)
}

/// Makes a plan from a document; the document stays as it is.
fn import_plan(call: &Call, id: String, asked: CreatePlan) -> Result<Value, Refusal> {
    let CreatePlan { title, steps, fields, template, as_program, body, from_file, again, .. } = asked;
    let rest = Fields { category: None, priority: None, ..fields.clone() };
    let has_more = steps.is_some() || template.is_some() || as_program.is_some() || body.is_some();
    let has_more = has_more || asked.sequential == Some(true) || asked.draft == Some(true);
    if has_more || rest != Fields::default() {
        let hint = "with from_file give only title, category and priority; update_plan and add_step can change the plan afterwards";
        return Err(Refusal::usage("a document brings its own text, steps and goals", hint));
    }
    let path = &from_file.unwrap_or_default();
    let (source, origin, shown) = (PathBuf::from(path), Origin::Elsewhere, path.clone());
    let (name, title) = (Some(id), Some(title));
    let Fields { category, priority, .. } = fields;
    let request = ImportRequest {
        source,
        origin,
        shown,
        name,
        title,
        category,
        priority,
        again: again.unwrap_or_default(),
        ..ImportRequest::default()
    };
    let report = import_document(call, &request)?;
    let unmapped = report.unmapped.len();
    let mut object = result::changed(report.change)?;
    if unmapped > 0 {
        object["hint"] = format!(
            "{unmapped} lines of `{path}` could not be mapped to the plan; read the document, and add what is missing with add_step or in the files"
        )
        .into();
    }
    Ok(object)
}

/// Sets the requested fields of an existing plan, and adds the requested steps whose titles the plan does not have.
fn update_instead(call: &Call, id: &str, asked: CreatePlan) -> Result<Value, Refusal> {
    let there = shown(call, id)?;
    let is_other = |it: &String| it.trim() != there.body.trim();
    let is_text = asked.from_file.is_some() || asked.body.as_ref().is_some_and(is_other);
    let is_other_order = asked.sequential == Some(true) && there.plan.order != Order::Sequential;
    let is_no_draft = asked.draft == Some(true) && there.plan.status != "draft";
    if is_no_draft {
        let hint = "leave `draft` out; update_plan with status `draft` makes the plan a draft";
        return Err(Refusal::usage(format!("`{id}` is not a draft"), hint));
    }
    if is_text || asked.template.is_some() || asked.as_program == Some(true) || is_other_order {
        let hint = "leave these arguments out; update_plan changes fields, and the text of plan.md is changed in the file";
        return Err(Refusal::usage(
            "with create_plan, the text, template, kind and order of an existing plan cannot be changed",
            hint,
        ));
    }
    let fields = changes_of((id, false), asked.fields, []);
    let mut changes: Vec<Change<'_>> = Vec::new();
    if !fields.is_empty() {
        changes.push(Box::new(move |context, mode| set::set_in_one_write(context, id, &fields, mode)));
    }
    let is_new = |it: &Listed| there.steps.iter().all(|step| step.title != it.title);
    for step in asked.steps.into_iter().flatten().filter(is_new) {
        let step = step.new_step()?;
        let body = step.body()?;
        let StepRequest { title, depends, touches, verify, .. } = step;
        let (plan, by) = (id.to_owned(), Some(MAKER.to_owned()));
        let request = AddRequest { plan, title, body, depends, touches, verify, by, ..AddRequest::default() };
        changes
            .push(Box::new(move |context, mode| add::add(context, &AddRequest { mode, ..request.clone() })));
    }
    let done = match changes.as_slice() {
        [] => json!({"did": "nothing: already done", "written": false}),
        changes => all(call, None, changes)?,
    };
    // The last change can be of a step, but the answer is about the plan.
    let mut object = result::pick(&value(&shown(call, id)?.plan), "id title path status etag");
    object["did"] = done["did"].clone();
    object["written"] = done["written"].clone();
    Ok(object)
}

/// Refuses numbers as steps of a new plan, because a number would become a title.
fn no_numbers(given: &Object) -> Result<(), Refusal> {
    let steps = given.get("steps").and_then(Value::as_array);
    match steps.into_iter().flatten().enumerate().find(|(_, it)| it.is_number()) {
        Some((nth, number)) => Err(Refusal::usage(
            format!(
                "`steps[{nth}]` has to be an object with the fields title, text, depends, touches, verify"
            ),
            format!("it was given as {number}"),
        )),
        None => Ok(()),
    }
}

/// A plan by its id or title.
fn shown(call: &Call, typed: &str) -> Result<ShownPlan, Refusal> {
    lookup::shown(call, typed, false, "update_step changes a step; list_plans names the plans")
}

#[derive(Debug, Deserialize, JsonSchema)]
struct UpdatePlan {
    /// Id or title
    plan: String,
    /// draft, active, completed or abandoned
    status: Option<String>,
    title: Option<String>,
    #[serde(flatten)]
    fields: Fields,
    due: Option<String>,
    convert_to_program: Option<bool>,
    archived: Option<bool>,
    /// Also with open steps
    force: Option<bool>,
    /// plan.md's current one
    etag: Option<String>,
}

fn changes_of(
    (id, force): (&str, bool),
    fields: Fields,
    more: impl IntoIterator<Item = (&'static str, Option<String>)>,
) -> Vec<SetRequest> {
    let texts = [
        ("description", fields.description),
        ("priority", fields.priority),
        ("category", fields.category),
        ("program", fields.program),
    ];
    let lists =
        [("goals", fields.goals), ("success_criteria", fields.success_criteria), ("tags", fields.tags)];
    let texts = texts.into_iter().chain(more).filter_map(|(key, it)| Some((key, SetOp::Text(it?))));
    let lists = lists.into_iter().filter_map(|(key, it)| Some((key, SetOp::of_json(&json!(it?)))));
    let request = |(key, op): (&str, SetOp)| SetRequest { force, ..set_request(id, key, op) };
    lists.chain(texts).map(request).collect()
}

fn update_plan(call: &Call, asked: UpdatePlan) -> Result<Value, Refusal> {
    let shown = shown(call, &asked.plan)?;
    let id = shown.plan.id;
    let kind = asked.convert_to_program.filter(|it| *it).map(|_| "program".to_owned());
    let more = [("title", asked.title), ("kind", kind), ("status", asked.status)];
    let mut changes = changes_of((&id, asked.force == Some(true)), asked.fields, more);
    if let Some(due) = asked.due {
        let is_none = due.trim().eq_ignore_ascii_case(NO_DUE);
        let op = if is_none { SetOp::Unset } else { SetOp::Text(due.trim().to_owned()) };
        changes.push(set_request(&id, "due", op));
    }
    let etag = asked.etag.as_deref();
    let set = || call.part("fields", etag, |it| set::set_in_one_write(it, &id, &changes, Mode::Write));
    let archive = |restores, mode| {
        let request = ArchiveRequest { plans: vec![id.clone()], restores, force: false, mode };
        move |context: &Context| archive::archive(context, &request)
    };
    let restores = asked.archived == Some(false) && shown.plan.archived;
    match (changes.is_empty(), asked.archived) {
        (true, Some(true)) => call.part("archive", etag, archive(false, Mode::Write)),
        (true, _) if restores => call.part("restore", etag, archive(true, Mode::Write)),
        (true, _) => {
            Err(Refusal::usage("there is nothing to change", "give at least one field in addition to `plan`"))
        }
        (false, Some(true)) => {
            // An archived plan cannot be changed, so the fields are set before the plan is archived. A dry run first
            // checks whether the plan can be archived.
            call.unkeyed(archive(false, Mode::DryRun))?;
            let changed = set()?;
            call.part("archive", None, archive(false, Mode::Write)).map_err(|it| it.after(&changed))
        }
        (false, _) if restores => {
            let back = call.unkeyed(archive(true, Mode::Write))?;
            set().map_err(|refusal| match call.unkeyed(archive(false, Mode::Write)) {
                Ok(_) => refusal,
                Err(_) => refusal.after(&back),
            })
        }
        (false, _) => set(),
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Restructure {
    /// Id or title
    plan: String,
    op: Op,
    /// replace: the new list
    steps: Option<Vec<Listed>>,
    /// consolidate, remove: the steps
    numbers: Option<Vec<String>>,
    /// consolidate: new title
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

/// The largest number of changes that an answer lists.
const MOST_LISTED: usize = 30;

fn restructure_plan(call: &Call, asked: Restructure) -> Result<Value, Refusal> {
    let context = &call.context;
    let mode = if asked.dry_run == Some(true) { Mode::DryRun } else { Mode::Write };
    let shown = shown(call, &asked.plan)?;
    let id = shown.plan.id.clone();
    let mut steps = asked.steps.unwrap_or_default();
    // Older prompts give the numbers as `steps`.
    let numbers = asked.numbers.unwrap_or_else(|| steps.iter().map(|it| it.title.clone()).collect());
    if if asked.op == Op::Replace { steps.is_empty() } else { numbers.is_empty() } {
        return Err(Refusal::usage(
            "no steps are named",
            "replace takes the new list as `steps`, the others take `numbers`",
        ));
    }
    let report = match asked.op {
        Op::Replace => {
            let list = Value::Array(steps.drain(..).map(Listed::item).collect()).to_string();
            let (plan, shown, by) = (id.clone(), "steps".to_owned(), Some(call.context.by.clone()));
            let created_by = Some(MAKER.to_owned());
            let request =
                ReplaceRequest { plan, list, shown, by, created_by, mode, ..ReplaceRequest::default() };
            replace::replace(context, &request)?
        }
        Op::Consolidate => {
            let Some(title) = asked.task else {
                return Err(Refusal::usage(
                    "the argument `task` is missing",
                    "`task` is the title of the merged step",
                ));
            };
            let steps = numbers.iter().map(|it| number(&id, it)).collect::<Result<_, _>>()?;
            squash::squash(
                context,
                &SquashRequest { plan: id.clone(), steps, title, by: None, force: false, mode },
            )?
        }
        Op::Remove => {
            let ids = numbers.iter().map(|it| Ok(format!("{id}:{}", number(&id, it)?)));
            let ids = ids.collect::<Result<_, Refusal>>()?;
            remove::remove(context, &RemoveRequest { ids, mode, ..RemoveRequest::default() })?
        }
    };
    if let Some(refused) = report.refused.into_iter().next() {
        return Err(refused.error.into());
    }
    let told =
        |it: &crate::store::transaction::Changed| json!({"id": it.id, "title": it.title, "did": it.did});
    let mut object = json!({
        "did": if mode == Mode::DryRun { "nothing: shown only" } else { "restructured" },
        "written": mode == Mode::Write && report.changes.iter().any(|it| it.was_written),
        "plan": id,
        "steps_before": shown.plan.steps_total,
        "changes": report.changes.iter().filter(|it| it.was_written || it.did == "kept").take(MOST_LISTED).map(told).collect::<Vec<_>>(),
    });
    if mode == Mode::Write {
        object["steps_after"] = self::shown(call, &id)?.plan.steps_total.into();
    }
    if let Some(hint) = result::joined_hints(&report.hints) {
        object["hint"] = hint.into();
    }
    Ok(object)
}

/// Parses a step's number, which is given alone or as part of the step's id.
fn number(plan: &str, given: &str) -> Result<String, Refusal> {
    let alone = given.strip_prefix(plan).and_then(|it| it.strip_prefix(':')).unwrap_or(given);
    let not = || {
        Refusal::usage(
            format!("`{given}` is not a step's number"),
            "write it as 2 or 2.5; get_plan names the steps",
        )
    };
    id::read_number(alone).map(|it| it.to_string()).ok_or_else(not)
}
