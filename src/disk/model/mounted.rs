//! A plan directory that is a mount point: nothing can be renamed into or out of it.

use super::exhaustive::open;
use super::*;
use crate::disk::{DiskError, FileOp, PlansDir};

const MOUNTED: &str = "/plans/p";
const MADE: &str = "/plans/p/step-2.md";
const LIST: &str = "/plans/q/plan.md";

fn start() -> State {
    let mut state = State::new();
    state.plant("/state/planwatch/key", &[7; 32]);
    state.plant(EDITED, b"one\n");
    state.plant(LIST, b"1\n");
    let disk = ModelDisk::new(state, Script::default());
    drop(open(&disk).unwrap().lock(&mut || {}).unwrap());
    let mut state = disk.world().state.clone();
    state.settle();
    state
}

fn batch(plans: &PlansDir, ops: Vec<FileOp>) -> Result<(), DiskError> {
    plans.lock(&mut || {})?.batch("add", "", ops)
}

/// Creates a step, and adds it to a list.
fn add(plans: &PlansDir) -> Result<(), DiskError> {
    let (before, after) = (b"1\n".to_vec(), b"1 2\n".to_vec());
    batch(
        plans,
        vec![
            FileOp::Create { path: PathBuf::from("p/step-2.md"), bytes: b"two\n".to_vec() },
            FileOp::Change { path: PathBuf::from("q/plan.md"), before, after },
        ],
    )
}

/// What the next command leaves: whether the step exists, the list, and the number of names in the directory.
fn left(state: State) -> (bool, String, usize) {
    let disk = ModelDisk::new(state, Script { mounted: Some(MOUNTED), ..Script::default() });
    drop(open(&disk).unwrap().lock(&mut || {}).unwrap());
    let world = disk.world();
    let dir = world.state.find(Path::new(MOUNTED)).unwrap();
    let list = String::from_utf8(world.state.text(LIST).unwrap()).unwrap();
    let made = world.state.text(MADE);
    assert!(made.as_ref().is_none_or(|it| it == b"two\n"), "{made:?}");
    (made.is_some(), list, world.state.names_in(dir).count())
}

#[test]
fn a_new_step_is_there_with_its_place_in_the_list_or_not_at_all() {
    let start = start();
    let script = Script { mounted: Some(MOUNTED), ..Script::default() };
    let run = |script| {
        let disk = ModelDisk::new(start.clone(), script);
        let added = open(&disk).and_then(|plans| add(&plans));
        let calls = disk.world().calls;
        let state = disk.world().state.clone();
        (added, calls, state)
    };
    let (added, calls, state) = run(script);
    added.unwrap();
    assert_eq!(left(state), (true, "1 2\n".to_owned(), 2));
    for crash in 1..=calls {
        let (_, _, state) = run(Script { crash: Some(crash), ..script });
        let found = left(state);
        let (old, new) = ((false, "1\n".to_owned(), 1), (true, "1 2\n".to_owned(), 2));
        assert!(found == old || found == new, "crash {crash}: {found:?}");
    }
    let mut n_refused = 0;
    for call in 1..=calls {
        let save = BlindSave { path: LIST, text: "1\nours\n", call };
        let saved = Script { saves: [Some(save), None], ..script };
        let (added, calls, state) = run(saved);
        if added.is_err() {
            n_refused += 1;
            assert_eq!(left(state), (false, "1\nours\n".to_owned(), 1), "save {call}");
            for crash in call + 1..=calls {
                let (is_made, list, n_names) = left(run(Script { crash: Some(crash), ..saved }).2);
                assert_eq!(n_names, 1 + usize::from(is_made), "save {call}, crash {crash}");
                // If the process is killed right after an exchange that displaced a save, the next command finishes the
                // batch and preserves the save.
                assert_eq!(is_made, list == "1 2\n", "save {call}, crash {crash}: {list}");
            }
        }
    }
    assert!(n_refused > 0, "{calls}");
}

#[test]
fn operations_across_a_mount_point_are_refused_before_writing() {
    let start = start();
    let path = PathBuf::from;
    let made = FileOp::Create { path: path("q/step-1.md"), bytes: b"new\n".to_vec() };
    for op in [
        FileOp::Rename { from: path("p/step-1.md"), to: path("_archive/p/step-1.md") },
        FileOp::Remove { path: path("p"), to: path("_archive/p") },
        FileOp::Rename { from: path("q/plan.md"), to: path("p/plan.md") },
        FileOp::Discard { path: path("p/step-1.md"), before: b"one\n".to_vec() },
    ] {
        let disk = ModelDisk::new(start.clone(), Script { mounted: Some(MOUNTED), ..Script::default() });
        let refused = batch(&open(&disk).unwrap(), vec![made.clone(), op]);
        assert!(matches!(refused, Err(DiskError::Mounted { .. })), "{refused:?}");
        let state = disk.world().state.clone();
        assert_eq!(state.tree(), start.tree());
    }
    let within = FileOp::Rename { from: path("p/step-1.md"), to: path("p/step-3.md") };
    let disk = ModelDisk::new(start, Script { mounted: Some(MOUNTED), ..Script::default() });
    batch(&open(&disk).unwrap(), vec![within]).unwrap();
}
