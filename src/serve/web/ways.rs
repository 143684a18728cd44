//! The buttons that a page offers after an action was refused.

use axum::http::StatusCode;
use axum::response::Response;
use maud::{Markup, html};
use serde_json::Value;

use super::actions::Submission;
use super::refusal::{as_page, as_part, sentence};
use super::session::Session;
use super::sign_in::own_path;
use crate::page::text::isolated;
use crate::serve::http::problem::Problem;

/// The actions that can be forced. Forcing an action is recorded.
const FORCED: [&str; 12] = [
    "start", "done", "fail", "block", "skip", "reopen", "claim", "release", "attempt", "renumber", "undo",
    "set",
];

/// The answer to an action that was refused.
pub(super) fn of_action(session: &Session, asked: &Submission, problem: &Problem, is_part: bool) -> Response {
    let said = html! { (sentence(problem)) (ways(session, asked, problem)) };
    if is_part {
        return as_part(problem, &said);
    }
    let back = own_path(Some(asked.text("back").to_owned()));
    as_page(problem, &html! { (said) p { a href=(back) { "Back to the page" } } })
}

/// The buttons for what can be done instead of the refused action.
fn ways(session: &Session, asked: &Submission, problem: &Problem) -> Markup {
    if session.opener.is_read_only {
        return html! {};
    }
    let act = asked.text("do");
    let can_force = FORCED.contains(&act) && problem.status == StatusCode::CONFLICT;
    let anyway = |label: &str| html! { (again(session, asked, act, label, true)) };
    let ways = match problem.code {
        "confirmation-needed" if session.opener.is_person && problem.rest.details.contains_key("id") => {
            confirm(session, asked, problem)
        }
        "confirmation-needed" if FORCED.contains(&act) && session.opener.is_person => {
            anyway("Do it without a confirmation")
        }
        "dependencies-open" if can_force => anyway("Do it anyway"),
        "claimed" if act == "claim" => anyway("Take it over"),
        "claimed" if can_force => anyway("Do it anyway"),
        "steps-open" if can_force => anyway("Complete it anyway"),
        "not-allowed" if problem.detail.contains("is in_progress") => {
            html! { (again(session, asked, "release", "Release it first", false)) }
        }
        "not-allowed" if can_force => html! { (again(session, asked, "reopen", "Reopen it first", false)) },
        "nothing-to-undo" | "later-change" | "not-recorded" | "file-changed" if act == "undo" => {
            html! { a class="button" href="/undo" { "Show the changes that can be undone" } }
        }
        "page-token" => {
            html! { a class="button" href=(own_path(Some(asked.text("back").to_owned()))) { "Load the page again" } }
        }
        _ => return html! {},
    };
    html! { div class="buttons ways" { (ways) } }
}

/// A form with fields of the refused form, and a button for the action `act`.
fn again(session: &Session, asked: &Submission, act: &str, label: &str, is_forced: bool) -> Markup {
    let fields = asked.fields().filter(|(name, _)| !["page", "do", "force"].contains(name));
    // A forced action is the refused action with the same fields. Any other action gets only the id and the address to
    // return to.
    let fields = fields.filter(|(name, _)| is_forced || ["id", "back"].contains(name));
    html! {
        form method="post" action="/do" data-act="again" data-again[is_forced] {
            input type="hidden" name="page" value=(session.page_token);
            @for (name, value) in fields { input type="hidden" name=(name) value=(value); }
            @if is_forced { input type="hidden" name="force" value="true"; }
            button name="do" value=(act) title=[is_forced.then_some("It is recorded that this was forced")] { (label) }
        }
        @if is_forced { span class="quiet" { "This is recorded as forced." } }
    }
}

/// A form with which a person gives the missing confirmation, that of the step or of its phase.
fn confirm(session: &Session, asked: &Submission, problem: &Problem) -> Markup {
    let text = |name: &str| problem.rest.details.get(name).and_then(Value::as_str);
    let id = text("id").unwrap_or_default();
    let (of, phase) = match (text("phase"), id.rsplit_once(':')) {
        (Some(phase), Some((plan, _))) => (plan, Some(phase)),
        _ => (id, None),
    };
    html! {
        form method="post" action="/do" data-act="confirm" {
            input type="hidden" name="page" value=(session.page_token);
            input type="hidden" name="back" value=(asked.text("back"));
            input type="hidden" name="id" value=(of);
            @if let Some(phase) = phase { input type="hidden" name="phase" value=(phase); }
            button name="do" value="confirm" {
                @match phase { Some(phase) => { "Confirm the phase " (isolated(phase)) }, None => "Confirm it" }
            }
        }
    }
}
