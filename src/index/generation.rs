//! Which commit an index shows, by a name of its own: so that it can be told whether somebody else wrote into it.

use std::fmt;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::str::FromStr;

use rusqlite::{Connection, OptionalExtension, params};

use crate::index::error::IndexError;

/// The name of a commit, which no other one has, of whatever file, but for chance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Generation(u128);

/// Changes that were made: the commit that they were made to, if there was one, and theirs.
///
/// Whoever compared another commit with the files does not know what the index holds now: what somebody else has put in
/// since may come from an older look than its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Written {
    pub before: Option<Generation>,
    pub after: Generation,
}

/// Which rows a full text was filled from: the file, by the name that it got when it was made, its commit, and what
/// its plans were read by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin(String);

impl Origin {
    pub(super) fn new(made: &str, generation: Generation, reader: u64) -> Self {
        Self(format!("{made} {generation} {reader:016x}"))
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

impl Generation {
    fn new() -> Self {
        Self(some_name())
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

/// A name that nothing else has, but for chance.
pub(super) fn some_name() -> u128 {
    let half = || u128::from(RandomState::new().build_hasher().finish());
    half() << 64 | half()
}

/// Returns the last commit that wrote; none in an index that was never filled.
pub(super) fn read(connection: &Connection) -> Result<Option<Generation>, IndexError> {
    let mut statement =
        connection.prepare_cached("SELECT CAST(value AS TEXT) FROM meta WHERE key = 'generation'")?;
    let text: Option<String> = statement.query_row([], |row| row.get(0)).optional()?;
    Ok(text.and_then(|it| it.parse().ok()))
}

/// Gives the commit a name; a part of the transaction.
pub(super) fn raise(connection: &Connection) -> Result<Written, IndexError> {
    let written = Written { before: read(connection)?, after: Generation::new() };
    let mut statement = connection.prepare_cached("INSERT OR REPLACE INTO meta VALUES ('generation', ?1)")?;
    statement.execute(params![written.after.to_string().as_bytes()])?;
    Ok(written)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_read_as_it_is_written_and_no_two_are_alike() {
        let (one, other) = (Generation::new(), Generation::new());
        assert_eq!(one.to_string().parse(), Ok(one));
        assert_ne!(one, other);
    }
}
