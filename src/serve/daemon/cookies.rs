//! Delays requests for current data until the daemon has seen every change that was made before the request.
//!
//! A cookie is a file in the daemon's own directory. The daemon creates the first cookie, and makes each later one by
//! renaming the previous one. Events arrive in order, so when the event for the cookie arrives, the events of all earlier
//! changes have arrived, too (Watchman's method). One cookie serves all requests that arrived before it.

use std::collections::BTreeSet;
use std::sync::mpsc::SyncSender;
use std::time::Instant;

use crate::disk::PlansDir;
use crate::serve::daemon::listener::SocketRequest;
use crate::serve::daemon::times::COOKIE_TIMEOUT;
use crate::serve::ipc::protocol::{Answer, Request};

#[derive(Default)]
pub(crate) struct Cookies {
    /// Requests that have no cookie yet.
    new_requests: Vec<Requester>,
    pub(crate) waiting: Vec<PendingCookie>,
    /// The number of cookies so far, which is also the name of the last one.
    pub(crate) n_created: u64,
}

pub(crate) struct PendingCookie {
    name: String,
    deadline: Instant,
    has_arrived: bool,
    /// Empty for a probe, which only tests whether events arrive at all.
    requests: Vec<Requester>,
}

/// A request that waits for a cookie.
pub(crate) enum Requester {
    Command(SocketRequest),
    /// From the claim batcher of this process, which asks for the plans that changed.
    ClaimBatcher(SyncSender<Option<BTreeSet<String>>>),
}

/// The result of taking the cookies that arrived or are lost.
#[derive(Default)]
pub(crate) struct Finished {
    /// Whether the event of a probe has arrived.
    pub(crate) has_probe: bool,
    /// Requests whose cookies have arrived.
    pub(crate) requests: Vec<Requester>,
    /// Whether a cookie's event is considered lost. Its requests were refused.
    pub(crate) has_lost: bool,
}

impl Cookies {
    pub(crate) fn add(&mut self, request: Requester) {
        self.new_requests.push(request);
    }

    pub(crate) fn take_new(&mut self) -> Vec<Requester> {
        std::mem::take(&mut self.new_requests)
    }

    /// Creates a cookie for these requests, or a probe if there are none.
    pub(crate) fn create(&mut self, plans: &PlansDir, requests: Vec<Requester>) {
        let last = self.n_created.to_string();
        self.n_created += 1;
        let name = self.n_created.to_string();
        if plans.make_cookie(&last, &name).is_err() {
            return refuse(requests);
        }
        let deadline = Instant::now() + COOKIE_TIMEOUT;
        self.waiting.push(PendingCookie { name, deadline, has_arrived: false, requests });
    }

    pub(crate) fn note_arrival(&mut self, name: &str) {
        if let Some(it) = self.waiting.iter_mut().find(|it| it.name == name) {
            it.has_arrived = true;
        }
    }

    pub(crate) fn have_arrived(&self) -> bool {
        self.waiting.iter().any(|it| it.has_arrived)
    }

    /// Whether a request whose cookie arrived needs the index.
    pub(crate) fn need_index(&self, has_dependents: bool) -> bool {
        let needs_index = |it: &Requester| match it {
            Requester::Command(it) => !matches!(it.request, Request::Around(_)) || !has_dependents,
            Requester::ClaimBatcher(_) => false,
        };
        self.waiting.iter().any(|it| it.has_arrived && it.requests.iter().any(needs_index))
    }

    /// When the next cookie counts as lost.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.waiting.iter().map(|it| it.deadline).min()
    }

    /// Takes the cookies that have arrived, and refuses the requests of those that are lost.
    pub(crate) fn take_finished(&mut self, now: Instant) -> Finished {
        let mut finished = Finished::default();
        for it in std::mem::take(&mut self.waiting) {
            if it.has_arrived {
                finished.has_probe |= it.requests.is_empty();
                finished.requests.extend(it.requests);
            } else if it.deadline > now {
                self.waiting.push(it);
            } else {
                finished.has_lost = true;
                refuse(it.requests);
            }
        }
        finished
    }

    pub(crate) fn refuse_waiting(&mut self) {
        self.waiting.drain(..).for_each(|it| refuse(it.requests));
    }
}

/// Answers that it is not known whether the index is current.
pub(crate) fn refuse(requests: Vec<Requester>) {
    for it in requests {
        match it {
            Requester::Command(it) => {
                let unknown = Answer::Sync { fresh: false, generation: None, is_complete: false };
                drop(it.reply.try_send(unknown));
            }
            Requester::ClaimBatcher(reply) => drop(reply.try_send(None)),
        }
    }
}
