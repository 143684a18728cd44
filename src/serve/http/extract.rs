//! What requests hold, read so that every mistake is answered in the one form: names, bodies, queries.

use axum::body::Bytes;
use axum::extract::rejection::{BytesRejection, PathRejection, QueryRejection};
use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request};
use axum::http::header::CONTENT_TYPE;
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::plan::id::{PlanId, StepId, read_number};
use crate::serve::http::problem::Problem;

/// The plan of a path: the name of a directory, never a path, a number or a pattern.
#[derive(Debug, Clone)]
pub(super) struct PlanName(pub(super) PlanId);

impl PlanName {
    /// As the engine's requests refer to it: with nothing but this very plan meant.
    pub(super) fn reference(&self) -> String {
        format!("{}/", self.0)
    }
}

/// The step of a path, `<plan>:<number>`.
#[derive(Debug, Clone)]
pub(super) struct StepName(pub(super) StepId);

impl StepName {
    /// As the engine's requests refer to it: also where a plan is called like the step's id.
    pub(super) fn reference(&self) -> String {
        format!("{}/step-{}", self.0.plan, self.0.number)
    }
}

/// A name that no plan and no step can have.
fn no_such(what: &str, name: &str) -> Problem {
    Problem::new(StatusCode::NOT_FOUND, "not-found", format!("there is no {what} `{name}`"))
}

impl<S: Send + Sync> FromRequestParts<S> for PlanName {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let Path(name) = Path::<String>::from_request_parts(parts, state).await.map_err(unread_path)?;
        if PlanId::is_plan_name(&name) { Ok(Self(PlanId::new(name))) } else { Err(no_such("plan", &name)) }
    }
}

impl<S: Send + Sync> FromRequestParts<S> for StepName {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let Path(name) = Path::<String>::from_request_parts(parts, state).await.map_err(unread_path)?;
        let read = name.rsplit_once(':').and_then(|(plan, number)| {
            let plan = PlanId::is_plan_name(plan).then(|| PlanId::new(plan))?;
            Some(Self(StepId { plan, number: read_number(number)? }))
        });
        read.ok_or_else(|| no_such("step", &name).hint("a step's id is <plan>:<number>"))
    }
}

#[expect(clippy::needless_pass_by_value, reason = "it is the form that `map_err` wants")]
fn unread_path(rejection: PathRejection) -> Problem {
    Problem::new(StatusCode::BAD_REQUEST, "name-invalid", rejection.body_text())
}

/// The parameters behind `?`.
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

/// A body of JSON; unlike axum's own it says what is wrong in the one form.
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
    if error.is_data() {
        return Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "body-invalid", error.to_string());
    }
    Problem::new(StatusCode::BAD_REQUEST, "json-invalid", format!("the body is not JSON: {error}"))
}

/// JSON as it is sent. The thread that works writes it: that of the network would hold up all others with it, and with
/// giving back what it was written from.
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

/// An answer as JSON, where that is little.
#[derive(Debug, Clone)]
pub(super) struct Json<T>(pub(super) T);

impl<T: Serialize> IntoResponse for Json<T> {
    fn into_response(self) -> Response {
        axum::Json(self.0).into_response()
    }
}
