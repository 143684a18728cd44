//! Classifies the paths of files below the plans directory.

use crate::plan::file_name::{FileName, classify};
use crate::plan::id::{PlanId, StepId};
use crate::plan::{decision, insight};

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Place {
    Plan { id: PlanId, is_archived: bool },
    Step { id: StepId, is_archived: bool },
    Decision,
    Insight,
}

impl Place {
    /// Classifies a path relative to the plans directory. `None`: the history does not include this file.
    pub fn of(path: &str) -> Option<Self> {
        let parts: Vec<&str> = path.split('/').collect();
        let (is_archived, plan, name) = match parts[..] {
            ["_archive", plan, name] => (true, plan, name),
            [decision::DIRECTORY, name] => return is_record(name).then_some(Self::Decision),
            [insight::DIRECTORY, name] => return is_record(name).then_some(Self::Insight),
            [plan, name] => (false, plan, name),
            _ => return None,
        };
        let id = PlanId::is_plan_name(plan).then(|| PlanId::new(plan))?;
        match classify(name) {
            FileName::Plan => Some(Self::Plan { id, is_archived }),
            FileName::Step(number) => Some(Self::Step { id: StepId { plan: id, number }, is_archived }),
            FileName::LooksLikeStep | FileName::Other => None,
        }
    }

    pub fn plan(&self) -> Option<&PlanId> {
        match self {
            Self::Plan { id, .. } => Some(id),
            Self::Step { id, .. } => Some(&id.plan),
            Self::Decision | Self::Insight => None,
        }
    }

    pub fn step(&self) -> Option<&StepId> {
        match self {
            Self::Step { id, .. } => Some(id),
            _ => None,
        }
    }

    pub fn is_archived(&self) -> bool {
        matches!(self, Self::Plan { is_archived: true, .. } | Self::Step { is_archived: true, .. })
    }

    /// The id of the plan or the step.
    pub fn id(&self) -> Option<String> {
        let plan = || self.plan().map(|it| it.as_str().to_owned());
        self.step().map(ToString::to_string).or_else(plan)
    }
}

fn is_record(name: &str) -> bool {
    name.ends_with(".md") && !name.starts_with('.')
}
