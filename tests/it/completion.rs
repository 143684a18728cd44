//! Without `--force`, every interface refuses to complete a plan that has open steps.

use serde_json::{Value, json};

use crate::http::client::Server;
use crate::mcp::Client;
use crate::support::Place;

const PLAN: &str = "---\nstatus: active\n---\n# Auth\n";
const STEP: &str = "---\nstatus: pending\n---\n# Schema\n";

fn place() -> Place {
    let place = Place::new();
    place.write("plans/auth/plan.md", PLAN);
    place.write("plans/auth/step-1.md", STEP);
    place
}

/// The answer of a tool, or its refusal.
fn tool(place: &Place, set: &str, name: &str, arguments: &Value) -> Value {
    let mut client = Client::of(place, &["mcp", "--tools", set], &json!({}));
    client.call(name, arguments, &json!({}));
    let answer = client.receive();
    assert_eq!(client.end(), 0);
    let text = answer["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}"));
    serde_json::from_str(text).expect("it is JSON")
}

fn code(answer: &Value) -> &str {
    answer["error"]["code"].as_str().or_else(|| answer["code"].as_str()).unwrap_or("done")
}

#[test]
fn every_interface_refuses_to_complete_a_plan_with_open_steps() {
    let place = place();
    let server = Server::open(&place);
    let post = |path: &str, body: Value| server.json("POST", path, &body);
    let line = |line: &str| serde_json::from_str(&place.run(line).stderr).expect("it is JSON");
    let ways: [(&str, &dyn Fn() -> Value); 7] = [
        ("done", &|| line("--json done auth")),
        ("set", &|| line("--json set auth status completed")),
        ("set --yaml", &|| line("--json set auth status completed --yaml")),
        ("update_plan", &|| {
            tool(&place, "all", "update_plan", &json!({"plan": "auth", "status": "completed"}))
        }),
        ("update_plan_status", &|| {
            tool(&place, "compat", "update_plan_status", &json!({"plan_id": "auth", "status": "complete"}))
        }),
        ("POST done", &|| post("/api/plans/auth/done", json!({}))),
        ("POST set", &|| post("/api/plans/auth/set", json!({"key": "status", "value": "completed"}))),
    ];
    for (way, complete) in ways {
        assert_eq!(code(&complete()), "steps-open", "{way}");
        assert_eq!(place.text("plans/auth/plan.md"), PLAN, "{way}: nothing is written");
    }
    server.stop(&place);
}

#[test]
fn a_forced_completion_is_recorded_as_forced() {
    for line in ["done auth --force", "set auth status completed --force"] {
        let place = place();
        place.run(line).ok();
        let text = place.text("plans/auth/plan.md");
        assert!(text.contains("status: completed") && text.contains("forced: completed"), "{line}: {text}");
    }
}

#[test]
fn every_interface_completes_a_plan_without_open_steps() {
    let closed = STEP.replace("pending", "completed");
    for way in 0..3 {
        let place = place();
        place.write("plans/auth/step-1.md", &closed);
        match way {
            0 => drop(place.run("done auth").ok()),
            1 => drop(place.run("set auth status completed").ok()),
            _ => drop(tool(&place, "all", "update_plan", &json!({"plan": "auth", "status": "completed"}))),
        }
        assert!(place.text("plans/auth/plan.md").contains("status: completed"), "{way}");
    }
}
