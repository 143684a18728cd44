//! Claims across machines: named records in a registry that all machines can reach.
//!
//! Exclusive claims need four operations: create a record if it is absent, replace it if it has a known
//! value, delete it if it has a known value, and list all records. [`ClaimRegistry::change`] does the first
//! three, [`ClaimRegistry::list`] the fourth. `git_refs` stores records as refs of the git remote that a team
//! shares anyway.
//!
//! # Lost answers
//! If the answer to a change is lost, the change may have been made. Each value of a claim's record has a nonce, so no two
//! of these values are equal. The caller stores the value before it makes the change, and makes *the same* change again
//! after [`RegistryError::Unanswered`] (except for renewals, see `store::sync::claiming`). The answer [`Answer::Done`] then
//! means that the change was made by the first or the second attempt. With a new nonce in the second attempt, the caller's
//! own claim would look like that of another client.
//!
//! # Time
//! A registry with a clock of its own reports the age of each record and whether the record has lapsed ([`Standing`]). The
//! SQL statement that takes over a record checks again that the record has lapsed. If the registry has no clock,
//! `store::sync::seen` finds lapsed records by comparing listings.

pub(crate) mod git_refs;
pub(crate) mod name;
#[cfg(feature = "postgres")]
pub(crate) mod postgres;
pub(crate) mod record;

#[cfg(test)]
pub(crate) mod memory;
#[cfg(test)]
pub(crate) mod table;

use std::time::Duration;

pub(crate) use name::Name;

/// Identifies one value of a record. No two values have the same revision.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Revision(pub(crate) String);

/// A value of a record. It need not be at the registry yet.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Value {
    pub(crate) revision: Revision,
    /// JSON, at most [`record::LONGEST`] bytes. In a claim's record, it contains a nonce.
    pub(crate) body: String,
    /// After how many seconds the record lapses if the value is not replaced.
    pub(crate) ttl: i64,
}

/// One change of one record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// Fails if the record has a value other than `new`, even if that value has lapsed.
    Create { name: Name, new: Value },
    /// Fails if the record is absent or has a value other than `old` and `new`. If the registry has a clock, a take-over of
    /// a value that has not lapsed fails, too.
    Replace { name: Name, old: Revision, new: Value, is_take_over: bool },
    /// Fails if the record has a value other than `old`; an absent record is a success.
    Delete { name: Name, old: Revision },
}

impl Change {
    pub(crate) fn name(&self) -> &Name {
        match self {
            Self::Create { name, .. } | Self::Replace { name, .. } | Self::Delete { name, .. } => name,
        }
    }
}

/// The result of one change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// The record has the wanted value or, after a deletion, is absent. An earlier attempt may have made the change.
    Done,
    /// The change was not made, usually because the record has another value or none. If the registry has a clock, a
    /// take-over is also lost if the record has not lapsed.
    Lost,
    /// The change was not made, because another change of the same call failed.
    NotTried,
    /// The registry does not allow the change.
    Refused(String),
}

/// Whether the changes of one call depend on each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Together {
    /// All of them are made, or none.
    AllOrNone,
    Each,
}

/// The age of a record by the registry's own clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Standing {
    pub(crate) age: Duration,
    pub(crate) has_lapsed: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Listed {
    pub(crate) name: Name,
    pub(crate) revision: Revision,
    /// `None` if it is too long, or not text.
    pub(crate) body: Option<String>,
    /// `None` if the registry has no clock.
    pub(crate) standing: Option<Standing>,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum RegistryError {
    /// The registry did not answer, or cannot do the work now. The change that failed was not made. Others of the same call
    /// may have been made.
    #[error("the registry does not answer: {0}")]
    Unreachable(String),
    /// A change may have been made; see "Lost answers" at the start of this module.
    #[error("the registry did not confirm the change: {0}")]
    Unanswered(String),
    /// The registry refused: no right to write, rejected credentials, or a repository with another hash algorithm.
    #[error("the registry refused: {0}")]
    Refused(String),
    /// The registry is a database and has answered, but the shared branch, which shows what work was merged, could not be
    /// fetched from the git remote.
    #[error("the shared branch could not be fetched from the git remote: {why}")]
    BranchNotFetched { why: String, is_refusal: bool },
    /// The registry answered, but another clone changed the record before each attempt.
    #[error("the record changed during each attempt")]
    Changing,
    /// The cause is on this machine.
    #[error("{0}")]
    Local(String),
}

/// Stores the records. Each call may take seconds, so the lock of the plans directory is not held during a call.
pub(crate) trait ClaimRegistry: Send + Sync {
    /// Builds a value from a body, and stores locally what a retry needs. Does not contact the registry.
    fn value(&self, body: String, ttl: i64) -> Result<Value, RegistryError>;

    /// Makes the changes in as few connections as possible. Each change must concern a different record. The answers
    /// have the order of the changes.
    fn change(&self, changes: &[Change], together: Together) -> Result<Vec<Answer>, RegistryError>;

    /// All records below `claims/`, and the one that describes the registry.
    fn list(&self) -> Result<Vec<Listed>, RegistryError>;

    /// Creates what the registry needs before its first record, such as a table.
    fn prepare(&self) -> Result<(), RegistryError> {
        Ok(())
    }

    /// Calls `on_change`, on any thread, soon after another client changes a record (renewals excluded).
    /// Changes can be missed, so the caller also lists at intervals. Returns false if the registry cannot report changes.
    fn watch(&self, _on_change: Box<dyn Fn() + Send + Sync>) -> bool {
        false
    }

    /// Whether [`Self::list`] also fetches the branch that shows which work was merged; otherwise the caller
    /// fetches it.
    fn lists_branch(&self) -> bool {
        false
    }

    /// Makes one change.
    fn change_one(&self, change: Change) -> Result<Answer, RegistryError> {
        let answers = self.change(std::slice::from_ref(&change), Together::Each)?;
        answers.into_iter().next().ok_or_else(|| RegistryError::Local("no answer to a change".to_owned()))
    }
}
