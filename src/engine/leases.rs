//! Where claims are recorded on this machine: whose they are, until when they hold, and for which working tree.
//!
//! In a git repository the records lie in `<git-common-dir>/planwatch`, where all its working trees see them; elsewhere, or
//! where that cannot be written, in `.planwatch/leases`. One file for each claimed step, named by a hash of the plans
//! directory's place and the step; `closed` has a line for each claimed step that was completed or skipped.
//!
//! # What survives a kill
//! A claim is three writes under the two locks (plans directory, then records), in this order:
//! 1. `<key>.new`, the record;
//! 2. the step's file, with the claim line, exchanged and synced;
//! 3. `<key>.new` becomes `<key>`; only then is the claim handed out.
//!
//! Killed before 2: no file names the claim, and a `.new` alone holds nothing. Killed before 3: the file has a claim
//! that nobody was told. Whoever holds the locks next sees its `.new`, knows that its maker is dead (it is of this boot), and
//! takes the step over at once; readers without the lock show it as held until then. Killed after 3: the claim holds until it lapses.
//!
//! An end of work writes the step's file first, then the record. Killed in between the record outlives the claim: where
//! the file says closed that holds nobody up; another working tree looks at that file before it takes the step over. A
//! released step counts as claimed (`taken-back`) until the lease is over.
//!
//! # What survives a power cut
//! The step's file: it is synced before anything is answered. Records are not synced, because losing one is safe: every
//! worker is dead too, a claim without a record lapses a day after its time stamp, and one with the record of an
//! earlier boot lapses with its process or its time. A lost line of `closed` can only lead to a step being done
//! once more on another branch.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::disk::{self, Head, LockedRecords, Process, ProcessState, Records, Worktree};
use crate::engine::context::{Context, Notice};
use crate::engine::error::Error;
use crate::engine::load;
use crate::plan::claims::{Claims, Held, Holding, Lapse};
use crate::plan::id::{StepId, read_step_id};
use crate::plan::model::Step;
use crate::plan::plans::Plans;
use crate::plan::read;
use crate::plan::time::Time;

/// The log of closed steps.
const CLOSED: &str = "closed";

/// Each time the log has grown by this much, what no longer matters is left out.
const SHORTEN: u64 = 64 << 10;

/// A claim as this machine remembers it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Record {
    pub(crate) step: String,
    pub(crate) claim: String,
    pub(crate) by: Option<String>,
    pub(crate) at: Option<Time>,
    /// When the lease is over; where the process can be seen, that alone counts.
    pub(crate) until: Time,
    /// How long a renewal holds, in seconds.
    pub(crate) lease: i64,
    pub(crate) process: Option<Process>,
    /// The boot of the machine in which it was made.
    boot: Option<String>,
    /// The step's file, relative to the plans directory.
    file: String,
    #[serde(flatten)]
    place: Place,
}

/// Where a claim was made.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Place {
    /// The plans directory in its working tree.
    plans: String,
    worktree: PathBuf,
    branch: Option<String>,
}

/// A line of the log of closed steps.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Closed {
    key: String,
    step: String,
    claim: String,
    by: Option<String>,
    #[serde(flatten)]
    place: Place,
}

/// The records as one moment has them.
pub(crate) struct Leases<'a> {
    context: &'a Context,
    worktree: Option<Worktree>,
    place: Place,
    shared: Option<Records>,
    own: Option<Records>,
}

impl<'a> Leases<'a> {
    /// Finds where the records are; reads nothing yet.
    pub(crate) fn of(context: &'a Context) -> Self {
        let plans = &context.plans;
        let worktree = plans.worktree();
        let place = worktree.as_ref().map(|it| Place {
            plans: plans.path_in(it),
            worktree: it.root.clone(),
            branch: match plans.head(it) {
                Head::Branch(name) => Some(name),
                Head::Detached => None,
            },
        });
        let shared = worktree.as_ref().map(|it| plans.shared_records(it));
        let place = place.unwrap_or_default();
        Self { context, worktree, place, shared, own: plans.own_records() }
    }

    /// Tells plans what is known of claims on their steps.
    pub(crate) fn tell(&self, plans: Plans) -> Plans {
        self.tell_as(plans, Unfinished::Held)
    }

    /// As [`Self::tell`], where claims that may be unfinished are worth a look under the lock.
    pub(crate) fn tell_hopefully(&self, plans: Plans) -> Plans {
        self.tell_as(plans, Unfinished::Interrupted)
    }

    fn tell_as(&self, plans: Plans, unfinished: Unfinished) -> Plans {
        let claims = self.claims(&plans, unfinished);
        if claims.is_empty() { plans } else { plans.with_claims(claims) }
    }

    fn claims(&self, plans: &Plans, unfinished: Unfinished) -> Claims {
        let mut claims = Claims::default();
        let mut branches = HashMap::new();
        for records in [&self.shared, &self.own].into_iter().flatten() {
            for (name, bytes) in records.all() {
                if name == CLOSED {
                    for closed in lines(&bytes).filter(|it| it.place.plans == self.place.plans) {
                        self.add_closed(&mut claims, plans, closed, &mut branches);
                    }
                } else if let Ok(record) = serde_json::from_slice::<Record>(&bytes) {
                    self.add_live(&mut claims, plans, &name, &record, unfinished);
                }
            }
        }
        claims
    }

    fn add_live(
        &self,
        claims: &mut Claims,
        plans: &Plans,
        name: &str,
        record: &Record,
        unfinished: Unfinished,
    ) {
        let Some(id) = read_step_id(&record.step).filter(|_| record.place.plans == self.place.plans) else {
            return;
        };
        let is_new = name.ends_with(".new");
        let is_in_file =
            || plans.step(&id).and_then(|it| it.claim.as_ref()).is_some_and(|it| it.id == record.claim);
        // One that never became a record is a claim only where the file has it.
        if is_new && !is_in_file() {
            return;
        }
        let is_here = record.place.worktree == self.place.worktree;
        let mut lapse = match unfinished {
            Unfinished::Interrupted if is_new && self.is_of_this_boot(record) => Some(Lapse::Interrupted),
            _ => self.lapse(record),
        };
        let mut holding = match is_here {
            true => Holding::Here,
            false => Holding::Elsewhere { worktree: record.place.worktree.display().to_string() },
        };
        if lapse.is_some() && !is_here && self.is_closed_there(plans, &id, record) {
            lapse = None;
            holding = Holding::Closed { branch: record.place.branch.clone() };
        }
        let (claim, by) = (record.claim.clone(), record.by.clone());
        claims.add(id, Held { claim, by, at: record.at, lapse, holding });
    }

    fn add_closed(
        &self,
        claims: &mut Claims,
        plans: &Plans,
        closed: Closed,
        branches: &mut HashMap<(Option<String>, PathBuf), bool>,
    ) {
        let Some(id) = read_step_id(&closed.step) else { return };
        let Some(step) = plans.step(&id).filter(|it| !it.is_closed()) else { return };
        // A file that still has the claim was never closed: its end was interrupted.
        if step.claim.as_ref().is_some_and(|it| it.id == closed.claim) {
            return;
        }
        let Place { branch, worktree, .. } = closed.place;
        let key = (branch.clone(), worktree);
        let is_there =
            *branches.entry(key).or_insert_with_key(|(branch, root)| self.is_there(branch.as_deref(), root));
        if is_there {
            let holding = Holding::Closed { branch };
            claims.add(id, Held { claim: closed.claim, by: closed.by, at: None, lapse: None, holding });
        }
    }

    fn is_there(&self, branch: Option<&str>, root: &Path) -> bool {
        self.worktree.as_ref().is_some_and(|it| self.context.plans.has_branch(it, branch, root))
    }

    fn lapse(&self, record: &Record) -> Option<Lapse> {
        let is_over = self.context.now >= record.until;
        let by_time = is_over.then_some(Lapse::Expired);
        match record.process.as_ref().map(|it| it.state(self.context.plans.disk())) {
            Some(ProcessState::Running) => None,
            Some(ProcessState::Gone) => Some(Lapse::Interrupted),
            Some(ProcessState::Unseen) | None => by_time,
        }
    }

    /// A power cut may turn a claim that was told into an unfinished one; a killed process cannot.
    fn is_of_this_boot(&self, record: &Record) -> bool {
        record.boot.is_some() && record.boot == disk::boot(self.context.plans.disk())
    }

    /// Whether another working tree's own file shows the step closed, though nobody told the records.
    fn is_closed_there(&self, plans: &Plans, id: &StepId, record: &Record) -> bool {
        let Some(plan) = plans.get(&id.plan) else { return false };
        let path = record.place.worktree.join(&record.place.plans).join(&record.file);
        let Ok(bytes) = disk::read_file(self.context.plans.disk(), &path) else { return false };
        let content = read::Content { etag: load::etag(&bytes), bytes, modified: self.context.now };
        read::read_step_of(plan, id, &record.file, content, &self.context.config.words).is_closed()
    }

    /// Finds the record of a claim by its id.
    pub(crate) fn find(&self, claim: &str) -> Option<Record> {
        let all = [&self.shared, &self.own].into_iter().flatten().flat_map(Records::all);
        let records = all.filter_map(|(_, bytes)| serde_json::from_slice::<Record>(&bytes).ok());
        records.into_iter().find(|it| it.claim == claim && it.place.plans == self.place.plans)
    }

    fn has(&self, name: &str) -> bool {
        [&self.shared, &self.own].into_iter().flatten().any(|it| it.has(name))
    }

    fn key(&self, step: &StepId) -> String {
        let mut hash = blake3::hash(format!("{}\0{step}", self.place.plans).as_bytes()).to_hex().to_string();
        hash.truncate(16);
        hash
    }
}

/// What a claim counts for that was not made to the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unfinished {
    /// It may be under way this moment.
    Held,
    /// Nobody else holds the locks, so who made it is dead.
    Interrupted,
}

/// The records while nobody else writes them.
pub(crate) struct Locked<'a> {
    leases: Leases<'a>,
    /// None: nothing can be remembered here, or nothing is to be written.
    records: Option<LockedRecords>,
}

/// Who may do without records that all working trees see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sharing {
    /// A claim: refused, where more than one working tree could claim the same step.
    Wanted,
    /// Any other change, or a claim that insists.
    Waived,
}

impl<'a> Locked<'a> {
    /// Takes the lock of the records, after the lock of the plans directory.
    pub(crate) fn take(context: &'a Context, sharing: Sharing) -> Result<Self, Error> {
        let leases = Leases::of(context);
        let Some((shared, worktree)) = leases.shared.as_ref().zip(leases.worktree.as_ref()) else {
            return Ok(Self::own(leases));
        };
        let why = match shared.lock() {
            Ok(Some(records)) => return Ok(Self { leases, records: Some(records) }),
            Ok(None) => "another process holds its lock".to_owned(),
            Err(error) => said(&error),
        };
        let path = shared.dir().display().to_string();
        if sharing == Sharing::Wanted && context.plans.count_worktrees(worktree) > 1 {
            return Err(Error::ClaimsNotShared { path, why });
        }
        (context.tell)(Notice::ClaimsNotShared { path, why });
        Ok(Self::own(leases))
    }

    /// For a dry run: what is known, and nothing is written.
    pub(crate) fn look(context: &'a Context) -> Self {
        Self { leases: Leases::of(context), records: None }
    }

    fn own(leases: Leases<'a>) -> Self {
        let own = leases.context.plans.own_records_to_write();
        let records = own.and_then(|it| it.lock().ok().flatten());
        Self { leases: Leases { own: records.as_ref().map(|it| it.records().clone()), ..leases }, records }
    }

    /// As [`Leases::tell`], with the locks held: who made an unfinished claim is dead.
    pub(crate) fn tell(&self, plans: Plans) -> Plans {
        let is_alone = self.records.is_some();
        self.leases.tell_as(plans, if is_alone { Unfinished::Interrupted } else { Unfinished::Held })
    }

    /// Writes the record of a claim that is about to be made; see the module's first lines.
    pub(crate) fn prepare(&self, new: &NewRecord<'_>) -> Result<(), Error> {
        let Some(records) = &self.records else { return Ok(()) };
        let record = Record {
            step: new.step.id.to_string(),
            claim: new.claim.to_owned(),
            by: Some(new.by.to_owned()),
            at: Some(new.at.whole_seconds()),
            until: new.at.plus_seconds(new.lease),
            lease: new.lease,
            process: new.process.cloned(),
            boot: disk::boot(self.leases.context.plans.disk()),
            file: new.step.path.clone(),
            place: self.leases.place.clone(),
        };
        let name = format!("{}.new", self.leases.key(&new.step.id));
        records.put_new(&name, &bytes_of(&record)).map_err(|it| self.failed(&it))
    }

    /// Makes the prepared claim count; only then may it be told.
    pub(crate) fn confirm(&self, step: &StepId) -> Result<(), Error> {
        let Some(records) = &self.records else { return Ok(()) };
        let key = self.leases.key(step);
        records.rename(&format!("{key}.new"), &key).map_err(|it| self.failed(&it))?;
        // A new claim ends what was closed before: its file was not, or it was opened again.
        self.forget_closed(&key);
        Ok(())
    }

    /// Takes a prepared claim back that came to nothing.
    pub(crate) fn withdraw(&self, step: &StepId) {
        if let Some(records) = &self.records {
            records.remove(&format!("{}.new", self.leases.key(step))).ok();
        }
    }

    fn failed(&self, error: &std::io::Error) -> Error {
        let dir =
            self.records.as_ref().map(|it| it.records().dir().display().to_string()).unwrap_or_default();
        let message = format!("`{dir}` cannot be written: {}", said(error));
        Error::Failed { code: "io-error", message, hint: "the step was left to the next claim".to_owned() }
    }

    /// Lets the claim hold for its lease from now on; returns until when.
    pub(crate) fn renew(&self, step: &StepId, claim: &str, lease: Option<i64>) -> Option<Time> {
        let key = self.leases.key(step);
        let (records, mut record) =
            self.records.as_ref().zip(self.get(&key).filter(|it| it.claim == claim))?;
        record.lease = lease.unwrap_or(record.lease);
        record.until = self.leases.context.now.plus_seconds(record.lease);
        // A lease that could not be made longer holds as long as before.
        records.put(&key, &bytes_of(&record)).ok()?;
        Some(record.until)
    }

    /// Gives a claim in a file the record that it lacks on this machine.
    pub(crate) fn adopt(&self, new: &NewRecord<'_>) -> Result<(), Error> {
        self.prepare(new)?;
        self.confirm(&new.step.id)
    }

    fn get(&self, key: &str) -> Option<Record> {
        let bytes = self.records.as_ref()?.records().get(key)?;
        serde_json::from_slice(&bytes).ok()
    }

    /// Remembers what a change of a step did to its claim.
    pub(crate) fn changed(&self, before: &Step, after: &Step, renews: bool) {
        let Some(records) = &self.records else { return };
        let key = self.leases.key(&after.id);
        let record = self.get(&key);
        let had = before.claim.as_ref().map(|it| it.id.as_str());
        let has = after.claim.as_ref().map(|it| it.id.as_str());
        if before.is_closed() && !after.is_closed() {
            self.forget_closed(&key);
        }
        let Some(record) = record else { return };
        if has == Some(record.claim.as_str()) {
            if renews {
                self.renew(&after.id, &record.claim, None);
            }
            return;
        }
        let is_ours =
            had == Some(record.claim.as_str()) || record.place.worktree == self.leases.place.worktree;
        if !is_ours || (before.status == after.status && had == has) {
            return;
        }
        if after.is_closed() {
            self.close(&key, &record);
        }
        records.remove(&key).ok();
    }

    /// Ends whatever is recorded of a step that has gone.
    pub(crate) fn forget(&self, step: &StepId) {
        let key = self.leases.key(step);
        let is_ours = |it: &Record| it.place.worktree == self.leases.place.worktree;
        if let Some(records) = self.records.as_ref().filter(|_| self.get(&key).is_some_and(|it| is_ours(&it)))
        {
            records.remove(&key).ok();
        }
    }

    /// Takes the record along with a step that got another number.
    fn moved(&self, from: &StepId, to: &StepId, file: &str) {
        let (old, new) = (self.leases.key(from), self.leases.key(to));
        let Some((records, record)) = self.records.as_ref().zip(self.get(&old)) else { return };
        if record.place.worktree == self.leases.place.worktree {
            let record = Record { step: to.to_string(), file: file.to_owned(), ..record };
            records.put(&new, &bytes_of(&record)).and_then(|()| records.remove(&old)).ok();
        }
    }

    /// Keeps other branches from doing it again; where there are none, the file says it all.
    fn close(&self, key: &str, record: &Record) {
        let Some(records) = self.records.as_ref().filter(|_| self.leases.worktree.is_some()) else { return };
        let closed = Closed {
            key: key.to_owned(),
            step: record.step.clone(),
            claim: record.claim.clone(),
            by: record.by.clone(),
            place: record.place.clone(),
        };
        let line = line_of(&closed);
        let Ok(before) = records.append(CLOSED, &line) else { return };
        if before / SHORTEN != (before + line.len() as u64) / SHORTEN {
            let mut branches = HashMap::new();
            self.keep_closed(|it| {
                let key = (it.place.branch.clone(), it.place.worktree.clone());
                let there = branches.entry(key);
                *there.or_insert_with_key(|(branch, root)| self.leases.is_there(branch.as_deref(), root))
            });
        }
    }

    fn forget_closed(&self, key: &str) {
        let bytes = self.records.as_ref().and_then(|it| it.records().get(CLOSED)).unwrap_or_default();
        // Most claims are the first of their step, and the log may be long.
        if bytes.windows(key.len()).any(|it| it == key.as_bytes()) {
            self.keep_closed(|it| it.key != key);
        }
    }

    fn keep_closed(&self, mut is_kept: impl FnMut(&Closed) -> bool) {
        let Some(records) = &self.records else { return };
        let Some(bytes) = records.records().get(CLOSED) else { return };
        let (kept, gone): (Vec<_>, Vec<_>) = lines(&bytes).partition(|it| is_kept(it));
        if !gone.is_empty() {
            records.put(CLOSED, &kept.iter().flat_map(line_of).collect::<Vec<_>>()).ok();
        }
    }
}

/// What a new record says.
pub(crate) struct NewRecord<'a> {
    pub(crate) step: &'a Step,
    pub(crate) claim: &'a str,
    pub(crate) by: &'a str,
    pub(crate) at: Time,
    pub(crate) lease: i64,
    pub(crate) process: Option<&'a Process>,
}

/// Remembers what a change did to a step's claim, if anything is remembered of it.
///
/// The change is done: what cannot be noted now is found out later, at the latest when the lease is over.
pub(crate) fn changed(context: &Context, before: &Step, after: &Step, renews: bool) {
    let leases = Leases::of(context);
    let is_reopened = before.is_closed() && !after.is_closed();
    if (leases.has(&leases.key(&after.id)) || is_reopened && leases.has(CLOSED))
        && let Ok(locked) = Locked::take(context, Sharing::Waived)
    {
        locked.changed(before, after, renews);
    }
}

/// Takes the claim of a step along that got another number.
pub(crate) fn moved(context: &Context, from: &StepId, to: &StepId, file: &str) {
    let leases = Leases::of(context);
    if leases.has(&leases.key(from))
        && let Ok(locked) = Locked::take(context, Sharing::Waived)
    {
        locked.moved(from, to, file);
    }
}

/// Forgets the claim of a step that has gone, or is given back although its file knows of none.
pub(crate) fn forget(context: &Context, step: &StepId) {
    let leases = Leases::of(context);
    if leases.has(&leases.key(step))
        && let Ok(locked) = Locked::take(context, Sharing::Waived)
    {
        locked.forget(step);
    }
}

/// What the system said, without its number.
fn said(error: &std::io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error ").next().unwrap_or_default().to_owned()
}

fn lines(bytes: &[u8]) -> impl Iterator<Item = Closed> {
    bytes.split(|&byte| byte == b'\n').filter_map(|it| serde_json::from_slice(it).ok())
}

fn bytes_of(record: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(record).unwrap_or_default()
}

fn line_of(closed: &Closed) -> Vec<u8> {
    let mut line = bytes_of(closed);
    line.push(b'\n');
    line
}
