//! Requests that HTTP reads from the query string: those that only read, and `remove`, which has no body.

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};

use super::{Mode, NOT_BLANK, author};
use crate::api::graph::GraphForm;
use crate::api::sort::Sort;

/// The pattern of a time, of a date, or of a span before now, such as `12h`, `7d` or `2w`.
///
/// The pattern accepts February 29 in every year; the operation checks the year.
pub(crate) const SINCE: &str = "^([0-9]{1,4}[hdw]|[0-9]{4}-((0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-9])|(0[13-9]|1[0-2])-30|(0[13578]|1[02])-31)(T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]Z)?)$";

/// Lists plans, or the steps of one.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
pub struct ListRequest {
    /// List this plan's steps.
    #[serde(skip)]
    pub plan: Option<String>,
    /// Only what has this status; several are separated by commas
    // The status of plans, or of steps if `plan` is given.
    #[serde(default)]
    pub status: Vec<String>,
    /// Only the plans of this program
    pub program: Option<String>,
    /// Only what has this tag
    pub tag: Option<String>,
    /// Only what is stale
    #[serde(default)]
    pub stale: bool,
    /// Only archived plans
    #[serde(default)]
    pub archived: bool,
    /// Every plan: open, closed and archived
    #[serde(default)]
    pub all: bool,
    #[serde(skip)]
    pub sort: Sort,
    /// Only steps of this assignee, or plans that have such a step
    pub assignee: Option<String>,
    /// Only what has changed since this time; the format is that of `since` in a search
    #[schemars(extend("pattern" = SINCE))]
    pub updated_since: Option<String>,
}

/// Lists stale steps.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
pub struct StaleRequest {
    /// Only the steps of this plan
    // For a program, also the steps of its plans.
    pub plan: Option<String>,
    /// The number of days after which a step is stale
    // In seconds. `None` means the `stale_days` of the configuration.
    #[serde(rename = "days", default, deserialize_with = "days")]
    #[schemars(with = "Option<u32>", range(max = 3650))]
    pub seconds: Option<i64>,
}

fn days<'de, D: Deserializer<'de>>(from: D) -> Result<Option<i64>, D::Error> {
    Ok(Option::<u32>::deserialize(from)?.map(|it| i64::from(it) * 86_400))
}

/// Shows statistics: closed steps, attempts, outcomes and durations.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
pub struct StatsRequest {
    /// Only the steps of this plan
    // For a program, also the steps of its plans.
    pub plan: Option<String>,
    /// Only what was recorded since then: a time, a date, or a span such as 7d or 12h
    pub since: Option<String>,
    /// Also count the attempts of each worker
    #[serde(default)]
    pub by_agent: bool,
}

/// Shows what needs attention.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
pub struct StatusRequest {
    /// The number of days after which a step is stale
    // Also the number of days for which finished steps are listed.
    #[schemars(range(max = 3650))]
    pub days: Option<u32>,
    /// Also steps whose status differs on unmerged git branches
    #[serde(default)]
    pub branches: bool,
}

/// Reports problems in the files.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
pub struct ProblemsRequest {
    /// Also removed and archived steps whose files changed later, for example through a merge
    #[serde(default)]
    pub git: bool,
}

/// Shows a plan, a step, a decision or an insight.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
pub struct ShowRequest {
    #[serde(skip)]
    pub id: String,
    /// Also the text of every step
    #[serde(default)]
    pub full: bool,
    /// Draw the dependencies
    pub graph: Option<GraphForm>,
}

/// Shows the next ready step.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
pub struct NextRequest {
    /// Only this plan; by default all active ones
    // If it is `None`, the plan in `PLANWATCH_PLAN` is used. If that variable is not set either, each active plan with a
    // next step has one candidate.
    pub plan: Option<String>,
    /// The maximum number of candidates in the answer. `None`: all.
    #[serde(skip)]
    pub most: Option<usize>,
}

/// Searches the full text.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
pub struct SearchRequest {
    /// Words; "…" for a phrase, -word excludes a word
    #[schemars(extend("pattern" = NOT_BLANK))]
    pub query: String,
    /// Only this: plan, step, decision or insight
    pub kind: Option<String>,
    /// Only since then: a date such as 2026-11-21, a time such as 2026-11-21T09:14:03Z, or a span such as 12h, 7d or 2w
    #[schemars(extend("pattern" = SINCE))]
    pub since: Option<String>,
    #[serde(skip)]
    pub limit: usize,
}

/// Lists decisions, newest first.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
pub struct DecisionsRequest {
    /// Only on this topic
    // Compared ignoring case and differences in blanks.
    pub topic: Option<String>,
    /// Only what is about this plan
    pub plan: Option<String>,
    /// Only what is about this step; not together with `plan`
    pub step: Option<String>,
    /// Only what has all of these tags, separated by commas
    #[serde(rename = "tag", default)]
    pub tags: Vec<String>,
    /// Only since then: a date such as 2026-11-21, a time such as 2026-11-21T09:14:03Z, or a span such as 12h, 7d or 2w
    #[schemars(extend("pattern" = SINCE))]
    pub since: Option<String>,
    #[serde(skip)]
    pub limit: usize,
}

/// Lists insights, newest first.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
pub struct InsightsRequest {
    /// Only insights with this title
    // Compared ignoring case and differences in blanks.
    pub title: Option<String>,
    /// Only what is about this plan
    pub plan: Option<String>,
    /// Only what has all of these tags, separated by commas
    #[serde(rename = "tag", default)]
    pub tags: Vec<String>,
    /// Only since then: a date such as 2026-11-21, a time such as 2026-11-21T09:14:03Z, or a span such as 12h, 7d or 2w
    #[schemars(extend("pattern" = SINCE))]
    pub since: Option<String>,
    #[serde(skip)]
    pub limit: usize,
}

/// Shows what happened to plans and steps, newest first.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
pub struct LogRequest {
    /// Only this plan or step
    // The plan or step may have been removed.
    pub id: Option<String>,
    /// Only since then: a date such as 2026-11-21, a time such as 2026-11-21T09:14:03Z, or a span such as 12h, 7d or 2w
    #[schemars(extend("pattern" = SINCE))]
    pub since: Option<String>,
    /// Only until then; the format is that of `since`
    #[schemars(extend("pattern" = SINCE))]
    pub until: Option<String>,
    /// Only what this person or agent did, or committed
    pub by: Option<String>,
    /// Only these changes, separated by commas
    #[serde(default)]
    pub what: Vec<String>,
    /// Only the commits of this range, such as main..feature
    #[schemars(extend("pattern" = NOT_BLANK))]
    pub rev: Option<String>,
    /// Only events with all of these words. Empty: all events.
    #[serde(skip)]
    pub words: Vec<String>,
    /// The maximum number of events in the answer. `None`: all.
    #[serde(skip)]
    pub limit: Option<usize>,
}

/// Shows how the plans differ between two states.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
pub struct DiffRequest {
    /// Only this plan
    pub plan: Option<String>,
    /// A revision, or two, such as main..feature or main...feature; by default HEAD
    // A single revision is compared with the working tree or, if `staged` is set, with what is staged.
    #[schemars(extend("pattern" = NOT_BLANK))]
    pub rev: Option<String>,
    /// Compare with what is staged, not with the working tree
    #[serde(default)]
    pub staged: bool,
    /// Also the text that differs
    #[serde(default)]
    pub patch: bool,
}

/// Removes steps or plans.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
pub struct RemoveRequest {
    #[serde(skip)]
    pub ids: Vec<String>,
    /// Needed to remove a plan.
    #[serde(skip)]
    pub is_confirmed: bool,
    #[serde(default, deserialize_with = "author")]
    #[schemars(extend("pattern" = NOT_BLANK))]
    pub by: Option<String>,
    pub claim: Option<String>,
    #[serde(default)]
    pub force: bool,
    #[serde(rename = "dry_run", default)]
    pub mode: Mode,
}
