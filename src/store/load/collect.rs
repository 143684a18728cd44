//! Compares plan directories with the index in several threads, and gathers the results.

use std::collections::HashMap;
use std::thread::Scope;

use super::decode::Decoding;
use super::parallel::{self, Results};
use super::refresh::{Fresh, Wanted};
use super::scan::{ReadContext, RowState, Walked, directory, look, walk, walk_named};
use super::scan_problems;
use crate::api::context::Context;
use crate::disk::{PlanDir, Scan, Trouble};
use crate::index::{Change, FileRow, Head, IndexError, Key, Packed, Snapshot, SummaryData, Texts};
use crate::plan::id::PlanId;
use crate::plan::read::Bodies;
use crate::plan::summary::PlanSummary;

/// The result of reading a directory (none if there is no plan in it), and what could not be read there.
pub(super) type InDirectory = (Option<Seen>, Vec<Trouble>);

/// The result of reading a plan's directory.
pub(super) struct Seen {
    pub(super) key: Key,
    /// The position of the directory's head in [`Comparison::heads`]; `None` if it has no head there.
    pub(super) at: Option<usize>,
    pub(super) row_state: RowState,
    /// Present only if summaries are wanted.
    pub(super) summary: Option<Result<PlanSummary, IndexError>>,
    /// Present only if an empty index is filled and texts are wanted.
    pub(super) texts: Option<Texts>,
}

/// Which directories are compared.
pub(super) enum Where<'a> {
    /// Every directory that may be a plan, and the other entries of the plans directory.
    All(Vec<PlanDir>, Scan),
    Named(&'a [Key]),
}

impl<'a> Where<'a> {
    pub(super) fn of(context: &Context, only: Option<&'a [Key]>) -> Self {
        match only {
            Some(keys) => Self::Named(keys),
            None => {
                let (dirs, beside) = context.plans.plan_dirs();
                Self::All(dirs, beside)
            }
        }
    }
}

#[derive(Clone, Copy)]
pub(super) struct Comparison<'a> {
    pub(super) how: ReadContext<'a>,
    pub(super) wanted: Wanted,
    pub(super) bodies: Bodies,
    pub(super) heads: &'a [Head],
    pub(super) summaries: Option<&'a SummaryData>,
}

impl Comparison<'_> {
    /// Compares directories in several threads. Returns what could not be read in the plans directory outside of these
    /// directories.
    pub(super) fn at(
        self,
        place: Where<'_>,
        consume: impl FnOnce(&mut dyn Iterator<Item = InDirectory>) -> Result<(), IndexError>,
    ) -> Result<Vec<Trouble>, IndexError> {
        let places: HashMap<_, _> = self.heads.iter().enumerate().map(|(at, it)| (&it.key, at)).collect();
        let seen = |walked: Walked| self.seen(places.get(&walked.key).copied(), walked);
        let context = self.how.context;
        match place {
            Where::Named(keys) => {
                let named = |key: &Key| {
                    let (walked, trouble) = walk_named(context, key);
                    (walked.map(seen), trouble)
                };
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
        let mut row_state = look(self.how, walked, head, self.bodies);
        let texts = match &row_state {
            RowState::Read(packed, Some(plan)) if self.bodies == Bodies::Keep => {
                Some(Texts::of_head(&packed.head, plan))
            }
            _ => None,
        };
        // The summary is made in the thread that has read the plan, because a thread that frees memory allocated by another
        // thread may have to wait for that thread.
        let summary = match (&mut row_state, at, self.summaries) {
            (RowState::Read(_, plan), ..) if self.wanted == Wanted::Summaries => {
                plan.take().map(|it| Ok(it.summarize()))
            }
            (RowState::Read(_, plan), ..) if self.wanted == Wanted::Nothing => {
                drop(plan.take());
                None
            }
            (RowState::Same | RowState::Restamped(_), Some(at), Some(data)) => {
                Some(self.heads[at].summary(data.of(at)))
            }
            _ => None,
        };
        Seen { key, at, row_state, summary, texts }
    }
}

/// Decodes unchanged plans from the data of the index.
pub(super) struct FromIndex<'scope, 'a> {
    snapshot: &'a Snapshot<'a>,
    /// `None` if unchanged plans are not wanted. Summaries and changed plans are in [`Seen`].
    decoding: Option<Decoding<'scope, 'a>>,
}

/// The results of the directories, gathered one after the other.
pub(super) struct Gathered<'scope, 'a> {
    wanted: Wanted,
    heads: &'a [Head],
    unchanged: Option<FromIndex<'scope, 'a>>,
    /// For each head, whether its directory still contains a plan.
    is_there: Vec<bool>,
    trouble: Vec<Trouble>,
    fresh: Fresh,
}

impl<'scope, 'a: 'scope> FromIndex<'scope, 'a> {
    /// `n` is the approximate number of plans.
    pub(super) fn of(
        snapshot: &'a Snapshot<'a>,
        n: usize,
        wanted: Wanted,
        scope: &'scope Scope<'scope, '_>,
    ) -> Self {
        let is_whole = match wanted {
            Wanted::Plans | Wanted::PlansAndFiles => true,
            Wanted::Nothing | Wanted::Changed | Wanted::Summaries => false,
        };
        Self { snapshot, decoding: is_whole.then(|| Decoding::of(n, scope)) }
    }

    fn put(&mut self, head: &'a Head) -> Result<(), IndexError> {
        let Some(decoding) = &mut self.decoding else { return Ok(()) };
        let data = self.snapshot.data(head)?;
        self.snapshot.with_damage_recorded(decoding.put(head, data))
    }
}

impl<'scope, 'a: 'scope> Gathered<'scope, 'a> {
    pub(super) fn new(wanted: Wanted, heads: &'a [Head], unchanged: Option<FromIndex<'scope, 'a>>) -> Self {
        let is_there = vec![false; heads.len()];
        Self { wanted, heads, unchanged, is_there, trouble: Vec::new(), fresh: Fresh::default() }
    }

    /// Adds the result of a directory. Returns the change that brings the index up to date, if one is needed.
    pub(super) fn take(&mut self, (seen, trouble): InDirectory) -> Result<Option<Change>, IndexError> {
        self.trouble.extend(trouble);
        let Some(Seen { key, at, row_state, summary, .. }) = seen else { return Ok(None) };
        let old = at.map(|it| &self.heads[it]);
        self.fresh.n_plans += 1;
        if let Some(at) = at {
            self.is_there[at] = true;
        }
        let (plan, change) = match row_state {
            RowState::Same => (None, None),
            RowState::Restamped(head) => (None, Some(Change::Restamp(head))),
            RowState::Read(packed, plan) => {
                self.fresh.changed.insert(PlanId::new(key.name.clone()));
                (plan, Some(Change::Put(packed)))
            }
        };
        let head = match &change {
            Some(Change::Restamp(head) | Change::Put(Packed { head, .. })) => Some(head),
            _ => old,
        };
        let Some(head) = head else { return Ok(change) };
        self.fresh.n_steps += head.steps as usize;
        if self.wanted == Wanted::PlansAndFiles {
            let path = |it: FileRow| (format!("{}/{}", directory(&key), it.name), it);
            self.fresh.files.extend(head.files()?.into_iter().filter(|it| !it.is_vanished()).map(path));
        }
        match (plan, summary, &mut self.unchanged, old) {
            (Some(plan), ..) => self.fresh.plans.push(*plan),
            (None, Some(summary), Some(index), _) => {
                self.fresh.summaries.push(index.snapshot.with_damage_recorded(summary)?);
            }
            (None, Some(summary), None, _) => self.fresh.summaries.push(summary?),
            (None, None, Some(index), Some(old)) => index.put(old)?,
            (None, None, ..) => {}
        }
        Ok(change)
    }

    /// The rows whose directories are no longer plans.
    pub(super) fn gone(&mut self) -> impl Iterator<Item = Key> + use<> {
        let gone = self.heads.iter().zip(&self.is_there).filter(|(_, is_there)| !**is_there);
        let gone: Vec<_> = gone.map(|(head, _)| head.key.clone()).collect();
        self.fresh.changed.extend(gone.iter().map(|it| PlanId::new(it.name.clone())));
        gone.into_iter()
    }

    pub(super) fn finish(mut self, context: &Context, beside: Vec<Trouble>) -> Result<Fresh, IndexError> {
        if let Some(FromIndex { snapshot, decoding }) = self.unchanged {
            let made = decoding.map_or(Ok(Vec::new()), Decoding::finish);
            self.fresh.plans.append(&mut snapshot.with_damage_recorded(made)?);
        }
        self.trouble.extend(beside);
        self.trouble.sort_by(|a, b| a.relative.cmp(&b.relative));
        self.fresh.problems = scan_problems(context, self.trouble);
        Ok(self.fresh)
    }
}
