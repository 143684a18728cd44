//! Tells every change of a plans directory as it happens, and keeps the index current; writes no plan file.
//!
//! Events of the file system are hints: where they point is read again, and what differs from what was known is told.
//! So an event may be lost or doubled, a change may not. No thread wakes while nothing happens.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::mpsc::{self, Receiver, Sender, SyncSender};

use crate::api::context::Context;
use crate::api::error::Error;
use crate::serve::daemon::claim_batcher::Clerk;
use crate::serve::daemon::context_factory::{self, Contexts};
use crate::serve::daemon::event_loop::Daemon;
use crate::serve::daemon::feed::Feed;
use crate::serve::daemon::listener::Asked;
use crate::serve::daemon::watcher::system::Raw;
use crate::serve::ipc::event::Event;
use crate::serve::ipc::protocol::Status;
use crate::serve::ipc::socket_path::{Homes, Untrusted};

/// Who is told, and when to stop.
pub trait Listener {
    /// Called once, when every later change is going to be seen.
    fn ready(&mut self, status: &Status) -> ControlFlow<()>;
    fn event(&mut self, event: &Event) -> ControlFlow<()>;
    /// From here on everything is looked at every two seconds, or with none not any more.
    fn polling(&mut self, why: Option<&str>);
    /// Called where commands cannot ask this process, because the place for its socket is not used.
    fn without_socket(&mut self, _why: &Untrusted) {}
    /// Called while nobody else can take over yet.
    fn ending(&mut self) {}
    /// Somebody deleted what the process keeps in `.planwatch`, and it is there again.
    fn mended(&mut self) {}
}

/// How watching ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// The listener broke off.
    BrokenOff,
    /// Somebody asked for it through the socket.
    Asked,
    /// [`Stopper::stop`] was called.
    Stopped,
    /// Another process watches this directory already, or took over after `.planwatch` was deleted.
    Another,
    /// The plans directory is gone or elsewhere.
    Gone,
}

impl End {
    /// Says it as a part of a sentence.
    pub fn why(&self) -> &'static str {
        match self {
            Self::BrokenOff => "its output is closed",
            Self::Asked => "it was stopped",
            Self::Stopped => "it was stopped by a signal",
            Self::Another => "another process took over",
            Self::Gone => "the plans directory was deleted",
        }
    }
}

/// What reaches the one thread that decides.
pub(crate) enum Message {
    Seen(Vec<Raw>),
    Asked(Asked),
    /// In which plans anything has happened since this was asked last; none if that is not known.
    Since(SyncSender<Option<BTreeSet<String>>>),
    Stop,
}

/// Where that thread listens; made before watching begins, so that it can be stopped from the start.
#[derive(Debug)]
pub struct Inbox {
    pub(crate) sender: Sender<Message>,
    pub(crate) receiver: Receiver<Message>,
    /// Where changes are told beside the listener.
    pub(crate) feed: Option<Feed>,
    /// Where the same process answers over HTTP, as a URL.
    pub(crate) http: Option<String>,
    /// Whether this process watches only beside something else.
    pub(crate) gives_way: bool,
    /// Who claims for whoever asks this process.
    pub(crate) clerk: Option<Clerk>,
}

/// Ends the watching, from any thread.
#[derive(Debug, Clone)]
pub struct Stopper(Sender<Message>);

impl Stopper {
    /// Returns whether anybody listened; if not, it has ended already.
    pub fn stop(&self) -> bool {
        self.0.send(Message::Stop).is_ok()
    }
}

impl Default for Inbox {
    fn default() -> Self {
        let (sender, receiver) = mpsc::channel();
        Self { sender, receiver, feed: None, http: None, gives_way: false, clerk: None }
    }
}

impl Inbox {
    /// Also tells a feed.
    #[must_use]
    pub fn with_feed(self, feed: Feed) -> Self {
        Self { feed: Some(feed), ..self }
    }

    /// Says where the same process answers over HTTP, for whoever asks how it is.
    #[must_use]
    pub fn with_http(self, url: String) -> Self {
        Self { http: Some(url), ..self }
    }

    /// Says that the process does something else, and goes on with that when another one is to watch.
    #[must_use]
    pub fn giving_way(self) -> Self {
        Self { gives_way: true, ..self }
    }

    /// Also claims for whoever asks; `contexts` makes the surroundings of that.
    #[must_use]
    pub fn claiming(self, contexts: Contexts) -> Self {
        let clerk = Clerk::begin(context_factory::within(contexts, &self), self.sender.clone());
        Self { clerk, ..self }
    }

    pub fn stopper(&self) -> Stopper {
        Stopper(self.sender.clone())
    }
}

/// Watches until somebody ends it. `context` is asked for each look, because time passes and the configuration may change.
///
/// One process watches a plans directory; any other one learns at once that it is not needed.
pub fn watch(
    context: &dyn Fn() -> Result<Context, Error>,
    homes: &Homes,
    inbox: Inbox,
    listener: &mut dyn Listener,
) -> Result<End, Error> {
    match Daemon::begin(context, homes, inbox, listener)? {
        Some(daemon) => daemon.run(),
        None => Ok(End::Another),
    }
}
