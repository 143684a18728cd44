//! Reports at once which plans are changing, before they settle, so that viewers can refresh early.
//!
//! A further notice about the same plan is delayed a little: a save causes several events, and a viewer that read in
//! the middle of it must read again.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::event_loop::Daemon;
use crate::plan::id::PlanId;
use crate::serve::ipc::event::Notification;
use crate::serve::ipc::protocol::{Answer, Request};

/// The shortest time between two notices about the same plan.
const GAP: Duration = Duration::from_millis(5);

/// If more plans than this are due at once, a single notice says that anything may have changed.
const MOST: usize = 64;

/// Per plan: when the last notice was sent and whether another is pending. The key `None` means all plans.
#[derive(Debug, Default)]
pub(crate) struct DirtyNotices(BTreeMap<Option<PlanId>, Notice>);

#[derive(Debug)]
struct Notice {
    sent: Option<Instant>,
    is_pending: bool,
}

impl DirtyNotices {
    /// When the next pending notice is due.
    pub(crate) fn due(&self) -> Option<Instant> {
        let now = Instant::now;
        self.0.values().filter(|it| it.is_pending).map(|it| it.sent.map_or_else(now, |it| it + GAP)).min()
    }

    fn mark(&mut self, plan: Option<PlanId>) {
        self.0.entry(plan).or_insert(Notice { sent: None, is_pending: true }).is_pending = true;
    }

    /// Takes the notices that are due.
    fn take(&mut self, now: Instant) -> Vec<Option<PlanId>> {
        let is_due = |it: &Notice| it.is_pending && it.sent.is_none_or(|sent| sent + GAP <= now);
        let n_due = self.0.values().filter(|it| is_due(it)).count();
        if n_due > MOST {
            let all = Notice { sent: Some(now), is_pending: false };
            self.0 = BTreeMap::from([(None, all)]);
            return vec![None];
        }
        self.0.retain(|_, it| it.is_pending || it.sent.is_some_and(|sent| sent + GAP > now));
        let due = self.0.iter_mut().filter(|(_, it)| is_due(it));
        let taken = due.map(|(plan, it)| {
            *it = Notice { sent: Some(now), is_pending: false };
            plan.clone()
        });
        taken.collect()
    }
}

impl Daemon<'_> {
    /// Reports that a plan is changing; `None`: any plan may be.
    pub(crate) fn notify_dirty(&mut self, plan: Option<PlanId>) {
        if self.feed.is_some() || self.followers.iter().any(|it| it.ask == Request::Changes) {
            self.dirty_notices.mark(plan);
        }
    }

    pub(crate) fn send_dirty_notices(&mut self) {
        for plan in self.dirty_notices.take(Instant::now()) {
            let answer = Answer::Changed { plan: plan.as_ref().map(|it| it.as_str().to_owned()) };
            self.followers
                .retain(|it| it.ask != Request::Changes || it.reply.try_send(answer.clone()).is_ok());
            if let Some(feed) = &self.feed {
                feed.publish(Notification::Changed { plan });
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
    fn the_first_notice_is_immediate_and_later_ones_are_merged() {
        let (mut dirty_notices, begin) = (DirtyNotices::default(), Instant::now());
        dirty_notices.mark(plan(1));
        assert_eq!(dirty_notices.take(begin), [plan(1)]);
        dirty_notices.mark(plan(1));
        dirty_notices.mark(plan(1));
        dirty_notices.mark(plan(2));
        assert_eq!(dirty_notices.take(begin), [plan(2)]);
        assert_eq!(dirty_notices.due(), Some(begin + GAP));
        assert_eq!(dirty_notices.take(begin + GAP), [plan(1)]);
        assert_eq!(dirty_notices.due(), None);
        assert_eq!(dirty_notices.take(begin + 2 * GAP), []);
        assert!(dirty_notices.0.is_empty(), "old entries are removed");
    }

    #[test]
    fn very_many_plans_are_merged_into_one_notice() {
        let mut dirty_notices = DirtyNotices::default();
        (0..=MOST).for_each(|it| dirty_notices.mark(plan(it)));
        assert_eq!(dirty_notices.take(Instant::now()), [None]);
        assert_eq!(dirty_notices.due(), None);
    }
}
