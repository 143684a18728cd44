//! A store of Backlog.md: a file for each task becomes a step, its sections stay as they are.

use serde_json::{Map, Value, json};

use super::{Brought, BroughtPlan, Draft, Form, left, set_depends, set_metadata, set_texts};
use crate::plan::change::{set_status, set_text, set_word};
use crate::plan::records::Priority;
use crate::plan::step_number::StepNumber;
use crate::plan::time::Time;
use crate::plan::words::{StepStatus, Words};
use crate::text::{foreign, front_matter, placeholders};

/// The folders that hold tasks.
const FOLDERS: [&str; 4] = ["tasks", "completed", "drafts", "archive"];

/// Whether a path is that of a task.
pub(super) fn is_task(path: &str) -> bool {
    let mut parts = path.rsplit('/');
    let is_markdown = parts.next().is_some_and(|it| it.ends_with(".md"));
    is_markdown && folder(path).is_some()
}

fn folder(path: &str) -> Option<&'static str> {
    let directories = path.rsplit_once('/').map_or("", |it| it.0);
    directories.split('/').find_map(|part| FOLDERS.iter().find(|it| **it == part).copied())
}

struct Task<'a> {
    path: &'a str,
    id: String,
    keys: Map<String, Value>,
    body: &'a str,
}

pub(super) fn bring(name: &str, files: &[(&str, &str)], words: &Words) -> Brought {
    let mut unmapped = Vec::new();
    let mut tasks = Vec::new();
    let mut title = None;
    for (path, text) in files {
        let keys = foreign::keys(text.as_bytes()).filter(|it| is_task(path) && it.contains_key("id"));
        let id = keys.as_ref().and_then(|it| it.get("id")).map(plain);
        if let (Some(keys), Some(id)) = (keys, id) {
            let body = front_matter::split(text.as_bytes()).body_start();
            tasks.push(Task { path, id, keys, body: &text[body..] });
            continue;
        }
        if path.rsplit('/').next() == Some("config.yml") {
            title = title.or_else(|| project_name(text));
        }
        // A front matter begins with its marks, which say nothing of the file.
        let title = foreign::keys(text.as_bytes()).and_then(|it| it.get("title").map(plain));
        let said = title.map_or_else(|| (*text).to_owned(), |it| format!("{it}\n{text}"));
        unmapped.push(left(path, &said, "this file is no task"));
    }
    let numbers = numbers(&tasks);
    let steps = tasks
        .iter()
        .zip(&numbers)
        .map(|(task, number)| (number.clone(), step(task, number, (&tasks, &numbers), words)));
    let mut steps: Vec<_> = steps.collect();
    steps.sort_by(|a, b| a.0.cmp(&b.0));
    let title = title.unwrap_or_else(|| name.to_owned());
    let text = format!("# {title}\n");
    let plan = Draft { text, changes: vec![set_word("status", "active")], ..Draft::default() };
    let plans =
        if steps.is_empty() { Vec::new() } else { vec![BroughtPlan { title, plan: Some(plan), steps }] };
    Brought { form: Form::Backlog, plans, unmapped }
}

fn project_name(config: &str) -> Option<String> {
    let tree = crate::text::yaml::parse(config).ok()?;
    let name = tree.root().get("project_name")?.text()?.trim().to_owned();
    Some(name).filter(|it| !it.is_empty())
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// The numbers of the tasks' own ids where each is one of its own, else new ones behind them.
///
/// Drafts count for themselves, and what is archived may have a number that was given again.
fn numbers(tasks: &[Task<'_>]) -> Vec<StepNumber> {
    let wanted = |it: &Task<'_>| it.id.rsplit('-').next().and_then(|it| it.parse::<StepNumber>().ok());
    let mut taken: std::collections::BTreeSet<StepNumber> = std::collections::BTreeSet::new();
    let mut own: Vec<Option<StepNumber>> = vec![None; tasks.len()];
    for of_archive in [false, true] {
        for (task, own) in tasks.iter().zip(&mut own) {
            let is_draft = task.path.split('/').any(|it| it == "drafts");
            if !is_draft && (folder(task.path) == Some("archive")) == of_archive {
                *own = wanted(task).filter(|it| taken.insert(it.clone()));
            }
        }
    }
    let mut next = taken.last().cloned().unwrap_or_else(|| StepNumber::whole(0));
    own.into_iter()
        .map(|it| {
            it.unwrap_or_else(|| {
                next = next.successor().unwrap_or_else(|_| next.clone());
                next.clone()
            })
        })
        .collect()
}

fn step(
    task: &Task<'_>,
    number: &StepNumber,
    (tasks, numbers): (&[Task<'_>], &[StepNumber]),
    words: &Words,
) -> Draft {
    let mut keys = task.keys.clone();
    let text =
        |keys: &Map<String, Value>, key: &str| keys.get(key).and_then(Value::as_str).map(str::to_owned);
    let title = text(&keys, "title").unwrap_or_else(|| task.id.clone());
    let said = keys.get("status").and_then(Value::as_str);
    let status = said.and_then(|it| words.read::<StepStatus>(it)).unwrap_or(StepStatus::Pending);
    let status = match (status, folder(task.path)) {
        (_, Some("completed")) => StepStatus::Completed,
        (StepStatus::Pending | StepStatus::InProgress, Some("archive")) => StepStatus::Skipped,
        (StepStatus::Pending, Some("drafts")) => StepStatus::Blocked,
        (status, _) => status,
    };
    let find = |id: &str| tasks.iter().position(|it| it.id.eq_ignore_ascii_case(id)).map(|it| &numbers[it]);
    let waits = keys.get("dependencies").and_then(Value::as_array).into_iter().flatten().map(plain);
    let waits: Vec<_> = waits.filter_map(|it| find(&it).cloned()).filter(|it| it != number).collect();
    let parent = text(&keys, "parent_task_id")
        .and_then(|it| tasks.iter().find(|task| task.id.eq_ignore_ascii_case(&it)));
    let phase = parent.and_then(|it| text(&it.keys, "title")).or_else(|| text(&keys, "milestone"));
    let mut changes = vec![set_status(status)];
    changes.extend(set_depends(&waits));
    changes.extend(phase.map(|it| set_text("phase", &placeholders::one_line(&it))));
    changes.extend(text(&keys, "type").map(|it| set_text("type", &it)));
    let assignees = texts(keys.get("assignee"));
    changes.extend(assignees.first().map(|it| set_text("assignee", it)));
    changes.extend(
        text(&keys, "priority").and_then(|it| Priority::read(&it)).map(|it| set_word("priority", it.word())),
    );
    changes.extend(set_texts("tags", &texts(keys.get("labels"))));
    changes.extend(time(keys.get("created_date")).map(|it| set_word("created_at", &it.to_string())));
    // What a key of ours says in full need not be told twice.
    keys.retain(|key, value| !matches!(key.as_str(), "title" | "type" | "labels") && !is_empty(value));
    keys.insert("folder".to_owned(), json!(folder(task.path)));
    if assignees.len() <= 1 {
        keys.shift_remove("assignee");
    }
    changes.extend(set_metadata("backlog", &keys));
    let heading = placeholders::one_line(&title);
    Draft {
        text: format!("# {heading}\n\n{}", task.body.trim_start_matches(['\r', '\n'])),
        changes,
        ..Draft::default()
    }
}

fn is_empty(value: &Value) -> bool {
    value.is_null() || value.as_array().is_some_and(Vec::is_empty)
}

fn texts(value: Option<&Value>) -> Vec<String> {
    match value {
        Some(Value::Array(items)) => items.iter().map(plain).collect(),
        Some(Value::Null) | None => Vec::new(),
        Some(one) => vec![plain(one)],
    }
}

/// `2026-07-09 05:56`, which is meant in UTC.
fn time(value: Option<&Value>) -> Option<Time> {
    let text = value?.as_str()?.trim();
    let full = text.replacen(' ', "T", 1);
    text.parse().or_else(|_| full.parse()).or_else(|_| format!("{full}:00Z").parse()).ok()
}
