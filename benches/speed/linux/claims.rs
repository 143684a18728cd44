//! T8 and T9: eight clients claim steps of the corpus S at the same time with a daemon, as resident processes (T8) and with
//! one process per claim (T9). T9 also measures single claims without a daemon.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use super::Bench;
use super::clients::{Work, together};
use super::corpus::Corpus;
use super::daemon::Daemon;
use super::figures::{Bar, Unit, bar, share};
use super::floors::quiet_disk;

const CLIENTS: usize = 8;

/// Claims of one client in one round. Eight clients together claim fewer steps than exist.
const TURNS: usize = 20;
const PROCESSES: usize = 12;

pub(crate) fn run(bench: &Bench) {
    if bench.wants("T8") {
        let _daemon = Daemon::start(bench, bench.claimed());
        resident(bench);
    }
    if bench.wants("T9") {
        {
            let _daemon = Daemon::start(bench, bench.claimed());
            processes(bench);
        }
        without_daemon(bench);
    }
}

fn resident(bench: &Bench) {
    let corpus = bench.claimed();
    let wait = |what, goal| {
        Bar { id: "T8", what, floor: "fair share", must: None, goal, unit: Unit::Milliseconds }.figure()
    };
    let mut rate = bar("T8", "claims, 8 resident processes, S, daemon alive", "C", 0.2, 0.5, Unit::PerSecond);
    let (mut p99, mut worst) = (wait("their p99 wait", Some(8.0)), wait("their worst wait", None));
    for _ in 0..bench.rounds {
        corpus.restore();
        // Brings the index up to date.
        bench.ours.cli(corpus, &["list"]);
        quiet(corpus);
        let floor = together(Work::Replace, corpus, bench.state(), CLIENTS, TURNS);
        quiet(corpus);
        let ours = together(Work::Claim, corpus, bench.state(), CLIENTS, TURNS);
        check_distinct(&ours.claimed);
        let n = ours.waits.len() as f64;
        rate.add(n / ours.seconds, n / floor.seconds);
        // The wait of each client if all took turns.
        let fair = ours.seconds / n * CLIENTS as f64;
        p99.add(share(&ours.waits, 0.99), fair);
        worst.add(share(&ours.waits, 1.0), fair);
    }
    corpus.restore();
    rate.print();
    p99.print();
    worst.print();
}

/// Waits until nothing is written any more, not even by the daemon, which reports the restored files.
fn quiet(corpus: &Corpus) {
    std::thread::sleep(Duration::from_secs(1));
    quiet_disk(corpus);
}

fn check_distinct(claimed: &[String]) {
    let distinct: HashSet<_> = claimed.iter().collect();
    assert_eq!(distinct.len(), claimed.len(), "a step was claimed twice");
}

/// One claim after the other, in the corpus with 11,000 files. Each claim lists the candidates again.
fn without_daemon(bench: &Bench) {
    let corpus = bench.middle();
    let what = "one claim by the CLI, 11,000 files, no daemon";
    let bar = Bar { id: "T9", what, floor: "100 ms", must: Some(1.0), goal: None, unit: Unit::Milliseconds };
    let mut figure = bar.figure();
    corpus.restore();
    bench.ours.cli(corpus, &["list"]);
    quiet(corpus);
    for _ in 0..bench.rounds {
        figure.add(bench.ours.cli(corpus, &["claim", "--by", "worker"]), 0.1);
    }
    corpus.restore();
    figure.print();
}

fn processes(bench: &Bench) {
    let corpus = bench.claimed();
    let mut figure =
        bar("T9", "claims, 8 CLI processes, S, daemon alive", "bare+F", 0.25, 0.6, Unit::PerSecond);
    for _ in 0..bench.rounds {
        corpus.restore();
        bench.ours.cli(corpus, &["list"]);
        let bare = |worker: usize, n: usize| {
            let path = corpus.beside.join(format!("bare-{worker}-{n}"));
            bench.ours.hello(&["save", path.to_str().expect("a plain name")]);
        };
        quiet(corpus);
        let floor = eight(&bare);
        let by = |worker: usize, _| {
            bench.ours.cli(corpus, &["claim", "--by", &format!("worker-{worker}")]);
        };
        quiet(corpus);
        let ours = eight(&by);
        assert_eq!(in_progress(corpus), CLIENTS * PROCESSES, "every claim is in a file");
        figure.add(ours, floor);
    }
    corpus.restore();
    figure.print();
}

/// Processes per second, with eight running at a time.
fn eight(start: &(dyn Fn(usize, usize) + Sync)) -> f64 {
    let started = Instant::now();
    std::thread::scope(|scope| {
        for worker in 0..CLIENTS {
            scope.spawn(move || (0..PROCESSES).for_each(|n| start(worker, n)));
        }
    });
    (CLIENTS * PROCESSES) as f64 / started.elapsed().as_secs_f64()
}

fn in_progress(corpus: &Corpus) -> usize {
    let is_claimed = |(plan, step)| {
        let text = std::fs::read_to_string(corpus.path(plan, step)).expect("it is there");
        text.contains("status: in_progress")
    };
    let all = (0..corpus.n_plans).flat_map(|plan| (1..=10).map(move |step| (plan, step)));
    all.filter(|it| is_claimed(*it)).count()
}
