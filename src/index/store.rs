//! A SQLite file that can be made again: opened, written all or nothing, and given up for a new one where it is damaged.

use std::cell::Cell;
use std::io;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, Transaction, TransactionBehavior};

use crate::index::error::IndexError;
use crate::index::file::{self, Identity, IndexFile};
use crate::index::schema::{self, Content, Found};
use crate::index::{Opened, Place};

/// An open file, or a database in memory.
#[derive(Debug)]
pub(super) struct Store {
    content: Content,
    pub(super) connection: Connection,
    /// The file, and what it was when it was opened; none in memory.
    file: Option<(IndexFile, Option<Identity>)>,
    /// Whether an answer met damage.
    pub(super) is_damaged: Cell<bool>,
}

/// How long another process's writing is waited for.
const PATIENCE: Duration = Duration::from_secs(5);

impl Store {
    /// Opens what is at a place; whatever cannot be used there gives way to a new one.
    pub(super) fn open(place: Place<'_>, content: Content) -> Result<(Self, Opened), IndexError> {
        let Place::Directory(dir) = place else { return Ok((Self::in_memory(content)?, Opened::Made)) };
        let file = IndexFile::in_dir(dir, content);
        let kept = {
            let _alone = alone(content);
            Self::kept(&file, content)
        };
        let opened = match kept {
            Ok(Some(store)) => Ok((store, Opened::Kept)),
            // Unwritable may be a file that another process is moving aside.
            Ok(None) | Err(IndexError::Damaged { .. } | IndexError::Unwritable { .. }) => {
                Self::make(&file, content)
            }
            Err(error) => Err(error),
        };
        opened.map_err(|error| error.in_dir(dir))
    }

    fn in_memory(content: Content) -> Result<Self, IndexError> {
        let mut connection = configured(Connection::open_in_memory()?)?;
        schema::ensure(&mut connection, content)?;
        Self::of(connection, content, None)
    }

    /// Opens a file that has its schema already; none if there is none yet, or if it lost its name meanwhile.
    ///
    /// The caller is alone in its process.
    fn kept(file: &IndexFile, content: Content) -> Result<Option<Self>, IndexError> {
        let Some(identity) = file.identity() else { return Ok(None) };
        if !file.is_plain() {
            return Err(IndexError::damaged("its name is taken by something that is not a file"));
        }
        Self::read(connect(file, OpenFlags::empty())?, file, identity, content)
    }

    fn read(
        connection: Connection,
        file: &IndexFile,
        identity: Identity,
        content: Content,
    ) -> Result<Option<Self>, IndexError> {
        let connection = configured(connection)?;
        let journal: String = connection.pragma_query_value(None, "journal_mode", |row| row.get(0))?;
        if journal != content.journal() || schema::look_at(&connection)? == Found::Empty {
            return Ok(None);
        }
        // The log was opened by its name after the file, so that it may be that of the next one.
        if file.identity() != Some(identity) {
            return Ok(None);
        }
        Self::of(connection, content, Some((file.clone(), Some(identity)))).map(Some)
    }

    /// Makes a new file where there is none or one that is no good.
    ///
    /// One process at a time: SQLite does not wait where two switch a file to its write-ahead log, and two that see
    /// the same damage would move each other's new file away.
    fn make(file: &IndexFile, content: Content) -> Result<(Self, Opened), IndexError> {
        let _lock = file.lock()?;
        let _alone = alone(content);
        let why = match Self::kept(file, content) {
            Ok(Some(store)) => return Ok((store, Opened::Kept)),
            Err(IndexError::Damaged { what }) => Some(what),
            Ok(None) => None,
            Err(error) => return Err(error),
        };
        if why.is_some() {
            file.move_aside()?;
        } else if file.identity().is_none() {
            file.remove_rest()?;
        }
        let mut connection = configured(connect(file, OpenFlags::SQLITE_OPEN_CREATE)?)?;
        // Where a file system has no shared memory SQLite stays with its rollback journal, which is as safe.
        connection.pragma_update_and_check(None, "journal_mode", content.journal(), |_| Ok(()))?;
        let found = schema::ensure(&mut connection, content).map_err(|error| match error {
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
        file::clear_unused(file).ok();
        Ok((Self::of(connection, content, Some((file.clone(), file.identity())))?, opened))
    }

    fn of(
        connection: Connection,
        content: Content,
        file: Option<(IndexFile, Option<Identity>)>,
    ) -> Result<Self, IndexError> {
        read_only(&connection, true)?;
        Ok(Self { content, connection, file, is_damaged: Cell::new(false) })
    }

    /// The file that is open; none in memory.
    pub(super) fn file(&self) -> Option<&IndexFile> {
        self.file.as_ref().map(|(file, _)| file)
    }

    /// Remembers damage, into which nothing may be written.
    pub(super) fn noted<T>(&self, answer: Result<T, IndexError>) -> Result<T, IndexError> {
        if matches!(answer, Err(IndexError::Damaged { .. })) {
            self.is_damaged.set(true);
        }
        answer
    }

    /// Makes changes: all or, on an error, none.
    ///
    /// A file that was deleted or replaced since it was opened gives way to the new one.
    pub(super) fn put<T>(
        &mut self,
        put: impl FnOnce(&Transaction<'_>) -> Result<T, IndexError>,
    ) -> Result<T, IndexError> {
        self.ready()?;
        read_only(&self.connection, false)?;
        let written = self.in_transaction(put);
        let written = self.noted(written);
        read_only(&self.connection, true)?;
        let dir = self.file().map_or(Path::new(""), IndexFile::dir);
        written.map_err(|error| error.in_dir(dir))
    }

    /// Opens the file again that has the name now; damage is never written into.
    pub(super) fn ready(&mut self) -> Result<(), IndexError> {
        if self.is_damaged.get() {
            return Err(IndexError::damaged("nothing is written into it"));
        }
        if self.file.is_some() && !self.has_its_name() {
            self.reopen()?;
        }
        Ok(())
    }

    /// Whether the file that is open has the name now.
    pub(super) fn has_its_name(&self) -> bool {
        self.file.as_ref().is_some_and(|(file, opened)| file.identity() == *opened)
    }

    /// At once a writer's, because one that becomes a writer after it has read fails without waiting.
    fn in_transaction<T>(
        &mut self,
        put: impl FnOnce(&Transaction<'_>) -> Result<T, IndexError>,
    ) -> Result<T, IndexError> {
        let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let made = put(&transaction)?;
        transaction.commit()?;
        Ok(made)
    }

    /// Opens the place again, with a new file if this one is damaged.
    pub(super) fn reopen(&mut self) -> Result<(), IndexError> {
        // The file is closed before it is moved; if there is no other, this goes on in memory.
        let memory = Self::in_memory(self.content)?;
        let Self { content, connection, file, is_damaged } = std::mem::replace(self, memory);
        drop(connection);
        let Some((file, opened)) = file else { return Ok(()) };
        if is_damaged.get() {
            let _lock = file.lock()?;
            // Another process may have been quicker.
            if file.identity() == opened {
                file.move_aside()?;
            }
        }
        *self = Self::open(Place::Directory(file.dir()), content)?.0;
        Ok(())
    }
}

/// Keeps the other threads of this process from opening a file with a log at the same time.
///
/// SQLite opens the log's shared memory by name, when a file is first read. POSIX locks do not keep a process from
/// itself: of two files that had one name in turn, the thread that reads the second one would cut off the memory that
/// the reader of the first one has mapped (SIGBUS), if both found the same. So what is opened is also read, and a new
/// file does not meet what the one before left behind.
fn alone(content: Content) -> Option<MutexGuard<'static, ()>> {
    static OPENING: Mutex<()> = Mutex::new(());
    // Without a log there is no shared memory, and the first reading waits for who writes.
    (content == Content::Plans).then(|| OPENING.lock().unwrap_or_else(PoisonError::into_inner))
}

fn connect(file: &IndexFile, more: OpenFlags) -> Result<Connection, IndexError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX | more;
    Ok(Connection::open_with_flags(file.path(), flags)?)
}

/// Makes the settings that a connection, not the file, keeps.
pub(super) fn configured(connection: Connection) -> Result<Connection, IndexError> {
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
pub(super) fn read_only(connection: &Connection, is_on: bool) -> Result<(), IndexError> {
    Ok(connection.pragma_update(None, "query_only", is_on)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_lost_its_name_before_it_was_read_is_none() {
        let dir = tempfile::tempdir().unwrap();
        let open = || drop(Store::open(Place::Directory(dir.path()), Content::Plans).unwrap());
        let file = IndexFile::in_dir(dir.path(), Content::Plans);
        let read = |connection, identity| Store::read(connection, &file, identity, Content::Plans).unwrap();
        open();
        let (connection, identity) = (connect(&file, OpenFlags::empty()).unwrap(), file.identity().unwrap());
        assert!(read(connect(&file, OpenFlags::empty()).unwrap(), identity).is_some());
        file.move_aside().unwrap();
        open();
        assert!(read(connection, identity).is_none());
    }
}
