//! The page of a plan: board, list, graph, timeline, document, decisions.

use axum::extract::{Path, Query, State};
use axum::http::header::CONTENT_DISPOSITION;
use axum::response::{IntoResponse, Response};
use maud::{Markup, html};
use serde::Deserialize;

use super::aims::Aims;
use super::layout::{self, Page, Place, Visit};
use super::text::FileText;
use super::{Web, board, forms, knowledge, links, listing, overview, pictures, words};
use crate::api::context::Context;
use crate::ops::export::{self, ExportForm, ExportRequest};
use crate::ops::show::{self, ShowReport, ShowRequest, ShownPlan};
use crate::page::text::isolated;
use crate::plan::model::PlanKind;
use crate::plan::time::Time;
use crate::serve::http::extract::plan_named;
use crate::serve::http::problem::Problem;

#[derive(Debug, Clone, Default, Deserialize)]
pub(super) struct PlanQuery {
    #[serde(default)]
    pub(super) view: String,
    /// The phase that the graph shows; empty for the steps without a phase.
    pub(super) phase: Option<String>,
    /// The step whose neighbours the graph shows.
    pub(super) around: Option<String>,
    /// If not empty, the graph shows all steps. Ignored if there are too many steps, or if `around` or `phase` is given.
    #[serde(default)]
    pub(super) whole: String,
    #[serde(default)]
    pub(super) status: String,
    #[serde(default)]
    pub(super) page: Option<usize>,
    /// Only the cards with this text in their title, or with this number.
    #[serde(default)]
    pub(super) q: String,
    /// Only the cards of this person.
    #[serde(default)]
    pub(super) by: String,
    /// The id of the column for which *Show all* was chosen.
    #[serde(default)]
    pub(super) all: String,
}

const VIEWS: [(&str, &str); 6] = [
    ("", "Board"),
    ("list", "List"),
    ("graph", "Graph"),
    ("timeline", "Timeline"),
    ("text", "Document"),
    ("decisions", "Decisions"),
];

pub(super) async fn page(
    State(web): State<Web>,
    Path(id): Path<String>,
    visit: Visit,
    Query(asked): Query<PlanQuery>,
) -> Response {
    let layouts = std::sync::Arc::clone(&web.layouts);
    let shown = move |context: &Context| -> Result<_, Problem> {
        let read = read(context, &id)?;
        let main = main(context, (&visit, &layouts), &asked, &read)?;
        let plan = &read.shown.plan;
        Ok(visit.show(&Page { title: &plan.title, place: Place::Elsewhere, plan: Some(&plan.id), main }))
    };
    web.app.ask(shown).await.unwrap_or_else(IntoResponse::into_response)
}

/// The plan as one file, as `export --format html` makes it. It is only offered as a download, because it contains a
/// style sheet, and the policy of these pages forbids embedded style sheets.
pub(super) async fn exported(State(web): State<Web>, Path(id): Path<String>) -> Response {
    let made = move |context: &Context| -> Result<_, Problem> {
        let request = ExportRequest { plan: plan_named(&id)?, form: ExportForm::Html };
        let report = export::export(context, &request)?;
        let name = format!("attachment; filename*=UTF-8''{}.html", overview::query(&report.plan));
        Ok(([(CONTENT_DISPOSITION, name)], layout::document(report.text)).into_response())
    };
    web.app.ask(made).await.unwrap_or_else(IntoResponse::into_response)
}

/// A plan with the text of its file as it is now.
pub(super) struct Read {
    pub(super) shown: Box<ShownPlan>,
    pub(super) file: FileText,
}

pub(super) fn read(context: &Context, id: &str) -> Result<Read, Problem> {
    let request = ShowRequest { id: plan_named(id)?, ..ShowRequest::default() };
    let ShowReport::Plan(shown) = show::show(context, &request)? else { return Err(Problem::internal()) };
    let file = FileText::read(context, &shown.plan.path, &shown.body);
    Ok(Read { shown, file })
}

fn main(
    context: &Context,
    (visit, layouts): (&Visit, &pictures::Layouts),
    asked: &PlanQuery,
    read: &Read,
) -> Result<Markup, Problem> {
    let shown = &*read.shown;
    let aims = Aims::of(&shown.plan, &read.file.bytes);
    let is_program = shown.plan.kind == PlanKind::Program && shown.steps.is_empty();
    let view = match asked.view.as_str() {
        "list" => listing::steps(visit, asked, shown),
        "graph" => pictures::graph(layouts, asked, shown),
        "timeline" => pictures::timeline(context, shown),
        "text" => document(visit, read, &aims),
        "decisions" => knowledge::of_plan(context, shown)?,
        _ if is_program => children(shown, context.now),
        _ => board::board(visit, asked, shown),
    };
    Ok(html! {
        (head(visit, shown))
        @if asked.view != "text" { (aims.folded(visit)) }
        (tabs(asked, shown))
        div class="view" id={"view-" (if asked.view.is_empty() { "board" } else { &asked.view })} { (view) }
    })
}

fn head(visit: &Visit, shown: &ShownPlan) -> Markup {
    let plan = &shown.plan;
    html! {
        div class="head" {
            p class="crumbs" {
                a href="/" { "Plans" }
                @if let Some(program) = &plan.program { " / " (links::to(program)) }
                " / " span class="id" { (isolated(&plan.id)) }
            }
            h1 { (isolated(&plan.title)) }
            div class="facts" {
                (words::plan_status(plan))
                (words::progress(plan))
                @if plan.archived { span class="fact" { "archived" } }
                @for (n, word) in plan.counts().iter().filter(|it| matches!(it.1, "ready" | "lapsed")) { span class="fact" { (n) " " (word) } }
                @if plan.steps_failed + plan.steps_blocked > 0 {
                    span class="fact bad" { (plan.steps_failed + plan.steps_blocked) " failed or blocked" }
                }
                @if let Some(due) = plan.due { span class="fact" { "due " (due) } }
                @for tag in &plan.tags { a class="tag" href={"/?tag=" (overview::query(tag))} { (isolated(tag)) } }
                @if !shown.problems.is_empty() {
                    a class="fact warn" href="/problems" { (words::count(shown.problems.len(), "problem")) " in its files" }
                }
            }
            @if !visit.is_read_only() { (actions(visit, shown)) }
        }
    }
}

fn actions(visit: &Visit, shown: &ShownPlan) -> Markup {
    let plan = &shown.plan;
    let moves: &[(&str, &str)] = match plan.status.as_str() {
        _ if plan.archived => &[("restore", "Restore")],
        "draft" => &[("start", "Activate"), ("skip", "Abandon")],
        "active" => &[("done", "Complete"), ("skip", "Abandon"), ("archive", "Archive")],
        _ => &[("reopen", "Reopen"), ("archive", "Archive")],
    };
    html! {
        div class="actions" {
            @if !plan.archived {
                details class="menu" id="add-form" {
                    summary { "Add a step" }
                    form class="sheet stack" method="post" action="/do" data-act="add" data-keep="" id="add" {
                        (forms::hidden(visit, "add", &plan.id))
                        label for="add-title" { "Title" }
                        input id="add-title" name="title" required;
                        label for="add-body" { "Text " span class="quiet" { "(Markdown)" } }
                        textarea id="add-body" name="body" rows="4" {}
                        div class="buttons" { button class="primary" { "Add" } }
                    }
                }
            }
            details class="menu" {
                summary { "Plan…" }
                form class="sheet" method="post" action="/do" data-act="plan" {
                    (forms::whose(visit, &plan.id))
                    @for (act, label) in moves { button name="do" value=(act) { (label) } }
                }
            }
            @for phase in unconfirmed(shown) {
                form class="inline" method="post" action="/do" data-act="confirm" {
                    (forms::hidden(visit, "confirm", &plan.id))
                    input type="hidden" name="phase" value=(phase);
                    button { "Confirm the phase " (isolated(phase)) }
                }
            }
        }
    }
}

/// The phases that a person still has to confirm.
fn unconfirmed(shown: &ShownPlan) -> impl Iterator<Item = &String> {
    let is_open =
        |phase: &&String| !shown.plan.confirmations.iter().any(|it| it.phase.as_ref() == Some(*phase));
    shown.plan.confirm_phases.iter().filter(is_open)
}

fn tabs(asked: &PlanQuery, shown: &ShownPlan) -> Markup {
    html! {
        nav class="tabs" aria-label="Views" {
            @for (view, word) in VIEWS {
                @let is_here = asked.view == view;
                @let path = links::plan(&shown.plan.id);
                a href=(if view.is_empty() { path } else { format!("{path}?view={view}") }) aria-current=[is_here.then_some("page")] {
                    (if view.is_empty() && shown.steps.is_empty() && !shown.children.is_empty() { "Plans" } else { word })
                }
            }
            a href={"/stats?plan=" (overview::query(&shown.plan.id))} { "Statistics" }
            a href={(links::plan(&shown.plan.id)) "/export"} download="" title="One file with the whole plan, to send or to print" { "Export" }
        }
    }
}

fn children(shown: &ShownPlan, now: Time) -> Markup {
    html! {
        @if shown.children.is_empty() { p class="none" { "No plan belongs to this program." } }
        ul class="plan-rows" { @for it in &shown.children { (overview::plan_row(it, now)) } }
    }
}

fn document(visit: &Visit, read: &Read, aims: &Aims<'_>) -> Markup {
    let plan = &read.shown.plan;
    let none = "This plan has no text yet.";
    html! {
        div class="columns" {
            div { (read.file.shown(visit, &plan.id, &links::plan(&plan.id), &plan.path, none)) }
            aside {
                (aims.lists(visit))
                @if !plan.notes.is_empty() {
                    section {
                        h2 { "Notes" }
                        ul class="plain" { @for it in &plan.notes { li { bdi { (crate::page::text::visible(&it.text)) } } } }
                    }
                }
                p class="quiet path" { (isolated(&plan.path)) }
            }
        }
    }
}
