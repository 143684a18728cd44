//! Decides from the head of a request who may see a page. The body is read only after this decision.
//!
//! The host and the origin are checked as on every route. A page needs a session. The browser also sends the session's
//! cookie with requests from pages on other ports of this machine, because it treats them as the same site. So the guard
//! also checks `Sec-Fetch-Site`: a request with this header must come from these pages or from an address that a person
//! typed. A change also needs the token of the page.

use axum::body::HttpBody;
use axum::extract::{Request, State};
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE, COOKIE};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::session::Session;
use super::{Web, layout, refusal, sign_in};
use crate::serve::http::guard::{
    BODY_LIMIT, SEC_FETCH_SITE, check_address, fetch_site, is_of_api, is_prefetch, no_route,
};
use crate::serve::http::problem::Problem;

/// The header with which the script asks for the part of a page that changes.
pub(super) const PART: &str = "x-planwatch-part";

/// The guard of everything that needs a session. It passes the session on.
pub(super) async fn guard(State(web): State<Web>, mut request: Request, next: Next) -> Response {
    if let Err(answer) = check(&web, &request) {
        return answer;
    }
    let is_part = request.headers().contains_key(PART);
    let Some(session) = session(&web, request.headers()) else {
        return sign_in::needed(&web, is_part || request.uri().path() == "/events");
    };
    request.extensions_mut().insert(session);
    shown(next.run(request).await, is_part)
}

/// The guard of what needs no session: the sign-in, the style sheet, the script and the icon.
pub(super) async fn open(State(web): State<Web>, request: Request, next: Next) -> Response {
    match check(&web, &request) {
        Ok(()) => shown(next.run(request).await, false),
        Err(answer) => answer,
    }
}

/// The answer for a path that does not exist. A person gets a page: the browser would ask for a password if it got the
/// refusal of the API.
pub(super) async fn unknown(State(web): State<Web>, request: Request) -> Response {
    if is_of_api(&request) {
        return no_route(&web.app, &request).into_response();
    }
    if let Err(answer) = check(&web, &request) {
        return answer;
    }
    let is_part = request.headers().contains_key(PART);
    match session(&web, request.headers()) {
        Some(_) => shown(Problem::of_status(StatusCode::NOT_FOUND).into_response(), is_part),
        None => sign_in::needed(&web, is_part),
    }
}

#[expect(clippy::result_large_err, reason = "the error is the answer, made once for each refused request")]
fn check(web: &Web, request: &Request) -> Result<(), Response> {
    let refused = |problem: &Problem| refusal::page(problem);
    check_address(&web.app, request).map_err(|it| refused(&it))?;
    if is_prefetch(request.headers()) {
        let detail = "pages are not loaded in advance";
        return Err(refused(&Problem::new(StatusCode::FORBIDDEN, "prefetch-refused", detail)));
    }
    if let Err(problem) = fetch_site(request.headers()) {
        let is_read = request.method() == Method::GET;
        return Err(if is_read && is_navigation(request.headers()) {
            layout::stranger(request.uri())
        } else {
            refused(&problem)
        });
    }
    body(request).map_err(|it| refused(&it))
}

/// Whether the browser opens a page, for example because a person follows a link.
fn is_navigation(headers: &HeaderMap) -> bool {
    let says = |name: &str, value: &str| headers.get(name).is_some_and(|it| it == value);
    says("sec-fetch-mode", "navigate")
        && says("sec-fetch-dest", "document")
        && headers.contains_key(SEC_FETCH_SITE)
}

/// Checks that a body is a form of a page, and not too large.
fn body(request: &Request) -> Result<(), Problem> {
    let media_type = request.headers().get(CONTENT_TYPE).and_then(|it| it.to_str().ok()).unwrap_or_default();
    let essence = media_type.split(';').next().unwrap_or_default().trim();
    let has_body = !request.body().is_end_stream();
    if has_body && !essence.eq_ignore_ascii_case("application/x-www-form-urlencoded") {
        let detail = "a change must be sent with a form of these pages";
        return Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "media-type", detail));
    }
    let length = request.headers().get(CONTENT_LENGTH).and_then(|it| it.to_str().ok()?.parse::<u64>().ok());
    if length.is_some_and(|it| it > BODY_LIMIT) {
        return Err(Problem::of_status(StatusCode::PAYLOAD_TOO_LARGE));
    }
    Ok(())
}

/// The session of the cookie. If the cookie occurs twice, both are refused: one may have been set for another path or
/// host.
fn session(web: &Web, headers: &HeaderMap) -> Option<Session> {
    let cookies = headers.get_all(COOKIE).iter().filter_map(|it| it.to_str().ok());
    let pairs = cookies.flat_map(|it| it.split(';')).filter_map(|it| it.trim().split_once('='));
    let mut own = pairs.filter(|(name, _)| *name == &*web.cookie).map(|(_, value)| value);
    match (own.next(), own.next()) {
        (Some(value), None) => web.sessions.find(value),
        _ => None,
    }
}

/// Turns a refusal into a page, or into a notice if the script sent the request. Other responses stay as they are.
fn shown(mut response: Response, is_part: bool) -> Response {
    match response.extensions_mut().remove::<Problem>() {
        Some(problem) if is_part => refusal::part(&problem),
        Some(problem) => refusal::page(&problem),
        None => response,
    }
}

/// The cookie of a session. Scripts cannot read it, and browsers do not send it with requests from other sites.
pub(super) fn cookie(web: &Web, value: &str) -> Option<HeaderValue> {
    HeaderValue::from_str(&format!("{}={value}; Path=/; HttpOnly; SameSite=Strict", web.cookie)).ok()
}

/// The cookie that removes [`cookie`].
pub(super) fn no_cookie(web: &Web) -> Option<HeaderValue> {
    HeaderValue::from_str(&format!("{}=; Path=/; HttpOnly; SameSite=Strict; Max-Age=0", web.cookie)).ok()
}

impl IntoResponse for super::sign_in::Redirect {
    fn into_response(self) -> Response {
        let mut response = StatusCode::SEE_OTHER.into_response();
        let headers = response.headers_mut();
        if let Ok(to) = HeaderValue::from_str(&self.to) {
            headers.insert(axum::http::header::LOCATION, to);
        }
        if let Some(cookie) = self.cookie {
            headers.insert(axum::http::header::SET_COOKIE, cookie);
        }
        response
    }
}
