//! Why an edit was rejected, and what the user can do.

use super::Change;
use super::render::flow;
use crate::text::scalar::{self, Place};
use crate::text::yaml::YamlError;

/// An edit that was not made; the file is unchanged.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
#[non_exhaustive]
pub struct EditError {
    /// A problem's code, or one of this module's constants.
    pub code: &'static str,
    /// Byte offset in the file.
    pub at: usize,
    pub reason: String,
    pub by_hand: String,
}

/// An alias refers to the value through an anchor, so the alias would change, too.
pub(super) const ANCHOR_IN_USE: &str = "anchor-in-use";
/// The value is defined elsewhere, as the target of an alias or a merge.
pub(super) const ALIAS: &str = "alias";
pub(super) const WRONG_TYPE: &str = "wrong-type";
pub(super) const FILE_FULL: &str = "file-full";
pub(super) const NO_SUCH_ITEM: &str = "no-such-item";
/// The new value is not a single YAML value, its aliases expand to too many nodes, or a key is too long.
pub(super) const VALUE_INVALID: &str = "value-invalid";
/// Valid YAML in a layout that cannot be edited.
pub(super) const LAYOUT: &str = "layout";
/// The edit would not have the intended meaning. This is detected before anything is written.
pub(super) const BUG: &str = "bug";

impl EditError {
    pub(super) fn new(code: &'static str, at: usize, reason: impl Into<String>) -> Self {
        Self { code, at, reason: reason.into(), by_hand: String::new() }
    }

    pub(super) fn yaml(error: YamlError, offset: usize) -> Self {
        Self::new(error.code, offset + error.at, error.message)
    }

    pub(super) fn shifted(mut self, offset: usize) -> Self {
        self.at += offset;
        self
    }

    /// Adds what a user can type to make the change, if the error does not contain this yet.
    pub(super) fn by_hand(mut self, change: &Change) -> Self {
        if self.by_hand.is_empty() {
            self.by_hand = by_hand(self.code, change);
        }
        self
    }
}

fn by_hand(code: &str, change: &Change) -> String {
    let first = match code {
        "front-matter-unclosed" => "close the front matter with a line `---`, then ",
        "conflict-markers" => "resolve the conflict, then ",
        "duplicate-key" => "remove one of the two lines, then ",
        "front-matter-invalid" | "not-a-mapping" | "not-utf8" => "repair the front matter, then ",
        ANCHOR_IN_USE => "write the value in place of the alias, then ",
        ALIAS => "write the value out in place of the alias or merge, then ",
        FILE_FULL | "too-large" => "move older entries to another file, then ",
        _ => "",
    };
    let key = change.key();
    // Hints have no line breaks, so all values are shown on one line.
    let rest = match change {
        Change::Set { value, .. } => format!("set `{}: {}`", scalar::inline(key, Place::Flow), flow(value)),
        Change::Append { item, .. } if code == WRONG_TYPE => {
            format!("make `{key}` a list, then add the item `- {}`", flow(item))
        }
        Change::Append { item, .. } => format!("add to `{key}`: `- {}`", flow(item)),
        Change::SetEntries { .. } => format!("change `{key}` in an editor"),
        Change::Remove { .. } => format!("remove the entry `{key}`"),
        Change::SetItem { index, value, .. } => {
            format!("replace item {} of `{key}` by `- {}`", index + 1, flow(value))
        }
        Change::RemoveItem { index, .. } => format!("remove item {} of `{key}`", index + 1),
    };
    format!("{first}{rest}")
}
