//! Tests of the undo log: an undo or a batch that is killed at any call, after which the next command finishes or undoes
//! it; changes that block each other; failing calls; and a full disk.

use super::{Fault, Machine, Open};
use crate::disk::{FileOp, PlansDir, UndoError};

fn path(text: &str) -> std::path::PathBuf {
    text.into()
}

/// A machine on which planwatch has made and recorded one change.
fn start() -> Machine {
    let machine = Machine::with(&[("/plans/p/step-1.md", "old\n"), ("/plans/q/plan.md", "q\n")]);
    let plans = machine.plans();
    let mut locked = plans.lock(&mut || {}).unwrap();
    locked.begin("set", "1");
    locked.change(&path("p/step-1.md"), &mut |_, _| Some(b"first\n".to_vec())).unwrap();
    drop(locked);
    machine
}

fn batch(plans: &PlansDir) -> bool {
    let ops = vec![
        FileOp::Create { path: path("new/step-1.md"), bytes: b"made\n".to_vec() },
        FileOp::Change {
            path: path("p/step-1.md"),
            before: b"first\n".to_vec(),
            after: b"second\n".to_vec(),
        },
        FileOp::Rename { from: path("q/plan.md"), to: path("_archive/q/plan.md") },
    ];
    let locked = plans.lock(&mut || {});
    locked.is_ok_and(|mut it| it.batch_emptying("replace", "2", ops, vec![path("q")]).is_ok())
}

fn undo(plans: &PlansDir) -> Option<String> {
    plans.lock(&mut || {}).ok()?.undo().ok().map(|it| it.verb)
}

/// Takes the lock, which finishes or undoes an interrupted change, and lists the verbs in the undo list.
fn left(machine: &Machine) -> Vec<String> {
    let plans = machine.plans();
    drop(plans.lock(&mut || {}).unwrap());
    plans.undo_list().into_iter().map(|it| it.verb).collect()
}

#[test]
fn a_killed_undo_counts_as_an_undo_once_it_is_finished() {
    let start = start();
    let before = start.tree();
    assert!(batch(&start.plans()));
    let whole = start.after_kill();
    assert_eq!(undo(&whole.plans()).as_deref(), Some("replace"));
    assert_eq!(whole.tree(), before);
    let mut n_finished = 0;
    for call in 1..=whole.calls() + 1 {
        let machine = start.dying_before(call);
        undo(&machine.plans());
        let next = machine.after_kill();
        let left = left(&next);
        let is_undone = next.tree() == before;
        n_finished += u32::from(is_undone && machine.has_died());
        assert_eq!(left, if is_undone { vec!["set"] } else { vec!["replace", "set"] }, "{call}");
        assert_eq!(undo(&next.plans()).as_deref(), Some(left[0].as_str()), "{call}");
    }
    assert!(n_finished > 10, "{n_finished}");
}

#[test]
fn a_killed_batch_is_one_change_for_undo_once_it_is_finished() {
    let start = start();
    let before = start.tree();
    let whole = start.after_kill();
    assert!(batch(&whole.plans()));
    let after = whole.tree();
    for call in 1..=whole.calls() + 1 {
        let machine = start.dying_before(call);
        batch(&machine.plans());
        let next = machine.after_kill();
        let left = left(&next);
        let is_done = next.tree() == after;
        assert!(is_done || next.tree() == before, "{call}");
        assert_eq!(left, if is_done { vec!["replace", "set"] } else { vec!["set"] }, "{call}");
        if is_done {
            assert_eq!(undo(&next.plans()).as_deref(), Some("replace"), "{call}");
            assert_eq!(next.tree(), before, "{call}");
        }
    }
}

fn change(plans: &PlansDir, verb: &str, file: &str, text: &str) {
    let mut locked = plans.lock(&mut || {}).unwrap();
    locked.begin(verb, "1");
    locked.change(&path(file), &mut |_, _| Some(text.as_bytes().to_vec())).unwrap();
}

/// The entries of the undo list, newest first: the verb, the id, and the code of the error if the entry cannot be undone
/// now.
fn listed(plans: &PlansDir) -> Vec<(String, String, Option<&'static str>)> {
    plans.undo_list().into_iter().map(|it| (it.verb, it.id, it.blocked.map(|it| it.code()))).collect()
}

fn id_of(plans: &PlansDir, verb: &str) -> String {
    listed(plans).into_iter().find(|it| it.0 == verb).unwrap().1
}

fn blocked(plans: &PlansDir) -> Vec<(String, &'static str)> {
    listed(plans).into_iter().filter_map(|(verb, _, why)| Some((verb, why?))).collect()
}

#[test]
fn an_older_change_is_taken_back_while_a_newer_one_is_blocked() {
    let machine = start();
    let plans = machine.plans();
    change(&plans, "done", "q/plan.md", "done\n");
    let ids = listed(&plans);
    machine.save("/plans/q/plan.md", "an editor's\n");
    assert_eq!(blocked(&plans), [("done".to_owned(), "file-changed")]);
    let error = plans.lock(&mut || {}).unwrap().undo().unwrap_err();
    let (named, at, later) = error.reason().unwrap();
    assert_eq!((named.id.as_str(), at, later), (ids[0].1.as_str(), path("q/plan.md").as_path(), None));
    assert_eq!(plans.lock(&mut || {}).unwrap().undo_change(Some(&ids[1].1)).unwrap().verb, "set");
    assert_eq!(machine.text("/plans/p/step-1.md").as_deref(), Some("old\n"));
    assert_eq!(machine.text("/plans/q/plan.md").as_deref(), Some("an editor's\n"));
    assert_eq!(listed(&plans), [("done".to_owned(), ids[0].1.clone(), Some("file-changed"))]);
    let unknown = plans.lock(&mut || {}).unwrap().undo_change(Some(&ids[1].1)).unwrap_err();
    assert_eq!(unknown.code(), "not-found");
}

#[test]
fn a_change_whose_files_a_later_one_wrote_is_refused_and_names_it() {
    let machine = start();
    let plans = machine.plans();
    change(&plans, "done", "p/step-1.md", "second\n");
    change(&plans, "other", "q/plan.md", "other\n");
    assert_eq!(blocked(&plans), [("set".to_owned(), "later-change")]);
    let take_back = |verb: &str| plans.lock(&mut || {}).unwrap().undo_change(Some(&id_of(&plans, verb)));
    let error = take_back("set").unwrap_err();
    assert_eq!(error.reason().unwrap().2.unwrap().verb, "done");
    for verb in ["done", "set", "other"] {
        assert_eq!(take_back(verb).unwrap().verb, verb);
    }
    assert_eq!(machine.text("/plans/p/step-1.md").as_deref(), Some("old\n"));
    assert_eq!(machine.text("/plans/q/plan.md").as_deref(), Some("q\n"));
}

#[test]
fn a_plan_that_was_moved_or_filled_later_is_not_taken_back_before_that() {
    let machine = start();
    let plans = machine.plans();
    let mut locked = plans.lock(&mut || {}).unwrap();
    locked.begin("new", "1");
    locked.create_dir_with(&path("n"), &[("plan.md".to_owned(), b"n\n".to_vec())]).unwrap();
    locked.begin("add", "2");
    locked.create(&path("n/step-1.md"), b"one\n").unwrap();
    drop(locked);
    let ops = vec![FileOp::Rename { from: path("p"), to: path("_archive/p") }];
    plans.lock(&mut || {}).unwrap().batch("archive", "3", ops).unwrap();
    let later = "later-change";
    assert_eq!(blocked(&plans), [("new".to_owned(), later), ("set".to_owned(), later)]);
    let take_back = |verb: &str| plans.lock(&mut || {}).unwrap().undo_change(Some(&id_of(&plans, verb)));
    assert_eq!(take_back("new").unwrap_err().reason().unwrap().2.unwrap().verb, "add");
    for verb in ["add", "new", "archive", "set"] {
        take_back(verb).unwrap();
    }
    assert_eq!(
        machine.tree(),
        Machine::with(&[("/plans/p/step-1.md", "old\n"), ("/plans/q/plan.md", "q\n")]).tree()
    );
}

fn created(plans: &PlansDir) -> bool {
    let Ok(mut locked) = plans.lock(&mut || {}) else { return false };
    locked.begin("replace", "2");
    locked.create(&path("p/step-2.md"), b"two\n").is_ok()
}

fn changed(plans: &PlansDir) -> bool {
    let Ok(mut locked) = plans.lock(&mut || {}) else { return false };
    locked.begin("replace", "2");
    locked.change(&path("p/step-1.md"), &mut |_, _| Some(b"second\n".to_vec())).is_ok()
}

/// Checks a verb on a disk with little room: the verb is refused, or `undo` reverts exactly this verb, or `undo`
/// reports that it cannot.
#[track_caller]
fn check_full(act: fn(&PlansDir) -> bool) {
    let start = start();
    let before = start.tree();
    let (mut n_refused, mut n_unrecorded, mut n_taken_back) = (0, 0, 0);
    for room in 0..4096 {
        let machine = start.with_room(room);
        let is_done = act(&machine.plans());
        // Undoes once with free space again, and once without any.
        for next in [machine.after_kill(), machine.with_room(0)] {
            let plans = next.plans();
            let Ok(mut locked) = plans.lock(&mut || {}) else { continue };
            match locked.undo() {
                Ok(undone) => {
                    assert_eq!(undone.verb, if is_done { "replace" } else { "set" }, "{room}");
                    assert!(!is_done || next.tree() == before, "{room}");
                    n_taken_back += u32::from(is_done);
                }
                Err(UndoError::Unrecorded) => {
                    assert!(is_done, "{room}");
                    n_unrecorded += 1;
                    // An older change can still be undone if the unrecorded change did not touch its files.
                    let older = listed(&plans).into_iter().find(|it| it.0 == "set").unwrap();
                    let is_blocked = older.2.is_some() || locked.undo_change(Some(&older.1)).is_err();
                    assert_eq!(
                        is_blocked,
                        next.text("/plans/p/step-1.md").as_deref() != Some("old\n"),
                        "{room}"
                    );
                }
                Err(error) => assert!(matches!(error, UndoError::Disk(_)), "{room}: {error:?}"),
            }
        }
        n_refused += u32::from(!is_done);
        if is_done && n_taken_back > 0 && n_unrecorded > 0 && machine.room() > 0 {
            assert!(n_refused > 0);
            return;
        }
    }
    panic!("refused {n_refused}, unrecorded {n_unrecorded}, taken back {n_taken_back}");
}

#[test]
fn on_a_full_disk_undo_takes_back_the_last_change_or_says_that_it_cannot() {
    check_full(changed);
    check_full(created);
    check_full(batch);
}

#[test]
fn a_change_of_several_files_is_undone_whole_or_not_at_all_whichever_call_failed() {
    let start = start();
    let before = start.tree();
    let quiet = start.after_kill();
    assert!(batch(&quiet.plans()));
    let mut n_unrecorded = 0;
    for call in 1..=quiet.calls() {
        let machine = start.failing_at(call, Fault::Broken);
        let is_done = batch(&machine.plans());
        let next = machine.after_kill();
        let plans = next.plans();
        let mut locked = plans.lock(&mut || {}).unwrap();
        match locked.undo() {
            Ok(undone) if is_done => {
                // Compares only files: an empty directory may be left because its removal failed.
                let files = next.tree().into_iter().filter(|it| it.1.is_some());
                assert!(files.eq(before.clone().into_iter().filter(|it| it.1.is_some())), "{call}");
                assert_eq!(undone.verb, "replace", "{call}");
            }
            Ok(undone) => assert_eq!(undone.verb, "set", "{call}"),
            Err(UndoError::Unrecorded) => n_unrecorded += u32::from(is_done),
            Err(error) => panic!("{call}: {error:?}"),
        }
    }
    assert!(n_unrecorded > 1, "{n_unrecorded}");
}

#[test]
fn a_text_that_undo_needs_survives_a_sweep_in_which_a_call_fails() {
    let start = start().after_long();
    let quiet = start.after_kill();
    drop(quiet.plans().lock(&mut || {}).unwrap());
    for call in 1..=quiet.calls() {
        let machine = start.failing_at(call, Fault::Broken);
        drop(machine.plans().lock(&mut || {}));
        let next = machine.after_long();
        assert_eq!(undo(&next.plans()).as_deref(), Some("set"), "{call}");
        assert_eq!(next.text("/plans/p/step-1.md").as_deref(), Some("old\n"), "{call}");
    }
}

#[test]
fn a_first_change_that_was_not_recorded_is_named() {
    let start = Machine::with(&[("/plans/p/step-1.md", "old\n")]);
    let quiet = start.after_kill();
    assert!(changed(&quiet.plans()));
    let mut n_unrecorded = 0;
    for call in 1..=quiet.calls() {
        let machine = start.failing_at(call, Fault::Broken);
        if !changed(&machine.plans()) {
            continue;
        }
        let next = machine.after_kill();
        match next.plans().lock(&mut || {}).unwrap().undo() {
            Ok(_) => assert_eq!(next.tree(), start.tree(), "{call}"),
            Err(UndoError::Unrecorded) => n_unrecorded += 1,
            Err(error) => panic!("{call}: {error:?}"),
        }
    }
    assert!(n_unrecorded > 0);
}

#[test]
fn changes_after_one_that_was_not_recorded_are_taken_back_and_that_one_is_named() {
    let start = start();
    let machine = (0..4096).map(|room| start.with_room(room)).find(|it| created(&it.plans())).unwrap();
    // If a second change cannot be recorded, the records from before the first unrecorded change must stay.
    let machine = (0..4096).map(|room| machine.with_room(room)).find(|it| batch(&it.plans())).unwrap();
    let machine = machine.after_kill();
    let plans = machine.plans();
    change(&plans, "done", "p/step-1.md", "third\n");
    let names = |plans: &PlansDir| listed(plans).into_iter().map(|it| (it.0, it.2)).collect::<Vec<_>>();
    let unrecorded = (String::new(), Some("not-recorded"));
    let set = |why| ("set".to_owned(), Some(why));
    assert_eq!(names(&plans), [("done".to_owned(), None), unrecorded.clone(), set("later-change")]);
    assert_eq!(undo(&plans).as_deref(), Some("done"));
    assert_eq!(names(&plans), [unrecorded, set("file-changed")]);
    let error = plans.lock(&mut || {}).unwrap().undo().unwrap_err();
    assert_eq!(error.code(), "not-recorded");
}

#[test]
fn a_torn_line_of_the_log_takes_no_later_record_with_it() {
    let machine = start();
    let plans = machine.plans();
    change(&plans, "note", "p/step-1.md", "second\n");
    let log = plans.state_dir().join("undo/log");
    let file = plans.disk.open(&log, Open::Append).unwrap();
    file.set_len(file.stat().unwrap().len - 20).unwrap();
    change(&plans, "done", "p/step-1.md", "third\n");
    assert_eq!(undo(&plans).as_deref(), Some("done"));
    assert_eq!(machine.text("/plans/p/step-1.md").as_deref(), Some("second\n"));
}
