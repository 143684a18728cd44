//! The model with another process that acts at a moment that the test chooses.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::*;
use crate::disk::PlansDir;

/// When the other process acts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum When {
    /// Once, before this call. If the first process has already taken the lock of the plans directory, the other process
    /// does not act, because the lock excludes it.
    Call(u64),
    /// Each time before the lock of the plans directory is taken.
    EachLock,
}

/// The calls of one process, with another process in between.
struct Meddled {
    disk: ModelDisk,
    when: When,
    act: Box<dyn Fn() + Send + Sync>,
    calls: AtomicU64,
    is_locked: AtomicBool,
}

impl fmt::Debug for Meddled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Meddled").field("when", &self.when).finish_non_exhaustive()
    }
}

impl Machine {
    /// Opens the plans directory for a process. `act` is what the other process does.
    pub(crate) fn meddled_plans(&self, when: When, act: impl Fn() + Send + Sync + 'static) -> PlansDir {
        let (calls, is_locked) = (AtomicU64::new(0), AtomicBool::new(false));
        let disk = Meddled { disk: self.disk(), when, act: Box::new(act), calls, is_locked };
        PlansDir::open(Arc::new(disk), Path::new("/plans"), Some(Path::new("/state"))).unwrap()
    }
}

impl Meddled {
    fn before(&self) -> &ModelDisk {
        let call = self.calls.fetch_add(1, Ordering::Relaxed) + 1;
        if self.when == When::Call(call) && !self.is_locked.load(Ordering::Relaxed) {
            (self.act)();
        }
        &self.disk
    }
}

impl Disk for Meddled {
    fn canonical(&self, path: &Path) -> io::Result<PathBuf> {
        self.before().canonical(path)
    }

    fn lstat(&self, path: &Path) -> io::Result<Stat> {
        self.before().lstat(path)
    }

    fn read_link(&self, path: &Path) -> io::Result<PathBuf> {
        self.before().read_link(path)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<(OsString, io::Result<Stat>)>> {
        self.before().list(dir)
    }

    fn names(&self, dir: &Path) -> io::Result<Vec<OsString>> {
        self.before().names(dir)
    }

    fn open(&self, path: &Path, how: Open) -> io::Result<Box<dyn DiskFile>> {
        self.before().open(path, how)
    }

    fn make_dir(&self, path: &Path, mode: u32) -> io::Result<()> {
        self.before().make_dir(path, mode)
    }

    fn rename(&self, from: &Path, to: &Path, how: Rename) -> io::Result<()> {
        self.before().rename(from, to, how)
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.before().link(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.before().remove(path)
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        self.before().remove_dir(path)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        self.before().sync_dir(dir)
    }

    fn set_mode(&self, path: &Path, mode: u32) -> io::Result<()> {
        self.before().set_mode(path, mode)
    }

    fn lock(&self, path: &Path, patience: Duration) -> io::Result<Option<Box<dyn DiskFile>>> {
        let is_writers = path.ends_with(".planwatch/lock");
        if self.when == When::EachLock && is_writers {
            (self.act)();
        }
        let disk = self.before();
        self.is_locked.fetch_or(is_writers, Ordering::Relaxed);
        disk.lock(path, patience)
    }

    fn now_ns(&self) -> i128 {
        self.disk.now_ns()
    }

    fn pause(&self, time: Duration) {
        self.disk.pause(time);
    }

    fn random(&self, bytes: &mut [u8]) -> io::Result<()> {
        self.disk.random(bytes)
    }
}
