//! All plans as they are now: unchanged plans from the index, the others from their files.
//!
//! The result is complete in memory before anything is written, unless the index is empty: an empty index is filled while
//! the files are read. A failure to write the index is reported by a notice, and does not change the result.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::panic::resume_unwind;
use std::sync::OnceLock;
use std::thread::{self, ScopedJoinHandle};

use super::collect::{Comparison, FromIndex, Gathered, InDirectory, Seen, Where};
use super::parallel::{self, Results};
use super::scan::{ReadContext, RowState, reader};
use crate::api::context::{Context, Notice, Reading};
use crate::api::daemon::Freshness;
use crate::index::{
    Change, FileRow, Generation, Head, Index, IndexError, Key, Opened, Place, Snapshot, SummaryData, Texts,
};
use crate::plan::id::PlanId;
use crate::plan::model::Plan;
use crate::plan::problem::Problem;
use crate::plan::read::Bodies;
use crate::plan::summary::PlanSummary;

/// How many times the daemon is asked, at most, which commit is current. While files are saved continuously, the named
/// commit can be outdated before it is read. The alternative is to compare all files, which costs far more. If the result of
/// the comparison is written to the index, the daemon has to compare all files, too.
const MOST_ASKED: usize = 4;

/// How many times the files are compared with the index, at most, while other processes write to it or it is damaged.
const MOST_ATTEMPTS: usize = 4;

/// Reading up to this many plans again costs less than a commit.
const FEW: usize = 8;

/// What is returned besides the changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wanted {
    Nothing,
    /// Only the plans that differ from the index.
    Changed,
    Plans,
    /// Summaries need less reading, decoding and memory than plans.
    Summaries,
    PlansAndFiles,
}

impl Wanted {
    /// Threads reserve memory only if summaries are loaded. The daemon loads no summaries when it refreshes the index, so it
    /// reserves no memory.
    pub(super) fn results(self) -> Results {
        if self == Self::Summaries { Results::Plans } else { Results::Little }
    }
}

/// How the index is checked against the files before anything is taken from it. The result is always the same as if the
/// files were read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum IndexCheck {
    /// A daemon that sees every change names the commit of the index that is current. Without such a daemon, all files are
    /// compared with the index, and it is updated.
    Attested,
    /// Like `Attested`, but all files are compared while there are problems that belong to no plan, so that every problem
    /// is found.
    AttestedComplete,
    /// Like `Attested`, but the daemon has already been asked, and this is its answer.
    AttestedBy(Option<Generation>),
    /// Like `Attested`, for callers that load often: if only a few plans changed, they are not written into the index.
    Lazy,
    /// All files are compared with the index, and it is updated.
    Scan,
}

/// An update of the index that also returns what is `wanted`.
#[derive(Clone, Copy)]
pub(crate) struct Refresh<'a> {
    wanted: Wanted,
    check: IndexCheck,
    only: Option<&'a [Key]>,
    texts: Option<&'a dyn Fn(Texts)>,
}

impl<'a> Refresh<'a> {
    pub(crate) fn new(wanted: Wanted, check: IndexCheck) -> Self {
        Self { wanted, check, only: None, texts: None }
    }

    /// Compares only these directories.
    pub(crate) fn of_plans(keys: &'a [Key], wanted: Wanted) -> Self {
        Self { only: Some(keys), ..Self::new(wanted, IndexCheck::Scan) }
    }

    /// Compares all files. If the index is empty, the texts of each plan are passed to `texts` before its row is
    /// written.
    pub(crate) fn with_texts(texts: &'a dyn Fn(Texts)) -> Self {
        Self { texts: Some(texts), ..Self::new(Wanted::Nothing, IndexCheck::Scan) }
    }

    pub(crate) fn run(&self, context: &Context) -> Fresh {
        self.run_in(context, open_index(context))
    }

    /// Like [`Self::run`], with an index that is open already.
    pub(crate) fn run_in(&self, context: &Context, mut index: Option<Index>) -> Fresh {
        let ask = || match self.check {
            IndexCheck::AttestedComplete => complete_commit(context),
            _ => attested_commit(context),
        };
        let (mut commit, most_asked) = match self.check {
            IndexCheck::Scan => (None, 0),
            IndexCheck::AttestedBy(commit) => (commit, MOST_ASKED),
            IndexCheck::Attested | IndexCheck::AttestedComplete => {
                (index.as_ref().and_then(|_| ask()), MOST_ASKED)
            }
            IndexCheck::Lazy => (index.as_ref().and_then(|_| ask()), 1),
        };
        let mut n_asked = 1;
        while let (Some(attested), Some(it)) = (commit, index.as_mut()) {
            match from_commit(context, it, attested, self.wanted) {
                FromCommit::Loaded(found) => return Fresh { index, ..*found },
                FromCommit::OtherCommit if n_asked < most_asked => commit = ask(),
                FromCommit::OtherCommit | FromCommit::Unusable => break,
            }
            n_asked += 1;
        }
        attempts(context, index, self)
    }

    /// Up to this many changes are not written into the index.
    fn most_unwritten(&self) -> usize {
        if self.check == IndexCheck::Lazy { FEW } else { 0 }
    }
}

#[derive(Debug, Default)]
pub(crate) struct Fresh {
    /// Without the problems between plans, and in no particular order; empty unless plans are wanted.
    pub(crate) plans: Vec<Plan>,
    /// The same for summaries.
    pub(crate) summaries: Vec<PlanSummary>,
    /// The files of the plans by path, in no particular order; empty unless files are wanted.
    pub(crate) files: Vec<(String, FileRow)>,
    /// Problems that belong to no plan. They are found only by a comparison with the files, and only in the directories
    /// that were compared.
    pub(crate) problems: Vec<Problem>,
    /// Plans that differed from the index, or that were removed.
    pub(crate) changed: BTreeSet<PlanId>,
    pub(crate) n_plans: usize,
    pub(crate) n_steps: usize,
    /// For how many plans the texts were passed to the function of [`Refresh::with_texts`].
    pub(crate) n_texts: usize,
    /// The index, if it has exactly this content. `None` if changes were not written, or if another process wrote meanwhile.
    pub(crate) index: Option<Index>,
    /// The commit with exactly this content; `None` if there is none.
    pub(crate) commit: Option<Generation>,
    /// The commit that was compared with the files.
    pub(crate) before: Option<Generation>,
}

/// The result of loading a commit of the index that a daemon attests.
enum FromCommit {
    Loaded(Box<Fresh>),
    /// The index is at another commit by now.
    OtherCommit,
    /// The index is damaged, or its plans were read with other `[words]` in the configuration. The comparison with the
    /// files, which follows, notices this too.
    Unusable,
}

/// Asks the daemon which commit of the index is current; none if there is no daemon, or if it does not know.
pub(crate) fn attested_commit(context: &Context) -> Option<Generation> {
    match &context.freshness {
        Freshness::Attested(daemon) => daemon.commit(),
        Freshness::Unknown => None,
    }
}

/// Like [`attested_commit`], but none while there are problems that the index does not contain.
fn complete_commit(context: &Context) -> Option<Generation> {
    match &context.freshness {
        Freshness::Attested(daemon) => daemon.complete_commit(),
        Freshness::Unknown => None,
    }
}

/// Whether a snapshot is of this commit.
pub(crate) fn is_commit(snapshot: &Snapshot<'_>, commit: Option<Generation>) -> bool {
    snapshot.generation().is_ok_and(|it| it == commit)
}

/// Loads everything from the index if it is at `commit`, which a daemon attests.
fn from_commit(context: &Context, index: &mut Index, commit: Generation, wanted: Wanted) -> FromCommit {
    let Ok(snapshot) = index.snapshot() else { return FromCommit::Unusable };
    let commit = Some(commit);
    if !is_commit(&snapshot, commit) {
        return FromCommit::OtherCommit;
    }
    let found = from_snapshot(context, &snapshot, wanted);
    found.map_or(FromCommit::Unusable, |it| {
        FromCommit::Loaded(Box::new(Fresh { commit, before: commit, ..it }))
    })
}

fn from_snapshot(context: &Context, snapshot: &Snapshot<'_>, wanted: Wanted) -> Option<Fresh> {
    let heads = snapshot.heads().ok()?;
    let reader = reader(context);
    if !heads.iter().all(|it| it.reader() == reader) {
        return None;
    }
    let summaries = summaries_of(snapshot, &heads, wanted).ok()?;
    thread::scope(|scope| {
        let mut gathered =
            Gathered::new(wanted, &heads, Some(FromIndex::of(snapshot, heads.len(), wanted, scope)));
        let places: Vec<_> = (0..heads.len()).collect();
        let same = |at: &usize| {
            let summary = summaries.as_ref().map(|it| heads[*at].summary(it.of(*at)));
            let key = heads[*at].key.clone();
            let seen = Seen { key, at: Some(*at), row_state: RowState::Same, summary, texts: None };
            (Some(seen), Vec::new())
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

/// Opens the index on disk; none if this process reads only files, or if it cannot be opened.
pub(crate) fn open_index(context: &Context) -> Option<Index> {
    if context.reading == Reading::Files {
        return None;
    }
    let Some(directory) = context.plans.index_dir() else {
        if !context.plans.is_bare() {
            let why = "neither `.planwatch` nor a directory for caches can be used";
            (context.on_notice)(Notice::IndexInMemory { why: why.to_owned() });
        }
        return None;
    };
    opened(context, Index::open(Place::Directory(&directory)))
}

/// Returns the opened index, or none if it cannot be opened. Sends a notice if the index cannot be opened or was rebuilt.
pub(crate) fn opened<T>(context: &Context, found: Result<(T, Opened), IndexError>) -> Option<T> {
    match found {
        Ok((opened, how)) => {
            if let Opened::Rebuilt { why } = how {
                (context.on_notice)(Notice::IndexRebuilt { why });
            }
            Some(opened)
        }
        Err(error) => {
            (context.on_notice)(Notice::IndexInMemory { why: error.to_string() });
            None
        }
    }
}

/// Compares the files with the index. If the index is damaged, continues with a new one, or without an index if none can
/// be created. If only the update is wanted and other processes wrote to the index meanwhile, compares the files again.
fn attempts(context: &Context, mut index: Option<Index>, refresh: &Refresh<'_>) -> Fresh {
    let mut changed = BTreeSet::new();
    for n in 1..=MOST_ATTEMPTS {
        let Some(it) = &mut index else { break };
        match attempt(context, Some(it), refresh) {
            Ok((fresh, IndexWrite::Concurrent)) if refresh.wanted == Wanted::Nothing && n < MOST_ATTEMPTS => {
                changed.extend(fresh.changed);
            }
            Ok((mut fresh, held)) => {
                fresh.changed.append(&mut changed);
                return match held {
                    IndexWrite::At(commit) => Fresh { index, commit, ..fresh },
                    IndexWrite::Not | IndexWrite::Concurrent => fresh,
                };
            }
            Err(error) => index = after(context, index, &error),
        }
    }
    attempt(context, None, refresh).map(|(fresh, _)| fresh).unwrap_or_default()
}

/// Reports an error of an index. Returns a new index if the old one was damaged and can be replaced.
pub(crate) fn after(context: &Context, index: Option<Index>, error: &IndexError) -> Option<Index> {
    let (mut index, why) = (index?, error.to_string());
    let reopened = match error {
        IndexError::Damaged { .. } => index.reopen(),
        _ => {
            (context.on_notice)(Notice::IndexInMemory { why });
            return None;
        }
    };
    match reopened {
        Ok(()) => (context.on_notice)(Notice::IndexRebuilt { why }),
        Err(ref error) => (context.on_notice)(Notice::IndexInMemory { why: error.to_string() }),
    }
    reopened.is_ok().then_some(index)
}

/// Whether the index contains the whole result now.
enum IndexWrite {
    At(Option<Generation>),
    /// Another process wrote meanwhile, perhaps from an older comparison.
    Concurrent,
    Not,
}

impl IndexWrite {
    /// Converts the result of a write that requires the index to be still at the compared commit.
    fn by(context: &Context, written: Result<Option<Generation>, IndexError>) -> Result<Self, IndexError> {
        match written {
            Ok(Some(commit)) => Ok(Self::At(Some(commit))),
            Ok(None) => Ok(Self::Concurrent),
            Err(error @ IndexError::Damaged { .. }) => Err(error),
            Err(error) => {
                (context.on_notice)(Notice::IndexInMemory { why: error.to_string() });
                Ok(Self::Not)
            }
        }
    }
}

fn attempt(
    context: &Context,
    index: Option<&mut Index>,
    refresh: &Refresh<'_>,
) -> Result<(Fresh, IndexWrite), IndexError> {
    let &Refresh { wanted, only, .. } = refresh;
    let clock = OnceLock::new();
    let how = ReadContext::new(context, &clock);
    let Some(index) = index else {
        let mut gathered = Gathered::new(wanted, &[], None);
        let looking = Comparison { how, wanted, bodies: Bodies::Drop, heads: &[], summaries: None };
        let trouble = looking.at(Where::of(context, only), |all| {
            for it in all {
                gathered.take(it)?;
            }
            Ok(())
        })?;
        return Ok((gathered.finish(context, trouble)?, IndexWrite::Not));
    };
    let snapshot = index.snapshot()?;
    // The snapshot is taken before the directories are listed, so that no row is newer than the list.
    let before = snapshot.generation()?;
    let (rows, place) = thread::scope(|scope| {
        // If directories are named, there is nothing to list.
        let place = only.is_none().then(|| scope.spawn(|| Where::of(context, only)));
        let rows = rows(&snapshot, refresh);
        let listed = |it: ScopedJoinHandle<'_, _>| it.join().unwrap_or_else(|panic| resume_unwind(panic));
        (rows, place.map_or_else(|| Where::of(context, only), listed))
    });
    let (heads, summaries) = rows?;
    if heads.is_empty() {
        drop(snapshot);
        return first(how, index, refresh, (before, place));
    }
    let mut changes = Vec::new();
    let mut fresh = thread::scope(|scope| {
        let unchanged = FromIndex::of(&snapshot, heads.len(), wanted, scope);
        let mut gathered = Gathered::new(wanted, &heads, Some(unchanged));
        let summaries = summaries.as_ref();
        let looking = Comparison { how, wanted, bodies: Bodies::Drop, heads: &heads, summaries };
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
        0 => IndexWrite::At(before),
        n if n <= refresh.most_unwritten() => IndexWrite::Not,
        _ => IndexWrite::by(context, index.write_after(before, &mut changes.into_iter()))?,
    };
    Ok((fresh, held))
}

/// The rows of the index for the directories that are compared.
fn rows(
    snapshot: &Snapshot<'_>,
    refresh: &Refresh<'_>,
) -> Result<(Vec<Head>, Option<SummaryData>), IndexError> {
    let heads = match refresh.only {
        None => snapshot.heads()?,
        Some(keys) => heads_of(snapshot, keys)?,
    };
    let summaries = summaries_of(snapshot, &heads, refresh.wanted)?;
    Ok((heads, summaries))
}

fn summaries_of(
    snapshot: &Snapshot<'_>,
    heads: &[Head],
    wanted: Wanted,
) -> Result<Option<SummaryData>, IndexError> {
    (wanted == Wanted::Summaries).then(|| snapshot.summaries(heads)).transpose()
}

fn heads_of(snapshot: &Snapshot<'_>, keys: &[Key]) -> Result<Vec<Head>, IndexError> {
    let mut heads = Vec::new();
    for key in keys.iter().filter(|it| !it.is_archived) {
        heads.extend(snapshot.heads_named(&key.name)?);
    }
    Ok(heads)
}

/// Writes the rows while the files are read, so that only a few plans wait in memory. Used if the index has no rows for the
/// compared directories, usually because it is empty.
fn first(
    how: ReadContext<'_>,
    index: &mut Index,
    refresh: &Refresh<'_>,
    (before, place): (Option<Generation>, Where<'_>),
) -> Result<(Fresh, IndexWrite), IndexError> {
    let mut gathered = Gathered::new(refresh.wanted, &[], None);
    let (mut held, is_writing, n_texts) = (Ok(IndexWrite::Not), Cell::new(true), Cell::new(0));
    let bodies = if refresh.texts.is_some() { Bodies::Keep } else { Bodies::Drop };
    let looking = Comparison { how, wanted: refresh.wanted, bodies, heads: &[], summaries: None };
    let trouble = looking.at(place, |all| {
        let mut changes = all.filter_map(|mut it| {
            let texts = it.0.as_mut().and_then(|it| it.texts.take());
            let change = gathered.take(it).ok().flatten()?;
            if let (Some(to), Some(texts), true) = (refresh.texts, texts, is_writing.get()) {
                n_texts.set(n_texts.get() + 1);
                to(texts);
            }
            Some(change)
        });
        held = IndexWrite::by(how.context, index.write_after(before, &mut changes));
        is_writing.set(false);
        // If writing failed, the remaining directories are still part of the result.
        changes.for_each(drop);
        Ok(())
    })?;
    let fresh = Fresh { before, n_texts: n_texts.get(), ..gathered.finish(how.context, trouble)? };
    Ok((fresh, held?))
}
