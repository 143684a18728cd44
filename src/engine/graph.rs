//! A plan's dependencies as text, Mermaid or Graphviz.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::plan::id::StepId;
use crate::plan::model::{Plan, Step};
use crate::plan::words::{Stated, StepStatus};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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

/// Draws the steps of a plan and what they wait for; steps of other plans appear by their id.
pub(crate) fn draw(plan: &Plan, form: GraphForm) -> String {
    match form {
        GraphForm::Text => text(plan),
        GraphForm::Mermaid => mermaid(plan),
        GraphForm::Dot => dot(plan),
    }
}

/// Says a status with one character that also reads without colour.
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

/// One line a step, steps in levels: each level waits only for those above it.
fn text(plan: &Plan) -> String {
    let mut drawn = format!("{}  {}\n", plan.id, plan.title);
    let levels = levels(plan);
    for step in &plan.steps {
        let depth = levels.get(&step.id).copied().unwrap_or(0);
        let waits = step.depends.iter().map(|it| short(plan, it)).collect::<Vec<_>>();
        let arrow = if waits.is_empty() { String::new() } else { format!("  ← {}", waits.join(", ")) };
        let indent = "  ".repeat(depth.min(20));
        writeln!(drawn, "{indent}{} {}  {}{arrow}", mark(&step.status), step.id.number, step.title).ok();
    }
    drawn
}

/// The length of the longest chain of dependencies before each step; steps of a cycle count as level 0.
fn levels(plan: &Plan) -> BTreeMap<StepId, usize> {
    let mut levels: BTreeMap<StepId, usize> = BTreeMap::new();
    // In most plans dependencies point backwards, so one round settles all; a chain needs at most one a step.
    for _ in 0..plan.steps.len().min(100) {
        let mut changed = false;
        for step in &plan.steps {
            let above = step
                .depends
                .iter()
                .filter(|it| it.plan == plan.id && **it != step.id && plan.find(it).is_some());
            let level = above
                .map(|it| levels.get(it).copied().unwrap_or(0) + 1)
                .max()
                .unwrap_or(0)
                .min(plan.steps.len());
            changed |= levels.insert(step.id.clone(), level) != Some(level);
        }
        if !changed {
            break;
        }
    }
    levels
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
    step.status.known().map_or("pending", |it| crate::plan::words::Status::word(it))
}

/// Plain names for all steps that are drawn.
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
    plan.steps.iter().flat_map(|step| step.depends.iter().map(move |it| (it, &step.id)))
}
