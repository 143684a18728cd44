//! A repository with a working tree, and queries about its revisions.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use crate::disk::{Disk, RealDisk};

use super::call::{Call, Output};
use super::error::GitError;
use super::oid::Oid;
use super::version::{OLDEST, Version};

#[derive(Clone, Debug)]
pub struct Git {
    /// The top directory of the working tree; calls start here.
    pub root: PathBuf,
    /// git's own directory of this working tree.
    pub git_dir: PathBuf,
    /// The directory that all working trees of the repository share.
    pub common_dir: PathBuf,
    pub version: Version,
}

/// The commit that is checked out, and whether its history is complete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// `None` before the first commit.
    pub commit: Option<Oid>,
    /// Whether a shallow clone lacks a part of the history.
    pub is_shallow: bool,
}

/// The commits that a person named: `REV`, `A..B` or `A...B`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Range {
    One(Oid),
    Between {
        from: Oid,
        to: Oid,
    },
    /// From the merge base of both.
    SinceBase {
        from: Oid,
        to: Oid,
    },
}

impl Git {
    /// Finds the repository whose working tree contains `directory`. In a submodule, this is the submodule's repository.
    pub fn at(directory: &Path) -> Result<Self, GitError> {
        Ok(Self::with_head(directory)?.0)
    }

    /// Like [`Self::at`], but also returns `HEAD`, which the same git process reports.
    pub fn with_head(directory: &Path) -> Result<(Self, Head), GitError> {
        // Starting a process takes longer than its work, so the two processes run in parallel.
        let version = Call::new(directory, &["version"]).stream()?;
        let words = [
            "rev-parse",
            "--show-toplevel",
            "--absolute-git-dir",
            "--git-common-dir",
            "--is-shallow-repository",
            "--revs-only",
            "HEAD",
        ];
        let found = Call::new(directory, &words).output();
        let version = read_version(&version.run()?)?;
        let Output { code, stdout, stderr } = found?;
        let path = || directory.display().to_string();
        if code != 0 {
            let is_none =
                stderr.contains("not a git repository") || stderr.contains("must be run in a work tree");
            return Err(match is_none {
                true => GitError::NotARepository { path: path() },
                false => GitError::Failed { command: "rev-parse".to_owned(), exit_code: code, text: stderr },
            });
        }
        let lines: Vec<_> = stdout.strip_suffix(b"\n").unwrap_or(&stdout).split(|it| *it == b'\n').collect();
        let (paths, head) = lines.split_at(lines.len().min(3));
        let commit = head.get(1).map(|it| Oid::read(it));
        let ([root, git_dir, common], [b"true" | b"false", ..], 1 | 2, None | Some(Some(_))) =
            (paths, head, head.len(), &commit)
        else {
            return Err(GitError::unexpected("rev-parse", "a path contains a line break"));
        };
        let path = |it: &[u8]| PathBuf::from(OsString::from_vec(it.to_vec()));
        // git may print this path relative to the working directory.
        let common_dir = directory.join(path(common));
        let head = Head { commit: commit.flatten(), is_shallow: head[0] == b"true" };
        Ok((Self { root: path(root), git_dir: path(git_dir), common_dir, version }, head))
    }

    /// Returns an error if git is older than this version; `for_what` names the feature that needs it.
    pub fn require(&self, major: u32, minor: u32, for_what: &'static str) -> Result<(), GitError> {
        let needed = Version { major, minor };
        match self.version < needed {
            true => Err(GitError::TooOld { found: self.version, needed, for_what }),
            false => Ok(()),
        }
    }

    /// A call in the working tree's top directory. The words are fixed arguments; paths, revisions and other input are
    /// added with the methods of [`Call`].
    ///
    /// The call does not fetch objects that a partial clone lacks. Git before 2.45 ignores `GIT_NO_LAZY_FETCH`, so all
    /// protocols are disabled for such a version.
    pub fn call(&self, words: &[&str]) -> Call {
        let call = Call::new(&self.root, words);
        if self.require(2, 45, "").is_ok() { call } else { call.config("protocol.allow", "never") }
    }

    /// Makes a path relative to the top directory. If the path as given is outside, the symbolic links of its directory are
    /// resolved first. `None` if they cannot be resolved, or if the resolved path is outside, too.
    pub fn relative(&self, path: &Path) -> Option<PathBuf> {
        let inside = |path: &Path| path.strip_prefix(&self.root).map(Path::to_path_buf).ok();
        inside(path).or_else(|| {
            let parent = RealDisk.canonical(path.parent()?).ok()?;
            inside(&parent.join(path.file_name()?))
        })
    }

    /// Finds the commit that a revision names; `None` if there is none. The revision may be any text that a user typed.
    pub fn find_revision(&self, revision: &str) -> Result<Option<Oid>, GitError> {
        self.find_object(&format!("{revision}^{{commit}}"), revision)
    }

    /// Like [`Self::find_revision`], but a missing revision is an error.
    pub fn revision(&self, revision: &str) -> Result<Oid, GitError> {
        let missing = || GitError::NoRevision { revision: revision.to_owned() };
        self.find_revision(revision)?.ok_or_else(missing)
    }

    fn find_object(&self, name: &str, typed: &str) -> Result<Option<Oid>, GitError> {
        // Neither an option nor a text of several lines can be a revision.
        if typed.is_empty() || typed.starts_with('-') || typed.contains(['\n', '\0']) {
            return Ok(None);
        }
        let call = self.call(&["rev-parse", "--verify", "--quiet", "--end-of-options"]).arg(name);
        let Output { code, stdout, stderr } = call.output()?;
        match code {
            0 => Ok(Oid::read(stdout.strip_suffix(b"\n").unwrap_or(&stdout))),
            // 128 means that the name is not a valid revision.
            1 | 128 => Ok(None),
            _ => Err(GitError::Failed { command: "rev-parse".to_owned(), exit_code: code, text: stderr }),
        }
    }

    /// Reads `REV`, `A..B` or `A...B`; a missing side is `HEAD`.
    pub fn range(&self, typed: &str) -> Result<Range, GitError> {
        let side = |it: &str| self.revision(if it.is_empty() { "HEAD" } else { it });
        if let Some((from, to)) = typed.split_once("...") {
            return Ok(Range::SinceBase { from: side(from)?, to: side(to)? });
        }
        match typed.split_once("..") {
            Some((from, to)) => Ok(Range::Between { from: side(from)?, to: side(to)? }),
            None => Ok(Range::One(self.revision(typed)?)),
        }
    }

    /// The commit of `HEAD`; `None` before the first commit.
    pub fn head_commit(&self) -> Result<Option<Oid>, GitError> {
        self.find_revision("HEAD")
    }

    /// The branch that is checked out, `refs/heads/…`; `None` if `HEAD` is detached.
    pub fn head_branch(&self) -> Result<Option<String>, GitError> {
        let Output { code, stdout, stderr } = self.call(&["symbolic-ref", "--quiet", "HEAD"]).output()?;
        match code {
            0 => Ok(Some(String::from_utf8_lossy(&stdout).trim_end_matches('\n').to_owned())),
            1 => Ok(None),
            _ => Err(GitError::Failed { command: "symbolic-ref".to_owned(), exit_code: code, text: stderr }),
        }
    }

    /// The best common ancestor; `None` if the histories are unrelated.
    pub fn merge_base(&self, a: &Oid, b: &Oid) -> Result<Option<Oid>, GitError> {
        let Output { code, stdout, stderr } = self.call(&["merge-base"]).oids([a, b]).output()?;
        match code {
            0 => Ok(Oid::read(stdout.split(|it| *it == b'\n').next().unwrap_or_default())),
            1 => Ok(None),
            _ => Err(GitError::Failed { command: "merge-base".to_owned(), exit_code: code, text: stderr }),
        }
    }

    pub fn is_ancestor(&self, ancestor: &Oid, of: &Oid) -> Result<bool, GitError> {
        let call = self.call(&["merge-base", "--is-ancestor"]).oids([ancestor, of]);
        let Output { code, stderr, .. } = call.output()?;
        match code {
            0 | 1 => Ok(code == 0),
            _ => Err(GitError::Failed { command: "merge-base".to_owned(), exit_code: code, text: stderr }),
        }
    }

    /// The value of a key of git's configuration; `None` if it is not set.
    pub fn config(&self, key: &'static str) -> Result<Option<String>, GitError> {
        self.config_value(&[key])
    }

    /// Whether a key is set to a true value.
    pub fn config_is_true(&self, key: &'static str) -> Result<bool, GitError> {
        Ok(self.config_value(&["--type=bool", key])?.is_some_and(|it| it == "true"))
    }

    fn config_value(&self, words: &[&str]) -> Result<Option<String>, GitError> {
        let call = self.call(&[&["config", "-z", "--get"], words].concat());
        let Output { code, stdout, stderr } = call.output()?;
        match code {
            0 => Ok(Some(String::from_utf8_lossy(&stdout).trim_end_matches('\0').to_owned())),
            1 => Ok(None),
            _ => Err(GitError::Failed { command: "config".to_owned(), exit_code: code, text: stderr }),
        }
    }

    /// Writes bytes as an object, through the filters for the file `path`, as `git add` does.
    pub fn write_blob(&self, path: &Path, bytes: Vec<u8>) -> Result<Oid, GitError> {
        self.hash(&["hash-object", "-w", "--stdin"], path, bytes)
    }

    /// The name of the object that [`Self::write_blob`] would write.
    pub fn blob_name(&self, path: &Path, bytes: Vec<u8>) -> Result<Oid, GitError> {
        self.hash(&["hash-object", "--stdin"], path, bytes)
    }

    fn hash(&self, words: &[&str], path: &Path, bytes: Vec<u8>) -> Result<Oid, GitError> {
        let mut option = OsString::from("--path=");
        option.push(path);
        let oid = self.call(words).arg(option).input(bytes).line()?;
        Oid::read(oid.as_bytes()).ok_or_else(|| GitError::unexpected("hash-object", oid))
    }
}

fn read_version(printed: &[u8]) -> Result<Version, GitError> {
    let line = String::from_utf8_lossy(printed);
    let found = Version::read(&line).ok_or_else(|| GitError::unexpected("version", line.trim()))?;
    if found < OLDEST { Err(GitError::too_old(found)) } else { Ok(found) }
}
