//! Removes keys, and finds the bytes to remove for an entry, an item or a member.

use super::EditError;
use super::insert::{entry_end, entry_start};
use super::list::refuse_merged;
use super::refusal::LAYOUT;
use super::sheet::{Reach, Sheet, Splice};
use crate::text::yaml::{Kind, Style, View};
use std::ops::Range;

/// Removes the lines of a key. Comments above and below stay, except those that [`lines`] removes with [`Reach::Wide`].
pub(super) fn key(sheet: &Sheet<'_>, key: &str) -> Result<Vec<Splice>, EditError> {
    let root = sheet.root();
    refuse_merged(root, key)?;
    let entries: Vec<_> = root.own_entries().collect();
    let Some(nth) = entries.iter().position(|(it, _)| it.text() == Some(key)) else { return Ok(Vec::new()) };
    let span = |nth: usize| entry_start(entries[nth])..entry_end(entries[nth]);
    sheet.guard_anchors(&span(nth))?;
    let has_properties = root.outer_span().start < root.span().start;
    if entries.len() == 1 && has_properties && !sheet.is_flow() {
        let reason = "an anchor or tag would stay without the mapping";
        return Err(EditError::new(LAYOUT, root.outer_span().start, reason));
    }
    let range = if sheet.is_flow() {
        let members: Vec<_> = (0..entries.len()).map(span).collect();
        member(sheet, &members, nth)
    } else {
        let before = nth.checked_sub(1).map(|it| (entries[it].1, entry_start(entries[it])));
        lines(sheet, span(nth), before)
    };
    Ok(vec![Splice { range, text: String::new() }])
}

/// The lines of an entry or item. `before` is the value that ends above these lines, and the position of its key or dash.
///
/// With [`Reach::Wide`], the range also includes the following comments and blank lines if they would otherwise become text
/// of a block scalar at the end of `before`.
pub(super) fn lines(
    sheet: &Sheet<'_>,
    span: Range<usize>,
    before: Option<(View<'_>, usize)>,
) -> Range<usize> {
    let lines = sheet.lines;
    let start = lines.start(span.start);
    let end = lines.end(span.end);
    let is_above = |it: &(View<'_>, usize)| sheet.text()[it.0.span().end..span.start].trim().is_empty();
    let before = before.filter(|it| sheet.reach == Reach::Wide && is_above(it));
    match before.and_then(|it| last_block_scalar(it.0, it.1)) {
        Some((scalar, parent)) => start..Greedy::new(sheet, scalar, parent).end_of_content(sheet, end),
        None => start..end,
    }
}

/// Decides which lines would become text of a block scalar if they were directly below it.
struct Greedy {
    keeps_blanks: bool,
    /// The column of the block scalar's text, if it has any.
    text_column: Option<usize>,
    /// A comment at this column or further to the right would become text.
    column: usize,
}

impl Greedy {
    fn new(sheet: &Sheet<'_>, scalar: View<'_>, parent: usize) -> Self {
        let header =
            sheet.text()[scalar.span()].split([' ', '\t', '\r', '\n', '#']).next().unwrap_or_default();
        let step = header.chars().find_map(|it| it.to_digit(10)).unwrap_or(1) as usize;
        let text_column = scalar.text_column();
        let column = text_column.unwrap_or(sheet.lines.column(parent) + step);
        let is_blank = text_column.is_none() && scalar.text().is_some_and(|it| it.contains([' ', '\t']));
        Self {
            keeps_blanks: header.contains('+'),
            text_column: text_column.or(is_blank.then_some(column)),
            column,
        }
    }

    /// Starts at `at` and finds the lines that would become text of the block scalar. Returns the end of the last one, or
    /// `at` if there is none.
    fn end_of_content(&self, sheet: &Sheet<'_>, at: usize) -> usize {
        let lines = sheet.lines;
        let mut end = at;
        let mut line = at;
        while line < sheet.text().len() {
            let blanks = &sheet.text()[line..lines.text_end(line)];
            let spaces = blanks.len() - blanks.trim_start_matches(' ').len();
            let is_blank = lines.after_blanks(line) == lines.text_end(line);
            let is_kept = self.keeps_blanks && spaces == blanks.len();
            let is_text = self.text_column.is_some_and(|it| spaces >= it && blanks.len() > it);
            let takes_comment = lines.comment_column(line).is_some_and(|it| it >= self.column);
            if is_blank && (is_kept || is_text) || takes_comment {
                end = lines.end(line);
            } else if !is_blank {
                break;
            }
            line = lines.end(line);
        }
        end
    }
}

/// The block scalar at the end of a value, if it ends with one, and the position of the scalar's dash or key.
fn last_block_scalar(mut value: View<'_>, mut parent: usize) -> Option<(View<'_>, usize)> {
    while value.style() == Style::Block {
        if value.kind() == Kind::Map {
            let (key, last) = value.own_entries().last()?;
            (parent, value) = (key.outer_span().start, last);
        } else {
            value = value.items().last()?;
            parent = value.lead()?;
        }
    }
    matches!(value.style(), Style::Literal | Style::Folded).then_some((value, parent))
}

/// The bytes to remove for a member of a flow collection: the member and at most one comma, but never a comment.
pub(super) fn member(sheet: &Sheet<'_>, members: &[Range<usize>], nth: usize) -> Range<usize> {
    let own = members[nth].clone();
    let text = sheet.text();
    let has_comment = |range: Range<usize>| text[range].contains('#');
    if let Some(next) = members.get(nth + 1) {
        let gap = own.end..next.start;
        let ends_line = !sheet.lines.on_one_line(gap.start, gap.end);
        if ends_line && !sheet.lines.is_first_on_line(own.start) {
            return sheet.lines.before_blanks(own.start)..after_comma(sheet, own.end);
        }
        return own.start..if has_comment(gap) { after_comma(sheet, own.end) } else { next.start };
    }
    match nth.checked_sub(1).map(|it| members[it].end) {
        Some(end) if !has_comment(end..own.start) => {
            // If there is a comma after the last member, one comma stays. Usually this is the comma after the removed
            // member. If the previous member ends in `:` or `?`, the comma after the previous member stays instead. The
            // comma after the removed member would then be directly after the `:` or `?`, and would become part of a plain
            // scalar.
            let own_end = after_comma(sheet, own.end);
            let is_indicator = text[..end].ends_with([':', '?']);
            if own_end > own.end && is_indicator { after_comma(sheet, end)..own_end } else { end..own.end }
        }
        // If there is a previous member, its comma stays: YAML allows a comma after the last member.
        _ => {
            let end = after_comma(sheet, own.end);
            let lines = sheet.lines;
            let is_alone =
                lines.is_first_on_line(own.start) && lines.after_blanks(end) == lines.text_end(end);
            // `[ 1 ]` becomes `[ ]`.
            let is_only = members.len() == 1 && !lines.is_first_on_line(own.start);
            let start = if is_only { lines.before_blanks(own.start) } else { own.start };
            if is_alone { lines.start(own.start)..lines.end(end) } else { start..end }
        }
    }
}

pub(super) fn after_comma(sheet: &Sheet<'_>, end: usize) -> usize {
    let text = sheet.text();
    let comma = text.len() - text[end..].trim_start().len();
    if text[comma..].starts_with(',') { comma + 1 } else { end }
}
