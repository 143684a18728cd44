//! T13: the history of 10,000 commits of plans, compared with `git log` and `git cat-file` alone.

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use super::Bench;
use super::corpus::Corpus;
use super::figures::{Figure, Unit, bar};

const PLANS: usize = 20;
const STEPS: usize = 25;

/// The number of commits that a day adds, which a later `log` has not read yet.
const NEW: usize = 100;

/// The goals of later reads in seconds; the required values are multiples of them.
const LATER: f64 = 0.05;
const AFTER_NEW: f64 = 0.06;

pub(crate) fn run(bench: &Bench) {
    if !bench.wants("T13") {
        return;
    }
    let n_commits = if bench.is_quick { 1_000 } else { 10_000 };
    let home = bench.place.join(format!("history-{n_commits}"));
    let mut history = History::make(&home, n_commits);
    let corpus = Corpus::of_plans(&home, PLANS);
    let log = ["log", "--limit", "20"];
    let mut figures = [
        bar("T13", "first `log` of the commits", "git alone", 2.0, 1.2, Unit::Milliseconds),
        bar("T13", "`log` again", "50 ms", 4.0, 1.0, Unit::Milliseconds),
        bar("T13", "`log` after 100 new commits", "60 ms", 3.3, 1.0, Unit::Milliseconds),
    ];
    pipeline(&home);
    for _ in 0..bench.rounds {
        corpus.forget_index();
        let floor = pipeline(&home);
        figures[0].add(bench.ours.cli(&corpus, &log), floor);
        figures[1].add(bench.ours.cli(&corpus, &log), LATER);
        history.add(NEW);
        figures[2].add(bench.ours.cli(&corpus, &log), AFTER_NEW);
    }
    figures.iter().for_each(Figure::print);
}

/// A repository whose commits each change one step.
struct History<'a> {
    home: &'a Path,
    n_commits: usize,
}

impl<'a> History<'a> {
    fn make(home: &'a Path, n_commits: usize) -> Self {
        fs::create_dir_all(home).expect("it can be made");
        let mut history = Self { home, n_commits: 0 };
        if home.join(".git").exists() {
            fs::remove_dir_all(home).expect("it is the bench's own");
            fs::create_dir_all(home).expect("it can be made");
        }
        git(home, &["init", "-q", "-b", "main"], b"");
        history.add(n_commits);
        history
    }

    /// Adds commits, and checks them out.
    fn add(&mut self, n: usize) {
        let mut stream = String::new();
        for at in self.n_commits..self.n_commits + n {
            let (plan, step) = (at % PLANS, at / PLANS % STEPS);
            let text = step_text(plan, step, at);
            let who = format!("Ann <ann@example.org> {} +0000", 1_700_000_000 + 60 * at);
            writeln!(stream, "commit refs/heads/main\nauthor {who}\ncommitter {who}\ndata 4\nstep")
                .expect("it fits");
            if at > 0 && at == self.n_commits {
                stream.push_str("from refs/heads/main^0\n");
            }
            write!(stream, "M 100644 inline plans/plan-{plan}/step-{step}.md\ndata {}\n{text}\n", text.len())
                .expect("it fits");
        }
        git(self.home, &["fast-import", "--quiet"], stream.as_bytes());
        git(self.home, &["reset", "-q", "--hard"], b"");
        self.n_commits += n;
    }
}

/// A usual step with the attempts that were made at it.
fn step_text(plan: usize, step: usize, at: usize) -> String {
    let tries = at / (PLANS * STEPS);
    let status = if tries.is_multiple_of(2) { "pending" } else { "failed" };
    let mut text = format!(
        "---\nid: \"plan-{plan}:{step}\"\nstatus: {status}\ncreated_at: 2026-11-01T09:00:00Z\nattempts:\n"
    );
    for it in 0..tries {
        writeln!(text, "  - {{at: 2026-11-02T09:00:{it:02}Z, by: ann, outcome: failed, notes: try {it}}}")
            .expect("it fits");
    }
    let body = "What has to be done here is said in some words, as in most steps.\n".repeat(12);
    write!(text, "---\n# Step {step} of plan {plan}\n\n{body}").expect("it fits");
    text
}

/// The seconds that `git log --raw`, and then `git cat-file` of all blobs that it names, take without parsing the
/// blobs.
fn pipeline(home: &Path) -> f64 {
    let started = Instant::now();
    let log = ["log", "--raw", "-z", "--no-renames", "--no-abbrev", "--format=%H", "--", "plans"];
    let printed = git(home, &log, b"");
    let mut oids: Vec<&[u8]> = Vec::new();
    for field in printed.split(|it| *it == 0) {
        if let Some(at) = field.iter().position(|it| *it == b':') {
            oids.extend(field[at..].split(|it| *it == b' ').nth(3));
        }
    }
    let names = oids.join(&b'\n');
    let blobs = git(home, &["cat-file", "--batch", "--buffer"], &[&names[..], b"\n"].concat());
    assert!(blobs.len() > oids.len() * 100);
    started.elapsed().as_secs_f64()
}

fn git(home: &Path, words: &[&str], input: &[u8]) -> Vec<u8> {
    let mut command = Command::new("git");
    command.args(words).current_dir(home).env("GIT_CONFIG_GLOBAL", "/dev/null");
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("git starts");
    let mut stdin = child.stdin.take().expect("it is piped");
    let output = std::thread::scope(|scope| {
        scope.spawn(move || stdin.write_all(input).ok());
        child.wait_with_output().expect("it ends")
    });
    assert!(output.status.success(), "git {words:?}");
    output.stdout
}
