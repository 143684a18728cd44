//! The git repository around the plans. Only this module starts git.
//!
//! Git is started without a shell. Each process has a time limit, its output is bounded, and inherited variables that
//! select another repository are removed. What git prints is not trusted: the parsers here work on bytes, and return an
//! error for unexpected output. Revisions that a person typed are resolved to an [`Oid`] before they are passed to any other
//! command.

#![expect(clippy::disallowed_methods, reason = "git is started here")]

mod call;
mod cat_file;
mod commit;
mod error;
mod fingerprint;
mod log;
mod merge_file;
mod merge_tree;
mod oid;
mod operation;
mod pipes;
mod push_report;
mod refs;
mod remote;
mod repository;
mod status;
mod trees;
mod version;
mod worktrees;

pub use call::{Call, INHERITED, Output, Stream};
pub use cat_file::{Blobs, CatFile, Found, Info, Object, read_info};
pub use commit::FileVersion;
pub use error::{GitError, UNSHALLOW};
pub use fingerprint::fingerprint;
pub use log::{LogEntry, LogQuery, LogReader, RawChange, read_changes};
pub use merge_file::{Favor, LineMerge, MERGE_DRIVER};
pub use merge_tree::TreeMerge;
pub use oid::Oid;
pub use push_report::{PushResult, PushedRef, is_broken};
pub use refs::{Branch, read_branches};
pub use remote::{RefChange, RemoteError, SILENCE, is_remote_name};
pub use repository::{Git, Head, Range};
pub use status::{FileStatus, StatusKind, read_status};
pub use trees::{IndexEntry, TreeEntry, read_index_entries, read_tree_entries, read_tree_object};
pub use version::Version;
pub use worktrees::{LinkedTree, read_worktrees};

#[cfg(test)]
mod tests;
