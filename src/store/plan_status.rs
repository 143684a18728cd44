//! `start`, `done`, `skip` and `reopen` on a plan: they make it active, completed or abandoned.

use crate::api::context::Context;
use crate::api::error::{self, Error};
use crate::api::views::PlanShape;
use crate::plan::change::NewNote;
use crate::plan::id::PlanId;
use crate::plan::model::{Plan, PlanKind, StatusSource};
use crate::plan::records::NoteType;
use crate::plan::transitions::Verb;
use crate::plan::words::{PlanStatus, Status};
use crate::store::load;
use crate::store::plan_file::{self, PlanUpdate};
use crate::store::step_moves::MoveRequest;
use crate::store::transaction::{Changed, Transaction};
use crate::text::typed::shell_word;

/// Changes the status of a plan; its steps stay as they are.
pub(crate) fn move_plan(
    context: &Context,
    writing: &mut Transaction<'_>,
    id: &PlanId,
    request: &MoveRequest,
) -> Result<Changed, Error> {
    let target = target(id, request.verb)?;
    let by = request.by.as_ref().unwrap_or(&context.by);
    writing.sign(by);
    let changed = plan_file::update(context, writing, id, &|plan, _| {
        let is_same = plan.status.is(target);
        let refusal = if is_same { None } else { check(context, plan, request.verb)?.err() };
        let is_forced = refusal.is_some();
        if let Some(error) = refusal.filter(|_| !request.force) {
            return Err(error);
        }
        let text = match (is_forced, &request.message) {
            (true, Some(text)) => Some(format!("{}: {text}", forced(target))),
            (true, None) => Some(forced(target)),
            (false, text) => text.clone(),
        };
        let note = text.map(|text| NewNote { at: context.now, kind: NoteType::Info, by: by.clone(), text });
        let did = match &note {
            None if is_same => format!("already {}", target.word()),
            _ => did(request.verb).to_owned(),
        };
        let notes = note.into_iter().collect();
        Ok(PlanUpdate { status: Some(target), notes, did, ..PlanUpdate::default() })
    })?;
    if request.verb == Verb::Start && changed.now["incomplete"] == true {
        writing.hints.push(hint_for_incomplete(id));
    }
    Ok(changed)
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

/// Checks whether the plan allows the verb. The outer error means that the files could not be read. Force overrides the
/// inner error.
fn check(context: &Context, plan: &Plan, verb: Verb) -> Result<Result<(), Error>, Error> {
    let from = (plan.status.known(), plan.status.word());
    if let Err(error) = check_move(plan.id.as_str(), from, verb) {
        return Ok(Err(error));
    }
    if verb == Verb::Done { check_completion(context, plan) } else { Ok(Ok(())) }
}

/// Refuses to complete a plan that has open steps. For a program, the steps of its plans are checked, too.
///
/// The outer error means that the files could not be read. Force overrides the inner error.
pub(crate) fn check_completion(context: &Context, plan: &Plan) -> Result<Result<(), Error>, Error> {
    let mut open = open_steps(plan);
    if plan.kind == PlanKind::Program {
        let ((plans, _), _) = load::settled_all(context, &plan.id)?;
        open.extend(plans.children(&plan.id).flat_map(open_steps));
    }
    Ok(steps_open(&plan.id.to_string(), &open).map_or(Ok(()), Err))
}

fn steps_open(id: &str, open: &[String]) -> Option<Error> {
    let message = format!("`{id}` has open steps: {}", error::few(open, 12));
    let hint = "finish or skip them, or use --force".to_owned();
    (!open.is_empty()).then_some(Error::Conflict { code: "steps-open", message, hint })
}

/// Returns why a plan, as a surface shows it, does not allow the move. Surfaces check this before they ask the user
/// anything. `open` lists the plan's open steps with their statuses.
pub fn not_allowed_as_shown(plan: &PlanShape, verb: Verb, open: &[String]) -> Option<Error> {
    let moved = target(&PlanId::new(&plan.id), verb).and_then(|target| {
        // If the plan counts as completed only because its steps are closed, it is active in its file.
        let is_derived = plan.status_source == StatusSource::Steps;
        let known = PlanStatus::ALL.iter().copied().find(|it| it.word() == plan.status);
        let from = if is_derived { Some(PlanStatus::Active) } else { known };
        if from == Some(target) { Ok(()) } else { check_move(&plan.id, (from, &plan.status), verb) }
    });
    moved.err().or_else(|| steps_open(&plan.id, open).filter(|_| verb == Verb::Done))
}

/// The text that records a forced status in a note.
pub(crate) fn forced(status: PlanStatus) -> String {
    format!("forced: {}", status.word())
}

fn open_steps(plan: &Plan) -> Vec<String> {
    let open = plan.steps.iter().filter(|it| !it.is_closed());
    open.map(|it| format!("{} ({})", it.id, it.status.word())).collect()
}

fn check_move(id: &str, (from, is): (Option<PlanStatus>, &str), verb: Verb) -> Result<(), Error> {
    let is_allowed = match (verb, from) {
        (_, None) => true,
        (Verb::Start, Some(it)) => it == PlanStatus::Draft,
        (Verb::Done, Some(it)) => it == PlanStatus::Active,
        (Verb::Skip, Some(it)) => it != PlanStatus::Completed,
        (Verb::Reopen, Some(it)) => it != PlanStatus::Draft,
        (_, Some(_)) => true,
    };
    if !is_allowed {
        let verb = verb.word();
        let message = format!("`{id}` is {is}; `{verb}` is not possible from this status");
        let other = if from == Some(PlanStatus::Draft) { "start" } else { "reopen" };
        let hint = format!("`planwatch {other} {}`", shell_word(&id));
        return Err(Error::conflict("not-allowed", message, hint));
    }
    Ok(())
}

fn hint_for_incomplete(id: &PlanId) -> String {
    let id_word = shell_word(id);
    format!(
        "the draft of `{id}` is incomplete; `planwatch set {id_word} status draft` and `planwatch draft {id_word} --continue` finish it"
    )
}

/// Whether the plan's own file says that the plan is closed.
pub(crate) fn is_over(plan: &Plan) -> bool {
    matches!(plan.status.known(), Some(PlanStatus::Completed | PlanStatus::Abandoned))
}

/// The hint for a change of a step in a plan whose own file says that the plan is closed; `None` for other plans.
pub(crate) fn hint_for_closed(plan: &Plan) -> Option<String> {
    let id = &plan.id;
    is_over(plan).then(|| {
        let (word, id_word) = (plan.status.word(), shell_word(id));
        format!("`{id}` is {word}; `planwatch reopen {id_word}` makes it active again")
    })
}
