//! The results of tools. They contain parts of the operations' JSON, and long lists are divided into pages. A refusal has
//! a hint that names the next call to make.

use rmcp::ErrorData;
use rmcp::model::{CallToolResult, ContentBlock};
use serde_json::{Map, Value, json};

use crate::api::context::KeptSaves;
use crate::api::error::Error;
use crate::api::views::PlanShape;
use crate::plan::file_name::PLAN_FILE;
use crate::serve::hints::{self, Surface};
use crate::serve::mcp::schema;
use crate::store::transaction::ChangeReport;

/// The maximum size of a page, in bytes of JSON. A page of this size has less than 2,000 tokens.
pub(super) const PAGE: usize = 5_500;

/// The maximum size of a page, in bytes of JSON, if the call limits the number of items or names one item. Without a limit,
/// the maximum size of a page with the full texts of steps is half of this.
pub(super) const LONG_PAGE: usize = 40_000;

/// The maximum length in bytes of a step's or plan's text that is returned in full.
pub(super) const TEXT: usize = 20_000;

/// The maximum length in bytes of a message or hint of a refusal.
const MOST_SAID: usize = 1_000;

/// Why a tool refused a call, or the rest of a call.
#[derive(Debug)]
pub(super) struct Refusal {
    code: String,
    message: String,
    hint: Option<String>,
    /// Boxed, so that a result without a refusal stays small.
    details: Box<Value>,
}

impl Refusal {
    pub(super) fn new(code: &str, message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self {
            code: code.to_owned(),
            message: message.into(),
            hint: Some(hint.into()),
            details: Box::new(json!({})),
        }
    }

    /// Converts the refusal to a protocol error, which is the only way to refuse a request for a resource.
    pub(super) fn of_resource(self, uri: &str) -> ErrorData {
        let data = json!({"uri": uri, "code": self.code, "hint": self.hint});
        ErrorData::invalid_params(self.message, Some(data))
    }

    pub(super) fn usage(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::new("usage", message, hint)
    }

    /// Adds to the message the change that was made before the refusal and is not undone.
    pub(super) fn after(self, done: &Value) -> Self {
        let text = |key: &str| done[key].as_str().unwrap_or_default();
        let message = format!("{}; before that `{}` was changed: {}", self.message, text("id"), text("did"));
        if done["written"] == true { Self { message, ..self } } else { self }
    }

    /// Adds the saves of other programs that were preserved during the call.
    pub(super) fn with_kept(mut self, kept: &KeptSaves) -> Self {
        kept.put_into(&mut self.details);
        self
    }

    /// Applies `change` to the hint, if there is one.
    pub(super) fn reworded(self, change: impl FnOnce(String) -> String) -> Self {
        Self { hint: self.hint.map(change), ..self }
    }

    /// Removes the parts of the hint that name tools which the toolset does not have.
    pub(super) fn within(self, all: &[&str], has: &dyn Fn(&str) -> bool) -> Self {
        let is_missing = self.code == "not-found";
        let hint = self.hint.and_then(|it| hints::with_tools(&it, all, has));
        // A refusal with the code `not-found` and no hint gets a hint that names `recall`, if the toolset has this tool.
        let other =
            || (is_missing && has("recall")).then(|| "recall finds plans and steps by words".to_owned());
        Self { hint: hint.or_else(other), ..self }
    }

    /// Converts the refusal to a result with one text: JSON with the code, the message, the hint, and the details if they
    /// are short. There is no structured content, because the tool's schema describes only successful results.
    pub(super) fn into_result(self) -> CallToolResult {
        // A text that was refused for its length must not be returned in full.
        let short = |it: String| cut(&it, MOST_SAID).map_or(it, |cut| format!("{cut}…"));
        let mut error = json!({"code": self.code, "message": short(self.message)});
        if let Some(hint) = self.hint {
            error["hint"] = short(hint).into();
        }
        let is_told = self.details.as_object().is_some_and(|it| !it.is_empty());
        if is_told && self.details.to_string().len() <= 2 * MOST_SAID {
            error["details"] = *self.details;
        }
        CallToolResult::error(vec![ContentBlock::text(json!({"error": error}).to_string())])
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        Self {
            code: error.code().to_owned(),
            message: error.to_string(),
            hint: hint(&error),
            details: Box::new(error.details()),
        }
    }
}

/// The hint of an error, for agents. The hints of operations name commands. This hint names a tool instead, if there is
/// one.
pub(super) fn hint(error: &Error) -> Option<String> {
    let hint = match error {
        Error::NotFound { nearest: Some(it), .. } => format!("did you mean `{it}`?"),
        Error::NotFound { what: "template", .. } => "list_assets with kind `templates` names them".to_owned(),
        Error::NotFound { what: "prompt", .. } => "list_assets with kind `prompts` names them".to_owned(),
        Error::NotFound { what: "script", .. } => "list_assets with kind `scripts` names them".to_owned(),
        Error::NotFound { what: "decision", .. } => "get_decisions lists them".to_owned(),
        Error::NoPlansDir => "create_plan makes the plans directory with its first plan".to_owned(),
        Error::WhichPlan { .. } => "name the step with its plan, as in `auth:2`".to_owned(),
        Error::DependenciesOpen { open, .. } if !open.iter().any(|it| it.contains("does not exist")) => {
            "finish these steps first; claim_next_step claims a ready step".to_owned()
        }
        Error::ConfirmationNeeded { .. } => "confirm_gate asks the person".to_owned(),
        Error::Claimed { id, .. } => {
            format!("give the id of your claim as `claim`; claim_next_step claims a step other than `{id}`")
        }
        Error::Held { .. } => "claim_next_step with the plan alone claims another step".to_owned(),
        Error::NotExpected { .. } => "read it again with get_plan or get_step, then try again".to_owned(),
        Error::NotFound { what: "draft", .. } => {
            "start again: refine_draft with `plan` and `conversation`".to_owned()
        }
        Error::ClaimedWithin { .. } => "wait until the work is done".to_owned(),
        Error::ClaimGone { .. } => "claim_next_step claims a step".to_owned(),
        Error::ClaimLost { id, .. } => {
            format!("stop working on it: the step is no longer yours; get_step with `{id}` shows its state")
        }
        other => return hints::for_surface(&other.hint()?, Surface::Tools),
    };
    Some(hint)
}

/// Joins the hints of a successful report. They name tools instead of commands.
pub(super) fn joined_hints(hints: &[String]) -> Option<String> {
    let told: Vec<_> = hints.iter().filter_map(|it| hints::for_surface(it, Surface::Tools)).collect();
    (!told.is_empty()).then(|| told.join("; "))
}

/// Makes the hints of a result name tools instead of commands, and removes the parts that name tools which the toolset does
/// not have.
pub(super) fn within(mut object: Value, all: &[&str], has: &dyn Fn(&str) -> bool) -> Value {
    let said = |it: &Value| {
        let told = hints::for_surface(it.as_str()?, Surface::Tools)?;
        hints::with_tools(&told, all, has).map(Value::from)
    };
    let problems = object.get_mut("problem_list").and_then(Value::as_array_mut);
    for problem in problems.into_iter().flatten().filter_map(Value::as_object_mut) {
        if let Some(hint) = problem.get_mut("hint") {
            *hint = said(hint).unwrap_or_default();
        }
    }
    let Some(map) = object.as_object_mut() else { return object };
    if let Some(why) = map.get_mut("why")
        && let Some(told) = said(why)
    {
        *why = told;
    }
    if let Some(hint) = map.remove("hint") {
        map.extend(said(&hint).map(|it| ("hint".to_owned(), it)));
    }
    object
}

/// The result of a call: the object, and the same object as text, for clients that show only texts.
pub(super) fn answer(object: Value) -> CallToolResult {
    let text = object.to_string();
    let mut result = CallToolResult::success(vec![ContentBlock::text(text)]);
    result.structured_content = Some(object);
    result
}

/// Copies the fields that a notation names, except optional fields that are empty, false or 0.
pub(super) fn pick(of: &Value, notation: &str) -> Value {
    let mut picked = Map::new();
    for (name, is_required) in schema::fields(notation) {
        match of.get(name) {
            Some(value) if is_required || has_content(value) => {
                picked.insert(name.to_owned(), value.clone());
            }
            _ => {}
        }
    }
    Value::Object(picked)
}

fn has_content(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(it) => *it,
        Value::Array(it) => !it.is_empty(),
        Value::Object(it) => !it.is_empty(),
        Value::String(it) => !it.is_empty(),
        Value::Number(it) => it.as_u64() != Some(0),
    }
}

/// A plan in one line.
pub(super) fn plan(of: &Value) -> Value {
    let mut plan = pick(of, schema::PLAN);
    if let Some(kind) = of.get("plan_kind") {
        plan["kind"] = kind.clone();
    }
    shorten(&mut plan, "title");
    plan
}

/// A step in one line.
pub(super) fn line(of: &Value) -> Value {
    let mut line = pick(of, schema::LINE);
    if let Some(by) = of["claim"]["by"].as_str() {
        line["claimed_by"] = by.into();
    }
    shorten(&mut line, "title");
    line
}

/// A step with everything that its worker needs. If there are many attempts or notes, it has only the last ones.
pub(super) fn step(of: &Value) -> Value {
    const ATTEMPTS: usize = 10;
    let mut step = pick(of, schema::STEP);
    let mut more = Vec::new();
    for key in ["attempts", "notes"] {
        let Some(list) = step.get_mut(key).and_then(Value::as_array_mut) else { continue };
        if list.len() > ATTEMPTS {
            let left_out = list.len() - ATTEMPTS;
            list.drain(..left_out);
            more.push(format!("{left_out} earlier {key}"));
        }
    }
    if let Some(body) = step["body"].as_str()
        && let Some(cut) = cut(body, TEXT)
    {
        more.push(format!("{} more bytes of the text", body.len() - cut.len()));
        step["body"] = cut.into();
    }
    if !more.is_empty() {
        let path = step["path"].as_str().unwrap_or_default();
        step["more"] = format!("{} are in {path}", more.join(" and ")).into();
    }
    step
}

/// Cuts a text to at most `limit` bytes, at the last line end if that is in the second half. Returns `None` if the text
/// is not longer than `limit`.
pub(super) fn cut(text: &str, limit: usize) -> Option<String> {
    if text.len() <= limit {
        return None;
    }
    let end = (0..=limit).rev().find(|it| text.is_char_boundary(*it)).unwrap_or(0);
    let line_end = text[..end].rfind('\n').filter(|it| *it > end / 2);
    Some(text[..line_end.unwrap_or(end)].to_owned())
}

/// Cuts a title that is too long for a list.
fn shorten(object: &mut Value, key: &str) {
    const LONG: usize = 160;
    if let Some(cut) = object[key].as_str().and_then(|it| cut(it, LONG)) {
        object[key] = format!("{cut}…").into();
    }
}

/// A part of a list.
pub(super) struct Page {
    pub(super) items: Vec<Value>,
    /// The cursor of the next page; `None` if there is none.
    pub(super) next: Option<String>,
}

/// Makes a page with at most `limit` items. The page ends earlier if the next item does not fit into `room` bytes, or into
/// [`LONG_PAGE`] bytes if there is a limit. The page contains at least one item, if there is one.
///
/// `from` is the key of the previous page's last item. The new page begins after that item.
pub(super) fn page<T>(
    all: &[T],
    (limit, from): (Option<usize>, Option<&str>),
    room: usize,
    key: impl Fn(usize, &T) -> String,
    shape: impl Fn(&T) -> Value,
) -> Result<Page, Refusal> {
    let start = match from {
        None => 0,
        Some(from) => {
            let last = all.iter().enumerate().position(|(nth, it)| key(nth, it) == from);
            let gone = || {
                Refusal::usage(format!("the cursor `{from}` is no longer valid"), "start without a cursor")
            };
            last.ok_or_else(gone)? + 1
        }
    };
    let room = if limit.is_some() { LONG_PAGE } else { room };
    let (mut items, mut size, mut next) = (Vec::new(), 0, None);
    for (nth, item) in all.iter().enumerate().skip(start) {
        let shown = shape(item);
        size += shown.to_string().len() + 1;
        if !items.is_empty() && (size > room || limit.is_some_and(|it| items.len() >= it)) {
            next = nth.checked_sub(1).and_then(|it| Some(key(it, all.get(it)?)));
            break;
        }
        items.push(shown);
    }
    Ok(Page { items, next })
}

/// The key of a plan in a page. It is not always the id, because an archived plan can have the same id as another plan.
pub(super) fn plan_key(plan: &PlanShape) -> String {
    if plan.archived { format!("_archive/{}", plan.id) } else { plan.id.clone() }
}

/// The key of a step in a page. It is the name of the step's file, because two files can have the same step number. For a
/// step that is only in the Steps list, it is the id.
pub(super) fn step_key(path: &str, id: &str) -> String {
    path.rsplit('/').next().filter(|it| *it != PLAN_FILE).unwrap_or(id).to_owned()
}

pub(super) fn put(object: &mut Value, name: &str, page: Page) {
    object[name] = page.items.into();
    if let Some(next) = page.next {
        object["next_cursor"] = next.into();
    }
}

/// The fields of the result of a change, in the notation of results.
pub(super) const CHANGED: &str = "id title? did written:bool path status:any? etag:any? hint:any?";

/// The last change of a report as an object. If any change was refused, returns the first refusal.
pub(super) fn changed(report: ChangeReport) -> Result<Value, Refusal> {
    let ChangeReport { changes, refused, hints, .. } = report;
    if let Some(refused) = refused.into_iter().next() {
        return Err(refused.error.into());
    }
    let Some(changed) = changes.into_iter().next_back() else {
        return Err(Refusal::new("nothing-done", "nothing was changed", "read the plan or step again"));
    };
    let mut object = json!({
        "id": changed.id, "title": changed.title, "did": changed.did, "written": changed.was_written,
        "path": changed.path,
    });
    let status = changed.now.get("status").cloned().or_else(|| changed.status.map(Value::from));
    let found = [("status", status), ("etag", changed.now.get("etag").cloned())];
    for (key, value) in found {
        if let Some(value) = value.filter(has_content) {
            object[key] = value;
        }
    }
    if let Some(hint) = joined_hints(&hints) {
        object["hint"] = hint.into();
    }
    Ok(object)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_plan_has_a_hint_in_every_toolset() {
        let hint = |code: &str, tools: &[&str]| {
            let refusal = Refusal::new(code, "there is no plan `x`", "list_plans names the plans");
            let all = ["list_plans", "recall"];
            refusal.within(&all, &|name: &str| tools.contains(&name)).hint
        };
        assert_eq!(
            hint("not-found", &["list_plans", "recall"]).as_deref(),
            Some("list_plans names the plans")
        );
        assert_eq!(hint("not-found", &["recall"]).as_deref(), Some("recall finds plans and steps by words"));
        assert_eq!(hint("not-found", &[]), None);
        assert_eq!(hint("plan-exists", &["recall"]), None);
    }
}
