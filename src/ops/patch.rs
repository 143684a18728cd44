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
use crate::text::yaml::{self, Kind, Style, View};
use crate::text::{front_matter, line_index};

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
            let Current { plans, step, bytes, .. } = now;
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
                update.keys.extend(merged(step, bytes, metadata)?);
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

fn merged(step: &Step, bytes: &[u8], patch: &Map<String, Value>) -> Result<Option<Change>, Error> {
    let mut metadata = step.metadata.clone();
    for (key, new) in patch {
        if new.is_null() {
            metadata.shift_remove(key);
        } else {
            metadata.insert(key.clone(), new.clone());
        }
    }
    if metadata == step.metadata {
        return Ok(None);
    }
    refuse_comments(&step.path, bytes)?;
    let key = "metadata".to_owned();
    Ok(Some(if metadata.is_empty() {
        Change::Remove { key }
    } else {
        Change::Set { key, value: NewValue::of_json(&Value::Object(metadata)) }
    }))
}

/// Refuses to change a `metadata` that contains comments. The mapping is rewritten as a whole, so they would be lost.
fn refuse_comments(path: &str, bytes: &[u8]) -> Result<(), Error> {
    let split = front_matter::split(bytes);
    let Some(text) = split.yaml().and_then(|it| std::str::from_utf8(it).ok()) else { return Ok(()) };
    let Ok(tree) = yaml::parse(text) else { return Ok(()) };
    let Some((key, value)) = tree.root().find_entry("metadata") else { return Ok(()) };
    let mut at = key.span().start;
    let mut is_commented = false;
    scalars(value, &mut |it| {
        let span = it.span();
        let is_block = matches!(it.style(), Style::Literal | Style::Folded);
        // There may be a comment after the `|` of a block scalar.
        let head = if is_block { text[span.clone()].find('\n').unwrap_or(0) } else { 0 };
        is_commented |= text.get(at..span.start + head).is_some_and(|it| it.contains('#'));
        at = span.end;
    });
    at = at.max(value.outer_span().end);
    let rest = text[at..].lines().next().filter(|_| !text[..at].ends_with('\n')).unwrap_or_default();
    if !is_commented && !rest.contains('#') {
        return Ok(());
    }
    let begin = text.as_ptr() as usize - bytes.as_ptr() as usize;
    let place = line_index::place(bytes, begin + key.span().start);
    Err(Error::Edit {
        code: "layout",
        path: path.to_owned(),
        line: place.line,
        column: place.column,
        reason: "there are comments in `metadata`, which would be lost".to_owned(),
        by_hand: "change it in an editor".to_owned(),
    })
}

/// Calls `found` for each key and each value, except collections and aliases, in the order of the text.
fn scalars(view: View<'_>, found: &mut impl FnMut(View<'_>)) {
    match view.kind() {
        _ if view.is_alias() => {}
        Kind::Map => view.own_entries().for_each(|(key, value)| {
            scalars(key, found);
            scalars(value, found);
        }),
        Kind::List => view.items().for_each(|it| scalars(it, found)),
        Kind::Null | Kind::Bool | Kind::Number | Kind::Text => found(view),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_comments_stand_in_the_way() {
        for (metadata, is_refused) in [
            ("metadata:\n  a: 1\n", false),
            ("metadata:\n  a: 1 # why\n", true),
            ("metadata: # why\n  a: 1\n", true),
            ("metadata:\n  # why\n  a: 1\n", true),
            ("metadata:\n  a: '# no'\n  \"b#\": [c#d, {e: f#g}]\n", false),
            ("metadata:\n  a: '# no'\n  b: [1, # why\n    2]\n", true),
            ("metadata:\n  a: |\n    # no\n    text\n", false),
            ("metadata:\n  a: | # why\n    text\n", true),
            ("metadata:\n  a: >-\n    # no\nresult: '#'\n", false),
            ("metadata: {a: '#'} # why\n", true),
            ("metadata: {a: , b: ~}\nresult: 1 # another's\n", false),
        ] {
            let file = format!("---\n{metadata}---\n");
            assert_eq!(refuse_comments("a/step-1.md", file.as_bytes()).is_err(), is_refused, "{metadata}");
        }
    }
}
