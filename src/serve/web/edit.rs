//! Editing the text of a step: saved only if the file is still the one that was shown, and no version is lost.

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use maud::{Markup, html};

use super::actions::Asked;
use super::layout::{self, Page, Place, Visit};
use super::session::Session;
use super::step::{self, Read};
use super::{Web, forms, links};
use crate::api::context::Context;
use crate::page::text::isolated;
use crate::serve::http::problem::Problem;

pub(super) async fn page(State(web): State<Web>, Path(id): Path<String>, visit: Visit) -> Response {
    let visit = Visit { here: links::step(&id), ..visit };
    let shown = move |context: &Context| -> Result<_, Problem> {
        if visit.is_read_only() {
            let detail = "these pages are only for reading";
            return Err(Problem::new(StatusCode::FORBIDDEN, "read-only", detail));
        }
        let read = step::read(context, &id)?;
        let text = read.text.trim_matches('\n').to_owned();
        Ok(shown(&visit, &read, &main(&visit, &read, &text, &html! {})))
    };
    web.app.ask(shown).await.unwrap_or_else(IntoResponse::into_response)
}

fn shown(visit: &Visit, read: &Read, main: &Markup) -> Response {
    let step = &read.shown.step;
    let title = format!("Edit {} {}", step.number, step.title);
    visit.show(&Page { title: &title, place: Place::Elsewhere, plan: Some(&step.plan), main: main.clone() })
}

/// The form with a text; `above` says why it was not saved.
fn main(visit: &Visit, read: &Read, text: &str, above: &Markup) -> Markup {
    let step = &read.shown.step;
    html! {
        div class="head" {
            p class="crumbs" {
                a href="/" { "Plans" } " / " (links::to(&step.plan)) " / " a href=(links::step(&step.id)) { (step.number) }
            }
            h1 { "Edit: " (isolated(&step.title)) }
        }
        (above)
        form class="stack editor" method="post" action="/do" data-act="text" data-keep="" data-full="" id="editor" {
            (forms::hidden(visit, "text", &step.id))
            input type="hidden" name="etag" data-frozen="" value=(step.etag.as_deref().unwrap_or_default());
            label for="editor-text" { "Text below the title " span class="quiet" { "(Markdown)" } }
            // Browsers drop the first line break of a text area.
            textarea id="editor-text" name="text" rows="24" spellcheck="true" { "\n" (text) }
            div class="buttons" {
                button class="primary" { "Save" }
                a class="button" href=(links::step(&step.id)) { "Back without saving" }
            }
        }
    }
}

/// The answer when a text was not saved: it is shown again, beside the text of the file if that changed meanwhile.
pub(super) async fn not_saved(web: &Web, session: Session, asked: &Asked, problem: Problem) -> Response {
    let (status, id) = (problem.status, asked.text("id").to_owned());
    let visit = Visit { session, here: links::step(&id), is_part: false, notice: None };
    let text = asked.text("text").replace("\r\n", "\n");
    let is_changed = problem.code == "file-changed";
    let shown = move |context: &Context| -> Result<_, Problem> {
        let read = step::read(context, &id)?;
        let above = html! {
            div class="banner warn" {
                (layout::sentence(&problem))
                @if is_changed {
                    p { "Your text is in the field below and not saved yet. The file is beside it as it is now: take over what you need, then save." }
                }
            }
            @if is_changed {
                section class="theirs" aria-labelledby="head-theirs" {
                    h2 id="head-theirs" { "The file now" }
                    pre tabindex="0" { code { (read.text.trim_matches('\n')) } }
                }
                h2 { "Your text" }
            }
        };
        Ok(shown(&visit, &read, &main(&visit, &read, &text, &above)))
    };
    match web.app.ask(shown).await {
        Ok(response) => (status, response).into_response(),
        Err(problem) => problem.into_response(),
    }
}
