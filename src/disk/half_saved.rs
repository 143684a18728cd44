//! Telling a save that is under way from a text that became short.
//!
//! Many programs truncate a file and write it afterwards, some of them slowly. A write in between would work on an
//! empty text, and put it in the place of everything that the file held. What tells the two apart is how long the file
//! was before: by planwatch's log of its own writes, by what it read last, and by what has been read in the same command.
//! A record can only refuse a write, never allow one; without any record nothing is refused.

use std::path::Path;

use super::calls::{FileKind, Stat};
use super::error::DiskError;
use super::locked::{Lengths, Locked};
use super::names::Content;
use super::plans_dir::Snapshot;

/// How long after its last modification a file may still be in the middle of a save.
const YOUNG_NS: i128 = 2_000_000_000;

/// What a command knows of the length of a file that it changes, in bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Known {
    /// The greatest length that it has read, 0 if it has read none.
    pub read: u64,
    /// The least length that it has put into the file. What an editor makes of that may be as short.
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
    /// Names what else knows how long files were.
    pub fn ask_for_lengths(&mut self, lengths: &'a dyn Lengths) {
        self.lengths = Some(lengths);
    }

    /// Whether a text looks cut short by a save under way.
    pub(super) fn is_cut_short(&self, found: &Snapshot, known: Known) -> bool {
        if !self.is_young(&found.stat) {
            return false;
        }
        let len = found.bytes.len() as u64;
        let is_cut = |before: u64| before > 0 && len < before.div_ceil(2);
        match known {
            Known { read, put: Some(put) } => return is_cut(read.min(put)),
            Known { read, put: None } if is_cut(read) => return true,
            Known { .. } => {}
        }
        match self.plans.last_written(&found.real) {
            Some((Some(written), _)) if is_cut(written) => true,
            // Nothing but planwatch has written since.
            Some((_, content)) if content == Content::of(&found.bytes) => false,
            _ => self.lengths.and_then(|it| it.length(&found.real)).is_some_and(is_cut),
        }
    }

    /// Refuses to make a file that was removed a moment ago: git and some editors remove a file before they write it anew.
    ///
    /// A file that nothing is known of is none that was removed.
    pub fn refuse_vanished(&self, relative: &Path) -> Result<(), DiskError> {
        let path = self.plans.root.join(relative);
        let is_young = |dir: &Path| self.plans.disk.lstat(dir).is_ok_and(|it| self.is_young(&it));
        let is_known = || {
            self.plans.last_written(relative).is_some()
                || self.lengths.and_then(|it| it.length(relative)).is_some_and(|it| it > 0)
        };
        match path.parent().is_some_and(is_young) && is_known() {
            true => Err(DiskError::Vanished { path }),
            false => Ok(()),
        }
    }

    fn is_young(&self, stat: &Stat) -> bool {
        (-YOUNG_NS..YOUNG_NS).contains(&(self.plans.disk.now_ns() - stat.mtime_ns))
    }

    /// Refuses a file that looks cut short; what is no file, or not there, is for others to judge.
    pub(super) fn refuse_cut_short(&self, relative: &Path) -> Result<(), DiskError> {
        let path = self.plans.root.join(relative);
        let Ok(stat) = self.plans.disk.lstat(&path) else { return Ok(()) };
        if stat.kind != FileKind::File || !self.is_young(&stat) {
            return Ok(());
        }
        match self.plans.read(relative) {
            Ok(found) if self.is_cut_short(&found, Known::default()) => Err(DiskError::HalfSaved { path }),
            _ => Ok(()),
        }
    }
}
