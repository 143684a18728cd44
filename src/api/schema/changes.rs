//! Answers of verbs that write.

use serde_json::{Value, json};

use super::plans::{granted, maybe_status};
use super::queries::page;
use super::{Answers, Object, flag, list, maybe, maybe_text, part, state_word, text, word};

pub(super) fn parts() -> Vec<(&'static str, Value)> {
    vec![
        ("Changed", changed().closed()),
        ("Refused", Object::new().field("id", text()).and(error()).closed()),
        ("Change", change().closed()),
        ("Granted", granted().closed()),
    ]
}

pub(super) fn answers() -> Answers {
    vec![("change", change()), ("claim", claim()), ("import", import()), ("undo-list", undo_list())]
}

/// `store::transaction::ChangeReport`.
pub(super) fn change() -> Object {
    Object::new()
        .fields(["verb", "diff"], &text())
        .field("dry_run", flag())
        .field("changes", list(part("Changed")))
        .field("refused", list(part("Refused")))
        .optional("not_repointed", list(text()))
        .optional("committed", text())
        .optional("kept", list(part("Kept")))
        .optional("not_recorded", flag())
}

fn changed() -> Object {
    let now = ["Plan", "Step", "Decision", "Insight"].map(part);
    let now: Vec<_> = now.into_iter().chain([json!({"type": "null"})]).collect();
    Object::new()
        .fields(["id", "title", "path", "did"], &text())
        .field("written", flag())
        .fields(["was", "status"], &maybe_status())
        .field("now", json!({"anyOf": now}))
}

/// [`crate::api::error::Error::to_json`]; the details depend on the code.
fn error() -> Object {
    let inside = Object::new()
        .fields(["code", "message"], &text())
        .field("hint", maybe_text())
        .field("details", super::open_object());
    Object::new().field("error", inside.closed())
}

/// `ops::claim::ClaimReport`.
fn claim() -> Object {
    Object::new()
        .field("state", state_word())
        .field("step", maybe(part("Step")))
        .fields(["why", "diff"], &text())
        .field("claim", maybe(part("Granted")))
        .field("dry_run", flag())
        .optional("kept", list(part("Kept")))
        .optional("not_recorded", flag())
}

/// `ops::import::ImportReport`.
fn import() -> Object {
    let line = json!({"type": ["integer", "null"], "minimum": 1});
    let unmapped = Object::new().fields(["path", "why", "text"], &text()).field("line", line);
    change()
        .field("form", word(["markdown", "plans", "backlog.md", "beads"]))
        .field("unmapped", list(unmapped.closed()))
        .field("problems", list(part("Problem")))
        .field("already", list(Object::new().fields(["path", "plan"], &text()).closed()))
}

fn undo_list() -> Object {
    let blocked = Object::new().field("code", text()).fields(["path", "by"], &maybe_text());
    let item = Object::new()
        .fields(["id", "verb", "at"], &text())
        .field("paths", list(text()))
        .field("blocked", maybe(blocked.closed()));
    Object::new().field("changes", list(item.closed())).and(page())
}
