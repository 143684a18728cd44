//! Steps with records of other clones: moving or removing them needs force, and work that ended on a deleted
//! branch is reported as a problem.

use super::Sync;
use super::state::SyncState;
use crate::api::context::Context;
use crate::api::error::Error;
use crate::api::requests::Mode;
use crate::plan::id::{PlanId, StepId};
use crate::plan::plans::Plans;
use crate::plan::problem::{Code, Problem};
use crate::plan::step_number::StepNumber;
use crate::store::registry::record::Record;
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
        let Some(sighting) = seen.records.get(&name).filter(|it| !it.has_lapsed) else { continue };
        let message = match &sighting.record {
            Some(record) if state.own_of(&name).is_some_and(|it| it.claim == record.id) => continue,
            Some(record) => {
                let did = if record.state.has_ended() { record.state.word() } else { "claimed" };
                format!("`{step}` is {did} by {} on {}", record.by, record.host)
            }
            // Such a record reserves its step, too.
            None => {
                format!("`{step}` is reserved by a record of another machine, and the record cannot be read")
            }
        };
        let hint = "wait until that work is merged, or use --force";
        return Err(Error::conflict("claims-live", message, hint));
    }
    Ok(())
}

/// The numbers of a plan's steps that have records of other clones, by the last listing.
pub(crate) fn claimed_numbers(context: &Context, plan: &PlanId) -> Vec<StepNumber> {
    let Some(state) = SyncState::of(context) else { return Vec::new() };
    let records = state.seen().records.into_iter().filter(|(name, _)| name.is_in(state.dir()));
    let foreign = records.filter(|(name, it)| {
        let claim = it.record.as_ref().map(|it| &it.id);
        state.own_of(name).is_none_or(|own| Some(&own.claim) != claim)
    });
    let ids = foreign.filter_map(|(_, it)| it.record?.step_id());
    ids.filter(|it| it.plan == *plan).map(|it| it.number).collect()
}

/// A problem for each step whose work has ended on a branch that the remote does not have.
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
    let hint = format!(
        "the branch may not be pushed yet; if it is lost, `planwatch release {} --force` frees the step",
        shell_word(&id)
    );
    Some(Problem::of_file(&step.path, Code::EndedNowhere, message, hint))
}
