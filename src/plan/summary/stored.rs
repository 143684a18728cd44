//! The form in which the index stores summaries.
//!
//! Most fields of a reduced step are empty. They are not stored, and neither are the plan's own name and the usual names of
//! its files. If they were, the summaries would be twice as large, and a query without the daemon would take a tenth longer
//! (benchmark T3).

use std::io::{Error, Read};
use std::mem;

use borsh::{BorshDeserialize, BorshSerialize};

use super::PlanSummary;
use crate::plan::file_name::{PLAN_FILE, step_file};
use crate::plan::id::{PlanId, StepId};
use crate::plan::model::{Plan, Step};
use crate::plan::problem::Problem;
use crate::plan::ranges::StepRange;
use crate::plan::records::{Attempt, Confirmation, Note};
use crate::plan::step_number::StepNumber;
use crate::plan::time::{Day, Time};
use crate::plan::words::{Stated, StepStatus};

/// A summary as the index stores it. Decoding its bytes as a [`PlanSummary`] gives an equal summary.
#[derive(BorshSerialize)]
pub(crate) struct StoredSummary {
    /// The plan without its steps.
    plan: Plan,
    steps: Vec<StoredStep>,
}

#[derive(BorshSerialize, BorshDeserialize)]
#[expect(clippy::large_enum_variant, reason = "most steps are short")]
enum StoredStep {
    Short(ShortStep),
    /// A step that a [`ShortStep`] cannot represent, such as one that is not reduced.
    Whole(Box<Step>),
}

/// The fields of a reduced step that can have a value.
#[derive(Clone, BorshSerialize, BorshDeserialize)]
struct ShortStep {
    number: StepNumber,
    /// `None`: the usual path.
    path: Option<String>,
    has_file: bool,
    modified: Option<Time>,
    status: Stated<StepStatus>,
    /// `None`: a step of the same plan.
    depends: Vec<(Option<PlanId>, StepNumber)>,
    ranges: Vec<StepRange>,
    phase: Option<String>,
    assignee: Option<String>,
    due: Option<Day>,
    created_at: Option<Time>,
    needs_confirmation: bool,
    confirmed: Option<Box<Confirmation>>,
    noted: Option<Time>,
    attempted: Option<Time>,
    problems: Vec<Problem>,
}

impl From<PlanSummary> for StoredSummary {
    fn from(PlanSummary(mut plan): PlanSummary) -> Self {
        let steps = mem::take(&mut plan.steps);
        let steps = steps.into_iter().map(|it| StoredStep::of(it, &plan)).collect();
        Self { plan, steps }
    }
}

/// The steps that memory is reserved for before they are read. A plan with more steps is read, too.
const RESERVED_STEPS: usize = 1_000;

impl BorshDeserialize for PlanSummary {
    /// Reads the bytes of a `StoredSummary`.
    ///
    /// Each step is converted before the next one is read, and memory for all of them is reserved first. A list of stored
    /// steps, to be converted afterwards, would take more memory.
    fn deserialize_reader<R: Read>(from: &mut R) -> Result<Self, Error> {
        let mut plan = Plan::deserialize_reader(from)?;
        let len = u32::deserialize_reader(from)?;
        let mut steps = Vec::with_capacity(RESERVED_STEPS.min(len as usize));
        for _ in 0..len {
            steps.push(StoredStep::deserialize_reader(from)?.of_plan(&plan));
        }
        plan.steps = steps;
        Ok(Self(plan))
    }
}

impl StoredStep {
    fn of(step: Step, plan: &Plan) -> Self {
        let short = ShortStep::of(&step, plan);
        let is_same = short.clone().of_plan(plan) == step;
        if is_same { Self::Short(short) } else { Self::Whole(Box::new(step)) }
    }

    fn of_plan(self, plan: &Plan) -> Step {
        match self {
            Self::Short(step) => step.of_plan(plan),
            Self::Whole(step) => *step,
        }
    }
}

impl ShortStep {
    fn of(step: &Step, plan: &Plan) -> Self {
        let depends = step.depends.iter().map(|it| {
            let other = (!it.plan.is_spelled_as(&plan.id)).then(|| it.plan.clone());
            (other, it.number.clone())
        });
        Self {
            number: step.id.number.clone(),
            path: Some(step.path.clone()).filter(|it| *it != usual_path(plan, &step.id.number)),
            has_file: step.has_file(),
            modified: step.modified,
            status: step.status.clone(),
            depends: depends.collect(),
            ranges: step.ranges.clone(),
            phase: step.phase.clone(),
            assignee: step.assignee.clone(),
            due: step.due,
            created_at: step.created_at,
            needs_confirmation: step.needs_confirmation,
            confirmed: step.confirmed.clone(),
            noted: step.notes.first().and_then(|it| it.at),
            attempted: step.attempts.first().and_then(|it| it.at),
            problems: step.problems.clone(),
        }
    }

    fn of_plan(self, plan: &Plan) -> Step {
        let own = |number| StepId { plan: plan.id.clone(), number };
        let depends = self.depends.into_iter().map(|(other, number)| match other {
            None => own(number),
            Some(plan) => StepId { plan, number },
        });
        let path = self.path.unwrap_or_else(|| usual_path(plan, &self.number));
        Step {
            etag: self.has_file.then(String::new),
            modified: self.modified,
            depends: depends.collect(),
            ranges: self.ranges,
            phase: self.phase,
            assignee: self.assignee,
            due: self.due,
            created_at: self.created_at,
            needs_confirmation: self.needs_confirmation,
            confirmed: self.confirmed,
            notes: Vec::from_iter(self.noted.map(|at| Note { at: Some(at), ..Note::default() })),
            attempts: Vec::from_iter(self.attempted.map(|at| Attempt { at: Some(at), ..Attempt::default() })),
            problems: self.problems,
            ..Step::bare(own(self.number), path, self.status)
        }
    }
}

fn usual_path(plan: &Plan, number: &StepNumber) -> String {
    let directory = plan.path.strip_suffix(PLAN_FILE).unwrap_or_default();
    directory.to_owned() + &step_file(number)
}
