//! The forms that change something: each works without JavaScript, and carries the token of its page.

use maud::{Markup, html};

use super::layout::Visit;
use super::words;
use crate::api::views::StepShape;
use crate::plan::id::StepId;
use crate::plan::records::Priority;
use crate::plan::transitions::{Verb, is_allowed, may_be_released};
use crate::plan::words::{Status, StepStatus};

/// The hidden fields of a form that has one action.
pub(super) fn hidden(visit: &Visit, act: &str, id: &str) -> Markup {
    html! {
        (whose(visit, id))
        input type="hidden" name="do" value=(act);
    }
}

/// The hidden fields of a form whose buttons select the action.
pub(super) fn whose(visit: &Visit, id: &str) -> Markup {
    html! {
        input type="hidden" name="page" value=(visit.session.page_token);
        input type="hidden" name="back" value=(visit.here);
        input type="hidden" name="id" value=(id);
    }
}

/// The actions that a page offers for a step in its current state. Whether an action is allowed is decided when it is
/// requested.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Moves {
    /// The action that the page suggests, if there is one.
    pub(super) main: Option<(&'static str, &'static str)>,
    pub(super) others: Vec<(&'static str, &'static str)>,
    /// The actions that are refused while the step waits, unless they are forced.
    pub(super) waiting: Vec<(&'static str, &'static str)>,
}

impl Moves {
    pub(super) fn all(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        self.main.into_iter().chain(self.others.iter().copied())
    }
}

/// `by` is the user who opened the page.
pub(super) fn moves(step: &StepShape, by: &str) -> Moves {
    let status = StepStatus::ALL.iter().copied().find(|it| it.word() == step.status);
    let (is_open, is_waiting) = (status == Some(StepStatus::InProgress), !step.waits_for.is_empty());
    let verbs = Verb::ALL.into_iter().filter(|it| is_allowed(status, *it) && Some(it.target()) != status);
    let (waiting, possible): (Vec<_>, Vec<_>) = verbs.partition(|it| is_waiting && it.needs_readiness());
    let named = |of: Vec<Verb>| of.into_iter().map(|it| (it.word(), label(it))).collect::<Vec<_>>();
    let (mut others, waiting) = (named(possible), named(waiting));
    if may_be_released(status) && (words::worker(step).is_some() || is_open) {
        others.push(("release", "Release"));
    }
    if step.ready && (step.claim.is_none() || step.lapsed) {
        others.insert(0, ("claim", "Claim"));
    }
    let holder = step.claim.as_ref().and_then(|it| it.by.as_deref()).or(step.held_by.as_deref());
    let is_others = holder.is_some_and(|it| it != by) && !step.lapsed;
    let main = match status {
        _ if is_others => None,
        Some(StepStatus::Pending | StepStatus::InProgress) if step.ready => Some("claim"),
        Some(StepStatus::InProgress) if !step.unverified => Some("done"),
        Some(StepStatus::Failed | StepStatus::Blocked) => Some("reopen"),
        _ => None,
    };
    let main = main.and_then(|act| others.iter().position(|it| it.0 == act)).map(|at| others.remove(at));
    Moves { main, others, waiting }
}

pub(super) fn label(verb: Verb) -> &'static str {
    match verb {
        Verb::Start => "Start",
        Verb::Done => "Done",
        Verb::Fail => "Failed",
        Verb::Block => "Blocked",
        Verb::Skip => "Skip",
        Verb::Reopen => "Reopen",
    }
}

/// The menu *Move to…* of a card or row. It is the keyboard alternative to dragging.
pub(super) fn move_menu(visit: &Visit, step: &StepShape) -> Markup {
    html! {
        @if !visit.is_read_only() {
            details class="menu move" {
                summary aria-haspopup="menu" aria-label={"Move step " (step.number) " to…"} title="Move to…" { "⋯" }
                form class="sheet" method="post" action="/do" data-act="move" {
                    (whose(visit, &step.id))
                    p class="sheet-title" aria-hidden="true" { "Move to…" }
                    div role="menu" aria-label={"Move step " (step.number) " to"} {
                        @for (act, label) in moves(step, visit.by()).all() { button role="menuitem" name="do" value=(act) { (label) } }
                    }
                }
            }
        }
    }
}

/// A form with the actions of [`moves`] and a field for a message.
pub(super) fn update(visit: &Visit, step: &StepShape) -> Markup {
    let moves = moves(step, visit.by());
    let open = step.tasks_total.saturating_sub(step.tasks_done);
    html! {
        form class="stack update" method="post" action="/do" data-act="update" data-keep="" id="update" {
            (whose(visit, &step.id))
            label for="message" { "What happened " span class="quiet" { "(optional; recorded as an attempt)" } }
            textarea id="message" name="message" rows="2" {}
            @if open > 0 && moves.all().any(|it| it.0 == "done") {
                p class="quiet open-tasks" { (open) " of " (words::count(step.tasks_total, "task")) (if open == 1 { " is" } else { " are" }) " still open." }
            }
            div class="buttons" {
                @for (act, label) in moves.all() {
                    button name="do" value=(act) class=[(moves.main.is_some_and(|it| it.0 == act)).then_some("primary")] { (label) }
                }
            }
        }
        @if !moves.waiting.is_empty() {
            details class="more" {
                summary { "Do it without waiting" }
                form class="stack" method="post" action="/do" data-act="update" data-keep="" id="forced" {
                    (whose(visit, &step.id))
                    input type="hidden" name="force" value="true";
                    p class="quiet" { "The step is still waiting. The change is recorded as forced." }
                    label for="forced-message" { "Reason " span class="quiet" { "(optional)" } }
                    input id="forced-message" name="message";
                    div class="buttons" {
                        @for (act, label) in &moves.waiting { button name="do" value=(act) { (label) " anyway" } }
                    }
                }
            }
        }
    }
}

/// The form with which a person confirms or rejects a gate.
pub(super) fn gate(visit: &Visit, step: &StepShape) -> Markup {
    html! {
        form class="stack gate-form" method="post" action="/do" data-act="confirm" data-keep="" id="gate" {
            (whose(visit, &step.id))
            input type="hidden" name="etag" value=(step.etag.as_deref().unwrap_or_default());
            p { "A person has to confirm this step before it can be worked on." }
            label for="gate-note" { "Reason " span class="quiet" { "(optional)" } }
            input id="gate-note" name="note";
            div class="buttons" {
                button name="do" value="confirm" class="primary" { "Confirm" }
                button name="do" value="reject" { "Reject" }
            }
        }
    }
}

/// The other forms of a step, each folded under its name.
pub(super) fn more(visit: &Visit, step: &StepShape) -> Markup {
    html! {
        details class="more" id="note-form" {
            summary { "Write a note" }
            form class="stack" method="post" action="/do" data-act="note" data-keep="" {
                (hidden(visit, "note", &step.id))
                label for="note-text" { "Note" }
                textarea id="note-text" name="text" rows="3" required {}
                label for="note-kind" { "Kind" }
                select id="note-kind" name="kind" {
                    @for kind in ["info", "warning", "instruction"] { option { (kind) } }
                }
                div class="buttons" { button { "Add the note" } }
            }
        }
        (details(visit, step))
        details class="more" id="attempt-form" {
            summary { "Record an attempt" }
            form class="stack" method="post" action="/do" data-act="attempt" data-keep="" id="attempt" {
                (hidden(visit, "attempt", &step.id))
                label for="outcome" { "Outcome" }
                input id="outcome" name="outcome" required placeholder="partly done";
                label for="attempt-notes" { "Details" }
                textarea id="attempt-notes" name="notes" rows="3" {}
                div class="buttons" { button { "Record it" } }
            }
        }
        details class="more" id="add-form" {
            summary { "Add a step after this one" }
            form class="stack" method="post" action="/do" data-act="add" data-keep="" id="add-after" {
                (hidden(visit, "add", &step.plan))
                input type="hidden" name="after" value=(step.number);
                label for="add-title" { "Title" }
                input id="add-title" name="title" required;
                label { input type="checkbox" name="waits" value=(step.number); " It waits for this step" }
                div class="buttons" { button { "Add the step" } }
            }
        }
        details class="more" {
            summary { "Move this step" }
            form class="stack" method="post" action="/do" data-act="renumber" data-keep="" id="renumber" {
                (hidden(visit, "renumber", &step.id))
                label for="after" { "After step number " span class="quiet" { "(0: first)" } }
                input id="after" name="after" required inputmode="decimal";
                div class="buttons" { button { "Move it" } }
            }
        }
    }
}

/// The fields of a step that `set` changes, each with its own button, so that a refusal of one does not affect the
/// others.
fn details(visit: &Visit, step: &StepShape) -> Markup {
    let field = |key: &str, label: &str, hint: &str, input: Markup| {
        html! {
            div class="field" data-keep="" id={"field-" (key)} {
                form class="stack" method="post" action="/do" data-act="set" id={"set-" (key)} {
                    (hidden(visit, "set", &step.id))
                    input type="hidden" name="key" value=(key);
                    input type="hidden" name="was" value=(detail(step, key).unwrap_or_default());
                    label for={"value-" (key)} { (label) @if !hint.is_empty() { " " span class="quiet" { (hint) } } }
                    div class="beside" { (input) button { "Save" } }
                }
                div class="field-said" id={"said-" (key)} role="alert" {}
            }
        }
    };
    let input = |key: &str, kind: &str, value: &str| {
        html! { input id={"value-" (key)} name="value" type=(kind) value=(value) aria-describedby={"said-" (key)}; }
    };
    let text = |key: &str, kind: &str| input(key, kind, &detail(step, key).unwrap_or_default());
    html! {
        details class="more" id="details-form" {
            summary { "Change the details" }
            (field("title", "Title", "", text("title", "text")))
            (field("assignee", "Assignee", "(empty: none)", text("assignee", "text")))
            (field("depends", "Waits for", "(step numbers; plan:number for other plans)", text("depends", "text")))
            (field("priority", "Priority", "", html! {
                select id="value-priority" name="value" aria-describedby="said-priority" {
                    option value="" { "as the plan" }
                    @for it in Priority::ALL { option value=(it.word()) selected[it == step.priority] { (it.word()) } }
                }
            }))
            (field("due", "Due", "(empty: no date)", text("due", "date")))
        }
    }
}

/// The value of a detail, as its field shows it. `None`: the form has no such field.
pub(super) fn detail(step: &StepShape, key: &str) -> Option<String> {
    Some(match key {
        "title" => step.title.clone(),
        "assignee" => step.assignee.clone().unwrap_or_default(),
        "depends" => typed_depends(step).join(", "),
        "priority" => step.priority.word().to_owned(),
        "due" => step.due.map(|it| it.to_string()).unwrap_or_default(),
        _ => return None,
    })
}

/// A step's dependencies, as a person types them: steps of the same plan are numbers.
fn typed_depends(step: &StepShape) -> Vec<String> {
    let short = |id: &StepId| {
        if id.plan.as_str() == step.plan { id.number.to_string() } else { id.to_string() }
    };
    step.depends_as(&short, "-")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn step(more: &serde_json::Value) -> StepShape {
        let mut all = json!({
            "id": "a:3", "plan": "a", "number": "3", "step_number": 3, "title": "Three", "status": "pending", "unverified": false,
            "ready": false, "depends": [], "waits_for": [], "phase": null, "type": null, "assignee": null, "priority": "medium",
            "due": null, "tags": [], "created_at": null, "created_by": "user", "claim": null, "lapsed": false, "confirm": false,
            "confirmed": null, "verify": [], "touches": null, "result": null, "attempts": [], "notes": [], "metadata": {},
            "tasks_done": 0, "tasks_total": 0, "last_activity": null, "last_activity_source": null, "path": "plans/a/step-3.md",
            "etag": null, "problems": [], "custom": {},
        });
        for (key, value) in more.as_object().unwrap() {
            all[key] = value.clone();
        }
        serde_json::from_value(all).unwrap()
    }

    #[test]
    fn the_main_action_is_possible_and_useful() {
        let theirs = json!({"id": "h0000000", "by": "codex", "at": "2026-11-21T09:14:03Z"});
        let own = json!({"id": "h0000000", "by": "ann", "at": "2026-11-21T09:14:03Z"});
        for (more, main, waiting) in [
            (json!({"ready": true}), Some("claim"), vec![]),
            (json!({"waits_for": ["a:1"]}), None, vec!["start", "done"]),
            (json!({"waits_for": ["confirmation"]}), None, vec!["start", "done"]),
            (json!({"status": "in_progress"}), Some("done"), vec![]),
            (json!({"status": "in_progress", "waits_for": ["a:1"]}), None, vec!["done"]),
            (json!({"status": "in_progress", "claim": own}), Some("done"), vec![]),
            (json!({"status": "in_progress", "claim": theirs}), None, vec![]),
            (
                json!({"status": "in_progress", "claim": theirs, "lapsed": true, "ready": true}),
                Some("claim"),
                vec![],
            ),
            (json!({"status": "in_progress", "unverified": true}), None, vec![]),
            (json!({"status": "failed"}), Some("reopen"), vec![]),
            (json!({"status": "blocked", "waits_for": ["a:1"]}), Some("reopen"), vec!["start", "done"]),
            (json!({"status": "completed"}), None, vec![]),
            (json!({"status": "pending"}), None, vec![]),
        ] {
            let found = moves(&step(&more), "ann");
            assert_eq!(found.main.map(|it| it.0), main, "{more}");
            assert_eq!(found.waiting.iter().map(|it| it.0).collect::<Vec<_>>(), waiting, "{more}");
            assert!(found.all().all(|it| !waiting.contains(&it.0)), "{more}");
        }
    }
}
