//! Changes several fields of a step in one write: its status, result, text, metadata and due day. Also replaces the text of
//! a plan.

use serde_json::{Map, Value};

use crate::api::context::Context;
use crate::api::error::Error;
use crate::plan::change;
use crate::plan::id::StepId;
use crate::plan::model::Step;
use crate::plan::time::{Day, NotADay};
use crate::plan::transitions::Verb;
use crate::plan::words::StepStatus;
use crate::store::change_one_by_one::change_one_by_one;
use crate::store::fencing::{self, Caller, Owner};
use crate::store::plan_file::{self, PlanUpdate};
use crate::store::step_file::{self, Current, StepUpdate};
use crate::store::step_moves::{self, AttemptRequest, MoveRequest};
use crate::store::sync::ending::{self, Fences, StatusChange};
use crate::store::transaction::{ChangeReport, Mode};
use crate::store::{new_step, repeat, resolve, typed_words};
use crate::text::header_edit::{Change, NewValue};

pub use crate::api::requests::PatchRequest;

/// The outcome of an attempt that only records a result.
const RESULT: &str = "result";

/// Changes the fields that the request names. Values that the file already has are not written again.
pub fn patch(context: &Context, request: &PatchRequest) -> Result<ChangeReport, Error> {
    let status = |it| typed_words::read_word::<StepStatus>(&context.config.words, it);
    let wanted = request.status.as_deref().map(status).transpose()?;
    let may_end = |_: &StepId| {
        let dry = || PatchRequest { mode: Mode::DryRun, ..request.clone() };
        context.key.is_some() || write(context, &dry(), wanted, &Fences::default()).is_ok()
    };
    let ids = std::slice::from_ref(&request.id);
    let of = (wanted, request.claim.as_deref());
    let change = StatusChange::of(context, request.mode, ids, of, &may_end);
    ending::fenced(context, change.as_ref(), |fences| write(context, request, wanted, fences))
}

fn write(
    context: &Context,
    request: &PatchRequest,
    wanted: Option<StepStatus>,
    fences: &Fences,
) -> Result<ChangeReport, Error> {
    change_one_by_one(context, "update", std::slice::from_ref(&request.id), request.mode, |writing, id| {
        let named = resolve::step(context, id)?;
        let who = Caller::of(context, &named.id, request.by.as_deref(), request.claim.as_deref(), false);
        let who = fences.caller(&named.id, who);
        step_file::update(context, writing, &named, &|now| {
            let Current { plans, step, .. } = now;
            let mut update = status_or_result(context, now, request, wanted, &who)?;
            if update.refusal.is_some() {
                return Ok(update);
            }
            if let Some(text) = &request.text {
                if fencing::check(plans, step, &who)? == Owner::Late {
                    return Ok(fencing::late_result(context, step, &who, "another text", None));
                }
                update.text = Some(new_step::below_heading(&step.title, text)?);
            }
            if let Some(metadata) = &request.metadata {
                update.keys.extend(merged(step, metadata));
            }
            update.keys.extend(request.due.as_deref().map(|it| due(step, it)).transpose()?.flatten());
            if update.did == repeat::REPEATED && !update.keys.is_empty() {
                "updated".clone_into(&mut update.did);
            }
            Ok(update)
        })
    })
}

#[derive(Debug, Clone, Default)]
pub struct PlanTextRequest {
    pub id: String,
    pub text: String,
}

/// Replaces the text of a plan's file below its heading. The front matter and the heading stay.
pub fn plan_text(context: &Context, request: &PlanTextRequest) -> Result<ChangeReport, Error> {
    change_one_by_one(context, "update", std::slice::from_ref(&request.id), Mode::Write, |writing, id| {
        let plan = resolve::plan(context, id)?;
        plan_file::update(context, writing, &plan, &|now, _| {
            let text = new_step::below_heading(&now.title, &request.text)?;
            Ok(PlanUpdate { text: Some(text), did: "updated".to_owned(), ..PlanUpdate::default() })
        })
    })
}

/// The word that removes `due`. An empty text is refused, because it is not a day.
pub(crate) const NO_DUE: &str = "none";

/// The change that sets or removes `due`. `None`: nothing has to change.
fn due(step: &Step, text: &str) -> Result<Option<Change>, Error> {
    if text.trim().eq_ignore_ascii_case(NO_DUE) {
        return Ok(step.due.map(|_| change::remove("due")));
    }
    let hint = "for example 2026-11-21; `none` removes it";
    let day: Day = text.trim().parse().map_err(|it: NotADay| Error::usage(it.to_string(), hint))?;
    Ok((step.due != Some(day)).then(|| change::set_word("due", &day.to_string())))
}

fn status_or_result(
    context: &Context,
    now: Current<'_>,
    request: &PatchRequest,
    wanted: Option<StepStatus>,
    who: &Caller,
) -> Result<StepUpdate, Error> {
    let (ids, mode) = (Vec::new(), request.mode);
    let (by, claim, force) = (request.by.clone(), request.claim.clone(), false);
    match (wanted, &request.result) {
        (Some(status), message) => {
            let (verb, message) = (Verb::giving(status), message.clone());
            let request = MoveRequest { is_signed: false, verb, ids, message, by, claim, force, mode };
            step_moves::decide_move(context, now.placed(), &request, who)
        }
        (None, Some(result)) => {
            let (outcome, notes) = (RESULT.to_owned(), Some(result.clone()));
            let request = AttemptRequest { outcome, notes, keep_status: true, ..AttemptRequest::default() };
            step_moves::decide_attempt(context, now.placed(), &request, (context.now, None), who)
        }
        (None, None) => {
            let renews = fencing::is_owner(now.step, who);
            Ok(StepUpdate { renews, did: "updated".to_owned(), ..StepUpdate::default() })
        }
    }
}

/// The change of `metadata`; a null removes its key. `None` if nothing changes.
fn merged(step: &Step, patch: &Map<String, Value>) -> Option<Change> {
    let is_new = |key: &str, new: &Value| match step.metadata.get(key) {
        Some(old) => old != new,
        None => !new.is_null(),
    };
    let entry = |(key, new): (&String, &Value)| {
        (key.clone(), Some(new).filter(|it| !it.is_null()).map(NewValue::of_json))
    };
    let entries: Vec<_> = patch.iter().filter(|it| is_new(it.0, it.1)).map(entry).collect();
    let is_removed = |it: &String| entries.iter().any(|(key, new)| key == it && new.is_none());
    let is_left = entries.iter().any(|it| it.1.is_some()) || !step.metadata.keys().all(is_removed);
    let key = "metadata".to_owned();
    match is_left {
        _ if entries.is_empty() => None,
        true => Some(Change::SetEntries { key, entries }),
        false => Some(Change::Remove { key }),
    }
}
