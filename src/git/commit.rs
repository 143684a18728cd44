//! Commits some files without changing what the user has staged.
//!
//! 1. The tree of the commit is made in a separate index.
//! 2. The new entries are written into the user's index. This replaces only entries that are the same as in `HEAD`, or
//!    that `git add --intent-to-add` made.
//! 3. `HEAD` is moved to the commit. If another program has moved `HEAD` meanwhile, everything is done again on the new
//!    commit.
//!
//! If step 3 came before step 2, a commit that the user made between them would revert the files.

use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::disk::{Disk, RealDisk};

use super::call::Output;
use super::error::GitError;
use super::oid::Oid;
use super::repository::Git;

/// How many times a commit is tried. A try fails if another program moves `HEAD` meanwhile.
const TRIES: u32 = 20;

/// How long to wait while another program holds the lock of the index.
const LONGEST_WAIT: Duration = Duration::from_secs(3);

const PAUSE: Duration = Duration::from_millis(25);

/// The time limit of a signed commit: a person may have to type the passphrase of a key.
const SIGNING: Duration = Duration::from_secs(300);

/// A file to commit. `bytes` is `None` if the file was removed.
#[derive(Clone, Debug)]
pub struct FileVersion {
    /// Relative to the repository's root.
    pub path: PathBuf,
    pub bytes: Option<Vec<u8>>,
}

/// The mode and the object of a path in an index or a tree; `None` if the path is not in it.
pub(super) type Entry = Option<(u32, Oid)>;

pub(super) type Entries = BTreeMap<Vec<u8>, Entry>;

/// The mode of a new file.
const PLAIN: u32 = 0o100_644;

/// The number of this process's next separate index; it makes the name of the index's file unique.
static NEXT: AtomicU32 = AtomicU32::new(0);

impl Git {
    /// Returns the branch that is checked out. Fails if jj manages the repository, if git is in the middle of an
    /// operation, or if `HEAD` is detached.
    pub fn check_may_commit(&self) -> Result<String, GitError> {
        let refused = |why: String, hint| Err(GitError::Refused { why, hint });
        if RealDisk.lstat(&self.root.join(".jj")).is_ok() {
            let why = "the repository is managed by jj, which commits by itself".to_owned();
            return refused(why, "`jj describe` and `jj commit` record the change");
        }
        if let Some(operation) = self.operation()? {
            let hint = "finish or abort it; `git status` says how";
            return refused(format!("git is in the middle of a {operation}"), hint);
        }
        match self.head_branch()? {
            Some(branch) => Ok(branch),
            None => refused("HEAD is detached".to_owned(), "check out a branch: `git switch BRANCH`"),
        }
    }

    /// Commits the files on the branch that is checked out; `None` if `HEAD` already contains these versions.
    pub fn commit(&self, files: &[FileVersion], message: &str) -> Result<Option<Oid>, GitError> {
        let mut blobs = BTreeMap::new();
        for FileVersion { path, bytes } in files {
            let blob = bytes.as_ref().map(|it| self.write_blob(path, it.clone())).transpose()?;
            blobs.insert(path.as_os_str().as_bytes().to_vec(), blob);
        }
        let is_signed = self.config_is_true("commit.gpgsign")?;
        let mut staged = Entries::new();
        let mut last = String::new();
        for _ in 0..TRIES {
            let tried = self.try_commit(files, &blobs, message, is_signed, &mut staged);
            match tried {
                Ok(Tried::Nothing) => return Ok(None),
                Ok(Tried::Done(commit)) => return Ok(Some(commit)),
                Ok(Tried::Moved(why)) => last = why,
                Err(error) => {
                    // If this fails, too, the user still sees the staged entries. The first error is returned.
                    self.unstage(&staged, files).ok();
                    return Err(error);
                }
            }
            thread::sleep(PAUSE);
        }
        self.unstage(&staged, files).ok();
        let why = format!("the branch could not be moved: {}", last.trim());
        Err(GitError::Refused { why, hint: "try again when no other program commits" })
    }

    /// Stages these versions instead of the working files. A file that is in the index keeps its mode.
    pub fn stage_versions(&self, files: &[FileVersion]) -> Result<(), GitError> {
        let in_index = self.entries_of_index(files)?;
        let (mut entries, mut any) = (Entries::new(), self.head_commit()?);
        for FileVersion { path, bytes } in files {
            let name = path.as_os_str().as_bytes().to_vec();
            let mode = in_index.get(&name).and_then(Option::as_ref).map_or(PLAIN, |it| it.0);
            let blob = bytes.as_ref().map(|it| self.write_blob(path, it.clone())).transpose()?;
            any = any.or_else(|| blob.clone());
            entries.insert(name, blob.map(|it| (mode, it)));
        }
        // Without a commit or a blob, the length of the null object's name is unknown; then the index is not changed.
        any.map_or(Ok(()), |any| self.write_index(&entries, &any))
    }

    fn try_commit(
        &self,
        files: &[FileVersion],
        blobs: &BTreeMap<Vec<u8>, Option<Oid>>,
        message: &str,
        is_signed: bool,
        staged: &mut Entries,
    ) -> Result<Tried, GitError> {
        self.check_may_commit()?;
        let head = self.head_commit()?;
        let before = self.entries_of_head(head.as_ref(), files)?;
        let had = |path: &[u8]| before.get(path).cloned().flatten();
        let wanted = blobs.iter().map(|(path, blob)| {
            let mode = had(path).map_or(PLAIN, |it| it.0);
            (path.clone(), blob.clone().map(|it| (mode, it)))
        });
        let changed: Entries = wanted.filter(|(path, entry)| had(path) != *entry).collect();
        if changed.is_empty() {
            return Ok(Tried::Nothing);
        }
        let tree = self.tree_with(head.as_ref(), &changed)?;
        let commit = self.commit_tree(&tree, &head.iter().collect::<Vec<_>>(), message, is_signed)?;
        let in_index = self.entries_of_index(files)?;
        let is_untouched = |path: &[u8]| {
            let entry = in_index.get(path).cloned().unwrap_or_default();
            entry == had(path) || had(path).is_none() && entry.is_some_and(|(_, it)| is_empty_blob(&it))
        };
        let to_stage: Entries = changed
            .iter()
            .filter(|(path, _)| is_untouched(path))
            .map(|(a, b)| (a.clone(), b.clone()))
            .collect();
        self.write_index(&to_stage, &commit)?;
        staged.extend(to_stage);
        let subject = message.lines().next().unwrap_or_default();
        let old = head.as_ref().map_or_else(|| commit.null(), Clone::clone);
        let call = self.call(&["update-ref", "-m"]).arg(format!("commit: {subject}")).arg("HEAD");
        match call.oids([&commit, &old]).output()? {
            Output { code: 0, .. } => {
                // The commit exists already, so a failure here is not reported.
                self.stage_again(staged, &before, files, &commit).ok();
                Ok(Tried::Done(commit))
            }
            Output { stderr, .. } => Ok(Tried::Moved(stderr)),
        }
    }

    /// The tree of `head` with these changes, made in an index of its own.
    pub(super) fn tree_with(&self, head: Option<&Oid>, changed: &Entries) -> Result<Oid, GitError> {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = self.git_dir.join(format!("planwatch-index.{}.{number}", std::process::id()));
        let own = |words: &[&str]| self.call(words).variable("GIT_INDEX_FILE", &path);
        let made = (|| {
            match head {
                Some(head) => own(&["read-tree"]).oids([head]).run()?,
                None => own(&["read-tree", "--empty"]).run()?,
            };
            // The entry of a removed file has the mode 0 and the null object.
            let lines = index_info(changed, head.map(Oid::null).as_ref());
            own(&["update-index", "-z", "--index-info"]).input(lines).run()?;
            read_oid("write-tree", &own(&["write-tree"]).line()?)
        })();
        // Only the index itself is removed. A lock file is left next to it only if git is killed. If the removal fails,
        // the index stays, but it is not used again.
        RealDisk.remove(&path).ok();
        made
    }

    pub(super) fn commit_tree(
        &self,
        tree: &Oid,
        parents: &[&Oid],
        message: &str,
        is_signed: bool,
    ) -> Result<Oid, GitError> {
        let mut call = self.call(&["commit-tree"]).oids([tree]);
        for parent in parents {
            call = call.arg("-p").oids([*parent]);
        }
        if is_signed {
            call = call.arg("-S").limit(SIGNING);
        }
        read_oid("commit-tree", &call.input(message).line()?)
    }

    /// Writes entries into the user's index, and waits for a while if another program holds the lock of the index.
    fn write_index(&self, entries: &Entries, any: &Oid) -> Result<(), GitError> {
        if entries.is_empty() {
            return Ok(());
        }
        let lines = index_info(entries, Some(&any.null()));
        let end = Instant::now() + LONGEST_WAIT;
        loop {
            let call = self.call(&["update-index", "-z", "--index-info"]).writes_index();
            let Output { code, stderr, .. } = call.input(lines.clone()).output()?;
            let is_locked = stderr.contains("index.lock") && stderr.contains("File exists");
            match code {
                0 => return Ok(()),
                _ if is_locked && Instant::now() < end => thread::sleep(PAUSE),
                _ if is_locked => {
                    let why =
                        "another program has held the lock of git's index for more than 3 seconds".to_owned();
                    let hint =
                        "try again when it has ended; if none runs, remove `index.lock` in the git directory";
                    return Err(GitError::Refused { why, hint });
                }
                _ => {
                    let command = "update-index".to_owned();
                    return Err(GitError::Failed { command, exit_code: code, text: stderr });
                }
            }
        }
    }

    /// Writes the new entries into the index again if another program has replaced them with those of the previous
    /// commit.
    ///
    /// `git commit` reads the index before it locks and writes the index. If `HEAD` moves in between, `git commit`
    /// fails, but the index that it wrote stays. The next commit from that index would restore the old files.
    fn stage_again(
        &self,
        staged: &Entries,
        before: &Entries,
        files: &[FileVersion],
        any: &Oid,
    ) -> Result<(), GitError> {
        let now = self.entries_of_index(files)?;
        let entry = |of: &Entries, path: &Vec<u8>| of.get(path).cloned().flatten();
        let is_old = |path: &Vec<u8>, new: &Entry| {
            entry(&now, path) == entry(before, path) && entry(&now, path) != *new
        };
        let lost = staged.iter().filter(|(path, new)| is_old(path, new));
        self.write_index(&lost.map(|(a, b)| (a.clone(), b.clone())).collect(), any)
    }

    /// After a failed commit, sets each entry that the commit wrote into the index back to the entry of `HEAD`. An entry
    /// that has changed since then stays as it is.
    fn unstage(&self, staged: &Entries, files: &[FileVersion]) -> Result<(), GitError> {
        let head = self.head_commit()?;
        let named = staged.values().flatten().map(|it| &it.1).next();
        let Some(any) = named.or(head.as_ref()).filter(|_| !staged.is_empty()).cloned() else {
            return Ok(());
        };
        let now = self.entries_of_index(files)?;
        let before = self.entries_of_head(head.as_ref(), files)?;
        let is_ours = |path: &Vec<u8>, entry: &Entry| now.get(path).cloned().unwrap_or_default() == *entry;
        let back = staged.iter().filter(|(path, entry)| is_ours(path, entry));
        let back = back.map(|(path, _)| (path.clone(), before.get(path).cloned().flatten())).collect();
        self.write_index(&back, &any)
    }

    fn entries_of_head(&self, head: Option<&Oid>, files: &[FileVersion]) -> Result<Entries, GitError> {
        let Some(head) = head else { return Ok(Entries::new()) };
        let mut entries = Entries::new();
        for part in files.chunks(MOST_PATHS) {
            let paths: Vec<_> = part.iter().map(|it| &it.path).collect();
            let found = self.tree_entries(head, &paths)?;
            entries.extend(found.into_iter().map(|it| (it.path, Some((it.mode, it.oid)))));
        }
        Ok(entries)
    }

    fn entries_of_index(&self, files: &[FileVersion]) -> Result<Entries, GitError> {
        let mut entries = Entries::new();
        for part in files.chunks(MOST_PATHS) {
            let paths: Vec<_> = part.iter().map(|it| &it.path).collect();
            for entry in self.index_entries(&paths)? {
                if entry.stage > 0 {
                    let why = format!("`{}` has a conflict", String::from_utf8_lossy(&entry.path));
                    return Err(GitError::Refused { why, hint: "resolve it first" });
                }
                entries.insert(entry.path, Some((entry.mode, entry.oid)));
            }
        }
        Ok(entries)
    }
}

/// How many paths one command line gets.
const MOST_PATHS: usize = 500;

enum Tried {
    Done(Oid),
    Nothing,
    /// `HEAD` could not be moved, usually because another program moved it meanwhile. The text is git's error message.
    Moved(String),
}

/// Lines for `update-index --index-info`.
fn index_info(entries: &Entries, null: Option<&Oid>) -> Vec<u8> {
    let mut lines = Vec::new();
    for (path, entry) in entries {
        let line = match (entry, null) {
            (Some((mode, oid)), _) => format!("{mode:06o} {oid}\t"),
            (None, Some(null)) => format!("0 {null}\t"),
            // Without a commit there is nothing to remove.
            (None, None) => continue,
        };
        lines.extend([line.as_bytes(), path, b"\0"].concat());
    }
    lines
}

/// Whether this is the object of an empty file, which `git add --intent-to-add` puts into the index.
fn is_empty_blob(oid: &Oid) -> bool {
    [
        "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391",
        "473a0f4c3be8a93681a267e3b1e9a7dcda1185436fe141f7749120a303721813",
    ]
    .contains(&oid.as_str())
}

fn read_oid(command: &'static str, line: &str) -> Result<Oid, GitError> {
    Oid::read(line.as_bytes()).ok_or_else(|| GitError::unexpected(command, line))
}
