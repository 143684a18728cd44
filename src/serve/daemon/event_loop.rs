//! The event loop: one thread that indexes what events point to, publishes settled changes and answers requests.

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests;

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ops::ControlFlow;
use std::rc::Rc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use crate::api::context::Context;
use crate::api::error::Error;
use crate::disk::{Mounts, OwnLog, OwnWrite};
use crate::index::{Generation, Index};
use crate::plan::id::PlanId;
use crate::plan::time::Time;
use crate::serve::daemon::api::{End, Inbox, Message, Observer};
use crate::serve::daemon::baseline::BaselinePlan;
use crate::serve::daemon::claim_batcher::ClaimBatcher;
use crate::serve::daemon::feed::Feed;
use crate::serve::daemon::listener::SocketRequest;
use crate::serve::daemon::watcher::event::{WatchEvent, WriteKind};
use crate::serve::daemon::watcher::system::{Watcher, write_kind};
use crate::serve::ipc::protocol::{Answer, Request, Status};
use crate::serve::ipc::socket_path::SocketDirs;

use crate::serve::daemon::cookies::{ChangedPlans, PendingCookie, Requester};
use crate::serve::daemon::dependents::Dependents;
use crate::serve::daemon::dirty_notices::DirtyNotices;
use crate::serve::daemon::publish::PendingPlan;
use crate::serve::daemon::runtime_files::{Deleting, RuntimeFiles};

/// Indexing right after a planwatch command would slow down the command and the one that follows it, so the daemon
/// waits for a moment. A request does not wait for this. When claims follow each other, a plan is indexed once before
/// its changes are published, which is delayed as long.
const OWN_SETTLE: Duration = Duration::from_millis(20);
const LONGEST_OWN_SETTLE: Duration = Duration::from_millis(400);

/// The interval of polling, used where the system reports no events.
const POLL: Duration = Duration::from_secs(2);

/// In bytes; a longer answer of `next` is made anew each time.
const LONGEST_NEXT_ANSWER: usize = 256 << 10;

pub(crate) struct Daemon<'a> {
    context: &'a dyn Fn() -> Result<Context, Error>,
    /// The context of this turn, created on first use.
    turn_context: OnceCell<Rc<Context>>,
    pub(super) socket_dirs: &'a SocketDirs,
    pub(super) observer: &'a mut dyn Observer,
    pub(super) sender: Sender<Message>,
    receiver: Receiver<Message>,
    /// Receives changes in addition to the observer.
    pub(super) feed: Option<Feed>,
    /// The URL at which this process answers over HTTP.
    http: Option<String>,
    /// Whether another process that wants to watch may end this one's watching.
    gives_way: bool,
    pub(super) claim_batcher: Option<ClaimBatcher>,
    /// Lock and socket; `None` if planwatch may not keep files in `.planwatch`.
    pub(super) own: Option<RuntimeFiles>,
    /// `None` if the system has no events at all.
    pub(super) watcher: Option<Watcher>,
    pub(super) mounts: Mounts,
    /// Device and inode of the watched directory.
    pub(super) identity: Option<(u64, u64)>,
    since: Time,
    pub(super) baseline: BTreeMap<PlanId, BaselinePlan>,
    /// Writes of planwatch that are already published or older than this process. If the same content appears again,
    /// it is an outside edit.
    pub(super) attributed: HashSet<OwnWrite>,
    pub(super) own_log: OwnLog,
    /// `None` if unknown.
    pub(super) dependents: Option<Dependents>,
    /// The index of the last turn; open while something is dirty or pending.
    pub(super) index: Option<Index>,
    /// The commit of the index that holds everything that events reported so far.
    pub(super) verified: Option<Generation>,
    /// The last answer of `next`, as the command that computed it sent it; commands decide whether it is still valid.
    pub(super) next_answer: Option<String>,
    pub(super) dirty: Dirty,
    pub(super) pending: BTreeMap<PlanId, PendingPlan>,
    pub(super) dirty_notices: DirtyNotices,
    /// Requests that have no cookie yet.
    pub(super) new_requests: Vec<Requester>,
    pub(super) waiting: Vec<PendingCookie>,
    pub(super) n_cookies: u64,
    /// Since the claim batcher last incoming.
    pub(super) changed_plans: ChangedPlans,
    pub(super) followers: Vec<SocketRequest>,
    pub(super) polling: Option<Polling>,
    /// When to recreate deleted runtime files.
    pub(super) restore_at: Option<Instant>,
    pub(super) deleting: Option<Deleting>,
}

/// What has to be indexed again.
#[derive(Debug, Default)]
pub(super) struct Dirty {
    pub(super) plans: BTreeSet<String>,
    pub(super) is_everything: bool,
    /// The first and last write of planwatch, if all changes are its own.
    own: Option<(Instant, Instant)>,
}

impl Dirty {
    /// When to index; `None` if nothing is dirty.
    fn due(&self) -> Option<Instant> {
        match self.own {
            Some((first, last)) if !self.is_everything => {
                Some((last + OWN_SETTLE).min(first + LONGEST_OWN_SETTLE))
            }
            _ => (self.is_everything || !self.plans.is_empty()).then(Instant::now),
        }
    }

    fn add(&mut self, name: String, write_kind: WriteKind) {
        let now = Instant::now();
        let is_own = match write_kind {
            WriteKind::Exchanged => true,
            WriteKind::Closed => self.plans.contains(&name),
            WriteKind::Other => false,
        };
        self.own = match self.own {
            Some((first, _)) if is_own => Some((first, now)),
            None if is_own && self.plans.is_empty() => Some((now, now)),
            _ => None,
        };
        self.plans.insert(name);
    }
}

#[derive(Debug)]
pub(super) struct Polling {
    why: String,
    next: Instant,
}

/// Whether to continue, or why watching ends.
pub(super) type Flow = ControlFlow<End>;

impl<'a> Daemon<'a> {
    /// Takes the lock, watches, indexes and loads the baseline; `None` if another process has the lock.
    pub(crate) fn begin(
        context: &'a dyn Fn() -> Result<Context, Error>,
        socket_dirs: &'a SocketDirs,
        inbox: Inbox,
        observer: &'a mut dyn Observer,
    ) -> Result<Option<Self>, Error> {
        let now = context()?;
        let Ok(own) = RuntimeFiles::take(&now.plans)? else { return Ok(None) };
        let Inbox { sender, receiver, feed, http, gives_way, claim_batcher } = inbox;
        let mut own_log = OwnLog::default();
        own_log.read(&now.plans);
        let mut daemon = Self {
            context,
            turn_context: OnceCell::new(),
            socket_dirs,
            observer,
            sender,
            receiver,
            feed,
            http,
            gives_way,
            claim_batcher,
            own,
            watcher: None,
            mounts: Mounts::default(),
            identity: now.plans.identity(),
            since: now.now,
            baseline: BTreeMap::new(),
            attributed: own_log.writes().iter().cloned().collect(),
            own_log,
            dependents: None,
            index: None,
            verified: None,
            next_answer: None,
            dirty: Dirty::default(),
            pending: BTreeMap::new(),
            dirty_notices: DirtyNotices::default(),
            new_requests: Vec::new(),
            waiting: Vec::new(),
            n_cookies: 0,
            changed_plans: ChangedPlans::default(),
            followers: Vec::new(),
            polling: None,
            restore_at: None,
            deleting: None,
        };
        // The watches are set before the first scan, so that no change falls between them.
        daemon.open_watcher(&now);
        daemon.load_baseline(&now)?;
        daemon.open_socket(&now);
        Ok(Some(daemon))
    }

    /// Creates a context that never creates `.planwatch`.
    pub(super) fn fresh_context(&self) -> Result<Context, Error> {
        let context = (self.context)()?;
        Ok(Context { plans: context.plans.only_looking(), ..context })
    }

    /// The context of this turn.
    pub(super) fn now(&self) -> Result<Rc<Context>, Error> {
        if let Some(context) = self.turn_context.get() {
            return Ok(Rc::clone(context));
        }
        let context = Rc::new(self.fresh_context()?);
        Ok(Rc::clone(self.turn_context.get_or_init(|| context)))
    }

    fn is_gone(&self) -> bool {
        self.fresh_context().map_or(true, |it| it.plans.identity() != self.identity)
    }

    fn open_watcher(&mut self, now: &Context) {
        let publish = {
            let sender = self.sender.clone();
            move |batch| sender.send(Message::Seen(batch)).is_ok()
        };
        match Watcher::open(now.plans.root(), publish) {
            Err(error) => self.poll(&format!("the system gives no events: {error}")),
            Ok(mut watcher) => {
                watcher.cover(&now.plans);
                self.watcher = Some(watcher);
            }
        }
        self.check_mounts(now);
        let file_system = now.plans.file_system();
        if file_system.is_remote {
            self.poll(&format!("others can write to {} without an event here", file_system.name));
        }
        self.check_coverage();
        self.probe_events(now);
    }

    /// Runs until watching ends, then releases lock and socket.
    pub(crate) fn run(mut self) -> Result<End, Error> {
        let status = self.status();
        if self.observer.ready(&status).is_break() {
            self.leave("its output is closed");
            return Ok(End::BrokenOff);
        }
        loop {
            match self.turn() {
                Ok(ControlFlow::Continue(())) => {}
                Ok(ControlFlow::Break(end)) => {
                    self.leave(end.why());
                    return Ok(end);
                }
                // An error because the directory just disappeared is a normal end.
                Err(_) if self.is_gone() => {
                    self.leave(End::Gone.why());
                    return Ok(End::Gone);
                }
                Err(error) => {
                    self.leave(&error.to_string());
                    return Err(error);
                }
            }
        }
    }

    /// Waits for a message or deadline, and handles everything that is due.
    fn turn(&mut self) -> Result<Flow, Error> {
        // The index is closed while idle, because a user may delete its file.
        let has_news = self.pending.values().any(PendingPlan::has_news);
        if self.dirty.due().is_none() && self.waiting.is_empty() && !has_news {
            self.index = None;
        }
        let first = match self.next_deadline() {
            None => self.receiver.recv().map_err(|_| RecvTimeoutError::Disconnected),
            Some(at) => self.receiver.recv_timeout(at.saturating_duration_since(Instant::now())),
        };
        self.turn_context.take();
        let mut end = self.take_all(first.ok());
        self.wait_for_cookie();
        self.send_dirty_notices();
        if end.is_continue() && self.polling.as_ref().is_some_and(|it| it.next <= Instant::now()) {
            end = self.poll_everything();
        }
        if end.is_continue() && self.restore_at.is_some_and(|it| it <= Instant::now()) {
            let now = self.now()?;
            end = self.restore_runtime_files(&now);
        }
        // Indexing would recreate files in a directory that is being deleted.
        if end.is_break() || self.restore_at.is_some() {
            return Ok(end);
        }
        let is_due = self.dirty.due().is_some_and(|it| it <= Instant::now());
        if self.is_index_needed() || (is_due && !self.is_deleting()) {
            self.index()?;
        }
        self.answer()?;
        self.publish()
    }

    fn next_deadline(&self) -> Option<Instant> {
        if self.restore_at.is_some() {
            return self.restore_at;
        }
        let pending = self.pending.values().filter_map(PendingPlan::due);
        let waiting = self.waiting.iter().map(|it| it.deadline);
        pending
            .chain(waiting)
            .chain(self.polling.as_ref().map(|it| it.next))
            .chain(self.dirty.due())
            .chain(self.dirty_notices.due())
            .chain(self.deleting.as_ref().map(Deleting::due))
            .min()
    }

    fn take_all(&mut self, first: Option<Message>) -> Flow {
        let mut next = first;
        while let Some(message) = next {
            self.take(message)?;
            next = self.receiver.try_recv().ok();
        }
        Flow::Continue(())
    }

    fn take(&mut self, message: Message) -> Flow {
        match message {
            Message::Stop => Flow::Break(End::Stopped),
            Message::Request(incoming) => self.handle_request(incoming),
            Message::Since(reply) => {
                self.new_requests.push(Requester::ClaimBatcher(reply));
                Flow::Continue(())
            }
            Message::Seen(batch) => {
                let Ok(now) = self.now() else { return Flow::Break(End::Gone) };
                for (at, raw) in batch.iter().enumerate() {
                    let event = self.watcher.as_mut().and_then(|it| it.interpret(&now.plans, raw));
                    if raw.is_deletion()
                        && matches!(event, Some(WatchEvent::Plan(_) | WatchEvent::Everything))
                    {
                        self.note_deletion();
                    }
                    let write_kind = write_kind(&batch, at);
                    event.map_or(Flow::Continue(()), |it| self.handle_event(&now, it, write_kind))?;
                }
                self.check_coverage();
                self.send_dirty_notices();
                Flow::Continue(())
            }
        }
    }

    fn handle_event(&mut self, now: &Context, event: WatchEvent, write_kind: WriteKind) -> Flow {
        match event {
            WatchEvent::Plan(name) => {
                self.changed_plans.add(&name);
                if let Some(dependents) = &mut self.dependents {
                    dependents.mark_stale(std::slice::from_ref(&name));
                }
                self.mark_pending(PlanId::new(name.clone()));
                self.notify_dirty(Some(PlanId::new(name.clone())));
                self.dirty.add(name, write_kind);
            }
            WatchEvent::Everything => {
                self.changed_plans.add_all();
                self.notify_dirty(None);
                self.dirty.is_everything = true;
            }
            WatchEvent::Cookie(name) => self.cookie_arrived(&name),
            WatchEvent::RuntimeFiles => self.restore_soon(now),
            WatchEvent::Gone => return Flow::Break(End::Gone),
        }
        Flow::Continue(())
    }

    fn handle_request(&mut self, incoming: SocketRequest) -> Flow {
        match incoming.ask {
            Request::CacheNext(answer) => {
                self.next_answer = Some(answer).filter(|it| it.len() <= LONGEST_NEXT_ANSWER);
            }
            Request::Sync | Request::Next | Request::Around(_) => {
                self.new_requests.push(Requester::Command(incoming))
            }
            // The socket listener passes claims to the batcher, if there is one.
            Request::Claim(_) => drop(incoming.reply.try_send(Answer::Claimed { handed: None })),
            Request::Status => drop(incoming.reply.try_send(Answer::Status(self.status()))),
            Request::Events | Request::Changes => {
                if incoming.reply.try_send(Answer::Status(self.status())).is_ok() {
                    self.followers.push(incoming);
                }
            }
            Request::Stop => {
                incoming.close(Some(Answer::Status(self.status())));
                return Flow::Break(End::Requested);
            }
        }
        Flow::Continue(())
    }

    /// Starts polling, and reports it once.
    pub(super) fn poll(&mut self, why: &str) {
        if self.polling.is_none() {
            self.observer.polling(Some(why));
            self.polling = Some(Polling { why: why.to_owned(), next: Instant::now() + POLL });
        }
    }

    /// Checks for file systems mounted below the plans; no event reports them.
    pub(super) fn check_mounts(&mut self, now: &Context) {
        if !self.mounts.look(now.plans.root()) {
            return;
        }
        if let Some(watcher) = &mut self.watcher {
            watcher.cover(&now.plans);
            self.mounts.below().iter().for_each(|it| watcher.watch_file(it));
        }
        self.changed_plans.add_all();
        self.notify_dirty(None);
        self.dirty.is_everything = true;
    }

    fn check_coverage(&mut self) {
        let coverage_gap = self.watcher.as_ref().and_then(|it| it.coverage_gap().map(ToOwned::to_owned));
        if let Some(why) = coverage_gap {
            self.poll(&why);
        }
    }

    /// One round of polling: marks everything dirty, and tests whether events work again.
    fn poll_everything(&mut self) -> Flow {
        let Ok(now) = self.now() else { return Flow::Break(End::Gone) };
        self.dirty.is_everything = true;
        if let Some(polling) = &mut self.polling {
            polling.next = Instant::now() + POLL;
        }
        if let Some(watcher) = &mut self.watcher {
            watcher.cover(&now.plans);
            if watcher.coverage_gap().is_none() && !now.plans.file_system().is_remote {
                self.probe_events(&now);
            }
        }
        Flow::Continue(())
    }

    fn status(&self) -> Status {
        Status {
            pid: std::process::id(),
            release: env!("CARGO_PKG_VERSION").to_owned(),
            since: self.since.to_string(),
            plans: self.baseline.len(),
            steps: self.baseline.values().map(|it| it.steps.len()).sum(),
            polling: self.polling.as_ref().map(|it| it.why.clone()),
            followers: self.followers.len(),
            http: self.http.clone(),
            gives_way: self.gives_way,
        }
    }

    fn leave(&mut self, why: &str) {
        self.observer.ending();
        for follower in self.followers.drain(..) {
            follower.close(Some(Answer::End { why: why.to_owned() }));
        }
        if let (Some(own), Ok(now)) = (self.own.take(), self.now()) {
            own.leave(&now.plans);
        }
    }
}
