//! Decides how a move (a change of status, for example by `done`) or an attempt changes a step, and whether a move is
//! refused.
//!
//! Nothing here writes: the result is a [`StepUpdate`] for `step_file::update`.

use crate::api::context::Context;
use crate::api::error::Error;
use crate::api::views::StepShape;
use crate::plan::change::NewAttempt;
use crate::plan::model::{Plan, Step};
use crate::plan::plans::Plans;
use crate::plan::problem::{Code, Problem};
use crate::plan::rules::{self, Obstacle};
use crate::plan::time::Time;
use crate::plan::transitions::{self, Verb};
use crate::plan::words::{Status, StepStatus};
use crate::store::fencing::{self, Caller, Owner};
use crate::store::repeat::{self, ReportedOutcome};
use crate::store::step_file::StepUpdate;
use crate::store::transaction;
use crate::text::typed::shell_word;

pub use crate::api::requests::{AttemptRequest, MoveRequest};

pub(crate) fn decide_move(
    context: &Context,
    (plans, plan, step): (&Plans, &Plan, &Step),
    request: &MoveRequest,
    who: &Caller,
) -> Result<StepUpdate, Error> {
    let verb = request.verb;
    let said = ReportedOutcome { outcome: verb.outcome(), notes: request.message.as_deref() };
    let is_there = step.status.is(verb.target());
    let owner = match fencing::check(plans, step, who)? {
        owner if is_there && repeat::is_end(owner, step, who, said) => return Ok(repeat::repeated()),
        Owner::Late => {
            return Ok(fencing::late_result(context, step, who, verb.outcome(), request.message.as_deref()));
        }
        owner => owner,
    };
    let refusal =
        refusal(context, (plans, plan, step), verb).or_else(|| held_by_other(plans, step, verb, who));
    let is_forced = match refusal {
        Some(error) if !who.force => return Err(error),
        refusal => refusal.is_some() || owner == Owner::Forced,
    };
    let is_same = is_there && !step.is_unverified();
    let ends = fencing::ended_claim(step, context.now).filter(|_| verb != Verb::Start || is_forced);
    let mut update =
        StepUpdate { status: Some(verb.target()), did: verb.outcome().to_owned(), ..StepUpdate::default() };
    // A forced start of a claimed step ends the claim, and makes no new one.
    update.removes_claim = step.claim.is_some() && (verb != Verb::Start || is_forced);
    // The claim of a run stays, because the run has yet to verify the result.
    let is_for_run =
        verb == Verb::Done && !is_forced && step.run.is_some() && step.claim_in_force().is_some();
    if is_for_run {
        update.removes_claim = false;
    }
    let is_ended = ends.is_some() && !(is_for_run && is_same);
    if is_same && !is_ended && !is_forced && repeat::is_recent(context.now, step, who, said, None) {
        return Ok(repeat::repeated());
    }
    // Reopening a step that is not pending yet always writes an attempt. Without the attempt, a merge could not
    // distinguish a reopened step from one that is not done yet. The attempt also resets the count of tries.
    let reopens = verb == Verb::Reopen && !is_same;
    let is_signed = request.is_signed && !is_same && !matches!(verb, Verb::Start | Verb::Reopen);
    let wants_attempt = request.message.is_some() || is_ended || is_forced || reopens || is_signed;
    update.renews = fencing::is_owner(step, who);
    update.ends_others = owner == Owner::Forced;
    if wants_attempt {
        let outcome = if is_forced { "forced" } else { verb.outcome() };
        let notes = forced_notes(verb, is_forced, request.message.as_deref());
        let attempt = NewAttempt::new(context.now, &who.by, outcome);
        update.attempts.push(NewAttempt { notes, claim: ends, ..attempt });
    }
    if is_same && !wants_attempt {
        update.did = format!("already {}", verb.target());
    }
    Ok(update)
}

/// An attempt that happened more than this many seconds ago also gets the time of recording.
const LATE: i64 = 60;

pub(crate) fn decide_attempt(
    context: &Context,
    (plans, plan, step): (&Plans, &Plan, &Step),
    request: &AttemptRequest,
    (at, wanted): (Time, Option<StepStatus>),
    who: &Caller,
) -> Result<StepUpdate, Error> {
    let owner = fencing::check(plans, step, who)?;
    let said = ReportedOutcome { outcome: &request.outcome, notes: request.notes.as_deref() };
    let is_there = wanted.is_none_or(|it| step.status.is(it));
    let is_end = is_there && repeat::is_end(owner, step, who, said);
    if is_end || wanted.is_none() && repeat::is_before_end(owner, step, who, said) {
        return Ok(repeat::repeated());
    }
    if owner == Owner::Late {
        return Ok(fencing::late_result(context, step, who, &request.outcome, request.notes.as_deref()));
    }
    let refusal = wanted.and_then(|it| refusal(context, (plans, plan, step), Verb::giving(it)));
    let is_forced = refusal.is_some() || owner == Owner::Forced;
    if let Some(error) = refusal.filter(|_| !who.force) {
        return Err(error);
    }
    let given = request.at.as_ref().map(|_| at);
    if is_there && !is_forced && repeat::is_recent(context.now, step, who, said, given) {
        return Ok(repeat::repeated());
    }
    let takes_up =
        matches!(step.status.known(), Some(StepStatus::Pending | StepStatus::Failed | StepStatus::Blocked));
    let status = wanted.or_else(|| (takes_up && !request.keep_status).then_some(StepStatus::InProgress));
    let ends_claim = status.is_some_and(|it| it != StepStatus::InProgress);
    let claim = fencing::ended_claim(step, context.now).filter(|_| ends_claim);
    let notes = request.notes.clone();
    let attempt = NewAttempt { notes, claim, ..NewAttempt::new(at, &who.by, &request.outcome) };
    // Without the time of recording, the step would seem unchanged since the attempt.
    let is_late = context.now.seconds_since(at) > LATE;
    let (keys, mut attempts) = match is_late {
        true => (vec![attempt.change_recorded_at(context.now)], Vec::new()),
        false => (Vec::new(), vec![attempt]),
    };
    if is_forced {
        let notes = status.map(|it| it.word().to_owned());
        attempts.push(NewAttempt { notes, ..NewAttempt::new(context.now, &who.by, "forced") });
    }
    let removes_claim = step.claim.is_some() && ends_claim;
    Ok(StepUpdate {
        status,
        keys,
        attempts,
        removes_claim,
        renews: fencing::is_owner(step, who),
        did: "attempt recorded".to_owned(),
        ..StepUpdate::default()
    })
}

/// Refuses to start a step that another worker has claimed. Only claims that the step's file does not contain are
/// checked here.
fn held_by_other(plans: &Plans, step: &Step, verb: Verb, who: &Caller) -> Option<Error> {
    let held = plans.claims().holder(step).filter(|_| verb == Verb::Start)?;
    let is_own = match &who.claim {
        Some(id) => *id == held.claim,
        None => held.by.as_deref() == Some(who.by.as_str()),
    };
    (!is_own).then(|| fencing::held_by(plans, step, held.by.as_deref()))
}

/// The notes of a forced move start with the verb's usual outcome, because the outcome of the attempt is `forced`.
fn forced_notes(verb: Verb, is_forced: bool, message: Option<&str>) -> Option<String> {
    match (is_forced, message) {
        (true, Some(text)) => Some(format!("{}: {text}", verb.outcome())),
        (true, None) => Some(verb.outcome().to_owned()),
        (false, text) => text.map(str::to_owned),
    }
}

/// Why a move may not be made without force.
pub(crate) fn refusal(
    context: &Context,
    (plans, plan, step): (&Plans, &Plan, &Step),
    verb: Verb,
) -> Option<Error> {
    if let Some(error) = not_allowed(step, verb) {
        return Some(error);
    }
    let id = step.id.to_string();
    if !verb.needs_readiness() || step.status.is(verb.target()) {
        return None;
    }
    // A dependency that cannot be read as a step may be meant as one, so the move is refused.
    let is_unread = |it: &&Problem| it.code == Code::DependencyMissing && !Plans::is_between_files(it);
    if let Some(problem) = step.problems.iter().find(is_unread) {
        return Some(transaction::file_error(context, problem));
    }
    let open: Vec<_> = rules::open_dependencies(plans, plan, step).iter().filter_map(open_name).collect();
    if !open.is_empty() {
        return Some(Error::DependenciesOpen { id, open });
    }
    rules::missing_confirmation(plan, step).map(|it| {
        let phase = match it {
            Obstacle::PhaseConfirmation { phase } => Some(phase),
            _ => None,
        };
        Error::ConfirmationNeeded { id, phase }
    })
}

/// The error if the table of transitions forbids a move from the step's present status.
pub(crate) fn not_allowed(step: &Step, verb: Verb) -> Option<Error> {
    // A completed step whose run has not verified the result yet counts as in progress, so that the worker can still report
    // a failure or a block instead.
    let under_run = step.claim_in_force().and(Some(StepStatus::InProgress));
    move_error(&step.id.to_string(), (under_run.or(step.status.known()), step.status.word()), verb)
}

/// The error if `by` cannot make a move, according to the step as it is shown. Surfaces check this before they ask the
/// user for a reason, which would be useless after a refusal. Claims that are not in the step's file are not checked
/// here.
pub fn not_allowed_as_shown(step: &StepShape, verb: Verb, by: &str) -> Option<Error> {
    // If a run died before it verified the step, its claim is no longer in force, although the step is shown as in
    // progress.
    let is_in_force = step.status == StepStatus::InProgress.word() && !step.unverified;
    if let Some(claim) = step.claim.as_ref().filter(|it| is_in_force && it.by.as_deref() != Some(by)) {
        return Some(fencing::claimed(&step.id, claim.by.as_deref(), &claim.id));
    }
    let known = StepStatus::ALL.iter().copied().find(|it| it.word() == step.status);
    let from = if step.unverified { Some(StepStatus::Completed) } else { known };
    move_error(&step.id, (from, from.map_or(step.status.as_str(), |it| it.word())), verb)
}

fn move_error(id: &str, (from, word): (Option<StepStatus>, &str), verb: Verb) -> Option<Error> {
    if transitions::is_allowed(from, verb) {
        return None;
    }
    let message = format!("`{id}` is {word}; `{}` is not possible from this status", verb.word());
    let hint = match from {
        Some(StepStatus::InProgress) => format!("`planwatch release {}` releases it", shell_word(&id)),
        _ => format!("`planwatch reopen {}` first, or use --force, which is recorded", shell_word(&id)),
    };
    Some(Error::Conflict { code: "not-allowed", message, hint })
}

fn open_name(obstacle: &Obstacle) -> Option<String> {
    match obstacle {
        Obstacle::Dependency { step, status: Some(status) } => Some(format!("{step} ({status})")),
        Obstacle::Dependency { step, status: None } => Some(format!("{step} (does not exist)")),
        Obstacle::Before { step } => Some(format!("{step} (the step before)")),
        other => sentence(other),
    }
}

/// The text of an obstacle; none for the step's own status and claim.
pub(crate) fn sentence(obstacle: &Obstacle) -> Option<String> {
    let text = match obstacle {
        Obstacle::Dependency { step, status: Some(status) } => format!("`{step}`, which is {status}"),
        Obstacle::Dependency { step, status: None } => format!("`{step}`, which does not exist"),
        Obstacle::Before { step } => format!("`{step}`, the step before it"),
        Obstacle::Confirmation => "a person's confirmation".to_owned(),
        Obstacle::PhaseConfirmation { phase } => format!("a person's confirmation of the phase {phase}"),
        Obstacle::Faulty { code } => format!("its file to be fixed ({code})"),
        Obstacle::PlanFaulty => "plan.md to be fixed".to_owned(),
        Obstacle::PlanClosed => "its plan to be active".to_owned(),
        Obstacle::Claimed { .. } | Obstacle::Status(_) => return None,
    };
    Some(text)
}
