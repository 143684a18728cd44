//! Tests of changes that are made only if a file has the expected etag.

use crate::api::context::Context;
use crate::api::precondition::*;
use crate::disk::model::Machine;
use crate::ops::note::{self, NoteRequest};
use crate::ops::{undo, upsert};

const STEP: &str = "/plans/p/step-1.md";
const OLD: &str = "---\nstatus: pending\n---\n# One\n";

fn context(machine: &Machine, expected: Option<Expected>) -> Context {
    Context { expected, ..Context::on_model(machine) }
}

/// An editor saves at each moment of a conditional change. The command may change only the expected text.
#[test]
fn nothing_is_written_over_a_save_that_was_not_expected() {
    let machine = Machine::with(&[("/plans/p/plan.md", "# P\n"), (STEP, OLD)]);
    let etag = upsert::step(&context(&machine, None), "p:1").unwrap().0.etag.unwrap();
    let (mut n_refused, mut n_changed) = (0, 0);
    for call in 1.. {
        let saving = machine.saved_before(call);
        let request =
            NoteRequest { id: "p:1".to_owned(), text: "a word".to_owned(), ..NoteRequest::default() };
        let expected = Expected::new(vec![etag.clone()]);
        let answer = note::note(&context(&saving, Some(expected)), &request);
        if !saving.has_saved() {
            answer.unwrap();
            break;
        }
        let now = saving.text(STEP).unwrap();
        assert!(now.ends_with("token\n"), "call {call}: the save is lost: {now}");
        match answer {
            Err(error) => {
                assert_eq!((error.code(), now), ("file-changed", format!("{OLD}token\n")), "call {call}");
                n_refused += 1;
            }
            // The save came after the change, so the change cannot be undone.
            Ok(_) => {
                let after = saving.after_kill();
                let undone = undo::undo(&context(&after, None), &undo::UndoRequest::default()).unwrap_err();
                assert_eq!(undone.code(), "file-changed", "call {call}: the change was made on the save");
                n_changed += 1;
            }
        }
    }
    assert!(n_refused > 10 && n_changed > 5, "{n_refused} {n_changed}");
}
