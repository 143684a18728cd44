//! The page of a step: its text with tasks, what can be done with it, what was tried, and what it waits for.

use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use maud::{Markup, html};
use serde_json::Value;

use super::layout::{Page, Place, Visit};
use super::text::FileText;
use super::{Web, forms, history, links, overview, words};
use crate::api::context::Context;
use crate::api::views::Awaited;
use crate::ops::show::{self, ShowReport, ShowRequest, ShownStep};
use crate::page::look::Look;
use crate::page::text::{isolated, one_line, visible};
use crate::page::timeline::outcome_look;
use crate::plan::course;
use crate::plan::id::StepId;
use crate::plan::records::{Attempt, Note, Priority};
use crate::plan::time::Time;
use crate::serve::http::extract::step_named;
use crate::serve::http::problem::Problem;

/// A step with the text of its file as it is now.
pub(super) struct Read {
    pub(super) shown: Box<ShownStep>,
    pub(super) file: FileText,
}

pub(super) fn read(context: &Context, id: &str) -> Result<Read, Problem> {
    let request = ShowRequest { id: step_named(id)?, ..ShowRequest::default() };
    let ShowReport::Step(shown) = show::show(context, &request)? else { return Err(Problem::internal()) };
    let file = FileText::read(context, &shown.step.path, &shown.body);
    Ok(Read { shown, file })
}

pub(super) async fn page(State(web): State<Web>, Path(id): Path<String>, visit: Visit) -> Response {
    let shown = move |context: &Context| -> Result<_, Problem> {
        let read = read(context, &id)?;
        let main = main(&visit, &read, context);
        let step = &read.shown.step;
        let title = format!("{} {}", step.number, step.title);
        Ok(visit.show(&Page { title: &title, place: Place::Elsewhere, plan: Some(&step.plan), main }))
    };
    web.app.ask(shown).await.unwrap_or_else(IntoResponse::into_response)
}

fn main(visit: &Visit, read: &Read, context: &Context) -> Markup {
    let (shown, step, now) = (&*read.shown, &read.shown.step, context.now);
    let here = links::step(&step.id);
    html! {
        div class="head" {
            p class="crumbs" {
                a href="/" { "Plans" } " / " (links::to(&step.plan)) " / " span class="id" { (step.number) }
            }
            h1 { (isolated(&step.title)) }
            div class="facts" { (words::status(Look::of(step))) (words::facts(step, Priority::Medium)) }
        }
        div class="columns of-step" {
            // This part comes before the text if the window has room for only one column.
            aside class="now" aria-label="What to do" {
                // The box *Waits for* comes before the actions if the step waits, and after them if it waits for nothing.
                @if waits(shown) { (obstacles(shown)) }
                @if !visit.is_read_only() {
                    section aria-label="Actions" class="box" {
                        @if shown.is_gated && shown.confirmation.is_none() { (forms::gate(visit, step)) }
                        (forms::update(visit, step))
                    }
                }
                @if !waits(shown) { (obstacles(shown)) }
            }
            div class="main-part" {
                (read.file.shown(visit, &step.id, &here, &step.path, "This step has no text yet."))
                (attempts(&step.attempts, now))
                (notes(&step.notes, now))
                (history::of_step(context, &step.id))
            }
            // In one column, this part comes after the text, because it is needed less often.
            aside class="rest" aria-label="More" {
                @if !visit.is_read_only() {
                    section aria-label="More actions" class="box" { (forms::more(visit, step)) }
                }
                (about(shown, now))
            }
        }
    }
}

fn attempts(attempts: &[Attempt], now: Time) -> Markup {
    html! {
        @if !attempts.is_empty() {
            section aria-labelledby="head-attempts" class="history" id="attempts" {
                h2 id="head-attempts" { "Attempts " span class="count" { (attempts.len()) } }
                ol class="log" {
                    @for (nth, it) in attempts.iter().enumerate().rev() {
                        li data-key={"t-" (nth)} {
                            p class="facts" {
                                @let outcome = it.outcome.as_deref().unwrap_or("attempt");
                                strong class=(outcome_look(outcome).class()) { (isolated(outcome)) }
                                @if let Some(by) = &it.by { span class="who" { (isolated(by)) } }
                                @if let Some(at) = it.at { (words::ago(at, now)) }
                                (more(it, now))
                            }
                            @if let Some(notes) = &it.notes { p class="said" { bdi { (visible(notes)) } } }
                        }
                    }
                }
            }
        }
    }
}

/// Costs, exit codes and other facts of an attempt.
fn more(attempt: &Attempt, now: Time) -> Markup {
    let text = |it: &Value| it.as_str().map_or_else(|| it.to_string(), str::to_owned);
    html! {
        @for (key, value) in attempt.more.iter().filter(|it| it.0 != "claim").take(6) {
            @match (key.as_str(), course::seconds(attempt)) {
                ("seconds", Some(seconds)) => span class="fact" title={ (seconds) " seconds" } { (words::length(seconds, now)) },
                _ => span class="fact" { (one_line(key)) " " (isolated(&crate::page::text::clip(&text(value), 60))) },
            }
        }
    }
}

fn notes(notes: &[Note], now: Time) -> Markup {
    html! {
        @if !notes.is_empty() {
            section aria-labelledby="head-notes" class="history" id="notes" {
                h2 id="head-notes" { "Notes " span class="count" { (notes.len()) } }
                ol class="log" {
                    @for (nth, it) in notes.iter().enumerate().rev() {
                        li data-key={"n-" (nth)} {
                            p class="facts" {
                                strong { (it.kind.word()) }
                                @if let Some(by) = &it.by { span class="who" { (isolated(by)) } }
                                @if let Some(at) = it.at { (words::ago(at, now)) }
                            }
                            p class="said" { bdi { (visible(&it.text)) } }
                        }
                    }
                }
            }
        }
    }
}

fn is_closed(shown: &ShownStep) -> bool {
    matches!(shown.step.status.as_str(), "completed" | "skipped")
}

/// A closed step waits for nothing, even if it was completed before the steps that it depends on.
fn waits(shown: &ShownStep) -> bool {
    !is_closed(shown) && !shown.waits_for.is_empty()
}

fn obstacles(shown: &ShownStep) -> Markup {
    let step = &shown.step;
    // The reasons why the step cannot be claimed come first. The dependencies among these reasons are not listed again.
    let is_open = |id: &StepId| step.waits_for.contains(&Awaited::Step(id.clone()));
    let closed: Vec<_> = step.depends.iter().filter(|it| !is_open(it)).collect();
    html! {
        section class="box" aria-labelledby="head-waits" {
            h2 id="head-waits" { "Waits for" }
            @if !waits(shown) { p class="none" { "Nothing." } }
            @else {
                ul class="plain why" {
                    @for (sentence, on) in shown.waits_for.iter().zip(&shown.waits_on) {
                        li {
                            @match on {
                                Some(it) => a href=(links::step(&it.id)) { bdi { (words::named(step, (&it.plan, &it.number, &it.id), &it.title, &it.status)) } },
                                None => (links::in_sentence(sentence)),
                            }
                        }
                    }
                }
            }
            @if !closed.is_empty() || !step.depends_ranges.is_empty() {
                h2 { (if is_closed(shown) { "Dependencies" } else { "Closed dependencies" }) }
                ul class="plain" {
                    @for id in closed { li { (links::to(&id.to_string())) } }
                    @for it in &step.depends_ranges { li { (links::to(&it.first.to_string())) " to " (links::to(&it.last.to_string())) } }
                }
            }
            @if !shown.dependants.is_empty() {
                h2 { "Steps that wait for it" }
                ul class="plain" { @for id in &shown.dependants { li { (links::to(id)) } } }
            }
            @if !step.depends.is_empty() || !step.depends_ranges.is_empty() || !shown.dependants.is_empty() {
                p class="more-link" {
                    a href={(links::plan(&step.plan)) "?view=graph&around=" (overview::query(&step.id))} { "Its neighbours as a graph" }
                }
            }
        }
    }
}

fn about(shown: &ShownStep, now: Time) -> Markup {
    let step = &shown.step;
    html! {
        section class="box about" aria-labelledby="head-about" {
            h2 id="head-about" { "About" }
            dl {
                @if let Some(kind) = &step.kind { dt { "Type" } dd { (isolated(&words::kind(kind))) } }
                @if let Some(it) = &step.assignee { dt { "Assignee" } dd { (isolated(it)) } }
                @if let Some(claim) = &step.claim {
                    dt { "Claim" }
                    dd { (isolated(claim.by.as_deref().unwrap_or("unknown"))) @if let Some(at) = claim.at { ", " (words::ago(at, now)) } }
                }
                @if let Some(it) = &shown.confirmation {
                    dt { "Confirmed" } dd { (isolated(it.by.as_deref().unwrap_or("yes"))) @if let Some(at) = it.at { ", " (words::ago(at, now)) } }
                }
                @if !step.tags.is_empty() { dt { "Tags" } dd { (isolated(&step.tags.join(", "))) } }
                @if let Some(touches) = &step.touches {
                    dt { "Touches" } dd { ul class="plain" { @for it in touches { li { code { (one_line(it)) } } } } }
                }
                @if !step.verify.is_empty() {
                    dt { "Verify" } dd { ul class="plain" { @for it in &step.verify { li { code { (one_line(&it.run)) } } } } }
                }
                @if let Some(at) = step.created_at { dt { "Created" } dd { (words::ago(at, now)) " by " (isolated(&step.created_by)) } }
                @if let Some(at) = step.last_activity { dt { "Last change" } dd { (words::ago(at, now)) } }
                dt { "File" } dd { code class="path" { (one_line(&step.path)) } }
            }
            @if !shown.decisions.is_empty() {
                h2 { "Decisions" }
                ul class="plain" { @for it in &shown.decisions { li { a href={"/decisions#" (it.id)} { (isolated(&it.topic)) } } } }
            }
            @if !shown.problems.is_empty() {
                h2 { "Problems" }
                ul class="plain" { @for it in &shown.problems { li { (one_line(it["message"].as_str().unwrap_or_default())) } } }
            }
        }
    }
}
