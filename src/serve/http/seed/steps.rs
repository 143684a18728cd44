//! Steps: those of a plan, one, a new one, and an update of one.

use axum::extract::State;
use axum::response::Response;
use serde::Deserialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::{SeedStep, earlier, made};
use crate::ops::patch::{self, PatchRequest};
use crate::ops::upsert::{self, Put, StepText};
use crate::serve::http::etag::IfMatch;
use crate::serve::http::extract::{Body, Json, Number, PlanName, StepName};
use crate::serve::http::problem::Problem;
use crate::serve::http::routes::step_status;
use crate::serve::http::state::App;

/// The steps of a plan, in their order.
pub(super) async fn list(State(app): State<App>, plan: PlanName) -> Result<Json<Vec<SeedStep>>, Problem> {
    let steps = app.ask(move |context| upsert::steps(context, &plan.reference())).await?;
    Ok(Json(steps.into_iter().map(SeedStep::of).collect()))
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::serve::http) struct NewStep {
    /// The text of the step's file; its first heading or line is the title.
    description: String,
    /// At exactly this number; without one behind the last step.
    #[schema(value_type = Option<f64>)]
    step_number: Option<Number>,
    /// Behind this step.
    #[schema(value_type = Option<f64>)]
    after_step: Option<Number>,
    /// `user` or `agent`, or a name.
    created_by: Option<String>,
    #[schema(value_type = Option<Object>)]
    metadata: Option<Map<String, Value>>,
}

/// Adds a step; the same text at the same number again changes nothing.
pub(super) async fn add(
    State(app): State<App>,
    plan: PlanName,
    if_match: IfMatch,
    Body(new): Body<NewStep>,
) -> Result<Response, Problem> {
    let request = StepText {
        plan: plan.reference(),
        text: new.description,
        at: new.step_number.map(|it| it.0),
        after: new.after_step.map(|it| it.0),
        created_by: new.created_by,
        metadata: new.metadata,
    };
    let put = app.ask_if(if_match, move |context| match earlier(context) {
        Some(id) => Ok(Put { is_new: true, now: upsert::step(context, &id)? }),
        None => upsert::put_step(context, &request),
    });
    let put = put.await?;
    let id = put.now.0.id.clone();
    Ok(made(put.is_new, ("/api/steps/", &id), SeedStep::answer(put.now)))
}

/// One step with its text.
pub(super) async fn show(State(app): State<App>, step: StepName) -> Result<Response, Problem> {
    let step = app.ask(move |context| upsert::step(context, &step.reference())).await?;
    Ok(SeedStep::answer(step))
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::serve::http) struct StepUpdate {
    /// A status; what it may follow is what the command line allows.
    #[schema(schema_with = step_status)]
    status: Option<String>,
    /// Recorded as an attempt.
    result: Option<String>,
    /// Keys to set; null takes one out, and what is not named stays.
    #[schema(value_type = Option<Object>)]
    metadata: Option<Map<String, Value>>,
    /// When it is to be done, as 2026-11-21; none takes it out.
    due: Option<String>,
    /// Who says so, if it is not who the daemon runs for.
    by: Option<String>,
    /// The claim that this belongs to.
    claim: Option<String>,
}

/// Updates a step, all in one write.
pub(super) async fn update(
    State(app): State<App>,
    step: StepName,
    if_match: IfMatch,
    Body(update): Body<StepUpdate>,
) -> Result<Response, Problem> {
    let id = step.reference();
    let StepUpdate { status, result, metadata, due, by, claim } = update;
    let request = PatchRequest { id, status, result, metadata, due, by, claim, ..PatchRequest::default() };
    let now = app.ask_if(if_match, move |context| {
        if earlier(context).is_none() {
            patch::patch(context, &request)?;
        }
        upsert::step(context, &request.id)
    });
    Ok(SeedStep::answer(now.await?))
}
