//! The last published state of every plan: only what is needed to compute changes.

use crate::plan::model::{Plan, Step};
use crate::plan::words::{PlanStatus, Stated, StepStatus};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BaselinePlan {
    /// The displayed status: an active plan counts as completed when all its steps are closed.
    pub(crate) status: Stated<PlanStatus>,
    pub(crate) title: Box<str>,
    /// Of `plan.md`, relative to the plans directory.
    pub(crate) path: Box<str>,
    /// In the plan's order. Steps whose removal is not published yet come last.
    pub(crate) steps: Vec<BaselineStep>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BaselineStep {
    /// The file's name. It distinguishes two files with the same number.
    pub(crate) name: Box<str>,
    /// The number as displayed.
    pub(crate) number: Box<str>,
    pub(crate) title: Box<str>,
    pub(crate) status: Stated<StepStatus>,
    pub(crate) n_attempts: u32,
    /// False if the step is only a line of the Steps list.
    pub(crate) has_file: bool,
}

impl BaselinePlan {
    pub(crate) fn of(plan: &Plan) -> Self {
        let mut steps: Vec<_> = plan.steps.iter().map(BaselineStep::of).collect();
        steps.shrink_to_fit();
        Self {
            status: plan.shown_status().0,
            title: plan.title.as_str().into(),
            path: plan.path.as_str().into(),
            steps,
        }
    }

    pub(crate) fn step(&self, name: &str) -> Option<&BaselineStep> {
        self.steps.iter().find(|it| &*it.name == name)
    }
}

impl BaselineStep {
    pub(crate) fn of(step: &Step) -> Self {
        Self {
            name: name_of(&step.path).into(),
            number: step.id.number.to_string().into(),
            title: step.title.as_str().into(),
            status: step.status.clone(),
            n_attempts: u32::try_from(step.attempts.len()).unwrap_or(u32::MAX),
            has_file: step.has_file(),
        }
    }
}

pub(crate) fn name_of(path: &str) -> &str {
    path.rsplit_once('/').map_or(path, |(_, name)| name)
}
