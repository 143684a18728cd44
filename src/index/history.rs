//! What git commits did to the plans, by commit. A commit never changes, so a sound row is valid as long as the scope is
//! the same. The scope is a hash that the caller computes from everything else that a row depends on.

use std::collections::HashMap;

use rusqlite::{OptionalExtension, ToSql, params};

use crate::index::error::IndexError;
use crate::index::row::{self, half};
use crate::index::schema::Content;
use crate::index::store::Store;
use crate::index::{Opened, Place};

/// A cache of the commits that were read. It can be deleted at any time.
#[derive(Debug)]
pub struct History {
    store: Store,
}

/// What was read of one repository, as bytes that the caller encodes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Commits {
    /// Describes the newest commit and the order of the commits; empty if nothing was read.
    pub list: Vec<u8>,
    /// The data of each commit, by its id.
    pub data: HashMap<Vec<u8>, Vec<u8>>,
}

impl History {
    /// Opens the history at a place; a file that cannot be used is replaced.
    pub fn open(place: Place<'_>) -> Result<(Self, Opened), IndexError> {
        let (store, opened) = Store::open(place, Content::History)?;
        Ok((Self { store }, opened))
    }

    /// Returns the stored list, which describes the newest commit and the order of the commits. The result is empty if
    /// nothing was read under this scope, or if the list is damaged.
    pub fn list(&self, scope: &[u8]) -> Result<Vec<u8>, IndexError> {
        let select = "SELECT value FROM meta WHERE key = ?1";
        Ok(self.value(select, params!["list"])?.and_then(|it| whole(scope, b"list", it)).unwrap_or_default())
    }

    /// The data of a commit, by its id; `None` if it was not read under this scope, or is damaged.
    pub fn commit(&self, scope: &[u8], oid: &[u8]) -> Result<Option<Vec<u8>>, IndexError> {
        let row = self.value("SELECT data FROM history WHERE oid = ?1", params![oid])?;
        Ok(row.and_then(|it| whole(scope, oid, it)))
    }

    fn value(&self, select: &str, of: &[&dyn ToSql]) -> Result<Option<Vec<u8>>, IndexError> {
        let read = || {
            let mut select = self.store.connection.prepare_cached(select)?;
            Ok(select.query_row(of, |row| row.get(0)).optional()?)
        };
        self.store.record_damage(read())
    }

    /// Adds commits and replaces the list. Rows of another scope are removed first.
    pub fn write(&mut self, scope: &[u8], more: &Commits) -> Result<(), IndexError> {
        self.store.put(|it| {
            let kept = it
                .query_row("SELECT value FROM meta WHERE key = 'scope'", [], |row| row.get::<_, Vec<u8>>(0));
            if kept.optional()?.as_deref() != Some(scope) {
                it.execute("DELETE FROM history", [])?;
                it.execute("INSERT OR REPLACE INTO meta VALUES ('scope', ?1)", params![scope])?;
            }
            let list = proved(scope, b"list", &more.list);
            it.execute("INSERT OR REPLACE INTO meta VALUES ('list', ?1)", params![list])?;
            let mut add = it.prepare_cached("INSERT OR REPLACE INTO history VALUES (?1, ?2)")?;
            let mut sorted: Vec<_> = more.data.iter().collect();
            sorted.sort_unstable();
            for (oid, data) in sorted {
                add.execute(params![oid, proved(scope, oid, data)])?;
            }
            Ok(())
        })
    }
}

/// A hash of a value with its scope and key. It is checked after each read, because another process may replace rows
/// between two reads.
fn hash(scope: &[u8], key: &[u8], value: &[u8]) -> row::Version {
    let mut hasher = blake3::Hasher::new();
    for part in [scope, key] {
        hasher.update(&(part.len() as u64).to_le_bytes()).update(part);
    }
    half(&hasher.update(value).finalize())
}

/// The value, followed by its hash.
fn proved(scope: &[u8], key: &[u8], value: &[u8]) -> Vec<u8> {
    [value, &hash(scope, key, value)].concat()
}

fn whole(scope: &[u8], key: &[u8], mut value: Vec<u8>) -> Option<Vec<u8>> {
    let len = value.len().checked_sub(size_of::<row::Version>())?;
    let is_whole = value[len..] == hash(scope, key, &value[..len]);
    value.truncate(len);
    is_whole.then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn commits(list: &str, data: &[(&str, &str)]) -> Commits {
        let bytes = |it: &str| it.as_bytes().to_vec();
        Commits { list: bytes(list), data: data.iter().map(|(oid, it)| (bytes(oid), bytes(it))).collect() }
    }

    /// The list, and the data of the commits x, y and z; `None` for each that is missing.
    fn read(of: &History, scope: &[u8]) -> [Option<String>; 4] {
        let text = |it: Vec<u8>| String::from_utf8(it).unwrap();
        let [x, y, z] = ["x", "y", "z"].map(|it| of.commit(scope, it.as_bytes()).unwrap().map(text));
        [Some(text(of.list(scope).unwrap())).filter(|it| !it.is_empty()), x, y, z]
    }

    fn known(of: [&str; 4]) -> [Option<String>; 4] {
        of.map(|it| Some(it.to_owned()).filter(|it| !it.is_empty()))
    }

    #[test]
    fn commits_are_kept_until_the_scope_changes() {
        let dir = tempfile::tempdir().unwrap();
        let open = || History::open(Place::Directory(dir.path())).unwrap().0;
        assert_eq!(read(&open(), b"a"), known([""; 4]));
        open().write(b"a", &commits("1", &[("x", "one")])).unwrap();
        open().write(b"a", &commits("12", &[("y", "two")])).unwrap();
        assert_eq!(read(&open(), b"a"), known(["12", "one", "two", ""]));
        assert_eq!(read(&open(), b"b"), known([""; 4]));
        open().write(b"b", &commits("3", &[("z", "three")])).unwrap();
        assert_eq!(read(&open(), b"b"), known(["3", "", "", "three"]));
        assert_eq!(read(&open(), b"a"), known([""; 4]));
    }

    #[test]
    fn a_changed_row_is_missing() {
        let dir = tempfile::tempdir().unwrap();
        let mut history = History::open(Place::Directory(dir.path())).unwrap().0;
        history.write(b"a", &commits("1", &[("x", "one"), ("y", "two")])).unwrap();
        history
            .store
            .put(|it| Ok(it.execute("UPDATE history SET data = x'00' WHERE oid = x'78'", [])?))
            .unwrap();
        assert_eq!(read(&history, b"a"), known(["1", "", "two", ""]));
    }
}
