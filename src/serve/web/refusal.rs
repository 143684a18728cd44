//! The texts with which pages report refusals.
//!
//! The hints of operations name commands or routes, which cannot be used on a page. So the pages have their own hints.

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use maud::{Markup, html};
use serde_json::Value;

use super::layout::{bare, heading, html};
use super::links;
use crate::api::error::open_step;
use crate::serve::hints;
use crate::serve::http::problem::Problem;

/// A refusal by an operation or by the guard, as a page.
pub(super) fn page(problem: &Problem) -> Response {
    let way = html! { p { a href="/" { "To the overview" } } };
    as_page(problem, &html! { (sentence(problem)) (way) })
}

/// The same refusal as a notice, for a page that stays open.
pub(super) fn part(problem: &Problem) -> Response {
    as_part(problem, &sentence(problem))
}

pub(super) fn as_page(problem: &Problem, said: &Markup) -> Response {
    let title = heading(problem.status);
    (problem.status, bare(title, &html! { h1 { (title) } (said) })).into_response()
}

pub(super) fn as_part(problem: &Problem, said: &Markup) -> Response {
    let notice =
        html! { div class="notice refused" tabindex="-1" { div { (said) } (super::layout::close()) } };
    (problem.status, html(&notice)).into_response()
}

/// The sentence and the hint of a refusal.
pub(super) fn sentence(problem: &Problem) -> Markup {
    let hint = hint(problem);
    html! {
        p class="refusal" { (detail(problem)) }
        @if let Some(hint) = hint { p class="hint" { (links::in_sentence(&hint)) } }
    }
}

fn detail(problem: &Problem) -> Markup {
    let id =
        || html! { (links::to(problem.rest.details.get("id").and_then(Value::as_str).unwrap_or_default())) };
    match problem.code {
        "dependencies-open" => html! { (id()) " waits for " (open_steps(problem)) "." },
        "confirmation-needed" if problem.rest.details.contains_key("id") => {
            html! { (id()) " waits for a person’s confirmation." }
        }
        "confirmation-needed" => {
            html! { "Only a person can confirm, and these pages were not opened by a person." }
        }
        "file-changed" if problem.status == StatusCode::PRECONDITION_FAILED => {
            html! { "The file of " (id()) " was changed after this page had read it." }
        }
        // The part after the semicolon names a verb of the command line, so it is left out.
        "not-allowed" => {
            let is = problem.detail.split(';').next().unwrap_or_default();
            html! { (links::in_sentence(&is.replace(" in_progress", " in progress"))) "." }
        }
        _ => links::in_sentence(&problem.detail),
    }
}

/// The steps that the refused step waits for, each with its status.
fn open_steps(problem: &Problem) -> Markup {
    let open = problem.rest.details.get("open").and_then(Value::as_array).into_iter().flatten();
    html! {
        @for (nth, it) in open.filter_map(Value::as_str).enumerate() {
            @if nth > 0 { ", " }
            @match open_step(it) {
                (entry, "") => (links::in_sentence(entry)),
                (id, status) => { (links::to(id)) " " (crate::page::text::words(status.trim_start())) },
            }
        }
    }
}

fn hint(problem: &Problem) -> Option<String> {
    let own = match problem.code {
        "dependencies-open" if problem.detail.contains("does not exist") => {
            "One of them does not exist: correct `depends` in the step’s file."
        }
        "dependencies-open" => "First finish what it waits for.",
        "confirmation-needed" | "not-allowed" => return None,
        "claimed" => "The step belongs to that worker until the work is finished or released.",
        "steps-open" => "Finish or skip them first.",
        "later-change" => "Undo the later change first.",
        "file-changed" if problem.status == StatusCode::PRECONDITION_FAILED => {
            "Check what the file contains now, then try again."
        }
        _ => {
            let advice = problem.rest.advice.as_deref();
            return advice.map_or_else(|| problem.rest.hint.clone(), hints::on_page);
        }
    };
    Some(own.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::error::Error;

    /// The text of a refusal without the HTML tags.
    fn said(error: Error) -> String {
        let markup = sentence(&Problem::from(error)).into_string();
        let parts = markup.split('<').map(|it| it.split_once('>').map_or(it, |it| it.1));
        parts.collect::<Vec<_>>().concat()
    }

    #[test]
    fn refusals_name_no_options_commands_or_routes() {
        let text = |it: &str| it.to_owned();
        let open = vec![text("a:1 (in_progress)"), text("a:2 (pending)")];
        let conflict = |code, message: &str, hint: &str| Error::Conflict {
            code,
            message: text(message),
            hint: text(hint),
        };
        for (error, expected) in [
            (
                Error::DependenciesOpen { id: text("a:3"), open },
                "a:3 waits for a:1 (in progress), a:2 (pending).First finish what it waits for.",
            ),
            (
                Error::ConfirmationNeeded { id: text("a:3"), phase: None },
                "a:3 waits for a person’s confirmation.",
            ),
            (
                Error::Claimed { id: text("a:3"), by: text("codex") },
                "a:3 is claimed by codexThe step belongs to that worker until the work is finished or released.",
            ),
            (
                conflict(
                    "not-allowed",
                    "`a:1` is completed; `start` is not possible from this status",
                    "`planwatch reopen a:1` first",
                ),
                "a:1 is completed.",
            ),
            (
                conflict(
                    "steps-open",
                    "`a` has open steps: a:1 (pending)",
                    "finish or skip them, or use --force",
                ),
                "a has open steps: a:1 (pending)Finish or skip them first.",
            ),
            (
                Error::usage("the note is empty", "write what is to be noted"),
                "the note is emptywrite what is to be noted",
            ),
            (
                Error::failed(
                    "broken",
                    "it is broken",
                    "`planwatch check` shows where; correct the file, or use --force",
                ),
                "it is brokencorrect the file",
            ),
        ] {
            let said = said(error);
            assert_eq!(said, expected);
            assert!(!said.contains(['`']) && !said.contains("force") && !said.contains("/api"), "{said}");
        }
    }
}
