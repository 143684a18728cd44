//! A plan's steps as cards in columns. A card is moved with its menu or, with JavaScript, by dragging.

use std::collections::BTreeSet;

use maud::{Markup, html};

use super::layout::Visit;
use super::overview::query;
use super::plan::PlanQuery;
use super::{forms, links, words};
use crate::api::columns::Column;
use crate::api::views::StepShape;
use crate::ops::show::ShownPlan;
use crate::page::look::Look;
use crate::page::text::{isolated, one_line};
use crate::plan::entry::folded;
use crate::plan::records::Priority;

/// The largest number of cards in a column, even after *Show all*. The list of the plan has all steps.
const MOST: usize = 200;

/// The largest number of cards in *Waiting*, and in *Done*, before *Show all*.
const FEW: usize = 20;

/// A plan with more steps than this has a filter.
const UNFILTERED: usize = 12;

/// For each column: its id, the column, and the action for a card that is dropped into it. For a card from `working`, the
/// script sends `release` instead of `reopen`.
const COLUMNS: [(&str, Column, &str); 5] = [
    ("waiting", Column::Waiting, "reopen"),
    ("ready", Column::Ready, "reopen"),
    ("working", Column::Doing, "start"),
    ("stuck", Column::Stuck, "block"),
    ("closed", Column::Done, "done"),
];

pub(super) fn board(visit: &Visit, asked: &PlanQuery, shown: &ShownPlan) -> Markup {
    let wanted = folded(asked.q.trim());
    let steps: Vec<&StepShape> = shown.steps.iter().filter(|it| is_asked(asked, &wanted, it)).collect();
    html! {
        @if shown.steps.is_empty() { p class="empty" { "This plan has no steps yet." } }
        @else {
            @let titles = words::Titles::of(shown);
            @if shown.steps.len() > UNFILTERED { (filter(asked, shown, steps.len())) }
            nav class="jump" aria-label="Columns" {
                @for (id, column, _) in COLUMNS {
                    a href={"#column-" (id)} { (column.name()) " " span class="count" { (steps.iter().filter(|it| Column::of(it) == column).count()) } }
                }
            }
            div class="board" tabindex="0" role="group" aria-label="Board" {
                @for (id, column, act) in COLUMNS {
                    @let inside: Vec<&StepShape> = steps.iter().copied().filter(|it| Column::of(it) == column).collect();
                    section class="column" id={"column-" (id)} aria-labelledby={"column-head-" (id)} data-drop=(act) {
                        h2 id={"column-head-" (id)} { (column.name()) " " span class="count" { (inside.len()) } }
                        ul class="cards" {
                            @for step in first(id, &inside, most(asked, id)) { (card(visit, step, shown.plan.priority, &titles)) }
                        }
                        @if most(asked, id) == FEW && inside.len() > FEW {
                            p class="more-link" { a href={ "?all=" (id) "&q=" (query(&asked.q)) "&by=" (query(&asked.by)) "#column-" (id) } { "Show all " (inside.len()) } }
                        } @else if inside.len() > MOST { p class="more-link" { a href="?view=list" { "All " (inside.len()) " in the list" } } }
                    }
                }
            }
        }
    }
}

/// The largest number of cards that a column shows: [`FEW`] in *Waiting* and *Done* before *Show all*, otherwise [`MOST`].
fn most(asked: &PlanQuery, column: &str) -> usize {
    if matches!(column, "waiting" | "closed") && asked.all != column { FEW } else { MOST }
}

/// Selects at most `most` cards: the first ones, or in *Done* those with the newest changes. They stay in the plan's order.
fn first<'a>(column: &str, inside: &[&'a StepShape], most: usize) -> Vec<&'a StepShape> {
    let mut shown: Vec<(usize, &StepShape)> = inside.iter().copied().enumerate().collect();
    if column == "closed" {
        shown.sort_by_key(|(nth, it)| std::cmp::Reverse((it.last_activity, *nth)));
    }
    shown.truncate(most);
    shown.sort_by_key(|it| it.0);
    shown.into_iter().map(|it| it.1).collect()
}

/// The person who works on a step, or else the person who made its last attempt.
fn person(step: &StepShape) -> Option<&str> {
    words::worker(step).or_else(|| step.attempts.last().and_then(|it| it.by.as_deref()))
}

fn is_asked(asked: &PlanQuery, wanted: &str, step: &StepShape) -> bool {
    (wanted.is_empty() || folded(&step.title).contains(wanted) || step.number == wanted)
        && (asked.by.is_empty() || person(step) == Some(asked.by.as_str()))
}

fn filter(asked: &PlanQuery, shown: &ShownPlan, n: usize) -> Markup {
    let people: BTreeSet<&str> = shown.steps.iter().filter_map(person).collect();
    html! {
        form class="filter board-filter" method="get" data-filter="" id="filter" {
            input type="search" name="q" value=(asked.q) aria-label="Filter by title or number" placeholder="Filter by title" maxlength="200";
            @if !people.is_empty() {
                select name="by" aria-label="Person" {
                    option value="" { "everybody" }
                    @for it in people.iter().take(MOST) { option value=(it) selected[asked.by == *it] { (one_line(it)) } }
                }
            }
            button { "Show" }
            @if n < shown.steps.len() {
                span class="quiet" { (n) " of " (shown.steps.len()) " steps · " a href=(links::plan(&shown.plan.id)) { "all of them" } }
            }
        }
    }
}

fn card(visit: &Visit, step: &StepShape, usual: Priority, titles: &words::Titles<'_>) -> Markup {
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
            div class="facts" { (words::facts(step, usual)) }
            @if !step.waits_for.is_empty() && look == Look::Waiting {
                p class="waits" title=(titles.waits(step, MOST_IN_TITLE)) { "waits for " (titles.waits(step, 1)) }
            }
        }
    }
}

/// The largest number of steps in a tooltip that lists what a step waits for.
pub(super) const MOST_IN_TITLE: usize = 40;
