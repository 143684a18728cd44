//! Decides the result of an attempt from the state of the step's file and from how the process ended.

use crate::plan::words::StepStatus;

/// How a process ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExitKind {
    /// It ended on its own, or by a signal from outside.
    Exited,
    TimedOut,
    /// It exceeded the limit of time without output.
    Idle,
    Stopped,
    /// The program does not exist, or cannot be started.
    NotStarted(String),
}

/// The state of the process's claim, as the step's file and the claim's record show it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ClaimState {
    /// No outcome was reported. The step is in progress, or pending again because someone saved an older text.
    Open,
    /// The step is completed, and the claim still belongs to the run.
    Completed,
    /// The worker ended its claim, or wrote another status.
    Ended(StepStatus),
    /// The step has another claim, or was not found, or is in progress although neither its file nor a record has the run's
    /// claim.
    Lost,
    /// The step has no file, or its file has an error because of which it must not be written, or its status is unknown.
    Unclear,
}

/// The result of the step's `verify` commands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Verified {
    /// There are no `verify` commands.
    NotNeeded,
    Ok,
    /// A command failed. The text contains the command, how it failed, and the end of its output.
    Failed(String),
    /// The commands, or files that they name, were changed after the attempt began.
    Changed,
    /// The run was stopped before the commands had ended.
    Stopped,
}

/// The result of an attempt: what is written into the step's file, and what the run does next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The `verify` commands have to run before the result can be decided.
    Verify,
    /// The step stays completed, and the claim ends.
    Close,
    /// The step stays completed, and the next run verifies it.
    Leave,
    Attempt(Outcome),
    /// The step is released, and no attempt is recorded, because the step did not cause the error. The text is the error.
    GiveBack(String),
    /// The `verify` commands, or files that they name, were changed during the attempt, so a person has to check them.
    VerifyChanged,
    /// The step was completed in its working tree, but its work cannot be merged. The text says why, and where the work is.
    NotMerged(String),
    /// The step keeps the status that the worker or another program gave it.
    AsItIs(StepStatus),
    Lost,
    /// Another machine has taken the step over; the result is late.
    Overtaken,
    Unclear,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Outcome {
    NoOutcome,
    TimedOut,
    Interrupted,
    VerifyFailed,
    /// The worker reported the failure.
    Failed,
}

impl Outcome {
    pub fn word(self) -> &'static str {
        match self {
            Self::NoOutcome => "no outcome reported",
            Self::TimedOut => "timed out",
            Self::Interrupted => "interrupted",
            Self::VerifyFailed => "verify failed",
            Self::Failed => "failed",
        }
    }
}

/// Decides the result of an attempt; `verified` is `None` until the `verify` commands have run.
pub(crate) fn decide(found: ClaimState, how: &ExitKind, verified: Option<&Verified>) -> Verdict {
    match (found, how, verified) {
        (ClaimState::Lost, ..) => Verdict::Lost,
        (ClaimState::Unclear, ..) => Verdict::Unclear,
        (ClaimState::Ended(status), ..) => Verdict::AsItIs(status),
        (ClaimState::Completed, _, None) => Verdict::Verify,
        (ClaimState::Completed, _, Some(Verified::NotNeeded | Verified::Ok)) => Verdict::Close,
        (ClaimState::Completed, _, Some(Verified::Failed(_))) => Verdict::Attempt(Outcome::VerifyFailed),
        (ClaimState::Completed, _, Some(Verified::Changed)) => Verdict::VerifyChanged,
        (ClaimState::Completed, _, Some(Verified::Stopped)) => Verdict::Leave,
        (ClaimState::Open, ExitKind::Exited, _) => Verdict::Attempt(Outcome::NoOutcome),
        (ClaimState::Open, ExitKind::TimedOut | ExitKind::Idle, _) => Verdict::Attempt(Outcome::TimedOut),
        (ClaimState::Open, ExitKind::Stopped, _) => Verdict::Attempt(Outcome::Interrupted),
        (ClaimState::Open, ExitKind::NotStarted(why), _) => Verdict::GiveBack(why.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_decides_and_then_how_the_process_ended() {
        use Outcome::{Interrupted, NoOutcome, TimedOut, VerifyFailed};
        let failed = || Verified::Failed("no".to_owned());
        let not_started = || ExitKind::NotStarted("no such file".to_owned());
        let all = [ExitKind::Exited, ExitKind::TimedOut, ExitKind::Idle, ExitKind::Stopped, not_started()];
        // The file decides, not the process.
        for how in &all {
            let said = |found, verified: Option<&Verified>| decide(found, how, verified);
            assert_eq!(said(ClaimState::Completed, None), Verdict::Verify);
            assert_eq!(said(ClaimState::Completed, Some(&Verified::NotNeeded)), Verdict::Close);
            assert_eq!(said(ClaimState::Completed, Some(&Verified::Ok)), Verdict::Close);
            assert_eq!(said(ClaimState::Completed, Some(&failed())), Verdict::Attempt(VerifyFailed));
            assert_eq!(said(ClaimState::Completed, Some(&Verified::Changed)), Verdict::VerifyChanged);
            assert_eq!(said(ClaimState::Completed, Some(&Verified::Stopped)), Verdict::Leave);
            assert_eq!(said(ClaimState::Lost, None), Verdict::Lost);
            assert_eq!(said(ClaimState::Unclear, None), Verdict::Unclear);
            for status in [StepStatus::Failed, StepStatus::Blocked, StepStatus::Skipped, StepStatus::Pending]
            {
                assert_eq!(said(ClaimState::Ended(status), None), Verdict::AsItIs(status));
            }
        }
        let open = |how: ExitKind| decide(ClaimState::Open, &how, None);
        assert_eq!(open(ExitKind::Exited), Verdict::Attempt(NoOutcome));
        assert_eq!(open(ExitKind::TimedOut), Verdict::Attempt(TimedOut));
        assert_eq!(open(ExitKind::Idle), Verdict::Attempt(TimedOut));
        assert_eq!(open(ExitKind::Stopped), Verdict::Attempt(Interrupted));
        assert_eq!(open(not_started()), Verdict::GiveBack("no such file".to_owned()));
    }
}
