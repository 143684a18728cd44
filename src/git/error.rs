//! The errors of calls to git.

use std::time::Duration;

use super::version::{OLDEST, Version};

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GitError {
    #[error("the program git was not found")]
    Missing,
    #[error("git is version {found}; at least {needed} is needed{for_what}")]
    TooOld { found: Version, needed: Version, for_what: &'static str },
    #[error("`{path}` is not in the working tree of a git repository")]
    NotARepository { path: String },
    #[error("there is no revision `{revision}`")]
    NoRevision { revision: String },
    /// git ended with an error; `text` is what it printed.
    #[error("git {command} failed: {}", reason(text))]
    Failed { command: String, exit_code: i32, text: String },
    #[error("git {command} took longer than {} s and was ended", limit.as_secs())]
    TimedOut { command: String, limit: Duration },
    #[error("git {command} printed more than {most} bytes")]
    TooMuch { command: String, most: usize },
    #[error("the object {oid} is not in this clone")]
    NotFetched { oid: String },
    /// The state of the repository does not allow a commit now.
    #[error("nothing was committed: {why}")]
    Refused { why: String, hint: &'static str },
    #[error("git could not be started: {0}")]
    NotStarted(std::io::Error),
    #[error("the output of git {command} could not be read: {source}")]
    Unread { command: String, source: std::io::Error },
    #[error("git {command} printed something unexpected: {what}")]
    Unexpected { command: &'static str, what: String },
}

/// What to do in a shallow clone.
pub const UNSHALLOW: &str = "`git fetch --unshallow` fetches the rest of the history";

const NOT_FETCHED: &str = "in a partial clone, `git log -p --all -- plans` fetches what is missing";

/// What git says if it needs an object that a partial clone lacks.
const LACKING: [&str; 3] = ["from promisor remote", "unable to read tree", "not a tree object"];

impl GitError {
    pub(super) fn unexpected(command: &'static str, what: impl Into<String>) -> Self {
        Self::Unexpected { command, what: what.into() }
    }

    pub(super) fn too_old(found: Version) -> Self {
        Self::TooOld { found, needed: OLDEST, for_what: "" }
    }

    /// The word that every surface uses for this error.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Missing => "git-missing",
            Self::TooOld { .. } => "git-too-old",
            Self::NotARepository { .. } => "not-a-repository",
            Self::NoRevision { .. } => "not-found",
            Self::TimedOut { .. } => "git-timeout",
            Self::Refused { .. } => "commit-refused",
            _ => "git-failed",
        }
    }

    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Missing | Self::NotARepository { .. } | Self::NoRevision { .. } => 3,
            Self::Refused { .. } => 4,
            _ => 1,
        }
    }

    pub fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::Missing => "install git, or put its directory on the PATH",
            Self::TooOld { .. } => "install a newer git",
            Self::NotARepository { .. } => {
                "`git init` creates a repository; only commands that use git need one"
            }
            Self::NoRevision { .. } => {
                "`git log --oneline --all` lists commits, `git branch --all` lists branches"
            }
            Self::TimedOut { .. } => "try again; if it happens again, run `git status` and `git fsck`",
            Self::NotFetched { .. } => NOT_FETCHED,
            Self::Failed { text, .. } if LACKING.iter().any(|it| text.contains(it)) => NOT_FETCHED,
            Self::Refused { hint, .. } => hint,
            _ => return None,
        };
        Some(hint.to_owned())
    }
}

/// What git printed, without the prefix `fatal: ` or `error: `; a substitute if it printed nothing.
fn reason(text: &str) -> String {
    let text = text.trim();
    let text = text.strip_prefix("fatal: ").or_else(|| text.strip_prefix("error: ")).unwrap_or(text);
    if text.is_empty() { "it gave no reason".to_owned() } else { text.to_owned() }
}
