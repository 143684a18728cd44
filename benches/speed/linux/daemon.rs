//! T4, T5, T10 to T12 and `--at-rest`: the cost of commands while a daemon runs, and of the daemon.

use std::fs;
use std::io::Read as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use planwatch::api::daemon::DaemonClient as _;
use planwatch::disk::{PlansDir, RealDisk};
use planwatch::index::{Index, Place};
use planwatch::plan::id::PlanId;
use planwatch::serve::ipc::client;
use rustix::process::{Pid, Signal, kill_process};

use super::Bench;
use super::corpus::{Corpus, plan_name, step_id};
use super::figures::{Bar, Unit, bar, median, share};
use super::floors::{Echo, pause, quiet_disk, stat1};
use super::ours::{memory, socket_dirs};
use super::walks::QUERY;

const PER_ROUND: usize = 12;
const SAVES: usize = 200;

/// A daemon that watches a corpus until it is dropped.
pub(crate) struct Daemon<'a> {
    bench: &'a Bench,
    corpus: &'a Corpus,
    pid: u32,
    /// How many seconds its start took.
    took: f64,
}

impl<'a> Daemon<'a> {
    pub(crate) fn start(bench: &'a Bench, corpus: &'a Corpus) -> Self {
        let started = Instant::now();
        let output = bench.ours.output(corpus, &["watch", "--detach", "--json"]);
        let took = started.elapsed().as_secs_f64();
        let output: serde_json::Value = serde_json::from_str(&output).expect("JSON");
        let pid = output["pid"].as_u64().and_then(|it| u32::try_from(it).ok()).expect("it prints its pid");
        Self { bench, corpus, pid, took }
    }

    /// The daemon's memory in MiB, once that has not changed for a second, or after 20 seconds.
    fn settled(&self) -> f64 {
        let measure = || memory(self.pid, "VmRSS").expect("it runs");
        let (mut last, mut since) = (measure(), Instant::now());
        let end = Instant::now() + Duration::from_secs(20);
        while since.elapsed() < Duration::from_secs(1) && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(50));
            let now = measure();
            if (now - last).abs() > 0.1 {
                (last, since) = (now, Instant::now());
            }
        }
        last
    }
}

impl Drop for Daemon<'_> {
    fn drop(&mut self) {
        self.bench.ours.cli(self.corpus, &["watch", "--stop"]);
    }
}

pub(crate) fn run(bench: &Bench) {
    if bench.wants("T12") {
        ready(bench);
    }
    if bench.wants("T4") {
        one_plan(
            bench,
            bench.small(),
            [
                "`list PLAN`, daemon, S",
                "`show STEP`, daemon, S",
                "`next PLAN`, daemon, S",
                "`next`, daemon, S",
            ],
        );
    }
    if bench.wants("T11") {
        memory_of_a_cold_start(bench);
    }
    if !bench.wants_any(&["T4", "T5", "T10", "T11", "--at-rest"]) {
        return;
    }
    let corpus = bench.big();
    bench.ours.cli(corpus, &["list"]);
    let daemon = Daemon::start(bench, corpus);
    let mut at_rest = bar("T11", "daemon at rest, index there before", "", 120.0, 40.0, Unit::Mebibytes);
    at_rest.note(daemon.settled());
    if bench.wants("T4") {
        one_plan(
            bench,
            corpus,
            [
                "`list PLAN`, daemon, L",
                "`show STEP`, daemon, L",
                "`next PLAN`, daemon, L",
                "`next`, daemon, L",
            ],
        );
    }
    if bench.wants("T10") {
        searches(bench, corpus);
    }
    if bench.wants("T5") {
        saves(bench, corpus);
    }
    if bench.wants("T11") {
        at_rest.print();
        let mut after = bar("T11", "daemon at rest, after all that", "", 120.0, 40.0, Unit::Mebibytes);
        after.note(daemon.settled());
        after.print();
    }
    if bench.wants("--at-rest") {
        // The daemon first reports the saves and reads the saved files a second time.
        daemon.settled();
        std::thread::sleep(Duration::from_secs(3));
        system_calls(&daemon, if bench.is_quick { 10 } else { 60 });
    }
}

fn ready(bench: &Bench) {
    let corpus = bench.big();
    bench.ours.cli(corpus, &["list"]);
    let mut figure =
        bar("T12", "`watch --detach` until it is ready, L", "stat1", 4.0, 1.5, Unit::Milliseconds);
    for _ in 0..bench.rounds {
        let floor = stat1(corpus);
        figure.add(Daemon::start(bench, corpus).took, floor);
    }
    figure.print();
}

fn memory_of_a_cold_start(bench: &Bench) {
    bench.big().forget_index();
    let daemon = Daemon::start(bench, bench.big());
    let mut figure = bar("T11", "daemon at rest, no index before", "", 120.0, 40.0, Unit::Mebibytes);
    figure.note(daemon.settled());
    figure.print();
}

/// T4.
fn one_plan(bench: &Bench, corpus: &Corpus, what: [&'static str; 4]) {
    let is_small = corpus.n_plans == bench.small().n_plans;
    let daemon = is_small.then(|| Daemon::start(bench, corpus));
    let mut figures = what.map(|it| bar("T4", it, "P", 3.0, 1.4, Unit::Milliseconds));
    for round in 0..bench.rounds {
        let floor = median(PER_ROUND, |_| bench.ours.hello(&["list", "x"]));
        // These plans have a ready step.
        let plans = |n: usize| corpus.unbegun((round * PER_ROUND + n) * 7);
        // Reads their files into the page cache, where the floor's program is, too. Otherwise the first verb would be the
        // slowest.
        (0..PER_ROUND).for_each(|n| _ = bench.ours.cli(corpus, &["list", &plan_name(plans(n))]));
        for (verb, figure) in ["list", "show", "next", ""].into_iter().zip(&mut figures) {
            let took = median(PER_ROUND, |n| {
                let plan = plans(n);
                let id = if verb == "show" { step_id(plan, 3) } else { plan_name(plan) };
                match verb {
                    // `next` of all plans.
                    "" => bench.ours.cli(corpus, &["next"]),
                    verb => bench.ours.cli(corpus, &[verb, &id]),
                }
            });
            figure.add(took, floor);
        }
    }
    figures.iter().for_each(|it| it.print());
    if is_small {
        let program = fs::read(&bench.ours.binary).expect("it can be read");
        let loads_libgcc = program.windows(8).any(|it| it == b"libgcc_s");
        assert!(!loads_libgcc, "the program loads libgcc_s.so at each start; build.rs links it statically");
        // Without `link-order.ld` the ratio is 2.7.
        let mut faults = bar("T4", "page faults of `show STEP`, daemon, S", "P", 2.3, 1.4, Unit::Faults);
        let (ours, floor) = bench.ours.faults(corpus, &["show", &step_id(corpus.unbegun(0), 3)]);
        faults.add(ours, floor);
        faults.print();
    }
    drop(daemon);
}

/// T10.
fn searches(bench: &Bench, corpus: &Corpus) {
    let mut figures = [
        bar("T10", "search, four words, daemon", "P", 10.0, 3.0, Unit::Milliseconds),
        bar("T10", "search, a phrase of two words, daemon", "P", 10.0, 3.0, Unit::Milliseconds),
        bar("T10", "search, a word of nearly every file, daemon", "P", 10.0, 3.0, Unit::Milliseconds),
    ];
    let queries = [QUERY, "\"copper lantern\"", "lantern"];
    for query in queries {
        bench.ours.cli(corpus, &["search", query]);
    }
    for _ in 0..bench.rounds {
        let floor = median(PER_ROUND, |_| bench.ours.hello(&["list", "x"]));
        for (figure, query) in figures.iter_mut().zip(queries) {
            figure.add(median(5, |_| bench.ours.cli(corpus, &["search", query, "--limit", "10"])), floor);
        }
    }
    figures.iter().for_each(|it| it.print());
}

/// T5.
fn saves(bench: &Bench, corpus: &Corpus) {
    let figure = |what, must, goal| {
        Bar { id: "T5", what, floor: "E", must, goal: Some(goal), unit: Unit::Milliseconds }.figure()
    };
    let mut queried = [
        figure("saved until a query shows it: p50, L", Some(100.0), 20.0),
        figure("saved until a query shows it: p99, against E's", None, 50.0),
    ];
    let mut seen = [
        figure("saved until the index shows it, unasked: p50", Some(100.0), 20.0),
        figure("saved until the index shows it, unasked: p99", None, 50.0),
    ];
    let echo = Echo::begin(&corpus.beside);
    let mut editor = Saved::begin(bench, corpus);
    for round in 0..bench.rounds {
        quiet_disk(corpus);
        let mut takes = [Vec::new(), Vec::new(), Vec::new()];
        for n in 1..=SAVES {
            let n = round * SAVES + n;
            takes[0].push(echo.seconds(n));
            pause();
            takes[1].push(editor.until(n * 2, Saved::is_answered));
            pause();
            takes[2].push(editor.until(n * 2 + 1, Saved::is_indexed));
            pause();
        }
        let [floor, ours, unasked] = takes;
        for (place, share_of) in [0.5, 0.99].into_iter().enumerate() {
            queried[place].add(share(&ours, share_of), share(&floor, share_of));
            seen[place].add(share(&unasked, share_of), share(&floor, share_of));
        }
    }
    queried.iter().chain(&seen).for_each(|it| it.print());
}

/// A resident process that queries the daemon, and an editor in another thread.
struct Saved<'a> {
    corpus: &'a Corpus,
    plans: PlansDir,
    index: Index,
}

impl<'a> Saved<'a> {
    fn begin(bench: &Bench, corpus: &'a Corpus) -> Self {
        let plans = PlansDir::open(std::sync::Arc::new(RealDisk), &corpus.plans, Some(bench.state()));
        let plans = plans.expect("it is there");
        let place = plans.runtime_dir().expect("it can be used");
        let (index, _) = Index::open(Place::Directory(&place)).expect("it opens");
        Self { corpus, index, plans }
    }

    /// The seconds from the start of a save by an editor until `is_there` finds the saved text.
    fn until(&mut self, n: usize, is_there: fn(&mut Self, &PlanId, &str) -> bool) -> f64 {
        let plan = self.corpus.unbegun(n);
        let (path, title) = (self.corpus.path(plan, 4), format!("Saved as number {n}"));
        let text = fs::read_to_string(&path).expect("it is there");
        let (head, body) = text.split_once("\n# ").expect("it has a title");
        let text = format!("{head}\n# {title}\n{}", body.split_once('\n').map_or("", |it| it.1));
        let (saved, is_saved) = channel();
        let editor = std::thread::spawn(move || {
            let temporary = path.with_extension("md~");
            let started = Instant::now();
            fs::write(&temporary, text).expect("it can be written");
            fs::rename(&temporary, &path).expect("it can be renamed");
            saved.send(started).expect("the receiver waits");
        });
        let started = is_saved.recv().expect("it is saved");
        let id = PlanId::new(plan_name(plan));
        while !is_there(self, &id, &title) {
            std::thread::yield_now();
        }
        let took = started.elapsed().as_secs_f64();
        editor.join().expect("it saved");
        took
    }

    /// Asks the daemon for the generation that contains every save, and trusts the index if it is at that generation.
    fn is_answered(&mut self, id: &PlanId, title: &str) -> bool {
        let daemon = client::Daemon::of(&self.plans, socket_dirs());
        let Some(fresh) = daemon.commit() else { return false };
        let snapshot = self.index.snapshot().expect("it can be read");
        if snapshot.generation().ok().flatten() != Some(fresh) {
            return false;
        }
        let plan = snapshot.load_plan(id).expect("it can be read").expect("it is there");
        let is_right = plan.steps.iter().any(|it| it.title == title);
        assert!(is_right, "the daemon calls an old index current");
        is_right
    }

    fn is_indexed(&mut self, id: &PlanId, title: &str) -> bool {
        let plan = self
            .index
            .snapshot()
            .and_then(|it| it.load_plan(id))
            .expect("it can be read")
            .expect("it is there");
        plan.steps.iter().any(|it| it.title == title)
    }
}

/// Counts the system calls of an idle daemon.
fn system_calls(daemon: &Daemon<'_>, seconds: u64) {
    let log = daemon.bench.place.join("calls");
    let mut strace = Command::new("strace");
    strace.args(["-f", "-q", "-o"]).arg(&log).args(["-p", &daemon.pid.to_string()]);
    let Ok(mut strace) = strace.stdin(Stdio::null()).stderr(Stdio::piped()).spawn() else {
        println!("at rest: not measured, because strace is not installed");
        return;
    };
    std::thread::sleep(Duration::from_secs(seconds));
    if let Ok(Some(_)) = strace.try_wait() {
        let mut why = String::new();
        strace.stderr.take().map(|mut it| it.read_to_string(&mut why).ok());
        println!("at rest: not measured, because strace failed: {}", why.trim());
        return;
    }
    let pid = i32::try_from(strace.id()).ok().and_then(Pid::from_raw).expect("it runs");
    kill_process(pid, Signal::INT).expect("it is ours");
    strace.wait().expect("it is ours");
    let calls = ended_calls(&log);
    let verdict = if calls.is_empty() { "ok" } else { "MISSED" };
    println!("at rest: {} system calls in {seconds} s (must 0): {verdict}", calls.len());
    calls.iter().take(5).for_each(|it| println!("    {it}"));
}

/// The calls that ended during the measurement. A call in which a thread waits the whole time does not count.
fn ended_calls(log: &Path) -> Vec<String> {
    let text = fs::read_to_string(log).expect("strace wrote it");
    let is_waiting = |it: &&str| it.ends_with("<detached ...>") || it.ends_with("<unfinished ...>");
    text.lines().filter(|it| !is_waiting(it)).map(str::to_owned).collect()
}
