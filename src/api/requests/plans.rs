//! Requests that make a plan or change its list of steps, and `undo`.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::{Mode, NOT_BLANK, author};
use crate::plan::records::Priority;

/// A step of a new plan.
#[derive(Debug, Clone, Default)]
pub struct StepRequest {
    pub title: String,
    /// The text below the heading. If it begins with the heading itself, that heading is removed.
    pub text: Option<String>,
    /// The steps that it waits for: steps of the new plan by number, steps of other plans by id.
    pub depends: Vec<String>,
    pub touches: Vec<String>,
    pub verify: Vec<String>,
}

impl From<String> for StepRequest {
    /// A step that has only a title.
    fn from(title: String) -> Self {
        Self { title, ..Self::default() }
    }
}

fn titles<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<StepRequest>, D::Error> {
    Ok(Vec::<String>::deserialize(from)?.into_iter().map(Into::into).collect())
}

fn titles_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "array", "items": {"type": "string", "pattern": NOT_BLANK}})
}

/// Makes a plan.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewRequest {
    /// The plan's title, from which its id is made.
    #[schemars(extend("pattern" = NOT_BLANK))]
    pub title: String,
    /// The titles of its steps.
    // Numbered from 1, or after the last step of the template.
    #[serde(default, deserialize_with = "titles")]
    #[schemars(schema_with = "titles_schema")]
    pub steps: Vec<StepRequest>,
    /// What it is about.
    pub description: Option<String>,
    /// What the plan should achieve.
    #[serde(default)]
    pub goals: Vec<String>,
    /// How to tell that the plan succeeded.
    #[serde(rename = "success_criteria", default)]
    pub criteria: Vec<String>,
    #[serde(default)]
    pub tags: Vec<String>,
    pub category: Option<String>,
    /// How urgent it is; `medium` if it is left out.
    #[schemars(with = "Option<Priority>")]
    pub priority: Option<String>,
    /// The program that it belongs to.
    pub program: Option<String>,
    /// Make a program, which other plans belong to.
    #[serde(default)]
    pub is_program: bool,
    /// Existing plans that become part of the new program.
    #[serde(default)]
    pub children: Vec<String>,
    /// Make a draft: its steps cannot be claimed before `start` activates it.
    #[serde(rename = "draft", default)]
    pub is_draft: bool,
    /// Let each step wait for the one before.
    #[serde(rename = "sequential", default)]
    pub is_sequential: bool,
    #[serde(default, deserialize_with = "author")]
    #[schemars(extend("pattern" = NOT_BLANK))]
    pub by: Option<String>,
    /// The template of the plan; `steps` are added after the steps of the template.
    pub template: Option<String>,
    /// The text of `plan.md`, with or without front matter; not together with `template`. It must not contain confirmations.
    #[serde(skip)]
    pub body: Option<String>,
    #[serde(rename = "dry_run", default)]
    pub mode: Mode,
}

/// A plan as a text.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PlanText {
    /// The plan's id is made from the title.
    // This can also be the id of an existing plan.
    pub title: String,
    /// The text of `plan.md`, with or without front matter.
    #[serde(default)]
    pub body: String,
}

fn list<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    Ok(match Value::deserialize(from)? {
        Value::String(markdown) => markdown,
        list => list.to_string(),
    })
}

fn list_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": ["string", "array"], "items": {"type": ["string", "object"]}})
}

/// Replaces the steps of a plan.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReplaceRequest {
    #[serde(skip)]
    pub plan: String,
    /// Titles, or objects as `list` shows them; or the list as one Markdown text.
    // This field contains Markdown or JSON, or YAML if `shown` ends in `.yaml` or `.yml`.
    #[serde(rename = "steps", deserialize_with = "list")]
    #[schemars(schema_with = "list_schema")]
    pub list: String,
    /// The name of the list in errors: a path, or `-`.
    #[serde(skip)]
    pub shown: String,
    #[serde(default, deserialize_with = "author")]
    #[schemars(extend("pattern" = NOT_BLANK))]
    pub by: Option<String>,
    /// The `created_by` of new steps. If it is `None`, `by` is used.
    #[serde(skip)]
    pub created_by: Option<String>,
    #[serde(default)]
    pub force: bool,
    /// Step numbers that are used only on other branches or in other working trees may be used again.
    #[serde(skip)]
    pub ignores_branches: bool,
    #[serde(rename = "dry_run", default)]
    pub mode: Mode,
}

/// Merges several steps into one.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SquashRequest {
    #[serde(skip)]
    pub plan: String,
    /// Two or more, by number.
    // The order of this list does not matter; the steps are merged in the order of the plan.
    #[schemars(length(min = 2))]
    pub steps: Vec<String>,
    /// The title of the new step.
    #[schemars(extend("pattern" = NOT_BLANK))]
    pub title: String,
    #[serde(default, deserialize_with = "author")]
    #[schemars(extend("pattern" = NOT_BLANK))]
    pub by: Option<String>,
    #[serde(default)]
    pub force: bool,
    #[serde(rename = "dry_run", default)]
    pub mode: Mode,
}

/// Undoes a change.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UndoRequest {
    /// The id of the change, as the list shows it; the last one if it is left out.
    pub id: Option<String>,
    #[serde(default, deserialize_with = "author")]
    #[schemars(extend("pattern" = NOT_BLANK))]
    pub by: Option<String>,
    /// The id of the claim that ends when the change is undone.
    pub claim: Option<String>,
    /// Also undo a claim of another owner.
    #[serde(default)]
    pub force: bool,
    #[serde(rename = "dry_run", default)]
    pub mode: Mode,
}
