//! How an operation asks the daemon, if one runs.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::api::context::Notice;
use crate::index::{Generation, Key};
use crate::plan::id::PlanId;
use crate::plan::time::Time;

/// Whether somebody else knows that the index speaks of the files as they are, so that they need not be looked at.
pub enum Freshness {
    /// Nobody: the files are looked at.
    Unknown,
    Attested(Box<dyn DaemonClient>),
}

/// Somebody who sees every change of the files; what is answered holds all that was finished before the question.
pub trait DaemonClient: Send + Sync {
    /// The commit of the index that is known to be right; asked at most once an answer.
    fn commit(&self) -> Option<Generation>;

    /// As [`Self::commit`], with the answer that [`Self::cache_next`] was last called with.
    fn commit_and_next(&self) -> (Option<Generation>, Option<String>) {
        (self.commit(), None)
    }

    /// Gives the daemon an answer of `next` to keep in memory, as JSON.
    fn cache_next(&self, _answer: String) {}

    /// The process that sees them.
    fn daemon(&self) -> DaemonStatus {
        DaemonStatus::None
    }

    /// What lies around a plan, so that the names of all plans need not be read.
    fn neighbours(&self, _plan: &PlanId) -> Option<Neighbours> {
        None
    }

    /// Claims a step for who asks; `errand` is called if there is somebody to do that.
    fn claim(&self, _errand: &dyn Fn() -> Option<DelegatedClaim>) -> ClaimReply {
        ClaimReply::Nothing
    }
}

impl<F: Fn() -> Option<Generation> + Send + Sync> DaemonClient for F {
    fn commit(&self) -> Option<Generation> {
        self()
    }
}

/// The directories that an answer about one plan has to know of beside those that the plan names itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Neighbours {
    /// Those whose names some systems take for the plan's, its own among them.
    pub spellings: Vec<Key>,
    /// All whose names are not ASCII, so that another spelling of them may be meant by an id.
    pub odd: Vec<Key>,
    /// Live plans with steps that wait for one of its steps.
    pub waiting: Vec<Key>,
}

/// The process that watches the plans.
#[derive(Debug, Clone, Default)]
pub enum DaemonStatus {
    #[default]
    None,
    /// The directory for its socket is not used, because another user could have put one there.
    Unreachable { why: String, hint: String },
    /// It holds the watch and does not answer.
    Silent { pid: Option<u32> },
    Running {
        pid: u32,
        since: String,
        release: String,
        /// Why it has no events to go by.
        polling: Option<String>,
        /// Where it answers over HTTP.
        http: Option<String>,
    },
}

/// How long the reply to a delegated claim is waited for: longer than it may be begun, unless the clock is set back meanwhile.
pub const REPLY_WITHIN: Duration = Duration::from_secs(1);

/// A claim of the most urgent step, to be made for somebody else.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DelegatedClaim {
    /// The id of the claim.
    pub(crate) claim: String,
    pub(crate) by: String,
    /// Who asks, whoever the claim is for.
    pub(crate) asker: String,
    /// Seconds.
    pub(crate) lease: i64,
    /// When that was.
    pub(crate) at: Time,
    /// In nanoseconds since 1970, on the disk's clock.
    pub(crate) begin_before: i64,
    /// What has to be the same for both.
    pub(crate) surroundings: String,
}

/// What an errand brought.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClaimedStep {
    pub(crate) claim: Granted,
    pub(crate) step: Value,
    pub(crate) why: String,
    pub(crate) diff: String,
    /// What happened beside that, for whoever is told first.
    pub(crate) notices: Vec<Notice>,
}

/// What became of an errand.
#[derive(Debug)]
pub enum ClaimReply {
    Claimed(ClaimedStep),
    /// Nothing was begun, nor will be.
    Nothing,
    /// No answer came in [`REPLY_WITHIN`]: the claim may have been made.
    Unheard(DelegatedClaim),
}

/// A claim that holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Granted {
    /// The fence: an update that names it passes only while the claim is the step's.
    pub id: String,
    /// None: as long as the process runs.
    pub until: Option<Time>,
}
