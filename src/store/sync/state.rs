//! This clone's state of the protocol, in files of git's common directory, which all its working trees share.
//!
//! `planwatch/seen` contains the registry's records as they were last listed (the listing). `planwatch/sync` contains a
//! file for each record of this clone. Before a change of a record is sent to the registry, the record's file is written,
//! so that after a crash or a lost answer the same change can be sent again. Renewals are an exception.

use std::collections::HashSet;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::seen::{Moment, Seen, Sighting};
use crate::api::context::Context;
use crate::api::error::Error;
use crate::api::sync_config::SyncConfig;
use crate::disk::{self, Process, Records, Worktree};
use crate::plan::id::StepId;
use crate::plan::time::Time;
use crate::store::registry::record::{Record, State};
use crate::store::registry::{Change, Name, Revision, Value};

const SEEN: &str = "seen";
const LAST: &str = "last";
const LISTING: &str = "listing";

/// While [`SyncState::put_all`] writes several records, this file contains all of them.
const TOGETHER: &str = "together";

/// Next to each unsettled record is an empty file with this suffix, so that unsettled records are found without reading
/// all records.
const OPEN: &str = ".open";

/// Whether a name in `planwatch/sync` is that of a record.
fn is_record(name: &str) -> bool {
    !matches!(name, LAST | LISTING | TOGETHER) && !name.ends_with(OPEN)
}

/// A record of this clone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct OwnRecord {
    pub(crate) name: Name,
    /// The step's present id.
    pub(crate) step: StepId,
    /// The earlier id, if this is the record under an earlier id of the step. A step that was moved after it was
    /// claimed has a record under each of its ids, because other clones may still lack the move.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) under: Option<StepId>,
    /// The step's earlier ids that have records. Only the record under the present id has this list.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) earlier: Vec<StepId>,
    /// The working tree in which the step was claimed. Once `ending::fence` has ended the record, this is
    /// the tree in which the work was ended. `None` for claims that earlier versions of planwatch made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) tree: Option<PathBuf>,
    /// The claim's id.
    pub(crate) claim: String,
    /// The last known value at the registry, if any.
    pub(crate) held: Option<Value>,
    /// A change that was not answered yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) wanted: Option<Wanted>,
    /// When the registry last confirmed the record.
    pub(crate) confirmed: Option<Moment>,
    /// The id of an earlier claim of this clone, which this claim replaces at the registry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) was: Option<String>,
    /// The process that is making a change, or has ended the work at the registry and is about to write the step's
    /// file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) writer: Option<Process>,
    /// The registry does not know of the claim, or it does not know that the claim has ended. The claim was made with
    /// `--offline`, made before claims were shared, or restored by an undo, or it ended while the registry could not be
    /// contacted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) is_offline: bool,
    /// Another clone has taken the step over. This record is kept while the step's file contains the claim.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) is_lost: bool,
    /// Set before a push that may show that the claim is lost. If it is lost, the claim and its result must still be undone
    /// in the files of all working trees that contain them.
    #[serde(rename = "is_taken_back", default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) must_be_taken_back: bool,
    /// The step's file before the claim, to restore it if the claim is lost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) file: Option<FileBefore>,
}

/// The content of a file before this clone wrote it. The file is restored only if nothing has changed it since.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FileBefore {
    /// Relative to the plans directory.
    pub(crate) path: String,
    pub(crate) before: String,
    /// The etag of the content that this clone wrote.
    pub(crate) left: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Wanted {
    /// The record gets this value.
    Value {
        value: Value,
        /// In a takeover, the revision of the other clone's value, which this value replaces. `None` if [`OwnRecord::held`]
        /// is replaced, or if the record is created.
        from: Option<Revision>,
    },
    /// The record is deleted.
    Gone,
}

impl OwnRecord {
    /// The record of a claim in this working tree.
    pub(crate) fn new(state: &SyncState, step: StepId, claim: String) -> Self {
        Self {
            name: state.name_of(&step),
            step,
            under: None,
            earlier: Vec::new(),
            tree: Some(state.worktree.root.clone()),
            claim,
            held: None,
            wanted: None,
            confirmed: None,
            was: None,
            writer: None,
            is_offline: false,
            is_lost: false,
            must_be_taken_back: false,
            file: None,
        }
    }

    /// The record of a new claim of the step; it replaces this clone's record under the step's id.
    pub(crate) fn replacing(before: Option<&Self>, state: &SyncState, step: StepId, claim: String) -> Self {
        let new = Self::new(state, step, claim);
        let Some(before) = before else { return new };
        let earlier = if before.under.is_none() { before.earlier.clone() } else { Vec::new() };
        Self { held: before.held.clone(), was: Some(before.claim.clone()), earlier, ..new }
    }

    /// The newest value: the wanted one, or else the held one.
    pub(crate) fn newest(&self) -> Option<&Value> {
        match &self.wanted {
            Some(Wanted::Value { value, .. }) => Some(value),
            Some(Wanted::Gone) | None => self.held.as_ref(),
        }
    }

    pub(crate) fn record(&self) -> Option<Record> {
        Record::read(&self.name, &self.newest()?.body)
    }

    pub(crate) fn state(&self) -> Option<State> {
        self.record().map(|it| it.state)
    }

    /// Whether the registry has not confirmed the last change.
    pub(crate) fn is_unsettled(&self) -> bool {
        !self.is_lost && (self.wanted.is_some() || self.is_offline)
    }

    /// The change that brings the registry to the wanted state; none if the registry has that state already.
    pub(crate) fn change(&self) -> Option<Change> {
        let name = self.name.clone();
        match (self.wanted.as_ref()?, &self.held) {
            (Wanted::Value { value, from: Some(old) }, _) => {
                Some(Change::Replace { name, old: old.clone(), new: value.clone(), is_take_over: true })
            }
            (Wanted::Value { value, from: None }, Some(held)) => {
                let (old, new) = (held.revision.clone(), value.clone());
                Some(Change::Replace { name, old, new, is_take_over: false })
            }
            (Wanted::Value { value, from: None }, None) => Some(Change::Create { name, new: value.clone() }),
            (Wanted::Gone, Some(held)) => Some(Change::Delete { name, old: held.revision.clone() }),
            (Wanted::Gone, None) => None,
        }
    }

    /// The state after the registry has confirmed the wanted change; `None` if the registry then has no value.
    pub(crate) fn confirmed(self, now: Moment) -> Option<Self> {
        let held = match self.wanted {
            Some(Wanted::Value { value, .. }) => Some(value),
            Some(Wanted::Gone) => None,
            None => self.held,
        };
        let own = Self {
            wanted: None,
            confirmed: Some(now),
            was: None,
            is_offline: false,
            must_be_taken_back: false,
            held: Some(held?),
            ..self
        };
        // If the work has ended, `writer` stays, because that process has not written the step's file yet.
        let is_ended = own.state().is_some_and(State::has_ended);
        Some(Self { writer: own.writer.clone().filter(|_| is_ended), file: None, ..own })
    }
}

/// The last attempt to reach the registry.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Last {
    /// When the records were last listed.
    pub(crate) at: Option<Time>,
    /// Why the last attempt failed; `None` if it succeeded.
    pub(crate) error: Option<String>,
}

/// The files of one clone.
pub(crate) struct SyncState {
    shared: Records,
    own: Records,
    /// The plans directory, relative to the repository.
    dir: String,
    /// The id of the configured registry.
    registry: String,
    pub(crate) worktree: Worktree,
}

impl SyncState {
    /// `None` if claims are not shared with other machines, or if the plans directory is not in a git repository.
    pub(crate) fn of(context: &Context) -> Option<Self> {
        Self::configured(context, context.config.sync.as_ref()?)
    }

    pub(crate) fn configured(context: &Context, config: &SyncConfig) -> Option<Self> {
        let registry = config.id.clone();
        let worktree = context.plans.worktree()?;
        let shared = context.plans.shared_records(&worktree);
        let (own, dir) = (shared.below("sync"), context.plans.path_in(&worktree));
        let state = Self { shared, own, dir, registry, worktree };
        if state.own.has(TOGETHER) {
            // The lock waits for a running `put_all`, and what a killed one left is finished. If that fails, the next write
            // tries again.
            state.write(|_| Ok(())).ok();
        }
        Some(state)
    }

    pub(crate) fn name_of(&self, step: &StepId) -> Name {
        Name::of(&self.dir, step)
    }

    pub(crate) fn dir(&self) -> &str {
        &self.dir
    }

    /// The records of this clone for this plans directory.
    pub(crate) fn all_own(&self) -> Vec<OwnRecord> {
        self.own_where(is_record)
    }

    /// Those of [`Self::all_own`] with a change that the registry has not confirmed.
    pub(crate) fn unsettled(&self) -> Vec<OwnRecord> {
        let open = self.own.names().into_iter().filter_map(|it| it.strip_suffix(OPEN).map(str::to_owned));
        let open: HashSet<_> = open.collect();
        self.own_where(|it| open.contains(it)).into_iter().filter(OwnRecord::is_unsettled).collect()
    }

    fn own_where(&self, is_wanted: impl Fn(&str) -> bool) -> Vec<OwnRecord> {
        let all = self.own.all(is_wanted).into_iter();
        let read = all.filter_map(|(_, bytes)| serde_json::from_slice::<OwnRecord>(&bytes).ok());
        read.filter(|it| it.name.is_in(&self.dir)).collect()
    }

    /// The record under the id `step`, unless it is the record of a moved step under an earlier id.
    pub(crate) fn own(&self, step: &StepId) -> Option<OwnRecord> {
        self.own_of(&self.name_of(step)).filter(|it| it.under.is_none())
    }

    /// The record of a claim under the present id of its step.
    pub(crate) fn of_claim(&self, claim: &str) -> Option<OwnRecord> {
        self.all_own().into_iter().find(|it| it.claim == claim && it.under.is_none())
    }

    /// Whether this clone has any record.
    pub(crate) fn has_any(&self) -> bool {
        self.own.names().iter().any(|it| is_record(it))
    }

    /// The other records of the same claim, under other ids of its step.
    pub(crate) fn siblings(&self, own: &OwnRecord) -> Vec<OwnRecord> {
        let main = if own.under.is_some() { self.own(&own.step) } else { Some(own.clone()) };
        let Some(main) = main.filter(|it| it.claim == own.claim) else { return Vec::new() };
        let earlier = main.earlier.iter().filter_map(|it| self.own_of(&self.name_of(it)));
        let earlier: Vec<_> = earlier.filter(|it| it.under.is_some() && it.claim == own.claim).collect();
        earlier.into_iter().chain([main]).filter(|it| it.name != own.name).collect()
    }

    pub(crate) fn own_of(&self, name: &Name) -> Option<OwnRecord> {
        let own: OwnRecord = serde_json::from_slice(&self.own.get(&name.key())?).ok()?;
        (own.name == *name).then_some(own)
    }

    /// Whether this clone may have a record under this id. Only checks whether the file exists.
    pub(crate) fn has_own(&self, step: &StepId) -> bool {
        self.own.has(&self.name_of(step).key())
    }

    /// The records under earlier ids of a step, after the claim `new` has replaced `before`. Their wanted values are
    /// not set.
    pub(crate) fn inherited(&self, before: &OwnRecord, new: &OwnRecord) -> Vec<OwnRecord> {
        let earlier = self.siblings(before).into_iter().filter(|it| it.under.is_some());
        let of_new = |it: OwnRecord| {
            let (claim, was, tree) = (new.claim.clone(), Some(it.claim.clone()), new.tree.clone());
            OwnRecord { claim, was, tree, wanted: None, is_offline: new.is_offline, ..it }
        };
        earlier.map(of_new).collect()
    }

    pub(crate) fn put(&self, own: &OwnRecord) -> Result<(), Error> {
        self.write(|it| put_in(it, own))
    }

    /// Stores several records. If the process is killed meanwhile, either all of them are stored or none is.
    pub(crate) fn put_all(&self, all: &[OwnRecord]) -> Result<(), Error> {
        self.write(|it| {
            it.put(TOGETHER, &serde_json::to_vec(all).unwrap_or_default())?;
            finish_put_all(it)
        })
    }

    pub(crate) fn remove(&self, name: &Name) -> Result<(), Error> {
        let key = name.key();
        self.write(|it| it.remove(&key).and_then(|()| it.remove(&format!("{key}{OPEN}"))))
    }

    /// Stores the state of a record after the registry confirmed its wanted change. If the change was a deletion, removes
    /// the record from this clone. Also updates the stored listing.
    pub(crate) fn put_confirmed(&self, own: OwnRecord, now: Moment) -> Result<(), Error> {
        let name = own.name.clone();
        self.note_in_listing(&own, &now)?;
        own.confirmed(now).map_or_else(|| self.remove(&name), |it| self.put(&it))
    }

    pub(crate) fn last(&self) -> Last {
        let bytes = self.own.get(LAST).unwrap_or_default();
        serde_json::from_slice(&bytes).unwrap_or_default()
    }

    pub(crate) fn put_last(&self, last: &Last) -> Result<(), Error> {
        let bytes = serde_json::to_vec(last).unwrap_or_default();
        self.write(|it| it.put(LAST, &bytes))
    }

    fn write(&self, write: impl FnOnce(&disk::LockedRecords) -> std::io::Result<()>) -> Result<(), Error> {
        let locked = self.own.lock().and_then(|it| it.ok_or_else(|| std::io::ErrorKind::TimedOut.into()));
        let written = locked.and_then(|it| {
            // What a killed process left must not replace later records.
            finish_put_all(&it)?;
            write(&it)
        });
        written.map_err(|it| self.failed(&it))
    }

    fn failed(&self, error: &std::io::Error) -> Error {
        let message = format!("`{}` cannot be written: {error}", self.own.dir().display());
        Error::failed(
            "io-error",
            message,
            "claims can be shared with other machines only if this directory can be written",
        )
    }

    /// The last listing; an empty one if it was of another registry.
    pub(crate) fn seen(&self) -> Seen {
        let bytes = self.shared.get(SEEN).unwrap_or_default();
        let seen: Seen = serde_json::from_slice(&bytes).unwrap_or_default();
        let is_ours = seen.registry == self.registry;
        if is_ours { seen } else { Seen { registry: self.registry.clone(), ..Seen::default() } }
    }

    /// Updates the stored listing after a confirmed change. Without the update, a command could mistake the earlier value
    /// in the listing for a value of another clone.
    fn note_in_listing(&self, own: &OwnRecord, now: &Moment) -> Result<(), Error> {
        let value = match &own.wanted {
            Some(Wanted::Value { value, .. }) => Some(value),
            Some(Wanted::Gone) => None,
            None => return Ok(()),
        };
        let before = self.seen();
        let mut seen = before.clone();
        match value {
            Some(value) => {
                let record = Record::read(&own.name, &value.body);
                let (revision, first) = (value.revision.clone(), now.clone());
                let new = Sighting { revision, record, first, has_lapsed: false, is_branch_gone: false };
                seen.records.insert(own.name.clone(), new);
            }
            None => drop(seen.records.remove(&own.name)),
        }
        self.put_seen(&before, &seen)
    }

    /// Stores a listing, unless it equals the stored one.
    pub(crate) fn put_seen(&self, before: &Seen, seen: &Seen) -> Result<(), Error> {
        if before == seen && self.shared.has(SEEN) {
            return Ok(());
        }
        let bytes = serde_json::to_vec(seen).unwrap_or_default();
        let locked = self.shared.lock().and_then(|it| it.ok_or_else(|| std::io::ErrorKind::TimedOut.into()));
        locked.and_then(|it| it.put(SEEN, &bytes)).map_err(|it| self.failed(&it))
    }

    /// Waits until no other process of this clone lists records: two fetches of the same refs would disturb each other.
    pub(crate) fn lock_listing(&self) -> Result<disk::LockedRecords, Error> {
        let listing = self.own.below(LISTING);
        let locked = listing.lock().and_then(|it| it.ok_or_else(|| std::io::ErrorKind::TimedOut.into()));
        locked.map_err(|it| self.failed(&it))
    }
}

fn put_in(records: &disk::LockedRecords, own: &OwnRecord) -> std::io::Result<()> {
    let bytes = serde_json::to_vec(own).unwrap_or_default();
    let (key, open) = (own.name.key(), format!("{}{OPEN}", own.name.key()));
    match own.is_unsettled() {
        // If the process is killed between the two writes, a superfluous `.open` file remains, which has no effect.
        true => records.put_new(&open, b"").and_then(|()| records.put(&key, &bytes)),
        false => records.put(&key, &bytes).and_then(|()| records.remove(&open)),
    }
}

/// Writes the records of an unfinished [`SyncState::put_all`], if there is one.
fn finish_put_all(records: &disk::LockedRecords) -> std::io::Result<()> {
    let Some(bytes) = records.records().get(TOGETHER) else { return Ok(()) };
    let all: Vec<OwnRecord> = serde_json::from_slice(&bytes).unwrap_or_default();
    all.iter().try_for_each(|it| put_in(records, it))?;
    records.remove(TOGETHER)
}

/// The present moment, by the clock that counts from the machine's start.
pub(crate) fn now(context: &Context) -> Moment {
    let ms = u64::try_from(disk::since_boot().as_millis()).unwrap_or(u64::MAX);
    Moment { boot: disk::boot(context.plans.disk()), ms }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::id::read_step_id;

    fn value(text: &str) -> Value {
        Value { revision: Revision(text.to_owned()), body: text.to_owned(), ttl: 600 }
    }

    fn own(held: Option<&str>, wanted: Option<Wanted>) -> OwnRecord {
        let name = Name::of("plans", &read_step_id("p:1").unwrap());
        let held = held.map(value);
        let step = read_step_id("p:1").unwrap();
        let machine = super::super::tests::machine();
        let state = SyncState::of(&super::super::tests::context(&machine)).unwrap();
        OwnRecord { name, held, wanted, ..OwnRecord::new(&state, step, "g1".to_owned()) }
    }

    #[test]
    fn the_change_that_is_repeated_follows_from_what_is_held_and_wanted() {
        let wants = |text: &str, from: Option<&str>| {
            let from = from.map(|it| Revision(it.to_owned()));
            Some(Wanted::Value { value: value(text), from })
        };
        let name = || Name::of("plans", &read_step_id("p:1").unwrap());
        let old = |it: &str| Revision(it.to_owned());
        let table = [
            (own(None, None), None),
            (own(Some("a"), None), None),
            (own(None, wants("a", None)), Some(Change::Create { name: name(), new: value("a") })),
            (
                own(Some("a"), wants("b", None)),
                Some(Change::Replace { name: name(), old: old("a"), new: value("b"), is_take_over: false }),
            ),
            (
                own(None, wants("b", Some("x"))),
                Some(Change::Replace { name: name(), old: old("x"), new: value("b"), is_take_over: true }),
            ),
            (own(Some("a"), Some(Wanted::Gone)), Some(Change::Delete { name: name(), old: old("a") })),
            (own(None, Some(Wanted::Gone)), None),
        ];
        for (own, expected) in table {
            assert_eq!(own.change(), expected, "{own:?}");
            let now = Moment { boot: None, ms: 7 };
            let left = own.clone().confirmed(now);
            let is_left = !matches!(own.wanted, Some(Wanted::Gone)) && own.newest().is_some();
            assert_eq!(left.is_some(), is_left, "{own:?}");
            assert!(left.is_none_or(|it| !it.is_unsettled() && it.held.as_ref() == own.newest()));
            let written = serde_json::to_vec(&own).unwrap();
            assert_eq!(serde_json::from_slice::<OwnRecord>(&written).unwrap(), own);
        }
    }

    #[test]
    fn records_stored_together_are_all_stored_or_none_is_after_a_kill() {
        let machine = super::super::tests::machine();
        let state = SyncState::of(&super::super::tests::context(&machine)).unwrap();
        let of = |id: &str, text: &str| {
            let step = read_step_id(id).unwrap();
            OwnRecord { name: state.name_of(&step), step, ..own(Some(text), None) }
        };
        let before = [of("p:1", "a"), of("p:2", "b")];
        let after = [of("p:1", "b"), of("p:2", "a")];
        let stored = |state: &SyncState| {
            let all = state.all_own();
            let is = |expected: &[OwnRecord]| expected.iter().all(|it| all.contains(it));
            assert_eq!(all.len(), 2);
            (is(&before), is(&after))
        };
        before.iter().for_each(|it| state.put(it).unwrap());
        let (mut n_before, mut n_after) = (0, 0);
        for call in 1.. {
            let dying = machine.dying_before(call);
            if let Some(state) = SyncState::of(&super::super::tests::context(&dying)) {
                state.put_all(&after).ok();
            }
            if !dying.has_died() {
                break;
            }
            let state = SyncState::of(&super::super::tests::context(&dying.after_kill())).unwrap();
            match stored(&state) {
                (true, false) => n_before += 1,
                (false, true) => n_after += 1,
                it => panic!("{call}: {it:?}"),
            }
            assert!(!state.own.has(TOGETHER));
        }
        assert!(n_before > 0 && n_after > 4, "{n_before} {n_after}");
    }

    #[test]
    fn a_listing_is_not_a_record_of_this_clone() {
        let machine = super::super::tests::machine();
        let state = SyncState::of(&super::super::tests::context(&machine)).unwrap();
        drop(state.lock_listing().unwrap());
        assert!(!state.has_any());
        state.put(&own(Some("a"), None)).unwrap();
        assert!(state.has_any());
    }
}
