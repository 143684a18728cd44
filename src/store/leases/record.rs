//! The data of a claim in its record.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::disk::Process;
use crate::plan::time::Time;

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Record {
    pub(crate) step: String,
    pub(crate) claim: String,
    pub(crate) by: Option<String>,
    pub(crate) at: Option<Time>,
    /// When the lease ends. Ignored if it can be observed whether the process runs.
    pub(crate) until: Time,
    /// How long the lease lasts after the claim or its renewal, in seconds.
    pub(crate) lease: i64,
    pub(crate) process: Option<Process>,
    /// `None` if no run made the claim.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) run: Option<RunRecord>,
    /// The name of the idempotency key of the request that made the claim.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) key: Option<String>,
    /// The claim in the step's file, if that claim was never put into force (`Locked::confirm`) and this record replaces the
    /// record of that claim. If the process that makes this record is killed before it writes the step's file, the file
    /// still contains that claim.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) replaces: Option<String>,
    /// Identifies the boot of the machine during which the record was made.
    pub(super) boot: Option<String>,
    /// The step's file, relative to the plans directory.
    pub(super) file: String,
    /// Other ids that the step had, or has in other working trees.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) was: Vec<String>,
    #[serde(flatten)]
    pub(super) place: Place,
}

impl Record {
    /// Whether `claim` is the claim of this record, or the unconfirmed claim that this record replaces.
    pub(super) fn is_of_unconfirmed(&self, claim: &str) -> bool {
        self.claim == claim || self.replaces.as_deref() == Some(claim)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RunRecord {
    /// The path of the log, relative to the plans directory.
    pub(crate) log: String,
    /// The step's `touches`; `None` if unknown.
    pub(crate) touches: Option<Vec<String>>,
    /// The first process of the worker's process group; `None` until it has been started.
    pub(crate) worker: Option<Process>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Place {
    /// The path of the plans directory, relative to `worktree`.
    pub(super) plans: String,
    pub(super) worktree: PathBuf,
    pub(super) branch: Option<String>,
}
