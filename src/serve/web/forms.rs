//! The forms that change something: each works without script, and carries the token of its page.

use maud::{Markup, html};

use super::layout::Visit;
use super::words;
use crate::api::views::StepShape;
use crate::plan::transitions::{Verb, is_allowed, may_be_released};
use crate::plan::words::{Status, StepStatus};

/// The fields of a form that does one thing.
pub(super) fn hidden(visit: &Visit, act: &str, id: &str) -> Markup {
    html! {
        (whose(visit, id))
        input type="hidden" name="do" value=(act);
    }
}

/// The fields of a form whose buttons say what is done.
pub(super) fn whose(visit: &Visit, id: &str) -> Markup {
    html! {
        input type="hidden" name="page" value=(visit.session.page_token);
        input type="hidden" name="back" value=(visit.here);
        input type="hidden" name="id" value=(id);
    }
}

/// The moves that the engine knows from the status of a step; whether they are possible now, it says when asked.
pub(super) fn moves(step: &StepShape) -> Vec<(&'static str, &'static str)> {
    let status = StepStatus::ALL.iter().copied().find(|it| it.word() == step.status);
    let verbs = Verb::ALL.into_iter().filter(|it| is_allowed(status, *it) && Some(it.target()) != status);
    let mut found: Vec<_> = verbs.map(|it| (it.word(), label(it))).collect();
    let is_held = words::worker(step).is_some() || step.status == StepStatus::InProgress.word();
    if may_be_released(status) && is_held {
        found.push(("release", "Release"));
    }
    if step.ready && step.claim.is_none() {
        found.insert(0, ("claim", "Claim"));
    }
    found
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

/// *Move to…* in a card or row: what dragging does, for the keyboard.
pub(super) fn move_menu(visit: &Visit, step: &StepShape) -> Markup {
    html! {
        @if !visit.is_read_only() {
            details class="menu move" {
                summary aria-label={"Move step " (step.number) " to…"} title="Move to…" { "⋯" }
                form class="sheet" method="post" action="/do" data-act="move" {
                    (whose(visit, &step.id))
                    p class="sheet-title" { "Move to…" }
                    @for (act, label) in moves(step) { button name="do" value=(act) { (label) } }
                }
            }
        }
    }
}

/// Everything that can be done with a step, with room for words.
pub(super) fn update(visit: &Visit, step: &StepShape) -> Markup {
    html! {
        form class="stack update" method="post" action="/do" data-act="update" data-keep="" id="update" {
            (whose(visit, &step.id))
            label for="message" { "What happened " span class="quiet" { "(optional; becomes an attempt)" } }
            textarea id="message" name="message" rows="2" {}
            div class="buttons" {
                @for (act, label) in moves(step) {
                    button name="do" value=(act) class=[(act == "done" || act == "claim").then_some("primary")] { (label) }
                }
            }
        }
    }
}

/// The answer of a person to a gate.
pub(super) fn gate(visit: &Visit, step: &StepShape) -> Markup {
    html! {
        form class="stack gate-form" method="post" action="/do" data-act="confirm" data-keep="" id="gate" {
            (whose(visit, &step.id))
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

/// The other forms of a step, each behind its name.
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
        details class="more" {
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
        details class="more" {
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
            summary { "Change its place" }
            form class="stack" method="post" action="/do" data-act="renumber" data-keep="" id="renumber" {
                (hidden(visit, "renumber", &step.id))
                label for="after" { "After step number " span class="quiet" { "(0: first)" } }
                input id="after" name="after" required inputmode="decimal";
                div class="buttons" { button { "Move it" } }
            }
        }
    }
}
