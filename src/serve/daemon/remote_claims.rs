//! The daemon's share of claims across machines: it lists them, renews those of this clone, and reports what others did.
//!
//! A thread of its own contacts the remote, so that a silent remote delays nothing. It settles nothing and writes no plan
//! file. Without `[sync]` in the configuration there is no thread.

use std::fmt;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread;
use std::time::Duration;

use crate::api::context::Context;
use crate::api::views::shown_path;
use crate::ops::sync::{self, DidElsewhere, Elsewhere};
use crate::serve::daemon::context_factory::ContextFactory;
use crate::serve::daemon::messages::Message;
use crate::serve::daemon::times::{REMOTE_INTERVAL, REMOTE_LIMIT};
use crate::serve::ipc::event::{Event, Of, Source, What};

/// What is needed to begin.
#[derive(Clone)]
pub(crate) struct RemoteShare(ContextFactory);

/// The running thread; it ends when this is dropped.
pub(crate) struct RemoteClaims {
    _stop: Option<Sender<()>>,
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
        RemoteClaims { _stop: is_set_up.then(|| self.spawn(sender)) }
    }

    fn spawn(self, sender: Sender<Message>) -> Sender<()> {
        let (stop, stopped) = mpsc::channel();
        thread::spawn(move || {
            let mut interval = Duration::ZERO;
            while stopped.recv_timeout(interval) == Err(RecvTimeoutError::Timeout) {
                let Ok(context) = (self.0)() else {
                    interval = after_failure(interval);
                    continue;
                };
                let told = sync::watch(&context);
                let next = if told.is_ok() { REMOTE_INTERVAL } else { after_failure(interval) };
                interval = with_jitter(next, &context);
                let events: Vec<_> = told.unwrap_or_default().iter().map(|it| event(&context, it)).collect();
                if !events.is_empty() && sender.send(Message::Elsewhere(events)).is_err() {
                    break;
                }
            }
        });
        stop
    }
}

/// Twice the interval, so that a remote in trouble gets fewer requests.
fn after_failure(interval: Duration) -> Duration {
    (interval * 2).clamp(REMOTE_INTERVAL, REMOTE_LIMIT)
}

/// Up to a quarter more or less, so that machines that start together do not stay together.
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
    fn the_interval_grows_with_each_failure_up_to_a_limit() {
        let steps = std::iter::successors(Some(Duration::ZERO), |it| Some(after_failure(*it)));
        let seconds: Vec<_> = steps.skip(1).take(8).map(|it| it.as_secs()).collect();
        assert_eq!(seconds, [30, 60, 120, 240, 480, 600, 600, 600]);
    }
}
