//! Inserts a new key into a front matter.

use super::refusal::LAYOUT;
use super::render::{flow, spaces};
use super::sheet::{Sheet, Splice};
use super::{EditError, NewValue};
use crate::text::scalar::{self, Place};
use crate::text::yaml::{Kind, View};

type Entry<'a> = (View<'a>, View<'a>);

pub(super) fn key(
    sheet: &Sheet<'_>,
    key: &str,
    value: &NewValue,
    order: &[&str],
) -> Result<Vec<Splice>, EditError> {
    if sheet.is_flow() {
        return Ok(vec![in_braces(sheet, key, value, order)]);
    }
    let entries: Vec<Entry<'_>> = sheet.root().own_entries().collect();
    let at = if entries.is_empty() { sheet.text().len() } else { line_for(sheet, &entries, key, order) };
    let column = sheet.root_column();
    let start = sheet.root().span().start;
    if !entries.is_empty() && !sheet.lines.is_first_on_line(start) {
        return Err(EditError::new(LAYOUT, start, "a character other than a space precedes the first key"));
    }
    let eol = sheet.lines.eol_before(at);
    let entry = sheet.renderer(eol, at).entry(key, value, column);
    Ok(vec![Splice { range: at..at, text: format!("{}{entry}{eol}", spaces(column)) }])
}

enum Neighbour {
    After(usize),
    Before(usize),
}

fn line_for(sheet: &Sheet<'_>, entries: &[Entry<'_>], key: &str, order: &[&str]) -> usize {
    let find = |name: &str| entries.iter().position(|(it, _)| it.text() == Some(name));
    if let Some(status) = find("status").filter(|_| key == "id") {
        return sheet.lines.start(entry_start(entries[status]));
    }
    match neighbour(entries.len(), key, order, find) {
        Neighbour::After(nth) => after(sheet, entries[nth]),
        Neighbour::Before(nth) => before(sheet, entries, nth),
    }
}

/// The position of a new key, as [`super::edit`] describes it, without the rule for `id`.
fn neighbour(len: usize, key: &str, order: &[&str], find: impl Fn(&str) -> Option<usize>) -> Neighbour {
    let rank = order.iter().position(|it| *it == key).filter(|_| key != "attempts");
    let earlier = rank.and_then(|it| order[..it].iter().rev().find_map(|it| find(it)));
    let later = rank.and_then(|it| order[it + 1..].iter().find_map(|it| find(it)));
    let attempts = find("attempts").filter(|_| key != "attempts");
    match (earlier, later) {
        (Some(nth), _) if attempts.is_none_or(|it| nth < it) => Neighbour::After(nth),
        (None, Some(nth)) if attempts.is_none_or(|it| nth <= it) => Neighbour::Before(nth),
        _ => match attempts {
            None => Neighbour::After(len - 1),
            Some(0) => Neighbour::Before(0),
            Some(nth) => Neighbour::After(nth - 1),
        },
    }
}

/// The start of the line below an entry and below its indented comments.
fn after(sheet: &Sheet<'_>, entry: Entry<'_>) -> usize {
    let line = sheet.lines.end(entry_end(entry));
    sheet.lines.skip_deeper_comments(line, sheet.root_column())
}

/// The start of an entry's lines, including the comments directly above it. Comments at the start of the front matter are
/// not included, so that they stay at the top.
fn before(sheet: &Sheet<'_>, entries: &[Entry<'_>], nth: usize) -> usize {
    let own = sheet.lines.start(entry_start(entries[nth]));
    let floor = if nth == 0 { 0 } else { after(sheet, entries[nth - 1]) };
    let line = sheet.lines.with_comments_above(own, floor);
    if line == 0 { own } else { line }
}

/// Where an entry begins: its question mark, or the first byte of its key.
pub(super) fn entry_start(entry: Entry<'_>) -> usize {
    entry.0.lead().unwrap_or(entry.0.outer_span().start)
}

/// Where an entry ends: at the end of its value, its colon or its key, whichever is last.
pub(super) fn entry_end(entry: Entry<'_>) -> usize {
    let colon = entry.1.lead().map_or(0, |it| it + 1);
    entry.1.outer_span().end.max(entry.0.outer_span().end).max(colon)
}

fn in_braces(sheet: &Sheet<'_>, key: &str, value: &NewValue, order: &[&str]) -> Splice {
    let root = sheet.root();
    let entries: Vec<Entry<'_>> = root.own_entries().collect();
    let entry = format!("{}: {}", scalar::inline(key, Place::Flow), flow(value));
    let find = |name: &str| entries.iter().position(|(it, _)| it.text() == Some(name));
    if entries.is_empty() {
        let at = root.span().start + 1;
        return Splice { range: at..at, text: entry };
    }
    let place = match find("status").filter(|_| key == "id") {
        Some(status) => Neighbour::Before(status),
        None => neighbour(entries.len(), key, order, find),
    };
    match place {
        Neighbour::Before(nth) => {
            let at = entry_start(entries[nth]);
            Splice { range: at..at, text: format!("{entry}, ") }
        }
        Neighbour::After(nth) => after_member(sheet, entry_end(entries[nth]), &entry),
    }
}

/// Inserts a member of a flow collection after the member that ends at `end`.
pub(super) fn after_member(sheet: &Sheet<'_>, end: usize, member: &str) -> Splice {
    let text = sheet.text();
    if !text[..end].ends_with([':', '?']) {
        return Splice { range: end..end, text: format!(", {member}") };
    }
    // Directly after `:` or `?`, a comma would become part of a plain scalar.
    let next = sheet.lines.after_blanks(end);
    if text[next..].starts_with(',') {
        return Splice { range: next + 1..next + 1, text: format!(" {member},") };
    }
    Splice { range: end..end, text: format!(" , {member}") }
}

/// Whether a key comes only from a merge. Such a key cannot be changed in place.
pub(super) fn is_merged(root: View<'_>, key: &str) -> bool {
    root.kind() == Kind::Map && root.find_entry(key).is_none() && root.get(key).is_some()
}
