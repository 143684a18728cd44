//! The parsed front matter from which a change is planned, and the splices that make the change.

use super::EditError;
use super::lines::Lines;
use super::refusal::ANCHOR_IN_USE;
use super::render::Renderer;
use crate::text::yaml::{Kind, Style, Tree, View};
use std::ops::Range;

/// A range of bytes and the text that replaces it. Offsets count from the start of the front matter's text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Splice {
    pub(super) range: Range<usize>,
    pub(super) text: String,
}

/// The parsed text from which a change is planned.
pub(super) struct Sheet<'a> {
    pub(super) lines: Lines<'a>,
    pub(super) tree: &'a Tree,
    pub(super) render: Renderer<'a>,
    pub(super) reach: Reach,
}

/// How much is removed together with a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reach {
    Narrow,
    /// Also removes comments and blank lines that would become text of a block scalar above. This is tried if the narrow
    /// edit would not have the intended meaning.
    Wide,
    /// Replaces a list as a whole, even if some items do not change. This is tried for a `Set` if changing single items
    /// failed, for example because of an unusual layout.
    Whole,
}

impl<'a> Sheet<'a> {
    pub(super) fn new(bytes: &'a [u8], range: &Range<usize>, tree: &'a Tree, reach: Reach) -> Self {
        let first_eol = if bytes[..range.start].ends_with(b"\r\n") { "\r\n" } else { "\n" };
        let lines = Lines { text: tree.source(), first_eol };
        let render = Renderer { eol: first_eol, dash_step: dash_step(&lines, tree), has_literals: true };
        Self { lines, tree, render, reach }
    }

    pub(super) fn text(&self) -> &'a str {
        self.lines.text
    }

    pub(super) fn root(&self) -> View<'a> {
        self.tree.root()
    }

    pub(super) fn is_flow(&self) -> bool {
        self.root().kind() == Kind::Map && self.root().style() == Style::Flow
    }

    /// The column of the top-level keys.
    pub(super) fn root_column(&self) -> usize {
        let root = self.root();
        if root.kind() == Kind::Map { self.lines.column(root.span().start) } else { 0 }
    }

    /// The renderer for new lines that are inserted directly above the line at `below`.
    ///
    /// If the next line that is not empty is an indented comment or consists of blanks, the new lines contain no block
    /// scalar, because that line would become text of the block scalar.
    pub(super) fn renderer(&self, eol: &'a str, below: usize) -> Renderer<'a> {
        let lines = self.lines;
        let mut line = below;
        let is_blank = |line: usize| lines.after_blanks(line) == lines.text_end(line);
        while line < self.text().len() && is_blank(line) && lines.text_end(line) == line {
            line = lines.end(line);
        }
        let at_end = line >= self.text().len();
        let is_taken = !at_end && (is_blank(line) || lines.comment_column(line).is_some_and(|it| it > 0));
        Renderer { eol, has_literals: !is_taken, ..self.render }
    }

    /// Rejects a change of `span` if an alias outside of `span` refers to a value inside of it.
    pub(super) fn guard_anchors(&self, span: &Range<usize>) -> Result<(), EditError> {
        let outside = |at: usize| !span.contains(&at);
        let used = self
            .tree
            .aliases()
            .find(|(alias, target)| !outside(target.outer_span().start) && outside(alias.span().start));
        let Some((alias, target)) = used else { return Ok(()) };
        let name = &self.text()[alias.span()];
        let reason = format!("`{name}` elsewhere in the front matter refers to this value");
        Err(EditError::new(ANCHOR_IN_USE, target.outer_span().start, reason))
    }
}

/// The indentation of dashes relative to their key, in columns. It is taken from the last block list that is the value of
/// a top-level key. Without such a list, it is two columns.
fn dash_step(lines: &Lines<'_>, tree: &Tree) -> usize {
    let root = tree.root();
    let is_list = |it: &View<'_>| it.kind() == Kind::List && it.style() == Style::Block;
    let list = root.own_entries().map(|(_, value)| value).filter(is_list).last();
    let step = list.and_then(|it| {
        let at = it.span().start;
        let column = lines.is_first_on_line(at).then(|| lines.column(at))?;
        column.checked_sub(lines.column(root.span().start))
    });
    step.unwrap_or(2)
}
