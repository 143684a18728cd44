//! The undo log of planwatch's writes.
//!
//! The log contains a record of each write. The version that the write displaced is retained until about a hundred more
//! writes are recorded, or until newer texts reach [`MOST_BYTES`]. Log and versions are not synced, so some of them may be
//! missing after a power cut. `undo` never replaces or removes a file whose content differs from the recorded one.

mod choice;
mod gap;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use serde::{Deserialize, Serialize};

use super::displaced::{self, KeptWhy, keep};
use super::error::DiskError;
use super::file_system::{Lease, Open, Rename};
use super::fs_ops::{Safe, read_own, write_new};
use super::journal::{FileOp, Journal};
use super::names::{Content, UNDO, VersionName};
use super::own_writes::{Left, OwnWrite};
use super::path_text::Text;
use super::plans_dir::PlansDir;
use super::runtime::Trust;
use super::write_lock::{Locked, Unit, Version};

pub use choice::{UndoChange, UndoCheck, UndoEntry, UndoError, Undone};

pub(super) const LOG: &str = "log";

/// The directory to which removed files are moved. Each removal has directories of its own there.
pub(super) const ARCHIVE: &str = "_archive";

const REMEMBERED: usize = 100;

/// The limit of the total size of retained texts, in bytes. The oldest are removed first.
const MOST_BYTES: u64 = 64 << 20;

/// How many records the log may contain before it is shortened.
const LOG_LINES: usize = 4 * REMEMBERED;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Record {
    /// The id of the unit: the changes that one `undo` undoes together.
    #[serde(default)]
    pub(super) unit: u64,
    #[serde(default)]
    verb: String,
    #[serde(default)]
    at: String,
    #[serde(default)]
    by: String,
    pub(super) what: What,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum What {
    Created {
        path: Text,
        new: u64,
        /// In bytes.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        len: Option<u64>,
    },
    /// A directory that was created with files; recorded before them.
    CreatedDir {
        path: Text,
    },
    Replaced {
        path: Text,
        version: u64,
        base: u64,
        new: u64,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        len: Option<u64>,
        /// The path that led to the file through symbolic links.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        asked: Option<Text>,
    },
    Renamed {
        from: Text,
        to: Text,
    },
    Discarded {
        path: Text,
        version: u64,
        base: u64,
    },
    Undone,
    /// At this point of the log, the record of a change could not be written.
    Unrecorded,
}

pub(super) struct Needed {
    log: Vec<Record>,
    /// The ids and the content hashes of the versions.
    versions: BTreeSet<(u64, u64)>,
}

impl Needed {
    fn has(&self, version: &VersionName) -> bool {
        self.versions.contains(&(version.id, version.base.0))
    }
}

impl Record {
    fn new(what: What) -> Self {
        Self { unit: 0, verb: String::new(), at: String::new(), by: String::new(), what }
    }

    pub(super) fn created(path: &Path, bytes: &[u8]) -> Self {
        let (new, len) = (Content::of(bytes).0, Some(bytes.len() as u64));
        Self::new(What::Created { path: Text::of(path), new, len })
    }

    pub(super) fn created_dir(path: &Path) -> Self {
        Self::new(What::CreatedDir { path: Text::of(path) })
    }

    pub(super) fn replaced(path: &Path, before: &Version, bytes: &[u8]) -> Self {
        let (version, base) = (before.name.id, before.name.base.0);
        let (new, len) = (Content::of(bytes).0, Some(bytes.len() as u64));
        Self::new(What::Replaced { path: Text::of(path), version, base, new, len, asked: None })
    }

    /// Adds the requested path of a replaced file, if it differs from the file's own path.
    pub(super) fn asked_as(mut self, asked_for: &Path) -> Self {
        if let What::Replaced { path, asked, .. } = &mut self.what {
            *asked = (path.path() != asked_for).then(|| Text::of(asked_for));
        }
        self
    }

    fn asked(&self) -> Option<PathBuf> {
        match &self.what {
            What::Replaced { asked, .. } => asked.as_ref().map(Text::path),
            _ => None,
        }
    }

    pub(super) fn of(op: &FileOp, version: &Version) -> Self {
        match op {
            FileOp::Create { path, bytes } => Self::created(path, bytes),
            FileOp::Change { path, after, .. } => Self::replaced(path, version, after),
            FileOp::Rename { from, to } | FileOp::Remove { path: from, to } => {
                Self::new(What::Renamed { from: Text::of(from), to: Text::of(to) })
            }
            FileOp::Discard { path, .. } => {
                let (version, base) = (version.name.id, version.name.base.0);
                Self::new(What::Discarded { path: Text::of(path), version, base })
            }
        }
    }

    pub(super) fn undone(unit: u64, by: &str) -> Self {
        Self { unit, by: by.to_owned(), ..Self::new(What::Undone) }
    }

    /// Whether this record belongs to the same unit as `records` and is of the same kind (a write or an undo).
    pub(super) fn is_of_unit_of(&self, records: &[Self]) -> bool {
        records.first().is_some_and(|it| it.unit == self.unit && it.is_undone() == self.is_undone())
    }

    /// Makes this record part of the batch's unit.
    pub(super) fn of_batch(self, journal: &Journal) -> Self {
        let Journal { id, verb, at, by, unit, .. } = journal;
        Self { unit: unit.unwrap_or(*id), verb: verb.clone(), at: at.clone(), by: by.clone(), ..self }
    }

    fn paths(&self) -> Vec<PathBuf> {
        match &self.what {
            What::Created { path, .. } | What::Replaced { path, .. } | What::Discarded { path, .. } => {
                vec![path.path()]
            }
            What::Renamed { from, to } => vec![from.path(), to.path()],
            What::CreatedDir { .. } | What::Undone | What::Unrecorded => Vec::new(),
        }
    }

    fn made_dir(&self) -> Option<PathBuf> {
        match &self.what {
            What::CreatedDir { path } => Some(path.path()),
            _ => None,
        }
    }

    fn leaves(&self, verb: &str, by: &str) -> Vec<OwnWrite> {
        let write = |path: &Text, left: Left| OwnWrite {
            unit: self.unit,
            path: path.path(),
            left,
            verb: verb.to_owned(),
            by: by.to_owned(),
        };
        match &self.what {
            What::Created { path, new, .. } | What::Replaced { path, new, .. } => {
                vec![write(path, Left::Content(format!("{new:016x}")))]
            }
            What::Renamed { from, to } => vec![write(from, Left::Nothing), write(to, Left::Renamed)],
            What::Discarded { path, .. } => vec![write(path, Left::Nothing)],
            What::CreatedDir { .. } | What::Undone | What::Unrecorded => Vec::new(),
        }
    }

    pub(super) fn is_undone(&self) -> bool {
        self.what == What::Undone
    }

    /// What the files contain after the write was undone.
    fn leaves_undone(&self, by: &str) -> Vec<OwnWrite> {
        let back = match &self.what {
            What::Created { path, .. } => What::Discarded { path: path.clone(), version: 0, base: 0 },
            What::Replaced { path, base, .. } | What::Discarded { path, base, .. } => {
                What::Created { path: path.clone(), new: *base, len: None }
            }
            What::Renamed { from, to } => What::Renamed { from: to.clone(), to: from.clone() },
            What::CreatedDir { .. } | What::Undone | What::Unrecorded => return Vec::new(),
        };
        Self { unit: self.unit, ..Self::new(back) }.leaves("undo", by)
    }

    fn version(&self) -> Option<(u64, u64)> {
        match &self.what {
            What::Replaced { version, base, .. } | What::Discarded { version, base, .. } => {
                Some((*version, *base))
            }
            _ => None,
        }
    }
}

impl PlansDir {
    pub(super) fn undo_log(&self) -> Vec<Record> {
        records(&self.undo_log_bytes(&self.known_state_dir())).collect()
    }

    /// Finds the text of a displaced version whose content is unchanged.
    fn version_text(&self, id: u64, base: u64) -> Option<Vec<u8>> {
        for dir in [displaced::dir(self), self.known_state_dir().join(UNDO)] {
            for name in self.disk.names(&dir).unwrap_or_default() {
                let Some(version) = VersionName::parse(&name) else { continue };
                if (version.id, version.base.0) != (id, base) {
                    continue;
                }
                let bytes = read_own(&*self.disk, &dir.join(&name), u64::MAX).ok().flatten()?;
                return (Content::of(&bytes).0 == base).then_some(bytes);
            }
        }
        None
    }
}

/// Parses the records of a log; invalid lines are skipped.
pub(super) fn records(bytes: &[u8]) -> impl Iterator<Item = Record> {
    bytes.split(|&byte| byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok())
}

pub(super) fn leaves(log: &[Record]) -> Vec<OwnWrite> {
    let mut writes = Vec::new();
    for it in log {
        if it.is_undone() {
            let unit = log.iter().filter(|record| record.unit == it.unit);
            writes.extend(unit.flat_map(|record| record.leaves_undone(&it.by)));
        } else {
            writes.extend(it.leaves(&it.verb, &it.by));
        }
    }
    writes
}

/// The last [`REMEMBERED`] records of a log, and the records directly before them that belong to the unit of the first.
fn remembered(log: &[Record]) -> &[Record] {
    let mut from = log.len().saturating_sub(REMEMBERED);
    while from > 0 && log[from - 1].unit == log[from].unit {
        from -= 1;
    }
    &log[from..]
}

/// How many of the last units are searched for the unit of a record.
const AMONG: usize = 32;

/// The units that were not undone, oldest first.
fn units(log: &[Record]) -> Vec<Vec<Record>> {
    let undone: BTreeSet<u64> = log.iter().filter(|it| it.is_undone()).map(|it| it.unit).collect();
    let mut units: Vec<Vec<Record>> = Vec::new();
    for record in log.iter().filter(|it| !undone.contains(&it.unit)) {
        // Threads that write at the same time interleave their lines.
        match units.iter_mut().rev().take(AMONG).find(|it| it[0].unit == record.unit) {
            Some(unit) => unit.push(record.clone()),
            None => units.push(vec![record.clone()]),
        }
    }
    units
}

fn paths(unit: &[Record]) -> Vec<PathBuf> {
    let mut paths: Vec<_> = unit.iter().flat_map(Record::paths).collect();
    paths.sort_unstable();
    paths.dedup();
    paths
}

impl Locked<'_> {
    /// Starts a unit: `undo` undoes the following writes together.
    ///
    /// `at` is the time of the request, which `undo --list` shows.
    pub fn begin(&mut self, verb: &str, at: &str) {
        self.unit = Some(Unit { id: self.fresh_id(), verb: verb.to_string(), at: at.to_string() });
    }

    pub fn sign(&mut self, by: &str) {
        self.by = by.to_owned();
    }

    pub(super) fn end_unit(&mut self) {
        self.unit = None;
    }

    /// Records a write for undo. If this fails, the write itself stays done, and `undo` reports the missing record.
    pub(super) fn record(&self, record: Record) {
        let alone = || Unit { id: self.fresh_id(), verb: String::new(), at: String::new() };
        self.log(&[self.signed(record, &self.unit.clone().unwrap_or_else(alone))]);
    }

    /// Records created directories and writes as one unit.
    pub(super) fn record_all(&mut self, made: &[PathBuf], writes: &[Record]) {
        let alone = || Unit { id: self.fresh_id(), verb: String::new(), at: String::new() };
        let unit = self.unit.clone().unwrap_or_else(alone);
        let records = made.iter().map(|it| Record::created_dir(it)).chain(writes.iter().cloned());
        self.log(&records.map(|it| self.signed(it, &unit)).collect::<Vec<_>>());
    }

    fn signed(&self, record: Record, unit: &Unit) -> Record {
        let Unit { id, verb, at } = unit.clone();
        Record { unit: id, verb, at, by: self.by.clone(), ..record }
    }

    /// Appends records with one call, so that the records of other threads rarely come between them. If that fails, the
    /// log is marked as incomplete, and the rest of the unit is not recorded.
    pub(super) fn log(&self, records: &[Record]) {
        let Some(unit) = records.first().map(|it| it.unit) else { return };
        let is_part_missing = self.unrecorded_unit.load(Ordering::Relaxed) == unit;
        if self.trust != Trust::Own || self.plans.is_project() || is_part_missing {
            return;
        }
        // A full disk may have truncated the previous line, so a record also begins with a line end.
        let lines: Vec<_> = records.iter().filter_map(|it| serde_json::to_vec(it).ok()).collect();
        let lines: Vec<u8> = lines.iter().flat_map(|it| [b"\n", it.as_slice(), b"\n"].concat()).collect();
        let path = self.plans.known_state_dir().join(UNDO).join(LOG);
        if self.plans.disk.open(&path, Open::Append).and_then(|file| file.write(&lines)).is_err() {
            self.unrecorded_unit.store(unit, Ordering::Relaxed);
            self.mark_gap();
        }
    }

    pub(super) fn needed(&self) -> Needed {
        let log = if self.trust == Trust::Own { self.plans.undo_log() } else { Vec::new() };
        let versions = remembered(&log).iter().filter_map(Record::version).collect();
        Needed { log, versions }
    }

    /// Moves a displaced version to the directory `undo` if undo needs it, and removes it otherwise. A version that cannot be
    /// moved stays where it is until the next sweep.
    ///
    /// The caller ensures that no program writes into the version.
    pub(super) fn retire(&self, at: &Path, version: &VersionName, needed: &Needed) {
        let disk = &*self.plans.disk;
        let to = self.plans.known_state_dir().join(UNDO).join(version.encode());
        if needed.has(version) {
            disk.rename(at, &to, Rename::Replace).ok();
        } else {
            disk.remove(at).ok();
        }
    }

    /// Removes texts that undo no longer needs, and the oldest beyond [`MOST_BYTES`].
    pub(super) fn forget(&mut self, needed: &Needed) {
        let disk = &*self.plans.disk;
        let dir = self.plans.known_state_dir().join(UNDO);
        let names = disk.names(&dir).unwrap_or_default();
        let mut versions: Vec<_> = names.iter().filter_map(|name| VersionName::parse(name)).collect();
        versions.sort_unstable_by_key(|it| std::cmp::Reverse(it.id));
        let mut bytes = 0;
        for version in versions {
            let at = dir.join(version.encode());
            bytes += disk.lstat(&at).map_or(0, |it| it.len);
            if needed.has(&version) && bytes <= MOST_BYTES {
                continue;
            }
            // With file leases, no program had the version open for writing when it was moved here. Without file leases this
            // is unknown, so the content is compared again.
            let Some((file, lease)) = self.without_writers(&at) else { continue };
            let Ok(text) = file.read(u64::MAX, 0) else { continue };
            let is_theirs = !text.is_empty() && Content::of(&text) != version.base;
            if is_theirs {
                self.kept.push(keep(disk, &self.plans.root, &at, KeptWhy::Late));
            } else if lease != Lease::Busy {
                disk.remove(&at).ok();
            }
        }
        if needed.log.len() > LOG_LINES {
            self.shorten(&dir, remembered(&needed.log));
        }
    }

    fn shorten(&self, dir: &Path, remembered: &[Record]) {
        let mut bytes = Vec::new();
        for line in remembered.iter().filter_map(|record| serde_json::to_vec(record).ok()) {
            bytes.extend_from_slice(&line);
            bytes.push(b'\n');
        }
        let disk = &*self.plans.disk;
        let fresh = dir.join("log.new");
        disk.remove(&fresh).ok();
        let written = write_new(disk, &fresh, 0o600, &bytes, Safe::No);
        if written.is_err() {
            return;
        }
        self.close_gap();
        disk.rename(&fresh, &dir.join(LOG), Rename::Replace).ok();
    }
}
