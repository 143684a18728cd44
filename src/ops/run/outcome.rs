//! What becomes of a step when its worker's process has ended: a table over what the file says, and how the process ended.

use crate::plan::words::StepStatus;

/// How a process ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum How {
    /// By itself, or by somebody's signal.
    Exited,
    /// It took longer than it may.
    TimedOut,
    /// It said nothing for longer than it may.
    Idle,
    /// Somebody stopped the run.
    Stopped,
    /// There is no such program, or it cannot be started.
    NotStarted(String),
}

/// What the step's file says of the claim that the process worked under.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Found {
    /// Nothing is reported: in progress, or put back to pending by a save of an older text.
    Open,
    /// Called completed, and the claim is still the run's.
    Completed,
    /// The worker ended its claim, or wrote another status.
    Ended(StepStatus),
    /// Somebody else has the step, or nobody.
    Lost,
    /// The file cannot be read, or its status is no word.
    Unclear,
}

/// What the step's `verify` commands said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Verified {
    /// There are none.
    NotNeeded,
    Ok,
    /// The words of the one that failed.
    Failed(String),
    /// They are not what they were at the claim.
    Changed,
    /// Somebody stopped the run before they had ended.
    Stopped,
}

/// What is to be written and done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The commands have to be run, and then it is asked again.
    Verify,
    /// Completed, and the claim ends.
    Close,
    /// Completed; the next run verifies it.
    Leave,
    /// One attempt that came to nothing.
    Attempt(Outcome),
    /// Given back without an attempt: the step has nothing to do with it.
    GiveBack(String),
    /// The commands were changed under way: a person has to look.
    VerifyChanged,
    /// As the worker, or somebody, left it.
    AsItIs(StepStatus),
    Lost,
    Unclear,
}

/// The word of an attempt that came to nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Outcome {
    NoOutcome,
    TimedOut,
    Interrupted,
    VerifyFailed,
    /// As the worker said it.
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

/// Decides; `verified` is none as long as nobody has looked.
pub(crate) fn decide(found: Found, how: &How, verified: Option<&Verified>) -> Verdict {
    match (found, how, verified) {
        (Found::Lost, ..) => Verdict::Lost,
        (Found::Unclear, ..) => Verdict::Unclear,
        (Found::Ended(status), ..) => Verdict::AsItIs(status),
        (Found::Completed, _, None) => Verdict::Verify,
        (Found::Completed, _, Some(Verified::NotNeeded | Verified::Ok)) => Verdict::Close,
        (Found::Completed, _, Some(Verified::Failed(_))) => Verdict::Attempt(Outcome::VerifyFailed),
        (Found::Completed, _, Some(Verified::Changed)) => Verdict::VerifyChanged,
        (Found::Completed, _, Some(Verified::Stopped)) => Verdict::Leave,
        (Found::Open, How::Exited, _) => Verdict::Attempt(Outcome::NoOutcome),
        (Found::Open, How::TimedOut | How::Idle, _) => Verdict::Attempt(Outcome::TimedOut),
        (Found::Open, How::Stopped, _) => Verdict::Attempt(Outcome::Interrupted),
        (Found::Open, How::NotStarted(why), _) => Verdict::GiveBack(why.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_decides_and_then_how_the_process_ended() {
        use Outcome::{Interrupted, NoOutcome, TimedOut, VerifyFailed};
        let failed = || Verified::Failed("no".to_owned());
        let not_started = || How::NotStarted("no such file".to_owned());
        let all = [How::Exited, How::TimedOut, How::Idle, How::Stopped, not_started()];
        // Whatever the process did, what the file says counts.
        for how in &all {
            let said = |found, verified: Option<&Verified>| decide(found, how, verified);
            assert_eq!(said(Found::Completed, None), Verdict::Verify);
            assert_eq!(said(Found::Completed, Some(&Verified::NotNeeded)), Verdict::Close);
            assert_eq!(said(Found::Completed, Some(&Verified::Ok)), Verdict::Close);
            assert_eq!(said(Found::Completed, Some(&failed())), Verdict::Attempt(VerifyFailed));
            assert_eq!(said(Found::Completed, Some(&Verified::Changed)), Verdict::VerifyChanged);
            assert_eq!(said(Found::Completed, Some(&Verified::Stopped)), Verdict::Leave);
            assert_eq!(said(Found::Lost, None), Verdict::Lost);
            assert_eq!(said(Found::Unclear, None), Verdict::Unclear);
            for status in [StepStatus::Failed, StepStatus::Blocked, StepStatus::Skipped, StepStatus::Pending]
            {
                assert_eq!(said(Found::Ended(status), None), Verdict::AsItIs(status));
            }
        }
        let open = |how: How| decide(Found::Open, &how, None);
        assert_eq!(open(How::Exited), Verdict::Attempt(NoOutcome));
        assert_eq!(open(How::TimedOut), Verdict::Attempt(TimedOut));
        assert_eq!(open(How::Idle), Verdict::Attempt(TimedOut));
        assert_eq!(open(How::Stopped), Verdict::Attempt(Interrupted));
        assert_eq!(open(not_started()), Verdict::GiveBack("no such file".to_owned()));
    }
}
