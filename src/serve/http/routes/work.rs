//! Routes for work on steps: claims, changes of status, attempts, notes, confirmations.

use serde_json::json;

use super::Problem;
use super::answers::named;
use super::bodies::{AuthorBody, DryBody, TickBody};
use super::call::{Call, Reply};
use super::route::{MAKING, Route, WRITING, get, post};
use crate::api::context::Context;
use crate::api::error::Error;
use crate::ops::claim::{self, ClaimRequest, RenewRequest};
use crate::ops::confirm::{self, ConfirmRequest};
use crate::ops::note::{self, NoteRequest};
use crate::ops::release::{self, ReleaseRequest};
use crate::ops::sync::{self, SyncRequest};
use crate::ops::tick::{self, Boxes, TickRequest};
use crate::ops::update::{self, AttemptRequest, MoveRequest};
use crate::plan::transitions::Verb;

pub(crate) fn routes() -> Vec<Route> {
    [claims(), elsewhere(), moves(), records()].concat()
}

/// The operations that take the step's id from the answer to a claim.
const CLAIMED: &[&str] = &["get_step", "show", "complete_step", "release_step", "note_step", "attempt_step"];

fn claims() -> Vec<Route> {
    let claim = |route: Route, about| {
        let example = json!({"by": "ann", "lease": "2h", "dry_run": true});
        let route = route.about(about).body::<ClaimRequest>(example);
        route.links("id", "/step/id", CLAIMED).links("claim", "/claim/id", &["renew_claim"])
    };
    vec![
        claim(post("/api/claim", "claim", "claim"), "Claim the most urgent step of all plans exclusively")
            .does(named("claim"), WRITING, |context, call| claimed(context, call, None)),
        claim(
            post("/api/plans/{id}/claim", "claim_plan", "claim"),
            "Claim the next step of a plan exclusively",
        )
        .does(named("claim"), WRITING, |context, call| claimed(context, call, Some(call.plan()?))),
        claim(post("/api/steps/{id}/claim", "claim_step", "claim"), "Claim this step exclusively").does(
            named("claim"),
            WRITING,
            |context, call| claimed(context, call, Some(call.step()?)),
        ),
        post("/api/claims/{claim}/renew", "renew_claim", "claim")
            .about("Renew this claim; its lease starts again now")
            .body::<RenewRequest>(json!({"lease": "30m"}))
            .links("id", "/step/id", CLAIMED)
            .does(named("claim"), MAKING, renew),
        post("/api/steps/{id}/release", "release_step", "release")
            .about("Release a claimed step without finishing it")
            .body::<ReleaseRequest>(json!({"message": "needs the staging host", "dry_run": true}))
            .links("id", "/changes/0/id", &["get_step", "claim_step", "start_step"])
            .does(named("change"), WRITING, release_one),
        post("/api/release-expired", "release_expired", "release")
            .about("Release every step whose claim has lapsed")
            .body::<AuthorBody>(json!({"dry_run": true}))
            .does(named("change"), MAKING, release_expired),
    ]
}

/// Routes for claims that are shared with other machines.
fn elsewhere() -> Vec<Route> {
    vec![
        get("/api/sync", "sync_status", "sync")
            .about("List the claims of all machines that share a remote")
            .does(named("sync"), MAKING, |context, _| {
                Ok(Reply::of("sync", sync::status(context)?.to_json()))
            }),
        post("/api/sync", "sync", "sync")
            .about("Send unsent changes of claims, renew this clone's claims, and list those of all machines")
            .body::<DryBody>(json!({"dry_run": true}))
            .does(named("sync"), MAKING, synchronized),
    ]
}

fn synchronized(context: &Context, call: &Call) -> Result<Reply, Problem> {
    let DryBody { mode } = call.body()?;
    Ok(Reply::of("sync", sync::sync(context, &SyncRequest { mode })?.to_json()))
}

/// The handler that changes the status of the plan or the step that the path names.
macro_rules! to {
    ($what:ident $verb:ident) => {
        |context, call| moved(context, call, Verb::$verb, call.$what()?)
    };
}

fn moves() -> Vec<Route> {
    const STEP: &[&str] = &["get_step", "show", "reopen_step", "note_step", "remove_step"];
    const PLAN: &[&str] = &["get_plan", "show", "reopen_plan", "list_steps", "archive_plan"];
    let one = |path, name, command, about, to, handler| {
        let route = post(path, name, command).about(about).links("id", "/changes/0/id", to);
        let route = route.body::<MoveRequest>(json!({"message": "as agreed", "dry_run": true}));
        route.does(named("change"), WRITING, handler)
    };
    vec![
        one("/api/steps/{id}/start", "start_step", "start", "Begin a step", STEP, to!(step Start)),
        one("/api/steps/{id}/done", "complete_step", "done", "Complete a step", STEP, to!(step Done)),
        one("/api/steps/{id}/fail", "fail_step", "fail", "Mark a step as failed", STEP, to!(step Fail)),
        one("/api/steps/{id}/block", "block_step", "block", "Mark a step as blocked", STEP, to!(step Block)),
        one("/api/steps/{id}/skip", "skip_step", "skip", "Skip a step", STEP, to!(step Skip)),
        one("/api/steps/{id}/reopen", "reopen_step", "reopen", "Open a step again", STEP, to!(step Reopen)),
        one("/api/plans/{id}/start", "start_plan", "start", "Activate a draft plan", PLAN, to!(plan Start)),
        one("/api/plans/{id}/done", "complete_plan", "done", "Complete a plan", PLAN, to!(plan Done)),
        one("/api/plans/{id}/skip", "abandon_plan", "skip", "Abandon a plan", PLAN, to!(plan Skip)),
        one("/api/plans/{id}/reopen", "reopen_plan", "reopen", "Open a plan again", PLAN, to!(plan Reopen)),
    ]
}

fn records() -> Vec<Route> {
    let note = |route: Route, about| {
        let example =
            json!({"text": "the old table has 40 million rows", "type": "warning", "dry_run": true});
        route.about(about).body::<NoteRequest>(example).answers(200, named("change")).refuses(WRITING)
    };
    let confirm = |route: Route, about| {
        let route = route.about(about).body::<ConfirmRequest>(json!({"note": "after the backup"}));
        route.answers(200, named("change")).refuses(WRITING)
    };
    let tick = |route: Route, about| {
        let route = route.about(about).body::<TickBody>(json!({"tasks": [1], "dry_run": true}));
        route.answers(200, named("change")).refuses(WRITING)
    };
    vec![
        post("/api/steps/{id}/attempts", "attempt_step", "attempt")
            .about("Record an attempt at a step and its outcome")
            .body::<AttemptRequest>(
                json!({"outcome": "partly done", "notes": "tables made", "dry_run": true}),
            )
            .links("id", "/changes/0/id", &["get_step", "show", "complete_step"])
            .does(named("change"), WRITING, attempt),
        note(post("/api/steps/{id}/notes", "note_step", "note"), "Add a note to a step")
            .links("id", "/changes/0/id", &["get_step", "show"])
            .by(|context, call| noted(context, call, call.step()?)),
        note(post("/api/plans/{id}/notes", "note_plan", "note"), "Add a note to a plan")
            .links("id", "/changes/0/id", &["get_plan", "show"])
            .by(|context, call| noted(context, call, call.plan()?)),
        tick(post("/api/steps/{id}/tick", "tick_step", "tick"), "Tick tasks of a step")
            .links("id", "/changes/0/id", &["get_step", "show"])
            .by(|context, call| ticked(context, call, call.step()?)),
        tick(post("/api/plans/{id}/tick", "tick_plan", "tick"), "Tick goals and tasks of a plan")
            .links("id", "/changes/0/id", &["get_plan", "show"])
            .by(|context, call| ticked(context, call, call.plan()?)),
        confirm(
            post("/api/steps/{id}/confirm", "confirm_step", "confirm"),
            "Refused unless it is a dry run; the error names the command with which a person confirms a step",
        )
        .by(|context, call| confirmed(context, call, call.step()?)),
        confirm(
            post("/api/plans/{id}/confirm", "confirm_plan", "confirm"),
            "Refused unless it is a dry run; the error names the command with which a person confirms a phase",
        )
        .by(|context, call| confirmed(context, call, call.plan()?)),
    ]
}

fn claimed(context: &Context, call: &Call, target: Option<String>) -> Result<Reply, Problem> {
    let request = ClaimRequest { target, ..call.body()? };
    let reply = Reply::of("claim", claim::claim(context, &request)?.to_json());
    Ok(Reply { etag_at: Some("/step/etag"), ..reply })
}

fn renew(context: &Context, call: &Call) -> Result<Reply, Problem> {
    let request = RenewRequest { claim: call.name("claim").to_owned(), ..call.body()? };
    Ok(Reply::of("claim", claim::renew(context, &request)?.to_json()))
}

fn release_one(context: &Context, call: &Call) -> Result<Reply, Problem> {
    let request = ReleaseRequest { ids: vec![call.step()?], ..call.body()? };
    Ok(Reply::changed(&release::release(context, &request)?))
}

fn release_expired(context: &Context, call: &Call) -> Result<Reply, Problem> {
    let AuthorBody { by, mode } = call.body()?;
    let request = ReleaseRequest { by, mode, expired: true, ..ReleaseRequest::default() };
    Ok(Reply::changed(&release::release(context, &request)?))
}

fn moved(context: &Context, call: &Call, verb: Verb, id: String) -> Result<Reply, Problem> {
    let request = MoveRequest { verb, ids: vec![id], ..call.body()? };
    Ok(Reply::changed(&update::move_steps(context, &request)?))
}

fn attempt(context: &Context, call: &Call) -> Result<Reply, Problem> {
    let request = AttemptRequest { id: call.step()?, ..call.body()? };
    Ok(Reply::changed(&update::attempt(context, &request)?))
}

fn noted(context: &Context, call: &Call, id: String) -> Result<Reply, Problem> {
    let request = NoteRequest { id, ..call.body()? };
    Ok(Reply::changed(&note::note(context, &request)?))
}

fn ticked(context: &Context, call: &Call, id: String) -> Result<Reply, Problem> {
    let TickBody { tasks, untick, by, mode } = call.body()?;
    let request = TickRequest { id, boxes: Boxes::Numbers(tasks), ticked: !untick, by, mode };
    Ok(Reply::changed(&tick::tick(context, &request)?))
}

/// Refused unless it is a dry run, because a request over HTTP is not known to come from a person.
fn confirmed(context: &Context, call: &Call, id: String) -> Result<Reply, Problem> {
    let request = ConfirmRequest { id, ..call.body()? };
    confirm::confirm(context, &request).map(|it| Reply::changed(&it)).map_err(|error| match error {
        Error::PersonNeeded { .. } => Problem { code: "confirmation-by-person", ..error.into() },
        other => other.into(),
    })
}
