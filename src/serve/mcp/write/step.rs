//! Tools that make and change steps.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::engine::add::{self, AddRequest};
use crate::engine::context::Context;
use crate::engine::list;
use crate::engine::note::{self, NoteRequest};
use crate::engine::release::{self, ReleaseRequest};
use crate::engine::set::{self, SetOp, SetRequest};
use crate::engine::show::{self, ShowReport, ShowRequest};
use crate::engine::update::{self, AttemptRequest, MoveRequest};
use crate::engine::write::Mode;
use crate::plan::moves::Verb;
use crate::plan::words::StepStatus;
use crate::serve::mcp::named;
use crate::serve::mcp::result::{self, CHANGED, Refusal};
use crate::serve::mcp::tool::{Call, Effect, Tool};
use crate::serve::mcp::write::{Change, MAKER, all};

pub(super) fn tools() -> Vec<Tool> {
    vec![
        Tool::new(
            ("add_step", "Add a step"),
            Effect::Adds,
            "Adds a step at the end of a plan, or behind another one (2 -> 2.5).",
            CHANGED,
            add_step,
        ),
        Tool::new(
            ("update_step", "Update a step"),
            Effect::Sets,
            "Says how a step went: status with result. The result becomes an attempt, which stays. Metadata merges by key.",
            CHANGED,
            update_step,
        ),
        Tool::new(
            ("add_note", "Add a note"),
            Effect::Adds,
            "Adds a remark to a plan or a step, claimed or not.",
            CHANGED,
            add_note,
        ),
    ]
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct AddStep {
    plan: String,
    /// The step's text, in Markdown
    description: Option<String>,
    title: Option<String>,
    /// As 2
    after_step: Option<String>,
    /// As 2.5
    step_number: Option<String>,
    /// Ids or numbers; none: the step before
    depends: Option<Vec<String>>,
    phase: Option<String>,
    r#type: Option<String>,
    /// Files it will change, as src/**
    touches: Option<Vec<String>>,
    /// Commands that prove it
    verify: Option<Vec<String>>,
    /// Wait for a person's yes
    gate: Option<bool>,
    metadata: Option<Map<String, Value>>,
}

fn add_step(call: &Call, asked: AddStep) -> Result<Value, Refusal> {
    let AddStep { plan, description, title, after_step, step_number, depends, phase, .. } = asked;
    let title = title.or_else(|| description.as_deref().and_then(title_of));
    let Some(title) = title else {
        return Err(Refusal::usage(
            "a step needs a title",
            "give `title`, or `description` with a first line",
        ));
    };
    let request = AddRequest {
        title,
        after: after_step,
        at: step_number,
        depends: depends.unwrap_or_default(),
        phase,
        kind: asked.r#type,
        touches: asked.touches.unwrap_or_default(),
        verify: asked.verify.unwrap_or_default(),
        metadata: asked.metadata.map(|it| Value::Object(it).to_string()),
        body: description,
        by: Some(MAKER.to_owned()),
        mode: Mode::Write,
        ..AddRequest::default()
    };
    let context = &call.context;
    let report = named::plan(call, &plan, |id| {
        add::add(context, &AddRequest { plan: id.to_owned(), ..request.clone() })
    })?;
    let mut object = result::changed(report)?;
    if asked.gate == Some(true) {
        let id = object["id"].as_str().unwrap_or_default().to_owned();
        let request = set_request(&id, "confirm", SetOp::Text("required".to_owned()));
        let gated = result::changed(set::set(context, &request)?)?;
        object["etag"] = gated["etag"].clone();
        object["did"] = "added, with a gate".into();
    }
    Ok(object)
}

/// The first heading or line of a text.
fn title_of(text: &str) -> Option<String> {
    const LONG: usize = 120;
    let line = text.lines().map(|it| it.trim_start_matches('#').trim()).find(|it| !it.is_empty())?;
    Some(result::cut(line, LONG).map_or_else(|| line.to_owned(), |it| format!("{it}…")))
}

fn set_request(id: &str, key: &str, op: SetOp) -> SetRequest {
    SetRequest {
        id: id.to_owned(),
        key: key.to_owned(),
        op,
        by: None,
        claim: None,
        force: false,
        mode: Mode::Write,
    }
}

#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct UpdateStep {
    /// Id, as auth:2
    step: String,
    /// pending, in_progress, completed, failed, blocked or skipped
    status: Option<String>,
    /// What was done and how it was checked, or why not
    result: Option<String>,
    attempt_outcome: Option<String>,
    attempt_notes: Option<String>,
    /// Added as a note
    notes: Option<String>,
    metadata: Option<Map<String, Value>>,
    /// claim.id of claim_next_step
    claim: Option<String>,
    worker: Option<String>,
}

fn update_step(call: &Call, asked: UpdateStep) -> Result<Value, Refusal> {
    let context = &call.context;
    let shown = named::step(call, &asked.step, |id| {
        show::show(context, &ShowRequest { id: id.to_owned(), ..ShowRequest::default() })
    })?;
    let ShowReport::Step(shown) = shown else {
        return Err(Refusal::usage(format!("`{}` is no step", asked.step), "update_plan changes a plan"));
    };
    let UpdateStep {
        step: id,
        status,
        result,
        attempt_outcome,
        attempt_notes,
        notes,
        metadata,
        claim,
        worker,
    } = asked;
    let read = |it: String| list::read_word::<StepStatus>(&context.config.words, &it);
    let status = status.map(read).transpose()?;
    let on = On { context, id, by: worker, claim };
    let mut changes: Vec<Change<'_>> = Vec::new();
    let message = match attempt_outcome {
        None => result.or(attempt_notes),
        // An attempt beside the end of the work stands before it.
        Some(outcome) if status.is_some() => {
            changes.push(on.attempt(outcome, attempt_notes));
            result
        }
        Some(outcome) => {
            changes.push(on.attempt(outcome, attempt_notes.or(result)));
            None
        }
    };
    match (status, message) {
        (Some(StepStatus::Pending), message) if shown.step.status == "in_progress" => {
            changes.push(on.release(message));
        }
        (Some(status), message) => changes.push(on.becomes(status, message)),
        (None, Some(result)) => changes.push(on.attempt("reported".to_owned(), Some(result))),
        (None, None) => {}
    }
    changes.extend(notes.map(|it| on.note(it)));
    if let Some(more) = metadata {
        let mut merged = shown.step.metadata.clone();
        merged.extend(more);
        changes.push(on.metadata(&Value::Object(merged)));
    }
    all(&changes)
}

/// The step that a call changes, and who does.
struct On<'a> {
    context: &'a Context,
    id: String,
    by: Option<String>,
    claim: Option<String>,
}

impl<'a> On<'a> {
    fn attempt(&self, outcome: String, notes: Option<String>) -> Change<'a> {
        let (context, id, by, claim) = (self.context, self.id.clone(), self.by.clone(), self.claim.clone());
        let request =
            AttemptRequest { id, outcome, notes, by, claim, keep_status: true, ..AttemptRequest::default() };
        Box::new(move |mode| update::attempt(context, &AttemptRequest { mode, ..request.clone() }))
    }

    fn becomes(&self, status: StepStatus, message: Option<String>) -> Change<'a> {
        let (context, verb, ids) = (self.context, Verb::giving(status), vec![self.id.clone()]);
        let (by, claim) = (self.by.clone(), self.claim.clone());
        let request = MoveRequest { verb, ids, message, by, claim, force: false, mode: Mode::Write };
        Box::new(move |mode| update::move_steps(context, &MoveRequest { mode, ..request.clone() }))
    }

    fn release(&self, message: Option<String>) -> Change<'a> {
        let (context, ids, by, claim) =
            (self.context, vec![self.id.clone()], self.by.clone(), self.claim.clone());
        let request = ReleaseRequest { ids, message, by, claim, ..ReleaseRequest::default() };
        Box::new(move |mode| release::release(context, &ReleaseRequest { mode, ..request.clone() }))
    }

    fn note(&self, text: String) -> Change<'a> {
        let (context, id, by) = (self.context, self.id.clone(), self.by.clone());
        let request = NoteRequest { id, text, kind: None, by, mode: Mode::Write };
        Box::new(move |mode| note::note(context, &NoteRequest { mode, ..request.clone() }))
    }

    fn metadata(&self, merged: &Value) -> Change<'a> {
        let (context, op) = (self.context, SetOp::Yaml(merged.to_string()));
        let request = SetRequest { by: self.by.clone(), ..set_request(&self.id, "metadata", op) };
        Box::new(move |mode| set::set(context, &SetRequest { mode, ..request.clone() }))
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct AddNote {
    plan: Option<String>,
    step: Option<String>,
    note: String,
    note_type: Option<NoteKind>,
    worker: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum NoteKind {
    Info,
    Warning,
    Instruction,
}

fn add_note(call: &Call, asked: AddNote) -> Result<Value, Refusal> {
    let AddNote { plan, step, note: text, note_type, worker } = asked;
    let Some(id) = step.or(plan) else {
        return Err(Refusal::usage("a note on what?", "give `step` or `plan`"));
    };
    if text.trim().is_empty() {
        return Err(Refusal::usage("the note is empty", "say something"));
    }
    let kind = note_type.map(|it| match it {
        NoteKind::Info => "info",
        NoteKind::Warning => "warning",
        NoteKind::Instruction => "instruction",
    });
    let request =
        NoteRequest { id: String::new(), text, kind: kind.map(str::to_owned), by: worker, mode: Mode::Write };
    let report = named::plan(call, &id, |id| {
        note::note(&call.context, &NoteRequest { id: id.to_owned(), ..request.clone() })
    })?;
    let mut object = result::changed(report)?;
    if object["etag"].is_null() {
        object.as_object_mut().map(|it| it.remove("etag"));
    }
    Ok(json!(object))
}
