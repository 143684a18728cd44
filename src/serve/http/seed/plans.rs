//! Plans: all of them, one, a new one.

use axum::extract::State;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::engine::list::{self, ListReport, ListRequest};
use crate::engine::shape::PlanShape;
use crate::plan::time::Time;
use crate::serve::http::app::App;
use crate::serve::http::extract::{Json, Params};
use crate::serve::http::problem::{Problem, ProblemShape};

/// A plan as scripts know it, and all that every other surface tells of it.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = SeedPlan)]
pub(super) struct SeedPlan {
    #[serde(flatten)]
    #[schema(value_type = Object)]
    plan: PlanShape,
    /// When it was made.
    #[schema(value_type = Option<String>, format = DateTime)]
    inserted_at: Option<Time>,
}

impl From<PlanShape> for SeedPlan {
    fn from(plan: PlanShape) -> Self {
        let inserted_at = plan.created_at;
        Self { plan, inserted_at }
    }
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct ListParams {
    /// Only plans that have exactly this id or title.
    title: Option<String>,
}

/// All plans but archived ones.
#[utoipa::path(get, path = "/api/plans", tag = "plans", operation_id = "listPlans", params(ListParams), responses(
    (status = 200, description = "The plans, in the order of `planwatch list`", body = Vec<SeedPlan>),
    (status = "4XX", description = "Refused", body = ProblemShape, content_type = "application/problem+json"),
))]
pub(super) async fn list(
    State(app): State<App>,
    Params(params): Params<ListParams>,
) -> Result<Json<Vec<SeedPlan>>, Problem> {
    let plans = app.ask(move |context| {
        let request = ListRequest { all: true, ..ListRequest::default() };
        let ListReport::Plans { plans, .. } = list::list(context, &request)? else { return Ok(Vec::new()) };
        let is_asked =
            |it: &PlanShape| params.title.as_ref().is_none_or(|title| it.id == *title || it.title == *title);
        Ok(plans.into_iter().filter(|it| !it.archived && is_asked(it)).map(SeedPlan::from).collect())
    });
    Ok(Json(plans.await?))
}
