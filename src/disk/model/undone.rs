//! An undo, or a batch, that is killed at any call and finished by the next command is known as what it was.

use super::Machine;
use crate::disk::{FileOp, PlansDir};

fn path(text: &str) -> std::path::PathBuf {
    text.into()
}

/// Two changes: one of a text, then a batch that makes directories.
fn start() -> Machine {
    let machine = Machine::with(&[("/plans/p/step-1.md", "old\n"), ("/plans/q/plan.md", "q\n")]);
    let plans = machine.plans();
    let mut locked = plans.lock(&mut || {}).unwrap();
    locked.begin("set", "1");
    locked.change::<()>(&path("p/step-1.md"), &mut |_| Ok(b"first\n".to_vec())).unwrap();
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

/// The verbs that can be undone, after the next command has looked after what was left.
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
