//! The routes for plans: they list all plans, show a plan, create a plan, or claim the next step of a plan.

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{SeedPlan, SeedPlanWithBody, earlier, made};
use crate::api::precondition;
use crate::api::views::PlanShape;
use crate::ops::claim::{self, ClaimReport, ClaimRequest};
use crate::ops::list::{self, ListReport, ListRequest};
use crate::ops::upsert::{self, PlanText, Put};
use crate::serve::http::etag::{IfMatch, tagged};
use crate::serve::http::extract::{Body, Named, Params, Written};
use crate::serve::http::guard::{is_of_any_page, is_prefetch};
use crate::serve::http::problem::{Problem, not_allowed};
use crate::serve::http::routes::read_sort;
use crate::serve::http::state::App;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ListParams {
    /// Only plans that have exactly this id or title.
    title: Option<String>,
    /// Keys to sort by, as the command line takes them.
    sort: Option<String>,
}

/// Lists all plans except archived ones.
pub(super) async fn list(
    State(app): State<App>,
    Params(params): Params<ListParams>,
) -> Result<Written, Problem> {
    let sort = params.sort.as_deref().map(read_sort).transpose()?;
    let written = app.ask(move |context| {
        let sort = sort.unwrap_or_default();
        let request = ListRequest { all: true, sort, ..ListRequest::default() };
        let plans = match list::list(context, &request)? {
            ListReport::Plans { plans, .. } => plans,
            _ => Vec::new(),
        };
        let is_asked =
            |it: &PlanShape| params.title.as_ref().is_none_or(|title| it.id == *title || it.title == *title);
        let plans = plans.into_iter().filter(|it| !it.archived && is_asked(it)).map(SeedPlan::of);
        Written::of(&plans.collect::<Vec<_>>())
    });
    written.await
}

/// Makes a plan. A repeated request with the same text changes nothing.
pub(super) async fn create(
    State(app): State<App>,
    IfMatch(etags): IfMatch,
    Body(text): Body<PlanText>,
) -> Result<Response, Problem> {
    if etags.is_some() {
        return Err(precondition::not_supported().into());
    }
    let put = app.ask(move |context| match earlier(context) {
        Some(id) => Ok(Put { is_new: true, now: upsert::plan(context, &format!("{id}/"))?.0 }),
        None => upsert::put_plan(context, &text),
    });
    let put = put.await?;
    let id = put.now.id.clone();
    let etag = put.now.etag.clone();
    let answer = tagged(etag.as_deref(), Json(SeedPlan::of(put.now)));
    Ok(made(put.is_new, ("/api/plans/", &id), answer))
}

pub(super) async fn show(State(app): State<App>, plan: Named) -> Result<Response, Problem> {
    let plan = plan.0;
    Ok(SeedPlanWithBody::answer(app.ask(move |context| upsert::plan(context, &plan)).await?))
}

#[derive(Debug, Serialize)]
pub(super) struct ClaimedStep {
    /// `next`.
    status: &'static str,
    step_id: String,
    step_number: Value,
    /// The text below the front matter of the step's file.
    description: String,
    title: String,
    /// The claim; its id can be sent with an update of the step.
    claim: Value,
}

/// The answer to a request for the next step of a plan.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum NextStep {
    /// The step was claimed for the caller.
    Next(Box<ClaimedStep>),
    /// All steps are closed.
    Complete {
        /// `complete`.
        status: &'static str,
    },
}

/// Claims the next step. Refuses HEAD, prefetching, and requests that a web page of another site may have caused.
pub(super) async fn next_step(
    State(app): State<App>,
    method: Method,
    headers: HeaderMap,
    plan: Named,
    if_match: IfMatch,
) -> Result<Response, Problem> {
    if method != Method::GET {
        return Err(not_allowed("GET", "asking for the next step claims it, so HEAD is not allowed here"));
    }
    if is_prefetch(&headers) {
        let detail = "a request for the next step claims it, so it must not be prefetched";
        return Err(Problem::new(StatusCode::FORBIDDEN, "prefetch-refused", detail));
    }
    if is_of_any_page(&headers) {
        let detail = "asking for the next step claims it, and any web page could have made this browser send the request";
        return Err(Problem::new(StatusCode::FORBIDDEN, "cross-site-refused", detail));
    }
    let target = Some(plan.0);
    let answer = app.ask_if(if_match, move |context| {
        let report = claim::claim(context, &ClaimRequest { target, ..ClaimRequest::default() })?;
        match (&report.step, report.state) {
            (Some(step), _) => {
                let id = step["id"].as_str().unwrap_or_default().to_owned();
                let reference = id.rsplit_once(':').map(|(plan, number)| format!("{plan}/step-{number}"));
                let description = upsert::step_text(context, &reference.unwrap_or_default())?;
                Ok(NextStep::Next(Box::new(ClaimedStep {
                    status: "next",
                    step_id: id,
                    step_number: step["step_number"].clone(),
                    description,
                    title: step["title"].as_str().unwrap_or_default().to_owned(),
                    claim: report.to_json()["claim"].take(),
                })))
            }
            (None, "complete") => Ok(NextStep::Complete { status: "complete" }),
            (None, _) => Err(nothing_ready(&report)),
        }
    });
    Ok(Json(answer.await?).into_response())
}

/// The reason why no step was claimed, with `Retry-After` if waiting can help.
pub(in crate::serve::http) fn nothing_ready(report: &ClaimReport) -> Problem {
    let problem = Problem::new(StatusCode::CONFLICT, "nothing-ready", report.why.clone());
    let problem =
        problem.fact("state", report.state).fact("why", report.why.clone()).fact("plan", json!(report.plan));
    if report.state == "waiting" { problem.retry_after(10) } else { problem }
}
