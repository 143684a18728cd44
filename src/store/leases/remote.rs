//! Adds the claims of other machines, as the last listing of the shared registry showed them.

use std::collections::BTreeMap;

use crate::api::context::Context;
use crate::plan::claims::{Claims, HeldClaim, Holding, Lapse};
use crate::plan::plans::Plans;
use crate::store::registry::Name;
use crate::store::registry::record::{Record, State};
use crate::store::sync::seen::Sighting;
use crate::store::sync::state::SyncState;

pub(super) fn add(context: &Context, claims: &mut Claims, plans: &Plans) {
    let Some(state) = SyncState::of(context) else { return };
    let records = state.seen().records;
    add_unreadable(&state, claims, plans, &records);
    for (name, sighting) in records {
        let Some(record) = sighting.record.as_ref().filter(|_| name.is_in(state.dir())) else { continue };
        let Some(id) = record.step_id().filter(|it| plans.step(it).is_some()) else { continue };
        if is_own(&state, &name, record) {
            continue;
        }
        claims.add(id, held(record, &sighting));
    }
}

/// Adds a claim for each record that cannot be read, because such a record still reserves its step. The record's name
/// identifies the step.
fn add_unreadable(state: &SyncState, claims: &mut Claims, plans: &Plans, records: &BTreeMap<Name, Sighting>) {
    let is_unreadable = |name: &Name| records.get(name).is_some_and(|it| it.record.is_none());
    if !records.keys().any(is_unreadable) {
        return;
    }
    for step in plans.live().flat_map(|it| &it.steps).filter(|it| is_unreadable(&state.name_of(&it.id))) {
        let holding = Holding::Remote { host: "another machine".to_owned(), branch: None };
        let claim = "unreadable".to_owned();
        let held = HeldClaim { claim, by: None, at: None, lapse: None, holding, until: None, log: None };
        claims.add(step.id.clone(), held);
    }
}

/// Whether the record is of a claim of this clone. Such claims are added from the records on this machine.
fn is_own(state: &SyncState, name: &Name, record: &Record) -> bool {
    state.own_of(name).is_some_and(|it| it.claim == record.id)
}

fn held(record: &Record, sighting: &Sighting) -> HeldClaim {
    let (host, branch) = (record.host.clone(), record.short_branch().map(str::to_owned));
    let holding = match record.state {
        State::Claimed => Holding::Remote { host, branch },
        ended => Holding::EndedRemote { host, branch, status: ended.word() },
    };
    HeldClaim {
        claim: record.id.clone(),
        by: Some(record.by.clone()),
        at: Some(record.at),
        lapse: sighting.has_lapsed.then_some(Lapse::Expired),
        holding,
        until: Some(record.at.plus_seconds(record.ttl)),
        log: None,
    }
}
