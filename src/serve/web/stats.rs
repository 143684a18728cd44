//! Counts of the work, as charts with their numbers.

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use maud::html;

use super::layout::{Page, Place, Visit};
use super::{Web, links};
use crate::api::context::Context;
use crate::api::error::Error;
use crate::ops::stats::{self, StatsRequest};
use crate::page::chart::{Bar, bars};
use crate::page::text::isolated;

pub(super) async fn page(State(web): State<Web>, visit: Visit) -> Response {
    let shown = move |context: &Context| -> Result<_, Error> {
        let report = stats::stats(context, &StatsRequest::default())?;
        let weeks: Vec<_> = report.weeks.iter().map(|it| Bar::count(&it.week, it.closed)).collect();
        let outcomes: Vec<_> =
            report.outcomes.iter().map(|it| Bar::count(&it.outcome, it.attempts)).collect();
        let main = html! {
            h1 { "Statistics" }
            p class="quiet" { (report.closed) " of " (report.steps) " steps are closed." }
            @if !weeks.is_empty() { (bars("Steps closed a week", ["Week", "Steps"], &weeks)) }
            @if !outcomes.is_empty() { (bars("Outcomes", ["Outcome", "Attempts"], &outcomes)) }
            @if !report.waiting.is_empty() {
                h2 { "What waits longest" }
                ul class="plain" { @for it in &report.waiting { li { a href=(links::step(&it.id)) { (isolated(&it.title)) } } } }
            }
        };
        Ok(visit.show(&Page { title: "Statistics", place: Place::Statistics, plan: None, main }))
    };
    web.app.ask(shown).await.unwrap_or_else(IntoResponse::into_response)
}
