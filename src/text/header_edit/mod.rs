//! Edits of a front matter that leave every other byte of the file unchanged.
//!
//! Each change is planned as byte splices over the spans of the parsed text and applied to a copy. It is accepted only
//! if the copy, parsed again, means the old data with exactly that change. The module knows YAML and the place of some
//! keys, but nothing of plans.

mod arrange;
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
pub use pieces::{Piece, Pieces, pieces};
pub use refusal::EditError;
pub use transfer::append_from;
pub use value::NewValue;

use page::Page;

#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    /// Replaces the value of a key, or adds the key.
    Set { key: String, value: NewValue },
    /// Adds an item at the end of a list; a missing key, null and `[]` become a list.
    Append { key: String, item: NewValue },
    /// Removes a key; if there is no such key, nothing changes.
    Remove { key: String },
    /// Replaces the item of a list, counted from zero.
    SetItem { key: String, index: usize, value: NewValue },
    /// Removes the item of a list, counted from zero.
    RemoveItem { key: String, index: usize },
}

/// Applies changes in their order and returns the new file. If they do not change the data, the bytes are the same.
///
/// `order` lists the known keys in their usual order. A new key goes after the nearest existing key that precedes it in
/// this list; otherwise before the nearest existing key that follows it; otherwise to the end. It never goes after
/// `attempts`, and `id` goes directly above `status`. A file without front matter gets one if a key is set or an item is
/// appended.
///
/// # Errors
///
/// An error names the place, the reason and what to type by hand. If one change is refused, none is made.
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
            | Self::SetItem { key, .. }
            | Self::RemoveItem { key, .. } => key,
        }
    }

    fn value(&self) -> Option<&NewValue> {
        match self {
            Self::Set { value, .. } | Self::Append { item: value, .. } | Self::SetItem { value, .. } => {
                Some(value)
            }
            Self::Remove { .. } | Self::RemoveItem { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests;
