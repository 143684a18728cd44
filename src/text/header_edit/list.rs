//! Edits of the items of a key's list.

use super::insert::{after_member, is_merged};
use super::page::{Sheet, Splice};
use super::refusal::{ALIAS, LAYOUT, NO_SUCH_ITEM, WRONG_TYPE};
use super::render::{flow, spaces};
use super::{Change, EditError, NewValue, insert, remove, replace};
use crate::text::front_matter::MAX_FRONT_MATTER;
use crate::text::yaml::{Kind, Style, View};
use std::ops::Range;

/// A list that differs in more items is rewritten as a whole. In a large front matter the limit is lower, because each
/// change of an item parses the front matter again.
const MAX_PARTS: usize = 16;

/// Splits a `Set` of a list into changes of the items that differ, so that the others keep their bytes.
pub(super) fn smaller_changes(root: Option<View<'_>>, change: &Change) -> Option<Vec<Change>> {
    let Change::Set { key, value: NewValue::List(new) } = change else { return None };
    let (_, old) = root?.find_entry(key)?;
    if old.is_alias() || old.kind() != Kind::List || old.is_empty() || new.is_empty() {
        return None;
    }
    let old: Vec<View<'_>> = old.items().collect();
    let same_head = old.iter().zip(new).take_while(|(old, new)| new.matches(**old)).count();
    let rest = old.len().min(new.len()) - same_head;
    let tails = old.iter().rev().zip(new.iter().rev()).take(rest);
    let same_tail =
        if old.len() < new.len() { 0 } else { tails.take_while(|(old, new)| new.matches(**old)).count() };
    let set = (same_head..new.len().min(old.len()).saturating_sub(same_tail))
        .filter(|&it| !new[it].matches(old[it]))
        .map(|index| Change::SetItem { key: key.clone(), index, value: new[index].clone() });
    let first_gone = new.len() - same_tail;
    let last_gone = old.len() - same_tail;
    let gone = (first_gone..last_gone).rev().map(|index| Change::RemoveItem { key: key.clone(), index });
    let added = new.iter().skip(old.len()).map(|it| Change::Append { key: key.clone(), item: it.clone() });
    let parts: Vec<Change> = set.chain(gone).chain(added).take(MAX_PARTS + 1).collect();
    let is_quick = parts.len() <= 1 || parts.len() * root?.span().len() <= MAX_FRONT_MATTER;
    (parts.len() <= MAX_PARTS && is_quick).then_some(parts)
}

/// Adds an item at the end of the list of a key, in the style of the list's last item.
pub(super) fn append(
    sheet: &Sheet<'_>,
    key: &str,
    item: &NewValue,
    order: &[&str],
) -> Result<Vec<Splice>, EditError> {
    let one = || NewValue::List(vec![item.clone()]);
    let root = sheet.root();
    let Some(entry) = root.find_entry(key) else {
        refuse_merged(root, key)?;
        return insert::key(sheet, key, &one(), order);
    };
    let list = entry.1;
    refuse_shared(sheet, list, key)?;
    match list.kind() {
        Kind::List if !list.is_empty() && list.style() == Style::Flow => {
            Ok(vec![append_flow(sheet, list, item)])
        }
        Kind::List if !list.is_empty() => append_block(sheet, list, item),
        Kind::List if holds_lines(sheet, list) => {
            let at = list.span().start + 1;
            Ok(vec![Splice { range: at..at, text: flow(item) }])
        }
        Kind::List | Kind::Null => replace::entry(sheet, entry, &one()),
        _ => {
            let reason = format!("`{key}` is not a list");
            Err(EditError::new(WRONG_TYPE, list.span().start, reason))
        }
    }
}

pub(super) fn set_item(
    sheet: &Sheet<'_>,
    key: &str,
    index: usize,
    value: &NewValue,
) -> Result<Vec<Splice>, EditError> {
    let (list, item) = find(sheet, key, index)?;
    if value.matches(item) {
        return Ok(Vec::new());
    }
    match (list.style(), item.lead()) {
        (Style::Block, Some(dash)) => replace::item(sheet, item, dash, value),
        _ => replace::member(sheet, item, value),
    }
}

pub(super) fn remove_item(sheet: &Sheet<'_>, key: &str, index: usize) -> Result<Vec<Splice>, EditError> {
    let (list, item) = find(sheet, key, index)?;
    sheet.guard_anchors(&item.outer_span())?;
    if list.style() == Style::Flow {
        let members: Vec<Range<usize>> = list.items().map(View::outer_span).collect();
        let range = remove::member(sheet, &members, index);
        return Ok(vec![Splice { range, text: String::new() }]);
    }
    let Some(entry) = sheet.root().find_entry(key).filter(|_| list.len() == 1) else {
        let dash = item.lead().unwrap_or(item.outer_span().start);
        if !sheet.lines.is_first_on_line(dash) {
            return Err(EditError::new(LAYOUT, dash, "the item begins on the line of its key"));
        }
        let before = index.checked_sub(1).and_then(|it| list.items().nth(it));
        let before = before.and_then(|it| Some((it, it.lead()?)));
        let range = remove::lines(sheet, dash..item_end(item), before);
        return Ok(vec![Splice { range, text: String::new() }]);
    };
    replace::entry(sheet, entry, &NewValue::List(Vec::new()))
}

pub(super) fn no_such_item(at: usize) -> EditError {
    EditError::new(NO_SUCH_ITEM, at, "the list has no such item")
}

fn find<'a>(sheet: &Sheet<'a>, key: &str, index: usize) -> Result<(View<'a>, View<'a>), EditError> {
    let root = sheet.root();
    let Some((_, list)) = root.find_entry(key) else {
        refuse_merged(root, key)?;
        return Err(no_such_item(root.span().start));
    };
    refuse_shared(sheet, list, key)?;
    if list.kind() != Kind::List {
        return Err(EditError::new(WRONG_TYPE, list.span().start, format!("`{key}` is not a list")));
    }
    let item = list.items().nth(index).ok_or_else(|| no_such_item(list.span().start))?;
    Ok((list, item))
}

fn refuse_merged(root: View<'_>, key: &str) -> Result<(), EditError> {
    let reason = || format!("`{key}` comes from a merge (`<<`)");
    let error = || EditError::new(ALIAS, root.span().start, reason());
    is_merged(root, key).then(error).map_or(Ok(()), Err)
}

/// Rejects a list that is defined elsewhere or that an alias refers to.
fn refuse_shared(sheet: &Sheet<'_>, list: View<'_>, key: &str) -> Result<(), EditError> {
    if list.is_alias() {
        let reason = format!("`{key}` is an alias of a value elsewhere");
        return Err(EditError::new(ALIAS, list.span().start, reason));
    }
    let start = list.outer_span().start;
    if list.has_anchor() { sheet.guard_anchors(&(start..start + 1)) } else { Ok(()) }
}

/// Whether empty brackets hold line endings, and so perhaps comments.
fn holds_lines(sheet: &Sheet<'_>, list: View<'_>) -> bool {
    sheet.text()[list.span()].contains(['\n', '\r'])
}

fn item_end(item: View<'_>) -> usize {
    item.outer_span().end.max(item.lead().map_or(0, |it| it + 1))
}

fn append_block(sheet: &Sheet<'_>, list: View<'_>, item: &NewValue) -> Result<Vec<Splice>, EditError> {
    let last = list.items().last().unwrap_or(list);
    let dash = last.lead().unwrap_or(list.span().start);
    if sheet.lines.is_behind_tab(dash) {
        return Err(EditError::new(LAYOUT, dash, "a tab precedes the dash"));
    }
    let column = sheet.lines.column(dash);
    let line = sheet.lines.end(item_end(last));
    let at = sheet.lines.skip_deeper_comments(line, sheet.root_column());
    let eol = sheet.lines.eol_before(at);
    let render = sheet.renderer(eol, at);
    let start = last.outer_span().start;
    let dash_is_alone = !last.is_unwritten() && !sheet.lines.on_one_line(dash, start);
    let text = if dash_is_alone && item.is_block() {
        let inner = sheet.lines.column(start);
        format!("-{eol}{}{}", spaces(inner), render.block(item, inner))
    } else {
        render.item(item, column, gap(sheet, dash, start))
    };
    Ok(vec![Splice { range: at..at, text: format!("{}{text}{eol}", spaces(column)) }])
}

/// The spaces between a dash and its item, to be used for a new item; one space if there are none, or not only spaces.
pub(super) fn gap<'a>(sheet: &Sheet<'a>, dash: usize, item: usize) -> &'a str {
    let gap = sheet.text().get(dash + 1..item).unwrap_or_default();
    if !gap.is_empty() && gap.bytes().all(|it| it == b' ') { gap } else { " " }
}

fn append_flow(sheet: &Sheet<'_>, list: View<'_>, item: &NewValue) -> Splice {
    let last = list.items().last().unwrap_or(list).outer_span();
    let lines = sheet.lines;
    let text = sheet.text();
    let stands_alone =
        lines.is_first_on_line(last.start) && !lines.on_one_line(list.span().start, last.start);
    let rest = text[last.end..lines.text_end(last.end)].trim();
    if stands_alone && matches!(rest, "" | ",") {
        let indent = &text[lines.start(last.start)..last.start];
        let member = format!(",{}{indent}{}", lines.eol_of(last.start), flow(item));
        return Splice { range: last.end..last.end, text: member };
    }
    after_member(sheet, last.end, &flow(item))
}
