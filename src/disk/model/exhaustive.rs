//! Tests each protocol with every crash point, every single fault and every moment of an editor's save. Checks that
//! afterwards each file has its old or its new text, and that no save is lost. After a write in place, a file may
//! contain a mixture of both texts, if the old text is preserved and reported.
//!
//! A plain `cargo test` runs every n-th combination. `PLANWATCH_R3=full` runs all crashes and faults, and all moments of
//! a save. A sample of these moments is also combined with crashes and faults.

use std::collections::{BTreeSet, HashMap};

use super::cases::{CASES, Case, OLD, STEP, STEP_CHANGES};
use super::sample::sample_saves;
pub(super) use super::sample::{Sample, sample, sample_beside_saves};
use super::state::Unsynced;
use super::*;
use crate::disk::{DiskError, PlansDir};

const FAULTS: [Errno; 7] =
    [Errno::IO, Errno::NOSPC, Errno::ACCESS, Errno::XDEV, Errno::INVAL, Errno::NOSYS, Errno::NOENT];
/// Faults while an editor saves. The other faults lead to the code paths without an exchange, where a save between the
/// last check and the write is lost (see `fallback`).
const FAULTS_WITH_EXCHANGE: [Errno; 4] = [Errno::IO, Errno::NOSPC, Errno::ACCESS, Errno::NOENT];
const SAVES: [Save; 5] = [Save::Rename, Save::Truncate, Save::Append, Save::Away, Save::AwayAndCreate];

/// A run under one script.
struct Run<'a> {
    case: &'a Case,
    script: Script,
    calls: u64,
    answer: Result<(), DiskError>,
    end: Left,
    /// What is left if the process is killed before a call.
    kills: Vec<(u64, Left)>,
}

/// What is on disk after cleanup.
struct After {
    texts: Vec<Option<String>>,
    edited: String,
    /// The texts of all plan files, concatenated.
    everything: String,
    kept: Vec<String>,
    empty_dirs: Vec<String>,
}

pub(super) fn open(disk: &ModelDisk) -> Result<PlansDir, DiskError> {
    PlansDir::open(Arc::new(disk.clone()), Path::new("/plans"), Some(Path::new("/state")))
}

/// The start state of every run: the files of the case after its earlier action, all durable.
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
    run_with_kills(case, start, script, u64::MAX, &mut Sample::all())
}

/// Like [`run`]. For a sample of the calls from `from` on, also records what is left if the process is killed before the
/// call.
fn run_with_kills<'a>(
    case: &'a Case,
    start: &State,
    script: Script,
    from: u64,
    sample: &mut Sample,
) -> Run<'a> {
    let script = Script { lacks_exchange: case.lacks_exchange, ..script };
    let disk = ModelDisk::new(start.clone(), script);
    disk.world().kills = Kills { from, sample: *sample, left: Vec::new() };
    let answer = open(&disk).and_then(|plans| (case.act)(&plans));
    let mut world = disk.world();
    let kills = std::mem::replace(&mut world.kills, Kills::none());
    *sample = kills.sample;
    Run { case, script, calls: world.calls, answer, end: world.left(), kills: kills.left }
}

/// Runs two later commands, which clean up. There are two minutes between them.
fn clean_up(case: &Case, state: State) -> Result<After, DiskError> {
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

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ended {
    Alive,
    /// The process was killed before this call, so there is no result.
    Killed(u64),
}

/// The state after a run has ended or was killed, with or without a power cut.
struct Outcome<'a> {
    run: &'a Run<'a>,
    ended: Ended,
    left: &'a Left,
    /// How many unsynced name changes and which unsynced bytes survive the power cut; `None` if there is no power cut.
    cut: Option<(usize, Unsynced)>,
}

impl Run<'_> {
    fn judge_end(&self, tally: &mut Tally) {
        self.judge(Ended::Alive, &self.end, tally);
    }

    fn judge_kills(&self, tally: &mut Tally) {
        self.kills.iter().for_each(|(call, left)| self.judge(Ended::Killed(*call), left, tally));
    }

    /// Checks every state that may be left.
    fn judge(&self, ended: Ended, left: &Left, tally: &mut Tally) {
        tally.runs += 1;
        let outcome = |cut| Outcome { run: self, ended, left, cut };
        let mut later = left.state.clone();
        later.clock += 10_000_000_000;
        outcome(None).check(later, tally);
        let unsynced: &[Unsynced] = if left.state.has_unsynced() {
            &[Unsynced::All, Unsynced::Half, Unsynced::Nothing]
        } else {
            &[Unsynced::All]
        };
        for names in 0..=left.state.pending() {
            for &bytes in unsynced {
                outcome(Some((names, bytes))).check(left.state.after_cut(names, bytes), tally);
            }
        }
    }
}

impl Outcome<'_> {
    fn check(&self, state: State, tally: &mut Tally) {
        tally.states += 1;
        let case = self.run.case;
        let after = tally.after.entry(state.digest()).or_insert_with(|| clean_up(case, state));
        let (fault, left) = match after {
            Err(error) => ("the next command fails", format!("{error:?}")),
            Ok(after) => match self.fault(after).and_then(|()| self.litter(after)) {
                Ok(()) => return,
                Err(fault) => (fault, format!("{:?}, kept {:?}", after.texts, after.kept)),
            },
        };
        let how = (self.ended, self.cut, self.run.script, &self.run.answer);
        tally.faults.insert(format!("{}: {fault}\n    {how:?}; {left}", case.name));
    }

    fn is_alive(&self) -> bool {
        self.ended == Ended::Alive && self.cut.is_none()
    }

    /// Checks that no empty directory is left. An empty directory is allowed in three cases: after a power cut, if an editor
    /// saved during the run, and if a fault may have prevented its removal.
    fn litter(&self, after: &After) -> Result<(), &'static str> {
        let Script { editor, fault, .. } = self.run.script;
        let is_tidy = after.empty_dirs.is_empty() || editor.is_some();
        let counts = self.cut.is_none() && (fault.is_none() || self.is_alive() && self.run.answer.is_err());
        if counts && !is_tidy { Err("an empty directory is left") } else { Ok(()) }
    }

    /// Whether the state is allowed after a write in place that a crash interrupted: each file has its old or its new
    /// text, or its old text is preserved and reported.
    fn is_recoverable(&self, after: &After, old: &[Option<String>], new: &[Option<String>]) -> bool {
        let is_forced = self.run.script.fault.is_some_and(|(_, error)| error == Errno::XDEV);
        let is_kept = |text: &Option<String>| text.as_ref().is_some_and(|it| after.kept.contains(it));
        let files = after.texts.iter().zip(old.iter().zip(new));
        let is_there = files.into_iter().all(|(text, (old, new))| text == old || text == new || is_kept(old));
        (self.run.case.in_place || is_forced) && is_there
    }

    fn fault(&self, after: &After) -> Result<(), &'static str> {
        let Run { case, script, .. } = self.run;
        let has = |text: &str, line: &str| text.lines().any(|it| it == line);
        let somewhere =
            |token: &str| has(&after.everything, token) || after.kept.iter().any(|text| has(text, token));
        if !self.left.saved.iter().all(|token| somewhere(token)) {
            return Err("an editor's save is lost");
        }
        // If the process was killed, there is no result.
        let answer = (self.ended == Ended::Alive).then_some(&self.run.answer);
        if let Some(editor) = script.editor {
            // A save with no call between its beginning and its end happens at one moment, so it must be in the file.
            let once = editor.how != Save::RenameTwice;
            let calm = self.is_alive() && once && editor.begins == editor.ends && script.fault.is_none();
            if calm && !self.left.saved.iter().all(|token| has(&after.everything, token)) {
                return Err("an editor's save is not in the file itself");
            }
            let is_done = matches!(answer, Some(Ok(())));
            if calm && is_done && case.files == STEP_CHANGES && !has(&after.edited, "ours") {
                return Err("an acknowledged write was overtaken");
            }
            return self.fault_beside_editor(after);
        }
        let old: Vec<_> = case.files.iter().map(|(_, old, _)| old.map(str::to_string)).collect();
        let new: Vec<_> = case.files.iter().map(|(.., new)| new.map(str::to_string)).collect();
        let whole = after.texts == old || after.texts == new;
        if !whole && !self.is_recoverable(after, &old, &new) {
            return Err("neither old nor new");
        }
        let certain = !matches!(
            answer,
            Some(Err(DiskError::Uncertain { .. }
                | DiskError::Unsynced { .. }
                | DiskError::Unfinished { goes_back: false, .. }))
        );
        match answer {
            Some(Ok(())) if after.texts != new => Err("an acknowledged write is lost"),
            Some(Err(_)) if self.is_alive() && certain && after.texts != old => {
                Err("a refused write is there")
            }
            _ => Ok(()),
        }
    }

    /// If an editor saved during the run, a file may contain lines of several versions, but each line must be whole.
    fn fault_beside_editor(&self, after: &After) -> Result<(), &'static str> {
        let whole = |text: &str| {
            text.is_empty()
                || text.ends_with('\n')
                    && text.lines().all(|it| ["old", "ours", "first", "token"].contains(&it))
        };
        if !self.run.case.in_place && !whole(&after.edited) {
            return Err("the edited file is torn");
        }
        if !self.left.is_saving
            && !after.everything.contains(OLD)
            && !after.kept.iter().any(|it| it.contains(OLD))
        {
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
    /// The result of [`clean_up`] for each state of the case, by the state's hash. It is cached because most runs end in
    /// the same few states.
    after: HashMap<blake3::Hash, Result<After, DiskError>>,
}

pub(super) fn crashes_and_faults(case: &Case, tally: &mut Tally, sample: &mut Sample) {
    let start = start(case);
    tally.after.clear();
    let usual = run_with_kills(case, &start, Script::default(), 1, &mut Sample::all());
    usual.judge_end(tally);
    usual.judge_kills(tally);
    for fault in (1..=usual.calls).flat_map(|call| FAULTS.map(|errno| (call, errno))) {
        let script = Script { fault: Some(fault), ..Script::default() };
        let faulty = run_with_kills(case, &start, script, fault.0 + 1, sample);
        faulty.judge_end(tally);
        faulty.judge_kills(tally);
    }
}

pub(super) fn editors(case: &Case, tally: &mut Tally, sample: &mut Sample) {
    let start = start(case);
    tally.after.clear();
    let calls = run(case, &start, Script::default()).calls;
    let mut pairs = sample_saves(97);
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
                    run(case, &start, script).judge_end(tally);
                }
            }
        }
    }
}

/// Runs one save, first alone and then with a sample of the crashes and faults. Returns the number of calls of the first
/// run.
fn with_editor(case: &Case, start: &State, editor: Editor, tally: &mut Tally, sample: &mut Sample) -> u64 {
    let script = Script { editor: Some(editor), ..Script::default() };
    let alive = run_with_kills(case, start, script, editor.begins + 1, sample);
    if editor.begins == editor.ends || sample.takes() {
        alive.judge_end(tally);
    }
    alive.judge_kills(tally);
    for fault in
        (editor.begins..=alive.calls).flat_map(|call| FAULTS_WITH_EXCHANGE.map(|errno| (call, errno)))
    {
        if sample.takes() {
            run(case, start, Script { fault: Some(fault), ..script }).judge_end(tally);
        }
    }
    alive.calls
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
    let (mut tally, mut sample) = (Tally::default(), sample(1999));
    for case in CASES {
        crashes_and_faults(case, &mut tally, &mut sample);
    }
    report("crashes and faults", &tally);
}

#[test]
fn no_save_of_an_editor_is_lost_at_any_moment() {
    let (mut tally, mut sample) = (Tally::default(), sample_beside_saves(613));
    for case in CASES.iter().filter(|it| !it.lacks_exchange) {
        editors(case, &mut tally, &mut sample);
    }
    report("editors", &tally);
}
