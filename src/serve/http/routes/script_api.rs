//! The routes for scripts, as the OpenAPI document describes them. Their handlers are in
//! `serve::http::{script_api, events}`.

use serde_json::{Value, json};

use super::route::{LOOKING, MAKING, Route, WRITING, get, patch, post, query};
use crate::api::requests::{PatchRequest, PlanText, StepText};
use crate::api::schema::{self, PLACE, list};

pub(crate) fn routes() -> Vec<Route> {
    let plan = |route: Route| {
        route.links("id", "/id", &["get_plan", "claim_next_step", "list_all_steps", "note_plan"])
    };
    let step =
        |route: Route| route.links("id", "/id", &["get_step", "update_step", "complete_step", "remove_step"]);
    vec![
        plan(get("/api/plans", "list_all_plans", "list"))
            .about(
                "All plans except archived ones, as an array; with `title` only those with this id or title",
            )
            .takes([query(
                "title",
                schema::text(),
                "Only plans that have exactly this id or title",
                "Sign in",
            )])
            .takes([super::read::sorting()])
            .answers(200, list(part("SeedPlan"))),
        plan(post("/api/plans", "create_plan", "new"))
            .about("Create a plan from a text; the same text again changes nothing")
            .body::<PlanText>(json!({"title": "Sign in", "body": "People have accounts.\n"}))
            .answers(201, part("SeedPlan"))
            .makes_at("/api/plans/")
            .answers(200, part("SeedPlan"))
            .refuses(MAKING),
        get("/api/plans/{id}", "get_plan", "show")
            .about("One plan with its text")
            .answers(200, part("SeedPlanWithBody"))
            .refuses(LOOKING),
        get("/api/plans/{id}/next-step", "claim_next_step", "claim")
            .about("Claim the next step of a plan exclusively")
            .answers(200, json!({"anyOf": [part("SeedNext"), part("SeedComplete")]}))
            .refuses(WRITING)
            .links("id", "/step_id", &["get_step", "update_step", "complete_step", "release_step"]),
        get("/api/plans/{id}/steps", "list_all_steps", "list")
            .about("All steps of a plan with their texts, as an array")
            .answers(200, list(part("SeedStep")))
            .refuses(LOOKING),
        step(post("/api/plans/{id}/steps", "create_step", "add"))
            .about("Add a step from a text; the same text at the same number again changes nothing")
            .body::<StepText>(
                json!({"description": "# Measure it\n\nHow long does it take?\n", "created_by": "agent"}),
            )
            .answers(201, part("SeedStep"))
            .makes_at("/api/steps/")
            .answers(200, part("SeedStep"))
            .refuses(WRITING),
        get("/api/steps/{id}", "get_step", "show")
            .about("One step with its text")
            .answers(200, part("SeedStep"))
            .refuses(LOOKING),
        step(patch("/api/steps/{id}", "update_step", "set"))
            .about("Update a step: status, result, metadata and due in one write")
            .body::<PatchRequest>(json!({"result": "done and merged", "metadata": {"pr": 12}}))
            .answers(200, part("SeedStep"))
            .refuses(WRITING),
        get("/api/events", "follow_events", "watch")
            .about("An endless stream of changes as server-sent events")
            .media("text/event-stream")
            // This schema accepts everything, because generated clients check each event against it, and OpenAPI 3.1
            // cannot describe the events of a stream.
            .answers(200, json!({})),
    ]
}

fn part(name: &str) -> Value {
    json!({"$ref": format!("{PLACE}{name}")})
}

/// The schemas of the answers of these routes.
pub(crate) fn parts() -> Vec<(&'static str, Value)> {
    let plan = || schema::plan().field("inserted_at", schema::maybe_time());
    let step = schema::step().field("description", schema::text()).field("inserted_at", schema::maybe_time());
    let next = schema::Object::new()
        .field("status", json!({"const": "next"}))
        .fields(["step_id", "description", "title"], &schema::text())
        .field("step_number", json!({"type": "number"}))
        .field("claim", part("Granted"));
    let complete = schema::Object::new().field("status", json!({"const": "complete"}));
    vec![
        ("SeedPlan", plan().closed()),
        ("SeedPlanWithBody", plan().field("body", schema::text()).closed()),
        ("SeedStep", step.closed()),
        ("SeedNext", next.closed()),
        ("SeedComplete", complete.closed()),
    ]
}
