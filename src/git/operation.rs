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

    /// Returns the commit onto which the last rebase moved the branch, and the commit of the branch before the rebase.
    /// `None` if the last change of `HEAD` was not the end of a branch's rebase, or if the reflogs do not show these
    /// commits.
    pub fn last_rebase(&self) -> Result<Option<(Oid, Oid)>, GitError> {
        let Some((onto, branch)) = read_last_rebase(&self.reflog("HEAD", 10_000)?) else {
            return Ok(None);
        };
        // The commit before the rebase is read from the reflog of the branch, not from that of `HEAD`:
        // `git rebase UPSTREAM BRANCH` can start while another branch is checked out, and the reflog of `HEAD` then shows
        // the commit of that branch.
        let before = read_commit_before_rebase(&self.reflog(&branch, 100)?);
        Ok(before.map(|it| (onto, it)))
    }

    /// Whether `HEAD` is a commit that has just been cherry-picked.
    pub fn is_picked(&self) -> Result<bool, GitError> {
        let log = self.reflog("HEAD", 100)?;
        let why = log.split_once(' ').map_or("", |it| it.1);
        Ok(why.starts_with("cherry-pick") || why.starts_with("commit (cherry-pick)"))
    }

    /// Reads the last `count` entries of the reflog of a reference. Each line has a commit and the reason of the change; the
    /// newest line comes first. Entries that do not move the reference are left out.
    fn reflog(&self, reference: &str, count: usize) -> Result<String, GitError> {
        let count = format!("--max-count={count}");
        let fixed = ["log", "--walk-reflogs", "--no-show-signature", "--format=%H %gs"];
        let ran = self.call(&[&fixed[..], &[&count, reference, "--"]].concat()).output()?;
        // `git stash` and `git reset` add an entry although `HEAD` stays the same.
        let log = String::from_utf8_lossy(&ran.stdout);
        Ok(log.split_inclusive('\n').filter(|it| !it.ends_with(" reset: moving to HEAD\n")).collect())
    }

    fn has_reftable(&self) -> bool {
        RealDisk.lstat(&self.common_dir.join("reftable")).is_ok()
    }
}

/// Reads the last rebase in the reflog of `HEAD`: the commit onto which it moved a branch, and the branch as `refs/heads/…`.
fn read_last_rebase(log: &str) -> Option<(Oid, String)> {
    let mut entries = log.lines().filter_map(|it| it.split_once(' '));
    let (_, end) = entries.next()?;
    let branch =
        end.strip_prefix("rebase (finish): returning to ").filter(|it| it.starts_with("refs/heads/"))?;
    let (start, _) = entries.find(|(_, why)| why.starts_with("rebase (start)"))?;
    Some((Oid::read(start.as_bytes())?, branch.to_owned()))
}

/// Reads the commit before the last rebase in the reflog of a branch. `None` if the branch changed after the rebase.
fn read_commit_before_rebase(log: &str) -> Option<Oid> {
    let mut entries = log.lines().filter_map(|it| it.split_once(' '));
    entries.next().filter(|(_, why)| why.starts_with("rebase (finish)"))?;
    Oid::read(entries.next()?.0.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A reflog whose newest entry is `last`, for the commit `111…`; the entries of `older` follow, for `222…` and so on.
    fn log(last: &str, older: &[&str]) -> String {
        let whys = [&[last], older].concat();
        whys.iter()
            .zip('1'..)
            .map(|(why, digit)| format!("{} {why}\n", digit.to_string().repeat(40)))
            .collect()
    }

    #[test]
    fn a_rebase_counts_until_head_changes_again() {
        let read = |last| {
            read_last_rebase(&log(last, &["rebase (pick): a", "rebase (start): checkout main", "commit: a"]))
        };
        let onto = Oid::read("3".repeat(40).as_bytes()).expect("a commit");
        assert_eq!(
            read("rebase (finish): returning to refs/heads/a"),
            Some((onto, "refs/heads/a".to_owned()))
        );
        for last in ["commit: c", "reset: moving to HEAD~1", "rebase (pick): b"] {
            assert_eq!(read(last), None, "{last}");
        }
        assert_eq!(read_last_rebase(""), None);
    }

    #[test]
    fn the_commit_before_a_rebase_is_the_second_of_the_branch() {
        let read = |last| read_commit_before_rebase(&log(last, &["commit: b", "commit: a"]));
        assert_eq!(read("rebase (finish): refs/heads/a onto 1"), Oid::read("2".repeat(40).as_bytes()));
        assert_eq!(read("commit: c"), None);
        assert_eq!(read_commit_before_rebase(""), None);
    }
}
