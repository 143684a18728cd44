//! Decisions, insights and scripts as relations, for user queries.

use rusqlite::Connection;
use serde_json::Value;

use crate::index::error::IndexError;
use crate::index::relations::{Table, json, text, time};
use crate::plan::decision::Decision;
use crate::plan::insight::Insight;
use crate::plan::script::Script;

/// What a user query can read besides plans and files.
#[derive(Debug, Default)]
pub struct Knowledge {
    pub decisions: Vec<Decision>,
    pub insights: Vec<Insight>,
    pub scripts: Vec<Script>,
}

impl Knowledge {
    /// The names of the views that contain knowledge.
    pub(super) const VIEWS: [&str; 3] = ["decisions", "insights", "scripts"];

    pub(super) fn fill(&self, connection: &Connection) -> Result<(), IndexError> {
        let mut decisions = Table::new(connection, "decision_row")?;
        for it in &self.decisions {
            let (at, tags) = (time(it.decided_at), list(&it.tags));
            let (metadata, custom) = (json(&it.metadata), json(&it.custom));
            decisions.put(&[
                it.id.as_str().into(),
                it.topic.as_str().into(),
                it.decision.as_str().into(),
                text(&it.reasoning),
                text(&it.by),
                text(&at),
                text(&it.plan),
                text(&it.step),
                text(&it.supersedes),
                tags.as_str().into(),
                it.path.as_str().into(),
                metadata.as_str().into(),
                custom.as_str().into(),
            ])?;
        }
        let mut insights = Table::new(connection, "insight_row")?;
        for it in &self.insights {
            let (at, tags, custom) = (time(it.at), list(&it.tags), json(&it.custom));
            insights.put(&[
                it.id.as_str().into(),
                it.title.as_str().into(),
                it.text.as_str().into(),
                text(&it.by),
                text(&at),
                text(&it.plan),
                tags.as_str().into(),
                it.path.as_str().into(),
                custom.as_str().into(),
            ])?;
        }
        let mut scripts = Table::new(connection, "script_row")?;
        for it in &self.scripts {
            let custom = json(&it.custom);
            scripts.put(&[
                it.id.as_str().into(),
                it.name.as_str().into(),
                it.command.as_str().into(),
                it.directory.as_str().into(),
                text(&it.plan),
                text(&it.description),
                text(&it.mcp_handle),
                it.path.as_str().into(),
                custom.as_str().into(),
            ])?;
        }
        Ok(())
    }
}

fn list(texts: &[String]) -> String {
    Value::from(texts).to_string()
}
