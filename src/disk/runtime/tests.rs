use crate::disk::model::Machine;
use crate::disk::{DiskError, Locked, PlansDir};

use super::*;

const FILES: &[(&str, &str)] = &[("/plans/p/plan.md", "# P\n"), ("/plans/p/step-1.md", "old\n")];

fn lock(plans: &PlansDir) -> Locked<'_> {
    plans.lock(&mut || {}).unwrap()
}

fn append(plans: &PlansDir, line: &str) {
    let mut locked = lock(plans);
    locked.begin("note", "now");
    let mut edit = |bytes: &[u8], _: &[Vec<u8>]| Some([bytes, line.as_bytes()].concat());
    locked.change(Path::new("p/step-1.md"), &mut edit).unwrap();
}

/// Pairs of processes that share a plans directory: with different state homes, or with different paths.
fn pairs() -> Vec<(Machine, PlansDir, PlansDir)> {
    let pairs = [(("/plans", "/state"), ("/plans", "/other")), (("/plans", "/state"), ("/mnt", "/state"))];
    let open = |((one, one_home), (other, other_home)): ((&str, &str), (&str, &str))| {
        let machine = Machine::with(FILES);
        machine.bind("/mnt");
        let (one, other) = (machine.plans_at(one, one_home), machine.plans_at(other, other_home));
        (machine, one, other)
    };
    pairs.into_iter().map(open).collect()
}

#[test]
fn processes_with_other_state_homes_or_paths_wait_for_the_same_lock() {
    for (_, one, other) in pairs() {
        for (holds, waits) in [(&one, &other), (&other, &one)] {
            let held = lock(holds);
            assert!(matches!(waits.lock(&mut || {}), Err(DiskError::Locked { .. })));
            assert_eq!(waits.is_being_written(), Some(true));
            drop(held);
            assert_eq!(waits.is_being_written(), Some(false));
            drop(lock(waits));
        }
    }
}

#[test]
fn the_lock_holds_while_planwatchs_directory_is_recreated() {
    for (machine, one, other) in pairs() {
        let held = lock(&one);
        let away = Path::new("/away");
        one.disk.rename(Path::new("/plans/.planwatch"), away, crate::disk::Rename::NoReplace).unwrap();
        assert!(matches!(other.lock(&mut || {}), Err(DiskError::Locked { .. })));
        // The holder of the lock recreates the directory without waiting for itself.
        assert!(one.made_runtime_dir().is_some());
        drop(held);
        append(&other, "other\n");
        assert_eq!(machine.text("/plans/p/step-1.md").as_deref(), Some("old\nother\n"));
    }
}

#[test]
fn two_state_homes_have_separate_state() {
    let machine = Machine::with(FILES);
    let (one, other) = (machine.plans_at("/plans", "/state"), machine.plans_at("/plans", "/other"));
    append(&one, "first\n");
    append(&other, "second\n");
    let (top, by) = (machine.names("/plans"), machine.names("/plans/.planwatch/by"));
    assert_eq!((top.clone(), by.len()), (vec![".planwatch".to_owned(), "p".to_owned()], 1));
    for n in 0..20 {
        // Each call acts as a new process.
        let home = if n % 2 == 0 { "/state" } else { "/other" };
        append(&machine.plans_at("/plans", home), "more\n");
    }
    assert_eq!((machine.names("/plans"), machine.names("/plans/.planwatch/by")), (top, by.clone()));
    assert_eq!((one.undo_list().len(), other.undo_list().len()), (11, 11));
    let dir = format!("/plans/.planwatch/by/{}", by[0]);
    assert_eq!(other.runtime_dir(), Some(PathBuf::from(&dir)));
    assert_eq!((machine.mode("/plans/.planwatch"), machine.mode(&dir)), (0o700, 0o700));
    assert!(other.has_foreign_state() && !one.has_foreign_state());
    assert_eq!(other.kept(), []);
}

#[test]
fn one_state_home_shares_its_state_between_two_paths() {
    let machine = Machine::with(FILES);
    machine.bind("/mnt");
    append(&machine.plans_at("/mnt", "/state"), "first\n");
    append(&machine.plans_at("/plans", "/state"), "second\n");
    assert_eq!(machine.names("/plans/.planwatch/by"), [""; 0]);
    let plans = machine.plans_at("/mnt", "/state");
    assert_eq!(plans.undo_list().len(), 2);
    lock(&plans).undo().unwrap();
    assert_eq!(machine.text("/plans/p/step-1.md").as_deref(), Some("old\nfirst\n"));
}

#[test]
fn a_directory_of_an_earlier_release_is_restricted_at_the_next_write() {
    let machine = Machine::with(FILES);
    let plans = machine.plans();
    let disk = &*plans.disk;
    let main = Path::new("/plans/.planwatch");
    for dir in ["", "displaced", "undo", "leases"] {
        disk.make_dir(&main.join(dir), 0o755).unwrap();
    }
    let stamp = stamp_of_path(&[7; 32], disk.lstat(main).unwrap().ino, main);
    for (name, text) in
        [("stamp", stamp.as_str()), ("index.db", ""), ("leases/x", ""), ("displaced/kept-late.1.x", "")]
    {
        write_new(disk, &main.join(name), 0o644, text.as_bytes(), Safe::No).unwrap();
    }
    assert_eq!(plans.runtime_dir(), Some(main.to_path_buf()));
    assert_eq!(machine.mode("/plans/.planwatch"), 0o755, "nothing was written");
    append(&plans, "new\n");
    for (name, mode) in
        [("", 0o700), ("leases", 0o700), ("index.db", 0o600), ("leases/x", 0o600), ("displaced", 0o700)]
    {
        assert_eq!(machine.mode(&format!("/plans/.planwatch/{name}")), mode, "{name}");
    }
    assert_eq!(
        machine.mode("/plans/.planwatch/displaced/kept-late.1.x"),
        0o644,
        "a displaced version keeps the mode of its plan file"
    );
    assert_eq!(machine.text("/plans/.planwatch/stamp"), Some(stamp));
    // The stamp of the earlier release is valid for one path only. A process with another path has its own state, but
    // shares the lock.
    machine.bind("/mnt");
    let other = machine.plans_at("/mnt", "/state");
    append(&other, "more\n");
    assert_eq!((plans.undo_list().len(), other.undo_list().len()), (1, 1));
    let _held = lock(&plans);
    assert!(other.lock(&mut || {}).is_err());
}

#[test]
fn a_copied_directory_is_not_trusted() {
    let machine = Machine::with(FILES);
    let plans = machine.plans();
    append(&plans, "new\n");
    let disk = &*plans.disk;
    let main = Path::new("/plans/.planwatch");
    let stamp = read_own(disk, &main.join(STAMP), 64).unwrap().unwrap();
    disk.rename(main, Path::new("/away"), crate::disk::Rename::NoReplace).unwrap();
    disk.make_dir(main, 0o755).unwrap();
    write_new(disk, &main.join(STAMP), 0o600, &stamp, Safe::No).unwrap();
    assert_eq!(plans.runtime_dir(), None, "reading creates no state directory");
    append(&plans, "more\n");
    assert!(plans.runtime_dir().unwrap().starts_with(main.join(BY)));
    // This user's own state, moved into other plans, is not trusted there.
    disk.make_dir(Path::new("/others"), 0o755).unwrap();
    disk.rename(Path::new("/away"), Path::new("/others/.planwatch"), crate::disk::Rename::NoReplace).unwrap();
    assert_eq!(machine.plans_at("/others", "/state").runtime_dir(), None);
}

#[test]
fn users_have_separate_state_and_share_one_lock() {
    let machine = Machine::with(FILES);
    append(&machine.plans(), "theirs\n");
    machine.give_away("/plans/.planwatch");
    let plans = machine.plans_at("/plans", "/other");
    assert_eq!((plans.runtime_dir(), plans.unfinished().unwrap()), (None, Vec::new()));
    append(&plans, "mine\n");
    let home = plans.runtime_dir().unwrap();
    assert_eq!(home.parent(), Some(Path::new("/plans/.planwatch.by")));
    assert_eq!(
        (machine.mode("/plans/.planwatch.by"), machine.mode(&home.to_string_lossy())),
        (0o1755, 0o700)
    );
    let again = machine.plans_at("/plans", "/other");
    append(&again, "more\n");
    assert_eq!((again.runtime_dir(), again.undo_list().len()), (Some(home.clone()), 2));
    // The other user holds the lock on the plans directory itself.
    let held = plans.disk.lock(Path::new("/plans"), Duration::ZERO).unwrap();
    assert!(matches!(again.lock(&mut || {}), Err(DiskError::Locked { .. })));
    assert_eq!(again.is_being_written(), Some(true));
    drop(held);
    // When the other user's state directory is gone, this user's stays where it is.
    plans
        .disk
        .rename(Path::new("/plans/.planwatch"), Path::new("/away"), crate::disk::Rename::NoReplace)
        .unwrap();
    append(&machine.plans_at("/plans", "/other"), "last\n");
    assert_eq!(machine.plans_at("/plans", "/other").runtime_dir(), Some(home));
    assert_eq!(machine.text("/plans/p/step-1.md").as_deref(), Some("old\ntheirs\nmine\nmore\nlast\n"));
}

#[test]
fn a_write_without_a_place_for_state_is_refused() {
    let machine = Machine::with(FILES);
    append(&machine.plans(), "theirs\n");
    machine.give_away("/plans/.planwatch");
    let disk = machine.plans().disk;
    disk.make_dir(Path::new("/plans/.planwatch.by"), 0o700).unwrap();
    machine.give_away("/plans/.planwatch.by");
    let refused = machine.plans_at("/plans", "/other").lock(&mut || {}).map(drop);
    assert!(
        matches!(&refused, Err(DiskError::ReadOnly { path, .. }) if path.ends_with(".planwatch.by")),
        "{refused:?}"
    );
    assert_eq!(machine.names("/plans/.planwatch/by"), [""; 0]);
}

#[test]
fn without_a_key_foreign_state_is_left_alone() {
    let machine = Machine::with(FILES);
    append(&machine.plans(), "theirs\n");
    let before = machine.names("/plans/.planwatch/displaced");
    let plans = PlansDir::open(machine.plans().disk, Path::new("/plans"), None).unwrap();
    append(&plans, "mine\n");
    assert_eq!(machine.names("/plans/.planwatch/displaced"), before);
    assert_eq!((plans.runtime_dir(), machine.names("/plans/.planwatch/by").len()), (None, 1));
}
