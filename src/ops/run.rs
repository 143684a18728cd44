//! `run`: works on the steps of a plan until all are closed or the run halts. Each attempt at a step gets a new process.
//!
//! This module defines the request and the events of a run. `drive` contains the loop of a run, `attempt` makes one
//! attempt at a step, `outcome` decides on the result, and `settle` writes it. `trees` manages the working trees of
//! `--worktrees`. Processes are started through [`Workers`].
//!
//! The result of an attempt depends on the step's file, on its `verify` commands and on how the process ended, never on the
//! output or the exit code of the process. The state of a run is stored in the steps' files and in the records of its
//! claims, and with `--worktrees` also in git. So the next run can continue a run that was killed.

mod attempt;
mod drive;
mod outcome;
mod output;
mod preview;
mod renewal;
mod settle;
mod trees;

use std::ffi::OsString;
use std::fs::File;
use std::path::Path;
use std::time::Duration;

use serde::Serialize;
use serde_json::{Value, json};

use crate::api::agents::{Agent, AgentCommand, PromptBy, TIMEOUT};
use crate::api::context::Context;
use crate::api::error::Error;
use crate::api::trust::Subject;
use crate::api::views::{value, with};
use crate::disk::Process;

pub use drive::run;
pub use outcome::{ExitKind, Outcome};
pub use output::{WorkerOutput, worker_output};
pub use preview::{Preview, preview};

#[derive(Debug, Clone)]
pub struct RunRequest {
    pub plan: String,
    pub agent: Agent,
    /// The name in claims and attempts. `None`: the agent's name.
    pub by: Option<String>,
    /// The maximum number of steps that are worked on at the same time.
    pub jobs: usize,
    /// The maximum number of different steps that are begun. `None`: no limit.
    pub max_steps: Option<usize>,
    /// The maximum number of tries of a step. `None`: as configured.
    pub max_attempts: Option<u32>,
    /// The time limit of each attempt. `None`: the agent's limit, or else [`TIMEOUT`].
    pub timeout: Option<Duration>,
    /// The limit of time without output. `None`: the agent's limit, if it has one.
    pub idle: Option<Duration>,
    /// The time limit of the whole run.
    pub max_time: Option<Duration>,
    /// The limit of the cost, in US dollars.
    pub budget: Option<f64>,
    /// The hashes of the commands that are trusted in this run only: `verify` commands and the agent's command.
    pub trust_hashes: Vec<String>,
    /// Further environment variables of the processes.
    pub environment: Vec<(OsString, OsString)>,
    pub process: Option<Process>,
    /// Each step's file is committed after its attempt. With worktrees, all of these files are committed at the end instead,
    /// if the run's work is merged.
    pub commits: bool,
    /// Each step is worked on in a git working tree of its own.
    pub has_worktrees: bool,
    /// Working trees and branches stay even after their work is merged.
    pub keeps_worktrees: bool,
}

impl RunRequest {
    pub(crate) fn by(&self) -> &str {
        self.by.as_deref().unwrap_or(&self.agent.name)
    }

    pub(crate) fn timeout(&self) -> Duration {
        self.timeout.or(self.agent.timeout).unwrap_or(TIMEOUT)
    }

    pub(crate) fn idle(&self) -> Option<Duration> {
        self.idle.or(self.agent.idle)
    }
}

/// Provides the context of a run, and receives the run's events. All threads of the run share one surface.
pub trait Surface: Sync {
    fn context(&self) -> Result<Context, Error>;
    /// The time since the run began.
    fn elapsed(&self) -> Duration;
    fn report(&self, event: &Event<'_>);
    /// Asks a person, if there is one, whether `subject` may run from now on.
    fn may_trust(&self, subject: &Subject) -> bool;
}

/// Starts processes for a run.
pub trait Workers: Sync {
    /// Runs a process to the end. Afterwards no process of its group is left.
    fn work(&self, job: &Job<'_>, on_event: &dyn Fn(WorkerEvent<'_>)) -> Ended;
    /// Ends the processes that a dead run has left at work on a claim. `leader` is the worker's first process, if it is
    /// known, and `log` is the log of the claim's work.
    ///
    /// - If `leader` still runs, only its process group is ended.
    /// - If it cannot be seen whether `leader` runs, nothing is ended.
    /// - If `leader` has ended, its process group and the groups of `verify` commands are ended.
    /// - If `leader` is not known, the groups of all workers and of `verify` commands are ended.
    ///
    /// In the last two cases, the groups are found by the claim in the environment of their processes.
    fn end_left(&self, claim: &str, leader: Option<&Process>, log: Option<&File>);
    fn is_stopped(&self) -> bool;
    /// A fingerprint of the working tree around `root`, except what is in `without`. `None`: it cannot be computed.
    fn tree(&self, root: &Path, without: &Path) -> Option<String>;
}

#[derive(Debug)]
pub struct Job<'a> {
    pub command: &'a AgentCommand,
    /// The file with the prompt, and how the process gets the prompt. `None`: there is no prompt.
    pub prompt: Option<(&'a Path, PromptBy)>,
    pub directory: &'a Path,
    /// The directory is in a git working tree that was made for the step.
    pub is_in_own_tree: bool,
    pub environment: &'a [(OsString, OsString)],
    /// The file to which the output of the process is appended.
    pub log: &'a File,
    pub timeout: Duration,
    pub idle: Option<Duration>,
}

/// An event of a running process.
#[derive(Debug, Clone, Copy)]
pub enum WorkerEvent<'a> {
    /// The process has started. Contains the id of the process, which is the first of its process group.
    Started(u32),
    Output(&'a [u8]),
}

#[derive(Debug, Clone)]
pub struct Ended {
    pub how: ExitKind,
    /// The exit code, as a shell reports it.
    pub exit_code: Option<i32>,
    /// The end of the output, at most a few hundred thousand bytes.
    pub output: Vec<u8>,
}

#[derive(Debug, Clone)]
pub enum Event<'a> {
    Started {
        step: &'a str,
        title: &'a str,
        attempt: usize,
        of: usize,
        why: &'a str,
        log: &'a str,
    },
    Output {
        step: &'a str,
        bytes: &'a [u8],
    },
    Verifying {
        step: &'a str,
        command: &'a str,
    },
    /// An attempt is over. The event has the attempt's outcome and the status of the step after it.
    Ended(&'a EndedStep),
    Progress {
        closed: usize,
        total: usize,
    },
    /// The run waits, for example because other runs have claimed the steps that could be next.
    Waiting {
        why: &'a str,
    },
    Note {
        text: &'a str,
    },
}

#[derive(Debug, Clone, Default, Serialize)]
#[serde(tag = "event", rename = "ended")]
pub struct EndedStep {
    pub step: String,
    pub title: String,
    pub outcome: String,
    pub status: String,
    /// `None`: no process was started, or the process has no exit code.
    pub exit_code: Option<i32>,
    pub seconds: i64,
    pub cost: Option<f64>,
    pub log: String,
    /// One line about the attempt, for example why it failed.
    pub notes: Option<String>,
}

impl EndedStep {
    pub fn to_json(&self) -> Value {
        value(self)
    }
}

/// Why a run ended. Each reason has a code for programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    Complete,
    /// The result of a step halts the run, for example because the step failed, is blocked, or was released.
    Halted,
    /// A limit of the run itself was reached, such as its time or its budget.
    Limit,
    ConfirmationNeeded,
    NotTrusted,
    NothingReady,
    Interrupted,
}

impl End {
    pub fn word(self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::Halted => "halted",
            Self::Limit => "limit",
            Self::ConfirmationNeeded => "confirmation-needed",
            Self::NotTrusted => "not-trusted",
            Self::NothingReady => "nothing-ready",
            Self::Interrupted => "interrupted",
        }
    }

    pub fn exit_code(self) -> u8 {
        match self {
            Self::Complete => 0,
            Self::Halted | Self::Limit => 1,
            Self::ConfirmationNeeded | Self::NotTrusted => 5,
            Self::NothingReady => 7,
            Self::Interrupted => 130,
        }
    }
}

#[derive(Debug, Clone)]
pub struct RunReport {
    pub plan: String,
    pub end: End,
    /// A sentence without a full stop.
    pub why: String,
    /// The step at which the run ended, if any.
    pub step: Option<String>,
    pub attempts: usize,
    /// The number of steps that were completed or skipped during the run.
    pub closed: usize,
    pub cost: Option<f64>,
    pub hints: Vec<(String, &'static str)>,
    /// `None`: the run had no working trees of its own.
    pub trees: Option<TreesReport>,
}

/// The branches after a run with working trees.
#[derive(Debug, Clone, Default, Serialize)]
pub struct TreesReport {
    /// The user's branch.
    pub branch: String,
    /// Whether `HEAD` contains all work that the run merged.
    #[serde(rename = "merged")]
    pub is_merged: bool,
    /// The run's branch with merged work, if `HEAD` does not contain that work.
    pub unmerged: Option<String>,
    /// The step branches that still exist.
    pub kept: Vec<KeptBranch>,
}

#[derive(Debug, Clone, Serialize)]
pub struct KeptBranch {
    pub branch: String,
    /// Relative to the repository's root.
    pub worktree: Option<String>,
}

impl RunReport {
    pub fn to_json(&self) -> Value {
        let hints: Vec<_> = self.hints.iter().map(|(it, _)| it).collect();
        let report = json!({
            "plan": self.plan, "end": self.end.word(), "why": self.why, "step": self.step, "attempts": self.attempts,
            "closed": self.closed, "cost": self.cost, "next": hints, "exit_code": self.end.exit_code(),
        });
        match &self.trees {
            Some(trees) => with(&report, json!({"worktrees": trees})),
            None => report,
        }
    }
}

/// The environment variables to set for a step's process: those of the request, and those about the step and its claim.
fn environment(
    context: &Context,
    request: &RunRequest,
    step: &str,
    plan: &str,
    claim: &str,
) -> Vec<(OsString, OsString)> {
    let own = [
        ("PLANWATCH_PLAN", OsString::from(plan)),
        ("PLANWATCH_STEP", step.into()),
        ("PLANWATCH_CLAIM", claim.into()),
        ("PLANWATCH_BY", request.by().into()),
        ("PLANS_DIR", context.plans.root().as_os_str().to_owned()),
    ];
    let own = own.into_iter().map(|(name, value)| (OsString::from(name), value));
    request.environment.iter().cloned().chain(own).collect()
}
