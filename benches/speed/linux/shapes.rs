//! T15 to T17: `status` compared with `list`, a plan with dense dependencies, and ten times as many files.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use super::Bench;
use super::corpus::Corpus;
use super::daemon::Daemon;
use super::figures::{Bar, Figure, Unit, bar, median};

/// The steps of the dense plan. Each depends on all earlier ones.
const DENSE_STEPS: usize = 800;

/// T17 has this many times as many plans as the other figures.
const GROWTH: usize = 10;

pub(crate) fn run(bench: &Bench) {
    if bench.wants("T15") {
        status(bench);
    }
    if bench.wants("T16") {
        dense(bench);
    }
    // T17 takes minutes and some gigabytes, so it runs only if it is named.
    if bench.is_named("T17") {
        growth(bench);
    }
}

fn status(bench: &Bench) {
    let corpus = bench.big();
    let measure = |what| {
        let mut figure = bar("T15", what, "list", 2.0, 1.2, Unit::Milliseconds);
        bench.ours.cli(corpus, &["status"]);
        for _ in 0..bench.rounds {
            let floor = bench.ours.cli(corpus, &["list"]);
            figure.add(bench.ours.cli(corpus, &["status"]), floor);
        }
        figure.print();
    };
    bench.ours.cli(corpus, &["list"]);
    measure("`status`, L, no daemon");
    let _daemon = Daemon::start(bench, corpus);
    measure("`status`, L, daemon alive");
}

fn dense(bench: &Bench) {
    let home = bench.place.join("dense");
    let plan = home.join("plans/dense");
    write_dense(&plan);
    let corpus = Corpus::of_plans(&home, 1);
    let mut figures = [
        bar(
            "T16",
            "`list` of 800 steps, 320,000 edges, no index",
            "its files",
            20.0,
            5.0,
            Unit::Milliseconds,
        ),
        bar("T16", "the same again", "its files", 20.0, 5.0, Unit::Milliseconds),
    ];
    for _ in 0..=bench.rounds {
        corpus.forget_index();
        let floor = read_files(&plan);
        figures[0].add(bench.ours.cli(&corpus, &["list", "dense"]), floor);
        let floor = read_files(&plan);
        figures[1].add(bench.ours.cli(&corpus, &["list", "dense"]), floor);
    }
    figures.iter().for_each(Figure::print);
}

fn write_dense(plan: &Path) {
    fs::create_dir_all(plan).expect("it can be made");
    fs::write(plan.join("plan.md"), "---\nstatus: active\n---\n# Dense\n").expect("it can be written");
    let mut before = String::new();
    for step in 1..=DENSE_STEPS {
        let text = format!("---\nstatus: pending\ndepends: [{before}]\n---\n# Step {step}\n");
        fs::write(plan.join(format!("step-{step}.md")), text).expect("it can be written");
        let comma = if step == 1 { "" } else { ", " };
        write!(before, "{comma}{step}").expect("it can be written");
    }
}

/// How many seconds it takes to read every file.
fn read_files(plan: &Path) -> f64 {
    let paths: Vec<PathBuf> =
        fs::read_dir(plan).expect("it is there").flatten().map(|it| it.path()).collect();
    let started = std::time::Instant::now();
    let bytes: usize = paths.iter().map(|it| fs::read(it).expect("it can be read").len()).sum();
    assert!(bytes > DENSE_STEPS);
    started.elapsed().as_secs_f64()
}

/// Measures ten times the files, and compares each value with ten times the value of L.
fn growth(bench: &Bench) {
    let huge = bench.corpus_of("huge", bench.n_plans * GROWTH);
    let growth = |what, unit| {
        Bar { id: "T17", what, floor: "linear", must: Some(1.3), goal: Some(1.0), unit }.figure()
    };
    let mut figures = [
        growth("cold index by `list` at ten times L", Unit::Milliseconds),
        growth("`list`, nothing changed, at ten times L", Unit::Milliseconds),
        growth("peak memory of a cold `list` at ten times L", Unit::Mebibytes),
    ];
    let measure = |corpus: &Corpus| {
        let cold = || {
            corpus.forget_index();
            bench.ours.cli(corpus, &["list"])
        };
        cold();
        let first = median(3, |_| cold());
        let again = median(3, |_| bench.ours.cli(corpus, &["list"]));
        corpus.forget_index();
        [first, again, bench.ours.peak(corpus, &["list"])]
    };
    #[expect(clippy::cast_precision_loss, reason = "a small number")]
    let times = GROWTH as f64;
    let (large, small) = (measure(&huge), measure(bench.big()));
    for ((figure, ours), floor) in figures.iter_mut().zip(large).zip(small) {
        figure.add(ours, floor * times);
        figure.print();
    }
}
