//! Publishes changes once they have settled, so that a save is seen whole. What looks half-written is checked a second
//! time.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::event_loop::{Daemon, Flow};
use crate::api::context::Context;
use crate::api::error::Error;
use crate::disk::OwnWrite;
use crate::plan::id::PlanId;
use crate::plan::model::Plan;
use crate::serve::daemon::api::End;
use crate::serve::daemon::diff::{Differ, left};
use crate::serve::ipc::event::Notification;
use crate::serve::ipc::protocol::Answer;
use crate::store::load;

/// How long a plan must be quiet before its changes are published.
const SETTLE: Duration = Duration::from_millis(40);

/// A plan that changes all the time is published after this delay.
const LONGEST_SETTLE: Duration = Duration::from_millis(400);

/// The delay before a file that looks half-written, or is gone, is checked again.
const SECOND_LOOK: Duration = Duration::from_millis(300);

/// The longest time between a command's write and its log entry, unless the command was stopped.
const LONGEST_WRITE: Duration = Duration::from_secs(2);

/// A plan that may have changes to publish.
#[derive(Debug, Default)]
pub(crate) struct PendingPlan {
    /// Since when a writer holds the lock that may yet log the change as its own.
    writer: Option<Instant>,
    /// The time of the last and of the first unhandled event; `None` once they are handled.
    news: Option<(Instant, Instant)>,
    /// Files that are held back, each since its first check. Files are held independently of each other.
    pub(crate) held: BTreeMap<Box<str>, Instant>,
}

impl PendingPlan {
    /// When to check it; `None`: never.
    pub(crate) fn due(&self) -> Option<Instant> {
        let settled =
            self.news.map(|(quiet_since, first)| (quiet_since + SETTLE).min(first + LONGEST_SETTLE));
        let second = self.held.values().min().map(|it| *it + SECOND_LOOK);
        settled.into_iter().chain(second).min()
    }

    /// Whether there are unhandled events.
    pub(crate) fn has_news(&self) -> bool {
        self.news.is_some()
    }

    fn is_due(&self, now: Instant) -> bool {
        self.due().is_none_or(|it| it <= now)
    }

    /// The files that were held back long enough.
    fn overdue(&self, now: Instant) -> HashSet<&str> {
        self.held.iter().filter(|(_, since)| **since + SECOND_LOOK <= now).map(|(name, _)| &**name).collect()
    }
}

impl Daemon<'_> {
    /// Marks a plan as changed.
    pub(crate) fn mark_pending(&mut self, id: PlanId) {
        let now = Instant::now();
        let news = &mut self.pending.entry(id).or_default().news;
        let first = news.map_or(now, |(_, first)| first);
        *news = Some((now, first));
    }

    /// The entries of the write log that are not published yet.
    fn unpublished_writes(&mut self, context: &Context) -> Vec<OwnWrite> {
        let is_other = self.own_log.read(&context.plans);
        let own = self.own_log.writes();
        if is_other {
            let logged: HashSet<_> = own.iter().collect();
            self.attributed.retain(|it| logged.contains(it));
        }
        own.iter().filter(|it| !self.attributed.contains(it)).cloned().collect()
    }

    /// Returns the plan as indexed, or from its files if it may have changed since.
    fn plan(&mut self, context: &Context, id: &PlanId) -> Result<Option<Plan>, Error> {
        self.indexed(id).map_or_else(|| load::one_plan(context, id), Ok)
    }

    /// Returns the plan as last indexed; `None` if it may have changed since.
    fn indexed(&mut self, id: &PlanId) -> Option<Option<Plan>> {
        let sees_all =
            self.polling.is_none() && self.watcher.as_ref().is_some_and(|it| it.linked().is_empty());
        let is_dirty = || self.dirty.plans.iter().any(|it| PlanId::new(it.clone()) == *id);
        if !sees_all || self.dirty.is_everything || is_dirty() {
            return None;
        }
        // Publishing must not recreate an index that the user deleted.
        let snapshot = self.index.as_mut().filter(|it| it.has_its_name())?.snapshot().ok()?;
        let commit = snapshot.generation().ok()?;
        (commit.is_some() && commit == self.verified).then(|| snapshot.load_plan(id).ok()).flatten()
    }

    /// Publishes the plans that have settled.
    ///
    /// A command writes a file first and its log entry afterwards, both under the lock. A change without a log entry
    /// therefore counts as an outside edit only if it was read while the lock was free.
    pub(crate) fn publish(&mut self) -> Result<Flow, Error> {
        let now = Instant::now();
        let (due, later): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.pending).into_iter().partition(|(_, it)| it.is_due(now));
        self.pending = later.into_iter().collect();
        if due.is_empty() {
            return Ok(Flow::Continue(()));
        }
        let context = self.now()?;
        let (root, mut own) = (context.root_name(), self.unpublished_writes(&context));
        for (id, pending) in due {
            let plan = self.plan(&context, &id)?.filter(|it| !it.is_archived);
            let overdue = pending.overdue(now);
            let baseline = self.baseline.get(&id).cloned();
            let diff_with = |own: &[OwnWrite]| {
                let teller = Differ { now: context.now, root: &root, own, overdue: &overdue };
                teller.plan(&id, baseline.as_ref(), plan.as_ref())
            };
            let mut diff = diff_with(&own);
            if diff.has_outside_change() {
                let since = pending.writer.unwrap_or(now);
                if since + LONGEST_WRITE > now && context.plans.is_being_written() == Some(true) {
                    let news = Some((now, now));
                    self.pending.insert(id, PendingPlan { writer: Some(since), news, held: pending.held });
                    continue;
                }
                // The lock is free, so the log entry of any writer is there by now.
                own = self.unpublished_writes(&context);
                diff = diff_with(&own);
            }
            match diff.baseline {
                Some(baseline) => drop(self.baseline.insert(id.clone(), baseline)),
                None => drop(self.baseline.remove(&id)),
            }
            if diff.held.is_empty() {
                let etag = |path: &Path| etag_of(plan.as_ref(), path);
                self.attributed.extend(covered_writes(&own, &id, etag).into_iter().cloned());
            } else {
                let since = |name: &str| pending.held.get(name).copied().unwrap_or(now);
                let held = diff.held.into_iter().map(|name| (name.clone(), since(&name))).collect();
                self.pending.insert(id, PendingPlan { held, ..PendingPlan::default() });
            }
            for event in &diff.events {
                if let Some(feed) = &self.feed {
                    feed.publish(Notification::Event(Arc::new(event.clone())));
                }
                let json = event.to_json();
                self.followers.retain(|it| it.reply.try_send(Answer::Event { event: json.clone() }).is_ok());
                if self.observer.event(event).is_break() {
                    return Ok(Flow::Break(End::BrokenOff));
                }
            }
        }
        Ok(Flow::Continue(()))
    }
}

/// The log entries of a plan, up to the content that was read. Later entries belong to the next round.
fn covered_writes<'a>(
    own: &'a [OwnWrite],
    id: &PlanId,
    etag: impl Fn(&Path) -> Option<&'a str>,
) -> Vec<&'a OwnWrite> {
    let of_plan: Vec<_> = own.iter().filter(|it| it.path.starts_with(id.as_str())).collect();
    let is_read = |it: &OwnWrite| it.left.as_deref() == left(etag(&it.path));
    let last_read = |path: &Path| of_plan.iter().rposition(|it| it.path == path && is_read(it));
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

    /// `wrote` lists the writes of a step by what each left, `-` for nothing. `expected` is the number of entries
    /// covered by `read`.
    #[track_caller]
    fn check(wrote: &str, read: Option<&'static str>, expected: usize) {
        let write = |(unit, left): (usize, &str)| OwnWrite {
            unit: unit as u64,
            path: "p/step-1.md".into(),
            left: (left != "-").then(|| left.to_owned()),
            verb: "set".to_owned(),
            by: "ann".to_owned(),
        };
        let mut own: Vec<_> = wrote.split(' ').enumerate().map(write).collect();
        let other = OwnWrite { path: "q/step-1.md".into(), ..own[0].clone() };
        own.push(other);
        let covered = covered_writes(&own, &PlanId::new("p".to_owned()), |_| read);
        assert_eq!(covered, own[..expected].iter().collect::<Vec<_>>(), "{wrote}: {read:?}");
    }

    #[test]
    fn writes_after_a_plan_was_read_belong_to_the_next_round() {
        check("one two", Some("one"), 1);
        check("one two", Some("two"), 2);
        check("one - three", None, 2);
        check("one two one", Some("one"), 3);
        // An editor has overwritten it.
        check("one two", Some("other"), 2);
        check("one", None, 1);
    }
}
