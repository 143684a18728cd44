//! Workers of several clones that want a step at the same moment.

use std::collections::HashSet;
use std::sync::{Arc, Condvar, Mutex};

use super::*;
use crate::api::sync_config::{ClaimsAt, Namespace, SyncConfig};
use crate::ops::claim::shared::claim_at;
use crate::store::registry::memory::Memory;
use crate::store::registry::{
    Answer, Change, ClaimRegistry, Listed, RegistryError, Together, Value as RecordValue,
};
use crate::store::sync::Sync;

/// Lets clients call in turn, so that a burst runs in the same way each time.
struct Turns {
    inside: Mutex<Inside>,
    changed: Condvar,
}

struct Inside {
    next: usize,
    is_there: Vec<bool>,
}

impl Turns {
    fn of(n_clients: usize) -> Arc<Self> {
        let inside = Mutex::new(Inside { next: 0, is_there: vec![true; n_clients] });
        Arc::new(Self { inside, changed: Condvar::new() })
    }

    /// Calls `does` when it is the turn of this client.
    fn take<T>(&self, nth: usize, does: impl FnOnce() -> T) -> T {
        let inside = self.inside.lock().unwrap();
        let mut inside = self.changed.wait_while(inside, |it| it.next != nth).unwrap();
        let done = does();
        inside.pass_on();
        self.changed.notify_all();
        done
    }

    fn leave(&self, nth: usize) {
        let mut inside = self.inside.lock().unwrap();
        inside.is_there[nth] = false;
        if inside.next == nth {
            inside.pass_on();
        }
        self.changed.notify_all();
    }
}

impl Inside {
    fn pass_on(&mut self) {
        let n = self.is_there.len();
        let next = (1..=n).map(|it| (self.next + it) % n).find(|it| self.is_there[*it]);
        self.next = next.unwrap_or(n);
    }
}

/// One client of the registry; it leaves when it is dropped.
struct Client {
    nth: usize,
    turns: Arc<Turns>,
    registry: Memory,
}

impl Drop for Client {
    fn drop(&mut self) {
        self.turns.leave(self.nth);
    }
}

impl ClaimRegistry for Client {
    fn value(&self, body: String, ttl: i64) -> Result<RecordValue, RegistryError> {
        self.registry.value(body, ttl)
    }

    fn change(&self, changes: &[Change], together: Together) -> Result<Vec<Answer>, RegistryError> {
        self.turns.take(self.nth, || self.registry.change(changes, together))
    }

    fn list(&self) -> Result<Vec<Listed>, RegistryError> {
        self.turns.take(self.nth, || self.registry.list())
    }
}

/// A clone with a plan of this many steps. Clones with different `nth` get different random numbers.
fn clone_of_plan(nth: usize, n_steps: usize) -> Machine {
    let paths: Vec<_> = (1..=n_steps).map(|it| format!("/plans/p/step-{it}.md")).collect();
    let mut files = vec![
        ("/.git/HEAD", "ref: refs/heads/main\n"),
        ("/.git/objects/info", ""),
        ("/plans/p/plan.md", "# P\n"),
    ];
    files.extend(paths.iter().map(|it| (it.as_str(), STEP)));
    let machine = Machine::with(&files);
    (0..nth).for_each(|_| machine.plans().random(&mut [0]).unwrap());
    machine
}

fn claim_step(client: Client, machine: &Machine) -> StepId {
    let mut context = context(machine, &format!("worker {}", client.nth), 0);
    let claims = ClaimsAt::Refs(Namespace::Own);
    let (id, remote) = ("0123456789abcdef".to_owned(), "origin".to_owned());
    context.config.sync = Some(SyncConfig { id, remote, claims, branch: None });
    let sync = Sync::with(&context, Box::new(client), "host");
    claim_at(&sync, &ClaimRequest::default()).unwrap().made.unwrap().step
}

#[test]
fn clones_that_claim_at_the_same_moment_spread_over_the_ready_steps() {
    const CLONES: usize = 8;
    const ROUNDS: usize = 4;
    let registry = Memory::default();
    let machines: Vec<_> = (0..CLONES).map(|nth| clone_of_plan(nth, 40)).collect();
    let client =
        |nth, turns: &Arc<Turns>| Client { nth, turns: Arc::clone(turns), registry: registry.clone() };
    // Alone, a worker gets the most urgent step with one listing and one change.
    let first = claim_step(client(0, &Turns::of(1)), &machines[0]);
    assert_eq!((first.to_string().as_str(), registry.calls()), ("p:1", 2));
    let mut claimed = HashSet::from([first]);
    for _ in 0..ROUNDS {
        let turns = Turns::of(CLONES);
        let clients: Vec<_> = (0..CLONES).map(|nth| client(nth, &turns)).collect();
        std::thread::scope(|scope| {
            let claims = clients.into_iter().zip(&machines);
            let claims: Vec<_> =
                claims.map(|(it, machine)| scope.spawn(|| claim_step(it, machine))).collect();
            claimed.extend(claims.into_iter().map(|it| it.join().unwrap()));
        });
    }
    assert_eq!(claimed.len(), 1 + CLONES * ROUNDS, "no step is given twice");
    let for_each = (registry.calls() - 2) * 10 / (CLONES * ROUNDS);
    assert!(for_each <= 45, "{for_each} calls for ten claims");
}
