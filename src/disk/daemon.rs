//! The daemon's files in `.planwatch` (lock, cookies, log, token), and the directories that it watches.
//!
//! A cookie is an empty file. Once its event arrives, the events of all earlier changes have arrived.
//! [`PlansDir::directories`] lists a directory without calling `stat` for each entry.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::OFlags;
use rustix::io::Errno;
use walkdir::{DirEntry, WalkDir};

use super::error::DiskError;
use super::file_system::{DiskFile, FileKind, Open, Rename, Stat};
use super::fs_ops::{Safe, is, read_own, write_new};
use super::names::checked;
use super::plans_dir::PlansDir;
use super::runtime::Trust;

const COOKIES: &str = "cookies";
const LOCK: &str = "daemon.lock";
const LOG: &str = "daemon.log";
const TOKEN: &str = "token";

/// In bytes. A larger log is truncated at the next start.
const LOG_LIMIT: u64 = 1 << 20;

/// The lock that ensures that a plans directory has only one daemon. It is released on drop, or when the process dies.
#[derive(Debug)]
pub struct DaemonLock {
    handle: Box<dyn DiskFile>,
}

#[derive(Debug, Default, PartialEq, Eq)]
pub struct Directories {
    pub names: Vec<String>,
    /// The names of symbolic links, whether or not they lead to a directory.
    pub links: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FileId {
    dev: u64,
    ino: u64,
}

/// What a name refers to, as far as a watcher distinguishes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Named {
    Directory,
    Link,
    HardLink(FileId),
    /// Any other file, or nothing.
    Other,
}

impl Named {
    fn of(stat: &Stat) -> Self {
        match stat.kind {
            FileKind::Dir => Self::Directory,
            FileKind::Symlink => Self::Link,
            FileKind::File if stat.nlink > 1 => Self::HardLink(FileId { dev: stat.dev, ino: stat.ino }),
            _ => Self::Other,
        }
    }
}

impl PlansDir {
    /// Takes the daemon's lock; `None` if another process has it.
    pub fn daemon_lock(&self) -> Result<Option<DaemonLock>, DiskError> {
        let path = self.own(LOCK);
        let taken =
            self.disk.lock(&path, Duration::ZERO).map_err(|error| DiskError::writing(&path, error))?;
        Ok(taken.map(|handle| DaemonLock { handle }))
    }

    pub fn is_locked_by(&self, lock: &DaemonLock) -> bool {
        let Ok(mine) = lock.handle.stat() else { return false };
        let there = self.disk.lstat(&self.own(LOCK));
        there.is_ok_and(|it| (it.dev, it.ino) == (mine.dev, mine.ino))
    }

    /// Creates the cookie directory if it is missing, and removes the cookies of a dead daemon from it.
    pub fn clear_cookies(&self) -> Result<PathBuf, DiskError> {
        let dir = self.own(COOKIES);
        match self.disk.make_dir(&dir, 0o700) {
            Err(error) if !is(&error, Errno::EXIST) => return Err(DiskError::writing(&dir, error)),
            _ => {}
        }
        self.remove_cookies();
        Ok(dir)
    }

    pub fn remove_cookies(&self) {
        let dir = self.own(COOKIES);
        for name in self.disk.names(&dir).unwrap_or_default() {
            self.disk.remove(&dir.join(name)).ok();
        }
    }

    pub fn has_cookie_directory(&self) -> bool {
        self.disk.lstat(&self.own(COOKIES)).is_ok_and(|it| it.kind == FileKind::Dir)
    }

    /// Renames the cookie `last` to `name`. If `last` does not exist, creates the cookie `name`.
    ///
    /// Cookies are renamed because, on ext4, creating files is slower in a directory from which many files were removed
    /// recently.
    pub fn make_cookie(&self, last: &str, name: &str) -> Result<(), DiskError> {
        let dir = self.own(COOKIES);
        let path = dir.join(name);
        // If the directory were a symbolic link, the call would change files elsewhere.
        if !self.has_cookie_directory() {
            return Err(DiskError::NotFound { path });
        }
        let made = match self.disk.rename(&dir.join(last), &path, Rename::Replace) {
            Err(error) if is(&error, Errno::NOENT) => self.disk.open(&path, Open::New(0o600)).map(drop),
            other => other,
        };
        made.map_err(|error| DiskError::writing(&path, error))
    }

    /// Removes the socket of a dead daemon. Does nothing if the path is a regular file, a directory or a symbolic link.
    pub fn remove_socket(&self, path: &Path) {
        if self.disk.lstat(path).is_ok_and(|it| it.kind == FileKind::Other) {
            self.disk.remove(path).ok();
        }
    }

    pub fn daemon_log(&self) -> io::Result<(PathBuf, File)> {
        let path = self.own(LOG);
        let nofollow = i32::try_from(OFlags::NOFOLLOW.bits()).unwrap_or(0);
        let mut how = OpenOptions::new();
        let file = how.append(true).create(true).mode(0o600).custom_flags(nofollow).open(&path)?;
        if file.metadata()?.len() > LOG_LIMIT {
            file.set_len(0)?;
        }
        Ok((path, file))
    }

    /// Returns what was written to the daemon's log after its first `start` bytes.
    pub fn daemon_log_since(&self, start: u64) -> io::Result<String> {
        let (mut file, mut text) = (File::open(self.own(LOG))?, String::new());
        file.seek(SeekFrom::Start(start))?;
        file.read_to_string(&mut text)?;
        Ok(text)
    }

    /// Replaces the file that holds the HTTP token; only this user can read the new file.
    pub fn put_token(&self, token: &str) -> Result<(), DiskError> {
        let path = self.own(TOKEN);
        self.disk.remove(&path).ok();
        write_new(&*self.disk, &path, 0o600, format!("{token}\n").as_bytes(), Safe::Yes)
            .map_err(|error| DiskError::writing(&path, error))
    }

    /// Returns the text of the token file; `None` if it is missing or invalid, or if other users may have read or written
    /// it.
    pub fn token(&self) -> Result<Option<String>, DiskError> {
        // A token is read only from a state directory that is certainly this user's. Any other state directory may have
        // come with a repository.
        let Some(home) = self.found_home().filter(|it| it.trust == Trust::Own) else { return Ok(None) };
        let path = home.dir.join(TOKEN);
        let is_private = |it: &Stat| it.kind == FileKind::File && it.mode & 0o077 == 0;
        if !self.disk.lstat(&path).is_ok_and(|it| is_private(&it)) {
            return Ok(None);
        }
        let found =
            read_own(&*self.disk, &path, 1 << 10).map_err(|error| DiskError::reading(&path, error))?;
        Ok(found.and_then(|it| String::from_utf8(it).ok()).map(|it| it.trim().to_owned()))
    }

    /// Returns the device and the inode of the plans directory. They change when another directory takes its place.
    pub fn identity(&self) -> Option<(u64, u64)> {
        self.disk.lstat(&self.root).ok().map(|it| (it.dev, it.ino))
    }

    /// Lists directories and links. Hidden names and names that are not UTF-8 cannot be plans and are left out.
    pub fn directories(&self, relative: &Path) -> Directories {
        let mut found = Directories::default();
        if !relative.as_os_str().is_empty() && checked(relative).is_err() {
            return found;
        }
        let Ok(entries) = self.root.join(relative).read_dir() else { return found };
        for entry in entries.flatten() {
            let (Ok(name), Ok(kind)) = (entry.file_name().into_string(), entry.file_type()) else { continue };
            match () {
                () if name.starts_with('.') => {}
                () if kind.is_dir() => found.names.push(name),
                () if kind.is_symlink() => found.links.push(name),
                () => {}
            }
        }
        found
    }

    /// Lists those Markdown files of a directory that have several hard links.
    pub fn hard_linked(&self, relative: &Path) -> Vec<(String, FileId)> {
        let files = self.disk.list(&self.root.join(relative)).unwrap_or_default().into_iter();
        let found = |(name, stat): (OsString, io::Result<Stat>)| {
            let name = name.into_string().ok().filter(|it| it.ends_with(".md"))?;
            match Named::of(&stat.ok()?) {
                Named::HardLink(id) => Some((name, id)),
                _ => None,
            }
        };
        files.filter_map(found).collect()
    }

    pub fn named(&self, relative: &Path) -> Named {
        let stat = self.disk.lstat(&self.root.join(relative));
        stat.map_or(Named::Other, |it| Named::of(&it))
    }

    pub fn cookies(&self) -> Vec<String> {
        let names = self.disk.names(&self.own(COOKIES)).unwrap_or_default();
        names.into_iter().filter_map(|it| it.into_string().ok()).collect()
    }

    /// Counts the directories that a watcher watches: the plans directory, two levels of directories below it, and
    /// a third level in `_archive`. Hidden directories are left out.
    pub fn n_directories(&self) -> usize {
        let count = |walk: WalkDir| {
            let is_shown = |it: &DirEntry| it.depth() == 0 || !it.file_name().as_bytes().starts_with(b".");
            let entries = walk.into_iter().filter_entry(is_shown).flatten();
            entries.filter(|it| it.file_type().is_dir()).count()
        };
        let archived = WalkDir::new(self.root.join("_archive")).min_depth(2).max_depth(2);
        count(WalkDir::new(&self.root).max_depth(2)) + count(archived)
    }

    /// Returns the directory whose events cover a link's target: the target itself if it is a directory, otherwise the
    /// directory that contains it. `None` if the target is missing or outside the plans directory.
    pub fn directory_of_target(&self, link: &Path) -> Option<PathBuf> {
        let real = self.root.join(self.resolve(link).ok()?);
        let is_dir = self.disk.lstat(&real).ok()?.kind == FileKind::Dir;
        if is_dir { Some(real) } else { real.parent().map(Path::to_path_buf) }
    }

    fn own(&self, name: &str) -> PathBuf {
        self.state_dir().join(name)
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::disallowed_methods, reason = "tests make files as people do")]

    use std::sync::Arc;

    use super::*;
    use crate::disk::RealDisk;

    #[test]
    fn the_directories_to_watch_are_counted() {
        let top = tempfile::tempdir().unwrap();
        for path in ["a/notes/deep", "b", "_archive/c/notes/deep", ".planwatch/cookies", "b/.hidden"] {
            std::fs::create_dir_all(top.path().join(path)).unwrap();
        }
        std::fs::write(top.path().join("a/step-1.md"), "# Step\n").unwrap();
        std::os::unix::fs::symlink(top.path().join("a"), top.path().join("linked")).unwrap();
        // Counted are the plans directory, `a`, `a/notes`, `b`, `_archive`, `_archive/c` and `_archive/c/notes`.
        let plans = PlansDir::open(Arc::new(RealDisk), top.path(), None).unwrap();
        assert_eq!(plans.n_directories(), 7);
    }
}
