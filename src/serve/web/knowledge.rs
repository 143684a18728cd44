//! The pages of decisions and insights.

use axum::extract::{Query, State};
use axum::response::{IntoResponse, Response};
use maud::{Markup, html};
use serde::Deserialize;

use super::layout::{Page, Place, Visit};
use super::{Web, links, words};
use crate::api::context::Context;
use crate::api::error::Error;
use crate::ops::decide::{self, DecisionsReport, DecisionsRequest};
use crate::ops::insight::{self, InsightsRequest};
use crate::ops::show::ShownPlan;
use crate::page::markdown::{self, Form, Tasks};
use crate::page::text::isolated;
use crate::plan::decision::Decision;
use crate::plan::insight::Insight;
use crate::plan::time::Time;

/// The largest number of entries on a page.
const MOST: usize = 200;

#[derive(Debug, Clone, Default, Deserialize)]
pub(super) struct DecisionsQuery {
    #[serde(default)]
    topic: String,
}

pub(super) async fn decisions(
    State(web): State<Web>,
    visit: Visit,
    Query(asked): Query<DecisionsQuery>,
) -> Response {
    let shown = move |context: &Context| -> Result<_, Error> {
        let topic = (!asked.topic.is_empty()).then(|| asked.topic.clone());
        let request = DecisionsRequest { topic, limit: MOST, ..DecisionsRequest::default() };
        let report = decide::decisions(context, &request)?;
        let main = html! {
            (head("Decisions"))
            @if !asked.topic.is_empty() { p class="quiet" { "On " (isolated(&asked.topic)) " · " a href="/decisions" { "all decisions" } } }
            (decided(&report, context.now))
        };
        Ok(visit.show(&Page { title: "Decisions", place: Place::Decisions, plan: None, main }))
    };
    web.app.ask(shown).await.unwrap_or_else(IntoResponse::into_response)
}

pub(super) async fn insights(State(web): State<Web>, visit: Visit) -> Response {
    let shown = move |context: &Context| -> Result<_, Error> {
        let request = InsightsRequest { limit: MOST, ..InsightsRequest::default() };
        let report = insight::insights(context, &request)?;
        let main = html! { (head("Insights")) (learned(&report.insights, context.now)) };
        Ok(visit.show(&Page { title: "Insights", place: Place::Decisions, plan: None, main }))
    };
    web.app.ask(shown).await.unwrap_or_else(IntoResponse::into_response)
}

/// The decisions and insights about one plan.
pub(super) fn of_plan(context: &Context, shown: &ShownPlan) -> Result<Markup, Error> {
    let plan = Some(shown.plan.id.clone());
    let request = DecisionsRequest { plan: plan.clone(), limit: MOST, ..DecisionsRequest::default() };
    let decisions = decide::decisions(context, &request)?;
    let request = InsightsRequest { plan, limit: MOST, ..InsightsRequest::default() };
    let insights = insight::insights(context, &request)?;
    Ok(html! {
        h2 class="unseen" { "Decisions" }
        (decided(&decisions, context.now))
        @if !insights.insights.is_empty() { h2 { "Insights" } (learned(&insights.insights, context.now)) }
    })
}

fn head(here: &str) -> Markup {
    html! {
        h1 { (here) }
        nav class="tabs" aria-label="Records" {
            @for (path, word) in [("/decisions", "Decisions"), ("/insights", "Insights")] {
                a href=(path) aria-current=[(word == here).then_some("page")] { (word) }
            }
        }
    }
}

fn text(id: &str, text: &str) -> Markup {
    let addresses = links::InText { directory: "_decisions", known: None };
    let prefix = format!("{id}-");
    markdown::render(
        text,
        Form { id_prefix: &prefix, top_heading: 3, tasks: Tasks::Plain, addresses: &addresses },
    )
}

fn decided(report: &DecisionsReport, now: Time) -> Markup {
    html! {
        @if report.decisions.is_empty() { p class="empty" { "Nothing has been decided yet." } }
        @for it in &report.decisions { (decision(it, report.superseded_by(&it.id), now)) }
        @if report.n_more > 0 { p class="quiet" { (report.n_more) " older: " code { "planwatch decide --list" } } }
    }
}

fn decision(it: &Decision, later: &[String], now: Time) -> Markup {
    html! {
        article class={"record" (if later.is_empty() { "" } else { " superseded" })} id=(it.id) data-key=(it.id) {
            h2 { (isolated(&it.topic)) }
            p class="facts" {
                @if let Some(by) = &it.by { span class="who" { (isolated(by)) } }
                @if let Some(at) = it.decided_at { (words::ago(at, now)) }
                @if let Some(of) = it.step.as_ref().or(it.plan.as_ref()) { (links::to(of)) }
                @for tag in &it.tags { span class="tag" { (isolated(tag)) } }
                @for id in later { a class="fact warn" href={"#" (id)} { "superseded" } }
            }
            div class="prose text" { (text(&it.id, &it.decision)) }
            @if let Some(why) = &it.reasoning {
                details class="more" { summary { "Why" } div class="prose text" { (text(&format!("{}-why", it.id), why)) } }
            }
        }
    }
}

fn learned(insights: &[Insight], now: Time) -> Markup {
    html! {
        @if insights.is_empty() { p class="empty" { "Nothing has been recorded yet." } }
        @for it in insights {
            article class="record" id=(it.id) data-key=(it.id) {
                h2 { (isolated(&it.title)) }
                p class="facts" {
                    @if let Some(by) = &it.by { span class="who" { (isolated(by)) } }
                    @if let Some(at) = it.at { (words::ago(at, now)) }
                    @if let Some(plan) = &it.plan { (links::to(plan)) }
                    @for tag in &it.tags { span class="tag" { (isolated(tag)) } }
                }
                div class="prose text" { (text(&it.id, &it.text)) }
            }
        }
    }
}
