//! The daemon's files in `.planwatch`: lock, socket and cookies. They are recreated if they are deleted.
//!
//! `.planwatch` itself is created only at the start. If it is deleted, the plans may be in deletion too, and a new
//! file would make `rm -rf` fail. The daemon continues without it, and recreates its files once a command has created
//! the directory. For the same reason it waits for the end of a deletion before it indexes.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::event_loop::{Daemon, Flow};
use crate::api::context::Context;
use crate::api::error::Error;
use crate::disk::{DaemonLock, PlansDir};
use crate::serve::daemon::api::{End, Message};
use crate::serve::daemon::listener::{SocketListener, SocketRequest};
use crate::serve::ipc::protocol::Request;
use crate::serve::ipc::socket_path;

/// The longest pause within one deletion.
const PATIENCE: Duration = Duration::from_millis(200);

/// With deletions all the time, indexing resumes after this.
const LONGEST: Duration = Duration::from_secs(2);

#[derive(Debug)]
pub(crate) struct RuntimeFiles {
    lock: DaemonLock,
    socket: Option<SocketListener>,
}

/// A deletion of many files, as far as events reported it.
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

impl RuntimeFiles {
    /// Takes the lock; `None` if planwatch may not keep files here.
    pub(crate) fn take(plans: &PlansDir) -> Result<Result<Option<Self>, Taken>, Error> {
        if plans.made_runtime_dir().is_none() {
            return Ok(Ok(None));
        }
        let Some(lock) = plans.daemon_lock()? else { return Ok(Err(Taken)) };
        plans.clear_cookies()?;
        Ok(Ok(Some(Self { lock, socket: None })))
    }

    fn is_whole(&self, plans: &PlansDir) -> bool {
        plans.is_locked_by(&self.lock) && self.socket.as_ref().is_none_or(SocketListener::is_there)
    }

    pub(crate) fn leave(self, plans: &PlansDir) {
        if let Some(socket) = self.socket.filter(SocketListener::is_there) {
            plans.remove_socket(socket.path());
        }
        plans.remove_cookies();
    }
}

impl Daemon<'_> {
    /// Opens the socket in place of a dead daemon's. Without a socket, commands read the files themselves.
    pub(crate) fn open_socket(&mut self, now: &Context) {
        let Some(own) = &mut self.own else { return };
        let state = now.plans.state_dir();
        let path = socket_path::socket(&state, self.socket_dirs);
        // Checked before anything is removed there.
        if let Err(untrusted) = socket_path::check(&path, &state) {
            self.observer.without_socket(&untrusted);
            return;
        }
        // The holder of the lock is the only process that may have a socket here.
        now.plans.remove_socket(&path);
        let (sender, claim_batcher) = (self.sender.clone(), self.claim_batcher.clone());
        own.socket = open(&state, &path, move |incoming| match (incoming, &claim_batcher) {
            (SocketRequest { ask: Request::Claim(delegated), reply, peer, .. }, Some(claim_batcher)) => {
                claim_batcher.take(delegated, reply, peer)
            }
            (incoming, _) => sender.send(Message::Request(incoming)).is_ok(),
        });
    }

    /// Schedules the recreation, late enough not to disturb a deletion.
    pub(crate) fn restore_soon(&mut self, now: &Context) {
        if now.plans.identity() == self.identity && self.is_whole(now) {
            return;
        }
        self.verified = None;
        self.index = None;
        self.restore_at = Some(Instant::now() + PATIENCE);
    }

    pub(crate) fn is_whole(&self, now: &Context) -> bool {
        self.own.as_ref().is_some_and(|it| it.is_whole(&now.plans)) && now.plans.is_cookies_there()
    }

    /// Records a deletion. More deletions may follow at once.
    pub(crate) fn note_deletion(&mut self) {
        let now = Instant::now();
        self.deleting = Some(Deleting { first: self.deleting.take().map_or(now, |it| it.first), last: now });
    }

    /// Whether a deletion seems to be in progress. A request that waits for an answer ends the waiting.
    pub(crate) fn is_deleting(&mut self) -> bool {
        let is_over = self.deleting.as_ref().is_none_or(|it| it.due() <= Instant::now());
        if is_over {
            self.deleting = None;
        }
        !is_over && !self.waiting.iter().any(|it| it.has_arrived)
    }

    /// Recreates lock, socket and cookies if they were deleted. Everything is dirty afterwards.
    pub(crate) fn restore_runtime_files(&mut self, now: &Context) -> Flow {
        if now.plans.identity() != self.identity {
            return Flow::Break(End::Gone);
        }
        self.restore_at = None;
        if self.is_whole(now) {
            return Flow::Continue(());
        }
        self.refuse_waiting();
        self.dirty.is_everything = true;
        if self.own.as_ref().is_some_and(|it| it.is_whole(&now.plans)) {
            now.plans.clear_cookies().ok();
        } else {
            self.own = None;
            match RuntimeFiles::take(&now.plans) {
                Ok(Ok(own)) => self.own = own,
                Ok(Err(Taken)) => return Flow::Break(End::Another),
                Err(_) => {}
            }
            self.open_socket(now);
            self.observer.mended();
        }
        if let Some(watcher) = &mut self.watcher {
            watcher.cover_own(&now.plans);
        }
        Flow::Continue(())
    }
}

fn open(
    state: &Path,
    path: &Path,
    pass: impl Fn(SocketRequest) -> bool + Send + Sync + 'static,
) -> Option<SocketListener> {
    SocketListener::open(state, path, Arc::new(pass)).ok()
}
