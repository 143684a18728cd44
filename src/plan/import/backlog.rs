//! Imports a store of the tool Backlog.md. The file of each task becomes a step. The sections of the task are not changed.

mod records;

use std::collections::HashMap;

use serde_json::{Map, Value, json};

use records::Milestone;

use super::waits::{ITSELF, NO_STEP};
use super::{Draft, Form, Imported, ImportedPlan, NO_DAY, Unmapped, left, set_depends, set_metadata};
use crate::plan::change::{set_status, set_text, set_texts, set_word};
use crate::plan::records::Priority;
use crate::plan::step_number::StepNumber;
use crate::plan::time::Time;
use crate::plan::words::{StepStatus, Words};
use crate::text::header_edit::Change;
use crate::text::{foreign, front_matter, placeholders};

const FOLDERS: [&str; 4] = ["tasks", "completed", "drafts", "archive"];

pub(super) fn is_task(path: &str) -> bool {
    let mut parts = path.rsplit('/');
    let is_markdown = parts.next().is_some_and(|it| it.ends_with(".md"));
    is_markdown && folder(path).is_some()
}

pub(super) fn is_config(path: &str) -> bool {
    matches!(path.rsplit('/').next(), Some("config.yml" | "backlog.config.yml"))
}

fn is_in(path: &str, directory: &str) -> bool {
    path.rsplit_once('/').is_some_and(|it| it.0.split('/').any(|it| it == directory))
}

fn folder(path: &str) -> Option<&'static str> {
    let directories = path.rsplit_once('/').map_or("", |it| it.0);
    if ["decisions", "docs", "milestones"].iter().any(|it| is_in(path, it)) {
        return None;
    }
    directories.split('/').find_map(|part| FOLDERS.iter().find(|it| **it == part).copied())
}

struct Task<'a> {
    path: &'a str,
    id: String,
    keys: Map<String, Value>,
    text: &'a str,
    body: &'a str,
}

impl Task<'_> {
    /// Reports unmapped words in the value of a front matter key, with the line of these words.
    fn unmapped(&self, key: &str, why: &'static str, words: &str) -> Unmapped {
        let of_key = |it: &str| it.strip_prefix(key).is_some_and(|it| it.starts_with(':'));
        let start = self.text.lines().position(of_key).unwrap_or(0);
        let line = self.text.lines().skip(start).position(|it| it.contains(words));
        let line = line.and_then(|it| u32::try_from(start + it + 1).ok());
        Unmapped { path: self.path.to_owned(), line, why, text: words.to_owned() }
    }
}

#[derive(Default)]
struct Store<'a> {
    title: Option<String>,
    tasks: Vec<Task<'a>>,
    milestones: Vec<Milestone>,
    decisions: Vec<super::ImportedDecision>,
    unmapped: Vec<Unmapped>,
}

pub(super) fn convert(name: &str, files: &[(&str, &str)], words: &Words) -> Imported {
    let mut store = Store::default();
    for (path, text) in files {
        store.read(path, text);
    }
    let numbers = numbers(&store.tasks);
    let names = Names::of(&store.tasks);
    let mut unmapped = std::mem::take(&mut store.unmapped);
    let mut steps = Vec::new();
    for (task, number) in store.tasks.iter().zip(&numbers) {
        let of = Of { task, number, store: &store, numbers: &numbers, names: &names };
        steps.push((number.clone(), step(&of, words, &mut unmapped)));
    }
    steps.sort_by(|a, b| a.0.cmp(&b.0));
    if let Some(task) = store.tasks.iter().find(|it| it.keys.contains_key("ordinal")) {
        let why = "the order of the board is stored below metadata, but has no meaning here";
        unmapped.push(task.unmapped("ordinal", why, "ordinal"));
    }
    let title = store.title.unwrap_or_else(|| name.to_owned());
    let mut text = format!("# {title}\n");
    let mut changes = vec![set_word("status", "active")];
    if !store.milestones.is_empty() {
        text.push_str("\n## Milestones\n");
        text.extend(store.milestones.iter().map(Milestone::section));
        let keys: Vec<_> = store.milestones.iter().map(|it| Value::Object(it.keys.clone())).collect();
        let more = json!({"milestones": keys});
        changes.extend(more.as_object().and_then(|it| set_metadata("backlog", it)));
    }
    let plan = Draft { text, changes, ..Draft::default() };
    let plans = if steps.is_empty() {
        Vec::new()
    } else {
        vec![ImportedPlan { path: None, title, plan: Some(plan), steps }]
    };
    Imported { form: Form::Backlog, plans, decisions: store.decisions, unmapped, unread: Vec::new() }
}

impl<'a> Store<'a> {
    fn read(&mut self, path: &'a str, text: &'a str) {
        let keys = foreign::keys(text.as_bytes());
        if let Some(keys) = &keys {
            let id = keys.get("id").map(plain);
            if let (true, Some(id)) = (is_task(path), id) {
                let body = &text[front_matter::split(text.as_bytes()).body_start()..];
                return self.tasks.push(Task { path, id, keys: keys.clone(), text, body });
            }
            if is_in(path, "milestones")
                && let Some(milestone) = Milestone::read(keys, text)
            {
                return self.milestones.push(milestone);
            }
        }
        let no_keys = Map::new();
        if is_in(path, "decisions")
            && let Some(decision) = records::decision(path, keys.as_ref().unwrap_or(&no_keys), text)
        {
            return self.decisions.push(decision);
        }
        if is_config(path) {
            self.title = self.title.take().or_else(|| project_name(text));
        }
        let why = match path {
            it if is_in(it, "docs") => "a document of the store has no place in a plan",
            it if is_in(it, "decisions") => "this decision has no text",
            _ => "this file is not a task",
        };
        // The title is put before the text. Otherwise the reported text would begin with the `---` of the front matter.
        let title = keys.and_then(|it| it.get("title").map(plain));
        let said = title.map_or_else(|| text.to_owned(), |it| format!("{it}\n{text}"));
        self.unmapped.push(left(path, &said, why));
    }
}

struct Names {
    by_id: HashMap<String, usize>,
    /// `None`: several tasks have the number.
    by_number: HashMap<String, Option<usize>>,
}

impl Names {
    /// Tasks in the folders `archive` and `drafts` get only the names that no task in the other folders has. Tasks in
    /// `drafts` have no name in `by_number`.
    fn of(tasks: &[Task<'_>]) -> Self {
        let mut names = Self { by_id: HashMap::new(), by_number: HashMap::new() };
        let is_late = |it: &Task<'_>| matches!(folder(it.path), Some("archive" | "drafts"));
        for late in [false, true] {
            let mut by_number: HashMap<String, Option<usize>> = HashMap::new();
            for (nth, task) in tasks.iter().enumerate().filter(|it| is_late(it.1) == late) {
                names.by_id.entry(task.id.to_lowercase()).or_insert(nth);
                if folder(task.path) != Some("drafts") {
                    by_number.entry(number_of(&task.id)).and_modify(|it| *it = None).or_insert(Some(nth));
                }
            }
            by_number.into_iter().for_each(|(number, nth)| {
                names.by_number.entry(number).or_insert(nth);
            });
        }
        names
    }

    /// Finds a task by its id. If no task has this id, finds it by its number, because the prefix and the leading zeros of
    /// a store's ids can change.
    fn find(&self, name: &str) -> Option<usize> {
        let name = name.trim().trim_start_matches('[').trim_end_matches(']').to_lowercase();
        let name = name.split(" - ").next().unwrap_or_default().trim_end_matches(".md");
        let by_number = || {
            let is_draft = name.starts_with("draft-");
            self.by_number.get(&number_of(name)).copied().flatten().filter(|_| !is_draft)
        };
        self.by_id.get(name).copied().or_else(by_number)
    }
}

/// The number in an id, without leading zeros: `7.2` for `task-007.02`.
fn number_of(id: &str) -> String {
    let number = id.rsplit('-').next().unwrap_or_default();
    let part =
        |it: &str| Some(it.trim_start_matches('0')).filter(|it| !it.is_empty()).unwrap_or("0").to_owned();
    number.split('.').map(part).collect::<Vec<_>>().join(".")
}

fn project_name(config: &str) -> Option<String> {
    let tree = crate::text::yaml::parse(config).ok()?;
    let name = tree.root().get("project_name")?.text()?.trim().to_owned();
    Some(name).filter(|it| !it.is_empty())
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// The numbers of the steps, in the order of `tasks`. A step gets the number in its task's id if that number is free,
/// otherwise a new number after all others.
///
/// Drafts always get new numbers, because their ids are numbered separately. An archived task gets the number in its id
/// only if no task outside the archive has this number: a newer task can have the same id.
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

struct Of<'a> {
    task: &'a Task<'a>,
    number: &'a StepNumber,
    store: &'a Store<'a>,
    numbers: &'a [StepNumber],
    names: &'a Names,
}

impl Of<'_> {
    /// The day by which the task should be done; a value that is not a date is added to `unmapped`.
    fn due(&self, unmapped: &mut Vec<Unmapped>) -> Option<Change> {
        let mut day = None;
        for key in ["due_date", "due"] {
            let value = self.task.keys.get(key).filter(|it| !is_empty(it));
            let said = value.map(plain).filter(|it| !it.trim().is_empty());
            let read = said.as_deref().and_then(super::day);
            if let (Some(said), None) = (said, read) {
                unmapped.push(self.task.unmapped(key, NO_DAY, &said));
            }
            day = day.or(read);
        }
        day.map(|it| set_word("due", &it.to_string()))
    }

    /// The steps that the task waits for. A name that means no task of the store, or the task itself, is added to
    /// `unmapped`.
    fn waits(&self, unmapped: &mut Vec<Unmapped>) -> Vec<StepNumber> {
        let named = match self.task.keys.get("dependencies") {
            Some(Value::String(text)) => text.split(',').map(|it| it.trim().to_owned()).collect(),
            other => texts(other),
        };
        let mut waits: Vec<StepNumber> = Vec::new();
        for name in named.iter().filter(|it| !it.is_empty()) {
            match self.names.find(name).map(|it| &self.numbers[it]) {
                None => unmapped.push(self.task.unmapped("dependencies", NO_STEP, name)),
                Some(own) if own == self.number => {
                    unmapped.push(self.task.unmapped("dependencies", ITSELF, name));
                }
                Some(other) if waits.contains(other) => {}
                Some(other) => waits.push(other.clone()),
            }
        }
        waits.sort_unstable();
        waits
    }

    /// The title of the parent task. If the parent is not in the store, its name is added to `unmapped`.
    fn parent(&self, unmapped: &mut Vec<Unmapped>) -> Option<String> {
        let name = self.task.keys.get("parent_task_id").filter(|it| !is_empty(it)).map(plain)?;
        let Some(parent) = self.names.find(&name).map(|it| &self.store.tasks[it]) else {
            let why = "the parent task of this one is not in the store";
            unmapped.push(self.task.unmapped("parent_task_id", why, &name));
            return None;
        };
        parent.keys.get("title").map(plain)
    }

    fn milestone(&self) -> Option<String> {
        let name = self.task.keys.get("milestone").filter(|it| !is_empty(it)).map(plain)?;
        let known = self.store.milestones.iter().find(|it| it.is_called(&name));
        Some(known.map_or_else(|| placeholders::one_line(&name), |it| it.title.clone()))
    }
}

fn step(of: &Of<'_>, words: &Words, unmapped: &mut Vec<Unmapped>) -> Draft {
    let task = of.task;
    let mut keys = task.keys.clone();
    let text =
        |keys: &Map<String, Value>, key: &str| keys.get(key).and_then(Value::as_str).map(str::to_owned);
    let title = text(&keys, "title").unwrap_or_else(|| task.id.clone());
    let said = keys.get("status").and_then(Value::as_str);
    let read = said.and_then(|it| words.read::<StepStatus>(it));
    if let (Some(said), None) = (said, read) {
        unmapped.push(task.unmapped("status", "this is not a status of a step", said));
    }
    let status = match (read.unwrap_or(StepStatus::Pending), folder(task.path)) {
        (_, Some("completed")) => StepStatus::Completed,
        (StepStatus::Pending | StepStatus::InProgress, Some("archive")) => StepStatus::Skipped,
        (StepStatus::Pending, Some("drafts")) => StepStatus::Blocked,
        (status, _) => status,
    };
    let waits = of.waits(unmapped);
    let (parent, milestone) = (of.parent(unmapped), of.milestone());
    // A step has only one phase. If that is the parent task, the milestone becomes a tag.
    let tag = milestone.clone().filter(|_| parent.is_some());
    let phase = parent.or(milestone);
    let mut changes = vec![set_status(status)];
    changes.extend(set_depends(&waits));
    changes.extend(phase.map(|it| set_text("phase", &placeholders::one_line(&it))));
    changes.extend(text(&keys, "type").map(|it| set_text("type", &it)));
    let assignees = texts(keys.get("assignee"));
    changes.extend(assignees.first().map(|it| set_text("assignee", it)));
    changes.extend(
        text(&keys, "priority").and_then(|it| Priority::read(&it)).map(|it| set_word("priority", it.word())),
    );
    changes.extend(of.due(unmapped));
    let tags: Vec<_> = texts(keys.get("labels")).into_iter().chain(tag).collect();
    changes.extend(set_texts("tags", &tags));
    changes.extend(time(keys.get("created_date")).map(|it| set_word("created_at", &it.to_string())));
    // `metadata` does not repeat the values that another key of the step contains in full.
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

/// Reads a time such as `2026-07-09 05:56`, which is in UTC.
fn time(value: Option<&Value>) -> Option<Time> {
    let text = value?.as_str()?.trim();
    let full = text.replacen(' ', "T", 1);
    text.parse().or_else(|_| full.parse()).or_else(|_| format!("{full}:00Z").parse()).ok()
}

#[cfg(test)]
mod tests;
