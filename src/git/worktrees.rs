//! Linked working trees: making, listing and removing them, and committing everything in one of them.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use crate::disk::{Disk, RealDisk};

use super::call::{Call, Output};
use super::error::GitError;
use super::oid::Oid;
use super::repository::Git;
use super::status::{FileStatus, StatusKind};

/// The time limit of calls in which git may have to read or write a large tree.
const LIMIT: Duration = Duration::from_secs(600);

/// How long a call waits while another program has the index locked.
const LONGEST_WAIT: Duration = Duration::from_secs(3);

const PAUSE: Duration = Duration::from_millis(50);

/// The maximum number of paths on one command line.
const MOST_PATHS: usize = 500;

/// The mode of an entry that names a commit of another repository.
const GITLINK: u32 = 0o160_000;

/// An empty list of paths, for which git processes all paths.
const NO_PATHS: [&str; 0] = [];

/// The reason with which git locks a working tree while git makes the tree. planwatch locks a tree with the same reason
/// before it removes the tree.
const BEING_MADE: &str = "initializing";

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkedTree {
    pub path: PathBuf,
    /// `refs/heads/…`; `None` if `HEAD` is detached.
    pub branch: Option<String>,
    /// Whether making or removing the tree was not completed. Such a tree may lack files, and contains no uncommitted work.
    pub is_unfinished: bool,
}

/// Reads the output of `worktree list --porcelain -z`.
pub fn read_worktrees(bytes: &[u8]) -> Result<Vec<LinkedTree>, GitError> {
    let mut trees: Vec<LinkedTree> = Vec::new();
    for line in bytes.split(|it| *it == 0).filter(|it| !it.is_empty()) {
        if let Some(path) = line.strip_prefix(b"worktree ") {
            let path = PathBuf::from(OsStr::from_bytes(path));
            trees.push(LinkedTree { path, branch: None, is_unfinished: false });
            continue;
        }
        let tree = trees.last_mut();
        let tree =
            tree.ok_or_else(|| GitError::unexpected("worktree list", String::from_utf8_lossy(line)))?;
        if let Some(branch) = line.strip_prefix(b"branch ") {
            tree.branch = Some(String::from_utf8_lossy(branch).into_owned());
        } else if line.strip_prefix(b"locked ") == Some(BEING_MADE.as_bytes()) {
            tree.is_unfinished = true;
        }
    }
    Ok(trees)
}

impl Git {
    /// All working trees of the repository, the main one first.
    pub fn linked_trees(&self) -> Result<Vec<LinkedTree>, GitError> {
        read_worktrees(&self.call(&["worktree", "list", "--porcelain", "-z"]).run()?)
    }

    /// Makes a working tree with a branch. `branch` is a name that planwatch made, without `refs/heads/`. With `start`, the
    /// branch is created at that commit; without `start`, the branch must exist.
    pub fn add_tree(&self, path: &Path, branch: &str, start: Option<&Oid>) -> Result<(), GitError> {
        let call = match start {
            Some(_) => self.call(&["worktree", "add", "--quiet", "-b"]).arg(branch),
            None => self.call(&["worktree", "add", "--quiet"]),
        };
        let call = call.arg(path);
        let call = if let Some(start) = start { call.oids([start]) } else { call.arg(branch) };
        call.shielded().limit(LIMIT).run().map(drop)
    }

    /// Removes a working tree. Returns false and removes nothing if the tree contains one of these:
    /// - changes that are not committed, or files that are neither committed nor ignored,
    /// - changed files that are marked as `skip-worktree` or `assume-unchanged`,
    /// - submodules, or other repositories that the index names.
    ///
    /// The tree is locked first. If the removal is interrupted, the lock shows that the tree is incomplete.
    pub fn remove_tree(&self, path: &Path) -> Result<bool, GitError> {
        let inside = Self::at(path)?;
        let has_modules = RealDisk.lstat(&inside.git_dir.join("modules")).is_ok();
        if !inside.is_clean()? || has_modules || inside.has_repositories()? || inside.has_hidden_changes()? {
            return Ok(false);
        }
        self.call(&["worktree", "lock", "--reason", BEING_MADE]).arg(path).run()?;
        self.remove_unfinished_tree(path)?;
        Ok(true)
    }

    /// Removes a working tree with all its files, even if git was killed while making or removing the tree. If only
    /// git's record of the tree is left, the record is removed.
    pub fn remove_unfinished_tree(&self, path: &Path) -> Result<(), GitError> {
        let call = self.call(&["worktree", "remove", "--force", "--force"]).arg(path);
        call.shielded().limit(LIMIT).run().map(drop)
    }

    /// Removes the lock files that killed git processes have left for this working tree. No process may be running in the
    /// tree.
    pub fn remove_stale_locks(&self) {
        for name in ["index.lock", "HEAD.lock"] {
            RealDisk.remove(&self.git_dir.join(name)).ok();
        }
    }

    /// Whether everything in the working tree is committed or ignored.
    pub fn is_clean(&self) -> Result<bool, GitError> {
        Ok(self.status(&NO_PATHS)?.is_empty())
    }

    /// Whether files that are marked with `update-index --skip-worktree` or `--assume-unchanged` differ from `HEAD`. Files
    /// that do not exist because a sparse checkout leaves them out are not compared.
    fn has_hidden_changes(&self) -> Result<bool, GitError> {
        let listed = self.call(&["ls-files", "-v", "-z"]).limit(LIMIT).run()?;
        let entries = listed.split(|it| *it == 0).filter_map(|it| Some((*it.first()?, it.get(2..)?)));
        let is_there = |path: &[u8]| RealDisk.lstat(&self.root.join(OsStr::from_bytes(path))).is_ok();
        let is_hidden = |(tag, path): &(u8, &[u8])| match tag {
            b'S' | b's' => is_there(path),
            _ => tag.is_ascii_lowercase(),
        };
        let hidden: Vec<&[u8]> = entries.filter(is_hidden).map(|(_, path)| path).collect();
        if hidden.is_empty() {
            return Ok(false);
        }
        // The comparison uses a separate index, in which no file is marked. The marks in the index of the tree stay.
        let path = self.git_dir.join("planwatch-index");
        let own = |words: &[&str]| self.call(words).variable("GIT_INDEX_FILE", &path).limit(LIMIT);
        let differs = (|| {
            own(&["read-tree", "HEAD"]).run()?;
            for paths in hidden.chunks(MOST_PATHS) {
                let paths = paths.iter().map(|it| OsStr::from_bytes(it));
                if own(&["diff", "--quiet", "--no-ext-diff", "HEAD"]).paths(paths).output()?.code != 0 {
                    return Ok(true);
                }
            }
            Ok(false)
        })();
        RealDisk.remove(&path).ok();
        differs
    }

    /// Whether the index names a repository that is in this working tree.
    fn has_repositories(&self) -> Result<bool, GitError> {
        let entries = self.index_entries(&NO_PATHS)?;
        Ok(entries.iter().filter(|it| it.mode == GITLINK).any(|it| self.is_repository(&it.path)))
    }

    /// Whether a path, relative to the root, is the top directory of another repository.
    fn is_repository(&self, path: &[u8]) -> bool {
        RealDisk.lstat(&self.root.join(OsStr::from_bytes(path)).join(".git")).is_ok()
    }

    /// Commits everything in this working tree except ignored files. `None` if there is nothing to commit.
    ///
    /// Refuses during a merge or a similar operation, because unresolved conflicts would be committed. Also refuses if the
    /// tree contains an untracked git repository, because git would commit only the id of its current commit.
    pub fn commit_everything(&self, message: &str) -> Result<Option<Oid>, GitError> {
        let refused = |why: String, hint| Err(GitError::Refused { why, hint });
        if let Some(operation) = self.operation()? {
            let hint = "finish or abort it in its working tree; `git status` says how";
            return refused(format!("git is in the middle of a {operation}"), hint);
        }
        if !self.unmerged_entries(&NO_PATHS)?.is_empty() {
            let hint = "resolve them in the working tree; `git status` lists them";
            return refused("there are conflicts that are not resolved".to_owned(), hint);
        }
        let changed = self.status(&NO_PATHS)?;
        if changed.is_empty() {
            return Ok(None);
        }
        let is_new = |it: &&FileStatus| it.kind == StatusKind::Untracked;
        if let Some(it) = changed.iter().filter(is_new).find(|it| self.is_repository(&it.path)) {
            let path = String::from_utf8_lossy(&it.path).into_owned();
            let why = format!("`{path}` is a git repository of its own");
            let hint = "move it out of that working tree, ignore it, or make it a submodule";
            return Err(GitError::Refused { why, hint });
        }
        let add = || self.call(&["add", "--all"]).writes_index().shielded().limit(LIMIT);
        self.once_unlocked(add)?;
        let Output { code, .. } = self.call(&["diff", "--cached", "--quiet", "HEAD"]).output()?;
        if code == 0 {
            return Ok(None);
        }
        let commit = || {
            let call =
                self.call(&["commit", "--quiet", "--no-verify", "--cleanup=verbatim", "--file=-"]).quietly();
            call.writes_index().limit(LIMIT).input(message)
        };
        self.once_unlocked(commit)?;
        self.head_commit()
    }

    /// Fast-forwards the branch that is checked out, with the index and the files, to a commit. If git fails, returns its
    /// error message. Git fails if this is not a fast-forward, or if it would overwrite ignored files or anything that is
    /// not committed.
    pub fn fast_forward(&self, to: &Oid) -> Result<Result<(), String>, GitError> {
        let words = ["merge", "--ff-only", "--no-autostash", "--no-overwrite-ignore", "--no-stat", "--quiet"];
        let call = || self.call(&words).quietly().writes_index().shielded().limit(LIMIT).oids([to]);
        match self.once_unlocked(call) {
            Ok(_) => Ok(Ok(())),
            Err(GitError::Failed { text, .. }) => Ok(Err(text.trim().to_owned())),
            Err(error) => Err(error),
        }
    }

    /// Runs a command that writes the index. If another program has the index locked, tries again for [`LONGEST_WAIT`].
    fn once_unlocked(&self, call: impl Fn() -> Call) -> Result<Vec<u8>, GitError> {
        let end = Instant::now() + LONGEST_WAIT;
        loop {
            match call().run() {
                Err(GitError::Failed { text, .. }) if is_locked(&text) && Instant::now() < end => {
                    thread::sleep(PAUSE);
                }
                other => return other,
            }
        }
    }
}

fn is_locked(text: &str) -> bool {
    text.contains(".lock") && text.contains("File exists")
}

impl Call {
    /// Keeps git from cleaning up in the background and from updating submodules.
    fn quietly(self) -> Self {
        self.config("gc.auto", "0").config("maintenance.auto", "false").config("submodule.recurse", "false")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_attribute_of_a_tree_is_read() {
        let text = "worktree /a b\0HEAD 12\0branch refs/heads/main\0\0worktree /c\0HEAD 12\0detached\0locked initializing\0\0\
                    worktree /d\0HEAD 12\0branch refs/heads/planwatch-run/x/p/1\0locked a usb stick\0prunable gone\0\0";
        let trees = read_worktrees(text.as_bytes()).unwrap();
        let tree = |path: &str, branch: Option<&str>, is_unfinished| LinkedTree {
            path: path.into(),
            branch: branch.map(str::to_owned),
            is_unfinished,
        };
        let expected = [
            tree("/a b", Some("refs/heads/main"), false),
            tree("/c", None, true),
            tree("/d", Some("refs/heads/planwatch-run/x/p/1"), false),
        ];
        assert_eq!(trees, expected);
        assert!(read_worktrees(b"HEAD 12\0").is_err());
        assert_eq!(read_worktrees(b"").unwrap(), []);
    }
}
