//! Whose a claimed step is, and what becomes of a result that comes too late.

use crate::api::context::Context;
use crate::api::error::Error;
use crate::plan::change::{EndedClaim, NewAttempt, NewNote};
use crate::plan::claims::{Held, Holding, Lapse};
use crate::plan::id::{PlanId, StepId};
use crate::plan::model::Step;
use crate::plan::plans::Plans;
use crate::plan::records::{Claim, NoteType};
use crate::plan::time::Time;
use crate::plan::words::StepStatus;
use crate::store::load::LoadQuery;
use crate::store::step_file::StepUpdate;
use crate::text::typed::shell_word;

/// Who makes an update.
#[derive(Debug, Clone)]
pub(crate) struct Who {
    pub(crate) by: String,
    pub(crate) claim: Option<String>,
    pub(crate) force: bool,
}

impl Who {
    /// Takes what was given; the surroundings' claim counts for its own step alone.
    pub(crate) fn of(
        context: &Context,
        id: &StepId,
        by: Option<&str>,
        claim: Option<&str>,
        force: bool,
    ) -> Self {
        let is_own_step = context.here.step.as_deref() == Some(id.to_string().as_str());
        let inherited = context.here.claim.clone().filter(|_| is_own_step);
        let claim = claim.map(str::to_owned).or(inherited);
        Self { by: by.unwrap_or(&context.by).to_owned(), claim, force }
    }
}

/// What the check of a claim says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Owner {
    /// The step has no claim, or the caller's.
    Free,
    /// Another worker has the claim, and the caller uses force.
    Forced,
    /// The caller's claim is no longer the step's.
    Late,
}

/// Returns the claim in force: one under another status is void.
fn claim_of(step: &Step) -> Option<&Claim> {
    step.claim_in_force()
}

/// Checks the fence and the owner: an id passes only if it is the file's; without one the name has to be the same.
///
/// A claim that another working tree has taken over is void, whatever this file says.
pub(crate) fn check(plans: &Plans, step: &Step, who: &Who) -> Result<Owner, Error> {
    if let Some(other) = plans.claims().overtaken_by(step) {
        return match (&who.claim, who.force) {
            (Some(id), _) => late(plans, step, id),
            (None, true) => Ok(Owner::Forced),
            (None, false) => Err(claimed(step, other.by.as_deref(), &other.claim)),
        };
    }
    match (claim_of(step), &who.claim) {
        (Some(claim), Some(id)) if claim.id == *id => Ok(Owner::Free),
        (_, Some(id)) => late(plans, step, id),
        (None, None) => check_elsewhere(plans, step, who),
        (Some(claim), None) if claim.by.as_deref() == Some(who.by.as_str()) => Ok(Owner::Free),
        (Some(_), None) if who.force => Ok(Owner::Forced),
        (Some(claim), None) => Err(claimed(step, claim.by.as_deref(), &claim.id)),
    }
}

/// Checks the claim of another working tree, of which this tree's file shows nothing.
fn check_elsewhere(plans: &Plans, step: &Step, who: &Who) -> Result<Owner, Error> {
    let is_elsewhere = |it: &&Held| matches!(it.holding, Holding::Elsewhere { .. });
    match plans.claims().holder(step).filter(is_elsewhere) {
        Some(held) if held.by.as_deref() == Some(who.by.as_str()) => Ok(Owner::Free),
        Some(_) if who.force => Ok(Owner::Forced),
        Some(held) => Err(held_by(plans, step, held.by.as_deref())),
        None => Ok(Owner::Free),
    }
}

/// A claim that was never the step's is a mistake, whose words belong into no file.
fn late(plans: &Plans, step: &Step, claim: &str) -> Result<Owner, Error> {
    if plans.claims().is_known(step, claim) {
        return Ok(Owner::Late);
    }
    let message = format!("no claim `{claim}` of `{}` is known; nothing was changed", step.id);
    let hint = format!("`planwatch show {}` shows its owner", shell_word(&step.id));
    Err(Error::Conflict { code: "unknown-claim", message, hint })
}

/// Names who has the step; a claim without a name by its id.
pub(crate) fn claimed(step: &Step, by: Option<&str>, claim: &str) -> Error {
    let by = by.map_or_else(|| format!("the claim {claim}"), str::to_owned);
    Error::Claimed { id: step.id.to_string(), by }
}

/// Refuses to take away a plan on which work is going on, also if another working tree has the claim.
///
/// Lapsed claims do not count, and neither does what was closed elsewhere.
pub(crate) fn refuse_live_claims(context: &Context, id: &PlanId) -> Result<(), Error> {
    let plans = LoadQuery::plan(id).load(context)?.plans;
    let Some(plan) = plans.get(id) else { return Ok(()) };
    for step in &plan.steps {
        let own = claim_of(step).filter(|_| plans.claims().lapse(step, context.now).is_none());
        let other = plans.claims().holder(step).filter(|it| !matches!(it.holding, Holding::Closed { .. }));
        let by = own.map(|it| it.by.as_deref()).or_else(|| other.map(|it| it.by.as_deref()));
        if let Some(by) = by {
            let by = by.unwrap_or("another worker").to_owned();
            return Err(Error::ClaimedWithin { id: step.id.to_string(), by });
        }
    }
    Ok(())
}

/// Returns whether the update is the claim's own, so that it renews the lease.
pub(crate) fn is_owner(step: &Step, who: &Who) -> bool {
    claim_of(step).is_some_and(|claim| match &who.claim {
        Some(id) => *id == claim.id,
        None => claim.by.as_deref() == Some(who.by.as_str()),
    })
}

/// Returns the claim that an end of work ends, how many seconds it took, and the log of its run.
pub(crate) fn ended_claim(step: &Step, now: Time) -> Option<EndedClaim> {
    let claim = claim_of(step)?;
    let seconds = claim.at.map(|at| now.seconds_since(at));
    let log = step.run.as_ref().map(|it| it.log.clone());
    Some(EndedClaim { id: claim.id.clone(), seconds, log, ..EndedClaim::default() })
}

/// Keeps a late result as a note, once for each claim, and refuses the update.
pub(crate) fn late_result(
    context: &Context,
    step: &Step,
    who: &Who,
    outcome: &str,
    message: Option<&str>,
) -> StepUpdate {
    let claim = who.claim.clone().unwrap_or_default();
    let head = format!("late result of the claim {claim}: ");
    let refusal = Error::ClaimLost { id: step.id.to_string(), claim };
    let mut update =
        StepUpdate { refusal: Some(refusal), did: "kept as a note".to_owned(), ..StepUpdate::default() };
    if !step.notes.iter().any(|it| it.text.starts_with(&head)) {
        let text = format!("{head}{outcome}{}", message.map(|it| format!(": {it}")).unwrap_or_default());
        update.notes.push(NewNote { at: context.now, kind: NoteType::Warning, by: who.by.clone(), text });
    }
    update
}

/// Who has the step: by its file, or by what is recorded beside it.
pub(crate) fn held_by(plans: &Plans, step: &Step, by: Option<&str>) -> Error {
    let id = step.id.to_string();
    let by = by.map(str::to_owned);
    match plans.claims().holder(step).map(|it| &it.holding) {
        Some(Holding::Elsewhere { worktree, is_gone: true }) => {
            let by = by.unwrap_or_else(|| "another worker".to_owned());
            let message = format!("`{id}` is claimed by {by} in {worktree}, which no longer exists");
            let hint =
                format!("`planwatch release {id_word} --force` ends that claim", id_word = shell_word(&id));
            Error::Conflict { code: "claimed", message, hint }
        }
        Some(Holding::Elsewhere { worktree, .. }) => {
            let by = by.unwrap_or_else(|| "another worker".to_owned());
            Error::Held { id, by: format!("{by} in the working tree {worktree}") }
        }
        Some(Holding::Closed { branch }) => {
            let branch =
                branch.as_deref().map_or("another branch", |it| it.trim_start_matches("refs/heads/"));
            let message = format!("`{id}` was closed on {branch}, which is not merged here");
            let hint = "merge it, or use --force, which is recorded".to_owned();
            Error::Conflict { code: "claimed", message, hint }
        }
        _ if step.claim.is_none() && step.status.is(StepStatus::InProgress) => {
            let message =
                format!("`{id}` is in progress without a claim: it was started with `start` or in an editor");
            let hint = format!("`planwatch release {id_word}` releases it", id_word = shell_word(&id));
            Error::Conflict { code: "claimed", message, hint }
        }
        _ => {
            let claim = step.claim.as_ref().map(|it| format!("the claim {}", it.id));
            Error::Held { id, by: by.or(claim).unwrap_or_else(|| "another worker".to_owned()) }
        }
    }
}

/// The attempt of a lapsed claim. It is recorded in the owner's name, whichever process writes it.
pub(crate) fn lapsed_attempt(context: &Context, step: &Step, lapse: Lapse, by: &str) -> NewAttempt {
    let owner = step.claim.as_ref().and_then(|it| it.by.clone());
    NewAttempt {
        at: context.now,
        by: owner.unwrap_or_else(|| by.to_owned()),
        outcome: lapse.outcome().to_owned(),
        notes: None,
        claim: ended_claim(step, context.now),
    }
}

/// Whether one more lapsed claim is one too many.
pub(crate) fn is_at_limit(context: &Context, step: &Step) -> bool {
    step.tries() + 1 >= context.config.max_attempts() as usize
}
