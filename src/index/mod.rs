//! The only user of SQLite: plans read before, so that an answer need not read every file again.
//!
//! The files are the truth. The index may be deleted at any time, and never lies: each row says from which files, by
//! stamp and content hash, its plan was read, and proves that it is what was put in. It decides nothing; ready, next
//! and stale are for `plan` to tell from the plans it gives back. Whoever uses it does:
//!
//! 1. take a [`Snapshot`], and compare its heads with a walk, directory by directory;
//! 2. take the plans that are the same out of it, and read the files of the others;
//! 3. [`write`](Index::write) what was read, and answer from memory.
//!
//! An error on the way is never the user's: the files can be read at any time, and [`Place::Memory`] holds an index
//! for one command. Bodies are neither in it nor in what is loaded, only the words of them for the full text.

mod data;
mod error;
mod file;
mod freshness;
mod generation;
mod knowledge;
mod relations;
mod row;
mod schema;
mod search;
mod snapshot;
mod sql;
mod sums;
mod write;

#[cfg(test)]
mod tests;

use std::cell::Cell;
use std::io;
use std::path::Path;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, TransactionBehavior};

pub use error::IndexError;
pub use freshness::{FileRow, Stamp};
pub use generation::Generation;
pub use knowledge::Knowledge;
pub use row::{Change, Head, Key, Packed, stamps};
pub use schema::VERSION;
pub use search::{Document, Kind, MATCH_END, MATCH_START, Match, Query, Scope, Texts, Unsearched, snippets};
pub use snapshot::Snapshot;
pub use sql::{Table, sql};

use crate::plan::id::PlanId;
use crate::plan::model::Plan;
use file::{Identity, IndexFile};
use schema::Found;

/// An open index.
#[derive(Debug)]
pub struct Index {
    connection: Connection,
    /// The file, and what it was when it was opened; none in memory.
    file: Option<(IndexFile, Option<Identity>)>,
    /// Whether an answer met damage.
    is_damaged: Cell<bool>,
}

/// Where an index is.
#[derive(Debug, Clone, Copy)]
pub enum Place<'a> {
    /// In a file of its own name in this directory, which exists.
    Directory(&'a Path),
    /// Gone with the [`Index`].
    Memory,
}

/// What was found at the place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Opened {
    /// An index, as it was left.
    Kept,
    /// Nothing; the index is empty.
    Made,
    /// Something else, which is kept once as `.bad`; the index is empty.
    Rebuilt { why: String },
}

/// How long another process's writing is waited for.
const PATIENCE: Duration = Duration::from_secs(5);

impl Index {
    /// Opens the index at a place; whatever cannot be used there gives way to a new one.
    ///
    /// Errors are for directories that cannot be written, full disks, and other processes that write too long.
    pub fn open(place: Place<'_>) -> Result<(Self, Opened), IndexError> {
        let Place::Directory(dir) = place else { return Ok((Self::in_memory()?, Opened::Made)) };
        let file = IndexFile::in_dir(dir);
        let opened = match Self::kept(&file) {
            Ok(Some(index)) => Ok((index, Opened::Kept)),
            // Unwritable may be a file that another process is moving aside.
            Ok(None) | Err(IndexError::Damaged { .. } | IndexError::Unwritable { .. }) => Self::make(&file),
            Err(error) => Err(error),
        };
        opened.map_err(|error| error.in_dir(dir))
    }

    /// The name of this release's index in its directory.
    pub fn file_name() -> String {
        file::name()
    }

    /// The length of the index's file in a directory; none if there is no such file.
    pub fn len_in(dir: &Path) -> Option<u64> {
        std::fs::symlink_metadata(IndexFile::in_dir(dir).path()).ok().map(|it| it.len())
    }

    fn in_memory() -> Result<Self, IndexError> {
        let mut connection = configured(Connection::open_in_memory()?)?;
        schema::ensure(&mut connection)?;
        Self::of(connection, None)
    }

    /// Opens a file that is an index already; none if there is none yet.
    fn kept(file: &IndexFile) -> Result<Option<Self>, IndexError> {
        let Some(identity) = file.identity() else { return Ok(None) };
        if !file.is_plain() {
            return Err(IndexError::damaged("its name is taken by something that is not a file"));
        }
        let connection = configured(connect(file, OpenFlags::empty())?)?;
        let journal: String = connection.pragma_query_value(None, "journal_mode", |row| row.get(0))?;
        if journal != "wal" || schema::look_at(&connection)? == Found::Empty {
            return Ok(None);
        }
        Self::of(connection, Some((file.clone(), Some(identity)))).map(Some)
    }

    /// Makes a new file where there is none or one that is no good.
    ///
    /// One process at a time: SQLite does not wait where two switch a file to its write-ahead log, and two that see
    /// the same damage would move each other's new file away.
    fn make(file: &IndexFile) -> Result<(Self, Opened), IndexError> {
        let _lock = file.lock()?;
        let why = match Self::kept(file) {
            Ok(Some(index)) => return Ok((index, Opened::Kept)),
            Err(IndexError::Damaged { what }) => Some(what),
            Ok(None) => None,
            Err(error) => return Err(error),
        };
        if why.is_some() {
            file.move_aside()?;
        }
        let mut connection = configured(connect(file, OpenFlags::SQLITE_OPEN_CREATE)?)?;
        // Where a file system has no shared memory SQLite stays with its rollback journal, which is as safe.
        connection.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()))?;
        let found = schema::ensure(&mut connection).map_err(|error| match error {
            // What a new file cannot mend is the place's fault.
            IndexError::Damaged { what } => IndexError::unwritable(file.dir(), io::Error::other(what)),
            error => error,
        })?;
        let opened = match (why, found) {
            (Some(why), _) => Opened::Rebuilt { why },
            (None, Found::Sound) => Opened::Kept,
            (None, Found::Empty) => Opened::Made,
        };
        // Nobody waits for that, and nothing depends on it.
        file::clear_unused(file.dir()).ok();
        Ok((Self::of(connection, Some((file.clone(), file.identity())))?, opened))
    }

    fn of(connection: Connection, file: Option<(IndexFile, Option<Identity>)>) -> Result<Self, IndexError> {
        read_only(&connection, true)?;
        Ok(Self { connection, file, is_damaged: Cell::new(false) })
    }

    /// Takes a look at the index as it is when it is first asked.
    ///
    /// Mutably, because SQLite has one transaction a connection.
    pub fn snapshot(&mut self) -> Result<Snapshot<'_>, IndexError> {
        self.look()
    }

    fn look(&self) -> Result<Snapshot<'_>, IndexError> {
        Snapshot::new(&self.connection, &self.is_damaged)
    }

    /// See [`Snapshot::load`].
    pub fn load(&self) -> Result<Vec<Plan>, IndexError> {
        self.look()?.load()
    }

    /// See [`Snapshot::load_plan`].
    pub fn load_plan(&self, id: &PlanId) -> Result<Option<Plan>, IndexError> {
        self.look()?.load_plan(id)
    }

    /// Makes changes: all or, on an error, none. They are taken one by one while the file is locked for writing.
    ///
    /// A file that was deleted or replaced since it was opened gives way to the new one.
    pub fn write(&mut self, changes: &mut dyn Iterator<Item = Change>) -> Result<(), IndexError> {
        self.put(|it| {
            write::write(it, changes)?;
            generation::raise(it)
        })
    }

    /// Puts texts into the full text: all or, on an error, none.
    pub fn write_texts(
        &mut self,
        texts: &mut dyn Iterator<Item = Texts>,
        gone_records: &[Key],
    ) -> Result<(), IndexError> {
        self.put(|it| search::put(it, texts, gone_records))
    }

    fn put(
        &mut self,
        put: impl FnOnce(&rusqlite::Transaction<'_>) -> Result<(), IndexError>,
    ) -> Result<(), IndexError> {
        if self.is_damaged.get() {
            return Err(IndexError::damaged("nothing is written into it"));
        }
        if self.file.as_ref().is_some_and(|(file, opened)| file.identity() != *opened) {
            self.reopen()?;
        }
        read_only(&self.connection, false)?;
        let written = self.in_transaction(put);
        if matches!(written, Err(IndexError::Damaged { .. })) {
            self.is_damaged.set(true);
        }
        read_only(&self.connection, true)?;
        let dir = self.file.as_ref().map_or(Path::new(""), |(file, _)| file.dir());
        written.map_err(|error| error.in_dir(dir))
    }

    /// At once a writer's, because one that becomes a writer after it has read fails without waiting.
    fn in_transaction(
        &mut self,
        put: impl FnOnce(&rusqlite::Transaction<'_>) -> Result<(), IndexError>,
    ) -> Result<(), IndexError> {
        let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        put(&transaction)?;
        Ok(transaction.commit()?)
    }

    /// Opens the place again, with a new file if this one is damaged.
    pub fn reopen(&mut self) -> Result<(), IndexError> {
        // The file is closed before it is moved; if there is no other, this goes on in memory.
        let Self { connection, file, is_damaged } = std::mem::replace(self, Self::in_memory()?);
        drop(connection);
        let Some((file, opened)) = file else { return Ok(()) };
        if is_damaged.get() {
            let _lock = file.lock()?;
            // Another process may have been quicker.
            if file.identity() == opened {
                file.move_aside()?;
            }
        }
        *self = Self::open(Place::Directory(file.dir()))?.0;
        Ok(())
    }
}

fn connect(file: &IndexFile, more: OpenFlags) -> Result<Connection, IndexError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX | more;
    Ok(Connection::open_with_flags(file.path(), flags)?)
}

/// Makes the settings that a connection, not the file, keeps.
fn configured(connection: Connection) -> Result<Connection, IndexError> {
    connection.busy_timeout(PATIENCE)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    // A power cut may tear the file; rows that it tore do not prove themselves, and the files are still there.
    connection.pragma_update(None, "synchronous", "OFF")?;
    connection.pragma_update(None, "cell_size_check", true)?;
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    connection.pragma_update(None, "mmap_size", 0)?;
    connection.pragma_update(None, "journal_size_limit", 4 << 20)?;
    Ok(connection)
}

/// Between writes a connection can only read, whatever statement comes.
fn read_only(connection: &Connection, is_on: bool) -> Result<(), IndexError> {
    Ok(connection.pragma_update(None, "query_only", is_on)?)
}
