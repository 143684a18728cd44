//! `sync` and `sync status`: exchanges claims with the registry, and lists them.

pub mod init;
#[cfg(test)]
mod tests;

use std::collections::HashSet;

use serde::Serialize;
use serde_json::{Value, json};

use crate::api::context::Context;
use crate::api::error::Error;
use crate::api::requests::Mode;
use crate::plan::time::Time;
use crate::store::leases;
use crate::store::load::LoadQuery;
use crate::store::registry::record::State;
use crate::store::sync::claiming::is_due;
use crate::store::sync::seen::{Seen, SeenChange, What};
use crate::store::sync::state::{Last, OwnRecord, SyncState};
use crate::store::sync::{Sync, settling};

#[derive(Debug, Clone, Default)]
pub struct SyncRequest {
    pub mode: Mode,
}

/// A claim of a step, on this machine or another one.
#[derive(Debug, Clone, Serialize)]
pub struct SharedClaim {
    pub step: String,
    /// `claimed`, `completed`, `failed`, `blocked` or `skipped`. `None`: the record cannot be read.
    pub state: Option<&'static str>,
    pub claim: Option<String>,
    pub by: Option<String>,
    pub host: Option<String>,
    pub branch: Option<String>,
    /// When the record was last written, by the clock of the machine that wrote it.
    pub at: Option<Time>,
    /// This clone made the claim.
    pub own: bool,
    /// The claim of another clone has lapsed, so the step can be claimed.
    pub lapsed: bool,
    /// The registry has not confirmed the last change yet.
    pub unsettled: bool,
    /// Another clone has taken the step over from this one.
    pub lost: bool,
    /// Another clone ended the work on a branch that the remote does not have.
    pub ended_nowhere: bool,
}

#[derive(Debug, Clone, Serialize)]
pub struct SyncReport {
    pub dry_run: bool,
    pub remote: String,
    /// Where the claims are stored: a prefix of refs at the remote, or `postgres`.
    pub claims_at: String,
    pub branch: Option<String>,
    /// When the claims were last listed.
    pub listed_at: Option<Time>,
    /// Why the claims could not be listed now.
    pub error: Option<String>,
    pub claims: Vec<SharedClaim>,
    /// The claims of this clone that were settled, are still unsettled, or turned out to be lost.
    pub settled: Vec<SettledClaim>,
    /// The number of records that were removed. A record is removed if the shared branch contains its work, or if the step
    /// has another id on that branch. If the step is closed there, the record of another clone's lapsed claim is removed,
    /// too.
    pub removed: usize,
}

#[derive(Debug, Clone, Serialize)]
pub struct SettledClaim {
    pub step: String,
    /// `confirmed`, `lost`, `restored`, `released` or `unsettled`.
    pub what: &'static str,
    pub why: Option<String>,
}

impl SyncReport {
    pub fn to_json(&self) -> Value {
        json!(self)
    }

    /// 4 if a claim is still unsettled, or else 0.
    pub fn exit_code(&self) -> u8 {
        if self.settled.iter().any(|it| it.what == "unsettled") { 4 } else { 0 }
    }
}

/// Lists the claims, settles and renews those of this clone, and removes records that are no longer needed
/// ([`SyncReport::removed`]).
pub fn sync(context: &Context, request: &SyncRequest) -> Result<SyncReport, Error> {
    let sync = Sync::required(context)?;
    let looked = sync.look()?;
    if request.mode == Mode::DryRun {
        return Ok(SyncReport { dry_run: true, ..report(&sync, &looked.seen) });
    }
    if looked.is_unnamed {
        sync.name_registry()?;
    }
    announce_local(&sync)?;
    let settled = sync.settle(&looked.seen)?;
    let lost = renew_at(&sync)?;
    let superfluous = sync.superfluous(&looked.seen)?;
    let removed = sync.change_others(&superfluous)?;
    sync.note_branches()?;
    let seen = sync.look()?.seen;
    let settled = settled.into_iter().map(|it| SettledClaim { step: it.step, what: it.what, why: it.why });
    let lost = lost.into_iter().map(|it| SettledClaim { step: it.step.to_string(), what: "lost", why: None });
    Ok(SyncReport { settled: settled.chain(lost).collect(), removed, ..report(&sync, &seen) })
}

/// The claims as the registry has them now; if it does not answer or refuses, as they were last listed.
pub fn status(context: &Context) -> Result<SyncReport, Error> {
    let sync = Sync::required(context)?;
    match sync.look() {
        Ok(looked) => Ok(report(&sync, &looked.seen)),
        Err(error) if matches!(error.code(), "remote-unreachable" | "remote-refused") => {
            let error = Some(error.to_string());
            Ok(SyncReport { error, ..report(&sync, &sync.state.seen()) })
        }
        Err(error) => Err(error),
    }
}

/// If a claim in this working tree has no record in [`SyncState`], stores one. The record is missing, for example, if the
/// claim was made before claims were shared. [`Sync::settle`] then sends these records to the registry.
fn announce_local(sync: &Sync<'_>) -> Result<(), Error> {
    for (step, claim) in sync.unknown_claims()? {
        let own = OwnRecord::new(&sync.state, step, claim);
        sync.state.put(&OwnRecord { is_offline: true, ..own })?;
    }
    Ok(())
}

fn report(sync: &Sync<'_>, seen: &Seen) -> SyncReport {
    let Last { at, error } = sync.state.last();
    let own = sync.state.all_own();
    let is_own = |id: &str| own.iter().any(|it| it.claim == id && !it.is_lost);
    let mut claims: Vec<_> = Vec::new();
    for (name, sighting) in seen.records.iter().filter(|(name, _)| name.is_in(sync.state.dir())) {
        let record = sighting.record.as_ref();
        if record.is_some_and(|it| is_own(&it.id)) {
            continue;
        }
        let step = record.and_then(|it| it.step_id()).map_or_else(|| name.to_string(), |it| it.to_string());
        claims.push(SharedClaim {
            step,
            state: record.map(|it| it.state.word()),
            claim: record.map(|it| it.id.clone()),
            by: record.map(|it| it.by.clone()),
            host: record.map(|it| it.host.clone()),
            branch: record.and_then(|it| it.short_branch()).map(str::to_owned),
            at: record.map(|it| it.at),
            own: false,
            lapsed: sighting.has_lapsed,
            unsettled: false,
            lost: false,
            ended_nowhere: sighting.is_branch_gone && record.is_some_and(|it| it.state.has_ended()),
        });
    }
    // A moved step is listed once, under its present id.
    claims.extend(own.iter().filter(|it| it.under.is_none()).map(own_claim));
    claims.sort_unstable_by(|a, b| (&a.step, a.own).cmp(&(&b.step, b.own)));
    SyncReport {
        dry_run: false,
        remote: sync.config.remote.clone(),
        claims_at: sync.config.claims_text(),
        branch: sync.config.branch.clone(),
        listed_at: at,
        error,
        claims,
        settled: Vec::new(),
        removed: 0,
    }
}

fn own_claim(own: &OwnRecord) -> SharedClaim {
    let record = own.record();
    SharedClaim {
        step: own.step.to_string(),
        state: Some(own.state().unwrap_or(State::Claimed).word()),
        claim: Some(own.claim.clone()),
        by: record.as_ref().map(|it| it.by.clone()),
        host: record.as_ref().map(|it| it.host.clone()),
        branch: record.as_ref().and_then(|it| it.short_branch()).map(str::to_owned),
        at: record.as_ref().map(|it| it.at),
        own: true,
        lapsed: false,
        unsettled: own.is_unsettled(),
        lost: own.is_lost,
        ended_nowhere: false,
    }
}

/// What another machine did with a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Elsewhere {
    pub step: String,
    pub plan: String,
    pub title: String,
    /// Relative to the plans directory.
    pub path: String,
    pub did: DidElsewhere,
    pub by: String,
    pub host: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DidElsewhere {
    Claimed,
    /// The claim was released, or has lapsed.
    Released,
    /// The work has ended with this status.
    Ended(&'static str),
}

/// What a watching process has reported: the last listing, and the claims of this clone at that time.
///
/// Other commands of this clone list the claims, too, so the listing that the clone stores may be newer.
#[derive(Debug, Default)]
pub struct Reported {
    seen: Option<Seen>,
    own: HashSet<String>,
}

/// Lists the claims and renews those of this clone that are due, for a process that watches. Does not settle other changes
/// of this clone. Returns what other clones did since the last successful call. The first call compares with the stored
/// listing.
pub fn watch(context: &Context, reported: &mut Reported) -> Result<Vec<Elsewhere>, Error> {
    match Sync::of(context)? {
        Some(sync) => watch_at(&sync, reported),
        None => Ok(Vec::new()),
    }
}

/// Renews the claims of this clone that are due, for a process that serves an agent.
pub fn renew(context: &Context) -> Result<(), Error> {
    // Usually no claim is due. In that case git is not started.
    let is_due = |it: &SyncState| it.all_own().iter().any(|own| is_due(context, own));
    match SyncState::of(context).is_some_and(|it| is_due(&it)) {
        true => Sync::of(context)?.map_or(Ok(()), |it| renew_at(&it).map(drop)),
        false => Ok(()),
    }
}

/// Renews the claims that are due, as [`Sync::renew_due`] decides. Returns those that other clones have taken over.
fn renew_at(sync: &Sync<'_>) -> Result<Vec<OwnRecord>, Error> {
    let lost = sync.renew_due()?;
    lost.iter().for_each(|it| leases::forget(sync.context, &it.step));
    Ok(lost)
}

fn watch_at(sync: &Sync<'_>, reported: &mut Reported) -> Result<Vec<Elsewhere>, Error> {
    let own = || sync.state.all_own().into_iter().map(|it| it.claim);
    // A command may make or give up a claim of this clone while the claims are listed. So the clone's claims are read both
    // before and after the listing.
    let mut known: HashSet<String> = own().collect();
    let before = reported.seen.clone().unwrap_or_else(|| sync.state.seen());
    let seen = sync.look()?.seen;
    known.extend(own());
    renew_at(sync)?;
    let is_own = |it: &SeenChange| known.contains(&it.record.id) || reported.own.contains(&it.record.id);
    let changes = seen.changes_since(&before).into_iter().filter(|it| !is_own(it));
    let changes = changes.filter_map(|it| elsewhere(sync.context, &it)).collect();
    *reported = Reported { seen: Some(seen), own: known };
    Ok(changes)
}

/// Arranges that `on_change` is called soon after another client has changed a record. Renewals are not reported, and other
/// changes can be missed. Returns false if claims are not shared, the registry cannot be opened, or it cannot report
/// changes.
pub fn on_change(context: &Context, on_change: Box<dyn Fn() + Send + std::marker::Sync>) -> bool {
    Sync::of(context).ok().flatten().is_some_and(|it| it.watch(on_change))
}

/// `None`: the record does not say which step it is for, the plans here do not have the step, or it cannot be loaded.
fn elsewhere(context: &Context, change: &SeenChange) -> Option<Elsewhere> {
    let id = change.record.step_id()?;
    let plans = LoadQuery::step(&id).without_claims().load(context).ok()?.plans;
    let step = plans.step(&id)?;
    let did = match change.what {
        What::Claimed => DidElsewhere::Claimed,
        What::Released | What::Lapsed => DidElsewhere::Released,
        What::Ended(state) => DidElsewhere::Ended(state.word()),
    };
    Some(Elsewhere {
        step: id.to_string(),
        plan: id.plan.to_string(),
        title: step.title.clone(),
        path: step.path.clone(),
        did,
        by: change.record.by.clone(),
        host: change.record.host.clone(),
    })
}

/// The steps with a change by this clone that the registry has not confirmed. Steps that another process is changing now are
/// left out.
pub fn unsettled(context: &Context) -> Vec<String> {
    settling::unsettled(context).iter().map(|it| it.to_string()).collect()
}
