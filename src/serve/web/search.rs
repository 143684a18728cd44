//! The search page, which searches the full text and the names of people.

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::extract::{Query, State};
use axum::response::{IntoResponse, Response};
use maud::{Markup, html};
use serde::Deserialize;

use super::layout::{Page, Place, Visit};
use super::memory::Memory;
use super::{Web, links, words};
use crate::api::context::Context;
use crate::api::error::Error;
use crate::index::{Kind, MATCH_END, MATCH_START};
use crate::ops::search::people::{self, Person};
use crate::ops::search::{self, Hit, SearchRequest};
use crate::page::look::Look;
use crate::page::text::{isolated, visible};
use crate::plan::time::Time;

const MOST: usize = 100;

/// The largest number of steps that are listed for a person.
const MOST_OF_PERSON: usize = 50;

/// The names of the people and agents in all steps of live plans.
pub(super) type Names = Memory<BTreeSet<String>>;

#[derive(Debug, Clone, Default, Deserialize)]
pub(super) struct SearchQuery {
    #[serde(default)]
    q: String,
    #[serde(default)]
    kind: String,
}

pub(super) async fn page(State(web): State<Web>, visit: Visit, Query(asked): Query<SearchQuery>) -> Response {
    let names = Arc::clone(&web.names);
    let shown = move |context: &Context| -> Result<_, Error> {
        let people = people_of(context, &names, &asked)?;
        let kind = (!asked.kind.is_empty()).then(|| asked.kind.clone());
        let request = SearchRequest { query: asked.q.clone(), kind, since: None, limit: MOST };
        let found = if asked.q.trim().is_empty() { None } else { Some(search::search(context, &request)?) };
        let main = main(&asked, &people, found.as_ref().map(|it| it.hits.as_slice()), context.now);
        Ok(visit.show(&Page { title: "Search", place: Place::Elsewhere, plan: None, main }))
    };
    web.app.ask(shown).await.unwrap_or_else(IntoResponse::into_response)
}

/// The people whose names match the query. The names are cached. While the cached names are valid, a search that matches no
/// name loads no plans.
fn people_of(context: &Context, names: &Names, asked: &SearchQuery) -> Result<Vec<Person>, Error> {
    if !asked.kind.is_empty() && asked.kind != Kind::Step.word() || asked.q.trim().is_empty() {
        return Ok(Vec::new());
    }
    let names = names.get(context, "", || people::names(context))?;
    let meant = people::meant(&asked.q, names.iter());
    if meant.is_empty() { Ok(Vec::new()) } else { people::steps_of(context, &meant, MOST_OF_PERSON) }
}

fn main(asked: &SearchQuery, people: &[Person], hits: Option<&[Hit]>, now: Time) -> Markup {
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
        @for it in people { (person(it, now)) }
        @match hits {
            None => p class="quiet" { "The search covers the titles and texts of plans, steps, decisions and insights, and the names of people." },
            Some([]) if people.is_empty() => p class="empty" { "Nothing was found." },
            Some([]) => p class="quiet" { "No text has these words." },
            Some(hits) => {
                @if !people.is_empty() { h2 class="texts" { "In texts" } }
                p class="quiet" { @if hits.len() == MOST { "The best " } (words::count(hits.len(), "hit")) }
                ul class="rows hits" { @for hit in hits { (row(hit)) } }
            }
        }
    }
}

/// The steps that name a person.
fn person(person: &Person, now: Time) -> Markup {
    html! {
        section class="person" {
            h2 { "Steps of " (isolated(&person.name)) " " span class="count" { (person.total) } }
            ul class="rows" {
                @for it in &person.steps {
                    li data-key={"w-" (it.step.id)} {
                        (words::mark(Look::of(&it.step)))
                        div class="what" {
                            a class="title" href=(links::step(&it.step.id)) { (isolated(&it.step.title)) }
                            div class="facts" {
                                span class="id" { (isolated(&it.step.id)) }
                                span { (it.roles.join(", ")) }
                                @if let Some(at) = it.at { (words::ago(at, now)) }
                            }
                        }
                    }
                }
            }
            @if person.total > person.steps.len() { p class="quiet" { "The first " (person.steps.len()) " of " (person.total) } }
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

/// A snippet of a text, in which the found words are marked.
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
