//! Selects the change to undo, checks for conflicts, and builds the operations.
//!
//! The id of a change is `u` and the beginning of a hash of its unit's number: six digits, or more if the ids would
//! otherwise not differ. So it does not depend on the position in the log. An older change can be undone while newer ones
//! stay, if none of the newer ones changed the same files, or files in a plan directory that the older change created.

use std::collections::BTreeMap;
use std::fmt;
use std::os::unix::ffi::OsStrExt;

use super::*;

const DIGITS: usize = 6;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UndoChange {
    /// `u` and hexadecimal digits.
    pub id: String,
    pub verb: String,
    pub at: String,
}

/// A command whose writes were not undone.
#[derive(Debug)]
pub struct UndoEntry {
    pub id: String,
    pub verb: String,
    pub at: String,
    /// Who made the change; empty if that was not recorded.
    pub by: String,
    /// The paths that it wrote, relative to the plans directory.
    pub paths: Vec<PathBuf>,
    /// Why it cannot be undone now; `None` if it can.
    pub blocked: Option<UndoError>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Undone {
    pub verb: String,
    pub at: String,
    pub paths: Vec<PathBuf>,
}

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UndoError {
    #[error("there is nothing to undo")]
    Nothing,
    #[error("there is no change `{id}` to undo")]
    Unknown { id: String },
    /// The file no longer contains what planwatch wrote. `undo` did not touch it.
    #[error("{change} cannot be undone: `{}` was edited after planwatch wrote it", path.display())]
    Edited { change: Box<UndoChange>, path: PathBuf },
    /// A name that the change freed is in use again.
    #[error("{change} cannot be undone: `{}` exists again", path.display())]
    Taken { change: Box<UndoChange>, path: PathBuf },
    #[error("{change} cannot be undone: the previous text of `{}` no longer exists", path.display())]
    Gone { change: Box<UndoChange>, path: PathBuf },
    /// The change could not be recorded in the undo log, so its writes are unknown.
    #[error("the change cannot be undone: it could not be recorded when it was made")]
    Unrecorded,
    /// A later change that was not undone wrote the same file.
    #[error("{change} cannot be undone: the later {later} changed `{}`", path.display())]
    Later { change: Box<UndoChange>, later: Box<UndoChange>, path: PathBuf },
    /// The undo would restore a dependency on the step in this file, and a later change that was not undone gave the file's
    /// name to another step.
    #[error(
        "{change} cannot be undone: it would restore a dependency on `{}`, which is another step since the later {later}",
        path.display()
    )]
    OtherStep { change: Box<UndoChange>, later: Box<UndoChange>, path: PathBuf },
    #[error(transparent)]
    Disk(#[from] DiskError),
}

impl fmt::Display for UndoChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` of {} ({})", self.verb, self.at, self.id)
    }
}

impl UndoError {
    pub fn code(&self) -> &'static str {
        match self {
            Self::Nothing => "nothing-to-undo",
            Self::Unknown { .. } | Self::Gone { .. } => "not-found",
            Self::Edited { .. } | Self::Taken { .. } => "file-changed",
            Self::Later { .. } | Self::OtherStep { .. } => "later-change",
            Self::Unrecorded => "not-recorded",
            Self::Disk(error) => error.code(),
        }
    }

    /// The change that cannot be undone, the file that is the reason, and the later change that wrote it.
    pub fn reason(&self) -> Option<(&UndoChange, &Path, Option<&UndoChange>)> {
        match self {
            Self::Edited { change, path } | Self::Taken { change, path } | Self::Gone { change, path } => {
                Some((change, path, None))
            }
            Self::Later { change, later, path } | Self::OtherStep { change, later, path } => {
                Some((change, path, Some(later)))
            }
            Self::Nothing | Self::Unknown { .. } | Self::Unrecorded | Self::Disk(_) => None,
        }
    }
}

/// A check of a change that can be undone, for [`PlansDir::undo_list_with`].
pub type UndoCheck<'a> =
    dyn Fn(&UndoChange, &[FileOp], &[(UndoChange, PathBuf)]) -> Result<(), UndoError> + 'a;

/// Changes that were not undone, oldest first, and their ids.
struct Choice {
    units: Vec<Vec<Record>>,
    ids: Vec<String>,
}

impl Choice {
    fn of(plans: &PlansDir) -> Self {
        // A log that this machine did not write is not read.
        let log = plans.runtime_dir().map(|_| plans.undo_log()).unwrap_or_default();
        let units = units(remembered(&log));
        let hashes: Vec<_> = units.iter().map(|it| hash_of(it[0].unit)).collect();
        let id = |hash: &String| {
            let is_alone = |n: &usize| hashes.iter().filter(|it| it[..*n] == hash[..*n]).count() == 1;
            let n = (DIGITS..hash.len()).find(is_alone).unwrap_or(hash.len());
            format!("u{}", &hash[..n])
        };
        let ids = hashes.iter().map(id).collect();
        Self { units, ids }
    }

    fn change(&self, nth: usize) -> Box<UndoChange> {
        let first = &self.units[nth][0];
        Box::new(UndoChange { id: self.ids[nth].clone(), verb: first.verb.clone(), at: first.at.clone() })
    }

    /// Returns the index of the change with this id, or of the last change if `id` is `None`.
    fn find(&self, id: Option<&str>) -> Result<usize, UndoError> {
        match id {
            None => self.units.len().checked_sub(1).ok_or(UndoError::Nothing),
            Some(id) => {
                let found = self.ids.iter().position(|it| it.eq_ignore_ascii_case(id));
                found.ok_or_else(|| UndoError::Unknown { id: id.to_owned() })
            }
        }
    }

    fn check_later(&self, nth: usize) -> Result<(), UndoError> {
        let own = touched(&self.units[nth]);
        for (later, unit) in self.units.iter().enumerate().skip(nth + 1) {
            let theirs = touched(unit);
            let is_shared = |path: &&PathBuf| {
                theirs.iter().any(|it| it.starts_with(path.as_path()) || path.starts_with(it))
            };
            if let Some(path) = own.iter().find(is_shared) {
                let (change, later, path) = (self.change(nth), self.change(later), path.clone());
                return Err(UndoError::Later { change, later, path });
            }
        }
        Ok(())
    }

    fn moved_since(&self, nth: usize) -> Vec<(UndoChange, PathBuf)> {
        let gone = |record: &Record| match &record.what {
            What::Renamed { from, .. } => Some(from.path()),
            What::Discarded { path, .. } => Some(path.path()),
            _ => None,
        };
        let of_unit = |nth: usize| {
            let paths = self.units[nth].iter().filter_map(gone).collect::<Vec<_>>();
            let change = *self.change(nth);
            paths.into_iter().map(move |it| (change.clone(), it))
        };
        (nth + 1..self.units.len()).rev().flat_map(of_unit).collect()
    }

    fn operations(&self, plans: &PlansDir, nth: usize) -> Result<Vec<FileOp>, UndoError> {
        if self.units[nth].iter().any(|it| it.what == What::Unrecorded) {
            return Err(UndoError::Unrecorded);
        }
        self.check_later(nth)?;
        plans.reverse(&self.units[nth], &self.change(nth))
    }
}

fn hash_of(unit: u64) -> String {
    blake3::hash(&unit.to_le_bytes()).to_hex()[..16].to_owned()
}

/// The files of a change, and the plan directories that it created. The directories are included because a later change
/// of a file in one of them is a conflict.
fn touched(unit: &[Record]) -> Vec<PathBuf> {
    let made = unit.iter().filter_map(Record::made_dir);
    let is_shared = |it: &PathBuf| it.as_os_str().as_bytes().starts_with(b"_");
    // Symbolic links are included because a link may be renamed without its file.
    let asked = unit.iter().filter_map(Record::asked);
    paths(unit).into_iter().chain(asked).chain(made.filter(|it| !is_shared(it))).collect()
}

impl PlansDir {
    /// Lists the changes that were not undone, the last one first.
    pub fn undo_list(&self) -> Vec<UndoEntry> {
        self.undo_list_with(&|_, _, _| Ok(()))
    }

    /// As [`Self::undo_list`]. If a change can be undone, `check` gets the change, the operations that undo it and the result
    /// of [`Self::moved_since`]; an error of `check` blocks the change.
    pub fn undo_list_with(&self, check: &UndoCheck<'_>) -> Vec<UndoEntry> {
        let choice = Choice::of(self);
        let entry = |nth: usize| {
            let UndoChange { id, verb, at } = *choice.change(nth);
            let ops = choice.operations(self, nth);
            let checked = ops.and_then(|ops| check(&choice.change(nth), &ops, &choice.moved_since(nth)));
            let blocked = checked.err();
            let (by, paths) = (choice.units[nth][0].by.clone(), paths(&choice.units[nth]));
            UndoEntry { id, verb, at, by, paths, blocked }
        };
        (0..choice.units.len()).rev().map(entry).collect()
    }

    /// Returns the operations that would undo the change with this id, or the last change if `id` is `None`. Changes
    /// nothing.
    pub fn undo_operations(&self, id: Option<&str>) -> Result<(UndoChange, Vec<FileOp>), UndoError> {
        let choice = Choice::of(self);
        let nth = choice.find(id)?;
        Ok((*choice.change(nth), choice.operations(self, nth)?))
    }

    /// Lists the files that were renamed or removed by changes made after the change `id`. Each entry contains the later
    /// change, and the path that the file had before it. The newest change comes first.
    pub fn moved_since(&self, id: Option<&str>) -> Result<Vec<(UndoChange, PathBuf)>, UndoError> {
        let choice = Choice::of(self);
        Ok(choice.moved_since(choice.find(id)?))
    }

    /// The operations that undo a unit, last write first.
    ///
    /// Several writes of one file under one name become one operation.
    fn reverse(&self, unit: &[Record], change: &UndoChange) -> Result<Vec<FileOp>, UndoError> {
        let gone =
            |path: &Path| UndoError::Gone { change: Box::new(change.clone()), path: path.to_path_buf() };
        let edited = |path: PathBuf| UndoError::Edited { change: Box::new(change.clone()), path };
        let mut ops: Vec<FileOp> = Vec::new();
        // The content of files after undoing the writes visited so far.
        let mut texts = BTreeMap::new();
        // By file, the symbolic link through which it was changed, if neither the link nor the file was renamed since.
        let mut links = BTreeMap::new();
        for (n, record) in unit.iter().enumerate().rev() {
            let later = &unit[n + 1..];
            match &record.what {
                What::Replaced { path, version, base, new, .. } => {
                    let path = path.path();
                    let before = self.still(later, &path, *new, &texts).map_err(edited)?;
                    if let Some(asked) = record.asked() {
                        let (now, leads_to) = (name_after(later, &asked), name_after(later, &path));
                        // An editor that saves by renaming replaces the link with a file. Then the file that planwatch
                        // changed is no longer at this path, and the editor's file must not be touched.
                        if self.resolve(&now).ok().as_ref() != Some(&leads_to) {
                            return Err(edited(asked));
                        }
                        if now == asked && leads_to == path {
                            links.insert(path.clone(), asked);
                        }
                    }
                    let after = self.version_text(*version, *base).ok_or_else(|| gone(&path))?;
                    texts.insert(name_after(later, &path), after.clone());
                    match change_of(&mut ops, &path) {
                        Some(FileOp::Change { after: first, .. }) => *first = after,
                        _ => ops.push(FileOp::Change { path, before, after }),
                    }
                }
                What::Created { path, new, .. } => {
                    let path = path.path();
                    let before = self.still(later, &path, *new, &texts).map_err(edited)?;
                    match change_of(&mut ops, &path) {
                        Some(op) => {
                            let FileOp::Change { before, .. } = op else { continue };
                            *op = FileOp::Discard { path, before: std::mem::take(before) };
                        }
                        None => ops.push(FileOp::Discard { path, before }),
                    }
                }
                What::Renamed { from, to } => ops.push(FileOp::Rename { from: to.path(), to: from.path() }),
                What::Discarded { path, version, base } => {
                    let path = path.path();
                    let bytes = self.version_text(*version, *base).ok_or_else(|| gone(&path))?;
                    ops.push(FileOp::Create { path, bytes });
                }
                What::CreatedDir { .. } | What::Undone | What::Unrecorded => {}
            }
        }
        for op in &mut ops {
            if let FileOp::Change { path, .. } = op
                && let Some(link) = links.remove(path)
            {
                *path = link;
            }
        }
        self.check_names(&ops, change)?;
        Ok(ops)
    }

    /// Rejects operations on missing files, and names that are in use again.
    fn check_names(&self, ops: &[FileOp], change: &UndoChange) -> Result<(), UndoError> {
        let is_there = |path: &Path| self.disk.lstat(&self.root.join(path)).is_ok();
        let freed: Vec<_> = ops.iter().filter_map(|it| it.names().0).collect();
        for op in ops {
            let (needed, taken) = op.names();
            if let Some(path) = taken.filter(|it| is_there(it) && !freed.contains(it)) {
                return Err(UndoError::Taken { change: Box::new(change.clone()), path: path.to_path_buf() });
            }
            let made = ops.iter().filter_map(|it| it.names().1);
            let is_made = |path: &&Path| made.clone().any(|it| path.starts_with(it));
            if let Some(path) = needed.filter(|it| !is_there(it) && !is_made(it)) {
                return Err(UndoError::Edited { change: Box::new(change.clone()), path: path.to_path_buf() });
            }
        }
        Ok(())
    }

    /// Reads a file and checks that its content is still the recorded content `new`. If not, or if the file cannot be
    /// read, the error is `path`.
    fn still(
        &self,
        later: &[Record],
        path: &Path,
        new: u64,
        texts: &BTreeMap<PathBuf, Vec<u8>>,
    ) -> Result<Vec<u8>, PathBuf> {
        let now = name_after(later, path);
        let bytes = match texts.get(&now) {
            Some(text) => text.clone(),
            None => self.read(&now).map_err(|_| path.to_path_buf())?.bytes,
        };
        if Content::of(&bytes).0 == new { Ok(bytes) } else { Err(path.to_path_buf()) }
    }
}

impl Locked<'_> {
    /// Undoes the last command's writes, all or none.
    ///
    /// Fails if a file no longer contains the bytes that planwatch wrote. Repeated calls undo earlier commands.
    pub fn undo(&mut self) -> Result<Undone, UndoError> {
        self.undo_change(None)
    }

    /// Like [`Self::undo`], but undoes the change with this id. Later changes stay. Fails if one of them wrote the same
    /// files.
    pub fn undo_change(&mut self, id: Option<&str>) -> Result<Undone, UndoError> {
        let choice = Choice::of(self.plans);
        let nth = choice.find(id)?;
        let ops = choice.operations(self.plans, nth)?;
        let (unit, change) = (&choice.units[nth], choice.change(nth));
        let done = self.run(("undo", &change.at), ops, emptied(unit), Some(unit[0].unit));
        done.map_err(|error| match error {
            DiskError::FileChanged { path } => UndoError::Edited { change: change.clone(), path },
            DiskError::Exists { path } => UndoError::Taken { change: change.clone(), path },
            other => UndoError::Disk(other),
        })?;
        Ok(Undone { verb: change.verb, at: change.at, paths: paths(unit) })
    }
}

/// The name of a file after the later records, which may have renamed the file or its directory.
fn name_after(later: &[Record], path: &Path) -> PathBuf {
    later.iter().fold(path.to_path_buf(), |path, record| match &record.what {
        What::Renamed { from, to } => match path.strip_prefix(from.path()) {
            Ok(rest) if rest.as_os_str().is_empty() => to.path(),
            Ok(rest) => to.path().join(rest),
            Err(_) => path,
        },
        _ => path,
    })
}

/// The directories that may be empty after a unit is undone, deepest first: those that the unit created, and those in
/// the archive that contained its files.
fn emptied(unit: &[Record]) -> Vec<PathBuf> {
    let made = unit.iter().filter_map(Record::made_dir);
    let paths: Vec<_> = unit.iter().flat_map(Record::paths).collect();
    let archived = paths.iter().flat_map(|it| it.ancestors().skip(1)).filter(|it| it.starts_with(ARCHIVE));
    let all: BTreeSet<_> = made.chain(archived.map(Path::to_path_buf)).collect();
    all.into_iter().rev().collect()
}

fn change_of<'a>(ops: &'a mut [FileOp], wanted: &Path) -> Option<&'a mut FileOp> {
    ops.iter_mut().find(|op| matches!(op, FileOp::Change { path, .. } if path == wanted))
}
