//! All plans as they are now: what the index holds of unchanged files, and the files of the others.
//!
//! The index is only ever asked for what it may know; the answer is complete in memory before anything is written, so
//! that whatever fails on the way to the disk costs a line on stderr and no answer.

use std::collections::{BTreeSet, HashMap};
use std::sync::OnceLock;
use std::thread;

use super::decode::Decoding;
use super::files::{How, Looked, Walked, directory, look, walk, walk_named};
use super::{parallel, scan_problems};
use crate::disk::{PlanDir, Trouble};
use crate::engine::context::{Context, Freshness, Notice, Reading};
use crate::index::{
    Change, Detail, FileRow, Generation, Head, Index, IndexError, Key, Opened, Place, Snapshot,
};
use crate::plan::id::PlanId;
use crate::plan::model::Plan;
use crate::plan::problem::Problem;

/// Reading so many plans once more costs less than a commit.
const FEW: usize = 8;

/// What is to be gathered beside the changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wanted {
    Nothing,
    Plans,
    /// As [`Plan::lighten`] leaves them, which is less to make and to hold.
    LightPlans,
    PlansAndFiles,
}

impl Wanted {
    fn detail(self) -> Detail {
        if self == Self::LightPlans { Detail::Light } else { Detail::Whole }
    }
}

/// What was found.
#[derive(Debug, Default)]
pub(crate) struct Fresh {
    /// Unjudged, in no order.
    pub(crate) plans: Vec<Plan>,
    /// The files that they were read from, by path, in no order.
    pub(crate) files: Vec<(String, FileRow)>,
    /// What no plan could be made of.
    pub(crate) problems: Vec<Problem>,
    /// Plans that the index did not hold so, or that are gone.
    pub(crate) changed: BTreeSet<PlanId>,
    pub(crate) n_plans: usize,
    pub(crate) n_steps: usize,
    /// The index, which holds all of this; none if it could not be written.
    pub(crate) index: Option<Index>,
}

/// What all files say now, but for the problems of what is no plan.
///
/// No file is looked at if somebody knows that the index holds what they say.
pub(crate) fn fresh(context: &Context, wanted: Wanted) -> Fresh {
    let index = kept_index(context);
    let told = index.as_ref().and_then(|_| told(context));
    fresh_told(context, index, told, wanted)
}

/// As [`fresh`], where somebody has been asked already which commit is right.
pub(super) fn fresh_told(
    context: &Context,
    mut index: Option<Index>,
    told: Option<Generation>,
    wanted: Wanted,
) -> Fresh {
    let known = |commit| known(context, index.as_mut()?, commit, wanted);
    match told.and_then(known) {
        Some(found) => Fresh { index, ..found },
        None => fresh_in(context, index, wanted),
    }
}

/// As [`fresh`], for who looks often and for no more than this moment: a few changes are left to the next one to put
/// into the index.
pub(super) fn fresh_for_now(context: &Context) -> Fresh {
    let mut index = kept_index(context);
    let told = index.as_ref().and_then(|_| told(context));
    match told.and_then(|it| known(context, index.as_mut()?, it, Wanted::Plans)) {
        Some(found) => Fresh { index, ..found },
        None => attempts(context, index, &Asked { wanted: Wanted::Plans, only: None, left: FEW }),
    }
}

/// Asks somebody who sees every change, if there is one, which commit of the index is right.
pub(super) fn told(context: &Context) -> Option<Generation> {
    match &context.freshness {
        Freshness::KnownBy(witness) => witness.commit(),
        Freshness::Unknown => None,
    }
}

/// Returns whether this is a look at that commit.
pub(super) fn is_commit(snapshot: &Snapshot<'_>, commit: Generation) -> bool {
    snapshot.generation().is_ok_and(|it| it == Some(commit))
}

/// Looks at all files.
pub(crate) fn looked(context: &Context, wanted: Wanted) -> Fresh {
    fresh_in(context, kept_index(context), wanted)
}

/// Answers from the index if somebody knows that this very commit speaks of the files as they are.
///
/// Whatever goes wrong here is found again by looking at the files.
fn known(context: &Context, index: &mut Index, commit: Generation, wanted: Wanted) -> Option<Fresh> {
    let snapshot = index.snapshot().ok().filter(|it| is_commit(it, commit))?;
    let heads = snapshot.heads().ok()?;
    let clock = OnceLock::new();
    // Words of another configuration would read the same files otherwise.
    let reader = How::new(context, &clock).reader;
    if !heads.iter().all(|it| it.reader() == reader) {
        return None;
    }
    thread::scope(|scope| {
        let kept = Kept { snapshot: &snapshot, decoding: Decoding::of(heads.len(), wanted.detail(), scope) };
        let mut gathered = Gathered::new(wanted, &heads, Some(kept));
        for (at, head) in heads.iter().enumerate() {
            gathered.take((Some((head.key.clone(), Some(at), Looked::Same)), Vec::new())).ok()?;
        }
        gathered.finish(context, Vec::new()).ok()
    })
}

/// Makes the kept index anew from the files; in memory there is none to make.
pub(crate) fn reindex(context: &Context) -> Result<(), IndexError> {
    let Some(mut index) = kept_index(context) else { return Ok(()) };
    let heads = index.snapshot().and_then(|it| it.heads());
    match heads {
        Ok(heads) => index.write(&mut heads.into_iter().map(|it| Change::Remove(it.key)))?,
        Err(_) => index.reopen()?,
    }
    fresh_in(context, Some(index), Wanted::Nothing);
    Ok(())
}

/// How the kept index stood to the files; it is brought up to date.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum IndexState {
    Current,
    Behind {
        n_plans: usize,
    },
    Missing,
    /// There is no plan, and so no index.
    Bare,
    Unusable,
}

/// Looks at the kept index and its length.
pub(crate) fn index_state(context: &Context) -> (IndexState, Option<u64>) {
    if context.plans.is_bare() {
        return (IndexState::Bare, None);
    }
    let len = context.plans.index_dir().and_then(|it| Index::len_in(&it));
    let found = looked(context, Wanted::Nothing);
    let state = match (found.index, len) {
        (None, _) => IndexState::Unusable,
        (Some(_), None) => IndexState::Missing,
        (Some(_), Some(_)) if found.changed.is_empty() => IndexState::Current,
        (Some(_), Some(_)) => IndexState::Behind { n_plans: found.changed.len() },
    };
    (state, len)
}

/// Looks at all files and writes into this index.
pub(super) fn fresh_in(context: &Context, index: Option<Index>, wanted: Wanted) -> Fresh {
    attempts(context, index, &Asked { wanted, only: None, left: 0 })
}

/// Looks at the directories of these names alone, live and archived ones.
pub(crate) fn fresh_of(context: &Context, names: &[String]) -> Fresh {
    let mut keys = BTreeSet::new();
    for name in names.iter().filter(|it| PlanId::is_plan_name(it)) {
        keys.extend([false, true].map(|is_archived| Key { is_archived, name: name.clone() }));
    }
    let asked = Asked { wanted: Wanted::Nothing, only: Some(keys.into_iter().collect()), left: 0 };
    attempts(context, kept_index(context), &asked)
}

/// Opens the index that is kept on disk, if one may and can be.
pub(super) fn kept_index(context: &Context) -> Option<Index> {
    if context.reading == Reading::Files {
        return None;
    }
    let Some(directory) = context.plans.index_dir() else {
        if !context.plans.is_bare() {
            let why = "neither `.planwatch` nor a directory for caches can be used";
            (context.tell)(Notice::IndexInMemory { why: why.to_owned() });
        }
        return None;
    };
    match Index::open(Place::Directory(&directory)) {
        Ok((index, opened)) => {
            if let Opened::Rebuilt { why } = opened {
                (context.tell)(Notice::IndexRebuilt { why });
            }
            Some(index)
        }
        Err(error) => {
            (context.tell)(Notice::IndexInMemory { why: error.to_string() });
            None
        }
    }
}

struct Asked {
    wanted: Wanted,
    only: Option<Vec<Key>>,
    /// So many changes need not be put into the index.
    left: usize,
}

/// Goes on with a new index where the old one is damaged, and without one where there can be none.
fn attempts(context: &Context, mut index: Option<Index>, asked: &Asked) -> Fresh {
    for _ in 0..2 {
        let Some(it) = &mut index else { break };
        match attempt(context, Some(it), asked) {
            Ok(found) => return Fresh { index: index.filter(|_| found.is_kept), ..found.fresh },
            Err(error) => index = after(context, index, &error),
        }
    }
    let found = attempt(context, None, asked).map(|it| it.fresh);
    found.unwrap_or_default()
}

/// Says what is wrong with an index, and makes another one in its place where that helps.
pub(super) fn after(context: &Context, index: Option<Index>, error: &IndexError) -> Option<Index> {
    let (mut index, why) = (index?, error.to_string());
    let reopened = match error {
        IndexError::Damaged { .. } => index.reopen(),
        _ => {
            (context.tell)(Notice::IndexInMemory { why });
            return None;
        }
    };
    match reopened {
        Ok(()) => (context.tell)(Notice::IndexRebuilt { why }),
        Err(ref error) => (context.tell)(Notice::IndexInMemory { why: error.to_string() }),
    }
    reopened.is_ok().then_some(index)
}

/// What one attempt found, and whether the index holds it all now.
struct Found {
    fresh: Fresh,
    is_kept: bool,
}

/// A plan's directory, with the place of its head among those of the index, or none.
type Seen = (Option<(Key, Option<usize>, Looked)>, Vec<Trouble>);

fn attempt(context: &Context, index: Option<&mut Index>, asked: &Asked) -> Result<Found, IndexError> {
    let clock = OnceLock::new();
    let how = How::new(context, &clock);
    let Some(index) = index else {
        let mut gathered = Gathered::new(asked.wanted, &[], None);
        let trouble = looks(how, asked, &[], |seen| {
            for it in seen {
                gathered.take(it)?;
            }
            Ok(())
        })?;
        return Ok(Found { fresh: gathered.finish(context, trouble)?, is_kept: false });
    };
    let snapshot = index.snapshot()?;
    let heads = match &asked.only {
        None => snapshot.heads()?,
        Some(keys) => heads_of(&snapshot, keys)?,
    };
    if heads.is_empty() {
        drop(snapshot);
        return first(how, index, asked);
    }
    let mut changes = Vec::new();
    let fresh = thread::scope(|scope| {
        let kept =
            Kept { snapshot: &snapshot, decoding: Decoding::of(heads.len(), asked.wanted.detail(), scope) };
        let mut gathered = Gathered::new(asked.wanted, &heads, Some(kept));
        let gather = |seen: &mut dyn Iterator<Item = Seen>| {
            for it in seen {
                changes.extend(gathered.take(it)?);
            }
            Ok(())
        };
        let trouble = looks(how, asked, &heads, gather)?;
        changes.extend(gathered.gone().map(Change::Remove));
        gathered.finish(context, trouble)
    })?;
    drop(snapshot);
    if !changes.is_empty() && changes.len() <= asked.left {
        return Ok(Found { fresh, is_kept: false });
    }
    let is_kept = changes.is_empty() || is_written(context, index.write(&mut changes.into_iter()))?;
    Ok(Found { fresh, is_kept })
}

fn heads_of(snapshot: &Snapshot<'_>, keys: &[Key]) -> Result<Vec<Head>, IndexError> {
    let mut heads = Vec::new();
    for key in keys.iter().filter(|it| !it.is_archived) {
        heads.extend(snapshot.heads_named(&key.name)?);
    }
    Ok(heads)
}

/// Fills an index that knows nothing, while the files are read, so that only a few plans wait in memory.
fn first(how: How<'_>, index: &mut Index, asked: &Asked) -> Result<Found, IndexError> {
    let mut gathered = Gathered::new(asked.wanted, &[], None);
    let mut written = Ok(());
    let trouble = looks(how, asked, &[], |seen| {
        let mut changes = seen.filter_map(|it| gathered.take(it).ok().flatten());
        written = index.write(&mut changes);
        // What could not be written is an answer all the same.
        changes.for_each(drop);
        Ok(())
    })?;
    let fresh = gathered.finish(how.context, trouble)?;
    Ok(Found { fresh, is_kept: is_written(how.context, written)? })
}

fn is_written(context: &Context, written: Result<(), IndexError>) -> Result<bool, IndexError> {
    match written {
        Err(error @ IndexError::Damaged { .. }) => Err(error),
        Err(error) => {
            (context.tell)(Notice::IndexInMemory { why: error.to_string() });
            Ok(false)
        }
        Ok(()) => Ok(true),
    }
}

/// Looks into all directories that are asked for, in several threads, and returns what troubles there were.
fn looks(
    how: How<'_>,
    asked: &Asked,
    heads: &[Head],
    consume: impl FnOnce(&mut dyn Iterator<Item = Seen>) -> Result<(), IndexError>,
) -> Result<Vec<Trouble>, IndexError> {
    let places: HashMap<_, _> = heads.iter().enumerate().map(|(at, it)| (&it.key, at)).collect();
    let compared = |walked: Walked| {
        let at = places.get(&walked.key).copied();
        let looked = look(how, &walked, at.map(|it| &heads[it]));
        (walked.key, at, looked)
    };
    if let Some(keys) = &asked.only {
        let named = |key: &Key| (walk_named(how.context, key).map(compared), Vec::new());
        return parallel::each(keys, named, consume).map(|()| Vec::new());
    }
    let (dirs, beside) = how.context.plans.plan_dirs();
    let all = |dir: &PlanDir| {
        let (walked, trouble) = walk(how.context, dir);
        (walked.map(compared), trouble)
    };
    parallel::each(&dirs, all, consume).map(|()| beside.trouble)
}

/// Where plans come from that are as they were.
struct Kept<'scope, 'a> {
    snapshot: &'a Snapshot<'a>,
    decoding: Decoding<'scope, 'a>,
}

/// What comes of the directories, one after the other.
struct Gathered<'scope, 'a> {
    wanted: Wanted,
    heads: &'a [Head],
    kept: Option<Kept<'scope, 'a>>,
    /// Which heads have a directory.
    is_there: Vec<bool>,
    trouble: Vec<Trouble>,
    fresh: Fresh,
}

impl<'scope, 'a: 'scope> Kept<'scope, 'a> {
    fn put(&mut self, head: &'a Head) -> Result<(), IndexError> {
        let data = self.snapshot.data(head)?;
        self.snapshot.judged(self.decoding.put(head, data))
    }
}

impl<'scope, 'a: 'scope> Gathered<'scope, 'a> {
    fn new(wanted: Wanted, heads: &'a [Head], kept: Option<Kept<'scope, 'a>>) -> Self {
        let is_there = vec![false; heads.len()];
        Self { wanted, heads, kept, is_there, trouble: Vec::new(), fresh: Fresh::default() }
    }

    /// Takes in what was seen of a directory, and returns what is to be changed in the index.
    fn take(&mut self, (seen, trouble): Seen) -> Result<Option<Change>, IndexError> {
        self.trouble.extend(trouble);
        let Some((key, at, looked)) = seen else { return Ok(None) };
        let old = at.map(|it| &self.heads[it]);
        self.fresh.n_plans += 1;
        if let Some(at) = at {
            self.is_there[at] = true;
        }
        let (head, plan, change) = match looked {
            Looked::Same => (old.cloned(), None, None),
            Looked::Restamped(head) => (Some(head.clone()), None, Some(Change::Restamp(head))),
            Looked::Read(read) => {
                let (packed, plan) = *read;
                self.fresh.changed.insert(PlanId::new(key.name.clone()));
                (Some(packed.head.clone()), Some(plan), Some(Change::Put(packed)))
            }
        };
        let Some(head) = head else { return Ok(change) };
        self.fresh.n_steps += head.steps as usize;
        if self.wanted == Wanted::PlansAndFiles {
            let path = |it: FileRow| (format!("{}/{}", directory(&key), it.name), it);
            self.fresh.files.extend(head.files()?.into_iter().map(path));
        }
        if self.wanted != Wanted::Nothing {
            match (plan, &mut self.kept, old) {
                (Some(mut plan), ..) => {
                    if self.wanted.detail() == Detail::Light {
                        plan.lighten();
                    }
                    self.fresh.plans.push(plan);
                }
                (None, Some(kept), Some(old)) => kept.put(old)?,
                (None, ..) => {}
            }
        }
        Ok(change)
    }

    /// The rows whose directories are no plans any more.
    fn gone(&mut self) -> impl Iterator<Item = Key> + use<> {
        let gone = self.heads.iter().zip(&self.is_there).filter(|(_, is_there)| !**is_there);
        let gone: Vec<_> = gone.map(|(head, _)| head.key.clone()).collect();
        self.fresh.changed.extend(gone.iter().map(|it| PlanId::new(it.name.clone())));
        gone.into_iter()
    }

    fn finish(mut self, context: &Context, beside: Vec<Trouble>) -> Result<Fresh, IndexError> {
        if let Some(Kept { snapshot, decoding }) = self.kept {
            self.fresh.plans.append(&mut snapshot.judged(decoding.finish())?);
        }
        self.trouble.extend(beside);
        self.trouble.sort_by(|a, b| a.relative.cmp(&b.relative));
        self.fresh.problems = scan_problems(context, self.trouble);
        Ok(self.fresh)
    }
}
