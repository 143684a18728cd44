//! `git commit`: commits the plan files that planwatch wrote, and nothing else.

use crate::api::context::Context;
use crate::api::error::Error;
use crate::api::requests::Mode;
use crate::store::commit;

pub use crate::store::commit::{CommitReport, CommittedFile, LeftFile, why_left};

#[derive(Debug, Clone, Default)]
pub struct GitCommitRequest {
    /// Plans and steps; all if empty.
    pub ids: Vec<String>,
    /// Replaces the subject that planwatch would write.
    pub message: Option<String>,
    pub mode: Mode,
}

/// Commits the files on the branch that is checked out. What the user staged stays as it was.
pub fn git_commit(context: &Context, request: &GitCommitRequest) -> Result<CommitReport, Error> {
    if request.message.as_deref().is_some_and(|it| it.trim().is_empty()) {
        return Err(Error::usage("the message is empty", "leave -m out, or write a message"));
    }
    commit::commit(context, &request.ids, request.message.as_deref(), request.mode)
}
