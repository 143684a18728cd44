//! Routes for decisions, insights and scripts.

use serde_json::json;

use super::answers::named;
use super::call::{Call, Reply};
use super::read::text;
use super::route::{LOOKING, MAKING, Route, delete, get, post, query};
use super::{Problem, pages};
use crate::api::context::Context;
use crate::api::error::Error;
use crate::api::schema;
use crate::ops::decide::{self, DecideRequest, DecisionsRequest};
use crate::ops::insight::{self, InsightRequest, InsightsRequest};
use crate::ops::remove::RemoveRequest;
use crate::ops::script::{self, AddRequest};
use crate::serve::http::extract::{plan_of, step_named};

pub(crate) fn routes() -> Vec<Route> {
    [decisions(), insights(), scripts()].concat()
}

fn decisions() -> Vec<Route> {
    let example = json!({
        "topic": "authentication", "decision": "Use JWT", "reasoning": "No session store to run", "dry_run": true,
    });
    vec![
        get("/api/decisions", "list_decisions", "decide")
            .about("List what was decided, newest first")
            .asks::<DecisionsRequest>(&json!({
                "topic": "authentication", "plan": "feature-auth", "tag": "security", "since": "30d",
                "step": "feature-auth:1",
            }))
            .takes(pages::parameters())
            .links("id", "/decisions/0/id", &["show"])
            .does(named("decision-list"), LOOKING, list_decisions),
        post("/api/decisions", "decide", "decide")
            .about("Record what was decided and why")
            .body::<DecideRequest>(example)
            .links("id", "/changes/0/id", &["show"])
            .makes(named("change"), "/api/show/", record_decision),
        get("/api/decisions/topics", "list_topics", "decide")
            .about("List the topics of decisions")
            .takes(pages::parameters())
            .does(named("topic-list"), &[], topics),
    ]
}

fn insights() -> Vec<Route> {
    let example =
        json!({"title": "The cache is cold after a restart", "text": "Warm it first.", "dry_run": true});
    vec![
        get("/api/insights", "list_insights", "insight")
            .about("List what was learned, newest first")
            .asks::<InsightsRequest>(&json!({
                "title": "Caching", "plan": "feature-auth", "tag": "security", "since": "30d",
            }))
            .takes(pages::parameters())
            .links("id", "/insights/0/id", &["show"])
            .does(named("insight-list"), LOOKING, list_insights),
        post("/api/insights", "record_insight", "insight")
            .about("Record what was learned")
            .body::<InsightRequest>(example)
            .links("id", "/changes/0/id", &["show"])
            .makes(named("change"), "/api/show/", record_insight),
    ]
}

fn scripts() -> Vec<Route> {
    vec![
        get("/api/scripts", "list_scripts", "script list")
            .about("List the scripts; no route runs them")
            .takes([query("plan", schema::text(), "Only those of this plan", "feature-auth")])
            .takes(pages::parameters())
            .links("name", "/scripts/0/id", &["get_script"])
            .does(named("script-list"), LOOKING, list_scripts),
        post("/api/scripts", "add_script", "script add")
            .about("Add a named command")
            .body::<AddRequest>(json!({"name": "build", "command": "make all", "dry_run": true}))
            .links("name", "/changes/0/id", &["get_script", "remove_script"])
            .makes(named("change"), "/api/scripts/", add_script),
        get("/api/scripts/{name}", "get_script", "script show")
            .about("Show a script, with its paths resolved")
            .does(named("script"), LOOKING, show_script),
        delete("/api/scripts/{name}", "remove_script", "script remove")
            .about("Remove a script; undo restores it")
            .asks::<RemoveRequest>(&json!({"dry_run": true}))
            .does(named("change"), MAKING, remove_script),
    ]
}

fn list_decisions(context: &Context, call: &Call) -> Result<Reply, Problem> {
    let mut request = DecisionsRequest { limit: usize::MAX, ..call.asked()? };
    request.plan = plan_of(request.plan)?;
    request.step = request.step.map(|it| step_named(&it)).transpose()?;
    if request.plan.is_some() && request.step.is_some() {
        return Err(Error::usage("`plan` and `step` cannot be given together", "use only one of them").into());
    }
    let reply = Reply::of("decision-list", decide::decisions(context, &request)?.to_json());
    pages::page_with_more(call, reply, "decisions", |it| text(it, "id"))
}

fn record_decision(context: &Context, call: &Call) -> Result<Reply, Problem> {
    let mut request: DecideRequest = call.body()?;
    if request.plan.is_some() && request.step.is_some() {
        return Err(Error::usage("`plan` and `step` cannot be given together", "use only one of them").into());
    }
    request.plan = plan_of(request.plan)?;
    request.step = request.step.map(|it| step_named(&it)).transpose()?;
    Ok(Reply::made(&decide::decide(context, &request)?))
}

fn topics(context: &Context, call: &Call) -> Result<Reply, Problem> {
    let reply = Reply::of("topic-list", decide::topics_to_json(&decide::topics(context)));
    pages::page(call, reply, "topics", |it| text(it, "topic"))
}

fn list_insights(context: &Context, call: &Call) -> Result<Reply, Problem> {
    let mut request = InsightsRequest { limit: usize::MAX, ..call.asked()? };
    request.plan = plan_of(request.plan)?;
    let reply = Reply::of("insight-list", insight::insights(context, &request)?.to_json());
    pages::page_with_more(call, reply, "insights", |it| text(it, "id"))
}

fn record_insight(context: &Context, call: &Call) -> Result<Reply, Problem> {
    let mut request: InsightRequest = call.body()?;
    request.plan = plan_of(request.plan)?;
    Ok(Reply::made(&insight::insight(context, &request)?))
}

fn list_scripts(context: &Context, call: &Call) -> Result<Reply, Problem> {
    let found = script::list(context, plan_of(call.text("plan"))?.as_deref())?;
    pages::page(call, Reply::of("script-list", script::list_to_json(&found)), "scripts", |it| text(it, "id"))
}

fn add_script(context: &Context, call: &Call) -> Result<Reply, Problem> {
    let mut request: AddRequest = call.body()?;
    request.plan = plan_of(request.plan)?;
    Ok(Reply::made(&script::add(context, &request)?))
}

fn show_script(context: &Context, call: &Call) -> Result<Reply, Problem> {
    Ok(Reply::of("script", script::show(context, call.name("name"))?.to_json()))
}

fn remove_script(context: &Context, call: &Call) -> Result<Reply, Problem> {
    let RemoveRequest { mode, .. } = call.asked()?;
    Ok(Reply::changed(&script::remove(context, call.name("name"), mode)?))
}
