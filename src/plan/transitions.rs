//! Which status may follow which, and by which verb.

use crate::plan::words::StepStatus;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Verb {
    #[default]
    Start,
    Done,
    Fail,
    Block,
    Skip,
    Reopen,
}

impl Verb {
    pub const ALL: [Self; 6] = [Self::Start, Self::Done, Self::Fail, Self::Block, Self::Skip, Self::Reopen];

    pub fn word(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Done => "done",
            Self::Fail => "fail",
            Self::Block => "block",
            Self::Skip => "skip",
            Self::Reopen => "reopen",
        }
    }

    pub fn target(self) -> StepStatus {
        match self {
            Self::Start => StepStatus::InProgress,
            Self::Done => StepStatus::Completed,
            Self::Fail => StepStatus::Failed,
            Self::Block => StepStatus::Blocked,
            Self::Skip => StepStatus::Skipped,
            Self::Reopen => StepStatus::Pending,
        }
    }

    pub fn giving(status: StepStatus) -> Self {
        // Each status has one verb.
        Self::ALL.into_iter().find(|it| it.target() == status).unwrap_or_default()
    }

    /// The outcome of an attempt that the verb records. If the verb is forced, the outcome is `forced` instead.
    pub fn outcome(self) -> &'static str {
        match self {
            Self::Start => "started",
            Self::Done => "completed",
            Self::Fail => "failed",
            Self::Block => "blocked",
            Self::Skip => "skipped",
            Self::Reopen => "reopened",
        }
    }

    /// Whether the move requires that the dependencies are closed and that all required confirmations are given.
    pub fn needs_readiness(self) -> bool {
        matches!(self, Self::Start | Self::Done)
    }
}

/// Whether a step in this status may be moved by this verb; from an unknown status every move is allowed.
///
/// A verb that would not change the status is always allowed, because it can still record a message.
pub fn is_allowed(from: Option<StepStatus>, verb: Verb) -> bool {
    use StepStatus::{Blocked, Completed, Failed, InProgress, Pending, Skipped};
    let Some(from) = from else { return true };
    if from == verb.target() {
        return true;
    }
    match from {
        Pending => verb != Verb::Reopen,
        // `reopen` is refused: `release` makes a step in progress pending again, and ends its claim.
        InProgress => !matches!(verb, Verb::Start | Verb::Reopen),
        Failed | Blocked => true,
        Completed => matches!(verb, Verb::Skip | Verb::Reopen),
        Skipped => matches!(verb, Verb::Done | Verb::Reopen),
    }
}

/// Whether a step in this status can be released. A pending step can be released, too; its status does not change.
pub fn may_be_released(from: Option<StepStatus>) -> bool {
    matches!(from, None | Some(StepStatus::InProgress | StepStatus::Pending))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moves_are_those_of_the_table() {
        use StepStatus::{Blocked, Completed, Failed, InProgress, Pending, Skipped};
        // Rows: from. Columns: start, done, fail, block, skip, reopen.
        let table = [
            (Pending, [true, true, true, true, true, true]),
            (InProgress, [true, true, true, true, true, false]),
            (Failed, [true, true, true, true, true, true]),
            (Blocked, [true, true, true, true, true, true]),
            (Completed, [false, true, false, false, true, true]),
            (Skipped, [false, true, false, false, true, true]),
        ];
        for (from, row) in table {
            for (verb, allowed) in Verb::ALL.into_iter().zip(row) {
                assert_eq!(is_allowed(Some(from), verb), allowed, "{from} {}", verb.word());
            }
        }
        assert!(Verb::ALL.into_iter().all(|it| is_allowed(None, it)));
    }
}
