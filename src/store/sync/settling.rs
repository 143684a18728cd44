//! Finishes changes that a crash, a lost answer or a missing connection interrupted.
//!
//! Each record of this clone is compared with the step's file, because the file shows what happened on this machine.

use std::collections::BTreeSet;

use super::claiming::LocalClaim;
use super::seen::Seen;
use super::state::{OwnRecord, SyncState, Wanted};
use super::{Pushed, Sync, ending, local};
use crate::api::context::Context;
use crate::api::error::Error;
use crate::disk::{self, DiskError, ProcessState};
use crate::plan::id::StepId;
use crate::plan::model::Step;
use crate::store::leases::{self, Leases};
use crate::store::load::LoadQuery;
use crate::store::registry::record::{Record, State};

/// The result for one record of this clone.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub(crate) struct Settled {
    pub(crate) step: String,
    /// `confirmed`, `lost`, `restored`, `released` or `unsettled`.
    pub(crate) what: &'static str,
    pub(crate) why: Option<String>,
}

/// The state of a claim according to the files and leases of this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Here {
    AtWork,
    Ended(State),
    Unknown,
}

impl Sync<'_> {
    /// Whether a record of this clone must be settled before another change is made.
    pub(crate) fn has_unsettled(&self) -> bool {
        self.state.all_own().iter().any(|it| it.is_unsettled() || it.writer.is_some() || it.is_lost)
    }

    /// Settles the records of this clone. `seen` is a current listing.
    pub(crate) fn settle(&self, seen: &Seen) -> Result<Vec<Settled>, Error> {
        let mut settled = Vec::new();
        let is_moved = self.follow_files(&self.state.all_own(), false)?;
        let seen = if is_moved { &self.state.seen() } else { seen };
        for own in self.state.all_own() {
            // Settling another record of the claim may have changed this one.
            let Some(own) = self.state.own_of(&own.name).filter(|it| it.claim == own.claim) else { continue };
            settled.extend(self.settle_one(own, seen, false)?);
        }
        Ok(settled)
    }

    fn settle_one(&self, own: OwnRecord, seen: &Seen, is_undone: bool) -> Result<Option<Settled>, Error> {
        if self.is_busy(&own) {
            return Ok(None);
        }
        let (id, step) = self.located(&own)?;
        let id = &id;
        if own.is_lost && own.must_be_taken_back {
            return self.take_back_later(&own, id, step.as_ref(), seen);
        }
        let here = self.here(step.as_ref(), &own);
        if own.is_lost {
            if here == Here::Unknown || step.as_ref().is_none_or(|it| !it.has_claim(&own.claim)) {
                self.state.remove(&own.name)?;
            }
            return Ok(None);
        }
        let own = self.with_value(own, id, step.as_ref())?;
        let is_of_here = is_undone || !self.is_of_other_tree(&own);
        // If the process died before it wrote the end of the work into the file, or if the end was undone, the file
        // decides. In other cases, the file may be older than the end of the work.
        let is_open = own.writer.is_some() || is_undone;
        let (own, what) = match (own.state(), here) {
            // The claim was made or ended in another working tree. The step's file here may be older or newer than the
            // one there.
            _ if !is_of_here && own.is_unsettled() => (Some(own), "confirmed"),
            (Some(State::Claimed), Here::Ended(_) | Here::Unknown) if !is_of_here => return Ok(None),
            (Some(State::Claimed), Here::Ended(state)) => (self.ended_here(own, state)?, "confirmed"),
            (Some(State::Claimed), Here::Unknown) => {
                let held = own.newest().cloned();
                (Some(OwnRecord { held, wanted: Some(Wanted::Gone), ..own }), "released")
            }
            (Some(state), Here::AtWork) if state.has_ended() && is_of_here && is_open => {
                (self.in_state(own, State::Claimed)?.map(|it| OwnRecord { writer: None, ..it }), "restored")
            }
            _ if own.is_unsettled() => (Some(own), "confirmed"),
            (Some(state), _) if state.has_ended() && !seen.records.contains_key(&own.name) => {
                // Another clone removed the record because the work is merged, or `push --mirror` deleted it.
                if own.record().map_or(Ok(true), |it| self.is_merged(&it))? {
                    self.state.remove(&own.name)?;
                    return Ok(None);
                }
                (self.in_state(own, state)?, "restored")
            }
            (Some(State::Claimed), Here::AtWork) => return self.check_held(own, id, seen),
            _ => return Ok(None),
        };
        let Some(own) = own else { return Ok(None) };
        // If the push shows that the claim is lost, the loss is stored before any file is changed. After a crash, the
        // next call can then undo the claim. A call in another working tree can undo it in that tree's file.
        let own = OwnRecord { must_be_taken_back: true, ..own };
        let claim = own.clone();
        let why = match self.push(own, &[])? {
            Pushed::Done => return Ok(Some(Settled { step: id.to_string(), what, why: None })),
            Pushed::Unsettled(error) => {
                let why = Some(self.error(&error).to_string());
                return Ok(Some(Settled { step: id.to_string(), what: "unsettled", why }));
            }
            Pushed::Lost(holder) => holder,
        };
        self.take_back(&claim, id, step.as_ref())?;
        Ok(Some(Settled { step: id.to_string(), what: "lost", why: Some(why) }))
    }

    /// Moves the records of steps that have another id in the files here, because of another branch, an interrupted command
    /// or another program. All are moved in one change, because two steps may have swapped their ids. Records of claims in
    /// other working trees are moved only if `is_undone`. Returns whether any was moved. If so, the stored listing may have
    /// changed, too.
    pub(super) fn follow_files(&self, owns: &[OwnRecord], is_undone: bool) -> Result<bool, Error> {
        let mut moves = Vec::new();
        for own in owns.iter().filter(|it| it.under.is_none() && !it.is_lost && !self.is_busy(it)) {
            let is_of_here = is_undone || !self.is_of_other_tree(own);
            if !is_of_here || own.wanted == Some(Wanted::Gone) {
                continue;
            }
            let id = self.located(own)?.0;
            if id != own.step {
                moves.push((own.clone(), id));
            }
        }
        Ok(!moves.is_empty() && self.move_records(&moves)?)
    }

    /// Whether a running process is changing this record, or is about to write the step's file.
    pub(super) fn is_busy(&self, own: &OwnRecord) -> bool {
        let disk = self.context.plans.disk();
        own.writer.as_ref().is_some_and(|it| it.state(disk) == ProcessState::Running)
    }

    /// Undoes a lost claim in this working tree. The claim's record stays while the step's file in another working tree
    /// contains the claim or its result, because only a command in that tree changes that file.
    fn take_back(&self, own: &OwnRecord, id: &StepId, step: Option<&Step>) -> Result<(), Error> {
        local::take_back(self.context, id, &own.claim, own.file.as_ref())?;
        match self.is_in_a_tree(own, id, step) {
            true => Ok(()),
            false => self.state.remove(&own.name),
        }
    }

    /// Like [`Self::take_back`], for a claim that was lost earlier.
    fn take_back_later(
        &self,
        own: &OwnRecord,
        id: &StepId,
        step: Option<&Step>,
        seen: &Seen,
    ) -> Result<Option<Settled>, Error> {
        if step.is_some_and(|it| local::shows(it, &own.claim)) {
            self.take_back(own, id, step)?;
            let why = seen.records.get(&own.name).map(|it| holder(it.record.as_ref()));
            return Ok(Some(Settled { step: id.to_string(), what: "lost", why }));
        }
        local::reopen(self.context, id)?;
        if !self.is_in_a_tree(own, id, step) {
            self.state.remove(&own.name)?;
        }
        Ok(None)
    }

    /// Whether the step's file in a working tree of this clone contains a claim or its result. Also true if such a file
    /// exists but cannot be read. If the working trees or the file's path are not known, returns false, so that no record
    /// stays forever.
    fn is_in_a_tree(&self, own: &OwnRecord, id: &StepId, step: Option<&Step>) -> bool {
        let path = own.file.as_ref().map(|it| &it.path).or(step.map(|it| &it.path));
        let (plans, worktree) = (&self.context.plans, &self.state.worktree);
        let Some((path, trees)) = path.zip(plans.worktrees(worktree)) else { return false };
        trees.iter().any(|root| {
            let file = root.join(self.state.dir()).join(path);
            match disk::read_file(plans.disk(), &file) {
                Ok(bytes) => local::shows(&self.step(id, path, bytes), &own.claim),
                Err(error) => !matches!(error, DiskError::NotFound { .. }),
            }
        })
    }

    /// The claims in this working tree that have a lease on this machine, but no record of this clone.
    pub(crate) fn unknown_claims(&self) -> Result<Vec<(StepId, String)>, Error> {
        let plans = LoadQuery::all().load(self.context)?.plans;
        let leases = Leases::of(self.context);
        let claimed = plans.live().flat_map(|it| &it.steps).filter_map(|it| Some((it, it.claim_in_force()?)));
        let unknown = claimed.filter(|(step, claim)| {
            self.state.own(&step.id).is_none()
                && leases.knows(&step.id, &claim.id)
                && self.state.of_claim(&claim.id).is_none()
                && plans.claims().lapse(step, self.context.now).is_none()
        });
        Ok(unknown.map(|(step, claim)| (step.id.clone(), claim.id.clone())).collect())
    }

    /// Handles a claim that the registry once confirmed; it may have been taken over since.
    fn check_held(&self, own: OwnRecord, id: &StepId, seen: &Seen) -> Result<Option<Settled>, Error> {
        let Some(there) = seen.records.get(&own.name) else {
            if self.is_moved_on_branch(&own)? {
                self.state.remove(&own.name)?;
                return Ok(None);
            }
            // The record was deleted, for example by `push --mirror`.
            let Some(own) = self.in_state(own, State::Claimed)? else { return Ok(None) };
            let (what, why) = match self.push(own, &[])? {
                Pushed::Done => ("restored", None),
                Pushed::Unsettled(error) => ("unsettled", Some(self.error(&error).to_string())),
                Pushed::Lost(holder) => {
                    leases::forget(self.context, id);
                    ("lost", Some(holder))
                }
            };
            return Ok(Some(Settled { step: id.to_string(), what, why }));
        };
        let foreign = Some(there).filter(|it| it.record.as_ref().is_none_or(|it| it.id != own.claim));
        let Some(foreign) = foreign else { return Ok(None) };
        let why = Some(holder(foreign.record.as_ref()));
        self.lose(own)?;
        leases::forget(self.context, id);
        Ok(Some(Settled { step: id.to_string(), what: "lost", why }))
    }

    /// Like [`Self::with_value`], but loads the step itself.
    pub(crate) fn with_own_value(&self, own: OwnRecord) -> Result<OwnRecord, Error> {
        let id = own.step.clone();
        let step = if own.newest().is_none() { self.load(&id)? } else { None };
        self.with_value(own, &id, step.as_ref())
    }

    /// Creates the first value of a claim that has none, for example after `claim --offline`.
    fn with_value(&self, own: OwnRecord, id: &StepId, step: Option<&Step>) -> Result<OwnRecord, Error> {
        if own.newest().is_some() || !own.is_offline {
            return Ok(own);
        }
        let by = step.and_then(|it| it.claim.as_ref()).and_then(|it| it.by.clone());
        let by = by.unwrap_or_else(|| self.context.by.clone());
        let (step, lease) = (own.under.as_ref().unwrap_or(id), self.context.config.lease());
        let claim = LocalClaim { step, id: &own.claim, by: &by, lease, is_renewed: false };
        let value = self.value(&self.new_record(&claim)?.of_step(step, id))?;
        Ok(OwnRecord { wanted: Some(Wanted::Value { value, from: None }), ..own })
    }

    /// Whether the step was claimed, or its work was ended, in another working tree that still exists. In that case, the
    /// step's file in that tree decides what happened.
    fn is_of_other_tree(&self, own: &OwnRecord) -> bool {
        let other = own.tree.as_ref().filter(|it| **it != self.state.worktree.root);
        let trees = || self.context.plans.worktrees(&self.state.worktree);
        other.is_some_and(|it| trees().is_some_and(|all| all.contains(it)))
    }

    /// The step that has the claim or its result in the files here, and its id. If no step has it, the step with the
    /// record's id.
    fn located(&self, own: &OwnRecord) -> Result<(StepId, Option<Step>), Error> {
        let shows = |it: &Step| it.names_claim(&own.claim);
        let step = self.load(&own.step)?;
        if step.as_ref().is_some_and(shows) {
            return Ok((own.step.clone(), step));
        }
        let ids = own.earlier.iter().chain(&own.under).chain([&own.step]);
        for plan in ids.map(|it| &it.plan).collect::<BTreeSet<_>>() {
            let Ok(loaded) = LoadQuery::plan(plan).load(self.context) else { continue };
            let steps = loaded.plans.get(plan).into_iter().flat_map(|it| &it.steps);
            if let Some(found) = steps.into_iter().find(|it| shows(it)) {
                return Ok((found.id.clone(), Some(found.clone())));
            }
        }
        Ok((own.step.clone(), step))
    }

    pub(super) fn load(&self, id: &StepId) -> Result<Option<Step>, Error> {
        match LoadQuery::step(id).load(self.context) {
            Ok(loaded) => Ok(loaded.plans.step(id).cloned()),
            Err(Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn here(&self, step: Option<&Step>, own: &OwnRecord) -> Here {
        let Some(step) = step else { return self.by_lease(own) };
        if step.has_claim(&own.claim) {
            return Here::AtWork;
        }
        let is_own = step.has_attempt_of(&own.claim);
        match step.status.known().and_then(State::of).filter(|_| is_own) {
            Some(state) => Here::Ended(state),
            None => self.by_lease(own),
        }
    }

    fn by_lease(&self, own: &OwnRecord) -> Here {
        match Leases::of(self.context).find(&own.claim) {
            Some(_) => Here::AtWork,
            None => Here::Unknown,
        }
    }
}

/// Updates the records of steps whose files `undo` has restored. Returns the claims that turned out to be lost.
pub(crate) fn restored(context: &Context, steps: &[StepId]) -> Vec<Settled> {
    let mut lost = Vec::new();
    for step in steps {
        match restored_one(context, step) {
            Ok(settled) => {
                for it in settled {
                    match it.what {
                        "lost" => lost.push(it),
                        "unsettled" => ending::unsettled(context, step, &it.why.unwrap_or_default()),
                        _ => {}
                    }
                }
            }
            Err(error) => ending::unsettled(context, step, &error.to_string()),
        }
    }
    lost
}

fn restored_one(context: &Context, id: &StepId) -> Result<Vec<Settled>, Error> {
    let Some(state) = SyncState::of(context) else { return Ok(Vec::new()) };
    let own = state.own(id).filter(|it| !it.is_lost);
    let claim = LoadQuery::step(id).load(context).ok().and_then(|it| {
        let step = it.plans.step(id)?;
        let claim = step.claim_in_force().filter(|_| it.plans.claims().lapse(step, context.now).is_none());
        // No record is made for a claim of another machine.
        let is_own = claim.filter(|it| {
            it.by.as_deref() == Some(context.by.as_str()) || Leases::of(context).knows(id, &it.id)
        });
        is_own.map(|it| it.id.clone())
    });
    let own = match (own, claim) {
        (Some(own), None) => own,
        (Some(own), Some(claim)) if own.claim == claim => own,
        (own, Some(claim)) => {
            let new = OwnRecord::replacing(own.as_ref(), &state, id.clone(), claim);
            let own = OwnRecord { is_offline: true, ..new };
            state.put(&own)?;
            own
        }
        (None, None) => return Ok(Vec::new()),
    };
    let Some(sync) = Sync::of(context)? else { return Ok(Vec::new()) };
    sync.follow_files(std::slice::from_ref(&own), true)?;
    let own = state.of_claim(&own.claim).unwrap_or(own);
    let (all, seen) = (state.siblings(&own).into_iter().chain([own]), state.seen());
    let settled = all.map(|it| sync.settle_one(it, &seen, true));
    settled.filter_map(Result::transpose).collect()
}

/// The holder of a record, as text for people.
pub(crate) fn holder(record: Option<&Record>) -> String {
    match record {
        Some(record) => format!("{} on {}", record.by, record.host),
        None => "a record that cannot be read".to_owned(),
    }
}

/// The steps with a change by this clone that the registry has not confirmed. Steps that a running process is changing
/// are left out.
pub(crate) fn unsettled(context: &Context) -> Vec<StepId> {
    let Some(state) = SyncState::of(context) else { return Vec::new() };
    let is_busy = |it: &OwnRecord| {
        it.writer.as_ref().is_some_and(|it| it.state(context.plans.disk()) == ProcessState::Running)
    };
    let all = state.unsettled().into_iter().filter(|it| !is_busy(it));
    all.map(|it| it.step).collect()
}
