//! Steps as JSON, or as YAML that was converted to JSON: an array of titles or objects, or an object with such an array
//! under `steps`.

use serde_json::{Map, Value};

use super::{Dependency, NotSteps, StepItem};
use crate::plan::change::{set, set_status, set_text, set_texts, set_word};
use crate::plan::id::StepId;
use crate::plan::model::Plan;
use crate::plan::records::Priority;
use crate::plan::references;
use crate::plan::step_number::StepNumber;
use crate::plan::time::Day;
use crate::plan::words::{StepStatus, Words, nearest};
use crate::text::header_edit::{Change, NewValue};
use crate::text::placeholders::one_line;
use crate::text::scalar;

const KEYS: &str = "title task number step_number body description status depends phase type assignee priority \
                    due tags touches verify confirm metadata notes";

/// The other keys of `list --json`. They are accepted, but their values are ignored: a step keeps its own. Only
/// `depends_ranges` has an effect: if it contains ranges, `depends` is ignored.
const SHOWN: &str = "id plan ready claim lapsed unverified result attempts tasks_done tasks_total last_activity \
                     last_activity_source path etag problems custom created_by created_at confirmed waits_for \
                     depends_ranges schema_version kind";

pub(super) fn read(plan: &Plan, text: &str, words: &Words) -> Result<Vec<StepItem>, NotSteps> {
    let text = text.trim_start_matches('\u{feff}');
    let value: Value = serde_json::from_str(text).map_err(|error| NotSteps::At {
        line: error.line(),
        column: error.column(),
        reason: error.to_string().split(" at line ").next().unwrap_or_default().to_owned(),
    })?;
    items(plan, &value, words)
}

pub(super) fn items(plan: &Plan, value: &Value, words: &Words) -> Result<Vec<StepItem>, NotSteps> {
    let items = match value {
        Value::Array(items) => items,
        Value::Object(map) => map.get("steps").and_then(Value::as_array).ok_or(NotSteps::None)?,
        _ => return Err(NotSteps::None),
    };
    let numbers: Vec<Option<StepNumber>> =
        items.iter().enumerate().map(|(nth, it)| number(nth, it)).collect::<Result<_, _>>()?;
    let read = items.iter().enumerate().map(|(nth, it)| item(plan, nth, it, &numbers, words));
    read.collect()
}

fn wrong(nth: usize, reason: impl Into<String>) -> NotSteps {
    NotSteps::Item { item: nth + 1, reason: reason.into() }
}

fn number(nth: usize, item: &Value) -> Result<Option<StepNumber>, NotSteps> {
    let value = item.get("number").or_else(|| item.get("step_number"));
    let Some(value) = value.filter(|it| !it.is_null()) else { return Ok(None) };
    let text = plain(value).unwrap_or_default();
    text.parse().map(Some).map_err(|_| wrong(nth, format!("`number` is not a step number: {value}")))
}

/// Returns a string, or a number as text.
fn plain(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

fn item(
    plan: &Plan,
    nth: usize,
    value: &Value,
    numbers: &[Option<StepNumber>],
    words: &Words,
) -> Result<StepItem, NotSteps> {
    let title_alone = Map::from_iter(value.as_str().map(|it| ("title".to_owned(), Value::from(it))));
    let object = value.as_object().unwrap_or(&title_alone);
    let is_known = |key: &str| [KEYS, SHOWN].iter().any(|keys| keys.split(' ').any(|it| it == key));
    if let Some(key) = object.keys().find(|it| !is_known(it)) {
        let near = nearest(key, KEYS.split(' '));
        let near = near.map(|it| format!("; did you mean `{it}`?")).unwrap_or_default();
        return Err(wrong(nth, format!("`{key}` is not a field of a step{near}")));
    }
    let text = |keys: &[&str]| -> Result<Option<String>, NotSteps> {
        let Some((key, value)) = keys.iter().find_map(|it| Some((it, object.get(*it)?))) else {
            return Ok(None);
        };
        match value {
            Value::Null => Ok(None),
            Value::String(text) => Ok(Some(text.clone())),
            _ => Err(wrong(nth, format!("`{key}` is not a text"))),
        }
    };
    let title = text(&["title", "task"])?.unwrap_or_default();
    let title = one_line(&title);
    if title.is_empty() {
        return Err(wrong(nth, "it has no title"));
    }
    let mut keys = Vec::new();
    let status: Option<StepStatus> = match text(&["status"])? {
        Some(word) => {
            Some(words.read(&word).ok_or_else(|| wrong(nth, format!("`{word}` is not a status of a step")))?)
        }
        None => None,
    };
    keys.extend(status.map(set_status));
    match object.get("confirm") {
        None | Some(Value::Null | Value::Bool(false)) => {}
        Some(value) if *value == Value::Bool(true) || value == "required" => {
            keys.push(set_word("confirm", "required"));
        }
        Some(value) => return Err(wrong(nth, format!("`{value}` is not a value of `confirm`"))),
    }
    for key in ["phase", "type", "assignee", "priority"] {
        let Some(value) = text(&[key])? else { continue };
        if key == "priority" && Priority::read(&value).is_none() {
            return Err(wrong(nth, format!("`{value}` is not a value of `{key}`")));
        }
        keys.push(set_text(key, &value));
    }
    if let Some(value) = text(&["due"])? {
        let day = value.parse::<Day>().map_err(|it| wrong(nth, it.to_string()))?;
        keys.push(set_word("due", &day.to_string()));
    }
    keys.extend(lists(nth, object)?);
    let body = text(&["body", "description"])?.unwrap_or_default().replace("\r\n", "\n");
    Ok(StepItem {
        text: without_heading(&body, &title).trim_matches('\n').to_owned(),
        title,
        number: numbers[nth].clone(),
        keys,
        status,
        notes: notes(nth, object)?,
        depends: match object.get("depends_ranges") {
            // `depends` is ignored, because it contains only the two ends of each range. The step's text states the ranges.
            Some(Value::Array(ranges)) if !ranges.is_empty() => None,
            _ => depends(plan, nth, object, numbers)?,
        },
    })
}

/// Removes the first heading of a body if it only repeats the title.
fn without_heading<'a>(body: &'a str, title: &str) -> &'a str {
    let start = body.trim_start_matches('\n');
    let (first, rest) = start.split_once('\n').unwrap_or((start, ""));
    match first.strip_prefix("# ") {
        Some(heading) if one_line(heading) == title || heading.ends_with(&format!(": {title}")) => rest,
        _ => body,
    }
}

fn lists(nth: usize, object: &Map<String, Value>) -> Result<Vec<Change>, NotSteps> {
    let mut changes = Vec::new();
    for key in ["tags", "touches"] {
        let Some(value) = object.get(key).filter(|it| !it.is_null()) else { continue };
        let texts: Option<Vec<String>> =
            value.as_array().and_then(|it| it.iter().map(|it| it.as_str().map(str::to_owned)).collect());
        changes.extend(set_texts(
            key,
            &texts.ok_or_else(|| wrong(nth, format!("`{key}` is not a list of texts")))?,
        ));
    }
    for (key, is_right) in [("verify", Value::is_array as fn(&Value) -> bool), ("metadata", Value::is_object)]
    {
        let Some(value) = object.get(key).filter(|it| !it.is_null()) else { continue };
        if !is_right(value) {
            return Err(wrong(nth, format!("`{key}` has the wrong type")));
        }
        let is_empty =
            value.as_array().is_some_and(Vec::is_empty) || value.as_object().is_some_and(Map::is_empty);
        if is_empty {
            continue;
        }
        let texts: Option<Vec<&str>> = value.as_array().and_then(|it| it.iter().map(command).collect());
        changes.push(match texts {
            Some(texts) => list_of(key, texts),
            None => set(key, NewValue::Yaml(scalar::json(value))),
        });
    }
    if object.get("touches").and_then(Value::as_array).is_some_and(Vec::is_empty) {
        changes.push(list_of("touches", Vec::new()));
    }
    Ok(changes)
}

/// Reads `notes`: a string, or an array of strings and of objects with a `text`.
fn notes(nth: usize, object: &Map<String, Value>) -> Result<Vec<String>, NotSteps> {
    let text = |it: &Value| it.as_str().or_else(|| it.get("text")?.as_str()).map(str::to_owned);
    let read = match object.get("notes") {
        None | Some(Value::Null) => Some(Vec::new()),
        Some(Value::Array(items)) => items.iter().map(text).collect(),
        Some(value) => value.as_str().map(|it| vec![it.to_owned()]),
    };
    let read = read.ok_or_else(|| wrong(nth, "`notes` is not a text"))?;
    Ok(read.into_iter().filter(|it| !it.trim().is_empty()).collect())
}

/// The command of a `verify` item that has only a command.
fn command(value: &Value) -> Option<&str> {
    let object = value.as_object().filter(|it| it.len() == 1);
    value.as_str().or_else(|| object?.get("run")?.as_str())
}

fn list_of(key: &str, texts: Vec<&str>) -> Change {
    let items = texts.into_iter().map(|it| NewValue::Text(it.to_owned())).collect();
    set(key, NewValue::List(items))
}

/// Reads `depends`. A number means the item with that number or, if no item has a number, the item at that position,
/// counted from 1. If there is no such item, it means an existing step.
fn depends(
    plan: &Plan,
    nth: usize,
    object: &Map<String, Value>,
    numbers: &[Option<StepNumber>],
) -> Result<Option<Vec<Dependency>>, NotSteps> {
    let Some(value) = object.get("depends").filter(|it| !it.is_null()) else { return Ok(None) };
    let items = value.as_array().ok_or_else(|| wrong(nth, "`depends` is not a list"))?;
    let are_counted = numbers.iter().all(Option::is_none);
    let mut found = Vec::new();
    for item in items {
        let text = plain(item).unwrap_or_default();
        let step = references::read_item(&plan.id, &text);
        let step = step.ok_or_else(|| wrong(nth, format!("`depends` names no step: {item}")))?;
        let is_bare = !text.contains([':', '/']);
        let by_number = (step.plan == plan.id)
            .then(|| numbers.iter().position(|it| it.as_ref() == Some(&step.number)))
            .flatten();
        let by_place = |step: &StepId| {
            let place = step.number.to_string().parse::<usize>().ok()?;
            (are_counted && is_bare && (1..=numbers.len()).contains(&place)).then(|| place - 1)
        };
        let item = by_number.or_else(|| by_place(&step));
        found.push(item.map_or(Dependency::Step(step), Dependency::Item));
    }
    Ok(Some(found))
}
