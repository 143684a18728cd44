//! Plans and steps as read from their files, before any rule is applied.

use borsh::{BorshDeserialize, BorshSerialize};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::plan::binary::{put_json, take_json};
use crate::plan::id::{PlanId, StepId};
use crate::plan::plans::Plans;
use crate::plan::problem::{Code, Problem, Severity};
use crate::plan::ranges::StepRange;
use crate::plan::records::{Attempt, Claim, Confirmation, Note, Priority, Verify};
use crate::plan::step_number::StepNumber;
use crate::plan::time::{Day, Time};
use crate::plan::words::{PlanStatus, Stated, StepStatus, Words};
use crate::text::line_index::Place;

/// A plan directory: its `plan.md` and its steps.
#[derive(Debug, Clone, PartialEq, BorshSerialize, BorshDeserialize)]
pub struct Plan {
    pub id: PlanId,
    /// Whether the directory is below `_archive/`.
    pub is_archived: bool,
    /// The path of `plan.md` relative to the plans directory, with `/` as separator. The file need not exist.
    pub path: String,
    /// Content hash of `plan.md`; `None` if the file does not exist or cannot be read.
    pub etag: Option<String>,
    /// When `plan.md` was last modified.
    pub modified: Option<Time>,
    pub status: Stated<PlanStatus>,
    pub title: String,
    pub description: Option<String>,
    pub kind: PlanKind,
    pub program: Option<PlanId>,
    /// The position of the program's name in the front matter.
    pub program_at: Option<Place>,
    pub category: Option<String>,
    pub priority: Priority,
    pub due: Option<Day>,
    pub tags: Vec<String>,
    pub files: Vec<String>,
    pub goals: Vec<String>,
    pub success_criteria: Vec<String>,
    pub order: Order,
    pub confirm_phases: Vec<String>,
    pub confirmations: Vec<Confirmation>,
    /// The `draft` mapping of a plan that is being refined, unchanged.
    #[borsh(serialize_with = "put_json", deserialize_with = "take_json")]
    pub draft: Value,
    pub created_at: Option<Time>,
    #[borsh(serialize_with = "put_json", deserialize_with = "take_json")]
    pub metadata: Map<String, Value>,
    pub notes: Vec<Note>,
    /// Keys that planwatch does not know.
    #[borsh(serialize_with = "put_json", deserialize_with = "take_json")]
    pub custom: Map<String, Value>,
    /// The text below the front matter; empty if the caller did not ask for bodies.
    #[borsh(skip)]
    pub body: String,
    /// Sorted by number. If several files have the same number, all of them are included.
    pub steps: Vec<Step>,
    /// The problems of `plan.md` and of the directory, without those of the steps.
    pub problems: Vec<Problem>,
    /// Whether every dependency of every step is known to be an earlier step of the same plan. In a plan that was just
    /// read, this is false. `is_waiting_inside` computes the value.
    pub waits_inside: bool,
}

/// A single plan, or one whose children are plans.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, BorshSerialize, BorshDeserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum PlanKind {
    #[default]
    Plan,
    Program,
}

/// What a step waits for in addition to its own dependencies.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, BorshSerialize, BorshDeserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum Order {
    #[default]
    Dependencies,
    /// Each step waits for the one before it.
    Sequential,
}

/// A step, from its own file or from a line of the plan's Steps list.
#[derive(Debug, Clone, PartialEq, BorshSerialize, BorshDeserialize)]
pub struct Step {
    pub id: StepId,
    /// Relative to the plans directory, with `/` as separator. For a step without a file, the path that the first write
    /// creates.
    pub path: String,
    /// Content hash, or `unreadable` for a file that cannot be read. `None` for a step that exists only in the Steps list.
    pub etag: Option<String>,
    pub modified: Option<Time>,
    pub title: String,
    pub status: Stated<StepStatus>,
    pub claim: Option<Box<Claim>>,
    pub depends: Vec<StepId>,
    /// The ranges in the text, including "all previous steps", that are too long for `depends`. `depends` contains only a
    /// part of their steps, as a rule the first and the last one of each range.
    pub ranges: Vec<StepRange>,
    /// Where the items of `depends` are in the front matter. Only the first 100 items have a position. Empty if `depends`
    /// comes from the body.
    pub depends_at: Vec<Place>,
    pub phase: Option<String>,
    pub kind: Option<String>,
    pub assignee: Option<String>,
    /// The step's own priority. `None`: the step has the priority of its plan.
    pub priority: Option<Priority>,
    pub due: Option<Day>,
    pub tags: Vec<String>,
    pub created_at: Option<Time>,
    pub created_by: String,
    /// Whether the file has `confirm: required` or the type `user_validation`.
    pub needs_confirmation: bool,
    pub confirmed: Option<Box<Confirmation>>,
    pub verify: Vec<Verify>,
    /// Patterns of the files that the step may change. `None`: not stated. Such a step overlaps with every other step,
    /// except one whose list is empty.
    pub touches: Option<Vec<String>>,
    /// The file's `result`, which planwatch changes only with `set`.
    pub result: Option<String>,
    pub notes: Vec<Note>,
    pub attempts: Vec<Attempt>,
    #[borsh(serialize_with = "put_json", deserialize_with = "take_json")]
    pub metadata: Map<String, Value>,
    #[borsh(serialize_with = "put_json", deserialize_with = "take_json")]
    pub custom: Map<String, Value>,
    pub tasks_done: usize,
    pub tasks_total: usize,
    #[borsh(skip)]
    pub body: String,
    pub problems: Vec<Problem>,
    /// The run that made the claim in the file, if this machine has a record of that claim; set by `Plans::with_claims`.
    #[borsh(skip)]
    pub run: Option<StepRun>,
}

/// What this machine has recorded about the run that claimed a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepRun {
    /// The path of the run's log, relative to the plans directory.
    pub log: String,
    /// Whether the run's process exists. If so, the step is not closed before the run has verified it.
    pub is_live: bool,
}

impl Plan {
    /// Returns the first step with this number. If several steps have the number, each of them has a problem.
    pub fn find(&self, id: &StepId) -> Option<&Step> {
        self.place_of(&id.number).map(|at| &self.steps[at])
    }

    /// Returns the index of the first step with this number.
    pub(super) fn place_of(&self, number: &StepNumber) -> Option<usize> {
        let is_first = |at: usize| at == 0 || self.steps[at - 1].id.number != *number;
        // Most plans have the steps 1, 2, 3 and so on.
        let usual = number.before_point().checked_sub(1).and_then(|it| usize::try_from(it).ok());
        let usual = usual.filter(|it| self.steps.get(*it).is_some_and(|step| step.id.number == *number));
        usual.filter(|it| is_first(*it)).or_else(|| {
            let at = self.steps.partition_point(|it| it.id.number < *number);
            self.steps.get(at).filter(|it| it.id.number == *number).map(|_| at)
        })
    }

    /// Returns the preceding step if the plan is sequential: it has to be closed first.
    pub(crate) fn before(&self, step: &Step) -> Option<&Step> {
        let first = || self.steps.partition_point(|it| it.id.number < step.id.number);
        (self.order == Order::Sequential).then(|| self.steps[..first()].last()).flatten()
    }

    /// Returns whether another file has the step's number too.
    pub fn is_doubled(&self, step: &Step) -> bool {
        self.steps.iter().any(|it| it.id.number == step.id.number && it.path != step.path)
    }

    /// Returns whether `plan.md` itself has a problem that keeps its steps from being claimed.
    pub fn is_faulty(&self) -> bool {
        self.problems.iter().any(|it| it.path == self.path && it.severity() == Severity::Error)
    }

    /// Returns false if the plan is known to have no steps. If the plan's directory cannot be read, they are not known.
    pub(crate) fn may_have_steps(&self) -> bool {
        !self.steps.is_empty() || self.is_faulty()
    }

    /// Returns whether the plan's draft has passes left.
    pub fn is_incomplete(&self) -> bool {
        self.draft.get("incomplete").and_then(Value::as_bool).unwrap_or_default()
    }

    /// Returns the status that is shown, and its source. An active plan is shown as completed if all its steps are closed.
    pub fn shown_status(&self) -> (Stated<PlanStatus>, StatusSource) {
        let all_closed = !self.steps.is_empty() && self.steps.iter().all(Step::is_closed);
        if self.status.is(PlanStatus::Active) && all_closed {
            return (Stated::Known(PlanStatus::Completed), StatusSource::Steps);
        }
        (self.status.clone(), StatusSource::File)
    }
}

/// The source of a plan's shown status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum StatusSource {
    File,
    Steps,
}

impl Step {
    /// The properties that a step keeps when it gets another number or plan, as in [`merge::Identity`]. `None`: the step has no
    /// time of creation.
    ///
    /// [`merge::Identity`]: crate::plan::merge::Identity
    pub fn identity(&self) -> Option<(Time, &str)> {
        Some((self.created_at?, self.title.as_str()))
    }

    pub fn is_closed(&self) -> bool {
        // The claim is checked before the run, because nearly every step has no claim, and there are many steps.
        let is_said = self.status.known().is_some_and(StepStatus::is_closed);
        is_said && (self.claim.is_none() || !self.is_under_run() && !self.is_unverified())
    }

    /// Returns the effective status: a step that a run's worker completed is in progress until the run has verified
    /// it.
    ///
    /// If the run died before that, a step with `verify` commands is still in progress. The step's file alone shows this: it
    /// has the status completed, a claim and `verify` commands.
    pub fn standing(&self) -> Stated<StepStatus> {
        if self.claim.is_some() && (self.is_under_run() || self.is_unverified()) {
            return Stated::Known(StepStatus::InProgress);
        }
        self.status.clone()
    }

    /// Returns whether a worker has completed the step, but its live run has yet to verify it.
    fn is_under_run(&self) -> bool {
        let is_live = self.run.as_ref().is_some_and(|it| it.is_live);
        is_live && self.claim.is_some() && self.status.is(StepStatus::Completed)
    }

    /// Returns whether a worker completed the step under a run that died before the `verify` commands had succeeded.
    pub fn is_unverified(&self) -> bool {
        let is_said = self.status.is(StepStatus::Completed) && self.claim.is_some();
        is_said && !self.verify.is_empty() && !self.is_under_run()
    }

    /// Returns whether the step's claim is no longer valid, so that the next write removes it.
    pub fn has_void_claim(&self) -> bool {
        self.claim.is_some() && self.claim_in_force().is_none() && !self.is_unverified()
    }

    /// Returns whether the file's `claim` is this claim, in force or not.
    pub fn has_claim(&self, claim: &str) -> bool {
        self.claim.as_ref().is_some_and(|it| it.id == claim)
    }

    /// Returns whether one of the attempts ended this claim.
    pub fn has_attempt_of(&self, claim: &str) -> bool {
        self.attempts.iter().any(|it| it.is_of_claim(claim))
    }

    /// Returns whether the file's `claim` or an attempt names this claim.
    pub fn names_claim(&self, claim: &str) -> bool {
        self.has_claim(claim) || self.has_attempt_of(claim)
    }

    /// Returns the claim if it is in force: the step is in progress, or a live run has yet to verify the step.
    pub fn claim_in_force(&self) -> Option<&Claim> {
        self.claim.as_deref().filter(|_| self.status.is(StepStatus::InProgress) || self.is_under_run())
    }

    /// Returns whether the step has a file of its own.
    pub fn has_file(&self) -> bool {
        self.etag.is_some()
    }

    pub fn is_faulty(&self) -> bool {
        self.problems.iter().any(|it| it.severity() == Severity::Error)
    }

    /// Returns the problem that makes the step's own file unreadable. Nothing in such a file counts.
    pub fn unreadable(&self) -> Option<&Problem> {
        self.problems.iter().find(|it| it.code.refuses_writing())
    }

    /// Returns the problem because of which `depends` may lack a step: the file is unreadable, a dependency cannot be read
    /// as a step's number or id, or some text in the file looks like a dependency but is not read as one.
    ///
    /// A dependency on a step that does not exist can be read, so it is not such a problem: the step is in `depends` and
    /// counts as open.
    pub fn unclear_dependencies(&self) -> Option<&Problem> {
        let is_unclear = |it: &&Problem| match it.code {
            Code::DependencyMissing => !Plans::is_between_files(it),
            // A problem of the Steps list has the path of `plan.md`. It is ignored, because it has this code only if the
            // step's `depends` overrides the list.
            Code::DependenciesUnclear => it.path == self.path,
            Code::WrongType => it.message.starts_with("`depends` "),
            _ => false,
        };
        self.unreadable().or_else(|| self.problems.iter().find(is_unclear))
    }

    /// Counts the tries of workers since the step was last reopened.
    pub fn tries(&self) -> usize {
        let since = self.attempts.iter().rposition(|it| it.outcome.as_deref() == Some("reopened"));
        self.attempts.iter().skip(since.map_or(0, |it| it + 1)).filter(|it| it.counts_as_try()).count()
    }

    /// Returns the outcome: the file's `result`, else the last attempt's notes.
    pub fn shown_result(&self) -> Option<&str> {
        let last = self.attempts.last().and_then(|it| it.notes.as_deref());
        self.result.as_deref().or(last)
    }

    /// Returns the last attempt, if it closed the step.
    ///
    /// `None`: the step is open, it was closed without an attempt, or the step was reduced for a `PlanSummary`, so its
    /// attempts have no outcome.
    pub fn closing_attempt(&self) -> Option<&Attempt> {
        let closes = |outcome: &str| {
            outcome == "forced" || Words::default().read(outcome).is_some_and(StepStatus::is_closed)
        };
        self.attempts.last().filter(|it| self.is_closed() && it.outcome.as_deref().is_some_and(closes))
    }

    /// Returns when a closed step was closed: the time of its closing attempt, else the file's modification time.
    pub fn closed_at(&self) -> Option<Time> {
        let said = self.closing_attempt().and_then(|it| it.at);
        said.or(self.modified.filter(|_| self.is_closed()))
    }

    /// Returns the newest time that the file records, and its source: an attempt, the claim, a note, the confirmation or the
    /// creation. If the file records no time, or only that of the creation, returns the file's modification time.
    ///
    /// Every surface shows this time, and staleness of steps in progress is computed from it. If the file records only the
    /// creation, its modification time is more informative.
    pub fn last_activity(&self) -> Option<(Time, &'static str)> {
        let attempts = self.attempts.iter().filter_map(Attempt::newest).map(|at| (at, "attempt"));
        let claim = self.claim.iter().filter_map(|it| it.at).map(|at| (at, "claim"));
        let notes = self.notes.iter().filter_map(|it| it.at).map(|at| (at, "note"));
        let confirmed = self.confirmed.iter().filter_map(|it| it.at).map(|at| (at, "confirmation"));
        let recorded = attempts.chain(claim).chain(notes).chain(confirmed).max_by_key(|(at, _)| *at);
        let made = self.created_at.map(|at| (at, "created"));
        let newest = recorded.map(|it| made.filter(|made| made.0 > it.0).unwrap_or(it));
        newest.or_else(|| self.modified.map(|at| (at, "mtime")))
    }
}
