//! Publishes the daemon's notifications to other threads: numbered, with a limited history.
//!
//! Publishing never blocks. A subscriber that falls behind the history is notified and must read everything again.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::plan::time::Time;
use crate::serve::ipc::event::Notification;

use tokio::sync::broadcast;

/// The length of the history.
const HISTORY_LIMIT: usize = 1024;

/// A notification and its number; numbers grow by one.
pub type Numbered = (u64, Notification);

/// Receives the notifications after the subscription. A receiver that falls behind learns how many it missed.
pub type Receiver = broadcast::Receiver<Numbered>;

/// The notifications after a given number.
#[derive(Debug, Clone, PartialEq)]
pub enum Since {
    /// Everything, oldest first.
    Events(Vec<Numbered>),
    /// The number is older than the history, or unknown here.
    TooFar,
}

/// The feed of a daemon; clones are the same feed.
#[derive(Debug, Clone)]
pub struct Feed {
    ring: Arc<Mutex<Ring>>,
    sender: broadcast::Sender<Numbered>,
}

#[derive(Debug)]
struct Ring {
    history: VecDeque<Numbered>,
    /// The number of the last notification; if there is none yet, the number before the first.
    last: u64,
}

/// A subscription. There is no gap and no overlap between `since` and `receiver`.
#[derive(Debug)]
pub struct Subscription {
    pub since: Since,
    /// Everything in `receiver` has a higher number.
    pub last: u64,
    pub receiver: Receiver,
}

impl Feed {
    /// Numbers are based on the time of the start, so that the numbers of an earlier feed are not valid here.
    pub fn beginning(now: Time) -> Self {
        let milliseconds = u64::try_from(now.as_nanoseconds() / 1_000_000).unwrap_or(0);
        let ring = Ring { history: VecDeque::new(), last: milliseconds.saturating_mul(1000) };
        Self { ring: Arc::new(Mutex::new(ring)), sender: broadcast::channel(HISTORY_LIMIT).0 }
    }

    fn ring(&self) -> MutexGuard<'_, Ring> {
        // No statement leaves the ring half-changed, so a poisoned lock is usable.
        self.ring.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends a notification to all subscribers, without waiting.
    pub fn publish(&self, notification: Notification) {
        let mut ring = self.ring();
        ring.last += 1;
        let numbered = (ring.last, notification);
        if ring.history.len() == HISTORY_LIMIT {
            ring.history.pop_front();
        }
        ring.history.push_back(numbered.clone());
        // Sent under the lock, so that subscribers receive numbers in order. Without subscribers the send fails, which
        // is fine.
        self.sender.send(numbered).ok();
    }

    pub fn subscribe(&self) -> Receiver {
        self.sender.subscribe()
    }

    pub fn since(&self, last_id: u64) -> Since {
        self.ring().since(last_id)
    }

    /// Subscribes to everything after this number or, if it is `None`, to everything from now on.
    pub fn follow(&self, last_id: Option<u64>) -> Subscription {
        let ring = self.ring();
        let since = last_id.map_or(Since::Events(Vec::new()), |it| ring.since(it));
        Subscription { since, last: ring.last, receiver: self.sender.subscribe() }
    }
}

impl Ring {
    fn since(&self, last_id: u64) -> Since {
        let before_first = self.history.front().map_or(self.last, |(first, _)| first - 1);
        if !(before_first..=self.last).contains(&last_id) {
            return Since::TooFar;
        }
        Since::Events(self.history.iter().filter(|(id, _)| *id > last_id).cloned().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::id::PlanId;

    fn feed() -> Feed {
        Feed::beginning("2026-11-21T09:14:03Z".parse().unwrap())
    }

    fn changed(plan: usize) -> Notification {
        Notification::Changed { plan: Some(PlanId::new(format!("plan-{plan}"))) }
    }

    fn notifications(since: Since) -> Vec<Notification> {
        match since {
            Since::Events(events) => events.into_iter().map(|(_, it)| it).collect(),
            Since::TooFar => panic!("too far"),
        }
    }

    #[test]
    fn a_subscription_has_no_gap_and_no_overlap() {
        let feed = feed();
        let begin = feed.follow(None).last;
        assert_eq!(feed.since(begin), Since::Events(Vec::new()));
        feed.publish(changed(1));
        feed.publish(changed(2));
        let mut following = feed.follow(Some(begin + 1));
        feed.publish(changed(3));
        assert_eq!(notifications(following.since), [changed(2)]);
        assert_eq!(following.last, begin + 2);
        assert_eq!(following.receiver.try_recv().unwrap(), (begin + 3, changed(3)));
        assert!(following.receiver.try_recv().is_err());
        assert_eq!(notifications(feed.since(begin)), [changed(1), changed(2), changed(3)]);
    }

    #[test]
    fn numbers_outside_the_history_are_too_far() {
        let feed = feed();
        let begin = feed.follow(None).last;
        assert_eq!(feed.since(begin - 1), Since::TooFar);
        assert_eq!(feed.since(begin + 1), Since::TooFar);
        let mut slow = feed.subscribe();
        (0..=HISTORY_LIMIT).for_each(|it| feed.publish(changed(it)));
        assert_eq!(feed.since(begin), Since::TooFar);
        assert_eq!(notifications(feed.since(begin + 1)).len(), HISTORY_LIMIT);
        assert!(matches!(slow.try_recv(), Err(broadcast::error::TryRecvError::Lagged(1))));
    }
}
