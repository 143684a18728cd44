//! Merges lists: those to which entries are only added (attempts, notes and confirmations), and those that are sets.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use crate::plan::change::remove;
use crate::plan::time::Time;
use crate::text::header_edit::{self, Change, NewValue, Part, Written};
use crate::text::yaml::{Kind, View};

/// The lists whose entries are added and never changed.
pub(super) const LOGS: [&str; 3] = ["attempts", "notes", "confirmations"];

/// The lists whose order has no meaning.
pub(super) const SETS: [&str; 6] = ["depends", "tags", "goals", "success_criteria", "files", "touches"];

/// An entry of a list: its content, and its text in the file.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub(super) value: Value,
    pub(super) new: NewValue,
    pub(super) written: Written,
}

impl Entry {
    pub(super) fn text(&self, key: &str) -> Option<&str> {
        self.value.get(key)?.as_str()
    }

    /// A text for messages, at most 120 characters long: the time, the author and the content, or the whole entry if it is
    /// a plain text.
    pub(super) fn brief(&self) -> String {
        let parts = ["at", "by", "outcome", "phase", "text"].iter().filter_map(|it| self.text(it));
        let brief: Vec<&str> = parts.chain(self.value.as_str()).collect();
        brief.join(" ").chars().take(120).collect()
    }

    pub(super) fn at(&self) -> Option<Time> {
        self.text("at")?.parse().ok()
    }

    pub(super) fn without_comments(self) -> Self {
        Self { written: Written::default(), ..self }
    }

    fn part(&self) -> Part<'_> {
        Part::New(&self.new, &self.written)
    }

    fn append(&self, key: &str) -> Change {
        Change::Append { key: key.to_owned(), item: self.new.clone() }
    }
}

/// The entries of a list. A missing list has no entries. `None`: the value is not a list, or an entry cannot be converted to
/// JSON.
pub(super) fn read(list: Option<View<'_>>) -> Option<Vec<Entry>> {
    let Some(list) = list.filter(|it| !it.is_null()) else { return Some(Vec::new()) };
    if list.kind() != Kind::List {
        return None;
    }
    let entry = |(it, written): (View<'_>, Written)| {
        Some(Entry { value: it.to_json().ok()?, new: NewValue::as_written(it), written })
    };
    list.items().zip(header_edit::written(list)).map(entry).collect()
}

/// Of the comments above the first entry, removes those that are also in `base`, another version of the list. They belong
/// to the list, not to the entry.
pub(super) fn drop_heading(entries: &mut [Entry], base: &[u8]) {
    if let Some(first) = entries.first_mut() {
        first.written.drop_above(&String::from_utf8_lossy(base));
    }
}

/// The entries of `of` that `among` lacks. Equal entries are counted: if `of` has two and `among` one, one is missing.
pub(super) fn missing<'a>(of: &'a [Entry], among: &[Entry]) -> Vec<&'a Entry> {
    let mut left: HashMap<&Value, usize> = HashMap::new();
    for entry in among {
        *left.entry(&entry.value).or_default() += 1;
    }
    let is_new = |it: &&Entry| match left.get_mut(&it.value).filter(|count| **count > 0) {
        Some(count) => {
            *count -= 1;
            false
        }
        None => true,
    };
    of.iter().filter(is_new).collect()
}

/// Adds entries to a list of a file. Each one is inserted before the file's first entry with a later time. If there is no
/// such entry, or the new entry has no time, it is inserted at the end.
///
/// In a list in brackets, the new entries are appended. `None`: the list cannot be edited, or the comments of the new
/// entries cannot be written into it.
pub(super) fn add(file: &[u8], key: &str, own: &[Entry], new: &[&Entry], order: &[&str]) -> Option<Vec<u8>> {
    // For each entry, the latest time of the list up to that entry. These times ascend, so the binary search below finds
    // the first entry that is later than a given time.
    let mut latest = Vec::with_capacity(own.len());
    for entry in own {
        latest.push(entry.at().max(latest.last().copied().flatten()));
    }
    let place = |it: &&Entry| match it.at() {
        Some(at) => latest.partition_point(|it| it.is_none_or(|it| it <= at)),
        None => own.len(),
    };
    let mut placed: Vec<(usize, &Entry)> = new.iter().map(|it| (place(it), *it)).collect();
    placed.sort_by_key(|it| it.0);
    let mut placed = placed.into_iter().peekable();
    let mut parts = Vec::with_capacity(own.len() + new.len());
    for nth in 0..=own.len() {
        while let Some((_, entry)) = placed.next_if(|it| it.0 == nth) {
            parts.push(entry.part());
        }
        parts.extend((nth < own.len()).then_some(Part::Own(nth)));
    }
    let changes: Vec<Change> = new.iter().map(|it| it.append(key)).collect();
    edited(file, key, &parts, &changes, order)
}

/// Writes a list that consists of `parts`. If that is not possible, as in a list in brackets, makes `changes` instead. These
/// contain no comments, so this is done only if the new entries have none.
///
/// `None`: comments of new entries cannot be written, or the list cannot be edited.
fn edited(file: &[u8], key: &str, parts: &[Part<'_>], changes: &[Change], order: &[&str]) -> Option<Vec<u8>> {
    let is_new = |it: &Part<'_>| matches!(it, Part::New(..));
    let arranged = if parts.iter().all(is_new) {
        // The list is missing or empty, but `arranged` needs a list with an item. So the first new item is appended.
        // `Part::Gone` removes it again, because `parts` contains the same item with its comments.
        let first = changes.iter().find(|it| matches!(it, Change::Append { .. }));
        let file = first.and_then(|it| header_edit::edit(file, std::slice::from_ref(it), order).ok());
        let parts: Vec<_> = parts.iter().copied().chain([Part::Gone(0)]).collect();
        file.and_then(|it| header_edit::arranged(&it, key, &parts))
    } else {
        header_edit::arranged(file, key, parts)
    };
    let is_lost = |it: &Part<'_>| matches!(it, Part::New(_, written) if written.has_comments());
    let plain = || header_edit::edit(file, changes, order).ok();
    arranged.or_else(|| (!parts.iter().any(is_lost)).then(plain).flatten())
}

/// Returns OURS with the merged set of a key. `None`: the value of a version is not a list, the list of OURS cannot be
/// edited, or the comments of the new items cannot be written into it.
///
/// `file` is the front matter of OURS. `heading` is the text of the key in the base, for [`drop_heading`].
pub(super) fn set_of(
    file: &[u8],
    key: &str,
    [base, ours, theirs]: [Option<View<'_>>; 3],
    heading: &[u8],
    order: &[&str],
) -> Option<Vec<u8>> {
    let (base, ours, mut theirs) = (read(base)?, read(ours)?, read(theirs)?);
    drop_heading(&mut theirs, heading);
    let name = |it: &Entry| named(key, &it.value);
    let in_theirs: Vec<String> = theirs.iter().map(name).collect();
    let in_ours: Vec<String> = ours.iter().map(name).collect();
    let in_base: HashSet<String> = base.iter().map(name).collect();
    let has_theirs: HashSet<&String> = in_theirs.iter().collect();
    let is_gone = |it: &String| in_base.contains(it) && !has_theirs.contains(it);
    let gone: Vec<bool> = in_ours.iter().map(is_gone).collect();
    let part = |(nth, is_gone): (usize, &bool)| if *is_gone { Part::Gone(nth) } else { Part::Own(nth) };
    let mut parts: Vec<Part<'_>> = gone.iter().enumerate().map(part).collect();
    let removal = |index| Change::RemoveItem { key: key.to_owned(), index };
    let mut changes: Vec<Change> = (0..gone.len()).rev().filter(|nth| gone[*nth]).map(removal).collect();
    let mut known: HashSet<&String> = in_ours.iter().collect();
    for (entry, name) in theirs.iter().zip(&in_theirs) {
        if !in_base.contains(name) && known.insert(name) {
            parts.push(entry.part());
            changes.push(entry.append(key));
        }
    }
    let is_emptied = !gone.is_empty() && gone.iter().all(|it| *it) && parts.len() == gone.len();
    if is_emptied && theirs.is_empty() && key != "depends" {
        changes = vec![remove(key)];
    }
    let has_items = parts.iter().any(|it| !matches!(it, Part::Gone(_)));
    match has_items {
        true => edited(file, key, &parts, &changes, order),
        false => header_edit::edit(file, &changes, order).ok(),
    }
}

/// The text by which items are compared. `step-2` and `2` are the same dependency.
fn named(key: &str, value: &Value) -> String {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    if key != "depends" {
        return text;
    }
    let text = text.trim().to_lowercase();
    text.strip_prefix("step-").unwrap_or(&text).to_owned()
}
