//! Publishes the changes of a plan once its files have settled, so that no event describes half of a save. The changes of a
//! plan that never settles are published after [`SETTLE_LIMIT`]. If a file looks half-written or is missing, its change is
//! published only after a second check.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use std::time::Instant;

use crate::api::context::Context;
use crate::disk::{Left, OwnLog, OwnWrite, PlansDir};
use crate::plan::id::PlanId;
use crate::plan::model::Plan;
use crate::serve::daemon::baseline::BaselinePlan;
use crate::serve::daemon::diff::{Differ, is_left};
use crate::serve::daemon::times::{RECHECK, SETTLE, SETTLE_LIMIT, WRITER_LIMIT};
use crate::serve::ipc::event::Event;

#[derive(Default)]
pub(crate) struct Publisher {
    pub(crate) baseline: BTreeMap<PlanId, BaselinePlan>,
    pub(crate) pending: BTreeMap<PlanId, PendingPlan>,
    own_log: OwnLog,
    /// Entries of the write log that are already published, or that are older than this process. If a file gets the
    /// content of such an entry again, that change counts as an outside edit.
    attributed: HashSet<OwnWrite>,
}

/// A plan that may have changes to publish.
#[derive(Debug, Default)]
pub(crate) struct PendingPlan {
    /// When a check first found that a writer holds the lock of the plans directory. That writer may still log this
    /// plan's change.
    writer: Option<Instant>,
    /// The times of the last and the first unhandled event, in this order; `None` if all events are handled.
    unhandled: Option<(Instant, Instant)>,
    /// Files whose changes wait for a second check, each with the time of its first check.
    pub(crate) held: BTreeMap<Box<str>, Instant>,
}

impl PendingPlan {
    /// When to check the plan; `None`, which counts as due, if the plan waits for nothing.
    fn due(&self) -> Option<Instant> {
        let settled =
            self.unhandled.map(|(quiet_since, first)| (quiet_since + SETTLE).min(first + SETTLE_LIMIT));
        let second = self.held.values().min().map(|it| *it + RECHECK);
        settled.into_iter().chain(second).min()
    }

    fn is_due(&self, now: Instant) -> bool {
        self.due().is_none_or(|it| it <= now)
    }

    /// The files whose second check is due.
    fn overdue(&self, now: Instant) -> HashSet<&str> {
        self.held.iter().filter(|(_, since)| **since + RECHECK <= now).map(|(name, _)| &**name).collect()
    }
}

impl Publisher {
    /// Creates a publisher that treats every write so far as published.
    pub(crate) fn begin(plans: &PlansDir) -> Self {
        let mut publisher = Self::default();
        publisher.own_log.read(plans);
        publisher.attributed = publisher.own_log.writes().iter().cloned().collect();
        publisher
    }

    pub(crate) fn mark(&mut self, id: PlanId) {
        let now = Instant::now();
        let unhandled = &mut self.pending.entry(id).or_default().unhandled;
        let first = unhandled.map_or(now, |(_, first)| first);
        *unhandled = Some((now, first));
    }

    /// Returns whether a plan equals its last published state.
    pub(crate) fn is_published(&self, plan: &Plan) -> bool {
        self.baseline.get(&plan.id).is_some_and(|it| *it == BaselinePlan::of(plan))
    }

    /// Marks the plans that differ from the baseline. `seen` lists all live plans, each with a flag that is true if the plan
    /// equals its published state.
    pub(crate) fn mark_differing(&mut self, seen: Vec<(PlanId, bool)>) {
        let seen: BTreeMap<_, _> = seen.into_iter().collect();
        let gone: Vec<_> = self.baseline.keys().filter(|it| !seen.contains_key(it)).cloned().collect();
        let changed = seen.into_iter().filter(|(_, is_published)| !is_published).map(|(id, _)| id);
        changed.chain(gone).for_each(|it| self.mark(it));
    }

    pub(crate) fn has_unhandled_events(&self) -> bool {
        self.pending.values().any(|it| it.unhandled.is_some())
    }

    /// When to check the next plan; `None` if no check is scheduled.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.pending.values().filter_map(PendingPlan::due).min()
    }

    /// Removes and returns the plans that have settled, or whose second check is due.
    pub(crate) fn take_due(&mut self, now: Instant) -> BTreeMap<PlanId, PendingPlan> {
        let (due, later) = std::mem::take(&mut self.pending).into_iter().partition(|(_, it)| it.is_due(now));
        self.pending = later;
        due
    }

    /// The entries of the write log that are not published yet.
    pub(crate) fn unpublished_writes(&mut self, plans: &PlansDir) -> Vec<OwnWrite> {
        let is_other = self.own_log.read(plans);
        let own = self.own_log.writes();
        if is_other {
            let logged: HashSet<_> = own.iter().collect();
            self.attributed.retain(|it| logged.contains(it));
        }
        own.iter().filter(|it| !self.attributed.contains(it)).cloned().collect()
    }

    /// Compares a settled plan with the baseline, and returns the changes as events. `own` contains the unpublished writes.
    ///
    /// A command writes a file first and its log entry afterwards, both under the lock. So if a change has no log entry
    /// while a writer holds the lock, nothing is published, and the plan is checked again, for at most [`WRITER_LIMIT`].
    /// After that time, or if no writer holds the lock, `own` is read again. A change that still has no entry counts as an
    /// outside edit.
    pub(crate) fn events(
        &mut self,
        context: &Context,
        own: &mut Vec<OwnWrite>,
        (id, pending): (PlanId, PendingPlan),
        plan: Option<&Plan>,
    ) -> Vec<Event> {
        let now = Instant::now();
        let (root, overdue) = (context.root_name(), pending.overdue(now));
        let baseline = self.baseline.get(&id).cloned();
        let diff_with = |own: &[OwnWrite]| {
            Differ { now: context.now, root: &root, own, overdue: &overdue }.plan(
                &id,
                baseline.as_ref(),
                plan,
            )
        };
        let mut diff = diff_with(own);
        if diff.has_outside_change() {
            let since = pending.writer.unwrap_or(now);
            if since + WRITER_LIMIT > now && context.plans.is_being_written() == Some(true) {
                let unhandled = Some((now, now));
                self.pending.insert(id, PendingPlan { writer: Some(since), unhandled, held: pending.held });
                return Vec::new();
            }
            // Either the lock is free, so every writer has added its log entry by now; or a writer has held the lock for
            // `WRITER_LIMIT`; or the lock cannot be examined.
            *own = self.unpublished_writes(&context.plans);
            diff = diff_with(own);
        }
        match diff.baseline {
            Some(baseline) => drop(self.baseline.insert(id.clone(), baseline)),
            None => drop(self.baseline.remove(&id)),
        }
        if diff.held.is_empty() {
            let etag = |path: &Path| etag_of(plan, path);
            self.attributed.extend(covered_writes(own, &id, etag).into_iter().cloned());
        } else {
            let since = |name: &str| pending.held.get(name).copied().unwrap_or(now);
            let held = diff.held.into_iter().map(|name| (name.clone(), since(&name))).collect();
            self.pending.insert(id, PendingPlan { held, ..PendingPlan::default() });
        }
        diff.events
    }
}

/// Returns the log entries of a plan's writes that were made before the plan was read. For each file, these are the
/// entries up to the last one whose content is the content that was read. If there is no such entry, all entries of the
/// file are returned. The next check of the plan handles later entries.
fn covered_writes<'a>(
    own: &'a [OwnWrite],
    id: &PlanId,
    etag: impl Fn(&Path) -> Option<&'a str>,
) -> Vec<&'a OwnWrite> {
    let of_plan: Vec<_> = own.iter().filter(|it| it.path.starts_with(id.as_str())).collect();
    let is_read = |it: &OwnWrite| is_left(&it.left, etag(&it.path));
    let last = |path: &Path, is_it: &dyn Fn(&OwnWrite) -> bool| {
        of_plan.iter().rposition(|it| it.path == path && is_it(it))
    };
    // If the content is that of no write, it may have come with the file when it was renamed.
    let last_read = |path: &Path| last(path, &is_read).or_else(|| last(path, &|it| it.left == Left::Renamed));
    let is_covered = |(at, it): &(usize, &&OwnWrite)| last_read(&it.path).is_none_or(|last| *at <= last);
    of_plan.iter().enumerate().filter(is_covered).map(|(_, it)| *it).collect()
}

fn etag_of<'a>(plan: Option<&'a Plan>, path: &Path) -> Option<&'a str> {
    let plan = plan?;
    let path = path.to_str()?;
    let step = plan.steps.iter().find(|it| it.path == path && it.etag.is_some());
    step.map_or_else(|| plan.etag.as_deref().filter(|_| plan.path == path), |it| it.etag.as_deref())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `wrote` lists the content of the step's file after each write; `-` means that the file was removed, and `>` that a
    /// file was renamed to its path. `read` is the content that was read from the file. `expected` is the number of entries
    /// that must be returned.
    #[track_caller]
    fn check(wrote: &str, read: Option<&'static str>, expected: usize) {
        let write = |(unit, left): (usize, &str)| OwnWrite {
            unit: unit as u64,
            path: "p/step-1.md".into(),
            left: match left {
                "-" => Left::Nothing,
                ">" => Left::Renamed,
                content => Left::Content(content.to_owned()),
            },
            verb: "set".to_owned(),
            by: "ann".to_owned(),
        };
        let mut own: Vec<_> = wrote.split(' ').enumerate().map(write).collect();
        let other = OwnWrite { path: "q/step-1.md".into(), ..own[0].clone() };
        own.push(other);
        let covered = covered_writes(&own, &PlanId::new("p"), |_| read);
        assert_eq!(covered, own[..expected].iter().collect::<Vec<_>>(), "{wrote}: {read:?}");
    }

    #[test]
    fn writes_after_a_plan_was_read_belong_to_the_next_round() {
        check("one two", Some("one"), 1);
        check("one two", Some("two"), 2);
        check("one - three", None, 2);
        check("one two one", Some("one"), 3);
        // An editor has overwritten the file.
        check("one two", Some("other"), 2);
        check("one", None, 1);
        check("- > two", Some("one"), 2);
        check("- > two", Some("two"), 3);
    }
}
