//! The one thread that decides: what events point to is indexed at once, told when it has settled, and asked about.

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
use crate::serve::daemon::api::{End, Inbox, Listener, Message};
use crate::serve::daemon::baseline::KnownPlan;
use crate::serve::daemon::claim_batcher::Clerk;
use crate::serve::daemon::feed::Feed;
use crate::serve::daemon::listener::Asked;
use crate::serve::daemon::watcher::event::{Look, Sign};
use crate::serve::daemon::watcher::system::{Eyes, sign};
use crate::serve::ipc::protocol::{Answer, Ask, Status};
use crate::serve::ipc::socket_path::Homes;

use crate::serve::daemon::cookies::{Asker, Happened, Waiting};
use crate::serve::daemon::dependents::Around;
use crate::serve::daemon::dirty_notices::Hints;
use crate::serve::daemon::publish::Untold;
use crate::serve::daemon::runtime_files::{Deleting, Own};

/// A command of planwatch that has just written goes on to its answer, and the next one may follow: indexing beside them
/// would only hold them up. Who asks is not kept waiting by this. Where claims follow each other a plan is indexed once
/// before it is told of, which waits as long.
const OWN_SETTLE: Duration = Duration::from_millis(20);
const LONGEST_OWN_SETTLE: Duration = Duration::from_millis(400);

/// How often is looked where the system tells nothing of changes.
const POLL: Duration = Duration::from_secs(2);

/// In bytes; a longer answer of `next` is made anew each time.
const LONGEST_NEXT_ANSWER: usize = 256 << 10;

pub(crate) struct Daemon<'a> {
    context: &'a dyn Fn() -> Result<Context, Error>,
    /// The surroundings of this turn, once they were asked for.
    surroundings: OnceCell<Rc<Context>>,
    pub(super) homes: &'a Homes,
    pub(super) listener: &'a mut dyn Listener,
    pub(super) sender: Sender<Message>,
    receiver: Receiver<Message>,
    /// Where changes are told beside the listener.
    pub(super) feed: Option<Feed>,
    /// Where this process answers over HTTP.
    http: Option<String>,
    /// Another process that is to watch may end this watching.
    gives_way: bool,
    pub(super) clerk: Option<Clerk>,
    /// Lock and socket; none where nothing may be kept in `.planwatch`.
    pub(super) own: Option<Own>,
    /// None where the system has no events at all.
    pub(super) eyes: Option<Eyes>,
    pub(super) mounts: Mounts,
    /// Which directory is watched: device and inode.
    pub(super) identity: Option<(u64, u64)>,
    since: Time,
    pub(super) known: BTreeMap<PlanId, KnownPlan>,
    /// Writes of planwatch that were told, or came before: the same text again is somebody else's doing.
    pub(super) credited: HashSet<OwnWrite>,
    pub(super) own_log: OwnLog,
    /// None where it could not be learnt.
    pub(super) around: Option<Around>,
    /// The index of the last look, open until there is nothing left to look at and to tell.
    pub(super) index: Option<Index>,
    /// The commit of the index that holds everything that events told of so far.
    pub(super) sure: Option<Generation>,
    /// The last answer of `next`, as a command that made it wrote it; commands decide whether it still holds.
    pub(super) next_answer: Option<String>,
    pub(super) dirty: Dirty,
    pub(super) untold: BTreeMap<PlanId, Untold>,
    pub(super) hints: Hints,
    /// Who has just asked, and has no cookie yet.
    pub(super) asking: Vec<Asker>,
    pub(super) waiting: Vec<Waiting>,
    pub(super) n_cookies: u64,
    /// Since the clerk was told last.
    pub(super) happened: Happened,
    pub(super) followers: Vec<Asked>,
    pub(super) polling: Option<Polling>,
    /// When to make again what somebody deleted.
    pub(super) mending: Option<Instant>,
    pub(super) deleting: Option<Deleting>,
}

/// What has to be looked at again.
#[derive(Debug, Default)]
pub(super) struct Dirty {
    pub(super) plans: BTreeSet<String>,
    pub(super) is_everything: bool,
    /// When planwatch itself wrote, first and last, if nobody else did.
    own: Option<(Instant, Instant)>,
}

impl Dirty {
    /// When it is to be looked at; none if nothing is dirty.
    fn due(&self) -> Option<Instant> {
        match self.own {
            Some((first, last)) if !self.is_everything => {
                Some((last + OWN_SETTLE).min(first + LONGEST_OWN_SETTLE))
            }
            _ => (self.is_everything || !self.plans.is_empty()).then(Instant::now),
        }
    }

    fn add(&mut self, name: String, sign: Sign) {
        let now = Instant::now();
        let is_own = match sign {
            Sign::Exchanged => true,
            Sign::Closed => self.plans.contains(&name),
            Sign::Other => false,
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

/// Whether to go on, or how it ends.
pub(super) type Flow = ControlFlow<End>;

impl<'a> Daemon<'a> {
    /// Takes the lock, watches, indexes and remembers; none if another process has the lock.
    pub(crate) fn begin(
        context: &'a dyn Fn() -> Result<Context, Error>,
        homes: &'a Homes,
        inbox: Inbox,
        listener: &'a mut dyn Listener,
    ) -> Result<Option<Self>, Error> {
        let now = context()?;
        let Ok(own) = Own::take(&now.plans)? else { return Ok(None) };
        let Inbox { sender, receiver, feed, http, gives_way, clerk } = inbox;
        let mut own_log = OwnLog::default();
        own_log.read(&now.plans);
        let mut daemon = Self {
            context,
            surroundings: OnceCell::new(),
            homes,
            listener,
            sender,
            receiver,
            feed,
            http,
            gives_way,
            clerk,
            own,
            eyes: None,
            mounts: Mounts::default(),
            identity: now.plans.identity(),
            since: now.now,
            known: BTreeMap::new(),
            credited: own_log.writes().iter().cloned().collect(),
            own_log,
            around: None,
            index: None,
            sure: None,
            next_answer: None,
            dirty: Dirty::default(),
            untold: BTreeMap::new(),
            hints: Hints::default(),
            asking: Vec::new(),
            waiting: Vec::new(),
            n_cookies: 0,
            happened: Happened::default(),
            followers: Vec::new(),
            polling: None,
            mending: None,
            deleting: None,
        };
        // The watches are on before the first look, so that nothing falls between them.
        daemon.open_eyes(&now);
        daemon.learn(&now)?;
        daemon.open_door(&now);
        Ok(Some(daemon))
    }

    /// The surroundings of one look, in which nothing makes `.planwatch`.
    pub(super) fn look_around(&self) -> Result<Context, Error> {
        let context = (self.context)()?;
        Ok(Context { plans: context.plans.only_looking(), ..context })
    }

    /// The surroundings of this turn.
    pub(super) fn now(&self) -> Result<Rc<Context>, Error> {
        if let Some(context) = self.surroundings.get() {
            return Ok(Rc::clone(context));
        }
        let context = Rc::new(self.look_around()?);
        Ok(Rc::clone(self.surroundings.get_or_init(|| context)))
    }

    fn is_gone(&self) -> bool {
        self.look_around().map_or(true, |it| it.plans.identity() != self.identity)
    }

    fn open_eyes(&mut self, now: &Context) {
        let tell = {
            let sender = self.sender.clone();
            move |batch| sender.send(Message::Seen(batch)).is_ok()
        };
        match Eyes::open(now.plans.root(), tell) {
            Err(error) => self.poll(&format!("the system gives no events: {error}")),
            Ok(mut eyes) => {
                eyes.cover(&now.plans);
                self.eyes = Some(eyes);
            }
        }
        self.look_at_mounts(now);
        let file_system = now.plans.file_system();
        if file_system.is_remote {
            self.poll(&format!("others can write to {} without an event here", file_system.name));
        }
        self.look_for_blindness();
        self.try_events(now);
    }

    /// Runs until somebody ends it, and takes leave.
    pub(crate) fn run(mut self) -> Result<End, Error> {
        let status = self.status();
        if self.listener.ready(&status).is_break() {
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
                // What fails because the directory goes away this moment is the end, not a failure.
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

    /// Waits for something to happen, and does all that it asks for.
    fn turn(&mut self) -> Result<Flow, Error> {
        // Somebody may delete the index, and at rest nothing is kept open.
        let has_news = self.untold.values().any(Untold::has_news);
        if self.dirty.due().is_none() && self.waiting.is_empty() && !has_news {
            self.index = None;
        }
        let first = match self.next_deadline() {
            None => self.receiver.recv().map_err(|_| RecvTimeoutError::Disconnected),
            Some(at) => self.receiver.recv_timeout(at.saturating_duration_since(Instant::now())),
        };
        self.surroundings.take();
        let mut end = self.take_all(first.ok());
        self.wait_for_cookie();
        self.tell_hints();
        if end.is_continue() && self.polling.as_ref().is_some_and(|it| it.next <= Instant::now()) {
            end = self.look_at_everything();
        }
        if end.is_continue() && self.mending.is_some_and(|it| it <= Instant::now()) {
            let now = self.now()?;
            end = self.mend_own(&now);
        }
        // Indexing would make what somebody is just deleting.
        if end.is_break() || self.mending.is_some() {
            return Ok(end);
        }
        let is_due = self.dirty.due().is_some_and(|it| it <= Instant::now());
        if self.is_index_asked() || (is_due && !self.is_deleting()) {
            self.index()?;
        }
        self.answer()?;
        self.tell()
    }

    fn next_deadline(&self) -> Option<Instant> {
        if self.mending.is_some() {
            return self.mending;
        }
        let untold = self.untold.values().filter_map(Untold::due);
        let waiting = self.waiting.iter().map(|it| it.deadline);
        untold
            .chain(waiting)
            .chain(self.polling.as_ref().map(|it| it.next))
            .chain(self.dirty.due())
            .chain(self.hints.due())
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
            Message::Asked(asked) => self.asked(asked),
            Message::Since(reply) => {
                self.asking.push(Asker::Clerk(reply));
                Flow::Continue(())
            }
            Message::Seen(batch) => {
                let Ok(now) = self.now() else { return Flow::Break(End::Gone) };
                for (at, raw) in batch.iter().enumerate() {
                    let look = self.eyes.as_mut().and_then(|it| it.see(&now.plans, raw));
                    if raw.is_deletion() && matches!(look, Some(Look::Plan(_) | Look::Everything)) {
                        self.saw_deletion();
                    }
                    let sign = sign(&batch, at);
                    look.map_or(Flow::Continue(()), |it| self.look(&now, it, sign))?;
                }
                self.look_for_blindness();
                self.tell_hints();
                Flow::Continue(())
            }
        }
    }

    fn look(&mut self, now: &Context, look: Look, sign: Sign) -> Flow {
        match look {
            Look::Plan(name) => {
                self.happened.add(&name);
                if let Some(around) = &mut self.around {
                    around.fall_behind(std::slice::from_ref(&name));
                }
                self.note(PlanId::new(name.clone()));
                self.hint(Some(PlanId::new(name.clone())));
                self.dirty.add(name, sign);
            }
            Look::Everything => {
                self.happened.add_all();
                self.hint(None);
                self.dirty.is_everything = true;
            }
            Look::Cookie(name) => self.cookie_came(&name),
            Look::Own => self.mend_soon(now),
            Look::Gone => return Flow::Break(End::Gone),
        }
        Flow::Continue(())
    }

    fn asked(&mut self, asked: Asked) -> Flow {
        match asked.ask {
            Ask::CacheNext(answer) => {
                self.next_answer = Some(answer).filter(|it| it.len() <= LONGEST_NEXT_ANSWER);
            }
            Ask::Sync | Ask::Next | Ask::Around(_) => self.asking.push(Asker::Command(asked)),
            // The door knows the clerk, if there is one.
            Ask::Claim(_) => drop(asked.reply.try_send(Answer::Claimed { handed: None })),
            Ask::Status => drop(asked.reply.try_send(Answer::Status(self.status()))),
            Ask::Events | Ask::Changes => {
                if asked.reply.try_send(Answer::Status(self.status())).is_ok() {
                    self.followers.push(asked);
                }
            }
            Ask::Stop => {
                asked.close(Some(Answer::Status(self.status())));
                return Flow::Break(End::Asked);
            }
        }
        Flow::Continue(())
    }

    /// Looks every two seconds from here on, and says so once.
    pub(super) fn poll(&mut self, why: &str) {
        if self.polling.is_none() {
            self.listener.polling(Some(why));
            self.polling = Some(Polling { why: why.to_owned(), next: Instant::now() + POLL });
        }
    }

    /// Looks whether something was mounted below the plans, of which no event tells.
    pub(super) fn look_at_mounts(&mut self, now: &Context) {
        if !self.mounts.look(now.plans.root()) {
            return;
        }
        if let Some(eyes) = &mut self.eyes {
            eyes.cover(&now.plans);
            self.mounts.below().iter().for_each(|it| eyes.watch_file(it));
        }
        self.happened.add_all();
        self.hint(None);
        self.dirty.is_everything = true;
    }

    fn look_for_blindness(&mut self) {
        let blind = self.eyes.as_ref().and_then(|it| it.blind().map(ToOwned::to_owned));
        if let Some(why) = blind {
            self.poll(&why);
        }
    }

    /// The turn of polling: everything is dirty, and perhaps the system sees again.
    fn look_at_everything(&mut self) -> Flow {
        let Ok(now) = self.now() else { return Flow::Break(End::Gone) };
        self.dirty.is_everything = true;
        if let Some(polling) = &mut self.polling {
            polling.next = Instant::now() + POLL;
        }
        if let Some(eyes) = &mut self.eyes {
            eyes.cover(&now.plans);
            if eyes.blind().is_none() && !now.plans.file_system().is_remote {
                self.try_events(&now);
            }
        }
        Flow::Continue(())
    }

    fn status(&self) -> Status {
        Status {
            pid: std::process::id(),
            release: env!("CARGO_PKG_VERSION").to_owned(),
            since: self.since.to_string(),
            plans: self.known.len(),
            steps: self.known.values().map(|it| it.steps.len()).sum(),
            polling: self.polling.as_ref().map(|it| it.why.clone()),
            followers: self.followers.len(),
            http: self.http.clone(),
            gives_way: self.gives_way,
        }
    }

    fn leave(&mut self, why: &str) {
        self.listener.ending();
        for follower in self.followers.drain(..) {
            follower.close(Some(Answer::End { why: why.to_owned() }));
        }
        if let (Some(own), Ok(now)) = (self.own.take(), self.now()) {
            own.leave(&now.plans);
        }
    }
}
