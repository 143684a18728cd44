//! Realistic plans: the 110,000 files of 10,000 plans are about 197 MB.
//!
//! A file has the same bytes in every run. A third of the plans is not begun, a quarter is complete. The corpus is also
//! a git repository with one commit and without changes.

use std::fmt::Write as _;
use std::fs;
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// Plan directories with ten steps each.
pub(crate) struct Corpus {
    /// The working tree.
    pub(crate) home: PathBuf,
    pub(crate) plans: PathBuf,
    /// The directory for the files of the floors. It is inside the plans directory, so that it is on the same file system.
    /// No other files are created there: on some file systems, creating a file takes several times as long in a directory
    /// where many files were deleted.
    pub(crate) beside: PathBuf,
    pub(crate) n_plans: usize,
    statuses: Statuses,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Statuses {
    Usual,
    /// Every step can be claimed.
    AllReady,
}

const STEPS: usize = 10;

impl Corpus {
    pub(crate) fn make(home: &Path, n_plans: usize, statuses: Statuses) -> Self {
        let plans = home.join("plans");
        let corpus =
            Self { beside: plans.join(".floor"), plans, home: home.to_path_buf(), n_plans, statuses };
        if !home.join(".git/whole").exists() {
            corpus.write();
            fs::create_dir_all(&corpus.beside).expect("it can be made");
            fs::write(home.join(".git/whole"), "").expect("it can be written");
            // planwatch does not trust modification times younger than two seconds.
            std::thread::sleep(Duration::from_millis(2_500));
        }
        corpus
    }

    /// A corpus of existing plans, which were not written by this module.
    pub(crate) fn of_plans(home: &Path, n_plans: usize) -> Self {
        let plans = home.join("plans");
        Self {
            beside: plans.join(".floor"),
            plans,
            home: home.to_path_buf(),
            n_plans,
            statuses: Statuses::Usual,
        }
    }

    fn write(&self) {
        fs::create_dir_all(&self.plans).expect("it can be made");
        self.git(&["init", "--quiet"]);
        self.git(&["config", "core.compression", "0"]);
        fs::write(self.home.join(".git/info/exclude"), ".floor/\n").expect("it can be written");
        let mut import =
            self.prepared(&["fast-import", "--quiet"]).stdin(Stdio::piped()).spawn().expect("git");
        let mut stream = BufWriter::new(import.stdin.take().expect("it is piped"));
        let head = "commit refs/heads/main\ncommitter b <b@example.org> 1795262400 +0000\ndata 5\nplans\n";
        stream.write_all(head.as_bytes()).expect("git reads");
        for plan in 0..self.n_plans {
            let directory = self.plans.join(plan_name(plan));
            fs::create_dir(&directory).expect("it can be made");
            for step in 0..=STEPS {
                let (name, text) = (file_name(step), self.text(plan, step));
                fs::write(directory.join(&name), &text).expect("it can be written");
                let head = format!("M 100644 inline plans/{}/{name}\ndata {}\n", plan_name(plan), text.len());
                stream.write_all(head.as_bytes()).expect("git reads");
                stream.write_all(text.as_bytes()).expect("git reads");
                stream.write_all(b"\n").expect("git reads");
            }
        }
        drop(stream);
        assert!(import.wait().expect("it is ours").success());
        self.git(&["symbolic-ref", "HEAD", "refs/heads/main"]);
        self.git(&["read-tree", "HEAD"]);
        self.git(&["update-index", "-q", "--refresh"]);
    }

    fn prepared(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new("git");
        command.args(arguments).current_dir(&self.home).env("GIT_CONFIG_GLOBAL", "/dev/null");
        command
    }

    fn git(&self, arguments: &[&str]) {
        assert!(self.prepared(arguments).status().expect("git is there").success(), "git {arguments:?}");
    }

    /// A clone that no planwatch command has read yet.
    pub(crate) fn clone_to(&self, home: &Path) -> Self {
        let to = home.to_str().expect("a plain name");
        self.git(&["clone", "--quiet", ".", to]);
        let plans = home.join("plans");
        Self { beside: plans.join(".floor"), plans, home: home.to_path_buf(), ..*self }
    }

    pub(crate) fn path(&self, plan: usize, step: usize) -> PathBuf {
        self.plans.join(plan_name(plan)).join(file_name(step))
    }

    /// The number of a plan that is not begun.
    pub(crate) fn unbegun(&self, n: usize) -> usize {
        n % (self.n_plans / 3) * 3
    }

    pub(crate) fn forget_index(&self) {
        for entry in fs::read_dir(self.plans.join(".planwatch")).into_iter().flatten().flatten() {
            if entry.file_name().to_string_lossy().starts_with("index") {
                fs::remove_file(entry.path()).expect("it can be removed");
            }
        }
    }

    /// Restores the original files and removes the claims.
    pub(crate) fn restore(&self) {
        for plan in 0..self.n_plans {
            for step in 1..=STEPS {
                let (path, text) = (self.path(plan, step), self.text(plan, step));
                if fs::read_to_string(&path).expect("it is there") != text {
                    fs::write(path, text).expect("it can be written");
                }
            }
        }
        for claims in [self.home.join(".git/planwatch"), self.plans.join(".planwatch/leases")] {
            if claims.exists() {
                fs::remove_dir_all(claims).expect("it can be removed");
            }
        }
    }

    /// The original text of a file. Step 0 means `plan.md`.
    fn text(&self, plan: usize, step: usize) -> String {
        let mut chance = Chance(0x9e37_79b9_7f4a_7c15 ^ (plan as u64 * 64 + step as u64 + 1));
        for _ in 0..8 {
            chance.next();
        }
        // The number of completed steps. Plans with the remainders 0, 3, 6 and 9 are not begun.
        let done = match (self.statuses, plan % 12) {
            (Statuses::AllReady, _) | (_, 0 | 3 | 6 | 9) => None,
            (_, 1 | 5 | 8) => Some(STEPS),
            _ => Some(plan / 12 % STEPS),
        };
        if step == 0 {
            return plan_text(&mut chance, plan, done);
        }
        let depends =
            if self.statuses == Statuses::AllReady { vec![] } else { depends(&mut chance, self, step) };
        step_text(&mut chance, plan, step, done, &depends)
    }
}

pub(crate) fn plan_name(plan: usize) -> String {
    format!("{}-{}-{plan}", VERBS[plan % VERBS.len()], NOUNS[plan / 7 % NOUNS.len()])
}

pub(crate) fn step_id(plan: usize, step: usize) -> String {
    format!("{}:{step}", plan_name(plan))
}

fn file_name(step: usize) -> String {
    if step == 0 { "plan.md".to_owned() } else { format!("step-{step}.md") }
}

fn depends(chance: &mut Chance, corpus: &Corpus, step: usize) -> Vec<String> {
    let mut depends = Vec::new();
    if step > 1 && chance.one_in(5) < 4 {
        depends.push((step - 1).to_string());
    }
    // A first step has no dependencies, so depending on one causes no cycle.
    if step > 1 && chance.one_in(33) == 0 {
        depends.push(format!("\"{}:1\"", plan_name(chance.one_in(corpus.n_plans))));
    }
    depends
}

fn plan_text(chance: &mut Chance, plan: usize, done: Option<usize>) -> String {
    let status = match done {
        Some(STEPS) => "completed",
        _ => "active",
    };
    let mut text = format!("---\nstatus: {status}\n");
    let tags = (chance.pick(&NOUNS), chance.pick(&NOUNS));
    let _ = write!(text, "tags: [{}, {}]\ncreated_at: {}\ngoals:\n", tags.0, tags.1, chance.day());
    for _ in 0..1 + chance.one_in(3) {
        let _ = writeln!(text, "  - {}", chance.sentence());
    }
    let _ = write!(text, "---\n\n# {} {plan}\n\n", chance.title());
    body(chance, &mut text, 5);
    text.push_str("## Steps\n\n");
    for step in 1..=STEPS {
        let _ = writeln!(text, "{step}. [step {step}](step-{step}.md)");
    }
    text
}

fn step_text(
    chance: &mut Chance,
    plan: usize,
    step: usize,
    done: Option<usize>,
    depends: &[String],
) -> String {
    let (status, tries) = match done {
        Some(done) if step <= done => ("completed", 1 + chance.one_in(3)),
        Some(done) if step == done + 1 => {
            (chance.pick(&["in_progress", "failed", "pending"]), chance.one_in(4))
        }
        _ => ("pending", 0),
    };
    let mut text = format!("---\nid: {}\nstatus: {status}\n", step_id(plan, step));
    if !depends.is_empty() {
        let _ = writeln!(text, "depends: [{}]", depends.join(", "));
    }
    let _ = writeln!(text, "created_at: {}\nassignee: {}", chance.day(), chance.pick(&PEOPLE));
    if chance.one_in(3) == 0 {
        let _ =
            write!(text, "notes:\n  - at: {}T09:30:00Z\n    by: {}\n", chance.day(), chance.pick(&PEOPLE));
        let _ = writeln!(text, "    text: {}", chance.sentence());
    }
    if tries > 0 {
        text.push_str("attempts:\n");
    }
    for nth in 1..=tries {
        let outcome = if nth == tries && status == "completed" { "completed" } else { "failed" };
        let _ = write!(text, "  - at: {}T10:{:02}:00Z\n    by: ", chance.day(), chance.one_in(60));
        let _ = write!(text, "{}\n    outcome: {outcome}\n", chance.pick(&PEOPLE));
        if chance.one_in(6) == 0 {
            let _ = write!(text, "    notes: |\n      {}\n      {}\n", chance.sentence(), chance.sentence());
        } else {
            let _ = writeln!(text, "    notes: {}", chance.sentence());
        }
    }
    let _ = write!(text, "---\n\n# {}\n\n", chance.title());
    // Two in a hundred steps are long.
    let sections = if chance.one_in(50) == 0 { 20 + chance.one_in(30) } else { 4 + chance.one_in(3) };
    body(chance, &mut text, sections);
    text
}

fn body(chance: &mut Chance, text: &mut String, sections: usize) {
    for nth in 0..sections {
        let _ = write!(text, "## {}\n\n", chance.title());
        if nth == 1 {
            for _ in 0..3 + chance.one_in(4) {
                let _ = writeln!(text, "- [{}] {}", chance.pick(&["x", " "]), chance.sentence());
            }
        } else {
            for _ in 0..2 + chance.one_in(5) {
                let _ = writeln!(text, "{}.", chance.sentence());
            }
        }
        if chance.one_in(8) == 0 {
            let _ = write!(text, "\n```sh\n{} --{}\n```\n", chance.pick(&VERBS), chance.pick(&NOUNS));
        }
        text.push('\n');
    }
}

/// Pseudo-random numbers (xorshift64, Marsaglia 2003).
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn one_in(&mut self, n: usize) -> usize {
        usize::try_from((self.next() >> 24) % n as u64).unwrap_or(0)
    }

    fn pick<'a>(&mut self, words: &[&'a str]) -> &'a str {
        words[self.one_in(words.len())]
    }

    fn day(&mut self) -> String {
        format!("2026-{:02}-{:02}", 1 + self.one_in(10), 1 + self.one_in(28))
    }

    fn title(&mut self) -> String {
        format!("{} the {} of each {}", self.pick(&VERBS), self.pick(&NOUNS), self.pick(&NOUNS))
    }

    fn sentence(&mut self) -> String {
        let mut text = format!("{} {} {}", self.pick(&VERBS), self.pick(&KINDS), self.pick(&NOUNS));
        for _ in 0..self.one_in(4) {
            let _ = write!(text, " {} {} {}", self.pick(&JOINTS), self.pick(&KINDS), self.pick(&NOUNS));
        }
        text
    }
}

const VERBS: [&str; 28] = [
    "mend", "paint", "weigh", "order", "sow", "harvest", "repair", "carry", "count", "sort", "ship", "wash",
    "label", "measure", "bake", "print", "fold", "store", "plant", "clear", "move", "test", "draw", "hang",
    "oil", "cut", "fill", "sharpen",
];
const NOUNS: [&str; 48] = [
    "fence",
    "barn",
    "ladder",
    "kettle",
    "orchard",
    "wagon",
    "ledger",
    "harbour",
    "mill",
    "bridge",
    "lantern",
    "cellar",
    "garden",
    "tower",
    "anchor",
    "basket",
    "candle",
    "door",
    "engine",
    "furnace",
    "gate",
    "hammer",
    "island",
    "jar",
    "kitchen",
    "loft",
    "map",
    "needle",
    "oven",
    "pump",
    "quarry",
    "rope",
    "saddle",
    "table",
    "umbrella",
    "valley",
    "window",
    "yard",
    "almanac",
    "bell",
    "chimney",
    "drawer",
    "easel",
    "ferry",
    "greenhouse",
    "hinge",
    "inkwell",
    "joist",
];
const KINDS: [&str; 20] = [
    "old", "new", "small", "northern", "wooden", "broken", "quiet", "heavy", "spare", "narrow", "second",
    "borrowed", "dry", "long", "copper", "steep", "tidy", "early", "plain", "distant",
];
const JOINTS: [&str; 8] =
    ["behind the", "before the", "with each", "for a", "under the", "after the", "near a", "without the"];
const PEOPLE: [&str; 6] = ["amara", "joris", "lena", "nadia", "worker-1", "worker-2"];
