//! The directory `.planwatch`, and whether it may be trusted.
//!
//! A stamp, keyed with a secret of this user on this machine, says that planwatch itself
//! made the directory in this place. One that came with a repository, a copy or a backup has
//! none, or another's; it is moved aside and nothing in it is read.

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::io::Errno;

use super::calls::{Disk, FileKind};
use super::error::DiskError;
use super::moves::{Safe, is, make_dirs, read_own, rename_new, write_new};
use super::names::RUNTIME;

/// The directories inside.
const PARTS: [&str; 2] = [super::displaced::DIR, super::undo::DIR];

const STAMP: &str = "stamp";
const IGNORE: &str = ".gitignore";
const IGNORE_ALL: &[u8] = b"# planwatch's state on this machine; never committed.\n*\n";

/// How far `.planwatch` may be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trust {
    /// Made by this user on this machine, in this place.
    Own,
    /// Nobody can tell, because there is no place for the key: lock and displaced versions only.
    Limited,
}

/// Makes `.planwatch` usable and says how far; moves a foreign one aside.
pub(super) fn prepare(disk: &dyn Disk, root: &Path, key: Option<&[u8; 32]>) -> Result<Trust, DiskError> {
    let dir = root.join(RUNTIME);
    if let Some(trust) = usable(disk, &dir, key)? {
        return Ok(trust);
    }
    // Two processes may meet here; the plans directory itself is the one thing that both have.
    // Where a directory cannot be locked, the renames below still never replace anything.
    let _meeting = disk.lock(root, Duration::from_secs(30)).ok().flatten();
    if let Some(trust) = usable(disk, &dir, key)? {
        return Ok(trust);
    }
    move_aside(disk, root, &dir).map_err(|error| DiskError::writing(&dir, error))?;
    build(disk, root, &dir, key).map_err(|error| DiskError::writing(&dir, error))?;
    Ok(if key.is_some() { Trust::Own } else { Trust::Limited })
}

/// Returns `None` when there is nothing, or nothing that may be used.
pub(super) fn usable(
    disk: &dyn Disk,
    dir: &Path,
    key: Option<&[u8; 32]>,
) -> Result<Option<Trust>, DiskError> {
    let stat = match disk.lstat(dir) {
        Err(error) if is(&error, Errno::NOENT) => return Ok(None),
        other => other.map_err(|error| DiskError::reading(dir, error))?,
    };
    let Some(key) = key else {
        // Without a key even a foreign directory has to do, if it is one.
        return Ok((stat.kind == FileKind::Dir).then_some(Trust::Limited));
    };
    if stat.kind != FileKind::Dir {
        return Ok(None);
    }
    let found = read_own(disk, &dir.join(STAMP), 64).map_err(|error| DiskError::reading(dir, error))?;
    Ok((found.as_deref() == Some(stamp(key, stat.ino, dir).as_bytes())).then_some(Trust::Own))
}

/// The stamp of the directory with this inode in this place.
fn stamp(key: &[u8; 32], ino: u64, dir: &Path) -> String {
    let mut hasher = blake3::Hasher::new_keyed(key);
    hasher.update(&ino.to_le_bytes());
    hasher.update(dir.as_os_str().as_bytes());
    hasher.finalize().to_hex().to_string()
}

fn move_aside(disk: &dyn Disk, root: &Path, dir: &Path) -> io::Result<()> {
    let kind = match disk.lstat(dir) {
        Err(error) if is(&error, Errno::NOENT) => return Ok(()),
        other => other?.kind,
    };
    for n in 1_u32.. {
        let aside = root.join(format!("{RUNTIME}.foreign-{n}"));
        match rename_new(disk, dir, &aside) {
            Err(error) if is(&error, Errno::EXIST) || is(&error, Errno::NOTEMPTY) => {}
            Err(error) => return Err(error),
            Ok(()) => {
                if kind == FileKind::Dir {
                    // Its own .gitignore, if it has one, was not made by us but does no harm.
                    write_new(disk, &aside.join(IGNORE), 0o644, IGNORE_ALL, Safe::No).ok();
                }
                return Ok(());
            }
        }
    }
    Ok(())
}

/// Builds the directory beside its place, so that nobody ever sees one without a stamp.
fn build(disk: &dyn Disk, root: &Path, dir: &Path, key: Option<&[u8; 32]>) -> io::Result<()> {
    let fresh = root.join(format!("{RUNTIME}.new"));
    if clear(disk, &fresh).is_err() {
        // It holds what planwatch never puts there.
        move_aside(disk, root, &fresh)?;
    }
    disk.make_dir(&fresh, 0o777)?;
    for name in PARTS {
        disk.make_dir(&fresh.join(name), 0o777)?;
    }
    write_new(disk, &fresh.join(IGNORE), 0o644, IGNORE_ALL, Safe::No)?;
    if let Some(key) = key {
        let ino = disk.lstat(&fresh)?.ino;
        write_new(disk, &fresh.join(STAMP), 0o600, stamp(key, ino, dir).as_bytes(), Safe::Yes)?;
    }
    disk.sync_dir(&fresh)?;
    rename_new(disk, &fresh, dir)?;
    disk.sync_dir(root)
}

/// Removes what a build that was killed left behind.
fn clear(disk: &dyn Disk, fresh: &Path) -> io::Result<()> {
    match disk.lstat(fresh) {
        Err(error) if is(&error, Errno::NOENT) => return Ok(()),
        Err(error) => return Err(error),
        Ok(stat) if stat.kind != FileKind::Dir => return disk.remove(fresh),
        Ok(_) => {}
    }
    for name in [IGNORE, STAMP] {
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

/// Lists the foreign directories that were moved aside.
pub(super) fn asides(disk: &dyn Disk, root: &Path) -> Vec<PathBuf> {
    let prefix = format!("{RUNTIME}.foreign-");
    let ours = |name: &OsString| name.as_bytes().starts_with(prefix.as_bytes());
    let mut found: Vec<_> =
        disk.names(root).unwrap_or_default().into_iter().filter(ours).map(PathBuf::from).collect();
    found.sort();
    found
}

/// Reads the key, or makes it; `None` when the user's state directory cannot be used.
pub(super) fn key(disk: &dyn Disk, state_home: &Path) -> Option<[u8; 32]> {
    let known = |dir: &Path| {
        let bytes = read_own(disk, &dir.join("key"), 32).ok()??;
        <[u8; 32]>::try_from(bytes).ok()
    };
    // The state directory itself may lie behind symbolic links.
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
    // Another process may have been first; then its key holds.
    let done = rename_new(disk, &draft, &dir.join("key"));
    if done.is_err() {
        disk.remove(&draft).ok();
    }
    done
}
