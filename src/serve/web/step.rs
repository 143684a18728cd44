//! The page of a step: its text with tasks, what can be done with it, what was tried, and what it waits for.

use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use maud::{Markup, html};
use serde_json::Value;

use super::layout::{Page, Place, Visit};
use super::{Web, forms, links, words};
use crate::api::context::Context;
use crate::api::views::Awaited;
use crate::ops::show::{self, ShowReport, ShowRequest, ShownStep};
use crate::page::look::Look;
use crate::page::markdown::{self, Form, Tasks};
use crate::page::text::{isolated, one_line, visible};
use crate::plan::records::{Attempt, Note};
use crate::plan::time::Time;
use crate::serve::http::extract::step_named;
use crate::serve::http::problem::Problem;
use crate::text::front_matter;
use crate::text::markdown::outline;

/// A step with the text of its file as it is now.
pub(super) struct Read {
    pub(super) shown: Box<ShownStep>,
    /// Below the title.
    pub(super) text: String,
    /// The line of the file at which the text begins, from 1.
    first_line: usize,
}

pub(super) fn read(context: &Context, id: &str) -> Result<Read, Problem> {
    let request = ShowRequest { id: step_named(id)?, ..ShowRequest::default() };
    let ShowReport::Step(shown) = show::show(context, &request)? else { return Err(Problem::internal()) };
    let root = format!("{}/", context.root_name());
    let path = shown.step.path.strip_prefix(&root).unwrap_or(&shown.step.path);
    let file = context.plans.read(std::path::Path::new(path)).map(|it| it.bytes).unwrap_or_default();
    let start = front_matter::split(&file).body_start();
    // A step that is only a line of the list has no file.
    let body = if file.is_empty() {
        shown.body.clone()
    } else {
        String::from_utf8_lossy(&file[start..]).into_owned()
    };
    let n_above = file[..start].iter().filter(|it| **it == b'\n').count();
    let n_title = title_lines(&body);
    let text = body.split_inclusive('\n').skip(n_title).collect();
    Ok(Read { shown, text, first_line: n_above + n_title + 1 })
}

/// The lines up to the heading that is the title, if the text begins with one.
pub(super) fn title_lines(body: &str) -> usize {
    let blank = body.lines().take_while(|it| it.trim().is_empty()).count();
    let has_title = body.lines().nth(blank).is_some_and(|it| it.starts_with("# "));
    if has_title { blank + 1 } else { 0 }
}

pub(super) async fn page(State(web): State<Web>, Path(id): Path<String>, visit: Visit) -> Response {
    let shown = move |context: &Context| -> Result<_, Problem> {
        let read = read(context, &id)?;
        let main = main(&visit, &read, context.now);
        let step = &read.shown.step;
        let title = format!("{} {}", step.number, step.title);
        Ok(visit.show(&Page { title: &title, place: Place::Elsewhere, plan: Some(&step.plan), main }))
    };
    web.app.ask(shown).await.unwrap_or_else(IntoResponse::into_response)
}

fn main(visit: &Visit, read: &Read, now: Time) -> Markup {
    let (shown, step) = (&*read.shown, &read.shown.step);
    html! {
        div class="head" {
            p class="crumbs" {
                a href="/" { "Plans" } " / " (links::to(&step.plan)) " / " span class="id" { (step.number) }
            }
            h1 { (isolated(&step.title)) }
            div class="facts" { (words::status(Look::of(step))) (words::facts(step)) }
        }
        div class="columns" {
            div {
                (text(visit, read))
                (attempts(&step.attempts, now))
                (notes(&step.notes, now))
            }
            aside {
                @if !visit.is_read_only() {
                    section aria-label="Actions" class="box" {
                        @if shown.is_gated && shown.confirmation.is_none() { (forms::gate(visit, step)) }
                        (forms::update(visit, step))
                        (forms::more(visit, step))
                    }
                }
                (obstacles(shown))
                (about(shown, now))
            }
        }
    }
}

fn text(visit: &Visit, read: &Read) -> Markup {
    let step = &read.shown.step;
    let addresses = links::InText { directory: &step.plan, known: None };
    let tasks = Tasks::Located { first_line: read.first_line };
    let form = Form { id_prefix: "doc-", top_heading: 1, tasks, addresses: &addresses };
    html! {
        section class="text" aria-label="Text" {
            @if read.text.trim().is_empty() { p class="none" { "This step has no text yet." } }
            @else {
                article class="prose text" id="text" data-tick=[(!visit.is_read_only()).then_some(&step.id)]
                    data-page=(visit.session.page_token) { (markdown::render(&read.text, form)) }
            }
            @if !visit.is_read_only() {
                p class="text-actions" {
                    a class="button" href={(links::step(&step.id)) "/edit"} id="edit" { "Edit the text" }
                    button type="button" class="script" data-copy=(step.path) { "Copy the path for an editor" }
                }
                noscript { (ticks(visit, read)) }
            }
        }
    }
}

/// The tasks as forms, for browsers in which the boxes of the text do nothing.
fn ticks(visit: &Visit, read: &Read) -> Markup {
    let tasks = outline(&read.text).tasks;
    let lines = tasks.iter().map(|it| {
        let nth = read.text[..it.at].matches('\n').count();
        (nth, read.text.lines().nth(nth).unwrap_or_default(), it.ticked)
    });
    html! {
        @for (nth, line, ticked) in lines {
            form class="inline tick" method="post" action="/do" {
                (forms::hidden(visit, "tick", &read.shown.step.id))
                input type="hidden" name="line" value=(read.first_line + nth);
                input type="hidden" name="hash" value=(markdown::line_hash(line));
                input type="hidden" name="ticked" value=(!ticked);
                button { (if ticked { "Clear" } else { "Tick" }) ": " (one_line(line.trim_start_matches(['-', '*', '+', ' ']))) }
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
                                strong { (isolated(it.outcome.as_deref().unwrap_or("attempt"))) }
                                @if let Some(by) = &it.by { span class="who" { (isolated(by)) } }
                                @if let Some(at) = it.at { (words::ago(at, now)) }
                                (more(it))
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
fn more(attempt: &Attempt) -> Markup {
    let text = |it: &Value| it.as_str().map_or_else(|| it.to_string(), str::to_owned);
    html! {
        @for (key, value) in attempt.more.iter().filter(|it| it.0 != "claim").take(6) {
            span class="fact" { (one_line(key)) " " (isolated(&crate::page::text::clip(&text(value), 60))) }
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

fn obstacles(shown: &ShownStep) -> Markup {
    let step = &shown.step;
    html! {
        section class="box" aria-labelledby="head-waits" {
            h2 id="head-waits" { "Waits for" }
            @if step.depends.is_empty() && shown.waits_for.is_empty() { p class="none" { "Nothing." } }
            @for why in &shown.waits_for { p class="why" { (one_line(why)) } }
            @if !step.depends.is_empty() {
                ul class="plain" {
                    @for id in &step.depends {
                        li { (links::to(&id.to_string())) @if step.waits_for.contains(&Awaited::Step(id.clone())) { " " span class="fact warn" { "open" } } }
                    }
                }
            }
            @if !shown.dependants.is_empty() {
                h2 { "Steps that wait for it" }
                ul class="plain" { @for id in &shown.dependants { li { (links::to(id)) } } }
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
                @if let Some(kind) = &step.kind { dt { "Type" } dd { (isolated(kind)) } }
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
