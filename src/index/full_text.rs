//! The full text in its file: what it was filled from, and whether it is still what was put in.
//!
//! It is asked in three steps: is it [filled](TextsLook::is_filled_from) from the rows that the index shows? If not,
//! what is [missing](TextsLook::unsearched)? That is [put in](FullText::write). Then it is [searched](TextsLook::search).

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

/// An open full text. In [`Place::Memory`] it is that of one command.
#[derive(Debug)]
pub struct FullText {
    pub(super) store: Store,
}

/// The full text at one moment. Nobody writes into it as long as this is there.
#[derive(Debug)]
pub struct TextsLook<'a> {
    transaction: Transaction<'a>,
    store: &'a Store,
}

/// The state of a full text that something was compared with: a number that every writing changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seen(Option<i64>);

impl FullText {
    /// The name of this release's full text in its directory.
    pub fn file_name() -> String {
        file::name(Content::Texts)
    }

    /// Opens the full text at a place; whatever cannot be used there gives way to a new one.
    pub fn open(place: Place<'_>) -> Result<(Self, Opened), IndexError> {
        let (store, opened) = Store::open(place, Content::Texts)?;
        Ok((Self { store }, opened))
    }

    /// Takes a look; mutably, because SQLite has one transaction a connection.
    pub fn look(&mut self) -> Result<TextsLook<'_>, IndexError> {
        self.looked()
    }

    pub(super) fn looked(&self) -> Result<TextsLook<'_>, IndexError> {
        let transaction = self.store.connection.unchecked_transaction()?;
        let look = TextsLook { transaction, store: &self.store };
        // The lock comes with the first reading.
        look.store.noted(seen(&look.transaction))?;
        Ok(look)
    }

    /// Puts texts in, and takes out those of keys that are gone: all or, on an error, none.
    ///
    /// `texts` are taken one by one while the file is locked for writing; in the end they say whether they are all that
    /// was missing, and then of which rows. Only then it counts as filled from there. Returns whether the full text was
    /// still as it was `seen`; if not, somebody else has written since, and nothing is changed.
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
            if file.as_ref().is_some_and(|it| !verified_stamp::is_noted(it)) {
                checksums::check_all(it)?;
            }
            search::put(it, texts, gone)?;
            let touched = std::mem::take(&mut *touched.lock().unwrap_or_else(PoisonError::into_inner));
            checksums::keep(it, &touched)?;
            mark(it, origin().as_ref()).map(Some)
        });
        self.store.connection.update_hook(None::<fn(Action, &str, &str, i64)>)?;
        let Some(now) = written? else { return Ok(false) };
        // What somebody else has written since is not ours to vouch for.
        let look = self.looked()?;
        if let Some(file) = file.filter(|_| seen(&look.transaction).is_ok_and(|it| it == now)) {
            verified_stamp::note(&file);
        }
        Ok(true)
    }

    /// Listens to which rows SQLite writes.
    fn watch(&mut self) -> Result<Arc<Mutex<Touched>>, IndexError> {
        let touched = Arc::new(Mutex::new(Touched::default()));
        let noted = Arc::clone(&touched);
        let note = move |_: Action, _: &str, table: &str, id: i64| {
            noted.lock().unwrap_or_else(PoisonError::into_inner).row(table, id);
        };
        self.store.connection.update_hook(Some(note))?;
        Ok(touched)
    }

    /// Opens the place again, with a new file if this one is damaged.
    pub fn reopen(&mut self) -> Result<(), IndexError> {
        self.store.reopen()
    }
}

impl TextsLook<'_> {
    /// Returns whether it holds the texts of just the plans that were there.
    pub fn is_filled_from(&self, origin: &Origin) -> Result<bool, IndexError> {
        let filled = "SELECT value FROM meta WHERE key = 'filled'";
        let filled = self.transaction.query_row(filled, [], |row| row.get::<_, Vec<u8>>(0)).optional();
        let filled = self.store.noted(filled.map_err(IndexError::from))?;
        Ok(filled.as_deref() == Some(origin.as_bytes()))
    }

    /// Compares it with these plans, if any are given, and with these records.
    pub fn unsearched<'h>(
        &self,
        heads: Option<&'h [Head]>,
        records: &[Texts],
    ) -> Result<Unsearched<'h>, IndexError> {
        let unsearched = search::unsearched(&self.transaction, heads, records);
        self.store.noted(unsearched)
    }

    /// How it is now.
    pub fn seen(&self) -> Result<Seen, IndexError> {
        self.store.noted(seen(&self.transaction))
    }

    /// Searches titles, bodies, and what is recorded in front matters, best first.
    pub fn search(&self, query: &Query) -> Result<Vec<Match>, IndexError> {
        self.store.noted(self.prove())?;
        self.store.noted(search::search(&self.transaction, query))
    }

    /// Asserts that it is what was put in, by its file's stamps where they tell it, else by reading all of it.
    fn prove(&self) -> Result<(), IndexError> {
        let Some(file) = self.store.file() else { return Ok(()) };
        // What is noted speaks of what has the name.
        let has_its_name = self.store.has_its_name();
        if has_its_name && verified_stamp::is_noted(file) {
            return Ok(());
        }
        let before = verified_stamp::stamps(&file.path());
        checksums::check_all(&self.transaction)?;
        if has_its_name && before.is_some() && verified_stamp::stamps(&file.path()) == before {
            verified_stamp::note(file);
        }
        Ok(())
    }

    /// Has all of it read: an answer was none that the files give.
    pub fn doubt(&self) -> Result<(), IndexError> {
        if let Some(file) = self.store.file() {
            verified_stamp::forget(file);
        }
        self.store.noted(self.prove())
    }
}

fn seen(connection: &Connection) -> Result<Seen, IndexError> {
    let mut seen = connection.prepare_cached("SELECT value FROM meta WHERE key = 'commit'")?;
    Ok(Seen(seen.query_row([], |row| row.get::<_, [u8; 8]>(0)).optional()?.map(i64::from_le_bytes)))
}

/// Says what it was filled from, and that it is another one now.
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
