//! A cache of parsed plans in SQLite, so that a command need not read every file again. No other module uses SQLite.
//!
//! The files are the only source of truth, and the index may be deleted at any time. Each row contains the stamps and hashes
//! of the files from which its plan was read, and a checksum of itself. The index decides nothing: `plan` determines which
//! steps of the returned plans are ready, next or stale. A caller does the following:
//!
//! 1. take a [`Snapshot`], and compare its heads with the plan directories on the disk, one by one;
//! 2. load the unchanged plans from the snapshot, and read the files of the others;
//! 3. [`write`](Index::write) the plans that were read, and continue with the plans in memory.
//!
//! If the index fails, callers read the files, and can use an index in [`Place::Memory`] for one command. The bodies of
//! plans and steps are not stored; only the full-text index contains their words.

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
pub use search::{
    Document, Kind, MATCH_END, MATCH_START, Match, Query, Scope, Texts, Unsearched, only_excludes, snippets,
};
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
    /// In memory, until the [`Index`] is dropped.
    Memory,
}

/// Whether the index existed when it was opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Opened {
    /// It existed, and is used.
    Kept,
    /// It did not exist. It is empty now.
    Made,
    /// The file was damaged or not an index of this version, so it was renamed to `.bad`. The index is empty now.
    Rebuilt { why: String },
}

impl Index {
    /// Opens the index at a place; a file that cannot be used is replaced.
    ///
    /// Fails if the directory is not writable, the disk is full, or another process holds the write lock for too long.
    pub fn open(place: Place<'_>) -> Result<(Self, Opened), IndexError> {
        let (store, opened) = Store::open(place, Content::Plans)?;
        Ok((Self { store }, opened))
    }

    pub fn file_name() -> String {
        file::name(Content::Plans)
    }

    /// The total size in bytes of the databases in a directory: those of plans, texts and history, without logs. `None` if
    /// that of plans is missing.
    pub fn len_in(dir: &Path) -> Option<u64> {
        let len = |content| {
            std::fs::symlink_metadata(IndexFile::in_dir(dir, content).path()).ok().map(|it| it.len())
        };
        let beside = [Content::Texts, Content::History].into_iter().filter_map(len).sum::<u64>();
        len(Content::Plans).map(|plans| plans + beside)
    }

    /// Takes a snapshot, which begins with its first query.
    ///
    /// This borrows the index mutably, because SQLite has one transaction per connection.
    pub fn snapshot(&mut self) -> Result<Snapshot<'_>, IndexError> {
        Snapshot::new(&self.store)
    }

    /// Makes all changes or, on an error, none. `changes` is read one by one while the file is locked for writing.
    ///
    /// If the file was deleted or replaced since it was opened, the index is reopened first.
    pub fn write(&mut self, changes: &mut dyn Iterator<Item = Change>) -> Result<Generation, IndexError> {
        self.store.put(|it| write::write(it, changes))
    }

    /// Does the same as [`Self::write`] if `before` is still the last commit. Otherwise returns `None` and changes
    /// nothing.
    ///
    /// The caller has compared the commit `before` with the files. A later commit may come from another process whose scan
    /// of the files was older.
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

    /// Prepares a write with a connection that has been open for a while: opens the file again if the name of the database,
    /// its log or its shared memory refers to another file now.
    pub fn ready(&mut self) -> Result<(), IndexError> {
        self.store.ready()
    }

    /// Returns whether the names of the database, its log and its shared memory still refer to the open files; false in
    /// memory.
    pub fn has_its_name(&self) -> bool {
        self.store.has_its_name()
    }

    /// Opens the file again, or a new one if it is damaged.
    pub fn reopen(&mut self) -> Result<(), IndexError> {
        self.store.reopen()
    }
}
