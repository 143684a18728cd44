//! Tests in which planwatch changes a file through a symbolic link, and another program replaces the link with a file during
//! or after the change.

use super::*;
use crate::disk::{FileOp, Keyed, PlansDir, UndoError};

const LINK: &str = "/plans/p/step-1.md";
const FILE: &str = "/plans/behind/one.md";
const THEIRS: &str = "theirs\n";

fn start() -> Machine {
    let machine = Machine::with(&[(FILE, "old\n"), ("/plans/p/plan.md", "p\n")]);
    machine.link(LINK, "../behind/one.md");
    drop(machine.plans().lock(&mut || {}).unwrap());
    machine.after_long()
}

fn step() -> &'static Path {
    Path::new("p/step-1.md")
}

/// Appends a line to the file at [`LINK`]; returns whether planwatch reported success.
type Act = fn(&PlansDir) -> bool;

fn append(plans: &PlansDir, key: Option<Keyed>) -> bool {
    let Ok(mut locked) = plans.lock(&mut || {}) else { return false };
    locked.use_key(key);
    locked.begin("note", "1");
    let edit = &mut |text: &[u8], shown: &[Vec<u8>]| {
        let is_included = text.ends_with(b"ours\n") && !shown.is_empty();
        Some(if is_included { text.to_vec() } else { [text, b"ours\n"].concat() })
    };
    locked.change(step(), edit).is_ok()
}

fn change(plans: &PlansDir) -> bool {
    append(plans, None)
}

fn change_with_key(plans: &PlansDir) -> bool {
    let key = Keyed::new("k", 1);
    key.note(Some(b"made".to_vec()));
    let is_done = append(plans, Some(key));
    assert!(!is_done || plans.has_answer("k"));
    is_done
}

fn batch(plans: &PlansDir) -> bool {
    let Ok(mut locked) = plans.lock(&mut || {}) else { return false };
    let (path, before, after) = (step().to_path_buf(), b"old\n".to_vec(), b"old\nours\n".to_vec());
    let plan = FileOp::Change { path: "p/plan.md".into(), before: b"p\n".to_vec(), after: b"q\n".to_vec() };
    locked.batch("replace", "1", vec![FileOp::Change { path, before, after }, plan]).is_ok()
}

/// The number of the call that exchanges the file behind the link. If the link is replaced before or directly after
/// this call, planwatch must notice it.
fn exchange(start: &Machine, act: Act) -> u64 {
    let is_in_place = |call: &u64| {
        let machine = start.dying_before(*call);
        act(&machine.plans());
        machine.text(FILE).unwrap() == "old\nours\n"
    };
    (1..1000).find(is_in_place).unwrap() - 1
}

#[track_caller]
fn check(act: Act, is_made_again: bool) {
    let start = start();
    let last = exchange(&start, act);
    let (mut n_done, mut n_refused) = (0, 0);
    for call in 1..=last + 1 {
        let machine = start.replaced_before(call, LINK, THEIRS);
        let is_done = act(&machine.plans());
        let expected = if is_done { "theirs\nours\n" } else { THEIRS };
        assert_eq!(machine.text(LINK).unwrap(), expected, "call {call} of {last}");
        assert_eq!(machine.text(FILE).unwrap(), "old\n", "call {call} of {last}");
        n_done += u32::from(is_done);
        n_refused += u32::from(!is_done);
    }
    assert!(if is_made_again { n_done > 10 } else { n_refused > 10 }, "{n_done} {n_refused}");
}

#[test]
fn a_change_is_made_in_the_file_that_replaces_the_link() {
    check(change, true);
}

#[test]
fn a_change_with_a_key_is_made_in_the_file_that_replaces_the_link() {
    check(change_with_key, true);
}

#[test]
fn a_batch_is_refused_when_a_link_is_replaced_meanwhile() {
    check(batch, false);
}

/// After a kill, the link is replaced. The next command keeps the changes of the batch if the undo log contains the batch;
/// otherwise the command undoes them.
#[test]
fn a_killed_batch_is_undone_when_the_link_was_replaced_meanwhile() {
    let start = start();
    let (mut n_finished, mut n_undone) = (0, 0);
    for call in 1..1000 {
        let machine = start.dying_before(call);
        batch(&machine.plans());
        if !machine.has_died() {
            break;
        }
        let is_noted = machine.after_kill().plans().undo_list().iter().any(|it| it.verb == "replace");
        let next = machine.after_kill();
        next.save(LINK, THEIRS);
        drop(next.plans().lock(&mut || {}).unwrap());
        let texts = [FILE, "/plans/p/plan.md"].map(|it| next.text(it).unwrap());
        let expected = if is_noted { ["old\nours\n", "q\n"] } else { ["old\n", "p\n"] };
        assert_eq!(texts, expected, "call {call}");
        assert_eq!(next.text(LINK).unwrap(), THEIRS, "call {call}");
        n_finished += u32::from(is_noted);
        n_undone += u32::from(!is_noted);
    }
    assert!(n_finished > 0 && n_undone > 10, "{n_finished} {n_undone}");
}

#[test]
fn a_change_behind_a_link_that_was_replaced_is_not_undone() {
    for act in [change, change_with_key, batch] {
        let machine = start();
        assert!(act(&machine.plans()));
        machine.save(LINK, THEIRS);
        let plans = machine.plans();
        let blocked: Vec<_> =
            plans.undo_list().iter().map(|it| it.blocked.as_ref().map(UndoError::code)).collect();
        assert_eq!(blocked, [Some("file-changed")]);
        let error = plans.lock(&mut || {}).unwrap().undo().unwrap_err();
        assert!(matches!(&error, UndoError::Edited { path, .. } if path == step()), "{error:?}");
        assert_eq!(machine.text(LINK).unwrap(), THEIRS);
        assert_eq!(machine.text(FILE).unwrap(), "old\nours\n");
    }
}

fn undo(plans: &PlansDir) -> bool {
    plans.lock(&mut || {}).is_ok_and(|mut locked| locked.undo().is_ok())
}

#[test]
fn a_link_that_is_replaced_during_an_undo_is_left_alone() {
    let start = start();
    assert!(change(&start.plans()));
    let is_restored = |call: &u64| {
        let machine = start.dying_before(*call);
        undo(&machine.plans());
        machine.text(FILE).unwrap() == "old\n"
    };
    let exchange = (1..1000).find(is_restored).unwrap() - 1;
    for call in 1..=exchange + 1 {
        let machine = start.replaced_before(call, LINK, THEIRS);
        assert!(!undo(&machine.plans()), "call {call}");
        assert_eq!(machine.text(LINK).unwrap(), THEIRS, "call {call}");
        assert_eq!(machine.text(FILE).unwrap(), "old\nours\n", "call {call}");
    }
    assert!(exchange > 10);
    // If no program replaces the link, the undo succeeds.
    assert!(undo(&start.plans()));
    assert_eq!(start.text(FILE).unwrap(), "old\n");
}

#[test]
fn a_change_behind_a_link_is_undone_after_a_later_change_that_renamed_the_link() {
    let machine = start();
    let plans = machine.plans();
    assert!(change(&plans));
    let ops = vec![FileOp::Rename { from: step().to_path_buf(), to: "p/step-4.md".into() }];
    plans.lock(&mut || {}).unwrap().batch("move", "2", ops).unwrap();
    let blocked: Vec<_> =
        plans.undo_list().iter().map(|it| it.blocked.as_ref().map(UndoError::code)).collect();
    assert_eq!(blocked, [None, Some("later-change")]);
    assert!(undo(&plans) && undo(&plans));
    assert_eq!(machine.text(FILE).unwrap(), "old\n");
}
