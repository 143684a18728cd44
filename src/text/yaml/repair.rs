//! Repairs texts that the scanner rejects but other parsers accept. A copy of the text is repaired, and the offsets in the
//! tree are mapped back.
//!
//! A text is repaired only if the repair cannot change its meaning. The known cases are:
//! - continuation lines of a quoted scalar that are not indented; libyaml accepts them, and writers that wrap titles produce
//!   them;
//! - a comment directly after a quote or bracket;
//! - an indented comment below an empty block scalar with an indentation indicator.

use super::{NONE, Tree, YamlError};

/// The maximum number of bytes that are parsed in total. The text is parsed again after each repair.
const MAX_READ: usize = 2 << 20;

/// The number of blanks that are inserted at once. It exceeds the usual indentation of enclosing blocks. Leading blanks of
/// a continuation line have no meaning.
const INDENT: usize = 128;

pub(super) struct Repair<'a> {
    original: &'a str,
    pub(super) text: String,
    /// The offsets in the original at which blanks were inserted, in ascending order.
    inserted: Vec<usize>,
    read: usize,
}

impl<'a> Repair<'a> {
    pub(super) fn new(original: &'a str) -> Self {
        Self { original, text: original.to_owned(), inserted: Vec::new(), read: original.len() }
    }

    /// Inserts blanks before the first character of a line of a quoted scalar, or before a comment.
    pub(super) fn insert_blanks(&mut self, at: usize) -> bool {
        let place = self.original_at(at);
        // A line that was indented and is rejected again has another fault.
        if self.inserted.binary_search(&place).is_ok() || !self.may_read_again() {
            return false;
        }
        self.inserted.push(place);
        self.inserted.sort_unstable();
        self.text.insert_str(at, &" ".repeat(INDENT));
        true
    }

    /// Moves a comment to the first column, and the blanks before it to the end of its line.
    pub(super) fn outdent_comment(&mut self, at: usize) -> bool {
        let line = self.text[..at].rfind('\n').map_or(0, |it| it + 1);
        let end = self.text[at..].find(['\r', '\n']).map_or(self.text.len(), |it| at + it);
        let is_comment =
            self.text[at..].starts_with('#') && at > line && self.text[line..at].trim().is_empty();
        if !is_comment || !self.may_read_again() {
            return false;
        }
        let moved = format!("{}{}", &self.text[at..end], &self.text[line..at]);
        self.text.replace_range(line..end, &moved);
        true
    }

    pub(super) fn error(&self, mut error: YamlError) -> YamlError {
        error.at = self.original_at(error.at);
        error
    }

    /// Changes a tree of the repaired text so that it refers to the original text.
    pub(super) fn undo(&self, mut tree: Tree) -> Tree {
        if self.text == self.original {
            return tree;
        }
        self.original.clone_into(&mut tree.source);
        let back = |it: u32| if it == NONE { NONE } else { self.original_at(it as usize) as u32 };
        for node in &mut tree.nodes {
            node.outer = back(node.outer);
            node.start = back(node.start);
            node.end = back(node.end);
            node.lead = back(node.lead);
            node.tag_span = (back(node.tag_span.0), back(node.tag_span.1));
            if !node.is_decoded {
                node.content = (back(node.content.0), back(node.content.1));
            }
        }
        tree
    }

    fn original_at(&self, at: usize) -> usize {
        let mut shift = 0;
        for place in &self.inserted {
            if place + shift >= at {
                break;
            }
            shift += INDENT;
        }
        at.saturating_sub(shift).min(self.original.len())
    }

    fn may_read_again(&mut self) -> bool {
        self.read += self.text.len();
        self.read <= MAX_READ
    }
}
