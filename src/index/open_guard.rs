//! Keeps the threads of a process from opening files with a log in each other's way.
//!
//! SQLite opens the log's shared memory by name, when a file is first read, and POSIX locks do not keep a process from
//! itself. Of two files that had one name in turn, whoever reads the second one would cut off the memory that the readers
//! of the first one have mapped (SIGBUS), if both found the same. So a file is opened and first read by one thread at a
//! time, and what lies beside another file that is still open here, or is not what lay beside this one, is given up before.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::index::file::Names;

/// The files with a log that this process has open, once for each connection.
static OPEN: Mutex<Vec<Names>> = Mutex::new(Vec::new());

/// The turn of one thread.
pub(super) struct Alone(MutexGuard<'static, Vec<Names>>);

/// A file that is open; none any more when this is dropped.
#[derive(Debug)]
pub(super) struct Used(Names);

/// Waits for the other threads.
pub(super) fn alone() -> Alone {
    Alone(OPEN.lock().unwrap_or_else(PoisonError::into_inner))
}

impl Alone {
    /// Whether one of these is open here with others: then SQLite would take what it has of that file for what has the name.
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
