//! Answers of verbs that read. `check` and `doctor` are among them, although some of their options change files.

use serde_json::{Value, json};

use super::plans::{plan, step};
use super::{
    Answers, Object, count, flag, list, maybe, maybe_text, maybe_time, part, state_word, text, word,
};
use crate::api::views::Reason;
use crate::plan::history::What;

pub(super) fn answers() -> Answers {
    vec![
        ("plan-list", Object::new().field("plans", list(part("Plan"))).field("hidden", count()).and(page())),
        (
            "step-list",
            Object::new().field("plan", part("Plan")).field("steps", list(part("Step"))).and(page()),
        ),
        ("plan", shown_plan()),
        ("step", shown_step()),
        ("graph", graph()),
        ("next", next()),
        ("status", status()),
        ("stale-list", stale_list()),
        ("stats", stats()),
        ("search", search()),
        ("log", log()),
        ("timeline", timeline()),
        ("diff", diff()),
        ("problem-list", problem_list()),
        ("table", table()),
        ("doctor", doctor()),
    ]
}

/// The cursor of the next page; the command line always prints the whole list.
pub(super) fn page() -> Object {
    Object::new().optional("next_cursor", maybe_text())
}

pub(super) fn shown_plan() -> Object {
    // The steps have their texts only if `full` is given.
    let step = step().optional("body", text()).closed();
    plan()
        .field("plan_kind", word(["plan", "program"]))
        .field("body", text())
        .field("steps", list(step))
        .optional("children", list(part("Plan")))
        .field("decisions", decisions())
        .field("problem_list", list(part("Problem")))
}

fn shown_step() -> Object {
    step()
        .field("body", text())
        .fields(["why_not_ready", "dependants"], &list(text()))
        .field("confirmation", maybe(part("Confirmation")))
        .field("decisions", decisions())
        .field("problem_list", list(part("Problem")))
        .optional("held", held())
}

/// The claim that is in force on a step.
fn held() -> Value {
    let one = Object::new().field("claim", text()).fields(["by", "worktree"], &maybe_text());
    let one = one.optional("host", text());
    one.field("until", maybe_time()).closed()
}

/// The decisions about the plan or step that is shown.
fn decisions() -> Value {
    let one = Object::new()
        .fields(["id", "topic", "decision"], &text())
        .fields(["step", "by"], &maybe_text())
        .field("decided_at", maybe_time());
    list(one.closed())
}

fn graph() -> Object {
    Object::new().fields(["plan", "text"], &text()).field("form", word(["text", "mermaid", "dot"]))
}

fn next() -> Object {
    let candidate = Object::new().field("step", part("Step")).field("why", text());
    Object::new()
        .field("state", state_word())
        .field("step", maybe(part("Step")))
        .field("why", text())
        .optional("candidates", list(candidate.closed()))
}

fn status() -> Object {
    let since = Object::new().field("since", maybe_time());
    let attention = since
        .clone()
        .field("reason", json!({"type": "string", "enum": Reason::ALL.map(Reason::word)}))
        .field("last", maybe_text())
        .field("step", part("Step"));
    let standing = step().and(since);
    let finished = step().field("finished_at", maybe_time()).field("finished_by", maybe_text());
    let problems = Object::new().fields(["errors", "warnings"], &count());
    let interrupted = Object::new().fields(["verb", "at"], &text()).field("paths", list(text()));
    Object::new()
        .field("plans", list(part("Plan")))
        .fields(["open_plans", "drafts"], &count())
        .field("attention", list(attention.closed()))
        .fields(["in_progress", "ready"], &list(standing.optional("held", held()).closed()))
        .field("finished", list(finished.closed()))
        .field("problems", problems.closed())
        .field("kept", list(text()))
        .optional("interrupted", interrupted.closed())
        .optional("branches", list(on_branch().closed()))
        .field("days", count())
}

/// `ops::status::OnBranch`.
fn on_branch() -> Object {
    let words = Object::new().fields(["id", "title", "here", "there", "branch", "by"], &text());
    words.field("more", count()).field("at", maybe_time())
}

fn stale_list() -> Object {
    let stale = step().field("since", maybe_time()).field("why", text());
    Object::new().field("seconds", count()).field("steps", list(stale.closed())).and(page())
}

/// `ops::stats::StatsReport`.
fn stats() -> Object {
    let week = Object::new().field("week", text()).field("closed", count());
    let durations = Object::new()
        .field("steps", count())
        .fields(["median_seconds", "p90_seconds"], &maybe(json!({"type": "integer"})));
    let tries = Object::new().fields(["tries", "steps"], &count());
    let outcome = Object::new().field("outcome", text()).field("attempts", count());
    let effort = |of: Object| {
        let counts = of.fields(["attempts", "completed", "verify_failed", "seconds"], &count());
        counts.field("cost", json!({"type": "number", "minimum": 0})).closed()
    };
    let worker = effort(Object::new().field("by", maybe_text()));
    let waiting = Object::new().fields(["id", "title"], &text()).field("since", maybe_time());
    Object::new()
        .field("plan", maybe_text())
        .field("since", maybe_time())
        .fields(["steps", "closed", "undated"], &count())
        .field("weeks", list(week.closed()))
        .field("ready_to_closed", durations.closed())
        .field("tries", list(tries.closed()))
        .field("outcomes", list(outcome.closed()))
        .field("total", effort(Object::new()))
        .field("workers", maybe(list(worker)))
        .field("waiting", list(waiting.closed()))
}

fn search() -> Object {
    let hit = Object::new()
        .field("kind", word(["plan", "step", "decision", "insight"]))
        .fields(["id", "title", "path", "snippet"], &text())
        .field("plan", maybe_text());
    Object::new().field("query", text()).field("hits", list(hit.closed()))
}

fn log() -> Object {
    let what = json!({"type": "string", "enum": What::ALL.map(What::word)});
    let event = Object::new()
        .field("at", maybe_time())
        .fields(["by", "author", "commit"], &maybe_text())
        .field("committed_at", maybe_time())
        .fields(["plan", "step"], &maybe_text())
        .field("what", what)
        .fields(["from", "to", "outcome", "notes", "subject"], &maybe_text())
        .field("path", text())
        .fields(["lines_added", "lines_removed"], &json!({"type": ["integer", "null"], "minimum": 0}))
        .field("keys", list(text()));
    Object::new().field("events", list(event.closed())).field("begins_at", maybe_text()).and(page())
}

fn timeline() -> Object {
    let time = json!({"type": "string", "format": "date-time"});
    let span = Object::new().field("status", text()).field("from", time.clone()).field("to", maybe_time());
    let tried = Object::new().field("at", time).fields(["by", "outcome"], &maybe_text());
    let step = Object::new()
        .fields(["step", "title", "status"], &text())
        .field("spans", list(span.closed()))
        .field("attempts", list(tried.closed()));
    Object::new()
        .fields(["plan", "title"], &text())
        .fields(["from", "to"], &maybe_time())
        .field("steps", list(step.closed()))
        .field("begins_at", maybe_text())
}

fn diff() -> Object {
    let turn = || maybe(Object::new().fields(["from", "to"], &maybe_text()).closed());
    let added =
        Object::new().field("at", maybe_time()).fields(["by", "outcome", "notes"], &maybe_text()).closed();
    let change = word(["created", "removed", "moved", "archived", "restored", "changed"]);
    let difference = Object::new()
        .field("of", word(["plan", "step", "decision", "insight"]))
        .field("id", text())
        .field("plan", maybe_text())
        .field("title", text())
        .field("change", change)
        .field("was", maybe_text())
        .fields(["status", "renamed"], &turn())
        .fields(["attempts", "notes", "claims", "confirmations"], &list(added))
        .field("released", maybe_text())
        .fields(["depends_added", "depends_removed"], &list(text()))
        .fields(["lines_added", "lines_removed"], &count())
        .field("keys", list(text()))
        .field("problem", maybe_text())
        .field("path", text());
    Object::new()
        .fields(["from", "to"], &maybe_text())
        .field("staged", flag())
        .field("differences", list(difference.closed()))
        .field("diff", maybe_text())
}

fn problem_list() -> Object {
    Object::new()
        .field("problems", list(part("Problem")))
        .fields(["errors", "warnings"], &count())
        .field("hints", list(text()))
        .field("fixed", maybe(part("Change")))
        .and(page())
}

/// The answer of `sql`. The keys of each row are the columns of the query.
fn table() -> Object {
    let value = json!({"type": ["string", "number", "null"]});
    let row = json!({"type": "object", "additionalProperties": value});
    Object::new().field("columns", list(text())).field("rows", list(row)).and(page())
}

fn doctor() -> Object {
    let check = Object::new()
        .fields(["name", "value", "hint"], &text())
        .field("state", word(["ok", "note", "problem"]));
    let discarded = Object::new().fields(["id", "verb", "at", "diff"], &text()).field("kept", list(text()));
    Object::new()
        .field("checks", list(check.closed()))
        .field("problems", count())
        .field("discarded", maybe(discarded.closed()))
}
