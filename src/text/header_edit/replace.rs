//! Replaces a value.

use super::refusal::LAYOUT;
use super::render::flow;
use super::sheet::{Sheet, Splice};
use super::{EditError, NewValue};
use crate::text::scalar::{self, Place};
use crate::text::yaml::resolve::plain_kind;
use crate::text::yaml::{Kind, Style, View};
use std::ops::Range;

pub(super) fn entry(
    sheet: &Sheet<'_>,
    entry: (View<'_>, View<'_>),
    value: &NewValue,
) -> Result<Vec<Splice>, EditError> {
    let (key, old) = entry;
    sheet.guard_anchors(&old.outer_span())?;
    let Some(colon) = old.lead() else { return without_colon(sheet, key, value) };
    if sheet.is_flow() {
        return Ok(token(old, &new_token(old, value, Place::Flow), value));
    }
    let slot = Slot { sheet, old, behind_lead: colon + 1, column: sheet.root_column() };
    if sheet.lines.is_behind_tab(sheet.root().span().start) && value.is_block() {
        return Err(EditError::new(LAYOUT, colon, "a tab precedes the key"));
    }
    if value.is_block() { slot.lines_below(value) } else { Ok(slot.on_the_line(value)) }
}

/// Replaces an item of a block list; `dash` is the offset of its dash.
pub(super) fn item(
    sheet: &Sheet<'_>,
    old: View<'_>,
    dash: usize,
    value: &NewValue,
) -> Result<Vec<Splice>, EditError> {
    sheet.guard_anchors(&old.outer_span())?;
    let slot = Slot { sheet, old, behind_lead: dash + 1, column: sheet.lines.column(dash) };
    if !value.is_block() {
        return Ok(slot.on_the_line(value));
    }
    let Range { start, end } = old.outer_span();
    if sheet.lines.is_behind_tab(start) {
        return Err(EditError::new(LAYOUT, dash, "a tab precedes the item"));
    }
    let line_end = sheet.lines.text_end(end);
    // Blanks or a comment after the old item would become text of a block scalar at the end of the new item.
    let is_last_on_line = sheet.lines.after_blanks(end) == line_end;
    let mut render = sheet.renderer(sheet.lines.eol_of(dash), sheet.lines.end(end));
    render.has_literals &= is_last_on_line;
    let (column, gap) = if start == end { (slot.column + 2, " ") } else { (sheet.lines.column(start), "") };
    let text = format!("{gap}{}", render.block(value, column));
    Ok(vec![Splice { range: start..if is_last_on_line { line_end } else { end }, text }])
}

/// Replaces a member of a flow collection.
pub(super) fn member(sheet: &Sheet<'_>, old: View<'_>, value: &NewValue) -> Result<Vec<Splice>, EditError> {
    sheet.guard_anchors(&old.outer_span())?;
    Ok(token(old, &new_token(old, value, Place::Flow), value))
}

fn without_colon(sheet: &Sheet<'_>, key: View<'_>, value: &NewValue) -> Result<Vec<Splice>, EditError> {
    let end = key.outer_span().end;
    if sheet.is_flow() {
        return Ok(vec![Splice { range: end..end, text: format!(": {}", flow(value)) }]);
    }
    Err(EditError::new(LAYOUT, key.outer_span().start, "the key has no colon"))
}

/// The position of a value after its colon or dash, outside of brackets.
struct Slot<'a> {
    sheet: &'a Sheet<'a>,
    old: View<'a>,
    behind_lead: usize,
    /// The column of the key or dash.
    column: usize,
}

impl Slot<'_> {
    /// Writes a value that begins on the line of its key or dash. The rest of that line stays, unless the old value is a
    /// block list or mapping that begins on it.
    fn on_the_line(&self, value: &NewValue) -> Vec<Splice> {
        let old = self.old;
        let new = self.inline_token(value);
        match old.style() {
            Style::Literal | Style::Folded => self.block_scalar(value, &new),
            Style::Block if !self.sheet.lines.on_one_line(self.behind_lead, old.outer_span().start) => {
                self.pull_up(&new)
            }
            Style::Block => vec![self.in_place(&new)],
            _ => self.token(&new, value),
        }
    }

    /// Replaces a token. If the new value is a block scalar, its lines go below the comment that may follow the token.
    fn token(&self, new: &str, value: &NewValue) -> Vec<Splice> {
        let (head, rest) = split_block_scalar(new);
        let mut splices = token(self.old, head, value);
        let at = self.sheet.lines.text_end(self.old.span().end);
        splices.push(Splice { range: at..at, text: rest.to_owned() });
        splices
    }

    fn inline_token(&self, value: &NewValue) -> String {
        match value {
            NewValue::Text(_) | NewValue::Word(_) => new_token(self.old, value, Place::Block),
            _ => self.render().token(value, self.column).unwrap_or_else(|| flow(value)),
        }
    }

    fn render(&self) -> super::render::Renderer<'_> {
        let lines = self.sheet.lines;
        self.sheet.renderer(
            lines.eol_of(self.behind_lead),
            lines.end(self.old.outer_span().end.max(self.behind_lead)),
        )
    }

    /// Replaces a list or mapping that begins on the line of its key or dash.
    fn in_place(&self, new: &str) -> Splice {
        let Range { start, end } = self.old.outer_span();
        // A comment can stay after a token, but not after the last line of a block scalar.
        let has_lines = !split_block_scalar(new).1.is_empty();
        let end = if has_lines { self.sheet.lines.text_end(end) } else { end };
        Splice { range: start..end, text: new.to_owned() }
    }

    /// Replaces a list or mapping below the line of its key or dash by a token on that line.
    fn pull_up(&self, new: &str) -> Vec<Splice> {
        let lines = self.sheet.lines;
        let end = self.old.outer_span().end;
        let key_line_end = lines.text_end(self.behind_lead);
        let at = self.behind_lead;
        let (head, rest) = split_block_scalar(new);
        vec![
            Splice { range: at..at, text: format!(" {head}") },
            Splice { range: key_line_end..lines.text_end(end), text: rest.to_owned() },
        ]
    }

    /// Replaces a block scalar. A comment after its header stays. The new value becomes a block scalar with the same
    /// indentation if it is a suitable text and the old one has text. Otherwise it becomes the token `new`.
    fn block_scalar(&self, value: &NewValue, new: &str) -> Vec<Splice> {
        let lines = self.sheet.lines;
        let Range { start, end } = self.old.span();
        let text = self.sheet.text();
        let header_end = start + text[start..end].find([' ', '\t', '\r', '\n', '#']).unwrap_or(end - start);
        let literal = match value {
            NewValue::Text(text) => scalar::any_literal(text),
            _ => None,
        };
        let content = lines.text_end(start)..end.max(lines.text_end(start));
        let Some((literal, column)) = literal.zip(self.old.text_column()) else {
            let (head, rest) = split_block_scalar(new);
            let mut splices = token_at(self.old, start..header_end, head, value);
            splices.push(Splice { range: content, text: rest.to_owned() });
            return splices;
        };
        let block = self.render().literal(&literal, column);
        let mut splices = token_at(self.old, start..header_end, literal.header, value);
        splices.push(Splice { range: content, text: block[literal.header.len()..].to_owned() });
        splices
    }

    /// Writes a list or mapping on the lines below the key.
    fn lines_below(&self, value: &NewValue) -> Result<Vec<Splice>, EditError> {
        let lines = self.sheet.lines;
        let Range { start, end } = self.old.outer_span();
        let eol = lines.eol_of(self.behind_lead);
        let mut render = self.render();
        if self.old.style() == Style::Block {
            if !lines.is_first_on_line(self.old.span().start) || start < lines.text_end(self.behind_lead) {
                return Err(EditError::new(
                    LAYOUT,
                    start,
                    "the value begins on the line of its key, or a tab precedes it",
                ));
            }
            if self.old.kind() == Kind::List {
                render.dash_step = lines.column(start).saturating_sub(self.column);
            }
            let text = render.below_key(value, self.column);
            return Ok(vec![Splice { range: lines.start(start)..lines.text_end(end), text }]);
        }
        let text = format!("{}{eol}", render.below_key(value, self.column));
        let below = lines.end(end.max(self.behind_lead));
        let mut splices = vec![Splice { range: below..below, text }];
        if self.old.is_unwritten() && self.old.tag().is_none() {
            return Ok(splices);
        }
        let from = lines.before_blanks(start).max(self.behind_lead);
        match self.old.style() {
            Style::Literal | Style::Folded => {
                let old = self.old.span();
                let header = &self.sheet.text()[old.clone()];
                let header_end =
                    old.start + header.find([' ', '\t', '\r', '\n', '#']).unwrap_or(header.len());
                let content = lines.text_end(old.start);
                splices.push(Splice { range: from..header_end, text: String::new() });
                splices.push(Splice { range: content..end.max(content), text: String::new() });
            }
            _ => splices.push(Splice { range: from..end, text: String::new() }),
        }
        Ok(splices)
    }
}

/// Splits a block scalar into its header and the rest, which begins with the line ending after the header. For any other
/// token, the rest is empty.
fn split_block_scalar(token: &str) -> (&str, &str) {
    let lines = token.find(['\r', '\n']).filter(|_| token.starts_with('|')).unwrap_or(token.len());
    token.split_at(lines)
}

/// Replaces a scalar or a flow collection by a token.
fn token(old: View<'_>, new: &str, value: &NewValue) -> Vec<Splice> {
    token_at(old, old.span(), new, value)
}

/// Replaces `range` of a node by a token, and drops a tag that does not fit the token.
fn token_at(old: View<'_>, range: Range<usize>, new: &str, value: &NewValue) -> Vec<Splice> {
    let drops_tag = old.tag_span().filter(|_| !keeps_tag(old, new, value));
    let mut splices = Vec::new();
    let mut text = new.to_owned();
    if let Some(tag) = drops_tag {
        if range.is_empty() && tag.end == range.start {
            return vec![Splice { range: tag, text }];
        }
        let blanks = old.source()[tag.end..].chars().take_while(|it| matches!(it, ' ' | '\t')).count();
        splices.push(Splice { range: tag.start..tag.end + blanks, text: String::new() });
    }
    if range.is_empty() {
        text.insert(0, ' ');
    }
    // Our parser accepts a comment directly after a quote, a bracket or a `|`, but not after a plain scalar.
    if old.source()[range.end..].starts_with('#') {
        text.push(' ');
    }
    splices.push(Splice { range, text });
    splices
}

/// Whether the tag of the old value stays. `!!str` stays if the new value is a text; the other tags of YAML never stay.
fn keeps_tag(old: View<'_>, new: &str, value: &NewValue) -> bool {
    let is_text = match value {
        NewValue::Text(_) => true,
        NewValue::Word(_) => new.starts_with(['"', '\'']) || plain_kind(new) == Kind::Text,
        _ => false,
    };
    match old.tag() {
        Some("tag:yaml.org,2002:str") => is_text,
        Some(tag) if tag.starts_with("tag:yaml.org,2002:") => false,
        // An application's own tag stays if the old and the new value are both texts.
        _ => is_text && old.kind() == Kind::Text,
    }
}

/// The token of a value, in the style of the old value if that style can express it.
fn new_token(old: View<'_>, value: &NewValue, place: Place) -> String {
    let text = match value {
        NewValue::Text(text) => text,
        NewValue::Word(word) if plain_kind(word) == Kind::Text => word,
        _ => return flow(value),
    };
    match (old.style(), value) {
        (Style::Single, _) => scalar::single(text).unwrap_or_else(|| scalar::double(text)),
        (Style::Double, _) => scalar::double(text),
        (_, NewValue::Word(word)) => word.clone(),
        _ => scalar::inline(text, place),
    }
}
