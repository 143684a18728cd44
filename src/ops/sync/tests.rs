//! Tests what a watching process reports, with a registry in memory that two clones share.

use super::*;
use crate::disk::model::Machine;
use crate::plan::id::read_step_id;
use crate::store::registry::memory::{Fault, Memory};
use crate::store::sync::claiming::{Announced, LocalClaim};
use crate::store::sync::tests::{context, machine};

fn reports(sync: &Sync<'_>, reported: &mut Reported) -> Vec<DidElsewhere> {
    watch_at(sync, reported).unwrap().into_iter().map(|it| it.did).collect()
}

fn announce(sync: &Sync<'_>, id: &str) {
    let step = read_step_id("p:1").unwrap();
    let claim = LocalClaim { step: &step, id, by: "ann", lease: 600, is_renewed: true };
    let announced = sync.announce(&claim, &sync.state.seen(), &[]).unwrap();
    assert!(matches!(announced, Announced::Won { .. }), "{announced:?}");
}

fn give_back(sync: &Sync<'_>) {
    let own = sync.state.own(&read_step_id("p:1").unwrap()).unwrap();
    sync.withdraw(own).unwrap();
}

#[test]
fn changes_that_a_command_of_this_clone_listed_are_reported_too() {
    let ([one, other], registry): ([Machine; 2], _) = ([machine(), machine()], Memory::default());
    let contexts = [context(&one), context(&other)];
    let [a, b] = [&contexts[0], &contexts[1]].map(|it| Sync::with(it, Box::new(registry.clone()), "h"));
    let mut reported = Reported::default();
    assert_eq!(reports(&b, &mut reported), []);
    announce(&a, "g0000001");
    b.look().unwrap();
    assert_eq!(reports(&b, &mut reported), [DidElsewhere::Claimed]);
    assert_eq!(reports(&b, &mut reported), []);
    give_back(&a);
    b.look().unwrap();
    // If the remote does not answer, the next successful call reports the change.
    registry.fail(&[Fault::Unreachable]);
    assert!(watch_at(&b, &mut reported).is_err());
    assert_eq!(reports(&b, &mut reported), [DidElsewhere::Released]);
    // Changes by this clone are not reported.
    announce(&b, "g0000002");
    assert_eq!(reports(&b, &mut reported), []);
    give_back(&b);
    assert_eq!(reports(&b, &mut reported), []);
}
