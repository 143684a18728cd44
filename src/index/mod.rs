//! The only user of SQLite: a cache of parsed plans, so that an answer need not read every file again.
//!
//! The files are the only source of truth, and the index may be deleted at any time. Each row contains the stamps and hashes
//! of the files from which its plan was read, and a checksum of itself. The index decides nothing: `plan` determines which
//! steps are ready, next or stale from the plans that the index returns. A caller does the following:
//!
//! 1. take a [`Snapshot`], and compare its heads with a walk, directory by directory;
//! 2. load the unchanged plans from it, and read the files of the others;
//! 3. [`write`](Index::write) the plans that were read, and answer from memory.
//!
//! If the index fails, callers continue without it: the files can be read at any time, and [`Place::Memory`] holds an index
//! for one command. Bodies are not stored, only their words in the full-text index.

mod checksums;
mod common_terms;
mod error;
mod file;
mod freshness;
mod full_text;
mod generation;
mod history;
mod knowledge;
mod open_guard;
mod relations;
mod row;
mod schema;
mod search;
mod snapshot;
mod sql;
mod store;
mod verified_stamp;
mod write;

#[cfg(test)]
mod tests;

use std::path::Path;

pub use error::IndexError;
pub use freshness::{FileRow, Stamp};
pub use full_text::{FullText, Seen, TextsSnapshot};
pub use generation::{Generation, Origin};
pub use history::{Commits, History};
pub use knowledge::Knowledge;
pub use row::{Change, Head, Key, Packed, stamps};
pub use schema::VERSION;
pub use search::{Document, Kind, MATCH_END, MATCH_START, Match, Query, Scope, Texts, Unsearched, snippets};
pub use snapshot::{Snapshot, SummaryData};
pub use sql::{SQL_LIMIT, Table, sql};

use file::IndexFile;
use schema::Content;
use store::Store;

#[derive(Debug)]
pub struct Index {
    store: Store,
}

#[derive(Debug, Clone, Copy)]
pub enum Place<'a> {
    /// In a file with a fixed name in this directory. The directory must exist.
    Directory(&'a Path),
    /// Dropped with the [`Index`].
    Memory,
}

/// What was at the place when the index was opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Opened {
    /// An index, as it was left.
    Kept,
    /// Nothing; the index is empty.
    Made,
    /// Something else, which was renamed to `.bad`; the index is empty.
    Rebuilt { why: String },
}

impl Index {
    /// Opens the index at a place; a file that cannot be used is replaced.
    ///
    /// Errors are for unwritable directories, full disks, and processes that hold the write lock for too long.
    pub fn open(place: Place<'_>) -> Result<(Self, Opened), IndexError> {
        let (store, opened) = Store::open(place, Content::Plans)?;
        Ok((Self { store }, opened))
    }

    pub fn file_name() -> String {
        file::name(Content::Plans)
    }

    /// The length of the index's files in a directory; `None` if there is none.
    pub fn len_in(dir: &Path) -> Option<u64> {
        let len = |content| {
            std::fs::symlink_metadata(IndexFile::in_dir(dir, content).path()).ok().map(|it| it.len())
        };
        let beside = [Content::Texts, Content::History].into_iter().filter_map(len).sum::<u64>();
        len(Content::Plans).map(|plans| plans + beside)
    }

    /// Takes a snapshot, which begins with its first query.
    ///
    /// It borrows the index mutably, because SQLite has one transaction per connection.
    pub fn snapshot(&mut self) -> Result<Snapshot<'_>, IndexError> {
        Snapshot::new(&self.store)
    }

    /// Makes changes: all or, on an error, none. They are taken one by one while the file is locked for writing.
    ///
    /// If the file was deleted or replaced since it was opened, the index is reopened first.
    pub fn write(&mut self, changes: &mut dyn Iterator<Item = Change>) -> Result<Generation, IndexError> {
        self.store.put(|it| write::write(it, changes))
    }

    /// Does the same as [`Self::write`] if `before` is still the last commit. Otherwise returns `None` and changes
    /// nothing.
    ///
    /// In that case the caller, who compared `before` with the files, does not know what the index holds: another
    /// process may have written what an older scan found.
    pub fn write_after(
        &mut self,
        before: Option<Generation>,
        changes: &mut dyn Iterator<Item = Change>,
    ) -> Result<Option<Generation>, IndexError> {
        self.store.put(|it| {
            let is_last = generation::read(it)? == before;
            is_last.then(|| write::write(it, changes)).transpose()
        })
    }

    /// Prepares a write with a connection that has been open for a while: reopens the file if one of its names leads to
    /// another file now.
    pub fn ready(&mut self) -> Result<(), IndexError> {
        self.store.ready()
    }

    /// Returns whether this is the file that has the name now; false in memory.
    pub fn has_its_name(&self) -> bool {
        self.store.has_its_name()
    }

    /// Reopens the place, with a new file if this one is damaged.
    pub fn reopen(&mut self) -> Result<(), IndexError> {
        self.store.reopen()
    }
}
