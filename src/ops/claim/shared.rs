//! Claims that are shared with other machines.
//!
//! A claim is made on this machine first, as if claims were not shared, and then stored at the registry. If another
//! machine has the step, the claim on this machine is undone byte for byte. Unless the request names the step, another
//! candidate is then tried. No lock is held while the registry is called.

use std::collections::HashSet;
use std::time::Duration;

use super::for_run::{self, Begun, RunAsk, RunClaim};
use super::{ClaimReport, ClaimRequest, MadeHere, Wanted, claim_here, wanted_by};
use crate::api::context::Context;
use crate::api::context::Reading;
use crate::api::daemon::Freshness;
use crate::api::daemon::{DaemonStatus, Granted};
use crate::api::error::Error;
use crate::plan::id::{PlanId, StepId};
use crate::plan::rules::State;
use crate::store::claims::candidates;
use crate::store::idempotency;
use crate::store::sync::claiming::{Announced, LocalClaim};
use crate::store::sync::seen::Seen;
use crate::store::sync::state::{FileBefore, OwnRecord, SyncState};
use crate::store::sync::{Sync, TRY_LATER, local};

/// How many steps are tried before the claim gives up.
const CANDIDATES: u32 = 6;

/// After another machine has claimed a step first, the next candidate is chosen at random among this many, so that
/// machines do not compete for the same steps.
const SPREAD: usize = 8;

/// The maximum pause after another machine has claimed a step first. The maximum doubles each time. The actual pause is a
/// random part of the maximum.
const PAUSE: Duration = Duration::from_millis(100);

pub(super) fn claim(context: &Context, request: &ClaimRequest) -> Result<ClaimReport, Error> {
    if request.offline {
        return claim_offline(context, request);
    }
    let claimed = Sync::required(context).and_then(|sync| claim_at(&sync, request));
    claimed.map_err(|error| match error {
        Error::Conflict { code, message, hint } if hint == TRY_LATER => {
            let hint = format!("{hint}; `planwatch claim --offline` claims on this machine alone");
            Error::Conflict { code, message, hint }
        }
        other => other,
    })
}

/// Like [`claim`], but with the registry of `sync`.
pub(super) fn claim_at(sync: &Sync<'_>, request: &ClaimRequest) -> Result<ClaimReport, Error> {
    let context = sync.context;
    let wanted = wanted_by(context, request)?;
    let (mut lost, mut seen) = (HashSet::new(), first_look(sync)?);
    for nth in 0..CANDIDATES {
        let skip = match &wanted {
            Wanted::Step(named) => {
                refuse_closed(sync, &named.id)?;
                HashSet::new()
            }
            Wanted::Next(plan) => skipped(sync, plan.as_ref(), &lost)?,
        };
        let report = claim_here(context, request, &skip)?;
        let (Some(claim), Some(made)) = (report.claim.clone(), report.made.clone()) else {
            return Ok(if skip.is_empty() { report } else { waiting(report) });
        };
        let local = LocalClaim {
            step: &made.step,
            id: &claim.id,
            by: request.by.as_deref().unwrap_or(&context.by),
            lease: request.lease.unwrap_or(context.config.lease()),
            is_renewed: request.is_renewed || has_daemon(context),
        };
        match sync.superfluous(&seen).and_then(|it| sync.announce(&local, &seen, &it)) {
            Ok(Announced::Won { until }) => {
                return Ok(ClaimReport { until_elsewhere: Some(until), ..report });
            }
            Ok(Announced::Lost(holder)) => {
                take_back(context, &made, &claim)?;
                if let Wanted::Step(named) = &wanted {
                    return Err(Error::Held { id: named.id.to_string(), by: holder, is_remote: true });
                }
                lost.insert(made.step);
                // If the push was rejected, the records have been listed again.
                seen = sync.state.seen();
            }
            Err(error) => {
                take_back(context, &made, &claim)?;
                return Err(error);
            }
        }
        sync.pause(PAUSE * 2_u32.pow(nth));
    }
    Err(Error::conflict("claimed", "other machines claimed each candidate first", "try again"))
}

/// Like [`claim`], but for a run.
pub(super) fn claim_for_run(context: &Context, ask: &RunAsk<'_>) -> Result<RunClaim, Error> {
    let sync = Sync::required(context)?;
    let mut seen = match first_look(&sync) {
        Err(error) if error.code() == "remote-unreachable" => {
            return Ok(RunClaim::Unreachable(error.to_string()));
        }
        seen => seen?,
    };
    let mut lost = HashSet::new();
    for nth in 0..CANDIDATES {
        let wanted = for_run::wanted(context, ask.plan)?.into_iter().map(|it| it.id);
        let wanted = wanted.filter(|it| !ask.skip.contains(it)).collect();
        let mut skip = passed_over(&sync, wanted, &lost)?;
        skip.extend(ask.skip.iter().cloned());
        let begun = match for_run::claim_locally(context, ask, &skip)? {
            RunClaim::Begun(begun) => begun,
            other => return Ok(other),
        };
        let id = &begun.step.id;
        // The run renews its record until the run ends. The lease on this machine does not matter.
        let local = LocalClaim { step: id, id: &begun.claim, by: ask.by, lease: 0, is_renewed: true };
        match sync.superfluous(&seen).and_then(|it| sync.announce(&local, &seen, &it)) {
            Ok(Announced::Won { .. }) => return Ok(RunClaim::Begun(begun)),
            Ok(Announced::Lost(_)) => {
                take_back_of_run(context, &begun)?;
                lost.insert(id.clone());
                seen = sync.state.seen();
            }
            Err(error) => {
                take_back_of_run(context, &begun)?;
                return match error.code() {
                    "remote-unreachable" => Ok(RunClaim::Unreachable(error.to_string())),
                    _ => Err(error),
                };
            }
        }
        sync.pause(PAUSE * 2_u32.pow(nth));
    }
    Ok(RunClaim::Busy)
}

/// Lists the records, and sends unconfirmed changes again.
fn first_look(sync: &Sync<'_>) -> Result<Seen, Error> {
    let seen = sync.look()?.seen;
    if sync.has_unsettled() {
        sync.settle(&seen)?;
    }
    Ok(seen)
}

/// Claims on this machine alone.
fn claim_offline(context: &Context, request: &ClaimRequest) -> Result<ClaimReport, Error> {
    let report = claim_here(context, request, &HashSet::new())?;
    let (Some(claim), Some(made)) = (&report.claim, &report.made) else { return Ok(report) };
    let Some(state) = SyncState::of(context) else { return Ok(report) };
    let before = state.own_of(&state.name_of(&made.step)).filter(|it| !it.is_lost);
    let new = OwnRecord::replacing(before.as_ref(), &state, made.step.clone(), claim.id.clone());
    let own = OwnRecord { is_offline: true, file: made.file.clone(), ..new };
    let earlier = before.map(|it| state.inherited(&it, &own)).unwrap_or_default();
    earlier.iter().try_for_each(|it| state.put(it))?;
    state.put(&own)?;
    Ok(ClaimReport { is_offline: true, ..report })
}

/// Like [`passed_over`], for the ready steps of a plan or of all plans.
fn skipped(sync: &Sync<'_>, plan: Option<&PlanId>, lost: &HashSet<StepId>) -> Result<HashSet<StepId>, Error> {
    let queue = candidates::look(sync.context, plan, lost)?;
    passed_over(sync, queue.into_iter().map(|it| it.step.id).collect(), lost)
}

/// The steps to leave out: those that other machines claimed first (`lost`), and the steps of the queue that are closed on
/// the shared branch. If `lost` is not empty, also a random number of steps at the front of the queue, fewer than
/// [`SPREAD`].
fn passed_over(
    sync: &Sync<'_>,
    queue: Vec<StepId>,
    lost: &HashSet<StepId>,
) -> Result<HashSet<StepId>, Error> {
    let mut skip = lost.clone();
    let queue: Vec<_> = queue.into_iter().filter(|it| !lost.contains(it)).collect();
    let closed = sync.closed_elsewhere(&queue)?;
    let open: Vec<_> = queue.into_iter().filter(|it| !closed.contains(it)).collect();
    skip.extend(closed);
    if !lost.is_empty() && !open.is_empty() {
        let mut byte = [0];
        sync.context.plans.random(&mut byte)?;
        let first = usize::from(byte[0]) % open.len().min(SPREAD);
        skip.extend(open.into_iter().take(first));
    }
    Ok(skip)
}

/// If steps are ready here, reports that other machines have claimed or finished them.
fn waiting(report: ClaimReport) -> ClaimReport {
    if report.state != State::Next.word() {
        return report;
    }
    let why = "other machines have claimed or finished the ready steps".to_owned();
    ClaimReport { state: State::Waiting.word(), why, ..report }
}

fn refuse_closed(sync: &Sync<'_>, id: &StepId) -> Result<(), Error> {
    if sync.closed_elsewhere(std::slice::from_ref(id))?.is_empty() {
        return Ok(());
    }
    let branch = sync.config.branch.as_deref().unwrap_or_default();
    let remote = &sync.config.remote;
    let message =
        format!("`{id}` was closed, moved or removed on {remote}/{branch}, which is not merged here");
    Err(Error::conflict("claimed", message, "merge it, for example with `git pull`"))
}

/// Undoes a claim on this machine that the registry did not confirm.
fn take_back(context: &Context, made: &MadeHere, claim: &Granted) -> Result<(), Error> {
    // The request did not ask for this undo, so the undo is not recorded under the request's idempotency key.
    idempotency::exclude_next_change(context);
    local::take_back(context, &made.step, &claim.id, made.file.as_ref())
}

fn take_back_of_run(context: &Context, begun: &Begun) -> Result<(), Error> {
    let file: Option<&FileBefore> = begun.file.as_ref();
    local::take_back(context, &begun.step.id, &begun.claim, file)
}

/// Whether a daemon runs, which then renews the records of this clone. Without the index, no daemon is asked, and the
/// answer is `false`.
fn has_daemon(context: &Context) -> bool {
    if context.reading == Reading::Files {
        return false;
    }
    match &context.freshness {
        Freshness::Attested(daemon) => matches!(daemon.daemon(), DaemonStatus::Running { .. }),
        Freshness::Unknown => false,
    }
}
