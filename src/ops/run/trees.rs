//! A separate working tree for each step of a run (`run --worktrees`).
//!
//! Each step gets a branch `planwatch-run/<run>/<plan>/<step>` and a working tree in `.planwatch/trees`. After the step
//! has been verified in its working tree, its commits are merged into `planwatch-run/<run>/main`. This branch is never
//! checked out. At the end of the run, `git merge --ff-only` moves the user's branch forward to it, and overwrites no
//! uncommitted changes. Nothing else here changes the user's own working tree.
//!
//! The progress of a run is stored in git. If a run was killed, the next run continues with its branches and working
//! trees. In addition, `begin` stores a record with the run's id and the commit at which the run began. A function that
//! was interrupted at any point can be called again.
//!
//! The plan files in the user's working tree are the valid ones, so changes of plan files on a step's branch are left out
//! of the merge.

mod begin;
mod names;

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::api::error::Error;
use crate::disk::{Disk, HeldRecord, RealDisk};
use crate::git::{Git, GitError, LinkedTree, Oid, TreeMerge};
use crate::plan::id::StepId;
use crate::plan::model::Step;

pub(super) use begin::{begin, check};

/// The maximum number of tries of a merge. The merge is tried again if the branch with the merged work has moved meanwhile.
const TRIES: usize = 20;

#[derive(Debug)]
pub(super) struct Trees {
    /// The user's working tree.
    git: Git,
    /// The plans directory, relative to the repository's root. `None`: it is outside the repository.
    plans: Option<PathBuf>,
    /// The directory of the run's working trees.
    home: PathBuf,
    run: String,
    /// The user's branch, `refs/heads/…`.
    branch: String,
    /// The commit of the user's branch when the run began.
    base: Oid,
    keeps: bool,
    /// The `PATH` for merge drivers.
    search: Option<OsString>,
    /// Held while a tree is made or removed, and while something is merged.
    one: Mutex<()>,
}

/// The working tree of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Tree {
    pub(super) path: PathBuf,
    /// Without `refs/heads/`.
    pub(super) branch: String,
}

impl Tree {
    fn full_branch(&self) -> String {
        format!("refs/heads/{}", self.branch)
    }
}

/// The result of committing a step's work before it is verified.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Gathered {
    /// Everything is committed, except the changed plan files in `left_out`.
    Ready { left_out: Vec<String> },
    /// The work cannot be merged as it is. The text gives the reason, without a full stop.
    Stuck(String),
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Merged {
    Done,
    /// The paths with conflicts.
    Conflict(Vec<String>),
}

/// The result of [`Trees::end`].
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Ended {
    /// There was no merged work, or `HEAD` contains it now.
    Merged,
    /// `HEAD` does not contain the merged work. The text gives the reason, without a full stop.
    Kept(String),
}

/// A step branch that still exists, and its working tree, if that still exists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct KeptTree {
    pub(super) branch: String,
    pub(super) worktree: Option<PathBuf>,
}

impl Trees {
    fn alone(&self) -> MutexGuard<'_, ()> {
        self.one.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The branch with the merged work, without `refs/heads/`.
    pub(super) fn main(&self) -> String {
        names::short(&names::main_of(&self.run)).to_owned()
    }

    /// The user's branch, without `refs/heads/`.
    pub(super) fn branch(&self) -> &str {
        names::short(&self.branch)
    }

    /// The plans directory in a working tree. If the plans directory is outside the repository, returns `.git`, because
    /// git reports no files in it.
    pub(super) fn plans_in(&self, tree: &Tree) -> PathBuf {
        self.plans.as_ref().map_or_else(|| tree.path.join(".git"), |it| tree.path.join(it))
    }

    fn tip(&self) -> Result<Oid, Error> {
        let name = names::main_of(&self.run);
        let found = self.git.find_ref(&name)?;
        found.ok_or_else(|| GitError::NoRevision { revision: names::short(&name).to_owned() }.into())
    }

    /// The path and the branch of a step's working tree, which need not exist.
    fn named(&self, step: &StepId, all: &[LinkedTree]) -> Tree {
        let branch = names::branch_of(&self.run, step);
        let full = format!("refs/heads/{branch}");
        // The user may have moved the tree with `git worktree move`.
        let moved = all.iter().find(|it| it.branch.as_ref() == Some(&full)).map(|it| it.path.clone());
        let path = || names::parts(step).iter().fold(self.home.clone(), |path, it| path.join(it));
        Tree { path: moved.unwrap_or_else(path), branch }
    }

    /// Whether an earlier attempt left a branch for this step.
    pub(super) fn has_branch(&self, step: &StepId) -> Result<bool, Error> {
        let name = format!("refs/heads/{}", names::branch_of(&self.run, step));
        Ok(self.git.find_ref(&name)?.is_some())
    }

    /// Returns the working tree of a step. A tree that an earlier attempt left is used again, after
    /// [`Self::bring_up_to_date`]. If there is no such tree, a new tree with the step's branch is made. If there is no
    /// such branch either, it is created at the work that has been merged so far. The caller makes sure that no process
    /// runs in the tree.
    pub(super) fn provide(&self, step: &StepId) -> Result<Tree, Error> {
        let _alone = self.alone();
        let all = self.git.linked_trees()?;
        let tree = self.named(step, &all);
        if let Some(found) = all.iter().find(|it| it.path == tree.path) {
            if found.is_unfinished {
                self.git.remove_unfinished_tree(&tree.path)?;
            } else if RealDisk.lstat(&tree.path.join(".git")).is_ok() {
                let inside = Git::at(&tree.path)?;
                inside.remove_stale_locks();
                self.bring_up_to_date(&inside)?;
                return Ok(tree);
            } else {
                // The directory is gone. Only git's record of the tree is left.
                self.git.remove_unfinished_tree(&tree.path)?;
            }
        }
        match self.git.find_ref(&tree.full_branch())? {
            Some(_) => self.git.add_tree(&tree.path, &tree.branch, None)?,
            None => self.git.add_tree(&tree.path, &tree.branch, Some(&self.tip()?))?,
        }
        Ok(tree)
    }

    /// Merges the work of other steps into a tree. If the tree has uncommitted changes or an unfinished git operation, or if
    /// there is a conflict, the tree stays as it is. A conflict is reported by the later merge of the step.
    fn bring_up_to_date(&self, inside: &Git) -> Result<(), Error> {
        let (Some(head), main) = (inside.head_commit()?, self.tip()?) else { return Ok(()) };
        if inside.operation()?.is_some() || !inside.is_clean()? || self.git.is_ancestor(&main, &head)? {
            return Ok(());
        }
        let to = match self.git.is_ancestor(&head, &main)? {
            true => main,
            false => match self.git.merge_trees(&head, &main, self.search.as_deref())? {
                TreeMerge::Conflict(_) => return Ok(()),
                TreeMerge::Clean(tree) => {
                    self.git.commit_of_tree(&tree, &[&head, &main], "Merge the work of other steps")?
                }
            },
        };
        inside.fast_forward(&to)?.ok();
        Ok(())
    }

    /// Commits what a worker left uncommitted, and reverts the worker's changes of plan files. The branch of the step then
    /// contains exactly the work to verify and merge.
    pub(super) fn gather(&self, tree: &Tree, step: &Step) -> Result<Gathered, Error> {
        let inside = Git::at(&tree.path)?;
        match inside.commit_everything(&subject(step)) {
            Ok(_) => {}
            Err(GitError::Refused { why, .. }) => {
                return Ok(Gathered::Stuck(format!("{why} in its worktree")));
            }
            Err(error @ GitError::Failed { .. }) => return Ok(Gathered::Stuck(error.to_string())),
            Err(error) => return Err(error.into()),
        }
        let Some(mut head) = inside.head_commit()? else {
            return Ok(Gathered::Stuck("its worktree has no commit".to_owned()));
        };
        let Some(base) = self.git.merge_base(&self.tip()?, &head)? else {
            let why = "its worktree has a history of its own, without the commit that it began from";
            return Ok(Gathered::Stuck(why.to_owned()));
        };
        let mut left_out = Vec::new();
        if let Some(plans) = &self.plans
            && let Some((whole, paths)) = self.git.tree_with_path_of(&head, plans, &base)?
        {
            let message = format!("Leave out changes of plan files\n\n{}\n", paths.join("\n"));
            let commit = self.git.commit_of_tree(&whole, &[&head], &message)?;
            if let Err(why) = inside.fast_forward(&commit)? {
                return Ok(Gathered::Stuck(format!("changes of plan files could not be undone: {why}")));
            }
            (head, left_out) = (commit, paths);
        }
        self.follow(tree, &inside, &head).map(|stuck| stuck.unwrap_or(Gathered::Ready { left_out }))
    }

    /// If the worker has switched to another branch, moves the step's branch to the commit that is checked out in its tree.
    fn follow(&self, tree: &Tree, inside: &Git, head: &Oid) -> Result<Option<Gathered>, Error> {
        let name = tree.full_branch();
        if inside.head_branch()?.as_ref() == Some(&name) {
            return Ok(None);
        }
        let tip = self.git.find_ref(&name)?;
        if let Some(tip) = tip.as_ref().filter(|it| *it != head)
            && !self.git.is_ancestor(tip, head)?
        {
            let branch = &tree.branch;
            return Ok(Some(Gathered::Stuck(format!(
                "its worktree has a commit checked out that does not contain the commits of `{branch}`"
            ))));
        }
        if tip.as_ref() != Some(head) {
            self.git.move_ref(&name, tip.as_ref(), head, "run: as checked out")?;
        }
        Ok(None)
    }

    /// Merges the branch of a verified step into the run's branch.
    pub(super) fn merge(&self, tree: &Tree, step: &Step) -> Result<Merged, Error> {
        let _alone = self.alone();
        let theirs = self.git.find_ref(&tree.full_branch())?;
        let theirs = theirs.ok_or_else(|| GitError::NoRevision { revision: tree.branch.clone() })?;
        let name = names::main_of(&self.run);
        let mut last = None;
        for _ in 0..TRIES {
            let ours = self.tip()?;
            if self.git.is_ancestor(&theirs, &ours)? {
                return Ok(Merged::Done);
            }
            let merged = match self.git.is_ancestor(&ours, &theirs)? {
                true => theirs.clone(),
                false => match self.git.merge_trees(&ours, &theirs, self.search.as_deref())? {
                    TreeMerge::Conflict(paths) => return Ok(Merged::Conflict(paths)),
                    TreeMerge::Clean(whole) => {
                        let message = format!("Merge step {} of {}\n", step.id.number, step.id.plan);
                        self.git.commit_of_tree(&whole, &[&ours, &theirs], &message)?
                    }
                },
            };
            match self.git.move_ref(&name, Some(&ours), &merged, "run: merge a step") {
                Ok(()) => return Ok(Merged::Done),
                Err(error) if self.tip()? == ours => return Err(error.into()),
                Err(error) => last = Some(error),
            }
        }
        Err(last.map_or_else(|| GitError::NoRevision { revision: name }.into(), Into::into))
    }

    /// Removes the tree and the branch of a step, if its work is merged and the run does not keep trees. Returns false if
    /// the tree stays because it has uncommitted files.
    pub(super) fn remove(&self, tree: &Tree) -> Result<bool, Error> {
        if self.keeps {
            return Ok(true);
        }
        let _alone = self.alone();
        let Some(tip) = self.git.find_ref(&tree.full_branch())? else { return Ok(true) };
        if !self.git.is_ancestor(&tip, &self.tip()?)? {
            return Ok(true);
        }
        if RealDisk.lstat(&tree.path.join(".git")).is_ok() && !self.git.remove_tree(&tree.path)? {
            return Ok(false);
        }
        self.git.delete_ref(&tree.full_branch(), &tip)?;
        // Remove the directories that are empty now.
        for above in tree.path.ancestors().skip(1).take_while(|it| it.starts_with(&self.home)) {
            if RealDisk.remove_dir(above).is_err() {
                break;
            }
        }
        Ok(true)
    }

    /// The step branches that still exist, without `refs/heads/`.
    pub(super) fn left(&self) -> Result<BTreeSet<String>, Error> {
        let main = names::main_of(&self.run);
        let all = self.git.refs_below(&names::refs_of(&self.run))?;
        Ok(all.into_iter().filter(|it| it.name != main).map(|it| it.short().to_owned()).collect())
    }

    pub(super) fn branch_of(&self, step: &StepId) -> String {
        names::branch_of(&self.run, step)
    }

    /// The step branches that still exist, with their working trees.
    pub(super) fn kept(&self) -> Result<Vec<KeptTree>, Error> {
        let left = self.left()?;
        if left.is_empty() {
            return Ok(Vec::new());
        }
        let trees = self.git.linked_trees()?;
        let tree_of = |branch: &String| {
            let full = format!("refs/heads/{branch}");
            trees.iter().find(|it| it.branch.as_ref() == Some(&full)).map(|it| it.path.clone())
        };
        Ok(left.into_iter().map(|branch| KeptTree { worktree: tree_of(&branch), branch }).collect())
    }

    /// Moves the user's branch forward to the merged work.
    pub(super) fn end(&self) -> Result<Ended, Error> {
        let tip = self.tip()?;
        let head = self.git.head_commit()?;
        let is_in_head = head.as_ref().map_or(Ok(false), |it| self.git.is_ancestor(&tip, it))?;
        let is_unmoved =
            head.as_ref() == Some(&self.base) && self.git.head_branch()?.as_ref() == Some(&self.branch);
        match ending(tip == self.base, is_in_head, is_unmoved) {
            Ending::Nothing => {}
            Ending::Moved => {
                let why = "HEAD has moved since the run began, so the run's work is not merged";
                return Ok(Ended::Kept(why.to_owned()));
            }
            Ending::Forward => {
                if let Err(said) = self.git.fast_forward(&tip)? {
                    return Ok(Ended::Kept(why_kept(&said)));
                }
            }
        }
        self.git.delete_ref(&names::main_of(&self.run), &tip)?;
        Ok(Ended::Merged)
    }

    /// Removes the record of the run, unless a branch of the run still exists.
    pub(super) fn forget(&self, held: &HeldRecord) -> Result<(), Error> {
        if self.git.refs_below(&names::refs_of(&self.run))?.is_empty() {
            // It does no harm if the record stays: the next run only gets the same id.
            held.remove().ok();
        }
        Ok(())
    }

    /// Why a step is not merged, and where its work is.
    pub(super) fn why(&self, tree: &Tree, why: &str) -> String {
        let (path, branch) = (self.shown(&tree.path), &tree.branch);
        format!("{why}; its branch is `{branch}`, its worktree {path}")
    }

    /// Formats a path for messages: relative to the repository's root, if the path is below the root.
    pub(super) fn shown(&self, path: &Path) -> String {
        path.strip_prefix(&self.git.root).unwrap_or(path).display().to_string()
    }
}

/// What the end of a run has to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ending {
    Nothing,
    Forward,
    Moved,
}

fn ending(is_empty: bool, is_in_head: bool, is_unmoved: bool) -> Ending {
    match (is_empty, is_in_head, is_unmoved) {
        (true, ..) | (_, true, _) => Ending::Nothing,
        (false, false, true) => Ending::Forward,
        (false, false, false) => Ending::Moved,
    }
}

pub(super) fn conflict(paths: &[String]) -> String {
    format!("its changes conflict with those of other steps in {}", paths.join(", "))
}

/// The reason why git did not move the user's branch, in one line.
fn why_kept(said: &str) -> String {
    let said = said.strip_prefix("error: ").unwrap_or(said);
    let files: Vec<_> = said.lines().filter_map(|it| it.strip_prefix('\t')).collect();
    if files.is_empty() {
        let line = said.lines().next().unwrap_or("it gave no reason");
        return format!("git did not merge the run's work: {line}");
    }
    format!("the run's work is not merged, because it would overwrite {}", files.join(", "))
}

/// The message of a commit that the run makes for a worker.
fn subject(step: &Step) -> String {
    let title: Vec<_> = step.title.split_whitespace().collect();
    format!("{}\n\nStep {} of {}\n", title.join(" "), step.id.number, step.id.plan)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_users_branch_moves_only_if_nothing_else_moved_it() {
        let table = [
            ((true, false, true), Ending::Nothing),
            ((true, false, false), Ending::Nothing),
            ((true, true, true), Ending::Nothing),
            ((false, true, false), Ending::Nothing),
            ((false, true, true), Ending::Nothing),
            ((false, false, true), Ending::Forward),
            ((false, false, false), Ending::Moved),
        ];
        for ((is_empty, is_in_head, is_unmoved), expected) in table {
            assert_eq!(ending(is_empty, is_in_head, is_unmoved), expected);
        }
    }

    #[test]
    fn the_message_of_git_becomes_one_line() {
        let said = "error: Your local changes to the following files would be overwritten by merge:\n\tcode\n\ta b\n\
                    Please commit your changes or stash them before you merge.\nAborting";
        let why = "the run's work is not merged, because it would overwrite code, a b";
        assert_eq!(why_kept(said), why);
        assert_eq!(why_kept("fatal: no"), "git did not merge the run's work: fatal: no");
    }
}
