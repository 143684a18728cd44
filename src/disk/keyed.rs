//! Requests with a key, which must not be carried out twice.
//!
//! Every change of such a request goes through the journal. The journal contains the key, unless the change is not to be
//! recorded (see [`Keyed::note`]). When the change is done, a record of the key is written, and then the journal is
//! removed. After a crash there are two cases. If the journal exists, the next process that takes the lock finishes the
//! change and writes the record, or undoes the change. If the journal does not exist, the record shows whether the
//! change was made.
//!
//! There is one directory of records for each hour. Therefore a record is found, and old records are removed, without
//! listing all records.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::change::Edit;
use super::error::DiskError;
use super::file_system::{Disk, DiskFile, Rename};
use super::fs_ops::{Safe, make_dirs, read_own, write_new};
use super::half_saved::Known;
use super::journal::FileOp;
use super::plans_dir::PlansDir;
use super::request_key::{Due, Keyed};
use super::runtime::Trust;
use super::write_lock::{Done, Locked, Written};

/// If another program saves the file in between, the edit is tried again, up to this many times in total. After the last
/// attempt the change fails, and the other program's text stays in the file.
const TRIES: usize = 5;

const LIMIT: u64 = 64 << 20;

#[derive(Clone, Debug)]
pub struct Answers {
    disk: Arc<dyn Disk>,
    dir: PathBuf,
}

impl PlansDir {
    /// Returns the records of keys; `None` if the state directory cannot be trusted or created.
    pub fn answers(&self) -> Option<Answers> {
        let dir = self.made_runtime_dir()?.join("answers");
        Some(Answers { disk: Arc::clone(&self.disk), dir })
    }

    /// Whether there is a record with this name, which means that a change with its key was completed.
    pub fn has_answer(&self, name: &str) -> bool {
        self.answers().is_some_and(|it| it.find(name).is_ok_and(|it| it.is_some()))
    }
}

/// A lock on a key, held while this exists.
#[derive(Debug)]
pub struct KeyLock {
    disk: Arc<dyn Disk>,
    path: PathBuf,
    _file: Box<dyn DiskFile>,
}

impl Drop for KeyLock {
    fn drop(&mut self) {
        // The file is unlocked only after its removal, so the file at this path is still the locked one.
        self.disk.remove(&self.path).ok();
    }
}

impl Answers {
    /// Takes the lock of a key, which excludes other threads and processes; `None` if another one holds it for longer
    /// than `patience`.
    pub fn lock(&self, name: &str, patience: Duration) -> io::Result<Option<KeyLock>> {
        let dir = self.dir.join("locks");
        make_dirs(&*self.disk, &dir, 0o700)?;
        let path = dir.join(name);
        loop {
            let Some(file) = self.disk.lock(&path, patience)? else { return Ok(None) };
            // The previous holder may have removed the file that is locked now, and a third process may have created
            // a new one.
            let ino = file.stat()?.ino;
            if self.disk.lstat(&path).is_ok_and(|it| it.ino == ino) {
                return Ok(Some(KeyLock { disk: Arc::clone(&self.disk), path, _file: file }));
            }
        }
    }

    /// The hours that have records, newest first.
    fn hours(&self) -> Vec<i64> {
        let names = self.disk.names(&self.dir).unwrap_or_default();
        let mut hours: Vec<i64> = names.iter().filter_map(|it| it.to_str()?.parse().ok()).collect();
        hours.sort_unstable_by(|a, b| b.cmp(a));
        hours
    }

    fn of_hour(&self, hour: i64) -> PathBuf {
        self.dir.join(hour.to_string())
    }

    /// Reads the newest record of a key. An unreadable record is an error, because the key must not count as new.
    pub fn find(&self, name: &str) -> io::Result<Option<Vec<u8>>> {
        for hour in self.hours() {
            if let Some(found) = read_own(&*self.disk, &self.of_hour(hour).join(name), LIMIT)? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// Creates or replaces a record durably.
    pub fn put(&self, name: &str, hour: i64, bytes: &[u8]) -> io::Result<()> {
        let (disk, dir) = (&*self.disk, self.of_hour(hour));
        if disk.lstat(&dir).is_err() {
            make_dirs(disk, &dir, 0o700)?;
            disk.sync_dir(&self.dir)?;
            if let Some(above) = self.dir.parent() {
                disk.sync_dir(above)?;
            }
        }
        let draft = dir.join(format!("draft.{name}"));
        disk.remove(&draft).ok();
        write_new(disk, &draft, 0o600, bytes, Safe::Yes)?;
        disk.rename(&draft, &dir.join(name), Rename::Replace)?;
        disk.sync_dir(&dir)
    }

    pub fn forget_before(&self, hour: i64) {
        for old in self.hours().into_iter().filter(|it| *it < hour) {
            let dir = self.of_hour(old);
            for name in self.disk.names(&dir).unwrap_or_default() {
                self.disk.remove(&dir.join(name)).ok();
            }
            self.disk.remove_dir(&dir).ok();
        }
    }

    pub fn bytes(&self) -> u64 {
        let len = |path: &Path| self.disk.lstat(path).map_or(0, |it| it.len);
        let of_hour = |hour: i64| {
            let dir = self.of_hour(hour);
            let names = self.disk.names(&dir).unwrap_or_default();
            names.iter().map(|it| len(&dir.join(it))).sum::<u64>()
        };
        self.hours().into_iter().map(of_hour).sum()
    }
}

impl Locked<'_> {
    /// Records the following changes with this key.
    pub fn use_key(&mut self, key: Option<Keyed>) {
        self.keyed = key;
    }

    pub(super) fn due(&self) -> Option<Due> {
        self.keyed.as_ref().and_then(Keyed::due)
    }

    pub(super) fn record_key(&self, due: Option<&Due>) -> Result<(), DiskError> {
        let Some(Due { name, hour, note }) = due else { return Ok(()) };
        let dir = self.plans.known_state_dir().join("answers");
        let answers = Answers { disk: Arc::clone(&self.plans.disk), dir };
        answers.put(name, *hour, note).map_err(|error| DiskError::writing(&answers.dir, error))
    }

    /// Whether a change of a single file goes through the journal.
    pub(super) fn is_keyed(&self) -> bool {
        self.keyed.is_some() && self.trust == Trust::Own
    }

    pub(super) fn run_keyed(&mut self, ops: Vec<FileOp>) -> Result<(), DiskError> {
        let unit = self.unit.clone();
        let (verb, at) = unit.as_ref().map(|it| (it.verb.clone(), it.at.clone())).unwrap_or_default();
        let done = self.run((&verb, &at), ops, Vec::new(), None);
        self.unit = unit;
        done
    }

    /// Like [`Locked::change`], through the journal.
    pub(super) fn change_keyed(
        &mut self,
        relative: &Path,
        edit: &mut Edit<'_>,
    ) -> Result<Written, DiskError> {
        let mut known = Known::default();
        self.withdrawn.clear();
        for tried in 1.. {
            let base = self.read_for_change(relative)?;
            let shown = self.shown_before(&base.bytes);
            let wanted = self.wanted(&base, edit, 0, known, &shown);
            known.has_read(&base.bytes);
            let new = match wanted {
                Ok(new) => new,
                Err(settled) => {
                    let done = settled?;
                    let was_seen = shown.last().cloned();
                    if was_seen.is_some() && done == Done::Nothing {
                        // The text that an editor saved already contains planwatch's change.
                        self.record_key(self.due().as_ref())?;
                    }
                    return Ok(self.unchanged(base, done, was_seen));
                }
            };
            let (before, after) = (base.bytes.clone(), new.clone());
            // The operation contains the requested path, not the resolved one, because another program may have
            // replaced a symbolic link in it by now.
            match self.run_keyed(vec![FileOp::Change { path: relative.to_path_buf(), before, after }]) {
                // While an editor saves by renaming, the file may be missing for a moment.
                Err(DiskError::FileChanged { .. } | DiskError::NotFound { .. }) if tried < TRIES => {}
                other => {
                    other?;
                    let path = self.plans.resolve(relative).unwrap_or(base.real);
                    let stat = self.plans.disk.lstat(&self.plans.root.join(&path)).unwrap_or(base.stat);
                    let (done, kept) = (Done::Replaced, Vec::new());
                    return Ok(Written { path, done, bytes: new, stat, kept });
                }
            }
        }
        Err(DiskError::FileChanged { path: self.plans.root.join(relative) })
    }

    /// The texts that planwatch put into the file and withdrew, if they were in the file before `text` was saved.
    fn shown_before(&self, text: &[u8]) -> Vec<Vec<u8>> {
        let is_later = |theirs: &Option<Vec<u8>>| theirs.as_deref() != Some(text);
        self.withdrawn.iter().filter(|it| is_later(&it.theirs)).map(|it| it.ours.clone()).collect()
    }

    /// Like [`Locked::create`], through the journal.
    pub(super) fn create_keyed(&mut self, real: PathBuf, bytes: &[u8]) -> Result<Written, DiskError> {
        self.run_keyed(vec![FileOp::Create { path: real.clone(), bytes: bytes.to_vec() }])?;
        let path = self.plans.root.join(&real);
        let stat = self.plans.disk.lstat(&path).map_err(|error| DiskError::reading(&path, error))?;
        Ok(Written { path: real, done: Done::Created, bytes: bytes.to_vec(), stat, kept: Vec::new() })
    }

    /// Like [`Locked::create_dir_with`], through the journal.
    pub(super) fn create_dir_keyed(
        &mut self,
        real: &Path,
        files: &[(String, Vec<u8>)],
    ) -> Result<(), DiskError> {
        let path = self.plans.root.join(real);
        if self.plans.disk.lstat(&path).is_ok() {
            return Err(DiskError::Exists { path });
        }
        let create = |(name, bytes): &(String, Vec<u8>)| FileOp::Create {
            path: real.join(name),
            bytes: bytes.clone(),
        };
        self.run_keyed(files.iter().map(create).collect())
    }
}
