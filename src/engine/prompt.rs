//! Prompts: what an agent's process is told.

use std::path::Path;

use serde_json::{Value, json};

use crate::engine::confirm::quoted;
use crate::engine::context::Context;
use crate::engine::error::Error;
use crate::engine::shape::shown_path;
use crate::plan::model::{Plan, Step};
use crate::text::placeholders;

/// A prompt that is filled in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rendered {
    pub text: String,
    /// What has to be told beside it.
    pub notes: Vec<String>,
}

/// Fills a prompt in.
pub fn render(_context: &Context, name: &str, values: &Value) -> Result<Rendered, Error> {
    let text = include_str!("../../templates/prompts/step.pmt");
    let text = placeholders::fill(text, values).map_err(|it| Error::Template {
        path: format!("templates/prompts/{name}.pmt"),
        line: it.line,
        column: it.column,
        reason: it.reason,
    })?;
    Ok(Rendered { text, notes: Vec::new() })
}

/// The values of `step`.
pub fn step_values(context: &Context, plan: &Plan, step: &Step, claim: Option<&str>) -> Value {
    let path = shown_path(&context.root_name(), &step.path);
    let read = context.plans.read(Path::new(&step.path)).map(|it| it.bytes).unwrap_or_default();
    let start = crate::text::front_matter::split(&read).body_start();
    let body = String::from_utf8_lossy(read.get(start..).unwrap_or_default());
    let attempt = |it: &crate::plan::records::Attempt| {
        json!({
            "outcome": it.outcome.as_deref().unwrap_or_default(),
            "notes": it.notes.as_deref().map(placeholders::one_line).unwrap_or_default(),
        })
    };
    json!({
        "plan": plan.id.as_str(),
        "plan_word": quoted(plan.id.as_str()),
        "plan_title": placeholders::one_line(&plan.title),
        "step": step.id.to_string(),
        "step_word": quoted(&step.id.to_string()),
        "number": step.id.number.to_string(),
        "title": placeholders::one_line(&step.title),
        "body": body.trim(),
        "path": path,
        "claim": claim.unwrap_or_default(),
        "touches": step.touches.as_deref().unwrap_or_default(),
        "verify": step.verify.iter().map(|it| it.run.as_str()).collect::<Vec<_>>(),
        "attempts": step.attempts.iter().map(attempt).collect::<Vec<_>>(),
    })
}
