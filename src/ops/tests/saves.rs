//! Tests in which an editor saves while a command makes a change. If the command succeeds, the file must contain the change
//! once; if the command is refused, not at all. A plain `cargo test` tries some pairs of saves; with `PLANWATCH_R3=full`,
//! all pairs are tried.

use crate::api::context::Context;
use crate::api::error::Error;
use crate::disk::model::{Machine, sample};
use crate::ops::claim::{self, ClaimRequest};
use crate::ops::note::{self, NoteRequest};
use crate::ops::patch::{self, PatchRequest};
use crate::ops::release::{self, ReleaseRequest};
use crate::ops::set::{self, SetOp, SetRequest};
use crate::ops::update::{self, AttemptRequest, MoveRequest};
use crate::plan::transitions::Verb;
use crate::store::transaction::*;
use std::path::Path;

const STEP: &str = "/plans/p/step-1.md";
const PENDING: &str = "---\nstatus: pending\ntags: [b, x, b]\n---\n# One\n\n## Dependencies\n\nstep-0\n";
const CLAIMED: &str = "---\nstatus: in_progress\nclaim: {id: \"g0000001\", by: \"ann\", at: 2026-11-21T11:59:00Z}\n---\n# One\n";

/// A command. `count` returns how often a text contains the command's change.
struct Case {
    name: &'static str,
    before: &'static str,
    run: fn(&Context) -> Result<(), Error>,
    count: fn(&str) -> usize,
}

fn set(context: &Context, key: &str, op: SetOp) -> Result<(), Error> {
    let (id, key, mode) = ("p:1".to_owned(), key.to_owned(), Mode::Write);
    set::set(context, &SetRequest { id, key, op, by: None, claim: None, force: false, mode }).map(drop)
}

fn moved(context: &Context, verb: Verb, message: Option<&str>) -> Result<(), Error> {
    let (ids, message, mode) = (vec!["p:1".to_owned()], message.map(str::to_owned), Mode::Write);
    let request =
        MoveRequest { is_signed: false, verb, ids, message, by: None, claim: None, force: false, mode };
    update::move_steps(context, &request).map(drop)
}

const CASES: [Case; 9] = [
    Case {
        name: "set +=",
        before: PENDING,
        run: |context| set(context, "tags", SetOp::Add("new".to_owned())),
        count: |text| text.matches("b, new]").count(),
    },
    Case {
        name: "set -=",
        before: PENDING,
        run: |context| set(context, "tags", SetOp::Take("b".to_owned())),
        count: |text| usize::from(text.contains("[x, b]")),
    },
    Case {
        name: "set depends +=",
        before: PENDING,
        run: |context| set(context, "depends", SetOp::Add("2".to_owned())),
        count: |text| usize::from(text.contains("depends:\n  - 0\n  - 2\n")),
    },
    Case {
        name: "set status",
        before: PENDING,
        run: |context| set(context, "status", SetOp::Text("blocked".to_owned())),
        count: |text| text.matches("status: blocked").count(),
    },
    Case {
        name: "attempt",
        before: PENDING,
        run: |context| {
            let (id, outcome) = ("p:1".to_owned(), "no answer".to_owned());
            update::attempt(context, &AttemptRequest { id, outcome, ..AttemptRequest::default() }).map(drop)
        },
        count: |text| text.matches("outcome: no answer").count(),
    },
    Case {
        name: "note",
        before: PENDING,
        run: |context| {
            let (id, text) = ("p:1".to_owned(), "a word".to_owned());
            note::note(context, &NoteRequest { id, text, ..NoteRequest::default() }).map(drop)
        },
        count: |text| text.matches("a word").count(),
    },
    Case {
        name: "claim",
        before: "---\nstatus: pending\n---\n# One\n",
        run: |context| {
            let report = claim::claim(
                context,
                &ClaimRequest { target: Some("p:1".to_owned()), ..ClaimRequest::default() },
            )?;
            let id = report.claim.unwrap().id;
            let file = context.plans.read(Path::new("p/step-1.md")).unwrap().bytes;
            // An editor that has not read the claim may have saved over it since.
            let text = String::from_utf8(file).unwrap();
            assert!(!text.contains("claim:") || text.contains(&id), "{text}");
            Ok(())
        },
        count: |text| text.matches("claim:").count(),
    },
    Case {
        name: "fail",
        before: CLAIMED,
        run: |context| moved(context, Verb::Fail, Some("it broke")),
        count: |text| text.matches("it broke").count(),
    },
    Case {
        name: "release",
        before: CLAIMED,
        run: |context| {
            let ids = vec!["p:1".to_owned()];
            release::release(context, &ReleaseRequest { ids, ..ReleaseRequest::default() }).map(drop)
        },
        count: |text| usize::from(text.contains("status: pending") && !text.contains("claim:")),
    },
];

fn machine(step: &str) -> Machine {
    let plan = "# P\n";
    let (zero, two) = ("---\nstatus: completed\n---\n# Zero\n", "---\nstatus: completed\n---\n# Two\n");
    Machine::with(&[
        ("/plans/p/plan.md", plan),
        ("/plans/p/step-0.md", zero),
        (STEP, step),
        ("/plans/p/step-2.md", two),
    ])
}

/// While each command runs, an editor saves before the call `first` and reads the file before the call `again`. Before the
/// call `second`, it saves the text that it read, with an addition.
#[test]
fn answers_match_the_file_however_often_an_editor_saves() {
    let (mut seen_twice, mut saves) = (0, sample(13));
    for case in &CASES {
        let machine = machine(case.before);
        let quiet = machine.after_kill();
        (case.run)(&Context::on_model(&quiet)).unwrap();
        assert_eq!((case.count)(&quiet.text(STEP).unwrap()), 1, "{}", case.name);
        let n = quiet.calls();
        for first in 1..=n {
            for again in (first..first + 12).step_by(4) {
                for second in (again + 1..again + 14).step_by(5).filter(|_| saves.takes()) {
                    let saving = machine.saved_twice(first, again, second);
                    let answer = (case.run)(&Context::on_model(&saving));
                    let text = saving.text(STEP).unwrap();
                    let count = (case.count)(&text);
                    let place = format!("{} {first} {again} {second}: {answer:?}\n{text}", case.name);
                    match answer {
                        Ok(()) if saving.has_overwritten() => assert!(count <= 1, "{place}"),
                        Ok(()) => assert_eq!(count, 1, "{place}"),
                        Err(_) => assert_eq!(count, 0, "{place}"),
                    }
                    seen_twice += usize::from(text.contains("first\n") && text.contains("token\n"));
                }
            }
        }
    }
    assert!(seen_twice > 200, "the editor rarely saved twice: {seen_twice}");
}

/// An editor truncates a file and writes it later. All that the editor wrote must be preserved, and planwatch must not write
/// to the file meanwhile.
#[test]
fn a_slow_save_is_not_taken_for_a_short_text() {
    let (mut n_refused, mut n_done, mut saves) = (0, 0, sample(5));
    for case in &CASES {
        // After this change, the undo log records the length of the file.
        let machine = machine(case.before);
        (CASES[3].run)(&Context::on_model(&machine)).ok();
        let quiet = machine.after_kill();
        let n = if (case.run)(&Context::on_model(&quiet)).is_ok() { quiet.calls() } else { continue };
        for truncated in 1..=n {
            for written in [truncated + 2, truncated + 30, truncated + 1000] {
                if !saves.takes() {
                    continue;
                }
                let saving = machine.saved_slowly(truncated, written);
                let before = saving.text(STEP).unwrap();
                let answer = (case.run)(&Context::on_model(&saving));
                saving.finish_saves();
                let text = saving.text(STEP).unwrap();
                let context = Context::on_model(&saving);
                let kept = context.plans.kept();
                let is_kept = |it: &crate::disk::Kept| {
                    let path = Path::new("/plans").join(&it.kept);
                    saving.text(&path.to_string_lossy()).is_some_and(|it| it.contains("token"))
                };
                let place = format!("{} {truncated} {written}: {answer:?}\n{text}", case.name);
                let has_both = text.contains("# One") && text.contains("status:");
                assert!(has_both || before.is_empty(), "{place}");
                assert!(!saving.has_saved() || text.contains("token") || kept.iter().any(is_kept), "{place}");
                match answer {
                    Err(error) if error.code() == "file-changed" => n_refused += 1,
                    Err(error) => panic!("{error:?} {place}"),
                    Ok(()) => n_done += 1,
                }
            }
        }
    }
    assert!(n_refused > 50 && n_done > 50, "{n_refused} {n_done}");
}

/// `patch` replaces the body that it has read. If an editor saves another body afterwards, that body must not be replaced.
#[test]
fn a_new_text_does_not_replace_what_an_editor_saves_meanwhile() {
    let machine = machine(PENDING);
    let patch = |machine: &Machine| {
        let (id, text) = ("p:1".to_owned(), Some("A new text.".to_owned()));
        let request = PatchRequest { id, text, ..PatchRequest::default() };
        patch::patch(&Context::on_model(machine), &request).map(drop)
    };
    let quiet = machine.after_kill();
    patch(&quiet).unwrap();
    let mut n_refused = 0;
    for call in 1..=quiet.calls() {
        let saving = machine.saved_before(call);
        let answer = patch(&saving);
        let text = saving.text(STEP).unwrap();
        let is_there = saving.saves().iter().all(|it| text.contains(it.as_str()));
        let place = format!("{call}: {answer:?}\n{text}");
        assert!(is_there || (answer.is_ok() && n_refused == 0), "{place}");
        assert_eq!(text.contains("A new text."), answer.is_ok(), "{place}");
        n_refused += usize::from(answer.is_err());
    }
    assert!(n_refused > 3, "{n_refused}");
}
