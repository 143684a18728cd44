//! A front matter cut into one piece of text for each key, to compare or exchange whole entries.

use std::ops::Range;

use super::insert::{entry_end, entry_start};
use super::lines::Lines;
use crate::text::front_matter::{Header, Parts};
use crate::text::yaml::{Kind, Style, Tree};

/// One key with its value, and the comments and blank lines above it; whole lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    pub key: String,
    /// Where it is in the file.
    pub range: Range<usize>,
}

/// All of a front matter: the pieces in their order, then what follows the last one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pieces {
    pub entries: Vec<Piece>,
    pub rest: Range<usize>,
}

/// Cuts a front matter into pieces. `None` if its entries cannot stand alone: if it is written in braces, or has aliases,
/// merges, document markers, lone carriage returns, indented keys, or keys that are not texts.
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

/// Puts the items of a block list into another order. Each keeps its lines, and the comments and blank lines between it
/// and the next item.
///
/// `None` if the items do not begin on lines of their own, or if the result would not mean the reordered list with all
/// other data unchanged.
pub fn reordered(file: &[u8], key: &str, order: &[usize]) -> Option<Vec<u8>> {
    let parts = crate::text::front_matter::split(file);
    let Header::Present { yaml, .. } = &parts.header else { return None };
    let tree = Tree::of_file(file)?;
    let lines = Lines { text: tree.source(), first_eol: "\n" };
    let (_, list) = tree.root().find_entry(key)?;
    if list.style() != Style::Block || list.len() != order.len() {
        return None;
    }
    let mut starts = Vec::new();
    for item in list.items() {
        let dash = item.lead().filter(|it| lines.is_first_on_line(*it))?;
        starts.push(lines.start(dash));
    }
    let end = lines.end(list.items().last()?.outer_span().end);
    let ends = starts.iter().skip(1).copied().chain([end]);
    let texts: Vec<&str> = starts.iter().zip(ends).map(|(from, to)| &tree.source()[*from..to]).collect();
    if texts.iter().any(|it| !it.ends_with('\n')) {
        return None;
    }
    let new: String = order.iter().map(|nth| texts.get(*nth).copied()).collect::<Option<_>>()?;
    let (from, to) = (yaml.start + starts.first()?, yaml.start + end);
    let bytes = [&file[..from], new.as_bytes(), &file[to..]].concat();
    let after = Tree::of_file(&bytes)?;
    let items: Vec<_> = list.items().collect();
    let now: Vec<_> = after.root().get(key)?.items().collect();
    let mut pairs = now.iter().zip(order);
    let is_meant = now.len() == order.len()
        && pairs.all(|(it, nth)| items.get(*nth).is_some_and(|old| crate::text::yaml::same(*old, *it)));
    let others_are = tree.root().own_entries().zip(after.root().own_entries()).all(|(old, new)| {
        crate::text::yaml::same(old.0, new.0)
            && (old.0.text() == Some(key) || crate::text::yaml::same(old.1, new.1))
    });
    (is_meant && others_are).then_some(bytes)
}
