//! The journal of a batch, written before anything is done.
//!
//! Defines the operations and their encoding. A truncated journal is invalid as a whole, because its checksum comes
//! last.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::names::Content;
use super::request_key::Due;

/// The name of the journal in the state directory.
pub(super) const JOURNAL: &str = "journal";

/// One operation of a batch, on paths relative to the plans directory.
///
/// Within a batch, no name may be freed and reused, and no file may be changed twice under the same name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileOp {
    /// Creates a file that must not exist yet, and the directories above it that are missing.
    Create { path: PathBuf, bytes: Vec<u8> },
    /// Replaces the text of a file if its text still is `before`.
    Change { path: PathBuf, before: Vec<u8>, after: Vec<u8> },
    /// Renames a file or directory to a name that must not exist.
    Rename { from: PathBuf, to: PathBuf },
    /// Moves a file or a directory to the path `to` in the archive.
    Remove { path: PathBuf, to: PathBuf },
    /// Removes a file if its text still is `before`. Afterwards the text is only in a displaced version, which `undo` can
    /// restore.
    Discard { path: PathBuf, before: Vec<u8> },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Journal {
    /// The files that operation `n` creates in `displaced/` have ids from `id + n * ID_STEP` on.
    pub id: u64,
    pub verb: String,
    pub at: String,
    pub ops: Vec<FileOp>,
    /// The sources of the `Rename` and `Remove` operations, as they were before the batch began. A source that did not
    /// exist then is left out.
    pub sources: Vec<Source>,
    pub links: Vec<Link>,
    /// Missing directories that the operations create, parents first. After undoing they are removed if empty.
    pub made: Vec<PathBuf>,
    /// Directories that are removed at the end if empty, deepest first.
    pub emptied: Vec<PathBuf>,
    pub by: String,
    /// The unit of the undo log that the batch undoes; `None` if the batch is not an undo.
    pub undoes: Option<u64>,
    /// The unit of the undo log that the batch belongs to; `None` if the batch is a unit itself.
    pub unit: Option<u64>,
    /// The record to write for a request's key when everything is done.
    pub due: Option<Due>,
    pub direction: Direction,
}

/// Identifies the file or directory that a [`FileOp::Rename`] or [`FileOp::Remove`] moves, before and after the rename.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Source {
    pub n: u64,
    pub ino: u64,
    pub text: Option<Content>,
}

/// The requested path of a [`FileOp::Change`], if symbolic links lead from it to the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Link {
    pub n: u64,
    pub asked: PathBuf,
}

/// What the next command must do with a journal that it finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    Forward,
    /// Undoing the batch failed before, so it is tried again.
    Back,
}

/// An operation makes at most this many files in `displaced/`.
pub(super) const ID_STEP: u64 = 4;

pub(super) const BACK: &[u8] = b"back\n";

const BY: u8 = b'b';
const UNDOES: u8 = b'u';
const UNIT: u8 = b'p';
const DUE: u8 = b'k';
const MADE: u8 = b'n';
const EMPTIED: u8 = b'e';
const SOURCE: u8 = b's';
const LINK: u8 = b'l';

const HEAD: &[u8] = b"planwatch journal 1\n";

/// A batch that was interrupted, and that was finished or undone when the lock was next taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recovered {
    pub verb: String,
    pub at: String,
    pub outcome: Outcome,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Finished,
    /// The batch was undone, because it could not be finished (for example, another program had changed a file), or because
    /// an earlier attempt to undo it had failed.
    TakenBack,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unfinished {
    /// Identifies the batch for `Locked::discard_unfinished`.
    pub id: String,
    pub verb: String,
    pub at: String,
    /// The path of the batch's journal, relative to the plans directory.
    pub journal: PathBuf,
    /// All operations of the batch. Some of them may already be done.
    pub ops: Vec<FileOp>,
    pub(super) number: u64,
}

impl Unfinished {
    /// Whether the batch changes this path, or a path above or below it.
    pub(super) fn names(&self, path: &Path) -> bool {
        let mut names = self.ops.iter().flat_map(|it| <[_; 2]>::from(it.names())).flatten();
        names.any(|name| path.starts_with(name) || name.starts_with(path))
    }

    /// The texts in the journal, each with an id and the path of its file.
    pub(super) fn texts(&self) -> Vec<(u64, &Path, &[u8])> {
        let mut texts = Vec::new();
        for (n, op) in self.ops.iter().enumerate() {
            let id = self.number.wrapping_add(n as u64 * ID_STEP);
            match op {
                FileOp::Create { path, bytes } => texts.push((id, path.as_path(), bytes.as_slice())),
                FileOp::Discard { path, before } => texts.push((id, path, before)),
                FileOp::Change { path, before, after } => {
                    texts.push((id, path, before));
                    texts.push((id.wrapping_add(1), path, after));
                }
                FileOp::Rename { .. } | FileOp::Remove { .. } => {}
            }
        }
        texts
    }
}

impl Journal {
    /// The requested path of operation `n`, if symbolic links lead from it to the file.
    pub(super) fn asked(&self, n: usize) -> Option<&Path> {
        self.links.iter().find(|it| it.n == n as u64).map(|it| it.asked.as_path())
    }

    /// Returns the file that the batch changes and whose old text is `bytes`, if there is one. A new file with this text
    /// gets the permissions of that file.
    pub(super) fn copied_from(&self, bytes: &[u8]) -> Option<&Path> {
        self.ops.iter().find_map(|op| match op {
            FileOp::Change { path, before, .. } if before == bytes => Some(path.as_path()),
            _ => None,
        })
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = HEAD.to_vec();
        out.extend_from_slice(&self.id.to_le_bytes());
        field(&mut out, self.verb.as_bytes());
        field(&mut out, self.at.as_bytes());
        out.push(BY);
        field(&mut out, self.by.as_bytes());
        for (kind, unit) in [(UNDOES, self.undoes), (UNIT, self.unit)] {
            if let Some(unit) = unit {
                out.push(kind);
                field(&mut out, &unit.to_le_bytes());
            }
        }
        if let Some(Due { name, hour, note }) = &self.due {
            out.push(DUE);
            for bytes in [name.as_bytes(), &hour.to_le_bytes(), note] {
                field(&mut out, bytes);
            }
        }
        let made = self.made.iter().map(|it| (MADE, it));
        for (kind, dir) in made.chain(self.emptied.iter().map(|it| (EMPTIED, it))) {
            out.push(kind);
            field(&mut out, raw(dir));
        }
        for it in &self.sources {
            out.push(SOURCE);
            let numbers = [it.n, it.ino, u64::from(it.text.is_some()), it.text.map_or(0, |text| text.0)];
            field(&mut out, &numbers.map(u64::to_le_bytes).concat());
        }
        for Link { n, asked } in &self.links {
            out.push(LINK);
            field(&mut out, &n.to_le_bytes());
            field(&mut out, raw(asked));
        }
        for op in &self.ops {
            let (kind, fields) = op.fields();
            out.push(kind);
            for bytes in fields {
                field(&mut out, bytes);
            }
        }
        out.push(b'.');
        let sum = blake3::hash(&out);
        out.extend_from_slice(sum.as_bytes());
        out
    }

    /// Returns `None` for a journal that is truncated or damaged.
    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let mut rest = bytes.strip_prefix(HEAD)?;
        let (id, tail) = rest.split_first_chunk()?;
        rest = tail;
        let id = u64::from_le_bytes(*id);
        let verb = String::from_utf8(take(&mut rest)?.to_vec()).ok()?;
        let at = String::from_utf8(take(&mut rest)?.to_vec()).ok()?;
        let (mut ops, mut made, mut emptied) = (Vec::new(), Vec::new(), Vec::new());
        let (mut sources, mut links) = (Vec::new(), Vec::new());
        let (mut by, mut undoes, mut unit, mut due) = (String::new(), None, None, None);
        loop {
            let (&kind, tail) = rest.split_first()?;
            rest = tail;
            match kind {
                b'.' => break,
                BY => by = String::from_utf8(take(&mut rest)?.to_vec()).ok()?,
                UNDOES => undoes = Some(u64::from_le_bytes(take(&mut rest)?.try_into().ok()?)),
                UNIT => unit = Some(u64::from_le_bytes(take(&mut rest)?.try_into().ok()?)),
                DUE => due = Some(read_due(&mut rest)?),
                MADE => made.push(path(take(&mut rest)?)),
                SOURCE => sources.push(read_source(take(&mut rest)?)?),
                LINK => links.push(read_link(&mut rest)?),
                EMPTIED => emptied.push(path(take(&mut rest)?)),
                kind => ops.push(FileOp::read(kind, &mut rest)?),
            }
        }
        let (sum, mark) = rest.split_at_checked(blake3::OUT_LEN)?;
        let body = &bytes[..bytes.len() - rest.len()];
        if blake3::hash(body) != *<&[u8; blake3::OUT_LEN]>::try_from(sum).ok()? {
            return None;
        }
        let direction = if mark.is_empty() { Direction::Forward } else { Direction::Back };
        Some(Self { id, verb, at, ops, sources, links, made, emptied, by, undoes, unit, due, direction })
    }
}

impl FileOp {
    fn fields(&self) -> (u8, Vec<&[u8]>) {
        match self {
            Self::Create { path, bytes } => (b'c', vec![raw(path), bytes]),
            Self::Change { path, before, after } => (b'w', vec![raw(path), before, after]),
            Self::Rename { from, to } => (b'r', vec![raw(from), raw(to)]),
            Self::Remove { path, to } => (b'm', vec![raw(path), raw(to)]),
            Self::Discard { path, before } => (b'd', vec![raw(path), before]),
        }
    }

    fn read(kind: u8, rest: &mut &[u8]) -> Option<Self> {
        let mut bytes = || Some(take(rest)?.to_vec());
        Some(match kind {
            b'c' => Self::Create { path: path(&bytes()?), bytes: bytes()? },
            b'w' => Self::Change { path: path(&bytes()?), before: bytes()?, after: bytes()? },
            b'r' => Self::Rename { from: path(&bytes()?), to: path(&bytes()?) },
            b'm' => Self::Remove { path: path(&bytes()?), to: path(&bytes()?) },
            b'd' => Self::Discard { path: path(&bytes()?), before: bytes()? },
            _ => return None,
        })
    }

    /// Returns the name that must exist before the operation, and the name that must not exist.
    pub(super) fn names(&self) -> (Option<&Path>, Option<&Path>) {
        match self {
            Self::Create { path, .. } => (None, Some(path)),
            Self::Change { path, .. } | Self::Discard { path, .. } => (Some(path), None),
            Self::Rename { from, to } | Self::Remove { path: from, to } => (Some(from), Some(to)),
        }
    }
}

fn read_due(rest: &mut &[u8]) -> Option<Due> {
    let name = String::from_utf8(take(rest)?.to_vec()).ok()?;
    let hour = i64::from_le_bytes(take(rest)?.try_into().ok()?);
    Some(Due { name, hour, note: take(rest)?.to_vec() })
}

fn read_link(rest: &mut &[u8]) -> Option<Link> {
    let n = u64::from_le_bytes(take(rest)?.try_into().ok()?);
    Some(Link { n, asked: path(take(rest)?) })
}

fn read_source(bytes: &[u8]) -> Option<Source> {
    let [n, ino, is_file, text] = *bytes.as_chunks().0 else { return None };
    let text = (u64::from_le_bytes(is_file) == 1).then(|| Content(u64::from_le_bytes(text)));
    Some(Source { n: u64::from_le_bytes(n), ino: u64::from_le_bytes(ino), text })
}

fn raw(path: &Path) -> &[u8] {
    path.as_os_str().as_bytes()
}

fn path(bytes: &[u8]) -> PathBuf {
    PathBuf::from(OsStr::from_bytes(bytes))
}

fn field(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend_from_slice(&(bytes.len() as u64).to_le_bytes());
    out.extend_from_slice(bytes);
}

fn take<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (len, tail) = rest.split_first_chunk()?;
    let (bytes, tail) = tail.split_at_checked(usize::try_from(u64::from_le_bytes(*len)).ok()?)?;
    *rest = tail;
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> Journal {
        let path = |name: &[u8]| PathBuf::from(OsStr::from_bytes(name));
        Journal {
            id: 7,
            verb: "move".to_string(),
            at: "2026-11-21T09:14:03Z".to_string(),
            ops: vec![
                FileOp::Create { path: path(b"p/step-\xff.md"), bytes: b"new\0".to_vec() },
                FileOp::Change { path: path(b"p/plan.md"), before: Vec::new(), after: b"x".to_vec() },
                FileOp::Rename { from: path(b"p/step-1.md"), to: path(b"p/step-2.md") },
                FileOp::Remove { path: path(b"p/step-3.md"), to: path(b"_archive/p/removed-1/step-3.md") },
                FileOp::Discard { path: path(b"p/step-4.md"), before: b"gone".to_vec() },
            ],
            sources: vec![
                Source { n: 2, ino: 77, text: Some(Content(0)) },
                Source { n: 3, ino: u64::MAX, text: None },
            ],
            links: vec![Link { n: 1, asked: path(b"q/plan.md") }],
            made: vec![path(b"_archive"), path(b"_archive/p")],
            emptied: vec![path(b"q")],
            by: "ann".to_string(),
            undoes: Some(7),
            unit: Some(5),
            due: Some(Due { name: "k".to_string(), hour: -3, note: b"done".to_vec() }),
            direction: Direction::Forward,
        }
    }

    #[test]
    fn a_journal_round_trips() {
        let journal = example();
        let mut bytes = journal.encode();
        assert_eq!(Journal::decode(&bytes), Some(journal.clone()));
        bytes.extend_from_slice(BACK);
        assert_eq!(Journal::decode(&bytes), Some(Journal { direction: Direction::Back, ..journal }));
    }

    #[test]
    fn a_truncated_or_damaged_journal_is_invalid() {
        let bytes = example().encode();
        for len in 0..bytes.len() {
            assert_eq!(Journal::decode(&bytes[..len]), None, "{len}");
            let mut damaged = bytes.clone();
            damaged[len] ^= 1;
            assert_eq!(Journal::decode(&damaged), None, "{len}");
        }
    }
}
