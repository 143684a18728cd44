//! Sums of tables, which tell a row that changed, went or came without planwatch doing it: of the schema, and of the
//! full text, whose rows SQLite writes itself. The rows of plans prove themselves.

use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension, params};

use crate::index::error::IndexError;

/// The sum of a table's rows in any order.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Sum(u128);

impl Sum {
    fn add(&mut self, row: &[ValueRef<'_>]) {
        self.0 = self.0.wrapping_add(hash(row));
    }
}

/// 128 bits of the hash over type, length and bytes of each cell.
fn hash(row: &[ValueRef<'_>]) -> u128 {
    let mut hasher = blake3::Hasher::new();
    for cell in row {
        let (kind, bytes): (u8, &[u8]) = match cell {
            ValueRef::Null => (0, &[]),
            ValueRef::Integer(it) => (1, &it.to_le_bytes()),
            ValueRef::Real(it) => (2, &it.to_le_bytes()),
            ValueRef::Text(it) => (3, it),
            ValueRef::Blob(it) => (4, it),
        };
        hasher.update(&[kind]);
        hasher.update(&(bytes.len() as u64).to_le_bytes());
        hasher.update(bytes);
    }
    let mut half = [0; 16];
    hasher.finalize_xof().fill(&mut half);
    u128::from_le_bytes(half)
}

/// What a sum is taken of: the schema, or the rows of a table.
fn select(table: &str) -> String {
    match table {
        // Where a table's root is shows in the table's own rows; its statistics are not kept.
        "sqlite_schema" => "SELECT type, name, tbl_name, sql FROM sqlite_schema".to_owned(),
        // Rows are read by their number, which `*` has here too.
        _ => format!("SELECT * FROM {table}"),
    }
}

/// Reads a whole table and returns its sum.
fn of_table(connection: &Connection, table: &str) -> Result<Sum, IndexError> {
    let mut statement = connection.prepare_cached(&select(table))?;
    let n_columns = statement.column_count();
    let mut rows = statement.query([])?;
    let mut sum = Sum::default();
    while let Some(row) = rows.next()? {
        let cells = (0..n_columns).map(|at| row.get_ref(at)).collect::<Result<Vec<_>, _>>()?;
        sum.add(&cells);
    }
    Ok(sum)
}

/// Returns the sum that was kept for a table.
fn kept(connection: &Connection, table: &str) -> Result<Sum, IndexError> {
    let mut statement = connection.prepare_cached("SELECT value FROM meta WHERE key = 'sum of ' || ?1")?;
    let sum = statement.query_row([table], |row| row.get::<_, [u8; 16]>(0)).optional()?;
    sum.map(|it| Sum(u128::from_le_bytes(it)))
        .ok_or_else(|| IndexError::damaged(format!("no sum of {table}")))
}

fn keep(connection: &Connection, table: &str, sum: Sum) -> Result<(), IndexError> {
    let mut statement =
        connection.prepare_cached("INSERT OR REPLACE INTO meta VALUES ('sum of ' || ?1, ?2)")?;
    statement.execute(params![table, sum.0.to_le_bytes()])?;
    Ok(())
}

fn check(connection: &Connection, table: &str, read: Sum) -> Result<(), IndexError> {
    if kept(connection, table)? == read {
        return Ok(());
    }
    Err(IndexError::damaged(format!("the rows of {table} are not those that were written")))
}

/// Tables of the full text.
const FULL_TEXT: [&str; 5] = ["search_data", "search_idx", "search_docsize", "search_config", "searched"];

pub(super) fn keep_schema(connection: &Connection) -> Result<(), IndexError> {
    keep(connection, "sqlite_schema", of_table(connection, "sqlite_schema")?)
}

pub(super) fn check_schema(connection: &Connection) -> Result<(), IndexError> {
    check(connection, "sqlite_schema", of_table(connection, "sqlite_schema")?)
}

/// Reads all of the full text.
pub(super) fn keep_full_text(connection: &Connection) -> Result<(), IndexError> {
    FULL_TEXT.iter().try_for_each(|it| keep(connection, it, of_table(connection, it)?))
}

/// Reads all of the full text.
pub(super) fn check_full_text(connection: &Connection) -> Result<(), IndexError> {
    FULL_TEXT.iter().try_for_each(|it| check(connection, it, of_table(connection, it)?))
}
