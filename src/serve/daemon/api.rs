//! The interface of the daemon for the process that runs it: what the process passes in, and what the daemon reports.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};

use crate::api::error::Error;
use crate::plan::id::PlanId;
use crate::serve::daemon::claim_batcher::ClaimBatcher;
use crate::serve::daemon::context_factory::{self, ContextFactory};
use crate::serve::daemon::feed::Feed;
use crate::serve::daemon::messages::Message;
use crate::serve::daemon::remote_claims::RemoteShare;
use crate::serve::ipc::event::Event;
use crate::serve::ipc::protocol::{Opener, Status};
use crate::serve::ipc::socket_path::Untrusted;

/// Receives events, and decides when to stop.
pub trait Observer {
    /// Called once, after watching has begun. From then on every change is seen.
    fn ready(&mut self, status: &Status) -> ControlFlow<()>;
    fn event(&mut self, event: &Event) -> ControlFlow<()>;
    /// Called soon after files of a plan, or claims of other machines on its steps, have changed. `None` means that any plan
    /// may have changed. The change has perhaps not settled yet, and does not always cause an event.
    fn changed(&mut self, _plan: Option<&PlanId>) {}
    /// Called when polling begins (with the reason) and when it ends (`None`).
    fn polling(&mut self, why: Option<&str>);
    /// Called if commands cannot reach this process because its socket directory is not trusted.
    fn without_socket(&mut self, _why: &Untrusted) {}
    /// Called at the end. If this process still has the lock, no other process can take over before this call returns.
    fn ending(&mut self) {}
    /// Called after the daemon has found its lock or its socket deleted and has tried to recreate both.
    fn mended(&mut self) {}
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// The observer returned `Break`.
    BrokenOff,
    /// A client requested it through the socket.
    Requested,
    /// [`Stopper::stop`] was called.
    Stopped,
    /// Another process watches this directory already, or took over after `.planwatch` was deleted.
    Another,
    /// The plans directory is gone or was replaced.
    Gone,
}

impl End {
    /// Returns the reason as part of a sentence.
    pub fn why(&self) -> &'static str {
        match self {
            Self::BrokenOff => "its output is closed",
            Self::Requested => "it was stopped",
            Self::Stopped => "it was stopped by a signal",
            Self::Another => "another process took over",
            Self::Gone => "the plans directory was deleted or moved",
        }
    }
}

#[derive(Debug)]
pub(crate) enum Exit {
    End(End),
    Failed(Error),
}

impl From<End> for Exit {
    fn from(end: End) -> Self {
        Self::End(end)
    }
}

impl From<Error> for Exit {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

/// Makes a one-time code with which a browser can open the pages that this process serves.
#[derive(Clone)]
pub struct Codes(pub Arc<dyn Fn(Opener) -> Option<String> + Send + Sync>);

impl std::fmt::Debug for Codes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Codes(…)")
    }
}

/// The queue of the event loop. It exists before watching begins, so that [`Stopper`] works from the start.
#[derive(Debug)]
pub struct Inbox {
    pub(crate) sender: Sender<Message>,
    pub(crate) receiver: Receiver<Message>,
    /// Receives changes, as the observer does.
    pub(crate) feed: Option<Feed>,
    /// The URL at which this process answers over HTTP.
    pub(crate) http: Option<String>,
    /// Whether HTTP requests need no token.
    pub(crate) without_token: bool,
    /// Makes the one-time codes; `None` if this process serves no pages.
    pub(crate) codes: Option<Codes>,
    /// Whether this process stops watching when another process wants to watch.
    pub(crate) gives_way: bool,
    /// Makes claims for clients.
    pub(crate) claim_batcher: Option<ClaimBatcher>,
    /// Lists and renews the claims at the registry.
    pub(crate) remote: Option<RemoteShare>,
}

/// Stops watching, from any thread.
#[derive(Debug, Clone)]
pub struct Stopper(Sender<Message>);

impl Stopper {
    /// Returns false if watching has ended already.
    pub fn stop(&self) -> bool {
        self.0.send(Message::Stop).is_ok()
    }
}

impl Default for Inbox {
    fn default() -> Self {
        let (sender, receiver) = mpsc::channel();
        Self {
            sender,
            receiver,
            feed: None,
            http: None,
            without_token: false,
            codes: None,
            gives_way: false,
            claim_batcher: None,
            remote: None,
        }
    }
}

impl Inbox {
    /// Also publishes changes to a feed.
    #[must_use]
    pub fn with_feed(self, feed: Feed) -> Self {
        Self { feed: Some(feed), ..self }
    }

    /// Sets the HTTP URL that the status reports, and whether requests need no token.
    #[must_use]
    pub fn with_http(self, url: String, without_token: bool) -> Self {
        Self { http: Some(url), without_token, ..self }
    }

    /// Sets the function that makes one-time codes for the pages.
    #[must_use]
    pub fn with_codes(self, codes: Codes) -> Self {
        Self { codes: Some(codes), ..self }
    }

    /// Makes this process give way: when another process wants to watch, it stops watching but continues to run.
    #[must_use]
    pub fn giving_way(self) -> Self {
        Self { gives_way: true, ..self }
    }

    /// Also makes claims for clients, and lists and renews the claims at the registry. `contexts` creates the context of
    /// each batch.
    #[must_use]
    pub fn claiming(self, contexts: ContextFactory) -> Self {
        let remote = Some(RemoteShare::new(Arc::clone(&contexts)));
        let contexts = self.contexts(contexts);
        let claim_batcher = ClaimBatcher::begin(move || contexts(), self.sender.clone());
        Self { claim_batcher, remote, ..self }
    }

    /// Makes contexts for requests that this process answers itself. Such a context asks the event loop for the state of the
    /// index, and the claim batcher for claims. It does so directly, without a socket.
    pub fn contexts(&self, contexts: ContextFactory) -> ContextFactory {
        context_factory::within(contexts, self.sender.clone(), self.claim_batcher.clone())
    }

    pub fn stopper(&self) -> Stopper {
        Stopper(self.sender.clone())
    }
}
