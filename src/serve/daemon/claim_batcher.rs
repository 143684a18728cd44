//! A thread of the daemon that makes delegated claims; simultaneous ones are made together.

use std::collections::BTreeSet;
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{self, Receiver, Sender, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::api::context::{Context, Notice};
use crate::api::daemon::{ClaimReply, DelegatedClaim};
use crate::ops::claim::claim_together;
use crate::serve::daemon::api::Message;
use crate::serve::daemon::context_factory::Contexts;
use crate::serve::ipc::protocol::Answer;
use crate::serve::ipc::socket_path;
use crate::store::claims::daemon_queue::Resident;

/// How many claims are made while the locks are held once. All other writers wait meanwhile.
const MOST: usize = 16;

/// How long this thread waits for an answer of the event loop.
const PATIENCE: Duration = Duration::from_secs(1);

/// The sending end of that thread's queue. The thread ends with the last copy.
#[derive(Debug, Clone)]
pub(crate) struct Clerk(Sender<Job>);

#[derive(Debug)]
struct Job {
    delegated: DelegatedClaim,
    reply: SyncSender<Answer>,
    /// The caller's connection, if the caller is another process.
    peer: Option<UnixStream>,
}

impl Clerk {
    /// Starts the thread; none if the system has no thread left. A context of `contexts` must not delegate claims itself.
    /// `deciding` is the event loop.
    pub(crate) fn begin(contexts: Contexts, deciding: Sender<Message>) -> Option<Self> {
        let (sender, receiver) = mpsc::channel();
        let thread = std::thread::Builder::new().name("clerk".to_owned());
        thread.spawn(move || work(&contexts, &deciding, &receiver)).ok()?;
        Some(Self(sender))
    }

    /// Queues a claim; returns false if the thread has ended. A claim that was made and cannot be reported gets no reply.
    pub(crate) fn take(
        &self,
        delegated: DelegatedClaim,
        reply: SyncSender<Answer>,
        peer: Option<UnixStream>,
    ) -> bool {
        self.0.send(Job { delegated, reply, peer }).is_ok()
    }
}

fn work(contexts: &Contexts, deciding: &Sender<Message>, receiver: &Receiver<Job>) {
    let mut resident = Resident::default();
    // What is to be told, and was not yet.
    let notices = Arc::new(Mutex::new(Vec::new()));
    while let Ok(first) = receiver.recv() {
        let jobs: Vec<_> = std::iter::once(first).chain(receiver.try_iter()).take(MOST).collect();
        let delegated_claims: Vec<_> = jobs.iter().map(|it| it.delegated.clone()).collect();
        let peers: Vec<_> = jobs.iter().map(|it| (&it.delegated, &it.peer)).collect();
        let is_there = |delegated: &DelegatedClaim| {
            let of = |it: &&(&DelegatedClaim, &Option<UnixStream>)| it.0 == delegated;
            !peers.iter().find(of).and_then(|it| it.1.as_ref()).is_some_and(socket_path::has_gone)
        };
        let together = |context| {
            let context = telling(context, &notices);
            claim_together(&context, &delegated_claims, &mut resident, &|| since(deciding), &is_there)
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
                // Without an answer it is looked for.
                ClaimReply::Unheard(_) => continue,
            };
            // Who does not wait any more finds the claim in the records.
            reply.try_send(Answer::Claimed { handed }).ok();
        }
    }
}

/// Keeps what happens beside a claim, to be told to those who asked for it.
fn telling(context: Context, notices: &Arc<Mutex<Vec<Notice>>>) -> Context {
    let notices = Arc::clone(notices);
    let tell = move |it: Notice| {
        // That it waited nobody need hear afterwards.
        if it != Notice::WaitingForLock {
            notices.lock().unwrap_or_else(PoisonError::into_inner).push(it);
        }
    };
    Context { tell: Box::new(tell), ..context }
}

/// In which plans anything has happened since this was asked last; none if nobody knows.
fn since(deciding: &Sender<Message>) -> Option<BTreeSet<String>> {
    let (reply, answers) = sync_channel(1);
    deciding.send(Message::Since(reply)).ok()?;
    answers.recv_timeout(PATIENCE).ok()?
}

#[cfg(test)]
mod tests {
    #![expect(clippy::disallowed_methods, reason = "tests make plans as people do")]

    use super::*;
    use crate::api::context::Reading;
    use crate::disk::{PlansDir, RealDisk};
    use crate::ops::claim::ClaimRequest;

    #[test]
    fn an_errand_is_answered_whether_anything_is_known_or_not() {
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
        // Nobody decides there.
        let clerk = Clerk::begin(Arc::new(context.clone()), mpsc::channel().0).unwrap();
        let ask = |peer| {
            let (reply, answers) = sync_channel(1);
            assert!(clerk.take(delegated(), reply, peer));
            let Ok(Answer::Claimed { handed }) = answers.recv() else { panic!("no answer") };
            handed
        };
        let pair = || UnixStream::pair().unwrap();
        let ((_there, here), (gone, left)) = (pair(), pair());
        drop(gone);
        assert_eq!(ask(Some(left)), None, "nobody waits for it");
        assert!(ask(Some(here)).is_some());
        assert_eq!(ask(None), None, "there is one step");
    }

    #[test]
    fn what_happens_beside_a_claim_is_told_to_who_asked() {
        let notices = Arc::default();
        let plans = crate::disk::model::Machine::with(&[("/plans/p/plan.md", "# P\n")]).plans();
        let context = telling(Context::of(plans), &notices);
        let kept = Notice::Kept { path: "a".into(), kept: "b".into(), why: "late".into() };
        for notice in [Notice::WaitingForLock, kept.clone()] {
            (context.tell)(notice);
        }
        assert_eq!(*notices.lock().unwrap(), [kept]);
    }
}
