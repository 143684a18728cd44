//! Taking the lock of a plans directory.

use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use rustix::io::Errno;

use super::error::DiskError;
use super::file_system::{DiskFile, Stat};
use super::fs_ops::is;
use super::plans_dir::{Making, PlansDir, lacks_lock};
use super::runtime;
use super::write_lock::Locked;

/// The maximum number of tries to take the lock. A try fails if `.planwatch` is deleted meanwhile.
const LOCK_TRIES: usize = 100;

/// The time after which waiting for the lock is reported, and the time after which locking fails.
const REPORT_WAIT_AFTER: Duration = Duration::from_secs(1);
const LOCK_TIMEOUT: Duration = Duration::from_secs(30);

/// When the wait for the lock began, and the callback that reports the wait once.
struct LockWait<'a> {
    since: Instant,
    waiting: Option<&'a mut dyn FnMut()>,
}

impl PlansDir {
    /// Takes the lock that every write needs. If that takes longer than a second, `waiting` is called once.
    ///
    /// The lock has two parts. Writers first lock the file `.planwatch/lock`, and also the lock file of their own state
    /// directory if that is another directory. Then they lock the plans directory itself. The second part also excludes
    /// users who cannot open `.planwatch/lock`, and it stays locked if `.planwatch` is deleted.
    ///
    /// After taking the lock, finishes or undoes an interrupted batch, and cleans up displaced versions.
    pub fn lock(&self, waiting: &mut dyn FnMut()) -> Result<Locked<'_>, DiskError> {
        let mut wait = LockWait { since: Instant::now(), waiting: Some(waiting) };
        for _ in 0..LOCK_TRIES {
            let home = self.prepare(Making::Anyway)?;
            // `prepare` may have waited as well; the time limit starts after it.
            wait.since = Instant::now();
            let own = home.dir.join(runtime::LOCK);
            let shared = self.root.join(self.runtime).join(runtime::LOCK);
            let mut also = Vec::new();
            if own != shared {
                match self.wait_for(&shared, &mut wait) {
                    // For example, `.planwatch` is another user's or is not a directory. Then only the other two locks
                    // are taken.
                    Err(error) if is_out_of_reach(&error) => {}
                    Err(error) => return Err(DiskError::writing(&shared, error)),
                    Ok(None) => return Err(DiskError::Locked { path: shared }),
                    Ok(Some(taken)) => also.push((shared.clone(), taken)),
                }
            }
            let handle = match self.wait_for(&own, &mut wait) {
                // The state directory was deleted after it was prepared.
                Err(error) if is(&error, Errno::NOENT) => continue,
                Err(error) => return Err(DiskError::writing(&own, error)),
                Ok(None) => return Err(DiskError::Locked { path: own }),
                Ok(Some(handle)) => handle,
            };
            match self.wait_for(&self.root, &mut wait) {
                // NFS has no locks on directories. There, only `.planwatch/lock` excludes other processes.
                Err(error) if lacks_lock(&error) && (own == shared || !also.is_empty()) => {}
                Err(error) => return Err(DiskError::writing(&self.root, error)),
                Ok(None) => return Err(DiskError::Locked { path: self.root.clone() }),
                Ok(Some(taken)) => also.push((self.root.clone(), taken)),
            }
            let mine = handle.stat().map_err(|error| DiskError::reading(&own, error))?;
            // If the locked file is no longer at its path, other processes lock another file.
            let is_there = |path: &Path, locked: &Stat| {
                self.disk.lstat(path).is_ok_and(|there| (there.ino, there.dev) == (locked.ino, locked.dev))
            };
            let is_good =
                |(path, it): &(PathBuf, Box<dyn DiskFile>)| it.stat().is_ok_and(|it| is_there(path, &it));
            if is_there(&own, &mine) && also.iter().all(is_good) {
                let also = Arc::new(also.into_iter().map(|it| it.1).collect());
                *self.held.lock().unwrap_or_else(PoisonError::into_inner) = Arc::downgrade(&also);
                runtime::restrict_modes(&*self.disk, &home.dir);
                return Locked::take(self, (handle, also), &mine, home.trust);
            }
        }
        Err(DiskError::Locked { path: self.root.join(self.runtime).join(runtime::LOCK) })
    }

    fn wait_for(&self, path: &Path, wait: &mut LockWait<'_>) -> std::io::Result<Option<Box<dyn DiskFile>>> {
        if let Some(waiting) = wait.waiting.as_mut() {
            if let Some(taken) = self.disk.lock(path, REPORT_WAIT_AFTER)? {
                return Ok(Some(taken));
            }
            waiting();
            wait.waiting = None;
        }
        self.disk.lock(path, LOCK_TIMEOUT.saturating_sub(wait.since.elapsed()))
    }
}

/// Whether a lock file cannot be used here: it belongs to another user, its file system is read-only, or a part of its
/// path is missing, is a symbolic link or is not a directory.
fn is_out_of_reach(error: &std::io::Error) -> bool {
    const REASONS: [Errno; 6] =
        [Errno::ACCESS, Errno::PERM, Errno::ROFS, Errno::NOENT, Errno::NOTDIR, Errno::LOOP];
    REASONS.iter().any(|errno| is(error, *errno))
}
