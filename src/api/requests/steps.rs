//! Requests that add, change or claim a step.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::{LEASE, Mode, NOT_BLANK, TIME, author, number, seconds, step_status, yaml};
use crate::plan::records::NoteType;
use crate::plan::transitions::Verb;

/// Adds a step to a plan.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AddRequest {
    #[serde(skip)]
    pub plan: String,
    #[schemars(extend("pattern" = NOT_BLANK))]
    pub title: String,
    /// The step after which it is put; by default it comes last.
    pub after: Option<String>,
    /// Its number, such as 2.5; not together with `after`.
    pub at: Option<String>,
    /// The steps that it waits for, by number or by id.
    #[serde(default)]
    pub depends: Vec<String>,
    pub phase: Option<String>,
    #[serde(rename = "type")]
    pub kind: Option<String>,
    /// The files that it changes.
    #[serde(default)]
    pub touches: Vec<String>,
    /// Commands that must succeed before a run counts it as completed.
    #[serde(default)]
    pub verify: Vec<String>,
    /// Keys of your own.
    #[serde(default, deserialize_with = "yaml")]
    #[schemars(with = "Option<Map<String, Value>>")]
    pub metadata: Option<String>,
    /// Its text, in Markdown.
    pub body: Option<String>,
    #[serde(default, deserialize_with = "author")]
    #[schemars(extend("pattern" = NOT_BLANK))]
    pub by: Option<String>,
    /// Whether a person has to confirm it before it can be claimed.
    #[serde(rename = "gate", default)]
    pub is_gated: bool,
    /// Whether the front matter of `body` is kept, except for the id.
    #[serde(skip)]
    pub keeps_own: bool,
    /// Whether `body` may contain a confirmation, because a person made the request.
    #[serde(skip)]
    pub may_confirm: bool,
    /// Step numbers that are used only on other branches or in other working trees may be used again.
    #[serde(skip)]
    pub ignores_branches: bool,
    #[serde(rename = "dry_run", default)]
    pub mode: Mode,
}

/// A step as a text.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StepText {
    #[serde(skip)]
    pub plan: String,
    /// The text of the step's file; its first heading or line is the title.
    #[serde(rename = "description")]
    pub text: String,
    /// At exactly this number; by default after the last step.
    #[serde(rename = "step_number", default, deserialize_with = "number")]
    #[schemars(with = "Option<f64>")]
    pub at: Option<String>,
    /// After this step.
    #[serde(rename = "after_step", default, deserialize_with = "number")]
    #[schemars(with = "Option<f64>")]
    pub after: Option<String>,
    /// `user` or `agent`, or a name.
    #[serde(default, deserialize_with = "author")]
    #[schemars(extend("pattern" = NOT_BLANK))]
    pub created_by: Option<String>,
    pub metadata: Option<Map<String, Value>>,
}

/// Changes several fields of a step in one write.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PatchRequest {
    #[serde(skip)]
    pub id: String,
    /// A status. The same changes of status are allowed as on the command line.
    #[schemars(schema_with = "step_status")]
    #[serde(default)]
    pub status: Option<String>,
    /// Recorded as the notes of an attempt.
    pub result: Option<String>,
    /// Replaces what is below the heading.
    #[serde(skip)]
    pub text: Option<String>,
    /// Keys to set; null removes one, and keys that are not named stay.
    pub metadata: Option<Map<String, Value>>,
    /// The date when it is due, such as 2026-11-21; `none` removes it.
    pub due: Option<String>,
    #[serde(default, deserialize_with = "author")]
    #[schemars(extend("pattern" = NOT_BLANK))]
    pub by: Option<String>,
    pub claim: Option<String>,
    #[serde(skip)]
    pub mode: Mode,
}

/// A verb on one or several steps or plans.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MoveRequest {
    #[serde(skip)]
    pub verb: Verb,
    #[serde(skip)]
    pub ids: Vec<String>,
    /// Whether the end of a step is recorded as an attempt even without a message, so that the file names who ended it.
    #[serde(skip)]
    pub is_signed: bool,
    /// What happened. It is recorded as an attempt; on a plan as a note.
    pub message: Option<String>,
    #[serde(default, deserialize_with = "author")]
    #[schemars(extend("pattern" = NOT_BLANK))]
    pub by: Option<String>,
    pub claim: Option<String>,
    #[serde(default)]
    pub force: bool,
    #[serde(rename = "dry_run", default)]
    pub mode: Mode,
}

/// Records an attempt at a step.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AttemptRequest {
    #[serde(skip)]
    pub id: String,
    /// How it went, in a word or two.
    #[schemars(extend("pattern" = NOT_BLANK))]
    pub outcome: String,
    /// The details.
    pub notes: Option<String>,
    #[serde(default, deserialize_with = "author")]
    #[schemars(extend("pattern" = NOT_BLANK))]
    pub by: Option<String>,
    /// When it was, such as 2026-11-21T09:14:03Z or 2026-11-21; now if it is left out.
    #[schemars(extend("pattern" = TIME))]
    pub at: Option<String>,
    /// The new status, instead of the one that follows from the attempt.
    #[schemars(schema_with = "step_status")]
    #[serde(default)]
    pub status: Option<String>,
    /// Leave the step's status as it is; not together with `status`.
    #[serde(default)]
    pub keep_status: bool,
    pub claim: Option<String>,
    #[serde(default)]
    pub force: bool,
    #[serde(rename = "dry_run", default)]
    pub mode: Mode,
}

/// Claims a step.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClaimRequest {
    /// A plan or a step. `None`: the plan in `PLANWATCH_PLAN`, or else the most urgent step of all plans.
    #[serde(skip)]
    pub target: Option<String>,
    #[serde(default, deserialize_with = "author")]
    #[schemars(extend("pattern" = NOT_BLANK))]
    pub by: Option<String>,
    /// The duration of the claim, such as 90s, 30m, 2h or 1d; by default as configured.
    // In seconds.
    #[serde(default, deserialize_with = "seconds")]
    #[schemars(with = "Option<String>", extend("pattern" = LEASE))]
    pub lease: Option<i64>,
    /// The id of a process. The claim is valid as long as that process runs.
    #[serde(skip)]
    pub pid: Option<u32>,
    /// Override the checks of a named step; this is recorded.
    #[serde(default)]
    pub force: bool,
    /// Claim on this machine alone, without asking the shared remote; `sync` settles it later.
    #[serde(default)]
    pub offline: bool,
    /// Whether the calling process renews its claims at the registry.
    #[serde(skip)]
    pub is_renewed: bool,
    #[serde(rename = "dry_run", default)]
    pub mode: Mode,
}

/// Restarts the duration of a claim.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RenewRequest {
    #[serde(skip)]
    pub claim: String,
    /// The duration from now on, such as 90s, 30m, 2h or 1d; by default as before.
    // In seconds.
    #[serde(default, deserialize_with = "seconds")]
    #[schemars(with = "Option<String>", extend("pattern" = LEASE))]
    pub lease: Option<i64>,
    #[serde(rename = "dry_run", default)]
    pub mode: Mode,
}

/// Releases claimed steps without finishing them.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReleaseRequest {
    #[serde(skip)]
    pub ids: Vec<String>,
    /// How far the work got. It is recorded as an attempt.
    pub message: Option<String>,
    #[serde(default, deserialize_with = "author")]
    #[schemars(extend("pattern" = NOT_BLANK))]
    pub by: Option<String>,
    pub claim: Option<String>,
    /// Release it only if its claim has lapsed.
    // Without ids all lapsed claims are released.
    #[serde(default)]
    pub expired: bool,
    #[serde(default)]
    pub force: bool,
    #[serde(rename = "dry_run", default)]
    pub mode: Mode,
}

/// Adds a note to a step or a plan.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NoteRequest {
    #[serde(skip)]
    pub id: String,
    #[schemars(extend("pattern" = NOT_BLANK))]
    pub text: String,
    /// `info`, `warning` or `instruction`; `info` if it is left out.
    #[serde(rename = "type", default)]
    #[schemars(with = "Option<NoteType>")]
    pub kind: Option<String>,
    #[serde(default, deserialize_with = "author")]
    #[schemars(extend("pattern" = NOT_BLANK))]
    pub by: Option<String>,
    #[serde(rename = "dry_run", default)]
    pub mode: Mode,
}

/// Moves a step to another place in its plan.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RenumberRequest {
    #[serde(skip)]
    pub id: String,
    /// The step after which it is put; 0 makes it the first.
    // Empty if `before` or `to` is given.
    #[schemars(length(min = 1))]
    pub after: String,
    /// The step before which it is put.
    #[serde(skip)]
    pub before: Option<String>,
    /// The step's new number, which no other step may have.
    #[serde(skip)]
    pub to: Option<String>,
    #[serde(default, deserialize_with = "author")]
    #[schemars(extend("pattern" = NOT_BLANK))]
    pub by: Option<String>,
    pub claim: Option<String>,
    #[serde(default)]
    pub force: bool,
    /// Step numbers that are used only on other branches or in other working trees may be used again.
    #[serde(skip)]
    pub ignores_branches: bool,
    #[serde(rename = "dry_run", default)]
    pub mode: Mode,
}

/// Whether the confirmation is known to come from a person.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Confirmer {
    /// A person typed the confirmation at a terminal, or answered a prompt.
    Person,
    #[default]
    Unknown,
}

/// A person's answer; in JSON the boolean `reject`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(from = "bool")]
#[schemars(inline)]
pub enum Answer {
    #[default]
    Yes,
    No,
}

impl From<bool> for Answer {
    fn from(is_rejected: bool) -> Self {
        if is_rejected { Self::No } else { Self::Yes }
    }
}

/// Confirms a step or a phase, or rejects it.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ConfirmRequest {
    /// A step, or the plan of the phase.
    #[serde(skip)]
    pub id: String,
    /// The phase of a plan.
    pub phase: Option<String>,
    /// Reject it.
    #[serde(rename = "reject", default)]
    pub answer: Answer,
    /// The reason.
    pub note: Option<String>,
    #[serde(default, deserialize_with = "author")]
    #[schemars(extend("pattern" = NOT_BLANK))]
    pub by: Option<String>,
    #[serde(skip)]
    pub confirmer: Confirmer,
    #[serde(rename = "dry_run", default)]
    pub mode: Mode,
}
