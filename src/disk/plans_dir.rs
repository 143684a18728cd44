//! A plans directory: reading from it, and the lock that writing needs.
//!
//! Knows where links lead and what is too large or no file at all. Follows symbolic links
//! only to files inside the directory.

use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::io::Errno;

use super::calls::{Disk, FileKind, Open, Stat};
use super::displaced::{self, Kept, KeptWhy};
use super::error::DiskError;
use super::locked::Locked;
use super::moves::is;
use super::names::{RUNTIME, checked};
use super::reach::is_closed_name;
use super::runtime::{self, Trust};

/// No plan file is larger (FORMAT.md, section 2).
pub const FILE_LIMIT: u64 = 4 << 20;

/// Links followed in one path before it counts as a circle.
const LINK_LIMIT: usize = 40;

/// How often `.planwatch` may be deleted while its lock is being taken.
const LOCK_TRIES: usize = 100;

/// When waiting for the lock is worth a word, and when it is given up.
const WORTH_A_WORD: Duration = Duration::from_secs(1);
const GIVEN_UP: Duration = Duration::from_secs(29);

/// How long writers are waited for by who only hopes to save work.
const SOON: Duration = Duration::from_millis(100);

/// The directory that holds the plans.
///
/// Opening it only looks; `.planwatch` is made when it is first needed.
#[derive(Debug)]
pub struct PlansDir {
    pub(super) disk: Arc<dyn Disk>,
    /// Without symbolic links.
    pub(super) root: PathBuf,
    pub(super) state_home: Option<PathBuf>,
    pub(super) cache_home: Option<PathBuf>,
    /// The inode of the `.planwatch` that was last found usable, and how far.
    trusted: Mutex<Option<(u64, Trust)>>,
    no_exchange: AtomicBool,
    /// Whether `.planwatch` is made where there is none.
    makes: bool,
}

/// When `.planwatch` is made.
#[derive(Clone, Copy)]
enum Making {
    /// Where there is none, and a plan.
    ForPlans,
    Anyway,
}

/// A file as it was at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    pub bytes: Vec<u8>,
    pub stat: Stat,
    /// The file itself, relative to the plans directory; differs from what was asked for
    /// when that leads through symbolic links.
    pub real: PathBuf,
}

impl PlansDir {
    /// `state_home` is the user's own state directory, where the key lies that tells
    /// `.planwatch` directories of this machine from foreign ones.
    pub fn open(disk: Arc<dyn Disk>, root: &Path, state_home: Option<&Path>) -> Result<Self, DiskError> {
        let root = disk.canonical(root).map_err(|error| DiskError::reading(root, error))?;
        let stat = disk.lstat(&root).map_err(|error| DiskError::reading(&root, error))?;
        if stat.kind != FileKind::Dir {
            return Err(DiskError::NotAFile { path: root, kind: stat.kind });
        }
        Ok(Self {
            disk,
            root,
            state_home: state_home.map(Path::to_path_buf),
            cache_home: None,
            trusted: Mutex::new(None),
            no_exchange: AtomicBool::new(false),
            makes: true,
        })
    }

    /// Names the user's directory for caches, in which an index may lie where `.planwatch` cannot hold it.
    #[must_use]
    pub fn with_cache_home(self, home: Option<&Path>) -> Self {
        Self { cache_home: home.map(Path::to_path_buf), ..self }
    }

    /// From here on `.planwatch` is used only where somebody else made it, and nothing is moved aside.
    ///
    /// For whoever stays: of a directory that lacks it nobody can tell whether it is being deleted.
    #[must_use]
    pub fn only_looking(self) -> Self {
        Self { makes: false, trusted: Mutex::new(None), ..self }
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Returns `.planwatch`, made where there is none but a plan; `None` when nothing but the lock and displaced
    /// versions may live there, when it is not ours, or cannot be made.
    ///
    /// Whoever only reads leaves no trace in a directory without plans, and moves nothing aside.
    pub fn runtime_dir(&self) -> Option<PathBuf> {
        (self.prepare(Making::ForPlans).ok()? == Trust::Own).then(|| self.root.join(RUNTIME))
    }

    /// Whether there is a place for the key that tells an own `.planwatch` from others.
    pub fn has_key(&self) -> bool {
        self.state_home.as_deref().is_some_and(|home| runtime::key(&*self.disk, home).is_some())
    }

    /// As [`Self::runtime_dir`], made in any case; one that is not ours is moved aside.
    pub fn made_runtime_dir(&self) -> Option<PathBuf> {
        (self.prepare(Making::Anyway).ok()? == Trust::Own).then(|| self.root.join(RUNTIME))
    }

    /// Reads a file whole.
    ///
    /// Bytes and stat belong together: a file that changes meanwhile is read again, and is
    /// `file-changed` when it does not come to rest.
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
    /// Finishes or takes back what a crash interrupted, and looks after displaced versions.
    pub fn lock(&self, waiting: &mut dyn FnMut()) -> Result<Locked<'_>, DiskError> {
        let path = self.root.join(RUNTIME).join("lock");
        let mut said = false;
        for _ in 0..LOCK_TRIES {
            let trust = self.prepare(Making::Anyway)?;
            let taken = match self.disk.lock(&path, WORTH_A_WORD) {
                Ok(None) => {
                    if !std::mem::replace(&mut said, true) {
                        waiting();
                    }
                    self.disk.lock(&path, GIVEN_UP)
                }
                other => other,
            };
            let handle = match taken {
                // Somebody deleted `.planwatch` after it was prepared.
                Err(error) if is(&error, Errno::NOENT) => continue,
                Err(error) => return Err(DiskError::writing(&path, error)),
                Ok(None) => return Err(DiskError::Locked { path }),
                Ok(Some(handle)) => handle,
            };
            let mine = handle.stat().map_err(|error| DiskError::reading(&path, error))?;
            // A lock on a file that is no longer the one at this path excludes nobody.
            if self.disk.lstat(&path).is_ok_and(|there| (there.ino, there.dev) == (mine.ino, mine.dev)) {
                return Locked::take(self, handle, &mine, trust);
            }
        }
        Err(DiskError::Locked { path })
    }

    /// Waits until whoever has the lock, or asked for it before, has given it back; not for long.
    ///
    /// Only saves work: who comes next may have it already.
    pub fn wait_for_writers(&self) {
        drop(self.disk.lock(&self.root.join(RUNTIME).join("lock"), SOON));
    }

    /// Lists texts that are in no plan file and were kept, and foreign `.planwatch`
    /// directories; changes nothing.
    pub fn kept(&self) -> Vec<Kept> {
        let mut found = displaced::kept(&*self.disk, &self.root);
        for aside in runtime::asides(&*self.disk, &self.root) {
            found.push(Kept { path: PathBuf::from(RUNTIME), kept: aside, why: KeptWhy::Foreign });
        }
        found
    }

    /// Whether a write had to do without the exchange of names, and so could lose a save
    /// that falls between its last look and its rename.
    pub fn lacks_exchange(&self) -> bool {
        self.no_exchange.load(Ordering::Relaxed)
    }

    pub(super) fn remember_no_exchange(&self) {
        self.no_exchange.store(true, Ordering::Relaxed);
    }

    fn prepare(&self, making: Making) -> Result<Trust, DiskError> {
        let mut trusted = self.trusted.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let dir = self.root.join(RUNTIME);
        let ino =
            |disk: &dyn Disk| disk.lstat(&dir).ok().filter(|it| it.kind == FileKind::Dir).map(|it| it.ino);
        if let Some((known, trust)) = *trusted
            && ino(&*self.disk) == Some(known)
        {
            return Ok(trust);
        }
        let key = self.state_home.as_deref().and_then(|home| runtime::key(&*self.disk, home));
        let makes = match making {
            Making::Anyway => true,
            Making::ForPlans => is_missing(&*self.disk, &dir) && self.has_plan(),
        };
        let trust = if self.makes && makes {
            runtime::prepare(&*self.disk, &self.root, key.as_ref())?
        } else {
            let there = runtime::usable(&*self.disk, &dir, key.as_ref())?;
            there.ok_or_else(|| DiskError::reading(&dir, Errno::NOENT.into()))?
        };
        *trusted = ino(&*self.disk).map(|ino| (ino, trust));
        Ok(trust)
    }
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

/// Reads a regular file; `None` when it changed meanwhile.
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
