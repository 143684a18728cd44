//! Reads the files of the git repository that contains a plans directory, without starting git.
//!
//! Finds working trees, their common directory and branches (gitrepository-layout(5)). Does not read commits. Branches
//! in a `reftable` cannot be read here, so in such a repository every branch counts as existing.

use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

use rustix::io::Errno;

use super::error::DiskError;
use super::file_system::{Disk, FileKind};
use super::fs_ops::is;
use super::plans_dir::PlansDir;
use super::queries::read_file;
use super::records::Records;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Worktree {
    /// The directory that contains `.git`.
    pub root: PathBuf,
    own: PathBuf,
    /// Git's directory that all working trees of the repository share.
    common: PathBuf,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Head {
    /// The full name of a branch, `refs/heads/…`. The branch may have no commit yet.
    Branch(String),
    /// No branch, or one that cannot be read here.
    Detached,
}

impl PlansDir {
    pub fn worktree(&self) -> Option<Worktree> {
        self.root.ancestors().find_map(|it| Worktree::at(&*self.disk, it))
    }

    /// The path of the plans directory relative to the root of its working tree, with `/` between names.
    pub fn path_in(&self, worktree: &Worktree) -> String {
        let inside = self.root.strip_prefix(&worktree.root).unwrap_or(&self.root);
        let names = inside.components().filter_map(|it| match it {
            Component::Normal(name) => Some(name.to_string_lossy().into_owned()),
            _ => None,
        });
        names.collect::<Vec<_>>().join("/")
    }

    /// The records that all working trees of the repository share.
    pub fn shared_records(&self, worktree: &Worktree) -> Records {
        Records::shared(&self.disk, worktree.common.join("planwatch"))
    }

    /// Whether the working tree at `root` is one that a run made for a step, judged by its branch or its path.
    pub fn is_run_tree(&self, root: &Path) -> bool {
        let head = Worktree::at(&*self.disk, root).map(|it| head(&*self.disk, &it.own));
        matches!(head, Some(Head::Branch(name)) if name.starts_with("refs/heads/planwatch-run/"))
            || root.ancestors().any(|it| it.ends_with(".planwatch/trees"))
    }

    /// The records of runs that have working trees of their own.
    pub fn run_records(&self, worktree: &Worktree) -> Records {
        Records::shared(&self.disk, worktree.common.join("planwatch-run"))
    }

    pub fn head(&self, worktree: &Worktree) -> Head {
        head(&*self.disk, &worktree.own)
    }

    pub fn count_worktrees(&self, worktree: &Worktree) -> usize {
        let disk = &*self.disk;
        let linked = worktree.common.join("worktrees");
        let names = disk.names(&linked).unwrap_or_default();
        let is_there = |name: &OsString| {
            let path = line(disk, &linked.join(name).join("gitdir")).map(PathBuf::from);
            path.is_some_and(|it| disk.lstat(&it).is_ok())
        };
        let linked = names.into_iter().filter(is_there).count();
        linked + usize::from(!is_bare(disk, &worktree.common))
    }

    /// The roots of all working trees of the repository; `None` if the list may be incomplete.
    pub fn worktrees(&self, worktree: &Worktree) -> Option<Vec<PathBuf>> {
        let disk = &*self.disk;
        let Worktree { common, .. } = worktree;
        let mut roots = Vec::new();
        if !is_bare(disk, common) {
            // If git's directory has another name, only its configuration contains the path of the main working tree.
            let root = common.parent().filter(|_| common.ends_with(".git"))?;
            roots.push(root.to_path_buf());
        }
        let linked = common.join("worktrees");
        let names = match disk.names(&linked) {
            Err(error) if is(&error, Errno::NOENT) => Vec::new(),
            names => names.ok()?,
        };
        for entry in names.into_iter().map(|it| linked.join(it)) {
            let git = PathBuf::from(line(disk, &entry.join("gitdir"))?);
            match disk.lstat(&git) {
                Ok(_) => roots.push(git.parent()?.to_path_buf()),
                // A missing working tree was deleted if it is not locked. If it is locked, it may be on a disk that is not
                // mounted.
                Err(error) if is(&error, Errno::NOENT) && disk.lstat(&entry.join("locked")).is_err() => {}
                Err(_) => return None,
            }
        }
        Some(roots)
    }

    /// Whether a branch still exists: it has a commit, or the working tree at `root` has it checked out.
    pub fn has_branch(&self, worktree: &Worktree, branch: Option<&str>, root: &Path) -> bool {
        let disk = &*self.disk;
        let checked_out = || Worktree::at(disk, root).map(|it| head(disk, &it.own));
        match branch {
            // Without a branch only the working tree can be checked.
            None => checked_out().is_some(),
            Some(name) => {
                disk.lstat(&worktree.common.join("reftable")).is_ok()
                    || is_ref_name(name) && disk.lstat(&worktree.common.join(name)).is_ok()
                    || is_packed(disk, &worktree.common, name)
                    || checked_out() == Some(Head::Branch(name.to_owned()))
            }
        }
    }
}

impl Worktree {
    /// Git's own directories of this working tree, without symbolic links.
    pub(super) fn directories(self) -> [PathBuf; 2] {
        [self.own, self.common]
    }

    /// `root` should not contain symbolic links. If it does, use the result only for [`head`], which resolves them.
    pub(super) fn at(disk: &dyn Disk, root: &Path) -> Option<Self> {
        let git = root.join(".git");
        let kind = disk.lstat(&git).ok()?.kind;
        let own = match kind {
            FileKind::Dir => git,
            FileKind::Symlink => disk.canonical(&git).ok()?,
            FileKind::File => {
                let named = line(disk, &git)?;
                disk.canonical(&root.join(named.strip_prefix("gitdir:")?.trim())).ok()?
            }
            FileKind::Other => return None,
        };
        // The file `commondir` is usually missing. One `lstat` detects this; `line` would make five calls (benchmark T4).
        let common = own.join("commondir");
        let common = match disk.lstat(&common).ok().and_then(|_| line(disk, &common)) {
            Some(path) => disk.canonical(&own.join(path)).ok()?,
            None => own.clone(),
        };
        // If `.git` is not a repository, it is ignored, so that nothing is written into it.
        let is_repository = ["HEAD", "objects"].iter().all(|it| disk.lstat(&common.join(it)).is_ok());
        is_repository.then(|| Self { root: root.to_path_buf(), own, common })
    }
}

fn head(disk: &dyn Disk, own: &Path) -> Head {
    let branch =
        line(disk, &own.join("HEAD")).and_then(|it| it.strip_prefix("ref:").map(|it| it.trim().to_owned()));
    // With a reftable, `HEAD` contains the placeholder `refs/heads/.invalid`.
    branch.filter(|it| is_ref_name(it) && it != "refs/heads/.invalid").map_or(Head::Detached, Head::Branch)
}

/// Whether a name begins with `refs/` and contains no `..`, so that it is a path below the git directory.
fn is_ref_name(name: &str) -> bool {
    let is_plain = |it: Component<'_>| matches!(it, Component::Normal(_));
    name.starts_with("refs/") && Path::new(name).components().all(is_plain)
}

/// Whether `packed-refs` contains a branch. Also true if the file exists and cannot be read, for example because it is too
/// large.
fn is_packed(disk: &dyn Disk, common: &Path, branch: &str) -> bool {
    let bytes = match read_file(disk, &common.join("packed-refs")) {
        Ok(bytes) => bytes,
        Err(error) => return !matches!(error, DiskError::NotFound { .. }),
    };
    let text = String::from_utf8_lossy(&bytes);
    text.lines().any(|it| it.split_once(' ').is_some_and(|(_, name)| name == branch))
}

fn is_bare(disk: &dyn Disk, common: &Path) -> bool {
    let Ok(bytes) = read_file(disk, &common.join("config")) else { return false };
    let text = String::from_utf8_lossy(&bytes).to_lowercase();
    text.lines().any(|it| {
        it.split_once('=').is_some_and(|(key, value)| key.trim() == "bare" && value.trim() == "true")
    })
}

fn line(disk: &dyn Disk, path: &Path) -> Option<String> {
    let bytes = read_file(disk, path).ok()?;
    let text = String::from_utf8(bytes).ok()?;
    let line = text.lines().next()?.trim();
    (!line.is_empty()).then(|| line.to_owned())
}
