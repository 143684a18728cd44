//! Checks the owner of a claimed step, and handles late results.

use crate::api::context::Context;
use crate::api::error::Error;
use crate::plan::change::{EndedClaim, NewAttempt, NewNote};
use crate::plan::claims::{HeldClaim, Holding, Lapse};
use crate::plan::id::{PlanId, StepId};
use crate::plan::model::Step;
use crate::plan::plans::Plans;
use crate::plan::read::STEP_KEYS;
use crate::plan::records::NoteType;
use crate::plan::time::Time;
use crate::plan::words::StepStatus;
use crate::store::load::LoadQuery;
use crate::store::step_file::StepUpdate;
use crate::text::header_edit::{self, Change};
use crate::text::typed::shell_word;

#[derive(Debug, Clone)]
pub(crate) struct Caller {
    pub(crate) by: String,
    pub(crate) claim: Option<String>,
    pub(crate) force: bool,
    /// Another clone has taken the step over.
    pub(crate) is_overtaken: bool,
    /// A former claim of this clone: another clone took its step over earlier, and may have released the step since. The
    /// update is late only if the step's file contains this claim, or the caller names it.
    pub(crate) lost: Option<String>,
}

impl Caller {
    /// Uses the given name and claim. If no claim is given, uses the claim of the environment if it belongs to this step.
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
        Self { by: by.unwrap_or(&context.by).to_owned(), claim, force, is_overtaken: false, lost: None }
    }
}

/// The result of [`check`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Owner {
    /// No claim of another worker prevents the update.
    Free,
    /// A claim of another worker would prevent the update, but the caller uses force.
    Forced,
    /// The update comes too late: the claim that the caller names is known, but is not in force in the step's file; or
    /// another worker has taken the step over.
    Late,
}

/// Checks whether the caller owns the step: the caller's claim id must be the id in the file. Without a claim id, the
/// caller's name must be the owner's name.
///
/// A claim is void if another worker has taken its step over, or if this machine has recorded that the claim ended. This
/// also applies if the step's file still contains the claim.
pub(crate) fn check(plans: &Plans, step: &Step, who: &Caller) -> Result<Owner, Error> {
    if who.is_overtaken || who.lost.as_ref().is_some_and(|it| is_of(step, who, it)) {
        return Ok(Owner::Late);
    }
    if let Some(other) = plans.claims().overtaken_by(step) {
        return match (&who.claim, who.force) {
            (Some(id), _) => late(plans, step, id),
            (None, true) => Ok(Owner::Forced),
            (None, false) if other.unmerged_end().is_some() => Err(held(step, Some(other), None)),
            (None, false) => Err(claimed(&step.id, other.by.as_deref(), &other.claim)),
        };
    }
    let in_force = step.claim_in_force().filter(|_| !plans.claims().is_void(step));
    match (in_force, &who.claim) {
        (Some(claim), Some(id)) if claim.id == *id => Ok(Owner::Free),
        (_, Some(id)) => late(plans, step, id),
        (None, None) => check_beside(plans, step, who),
        (Some(claim), None) if claim.by.as_deref() == Some(who.by.as_str()) => Ok(Owner::Free),
        (Some(_), None) if who.force => Ok(Owner::Forced),
        (Some(claim), None) => Err(claimed(&step.id, claim.by.as_deref(), &claim.id)),
    }
}

/// Whether the step's file has this claim, or the caller names it.
fn is_of(step: &Step, who: &Caller, claim: &str) -> bool {
    who.claim.as_deref() == Some(claim) || step.claim.as_ref().is_some_and(|it| it.id == claim)
}

/// Checks a claim that the step's file in this working tree does not contain: the claim of another working tree or machine,
/// or a claim that was removed from the file.
fn check_beside(plans: &Plans, step: &Step, who: &Caller) -> Result<Owner, Error> {
    let is_open = matches!(step.status.known(), Some(StepStatus::Pending | StepStatus::InProgress));
    let counts = |it: &&HeldClaim| match it.holding {
        // If a person gave the step another status in an editor, the work has ended.
        Holding::Here => is_open,
        Holding::Elsewhere { .. } | Holding::Remote { .. } | Holding::EndedRemote { .. } => true,
        Holding::Closed { .. } => false,
    };
    let is_remote =
        |it: &HeldClaim| matches!(it.holding, Holding::Remote { .. } | Holding::EndedRemote { .. });
    match plans.claims().holder(step).filter(counts) {
        // The same name on another machine is another worker.
        Some(held) if is_remote(held) && who.force => Ok(Owner::Forced),
        Some(held) if is_remote(held) => Err(held_by(plans, step, held.by.as_deref())),
        Some(held) if held.by.as_deref() == Some(who.by.as_str()) => Ok(Owner::Free),
        Some(_) if who.force => Ok(Owner::Forced),
        Some(held) if held.holding == Holding::Here => {
            let by = held.by.clone().unwrap_or_else(|| format!("the claim {}", held.claim));
            Err(Error::Held { id: step.id.to_string(), by, is_remote: false })
        }
        Some(held) => Err(held_by(plans, step, held.by.as_deref())),
        None => Ok(Owner::Free),
    }
}

/// Returns [`Owner::Late`] if the claim is or was on the step. Otherwise the update is refused, and nothing is written.
fn late(plans: &Plans, step: &Step, claim: &str) -> Result<Owner, Error> {
    if plans.claims().is_known(step, claim) {
        return Ok(Owner::Late);
    }
    let message = format!("no claim `{claim}` of `{}` is known; nothing was changed", step.id);
    let hint = format!("`planwatch show {}` shows its owner", shell_word(&step.id));
    Err(Error::Conflict { code: "unknown-claim", message, hint })
}

/// The error with the owner's name, or with the claim's id if the owner's name is unknown.
pub(crate) fn claimed(id: &impl ToString, by: Option<&str>, claim: &str) -> Error {
    let by = by.map_or_else(|| format!("the claim {claim}"), str::to_owned);
    Error::Claimed { id: id.to_string(), by }
}

/// Refuses to remove, archive or rename a plan if a claim on one of its steps is in force: the claim in the step's file, or
/// a claim that this machine has recorded, even for another working tree.
///
/// Lapsed claims are ignored, and so are claims on steps that were closed on another branch. `sync::foreign` checks the
/// registry's claims of other machines.
pub(crate) fn refuse_live_claims(context: &Context, id: &PlanId) -> Result<(), Error> {
    let plans = LoadQuery::plan(id).load(context)?.plans;
    let Some(plan) = plans.get(id) else { return Ok(()) };
    for step in &plan.steps {
        let own = step.claim_in_force().filter(|_| plans.claims().lapse(step, context.now).is_none());
        let other =
            plans.claims().holder(step).filter(|it| // `sync::foreign` checks the claims of other machines.
            !matches!(
                it.holding,
                Holding::Closed { .. } | Holding::Remote { .. } | Holding::EndedRemote { .. }
            ));
        let by = own.map(|it| it.by.as_deref()).or_else(|| other.map(|it| it.by.as_deref()));
        if let Some(by) = by {
            let by = by.unwrap_or("another worker").to_owned();
            return Err(Error::ClaimedWithin { id: step.id.to_string(), by });
        }
    }
    Ok(())
}

/// Whether the caller owns the claim in force; the caller's update then renews the lease.
pub(crate) fn is_owner(step: &Step, who: &Caller) -> bool {
    step.claim_in_force().is_some_and(|claim| match &who.claim {
        Some(id) => *id == claim.id,
        None => claim.by.as_deref() == Some(who.by.as_str()),
    })
}

/// Returns the claim that is being ended, how many seconds ago it was made, and the log of its run.
pub(crate) fn ended_claim(step: &Step, now: Time) -> Option<EndedClaim> {
    let claim = step.claim_in_force()?;
    let seconds = claim.at.map(|at| now.seconds_since(at));
    let log = step.run.as_ref().map(|it| it.log.clone());
    Some(EndedClaim { id: claim.id.clone(), seconds, log, ..EndedClaim::default() })
}

/// Records a late result as a note, once for each claim, and refuses the update.
pub(crate) fn late_result(
    context: &Context,
    step: &Step,
    who: &Caller,
    outcome: &str,
    message: Option<&str>,
) -> StepUpdate {
    let claim = who.claim.as_ref().or(who.lost.as_ref()).cloned().unwrap_or_default();
    let head = format!("late result of the claim {claim}: ");
    let refusal = Error::ClaimLost { id: step.id.to_string(), claim };
    let mut update =
        StepUpdate { refusal: Some(refusal), did: "kept as a note".to_owned(), ..StepUpdate::default() };
    // If `notes` in the step's file is a plain text, the late result is recorded as an attempt instead of a note.
    let is_noted = step.notes.iter().any(|it| it.text.starts_with(&head))
        || step.attempts.iter().any(|it| it.notes.as_ref().is_some_and(|it| it.starts_with(&head)));
    if !is_noted {
        let text = format!("{head}{outcome}{}", message.map(|it| format!(": {it}")).unwrap_or_default());
        update.notes.push(NewNote { at: context.now, kind: NoteType::Warning, by: who.by.clone(), text });
    }
    update
}

/// Records that `--force` changed a step that another worker has claimed.
///
/// The record is a note, because the code that merges files or shares claims reads an attempt as a statement about the
/// step's status. If `notes` in the step's `file` is a plain text, the record is an attempt.
pub(crate) fn override_record(context: &Context, who: &Caller, file: &[u8], text: String) -> Change {
    let attempt = NewAttempt { notes: Some(text.clone()), ..NewAttempt::new(context.now, &who.by, "forced") };
    let note = NewNote { at: context.now, kind: NoteType::Info, by: who.by.clone(), text }.change();
    let is_possible = header_edit::edit(file, std::slice::from_ref(&note), STEP_KEYS).is_ok();
    if is_possible { note } else { attempt.change() }
}

/// The error that names the owner of the step, according to the step's file or the records.
pub(crate) fn held_by(plans: &Plans, step: &Step, by: Option<&str>) -> Error {
    held(step, plans.claims().holder(step), by)
}

fn held(step: &Step, holder: Option<&HeldClaim>, by: Option<&str>) -> Error {
    let id = step.id.to_string();
    let by = by.map(str::to_owned);
    if let Some((held, end)) = holder.and_then(|it| Some((it, it.unmerged_end()?))) {
        let hint = match &held.holding {
            Holding::Closed { is_here: true, .. } => {
                "try again in a minute, or use --force, which is recorded".to_owned()
            }
            Holding::Closed { .. } => "merge it, or use --force, which is recorded".to_owned(),
            _ => format!(
                "merge it; if that branch will never be pushed, `planwatch release {} --force` frees the step",
                shell_word(&id)
            ),
        };
        return Error::conflict("claimed", format!("`{id}` {end}"), hint);
    }
    match holder.map(|it| &it.holding) {
        Some(Holding::Elsewhere { worktree, is_gone: true }) => {
            let by = by.unwrap_or_else(|| "another worker".to_owned());
            let message = format!("`{id}` is claimed by {by} in {worktree}, which no longer exists");
            let hint = format!("`planwatch release {} --force` ends that claim", shell_word(&id));
            Error::Conflict { code: "claimed", message, hint }
        }
        Some(Holding::Elsewhere { worktree, .. }) => {
            let by = by.unwrap_or_else(|| "another worker".to_owned());
            Error::Held { id, by: format!("{by} in the working tree {worktree}"), is_remote: false }
        }
        Some(Holding::Remote { host, .. }) => {
            let by = by.unwrap_or_else(|| "another worker".to_owned());
            Error::Held { id, by: format!("{by} on {host}"), is_remote: true }
        }
        _ if step.claim.is_none() && step.status.is(StepStatus::InProgress) => {
            let message =
                format!("`{id}` is in progress without a claim: it was started with `start` or in an editor");
            let hint = format!("`planwatch release {}` releases it", shell_word(&id));
            Error::conflict("claimed", message, hint)
        }
        _ => {
            let claim = step.claim.as_ref().map(|it| format!("the claim {}", it.id));
            let by = by.or(claim).unwrap_or_else(|| "another worker".to_owned());
            Error::Held { id, by, is_remote: false }
        }
    }
}

/// The attempt that records a lapsed claim, in the name of the claim's owner, or of `by` if the owner's name is unknown.
pub(crate) fn lapsed_attempt(context: &Context, step: &Step, lapse: Lapse, by: &str) -> NewAttempt {
    let owner = step.claim.as_ref().and_then(|it| it.by.as_deref());
    let attempt = NewAttempt::new(context.now, owner.unwrap_or(by), lapse.outcome());
    NewAttempt { claim: ended_claim(step, context.now), ..attempt }
}

/// Whether the limit of attempts is reached if one more claim lapses.
pub(crate) fn is_at_limit(context: &Context, step: &Step) -> bool {
    step.tries() + 1 >= context.config.max_attempts() as usize
}
