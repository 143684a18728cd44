//! A file while it is edited: its bytes and its parsed front matter.

use super::refusal::{BUG, FILE_FULL, LAYOUT};
use super::render::Renderer;
use super::sheet::{Reach, Sheet, Splice};
use super::{Change, EditError, entries, insert, items, list, remove, replace, verify};
use crate::text::front_matter::{self, Header, MAX_FILE, MAX_FRONT_MATTER};
use crate::text::yaml::{self, Tree, View};
use std::ops::Range;

pub(super) struct Page {
    bytes: Vec<u8>,
    header: Option<(Range<usize>, Tree)>,
}

impl Page {
    /// Parses the front matter of a file, and rejects a file that cannot be edited.
    pub(super) fn open(bytes: Vec<u8>) -> Result<Self, EditError> {
        if bytes.len() > MAX_FILE {
            return Err(EditError::new(
                "too-large",
                MAX_FILE,
                format!("the file has more than {MAX_FILE} bytes"),
            ));
        }
        let range = match front_matter::split(&bytes).header {
            Header::Present { yaml, .. } => yaml,
            Header::Absent => return Ok(Self { bytes, header: None }),
            Header::Unclosed => {
                return Err(EditError::new("front-matter-unclosed", 0, "no line closes the front matter"));
            }
        };
        let text = std::str::from_utf8(&bytes[range.clone()]).map_err(|it| {
            EditError::new("not-utf8", range.start + it.valid_up_to(), "the front matter is not UTF-8")
        })?;
        let tree = yaml::parse(text).map_err(|it| EditError::yaml(it, range.start))?;
        if tree.has_document_marks() {
            let reason = "a line of the front matter begins or ends a YAML document";
            return Err(EditError::new("front-matter-invalid", range.start, reason));
        }
        if let Some(at) = lone_carriage_return(text) {
            let reason =
                "a line ends with a carriage return alone, which only some programs treat as a line end";
            return Err(EditError::new(LAYOUT, range.start + at, reason));
        }
        Ok(Self { bytes, header: Some((range, tree)) })
    }

    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    pub(super) fn root(&self) -> Option<View<'_>> {
        self.header.as_ref().map(|(_, tree)| tree.root())
    }

    /// The front matter, and where it begins in the file.
    pub(super) fn sheet(&self) -> Option<(Sheet<'_>, usize)> {
        let (range, tree) = self.header.as_ref()?;
        Some((Sheet::new(&self.bytes, range, tree, Reach::Narrow), range.start))
    }

    /// Applies one change and verifies the result.
    pub(super) fn apply(self, change: &Change, order: &[&str]) -> Result<Self, EditError> {
        check_values(change)?;
        let mut edited = self.attempt(change, order, Reach::Narrow);
        if edited.as_ref().is_err_and(|it| it.code == BUG) {
            edited = self.attempt(change, order, Reach::Wide);
        }
        let is_set = matches!(change, Change::Set { .. });
        if is_set && edited.as_ref().is_err_and(|it| [BUG, LAYOUT].contains(&it.code)) {
            edited = self.attempt(change, order, Reach::Whole);
        }
        Ok(edited?.unwrap_or(self))
    }

    /// Returns the verified page after a change; `None` if the change has no effect.
    fn attempt(&self, change: &Change, order: &[&str], reach: Reach) -> Result<Option<Self>, EditError> {
        let bytes = match &self.header {
            None => create(&self.bytes, change)?,
            Some((range, tree)) => {
                let sheet = Sheet::new(&self.bytes, range, tree, reach);
                let splices = plan(&sheet, change, order).map_err(|it| it.shifted(range.start))?;
                if splices.is_empty() { None } else { Some(spliced(&self.bytes, range.start, splices)?) }
            }
        };
        let Some(bytes) = bytes else { return Ok(None) };
        let after = Self::open(within_limits(bytes)?).map_err(|it| {
            let reason = format!("the edit would have broken the front matter: {}", it.reason);
            if it.code == "too-large" { it } else { EditError::new(BUG, it.at, reason) }
        })?;
        verify::check((&self.bytes, self.root()), (&after.bytes, after.root()), change)?;
        Ok(Some(after))
    }
}

fn check_values(change: &Change) -> Result<(), EditError> {
    super::value::check_key(change.key())?;
    if let Change::SetEntries { entries, .. } = change {
        entries::new_map(entries).check()?;
    }
    change.value().map_or(Ok(()), super::NewValue::check)
}

fn plan(sheet: &Sheet<'_>, change: &Change, order: &[&str]) -> Result<Vec<Splice>, EditError> {
    match change {
        Change::Set { key, value } => match sheet.root().find_entry(key) {
            Some((_, old)) if value.matches(old) => Ok(Vec::new()),
            Some(entry) => match items::set(sheet, entry, key, value)? {
                Some(splices) => Ok(splices),
                None => replace::entry(sheet, entry, value),
            },
            None if sheet.root().get(key).is_some_and(|it| value.matches(it)) => Ok(Vec::new()),
            None => insert::key(sheet, key, value, order),
        },
        Change::Append { key, item } => list::append(sheet, key, item, order),
        Change::Remove { key } => remove::key(sheet, key),
        Change::SetEntries { key, entries } => entries::set(sheet, key, entries, order),
        Change::SetItem { key, index, value } => list::set_item(sheet, key, *index, value),
        Change::RemoveItem { key, index } => list::remove_item(sheet, key, *index),
    }
}

/// Adds a front matter to a file that has none. The new lines end as the file's first line does, or with LF if that line
/// has no ending.
fn create(bytes: &[u8], change: &Change) -> Result<Option<Vec<u8>>, EditError> {
    let (list, map);
    let (key, value) = match change {
        Change::Set { key, value } => (key, value),
        Change::Append { key, item } => {
            list = super::NewValue::List(vec![item.clone()]);
            (key, &list)
        }
        Change::SetEntries { key, entries } => {
            map = entries::new_map(entries);
            (key, &map)
        }
        Change::Remove { .. } => return Ok(None),
        Change::SetItem { .. } | Change::RemoveItem { .. } => return Err(list::no_such_item(0)),
    };
    if let Err(error) = std::str::from_utf8(bytes) {
        return Err(EditError::new("not-utf8", error.valid_up_to(), "the file is not UTF-8"));
    }
    let start = front_matter::split(bytes).body_start();
    let body = &bytes[start..];
    if body.starts_with(b"<<<<<<< ") {
        return Err(EditError::new("conflict-markers", start, "a merge conflict is not resolved"));
    }
    let eol = match body.iter().position(|&it| it == b'\n') {
        Some(at) if body[..at].ends_with(b"\r") => "\r\n",
        _ => "\n",
    };
    let entry = Renderer { eol, ..Renderer::plain() }.entry(key, value, 0);
    let block = format!("---{eol}{entry}{eol}---{eol}");
    Ok(Some([&bytes[..start], block.as_bytes(), body].concat()))
}

fn lone_carriage_return(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    (0..bytes.len()).find(|&it| bytes[it] == b'\r' && bytes.get(it + 1) != Some(&b'\n'))
}

/// Applies splices. Splices that overlap are an error.
fn spliced(bytes: &[u8], offset: usize, mut splices: Vec<Splice>) -> Result<Vec<u8>, EditError> {
    splices.sort_by_key(|it| (it.range.start, it.range.end));
    let mut out = Vec::with_capacity(bytes.len() + splices.iter().map(|it| it.text.len()).sum::<usize>());
    let mut at = 0;
    for splice in splices {
        let (start, end) = (splice.range.start + offset, splice.range.end + offset);
        let kept = bytes.get(at..start).filter(|_| end >= start && end <= bytes.len());
        out.extend_from_slice(
            kept.ok_or_else(|| EditError::new(BUG, start, "two parts of the edit overlap"))?,
        );
        out.extend_from_slice(splice.text.as_bytes());
        at = end;
    }
    out.extend_from_slice(&bytes[at..]);
    Ok(out)
}

pub(super) fn within_limits(bytes: Vec<u8>) -> Result<Vec<u8>, EditError> {
    let yaml = front_matter::split(&bytes).yaml().map_or(0, <[u8]>::len);
    let (limit, what) = match (bytes.len() > MAX_FILE, yaml > MAX_FRONT_MATTER) {
        (true, _) => (MAX_FILE, "file"),
        (_, true) => (MAX_FRONT_MATTER, "front matter"),
        _ => return Ok(bytes),
    };
    Err(EditError::new(FILE_FULL, 0, format!("the {what} would have more than {limit} bytes")))
}
