//! How a step's status is displayed: its class in the style sheet, its words and its mark.

use crate::api::views::StepShape;

/// A step's status as it is shown; pending steps are ready or waiting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Look {
    Ready,
    Waiting,
    InProgress,
    Completed,
    Failed,
    Blocked,
    Skipped,
    /// Only attempts have this look: the work was done in part.
    Partial,
    /// The status cannot be read, the outcome is missing, or the word is not one that planwatch knows.
    Unknown,
}

impl Look {
    /// All looks that a step can have.
    pub const ALL: [Self; 8] = [
        Self::Ready,
        Self::Waiting,
        Self::InProgress,
        Self::Completed,
        Self::Failed,
        Self::Blocked,
        Self::Skipped,
        Self::Unknown,
    ];

    pub fn of(step: &StepShape) -> Self {
        match step.status.as_str() {
            "pending" if step.ready => Self::Ready,
            status => Self::of_status(status),
        }
    }

    /// Returns [`Self::Waiting`] for a pending step, because the status alone does not show whether the step is ready.
    pub fn of_status(status: &str) -> Self {
        match status {
            "pending" => Self::Waiting,
            "in_progress" => Self::InProgress,
            "completed" => Self::Completed,
            "failed" => Self::Failed,
            "blocked" => Self::Blocked,
            "skipped" => Self::Skipped,
            _ => Self::Unknown,
        }
    }

    /// The class that the style sheet colours.
    pub fn class(self) -> &'static str {
        match self {
            Self::Ready => "is-ready",
            Self::Waiting => "is-waiting",
            Self::InProgress => "is-in-progress",
            Self::Completed => "is-completed",
            Self::Failed => "is-failed",
            Self::Blocked => "is-blocked",
            Self::Skipped => "is-skipped",
            Self::Partial => "is-partial",
            Self::Unknown => "is-unknown",
        }
    }

    pub fn words(self) -> &'static str {
        match self {
            Self::Ready => "ready",
            Self::Waiting => "waiting",
            Self::InProgress => "in progress",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Blocked => "blocked",
            Self::Skipped => "skipped",
            Self::Partial => "partly done",
            Self::Unknown => "unknown status",
        }
    }

    /// One character, which can be read without colour. The terminal shows the same one.
    pub fn mark(self) -> char {
        match self {
            Self::Ready | Self::Waiting => '○',
            Self::InProgress => '◐',
            Self::Completed => '●',
            Self::Failed => '✗',
            Self::Blocked => '■',
            Self::Skipped => '–',
            Self::Partial => '◑',
            Self::Unknown => '?',
        }
    }
}
