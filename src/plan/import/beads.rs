//! Imports a store of beads. Each line of a JSONL file is an issue, which becomes a step.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use serde_json::{Map, Value, json};

use super::{
    Draft, Form, Imported, ImportedPlan, NO_DAY, Nothing, Unmapped, left, set_depends, set_metadata,
};
use crate::plan::change::{NewAttempt, NewNote, set_status, set_text, set_texts, set_word};
use crate::plan::records::{NoteType, Priority};
use crate::plan::step_number::StepNumber;
use crate::plan::time::Time;
use crate::plan::words::{Status, StepStatus};
use crate::text::placeholders;

/// The keys of an issue whose texts become sections of the step, each with the section's heading. An empty heading is
/// not written.
const SECTIONS: [(&str, &str); 4] = [
    ("description", ""),
    ("design", "Design"),
    ("acceptance_criteria", "Acceptance Criteria"),
    ("notes", "Notes"),
];

const NO_ISSUE: &str = "this dependency names no issue of the store";

/// The types of dependencies that make an issue wait.
const BLOCKING: [&str; 3] = ["blocks", "conditional-blocks", "waits-for"];

struct Issue {
    id: String,
    keys: Map<String, Value>,
    path: String,
    line: u32,
}

impl Issue {
    /// Reports words of the issue's line that were not mapped.
    fn unmapped(&self, why: &'static str, words: &str) -> Unmapped {
        Unmapped { path: self.path.clone(), line: Some(self.line), why, text: words.to_owned() }
    }
}

pub(super) fn convert(name: &str, files: &[(&str, &str)]) -> Result<Imported, Nothing> {
    let mut unmapped = Vec::new();
    let mut issues: Vec<Issue> = Vec::new();
    for (path, text) in files {
        if !path.ends_with(".jsonl") {
            unmapped.push(left(path, text, "this file contains no issues"));
            continue;
        }
        read(path, text, &mut issues, &mut unmapped)?;
    }
    let created = |it: &Issue| text(&it.keys, "created_at").and_then(|it| it.parse::<Time>().ok());
    issues.sort_unstable_by(|a, b| created(a).cmp(&created(b)).then_with(|| a.id.cmp(&b.id)));
    let links = Links::of(&issues, &mut unmapped);
    let steps: Vec<_> = issues
        .iter()
        .enumerate()
        .map(|(nth, issue)| (number(nth), step(issue, nth, &links, &issues, &mut unmapped)))
        .collect();
    let plan = Draft {
        text: format!("# {name}\n"),
        changes: vec![set_word("status", "active")],
        ..Draft::default()
    };
    let made = ImportedPlan { path: None, title: name.to_owned(), plan: Some(plan), steps };
    let plans = if issues.is_empty() { Vec::new() } else { vec![made] };
    Ok(Imported { form: Form::Beads, plans, decisions: Vec::new(), unmapped, unread: Vec::new() })
}

fn number(nth: usize) -> StepNumber {
    StepNumber::whole(u32::try_from(nth + 1).unwrap_or(u32::MAX))
}

fn read(
    path: &str,
    source: &str,
    issues: &mut Vec<Issue>,
    unmapped: &mut Vec<Unmapped>,
) -> Result<(), Nothing> {
    for (nth, line) in source.lines().enumerate().filter(|(_, it)| !it.trim().is_empty()) {
        let value: Value = serde_json::from_str(line).map_err(|error| Nothing::NotJson {
            path: path.to_owned(),
            line: nth + 1,
            column: error.column(),
            reason: error.to_string().split(" at line ").next().unwrap_or_default().to_owned(),
        })?;
        let at = u32::try_from(nth + 1).unwrap_or(u32::MAX);
        let id = value.get("id").and_then(Value::as_str).map(str::to_owned);
        let is_known = |id: &String| issues.iter().any(|it| it.id == *id);
        match (value, id) {
            (Value::Object(keys), Some(id)) if keys.contains_key("title") && !is_known(&id) => {
                issues.push(Issue { id, keys, path: path.to_owned(), line: at });
            }
            _ => unmapped.push(Unmapped {
                path: path.to_owned(),
                line: Some(at),
                why: "this line is not an issue, or its id was read before",
                text: line.to_owned(),
            }),
        }
    }
    Ok(())
}

fn text<'a>(keys: &'a Map<String, Value>, key: &str) -> Option<&'a str> {
    keys.get(key).and_then(Value::as_str).filter(|it| !it.is_empty())
}

/// The dependencies and the parents of the issues, as indices of issues.
struct Links {
    waits: BTreeMap<usize, BTreeSet<usize>>,
    parents: BTreeMap<usize, usize>,
}

impl Links {
    fn of(issues: &[Issue], unmapped: &mut Vec<Unmapped>) -> Self {
        let places: BTreeMap<&str, usize> =
            issues.iter().enumerate().map(|(nth, it)| (it.id.as_str(), nth)).collect();
        let mut links = Self { waits: BTreeMap::new(), parents: BTreeMap::new() };
        let mut parents = Vec::new();
        for (nth, issue) in issues.iter().enumerate() {
            for (kind, on) in dependencies(issue) {
                let is_order = kind == "parent-child" || BLOCKING.contains(&kind);
                let Some(on) = places.get(on).copied() else {
                    unmapped.extend(is_order.then(|| issue.unmapped(NO_ISSUE, on)));
                    continue;
                };
                if kind == "parent-child" {
                    parents.push((nth, on));
                } else if BLOCKING.contains(&kind) && !links.wait(nth, on) {
                    unmapped.push(circle(issue, &issues[on]));
                }
            }
        }
        // An epic waits for each of its parts, except those that already wait for the epic.
        for (child, parent) in parents {
            links.parents.insert(child, parent);
            if !links.wait(parent, child) {
                unmapped.push(circle(&issues[parent], &issues[child]));
            }
        }
        links
    }

    /// Makes the issue `nth` wait for the issue `on`. If that would create a cycle, changes nothing and returns false.
    fn wait(&mut self, nth: usize, on: usize) -> bool {
        if self.reaches(on, nth) {
            return false;
        }
        self.waits.entry(nth).or_default().insert(on);
        true
    }

    fn reaches(&self, from: usize, to: usize) -> bool {
        let mut open = vec![from];
        let mut seen = BTreeSet::new();
        while let Some(at) = open.pop() {
            if at == to {
                return true;
            }
            if seen.insert(at) {
                open.extend(self.waits.get(&at).into_iter().flatten());
            }
        }
        false
    }
}

fn circle(issue: &Issue, on: &Issue) -> Unmapped {
    issue.unmapped("this dependency would create a cycle", &format!("{} {}", issue.id, on.id))
}

fn dependencies(issue: &Issue) -> impl Iterator<Item = (&str, &str)> {
    let all = issue.keys.get("dependencies").and_then(Value::as_array).into_iter().flatten();
    all.filter_map(|it| {
        let kind = it.get("type").and_then(Value::as_str).unwrap_or("blocks");
        Some((kind, it.get("depends_on_id").and_then(Value::as_str)?))
    })
}

fn step(issue: &Issue, nth: usize, links: &Links, issues: &[Issue], unmapped: &mut Vec<Unmapped>) -> Draft {
    let keys = &issue.keys;
    let title = placeholders::one_line(text(keys, "title").unwrap_or(&issue.id));
    let mut body = format!("# {title}\n");
    for (key, heading) in SECTIONS {
        let Some(text) = text(keys, key) else { continue };
        let heading = if heading.is_empty() { String::new() } else { format!("## {heading}\n\n") };
        write!(body, "\n{heading}{}\n", text.trim_end()).ok();
    }
    let said = text(keys, "status").unwrap_or("open");
    let read = status(said);
    if read.is_none() {
        unmapped.push(issue.unmapped("this is not a status of a step", said));
    }
    let status = read.unwrap_or(StepStatus::Pending);
    let waits: Vec<_> = links.waits.get(&nth).into_iter().flatten().map(|it| number(*it)).collect();
    let parent = links.parents.get(&nth).and_then(|it| text(&issues[*it].keys, "title"));
    let mut changes = vec![set_status(status)];
    changes.extend(set_depends(&waits));
    changes.extend(parent.map(|it| set_text("phase", &placeholders::one_line(it))));
    changes.extend(text(keys, "issue_type").map(|it| set_text("type", it)));
    changes.extend(text(keys, "assignee").map(|it| set_text("assignee", it)));
    changes.extend(
        keys.get("priority").and_then(Value::as_u64).map(|it| set_word("priority", priority(it).word())),
    );
    let due = ["due_at", "due"].into_iter().find_map(|it| text(keys, it));
    let day = due.and_then(super::day);
    if let (Some(due), None) = (due, day) {
        unmapped.push(issue.unmapped(NO_DAY, due));
    }
    changes.extend(day.map(|it| set_word("due", &it.to_string())));
    let labels = keys.get("labels").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    changes.extend(set_texts("tags", &labels.map(str::to_owned).collect::<Vec<_>>()));
    let time = |key: &str| text(keys, key).and_then(|it| it.parse::<Time>().ok());
    changes.extend(time("created_at").map(|it| set_word("created_at", &it.whole_seconds().to_string())));
    changes.extend(text(keys, "created_by").map(|it| set_text("created_by", it)));
    changes.extend(set_metadata("beads", &more(issue)));
    changes.extend(comments(keys));
    if let Some(at) = time("closed_at") {
        let by =
            text(keys, "closed_by").or_else(|| text(keys, "assignee")).or_else(|| text(keys, "created_by"));
        let attempt = NewAttempt {
            at,
            by: by.unwrap_or("beads").to_owned(),
            outcome: status.word().to_owned(),
            notes: text(keys, "close_reason").map(str::to_owned),
            claim: None,
        };
        changes.push(attempt.change());
    }
    Draft { text: body, changes, ..Draft::default() }
}

fn status(word: &str) -> Option<StepStatus> {
    Some(match word {
        // A pinned issue is an issue that stays open.
        "open" | "pinned" => StepStatus::Pending,
        "in_progress" | "hooked" => StepStatus::InProgress,
        "blocked" | "deferred" => StepStatus::Blocked,
        "closed" => StepStatus::Completed,
        "tombstone" => StepStatus::Skipped,
        _ => return None,
    })
}

/// Maps a priority of beads. The most urgent one is 0, the least urgent one is 4.
fn priority(number: u64) -> Priority {
    match number {
        0 => Priority::Critical,
        1 => Priority::High,
        2 => Priority::Medium,
        _ => Priority::Low,
    }
}

fn comments(keys: &Map<String, Value>) -> Vec<crate::text::header_edit::Change> {
    let all = keys.get("comments").and_then(Value::as_array).into_iter().flatten();
    let note = |it: &Value| {
        let object = it.as_object()?;
        let at = text(object, "created_at")?.parse::<Time>().ok()?;
        let by = text(object, "author").unwrap_or("beads").to_owned();
        let (at, text) = (at.whole_seconds(), text(object, "text")?.to_owned());
        Some(NewNote { at, kind: NoteType::Info, by, text }.change())
    };
    all.filter_map(note).collect()
}

/// The values for `metadata`: those that no other part of the step contains in full.
fn more(issue: &Issue) -> Map<String, Value> {
    let is_said = |key: &str| {
        let is_section = SECTIONS.iter().any(|(it, _)| *it == key);
        is_section
            || matches!(
                key,
                "title" | "issue_type" | "assignee" | "labels" | "created_by" | "close_reason" | "comments"
            )
    };
    let mut more: Map<String, Value> = issue.keys.clone();
    more.retain(|key, value| !is_said(key) && !value.is_null() && *value != json!("") && *value != json!([]));
    more
}
