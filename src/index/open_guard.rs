//! Serializes opening database files with a log among the threads of a process.
//!
//! SQLite opens the log's shared memory by name when a file is first read, and POSIX locks do not exclude threads of
//! the same process. If two files had one name in turn and shared their memory file, the reader of the second would
//! truncate the memory mapped by readers of the first (SIGBUS). So one thread at a time opens and first reads a file.
//! If the log or the shared memory next to it was replaced, or belongs to another file that this process still has
//! open, the file counts as damaged and is not opened.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::index::file::Names;

/// The files with a log that this process has open, once per connection.
static OPEN: Mutex<Vec<Names>> = Mutex::new(Vec::new());

/// Exclusive access for one thread.
pub(super) struct Alone(MutexGuard<'static, Vec<Names>>);

/// An open file, unregistered on drop.
#[derive(Debug)]
pub(super) struct Used(Names);

pub(super) fn alone() -> Alone {
    Alone(OPEN.lock().unwrap_or_else(PoisonError::into_inner))
}

impl Alone {
    /// Whether this process has the database or its shared memory open in another combination: SQLite would then mix up
    /// the two files' memory.
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
