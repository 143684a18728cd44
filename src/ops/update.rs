//! `start`, `done`, `skip` and `reopen` on steps and plans, and `fail`, `block` and `attempt` on steps.

use crate::api::context::Context;
use crate::api::error::Error;
use crate::plan::id::StepId;
use crate::plan::model::Step;
use crate::plan::time::Time;
use crate::plan::transitions::Verb;
use crate::plan::words::StepStatus;
use crate::store::change_one_by_one::change_one_by_one;
use crate::store::decision::Decision;
use crate::store::fencing::Caller;
use crate::store::resolve::{self, NamedStep, Target};
use crate::store::step_file;
use crate::store::sync::ending::{self, Fences, StatusChange};
use crate::store::transaction::{ChangeReport, Changed, Mode, Transaction};
use crate::store::{plan_status, step_moves, typed_words};

pub use crate::store::plan_status::not_allowed_as_shown as plan_not_allowed;
pub use crate::store::step_moves::{AttemptRequest, MoveRequest, not_allowed_as_shown as step_not_allowed};

/// Applies the verb to each id in turn. A refused id is reported, and the other ids are still changed.
///
/// If there is only one id and it is refused, the request fails with the error of the refusal.
pub fn move_steps(context: &Context, request: &MoveRequest) -> Result<ChangeReport, Error> {
    // A move that is refused here must not end the claim's record at the registry.
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
    let of = (Some(request.verb.target()), request.claim.as_deref());
    let change = StatusChange::of(context, request.mode, &request.ids, of, &may_end);
    let mut report = ending::fenced(context, change.as_ref(), |fences| {
        change_one_by_one(context, request.verb.word(), &request.ids, request.mode, |writing, id| {
            match resolve::target(context, id)? {
                Target::Plan(plan) => plan_status::move_plan(context, writing, &plan, request),
                Target::Step(step) => move_step(context, writing, &step, (request, fences)),
            }
        })
    })?;
    report.hints.dedup();
    Ok(report)
}

fn move_step(
    context: &Context,
    writing: &mut Transaction<'_>,
    step: &NamedStep,
    (request, fences): (&MoveRequest, &Fences),
) -> Result<Changed, Error> {
    let who = Caller::of(context, &step.id, request.by.as_deref(), request.claim.as_deref(), request.force);
    let who = fences.caller(&step.id, who);
    writing.sign(&who.by);
    let decided: Decision<_, _> = step_file::update_with(context, writing, step, &|now| {
        let update = step_moves::decide_move(context, now.placed(), request, &who)?;
        let hint = match request.verb {
            Verb::Reopen => plan_status::hint_for_closed(now.plan),
            Verb::Done if !now.step.status.is(StepStatus::Completed) => open_tasks(now.step),
            _ => None,
        };
        Ok(Decision::Write(update, hint))
    })?;
    let Decision::Write(done, hint) = decided;
    writing.hints.extend(hint);
    Ok(done.changed)
}

/// A hint about open tasks in a completed step. Open tasks do not prevent the completion.
fn open_tasks(step: &Step) -> Option<String> {
    let (open, total) = (step.tasks_total.checked_sub(step.tasks_done)?, step.tasks_total);
    let tasks =
        if total == 1 { "its only task is".to_owned() } else { format!("{open} of its {total} tasks are") };
    let tasks = if open == 1 && total > 1 { tasks.replace("tasks are", "tasks is") } else { tasks };
    (open > 0).then(|| format!("`{}` is completed, and {tasks} open", step.id))
}

/// Appends an attempt. Also sets a pending, failed or blocked step to in progress, unless the request keeps the status or
/// sets another one.
pub fn attempt(context: &Context, request: &AttemptRequest) -> Result<ChangeReport, Error> {
    if request.outcome.trim().is_empty() {
        let hint = "give one, for example `planwatch attempt auth:2 'partly done'`";
        return Err(Error::usage("the outcome is empty", hint));
    }
    if request.keep_status && request.status.is_some() {
        return Err(Error::usage("--status and --keep-status contradict each other", "give one of them"));
    }
    let at = request.at.as_deref().map(str::parse::<Time>).transpose();
    let at = at.map_err(|it| Error::usage(it.to_string(), ""))?.unwrap_or(context.now);
    let status = |it| typed_words::read_word::<StepStatus>(&context.config.words, it);
    let wanted = request.status.as_deref().map(status).transpose()?;
    let ids = std::slice::from_ref(&request.id);
    let of = (wanted, request.claim.as_deref());
    let change = StatusChange::of(context, request.mode, ids, of, &|_| true);
    ending::fenced(context, change.as_ref(), |fences| {
        change_one_by_one(context, "attempt", ids, request.mode, |writing, id| {
            let named = resolve::step(context, id)?;
            let (by, claim) = (request.by.as_deref(), request.claim.as_deref());
            let who = fences.caller(&named.id, Caller::of(context, &named.id, by, claim, request.force));
            writing.sign(&who.by);
            step_file::update(context, writing, &named, &|now| {
                step_moves::decide_attempt(context, now.placed(), request, (at, wanted), &who)
            })
        })
    })
}
