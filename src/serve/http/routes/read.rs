//! Routes that read, such as lists, plans, steps, the next step, search, history and problems; and the route that fixes
//! problems.

use serde_json::{Value, json};

use super::answers::{any, named};
use super::bodies::DryBody;
use super::call::{Call, Reply};
use super::pages;
use super::route::{LOOKING, MAKING, Parameter, Route, form, get, post, query, words};
use super::{Problem, read_sort};
use crate::api::context::Context;
use crate::api::error::Error;
use crate::ops::check::{self, CheckRequest, ProblemsRequest};
use crate::ops::diff::{self, DiffRequest};
use crate::ops::list::{self, ListRequest};
use crate::ops::log::{self, LogRequest};
use crate::ops::next::{self, NextRequest};
use crate::ops::search::{self, SearchRequest};
use crate::ops::show::{self, ShowRequest};
use crate::ops::stale::{self, StaleRequest};
use crate::ops::stats::{self, StatsRequest};
use crate::ops::status::{self, StatusRequest};
use crate::plan::time::Time;
use crate::serve::http::extract::plan_of;
use crate::store::transaction::Mode;

/// The description of `status`.
const STATUS: &str = "Only what has this status; several are separated by commas";

/// The pattern of `sort`: keys of `api::sort`, each with an optional `-`. An empty text means that there are no keys.
const SORT: &str = "^(-?(id|title|status|updated|created|due|priority)(,-?(id|title|status|updated|created|due|priority))*)?$";

pub(crate) fn routes() -> Vec<Route> {
    [questions(), past(), faults()].concat()
}

/// Routes that read the plans' history from git.
fn past() -> Vec<Route> {
    let filter = json!({
        "id": "auth:2", "since": "26w", "until": "2026-11-21", "by": "ann", "what": ["status", "attempt"], "rev": "main..feature",
    });
    vec![
        get("/api/log", "log", "log")
            .about("Show the history of plans and steps, newest first, from git commits")
            .asks::<LogRequest>(&filter)
            .takes(pages::parameters())
            .does(named("log"), LOOKING, log),
        get("/api/log/{id}/timeline", "timeline", "log")
            .about("Show when each step of a plan waited, was worked on, and was closed")
            .does(named("timeline"), LOOKING, timeline),
        get("/api/diff", "diff", "diff")
            .about("Compare two states of the plans: commits, staged files or the working tree")
            .asks::<DiffRequest>(&json!({"plan": "auth", "rev": "HEAD", "staged": false, "patch": true}))
            .does(named("diff"), LOOKING, diff),
    ]
}

fn questions() -> Vec<Route> {
    vec![
        get("/api/status", "status", "status")
            .about("Show what needs attention, is in progress or is ready")
            .asks::<StatusRequest>(&json!({"days": 7, "branches": true}))
            .links("id", "/ready/0/id", &["get_step", "show", "start_step", "claim_step"])
            .does(named("status"), LOOKING, briefing),
        get("/api/stale", "list_stale_steps", "stale")
            .about("List the steps that have been ready or in progress for a while, longest first")
            .asks::<StaleRequest>(&json!({"plan": "auth", "days": 7}))
            .takes(pages::parameters())
            .does(named("stale-list"), LOOKING, stale_steps),
        get("/api/stats", "stats", "stats")
            .about("Show statistics: closed steps, attempts, outcomes and durations")
            .asks::<StatsRequest>(&json!({"plan": "auth", "since": "26w", "by_agent": true}))
            .does(named("stats"), LOOKING, stats),
        get("/api/list", "list_plans", "list")
            .about("List the plans, by default the open ones")
            .takes([status(&["draft", "active", "completed", "abandoned"], "active")])
            .asks::<ListRequest>(&filters())
            .takes([sorting()])
            .asks::<ListRequest>(&json!({"program": "launch", "archived": false, "all": true}))
            .takes(pages::parameters())
            .links("id", "/plans/0/id", &["get_plan", "show", "list_steps", "claim_plan", "add_step"])
            .does(named("plan-list"), LOOKING, plans),
        get("/api/list/{id}", "list_steps", "list")
            .about("List the steps of a plan, or the plans of a program")
            .takes([status(
                &[
                    "pending",
                    "in_progress",
                    "completed",
                    "failed",
                    "blocked",
                    "skipped",
                    "draft",
                    "active",
                    "abandoned",
                ],
                "pending",
            )])
            .asks::<ListRequest>(&filters())
            .takes([sorting()])
            .takes(pages::parameters())
            .links("id", "/steps/0/id", &["get_step", "show", "start_step", "note_step", "complete_step"])
            .does(any(["step-list", "plan-list"]), LOOKING, steps),
        get("/api/show/{id}", "show", "show")
            .about("Show a plan, a step, a decision or an insight with its text")
            .asks::<ShowRequest>(&json!({"full": true, "graph": "mermaid"}))
            .does(any(["plan", "step", "decision", "insight", "graph"]), LOOKING, shown),
        get("/api/next", "next", "next")
            .about("Show the next ready step, and why it is next; claims nothing")
            .asks::<NextRequest>(&json!({"plan": "feature-auth"}))
            .links("id", "/step/id", &["get_step", "show", "start_step", "claim_step"])
            .does(named("next"), LOOKING, what_next),
        get("/api/search", "search", "search")
            .about("Search plans, steps, decisions and insights")
            .asks::<SearchRequest>(&json!({"query": "token"}))
            .takes([query(
                "kind",
                words(&["plan", "step", "decision", "insight"]),
                "Only hits of this kind",
                "step",
            )])
            .asks::<SearchRequest>(&json!({"since": "7d"}))
            .takes([query("limit", pages::limit(), "The maximum number of hits; 50 if it is left out", 10)])
            .links("id", "/hits/0/id", &["show"])
            .does(named("search"), &[], found),
    ]
}

fn faults() -> Vec<Route> {
    vec![
        get("/api/problems", "list_problems", "check")
            .about("Report problems in the files, with line and column")
            .asks::<ProblemsRequest>(&json!({"git": false}))
            .takes(pages::parameters())
            .does(named("problem-list"), LOOKING, problems),
        post("/api/problems/fix", "fix_problems", "check")
            .about("Fix what can be fixed without losing data, and report the rest")
            .body::<DryBody>(json!({"dry_run": true}))
            .does(named("problem-list"), MAKING, fix),
    ]
}

fn status(of: &[&str], example: &str) -> Parameter {
    query("status", json!({"type": "array", "items": words(of)}), STATUS, example)
}

/// The filters that lists of plans and lists of steps have in common, with examples.
fn filters() -> Value {
    json!({"tag": "security", "stale": false, "assignee": "ann", "updated_since": "26w"})
}

pub(super) fn sorting() -> Parameter {
    let about = "Keys to sort by, the most significant first; `-` before a key reverses its order";
    query("sort", form(SORT), about, "-updated,title")
}

fn briefing(context: &Context, call: &Call) -> Result<Reply, Problem> {
    Ok(Reply::of("status", status::status(context, &call.asked()?)?.to_json()))
}

fn stale_steps(context: &Context, call: &Call) -> Result<Reply, Problem> {
    paged(call, Reply::of("stale-list", stale::stale(context, &call.asked()?)?.to_json()), "steps")
}

fn stats(context: &Context, call: &Call) -> Result<Reply, Problem> {
    Ok(Reply::of("stats", stats::stats(context, &call.asked()?)?.to_json()))
}

fn request(call: &Call) -> Result<ListRequest, Problem> {
    let sort = call.text("sort").map(|it| read_sort(&it)).transpose()?.unwrap_or_default();
    Ok(ListRequest { sort, ..call.asked()? })
}

fn plans(context: &Context, call: &Call) -> Result<Reply, Problem> {
    let report = list::list(context, &request(call)?)?;
    paged(call, Reply::of(report.kind(), report.to_json()), "plans")
}

/// Lists the steps of a plan, or the plans of a program. A status that the listed items cannot have matches none of them.
fn steps(context: &Context, call: &Call) -> Result<Reply, Problem> {
    let mut request = ListRequest { plan: Some(call.plan()?), ..request(call)? };
    let words = std::mem::take(&mut request.status);
    let report = list::list(context, &request)?;
    let key = if report.kind() == "plan-list" { "plans" } else { "steps" };
    let mut reply = Reply::of(report.kind(), report.to_json());
    if let Some(items) = reply.body.get_mut(key).and_then(Value::as_array_mut).filter(|_| !words.is_empty()) {
        items.retain(|it| words.contains(&text(it, "status")));
    }
    paged(call, reply, key)
}

/// Items are identified by their path, because a live plan and an archived one can have the same name.
fn paged(call: &Call, reply: Reply, key: &str) -> Result<Reply, Problem> {
    pages::page(call, reply, key, |it| text(it, "path"))
}

pub(crate) fn text(item: &Value, key: &str) -> String {
    item.get(key).and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn shown(context: &Context, call: &Call) -> Result<Reply, Problem> {
    let request: ShowRequest = call.asked()?;
    let show = |id: String| show::show(context, &ShowRequest { id, ..request.clone() });
    let name = call.name("id");
    let report = match call.step().or_else(|_| call.plan()).map(show)? {
        // No plan or step has this name, so it may be the id of a decision or an insight.
        Err(error) if error.code() == "not-found" && is_record(name) => {
            show(name.to_owned()).map_err(|_| error)?
        }
        other => other?,
    };
    Ok(Reply { etag_at: Some("/etag"), ..Reply::of(report.kind(), report.to_json()) })
}

/// Whether a name can be the id of a decision or an insight: it begins with a time stamp.
fn is_record(name: &str) -> bool {
    name.contains('Z') && Time::from_stamp(name.split_inclusive('Z').next().unwrap_or_default()).is_some()
}

fn what_next(context: &Context, call: &Call) -> Result<Reply, Problem> {
    let mut request: NextRequest = call.asked()?;
    request.plan = plan_of(request.plan)?;
    Ok(Reply::of("next", next::next(context, &request)?.to_json()))
}

fn found(context: &Context, call: &Call) -> Result<Reply, Problem> {
    let request = SearchRequest { limit: call.count("limit").unwrap_or(50) as usize, ..call.asked()? };
    if request.query.trim().is_empty() {
        return Err(Error::usage("there is nothing to search for", "for example query=token").into());
    }
    Ok(Reply::of("search", search::search(context, &request)?.to_json()))
}

fn log(context: &Context, call: &Call) -> Result<Reply, Problem> {
    let reply = Reply::of("log", log::log(context, &call.asked()?)?.to_json());
    let hash = |it: &Value| blake3::hash(it.to_string().as_bytes()).to_hex()[..16].to_owned();
    pages::page(call, reply, "events", hash)
}

fn timeline(context: &Context, call: &Call) -> Result<Reply, Problem> {
    Ok(Reply::of("timeline", log::timeline::timeline(context, &call.plan()?)?.to_json()))
}

fn diff(context: &Context, call: &Call) -> Result<Reply, Problem> {
    Ok(Reply::of("diff", diff::diff(context, &call.asked()?)?.to_json()))
}

fn problems(context: &Context, call: &Call) -> Result<Reply, Problem> {
    let ProblemsRequest { git } = call.asked()?;
    checked(context, call, &CheckRequest { git, ..CheckRequest::default() })
}

fn fix(context: &Context, call: &Call) -> Result<Reply, Problem> {
    let DryBody { mode } = call.body()?;
    checked(context, call, &CheckRequest { fix: true, git: false, mode })
}

fn checked(context: &Context, call: &Call, request: &CheckRequest) -> Result<Reply, Problem> {
    let writes = request.fix && request.mode == Mode::Write;
    let reply = Reply::of("problem-list", check::check(context, request)?.to_json());
    // After a fix the report is not divided into pages, so that it contains all remaining problems.
    if writes { Ok(reply) } else { pages::page(call, reply, "problems", Value::to_string) }
}
