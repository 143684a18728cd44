//! Merging by lines with `git merge-file`, in the user's conflict style.

use std::path::{Path, PathBuf};

use crate::disk::ScratchFiles;
use crate::plan::merge::{TextMerge, TextMerged};

use super::call::{Call, Output};
use super::error::GitError;
use super::oid::Oid;
use super::repository::Git;

/// The command line of the merge driver in git's configuration.
///
/// If planwatch is missing or fails, git merges as it does without the driver. Without this fallback, git would treat an
/// exit code such as 127 as a conflict for which the driver has written the markers, and THEIRS would be lost.
pub const MERGE_DRIVER: &str = "if command -v planwatch >/dev/null; then planwatch git merge-driver %O %A %B %L %P; \
                                c=$?; [ $c -gt 1 ] || exit $c; fi; git merge-file --marker-size=%L %A %O %B";

/// The command line of a driver that merges as git does without a driver.
const BY_LINES: &str = "git merge-file --marker-size=%L %A %O %B";

impl Git {
    /// Makes `call` merge by lines, even if planwatch's driver is set up. With git 2.43 or newer, the call also ignores all
    /// other drivers that `.gitattributes` files name.
    pub fn merging_by_lines(&self, call: Call) -> Result<Call, GitError> {
        let call = call.config("merge.planwatch.driver", BY_LINES);
        match self.require(2, 43, "") {
            Ok(()) => Ok(call.attributes_of(&self.empty_tree()?)),
            Err(_) => Ok(call),
        }
    }

    pub fn empty_tree(&self) -> Result<Oid, GitError> {
        let oid = self.call(&["hash-object", "-t", "tree", "--stdin"]).line()?;
        Oid::read(oid.as_bytes()).ok_or_else(|| GitError::unexpected("hash-object", oid))
    }
}

/// Merges texts as git does.
#[derive(Debug, Clone)]
pub struct LineMerge {
    /// The directory in which git starts. The conflict style is that of its repository.
    directory: PathBuf,
    /// The directory for the temporary files that git merges.
    scratch: PathBuf,
    marker_size: String,
}

/// How every conflict is resolved: with the lines of one side, or with those of both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Favor {
    Ours,
    Theirs,
    /// The lines of both, OURS first.
    Both,
}

impl LineMerge {
    pub fn new(directory: &Path, scratch: &Path, marker_size: u32) -> Self {
        let (directory, scratch) = (directory.to_path_buf(), scratch.to_path_buf());
        Self { directory, scratch, marker_size: marker_size.clamp(1, 1000).to_string() }
    }

    /// Merges texts, and resolves every conflict with the lines of `side`. `None` if git or a temporary file fails.
    pub fn favoring(&self, side: Favor, base: &[u8], ours: &[u8], theirs: &[u8]) -> Option<Vec<u8>> {
        let option = match side {
            Favor::Ours => "--ours",
            Favor::Theirs => "--theirs",
            Favor::Both => "--union",
        };
        Some(self.call(&["merge-file", "-p", "-q", option], [base, ours, theirs])?.bytes)
    }

    fn call(&self, words: &[&str], [base, ours, theirs]: [&[u8]; 3]) -> Option<TextMerged> {
        let files = ScratchFiles::write(&self.scratch, &[ours, base, theirs]).ok()?;
        let call = Call::new(&self.directory, words).arg("--marker-size").arg(&self.marker_size);
        let call = ["ours", "base", "theirs"].iter().fold(call, |call, label| call.arg("-L").arg(label));
        let Output { code, stdout, .. } = call.pathspecs(&files.paths).output().ok()?;
        // The exit code is the number of conflicts, at most 127.
        (0..=127).contains(&code).then_some(TextMerged { bytes: stdout, is_clean: code == 0 })
    }
}

impl TextMerge for LineMerge {
    fn merge(&self, base: &[u8], ours: &[u8], theirs: &[u8]) -> Option<TextMerged> {
        self.call(&["merge-file", "-p", "-q"], [base, ours, theirs])
    }
}
