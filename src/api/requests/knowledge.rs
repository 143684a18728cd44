//! Requests that record decisions, insights and scripts, and `import`.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::{Mode, NOT_BLANK, author, given, yaml};
use crate::disk::Origin;

/// Records a decision.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DecideRequest {
    #[schemars(extend("pattern" = NOT_BLANK))]
    pub topic: String,
    #[serde(rename = "decision")]
    #[schemars(extend("pattern" = NOT_BLANK))]
    pub text: String,
    /// The reason.
    #[serde(rename = "reasoning")]
    pub because: Option<String>,
    /// The id or file name of the replaced decision, or the beginning of either.
    pub supersedes: Option<String>,
    #[serde(default)]
    pub tags: Vec<String>,
    /// The plan that it is about.
    pub plan: Option<String>,
    /// The step that it is about; not together with `plan`.
    pub step: Option<String>,
    #[serde(default, deserialize_with = "author")]
    #[schemars(extend("pattern" = NOT_BLANK))]
    pub by: Option<String>,
    /// Keys of your own.
    #[serde(default, deserialize_with = "yaml")]
    #[schemars(with = "Option<Map<String, Value>>")]
    pub metadata: Option<String>,
    #[serde(rename = "dry_run", default)]
    pub mode: Mode,
}

/// Records an insight.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct InsightRequest {
    /// A title by which it can be found.
    #[schemars(extend("pattern" = NOT_BLANK))]
    pub title: String,
    #[schemars(extend("pattern" = NOT_BLANK))]
    pub text: String,
    /// The plan that it is about.
    pub plan: Option<String>,
    #[serde(default)]
    pub tags: Vec<String>,
    #[serde(default, deserialize_with = "author")]
    #[schemars(extend("pattern" = NOT_BLANK))]
    pub by: Option<String>,
    #[serde(rename = "dry_run", default)]
    pub mode: Mode,
}

/// Adds a script.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewScriptRequest {
    /// The script's name, from which its id is made.
    #[schemars(extend("pattern" = NOT_BLANK))]
    pub name: String,
    /// One line for a shell.
    #[schemars(extend("pattern" = NOT_BLANK))]
    pub command: String,
    /// The directory in the repository where it runs; by default the repository's root.
    // Relative to the root, or absolute.
    pub directory: Option<String>,
    /// The plan that it belongs to.
    pub plan: Option<String>,
    /// What it does.
    pub description: Option<String>,
    /// A name for MCP clients. It is stored and shown, but not used.
    pub mcp_handle: Option<String>,
    #[serde(rename = "dry_run", default)]
    pub mode: Mode,
}

/// Makes plans from documents.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ImportRequest {
    /// The path of a file, absolute or relative to the repository's root. If the user typed it, it can also be a directory.
    #[serde(skip)]
    pub source: PathBuf,
    /// The origin of `source`.
    #[serde(skip)]
    pub origin: Origin,
    /// The document, in Markdown.
    // If it is given, `source` is not read.
    #[serde(deserialize_with = "given")]
    #[schemars(with = "String", extend("pattern" = NOT_BLANK))]
    pub text: Option<String>,
    /// The source as it was typed, for messages.
    #[serde(skip)]
    pub shown: String,
    /// The name of the plan; by default it is made from the title.
    // Refused if the source contains several plans.
    pub name: Option<String>,
    /// The title of the plan; refused if the source contains several plans.
    #[serde(skip)]
    pub title: Option<String>,
    /// The category of each plan, instead of the source's.
    #[serde(skip)]
    pub category: Option<String>,
    /// The priority of each plan, instead of the source's.
    #[serde(skip)]
    pub priority: Option<String>,
    /// Make another plan from a document that was imported before.
    #[serde(default)]
    pub again: bool,
    #[serde(rename = "dry_run", default)]
    pub mode: Mode,
}
