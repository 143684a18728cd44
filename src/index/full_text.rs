//! The full-text index in its file: what it was filled from, and whether it is intact.
//!
//! A caller first checks whether the full-text index is [filled](TextsSnapshot::is_filled_from) from the current rows of
//! the plan index. If not, the caller lists the texts that are [missing](TextsSnapshot::unsearched), and
//! [adds](FullText::write) them. Then it [searches](TextsSnapshot::search).

use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::hooks::Action;
use rusqlite::{Connection, OptionalExtension, Transaction, params};

use crate::index::checksums::{self, Touched};
use crate::index::error::IndexError;
use crate::index::generation::Origin;
use crate::index::row::{Head, Key};
use crate::index::schema::Content;
use crate::index::search::{self, Match, Query, Texts, Unsearched};
use crate::index::store::Store;
use crate::index::{Opened, Place, file, verified_stamp};

/// An open full-text index. In [`Place::Memory`] it belongs to one command.
#[derive(Debug)]
pub struct FullText {
    pub(super) store: Store,
}

/// The full-text index at one moment. No other process writes to it while this exists.
#[derive(Debug)]
pub struct TextsSnapshot<'a> {
    transaction: Transaction<'a>,
    store: &'a Store,
}

/// Identifies a state of the full-text index: a number that every write changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seen(Option<i64>);

impl FullText {
    /// The name of this release's full-text index file in its directory.
    pub fn file_name() -> String {
        file::name(Content::Texts)
    }

    /// Opens the full-text index at a place; a file that cannot be used is replaced.
    pub fn open(place: Place<'_>) -> Result<(Self, Opened), IndexError> {
        let (store, opened) = Store::open(place, Content::Texts)?;
        Ok((Self { store }, opened))
    }

    /// Takes a snapshot. This borrows the full-text index mutably, because SQLite has one transaction per connection.
    pub fn look(&mut self) -> Result<TextsSnapshot<'_>, IndexError> {
        self.looked()
    }

    pub(super) fn looked(&self) -> Result<TextsSnapshot<'_>, IndexError> {
        let transaction = self.store.connection.unchecked_transaction()?;
        let look = TextsSnapshot { transaction, store: &self.store };
        // The lock is taken with the first read.
        look.store.record_damage(seen(&look.transaction))?;
        Ok(look)
    }

    /// Adds texts, and removes those of the keys in `gone`. If the write fails, nothing changes. If another process has
    /// written since `was_seen`, returns false and changes nothing. There can also be an error after a successful write,
    /// from the read that verifies which state was written.
    ///
    /// `texts` is read one by one while the file is locked for writing. Then `origin` is called. It returns the origin of
    /// the texts that the file now contains, or `None` if some texts are still missing.
    pub fn write(
        &mut self,
        texts: &mut dyn Iterator<Item = Texts>,
        gone: &[Key],
        was_seen: Seen,
        origin: &mut dyn FnMut() -> Option<Origin>,
    ) -> Result<bool, IndexError> {
        self.store.ready()?;
        let touched = self.watch()?;
        let file = self.store.file().cloned();
        let written = self.store.put(|it| {
            if seen(it)? != was_seen {
                return Ok(None);
            }
            if file.as_ref().is_some_and(|it| !verified_stamp::is_recorded(it)) {
                checksums::check_all(it)?;
            }
            search::put(it, texts, gone)?;
            let touched = std::mem::take(&mut *touched.lock().unwrap_or_else(PoisonError::into_inner));
            checksums::keep(it, &touched)?;
            mark(it, origin().as_ref()).map(Some)
        });
        self.store.connection.update_hook(None::<fn(Action, &str, &str, i64)>)?;
        let Some(now) = written? else { return Ok(false) };
        // If another process has written after this commit, the stamps belong to a state that was not verified here.
        let look = self.looked()?;
        if let Some(file) = file.filter(|_| seen(&look.transaction).is_ok_and(|it| it == now)) {
            verified_stamp::record(&file);
        }
        Ok(true)
    }

    fn watch(&mut self) -> Result<Arc<Mutex<Touched>>, IndexError> {
        let touched = Arc::new(Mutex::new(Touched::default()));
        let noted = Arc::clone(&touched);
        let note = move |_: Action, _: &str, table: &str, id: i64| {
            noted.lock().unwrap_or_else(PoisonError::into_inner).row(table, id);
        };
        self.store.connection.update_hook(Some(note))?;
        Ok(touched)
    }

    /// Opens the file again, or a new one if it is damaged.
    pub fn reopen(&mut self) -> Result<(), IndexError> {
        self.store.reopen()
    }
}

impl TextsSnapshot<'_> {
    /// Returns whether the full-text index holds exactly the texts of the plans of `origin`.
    pub fn is_filled_from(&self, origin: &Origin) -> Result<bool, IndexError> {
        let filled = "SELECT value FROM meta WHERE key = 'filled'";
        let filled = self.transaction.query_row(filled, [], |row| row.get::<_, Vec<u8>>(0)).optional();
        let filled = self.store.record_damage(filled.map_err(IndexError::from))?;
        Ok(filled.as_deref() == Some(origin.as_bytes()))
    }

    /// Compares the full-text index with the plans of `heads`, if given, and with the decisions and insights in `records`.
    pub fn unsearched<'h>(
        &self,
        heads: Option<&'h [Head]>,
        records: &[Texts],
    ) -> Result<Unsearched<'h>, IndexError> {
        let unsearched = search::unsearched(&self.transaction, heads, records);
        self.store.record_damage(unsearched)
    }

    pub fn seen(&self) -> Result<Seen, IndexError> {
        self.store.record_damage(seen(&self.transaction))
    }

    /// Searches titles, bodies, and text from front matter. The best matches come first.
    pub fn search(&self, query: &Query) -> Result<Vec<Match>, IndexError> {
        self.store.record_damage(self.prove())?;
        self.store.record_damage(search::search(&self.transaction, query))
    }

    /// Verifies the file by its recorded stamps if possible, otherwise by reading all of it.
    fn prove(&self) -> Result<(), IndexError> {
        let Some(file) = self.store.file() else { return Ok(()) };
        // The recorded stamps are compared with those of the file that is at this path now. If the open file was replaced or
        // removed, this path no longer leads to it.
        let has_its_name = self.store.has_its_name();
        if has_its_name && verified_stamp::is_recorded(file) {
            return Ok(());
        }
        let before = verified_stamp::stamps(&file.path());
        checksums::check_all(&self.transaction)?;
        if has_its_name && before.is_some() && verified_stamp::stamps(&file.path()) == before {
            verified_stamp::record(file);
        }
        Ok(())
    }

    /// Reads and verifies the whole file. Callers use this if a search result contradicted the files.
    pub fn doubt(&self) -> Result<(), IndexError> {
        if let Some(file) = self.store.file() {
            verified_stamp::forget(file);
        }
        self.store.record_damage(self.prove())
    }
}

fn seen(connection: &Connection) -> Result<Seen, IndexError> {
    let mut seen = connection.prepare_cached("SELECT value FROM meta WHERE key = 'commit'")?;
    Ok(Seen(seen.query_row([], |row| row.get::<_, [u8; 8]>(0)).optional()?.map(i64::from_le_bytes)))
}

/// Records what the full-text index was filled from, and the number of the new state.
fn mark(connection: &Connection, origin: Option<&Origin>) -> Result<Seen, IndexError> {
    match origin {
        Some(origin) => {
            let put = "INSERT OR REPLACE INTO meta VALUES ('filled', ?1)";
            connection.execute(put, params![origin.as_bytes()])?
        }
        None => connection.execute("DELETE FROM meta WHERE key = 'filled'", [])?,
    };
    let bytes = RandomState::new().build_hasher().finish().to_le_bytes();
    connection.execute("INSERT OR REPLACE INTO meta VALUES ('commit', ?1)", params![bytes])?;
    Ok(Seen(Some(i64::from_le_bytes(bytes))))
}
