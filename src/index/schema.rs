//! The schemas of the files, and the check that a file has the right one.

use rusqlite::{Connection, OptionalExtension, TransactionBehavior, params};

use crate::index::checksums;
use crate::index::error::IndexError;
use crate::index::file::Identity;

/// Raised with every change of the tables in `schema.sql`, `texts.sql` or `history.sql`, or of the content of `meta`.
pub const VERSION: i32 = 6;

/// "plan", so that `file` and an SQLite shell can identify the file.
const APPLICATION: i32 = 0x706c_616e;

/// Identifies the code that made the rows: a release, and a number. Code with another value may read a plan's files
/// differently.
const READER: &str = concat!(env!("CARGO_PKG_VERSION"), " 13");

/// [`READER`] as digits for file names: `0.1.0 4` becomes `00010004`.
pub(super) fn reader_digits() -> String {
    let parts = READER.split(['.', ' ', '-', '+']).map(|it| it.parse::<u32>().unwrap_or(0));
    parts.map(|it| format!("{it:02}")).collect()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Content {
    Plans,
    Texts,
    History,
}

impl Content {
    /// The part of the file names between the version and `.db`.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Plans => "",
            Self::Texts => "-texts",
            Self::History => "-history",
        }
    }

    /// SQLite's journal mode.
    ///
    /// Plans are written while other processes read them. Texts and the history are written seldom, and a log next to the
    /// file would be a second file to verify.
    pub(super) fn journal(self) -> &'static str {
        match self {
            Self::Plans => "wal",
            Self::Texts | Self::History => "delete",
        }
    }

    /// Whether the file has a write-ahead log, which comes with shared memory.
    pub(super) fn has_log(self) -> bool {
        self.journal() == "wal"
    }

    fn schema(self) -> &'static str {
        match self {
            Self::Plans => include_str!("schema.sql"),
            Self::Texts => include_str!("texts.sql"),
            Self::History => include_str!("history.sql"),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FileState {
    Sound,
    Empty,
}

/// Determines the state of a database. `file` is its identity if it has a log, otherwise `None`. Returns an error if the
/// database is damaged.
pub(super) fn look_at(connection: &Connection, file: Option<Identity>) -> Result<FileState, IndexError> {
    if n_objects(connection)? == 0 {
        return Ok(FileState::Empty);
    }
    check(connection, file).map(|()| FileState::Sound)
}

pub(super) fn ensure(
    connection: &mut Connection,
    content: Content,
    file: Option<Identity>,
) -> Result<FileState, IndexError> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let found = look_at(&transaction, file)?;
    if found == FileState::Sound {
        return Ok(found);
    }
    transaction.execute_batch(content.schema())?;
    transaction.pragma_update(None, "application_id", APPLICATION)?;
    transaction.pragma_update(None, "user_version", VERSION)?;
    transaction.execute("INSERT INTO meta VALUES ('reader', ?1)", params![READER.as_bytes()])?;
    transaction.execute("INSERT INTO meta VALUES ('file', ?1)", params![mark(file).as_bytes()])?;
    checksums::keep_schema(&transaction)?;
    if content == Content::Texts {
        checksums::keep_all(&transaction)?;
    }
    transaction.commit()?;
    Ok(found)
}

/// A file with a log stores its own inode number; other files store an empty text. In a copy the stored number is wrong, so
/// copies are not used: the log next to a copy may belong to another file.
fn mark(file: Option<Identity>) -> String {
    file.map_or_else(String::new, |it| it.number().to_string())
}

fn n_objects(connection: &Connection) -> Result<i64, IndexError> {
    Ok(connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?)
}

fn check(connection: &Connection, file: Option<Identity>) -> Result<(), IndexError> {
    let number = |name| connection.pragma_query_value(None, name, |row| row.get::<_, i32>(0));
    if number("application_id")? != APPLICATION {
        return Err(IndexError::damaged("the file is not an index of planwatch"));
    }
    let version = number("user_version")?;
    if version != VERSION {
        return Err(IndexError::damaged(format!("the schema is version {version}, not {VERSION}")));
    }
    let meta = |key: &str| {
        let value = "SELECT CAST(value AS TEXT) FROM meta WHERE key = ?1";
        connection.query_row(value, [key], |row| row.get::<_, String>(0)).optional()
    };
    if meta("reader")?.as_deref() != Some(READER) {
        return Err(IndexError::damaged("another release of planwatch made it"));
    }
    if meta("file")? != Some(mark(file)) {
        return Err(IndexError::damaged("it is a copy"));
    }
    checksums::check_schema(connection)
}
