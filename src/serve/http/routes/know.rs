//! Routes of what was decided and learned, and of commands by their name.

use serde_json::json;

use super::answers::named;
use super::bodies::{Decide, Insight, Script};
use super::call::{Call, Reply, plan_named, step_named};
use super::look::{SINCE, SINCE_ABOUT, text};
use super::route::{Kind, LOOKING, MAKING, Parameter, Route, delete, get, post, query};
use super::{Problem, pages};
use crate::api::context::Context;
use crate::api::error::Error;
use crate::ops::decide::{self, DecideRequest, DecisionsRequest};
use crate::ops::insight::{self, InsightRequest, InsightsRequest};
use crate::ops::script::{self, AddRequest};
use crate::text::scalar;

pub(crate) fn routes() -> Vec<Route> {
    let mut all = decisions();
    all.extend(insights());
    all.extend(scripts());
    all
}

fn about() -> [Parameter; 3] {
    [
        query("plan", Kind::Text, "Only what is about this plan", "feature-auth"),
        query("tag", Kind::Texts(""), "Only what has all of these tags, separated by commas", "security"),
        query("since", SINCE, SINCE_ABOUT, "30d"),
    ]
}

fn decisions() -> Vec<Route> {
    let example = json!({
        "topic": "authentication", "decision": "Use JWT", "reasoning": "No session store to run", "dry_run": true,
    });
    vec![
        get("/api/decisions", "list_decisions", "decide")
            .about("List what was decided, newest first")
            .takes([query("topic", Kind::Text, "Only on this topic", "authentication")])
            .takes(about())
            .takes([query(
                "step",
                Kind::Text,
                "Only what is about this step; not together with `plan`",
                "feature-auth:1",
            )])
            .takes(pages::parameters())
            .answers(200, named("decision-list"))
            .refuses(LOOKING)
            .links("id", "/decisions/0/id", &["show"])
            .by(list_decisions),
        post("/api/decisions", "decide", "decide")
            .about("Record what was decided and why")
            .body::<Decide>(example)
            .answers(201, named("change"))
            .answers(200, named("change"))
            .refuses(MAKING)
            .links("id", "/changes/0/id", &["show"])
            .makes_at("/api/show/")
            .by(record_decision),
        get("/api/decisions/topics", "list_topics", "decide")
            .about("List the topics of decisions")
            .takes(pages::parameters())
            .answers(200, named("topic-list"))
            .by(topics),
    ]
}

fn insights() -> Vec<Route> {
    let example =
        json!({"title": "The cache is cold after a restart", "text": "Warm it first.", "dry_run": true});
    vec![
        get("/api/insights", "list_insights", "insight")
            .about("List what was learned, newest first")
            .takes([query("title", Kind::Text, "Only of this title", "Caching")])
            .takes(about())
            .takes(pages::parameters())
            .answers(200, named("insight-list"))
            .refuses(LOOKING)
            .links("id", "/insights/0/id", &["show"])
            .by(list_insights),
        post("/api/insights", "record_insight", "insight")
            .about("Record what was learned")
            .body::<Insight>(example)
            .answers(201, named("change"))
            .answers(200, named("change"))
            .refuses(MAKING)
            .links("id", "/changes/0/id", &["show"])
            .makes_at("/api/show/")
            .by(record_insight),
    ]
}

fn scripts() -> Vec<Route> {
    vec![
        get("/api/scripts", "list_scripts", "script list")
            .about("List the scripts; no route runs them")
            .takes([query("plan", Kind::Text, "Only those of this plan", "feature-auth")])
            .takes(pages::parameters())
            .answers(200, named("script-list"))
            .refuses(LOOKING)
            .links("name", "/scripts/0/id", &["get_script"])
            .by(list_scripts),
        post("/api/scripts", "add_script", "script add")
            .about("Add a named command")
            .body::<Script>(json!({"name": "build", "command": "make all", "dry_run": true}))
            .answers(201, named("change"))
            .answers(200, named("change"))
            .refuses(MAKING)
            .links("name", "/changes/0/id", &["get_script", "remove_script"])
            .makes_at("/api/scripts/")
            .by(add_script),
        get("/api/scripts/{name}", "get_script", "script show")
            .about("Show a script, with its paths resolved")
            .answers(200, named("script"))
            .refuses(LOOKING)
            .by(show_script),
        delete("/api/scripts/{name}", "remove_script", "script remove")
            .about("Remove a script; undo restores it")
            .takes([query("dry_run", Kind::Flag, "Answer with the diff and write nothing", true)])
            .answers(200, named("change"))
            .refuses(MAKING)
            .by(remove_script),
    ]
}

fn list_decisions(context: &Context, call: &Call) -> Result<Reply, Problem> {
    let request = DecisionsRequest {
        topic: call.text("topic"),
        plan: call.named_plan("plan")?,
        step: call.text("step").map(|it| step_named(&it)).transpose()?,
        tags: call.texts("tag"),
        since: call.text("since"),
        limit: usize::MAX,
    };
    if request.plan.is_some() && request.step.is_some() {
        return Err(Error::usage("`plan` and `step` are both there", "use only one of them").into());
    }
    let reply = Reply::of("decision-list", decide::decisions(context, &request)?.to_json());
    pages::page_with_more(call, reply, "decisions", |it| text(it, "id"))
}

fn record_decision(context: &Context, call: &Call) -> Result<Reply, Problem> {
    let body: Decide = call.body()?;
    if body.plan.is_some() && body.step.is_some() {
        return Err(Error::usage("`plan` and `step` are both there", "use only one of them").into());
    }
    let request = DecideRequest {
        topic: body.topic,
        text: body.decision,
        because: body.reasoning,
        supersedes: body.supersedes,
        tags: body.tags,
        plan: plan_of(body.plan)?,
        step: body.step.map(|it| step_named(&it)).transpose()?,
        by: body.by,
        metadata: body.metadata.as_ref().map(scalar::json),
        mode: call.mode(),
    };
    Ok(Reply::made(&decide::decide(context, &request)?))
}

fn topics(context: &Context, call: &Call) -> Result<Reply, Problem> {
    let reply = Reply::of("topic-list", decide::topics_to_json(&decide::topics(context)));
    pages::page(call, reply, "topics", |it| text(it, "topic"))
}

fn list_insights(context: &Context, call: &Call) -> Result<Reply, Problem> {
    let request = InsightsRequest {
        title: call.text("title"),
        plan: call.named_plan("plan")?,
        tags: call.texts("tag"),
        since: call.text("since"),
        limit: usize::MAX,
    };
    let reply = Reply::of("insight-list", insight::insights(context, &request)?.to_json());
    pages::page_with_more(call, reply, "insights", |it| text(it, "id"))
}

fn record_insight(context: &Context, call: &Call) -> Result<Reply, Problem> {
    let Insight { title, text, plan, tags, by, .. } = call.body()?;
    let request = InsightRequest { title, text, plan: plan_of(plan)?, tags, by, mode: call.mode() };
    Ok(Reply::made(&insight::insight(context, &request)?))
}

fn list_scripts(context: &Context, call: &Call) -> Result<Reply, Problem> {
    let found = script::list(context, call.named_plan("plan")?.as_deref())?;
    pages::page(call, Reply::of("script-list", script::list_to_json(&found)), "scripts", |it| text(it, "id"))
}

fn add_script(context: &Context, call: &Call) -> Result<Reply, Problem> {
    let Script { name, command, directory, plan, description, mcp_handle, .. } = call.body()?;
    let request = AddRequest {
        name,
        command,
        directory,
        plan: plan_of(plan)?,
        description,
        mcp_handle,
        mode: call.mode(),
    };
    Ok(Reply::made(&script::add(context, &request)?))
}

fn show_script(context: &Context, call: &Call) -> Result<Reply, Problem> {
    Ok(Reply::of("script", script::show(context, call.name("name"))?.to_json()))
}

fn remove_script(context: &Context, call: &Call) -> Result<Reply, Problem> {
    Ok(Reply::changed(&script::remove(context, call.name("name"), call.mode())?))
}

/// A plan that a body names.
fn plan_of(named: Option<String>) -> Result<Option<String>, Problem> {
    named.map(|it| plan_named(&it)).transpose()
}
