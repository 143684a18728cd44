//! Whether the queue of an earlier look is what a look would find now, but for the steps that were claimed since.
//!
//! A look notes what its queue was made from: which files of plans there are, with their stamps; the content of those
//! whose stamps are too young; and which claims are recorded. If all of that is as it was, so is the queue. One thing
//! may be otherwise: a step of the queue that was claimed. Whoever claims leaves a remark which content became which by
//! that, and a claim changes nothing that other steps hang on. Anything else that has changed, or that is not
//! understood, is a reason to look at the plans again.
//!
//! What is not noted: processes, other working trees and branches. Where a look had to ask them, or a step of the queue
//! has a record already, the queue is not kept; and none is kept for longer than the first lease that the look saw, nor
//! for long, for those of later claims.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap, HashSet, VecDeque};

use serde::{Deserialize, Serialize};

use super::candidates::{KEPT, Ready, Recorded};
use crate::api::context::Context;
use crate::index::{FileRow, Stamp, stamps};
use crate::plan::id::read_step_id;
use crate::plan::rules::Turn;
use crate::plan::time::Time;
use crate::store::leases::{self, Leases, Listed, NEAR, UNFINISHED, unfinished};
use crate::store::load;
use crate::store::resolve::NamedStep;

/// The remarks of those who claim, in `.planwatch`.
const REMARKS: &str = "claimed";

/// With more files whose stamps are too young the plans are looked at again.
const MANY_DOUBTS: usize = 256;

/// How many seconds a queue is kept: the claims that were made meanwhile hold for longer, see [`super::LONG`].
pub(crate) const HOLDS: i64 = 30;

/// What a queue was made from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Proof {
    /// A hash of the paths and stamps of all files, but for those of the queue's steps.
    files: String,
    /// Those of them whose stamps are too young, with the hashes of what was in them.
    doubts: Vec<(String, String)>,
    /// Of each step's file the stamp, and whether that says that the content is the same.
    stamps: Vec<(String, bool)>,
    basis: Basis,
}

/// What a queue was made from beside the files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Basis {
    /// A hash of the names and stamps of all records, but for those of the queue's steps and of claims under way.
    records: String,
    /// The names of those.
    under_way: Vec<String>,
    /// The queue, in the order in which it was handed out.
    pub(crate) steps: Vec<Kept>,
    /// There were no more steps.
    is_whole: bool,
    /// When it was made.
    at: Time,
    /// From then on time alone may make it another one.
    until: Time,
}

/// A step of a queue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Kept {
    id: String,
    pub(crate) path: String,
    etag: String,
    /// The name of its record; there was none.
    key: String,
    /// The number of its plan.
    plan: usize,
    /// Which it would be, if every step could be handed out now.
    rank: usize,
}

/// How a step of a queue stands, as far as can be seen without the lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stand {
    Left,
    /// Its claim is being made, or who made it died.
    Unfinished,
    Claimed,
}

/// Leaves the remark that a claim makes this content out of that one.
pub(crate) fn note_claimed(context: &Context, before: &[u8], after: &[u8]) {
    context.plans.remark(REMARKS, &remark(&load::etag(before), &load::etag(after)));
}

fn remark(before: &str, after: &str) -> String {
    format!("{before} {after}")
}

/// The names, without their ends, of records of steps that were not there before.
pub(crate) fn appeared(before: &Listed, now: Listed) -> Vec<String> {
    let before: HashSet<_> = before.iter().map(|(_, name, _)| name).collect();
    let is_new = |it: &String| !leases::is_log(it) && !before.contains(it);
    let names = now.into_iter().map(|(_, name, _)| name).filter(is_new);
    names.map(|it| it.trim_end_matches(UNFINISHED).to_owned()).collect()
}

/// Notes what a queue was made from at this time; none: it cannot be said of all of it. See [`Basis::of`].
pub(crate) fn proof(
    leases: &Leases<'_>,
    at: Time,
    records: (Listed, Vec<String>),
    turns: &[Turn<'_>],
    files: Vec<(String, FileRow)>,
) -> Option<Proof> {
    let basis = Basis::of(leases, at, records, turns)?;
    let mut files: BTreeMap<_, _> = files.into_iter().collect();
    let mut stamps = Vec::new();
    for Kept { path, etag, .. } in &basis.steps {
        let row = files.remove(path).filter(|it| it.hash == *etag)?;
        stamps.push((hash_of(std::iter::once((path.as_str(), row.stamp))), !row.is_in_doubt()));
    }
    let doubts = files.iter().filter(|(_, it)| it.is_in_doubt());
    let doubts: Vec<_> = doubts.map(|(path, it)| (path.clone(), it.hash.clone())).collect();
    let files = hash_of(files.iter().map(|(path, it)| (path.as_str(), it.stamp)));
    (doubts.len() <= MANY_DOUBTS).then_some(Proof { files, doubts, stamps, basis })
}

/// The queue as a look would find it now; none: only a look can tell.
pub(crate) fn still(context: &Context, proof: &Proof) -> Option<Vec<Ready>> {
    let Proof { basis, .. } = proof;
    let recorded = basis.recorded(context)?;
    let is_as_it_was = |(path, etag): &(String, String)| etag_of(context, path).as_ref() == Some(etag);
    if !proof.doubts.iter().all(is_as_it_was) {
        return None;
    }
    let places: HashMap<_, _> =
        basis.steps.iter().enumerate().map(|(nth, it)| (it.path.as_str(), nth)).collect();
    let mut stamped = vec![None; basis.steps.len()];
    let mut files = load::stamps_now(context)?;
    files.retain(|(path, stamp)| match places.get(path.as_str()) {
        Some(nth) => {
            stamped[*nth] = Some(hash_of(std::iter::once((path.as_str(), *stamp))));
            false
        }
        None => true,
    });
    if hash_of(files.iter().map(|(path, stamp)| (path.as_str(), *stamp))) != proof.files {
        return None;
    }
    let remarks = context.plans.remarks(REMARKS);
    let remarks: HashSet<_> = remarks.lines().collect();
    let each = basis.steps.iter().zip(&proof.stamps).zip(stamped);
    let stands: Option<Vec<_>> = each
        .map(|((kept, (before, is_sure)), now)| {
            let is_same = now?.as_str() == before;
            kept.stand(context, (is_same, *is_sure), &remarks, &recorded)
        })
        .collect();
    basis.left(&stands?)
}

impl Basis {
    /// Notes it at this time: the records as they were before anything was read, and the names of those that were made
    /// meanwhile. None: it cannot be said of all of it.
    pub(crate) fn of(
        leases: &Leases<'_>,
        at: Time,
        (listed, appeared): (Listed, Vec<String>),
        turns: &[Turn<'_>],
    ) -> Option<Self> {
        if turns.is_empty() || leases.asked_more() {
            return None;
        }
        let mut by_rank: Vec<_> = (0..turns.len()).collect();
        by_rank.sort_by(|a, b| turns[*a].cmp(&turns[*b]));
        let names: HashSet<_> = listed.iter().map(|(_, name, _)| name.clone()).collect();
        let mut steps = Vec::new();
        for (nth, turn) in turns.iter().enumerate() {
            let (id, path, etag) =
                (turn.step.id.to_string(), turn.step.path.clone(), turn.step.etag.clone()?);
            let key = Some(leases.key(&turn.step.id)).filter(|it| !names.contains(it))?;
            let rank = by_rank.iter().position(|it| *it == nth)?;
            steps.push(Kept { id, path, etag, key, plan: turn.at, rank });
        }
        let unfinished =
            listed.iter().filter_map(|(_, name, _)| Some(name.strip_suffix(UNFINISHED)?.to_owned()));
        let under_way: Vec<_> = unfinished.chain(appeared).collect();
        let apart = names_of(&steps, &under_way);
        let records = leases::hash_of(listed.into_iter().filter(|(_, name, _)| !apart.contains(name)));
        let is_whole = turns.len() < KEPT;
        let until = at.plus_seconds(HOLDS);
        let until = leases.first_end().map_or(until, |it| it.min(until));
        let basis = Self { records, under_way, steps, is_whole, at, until };
        basis.holds_at(at).then_some(basis)
    }

    /// Whether time has not made another queue of it, nor will in a moment.
    fn holds_at(&self, now: Time) -> bool {
        self.at <= now.plus_seconds(NEAR) && now.plus_seconds(NEAR) < self.until
    }

    /// The names of records of the queue's steps; none if those of others, or the time, make another queue.
    pub(crate) fn recorded(&self, context: &Context) -> Option<HashSet<String>> {
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

    /// What is left of the queue, in the order in which it is handed out.
    pub(crate) fn left(&self, stands: &[Stand]) -> Option<Vec<Ready>> {
        let left: Vec<_> = stands.iter().map(|it| *it != Stand::Claimed).collect();
        let ready = in_turn(&self.steps, &left, self.is_whole).into_iter().map(|nth| {
            let kept = &self.steps[nth];
            let file = kept.path.rsplit('/').next().map(str::to_owned);
            let is_unfinished = stands[nth] == Stand::Unfinished;
            let recorded = if is_unfinished { Recorded::Unfinished } else { Recorded::Nothing };
            Some(Ready { step: NamedStep::in_file(read_step_id(&kept.id)?, file), recorded })
        });
        ready.collect()
    }
}

impl Kept {
    /// How the step stands, whose stamp is the same or not, and says by that that its content is; none: it is not what
    /// it was.
    fn stand(
        &self,
        context: &Context,
        (is_same, is_sure): (bool, bool),
        remarks: &HashSet<&str>,
        recorded: &HashSet<String>,
    ) -> Option<Stand> {
        let etag = if is_same && is_sure { self.etag.clone() } else { etag_of(context, &self.path)? };
        if etag == self.etag {
            return self.stand_untouched(recorded).filter(|_| is_same);
        }
        // Of one that is not made to the end the lock shows what becomes of the step. Its file is younger now, so that
        // nothing that stood behind it would go before it.
        let is_unfinished = recorded.contains(&unfinished(&self.key));
        let stand = if is_unfinished { Stand::Unfinished } else { Stand::Claimed };
        remarks.contains(remark(&self.etag, &etag).as_str()).then_some(stand)
    }

    /// How the step stands if its file is what it was.
    ///
    /// A claim that the file does not show is that of another working tree. One that is not made to the end may be a
    /// dead process's: that shows under the lock.
    pub(crate) fn stand_untouched(&self, recorded: &HashSet<String>) -> Option<Stand> {
        (!recorded.contains(&self.key)).then_some(Stand::Left)
    }
}

/// In which order the steps that are left are handed out, as [`crate::plan::rules::in_turn`] has it: each plan's in the
/// order of their numbers, and of their first ones the most urgent.
///
/// What a plan has behind its last step here is not known, only that all that followed that step was more urgent.
fn in_turn(steps: &[Kept], left: &[bool], is_whole: bool) -> Vec<usize> {
    let mut plans: HashMap<usize, (VecDeque<usize>, usize)> = HashMap::new();
    for (nth, kept) in steps.iter().enumerate() {
        let (queue, last) = plans.entry(kept.plan).or_default();
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

fn etag_of(context: &Context, path: &str) -> Option<String> {
    load::read_source(context, path).ok().map(|it| it.etag)
}

/// The names of records that may come and go: they say something of these steps alone.
fn names_of(steps: &[Kept], under_way: &[String]) -> HashSet<String> {
    let keys = steps.iter().map(|it| &it.key).chain(under_way);
    keys.flat_map(|it| [it.clone(), unfinished(it)]).collect()
}

fn hash_of<'a>(files: impl Iterator<Item = (&'a str, Stamp)>) -> String {
    load::etag(&stamps(files))
}

#[cfg(test)]
mod tests;
