//! The graph and the timeline of a plan.

use std::sync::{Arc, Mutex, PoisonError};

use maud::{Markup, html};

use super::links;
use super::overview::query;
use super::plan::Asked;
use crate::api::context::Context;
use crate::ops::log::timeline::{self as history, StepTimeline};
use crate::ops::show::ShownPlan;
use crate::page::graph::{self, Graph, Kind, Layout, Node, View};
use crate::page::look::Look;
use crate::page::text::{isolated, one_line};
use crate::page::timeline::{self, Mark, Row, Span, outcome_look};

/// Layouts that are kept.
const MOST: usize = 64;

/// A layout by the key of its graph; none for one that cannot be drawn.
type Kept = (String, Option<Arc<Layout>>);

/// Computed layouts, the newest last: they are costly, and a save seldom changes the dependencies.
#[derive(Debug, Default)]
pub(super) struct Layouts(Mutex<Vec<Kept>>);

impl Layouts {
    fn of(&self, graph: &Graph) -> Option<Arc<Layout>> {
        let key = graph.key();
        let find = |kept: &Vec<Kept>| kept.iter().find(|it| it.0 == key).map(|it| it.1.clone());
        // Nothing is half-made while the lock is held.
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

pub(super) fn graph(layouts: &Layouts, asked: &Asked, shown: &ShownPlan) -> Markup {
    let view = match (&asked.around, &asked.phase) {
        (Some(step), _) => Some(View::Around(step)),
        (None, Some(phase)) => Some(View::Phase(Some(phase.as_str()).filter(|it| !it.is_empty()))),
        (None, None) => View::fitting(&shown.steps),
    };
    let to = format!("{}?view=graph", links::plan(&shown.plan.id));
    let Some(drawn) = view.and_then(|it| Graph::of(&shown.plan, &shown.steps, it)) else {
        return html! {
            p class="empty" { "These are too many steps for one picture." }
            p class="none" { "The list has all of them; " code { "&around=" } " and a step's id in the address show its neighbours." }
        };
    };
    let href = |node: &Node| match node.kind {
        Kind::Step | Kind::Foreign => Some(links::step(&node.id)),
        Kind::Phase { .. } => Some(format!("{to}&phase={}", query(&node.id))),
    };
    let label = format!("Dependencies of {}", one_line(&shown.plan.title));
    html! {
        @if asked.around.is_some() || asked.phase.is_some() {
            p class="quiet" {
                @if let Some(step) = &asked.around { "The neighbours of " (isolated(step)) }
                @else if let Some(phase) = &asked.phase { "The phase " (isolated(phase)) }
                " · " a href=(to) { "the whole plan" }
            }
        }
        @if drawn.nodes.is_empty() { p class="empty" { "There is nothing to draw yet." } }
        @else { (graph::figure(&drawn, layouts.of(&drawn).as_deref(), &label, &href)) }
    }
}

pub(super) fn timeline(context: &Context, shown: &ShownPlan) -> Markup {
    // Without git the files alone say what happened.
    let rows: Vec<Row> = match history::timeline(context, &format!("{}/", shown.plan.id)) {
        Ok(report) => report.steps.iter().map(|it| row(it, shown)).collect(),
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

fn row(step: &StepTimeline, shown: &ShownPlan) -> Row {
    let spans =
        step.spans.iter().map(|it| Span { look: Look::of_status(&it.status), from: it.from, to: it.to });
    let marks = step.attempts.iter().map(|it| {
        let outcome = it.outcome.as_deref().unwrap_or("attempt");
        let text = it.by.as_ref().map_or_else(|| outcome.to_owned(), |by| format!("{outcome} by {by}"));
        Mark { at: it.at, look: outcome_look(outcome), text }
    });
    let look =
        shown.steps.iter().find(|it| it.id == step.step).map_or(Look::of_status(&step.status), Look::of);
    let number = step.step.rsplit(':').next().unwrap_or_default().to_owned();
    Row {
        id: step.step.clone(),
        number,
        title: step.title.clone(),
        look,
        spans: spans.collect(),
        marks: marks.collect(),
    }
}
