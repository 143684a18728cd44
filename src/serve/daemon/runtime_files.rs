//! The daemon's own things in `.planwatch`: made, and made again if somebody deletes them.
//!
//! `.planwatch` itself is made once, at the start. Whoever deletes it may be deleting the plans with it, and would fail
//! if something appeared in what is being removed; so the daemon goes on without, and has its things there again when a
//! command has made the directory. For the same reason deletions are let come to an end before anything is indexed.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::event_loop::{Daemon, Flow};
use crate::api::context::Context;
use crate::api::error::Error;
use crate::disk::{DaemonLock, PlansDir};
use crate::serve::daemon::api::{End, Message};
use crate::serve::daemon::listener::{Asked, Door};
use crate::serve::ipc::protocol::Ask;
use crate::serve::ipc::socket_path;

/// How long a deletion may pause.
const PATIENCE: Duration = Duration::from_millis(200);

/// Where something is deleted all the time it is looked at all the same.
const LONGEST: Duration = Duration::from_secs(2);

#[derive(Debug)]
pub(crate) struct Own {
    lock: DaemonLock,
    door: Option<Door>,
}

/// A deletion of many files, as far as it was told.
#[derive(Debug)]
pub(crate) struct Deleting {
    first: Instant,
    last: Instant,
}

impl Deleting {
    pub(crate) fn due(&self) -> Instant {
        (self.last + PATIENCE).min(self.first + LONGEST)
    }
}

/// Another process has the lock.
#[derive(Debug)]
pub(crate) struct Taken;

impl Own {
    /// Takes the lock; nothing where planwatch may keep nothing.
    pub(crate) fn take(plans: &PlansDir) -> Result<Result<Option<Self>, Taken>, Error> {
        if plans.made_runtime_dir().is_none() {
            return Ok(Ok(None));
        }
        let Some(lock) = plans.daemon_lock()? else { return Ok(Err(Taken)) };
        plans.clear_cookies()?;
        Ok(Ok(Some(Self { lock, door: None })))
    }

    fn is_whole(&self, plans: &PlansDir) -> bool {
        plans.is_locked_by(&self.lock) && self.door.as_ref().is_none_or(Door::is_there)
    }

    pub(crate) fn leave(self, plans: &PlansDir) {
        if let Some(door) = self.door.filter(Door::is_there) {
            plans.remove_socket(door.path());
        }
        plans.remove_cookies();
    }
}

impl Daemon<'_> {
    /// Opens the socket, in the place of a dead daemon's; without one commands look at the files themselves.
    pub(crate) fn open_door(&mut self, now: &Context) {
        let Some(own) = &mut self.own else { return };
        let state = now.plans.state_dir();
        let path = socket_path::socket(&state, self.homes);
        // Before anything is removed there.
        if let Err(untrusted) = socket_path::check(&path, &state) {
            self.listener.without_socket(&untrusted);
            return;
        }
        // Whoever has the lock is the only one who may have a socket here.
        now.plans.remove_socket(&path);
        let (sender, clerk) = (self.sender.clone(), self.clerk.clone());
        own.door = open(&state, &path, move |asked| match (asked, &clerk) {
            (Asked { ask: Ask::Claim(errand), reply, peer, .. }, Some(clerk)) => {
                clerk.take(errand, reply, peer)
            }
            (asked, _) => sender.send(Message::Asked(asked)).is_ok(),
        });
    }

    /// Whoever deletes `.planwatch` is not disturbed while at it.
    pub(crate) fn mend_soon(&mut self, now: &Context) {
        if now.plans.identity() == self.identity && self.is_whole(now) {
            return;
        }
        self.sure = None;
        self.index = None;
        self.mending = Some(Instant::now() + PATIENCE);
    }

    pub(crate) fn is_whole(&self, now: &Context) -> bool {
        self.own.as_ref().is_some_and(|it| it.is_whole(&now.plans)) && now.plans.is_cookies_there()
    }

    /// Notes a deletion: of one the next may follow at once, up to that of all there is.
    pub(crate) fn saw_deletion(&mut self) {
        let now = Instant::now();
        self.deleting = Some(Deleting { first: self.deleting.take().map_or(now, |it| it.first), last: now });
    }

    /// Whether somebody still seems to be deleting; an answer that is asked for does not wait for the end.
    pub(crate) fn is_deleting(&mut self) -> bool {
        let is_over = self.deleting.as_ref().is_none_or(|it| it.due() <= Instant::now());
        if is_over {
            self.deleting = None;
        }
        !is_over && !self.waiting.iter().any(|it| it.has_come)
    }

    /// Looks after lock, socket and cookies; what was deleted is made again, and then nothing else is sure either.
    pub(crate) fn mend_own(&mut self, now: &Context) -> Flow {
        if now.plans.identity() != self.identity {
            return Flow::Break(End::Gone);
        }
        self.mending = None;
        if self.is_whole(now) {
            return Flow::Continue(());
        }
        self.refuse_waiting();
        self.dirty.is_everything = true;
        if self.own.as_ref().is_some_and(|it| it.is_whole(&now.plans)) {
            now.plans.clear_cookies().ok();
        } else {
            self.own = None;
            match Own::take(&now.plans) {
                Ok(Ok(own)) => self.own = own,
                Ok(Err(Taken)) => return Flow::Break(End::Another),
                Err(_) => {}
            }
            self.open_door(now);
            self.listener.mended();
        }
        if let Some(eyes) = &mut self.eyes {
            eyes.cover_own(&now.plans);
        }
        Flow::Continue(())
    }
}

fn open(state: &Path, path: &Path, pass: impl Fn(Asked) -> bool + Send + Sync + 'static) -> Option<Door> {
    Door::open(state, path, Arc::new(pass)).ok()
}
