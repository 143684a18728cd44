//! Creates, removes and renews claims at the registry.

use super::seen::Seen;
use super::settling::holder;
use super::state::{self, OwnRecord, Wanted};
use super::{Pushed, Sync, TTL};
use crate::api::context::Context;
use crate::api::error::Error;
use crate::disk::Process;
use crate::plan::id::StepId;
use crate::plan::time::Time;
use crate::store::leases::Leases;
use crate::store::registry::record::{Record, State};
use crate::store::registry::{Answer, Change, RegistryError, Together};

/// A claim that was made on this machine.
pub(crate) struct LocalClaim<'a> {
    pub(crate) step: &'a StepId,
    pub(crate) id: &'a str,
    pub(crate) by: &'a str,
    /// In seconds.
    pub(crate) lease: i64,
    /// A running process will renew the claim.
    pub(crate) is_renewed: bool,
}

#[derive(Debug)]
pub(crate) enum Announced {
    /// The claim holds on all machines, until this time if nothing renews it.
    Won { until: Time },
    /// Another clone has the step. The text names its owner, for people.
    Lost(String),
}

impl Sync<'_> {
    /// Pushes a claim to the registry. On an error or [`Announced::Lost`], the caller must undo the claim on this machine.
    ///
    /// `others` are changes of other records, sent over the same connection.
    pub(crate) fn announce(
        &self,
        claim: &LocalClaim<'_>,
        seen: &Seen,
        others: &[Change],
    ) -> Result<Announced, Error> {
        let name = self.state.name_of(claim.step);
        let before = self.state.own_of(&name).filter(|it| !it.is_lost);
        let there = seen.records.get(&name);
        let is_own = |it: &Record| before.as_ref().is_some_and(|own| own.claim == it.id);
        let foreign = there.filter(|it| !it.record.as_ref().is_some_and(is_own));
        if let Some(foreign) = foreign.filter(|it| !it.has_lapsed) {
            return Ok(Announced::Lost(holder(foreign.record.as_ref())));
        }
        let record = self.new_record(claim)?;
        let value = self.value(&record)?;
        let from = foreign.map(|it| it.revision.clone());
        let new = OwnRecord::replacing(before.as_ref(), &self.state, claim.step.clone(), claim.id.to_owned());
        let own = OwnRecord {
            held: new.held.clone().filter(|_| from.is_none()),
            wanted: Some(Wanted::Value { value: value.clone(), from }),
            writer: Process::find(self.context.plans.disk(), std::process::id()),
            ..new
        };
        let mut pushed = self.push(own.clone(), others)?;
        if let (Pushed::Done, Some(before)) = (&pushed, &before) {
            // If there is no answer for a record under an earlier id, that record stays unsettled and is sent again
            // later.
            let inherited = self.inherit(before, &own)?;
            pushed = if matches!(inherited, Pushed::Lost(_)) { inherited } else { Pushed::Done };
        }
        match pushed {
            Pushed::Done => Ok(Announced::Won { until: self.context.now.plus_seconds(record.ttl) }),
            Pushed::Lost(holder) => {
                self.state.remove(&own.name)?;
                Ok(Announced::Lost(holder))
            }
            Pushed::Unsettled(error) => {
                match &error {
                    RegistryError::Refused(_)
                    | RegistryError::BranchNotFetched { is_refusal: true, .. }
                    | RegistryError::Local(_) => self.state.remove(&own.name)?,
                    // The registry may have stored the record, but the caller undoes the claim. The record is removed
                    // later.
                    _ => self.state.put(&OwnRecord {
                        held: Some(value),
                        wanted: Some(Wanted::Gone),
                        writer: None,
                        ..own
                    })?,
                }
                Err(self.error(&error))
            }
        }
    }

    /// Removes this clone's record of a step. If there is no answer, the removal is tried again later.
    pub(crate) fn withdraw(&self, own: OwnRecord) -> Result<Pushed, Error> {
        let held = own.newest().cloned();
        self.push(OwnRecord { held, wanted: Some(Wanted::Gone), ..own }, &[])
    }

    /// Renews the records that are due, all of them in one call. Returns the records that other clones have taken over.
    pub(crate) fn renew(&self, due: &dyn Fn(&OwnRecord) -> bool) -> Result<Vec<OwnRecord>, Error> {
        let mut renewed = Vec::new();
        for own in self.state.all_own().into_iter().filter(|it| self.can_renew(it) && due(it)) {
            renewed.extend(self.in_state(own, State::Claimed)?);
        }
        // A renewal is not stored before it is sent. If its answer is lost, the record at the registry is still
        // recognized by the claim's id.
        let changes: Vec<_> = renewed.iter().filter_map(OwnRecord::change).collect();
        let answers = self.registry.change(&changes, Together::Each).map_err(|it| self.error(&it))?;
        let answered = renewed.into_iter().zip(answers);
        let (done, failed): (Vec<_>, Vec<_>) = answered.partition(|it| it.1 == Answer::Done);
        done.into_iter().try_for_each(|(own, _)| self.state.put_confirmed(own, state::now(self.context)))?;
        let mut lost = Vec::new();
        // If a renewal failed, the record was taken over or deleted (for example by `push --mirror`), or the registry
        // refused the renewal. A deleted record is created again. A record that the registry has never confirmed is not lost:
        // the registry did not accept a moved record under its new id.
        for (own, _) in failed.into_iter().filter(|(own, _)| own.held.is_some()) {
            // If an earlier iteration lost another record of the same claim, this record may already be removed.
            let is_there =
                self.state.own_of(&own.name).is_some_and(|it| it.claim == own.claim && !it.is_lost);
            if is_there && matches!(self.push(own.clone(), &[])?, Pushed::Lost(_)) {
                lost.push(own);
            }
        }
        Ok(lost)
    }

    /// Whether a renewal may change this record. The unsettled record of a moved step can be renewed. Otherwise its claim would
    /// lapse if the registry does not accept the move.
    fn can_renew(&self, own: &OwnRecord) -> bool {
        let is_claimed = own.state() == Some(State::Claimed) && !own.is_lost && !own.is_offline;
        match &own.wanted {
            None => is_claimed,
            Some(Wanted::Value { .. }) => is_claimed && !self.is_busy(own),
            Some(Wanted::Gone) => false,
        }
    }

    /// Renews the records that are due. A claim whose process has ended is not renewed. A claim without a process is
    /// not renewed if its lease has ended and its owner has changed nothing for [`TTL`] seconds. If a step has another id in
    /// the files now, for example after a pull, its record is moved to that id.
    pub(crate) fn renew_due(&self) -> Result<Vec<OwnRecord>, Error> {
        let at_work = Leases::of(self.context).claims_at_work(TTL);
        let is_renewed = |it: &OwnRecord| is_due(self.context, it) && at_work.contains(&it.claim);
        let due: Vec<_> =
            self.state.all_own().into_iter().filter(|it| !it.is_unsettled() && is_renewed(it)).collect();
        self.follow_files(&due, false)?;
        self.renew(&is_renewed)
    }
}

/// Whether a quarter of a record's ttl has passed since the registry confirmed it. Also true if the time since then is
/// unknown, for example after a restart of the machine.
pub(crate) fn is_due(context: &Context, own: &OwnRecord) -> bool {
    let Some(record) = own.record() else { return false };
    let quarter = std::time::Duration::from_secs(u64::try_from(record.ttl / 4).unwrap_or(0));
    let since = own.confirmed.as_ref().and_then(|it| state::now(context).since(it));
    since.is_none_or(|it| it >= quarter)
}
