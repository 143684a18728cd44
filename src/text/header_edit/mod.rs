//! Edits a front matter. All bytes outside of an edit stay unchanged.
//!
//! The parsed text contains the position of each value. From these positions, each change is planned as a list of byte
//! splices, which are applied to a copy. The copy is parsed again, and the change is accepted only if the copy means the old
//! data with exactly that change. The module knows nothing about plans, except where a few keys belong (see [`edit`]).

mod arrange;
mod entries;
mod flow_items;
mod insert;
mod items;
mod lines;
mod list;
mod page;
mod pieces;
mod refusal;
mod remove;
mod render;
mod replace;
mod sheet;
mod transfer;
mod value;
mod verify;

pub use arrange::{Part, Written, arranged, written};
pub use entries::EntryChange;
pub use pieces::{Piece, Pieces, pieces};
pub use refusal::EditError;
pub use transfer::append_from;
pub use value::NewValue;

use page::Page;

#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    /// Replaces the value of a key, or adds the key.
    Set { key: String, value: NewValue },
    /// Adds an item at the end of a list. If the key is missing or its value is null or `[]`, it gets a list with this item.
    Append { key: String, item: NewValue },
    /// Removes a key; if there is no such key, nothing changes.
    Remove { key: String },
    /// Sets and removes entries of the mapping at a key. If the key is missing or its value is no mapping or an empty one, it
    /// gets a mapping of the new entries. At least one entry must be left.
    SetEntries { key: String, entries: Vec<EntryChange> },
    /// Replaces the item of a list at `index`, which counts from zero.
    SetItem { key: String, index: usize, value: NewValue },
    /// Removes the item of a list at `index`, which counts from zero.
    RemoveItem { key: String, index: usize },
}

/// Applies changes in their order and returns the new file. A change that does not affect the data changes no bytes.
///
/// `order` lists the known keys in their usual order. A new key goes after the nearest existing key that precedes it in
/// this list. If there is none, it goes before the nearest existing key that follows it in this list. If there is none
/// either, it goes to the end. Three rules take precedence: `id` goes directly above `status` if there is one, a new
/// `attempts` goes to the end, and no other new key goes after `attempts`.
///
/// A file without front matter gets one if a key is set or an item is appended.
///
/// # Errors
///
/// An error contains the position, the reason and what the user can type by hand. If one change is refused, none is made.
pub fn edit(file: &[u8], changes: &[Change], order: &[&str]) -> Result<Vec<u8>, EditError> {
    if changes.is_empty() {
        return Ok(file.to_vec());
    }
    let mut page = Page::open(file.to_vec()).map_err(|it| it.by_hand(&changes[0]))?;
    for change in changes {
        page = page.apply(change, order).map_err(|it| it.by_hand(change))?;
    }
    Ok(page.into_bytes())
}

impl Change {
    pub fn key(&self) -> &str {
        match self {
            Self::Set { key, .. }
            | Self::Append { key, .. }
            | Self::Remove { key }
            | Self::SetEntries { key, .. }
            | Self::SetItem { key, .. }
            | Self::RemoveItem { key, .. } => key,
        }
    }

    fn value(&self) -> Option<&NewValue> {
        match self {
            Self::Set { value, .. } | Self::Append { item: value, .. } | Self::SetItem { value, .. } => {
                Some(value)
            }
            Self::Remove { .. } | Self::SetEntries { .. } | Self::RemoveItem { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests;
