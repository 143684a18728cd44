//! Finds what a position in a text is part of: a key, a value, an item of a list, a dependency in the body.
//!
//! The module examines lines instead of parsed YAML, because a text is often invalid YAML while it is typed. Completion
//! and hover also work then.

use std::ops::Range;

use crate::text::front_matter::{self, Header};

/// The kind of text that can be written at a position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Spot {
    /// A key of the front matter.
    Key { word: Range<usize> },
    /// The value of a key, or an item of its list.
    Value { key: String, word: Range<usize>, list: List },
    /// The value of a key within an entry, such as `by` of an attempt.
    Nested { key: String, inner: String, word: Range<usize> },
    /// A step in `(depends: …)` of a Steps list.
    StepsLine { word: Range<usize> },
    /// A word in the Dependencies section.
    Dependencies { word: Range<usize> },
    /// The text is empty, so a whole file can be written.
    Empty,
}

/// The syntax around a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum List {
    /// No list: the word is the value itself.
    No,
    /// Between brackets.
    Flow,
    /// After a dash.
    Block,
}

/// The bytes between the two lines `---`, or up to the end of the text if the second of these lines is missing.
pub(super) fn header(text: &str) -> Option<Range<usize>> {
    match front_matter::split(text.as_bytes()).header {
        Header::Present { yaml, .. } => Some(yaml),
        Header::Unclosed => Some(text.find('\n').map_or(text.len(), |it| it + 1)..text.len()),
        Header::Absent => None,
    }
}

/// The line that contains an offset, without its line end.
fn line_around(text: &str, at: usize) -> Range<usize> {
    let start = text[..at].rfind('\n').map_or(0, |it| it + 1);
    let end = text[at..].find(['\r', '\n']).map_or(text.len(), |it| at + it);
    start..end
}

/// The key at the start of a line that is not indented, and the position after its colon.
pub(super) fn key_of_line(line: &str) -> Option<(&str, usize)> {
    let colon = line.find(':')?;
    let key = &line[..colon];
    let is_key = !key.is_empty() && key.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.'));
    let is_value = line[colon + 1..].chars().next().is_none_or(char::is_whitespace);
    (is_key && is_value).then_some((key, colon + 1))
}

/// The keys of a front matter that are not indented, with their positions.
pub(super) fn keys(text: &str) -> Vec<(String, Range<usize>)> {
    let Some(header) = header(text) else { return Vec::new() };
    let mut at = header.start;
    let mut found = Vec::new();
    for line in text[header].split_inclusive('\n') {
        if let Some((key, _)) = key_of_line(line) {
            found.push((key.to_owned(), at..at + key.len()));
        }
        at += line.len();
    }
    found
}

pub(super) fn spot(text: &str, at: usize) -> Option<Spot> {
    if text.trim_start_matches('\u{feff}').trim().is_empty() {
        return Some(Spot::Empty);
    }
    match header(text) {
        Some(header) if at >= header.start && at <= header.end.max(header.start) => {
            in_header(text, &header, at)
        }
        Some(header) if at < header.start => None,
        _ => in_body(text, at),
    }
}

fn in_header(text: &str, header: &Range<usize>, at: usize) -> Option<Spot> {
    let line = line_around(text, at);
    if line.start >= header.end && !header.is_empty() {
        return None;
    }
    let said = &text[line.clone()];
    let column = at - line.start;
    if let Some((key, value)) = key_of_line(said) {
        if column < value {
            return Some(Spot::Key { word: line.start..line.start + key.len() });
        }
        return value_spot(key, said, value, column).map(|it| moved(it, line.start));
    }
    let indent = said.len() - said.trim_start().len();
    let is_inside = indent > 0 || said.starts_with('-');
    if is_inside {
        let key = key_above(text, header, line.start)?;
        return item_spot(&key, said, indent, column).map(|it| moved(it, line.start));
    }
    let end = said.find(char::is_whitespace).unwrap_or(said.len());
    (column <= end).then(|| Spot::Key { word: line.start..line.start + end })
}

fn moved(spot: Spot, by: usize) -> Spot {
    let word = |it: Range<usize>| it.start + by..it.end + by;
    match spot {
        Spot::Value { key, word: it, list } => Spot::Value { key, word: word(it), list },
        Spot::Nested { key, inner, word: it } => Spot::Nested { key, inner, word: word(it) },
        other => other,
    }
}

fn key_above(text: &str, header: &Range<usize>, line: usize) -> Option<String> {
    // The cursor can be in the first line `---`, before the header.
    let above = text.get(header.start..line)?.lines().rev();
    let mut own = above.filter(|it| !it.starts_with([' ', '\t', '-', '#']) && !it.trim().is_empty());
    own.next().and_then(key_of_line).map(|it| it.0.to_owned())
}

fn value_spot(key: &str, line: &str, value: usize, column: usize) -> Option<Spot> {
    let before = &line[value..column];
    if is_comment(before) {
        return None;
    }
    let key = key.to_owned();
    if let Some(open) = before.rfind(['[', '{']).filter(|open| !before[*open..].contains([']', '}'])) {
        let from = value + before.rfind([',', '[', '{']).map_or(open + 1, |it| it + 1);
        if line[value..].trim_start().starts_with('{') || line[value + open..].starts_with('{') {
            let (inner, start) = line[from..column].split_once(':')?;
            let start = from + inner.len() + 1 + (start.len() - start.trim_start().len());
            let word = word(line, start, column, &[',', '}']);
            return Some(Spot::Nested { key, inner: inner.trim().to_owned(), word });
        }
        return Some(Spot::Value { key, word: word(line, from, column, &[',', ']']), list: List::Flow });
    }
    Some(Spot::Value { key, word: word(line, value, column, &[]), list: List::No })
}

fn is_comment(before: &str) -> bool {
    before.contains(" #")
}

fn item_spot(key: &str, line: &str, indent: usize, column: usize) -> Option<Spot> {
    let key = key.to_owned();
    let (rest, is_item) = match line[indent..].strip_prefix('-') {
        Some(rest) => (indent + 1 + (rest.len() - rest.trim_start().len()), true),
        None => (indent, false),
    };
    if column < rest || is_comment(&line[rest..column]) {
        return (is_item && column > indent).then_some(Spot::Value {
            key,
            word: column..column,
            list: List::Block,
        });
    }
    if let Some((inner, value)) = key_of_line(&line[rest..]) {
        if column < rest + value {
            return None;
        }
        let word = word(line, rest + value, column, &[]);
        return Some(Spot::Nested { key, inner: inner.to_owned(), word });
    }
    is_item.then(|| Spot::Value { key, word: word(line, rest, column, &[]), list: List::Block })
}

/// The word around a column. It begins at `from`, after any blanks and an opening quote. It ends before the first quote,
/// comment or character of `ends` after the column. Blanks at its end are left out.
fn word(line: &str, from: usize, column: usize, ends: &[char]) -> Range<usize> {
    let from = from.min(column);
    let blank = line[from..column].len() - line[from..column].trim_start().len();
    let mut start = from + blank;
    if line[start..column].starts_with(['"', '\'']) {
        start += 1;
    }
    let rest = &line[column..];
    let comment = rest.find(" #").unwrap_or(rest.len());
    let end =
        rest.find(|c: char| ends.contains(&c) || matches!(c, '"' | '\'')).unwrap_or(rest.len()).min(comment);
    start..column + rest[..end].trim_end().len()
}

fn in_body(text: &str, at: usize) -> Option<Spot> {
    let line = line_around(text, at);
    let before = &text[line.start..at];
    let heading = heading_above(text, line.start)?;
    let is_word = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | ':' | '/');
    let start =
        before.len() - before.chars().rev().take_while(|c| is_word(*c)).map(char::len_utf8).sum::<usize>();
    let rest = &text[at..line.end];
    let end = at + rest.find(|c: char| !is_word(c)).unwrap_or(rest.len());
    let word = line.start + start..end;
    if heading.eq_ignore_ascii_case("steps") {
        let open = before.rfind('(')?;
        let is_list = !before[open..].contains(')')
            && before[open + 1..].trim_start().to_ascii_lowercase().starts_with("depends");
        let is_past =
            before[open..].contains([':', ',']) || before[open..].to_ascii_lowercase().contains("on ");
        return (is_list && is_past).then_some(Spot::StepsLine { word });
    }
    (heading.eq_ignore_ascii_case("dependencies") && !before.starts_with('#'))
        .then_some(Spot::Dependencies { word })
}

/// The nearest heading of level 1 to 3 above a line. `None` if its level is 1, or if there is none.
fn heading_above(text: &str, line: usize) -> Option<&str> {
    let above = text[..line]
        .lines()
        .rev()
        .find(|it| it.starts_with("# ") || it.starts_with("## ") || it.starts_with("### "))?;
    let name = above.trim_start_matches('#').trim().trim_end_matches(':');
    above.starts_with("##").then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Describes the spot at the mark `|` of a text, for example as `key <status>` or `value depends Flow <2>`.
    fn said(text: &str) -> String {
        let at = text.find('|').expect("a mark");
        let text = text.replacen('|', "", 1);
        match spot(&text, at) {
            None => "nothing".to_owned(),
            Some(Spot::Empty) => "empty".to_owned(),
            Some(Spot::Key { word }) => format!("key <{}>", &text[word]),
            Some(Spot::Value { key, word, list }) => format!("value {key} {list:?} <{}>", &text[word]),
            Some(Spot::Nested { key, inner, word }) => format!("nested {key}.{inner} <{}>", &text[word]),
            Some(Spot::StepsLine { word }) => format!("steps <{}>", &text[word]),
            Some(Spot::Dependencies { word }) => format!("dependencies <{}>", &text[word]),
        }
    }

    #[track_caller]
    fn check(header: &str, expected: &str) {
        for text in [
            format!("---\n{header}\n---\n# x\n"),
            format!("---\n{header}"),
            format!("---\r\n{header}\r\n---\r\n"),
        ] {
            assert_eq!(said(&text), expected, "{text:?}");
        }
    }

    #[test]
    fn the_first_line_of_a_front_matter_has_nothing_to_complete() {
        for text in ["-|", "--|", "---|", "|---", "---|\n", "--- |", "---|\r\n"] {
            assert!(!said(text).contains('<'), "{text:?}: {}", said(text));
        }
    }

    #[test]
    fn the_front_matter_says_what_can_be_written() {
        check("status: comp|", "value status No <comp>");
        check("status: |", "value status No <>");
        check("status: pe|nding # why", "value status No <pending>");
        check("status: pending # wh|y", "nothing");
        check("sta|", "key <sta>");
        check("sta|tus: x", "key <status>");
        check("|", "key <>");
        check("depends: [1, |]", "value depends Flow <>");
        check("depends: [1, st|ep-2, 3]", "value depends Flow <step-2>");
        check("depends: [\"p:|1\"]", "value depends Flow <p:1>");
        check("depends: [1] |", "value depends No <[1] >");
        check("depends:\n  - 1\n  - 2|", "value depends Block <2>");
        check("depends:\n  - |", "value depends Block <>");
        check("depends:\n- a|", "value depends Block <a>");
        check("attempts:\n  - at: x\n    by: bo|", "nested attempts.by <bo>");
        check("attempts:\n  - at: x\n    by: |", "nested attempts.by <>");
        check("claim: {id: \"h\", by: |}", "nested claim.by <>");
        check("broken: [\nsta|", "key <sta>");
        check("a: b: c\nstatus: x|", "value status No <x>");
        check("text: |\n  status: no", "value text No <>");
    }

    #[test]
    fn the_body_says_where_steps_are_named() {
        let body = |it: &str| said(&format!("---\nstatus: active\n---\n# x\n{it}\n"));
        assert_eq!(body("prose st|ep"), "nothing");
        assert_eq!(body("## Steps\n- step-2: B (depends: step-|)"), "steps <step->");
        assert_eq!(body("## Steps\n- step-2: B (depends: step-1, |)"), "steps <>");
        assert_eq!(body("## Steps\n- step-2: B (more|)"), "nothing");
        assert_eq!(body("## Dependencies\n- st|ep-1"), "dependencies <step-1>");
        assert_eq!(body("## Dependencies:\n|"), "dependencies <>");
        assert_eq!(body("## Dependencies\n## Other\n|"), "nothing");
        assert_eq!(said("|"), "empty");
        assert_eq!(said("\n |\n"), "empty");
        assert_eq!(said("-|--\nstatus: x\n---\n"), "nothing");
    }

    #[test]
    fn keys_are_found_in_broken_texts() {
        let found: Vec<_> = keys("---\nstatus: [\ntitle: x: y\n  by: no\n- no: x\n---\n")
            .into_iter()
            .map(|it| it.0)
            .collect();
        assert_eq!(found, ["status", "title"]);
        assert!(keys("# no").is_empty());
    }

    #[test]
    fn every_place_of_any_text_can_be_asked_for() {
        let pieces =
            ["---\n", "a: [", "- é: {", "]", "\r\n", "## Steps\n", "(depends: ", "\u{feff}", "#", "\"", "  "];
        for first in pieces {
            for second in pieces {
                for third in pieces {
                    let text = format!("---\n{first}{second}{third}");
                    for at in (0..=text.len()).filter(|it| text.is_char_boundary(*it)) {
                        spot(&text, at);
                        spot(&text[4..], at.saturating_sub(4).min(text.len() - 4));
                    }
                }
            }
        }
    }
}
