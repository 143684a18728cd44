//! Resident processes: this program starts itself several times, and each process repeats one operation.

use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use planwatch::ops::claim::{ClaimRequest, claim};
use planwatch::store::live_index::LiveIndex;

use super::corpus::Corpus;
use super::floors::locked_replace;
use super::ours::{DaemonUse, context, memory};

/// The operation that a client repeats.
#[derive(Clone, Copy)]
pub(crate) enum Work {
    /// Takes the lock and replaces a file: floor C.
    Replace,
    /// A claim through the daemon.
    Claim,
}

/// The results of all clients together.
pub(crate) struct Done {
    /// Wall-clock seconds from the start signal until the last client had finished.
    pub(crate) seconds: f64,
    /// Seconds of every single turn.
    pub(crate) waits: Vec<f64>,
    /// The ids of the claimed steps.
    pub(crate) claimed: Vec<String>,
}

/// `--client WORK PLANS BESIDE STATE NUMBER TURNS`: prints `ready`, waits for a line, and prints all turns at the end.
/// If WORK is `index`, it only builds an index and prints the peak of its memory.
pub(crate) fn run(arguments: &[String]) {
    let [work, plans, beside, state, number, turns] = arguments else {
        panic!("a client needs six arguments")
    };
    let (plans, beside, state) = (Path::new(plans), Path::new(beside), Path::new(state));
    if work == "index" {
        LiveIndex::default().refresh(&context(plans, state, "bench", DaemonUse::NoDaemon));
        println!("{}", memory(std::process::id(), "VmHWM").expect("Linux reports it"));
        return;
    }
    let (number, turns): (usize, usize) =
        (number.parse().expect("a number"), turns.parse().expect("a number"));
    let by = format!("worker-{number}");
    println!("ready");
    std::io::stdin().read_line(&mut String::new()).expect("a line");
    let mut report = String::new();
    for turn in 0..turns {
        let started = Instant::now();
        let claimed = match work.as_str() {
            "replace" => {
                locked_replace(beside, number * turns + turn);
                String::new()
            }
            _ => one_claim(plans, state, &by),
        };
        writeln!(report, "{} {claimed}", started.elapsed().as_secs_f64()).expect("memory");
    }
    print!("{report}");
}

fn one_claim(plans: &Path, state: &Path, by: &str) -> String {
    let report = claim(&context(plans, state, by, DaemonUse::Daemon), &ClaimRequest::default())
        .expect("it can be claimed");
    let step = report.step.expect("there are enough steps");
    step["id"].as_str().expect("it has an id").to_owned()
}

fn start(work: &str, corpus: &Corpus, state: &Path, number: usize, turns: usize) -> Child {
    let mut command = Command::new(std::env::current_exe().expect("it runs"));
    command.args(["--client", work]).args([&corpus.plans, &corpus.beside]).arg(state);
    command.args([number.to_string(), turns.to_string()]).stdin(Stdio::piped()).stdout(Stdio::piped());
    command.spawn().expect("it starts")
}

/// Runs the same operation in several resident processes at the same time.
pub(crate) fn together(work: Work, corpus: &Corpus, state: &Path, clients: usize, turns: usize) -> Done {
    let name = match work {
        Work::Replace => "replace",
        Work::Claim => "claim",
    };
    let mut running: Vec<_> = (0..clients)
        .map(|number| {
            let mut child = start(name, corpus, state, number, turns);
            let mut output = BufReader::new(child.stdout.take().expect("it is piped"));
            output.read_line(&mut String::new()).expect("it prints `ready`");
            (child, output)
        })
        .collect();
    let started = Instant::now();
    for (child, _) in &mut running {
        child.stdin.take().expect("it is piped").write_all(b"go\n").expect("it waits");
    }
    let mut report = String::new();
    for (_, output) in &mut running {
        output.read_to_string(&mut report).expect("it prints its turns");
    }
    let seconds = started.elapsed().as_secs_f64();
    for (child, _) in &mut running {
        assert!(child.wait().expect("it is ours").success(), "a client failed");
    }
    let lines: Vec<_> = report.lines().filter_map(|it| it.split_once(' ')).collect();
    assert_eq!(lines.len(), clients * turns, "every turn is reported");
    let waits = lines.iter().map(|it| it.0.parse().expect("seconds")).collect();
    let claimed = lines.iter().map(|it| it.1.to_owned()).filter(|it| !it.is_empty()).collect();
    Done { seconds, waits, claimed }
}

/// The peak memory, in MiB, of a process that only builds a new index.
pub(crate) fn peak_of_a_cold_index(corpus: &Corpus, state: &Path) -> f64 {
    let output = start("index", corpus, state, 0, 0).wait_with_output().expect("it is ours");
    String::from_utf8_lossy(&output.stdout).trim().parse().expect("a number")
}
