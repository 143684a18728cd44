//! The routes for existing scripts that use curl and jq, with exactly the shapes that these scripts expect: arrays
//! without pages, canonical status words.

mod plans;
mod steps;

use axum::http::StatusCode;
use axum::http::header::LOCATION;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use serde::Serialize;

use crate::api::context::Context;
use crate::api::views::{PlanShape, StepShape};
use crate::page::address::encoded;
use crate::plan::time::Time;
use crate::serve::http::etag::tagged;
use crate::serve::http::state::App;

pub(super) fn router() -> Router<App> {
    Router::new()
        .route("/api/plans", get(plans::list).post(plans::create))
        .route("/api/plans/{id}", get(plans::show))
        .route("/api/plans/{id}/next-step", get(plans::next_step))
        .route("/api/plans/{id}/steps", get(steps::list).post(steps::add))
        .route("/api/steps/{id}", get(steps::show).patch(steps::update))
}

/// A plan as the script routes return it: the common view with `inserted_at`.
#[derive(Debug, Clone, Serialize)]
struct SeedPlan {
    #[serde(flatten)]
    plan: PlanShape,
    inserted_at: Option<Time>,
}

/// A plan with the text of its `plan.md`, without the front matter.
#[derive(Debug, Clone, Serialize)]
struct SeedPlanWithBody {
    #[serde(flatten)]
    plan: SeedPlan,
    body: String,
}

/// A step as the script routes return it: the common view with its text and `inserted_at`.
#[derive(Debug, Clone, Serialize)]
struct SeedStep {
    #[serde(flatten)]
    step: StepShape,
    /// The text of the step's file, without the front matter.
    description: String,
    inserted_at: Option<Time>,
}

impl SeedPlan {
    fn of(plan: PlanShape) -> Self {
        let inserted_at = plan.created_at;
        Self { plan, inserted_at }
    }
}

impl SeedPlanWithBody {
    fn answer((plan, body): (PlanShape, String)) -> Response {
        let etag = plan.etag.clone();
        tagged(etag.as_deref(), Json(Self { plan: SeedPlan::of(plan), body }))
    }
}

impl SeedStep {
    fn of((step, description): (StepShape, String)) -> Self {
        let inserted_at = step.created_at;
        Self { step, description, inserted_at }
    }

    fn answer(step: (StepShape, String)) -> Response {
        let etag = step.0.etag.clone();
        tagged(etag.as_deref(), Json(Self::of(step)))
    }
}

/// The id of the plan or step that an earlier request with the same key created or changed, if the answer to that request
/// was not stored.
fn earlier(context: &Context) -> Option<String> {
    let key = context.key.as_ref()?;
    let id = key.made()?.first_id()?;
    key.replay();
    Some(id)
}

/// Answers 201 with the location of something new, and 200 for something that existed.
fn made(is_new: bool, (path, id): (&str, &str), answer: Response) -> Response {
    if !is_new {
        return answer;
    }
    let mut answer = answer;
    *answer.status_mut() = StatusCode::CREATED;
    if let Ok(at) = format!("{path}{}", encoded(id)).parse() {
        answer.headers_mut().insert(LOCATION, at);
    }
    answer.into_response()
}
