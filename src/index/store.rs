//! An SQLite file that can be recreated: opened, written atomically, and replaced if it is damaged.

use std::cell::Cell;
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, FileControl, OpenFlags, Transaction, TransactionBehavior};

use crate::index::error::IndexError;
use crate::index::file::{self, Identity, IndexFile, Names};
use crate::index::open_guard::{self, Alone, Used};
use crate::index::schema::{self, Content, FileState};
use crate::index::{Opened, Place};

/// An open file, or a database in memory.
#[derive(Debug)]
pub(super) struct Store {
    content: Content,
    pub(super) connection: Connection,
    /// `None` in memory.
    opened: Option<OpenedFile>,
    pub(super) is_damaged: Cell<bool>,
}

/// An open file, and the identities of its database, log and shared memory when it was first read.
#[derive(Debug)]
struct OpenedFile {
    file: IndexFile,
    names: Names,
    /// Dropped after the connection.
    _used: Option<Used>,
}

/// How long to wait for another process's write.
pub(super) const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// How long one attempt to open a file waits for another process. It is short, because other threads of this process wait
/// for `Alone` meanwhile.
const TURN: Duration = Duration::from_millis(50);

impl Store {
    /// Opens the database at a place; a file that cannot be used is replaced.
    pub(super) fn open(place: Place<'_>, content: Content) -> Result<(Self, Opened), IndexError> {
        let Place::Directory(dir) = place else { return Ok((Self::in_memory(content)?, Opened::Made)) };
        let (file, since) = (IndexFile::in_dir(dir, content), Instant::now());
        let (store, opened) = loop {
            match Self::kept_or_made(&file, content) {
                Err(IndexError::Busy) if since.elapsed() < BUSY_TIMEOUT => {}
                opened => break opened.map_err(|error| error.in_dir(dir))?,
            }
        };
        if opened != Opened::Kept {
            // An error is ignored, because this cleanup is optional.
            file::clear_unused(&file).ok();
        }
        Ok((store, opened))
    }

    fn kept_or_made(file: &IndexFile, content: Content) -> Result<(Self, Opened), IndexError> {
        let kept = Self::kept(file, content, turn(content).as_mut());
        match kept {
            Ok(Some(store)) => Ok((store, Opened::Kept)),
            // `Unwritable` may mean that another process is moving the file aside.
            Ok(None) | Err(IndexError::Damaged { .. } | IndexError::Unwritable { .. }) => {
                Self::make(file, content)
            }
            Err(error) => Err(error),
        }
    }

    fn in_memory(content: Content) -> Result<Self, IndexError> {
        let mut connection = configured(Connection::open_in_memory()?, BUSY_TIMEOUT)?;
        schema::ensure(&mut connection, content, None)?;
        Self::of(connection, content)
    }

    /// Opens a file that already has its schema. `None` if there is no file, if it has no schema or another journal mode, or
    /// if its name refers to another file by now.
    fn kept(
        file: &IndexFile,
        content: Content,
        alone: Option<&mut Alone>,
    ) -> Result<Option<Self>, IndexError> {
        let names = file.names();
        let Some(identity) = names.database else { return Ok(None) };
        if !file.is_plain() {
            return Err(IndexError::damaged("its name is taken by something that is not a file"));
        }
        if alone.as_ref().is_some_and(|it| it.is_of_another(names)) {
            return Err(IndexError::damaged("one of its files was replaced while it was open"));
        }
        Self::read(connect(file, OpenFlags::empty())?, (file, identity), content, alone)
    }

    fn read(
        connection: Connection,
        (file, identity): (&IndexFile, Identity),
        content: Content,
        alone: Option<&mut Alone>,
    ) -> Result<Option<Self>, IndexError> {
        let connection = configured(connection, TURN)?;
        let found = schema::look_at(&connection, Some(identity).filter(|_| content.has_log()))?;
        let journal: String = connection.pragma_query_value(None, "journal_mode", |row| row.get(0))?;
        let names = file.names();
        // The log was opened by name after the file, so it may belong to a new file that replaced this one.
        if found == FileState::Empty || journal != content.journal() || names.database != Some(identity) {
            return Ok(None);
        }
        Self::of_file(connection, content, (file, names), alone).map(Some)
    }

    /// Creates the file if it is missing, and replaces it if it is damaged.
    ///
    /// The lock lets only one process at a time do this. Without it, SQLite would fail instead of waiting when two processes
    /// switch a file to a write-ahead log, and two processes that find the same damage would move each other's new file
    /// aside.
    fn make(file: &IndexFile, content: Content) -> Result<(Self, Opened), IndexError> {
        let _lock = file.lock()?;
        let mut turn = turn(content);
        let why = match Self::kept(file, content, turn.as_mut()) {
            Ok(Some(store)) => return Ok((store, Opened::Kept)),
            Err(IndexError::Damaged { what }) => Some(what),
            Ok(None) => None,
            Err(error) => return Err(error),
        };
        if why.is_some() {
            file.move_aside()?;
        }
        if file.is_empty() {
            file.remove_rest()?;
        }
        file.make_empty()?;
        let mut connection = configured(connect(file, OpenFlags::SQLITE_OPEN_CREATE)?, TURN)?;
        // The new mode is not checked here: without shared memory, SQLite keeps the rollback journal. If the file cannot be
        // used, `ensure` below fails.
        connection.pragma_update_and_check(None, "journal_mode", content.journal(), |_| Ok(()))?;
        let identity = file.identity().filter(|_| content.has_log());
        let found = schema::ensure(&mut connection, content, identity).map_err(|error| match error {
            // A damaged file was moved aside above, so damage here is caused by the directory or its file system.
            IndexError::Damaged { what } => IndexError::unwritable(file.dir(), io::Error::other(what)),
            error => error,
        })?;
        let opened = match (why, found) {
            (Some(why), _) => Opened::Rebuilt { why },
            (None, FileState::Sound) => Opened::Kept,
            (None, FileState::Empty) => Opened::Made,
        };
        Ok((Self::of_file(connection, content, (file, file.names()), turn.as_mut())?, opened))
    }

    fn of_file(
        connection: Connection,
        content: Content,
        (file, names): (&IndexFile, Names),
        alone: Option<&mut Alone>,
    ) -> Result<Self, IndexError> {
        let store = Self::of(connection, content)?;
        // `used` is created last, after everything that can fail. Dropping it takes the lock that this thread already has
        // through `alone`, so a drop here would wait forever.
        let used = alone.map(|it| it.using(names));
        Ok(Self { opened: Some(OpenedFile { file: file.clone(), names, _used: used }), ..store })
    }

    fn of(connection: Connection, content: Content) -> Result<Self, IndexError> {
        connection.busy_timeout(BUSY_TIMEOUT)?;
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, false)?;
        read_only(&connection, true)?;
        Ok(Self { content, connection, opened: None, is_damaged: Cell::new(false) })
    }

    /// The open file; `None` in memory.
    pub(super) fn file(&self) -> Option<&IndexFile> {
        self.opened.as_ref().map(|it| &it.file)
    }

    /// Marks the file as damaged if `answer` is the error for damage. After that, `put` refuses to write.
    pub(super) fn record_damage<T>(&self, answer: Result<T, IndexError>) -> Result<T, IndexError> {
        if matches!(answer, Err(IndexError::Damaged { .. })) {
            self.is_damaged.set(true);
        }
        answer
    }

    /// Runs the closure in one transaction: all its changes are made or, on an error, none.
    ///
    /// If the file was deleted or replaced since it was opened, it is reopened first.
    pub(super) fn put<T>(
        &mut self,
        put: impl FnOnce(&Transaction<'_>) -> Result<T, IndexError>,
    ) -> Result<T, IndexError> {
        self.ready()?;
        read_only(&self.connection, false)?;
        let written = self.in_transaction(put);
        let written = self.record_damage(written);
        read_only(&self.connection, true)?;
        let dir = self.file().map_or(Path::new(""), IndexFile::dir);
        written.map_err(|error| error.in_dir(dir))
    }

    /// Prepares a write: fails if the file is damaged, and reopens it if the name of the database, its log or its shared
    /// memory refers to another file now.
    pub(super) fn ready(&mut self) -> Result<(), IndexError> {
        if self.is_damaged.get() {
            return Err(IndexError::damaged("an earlier access found an error, so nothing more is written"));
        }
        let Some(OpenedFile { file, names, .. }) = &self.opened else { return Ok(()) };
        let now = file.names();
        if now == *names {
            return Ok(());
        }
        // If the database is the same, its log or shared memory was deleted or replaced. Other processes then do not
        // see this process's locks, so the file counts as damaged.
        self.is_damaged.set(now.database == names.database);
        self.reopen()
    }

    pub(super) fn has_its_name(&self) -> bool {
        self.opened.as_ref().is_some_and(|it| it.file.names() == it.names)
    }

    /// Runs a write transaction. It takes the write lock at its start, because taking it after a read can fail without
    /// waiting.
    fn in_transaction<T>(
        &mut self,
        put: impl FnOnce(&Transaction<'_>) -> Result<T, IndexError>,
    ) -> Result<T, IndexError> {
        let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let made = put(&transaction)?;
        transaction.commit()?;
        Ok(made)
    }

    /// Opens the file again, or a new one if it is damaged.
    pub(super) fn reopen(&mut self) -> Result<(), IndexError> {
        // The file must be closed before it is moved. If no file can be opened afterwards, `self` stays in memory.
        let memory = Self::in_memory(self.content)?;
        let Self { content, connection, opened, is_damaged } = std::mem::replace(self, memory);
        drop(connection);
        let Some(OpenedFile { file, names, _used: used }) = opened else { return Ok(()) };
        drop(used);
        if is_damaged.get() {
            let _lock = file.lock()?;
            // Another process may have moved it aside already.
            if file.identity() == names.database {
                file.move_aside()?;
            }
        }
        *self = Self::open(Place::Directory(file.dir()), content)?.0;
        Ok(())
    }
}

/// The exclusive right to open databases. `None` for a file without a log, which does not need it.
fn turn(content: Content) -> Option<Alone> {
    content.has_log().then(open_guard::alone)
}

fn connect(file: &IndexFile, more: OpenFlags) -> Result<Connection, IndexError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX | more;
    let connection = Connection::open_with_flags(file.path(), flags)?;
    // Closing must not remove files by name, because the names may refer to other files by then. Until it is verified that
    // the log belongs to this file, closing must not checkpoint the log either.
    connection.file_control(None::<&str>, FileControl::PersistWal(&mut 1))?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    Ok(connection)
}

pub(super) fn configured(connection: Connection, patience: Duration) -> Result<Connection, IndexError> {
    // The timeout comes first, because some of the settings read the file.
    connection.busy_timeout(patience)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    // A power cut may damage the file. Torn rows then fail their hash check, and the file can be recreated.
    connection.pragma_update(None, "synchronous", "OFF")?;
    connection.pragma_update(None, "cell_size_check", true)?;
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    connection.pragma_update(None, "mmap_size", 0)?;
    connection.pragma_update(None, "journal_size_limit", 4 << 20)?;
    Ok(connection)
}

/// Makes a connection read-only, or writable again. On a read-only connection, every statement that writes fails.
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
        let read =
            |connection, identity| Store::read(connection, (&file, identity), Content::Plans, None).unwrap();
        open();
        let (connection, identity) = (connect(&file, OpenFlags::empty()).unwrap(), file.identity().unwrap());
        assert!(read(connect(&file, OpenFlags::empty()).unwrap(), identity).is_some());
        file.move_aside().unwrap();
        open();
        assert!(read(connection, identity).is_none());
    }

    #[expect(clippy::disallowed_methods, reason = "the test replaces as a user would")]
    fn replace(from: &Path, to: &Path) {
        std::fs::rename(from, to).unwrap();
    }

    #[test]
    fn a_copied_file_does_not_take_the_log_beside_it() {
        let dir = tempfile::tempdir().unwrap();
        let mut store = Store::open(Place::Directory(dir.path()), Content::Plans).unwrap().0;
        let file = IndexFile::in_dir(dir.path(), Content::Plans);
        let copy = dir.path().join("copy");
        std::fs::copy(file.path(), &copy).unwrap();
        store.put(|it| Ok(it.execute("INSERT INTO meta VALUES ('more', x'00')", [])?)).unwrap();
        let len = || std::fs::metadata(file.named("-wal")).unwrap().len();
        let before = len();
        replace(&copy, &file.path());
        // This opens the file as another process would, without the check of the files that this process has open.
        let copied = (&file, file.identity().unwrap());
        let connection = connect(&file, OpenFlags::empty()).unwrap();
        assert!(Store::read(connection, copied, Content::Plans, None).is_err());
        assert_eq!((before > 0, len()), (true, before));
    }
}
