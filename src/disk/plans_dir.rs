//! A plans directory: reading from it, and finding its state directory.
//!
//! Resolves links, and rejects files that are too large or not regular. Symbolic links are followed only to files
//! inside the directory.

use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError, Weak};
use std::time::Duration;

use rustix::io::Errno;

use super::error::DiskError;
use super::file_system::{Disk, DiskFile, FileKind, Open, Stat};
use super::fs_ops::is;
use super::names::{RUNTIME, checked, is_closed_name};
use super::runtime::{self, Home, Trust};

/// The size limit of plan files (see `docs/format.md`).
pub const FILE_LIMIT: u64 = 4 << 20;

/// How many symbolic links of one path are followed before the path counts as a cycle.
const LINK_LIMIT: usize = 40;

/// Locks, which are released on drop.
pub(super) type Locks = Vec<Box<dyn DiskFile>>;

/// The directory that contains the plans.
///
/// Opening it changes nothing; `.planwatch` is created when it is first needed.
#[derive(Debug)]
pub struct PlansDir {
    pub(super) disk: Arc<dyn Disk>,
    /// Without symbolic links.
    pub(super) root: PathBuf,
    /// The name of the directory for the state, usually `.planwatch`.
    pub(super) runtime: &'static str,
    pub(super) state_home: Option<PathBuf>,
    pub(super) cache_home: Option<PathBuf>,
    home: Mutex<Option<Home>>,
    /// The locks, while this process holds them.
    pub(super) held: Mutex<Weak<Locks>>,
    no_exchange: AtomicBool,
    /// Whether `.planwatch` is created if it is missing.
    makes: bool,
}

/// When [`PlansDir::prepare`] may create the state directory.
#[derive(Clone, Copy)]
pub(super) enum Making {
    Not,
    /// Only if `.planwatch` is missing and there is a plan.
    ForPlans,
    Anyway,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    pub bytes: Vec<u8>,
    pub stat: Stat,
    /// The path of the file itself, relative to the plans directory. Differs from `asked` if `asked` contains symbolic
    /// links.
    pub real: PathBuf,
    /// The requested path, under which the index stores the file.
    pub asked: PathBuf,
}

impl PlansDir {
    /// `state_home` is the user's own state directory. It contains the key that distinguishes `.planwatch` directories
    /// of this machine from foreign ones.
    pub fn open(disk: Arc<dyn Disk>, root: &Path, state_home: Option<&Path>) -> Result<Self, DiskError> {
        let root = disk.canonical(root).map_err(|error| DiskError::reading(root, error))?;
        let stat = disk.lstat(&root).map_err(|error| DiskError::reading(&root, error))?;
        if stat.kind != FileKind::Dir {
            return Err(DiskError::NotADirectory { path: root, kind: stat.kind });
        }
        Ok(Self {
            disk,
            root,
            runtime: RUNTIME,
            state_home: state_home.map(Path::to_path_buf),
            cache_home: None,
            home: Mutex::new(None),
            held: Mutex::new(Weak::new()),
            no_exchange: AtomicBool::new(false),
            makes: true,
        })
    }

    /// Fails if this user cannot list the directory or reach its files. Such a directory would otherwise count as empty.
    pub fn refuse_unreadable(&self) -> Result<(), DiskError> {
        // The path ends in `.`, so opening it needs the permission to reach the files, too.
        let opened = self.disk.open(&self.root.join("."), Open::Read);
        opened.map(|_| ()).map_err(|error| DiskError::reading(&self.root, error))
    }

    /// Returns the same directory on another disk.
    pub(super) fn on(self, disk: Arc<dyn Disk>) -> Self {
        Self { disk, ..self }
    }

    /// Treats this directory as the root of a project. Its state is in `home` as long as that exists, otherwise in a
    /// directory named `runtime`.
    ///
    /// Changes of a project's files are not recorded for `undo`.
    pub(super) fn of_project(self, runtime: &'static str, home: Option<Home>) -> Self {
        Self { runtime, home: Mutex::new(home), ..self }
    }

    pub(super) fn use_home(&self, home: Option<Home>) {
        if home.is_some() {
            *self.home.lock().unwrap_or_else(PoisonError::into_inner) = home;
        }
    }

    pub(super) fn is_project(&self) -> bool {
        self.runtime != RUNTIME
    }

    /// Sets the user's cache directory, in which the index is stored if it cannot be in `.planwatch`.
    #[must_use]
    pub fn with_cache_home(self, home: Option<&Path>) -> Self {
        Self { cache_home: home.map(Path::to_path_buf), ..self }
    }

    /// Returns a `PlansDir` that never creates `.planwatch`, and uses it only if another process has created it.
    ///
    /// Long-running processes need this, because a plans directory without `.planwatch` may be in the middle of a
    /// deletion.
    #[must_use]
    pub fn only_looking(self) -> Self {
        Self { makes: false, home: Mutex::new(None), ..self }
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the state directory, usually `.planwatch`. It is created if there is a plan but no `.planwatch`. `None`
    /// if there is no state directory and none is created, or if it may be used only for the lock and displaced versions.
    ///
    /// A reader creates nothing in a directory without plans or in a foreign `.planwatch`.
    pub fn runtime_dir(&self) -> Option<PathBuf> {
        self.prepare(Making::ForPlans).ok().filter(|it| it.trust == Trust::Own).map(|it| it.dir)
    }

    /// Whether the key that marks this user's own `.planwatch` exists. Tries to create a missing key.
    pub fn has_key(&self) -> bool {
        self.state_home.as_deref().is_some_and(|home| runtime::key(&*self.disk, home).is_some())
    }

    /// Like [`Self::runtime_dir`], but also creates the directory if there is no plan, or if `.planwatch` is foreign. In
    /// the second case it is in `.planwatch/by` or `.planwatch.by`.
    pub fn made_runtime_dir(&self) -> Option<PathBuf> {
        self.prepare(Making::Anyway).ok().filter(|it| it.trust == Trust::Own).map(|it| it.dir)
    }

    /// Returns the state directory, even if it may be used only for the lock and displaced versions. If there is none,
    /// returns a path that contains no files.
    pub fn state_dir(&self) -> PathBuf {
        let main = self.root.join(self.runtime);
        // `by` itself contains no files.
        let nowhere = || if is_missing(&*self.disk, &main) { main.clone() } else { main.join(runtime::BY) };
        self.found_home().map_or_else(nowhere, |it| it.dir)
    }

    pub(super) fn found_home(&self) -> Option<Home> {
        self.prepare(Making::Not).ok()
    }

    /// Like [`Self::state_dir`], but a directory that was found before is not checked again.
    pub(super) fn known_state_dir(&self) -> PathBuf {
        let known =
            self.home.lock().unwrap_or_else(PoisonError::into_inner).as_ref().map(|it| it.dir.clone());
        known.unwrap_or_else(|| self.state_dir())
    }

    /// A path in the state directory, relative to the plans directory.
    pub fn in_state_dir(&self, name: &str) -> PathBuf {
        let dir = self.state_dir();
        dir.strip_prefix(&self.root).unwrap_or(Path::new(self.runtime)).join(name)
    }

    /// Whether `.planwatch` contains the state of another user or of another state home, or came with a repository.
    pub fn has_foreign_state(&self) -> bool {
        let main = self.root.join(self.runtime);
        !is_missing(&*self.disk, &main) && self.found_home().is_none_or(|it| it.dir != main)
    }

    /// Reads a whole file.
    ///
    /// The bytes and the stat are those of one version. A file that changes meanwhile is read again; if it keeps
    /// changing, the error is `file-changed`.
    pub fn read(&self, relative: &Path) -> Result<Snapshot, DiskError> {
        checked(relative)?;
        match self.read_plain(relative) {
            Err(DiskError::LeadsOut { .. }) => {
                let found = self.read_plain(&self.resolve(relative)?)?;
                Ok(Snapshot { asked: relative.to_path_buf(), ..found })
            }
            other => other,
        }
    }

    /// Reads a file whose path contains no symbolic link.
    fn read_plain(&self, relative: &Path) -> Result<Snapshot, DiskError> {
        let path = self.root.join(relative);
        for _ in 0..3 {
            if let Some((bytes, stat)) = read_at_rest(&*self.disk, &path)? {
                let (real, asked) = (relative.to_path_buf(), relative.to_path_buf());
                return Ok(Snapshot { bytes, stat, real, asked });
            }
            self.disk.pause(Duration::from_millis(1));
        }
        Err(DiskError::FileChanged { path })
    }

    /// Resolves the symbolic links of a path; fails if one of them leads out of the plans directory.
    pub(super) fn resolve(&self, relative: &Path) -> Result<PathBuf, DiskError> {
        let leads_out = || DiskError::LeadsOut { path: self.root.join(relative) };
        let mut real = PathBuf::new();
        let mut ahead = names_backwards(relative);
        let mut links = 0;
        while let Some(name) = ahead.pop() {
            if name == ".." {
                if !real.pop() {
                    return Err(leads_out());
                }
                continue;
            }
            let at = self.root.join(&real).join(&name);
            let stat = match self.disk.lstat(&at) {
                Err(error) if links > 0 && is(&error, Errno::NOENT) => return Err(leads_out()),
                other => other.map_err(|error| DiskError::reading(&at, error))?,
            };
            if stat.kind != FileKind::Symlink {
                real.push(name);
                continue;
            }
            links += 1;
            if links > LINK_LIMIT {
                return Err(leads_out());
            }
            let target = self.disk.read_link(&at).map_err(|error| DiskError::reading(&at, error))?;
            if target.is_absolute() {
                real.clear();
                ahead.extend(names_backwards(target.strip_prefix(&self.root).map_err(|_| leads_out())?));
            } else {
                ahead.extend(names_backwards(&target));
            }
        }
        let is_closed = real.as_os_str().is_empty() || real.iter().any(is_closed_name);
        if is_closed { Err(leads_out()) } else { Ok(real) }
    }

    /// Whether a write could not exchange names. Such a write may have lost a save between its last check and its
    /// rename.
    pub fn lacks_exchange(&self) -> bool {
        self.no_exchange.load(Ordering::Relaxed)
    }

    pub(super) fn remember_no_exchange(&self) {
        self.no_exchange.store(true, Ordering::Relaxed);
    }

    pub(super) fn prepare(&self, making: Making) -> Result<Home, DiskError> {
        let mut known = self.home.lock().unwrap_or_else(PoisonError::into_inner);
        let is_there = |it: &Home| {
            let found = self.disk.lstat(&it.dir);
            found.is_ok_and(|found| found.kind == FileKind::Dir && found.ino == it.ino)
        };
        if let Some(home) = known.as_ref().filter(|it| is_there(it)) {
            return Ok(home.clone());
        }
        let key = self.state_home.as_deref().and_then(|home| runtime::key(&*self.disk, home));
        let main = self.root.join(self.runtime);
        let makes = match making {
            Making::Not => false,
            Making::Anyway => true,
            Making::ForPlans => is_missing(&*self.disk, &main) && self.has_plan(),
        };
        let home = if self.makes && makes {
            let is_locked = self.held.lock().unwrap_or_else(PoisonError::into_inner).strong_count() > 0;
            runtime::prepare(&*self.disk, (&self.root, self.runtime), key.as_ref(), is_locked)?
        } else {
            let found = runtime::find(&*self.disk, (&self.root, self.runtime), key.as_ref())?;
            found.ok_or_else(|| DiskError::reading(&main, Errno::NOENT.into()))?
        };
        *known = Some(home.clone());
        Ok(home)
    }
}

/// Whether an error means that the file system has no locks on directories.
pub(super) fn lacks_lock(error: &std::io::Error) -> bool {
    const REASONS: [Errno; 5] = [Errno::BADF, Errno::NOLCK, Errno::INVAL, Errno::NOSYS, Errno::OPNOTSUPP];
    REASONS.iter().any(|errno| is(error, *errno))
}

fn is_missing(disk: &dyn Disk, path: &Path) -> bool {
    disk.lstat(path).is_err_and(|error| is(&error, Errno::NOENT))
}

fn names_backwards(path: &Path) -> Vec<OsString> {
    let names = path.components().filter_map(|part| match part {
        Component::Normal(name) => Some(name.to_os_string()),
        Component::ParentDir => Some(OsString::from("..")),
        _ => None,
    });
    let mut names: Vec<_> = names.collect();
    names.reverse();
    names
}

/// Reads a regular file; `None` if it changed meanwhile.
pub(super) fn read_at_rest(disk: &dyn Disk, path: &Path) -> Result<Option<(Vec<u8>, Stat)>, DiskError> {
    let unread = |error| DiskError::reading(path, error);
    let file = disk.open(path, Open::Read).map_err(unread)?;
    let before = file.stat().map_err(unread)?;
    if before.kind != FileKind::File {
        return Err(DiskError::NotAFile { path: path.to_path_buf(), kind: before.kind });
    }
    if before.len > FILE_LIMIT {
        let path = path.to_path_buf();
        return Err(DiskError::TooLarge { path, len: before.len, limit: FILE_LIMIT });
    }
    let bytes = file.read(FILE_LIMIT + 1, before.len).map_err(unread)?;
    let after = file.stat().map_err(unread)?;
    let at_rest = !after.moved_on(&before) && bytes.len() as u64 == before.len;
    Ok(at_rest.then_some((bytes, after)))
}
