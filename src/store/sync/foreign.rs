//! Steps with records of other clones: moving or removing them needs force, and work that ended on a deleted
//! branch is reported as a problem.

use super::state::{Own, SyncState, Wanted};
use super::{Sync, ending};
use crate::api::context::Context;
use crate::api::error::Error;
use crate::api::requests::Mode;
use crate::plan::id::StepId;
use crate::plan::plans::Plans;
use crate::plan::problem::{Code, Problem};
use crate::store::registry::record::Record;
use crate::store::registry::{Answer, Change, Together};
use crate::text::typed::shell_word;

/// Lists the records again before steps are moved or removed. Without an answer, the last listing is used.
pub(crate) fn refresh(context: &Context, mode: Mode) {
    if mode == Mode::Write && context.config.sync.is_some() {
        Sync::of(context).ok().flatten().map(|it| it.look().map(drop).ok());
    }
}

/// Refuses to move or remove steps that have a live record of another clone.
pub(crate) fn refuse_live<'a>(
    context: &Context,
    steps: impl IntoIterator<Item = &'a StepId>,
    force: bool,
) -> Result<(), Error> {
    let Some(state) = SyncState::of(context).filter(|_| !force) else { return Ok(()) };
    let seen = state.seen();
    for step in steps {
        let name = state.name_of(step);
        let Some(record) =
            seen.records.get(&name).filter(|it| !it.has_lapsed).and_then(|it| it.record.as_ref())
        else {
            continue;
        };
        if state.own_of(&name).is_some_and(|it| it.claim == record.id) {
            continue;
        }
        let did = if record.state.has_ended() { record.state.word() } else { "claimed" };
        let message = format!("`{step}` is {did} by {} on {}", record.by, record.host);
        let hint = "wait until that work is merged, or use --force";
        return Err(Error::conflict("claims-live", message, hint));
    }
    Ok(())
}

/// Moves this clone's record of a step that has another number now, in one change.
pub(crate) fn moved(context: &Context, from: &StepId, to: &StepId) {
    let Some(state) = SyncState::of(context).filter(|it| it.has_own(from)) else { return };
    let Some(own) = state.own(from).filter(|it| !it.is_lost) else { return };
    if let Err(error) = move_record(context, own, to) {
        ending::unsettled(context, to, &error.to_string());
    }
}

fn move_record(context: &Context, own: Own, to: &StepId) -> Result<(), Error> {
    let Some((sync, record)) = Sync::of(context)?.zip(own.record()) else { return Ok(()) };
    let record = record.again(record.state, context.now, sync.nonce()?).of_step(to);
    let value = sync.value(&record)?;
    let wanted = Some(Wanted::Value { value, from: None });
    let new = Own {
        held: None,
        wanted,
        writer: None,
        ..Own { name: sync.state.name_of(to), step: to.clone(), ..own.clone() }
    };
    let old = Own { wanted: Some(Wanted::Gone), ..own };
    sync.state.put(&new)?;
    sync.state.put(&old)?;
    let changes: Vec<Change> = [&new, &old].into_iter().filter_map(Own::change).collect();
    let answers = sync.registry.change(&changes, Together::AllOrNone).map_err(|it| sync.error(&it))?;
    if answers.iter().all(|it| *it == Answer::Done) {
        let now = super::state::now(context);
        sync.state.put_confirmed(new, now.clone())?;
        return sync.state.put_confirmed(old, now);
    }
    ending::unsettled(context, to, "its record could not be moved");
    Ok(())
}

/// Work that has ended on a branch which the remote no longer has.
pub(crate) fn problems(context: &Context, plans: &Plans) -> Vec<Problem> {
    let Some(state) = SyncState::of(context) else { return Vec::new() };
    let gone =
        state.seen().records.into_iter().filter(|(name, it)| it.is_branch_gone && name.is_in(state.dir()));
    gone.filter_map(|(_, it)| problem(plans, it.record.as_ref()?)).collect()
}

fn problem(plans: &Plans, record: &Record) -> Option<Problem> {
    let id = record.step_id()?;
    let step = plans.step(&id)?;
    let message = format!(
        "{} {} this step on {} (branch {}), and the remote has no such branch",
        record.by,
        record.state.word(),
        record.host,
        record.short_branch().unwrap_or("unknown"),
    );
    let hint = format!("`planwatch release {} --force` frees the step", shell_word(&id));
    Some(Problem::of_file(&step.path, Code::EndedNowhere, message, hint))
}
