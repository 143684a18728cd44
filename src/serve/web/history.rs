//! The history of a step, from the commits of the repository and from the changes that are not committed yet.

use maud::{Markup, html};

use super::words;
use crate::api::context::Context;
use crate::ops::log::{self, LogEvent, LogRequest};
use crate::page::text::{clip, isolated, one_line, visible};
use crate::plan::history::What;
use crate::plan::time::Time;

/// The largest number of events on a step's page.
const MOST: usize = 30;

/// The history of a step in git. Attempts and notes are left out, because the page shows them from the step's file. Empty
/// if nothing else happened, or if the history cannot be read, for example without a git repository.
pub(super) fn of_step(context: &Context, id: &str) -> Markup {
    let shown = What::ALL.into_iter().filter(|it| !matches!(it, What::Attempt | What::Note));
    let what = shown.map(|it| it.word().to_owned()).collect();
    let request = LogRequest { id: Some(id.to_owned()), what, limit: Some(MOST), ..LogRequest::default() };
    let Ok(report) = log::log(context, &request) else { return html! {} };
    html! {
        @if !report.events.is_empty() {
            section aria-labelledby="head-history" class="history" id="history" {
                h2 id="head-history" { "History in git " span class="count" { (report.events.len()) @if report.has_more { "+" } } }
                ol class="log" { @for it in &report.events { (event(it, context.now)) } }
                @if report.has_more {
                    p class="quiet" { "Older changes: " code { "planwatch log " (one_line(id)) } }
                }
            }
        }
    }
}

fn event(it: &LogEvent, now: Time) -> Markup {
    let who = it.by.as_ref().or(it.author.as_ref());
    html! {
        li {
            p class="facts" {
                strong { (isolated(&clip(&it.words(), 120))) }
                @if let Some(who) = who { span class="who" { (isolated(who)) } }
                @if let Some(at) = it.at { (words::ago(at, now)) }
                @match &it.commit {
                    Some(commit) => code title=(one_line(it.subject.as_deref().unwrap_or_default())) { (commit.get(..10).unwrap_or(commit)) },
                    None => span class="fact" { "not committed" },
                }
            }
            @if let Some(subject) = &it.subject { p class="quiet subject" { bdi { (visible(subject)) } } }
        }
    }
}
