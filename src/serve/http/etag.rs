//! Etags of files: told with a plan or a step, and the condition on which it is changed.
//!
//! An etag is that of the file alone. What is answered beside it may change with other files, so no answer is left out
//! because the asker names an etag.

use axum::extract::FromRequestParts;
use axum::http::header::{ETAG, IF_MATCH};
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};

use crate::engine::expected::Expected;
use crate::serve::http::problem::Problem;

/// Puts the etag of the file on an answer, if there is one.
pub(super) fn tagged(etag: Option<&str>, answer: impl IntoResponse) -> Response {
    let mut answer = answer.into_response();
    if let Some(etag) = etag.and_then(|it| HeaderValue::from_str(&format!("\"{it}\"")).ok()) {
        answer.headers_mut().insert(ETAG, etag);
    }
    answer
}

/// What `If-Match` asks for: the etags of which the file has to have one; none if anything will do.
#[derive(Debug, Default)]
pub(super) struct IfMatch(pub(super) Option<Vec<String>>);

impl IfMatch {
    /// As the engine asks for it.
    pub(super) fn expected(self) -> Option<Expected> {
        self.0.map(Expected::new)
    }
}

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
        Ok(Self(etags))
    }
}

fn unread() -> Problem {
    let detail = "`If-Match` is no list of etags";
    Problem::new(StatusCode::BAD_REQUEST, "etag-invalid", detail)
        .hint("send what `ETag` said, with its quotes")
}

/// Reads a list of etags; weak ones are like no file.
fn read(text: &str) -> Option<Vec<String>> {
    let mut etags = Vec::new();
    for part in text.split(',').map(str::trim).filter(|it| !it.is_empty()) {
        let (is_weak, quoted) = part.strip_prefix("W/").map_or((false, part), |it| (true, it));
        let etag = quoted.strip_prefix('"')?.strip_suffix('"').filter(|it| !it.contains('"'))?;
        etags.extend((!is_weak).then(|| etag.to_owned()));
    }
    Some(etags)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_etags_are_read() {
        let of = |text: &str| read(text).map(|it| it.join("|"));
        assert_eq!(of("\"a\""), Some("a".to_owned()));
        assert_eq!(of("\"a\", \"b\",, W/\"c\""), Some("a|b".to_owned()));
        assert_eq!(of("W/\"c\""), Some(String::new()));
        assert_eq!(of("a"), None);
        assert_eq!(of("\"a"), None);
        assert_eq!(of("\"a\"b\""), None);
    }
}
