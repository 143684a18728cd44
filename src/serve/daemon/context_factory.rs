//! Creates the context of each request of a long-running surface.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, sync_channel};
use std::time::Duration;

use crate::api::context::{Context, Here};
use crate::api::daemon::{
    ClaimReply, DaemonClient, DaemonStatus, DelegatedClaim, Freshness, Neighbours, REPLY_WITHIN,
};
use crate::api::error::Error;
use crate::index::Generation;
use crate::plan::id::PlanId;
use crate::serve::daemon::api::{Inbox, Message};
use crate::serve::daemon::claim_batcher::ClaimBatcher;
use crate::serve::daemon::listener::SocketRequest;
use crate::serve::ipc::protocol::{self, Answer, Request};

/// Creates the context of one request. It is called for each request, because time passes and the configuration may
/// change.
pub type ContextFactory = Arc<dyn Fn() -> Result<Context, Error> + Send + Sync>;

/// How long to wait for the event loop before the files are scanned instead.
const PATIENCE: Duration = Duration::from_secs(1);

/// ContextFactory for requests that the daemon's own process answers. They ask the event loop directly, without a socket.
/// The plan, step and claim in the environment of the daemon do not apply to its clients.
pub fn within(contexts: ContextFactory, inbox: &Inbox) -> ContextFactory {
    let deciding = Deciding { sender: inbox.sender.clone(), claim_batcher: inbox.claim_batcher.clone() };
    Arc::new(move || {
        let context = contexts()?;
        let freshness = Freshness::Attested(Box::new(deciding.clone()));
        let here = Here { plan: None, step: None, claim: None, ..context.here };
        Ok(Context { freshness, here, ..context })
    })
}

/// The event loop of this process. It may not have started yet, or have ended; then nothing is attested.
#[derive(Clone)]
struct Deciding {
    sender: Sender<Message>,
    claim_batcher: Option<ClaimBatcher>,
}

impl Deciding {
    fn ask(&self, ask: Request) -> Option<Answer> {
        self.send(ask)?.recv_timeout(PATIENCE).ok()
    }

    /// Sends a request, and returns where its answer arrives.
    fn send(&self, ask: Request) -> Option<Receiver<Answer>> {
        let (reply, answers) = sync_channel(1);
        let (_sending, is_sent) = sync_channel(0);
        self.sender.send(Message::Request(SocketRequest { ask, reply, is_sent, peer: None })).ok()?;
        Some(answers)
    }
}

impl DaemonClient for Deciding {
    fn commit(&self) -> Option<Generation> {
        match self.ask(Request::Sync)? {
            Answer::Sync { fresh: true, generation } => generation?.parse().ok(),
            _ => None,
        }
    }

    fn commit_and_next(&self) -> (Option<Generation>, Option<String>) {
        protocol::commit_and_next(self.ask(Request::Next))
    }

    fn cache_next(&self, answer: String) {
        self.send(Request::CacheNext(answer));
    }

    fn daemon(&self) -> DaemonStatus {
        match self.ask(Request::Status) {
            Some(Answer::Status(status)) => status.into(),
            _ => DaemonStatus::None,
        }
    }

    fn neighbours(&self, plan: &PlanId) -> Option<Neighbours> {
        match self.ask(Request::Around(plan.as_str().to_owned()))? {
            Answer::Around { around } => around.map(Neighbours::from),
            _ => None,
        }
    }

    fn claim(&self, delegated: &dyn Fn() -> Option<DelegatedClaim>) -> ClaimReply {
        let Some((claim_batcher, delegated)) =
            self.claim_batcher.as_ref().and_then(|it| Some((it, delegated()?)))
        else {
            return ClaimReply::Nothing;
        };
        let (reply, answers) = sync_channel(1);
        if !claim_batcher.take(delegated.clone(), reply, None) {
            return ClaimReply::Nothing;
        }
        match answers.recv_timeout(REPLY_WITHIN) {
            Ok(Answer::Claimed { handed }) => handed.map_or(ClaimReply::Nothing, ClaimReply::Claimed),
            _ => ClaimReply::Unheard(delegated),
        }
    }
}
