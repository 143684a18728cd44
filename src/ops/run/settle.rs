//! Ends an attempt in the step's file: reads the state of the claim, and writes the result.

use std::path::Path;

use crate::api::context::Context;
use crate::api::error::Error;
use crate::ops::claim::{Begun, Task};
use crate::ops::run::outcome::{ClaimState, Outcome, Verdict};
use crate::plan::change::{EndedClaim, NewAttempt, NewNote};
use crate::plan::id::read_step_id;
use crate::plan::model::{Plan, Step};
use crate::plan::records::NoteType;
use crate::plan::words::StepStatus;
use crate::store::decision::Decision;
use crate::store::leases::{self, Leases, Record};
use crate::store::load::{DecisionFiles, LoadQuery};
use crate::store::registry::record::State;
use crate::store::resolve::NamedStep;
use crate::store::step_file::{self, Current, StepUpdate};
use crate::store::transaction::{Mode, Transaction, once_saved};

/// The maximum number of characters of a process's output in the notes of an attempt.
const NOTES: usize = 4_000;

/// The outcome of an attempt whose work could not be merged.
pub(super) const MERGE_CONFLICT: &str = "merge conflict";

/// What is known of the process, for the entry in `attempts`.
#[derive(Debug, Clone, Default)]
pub(crate) struct Facts {
    pub(crate) by: String,
    pub(crate) exit_code: Option<i32>,
    pub(crate) cost: Option<f64>,
    /// The text for the attempt's notes: the agent's answer, or what a failed `verify` command printed.
    pub(crate) said: String,
}

/// Reads the state of a claim from the step's file. Waits for a save in progress.
pub(crate) fn look(context: &Context, begun: &Begun) -> Result<(ClaimState, Option<Step>), Error> {
    once_saved(context, || look_now(context, begun))
}

fn look_now(context: &Context, begun: &Begun) -> Result<(ClaimState, Option<Step>), Error> {
    // If the step got another number meanwhile, the claim's record is under that number.
    let moved = Leases::of(context).find(&begun.claim).and_then(|it| read_step_id(&it.step));
    let moved = moved.filter(|it| *it != begun.step.id);
    let id = moved.as_ref().unwrap_or(&begun.step.id);
    let plans = match LoadQuery::step(id).settled(DecisionFiles::Plan(&id.plan)).load(context) {
        Ok(loaded) => Some(Leases::of(context).annotate(loaded.plans)),
        Err(Error::NotFound { .. }) => None,
        Err(error) => return Err(error),
    };
    let is_it = |it: &&Step| match moved {
        Some(_) => it.claim.as_ref().is_some_and(|it| it.id == begun.claim),
        None => it.path == begun.step.path,
    };
    let step = plans.as_ref().and_then(|it| it.step(id)).filter(is_it);
    if step.is_none_or(|it| !it.has_file()) {
        context.plans.saves(context).refuse_vanished(Path::new(&begun.step.path))?;
    }
    let state = step.map_or(ClaimState::Lost, |it| found(context, it, &begun.claim));
    Ok((state, step.cloned()))
}

/// Ends the record of a lost claim. Otherwise the record would count as work in progress as long as the run lives, and the
/// run would wait for that work. Returns false if the claim is no longer lost.
///
/// The claim's state is read again under the lock. Without the lock, a step may be missing while it gets another number.
pub(crate) fn end_lost(context: &Context, begun: &Begun) -> Result<bool, Error> {
    once_saved(context, || {
        let _writing = Transaction::begin(context, "run", Mode::Write)?;
        let is_lost = look_now(context, begun)?.0 == ClaimState::Lost;
        if is_lost {
            leases::end_unclaimed(context, &begun.claim);
        }
        Ok(is_lost)
    })
}

/// Whether there is still a record of the run's claim.
pub(crate) fn is_ours(context: &Context, begun: &Begun) -> bool {
    Leases::of(context).find(&begun.claim).is_some()
}

fn found(context: &Context, step: &Step, claim: &str) -> ClaimState {
    if step.problems.iter().any(|it| it.code.refuses_writing()) || !step.has_file() {
        return ClaimState::Unclear;
    }
    let Some(status) = step.status.known() else { return ClaimState::Unclear };
    match &step.claim {
        Some(other) if other.id != claim => ClaimState::Lost,
        // Without a record, the claim has ended. If an editor merely saved a text without the claim, the record still
        // exists.
        None if Leases::of(context).find(claim).is_none() => match status {
            StepStatus::InProgress => ClaimState::Lost,
            status => ClaimState::Ended(status),
        },
        _ => match status {
            StepStatus::InProgress | StepStatus::Pending => ClaimState::Open,
            StepStatus::Completed => ClaimState::Completed,
            status => ClaimState::Ended(status),
        },
    }
}

/// Writes the verdict into the step's file. Returns `None` if the file has changed and has to be read again.
///
/// If the verdict changes nothing, the file is only read. Waits for a save in progress.
pub(crate) fn write(
    context: &Context,
    begun: &Begun,
    seen: &Step,
    verdict: &Verdict,
    facts: &Facts,
) -> Result<Option<Step>, Error> {
    let what = |it: &Step| (it.status.clone(), it.claim.clone(), it.verify.clone());
    let decided = once_saved(context, || {
        let mut writing = Transaction::begin(context, "run", Mode::Write)?;
        let done = step_file::update_with(
            context,
            &mut writing,
            &NamedStep::of(seen),
            &|Current { step, .. }| {
                let is_same = what(step) == what(seen);
                if !is_same || found(context, step, &begun.claim) != found(context, seen, &begun.claim) {
                    return Ok(Decision::Leave(()));
                }
                Ok(Decision::Write(update(context, begun, step, verdict, facts), ()))
            },
        );
        if done.as_ref().is_err_and(|it| it.code() == "not-found") {
            context.plans.saves(context).refuse_vanished(Path::new(&seen.path))?;
        }
        done
    })?;
    match decided {
        Decision::Write(done, ()) => Ok(Some(done.after)),
        Decision::Leave(()) => Ok(None),
    }
}

/// Releases a step that could not be begun; `why` is the reason. A step that only has to be verified stays as it is.
pub(super) fn give_back(context: &Context, begun: &Begun, by: &str, why: &str) -> Result<(), Error> {
    let (_, seen) = look(context, begun)?;
    let Some(seen) = seen.filter(|_| begun.task == Task::Work) else { return Ok(()) };
    let facts = Facts { by: by.to_owned(), ..Facts::default() };
    write(context, begun, &seen, &Verdict::GiveBack(why.to_owned()), &facts).map(drop)
}

/// Removes the claim of a killed run from a step that its worker completed and that has no `verify` commands. If the run had
/// not been killed, it would have removed the claim. Only steps in plans for which `is_own` returns true are changed.
pub(super) fn end_void(
    context: &Context,
    record: &Record,
    is_own: &dyn Fn(&Plan) -> bool,
) -> Result<(), Error> {
    let Some(id) = read_step_id(&record.step) else { return Ok(()) };
    let is_void = |it: &Step| {
        let is_its = it.claim.as_ref().is_some_and(|it| it.id == record.claim);
        is_its && it.status.is(StepStatus::Completed) && it.has_void_claim()
    };
    let plans = Leases::of(context).annotate_for(LoadQuery::step(&id).load(context)?.plans, &id);
    let found = plans.get(&id.plan).filter(|it| is_own(it)).and_then(|it| it.find(&id));
    let Some(step) = found.filter(|it| is_void(it)) else { return Ok(()) };
    let mut writing = Transaction::begin(context, "run", Mode::Write)?;
    let decide = |now: Current<'_>| {
        let update = StepUpdate { removes_claim: true, ..StepUpdate::default() };
        Ok(if is_void(now.step) { Decision::Write(update, ()) } else { Decision::Leave(()) })
    };
    step_file::update_with(context, &mut writing, &NamedStep::of(step), &decide).map(drop)
}

/// Blocks a step that was closed although its work cannot be merged.
pub(super) fn block(context: &Context, step: &Step, by: &str, why: &str) -> Result<(), Error> {
    once_saved(context, || {
        let mut writing = Transaction::begin(context, "run", Mode::Write)?;
        let blocked = |_: Current<'_>| {
            let notes = Some(why.to_owned());
            let attempts = vec![NewAttempt { notes, ..NewAttempt::new(context.now, by, MERGE_CONFLICT) }];
            Ok(StepUpdate { status: Some(StepStatus::Blocked), attempts, ..StepUpdate::default() })
        };
        step_file::update(context, &mut writing, &NamedStep::of(step), &blocked).map(drop)
    })
}

fn update(context: &Context, begun: &Begun, step: &Step, verdict: &Verdict, facts: &Facts) -> StepUpdate {
    let has_line = step.claim.is_some();
    let mut update = StepUpdate { removes_claim: has_line, ends_record: !has_line, ..StepUpdate::default() };
    let attempt = |outcome: &str, notes: Option<String>| new_attempt(context, begun, facts, outcome, notes);
    let has = |outcome: &str| {
        let is_it = |it: &crate::plan::records::Attempt| {
            it.outcome.as_deref() == Some(outcome) && it.is_of_claim(&begun.claim)
        };
        step.attempts.iter().any(is_it)
    };
    match verdict {
        Verdict::Close => {
            // If the run only verified the step, the worker's attempt is already in the file.
            let last = step.attempts.last().and_then(|it| it.outcome.as_deref());
            let is_told = has("completed") || begun.task == Task::Verify && last == Some("completed");
            update.attempts.extend((!is_told).then(|| attempt("completed", None)));
        }
        Verdict::Attempt(outcome) => {
            update.attempts.push(attempt(outcome.word(), notes(begun, facts)));
            let is_last = is_last_try(context, step, *outcome);
            update.status = Some(if is_last { StepStatus::Failed } else { StepStatus::Pending });
        }
        Verdict::GiveBack(_) => update.status = Some(StepStatus::Pending),
        Verdict::VerifyChanged => {
            update.attempts.push(attempt("verify changed", None));
            update.status = Some(StepStatus::Blocked);
        }
        Verdict::NotMerged(why) => {
            update.attempts.push(attempt(MERGE_CONFLICT, Some(why.clone())));
            update.status = Some(StepStatus::Blocked);
        }
        // If the worker wrote the status into the file itself, no attempt is recorded yet.
        Verdict::AsItIs(status @ (StepStatus::Failed | StepStatus::Blocked | StepStatus::Skipped)) => {
            let outcome = crate::plan::transitions::Verb::giving(*status).outcome();
            update.attempts.extend((!has(outcome)).then(|| attempt(outcome, None)));
        }
        Verdict::Overtaken => {
            let head = format!("late result of the claim {}: ", begun.claim);
            let text = format!("{head}{}; another machine had taken the step over", step.status.word());
            let (at, kind, by) = (context.now, NoteType::Warning, facts.by.clone());
            let is_noted = step.notes.iter().any(|it| it.text.starts_with(&head));
            update.notes.extend((!is_noted).then_some(NewNote { at, kind, by, text }));
            update.status = Some(StepStatus::Pending);
        }
        Verdict::AsItIs(_) | Verdict::Verify | Verdict::Leave | Verdict::Lost | Verdict::Unclear => {}
    }
    update
}

fn is_last_try(context: &Context, step: &Step, outcome: Outcome) -> bool {
    outcome != Outcome::Interrupted && step.tries() + 1 >= context.config.max_attempts() as usize
}

/// The state in which a verdict ends the claim's record at the registry. `None`: the record is removed, or the verdict does
/// not end the claim.
pub(crate) fn state_after(context: &Context, step: &Step, verdict: &Verdict) -> Option<State> {
    match verdict {
        Verdict::Close => Some(State::Completed),
        Verdict::VerifyChanged | Verdict::NotMerged(_) => Some(State::Blocked),
        Verdict::AsItIs(status) => State::of(*status),
        Verdict::Attempt(outcome) => is_last_try(context, step, *outcome).then_some(State::Failed),
        _ => None,
    }
}

fn new_attempt(
    context: &Context,
    begun: &Begun,
    facts: &Facts,
    outcome: &str,
    notes: Option<String>,
) -> NewAttempt {
    let at = begun.step.claim.as_ref().and_then(|it| it.at);
    let claim = EndedClaim {
        id: begun.claim.clone(),
        seconds: at.map(|at| context.now.seconds_since(at)),
        exit_code: facts.exit_code,
        cost: facts.cost.map(|it| it.to_string()),
        log: Some(begun.log.clone()),
    };
    NewAttempt { notes, claim: Some(claim), ..NewAttempt::new(context.now, &facts.by, outcome) }
}

/// The notes of an attempt: the last [`NOTES`] characters of `said`, from the start of a line if possible.
fn notes(begun: &Begun, facts: &Facts) -> Option<String> {
    let said = facts.said.trim();
    if said.is_empty() {
        return None;
    }
    let count = said.chars().count();
    if count <= NOTES {
        return Some(said.to_owned());
    }
    let tail: String = said.chars().skip(count - NOTES).collect();
    let tail = tail.split_once('\n').map_or(tail.as_str(), |(_, rest)| rest);
    Some(format!("[cut; more is in {}]\n{}", begun.log, tail.trim()))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::disk::model::Machine;
    use crate::ops::claim::{RunAsk, RunClaim, claim_for_run};
    use crate::plan::id::PlanId;

    const STEP: &str = "/plans/p/step-1.md";

    #[test]
    fn a_step_whose_file_is_being_written_again_is_waited_for() {
        let machine = Machine::with(&[
            ("/plans/p/plan.md", "# P\n\n## Steps\n\n- step-1: One\n"),
            (STEP, "---\nstatus: pending\n---\n# One\n\nMore words than a claim adds to the file.\n"),
        ]);
        let plan = PlanId::new("p");
        let ask = RunAsk {
            plan: &plan,
            by: "bot",
            lease: 600,
            process: None,
            skip: HashSet::new(),
            check: &|_| Ok(()),
        };
        let Ok(RunClaim::Begun(begun)) = claim_for_run(&Context::on_model(&machine), &ask) else {
            panic!("the step is ready")
        };
        let quiet = machine.after_kill();
        assert_eq!(look(&Context::on_model(&quiet), &begun).unwrap().0, ClaimState::Open);
        for call in 1..=quiet.calls() {
            for saving in [
                machine.renamed_away_at(STEP, call, call + 100),
                machine.saved_slowly_at(STEP, call, call + 100),
            ] {
                let (state, seen) = look(&Context::on_model(&saving), &begun).unwrap();
                assert_eq!((state, seen.is_some()), (ClaimState::Open, true), "{call}");
            }
        }
    }
}
