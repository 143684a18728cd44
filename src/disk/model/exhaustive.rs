//! Every crash point, every single fault and every moment of an editor's save, for each protocol. A power cut leaves
//! the old text, the new one, or a text that is preserved and reported.
//!
//! A plain `cargo test` runs every n-th combination; `PLANWATCH_R3=full` runs all.

use std::collections::BTreeSet;
use std::convert::Infallible;

use super::sample::sample_pairs;
pub(super) use super::sample::{Sample, sample};
use super::state::Unsynced;
use super::*;
use crate::disk::{ChangeError, DiskError, FileOp, PlansDir, UndoError};

/// One protocol: its start, its action, and the allowed results.
pub(super) struct Case {
    pub name: &'static str,
    pub plant: fn(&mut State),
    /// Done durably before the run.
    pub earlier: fn(&PlansDir) -> Result<(), DiskError>,
    pub act: fn(&PlansDir) -> Result<(), DiskError>,
    /// The relevant file texts, before and after.
    pub files: &'static [(&'static str, Option<&'static str>, Option<&'static str>)],
    pub lacks_exchange: bool,
    /// Whether a torn text is allowed if the earlier text was preserved.
    pub in_place: bool,
}

const FAULTS: [Errno; 7] =
    [Errno::IO, Errno::NOSPC, Errno::ACCESS, Errno::XDEV, Errno::INVAL, Errno::NOSYS, Errno::NOENT];
/// Faults while an editor saves. Others lead to the paths without an exchange, where a save between the last check and
/// the write is lost, as documented.
const FAULTS_WITH_EXCHANGE: [Errno; 4] = [Errno::IO, Errno::NOSPC, Errno::ACCESS, Errno::NOENT];
const SAVES: [Save; 5] = [Save::Rename, Save::Truncate, Save::Append, Save::Away, Save::AwayAndCreate];

const OLD: &str = "old\n";
const NEW: &str = "old\nours\n";
const STEP: &str = "/plans/p/step-1.md";

pub(super) fn plant_step(state: &mut State) {
    state.plant(STEP, OLD.as_bytes());
}

fn plant_linked(state: &mut State) {
    plant_step(state);
    state.link(Path::new(STEP), Path::new("/plans/p/other.md")).unwrap();
    state.settle();
}

pub(super) fn edit(plans: &PlansDir) -> Result<(), DiskError> {
    let mut locked = plans.lock(&mut || {})?;
    let changed = locked.change(Path::new("p/step-1.md"), &mut |bytes, _| {
        let ours = bytes.windows(5).any(|it| it == b"ours\n");
        Ok::<_, Infallible>(if ours { bytes.to_vec() } else { [bytes, b"ours\n"].concat() })
    });
    match changed {
        Ok(_) => Ok(()),
        Err(ChangeError::Disk(error)) => Err(error),
        Err(ChangeError::Refused(never)) => match never {},
    }
}

fn create(plans: &PlansDir) -> Result<(), DiskError> {
    plans.lock(&mut || {})?.create(Path::new("p/step-2.md"), b"made\n").map(|_| ())
}

fn create_plan(plans: &PlansDir) -> Result<(), DiskError> {
    let files = [("plan.md".to_string(), b"plan\n".to_vec()), ("step-1.md".to_string(), b"step\n".to_vec())];
    plans.lock(&mut || {})?.create_dir_with(Path::new("q"), &files)
}

pub(super) fn nothing(plans: &PlansDir) -> Result<(), DiskError> {
    plans.lock(&mut || {}).map(drop)
}

pub(super) fn plant_two_plans(state: &mut State) {
    plant_step(state);
    state.plant("/plans/p/step-2.md", b"second\n");
    state.plant("/plans/q/plan.md", b"q\n");
}

pub(super) fn restructure(plans: &PlansDir) -> Result<(), DiskError> {
    let path = PathBuf::from;
    let (old, new) = (OLD.as_bytes().to_vec(), NEW.as_bytes().to_vec());
    let ops = vec![
        FileOp::Create { path: path("p/step-3.md"), bytes: b"third\n".to_vec() },
        FileOp::Change { path: path("p/step-1.md"), before: old, after: new },
        FileOp::Discard { path: path("p/step-2.md"), before: b"second\n".to_vec() },
        FileOp::Rename { from: path("p/step-1.md"), to: path("p/step-4.md") },
        FileOp::Remove { path: path("q"), to: path("_archive/q") },
    ];
    plans.lock(&mut || {})?.batch("replace", "", ops)
}

fn undo(plans: &PlansDir) -> Result<(), DiskError> {
    match plans.lock(&mut || {})?.undo() {
        Ok(_) => Ok(()),
        Err(UndoError::Disk(error)) => Err(error),
        Err(_) => Err(DiskError::FileChanged { path: PathBuf::from(STEP) }),
    }
}

pub(super) const RESTRUCTURED: &[(&str, Option<&str>, Option<&str>)] = &[
    (STEP, Some(OLD), None),
    ("/plans/p/step-2.md", Some("second\n"), None),
    ("/plans/p/step-3.md", None, Some("third\n")),
    ("/plans/p/step-4.md", None, Some(NEW)),
    ("/plans/q/plan.md", Some("q\n"), None),
    ("/plans/_archive/q/plan.md", None, Some("q\n")),
];

const TAKEN_BACK: &[(&str, Option<&str>, Option<&str>)] = &[
    (STEP, None, Some(OLD)),
    ("/plans/p/step-2.md", None, Some("second\n")),
    ("/plans/p/step-3.md", Some("third\n"), None),
    ("/plans/p/step-4.md", Some(NEW), None),
    ("/plans/q/plan.md", None, Some("q\n")),
    ("/plans/_archive/q/plan.md", Some("q\n"), None),
];

/// As `squash` does it: the first text grows and its old version is retained, the second file moves to the archive.
fn squash(plans: &PlansDir) -> Result<(), DiskError> {
    let path = PathBuf::from;
    let (old, new) = (OLD.as_bytes().to_vec(), NEW.as_bytes().to_vec());
    let ops = vec![
        FileOp::Create { path: path("_archive/p/removed-1/step-1.md"), bytes: old.clone() },
        FileOp::Change { path: path("p/step-1.md"), before: old, after: new },
        FileOp::Rename { from: path("p/step-2.md"), to: path("_archive/p/removed-1/step-2.md") },
        FileOp::Change { path: path("q/plan.md"), before: b"q\n".to_vec(), after: b"q 1\n".to_vec() },
    ];
    plans.lock(&mut || {})?.batch("squash", "", ops)
}

const SQUASHED: &[(&str, Option<&str>, Option<&str>)] = &[
    (STEP, Some(OLD), Some(NEW)),
    ("/plans/p/step-2.md", Some("second\n"), None),
    ("/plans/_archive/p/removed-1/step-1.md", None, Some(OLD)),
    ("/plans/_archive/p/removed-1/step-2.md", None, Some("second\n")),
    ("/plans/q/plan.md", Some("q\n"), Some("q 1\n")),
];

/// As `archive` does it if part of the plan is already in the archive: file by file.
fn archive(plans: &PlansDir) -> Result<(), DiskError> {
    let names = ["step-1.md", "step-2.md"];
    let to = Path::new("_archive/p");
    let op = |it: &&str| FileOp::Rename { from: Path::new("p").join(it), to: to.join(it) };
    plans.lock(&mut || {})?.batch_emptying(
        "archive",
        "",
        names.iter().map(op).collect(),
        vec![PathBuf::from("p")],
    )
}

fn plant_with_removed(state: &mut State) {
    plant_two_plans(state);
    state.plant("/plans/_archive/p/removed-0/step-3.md", b"third\n");
}

const ARCHIVED: &[(&str, Option<&str>, Option<&str>)] = &[
    (STEP, Some(OLD), None),
    ("/plans/p/step-2.md", Some("second\n"), None),
    ("/plans/_archive/p/step-1.md", None, Some(OLD)),
    ("/plans/_archive/p/step-2.md", None, Some("second\n")),
    ("/plans/_archive/p/removed-0/step-3.md", Some("third\n"), Some("third\n")),
];

pub(super) const STEP_CHANGES: &[(&str, Option<&str>, Option<&str>)] = &[(STEP, Some(OLD), Some(NEW))];

const CASES: &[Case] = &[
    Case {
        name: "the first lock of a directory",
        plant: plant_step,
        earlier: |_| Ok(()),
        act: nothing,
        files: &[(STEP, Some(OLD), Some(OLD))],
        lacks_exchange: false,
        in_place: false,
    },
    Case {
        name: "the first change in a directory",
        plant: plant_step,
        earlier: |_| Ok(()),
        act: edit,
        files: STEP_CHANGES,
        lacks_exchange: false,
        in_place: false,
    },
    Case {
        name: "change",
        plant: plant_step,
        earlier: nothing,
        act: edit,
        files: STEP_CHANGES,
        lacks_exchange: false,
        in_place: false,
    },
    Case {
        name: "change without exchange",
        plant: plant_step,
        earlier: nothing,
        act: edit,
        files: STEP_CHANGES,
        lacks_exchange: true,
        in_place: false,
    },
    Case {
        name: "change in place",
        plant: plant_linked,
        earlier: nothing,
        act: edit,
        files: STEP_CHANGES,
        lacks_exchange: false,
        in_place: true,
    },
    Case {
        name: "create",
        plant: plant_step,
        earlier: nothing,
        act: create,
        files: &[("/plans/p/step-2.md", None, Some("made\n"))],
        lacks_exchange: false,
        in_place: false,
    },
    Case {
        name: "create plan",
        plant: plant_step,
        earlier: nothing,
        act: create_plan,
        files: &[("/plans/q/plan.md", None, Some("plan\n")), ("/plans/q/step-1.md", None, Some("step\n"))],
        lacks_exchange: false,
        in_place: false,
    },
    Case {
        name: "batch",
        plant: plant_two_plans,
        earlier: nothing,
        act: restructure,
        files: RESTRUCTURED,
        lacks_exchange: false,
        in_place: false,
    },
    Case {
        name: "batch without exchange",
        plant: plant_two_plans,
        earlier: nothing,
        act: restructure,
        files: RESTRUCTURED,
        lacks_exchange: true,
        in_place: false,
    },
    Case {
        name: "squash",
        plant: plant_two_plans,
        earlier: nothing,
        act: squash,
        files: SQUASHED,
        lacks_exchange: false,
        in_place: false,
    },
    Case {
        name: "archive file by file",
        plant: plant_with_removed,
        earlier: nothing,
        act: archive,
        files: ARCHIVED,
        lacks_exchange: false,
        in_place: false,
    },
    Case {
        name: "undo of a change",
        plant: plant_step,
        earlier: edit,
        act: undo,
        files: &[(STEP, Some(NEW), Some(OLD))],
        lacks_exchange: false,
        in_place: false,
    },
    Case {
        name: "undo of a batch",
        plant: plant_two_plans,
        earlier: restructure,
        act: undo,
        files: TAKEN_BACK,
        lacks_exchange: false,
        in_place: false,
    },
];

/// A run under one script, and its result.
struct Run<'a> {
    case: &'a Case,
    script: Script,
    disk: ModelDisk,
    answer: Result<(), DiskError>,
}

/// What is on disk after cleanup.
struct After {
    texts: Vec<Option<String>>,
    edited: String,
    /// All plan files together.
    everything: String,
    kept: Vec<String>,
    empty_dirs: Vec<String>,
}

pub(super) fn open(disk: &ModelDisk) -> Result<PlansDir, DiskError> {
    PlansDir::open(Arc::new(disk.clone()), Path::new("/plans"), Some(Path::new("/state")))
}

/// The start state of every run: the lock was taken once before.
fn start(case: &Case) -> State {
    let mut state = State::new();
    state.plant("/state/planwatch/key", &[7; 32]);
    (case.plant)(&mut state);
    let disk = ModelDisk::new(state, Script::default());
    let plans = open(&disk).unwrap();
    (case.earlier)(&plans).unwrap();
    let mut state = disk.world().state.clone();
    state.settle();
    state.clock += 10_000_000_000;
    state
}

fn run<'a>(case: &'a Case, start: &State, script: Script) -> Run<'a> {
    let script = Script { lacks_exchange: case.lacks_exchange, ..script };
    let disk = ModelDisk::new(start.clone(), script);
    let answer = open(&disk).and_then(|plans| (case.act)(&plans));
    Run { case, script, disk, answer }
}

/// Lets later commands, a moment and then minutes later, clean up.
fn look_after(case: &Case, state: State) -> Result<After, DiskError> {
    let disk = ModelDisk::new(state, Script { lacks_exchange: case.lacks_exchange, ..Script::default() });
    let plans = open(&disk)?;
    drop(plans.lock(&mut || {})?);
    disk.world().state.clock += 120_000_000_000;
    drop(plans.lock(&mut || {})?);
    let kept = plans.kept();
    let world = disk.world();
    let text = |path: &str| world.state.text(path).map(|it| String::from_utf8(it).unwrap());
    Ok(After {
        texts: case.files.iter().map(|(path, ..)| text(path)).collect(),
        edited: text(STEP).unwrap_or_default(),
        everything: ["p", "q", "_archive/q", "_archive/p", "_archive/p/removed-1"]
            .map(|dir| world.state.texts_in(&format!("/plans/{dir}")))
            .concat(),
        kept: kept.iter().filter_map(|it| text(&format!("/plans/{}", it.kept.display()))).collect(),
        empty_dirs: world.state.empty_dirs(),
    })
}

impl Run<'_> {
    fn crashed(&self) -> bool {
        self.disk.world().crashed
    }

    fn calls(&self) -> u64 {
        self.disk.world().calls
    }

    /// Checks every state that may be left; returns their number.
    fn judge(&self, faults: &mut BTreeSet<String>) -> usize {
        let state = self.disk.world().state.clone();
        let mut judged = 1;
        let mut later = state.clone();
        later.clock += 10_000_000_000;
        self.check(look_after(self.case, later), if self.crashed() { "killed" } else { "alive" }, faults);
        let unsynced: &[Unsynced] = if state.has_unsynced() {
            &[Unsynced::All, Unsynced::Half, Unsynced::Nothing]
        } else {
            &[Unsynced::All]
        };
        for names in 0..=state.pending() {
            for &bytes in unsynced {
                let after = look_after(self.case, state.after_cut(names, bytes));
                self.check(after, &format!("power cut with {names} names and {bytes:?} bytes"), faults);
                judged += 1;
            }
        }
        judged
    }

    fn check(&self, after: Result<After, DiskError>, how: &str, faults: &mut BTreeSet<String>) {
        let (fault, left) = match after {
            Err(error) => ("the next command fails", format!("{error:?}")),
            Ok(after) => match self.fault(&after, how == "alive").and_then(|()| self.litter(&after, how)) {
                Ok(()) => return,
                Err(fault) => (fault, format!("{:?}, kept {:?}", after.texts, after.kept)),
            },
        };
        let answer = (&self.answer, self.calls());
        faults
            .insert(format!("{}: {fault}\n    {how}; {:?}; {answer:?}; {left}", self.case.name, self.script));
    }

    /// If removing a directory fails, it stays; a power cut may restore it.
    fn litter(&self, after: &After, how: &str) -> Result<(), &'static str> {
        let is_tidy = after.empty_dirs.is_empty() || self.script.editor.is_some();
        let counts = match how {
            "alive" => self.answer.is_err() || self.script.fault.is_none(),
            "killed" => self.script.fault.is_none(),
            _ => false,
        };
        if counts && !is_tidy { Err("an empty directory is left") } else { Ok(()) }
    }

    /// A power cut can tear a write in place; then the earlier text is preserved and reported.
    fn is_recoverable(&self, after: &After, old: &[Option<String>], new: &[Option<String>]) -> bool {
        let is_forced = self.script.fault.is_some_and(|(_, error)| error == Errno::XDEV);
        let is_kept = |text: &Option<String>| text.as_ref().is_some_and(|it| after.kept.contains(it));
        let files = after.texts.iter().zip(old.iter().zip(new));
        let is_there = files.into_iter().all(|(text, (old, new))| text == old || text == new || is_kept(old));
        (self.case.in_place || is_forced) && is_there
    }

    fn fault(&self, after: &After, alive: bool) -> Result<(), &'static str> {
        let saved = self.disk.world().saved.clone();
        let has = |text: &str, line: &str| text.lines().any(|it| it == line);
        let somewhere =
            |token: &str| has(&after.everything, token) || after.kept.iter().any(|text| has(text, token));
        if !saved.iter().all(|token| somewhere(token)) {
            return Err("an editor's save is lost");
        }
        if let Some(editor) = self.script.editor {
            // An atomic save is never half of something: it must be in the file.
            let once = editor.how != Save::RenameTwice;
            let calm = alive && once && editor.begins == editor.ends && self.script.fault.is_none();
            if calm && !saved.iter().all(|token| has(&after.everything, token)) {
                return Err("an editor's save is not in the file itself");
            }
            if calm && self.answer.is_ok() && self.case.files == STEP_CHANGES && !has(&after.edited, "ours") {
                return Err("an acknowledged write was overtaken");
            }
            return self.fault_beside_editor(after);
        }
        let old: Vec<_> = self.case.files.iter().map(|(_, old, _)| old.map(str::to_string)).collect();
        let new: Vec<_> = self.case.files.iter().map(|(.., new)| new.map(str::to_string)).collect();
        let whole = after.texts == old || after.texts == new;
        if !whole && !self.is_recoverable(after, &old, &new) {
            return Err("neither old nor new");
        }
        let certain = !matches!(
            self.answer,
            Err(DiskError::Uncertain { .. }
                | DiskError::Unsynced { .. }
                | DiskError::Unfinished { goes_back: false, .. })
        );
        match &self.answer {
            Ok(()) if after.texts != new => Err("an acknowledged write is lost"),
            Err(_) if alive && certain && after.texts != old => Err("a refused write is there"),
            _ => Ok(()),
        }
    }

    /// With an editor at work, texts may be mixed by lines, but never within lines.
    fn fault_beside_editor(&self, after: &After) -> Result<(), &'static str> {
        let world = self.disk.world();
        let unfinished = world.in_hand.is_some();
        let whole = |text: &str| {
            text.is_empty()
                || text.ends_with('\n')
                    && text.lines().all(|it| ["old", "ours", "first", "token"].contains(&it))
        };
        if !self.case.in_place && !whole(&after.edited) {
            return Err("the edited file is torn");
        }
        if !unfinished && !after.everything.contains(OLD) && !after.kept.iter().any(|it| it.contains(OLD)) {
            return Err("the text from before is gone");
        }
        Ok(())
    }
}

#[derive(Default)]
pub(super) struct Tally {
    runs: usize,
    states: usize,
    faults: BTreeSet<String>,
}

impl Tally {
    fn judge(&mut self, run: &Run<'_>) {
        self.runs += 1;
        self.states += run.judge(&mut self.faults);
    }
}

pub(super) fn crashes_and_faults(case: &Case, tally: &mut Tally, sample: &mut Sample) {
    let start = start(case);
    let calls = run(case, &start, Script::default()).calls();
    for crash in 1..=calls + 1 {
        tally.judge(&run(case, &start, Script { crash: Some(crash), ..Script::default() }));
    }
    for fault in (1..=calls).flat_map(|call| FAULTS.map(|errno| (call, errno))) {
        let faulty = Script { fault: Some(fault), ..Script::default() };
        let alive = run(case, &start, faulty);
        tally.judge(&alive);
        for crash in fault.0 + 1..=alive.calls() {
            if sample.takes() {
                tally.judge(&run(case, &start, Script { crash: Some(crash), ..faulty }));
            }
        }
    }
}

pub(super) fn editors(case: &Case, tally: &mut Tally, sample: &mut Sample) {
    let start = start(case);
    let calls = run(case, &start, Script::default()).calls();
    let mut pairs = sample_pairs();
    for how in SAVES {
        for (begins, ends) in
            (1..=calls).flat_map(|begins| (begins..=calls + 40).map(move |ends| (begins, ends)))
        {
            if begins != ends && !pairs.takes() {
                continue;
            }
            let editor = Editor { how, begins, again: 0, ends };
            if with_editor(case, &start, editor, tally, sample) < ends && ends > calls {
                break;
            }
        }
    }
    for begins in 1..=calls {
        for again in begins..=calls + 20 {
            for ends in again..=calls + 20 {
                if sample.takes() {
                    let editor = Editor { how: Save::RenameTwice, begins, again, ends };
                    let script = Script { editor: Some(editor), ..Script::default() };
                    tally.judge(&run(case, &start, script));
                }
            }
        }
    }
}

/// Runs one save without and with each crash and fault; returns the number of calls of the first run.
fn with_editor(case: &Case, start: &State, editor: Editor, tally: &mut Tally, sample: &mut Sample) -> u64 {
    let script = Script { editor: Some(editor), ..Script::default() };
    let alive = run(case, start, script);
    let calls = alive.calls();
    if editor.begins == editor.ends || sample.takes() {
        tally.judge(&alive);
    }
    for crash in editor.begins + 1..=calls {
        if sample.takes() {
            tally.judge(&run(case, start, Script { crash: Some(crash), ..script }));
        }
    }
    for fault in (editor.begins..=calls).flat_map(|call| FAULTS_WITH_EXCHANGE.map(|errno| (call, errno))) {
        if sample.takes() {
            tally.judge(&run(case, start, Script { fault: Some(fault), ..script }));
        }
    }
    calls
}

#[track_caller]
pub(super) fn report(what: &str, tally: &Tally) {
    // The test runner may have left a dot on this line.
    println!("\nR3 {what}: {} runs, {} states, {} bad", tally.runs, tally.states, tally.faults.len());
    let shown: Vec<_> = tally.faults.iter().take(12).cloned().collect();
    assert!(shown.is_empty(), "{} bad states, among them:\n{}", tally.faults.len(), shown.join("\n"));
}

#[test]
fn after_any_crash_and_fault_a_file_is_old_or_new() {
    let mut tally = Tally::default();
    for case in CASES {
        crashes_and_faults(case, &mut tally, &mut sample(293));
    }
    report("crashes and faults", &tally);
}

#[test]
fn no_save_of_an_editor_is_lost_at_any_moment() {
    let mut tally = Tally::default();
    for case in CASES.iter().filter(|it| !it.lacks_exchange) {
        editors(case, &mut tally, &mut sample(71));
    }
    report("editors", &tally);
}
