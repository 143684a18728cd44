//! Requests with an `Idempotency-Key` whose daemon is killed before the answer.

use std::io::Write;

use serde_json::{Value, json};

use crate::support::Place;

use super::client::Server;

const STEP: &str = "plans/p/step-1.md";
const PENDING: &str = "---\nstatus: pending\n---\n# Step\n";

fn place() -> Place {
    let place = Place::new();
    place.write("plans/p/plan.md", "# P\n");
    for n in 1..=3 {
        place.write(&format!("plans/p/step-{n}.md"), PENDING);
    }
    place
}

/// Sends a request and kills the daemon as soon as the file of the first step has changed.
fn send_and_kill(place: &Place, server: &Server, path: &str, headers: &str, body: &Value) {
    let before = place.text(STEP);
    let mut stream = server.connect();
    let kind = "Content-Type: application/json\r\n";
    let request = server.request("POST", path, &format!("{kind}{headers}"), &body.to_string());
    stream.write_all(request.as_bytes()).expect("it takes requests");
    while place.text(STEP) == before {
        std::thread::yield_now();
    }
    server.kill();
}

#[test]
fn a_note_is_added_once_although_the_daemon_was_killed() {
    let place = place();
    for round in 1..=8 {
        let key = format!("Idempotency-Key: note-{round}\r\n");
        let body = json!({"text": format!("note {round}")});
        send_and_kill(&place, &Server::open(&place), "/api/steps/p:1/notes", &key, &body);
        let server = Server::open(&place);
        let again = server.json_with("POST", "/api/steps/p:1/notes", &key, &body);
        assert_eq!((again.status, again.header("idempotent-replayed")), (200, Some("true")), "{again:?}");
        assert_eq!(again.json()["changes"][0]["id"], "p:1", "{again:?}");
        assert_eq!(again.json()["changes"][0]["now"]["notes"].as_array().map(Vec::len), Some(round));
        assert_eq!(place.text(STEP).matches(&format!("note {round}")).count(), 1, "{}", place.text(STEP));
        let third = server.json_with("POST", "/api/steps/p:1/notes", &key, &body);
        assert_eq!(third.body, again.body);
        server.kill();
    }
}

#[test]
fn a_claim_is_answered_again_although_the_daemon_was_killed() {
    for round in 1..=8 {
        let place = place();
        let key = format!("Idempotency-Key: claim-{round}\r\n");
        send_and_kill(&place, &Server::open(&place), "/api/plans/p/claim", &key, &json!({"by": "ann"}));
        // Another worker does not get the step meanwhile.
        let other = place.run("claim p --by bob --json").json();
        assert_eq!(other["step"]["id"], "p:2", "{other}");
        let server = Server::open(&place);
        let again = server.json_with("POST", "/api/plans/p/claim", &key, &json!({"by": "ann"}));
        assert_eq!((again.status, again.header("idempotent-replayed")), (200, Some("true")), "{again:?}");
        let claim = again.json()["claim"]["id"].as_str().expect("a claim").to_owned();
        assert_eq!(again.json()["step"]["id"], "p:1", "{again:?}");
        assert!(place.text(STEP).contains(&claim), "{}", place.text(STEP));
        assert_eq!(place.text("plans/p/step-3.md"), PENDING);
        let done = json!({"message": "merged", "claim": claim});
        assert_eq!(server.json_with("POST", "/api/steps/p:1/done", "", &done).status, 200);
    }
}

#[test]
fn every_route_for_scripts_is_idempotent_with_a_key() {
    let place = place();
    let server = Server::open(&place);
    let ask = |method: &str, path: &str, body: &Value| {
        let key = format!("Idempotency-Key: {method} {path}\r\n");
        let first = server.json_with(method, path, &key, body);
        let again = server.json_with(method, path, &key, body);
        assert_eq!((again.status, &again.body), (first.status, &first.body));
        assert_eq!(
            (first.header("idempotent-replayed"), again.header("idempotent-replayed")),
            (None, Some("true"))
        );
        first
    };
    let step = ask("POST", "/api/plans/p/steps", &json!({"description": "# Fourth"}));
    assert_eq!((step.status, &step.json()["id"]), (201, &json!("p:4")));
    let plan = ask("POST", "/api/plans", &json!({"title": "Other", "body": "# Other"}));
    assert_eq!((plan.status, &plan.json()["id"]), (201, &json!("other")));
    let patched = ask("PATCH", "/api/steps/p:1", &json!({"result": "half of it"}));
    assert_eq!((patched.status, place.text(STEP).matches("half of it").count()), (200, 1));
    assert_eq!(ask("DELETE", "/api/steps/p:3", &Value::Null).status, 200);
}

#[test]
fn a_method_without_a_route_is_405_even_with_a_used_key() {
    let place = place();
    let server = Server::open(&place);
    let key = "Idempotency-Key: used\r\n";
    let made = server.json_with("POST", "/api/steps/p:1/notes", key, &json!({"text": "one"}));
    assert_eq!(made.status, 200, "{made:?}");
    for (method, path) in [
        ("PATCH", "/api/new"),
        ("DELETE", "/api/plans"),
        ("POST", "/api/plans/p/next-step"),
        ("PATCH", "/api/undo"),
    ] {
        let refused = server.json_with(method, path, key, &json!({}));
        assert_eq!(refused.problem(), (405, "method-not-allowed".to_owned()), "{method} {path}");
        assert!(refused.header("allow").is_some(), "{method} {path}");
    }
    // The key still belongs to its first request.
    let other = server.json_with("POST", "/api/new", key, &json!({"title": "Sign in"}));
    assert_eq!(other.problem(), (422, "idempotency-key-reused".to_owned()));
}

#[test]
fn plans_are_sorted_as_requested_and_removed_only_with_yes() {
    let place = Place::new();
    for (id, priority) in [("a", "low"), ("b", "critical"), ("c", "medium")] {
        place.write(&format!("plans/{id}/plan.md"), format!("---\npriority: {priority}\n---\n# {id}\n"));
    }
    let server = Server::open(&place);
    let ids = |query: &str| {
        let plans = server.json("GET", &format!("/api/plans{query}"), &Value::Null);
        let all = plans.as_array().cloned().unwrap_or_default();
        all.iter().map(|it| it["id"].as_str().unwrap_or_default().to_owned()).collect::<Vec<_>>()
    };
    let (forward, back) = (ids("?sort=priority"), ids("?sort=-priority"));
    assert!(forward.len() == 3 && forward.iter().eq(back.iter().rev()), "{forward:?} {back:?}");
    assert_eq!(ids("?sort=-id"), ["c", "b", "a"]);
    for path in ["/api/plans?sort=size", "/api/list?sort=size"] {
        let refused = server.ask("GET", path, "", "");
        assert_eq!(refused.status, 400, "{refused:?}");
    }
    let refused = server.json_with("DELETE", "/api/plans/a", "", &Value::Null);
    assert_eq!(refused.problem().0, 400, "{refused:?}");
    let hint = refused.json()["hint"].to_string();
    assert!(hint.contains("yes=true"), "{hint}");
    assert!(place.file("plans/a").exists());
}
