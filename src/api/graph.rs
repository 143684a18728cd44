//! A plan's dependencies as text, Mermaid or Graphviz.

use std::collections::BTreeMap;
use std::fmt::Write;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::plan::id::StepId;
use crate::plan::model::{Plan, Step};
use crate::plan::words::{Stated, StepStatus};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum GraphForm {
    Text,
    Mermaid,
    Dot,
}

impl GraphForm {
    pub fn word(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Mermaid => "mermaid",
            Self::Dot => "dot",
        }
    }
}

/// Draws the steps of a plan and their dependencies, open and closed. Steps of other plans are shown only by their ids.
pub(crate) fn draw(plan: &Plan, form: GraphForm) -> String {
    match form {
        GraphForm::Text => text(plan),
        GraphForm::Mermaid => mermaid(plan),
        GraphForm::Dot => dot(plan),
    }
}

/// Returns the character that shows a status. The characters can be told apart without color.
pub(crate) fn mark(status: &Stated<StepStatus>) -> char {
    match status.known() {
        Some(StepStatus::Pending) => '○',
        Some(StepStatus::InProgress) => '◐',
        Some(StepStatus::Completed) => '●',
        Some(StepStatus::Failed) => '✗',
        Some(StepStatus::Blocked) => '■',
        Some(StepStatus::Skipped) => '–',
        None => '?',
    }
}

/// A line for the plan, and one for each step, with the numbers or ids of the steps that the step depends on.
fn text(plan: &Plan) -> String {
    let mut drawn = format!("{}  {}\n", plan.id, plan.title);
    let width = plan.steps.iter().map(|it| it.id.number.to_string().len()).max().unwrap_or(0);
    for step in &plan.steps {
        let ranges = step.ranges.iter().map(|it| format!("{} to {}", it.first, it.last));
        let named = waits(plan, step).filter(|it| !step.has_in_range(it)).map(|it| short(plan, it));
        let waits = ranges.chain(named).collect::<Vec<_>>();
        let arrow = if waits.is_empty() { String::new() } else { format!("  ← {}", waits.join(", ")) };
        writeln!(
            drawn,
            "{} {:>width$}  {}{arrow}",
            mark(&step.standing()),
            step.id.number.to_string(),
            step.title
        )
        .ok();
    }
    drawn
}

fn short(plan: &Plan, id: &StepId) -> String {
    if id.plan == plan.id { id.number.to_string() } else { id.to_string() }
}

fn mermaid(plan: &Plan) -> String {
    let mut drawn = "flowchart TD\n".to_owned();
    let names = names(plan);
    for step in &plan.steps {
        let label = quoted(&format!("{} {}", step.id.number, step.title)).replace('"', "&quot;");
        writeln!(drawn, "  {}[\"{label}\"]:::{}", names[&step.id], class(step)).ok();
    }
    for (id, name) in names.iter().filter(|(id, _)| plan.find(id).is_none() || id.plan != plan.id) {
        writeln!(drawn, "  {name}([\"{}\"])", quoted(&id.to_string()).replace('"', "&quot;")).ok();
    }
    for (from, to) in edges(plan) {
        writeln!(drawn, "  {} --> {}", names[from], names[to]).ok();
    }
    for (name, fill) in [
        ("completed", "#d4edda"),
        ("in_progress", "#fff3cd"),
        ("failed", "#f8d7da"),
        ("blocked", "#f5c6cb"),
        ("skipped", "#e2e3e5"),
        ("pending", "#ffffff"),
    ] {
        writeln!(drawn, "  classDef {name} fill:{fill},stroke:#555").ok();
    }
    drawn
}

fn dot(plan: &Plan) -> String {
    let mut drawn = "digraph plan {\n  rankdir=TB;\n  node [shape=box];\n".to_owned();
    let names = names(plan);
    for (id, name) in &names {
        let step = plan.find(id).filter(|_| id.plan == plan.id);
        let label = step.map_or_else(|| id.to_string(), |it| format!("{} {}", it.id.number, it.title));
        let style = step.map_or("dashed", |it| if it.is_closed() { "filled" } else { "solid" });
        let label = label.replace('\\', "\\\\").replace('"', "\\\"");
        writeln!(drawn, "  {name} [label=\"{}\", style={style}];", quoted(&label)).ok();
    }
    for (from, to) in edges(plan) {
        writeln!(drawn, "  {} -> {};", names[from], names[to]).ok();
    }
    drawn.push_str("}\n");
    drawn
}

/// A label on one line.
fn quoted(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

fn class(step: &Step) -> &str {
    step.standing().known().map_or("pending", |it| crate::plan::words::Status::word(it))
}

/// A short name, such as `s0`, for each step that is drawn.
fn names(plan: &Plan) -> BTreeMap<&StepId, String> {
    let ids = plan.steps.iter().flat_map(|it| std::iter::once(&it.id).chain(&it.depends));
    let mut names = BTreeMap::new();
    for id in ids {
        let next = names.len();
        names.entry(id).or_insert_with(|| format!("s{next}"));
    }
    names
}

fn edges(plan: &Plan) -> impl Iterator<Item = (&StepId, &StepId)> {
    plan.steps.iter().flat_map(|step| waits(plan, step).map(move |it| (it, &step.id)))
}

/// The steps that a step depends on and, in a sequential plan, the preceding step. Only the first and the last step of a
/// long range are returned.
fn waits<'a>(plan: &'a Plan, step: &'a Step) -> impl Iterator<Item = &'a StepId> {
    let before = plan.before(step).map(|it| &it.id).filter(|it| !step.depends.contains(it));
    step.depends.iter().chain(before)
}
