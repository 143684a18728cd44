//! `start`, `done`, `fail`, `block`, `skip`, `reopen` on steps and plans, and `attempt`.

use std::cell::RefCell;

use crate::api::context::Context;
use crate::api::error::Error;
use crate::api::views::shown_path;
use crate::ops::plan_status;
use crate::ops::{list, show};
use crate::plan::change::NewAttempt;
use crate::plan::model::{Plan, Step};
use crate::plan::plans::Plans;
use crate::plan::problem::{Code, Problem};
use crate::plan::rules::{self, Obstacle};
use crate::plan::time::Time;
use crate::plan::transitions::{self, Verb};
use crate::plan::words::{Status, StepStatus};
use crate::store::fencing::{self, Owner, Who};
use crate::store::idempotency;
use crate::store::repeat::{self, Said};
use crate::store::resolve::{self, NamedStep, Target};
use crate::store::step_file::{self, StepUpdate};
use crate::store::transaction::{ChangeReport, Changed, Mode, Refused, Writing};
use crate::text::typed::shell_word;

/// A verb on one or several steps or plans.
#[derive(Debug, Clone)]
pub struct MoveRequest {
    pub verb: Verb,
    pub ids: Vec<String>,
    /// Recorded as an attempt's notes; on a plan as a note.
    pub message: Option<String>,
    pub by: Option<String>,
    /// The claim that this update belongs to.
    pub claim: Option<String>,
    pub force: bool,
    pub mode: Mode,
}

/// Moves each id in turn; what is refused is reported, the rest is done.
///
/// A single id that is refused is the request's error.
pub fn move_steps(context: &Context, request: &MoveRequest) -> Result<ChangeReport, Error> {
    let mut hints = Vec::new();
    let mut report =
        each(context, request.verb.word(), &request.ids, request.mode, |writing, id| match resolve::target(
            context, id,
        )? {
            Target::Plan(plan) => {
                let changed = plan_status::move_plan(context, writing, &plan, request)?;
                let is_started = request.verb == Verb::Start && changed.now["incomplete"] == true;
                hints.extend(is_started.then(|| plan_status::hint_for_incomplete(&plan)));
                Ok(changed)
            }
            Target::Step(step) => {
                let (changed, hint) = move_step(context, writing, &step, request)?;
                hints.extend(hint.filter(|_| request.verb == Verb::Reopen));
                Ok(changed)
            }
        })?;
    hints.dedup();
    report.hints = hints;
    Ok(report)
}

/// Runs one change for each id, under one lock.
pub(crate) fn each(
    context: &Context,
    verb: &'static str,
    ids: &[String],
    mode: Mode,
    mut change: impl FnMut(&mut Writing<'_>, &str) -> Result<Changed, Error>,
) -> Result<ChangeReport, Error> {
    if ids.is_empty() {
        return Err(Error::usage("which step?", format!("name it, as in `planwatch {verb} 1`")));
    }
    if ids.len() > 1 && context.key.is_some() {
        return Err(Error::usage("a key belongs to one change", "name one step or plan for each key"));
    }
    if let Some(report) = idempotency::repeated(context, verb) {
        return Ok(report);
    }
    let root = context.root_name();
    let mut report = ChangeReport::new(verb, mode);
    let mut writing = Writing::begin(context, verb, mode)?;
    for id in ids {
        let done = change(&mut writing, id).map_err(|it| it.below(&root));
        // What a refusal would write, as the note of a late result, is shown with it.
        let is_shown = mode == Mode::DryRun && !writing.diff.is_empty();
        match done {
            Ok(changed) => report.changes.push(changed),
            Err(error) if ids.len() == 1 && !is_shown => return Err(error),
            Err(error) => report.refused.push(Refused { id: id.clone(), error }),
        }
    }
    report.diff = std::mem::take(&mut writing.diff);
    Ok(report)
}

fn move_step(
    context: &Context,
    writing: &mut Writing<'_>,
    step: &NamedStep,
    request: &MoveRequest,
) -> Result<(Changed, Option<String>), Error> {
    let who = Who::of(context, &step.id, request.by.as_deref(), request.claim.as_deref(), request.force);
    let hint = RefCell::new(None);
    let decide = |plans: &Plans, plan: &Plan, step: &Step| {
        hint.replace(plan_status::hint_for_closed(plan));
        decide_move(context, plans, plan, step, request, &who)
    };
    let changed = step_file::update(context, writing, step, &decide)?;
    Ok((changed, hint.into_inner()))
}

pub(crate) fn decide_move(
    context: &Context,
    plans: &Plans,
    plan: &Plan,
    step: &Step,
    request: &MoveRequest,
    who: &Who,
) -> Result<StepUpdate, Error> {
    let verb = request.verb;
    let said = Said { outcome: verb.outcome(), notes: request.message.as_deref() };
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
    // Who starts a claimed step by force takes it over, and has no claim of their own.
    update.removes_claim = step.claim.is_some() && (verb != Verb::Start || is_forced);
    // Whether that is true its run has still to see.
    let is_for_run =
        verb == Verb::Done && !is_forced && step.run.is_some() && step.claim_in_force().is_some();
    if is_for_run {
        update.removes_claim = false;
    }
    // Only a recorded `reopened` lets workers begin to count anew.
    let is_given_up = verb == Verb::Reopen && step.tries() >= context.config.max_attempts() as usize;
    let is_ended = ends.is_some() && !(is_for_run && is_same);
    if is_same && !is_ended && !is_forced && repeat::is_recent(context, step, who, said, None) {
        return Ok(repeat::repeated());
    }
    let wants_attempt = request.message.is_some() || is_ended || is_forced || is_given_up && !is_same;
    update.renews = fencing::is_owner(step, who);
    if wants_attempt {
        let outcome = if is_forced { "forced" } else { verb.outcome() };
        let notes = forced_notes(verb, is_forced, request.message.as_deref());
        update.attempts.push(NewAttempt {
            at: context.now,
            by: who.by.clone(),
            outcome: outcome.to_owned(),
            notes,
            claim: ends,
        });
    }
    if is_same && !wants_attempt {
        update.did = format!("already {}", verb.target());
    }
    Ok(update)
}

/// A claim that the file does not show still keeps others from beginning the step.
fn held_by_other(plans: &Plans, step: &Step, verb: Verb, who: &Who) -> Option<Error> {
    let held = plans.claims().holder(step).filter(|_| verb == Verb::Start)?;
    let is_own = match &who.claim {
        Some(id) => *id == held.claim,
        None => held.by.as_deref() == Some(who.by.as_str()),
    };
    (!is_own).then(|| fencing::held_by(plans, step, held.by.as_deref()))
}

/// A forced move says what it was, as its outcome no longer does.
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
    // What is no reference at all may be the one that counts.
    let is_unread = |it: &&Problem| it.code == Code::DependencyMissing && !Plans::is_between_files(it);
    if let Some(problem) = step.problems.iter().find(is_unread) {
        let path = shown_path(&context.root_name(), &problem.path);
        return Some(Error::File { problem: Box::new(Problem { path, ..problem.clone() }) });
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

/// Why the table of moves forbids a move of the step as it is.
pub(crate) fn not_allowed(step: &Step, verb: Verb) -> Option<Error> {
    let id = step.id.to_string();
    // An end of work that its run has still to look at may be taken back.
    let under_run = step.claim_in_force().and(Some(StepStatus::InProgress));
    let from = under_run.or(step.status.known());
    if !transitions::is_allowed(from, verb) {
        let message =
            format!("`{id}` is {}; `{}` is not possible from this status", step.status.word(), verb.word());
        let hint = match (from, verb) {
            (Some(StepStatus::InProgress), _) => {
                format!("`planwatch release {id_word}` releases it", id_word = shell_word(&id))
            }
            _ => format!(
                "`planwatch reopen {id_word}` first, or use --force, which is recorded",
                id_word = shell_word(&id)
            ),
        };
        return Some(Error::Conflict { code: "not-allowed", message, hint });
    }
    None
}

fn open_name(obstacle: &Obstacle) -> Option<String> {
    match obstacle {
        Obstacle::Dependency { step, status: Some(status) } => Some(format!("{step} ({status})")),
        Obstacle::Dependency { step, status: None } => Some(format!("{step} (does not exist)")),
        Obstacle::Before { step } => Some(format!("{step} (the step before)")),
        other => show::sentence(other),
    }
}

/// An attempt that is older than so many seconds says when it was written down, too.
const LATE: i64 = 60;

/// `attempt STEP OUTCOME`.
#[derive(Debug, Clone, Default)]
pub struct AttemptRequest {
    pub id: String,
    pub outcome: String,
    pub notes: Option<String>,
    pub by: Option<String>,
    pub at: Option<String>,
    /// A status to give in the same write.
    pub status: Option<String>,
    pub keep_status: bool,
    pub claim: Option<String>,
    pub force: bool,
    pub mode: Mode,
}

/// Appends an attempt; a pending, failed or blocked step is in progress from then on, unless its status is kept.
pub fn attempt(context: &Context, request: &AttemptRequest) -> Result<ChangeReport, Error> {
    if request.keep_status && request.status.is_some() {
        return Err(Error::usage("--status and --keep-status contradict each other", "use only one of them"));
    }
    let at = request.at.as_deref().map(str::parse::<Time>).transpose();
    let at = at.map_err(|it| Error::usage(it.to_string(), ""))?.unwrap_or(context.now);
    let wanted = request
        .status
        .as_deref()
        .map(|it| list::read_word::<StepStatus>(&context.config.words, it))
        .transpose()?;
    each(context, "attempt", std::slice::from_ref(&request.id), request.mode, |writing, id| {
        let named = resolve::step(context, id)?;
        let who = Who::of(context, &named.id, request.by.as_deref(), request.claim.as_deref(), request.force);
        let decide = |plans: &Plans, plan: &Plan, step: &Step| {
            decide_attempt(context, (plans, plan, step), request, (at, wanted), &who)
        };
        step_file::update(context, writing, &named, &decide)
    })
}

pub(crate) fn decide_attempt(
    context: &Context,
    (plans, plan, step): (&Plans, &Plan, &Step),
    request: &AttemptRequest,
    (at, wanted): (Time, Option<StepStatus>),
    who: &Who,
) -> Result<StepUpdate, Error> {
    let owner = fencing::check(plans, step, who)?;
    let said = Said { outcome: &request.outcome, notes: request.notes.as_deref() };
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
    if is_there && !is_forced && repeat::is_recent(context, step, who, said, given) {
        return Ok(repeat::repeated());
    }
    let takes_up =
        matches!(step.status.known(), Some(StepStatus::Pending | StepStatus::Failed | StepStatus::Blocked));
    let status = wanted.or_else(|| (takes_up && !request.keep_status).then_some(StepStatus::InProgress));
    let ends_claim = status.is_some_and(|it| it != StepStatus::InProgress);
    let claim = fencing::ended_claim(step, context.now).filter(|_| ends_claim);
    let by = who.by.clone();
    let (outcome, notes) = (request.outcome.clone(), request.notes.clone());
    let attempt = NewAttempt { at, by: by.clone(), outcome, notes, claim };
    // Without it the step would look as if nothing had happened since then.
    let is_late = context.now.seconds_since(at) > LATE;
    let (keys, mut attempts) = match is_late {
        true => (vec![attempt.change_recorded_at(context.now)], Vec::new()),
        false => (Vec::new(), vec![attempt]),
    };
    if is_forced {
        let notes = status.map(|it| it.word().to_owned());
        let at = context.now;
        attempts.push(NewAttempt { at, by, outcome: "forced".to_owned(), notes, claim: None });
    }
    let removes_claim = step.claim.is_some() && (ends_claim || step.has_void_claim());
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
