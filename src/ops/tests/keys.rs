//! Tests that a request with a key is carried out once, even if it is killed before a call to the disk and sent again. For
//! most requests, a plain `cargo test` tries every seventh call; with `PLANWATCH_R3=full`, all calls are tried.

use crate::api::context::Context;
use crate::api::error::Error;
use crate::api::request_key::Answer;
use crate::api::request_key::RequestKey;
use serde_json::Value;
use std::sync::Arc;

use crate::disk::model::{Machine, sample};
use crate::ops::add::{self, AddRequest};
use crate::ops::archive::{self, ArchiveRequest};
use crate::ops::check::{CheckRequest, check as check_plans};
use crate::ops::claim::{self, ClaimRequest};
use crate::ops::create::{self, NewRequest};
use crate::ops::note::{self, NoteRequest};
use crate::ops::renumber::{self, RenumberRequest};
use crate::ops::undo::{self, UndoRequest};
use crate::ops::update::{self, AttemptRequest, MoveRequest};
use crate::plan::transitions::Verb;
use crate::store::idempotency::*;
use crate::store::repeat::REPEATED;
use crate::store::transaction::Mode;

type Act = fn(&Context) -> Result<Value, Error>;

const STEP: &str = "---\nstatus: pending\n---\n# Step\n";

fn machine() -> Machine {
    let files = [("/plans/p/plan.md", "# P\n"), ("/plans/p/step-1.md", STEP), ("/plans/p/step-2.md", STEP)];
    let machine = Machine::with(&files);
    machine.plans().made_runtime_dir().unwrap();
    let request = NoteRequest { id: "p:2".to_owned(), text: "before".to_owned(), ..NoteRequest::default() };
    note::note(&Context::on_model(&machine), &request).unwrap();
    machine
}

/// Handles a request with a key in the same way as a surface.
fn ask(machine: &Machine, key: &str, act: Act) -> Result<Value, Error> {
    let (context, name) = (Context::on_model(machine), name_of(key));
    let earlier = find(&context, &name)?;
    if let Some(answer) = earlier.as_ref().and_then(|it| it.answer.as_ref()) {
        return Ok(serde_json::from_str(&answer.body).unwrap());
    }
    let key = Arc::new(RequestKey::new(&name, "request", context.now, earlier));
    let context = Context { key: Some(key), ..context };
    let said = carried_out(&context, act)?;
    let answer = Answer { status: 200, headers: Vec::new(), body: said.to_string() };
    keep(&context, &name, "request", answer).ok();
    Ok(said)
}

fn carried_out(context: &Context, act: Act) -> Result<Value, Error> {
    match context.key.as_ref().and_then(|it| it.made()).filter(|it| !it.is_claim()) {
        Some(made) => Ok(made.to_json(context)),
        None => act(context),
    }
}

/// Like [`ask`], but the surface is killed before it records the answer.
fn ask_without_answer(machine: &Machine, act: Act) -> Result<Value, Error> {
    let context = Context::on_model(machine);
    let key = Some(Arc::new(begin(&context, "k", "request")?));
    carried_out(&Context { key, ..context }, act)
}

fn fix(context: &Context) -> Result<Value, Error> {
    Ok(check_plans(context, &CheckRequest { fix: true, ..CheckRequest::default() })?.to_json())
}

fn note_step(context: &Context) -> Result<Value, Error> {
    let request = NoteRequest { id: "p:1".to_owned(), text: "once".to_owned(), ..NoteRequest::default() };
    Ok(note::note(context, &request)?.to_json())
}

fn note_plan(context: &Context) -> Result<Value, Error> {
    let request = NoteRequest { id: "p".to_owned(), text: "once".to_owned(), ..NoteRequest::default() };
    Ok(note::note(context, &request)?.to_json())
}

fn attempt(context: &Context) -> Result<Value, Error> {
    let request =
        AttemptRequest { id: "p:1".to_owned(), outcome: "partly".to_owned(), ..AttemptRequest::default() };
    Ok(update::attempt(context, &request)?.to_json())
}

fn done(context: &Context) -> Result<Value, Error> {
    let (ids, message) = (vec!["p:1".to_owned()], Some("merged".to_owned()));
    let (verb, by, claim, force, mode) = (Verb::Done, None, None, true, Mode::Write);
    let request = MoveRequest { is_signed: false, verb, ids, message, by, claim, force, mode };
    Ok(update::move_steps(context, &request)?.to_json())
}

fn add_step(context: &Context) -> Result<Value, Error> {
    let request = AddRequest { plan: "p".to_owned(), title: "Third".to_owned(), ..AddRequest::default() };
    Ok(add::add(context, &request)?.to_json())
}

fn new_plan(context: &Context) -> Result<Value, Error> {
    let request = NewRequest {
        title: "Other".to_owned(),
        steps: ["One", "Two"].map(|it| it.to_owned().into()).into(),
        ..NewRequest::default()
    };
    Ok(create::new(context, &request)?.to_json())
}

fn move_step(context: &Context) -> Result<Value, Error> {
    let request =
        RenumberRequest { id: "p:1".to_owned(), after: "2".to_owned(), ..RenumberRequest::default() };
    Ok(renumber::renumber(context, &request)?.to_json())
}

fn archive_plan(context: &Context) -> Result<Value, Error> {
    let request =
        ArchiveRequest { plans: vec!["p".to_owned()], restores: false, force: false, mode: Mode::Write };
    Ok(archive::archive(context, &request)?.to_json())
}

fn undo_change(context: &Context) -> Result<Value, Error> {
    Ok(undo::undo(context, &UndoRequest::default())?.to_json())
}

fn claim_step(context: &Context) -> Result<Value, Error> {
    let request = ClaimRequest { target: Some("p".to_owned()), ..ClaimRequest::default() };
    Ok(claim::claim(context, &request)?.to_json())
}

/// For each tried call to the disk, kills the request before the call. Then sends the request again, both with the files as
/// they are after the kill and with each state of the files that a power cut may leave.
fn check(act: Act) {
    let whole = machine();
    let expected = ask(&whole, "k", act).unwrap();
    let (mut n_anew, mut n_again, mut calls) = (0, 0, sample(7));
    for call in (1..).filter(|_| calls.takes()) {
        let dying = machine().dying_before(call);
        let answer = ask(&dying, "k", act);
        if !dying.has_died() {
            assert_eq!(answer.unwrap()["changes"], expected["changes"]);
            break;
        }
        // After a power cut the undo log may lack the change, so there may be nothing to undo.
        let is_undo = expected["verb"] == "undo";
        let cuts = if is_undo { Vec::new() } else { dying.after_power_cut() };
        for after in [dying.after_kill()].into_iter().chain(cuts) {
            let context = Context::on_model(&after);
            let is_made = find(&context, &name_of("k")).unwrap().is_some();
            n_again += usize::from(is_made);
            n_anew += usize::from(!is_made);
            let again = ask(&after, "k", act).unwrap();
            assert_eq!(after.tree(), whole.tree(), "call {call}");
            assert_eq!(again["verb"], expected["verb"], "call {call}");
            // The report of an undo names files. The record of the undo does not, because it is written before the files are
            // restored.
            if !is_undo {
                assert_eq!(again["changes"][0]["id"], expected["changes"][0]["id"], "call {call}");
                assert_eq!(again["diff"], expected["diff"], "call {call}");
            }
            assert_eq!(ask(&after, "k", act).unwrap(), again, "call {call}");
            assert_eq!(after.tree(), whole.tree(), "call {call}");
        }
    }
    assert!(n_anew > 1 && n_again > 1, "{n_anew} {n_again}");
}

#[test]
fn a_note_is_added_once() {
    check(note_step);
    check(note_plan);
}

#[test]
fn an_attempt_is_recorded_once() {
    check(attempt);
}

#[test]
fn a_step_is_completed_once() {
    check(done);
}

#[test]
fn a_step_is_added_once() {
    check(add_step);
}

#[test]
fn a_plan_is_made_once() {
    check(new_plan);
}

#[test]
fn a_change_of_several_files_is_made_once() {
    check(move_step);
    check(archive_plan);
}

#[test]
fn one_change_is_undone() {
    check(undo_change);
}

#[test]
fn a_request_with_several_changes_makes_those_that_are_missing() {
    const OTHER_ID: &str = "---\nid: q:1\n---\n# Step\n";
    let machine = || {
        let steps = [("/plans/p/step-1.md", OTHER_ID), ("/plans/p/step-2.md", OTHER_ID)];
        let machine = Machine::with(&[&[("/plans/p/plan.md", "# P\n")], &steps[..]].concat());
        machine.plans().made_runtime_dir().unwrap();
        machine
    };
    let quiet = machine();
    ask(&quiet, "k", fix).unwrap();
    for call in 1.. {
        let dying = machine().dying_before(call);
        ask(&dying, "k", fix).ok();
        if !dying.has_died() {
            break;
        }
        let after = dying.after_kill();
        ask(&after, "k", fix).unwrap();
        for n in 1..=2 {
            let path = format!("/plans/p/step-{n}.md");
            assert_eq!(after.text(&path), quiet.text(&path), "call {call}");
        }
    }
    assert!(quiet.text("/plans/p/step-2.md").unwrap().contains("id: p:2"));
}

/// The ids of the claims in the steps' files.
fn claims(machine: &Machine) -> Vec<String> {
    let texts = ["/plans/p/step-1.md", "/plans/p/step-2.md"].map(|it| machine.text(it).unwrap());
    let id = |it: &String| Some(it.split_once("claim: {id: \"")?.1[..8].to_owned());
    texts.iter().filter_map(id).collect()
}

#[test]
fn one_step_is_claimed() {
    let mut n_again = 0;
    for call in 1.. {
        let dying = machine().dying_before(call);
        ask(&dying, "k", claim_step).ok();
        if !dying.has_died() {
            break;
        }
        let after = dying.after_kill();
        find(&Context::on_model(&after), &name_of("k")).unwrap();
        let before = claims(&after);
        let again = ask(&after, "k", claim_step).unwrap();
        let id = again["claim"]["id"].as_str().unwrap().to_owned();
        assert_eq!(claims(&after), std::slice::from_ref(&id), "call {call}");
        assert_eq!(again["step"]["claim"]["id"], id.as_str(), "call {call}");
        n_again += usize::from(before == [id]);
        // The claim is complete: another worker gets the other step.
        let other = claim_step(&Context::on_model(&after)).unwrap();
        assert_eq!(other["step"]["id"], "p:2", "call {call}");
    }
    assert!(n_again > 5, "{n_again}");
}

/// Between the kill and the repetition, another worker claims a step. The other worker must not get a step that the first
/// request has claimed.
#[test]
fn a_claim_waits_for_its_repetition() {
    for call in 1.. {
        let dying = machine().dying_before(call);
        ask(&dying, "k", claim_step).ok();
        if !dying.has_died() {
            break;
        }
        let after = dying.after_kill();
        let other = claim_step(&Context::on_model(&after)).unwrap();
        let again = ask(&after, "k", claim_step).unwrap();
        assert_ne!(again["step"]["id"], other["step"]["id"], "call {call}");
        assert_eq!(claims(&after).len(), 2, "call {call}");
        assert_eq!(ask(&after, "k", claim_step).unwrap(), again, "call {call}");
    }
}

/// An editor saves twice while the request runs. The text of its second save may contain the change that the request made.
#[test]
fn a_change_that_an_editor_saved_again_is_repeated_from_its_record() {
    let cases: [(Act, &str); 4] =
        [(note_step, "once"), (attempt, "partly"), (done, "merged"), (claim_step, "claim: {id: ")];
    for (act, text) in cases {
        let quiet = machine();
        ask(&quiet, "k", act).unwrap();
        let (n, mut n_included, mut saves) = (quiet.calls(), 0, sample(7));
        for first in 1..=n {
            let all = [1, 2, 4, 7].map(|it| (first + it, first + it + 1));
            for (again, second) in all.into_iter().filter(|_| saves.takes()) {
                let saving = machine().saved_twice(first, again, second);
                let is_made = ask_without_answer(&saving, act).is_ok();
                let after = saving.after_kill();
                let saved = after.text("/plans/p/step-1.md").unwrap();
                if !is_made || saving.has_overwritten() || !saved.contains("token\n") {
                    continue;
                }
                n_included += 1;
                ask_without_answer(&after, act).unwrap();
                let repeated = after.text("/plans/p/step-1.md").unwrap();
                assert_eq!(repeated, saved, "{first} {again} {second}");
                assert_eq!(saved.matches(text).count(), 1, "{first} {again} {second}\n{saved}");
            }
        }
        assert!(n_included > 6, "{n_included}");
    }
}

/// As on the command line: no answer is stored, so only the record of the change shows that it was made.
#[test]
fn a_key_without_an_answer_is_repeated_from_its_record() {
    let machine = machine();
    let note = |request: &str| {
        let context = Context::on_model(&machine);
        let key = Some(Arc::new(begin(&context, "k", request)?));
        let request = NoteRequest { id: "p:1".to_owned(), text: "once".to_owned(), ..NoteRequest::default() };
        note::note(&Context { key, ..context }, &request)
    };
    assert_eq!(note("one").unwrap().changes[0].did, "noted");
    let tree = machine.tree();
    let again = note("one").unwrap();
    assert_eq!((again.changes[0].did.as_str(), again.changes[0].was_written), (REPEATED, false));
    assert_eq!(again.changes[0].now["notes"].as_array().map(Vec::len), Some(1));
    assert_eq!(note("two").unwrap_err().code(), "idempotency-key-reused");
    assert_eq!(machine.tree(), tree);
}

#[test]
fn keys_are_remembered_for_a_day_however_many_there_are() {
    let machine = machine();
    let begin = Context::on_model(&machine).now;
    let at = |seconds: i64| Context { now: begin.plus_seconds(seconds), ..Context::on_model(&machine) };
    let answer = || Answer { status: 200, headers: Vec::new(), body: String::new() };
    for n in 0..1100 {
        keep(&at(n), &format!("k{n}"), "request", answer()).unwrap();
    }
    let find = |name: &str, seconds: i64| find(&at(seconds), name).unwrap().is_some();
    assert!(find("k0", REMEMBERED - 1) && find("k1099", REMEMBERED));
    assert!(!find("k0", REMEMBERED) && !find("new", 0));
    let counted = bytes(&at(0)).unwrap();
    keep(&at(2 * REMEMBERED), "late", "request", answer()).unwrap();
    assert!(find("late", 2 * REMEMBERED) && bytes(&at(2 * REMEMBERED)).unwrap() < counted / 1000);
}
