//! Etags of files and of answers. With the etag of a file, a client can require that the file has not changed. An answer
//! is not sent again to a client that sends the answer's etag.
//!
//! The answer about a plan or a step may also change when other files change. So the etag of such an answer to a `GET` has
//! two parts, `"FILE-ANSWER"`. `If-None-Match` compares both parts; `If-Match` compares only the first one. Other answers to
//! a `GET` have a weak etag, which never matches `If-Match`.

use axum::body::{Body, Bytes, HttpBody, to_bytes};
use axum::extract::{FromRequestParts, Request};
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE, ETAG, IF_MATCH, IF_NONE_MATCH};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::api::precondition::Expected;
use crate::serve::http::problem::Problem;

/// Adds the etag of a file, if the file has one, to an answer as the header `ETag`.
pub(super) fn tagged(etag: Option<&str>, answer: impl IntoResponse) -> Response {
    let mut answer = answer.into_response();
    if let Some(etag) = etag.and_then(|it| HeaderValue::from_str(&format!("\"{it}\"")).ok()) {
        answer.headers_mut().insert(ETAG, etag);
    }
    answer
}

/// The number of hexadecimal digits of the `ANSWER` part.
const DIGITS: usize = 32;

/// An answer of at least this many bytes is hashed in a blocking thread.
const LONG: usize = 1 << 16;

/// Whether a `GET` of this path claims a step.
pub(super) fn claims_next_step(path: &str) -> bool {
    let plan = path.strip_prefix("/api/plans/").and_then(|it| it.strip_suffix("/next-step"));
    plan.is_some_and(|it| !it.contains('/'))
}

/// Adds an etag of the content to each successful JSON answer to a `GET`. If the client sent this etag, answers 304
/// without a body.
pub(super) async fn conditional(request: Request, next: Next) -> Response {
    // Requesting the next step claims it, so each answer is different.
    let is_head = request.method() == Method::HEAD;
    if !(is_head || request.method() == Method::GET) || claims_next_step(request.uri().path()) {
        return next.run(request).await;
    }
    if !is_head {
        return with_etag(request, next).await;
    }
    // The etag is that of the body, which the answer to a HEAD lacks. So the request is answered as a GET.
    let mut request = request;
    *request.method_mut() = Method::GET;
    let mut response = with_etag(request, next).await;
    let length = response.body().size_hint().exact().filter(|_| response.status() == StatusCode::OK);
    if let Some(length) = length {
        response.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(length));
    }
    response.map(|_| Body::empty())
}

async fn with_etag(request: Request, next: Next) -> Response {
    let known = known(request.headers());
    let response = next.run(request).await;
    let is_json = response.headers().get(CONTENT_TYPE).is_some_and(|it| it == "application/json");
    if response.status() != StatusCode::OK || !is_json {
        return response;
    }
    let (mut parts, body) = response.into_parts();
    let Ok(bytes) = to_bytes(body, usize::MAX).await else { return Problem::internal().into_response() };
    let answer = hash(&bytes).await;
    let file = parts.headers.get(ETAG).and_then(|it| it.to_str().ok()).map(|it| it.trim_matches('"'));
    let etag = file.map_or_else(|| format!("W/\"{answer}\""), |file| format!("\"{file}-{answer}\""));
    let is_known = known.iter().any(|it| it == "*" || it == etag.trim_start_matches("W/"));
    if let Ok(etag) = HeaderValue::from_str(&etag) {
        parts.headers.insert(ETAG, etag);
    }
    if !is_known {
        return Response::from_parts(parts, Body::from(bytes));
    }
    parts.status = StatusCode::NOT_MODIFIED;
    parts.headers.remove(CONTENT_TYPE);
    parts.headers.remove(CONTENT_LENGTH);
    Response::from_parts(parts, Body::empty())
}

/// The etags of `If-None-Match`, with their quotes and without `W/`, because this header is compared weakly.
fn known(headers: &HeaderMap) -> Vec<String> {
    let texts = headers.get_all(IF_NONE_MATCH).iter().filter_map(|it| it.to_str().ok());
    let etags = texts.flat_map(|it| it.split(',')).map(|it| it.trim().trim_start_matches("W/").to_owned());
    etags.filter(|it| !it.is_empty()).collect()
}

async fn hash(bytes: &Bytes) -> String {
    let of = |bytes: &Bytes| blake3::hash(bytes).to_hex()[..DIGITS].to_owned();
    if bytes.len() < LONG {
        return of(bytes);
    }
    let (here, there) = (bytes.clone(), bytes.clone());
    let hashed = tokio::task::spawn_blocking(move || of(&there)).await;
    hashed.unwrap_or_else(|_| of(&here))
}

/// The file etags of `If-Match`; `None` if the request accepts any version.
#[derive(Debug, Default)]
pub(in crate::serve) struct IfMatch(pub(in crate::serve) Option<Expected>);

impl<S: Send + Sync> FromRequestParts<S> for IfMatch {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Problem> {
        let mut etags = None;
        for header in parts.headers.get_all(IF_MATCH) {
            let text = header.to_str().unwrap_or_default().trim();
            if text == "*" {
                return Ok(Self(None));
            }
            etags.get_or_insert_with(Vec::new).extend(read(text).ok_or_else(unread)?);
        }
        Ok(Self(etags.map(Expected::new)))
    }
}

fn unread() -> Problem {
    let detail = "`If-Match` is not a list of etags";
    Problem::new(StatusCode::BAD_REQUEST, "etag-invalid", detail)
        .hint("send what `ETag` said, with its quotes")
}

/// Parses a list of etags, and removes their answer parts. Weak etags are left out, because they match no file.
fn read(text: &str) -> Option<Vec<String>> {
    let mut etags = Vec::new();
    for part in text.split(',').map(str::trim).filter(|it| !it.is_empty()) {
        let (is_weak, quoted) = part.strip_prefix("W/").map_or((false, part), |it| (true, it));
        let etag = quoted.strip_prefix('"')?.strip_suffix('"').filter(|it| !it.contains('"'))?;
        let file =
            etag.rsplit_once('-').filter(|(_, answer)| answer.len() == DIGITS).map_or(etag, |(it, _)| it);
        etags.extend((!is_weak).then(|| file.to_owned()));
    }
    Some(etags)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_route_of_a_plan_claims_its_next_step() {
        assert!(claims_next_step("/api/plans/auth/next-step"));
        assert!(claims_next_step("/api/plans/next-step/next-step"));
        assert!(claims_next_step("/api/plans/{id}/next-step"));
        for other in ["/api/show/next-step", "/api/plans/next-step", "/api/plans/a/b/next-step", "/next-step"]
        {
            assert!(!claims_next_step(other), "{other}");
        }
    }

    #[test]
    fn lists_of_etags_are_read() {
        let of = |text: &str| read(text).map(|it| it.join("|"));
        assert_eq!(of("\"a\""), Some("a".to_owned()));
        assert_eq!(of("\"a\", \"b\",, W/\"c\""), Some("a|b".to_owned()));
        assert_eq!(of("W/\"c\""), Some(String::new()));
        assert_eq!(of(&format!("\"a-{}\"", "0".repeat(DIGITS))), Some("a".to_owned()));
        assert_eq!(of("\"a-b\""), Some("a-b".to_owned()));
        assert_eq!(of("a"), None);
        assert_eq!(of("\"a"), None);
        assert_eq!(of("\"a\"b\""), None);
    }
}
