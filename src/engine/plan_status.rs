//! `start`, `done`, `skip` and `reopen` on a plan: draft, active, completed, abandoned.

use crate::engine::context::Context;
use crate::engine::error::Error;
use crate::engine::load;
use crate::engine::plan_file::{self, PlanUpdate};
use crate::engine::update::MoveRequest;
use crate::engine::write::{Changed, Writing};
use crate::plan::change::NewNote;
use crate::plan::id::PlanId;
use crate::plan::model::Plan;
use crate::plan::moves::Verb;
use crate::plan::records::NoteType;
use crate::plan::words::{PlanStatus, Status};

/// Moves a plan; its steps are not touched.
pub(crate) fn move_plan(
    context: &Context,
    writing: &mut Writing<'_>,
    id: &PlanId,
    request: &MoveRequest,
) -> Result<Changed, Error> {
    let target = target(id, request.verb)?;
    let by = request.by.as_ref().unwrap_or(&context.by);
    plan_file::update(context, writing, id, &|plan| {
        let is_same = plan.status.is(target);
        if !is_same && !request.force {
            check(plan, request.verb)?;
        }
        let note = request.message.as_ref().map(|text| NewNote {
            at: context.now,
            kind: NoteType::Info,
            by: by.clone(),
            text: text.clone(),
        });
        let did = if is_same && note.is_none() {
            format!("already {}", target.word())
        } else {
            did(request.verb).to_owned()
        };
        Ok(PlanUpdate {
            status: Some(target),
            notes: note.into_iter().collect(),
            did,
            ..PlanUpdate::default()
        })
    })
}

fn did(verb: Verb) -> &'static str {
    match verb {
        Verb::Skip => "abandoned",
        Verb::Start => "active",
        other => other.outcome(),
    }
}

fn target(id: &PlanId, verb: Verb) -> Result<PlanStatus, Error> {
    match verb {
        Verb::Start | Verb::Reopen => Ok(PlanStatus::Active),
        Verb::Done => Ok(PlanStatus::Completed),
        Verb::Skip => Ok(PlanStatus::Abandoned),
        Verb::Fail | Verb::Block => {
            let message =
                format!("`{id}` is a plan; plans are started, done, skipped (abandoned) or reopened");
            Err(Error::usage(message, format!("name one of its steps, as in `{id}:1`")))
        }
    }
}

fn check(plan: &Plan, verb: Verb) -> Result<(), Error> {
    let from = plan.status.known();
    let is_allowed = match (verb, from) {
        (_, None) => true,
        (Verb::Start, Some(it)) => it == PlanStatus::Draft,
        (Verb::Reopen, Some(it)) => it != PlanStatus::Draft,
        (_, Some(_)) => true,
    };
    if !is_allowed {
        let message =
            format!("`{}` is {}; `{}` does not go from there", plan.id, plan.status.word(), verb.word());
        let other = if verb == Verb::Start { "reopen" } else { "start" };
        return Err(Error::Conflict {
            code: "not-allowed",
            message,
            hint: format!("`planwatch {other} {}`", plan.id),
        });
    }
    let open: Vec<_> = plan
        .steps
        .iter()
        .filter(|it| !it.is_closed())
        .map(|it| format!("{} ({})", it.id.number, it.status.word()))
        .collect();
    if verb != Verb::Done || open.is_empty() {
        return Ok(());
    }
    let message = format!("`{}` has open steps: {}", plan.id, open.join(", "));
    let hint = "finish or skip them, or use --force".to_owned();
    Err(Error::Conflict { code: "steps-open", message, hint })
}

/// Says how to hand out steps of a plan whose file says that it is over.
pub(crate) fn hint_for_closed(context: &Context, id: &PlanId) -> Option<String> {
    let plan = load::one_plan(context, id).ok()??;
    let is_over = matches!(plan.status.known(), Some(PlanStatus::Completed | PlanStatus::Abandoned));
    is_over
        .then(|| format!("`{id}` is {}; `planwatch reopen {id}` makes it active again", plan.status.word()))
}
