//! Lines of a document that state a status or a dependency. Each becomes a key of a step, or is listed as unmapped.

use std::ops::Range;

use super::waits::{self, Name, Wait};
use crate::plan::words::{StepStatus, Words};
use crate::text::markdown::Outline;

#[derive(Debug, Clone)]
pub(super) struct Statement {
    /// Where it begins in the body.
    pub(super) at: usize,
    /// Its text in the body.
    pub(super) text: String,
    pub(super) kind: Kind,
    pub(super) form: Form,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// `(depends: …)`, which may be anywhere in a line.
    Parentheses,
    Line,
    /// A line below a heading such as Dependencies.
    Section,
}

#[derive(Debug, Clone)]
pub(super) enum Kind {
    /// `None`: the word is not a status of a step.
    Status(Option<StepStatus>),
    Waits(Vec<Wait>),
    /// A sentence or a row of a table. Its content is not interpreted.
    Loose,
}

impl Kind {
    /// False for a list of dependencies without names, such as `Dependencies: none`.
    fn has_content(&self) -> bool {
        !matches!(self, Self::Waits(waits) if waits.is_empty())
    }

    /// Whether at least one dependency is a number, a range of numbers or the id of a step.
    pub(super) fn has_numbers(&self) -> bool {
        match self {
            Self::Waits(waits) => waits.iter().any(|it| !matches!(it.name, Name::Text(_))),
            _ => false,
        }
    }
}

/// Finds all statements of a body; `visible` is the body with its code and comments hidden.
pub(super) fn find(body: &str, visible: &str, outline: &Outline, words: &Words) -> Vec<Statement> {
    let mut found = Vec::new();
    let mut flat = visible.to_owned();
    for (span, waits) in waits::groups(visible) {
        let text = body[span.clone()].to_owned();
        found.push(Statement { at: span.start, text, kind: Kind::Waits(waits), form: Form::Parentheses });
        flat.replace_range(span.clone(), &blank(&visible[span]));
    }
    let mut scan = Scan { body, words, list: List::No, found };
    let mut at = 0;
    for line in flat.split_inclusive('\n') {
        let heading = outline.headings.iter().find(|it| it.span.contains(&at));
        match heading {
            // Only the first line of a heading is read; the next line may be its underline.
            Some(it) if at == it.span.start => scan.heading(line, at),
            Some(_) => {}
            None => scan.line(line, at),
        }
        at += line.len();
    }
    let mut found = scan.found;
    found.retain(|it| it.kind.has_content());
    found.sort_by_key(|it| it.at);
    found
}

fn blank(text: &str) -> String {
    text.bytes().map(|it| if matches!(it, b'\n' | b'\r') { char::from(it) } else { ' ' }).collect()
}

/// Whether the following lines are a list of dependencies.
#[derive(Clone, Copy, PartialEq, Eq)]
enum List {
    No,
    /// Below `Dependencies:`; it ends before the first line that is neither blank nor an item.
    Items,
    /// Below a heading; it ends at the next heading.
    Section,
}

struct Scan<'a> {
    body: &'a str,
    words: &'a Words,
    list: List,
    found: Vec<Statement>,
}

impl Scan<'_> {
    fn push(&mut self, span: Range<usize>, kind: Kind) {
        let text = self.body[span.clone()].trim().to_owned();
        let form = if self.list == List::Section { Form::Section } else { Form::Line };
        self.found.push(Statement { at: span.start, text, kind, form });
    }

    fn heading(&mut self, line: &str, at: usize) {
        self.list = List::No;
        let text = line.trim_start_matches(['#', ' ']);
        if waits::is_key(text.trim()) {
            self.list = List::Section;
        } else {
            self.part(text, at + line.len() - text.len());
        }
    }

    fn line(&mut self, line: &str, at: usize) {
        let text = line.trim_start();
        let start = at + line.len() - text.len();
        if text.starts_with('|') {
            let is_key = |it: &str| {
                let it = it.trim_matches(|c: char| c.is_whitespace() || "*_`".contains(c));
                is_status(it) || waits::is_key(it)
            };
            if text.split('|').any(is_key) {
                self.push(start..at + line.len(), Kind::Loose);
            }
            return;
        }
        let is_item = text.starts_with(['-', '*', '+']) && !text.starts_with("**");
        let is_item = is_item || text.starts_with(|c: char| c.is_ascii_digit());
        match self.list {
            _ if text.is_empty() => return,
            List::Items if !is_item => self.list = List::No,
            List::Items | List::Section if key(text).is_none_or(|it| !is_known(it.0)) => {
                let value = text.trim_start_matches(|c: char| c.is_whitespace() || "-*+".contains(c));
                let at = at + line.len() - value.len();
                self.push(start..at + value.len(), Kind::Waits(waits::read(value, at)));
                return;
            }
            _ => {}
        }
        let mut from = 0;
        for part in line.split_inclusive(['|', '·', '•']) {
            self.part(part.trim_end_matches(['|', '·', '•']), at + from);
            from += part.len();
        }
    }

    fn part(&mut self, part: &str, at: usize) {
        let span = at..at + part.len();
        let text = part.trim_start_matches(|c: char| c.is_whitespace() || "-*_>(|+".contains(c));
        let start = at + part.len() - text.len();
        match key(text) {
            Some((word, value)) if is_status(word) => {
                let kind = Kind::Status(status(value, self.words));
                self.push(span, kind);
            }
            Some((word, value)) if waits::is_key(word) => {
                if !value.contains(char::is_alphanumeric) {
                    self.list = List::Items;
                }
                self.push(span, Kind::Waits(waits::read(value, start + text.len() - value.len())));
            }
            _ => {
                if let Some(value) = waits::begun(text) {
                    self.push(span, Kind::Waits(waits::read(value, start + text.len() - value.len())));
                } else if waits::in_sentence(text) {
                    self.push(span, Kind::Loose);
                }
            }
        }
    }
}

fn is_known(key: &str) -> bool {
    is_status(key) || waits::is_key(key)
}

fn is_status(key: &str) -> bool {
    matches!(key.to_lowercase().as_str(), "status" | "state")
}

/// Splits a line at its first colon into key and value. Marks of emphasis are removed from the key.
fn key(text: &str) -> Option<(&str, &str)> {
    let text = text.trim_start_matches(|c: char| c.is_whitespace() || "-*_>(|+".contains(c));
    let (key, value) = text.split_once(':')?;
    Some((key.trim_matches(['*', '_', ' ']), value))
}

/// Reads the value of a line `Status: …`. If a value in code is followed by other words, the line is a sentence and states
/// no status.
fn status(value: &str, words: &Words) -> Option<StepStatus> {
    let start = value.find(char::is_alphanumeric)?;
    let (marks, value) = value.split_at(start);
    let end = value.find(|c: char| !c.is_alphanumeric() && !matches!(c, ' ' | '-' | '_'));
    let (word, behind) = value.split_at(end.unwrap_or(value.len()));
    let is_sentence = marks.contains('`') && behind.contains(char::is_alphanumeric);
    words.read(word.trim()).filter(|_| !is_sentence)
}

/// Whether a line of an item's text is a statement. The item's title ends before such a line.
pub(super) fn begins(line: &str) -> bool {
    key(line).is_some_and(|it| is_known(it.0))
        || waits::begun(line.trim_start_matches(['*', '_', ' '])).is_some()
}
