//! Decisions, insights and scripts.

use serde_json::Value;

use super::queries::page;
use super::{Answers, Object, count, flag, list, maybe_text, maybe_time, open_object, part, text};

pub(super) fn parts() -> Vec<(&'static str, Value)> {
    vec![("Decision", decision().closed()), ("Insight", insight().closed()), ("Script", script().closed())]
}

pub(super) fn answers() -> Answers {
    let listed =
        |name: &str, of: &str| Object::new().field(name, list(part(of))).field("more", count()).and(page());
    vec![
        ("decision", decision()),
        ("decision-list", listed("decisions", "Decision").optional("near", list(text()))),
        ("topic-list", topics()),
        ("insight", insight()),
        ("insight-list", listed("insights", "Insight")),
        ("script", script()),
        ("script-list", Object::new().field("scripts", list(part("Script"))).and(page())),
    ]
}

fn decision() -> Object {
    Object::new()
        .fields(["id", "topic", "decision", "path"], &text())
        .fields(["reasoning", "by", "plan", "step", "supersedes"], &maybe_text())
        .field("decided_at", maybe_time())
        .fields(["superseded_by", "tags", "problems"], &list(text()))
        .fields(["metadata", "custom"], &open_object())
}

fn insight() -> Object {
    Object::new()
        .fields(["id", "title", "text", "path"], &text())
        .fields(["by", "plan"], &maybe_text())
        .field("at", maybe_time())
        .fields(["tags", "problems"], &list(text()))
        .field("custom", open_object())
}

/// `ops::script::Resolved`.
fn script() -> Object {
    Object::new()
        .fields(["id", "name", "command", "directory", "hash", "path"], &text())
        .fields(["description", "directory_path", "command_path", "plan", "mcp_handle"], &maybe_text())
        .field("files", list(text()))
        .field("fault", maybe_text())
        .field("trusted", flag())
        .field("custom", open_object())
        .field("problems", list(text()))
}

fn topics() -> Object {
    let topic = Object::new().field("topic", text()).field("decisions", count()).field("last", maybe_time());
    Object::new().field("topics", list(topic.closed())).and(page())
}
