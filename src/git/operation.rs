//! Whether git is in the middle of an operation that a commit would disturb.

use crate::disk::{Disk, RealDisk};

use super::error::GitError;
use super::repository::Git;

/// Files and directories in git's own directory, and what they mean.
const SIGNS: [(&str, &str); 8] = [
    ("MERGE_HEAD", "merge"),
    ("rebase-merge", "rebase"),
    ("rebase-apply", "rebase"),
    ("CHERRY_PICK_HEAD", "cherry-pick"),
    ("REVERT_HEAD", "revert"),
    ("sequencer", "cherry-pick or revert"),
    ("BISECT_LOG", "bisect"),
    ("BISECT_START", "bisect"),
];

impl Git {
    /// The operation that is under way: `merge`, `rebase`, `cherry-pick`, `revert` or `bisect`.
    pub fn operation(&self) -> Result<Option<&'static str>, GitError> {
        let is_there = |name: &str| RealDisk.lstat(&self.git_dir.join(name)).is_ok();
        if let Some((_, what)) = SIGNS.iter().find(|(name, _)| is_there(name)) {
            return Ok(Some(what));
        }
        // A reftable keeps these two among the references.
        for (name, what) in [("CHERRY_PICK_HEAD", "cherry-pick"), ("REVERT_HEAD", "revert")] {
            if self.has_reftable() && self.find_revision(name)?.is_some() {
                return Ok(Some(what));
            }
        }
        Ok(None)
    }

    fn has_reftable(&self) -> bool {
        RealDisk.lstat(&self.common_dir.join("reftable")).is_ok()
    }
}
