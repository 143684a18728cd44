//! Defines the write lock, writes drafts of new versions, and reads files that are about to be changed.
//!
//! The module `create` creates files and directories, and `change` changes existing files.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::Duration;

use rustix::io::Errno;

use super::displaced::{self, DRAFT, Kept};
use super::error::DiskError;
use super::file_system::{DiskFile, Open, Stat};
use super::fs_ops::is;
use super::journal::{Recovered, Unfinished};
use super::names::{Content, NamedPath, Origin, VersionName};
use super::plans_dir::{Locks, PlansDir, Snapshot, read_at_rest};
use super::request_key::Keyed;
use super::runtime::Trust;

/// How long and how often to wait for a save in progress.
pub(super) const WAIT: Duration = Duration::from_millis(5);
pub(super) const WAITS: usize = 10;

/// The lock of a plans directory, and the only way to change its plan files.
///
/// When a method has succeeded, its changes of plan files are durable. Drop releases the lock.
#[derive(Debug)]
pub struct Locked<'a> {
    pub(super) plans: &'a PlansDir,
    /// The lock is held until the last clone is dropped.
    pub(super) handle: Arc<dyn DiskFile>,
    also: Arc<Locks>,
    pub(super) trust: Trust,
    pub(super) unfinished: Arc<Vec<Unfinished>>,
    pub kept: Vec<Kept>,
    /// The interrupted batch that was found when the lock was taken, if any.
    pub recovered: Option<Recovered>,
    pub(super) unit: Option<Unit>,
    pub(super) by: String,
    pub(super) records: Option<&'a dyn FileRecords>,
    /// The key of the current request; its changes are recorded with this key.
    pub(super) keyed: Option<Keyed>,
    /// The texts that planwatch put into a file and withdrew during a change with a key.
    pub(super) withdrawn: Vec<Withdrawn>,
    /// Whether a change was made that could not be recorded for undo.
    pub(super) is_unrecorded: AtomicBool,
    /// The unit of the last record that could not be written. Later records of this unit are not written either.
    pub(super) unrecorded_unit: AtomicU64,
}

/// The changes that one `undo` undoes.
#[derive(Clone, Debug)]
pub(super) struct Unit {
    pub(super) id: u64,
    pub(super) verb: String,
    pub(super) at: String,
}

/// What planwatch and git have recorded about files.
pub trait FileRecords: Sync {
    /// The length in bytes when planwatch last read the file; `None` if unknown.
    fn length(&self, relative: &Path) -> Option<u64>;

    /// Returns whether git was the last to write the file, with this content. Such a file is complete.
    fn is_checked_out(&self, relative: &Path, bytes: &[u8]) -> bool;
}

impl fmt::Debug for dyn FileRecords + '_ {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FileRecords")
    }
}

#[derive(Clone, Debug)]
pub struct Written {
    /// The file that was written, relative to the plans directory, with symbolic links resolved.
    pub path: PathBuf,
    pub done: Done,
    pub bytes: Vec<u8>,
    /// The stat that belongs to `bytes`.
    pub stat: Stat,
    /// Saves of other programs that raced with this write and are not in the file.
    pub kept: Vec<Kept>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Done {
    Replaced,
    Created,
    /// The text already contained the change; the file is as its editors saved it.
    Nothing,
    /// The edit returned `None`; the file is as its editors saved it.
    Refused,
}

#[derive(Clone, Debug)]
pub(super) struct Version {
    pub path: PathBuf,
    pub name: VersionName,
}

/// A text that planwatch put into a file and withdrew a moment later.
#[derive(Clone, Debug)]
pub(super) struct Withdrawn {
    pub ours: Vec<u8>,
    /// The other program's text that `ours` had replaced and that was then restored. The other program saved it before
    /// `ours` was in the file.
    pub theirs: Option<Vec<u8>>,
}

#[derive(Debug)]
pub(super) struct Draft {
    pub version: Version,
    pub file: Box<dyn DiskFile>,
}

impl<'a> Locked<'a> {
    /// `lock` is the stat of the state directory's lock file at the moment when it was locked.
    pub(super) fn take(
        plans: &'a PlansDir,
        (handle, also): (Box<dyn DiskFile>, Arc<Locks>),
        lock: &Stat,
        trust: Trust,
    ) -> Result<Self, DiskError> {
        let handle = Arc::from(handle);
        let unfinished = Arc::new(plans.unfinished()?);
        let (kept, by) = (Vec::new(), String::new());
        let mut locked = Self {
            plans,
            handle,
            also,
            trust,
            unfinished,
            kept,
            recovered: None,
            unit: None,
            by,
            records: None,
            keyed: None,
            withdrawn: Vec::new(),
            is_unrecorded: AtomicBool::default(),
            unrecorded_unit: AtomicU64::default(),
        };
        locked.recover()?;
        locked.sweep(lock);
        Ok(locked)
    }

    /// The same lock for another thread, which changes other files. The lock is released when the last of these values
    /// is dropped.
    ///
    /// The thread's writes form a unit of their own. `nth` is added to the unit's id, so that the ids of several threads
    /// differ even if the clock does not advance.
    #[must_use]
    pub fn for_thread(&self, nth: u64, (verb, at, by): (&str, &str, &str)) -> Self {
        let (handle, also) = (Arc::clone(&self.handle), Arc::clone(&self.also));
        let (unfinished, by) = (Arc::clone(&self.unfinished), by.to_owned());
        let mut other = Self {
            handle,
            also,
            unfinished,
            by,
            kept: Vec::new(),
            recovered: None,
            unit: None,
            keyed: None,
            withdrawn: Vec::new(),
            is_unrecorded: AtomicBool::default(),
            unrecorded_unit: AtomicU64::default(),
            ..*self
        };
        other.begin(verb, at);
        if let Some(unit) = &mut other.unit {
            unit.id += nth;
        }
        other
    }

    pub(super) fn real_place(&self, relative: &Path) -> Result<PathBuf, DiskError> {
        let Some((parent, name)) = relative.parent().zip(relative.file_name()) else {
            return Err(DiskError::BadPath { path: relative.to_path_buf() });
        };
        if parent.as_os_str().is_empty() {
            return Ok(relative.to_path_buf());
        }
        match self.plans.resolve(parent) {
            Ok(real) => Ok(real.join(name)),
            Err(DiskError::NotFound { .. }) => Ok(self.real_place(parent)?.join(name)),
            Err(error) => Err(error),
        }
    }

    /// Writes a new version of a file into `displaced/`, and syncs it. If `like` is given, the version gets the mode and,
    /// as far as permitted, the owner of `like`, and the extended attributes of the file.
    pub(super) fn draft(
        &self,
        id: u64,
        real: &Path,
        base: Content,
        bytes: &[u8],
        like: Option<&Snapshot>,
    ) -> Result<Draft, DiskError> {
        let target = self.plans.root.join(real);
        let failed = |error| DiskError::writing(&target, error);
        let mode = if like.is_some() { DRAFT | 0o600 } else { 0o666 };
        let (new, path) = (Content::of(bytes), NamedPath::Whole(real.to_path_buf()));
        let name = VersionName { origin: Origin::Clean, id, base, new, path };
        let draft = self.open_draft(name, mode).map_err(failed)?;
        let written = draft.file.write(bytes).and_then(|()| {
            if let Some(like) = like {
                draft.file.copy_attributes_from(&like.stat, &target)?;
            }
            draft.file.sync()
        });
        if let Err(error) = written {
            self.plans.disk.remove(&draft.version.path).ok();
            return Err(failed(error));
        }
        Ok(draft)
    }

    fn open_draft(&self, mut name: VersionName, mode: u32) -> std::io::Result<Draft> {
        let disk = &*self.plans.disk;
        let dir = displaced::dir(self.plans);
        loop {
            let path = dir.join(name.encode());
            match disk.open(&path, Open::New(mode)) {
                Err(error) if is(&error, Errno::EXIST) => name.id += 1,
                Err(error) if is(&error, Errno::NOENT) && disk.lstat(&dir).is_err() => {
                    disk.make_dir(&dir, 0o700)?;
                }
                Err(error) => return Err(error),
                Ok(file) => return Ok(Draft { version: Version { path, name }, file }),
            }
        }
    }

    /// An id for a version; the caller increments it if it is taken.
    pub(super) fn fresh_id(&self) -> u64 {
        u64::try_from(self.plans.disk.now_ns()).unwrap_or(0)
    }

    /// Reads a file that is about to be changed. If the file is being saved, waits for the save to finish.
    ///
    /// Many editors rename a file away and then create it again, so a missing file is usually a save in progress. A
    /// file in another owner's unfinished batch is rejected, whether it exists or not.
    pub(super) fn read_for_change(&self, relative: &Path) -> Result<Snapshot, DiskError> {
        self.check_finished(relative)?;
        let mut last = self.plans.read(relative);
        for _ in 0..WAITS {
            match &last {
                Ok(found) if self.is_half_saved(&found.bytes, &found.stat) => {}
                Err(DiskError::NotFound { .. } | DiskError::FileChanged { .. }) => {}
                _ => break,
            }
            self.plans.disk.pause(WAIT);
            last = self.plans.read(relative);
        }
        if let Ok(found) = &last {
            self.check_finished(&found.real)?;
        }
        last
    }

    /// Whether a text looks like the beginning of a save.
    ///
    /// An editor that first truncates a file leaves it empty for a moment. The kernel then makes a long write visible
    /// page by page, so the length is a multiple of the page size until the write is complete.
    fn is_half_saved(&self, bytes: &[u8], stat: &Stat) -> bool {
        const PAGE: usize = 4096;
        const YOUNG: i128 = 1_000_000_000;
        bytes.len().is_multiple_of(PAGE) && self.plans.disk.now_ns() - stat.mtime_ns < YOUNG
    }

    /// Reads a version that an exchange displaced. If the version is being saved, waits for the save to finish.
    pub(super) fn read_save(&self, at: &Path) -> Result<(Vec<u8>, Stat), DiskError> {
        let mut found = self.read_displaced(at)?;
        for _ in 0..WAITS {
            if !self.is_half_saved(&found.0, &found.1) {
                break;
            }
            self.plans.disk.pause(WAIT);
            found = self.read_displaced(at)?;
        }
        Ok(found)
    }

    /// Reads a version that a write displaces; tries more often than [`PlansDir::read`], because the write has begun.
    pub(super) fn read_displaced(&self, at: &Path) -> Result<(Vec<u8>, Stat), DiskError> {
        for _ in 0..20 {
            if let Some(found) = read_at_rest(&*self.plans.disk, at)? {
                return Ok(found);
            }
            self.plans.disk.pause(Duration::from_millis(1));
        }
        Err(DiskError::FileChanged { path: at.to_path_buf() })
    }
}
