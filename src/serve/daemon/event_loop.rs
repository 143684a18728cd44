//! The event loop: one thread that indexes what events point to, publishes settled changes and answers requests. It
//! writes no plan file.
//!
//! An event of the file system only determines what to read again. The daemon publishes the difference from its
//! baseline, so nothing is published twice if an event arrives twice. If the system reports lost events, everything is
//! read again, so no change is missed. While nothing happens, no thread of the daemon wakes, except for polling and for
//! claims that are shared with other machines.

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests;

use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::Instant;

use crate::api::context::{Context, Reading};
use crate::api::error::Error;
use crate::plan::id::PlanId;
use crate::serve::daemon::api::{Codes, End, Exit, Inbox, Observer};
use crate::serve::daemon::baseline::BaselinePlan;
use crate::serve::daemon::claim_batcher::ClaimBatcher;
use crate::serve::daemon::cookies::{Cookies, Finished, Requester, refuse};
use crate::serve::daemon::indexing::Indexing;
use crate::serve::daemon::listener::{Forward, SocketRequest};
use crate::serve::daemon::messages::Message;
use crate::serve::daemon::publish::Publisher;
use crate::serve::daemon::remote_claims::RemoteClaims;
use crate::serve::daemon::runtime_files::RuntimeFiles;
use crate::serve::daemon::subscribers::Subscribers;
use crate::serve::daemon::turns::Turns;
use crate::serve::daemon::watcher::event::{WatchEvent, WriteKind};
use crate::serve::daemon::watching::Watching;
use crate::serve::ipc::event::Event;
use crate::serve::ipc::protocol::{Answer, Request, Status};
use crate::serve::ipc::socket_path::SocketDirs;

/// Watches until it is stopped. `context` is called again for each turn, because time passes and the configuration may
/// change.
///
/// Only one process can hold the daemon's lock of a plans directory; any other returns [`End::Another`] at once.
/// Without `.planwatch` there is no lock.
pub fn watch(
    context: &dyn Fn() -> Result<Context, Error>,
    socket_dirs: &SocketDirs,
    inbox: Inbox,
    observer: &mut dyn Observer,
) -> Result<End, Error> {
    match Daemon::begin(context, socket_dirs, inbox, observer) {
        Ok(daemon) => daemon.run(),
        Err(Exit::End(end)) => Ok(end),
        Err(Exit::Failed(error)) => Err(error),
    }
}

struct Daemon<'a> {
    turns: Turns<'a>,
    /// The status at the start. [`Self::status`] fills in the fields that change.
    started: Status,
    codes: Option<Codes>,
    watching: Watching,
    runtime_files: RuntimeFiles,
    cookies: Cookies,
    indexing: Indexing,
    publisher: Publisher,
    subscribers: Subscribers<'a>,
    /// Its thread ends when the daemon does.
    _remote: Option<RemoteClaims>,
}

/// The result of a part of a turn.
type Step = Result<(), Exit>;

/// Returns a function that passes claims to the batcher, if there is one, and all other requests to the event loop.
fn forward(sender: Sender<Message>, claim_batcher: Option<ClaimBatcher>) -> Forward {
    Arc::new(move |incoming| match (incoming, &claim_batcher) {
        (SocketRequest { request: Request::Claim(delegated), reply, peer, .. }, Some(claim_batcher)) => {
            claim_batcher.take(delegated, reply, peer)
        }
        (incoming, _) => sender.send(Message::Request(incoming)).is_ok(),
    })
}

impl<'a> Daemon<'a> {
    /// Takes the lock, watches, indexes and loads the baseline.
    fn begin(
        make_context: &'a dyn Fn() -> Result<Context, Error>,
        socket_dirs: &SocketDirs,
        inbox: Inbox,
        observer: &'a mut dyn Observer,
    ) -> Result<Self, Exit> {
        let now = make_context()?;
        let Inbox { sender, receiver, feed, http, without_token, codes, gives_way, claim_batcher, remote } =
            inbox;
        let forward = forward(sender.clone(), claim_batcher);
        let daemon_sender = sender.clone();
        let runtime_files = RuntimeFiles::begin(&now.plans, socket_dirs, forward)?;
        let publisher = Publisher::begin(&now.plans);
        let started = Status {
            pid: std::process::id(),
            release: env!("CARGO_PKG_VERSION").to_owned(),
            since: now.now.to_string(),
            plans: 0,
            steps: 0,
            polling: None,
            followers: 0,
            http,
            without_token,
            gives_way,
        };
        let mut daemon = Self {
            turns: Turns::new(receiver, make_context),
            started,
            codes,
            // The watches are set before the first scan, so that no change falls between them.
            watching: Watching::begin(&now, sender, observer),
            runtime_files,
            cookies: Cookies::default(),
            indexing: Indexing::default(),
            publisher,
            subscribers: Subscribers::new(observer, feed),
            _remote: remote.map(|it| it.begin(daemon_sender)),
        };
        daemon.probe_events(&now);
        let (baseline, hard_linked) =
            daemon.indexing.refresh_all(&now, |it| (it.id.clone(), BaselinePlan::of(it)))?;
        daemon.publisher.baseline = baseline.into_iter().collect();
        daemon.watch_hard_links(&now, &hard_linked);
        daemon.runtime_files.open_socket(&now.plans, daemon.subscribers.observer);
        Ok(daemon)
    }

    /// Runs until watching ends, then releases lock and socket.
    fn run(mut self) -> Result<End, Error> {
        let status = self.status();
        let result = match self.subscribers.observer.ready(&status).is_break() {
            true => Ok(End::BrokenOff),
            false => self.take_turns(),
        };
        match &result {
            Ok(end) => self.leave(end.why()),
            Err(error) => self.leave(&error.to_string()),
        }
        result
    }

    fn take_turns(&mut self) -> Result<End, Error> {
        loop {
            match self.turn() {
                Ok(()) => {}
                Err(Exit::End(end)) => return Ok(end),
                // An error because the directory just disappeared is a normal end.
                Err(Exit::Failed(_)) if self.is_gone() => return Ok(End::Gone),
                Err(Exit::Failed(error)) => return Err(error),
            }
        }
    }

    fn is_gone(&self) -> bool {
        self.turns.fresh_context().map_or(true, |it| self.watching.is_replaced(&it.plans))
    }

    fn leave(&mut self, why: &str) {
        self.subscribers.end(why);
        if let Ok(now) = self.turns.now() {
            self.runtime_files.remove(&now.plans);
        }
    }

    /// Waits for a message or deadline, and handles everything that is due.
    fn turn(&mut self) -> Step {
        self.close_idle_index();
        self.handle_messages()?;
        self.wait_for_cookie();
        self.subscribers.send_dirty_notices();
        self.poll_if_due()?;
        self.restore_runtime_files_if_due()?;
        // Indexing would recreate files in a directory that is being deleted.
        if self.runtime_files.restore_at.is_none() {
            self.index_if_due()?;
            self.answer()?;
            self.publish()?;
        }
        Ok(())
    }

    /// Closes the index while the daemon is idle, so that it does not keep a file open that the user has deleted.
    fn close_idle_index(&mut self) {
        if self.indexing.dirty.is_empty()
            && self.cookies.waiting.is_empty()
            && !self.publisher.has_unhandled_events()
        {
            self.indexing.index.close();
        }
    }

    fn next_deadline(&self) -> Option<Instant> {
        if self.runtime_files.restore_at.is_some() {
            return self.runtime_files.restore_at;
        }
        let all = [
            self.publisher.due(),
            self.cookies.deadline(),
            self.watching.next_poll(),
            self.indexing.dirty.due(),
            self.subscribers.notices.due(),
            self.runtime_files.deletion_due(),
        ];
        all.into_iter().flatten().min()
    }

    /// Handles all messages that have arrived, after waiting for the first one.
    fn handle_messages(&mut self) -> Step {
        let deadline = self.next_deadline();
        let mut message = self.turns.begin(deadline);
        while let Some(it) = message {
            match it {
                Message::Stop => return Err(End::Stopped.into()),
                Message::Request(request) => self.handle_request(request)?,
                Message::Changed(reply) => self.cookies.add(Requester::ClaimBatcher(reply)),
                Message::Elsewhere(events) => self.send_remote_events(&events)?,
                Message::Seen(batch) => {
                    let now = self.turns.now().map_err(|_| End::Gone)?;
                    for (event, write_kind, is_deletion) in self.watching.interpret(&now.plans, &batch) {
                        if is_deletion && matches!(event, WatchEvent::Plan(_) | WatchEvent::Everything) {
                            self.runtime_files.note_deletion();
                        }
                        self.handle_event(&now, event, write_kind)?;
                    }
                    self.watching.check_coverage(self.subscribers.observer);
                    self.subscribers.send_dirty_notices();
                }
            }
            message = self.turns.next_message();
        }
        Ok(())
    }

    /// Claims of other machines change no file here, but they change which steps are ready.
    fn send_remote_events(&mut self, events: &[Event]) -> Step {
        for event in events {
            self.subscribers.mark_dirty(Some(PlanId::new(&event.plan)));
            if self.subscribers.send(event).is_break() {
                return Err(End::BrokenOff.into());
            }
        }
        Ok(())
    }

    fn handle_event(&mut self, now: &Context, event: WatchEvent, write_kind: WriteKind) -> Step {
        match event {
            WatchEvent::Plan(name) => {
                let id = PlanId::new(name.clone());
                self.publisher.mark(id.clone());
                self.subscribers.mark_dirty(Some(id));
                self.indexing.mark(name, write_kind);
            }
            WatchEvent::Everything => self.mark_everything(),
            WatchEvent::Cookie(name) => self.cookies.note_arrival(&name),
            WatchEvent::RuntimeFiles => self.check_runtime_files(now),
            WatchEvent::Gone => return Err(End::Gone.into()),
        }
        Ok(())
    }

    fn mark_everything(&mut self) {
        self.subscribers.mark_dirty(None);
        self.indexing.mark_everything();
    }

    fn handle_request(&mut self, incoming: SocketRequest) -> Step {
        match incoming.request {
            Request::CacheNext(answer) => self.indexing.cache_next(answer),
            Request::Sync | Request::Next | Request::Around(_) => {
                self.cookies.add(Requester::Command(incoming));
            }
            // The socket listener passes claims to the batcher, if there is one.
            Request::Claim(_) => drop(incoming.reply.try_send(Answer::Claimed { handed: None })),
            Request::Status => drop(incoming.reply.try_send(Answer::Status(self.status()))),
            Request::Browser(ref opener) => {
                let code = self.codes.as_ref().and_then(|it| (it.0)(opener.clone()));
                drop(incoming.reply.try_send(Answer::Browser { code }));
            }
            Request::Events | Request::Changes => {
                if incoming.reply.try_send(Answer::Status(self.status())).is_ok() {
                    self.subscribers.followers.push(incoming);
                }
            }
            Request::Stop => {
                incoming.close(Answer::Status(self.status()));
                return Err(End::Requested.into());
            }
        }
        Ok(())
    }

    fn status(&self) -> Status {
        Status {
            plans: self.publisher.baseline.len(),
            steps: self.publisher.baseline.values().map(|it| it.steps.len()).sum(),
            polling: self.watching.polling_reason().map(str::to_owned),
            followers: self.subscribers.followers.len(),
            ..self.started.clone()
        }
    }

    /// Creates one cookie for all requests that arrived since the last cookie.
    fn wait_for_cookie(&mut self) {
        let requests = self.cookies.take_new();
        if requests.is_empty() {
            return;
        }
        let Ok(now) = self.turns.now() else { return refuse(requests) };
        if self.watching.have_mounts_changed(&now.plans) {
            self.mark_everything();
        }
        let can_know = now.reading == Reading::Index && self.watching.sees_every_change();
        if can_know && self.can_create_cookies(&now) {
            self.cookies.create(&now.plans, requests);
        } else {
            refuse(requests);
        }
    }

    fn can_create_cookies(&self, now: &Context) -> bool {
        self.runtime_files.are_held() && !self.watching.is_replaced(&now.plans)
    }

    /// Creates a cookie to test whether events arrive at all. If the event of the cookie is lost, the daemon polls.
    fn probe_events(&mut self, now: &Context) {
        if self.watching.is_watching() && self.can_create_cookies(now) {
            self.cookies.create(&now.plans, Vec::new());
        }
    }

    /// Begins a round of polling, in which everything is indexed.
    fn poll_if_due(&mut self) -> Step {
        if self.watching.next_poll().is_some_and(|it| it <= Instant::now()) {
            let now = self.turns.now().map_err(|_| End::Gone)?;
            self.indexing.mark_everything();
            if self.watching.begin_round(&now.plans) {
                self.probe_events(&now);
            }
        }
        Ok(())
    }

    /// Schedules a repair if the daemon's own files were deleted or the plans directory was replaced.
    fn check_runtime_files(&mut self, now: &Context) {
        if self.watching.is_replaced(&now.plans) || !self.runtime_files.are_whole(&now.plans) {
            self.indexing.index.forget();
            self.runtime_files.restore_soon();
        }
    }

    /// Recreates lock, socket and cookies if they were deleted. In this case, everything is dirty afterwards.
    fn restore_runtime_files_if_due(&mut self) -> Step {
        if self.runtime_files.restore_at.is_none_or(|it| it > Instant::now()) {
            return Ok(());
        }
        let now = self.turns.now()?;
        if self.watching.is_replaced(&now.plans) {
            return Err(End::Gone.into());
        }
        if self.runtime_files.restore(&now.plans, self.subscribers.observer)? {
            self.cookies.refuse_waiting();
            self.indexing.dirty.is_everything = true;
            self.watching.cover_runtime_files(&now.plans);
        }
        Ok(())
    }

    /// Indexes if an answer needs it, or if the changes are due. During a deletion of many files, due changes wait
    /// until the deletion counts as finished or a cookie has arrived.
    fn index_if_due(&mut self) -> Step {
        let is_due = self.indexing.dirty.due().is_some_and(|it| it <= Instant::now());
        let must_wait = self.runtime_files.is_deleting() && !self.cookies.have_arrived();
        if self.is_index_needed() || (is_due && !must_wait) {
            self.index()?;
        }
        Ok(())
    }

    fn is_index_needed(&self) -> bool {
        self.cookies.need_index(self.indexing.has_dependents())
    }

    /// Indexes what is dirty, and marks the plans that may have changes to publish.
    fn index(&mut self) -> Step {
        if self.indexing.dirty.is_empty() {
            return Ok(());
        }
        let now = self.turns.now()?;
        if self.runtime_files.are_held() && !self.runtime_files.are_whole(&now.plans) {
            self.check_runtime_files(&now);
            return Ok(());
        }
        let linked = self.watching.linked();
        if self.indexing.dirty.is_everything {
            let publisher = &self.publisher;
            let (seen, hard_linked) =
                self.indexing.refresh_all(&now, |it| (it.id.clone(), publisher.is_published(it)))?;
            self.publisher.mark_differing(seen);
            self.watch_hard_links(&now, &hard_linked);
        } else {
            let hard_linked = self.indexing.refresh_plans(&now, &linked);
            self.watch_hard_links(&now, &hard_linked);
        }
        linked.into_iter().for_each(|it| self.publisher.mark(PlanId::new(it)));
        Ok(())
    }

    /// Watches hard-linked files. Before a file was watched, it may have been saved through another name, so its plan is
    /// read again.
    fn watch_hard_links(&mut self, now: &Context, files: &[String]) {
        let plans = self.watching.watch_hard_links(&now.plans, files);
        if !plans.is_empty() {
            self.indexing.refresh_plans(now, &plans);
            plans.into_iter().for_each(|it| self.publisher.mark(PlanId::new(it)));
        }
    }

    /// Answers the requests whose cookies arrived.
    fn answer(&mut self) -> Step {
        if self.is_index_needed() && !self.indexing.index.is_current(&*self.turns.now()?) {
            // Another process has written to the index.
            self.indexing.dirty.is_everything = true;
            self.index()?;
        }
        let Finished { has_probe, requests, has_lost } = self.cookies.take_finished(Instant::now());
        if has_probe {
            self.watching.stop_polling(&self.turns.now()?.plans, self.subscribers.observer);
        }
        for request in requests {
            self.indexing.answer(&*self.turns.now()?, request);
        }
        if has_lost {
            self.watching.poll("the system does not report changes here", self.subscribers.observer);
        }
        Ok(())
    }

    /// Publishes the plans that have settled.
    fn publish(&mut self) -> Step {
        let due = self.publisher.take_due(Instant::now());
        if due.is_empty() {
            return Ok(());
        }
        let now = self.turns.now()?;
        let sees_every_change = self.watching.sees_every_change();
        let mut own = self.publisher.unpublished_writes(&now.plans);
        for (id, pending) in due {
            let plan = self.indexing.plan(&now, &id, sees_every_change)?.filter(|it| !it.is_archived);
            for event in self.publisher.events(&now, &mut own, (id, pending), plan.as_ref()) {
                if self.subscribers.send(&event).is_break() {
                    return Err(End::BrokenOff.into());
                }
            }
        }
        Ok(())
    }
}
