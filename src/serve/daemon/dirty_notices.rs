//! Reports at once which plans are changing, before they settle, so that viewers can refresh early.
//!
//! A save causes several events. The first one causes a notice at once; those shortly after it are merged into one further
//! notice. This notice is needed, because a viewer may have read in the middle of the save.

use std::collections::BTreeMap;
use std::time::Instant;

use crate::plan::id::PlanId;
use crate::serve::daemon::times::NOTICE_INTERVAL;

/// If more plans than this are due at once, a single notice says that anything may have changed.
const SINGLE_LIMIT: usize = 64;

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
        self.0
            .values()
            .filter(|it| it.is_pending)
            .map(|it| it.sent.map_or_else(now, |it| it + NOTICE_INTERVAL))
            .min()
    }

    pub(crate) fn mark(&mut self, plan: Option<PlanId>) {
        self.0.entry(plan).or_insert(Notice { sent: None, is_pending: true }).is_pending = true;
    }

    /// Takes the notices that are due.
    pub(crate) fn take(&mut self, now: Instant) -> Vec<Option<PlanId>> {
        let is_due = |it: &Notice| it.is_pending && it.sent.is_none_or(|sent| sent + NOTICE_INTERVAL <= now);
        let n_due = self.0.values().filter(|it| is_due(it)).count();
        if n_due > SINGLE_LIMIT {
            let all = Notice { sent: Some(now), is_pending: false };
            self.0 = BTreeMap::from([(None, all)]);
            return vec![None];
        }
        self.0.retain(|_, it| it.is_pending || it.sent.is_some_and(|sent| sent + NOTICE_INTERVAL > now));
        let due = self.0.iter_mut().filter(|(_, it)| is_due(it));
        let taken = due.map(|(plan, it)| {
            *it = Notice { sent: Some(now), is_pending: false };
            plan.clone()
        });
        taken.collect()
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
        let (mut notices, begin) = (DirtyNotices::default(), Instant::now());
        notices.mark(plan(1));
        assert_eq!(notices.take(begin), [plan(1)]);
        notices.mark(plan(1));
        notices.mark(plan(1));
        notices.mark(plan(2));
        assert_eq!(notices.take(begin), [plan(2)]);
        assert_eq!(notices.due(), Some(begin + NOTICE_INTERVAL));
        assert_eq!(notices.take(begin + NOTICE_INTERVAL), [plan(1)]);
        assert_eq!(notices.due(), None);
        assert_eq!(notices.take(begin + 2 * NOTICE_INTERVAL), []);
        assert!(notices.0.is_empty(), "old entries are removed");
    }

    #[test]
    fn very_many_plans_are_merged_into_one_notice() {
        let mut notices = DirtyNotices::default();
        (0..=SINGLE_LIMIT).for_each(|it| notices.mark(plan(it)));
        assert_eq!(notices.take(Instant::now()), [None]);
        assert_eq!(notices.due(), None);
    }
}
