//! The graph and the timeline of a plan.

use std::sync::{Arc, Mutex, PoisonError};

use maud::{Markup, html};

use super::links;
use super::overview::query;
use super::plan::PlanQuery;
use crate::api::context::Context;
use crate::api::views::StepShape;
use crate::ops::log::timeline::{self as history, StepTimeline};
use crate::ops::show::ShownPlan;
use crate::page::graph::{self, Graph, Kind, Layout, MOST_READABLE, MOST_WHOLE, Node, View};
use crate::page::text::{clip, isolated, one_line};
use crate::page::timeline::{self, Mark, Row};

/// The largest number of cached layouts.
const MOST: usize = 64;

/// The key of a graph and its layout; `None` if the graph cannot be laid out.
type Kept = (String, Option<Arc<Layout>>);

/// The cached layouts, the newest last. A layout takes long to compute, and a save seldom changes the dependencies.
#[derive(Debug, Default)]
pub(super) struct Layouts(Mutex<Vec<Kept>>);

impl Layouts {
    fn of(&self, graph: &Graph) -> Option<Arc<Layout>> {
        let key = graph.key();
        let find = |kept: &Vec<Kept>| kept.iter().find(|it| it.0 == key).map(|it| it.1.clone());
        // A poisoned lock is usable, because no statement leaves the list half-changed.
        if let Some(found) = find(&self.0.lock().unwrap_or_else(PoisonError::into_inner)) {
            return found;
        }
        let made = graph.layout().map(Arc::new);
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() >= MOST {
            kept.remove(0);
        }
        kept.push((key, made.clone()));
        made
    }
}

/// In a plan with more steps than this, the user types the number of a step instead of choosing it from a list.
const MOST_CHOICES: usize = 300;

pub(super) fn graph(layouts: &Layouts, asked: &PlanQuery, shown: &ShownPlan) -> Markup {
    let around = around(asked, shown);
    let is_whole = !asked.whole.is_empty() && shown.steps.len() <= MOST_WHOLE;
    let view = match (&around, &asked.phase) {
        (Some(step), _) => Some(View::Around(step)),
        (None, Some(phase)) => Some(View::Phase(Some(phase.as_str()).filter(|it| !it.is_empty()))),
        (None, None) if is_whole => Some(View::Whole),
        (None, None) => View::readable(&shown.steps),
    };
    let to = format!("{}?view=graph", links::plan(&shown.plan.id));
    let drawn = view.and_then(|it| Graph::of(&shown.plan, &shown.steps, it));
    let href = |node: &Node| match node.kind {
        Kind::Step | Kind::Foreign => Some(links::step(&node.id)),
        Kind::Phase { .. } => Some(format!("{to}&phase={}", query(&node.id))),
    };
    let label = format!("Dependencies of {}", one_line(&shown.plan.title));
    html! {
        @if shown.steps.len() > FEW { (chosen(view, shown, &to)) }
        @match drawn {
            None => p class="empty" { "These are too many steps for one picture. Choose one to see its neighbours; the list has all of them." },
            Some(drawn) if drawn.nodes.is_empty() => p class="empty" { "There is nothing to draw yet." },
            Some(drawn) => (graph::figure(&drawn, layouts.of(&drawn).as_deref(), &label, &href)),
        }
    }
}

/// For a plan with at most this many steps, the page does not offer to draw a part of it.
const FEW: usize = 12;

/// The id of the step whose neighbours are requested. The request names the step by its id or its number. If the plan has no
/// such step, returns the text as it was typed.
fn around(asked: &PlanQuery, shown: &ShownPlan) -> Option<String> {
    let typed = asked.around.as_ref().map(|it| it.trim()).filter(|it| !it.is_empty())?;
    let is_meant = |it: &&StepShape| it.id == typed || it.number == typed;
    Some(shown.steps.iter().find(is_meant).map_or_else(|| typed.to_owned(), |it| it.id.clone()))
}

/// Says what is drawn, and offers to draw something else.
fn chosen(view: Option<View<'_>>, shown: &ShownPlan, to: &str) -> Markup {
    let (n, whole) = (shown.steps.len(), View::readable(&shown.steps));
    let here = match view {
        Some(View::Around(id)) => id,
        _ => "",
    };
    html! {
        form class="filter" method="get" data-filter="" id="filter" {
            input type="hidden" name="view" value="graph";
            @if n <= MOST_CHOICES {
                select name="around" aria-label="Around a step" {
                    option value="" { "around a step…" }
                    @for it in &shown.steps { option value=(it.id) selected[it.id == here] { (it.number) " " (clip(&it.title, 50)) } }
                }
            } @else {
                input name="around" value=(here) aria-label="Around a step" placeholder="around a step: its number";
            }
            button { "Show" }
        }
        p class="quiet below-filter" {
            @match view {
                Some(View::Around(id)) => { "The neighbours of " (isolated(id)) ", two steps back and two ahead" },
                Some(View::Phase(Some(phase))) => { "The phase “" (isolated(phase)) "” and its neighbours" },
                Some(View::Phase(None)) => { "The steps without a phase" },
                Some(View::Phases) => { "By phase, as there are " (n) " steps" },
                _ => { "All " (n) " steps" },
            }
            @if view != whole && whole.is_some_and(|it| !matches!(it, View::Around(_))) {
                " · " a href=(to) { (if whole == Some(View::Phases) { "by phase" } else { "the whole plan" }) }
            }
            @if (MOST_READABLE + 1..=MOST_WHOLE).contains(&n) && view != Some(View::Whole) {
                " · " a href={(to) "&whole=1"} { "all " (n) " steps at once" }
            }
        }
    }
}

pub(super) fn timeline(context: &Context, shown: &ShownPlan) -> Markup {
    // If the history in git cannot be read, the timeline is made from the files alone.
    let rows: Vec<Row> = match history::timeline(context, &format!("{}/", shown.plan.id)) {
        Ok(report) => report.steps.iter().filter_map(|it| row(it, shown)).collect(),
        Err(_) => shown.steps.iter().map(Row::of_file).collect(),
    };
    let href = |row: &Row| Some(links::step(&row.id));
    let label = format!("Timeline of {}", one_line(&shown.plan.title));
    html! {
        @match timeline::svg(&rows, &label, &href) {
            Some(picture) => figure {
                (picture)
                details { summary { "As a table" } (timeline::table(&rows, &href)) }
            },
            None => p class="empty" { "Nothing has happened yet." },
        }
    }
}

/// `None` if `shown` does not have the step. The timeline is read later than `shown`, so it can have a step that was created
/// in between.
fn row(step: &StepTimeline, shown: &ShownPlan) -> Option<Row> {
    let marks = step.attempts.iter().map(|it| Mark::of(it.at, it.outcome.as_deref(), it.by.as_deref()));
    let of = shown.steps.iter().find(|of| of.id == step.step)?;
    Some(Row::of(of, &step.spans, marks.collect()))
}
