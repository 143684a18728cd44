//! The YAML of a front matter: its data, and the position of each value.
//!
//! This module only reads YAML; `header_edit` edits it. The nodes of a tree are in an arena, so that no input can overflow
//! the stack when the tree is built or dropped. Aliases are resolved when they are accessed, and never expanded in the tree.

mod fast_path;
mod gap;
mod json;
mod keys;
mod merge;
mod parse;
mod repair;
pub(crate) mod resolve;
mod same;

pub use json::{Budget, JsonError};
pub use parse::{comments, parse, parse_node};
pub(crate) use same::Comparison;
pub use same::same;

use std::ops::Range;

/// How deep lists and mappings may be nested. An alias counts with the nesting of its target.
pub const MAX_DEPTH: usize = 64;

pub const MAX_ALIASES: usize = 1000;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct YamlError {
    /// The problem's code as in `docs/format.md`, such as `duplicate-key`.
    pub code: &'static str,
    /// Byte offset in the text that was parsed.
    pub at: usize,
    pub message: String,
}

/// The type of a value in the core schema of YAML 1.2. Quoted values and timestamps are texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    Null,
    Bool,
    Number,
    Text,
    List,
    Map,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    Plain,
    Single,
    Double,
    Literal,
    Folded,
    /// A list in brackets, a mapping in braces, or a single pair without braces in a flow list, as in `[a: b]`.
    Flow,
    Block,
    Alias,
}

#[derive(Debug)]
pub struct Tree {
    source: String,
    /// The contents of scalars that differ from the source, because they are unescaped, folded or unindented.
    decoded: String,
    nodes: Vec<Node>,
    tags: Vec<String>,
    /// Each alias and its target, in the order of the text.
    aliases: Vec<(NodeId, NodeId)>,
    root: NodeId,
    /// Whether a line begins or ends a document within the text, as `--- # text` does.
    has_marks: bool,
}

#[derive(Clone, Copy)]
pub struct View<'a> {
    tree: &'a Tree,
    id: NodeId,
}

type NodeId = u32;

/// Means "no node", "no such byte" and "no tag".
const NONE: u32 = u32::MAX;

#[derive(Debug, Clone)]
#[cfg_attr(test, derive(PartialEq, Eq))]
struct Node {
    kind: Kind,
    style: Style,
    /// Where the content of a scalar is, in `decoded` or in the source.
    content: (u32, u32),
    is_decoded: bool,
    /// The first byte of the anchor or tag, or else `start`.
    outer: u32,
    start: u32,
    /// The end of the node. For a block scalar, this is the end of its last line, without the line ending. Blank lines that
    /// the scalar keeps belong to it.
    end: u32,
    /// The offset of the dash or colon before a value, or of the question mark before a key.
    lead: u32,
    tag: u32,
    tag_span: (u32, u32),
    has_anchor: bool,
    /// Whether this mapping has a merge key (`<<`).
    has_merge: bool,
    first: NodeId,
    next: NodeId,
    count: u32,
    /// The column of a block scalar's text, if it has any.
    text_column: u32,
    /// The number of levels of lists and mappings, from this node downwards. The node itself and the targets of aliases are
    /// included.
    height: u8,
}

impl Node {
    /// A node without properties, whose content is not known yet.
    fn new(kind: Kind, style: Style, (start, end): (u32, u32), lead: u32) -> Self {
        Self {
            kind,
            style,
            content: (0, 0),
            is_decoded: false,
            outer: start,
            start,
            end,
            lead,
            tag: NONE,
            tag_span: (0, 0),
            has_anchor: false,
            has_merge: false,
            first: NONE,
            next: NONE,
            count: 0,
            text_column: NONE,
            height: u8::from(matches!(kind, Kind::List | Kind::Map)),
        }
    }
}

impl Tree {
    /// The front matter of a file, if it has one that can be read.
    pub(crate) fn of_file(file: &[u8]) -> Option<Self> {
        let yaml = crate::text::front_matter::split(file).yaml()?;
        parse(std::str::from_utf8(yaml).ok()?).ok()
    }

    fn new(source: &str) -> Self {
        let (source, decoded) = (source.to_owned(), String::new());
        let (nodes, tags, aliases) = (Vec::new(), Vec::new(), Vec::new());
        Self { source, decoded, nodes, tags, aliases, root: NONE, has_marks: false }
    }

    pub fn root(&self) -> View<'_> {
        View { tree: self, id: self.root }
    }

    pub fn source(&self) -> &str {
        &self.source
    }

    pub(crate) fn has_document_marks(&self) -> bool {
        self.has_marks
    }

    /// Each alias with its target, in the order of the text.
    pub(crate) fn aliases(&self) -> impl Iterator<Item = (View<'_>, View<'_>)> {
        self.aliases.iter().map(|&(alias, target)| (self.view(alias), self.view(target)))
    }

    fn view(&self, id: NodeId) -> View<'_> {
        View { tree: self, id }
    }

    fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id as usize]
    }
}

impl<'a> View<'a> {
    pub fn kind(self) -> Kind {
        self.target().raw().kind
    }

    pub fn is_null(self) -> bool {
        self.kind() == Kind::Null
    }

    /// The content of a scalar, with numbers and booleans as they are written. `None` for null, lists and mappings.
    pub fn text(self) -> Option<&'a str> {
        match self.kind() {
            Kind::Bool | Kind::Number | Kind::Text => Some(self.target().content()),
            Kind::Null | Kind::List | Kind::Map => None,
        }
    }

    /// The range of the value in the source, with its quotes. A block scalar extends from its `|` or `>` to its last content
    /// byte, a block collection from its first dash or key to the end of its last child. For an alias, this is the range of
    /// the alias itself, not of its target.
    pub fn span(self) -> Range<usize> {
        let node = self.raw();
        node.start as usize..node.end as usize
    }

    /// The items of a list, or of the list to which an alias refers. Any other value has no items.
    pub fn items(self) -> impl Iterator<Item = View<'a>> + use<'a> {
        let (tree, list) = (self.tree, self.target().raw());
        let mut next = if list.kind == Kind::List { list.first } else { NONE };
        std::iter::from_fn(move || {
            let item = (next != NONE).then(|| tree.view(next))?;
            next = item.raw().next;
            Some(item)
        })
    }

    /// The entries of a mapping as they are written, with `<<` as an ordinary key.
    pub fn own_entries(self) -> impl Iterator<Item = (View<'a>, View<'a>)> + use<'a> {
        let map = self.target();
        let mut next = if map.raw().kind == Kind::Map { map.raw().first } else { NONE };
        let tree = self.tree;
        std::iter::from_fn(move || {
            let key = (next != NONE).then(|| tree.view(next))?;
            let value = tree.view(key.raw().next);
            next = value.raw().next;
            Some((key, value))
        })
    }

    /// The entry of a key in the mapping itself, without merged entries.
    pub fn find_entry(self, key: &str) -> Option<(Self, Self)> {
        self.own_entries().find(|(it, _)| it.has_len(key.len()) && it.text() == Some(key))
    }

    /// A cheap comparison that excludes most other keys.
    fn has_len(self, len: usize) -> bool {
        let (from, to) = self.target().raw().content;
        (to - from) as usize == len
    }

    /// The value of a key of the mapping, merged keys included.
    pub fn get(self, key: &str) -> Option<Self> {
        if let Some((_, value)) = self.find_entry(key) {
            return Some(value);
        }
        let merges = self.target().raw().has_merge;
        merges.then(|| self.entries().find(|(it, _)| it.text() == Some(key)))?.map(|(_, value)| value)
    }

    pub fn len(self) -> usize {
        let node = self.target().raw();
        let parts = if node.kind == Kind::Map { 2 } else { 1 };
        node.count as usize / parts
    }

    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    pub fn style(self) -> Style {
        self.raw().style
    }

    pub fn is_alias(self) -> bool {
        self.raw().style == Style::Alias
    }

    /// From the anchor or tag, if there is one, to the end of the value.
    pub(crate) fn outer_span(self) -> Range<usize> {
        self.raw().outer as usize..self.raw().end as usize
    }

    pub(crate) fn source(self) -> &'a str {
        &self.tree.source
    }

    /// The offset of the dash or colon before a value, or of the question mark before a key.
    pub(crate) fn lead(self) -> Option<usize> {
        let lead = self.raw().lead;
        (lead != NONE).then_some(lead as usize)
    }

    /// The column at which the text of a block scalar begins, if it has any.
    pub(crate) fn text_column(self) -> Option<usize> {
        let column = self.raw().text_column;
        (column != NONE).then_some(column as usize)
    }

    pub(crate) fn tag(self) -> Option<&'a str> {
        self.tree.tags.get(self.raw().tag as usize).map(String::as_str)
    }

    pub(crate) fn tag_span(self) -> Option<Range<usize>> {
        let (start, end) = self.raw().tag_span;
        (start < end).then_some(start as usize..end as usize)
    }

    pub(crate) fn has_anchor(self) -> bool {
        self.raw().has_anchor
    }

    /// Whether the value is omitted in the source, as after `key:`. An empty text in quotes is not omitted.
    pub(crate) fn is_unwritten(self) -> bool {
        self.raw().start == self.raw().end && self.style() == Style::Plain
    }

    /// The target of an alias. For any other node, the node itself.
    pub(crate) fn target(self) -> Self {
        let node = self.raw();
        if node.style == Style::Alias { self.tree.view(node.first) } else { self }
    }

    fn raw(self) -> &'a Node {
        self.tree.node(self.id)
    }

    fn content(self) -> &'a str {
        let node = self.raw();
        let text = if node.is_decoded { &self.tree.decoded } else { &self.tree.source };
        text.get(node.content.0 as usize..node.content.1 as usize).unwrap_or_default()
    }
}

impl std::fmt::Debug for View<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("View").field("kind", &self.kind()).field("span", &self.span()).finish()
    }
}

#[cfg(test)]
mod tests;
