//! Finds or creates this user's state directory, usually `.planwatch`.
//!
//! The file `stamp` in a state directory proves that planwatch itself created the directory at this location, for this
//! user on this machine. It contains a hash of the inodes of the state directory and of the plans directory, keyed with
//! a secret of the user. The hash covers no path, so the same plans under two paths (a bind mount, a renamed project)
//! share their state.
//!
//! A `.planwatch` without this user's stamp came with a repository or a backup, belongs to another user, or was created with
//! another state home (`XDG_STATE_HOME`), as in a container. planwatch takes the lock in it, and reports its interrupted
//! changes and preserved texts. Files that such a change names are not written until the change is finished or
//! `doctor --discard-journal` discards it. Apart from that, planwatch neither uses nor changes its state. This user's state
//! directory is then `.planwatch/by/<name>`. If `.planwatch` is not a directory, or is another user's and not writable, the
//! state directory is `.planwatch.by/<name>`.
//!
//! State directories have mode 0700, because they contain titles and texts of private plans. Users who share a plans
//! directory each have their own state directory, and exclude each other with the lock on the plans directory itself.

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::io::Errno;

use super::error::DiskError;
use super::file_system::{Disk, FileKind, Stat};
use super::fs_ops::{Safe, is, make_dirs, read_own, rename_new, write_new};
use super::names::{BUILDING, DISPLACED, RUNTIME, UNDO};

const PARTS: [&str; 2] = [DISPLACED, UNDO];

/// The directory in `.planwatch` with the state directories of users and state homes that did not create `.planwatch`.
pub(super) const BY: &str = "by";

/// The name of the directory beside `name` for the state of users who cannot write to `name`: for `.planwatch` it is
/// `.planwatch.by`.
pub(super) fn sibling_name(name: &str) -> String {
    format!("{name}.by")
}

pub(super) const LOCK: &str = "lock";

const STAMP: &str = "stamp";
const IGNORE: &str = ".gitignore";
const IGNORE_ALL: &[u8] = b"# planwatch's state on this machine; never committed.\n*\n";

/// How long to wait for another process that is creating the directory.
const MAKING: Duration = Duration::from_secs(1);

/// How many variants of one name are tried before giving up: `name`, `name-2` and so on.
const MOST: usize = 100;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trust {
    /// The stamp proves that this user created the state directory on this machine, at this location.
    Own,
    /// There is no key to verify who created the state directory; only the lock and displaced versions are used.
    Limited,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Home {
    pub dir: PathBuf,
    pub ino: u64,
    pub trust: Trust,
}

/// A search for this user's state directory in a plans directory.
#[derive(Clone, Copy)]
struct Seeker<'a> {
    disk: &'a dyn Disk,
    root: &'a Path,
    /// The name of the directory for the state, usually `.planwatch`.
    name: &'static str,
    root_ino: u64,
    key: Option<&'a [u8; 32]>,
}

/// Finds the state directory, or creates it.
///
/// `is_locked` is true if the caller already holds the lock of the plans directory.
pub(super) fn prepare(
    disk: &dyn Disk,
    (root, name): (&Path, &'static str),
    key: Option<&[u8; 32]>,
    is_locked: bool,
) -> Result<Home, DiskError> {
    let seeker = Seeker::new(disk, (root, name), key)?;
    if let Some(home) = seeker.find()? {
        return Ok(home);
    }
    // Two processes may do this at the same time, so the plans directory itself, which both share, is locked. The lock may
    // be unavailable: the file system has no locks on directories, or a writer still holds the lock although its
    // `.planwatch` was deleted. Then this continues without the lock, because the renames in `build` never replace anything.
    let patience = if is_locked { Duration::ZERO } else { MAKING };
    let _meeting = disk.lock(root, patience).ok().flatten();
    if let Some(home) = seeker.find()? {
        return Ok(home);
    }
    seeker.make()
}

/// Finds the state directory; `None` if there is none. Creates nothing.
pub(super) fn find(
    disk: &dyn Disk,
    place: (&Path, &'static str),
    key: Option<&[u8; 32]>,
) -> Result<Option<Home>, DiskError> {
    Seeker::new(disk, place, key)?.find()
}

impl<'a> Seeker<'a> {
    fn new(
        disk: &'a dyn Disk,
        (root, name): (&'a Path, &'static str),
        key: Option<&'a [u8; 32]>,
    ) -> Result<Self, DiskError> {
        let root_ino = disk.lstat(root).map_err(|error| DiskError::reading(root, error))?.ino;
        Ok(Self { disk, root, name, root_ino, key })
    }

    fn find(self) -> Result<Option<Home>, DiskError> {
        let main = self.root.join(self.name);
        if let Some(home) = self.usable(&main, true)? {
            return Ok(Some(home));
        }
        let is_dir = |path: &Path| Ok(self.lstat(path)?.is_some_and(|it| it.kind == FileKind::Dir));
        for (top, above) in
            [(&main, main.join(BY)), (&self.root.to_path_buf(), self.root.join(sibling_name(self.name)))]
        {
            // A symbolic link at one of these paths would lead to other files.
            if !(is_dir(top)? && is_dir(&above)?) {
                continue;
            }
            for dir in self.names().map(|name| above.join(name)) {
                if let Some(home) = self.usable(&dir, false)? {
                    return Ok(Some(home));
                }
                if self.lstat(&dir)?.is_none() {
                    break;
                }
            }
        }
        Ok(None)
    }

    /// Returns the stat of a name; `None` if it is missing or hidden by another user's permissions.
    fn lstat(self, path: &Path) -> Result<Option<Stat>, DiskError> {
        match self.disk.lstat(path) {
            Ok(stat) => Ok(Some(stat)),
            Err(error) if is(&error, Errno::NOENT) || is(&error, Errno::NOTDIR) => Ok(None),
            Err(error) if is(&error, Errno::ACCESS) && self.is_anothers() => Ok(None),
            Err(error) => Err(DiskError::reading(path, error)),
        }
    }

    fn is_anothers(self) -> bool {
        self.disk.lstat(&self.root.join(self.name)).is_ok_and(|it| !is_mine(&it))
    }

    /// Returns `None` for a directory that is missing or may not be used.
    fn usable(self, dir: &Path, is_main: bool) -> Result<Option<Home>, DiskError> {
        let Some(stat) = self.lstat(dir)?.filter(|it| it.kind == FileKind::Dir) else { return Ok(None) };
        let home = |trust| Some(Home { dir: dir.to_path_buf(), ino: stat.ino, trust });
        let found = match read_own(self.disk, &dir.join(STAMP), 64) {
            Err(error) if is(&error, Errno::ACCESS) && !is_mine(&stat) => return Ok(None),
            found => found.map_err(|error| DiskError::reading(dir, error))?,
        };
        let Some(key) = self.key else {
            // Without a key, this user's directory without a stamp cannot be distinguished from a foreign one. So such a
            // directory is used with limited trust.
            let will_do = if is_main { found.is_none() } else { is_mine(&stat) };
            return Ok(if will_do { home(Trust::Limited) } else { None });
        };
        let stamps = [stamp(key, stat.ino, self.root_ino), stamp_of_path(key, stat.ino, dir)];
        let is_own = found.is_some_and(|found| stamps.iter().any(|it| it.as_bytes() == found));
        Ok(if is_own { home(Trust::Own) } else { None })
    }

    /// The possible names of this user's state directory in `.planwatch/by` or `.planwatch.by`, the preferred one
    /// first.
    fn names(self) -> impl Iterator<Item = String> {
        let name = match self.key {
            Some(key) => {
                short(blake3::Hasher::new_keyed(key).update(b"name").update(&self.root_ino.to_le_bytes()))
            }
            None => format!("uid-{}", rustix::process::geteuid().as_raw()),
        };
        (1..=MOST).map(move |n| if n == 1 { name.clone() } else { format!("{name}-{n}") })
    }

    fn make(self) -> Result<Home, DiskError> {
        let main = self.root.join(self.name);
        let refused = |path: &Path, error| DiskError::writing(path, error);
        let there = match self.disk.lstat(&main) {
            Err(error) if is(&error, Errno::NOENT) => {
                return self.build(self.root, self.name).map_err(|error| refused(&main, error));
            }
            there => there.map_err(|error| DiskError::reading(&main, error))?,
        };
        if there.kind == FileKind::Dir {
            match self.build_among(&main, 0o700) {
                // `.planwatch` is another user's private directory.
                Err(error) if !is_mine(&there) && is_refusal(&error) => {}
                made => return made.map_err(|error| refused(&main, error)),
            }
        }
        let sibling = self.root.join(sibling_name(self.name));
        self.build_among(&sibling, self.mode_for_all()).map_err(|error| refused(&sibling, error))
    }

    /// The mode of a directory in which each user of the plans directory creates a state directory. Users who may write
    /// to the plans directory may write to it, too, but cannot remove another user's state directory.
    fn mode_for_all(self) -> u32 {
        const STICKY: u32 = 0o1000;
        self.disk.lstat(self.root).map_or(0o700, |it| it.mode & 0o2777 | STICKY)
    }

    /// Creates the state directory in `.planwatch/by` or `.planwatch.by`, which is created with `mode` if it is missing.
    fn build_among(self, top: &Path, mode: u32) -> io::Result<Home> {
        let above = if top.ends_with(self.name) { top.join(BY) } else { top.to_path_buf() };
        match self.disk.make_dir(&above, mode) {
            Ok(()) => self.disk.set_mode(&above, mode)?,
            Err(error) if is(&error, Errno::EXIST) => {}
            Err(error) => return Err(error),
        }
        if self.disk.lstat(&above)?.kind != FileKind::Dir {
            return Err(Errno::NOTDIR.into());
        }
        // A `.planwatch` from a repository may have no `.gitignore`. Then git would list the lock file. The mode lets
        // every user's git read the `.gitignore`.
        write_new(self.disk, &top.join(IGNORE), 0o644, IGNORE_ALL, Safe::No).ok();
        self.disk.sync_dir(top)?;
        for name in self.names() {
            match self.disk.lstat(&above.join(&name)) {
                Err(error) if is(&error, Errno::NOENT) => return self.build(&above, &name),
                other => other.map(drop)?,
            }
        }
        Err(Errno::EXIST.into())
    }

    /// Builds the directory under a temporary name and then renames it, so that it never appears unfinished.
    fn build(self, above: &Path, name: &str) -> io::Result<Home> {
        let Self { disk, key, .. } = self;
        let dir = above.join(name);
        let drafts = (1..=MOST)
            .map(|n| above.join(if n == 1 { format!("{name}.new") } else { format!("{name}.new-{n}") }));
        // If a directory contains unknown files, it stays, and the next name is tried.
        let fresh = drafts.into_iter().find(|it| clear(disk, it).is_ok()).ok_or(Errno::EXIST)?;
        disk.make_dir(&fresh, 0o700)?;
        for name in PARTS {
            disk.make_dir(&fresh.join(name), 0o700)?;
        }
        write_new(disk, &fresh.join(IGNORE), 0o600, IGNORE_ALL, Safe::No)?;
        // The lock file is created here so that it belongs to the owner of the directory, not to the user who writes
        // first.
        write_new(disk, &fresh.join(LOCK), 0o600, b"", Safe::No)?;
        let ino = disk.lstat(&fresh)?.ino;
        if let Some(key) = key {
            write_new(disk, &fresh.join(STAMP), 0o600, stamp(key, ino, self.root_ino).as_bytes(), Safe::Yes)?;
        }
        disk.sync_dir(&fresh)?;
        rename_new(disk, &fresh, &dir)?;
        disk.sync_dir(above)?;
        let trust = if key.is_some() { Trust::Own } else { Trust::Limited };
        Ok(Home { dir, ino, trust })
    }
}

/// Removes the access of other users to a state directory that an earlier release created.
///
/// The mode of the directory itself is changed last, so that everything is done again after an interruption. Errors for
/// its entries are ignored, because other users cannot reach files in a restricted directory.
pub(super) fn restrict_modes(disk: &dyn Disk, dir: &Path) {
    // Versions of plan files keep the modes of those files, because `undo` may move them back to the plans. Other users
    // can no longer reach them.
    const WITH_PLAN_FILES: [&str; 3] = [DISPLACED, UNDO, BUILDING];
    const OTHERS: u32 = 0o077;
    let is_open = |stat: &Stat| is_mine(stat) && stat.kind == FileKind::Dir && stat.mode & OTHERS != 0;
    if !disk.lstat(dir).is_ok_and(|it| is_open(&it)) {
        return;
    }
    let restrict_files = |dir: &Path| {
        for (name, stat) in disk.list(dir).unwrap_or_default() {
            if stat.is_ok_and(|it| it.kind == FileKind::File) {
                disk.set_mode(&dir.join(name), 0o600).ok();
            }
        }
    };
    for (name, stat) in disk.list(dir).unwrap_or_default() {
        if !stat.is_ok_and(|it| it.kind == FileKind::Dir) {
            continue;
        }
        let inside = dir.join(&name);
        if !WITH_PLAN_FILES.iter().any(|it| name == *it) {
            restrict_files(&inside);
        }
        disk.set_mode(&inside, 0o700).ok();
    }
    restrict_files(dir);
    disk.set_mode(dir, 0o700).ok();
}

pub(super) fn is_mine(stat: &Stat) -> bool {
    stat.uid == rustix::process::geteuid().as_raw()
}

fn is_refusal(error: &io::Error) -> bool {
    [Errno::ACCESS, Errno::PERM].iter().any(|errno| is(error, *errno))
}

/// The stamp of the directory with this inode in the plans directory with `root_ino`.
fn stamp(key: &[u8; 32], ino: u64, root_ino: u64) -> String {
    let mut hasher = blake3::Hasher::new_keyed(key);
    hasher.update(b"inodes").update(&ino.to_le_bytes()).update(&root_ino.to_le_bytes());
    hasher.finalize().to_hex().to_string()
}

/// The stamp of earlier releases, which is valid for one path.
fn stamp_of_path(key: &[u8; 32], ino: u64, dir: &Path) -> String {
    let mut hasher = blake3::Hasher::new_keyed(key);
    hasher.update(&ino.to_le_bytes());
    hasher.update(dir.as_os_str().as_bytes());
    hasher.finalize().to_hex().to_string()
}

/// Only sixteen digits, because the length of a socket's path is limited.
fn short(hasher: &blake3::Hasher) -> String {
    hasher.finalize().to_hex()[..16].to_owned()
}

/// Removes a state directory that a killed process left unfinished, or that is unused. Fails if it contains anything
/// beyond the content of a new state directory. Also removes `fresh` if it is not a directory.
fn clear(disk: &dyn Disk, fresh: &Path) -> io::Result<()> {
    match disk.lstat(fresh) {
        Err(error) if is(&error, Errno::NOENT) => return Ok(()),
        Err(error) => return Err(error),
        Ok(stat) if stat.kind != FileKind::Dir => return disk.remove(fresh),
        Ok(_) => {}
    }
    for name in [IGNORE, LOCK, STAMP] {
        match disk.remove(&fresh.join(name)) {
            Err(error) if !is(&error, Errno::NOENT) => return Err(error),
            _ => {}
        }
    }
    for name in PARTS {
        match disk.remove_dir(&fresh.join(name)) {
            Err(error) if !is(&error, Errno::NOENT) => return Err(error),
            _ => {}
        }
    }
    disk.remove_dir(fresh)
}

/// Removes this user's state directory if it contains only what a new one contains. The caller holds the lock of the
/// root.
pub(super) fn remove_if_unused(disk: &dyn Disk, dir: &Path) {
    let is_new = |name: &OsString| [IGNORE, LOCK, STAMP].iter().chain(&PARTS).any(|it| name == *it);
    let is_unused = disk.names(dir).is_ok_and(|it| it.iter().all(is_new))
        && PARTS.iter().all(|it| disk.names(&dir.join(it)).map_or(true, |it| it.is_empty()));
    if is_unused {
        clear(disk, dir).ok();
    }
}

/// Lists the foreign directories that an earlier release moved aside.
pub(super) fn foreign_dirs(disk: &dyn Disk, root: &Path) -> Vec<PathBuf> {
    let prefix = format!("{RUNTIME}.foreign-");
    let ours = |name: &OsString| name.as_bytes().starts_with(prefix.as_bytes());
    let mut found: Vec<_> =
        disk.names(root).unwrap_or_default().into_iter().filter(ours).map(PathBuf::from).collect();
    found.sort_unstable();
    found
}

/// How many directories above a new key are synced: those that may be new as well, such as `~/.local/state/planwatch`,
/// and their parent.
const KEY_DEPTH: usize = 4;

/// Reads or creates the key; `None` if the state home cannot be used.
pub(super) fn key(disk: &dyn Disk, state_home: &Path) -> Option<[u8; 32]> {
    let known = |dir: &Path| {
        let bytes = read_own(disk, &dir.join("key"), 32).ok()??;
        <[u8; 32]>::try_from(bytes).ok()
    };
    // The path of the state home may contain symbolic links.
    if let Ok(home) = disk.canonical(state_home)
        && let Some(key) = known(&home.join("planwatch"))
    {
        return Some(key);
    }
    make_dirs(disk, state_home, 0o700).ok()?;
    let dir = disk.canonical(state_home).ok()?.join("planwatch");
    make_dirs(disk, &dir, 0o700).ok()?;
    make_key(disk, &dir).ok();
    known(&dir)
}

fn make_key(disk: &dyn Disk, dir: &Path) -> io::Result<()> {
    let mut bytes = [0; 40];
    disk.random(&mut bytes)?;
    let (key, tag) = bytes.split_at(32);
    let draft = dir.join(format!("key.{}", blake3::hash(tag).to_hex()));
    write_new(disk, &draft, 0o600, key, Safe::Yes)?;
    // Another process may have been first; then its key is used.
    let done = rename_new(disk, &draft, &dir.join("key"));
    if done.is_err() {
        disk.remove(&draft).ok();
    }
    // If a power cut removed the key, all directories stamped with it would count as foreign.
    for made in dir.ancestors().take(KEY_DEPTH) {
        disk.sync_dir(made).ok();
    }
    done
}

#[cfg(test)]
mod tests;
