//! Signing in: exchanges a one-time code, or the API token, for a session.

use axum::Extension;
use axum::Form;
use axum::extract::{Query, State};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use maud::html;
use serde::Deserialize;

use super::session::{Exchanged, Session};
use super::{Web, assets, guard, layout};
use crate::api::error::Error;
use crate::serve::http::problem::Problem;
use crate::serve::ipc::protocol::Opener;

/// A redirect to another page, after a change, a sign-in or a sign-out.
#[derive(Debug)]
pub(super) struct Redirect {
    pub(super) to: String,
    pub(super) cookie: Option<HeaderValue>,
}

#[derive(Debug, Deserialize)]
pub(super) struct ByCode {
    code: Option<String>,
    to: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(super) struct ByToken {
    token: String,
    to: Option<String>,
}

/// Returns the path if it leads to a page of this server, otherwise `/`. Such a path begins with exactly one slash; after
/// two slashes a browser expects a host.
pub(super) fn own_path(path: Option<String>) -> String {
    let is_own = |it: &String| {
        it.starts_with('/')
            && !it.starts_with("//")
            && it.bytes().all(|it| it.is_ascii_graphic() && it != b'\\')
    };
    path.filter(is_own).unwrap_or_else(|| "/".to_owned())
}

pub(super) async fn by_code(State(web): State<Web>, Query(asked): Query<ByCode>) -> Response {
    let Some(code) = asked.code else { return needed(&web, false) };
    match web.sessions.exchange(&code) {
        Exchanged::Session(value) => {
            Redirect { to: own_path(asked.to), cookie: guard::cookie(&web, &value) }.into_response()
        }
        Exchanged::Invalid => {
            let detail = "this address was used already, or is older than a minute";
            let problem = Problem::new(StatusCode::FORBIDDEN, "code-invalid", detail);
            problem.hint("`planwatch browser` opens a new one").into_response()
        }
    }
}

/// Signs in with the API token, which was sent with a form. The token already gives access to the whole API.
pub(super) async fn by_token(State(web): State<Web>, Form(asked): Form<ByToken>) -> Response {
    let is_right = web.app.token.as_ref().is_some_and(|it| it.is(asked.token.trim().as_bytes()));
    if !is_right {
        let problem =
            Problem::new(StatusCode::FORBIDDEN, "token-wrong", "this is not the token of these plans");
        return problem.hint("`planwatch token` prints it").into_response();
    }
    match web.app.ask(|context| Ok::<_, Error>(context.by.clone())).await {
        Ok(by) => {
            let opener = Opener { by, is_read_only: false, is_person: true };
            let begun = web.sessions.begin(opener);
            let cookie = begun.and_then(|it| guard::cookie(&web, &it));
            Redirect { to: own_path(asked.to), cookie }.into_response()
        }
        Err(problem) => problem.into_response(),
    }
}

#[derive(Debug, Deserialize)]
pub(super) struct SignOut {
    page: String,
}

pub(super) async fn sign_out(
    State(web): State<Web>,
    Extension(session): Extension<Session>,
    Form(asked): Form<SignOut>,
) -> Response {
    if session.is_of_page(&asked.page) {
        web.sessions.end(&session);
    }
    Redirect { to: "/".to_owned(), cookie: guard::no_cookie(&web) }.into_response()
}

/// The page for a browser that is not signed in; the script gets a status and no page.
pub(super) fn needed(web: &Web, is_part: bool) -> Response {
    if is_part {
        return (StatusCode::UNAUTHORIZED, assets::policy()).into_response();
    }
    let main = html! {
        h1 { "Sign in" }
        p { "These plans are shown to the person who opens them. On the machine where they are, run" }
        pre { code { "planwatch browser" } }
        p { "It opens this page again, signed in. With " code { "--print" } " it prints the address instead." }
        @if web.app.token.is_some() {
            form method="post" action="/login" class="stack" {
                label for="token" { "Or enter the token of these plans. " code { "planwatch token" } " prints it." }
                input id="token" name="token" type="password" autocomplete="off" required;
                button class="primary" { "Sign in" }
            }
        }
    };
    (StatusCode::UNAUTHORIZED, layout::bare("Sign in", &main)).into_response()
}
