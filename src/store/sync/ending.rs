//! The fence: work ends at the registry before it ends in the step's file.
//!
//! The record gets the final state, on the condition that it still has this clone's value. If another clone has taken
//! the step over, this change fails, and the late result is refused here. If the registry does not answer, the end is
//! written into the file and stays unsettled.

use std::collections::HashMap;
use std::path::Path;

use super::claiming::is_due;
use super::settling::holder;
use super::state::{FileBefore, OwnRecord, SyncState, Wanted};
use super::{Pushed, Sync, local};
use crate::api::context::{Context, Notice};
use crate::api::error::Error;
use crate::disk::Process;
use crate::plan::id::{PlanId, StepId, read_step_id};
use crate::plan::read;
use crate::plan::words::StepStatus;
use crate::store::fencing::Caller;
use crate::store::leases::{self, Leases};
use crate::store::load::LoadQuery;
use crate::store::registry::record::{Record, State};
use crate::store::resolve;
use crate::store::transaction::{ChangeReport, Changed, Mode};

/// The result of a fence.
#[derive(Debug)]
pub(crate) enum Fenced {
    /// This clone has no record to end, so only the rules of this machine apply.
    NoRecord,
    /// The step's file may be written now.
    Passed,
    /// Another clone has the step. The id is that of this clone's claim.
    Lost { claim: String },
    /// Another clone took the step over earlier, and may have released it since.
    LostBefore { claim: String },
}

/// Ends the record of a step, and the records of the same claim under earlier ids, before the step's file is written. If
/// `claim` is given, and the step's record is that of another claim, nothing is changed.
pub(crate) fn fence(
    context: &Context,
    step: &StepId,
    claim: Option<&str>,
    state: State,
) -> Result<Fenced, Error> {
    let Some(own) = own_by_claim(context, step).filter(|it| claim.is_none_or(|id| it.claim == id)) else {
        return Ok(Fenced::NoRecord);
    };
    // The lost claim is in the step's file of another working tree, not in the file here.
    if own.is_lost && own.must_be_taken_back && !local::is_here(context, step, &own.claim)? {
        return Ok(Fenced::NoRecord);
    }
    if own.is_lost {
        return Ok(Fenced::LostBefore { claim: own.claim });
    }
    // The record already has this state: the request is repeated, perhaps after a crash.
    if own.state() == Some(state) {
        return Ok(Fenced::Passed);
    }
    let sync = match Sync::of(context) {
        Ok(Some(sync)) => sync,
        Ok(None) => return Ok(Fenced::NoRecord),
        Err(error) => return unreached(context, own, &error),
    };
    // If the step's id in its file differs from its id in the record, for example on another branch, the record is first
    // moved to the id in the file. If the registry does not do that, the record under the old id is ended.
    let own = if own.step == *step || !sync.move_records(&[(own.clone(), step.clone())])? {
        own
    } else {
        sync.state.own(step).unwrap_or(own)
    };
    let writer = Process::find(context.plans.disk(), std::process::id());
    let tree = Some(sync.state.worktree.root.clone());
    let claim = own.claim.clone();
    let Some(own) = sync.ended_here(sync.with_own_value(own)?, state)? else { return Ok(Fenced::NoRecord) };
    let file = own.file.clone().filter(|it| is_untouched(context, it));
    let own = OwnRecord { writer, tree, file, must_be_taken_back: false, ..own };
    if own.is_offline {
        sync.state.put(&own)?;
        unsettled(context, step, "the claim, or an earlier change of it, was not sent yet");
        return Ok(Fenced::Passed);
    }
    // After `planwatch move`, a step usually also has a record under each earlier id. A clone that has not received the move
    // yet may have taken the step over under such an id. So these records are ended first.
    let mut ends = Vec::new();
    for it in sync.state.siblings(&own) {
        let (writer, tree) = (own.writer.clone(), own.tree.clone());
        ends.extend(sync.ended_here(OwnRecord { writer, tree, ..it }, state)?);
    }
    for own in ends.into_iter().chain([own]) {
        match sync.push(own, &[])? {
            Pushed::Done => {}
            Pushed::Unsettled(error) => unsettled(context, step, &sync.error(&error).to_string()),
            Pushed::Lost(_) => {
                leases::forget(context, step);
                return Ok(Fenced::Lost { claim });
            }
        }
    }
    Ok(Fenced::Passed)
}

/// Marks a record as unsettled because this clone cannot contact the registry at all, for example because it has no
/// remote of the configured name. `settling` reads from the step's file how the work ended.
fn unreached(context: &Context, own: OwnRecord, why: &Error) -> Result<Fenced, Error> {
    let Some(state) = SyncState::of(context) else { return Ok(Fenced::NoRecord) };
    let file = own.file.clone().filter(|it| is_untouched(context, it));
    let own = OwnRecord { is_offline: true, file, ..own };
    state.put(&own)?;
    unsettled(context, &own.step, &why.to_string());
    Ok(Fenced::Passed)
}

/// Restores the records that a fence has ended, because the step's file was not written after the fence. Changes nothing if
/// the record has not ended.
pub(crate) fn put_back(context: &Context, step: &StepId) {
    let Some(own) = own_by_claim(context, step).filter(|it| it.state().is_some_and(State::has_ended)) else {
        return;
    };
    let back = || {
        let Some(sync) = Sync::of(context)? else { return Ok(()) };
        for own in sync.state.siblings(&own).into_iter().chain([own]) {
            let Some(own) = sync.in_state(own, State::Claimed)? else { continue };
            sync.push(OwnRecord { writer: None, ..own }, &[])?;
        }
        Ok(())
    };
    let put: Result<(), Error> = back();
    if let Err(error) = put {
        unsettled(context, step, &error.to_string());
    }
}

/// Whether a file is unchanged since this clone wrote it.
fn is_untouched(context: &Context, file: &FileBefore) -> bool {
    context.plans.read(Path::new(&file.path)).is_ok_and(|it| read::etag(&it.bytes) == file.left)
}

/// Notes that the file of a step was written after the fence, and has this etag now.
pub(crate) fn written(context: &Context, step: &StepId, etag: Option<&str>) {
    let Some((state, own)) = SyncState::of(context).zip(own_by_claim(context, step)) else { return };
    for sibling in state.siblings(&own).into_iter().filter(|it| it.writer.is_some()) {
        state.put(&OwnRecord { writer: None, ..sibling }).ok();
    }
    if own.writer.is_some() || own.file.is_some() {
        let file = own.file.clone().zip(etag).map(|(it, left)| FileBefore { left: left.to_owned(), ..it });
        // If this write fails, a later command compares the file with the record again.
        state.put(&OwnRecord { writer: None, file, ..own }).ok();
    }
}

/// Removes this clone's record of a step that is free again.
pub(crate) fn released(context: &Context, step: &StepId) {
    let Some(own) = own_of(context, step).filter(|it| !it.is_lost) else { return };
    let withdraw = || {
        let Some(sync) = Sync::of(context)? else { return Ok(()) };
        for own in sync.state.siblings(&own).into_iter().chain([own]) {
            if let Pushed::Unsettled(error) = sync.withdraw(own)? {
                unsettled(context, step, &sync.error(&error).to_string());
            }
        }
        sync.restore_earlier(step)?;
        Ok(())
    };
    let withdrawn: Result<(), Error> = withdraw();
    if let Err(error) = withdrawn {
        unsettled(context, step, &error.to_string());
    }
}

/// The fences of one request. They are raised before the lock of the plans directory is taken.
#[derive(Debug, Default)]
pub(crate) struct Fences {
    passed: Vec<StatusMove>,
    lost: HashMap<StepId, String>,
    lost_before: HashMap<StepId, String>,
}

impl Fences {
    /// Ends this clone's records of the steps whose work ends.
    fn raise(context: &Context, change: &StatusChange<'_>) -> Result<Self, Error> {
        let mut fences = Self::default();
        let Some(known) = SyncState::of(context).filter(SyncState::has_any) else { return Ok(fences) };
        for it in &change.moves {
            let Some(state) = State::of(it.status) else { continue };
            let step = &it.step;
            let is_of_run = || {
                let record = known.own(step).and_then(|it| Leases::of(context).find(&it.claim));
                state == State::Completed && record.is_some_and(|it| it.run.is_some())
            };
            // A run ends the record after it has verified the work.
            if is_of_run() || !(change.may_end)(step) {
                continue;
            }
            let fenced =
                fence(context, step, change.claim, state).inspect_err(|_| fences.close(context, &[]));
            match fenced? {
                Fenced::NoRecord => {}
                Fenced::Passed => fences.passed.push(it.clone()),
                Fenced::Lost { claim } => drop(fences.lost.insert(step.clone(), claim)),
                Fenced::LostBefore { claim } => drop(fences.lost_before.insert(step.clone(), claim)),
            }
        }
        Ok(fences)
    }

    /// Notes in the caller whether another machine has taken the step over, now or earlier.
    pub(crate) fn caller(&self, step: &StepId, who: Caller) -> Caller {
        match self.lost.get(step) {
            Some(claim) => {
                Caller { is_overtaken: true, claim: who.claim.or_else(|| Some(claim.clone())), ..who }
            }
            None => Caller { lost: self.lost_before.get(step).cloned(), ..who },
        }
    }

    /// Completes the fences of the files that were written, and restores the records of the others.
    fn close(&self, context: &Context, changes: &[Changed]) {
        for StatusMove { step, to, .. } in &self.passed {
            match changes.iter().find(|it| it.id == to.to_string()) {
                Some(changed) => written(context, step, changed.now["etag"].as_str()),
                None => put_back(context, step),
            }
        }
    }
}

/// A step whose status a request changes.
#[derive(Debug, Clone)]
pub(crate) struct StatusMove {
    pub(crate) step: StepId,
    pub(crate) status: StepStatus,
    /// The step's id after the request.
    pub(crate) to: StepId,
}

/// The changes of status that one request makes and that other machines must see.
pub(crate) struct StatusChange<'a> {
    moves: Vec<StatusMove>,
    claim: Option<&'a str>,
    /// Whether the rules of this machine allow the end of a step's work.
    may_end: &'a dyn Fn(&StepId) -> bool,
}

impl<'a> StatusChange<'a> {
    /// `None` if claims are not shared, if the request is a dry run, or if no status is requested. Ids that name no step
    /// are left out.
    pub(crate) fn of(
        context: &Context,
        mode: Mode,
        ids: &[String],
        (status, claim): (Option<StepStatus>, Option<&'a str>),
        may_end: &'a dyn Fn(&StepId) -> bool,
    ) -> Option<Self> {
        let status = status.filter(|_| context.config.sync.is_some() && mode == Mode::Write)?;
        let steps = ids.iter().filter_map(|it| resolve::id_of_step(context, it));
        let moves = steps.map(|step| StatusMove { to: step.clone(), step, status }).collect();
        Some(Self { moves, claim, may_end })
    }

    /// For a request that changes the statuses of several steps, and that is allowed by the rules of this machine.
    pub(crate) fn allowed(moves: Vec<StatusMove>) -> Self {
        Self { moves, claim: None, may_end: &|_| true }
    }
}

/// Whether this clone has a record of a step of this plan.
pub(crate) fn has_records(context: &Context, plan: &PlanId) -> bool {
    SyncState::of(context).is_some_and(|it| it.all_own().iter().any(|it| it.step.plan == *plan))
}

/// Ends the records of the steps whose work the request ends, then calls `write`.
///
/// If `write` succeeds, the records of the changed steps are then updated. The record of a step that `change` sets to
/// pending is deleted. The record of a step that `change` sets to another status is renewed if that is due. Without a
/// `change`, the record of each changed step is renewed if that is due; none is deleted.
pub(crate) fn fenced(
    context: &Context,
    change: Option<&StatusChange<'_>>,
    write: impl FnOnce(&Fences) -> Result<ChangeReport, Error>,
) -> Result<ChangeReport, Error> {
    let fences = change.map(|it| Fences::raise(context, it)).transpose()?.unwrap_or_default();
    let written = write(&fences);
    let changed = written.as_ref().map(|it| it.changes.as_slice()).unwrap_or_default();
    fences.close(context, changed);
    if written.as_ref().is_ok_and(|it| !it.is_dry_run) {
        for id in changed.iter().filter_map(|it| read_step_id(&it.id)) {
            match change.map(|it| it.moves.iter().find(|it| it.to == id)) {
                Some(Some(it)) if it.status == StepStatus::Pending => released(context, &it.step),
                Some(Some(it)) => renewed(context, &it.step),
                // The request changes the file of this step, but not its status. The step may have another owner.
                Some(None) => {}
                None => renewed(context, &id),
            }
        }
    }
    written
}

/// Renews a record after a change by its owner, if a quarter of its ttl has passed since the registry confirmed it.
pub(crate) fn renewed(context: &Context, step: &StepId) {
    let Some(own) = own_of(context, step).filter(|it| !it.is_lost && !it.is_offline) else { return };
    let renew = || -> Result<(), Error> {
        let Some(sync) = Sync::of(context)?.filter(|_| is_due(context, &own)) else { return Ok(()) };
        sync.renew(&|it| it.claim == own.claim).map(drop)
    };
    // An error is ignored, because the record is still valid for a while and the next renewal tries again.
    renew().ok();
}

/// Renews the record of a claim, even if that is not due. Returns whether another clone has taken over its step.
///
/// Without an answer of the registry, the claim counts as held.
pub(crate) fn is_lost_now(context: &Context, step: &StepId, claim: &str) -> bool {
    let known = SyncState::of(context).and_then(|it| it.of_claim(claim));
    let Some(own) = known.filter(|it| !it.is_lost && !it.is_offline) else { return false };
    let renew = || match Sync::of(context)? {
        Some(sync) => sync.renew(&|it| it.claim == own.claim),
        None => Ok(Vec::new()),
    };
    let is_lost = renew().is_ok_and(|it| !it.is_empty());
    if is_lost {
        leases::forget(context, step);
    }
    is_lost
}

/// Whether another clone has taken over a claim of this clone.
pub(crate) fn is_lost(context: &Context, step: &StepId, claim: &str) -> bool {
    own_of(context, step).is_some_and(|it| it.is_lost && it.claim == claim)
}

fn own_of(context: &Context, step: &StepId) -> Option<OwnRecord> {
    let state = SyncState::of(context).filter(|it| it.has_own(step))?;
    state.own(step)
}

/// The record of the claim in the step's file. If the file has no claim, the record of the claim that the last attempt
/// ended. On another branch, or after another program renamed the file, this record can be under another id. If there is
/// no such record, the record under the step's id.
fn own_by_claim(context: &Context, step: &StepId) -> Option<OwnRecord> {
    let state = SyncState::of(context).filter(SyncState::has_any)?;
    let named = state.own(step);
    let in_file = LoadQuery::step(step).without_claims().load(context).ok().and_then(|it| {
        let step = it.plans.step(step)?;
        let last = || step.attempts.last().and_then(|it| it.claim().map(str::to_owned));
        step.claim.as_ref().map(|it| it.id.clone()).or_else(last)
    });
    match in_file {
        Some(claim) if named.as_ref().is_none_or(|it| it.claim != claim) => state.of_claim(&claim).or(named),
        _ => named,
    }
}

/// Removes another clone's record of a step, for a release with `--force`. Returns the holder of the removed record.
pub(crate) fn release_foreign(context: &Context, step: &StepId) -> Result<Option<String>, Error> {
    let Some(sync) = Sync::of(context)? else { return Ok(None) };
    let name = sync.state.name_of(step);
    let mut removed = None;
    for _ in 0..2 {
        let seen = sync.look()?.seen;
        let own = sync.state.own_of(&name).filter(|it| !it.is_lost);
        let there = seen.records.get(&name);
        let foreign = there.filter(|it| {
            own.as_ref().is_none_or(|own| it.record.as_ref().is_none_or(|it| it.id != own.claim))
        });
        let Some(foreign) = foreign else { break };
        if sync.delete(&name, &foreign.revision)? {
            removed = Some(holder(foreign.record.as_ref()));
        }
    }
    Ok(removed)
}

pub(crate) fn unsettled(context: &Context, step: &StepId, why: &str) {
    context.notify(Notice::Unsettled { step: step.to_string(), why: why.to_owned() });
}

impl Sync<'_> {
    /// Returns `own` with a wanted value: the same record in the state `state`. `None` if `own` has no value yet, or if its
    /// newest value cannot be read.
    pub(crate) fn in_state(&self, own: OwnRecord, state: State) -> Result<Option<OwnRecord>, Error> {
        self.wanting(own, state, |it| it)
    }

    /// Like [`Self::in_state`], for work that ended in this working tree. Since the claim was made, another branch may have
    /// been checked out.
    pub(crate) fn ended_here(&self, own: OwnRecord, state: State) -> Result<Option<OwnRecord>, Error> {
        let branch = self.head();
        self.wanting(own, state, |it| it.on(branch.as_deref()))
    }

    fn wanting(
        &self,
        own: OwnRecord,
        state: State,
        change: impl FnOnce(Record) -> Record,
    ) -> Result<Option<OwnRecord>, Error> {
        let Some(record) = own.record() else { return Ok(None) };
        let value = self.value(&change(record.again(state, self.context.now, self.nonce()?)))?;
        let from = match &own.wanted {
            Some(Wanted::Value { from, .. }) => from.clone(),
            _ => None,
        };
        Ok(Some(OwnRecord { wanted: Some(Wanted::Value { value, from }), ..own }))
    }
}
