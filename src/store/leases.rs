//! The records of claims on this machine: their owners, their leases and their working trees.
//!
//! In a git repository the records are in `<git-common-dir>/planwatch`, which all its working trees share (`shared`).
//! Outside a repository, or if that directory is not writable, they are in `.planwatch/leases` (`own`). There is one file
//! for each claimed step. Its name is the step's key: a hash of the plans directory's path and the step's id. The log files
//! `closed-XX` contain the ended claims (see `log`). `former` handles records under earlier step numbers.
//!
//! # What survives a kill
//! A claim is made by three writes under two locks, first that of the plans directory, then that of the records:
//! 1. The record is written as `<key>.new`.
//! 2. The step's file is replaced by one with the claim line, and synced.
//! 3. `<key>.new` is renamed to `<key>`. Only after this is the claim returned to the caller.
//!
//! If the process is killed before write 2, there is no claim, because the step's file does not contain it. If it is
//! killed between writes 2 and 3, the file contains a claim that was never returned. The next process that takes the
//! locks finds `<key>.new`. Since the locks were free, the process that wrote it is dead, and the step can be claimed
//! again at once. Until then, readers without the locks show the step as claimed. If the record was made before the
//! machine was last started, a power cut may have undone write 3, so the claim holds until it lapses. If the process is
//! killed after write 3, the claim holds until it lapses.
//!
//! If write 1 replaces the `<key>.new` of a claim that the step's file contains, the new record names that claim
//! (`replaces`). So if the process that wrote the new record is also killed before write 2, the step can still be claimed
//! again at once.
//!
//! When work ends, the step's file is written first, and then the record is removed. If the process is killed in between,
//! the record remains. If the step is closed in its file, the record is ignored; another working tree reads that file
//! before it takes the step over. If the step was released, it still counts as claimed (the problem `taken-back`) until
//! the claim in the record lapses.
//!
//! If an undo restores a claim, the step's file is written first, and then the record is made again from the log. If the
//! process is killed in between, the claim is in force in this working tree only.
//!
//! If a claim is requested with an idempotency key, the request can be sent again to complete the claim
//! (`store::idempotency`). The request's key gets a record of its own before write 3. From then on `<key>.new` counts like
//! `<key>`, and the repeated request renames it.
//!
//! # What survives a power cut
//! The step's file survives, because it is synced before the claim is returned. Records are not synced, because losing
//! one is safe: every worker is dead too. A claim without a record lapses a day after its time stamp. A claim with a
//! record of an earlier boot lapses because its process has ended or, if it has no process that can be observed, when its
//! lease ends. If a line of the log is lost, the worst result is that a step is done again on another branch.

mod former;
mod locked;
mod log;
mod record;
mod remote;
mod renamed;
mod sharing;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use crate::api::context::Context;
use crate::disk::{self, Head, Process, ProcessState, Records, Stat, Worktree};
use crate::index::{Stamp, stamps};
use crate::plan::claims::{Claims, HeldClaim, Holding, Lapse};
use crate::plan::id::{StepId, read_step_id};
use crate::plan::model::Step;
use crate::plan::plans::Plans;
use crate::plan::read;
use crate::plan::time::Time;

use former::{FORMER, former};
use record::Place;

pub(crate) use sharing::NotShared;

pub(crate) use log::is_log;

pub(crate) use former::{Move, moved, removed};
pub(crate) use locked::{
    Effect, Locked, NewRecord, Sharing, changed, end_unclaimed, forget, note_worker, reopened, restored,
};
pub(crate) use record::{Record, RunRecord};
pub(crate) use renamed::renamed;

/// The suffix of a record's name until its claim is complete.
pub(crate) const UNFINISHED: &str = ".new";

/// For up to this many steps, the records are opened by name, and their directory is not listed.
pub(crate) const FEW: usize = 16;

/// A decision that must stay valid for a moment treats a lease that ends within this many seconds as ended.
pub(crate) const NEAR: i64 = 2;

pub(crate) type Listed = Vec<(bool, String, Option<Stat>)>;

/// Reads the claim records for one plans directory.
pub(crate) struct Leases<'a> {
    context: &'a Context,
    worktree: Option<Worktree>,
    /// The path of the plans directory, relative to `root`. Both are empty outside a repository.
    plans: String,
    root: PathBuf,
    /// Set when first needed, because most commands find no record and do not need it (benchmark T6).
    branch: OnceLock<Option<String>>,
    shared: Option<Records>,
    own: Option<Records>,
    /// Whether the claims must not be cached, because they depend on processes, other working trees or branches, or because
    /// a record could not be read.
    is_uncacheable: AtomicBool,
    /// The earliest end of the leases that were found to be running.
    first_end: Mutex<Option<Time>>,
    /// Identifies the present boot of the machine; set when first needed.
    boot: OnceLock<Option<String>>,
}

impl<'a> Leases<'a> {
    /// Locates the records without reading them.
    pub(crate) fn of(context: &'a Context) -> Self {
        let plans = &context.plans;
        let worktree = plans.worktree();
        Self {
            context,
            plans: worktree.as_ref().map(|it| plans.path_in(it)).unwrap_or_default(),
            root: worktree.as_ref().map(|it| it.root.clone()).unwrap_or_default(),
            branch: OnceLock::new(),
            shared: worktree.as_ref().map(|it| plans.shared_records(it)),
            own: plans.own_records(),
            worktree,
            is_uncacheable: AtomicBool::new(false),
            first_end: Mutex::default(),
            boot: OnceLock::new(),
        }
    }

    pub(crate) fn boot(&self) -> Option<&str> {
        self.boot.get_or_init(|| disk::boot(self.context.plans.disk())).as_deref()
    }

    /// Reads again what may have changed while waiting for a lock: the branch, and whether there are own records.
    fn look_again(&mut self) {
        self.branch = OnceLock::new();
        self.own = self.context.plans.own_records();
    }

    /// The place of the plans, with the branch that is checked out.
    fn place(&self) -> Place {
        let branch = || self.worktree.as_ref().and_then(|it| branch(self.context, it));
        let (plans, worktree) = (self.plans.clone(), self.root.clone());
        Place { plans, worktree, branch: self.branch.get_or_init(branch).clone() }
    }

    /// Adds the claims to the plans.
    pub(crate) fn annotate(&self, plans: Plans) -> Plans {
        self.annotate_as(plans, Unfinished::Held, None)
    }

    /// Like [`Self::annotate`], but also adds the ended claims of `step`, which is about to be changed. The status of the step
    /// does not matter.
    pub(crate) fn annotate_for(&self, plans: Plans, step: &StepId) -> Plans {
        self.annotate_as(plans, Unfinished::Held, Some(step))
    }

    /// Like [`Self::annotate`], but an unconfirmed claim counts as interrupted, and its step as free, unless the record is
    /// of an earlier boot or a repeated request can still complete the claim. Callers check the step under the lock.
    pub(crate) fn annotate_optimistically(&self, plans: Plans) -> Plans {
        self.annotate_as(plans, Unfinished::Interrupted, None)
    }

    fn annotate_as(&self, plans: Plans, unfinished: Unfinished, changed: Option<&StepId>) -> Plans {
        let mut claims = self.claims(&plans, unfinished, changed);
        // With the limit, `next` does not offer steps that have no attempts left. `planwatch claim` marks such steps as
        // failed, so it needs them, and it loads plans without the limit.
        if unfinished == Unfinished::Held {
            claims.set_limit(self.context.config.max_attempts() as usize);
        }
        if claims.is_empty() { plans } else { plans.with_claims(claims) }
    }

    fn claims(&self, plans: &Plans, unfinished: Unfinished, changed: Option<&StepId>) -> Claims {
        let mut claims = Claims::default();
        let (mut branches, mut restored) = (HashMap::new(), Vec::new());
        let changed = changed.map(|it| self.key(it));
        // If the directory does not exist, its records are not opened by name one after another (benchmark T4).
        for records in [&self.shared, &self.own].into_iter().flatten().filter(|it| it.may_exist()) {
            for name in self.about(plans, records) {
                let bytes = if is_log(&name) { records.read_log(&name) } else { records.read(&name) };
                // A record that cannot be read now may be readable later, so the claims must not be cached.
                self.is_uncacheable.fetch_or(bytes.is_err(), Ordering::Relaxed);
                let Ok(Some(bytes)) = bytes else { continue };
                if is_log(&name) {
                    let may_be = |key: &str, step: &str| {
                        changed.as_deref() == Some(key) || Self::may_be_closed_elsewhere(plans, step)
                    };
                    let lines = log::lines_of(&bytes, may_be);
                    for closed in lines.filter(|it| it.place.plans == self.plans) {
                        restored.extend(self.add_closed(&mut claims, plans, closed, &mut branches));
                    }
                } else if name.ends_with(FORMER) {
                    for record in self.held_formerly(plans, &name, &bytes, |it| records.get(it)) {
                        self.add_live(&mut claims, plans, &name, &record, unfinished);
                    }
                } else if let Ok(record) = serde_json::from_slice::<Record>(&bytes) {
                    self.add_live(&mut claims, plans, &name, &record, unfinished);
                }
            }
        }
        // Restored claims are added last, because another claim in force on the same step ends them.
        restored.into_iter().for_each(|(id, closed)| self.add_restored(&mut claims, id, closed));
        remote::add(self.context, &mut claims, plans);
        claims
    }

    /// Whether the step's lines in the log may matter. If the step is open here, it may have been closed elsewhere. If its
    /// file contains a claim, an ended claim may have been restored.
    fn may_be_closed_elsewhere(plans: &Plans, step: &str) -> bool {
        let step = read_step_id(step).and_then(|it| plans.step(&it));
        step.is_some_and(|it| !it.is_closed() || it.claim.is_some())
    }

    /// The names of the records that may concern these plans. For a few steps they are computed, without listing the
    /// directory.
    fn about(&self, plans: &Plans, records: &Records) -> Vec<String> {
        let steps = || plans.live().flat_map(|it| &it.steps);
        // The same plan name in another Unicode normal form has another key.
        let is_plain = || steps().all(|it| it.id.plan.as_str().is_ascii());
        let key = |it: &Step| self.key(&it.id);
        if steps().nth(FEW).is_none() && is_plain() {
            // The order matters: a claim that is completed after the first file was read is found in the second file.
            // If the step gets another number after that, the claim is found in the third file.
            let all = |it| [unfinished(&key(it)), key(it), former(&key(it))];
            let mut names: Vec<_> = steps().flat_map(all).collect();
            let logs: BTreeSet<_> = steps().map(|it| log::log_of(&key(it))).collect();
            names.extend([log::UNSPLIT.to_owned()].into_iter().chain(logs));
            return names;
        }
        let mut names = records.names();
        if steps().take(names.len()).count() < names.len() && is_plain() {
            let keys: HashSet<_> = steps().map(key).collect();
            names.retain(|it| {
                is_log(it) || keys.contains(it.trim_end_matches(UNFINISHED).trim_end_matches(FORMER))
            });
        }
        // Logs are read last, because an ending claim is logged before its record is removed. The unsplit log is the
        // first of them, because its lines are copied to the other logs before it is removed.
        names.sort_by_key(|it| is_log(it));
        names
    }

    /// Whether the claims must not be cached; see the field for the reasons.
    pub(crate) fn is_uncacheable(&self) -> bool {
        self.is_uncacheable.load(Ordering::Relaxed)
    }

    /// The earliest end of the leases that were found to be running; `None` if there are none.
    pub(crate) fn first_end(&self) -> Option<Time> {
        *self.first_end.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lists the records: whether each is in the shared directory, its name, and its stat if `is_wanted` accepts the name.
    pub(crate) fn listed(&self, is_wanted: &dyn Fn(&str) -> bool) -> Listed {
        let places = [(true, &self.shared), (false, &self.own)].into_iter();
        let all = places.filter_map(|(is_shared, it)| Some((is_shared, it.as_ref()?)));
        all.flat_map(|(is_shared, records)| {
            let stat = move |name: &String| is_wanted(name).then(|| records.stat(name)).flatten();
            records.names().into_iter().map(move |name| (is_shared, stat(&name), name))
        })
        .map(|(is_shared, stat, name)| (is_shared, name, stat))
        .collect()
    }

    /// Returns a hash of the location of the plans, and a hash of the names and stamps of all records.
    pub(crate) fn fingerprint(&self) -> String {
        let place = blake3::hash(self.location().as_bytes()).to_hex();
        format!("{place} {}", hash_of(self.listed(&|_| true).into_iter()))
    }

    pub(crate) fn location(&self) -> String {
        let Self { plans, root, .. } = self;
        format!("{plans:?} {root:?}")
    }

    /// Whether a claim on the step is recorded, in force or not.
    pub(crate) fn has_record(&self, step: &StepId) -> bool {
        self.has(&self.key(step))
    }

    fn add_live(
        &self,
        claims: &mut Claims,
        plans: &Plans,
        name: &str,
        record: &Record,
        unfinished: Unfinished,
    ) {
        let Some(id) = read_step_id(&record.step).filter(|_| record.place.plans == self.plans) else {
            return;
        };
        let is_new = name.ends_with(UNFINISHED);
        // An unfinished record counts only if the step's file contains its claim, or the claim that it replaces.
        let in_file = plans.step(&id).and_then(|it| it.claim.as_ref()).map(|it| &it.id);
        let claim =
            if is_new { in_file.filter(|it| record.is_of_unconfirmed(it)) } else { Some(&record.claim) };
        let Some(claim) = claim.cloned() else { return };
        let is_replaced = claim != record.claim;
        let is_here = record.place.worktree == self.root;
        let mut lapse = match unfinished {
            // Another process took the locks afterwards, so the process that made the replaced claim is dead.
            _ if is_replaced => Some(Lapse::Interrupted),
            Unfinished::Interrupted if is_new && self.is_of_this_boot(record) && !self.is_due(record) => {
                Some(Lapse::Interrupted)
            }
            _ => self.lapse(record.until, record.process.as_ref()),
        };
        let mut holding = match is_here {
            true => Holding::Here,
            false => self.elsewhere(&record.place),
        };
        if lapse.is_some() && !is_here && self.is_closed_there(plans, &id, record) {
            lapse = None;
            holding = Holding::Closed { branch: record.place.branch.clone(), is_here: false };
        }
        let known = Some(record).filter(|_| !is_replaced);
        let (by, at) = (known.and_then(|it| it.by.clone()), known.and_then(|it| it.at));
        let log = known.and_then(|it| it.run.as_ref()).map(|it| it.log.clone());
        let until = self.ends_at(record.until, record.process.as_ref());
        claims.add(id, HeldClaim { claim, by, at, lapse, holding, until, log });
    }

    /// Adds an ended claim of the log. If the step's file contains the claim, returns it for [`Self::add_restored`] instead.
    fn add_closed(
        &self,
        claims: &mut Claims,
        plans: &Plans,
        closed: log::Closed,
        branches: &mut HashMap<(Option<String>, PathBuf), bool>,
    ) -> Option<(StepId, log::Closed)> {
        let id = read_step_id(&closed.step)?;
        let (plan, step) = plans.get(&id.plan).and_then(|it| Some((it, it.find(&id)?)))?;
        if closed.same.as_ref().is_some_and(|it| !self.is_same(plan, step, &closed.claim, it)) {
            return None;
        }
        // If the file still contains the claim, the change that ended the claim was interrupted, or an undo or a checkout
        // restored the claim.
        if step.claim.as_ref().is_some_and(|it| it.id == closed.claim) {
            return Some((id, closed));
        }
        if closed.created_at.zip(step.created_at).is_some_and(|(closed, now)| closed != now) {
            return None;
        }
        if closed.is_open || step.is_closed() || self.is_dropped(&closed.place, step) {
            claims.add_ended(id, closed.claim);
            return None;
        }
        let Place { branch, worktree, .. } = closed.place.clone();
        let key = (branch.clone(), worktree);
        let is_there =
            *branches.entry(key).or_insert_with_key(|(branch, root)| self.is_there(branch.as_deref(), root));
        if is_there {
            let is_here = self.is_this_place(&closed.place);
            let holding = Holding::Closed { branch, is_here };
            let log::Closed { claim, by, at, .. } = closed;
            claims.add(id, HeldClaim { claim, by, at, lapse: None, holding, until: None, log: None });
        }
        None
    }

    /// Adds a claim that an undo or a checkout restored: for the rest of its lease, or as ended if the step was taken over.
    fn add_restored(&self, claims: &mut Claims, id: StepId, closed: log::Closed) {
        let log::Closed { claim, by, at, until, process, place, .. } = closed;
        if self.find(&claim).is_some() {
            return;
        }
        let Some(until) = until.filter(|_| !claims.is_held_by_another(&id, &claim)) else {
            return claims.add_ended(id, claim);
        };
        let is_here = place.worktree == self.root;
        let holding = if is_here { Holding::Here } else { self.elsewhere(&place) };
        let lapse = self.lapse(until, process.as_ref());
        let until = self.ends_at(until, process.as_ref());
        claims.add(id, HeldClaim { claim, by, at, lapse, holding, until, log: None });
    }

    fn elsewhere(&self, place: &Place) -> Holding {
        self.is_uncacheable.store(true, Ordering::Relaxed);
        let is_gone = self.is_removed(place);
        Holding::Elsewhere { worktree: place.worktree.display().to_string(), is_gone }
    }

    fn is_removed(&self, place: &Place) -> bool {
        let found = self.context.plans.disk().lstat(&place.worktree);
        found.is_err_and(|it| it.kind() == std::io::ErrorKind::NotFound)
    }

    fn is_there(&self, branch: Option<&str>, root: &Path) -> bool {
        self.is_uncacheable.store(true, Ordering::Relaxed);
        self.worktree.as_ref().is_some_and(|it| self.context.plans.has_branch(it, branch, root))
    }

    fn lapse(&self, until: Time, process: Option<&Process>) -> Option<Lapse> {
        let is_over = self.context.now >= until;
        let mut first = self.first_end.lock().unwrap_or_else(PoisonError::into_inner);
        if !is_over && first.is_none_or(|it| until < it) {
            *first = Some(until);
        }
        drop(first);
        self.is_uncacheable.fetch_or(process.is_some(), Ordering::Relaxed);
        let by_time = is_over.then_some(Lapse::Expired);
        match process.map(|it| it.state(self.context.plans.disk())) {
            Some(ProcessState::Running) => None,
            Some(ProcessState::Gone) => Some(Lapse::Interrupted),
            Some(ProcessState::Unseen) | None => by_time,
        }
    }

    /// When the lease ends; `None` while the claim's process runs, because the lease has no effect then.
    fn ends_at(&self, until: Time, process: Option<&Process>) -> Option<Time> {
        let state = process.map(|it| it.state(self.context.plans.disk()));
        (state != Some(ProcessState::Running)).then_some(until)
    }

    /// Whether the record is so recent that no power cut can have undone the confirmation of its claim.
    fn is_of_this_boot(&self, record: &Record) -> bool {
        record.boot.is_some() && record.boot.as_deref() == self.boot()
    }

    /// Whether a repeated request can still complete this claim, because the request's key has a record.
    fn is_due(&self, record: &Record) -> bool {
        record.key.as_ref().is_some_and(|it| self.context.plans.has_answer(it))
    }

    /// Whether the step is closed in its file in the working tree that made the record.
    fn is_closed_there(&self, plans: &Plans, id: &StepId, record: &Record) -> bool {
        let Some(plan) = plans.get(&id.plan) else { return false };
        let path = record.place.worktree.join(&record.place.plans).join(&record.file);
        let Ok(bytes) = disk::read_file(self.context.plans.disk(), &path) else { return false };
        let content = read::Content::new(bytes, self.context.now);
        read::read_step_of(plan, id, &record.file, content, &self.context.config.words).is_closed()
    }

    /// All records except the log files.
    fn all(&self) -> impl Iterator<Item = (String, Vec<u8>)> {
        [&self.shared, &self.own].into_iter().flatten().flat_map(|it| it.all(|name| !is_log(name)))
    }

    pub(crate) fn find(&self, claim: &str) -> Option<Record> {
        let records = self.all().filter_map(|(_, bytes)| serde_json::from_slice::<Record>(&bytes).ok());
        records.into_iter().find(|it| it.claim == claim && it.place.plans == self.plans)
    }

    /// Returns the claims whose process runs. If there is no process, or it cannot be observed, the claim is included until
    /// its lease ends, and at least for `patience` seconds after it was made or renewed.
    pub(crate) fn claims_at_work(&self, patience: i64) -> HashSet<String> {
        let records = self.all().filter_map(|(_, bytes)| serde_json::from_slice::<Record>(&bytes).ok());
        let is_at_work = |it: &Record| {
            let until = it.until.plus_seconds((patience - it.lease).max(0));
            it.place.plans == self.plans && self.lapse(until, it.process.as_ref()).is_none()
        };
        records.filter(is_at_work).map(|it| it.claim).collect()
    }

    /// The claims that runs made in this working tree, each with whether its run is alive.
    pub(crate) fn runs(&self) -> Vec<(Record, bool)> {
        self.runs_named(&|name| !name.ends_with(UNFINISHED))
    }

    /// The claims of live runs in this working tree, including unconfirmed ones, which may already be in their steps' files.
    pub(crate) fn live_runs(&self) -> Vec<Record> {
        let live = self.runs_named(&|_| true).into_iter().filter(|(_, is_live)| *is_live);
        live.map(|(it, _)| it).collect()
    }

    fn runs_named(&self, counts: &dyn Fn(&str) -> bool) -> Vec<(Record, bool)> {
        let named = self.all().filter(|(name, _)| counts(name));
        let records = named.filter_map(|(_, bytes)| serde_json::from_slice::<Record>(&bytes).ok());
        let is_here = |it: &Place| it.plans == self.plans && it.worktree == self.root;
        let own = records.filter(|it| it.run.is_some() && is_here(&it.place));
        let is_live = |it: &Record| self.lapse(it.until, it.process.as_ref()).is_none();
        own.map(|it| (is_live(&it), it)).map(|(is_live, it)| (it, is_live)).collect()
    }

    /// Whether the log may contain an ended claim of the step that has this key.
    fn has_log(&self, key: &str) -> bool {
        self.has(&log::log_of(key)) || self.has(log::UNSPLIT)
    }

    /// Whether a claim of the step that has this key may be recorded, under this key or another one.
    fn has_any(&self, key: &str) -> bool {
        self.has(key) || self.has(&former(key))
    }

    /// Whether a claim of the step may be recorded, in force or ended.
    fn has_anything(&self, step: &StepId) -> bool {
        let key = self.key(step);
        self.has_any(&key) || self.has_log(&key)
    }

    fn has_other_trees(&self) -> bool {
        self.worktree.as_ref().is_some_and(|it| self.context.plans.count_worktrees(it) > 1)
    }

    fn has(&self, name: &str) -> bool {
        [&self.shared, &self.own].into_iter().flatten().any(|it| it.has(name))
    }

    /// The name of a step's record; an unfinished one has the suffix `.new`.
    pub(crate) fn key(&self, step: &StepId) -> String {
        let mut hash = blake3::hash(format!("{}\0{step}", self.plans).as_bytes()).to_hex().to_string();
        hash.truncate(16);
        hash
    }
}

pub(crate) fn hash_of(listed: impl Iterator<Item = (bool, String, Option<Stat>)>) -> String {
    let stamp = |it: Stat| Stamp::new(it.len, it.mtime_ns, it.ctime_ns, it.ino, it.dev);
    let named = listed.map(|(is_shared, name, stat)| {
        (format!("{is_shared}/{name}"), stat.map_or_else(|| Stamp::new(0, 0, 0, 0, 0), stamp))
    });
    let named: Vec<_> = named.collect();
    read::etag(&stamps(named.iter().map(|(name, stamp)| (name.as_str(), *stamp))))
}

fn branch(context: &Context, worktree: &Worktree) -> Option<String> {
    match context.plans.head(worktree) {
        Head::Branch(name) => Some(name),
        Head::Detached => None,
    }
}

pub(crate) fn unfinished(key: &str) -> String {
    format!("{key}{UNFINISHED}")
}

/// How an unfinished claim is treated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unfinished {
    /// Another process may be making it now, so it counts as a claim.
    Held,
    /// The process that began it counts as dead. This is certain only while this process holds the locks.
    Interrupted,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::model::Machine;
    use crate::store::load::LoadQuery;

    #[test]
    fn for_a_few_steps_unfinished_records_are_read_first() {
        let machine = Machine::with(&[("/plans/p/plan.md", "# P\n"), ("/plans/p/step-1.md", "# One\n")]);
        let context = Context::on_model(&machine);
        let leases = Leases::of(&context);
        let plans = LoadQuery::all().without_claims().load(&context).unwrap().plans;
        let records = context.plans.own_records_to_write().unwrap();
        let key = leases.key(&plans.live().next().unwrap().steps[0].id);
        // In the other order a claim that is completed between the two reads would be missed.
        let log = log::log_of(&key);
        assert_eq!(
            leases.about(&plans, &records),
            [unfinished(&key), key.clone(), former(&key), log::UNSPLIT.to_owned(), log]
        );
    }

    #[test]
    fn a_live_run_is_known_before_its_claim_is_confirmed() {
        let machine = Machine::with(&[("/plans/p/plan.md", "# P\n"), ("/plans/p/step-1.md", "# One\n")]);
        let context = Context::on_model(&machine);
        let plans = LoadQuery::all().without_claims().load(&context).unwrap().plans;
        let step = &plans.live().next().unwrap().steps[0];
        let locked = Locked::take(&context, Sharing::Waived).unwrap();
        let run = RunRecord { log: "log".to_owned(), touches: None, worker: None };
        let (by, at, lease) = ("bot", context.now, 600);
        let new = NewRecord { step, claim: "h1", by, at, lease, process: None, run: Some(&run), key: None };
        let known = || {
            let leases = Leases::of(&context);
            (leases.runs().len(), leases.live_runs().len())
        };
        locked.prepare(&new).unwrap();
        assert_eq!(known(), (0, 1));
        locked.confirm(&step.id).unwrap();
        assert_eq!(known(), (1, 1));
    }
}
