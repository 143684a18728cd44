//! Routes that only look: what is there, what to do next, what is wrong.

use serde_json::Value;

use super::Problem;
use super::answers::named;
use super::bodies::Dry;
use super::call::{Call, Reply};
use super::pages;
use super::route::{Kind, LOOKING, Parameter, Route, get, post, query};
use crate::api::context::Context;
use crate::api::error::Error;
use crate::api::sort::Sort;
use crate::ops::check::{self, CheckRequest};
use crate::ops::list::{self, ListRequest};
use crate::ops::next::{self, NextRequest};
use crate::ops::search::{self, SearchRequest};
use crate::ops::show::{self, GraphForm, ShowRequest};
use crate::ops::stale::{self, StaleRequest};
use crate::ops::status::{self, StatusRequest};
use crate::plan::time::Time;
use crate::store::transaction::Mode;

/// Words of plans and of steps; the configuration may know more of them.
const STATUS: &str = "Only what has this status; several are separated by commas";

/// A time, a date, or how long ago.
pub(crate) const SINCE: Kind = Kind::Form(SINCE_FORM);
/// A date has as many days as its month may have; that of a leap day is judged by the engine.
const SINCE_FORM: &str = "^([0-9]{1,4}[hdw]|[0-9]{4}-((0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-9])|(0[13-9]|1[0-2])-30|(0[13578]|1[02])-31)(T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]Z)?)$";
/// Keys of `api::sort`, each with its direction; an empty text is none.
const SORT: &str = "^(-?(id|title|status|updated|created|due|priority)(,-?(id|title|status|updated|created|due|priority))*)?$";
pub(crate) const SINCE_ABOUT: &str = "Only since then: a date as 2026-11-21, a time as 2026-11-21T09:14:03Z, or how long ago, as 12h, 7d or 2w";

pub(crate) fn routes() -> Vec<Route> {
    [questions(), faults()].concat()
}

fn questions() -> Vec<Route> {
    vec![
        get("/api/status", "status", "status")
            .about("Show what needs attention, is in progress, and is ready")
            .takes([query("days", Kind::Count(0, 3650), "Call a step stale after so many days", 7)])
            .answers(200, named("status"))
            .links("id", "/ready/0/id", &["get_step", "show", "start_step", "claim_step"])
            .by(briefing),
        get("/api/stale", "list_stale_steps", "stale")
            .about("List the steps without a change for a while, longest first")
            .takes([
                query("plan", Kind::Text, "Only the steps of this plan", "auth"),
                query("days", Kind::Count(0, 3650), "For so many days", 7),
            ])
            .takes(pages::parameters())
            .answers(200, named("stale-list"))
            .refuses(LOOKING)
            .by(stale_steps),
        get("/api/list", "list_plans", "list")
            .about("List the plans, by default the open ones")
            .takes(filters("draft,active,completed,abandoned", "active"))
            .takes([
                query("program", Kind::Text, "Only the plans of this program", "launch"),
                query("archived", Kind::Flag, "Only archived plans", false),
                query("all", Kind::Flag, "Every plan: open, closed and archived", true),
            ])
            .takes(pages::parameters())
            .answers(200, named("plan-list"))
            .refuses(LOOKING)
            .links("id", "/plans/0/id", &["get_plan", "show", "list_steps", "claim_plan", "add_step"])
            .by(plans),
        get("/api/list/{id}", "list_steps", "list")
            .about("List the steps of a plan, or the plans of a program")
            .takes(filters(
                "pending,in_progress,completed,failed,blocked,skipped,draft,active,abandoned",
                "pending",
            ))
            .takes(pages::parameters())
            .answers(200, super::answers::any(["step-list", "plan-list"]))
            .refuses(LOOKING)
            .links("id", "/steps/0/id", &["get_step", "show", "start_step", "note_step", "complete_step"])
            .by(steps),
        get("/api/show/{id}", "show", "show")
            .about("Show a plan, a step, a decision or an insight with its text")
            .takes([
                query("full", Kind::Flag, "Also the text of every step", true),
                query(
                    "graph",
                    Kind::Word(&["text", "mermaid", "dot"]),
                    "Draw what waits for what",
                    "mermaid",
                ),
            ])
            .answers(200, super::answers::any(["plan", "step", "decision", "insight", "graph"]))
            .refuses(LOOKING)
            .by(shown),
        get("/api/next", "next", "next")
            .about("Show the next ready step, and why it is next; claims nothing")
            .takes([query("plan", Kind::Text, "The plan to look at; else all active ones", "feature-auth")])
            .answers(200, named("next"))
            .refuses(LOOKING)
            .links("id", "/step/id", &["get_step", "show", "start_step", "claim_step"])
            .by(what_next),
        get("/api/search", "search", "search")
            .about("Search plans, steps, decisions and insights")
            .takes([
                query(
                    "query",
                    Kind::Form(super::bodies::SAID),
                    "Words; \"…\" for a phrase, -word for what must not be there",
                    "token",
                )
                .required(),
                query("kind", Kind::Word(&["plan", "step", "decision", "insight"]), "Only this", "step"),
                query("since", SINCE, SINCE_ABOUT, "7d"),
                query("limit", Kind::Count(1, 200), "At most so many hits; 50 if it is left out", 10),
            ])
            .answers(200, named("search"))
            .links("id", "/hits/0/id", &["show"])
            .by(found),
    ]
}

fn faults() -> Vec<Route> {
    vec![
        get("/api/problems", "list_problems", "check")
            .about("Report problems in the files, with line and column")
            .takes(pages::parameters())
            .answers(200, named("problem-list"))
            .by(problems),
        post("/api/problems/fix", "fix_problems", "check")
            .about("Fix what can be fixed without losing data, and report the rest")
            .body::<Dry>(serde_json::json!({"dry_run": true}))
            .answers(200, named("problem-list"))
            .refuses(super::route::MAKING)
            .by(fix),
    ]
}

fn filters(words: &'static str, example: &'static str) -> [Parameter; 6] {
    [
        query("status", Kind::Texts(words), STATUS, example),
        query("tag", Kind::Text, "Only what has this tag", "security"),
        query("stale", Kind::Flag, "Only what is stale", false),
        query("assignee", Kind::Text, "Only steps that this person is to do; plans that have one", "ann"),
        query(
            "updated_since",
            SINCE,
            "Only what something has happened to since then: as `since` of a search",
            "26w",
        ),
        sorting(),
    ]
}

/// The order of a list.
pub(super) fn sorting() -> Parameter {
    let about = "Keys to sort by, the first of which decides; `-` turns one round";
    query("sort", Kind::Form(SORT), about, "-updated,title")
}

fn briefing(context: &Context, call: &Call) -> Result<Reply, Problem> {
    let report = status::status(context, &StatusRequest { days: call.count("days") })?;
    Ok(Reply::of("status", report.to_json()))
}

fn stale_steps(context: &Context, call: &Call) -> Result<Reply, Problem> {
    let seconds = call.count("days").map(|it: u32| i64::from(it) * 86_400);
    let report = stale::stale(context, &StaleRequest { plan: call.text("plan"), seconds })?;
    paged(call, Reply::of("stale-list", report.to_json()), "steps")
}

fn request(call: &Call) -> Result<ListRequest, Error> {
    Ok(ListRequest {
        plan: None,
        status: call.texts("status"),
        program: call.text("program"),
        tag: call.text("tag"),
        stale: call.flag("stale"),
        archived: call.flag("archived"),
        all: call.flag("all"),
        assignee: call.text("assignee"),
        updated_since: call.text("updated_since"),
        sort: call.text("sort").map(|it| Sort::read(&it)).transpose()?.unwrap_or_default(),
    })
}

fn plans(context: &Context, call: &Call) -> Result<Reply, Problem> {
    let report = list::list(context, &request(call)?)?;
    paged(call, Reply::of(report.kind(), report.to_json()), "plans")
}

/// Steps, or the plans of a program: a word of the others is the status of none.
fn steps(context: &Context, call: &Call) -> Result<Reply, Problem> {
    let request = ListRequest { plan: Some(call.plan()?), status: Vec::new(), ..request(call)? };
    let report = list::list(context, &request)?;
    let key = if report.kind() == "plan-list" { "plans" } else { "steps" };
    let mut reply = Reply::of(report.kind(), report.to_json());
    let words = call.texts("status");
    if let Some(items) = reply.body.get_mut(key).and_then(Value::as_array_mut).filter(|_| !words.is_empty()) {
        items.retain(|it| words.contains(&text(it, "status")));
    }
    paged(call, reply, key)
}

/// A live plan and an archived one may have the same name, but not the same path.
fn paged(call: &Call, reply: Reply, key: &str) -> Result<Reply, Problem> {
    pages::page(call, reply, key, |it| text(it, "path"))
}

/// A text that an item has.
pub(crate) fn text(item: &Value, key: &str) -> String {
    item.get(key).and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn shown(context: &Context, call: &Call) -> Result<Reply, Problem> {
    let graph = call.text("graph").map(|it| match it.as_str() {
        "mermaid" => GraphForm::Mermaid,
        "dot" => GraphForm::Dot,
        _ => GraphForm::Text,
    });
    let show = |id: String| show::show(context, &ShowRequest { id, full: call.flag("full"), graph });
    let name = call.name("id");
    let report = match call.step().or_else(|_| call.plan()).map(show)? {
        // Decisions and insights are found by what no plan is called.
        Err(error) if error.code() == "not-found" && is_record(name) => {
            show(name.to_owned()).map_err(|_| error)?
        }
        other => other?,
    };
    Ok(Reply { etag_at: Some("/etag"), ..Reply::of(report.kind(), report.to_json()) })
}

/// Whether a name can be a decision's or an insight's: nothing that means a plan, a number or a path.
fn is_record(name: &str) -> bool {
    name.contains('Z') && Time::from_stamp(name.split_inclusive('Z').next().unwrap_or_default()).is_some()
}

fn what_next(context: &Context, call: &Call) -> Result<Reply, Problem> {
    let report = next::next(context, &NextRequest { plan: call.named_plan("plan")?, most: None })?;
    Ok(Reply::of("next", report.to_json()))
}

fn found(context: &Context, call: &Call) -> Result<Reply, Problem> {
    let request = SearchRequest {
        query: call.text("query").unwrap_or_default(),
        kind: call.text("kind"),
        since: call.text("since"),
        limit: call.count("limit").unwrap_or(50) as usize,
    };
    if request.query.trim().is_empty() {
        return Err(Error::usage("there is nothing to search for", "name a word, as in query=token").into());
    }
    Ok(Reply::of("search", search::search(context, &request)?.to_json()))
}

fn problems(context: &Context, call: &Call) -> Result<Reply, Problem> {
    checked(context, call, &CheckRequest::default())
}

fn fix(context: &Context, call: &Call) -> Result<Reply, Problem> {
    call.body::<Dry>()?;
    checked(context, call, &CheckRequest { fix: true, mode: call.mode() })
}

fn checked(context: &Context, call: &Call, request: &CheckRequest) -> Result<Reply, Problem> {
    let writes = request.fix && request.mode == Mode::Write;
    let reply = Reply::of("problem-list", check::check(context, request)?.to_json());
    // What was mended changes what is left; a page of that would hide the rest.
    if writes { Ok(reply) } else { pages::page(call, reply, "problems", Value::to_string) }
}
