//! Checksums of tables, which show whether another program or a fault has added, changed or deleted rows. They cover the
//! schema and the full-text index, whose rows SQLite writes itself. Rows of plans contain their own hash instead.
//!
//! Each table of the full-text index is divided into parts with one checksum each. After a write, only the changed parts are
//! read to compute their new checksums.

use std::collections::{BTreeMap, BTreeSet};

use rusqlite::types::ValueRef;
use rusqlite::{CachedStatement, Connection, OptionalExtension, Params, params};

use crate::index::error::IndexError;

/// The sum of the hashes of rows. It does not depend on the order of the rows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Sum(u128);

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

/// `rootpage` is left out: with a wrong root page, SQLite would read wrong rows, and the checksums of rows show that.
/// Statistics of tables are not covered.
const SCHEMA: &str = "SELECT type, name, tbl_name, sql FROM sqlite_schema";

/// The sum of all rows of a query.
fn sum_of(connection: &Connection, select: &str) -> Result<Sum, IndexError> {
    let mut sum = Sum::default();
    each_row(&mut connection.prepare_cached(select)?, [], |row| {
        sum.add(row);
        Ok(())
    })?;
    Ok(sum)
}

fn each_row(
    statement: &mut CachedStatement<'_>,
    with: impl Params,
    mut take: impl FnMut(&[ValueRef<'_>]) -> Result<(), IndexError>,
) -> Result<(), IndexError> {
    let n_columns = statement.column_count();
    let mut rows = statement.query(with)?;
    while let Some(row) = rows.next()? {
        let cells = (0..n_columns).map(|at| row.get_ref(at)).collect::<Result<Vec<_>, _>>()?;
        take(&cells)?;
    }
    Ok(())
}

pub(super) fn keep_schema(connection: &Connection) -> Result<(), IndexError> {
    let sum = sum_of(connection, SCHEMA)?.0.to_le_bytes();
    connection.execute("INSERT OR REPLACE INTO meta VALUES ('sum of the schema', ?1)", params![sum])?;
    Ok(())
}

pub(super) fn check_schema(connection: &Connection) -> Result<(), IndexError> {
    let mut kept = connection.prepare_cached("SELECT value FROM meta WHERE key = 'sum of the schema'")?;
    let kept = kept.query_row([], |row| row.get::<_, [u8; 16]>(0)).optional()?;
    if kept.map(u128::from_le_bytes) == Some(sum_of(connection, SCHEMA)?.0) {
        return Ok(());
    }
    Err(IndexError::damaged("the rows of sqlite_schema are not those that were written"))
}

/// A table of the full-text index, or an SQL index of such a table. Rows whose numbers differ only in the last `bits` bits
/// form one part.
#[derive(Debug, Clone, Copy)]
struct Source {
    name: &'static str,
    select: &'static str,
    /// The table and a `WHERE` condition, to which more conditions can be added with `AND`.
    from: &'static str,
    /// The column with the row's number.
    column: &'static str,
    bits: u32,
}

/// In a row number of an FTS5 data table, the last 37 bits are the position in a segment. The bits before them are the
/// segment's number.
const SEGMENT_BITS: u32 = 37;

/// FTS5 records the deleted rows of an older segment under the segment's number plus this.
const TOMBSTONES: i64 = 1 << 16;

const fn table(name: &'static str, from: &'static str, column: &'static str, bits: u32) -> Source {
    Source { name, select: "*", from, column, bits }
}

const DATA: Source = table("search_data", "search_data WHERE 1", "id", SEGMENT_BITS);
const IDX: Source = table("search_idx", "search_idx WHERE 1", "segid", 0);
const DOCSIZE: Source = table("search_docsize", "search_docsize WHERE 1", "id", 12);
const TITLES_DATA: Source = table("titles_data", "titles_data WHERE 1", "id", SEGMENT_BITS);
const TITLES_IDX: Source = table("titles_idx", "titles_idx WHERE 1", "segid", 0);
const TITLES_DOCSIZE: Source = table("titles_docsize", "titles_docsize WHERE 1", "id", 12);
const SEARCHED: Source = table("searched", "searched NOT INDEXED WHERE 1", "first", 12);
const NAMES: Source = Source {
    name: "searched_name",
    select: "first, archived, name",
    from: "searched INDEXED BY searched_name WHERE 1",
    ..SEARCHED
};
const RECORDS: Source = Source {
    name: "searched_record",
    select: "first, name",
    from: "searched INDEXED BY searched_record WHERE instr(name, '/') > 0",
    ..SEARCHED
};
const SOURCES: [Source; 9] =
    [DATA, IDX, DOCSIZE, TITLES_DATA, TITLES_IDX, TITLES_DOCSIZE, SEARCHED, NAMES, RECORDS];

/// FTS5's tables of settings. Each has few rows, which form a single part.
const CONFIGS: [&str; 2] = ["search_config", "titles_config"];

#[derive(Debug, Default)]
pub(super) struct Touched(BTreeSet<(&'static str, i64)>);

impl Touched {
    /// Records a row that SQLite's update hook reports. The hook does not report rows of `WITHOUT ROWID` tables.
    pub(super) fn row(&mut self, table: &str, id: i64) {
        let mut note = |source: Source, part: i64| {
            self.0.insert((source.name, part));
        };
        let of_segments = [(DATA, IDX), (TITLES_DATA, TITLES_IDX)];
        let of_sizes = [DOCSIZE, TITLES_DOCSIZE];
        if let Some((data, idx)) = of_segments.into_iter().find(|it| it.0.name == table) {
            let segment = id >> data.bits;
            note(data, segment);
            // Rows of `idx` are only written together with a row of the same segment in `data`.
            note(idx, segment % TOMBSTONES);
        } else if let Some(size) = of_sizes.into_iter().find(|it| it.name == table) {
            note(size, id >> size.bits);
        } else if table == SEARCHED.name {
            [SEARCHED, NAMES, RECORDS].into_iter().for_each(|it| note(it, id >> it.bits));
        }
    }
}

type Parts = BTreeMap<(String, i64), [u8; 16]>;

fn read_all(connection: &Connection) -> Result<Parts, IndexError> {
    let mut parts: BTreeMap<(&str, i64), Sum> = BTreeMap::new();
    for Source { name, select, from, column, bits } in SOURCES {
        let all = format!("SELECT {column}, {select} FROM {from}");
        each_row(&mut connection.prepare_cached(&all)?, [], |row| {
            let ValueRef::Integer(id) = row[0] else {
                return Err(IndexError::damaged(format!("a row of {name} has no number")));
            };
            parts.entry((name, id >> bits)).or_default().add(&row[1..]);
            Ok(())
        })?;
    }
    for config in CONFIGS {
        parts.insert((config, 0), of_config(connection, config)?);
    }
    Ok(parts
        .into_iter()
        .map(|((table, part), sum)| ((table.to_owned(), part), sum.0.to_le_bytes()))
        .collect())
}

fn of_config(connection: &Connection, table: &str) -> Result<Sum, IndexError> {
    sum_of(connection, &format!("SELECT * FROM {table}"))
}

/// Reads all of the full-text index and stores its checksums.
pub(super) fn keep_all(connection: &Connection) -> Result<(), IndexError> {
    connection.execute("DELETE FROM part", [])?;
    let mut put = connection.prepare_cached("INSERT INTO part VALUES (?1, ?2, ?3)")?;
    for ((table, part), sum) in read_all(connection)? {
        put.execute(params![table, part, sum])?;
    }
    Ok(())
}

/// Stores the checksums of the touched parts and of the tables of settings; the others are unchanged.
pub(super) fn keep(connection: &Connection, touched: &Touched) -> Result<(), IndexError> {
    let mut put = connection.prepare_cached("INSERT OR REPLACE INTO part VALUES (?1, ?2, ?3)")?;
    for config in CONFIGS {
        put.execute(params![config, 0, of_config(connection, config)?.0.to_le_bytes()])?;
    }
    let mut remove = connection.prepare_cached("DELETE FROM part WHERE source = ?1 AND part = ?2")?;
    for (table, part) in &touched.0 {
        let source = SOURCES.into_iter().find(|it| it.name == *table);
        let Some(Source { select, from, column, bits, .. }) = source else { continue };
        let some = format!("SELECT {select} FROM {from} AND {column} BETWEEN ?1 AND ?2");
        let (mut sum, mut n) = (Sum::default(), 0_usize);
        let (first, rest) = (part << bits, (1_i64 << bits) - 1);
        each_row(&mut connection.prepare_cached(&some)?, [first, first + rest], |row| {
            sum.add(row);
            n += 1;
            Ok(())
        })?;
        if n == 0 {
            remove.execute(params![table, part])?;
        } else {
            put.execute(params![table, part, sum.0.to_le_bytes()])?;
        }
    }
    Ok(())
}

/// Reads all of the full-text index and compares it with the stored checksums.
pub(super) fn check_all(connection: &Connection) -> Result<(), IndexError> {
    let mut kept = connection.prepare_cached("SELECT source, part, sum FROM part")?;
    let kept = kept.query_map([], |row| Ok(((row.get(0)?, row.get(1)?), row.get(2)?)))?;
    let kept = kept.collect::<Result<Parts, _>>()?;
    let read = read_all(connection)?;
    let differs = |(of, sum): (&(String, i64), &[u8; 16]), other: &Parts| {
        (other.get(of) != Some(sum)).then(|| of.0.clone())
    };
    let wrong = read.iter().find_map(|it| differs(it, &kept));
    match wrong.or_else(|| kept.iter().find_map(|it| differs(it, &read))) {
        None => Ok(()),
        Some(table) => {
            Err(IndexError::damaged(format!("the rows of {table} are not those that were written")))
        }
    }
}
