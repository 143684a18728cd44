//! All plans as they are now: what the index holds of unchanged files, and the files of the others.
//!
//! The index is only ever asked for what it may know; the answer is complete in memory before anything is written, so
//! that whatever fails on the way to the disk costs a line on stderr and no answer.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::panic::resume_unwind;
use std::sync::OnceLock;
use std::thread::{self, ScopedJoinHandle};

use super::collect::{Gathered, InDirectory, Kept, Looking, Seen, Where};
use super::parallel::{self, Results};
use super::scan::{How, Looked, reader};
use crate::api::context::{Context, Notice, Reading};
use crate::api::daemon::Freshness;
use crate::index::{
    Change, FileRow, Generation, Head, Index, IndexError, Key, Lights, Opened, Place, Snapshot, Texts,
};
use crate::plan::id::PlanId;
use crate::plan::model::Plan;
use crate::plan::problem::Problem;
use crate::plan::read::Bodies;

/// How often it is asked which commit is right: where files are saved all the time there is a next one before this one
/// is looked at. To look at all files instead costs far more, and who writes what it finds into the index makes the
/// watching process look at all of them, too.
const MOST_ASKED: usize = 4;

/// How often it is looked while others write, or the index is found damaged.
const MOST_ATTEMPTS: usize = 4;

/// Reading so many plans once more costs less than a commit.
const FEW: usize = 8;

/// What is to be gathered beside the changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wanted {
    Nothing,
    /// Only the plans that the index did not hold so.
    Changed,
    Plans,
    /// As [`Plan::lighten`] leaves them, which is less to read, to make and to hold.
    LightPlans,
    PlansAndFiles,
}

impl Wanted {
    /// Whoever goes on for long, as a process that watches does, wants no plans.
    pub(super) fn results(self) -> Results {
        if self == Self::LightPlans { Results::Plans } else { Results::Little }
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
    /// Of how many of the plans the texts were handed on.
    pub(crate) n_texts: usize,
    /// The index, which holds just this; none if it could not be written, or if others wrote into it meanwhile.
    pub(crate) index: Option<Index>,
    /// The commit of it that does; none if nothing was ever put in.
    pub(crate) commit: Option<Generation>,
    /// The commit that was compared with the files.
    pub(crate) before: Option<Generation>,
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
pub(crate) fn fresh_told(
    context: &Context,
    mut index: Option<Index>,
    told: Option<Generation>,
    wanted: Wanted,
) -> Fresh {
    let (mut told, mut n_asked) = (told, 1);
    while let (Some(commit), Some(kept)) = (told, index.as_mut()) {
        match known(context, kept, commit, wanted) {
            Known::Told(found) => return Fresh { index, ..*found },
            Known::OtherCommit if n_asked < MOST_ASKED => told = self::told(context),
            Known::OtherCommit | Known::Unusable => break,
        }
        n_asked += 1;
    }
    fresh_in(context, index, wanted)
}

/// What the index has of a commit that somebody told of.
enum Known {
    Told(Box<Fresh>),
    /// It shows another one by now.
    OtherCommit,
    /// Something is wrong with it, which is found again by looking at the files.
    Unusable,
}

/// As [`fresh`], for who looks often and for no more than this moment: a few changes are left to the next one to put
/// into the index.
pub(super) fn fresh_for_now(context: &Context, wanted: Wanted) -> Fresh {
    let mut index = kept_index(context);
    let told = index.as_ref().and_then(|_| told(context));
    match told.and_then(|it| Some(known(context, index.as_mut()?, it, wanted))) {
        Some(Known::Told(found)) => Fresh { index, ..*found },
        _ => attempts(context, index, &Asked { left: FEW, ..Asked::of(wanted) }),
    }
}

/// Asks somebody who sees every change, if there is one, which commit of the index is right.
pub(crate) fn told(context: &Context) -> Option<Generation> {
    match &context.freshness {
        Freshness::Attested(witness) => witness.commit(),
        Freshness::Unknown => None,
    }
}

/// Returns whether this is a look at that commit.
pub(crate) fn is_commit(snapshot: &Snapshot<'_>, commit: Option<Generation>) -> bool {
    snapshot.generation().is_ok_and(|it| it == commit)
}

/// Looks at all files.
pub(crate) fn looked(context: &Context, wanted: Wanted) -> Fresh {
    fresh_in(context, kept_index(context), wanted)
}

/// Answers from the index if somebody knows that this very commit speaks of the files as they are.
fn known(context: &Context, index: &mut Index, commit: Generation, wanted: Wanted) -> Known {
    let Ok(snapshot) = index.snapshot() else { return Known::Unusable };
    let commit = Some(commit);
    if !is_commit(&snapshot, commit) {
        return Known::OtherCommit;
    }
    let found = known_in(context, &snapshot, wanted);
    found.map_or(Known::Unusable, |it| Known::Told(Box::new(Fresh { commit, before: commit, ..it })))
}

fn known_in(context: &Context, snapshot: &Snapshot<'_>, wanted: Wanted) -> Option<Fresh> {
    let heads = snapshot.heads().ok()?;
    let reader = reader(context);
    if !heads.iter().all(|it| it.reader() == reader) {
        return None;
    }
    let lights = lights_of(snapshot, &heads, wanted).ok()?;
    thread::scope(|scope| {
        let mut gathered =
            Gathered::new(wanted, &heads, Some(Kept::of(snapshot, heads.len(), wanted, scope)));
        let places: Vec<_> = (0..heads.len()).collect();
        let same = |at: &usize| {
            let light = lights.as_ref().map(|it| heads[*at].light_plan(it.of(*at)));
            let found =
                Seen { key: heads[*at].key.clone(), at: Some(*at), looked: Looked::Same, light, texts: None };
            (Some(found), Vec::new())
        };
        let mut take = |all: &mut dyn Iterator<Item = InDirectory>| {
            for it in all {
                gathered.take(it)?;
            }
            Ok::<_, IndexError>(())
        };
        parallel::each(&places, wanted.results(), same, &mut take).ok()?;
        gathered.finish(context, Vec::new()).ok()
    })
}

/// Looks at all files and writes into this index.
pub(crate) fn fresh_in(context: &Context, index: Option<Index>, wanted: Wanted) -> Fresh {
    attempts(context, index, &Asked::of(wanted))
}

/// As [`fresh_in`]; where the index knows nothing, the texts of each plan that is read come too, before its row is written.
pub(crate) fn fresh_with_texts(context: &Context, index: Index, texts: &dyn Fn(Texts)) -> Fresh {
    attempts(context, Some(index), &Asked { texts: Some(texts), ..Asked::of(Wanted::Nothing) })
}

/// Looks at the directories of these names alone, live and archived ones.
///
/// `kept` is the index of an earlier look, which is used again if it still is the one.
pub(crate) fn fresh_of(context: &Context, names: &[String], kept: Option<Index>, wanted: Wanted) -> Fresh {
    let mut keys = BTreeSet::new();
    for name in names.iter().filter(|it| PlanId::is_plan_name(it)) {
        keys.extend([false, true].map(|is_archived| Key { is_archived, name: name.clone() }));
    }
    let asked = Asked { only: Some(keys.into_iter().collect()), ..Asked::of(wanted) };
    let still = |mut it: Index| it.ready().is_ok().then_some(it);
    let index = kept.and_then(still).or_else(|| kept_index(context));
    attempts(context, index, &asked)
}

/// Opens the index that is kept on disk, if one may and can be.
pub(crate) fn kept_index(context: &Context) -> Option<Index> {
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

struct Asked<'a> {
    wanted: Wanted,
    only: Option<Vec<Key>>,
    /// So many changes need not be put into the index.
    left: usize,
    /// Who takes the texts of plans that an index which knows nothing is filled with.
    texts: Option<&'a dyn Fn(Texts)>,
}

impl Asked<'_> {
    /// Of all plans, and the index is to hold all of it.
    fn of(wanted: Wanted) -> Self {
        Self { wanted, only: None, left: 0, texts: None }
    }
}

/// Goes on with a new index where the old one is damaged, and without one where there can be none; looks again where only
/// the index is wanted, and others wrote into it meanwhile.
fn attempts(context: &Context, mut index: Option<Index>, asked: &Asked<'_>) -> Fresh {
    let mut changed = BTreeSet::new();
    for n in 1..=MOST_ATTEMPTS {
        let Some(it) = &mut index else { break };
        match attempt(context, Some(it), asked) {
            Ok(Found { fresh, held: Held::BesideOthers })
                if asked.wanted == Wanted::Nothing && n < MOST_ATTEMPTS =>
            {
                changed.extend(fresh.changed);
            }
            Ok(Found { mut fresh, held }) => {
                fresh.changed.append(&mut changed);
                return match held {
                    Held::At(commit) => Fresh { index, commit, ..fresh },
                    Held::Not | Held::BesideOthers => fresh,
                };
            }
            Err(error) => index = after(context, index, &error),
        }
    }
    let found = attempt(context, None, asked).map(|it| it.fresh);
    found.unwrap_or_default()
}

/// Says what is wrong with an index, and makes another one in its place where that helps.
pub(crate) fn after(context: &Context, index: Option<Index>, error: &IndexError) -> Option<Index> {
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

/// What one attempt found.
struct Found {
    fresh: Fresh,
    held: Held,
}

/// Whether the index holds all of it now.
enum Held {
    At(Option<Generation>),
    /// What they put in may come from an older look.
    BesideOthers,
    Not,
}

impl Held {
    /// By what came of writing after the commit that was compared.
    fn by(context: &Context, written: Result<Option<Generation>, IndexError>) -> Result<Self, IndexError> {
        match written {
            Ok(Some(commit)) => Ok(Self::At(Some(commit))),
            Ok(None) => Ok(Self::BesideOthers),
            Err(error @ IndexError::Damaged { .. }) => Err(error),
            Err(error) => {
                (context.tell)(Notice::IndexInMemory { why: error.to_string() });
                Ok(Self::Not)
            }
        }
    }
}

fn attempt(context: &Context, index: Option<&mut Index>, asked: &Asked<'_>) -> Result<Found, IndexError> {
    let clock = OnceLock::new();
    let how = How::new(context, &clock);
    let Some(index) = index else {
        let mut gathered = Gathered::new(asked.wanted, &[], None);
        let looking = Looking { how, wanted: asked.wanted, bodies: Bodies::Drop, heads: &[], lights: None };
        let trouble = looking.at(Where::of(context, asked.only.as_deref()), |all| {
            for it in all {
                gathered.take(it)?;
            }
            Ok(())
        })?;
        return Ok(Found { fresh: gathered.finish(context, trouble)?, held: Held::Not });
    };
    let snapshot = index.snapshot()?;
    // The look at the index begins before that at the disk, so that no row is newer than the list of directories.
    let before = snapshot.generation()?;
    let only = asked.only.as_deref();
    let (rows, place) = thread::scope(|scope| {
        // Of directories that are named there is none to list.
        let place = only.is_none().then(|| scope.spawn(|| Where::of(context, only)));
        let rows = rows(&snapshot, asked);
        let listed = |it: ScopedJoinHandle<'_, _>| it.join().unwrap_or_else(|panic| resume_unwind(panic));
        (rows, place.map_or_else(|| Where::of(context, only), listed))
    });
    let (heads, lights) = rows?;
    if heads.is_empty() {
        drop(snapshot);
        return first(how, index, asked, (before, place));
    }
    let mut changes = Vec::new();
    let mut fresh = thread::scope(|scope| {
        let kept = Kept::of(&snapshot, heads.len(), asked.wanted, scope);
        let mut gathered = Gathered::new(asked.wanted, &heads, Some(kept));
        let looking = Looking {
            how,
            wanted: asked.wanted,
            bodies: Bodies::Drop,
            heads: &heads,
            lights: lights.as_ref(),
        };
        let trouble = looking.at(place, |all| {
            for it in all {
                changes.extend(gathered.take(it)?);
            }
            Ok(())
        })?;
        changes.extend(gathered.gone().map(Change::Remove));
        gathered.finish(context, trouble)
    })?;
    drop(snapshot);
    fresh.before = before;
    let held = match changes.len() {
        0 => Held::At(before),
        n if n <= asked.left => Held::Not,
        _ => Held::by(context, index.write_after(before, &mut changes.into_iter()))?,
    };
    Ok(Found { fresh, held })
}

/// What the index knows of the directories that are asked for.
fn rows(snapshot: &Snapshot<'_>, asked: &Asked<'_>) -> Result<(Vec<Head>, Option<Lights>), IndexError> {
    let heads = match &asked.only {
        None => snapshot.heads()?,
        Some(keys) => heads_of(snapshot, keys)?,
    };
    let lights = lights_of(snapshot, &heads, asked.wanted)?;
    Ok((heads, lights))
}

fn lights_of(snapshot: &Snapshot<'_>, heads: &[Head], wanted: Wanted) -> Result<Option<Lights>, IndexError> {
    (wanted == Wanted::LightPlans).then(|| snapshot.lights(heads)).transpose()
}

fn heads_of(snapshot: &Snapshot<'_>, keys: &[Key]) -> Result<Vec<Head>, IndexError> {
    let mut heads = Vec::new();
    for key in keys.iter().filter(|it| !it.is_archived) {
        heads.extend(snapshot.heads_named(&key.name)?);
    }
    Ok(heads)
}

/// Fills an index that knows nothing, while the files are read, so that only a few plans wait in memory.
fn first(
    how: How<'_>,
    index: &mut Index,
    asked: &Asked<'_>,
    (before, place): (Option<Generation>, Where<'_>),
) -> Result<Found, IndexError> {
    let mut gathered = Gathered::new(asked.wanted, &[], None);
    let (mut held, is_writing, n_texts) = (Ok(Held::Not), Cell::new(true), Cell::new(0));
    let bodies = if asked.texts.is_some() { Bodies::Keep } else { Bodies::Drop };
    let looking = Looking { how, wanted: asked.wanted, bodies, heads: &[], lights: None };
    let trouble = looking.at(place, |all| {
        let mut changes = all.filter_map(|mut it| {
            let texts = it.0.as_mut().and_then(|it| it.texts.take());
            let change = gathered.take(it).ok().flatten()?;
            if let (Some(to), Some(texts), true) = (asked.texts, texts, is_writing.get()) {
                n_texts.set(n_texts.get() + 1);
                to(texts);
            }
            Some(change)
        });
        held = Held::by(how.context, index.write_after(before, &mut changes));
        is_writing.set(false);
        // What could not be written is an answer all the same.
        changes.for_each(drop);
        Ok(())
    })?;
    let fresh = Fresh { before, n_texts: n_texts.get(), ..gathered.finish(how.context, trouble)? };
    Ok(Found { fresh, held: held? })
}
