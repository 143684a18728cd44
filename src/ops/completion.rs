//! The completions that a shell can offer for an argument. Anything that cannot be read is left out.

use std::path::Path;

use crate::api::agents::{self, AgentRequest};
use crate::api::context::Context;
use crate::api::sort::Key;
use crate::ops::list::{self, ListReport, ListRequest};
use crate::ops::{script, set, template};
use crate::plan::id::PlanId;
use crate::plan::read::{CATEGORIES, PLAN_KEYS, STEP_KEYS};
use crate::plan::records::Priority;
use crate::plan::words::{PlanStatus, Status, StepStatus};
use crate::store::load;
use crate::store::removed::ARCHIVE;

/// The names of plans that are not archived, in order; no plan is read.
pub fn plans(context: &Context) -> Vec<String> {
    let mut names = load::plan_names(context);
    names.sort_unstable();
    names
}

/// The names of archived plans, in order; no plan is read.
pub fn archived_plans(context: &Context) -> Vec<String> {
    let names = context.plans.names(Path::new(ARCHIVE));
    let is_plan =
        |it: &String| PlanId::is_plan_name(it) && context.plans.is_dir(&Path::new(ARCHIVE).join(it));
    let mut names: Vec<_> = names.into_iter().filter(is_plan).collect();
    names.sort_unstable();
    names
}

pub fn templates(context: &Context) -> Vec<String> {
    template::list(context).into_iter().map(|it| it.name).collect()
}

pub fn keys() -> Vec<&'static str> {
    let mut keys: Vec<_> =
        STEP_KEYS.iter().chain(PLAN_KEYS).copied().filter(|it| set::is_set_by_hand(it)).collect();
    keys.sort_unstable();
    keys.dedup();
    keys
}

/// The words that a key accepts as its value; empty if it accepts any text.
pub fn values(key: &str) -> Vec<&'static str> {
    match key {
        "status" => statuses(),
        "priority" => Priority::ALL.into_iter().map(Priority::word).collect(),
        "category" => CATEGORIES.to_vec(),
        "kind" => vec!["plan", "program"],
        "order" => vec!["dependencies", "sequential"],
        "confirm" => vec!["required"],
        _ => Vec::new(),
    }
}

/// The keys that lists can be sorted by: first all ascending, then all descending.
pub fn sort_keys() -> Vec<String> {
    let words = || Key::ALL.into_iter().map(Key::word);
    words().map(str::to_owned).chain(words().map(|it| format!("-{it}"))).collect()
}

pub fn steps(context: &Context, plan: &str) -> Vec<(String, String)> {
    let request = ListRequest { plan: Some(plan.to_owned()), ..ListRequest::default() };
    match list::list(context, &request) {
        Ok(ListReport::Steps { steps, .. }) => steps.into_iter().map(|it| (it.id, it.title)).collect(),
        Ok(ListReport::Plans { .. }) | Err(_) => Vec::new(),
    }
}

/// The canonical words for the status of steps, then those for the status of plans.
pub fn statuses() -> Vec<&'static str> {
    let mut words: Vec<_> = StepStatus::ALL.iter().map(|it| it.word()).collect();
    words.extend(PlanStatus::ALL.iter().map(|it| it.word()).filter(|it| *it != "completed"));
    words
}

/// The names of the agents that `run` and `draft` accept here.
pub fn agents(context: &Context, own: agents::Agents) -> Vec<String> {
    agents::names(&AgentRequest { own, ..AgentRequest::default() }, context)
}

pub fn scripts(context: &Context) -> Vec<String> {
    let found = script::list(context, None).unwrap_or_default();
    found.into_iter().map(|it| it.script.id).collect()
}
