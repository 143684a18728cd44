//! Edits the list of a key: appends, replaces and removes items.

use super::insert::{after_member, is_merged};
use super::items::Source;
use super::refusal::{ALIAS, LAYOUT, NO_SUCH_ITEM, WRONG_TYPE};
use super::render::{flow, spaces};
use super::sheet::{Sheet, Splice};
use super::{EditError, NewValue, flow_items, insert, items, remove, replace};
use crate::text::yaml::{Kind, Style, View};
use std::ops::Range;

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
            let kept = (0..list.len()).map(Source::Kept);
            match flow_items::Lines::of(sheet, list) {
                Some(lines) => lines.change(&kept.chain([Source::New(item)]).collect::<Vec<_>>()),
                None => Ok(vec![append_flow(sheet, list, item)]),
            }
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
    if let Some(lines) = flow_items::Lines::of(sheet, list) {
        let rest: Vec<Source<'_>> = (0..list.len()).filter(|it| *it != index).map(Source::Kept).collect();
        return lines.change(&rest);
    }
    if list.style() == Style::Flow {
        let members: Vec<Range<usize>> = list.items().map(View::outer_span).collect();
        let range = remove::member(sheet, &members, index);
        return Ok(vec![Splice { range, text: String::new() }]);
    }
    let Some(entry) = sheet.root().find_entry(key).filter(|_| list.len() == 1) else {
        let dash = items::own_dash(sheet, item)?;
        let before = index.checked_sub(1).and_then(|it| list.items().nth(it));
        let before = before.and_then(|it| Some((it, it.lead()?)));
        let range = remove::lines(sheet, dash..item_end(item), before);
        return Ok(vec![Splice { range, text: String::new() }]);
    };
    match items::emptied(sheet, entry) {
        Some(splices) => Ok(splices),
        None => replace::entry(sheet, entry, &NewValue::List(Vec::new())),
    }
}

pub(super) fn no_such_item(at: usize) -> EditError {
    EditError::new(NO_SUCH_ITEM, at, "the list has no item at this position")
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

/// Rejects a key that comes only from a merge.
pub(super) fn refuse_merged(root: View<'_>, key: &str) -> Result<(), EditError> {
    let reason = || format!("`{key}` comes from a merge (`<<`)");
    let error = || EditError::new(ALIAS, root.span().start, reason());
    is_merged(root, key).then(error).map_or(Ok(()), Err)
}

/// Rejects a list that is defined elsewhere or that an alias refers to.
pub(super) fn refuse_shared(sheet: &Sheet<'_>, list: View<'_>, key: &str) -> Result<(), EditError> {
    if list.is_alias() {
        let reason = format!("`{key}` is an alias of a value elsewhere");
        return Err(EditError::new(ALIAS, list.span().start, reason));
    }
    let start = list.outer_span().start;
    if list.has_anchor() { sheet.guard_anchors(&(start..start + 1)) } else { Ok(()) }
}

/// Whether empty brackets contain line endings. If so, they may contain comments.
fn holds_lines(sheet: &Sheet<'_>, list: View<'_>) -> bool {
    sheet.text()[list.span()].contains(['\n', '\r'])
}

pub(super) fn item_end(item: View<'_>) -> usize {
    item.outer_span().end.max(item.lead().map_or(0, |it| it + 1))
}

fn append_block(sheet: &Sheet<'_>, list: View<'_>, item: &NewValue) -> Result<Vec<Splice>, EditError> {
    let last = list.items().last().unwrap_or(list);
    let at = below_last(sheet, last);
    Ok(vec![Splice { range: at..at, text: item_lines(sheet, last, at, item)? }])
}

/// The start of the line below the last item of a block list and below the comments after it that are indented deeper
/// than the key.
pub(super) fn below_last(sheet: &Sheet<'_>, last: View<'_>) -> usize {
    sheet.lines.skip_deeper_comments(sheet.lines.end(item_end(last)), sheet.root_column())
}

/// The lines of a new item at `at`, in the style of another item of the block list.
pub(super) fn item_lines(
    sheet: &Sheet<'_>,
    like: View<'_>,
    at: usize,
    item: &NewValue,
) -> Result<String, EditError> {
    let dash = like.lead().unwrap_or(like.span().start);
    if sheet.lines.is_behind_tab(dash) {
        return Err(EditError::new(LAYOUT, dash, "a tab precedes the dash"));
    }
    let column = sheet.lines.column(dash);
    let eol = sheet.lines.eol_before(at);
    let render = sheet.renderer(eol, at);
    let start = like.outer_span().start;
    let dash_is_alone = !like.is_unwritten() && !sheet.lines.on_one_line(dash, start);
    let text = if dash_is_alone && item.is_block() {
        let inner = sheet.lines.column(start);
        format!("-{eol}{}{}", spaces(inner), render.block(item, inner))
    } else {
        render.item(item, column, gap(sheet, dash, start))
    };
    Ok(format!("{}{text}{eol}", spaces(column)))
}

/// The spaces that a new item gets after its dash: those between `dash` and `item`, which belong to an existing item. One
/// space if anything else, or nothing, is between the two.
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
