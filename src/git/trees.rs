//! Entries of trees and of the index.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::error::GitError;
use super::oid::Oid;
use super::repository::Git;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TreeEntry {
    pub mode: u32,
    /// `blob`, `tree`, or `commit` for a submodule.
    pub kind: String,
    pub oid: Oid,
    /// Relative to the tree that was read.
    pub path: Vec<u8>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexEntry {
    pub mode: u32,
    pub oid: Oid,
    /// 0 in an ordinary entry; 1, 2 and 3 in a conflict: base, ours, theirs.
    pub stage: u8,
    pub path: Vec<u8>,
}

pub(super) fn read_mode(word: &[u8]) -> Option<u32> {
    let is_mode = word.len() == 6 && word.iter().all(|it| (b'0'..=b'7').contains(it));
    let word = std::str::from_utf8(word).ok().filter(|_| is_mode)?;
    u32::from_str_radix(word, 8).ok()
}

/// Splits `a b c\tpath`.
fn fields(entry: &[u8]) -> Option<([&[u8]; 3], Vec<u8>)> {
    let tab = entry.iter().position(|it| *it == b'\t')?;
    let mut words = entry[..tab].split(|it| *it == b' ');
    let three = [words.next()?, words.next()?, words.next()?];
    (words.next().is_none() && tab + 1 < entry.len()).then(|| (three, entry[tab + 1..].to_vec()))
}

fn read_all<T>(
    bytes: &[u8],
    command: &'static str,
    read: impl Fn([&[u8]; 3], Vec<u8>) -> Option<T>,
) -> Result<Vec<T>, GitError> {
    let entries = bytes.split(|it| *it == 0).filter(|it| !it.is_empty());
    let read = |entry: &[u8]| {
        let read = fields(entry).and_then(|(words, path)| read(words, path));
        read.ok_or_else(|| GitError::unexpected(command, String::from_utf8_lossy(entry)))
    };
    entries.map(read).collect()
}

/// Reads the output of `ls-tree -z`.
pub fn read_tree_entries(bytes: &[u8]) -> Result<Vec<TreeEntry>, GitError> {
    read_all(bytes, "ls-tree", |[mode, kind, oid], path| {
        let is_known = [&b"blob"[..], b"tree", b"commit"].contains(&kind);
        let kind = String::from_utf8_lossy(kind).into_owned();
        is_known.then_some(TreeEntry { mode: read_mode(mode)?, kind, oid: Oid::read(oid)?, path })
    })
}

/// Reads the output of `ls-files --stage -z` or `ls-files -u -z`.
pub fn read_index_entries(bytes: &[u8]) -> Result<Vec<IndexEntry>, GitError> {
    read_all(bytes, "ls-files", |[mode, oid, stage], path| {
        let stage = match stage {
            [digit @ b'0'..=b'3'] => digit - b'0',
            _ => return None,
        };
        Some(IndexEntry { mode: read_mode(mode)?, oid: Oid::read(oid)?, stage, path })
    })
}

impl Git {
    /// All files below `paths` in a commit or tree; all files if `paths` is empty.
    pub fn tree_entries(&self, tree: &Oid, paths: &[impl AsRef<Path>]) -> Result<Vec<TreeEntry>, GitError> {
        let call = self.call(&["ls-tree", "-r", "-z", "--full-tree"]).oids([tree]);
        // An empty path means the repository's root, but git refuses it. Without paths, git lists everything.
        let paths: Vec<_> =
            paths.iter().map(|it| it.as_ref().as_os_str()).filter(|it| !it.is_empty()).collect();
        read_tree_entries(&call.paths(paths).run()?)
    }

    /// The entries of the user's index below `paths`, in all stages.
    pub fn index_entries(&self, paths: &[impl AsRef<Path>]) -> Result<Vec<IndexEntry>, GitError> {
        self.list_index("--stage", paths)
    }

    /// Returns whether git was the last to write the file, and wrote `bytes`: git's index has the file's times and length,
    /// and the object name of `bytes`. False for an empty file, and for a file that is not in the index.
    pub fn is_checked_out(&self, path: &Path, bytes: &[u8]) -> Result<bool, GitError> {
        if bytes.is_empty() {
            return Ok(false);
        }
        let content = self.blob_name(path, bytes.to_vec())?;
        let is_content =
            |it: &IndexEntry| it.path == path.as_os_str().as_bytes() && it.stage == 0 && it.oid == content;
        if !self.index_entries(&[path])?.iter().any(is_content) {
            return Ok(false);
        }
        // `git status` accepts a file with other times if its content is the same. `diff-files` does not.
        let compare = self.call(&["diff-files", "--quiet"]).paths([path]);
        Ok(compare.output()?.code == 0)
    }

    /// The entries of conflicts: stages 1 to 3.
    pub fn unmerged_entries(&self, paths: &[impl AsRef<Path>]) -> Result<Vec<IndexEntry>, GitError> {
        self.list_index("--unmerged", paths)
    }

    /// The paths below `directory` that a sparse checkout leaves out of the working tree.
    pub fn left_out(&self, directory: &Path) -> Result<BTreeSet<Vec<u8>>, GitError> {
        let listed = self.call(&["ls-files", "-t", "-z"]).paths([directory]).run()?;
        Ok(listed.split(|it| *it == 0).filter_map(|it| it.strip_prefix(b"S ")).map(<[u8]>::to_vec).collect())
    }

    fn list_index(&self, which: &str, paths: &[impl AsRef<Path>]) -> Result<Vec<IndexEntry>, GitError> {
        let paths: Vec<&OsStr> =
            paths.iter().map(|it| it.as_ref().as_os_str()).filter(|it| !it.as_bytes().is_empty()).collect();
        read_index_entries(&self.call(&["ls-files", which, "-z"]).paths(paths).run()?)
    }
}

/// Reads the bytes of a tree object. `n_digits` is the number of hexadecimal digits of an object name. `None` if the bytes
/// are not a tree object.
pub fn read_tree_object(mut bytes: &[u8], n_digits: usize) -> Option<Vec<TreeEntry>> {
    let mut entries = Vec::new();
    while !bytes.is_empty() {
        let space = bytes.iter().position(|it| *it == b' ')?;
        let end = bytes.iter().position(|it| *it == 0).filter(|it| *it > space + 1)?;
        let after = end + 1 + n_digits / 2;
        let oid: String = bytes.get(end + 1..after)?.iter().map(|it| format!("{it:02x}")).collect();
        // A directory's mode has five digits.
        let mode = std::str::from_utf8(&bytes[..space]).ok()?;
        let mode = u32::from_str_radix(mode, 8).ok().filter(|_| matches!(mode.len(), 5 | 6))?;
        let kind = match mode & 0o170_000 {
            0o040_000 => "tree",
            0o160_000 => "commit",
            _ => "blob",
        };
        let (kind, path) = (kind.to_owned(), bytes[space + 1..end].to_vec());
        entries.push(TreeEntry { mode, kind, oid: Oid::read(oid.as_bytes())?, path });
        bytes = &bytes[after..];
    }
    Some(entries)
}
