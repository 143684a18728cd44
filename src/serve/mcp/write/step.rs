//! Tools that make and change steps.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::api::requests::author;
use crate::ops::add::{self, AddRequest};
use crate::ops::note::{self, NoteRequest};
use crate::ops::patch::{self, PatchRequest};
use crate::ops::release::{self, ReleaseRequest};
use crate::ops::set::{self, SetOp, SetRequest};
use crate::ops::show::{self, ShowReport, ShowRequest};
use crate::ops::update::{self, AttemptRequest};
use crate::ops::upsert;
use crate::plan::id;
use crate::plan::words::StepStatus;
use crate::serve::mcp::lookup;
use crate::serve::mcp::result::{self, CHANGED, Refusal};
use crate::serve::mcp::schema::{Object, read, take};
use crate::serve::mcp::tool::{Call, Effect, Tool};
use crate::serve::mcp::write::{Change, MAKER, all, set_request};
use crate::store::load;
use crate::store::transaction::Mode;
use crate::store::typed_words;

pub(super) fn tools() -> Vec<Tool> {
    vec![
        Tool::of::<AddRequest>(
            ("add_step", "Add a step"),
            Effect::Adds,
            "Adds a step at the end of a plan, or after another one (2 -> 2.5).",
            (
                "plan:str description=body(The step's text, in Markdown) title? after_step=after(As 2) \
                 step_number=at(As 2.5) depends(Ids or numbers; omitted: none) phase type \
                 touches(Files it will change, as src/**) verify(Commands that prove it) \
                 gate(Wait for a person's yes) metadata",
                CHANGED,
            ),
            add_step,
        ),
        Tool::new(
            ("update_step", "Update a step"),
            Effect::Adds,
            "Sets a step's status and records `result` as an attempt. `pending` lets a failed or \
             blocked step be claimed. Closing the last open step completes the plan. Metadata merges by key.",
            CHANGED,
            update_step,
        ),
        Tool::of::<NoteRequest>(
            ("add_note", "Add a note"),
            Effect::Adds,
            "Adds a note to a plan or a step.",
            ("plan:str? step:str? note=text note_type=type", CHANGED),
            add_note,
        ),
    ]
}

fn add_step(call: &Call, mut given: Object) -> Result<Value, Refusal> {
    let plan: String = take(&mut given, "plan")?.unwrap_or_default();
    let text = given.get("body").and_then(Value::as_str);
    if !given.contains_key("title")
        && let Some(title) = text.and_then(title_of)
    {
        given.insert("title".to_owned(), title.into());
    }
    if !given.contains_key("title") {
        return Err(Refusal::usage(
            "a step needs a title",
            "give `title`, or `description` with a first line",
        ));
    }
    let request = AddRequest { by: Some(MAKER.to_owned()), ..read(given)? };
    let add = |id: &str| add::add(&call.context, &AddRequest { plan: id.to_owned(), ..request.clone() });
    result::changed(lookup::plan(call, &plan, add)?)
}

/// The title in a text: its heading, or else its first line. A long title is cut.
fn title_of(text: &str) -> Option<String> {
    const LONG: usize = 120;
    let title = Some(upsert::title(text)).filter(|it| !it.is_empty())?;
    Some(result::cut(&title, LONG).map_or_else(|| title.clone(), |it| format!("{it}…")))
}

#[derive(Debug, Clone, Deserialize, JsonSchema)]
struct UpdateStep {
    /// Id, as auth:2
    step: String,
    /// pending, in_progress, completed, failed, blocked or skipped
    status: Option<String>,
    /// What was done and checked, or why not
    result: Option<String>,
    /// Free text; changes no status
    attempt_outcome: Option<String>,
    attempt_notes: Option<String>,
    /// Added as a note
    notes: Option<String>,
    title: Option<String>,
    /// The new text
    text: Option<String>,
    /// All of them; [] for none
    depends: Option<Vec<String>>,
    metadata: Option<Map<String, Value>>,
    /// Date or none
    due: Option<String>,
    /// claim.id of claim_next_step
    claim: Option<String>,
    /// The current one
    etag: Option<String>,
    #[serde(default, deserialize_with = "author")]
    worker: Option<String>,
}

fn update_step(call: &Call, asked: UpdateStep) -> Result<Value, Refusal> {
    let UpdateStep { step: id, status, result, attempt_outcome, attempt_notes, .. } = asked;
    let shown = show::show(&call.context, &ShowRequest { id: id.clone(), ..ShowRequest::default() })?;
    let ShowReport::Step(shown) = shown else {
        return Err(Refusal::usage(format!("`{id}` is not a step"), "update_plan changes a plan"));
    };
    let words = &call.context.config.words;
    let read = status.as_deref().map(|it| typed_words::read_word::<StepStatus>(words, it)).transpose()?;
    let on = On { id, by: asked.worker, claim: asked.claim };
    let mut changes: Vec<Change<'_>> = Vec::new();
    if let Some(title) = asked.title {
        changes.push(on.clone().set("title", SetOp::Text(title)));
    }
    if let Some(depends) = asked.depends {
        let op = SetOp::of_json(&dependencies(&shown.step.plan, &depends)?);
        changes.push(on.clone().set("depends", op));
    }
    // If the call has both an attempt and a status, the attempt is recorded first.
    let message = match (attempt_outcome, attempt_notes, result) {
        (None, None, message) | (None, message, None) => message,
        (None, notes, result) => {
            changes.push(on.clone().attempt("attempted".to_owned(), notes));
            result
        }
        (Some(outcome), None, Some(result)) if status.is_none() => {
            changes.push(on.clone().attempt(outcome, Some(result)));
            None
        }
        (Some(outcome), notes, result) => {
            changes.push(on.clone().attempt(outcome, notes));
            result
        }
    };
    // A call that names a claim can be a repetition of an earlier call whose answer was lost. In that case, the step is
    // already released.
    let is_given_back = shown.step.status == "pending" && on.claim.is_some();
    let gives_back =
        read == Some(StepStatus::Pending) && (shown.step.status == "in_progress" || is_given_back);
    let (status, message) = if gives_back {
        changes.push(on.clone().release(message));
        (None, None)
    } else {
        (status, message)
    };
    if status.is_some()
        || message.is_some()
        || [asked.metadata.is_some(), asked.text.is_some(), asked.due.is_some()].contains(&true)
    {
        let (metadata, text, due) = (asked.metadata, asked.text, asked.due);
        let request =
            PatchRequest { status, result: message, metadata, text, due, ..PatchRequest::default() };
        changes.push(on.clone().patch(request));
    }
    if let Some(text) = asked.notes {
        changes.push(on.note(text));
    }
    // Only the first write checks the etag, because that write changes it.
    all(call, asked.etag.as_deref(), &changes)
}

/// Converts dependencies to the form of a step's file, in which a step of the same plan is only a number.
fn dependencies(plan: &str, given: &[String]) -> Result<Value, Refusal> {
    let one = |it: &String| {
        let text = it.trim();
        let own = text.strip_prefix(plan).and_then(|it| it.strip_prefix(':')).unwrap_or(text);
        if let Some(number) = id::read_number(own) {
            return Ok(serde_json::from_str(&number.to_string()).unwrap_or_else(|_| text.into()));
        }
        let hint = "write a step's number, as 2, or its id, as auth:2";
        let no_step = || Refusal::usage(format!("`{text}` is not a step"), hint);
        id::read_step_id(text).map(|it| it.to_string().into()).ok_or_else(no_step)
    };
    given.iter().map(one).collect::<Result<_, _>>().map(Value::Array)
}

/// The step that a call changes, and the author of the change.
#[derive(Clone)]
struct On {
    id: String,
    by: Option<String>,
    claim: Option<String>,
}

impl On {
    fn attempt(self, outcome: String, notes: Option<String>) -> Change<'static> {
        let Self { id, by, claim } = self;
        let request =
            AttemptRequest { id, outcome, notes, by, claim, keep_status: true, ..AttemptRequest::default() };
        Box::new(move |context, mode| update::attempt(context, &AttemptRequest { mode, ..request.clone() }))
    }

    fn set(self, key: &str, op: SetOp) -> Change<'static> {
        let Self { id, by, claim } = self;
        let request = SetRequest { by, claim, ..set_request(&id, key, op) };
        Box::new(move |context, mode| set::set(context, &SetRequest { mode, ..request.clone() }))
    }

    /// One write, in which metadata is merged with the file's current values.
    fn patch(self, request: PatchRequest) -> Change<'static> {
        let Self { id, by, claim } = self;
        let request = PatchRequest { id, by, claim, ..request };
        Box::new(move |context, mode| patch::patch(context, &PatchRequest { mode, ..request.clone() }))
    }

    fn release(self, message: Option<String>) -> Change<'static> {
        let Self { id, by, claim } = self;
        let request = ReleaseRequest { ids: vec![id], message, by, claim, ..ReleaseRequest::default() };
        Box::new(move |context, mode| release::release(context, &ReleaseRequest { mode, ..request.clone() }))
    }

    fn note(self, text: String) -> Change<'static> {
        let Self { id, by, .. } = self;
        let request = NoteRequest { id, text, kind: None, by, mode: Mode::Write };
        Box::new(move |context, mode| note::note(context, &NoteRequest { mode, ..request.clone() }))
    }
}

fn add_note(call: &Call, mut given: Object) -> Result<Value, Refusal> {
    let (plan, step) = (take::<String>(&mut given, "plan")?, take(&mut given, "step")?);
    let id = match (plan, step) {
        (Some(plan), Some::<String>(step)) => match step.split_once(':') {
            None if id::read_number(&step).is_some() => format!("{plan}:{step}"),
            Some((other, _))
                if other != plan && load::exists(&call.context, &id::PlanId::new(plan.clone())) =>
            {
                let message = format!("`{step}` is not a step of the plan `{plan}`");
                return Err(Refusal::usage(message, "leave out one of them"));
            }
            _ => step,
        },
        (Some(id), None) | (None, Some(id)) => id,
        (None, None) => return Err(Refusal::usage("`step` or `plan` is missing", "give one of them")),
    };
    let request: NoteRequest = read(given)?;
    let note = |id: &str| note::note(&call.context, &NoteRequest { id: id.to_owned(), ..request.clone() });
    result::changed(lookup::plan(call, &id, note)?)
}
