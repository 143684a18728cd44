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

/// Moves this clone's records of steps that have other ids now, in one change.
pub(crate) fn moved(context: &Context, moves: &[(StepId, StepId)]) {
    let Some(state) = SyncState::of(context) else { return };
    let moves = moves.iter().filter(|(from, to)| from != to && state.has_own(from));
    let own = |(from, to): &(StepId, StepId)| Some((state.own(from).filter(|it| !it.is_lost)?, to.clone()));
    let owns: Vec<_> = moves.filter_map(own).collect();
    let failed = match move_records(context, &owns) {
        Ok(true) => return,
        Ok(false) => "its record could not be moved".to_owned(),
        Err(error) => error.to_string(),
    };
    owns.iter().for_each(|(_, to)| ending::unsettled(context, to, &failed));
}

/// Returns false if the registry did not make the changes.
fn move_records(context: &Context, owns: &[(Own, StepId)]) -> Result<bool, Error> {
    let Some(sync) = Sync::of(context)?.filter(|_| !owns.is_empty()) else { return Ok(true) };
    let mut new = Vec::new();
    for (own, to) in owns {
        let name = sync.state.name_of(to);
        // An earlier step with this number may have left a record.
        let there = sync.state.own_of(&name).filter(|it| !it.is_lost);
        let wanted = match own.record() {
            Some(it) => {
                let record = it.again(it.state, context.now, sync.nonce()?).of_step(to);
                Some(Wanted::Value { value: sync.value(&record)?, from: None })
            }
            // The step was claimed with `--offline`.
            None => None,
        };
        let (held, was) = there.map(|it| (it.held, it.claim)).unzip();
        let (held, writer) = (held.flatten(), None);
        new.push(Own { name, step: to.clone(), held, wanted, was, writer, ..own.clone() });
    }
    let gone = owns.iter().map(|(it, _)| Own { wanted: Some(Wanted::Gone), ..it.clone() });
    let gone: Vec<_> = gone.collect();
    let all = [new, gone].concat();
    all.iter().try_for_each(|it| sync.state.put(it))?;
    let (sent, kept): (Vec<_>, Vec<_>) = all.into_iter().partition(|it| it.change().is_some());
    for own in kept.into_iter().filter(|it| it.wanted == Some(Wanted::Gone)) {
        sync.state.remove(&own.name)?;
    }
    let changes: Vec<Change> = sent.iter().filter_map(Own::change).collect();
    let answers = sync.registry.change(&changes, Together::AllOrNone).map_err(|it| sync.error(&it))?;
    if answers.iter().any(|it| *it != Answer::Done) {
        return Ok(false);
    }
    let now = super::state::now(context);
    sent.into_iter().try_for_each(|it| sync.state.put_confirmed(it, now.clone()))?;
    Ok(true)
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
