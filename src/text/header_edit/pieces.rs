//! Divides a front matter into one piece of text for each key, so that whole entries can be compared or exchanged.

use std::ops::Range;

use super::insert::{entry_end, entry_start};
use super::lines::Lines;
use crate::text::front_matter::{Header, Parts};
use crate::text::yaml::{Kind, Style, Tree};

/// One key with its value, the comments and blank lines above it, and the indented comments below it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    pub key: String,
    /// The position of all these lines in the file.
    pub range: Range<usize>,
}

/// A whole front matter: the pieces in their order, then the lines after the last one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pieces {
    pub entries: Vec<Piece>,
    pub rest: Range<usize>,
}

/// Divides a front matter into pieces. `None` if there is no front matter, or if it cannot be divided because it is written
/// in braces, or contains aliases, merges, document markers, lone carriage returns, or top-level keys that are indented or
/// are not texts.
pub fn pieces(parts: &Parts<'_>, tree: &Tree) -> Option<Pieces> {
    let Header::Present { yaml, .. } = &parts.header else { return None };
    let root = tree.root();
    if root.is_null() {
        return Some(Pieces { entries: Vec::new(), rest: yaml.clone() });
    }
    let is_plain = root.kind() == Kind::Map && root.style() == Style::Block && !tree.has_document_marks();
    let text = tree.source();
    let has_lone_return = text.replace("\r\n", "").contains('\r');
    if !is_plain || has_lone_return || tree.aliases().next().is_some() {
        return None;
    }
    let lines = Lines { text, first_eol: "\n" };
    let (mut entries, mut from) = (Vec::new(), 0);
    for entry in root.own_entries() {
        let start = entry_start(entry);
        if entry.0.kind() != Kind::Text || entry.0.text() == Some("<<") || lines.column(start) != 0 {
            return None;
        }
        let to = lines.skip_deeper_comments(lines.end(entry_end(entry)), 0);
        let range = yaml.start + from..yaml.start + to;
        entries.push(Piece { key: entry.0.text()?.to_owned(), range });
        from = to;
    }
    Some(Pieces { entries, rest: yaml.start + from..yaml.end })
}
