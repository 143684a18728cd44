//! Tells what changed once it has settled: a save is seen whole, and what looks half-written gets a second look.

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
use crate::serve::daemon::diff::{Teller, left};
use crate::serve::ipc::event::Told;
use crate::serve::ipc::protocol::Answer;
use crate::store::load;

/// How long a plan must be quiet before its changes are told, so that a save is seen whole.
const SETTLE: Duration = Duration::from_millis(40);

/// A plan that is written to all the time is told of all the same.
const LONGEST_SETTLE: Duration = Duration::from_millis(400);

/// What looks half-written, or is gone, is looked at once more after this.
const SECOND_LOOK: Duration = Duration::from_millis(300);

/// How long a command may take from a write to its line in planwatch's log: longer only if it was stopped.
const LONGEST_WRITE: Duration = Duration::from_secs(2);

/// A plan that may have something to tell.
#[derive(Debug, Default)]
pub(crate) struct Untold {
    /// Since when a command may be about to say that a change is its own.
    writer: Option<Instant>,
    /// Since when it is quiet, and since when there is something new; none once that was looked at.
    news: Option<(Instant, Instant)>,
    /// Files that are held back, each since its own first look: one that is half-written says nothing of another.
    pub(crate) held: BTreeMap<Box<str>, Instant>,
}

impl Untold {
    /// When it has to be looked at; none: never.
    pub(crate) fn due(&self) -> Option<Instant> {
        let settled =
            self.news.map(|(quiet_since, first)| (quiet_since + SETTLE).min(first + LONGEST_SETTLE));
        let second = self.held.values().min().map(|it| *it + SECOND_LOOK);
        settled.into_iter().chain(second).min()
    }

    /// Whether something has happened that was not looked at.
    pub(crate) fn has_news(&self) -> bool {
        self.news.is_some()
    }

    fn is_due(&self, now: Instant) -> bool {
        self.due().is_none_or(|it| it <= now)
    }

    /// What has been held back for long enough.
    fn seen_long(&self, now: Instant) -> HashSet<&str> {
        self.held.iter().filter(|(_, since)| **since + SECOND_LOOK <= now).map(|(name, _)| &**name).collect()
    }
}

impl Daemon<'_> {
    /// Notes that something happened in a plan.
    pub(crate) fn note(&mut self, id: PlanId) {
        let now = Instant::now();
        let news = &mut self.untold.entry(id).or_default().news;
        let first = news.map_or(now, |(_, first)| first);
        *news = Some((now, first));
    }

    /// What planwatch's log says of writes, as far as it was not told.
    fn not_yet_told(&mut self, context: &Context) -> Vec<OwnWrite> {
        let is_other = self.own_log.read(&context.plans);
        let own = self.own_log.writes();
        if is_other {
            let logged: HashSet<_> = own.iter().collect();
            self.credited.retain(|it| logged.contains(it));
        }
        own.iter().filter(|it| !self.credited.contains(it)).cloned().collect()
    }

    /// A plan as the last look has it, or as its files do if something may have happened there since.
    fn plan(&mut self, context: &Context, id: &PlanId) -> Result<Option<Plan>, Error> {
        self.indexed(id).map_or_else(|| load::one_plan(context, id), Ok)
    }

    /// What the last look found of a plan; none if that may be another by now.
    fn indexed(&mut self, id: &PlanId) -> Option<Option<Plan>> {
        let sees_all = self.polling.is_none() && self.eyes.as_ref().is_some_and(|it| it.linked().is_empty());
        let is_dirty = || self.dirty.plans.iter().any(|it| PlanId::new(it.clone()) == *id);
        if !sees_all || self.dirty.is_everything || is_dirty() {
            return None;
        }
        // Telling makes no index where somebody deleted it.
        let snapshot = self.index.as_mut().filter(|it| it.has_its_name())?.snapshot().ok()?;
        let commit = snapshot.generation().ok()?;
        (commit.is_some() && commit == self.sure).then(|| snapshot.load_plan(id).ok()).flatten()
    }

    /// Tells of the plans that have settled.
    ///
    /// A command changes a file first and says so in planwatch's log then, with the lock in its hands. So what nobody has
    /// said of a change counts only if it was read when the lock was free.
    pub(crate) fn tell(&mut self) -> Result<Flow, Error> {
        let now = Instant::now();
        let (due, later): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.untold).into_iter().partition(|(_, it)| it.is_due(now));
        self.untold = later.into_iter().collect();
        if due.is_empty() {
            return Ok(Flow::Continue(()));
        }
        let context = self.now()?;
        let (root, mut own) = (context.root_name(), self.not_yet_told(&context));
        for (id, untold) in due {
            let plan = self.plan(&context, &id)?.filter(|it| !it.is_archived);
            let seen_long = untold.seen_long(now);
            let known = self.known.get(&id).cloned();
            let told_by = |own: &[OwnWrite]| {
                let teller = Teller { now: context.now, root: &root, own, seen_long: &seen_long };
                teller.plan(&id, known.as_ref(), plan.as_ref())
            };
            let mut told = told_by(&own);
            if told.is_by_others() {
                let since = untold.writer.unwrap_or(now);
                if since + LONGEST_WRITE > now && context.plans.is_being_written() == Some(true) {
                    let news = Some((now, now));
                    self.untold.insert(id, Untold { writer: Some(since), news, held: untold.held });
                    continue;
                }
                // Whoever wrote what was read has said so by now.
                own = self.not_yet_told(&context);
                told = told_by(&own);
            }
            match told.known {
                Some(known) => drop(self.known.insert(id.clone(), known)),
                None => drop(self.known.remove(&id)),
            }
            if told.held.is_empty() {
                let etag = |path: &Path| etag_of(plan.as_ref(), path);
                self.credited.extend(told_with(&own, &id, etag).into_iter().cloned());
            } else {
                let since = |name: &str| untold.held.get(name).copied().unwrap_or(now);
                let held = told.held.into_iter().map(|name| (name.clone(), since(&name))).collect();
                self.untold.insert(id, Untold { held, ..Untold::default() });
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

/// What planwatch's log says of a plan, up to what was read of it: whatever came after that is told with the next look.
fn told_with<'a>(
    own: &'a [OwnWrite],
    id: &PlanId,
    etag: impl Fn(&Path) -> Option<&'a str>,
) -> Vec<&'a OwnWrite> {
    let of_plan: Vec<_> = own.iter().filter(|it| it.path.starts_with(id.as_str())).collect();
    let is_read = |it: &OwnWrite| it.left.as_deref() == left(etag(&it.path));
    let last_read = |path: &Path| of_plan.iter().rposition(|it| it.path == path && is_read(it));
    let is_told = |(at, it): &(usize, &&OwnWrite)| last_read(&it.path).is_none_or(|last| *at <= last);
    of_plan.iter().enumerate().filter(is_told).map(|(_, it)| *it).collect()
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

    /// Writes of a step in their order, by what each left, `-` for nothing; then what is read, and how many are told with it.
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
        let told = told_with(&own, &PlanId::new("p".to_owned()), |_| read);
        assert_eq!(told, own[..expected].iter().collect::<Vec<_>>(), "{wrote}: {read:?}");
    }

    #[test]
    fn what_was_written_after_a_plan_was_read_is_told_later() {
        check("one two", Some("one"), 1);
        check("one two", Some("two"), 2);
        check("one - three", None, 2);
        check("one two one", Some("one"), 3);
        // An editor has written over it.
        check("one two", Some("other"), 2);
        check("one", None, 1);
    }
}
