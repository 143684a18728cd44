//! The page of the changes in the undo log, and the notice for the key `u`, which offers to undo the newest change that can
//! be undone. A change can be undone until its files change again, even if the notice about it is no longer shown.

use std::path::Path;

use axum::extract::{Query, State};
use axum::response::{IntoResponse, Response};
use maud::{Markup, html};
use serde::Deserialize;

use super::layout::{self, Page, Place, Visit};
use super::{Web, forms, links, words};
use crate::api::context::Context;
use crate::api::error::Error;
use crate::ops::undo::{self, UndoItem};
use crate::page::address::{self, Target};
use crate::page::text::{isolated, one_line};
use crate::plan::time::Time;
use crate::text::yaml::{Tree, View};

/// The largest number of changes on the page.
const MOST: usize = 100;

#[derive(Debug, Clone, Default, Deserialize)]
pub(super) struct UndoQuery {
    /// If present, the answer is only the notice for the key `u`; see [`last`].
    last: Option<String>,
}

pub(super) async fn page(State(web): State<Web>, visit: Visit, Query(asked): Query<UndoQuery>) -> Response {
    let shown = move |context: &Context| -> Result<_, Error> {
        let changes = undo::undo_list(context);
        if asked.last.is_some() {
            return Ok(layout::html(&last(context, &visit, &changes)));
        }
        let main = main(context, &visit, &changes);
        Ok(visit.show(&Page { title: "Undo", place: Place::Elsewhere, plan: None, main }))
    };
    web.app.ask(shown).await.unwrap_or_else(IntoResponse::into_response)
}

/// Asks whether to undo the newest change that can be undone. If there is none, says why.
fn last(context: &Context, visit: &Visit, changes: &[UndoItem]) -> Markup {
    let possible = changes.iter().find(|it| it.blocked.is_none()).filter(|_| !visit.is_read_only());
    html! {
        div class="notice" tabindex="-1" {
            @match (possible, changes.first()) {
                _ if visit.is_read_only() => p { "These pages are read-only." },
                (Some(it), _) => {
                    p { "Undo this? " (change(context, it)) ", " (at(it, context.now)) "." }
                    (button(visit, it))
                }
                (None, Some(it)) => p { "Nothing can be undone. The last change was: " (change(context, it)) ". But " (why_not(it)) "." },
                (None, None) => p { "There is nothing to undo." },
            }
            (layout::close())
        }
    }
}

fn main(context: &Context, visit: &Visit, changes: &[UndoItem]) -> Markup {
    html! {
        h1 { "Undo" }
        p class="quiet below-filter" { "Changes that were made with planwatch, the last one first. A change can be undone until its files are changed again." }
        @if changes.is_empty() { p class="empty" { "There is nothing to undo." } }
        ul class="rows undo" {
            @for it in changes.iter().take(MOST) {
                li data-key={"u-" (it.id)} {
                    div class="what" {
                        p { (change(context, it)) }
                        p class="facts" { (at(it, context.now)) @if it.blocked.is_some() { span class="fact" { (why_not(it)) } } }
                    }
                    @if it.blocked.is_none() && !visit.is_read_only() { (button(visit, it)) }
                }
            }
        }
    }
}

fn button(visit: &Visit, change: &UndoItem) -> Markup {
    html! {
        form class="inline" method="post" action="/do" data-act="undo" {
            (forms::hidden(visit, "undo", &change.id))
            button { "Undo" }
        }
    }
}

fn at(change: &UndoItem, now: Time) -> Markup {
    html! { @if let Ok(at) = change.at.parse() { (words::ago(at, now)) } }
}

/// A sentence such as `codex completed feature-auth:1`. If the first file belongs to neither a step nor a plan, its path is
/// shown instead of the id.
fn change(context: &Context, change: &UndoItem) -> Markup {
    if change.paths.is_empty() {
        return html! { "a change without a record" };
    }
    let path = inside(context, change);
    let more = change.paths.len().saturating_sub(1);
    html! {
        @match author(context, change) {
            Some(by) => { strong { (isolated(&by)) } " " (one_line(&undo::done_words(&change.verb))) " " }
            None => { "“" (one_line(&change.verb)) "” of " }
        }
        @match address::read("", &path) {
            Some(Target::Step(id)) => (links::to(&id.to_string())),
            Some(Target::Plan(id)) => (links::to(id.as_str())),
            _ => code { (one_line(&path)) },
        }
        @if more > 0 { " and " (words::count(more, "more file")) }
    }
}

/// The path of the first file, relative to the plans directory.
fn inside(context: &Context, change: &UndoItem) -> String {
    let path = change.paths.first().map(String::as_str).unwrap_or_default();
    let root = format!("{}/", context.root_name());
    path.strip_prefix(&root).unwrap_or(path).to_owned()
}

/// The author of a change: the author that the file records for the time of the change, or else the user who ran the
/// program.
fn author(context: &Context, change: &UndoItem) -> Option<String> {
    let recorded = || {
        let at = change.at.parse::<Time>().ok()?.whole_seconds();
        let bytes = context.plans.read(Path::new(&inside(context, change))).ok()?.bytes;
        let tree = Tree::of_file(&bytes)?;
        let root = tree.root();
        let lists = ["attempts", "notes", "confirmations"].into_iter().filter_map(|it| root.get(it));
        let single = ["claim", "confirmed"].into_iter().filter_map(|it| root.get(it));
        let is_of = |it: &View<'_>| {
            let recorded = it.get("at").and_then(|it| it.text()?.parse::<Time>().ok());
            recorded.is_some_and(|it| it.whole_seconds() == at)
        };
        let found = lists.flat_map(|it| it.items()).chain(single).find(is_of)?;
        found.get("by").and_then(|it| it.text().map(|it| it.to_string()))
    };
    recorded().or_else(|| Some(change.by.clone())).filter(|it| !it.is_empty())
}

fn why_not(change: &UndoItem) -> &'static str {
    match change.blocked.as_ref().map(|it| it.code) {
        Some("later-change") => "a later change has to be undone first",
        Some("file-changed") => "its file has changed since",
        Some("not-recorded") => "it could not be recorded when it was made",
        _ => "the earlier version is no longer stored",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::undo::Blocked;

    #[test]
    fn the_reason_is_that_of_the_code() {
        let blocked = |code| UndoItem {
            id: "1".to_owned(),
            verb: String::new(),
            at: String::new(),
            paths: Vec::new(),
            blocked: Some(Blocked { code, path: None, by: None }),
            by: String::new(),
            of: None,
        };
        for (code, words) in [
            ("later-change", "undone first"),
            ("file-changed", "has changed since"),
            ("not-recorded", "could not be recorded"),
            ("not-found", "no longer stored"),
        ] {
            assert!(why_not(&blocked(code)).contains(words), "{code}");
        }
    }
}
