//! The columns of a plan's board: one rule for the terminal and the browser.

use crate::api::views::StepShape;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Column {
    Waiting,
    Ready,
    Doing,
    Stuck,
    Done,
}

impl Column {
    pub const ALL: [Self; 5] = [Self::Waiting, Self::Ready, Self::Doing, Self::Stuck, Self::Done];

    /// A step whose file cannot be read or has an unknown status is stuck, like a failed one: it needs a person.
    pub fn of(step: &StepShape) -> Self {
        match step.status.as_str() {
            "in_progress" => Self::Doing,
            _ if step.unverified => Self::Doing,
            "completed" | "skipped" => Self::Done,
            "pending" if step.ready => Self::Ready,
            "pending" => Self::Waiting,
            _ => Self::Stuck,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Waiting => "Waiting",
            Self::Ready => "Ready",
            Self::Doing => "In progress",
            Self::Stuck => "Blocked/Failed",
            Self::Done => "Done",
        }
    }
}
