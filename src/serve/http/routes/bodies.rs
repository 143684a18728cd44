//! The bodies of routes that have no type of their own in `api::requests`.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde_json::Value;

use crate::api::requests::{self, Mode, NOT_BLANK};

/// A body whose only field is whether to write.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct DryBody {
    #[serde(rename = "dry_run", default)]
    pub(crate) mode: Mode,
}

/// A body whose only fields are the author and whether to write.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct AuthorBody {
    #[serde(default, deserialize_with = "requests::author")]
    #[schemars(extend("pattern" = NOT_BLANK))]
    pub(crate) by: Option<String>,
    #[serde(rename = "dry_run", default)]
    pub(crate) mode: Mode,
}

/// A field and its value.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SetBody {
    /// The key, as in the file.
    #[schemars(length(min = 1))]
    pub(crate) key: String,
    /// The new value. A string is stored as text, even if it looks like a number or a date.
    #[schemars(schema_with = "any_value")]
    pub(crate) value: Value,
    /// `set` stores the value, `add` adds it to a list, and `take` removes it from a list. The default is `set`.
    #[schemars(extend("enum" = ["set", "add", "take", null]))]
    pub(crate) op: Option<String>,
    #[serde(default, deserialize_with = "requests::author")]
    #[schemars(extend("pattern" = NOT_BLANK))]
    pub(crate) by: Option<String>,
    pub(crate) claim: Option<String>,
    #[serde(default)]
    pub(crate) force: bool,
    #[serde(rename = "dry_run", default)]
    pub(crate) mode: Mode,
}

/// A field to remove.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct UnsetBody {
    /// The key, as in the file.
    #[schemars(length(min = 1))]
    pub(crate) key: String,
    #[serde(default, deserialize_with = "requests::author")]
    #[schemars(extend("pattern" = NOT_BLANK))]
    pub(crate) by: Option<String>,
    pub(crate) claim: Option<String>,
    #[serde(default)]
    pub(crate) force: bool,
    #[serde(rename = "dry_run", default)]
    pub(crate) mode: Mode,
}

/// The tasks to tick.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TickBody {
    /// The numbers of the tasks, from 1 in the order of the file.
    #[schemars(length(min = 1), inner(range(min = 1)))]
    pub(crate) tasks: Vec<usize>,
    /// Clear the boxes.
    #[serde(default)]
    pub(crate) untick: bool,
    #[serde(default, deserialize_with = "requests::author")]
    #[schemars(extend("pattern" = NOT_BLANK))]
    pub(crate) by: Option<String>,
    #[serde(rename = "dry_run", default)]
    pub(crate) mode: Mode,
}

/// The task that becomes a step.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SplitBody {
    /// The number of the task, from 1 in the order of the file.
    #[schemars(range(min = 1))]
    pub(crate) task: usize,
    #[serde(default, deserialize_with = "requests::author")]
    #[schemars(extend("pattern" = NOT_BLANK))]
    pub(crate) by: Option<String>,
    #[serde(rename = "dry_run", default)]
    pub(crate) mode: Mode,
}

/// The values with which a template is rendered.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RenderBody {
    /// The title of the plan; for the prompt `step`, the id of a step.
    pub(crate) title: Option<String>,
    /// What the plan is about.
    pub(crate) description: Option<String>,
    #[serde(default, deserialize_with = "requests::author")]
    #[schemars(extend("pattern" = NOT_BLANK))]
    pub(crate) by: Option<String>,
    /// Rendering never writes.
    #[serde(rename = "dry_run", default)]
    pub(crate) _mode: Mode,
}

fn any_value(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": ["string", "number", "boolean", "array", "object"], "items": {}})
}
