//! The surroundings of each request of a surface that runs long.

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
use crate::serve::daemon::claim_batcher::Clerk;
use crate::serve::daemon::listener::Asked;
use crate::serve::ipc::protocol::{self, Answer, Ask};

/// Makes the surroundings of one request; asked anew for each, because time passes and the configuration may change.
pub type Contexts = Arc<dyn Fn() -> Result<Context, Error> + Send + Sync>;

/// Beyond this the files themselves are looked at.
const PATIENCE: Duration = Duration::from_secs(1);

/// The surroundings of requests that a daemon's own process answers: it asks the deciding thread without a socket, and
/// what the process found in its environment is nobody's plan, step or claim.
pub fn within(contexts: Contexts, inbox: &Inbox) -> Contexts {
    let deciding = Deciding { sender: inbox.sender.clone(), clerk: inbox.clerk.clone() };
    Arc::new(move || {
        let context = contexts()?;
        let freshness = Freshness::Attested(Box::new(deciding.clone()));
        let here = Here { plan: None, step: None, claim: None, ..context.here };
        Ok(Context { freshness, here, ..context })
    })
}

/// The deciding thread of this process. It may not have begun yet, or have ended: then nobody knows.
#[derive(Clone)]
struct Deciding {
    sender: Sender<Message>,
    clerk: Option<Clerk>,
}

impl Deciding {
    fn ask(&self, ask: Ask) -> Option<Answer> {
        self.send(ask)?.recv_timeout(PATIENCE).ok()
    }

    /// Sends a request, and returns where its answer arrives.
    fn send(&self, ask: Ask) -> Option<Receiver<Answer>> {
        let (reply, answers) = sync_channel(1);
        let (_sending, is_sent) = sync_channel(0);
        self.sender.send(Message::Asked(Asked { ask, reply, is_sent, peer: None })).ok()?;
        Some(answers)
    }
}

impl DaemonClient for Deciding {
    fn commit(&self) -> Option<Generation> {
        match self.ask(Ask::Sync)? {
            Answer::Sync { fresh: true, generation } => generation?.parse().ok(),
            _ => None,
        }
    }

    fn commit_and_next(&self) -> (Option<Generation>, Option<String>) {
        protocol::commit_and_next(self.ask(Ask::Next))
    }

    fn cache_next(&self, answer: String) {
        self.send(Ask::CacheNext(answer));
    }

    fn daemon(&self) -> DaemonStatus {
        match self.ask(Ask::Status) {
            Some(Answer::Status(status)) => status.into(),
            _ => DaemonStatus::None,
        }
    }

    fn neighbours(&self, plan: &PlanId) -> Option<Neighbours> {
        match self.ask(Ask::Around(plan.as_str().to_owned()))? {
            Answer::Around { around } => around.map(Neighbours::from),
            _ => None,
        }
    }

    fn claim(&self, delegated: &dyn Fn() -> Option<DelegatedClaim>) -> ClaimReply {
        let Some((clerk, delegated)) = self.clerk.as_ref().and_then(|it| Some((it, delegated()?))) else {
            return ClaimReply::Nothing;
        };
        let (reply, answers) = sync_channel(1);
        if !clerk.take(delegated.clone(), reply, None) {
            return ClaimReply::Nothing;
        }
        match answers.recv_timeout(REPLY_WITHIN) {
            Ok(Answer::Claimed { handed }) => handed.map_or(ClaimReply::Nothing, ClaimReply::Claimed),
            _ => ClaimReply::Unheard(delegated),
        }
    }
}
