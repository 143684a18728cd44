//! Reads the names, bodies and queries of requests, so that every mistake is answered in the same form.

use axum::body::Bytes;
use axum::extract::rejection::{BytesRejection, PathRejection, QueryRejection};
use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request};
use axum::http::header::CONTENT_TYPE;
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::plan::id::{PlanId, read_number};
use crate::serve::http::problem::Problem;

/// Returns the reference `<name>/`, with which the request of an operation names the plan `name`. Because of the `/` at the
/// end, it means exactly this plan, and is never read as a path, a number or a pattern.
pub(in crate::serve) fn plan_named(name: &str) -> Result<String, Problem> {
    if PlanId::is_plan_name(name) { Ok(format!("{name}/")) } else { Err(no_such("plan", name)) }
}

/// Like [`plan_named`], for an optional plan.
pub(super) fn plan_of(named: Option<String>) -> Result<Option<String>, Problem> {
    named.map(|it| plan_named(&it)).transpose()
}

/// Turns a step's whole id, `<plan>:<number>`, into the reference that names the step in the request of an operation. The
/// reference means the step even if a plan has the id as its name.
pub(in crate::serve) fn step_named(name: &str) -> Result<String, Problem> {
    let read = name.rsplit_once(':').and_then(|(plan, number)| {
        let number = read_number(number).filter(|_| PlanId::is_plan_name(plan))?;
        Some(format!("{plan}/step-{number}"))
    });
    read.ok_or_else(|| no_such("step", name).hint("a step's id is <plan>:<number>"))
}

/// The refusal of a name that no plan or step can have.
fn no_such(what: &str, name: &str) -> Problem {
    Problem::new(StatusCode::NOT_FOUND, "not-found", format!("there is no {what} `{name}`"))
}

/// The reference of the plan that the URL's path names ([`plan_named`]). If the path is below `/api/steps`, the reference
/// of the step ([`step_named`]).
#[derive(Debug, Clone)]
pub(super) struct Named(pub(super) String);

impl<S: Send + Sync> FromRequestParts<S> for Named {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let Path(name) = Path::<String>::from_request_parts(parts, state).await.map_err(unread_path)?;
        let is_step = parts.uri.path().starts_with("/api/steps/");
        if is_step { step_named(&name).map(Self) } else { plan_named(&name).map(Self) }
    }
}

#[expect(clippy::needless_pass_by_value, reason = "it is the form that `map_err` wants")]
fn unread_path(rejection: PathRejection) -> Problem {
    Problem::new(StatusCode::BAD_REQUEST, "name-invalid", rejection.body_text())
}

/// The parameters after `?`.
#[derive(Debug, Clone)]
pub(super) struct Params<T>(pub(super) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Params<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let read = Query::<T>::from_request_parts(parts, state).await;
        let unread = |it: QueryRejection| {
            let detail = it.body_text().replace("Failed to deserialize query string: ", "");
            Problem::new(StatusCode::BAD_REQUEST, "parameter-invalid", detail)
        };
        read.map(|Query(it)| Self(it)).map_err(unread)
    }
}

/// A JSON body. Unlike axum's `Json`, it reports errors as a [`Problem`].
#[derive(Debug, Clone)]
pub(super) struct Body<T>(pub(super) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Body<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        let bytes = Bytes::from_request(request, state).await;
        let bytes = bytes.map_err(|it: BytesRejection| Problem::of_status(it.status()))?;
        serde_json::from_slice(&bytes).map(Self).map_err(|error| unread_body(&error))
    }
}

fn unread_body(error: &serde_json::Error) -> Problem {
    if error.is_data() { invalid_body(error.to_string()) } else { not_json(error) }
}

pub(super) fn invalid_body(detail: impl Into<String>) -> Problem {
    Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "body-invalid", detail)
}

pub(super) fn not_json(error: &serde_json::Error) -> Problem {
    Problem::new(StatusCode::BAD_REQUEST, "json-invalid", format!("the body is not JSON: {error}"))
}

/// Serialized JSON. The request's blocking thread serializes the value and frees it. In the network thread, both would
/// delay all other requests.
#[derive(Debug, Clone)]
pub(super) struct Written(Bytes);

impl Written {
    pub(super) fn of(value: &impl Serialize) -> Result<Self, Problem> {
        serde_json::to_vec(value).map(|it| Self(it.into())).map_err(|_| Problem::internal())
    }
}

impl IntoResponse for Written {
    fn into_response(self) -> Response {
        ([(CONTENT_TYPE, HeaderValue::from_static("application/json"))], self.0).into_response()
    }
}
