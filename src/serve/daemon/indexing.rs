//! The index, the changes that are not in it yet, and the answers to requests.

use std::cell::RefCell;

use crate::api::context::Context;
use crate::api::error::Error;
use crate::plan::id::PlanId;
use crate::plan::model::Plan;
use crate::plan::problem::Code;
use crate::serve::daemon::cookies::Requester;
use crate::serve::daemon::dependents::{Dependents, PlanReferences};
use crate::serve::daemon::dirty::{ChangedPlans, Dirty};
use crate::serve::daemon::watcher::event::WriteKind;
use crate::serve::ipc::protocol::{Answer, Request};
use crate::store::live_index::LiveIndex;
use crate::store::load;

/// The maximum length of a cached answer of `next`, in bytes. A longer answer is not cached.
pub(crate) const NEXT_ANSWER_LIMIT: usize = 256 << 10;

#[derive(Default)]
pub(crate) struct Indexing {
    pub(crate) index: LiveIndex,
    pub(crate) dirty: Dirty,
    pub(crate) changed: ChangedPlans,
    /// `None` if unknown.
    dependents: Option<Dependents>,
    /// The last answer of `next`, as sent by the command that computed it. Commands that receive it decide whether it is
    /// still valid.
    next_answer: Option<String>,
}

impl Indexing {
    pub(crate) fn mark(&mut self, name: String, write_kind: WriteKind) {
        self.changed.add(&name);
        if let Some(dependents) = &mut self.dependents {
            dependents.mark_stale(std::slice::from_ref(&name));
        }
        self.dirty.add(name, write_kind);
    }

    pub(crate) fn mark_everything(&mut self) {
        self.changed.add_all();
        self.dirty.is_everything = true;
    }

    pub(crate) fn has_dependents(&self) -> bool {
        self.dependents.is_some()
    }

    pub(crate) fn cache_next(&mut self, answer: String) {
        self.next_answer = Some(answer).filter(|it| it.len() <= NEXT_ANSWER_LIMIT);
    }

    /// Indexes the plans that are dirty, and those in `linked`, which may have changed without an event. Returns the paths
    /// of files with several hard links, as [`LiveIndex::hard_linked`] does. If many plans have changed, their files are
    /// left out.
    pub(crate) fn refresh_plans(&mut self, now: &Context, linked: &[String]) -> Vec<String> {
        let names: Vec<_> =
            std::mem::take(&mut self.dirty).plans.into_iter().chain(linked.to_vec()).collect();
        self.index.refresh_plans(now, &names);
        if let Some(dependents) = &mut self.dependents {
            dependents.mark_stale(linked);
        }
        self.index.hard_linked()
    }

    /// Indexes everything. Returns the result of `make` for every live plan, and the paths of files with several hard
    /// links.
    pub(crate) fn refresh_all<T>(
        &mut self,
        now: &Context,
        make: impl Fn(&Plan) -> T,
    ) -> Result<(Vec<T>, Vec<String>), Error> {
        self.dirty = Dirty::default();
        self.index.refresh(now);
        let hard_linked = RefCell::new(Vec::new());
        let all = self.index.each(now, |it| {
            let found = it.problems.iter().filter(|it| it.code == Code::HardLinked);
            hard_linked.borrow_mut().extend(found.map(|it| it.path.clone()));
            (PlanReferences::by(it), (!it.is_archived).then(|| make(it)))
        })?;
        let (references, made): (Vec<_>, Vec<_>) = all.into_iter().unzip();
        // If another process has written to the index since the refresh, the rows that it wrote may be older than the files.
        self.dependents = self.index.is_current(now).then(|| Dependents::of(references));
        Ok((made.into_iter().flatten().collect(), hard_linked.into_inner()))
    }

    /// Returns a plan as it was last indexed. Reads its files if they may have changed since, or if the index is unusable.
    pub(crate) fn plan(
        &mut self,
        now: &Context,
        id: &PlanId,
        sees_every_change: bool,
    ) -> Result<Option<Plan>, Error> {
        let is_indexed = sees_every_change && !self.dirty.includes(id);
        let indexed = if is_indexed { self.index.plan(id) } else { None };
        indexed.map_or_else(|| load::one_plan(now, id), Ok)
    }

    /// Answers a request whose cookie has arrived. If the answer needs the index, every earlier change is indexed by
    /// now.
    pub(crate) fn answer(&mut self, now: &Context, request: Requester) {
        let command = match request {
            Requester::Command(command) => command,
            Requester::ClaimBatcher(reply) => return drop(reply.try_send(self.changed.take())),
        };
        let generation = self.index.verified().map(|it| it.to_string());
        let answer = match command.request {
            Request::Around(plan) => {
                let around = self.dependents.as_mut().and_then(|it| it.lookup(now, &PlanId::new(plan)));
                Answer::Around { around }
            }
            Request::Next => Answer::Next { generation, cached: self.next_answer.clone() },
            _ => {
                let is_complete = self.index.is_complete();
                Answer::Sync { fresh: generation.is_some(), generation, is_complete }
            }
        };
        command.reply.try_send(answer).ok();
    }
}
