//! The index's schema, and whether a file has it.

use rusqlite::{Connection, OptionalExtension, TransactionBehavior, params};

use crate::index::error::IndexError;
use crate::index::sums;

/// Raised with every change of `schema.sql`.
pub const VERSION: i32 = 2;

/// "plan", so that `file` and a curious SQLite shell can tell the file from others.
const APPLICATION: i32 = 0x706c_616e;

/// The reading that the rows come from: another release, or another number behind it, may read a file otherwise.
///
/// The file's name has it, and the version, so that two releases do not fight over one file.
pub(super) const READER: &str = concat!(env!("CARGO_PKG_VERSION"), " 3");

const SCHEMA: &str = include_str!("schema.sql");

/// What a file was found to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Found {
    /// An index of this schema and reader.
    Sound,
    /// Nothing yet.
    Empty,
}

/// Tells what a file is; any other than these two is damaged.
pub(super) fn look_at(connection: &Connection) -> Result<Found, IndexError> {
    if n_objects(connection)? == 0 {
        return Ok(Found::Empty);
    }
    check(connection).map(|()| Found::Sound)
}

/// Makes the schema in a file that was empty.
pub(super) fn ensure(connection: &mut Connection) -> Result<Found, IndexError> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let found = look_at(&transaction)?;
    if found == Found::Sound {
        return Ok(found);
    }
    transaction.execute_batch(SCHEMA)?;
    transaction.pragma_update(None, "application_id", APPLICATION)?;
    transaction.pragma_update(None, "user_version", VERSION)?;
    transaction.execute("INSERT INTO meta VALUES ('reader', ?1)", params![READER.as_bytes()])?;
    sums::keep_schema(&transaction)?;
    sums::keep_full_text(&transaction)?;
    transaction.commit()?;
    Ok(found)
}

fn n_objects(connection: &Connection) -> Result<i64, IndexError> {
    Ok(connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?)
}

fn check(connection: &Connection) -> Result<(), IndexError> {
    let number = |name| connection.pragma_query_value(None, name, |row| row.get::<_, i32>(0));
    if number("application_id")? != APPLICATION {
        return Err(IndexError::damaged("the file is no index of planwatch"));
    }
    let version = number("user_version")?;
    if version != VERSION {
        return Err(IndexError::damaged(format!("the schema is version {version}, not {VERSION}")));
    }
    let reader: Option<String> = connection
        .query_row("SELECT CAST(value AS TEXT) FROM meta WHERE key = 'reader'", [], |row| row.get(0))
        .optional()?;
    if reader.as_deref() != Some(READER) {
        return Err(IndexError::damaged("another release of planwatch made it"));
    }
    sums::check_schema(connection)
}
