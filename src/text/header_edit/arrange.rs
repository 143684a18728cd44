//! Rebuilds a block list from its own items and items of another file, with their comments.

use std::ops::Range;

use super::NewValue;
use super::lines::Lines;
use super::page::{Page, within_limits};
use super::render::spaces;
use super::sheet::Sheet;
use crate::text::front_matter;
use crate::text::yaml::{self, Kind, Style, View};

/// How an item of a list is written in a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Written {
    /// `None` if the list is not a block list, or if one of its items does not consist of whole lines.
    lines: Option<ItemLines>,
    /// Whether comments precede or follow the item.
    has_comments: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct ItemLines {
    /// The comments and blank lines above the item.
    above: String,
    /// The lines of the item, and comments below it that are indented deeper than its dash.
    own: String,
    /// The column of the item's dash.
    column: usize,
}

impl Written {
    pub fn has_comments(&self) -> bool {
        self.has_comments
    }

    /// Drops the comments above the item that also occur in `known`.
    pub fn drop_above(&mut self, known: &str) {
        let Some(lines) = &mut self.lines else { return };
        let is_new =
            |line: &&str| line.trim().is_empty() || !known.lines().any(|it| it.trim() == line.trim());
        let kept: String = lines.above.split_inclusive('\n').filter(is_new).collect();
        lines.above = if kept.trim().is_empty() && kept != lines.above { String::new() } else { kept };
    }
}

/// One part of the list that [`arranged`] builds.
#[derive(Debug, Clone, Copy)]
pub enum Part<'a> {
    /// The item at this index of the old list.
    Own(usize),
    /// The item at this index of the old list is removed. The comments above and below it stay.
    Gone(usize),
    New(&'a NewValue, &'a Written),
}

/// Where the lines of an item of a block list are in the front matter.
struct Frame {
    above: Range<usize>,
    /// The lines from the dash to the end of the item.
    own: Range<usize>,
    /// Comments that are indented deeper than the dash.
    below: Range<usize>,
}

/// How the items of a list are written, in their order.
pub fn written(list: View<'_>) -> Vec<Written> {
    let text = list.source();
    let lines = Lines { text, first_eol: "\n" };
    let items: Vec<View<'_>> = list.items().collect();
    let Some(frames) = frames(&lines, list) else {
        return items.iter().enumerate().map(|(nth, _)| in_brackets(&lines, list, &items, nth)).collect();
    };
    let of = |(frame, item): (&Frame, &View<'_>)| {
        let span = item.outer_span();
        let around = [frame.above.clone(), frame.own.start..span.start, span.end..frame.below.end];
        let lines = ItemLines {
            above: text[frame.above.clone()].to_owned(),
            own: text[frame.own.start..frame.below.end].to_owned(),
            column: lines.column(item.lead().unwrap_or(span.start)),
        };
        let has_comments = around.into_iter().any(|it| text[it].contains('#'));
        Written { lines: Some(lines), has_comments }
    };
    frames.iter().zip(&items).map(of).collect()
}

/// Finds out whether an item of a list without frames, usually a list in brackets, has comments. A comment before the item
/// counts if it is below the previous item's last line. A comment after the item counts if it is on the item's last line.
/// After the last item, all comments up to the end of the list count.
fn in_brackets(lines: &Lines<'_>, list: View<'_>, items: &[View<'_>], nth: usize) -> Written {
    let text = lines.text;
    let (all, own) = (list.span(), items[nth].outer_span());
    if list.is_alias() || own.start < all.start || own.end > all.end {
        return Written::default();
    }
    let from = nth.checked_sub(1).map_or(all.start, |it| lines.text_end(items[it].outer_span().end));
    let next = items.get(nth + 1).map_or(all.end, |it| it.outer_span().start);
    let to = lines.text_end(own.end).min(next);
    let has = |from: usize, to: usize| text.get(from..to).is_some_and(|it| it.contains('#'));
    let is_last = nth + 1 == items.len();
    let has_comments = has(from, own.start) || has(own.end, if is_last { all.end } else { to });
    Written { lines: None, has_comments }
}

/// The lines of the items of a list. `None` if it is not a block list, or if one of its items does not consist of whole
/// lines.
fn frames(lines: &Lines<'_>, list: View<'_>) -> Option<Vec<Frame>> {
    if list.kind() != Kind::List || list.style() != Style::Block || list.is_alias() {
        return None;
    }
    let mut frames: Vec<Frame> = Vec::new();
    for item in list.items() {
        let dash = item.lead().filter(|it| lines.is_first_on_line(*it))?;
        let start = lines.start(dash);
        let above = frames.last().map_or_else(|| comments_above(lines, start), |it| it.below.end);
        let end = lines.end(item.outer_span().end.max(dash + 1));
        let below = lines.skip_deeper_comments(end, lines.column(dash));
        if !lines.text[..below].ends_with('\n') || above > start {
            return None;
        }
        frames.push(Frame { above: above..start, own: start..end, below: end..below });
    }
    (!frames.is_empty()).then_some(frames)
}

/// Where the comments and blank lines above a line begin.
fn comments_above(lines: &Lines<'_>, line: usize) -> usize {
    let mut start = line;
    while start > 0 {
        let above = lines.start(start - lines.eol_before(start).len());
        if lines.comment_column(above).is_none() && lines.after_blanks(above) != lines.text_end(above) {
            break;
        }
        start = above;
    }
    start
}

/// Replaces the list of a key by the given parts. The list's own items keep their lines. A new item gets the lines of its
/// [`Written`], indented as in this list. If its [`Written`] has no lines, the item's value is rendered.
///
/// `None` if the key has no block list whose items consist of whole lines, or if the file cannot be edited. Also `None` if
/// the new file, parsed again, does not contain exactly these parts, or if other data would change.
pub fn arranged(file: &[u8], key: &str, parts: &[Part<'_>]) -> Option<Vec<u8>> {
    let page = Page::open(file.to_vec()).ok()?;
    let (sheet, offset) = page.sheet()?;
    let (_, list) = sheet.root().find_entry(key)?;
    let mut frames = frames(&sheet.lines, list)?;
    // Comments at the end of the list belong to its last item, so that they stay above items that are added at the end.
    let last = frames.last_mut()?;
    last.below.end = sheet.lines.skip_deeper_comments(last.below.end, sheet.root_column());
    let mut text = String::new();
    for part in parts {
        let own = |it: Range<usize>| &sheet.text()[it];
        match part {
            Part::Own(nth) => {
                let it = frames.get(*nth)?;
                text.push_str(own(it.above.start..it.below.end));
            }
            Part::Gone(nth) => {
                let it = frames.get(*nth)?;
                text.push_str(own(it.above.clone()));
                text.push_str(own(it.below.clone()));
            }
            Part::New(value, written) => text.push_str(&new_lines(&sheet, list, value, written)?),
        }
    }
    let (from, to) = (offset + frames.first()?.above.start, offset + frames.last()?.below.end);
    let bytes = within_limits([&file[..from], text.as_bytes(), &file[to..]].concat()).ok()?;
    let after = Page::open(bytes).ok()?;
    let is_meant =
        means(key, list, parts, after.root()?) && others_are_same(key, page.root()?, after.root()?);
    let bytes = after.into_bytes();
    (is_meant && front_matter::split(file).body() == front_matter::split(&bytes).body()).then_some(bytes)
}

/// The lines of a new item, laid out as in this list.
fn new_lines(sheet: &Sheet<'_>, list: View<'_>, value: &NewValue, written: &Written) -> Option<String> {
    let first = list.items().next()?;
    let (dash, start) = (first.lead()?, first.outer_span().start);
    let column = sheet.lines.column(dash);
    if let Some(it) = &written.lines {
        return Some(indented(&it.above, it.column, column) + &indented(&it.own, it.column, column));
    }
    let eol = sheet.lines.eol_of(dash);
    let text =
        sheet.renderer(eol, sheet.text().len()).item(value, column, super::list::gap(sheet, dash, start));
    Some(format!("{}{text}{eol}", spaces(column)))
}

/// Changes the indentation of lines from column `from` to column `to`. Blank lines do not change.
fn indented(text: &str, from: usize, to: usize) -> String {
    let shift = |line: &str| {
        let blanks = line.len() - line.trim_start_matches(' ').len();
        match line.trim().is_empty() {
            true => line.to_owned(),
            false if to >= from => format!("{}{line}", spaces(to - from)),
            false => line[blanks.min(from - to)..].to_owned(),
        }
    };
    text.split_inclusive('\n').map(shift).collect()
}

/// Whether the list of a key consists of exactly these parts.
fn means(key: &str, old: View<'_>, parts: &[Part<'_>], root: View<'_>) -> bool {
    let Some((_, new)) = root.find_entry(key) else { return false };
    let old: Vec<View<'_>> = old.items().collect();
    let mut now = new.items();
    let is_next = |part: &Part<'_>| match part {
        Part::Own(nth) => now.next().is_some_and(|it| yaml::same(old[*nth], it)),
        Part::Gone(_) => true,
        Part::New(value, _) => now.next().is_some_and(|it| value.matches(it)),
    };
    new.kind() == Kind::List && parts.iter().all(is_next) && now.next().is_none()
}

fn others_are_same(key: &str, old: View<'_>, new: View<'_>) -> bool {
    let is_same = |((key_before, before), (key_after, after)): (Entry<'_>, Entry<'_>)| {
        yaml::same(key_before, key_after) && (key_before.text() == Some(key) || yaml::same(before, after))
    };
    old.own_entries().count() == new.own_entries().count()
        && old.own_entries().zip(new.own_entries()).all(is_same)
}

type Entry<'a> = (View<'a>, View<'a>);
