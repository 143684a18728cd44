//! What a shell may offer for an argument. Whatever cannot be read is left out.

use crate::api::agents::{self, AgentRequest};
use crate::api::context::Context;
use crate::ops::list::{self, ListReport, ListRequest};
use crate::ops::script;
use crate::plan::words::{PlanStatus, Status, StepStatus};
use crate::store::load;

/// The names of plans that are not archived, in order; no plan is read.
pub fn plans(context: &Context) -> Vec<String> {
    let mut names = load::plan_names(context);
    names.sort();
    names
}

/// The steps of a plan, each with its title.
pub fn steps(context: &Context, plan: &str) -> Vec<(String, String)> {
    let request = ListRequest { plan: Some(plan.to_owned()), ..ListRequest::default() };
    match list::list(context, &request) {
        Ok(ListReport::Steps { steps, .. }) => steps.into_iter().map(|it| (it.id, it.title)).collect(),
        Ok(ListReport::Plans { .. }) | Err(_) => Vec::new(),
    }
}

/// The canonical words for a status of steps, then of plans.
pub fn statuses() -> Vec<&'static str> {
    let mut words: Vec<_> = StepStatus::ALL.iter().map(|it| it.word()).collect();
    words.extend(PlanStatus::ALL.iter().map(|it| it.word()).filter(|it| *it != "completed"));
    words
}

/// The agents that `run` and `draft` know here.
pub fn agents(context: &Context, own: agents::Agents) -> Vec<String> {
    agents::names(&AgentRequest { own, ..AgentRequest::default() }, context)
}

/// The names of scripts.
pub fn scripts(context: &Context) -> Vec<String> {
    let found = script::list(context, None).unwrap_or_default();
    found.into_iter().map(|it| it.script.id).collect()
}
