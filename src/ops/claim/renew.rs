//! Renews a claim.

use super::{ClaimReport, Granted, begin};
use crate::api::context::Context;
use crate::api::error::Error;
use crate::api::views::{Views, value};
use crate::plan::id::{StepId, read_step_id};
use crate::store::leases::{Leases, NewRecord, Sharing};
use crate::store::load::{self, LoadQuery};
use crate::store::resolve;
use crate::store::sync::ending;
use crate::store::transaction::{Mode, is_half_saved};

pub use crate::api::requests::RenewRequest;

/// Restarts the lease of a claim. The step's file is not written.
///
/// A lapsed claim can be renewed as long as the step still has it.
pub fn renew(context: &Context, request: &RenewRequest) -> Result<ClaimReport, Error> {
    let report = renew_here(context, request)?;
    // The locks are released by now. The record at the registry is renewed, too. Only the registry knows whether another
    // machine has taken over the step.
    let step = report.step.as_ref().and_then(|it| read_step_id(it["id"].as_str()?));
    let step = step.filter(|_| request.mode == Mode::Write);
    match step.is_some_and(|it| ending::is_lost_now(context, &it, &request.claim)) {
        true => Err(Error::ClaimGone { claim: request.claim.clone() }),
        false => Ok(report),
    }
}

fn renew_here(context: &Context, request: &RenewRequest) -> Result<ClaimReport, Error> {
    let gone = || Error::ClaimGone { claim: request.claim.clone() };
    let step = match Leases::of(context).find(&request.claim) {
        Some(record) => read_step_id(&record.step).ok_or_else(gone)?,
        None => claimed_step(context, &request.claim)?.ok_or_else(gone)?,
    };
    let (_writing, locked) = begin(context, "renew", request.mode, Sharing::Waived)?;
    let loaded = LoadQuery::step(&step).settled(load::DecisionFiles::Plan(&step.plan)).load(context);
    let plans = locked.annotate(loaded.map_err(|it| if is_half_saved(&it) { it } else { gone() })?.plans);
    let (plan, step) = resolve::find_step(&plans, &step).map_err(|_| gone())?;
    let claim = step.claim_in_force().filter(|it| it.id == request.claim);
    let claim = claim.ok_or_else(gone)?;
    if plans.claims().is_void(step) || ending::is_lost(context, &step.id, &claim.id) {
        return Err(gone());
    }
    let lease = request.lease.unwrap_or(context.config.lease());
    let renewed = locked.renew(&step.id, &claim.id, request.lease);
    if renewed.is_none() && request.mode == Mode::Write {
        let (by, at) = (claim.by.as_deref().unwrap_or(&context.by), context.now);
        let (claim, process, run, key) = (claim.id.as_str(), None, None, None);
        locked.adopt(&NewRecord { step, claim, by, at, lease, process, run, key })?;
    }
    let plans = locked.annotate(plans.clone());
    let views = Views::of(context, &plans);
    let until = renewed.unwrap_or_else(|| context.now.plus_seconds(lease));
    let (why, claim) =
        ("the claim is renewed".to_owned(), Granted { id: claim.id.clone(), until: Some(until) });
    let report = ClaimReport::of(value(&views.step(plan, step)), why, claim);
    let is_dry_run = request.mode == Mode::DryRun;
    Ok(ClaimReport { plan: Some(plan.id.to_string()), is_dry_run, ..report })
}

/// Finds the step whose file has the claim. Needed only if this machine has no record of the claim.
fn claimed_step(context: &Context, claim: &str) -> Result<Option<StepId>, Error> {
    let plans = LoadQuery::all().load(context)?.plans;
    let mut steps = plans.live().flat_map(|it| &it.steps);
    let found = steps.find(|it| it.claim.as_ref().is_some_and(|it| it.id == claim));
    Ok(found.map(|it| it.id.clone()))
}
