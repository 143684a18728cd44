//! Putting a new value where an old one stands.

use super::page::{Sheet, Splice};
use super::refusal::LAYOUT;
use super::render::flow;
use super::{EditError, NewValue};
use crate::text::scalar::{self, Place};
use crate::text::yaml::resolve::plain_kind;
use crate::text::yaml::{Kind, Style, View};
use std::ops::Range;

/// Replaces the value of an entry of the front matter.
pub(super) fn entry(
    sheet: &Sheet<'_>,
    entry: (View<'_>, View<'_>),
    value: &NewValue,
) -> Result<Vec<Splice>, EditError> {
    let (key, old) = entry;
    sheet.guard_anchors(&old.outer_span())?;
    let Some(colon) = old.lead() else { return without_colon(sheet, key, value) };
    if sheet.is_flow() {
        return Ok(token(old, &new_token(old, value, Place::Flow)));
    }
    let slot = Slot { sheet, old, behind_lead: colon + 1, column: sheet.root_column() };
    if value.is_block() { slot.lines_below(value) } else { Ok(slot.on_the_line(value)) }
}

/// Replaces an item of a block list whose dash stands at `column`.
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
    let render = sheet.renderer(sheet.lines.eol_of(dash));
    if old.is_unwritten() {
        let text = format!(" {}", render.block(value, slot.column + 2));
        return Ok(vec![Splice { range: old.outer_span(), text }]);
    }
    let column = sheet.lines.column(old.outer_span().start);
    Ok(vec![Splice { range: old.outer_span(), text: render.block(value, column) }])
}

/// Replaces a member of a flow collection.
pub(super) fn member(sheet: &Sheet<'_>, old: View<'_>, value: &NewValue) -> Result<Vec<Splice>, EditError> {
    sheet.guard_anchors(&old.outer_span())?;
    Ok(token(old, &new_token(old, value, Place::Flow)))
}

fn without_colon(sheet: &Sheet<'_>, key: View<'_>, value: &NewValue) -> Result<Vec<Splice>, EditError> {
    let end = key.outer_span().end;
    if sheet.is_flow() {
        return Ok(vec![Splice { range: end..end, text: format!(": {}", flow(value)) }]);
    }
    Err(EditError::new(LAYOUT, key.outer_span().start, "the key has no colon"))
}

/// The place of a value behind its colon or dash, outside of brackets.
struct Slot<'a> {
    sheet: &'a Sheet<'a>,
    old: View<'a>,
    behind_lead: usize,
    /// The column of the key or dash.
    column: usize,
}

impl Slot<'_> {
    /// A value that begins on the line of its key or dash; what ends that line stays.
    fn on_the_line(&self, value: &NewValue) -> Vec<Splice> {
        let old = self.old;
        let new = self.inline_token(value);
        match old.style() {
            Style::Literal | Style::Folded => self.block_scalar(value, &new),
            Style::Block if !self.sheet.lines.on_one_line(self.behind_lead, old.outer_span().start) => {
                self.pull_up(&new)
            }
            Style::Block => vec![Splice { range: old.outer_span(), text: new }],
            _ => token(old, &new),
        }
    }

    fn inline_token(&self, value: &NewValue) -> String {
        match value {
            NewValue::Text(_) | NewValue::Word(_) => new_token(self.old, value, Place::Block),
            _ => self.render().token(value, self.column).unwrap_or_else(|| flow(value)),
        }
    }

    fn render(&self) -> super::render::Renderer<'_> {
        self.sheet.renderer(self.sheet.lines.eol_of(self.behind_lead))
    }

    /// Replaces a list or mapping below the key by a token on the line of the key.
    fn pull_up(&self, new: &str) -> Vec<Splice> {
        let lines = self.sheet.lines;
        let Range { start, end } = self.old.outer_span();
        let key_line_end = lines.text_end(self.behind_lead);
        if start < key_line_end {
            return vec![Splice { range: start..lines.text_end(end), text: new.to_owned() }];
        }
        let at = self.behind_lead;
        vec![
            Splice { range: at..at, text: format!(" {new}") },
            Splice { range: key_line_end..lines.text_end(end), text: String::new() },
        ]
    }

    /// Replaces a block scalar: by another one if the text allows it, else by a token behind which the comment stays.
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
        let Some(literal) = literal else {
            let mut splices = token_at(self.old, start..header_end, new);
            splices.push(Splice { range: content, text: String::new() });
            return splices;
        };
        let column = self.content_column().unwrap_or(self.column + 2);
        let block = self.render().literal(&literal, column);
        let mut splices = token_at(self.old, start..header_end, literal.header);
        splices.push(Splice { range: content, text: block[literal.header.len()..].to_owned() });
        splices
    }

    /// The column of the first line that has text, unless it stands deeper on purpose.
    fn content_column(&self) -> Option<usize> {
        let lines = self.sheet.lines;
        let Range { start, end } = self.old.span();
        let old_text = self.old.text()?;
        let mut line = lines.end(start);
        while line < end {
            let text = &self.sheet.text()[line..lines.text_end(line)];
            let indented = text.len() - text.trim_start_matches(' ').len();
            if indented < text.len() {
                let own_spaces = old_text.trim_start_matches('\n');
                let own_spaces = own_spaces.len() - own_spaces.trim_start_matches(' ').len();
                return indented.checked_sub(own_spaces).filter(|it| *it > self.column);
            }
            line = lines.end(line);
        }
        None
    }

    /// A list or mapping on the lines below the key.
    fn lines_below(&self, value: &NewValue) -> Result<Vec<Splice>, EditError> {
        let lines = self.sheet.lines;
        let Range { start, end } = self.old.outer_span();
        let eol = lines.eol_of(self.behind_lead);
        let mut render = self.sheet.renderer(eol);
        if self.old.style() == Style::Block {
            if !lines.is_first_on_line(self.old.span().start) || start < lines.text_end(self.behind_lead) {
                return Err(EditError::new(LAYOUT, start, "the value begins on the line of its key"));
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

/// Replaces a scalar or a flow collection by a token.
fn token(old: View<'_>, new: &str) -> Vec<Splice> {
    token_at(old, old.span(), new)
}

/// Replaces `range` of a node by a token, and drops a tag that does not fit the token.
fn token_at(old: View<'_>, range: Range<usize>, new: &str) -> Vec<Splice> {
    let drops_tag = old.tag_span().filter(|_| !keeps_tag(old, new));
    let mut splices = Vec::new();
    let mut text = new.to_owned();
    if let Some(tag) = drops_tag {
        if range.is_empty() && tag.end == range.start {
            return vec![Splice { range: tag, text }];
        }
        splices.push(Splice { range: tag.start..tag.end, text: String::new() });
    }
    if range.is_empty() {
        text.insert(0, ' ');
    }
    splices.push(Splice { range, text });
    splices
}

/// A tag stays where the new token means the same with it as without it.
fn keeps_tag(old: View<'_>, new: &str) -> bool {
    let is_quoted = new.starts_with(['"', '\'']);
    let is_collection = new.starts_with(['[', '{']);
    let is_text = is_quoted || !is_collection && plain_kind(new) == Kind::Text;
    match old.tag() {
        Some("tag:yaml.org,2002:str") => is_text,
        Some(tag) if tag.starts_with("tag:yaml.org,2002:") => false,
        // The author's own tag on a text stays with a text.
        _ => is_text && old.kind() == Kind::Text,
    }
}

/// The token of a value in the style of the old one, where that can hold it.
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
