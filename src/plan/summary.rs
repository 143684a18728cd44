//! Reduces plans to what queries over all plans need: the data for counts, rules and times. Steps that have a claim,
//! or are perhaps ready to be claimed, stay whole.

mod stored;

use std::mem;

pub(crate) use stored::StoredSummary;

use crate::plan::id::StepId;
use crate::plan::model::{Plan, Step};
use crate::plan::plans::Plans;
use crate::plan::records::{Attempt, Note};
use crate::plan::words::{PlanStatus, Stated, StepStatus};

/// A plan without its body, in which only some steps are whole.
///
/// A step stays whole if it has a claim. If its plan is active and not archived, a step also stays whole if it is pending,
/// has a file, and waits for no other step of the plan. The other steps are reduced to the data for the counts, rules and
/// times of the plan and of other steps: for example, the newest time of their attempts and notes, and whether there is a
/// file. Problems of a reduced step that involve several files are still found, but without their line and column. The other
/// fields of a reduced step are wrong, so the plan inside is private.
#[derive(Debug, Clone, PartialEq)]
pub struct PlanSummary(Plan);

#[cfg(test)]
impl PlanSummary {
    pub(crate) fn plan(&self) -> &Plan {
        &self.0
    }
}

#[derive(Debug, Clone, Default)]
pub struct PlanSummaries(Plans);

impl PlanSummaries {
    /// Like [`Plans::judged`].
    pub fn judged(summaries: Vec<PlanSummary>) -> Self {
        Self(Plans::judged(summaries.into_iter().map(|it| it.0).collect()))
    }

    /// Applies a function to the plans, for example one that adds claims. The function may read only the fields that rules
    /// read.
    #[must_use]
    pub fn map(self, of: impl FnOnce(Plans) -> Plans) -> Self {
        Self(of(self.0))
    }

    /// Returns the plans. Every field of a plan may be read, except `body`. Most steps are reduced, so of a step only the
    /// fields that rules and counts need may be read. If a rule found a step ready, all fields of the step may be read.
    pub fn with_reduced_steps(&self) -> &Plans {
        &self.0
    }
}

impl Plan {
    pub fn summarize(mut self) -> PlanSummary {
        let open = self.open_places(|it| !is_said_closed(it)).unwrap_or_default();
        let is_whole: Vec<_> = self.steps.iter().map(|it| self.is_kept_whole(it, &open)).collect();
        let is_gated = self.is_gated();
        self.waits_inside = self.is_waiting_inside();
        for (step, _) in self.steps.iter_mut().zip(is_whole).filter(|(_, is_whole)| !is_whole) {
            // Moved, not copied, because a plan may have many thousands of dependencies.
            let (depends, ranges) = (mem::take(&mut step.depends), mem::take(&mut step.ranges));
            *step = Step { depends, ranges, ..step.reduced(is_gated) };
        }
        self.body = String::new();
        PlanSummary(self)
    }

    /// Returns the same as [`Plan::summarize`], but copies only what the summary contains.
    #[must_use]
    pub fn summary(&self) -> PlanSummary {
        let is_gated = self.is_gated();
        let open = self.open_places(|it| !is_said_closed(it)).unwrap_or_default();
        let reduced =
            |it: &Step| if self.is_kept_whole(it, &open) { it.clone() } else { it.reduced(is_gated) };
        PlanSummary(Self {
            steps: self.steps.iter().map(reduced).collect(),
            body: String::new(),
            id: self.id.clone(),
            is_archived: self.is_archived,
            path: self.path.clone(),
            etag: self.etag.clone(),
            modified: self.modified,
            status: self.status.clone(),
            title: self.title.clone(),
            description: self.description.clone(),
            kind: self.kind,
            program: self.program.clone(),
            program_at: self.program_at,
            category: self.category.clone(),
            priority: self.priority,
            due: self.due,
            tags: self.tags.clone(),
            files: self.files.clone(),
            goals: self.goals.clone(),
            success_criteria: self.success_criteria.clone(),
            order: self.order,
            confirm_phases: self.confirm_phases.clone(),
            confirmations: self.confirmations.clone(),
            draft: self.draft.clone(),
            created_at: self.created_at,
            metadata: self.metadata.clone(),
            notes: self.notes.clone(),
            custom: self.custom.clone(),
            problems: self.problems.clone(),
            waits_inside: self.is_waiting_inside(),
        })
    }

    /// The value for [`Plan::waits_inside`]: whether all dependencies of all steps are earlier steps of the same plan.
    pub(crate) fn is_waiting_inside(&self) -> bool {
        let is_before = |at: usize, id: &StepId| {
            id.plan == self.id && self.place_of(&id.number).is_some_and(|place| place < at)
        };
        self.steps.iter().enumerate().all(|(at, step)| step.depends.iter().all(|it| is_before(at, it)))
    }

    /// Whether the phases of steps matter to rules, not only to the display of the plan.
    fn is_gated(&self) -> bool {
        !self.confirm_phases.is_empty() || !self.confirmations.is_empty()
    }

    /// Whether a step has a claim, or may be ready according to the plan's own files.
    ///
    /// Other plans, the claim records and the time can keep a step without a claim from being ready, but they cannot make it
    /// ready. A step with a claim may become ready when the claim lapses. `open` contains the indices of the steps that are
    /// not closed; it is empty if no step has ranges.
    fn is_kept_whole(&self, step: &Step, open: &[usize]) -> bool {
        step.claim.is_some() || (step.status.is(StepStatus::Pending) && self.may_hand_out(step, open))
    }

    fn may_hand_out(&self, step: &Step, open: &[usize]) -> bool {
        let mut own = step.depends.iter().filter(|it| it.plan == self.id);
        step.has_file()
            && !self.is_archived
            && self.status.is(PlanStatus::Active)
            && own.all(|it| self.find(it).is_some_and(is_said_closed))
            && self.in_ranges(step, open).next().is_none()
            && self.before(step).is_none_or(is_said_closed)
    }
}

fn is_said_closed(step: &Step) -> bool {
    step.status.known().is_some_and(StepStatus::is_closed)
}

impl Step {
    fn reduced(&self, is_gated: bool) -> Self {
        let attempted = self.attempts.iter().filter_map(Attempt::newest).max();
        let counts_made = self.last_activity().is_some_and(|(_, source)| source == "created");
        let noted = self.notes.iter().filter_map(|it| it.at).max();
        Self {
            etag: self.etag.as_ref().map(|_| String::new()),
            modified: self.modified,
            depends: self.depends.clone(),
            ranges: self.ranges.clone(),
            phase: self.phase.clone().filter(|_| is_gated),
            assignee: self.assignee.clone(),
            due: self.due,
            created_at: self.created_at.filter(|_| counts_made),
            needs_confirmation: self.needs_confirmation,
            confirmed: self.confirmed.clone(),
            notes: Vec::from_iter(noted.map(|at| Note { at: Some(at), ..Note::default() })),
            attempts: Vec::from_iter(attempted.map(|at| Attempt { at: Some(at), ..Attempt::default() })),
            problems: self.problems.clone(),
            ..Self::bare(self.id.clone(), self.path.clone(), self.status.clone())
        }
    }

    /// A step all of whose other fields are empty.
    fn bare(id: StepId, path: String, status: Stated<StepStatus>) -> Self {
        Self {
            id,
            path,
            etag: None,
            modified: None,
            title: String::new(),
            status,
            claim: None,
            depends: Vec::new(),
            ranges: Vec::new(),
            depends_at: Vec::new(),
            phase: None,
            kind: None,
            assignee: None,
            priority: None,
            due: None,
            tags: Vec::new(),
            created_at: None,
            created_by: String::new(),
            needs_confirmation: false,
            confirmed: None,
            verify: Vec::new(),
            touches: None,
            result: None,
            notes: Vec::new(),
            attempts: Vec::new(),
            metadata: serde_json::Map::new(),
            custom: serde_json::Map::new(),
            tasks_done: 0,
            tasks_total: 0,
            body: String::new(),
            problems: Vec::new(),
            run: None,
        }
    }
}
