//! Answers "does the index hold everything that was saved before this request?".
//!
//! The daemon creates a file, the cookie, in a directory of its own. Events arrive in order: once the event for the
//! cookie arrives, so has the event of every earlier change (Watchman's method). One cookie serves all requests that
//! arrived before it was created.

use std::collections::BTreeSet;
use std::sync::mpsc::SyncSender;
use std::time::{Duration, Instant};

use super::event_loop::Daemon;
use crate::api::context::{Context, Reading};
use crate::api::error::Error;
use crate::plan::id::PlanId;
use crate::serve::daemon::listener::SocketRequest;
use crate::serve::ipc::protocol::{Answer, Request};

/// An event that takes longer than this is considered lost.
const PATIENCE: Duration = Duration::from_secs(1);

pub(crate) struct PendingCookie {
    cookie: String,
    pub(crate) deadline: Instant,
    pub(crate) has_arrived: bool,
    /// Empty for a probe, which only tests whether events arrive at all.
    requests: Vec<Requester>,
}

/// A request that waits for a cookie.
pub(crate) enum Requester {
    /// From a command.
    Command(SocketRequest),
    /// From the claim batcher of this process, which asks for the plans that changed.
    ClaimBatcher(SyncSender<Option<BTreeSet<String>>>),
}

/// The plans that changed; `None`: any of them.
#[derive(Debug)]
pub(crate) struct ChangedPlans(Option<BTreeSet<String>>);

/// If more plans changed than this, they are not listed.
const MOST: usize = 256;

impl Default for ChangedPlans {
    fn default() -> Self {
        Self(Some(BTreeSet::new()))
    }
}

impl ChangedPlans {
    pub(crate) fn add(&mut self, name: &str) {
        let Some(names) = &mut self.0 else { return };
        if !names.contains(name) {
            names.insert(name.to_owned());
        }
        if names.len() > MOST {
            self.0 = None;
        }
    }

    pub(crate) fn add_all(&mut self) {
        self.0 = None;
    }
}

impl Daemon<'_> {
    /// Tests whether events arrive at all; if not, the daemon polls.
    pub(crate) fn probe_events(&mut self, now: &Context) {
        if self.own.is_some() && self.watcher.is_some() {
            self.put_cookie(now, Vec::new());
        }
    }

    /// Creates one cookie for all requests that arrived since the last one.
    pub(crate) fn wait_for_cookie(&mut self) {
        let requests = std::mem::take(&mut self.new_requests);
        if requests.is_empty() {
            return;
        }
        if let Ok(now) = self.now() {
            self.check_mounts(&now);
        }
        let can_know = self.own.is_some()
            && self.polling.is_none()
            && self.mounts.below().is_empty()
            && self.watcher.as_ref().is_some_and(|it| it.linked().is_empty());
        match self.now() {
            Ok(now) if can_know && now.reading == Reading::Index => self.put_cookie(&now, requests),
            _ => refuse(requests),
        }
    }

    fn put_cookie(&mut self, now: &Context, requests: Vec<Requester>) {
        let last = self.n_cookies.to_string();
        self.n_cookies += 1;
        let cookie = self.n_cookies.to_string();
        if now.plans.identity() != self.identity || now.plans.make_cookie(&last, &cookie).is_err() {
            return refuse(requests);
        }
        let deadline = Instant::now() + PATIENCE;
        self.waiting.push(PendingCookie { cookie, deadline, has_arrived: false, requests });
    }

    pub(crate) fn cookie_arrived(&mut self, name: &str) {
        if let Some(it) = self.waiting.iter_mut().find(|it| it.cookie == name) {
            it.has_arrived = true;
        }
    }

    /// Whether a request whose cookie arrived needs the index.
    pub(crate) fn is_index_needed(&self) -> bool {
        let needs_index = |it: &Requester| match it {
            Requester::Command(it) => !matches!(it.ask, Request::Around(_)) || self.dependents.is_none(),
            Requester::ClaimBatcher(_) => false,
        };
        self.waiting.iter().any(|it| it.has_arrived && it.requests.iter().any(needs_index))
    }

    /// Answers the requests whose cookies arrived. Everything before them is indexed by now.
    pub(crate) fn answer(&mut self) -> Result<(), Error> {
        let now = Instant::now();
        if !self.waiting.iter().any(|it| it.has_arrived || it.deadline <= now) {
            return Ok(());
        }
        let context = self.now()?;
        if self.is_index_needed() {
            self.verify_index(&context)?;
        }
        for it in std::mem::take(&mut self.waiting) {
            if it.has_arrived {
                if it.requests.is_empty() {
                    self.events_work(&context);
                }
                it.requests.into_iter().for_each(|it| self.answer_one(&context, it));
            } else if it.deadline > now {
                self.waiting.push(it);
            } else {
                refuse(it.requests);
                self.poll("the system does not report changes here");
            }
        }
        Ok(())
    }

    fn answer_one(&mut self, context: &Context, it: Requester) {
        let it = match it {
            Requester::Command(request) => request,
            Requester::ClaimBatcher(reply) => {
                return drop(reply.try_send(std::mem::take(&mut self.changed_plans).0));
            }
        };
        let answer = match it.ask {
            Request::Around(plan) => {
                let around = self.dependents.as_mut().and_then(|it| it.lookup(context, &PlanId::new(plan)));
                Answer::Around { around }
            }
            Request::Next => {
                let generation = self.verified.map(|it| it.to_string());
                Answer::Next { generation, cached: self.next_answer.clone() }
            }
            _ => {
                let generation = self.verified.map(|it| it.to_string());
                Answer::Sync { fresh: generation.is_some(), generation }
            }
        };
        it.reply.try_send(answer).ok();
    }

    fn events_work(&mut self, context: &Context) {
        if self.polling.is_some() && self.sees_everything(context) {
            self.polling = None;
            self.observer.polling(None);
        }
    }

    fn sees_everything(&self, context: &Context) -> bool {
        self.watcher.as_ref().is_some_and(|it| it.coverage_gap().is_none())
            && !context.plans.file_system().is_remote
    }

    /// Reindexes everything if another process wrote to the index.
    fn verify_index(&mut self, context: &Context) -> Result<(), Error> {
        if self.verified.is_none() || self.generation(context) != self.verified {
            self.dirty.is_everything = true;
            self.index()?;
        }
        Ok(())
    }

    pub(crate) fn refuse_waiting(&mut self) {
        for it in self.waiting.drain(..) {
            refuse(it.requests);
        }
    }
}

fn refuse(requests: Vec<Requester>) {
    for it in requests {
        match it {
            Requester::Command(it) => {
                drop(it.reply.try_send(Answer::Sync { fresh: false, generation: None }))
            }
            Requester::ClaimBatcher(reply) => drop(reply.try_send(None)),
        }
    }
}
