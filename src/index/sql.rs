//! User queries: a single read-only statement over the views.
//!
//! Five safeguards are independent of each other: a statement must begin with one of a few keywords, only one statement is
//! run, `PRAGMA query_only` is on, SQLite itself must report that the statement is read-only, and the database is created in
//! memory for this query.

use std::time::{Duration, Instant};

use rusqlite::types::ValueRef;
use serde::Serialize;
use serde_json::Value;

use crate::index::error::IndexError;
use crate::index::freshness::FileRow;
use crate::index::knowledge::Knowledge;
use crate::index::relations;
use crate::index::store::{BUSY_TIMEOUT, configured, read_only};
use crate::plan::model::Plan;

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Table {
    /// As the query names them; duplicates are possible.
    pub columns: Vec<String>,
    /// Binary values become hexadecimal, infinities become texts.
    pub rows: Vec<Vec<Value>>,
}

/// How long a statement of a user may run. A query over HTTP continues after its client has disconnected, so it needs a
/// limit.
pub const SQL_LIMIT: Duration = Duration::from_secs(60);

/// How many steps of SQLite's virtual machine are run before the clock is read again.
const STEPS: i32 = 100_000;

/// Runs one read-only statement over views of plans, files and knowledge.
///
/// `plans` include the problems between them. `files` are those from which the plans were read, by path. `knowledge` is
/// called only if the statement can read one of its views. The statement is interrupted after `limit`; the time for filling
/// the views does not count.
pub fn sql<'a>(
    query: &str,
    limit: Duration,
    files: impl Iterator<Item = (String, &'a FileRow)>,
    plans: impl Iterator<Item = &'a Plan>,
    knowledge: impl FnOnce() -> Knowledge,
) -> Result<Table, IndexError> {
    let first = first_word(query).to_ascii_uppercase();
    if !["SELECT", "WITH", "VALUES", "EXPLAIN"].contains(&first.as_str()) {
        return Err(IndexError::SqlRefused { why: "only SELECT, WITH, VALUES and EXPLAIN are run" });
    }
    let mut connection = configured(relations::connection(query, files, plans, knowledge)?, BUSY_TIMEOUT)?;
    read_only(&connection, true)?;
    let end = Instant::now() + limit;
    connection.progress_handler(STEPS, Some(move || Instant::now() >= end))?;
    let mut statement = connection.prepare(query).map_err(explain)?;
    if !statement.readonly() {
        return Err(IndexError::SqlRefused { why: "only statements that read are run" });
    }
    if statement.parameter_count() > 0 {
        return Err(IndexError::SqlRefused { why: "parameters are not supported" });
    }
    let columns = statement.column_names().map(str::to_owned).collect::<Vec<_>>();
    let mut rows = statement.query([]).map_err(explain)?;
    let mut table = Table { columns, rows: Vec::new() };
    while let Some(row) = rows.next().map_err(explain)? {
        let cells = (0..table.columns.len()).map(|at| row.get_ref(at).map(to_json));
        table.rows.push(cells.collect::<Result<_, _>>().map_err(explain)?);
    }
    Ok(table)
}

fn to_json(cell: ValueRef<'_>) -> Value {
    match cell {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(it) => it.into(),
        ValueRef::Real(it) if it.is_finite() => it.into(),
        ValueRef::Real(it) => it.to_string().into(),
        ValueRef::Text(it) => String::from_utf8_lossy(it).into(),
        ValueRef::Blob(it) => it.iter().map(|byte| format!("{byte:02x}")).collect::<String>().into(),
    }
}

/// Reports an error of the statement as the user's, and an error of the database file as one of the index.
fn explain(error: rusqlite::Error) -> IndexError {
    use rusqlite::ErrorCode::{DatabaseBusy, DatabaseCorrupt, DatabaseLocked, NotADatabase, SystemIoFailure};
    let of_file = [DatabaseBusy, DatabaseCorrupt, DatabaseLocked, NotADatabase, SystemIoFailure];
    match error {
        rusqlite::Error::MultipleStatement => {
            IndexError::SqlRefused { why: "only one statement at a time is run" }
        }
        error if error.sqlite_error_code().is_some_and(|it| of_file.contains(&it)) => error.into(),
        error if error.sqlite_error_code() == Some(rusqlite::ErrorCode::OperationInterrupted) => {
            IndexError::SqlError { message: "the query took too long, and was ended".to_owned() }
        }
        rusqlite::Error::SqliteFailure(_, Some(message)) => IndexError::SqlError { message },
        rusqlite::Error::SqlInputError { msg, .. } => IndexError::SqlError { message: msg },
        error => IndexError::SqlError { message: error.to_string() },
    }
}

/// Returns the first word after blanks and comments.
fn first_word(query: &str) -> &str {
    let mut rest = query.trim_start();
    loop {
        let behind = if let Some(comment) = rest.strip_prefix("--") {
            comment.split_once('\n').map_or("", |(_, behind)| behind)
        } else if let Some(comment) = rest.strip_prefix("/*") {
            comment.split_once("*/").map_or("", |(_, behind)| behind)
        } else {
            break;
        };
        rest = behind.trim_start();
    }
    let end = rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len());
    &rest[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_word_comes_after_comments() {
        for (query, word) in [
            ("select 1", "select"),
            (" -- DROP\n /* x */ WITH a", "WITH"),
            ("/* open", ""),
            ("-- only", ""),
            ("SELECT*FROM plans", "SELECT"),
            (";SELECT 1", ""),
        ] {
            assert_eq!(first_word(query), word, "{query}");
        }
    }
}
