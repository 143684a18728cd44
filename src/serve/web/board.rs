//! A plan's steps as cards in columns. A card can be dragged with script, and moved with its menu without.

use maud::{Markup, html};

use super::layout::Visit;
use super::{forms, links, words};
use crate::api::views::StepShape;
use crate::ops::show::ShownPlan;
use crate::page::look::Look;
use crate::page::text::isolated;

/// Cards of a column; the list has all steps.
const MOST: usize = 200;

/// A column, the looks of its steps, and what a card that is dropped into it is asked to do.
const COLUMNS: [(&str, &str, &[Look], &str); 5] = [
    ("waiting", "Waiting", &[Look::Waiting, Look::Unknown], "reopen"),
    ("ready", "Ready", &[Look::Ready], "reopen"),
    ("working", "In progress", &[Look::InProgress], "start"),
    ("stuck", "Blocked, failed", &[Look::Blocked, Look::Failed], "block"),
    ("closed", "Done", &[Look::Completed, Look::Skipped], "done"),
];

pub(super) fn board(visit: &Visit, shown: &ShownPlan) -> Markup {
    let steps = &shown.steps;
    html! {
        @if steps.is_empty() { p class="empty" { "This plan has no steps yet." } }
        @else {
            @let titles = words::Titles::of(shown);
            nav class="jump" aria-label="Columns" {
                @for (id, title, looks, _) in COLUMNS {
                    a href={"#column-" (id)} { (title) " " span class="count" { (steps.iter().filter(|it| looks.contains(&Look::of(it))).count()) } }
                }
            }
            div class="board" tabindex="0" role="group" aria-label="Board" {
                @for (id, title, looks, act) in COLUMNS {
                    @let inside: Vec<_> = steps.iter().filter(|it| looks.contains(&Look::of(it))).collect();
                    section class="column" id={"column-" (id)} aria-labelledby={"column-head-" (id)} data-drop=(act) {
                        h2 id={"column-head-" (id)} { (title) " " span class="count" { (inside.len()) } }
                        ul class="cards" {
                            @for step in inside.iter().take(MOST) { (card(visit, step, &titles)) }
                        }
                        @if inside.len() > MOST { p class="more-link" { a href="?view=list" { "All " (inside.len()) " in the list" } } }
                    }
                }
            }
        }
    }
}

fn card(visit: &Visit, step: &StepShape, titles: &words::Titles<'_>) -> Markup {
    let look = Look::of(step);
    let is_movable = !visit.is_read_only();
    html! {
        li class={"card " (look.class())} id={"s-" (step.id)} data-key={"s-" (step.id)} data-step=(step.id)
            draggable=[is_movable.then_some("true")] {
            div class="card-top" {
                span class="number" { (step.number) }
                (words::mark(look))
                (forms::move_menu(visit, step))
            }
            a class="title" href=(links::step(&step.id)) draggable="false" { (isolated(&step.title)) }
            div class="facts" { (words::facts(step)) }
            @if !step.waits_for.is_empty() && look == Look::Waiting {
                p class="waits" title=(titles.waits(step, MOST_IN_TITLE)) { "waits for " (titles.waits(step, 1)) }
            }
        }
    }
}

/// How many of the steps that a step waits for are in the hint of a card.
pub(super) const MOST_IN_TITLE: usize = 40;
