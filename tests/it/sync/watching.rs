//! What `watch` does with shared claims: it reports those of other machines, and renews those of its own clone.

#![expect(clippy::disallowed_methods, reason = "a test starts a process that holds a claim")]

use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::team::{Clone, Team};
use crate::http::client::Server;
use crate::mcp::Client;

/// The first event of a new watching process, which lists the claims when it starts.
#[track_caller]
fn first_event(clone: &Clone<'_>) -> Value {
    event_of(clone.command())
}

#[track_caller]
fn event_of(command: Command) -> Value {
    let event = Server::of(command, &["--http", "0"], "").event();
    json!([event["event"], event["id"], event["new"], event["by"]])
}

#[test]
fn claims_elsewhere_are_reported_and_records_of_this_clone_renewed() {
    let team = Team::new();
    let (a, b) = (team.clone_of("a"), team.clone_of("b"));
    b.claim("p:2");
    b.claim("p:3");
    b.run("done p:3").ok();
    a.claim("p:1");
    let (records, files) = (team.oids(), [b.step(1), b.step(2), b.step(3)]);
    b.make_renewals_due();
    assert_eq!(first_event(&b), json!(["claimed_elsewhere", "p:1", null, "ann"]));
    // The event comes after the renewal. Only open work of this clone is renewed, and no file is written.
    let renewed = team.oids();
    assert_ne!(renewed["p/2"], records["p/2"]);
    assert_eq!((&renewed["p/1"], &renewed["p/3"]), (&records["p/1"], &records["p/3"]));
    assert_eq!(team.records(), ["p/1 claimed ann", "p/2 claimed bob", "p/3 completed bob"]);
    assert_eq!([b.step(1), b.step(2), b.step(3)], files);
    a.run("release p:1").ok();
    assert_eq!(first_event(&b), json!(["released_elsewhere", "p:1", null, "ann"]));
    assert_eq!(team.oids()["p/2"], renewed["p/2"], "it is not due yet");
    a.claim("p:1");
    a.run("done p:1").ok();
    assert_eq!(first_event(&b), json!(["ended_elsewhere", "p:1", "completed", "ann"]));
}

#[test]
fn all_records_of_a_clone_are_renewed_by_one_push() {
    let team = Team::new();
    let (a, b) = (team.clone_of("a"), team.clone_of("b"));
    b.claim("p:2");
    b.claim("p:3");
    a.claim("p:1");
    let before = team.oids();
    b.make_renewals_due();
    team.calls();
    assert_eq!(first_event(&b), json!(["claimed_elsewhere", "p:1", null, "ann"]));
    let calls = team.calls();
    assert_eq!(calls.len(), 2, "a fetch and a push: {calls:#?}");
    // If the remote refuses one record, it must still accept the others.
    assert!(!calls[1].contains("--atomic"), "{calls:#?}");
    let after = team.oids();
    assert!(before["p/2"] != after["p/2"] && before["p/3"] != after["p/3"]);
}

#[test]
fn a_deleted_record_is_created_again_by_the_watching_process() {
    let team = Team::new();
    let (a, b) = (team.clone_of("a"), team.clone_of("b"));
    b.claim("p:2");
    a.git("push -q origin :refs/planwatch/claims/plans/p/2");
    assert!(team.records().is_empty());
    a.claim("p:1");
    b.make_renewals_due();
    assert_eq!(first_event(&b), json!(["claimed_elsewhere", "p:1", null, "ann"]));
    assert_eq!(team.records(), ["p/1 claimed ann", "p/2 claimed bob"]);
}

#[test]
fn a_claim_is_renewed_under_the_number_that_another_program_gave_its_step() {
    let team = Team::new();
    let (a, b) = (team.clone_of("a"), team.clone_of("b"));
    b.claim("p:2");
    b.git("mv plans/p/step-2.md plans/p/step-9.md");
    a.claim("p:1");
    b.make_renewals_due();
    assert_eq!(first_event(&b), json!(["claimed_elsewhere", "p:1", null, "ann"]));
    assert_eq!(team.records(), ["p/1 claimed ann", "p/2 claimed bob", "p/9 claimed bob"]);
}

#[test]
fn a_claim_is_renewed_only_while_its_owner_may_be_at_work() {
    let team = Team::new();
    let (a, b) = (team.clone_of("a"), team.clone_of("b"));
    let mut worker = Command::new("sleep").arg("1000").spawn().expect("it starts");
    b.claim(&format!("p:2 --pid {}", worker.id()));
    b.claim("p:3");
    a.claim("p:1");
    let at = |now: &str| {
        b.make_renewals_due();
        let before = team.oids();
        let mut command = b.command();
        command.env("PLANWATCH_NOW", now);
        assert_eq!(event_of(command), json!(["claimed_elsewhere", "p:1", null, "ann"]));
        a.run("release p:1").ok();
        a.claim("p:1");
        let after = team.oids();
        ["p/2", "p/3"].map(|it| before[it] != after[it])
    };
    // The local leases, of half an hour, have ended. The watching process renews the records for four hours.
    assert_eq!(at("2026-11-21T15:59:00Z"), [true, true]);
    worker.kill().and_then(|()| worker.wait()).expect("it ends");
    assert_eq!(at("2026-11-21T15:59:00Z"), [false, true]);
    assert_eq!(at("2026-11-21T16:01:00Z"), [false, false]);
    // The owner still has the claim, and a command of the owner renews it.
    assert!(b.run("note p:3 text").code == 0 && b.run("done p:3").code == 0);
}

#[test]
fn the_server_of_an_agent_renews_claims_while_it_runs() {
    let team = Team::new();
    let a = team.clone_of("a");
    let mut agent = Client::of_command(a.command(), &["mcp"], &json!({}));
    let mut call = |tool: &str, arguments: &Value| {
        agent.call(tool, arguments, &json!({}));
        assert_ne!(agent.receive()["result"]["isError"], true, "{tool}");
    };
    call("claim_next_step", &json!({}));
    let before = team.oids();
    call("get_plan", &json!({"plan": "p"}));
    assert_eq!(team.oids(), before, "it was confirmed a moment ago");
    a.make_renewals_due();
    call("get_plan", &json!({"plan": "p"}));
    let end = Instant::now() + Duration::from_secs(60);
    while team.oids() == before {
        assert!(Instant::now() < end, "it is not renewed");
        std::thread::yield_now();
    }
    assert_eq!(team.records(), ["p/1 claimed codex"]);
}

#[test]
fn the_watching_process_settles_nothing() {
    let team = Team::new();
    let (a, b) = (team.clone_of("a"), team.clone_of("b"));
    let (_, claim) = b.claim("p:2");
    team.fault("offline");
    assert_eq!(b.run(&format!("done p:2 --claim {claim}")).code, 0);
    team.heal();
    a.claim("p:1");
    b.make_renewals_due();
    assert_eq!(first_event(&b), json!(["claimed_elsewhere", "p:1", null, "ann"]));
    assert_eq!(team.records(), ["p/1 claimed ann", "p/2 claimed bob"]);
    assert!(b.run("list p").stderr.contains("not confirmed"), "{:?}", b.run("list p"));
}

#[test]
fn a_command_of_the_owner_renews_a_record_that_is_due() {
    let team = Team::new();
    let a = team.clone_of("a");
    a.claim("p:1");
    for line in ["attempt p:1 tried", "note p:1 text", "set p:1 due 2027-01-01"] {
        let before = team.oids();
        a.run(line).ok_code();
        assert_eq!(team.oids(), before, "{line}: it was confirmed a moment ago");
        a.make_renewals_due();
        a.run(line).ok_code();
        assert_ne!(team.oids(), before, "{line}");
    }
}
