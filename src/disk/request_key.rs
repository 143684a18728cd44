//! The key of a request. The changes of the request are recorded with its key.

use std::sync::{Arc, Mutex, PoisonError};

/// The key of a request, and the content of the record for its next change; clones share that content.
#[derive(Clone, Debug)]
pub struct Keyed {
    name: String,
    hour: i64,
    note: Arc<Mutex<Option<Vec<u8>>>>,
}

impl Keyed {
    /// `name` is a file name; `hour` selects the directory of the record.
    pub fn new(name: &str, hour: i64) -> Self {
        Self { name: name.to_owned(), hour, note: Arc::default() }
    }

    /// Sets the content of the next change's record; `None`: the next change is not recorded.
    pub fn note(&self, bytes: Option<Vec<u8>>) {
        *self.note.lock().unwrap_or_else(PoisonError::into_inner) = bytes;
    }

    pub(super) fn due(&self) -> Option<Due> {
        let note = self.note.lock().unwrap_or_else(PoisonError::into_inner).clone()?;
        Some(Due { name: self.name.clone(), hour: self.hour, note })
    }
}

/// The record to write when a journal's operations are done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Due {
    pub(super) name: String,
    pub(super) hour: i64,
    pub(super) note: Vec<u8>,
}
