//! T1 to T3, T14, and the peaks of T11: operations that check every file, without a daemon.

use std::fs;

use planwatch::ops::search::{SearchRequest, search};
use planwatch::store::live_index::LiveIndex;

use super::Bench;
use super::clients;
use super::figures::{Bar, Unit, bar};
use super::floors::{read2, stat1};
use super::ours::{DaemonUse, context};

use std::time::Instant;

/// A query whose hits must contain all four words. It has a few dozen hits.
pub(crate) const QUERY: &str = "copper lantern orchard quarry";

pub(crate) fn run(bench: &Bench) {
    cold(bench);
    unchanged(bench);
    memory(bench);
    clone(bench);
}

/// The seconds of one call of the library without an existing index.
fn timed(act: impl FnOnce()) -> f64 {
    let started = Instant::now();
    act();
    started.elapsed().as_secs_f64()
}

fn cold(bench: &Bench) {
    if !bench.wants_any(&["T1", "T2"]) {
        return;
    }
    let corpus = bench.big();
    let request_context = || context(&corpus.plans, bench.state(), "bench", DaemonUse::NoDaemon);
    let mut t1 = [
        bar("T1", "cold index, library (refresh)", "read2", 8.0, 3.0, Unit::Milliseconds),
        bar("T1", "cold index, `planwatch list`, answer included", "read2", 8.0, 3.0, Unit::Milliseconds),
    ];
    let mut t2 = [
        bar("T2", "cold index with full text, library (search)", "read2", 16.0, 10.0, Unit::Milliseconds),
        bar("T2", "cold index with full text, `planwatch search`", "read2", 16.0, 10.0, Unit::Milliseconds),
    ];
    // The system may evict pages that were not read for a few seconds. Reading them again gives the measured operation the
    // same page cache as its floor.
    let forget_index = || {
        corpus.forget_index();
        read2(corpus);
    };
    for round in 0..=bench.rounds {
        let floor = read2(corpus);
        forget_index();
        let library = timed(|| drop(LiveIndex::default().refresh(&request_context())));
        forget_index();
        let command = bench.ours.cli(corpus, &["list"]);
        // The first round warms the caches.
        if round > 0 {
            t1[0].add(library, floor);
            t1[1].add(command, floor);
        }
        if round == 0 || !bench.wants("T2") {
            continue;
        }
        let floor = read2(corpus);
        forget_index();
        let request = SearchRequest { query: QUERY.to_owned(), limit: 10, kind: None, since: None };
        t2[0].add(timed(|| drop(search(&request_context(), &request).expect("it can be searched"))), floor);
        forget_index();
        t2[1].add(bench.ours.cli(corpus, &["search", QUERY, "--limit", "10"]), floor);
    }
    if bench.wants("T1") {
        t1.iter().for_each(|it| it.print());
    }
    t2.iter().for_each(|it| it.print());
}

fn unchanged(bench: &Bench) {
    if !bench.wants("T3") {
        return;
    }
    let corpus = bench.big();
    bench.ours.cli(corpus, &["list"]);
    bench.ours.git_status(&corpus.home);
    let no_slower = |what| Bar {
        id: "T3",
        what,
        floor: "git status",
        must: None,
        goal: Some(1.0),
        unit: Unit::Milliseconds,
    };
    let mut figures = [
        bar("T3", "nothing changed, no daemon, `next`", "stat1", 2.0, 0.8, Unit::Milliseconds),
        bar("T3", "nothing changed, no daemon, `list`", "stat1", 2.0, 0.8, Unit::Milliseconds),
        no_slower("the same `next`").figure(),
        no_slower("the same `list`").figure(),
    ];
    for _ in 0..bench.rounds {
        let floor = stat1(corpus);
        let next = bench.ours.cli(corpus, &["next"]);
        let git = bench.ours.git_status(&corpus.home);
        let list = bench.ours.cli(corpus, &["list"]);
        let floors = [floor, floor, git, git];
        for ((figure, ours), floor) in figures.iter_mut().zip([next, list, next, list]).zip(floors) {
            figure.add(ours, floor);
        }
    }
    figures.iter().for_each(|it| it.print());
}

fn memory(bench: &Bench) {
    if !bench.wants("T11") {
        return;
    }
    let corpus = bench.big();
    let mut figures = [
        bar("T11", "peak of a cold index, library", "", 200.0, 96.0, Unit::Mebibytes),
        bar("T11", "peak of a cold index, `planwatch next`", "", 200.0, 96.0, Unit::Mebibytes),
        bar("T11", "peak of a cold index, `planwatch list`", "", 200.0, 96.0, Unit::Mebibytes),
        bar("T11", "peak of a cold index with full text", "", 200.0, 96.0, Unit::Mebibytes),
    ];
    let commands: [&[&str]; 3] = [&["next"], &["list"], &["search", QUERY]];
    for _ in 0..bench.rounds.min(3) {
        corpus.forget_index();
        figures[0].note(clients::peak_of_a_cold_index(corpus, bench.state()));
        for (figure, command) in figures[1..].iter_mut().zip(commands) {
            corpus.forget_index();
            figure.note(bench.ours.peak(corpus, command));
        }
    }
    figures.iter().for_each(|it| it.print());
}

fn clone(bench: &Bench) {
    if !bench.wants("T14") {
        return;
    }
    let mut figure =
        bar("T14", "`list` in a fresh clone of S, no index", "git status", 5.0, 2.0, Unit::Milliseconds);
    for round in 0..bench.rounds {
        let clone = bench.small().clone_to(&bench.place.join(format!("clone-{round}")));
        // The first of the two measurements finds the caches as the clone left them, so the order alternates.
        let (list, git) = if round % 2 == 0 {
            let git = bench.ours.git_status(&clone.home);
            (bench.ours.cli(&clone, &["list"]), git)
        } else {
            let list = bench.ours.cli(&clone, &["list"]);
            (list, bench.ours.git_status(&clone.home))
        };
        figure.add(list, git);
        fs::remove_dir_all(&clone.home).expect("it can be removed");
    }
    figure.print();
}
