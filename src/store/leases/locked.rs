//! Writes the records when claims are made, renewed, changed or ended.

use serde::Serialize;

use super::former::{LocatedRecord, Was};
use super::log::Closed;
use super::{Leases, Record, RunRecord, Unfinished, unfinished};
use std::collections::HashSet;
use std::io::ErrorKind;
use std::sync::{Mutex, PoisonError};

use crate::api::context::{Context, Notice};
use crate::api::error::Error;
use crate::disk::{LockedRecords, Process};
use crate::plan::id::{StepId, read_step_id};
use crate::plan::model::Step;
use crate::plan::plans::Plans;
use crate::plan::time::Time;
use crate::store::claims::LONG_LEASE;
use crate::store::load::LoadQuery;
use crate::text::typed::shell_word;

/// The records, locked so that no other process writes them.
pub(crate) struct Locked<'a> {
    pub(super) leases: Leases<'a>,
    /// `None` in a dry run, or if the records could not be locked.
    pub(super) records: Option<LockedRecords>,
    /// Locked while `confirm`, `changed` or `end_claim` changes the log, so that threads that share this value do so one at
    /// a time.
    closing: Mutex<()>,
}

/// Whether the records must be shared with all working trees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sharing {
    /// They must be shared. Used for a claim, which is refused if there are several working trees and their shared records
    /// cannot be locked.
    Wanted,
    /// They need not be shared. Used for a claim with `--force`, and for all other changes.
    Waived,
}

impl<'a> Locked<'a> {
    /// Takes the lock of the records. A caller that also needs the lock of the plans directory must take that one first.
    pub(crate) fn take(context: &'a Context, sharing: Sharing) -> Result<Self, Error> {
        Self::lock(Leases::of(context), sharing)
    }

    /// Like [`Self::take`], for records that were located before the locks were taken.
    pub(crate) fn take_at(mut leases: Leases<'a>, sharing: Sharing) -> Result<Self, Error> {
        leases.look_again();
        Self::lock(leases, sharing)
    }

    fn lock(leases: Leases<'a>, sharing: Sharing) -> Result<Self, Error> {
        let context = leases.context;
        let Some((shared, worktree)) = leases.shared.as_ref().zip(leases.worktree.as_ref()) else {
            return Ok(Self::own(leases));
        };
        let why = match shared.lock() {
            Ok(Some(records)) => {
                return Ok(Self { leases, records: Some(records), closing: Mutex::default() });
            }
            Ok(None) => "another process has locked it".to_owned(),
            Err(error) => error_text(&error),
        };
        let path = shared.dir().display().to_string();
        if sharing == Sharing::Wanted && context.plans.count_worktrees(worktree) > 1 {
            return Err(Error::ClaimsNotShared { path, why });
        }
        (context.on_notice)(Notice::ClaimsNotShared { path, why });
        Ok(Self::own(leases))
    }

    /// For a dry run: records are read but not written.
    pub(crate) fn look_at(leases: Leases<'a>) -> Self {
        Self { leases, records: None, closing: Mutex::default() }
    }

    fn own(leases: Leases<'a>) -> Self {
        let own = leases.context.plans.own_records_to_write();
        // If the directory is not writable, existing records are still read.
        let records = own.as_ref().and_then(|it| it.lock().ok().flatten());
        Self { leases: Leases { own, ..leases }, records, closing: Mutex::default() }
    }

    /// Like [`Leases::annotate`]. If this process holds the lock of the records, no other process can be making a claim, so
    /// an unfinished claim counts as interrupted. Otherwise, as in a dry run, it counts as in force.
    pub(crate) fn annotate(&self, plans: Plans) -> Plans {
        let unfinished = if self.records.is_some() { Unfinished::Interrupted } else { Unfinished::Held };
        self.leases.annotate_as(plans, unfinished, None)
    }

    pub(crate) fn has_record(&self, step: &StepId) -> bool {
        self.leases.has_record(step)
    }

    /// The run records of the claims that live runs of this working tree have made.
    pub(crate) fn at_work(&self) -> Vec<RunRecord> {
        let live = self.leases.runs().into_iter().filter(|(_, is_live)| *is_live);
        live.filter_map(|(it, _)| it.run).collect()
    }

    /// Writes the record of a claim that is about to be made; see the comment at the start of `leases.rs`.
    pub(crate) fn prepare(&self, new: &NewRecord<'_>) -> Result<(), Error> {
        let Some(records) = &self.records else { return Ok(()) };
        let name = unfinished(&self.leases.key(&new.step.id));
        let in_file = new.step.claim.as_ref().map(|it| it.id.clone());
        let replaces = in_file.filter(|id| self.get(&name).is_some_and(|it| it.is_of_unconfirmed(id)));
        let record = Record {
            step: new.step.id.to_string(),
            claim: new.claim.to_owned(),
            by: Some(new.by.to_owned()),
            at: Some(new.at.whole_seconds()),
            until: new.at.plus_seconds(new.lease),
            lease: new.lease,
            process: new.process.cloned(),
            run: new.run.cloned(),
            key: new.key.map(str::to_owned),
            replaces,
            boot: self.leases.boot().map(str::to_owned),
            file: new.step.path.clone(),
            was: Vec::new(),
            place: self.leases.place(),
        };
        let written = match record.replaces {
            // `<key>.new` is the record of the claim that the step's file contains. `put` replaces it atomically, so a
            // kill leaves either this record or the new one, and never a part of one.
            Some(_) => records.put(&name, &bytes_of(&record)),
            None => records.put_new(&name, &bytes_of(&record)),
        };
        written.map_err(|it| self.failed(&it))
    }

    /// Puts the prepared claim into force. Only after this may the claim be returned to the caller.
    pub(crate) fn confirm(&self, step: &StepId) -> Result<(), Error> {
        let Some(records) = &self.records else { return Ok(()) };
        let _alone = self.closing.lock().unwrap_or_else(PoisonError::into_inner);
        let key = self.leases.key(step);
        let before = self.found_by_id(step);
        // The previous claim is logged before its record is replaced, because the step's file may no longer contain it.
        if let Some(found) = &before {
            self.close(&found.key, &found.record, Ended::TakenOver);
        }
        if let Some(record) = self.get(&key).filter(|_| before.as_ref().is_some_and(|it| it.key != key)) {
            self.close(&key, &record, Ended::TakenOver);
        }
        records.rename(&unfinished(&key), &key).map_err(|it| self.unconfirmed(step, &it))?;
        // A new claim means that the step is open here, so log lines that say it was closed are removed.
        self.forget_closed(step);
        if let Some(found) = before {
            self.inherit(&key, step, &found.record);
            if found.remains_after_write(&key) {
                self.remove(&found);
            }
        }
        self.hold_under_other_names(&key, step);
        Ok(())
    }

    /// Confirms a claim that was interrupted before it was confirmed. Does nothing if it is already confirmed.
    pub(crate) fn complete(&self, step: &StepId, claim: &str) -> Result<(), Error> {
        let prepared = self.get(&unfinished(&self.leases.key(step)));
        if prepared.is_some_and(|it| it.claim == claim) { self.confirm(step) } else { Ok(()) }
    }

    /// Removes the record of a prepared claim that was not made.
    pub(crate) fn withdraw(&self, step: &StepId) {
        if let Some(records) = &self.records {
            records.remove(&unfinished(&self.leases.key(step))).ok();
        }
    }

    fn failed(&self, error: &std::io::Error) -> Error {
        let dir =
            self.records.as_ref().map(|it| it.records().dir().display().to_string()).unwrap_or_default();
        let code = match error.kind() {
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => "no-space",
            _ => "io-error",
        };
        let hint = "the next `planwatch claim` can claim the step";
        Error::failed(code, format!("`{dir}` cannot be written: {}", error_text(error)), hint)
    }

    /// The error for a claim that cannot be confirmed. The step's file already contains the claim, but the claim is not in
    /// force: the next `planwatch claim` finds it unfinished.
    fn unconfirmed(&self, step: &StepId, error: &std::io::Error) -> Error {
        let Error::Failed { code, message, hint } = self.failed(error) else { return self.failed(error) };
        let Some(record) = self.get(&unfinished(&self.leases.key(step))) else {
            return Error::Failed { code, message, hint };
        };
        let message = format!("{message}; the claim {} is already in the file of `{step}`", record.claim);
        let word = shell_word(step);
        let hint =
            format!("`planwatch claim {word}` takes it over, `planwatch release {word}` releases the step");
        Error::Failed { code, message, hint }
    }

    /// Renews the lease: it begins again now, with the length `lease` if that is given. Returns the lease's new end; `None`
    /// if the claim has no record, or if the record cannot be written.
    pub(crate) fn renew(&self, step: &StepId, claim: &str, lease: Option<i64>) -> Option<Time> {
        let own = self.get(&self.leases.key(step)).filter(|it| it.claim == claim);
        let mut found = match own {
            Some(record) => LocatedRecord::own(self.leases.key(step), record),
            None => self.found_by_id(step).filter(|it| it.record.claim == claim)?,
        };
        let record = &mut found.record;
        record.lease = lease.unwrap_or(record.lease);
        record.until = self.leases.context.now.plus_seconds(record.lease);
        let (until, lease) = (record.until, record.lease);
        // If this fails, the earlier end remains.
        self.replace(&found).ok()?;
        // The cached queue of a daemon assumes that leases last at least `LONG_LEASE` seconds. A change of the log makes
        // the queue invalid.
        if lease < LONG_LEASE {
            self.touch_log(&found.key);
        }
        Some(until)
    }

    /// Makes the record of a claim that a step's file contains but that has no record on this machine.
    pub(crate) fn adopt(&self, new: &NewRecord<'_>) -> Result<(), Error> {
        self.prepare(new)?;
        self.confirm(&new.step.id)
    }

    pub(super) fn get(&self, key: &str) -> Option<Record> {
        let bytes = self.records.as_ref()?.records().get(key)?;
        serde_json::from_slice(&bytes).ok()
    }

    /// Records how a change of a step changed its claim.
    pub(crate) fn changed(&self, before: &Step, after: &Step, effect: Effect) {
        let _alone = self.closing.lock().unwrap_or_else(PoisonError::into_inner);
        let key = self.leases.key(&after.id);
        let found = self.found(before);
        let had = before.claim.as_ref().map(|it| it.id.as_str());
        let has = after.claim.as_ref().map(|it| it.id.as_str());
        if before.is_closed() && !after.is_closed() {
            self.forget_closed(&after.id);
        }
        // Each write removes a `claim` that has no effect because of the status, for example if an editor set the status.
        // This must not end a claim that is still in force: its owner may be at work.
        let is_void = before.has_void_claim() && has.is_none() && before.status == after.status;
        if is_void && !effect.ends_claim {
            return;
        }
        let Some(found) = found else {
            // A claim that an undo or a checkout restored has log lines, but no record. When it is released, its lines
            // are removed, because they may still say that the step was closed.
            if let Some(had) = had.filter(|_| has.is_none() && !after.is_closed()) {
                self.relog_all(&key, |it| Some(it).filter(|it| it.claim != had));
            }
            if !before.is_closed() && after.is_closed() && self.leases.has_other_trees() {
                self.close_unrecorded(key, after, had);
            }
            return;
        };
        let record = &found.record;
        if has == Some(record.claim.as_str()) {
            if effect.renews {
                self.renew(&after.id, &record.claim, None);
            }
            return;
        }
        let is_here = record.place.worktree == self.leases.root;
        let is_ours = had == Some(record.claim.as_str()) || is_here;
        if effect.ends_others && !is_here {
            self.end(&found, Ended::TakenOver);
            if after.is_closed() {
                self.close_unrecorded(key, after, had);
            }
            return;
        }
        if !is_ours || (before.status == after.status && had == has) {
            return;
        }
        let closed = after.is_closed().then_some(Ended::Closed { created_at: after.created_at });
        self.end(&found, closed.unwrap_or(Ended::Open));
    }

    /// Removes the record of a step's claim without logging the claim's end; see the function [`forget`]. Keeps the record
    /// if this tree may not end the claim ([`Self::is_ours`]).
    pub(crate) fn forget(&self, step: &StepId) {
        if let Some(found) = self.found_by_id(step).filter(|it| self.is_ours(it)) {
            self.remove(&found);
        }
    }

    fn end_claim(&self, step: &StepId, claim: &str) {
        let _alone = self.closing.lock().unwrap_or_else(PoisonError::into_inner);
        let key = self.leases.key(step);
        if let Some(record) = self.get(&key).filter(|it| it.claim == claim) {
            self.end(&LocatedRecord::own(key, record), Ended::Open);
        }
    }

    /// Logs an ended claim. A line for a closed step prevents workers on other branches from repeating the step.
    pub(super) fn close(&self, key: &str, record: &Record, ended: Ended) {
        let mut place = record.place.clone();
        // Since the claim was made, another branch may have been checked out. The closed step is on that branch.
        if matches!(ended, Ended::Closed { .. }) && place.worktree == self.leases.root {
            place = self.leases.place();
        }
        let closed = Closed {
            key: key.to_owned(),
            step: record.step.clone(),
            claim: record.claim.clone(),
            by: record.by.clone(),
            at: record.at,
            // `None` prevents an undo or a checkout from restoring a claim that was taken over.
            until: (ended != Ended::TakenOver).then_some(record.until),
            lease: Some(record.lease),
            process: record.process.clone(),
            is_open: !matches!(ended, Ended::Closed { .. }),
            file: Some(record.file.clone()),
            created_at: match ended {
                Ended::Closed { created_at } => created_at,
                Ended::Open | Ended::TakenOver => None,
            },
            same: None,
            also: Vec::new(),
            place,
        };
        self.closed_under_all(record, closed).iter().for_each(|it| self.log(it));
    }

    /// Logs that a step was closed without a claim, or under a claim that has no record on this machine.
    fn close_unrecorded(&self, key: String, step: &Step, claim: Option<&str>) {
        let context = self.leases.context;
        // Lines are distinguished by the claim's id, so a line without a claim needs an id, too.
        let made_up =
            || format!("u{}", &blake3::hash(format!("{key} {}", context.now).as_bytes()).to_hex()[..7]);
        let closed = Closed {
            step: step.id.to_string(),
            claim: claim.map_or_else(made_up, str::to_owned),
            key,
            by: Some(context.by.clone()),
            at: Some(context.now.whole_seconds()),
            until: None,
            lease: None,
            process: None,
            is_open: false,
            file: Some(step.path.clone()),
            created_at: step.created_at,
            same: None,
            also: Vec::new(),
            place: self.leases.place(),
        };
        let others = self.closed_under_other_names(step, &closed);
        let also = others.iter().map(|it| it.key.clone()).collect();
        others.iter().chain([&Closed { also, ..closed }]).for_each(|it| self.log(it));
    }

    fn forget_closed(&self, step: &StepId) {
        let key = self.leases.key(step);
        let is_of = self.are_of(step);
        self.relog_all(&key, |it| Some(it).filter(|it| it.is_open || !is_of(it)));
    }

    /// Returns a function that tells whether a log line is about this step. A line under the step's number may be about
    /// another step.
    fn are_of(&self, step: &StepId) -> impl Fn(&Closed) -> bool {
        let key = self.leases.key(step);
        let lines = self.lines(&key);
        let plan = lines.iter().any(|it| it.same.is_some()).then(|| self.plan_of(step)).flatten();
        let found = plan.as_ref().and_then(|it| Some((it, it.find(step)?)));
        let is_of = |it: &Closed| {
            it.same.as_ref().is_none_or(|same| {
                found.is_some_and(|(plan, step)| self.leases.is_same(plan, step, &it.claim, same))
            })
        };
        let claims: HashSet<_> = lines.iter().filter(|it| is_of(it)).map(|it| it.claim.clone()).collect();
        move |it| claims.contains(&it.claim)
    }

    /// Changes the log lines of a step that an undo reopened, so that they no longer show the step as closed. Lines of other
    /// working trees and branches stay unchanged.
    fn reopen(&self, step: &StepId) {
        let key = self.leases.key(step);
        let is_of = self.are_of(step);
        let here = self.leases.place();
        let is_ours = |it: &Closed| it.place == here && is_of(it);
        self.relog_all(&key, |it| Some(Closed { is_open: it.is_open || is_ours(&it), ..it }));
    }

    /// Makes the record of a claim again that an undo restored in the step's file, if the claim is in force and nothing else
    /// holds the step. Without a record, the claim would hold in this working tree only.
    fn restore(&self, step: &StepId) {
        let context = self.leases.context;
        let Ok(loaded) = LoadQuery::step(step).load(context) else { return };
        let (plans, key) = (self.annotate(loaded.plans), self.leases.key(step));
        let (Some(records), Some(step)) = (&self.records, plans.step(step)) else { return };
        let Some(claim) = step.claim_in_force().map(|it| &it.id) else { return };
        let is_held = plans.claims().holder(step).is_some() || self.get(&unfinished(&key)).is_some();
        let has_record = self.found(step).is_some() || self.leases.find(claim).is_some();
        if is_held || has_record || plans.claims().lapse(step, context.now).is_some() {
            return;
        }
        let place = self.leases.place();
        let is_of_here = |it: &Closed| it.place.plans == place.plans && it.place.worktree == place.worktree;
        let line = self.lines(&key).into_iter().rfind(|it| it.claim == *claim && is_of_here(it));
        let Some((line, until, lease)) = line.and_then(|it| Some((it.clone(), it.until?, it.lease?))) else {
            return;
        };
        let to = step.id.to_string();
        let mut was = Vec::new();
        for other in line.also.iter().flat_map(|it| self.lines(it)).filter(|it| it.claim == *claim) {
            let Some((same, step)) = other.same.zip(Some(other.step)).filter(|it| !was.contains(&it.1))
            else {
                continue;
            };
            was.push(step.clone());
            let (file, claim, to) = (other.file.unwrap_or_default(), claim.clone(), to.clone());
            self.remember(Was { step, file, claim, to, same, record: None }).ok();
        }
        let record = Record {
            step: to,
            claim: claim.clone(),
            by: line.by,
            at: line.at,
            until,
            lease,
            process: line.process,
            run: None,
            key: None,
            replaces: None,
            boot: self.leases.boot().map(str::to_owned),
            file: step.path.clone(),
            was,
            place,
        };
        if records.put(&key, &bytes_of(&record)).is_ok() {
            self.hold_under_other_names(&key, &step.id);
        }
    }
}

/// How a change of a step affects the step's claim. Contains only effects that the step's file does not show.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Effect {
    /// The owner of the claim made the change, so the lease is renewed.
    pub(crate) renews: bool,
    /// See [`StepUpdate::ends_others`](crate::store::step_file::StepUpdate::ends_others).
    pub(crate) ends_others: bool,
    /// The change was meant to end the claim of the step's file. Otherwise, if it only removed a `claim` that has no effect,
    /// a claim in force is kept.
    pub(crate) ends_claim: bool,
}

/// What happened to the step of an ended claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ended {
    /// The step, which was created at this time, was closed.
    Closed { created_at: Option<Time> },
    /// The step was left open.
    Open,
    /// Another claim has the step, or another working tree ended the claim with `--force`.
    TakenOver,
}

pub(crate) struct NewRecord<'a> {
    pub(crate) step: &'a Step,
    pub(crate) claim: &'a str,
    pub(crate) by: &'a str,
    pub(crate) at: Time,
    pub(crate) lease: i64,
    pub(crate) process: Option<&'a Process>,
    pub(crate) run: Option<&'a RunRecord>,
    /// The name of the request's idempotency key.
    pub(crate) key: Option<&'a str>,
}

/// Notes which process works on a run's step, so that the process can be ended if the run is found dead.
pub(crate) fn note_worker(context: &Context, step: &StepId, claim: &str, worker: &Process) {
    let Ok(locked) = Locked::take(context, Sharing::Waived) else { return };
    let key = locked.leases.key(step);
    let found = locked.get(&key).filter(|it| it.claim == claim);
    if let Some((records, mut record)) = locked.records.as_ref().zip(found) {
        record.run = record.run.map(|it| RunRecord { worker: Some(worker.clone()), ..it });
        records.put(&key, &bytes_of(&record)).ok();
    }
}

/// Records how a change of a step changed its claim, if a record or the log may have to change.
///
/// The change is already made. If the claim's record cannot be updated now, the claim holds until it lapses.
pub(crate) fn changed(leases: &Leases<'_>, before: &Step, after: &Step, effect: Effect) {
    let is_reopened = before.is_closed() && !after.is_closed();
    let may_be_closed = is_reopened || before.claim.is_some();
    let is_closed_now = !before.is_closed() && after.is_closed();
    let is_recorded = |leases: &Leases<'_>| {
        let key = leases.key(&after.id);
        let is_known = leases.has_any(&key) || may_be_closed && leases.has_log(&key);
        is_known || is_closed_now && leases.has_other_trees()
    };
    if_recorded(leases, is_recorded, |it| it.changed(before, after, effect));
}

/// Takes the lock only if a record may concern the step, because locking costs more than checking.
pub(super) fn if_recorded(
    leases: &Leases<'_>,
    is_recorded: impl FnOnce(&Leases<'_>) -> bool,
    change: impl FnOnce(&Locked<'_>),
) {
    if is_recorded(leases)
        && let Ok(locked) = Locked::take(leases.context, Sharing::Waived)
    {
        change(&locked);
    }
}

/// Removes the record of a step's claim without logging the claim's end.
///
/// This is used if the step was removed or archived, if it is released although its file has no claim, if its claim is
/// undone, or if another machine has taken the step over.
pub(crate) fn forget(context: &Context, step: &StepId) {
    if_recorded(&Leases::of(context), |it| it.has_any(&it.key(step)), |it| it.forget(step));
}

/// Ends a claim that its step's file does not contain. Records of other claims on the step stay.
pub(crate) fn end_unclaimed(context: &Context, claim: &str) {
    let leases = Leases::of(context);
    let Some(record) = leases.find(claim) else { return };
    let Some(step) = read_step_id(&record.step) else { return };
    if_recorded(&leases, |it| it.has_any(&it.key(&step)), |it| it.end_claim(&step, claim));
}

/// Records that an undo reopened a step.
pub(crate) fn reopened(context: &Context, step: &StepId) {
    if_recorded(&Leases::of(context), |it| it.has_log(&it.key(step)), |it| it.reopen(step));
}

/// Makes the record of a claim again that an undo restored. See [`Locked::restore`].
pub(crate) fn restored(context: &Context, step: &StepId) {
    if_recorded(&Leases::of(context), |it| it.has_log(&it.key(step)), |it| it.restore(step));
}

/// The text of a system error without its number.
pub(super) fn error_text(error: &std::io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error ").next().unwrap_or_default().to_owned()
}

pub(super) fn bytes_of(record: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(record).unwrap_or_default()
}
