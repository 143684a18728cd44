//! Makes claims on behalf of clients. Claims that wait at the same time are made as one batch, in a thread of their
//! own.

use std::collections::BTreeSet;
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{self, Receiver, Sender, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};

use crate::api::context::{Context, Notice};
use crate::api::daemon::{ClaimReply, DelegatedClaim};
use crate::api::error::Error;
use crate::ops::claim::claim_together;
use crate::serve::daemon::messages::Message;
use crate::serve::daemon::times::LOOP_TIMEOUT;
use crate::serve::ipc::protocol::Answer;
use crate::serve::ipc::socket_path;
use crate::store::claims::daemon_queue::QueueCache;

/// The maximum number of claims in a batch. While a batch runs, every other writer waits for the locks.
const BATCH_LIMIT: usize = 16;

/// A handle for submitting claims. Clones share one thread, which ends when the last handle is dropped.
#[derive(Debug, Clone)]
pub(crate) struct ClaimBatcher(Sender<Job>);

#[derive(Debug)]
struct Job {
    delegated: DelegatedClaim,
    reply: SyncSender<Answer>,
    /// The client's connection; `None` for a request from this process.
    peer: Option<UnixStream>,
}

impl ClaimBatcher {
    /// Starts the thread; `None` if the system has no thread left. The contexts must not delegate claims again.
    /// `event_loop` is the queue of the event loop.
    pub(crate) fn begin(
        contexts: impl Fn() -> Result<Context, Error> + Send + 'static,
        event_loop: Sender<Message>,
    ) -> Option<Self> {
        let (sender, receiver) = mpsc::channel();
        let thread = std::thread::Builder::new().name("claims".to_owned());
        thread.spawn(move || work(&contexts, &event_loop, &receiver)).ok()?;
        Some(Self(sender))
    }

    /// Queues a claim; returns false if the thread has ended. There is no reply if the claim was made but an error occurred
    /// afterwards.
    pub(crate) fn take(
        &self,
        delegated: DelegatedClaim,
        reply: SyncSender<Answer>,
        peer: Option<UnixStream>,
    ) -> bool {
        self.0.send(Job { delegated, reply, peer }).is_ok()
    }
}

fn work(
    contexts: &dyn Fn() -> Result<Context, Error>,
    event_loop: &Sender<Message>,
    receiver: &Receiver<Job>,
) {
    let mut queue_cache = QueueCache::default();
    // Notices that have not been delivered yet.
    let notices = Arc::new(Mutex::new(Vec::new()));
    while let Ok(first) = receiver.recv() {
        let jobs: Vec<_> = std::iter::once(first).chain(receiver.try_iter()).take(BATCH_LIMIT).collect();
        let delegated_claims: Vec<_> = jobs.iter().map(|it| it.delegated.clone()).collect();
        let peers: Vec<_> = jobs.iter().map(|it| (&it.delegated, &it.peer)).collect();
        let is_there = |delegated: &DelegatedClaim| {
            let of = |it: &&(&DelegatedClaim, &Option<UnixStream>)| it.0 == delegated;
            !peers.iter().find(of).and_then(|it| it.1.as_ref()).is_some_and(socket_path::has_gone)
        };
        let together = |context| {
            let context = collecting_notices(context, &notices);
            claim_together(
                &context,
                &delegated_claims,
                &mut queue_cache,
                &|| changed_plans(event_loop),
                &is_there,
            )
        };
        let ran = contexts().map_or_else(|_| Vec::new(), together);
        let ran = ran.into_iter().chain(std::iter::repeat_with(|| ClaimReply::Nothing));
        for (Job { reply, .. }, ran) in jobs.into_iter().zip(ran) {
            let handed = match ran {
                ClaimReply::Claimed(mut handed) => {
                    handed.notices.append(&mut notices.lock().unwrap_or_else(PoisonError::into_inner));
                    Some(handed)
                }
                ClaimReply::Nothing => None,
                // Without a reply the client looks for its claim in the records.
                ClaimReply::Unheard(_) => continue,
            };
            // A client that gave up waiting finds its claim in the records.
            reply.try_send(Answer::Claimed { handed }).ok();
        }
    }
}

/// Returns a context that collects the notices of a batch. The first client that gets a claim receives all of them.
fn collecting_notices(context: Context, notices: &Arc<Mutex<Vec<Notice>>>) -> Context {
    let notices = Arc::clone(notices);
    let tell = move |it: Notice| {
        // `WaitingForLock` is left out: clients get the notices after the batch, when the wait is over.
        if it != Notice::WaitingForLock {
            notices.lock().unwrap_or_else(PoisonError::into_inner).push(it);
        }
    };
    Context { on_notice: Box::new(tell), ..context }
}

/// The plans that changed since the last call; `None` if unknown.
fn changed_plans(event_loop: &Sender<Message>) -> Option<BTreeSet<String>> {
    let (reply, answers) = sync_channel(1);
    event_loop.send(Message::Changed(reply)).ok()?;
    answers.recv_timeout(LOOP_TIMEOUT).ok()?
}

#[cfg(test)]
mod tests {
    #![expect(clippy::disallowed_methods, reason = "tests make plans as people do")]

    use super::*;
    use crate::api::context::Reading;
    use crate::disk::{PlansDir, RealDisk};
    use crate::ops::claim::ClaimRequest;

    #[test]
    fn a_delegated_claim_is_answered_with_and_without_an_event_loop() {
        let home = tempfile::tempdir().unwrap();
        let root = home.path().join("plans");
        std::fs::create_dir_all(root.join("a")).unwrap();
        std::fs::write(root.join("a/step-1.md"), "---\nstatus: pending\n---\n# One\n").unwrap();
        let state = home.path().join("state");
        let context = move || {
            let plans = PlansDir::open(Arc::new(RealDisk), &root, Some(&state))?;
            Ok(Context { reading: Reading::Index, ..Context::of(plans) })
        };
        let delegated = || DelegatedClaim::of(&context().unwrap(), &ClaimRequest::default()).unwrap();
        // No event loop reads this queue.
        let claim_batcher = ClaimBatcher::begin(context.clone(), mpsc::channel().0).unwrap();
        let ask = |peer| {
            let (reply, answers) = sync_channel(1);
            assert!(claim_batcher.take(delegated(), reply, peer));
            let Ok(Answer::Claimed { handed }) = answers.recv() else { panic!("no answer") };
            handed
        };
        let pair = || UnixStream::pair().unwrap();
        let ((_there, here), (gone, left)) = (pair(), pair());
        drop(gone);
        assert_eq!(ask(Some(left)), None, "its client is gone");
        assert!(ask(Some(here)).is_some());
        assert_eq!(ask(None), None, "there is one step");
    }

    #[test]
    fn notices_of_a_batch_are_collected_for_its_clients() {
        let notices = Arc::default();
        let plans = crate::disk::model::Machine::with(&[("/plans/p/plan.md", "# P\n")]).plans();
        let context = collecting_notices(Context::of(plans), &notices);
        let kept = Notice::Kept { path: "a".into(), kept: "b".into(), why: "late".into() };
        for notice in [Notice::WaitingForLock, kept.clone()] {
            (context.on_notice)(notice);
        }
        assert_eq!(*notices.lock().unwrap(), [kept]);
    }
}
