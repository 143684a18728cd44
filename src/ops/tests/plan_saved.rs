//! Tests of commands while `plan.md` is saved: the command reports success exactly if its change is in the files afterwards.

use crate::api::context::Context;
use crate::api::error::Error;
use crate::disk::DiskError;
use crate::disk::model::{Fault, Machine};
use crate::ops::add::{self, AddRequest};
use crate::ops::set::{self, SetOp, SetRequest};
use crate::store::transaction::Mode;

const PLAN: &str = "/plans/p/plan.md";
const STEP: &str = "/plans/p/step-2.md";

/// The undo log of the returned machine records the length of the plan's file.
fn machine() -> Machine {
    let plan = "# P\n\nA text of some length, which says nothing to planwatch, and some more of it.\n\n## Steps\n\n- step-1: One\n- step-2: Two\n";
    let machine = Machine::with(&[
        (PLAN, plan),
        ("/plans/p/step-1.md", "---\nstatus: pending\n---\n# One\n"),
        (STEP, "---\nstatus: pending\n---\n# Two\n"),
    ]);
    set(&Context::on_model(&machine), "p", "priority", SetOp::Text("high".to_owned())).unwrap();
    machine
}

fn set(context: &Context, id: &str, key: &str, op: SetOp) -> Result<(), Error> {
    let (id, key) = (id.to_owned(), key.to_owned());
    let request = SetRequest { id, key, op, by: None, claim: None, force: false, mode: Mode::Write };
    set::set(context, &request).map(drop)
}

/// Runs a command during slow saves of the plan's file. `is_done` returns whether the command's change is in the files.
fn check(run: &dyn Fn(&Context) -> Result<(), Error>, is_done: &dyn Fn(&Machine) -> bool) {
    let machine = machine();
    let quiet = machine.after_kill();
    run(&Context::on_model(&quiet)).unwrap();
    assert!(is_done(&quiet) && !is_done(&machine));
    let (mut n_done, mut n_refused) = (0, 0);
    for begun in 1..=quiet.calls() {
        for written in [begun + 2, begun + 1000] {
            for saving in
                [machine.saved_slowly_at(PLAN, begun, written), machine.renamed_away_at(PLAN, begun, written)]
            {
                let answer = run(&Context::on_model(&saving));
                saving.finish_saves();
                assert_eq!(
                    answer.is_ok(),
                    is_done(&saving),
                    "{begun} {written}: {answer:?} {:?}",
                    saving.tree()
                );
                n_done += u32::from(answer.is_ok());
                n_refused += u32::from(answer.is_err());
            }
        }
    }
    assert!(n_done > 10 && n_refused > 10, "{n_done} {n_refused}");
}

#[test]
fn dependencies_that_were_written_are_not_reported_as_refused() {
    let depend = |context: &Context| set(context, "p:2", "depends", SetOp::Add("1".to_owned()));
    check(&depend, &|machine| machine.text(STEP).unwrap().contains("depends"));
}

#[test]
fn a_new_step_gets_its_line_or_is_refused() {
    let request = || AddRequest { plan: "p".to_owned(), title: "Three".to_owned(), ..AddRequest::default() };
    check(&|context| add::add(context, &request()).map(drop), &|machine| {
        let has_line = machine.text(PLAN).unwrap().contains("step-3: Three");
        assert_eq!(machine.text("/plans/p/step-3.md").is_some(), has_line, "{:?}", machine.tree());
        has_line
    });
}

/// While `add` runs, an editor saves the new step, and another save replaces `plan.md`. If `add` is refused, the step's file
/// must not remain.
#[test]
fn a_new_step_that_an_editor_has_saved_is_not_left_by_a_refused_command() {
    const THREE: &str = "/plans/p/step-3.md";
    const LONGER: &str = "# P\n\nA text of some length, which says nothing to planwatch, and some more of it.\n\n## Steps\n\n- step-1: One\n- step-2: Two\n\nMore.\n";
    let request = || AddRequest { plan: "p".to_owned(), title: "Three".to_owned(), ..AddRequest::default() };
    let machine = machine();
    let quiet = machine.after_kill();
    add::add(&Context::on_model(&quiet), &request()).unwrap();
    let mut n_saved = 0;
    let is_made_before = |call: &u64| {
        let dying = machine.dying_before(*call);
        add::add(&Context::on_model(&dying), &request()).unwrap_err();
        dying.text(THREE).is_some()
    };
    let made = (1..=quiet.calls()).find(is_made_before).unwrap();
    for saved in made..made + 16 {
        for replaced in made - 16..made + 16 {
            let editing = machine.replaced_and_saved((PLAN, LONGER, replaced), (THREE, saved));
            let answer = add::add(&Context::on_model(&editing), &request());
            let tree = editing.tree();
            assert_eq!(
                answer.is_ok(),
                editing.text(THREE).is_some(),
                "{saved} {replaced}: {answer:?} {tree:?}"
            );
            n_saved += u32::from(answer.is_ok() && editing.has_saved() && replaced < saved);
        }
    }
    assert!(n_saved > 10, "{n_saved}");
}

/// The directory was modified a moment ago. In this case, a missing file would count as a file that is being saved.
#[test]
fn a_file_that_cannot_be_read_is_not_reported_as_missing() {
    let change = |it: &Machine| {
        let priority = SetOp::Text("low".to_owned());
        set(&Context::on_model(it), "p:2", "priority", priority)
    };
    let machine = machine();
    change(&machine).unwrap();
    let quiet = machine.after_kill();
    change(&quiet).unwrap();
    let mut n_unreadable = 0;
    for call in 1..=quiet.calls() {
        if let Err(error) = change(&machine.failing_at(call, Fault::Broken)) {
            assert!(!matches!(error, Error::Disk(DiskError::Vanished { .. })), "{call}: {error:?}");
            n_unreadable += u32::from(error.code() == "unreadable");
        }
    }
    assert!(n_unreadable > 1, "{n_unreadable}");
}

#[test]
fn a_file_that_was_just_saved_with_too_much_text_is_not_reported_as_missing() {
    let machine = machine();
    let change = |it: &Machine| set(&Context::on_model(it), "p:2", "priority", SetOp::Text("low".to_owned()));
    change(&machine).unwrap();
    machine.save(STEP, &format!("# Two\n\n{}", "x".repeat(4 << 20)));
    let request = AddRequest { plan: "p".to_owned(), title: "Three".to_owned(), ..AddRequest::default() };
    add::add(&Context::on_model(&machine), &request).unwrap();
    assert_eq!(change(&machine).unwrap_err().code(), "too-large");
}
