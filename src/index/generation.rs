//! Which commit an index shows, and whose: so that a process can tell that nobody else wrote into it.

use std::fmt;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::str::FromStr;
use std::sync::OnceLock;

use rusqlite::{Connection, OptionalExtension, params};

use crate::index::error::IndexError;

/// The number of a commit and the process that made it.
///
/// The numbers of a file begin anywhere, so that those of one that was made anew do not follow those of the old one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Generation {
    number: u64,
    writer: u64,
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
    /// Returns whether this process alone wrote since `before`, and at most once; none is an index without a commit.
    pub fn follows(self, before: Option<Self>) -> bool {
        let is_next = match before {
            Some(before) => self.number == before.number.wrapping_add(1),
            None => self.number & COUNT == 0,
        };
        before == Some(self) || (is_next && self.writer == writer())
    }

    /// The first commit of a file, of this process.
    fn first() -> Self {
        let of_file = RandomState::new().build_hasher().finish();
        Self { number: of_file & !COUNT, writer: writer() }
    }

    fn next(self) -> Self {
        Self { number: self.number.wrapping_add(1), writer: writer() }
    }
}

/// What counts the commits of a file; the rest is the file's own.
const COUNT: u64 = u32::MAX as u64;

/// A number that no other process has, but for chance.
fn writer() -> u64 {
    static WRITER: OnceLock<u64> = OnceLock::new();
    *WRITER.get_or_init(|| {
        let mut hasher = RandomState::new().build_hasher();
        hasher.write_u32(std::process::id());
        hasher.finish()
    })
}

impl fmt::Display for Generation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:016x}", self.number, self.writer)
    }
}

impl FromStr for Generation {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (number, writer) = text.split_once('.').ok_or(())?;
        let writer = u64::from_str_radix(writer, 16).map_err(drop)?;
        Ok(Self { number: number.parse().map_err(drop)?, writer })
    }
}

/// Returns the last commit that wrote; none in an index that was never filled.
pub(super) fn read(connection: &Connection) -> Result<Option<Generation>, IndexError> {
    let mut statement =
        connection.prepare_cached("SELECT CAST(value AS TEXT) FROM meta WHERE key = 'generation'")?;
    let text: Option<String> = statement.query_row([], |row| row.get(0)).optional()?;
    Ok(text.and_then(|it| it.parse().ok()))
}

/// Says that this process writes; a part of the transaction that does.
pub(super) fn raise(connection: &Connection) -> Result<(), IndexError> {
    let text = read(connection)?.map_or_else(Generation::first, Generation::next).to_string();
    let mut statement = connection.prepare_cached("INSERT OR REPLACE INTO meta VALUES ('generation', ?1)")?;
    statement.execute(params![text.as_bytes()])?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(now: &str, before: &str, expected: bool) {
        let read = |it: &str| it.replace("me", &format!("{:016x}", writer())).parse::<Generation>().unwrap();
        assert_eq!(read(now).follows(Some(read(before))), expected, "{now} after {before}");
    }

    #[test]
    fn only_one_commit_of_this_process_follows() {
        check("7.me", "7.me", true);
        check("7.00000000000000aa", "7.00000000000000aa", true);
        check("8.me", "7.00000000000000aa", true);
        check("8.00000000000000aa", "7.me", false);
        check("9.me", "7.me", false);
        check("7.me", "7.00000000000000aa", false);
        check("0.me", "7.me", false);
        let (first, other) = (Generation::first(), Generation::first());
        assert!(first.follows(None));
        assert!(!first.next().follows(None) && first.next().follows(Some(first)));
        assert!(!other.follows(Some(first)) && !other.next().follows(Some(first)), "of two files");
    }
}
