//! Tests of a file with two hard links. A save replaces one of them while the file is written.

use super::exhaustive::open;
use super::*;
use crate::disk::Done;

const OTHER: &str = "/plans/q/step-1.md";

fn start() -> State {
    let mut state = State::new();
    state.plant("/state/planwatch/key", &[7; 32]);
    state.plant(EDITED, b"pending\n");
    state.plant("/plans/q/plan.md", b"q\n");
    state.link(Path::new(EDITED), Path::new(OTHER)).unwrap();
    let disk = ModelDisk::new(state, Script::default());
    drop(open(&disk).unwrap().lock(&mut || {}).unwrap());
    let mut state = disk.world().state.clone();
    state.settle();
    state
}

/// Claims a pending step; returns whether it succeeded.
fn claim(disk: &ModelDisk) -> bool {
    let plans = open(disk).unwrap();
    let mut locked = plans.lock(&mut || {}).unwrap();
    let claimed = locked.change(Path::new("p/step-1.md"), &mut |text, _| {
        (text == b"pending\n").then(|| b"in progress\n".to_vec())
    });
    claimed.is_ok_and(|it| it.done == Done::Replaced)
}

#[test]
fn a_claim_that_is_refused_is_not_in_the_other_link() {
    let start = start();
    let whole = ModelDisk::new(start.clone(), Script::default());
    assert!(claim(&whole));
    let (mut n_refused, calls) = (0, whole.world().calls);
    for call in 1..=calls {
        let save = BlindSave { path: EDITED, text: "completed\n", call };
        let disk = ModelDisk::new(start.clone(), Script { saves: [Some(save), None], ..Script::default() });
        let is_claimed = claim(&disk);
        n_refused += usize::from(!is_claimed);
        let other = disk.world().state.text(OTHER).unwrap();
        let expected: &[u8] = if is_claimed { b"in progress\n" } else { b"pending\n" };
        assert_eq!(other, expected, "call {call}");
    }
    assert!(n_refused > 5, "{n_refused} of {calls}");
}
