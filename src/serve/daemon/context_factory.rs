//! Creates the context of each request to a long-running process, such as the daemon or the MCP server.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, sync_channel};

use crate::api::context::{Context, Here};
use crate::api::daemon::{
    ClaimReply, DaemonClient, DaemonStatus, DelegatedClaim, Dependents, Freshness, REPLY_WITHIN,
};
use crate::api::error::Error;
use crate::index::Generation;
use crate::plan::id::PlanId;
use crate::serve::daemon::claim_batcher::ClaimBatcher;
use crate::serve::daemon::listener::SocketRequest;
use crate::serve::daemon::messages::Message;
use crate::serve::daemon::times::LOOP_TIMEOUT;
use crate::serve::ipc::protocol::{Answer, Request};

/// Creates the context of one request. It is called for each request, because time passes and the configuration may
/// change.
pub type ContextFactory = Arc<dyn Fn() -> Result<Context, Error> + Send + Sync>;

/// Makes contexts that ask the event loop directly. The plan, step and claim in the environment of the
/// daemon do not apply to its clients.
pub(crate) fn within(
    contexts: ContextFactory,
    sender: Sender<Message>,
    claim_batcher: Option<ClaimBatcher>,
) -> ContextFactory {
    let event_loop = EventLoop { sender, claim_batcher };
    Arc::new(move || {
        let context = contexts()?;
        let freshness = Freshness::Attested(Box::new(event_loop.clone()));
        let here = Here { plan: None, step: None, claim: None, ..context.here };
        Ok(Context { freshness, here, ..context })
    })
}

/// A client of this process's event loop. If the loop has not started yet or has ended, requests are not answered, so
/// nothing is attested.
#[derive(Clone)]
struct EventLoop {
    sender: Sender<Message>,
    claim_batcher: Option<ClaimBatcher>,
}

impl EventLoop {
    fn ask(&self, request: Request) -> Option<Answer> {
        self.send(request)?.recv_timeout(LOOP_TIMEOUT).ok()
    }

    /// Sends a request, and returns where its answer arrives.
    fn send(&self, request: Request) -> Option<Receiver<Answer>> {
        let (reply, answers) = sync_channel(1);
        let (_sending, is_sent) = sync_channel(0);
        self.sender.send(Message::Request(SocketRequest { request, reply, is_sent, peer: None })).ok()?;
        Some(answers)
    }
}

impl DaemonClient for EventLoop {
    fn commit(&self) -> Option<Generation> {
        self.ask(Request::Sync)?.commit()
    }

    fn complete_commit(&self) -> Option<Generation> {
        self.ask(Request::Sync)?.complete_commit()
    }

    fn commit_and_next(&self) -> (Option<Generation>, Option<String>) {
        self.ask(Request::Next).map_or((None, None), Answer::commit_and_next)
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

    fn dependents(&self, plan: &PlanId) -> Option<Dependents> {
        self.ask(Request::Around(plan.as_str().to_owned()))?.dependents()
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
