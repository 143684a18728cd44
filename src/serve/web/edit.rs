//! Edits the text of a step or plan. The text is saved only if the file has not changed since it was shown, so that no
//! version is lost.

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use maud::{Markup, html};

use super::actions::Submission;
use super::layout::{Page, Place, Visit};
use super::session::Session;
use super::text::FileText;
use super::{Web, forms, links, plan, refusal, step};
use crate::api::context::Context;
use crate::page::text::{isolated, visible};
use crate::serve::http::problem::Problem;
use crate::text::diff::{self, DiffLine, LineKind};

/// The step or plan whose text is edited. Its text is the part of the file below the title.
struct Edited {
    id: String,
    plan: String,
    title: String,
    /// The hash of the file that contains the text; empty if there is no file.
    etag: String,
    file: FileText,
}

impl Edited {
    fn read(context: &Context, id: &str) -> Result<Self, Problem> {
        if id.contains(':') {
            let read = step::read(context, id)?;
            let of = read.shown.step;
            let title = format!("{} {}", of.number, of.title);
            Ok(Self { id: of.id, plan: of.plan, title, etag: of.etag.unwrap_or_default(), file: read.file })
        } else {
            let read = plan::read(context, id)?;
            let of = read.shown.plan;
            Ok(Self {
                id: of.id.clone(),
                plan: of.id,
                title: of.title,
                etag: of.etag.unwrap_or_default(),
                file: read.file,
            })
        }
    }

    /// The address of the page that shows the text.
    fn page(&self) -> String {
        page_of(&self.id)
    }
}

fn page_of(id: &str) -> String {
    if id.contains(':') { links::step(id) } else { format!("{}?view=text", links::plan(id)) }
}

pub(super) async fn page(State(web): State<Web>, Path(id): Path<String>, visit: Visit) -> Response {
    let visit = Visit { here: page_of(&id), ..visit };
    let shown = move |context: &Context| -> Result<_, Problem> {
        if visit.is_read_only() {
            let detail = "these pages are read-only";
            return Err(Problem::new(StatusCode::FORBIDDEN, "read-only", detail));
        }
        let edited = Edited::read(context, &id)?;
        Ok(shown(&visit, &edited, main(&visit, &edited, edited.file.edited(), &html! {})))
    };
    web.app.ask(shown).await.unwrap_or_else(IntoResponse::into_response)
}

fn shown(visit: &Visit, edited: &Edited, main: Markup) -> Response {
    let title = format!("Edit {}", edited.title);
    visit.show(&Page { title: &title, place: Place::Elsewhere, plan: Some(&edited.plan), main })
}

/// The form with a text. If a save was refused, `above` says why.
fn main(visit: &Visit, edited: &Edited, text: &str, above: &Markup) -> Markup {
    let here = edited.page();
    html! {
        div class="head" {
            p class="crumbs" {
                a href="/" { "Plans" } " / " (links::to(&edited.plan))
                @if let Some((_, number)) = edited.id.rsplit_once(':') { " / " a href=(here) { (number) } }
            }
            h1 { "Edit: " (isolated(&edited.title)) }
        }
        (above)
        form class="stack editor" method="post" action="/do" data-act="text" data-keep="" data-full="" id="editor" {
            (forms::hidden(visit, "text", &edited.id))
            input type="hidden" name="etag" data-frozen="" value=(edited.etag);
            label for="editor-text" { "Text below the title " span class="quiet" { "(Markdown)" } }
            p class="file-changed warn" role="status" hidden {
                "The file has changed since you began. Your text is kept; when you save, both versions are shown. "
                a href={(here) "/edit"} { "Read the file again without your changes" }
            }
            // Browsers drop the first line break of a text area, so an extra one is added.
            textarea id="editor-text" name="text" rows="24" spellcheck="true" autofocus { "\n" (text) }
            div class="buttons" {
                button class="primary" { "Save" }
                a class="button" href=(here) { "Back without saving" }
            }
        }
    }
}

/// The lines in which the file differs from a person's text, with the lines around them.
fn differing(own: &str, file: &str) -> Markup {
    let parts = |it: &DiffLine| {
        html! { @for (differs, text) in &it.parts { @if *differs { mark { (visible(text)) } } @else { (visible(text)) } } "\n" }
    };
    html! {
        @for (nth, it) in diff::lines(own, file).iter().enumerate() {
            @match it.kind {
                LineKind::Head => { @if nth > 0 { "…\n" } }
                LineKind::Same => { "  " (parts(it)) }
                LineKind::Removed => { del { "− " (parts(it)) } }
                LineKind::Added => { ins { "+ " (parts(it)) } }
            }
        }
    }
}

/// The answer if a text was not saved. It shows that text again and, if the file changed meanwhile, also the file's text.
pub(super) async fn not_saved(web: &Web, session: Session, asked: &Submission, problem: Problem) -> Response {
    let (status, id) = (problem.status, asked.text("id").to_owned());
    let visit = Visit { session, here: page_of(&id), is_part: false, notice: None };
    let text = asked.text("text").replace("\r\n", "\n");
    let is_changed = problem.code == "file-changed";
    let shown = move |context: &Context| -> Result<_, Problem> {
        let edited = Edited::read(context, &id)?;
        let above = html! {
            div class="banner warn" {
                (refusal::sentence(&problem))
                @if is_changed {
                    p { "Your text is in the field below and not saved yet. The current file is shown too: copy what you need, then save." }
                }
            }
            @if is_changed {
                section class="theirs" aria-labelledby="head-differs" {
                    h2 id="head-differs" { "What differs" }
                    p class="quiet" { "Lines with + are only in the file, lines with − only in your text." }
                    pre tabindex="0" { (differing(&text, edited.file.edited())) }
                }
                section class="theirs" aria-labelledby="head-theirs" {
                    h2 id="head-theirs" { "The file now" }
                    pre tabindex="0" { code { (visible(edited.file.edited())) } }
                }
                h2 { "Your text" }
            }
        };
        Ok(shown(&visit, &edited, main(&visit, &edited, &text, &above)))
    };
    match web.app.ask(shown).await {
        Ok(response) => (status, response).into_response(),
        Err(problem) => problem.into_response(),
    }
}
