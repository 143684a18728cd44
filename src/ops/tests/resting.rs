//! Tests of files that a command reads for its decision, but does not write. While such a file is being saved, the command
//! must be refused.

use crate::api::context::Context;
use crate::api::error::Error;
use crate::disk::model::Machine;
use crate::ops::claim::{self, ClaimRequest, RenewRequest};
use crate::ops::create::{self, NewRequest};
use crate::ops::note::{self, NoteRequest};
use crate::ops::renumber::{self, RenumberRequest};
use crate::ops::set::{self, SetOp, SetRequest};
use crate::store::transaction::Mode;

const PLAN: &str = "/plans/p/plan.md";
const WORDS: &str =
    "\nThese words make the file longer than what a command adds to it. They say nothing to planwatch.\n";

/// A plan whose own file keeps a step from being claimed.
struct Case {
    name: &'static str,
    plan: &'static str,
    step: &'static str,
}

const CASES: [Case; 4] = [
    Case { name: "order", plan: "---\norder: sequential\n---\n# P\n", step: "p:3" },
    Case { name: "draft", plan: "---\nstatus: draft\n---\n# P\n", step: "p:1" },
    Case { name: "phase", plan: "---\nconfirm_phases: [cut]\n---\n# P\n", step: "p:1" },
    Case {
        name: "Steps list",
        plan: "# P\n\n## Steps\n\n- step-1: One\n- step-2: Two\n- step-3: Three (depends: step-2)\n",
        step: "p:3",
    },
];

fn note(machine: &Machine, id: &str) {
    let (id, text) = (id.to_owned(), "a word".to_owned());
    note::note(&Context::on_model(machine), &NoteRequest { id, text, ..NoteRequest::default() }).unwrap();
}

/// The undo log of the returned machine records the length of the plan's file.
fn machine(case: &Case) -> Machine {
    let plan = format!("{}{WORDS}", case.plan);
    let machine = Machine::with(&[
        (PLAN, &plan),
        ("/plans/p/step-1.md", "---\nstatus: pending\nphase: cut\n---\n# One\n"),
        ("/plans/p/step-2.md", "---\nstatus: pending\n---\n# Two\n"),
        ("/plans/p/step-3.md", "---\nstatus: pending\n---\n# Three\n"),
    ]);
    note(&machine, "p");
    machine
}

fn claim(machine: &Machine, step: &str) -> Result<(), Error> {
    let request = ClaimRequest { target: Some(step.to_owned()), ..ClaimRequest::default() };
    claim::claim(&Context::on_model(machine), &request).map(drop)
}

#[test]
fn a_plan_that_is_being_saved_lets_no_step_be_claimed() {
    for case in &CASES {
        let machine = machine(case);
        let quiet = machine.after_kill();
        let code = claim(&quiet, case.step).expect_err(case.name).code();
        assert_ne!(code, "file-changed", "{}", case.name);
        let mut n_waiting = 0;
        for begun in 1..=quiet.calls() {
            for saving in [
                machine.saved_slowly_at(PLAN, begun, begun + 2),
                machine.saved_slowly_at(PLAN, begun, begun + 1000),
                machine.renamed_away_at(PLAN, begun, begun + 2),
                machine.renamed_away_at(PLAN, begun, begun + 1000),
            ] {
                let refused = claim(&saving, case.step).expect_err(case.name);
                let is_known = [code, "file-changed"].contains(&refused.code());
                assert!(is_known, "{} {begun}: {refused:?}", case.name);
                n_waiting += usize::from(refused.code() == "file-changed");
                let step = format!("/plans/{}.md", case.step.replace(':', "/step-"));
                assert_eq!(saving.text(&step), machine.text(&step), "{} {begun}", case.name);
            }
        }
        assert!(n_waiting > 20, "{}: {n_waiting}", case.name);
    }
}

/// While the file of a closed step is truncated, the step would be read as an open one.
#[test]
fn a_step_that_others_wait_for_is_not_taken_for_an_open_one_while_it_is_being_saved() {
    const BEFORE: &str = "/plans/q/step-1.md";
    let done = format!("---\nstatus: completed\n---\n# One\n{WORDS}");
    let machine = Machine::with(&[
        ("/plans/q/plan.md", "# Q\n"),
        (BEFORE, &done),
        (PLAN, "# P\n"),
        ("/plans/p/step-1.md", "---\nstatus: pending\ndepends: [\"q:1\"]\n---\n# One\n"),
    ]);
    note(&machine, "q:1");
    let quiet = machine.after_kill();
    claim(&quiet, "p:1").unwrap();
    let (mut n_refused, mut n_done) = (0, 0);
    for begun in 1..=quiet.calls() {
        for written in [begun + 2, begun + 1000] {
            match claim(&machine.saved_slowly_at(BEFORE, begun, written), "p:1") {
                Ok(()) => n_done += 1,
                Err(error) => {
                    assert_eq!(error.code(), "file-changed", "{begun} {written}: {error:?}");
                    n_refused += 1;
                }
            }
        }
    }
    assert!(n_refused > 20 && n_done > 20, "{n_refused} {n_done}");
}

#[test]
fn a_step_of_another_plan_follows_a_move_once_it_is_saved() {
    const WAITING: &str = "/plans/q/step-1.md";
    let text = format!("---\nstatus: pending\ndepends: [\"p:1\"]\n---\n# One\n{WORDS}");
    let machine = Machine::with(&[
        ("/plans/q/plan.md", "# Q\n"),
        (WAITING, &text),
        (PLAN, "# P\n"),
        ("/plans/p/step-1.md", "---\nstatus: pending\n---\n# One\n"),
        ("/plans/p/step-2.md", "---\nstatus: pending\n---\n# Two\n"),
    ]);
    note(&machine, "q:1");
    let renumber = |machine: &Machine| {
        let request =
            RenumberRequest { id: "p:1".to_owned(), after: "2".to_owned(), ..RenumberRequest::default() };
        renumber::renumber(&Context::on_model(machine), &request).map(drop)
    };
    let saving = machine.saved_slowly_at(WAITING, 1, 100_000);
    let refused = renumber(&saving).unwrap_err();
    assert_eq!(refused.code(), "file-changed", "{refused:?}");
    saving.finish_saves();
    renumber(&saving).unwrap();
    assert!(saving.text(WAITING).unwrap().contains("p:3"), "{:?}", saving.text(WAITING));
}

#[test]
fn a_claim_is_not_called_gone_while_its_file_is_being_saved() {
    const STEP: &str = "/plans/p/step-1.md";
    let step = format!("---\nstatus: pending\n---\n# One\n{WORDS}");
    let machine = Machine::with(&[(PLAN, "# P\n"), (STEP, &step)]);
    let request = ClaimRequest { target: Some("p:1".to_owned()), ..ClaimRequest::default() };
    let claimed = claim::claim(&Context::on_model(&machine), &request).unwrap();
    let renewal = RenewRequest { claim: claimed.claim.unwrap().id, ..RenewRequest::default() };
    let saving = machine.saved_slowly_at(STEP, 1, 100_000);
    let refused = claim::renew(&Context::on_model(&saving), &renewal).unwrap_err();
    assert_eq!(refused.code(), "file-changed", "{refused:?}");
    saving.finish_saves();
    claim::renew(&Context::on_model(&saving), &renewal).unwrap();
}

/// Five plans: a program and its child, a draft, and two plans of which one has a step that waits for a step of the other.
fn programs() -> Machine {
    let child = format!("---\nstatus: draft\nprogram: big\n---\n# C\n{WORDS}");
    let draft = format!("---\nstatus: draft\n---\n# D\n{WORDS}");
    let waiting = format!("---\nstatus: pending\ndepends: [\"p:1\"]\n---\n# One\n{WORDS}");
    let machine = Machine::with(&[
        ("/plans/big/plan.md", "---\nkind: program\nstatus: active\n---\n# Big\n"),
        ("/plans/c/plan.md", &child),
        ("/plans/c/step-1.md", "---\nstatus: pending\n---\n# One\n"),
        ("/plans/d/plan.md", &draft),
        ("/plans/d/step-1.md", "---\nstatus: pending\n---\n# One\n"),
        (PLAN, "# P\n"),
        ("/plans/p/step-1.md", "---\nstatus: pending\n---\n# One\n"),
        ("/plans/q/plan.md", "# Q\n"),
        ("/plans/q/step-1.md", &waiting),
    ]);
    ["c", "d", "q:1"].iter().for_each(|it| note(&machine, it));
    machine
}

fn complete(machine: &Machine) -> Result<(), Error> {
    let request = SetRequest {
        id: "big".to_owned(),
        key: "status".to_owned(),
        op: SetOp::Text("completed".to_owned()),
        by: None,
        claim: None,
        force: false,
        mode: Mode::Write,
    };
    set::set(&Context::on_model(machine), &request).map(drop)
}

fn depend(machine: &Machine) -> Result<(), Error> {
    let request = SetRequest {
        id: "p:1".to_owned(),
        key: "depends".to_owned(),
        op: SetOp::Add("q:1".to_owned()),
        by: None,
        claim: None,
        force: false,
        mode: Mode::Write,
    };
    set::set(&Context::on_model(machine), &request).map(drop)
}

fn adopt(machine: &Machine) -> Result<(), Error> {
    let request = NewRequest {
        title: "Bigger".to_owned(),
        is_program: true,
        children: vec!["d".to_owned()],
        ..NewRequest::default()
    };
    create::new(&Context::on_model(machine), &request).map(drop)
}

/// Each of these changes depends on a file of another plan: either the file prevents the change, or the command must also
/// change this file.
#[test]
fn a_plan_or_step_of_another_plan_is_not_ignored_while_it_is_being_saved() {
    type Act = fn(&Machine) -> Result<(), Error>;
    let cases: [(&str, &str, Act); 3] = [
        ("/plans/c/plan.md", "steps-open", complete),
        ("/plans/q/step-1.md", "dependency-cycle", depend),
        ("/plans/d/plan.md", "", adopt),
    ];
    for (path, expected, act) in cases {
        let machine = programs();
        let quiet = act(&machine.after_kill());
        assert_eq!(quiet.err().map_or("", |it| it.code()), expected, "{path}");
        for saving in [machine.saved_slowly_at(path, 1, 100_000), machine.renamed_away_at(path, 1, 100_000)] {
            let refused = act(&saving).expect_err(path);
            // The code is `not-found` if the request names a step and its file is missing at that moment.
            assert!(["file-changed", "not-found"].contains(&refused.code()), "{path}: {refused:?}");
            saving.finish_saves();
            assert_eq!(act(&saving).err().map_or("", |it| it.code()), expected, "{path}");
        }
    }
}
