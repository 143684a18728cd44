//! Unique names of the index's own commits, which show whether another process has written to the index.

use std::fmt;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::str::FromStr;

use rusqlite::{Connection, OptionalExtension, params};

use crate::index::error::IndexError;

/// The random name of a commit of the index, unique across all files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Generation(u128);

/// Identifies the rows from which a full-text index was filled: by the commit of the index, and by `reader`, the hash of
/// the status words with which the plans were read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin(String);

impl Origin {
    pub(super) fn new(generation: Generation, reader: u64) -> Self {
        Self(format!("{generation} {reader:016x}"))
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

impl Generation {
    fn new() -> Self {
        let half = || u128::from(RandomState::new().build_hasher().finish());
        Self(half() << 64 | half())
    }
}

impl fmt::Display for Generation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl FromStr for Generation {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        u128::from_str_radix(text, 16).map(Self).map_err(drop)
    }
}

/// Returns the last commit; `None` for an index that was never filled.
pub(super) fn read(connection: &Connection) -> Result<Option<Generation>, IndexError> {
    let mut statement =
        connection.prepare_cached("SELECT CAST(value AS TEXT) FROM meta WHERE key = 'generation'")?;
    let text: Option<String> = statement.query_row([], |row| row.get(0)).optional()?;
    Ok(text.and_then(|it| it.parse().ok()))
}

pub(super) fn raise(connection: &Connection) -> Result<Generation, IndexError> {
    let commit = Generation::new();
    let mut statement = connection.prepare_cached("INSERT OR REPLACE INTO meta VALUES ('generation', ?1)")?;
    statement.execute(params![commit.to_string().as_bytes()])?;
    Ok(commit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip_and_are_unique() {
        let (one, other) = (Generation::new(), Generation::new());
        assert_eq!(one.to_string().parse(), Ok(one));
        assert_ne!(one, other);
    }
}
