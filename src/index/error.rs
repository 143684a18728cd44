//! What can go wrong with the index. None of it is a reason for a wrong answer: the files can always be asked instead.

use std::io;
use std::path::{Path, PathBuf};

use rusqlite::{ErrorCode, ffi};

/// Why the index did not answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum IndexError {
    /// What is in it is not what was put in. [`reopen`](crate::index::Index::reopen) begins a new file.
    #[error("the index is damaged: {what}")]
    Damaged { what: String },
    /// The directory cannot be written, or the file not be made; the index works in memory.
    #[error("the index in `{}` cannot be written", .path.display())]
    Unwritable { path: PathBuf, source: io::Error },
    /// Nothing was changed.
    #[error("there is no room for the index on the disk")]
    Full,
    /// Another process has been writing for longer than the 5 seconds that are waited for. Nothing was changed.
    #[error("the index is being written by another process")]
    Busy,
    /// Two plans of one name, or another request that no file tree can lead to.
    #[error("the index cannot take this")]
    Unfit { source: rusqlite::Error },
    /// A query that may do more than read.
    #[error("the query is refused: {why}")]
    SqlRefused { why: &'static str },
    /// The user's query is wrong; SQLite says how.
    #[error("{message}")]
    SqlError { message: String },
}

impl IndexError {
    /// Returns the stable code that every surface shows.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Damaged { .. } => "index-damaged",
            Self::Unwritable { .. } => "index-unwritable",
            Self::Full => "index-full",
            Self::Busy => "index-busy",
            Self::Unfit { .. } => "index-unfit",
            Self::SqlRefused { .. } => "sql-refused",
            Self::SqlError { .. } => "sql-error",
        }
    }

    /// Of what the disk refused, only what was read says something about the file.
    fn of_io(error: rusqlite::Error) -> Self {
        match error.sqlite_error().map(|it| it.extended_code) {
            // The memory that is shared is a file, which the first to open it makes longer.
            Some(ffi::SQLITE_IOERR_SHMSIZE) => Self::Full,
            Some(
                ffi::SQLITE_IOERR_READ
                | ffi::SQLITE_IOERR_SHORT_READ
                | ffi::SQLITE_IOERR_CORRUPTFS
                | ffi::SQLITE_IOERR_DATA,
            ) => Self::damaged(error.to_string()),
            _ => Self::Unwritable { path: PathBuf::from("index"), source: io::Error::other(error) },
        }
    }

    /// Names the directory, which SQLite's own errors do not.
    pub(super) fn in_dir(self, dir: &Path) -> Self {
        match self {
            Self::Unwritable { source, .. } => Self::Unwritable { path: dir.to_owned(), source },
            other => other,
        }
    }

    pub(super) fn unwritable(dir: &Path, source: io::Error) -> Self {
        Self::Unwritable { path: dir.to_owned(), source }
    }

    pub(super) fn damaged(what: impl Into<String>) -> Self {
        Self::Damaged { what: what.into() }
    }
}

/// For the statements of this module, which are right for a sound index: where SQLite takes one for wrong, the file is
/// not what it should be.
impl From<rusqlite::Error> for IndexError {
    fn from(error: rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(
                ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked | ErrorCode::FileLockingProtocolFailed,
            ) => Self::Busy,
            Some(ErrorCode::DiskFull) => Self::Full,
            Some(ErrorCode::SystemIoFailure) => Self::of_io(error),
            Some(ErrorCode::ReadOnly | ErrorCode::CannotOpen | ErrorCode::PermissionDenied) => {
                Self::Unwritable { path: PathBuf::from("index"), source: io::Error::other(error) }
            }
            Some(ErrorCode::ConstraintViolation | ErrorCode::TooBig | ErrorCode::OutOfMemory) => {
                Self::Unfit { source: error }
            }
            _ => Self::damaged(error.to_string()),
        }
    }
}
