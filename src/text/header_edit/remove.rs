//! Taking away a key.

use super::EditError;
use super::insert::{entry_end, entry_start, is_merged};
use super::page::{Sheet, Splice};
use super::refusal::ALIAS;
use std::ops::Range;

/// Removes the lines of a key; comments above and below stay.
pub(super) fn key(sheet: &Sheet<'_>, key: &str) -> Result<Vec<Splice>, EditError> {
    let root = sheet.root();
    if is_merged(root, key) {
        let reason = format!("`{key}` comes from a merge (`<<`)");
        return Err(EditError::new(ALIAS, root.span().start, reason));
    }
    let entries: Vec<_> = root.own_entries().collect();
    let Some(nth) = entries.iter().position(|(it, _)| it.text() == Some(key)) else { return Ok(Vec::new()) };
    let span = |nth: usize| entry_start(entries[nth])..entry_end(entries[nth]);
    sheet.guard_anchors(&span(nth))?;
    let range = if sheet.is_flow() {
        let members: Vec<_> = (0..entries.len()).map(span).collect();
        member(sheet, &members, nth)
    } else {
        sheet.lines.start(span(nth).start)..sheet.lines.end(span(nth).end)
    };
    Ok(vec![Splice { range, text: String::new() }])
}

/// The bytes that go with a member of a flow collection: it, and one comma; never a comment.
pub(super) fn member(sheet: &Sheet<'_>, members: &[Range<usize>], nth: usize) -> Range<usize> {
    let own = members[nth].clone();
    let text = sheet.text();
    let has_comment = |range: Range<usize>| text[range].contains('#');
    if let Some(next) = members.get(nth + 1) {
        if !has_comment(own.end..next.start) {
            return own.start..next.start;
        }
        return own.start..behind_comma(sheet, own.end);
    }
    match nth.checked_sub(1).map(|it| members[it].end) {
        Some(end) if !has_comment(end..own.start) => end..own.end,
        // A comma may stay behind the member before; a comma alone may not.
        Some(_) => own,
        None => own.start..behind_comma(sheet, own.end),
    }
}

fn behind_comma(sheet: &Sheet<'_>, end: usize) -> usize {
    let text = sheet.text();
    let comma = text.len() - text[end..].trim_start().len();
    if text[comma..].starts_with(',') { sheet.lines.after_blanks(comma + 1) } else { end }
}
