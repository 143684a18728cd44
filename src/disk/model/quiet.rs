//! Tests of when displaced versions are removed.

use super::cases::{edit, plant_step};
use super::exhaustive::open;
use super::*;
use crate::disk::KeptWhy;

const MINUTE: i128 = 60_000_000_000;

const DISPLACED: &str = "/plans/.planwatch/displaced";
const UNDO: &str = "/plans/.planwatch/undo";

fn after_a_change() -> ModelDisk {
    after_a_change_with(Script::default())
}

fn after_a_change_with(script: Script) -> ModelDisk {
    let mut state = State::new();
    state.plant("/state/planwatch/key", &[7; 32]);
    plant_step(&mut state);
    let disk = ModelDisk::new(state, script);
    edit(&open(&disk).unwrap()).unwrap();
    disk
}

fn without_leases() -> Script {
    Script { lacks_leases: true, ..Script::default() }
}

/// The inode of the only version in a directory.
fn version_in(disk: &ModelDisk, dir: &str) -> u64 {
    let names = disk.names(Path::new(dir)).unwrap();
    let versions: Vec<_> = names.iter().filter(|it| *it != "log").collect();
    assert_eq!(versions.len(), 1, "{versions:?}");
    disk.world().state.find(&Path::new(dir).join(versions[0])).unwrap()
}

fn kept(disk: &ModelDisk) -> Vec<KeptWhy> {
    open(disk).unwrap().kept().iter().map(|it| it.why).collect()
}

/// Replaces the text with one that ends in `len` filler bytes, and lets two seconds pass.
fn fill(disk: &ModelDisk, n: usize, len: usize) {
    let plans = open(disk).unwrap();
    let mut locked = plans.lock(&mut || {}).unwrap();
    let text = [format!("{n}\n").into_bytes(), vec![b'x'; len]].concat();
    locked.change(Path::new("p/step-1.md"), &mut |_, _| Some(text.clone())).unwrap();
    disk.world().state.clock += 2_000_000_000;
}

fn bytes_in(disk: &ModelDisk, dir: &str) -> usize {
    let listed = disk.list(Path::new(dir)).unwrap();
    listed.into_iter().map(|(_, stat)| usize::try_from(stat.unwrap().len).unwrap()).sum()
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
fn a_version_that_was_written_late_is_preserved_permanently() {
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
fn a_late_save_into_a_file_with_the_sticky_bit_is_not_removed() {
    let mut state = State::new();
    state.plant("/state/planwatch/key", &[7; 32]);
    plant_step(&mut state);
    let step = state.find(Path::new(EDITED)).unwrap();
    state.set_mode(step, 0o1644);
    let disk = ModelDisk::new(state, Script::default());
    edit(&open(&disk).unwrap()).unwrap();
    disk.world().state.write(step, b"late\n".to_vec());
    assert_eq!(kept(&disk), [KeptWhy::Late]);
    for _ in 0..2 {
        pass(&disk, 2 * MINUTE);
        assert_eq!(kept(&disk), [KeptWhy::Late]);
        assert!(disk.world().state.texts_in(DISPLACED).contains("late\n"));
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

#[test]
fn a_version_that_an_editor_has_open_stays_and_its_late_save_is_reported() {
    let disk = after_a_change();
    let ino = version_in(&disk, DISPLACED);
    disk.world().open.insert(ino);
    for _ in 0..100 {
        pass(&disk, 2 * MINUTE);
    }
    assert_eq!((displaced(&disk), kept(&disk)), (1, vec![]));
    disk.world().state.write(ino, b"late\n".to_vec());
    assert_eq!(kept(&disk), [KeptWhy::Late]);
    disk.world().open.clear();
    pass(&disk, 2 * MINUTE);
    pass(&disk, 2 * MINUTE);
    assert_eq!(kept(&disk), [KeptWhy::Late]);
    assert!(disk.world().state.texts_in(DISPLACED).contains("late\n"));
}

#[test]
fn a_version_that_an_editor_closes_without_a_save_goes() {
    let disk = after_a_change();
    let ino = version_in(&disk, DISPLACED);
    disk.world().open.insert(ino);
    pass(&disk, 2 * MINUTE);
    assert_eq!(displaced(&disk), 1);
    disk.world().open.clear();
    pass(&disk, 2 * MINUTE);
    assert_eq!((displaced(&disk), kept(&disk)), (0, vec![]));
}

#[test]
fn a_save_still_in_the_file_is_not_reported_however_long_its_editor_has_it_open() {
    let disk = after_a_change();
    let name = disk.names(Path::new(DISPLACED)).unwrap().remove(0);
    let raced = Path::new(DISPLACED).join(format!("race-{}", name.to_str().unwrap()));
    let ino = version_in(&disk, DISPLACED);
    let mut world = disk.world();
    world.state.rename(&Path::new(DISPLACED).join(name), &raced, Rename::Replace).unwrap();
    world.open.insert(ino);
    drop(world);
    for n in 0..5 {
        pass(&disk, 2 * MINUTE);
        fill(&disk, n, 1);
    }
    pass(&disk, 2 * MINUTE);
    assert_eq!((displaced(&disk), kept(&disk)), (1, vec![]));
}

#[test]
fn without_leases_a_version_stays_for_an_hour() {
    let disk = after_a_change_with(without_leases());
    for _ in 0..29 {
        pass(&disk, 2 * MINUTE);
        assert_eq!(displaced(&disk), 1);
    }
    pass(&disk, 2 * MINUTE);
    pass(&disk, 2 * MINUTE);
    assert_eq!(displaced(&disk), 0);
}

#[test]
fn a_late_save_into_a_text_that_undo_kept_is_reported_and_not_removed() {
    let disk = after_a_change_with(without_leases());
    pass(&disk, 90 * MINUTE);
    let ino = version_in(&disk, UNDO);
    disk.world().state.write(ino, b"late\n".to_vec());
    for n in 0..120 {
        fill(&disk, n, 1);
    }
    pass(&disk, 90 * MINUTE);
    assert_eq!(kept(&disk), [KeptWhy::Late]);
}

#[test]
fn a_text_that_undo_kept_is_not_removed_while_a_program_has_it_open() {
    let disk = after_a_change();
    pass(&disk, 2 * MINUTE);
    let ino = version_in(&disk, UNDO);
    disk.world().open.insert(ino);
    for n in 0..120 {
        fill(&disk, n, 1);
    }
    pass(&disk, 2 * MINUTE);
    assert!(disk.world().state.texts_in(UNDO).contains("old\n"));
    disk.world().open.clear();
    fill(&disk, 0, 1);
    pass(&disk, 2 * MINUTE);
    assert!(!disk.world().state.texts_in(UNDO).contains("old\n"));
}

#[test]
fn many_large_versions_go_early_and_the_last_writes_can_be_undone() {
    const LARGE: usize = 1 << 20;
    let disk = after_a_change();
    for n in 0..90 {
        fill(&disk, n, LARGE);
        assert!(bytes_in(&disk, DISPLACED) <= 20 * LARGE, "write {n}");
        assert!(bytes_in(&disk, UNDO) <= 65 * LARGE, "write {n}");
    }
    assert!(bytes_in(&disk, DISPLACED) >= 15 * LARGE && bytes_in(&disk, UNDO) >= 60 * LARGE);
    let plans = open(&disk).unwrap();
    let mut locked = plans.lock(&mut || {}).unwrap();
    // Undoes twenty writes. `displaced` contains the versions of about the last sixteen; the other texts are in `undo`.
    for n in (69..89).rev() {
        locked.undo().unwrap_or_else(|error| panic!("write {n}: {error}"));
        let text = disk.world().state.text(EDITED).unwrap();
        assert!(text.starts_with(format!("{n}\n").as_bytes()), "write {n}");
    }
}

#[test]
fn a_version_that_an_editor_has_open_does_not_go_early() {
    let disk = after_a_change();
    let ino = version_in(&disk, DISPLACED);
    disk.world().open.insert(ino);
    for n in 0..20 {
        fill(&disk, n, 1 << 20);
    }
    disk.world().state.write(ino, b"late\n".to_vec());
    assert_eq!(kept(&disk), [KeptWhy::Late]);
}
