//! What commits did to the plans, by commit. A commit never changes, so a row that is not damaged is valid.

use std::collections::HashMap;

use rusqlite::{OptionalExtension, params};

use crate::index::error::IndexError;
use crate::index::schema::Content;
use crate::index::store::Store;
use crate::index::{Opened, Place};

/// The bytes of the hash after a value.
const HASH: usize = 16;

/// The commits that were read before. It can be deleted at any time.
#[derive(Debug)]
pub struct History {
    store: Store,
}

/// What was read of one repository, as bytes of the caller's.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Commits {
    /// Describes the newest commit and the order; empty if nothing was read.
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

    /// Returns all commits that were read under this scope; a damaged row is missing.
    pub fn read(&self, scope: &[u8]) -> Result<Commits, IndexError> {
        self.store.noted(self.read_all(scope))
    }

    fn read_all(&self, scope: &[u8]) -> Result<Commits, IndexError> {
        let transaction = self.store.connection.unchecked_transaction()?;
        let mut meta = transaction.prepare_cached("SELECT value FROM meta WHERE key = ?1")?;
        let mut value = |key: &str| meta.query_row([key], |row| row.get::<_, Vec<u8>>(0)).optional();
        if value("scope")?.as_deref() != Some(scope) {
            return Ok(Commits::default());
        }
        let list = value("list")?.and_then(|it| whole(b"list", it)).unwrap_or_default();
        let mut data = HashMap::new();
        let mut rows = transaction.prepare_cached("SELECT oid, data FROM history")?;
        let mut rows = rows.query([])?;
        while let Some(row) = rows.next()? {
            let (oid, value): (Vec<u8>, Vec<u8>) = (row.get(0)?, row.get(1)?);
            if let Some(value) = whole(&oid, value) {
                data.insert(oid, value);
            }
        }
        Ok(Commits { list, data })
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
            let list = proved(b"list", &more.list);
            it.execute("INSERT OR REPLACE INTO meta VALUES ('list', ?1)", params![list])?;
            let mut add = it.prepare_cached("INSERT OR REPLACE INTO history VALUES (?1, ?2)")?;
            let mut sorted: Vec<_> = more.data.iter().collect();
            sorted.sort_unstable();
            for (oid, data) in sorted {
                add.execute(params![oid, proved(oid, data)])?;
            }
            Ok(())
        })
    }
}

fn hash(key: &[u8], value: &[u8]) -> [u8; HASH] {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&(key.len() as u64).to_le_bytes()).update(key).update(value);
    let mut hash = [0; HASH];
    hasher.finalize_xof().fill(&mut hash);
    hash
}

/// The value with the hash that proves it.
fn proved(key: &[u8], value: &[u8]) -> Vec<u8> {
    [value, &hash(key, value)].concat()
}

fn whole(key: &[u8], mut value: Vec<u8>) -> Option<Vec<u8>> {
    let len = value.len().checked_sub(HASH)?;
    let is_whole = value[len..] == hash(key, &value[..len]);
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

    #[test]
    fn commits_are_kept_until_the_scope_changes() {
        let dir = tempfile::tempdir().unwrap();
        let open = || History::open(Place::Directory(dir.path())).unwrap().0;
        assert_eq!(open().read(b"a").unwrap(), Commits::default());
        open().write(b"a", &commits("1", &[("x", "one")])).unwrap();
        open().write(b"a", &commits("12", &[("y", "two")])).unwrap();
        assert_eq!(open().read(b"a").unwrap(), commits("12", &[("x", "one"), ("y", "two")]));
        assert_eq!(open().read(b"b").unwrap(), Commits::default());
        open().write(b"b", &commits("3", &[("z", "three")])).unwrap();
        assert_eq!(open().read(b"b").unwrap(), commits("3", &[("z", "three")]));
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
        assert_eq!(history.read(b"a").unwrap(), commits("1", &[("y", "two")]));
    }
}
