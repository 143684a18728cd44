//! Recognizes reports that are repeated because the first answer was lost. Such a report succeeds again, and changes
//! nothing.

use crate::plan::model::Step;
use crate::plan::plans::Plans;
use crate::plan::records::Attempt;
use crate::plan::time::Time;
use crate::store::fencing::{Caller, Owner};
use crate::store::step_file::StepUpdate;

/// For this many seconds, an attempt that equals the last one of the step counts as a repetition.
const AGAIN: i64 = 60;

#[derive(Debug, Clone, Copy)]
pub(crate) struct ReportedOutcome<'a> {
    pub(crate) outcome: &'a str,
    pub(crate) notes: Option<&'a str>,
}

impl ReportedOutcome<'_> {
    fn is(self, attempt: &Attempt) -> bool {
        (attempt.outcome.as_deref(), attempt.notes.as_deref()) == (Some(self.outcome), self.notes)
    }
}

pub(crate) const REPEATED: &str = "repeated";

pub(crate) fn repeated() -> StepUpdate {
    StepUpdate { did: REPEATED.to_owned(), ..StepUpdate::default() }
}

fn claim_of(attempt: &Attempt) -> Option<&str> {
    attempt.more.get("claim").and_then(|it| it.as_str())
}

/// The attempt by which a claim ended.
fn end_of<'a>(step: &'a Step, claim: &str) -> Option<&'a Attempt> {
    step.attempts.iter().rev().find(|it| claim_of(it) == Some(claim))
}

/// Whether the same report already ended the claim that the caller names.
pub(crate) fn is_end(owner: Owner, step: &Step, who: &Caller, report: ReportedOutcome<'_>) -> bool {
    let claim = who.claim.as_deref().filter(|_| owner == Owner::Late);
    claim.and_then(|it| end_of(step, it)).is_some_and(|it| report.is(it))
}

/// Whether the same report already released the claim that the caller names. A claim that was released without a message, or
/// undone, has no attempt. Other ways to end a claim write one.
pub(crate) fn is_release(
    plans: &Plans,
    owner: Owner,
    step: &Step,
    who: &Caller,
    report: ReportedOutcome<'_>,
) -> bool {
    let Some(claim) = who.claim.as_deref().filter(|_| owner == Owner::Late) else { return false };
    match end_of(step, claim) {
        Some(end) => report.is(end),
        None => report.notes.is_none() && !step.is_closed() && plans.claims().has_ended(step, claim),
    }
}

/// Whether the same attempt was recorded under the claim that the caller names, before that claim ended.
pub(crate) fn is_before_end(owner: Owner, step: &Step, who: &Caller, report: ReportedOutcome<'_>) -> bool {
    let claim = who.claim.as_deref().filter(|_| owner == Owner::Late);
    let Some(end) = claim.and_then(|it| end_of(step, it)) else { return false };
    let seconds = end.more.get("seconds").and_then(serde_json::Value::as_i64);
    let Some((until, seconds)) = end.at.zip(seconds) else { return false };
    let is_within = |at: Time| (0..=seconds).contains(&until.seconds_since(at));
    let is_it = |it: &Attempt| {
        report.is(it) && it.by.as_deref() == Some(who.by.as_str()) && it.at.is_some_and(is_within)
    };
    step.attempts.iter().any(is_it)
}

/// Whether the report repeats the last attempt of the step: outcome, notes, author and claim are the same, and the
/// attempt is less than a minute old. If `at` is given, the attempt's time must equal `at` instead.
pub(crate) fn is_recent(
    now: Time,
    step: &Step,
    who: &Caller,
    report: ReportedOutcome<'_>,
    at: Option<Time>,
) -> bool {
    let Some((last, then)) = step.attempts.last().and_then(|it| Some((it, it.at?))) else { return false };
    let is_again = match at {
        Some(at) => at.whole_seconds() == then.whole_seconds(),
        None => (0..AGAIN).contains(&now.seconds_since(then)),
    };
    let is_same_claim = match (step.claim_in_force(), claim_of(last)) {
        // The last attempt was recorded under the claim that is still in force.
        (Some(claim), ended) => {
            let is_own = who.claim.as_ref().is_none_or(|it| *it == claim.id);
            is_own && ended.is_none_or(|it| it == claim.id) && claim.at.is_some_and(|it| it <= then)
        }
        // The last attempt ended the claim.
        (None, Some(ended)) => who.claim.as_deref().is_none_or(|it| it == ended),
        (None, None) => false,
    };
    is_again && is_same_claim && report.is(last) && last.by.as_deref() == Some(who.by.as_str())
}
