//! Tests in which another program saves the same value just before planwatch writes it. The change must count as a change by
//! that program.

use std::sync::Arc;

use crate::api::context::Context;
use crate::api::error::Error;
use crate::api::precondition::Expected;
use crate::disk::model::Machine;
use crate::ops::set::{self, SetOp, SetRequest};
use crate::ops::undo::undo_list;
use crate::ops::update::{self, MoveRequest};
use crate::ops::upsert;
use crate::plan::transitions::Verb;
use crate::store::idempotency;
use crate::store::transaction::Mode;

const STEP: &str = "/plans/p/step-1.md";
const OLD: &str = "---\nstatus: pending\n---\n# One\n";
const BLOCKED: &str = "---\nstatus: blocked\n---\n# One\n\nBy an editor.\n";
const CLAIMED: &str = "---\nstatus: in_progress\nclaim: {id: \"h0000001\", by: \"zoe\", at: 2026-11-21T11:59:00Z}\n---\n# One\n";

fn machine() -> Machine {
    let machine = Machine::with(&[("/plans/p/plan.md", "# P\n"), (STEP, OLD)]);
    machine.plans().made_runtime_dir().unwrap();
    machine
}

fn block(context: &Context) -> Result<(), Error> {
    let (id, key, op) = ("p:1".to_owned(), "status".to_owned(), SetOp::Text("blocked".to_owned()));
    let request = SetRequest { id, key, op, by: None, claim: None, force: false, mode: Mode::Write };
    set::set(context, &request).map(drop)
}

fn start(context: &Context) -> Result<(), Error> {
    let (ids, verb) = (vec!["p:1".to_owned()], Verb::Start);
    let request = MoveRequest {
        is_signed: false,
        verb,
        ids,
        message: None,
        by: None,
        claim: None,
        force: false,
        mode: Mode::Write,
    };
    update::move_steps(context, &request).map(drop)
}

/// Runs a verb, with a key if `is_keyed`. With an etag, the verb runs on the condition that the step's file has this etag.
fn run(
    machine: &Machine,
    act: fn(&Context) -> Result<(), Error>,
    is_keyed: bool,
    etag: Option<&str>,
) -> Result<(), Error> {
    let expected = etag.map(|it| Expected::new(vec![it.to_owned()]));
    let context = Context { expected, ..Context::on_model(machine) };
    let key = if is_keyed { Some(Arc::new(idempotency::begin(&context, "k", "request")?)) } else { None };
    act(&Context { key, ..context })
}

/// For each call to the disk before the change is in the file: runs the verb, and saves `theirs` before that call. The verb
/// must be refused with `code`.
fn check(act: fn(&Context) -> Result<(), Error>, has_etag: bool, theirs: &'static str, code: &str) {
    let start = machine();
    let etag = upsert::step(&Context::on_model(&start), "p:1").unwrap().0.etag.filter(|_| has_etag);
    for is_keyed in [false, true] {
        let is_in_file = |call: &u64| {
            let dying = start.dying_before(*call);
            run(&dying, act, is_keyed, etag.as_deref()).ok();
            dying.text(STEP).unwrap() != OLD
        };
        let exchange = (1..).find(is_in_file).unwrap() - 1;
        for call in 1..=exchange {
            let saving = start.replaced_before(call, STEP, theirs);
            let refused = run(&saving, act, is_keyed, etag.as_deref()).unwrap_err();
            assert_eq!(refused.code(), code, "call {call} of {exchange}: {refused:?}");
            assert_eq!(saving.text(STEP).unwrap(), theirs, "call {call} of {exchange}");
            assert!(undo_list(&Context::on_model(&saving)).is_empty(), "call {call} of {exchange}");
        }
        assert!(exchange > 20, "{exchange}");
    }
}

#[test]
fn a_condition_is_refused_also_if_the_save_has_the_same_value() {
    check(block, true, BLOCKED, "file-changed");
}

#[test]
fn a_step_that_another_worker_claims_meanwhile_is_not_started() {
    check(start, false, CLAIMED, "claimed");
}

/// Without a condition, the command succeeds. If the save comes first, the file already has the value, and there is
/// nothing to undo.
#[test]
fn a_value_that_a_program_saved_before_is_not_a_change_of_planwatch() {
    let start = machine();
    let mut n_found = 0;
    for call in 1..1000 {
        let saving = start.replaced_before(call, STEP, BLOCKED);
        run(&saving, block, false, None).unwrap();
        if saving.calls() < call {
            break;
        }
        assert_eq!(saving.text(STEP).unwrap(), BLOCKED, "call {call}");
        n_found += u32::from(undo_list(&Context::on_model(&saving)).is_empty());
    }
    assert!(n_found > 20, "{n_found}");
}
