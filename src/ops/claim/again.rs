//! A claim that an earlier request with the same key made and did not answer.

use super::{ClaimReport, Granted, begin};
use crate::api::context::Context;
use crate::api::error::Error;
use crate::api::views::{Views, value};
use crate::plan::id::read_step_id;
use crate::store::leases::Sharing;
use crate::store::load::{LoadQuery, Loaded};
use crate::store::resolve;
use crate::store::transaction::Mode;

/// Finds the claim that the request's key has made, and makes its record whole.
///
/// None if there is no such claim, or the step has another claim by now. The first claim was never answered then, and the
/// request is carried out again.
pub(super) fn claimed(context: &Context) -> Result<Option<ClaimReport>, Error> {
    let Some((key, made)) = context.key.as_deref().and_then(|key| Some((key, key.made()?.claim.as_ref()?)))
    else {
        return Ok(None);
    };
    let Some(id) = read_step_id(&made.step) else { return Ok(None) };
    let (_writing, locked) = begin(context, "claim", Mode::Write, Sharing::Waived)?;
    let Ok(Loaded { plans, .. }) = LoadQuery::step(&id).load(context) else { return Ok(None) };
    let Ok((_, step)) = resolve::find_step(&plans, &id) else { return Ok(None) };
    if step.claim_in_force().is_none_or(|it| it.id != made.id) {
        return Ok(None);
    }
    locked.complete(&id, &made.id)?;
    let plans = locked.tell(plans);
    let Ok((plan, step)) = resolve::find_step(&plans, &id) else { return Ok(None) };
    if plans.claims().overtaken_by(step).is_some() {
        return Ok(None);
    }
    let root = context.root_name();
    let views = Views { plans: &plans, now: context.now, root: &root };
    key.replay();
    Ok(Some(ClaimReport {
        state: "next",
        step: Some(value(&views.step(plan, step))),
        why: made.why.clone(),
        claim: Some(Granted { id: made.id.clone(), until: made.until }),
        plan: Some(id.plan.to_string()),
        is_dry_run: false,
        diff: key.made().map(|it| it.diff().to_owned()).unwrap_or_default(),
    }))
}
