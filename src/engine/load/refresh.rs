//! All plans as they are now: what the index holds of unchanged files, and the files of the others.
//!
//! The index is only ever asked for what it may know; the answer is complete in memory before anything is written, so
//! that whatever fails on the way to the disk costs a line on stderr and no answer.

use std::cell::Cell;
use std::collections::{BTreeSet, HashMap};
use std::panic::resume_unwind;
use std::sync::OnceLock;
use std::thread::{self, Scope, ScopedJoinHandle};

use super::decode::Decoding;
use super::files::{How, Looked, Walked, directory, look, reader, walk, walk_named};
use super::parallel::{self, Results};
use super::scan_problems;
use crate::disk::{PlanDir, Scan, Trouble};
use crate::engine::context::{Context, Freshness, Notice, Reading};
use crate::index::{
    Change, FileRow, Generation, Head, Index, IndexError, Key, Lights, Opened, Packed, Place, Snapshot, Texts,
};
use crate::plan::id::PlanId;
use crate::plan::model::Plan;
use crate::plan::problem::Problem;
use crate::plan::read::Bodies;

/// How often it is asked which commit is right: where files are saved all the time there is a next one before this one
/// is looked at. To look at all files instead costs far more, and who writes what it finds into the index makes the
/// watching process look at all of them, too.
const MOST_ASKED: usize = 4;

/// Reading so many plans once more costs less than a commit.
const FEW: usize = 8;

/// To gather more files than this costs too much for who looks often.
pub(crate) const MANY_FILES: usize = 20_000;

/// What is to be gathered beside the changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wanted {
    Nothing,
    Plans,
    /// As [`Plan::lighten`] leaves them, which is less to read, to make and to hold.
    LightPlans,
    PlansAndFiles,
    /// No files where there are more than [`MANY_FILES`].
    PlansAndFewFiles,
}

impl Wanted {
    /// Whoever goes on for long, as a process that watches does, wants no plans.
    fn results(self) -> Results {
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
    /// The index, which holds all of this; none if it could not be written.
    pub(crate) index: Option<Index>,
    /// The commit of it that somebody knew to be right, if no file was looked at.
    pub(crate) commit: Option<Generation>,
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
    let (mut told, mut n_asked) = (told, 1);
    while let (Some(commit), Some(kept)) = (told, index.as_mut()) {
        match known(context, kept, commit, wanted) {
            Known::Told(found) => return Fresh { index, commit: Some(commit), ..*found },
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
fn known(context: &Context, index: &mut Index, commit: Generation, wanted: Wanted) -> Known {
    let Ok(snapshot) = index.snapshot() else { return Known::Unusable };
    if !is_commit(&snapshot, commit) {
        return Known::OtherCommit;
    }
    known_in(context, &snapshot, wanted).map_or(Known::Unusable, |it| Known::Told(Box::new(it)))
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
pub(super) fn fresh_in(context: &Context, index: Option<Index>, wanted: Wanted) -> Fresh {
    attempts(context, index, &Asked::of(wanted))
}

/// As [`fresh_in`]; where the index knows nothing, the texts of each plan that is read come too, before its row is written.
pub(super) fn fresh_with_texts(context: &Context, index: Index, texts: &dyn Fn(Texts)) -> Fresh {
    attempts(context, Some(index), &Asked { texts: Some(texts), ..Asked::of(Wanted::Nothing) })
}

/// Looks at the directories of these names alone, live and archived ones.
///
/// `kept` is the index of an earlier look, which is used again if it still is the one.
pub(crate) fn fresh_of(context: &Context, names: &[String], kept: Option<Index>) -> Fresh {
    let mut keys = BTreeSet::new();
    for name in names.iter().filter(|it| PlanId::is_plan_name(it)) {
        keys.extend([false, true].map(|is_archived| Key { is_archived, name: name.clone() }));
    }
    let asked = Asked { only: Some(keys.into_iter().collect()), ..Asked::of(Wanted::Nothing) };
    let still = |mut it: Index| it.ready().is_ok().then_some(it);
    let index = kept.and_then(still).or_else(|| kept_index(context));
    attempts(context, index, &asked)
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

/// Goes on with a new index where the old one is damaged, and without one where there can be none.
fn attempts(context: &Context, mut index: Option<Index>, asked: &Asked<'_>) -> Fresh {
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

/// A plan's directory, or none where no plan is in it, and what could not be looked at there.
type InDirectory = (Option<Seen>, Vec<Trouble>);

/// What was seen of a plan's directory.
struct Seen {
    key: Key,
    /// The place of its head among those of the index.
    at: Option<usize>,
    looked: Looked,
    /// The light plan of the index where that is wanted and still says what the files do.
    light: Option<Result<Plan, IndexError>>,
    /// Where an index that knows nothing is filled and somebody takes them.
    texts: Option<Texts>,
}

/// Where is looked.
enum Where<'a> {
    /// In every directory that may be a plan; and what is beside them.
    All(Vec<PlanDir>, Scan),
    Named(&'a [Key]),
}

impl<'a> Where<'a> {
    fn of(context: &Context, only: Option<&'a [Key]>) -> Self {
        match only {
            Some(keys) => Self::Named(keys),
            None => {
                let (dirs, beside) = context.plans.plan_dirs();
                Self::All(dirs, beside)
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
        return Ok(Found { fresh: gathered.finish(context, trouble)?, is_kept: false });
    };
    let snapshot = index.snapshot()?;
    // The look at the index begins before that at the disk, so that no row is newer than the list of directories.
    snapshot.generation()?;
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
        return first(how, index, asked, place);
    }
    let mut changes = Vec::new();
    let fresh = thread::scope(|scope| {
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
    if !changes.is_empty() && changes.len() <= asked.left {
        return Ok(Found { fresh, is_kept: false });
    }
    let is_kept = changes.is_empty() || is_written(context, index.write(&mut changes.into_iter()))?;
    Ok(Found { fresh, is_kept })
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
fn first(how: How<'_>, index: &mut Index, asked: &Asked<'_>, place: Where<'_>) -> Result<Found, IndexError> {
    let mut gathered = Gathered::new(asked.wanted, &[], None);
    let (mut written, is_writing, n_texts) = (Ok(()), Cell::new(true), Cell::new(0));
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
        written = index.write(&mut changes);
        is_writing.set(false);
        // What could not be written is an answer all the same.
        changes.for_each(drop);
        Ok(())
    })?;
    let fresh = Fresh { n_texts: n_texts.get(), ..gathered.finish(how.context, trouble)? };
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

/// How directories are looked into.
#[derive(Clone, Copy)]
struct Looking<'a> {
    how: How<'a>,
    wanted: Wanted,
    bodies: Bodies,
    heads: &'a [Head],
    lights: Option<&'a Lights>,
}

impl Looking<'_> {
    /// Looks into directories in several threads, and returns what troubles there were beside them.
    fn at(
        self,
        place: Where<'_>,
        consume: impl FnOnce(&mut dyn Iterator<Item = InDirectory>) -> Result<(), IndexError>,
    ) -> Result<Vec<Trouble>, IndexError> {
        let places: HashMap<_, _> = self.heads.iter().enumerate().map(|(at, it)| (&it.key, at)).collect();
        let seen = |walked: Walked| self.seen(places.get(&walked.key).copied(), walked);
        let context = self.how.context;
        match place {
            Where::Named(keys) => {
                let named = |key: &Key| (walk_named(context, key).map(seen), Vec::new());
                parallel::each(keys, Results::Little, named, consume).map(|()| Vec::new())
            }
            Where::All(dirs, beside) => {
                let all = |dir: &PlanDir| {
                    let (walked, trouble) = walk(context, dir);
                    (walked.map(seen), trouble)
                };
                parallel::each(&dirs, self.wanted.results(), all, consume).map(|()| beside.trouble)
            }
        }
    }

    fn seen(&self, at: Option<usize>, walked: Walked) -> Seen {
        let head = at.map(|it| &self.heads[it]);
        let key = walked.key.clone();
        let mut looked = look(self.how, walked, head, self.bodies);
        let texts = match &looked {
            Looked::Read(read) if self.bodies == Bodies::Keep => Some(Texts::new(&read.0, &read.1)),
            _ => None,
        };
        let light = match (&mut looked, at, self.lights) {
            (Looked::Read(read), ..) => {
                match self.wanted {
                    Wanted::LightPlans => read.1.lighten(),
                    // Here, because who frees another thread's memory waits for that thread.
                    Wanted::Nothing => (read.1.steps, read.1.body) = (Vec::new(), String::new()),
                    Wanted::Plans | Wanted::PlansAndFiles | Wanted::PlansAndFewFiles => {}
                }
                None
            }
            (_, Some(at), Some(lights)) => Some(self.heads[at].light_plan(lights.of(at))),
            _ => None,
        };
        Seen { key, at, looked, light, texts }
    }
}

/// Where plans come from that are as they were.
struct Kept<'scope, 'a> {
    snapshot: &'a Snapshot<'a>,
    /// None where light plans come with what is seen, or no plans at all.
    decoding: Option<Decoding<'scope, 'a>>,
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
    /// Of about so many plans.
    fn of(snapshot: &'a Snapshot<'a>, n: usize, wanted: Wanted, scope: &'scope Scope<'scope, '_>) -> Self {
        let is_whole = match wanted {
            Wanted::Plans | Wanted::PlansAndFiles | Wanted::PlansAndFewFiles => true,
            Wanted::Nothing | Wanted::LightPlans => false,
        };
        Self { snapshot, decoding: is_whole.then(|| Decoding::of(n, scope)) }
    }

    fn put(&mut self, head: &'a Head) -> Result<(), IndexError> {
        let Some(decoding) = &mut self.decoding else { return Ok(()) };
        let data = self.snapshot.data(head)?;
        self.snapshot.judged(decoding.put(head, data))
    }
}

impl<'scope, 'a: 'scope> Gathered<'scope, 'a> {
    fn new(wanted: Wanted, heads: &'a [Head], kept: Option<Kept<'scope, 'a>>) -> Self {
        let is_there = vec![false; heads.len()];
        let n_files = || heads.iter().map(|it| it.steps as usize + 1).sum::<usize>();
        let is_few = wanted != Wanted::PlansAndFewFiles || n_files() <= MANY_FILES;
        let wanted = if is_few { wanted } else { Wanted::Plans };
        Self { wanted, heads, kept, is_there, trouble: Vec::new(), fresh: Fresh::default() }
    }

    /// Takes in what was seen of a directory, and returns what is to be changed in the index.
    fn take(&mut self, (seen, trouble): InDirectory) -> Result<Option<Change>, IndexError> {
        self.trouble.extend(trouble);
        let Some(Seen { key, at, looked, light, .. }) = seen else { return Ok(None) };
        let old = at.map(|it| &self.heads[it]);
        self.fresh.n_plans += 1;
        if let Some(at) = at {
            self.is_there[at] = true;
        }
        let (plan, change) = match looked {
            Looked::Same => (None, None),
            Looked::Restamped(head) => (None, Some(Change::Restamp(head))),
            Looked::Read(read) => {
                let (packed, plan) = *read;
                self.fresh.changed.insert(PlanId::new(key.name.clone()));
                (Some(plan), Some(Change::Put(packed)))
            }
        };
        let head = match &change {
            Some(Change::Restamp(head) | Change::Put(Packed { head, .. })) => Some(head),
            _ => old,
        };
        let Some(head) = head else { return Ok(change) };
        self.fresh.n_steps += head.steps as usize;
        if matches!(self.wanted, Wanted::PlansAndFiles | Wanted::PlansAndFewFiles) {
            let path = |it: FileRow| (format!("{}/{}", directory(&key), it.name), it);
            self.fresh.files.extend(head.files()?.into_iter().map(path));
        }
        if self.wanted == Wanted::Nothing {
            return Ok(change);
        }
        match (plan, light, &mut self.kept, old) {
            (Some(plan), ..) => self.fresh.plans.push(plan),
            (None, Some(light), Some(kept), _) => self.fresh.plans.push(kept.snapshot.judged(light)?),
            (None, _, Some(kept), Some(old)) => kept.put(old)?,
            (None, ..) => {}
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
            let made = decoding.map_or(Ok(Vec::new()), Decoding::finish);
            self.fresh.plans.append(&mut snapshot.judged(made)?);
        }
        self.trouble.extend(beside);
        self.trouble.sort_by(|a, b| a.relative.cmp(&b.relative));
        self.fresh.problems = scan_problems(context, self.trouble);
        Ok(self.fresh)
    }
}
