//! Tells what changed once it has settled: a save is seen whole, and what looks half-written gets a second look.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{Daemon, Flow};
use crate::engine::error::Error;
use crate::engine::load;
use crate::plan::id::PlanId;
use crate::serve::changes::{Sight, Teller};
use crate::serve::feed::Told;
use crate::serve::watch::End;
use crate::serve::wire::Answer;

/// How long a plan must be quiet before its changes are told, so that a save is seen whole.
const SETTLE: Duration = Duration::from_millis(40);

/// A plan that is written to all the time is told of all the same.
const LONGEST_SETTLE: Duration = Duration::from_millis(400);

/// What looks half-written, or is gone, is looked at once more after this.
const SECOND_LOOK: Duration = Duration::from_millis(300);

/// A plan that may have something to tell.
#[derive(Debug)]
pub(super) struct Untold {
    quiet_since: Instant,
    first: Instant,
    /// Since when something is held back.
    held_since: Option<Instant>,
}

impl Untold {
    pub(super) fn due(&self) -> Instant {
        let settled = (self.quiet_since + SETTLE).min(self.first + LONGEST_SETTLE);
        self.held_since.map_or(settled, |it| settled.max(it + SECOND_LOOK))
    }

    fn sight(&self, now: Instant) -> Sight {
        let is_second = self.held_since.is_some_and(|it| it + SECOND_LOOK <= now);
        if is_second { Sight::Settled } else { Sight::First }
    }
}

impl Daemon<'_> {
    /// Notes that something happened in a plan.
    pub(super) fn note(&mut self, id: PlanId) {
        let now = Instant::now();
        let fresh = || Untold { quiet_since: now, first: now, held_since: None };
        self.untold.entry(id).or_insert_with(fresh).quiet_since = now;
    }

    /// Tells of the plans that have settled.
    pub(super) fn tell(&mut self) -> Result<Flow, Error> {
        let now = Instant::now();
        let (due, later): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.untold).into_iter().partition(|(_, it)| it.due() <= now);
        self.untold = later.into_iter().collect();
        if due.is_empty() {
            return Ok(Flow::Continue(()));
        }
        let context = self.now()?;
        let (root, mut own) = (context.root_name(), self.own_log.writes(&context.plans));
        self.credited.retain(|it| own.contains(it));
        own.retain(|it| !self.credited.contains(it));
        for (id, untold) in due {
            let plan = load::one_plan(&context, &id)?.filter(|it| !it.is_archived);
            let teller = Teller { now: context.now, root: &root, own: &own, sight: untold.sight(now) };
            let told = teller.plan(&id, self.known.get(&id), plan.as_ref());
            match told.known {
                Some(known) => drop(self.known.insert(id.clone(), known)),
                None => drop(self.known.remove(&id)),
            }
            if told.is_unsettled {
                let held_since = untold.held_since.or(Some(now));
                self.untold.insert(id, Untold { first: now, held_since, ..untold });
            } else {
                self.credited.extend(own.iter().filter(|it| it.path.starts_with(id.as_str())).cloned());
            }
            for event in &told.events {
                if let Some(feed) = &self.feed {
                    feed.publish(Told::Event(Arc::new(event.clone())));
                }
                let json = event.to_json();
                self.followers.retain(|it| it.reply.try_send(Answer::Event { event: json.clone() }).is_ok());
                if self.listener.event(event).is_break() {
                    return Ok(Flow::Break(End::BrokenOff));
                }
            }
        }
        Ok(Flow::Continue(()))
    }
}
