//! How the daemon learns of changes: events of the file system, a check of the mounts, and polling where events are
//! missing.

use std::sync::mpsc::Sender;
use std::time::Instant;

use crate::api::context::Context;
use crate::disk::{Mounts, PlansDir};
use crate::serve::daemon::api::Observer;
use crate::serve::daemon::messages::Message;
use crate::serve::daemon::times::POLL_INTERVAL;
use crate::serve::daemon::watcher::event::{WatchEvent, WriteKind};
use crate::serve::daemon::watcher::system::{Raw, Watcher, write_kind};

pub(crate) struct Watching {
    /// `None` if the system reports no events.
    watcher: Option<Watcher>,
    mounts: Mounts,
    /// Device and inode of the watched directory.
    identity: Option<(u64, u64)>,
    polling: Option<Polling>,
}

struct Polling {
    why: String,
    next: Instant,
}

impl Watching {
    /// Sets the watches. The events arrive as messages.
    pub(crate) fn begin(now: &Context, sender: Sender<Message>, observer: &mut dyn Observer) -> Self {
        let identity = now.plans.identity();
        let mut watching = Self { watcher: None, mounts: Mounts::default(), identity, polling: None };
        match Watcher::open(now.plans.root(), move |batch| sender.send(Message::Seen(batch)).is_ok()) {
            Err(error) => watching.poll(&format!("the system reports no events: {error}"), observer),
            Ok(mut watcher) => {
                watcher.cover(&now.plans);
                watching.watcher = Some(watcher);
            }
        }
        watching.have_mounts_changed(&now.plans);
        let file_system = now.plans.file_system();
        if file_system.is_remote {
            let why = format!("on {}, writes from other machines cause no events here", file_system.name);
            watching.poll(&why, observer);
        }
        watching.check_coverage(observer);
        watching
    }

    /// Whether the watched directory is gone or another one is in its place.
    pub(crate) fn is_replaced(&self, plans: &PlansDir) -> bool {
        plans.identity() != self.identity
    }

    /// Whether every change causes an event.
    pub(crate) fn sees_every_change(&self) -> bool {
        self.polling.is_none()
            && self.mounts.below().is_empty()
            && self.is_watching()
            && self.linked().is_empty()
    }

    pub(crate) fn is_watching(&self) -> bool {
        self.watcher.is_some()
    }

    pub(crate) fn watch_hard_links(&mut self, plans: &PlansDir, files: &[String]) -> Vec<String> {
        let watched = self.watcher.iter_mut().flat_map(|it| it.watch_hard_links(plans, files));
        watched.collect()
    }

    pub(crate) fn linked(&self) -> Vec<String> {
        self.watcher.iter().flat_map(|it| it.linked()).cloned().collect()
    }

    /// Interprets a batch, and leaves out events without a meaning. Returns for each other event what it means, how the
    /// file was written, and whether the event is a deletion.
    pub(crate) fn interpret(
        &mut self,
        plans: &PlansDir,
        batch: &[Raw],
    ) -> Vec<(WatchEvent, WriteKind, bool)> {
        let Some(watcher) = &mut self.watcher else { return Vec::new() };
        let interpreted = batch.iter().enumerate().filter_map(|(at, raw)| {
            let event = watcher.interpret(plans, raw)?;
            Some((event, write_kind(batch, at), raw.is_deletion()))
        });
        interpreted.collect()
    }

    /// Checks which file systems are mounted below the plans directory, because no event reports a mount. If the
    /// mounts have changed, watches the directories again.
    pub(crate) fn have_mounts_changed(&mut self, plans: &PlansDir) -> bool {
        let have_changed = self.mounts.look(plans.root());
        if let (Some(watcher), true) = (&mut self.watcher, have_changed) {
            watcher.cover(plans);
            self.mounts.below().iter().for_each(|it| watcher.watch_file(it));
        }
        have_changed
    }

    /// Watches the daemon's own files again after they were recreated.
    pub(crate) fn cover_runtime_files(&mut self, plans: &PlansDir) {
        if let Some(watcher) = &mut self.watcher {
            watcher.cover_own(plans);
        }
    }

    /// Starts polling if some directories cannot be watched.
    pub(crate) fn check_coverage(&mut self, observer: &mut dyn Observer) {
        let gap = self.watcher.as_ref().and_then(|it| it.coverage_gap().map(ToOwned::to_owned));
        if let Some(why) = gap {
            self.poll(&why, observer);
        }
    }

    /// Starts polling, and reports it once.
    pub(crate) fn poll(&mut self, why: &str, observer: &mut dyn Observer) {
        if self.polling.is_none() {
            observer.polling(Some(why));
            self.polling = Some(Polling { why: why.to_owned(), next: Instant::now() + POLL_INTERVAL });
        }
    }

    pub(crate) fn polling_reason(&self) -> Option<&str> {
        self.polling.as_ref().map(|it| it.why.as_str())
    }

    pub(crate) fn next_poll(&self) -> Option<Instant> {
        self.polling.as_ref().map(|it| it.next)
    }

    /// Begins a round of polling; returns whether events may work again.
    pub(crate) fn begin_round(&mut self, plans: &PlansDir) -> bool {
        if let Some(polling) = &mut self.polling {
            polling.next = Instant::now() + POLL_INTERVAL;
        }
        if let Some(watcher) = &mut self.watcher {
            watcher.cover(plans);
        }
        self.is_complete(plans)
    }

    /// Ends polling if the watches are complete. Called when the event of a probe has arrived. A probe is a cookie that only
    /// tests whether events arrive.
    pub(crate) fn stop_polling(&mut self, plans: &PlansDir, observer: &mut dyn Observer) {
        if self.polling.is_some() && self.is_complete(plans) {
            self.polling = None;
            observer.polling(None);
        }
    }

    fn is_complete(&self, plans: &PlansDir) -> bool {
        self.watcher.as_ref().is_some_and(|it| it.coverage_gap().is_none()) && !plans.file_system().is_remote
    }
}
