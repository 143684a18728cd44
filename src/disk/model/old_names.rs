//! Tests of batches during which an editor saves a renamed file under its old name, and so creates a second file.
//!
//! Each run makes two saves, each at one moment of the batch. By default, only a sample of all pairs of moments is run. A
//! failed batch must leave no file under a new name, and each saved text must be in a file, or be preserved and reported.

use super::exhaustive::open;
use super::sample::{sample_beside_saves, sample_saves};
use super::*;
use crate::disk::{DiskError, FileOp, PlansDir};

struct Renaming {
    name: &'static str,
    act: fn(&PlansDir) -> Result<(), DiskError>,
    /// The saves of editors, each with a path and a text. The first path is an old name.
    saves: [(&'static str, &'static str); 2],
    /// For each renamed file its old name, its new name, and its text before the batch.
    renamed: &'static [(&'static str, &'static str, &'static str)],
}

const PLAN: &str = "/plans/p/plan.md";

/// Like `move`: changes and renames a step's file, and changes its entry in the list.
fn moving(plans: &PlansDir) -> Result<(), DiskError> {
    let path = PathBuf::from;
    let ops = vec![
        FileOp::Change {
            path: path("p/step-2.md"),
            before: b"second\n".to_vec(),
            after: b"id: 4\nsecond\n".to_vec(),
        },
        FileOp::Rename { from: path("p/step-2.md"), to: path("p/step-4.md") },
        FileOp::Change { path: path("p/plan.md"), before: b"2 3\n".to_vec(), after: b"3 4\n".to_vec() },
    ];
    plans.lock(&mut || {})?.batch("move", "", ops)
}

/// Like `squash` and `remove`: moves a step's file unchanged to the archive, and changes the list.
fn removing(plans: &PlansDir) -> Result<(), DiskError> {
    let path = PathBuf::from;
    let ops = vec![
        FileOp::Rename { from: path("p/step-2.md"), to: path("_archive/p/removed-1/step-2.md") },
        FileOp::Change { path: path("p/plan.md"), before: b"2 3\n".to_vec(), after: b"3\n".to_vec() },
    ];
    plans.lock(&mut || {})?.batch("remove", "", ops)
}

/// Like `archive`: renames the whole directory of a plan, and changes another plan that names it.
fn archiving(plans: &PlansDir) -> Result<(), DiskError> {
    let path = PathBuf::from;
    let ops = vec![
        FileOp::Rename { from: path("p"), to: path("_archive/p") },
        FileOp::Change { path: path("q/plan.md"), before: b"p\n".to_vec(), after: b"_archive/p\n".to_vec() },
    ];
    plans.lock(&mut || {})?.batch("archive", "", ops)
}

const SAVED: &str = "second\ntoken\n";

const RENAMINGS: &[Renaming] = &[
    Renaming {
        name: "move",
        act: moving,
        saves: [("/plans/p/step-2.md", SAVED), (PLAN, "2 3\nours\n")],
        renamed: &[("/plans/p/step-2.md", "/plans/p/step-4.md", "second\n")],
    },
    Renaming {
        name: "remove",
        act: removing,
        saves: [("/plans/p/step-2.md", SAVED), (PLAN, "2 3\nours\n")],
        renamed: &[("/plans/p/step-2.md", "/plans/_archive/p/removed-1/step-2.md", "second\n")],
    },
    Renaming {
        name: "archive",
        act: archiving,
        saves: [("/plans/p/step-2.md", SAVED), ("/plans/q/plan.md", "p\nours\n")],
        renamed: &[
            (PLAN, "/plans/_archive/p/plan.md", "2 3\n"),
            ("/plans/p/step-2.md", "/plans/_archive/p/step-2.md", "second\n"),
            ("/plans/p/notes/one.md", "/plans/_archive/p/notes/one.md", "note\n"),
        ],
    },
];

fn start() -> State {
    let mut state = State::new();
    state.plant("/state/planwatch/key", &[7; 32]);
    for (path, text) in [
        (PLAN, "2 3\n"),
        ("/plans/p/step-2.md", "second\n"),
        ("/plans/p/step-3.md", "third\n"),
        ("/plans/p/notes/one.md", "note\n"),
        ("/plans/q/plan.md", "p\n"),
    ] {
        state.plant(path, text.as_bytes());
    }
    let disk = ModelDisk::new(state, Script::default());
    drop(open(&disk).unwrap().lock(&mut || {}).unwrap());
    let mut state = disk.world().state.clone();
    state.settle();
    state.clock += 10_000_000_000;
    state
}

impl Renaming {
    fn run(&self, start: &State, script: Script, kills: Kills) -> (ModelDisk, Result<(), DiskError>) {
        let disk = ModelDisk::new(start.clone(), script);
        disk.world().kills = kills;
        let answer = open(&disk).and_then(|plans| (self.act)(&plans));
        (disk, answer)
    }

    /// Runs the next commands on the state that a process left, and checks the result. `answer` is `None` if the process
    /// was killed.
    #[track_caller]
    fn judge(&self, state: State, answer: Option<&Result<(), DiskError>>, script: Script, calls: u64) {
        let what = format!("{}: {script:?}: {calls} calls: {answer:?}", self.name);
        let disk =
            ModelDisk::new(state, Script { lacks_exchange: script.lacks_exchange, ..Script::default() });
        let plans = open(&disk).unwrap();
        let taken_back = {
            let locked = plans.lock(&mut || {}).unwrap_or_else(|error| panic!("{what}: {error}"));
            locked.recovered.as_ref().map(|it| it.outcome == crate::disk::Outcome::TakenBack)
        };
        for _ in 0..2 {
            disk.world().state.clock += 120_000_000_000;
            drop(plans.lock(&mut || {}).unwrap_or_else(|error| panic!("{what}: later: {error}")));
        }
        let kept = plans.kept();
        let world = disk.world();
        let text = |path: &str| world.state.text(path).map(|it| String::from_utf8(it).unwrap());
        let everything: Vec<_> = world.state.tree().into_values().flatten().collect();
        let kept: Vec<_> =
            kept.iter().filter_map(|it| text(&format!("/plans/{}", it.kept.display()))).collect();
        // Without an exchange, a save between the last check and the rename is lost (see `fallback`).
        for save in script.saves.iter().flatten().filter(|it| it.call <= calls && !script.lacks_exchange) {
            let is_there = everything.iter().chain(&kept).any(|it| it == save.text);
            assert!(is_there, "{what}: a save is lost: {everything:?} {kept:?}");
        }
        let is_refused = match taken_back {
            Some(taken_back) => taken_back,
            None => answer.is_some_and(Result::is_err),
        };
        for (old, new, before) in self.renamed {
            if is_refused {
                assert_eq!(text(new), None, "{what}: is there twice");
                let found = text(old);
                let saved = script.saves.iter().flatten().find(|it| it.path == *old);
                let is_right = found.as_deref() == Some(*before)
                    || saved.is_some_and(|it| found.as_deref() == Some(it.text));
                assert!(is_right, "{what}: {old}: {found:?}");
            } else {
                assert!(text(old).or(text(new)).is_some(), "{what}: {old} and {new} are missing");
            }
        }
    }
}

fn judge_all(every: usize, lacks_exchange: bool) {
    let (start, mut pairs, mut sample) = (start(), sample_saves(every), sample_beside_saves(19));
    let (mut n_refused, mut n_runs) = (0, 0);
    for renaming in RENAMINGS {
        let calls = {
            let script = Script { lacks_exchange, ..Script::default() };
            renaming.run(&start, script, Kills::none()).0.world().calls
        };
        for (first, second) in (1..=calls).flat_map(|first| (1..=calls + 20).map(move |it| (first, it))) {
            if !pairs.takes() {
                continue;
            }
            let [one, two] = renaming.saves;
            let save = |(path, text), call| Some(BlindSave { path, text, call });
            let saves = [save(one, first), save(two, second)];
            let script = Script { saves, lacks_exchange, ..Script::default() };
            let kills = Kills { from: first + 1, sample, left: Vec::new() };
            let (disk, answer) = renaming.run(&start, script, kills);
            let calls = disk.world().calls;
            let state = disk.world().state.clone();
            let kills = std::mem::replace(&mut disk.world().kills, Kills::none());
            sample = kills.sample;
            n_refused += usize::from(answer.is_err());
            n_runs += 1;
            renaming.judge(state, Some(&answer), script, calls);
            for (call, left) in kills.left {
                for names in 0..=left.state.pending() {
                    let cut = left.state.after_cut(names, super::state::Unsynced::All);
                    renaming.judge(cut, None, script, call);
                }
                renaming.judge(left.state, None, script, call);
            }
        }
    }
    assert!(n_refused > 100 && n_refused < n_runs, "{n_refused} of {n_runs}");
}

#[test]
fn a_batch_that_is_refused_or_interrupted_leaves_nothing_under_a_new_name() {
    judge_all(31, false);
}

#[test]
fn a_batch_without_exchange_that_is_refused_or_interrupted_leaves_nothing_under_a_new_name() {
    judge_all(31, true);
}
