//! Tools that read plans and steps.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::api::views::PlanShape;
use crate::ops::list::{self, ListReport, ListRequest};
use crate::ops::next::{self, NextRequest};
use crate::ops::show::ShowReport;
use crate::ops::stats::{self, StatsRequest};
use crate::ops::status::{self, StatusRequest};
use crate::serve::mcp::lookup;
use crate::serve::mcp::result::{self, PAGE, Refusal, page, pick, put};
use crate::serve::mcp::schema::{self, Object};
use crate::serve::mcp::tool::{Call, Effect, Tool};
use crate::store::typed_words;

pub(super) fn tools() -> Vec<Tool> {
    vec![
        Tool::new(
            ("list_plans", "List plans"),
            Effect::Reads,
            "Lists plans by `status`; active and draft ones by default.",
            "plans:plan[] next_cursor? hidden:int?",
            list_plans,
        ),
        Tool::new(
            ("get_plan", "Read a plan"),
            Effect::Reads,
            "Reads a plan with its steps in order, one line per step. `detail: full` adds the texts.",
            GOT_PLAN,
            get_plan,
        ),
        Tool::of::<()>(
            ("get_step", "Read a step"),
            Effect::Reads,
            "Reads a step in full: text, attempts, dependencies, owner.",
            ("step:str(Id, as auth:2)", GOT_STEP),
            get_step,
        ),
        Tool::of::<NextRequest>(
            ("peek_next_step", "Look at the next step"),
            Effect::Reads,
            "Returns the next ready step, and why, without claiming it. Without `plan`: in all active plans.",
            ("plan", "state why step:line? path?"),
            peek_next_step,
        ),
        Tool::of::<StatusRequest>(
            ("briefing", "What needs attention"),
            Effect::Reads,
            "Lists what failed, what is blocked or stale, and what needs a person; who works on what; what is ready.",
            (
                "days(Until stale) branches stats:bool? limit:int?",
                "attention:list in_progress:list ready:list finished:list branches:list? stats:obj? errors:int warnings:int plans:int more:obj?",
            ),
            briefing,
        ),
    ]
}

#[derive(Debug, Deserialize, JsonSchema)]
struct ListPlans {
    /// active, draft, completed, abandoned, archived or all
    status: Option<String>,
    /// Words in id, title, description
    query: Option<String>,
    /// Title or id
    title: Option<String>,
    program: Option<String>,
    category: Option<String>,
    limit: Option<usize>,
    /// next_cursor of the page before
    cursor: Option<String>,
}

fn list_plans(call: &Call, asked: ListPlans) -> Result<Value, Refusal> {
    let (is_archived, is_all) =
        (asked.status.as_deref() == Some("archived"), asked.status.as_deref() == Some("all"));
    let request = ListRequest {
        status: asked.status.clone().filter(|_| !is_archived && !is_all).into_iter().collect(),
        archived: is_archived,
        all: is_all || asked.title.is_some() && asked.status.is_none(),
        program: asked.program,
        ..ListRequest::default()
    };
    let ListReport::Plans { mut plans, hidden } = list::list(&call.context, &request)? else {
        return Ok(json!({"plans": []}));
    };
    let n_all = plans.len();
    let words: Vec<_> =
        asked.query.iter().flat_map(|it| it.split_whitespace()).map(str::to_lowercase).collect();
    let has_words = |it: &PlanShape| {
        let text = format!("{} {} {}", it.id, it.title, it.description.as_deref().unwrap_or_default())
            .to_lowercase();
        words.iter().all(|word| text.contains(word))
    };
    plans.retain(|it| {
        asked.title.as_ref().is_none_or(|title| it.title == *title || it.id == *title)
            && asked.category.as_ref().is_none_or(|wanted| it.category.as_ref() == Some(wanted))
            && has_words(it)
    });
    let from = (asked.limit, asked.cursor.as_deref());
    let shape = |it: &PlanShape| result::plan(&crate::api::views::value(it));
    let page = page(&plans, from, PAGE, |_, it| result::plan_key(it), shape)?;
    let mut object = json!({});
    put(&mut object, "plans", page);
    // The number of plans that would be added with the status `all`. It is omitted if `query`, `title` or `category`
    // removed plans.
    if hidden > 0 && plans.len() == n_all {
        object["hidden"] = hidden.into();
    }
    Ok(object)
}

/// The fields of a plan, in the notation of `schema::of_result`.
const GOT_PLAN: &str = "id title status state kind priority? due? program? goals:strs? steps_total:int steps_completed:int \
                        steps_ready:int? incomplete:bool? path etag? body? steps:line[] children:list? notes:list? decisions:list? \
                        next_cursor? more? category:any? tags:any? success_criteria:any? description:any? steps_failed:any? \
                        steps_blocked:any? steps_in_progress:any? confirm_phases:any? problem_list:any? archived:any?";

#[derive(Debug, Deserialize, JsonSchema)]
struct GetPlan {
    /// Id or title
    plan: String,
    detail: Option<Detail>,
    /// A status, or `ready`
    status: Option<String>,
    limit: Option<usize>,
    cursor: Option<String>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Detail {
    #[default]
    Outline,
    Full,
}

/// The usual maximum number of items of a list other than the steps. The limits of some lists are multiples of this number,
/// or half of it.
const FEW: usize = 10;

/// The minimum number of bytes for the steps of a plan. It applies even if the plan's other fields fill the page.
const FOR_STEPS: usize = 1_500;

fn get_plan(call: &Call, asked: GetPlan) -> Result<Value, Refusal> {
    let is_full = asked.detail == Some(Detail::Full);
    let otherwise = "get_step reads a step; list_plans names the plans";
    let shown = lookup::shown(call, &asked.plan, is_full, otherwise)?;
    got_plan(call, asked, &ShowReport::Plan(Box::new(shown)).to_json())
}

fn got_plan(call: &Call, asked: GetPlan, whole: &Value) -> Result<Value, Refusal> {
    let GetPlan { detail, status, limit, cursor, .. } = asked;
    let is_full = detail == Some(Detail::Full);
    let mut object = pick(whole, GOT_PLAN);
    object["kind"] = whole["plan_kind"].clone();
    for key in ["goals", "success_criteria", "notes", "decisions", "problem_list", "tags"] {
        if let Some(list) = object.get_mut(key).and_then(Value::as_array_mut)
            && !is_full
        {
            list.truncate(FEW);
        }
    }
    match whole["body"].as_str().filter(|_| is_full) {
        Some(body) => {
            if let Some(cut) = result::cut(body, result::TEXT) {
                object["more"] =
                    format!("the rest of the text is in {}", whole["path"].as_str().unwrap_or_default())
                        .into();
                object["body"] = cut.into();
            }
        }
        None => {
            if let Some(map) = object.as_object_mut() {
                map.remove("body");
                map.remove("description")
                    .filter(|it| it.to_string().len() < 600)
                    .map(|it| map.insert("description".to_owned(), it));
            }
        }
    }
    if let Some(children) = whole["children"].as_array() {
        object["children"] =
            children.iter().take(FEW * 3).map(|it| pick(it, "id title status state")).collect();
    }
    let none = Vec::new();
    let statuses = wanted(call, status.as_deref())?;
    let is_wanted = |it: &&Value| match statuses {
        Wanted::All => true,
        Wanted::Ready => it["ready"] == true,
        Wanted::Status(ref word) => it["status"] == word.as_str(),
    };
    let steps: Vec<_> = whole["steps"].as_array().unwrap_or(&none).iter().filter(is_wanted).collect();
    object["steps"] = json!([]);
    let room = if is_full { result::LONG_PAGE / 2 } else { PAGE };
    let room = room.saturating_sub(object.to_string().len()).max(FOR_STEPS);
    let from = (limit, cursor.as_deref());
    let shape = |it: &&Value| if is_full { result::step(it) } else { result::line(it) };
    let text = |it: &'_ Value, key: &str| it[key].as_str().unwrap_or_default().to_owned();
    let key = |_: usize, it: &&Value| result::step_key(&text(it, "path"), &text(it, "id"));
    let page = page(&steps, from, room, key, shape)?;
    put(&mut object, "steps", page);
    Ok(object)
}

enum Wanted {
    All,
    Ready,
    Status(String),
}

/// Reads a status in the same way as the command line, including the words that the project defines.
fn wanted(call: &Call, typed: Option<&str>) -> Result<Wanted, Refusal> {
    match typed {
        None | Some("all") => Ok(Wanted::All),
        Some("ready") => Ok(Wanted::Ready),
        Some(typed) => {
            let status =
                typed_words::read_word::<crate::plan::words::StepStatus>(&call.context.config.words, typed)?;
            Ok(Wanted::Status(crate::plan::words::Status::word(status).to_owned()))
        }
    }
}

/// The fields of a step, in the notation of `schema::of_result`.
const GOT_STEP: &str = "id plan title status ready:bool? depends:strs? waits_for:strs? phase? claim:obj? verify:list? \
                        touches:strs? result? attempts:list? notes:list? metadata:obj? path etag? body more? unverified:any? type:any? assignee:any? due:any? created_by:any? confirm:any? \
                        confirmed:any? tasks_done:any? tasks_total:any? problems:any? why_not_ready:any? dependants:any? lapsed:any? \
                        confirmation:any? decisions:any? problem_list:any? held:any?";

/// More fields of a step. They are omitted if they are empty.
const MORE_OF_STEP: &str = "why_not_ready? dependants? lapsed? confirmation? decisions? problem_list? held?";

fn get_step(call: &Call, mut given: Object) -> Result<Value, Refusal> {
    let step: String = schema::take(&mut given, "step")?.unwrap_or_default();
    let ShowReport::Step(shown) = lookup::step(call, step.trim())? else {
        return Err(Refusal::usage(
            format!("`{step}` is not a step"),
            "get_plan reads a plan and names its steps",
        ));
    };
    let whole = ShowReport::Step(shown).to_json();
    let mut object = result::step(&whole);
    let mut more = pick(&whole, MORE_OF_STEP);
    for (key, value) in more.as_object_mut().into_iter().flatten() {
        if let Some(list) = value.as_array_mut() {
            list.truncate(FEW * 2);
        }
        object[key.as_str()] = value.take();
    }
    if object.get("body").is_none() {
        object["body"] = "".into();
    }
    Ok(object)
}

fn peek_next_step(call: &Call, given: Object) -> Result<Value, Refusal> {
    let request: NextRequest = schema::read(given)?;
    let next = |plan: Option<String>| next::next(&call.context, &NextRequest { plan, most: Some(1) });
    let report = match &request.plan {
        Some(plan) => lookup::plan(call, plan, |id| next(Some(id.to_owned())))?,
        None => next(None)?,
    };
    let mut object = json!({"state": report.state.word(), "why": report.why});
    if let Some(step) = &report.step {
        let whole = crate::api::views::value(step);
        object["step"] = result::line(&whole);
        object["path"] = whole["path"].clone();
    }
    Ok(object)
}

type Shape<'a> = &'a dyn Fn(&Value) -> Value;

fn briefing(call: &Call, mut given: Object) -> Result<Value, Refusal> {
    let limit = schema::take(&mut given, "limit")?;
    let with_stats = schema::take(&mut given, "stats")?.unwrap_or(false);
    let report = status::status(&call.context, &schema::read(given)?)?;
    let n_plans = report.plans.len();
    let whole = report.to_json();
    let attention = |it: &Value| {
        let mut one = pick(it, "reason since? last?");
        one["id"] = it["step"]["id"].clone();
        one["title"] = it["step"]["title"].clone();
        one
    };
    let standing = |it: &Value| {
        let mut one = pick(it, "id title since? finished_at? finished_by?");
        if let Some(by) = it["held"]["by"].as_str().or(it["claim"]["by"].as_str()) {
            one["claimed_by"] = by.into();
        }
        one
    };
    let mut object = json!({
        "attention": [], "in_progress": [], "ready": [], "finished": [],
        "errors": whole["problems"]["errors"], "warnings": whole["problems"]["warnings"], "plans": n_plans,
    });
    let mut more = json!({});
    let on_branch = |it: &Value| pick(it, "id here there branch by at?");
    let lists: [(&str, usize, Shape<'_>); 5] = [
        ("attention", PAGE * 4 / 10, &attention),
        ("in_progress", PAGE * 2 / 10, &standing),
        ("ready", PAGE * 2 / 10, &standing),
        ("finished", PAGE * 2 / 10, &standing),
        ("branches", PAGE * 2 / 10, &on_branch),
    ];
    for (name, room, shape) in lists {
        // The report contains branches only if the call requested them.
        let Some(all) = whole[name].as_array() else { continue };
        let page = page(all, (limit, None), room, |nth, _| nth.to_string(), |it| shape(it))?;
        if page.items.len() < all.len() {
            more[name] = (all.len() - page.items.len()).into();
        }
        object[name] = page.items.into();
    }
    if more.as_object().is_some_and(|it| !it.is_empty()) {
        object["more"] = more;
    }
    if with_stats {
        let request = StatsRequest { by_agent: true, ..StatsRequest::default() };
        object["stats"] = counts(stats::stats(&call.context, &request)?.to_json());
    }
    Ok(object)
}

/// Reduces the statistics to the newest weeks and the first items of each list.
fn counts(mut whole: Value) -> Value {
    if let Some(weeks) = whole["weeks"].as_array_mut() {
        weeks.drain(..weeks.len().saturating_sub(FEW));
    }
    for key in ["tries", "outcomes", "workers", "waiting"] {
        if let Some(list) = whole[key].as_array_mut() {
            list.truncate(FEW / 2);
        }
    }
    for key in ["plan", "since"] {
        whole.as_object_mut().and_then(|it| it.remove(key));
    }
    whole
}
