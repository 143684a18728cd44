//! Merging commits without a working tree, and moving references.
//!
//! `git merge-tree` reads attributes from the working tree in which it is started. Here, it reads them from a commit, and
//! the command line sets planwatch's merge driver. So the result is the same for any working tree, and in clones that have
//! not set up the driver.

use std::ffi::OsStr;
use std::path::Path;

use super::call::Output;
use super::commit::Entries;
use super::error::GitError;
use super::merge_file::MERGE_DRIVER;
use super::oid::Oid;
use super::refs::{Branch, FORMAT, read_branches};
use super::repository::Git;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TreeMerge {
    /// The merged tree.
    Clean(Oid),
    /// The paths with conflicts.
    Conflict(Vec<String>),
}

/// Reads the output of `merge-tree --write-tree -z --name-only --no-messages`. `code` is the exit code of that command.
fn read_merge(code: i32, stdout: &[u8]) -> Result<TreeMerge, GitError> {
    let bad = || GitError::unexpected("merge-tree", String::from_utf8_lossy(stdout));
    let mut parts = stdout.split(|it| *it == 0);
    let tree = parts.next().and_then(Oid::read).ok_or_else(bad)?;
    if code == 0 {
        return Ok(TreeMerge::Clean(tree));
    }
    let paths = parts.take_while(|it| !it.is_empty()).map(|it| String::from_utf8_lossy(it).into_owned());
    Ok(TreeMerge::Conflict(paths.collect()))
}

impl Git {
    /// Merges two commits. Attributes are those of `ours`. `search` is the `PATH` for merge drivers; with `None`, they
    /// inherit that of this process.
    pub fn merge_trees(
        &self,
        ours: &Oid,
        theirs: &Oid,
        search: Option<&OsStr>,
    ) -> Result<TreeMerge, GitError> {
        let words = ["merge-tree", "--write-tree", "-z", "--name-only", "--no-messages"];
        let call = self.call(&words).attributes_of(ours).config("merge.planwatch.driver", MERGE_DRIVER);
        let call = match search {
            Some(search) => call.variable("PATH", search),
            None => call,
        };
        let Output { code, stdout, stderr } = call.shielded().oids([ours, theirs]).output()?;
        match code {
            0 | 1 => read_merge(code, &stdout),
            _ => Err(GitError::Failed { command: "merge-tree".to_owned(), exit_code: code, text: stderr }),
        }
    }

    /// Makes a commit of a tree, signed as configured.
    pub fn commit_of_tree(&self, tree: &Oid, parents: &[&Oid], message: &str) -> Result<Oid, GitError> {
        let is_signed = self.config_is_true("commit.gpgsign")?;
        self.commit_tree(tree, parents, message, is_signed)
    }

    /// Makes the tree of `commit`, but takes everything below `path` from `other`. Returns the new tree and the paths that
    /// differ; `None` if there is no difference.
    pub fn tree_with_path_of(
        &self,
        commit: &Oid,
        path: &Path,
        other: &Oid,
    ) -> Result<Option<(Oid, Vec<String>)>, GitError> {
        let entries = |of: &Oid| -> Result<Entries, GitError> {
            let all = self.tree_entries(of, &[path])?;
            Ok(all.into_iter().map(|it| (it.path, Some((it.mode, it.oid)))).collect())
        };
        let (now, then) = (entries(commit)?, entries(other)?);
        let mut changed: Entries = then
            .iter()
            .filter(|(path, it)| now.get(*path) != Some(it))
            .map(|(a, b)| (a.clone(), b.clone()))
            .collect();
        changed.extend(now.keys().filter(|it| !then.contains_key(*it)).map(|it| (it.clone(), None)));
        if changed.is_empty() {
            return Ok(None);
        }
        let tree = self.tree_with(Some(commit), &changed)?;
        Ok(Some((tree, changed.keys().map(|it| String::from_utf8_lossy(it).into_owned()).collect())))
    }

    /// Finds the commit that a reference points to. `name` is its full name. `None` if there is no such reference.
    pub fn find_ref(&self, name: &str) -> Result<Option<Oid>, GitError> {
        let refs = self.refs_below(name)?;
        Ok(refs.into_iter().find(|it| it.name == name).map(|it| it.tip))
    }

    /// The reference with this full name, and the references below it.
    pub fn refs_below(&self, name: &str) -> Result<Vec<Branch>, GitError> {
        read_branches(&self.call(&["for-each-ref", FORMAT]).arg(name).run()?)
    }

    /// Moves a reference from `old` to `new`, or creates it if `old` is `None`. Fails if its value is not `old`.
    pub fn move_ref(&self, name: &str, old: Option<&Oid>, new: &Oid, why: &str) -> Result<(), GitError> {
        let old = old.map_or_else(|| new.null(), Clone::clone);
        let call = self.call(&["update-ref", "-m"]).arg(why).arg(name).oids([new, &old]);
        call.shielded().run().map(drop)
    }

    /// Deletes a reference; fails if its value is not `old`.
    pub fn delete_ref(&self, name: &str, old: &Oid) -> Result<(), GitError> {
        self.call(&["update-ref", "-d"]).arg(name).oids([old]).shielded().run().map(drop)
    }

    /// Fails if git has no committer identity.
    pub fn check_has_identity(&self) -> Result<(), GitError> {
        let Output { code, .. } = self.call(&["var", "GIT_COMMITTER_IDENT"]).output()?;
        if code == 0 {
            return Ok(());
        }
        let why = "git does not know who commits".to_owned();
        let hint = "set your name and address with `git config user.name` and `git config user.email`";
        Err(GitError::Refused { why, hint })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_of_a_merge_is_read() {
        let oid = "0123456789012345678901234567890123456789";
        let tree = Oid::read(oid.as_bytes()).unwrap();
        let read = |code, more: &str| read_merge(code, format!("{oid}{more}").as_bytes());
        assert_eq!(read(0, "\0").unwrap(), TreeMerge::Clean(tree));
        let paths = ["a b".to_owned(), "c".to_owned()].to_vec();
        assert_eq!(read(1, "\0a b\0c\0").unwrap(), TreeMerge::Conflict(paths.clone()));
        assert_eq!(read(1, "\0a b\0c\0\x001\0a b\0Auto-merging\0").unwrap(), TreeMerge::Conflict(paths));
        assert!(read_merge(0, b"").is_err() && read_merge(1, b"no tree\0a\0").is_err());
    }
}
