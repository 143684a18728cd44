//! Reads one line of a Steps list: the positions of its number, its title and the marks around them.
//!
//! This module accepts the forms in which people write such lines. It does not depend on the list around the line.

use std::ops::Range;

use crate::plan::references;
use crate::plan::step_number::StepNumber;

/// The name and title of a line; all ranges are within the text that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) number: StepNumber,
    /// Where the number is written: in the name, in a link's target, or in both.
    pub(super) numbers: Vec<Range<usize>>,
    /// The fragment or query of a link's target, with its `#` or `?`; empty if there is none.
    pub(super) fragment: Range<usize>,
    pub(super) title: String,
    pub(super) title_span: Range<usize>,
    /// The end of the name and the title, with their marks.
    pub(super) end: usize,
    /// The closing marks for the marks that are still open at `end`.
    pub(super) unclosed: String,
}

/// Reads `step-1: Title`, `**step-1** – Title`, `Step 1: Title`, `[step-1](step-1.md): Title`, `[Title](step-1.md)`.
pub(super) fn read(text: &str) -> Option<Line> {
    let marks = marks_at(text, 0);
    link(text, marks).or_else(|| plain(text, &(0..text.len())))
}

/// The length in bytes of the marks of emphasis and code at a position.
fn marks_at(text: &str, at: usize) -> usize {
    text.len() - at - text[at..].trim_start_matches(['*', '_', '`', '~']).len()
}

fn mirrored(marks: &str) -> String {
    marks.chars().rev().map(|c| if c == '[' { ']' } else { c }).collect()
}

fn plain(text: &str, range: &Range<usize>) -> Option<Line> {
    let text = &text[..range.end];
    let open =
        text.len() - range.start - text[range.start..].trim_start_matches(['*', '_', '`', '~', '[']).len();
    let name = name(text, range.start + open)?;
    let marks = &text[range.start..range.start + open];
    let (title, title_span, end, unclosed) = title(text, name.end, marks);
    let is_said = !name.is_worded || name.is_set_off;
    is_said.then_some(Line {
        number: name.number,
        numbers: vec![name.digits],
        fragment: 0..0,
        title,
        title_span,
        end,
        unclosed,
    })
}

struct Name {
    number: StepNumber,
    digits: Range<usize>,
    end: usize,
    /// Whether the form is `Step 1` and not `step-1`. Such words may also begin a sentence.
    is_worded: bool,
    /// Whether a separator, or nothing, follows the name.
    is_set_off: bool,
}

fn name(text: &str, at: usize) -> Option<Name> {
    let rest = text.get(at..at + 4).filter(|it| it.eq_ignore_ascii_case("step")).map(|_| &text[at + 4..])?;
    let is_worded = rest.starts_with(' ');
    let rest = if is_worded { rest.trim_start() } else { rest.strip_prefix('-')? };
    let start = text.len() - rest.len();
    let digits = start..start + references::number_at(rest).len();
    let behind = &text[digits.end..];
    if behind.starts_with(char::is_alphanumeric) {
        return None;
    }
    let behind = behind.strip_prefix(".md").unwrap_or(behind);
    let next =
        behind.trim_start_matches(|c: char| c.is_whitespace() || matches!(c, '*' | '_' | '`' | '~' | ']'));
    let is_set_off = next.is_empty() || next.starts_with([':', '-', '–', '—', '.', ')']);
    let number = text[digits.clone()].parse().ok()?;
    Some(Name { number, digits, end: text.len() - behind.len(), is_worded, is_set_off })
}

/// Reads the title after a name: its text, its range, its end including marks, and the closing marks still missing.
fn title(text: &str, at: usize, marks: &str) -> (String, Range<usize>, usize, String) {
    let closers = text[at..].len() - text[at..].trim_start_matches(['*', '_', '`', '~', ']']).len();
    let closers = closers.min(marks.len());
    let mut open = mirrored(&marks[..marks.len() - closers]);
    let mut rest = behind_separator(&text[at + closers..]);
    if let Some(behind) = rest.strip_prefix(open.as_str()).filter(|_| !open.is_empty()) {
        rest = behind_separator(behind);
        open.clear();
    }
    let start = text.len() - rest.len();
    let rest = rest.trim_end();
    let end = start + rest.len();
    if open.is_empty() {
        return (rest.to_owned(), start..end, end, open);
    }
    let Some(close) = rest.find(open.as_str()) else { return (rest.to_owned(), start..end, end, open) };
    let words = format!("{}{}", &rest[..close], &rest[close + open.len()..]);
    let inner = start..start + rest[..close].trim_end().len();
    (words.trim().to_owned(), inner, start + close + open.len(), String::new())
}

fn behind_separator(text: &str) -> &str {
    let point =
        text.strip_prefix(['.', ')']).filter(|it| it.is_empty() || it.starts_with(char::is_whitespace));
    point.unwrap_or(text).trim_start().trim_start_matches([':', '-', '–', '—']).trim_start()
}

/// Reads a line that begins with a link, after `open` bytes of marks.
fn link(text: &str, open: usize) -> Option<Line> {
    let label_start = open + text[open..].strip_prefix('[').map(|_| 1)?;
    let label_end = label_start + text[label_start..].find("](")?;
    let close = label_end + 2 + text[label_end + 2..].find(')')?;
    // The target of a link may have a fragment or a query after the path.
    let path_end = text[label_end + 2..close].find(['#', '?']).map_or(close, |it| label_end + 2 + it);
    let target = label_end + 2..path_end;
    let fragment = path_end..close;
    let number =
        references::read_target(&text[target.clone()]).filter(|_| text[target.clone()].ends_with(".md"))?;
    let start = target.start;
    let name_at = start + text[target].rfind("step-")? + "step-".len();
    let name_end = name_at + references::number_at(&text[name_at..]).len();
    let numbers: Vec<Range<usize>> = std::iter::once(name_at..name_end).collect();
    let label = label_start..label_end;
    let marks = &text[..open];
    let is_same = |it: &Line| it.number == number;
    match plain(text, &label).filter(is_same) {
        Some(line) if line.title.is_empty() => {
            let (title, title_span, end, unclosed) = title(text, close + 1, marks);
            let numbers = [line.numbers, numbers].concat();
            Some(Line { number, numbers, fragment, title, title_span, end, unclosed })
        }
        Some(line) => {
            let numbers = [line.numbers, numbers].concat();
            let (end, unclosed) = behind_link(text, close + 1, marks);
            Some(Line { numbers, fragment, end, unclosed, ..line })
        }
        None => {
            let (end, unclosed) = behind_link(text, close + 1, marks);
            Some(Line {
                number,
                numbers,
                fragment,
                title: text[label.clone()].to_owned(),
                title_span: label,
                end,
                unclosed,
            })
        }
    }
}

fn behind_link(text: &str, at: usize, marks: &str) -> (usize, String) {
    let open = mirrored(marks);
    if text[at..].starts_with(&open) { (at + open.len(), String::new()) } else { (at, open) }
}
