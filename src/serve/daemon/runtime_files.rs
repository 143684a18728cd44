//! The daemon's files in `.planwatch`: lock, socket and cookies. They are recreated if they are deleted.
//!
//! The daemon creates the directory `.planwatch` only when it starts. If that directory is deleted, the plans may be
//! about to be deleted too, and a new file would make `rm -rf` fail. The daemon therefore continues without that
//! directory, and recreates its own files once a command has created the directory. For the same reason, the daemon
//! delays indexing while files are being deleted.

use std::time::Instant;

use crate::api::error::Error;
use crate::disk::{DaemonLock, PlansDir};
use crate::serve::daemon::api::{End, Exit, Observer};
use crate::serve::daemon::listener::{Forward, SocketListener};
use crate::serve::daemon::times::{DELETION_LIMIT, DELETION_PAUSE};
use crate::serve::ipc::socket_path::{self, SocketDirs};

pub(crate) struct RuntimeFiles {
    /// `None` in three cases: planwatch cannot or must not keep files in `.planwatch`, that directory is missing, or the
    /// files could not be recreated.
    held: Option<OwnedFiles>,
    socket_dirs: SocketDirs,
    /// Forwards the requests from the socket.
    forward: Forward,
    /// When to recreate deleted files.
    pub(crate) restore_at: Option<Instant>,
    pub(crate) deletion: Option<Deletion>,
}

struct OwnedFiles {
    lock: DaemonLock,
    /// `None` before the socket is opened, and if it cannot be opened.
    socket: Option<SocketListener>,
}

/// A deletion of possibly many files: the times of its first and its last event so far.
pub(crate) struct Deletion {
    first: Instant,
    last: Instant,
}

impl Deletion {
    /// When the deletion counts as finished.
    fn due(&self) -> Instant {
        (self.last + DELETION_PAUSE).min(self.first + DELETION_LIMIT)
    }
}

impl RuntimeFiles {
    /// Takes the lock. The socket is opened later.
    pub(crate) fn begin(plans: &PlansDir, socket_dirs: &SocketDirs, forward: Forward) -> Result<Self, Exit> {
        let socket_dirs = socket_dirs.clone();
        Ok(Self { held: take(plans)?, socket_dirs, forward, restore_at: None, deletion: None })
    }

    /// Whether the daemon has its files in `.planwatch`.
    pub(crate) fn are_held(&self) -> bool {
        self.held.is_some()
    }

    pub(crate) fn are_whole(&self, plans: &PlansDir) -> bool {
        self.is_reachable(plans) && plans.has_cookie_directory()
    }

    /// Whether the lock file, and the socket if one was opened, are still those of this daemon.
    fn is_reachable(&self, plans: &PlansDir) -> bool {
        self.held.as_ref().is_some_and(|it| {
            plans.is_locked_by(&it.lock) && it.socket.as_ref().is_none_or(SocketListener::is_there)
        })
    }

    /// Opens the socket; first removes the socket of a dead daemon. Without a socket, commands read the files themselves.
    pub(crate) fn open_socket(&mut self, plans: &PlansDir, observer: &mut dyn Observer) {
        let Some(held) = &mut self.held else { return };
        let state = plans.state_dir();
        let path = socket_path::socket(&state, &self.socket_dirs);
        // The directory is checked before anything in it is removed.
        if let Err(untrusted) = socket_path::check(&path, &state) {
            observer.without_socket(&untrusted);
            return;
        }
        // Only the holder of the lock may have a socket here, and this process holds the lock.
        plans.remove_socket(&path);
        held.socket = SocketListener::open(&state, &path, self.forward.clone()).ok();
    }

    /// Schedules [`Self::restore`] after a pause, because a deletion may still be going on.
    pub(crate) fn restore_soon(&mut self) {
        self.restore_at = Some(Instant::now() + DELETION_PAUSE);
    }

    /// Recreates the files that are missing or no longer this daemon's; returns false if there are none.
    pub(crate) fn restore(&mut self, plans: &PlansDir, observer: &mut dyn Observer) -> Result<bool, End> {
        self.restore_at = None;
        if self.are_whole(plans) {
            return Ok(false);
        }
        if self.is_reachable(plans) {
            plans.clear_cookies().ok();
            return Ok(true);
        }
        // The old lock is released before the new one is taken.
        self.held = None;
        self.held = match take(plans) {
            Ok(held) => held,
            Err(Exit::End(end)) => return Err(end),
            Err(Exit::Failed(_)) => None,
        };
        self.open_socket(plans, observer);
        observer.mended();
        Ok(true)
    }

    /// Records that something was deleted. This begins or continues a [`Deletion`].
    pub(crate) fn note_deletion(&mut self) {
        let now = Instant::now();
        self.deletion = Some(Deletion { first: self.deletion.take().map_or(now, |it| it.first), last: now });
    }

    pub(crate) fn is_deleting(&mut self) -> bool {
        self.deletion.take_if(|it| it.due() <= Instant::now());
        self.deletion.is_some()
    }

    /// When the deletion in progress counts as finished; `None` if nothing is being deleted.
    pub(crate) fn deletion_due(&self) -> Option<Instant> {
        self.deletion.as_ref().map(Deletion::due)
    }

    /// Removes the files and releases the lock.
    pub(crate) fn remove(&mut self, plans: &PlansDir) {
        let Some(held) = self.held.take() else { return };
        if let Some(socket) = held.socket.filter(SocketListener::is_there) {
            plans.remove_socket(socket.path());
        }
        plans.remove_cookies();
    }
}

/// Takes the lock. Returns `None` if planwatch cannot keep files in `.planwatch` or is not allowed to, or if that directory
/// was deleted and must not be recreated.
fn take(plans: &PlansDir) -> Result<Option<OwnedFiles>, Exit> {
    if plans.made_runtime_dir().is_none() {
        return Ok(None);
    }
    let lock = plans.daemon_lock().map_err(Error::from)?.ok_or(End::Another)?;
    plans.clear_cookies().map_err(Error::from)?;
    Ok(Some(OwnedFiles { lock, socket: None }))
}
