//! Reading: everything asked of one snapshot is of one moment, whatever other processes write meanwhile.

use std::cell::Cell;

use rusqlite::{Connection, OptionalExtension, Row, Transaction};

use crate::index::error::IndexError;
use crate::index::freshness::FileRow;
use crate::index::generation::{self, Generation};
use crate::index::search::{self, Hit, Query};
use crate::index::sql::{self, Table};
use crate::index::sums::{self, Sum};
use crate::index::{data, schema};
use crate::plan::id::PlanId;
use crate::plan::model::Plan;
use crate::plan::plans::Plans;

/// The index at one moment.
///
/// Whoever compares [`files`](Self::files) with the disk asks the same snapshot for the plans: between two of them
/// another process may have put in what an older walk found.
#[derive(Debug)]
pub struct Snapshot<'a> {
    transaction: Transaction<'a>,
    is_damaged: &'a Cell<bool>,
}

impl<'a> Snapshot<'a> {
    pub(super) fn new(connection: &'a Connection, is_damaged: &'a Cell<bool>) -> Result<Self, IndexError> {
        Ok(Self { transaction: connection.unchecked_transaction()?, is_damaged })
    }

    /// Returns the files that the plans were read from, sorted by path.
    pub fn files(&self) -> Result<Vec<FileRow>, IndexError> {
        self.noted(files(&self.transaction))
    }

    /// Returns the plans as they were given to `replace`, in the order of [`Plans`], their bodies empty.
    ///
    /// Exactly those: with the problems between files if the given ones had been judged.
    pub fn load(&self) -> Result<Vec<Plan>, IndexError> {
        self.noted(load(&self.transaction))
    }

    /// Gives the plans one by one, as they were given to `replace`, in no order.
    ///
    /// What was given counts only if this succeeds: that the rows are sound shows at the end.
    pub fn each_plan(&self, take: &mut dyn FnMut(Plan)) -> Result<(), IndexError> {
        self.noted(each_plan(&self.transaction, take))
    }

    /// Returns the commit that this is a look at; none if nothing was ever put in.
    pub fn generation(&self) -> Result<Option<Generation>, IndexError> {
        self.noted(generation::read(&self.transaction))
    }

    /// Returns what is known of one file.
    pub fn file(&self, path: &str) -> Result<Option<FileRow>, IndexError> {
        self.noted(file(&self.transaction, path))
    }

    /// Returns the plan of this name, spelled in any normal form of Unicode; a live one wins over an archived one.
    ///
    /// Reads the other plans' rows too, but only for their sum.
    pub fn load_plan(&self, id: &PlanId) -> Result<Option<Plan>, IndexError> {
        self.noted(load_plan(&self.transaction, id))
    }

    /// Searches titles, bodies, and what is recorded in front matters.
    pub fn search(&self, query: &Query) -> Result<Vec<Hit>, IndexError> {
        let checked = sums::check_tables(&self.transaction, &["document"])
            .and_then(|()| sums::check_tables(&self.transaction, &schema::FULL_TEXT));
        self.noted(checked.and_then(|()| search::search(&self.transaction, query)))
    }

    /// Runs a user's own query over the views; it can only read.
    pub fn sql(&self, query: &str) -> Result<Table, IndexError> {
        let checked = sums::check_tables(&self.transaction, &["file_row"])
            .and_then(|()| sums::check_tables(&self.transaction, &schema::ROWS));
        self.noted(checked.and_then(|()| sql::run(&self.transaction, query)))
    }

    /// Remembers damage, into which nothing may be written.
    fn noted<T>(&self, answer: Result<T, IndexError>) -> Result<T, IndexError> {
        if matches!(answer, Err(IndexError::Damaged { .. })) {
            self.is_damaged.set(true);
        }
        answer
    }
}

fn files(connection: &Connection) -> Result<Vec<FileRow>, IndexError> {
    let mut statement = connection.prepare_cached("SELECT * FROM file_row ORDER BY path")?;
    let mut rows = statement.query([])?;
    let (mut files, mut sum) = (Vec::new(), Sum::default());
    while let Some(row) = rows.next()? {
        sum.add(&(0..8).map(|at| row.get_ref(at)).collect::<Result<Vec<_>, _>>()?);
        files.push(file_row(row)?);
    }
    sums::check(connection, "file_row", sum)?;
    Ok(files)
}

fn load(connection: &Connection) -> Result<Vec<Plan>, IndexError> {
    let mut plans = Vec::new();
    each_plan(connection, &mut |it| plans.push(it))?;
    Ok(Plans::new(plans).into_vec())
}

fn each_plan(connection: &Connection, take: &mut dyn FnMut(Plan)) -> Result<(), IndexError> {
    let mut statement = connection.prepare_cached("SELECT * FROM plan_data")?;
    let mut rows = statement.query([])?;
    let mut sum = Sum::default();
    while let Some(row) = rows.next()? {
        sum.add(&[row.get_ref(0)?, row.get_ref(1)?, row.get_ref(2)?]);
        take(plan(row)?);
    }
    sums::check(connection, "plan_data", sum)
}

fn file(connection: &Connection, path: &str) -> Result<Option<FileRow>, IndexError> {
    let mut statement = connection.prepare_cached("SELECT * FROM file_row WHERE path = ?1")?;
    Ok(statement.query_row([path], file_row).optional()?)
}

fn load_plan(connection: &Connection, id: &PlanId) -> Result<Option<Plan>, IndexError> {
    sums::check_tables(connection, &["plan_data"])?;
    let named = "SELECT * FROM plan_data WHERE plan = ?1 ORDER BY archived LIMIT 1";
    let exact = connection.prepare_cached(named)?.query_row([id.as_str()], |row| Ok(plan(row))).optional()?;
    match exact {
        Some(found) => found.map(Some),
        None if id.as_str().is_ascii() => Ok(None),
        None => Ok(Plans::new(load(connection)?).get(id).cloned()),
    }
}

fn file_row(row: &Row<'_>) -> Result<FileRow, rusqlite::Error> {
    Ok(FileRow {
        path: row.get(0)?,
        len: row.get::<_, i64>(1)?.cast_unsigned(),
        mtime_ns: row.get(2)?,
        ctime_ns: row.get(3)?,
        ino: row.get::<_, i64>(4)?.cast_unsigned(),
        dev: row.get::<_, i64>(5)?.cast_unsigned(),
        hash: row.get(6)?,
        racy: row.get(7)?,
    })
}

fn plan(row: &Row<'_>) -> Result<Plan, IndexError> {
    let bytes = row.get_ref(2)?.as_blob().map_err(rusqlite::Error::from)?;
    data::decode(bytes).ok_or_else(|| IndexError::damaged("a plan's data cannot be read"))
}
