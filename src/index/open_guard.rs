//! Lets only one thread of a process at a time open a database file that has a log.
//!
//! SQLite opens the log's shared memory by name when a database is first read, and POSIX locks do not exclude threads of
//! the same process. If a new database gets the name of an open one, both may use the same shared-memory file. A reader of
//! the new database would then truncate the memory that readers of the old one have mapped, and the process would get
//! SIGBUS. So only one thread at a time opens a database and reads it for the first time.
//!
//! The log or the shared memory next to a database may have been replaced, or may belong to another database that this
//! process still has open. Then the database counts as damaged, and is not opened.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::index::file::Names;

/// The databases with a log that this process has open, with one entry for each connection.
static OPEN: Mutex<Vec<Names>> = Mutex::new(Vec::new());

/// The exclusive right of one thread to open databases.
pub(super) struct Alone(MutexGuard<'static, Vec<Names>>);

/// An open file, unregistered on drop.
#[derive(Debug)]
pub(super) struct Used(Names);

pub(super) fn alone() -> Alone {
    Alone(OPEN.lock().unwrap_or_else(PoisonError::into_inner))
}

impl Alone {
    /// Whether this process has the database open with other files next to it, or the shared memory open with another
    /// database. In the second case, SQLite would use one memory for two databases.
    pub(super) fn is_of_another(&self, now: Names) -> bool {
        let is_shared =
            |it: &Names| it.database == now.database || (now.shared.is_some() && it.shared == now.shared);
        self.0.iter().any(|it| *it != now && is_shared(it))
    }

    pub(super) fn using(&mut self, names: Names) -> Used {
        self.0.push(names);
        Used(names)
    }
}

impl Drop for Used {
    fn drop(&mut self) {
        let mut open = alone();
        if let Some(at) = open.0.iter().position(|it| *it == self.0) {
            open.0.swap_remove(at);
        }
    }
}
