//! A directory of small files, the records, that processes share. `put` is atomic: a reader sees the record whole or not
//! at all. One lock serializes the writers, but each [`HeldRecord`] has a lock of its own.
//!
//! Records are not synced, so a power cut can remove the newest records or leave one empty. Code that uses this module
//! must stay safe if records are missing.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use rustix::io::Errno;

use super::error::DiskError;
use super::file_system::{Disk, DiskFile, FileKind, Open, Rename, Stat};
use super::fs_ops::{Safe, is, make_dirs, read_own, write_new};
use super::plans_dir::PlansDir;

/// The size limit of a record, in bytes. Logs ([`Records::read_log`]) have no limit here: the code that writes them
/// shortens them.
const LIMIT: u64 = 16 << 20;

const LOCK: &str = "lock";

/// How long to wait for the lock. Other processes need it only for one or two writes.
const LOCK_TIMEOUT: Duration = Duration::from_secs(30);

/// The maximum number of attempts to take the lock. An attempt fails if the directory is missing, or if another process
/// removes it meanwhile.
const LOCK_TRIES: usize = 100;

/// A directory of records, created when a lock in it is first taken.
#[derive(Clone, Debug)]
pub struct Records {
    disk: Arc<dyn Disk>,
    dir: PathBuf,
    modes: Modes,
}

/// The permission bits of a directory of records and of the records in it.
#[derive(Clone, Copy, Debug)]
struct Modes {
    dir: u32,
    file: u32,
}

/// Records name plans and steps, which may be private.
const PRIVATE: Modes = Modes { dir: 0o700, file: 0o600 };

/// In git's directory, all users of a repository share the records: if other users could not read a claim, they would
/// claim its step again. As with git's own files, the umask decides who may read them.
const SHARED: Modes = Modes { dir: 0o777, file: 0o644 };

/// The lock that writing records needs.
#[derive(Debug)]
pub struct LockedRecords {
    records: Records,
    _lock: Box<dyn DiskFile>,
}

/// One record that is locked by this process until this value is dropped.
#[derive(Debug)]
pub struct HeldRecord {
    records: Records,
    name: String,
    _lock: Box<dyn DiskFile>,
}

impl HeldRecord {
    /// Creates or replaces the record.
    pub fn put(&self, bytes: &[u8]) -> Result<(), DiskError> {
        self.records.put(&self.name, bytes).map_err(|error| self.records.failed(error))
    }

    pub fn remove(&self) -> Result<(), DiskError> {
        self.records.remove(&self.name).map_err(|error| self.records.failed(error))
    }
}

impl PlansDir {
    /// The records of this plans directory on this machine. `None` if there are none, or if its state directory cannot
    /// be trusted.
    ///
    /// Creates nothing.
    pub fn own_records(&self) -> Option<Records> {
        let records = Records::own(&self.disk, self.state_dir().join("leases"));
        let is_made = records.disk.lstat(&records.dir).is_ok();
        (is_made && self.runtime_dir().is_some()).then_some(records)
    }

    /// Like [`Self::own_records`], but creates the state directory if necessary.
    pub fn own_records_to_write(&self) -> Option<Records> {
        let dir = self.made_runtime_dir()?.join("leases");
        Some(Records::own(&self.disk, dir))
    }

    pub fn random(&self, bytes: &mut [u8]) -> Result<(), DiskError> {
        self.disk.random(bytes).map_err(|error| DiskError::reading(&self.root, error))
    }

    /// The disk, for reads outside the plans directory.
    pub fn disk(&self) -> &dyn Disk {
        &*self.disk
    }
}

impl Records {
    pub fn dir(&self) -> &std::path::Path {
        &self.dir
    }

    fn own(disk: &Arc<dyn Disk>, dir: PathBuf) -> Self {
        Self { disk: Arc::clone(disk), dir, modes: PRIVATE }
    }

    pub(super) fn shared(disk: &Arc<dyn Disk>, dir: PathBuf) -> Self {
        Self { disk: Arc::clone(disk), dir, modes: SHARED }
    }

    /// Another directory of records, inside this one.
    #[must_use]
    pub fn below(&self, name: &str) -> Self {
        Self { dir: self.dir.join(name), ..self.clone() }
    }

    /// Reads every record with a wanted name, sorted by name; unreadable ones are left out.
    pub fn all(&self, is_wanted: impl Fn(&str) -> bool) -> Vec<(String, Vec<u8>)> {
        let names = self.names().into_iter().filter(|it| is_wanted(it));
        names.filter_map(|name| self.get(&name).map(|bytes| (name, bytes))).collect()
    }

    /// Whether there may be records: the directory exists, or its existence cannot be determined.
    pub fn may_exist(&self) -> bool {
        !self.disk.lstat(&self.dir).is_err_and(|error| is(&error, Errno::NOENT))
    }

    pub fn names(&self) -> Vec<String> {
        let names = self.disk.names(&self.dir).unwrap_or_default();
        let mut names: Vec<_> = names.into_iter().filter_map(|it| it.into_string().ok()).collect();
        names.retain(|it| it != LOCK && !it.starts_with("draft."));
        names.sort_unstable();
        names
    }

    pub fn has(&self, name: &str) -> bool {
        self.disk.lstat(&self.dir.join(name)).is_ok()
    }

    pub fn stat(&self, name: &str) -> Option<Stat> {
        self.disk.lstat(&self.dir.join(name)).ok()
    }

    pub fn get(&self, name: &str) -> Option<Vec<u8>> {
        self.read(name).ok().flatten()
    }

    /// Like [`Self::get`], but distinguishes missing from unreadable.
    pub fn read(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        read_own(&*self.disk, &self.dir.join(name), LIMIT)
    }

    /// Reads a record of any length that grows line by line.
    pub fn read_log(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        read_own(&*self.disk, &self.dir.join(name), u64::MAX)
    }

    /// Checks whether records can be written; the error contains the reason if they cannot. Creates the lock file if the
    /// directory exists. Otherwise creates the directory and removes it again.
    pub fn is_writable(&self) -> io::Result<()> {
        match self.disk.lock(&self.dir.join(LOCK), Duration::ZERO) {
            Err(error) if is(&error, Errno::NOENT) => {
                make_dirs(&*self.disk, &self.dir, self.modes.dir)?;
                // If another process has just started to use the directory, the removal fails, or that process
                // recreates the directory.
                self.disk.remove_dir(&self.dir).ok();
                Ok(())
            }
            other => other.map(drop),
        }
    }

    /// Takes the lock of one record; `None` if another process holds it longer than `patience`. The lock is released on
    /// drop or when this process dies.
    pub fn hold(&self, name: &str, patience: Duration) -> Result<Option<HeldRecord>, DiskError> {
        let lock = || {
            make_dirs(&*self.disk, &self.dir, self.modes.dir)?;
            // The lock file is never removed. If it were, another process could lock a new file of the same name at the
            // same time.
            self.disk.lock(&self.dir.join(format!("{name}.lock")), patience)
        };
        let lock = lock().map_err(|error| self.failed(error))?;
        Ok(lock.map(|lock| HeldRecord { records: self.clone(), name: name.to_owned(), _lock: lock }))
    }

    fn failed(&self, error: io::Error) -> DiskError {
        DiskError::writing(&self.dir, error)
    }

    fn put(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let Self { disk, dir, modes } = self;
        let draft = dir.join(format!("draft.{name}"));
        disk.remove(&draft).ok();
        write_new(&**disk, &draft, modes.file, bytes, Safe::No)?;
        disk.rename(&draft, &dir.join(name), Rename::Replace)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        match self.disk.remove(&self.dir.join(name)) {
            Err(error) if !is(&error, Errno::NOENT) => Err(error),
            _ => Ok(()),
        }
    }

    /// Takes the lock; `None` if it is not free within half a minute, or if the directory is removed again at each try.
    pub fn lock(&self) -> io::Result<Option<LockedRecords>> {
        let path = self.dir.join(LOCK);
        for _ in 0..LOCK_TRIES {
            let lock = match self.disk.lock(&path, LOCK_TIMEOUT) {
                Err(error) if is(&error, Errno::NOENT) => {
                    make_dirs(&*self.disk, &self.dir, self.modes.dir)?;
                    continue;
                }
                other => other?,
            };
            let Some(lock) = lock else { return Ok(None) };
            let mine = lock.stat()?;
            // If the locked file is no longer at this path, another process can lock a new file there.
            if self.disk.lstat(&path).is_ok_and(|there| (there.ino, there.dev) == (mine.ino, mine.dev)) {
                return Ok(Some(LockedRecords { records: self.clone(), _lock: lock }));
            }
        }
        Ok(None)
    }
}

impl LockedRecords {
    pub fn records(&self) -> &Records {
        &self.records
    }

    /// Creates or replaces a record; a reader sees the old or the new one.
    pub fn put(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        self.records.put(name, bytes)
    }

    /// Creates a record that no reader expects yet. It is written without an atomic rename.
    pub fn put_new(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let Records { disk, dir, modes } = &self.records;
        disk.remove(&dir.join(name)).ok();
        write_new(&**disk, &dir.join(name), modes.file, bytes, Safe::No)
    }

    /// Renames a record; an existing one is replaced.
    pub fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let Records { disk, dir, .. } = &self.records;
        disk.rename(&dir.join(from), &dir.join(to), Rename::Replace)
    }

    /// Removes a record; a missing one is fine.
    pub fn remove(&self, name: &str) -> io::Result<()> {
        self.records.remove(name)
    }

    /// Appends a line to a record; returns its earlier length.
    pub fn append(&self, name: &str, line: &[u8]) -> io::Result<u64> {
        let Records { disk, dir, .. } = &self.records;
        let path = dir.join(name);
        let before = disk.lstat(&path).ok().filter(|it| it.kind == FileKind::File).map_or(0, |it| it.len);
        disk.open(&path, Open::Append)?.write(line)?;
        Ok(before)
    }
}
