//! The routes for steps: they list the steps of a plan, show a step, add a step, or update a step.

use axum::Json;
use axum::extract::State;
use axum::response::Response;

use super::{SeedStep, earlier, made};
use crate::ops::patch::{self, PatchRequest};
use crate::ops::upsert::{self, Put, StepText};
use crate::serve::http::etag::IfMatch;
use crate::serve::http::extract::{Body, Named};
use crate::serve::http::problem::Problem;
use crate::serve::http::state::App;

/// The steps of a plan, in their order.
pub(super) async fn list(State(app): State<App>, plan: Named) -> Result<Json<Vec<SeedStep>>, Problem> {
    let steps = app.ask(move |context| upsert::steps(context, &plan.0)).await?;
    Ok(Json(steps.into_iter().map(SeedStep::of).collect()))
}

/// Adds a step. A repeated request with the same text at the same number changes nothing.
pub(super) async fn add(
    State(app): State<App>,
    plan: Named,
    if_match: IfMatch,
    Body(text): Body<StepText>,
) -> Result<Response, Problem> {
    let request = StepText { plan: plan.0, ..text };
    let put = app.ask_if(if_match, move |context| match earlier(context) {
        Some(id) => Ok(Put { is_new: true, now: upsert::step(context, &id)? }),
        None => upsert::put_step(context, &request),
    });
    let put = put.await?;
    let id = put.now.0.id.clone();
    Ok(made(put.is_new, ("/api/steps/", &id), SeedStep::answer(put.now)))
}

pub(super) async fn show(State(app): State<App>, step: Named) -> Result<Response, Problem> {
    let step = app.ask(move |context| upsert::step(context, &step.0)).await?;
    Ok(SeedStep::answer(step))
}

/// Updates all given fields of a step in one write.
pub(super) async fn update(
    State(app): State<App>,
    step: Named,
    if_match: IfMatch,
    Body(update): Body<PatchRequest>,
) -> Result<Response, Problem> {
    let request = PatchRequest { id: step.0, ..update };
    let now = app.ask_if(if_match, move |context| {
        if earlier(context).is_none() {
            patch::patch(context, &request)?;
        }
        upsert::step(context, &request.id)
    });
    Ok(SeedStep::answer(now.await?))
}
