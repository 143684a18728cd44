//! Files that differ between `HEAD`, the index and the working tree.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::error::GitError;
use super::oid::Oid;
use super::repository::Git;
use super::trees::read_mode;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileStatus {
    /// Relative to the repository's root; a directory ends with `/`.
    pub path: Vec<u8>,
    pub kind: StatusKind,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StatusKind {
    Tracked {
        /// Null if `HEAD` does not have the file.
        head: Oid,
        /// The index differs from `HEAD`.
        is_staged: bool,
        /// The working tree differs from the index.
        is_changed: bool,
        /// The working tree does not have the file.
        is_missing: bool,
        is_submodule: bool,
    },
    Conflict,
    Untracked,
}

impl FileStatus {
    /// Whether the file is staged as it is in the working tree.
    pub fn is_only_staged(&self) -> bool {
        matches!(self.kind, StatusKind::Tracked { is_staged: true, is_changed: false, .. })
    }
}

/// Reads the output of `status --porcelain=v2 -z --no-renames`.
pub fn read_status(bytes: &[u8]) -> Result<Vec<FileStatus>, GitError> {
    let lines = bytes.split(|it| *it == 0).filter(|it| !it.is_empty() && it[0] != b'#');
    let read = |line: &[u8]| read_line(line).ok_or_else(|| unexpected(line));
    lines.map(read).collect()
}

fn unexpected(line: &[u8]) -> GitError {
    GitError::unexpected("status", String::from_utf8_lossy(line))
}

fn read_line(line: &[u8]) -> Option<FileStatus> {
    let path = |n: usize| {
        line.splitn(n, |it| *it == b' ').nth(n - 1).filter(|it| !it.is_empty()).map(<[u8]>::to_vec)
    };
    let (path, kind) = match line[0] {
        b'?' => (path(2)?, StatusKind::Untracked),
        b'u' => (path(11)?, StatusKind::Conflict),
        b'1' => {
            let words: Vec<_> = line.splitn(9, |it| *it == b' ').collect();
            let [_, xy, module, _, _, in_tree, head, _, _] = words[..] else { return None };
            let [x, y] = xy[..] else { return None };
            let kind = StatusKind::Tracked {
                head: Oid::read(head)?,
                is_staged: x != b'.',
                is_changed: y != b'.',
                is_missing: read_mode(in_tree)? == 0,
                is_submodule: module.first() == Some(&b'S'),
            };
            (path(9)?, kind)
        }
        _ => return None,
    };
    Some(FileStatus { path, kind })
}

impl Git {
    /// Lists the differing files below these paths. Ignored files are left out.
    pub fn status(&self, paths: &[impl AsRef<Path>]) -> Result<Vec<FileStatus>, GitError> {
        let words = [
            "status",
            "--porcelain=v2",
            "-z",
            "--no-renames",
            "--untracked-files=all",
            "--ignore-submodules=none",
        ];
        let paths = paths.iter().map(|it| it.as_ref().as_os_str()).filter(|it| !it.is_empty());
        read_status(&self.call(&words).paths(paths).run()?)
    }

    /// The ignored files below this path, relative to the repository's root. A directory whose files are all ignored is
    /// listed in place of its files; the repository's root is listed as `.`.
    pub fn ignored(&self, path: &Path) -> Result<Vec<PathBuf>, GitError> {
        let words = ["ls-files", "--others", "--ignored", "--exclude-standard", "--directory", "-z"];
        let path = Some(path.as_os_str()).filter(|it| !it.is_empty());
        let listed = self.call(&words).paths(path).run()?;
        let names = listed.split(|it| *it == 0).filter(|it| !it.is_empty());
        Ok(names.map(|it| PathBuf::from(OsStr::from_bytes(it.strip_suffix(b"/").unwrap_or(it)))).collect())
    }
}
