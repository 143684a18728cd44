//! What a daemon tells whoever looks on from another thread: numbered, and remembered for a while.
//!
//! Nobody is waited for. Who falls behind further than is remembered learns that, and has to look at everything again.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::plan::time::Time;
use crate::serve::ipc::event::Told;

use tokio::sync::broadcast;

/// How many are remembered.
const MOST: usize = 1024;

/// What is told, with its number; numbers grow by one.
pub type Numbered = (u64, Told);

/// Where to read what is told from here on; a reader that falls behind is told how many it missed.
pub type Receiver = broadcast::Receiver<Numbered>;

/// What was told after a number that somebody names.
#[derive(Debug, Clone, PartialEq)]
pub enum Since {
    /// Everything, oldest first.
    Events(Vec<Numbered>),
    /// It is not remembered any more, or never was told here.
    TooFar,
}

/// The one place where a daemon's news come together; copies are the same feed.
#[derive(Debug, Clone)]
pub struct Feed {
    ring: Arc<Mutex<Ring>>,
    sender: broadcast::Sender<Numbered>,
}

#[derive(Debug)]
struct Ring {
    told: VecDeque<Numbered>,
    /// The number of the last one that was told, or the one before the first.
    last: u64,
}

/// What somebody who begins to follow is given; between `since` and `receiver` nothing is missing and nothing twice.
#[derive(Debug)]
pub struct Following {
    pub since: Since,
    /// The number that everything in `receiver` is above.
    pub last: u64,
    pub receiver: Receiver,
}

impl Feed {
    /// Numbers begin above those of any feed that began a moment earlier, so that none of another one's is taken for its own.
    pub fn beginning(now: Time) -> Self {
        let milliseconds = u64::try_from(now.as_nanoseconds() / 1_000_000).unwrap_or(0);
        let ring = Ring { told: VecDeque::new(), last: milliseconds.saturating_mul(1000) };
        Self { ring: Arc::new(Mutex::new(ring)), sender: broadcast::channel(MOST).0 }
    }

    fn ring(&self) -> MutexGuard<'_, Ring> {
        // What is in it is whole between any two statements.
        self.ring.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells something to everybody who listens; waits for nobody.
    pub fn publish(&self, told: Told) {
        let mut ring = self.ring();
        ring.last += 1;
        let numbered = (ring.last, told);
        if ring.told.len() == MOST {
            ring.told.pop_front();
        }
        ring.told.push_back(numbered.clone());
        // Under the lock, so that the order of numbers is the order in which they are received. Nobody may listen.
        self.sender.send(numbered).ok();
    }

    /// From here on.
    pub fn subscribe(&self) -> Receiver {
        self.sender.subscribe()
    }

    /// What was told after the one of this number.
    pub fn since(&self, last_id: u64) -> Since {
        self.ring().since(last_id)
    }

    /// From after this number on; with none from here on.
    pub fn follow(&self, last_id: Option<u64>) -> Following {
        let ring = self.ring();
        let since = last_id.map_or(Since::Events(Vec::new()), |it| ring.since(it));
        Following { since, last: ring.last, receiver: self.sender.subscribe() }
    }
}

impl Ring {
    fn since(&self, last_id: u64) -> Since {
        let before_first = self.told.front().map_or(self.last, |(first, _)| first - 1);
        if !(before_first..=self.last).contains(&last_id) {
            return Since::TooFar;
        }
        Since::Events(self.told.iter().filter(|(id, _)| *id > last_id).cloned().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::id::PlanId;

    fn feed() -> Feed {
        Feed::beginning("2026-11-21T09:14:03Z".parse().unwrap())
    }

    fn changed(plan: usize) -> Told {
        Told::Changed { plan: Some(PlanId::new(format!("plan-{plan}"))) }
    }

    fn told(since: Since) -> Vec<Told> {
        match since {
            Since::Events(events) => events.into_iter().map(|(_, it)| it).collect(),
            Since::TooFar => panic!("too far"),
        }
    }

    #[test]
    fn nothing_is_missing_and_nothing_comes_twice() {
        let feed = feed();
        let begin = feed.follow(None).last;
        assert_eq!(feed.since(begin), Since::Events(Vec::new()));
        feed.publish(changed(1));
        feed.publish(changed(2));
        let mut following = feed.follow(Some(begin + 1));
        feed.publish(changed(3));
        assert_eq!(told(following.since), [changed(2)]);
        assert_eq!(following.last, begin + 2);
        assert_eq!(following.receiver.try_recv().unwrap(), (begin + 3, changed(3)));
        assert!(following.receiver.try_recv().is_err());
        assert_eq!(told(feed.since(begin)), [changed(1), changed(2), changed(3)]);
    }

    #[test]
    fn what_is_forgotten_or_was_never_told_is_too_far() {
        let feed = feed();
        let begin = feed.follow(None).last;
        assert_eq!(feed.since(begin - 1), Since::TooFar);
        assert_eq!(feed.since(begin + 1), Since::TooFar);
        let mut slow = feed.subscribe();
        (0..=MOST).for_each(|it| feed.publish(changed(it)));
        assert_eq!(feed.since(begin), Since::TooFar);
        assert_eq!(told(feed.since(begin + 1)).len(), MOST);
        assert!(matches!(slow.try_recv(), Err(broadcast::error::TryRecvError::Lagged(1))));
    }
}
