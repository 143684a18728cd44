//! The claim that an earlier request with the same key made, if that request got no reply.

use super::{ClaimReport, Granted, begin};
use crate::api::context::Context;
use crate::api::error::Error;
use crate::api::views::{Views, value};
use crate::plan::id::read_step_id;
use crate::store::leases::Sharing;
use crate::store::load::{LoadQuery, Loaded};
use crate::store::resolve;
use crate::store::transaction::Mode;

/// Finds the claim that was made for the request's key, and completes its record.
///
/// None if there is no such claim, or if its step cannot be found or no longer has the claim. The request is then carried
/// out again, because its caller got no reply and does not know the first claim.
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
    let plans = locked.annotate(plans);
    let Ok((plan, step)) = resolve::find_step(&plans, &id) else { return Ok(None) };
    if plans.claims().is_void(step) {
        return Ok(None);
    }
    let views = Views::of(context, &plans);
    key.replay();
    let claim = Granted { id: made.id.clone(), until: made.until };
    let report = ClaimReport::of(value(&views.step(plan, step)), made.why.clone(), claim);
    let diff = key.made().map(|it| it.diff().to_owned()).unwrap_or_default();
    Ok(Some(ClaimReport { plan: Some(id.plan.to_string()), diff, ..report }))
}
