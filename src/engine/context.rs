//! What every verb is given: the plans directory, the time, who asks, and the configuration.

use std::path::PathBuf;

use crate::disk::PlansDir;
use crate::engine::config::Config;
use crate::index::Generation;
use crate::plan::time::Time;

/// The surroundings of one request. A long-running surface makes one for each request.
pub struct Context {
    pub plans: PlansDir,
    /// When the request was made.
    pub now: Time,
    /// Who asks, for `by` in attempts and notes.
    pub by: String,
    pub config: Config,
    pub reading: Reading,
    pub freshness: Freshness,
    pub here: Here,
    /// Told at once what happens beside the answer.
    pub tell: Box<dyn Fn(Notice) + Send + Sync>,
}

/// Where reading verbs take plans from; the answers are the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reading {
    Index,
    Files,
}

/// Whether somebody else knows that the index speaks of the files as they are, so that they need not be looked at.
pub enum Freshness {
    /// Nobody: the files are looked at.
    Unknown,
    /// Whoever is asked here, at most once an answer: the commit of the index that is known to be right, or none.
    KnownBy(Box<dyn Fn() -> Option<Generation> + Send + Sync>),
}

/// What tells which plan is meant when none is named.
#[derive(Debug, Clone, Default)]
pub struct Here {
    /// The absolute working directory.
    pub directory: PathBuf,
    /// The repository's root, else the directory above the plans directory: where scripts begin.
    pub root: PathBuf,
    /// `PLANWATCH_PLAN`.
    pub plan: Option<String>,
    /// `PLANWATCH_STEP`, the full id of the step that this process works on.
    pub step: Option<String>,
    /// `PLANWATCH_CLAIM`, which belongs to that step alone.
    pub claim: Option<String>,
}

/// Something worth a line on stderr.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notice {
    /// Another process holds the lock of the plans directory for more than a second.
    WaitingForLock,
    /// The index was missing, damaged or of another version, and was made anew.
    IndexRebuilt { why: String },
    /// The index could not be kept on disk; it is in memory for this answer.
    IndexInMemory { why: String },
    /// A save that raced with planwatch was kept beside the file.
    Kept { path: String, kept: String, why: String },
    /// `.planwatch/` came from elsewhere and was moved aside unread.
    ForeignStateMoved { to: String },
    /// Claims cannot be recorded where other working trees would see them; there are none yet.
    ClaimsNotShared { path: String, why: String },
    /// An unfinished change of several files was finished or taken back.
    Recovered { what: String },
}

impl Context {
    /// The plans directory's own name, which is put before paths that are shown.
    pub fn root_name(&self) -> String {
        self.plans.root().file_name().map(|it| it.to_string_lossy().into_owned()).unwrap_or_default()
    }
}
