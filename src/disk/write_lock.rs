//! The write lock, and creating files and directories.
//!
//! New files and directories appear whole or not at all. Changing existing files is in `change`.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::Duration;

use rustix::io::Errno;

use super::batch::Recovered;
use super::displaced::{self, DRAFT, Kept};
use super::error::DiskError;
use super::file_system::{DiskFile, Open, Stat};
use super::fs_ops::{Safe, is, make_dirs, rename_new, write_new};
use super::keyed::Keyed;
use super::names::{Content, NamedPath, Origin, VersionName, checked};
use super::near::is_elsewhere;
use super::plans_dir::{PlansDir, Snapshot, read_at_rest};
use super::runtime::Trust;
use super::undo::{Record, Unit};
use super::unfinished::Unfinished;

/// How long and how often to wait for a save in progress.
pub(super) const WAIT: Duration = Duration::from_millis(5);
pub(super) const WAITS: usize = 10;

/// Where a directory is built before it gets its name, below the state directory.
pub(super) const BUILDING: &str = "building";

/// Locks that are held while this exists.
pub(super) type Locks = Vec<Box<dyn DiskFile>>;

/// The lock of a plans directory, and the only way to write to it.
///
/// When a method returns, its changes are durable. Drop releases the lock.
#[derive(Debug)]
pub struct Locked<'a> {
    pub(super) plans: &'a PlansDir,
    /// The lock is held until the last clone is dropped.
    pub(super) handle: Arc<dyn DiskFile>,
    /// The other parts of the lock.
    also: Arc<Locks>,
    pub(super) trust: Trust,
    /// Unfinished batches of others.
    pub(super) unfinished: Arc<Vec<Unfinished>>,
    /// Preserved texts, to be reported.
    pub news: Vec<Kept>,
    /// The interrupted batch that taking the lock found, if any.
    pub recovered: Option<Recovered>,
    /// The unit of the following writes.
    pub(super) unit: Option<Unit>,
    /// Their author.
    pub(super) by: String,
    /// Another source of file lengths.
    pub(super) lengths: Option<&'a dyn Lengths>,
    /// The key that changes are recorded with.
    pub(super) keyed: Option<Keyed>,
    /// A change was made that undo could not record.
    pub(super) is_unrecorded: AtomicBool,
    /// The unit of the last record that could not be written; the unit's other records are worth nothing without it.
    pub(super) unrecorded_unit: AtomicU64,
}

/// Knows how long files were when planwatch last read them.
pub trait Lengths: Sync {
    /// In bytes; `None` if unknown.
    fn length(&self, relative: &Path) -> Option<u64>;
}

impl fmt::Debug for dyn Lengths + '_ {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Lengths")
    }
}

/// What a write did.
#[derive(Clone, Debug)]
pub struct Written {
    /// The file that was written, relative to the plans directory, with symbolic links resolved.
    pub path: PathBuf,
    pub done: Done,
    /// What the file holds.
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
    /// The file already held these bytes; it was not touched.
    Nothing,
}

/// A text in `displaced/`.
#[derive(Clone, Debug)]
pub(super) struct Version {
    pub path: PathBuf,
    pub name: VersionName,
}

/// A version that planwatch wrote, and its open file.
#[derive(Debug)]
pub(super) struct Draft {
    pub version: Version,
    pub file: Box<dyn DiskFile>,
}

impl<'a> Locked<'a> {
    /// `lock` is the stat of the own lock file when it was taken.
    pub(super) fn take(
        plans: &'a PlansDir,
        (handle, also): (Box<dyn DiskFile>, Arc<Locks>),
        lock: &Stat,
        trust: Trust,
    ) -> Result<Self, DiskError> {
        let handle = Arc::from(handle);
        let unfinished = Arc::new(plans.unfinished()?);
        let (news, by) = (Vec::new(), String::new());
        let mut locked = Self {
            plans,
            handle,
            also,
            trust,
            unfinished,
            news,
            recovered: None,
            unit: None,
            by,
            lengths: None,
            keyed: None,
            is_unrecorded: AtomicBool::default(),
            unrecorded_unit: AtomicU64::default(),
        };
        locked.recover()?;
        locked.sweep(lock);
        Ok(locked)
    }

    /// The same right for another thread, which changes other files; the lock is held until the last of them is
    /// dropped.
    ///
    /// Its writes form the `nth` unit after the caller's, whatever the clock says.
    #[must_use]
    pub fn beside(&self, nth: u64, (verb, at, by): (&str, &str, &str)) -> Self {
        let (handle, also) = (Arc::clone(&self.handle), Arc::clone(&self.also));
        let (unfinished, by) = (Arc::clone(&self.unfinished), by.to_owned());
        let mut other = Self {
            handle,
            also,
            unfinished,
            by,
            news: Vec::new(),
            recovered: None,
            unit: None,
            keyed: None,
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

    /// Creates a file and its missing directories.
    ///
    /// Never replaces anything: if the name is taken, the error is [`DiskError::Exists`].
    pub fn create(&mut self, relative: &Path, bytes: &[u8]) -> Result<Written, DiskError> {
        checked(relative)?;
        let real = self.real_place(relative)?;
        self.check_finished(&real)?;
        if self.is_keyed() {
            return self.create_keyed(real, bytes);
        }
        let path = self.plans.root.join(&real);
        let parent = path.parent().unwrap_or(&self.plans.root);
        let id = self.fresh_id();
        let draft = self.draft(id, &real, Content::NOTHING, bytes, None)?;
        let made = self.make_way(parent).inspect_err(|_| {
            self.plans.disk.remove(&draft.version.path).ok();
        })?;
        let draft = self.place(draft, &path, bytes).inspect_err(|_| self.unmake(&made))?;
        let done = self.plans.disk.sync_dir(parent).and_then(|()| draft.file.stat());
        match done {
            Ok(stat) => {
                self.record_all(&made, &[Record::created(&real, bytes)]);
                Ok(Written { path: real, done: Done::Created, bytes: bytes.to_vec(), stat, kept: Vec::new() })
            }
            Err(source) => Err(self.uncreate(&path, &draft, (&made, source))),
        }
    }

    /// Renames a draft to a name that does not exist.
    pub(super) fn place(&self, draft: Draft, path: &Path, bytes: &[u8]) -> Result<Draft, DiskError> {
        let disk = &*self.plans.disk;
        let placed = rename_new(disk, &draft.version.path, path);
        if placed.is_err() {
            disk.remove(&draft.version.path).ok();
        }
        match placed {
            Err(error) if is_elsewhere(&error) => {
                let file = self.create_near(path, draft.version.name.id, bytes)?;
                Ok(Draft { version: draft.version, file })
            }
            placed => placed.map(|()| draft).map_err(|error| DiskError::writing(path, error)),
        }
    }

    /// Removes a file whose name may not be durable; an editor may have it open already.
    fn uncreate(
        &self,
        path: &Path,
        draft: &Draft,
        (made, source): (&[PathBuf], std::io::Error),
    ) -> DiskError {
        // Programs may have opened it, so later writes must be found, as for a replaced text.
        let name = VersionName { base: draft.version.name.new, ..draft.version.name.clone() };
        let version = displaced::dir(self.plans).join(name.encode());
        match rename_new(&*self.plans.disk, path, &version) {
            Ok(()) => {
                self.unmake(made);
                DiskError::writing(path, source)
            }
            Err(_) => DiskError::Unsynced { path: path.to_path_buf(), source },
        }
    }

    /// Removes directories that [`Self::make_way`] created and that are still empty.
    fn unmake(&self, made: &[PathBuf]) {
        for dir in made.iter().rev() {
            self.plans.disk.remove_dir(&self.plans.root.join(dir)).ok();
        }
    }

    /// Creates a directory with its files, so that it appears whole.
    ///
    /// The names are plain file names; for an existing directory the error is [`DiskError::Exists`].
    pub fn create_dir_with(&mut self, relative: &Path, files: &[(String, Vec<u8>)]) -> Result<(), DiskError> {
        checked(relative)?;
        let real = self.real_place(relative)?;
        self.check_finished(&real)?;
        let path = self.plans.root.join(&real);
        let parent = path.parent().unwrap_or(&self.plans.root);
        for (name, _) in files {
            if checked(Path::new(name)).is_err() || name.contains('/') {
                return Err(DiskError::BadPath { path: relative.join(name) });
            }
        }
        if self.is_keyed() {
            return self.create_dir_keyed(&real, files);
        }
        let building = self.plans.known_state_dir().join(BUILDING);
        self.clear(&building).map_err(|error| DiskError::writing(&building, error))?;
        let built = self.build(&building, files).map_err(|error| DiskError::writing(&path, error));
        let made = built.and_then(|()| self.make_way(parent)).inspect_err(|_| {
            self.clear(&building).ok();
        })?;
        if let Err(error) = rename_new(&*self.plans.disk, &building, &path) {
            self.clear(&building).ok();
            self.unmake(&made);
            return Err(DiskError::writing(&path, error));
        }
        match self.plans.disk.sync_dir(parent) {
            Ok(()) => {
                let made = made.into_iter().chain([real.clone()]).collect::<Vec<_>>();
                let created = |(name, bytes): &(String, Vec<u8>)| Record::created(&real.join(name), bytes);
                self.record_all(&made, &files.iter().map(created).collect::<Vec<_>>());
                Ok(())
            }
            Err(source) => match rename_new(&*self.plans.disk, &path, &building) {
                Ok(()) => {
                    self.clear(&building).ok();
                    self.unmake(&made);
                    Err(DiskError::writing(&path, source))
                }
                Err(_) => Err(DiskError::Unsynced { path, source }),
            },
        }
    }

    fn build(&self, building: &Path, files: &[(String, Vec<u8>)]) -> std::io::Result<()> {
        let disk = &*self.plans.disk;
        disk.make_dir(building, 0o777)?;
        for (name, bytes) in files {
            write_new(disk, &building.join(name), 0o666, bytes, Safe::Yes)?;
        }
        disk.sync_dir(building)
    }

    /// Removes a directory that was never renamed into place.
    fn clear(&self, building: &Path) -> std::io::Result<()> {
        let disk = &*self.plans.disk;
        let names = match disk.names(building) {
            Err(error) if is(&error, Errno::NOENT) => return Ok(()),
            other => other?,
        };
        for name in names {
            disk.remove(&building.join(name))?;
        }
        disk.remove_dir(building)
    }

    /// Resolves the links in the existing part of a path.
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

    /// Creates missing directories durably and returns them, parents first; all or none.
    pub(super) fn make_way(&self, dir: &Path) -> Result<Vec<PathBuf>, DiskError> {
        let failed = |error| DiskError::writing(dir, error);
        let (mut missing, mut made) = (Vec::new(), Vec::new());
        for above in dir.ancestors().take_while(|it| *it != self.plans.root) {
            match self.plans.disk.lstat(above) {
                Ok(_) => break,
                Err(error) if is(&error, Errno::NOENT) => missing.push(above),
                Err(error) => return Err(failed(error)),
            }
        }
        for dir in missing.iter().rev() {
            let parent = dir.parent().unwrap_or(&self.plans.root);
            made.extend(dir.strip_prefix(&self.plans.root).map(Path::to_path_buf));
            let is_made = make_dirs(&*self.plans.disk, dir, 0o777);
            if let Err(error) = is_made.and_then(|()| self.plans.disk.sync_dir(parent)) {
                self.unmake(&made);
                return Err(failed(error));
            }
        }
        Ok(made)
    }

    /// Writes a version into `displaced/` with the attributes of its file, and syncs it.
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
                draft.file.dress(&like.stat, &target)?;
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

    /// Reads a file that is about to be changed, and waits for a save to finish.
    ///
    /// Many editors rename away and then create: a missing file is usually a save in progress. A file in another
    /// owner's unfinished batch is rejected, whether it exists or not.
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
    /// A truncated file is empty, and the kernel makes a long write visible page by page.
    fn is_half_saved(&self, bytes: &[u8], stat: &Stat) -> bool {
        const PAGE: usize = 4096;
        const YOUNG: i128 = 1_000_000_000;
        bytes.len().is_multiple_of(PAGE) && self.plans.disk.now_ns() - stat.mtime_ns < YOUNG
    }

    /// Reads what an exchange brought out, and waits for a save to finish.
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

    /// Reads what an exchange brought out; waits longer than for a file that may stay as it is.
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
