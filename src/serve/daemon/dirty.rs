//! Which plans changed: those to be indexed again, and those whose changes the claim batcher has not seen yet.

use std::collections::BTreeSet;
use std::time::Instant;

use crate::plan::id::PlanId;
use crate::serve::daemon::times::{OWN_SETTLE, OWN_SETTLE_LIMIT};
use crate::serve::daemon::watcher::event::WriteKind;

/// What has to be indexed again.
#[derive(Debug, Default)]
pub(crate) struct Dirty {
    /// Names of directories, live or archived.
    pub(crate) plans: BTreeSet<String>,
    pub(crate) is_everything: bool,
    /// If planwatch made all changes, the times at which the first and the last one were noticed.
    pub(crate) own: Option<(Instant, Instant)>,
}

impl Dirty {
    pub(crate) fn is_empty(&self) -> bool {
        self.plans.is_empty() && !self.is_everything
    }

    pub(crate) fn includes(&self, id: &PlanId) -> bool {
        self.is_everything || self.plans.iter().any(|it| PlanId::new(it.clone()) == *id)
    }

    /// The time at which to index; `None` if nothing is dirty.
    pub(crate) fn due(&self) -> Option<Instant> {
        match self.own {
            Some((first, last)) if !self.is_everything => {
                Some((last + OWN_SETTLE).min(first + OWN_SETTLE_LIMIT))
            }
            _ => (!self.is_empty()).then(Instant::now),
        }
    }

    pub(crate) fn add(&mut self, name: String, write_kind: WriteKind) {
        let now = Instant::now();
        let is_own = match write_kind {
            WriteKind::Exchanged => true,
            WriteKind::Closed => self.plans.contains(&name),
            WriteKind::Other => false,
        };
        self.own = match self.own {
            Some((first, _)) if is_own => Some((first, now)),
            None if is_own && self.plans.is_empty() => Some((now, now)),
            _ => None,
        };
        self.plans.insert(name);
    }
}

/// The directories that changed since the claim batcher last asked; `None` if any directory may have changed.
#[derive(Debug)]
pub(crate) struct ChangedPlans(Option<BTreeSet<String>>);

/// If more plans changed than this, they are not listed.
const LISTED_LIMIT: usize = 256;

impl Default for ChangedPlans {
    fn default() -> Self {
        Self(Some(BTreeSet::new()))
    }
}

impl ChangedPlans {
    pub(crate) fn add(&mut self, name: &str) {
        let Some(names) = &mut self.0 else { return };
        if !names.contains(name) {
            names.insert(name.to_owned());
        }
        if names.len() > LISTED_LIMIT {
            self.0 = None;
        }
    }

    pub(crate) fn add_all(&mut self) {
        self.0 = None;
    }

    /// Returns the changes, and forgets them.
    pub(crate) fn take(&mut self) -> Option<BTreeSet<String>> {
        std::mem::take(self).0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_planwatchs_own_writes_are_indexed_with_a_delay() {
        let mut dirty = Dirty::default();
        assert_eq!(dirty.due(), None);
        dirty.add("a".to_owned(), WriteKind::Exchanged);
        let (first, last) = dirty.own.unwrap();
        assert_eq!((first, dirty.due()), (last, Some(last + OWN_SETTLE)));
        dirty.add("b".to_owned(), WriteKind::Exchanged);
        dirty.add("b".to_owned(), WriteKind::Closed);
        assert_eq!(dirty.own.map(|it| it.0), Some(first));
        dirty.own = Some((first, first + OWN_SETTLE_LIMIT));
        assert_eq!(dirty.due(), Some(first + OWN_SETTLE_LIMIT));
        // An outside save makes everything due at once; later writes of planwatch do not change that.
        for (name, write_kind) in
            [("c", WriteKind::Closed), ("d", WriteKind::Exchanged), ("e", WriteKind::Other)]
        {
            dirty.add(name.to_owned(), write_kind);
            assert!(dirty.due().is_some_and(|it| it <= Instant::now()));
        }
        assert_eq!(dirty.plans.len(), 5);
    }
}
