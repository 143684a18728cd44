//! Maps the front matter of a document: the keys that have another meaning in planwatch, and the steps that some editors
//! store there.

use serde_json::{Map, Value};

use super::super::waits::{Name, Wait};
use super::super::{Unmapped, set_metadata, to_value};
use super::titles::titled;
use super::{Rank, UnnumberedStep};
use crate::plan::change::{set, set_status};
use crate::plan::read::CATEGORIES;
use crate::plan::records::Priority;
use crate::plan::time::Day;
use crate::plan::words::{PlanStatus, StepStatus, Words};
use crate::text::header_edit::Change;

/// Moves the keys whose values planwatch cannot use, and always `program`, `confirmations`, `draft` and `notes`. They are
/// moved into a mapping `imported`, which planwatch does not read. A missing or unknown status becomes active.
pub(super) fn changes(header: &str, keys: &Map<String, Value>, words: &Words) -> Vec<Change> {
    let mut changes = Vec::new();
    let mut moved = Map::new();
    for (key, value) in keys {
        if !is_wrong(key, value, words) {
            continue;
        }
        changes.push(Change::Remove { key: key.clone() });
        moved.insert(key.clone(), value.clone());
    }
    // The mapping `imported` is inside `metadata`. But if `metadata` is a mapping already, it stays unchanged, and
    // `imported` becomes a key of its own.
    let has_metadata = keys.get("metadata").is_some_and(Value::is_object);
    if has_metadata && !moved.is_empty() {
        changes.push(set("imported", to_value(&Value::Object(moved))));
    } else {
        changes.extend(set_metadata("imported", &moved));
    }
    let has_status = keys.contains_key("status") && !is_wrong("status", &keys["status"], words);
    changes.extend((!has_status || header.is_empty()).then(|| set_status(PlanStatus::Active)));
    changes
}

/// Reports what is preserved, but not used by planwatch: a `status` or `order` with an unknown value, and dependencies of
/// the whole document.
pub(super) fn moved(path: &str, keys: &Map<String, Value>, words: &Words) -> Vec<Unmapped> {
    let is_about_steps = |key: &str| {
        matches!(key, "status" | "order" | "depends" | "dependencies" | "depends_on" | "blocked_by")
    };
    let is_left = |key: &str, value: &Value| match key {
        "status" | "order" => is_wrong(key, value, words),
        _ => !value.is_null() && value.as_array().is_none_or(|it| !it.is_empty()),
    };
    let left = keys.iter().filter(|(key, value)| is_about_steps(key) && is_left(key, value));
    let unmapped = |(key, value): (&String, &Value)| Unmapped {
        path: path.to_owned(),
        line: None,
        why: "this part of the front matter is preserved, but planwatch does not use it",
        text: format!("{key}: {value}"),
    };
    left.map(unmapped).collect()
}

fn is_wrong(key: &str, value: &Value, words: &Words) -> bool {
    let text = value.as_str();
    let is_texts = || value.as_array().is_some_and(|it| it.iter().all(Value::is_string));
    match key {
        "title" | "description" => text.is_none(),
        "status" => text.and_then(|it| words.read::<PlanStatus>(it)).is_none(),
        "kind" => !matches!(text, Some("plan" | "program")),
        "category" => !text.is_some_and(|it| CATEGORIES.contains(&it)),
        "due" => text.is_none_or(|it| it.parse::<Day>().is_err()),
        "priority" => text.and_then(Priority::read).is_none(),
        "tags" | "files" | "goals" | "success_criteria" | "confirm_phases" => !is_texts(),
        "order" => !matches!(text, Some("dependencies" | "sequential")),
        "created_at" => text.is_none_or(|it| it.parse::<crate::plan::time::Time>().is_err()),
        "metadata" => !value.is_object(),
        "program" | "confirmations" | "draft" | "notes" => true,
        _ => false,
    }
}

/// The steps in the key `todos`, in which some editors store the steps of a plan. If one of them is neither an object with
/// `content` nor a text, the result is empty. A step with an unknown status is pending.
pub(super) fn todos(keys: &Map<String, Value>, words: &Words) -> Vec<UnnumberedStep> {
    let Some(Value::Array(todos)) = keys.get("todos") else { return Vec::new() };
    let found = todos.iter().map(|it| todo(it, words));
    found.collect::<Option<Vec<_>>>().unwrap_or_default()
}

/// The statuses of the todos that are not statuses of steps.
pub(super) fn unknown_statuses<'a>(todos: &'a Value, words: &'a Words) -> impl Iterator<Item = String> + 'a {
    let statuses = todos.as_array().into_iter().flatten().filter_map(|it| it.get("status"));
    let words_of = statuses.map(|it| it.as_str().map_or_else(|| it.to_string(), str::to_owned));
    words_of.filter(|it| words.read::<StepStatus>(it).is_none())
}

/// The keys of the todos that have another name in a step, each followed by a space.
pub(super) fn key_words(todos: &Value) -> String {
    let keys = todos.as_array().into_iter().flatten().filter_map(Value::as_object).flat_map(|it| it.keys());
    keys.filter(|it| matches!(it.as_str(), "content" | "dependencies")).map(|it| format!("{it} ")).collect()
}

fn todo(of: &Value, words: &Words) -> Option<UnnumberedStep> {
    let none = Map::new();
    let (object, content) = match of {
        Value::String(text) => (&none, text.as_str()),
        _ => (of.as_object()?, of.get("content").and_then(Value::as_str)?),
    };
    let status = object.get("status").and_then(Value::as_str);
    let id = object.get("id").and_then(Value::as_str);
    let waits = object.get("dependencies").and_then(Value::as_array).into_iter().flatten();
    let wait = |it: &str| Wait { name: Name::Text(it.to_owned()), text: it.to_owned(), at: 0 };
    let mut metadata = object.clone();
    metadata.shift_remove("content");
    metadata.retain(|_, it| it.as_array().is_none_or(|it| !it.is_empty()));
    let (title, body) = titled(content);
    Some(UnnumberedStep {
        label: id.map(|it| (Rank::Bare, it.to_owned())),
        title,
        status: status.and_then(|it| words.read(it)),
        waits: waits.filter_map(Value::as_str).map(wait).collect(),
        metadata,
        body,
        ..UnnumberedStep::default()
    })
}
