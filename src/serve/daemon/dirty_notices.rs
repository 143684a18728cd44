//! Tells at once which plans are being changed, before anything has settled, so that a viewer looks again.
//!
//! What comes shortly after another hint about the same plan is told a moment later: a save is several events, and a
//! viewer that looked in the middle of it has to look again.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::event_loop::Daemon;
use crate::plan::id::PlanId;
use crate::serve::ipc::event::Told;
use crate::serve::ipc::protocol::{Answer, Ask};

/// The least time between two hints about the same plan.
const GAP: Duration = Duration::from_millis(5);

/// Of more plans at once than this it is told that anything may have changed.
const MOST: usize = 64;

/// When each plan was last told of, and whether that has to be told again; with no plan, all of them.
#[derive(Debug, Default)]
pub(crate) struct Hints(BTreeMap<Option<PlanId>, Hint>);

#[derive(Debug)]
struct Hint {
    told: Option<Instant>,
    is_owed: bool,
}

impl Hints {
    /// When something that is owed is to be told.
    pub(crate) fn due(&self) -> Option<Instant> {
        let now = Instant::now;
        self.0.values().filter(|it| it.is_owed).map(|it| it.told.map_or_else(now, |it| it + GAP)).min()
    }

    fn owe(&mut self, plan: Option<PlanId>) {
        self.0.entry(plan).or_insert(Hint { told: None, is_owed: true }).is_owed = true;
    }

    /// What is to be told now.
    fn take(&mut self, now: Instant) -> Vec<Option<PlanId>> {
        let is_due = |it: &Hint| it.is_owed && it.told.is_none_or(|told| told + GAP <= now);
        let n_due = self.0.values().filter(|it| is_due(it)).count();
        if n_due > MOST {
            let all = Hint { told: Some(now), is_owed: false };
            self.0 = BTreeMap::from([(None, all)]);
            return vec![None];
        }
        self.0.retain(|_, it| it.is_owed || it.told.is_some_and(|told| told + GAP > now));
        let due = self.0.iter_mut().filter(|(_, it)| is_due(it));
        let told = due.map(|(plan, it)| {
            *it = Hint { told: Some(now), is_owed: false };
            plan.clone()
        });
        told.collect()
    }
}

impl Daemon<'_> {
    /// Notes that something of a plan is being changed, or with none anything.
    pub(crate) fn hint(&mut self, plan: Option<PlanId>) {
        if self.feed.is_some() || self.followers.iter().any(|it| it.ask == Ask::Changes) {
            self.hints.owe(plan);
        }
    }

    pub(crate) fn tell_hints(&mut self) {
        for plan in self.hints.take(Instant::now()) {
            let answer = Answer::Changed { plan: plan.as_ref().map(|it| it.as_str().to_owned()) };
            self.followers.retain(|it| it.ask != Ask::Changes || it.reply.try_send(answer.clone()).is_ok());
            if let Some(feed) = &self.feed {
                feed.publish(Told::Changed { plan });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(number: usize) -> Option<PlanId> {
        Some(PlanId::new(format!("plan-{number}")))
    }

    #[test]
    fn a_hint_comes_at_once_and_what_follows_it_once_more() {
        let (mut hints, begin) = (Hints::default(), Instant::now());
        hints.owe(plan(1));
        assert_eq!(hints.take(begin), [plan(1)]);
        hints.owe(plan(1));
        hints.owe(plan(1));
        hints.owe(plan(2));
        assert_eq!(hints.take(begin), [plan(2)]);
        assert_eq!(hints.due(), Some(begin + GAP));
        assert_eq!(hints.take(begin + GAP), [plan(1)]);
        assert_eq!(hints.due(), None);
        assert_eq!(hints.take(begin + 2 * GAP), []);
        assert!(hints.0.is_empty(), "what is over is forgotten");
    }

    #[test]
    fn of_very_many_plans_nothing_is_told_but_that() {
        let mut hints = Hints::default();
        (0..=MOST).for_each(|it| hints.owe(plan(it)));
        assert_eq!(hints.take(Instant::now()), [None]);
        assert_eq!(hints.due(), None);
    }
}
