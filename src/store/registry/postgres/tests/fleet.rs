//! Trial G8 of `docs/scale.md`: many workers on several machines share a database. During the trial, the server is
//! restarted and connections are cut.
//!
//! `PLANWATCH_G8=full` uses 500 workers on 20 machines and steps of five seconds. Each machine has one connection, like
//! a `watch` or a run. The test prints one line of measurements.
#![expect(clippy::disallowed_methods, reason = "the size of the trial comes from the environment")]

use std::collections::{BTreeMap, HashSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use super::{Server, client_at, name};
use crate::store::registry::postgres::*;

#[derive(Clone, Copy)]
struct Size {
    machines: usize,
    workers: usize,
    steps: usize,
    work: Duration,
}

const SMALL: Size = Size { machines: 4, workers: 5, steps: 100, work: Duration::ZERO };
const FULL: Size = Size { machines: 20, workers: 25, steps: 5_000, work: Duration::from_secs(5) };

/// What the workers have done and the observer has seen.
struct Ledger {
    /// How often a claim of each step succeeded.
    claims: Vec<AtomicUsize>,
    /// The time of each claim that the observer has not seen yet, by step.
    claimed_at: Mutex<BTreeMap<usize, Instant>>,
    seen_after: Mutex<Vec<Duration>>,
    claimed: Mutex<Vec<Instant>>,
    ended: AtomicUsize,
}

/// Stops the observer when it is dropped, even if the test fails.
struct Observed<'a>(&'a AtomicBool);

impl Drop for Observed<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

fn body(state: &str, nonce: &str) -> String {
    format!("{{\"state\":\"{state}\",\"nonce\":\"{nonce}\"}}")
}

fn step(nth: usize) -> Name {
    name(&format!("p:{}", nth + 1))
}

/// Repeats `change` until there is an answer, and returns the answer.
fn certain(client: &Postgres, change: &Change) -> Answer {
    loop {
        match client.change_one(change.clone()) {
            Ok(answer) => return answer,
            Err(RegistryError::Unanswered(_) | RegistryError::Unreachable(_)) => {}
            Err(error) => panic!("{error}"),
        }
    }
}

fn listed(client: &Postgres) -> Vec<Listed> {
    loop {
        match client.list() {
            Ok(all) => return all,
            Err(RegistryError::Unanswered(_) | RegistryError::Unreachable(_)) => {}
            Err(error) => panic!("{error}"),
        }
    }
}

/// Claims free steps and ends them, until no step is free.
fn work(client: &Postgres, seed: usize, size: Size, ledger: &Ledger) {
    let all: Vec<Name> = (0..size.steps).map(step).collect();
    loop {
        let taken: HashSet<Name> = listed(client).into_iter().map(|it| it.name).collect();
        let free: Vec<usize> = (0..size.steps).filter(|nth| !taken.contains(&all[*nth])).collect();
        if free.is_empty() {
            return;
        }
        // Workers begin at different candidates, as `claim` does after a lost race.
        let nth = free[(seed * 7_919) % free.len().min(size.machines * size.workers)];
        let value = |state: &str| client.value(body(state, &format!("{seed}-{nth}")), 900).unwrap();
        let (claimed, ended) = (value("claimed"), value("completed"));
        if certain(client, &Change::Create { name: step(nth), new: claimed.clone() }) != Answer::Done {
            continue;
        }
        let now = Instant::now();
        ledger.claimed_at.lock().unwrap().insert(nth, now);
        ledger.claimed.lock().unwrap().push(now);
        ledger.claims[nth].fetch_add(1, Ordering::SeqCst);
        std::thread::sleep(size.work);
        let end = Change::Replace { name: step(nth), old: claimed.revision, new: ended, is_take_over: false };
        assert_eq!(certain(client, &end), Answer::Done, "the fence");
        ledger.ended.fetch_add(1, Ordering::SeqCst);
    }
}

/// Lists the records after each notification, and measures how long claims take to appear.
fn observe(client: &Postgres, ledger: &Ledger, is_over: &AtomicBool) {
    let (sender, heard) = std::sync::mpsc::channel();
    client.watch(Box::new(move || {
        sender.send(()).ok();
    }));
    while !is_over.load(Ordering::SeqCst) {
        if heard.recv_timeout(Duration::from_millis(100)).is_err() {
            continue;
        }
        while heard.try_recv().is_ok() {}
        let begun: Vec<usize> = ledger.claimed_at.lock().unwrap().keys().copied().collect();
        let names: HashSet<Name> = listed(client).into_iter().map(|it| it.name).collect();
        let mut open = ledger.claimed_at.lock().unwrap();
        for nth in begun.into_iter().filter(|nth| names.contains(&step(*nth))) {
            let since = open.remove(&nth).map(|it| it.elapsed());
            ledger.seen_after.lock().unwrap().extend(since);
        }
    }
}

#[test]
fn a_fleet_claims_each_step_once_while_the_server_restarts() {
    let size = if std::env::var("PLANWATCH_G8").is_ok_and(|it| it == "full") { FULL } else { SMALL };
    let mut server = Server::start();
    server.client("first").prepare().unwrap();
    let ledger = Ledger {
        claims: (0..size.steps).map(|_| AtomicUsize::new(0)).collect(),
        claimed_at: Mutex::default(),
        seen_after: Mutex::default(),
        claimed: Mutex::default(),
        ended: AtomicUsize::new(0),
    };
    let (port, is_over, begun) = (server.port, AtomicBool::new(false), Instant::now());
    let clients: Vec<_> = (0..size.machines).map(|it| client_at(port, &format!("machine-{it}"))).collect();
    let observer = client_at(port, "observer");
    let took = std::thread::scope(|scope| {
        scope.spawn(|| observe(&observer, &ledger, &is_over));
        let _observed = Observed(&is_over);
        let workers: Vec<_> = (0..size.machines * size.workers)
            .map(|seed| {
                let (client, ledger) = (&clients[seed % size.machines], &ledger);
                scope.spawn(move || work(client, seed, size, ledger))
            })
            .collect();
        for part in [3, 2] {
            while ledger.ended.load(Ordering::SeqCst) < size.steps / part {
                std::thread::yield_now();
                std::thread::sleep(size.work / 50);
            }
            server.execute("select pg_terminate_backend(pid) from pg_stat_activity where application_name like 'machine-%'");
            server.restart();
        }
        workers.into_iter().for_each(|it| it.join().unwrap());
        begun.elapsed()
    });
    let twice = ledger.claims.iter().filter(|it| it.load(Ordering::SeqCst) > 1).count();
    let completed = listed(&observer)
        .iter()
        .filter(|it| it.body.as_ref().is_some_and(|it| it.contains("completed")))
        .count();
    let mut seen = ledger.seen_after.into_inner().unwrap();
    seen.sort_unstable();
    let p95 = seen.get(seen.len() * 95 / 100).copied().unwrap_or_default();
    // The rate is measured until the last claim, because no step is left to be claimed while the last steps are worked
    // on.
    let mut claimed = ledger.claimed.into_inner().unwrap();
    claimed.sort_unstable();
    let claiming = claimed.last().map_or(took, |it| it.duration_since(begun));
    // While all workers are busy, the rate of claims is limited by their number and by the length of a step. Only the
    // busiest second shows what the server can do.
    let second_from = |first: &Instant| {
        claimed.iter().filter(|it| (*first..*first + Duration::from_secs(1)).contains(it)).count()
    };
    let most = claimed.iter().map(second_from).max().unwrap_or_default();
    println!(
        "G8 {} workers on {} machines, {} steps in {:.0} s, claimed in {:.0} s ({:.0} claims/s, {most} in the busiest second), server restarted twice: {twice} duplicates, {} lost results; a claim is seen elsewhere p95 {} ms",
        size.machines * size.workers,
        size.machines,
        size.steps,
        took.as_secs_f64(),
        claiming.as_secs_f64(),
        size.steps as f64 / claiming.as_secs_f64(),
        size.steps - completed,
        p95.as_millis(),
    );
    assert_eq!((twice, completed, ledger.ended.into_inner()), (0, size.steps, size.steps));
}
