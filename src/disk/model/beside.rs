//! The tests of `exhaustive` for a process that finds a `.planwatch` of another user or of another state home, and
//! therefore uses a state directory of its own.

use super::cases::*;
use super::exhaustive::*;
use super::state::State;

/// The `.planwatch` was created by another user, or by the same user with another state home.
fn plant_beside_others(state: &mut State) {
    plant_two_plans(state);
    state.plant("/plans/.planwatch/stamp", &[b'0'; 64]);
    state.plant("/plans/.planwatch/displaced/kept-late.0000000000000001.x", b"theirs");
}

const FIRST_CHANGE: Case = Case {
    name: "the first change beside the state of others",
    plant: plant_beside_others,
    earlier: |_| Ok(()),
    act: edit,
    files: STEP_CHANGES,
    lacks_exchange: false,
    in_place: false,
};

const BATCH: Case = Case {
    name: "batch beside the state of others",
    plant: plant_beside_others,
    earlier: nothing,
    act: restructure,
    files: RESTRUCTURED,
    lacks_exchange: false,
    in_place: false,
};

#[test]
fn beside_the_state_of_others_a_file_is_old_or_new_after_any_crash_and_fault() {
    let (mut tally, mut sample) = (Tally::default(), sample(797));
    for case in [FIRST_CHANGE, BATCH] {
        crashes_and_faults(&case, &mut tally, &mut sample);
    }
    report("beside others", &tally);
}

#[test]
fn beside_the_state_of_others_no_save_of_an_editor_is_lost() {
    let mut tally = Tally::default();
    editors(&FIRST_CHANGE, &mut tally, &mut sample_beside_saves(613));
    report("editors beside others", &tally);
}
