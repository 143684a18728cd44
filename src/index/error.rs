//! Errors of the index. None of them leads to a wrong answer: the files can always be read instead.

use std::io;
use std::path::{Path, PathBuf};

use rusqlite::{ErrorCode, ffi};

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum IndexError {
    /// The content differs from what planwatch wrote. [`reopen`](crate::index::Index::reopen) starts a new file.
    #[error("the index is damaged: {what}")]
    Damaged { what: String },
    /// The directory is not writable, or the file cannot be created. An index in memory can be used instead.
    #[error("the index in `{}` cannot be written", .path.display())]
    Unwritable { path: PathBuf, source: io::Error },
    /// Nothing was changed.
    #[error("there is no room for the index on the disk")]
    Full,
    /// Another process held the write lock for longer than 5 seconds. Nothing was changed.
    #[error("the index is being written by another process")]
    Busy,
    /// SQLite rejected a row. The row violates a constraint, as a second plan of the same name does, or it is too large for
    /// SQLite or the memory.
    #[error("the index rejected a row")]
    Unfit { source: rusqlite::Error },
    /// The query was not run: it could do more than read, contains several statements, or has parameters.
    #[error("the query is refused: {why}")]
    SqlRefused { why: &'static str },
    /// The user's query is wrong; the message is SQLite's.
    #[error("{message}")]
    SqlError { message: String },
}

impl IndexError {
    /// Returns the error code. It is stable, and the same on all surfaces.
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

    /// Of the input and output errors, only a failed read shows that the file is damaged.
    fn of_io(error: rusqlite::Error) -> Self {
        match error.sqlite_error().map(|it| it.extended_code) {
            // The shared memory is a file. The first connection extends it, and cannot do so on a full disk.
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

    /// Adds the directory, which SQLite's own errors lack.
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

/// For the statements that planwatch itself writes. They are correct, so an SQL error means that the file is damaged.
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
