//! A layer for every answer: it formats problems, sets headers, and logs one line.

use std::time::{Duration, Instant};

use axum::extract::Request;
use axum::http::header::{
    ALLOW, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderName, HeaderValue};
use axum::middleware::Next;
use axum::response::Response;

use crate::serve::daemon::malloc;
use crate::serve::http::problem::{MEDIA_TYPE, Problem};
use crate::serve::http::state::{REQUEST_LIMIT, too_slow};

/// A request that took this long may have used much memory.
const LONG: Duration = Duration::from_millis(100);

/// Answers within the time limit, formats problems, and logs the request.
pub(in crate::serve) async fn finish(request: Request, next: Next) -> Response {
    let begun = Instant::now();
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let response = match tokio::time::timeout(REQUEST_LIMIT, next.run(request)).await {
        Ok(response) => in_form(response, &path),
        Err(_) => too_slow().answer(&path),
    };
    if begun.elapsed() >= LONG {
        malloc::trim_soon();
    }
    let milliseconds = begun.elapsed().as_secs_f64() * 1e3;
    tracing::info!(%method, path, status = response.status().as_u16(), ms = format_args!("{milliseconds:.1}"));
    with_headers(response)
}

/// Formats problems. A refusal that no handler made, such as that of an unknown path, gets the same form.
fn in_form(mut response: Response, path: &str) -> Response {
    if let Some(problem) = response.extensions_mut().remove::<Problem>() {
        return problem.answer(path);
    }
    let status = response.status();
    let is_json = response.headers().get(CONTENT_TYPE).and_then(|it| it.to_str().ok());
    let is_json = is_json.is_some_and(|it| it.starts_with(MEDIA_TYPE) || it.starts_with("application/json"));
    if is_json
        || response.extensions().get::<Policy>().is_some()
        || !(status.is_client_error() || status.is_server_error())
    {
        return response;
    }
    let mut answer = Problem::of_status(status).answer(path);
    if let Some(allowed) = response.headers_mut().remove(ALLOW) {
        answer.headers_mut().insert(ALLOW, allowed);
    }
    answer
}

/// What an answer allows the browser to do. An answer without a policy allows nothing.
#[derive(Debug, Clone, Copy)]
pub(in crate::serve) struct Policy {
    /// The `Content-Security-Policy`.
    pub(in crate::serve) content: &'static str,
    pub(in crate::serve) referrer: &'static str,
}

impl Policy {
    const NOTHING: Self = Self {
        content: "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
        referrer: "no-referrer",
    };
}

/// Forbids caching, content sniffing and use by other sites, and sets the headers of the answer's [`Policy`].
fn with_headers(mut response: Response) -> Response {
    let policy = response.extensions_mut().remove::<Policy>().unwrap_or(Policy::NOTHING);
    let all = [
        (CACHE_CONTROL, "no-store"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (CONTENT_SECURITY_POLICY, policy.content),
        (REFERRER_POLICY, policy.referrer),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    ];
    for (name, value) in all {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}
