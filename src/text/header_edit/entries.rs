//! Sets and removes entries of a mapping below a top-level key.
//!
//! The lines of the mapping are edited like a front matter of their own, so its other entries and its comments stay as they
//! are written.

use super::list::{refuse_merged, refuse_shared};
use super::refusal::LAYOUT;
use super::sheet::{Sheet, Splice};
use super::{Change, EditError, NewValue, edit, insert, replace};
use crate::text::front_matter;
use crate::text::yaml::{Kind, Style, View};

/// A key, and its new value; `None` removes the entry.
pub type EntryChange = (String, Option<NewValue>);

pub(super) fn set(
    sheet: &Sheet<'_>,
    key: &str,
    entries: &[EntryChange],
    order: &[&str],
) -> Result<Vec<Splice>, EditError> {
    refuse_merged(sheet.root(), key)?;
    let Some(entry) = sheet.root().find_entry(key) else {
        return insert::key(sheet, key, &new_map(entries), order);
    };
    refuse_shared(sheet, entry.1, key)?;
    match entry.1.kind() == Kind::Map && !entry.1.is_empty() {
        true => within(sheet, entry.1, entries),
        false => replace::entry(sheet, entry, &new_map(entries)),
    }
}

/// The mapping if there is none yet.
pub(super) fn new_map(entries: &[EntryChange]) -> NewValue {
    NewValue::Map(entries.iter().filter_map(|(key, value)| Some((key.clone(), value.clone()?))).collect())
}

/// Edits the mapping `old`.
fn within(sheet: &Sheet<'_>, old: View<'_>, entries: &[EntryChange]) -> Result<Vec<Splice>, EditError> {
    sheet.guard_anchors(&old.outer_span())?;
    let (lines, span) = (sheet.lines, old.span());
    let refused = |it: EditError| EditError::new(LAYOUT, span.start, it.reason);
    let is_flow = old.style() == Style::Flow;
    if !is_flow && !lines.is_first_on_line(span.start) {
        return Err(EditError::new(LAYOUT, span.start, "the mapping does not begin on a line of its own"));
    }
    let range = if is_flow { span.clone() } else { lines.start(span.start)..end_of_lines(sheet, span.end) };
    let (text, eol) = (&sheet.text()[range.clone()], lines.eol_of(span.start));
    // The last line of the front matter may lack its line ending here.
    let end = if text.ends_with('\n') { "" } else { eol };
    let file = format!("---{eol}{text}{end}---{eol}");
    let change = |(key, value): &EntryChange| match value.clone() {
        Some(value) => Change::Set { key: key.clone(), value },
        None => Change::Remove { key: key.clone() },
    };
    // New entries come first: without any entry, the indentation of the mapping would be lost.
    let (set, removed): (Vec<_>, Vec<_>) = entries.iter().partition(|it| it.1.is_some());
    let changes: Vec<_> = set.into_iter().chain(removed).map(change).collect();
    let file = edit(file.as_bytes(), &changes, &[]).map_err(refused)?;
    let edited = front_matter::split(&file).yaml().and_then(|it| std::str::from_utf8(it).ok());
    let edited = edited.unwrap_or_default();
    let edited = edited.strip_suffix(end).filter(|_| !end.is_empty()).unwrap_or(edited);
    Ok(if edited == text { Vec::new() } else { vec![Splice { range, text: edited.to_owned() }] })
}

/// The end of the last line of a mapping, and of the empty lines below it, which can be part of a block scalar.
fn end_of_lines(sheet: &Sheet<'_>, end: usize) -> usize {
    let lines = sheet.lines;
    let mut at = if end > 0 && sheet.text()[..end].ends_with('\n') { end } else { lines.end(end) };
    while at < sheet.text().len() && lines.after_blanks(at) == lines.text_end(at) {
        at = lines.end(at);
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    const WRITTEN: &str = "---
status: pending
metadata: # of the shop
  # A comment.
  big:   123456789012345678901
  version: 1.50 # why
  oct: 007
  date: 2026-11-21
  sq: 'it''s'
  flow: {a: 1,   b: [x,  y]}
  deep:
      one: 1

      two: >-
        a
        b
attempts:
  - at: 2026-01-01T00:00:00Z
---
# One
";

    fn edited(file: &str, entries: &[(&str, Option<serde_json::Value>)]) -> Result<String, EditError> {
        let of = |(key, value): &(&str, Option<serde_json::Value>)| {
            ((*key).to_owned(), value.as_ref().map(NewValue::of_json))
        };
        let entries = entries.iter().map(of).collect();
        let change = Change::SetEntries { key: "metadata".to_owned(), entries };
        edit(file.as_bytes(), &[change], &["status", "metadata"]).map(|it| String::from_utf8(it).unwrap())
    }

    #[test]
    fn other_entries_and_comments_keep_their_bytes() {
        let with = |from: &str, to: &str| {
            assert!(WRITTEN.contains(from), "{from}");
            WRITTEN.replacen(from, to, 1)
        };
        let last = "        a\n        b\n";
        let added = format!("{last}  new: 1\n");
        let table = [
            (("new", Some(1.into())), with(last, &added)),
            (("version", Some("2".into())), with("1.50", "\"2\"")),
            (("oct", None), with("  oct: 007\n", "")),
            (("flow", Some(true.into())), with("{a: 1,   b: [x,  y]}", "true")),
            (("missing", None), WRITTEN.to_owned()),
        ];
        for (change, expected) in table {
            assert_eq!(edited(WRITTEN, std::slice::from_ref(&change)).unwrap(), expected, "{change:?}");
            let (crlf, expected) = (WRITTEN.replace('\n', "\r\n"), expected.replace('\n', "\r\n"));
            assert_eq!(edited(&crlf, std::slice::from_ref(&change)).unwrap(), expected, "{change:?}");
        }
    }

    #[test]
    fn every_layout_of_a_mapping_is_edited() {
        let only = "---\nmetadata:\n    a: 1\n---\n";
        let replaced = edited(only, &[("a", None), ("c", Some(1.into()))]).unwrap();
        assert_eq!(replaced, only.replace("a: 1", "c: 1"));
        let table = [
            ("metadata: {a: 1,  b: x}\n", "metadata: {a: 1,  b: x, c: 1}\n"),
            ("metadata: {a: 1,\n  b: x } # why\n", "metadata: {a: 1,\n  b: x, c: 1 } # why\n"),
            ("metadata:\n    a: 1\n", "metadata:\n    a: 1\n    c: 1\n"),
            ("metadata:\n  a: |+\n    text\n\n", "metadata:\n  a: |+\n    text\n\n  c: 1\n"),
            ("metadata:\n", "metadata:\n  c: 1\n"),
            ("metadata: {}\n", "metadata:\n  c: 1\n"),
            ("status: pending\n", "status: pending\nmetadata:\n  c: 1\n"),
            ("{status: pending, metadata: {a: 1}}\n", "{status: pending, metadata: {a: 1, c: 1}}\n"),
        ];
        for (before, after) in table {
            let [before, after] = [before, after].map(|it| format!("---\n{it}---\n# One\n"));
            assert_eq!(edited(&before, &[("c", Some(1.into()))]).unwrap(), after);
        }
        assert_eq!(
            edited("# One\n", &[("c", Some(1.into()))]).unwrap(),
            "---\nmetadata:\n  c: 1\n---\n# One\n"
        );
    }

    #[test]
    fn a_mapping_that_depends_on_the_rest_of_the_file_is_refused() {
        for (yaml, code) in [
            ("a: &a {x: 1}\nmetadata: *a\n", super::super::refusal::ALIAS),
            ("a: &a 1\nmetadata:\n  b: *a\n", LAYOUT),
            ("metadata:\n  a: &a 1\nb: *a\n", super::super::refusal::ANCHOR_IN_USE),
        ] {
            let error = edited(&format!("---\n{yaml}---\n"), &[("c", Some(1.into()))]).unwrap_err();
            assert_eq!((error.code, error.by_hand.contains("`metadata`")), (code, true), "{yaml}");
        }
    }
}
