//! `start`, `done`, `fail`, `block`, `skip`, `reopen` on steps and plans, and `attempt`.

use crate::api::context::Context;
use crate::api::error::Error;
use crate::plan::id::{StepId, read_step_id};
use crate::plan::time::Time;
use crate::plan::transitions::Verb;
use crate::plan::words::StepStatus;
use crate::store::change_one_by_one::change_one_by_one;
use crate::store::decision::Decision;
use crate::store::fencing::Caller;
use crate::store::registry::record::State;
use crate::store::resolve::{self, NamedStep, Target};
use crate::store::step_file;
use crate::store::sync::ending::{self, Fences};
use crate::store::transaction::{ChangeReport, Changed, Mode, Transaction};
use crate::store::{plan_status, step_moves, typed_words};

pub use crate::store::step_moves::{AttemptRequest, MoveRequest};

/// Moves each id in turn. Refused ones are reported, and the others are done.
///
/// If the only id is refused, that is the request's error.
pub fn move_steps(context: &Context, request: &MoveRequest) -> Result<ChangeReport, Error> {
    let fences = fences(context, request)?;
    let moved = change_one_by_one(context, request.verb.word(), &request.ids, request.mode, |writing, id| {
        match resolve::target(context, id)? {
            Target::Plan(plan) => plan_status::move_plan(context, writing, &plan, request),
            Target::Step(step) => move_step(context, writing, &step, (request, &fences)),
        }
    });
    let changed = moved.as_ref().map(|it| it.changes.as_slice()).unwrap_or_default();
    fences.close(context, changed);
    if request.verb == Verb::Reopen && request.mode == Mode::Write {
        changed.iter().filter_map(|it| read_step_id(&it.id)).for_each(|it| ending::released(context, &it));
    }
    let mut report = moved?;
    report.hints.dedup();
    Ok(report)
}

/// Ends the claims of the steps for other machines, before their files are written.
fn fences(context: &Context, request: &MoveRequest) -> Result<Fences, Error> {
    let state = State::of(request.verb.target()).filter(|_| request.mode == Mode::Write);
    let Some(state) = state.filter(|_| context.config.sync.is_some()) else { return Ok(Fences::default()) };
    let steps: Vec<_> = request.ids.iter().filter_map(|it| named_step(context, it)).collect();
    // A move that is refused here must not end anything elsewhere.
    let may_end = |step: &StepId| {
        if context.key.is_some() {
            return true;
        }
        let dry = MoveRequest { ids: vec![step.to_string()], mode: Mode::DryRun, ..request.clone() };
        let Ok(mut writing) = Transaction::begin(context, dry.verb.word(), Mode::DryRun) else {
            return false;
        };
        let named = resolve::step(context, &step.to_string());
        named.is_ok_and(|it| move_step(context, &mut writing, &it, (&dry, &Fences::default())).is_ok())
    };
    Fences::raise(context, &steps, state, request.claim.as_deref(), &may_end)
}

fn named_step(context: &Context, id: &str) -> Option<StepId> {
    match resolve::target(context, id).ok()? {
        Target::Step(named) => Some(named.id),
        Target::Plan(_) => None,
    }
}

fn move_step(
    context: &Context,
    writing: &mut Transaction<'_>,
    step: &NamedStep,
    (request, fences): (&MoveRequest, &Fences),
) -> Result<Changed, Error> {
    let who = Caller::of(context, &step.id, request.by.as_deref(), request.claim.as_deref(), request.force);
    let who = fences.caller(&step.id, who);
    let decided: Decision<_, _> = step_file::update_with(context, writing, step, &|now| {
        let update = step_moves::decide_move(context, now.placed(), request, &who)?;
        Ok(Decision::Write(update, plan_status::hint_for_closed(now.plan)))
    })?;
    let Decision::Write(done, hint) = decided;
    writing.hints.extend(hint.filter(|_| request.verb == Verb::Reopen));
    Ok(done.changed)
}

/// Appends an attempt; a pending, failed or blocked step is in progress from then on, unless its status is kept.
pub fn attempt(context: &Context, request: &AttemptRequest) -> Result<ChangeReport, Error> {
    if request.keep_status && request.status.is_some() {
        return Err(Error::usage("--status and --keep-status contradict each other", "give one of them"));
    }
    let at = request.at.as_deref().map(str::parse::<Time>).transpose();
    let at = at.map_err(|it| Error::usage(it.to_string(), ""))?.unwrap_or(context.now);
    let status = |it| typed_words::read_word::<StepStatus>(&context.config.words, it);
    let wanted = request.status.as_deref().map(status).transpose()?;
    let fences = match wanted.and_then(State::of).filter(|_| request.mode == Mode::Write) {
        Some(state) => {
            let steps: Vec<_> = named_step(context, &request.id).into_iter().collect();
            Fences::raise(context, &steps, state, request.claim.as_deref(), &|_| true)?
        }
        None => Fences::default(),
    };
    let ids = std::slice::from_ref(&request.id);
    let report = change_one_by_one(context, "attempt", ids, request.mode, |writing, id| {
        let named = resolve::step(context, id)?;
        let who =
            Caller::of(context, &named.id, request.by.as_deref(), request.claim.as_deref(), request.force);
        let who = fences.caller(&named.id, who);
        step_file::update(context, writing, &named, &|now| {
            step_moves::decide_attempt(context, now.placed(), request, (at, wanted), &who)
        })
    });
    let changed = report.as_ref().map(|it| it.changes.as_slice()).unwrap_or_default();
    fences.close(context, changed);
    if request.mode == Mode::Write {
        changed.iter().filter_map(|it| read_step_id(&it.id)).for_each(|it| ending::renewed(context, &it));
    }
    report
}
