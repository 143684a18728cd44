//! The lists that only grow: attempts, notes and confirmations; and the lists that are sets.

use serde_json::Value;

use crate::plan::change::{remove, set};
use crate::plan::time::Time;
use crate::text::header_edit::{self, Change, NewValue};
use crate::text::yaml::{Kind, View};

/// The lists whose entries are added and never changed.
pub(super) const LOGS: [&str; 3] = ["attempts", "notes", "confirmations"];

/// The lists whose order has no meaning.
pub(super) const SETS: [&str; 6] = ["depends", "tags", "goals", "success_criteria", "files", "touches"];

/// An entry of such a list: its content, and its text in the file.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub(super) value: Value,
    pub(super) new: NewValue,
}

impl Entry {
    pub(super) fn text(&self, key: &str) -> Option<&str> {
        self.value.get(key)?.as_str()
    }

    /// A short text for messages: the time, the author and the content, or a plain text, cut to 120 characters.
    pub(super) fn brief(&self) -> String {
        let parts = ["at", "by", "outcome", "phase", "text"].iter().filter_map(|it| self.text(it));
        let brief: Vec<&str> = parts.chain(self.value.as_str()).collect();
        brief.join(" ").chars().take(120).collect()
    }

    pub(super) fn at(&self) -> Option<Time> {
        self.text("at")?.parse().ok()
    }
}

/// The entries of a list; `None` if the value is not a list. A missing list has no entries.
pub(super) fn read(list: Option<View<'_>>) -> Option<Vec<Entry>> {
    let Some(list) = list.filter(|it| !it.is_null()) else { return Some(Vec::new()) };
    if list.kind() != Kind::List {
        return None;
    }
    list.items().map(|it| Some(Entry { value: it.to_json().ok()?, new: as_written(it) })).collect()
}

/// The item's own text, dedented; its value if that text is not one value.
fn as_written(item: View<'_>) -> NewValue {
    let (source, span) = (item.source(), item.outer_span());
    let start = source[..span.start].rfind('\n').map_or(0, |it| it + 1);
    let typed = NewValue::Yaml(format!("{}{}", " ".repeat(span.start - start), &source[span]));
    let is_one_value = header_edit::edit(b"", &[set("entry", typed.clone())], &[]).is_ok();
    if is_one_value { typed } else { NewValue::of_view(item) }
}

/// The entries of `of` that `among` lacks. Equal entries are counted: if `of` has two and `among` one, one is missing.
pub(super) fn missing<'a>(of: &'a [Entry], among: &[Entry]) -> Vec<&'a Entry> {
    let mut left: Vec<&Value> = among.iter().map(|it| &it.value).collect();
    let is_new = |it: &&Entry| match left.iter().position(|value| **value == it.value) {
        Some(found) => {
            left.swap_remove(found);
            false
        }
        None => true,
    };
    of.iter().filter(is_new).collect()
}

/// Adds entries to a list of a file, each before the first of the file's own entries that is later.
///
/// In a list in brackets, the new entries stay at the end. `None` if the list cannot be edited.
pub(super) fn add(file: &[u8], key: &str, own: &[Entry], new: &[&Entry], order: &[&str]) -> Option<Vec<u8>> {
    let append = |it: &&Entry| Change::Append { key: key.to_owned(), item: it.new.clone() };
    let changes: Vec<Change> = new.iter().map(append).collect();
    let file = header_edit::edit(file, &changes, order).ok()?;
    let mut places: Vec<usize> = (0..own.len()).collect();
    for (nth, entry) in new.iter().enumerate() {
        let is_later = |it: &usize| own.get(*it).and_then(Entry::at) > entry.at();
        let before = entry.at().and_then(|_| places.iter().position(is_later));
        places.insert(before.unwrap_or(places.len()), own.len() + nth);
    }
    Some(header_edit::reordered(&file, key, &places).unwrap_or(file))
}

/// The changes that turn the list of OURS into the merged set; `None` if the value of a version is not a list.
pub(super) fn set_changes(
    key: &str,
    base: Option<View<'_>>,
    ours: Option<View<'_>>,
    theirs: Option<View<'_>>,
) -> Option<Vec<Change>> {
    let name = |it: &Entry| named(key, &it.value);
    let [base, ours, theirs] = [read(base)?, read(ours)?, read(theirs)?];
    let [in_base, in_ours, in_theirs] =
        [&base, &ours, &theirs].map(|it| it.iter().map(name).collect::<Vec<_>>());
    let is_gone = |it: &String| in_base.contains(it) && !in_theirs.contains(it);
    let gone: Vec<usize> = (0..ours.len()).filter(|nth| is_gone(&in_ours[*nth])).collect();
    let mut changes: Vec<Change> =
        gone.iter().rev().map(|index| Change::RemoveItem { key: key.to_owned(), index: *index }).collect();
    let mut added = Vec::new();
    for (entry, name) in theirs.iter().zip(&in_theirs) {
        if !in_base.contains(name) && !in_ours.contains(name) && !added.contains(&name) {
            added.push(name);
            changes.push(Change::Append { key: key.to_owned(), item: entry.new.clone() });
        }
    }
    if !gone.is_empty()
        && gone.len() == ours.len()
        && added.is_empty()
        && theirs.is_empty()
        && key != "depends"
    {
        return Some(vec![remove(key)]);
    }
    Some(changes)
}

/// An item's name: `step-2` and `2` are one dependency.
fn named(key: &str, value: &Value) -> String {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    if key != "depends" {
        return text;
    }
    let text = text.trim().to_lowercase();
    text.strip_prefix("step-").unwrap_or(&text).to_owned()
}
