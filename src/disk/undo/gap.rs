//! Marks the point in the log where the record of a change is missing, because it could not be written (for example on a
//! full disk).
//!
//! In this situation a marker line could not be written either. Therefore `log` is renamed to `log.gap`, which ends
//! where the missing record would be. Later records start a new `log`.

use std::path::Path;
use std::sync::atomic::Ordering;

use super::{LOG, records};
use crate::disk::file_system::Rename;
use crate::disk::fs_ops::{Safe, read_own, write_new};
use crate::disk::names::UNDO;
use crate::disk::plans_dir::PlansDir;
use crate::disk::write_lock::Locked;

/// The part of the log before the gap. If more records and another gap follow, the part between the gaps replaces it.
const GAP: &str = "log.gap";

/// The marker line that is inserted between the two files when they are read.
const LINE: &[u8] = b"\n{\"what\":\"unrecorded\"}\n";

impl PlansDir {
    /// The bytes of the whole undo log, with a marker line in place of the missing record.
    pub(in crate::disk) fn undo_log_bytes(&self, state: &Path) -> Vec<u8> {
        let dir = state.join(UNDO);
        let read = |name| read_own(&*self.disk, &dir.join(name), u64::MAX).ok().flatten();
        let (gap, log) = (read(GAP), read(LOG).unwrap_or_default());
        match gap {
            Some(before) => [before.as_slice(), LINE, &log].concat(),
            None => log,
        }
    }
}

impl Locked<'_> {
    /// Whether a change since the last call of this function could not be recorded.
    pub fn take_unrecorded(&self) -> bool {
        self.is_unrecorded.swap(false, Ordering::Relaxed)
    }

    /// Marks that a record is missing at the end of the log.
    pub(super) fn mark_gap(&self) {
        self.is_unrecorded.store(true, Ordering::Relaxed);
        let (disk, dir) = (&*self.plans.disk, self.plans.known_state_dir().join(UNDO));
        let has_gap = disk.lstat(&dir.join(GAP)).is_ok();
        let log = read_own(disk, &dir.join(LOG), u64::MAX).ok().flatten().unwrap_or_default();
        if has_gap && records(&log).next().is_none() {
            // Nothing was recorded since the last gap, so it is the same gap.
            return;
        }
        let marked = disk.rename(&dir.join(LOG), &dir.join(GAP), Rename::Replace);
        if marked.is_err() {
            // The log is removed instead. Without a log nothing can be undone, so no wrong change is undone.
            disk.remove(&dir.join(LOG)).ok();
            write_new(disk, &dir.join(GAP), 0o600, b"", Safe::No).ok();
        }
    }

    /// Removes the older part of a log that is about to be replaced as a whole.
    pub(super) fn close_gap(&self) {
        self.plans.disk.remove(&self.plans.known_state_dir().join(UNDO).join(GAP)).ok();
    }
}
