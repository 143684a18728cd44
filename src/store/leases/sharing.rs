//! Whether claims made here are seen by the repository's other working trees.

use super::Leases;
use super::locked::error_text;

/// Why claims are not shared: no records can be written to the directory that all working trees share.
pub(crate) struct NotShared {
    pub(crate) path: String,
    pub(crate) why: String,
    /// Whether another working tree exists, which should see the records.
    pub(crate) is_missed: bool,
}

impl Leases<'_> {
    /// Checks whether the shared records can be written; `None` if they can, or if there is no repository.
    pub(crate) fn not_shared(&self) -> Option<NotShared> {
        let (shared, worktree) = self.shared.as_ref().zip(self.worktree.as_ref())?;
        let why = error_text(&shared.is_writable().err()?);
        let is_missed = self.context.plans.count_worktrees(worktree) > 1;
        Some(NotShared { path: shared.dir().display().to_string(), why, is_missed })
    }
}
