//! The JSON shapes of plans and steps, one for all surfaces.
//!
//! No field of the JSON contains the time of the answer or an age, so the same files give the same bytes. The only fields
//! that can change with time are those that depend on whether a claim has lapsed.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;

use schemars::JsonSchema;
use serde::ser::Serializer;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::api::{attention, schema};
use crate::plan::claims::{HeldClaim, Holding, InForce};
use crate::plan::id::{StepId, read_step_id};
use crate::plan::model::{Order, Plan, PlanKind, StatusSource, Step};
use crate::plan::plans::Plans;
use crate::plan::problem::{Problem, Severity};
use crate::plan::records::{Attempt, Claim, Confirmation, Note, Priority, Verify};
use crate::plan::rules;
use crate::plan::step_number::StepNumber;
use crate::plan::time::{Day, Time};

pub const SCHEMA_VERSION: u32 = 1;

/// A plan as every surface shows it.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct PlanShape {
    pub id: String,
    pub title: String,
    #[schemars(schema_with = "schema::plan_status")]
    pub status: String,
    pub status_source: StatusSource,
    pub kind: PlanKind,
    pub category: Option<String>,
    pub order: Order,
    pub priority: Priority,
    /// For example `2026-11-21`.
    pub due: Option<Day>,
    pub program: Option<String>,
    pub tags: Vec<String>,
    pub files: Vec<String>,
    pub goals: Vec<String>,
    pub success_criteria: Vec<String>,
    pub description: Option<String>,
    pub archived: bool,
    /// Whether `draft` ended before it had finished the plan's text or made all passes.
    pub incomplete: bool,
    pub path: String,
    pub etag: Option<String>,
    pub created_at: Option<Time>,
    pub steps_total: usize,
    pub steps_completed: usize,
    pub steps_skipped: usize,
    pub steps_failed: usize,
    pub steps_blocked: usize,
    pub steps_in_progress: usize,
    pub steps_ready: usize,
    /// The state that `next` reports for the plan.
    #[schemars(schema_with = "schema::state")]
    pub state: &'static str,
    pub last_activity: Option<Time>,
    #[schemars(schema_with = "schema::activity")]
    pub last_activity_source: Option<&'static str>,
    pub confirm_phases: Vec<String>,
    pub confirmations: Vec<Confirmation>,
    pub notes: Vec<Note>,
    pub metadata: Map<String, Value>,
    pub custom: Map<String, Value>,
    pub problems: Vec<&'static str>,
    /// The most urgent reason why the plan needs attention. This field and the fields below are not part of the JSON.
    #[serde(skip)]
    pub attention: Option<Reason>,
    /// Steps whose claim lapsed. `steps_in_progress` counts them, too.
    #[serde(skip)]
    pub steps_lapsed: usize,
    /// The lapsed steps that another worker may take over. `steps_ready` counts them, too.
    #[serde(skip)]
    pub steps_lapsed_ready: usize,
    /// The workers who have claimed open steps of the plan, and the assignees of open steps.
    #[serde(skip)]
    pub people: Vec<String>,
}

impl PlanShape {
    /// The counts of steps that people can act on, each with its word. Counts of 0 are left out. Each step is counted once:
    /// if its claim has lapsed, only as `lapsed`. Steps that can be worked on come first.
    pub fn counts(&self) -> Vec<(usize, &'static str)> {
        let counts = [
            (self.steps_ready - self.steps_lapsed_ready, "ready"),
            (self.steps_lapsed, "lapsed"),
            (self.steps_in_progress - self.steps_lapsed, "in progress"),
            (self.steps_failed, "failed"),
            (self.steps_blocked, "blocked"),
        ];
        counts.into_iter().filter(|it| it.0 > 0).collect()
    }

    /// The count that [`Self::counts`] has for `word`, or 0.
    pub fn count_of(&self, word: &str) -> usize {
        self.counts().iter().find(|it| it.1 == word).map_or(0, |it| it.0)
    }
}

/// A step as every surface shows it.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct StepShape {
    pub id: String,
    pub plan: String,
    pub number: String,
    #[schemars(schema_with = "schema::step_number")]
    pub step_number: Value,
    pub title: String,
    #[schemars(schema_with = "schema::step_status")]
    pub status: String,
    /// A run's worker reported the step as completed, but the run ended before the `verify` commands had succeeded.
    pub unverified: bool,
    pub ready: bool,
    #[schemars(with = "Vec<String>")]
    pub depends: Vec<StepId>,
    /// Ranges of dependencies that are too long for `depends`, which contains only the first and the last step of each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub depends_ranges: Vec<RangeShape>,
    /// The steps that the step still waits for, and `confirmation` if a person still has to confirm the step or its phase.
    #[schemars(with = "Vec<String>")]
    pub waits_for: Vec<Awaited>,
    pub phase: Option<String>,
    #[serde(rename = "type")]
    pub kind: Option<String>,
    pub assignee: Option<String>,
    pub priority: Priority,
    /// The step's own due day, not that of its plan.
    pub due: Option<Day>,
    pub tags: Vec<String>,
    pub created_at: Option<Time>,
    pub created_by: String,
    pub claim: Option<Claim>,
    /// The owner of a claim that the file does not show, such as a claim of another working tree. Not part of the JSON.
    #[serde(skip)]
    pub held_by: Option<String>,
    pub lapsed: bool,
    pub confirm: bool,
    pub confirmed: Option<Confirmation>,
    pub verify: Vec<Verify>,
    pub touches: Option<Vec<String>>,
    pub result: Option<String>,
    pub attempts: Vec<Attempt>,
    pub notes: Vec<Note>,
    pub metadata: Map<String, Value>,
    pub tasks_done: usize,
    pub tasks_total: usize,
    pub last_activity: Option<Time>,
    #[schemars(schema_with = "schema::activity")]
    pub last_activity_source: Option<Cow<'static, str>>,
    pub path: String,
    pub etag: Option<String>,
    pub problems: Vec<Cow<'static, str>>,
    pub custom: Map<String, Value>,
}

/// Steps of a plan from one to another, both included.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "StepRange")]
pub struct RangeShape {
    #[schemars(with = "String")]
    pub first: StepId,
    #[schemars(with = "String")]
    pub last: StepId,
}

/// What an open step waits for. Ids become text only when they are shown, because a plan with many dependencies can have
/// hundreds of thousands of them.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub enum Awaited {
    Step(StepId),
    /// A person has to confirm the step or its phase.
    Confirmation,
}

const CONFIRMATION: &str = "confirmation";

impl fmt::Display for Awaited {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Step(id) => id.fmt(f),
            Self::Confirmation => f.write_str(CONFIRMATION),
        }
    }
}

impl Serialize for Awaited {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl TryFrom<String> for Awaited {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        match read_step_id(&text) {
            Some(id) => Ok(Self::Step(id)),
            None if text == CONFIRMATION => Ok(Self::Confirmation),
            None => Err(format!("`{text}` is neither the id of a step nor `{CONFIRMATION}`")),
        }
    }
}

fn ranges(step: &Step) -> Vec<RangeShape> {
    let id = |number: &StepNumber| StepId { plan: step.id.plan.clone(), number: number.clone() };
    step.ranges.iter().map(|it| RangeShape { first: id(&it.first), last: id(&it.last) }).collect()
}

impl StepShape {
    /// The dependencies as texts for people. A range is shown as `p:1 to p:200`.
    pub fn shown_depends(&self) -> Vec<String> {
        self.depends_as(&ToString::to_string, " to ")
    }

    /// The dependencies as texts. `name` returns the text for a step, and `to` is put between the ends of a range.
    pub fn depends_as(&self, name: &dyn Fn(&StepId) -> String, to: &str) -> Vec<String> {
        let is_end = |id: &StepId| self.depends_ranges.iter().any(|it| it.first == *id || it.last == *id);
        let ranges =
            self.depends_ranges.iter().map(|it| format!("{}{to}{}", name(&it.first), name(&it.last)));
        ranges.chain(self.depends.iter().filter(|it| !is_end(it)).map(name)).collect()
    }

    /// A short text with at most `most` of the items in `waits_for`. Steps of the same plan are shown by their number.
    pub fn shown_waits(&self, most: usize) -> String {
        let short = |it: &Awaited| match it {
            Awaited::Step(id) if id.plan.as_str() == self.plan => id.number.to_string(),
            other => other.to_string(),
        };
        let shown: Vec<_> = self.waits_for.iter().take(most).map(short).collect();
        match self.waits_for.len().saturating_sub(most) {
            0 => shown.join(", "),
            more => format!("{} and {more} more", shown.join(", ")),
        }
    }
}

/// Makes shapes from plans. It contains the plans, the time and the settings that shapes depend on.
#[derive(Debug, Clone)]
pub struct Views<'a> {
    pub plans: &'a Plans,
    pub now: Time,
    /// The number of seconds without a change after which a step is stale.
    pub(crate) stale_seconds: i64,
    /// The plans directory's own name, put before every path.
    pub(crate) root: String,
}

impl Views<'_> {
    pub fn path(&self, relative: &str) -> String {
        shown_path(&self.root, relative)
    }

    pub(crate) fn problem(&self, of: &Problem) -> Value {
        problem(&self.root, of)
    }

    pub fn plan(&self, plan: &Plan) -> PlanShape {
        let (status, status_source) = plan.shown_status();
        let progress = rules::progress(self.plans, plan, self.now);
        let last = last_activity(plan);
        PlanShape {
            id: plan.id.to_string(),
            title: plan.title.clone(),
            status: status.word().to_owned(),
            status_source,
            kind: plan.kind,
            category: plan.category.clone(),
            order: plan.order,
            priority: plan.priority,
            due: plan.due,
            program: plan.program.as_ref().map(ToString::to_string),
            tags: plan.tags.clone(),
            files: plan.files.clone(),
            goals: plan.goals.clone(),
            success_criteria: plan.success_criteria.clone(),
            description: plan.description.clone(),
            archived: plan.is_archived,
            incomplete: plan.is_incomplete(),
            path: self.path(&plan.path),
            etag: plan.etag.clone(),
            created_at: plan.created_at,
            steps_total: progress.total,
            steps_completed: progress.completed,
            steps_skipped: progress.skipped,
            steps_failed: progress.failed,
            steps_blocked: progress.blocked,
            steps_in_progress: progress.in_progress,
            steps_ready: progress.ready,
            state: rules::state(self.plans, plan, self.now).word(),
            last_activity: last.map(|(at, _)| at.whole_seconds()),
            last_activity_source: last.map(|(_, source)| source),
            confirm_phases: plan.confirm_phases.clone(),
            confirmations: plan.confirmations.clone(),
            notes: plan.notes.clone(),
            metadata: plan.metadata.clone(),
            custom: plan.custom.clone(),
            problems: codes(&plan.problems),
            attention: attention::of_plan(self.plans, plan, self.now, self.stale_seconds),
            steps_lapsed: progress.lapsed,
            steps_lapsed_ready: progress.lapsed_ready,
            people: people(self.plans, plan),
        }
    }

    pub fn step(&self, plan: &Plan, step: &Step) -> StepShape {
        let last = step.last_activity();
        StepShape {
            id: step.id.to_string(),
            plan: step.id.plan.to_string(),
            number: step.id.number.to_string(),
            step_number: step.id.number.to_json(),
            title: step.title.clone(),
            status: step.standing().word().to_owned(),
            unverified: step.is_unverified(),
            ready: rules::is_ready(self.plans, plan, step, self.now),
            depends: step.depends.clone(),
            depends_ranges: ranges(step),
            waits_for: waits_for(self.plans, plan, step),
            phase: step.phase.clone(),
            kind: step.kind.clone(),
            assignee: step.assignee.clone(),
            priority: step.priority.unwrap_or(plan.priority),
            due: step.due,
            tags: step.tags.clone(),
            created_at: step.created_at,
            created_by: step.created_by.clone(),
            claim: step.claim.as_deref().cloned(),
            held_by: self.plans.claims().holder(step).map(held_by),
            lapsed: rules::is_lapsed(self.plans, step, self.now),
            confirm: step.needs_confirmation,
            confirmed: step.confirmed.as_deref().cloned(),
            verify: step.verify.clone(),
            touches: step.touches.clone(),
            result: step.shown_result().map(str::to_owned),
            attempts: step.attempts.clone(),
            notes: step.notes.clone(),
            metadata: step.metadata.clone(),
            tasks_done: step.tasks_done,
            tasks_total: step.tasks_total,
            last_activity: last.map(|(at, _)| at.whole_seconds()),
            last_activity_source: last.map(|(_, source)| source.into()),
            path: self.path(&step.path),
            etag: step.etag.clone(),
            problems: codes(&step.problems).into_iter().map(Cow::Borrowed).collect(),
            custom: step.custom.clone(),
        }
    }
}

/// The texts for [`PlanShape::people`], in the order of the steps and without duplicates. Most are names. For a claim that
/// the step's file does not show, the text is that of [`held_by`].
fn people(plans: &Plans, plan: &Plan) -> Vec<String> {
    let mut names = Vec::new();
    for step in plan.steps.iter().filter(|it| !it.is_closed()) {
        let claimed = step.claim.as_ref().and_then(|it| it.by.clone());
        let held = plans.claims().holder(step).map(held_by);
        names.extend([claimed, held, step.assignee.clone()].into_iter().flatten());
    }
    let mut seen = HashSet::new();
    names.retain(|it| seen.insert(it.clone()));
    names
}

/// A text for people about the owner of a claim. It contains the owner's name, or the claim's id if the name is unknown. If
/// the claim was made elsewhere, the text also says where. If the work ended on another machine and is not merged, the text
/// also says this. If the step was closed on a branch, the text says only this.
fn held_by(held: &HeldClaim) -> String {
    let by = held.by.as_ref().unwrap_or(&held.claim);
    match &held.holding {
        Holding::Elsewhere { .. } => format!("{by} in another working tree"),
        Holding::Closed { is_here: true, .. } => "closed on this branch".to_owned(),
        Holding::Closed { .. } => "closed on another branch".to_owned(),
        Holding::Remote { host, .. } => format!("{by} on {host}"),
        Holding::EndedRemote { status, host, .. } => format!("{status} by {by} on {host}, not merged"),
        Holding::Here => by.clone(),
    }
}

fn waits_for(plans: &Plans, plan: &Plan, step: &Step) -> Vec<Awaited> {
    if step.is_closed() {
        return Vec::new();
    }
    let mut all = Vec::with_capacity(step.depends.len());
    all.extend(rules::waited_for(plans, plan, step).map(|it| Awaited::Step(it.clone())));
    all.dedup();
    all.extend(rules::missing_confirmation(plan, step).map(|_| Awaited::Confirmation));
    all
}

/// Puts the plans directory's own name before a path inside it.
pub fn shown_path(root: &str, relative: &str) -> String {
    if root.is_empty() { relative.to_owned() } else { format!("{root}/{relative}") }
}

pub(crate) fn codes(problems: &[Problem]) -> Vec<&'static str> {
    let mut codes = Vec::new();
    for code in problems.iter().map(|it| it.code.text()) {
        if !codes.contains(&code) {
            codes.push(code);
        }
    }
    codes
}

/// Returns the newest activity of a plan and all its steps. Modification times of files are used only if no other time is
/// recorded.
pub fn last_activity(plan: &Plan) -> Option<(Time, &'static str)> {
    let notes = plan.notes.iter().filter_map(|it| it.at).map(|at| (at, "note"));
    let confirmed = plan.confirmations.iter().filter_map(|it| it.at).map(|at| (at, "confirmation"));
    let steps = plan.steps.iter().filter_map(Step::last_activity);
    let own = plan.modified.map(|at| (at, "mtime"));
    notes.chain(confirmed).chain(steps).chain(own).max_by_key(|(at, source)| (*source != "mtime", *at))
}

/// The fields of a value and the fields of `more` in one object. If both have a field, that of `more` is used.
pub(crate) fn with(of: &impl Serialize, more: Value) -> Value {
    let mut object = value(of);
    if let (Value::Object(object), Value::Object(more)) = (&mut object, more) {
        object.extend(more);
    }
    object
}

/// The claim that is in force on a step.
pub(crate) fn held(of: &InForce) -> Value {
    let InForce { claim, by, until, worktree, host } = of;
    let mut held = json!({"claim": claim, "by": by, "until": until, "worktree": worktree});
    if let Some(host) = host {
        held["host"] = host.as_str().into();
    }
    held
}

/// A problem as every surface shows it.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[schemars(rename = "Problem")]
pub(crate) struct ProblemShape {
    severity: Severity,
    code: &'static str,
    message: String,
    path: String,
    line: u32,
    column: u32,
    hint: String,
    fixable: bool,
}

/// A problem as every surface shows it. The plans directory's own name is put before the problem's path.
pub fn problem(root: &str, problem: &Problem) -> Value {
    value(&ProblemShape {
        severity: problem.severity(),
        code: problem.code.text(),
        message: problem.message.clone(),
        path: shown_path(root, &problem.path),
        line: problem.line,
        column: problem.column,
        hint: problem.hint.clone(),
        fixable: problem.is_fixable,
    })
}

/// Puts the version and the kind in front of a report's fields.
pub fn envelope(kind: &str, fields: Value) -> Value {
    let mut object = Map::new();
    object.insert("schema_version".to_owned(), SCHEMA_VERSION.into());
    object.insert("kind".to_owned(), kind.into());
    match fields {
        Value::Object(map) => {
            object.extend(map.into_iter().filter(|(key, _)| key != "kind" && key != "schema_version"));
        }
        other => {
            object.insert("value".to_owned(), other);
        }
    }
    Value::Object(object)
}

/// Serializes a value that cannot fail to serialize, because all keys of its maps are texts and its floats are finite.
pub(crate) fn value(of: &impl Serialize) -> Value {
    serde_json::to_value(of).unwrap_or(Value::Null)
}

/// Why a step or a plan needs attention. The most urgent reason comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    Failed,
    Blocked,
    ToConfirm,
    NotVerified,
    Lapsed,
    Faulty,
    /// The due day of the step or of its plan is over. `staleness::overdue` says which of the two days applies.
    Overdue,
    Stale,
}

impl Reason {
    pub const ALL: [Self; 8] = [
        Self::Failed,
        Self::Blocked,
        Self::ToConfirm,
        Self::NotVerified,
        Self::Lapsed,
        Self::Faulty,
        Self::Overdue,
        Self::Stale,
    ];

    pub fn word(self) -> &'static str {
        match self {
            Self::Failed => "failed",
            Self::Blocked => "blocked",
            Self::ToConfirm => "to confirm",
            Self::NotVerified => "not verified",
            Self::Lapsed => "lapsed",
            Self::Faulty => "faulty",
            Self::Overdue => "overdue",
            Self::Stale => "stale",
        }
    }
}
