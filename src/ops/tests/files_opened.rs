//! Tests which files a change of one step opens: the step's file, the `plan.md` of its plan, the files of the steps in this
//! plan that it depends on, and all files of other plans that it depends on. Also tests when `list` searches for records of
//! claims.

use crate::api::context::Context;
use crate::api::requests::{ListRequest, MoveRequest};
use crate::disk::model::Machine;
use crate::ops::list;
use crate::ops::note::{self, NoteRequest};
use crate::ops::set::{self, SetOp, SetRequest};
use crate::ops::update;
use crate::plan::transitions::Verb;
use crate::store::transaction::Mode;

/// Forty plans of twenty steps. Step 3 of the first plan depends on step 1 of the same plan and on a step of another plan.
fn machine() -> Machine {
    let mut files = Vec::new();
    for plan in 0..40 {
        files.push((format!("/plans/p{plan}/plan.md"), format!("# Plan {plan}\n")));
        for step in 1..=20 {
            let depends = if (plan, step) == (0, 3) { "depends: [1, p7:2]\n" } else { "" };
            let text = format!("---\nstatus: pending\n{depends}---\n# Step {step}\n");
            files.push((format!("/plans/p{plan}/step-{step}.md"), text));
        }
    }
    let files: Vec<_> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    Machine::with(&files)
}

fn check(change: impl FnOnce(&Context)) {
    let machine = machine();
    change(&Context::on_model(&machine));
    let (other, own): (Vec<_>, Vec<_>) = machine.opened().into_iter().partition(|it| it.starts_with("p7/"));
    assert_eq!(own, ["p0/plan.md", "p0/step-1.md", "p0/step-3.md"]);
    assert_eq!(other.len(), 21, "{other:?}");
}

#[test]
fn a_move_opens_no_other_files() {
    check(|context| {
        let request = MoveRequest {
            is_signed: false,
            verb: Verb::Skip,
            ids: vec!["p0:3".to_owned()],
            message: Some("not needed".to_owned()),
            by: None,
            claim: None,
            force: false,
            mode: Mode::Write,
        };
        update::move_steps(context, &request).map(drop).unwrap();
    });
}

#[test]
fn setting_a_status_opens_no_other_files() {
    check(|context| {
        let (id, key, op) = ("p0:3".to_owned(), "status".to_owned(), SetOp::Text("blocked".to_owned()));
        let request = SetRequest { id, key, op, by: None, claim: None, force: false, mode: Mode::Write };
        set::set(context, &request).map(drop).unwrap();
    });
}

#[test]
fn a_note_opens_no_other_files() {
    check(|context| {
        let (id, text) = ("p0:3".to_owned(), "a word".to_owned());
        note::note(context, &NoteRequest { id, text, ..NoteRequest::default() }).map(drop).unwrap();
    });
}

#[test]
fn records_are_looked_for_only_where_there_have_been_claims() {
    let opened = |more: &[(&'static str, &'static str)]| {
        let mut files = vec![
            ("/.git/HEAD", "ref: refs/heads/main\n"),
            ("/.git/objects/info", ""),
            ("/plans/p/step-1.md", "# A\n"),
        ];
        files.extend(more);
        let machine = Machine::with(&files);
        let request = ListRequest { plan: Some("p".to_owned()), ..ListRequest::default() };
        list::list(&Context::on_model(&machine), &request).map(drop).unwrap();
        machine.n_opened("/.git/planwatch/closed")
    };
    assert_eq!(opened(&[]), 0);
    assert_eq!(opened(&[("/.git/planwatch/lock", "")]), 1);
}
