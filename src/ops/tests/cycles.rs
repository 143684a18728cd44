//! Tests that a change after which a step would wait for itself is refused, also through other plans and the order of steps.

use crate::api::context::Context;
use crate::api::error::Error;
use crate::disk::model::Machine;
use crate::ops::add::{self, AddRequest};
use crate::ops::create::{self, NewRequest, StepRequest};
use crate::ops::renumber::{self, RenumberRequest};
use crate::ops::set::{self, SetOp, SetRequest};
use crate::store::transaction::{ChangeReport, Mode};

/// Files of plans. In `s`, each step waits for the one before it; step 2 and step 3 wait for other plans, too.
const FILES: [(&str, &str); 10] = [
    ("/plans/p/plan.md", "# P\n"),
    ("/plans/p/step-1.md", "# One\n"),
    ("/plans/p/step-2.md", "---\ndepends: [1]\n---\n# Two\n"),
    ("/plans/q/step-1.md", "---\ndepends: [p:2]\n---\n# Three\n"),
    ("/plans/r/step-1.md", "---\ndepends: [q:1]\n---\n# Four\n"),
    ("/plans/s/plan.md", "---\norder: sequential\n---\n# S\n"),
    ("/plans/s/step-1.md", "# One\n"),
    ("/plans/s/step-2.md", "# Two\n"),
    ("/plans/s/step-3.md", "---\ndepends: [1]\n---\n# Three\n"),
    ("/plans/t/step-1.md", "---\ndepends: [s:3]\n---\n# Five\n"),
];

fn set(id: &str, key: &str, op: SetOp) -> SetRequest {
    let (id, key) = (id.to_owned(), key.to_owned());
    SetRequest { id, key, op, by: None, claim: None, force: false, mode: Mode::Write }
}

fn depends(context: &Context, id: &str, on: &str) -> Result<ChangeReport, Error> {
    set::set(context, &set(id, "depends", SetOp::Add(on.to_owned())))
}

#[track_caller]
fn check(made: Result<ChangeReport, Error>, refused: Option<&str>) {
    let refusals = made.map(|it| it.refused);
    let error = refusals.map_or_else(Some, |mut it| it.pop().map(|it| it.error));
    let said = error.map(|it| format!("{}: {it}", it.code()));
    let expected =
        refused.map(|it| format!("dependency-cycle: refused: the step waits for itself through {it}"));
    assert_eq!(said, expected);
}

#[test]
fn set_refuses_a_cycle_through_other_plans_and_through_the_order() {
    for (id, on, refused) in [
        ("p:1", "q:1", Some("p:1, p:2, q:1")),
        ("p:1", "r:1", Some("p:1, p:2, q:1, r:1")),
        ("p:2", "r:1", Some("p:2, q:1, r:1")),
        ("p:1", "s:1", None),
        ("s:1", "2", Some("s:1, s:2")),
        ("s:1", "3", Some("s:1, s:3")),
        ("s:2", "t:1", Some("s:2, s:3, t:1")),
        ("s:3", "r:1", None),
        ("s:2", "r:1", None),
    ] {
        let machine = Machine::with(&FILES);
        check(depends(&Context::on_model(&machine), id, on), refused);
    }
}

#[test]
fn a_closed_step_does_not_keep_the_order() {
    let files = [
        ("/plans/s/plan.md", "---\norder: sequential\n---\n# S\n"),
        ("/plans/s/step-1.md", "# One\n"),
        ("/plans/s/step-2.md", "---\nstatus: completed\n---\n# Two\n"),
        ("/plans/s/step-3.md", "# Three\n"),
    ];
    check(depends(&Context::on_model(&Machine::with(&files)), "s:1", "3"), None);
}

#[test]
fn the_order_is_not_made_sequential_if_a_step_waits_for_a_later_one() {
    let files = [
        ("/plans/p/plan.md", "# P\n"),
        ("/plans/p/step-1.md", "---\ndepends: [q:1]\n---\n# One\n"),
        ("/plans/p/step-2.md", "# Two\n"),
        ("/plans/q/step-1.md", "---\ndepends: [p:2]\n---\n# Three\n"),
    ];
    let context = Context::on_model(&Machine::with(&files));
    check(
        set::set(&context, &set("p", "order", SetOp::Text("sequential".to_owned()))),
        Some("p:1, p:2, q:1"),
    );
    let context = Context::on_model(&Machine::with(&files[..3]));
    check(set::set(&context, &set("p", "order", SetOp::Text("sequential".to_owned()))), None);
}

#[test]
fn add_move_and_new_refuse_a_step_that_waits_for_a_later_one_of_a_sequential_plan() {
    let machine = Machine::with(&FILES);
    let context = Context::on_model(&machine);
    let add = |depends: &str| AddRequest {
        plan: "s".to_owned(),
        title: "New".to_owned(),
        after: Some("1".to_owned()),
        depends: vec![depends.to_owned()],
        ..AddRequest::default()
    };
    check(add::add(&context, &add("3")), Some("s:1.5, s:2, s:3"));
    check(add::add(&context, &add("1")), None);
    let move_to = |id: &str, to: &str| RenumberRequest {
        id: id.to_owned(),
        to: Some(to.to_owned()),
        ..RenumberRequest::default()
    };
    check(renumber::renumber(&context, &move_to("s:1", "4")), Some("s:1.5, s:2, s:3, s:4"));
    check(renumber::renumber(&context, &move_to("s:2", "4")), None);
    let step = |title: &str, depends: &[&str]| StepRequest {
        title: title.to_owned(),
        depends: depends.iter().map(|it| (*it).to_owned()).collect(),
        ..StepRequest::default()
    };
    let new = NewRequest {
        title: "N".to_owned(),
        is_sequential: true,
        steps: vec![step("A", &["2"]), step("B", &[])],
        ..NewRequest::default()
    };
    check(create::new(&context, &new), Some("n:1, n:2"));
}
