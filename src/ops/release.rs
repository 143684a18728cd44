//! `release`: ends claims of the caller, claims that have lapsed, or, with `--force`, claims of other callers. The steps
//! become pending again; with `--expired`, a step that has used up its attempts becomes failed.

use std::collections::HashMap;

use crate::api::context::Context;
use crate::api::error::Error;
use crate::plan::change::NewAttempt;
use crate::plan::id::{StepId, read_step_id};
use crate::plan::model::Step;
use crate::plan::plans::Plans;
use crate::plan::transitions;
use crate::plan::words::{Status, StepStatus};
use crate::store::change_one_by_one::change_one_by_one;
use crate::store::fencing::{self, Caller, Owner};
use crate::store::idempotency;
use crate::store::load::LoadQuery;
use crate::store::repeat::{self, ReportedOutcome};
use crate::store::resolve::{self, NamedStep};
use crate::store::step_file::{self, StepUpdate};
use crate::store::sync::ending;
use crate::store::transaction::{ChangeReport, Changed, Mode, Refused, Transaction};
use crate::text::typed::shell_word;

pub use crate::api::requests::ReleaseRequest;

/// Releases the steps. If a step is refused, the refusal is reported, and the other steps are still released.
pub fn release(context: &Context, request: &ReleaseRequest) -> Result<ChangeReport, Error> {
    let report = match request.expired && request.ids.is_empty() {
        true => release_all_expired(context, request),
        false => {
            let removed = release_elsewhere(context, request)?;
            change_one_by_one(context, "release", &request.ids, request.mode, |writing, id| {
                let id = resolve::step(context, id)?;
                let changed = release_one(context, writing, &id, request)?;
                let whose = removed.get(&id.id).filter(|_| !changed.was_written);
                let did = whose.map(|it| format!("{}; the claim of {it} is removed", changed.did));
                Ok(Changed { did: did.unwrap_or(changed.did), ..changed })
            })
        }
    }?;
    if request.mode == Mode::Write {
        let ids = report.changes.iter().filter_map(|it| read_step_id(&it.id));
        ids.for_each(|it| ending::released(context, &it));
    }
    Ok(report)
}

/// With `--force`, also removes the records of other machines' claims from the registry. Returns the owner of each removed
/// record.
fn release_elsewhere(context: &Context, request: &ReleaseRequest) -> Result<HashMap<StepId, String>, Error> {
    let mut removed = HashMap::new();
    if !request.force || request.mode == Mode::DryRun || context.config.sync.is_none() {
        return Ok(removed);
    }
    for id in &request.ids {
        // A step that is not found is refused later, by `change_one_by_one`.
        let Ok(NamedStep { id, .. }) = resolve::step(context, id) else { continue };
        removed.extend(ending::release_foreign(context, &id)?.map(|it| (id, it)));
    }
    Ok(removed)
}

fn release_one(
    context: &Context,
    writing: &mut Transaction<'_>,
    named: &NamedStep,
    request: &ReleaseRequest,
) -> Result<Changed, Error> {
    let who = Caller::of(context, &named.id, request.by.as_deref(), request.claim.as_deref(), request.force);
    step_file::update(context, writing, named, &|now| match request.expired {
        true => decide_expired(context, now.plans, now.step, &who),
        false => decide(context, now.plans, now.step, &who, request.message.as_deref()),
    })
}

/// Finds the lapsed claims without the lock, and checks each one again under the lock.
fn release_all_expired(context: &Context, request: &ReleaseRequest) -> Result<ChangeReport, Error> {
    let plans = LoadQuery::all().load(context)?.plans;
    let lapsed = |it: &&Step| plans.claims().lapse(it, context.now).is_some();
    let ids: Vec<_> = plans.live().flat_map(|it| &it.steps).filter(lapsed).map(NamedStep::of).collect();
    let mut report = ChangeReport::new("release", request.mode);
    if ids.is_empty() {
        return Ok(report);
    }
    idempotency::record_many(context);
    let root = context.root_name();
    let mut writing = Transaction::begin(context, "release", request.mode)?;
    for id in ids {
        match release_one(context, &mut writing, &id, request).map_err(|it| it.below(&root)) {
            Ok(changed) => report.changes.push(changed),
            Err(error) => report.refused.push(Refused { id: id.id.to_string(), error }),
        }
    }
    report.diff = std::mem::take(&mut writing.diff);
    Ok(report)
}

fn decide(
    context: &Context,
    plans: &Plans,
    step: &Step,
    who: &Caller,
    message: Option<&str>,
) -> Result<StepUpdate, Error> {
    // If the claim is no longer in the file, there is nothing to write, but the claim still has a record, which its owner can
    // end. The same is true if the claim was made in a working tree that has been removed.
    let taken_back = plans.claims().taken_back(step).or_else(|| plans.claims().left_behind(step));
    if let Some(held) = taken_back.filter(|_| step.status.is(StepStatus::Pending)) {
        let is_owner = match &who.claim {
            Some(id) => *id == held.claim,
            None => held.by.as_deref() == Some(who.by.as_str()),
        };
        if !is_owner && !who.force {
            return Err(fencing::claimed(&step.id, held.by.as_deref(), &held.claim));
        }
        return Ok(StepUpdate { ends_record: true, did: "claim ended".to_owned(), ..StepUpdate::default() });
    }
    let owner = fencing::check(plans, step, who)?;
    if repeat::is_release(plans, owner, step, who, ReportedOutcome { outcome: "released", notes: message }) {
        return Ok(repeat::repeated());
    }
    if owner == Owner::Late {
        return Ok(fencing::late_result(context, step, who, "released", message));
    }
    let from = step.standing().known();
    if !transitions::may_be_released(from) && !who.force {
        let message = format!("`{}` is {}; it has no claim to release", step.id, step.status.word());
        let hint = format!("`planwatch reopen {}` makes it pending again", shell_word(&step.id));
        return Err(Error::Conflict { code: "not-allowed", message, hint });
    }
    let is_forced = owner == Owner::Forced || !transitions::may_be_released(from);
    let claim = fencing::ended_claim(step, context.now);
    let outcome = if is_forced { "forced" } else { "released" };
    let notes = match (is_forced, message) {
        (true, Some(text)) => Some(format!("released: {text}")),
        (true, None) => Some("released".to_owned()),
        (false, text) => text.map(str::to_owned),
    };
    let attempt = NewAttempt { notes, claim, ..NewAttempt::new(context.now, &who.by, outcome) };
    let attempt = Some(attempt).filter(|_| message.is_some() || is_forced);
    let is_same = step.status.is(StepStatus::Pending) && attempt.is_none();
    Ok(StepUpdate {
        status: Some(StepStatus::Pending),
        removes_claim: step.claim.is_some(),
        ends_others: owner == Owner::Forced,
        attempts: attempt.into_iter().collect(),
        did: if is_same { format!("already {}", StepStatus::Pending.word()) } else { "released".to_owned() },
        ..StepUpdate::default()
    })
}

/// Ends a lapsed claim as a new claim on the step would, but leaves the step unclaimed.
fn decide_expired(context: &Context, plans: &Plans, step: &Step, who: &Caller) -> Result<StepUpdate, Error> {
    let Some(lapse) = plans.claims().lapse(step, context.now) else {
        let hint = format!("`planwatch show {}` shows its claim, if it has one", shell_word(&step.id));
        return Err(Error::conflict("not-lapsed", format!("`{}` has no lapsed claim", step.id), hint));
    };
    let is_at_limit = fencing::is_at_limit(context, step);
    Ok(StepUpdate {
        status: Some(if is_at_limit { StepStatus::Failed } else { StepStatus::Pending }),
        removes_claim: true,
        attempts: vec![fencing::lapsed_attempt(context, step, lapse, &who.by)],
        did: if is_at_limit { "failed".to_owned() } else { lapse.outcome().to_owned() },
        ..StepUpdate::default()
    })
}
