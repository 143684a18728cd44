//! The index's files on disk, and moving damaged ones out of the way.
//!
//! This file and `verified_stamp.rs` may touch files although they are outside `src/disk`: SQLite opens its file by
//! name, and nothing here belongs to the user.

use std::collections::BTreeMap;
use std::fs::{self, File, Metadata, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, SystemTime};

use crate::index::error::IndexError;
use crate::index::schema::{self, Content};

#[derive(Debug, Clone)]
pub(super) struct IndexFile {
    dir: PathBuf,
    content: Content,
}

/// An index that was not written for this many seconds counts as unused.
const LONG_UNUSED: u64 = 30 * 24 * 60 * 60;

/// The name of this release's file. Its number combines the versions of schema, release and reader, so that programs
/// that differ in one of these use different files.
pub(super) fn name(content: Content) -> String {
    format!("index-v{}{}{}.db", schema::VERSION, schema::reader_digits(), content.word())
}

/// How many times to try to take the lock. With [`PAUSE`] after each try, this takes 5 seconds.
const LOCK_TRIES: u32 = 500;
const PAUSE: Duration = Duration::from_millis(10);

/// Distinguishes a file from another one that took its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Identity(u64, u64, Option<SystemTime>);

impl Identity {
    /// The inode number, which a copy of the file does not share.
    pub(super) fn number(self) -> u64 {
        self.1
    }
}

/// The identities of the database and of SQLite's files next to it; `None` for a missing file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Names {
    pub(super) database: Option<Identity>,
    log: Option<Identity>,
    pub(super) shared: Option<Identity>,
}

impl IndexFile {
    pub(super) fn in_dir(dir: &Path, content: Content) -> Self {
        Self { dir: dir.to_owned(), content }
    }

    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }

    pub(super) fn path(&self) -> PathBuf {
        self.named("")
    }

    pub(super) fn named(&self, end: &str) -> PathBuf {
        self.dir.join(format!("{}{end}", name(self.content)))
    }

    /// Returns the identity of the file that has the database's name now; `None` if there is none.
    pub(super) fn identity(&self) -> Option<Identity> {
        self.identity_of("")
    }

    fn identity_of(&self, end: &str) -> Option<Identity> {
        fs::symlink_metadata(self.named(end)).ok().map(|it| identity(&it))
    }

    /// Returns the identities of the files that have the names of database, log and shared memory now. For a database
    /// without a log, the last two are `None`.
    pub(super) fn names(&self) -> Names {
        let beside = |end| self.content.has_log().then(|| self.identity_of(end)).flatten();
        // The database comes last. The files next to a new database are created after it, so the old database is never
        // combined with the log of a new one.
        let (log, shared) = (beside("-wal"), beside("-shm"));
        Names { database: self.identity(), log, shared }
    }

    /// Returns whether SQLite may open the path: it is a regular file, or missing.
    ///
    /// A symbolic link could lead to another database, and opening a FIFO would block.
    pub(super) fn is_plain(&self) -> bool {
        fs::symlink_metadata(self.path()).is_ok_and(|it| it.is_file()) || self.identity().is_none()
    }

    pub(super) fn is_empty(&self) -> bool {
        fs::symlink_metadata(self.path()).map_or(true, |it| it.is_file() && it.len() == 0)
    }

    /// Takes the lock under which processes create or move the file. Waits for other processes.
    ///
    /// The lock is released when the handle is dropped. It is on a file of its own: opening and closing the database
    /// file a second time would release SQLite's locks on it.
    pub(super) fn lock(&self) -> Result<File, IndexError> {
        let unwritable = |source| IndexError::unwritable(&self.dir, source);
        let lock = open_own(OpenOptions::new().write(true).truncate(true), &self.named(".lock"))
            .map_err(unwritable)?;
        for _ in 0..LOCK_TRIES {
            match lock.try_lock() {
                Ok(()) => return Ok(lock),
                Err(TryLockError::WouldBlock) => thread::sleep(PAUSE),
                Err(TryLockError::Error(source)) => return Err(unwritable(source)),
            }
        }
        Err(IndexError::Busy)
    }

    /// Creates the file, empty and private, if it is missing. If SQLite created it, other users could read it. SQLite's
    /// files next to it inherit its mode. The lock must be held.
    pub(super) fn make_empty(&self) -> Result<(), IndexError> {
        let made = open_own(OpenOptions::new().append(true), &self.path());
        made.map(drop).map_err(|source| IndexError::unwritable(&self.dir, source))
    }

    /// If there is a directory at the path, moves it away: an empty directory is removed, any other is renamed.
    fn move_directory_aside(&self, path: &Path) -> io::Result<()> {
        if !fs::symlink_metadata(path).is_ok_and(|it| it.is_dir()) || remove_empty(path).is_ok() {
            return Ok(());
        }
        let free = (1..).map(|n: u32| self.named(&format!(".directory-{n}")));
        let mut free = free.filter(|it| fs::symlink_metadata(it).is_err());
        free.next().map_or(Ok(()), |it| rename(path, &it))
    }

    /// Removes files that are left next to a deleted or emptied database. Otherwise a new database would share them with
    /// processes that have the old one open. The lock must be held.
    pub(super) fn remove_rest(&self) -> Result<(), IndexError> {
        let mut rest = ["-wal", "-shm", "-journal"].into_iter().map(|end| self.named(end));
        let removed =
            rest.try_for_each(|it| self.move_directory_aside(&it).and_then(|()| remove_if_exists(&it)));
        removed.map_err(|source| IndexError::unwritable(&self.dir, source))
    }

    /// Renames the database and the files next to it to `.bad` names, in place of earlier `.bad` files. The lock must be
    /// held; processes that have the database open continue to read it.
    pub(super) fn move_aside(&self) -> Result<(), IndexError> {
        // The log is moved first. A database without its log is only an older state of the index, but a log that is left
        // next to a new database would damage that database.
        for end in ["-wal", "-shm", "-journal", ""] {
            let bad = self.named(&format!(".bad{end}"));
            let moved = self.move_directory_aside(&bad).and_then(|()| remove_if_exists(&bad));
            let moved = moved.and_then(|()| rename(&self.named(end), &bad));
            moved.map_err(|source| IndexError::unwritable(&self.dir, source))?;
        }
        Ok(())
    }
}

/// Removes the indexes of other releases that were last written more than 30 days before `file` was last written.
///
/// If such a release is used again, it creates a new index. The first error ends the removal.
pub(super) fn clear_unused(file: &IndexFile) -> io::Result<()> {
    let made = fs::symlink_metadata(file.path())?.modified()?;
    let own = [Content::Plans, Content::Texts, Content::History].map(name);
    let mut others: BTreeMap<String, (SystemTime, Vec<PathBuf>)> = BTreeMap::new();
    for entry in fs::read_dir(&file.dir)? {
        let entry = entry?;
        let Ok(found) = entry.file_name().into_string() else { continue };
        let Some((release, _)) = found.split_once(".db").filter(|_| found.starts_with("index-v")) else {
            continue;
        };
        let is_own = own.iter().any(|it| it.strip_suffix(".db") == Some(release));
        if !is_own && entry.file_type()?.is_file() {
            let modified = entry.metadata()?.modified()?;
            let (newest, paths) = others.entry(release.to_owned()).or_insert((modified, Vec::new()));
            *newest = modified.max(*newest);
            paths.push(entry.path());
        }
    }
    let is_unused = |newest| made.duration_since(newest).is_ok_and(|it| it.as_secs() > LONG_UNUSED);
    others
        .into_values()
        .filter(|(newest, _)| is_unused(*newest))
        .flat_map(|it| it.1)
        .try_for_each(|it| remove_if_exists(&it))
}

#[expect(clippy::disallowed_methods, reason = "the file is the index's own and can be made again")]
fn remove_if_exists(path: &Path) -> io::Result<()> {
    accept_missing(fs::remove_file(path))
}

#[expect(clippy::disallowed_methods, reason = "the file is the index's own and can be made again")]
fn rename(from: &Path, to: &Path) -> io::Result<()> {
    accept_missing(fs::rename(from, to))
}

/// Removes an empty directory whose name belongs to the index.
fn remove_empty(path: &Path) -> io::Result<()> {
    fs::remove_dir(path)
}

fn accept_missing(result: io::Result<()>) -> io::Result<()> {
    result.or_else(|error| if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(error) })
}

fn identity(metadata: &Metadata) -> Identity {
    // A deleted file's inode number may be reused as soon as no process has the file open, but the new file was created
    // later.
    Identity(metadata.dev(), metadata.ino(), metadata.created().ok())
}

/// Opens a file of the index with private permissions: the index names plans that may be private.
pub(super) fn open_own(how: &mut OpenOptions, path: &Path) -> io::Result<File> {
    how.create(true).mode(0o600).open(path)
}
