//! Plans, steps, and the records in their files.

use serde_json::{Value, json};

use super::{Object, count, flag, list, maybe, maybe_text, maybe_time, open_object, part, text, word};
use crate::plan::records::Priority;
use crate::plan::rules;
use crate::plan::words::{PlanStatus, Status, StepStatus};

pub(super) fn parts() -> Vec<(&'static str, Value)> {
    vec![
        ("Plan", plan().closed()),
        ("Step", step().closed()),
        ("Attempt", attempt()),
        ("Note", note().closed()),
        ("Claim", claim().closed()),
        ("Confirmation", confirmation().closed()),
        ("Verify", verify().closed()),
        ("StepRange", Object::new().fields(["first", "last"], &text()).closed()),
        ("Problem", problem().closed()),
        ("PlanStatus", words::<PlanStatus>()),
        ("StepStatus", words::<StepStatus>()),
    ]
}

/// [`crate::api::views::PlanShape`].
pub fn plan() -> Object {
    Object::new()
        .fields(["id", "title", "path"], &text())
        .field("status", status("PlanStatus"))
        .field("status_source", word(["file", "steps"]))
        .field("kind", word(["plan", "program"]))
        .field("order", word(["dependencies", "sequential"]))
        .field("priority", priority())
        .field("due", due())
        .fields(["category", "program", "description", "etag"], &maybe_text())
        .fields(["tags", "files", "goals", "success_criteria", "confirm_phases"], &list(text()))
        .field("archived", flag())
        .field("incomplete", flag())
        .field("created_at", maybe_time())
        .fields(
            [
                "steps_total",
                "steps_completed",
                "steps_skipped",
                "steps_failed",
                "steps_blocked",
                "steps_in_progress",
                "steps_ready",
            ],
            &count(),
        )
        .field("state", state())
        .and(last_activity())
        .field("confirmations", list(part("Confirmation")))
        .field("notes", list(part("Note")))
        .fields(["metadata", "custom"], &open_object())
        .field("problems", list(text()))
}

/// [`crate::api::views::StepShape`].
pub fn step() -> Object {
    Object::new()
        .fields(["id", "plan", "number", "title", "created_by", "path"], &text())
        .field("status", status("StepStatus"))
        .field("step_number", json!({"type": "number", "minimum": 0}))
        .fields(["unverified", "ready", "lapsed", "confirm"], &flag())
        .fields(["depends", "waits_for", "tags", "problems"], &list(text()))
        .optional("depends_ranges", list(part("StepRange")))
        .fields(["phase", "type", "assignee", "result", "etag"], &maybe_text())
        .field("priority", priority())
        .field("due", due())
        .field("created_at", maybe_time())
        .field("claim", maybe(part("Claim")))
        .field("confirmed", maybe(part("Confirmation")))
        .field("verify", list(part("Verify")))
        .field("touches", json!({"type": ["array", "null"], "items": text()}))
        .field("attempts", list(part("Attempt")))
        .field("notes", list(part("Note")))
        .fields(["tasks_done", "tasks_total"], &count())
        .and(last_activity())
        .fields(["metadata", "custom"], &open_object())
}

fn words<S: Status>() -> Value {
    json!({"type": "string", "enum": S::ALL.iter().map(|it| it.word()).collect::<Vec<_>>()})
}

/// A status; where the file has an unknown word, that word.
fn status(part_name: &str) -> Value {
    json!({"anyOf": [part(part_name), text()]})
}

/// As [`status`], of a plan or a step; null where what it is about has none.
pub(super) fn maybe_status() -> Value {
    json!({"anyOf": [part("PlanStatus"), part("StepStatus"), text(), {"type": "null"}]})
}

fn last_activity() -> Object {
    let source = json!({"type": ["string", "null"], "enum": ["attempt", "claim", "confirmation", "created", "note", "mtime", null]});
    Object::new().field("last_activity", maybe_time()).field("last_activity_source", source)
}

fn due() -> Value {
    json!({"type": ["string", "null"], "format": "date"})
}

fn priority() -> Value {
    word(Priority::ALL.map(Priority::word))
}

/// What `next` says of a plan.
pub(super) fn state() -> Value {
    json!({"type": "string", "enum": rules::State::ALL.map(rules::State::word)})
}

/// The keys of a person's own stay in it.
fn attempt() -> Value {
    Object::new()
        .field("at", maybe_time())
        .fields(["by", "outcome", "notes"], &maybe_text())
        .with_others(json!(true))
}

fn note() -> Object {
    Object::new()
        .field("at", maybe_time())
        .field("type", word(["info", "warning", "instruction"]))
        .field("by", maybe_text())
        .field("text", text())
}

fn claim() -> Object {
    Object::new().field("id", text()).field("by", maybe_text()).field("at", maybe_time())
}

fn confirmation() -> Object {
    Object::new()
        .optional("phase", text())
        .field("by", maybe_text())
        .field("at", maybe_time())
        .field("note", maybe_text())
}

fn verify() -> Object {
    Object::new().field("run", text()).optional("dir", text()).optional("timeout", text())
}

/// [`crate::api::views::problem`].
fn problem() -> Object {
    Object::new()
        .field("severity", word(["error", "warning"]))
        .fields(["code", "message", "path", "hint"], &text())
        .fields(["line", "column"], &count())
        .field("fixable", flag())
}
