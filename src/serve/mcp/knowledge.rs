//! Tools for search, decisions, insights, templates, prompts and scripts.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::api::error::Error;
use crate::ops::decide::{self, DecideRequest, DecisionsRequest, Topic};
use crate::ops::insight::{self, InsightRequest};
use crate::ops::search::{self, SearchRequest};
use crate::ops::{prompt, script, template};
use crate::serve::mcp::result::{self, CHANGED, PAGE, Refusal, page, pick, put};
use crate::serve::mcp::schema::{Object, read, take};
use crate::serve::mcp::tool::{Call, Effect, Tool, Without};
use crate::store::transaction::Mode;

pub(super) fn reading() -> Vec<Tool> {
    vec![
        Tool::of::<SearchRequest>(
            ("recall", "Search everything"),
            Effect::Reads,
            "Searches the full text of plans, steps, decisions and insights, best first. \"phrase\" and -word work.",
            (
                "query kind(plan, step, decision or insight) since(A date, or as 7d) limit:int? cursor:str?",
                "hits:hit[] next_cursor?",
            ),
            recall,
        ),
        Tool::of::<DecisionsRequest>(
            ("get_decisions", "Read decisions"),
            Effect::Reads,
            "Reads what was decided, newest first. A decision holds until another supersedes it.",
            (
                "topic plan step since(A date, or as 7d) list_topics:bool?(Only the topics) limit:int? cursor:str?",
                "decisions:decision[] topics:list? nearest? near:strs? next_cursor?",
            ),
            get_decisions,
        ),
        Tool::new(
            ("list_assets", "List templates, scripts, prompts"),
            Effect::Reads,
            "Lists templates, scripts or prompts; with a name, shows one in full. Scripts are never run here.",
            "kind items:list next_cursor?",
            list_assets,
        ),
    ]
}

pub(super) fn writing() -> Vec<Tool> {
    vec![
        Tool::of::<DecideRequest>(
            ("decide", "Record a decision"),
            Effect::Adds,
            "Records what was decided and why, permanently. Read get_decisions of the topic first.",
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
        Tool::new(
            ("manage_script", "Add or delete a script"),
            Effect::TakesAway,
            "Adds or removes a named command. It is never run here; a person trusts it first.",
            CHANGED,
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

/// The index at which the page of a cursor begins.
fn offset(cursor: Option<&str>) -> Result<usize, Refusal> {
    let wrong = |it| {
        Refusal::usage(format!("`{it}` is not a cursor"), "use the next_cursor of the previous page, or none")
    };
    cursor.map_or(Ok(0), |it| it.parse().map_err(|_| wrong(it)))
}

fn recall(call: &Call, mut given: Object) -> Result<Value, Refusal> {
    let start = offset(take::<String>(&mut given, "cursor")?.as_deref())?;
    let limit = take::<usize>(&mut given, "limit")?.unwrap_or(USUAL).clamp(1, 200);
    let request = SearchRequest { limit: start + limit + 1, ..read(given)? };
    let report = search::search(&call.context, &request)?;
    let hits = report.to_json()["hits"].as_array().cloned().unwrap_or_default();
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

/// Puts a page into an object. Its cursor is the number of items so far; that of `page` names the last one.
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

#[derive(Debug, Deserialize, JsonSchema)]
struct ListAssets {
    kind: AssetKind,
    /// Of scripts
    plan: Option<String>,
    name: Option<String>,
    cursor: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum AssetKind {
    Templates,
    Scripts,
    Prompts,
}

fn list_assets(call: &Call, asked: ListAssets) -> Result<Value, Refusal> {
    let ListAssets { kind, plan, name, cursor } = asked;
    let context = &call.context;
    let word = match kind {
        AssetKind::Templates => "templates",
        AssetKind::Scripts => "scripts",
        AssetKind::Prompts => "prompts",
    };
    let items: Vec<Value> = match (kind, &name) {
        (AssetKind::Templates, Some(name)) => vec![template::show(context, name)?.to_json()],
        (AssetKind::Templates, None) => {
            list_of(&template::list_to_json(&template::list(context)?, &[]), "templates")
        }
        (AssetKind::Prompts, Some(name)) => {
            let missing = || Error::NotFound {
                what: "prompt",
                name: name.clone(),
                nearest: crate::plan::words::nearest(name, prompt::names()),
            };
            vec![prompt::show(context, name).ok_or_else(missing)?.to_json()]
        }
        (AssetKind::Prompts, None) => {
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
    object["kind"] = word.into();
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

#[derive(Debug, Deserialize, JsonSchema)]
struct ManageScript {
    action: ScriptAction,
    name: String,
    /// One line for a shell
    command: Option<String>,
    /// From the repository's root
    directory: Option<String>,
    description: Option<String>,
    plan: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum ScriptAction {
    Add,
    Delete,
}

fn manage_script(call: &Call, asked: ManageScript) -> Result<Value, Refusal> {
    let ManageScript { action, name, command, directory, description, plan } = asked;
    if action == ScriptAction::Delete {
        return result::changed(script::remove(&call.context, &name, Mode::Write)?);
    }
    let Some(command) = command else {
        return Err(Refusal::usage("the argument `command` is missing", "add takes `name` and `command`"));
    };
    let request = script::AddRequest {
        name,
        command,
        directory,
        plan,
        description,
        mcp_handle: None,
        mode: Mode::Write,
    };
    result::changed(script::add(&call.context, &request)?)
}
