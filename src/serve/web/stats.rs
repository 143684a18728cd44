//! The page of the statistics: charts, and their numbers.

use axum::extract::{Query, State};
use axum::response::{IntoResponse, Response};
use maud::{Markup, html};
use serde::Deserialize;

use super::layout::{Page, Place, Visit};
use super::{Web, links, words};
use crate::api::context::Context;
use crate::ops::stats::{self, Effort, StatsReport, StatsRequest, Worker};
use crate::page::chart::{Bar, bars, columns};
use crate::page::text::isolated;
use crate::page::timeline::outcome_look;
use crate::plan::time::Time;
use crate::serve::http::extract::plan_named;
use crate::serve::http::problem::Problem;

/// The largest number of weeks that are drawn; older weeks are left out.
const WEEKS: usize = 52;

/// The largest number of workers that are listed, those with the most attempts first.
const WORKERS: usize = 100;

#[derive(Debug, Clone, Default, Deserialize)]
pub(super) struct StatsQuery {
    #[serde(default)]
    plan: String,
    #[serde(default)]
    since: String,
    /// Only the attempts of this worker.
    #[serde(default)]
    by: String,
}

const SINCE: [(&str, &str); 5] = [
    ("", "of all time"),
    ("7d", "of the last week"),
    ("30d", "of the last 30 days"),
    ("90d", "of the last 90 days"),
    ("365d", "of the last year"),
];

pub(super) async fn page(State(web): State<Web>, visit: Visit, Query(asked): Query<StatsQuery>) -> Response {
    let shown = move |context: &Context| -> Result<_, Problem> {
        let given = |it: &str| Some(it.trim().to_owned()).filter(|it| !it.is_empty());
        let plan = given(&asked.plan).map(|it| plan_named(&it)).transpose()?;
        let request = StatsRequest { plan, since: given(&asked.since), by_agent: true };
        let report = stats::stats(context, &request)?;
        let main = main(&asked, &report, context.now);
        Ok(visit.show(&Page { title: "Statistics", place: Place::Statistics, plan: None, main }))
    };
    web.app.ask(shown).await.unwrap_or_else(IntoResponse::into_response)
}

fn main(asked: &StatsQuery, report: &StatsReport, now: Time) -> Markup {
    let weeks: Vec<_> = report.weeks.iter().map(|it| Bar::count(&it.week, it.closed)).collect();
    let weeks = &weeks[weeks.len().saturating_sub(WEEKS)..];
    let tries = |it: &stats::Tries| {
        let label = if it.tries == 1 { "1 try".to_owned() } else { format!("{} tries", it.tries) };
        Bar::count(label, it.steps)
    };
    let tries: Vec<_> = report.tries.iter().map(tries).collect();
    let outcome = |it: &stats::OutcomeCount| {
        let class = outcome_look(&it.outcome).class();
        Bar { class, ..Bar::count(&it.outcome, it.attempts) }
    };
    let outcomes: Vec<_> = report.outcomes.iter().map(outcome).collect();
    html! {
        h1 { "Statistics" }
        (filter(asked))
        (numbers(report, now))
        @if report.weeks.is_empty() && report.total.attempts == 0 {
            p class="empty" { "Nothing was recorded in this time." }
        }
        @if !weeks.is_empty() { (columns("Steps closed, by week", ["Week from", "Steps"], weeks)) }
        div class="charts" {
            @if !outcomes.is_empty() { (bars("Outcomes of attempts", ["Outcome", "Attempts"], &outcomes)) }
            @if !tries.is_empty() { (bars("Steps, by number of tries", ["Tries", "Steps"], &tries)) }
        }
        (workers(asked, report, now))
        @if !report.waiting.is_empty() {
            section class="panel" {
                h2 { "Ready for the longest time" }
                ul class="rows" { @for it in &report.waiting { li { div class="what" {
                    a class="title" href=(links::step(&it.id)) { (isolated(&it.title)) }
                    div class="facts" { span class="id" { (isolated(&it.id)) } "since " (words::ago(it.since, now)) }
                } } } }
            }
        }
    }
}

fn filter(asked: &StatsQuery) -> Markup {
    html! {
        form class="filter wide" action="/stats" data-filter="" id="filter" {
            input name="plan" value=(asked.plan) aria-label="Plan" placeholder="Plan: its id; empty for all" maxlength="200";
            select name="since" aria-label="Since" {
                @for (value, word) in SINCE { option value=(value) selected[asked.since == value] { (word) } }
                @if !SINCE.iter().any(|it| it.0 == asked.since) { option selected value=(asked.since) { "since " (asked.since) } }
            }
            @if !asked.by.is_empty() { input type="hidden" name="by" value=(asked.by); }
            button { "Show" }
        }
    }
}

fn numbers(report: &StatsReport, now: Time) -> Markup {
    let length = |seconds: i64| words::length(seconds, now);
    let times = &report.ready_to_closed;
    html! {
        dl class="numbers-row" {
            div { dt { "Steps closed" } dd { (report.closed) " of " (report.steps) } }
            @if let Some((median, p90)) = times.median_seconds.zip(times.p90_seconds) {
                div { dt { "From ready to closed" } dd { (length(median)) " " span class="quiet" { "median of " (times.steps) } } }
                div { dt { "90 % within" } dd { (length(p90)) } }
            }
            @if report.total.attempts > 0 {
                div { dt { "Attempts" } dd { (report.total.attempts) } }
                div { dt { "Verify failed" } dd { (report.total.verify_failed) } }
            }
            @if report.total.seconds > 0 { div { dt { "Time of workers" } dd { (length(report.total.seconds)) } } }
            @if report.total.cost > 0.0 { div { dt { "Cost" } dd { (cost(&report.total)) } } }
        }
    }
}

fn cost(of: &Effort) -> String {
    format!("{:.2}", of.cost)
}

/// A table of what each worker did. If the query names a worker, the table has only that worker.
fn workers(asked: &StatsQuery, report: &StatsReport, now: Time) -> Markup {
    let all = report.workers.as_deref().unwrap_or_default();
    let is_asked = |it: &&Worker| asked.by.is_empty() || it.by.as_deref() == Some(asked.by.as_str());
    let shown: Vec<&Worker> = all.iter().filter(is_asked).take(WORKERS).collect();
    let most = all.iter().map(|it| it.effort.attempts).max().unwrap_or(1).max(1);
    html! {
        @if !all.is_empty() {
            section id="workers" aria-labelledby="head-workers" {
                h2 id="head-workers" { "By worker" }
                form class="filter" action="/stats" data-filter="" {
                    input type="hidden" name="plan" value=(asked.plan);
                    input type="hidden" name="since" value=(asked.since);
                    select name="by" aria-label="Worker" {
                        option value="" { "all workers" }
                        @for it in all.iter().take(WORKERS) {
                            @if let Some(by) = &it.by { option value=(by) selected[asked.by == *by] { (crate::page::text::one_line(by)) } }
                        }
                    }
                    button { "Show" }
                }
                div class="scroll" tabindex="0" role="group" aria-label="By worker" {
                    table class="bars workers" {
                        thead { tr {
                            th scope="col" { "Worker" } th class="bar-head" aria-hidden="true" {}
                            @for head in ["Attempts", "Completed", "Verify failed", "Time", "Cost"] { th class="number" scope="col" { (head) } }
                        } }
                        tbody { @for it in &shown { (worker(it, most, now)) } }
                    }
                }
                @if shown.is_empty() { p class="none" { "This worker made no attempt in this time." } }
            }
        }
    }
}

fn worker(it: &Worker, most: usize, now: Time) -> Markup {
    let of = &it.effort;
    html! {
        tr {
            th scope="row" { @match &it.by { Some(by) => (isolated(by)), None => span class="quiet" { "not recorded" } } }
            td class="bar" aria-hidden="true" {
                svg viewBox="0 0 200 12" width="200" height="12" preserveAspectRatio="none" {
                    rect class="bar" x="0" y="1" height="10" rx="2" width=((of.attempts * 200).div_ceil(most)) {}
                }
            }
            td class="number" { (of.attempts) }
            td class="number" { (of.completed) }
            td class="number" { (of.verify_failed) }
            td class="number" title=[(of.seconds > 0).then(|| format!("{} seconds", of.seconds))] { @if of.seconds > 0 { (words::length(of.seconds, now)) } @else { "–" } }
            td class="number" { @if of.cost > 0.0 { (cost(of)) } @else { "–" } }
        }
    }
}
