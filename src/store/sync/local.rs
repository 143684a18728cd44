//! Undoes a claim and its result in the files of this machine after another machine won the step.

use super::state::FileBefore;
use crate::api::context::Context;
use crate::api::error::Error;
use crate::plan::change::NewNote;
use crate::plan::id::StepId;
use crate::plan::model::Step;
use crate::plan::read;
use crate::plan::records::NoteType;
use crate::plan::words::StepStatus;
use crate::store::decision::Decision;
use crate::store::leases;
use crate::store::load::LoadQuery;
use crate::store::resolve::NamedStep;
use crate::store::step_file::{self, StepUpdate};
use crate::store::transaction::{Mode, Transaction, once_saved};

/// Undoes a claim and its end: restores the file if it is unchanged since this clone wrote it, and the end has no message.
/// Otherwise, if the step's status comes from the claim, sets the step to pending, and adds a note if there is a late
/// result. The attempt with the message stays.
pub(crate) fn take_back(
    context: &Context,
    step: &StepId,
    claim: &str,
    file: Option<&FileBefore>,
) -> Result<(), Error> {
    let is_restored = match file {
        Some(file) if !has_message(context, step, claim)? => once_saved(context, || restore(context, file))?,
        _ => false,
    };
    if !is_restored {
        once_saved(context, || release(context, step, claim))?;
    }
    leases::forget(context, step);
    reopen(context, step)
}

/// If a step is open in the files here, records in the log of ended claims that it was reopened. The files are read
/// again, because a process that was killed may already have restored the step's file.
pub(super) fn reopen(context: &Context, step: &StepId) -> Result<(), Error> {
    if load(context, step)?.is_some_and(|it| !it.is_closed()) {
        leases::reopened(context, step);
    }
    Ok(())
}

fn load(context: &Context, id: &StepId) -> Result<Option<Step>, Error> {
    match LoadQuery::step(id).load(context) {
        Ok(loaded) => Ok(loaded.plans.step(id).cloned()),
        Err(Error::NotFound { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Whether the attempt that ended the claim contains a text of the user.
fn has_message(context: &Context, id: &StepId, claim: &str) -> Result<bool, Error> {
    let step = load(context, id)?;
    let end = step.as_ref().and_then(|it| it.attempts.last()).filter(|it| it.is_of_claim(claim));
    Ok(end.is_some_and(|it| it.notes.is_some()))
}

/// Restores the file if it is unchanged since this clone wrote it.
fn restore(context: &Context, file: &FileBefore) -> Result<bool, Error> {
    let mut writing = Transaction::begin(context, "claim", Mode::Write)?;
    let restored = writing.change(&file.path, &|bytes| match read::etag(bytes) == file.left {
        true => Ok(Decision::Write(file.before.clone().into_bytes(), ())),
        false => Ok(Decision::Leave(())),
    })?;
    Ok(matches!(restored, Decision::Write(..)))
}

fn release(context: &Context, id: &StepId, claim: &str) -> Result<(), Error> {
    let Some(step) = load(context, id)?.filter(|it| is_of(it, claim)) else { return Ok(()) };
    let mut writing = Transaction::begin(context, "claim", Mode::Write)?;
    step_file::update(context, &mut writing, &NamedStep::of(&step), &|now| {
        let step = now.step;
        let mut update = StepUpdate { did: "undone".to_owned(), ..StepUpdate::default() };
        if !is_of(step, claim) {
            return Ok(update);
        }
        update.status = Some(StepStatus::Pending);
        update.removes_claim = step.claim.is_some();
        let head = format!("late result of the claim {claim}: ");
        let is_noted = step.notes.iter().any(|it| it.text.starts_with(&head));
        if !step.status.is(StepStatus::InProgress) && !is_noted {
            let text = format!("{head}{}; another machine had claimed the step first", step.status.word());
            let (at, kind, by) = (context.now, NoteType::Warning, context.by.clone());
            update.notes.push(NewNote { at, kind, by, text });
        }
        Ok(update)
    })?;
    Ok(())
}

/// Whether this working tree's file of a step contains a claim or its result.
pub(super) fn is_here(context: &Context, step: &StepId, claim: &str) -> Result<bool, Error> {
    Ok(load(context, step)?.is_some_and(|it| shows(&it, claim)))
}

/// Whether a step's file contains a claim, or its result, that [`take_back`] can undo.
pub(super) fn shows(step: &Step, claim: &str) -> bool {
    // If a step is in progress without a claim, it was started again after the result was taken back.
    let is_begun = step.claim.is_none() && step.status.is(StepStatus::InProgress);
    is_of(step, claim) && !is_begun
}

/// Whether this claim set the step's present status.
fn is_of(step: &Step, claim: &str) -> bool {
    let has_line = step.has_claim(claim);
    let has_ended = step.attempts.last().is_some_and(|it| it.is_of_claim(claim));
    has_line || has_ended && !step.status.is(StepStatus::Pending)
}
