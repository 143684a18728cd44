//! Whether git is in the middle of an operation that a commit would disturb.

use crate::disk::{Disk, RealDisk};

use super::error::GitError;
use super::oid::Oid;
use super::repository::Git;

/// Files and directories that git creates in its own directory during an operation, and the name of the operation.
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
    /// The operation that is under way, in the words of `SIGNS`; `None` if there is none.
    pub fn operation(&self) -> Result<Option<&'static str>, GitError> {
        let is_there = |name: &str| RealDisk.lstat(&self.git_dir.join(name)).is_ok();
        if let Some((_, what)) = SIGNS.iter().find(|(name, _)| is_there(name)) {
            return Ok(Some(what));
        }
        // In a repository with reftables, these two are references, not files.
        for (name, what) in [("CHERRY_PICK_HEAD", "cherry-pick"), ("REVERT_HEAD", "revert")] {
            if self.has_reftable() && self.find_revision(name)?.is_some() {
                return Ok(Some(what));
            }
        }
        Ok(None)
    }

    /// Returns the commit onto which the last rebase moved the branch, and the commit of `HEAD` before the rebase. `None` if
    /// the last change of `HEAD` was not the end of a rebase.
    pub fn last_rebase(&self) -> Result<Option<(Oid, Oid)>, GitError> {
        Ok(read_last_rebase(&self.reflog("--max-count=10000")?))
    }

    /// Whether `HEAD` is a commit that has just been cherry-picked.
    pub fn is_picked(&self) -> Result<bool, GitError> {
        let log = self.reflog("--max-count=1")?;
        let why = log.split_once(' ').map_or("", |it| it.1);
        Ok(why.starts_with("cherry-pick") || why.starts_with("commit (cherry-pick)"))
    }

    /// Reads the reflog of `HEAD`. Each line has a commit and the reason of the change; the newest line comes first.
    fn reflog(&self, most: &str) -> Result<String, GitError> {
        let fixed = ["log", "--walk-reflogs", "--no-show-signature", "--format=%H %gs"];
        let ran = self.call(&[&fixed[..], &[most, "HEAD", "--"]].concat()).output()?;
        Ok(String::from_utf8_lossy(&ran.stdout).into_owned())
    }

    fn has_reftable(&self) -> bool {
        RealDisk.lstat(&self.common_dir.join("reftable")).is_ok()
    }
}

/// Does the work of [`Git::last_rebase`] on the output of [`Git::reflog`].
fn read_last_rebase(log: &str) -> Option<(Oid, Oid)> {
    let mut entries = log.lines().filter_map(|it| it.split_once(' '));
    entries.next().filter(|(_, why)| why.starts_with("rebase (finish)"))?;
    let start = entries.find(|(_, why)| why.starts_with("rebase (start)"))?;
    let before = entries.next()?;
    Some((Oid::read(start.0.as_bytes())?, Oid::read(before.0.as_bytes())?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rebase_counts_until_head_changes_again() {
        let oid = |digit: char| digit.to_string().repeat(40);
        let log = |last: &str| {
            let whys = [last, "rebase (pick): a", "rebase (start): checkout main", "commit: a", "commit: b"];
            let lines = whys.iter().zip('1'..).map(|(why, digit)| format!("{} {why}\n", oid(digit)));
            lines.collect::<String>()
        };
        let found = read_last_rebase(&log("rebase (finish): returning to refs/heads/a"));
        assert_eq!(found, Oid::read(oid('3').as_bytes()).zip(Oid::read(oid('4').as_bytes())));
        for last in ["commit: c", "reset: moving to HEAD~1", "rebase (pick): b"] {
            assert_eq!(read_last_rebase(&log(last)), None, "{last}");
        }
        assert_eq!(read_last_rebase(""), None);
    }
}
