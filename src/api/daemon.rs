//! How an operation asks the daemon, if one runs.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::api::context::Notice;
use crate::index::{Generation, Key};
use crate::plan::id::PlanId;
use crate::plan::time::Time;

/// Whether a daemon vouches that the index is current. If it does, the scan of the files is skipped.
pub enum Freshness {
    /// No daemon answered: the files are scanned.
    Unknown,
    Attested(Box<dyn DaemonClient>),
}

/// A connection to the daemon. Each answer includes all changes of files that were finished before the question.
pub trait DaemonClient: Send + Sync {
    /// The commit of the index that is current, if the daemon knows one. Called at most once for each answer of a verb.
    fn commit(&self) -> Option<Generation>;

    /// Like [`Self::commit`], but `None` while a problem is known that belongs to no plan, such as a broken link: the
    /// index does not hold such problems.
    fn complete_commit(&self) -> Option<Generation> {
        None
    }

    /// Like [`Self::commit`], and also returns the answer that was last passed to [`Self::cache_next`].
    fn commit_and_next(&self) -> (Option<Generation>, Option<String>) {
        (self.commit(), None)
    }

    /// Lets the daemon cache an answer of `next` in memory, as JSON.
    fn cache_next(&self, _answer: String) {}

    fn daemon(&self) -> DaemonStatus {
        DaemonStatus::None
    }

    /// The directories that an answer about one plan needs, so that the names of all plans need not be read.
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

/// The directories that an answer about one plan depends on, besides those that the plan itself names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Dependents {
    /// The plan's own directory, and those whose names are equal to its name on some file systems.
    pub spellings: Vec<Key>,
    /// All directories with names that are not ASCII: an id may spell them in another Unicode form.
    pub odd: Vec<Key>,
    /// Live plans with steps that wait for a step of this plan.
    pub waiting: Vec<Key>,
}

#[derive(Debug, Clone, Default)]
pub enum DaemonStatus {
    #[default]
    None,
    /// The directory of its socket is not used, because another user could have put a socket into it.
    Unreachable { why: String, hint: String },
    /// The daemon holds the lock and does not answer.
    Silent { pid: Option<u32> },
    Running {
        pid: u32,
        since: String,
        release: String,
        /// Why it polls instead of using file system events.
        polling: Option<String>,
        /// The URL at which it serves HTTP.
        http: Option<String>,
    },
}

/// How long a process waits for the reply to a delegated claim. The daemon begins no claim later, unless the clock is set back.
pub const REPLY_WITHIN: Duration = Duration::from_secs(1);

/// A claim of the most urgent step that the daemon makes for another process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DelegatedClaim {
    pub(crate) claim: String,
    pub(crate) by: String,
    /// The name of the caller, which may differ from the claim's owner.
    #[serde(rename = "asker")]
    pub(crate) requester: String,
    /// Seconds.
    pub(crate) lease: i64,
    /// When the caller asked.
    pub(crate) at: Time,
    /// The daemon must begin before this time: nanoseconds since 1970, on the disk's clock.
    pub(crate) begin_before: i64,
    /// A hash of the configuration that the caller and the daemon must share.
    #[serde(rename = "surroundings")]
    pub(crate) environment: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClaimedStep {
    pub(crate) claim: Granted,
    pub(crate) step: Value,
    pub(crate) why: String,
    pub(crate) diff: String,
    /// Notices of the claim; the first caller of a batch reports them.
    pub(crate) notices: Vec<Notice>,
}

#[derive(Debug)]
pub enum ClaimReply {
    Claimed(ClaimedStep),
    /// The daemon has begun nothing and will not.
    Nothing,
    /// No answer came in [`REPLY_WITHIN`]: the claim may have been made.
    Unheard(DelegatedClaim),
}

/// A claim in force.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Granted {
    /// The claim's id. An update that names it is accepted only while it is the current claim of the step.
    pub id: String,
    /// `None`: the claim holds as long as its process runs.
    pub until: Option<Time>,
}
