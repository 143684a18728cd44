//! The page of the problems in the files, with their positions.

use axum::extract::{Query, State};
use axum::response::{IntoResponse, Response};
use maud::{Markup, html};
use serde::Deserialize;

use super::layout::{Page, Place, Visit};
use super::{Web, links};
use crate::api::context::Context;
use crate::api::error::Error;
use crate::ops::check::{self, CheckReport, CheckRequest};
use crate::page::text::{one_line, visible};
use crate::plan::id::read_step_path;
use crate::plan::problem::Severity;

/// The number of problems on a page.
const PAGE: usize = 100;

#[derive(Debug, Clone, Default, Deserialize)]
pub(super) struct ProblemsQuery {
    #[serde(default)]
    page: Option<usize>,
}

pub(super) async fn page(
    State(web): State<Web>,
    visit: Visit,
    Query(asked): Query<ProblemsQuery>,
) -> Response {
    let shown = move |context: &Context| -> Result<_, Error> {
        let report = check::check(context, &CheckRequest::default())?;
        let main = main(&report, asked.page.unwrap_or(1), &context.root_name());
        Ok(visit.show(&Page { title: "Problems", place: Place::Problems, plan: None, main }))
    };
    web.app.ask(shown).await.unwrap_or_else(IntoResponse::into_response)
}

fn main(report: &CheckReport, page: usize, root: &str) -> Markup {
    let all = report.all();
    let n_pages = all.len().div_ceil(PAGE).max(1);
    let page = page.clamp(1, n_pages);
    html! {
        h1 { "Problems " span class="count" { (all.len()) } }
        @if all.is_empty() { p class="empty" { "No file has a problem." } }
        ul class="rows problems" {
            @for (path, it, line) in all.iter().skip((page - 1) * PAGE).take(PAGE) {
                li {
                    span class={"fact " (if it.severity() == Severity::Error { "bad" } else { "warn" })} {
                        (if it.severity() == Severity::Error { "error" } else { "warning" })
                    }
                    div class="what" {
                        p { (one_line(&it.message)) }
                        p class="facts" { (place(path, root)) ":" (it.line) ":" (it.column) " " span class="id" { (it.code.text()) } }
                        @if let Some(line) = line { pre { code { (visible(line)) } } }
                        @if !it.hint.is_empty() { p class="hint" { (one_line(&it.hint)) } }
                    }
                }
            }
        }
        @if n_pages > 1 {
            nav class="pager" aria-label="Pages" {
                @if page > 1 { a href={"?page=" (page - 1)} { "Previous" } }
                span { "Page " (page) " of " (n_pages) }
                @if page < n_pages { a href={"?page=" (page + 1)} { "Next" } }
            }
        }
    }
}

/// The path of a file. It is a link if the file belongs to a step or is a plan's own file.
fn place(path: &str, root: &str) -> Markup {
    let inside = path.strip_prefix(root).map_or(path, |it| it.trim_start_matches('/'));
    let step = read_step_path(inside).and_then(|(plan, number)| Some(format!("{}:{number}", plan?)));
    let plan = inside.strip_suffix("/plan.md").filter(|it| !it.contains('/'));
    let to = step.as_deref().map(links::step).or_else(|| plan.map(links::plan));
    html! {
        @match to {
            Some(to) => a href=(to) { code { (one_line(path)) } },
            None => code { (one_line(path)) },
        }
    }
}
