//! Refusals: RFC 9457's `application/problem+json`, with the error codes of the command line.

use axum::http::header::{ALLOW, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::api::context::KeptSaves;
use crate::api::error::Error;
use crate::serve::hints::{self, Surface};

pub(super) const MEDIA_TYPE: &str = "application/problem+json";

/// A refusal. The requested path is filled in when the response is sent.
#[derive(Debug, Clone)]
pub(in crate::serve) struct Problem {
    pub(in crate::serve) status: StatusCode,
    pub(in crate::serve) code: &'static str,
    pub(in crate::serve) detail: String,
    pub(in crate::serve) rest: Box<Rest>,
}

/// The parts that only a few problems have.
#[derive(Debug, Clone, Default)]
pub(in crate::serve) struct Rest {
    pub(in crate::serve) hint: Option<String>,
    /// The operation's hint, in the words of the command line. The pages derive their hints from it.
    pub(in crate::serve) advice: Option<String>,
    /// Facts for machines, in addition to `detail`.
    pub(in crate::serve) details: Map<String, Value>,
    pub(in crate::serve) headers: Vec<(HeaderName, HeaderValue)>,
}

/// How a problem is written.
#[derive(Debug, Serialize)]
pub(in crate::serve) struct ProblemShape {
    /// `urn:planwatch:<code>`.
    #[serde(rename = "type")]
    pub(super) kind: String,
    /// The status in words.
    pub(super) title: String,
    pub(in crate::serve) status: u16,
    /// What is wrong here, in one sentence.
    pub(in crate::serve) detail: String,
    /// The requested path.
    pub(super) instance: String,
    /// The error code. An error of an operation has the same code on every surface, except `confirmation-by-person`.
    pub(in crate::serve) code: String,
    /// What to do about it.
    pub(in crate::serve) hint: Option<String>,
    /// Facts for machines. Their names depend on `code`.
    pub(in crate::serve) details: Map<String, Value>,
}

impl Problem {
    pub(in crate::serve) fn new(status: StatusCode, code: &'static str, detail: impl Into<String>) -> Self {
        Self { status, code, detail: detail.into(), rest: Box::default() }
    }

    /// Adds `kept` to `details`: the saves of other programs that raced with this request's writes and were preserved
    /// outside of the plan files. Adds nothing if there are none.
    #[must_use]
    pub(in crate::serve) fn with_kept(mut self, kept: &KeptSaves) -> Self {
        if let Some(kept) = kept.to_json() {
            self.rest.details.insert("kept".to_owned(), kept);
        }
        self
    }

    #[must_use]
    pub(in crate::serve) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.rest.hint = Some(hint.into());
        self
    }

    #[must_use]
    pub(in crate::serve) fn fact(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.rest.details.insert(name.to_owned(), value.into());
        self
    }

    #[must_use]
    pub(in crate::serve) fn header(mut self, name: HeaderName, value: &'static str) -> Self {
        self.rest.headers.push((name, HeaderValue::from_static(value)));
        self
    }

    /// Sets `Retry-After`: the number of seconds after which the client may try again.
    #[must_use]
    pub(in crate::serve) fn retry_after(mut self, seconds: u64) -> Self {
        self.rest.headers.push((RETRY_AFTER, HeaderValue::from(seconds)));
        self
    }

    /// An internal error, without details.
    pub(in crate::serve) fn internal() -> Self {
        let detail = "an internal error occurred; the log may have details";
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", detail)
    }

    pub(in crate::serve) fn no_token() -> Self {
        let detail = "every request needs the token of these plans";
        Self::new(StatusCode::UNAUTHORIZED, "token-needed", detail)
            .hint("send `Authorization: Bearer TOKEN`; `planwatch token` prints the token")
            .header(WWW_AUTHENTICATE, "Bearer realm=\"planwatch\", Basic realm=\"planwatch\"")
    }

    /// Makes a problem from a status alone, for example for an answer that a library made.
    pub(in crate::serve) fn of_status(status: StatusCode) -> Self {
        let (code, detail) = match status {
            StatusCode::NOT_FOUND => ("no-such-route", "there is nothing at this path"),
            StatusCode::METHOD_NOT_ALLOWED => {
                ("method-not-allowed", "this path does not support this method")
            }
            StatusCode::NOT_ACCEPTABLE => {
                ("not-acceptable", "no form of the answer is acceptable to the client")
            }
            StatusCode::PAYLOAD_TOO_LARGE => ("body-too-large", "the body is larger than 1 MiB"),
            StatusCode::UNSUPPORTED_MEDIA_TYPE => {
                ("media-type", "a body must be sent as `Content-Type: application/json`")
            }
            it if it.is_server_error() => return Self::internal(),
            _ => ("bad-request", "the request is not understood"),
        };
        Self::new(status, code, detail)
    }

    /// Makes the answer to a request for this path.
    pub(in crate::serve) fn answer(self, path: &str) -> Response {
        let Rest { hint, details, headers: more, advice: _ } = *self.rest;
        let shape = ProblemShape {
            kind: format!("urn:planwatch:{}", self.code),
            title: self.status.canonical_reason().unwrap_or("Refused").to_owned(),
            status: self.status.as_u16(),
            detail: self.detail,
            instance: path.to_owned(),
            code: self.code.to_owned(),
            hint,
            details,
        };
        // Serialization cannot fail, because all keys are strings.
        let body = serde_json::to_vec(&shape).unwrap_or_default();
        let mut response = (self.status, body).into_response();
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(MEDIA_TYPE));
        headers.extend(more);
        response
    }
}

/// The status for each error of the engine.
pub(in crate::serve) fn status_of(error: &Error) -> StatusCode {
    match error {
        Error::NoPlansDir | Error::NotFound { what: "plans directory", .. } => {
            StatusCode::SERVICE_UNAVAILABLE
        }
        Error::NotExpected { .. } => StatusCode::PRECONDITION_FAILED,
        Error::PersonNeeded { .. } | Error::NotTrusted(_) => StatusCode::FORBIDDEN,
        _ => match (error.code(), error.exit_code()) {
            ("confirmation-by-person", _) => StatusCode::FORBIDDEN,
            ("nothing-to-undo", _) => StatusCode::CONFLICT,
            ("file-full" | "no-room" | "no-task" | "git-too-old" | "sql-refused" | "sql-error", _) => {
                StatusCode::UNPROCESSABLE_ENTITY
            }
            ("idempotency-unavailable", _) => StatusCode::SERVICE_UNAVAILABLE,
            ("list-invalid" | "nothing-to-import", _) => StatusCode::UNPROCESSABLE_ENTITY,
            // The request is understood but cannot be carried out.
            (_, 2) => StatusCode::UNPROCESSABLE_ENTITY,
            (_, 3) => StatusCode::NOT_FOUND,
            (_, 4 | 5) => StatusCode::CONFLICT,
            (_, 6) => StatusCode::UNPROCESSABLE_ENTITY,
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        },
    }
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        let status = status_of(&error);
        let details = match error.details() {
            Value::Object(map) => map,
            _ => Map::new(),
        };
        let mut problem = Self::new(status, error.code(), error.to_string());
        problem.rest.advice = error.hint();
        problem.rest.hint =
            problem.rest.advice.as_deref().and_then(|it| hints::for_surface(it, Surface::Routes));
        problem.rest.details = details;
        if problem.code == "locked" { problem.retry_after(1) } else { problem }
    }
}

impl IntoResponse for Problem {
    /// Attaches the problem to a response without a body; [`Problem::answer`] writes the body later, with the path.
    fn into_response(self) -> Response {
        let mut response = self.status.into_response();
        response.extensions_mut().insert(self);
        response
    }
}

/// The refusal of a method that a path does not support.
pub(in crate::serve) fn not_allowed(allowed: &'static str, why: &str) -> Problem {
    Problem::new(StatusCode::METHOD_NOT_ALLOWED, "method-not-allowed", why).header(ALLOW, allowed)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::api::workspace::{self, WorkspaceRequest};
    use crate::disk::{Disk, RealDisk};

    #[test]
    fn a_missing_plans_directory_is_not_a_missing_resource() {
        let disk: Arc<dyn Disk> = Arc::new(RealDisk);
        let plans = Some("/no/such/directory".into());
        let request = WorkspaceRequest { start: "/".into(), plans, env: None, home: None };
        let error = workspace::find(&disk, &request).unwrap_err();
        assert_eq!(status_of(&error), StatusCode::SERVICE_UNAVAILABLE);
    }
}
