//! T6 and T7: one status write, in a resident process and by the command line.

use std::time::Instant;

use planwatch::ops::update::{MoveRequest, move_steps};
use planwatch::plan::transitions::Verb;
use planwatch::store::transaction::Mode;

use super::Bench;
use super::corpus::{Corpus, step_id};
use super::daemon::Daemon;
use super::figures::{Bar, Figure, Unit, bar, median};
use super::floors::{Name, quiet_disk, replace};
use super::ours::{DaemonUse, context};

const PER_ROUND: usize = 40;

pub(crate) fn run(bench: &Bench) {
    if bench.wants("T6") {
        resident(bench);
    }
    if bench.wants("T7") {
        command(bench, bench.small(), "status write by the CLI, S");
        command(bench, bench.big(), "status write by the CLI, L, no daemon");
        let _daemon = Daemon::start(bench, bench.big());
        command(bench, bench.big(), "status write by the CLI, L, daemon alive");
    }
}

fn resident(bench: &Bench) {
    let corpus = bench.big();
    let mut lost = bar("T6", "status write, resident process, L", "F", 3.0, 1.3, Unit::Milliseconds);
    let synced = Bar {
        id: "T6",
        what: "the same, against F with its directory synced",
        floor: "F+dir",
        must: None,
        goal: None,
        unit: Unit::Milliseconds,
    };
    let mut synced = synced.figure();
    for round in 0..bench.rounds {
        quiet_disk(corpus);
        let floor = median(PER_ROUND, |n| replace(&corpus.beside, n, Name::MayBeLost));
        let floor_synced = median(PER_ROUND, |n| replace(&corpus.beside, n, Name::Synced));
        let write = median(PER_ROUND, |n| resident_write(bench, corpus, round * PER_ROUND + n));
        lost.add(write, floor);
        synced.add(write, floor_synced);
    }
    lost.print();
    synced.print();
}

fn resident_write(bench: &Bench, corpus: &Corpus, n: usize) -> f64 {
    let context = context(&corpus.plans, bench.state(), "bench", DaemonUse::NoDaemon);
    let request = |verb| MoveRequest {
        is_signed: false,
        verb,
        ids: vec![step_id(corpus.unbegun(n), 2)],
        message: None,
        by: None,
        claim: None,
        force: false,
        mode: Mode::Write,
    };
    move_steps(&context, &request(Verb::Skip)).expect("it can be skipped");
    let started = Instant::now();
    move_steps(&context, &request(Verb::Reopen)).expect("it can be reopened");
    started.elapsed().as_secs_f64()
}

fn command(bench: &Bench, corpus: &Corpus, what: &'static str) {
    let mut figure: Figure = bar("T7", what, "P+F", 4.0, 1.8, Unit::Milliseconds);
    for round in 0..bench.rounds {
        quiet_disk(corpus);
        let floor_p = median(PER_ROUND, |_| bench.ours.hello(&["done", "x"]));
        let floor_f = median(PER_ROUND, |n| replace(&corpus.beside, n, Name::MayBeLost));
        let write = median(PER_ROUND, |n| {
            let verb = if n.is_multiple_of(2) { "done" } else { "reopen" };
            let plan = corpus.unbegun((round * PER_ROUND + n) / 2);
            bench.ours.cli(corpus, &[verb, &step_id(plan, 1)])
        });
        figure.add(write, floor_p + floor_f);
    }
    figure.print();
}
