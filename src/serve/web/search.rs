//! Search in the full text.

use axum::extract::{Query, State};
use axum::response::{IntoResponse, Response};
use maud::{Markup, html};
use serde::Deserialize;

use super::layout::{Page, Place, Visit};
use super::{Web, links};
use crate::api::context::Context;
use crate::api::error::Error;
use crate::index::{Kind, MATCH_END, MATCH_START};
use crate::ops::search::{self, Hit, SearchRequest};
use crate::page::text::{isolated, visible};

const MOST: usize = 100;

#[derive(Debug, Clone, Default, Deserialize)]
pub(super) struct SearchQuery {
    #[serde(default)]
    q: String,
    #[serde(default)]
    kind: String,
}

pub(super) async fn page(State(web): State<Web>, visit: Visit, Query(asked): Query<SearchQuery>) -> Response {
    let shown = move |context: &Context| -> Result<_, Error> {
        let kind = (!asked.kind.is_empty()).then(|| asked.kind.clone());
        let request = SearchRequest { query: asked.q.clone(), kind, since: None, limit: MOST };
        let found = if asked.q.trim().is_empty() { None } else { Some(search::search(context, &request)?) };
        let main = main(&asked, found.as_ref().map(|it| it.hits.as_slice()));
        Ok(visit.show(&Page { title: "Search", place: Place::Elsewhere, plan: None, main }))
    };
    web.app.ask(shown).await.unwrap_or_else(IntoResponse::into_response)
}

fn main(asked: &SearchQuery, hits: Option<&[Hit]>) -> Markup {
    html! {
        h1 { "Search" }
        form class="filter wide" action="/search" id="filter" {
            input type="search" name="q" value=(asked.q) aria-label="Words" placeholder="Words, \"a phrase\", -without" maxlength="500";
            select name="kind" aria-label="What" {
                option value="" { "everything" }
                @for kind in Kind::ALL { option value=(kind.word()) selected[kind.word() == asked.kind] { (kind.word()) "s" } }
            }
            button class="primary" { "Search" }
        }
        @match hits {
            None => p class="quiet" { "Titles and texts of plans, steps, decisions and insights are searched." },
            Some([]) => p class="empty" { "Nothing was found." },
            Some(hits) => {
                p class="quiet" { (hits.len()) @if hits.len() == MOST { " best" } " hits" }
                ul class="rows hits" { @for hit in hits { (row(hit)) } }
            }
        }
    }
}

fn row(hit: &Hit) -> Markup {
    let path = match hit.kind {
        Kind::Step => links::step(&hit.id),
        Kind::Plan => links::plan(&hit.id),
        Kind::Decision => format!("/decisions#{}", hit.id),
        Kind::Insight => format!("/insights#{}", hit.id),
    };
    html! {
        li {
            span class="kind" { (hit.kind.word()) }
            div class="what" {
                a class="title" href=(path) { (isolated(&hit.title)) }
                p class="snippet" { bdi { (snippet(&hit.snippet)) } }
                div class="facts" {
                    span class="id" { (isolated(&hit.id)) }
                    @if hit.is_archived { span class="fact" { "archived" } }
                }
            }
        }
    }
}

/// The text with the words that were found marked.
fn snippet(text: &str) -> Markup {
    let parts = text.split(MATCH_START).enumerate();
    html! {
        @for (nth, part) in parts {
            @if nth == 0 { (visible(part)) }
            @else if let Some((found, rest)) = part.split_once(MATCH_END) { mark { (visible(found)) } (visible(rest)) }
            @else { (visible(part)) }
        }
    }
}
