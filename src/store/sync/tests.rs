//! Tests of the protocol with a registry in memory: lost answers, take-overs and renewals of two clones.

use super::claiming::{Announced, LocalClaim, is_due};
use super::state::OwnRecord;
use super::{Pushed, Sync, foreign, not_fetched, record_ttl, renewed_elsewhere, settling};
use crate::api::context::Context;
use crate::api::sync_config::{ClaimsAt, Namespace, SyncConfig};
use crate::disk::model::Machine;
use crate::git::RemoteError;
use crate::plan::id::{StepId, read_step_id};
use crate::store::registry::memory::{Fault, Memory};
use crate::store::registry::record::State;
use crate::store::registry::{Change, ClaimRegistry, RegistryError};

const IN_PROGRESS: &str = "---\nstatus: in_progress\nclaim: {id: \"g0000001\", by: ann}\n---\n# One\n";

/// The machine of one clone, whose step is claimed by `g0000001`.
pub(crate) fn machine() -> Machine {
    Machine::with(&[
        ("/.git/HEAD", "ref: refs/heads/main\n"),
        ("/.git/objects/info", ""),
        ("/plans/p/plan.md", "# P\n"),
        ("/plans/p/step-1.md", IN_PROGRESS),
    ])
}

pub(crate) fn context(machine: &Machine) -> Context {
    let mut context = Context::on_model(machine);
    context.config.sync = Some(SyncConfig {
        id: "0123456789abcdef".to_owned(),
        remote: "origin".to_owned(),
        claims: ClaimsAt::Refs(Namespace::Own),
        branch: None,
    });
    context
}

fn sync<'a>(context: &'a Context, registry: &Memory, host: &str) -> Sync<'a> {
    Sync::with(context, Box::new(registry.clone()), host)
}

fn step() -> StepId {
    read_step_id("p:1").unwrap()
}

fn announce(sync: &Sync<'_>, id: &str) -> Result<Announced, &'static str> {
    let (step, seen) = (step(), sync.state.seen());
    let claim = LocalClaim { step: &step, id, by: "ann", lease: 600, is_renewed: true };
    sync.announce(&claim, &seen, &[]).map_err(|it| it.code())
}

fn records(registry: &Memory) -> usize {
    registry.list().unwrap().len()
}

#[test]
fn the_record_of_a_claim_without_an_answer_is_removed_later() {
    let faults = [(Fault::AnswerLost, true), (Fault::RequestLost, false), (Fault::Unreachable, false)];
    for (fault, is_made) in faults {
        let (machine, registry) = (machine(), Memory::default());
        let context = context(&machine);
        let sync = sync(&context, &registry, "a");
        registry.fail(&[fault]);
        assert_eq!(announce(&sync, "g0000001").unwrap_err(), "remote-unreachable");
        assert_eq!(records(&registry), usize::from(is_made));
        let own = sync.state.own(&step()).unwrap();
        assert!(own.is_unsettled());
        let looked = sync.look().unwrap();
        assert_eq!(sync.settle(&looked.seen).unwrap()[0].what, "confirmed");
        assert_eq!((records(&registry), sync.state.all_own().len()), (0, 0), "{fault:?}");
    }
}

#[test]
fn errors_name_what_did_not_answer() {
    let (machine, registry) = (machine(), Memory::default());
    let mut context = context(&machine);
    let refs = context.config.sync.clone().unwrap();
    let claims = ClaimsAt::Url("postgres://planwatch@db.example.org/plans".to_owned());
    let database = SyncConfig { claims, ..refs.clone() };
    for (config, place) in [(refs, "the remote `origin`"), (database, "the claims database")] {
        context.config.sync = Some(config);
        let sync = sync(&context, &registry, "a");
        let said = |error: RegistryError| {
            let error = sync.error(&error);
            (error.code(), error.to_string())
        };
        registry.fail(&[Fault::Unreachable]);
        let error = sync.look().err().unwrap();
        assert_eq!(error.to_string(), format!("{place} does not answer: cut off"));
        let refused = RegistryError::Refused("no".to_owned());
        assert_eq!(said(refused), ("remote-refused", format!("{place} refuses: no")));
        let changing = format!("the record at {place} changed during each of 4 attempts");
        assert_eq!(said(RegistryError::Changing), ("remote-unreachable", changing));
        let silent = "the remote `origin` does not answer: gone".to_owned();
        assert_eq!(
            said(not_fetched(RemoteError::Silent("gone".to_owned())).unwrap_err()),
            ("remote-unreachable", silent)
        );
        assert_eq!(
            said(not_fetched(RemoteError::Refused("gone".to_owned())).unwrap_err()),
            ("remote-refused", "the remote `origin` refuses: gone".to_owned())
        );
    }
}

#[test]
fn unsettled_claims_are_found_without_reading_all_records() {
    let (machine, registry) = (machine(), Memory::default());
    let context = context(&machine);
    let sync = sync(&context, &registry, "a");
    registry.fail(&[Fault::AnswerLost]);
    announce(&sync, "g0000001").unwrap_err();
    let calls = || {
        let before = machine.calls();
        assert_eq!(settling::unsettled(&context), [step()]);
        machine.calls() - before
    };
    let few = calls();
    let own = sync.state.own(&step()).unwrap();
    for nth in 2..100 {
        let step = read_step_id(&format!("p:{nth}")).unwrap();
        let name = sync.state.name_of(&step);
        sync.state.put(&OwnRecord { name, step, wanted: None, ..own.clone() }).unwrap();
    }
    assert_eq!(sync.state.all_own().len(), 99);
    assert_eq!(calls(), few);
    sync.settle(&sync.look().unwrap().seen).unwrap();
    assert!(settling::unsettled(&context).is_empty());
}

#[test]
fn an_end_without_an_answer_is_sent_again_as_the_same_value() {
    let (machine, registry) = (machine(), Memory::default());
    let context = context(&machine);
    let sync = sync(&context, &registry, "a");
    assert!(matches!(announce(&sync, "g0000001"), Ok(Announced::Won { .. })));
    let end = |own: OwnRecord| sync.in_state(own, State::Completed).unwrap().unwrap();
    let own = end(sync.state.own(&step()).unwrap());
    registry.fail(&[Fault::AnswerLost]);
    assert!(matches!(sync.push(own.clone(), &[]).unwrap(), Pushed::Unsettled(_)));
    let stored = sync.state.own(&step()).unwrap();
    assert_eq!(stored.newest(), own.newest());
    assert!(matches!(sync.push(stored, &[]).unwrap(), Pushed::Done));
    assert_eq!(sync.state.own(&step()).unwrap().state(), Some(State::Completed));
}

#[test]
fn all_records_are_renewed_in_one_call_and_deleted_ones_are_made_again() {
    let (machine, registry) = (machine(), Memory::default());
    let context = context(&machine);
    let sync = sync(&context, &registry, "a");
    announce(&sync, "g0000001").unwrap();
    let before = sync.state.own(&step()).unwrap();
    assert!(!is_due(&context, &before), "it was confirmed a moment ago");
    let calls = registry.calls();
    assert!(sync.renew(&|_| true).unwrap().is_empty());
    assert_eq!(registry.calls(), calls + 1);
    let renewed = sync.state.own(&step()).unwrap();
    assert_ne!(renewed.held, before.held);
    // A failed renewal does not change the stored record.
    registry.fail(&[Fault::AnswerLost]);
    assert!(sync.renew(&|_| true).is_err());
    assert_eq!(sync.state.own(&step()).unwrap(), renewed);
    assert!(!renewed.is_unsettled());
    assert!(sync.renew(&|_| true).unwrap().is_empty(), "the record is recognised by the claim");
    let seen = sync.look().unwrap().seen;
    let there = seen.records.values().next().unwrap().revision.clone();
    sync.delete(&sync.state.name_of(&step()), &there).unwrap();
    assert!(sync.renew(&|_| true).unwrap().is_empty());
    assert_eq!(records(&registry), 1);
}

#[test]
fn a_renewal_does_not_revive_a_claim_that_was_lost_under_an_earlier_id() {
    // The records are renewed in the order of their files' names, which are hashes. Several ids are tried, so that either
    // record can come first.
    for to in ["p:0", "p:2", "p:4", "p:9"].map(|it| read_step_id(it).unwrap()) {
        let registry = Memory::default();
        let (one, other) = (machine(), machine());
        let (a, b) = (context(&one), context(&other));
        let (a, b) = (sync(&a, &registry, "a"), sync(&b, &registry, "b"));
        announce(&a, "g0000001").unwrap();
        let own = a.state.own(&step()).unwrap();
        assert!(a.move_records(&[(own, to.clone())]).unwrap());
        assert_eq!(records(&registry), 2);
        let name = b.state.name_of(&step());
        let there = b.look().unwrap().seen.records[&name].revision.clone();
        assert!(b.delete(&name, &there).unwrap());
        b.look().unwrap();
        assert!(matches!(announce(&b, "g0000002"), Ok(Announced::Won { .. })));
        assert!(!a.renew(&|_| true).unwrap().is_empty(), "{to}");
        assert!(a.state.own(&to).unwrap().is_lost, "{to}");
        assert_eq!(records(&registry), 1, "{to}");
    }
}

#[test]
fn a_claim_is_renewed_under_its_earlier_id_while_the_registry_does_not_accept_its_new_id() {
    let (machine, registry) = (machine(), Memory::default());
    let context = context(&machine);
    let sync = sync(&context, &registry, "a");
    announce(&sync, "g0000001").unwrap();
    let (own, to) = (sync.state.own(&step()).unwrap(), read_step_id("p:2").unwrap());
    let (name, foreign) = (sync.state.name_of(&to), registry.value("{".to_owned(), 600).unwrap());
    registry.change_one(Change::Create { name: name.clone(), new: foreign.clone() }).unwrap();
    assert!(!sync.move_records(&[(own, to.clone())]).unwrap());
    let at_registry = || {
        let listed = registry.list().unwrap();
        let of = |name| listed.iter().find(|it| it.name == name).unwrap().revision.clone();
        (of(sync.state.name_of(&step())), of(name.clone()))
    };
    let before = at_registry();
    assert!(sync.renew(&|_| true).unwrap().is_empty());
    let after = at_registry();
    assert_ne!(after.0, before.0, "the record under the earlier id is renewed");
    assert_eq!(after.1, foreign.revision);
    let own = sync.state.own(&to).unwrap();
    assert!(!own.is_lost && own.is_unsettled(), "`sync` decides about the record under the new id");
}

#[test]
fn a_registry_with_a_clock_allows_a_take_over_only_after_the_ttl() {
    let registry = Memory::with_clock();
    let (one, other) = (machine(), machine());
    let (a, b) = (context(&one), context(&other));
    let (a, b) = (sync(&a, &registry, "a"), sync(&b, &registry, "b"));
    announce(&a, "g0000001").unwrap();
    registry.wait(600);
    b.look().unwrap();
    assert!(matches!(announce(&b, "g0000002"), Ok(Announced::Lost(_))));
    registry.wait(400);
    b.look().unwrap();
    assert!(matches!(announce(&b, "g0000002"), Ok(Announced::Won { .. })));
    // The first owner learns of the take-over at its next renewal. After that, its late result is refused.
    assert_eq!(a.renew(&|_| true).unwrap().len(), 1);
    assert!(a.state.own(&step()).unwrap().is_lost);
}

#[test]
fn a_record_holds_longer_than_the_lease_where_nothing_renews_it() {
    const HOUR: i64 = 60 * 60;
    let table = [
        (600, true, HOUR / 4),
        (HOUR, true, HOUR),
        (600, false, 4 * HOUR),
        (5 * HOUR, false, 5 * HOUR),
        (48 * HOUR, false, 24 * HOUR),
    ];
    for (lease, is_renewed, expected) in table {
        assert_eq!(record_ttl(lease, is_renewed), expected, "{lease} {is_renewed}");
    }
}

#[test]
fn a_record_that_was_not_seen_to_lapse_is_not_taken_over() {
    let registry = Memory::default();
    let (one, other) = (machine(), machine());
    let (a, b) = (context(&one), context(&other));
    let (a, b) = (sync(&a, &registry, "a"), sync(&b, &registry, "b"));
    announce(&a, "g0000001").unwrap();
    b.look().unwrap();
    let calls = registry.calls();
    assert!(matches!(announce(&b, "g0000002"), Ok(Announced::Lost(_))));
    assert_eq!(registry.calls(), calls, "the listing says it");
    assert!(b.state.own(&step()).is_none());
}

#[test]
fn a_record_that_cannot_be_read_reserves_its_step() {
    let (machine, registry) = (machine(), Memory::default());
    let context = context(&machine);
    let sync = sync(&context, &registry, "a");
    let new = registry.value("{".to_owned(), 600).unwrap();
    registry.change_one(Change::Create { name: sync.state.name_of(&step()), new }).unwrap();
    sync.look().unwrap();
    let moves = |force| foreign::refuse_live(&context, [&step()], force).map_err(|it| it.code());
    assert_eq!(moves(false), Err("claims-live"));
    assert_eq!(moves(true), Ok(()));
}

#[test]
fn a_take_over_on_this_machine_replaces_the_own_record() {
    let (machine, registry) = (machine(), Memory::default());
    let context = context(&machine);
    let sync = sync(&context, &registry, "a");
    announce(&sync, "g0000001").unwrap();
    assert!(matches!(announce(&sync, "g0000002"), Ok(Announced::Won { .. })));
    assert_eq!(records(&registry), 1);
    assert_eq!(sync.state.own(&step()).unwrap().claim, "g0000002");
}

#[test]
fn claims_that_a_process_of_another_clone_renews_are_found_with_any_lease() {
    for (lease, is_renewed, expected) in [(0, true, 1), (18_000, true, 1), (0, false, 0), (18_000, false, 0)]
    {
        let registry = Memory::default();
        let (one, other) = (machine(), machine());
        let (a, b) = (context(&one), context(&other));
        let (a, on_b) = (sync(&a, &registry, "a"), sync(&b, &registry, "b"));
        let claim = LocalClaim { step: &step(), id: "g0000001", by: "ann", lease, is_renewed };
        a.announce(&claim, &a.state.seen(), &[]).unwrap();
        on_b.look().unwrap();
        assert_eq!(renewed_elsewhere(&b).len(), expected, "{lease} {is_renewed}");
    }
}
