//! Changes the items of a list in brackets.

use super::items::Source;
use super::remove::after_comma;
use super::render::flow;
use super::sheet::{Sheet, Splice};
use super::{EditError, NewValue, replace};
use crate::text::yaml::View;
use std::ops::Range;

pub(super) fn change(
    sheet: &Sheet<'_>,
    list: View<'_>,
    sources: &[Source<'_>],
) -> Result<Vec<Splice>, EditError> {
    match Lines::of(sheet, list) {
        Some(lines) => lines.change(sources),
        None => Ok(vec![joined(sheet, list, sources)?]),
    }
}

/// A list in brackets with each item on lines of its own.
pub(super) struct Lines<'a> {
    sheet: &'a Sheet<'a>,
    list: View<'a>,
    items: Vec<Item>,
}

struct Item {
    span: Range<usize>,
    /// Where its comma ends, if it has one.
    comma: Option<usize>,
    /// Its lines, the comments directly above it, and the comments directly below it that are indented deeper.
    lines: Range<usize>,
}

impl<'a> Lines<'a> {
    /// `None` if the list is laid out differently.
    pub(super) fn of(sheet: &'a Sheet<'a>, list: View<'a>) -> Option<Self> {
        let (lines, text) = (sheet.lines, sheet.text());
        let mut floor = lines.end(list.span().start);
        let mut items: Vec<Item> = Vec::new();
        for item in list.items() {
            let span = item.outer_span();
            let comma = lines.after_blanks(span.end);
            let comma = text[comma..].starts_with(',').then_some(comma + 1);
            let rest = text[comma.unwrap_or(span.end)..lines.text_end(span.end)].trim_start();
            let is_alone = floor <= span.start && lines.is_first_on_line(span.start);
            let follows = items.last().is_none_or(|it| it.comma.is_some());
            if !is_alone || !follows || !(rest.is_empty() || rest.starts_with('#')) {
                return None;
            }
            let end = lines.skip_deeper_comments(lines.end(span.end), lines.column(span.start));
            let start = lines.with_comments_above(lines.start(span.start), floor);
            items.push(Item { span, comma, lines: start..end });
            floor = end;
        }
        let is_closed_below = floor < list.span().end;
        (is_closed_below && !items.is_empty()).then_some(Self { sheet, list, items })
    }

    /// If an item moves, its comments move, too. If an item is removed, the comments on lines of their own stay. There is a
    /// comma after the new last item if there was one after the old last item.
    pub(super) fn change(&self, sources: &[Source<'_>]) -> Result<Vec<Splice>, EditError> {
        let (lines, text) = (self.sheet.lines, self.sheet.text());
        let mut splices = Vec::new();
        for (nth, item) in self.items.iter().enumerate() {
            if sources.iter().any(|it| it.fixed() == Some(nth)) {
                continue;
            }
            let own = lines.start(item.span.start)..lines.end(item.span.end);
            let range = if sources.contains(&Source::Moved(nth)) { item.lines.clone() } else { own };
            splices.push(Splice { range, text: String::new() });
        }
        if sources.is_empty() && !self.leaves_comment(&splices) {
            return Ok(vec![Splice { range: self.list.span(), text: "[]".to_owned() }]);
        }
        let ends_in_comma = self.items.last().is_some_and(|it| it.comma.is_some());
        let first = sources.iter().find_map(Source::fixed);
        let mut above = None;
        for (place, source) in sources.iter().enumerate() {
            let has_comma = ends_in_comma || place + 1 < sources.len();
            if let Some(nth) = source.fixed() {
                let item = &self.items[nth];
                if let (Source::Replaced(_, value), Some(view)) = (source, self.list.items().nth(nth)) {
                    splices.extend(replace::member(self.sheet, view, value)?);
                }
                splices.extend(self.comma(item, has_comma));
                above = Some(item);
                continue;
            }
            let like = above.unwrap_or(&self.items[first.unwrap_or(0)]);
            let at = above.map_or(like.lines.start, |it| it.lines.end);
            let comma = if has_comma { "," } else { "" };
            let text = match source {
                Source::Moved(nth) => {
                    let item = &self.items[*nth];
                    let tail = &text[item.comma.unwrap_or(item.span.end)..item.lines.end];
                    let blank = if tail.starts_with('#') { " " } else { "" };
                    format!("{}{comma}{blank}{tail}", &text[item.lines.start..item.span.end])
                }
                Source::New(value) => {
                    let indent = &text[lines.start(like.span.start)..like.span.start];
                    format!("{indent}{}{comma}{}", flow(value), lines.eol_of(like.span.end))
                }
                Source::Kept(_) | Source::Replaced(..) => continue,
            };
            splices.push(Splice { range: at..at, text });
        }
        Ok(splices)
    }

    /// Whether the list contains comments that are not removed.
    fn leaves_comment(&self, removed: &[Splice]) -> bool {
        let Range { start, end } = self.list.span();
        let starts = [start].into_iter().chain(removed.iter().map(|it| it.range.end));
        let ends = removed.iter().map(|it| it.range.start).chain([end]);
        starts.zip(ends).any(|(from, to)| self.sheet.text()[from..to].contains('#'))
    }

    /// Adds or removes the comma of an item.
    fn comma(&self, item: &Item, has_comma: bool) -> Option<Splice> {
        let end = item.span.end;
        match item.comma {
            None if has_comma => Some(Splice { range: end..end, text: ",".to_owned() }),
            Some(comma) if !has_comma => {
                let is_comment = self.sheet.text()[comma..].starts_with('#');
                let text = if is_comment { " ".to_owned() } else { String::new() };
                Some(Splice { range: end..comma, text })
            }
            _ => None,
        }
    }
}

/// Writes all items as one splice and preserves the text between them. The text between two items belongs to the first of
/// them. If that item is removed, a comment in this text stays.
fn joined(sheet: &Sheet<'_>, list: View<'_>, sources: &[Source<'_>]) -> Result<Splice, EditError> {
    let text = sheet.text();
    let items: Vec<View<'_>> = list.items().collect();
    let start = items[0].outer_span().start;
    let end = items[items.len() - 1].outer_span().end;
    if sources.is_empty() && !text[list.span()].contains('#') {
        return Ok(Splice { range: list.span(), text: "[]".to_owned() });
    }
    let between = |nth: usize| {
        items.get(nth + 1).map(|it| items[nth].outer_span().end..it.outer_span().start).map(|it| &text[it])
    };
    let comment = |nth: usize| {
        let between = between(nth).filter(|it| it.contains('#'))?;
        Some(between.trim_start().trim_start_matches(',').trim_start_matches([' ', '\t']))
    };
    let add_comment = |new: &mut String, comment: &str| {
        let blank = if new.ends_with([' ', '\n']) { "" } else { " " };
        new.extend([blank, comment]);
    };
    let is_gone = |nth: usize| {
        !sources.iter().any(|it| matches!(it, Source::Moved(at) if *at == nth) || it.fixed() == Some(nth))
    };
    let (mut new, mut seen) = (String::new(), 0);
    for (place, source) in sources.iter().enumerate() {
        let nth = match source {
            Source::Kept(nth) | Source::Replaced(nth, _) => {
                let gone = (seen..*nth).filter(|it| is_gone(*it));
                gone.filter_map(comment).for_each(|it| add_comment(&mut new, it));
                seen = nth + 1;
                Some(*nth)
            }
            Source::Moved(nth) => Some(*nth),
            Source::New(_) => None,
        };
        match source {
            Source::Kept(nth) | Source::Moved(nth) => new.push_str(&text[items[*nth].outer_span()]),
            Source::Replaced(nth, value) => new.push_str(&replaced(sheet, items[*nth], value)?),
            Source::New(value) => new.push_str(&flow(value)),
        }
        if place + 1 < sources.len() {
            new.push_str(nth.and_then(between).unwrap_or(", "));
        } else {
            nth.and_then(comment).into_iter().for_each(|it| add_comment(&mut new, it));
        }
    }
    let gone = (seen..items.len()).filter(|it| is_gone(*it));
    gone.filter_map(comment).for_each(|it| add_comment(&mut new, it));
    let end = if sources.is_empty() { after_comma(sheet, end) } else { end };
    Ok(Splice { range: start..end, text: new })
}

/// The text of an item with another value.
fn replaced(sheet: &Sheet<'_>, item: View<'_>, value: &NewValue) -> Result<String, EditError> {
    let mut splices = replace::member(sheet, item, value)?;
    splices.sort_by_key(|it| (it.range.start, it.range.end));
    let Range { start, end } = item.outer_span();
    let (mut text, mut at) = (String::new(), start);
    for splice in splices {
        text.push_str(&sheet.text()[at..splice.range.start]);
        text.push_str(&splice.text);
        at = splice.range.end;
    }
    text.push_str(&sheet.text()[at..end.max(at)]);
    Ok(text)
}
