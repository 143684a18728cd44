//! The interface through which operations send requests to the daemon, if one runs.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::api::context::Notice;
use crate::index::{Generation, Key};
use crate::plan::id::PlanId;
use crate::plan::time::Time;

/// Whether a request asks a daemon if the index is current.
pub enum Freshness {
    /// No daemon is asked, and the files are scanned.
    Unknown,
    /// This client asks the daemon, if one runs. If the daemon confirms that the index is current, no file is scanned.
    Attested(Box<dyn DaemonClient>),
}

/// A client of the daemon. Each reply reflects all file changes that were finished before the request.
pub trait DaemonClient: Send + Sync {
    /// The current [`Generation`] of the index; `None` if no daemon answers, or if the daemon does not know it. A verb may
    /// call this several times for one answer, because the index can change between the reply and the reading.
    fn commit(&self) -> Option<Generation>;

    /// Like [`Self::commit`], but `None` while the daemon knows a problem that belongs to no plan, such as a broken link.
    /// The index does not contain such problems.
    fn complete_commit(&self) -> Option<Generation> {
        None
    }

    /// Like [`Self::commit`], and also returns the answer that was last passed to [`Self::cache_next`], if the daemon cached
    /// it.
    fn commit_and_next(&self) -> (Option<Generation>, Option<String>) {
        (self.commit(), None)
    }

    /// Lets the daemon cache an answer of `next` in memory, as JSON.
    fn cache_next(&self, _answer: String) {}

    fn daemon(&self) -> DaemonStatus {
        DaemonStatus::None
    }

    /// The directories that have to be read for an answer about one plan, in addition to those that the plan itself names.
    /// If the daemon returns them, the caller does not list all plans.
    fn dependents(&self, _plan: &PlanId) -> Option<Dependents> {
        None
    }

    /// Asks the daemon to claim a step for this process. `make` is called only if a daemon runs.
    fn claim(&self, _make: &dyn Fn() -> Option<DelegatedClaim>) -> ClaimReply {
        ClaimReply::Nothing
    }
}

impl<F: Fn() -> Option<Generation> + Send + Sync> DaemonClient for F {
    fn commit(&self) -> Option<Generation> {
        self()
    }
}

/// The directories that have to be read for an answer about one plan, in addition to those that the plan itself names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Dependents {
    /// The plan's own directory, and directories whose names some file systems treat as equal to its name.
    pub spellings: Vec<Key>,
    /// All directories with non-ASCII names, because an id may spell such a name in another Unicode form.
    pub odd: Vec<Key>,
    /// Plans that are not archived and have steps that depend on a step of this plan.
    pub waiting: Vec<Key>,
}

#[derive(Debug, Clone, Default)]
pub enum DaemonStatus {
    #[default]
    None,
    /// The directory of the daemon's socket is not used, because another user could have created a socket in it.
    Unreachable { why: String, hint: String },
    /// The daemon's socket exists, but the daemon does not answer.
    Silent { pid: Option<u32> },
    Running {
        pid: u32,
        since: String,
        release: String,
        /// Why the daemon polls; `None` if it uses file system events.
        polling: Option<String>,
        /// The URL at which the daemon serves HTTP.
        http: Option<String>,
    },
}

/// How long a process waits for the reply to a delegated claim. After that time the daemon does not begin the claim, unless
/// the clock was set back.
pub const REPLY_WITHIN: Duration = Duration::from_secs(1);

/// A request to the daemon to claim the most urgent step for another process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DelegatedClaim {
    pub(crate) claim: String,
    pub(crate) by: String,
    /// The name of the caller, which may differ from the claim's owner.
    #[serde(rename = "asker")]
    pub(crate) requester: String,
    /// In seconds.
    pub(crate) lease: i64,
    /// The time of the request.
    pub(crate) at: Time,
    /// The daemon must begin the claim before this time. In nanoseconds since 1970, from the clock of the `Disk` trait.
    pub(crate) begin_before: i64,
    /// A hash of the settings that must be the same for the caller and the daemon.
    #[serde(rename = "surroundings")]
    pub(crate) environment: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClaimedStep {
    pub(crate) claim: Granted,
    pub(crate) step: Value,
    pub(crate) why: String,
    pub(crate) diff: String,
    /// The daemon makes waiting claims together, as a batch. These are the notices of the batch. Only the first caller of
    /// the batch that gets a claim receives them, together with the notices of earlier batches in which no caller got a
    /// claim.
    pub(crate) notices: Vec<Notice>,
}

#[derive(Debug)]
pub enum ClaimReply {
    Claimed(ClaimedStep),
    /// No claim was made, and the daemon will not make one for this request.
    Nothing,
    /// There was no reply, for example because [`REPLY_WITHIN`] was over. The claim may have been made.
    Unheard(DelegatedClaim),
}

/// A claim in force.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Granted {
    /// The claim's id. An update that names it is accepted only while it is the current claim of the step.
    pub id: String,
    /// The end of the lease. `None`: the claim is valid as long as its process runs.
    pub until: Option<Time>,
}
