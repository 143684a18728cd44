//! Confirmations by a person: the question, the ways to ask it, and the tools that need a confirmation.
//!
//! In the current protocol, the response to the call is the question, and the client calls again with the person's reply.
//! In older protocols, the server sends the question as a request to the client while the call waits. If a client cannot
//! ask a person, the response contains the command that the person has to type. No argument of a call counts as a
//! confirmation.

use std::time::Duration;

use rmcp::ErrorData;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, ElicitRequest, ElicitRequestParams, ElicitResult,
    ElicitationAction, ElicitationCapability, ElicitationSchema, InputRequest, InputRequests,
    InputRequiredResult, ProtocolVersion, RequestStateCodec, SealOptions,
};
use rmcp::service::{RequestContext, RoleServer};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::api::error::Error;
use crate::api::views::shown_path;
use crate::ops::confirm::{self, Answer, ConfirmRequest, Confirmer};
use crate::ops::remove::{self, RemoveRequest};
use crate::plan::id::{PlanId, read_step_id};
use crate::serve::mcp::lookup;
use crate::serve::mcp::result::{self, CHANGED, Refusal};
use crate::serve::mcp::tool::{Act, Call, Effect, Question, Tool, Turn};
use crate::store::transaction::{ChangeReport, Mode};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Reply {
    Yes { note: Option<String> },
    No,
}

/// How this client can ask the person.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// The response to the call is the question. The client calls again with the person's reply.
    CallAgain,
    /// The question is a request to the client. The call waits for the reply.
    Now,
    None,
}

/// The key of the question in the response, and of the reply in the repeated call.
const KEY: &str = "person";

/// The time after a question within which a repeated call with the reply is accepted.
const REPLY_TIMEOUT: Duration = Duration::from_secs(60 * 60);

/// The result of an attempt to ask.
pub(super) enum Elicited {
    Reply(Reply),
    /// There is no reply. The client gets this response: the question, or a refusal.
    Answer(Box<CallToolResponse>),
}

/// Asks the person, or finds the reply in a repeated call.
pub(super) async fn ask(
    question: &Question,
    seal: &RequestStateCodec,
    request: &CallToolRequestParams,
    rc: &RequestContext<RoleServer>,
) -> Result<Elicited, ErrorData> {
    let way = way(rc);
    let bound = format!("{}\n{}\n{}", request.name, json!(request.arguments), question.about);
    if let (Way::CallAgain, Some(answers), Some(state)) =
        (way, &request.input_responses, &request.request_state)
    {
        // If the reply is to another question, or the subject of the question has changed, the reply is ignored and the
        // question is asked again.
        if seal.open_with(state, bound.as_bytes()).is_ok()
            && let Some(answer) = answers.get(KEY).and_then(|it| serde_json::from_value(it.clone()).ok())
        {
            return Ok(Elicited::Reply(reply_of(&answer)));
        }
    }
    let Ok(params) = form(question) else {
        return Err(ErrorData::internal_error("the question could not be sent", None));
    };
    match way {
        Way::CallAgain => {
            let requests = InputRequests::from([(
                KEY.to_owned(),
                InputRequest::Elicitation(ElicitRequest::new(params)),
            )]);
            let options = SealOptions::new().associated_data(bound.as_bytes()).ttl(REPLY_TIMEOUT);
            let state = seal.seal_with(KEY.as_bytes(), &options);
            let asking = InputRequiredResult::new(Some(requests), Some(state));
            Ok(Elicited::Answer(Box::new(asking.into())))
        }
        Way::Now => {
            let answer = tokio::select! {
                answer = rc.peer.create_elicitation(params) => answer,
                () = rc.ct.cancelled() => return Ok(Elicited::Reply(Reply::No)),
            };
            match answer {
                Ok(answer) => Ok(Elicited::Reply(reply_of(&answer))),
                Err(_) => Ok(Elicited::Answer(Box::new(cannot_ask(question)))),
            }
        }
        Way::None => Ok(Elicited::Answer(Box::new(cannot_ask(question)))),
    }
}

fn form(question: &Question) -> Result<ElicitRequestParams, &'static str> {
    let requested_schema = ElicitationSchema::builder()
        .required_bool_with("yes", |it| it.title(question.yes).with_default(false))
        .optional_string_with("note", |it| it.title("Note"))
        .build()?;
    Ok(ElicitRequestParams::FormElicitationParams {
        meta: None,
        message: question.message.clone(),
        requested_schema,
    })
}

/// The reply is yes only if the person accepted the form with its check box ticked.
fn reply_of(answer: &ElicitResult) -> Reply {
    let content = answer.content.as_ref();
    let is_yes = content.is_some_and(|it| it["yes"] == true);
    if answer.action != ElicitationAction::Accept || !is_yes {
        return Reply::No;
    }
    let note = content.and_then(|it| it["note"].as_str()).map(str::trim).filter(|it| !it.is_empty());
    Reply::Yes { note: note.map(str::to_owned) }
}

/// The refusal for a client that cannot ask.
fn cannot_ask(question: &Question) -> CallToolResponse {
    let refusal = Refusal::new(
        "confirmation-needed",
        format!(
            "{} A person has to confirm this, and this client cannot ask; nothing was done",
            question.message
        ),
        format!("tell the person to type: {}", question.command),
    );
    refusal.into_result().into()
}

fn way(rc: &RequestContext<RoleServer>) -> Way {
    let has_form = |it: &ElicitationCapability| it.form.is_some() || it.url.is_none();
    let can = rc.client_capabilities().and_then(|it| it.elicitation).is_some_and(|it| has_form(&it));
    let is_modern =
        rc.protocol_version().is_some_and(|it| it.as_str() >= ProtocolVersion::V_2026_07_28.as_str());
    match (can, is_modern) {
        (true, true) => Way::CallAgain,
        // This case does not occur over HTTP. There are no sessions, so the capabilities of an older client are unknown and
        // `can` is false.
        (true, false) => Way::Now,
        (false, _) => Way::None,
    }
}

/// The result of the call if the person declined.
pub(super) fn declined() -> Value {
    json!({"state": "declined", "did": "nothing: the person declined", "written": false})
}

pub(super) fn tools() -> Vec<Tool> {
    vec![
        Tool::asking(
            ("confirm_gate", "Ask for a confirmation"),
            Effect::Adds,
            "Asks the person to confirm a step or phase that waits for it. You cannot confirm it yourself.",
            ASKED,
            confirm_gate,
        ),
        Tool::asking(
            ("delete_plan", "Delete a plan"),
            Effect::Removes,
            "Asks the person, then removes the plan. For steps, use restructure_plan.",
            ASKED,
            delete_plan,
        ),
    ]
}

/// The result of a tool that asks a person.
const ASKED: &str = "state did written:bool id:any? title:any? path:any? status:any? etag:any? hint:any?";

/// The result of a confirmed change, or of a call that has nothing to change.
fn done(report: ChangeReport) -> Result<Value, Refusal> {
    let mut object = json!({"state": "done"});
    let changed = result::pick(&result::changed(report)?, CHANGED);
    for (key, value) in changed.as_object().into_iter().flatten() {
        object[key] = value.clone();
    }
    Ok(object)
}

#[derive(Debug, Deserialize, JsonSchema)]
struct ConfirmGate {
    /// With phase
    plan: Option<String>,
    step: Option<String>,
    phase: Option<String>,
    decision: Option<Decision>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Decision {
    #[default]
    Approve,
    Reject,
}

fn confirm_gate(call: &Call, asked: ConfirmGate) -> Result<Turn, Refusal> {
    let ConfirmGate { plan, step, phase, decision } = asked;
    let Some(id) = step.or(plan) else {
        return Err(Refusal::usage("`step`, or `plan` with `phase`, is missing", "give one of them"));
    };
    let answer = match decision.unwrap_or_default() {
        Decision::Approve => Answer::Yes,
        Decision::Reject => Answer::No,
    };
    let request = ConfirmRequest { id, phase, answer, ..ConfirmRequest::default() };
    let looked = confirm::confirm(&call.context, &ConfirmRequest { mode: Mode::DryRun, ..request.clone() })?;
    // If the dry run changes nothing or is refused, the call ends before the person is asked.
    let diff = looked.diff.clone();
    if looked.changes.iter().all(|it| !it.was_written) && looked.refused.is_empty() {
        return done(looked).map(Turn::Done);
    }
    let shown = result::changed(looked)?;
    let command = match confirm::confirm(&call.context, &request) {
        Err(Error::PersonNeeded { command }) => command,
        Err(error) => return Err(error.into()),
        Ok(_) => return Err(Refusal::new("bug", "it is already confirmed", "read the plan or step again")),
    };
    let (id, title) = (shown["id"].as_str().unwrap_or_default(), shown["title"].as_str().unwrap_or_default());
    let what = request
        .phase
        .as_ref()
        .map_or_else(|| format!("`{id}` ({title})"), |it| format!("the phase {it} of `{id}` ({title})"));
    let (message, yes) = match answer {
        Answer::Yes => (format!("Confirm {what}?"), "Yes, confirm it"),
        Answer::No => (format!("Reject {what}?"), "Yes, reject it"),
    };
    let act: Act = Box::new(move |call, note| {
        // The confirmation is recorded in the name of the person at this machine, not of the client.
        let by = Some(call.person.clone());
        let request = ConfirmRequest { note, by, confirmer: Confirmer::Person, ..request };
        done(confirm::confirm(&call.context, &request)?)
    });
    // The diff contains the current time, so two diffs for the same gate differ. Therefore `about` contains only whether
    // the diff is empty.
    let about = format!("{id} {} {}", shown["status"], diff.is_empty());
    Ok(Turn::Asks(Question { message, yes, command, about, act }))
}

#[derive(Debug, Deserialize, JsonSchema)]
struct DeletePlan {
    /// Id or title
    plan: String,
}

fn delete_plan(call: &Call, asked: DeletePlan) -> Result<Turn, Refusal> {
    let request = |id: &str, mode: Mode| RemoveRequest {
        ids: vec![id.to_owned()],
        is_confirmed: true,
        mode,
        ..RemoveRequest::default()
    };
    let DeletePlan { plan } = asked;
    if read_step_id(&plan).is_some() {
        return Err(Refusal::usage(
            format!("`{plan}` names a step"),
            "restructure_plan with op `remove` removes steps",
        ));
    }
    let looked = lookup::plan(call, &plan, |id| remove::remove(&call.context, &request(id, Mode::DryRun)))?;
    let shown = result::changed(looked)?;
    let id = shown["id"].as_str().unwrap_or_default().to_owned();
    let title = shown["title"].as_str().unwrap_or_default();
    let message =
        format!("Delete the plan `{id}` ({title}) with all its steps? `planwatch undo` can bring it back.");
    let command = format!("planwatch remove {} --yes", crate::text::typed::shell_word(&id));
    let about = format!("{id} {title}");
    let act: Act = Box::new(move |call, _| {
        let mut deleted = done(remove::remove(&call.context, &request(&id, Mode::Write))?)?;
        if let Some(place) = remove::removed_to(&call.context, &PlanId::new(&id)) {
            deleted["path"] = shown_path(&call.context.root_name(), &place.to_string_lossy()).into();
        }
        // Hints for tools leave out commands.
        deleted["hint"] = "the person can bring it back with the verb `undo`".into();
        Ok(deleted)
    });
    Ok(Turn::Asks(Question { message, yes: "Yes, delete it", command, about, act }))
}
