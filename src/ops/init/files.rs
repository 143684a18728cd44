//! The files that `init` changes. Each one is read once and changed in memory. All are written at the end, so a refusal
//! always comes before the first write.
//!
//! If two paths lead to the same file, because one is a symbolic link, the changes for both paths are made to the same text.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::agents::{Agent, BLOCK};
use crate::api::error::Error;
use crate::disk::Project;
use crate::text::json_entry::{Entry, EntryState, NotJson};
use crate::text::line_index::{self, Place};
use crate::text::marked_block::{self, Marks, Unpaired};
use crate::text::seal;

/// The reason that is reported if an entry stays because the user or another program has changed it.
fn other(entry: &Entry<'_>) -> String {
    format!("its entry `{}` differs from the one that `init` writes", entry.key)
}

/// What happened to a file, or would happen in a dry run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileReport {
    /// The requested path, relative to the project's root.
    pub path: String,
    pub did: Did,
    pub why: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Did {
    Made,
    Changed,
    Removed,
    /// Left alone, because the file differs from what planwatch writes, or because the plans directory is not empty.
    Kept,
    /// No change was needed.
    Nothing,
}

impl Did {
    pub fn word(self) -> &'static str {
        match self {
            Self::Made => "made",
            Self::Changed => "changed",
            Self::Removed => "removed",
            Self::Kept => "kept",
            Self::Nothing => "unchanged",
        }
    }
}

#[derive(Debug)]
pub(super) struct File {
    path: String,
    pub(super) real: PathBuf,
    pub(super) before: Option<Vec<u8>>,
    pub(super) now: Option<Vec<u8>>,
    kept: Option<String>,
}

impl File {
    /// The requested path, relative to the project's root. It may lead through symbolic links.
    pub(super) fn path(&self) -> &str {
        &self.path
    }

    pub(super) fn is_changed(&self) -> bool {
        self.before != self.now
    }

    pub(super) fn report(&self) -> FileReport {
        let did = match (&self.before, &self.now) {
            (before, now) if before == now && self.kept.is_some() => Did::Kept,
            (before, now) if before == now => Did::Nothing,
            (None, _) => Did::Made,
            (_, None) => Did::Removed,
            _ => Did::Changed,
        };
        FileReport { path: self.path.clone(), did, why: self.kept.clone() }
    }
}

/// All requested files, in the order of the requests.
pub(super) struct Files<'a> {
    project: &'a Project,
    all: Vec<File>,
    places: BTreeMap<PathBuf, usize>,
}

const CHANGED: &str = "it was changed after planwatch wrote it";

impl<'a> Files<'a> {
    pub(super) fn new(project: &'a Project) -> Self {
        Self { project, all: Vec::new(), places: BTreeMap::new() }
    }

    pub(super) fn into_all(self) -> Vec<File> {
        self.all
    }

    fn file(&mut self, path: &str) -> Result<&mut File, Error> {
        let real = self.project.place(Path::new(path))?;
        let at = match self.places.get(&real) {
            Some(at) => *at,
            None => {
                let before = self.project.read(&real)?;
                self.places.insert(real.clone(), self.all.len());
                let now = before.clone();
                self.all.push(File { path: path.to_owned(), real, before, now, kept: None });
                self.all.len() - 1
            }
        };
        self.all.get_mut(at).ok_or_else(|| bug(path))
    }

    /// Writes a file that is planwatch's own, unless it was edited.
    pub(super) fn write_own(&mut self, path: &str, text: &str) -> Result<(), Error> {
        let file = self.file(path)?;
        match text_of(file)? {
            Some(now) if now.replace("\r\n", "\n") == text => {}
            Some(now) if !seal::is_sealed(&now) => file.kept = Some(CHANGED.to_owned()),
            _ => file.now = Some(text.as_bytes().to_vec()),
        }
        Ok(())
    }

    /// Removes a file of planwatch's own, unless it was edited.
    pub(super) fn remove_own(&mut self, path: &str) -> Result<(), Error> {
        let file = self.file(path)?;
        match text_of(file)? {
            Some(now) if !seal::is_sealed(&now) => file.kept = Some(CHANGED.to_owned()),
            _ => file.now = None,
        }
        Ok(())
    }

    /// Puts the block for an agent into a file. An existing block is brought up to date and gets the agent's name. A block
    /// that was edited stays as it is.
    pub(super) fn write_block(&mut self, path: &str, agent: Agent) -> Result<(), Error> {
        let file = self.file(path)?;
        let text = text_of(file)?;
        let found = match &text {
            Some(text) => marked_block::find(text).map_err(|it| unpaired(path, &it))?,
            None => None,
        };
        let new = match (&text, found) {
            (Some(_), Some(block)) if !block.is_sealed => {
                file.kept = Some("planwatch's lines in it were changed".to_owned());
                return Ok(());
            }
            (Some(text), Some(block)) => {
                let mut of: Vec<_> = block.of.iter().map(String::as_str).collect();
                if !of.contains(&agent.word()) {
                    of.push(agent.word());
                    of.sort_unstable();
                }
                marked_block::renew(text, &block, &of, BLOCK)
            }
            (text, _) => marked_block::put(text.as_deref(), &[agent.word()], BLOCK),
        };
        file.now = Some(new.into_bytes());
        Ok(())
    }

    /// Removes an agent's name from the block, or the whole block if it names no other agent. A block that was edited stays.
    pub(super) fn remove_block(&mut self, path: &str, agent: Agent) -> Result<(), Error> {
        let file = self.file(path)?;
        let Some(text) = text_of(file)? else { return Ok(()) };
        let Some(block) = marked_block::find(&text).map_err(|it| unpaired(path, &it))? else { return Ok(()) };
        if !block.of.iter().any(|it| it == agent.word()) {
            return Ok(());
        }
        let of: Vec<_> = block.of.iter().map(String::as_str).filter(|it| *it != agent.word()).collect();
        file.now = if !block.is_sealed {
            file.kept = Some("planwatch's lines in it were changed; remove them by hand".to_owned());
            return Ok(());
        } else if of.is_empty() {
            marked_block::take(&text, &block).map(String::into_bytes)
        } else {
            Some(marked_block::renew(&text, &block, &of, &block.lines).into_bytes())
        };
        Ok(())
    }

    /// Puts an entry into a JSON file. A missing file is created with only this entry.
    pub(super) fn write_entry(&mut self, path: &str, entry: &Entry<'_>) -> Result<(), Error> {
        let file = self.file(path)?;
        let Some(text) = text_of(file)? else {
            file.now = Some(entry.alone().into_bytes());
            return Ok(());
        };
        match entry.find(&text).map_err(|it| not_json(path, entry, &it))? {
            EntryState::Same => {}
            EntryState::Other => file.kept = Some(other(entry)),
            EntryState::Nothing => {
                file.now = Some(entry.put(&text).map_err(|it| not_json(path, entry, &it))?.into_bytes());
            }
        }
        Ok(())
    }

    /// Removes an entry from a JSON file, or the whole file if the entry is its only content.
    pub(super) fn remove_entry(&mut self, path: &str, entry: &Entry<'_>) -> Result<(), Error> {
        let file = self.file(path)?;
        let Some(text) = text_of(file)? else { return Ok(()) };
        if entry.is_alone(&text) {
            file.now = None;
            return Ok(());
        }
        match entry.find(&text) {
            // The file is not a strict JSON object, but it does not contain the key, so there is nothing to remove.
            Err(_) if !text.contains(&format!("\"{}\"", entry.key)) => {}
            Err(it) => return Err(not_json(path, entry, &it)),
            Ok(EntryState::Nothing) => {}
            Ok(EntryState::Other) => file.kept = Some(other(entry)),
            Ok(EntryState::Same) => {
                file.now = Some(entry.take(&text).map_err(|it| not_json(path, entry, &it))?.into_bytes());
            }
        }
        Ok(())
    }

    /// Puts an editor's lines into a file, between markers.
    pub(super) fn write_lines(&mut self, path: &str, (marks, of, lines): Lines<'_>) -> Result<(), Error> {
        let file = self.file(path)?;
        let text = text_of(file)?;
        let found = match &text {
            Some(text) => marked_block::find_marked(marks, text).map_err(|it| unpaired(path, &it))?,
            None => None,
        };
        let new = match (&text, found) {
            (Some(_), Some(block)) if !block.is_sealed => {
                file.kept = Some("planwatch's lines in it were changed".to_owned());
                return Ok(());
            }
            (Some(text), Some(block)) => marked_block::renew(text, &block, &[of], lines),
            (text, _) => marked_block::put_marked(marks, text.as_deref(), &[of], lines),
        };
        file.now = Some(new.into_bytes());
        Ok(())
    }

    /// Removes an editor's lines from a file, or the whole file if it has no other lines.
    pub(super) fn remove_lines(&mut self, path: &str, (marks, ..): Lines<'_>) -> Result<(), Error> {
        let file = self.file(path)?;
        let Some(text) = text_of(file)? else { return Ok(()) };
        let found = marked_block::find_marked(marks, &text).map_err(|it| unpaired(path, &it))?;
        let Some(block) = found else { return Ok(()) };
        if block.is_sealed {
            file.now = marked_block::take(&text, &block).map(String::into_bytes);
        } else {
            file.kept = Some("planwatch's lines in it were changed; remove them by hand".to_owned());
        }
        Ok(())
    }
}

/// The markers around the lines, the name of the editor, and the lines.
type Lines<'a> = (&'a Marks, &'a str, &'a str);

fn text_of(file: &File) -> Result<Option<String>, Error> {
    let Some(bytes) = &file.now else { return Ok(None) };
    let text = String::from_utf8(bytes.clone()).map_err(|error| {
        let place = line_index::place(error.as_bytes(), error.utf8_error().valid_up_to());
        refused(&file.path, "not-utf8", place, "this is not UTF-8", "save the file as UTF-8")
    })?;
    Ok(Some(text))
}

fn unpaired(path: &str, it: &Unpaired) -> Error {
    let hint = "remove the marker that has no counterpart, or the second block";
    refused(path, "not-a-block", it.place, it.reason, hint)
}

fn not_json(path: &str, entry: &Entry<'_>, it: &NotJson) -> Error {
    let said = format!("\"{}\": {}", entry.key, entry.value);
    let by_hand = format!("write {said} into \"{}\", or remove it from there", entry.outer);
    let reason = format!("{}; files that are not strict JSON are not written", it.reason);
    refused(path, "not-json", it.place, &reason, &by_hand)
}

fn refused(path: &str, code: &'static str, place: Place, reason: &str, by_hand: &str) -> Error {
    let (reason, by_hand) = (reason.to_owned(), by_hand.to_owned());
    Error::Edit { code, path: path.to_owned(), line: place.line, column: place.column, reason, by_hand }
}

fn bug(path: &str) -> Error {
    Error::failed("bug", format!("`{path}` was lost"), "")
}
