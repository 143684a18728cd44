//! The daemon's queue of ready steps. When other processes request claims, the daemon takes the steps from this queue. The
//! queue is cached between claims.
//!
//! The event loop reports which plans changed, and only these are compared with the cached state. The cached queue stays
//! valid as long as the plans and the claim records have no other changes than the daemon's own claims. Otherwise all
//! plans are loaded again.
//!
//! Processes, other working trees and branches are not part of the cache key. If the plans' state depends on them, or a
//! step of the queue already has a record, the queue is not cached. A cached queue is used until the first end of a lease
//! that it depends on, but for at most [`HOLDS`] seconds.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, HashMap, HashSet, VecDeque};

use super::LONG_LEASE;
use super::candidates::{self, Ready};
use crate::api::context::Context;
use crate::index::Key;
use crate::plan::id::read_step_id;
use crate::plan::model::Plan;
use crate::plan::plans::Plans;
use crate::plan::rules::{self, Turn};
use crate::plan::time::Time;
use crate::store::leases::{self, Leases, Listed, NEAR, UNFINISHED, unfinished};
use crate::store::load::{self, LoadQuery};
use crate::store::resolve::NamedStep;

/// The longest queue; it serves many claims, one after the other.
const LONGEST: usize = 192;

/// How many seconds a queue is cached at most. This is less than [`super::LONG_LEASE`], and a later claim with a lease
/// shorter than [`super::LONG_LEASE`] makes the queue invalid. So no lease of a later claim ends while the queue is used.
const HOLDS: i64 = 30;

/// Returns the directories of the live plans that changed since the last call, or `None` if these are unknown. All changes
/// that were complete before the call are included.
pub(crate) type Since<'a> = &'a dyn Fn() -> Option<BTreeSet<String>>;

#[derive(Debug, Default)]
pub struct QueueCache {
    cached: Option<CachedQueue>,
}

#[derive(Debug)]
struct CachedQueue {
    /// A hash of the plans directory's path, of its place in the repository, and of the settings that claims depend on. The
    /// queue is valid only for requests with the same hash.
    environment: String,
    basis: CacheKey,
    /// For the directory of each plan that has steps in the queue, the plan's files, sorted by path.
    files: HashMap<String, Vec<SourceFile>>,
    /// The paths of the steps that were claimed since the queue was made.
    claimed: HashSet<String>,
}

/// A file that a queue was made from: its path, its hash, and its modification time. The time is `None` after this
/// process has written a claim into the file.
type SourceFile = (String, String, Option<Time>);

/// What a queue was made from, except the files.
#[derive(Debug)]
struct CacheKey {
    /// A hash of the names and stamps of all records, except those of the queue's steps and those in `under_way`.
    records: String,
    /// The names of the records of claims that were unfinished before the plans were read, or that appeared during the
    /// read.
    under_way: Vec<String>,
    steps: Vec<QueuedStep>,
    /// Whether the queue contains all steps that were ready when it was made.
    is_whole: bool,
    at: Time,
    /// From this time on, the queue may change merely because time passes.
    until: Time,
}

#[derive(Debug)]
struct QueuedStep {
    id: String,
    path: String,
    /// The name that its claim record would have.
    key: String,
    /// The index of its plan among the plans from which the queue was made.
    plan: usize,
    /// Its position by urgency alone, ignoring the order within plans.
    rank: usize,
}

impl QueueCache {
    /// Lists the ready steps in the order in which they are claimed, as [`candidates::look`] does.
    ///
    /// The second value says whether the queue was cached. The plans may have more ready steps than a cached queue
    /// lists. Returns `None` if the changes since the last call are unknown, or if the plans cannot be loaded.
    pub(crate) fn queue(
        &mut self,
        context: &Context,
        environment: &str,
        since: Since<'_>,
    ) -> Option<(Vec<Ready>, bool)> {
        let cached = self.cached.take().filter(|it| it.environment == environment);
        let seen = since()?;
        let current = cached.and_then(|mut it| it.current(context, &seen).map(|queue| (it, queue)));
        let current = current.filter(|(_, queue)| !queue.is_empty());
        let is_cached = current.is_some();
        let (cached, queue) = match current {
            Some((cached, queue)) => (Some(cached), queue),
            None => look(context, environment)?,
        };
        self.cached = cached;
        Some((queue, is_cached))
    }

    /// Records that this process claimed a step, with the hash of its file after the claim.
    ///
    /// A claim with a short lease makes the cached queue invalid.
    pub(crate) fn claimed(&mut self, path: &str, hash: &str, lease: i64) {
        if lease < LONG_LEASE {
            self.cached = None;
        }
        self.cached = self.cached.take().and_then(|it| it.with_claimed(path, hash));
    }
}

fn directory(path: &str) -> &str {
    path.split_once('/').map_or(path, |it| it.0)
}

fn look(context: &Context, environment: &str) -> Option<(Option<CachedQueue>, Vec<Ready>)> {
    let leases = Leases::of(context);
    let listed = leases.listed(&|_| true);
    let plans = LoadQuery::all().lazily().without_claims().load(context).ok()?.plans;
    let begun = appeared(&listed, leases.listed(&|_| false));
    let plans = leases.annotate_optimistically(plans);
    let turns: Vec<_> = rules::in_turn(&plans, context.now, |_| true).take(LONGEST).collect();
    let queue = turns.iter().map(|it| candidates::ready(&plans, it.step)).collect();
    let is_steady = plans.is_steady(context.now, context.now.plus_seconds(HOLDS));
    let basis = is_steady.then(|| CacheKey::of(&leases, context.now, (listed, begun), &turns)).flatten();
    let cached = basis.map(|basis| {
        let files = files_of(&plans, &basis);
        CachedQueue { environment: environment.to_owned(), basis, files, claimed: HashSet::new() }
    });
    drop(turns);
    load::drop_in_background(plans);
    Some((cached, queue))
}

/// The files of the plans from which a queue's steps come.
fn files_of(plans: &Plans, basis: &CacheKey) -> HashMap<String, Vec<SourceFile>> {
    let names: HashSet<_> = basis.steps.iter().map(|it| directory(&it.path)).collect();
    let is_asked = |it: &&Plan| names.contains(directory(&it.path));
    let files = |plan: &Plan| {
        let steps = plan.steps.iter().map(|it| (&it.path, &it.etag, it.modified));
        let all = steps.chain([(&plan.path, &plan.etag, plan.modified)]);
        let noted = |(path, etag, modified): (&String, &Option<String>, _)| {
            etag.as_ref().map(|etag| (path.clone(), etag.clone(), modified))
        };
        let mut all: Vec<_> = all.filter_map(noted).collect();
        all.sort_unstable();
        (directory(&plan.path).to_owned(), all)
    };
    plans.live().filter(is_asked).map(files).collect()
}

/// Whether files are unchanged. Modification times are compared, too, because a step without a creation date is ordered by
/// the modification time of its file.
fn is_same(noted: &[SourceFile], now: &[(String, String, Time)]) -> bool {
    let is_one = |((path, hash, at), now): (&SourceFile, &(String, String, Time))| {
        *path == now.0 && *hash == now.1 && at.is_none_or(|it| it == now.2)
    };
    noted.len() == now.len() && noted.iter().zip(now).all(is_one)
}

impl CachedQueue {
    /// The remaining steps of the queue; `None` if the plans have to be loaded.
    fn current(&mut self, context: &Context, seen: &BTreeSet<String>) -> Option<Vec<Ready>> {
        let recorded = self.basis.recorded(context)?;
        let is_as_noted = |name: &String| {
            let key = Key { is_archived: false, name: name.clone() };
            let (noted, now) = (self.files.get(name), load::hashes_in(context, &key));
            noted.zip(now).is_some_and(|(noted, now)| is_same(noted, &now))
        };
        if !seen.iter().all(is_as_noted) {
            return None;
        }
        let is_left = |it: &QueuedStep| match self.claimed.contains(&it.path) {
            true => Some(false),
            // If the step has a record now, but this process did not claim it, another process did, usually in another
            // working tree. The queue is then invalid.
            false => (!recorded.contains(&it.key)).then_some(true),
        };
        let left: Option<Vec<_>> = self.basis.steps.iter().map(is_left).collect();
        self.basis.left(&left?)
    }

    /// The cached queue after this claim. `None` if the step's file is not among the files from which the queue was made.
    fn with_claimed(mut self, path: &str, hash: &str) -> Option<Self> {
        let file = self.files.get_mut(directory(path))?.iter_mut().find(|it| it.0 == path)?;
        (file.1, file.2) = (hash.to_owned(), None);
        self.claimed.insert(path.to_owned());
        Some(self)
    }
}

/// The names of the steps' records that `now` has and `before` lacks. The suffix of unfinished records is removed.
fn appeared(before: &Listed, now: Listed) -> Vec<String> {
    let before: HashSet<_> = before.iter().map(|(_, name, _)| name).collect();
    let is_new = |it: &String| !leases::is_log(it) && !before.contains(it);
    let names = now.into_iter().map(|(_, name, _)| name).filter(is_new);
    names.map(|it| it.trim_end_matches(UNFINISHED).to_owned()).collect()
}

impl CacheKey {
    /// Builds the key from the records listed before the plans were read, and from those that appeared during the read.
    /// Returns `None` if the queue cannot be cached.
    fn of(
        leases: &Leases<'_>,
        at: Time,
        (listed, appeared): (Listed, Vec<String>),
        turns: &[Turn<'_>],
    ) -> Option<Self> {
        if turns.is_empty() || leases.is_uncacheable() {
            return None;
        }
        let mut by_rank: Vec<_> = (0..turns.len()).collect();
        by_rank.sort_by(|a, b| turns[*a].cmp(&turns[*b]));
        let names: HashSet<_> = listed.iter().map(|(_, name, _)| name.clone()).collect();
        let mut steps = Vec::new();
        for (nth, turn) in turns.iter().enumerate() {
            let (id, path) = (turn.step.id.to_string(), turn.step.path.clone());
            turn.step.etag.as_ref()?;
            let key = Some(leases.key(&turn.step.id)).filter(|it| !names.contains(it))?;
            let rank = by_rank.iter().position(|it| *it == nth)?;
            steps.push(QueuedStep { id, path, key, plan: turn.at, rank });
        }
        let unfinished =
            listed.iter().filter_map(|(_, name, _)| Some(name.strip_suffix(UNFINISHED)?.to_owned()));
        let under_way: Vec<_> = unfinished.chain(appeared).collect();
        let apart = names_of(&steps, &under_way);
        let records = leases::hash_of(listed.into_iter().filter(|(_, name, _)| !apart.contains(name)));
        let is_whole = turns.len() < LONGEST;
        let until = at.plus_seconds(HOLDS);
        let until = leases.first_end().map_or(until, |it| it.min(until));
        let basis = Self { records, under_way, steps, is_whole, at, until };
        basis.holds_at(at).then_some(basis)
    }

    /// Whether the queue is valid now and for the next `NEAR` seconds.
    fn holds_at(&self, now: Time) -> bool {
        self.at <= now.plus_seconds(NEAR) && now.plus_seconds(NEAR) < self.until
    }

    /// The names of the present records that do not make the queue invalid (see [`names_of`]). `None` if other records or
    /// the time make the queue invalid.
    fn recorded(&self, context: &Context) -> Option<HashSet<String>> {
        if !self.holds_at(context.now) {
            return None;
        }
        let apart = names_of(&self.steps, &self.under_way);
        let listed = Leases::of(context).listed(&|name| !apart.contains(name));
        let (own, others): (Vec<_>, Vec<_>) =
            listed.into_iter().partition(|(_, name, _)| apart.contains(name));
        let is_same = leases::hash_of(others.into_iter()) == self.records;
        is_same.then(|| own.into_iter().map(|(_, name, _)| name).collect())
    }

    /// The remaining steps, in the order in which they are claimed.
    fn left(&self, left: &[bool]) -> Option<Vec<Ready>> {
        let ready = in_turn(&self.steps, left, self.is_whole).into_iter().map(|nth| {
            let step = &self.steps[nth];
            let file = step.path.rsplit('/').next().map(str::to_owned);
            Some(Ready { step: NamedStep::in_file(read_step_id(&step.id)?, file), has_lapsed: false })
        });
        ready.collect()
    }
}

/// The order in which the remaining steps are claimed, as [`rules::in_turn`] defines it. Each plan's steps are claimed in
/// the order of their numbers. The next step is always the most urgent one among the first remaining steps of all plans.
///
/// A plan may have further ready steps that the queue does not contain. Let L be the place of the plan's last step in the
/// queue. The further steps follow the steps after L in the order of claims, but can be more urgent than the steps before L.
/// So once no step of the plan is left in the queue, the result ends before the first step whose place is before L.
fn in_turn(steps: &[QueuedStep], left: &[bool], is_whole: bool) -> Vec<usize> {
    let mut plans: HashMap<usize, (VecDeque<usize>, usize)> = HashMap::new();
    for (nth, step) in steps.iter().enumerate() {
        let (queue, last) = plans.entry(step.plan).or_default();
        *last = nth;
        if left[nth] {
            queue.push_back(nth);
        }
    }
    let ended = |it: &(VecDeque<usize>, usize)| it.0.is_empty().then_some(it.1);
    let mut known_from = plans.values().filter_map(ended).max();
    let head = |nth: &usize| Reverse((steps[*nth].rank, *nth));
    let mut first: BinaryHeap<_> = plans.values().filter_map(|(queue, _)| queue.front()).map(head).collect();
    let mut found = Vec::new();
    while let Some(Reverse((_, nth))) = first.pop() {
        if !is_whole && known_from.is_some_and(|it| nth < it) {
            break;
        }
        found.push(nth);
        if let Some(plan) = plans.get_mut(&steps[nth].plan) {
            plan.0.pop_front();
            first.extend(plan.0.front().map(head));
            known_from = known_from.max(ended(plan));
        }
    }
    found
}

/// The names of the records that may appear and disappear without making the queue invalid. They belong to the steps of the
/// queue, or to claims that were unfinished when the queue was made.
fn names_of(steps: &[QueuedStep], under_way: &[String]) -> HashSet<String> {
    let keys = steps.iter().map(|it| &it.key).chain(under_way);
    keys.flat_map(|it| [it.clone(), unfinished(it)]).collect()
}

#[cfg(test)]
mod tests;
