//! Builds the tree in one pass over the scanner's events. This is the only file that uses the scanner (`granit_parser`).
//!
//! The scanner reports the nodes, and the positions of scalars, aliases and brackets. The gaps between these contain only
//! indicators (such as dashes and colons), anchors, tags, blanks and comments. The builder searches these gaps for the
//! indicators, anchors and tags.

use super::gap::Gap;
use super::repair::Repair;
use super::{Kind, MAX_ALIASES, MAX_DEPTH, NONE, Node, NodeId, Style, Tree, YamlError};
use super::{fast_path, keys, resolve};
use crate::text::front_matter::MAX_FRONT_MATTER;
use granit_parser::{ErrorKind, Event, Parser, ScalarStyle, ScanError, Span, StructureStyle, Tag};
use std::collections::HashMap;
use std::ops::Range;

/// Parses a front matter, which must be one document: a mapping, or empty.
///
/// The time is linear in the text's length, apart from repairs (`repair.rs`), whose total work is limited. More than
/// [`MAX_DEPTH`] levels or [`MAX_ALIASES`] aliases are an error.
pub fn parse(yaml: &str) -> Result<Tree, YamlError> {
    let tree = parse_node(yaml)?;
    let root = tree.root();
    match root.kind() {
        Kind::Map => Ok(tree),
        Kind::Null if root.is_unwritten() && root.outer_span().is_empty() => Ok(tree),
        _ => {
            let at = root.outer_span().start;
            let message = "the front matter is not a list of `key: value` entries".to_owned();
            Err(YamlError { code: "not-a-mapping", at, message })
        }
    }
}

/// Parses one YAML value of any kind, with the limits of [`parse`].
pub fn parse_node(yaml: &str) -> Result<Tree, YamlError> {
    if yaml.len() > MAX_FRONT_MATTER {
        return Err(too_large(
            MAX_FRONT_MATTER,
            format!("the front matter has more than {MAX_FRONT_MATTER} bytes"),
        ));
    }
    fast_path::read(yaml).map_or_else(|| scanned(yaml), Ok)
}

/// Like [`parse_node`], but always uses the scanner.
pub(super) fn scanned(yaml: &str) -> Result<Tree, YamlError> {
    if let Some(at) = conflict_marker(yaml) {
        let message = "a merge conflict is not resolved".to_owned();
        return Err(YamlError { code: "conflict-markers", at, message });
    }
    let mut repair = Repair::new(yaml);
    loop {
        let error = match build(&repair.text) {
            Ok(tree) => return Ok(repair.undo(tree)),
            Err(error) => error,
        };
        let is_repaired = match &error {
            Failure::Scan(error) => is_repaired(&mut repair, error),
            Failure::Other(_) => false,
        };
        if !is_repaired {
            return Err(repair.error(match error {
                Failure::Scan(error) => scan_error(&error, repair.text.len()),
                Failure::Other(error) => error,
            }));
        }
    }
}

/// The places of the comments, in bytes. If the text cannot be parsed, those of the comments before the error.
pub fn comments(yaml: &str) -> Vec<Range<usize>> {
    let options = granit_parser::options! { emit_comments: true };
    let events = Parser::new_from_str_with_options(yaml, options).map_while(Result::ok);
    let comments = events.filter(|(event, _)| matches!(event, Event::Comment(..)));
    comments.filter_map(|(_, span)| span.byte_range()).collect()
}

enum Failure {
    Scan(ScanError),
    Other(YamlError),
}

fn build(yaml: &str) -> Result<Tree, Failure> {
    let mut builder = Builder::new(yaml);
    let options = granit_parser::options! {
        emit_comments: false,
        flow_nesting_limit: MAX_DEPTH,
        block_nesting_limit: MAX_DEPTH,
    };
    // If the text does not end with a line ending, one is added. Otherwise a block scalar at the end of the text would not
    // have the final line break that it has in a file.
    let eol = if yaml.is_empty() || yaml.ends_with(['\n', '\r']) { "" } else { "\n" };
    let text = format!("{yaml}{eol}...\n");
    for event in Parser::new_from_str_with_options(&text, options) {
        let (event, span) = event.map_err(Failure::Scan)?;
        builder.take(event, span).map_err(Failure::Other)?;
    }
    Ok(builder.finish())
}

/// Repairs the text if the error allows it. Returns whether the text was repaired.
fn is_repaired(repair: &mut Repair<'_>, error: &ScanError) -> bool {
    let Some(at) = error.marker().byte_offset().filter(|&it| it < repair.text.len()) else { return false };
    match error.kind() {
        ErrorKind::InvalidQuotedScalarIndent | ErrorKind::CommentNotSeparated => repair.insert_blanks(at),
        ErrorKind::InvalidBlockScalarIndent => repair.outdent_comment(at),
        _ => false,
    }
}

struct Builder<'a> {
    tree: Tree,
    gap: Gap<'a>,
    open: Vec<Open>,
    anchors: HashMap<usize, Anchored>,
    tags: HashMap<String, u32>,
    documents: usize,
}

/// A collection that is not closed yet.
struct Open {
    id: NodeId,
    last: NodeId,
    anchor: usize,
}

struct Anchored {
    id: NodeId,
    is_complete: bool,
}

/// What precedes a node's content.
struct Before {
    lead: u32,
    outer: u32,
    /// The offset after the indicator and the properties (anchor and tag).
    at: usize,
}

impl<'a> Builder<'a> {
    fn new(source: &'a str) -> Self {
        let tree = Tree { has_marks: has_end_mark(source), ..Tree::new(source) };
        Self {
            tree,
            gap: Gap::new(source),
            open: Vec::new(),
            anchors: HashMap::new(),
            tags: HashMap::new(),
            documents: 0,
        }
    }

    fn take(&mut self, event: Event<'_>, span: Span) -> Result<(), YamlError> {
        let len = self.tree.source.len();
        let range = span.byte_range().map_or(0..0, |it| it.start.min(len)..it.end.min(len));
        let tag_span = span.tag_span().and_then(|it| it.byte_range()).unwrap_or_default();
        match event {
            Event::DocumentStart(explicit, _) => self.document(explicit, &range)?,
            Event::Scalar(text, style, anchor, tag) => {
                let props = Props { anchor, tag: tag.as_deref(), span: tag_span };
                self.scalar(&text, style, &props, range, span.indent)?;
            }
            Event::Alias(id) => self.alias(id, range)?,
            Event::SequenceStart(style, anchor, tag) => {
                self.start(Kind::List, style, &Props { anchor, tag: tag.as_deref(), span: tag_span }, range)?;
            }
            Event::MappingStart(style, anchor, tag) => {
                self.start(Kind::Map, style, &Props { anchor, tag: tag.as_deref(), span: tag_span }, range)?;
            }
            Event::SequenceEnd | Event::MappingEnd => self.end(range)?,
            _ => {}
        }
        Ok(())
    }

    fn document(&mut self, explicit: bool, range: &Range<usize>) -> Result<(), YamlError> {
        self.documents += 1;
        if self.documents > 1 {
            return Err(invalid(range.start, "the YAML has more than one document".to_owned()));
        }
        self.tree.has_marks |= explicit;
        self.gap.at = self.gap.at.max(if explicit { range.end } else { range.start });
        Ok(())
    }

    fn scalar(
        &mut self,
        text: &str,
        style: ScalarStyle,
        props: &Props<'_>,
        range: Range<usize>,
        indent: Option<usize>,
    ) -> Result<(), YamlError> {
        let is_unwritten = style == ScalarStyle::Plain && range.is_empty();
        let before = self.before(is_unwritten, props);
        let style = scalar_style(style);
        let written = match style {
            Style::Literal | Style::Folded => {
                // The scanner reports no indentation for a block scalar that contains only blanks. All blank lines up to
                // the end of the range belong to such a scalar.
                let is_blank = indent.is_none() && text.contains([' ', '\t']);
                self.gap.block_scalar(before.at, range.end, indent, is_blank)
            }
            _ if is_unwritten => before.at..before.at,
            _ => range,
        };
        let text = if is_unwritten { "" } else { text };
        let mut node = self.node(scalar_kind(text, style, props.tag), style, props, &before, written.clone());
        node.text_column =
            indent.filter(|_| matches!(style, Style::Literal | Style::Folded)).map_or(NONE, |it| it as u32);
        (node.content, node.is_decoded) = self.content(text, &written);
        self.gap.at = self.gap.at.max(written.end);
        let id = self.add(node)?;
        self.remember(props.anchor, id, true);
        Ok(())
    }

    fn alias(&mut self, anchor: usize, range: Range<usize>) -> Result<(), YamlError> {
        if self.tree.aliases.len() == MAX_ALIASES {
            return Err(too_large(range.start, format!("the YAML has more than {MAX_ALIASES} aliases")));
        }
        let Some(&Anchored { id: target, is_complete: true }) = self.anchors.get(&anchor) else {
            return Err(invalid(range.start, "an alias is inside the value that it refers to".to_owned()));
        };
        let props = Props { anchor: 0, tag: None, span: 0..0 };
        let before = self.before(false, &props);
        self.gap.at = range.end;
        let kind = self.tree.node(target).kind;
        let mut node = self.node(kind, Style::Alias, &props, &before, range);
        node.first = target;
        node.height = self.tree.node(target).height;
        let id = self.add(node)?;
        self.tree.aliases.push((id, target));
        Ok(())
    }

    fn start(
        &mut self,
        kind: Kind,
        style: StructureStyle,
        props: &Props<'_>,
        range: Range<usize>,
    ) -> Result<(), YamlError> {
        let before = self.before(false, props);
        let style = if style == StructureStyle::Flow { Style::Flow } else { Style::Block };
        if style == Style::Flow {
            self.gap.at = self.gap.at.max(range.end);
        }
        let node = self.node(kind, style, props, &before, range);
        let at = node.start;
        let id = self.add(node)?;
        if self.open.len() == MAX_DEPTH {
            return Err(too_deep(at as usize));
        }
        self.open.push(Open { id, last: NONE, anchor: props.anchor });
        self.remember(props.anchor, id, false);
        Ok(())
    }

    fn end(&mut self, range: Range<usize>) -> Result<(), YamlError> {
        let Some(Open { id, last, anchor }) = self.open.pop() else { return Ok(()) };
        let has_bracket = self.tree.node(id).style == Style::Flow && !range.is_empty();
        if has_bracket {
            self.gap.at = range.end;
        }
        let end = if has_bracket { range.end as u32 } else { self.end_of(last) };
        let node = &mut self.tree.nodes[id as usize];
        node.end = end.max(node.start);
        if node.height as usize > MAX_DEPTH {
            return Err(too_deep(node.start as usize));
        }
        let (kind, height) = (node.kind, node.height);
        if kind == Kind::Map {
            keys::check(&mut self.tree, id)?;
        }
        self.remember(anchor, id, true);
        if let Some(parent) = self.open.last() {
            let parent = &mut self.tree.nodes[parent.id as usize];
            parent.height = parent.height.max(height.saturating_add(1));
        }
        Ok(())
    }

    /// The end of a node; 0 if there is no such node. An omitted value ends after its colon.
    fn end_of(&self, id: NodeId) -> u32 {
        self.tree.nodes.get(id as usize).map_or(0, |it| it.end)
    }

    /// Skips the gap before a node: first the indicator that the kind of the parent requires, then anchor and tag.
    fn before(&mut self, is_unwritten: bool, props: &Props<'_>) -> Before {
        let parent = self.open.last().map(|it| self.tree.node(it.id));
        let in_flow = parent.is_some_and(|it| it.style == Style::Flow);
        let is_list = parent.is_some_and(|it| it.kind == Kind::List);
        let is_key = parent.is_some_and(|it| it.kind == Kind::Map && it.count.is_multiple_of(2));
        if in_flow && (is_list || is_key) {
            self.gap.skip_commas();
        }
        let lead = match parent {
            None => None,
            Some(_) if is_list && in_flow => None,
            Some(_) if is_list => self.gap.take(b'-'),
            Some(_) if is_key => self.gap.take_word(b'?'),
            Some(_) if in_flow => self.gap.take(b':'),
            Some(_) => self.gap.take_word(b':'),
        };
        let outer = self.gap.peek();
        self.gap.skip_properties(props.anchor != 0, &props.span);
        // An omitted key that has neither `?` nor properties is at its colon. Any other omitted node is directly after its
        // indicator and properties.
        let is_bare_key = is_key && lead.is_none() && props.is_empty();
        let at = if is_unwritten && !is_bare_key { self.gap.at } else { self.gap.peek() };
        Before { lead: lead.map_or(NONE, |it| it as u32), outer: outer as u32, at }
    }

    fn node(
        &mut self,
        kind: Kind,
        style: Style,
        props: &Props<'_>,
        before: &Before,
        at: Range<usize>,
    ) -> Node {
        let tag = props.tag.map_or(NONE, |tag| self.tag(tag));
        Node {
            outer: if props.is_empty() { at.start as u32 } else { before.outer },
            tag,
            tag_span: (props.span.start as u32, props.span.end as u32),
            has_anchor: props.anchor != 0,
            ..Node::new(kind, style, (at.start as u32, at.end as u32), before.lead)
        }
    }

    fn tag(&mut self, tag: &Tag) -> u32 {
        let next = self.tree.tags.len() as u32;
        let tag = format!("{}{}", tag.handle(), tag.suffix());
        *self.tags.entry(tag).or_insert_with_key(|tag| {
            self.tree.tags.push(tag.clone());
            next
        })
    }

    /// Adds a node to the open collection. The span of a block collection starts with its first child.
    fn add(&mut self, node: Node) -> Result<NodeId, YamlError> {
        let id = self.tree.nodes.len() as NodeId;
        let from = if node.lead == NONE { node.outer } else { node.lead };
        let height = node.height;
        self.tree.nodes.push(node);
        let Some(open) = self.open.last_mut() else {
            self.tree.root = id;
            return Ok(id);
        };
        let parent = &mut self.tree.nodes[open.id as usize];
        if parent.count == 0 {
            parent.first = id;
            if parent.style == Style::Block {
                let had_properties = parent.outer != parent.start;
                parent.start = from;
                parent.outer = if had_properties { parent.outer } else { from };
            }
        }
        parent.count += 1;
        parent.height = parent.height.max(height.saturating_add(1));
        if parent.height as usize > MAX_DEPTH {
            return Err(too_deep(from as usize));
        }
        if open.last != NONE {
            self.tree.nodes[open.last as usize].next = id;
        }
        open.last = id;
        Ok(id)
    }

    fn content(&mut self, text: &str, written: &Range<usize>) -> ((u32, u32), bool) {
        if self.tree.source.get(written.clone()) == Some(text) {
            return ((written.start as u32, written.end as u32), false);
        }
        let from = self.tree.decoded.len() as u32;
        self.tree.decoded.push_str(text);
        ((from, self.tree.decoded.len() as u32), true)
    }

    fn remember(&mut self, anchor: usize, id: NodeId, is_complete: bool) {
        if anchor != 0 {
            self.anchors.insert(anchor, Anchored { id, is_complete });
        }
    }

    fn finish(mut self) -> Tree {
        if self.tree.root == NONE {
            let end = self.tree.source.len();
            let props = Props { anchor: 0, tag: None, span: 0..0 };
            let before = Before { lead: NONE, outer: end as u32, at: end };
            let node = self.node(Kind::Null, Style::Plain, &props, &before, end..end);
            self.tree.root = self.tree.nodes.len() as NodeId;
            self.tree.nodes.push(node);
        }
        self.tree
    }
}

struct Props<'a> {
    /// The scanner's number of the anchor. Zero means that there is no anchor.
    anchor: usize,
    tag: Option<&'a Tag>,
    span: Range<usize>,
}

impl Props<'_> {
    fn is_empty(&self) -> bool {
        self.anchor == 0 && self.tag.is_none()
    }
}

fn scalar_style(style: ScalarStyle) -> Style {
    match style {
        ScalarStyle::Plain => Style::Plain,
        ScalarStyle::SingleQuoted => Style::Single,
        ScalarStyle::DoubleQuoted => Style::Double,
        ScalarStyle::Literal => Style::Literal,
        ScalarStyle::Folded => Style::Folded,
    }
}

/// A tag of the core schema determines the kind. A scalar with any other tag is a text, or null if only the tag is
/// written.
fn scalar_kind(text: &str, style: Style, tag: Option<&Tag>) -> Kind {
    let Some(tag) = tag else {
        return if style == Style::Plain { resolve::plain_kind(text) } else { Kind::Text };
    };
    match tag.core_suffix() {
        Some("null") => Kind::Null,
        Some("bool") => Kind::Bool,
        Some("int" | "float") => Kind::Number,
        Some(_) => Kind::Text,
        None if style == Style::Plain && text.is_empty() => Kind::Null,
        None => Kind::Text,
    }
}

/// Whether a line ends a document (`...`). In YAML, no line of a scalar can begin with this marker.
fn has_end_mark(yaml: &str) -> bool {
    let is_mark = |it: &str| it.strip_prefix("...").is_some_and(|it| it.starts_with([' ', '\t', '\r', '\n']));
    yaml.split_inclusive(['\n', '\r']).any(is_mark)
}

/// The offset of the first conflict marker of git; ordinary YAML has no such line.
fn conflict_marker(yaml: &str) -> Option<usize> {
    let mut at = 0;
    for line in yaml.split_inclusive('\n') {
        let rest = line.strip_prefix("<<<<<<<").or_else(|| line.strip_prefix(">>>>>>>"));
        if rest.is_some_and(|it| it.is_empty() || it.starts_with([' ', '\r', '\n'])) {
            return Some(at);
        }
        at += line.len();
    }
    None
}

fn scan_error(error: &ScanError, len: usize) -> YamlError {
    let at = error.marker().byte_offset().unwrap_or_default().min(len);
    match error.kind() {
        ErrorKind::RecursionLimitExceeded => too_deep(at),
        kind => invalid(at, kind.to_string()),
    }
}

fn invalid(at: usize, message: String) -> YamlError {
    YamlError { code: "front-matter-invalid", at, message }
}

fn too_deep(at: usize) -> YamlError {
    too_large(at, format!("lists and mappings are nested deeper than {MAX_DEPTH} levels"))
}

fn too_large(at: usize, message: String) -> YamlError {
    YamlError { code: "too-large", at, message }
}
