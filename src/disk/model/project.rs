//! Tests of writes to project files that are not plan files. An editor saves, or the process is killed, at each file
//! system call of such a write.

use super::*;
use crate::disk::{DiskError, FileOp, Project, ProjectReport};

const FILE: &str = "/shop/CLAUDE.md";
const HIDDEN: &str = "/shop/.planwatch-init";
const BEFORE: &str = "# Shop\nas it was\n";
const AFTER: &str = "# Shop\nas it was\nours\n";
const MINUTE: i128 = 60_000_000_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Task {
    /// The operation that `init` uses.
    Change,
    /// The operation that `init --undo` uses.
    Discard,
}

impl Task {
    fn op(self) -> FileOp {
        let (path, before) = (PathBuf::from("CLAUDE.md"), BEFORE.as_bytes().to_vec());
        match self {
            Self::Change => FileOp::Change { path, before, after: AFTER.as_bytes().to_vec() },
            Self::Discard => FileOp::Discard { path, before },
        }
    }
}

/// A project without plans, or with plans that have a state directory.
fn start(has_plans: bool) -> State {
    let mut state = State::new();
    state.plant("/state/planwatch/key", &[7; 32]);
    state.plant(FILE, BEFORE.as_bytes());
    if has_plans {
        state.plant("/shop/plans/p/plan.md", b"# P\n");
        let disk = ModelDisk::new(state, Script::default());
        let plans = crate::disk::PlansDir::open(
            Arc::new(disk.clone()),
            Path::new("/shop/plans"),
            Some(Path::new("/state")),
        );
        drop(plans.unwrap().lock(&mut || {}).unwrap());
        state = disk.world().state.clone();
    }
    state.clock += MINUTE;
    state.settle();
    state
}

fn open(disk: &ModelDisk) -> Result<Project, DiskError> {
    let plans = Path::new("/shop/plans");
    Project::open(Arc::new(disk.clone()), Path::new("/shop"), Some(Path::new("/state")), Some(plans))
}

fn run(disk: &ModelDisk, task: Task) -> Result<(), DiskError> {
    open(disk)?.write(("init", "now"), vec![task.op()], &mut || {}, &mut ProjectReport::default())
}

fn calls_of(start: &State, task: Task) -> u64 {
    let disk = ModelDisk::new(start.clone(), Script::default());
    run(&disk, task).unwrap();
    disk.world().calls
}

/// The text of the file and of all versions that `kept` reports, concatenated.
fn texts(disk: &ModelDisk) -> String {
    let kept = open(disk).unwrap().kept();
    let world = disk.world();
    let at = kept.iter().map(|it| format!("/shop/{}", it.kept.display()));
    let all = [FILE.to_owned()].into_iter().chain(at);
    all.filter_map(|it| world.state.text(&it)).map(|it| String::from_utf8(it).unwrap()).collect()
}

#[test]
fn no_save_of_an_editor_is_lost_at_any_call() {
    let kinds = [Save::Rename, Save::Truncate, Save::Append, Save::Away, Save::RenameTwice];
    let gaps = [0, 1, 2, 4, 8, 20, u64::MAX];
    for (has_plans, task) in [(false, Task::Change), (true, Task::Change), (false, Task::Discard)] {
        let start = start(has_plans);
        let calls = calls_of(&start, task);
        let scripts = kinds.iter().flat_map(|how| (1..=calls).map(move |begins| (*how, begins)));
        for ((how, begins), gap) in scripts.flat_map(|it| gaps.iter().map(move |gap| (it, *gap))) {
            let ends = begins.saturating_add(gap);
            let editor = Editor { how, begins, again: begins.saturating_add(gap / 2), ends };
            let script = Script { editor: Some(editor), edited: Some(FILE), ..Script::default() };
            let disk = ModelDisk::new(start.clone(), script);
            let done = run(&disk, task);
            {
                let mut world = disk.world();
                world.editor_saves(how, TOKEN);
                world.script = Script::default();
            }
            let saved = disk.world().saved.clone();
            let texts = texts(&disk);
            for token in &saved {
                assert!(texts.contains(token), "{task:?} {how:?} {begins}..{ends}: {done:?}: {texts:?}");
            }
        }
    }
}

#[test]
fn of_two_saves_none_is_deleted_by_planwatch() {
    for task in [Task::Change, Task::Discard] {
        let start = start(false);
        let calls = calls_of(&start, task);
        for first in 1..=calls {
            let one = BlindSave { path: FILE, text: "SAVE1\n", call: first };
            for second in first + 1..=first + 4 {
                let two = BlindSave { path: FILE, text: "SAVE2\n", call: second };
                let script = Script { saves: [Some(one), Some(two)], ..Script::default() };
                let disk = ModelDisk::new(start.clone(), script);
                let done = run(&disk, task);
                let n = disk.world().calls;
                let texts = texts(&disk);
                let is_there = second > n || texts.contains("SAVE2");
                assert!(is_there, "{task:?} {first} {second}: {done:?}: {texts:?}");
                // If the file still contains the first save when the second save begins, the second save itself replaces the
                // first. Then planwatch need not preserve the first save.
                let between = BlindSave { path: FILE, text: "SAVE2\n", call: u64::MAX };
                let script =
                    Script { saves: [Some(one), Some(between)], crash: Some(second), ..Script::default() };
                let cut = ModelDisk::new(start.clone(), script);
                run(&cut, task).ok();
                let was_in_file = cut.world().state.text(FILE).is_some_and(|it| it == b"SAVE1\n");
                assert!(
                    was_in_file || texts.contains("SAVE1"),
                    "{task:?} {first} {second}: {done:?}: {texts:?}"
                );
            }
        }
    }
}

#[test]
fn a_killed_write_leaves_nothing_that_the_next_call_does_not_settle() {
    for (has_plans, task) in
        [(false, Task::Change), (false, Task::Discard), (true, Task::Change), (true, Task::Discard)]
    {
        let start = start(has_plans);
        for call in 1..=calls_of(&start, task) {
            let script = Script { crash: Some(call), ..Script::default() };
            let killed = ModelDisk::new(start.clone(), script);
            // If the process is killed after the write is done, the run may still succeed.
            run(&killed, task).ok();
            let state = killed.world().state.clone();
            let disk = ModelDisk::new(state, Script::default());
            open(&disk).unwrap().settle(&mut || {}, &mut ProjectReport::default()).unwrap();
            assert_eq!(open(&disk).unwrap().pending(), None, "{task:?} {call}");
            let text = disk.world().state.text(FILE).map(|it| String::from_utf8(it).unwrap());
            let done = (task == Task::Change).then(|| AFTER.to_owned());
            assert!(text.as_deref() == Some(BEFORE) || text == done, "{task:?} {call}: {text:?}");
            for _ in 0..2 {
                disk.world().state.clock += 2 * MINUTE;
                open(&disk).unwrap().settle(&mut || {}, &mut ProjectReport::default()).unwrap();
            }
            assert!(disk.world().state.find(Path::new(HIDDEN)).is_err(), "{task:?} {call}");
            assert_eq!(open(&disk).unwrap().kept(), [], "{task:?} {call}");
        }
    }
}

#[test]
fn an_empty_file_that_was_modified_just_now_is_refused() {
    let mut state = start(false);
    let ino = state.find(Path::new(FILE)).unwrap();
    state.write(ino, Vec::new());
    let disk = ModelDisk::new(state, Script::default());
    let read = || open(&disk).unwrap().read(Path::new("CLAUDE.md"));
    assert!(matches!(read(), Err(DiskError::HalfSaved { .. })));
    disk.world().state.clock += 3_000_000_000;
    assert_eq!(read().unwrap().as_deref(), Some(&b""[..]));
}
