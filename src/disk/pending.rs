//! Finds an interrupted change of several files. Commands that only read report it, and the next command that writes
//! finishes or undoes it.

use std::path::PathBuf;
use std::time::Duration;

use super::fs_ops::read_own;
use super::journal::Journal;
use super::plans_dir::PlansDir;

/// A change of several files that is neither finished nor undone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pending {
    pub verb: String,
    pub at: String,
    /// The paths that the change affects, relative to the plans directory.
    pub paths: Vec<PathBuf>,
}

impl PlansDir {
    /// Whether a change of several files is in progress or was interrupted. Taking the lock finishes or undoes an
    /// interrupted one.
    pub fn has_journal(&self) -> bool {
        self.disk.lstat(&self.state_dir().join(super::journal::JOURNAL)).is_ok()
    }

    /// Returns a change that was interrupted and that no command has finished or undone yet.
    ///
    /// `None` while a process holds the lock, because that process may be making the change.
    pub fn pending(&self) -> Option<Pending> {
        let state = self.state_dir();
        let journal = state.join(super::journal::JOURNAL);
        // Usually there is no journal; then nothing else is read.
        self.disk.lstat(&journal).ok()?;
        self.runtime_dir()?;
        let _lock = self.disk.lock(&state.join("lock"), Duration::ZERO).ok()??;
        let bytes = read_own(&*self.disk, &journal, u64::MAX).ok()??;
        let Journal { verb, at, ops, .. } = Journal::decode(&bytes)?;
        let mut paths: Vec<_> = ops.iter().flat_map(|it| <[_; 2]>::from(it.names())).flatten().collect();
        paths.sort_unstable();
        paths.dedup();
        let paths = paths.into_iter().map(std::path::Path::to_path_buf).collect();
        Some(Pending { verb, at, paths })
    }
}
