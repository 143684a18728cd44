//! What the daemon does for claims across machines: it lists them, renews those of this clone, and reports changes that
//! other machines made.
//!
//! A separate thread contacts the registry, so that a slow registry does not delay the event loop. The thread does not
//! finish interrupted changes of claims, and writes no plan file. It is started only if the configuration contains
//! `[sync]`.

use std::fmt;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::Duration;

use crate::api::context::Context;
use crate::api::views::shown_path;
use crate::ops::sync::{self, DidElsewhere, Elsewhere, Reported};
use crate::serve::daemon::context_factory::ContextFactory;
use crate::serve::daemon::messages::Message;
use crate::serve::daemon::times::{REMOTE_INTERVAL, REMOTE_LIMIT, REMOTE_PAUSE};
use crate::serve::ipc::event::{Event, Of, Source, What};

/// What is needed to start the thread.
#[derive(Clone)]
pub(crate) struct RemoteShare(ContextFactory);

/// A handle of the thread. The thread ends when the handle is dropped.
pub(crate) struct RemoteClaims {
    thread: Option<Sender<Wake>>,
}

impl Drop for RemoteClaims {
    fn drop(&mut self) {
        self.thread.as_ref().map(|it| it.send(Wake::Stop));
    }
}

/// A message that ends the wait for the next listing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wake {
    Stop,
    /// The registry reported a change.
    Look,
}

/// Waits until the next listing is due; returns false if the thread must end. A notification of the registry causes a
/// listing after [`REMOTE_PAUSE`], and notifications that arrive during this pause cause no further listing.
fn waited(woken: &Receiver<Wake>, interval: Duration) -> bool {
    match woken.recv_timeout(interval) {
        Err(RecvTimeoutError::Timeout) => return true,
        Ok(Wake::Stop) | Err(RecvTimeoutError::Disconnected) => return false,
        Ok(Wake::Look) => thread::sleep(REMOTE_PAUSE.min(interval)),
    }
    woken.try_iter().all(|it| it == Wake::Look)
}

impl fmt::Debug for RemoteShare {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RemoteShare(…)")
    }
}

impl RemoteShare {
    pub(crate) fn new(contexts: ContextFactory) -> Self {
        Self(contexts)
    }

    pub(crate) fn begin(self, sender: Sender<Message>) -> RemoteClaims {
        let is_set_up = (self.0)().is_ok_and(|it| it.config.sync.is_some());
        RemoteClaims { thread: is_set_up.then(|| self.spawn(sender)) }
    }

    fn spawn(self, sender: Sender<Message>) -> Sender<Wake> {
        let (wake, woken) = mpsc::channel();
        let own = wake.clone();
        thread::spawn(move || {
            let (mut interval, mut is_notified) = (Duration::ZERO, false);
            let mut reported = Reported::default();
            while waited(&woken, interval) {
                let Ok(context) = (self.0)() else {
                    interval = after_failure(interval);
                    continue;
                };
                let listed = sync::watch(&context, &mut reported);
                if listed.is_ok() && !is_notified {
                    let own = own.clone();
                    is_notified = sync::on_change(
                        &context,
                        Box::new(move || {
                            own.send(Wake::Look).ok();
                        }),
                    );
                }
                let next = if listed.is_ok() { REMOTE_INTERVAL } else { after_failure(interval) };
                interval = with_jitter(next, &context);
                let events: Vec<_> =
                    listed.unwrap_or_default().iter().map(|it| event(&context, it)).collect();
                if !events.is_empty() && sender.send(Message::Elsewhere(events)).is_err() {
                    break;
                }
            }
        });
        wake
    }
}

/// Doubles the interval, within limits, so that a registry that fails gets fewer requests.
fn after_failure(interval: Duration) -> Duration {
    (interval * 2).clamp(REMOTE_INTERVAL, REMOTE_LIMIT)
}

/// Changes the interval at random by up to a quarter, so that machines that started together do not list together.
fn with_jitter(interval: Duration, context: &Context) -> Duration {
    let mut byte = [128];
    context.plans.random(&mut byte).ok();
    interval * 3 / 4 + interval / 2 * u32::from(byte[0]) / 255
}

fn event(context: &Context, of: &Elsewhere) -> Event {
    let what = match of.did {
        DidElsewhere::Claimed => What::ClaimedElsewhere,
        DidElsewhere::Released => What::ReleasedElsewhere,
        DidElsewhere::Ended(status) => What::EndedElsewhere { new: status.to_owned() },
    };
    Event {
        what,
        of: Of::Step,
        id: of.step.clone(),
        plan: of.plan.clone(),
        title: of.title.clone(),
        path: shown_path(&context.root_name(), &of.path),
        at: context.now,
        source: Source::Remote { by: of.by.clone(), host: of.host.clone() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_that_come_together_are_one_listing_and_a_stop_ends_the_wait() {
        let (wake, woken) = mpsc::channel();
        let long = Duration::from_secs(3600);
        wake.send(Wake::Look).unwrap();
        wake.send(Wake::Look).unwrap();
        assert!(waited(&woken, long));
        assert!(woken.try_recv().is_err());
        assert!(waited(&woken, Duration::ZERO), "the interval is over");
        for sent in [&[Wake::Stop][..], &[Wake::Look, Wake::Stop]] {
            sent.iter().for_each(|it| wake.send(*it).unwrap());
            assert!(!waited(&woken, long));
        }
        drop(wake);
        assert!(!waited(&woken, long));
    }

    #[test]
    fn the_interval_grows_with_each_failure_up_to_a_limit() {
        let steps = std::iter::successors(Some(Duration::ZERO), |it| Some(after_failure(*it)));
        let seconds: Vec<_> = steps.skip(1).take(8).map(|it| it.as_secs()).collect();
        assert_eq!(seconds, [30, 60, 120, 240, 480, 600, 600, 600]);
    }
}
