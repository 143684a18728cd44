//! A plans directory: reading from it, and the lock that writing needs.
//!
//! Resolves links, and rejects files that are too large or not regular. Symbolic links are followed only to files
//! inside the directory.

use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use rustix::io::Errno;

use super::displaced::{self, Kept, KeptWhy};
use super::error::DiskError;
use super::file_system::{Disk, DiskFile, FileKind, Open, Stat};
use super::fs_ops::is;
use super::names::{RUNTIME, checked};
use super::reach::is_closed_name;
use super::runtime::{self, Home, Trust};
use super::write_lock::{Locked, Locks};

/// The size limit of plan files (FORMAT.md, section 2).
pub const FILE_LIMIT: u64 = 4 << 20;

/// Links followed in one path before it counts as a cycle.
const LINK_LIMIT: usize = 40;

/// How often `.planwatch` may be deleted while its lock is being taken.
const LOCK_TRIES: usize = 100;

/// When waiting for the lock is reported, and when it is given up.
const WORTH_A_WORD: Duration = Duration::from_secs(1);
const GIVEN_UP: Duration = Duration::from_secs(30);

/// The directory that holds the plans.
///
/// Opening it changes nothing; `.planwatch` is created when it is first needed.
#[derive(Debug)]
pub struct PlansDir {
    pub(super) disk: Arc<dyn Disk>,
    /// Without symbolic links.
    pub(super) root: PathBuf,
    /// What the directory of the state is called.
    pub(super) runtime: &'static str,
    pub(super) state_home: Option<PathBuf>,
    pub(super) cache_home: Option<PathBuf>,
    /// Where the state directory was last found.
    home: Mutex<Option<Home>>,
    /// The locks, while this process holds them.
    held: Mutex<Weak<Locks>>,
    no_exchange: AtomicBool,
    /// Whether `.planwatch` is created if it is missing.
    makes: bool,
}

/// When to create `.planwatch`.
#[derive(Clone, Copy)]
enum Making {
    Not,
    /// If it is missing and there is a plan.
    ForPlans,
    Anyway,
}

/// How long the parts of the lock were waited for, and the callback that reports it once.
struct Patience<'a> {
    since: Instant,
    waiting: Option<&'a mut dyn FnMut()>,
}

/// A file at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    pub bytes: Vec<u8>,
    pub stat: Stat,
    /// The file itself, relative to the plans directory; differs from the requested path if that leads through
    /// symbolic links.
    pub real: PathBuf,
}

impl PlansDir {
    /// `state_home` is the user's own state directory, with the key that distinguishes `.planwatch` directories of
    /// this machine from foreign ones.
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

    /// The files of a project, with the state in a directory of the given name, or in `home` as long as that exists.
    ///
    /// Nothing of it is recorded for `undo`.
    pub(super) fn of_project(self, runtime: &'static str, home: Option<Home>) -> Self {
        Self { runtime, home: Mutex::new(home), ..self }
    }

    /// Sets the directory of the state, if there is one.
    pub(super) fn use_home(&self, home: Option<Home>) {
        if home.is_some() {
            *self.home.lock().unwrap_or_else(PoisonError::into_inner) = home;
        }
    }

    /// Whether these are the files of a project, and no plans.
    pub(super) fn is_project(&self) -> bool {
        self.runtime != RUNTIME
    }

    /// Sets the user's cache directory, for an index where `.planwatch` cannot hold it.
    #[must_use]
    pub fn with_cache_home(self, home: Option<&Path>) -> Self {
        Self { cache_home: home.map(Path::to_path_buf), ..self }
    }

    /// From here on `.planwatch` is used only if another process created it.
    ///
    /// For long-running processes: a directory without it may be in the middle of a deletion.
    #[must_use]
    pub fn only_looking(self) -> Self {
        Self { makes: false, home: Mutex::new(None), ..self }
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the state directory, usually `.planwatch`. It is created if there is a plan but no `.planwatch`. `None`
    /// if it cannot be created, or if only the lock and displaced versions may be in it.
    ///
    /// A reader leaves no trace in a directory without plans, nor in a foreign `.planwatch`.
    pub fn runtime_dir(&self) -> Option<PathBuf> {
        self.prepare(Making::ForPlans).ok().filter(|it| it.trust == Trust::Own).map(|it| it.dir)
    }

    /// Whether there is a place for the key that marks an own `.planwatch`.
    pub fn has_key(&self) -> bool {
        self.state_home.as_deref().is_some_and(|home| runtime::key(&*self.disk, home).is_some())
    }

    /// As [`Self::runtime_dir`], but always created, beside the state of others if there is some.
    pub fn made_runtime_dir(&self) -> Option<PathBuf> {
        self.prepare(Making::Anyway).ok().filter(|it| it.trust == Trust::Own).map(|it| it.dir)
    }

    /// Returns the state directory as far as it may be used; if there is none, a path without files.
    pub fn state_dir(&self) -> PathBuf {
        let main = self.root.join(self.runtime);
        // `by` itself contains no files.
        let nowhere = || if is_missing(&*self.disk, &main) { main.clone() } else { main.join(runtime::BY) };
        self.found_home().map_or_else(nowhere, |it| it.dir)
    }

    pub(super) fn found_home(&self) -> Option<Home> {
        self.prepare(Making::Not).ok()
    }

    /// As [`Self::state_dir`], as last determined.
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

    /// Whether `.planwatch` holds the state of others: another user, another state home, or the author of a
    /// repository.
    pub fn has_foreign_state(&self) -> bool {
        let main = self.root.join(self.runtime);
        !is_missing(&*self.disk, &main) && self.found_home().is_none_or(|it| it.dir != main)
    }

    /// Reads a whole file.
    ///
    /// Bytes and stat belong together: a file that changes meanwhile is read again; if it keeps changing, the error is
    /// `file-changed`.
    pub fn read(&self, relative: &Path) -> Result<Snapshot, DiskError> {
        checked(relative)?;
        match self.read_plain(relative) {
            Err(DiskError::LeadsOut { .. }) => self.read_plain(&self.resolve(relative)?),
            other => other,
        }
    }

    /// Reads a file whose path holds no symbolic link.
    fn read_plain(&self, relative: &Path) -> Result<Snapshot, DiskError> {
        let path = self.root.join(relative);
        for _ in 0..3 {
            if let Some((bytes, stat)) = read_at_rest(&*self.disk, &path)? {
                return Ok(Snapshot { bytes, stat, real: relative.to_path_buf() });
            }
            self.disk.pause(Duration::from_millis(1));
        }
        Err(DiskError::FileChanged { path })
    }

    /// Follows the symbolic links of a path, as long as they stay inside.
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

    /// Takes the lock that every write needs; `waiting` is called once, after a second.
    ///
    /// It has two parts: `.planwatch/lock`, where writers queue, and then the plans directory itself. The second part
    /// works between users, state homes and paths that do not share a `.planwatch`, and while `.planwatch` is deleted.
    ///
    /// Finishes or undoes what a crash interrupted, and cleans up displaced versions.
    pub fn lock(&self, waiting: &mut dyn FnMut()) -> Result<Locked<'_>, DiskError> {
        let mut patience = Patience { since: Instant::now(), waiting: Some(waiting) };
        for _ in 0..LOCK_TRIES {
            let home = self.prepare(Making::Anyway)?;
            // Recreating a deleted directory may have waited, too.
            patience.since = Instant::now();
            let own = home.dir.join(runtime::LOCK);
            let shared = self.root.join(self.runtime).join(runtime::LOCK);
            let mut also = Vec::new();
            if own != shared {
                match self.wait_for(&shared, &mut patience) {
                    // It is another user's or not a directory; the lock on the plans directory has to suffice.
                    Err(error) if is_out_of_reach(&error) => {}
                    Err(error) => return Err(DiskError::writing(&shared, error)),
                    Ok(None) => return Err(DiskError::Locked { path: shared }),
                    Ok(Some(taken)) => also.push((shared.clone(), taken)),
                }
            }
            let handle = match self.wait_for(&own, &mut patience) {
                // It was deleted after it was prepared.
                Err(error) if is(&error, Errno::NOENT) => continue,
                Err(error) => return Err(DiskError::writing(&own, error)),
                Ok(None) => return Err(DiskError::Locked { path: own }),
                Ok(Some(handle)) => handle,
            };
            match self.wait_for(&self.root, &mut patience) {
                // NFS has no locks on directories; `.planwatch/lock` has to suffice.
                Err(error) if lacks_lock(&error) && (own == shared || !also.is_empty()) => {}
                Err(error) => return Err(DiskError::writing(&self.root, error)),
                Ok(None) => return Err(DiskError::Locked { path: self.root.clone() }),
                Ok(Some(taken)) => also.push((self.root.clone(), taken)),
            }
            let mine = handle.stat().map_err(|error| DiskError::reading(&own, error))?;
            // A lock on a file that is no longer at this path excludes nothing.
            let is_there = |path: &Path, locked: &Stat| {
                self.disk.lstat(path).is_ok_and(|there| (there.ino, there.dev) == (locked.ino, locked.dev))
            };
            let is_good =
                |(path, it): &(PathBuf, Box<dyn DiskFile>)| it.stat().is_ok_and(|it| is_there(path, &it));
            if is_there(&own, &mine) && also.iter().all(is_good) {
                let also = Arc::new(also.into_iter().map(|it| it.1).collect());
                *self.held.lock().unwrap_or_else(PoisonError::into_inner) = Arc::downgrade(&also);
                runtime::close(&*self.disk, &home.dir);
                return Locked::take(self, (handle, also), &mine, home.trust);
            }
        }
        Err(DiskError::Locked { path: self.root.join(self.runtime).join(runtime::LOCK) })
    }

    fn wait_for(
        &self,
        path: &Path,
        patience: &mut Patience<'_>,
    ) -> std::io::Result<Option<Box<dyn DiskFile>>> {
        if let Some(waiting) = patience.waiting.as_mut() {
            if let Some(taken) = self.disk.lock(path, WORTH_A_WORD)? {
                return Ok(Some(taken));
            }
            waiting();
            patience.waiting = None;
        }
        self.disk.lock(path, GIVEN_UP.saturating_sub(patience.since.elapsed()))
    }

    /// Lists preserved texts that are in no plan file, and foreign `.planwatch` directories that an earlier release
    /// moved aside. Changes nothing.
    pub fn kept(&self) -> Vec<Kept> {
        let mut found = displaced::kept(self);
        let asides = if self.is_project() { Vec::new() } else { runtime::asides(&*self.disk, &self.root) };
        for aside in asides {
            found.push(Kept { path: PathBuf::from(RUNTIME), kept: aside, why: KeptWhy::Foreign });
        }
        found
    }

    /// Whether a write had to do without the exchange of names, and could have lost a save between its last check and
    /// its rename.
    pub fn lacks_exchange(&self) -> bool {
        self.no_exchange.load(Ordering::Relaxed)
    }

    pub(super) fn remember_no_exchange(&self) {
        self.no_exchange.store(true, Ordering::Relaxed);
    }

    fn prepare(&self, making: Making) -> Result<Home, DiskError> {
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

/// Whether a file cannot be opened because of its owner or because something else has its name.
fn is_out_of_reach(error: &std::io::Error) -> bool {
    const REASONS: [Errno; 6] =
        [Errno::ACCESS, Errno::PERM, Errno::ROFS, Errno::NOENT, Errno::NOTDIR, Errno::LOOP];
    REASONS.iter().any(|errno| is(error, *errno))
}

/// Whether a file system lacks such locks.
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
