//! Speed as ratios to floors that are measured in the same run, alternately with what they are floors of.
//!
//! `scripts/bench` builds and runs it. Floors: P, a hello-world with clap (`PLANWATCH_HELLO`); F, a temporary file of the
//! same size, fsync, rename. T6: one status write in a resident process. T7: one status write by the command line
//! (`PLANWATCH_BIN`), in a corpus of `PLANWATCH_PLANS` plans of 10 steps.

#![expect(clippy::disallowed_methods, reason = "the floors are what the bans are about")]
#![expect(clippy::print_stdout, reason = "the figures are its answer")]

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Instant;

use planwatch::disk::{PlansDir, RealDisk};
use planwatch::engine::config::Config;
use planwatch::engine::context::{Context, Freshness, Here, Reading};
use planwatch::engine::update::{MoveRequest, move_steps};
use planwatch::engine::write::Mode;
use planwatch::plan::moves::Verb;

const ROUNDS: usize = 7;
const PER_ROUND: usize = 40;

fn main() {
    let number = |name: &str, default: usize| {
        std::env::var(name).ok().and_then(|it| it.parse().ok()).unwrap_or(default)
    };
    let n_plans = number("PLANWATCH_PLANS", 100);
    let place = tempfile::tempdir().expect("a temporary directory");
    let root = place.path().join("plans");
    corpus(&root, n_plans);
    // Among the plans, because a file system may take several times as long to make a file where many were deleted.
    let beside = root.join(".floor");
    fs::create_dir(&beside).expect("it can be made");
    println!("corpus: {n_plans} plans, {} files; {ROUNDS} rounds of {PER_ROUND}", n_plans * 11);
    let (mut resident, mut durable, mut cli) = (Vec::new(), Vec::new(), Vec::new());
    let mut floors = Vec::new();
    for round in 0..ROUNDS {
        let floor_f = median(PER_ROUND, |n| floor_write(&beside, n, Name::MayBeLost));
        let floor_d = median(PER_ROUND, |n| floor_write(&beside, n, Name::Synced));
        let write =
            median(PER_ROUND, |n| resident_write(&root, place.path(), (round * PER_ROUND + n) % n_plans));
        resident.push(write / floor_f);
        durable.push(write / floor_d);
        if let (Some(hello), Some(binary)) = (program("PLANWATCH_HELLO"), program("PLANWATCH_BIN")) {
            let floor_p = median(PER_ROUND, |_| start(&hello, &["done", "x"], place.path()));
            let verb = |n: usize| if n.is_multiple_of(2) { "done" } else { "reopen" };
            let id = |n: usize| format!("plan-{}:1", (n / 2) % n_plans);
            let write = median(PER_ROUND, |n| start(&binary, &[verb(n), &id(n)], place.path()));
            cli.push(write / (floor_p + floor_f));
            floors.push((floor_p, floor_f, write));
        }
    }
    println!("T6 {:5.2} x F   (must 3, goal 1.3)   rounds {}", middle(&resident), shown(&resident));
    println!("   {:5.2} x F with its directory synced too", middle(&durable));
    if !cli.is_empty() {
        println!("T7 {:5.2} x P+F (must 4, goal 1.8)   rounds {}", middle(&cli), shown(&cli));
        let (p, f, write) = floors[floors.len() / 2];
        println!("   a middle round in ms: P {:.2}, F {:.2}, write {:.2}", p * 1e3, f * 1e3, write * 1e3);
    }
}

fn program(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).map(PathBuf::from)
}

/// Plans of ten steps; the text of a step is of the usual length.
fn corpus(root: &Path, n_plans: usize) {
    let text = "A line of a step's text, as long as such lines are.\n".repeat(24);
    for plan in 0..n_plans {
        let directory = root.join(format!("plan-{plan}"));
        fs::create_dir_all(&directory).expect("it can be made");
        fs::write(directory.join("plan.md"), format!("---\nstatus: active\n---\n# Plan {plan}\n"))
            .expect("it can be written");
        for step in 1..=10 {
            let depends = if step > 2 { format!("depends: [{}]\n", step - 1) } else { String::new() };
            let head =
                format!("---\nid: plan-{plan}:{step}\nstatus: pending\n{depends}---\n# Step {step}\n\n");
            fs::write(directory.join(format!("step-{step}.md")), head + &text).expect("it can be written");
        }
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Name {
    /// A power cut may bring the old file back.
    MayBeLost,
    Synced,
}

/// F: what any replacement of a file costs whose bytes are safe.
fn floor_write(place: &Path, n: usize, name: Name) -> f64 {
    let (path, temporary) = (place.join("floor"), place.join(format!("floor-{n}")));
    let bytes = vec![b'x'; 1500];
    let started = Instant::now();
    let mut file = File::create(&temporary).expect("it can be made");
    file.write_all(&bytes).expect("it can be written");
    file.sync_all().expect("it can be synced");
    fs::rename(&temporary, &path).expect("it can be renamed");
    if name == Name::Synced {
        File::open(place).and_then(|it| it.sync_all()).expect("it can be synced");
    }
    started.elapsed().as_secs_f64()
}

fn resident_write(root: &Path, place: &Path, plan: usize) -> f64 {
    let plans = PlansDir::open(Arc::new(RealDisk), root, Some(&place.join("state"))).expect("it is there");
    let now = "2026-11-21T12:00:00Z".parse().expect("a time");
    let context = Context {
        plans,
        now,
        by: "bench".to_owned(),
        config: Config::default(),
        reading: Reading::Files,
        freshness: Freshness::Unknown,
        here: Here::default(),
        tell: Box::new(|_| {}),
    };
    let request = |verb| MoveRequest {
        verb,
        ids: vec![format!("plan-{plan}:2")],
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

fn start(program: &Path, arguments: &[&str], directory: &Path) -> f64 {
    let mut command = Command::new(program);
    command
        .args(arguments)
        .current_dir(directory)
        .env("XDG_STATE_HOME", directory.join("state"))
        .env("PLANWATCH_BY", "bench");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let started = Instant::now();
    let status = command.status().expect("it starts");
    let took = started.elapsed().as_secs_f64();
    assert!(status.success(), "{} {arguments:?} failed", program.display());
    took
}

fn median(n: usize, mut measure: impl FnMut(usize) -> f64) -> f64 {
    middle(&(0..n).map(&mut measure).collect::<Vec<_>>())
}

fn middle(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[sorted.len() / 2]
}

fn shown(values: &[f64]) -> String {
    values.iter().map(|it| format!("{it:.2}")).collect::<Vec<_>>().join(" ")
}
