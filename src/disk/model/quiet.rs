//! What becomes of displaced versions as time passes.

use super::exhaustive::{edit, open, plant_step};
use super::*;
use crate::disk::KeptWhy;

const MINUTE: i128 = 60_000_000_000;

fn after_a_change() -> ModelDisk {
    let mut state = State::new();
    state.plant("/state/planwatch/key", &[7; 32]);
    plant_step(&mut state);
    let disk = ModelDisk::new(state, Script::default());
    edit(&open(&disk).unwrap()).unwrap();
    disk
}

fn displaced(disk: &ModelDisk) -> usize {
    disk.names(Path::new("/plans/.planwatch/displaced")).unwrap().len()
}

fn pass(disk: &ModelDisk, time: i128) {
    disk.world().state.clock += time;
    drop(open(disk).unwrap().lock(&mut || {}).unwrap());
}

#[test]
fn a_version_stays_until_it_was_quiet_for_a_minute_and_is_undone_after_that() {
    let disk = after_a_change();
    pass(&disk, MINUTE / 2);
    assert_eq!(displaced(&disk), 1);
    pass(&disk, MINUTE);
    assert_eq!(displaced(&disk), 0);
    open(&disk).unwrap().lock(&mut || {}).unwrap().undo().unwrap();
    assert_eq!(disk.world().state.text(EDITED).unwrap(), b"old\n");
}

#[test]
fn a_version_that_was_written_late_is_kept_for_good() {
    let disk = after_a_change();
    let name = disk.names(Path::new("/plans/.planwatch/displaced")).unwrap().remove(0);
    let at = Path::new("/plans/.planwatch/displaced").join(name);
    let mut world = disk.world();
    let ino = world.state.find(&at).unwrap();
    world.state.clock += MINUTE / 2;
    world.state.write(ino, b"late\n".to_vec());
    drop(world);
    for _ in 0..3 {
        pass(&disk, 2 * MINUTE);
        let kept = open(&disk).unwrap().kept();
        assert_eq!(kept.len(), 1);
        assert_eq!(kept[0].why, KeptWhy::Late);
    }
}

#[test]
fn a_write_does_not_list_the_versions_of_the_last_moments() {
    let disk = after_a_change();
    pass(&disk, MINUTE / 10);
    let calls = |disk: &ModelDisk| {
        let before = disk.world().calls;
        drop(open(disk).unwrap().lock(&mut || {}).unwrap());
        disk.world().calls - before
    };
    let busy = calls(&disk);
    pass(&disk, 2 * MINUTE);
    assert!(busy <= calls(&disk) + 1, "{busy}");
}
