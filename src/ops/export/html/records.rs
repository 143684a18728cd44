//! Decisions and insights, as parts of a page.

use maud::{Markup, html};

use super::reach::{InText, Reach};
use crate::page::markdown::{self, Form, Tasks};
use crate::page::text::isolated;
use crate::page::timeline::shown_time;
use crate::plan::decision::Decision;
use crate::plan::insight::Insight;
use crate::plan::time::Time;

pub(super) fn decisions(all: &[Decision], reach: &Reach<'_>, names_place: bool) -> Markup {
    html! {
        @if !all.is_empty() {
            h2 #decisions { "Decisions" }
            @for (nth, it) in all.iter().enumerate() {
                div.together {
                    h3 { (isolated(&it.topic)) }
                    (origin(it.decided_at, it.by.as_deref()))
                    @if names_place { (about(it.step.as_ref().or(it.plan.as_ref()), reach)) }
                    (text(&it.decision, &format!("decision-{nth}."), 4, (reach, "_decisions")))
                    @if let Some(why) = &it.reasoning {
                        h4 { "Why" }
                        (text(why, &format!("reasoning-{nth}."), 5, (reach, "_decisions")))
                    }
                }
            }
        }
    }
}

pub(super) fn insights(all: &[Insight], reach: &Reach<'_>, names_place: bool) -> Markup {
    html! {
        @if !all.is_empty() {
            h2 #insights { "Insights" }
            @for (nth, it) in all.iter().enumerate() {
                div.together {
                    h3 { (isolated(&it.title)) }
                    (origin(it.at, it.by.as_deref()))
                    @if names_place { (about(it.plan.as_ref(), reach)) }
                    (text(&it.text, &format!("insight-{nth}."), 4, (reach, "_insights")))
                }
            }
        }
    }
}

/// The time and the author of a decision or an insight.
fn origin(at: Option<Time>, by: Option<&str>) -> Markup {
    html! {
        @if at.is_some() || by.is_some() {
            p.soft { @if let Some(at) = at { (shown_time(at)) " " } @if let Some(by) = by { "by " (isolated(by)) } }
        }
    }
}

/// The plan or step that a decision or an insight is about.
fn about(id: Option<&String>, reach: &Reach<'_>) -> Markup {
    html! { @if let Some(id) = id { p.soft { "On " (linked(id, reach)) } } }
}

/// A plan or step by its id, as a link if the page can link to it.
pub(super) fn linked(id: &str, reach: &Reach<'_>) -> Markup {
    let address = if id.contains(':') { reach.step(id) } else { reach.plan(id) };
    html! {
        @match address {
            Some(address) => { a href=(address) { (isolated(id)) } },
            None => (isolated(id)),
        }
    }
}

/// The text of a file in `directory`; nothing if the text is empty.
pub(super) fn text(
    body: &str,
    id_prefix: &str,
    top_heading: u8,
    (reach, directory): (&Reach<'_>, &str),
) -> Markup {
    let addresses = InText { reach, directory };
    let form = Form { id_prefix, top_heading, tasks: Tasks::Plain, addresses: &addresses };
    html! { @if !body.trim().is_empty() { div.text { (markdown::render(body, form)) } } }
}
