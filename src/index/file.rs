//! Where the index lies on disk, and how a file that is no good is moved out of the way.
//!
//! The one place outside the disk floor that touches files: SQLite has to open its file by name, and nothing here is
//! a plan or anything else of the user's.

use std::fs::{self, File, Metadata};
use std::io;
use std::path::{Path, PathBuf};

use crate::index::error::IndexError;
use crate::index::schema;

/// The file of an index, by name.
#[derive(Debug, Clone)]
pub(super) struct IndexFile {
    dir: PathBuf,
}

/// What tells a file from another one that took its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Identity(u64, u64);

impl IndexFile {
    pub(super) fn in_dir(dir: &Path) -> Self {
        Self { dir: dir.to_owned() }
    }

    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }

    pub(super) fn path(&self) -> PathBuf {
        self.named("")
    }

    fn named(&self, end: &str) -> PathBuf {
        self.dir.join(format!("index-v{}.db{end}", schema::VERSION))
    }

    /// Returns what has the name now; none if nothing has.
    pub(super) fn identity(&self) -> Option<Identity> {
        fs::symlink_metadata(self.path()).ok().map(|it| identity(&it))
    }

    /// Returns whether SQLite may open what has the name: a regular file, or nothing.
    ///
    /// A symbolic link is not followed to somebody else's database, a FIFO would never be opened.
    pub(super) fn is_plain(&self) -> bool {
        fs::symlink_metadata(self.path()).is_ok_and(|it| it.is_file()) || self.identity().is_none()
    }

    /// Moves the file aside as the one `.bad`, if it is still the one that was seen.
    ///
    /// No connection of this process may have it open. Under a lock, because two processes that see the same damage
    /// would otherwise move each other's new file away.
    pub(super) fn move_aside(&self, seen: Option<Identity>) -> Result<(), IndexError> {
        let unwritable = |source| IndexError::Unwritable { path: self.dir.clone(), source };
        let lock = File::create(self.named(".lock")).map_err(unwritable)?;
        lock.lock().map_err(unwritable)?;
        if self.identity() != seen {
            return Ok(());
        }
        // The log goes first: a file without its log is an older index, a log beside another file would be its damage.
        for end in ["-wal", "-shm", ""] {
            give_way(&self.named(&format!(".bad{end}"))).map_err(unwritable)?;
            rename(&self.named(end), &self.named(&format!(".bad{end}"))).map_err(unwritable)?;
        }
        Ok(())
    }
}

#[expect(clippy::disallowed_methods, reason = "the file is the index's own and can be made again")]
fn give_way(path: &Path) -> io::Result<()> {
    accept_missing(fs::remove_file(path))
}

#[expect(clippy::disallowed_methods, reason = "the file is the index's own and can be made again")]
fn rename(from: &Path, to: &Path) -> io::Result<()> {
    accept_missing(fs::rename(from, to))
}

fn accept_missing(result: io::Result<()>) -> io::Result<()> {
    result.or_else(|error| if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(error) })
}

#[cfg(unix)]
fn identity(metadata: &Metadata) -> Identity {
    use std::os::unix::fs::MetadataExt;
    Identity(metadata.dev(), metadata.ino())
}

/// Elsewhere an open file keeps its name, so that any file is the same one.
#[cfg(not(unix))]
fn identity(_metadata: &Metadata) -> Identity {
    Identity(0, 0)
}
