//! Code lenses show the state of a plan or step, and offer commands for a step. Inlay hints show the states of
//! dependencies, and the progress of a plan.

use std::ops::Range;

use serde_json::{Value, json};

use super::documents::Document;
use super::hover;
use super::navigation;
use super::protocol::{Answer, Range as LspRange};
use super::references::{self, Form, Target};
use super::tree::{Judged, PlanFile, Role, Tree};
use crate::plan::model::{Plan, Step};
use crate::plan::rules::{self, Obstacle};
use crate::plan::transitions::{self, Verb};
use crate::plan::words::StepStatus;

pub(super) fn inlay_hints(tree: &mut Tree, document: &Document, file: &PlanFile, range: &LspRange) -> Answer {
    let Some(key) = file.key.clone() else { return Ok(Value::Null) };
    let wanted = document.offsets(range);
    let judged = tree.judged(&key)?;
    let hint = |at: usize, label: String| json!({"position": document.position(at), "label": label, "paddingLeft": true});
    let mut hints = Vec::new();
    for named in references::all(&document.text, file) {
        let is_dependency = matches!(named.form, Form::Depends | Form::StepsList);
        let at = behind_quote(&document.text, &named.range);
        if let Target::Step(id) = &named.target
            && is_dependency
            && (wanted.start..=wanted.end).contains(&at)
        {
            let step = judged.plans.step(id);
            let label = step.map_or_else(|| "missing".to_owned(), state);
            hints.push(hint(at, label));
        }
    }
    if let Some(plan) = judged.plan().filter(|_| file.role == Role::Plan) {
        let heading = navigation::heading(&document.text);
        let progress = rules::progress(&judged.plans, plan, judged.now);
        if progress.total > 0 && (wanted.start..=wanted.end).contains(&heading.end) && !heading.is_empty() {
            hints.push(hint(heading.end, format!("{}/{}", progress.closed(), progress.total)));
        }
    }
    Ok(hints.into())
}

fn state(step: &Step) -> String {
    let is_completed = step.is_closed() && step.status.is(StepStatus::Completed);
    if is_completed { "✓".to_owned() } else { step.standing().word().to_owned() }
}

/// The end of a name, after its closing quote if there is one.
fn behind_quote(text: &str, range: &Range<usize>) -> usize {
    range.end + usize::from(text[range.end..].starts_with(['"', '\'']))
}

pub(super) fn code_lenses(tree: &mut Tree, document: &Document, file: &PlanFile) -> Answer {
    let Some(key) = file.key.clone() else { return Ok(Value::Null) };
    let range = document.range(&navigation::heading(&document.text));
    let judged = tree.judged(&key)?;
    let titles = match &file.role {
        Role::Plan => judged.plan().map(|it| vec![(plan_state(judged, it), "")]),
        Role::Step(_) => judged.step(&file.relative).map(|(plan, step)| step_lenses(judged, plan, step)),
        Role::OutsidePlans => None,
    };
    let lens = |(title, command): (String, &str)| {
        let arguments = if command.is_empty() { json!([]) } else { json!([{"uri": document.uri}]) };
        json!({"range": range, "command": {"title": title, "command": command, "arguments": arguments}})
    };
    Ok(titles.unwrap_or_default().into_iter().map(lens).collect())
}

fn plan_state(judged: &Judged, plan: &Plan) -> String {
    let progress = rules::progress(&judged.plans, plan, judged.now);
    let next = rules::next(&judged.plans, plan, judged.now);
    let said = match next.step {
        Some(step) => format!("next: {}", step.id.number),
        None => next.state.word().to_owned(),
    };
    format!("{}/{} · {said}", progress.closed(), progress.total)
}

/// A lens with the state of a step, then one for each of the commands start, done, claim and release that is possible now.
fn step_lenses(judged: &Judged, plan: &Plan, step: &Step) -> Vec<(String, &'static str)> {
    let is_ready = rules::is_ready(&judged.plans, plan, step, judged.now);
    let mut lenses = vec![(step_state(judged, plan, step, is_ready), "")];
    if may(judged, plan, step, Verb::Start) && is_ready {
        lenses.push(("start".to_owned(), "planwatch.start"));
    }
    if may(judged, plan, step, Verb::Done) {
        lenses.push(("done".to_owned(), "planwatch.done"));
    }
    if is_ready {
        lenses.push(("claim".to_owned(), "planwatch.claim"));
    }
    if step.claim_in_force().is_some() {
        lenses.push(("release".to_owned(), "planwatch.release"));
    }
    lenses
}

fn step_state(judged: &Judged, plan: &Plan, step: &Step, is_ready: bool) -> String {
    let status = step.standing();
    if is_ready {
        return "ready".to_owned();
    }
    if let Some(claim) = step.claim_in_force() {
        return format!("{} · claimed by {}", status.word(), claim.by.as_deref().unwrap_or("another worker"));
    }
    let waits = if step.is_closed() { String::new() } else { hover::waits(judged, plan, step) };
    match (status.is(StepStatus::Pending), waits.is_empty()) {
        (true, false) => waits,
        (false, false) => format!("{} · {waits}", status.word()),
        (_, true) => status.word().to_owned(),
    }
}

/// Whether `verb` is possible for a step, according to the open texts.
pub(super) fn may(judged: &Judged, plan: &Plan, step: &Step, verb: Verb) -> bool {
    let is_allowed = transitions::is_allowed(step.status.known(), verb) && !step.status.is(verb.target());
    let is_open = |it: &Obstacle| {
        let is_waiting = matches!(it, Obstacle::Dependency { .. } | Obstacle::Before { .. });
        is_waiting || matches!(it, Obstacle::Confirmation | Obstacle::PhaseConfirmation { .. })
    };
    let is_hindered = || rules::obstacles(&judged.plans, plan, step, judged.now).iter().any(is_open);
    is_allowed && !plan.is_archived && !(verb.needs_readiness() && is_hindered())
}
