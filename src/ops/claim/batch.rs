//! Claims that the daemon makes for other processes.
//!
//! A command that wants the most urgent step of all plans delegates the claim to the daemon, if one runs. The daemon
//! makes simultaneous claims together: it reads the plans once and takes the locks once. Its reply contains a claimed
//! step or nothing. A command that gets no step searches for one itself. If it finds none either, it reports why.
//!
//! # Lost replies
//! The caller chooses the claim's id and a deadline. The daemon checks the deadline under the lock. A caller that takes
//! the lock after the deadline therefore finds in the records whether the claim was made.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use super::renew::{RenewRequest, renew};
use super::{Ask, ClaimReport, ClaimRequest, Granted, begin, fresh_id, take_first, unclaimed};
use crate::api::context::{Context, Reading};
use crate::api::daemon::{ClaimReply, ClaimedStep, DelegatedClaim, Freshness};
use crate::api::error::Error;
use crate::plan::id::StepId;
use crate::plan::time::Time;
use crate::store::claims::candidates::{self, Ready};
use crate::store::claims::daemon_queue::{QueueCache, Since};
use crate::store::leases::{Leases, NEAR, Sharing};
use crate::store::load;
use crate::store::transaction::Mode;

/// The set of steps to skip. It is empty, because the daemon makes no claims that are shared with other machines.
static NONE: OnceLock<HashSet<StepId>> = OnceLock::new();

/// The time within which the daemon has to begin a delegated claim. Afterwards the caller claims on its own.
const BEGIN_WITHIN: Duration = Duration::from_millis(800);

impl From<ClaimedStep> for ClaimReport {
    fn from(handed: ClaimedStep) -> Self {
        let ClaimedStep { claim, step, why, diff, notices: _ } = handed;
        Self { diff, ..Self::of(step, why, claim) }
    }
}

impl DelegatedClaim {
    pub(crate) fn of(context: &Context, request: &ClaimRequest) -> Result<Self, Error> {
        let now = context.plans.disk().now_ns();
        let before = now.saturating_add(i128::try_from(BEGIN_WITHIN.as_nanos()).unwrap_or(0));
        Ok(Self {
            claim: fresh_id(context)?,
            by: request.by.clone().unwrap_or_else(|| context.by.clone()),
            requester: context.by.clone(),
            lease: request.lease.unwrap_or(context.config.lease()),
            at: context.now,
            begin_before: i64::try_from(before).unwrap_or(0),
            environment: environment(context),
        })
    }

    fn may_be_begun(&self, context: &Context) -> bool {
        let is_near = |a: Time, b: Time| a <= b.plus_seconds(NEAR);
        let is_same_time = is_near(self.at, context.now) && is_near(context.now, self.at);
        is_same_time && context.plans.disk().now_ns() < i128::from(self.begin_before)
    }
}

/// A hash of the settings that claims depend on; the daemon serves only callers with the same value.
fn environment(context: &Context) -> String {
    let (root, reader) = (context.plans.root(), candidates::reader_of(context));
    let place = Leases::of(context).location();
    let how = format!("{reader} {root:?} {place} {}", context.config.max_attempts());
    blake3::hash(how.as_bytes()).to_hex()[..32].to_owned()
}

/// Delegates the claim to the daemon; none if this process has to make it.
pub(super) fn by_another(context: &Context, request: &ClaimRequest) -> Result<Option<ClaimReport>, Error> {
    let Freshness::Attested(daemon) = &context.freshness else { return Ok(None) };
    let ClaimRequest { force, mode, pid, .. } = *request;
    // A process id is valid only on its own machine, or in its container.
    let is_usual = mode == Mode::Write && !force && pid.is_none() && context.expected.is_none();
    if !is_usual || context.reading == Reading::Files {
        return Ok(None);
    }
    match daemon.claim(&|| DelegatedClaim::of(context, request).ok()) {
        ClaimReply::Claimed(mut handed) => {
            context.kept.note_change();
            std::mem::take(&mut handed.notices).into_iter().for_each(|it| context.notify(it));
            Ok(Some(handed.into()))
        }
        ClaimReply::Nothing => Ok(None),
        ClaimReply::Unheard(delegated) => made_after_all(context, delegated),
    }
}

fn made_after_all(context: &Context, delegated: DelegatedClaim) -> Result<Option<ClaimReport>, Error> {
    // If the daemon has begun the claim, it holds the locks until the claim is made or the daemon dies. Taking them waits
    // for that.
    drop(begin(context, "claim", Mode::Write, Sharing::Waived)?);
    let request = RenewRequest { claim: delegated.claim, lease: Some(delegated.lease), mode: Mode::Write };
    match renew(context, &request) {
        // The daemon did not complete the claim, so this process makes one.
        Err(Error::ClaimGone { .. }) => Ok(None),
        renewed => renewed.map(Some),
    }
}

/// Makes all of these claims together, and returns the reply to each.
///
/// `since` reports the changes since its last call, so only `queue_cache` may call it. `is_there` is called under the lock:
/// no claim is made for a caller that has disconnected.
pub fn claim_together(
    context: &Context,
    delegated_claims: &[DelegatedClaim],
    queue_cache: &mut QueueCache,
    since: Since<'_>,
    is_there: &(dyn Fn(&DelegatedClaim) -> bool + Sync),
) -> Vec<ClaimReply> {
    let own = environment(context);
    let is_ours = |it: &&DelegatedClaim| it.environment == own && it.may_be_begun(context);
    let ours: Vec<_> = delegated_claims.iter().filter(is_ours).collect();
    let mut ran = HashMap::new();
    // A cached queue lists only some of the ready steps, so the second round may find more.
    for _ in 0..2 {
        let left: Vec<_> = ours.iter().copied().filter(|it| !ran.contains_key(&it.claim)).collect();
        if left.is_empty() {
            break;
        }
        let (queue, is_cached) = match queue_cache.queue(context, &own, since) {
            Some((queue, is_cached)) => (Ok(queue), is_cached),
            None => (candidates::look(context, None, &HashSet::new()), false),
        };
        let claims = queue.and_then(|queue| claim_all(context, &left, queue, is_there));
        for Claimed { delegated, lease, file: (path, hash), reply } in claims.unwrap_or_default() {
            queue_cache.claimed(&path, &hash, lease);
            ran.insert(delegated, reply);
        }
        if !is_cached {
            break;
        }
    }
    delegated_claims.iter().map(|it| ran.remove(&it.claim).unwrap_or(ClaimReply::Nothing)).collect()
}

struct Claimed {
    /// The claim's id.
    delegated: String,
    lease: i64,
    /// The path of the step's file, and the hash of its content after the claim.
    file: (String, String),
    reply: ClaimReply,
}

/// Claims the first steps of a queue for the callers, and takes the locks only once. Some callers may get no step.
fn claim_all(
    context: &Context,
    delegated_claims: &[&DelegatedClaim],
    queue: Vec<Ready>,
    is_there: &(dyn Fn(&DelegatedClaim) -> bool + Sync),
) -> Result<Vec<Claimed>, Error> {
    if queue.is_empty() {
        return Ok(Vec::new());
    }
    let (writing, locked) = begin(context, "claim", Mode::Write, Sharing::Wanted)?;
    let free = Mutex::new(unclaimed(queue, &locked));
    let next = || free.lock().unwrap_or_else(PoisonError::into_inner).next();
    let granted = load::at_once(delegated_claims, |nth, delegated| {
        let is_wanted = delegated.may_be_begun(context) && is_there(delegated);
        let ask = is_wanted.then(|| delegated.ask(context))?;
        let mut writing = writing.for_thread(nth as u64, "claim", &delegated.requester);
        let tried = &mut HashSet::new();
        let grant =
            take_first(&ask, &mut writing, &locked, tried, std::iter::from_fn(next)).ok().flatten()?;
        Some((grant, writing.cut()))
    });
    drop(free);
    drop(locked);
    writing.end();
    let claimed = granted.into_iter().zip(delegated_claims).filter_map(|(it, delegated)| {
        let (grant, shown) = it?;
        let file = grant.made.file();
        let reply = match grant.made.into_done(context) {
            Ok(done) => {
                let until = context.now.plus_seconds(delegated.lease);
                let claim = Granted { id: delegated.claim.clone(), until: Some(until) };
                let (step, diff) = (done.changed.now, shown.diff(context));
                ClaimReply::Claimed(ClaimedStep { claim, step, why: grant.why, diff, notices: Vec::new() })
            }
            // The claim is made, and its caller will find the record.
            Err(_) => ClaimReply::Unheard((*delegated).clone()),
        };
        Some(Claimed { delegated: delegated.claim.clone(), lease: delegated.lease, file, reply })
    });
    Ok(claimed.collect())
}

impl DelegatedClaim {
    fn ask<'a>(&'a self, context: &'a Context) -> Ask<'a> {
        let Self { claim, by, lease, .. } = self;
        let skip = NONE.get_or_init(HashSet::new);
        Ask { context, id: claim.clone(), by, lease: *lease, process: None, force: false, skip }
    }
}
