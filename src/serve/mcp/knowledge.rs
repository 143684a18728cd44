//! Tools for search, decisions, insights, templates, prompts and scripts.

use serde_json::{Map, Value, json};

use crate::api::error::Error;
use crate::ops::decide::{self, DecideRequest, DecisionsRequest, Topic};
use crate::ops::insight::{self, InsightRequest};
use crate::ops::log::{self, LogEvent, LogRequest};
use crate::ops::search::{self, SearchRequest};
use crate::ops::{script, template};
use crate::serve::mcp::result::{self, CHANGED, PAGE, Refusal, page, pick, put};
use crate::serve::mcp::schema::{Object, read, take};
use crate::serve::mcp::tool::{Call, Effect, Tool, Without};
use crate::store::prompt;
use crate::store::transaction::Mode;

pub(super) fn reading() -> Vec<Tool> {
    vec![
        Tool::of::<SearchRequest>(
            ("recall", "Search everything"),
            Effect::Reads,
            "Searches the text of plans, steps, decisions and insights, best first. Allows \"phrase\" and -word.",
            (
                "query kind(plan, step, decision, insight or history) since(Date or age, as 7d) limit:int? cursor:str?",
                "hits:hit[] next_cursor?",
            ),
            recall,
        ),
        Tool::of::<DecisionsRequest>(
            ("get_decisions", "Read decisions"),
            Effect::Reads,
            "Reads what was decided, newest first. A decision holds until another supersedes it.",
            (
                "topic plan step since(Date or age, as 7d) list_topics:bool?(Only the topics) limit:int? cursor:str?",
                "decisions:decision[] topics:list? nearest? near:strs? next_cursor?",
            ),
            get_decisions,
        ),
        Tool::of::<()>(
            ("list_assets", "List templates, scripts, prompts"),
            Effect::Reads,
            "Lists templates, scripts or prompts; with a name, shows one in full. Scripts are never run here.",
            (
                "kind:templates|scripts|prompts plan:str?(Plan of the scripts) name:str? cursor:str?",
                "kind items:list next_cursor?",
            ),
            list_assets,
        ),
    ]
}

pub(super) fn writing() -> Vec<Tool> {
    vec![
        Tool::of::<DecideRequest>(
            ("decide", "Record a decision"),
            Effect::Adds,
            "Records what was decided and why, permanently. Call get_decisions for the topic first.",
            (
                "topic decision reasoning supersedes(Id of the decision it replaces) plan step metadata",
                CHANGED,
            ),
            |call, given| result::changed(decide::decide(&call.context, &read(given)?)?),
        )
        .without(|_| Without::Makes),
        Tool::of::<InsightRequest>(
            ("insight", "Record an insight"),
            Effect::Adds,
            "Records something learned, for others to find with recall.",
            ("title text plan tags", CHANGED),
            |call, given| result::changed(insight::insight(&call.context, &read(given)?)?),
        )
        .without(|_| Without::Makes),
        Tool::of::<script::AddRequest>(
            ("manage_script", "Add or delete a script"),
            Effect::Removes,
            "Adds or removes a named command. It is not run here; a person must trust it before it runs.",
            (
                "action:add|delete name command?(One line for a shell) directory(From the repository's root) \
                 description plan",
                CHANGED,
            ),
            manage_script,
        )
        .without(|given| {
            let is_new = given.get("action").is_some_and(|it| it == "add");
            if is_new { Without::Makes } else { Without::Refuses }
        }),
    ]
}

/// The default number of items of a page.
const USUAL: usize = 10;

/// The index of the first item of the page that a cursor names.
fn offset(cursor: Option<&str>) -> Result<usize, Refusal> {
    let wrong = |it| {
        Refusal::usage(format!("`{it}` is not a cursor"), "use the next_cursor of the previous page, or none")
    };
    let read = |it: &str| usize::try_from(it.parse::<u32>().ok()?).ok();
    cursor.map_or(Ok(0), |it| read(it).ok_or_else(|| wrong(it)))
}

fn recall(call: &Call, mut given: Object) -> Result<Value, Refusal> {
    let start = offset(take::<String>(&mut given, "cursor")?.as_deref())?;
    let limit = take::<usize>(&mut given, "limit")?.unwrap_or(USUAL).clamp(1, 200);
    let request = SearchRequest { limit: start + limit + 1, ..read(given)? };
    if request.query.trim().is_empty() {
        return Err(Refusal::usage("there is nothing to search for", "give words as `query`"));
    }
    let hits = match request.kind.as_deref() {
        Some("history") => history(call, &request)?,
        _ => list_of(&search::search(&call.context, &request)?.to_json(), "hits"),
    };
    let from = start.checked_sub(1).map(|it| it.to_string()).filter(|_| start <= hits.len());
    if start > hits.len() {
        return Ok(json!({"hits": []}));
    }
    let page = page(
        &hits,
        (Some(limit), from.as_deref()),
        PAGE,
        |nth, _| nth.to_string(),
        |it| pick(it, "kind id plan? title path snippet"),
    )?;
    Ok(counted("hits", page))
}

/// If the query names a plan or step, the events of this plan or step. Otherwise the events that contain the words of the
/// query.
fn history(call: &Call, request: &SearchRequest) -> Result<Vec<Value>, Refusal> {
    let asked = |id, words| LogRequest {
        id,
        words,
        since: request.since.clone(),
        limit: Some(request.limit),
        ..LogRequest::default()
    };
    let named = asked(Some(request.query.trim().to_owned()), Vec::new());
    let words = || asked(None, request.query.split_whitespace().map(str::to_owned).collect());
    let report = match log::log(&call.context, &named) {
        Err(error) if ["not-found", "which-plan"].contains(&error.code()) => {
            log::log(&call.context, &words())?
        }
        report => report?,
    };
    let hit = |it: &LogEvent| {
        let who = it.by.as_deref().or(it.author.as_deref()).unwrap_or_default();
        let when = it.at.map(|it| it.to_string()).unwrap_or_default();
        let snippet = format!("{when} {who}: {}", it.words());
        let id = it.step.as_ref().or(it.plan.as_ref());
        let title = it.subject.as_deref().unwrap_or("not committed yet");
        json!({"kind": "history", "id": id, "plan": it.plan, "title": title, "path": it.path, "snippet": snippet.trim()})
    };
    Ok(report.events.iter().map(hit).collect())
}

/// Puts a page into an object. `page.next` is the index of the page's last item. The cursor in the object is that index
/// plus one, so it is the number of items up to the end of the page.
fn counted(name: &str, mut page: result::Page) -> Value {
    page.next = page.next.and_then(|it| Some((it.parse::<usize>().ok()? + 1).to_string()));
    let mut object = json!({});
    put(&mut object, name, page);
    object
}

fn get_decisions(call: &Call, mut given: Object) -> Result<Value, Refusal> {
    let start = offset(take::<String>(&mut given, "cursor")?.as_deref())?;
    let from = start.checked_sub(1).map(|it| it.to_string());
    let limit = take::<usize>(&mut given, "limit")?;
    if take(&mut given, "list_topics")? == Some(true) {
        let topics: Vec<_> = decide::topics(&call.context).iter().map(Topic::to_json).collect();
        let page = page(&topics, (limit, from.as_deref()), PAGE, |nth, _| nth.to_string(), Value::clone)?;
        let mut object = counted("topics", page);
        object["decisions"] = json!([]);
        return Ok(object);
    }
    let limit = Some(limit.unwrap_or(USUAL).clamp(1, 200));
    let request = DecisionsRequest { limit: usize::MAX, ..read(given)? };
    let report = decide::decisions(&call.context, &request)?;
    let all = report.to_json()["decisions"].as_array().cloned().unwrap_or_default();
    let page = page(
        &all,
        (limit, from.as_deref()),
        PAGE,
        |nth, _| nth.to_string(),
        |it| {
            pick(
                it,
                "id topic decision reasoning? by? decided_at? plan? step? supersedes? superseded_by? path",
            )
        },
    )?;
    let mut object = counted("decisions", page);
    if let Some(nearest) = report.near.first() {
        object["nearest"] = nearest.as_str().into();
        object["near"] = report.near.into();
    }
    Ok(object)
}

fn list_assets(call: &Call, mut given: Object) -> Result<Value, Refusal> {
    let context = &call.context;
    let kind: String = take(&mut given, "kind")?.unwrap_or_default();
    let (plan, name) = (take::<String>(&mut given, "plan")?, take::<String>(&mut given, "name")?);
    let cursor: Option<String> = take(&mut given, "cursor")?;
    let items: Vec<Value> = match (kind.as_str(), &name) {
        ("templates", Some(name)) => vec![template::show(context, name)?.to_json()],
        ("templates", None) => list_of(&template::list_to_json(&template::list(context), &[]), "templates"),
        ("prompts", Some(name)) => {
            let missing = || Error::NotFound {
                what: "prompt",
                name: name.clone(),
                nearest: crate::plan::words::nearest(name, prompt::names()),
            };
            vec![prompt::show(context, name).ok_or_else(missing)?.to_json()]
        }
        ("prompts", None) => {
            let shown =
                |it: &prompt::Prompt| pick(&it.to_json(), "name description source variables problem");
            prompt::list(context).iter().map(shown).collect()
        }
        (_, Some(name)) => vec![script::show(context, name)?.to_json()],
        (_, None) => {
            let shown = |it: &script::Resolved| {
                pick(&it.to_json(), "id name description? command directory_path? plan? trusted path")
            };
            script::list(context, plan.as_deref())?.iter().map(shown).collect()
        }
    };
    let start = offset(cursor.as_deref())?;
    let from = start.checked_sub(1).map(|it| it.to_string());
    let room = if name.is_some() { result::LONG_PAGE } else { PAGE };
    let page = page(&items, (None, from.as_deref()), room, |nth, _| nth.to_string(), without_nulls)?;
    let mut object = counted("items", page);
    object["kind"] = kind.into();
    Ok(object)
}

fn without_nulls(of: &Value) -> Value {
    let Some(map) = of.as_object() else { return of.clone() };
    map.iter()
        .filter(|(_, it)| !it.is_null())
        .map(|(key, it)| (key.clone(), it.clone()))
        .collect::<Map<_, _>>()
        .into()
}

fn list_of(object: &Value, key: &str) -> Vec<Value> {
    object[key].as_array().cloned().unwrap_or_default()
}

fn manage_script(call: &Call, mut given: Object) -> Result<Value, Refusal> {
    if given.remove("action").is_some_and(|it| it == "delete") {
        let name = given["name"].as_str().unwrap_or_default();
        return result::changed(script::remove(&call.context, name, Mode::Write)?);
    }
    if !given.contains_key("command") {
        return Err(Refusal::usage("the argument `command` is missing", "add takes `name` and `command`"));
    }
    result::changed(script::add(&call.context, &read(given)?)?)
}
