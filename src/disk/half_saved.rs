//! Distinguishes a save in progress from a text that became shorter.
//!
//! Many programs truncate a file before they write it, and some of them write slowly. If planwatch changed a file at
//! such a moment, it would edit an empty text and lose the rest of the file. If it read the file for a decision, it
//! would see a step without status, order or dependencies. A save in progress is recognized because the file is much
//! shorter than before. The earlier length comes from the undo log, from the index, and from earlier reads of the same
//! command. If it is unknown, or if git has just checked out the short text, the file is accepted.

use std::cell::OnceCell;
use std::path::Path;

use super::error::DiskError;
use super::file_system::FileKind;
use super::names::Content;
use super::own_writes::{Last, LastWrites};
use super::plans_dir::{PlansDir, Snapshot};
use super::write_lock::{FileRecords, Locked};

/// How long after its last modification a file may still be in the middle of a save.
const YOUNG_NS: i128 = 2_000_000_000;

/// The lengths, in bytes, of the texts that a command has read and written while it changes one file.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Known {
    /// The greatest length that was read, or 0.
    pub read: u64,
    /// The smallest length that was written. A text that an editor made from this version may be as short.
    pub put: Option<u64>,
}

impl Known {
    pub(super) fn has_read(&mut self, text: &[u8]) {
        self.read = self.read.max(text.len() as u64);
    }

    pub(super) fn has_put(&mut self, text: &[u8]) {
        let len = text.len() as u64;
        self.put = Some(self.put.map_or(len, |it| it.min(len)));
    }
}

impl<'a> Locked<'a> {
    pub fn use_records(&mut self, records: &'a dyn FileRecords) {
        self.records = Some(records);
    }

    fn saves(&self) -> Saves<'_> {
        Saves { plans: self.plans, records: self.records, log: OnceCell::new() }
    }

    /// Whether a text looks truncated by a save in progress.
    pub(super) fn is_cut_short(&self, found: &Snapshot, known: Known) -> bool {
        self.saves().is_cut_short(found, known)
    }

    /// Like [`Saves::refuse_vanished`].
    pub fn refuse_vanished(&self, relative: &Path) -> Result<(), DiskError> {
        self.saves().refuse_vanished(relative)
    }

    /// Refuses a file that looks truncated by a save in progress. Accepts anything that is not a regular file.
    ///
    /// `real` is the file that `asked` leads to.
    pub(super) fn refuse_cut_short(&self, real: &Path, asked: &Path) -> Result<(), DiskError> {
        let Ok(stat) = self.plans.disk.lstat(&self.plans.root.join(real)) else { return Ok(()) };
        if stat.kind != FileKind::File || !self.plans.is_young(stat.mtime_ns) {
            return Ok(());
        }
        self.plans.read(asked).map_or(Ok(()), |it| self.saves().refuse_cut_short(&it))
    }
}

impl PlansDir {
    /// Whether a file with this modification time may still be in the middle of a save.
    pub fn is_young(&self, mtime_ns: i128) -> bool {
        (-YOUNG_NS..YOUNG_NS).contains(&(self.disk.now_ns() - mtime_ns))
    }

    /// Whether a directory was modified a moment ago. A file that is missing there may be in the middle of a save.
    pub fn is_young_dir(&self, relative: &Path) -> bool {
        self.disk.lstat(&self.root.join(relative)).is_ok_and(|it| self.is_young(it.mtime_ns))
    }

    pub fn saves<'a>(&'a self, records: &'a dyn FileRecords) -> Saves<'a> {
        Saves { plans: self, records: Some(records), log: OnceCell::new() }
    }
}

/// Recognizes files that are being saved.
///
/// An instance reads the undo log only once, so it must not be used for longer than a moment.
#[derive(Debug)]
pub struct Saves<'a> {
    plans: &'a PlansDir,
    records: Option<&'a dyn FileRecords>,
    log: OnceCell<LastWrites>,
}

impl Saves<'_> {
    /// Refuses a text that looks truncated by a save in progress.
    pub fn refuse_cut_short(&self, found: &Snapshot) -> Result<(), DiskError> {
        match self.is_cut_short(found, Known::default()) {
            true => Err(DiskError::HalfSaved { path: self.plans.root.join(&found.real) }),
            false => Ok(()),
        }
    }

    /// Returns an error if a file, which the caller has found missing, may have been removed a moment ago. It may be in the
    /// middle of a save: git and some editors remove a file before they write it again.
    ///
    /// There is no error for a file that is in neither the undo log nor the index, or that planwatch renamed away.
    pub fn refuse_vanished(&self, relative: &Path) -> Result<(), DiskError> {
        let is_known = || match self.last(relative) {
            Some(Last::RenamedAway) => false,
            Some(Last::Written(..) | Last::RenamedFrom(_)) => true,
            None => self.length(relative).is_some_and(|it| it > 0),
        };
        match relative.parent().is_some_and(|it| self.plans.is_young_dir(it)) && is_known() {
            true => Err(DiskError::Vanished { path: self.plans.root.join(relative) }),
            false => Ok(()),
        }
    }

    fn is_cut_short(&self, found: &Snapshot, known: Known) -> bool {
        self.plans.is_young(found.stat.mtime_ns)
            && self.is_much_shorter(found, known)
            && !self.records.is_some_and(|it| it.is_checked_out(&found.real, &found.bytes))
    }

    fn is_much_shorter(&self, found: &Snapshot, known: Known) -> bool {
        let len = found.bytes.len() as u64;
        let is_cut = |before: u64| before > 0 && len < before.div_ceil(2);
        match known {
            Known { read, put: Some(put) } => return is_cut(read.min(put)),
            Known { read, put: None } if is_cut(read) => return true,
            Known { .. } => {}
        }
        match self.last(&found.real) {
            Some(Last::Written(Some(written), _)) if is_cut(written) => true,
            // The file holds planwatch's last write, so no save is in progress.
            Some(Last::Written(_, content)) if content == Content::of(&found.bytes) => false,
            // The index may still contain the length of the file that had this path before the rename. So the length
            // under the old path is compared, too.
            Some(Last::RenamedFrom(from)) => {
                self.length(&found.asked).is_some_and(is_cut) && self.length(&from).is_none_or(is_cut)
            }
            _ => self.length(&found.asked).is_some_and(is_cut),
        }
    }

    fn length(&self, relative: &Path) -> Option<u64> {
        self.records.and_then(|it| it.length(relative))
    }

    fn last(&self, relative: &Path) -> Option<Last> {
        self.log.get_or_init(|| self.plans.last_writes()).of(relative)
    }
}
