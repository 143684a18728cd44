//! A plan's steps as a list.

use maud::{Markup, html};

use super::layout::Visit;
use super::plan::PlanQuery;
use super::{board, forms, links, words};
use crate::api::views::StepShape;
use crate::ops::show::ShownPlan;
use crate::page::look::Look;
use crate::page::text::isolated;
use crate::plan::records::Priority;

/// The number of steps on a page.
const PAGE: usize = 200;

pub(super) fn steps(visit: &Visit, asked: &PlanQuery, shown: &ShownPlan) -> Markup {
    let steps = &shown.steps;
    let found: Vec<_> =
        steps.iter().filter(|it| asked.status.is_empty() || Look::of(it).words() == asked.status).collect();
    let titles = words::Titles::of(shown);
    let n_pages = found.len().div_ceil(PAGE).max(1);
    let page = asked.page.unwrap_or(1).clamp(1, n_pages);
    html! {
        form class="filter" method="get" data-filter="" id="filter" {
            input type="hidden" name="view" value="list";
            select name="status" aria-label="Status" {
                option value="" { "all steps" }
                @for look in Look::ALL { option value=(look.words()) selected[look.words() == asked.status] { (look.words()) } }
            }
            button { "Show" }
        }
        @if found.is_empty() { p class="none" { "No step matches." } }
        ul class="rows steps" {
            @for step in found.iter().skip((page - 1) * PAGE).take(PAGE) { (row(visit, step, shown.plan.priority, &titles)) }
        }
        @if n_pages > 1 {
            nav class="pager" aria-label="Pages" {
                @if page > 1 { a href={"?view=list&status=" (asked.status.replace(' ', "+")) "&page=" (page - 1)} { "Previous" } }
                span { "Page " (page) " of " (n_pages) }
                @if page < n_pages { a href={"?view=list&status=" (asked.status.replace(' ', "+")) "&page=" (page + 1)} { "Next" } }
            }
        }
    }
}

fn row(visit: &Visit, step: &StepShape, usual: Priority, titles: &words::Titles<'_>) -> Markup {
    html! {
        li data-key={"s-" (step.id)} id={"s-" (step.id)} {
            (words::mark(Look::of(step)))
            span class="number" { (step.number) }
            div class="what" {
                a class="title" href=(links::step(&step.id)) { (isolated(&step.title)) }
                div class="facts" {
                    (words::facts(step, usual))
                    @if !step.waits_for.is_empty() {
                        span class="waits" title=(titles.waits(step, board::MOST_IN_TITLE)) { "waits for " (titles.waits(step, 1)) }
                    }
                }
            }
            (forms::move_menu(visit, step))
        }
    }
}
