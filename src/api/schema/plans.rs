//! The schemas of plans, of steps and of the records in their files. Most are derived from Rust types.

use schemars::{Schema, SchemaGenerator, json_schema};
use serde_json::{Value, json};

use super::{Object, of, part, text};
use crate::api::context::KeptSave;
use crate::api::daemon::Granted;
use crate::api::views::{PlanShape, ProblemShape, RangeShape, StepShape};
use crate::plan::records::{Attempt, Claim, Confirmation, Note, Verify};
use crate::plan::rules;
use crate::plan::words::{PlanStatus, Status, StepStatus};

pub(super) fn parts() -> Vec<(&'static str, Value)> {
    vec![
        ("Plan", of::<PlanShape>()),
        ("Step", of::<StepShape>()),
        ("Attempt", of::<Attempt>()),
        ("Note", of::<Note>()),
        ("Claim", of::<Claim>()),
        ("Confirmation", of::<Confirmation>()),
        ("Verify", of::<Verify>()),
        ("StepRange", of::<RangeShape>()),
        ("Problem", of::<ProblemShape>()),
        ("Kept", of::<KeptSave>()),
        ("PlanStatus", words::<PlanStatus>()),
        ("StepStatus", words::<StepStatus>()),
    ]
}

/// The fields of [`PlanShape`]. An answer may add others.
pub fn plan() -> Object {
    Object::of::<PlanShape>()
}

/// The fields of [`StepShape`]. An answer may add others.
pub fn step() -> Object {
    Object::of::<StepShape>()
}

pub(super) fn granted() -> Object {
    Object::of::<Granted>()
}

fn words<S: Status>() -> Value {
    json!({"type": "string", "enum": S::ALL.iter().map(|it| it.word()).collect::<Vec<_>>()})
}

/// A known status of a plan, or the unknown word that the file has as its status.
pub(crate) fn plan_status(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"anyOf": [part("PlanStatus"), text()]})
}

/// Like [`plan_status`], for a step.
pub(crate) fn step_status(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"anyOf": [part("StepStatus"), text()]})
}

/// Like [`plan_status`], for a plan or a step, or null if there is no status.
pub(super) fn maybe_status() -> Value {
    json!({"anyOf": [part("PlanStatus"), part("StepStatus"), text(), {"type": "null"}]})
}

pub(crate) fn activity(_: &mut SchemaGenerator) -> Schema {
    let words = json!(["attempt", "claim", "confirmation", "created", "note", "mtime", null]);
    json_schema!({"type": ["string", "null"], "enum": words})
}

pub(crate) fn step_number(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "number", "minimum": 0})
}

pub(crate) fn state(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "enum": rules::State::ALL.map(rules::State::word)})
}
