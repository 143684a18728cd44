//! Hover: describes a step, a plan, a key or a time in a few lines.

use std::fmt::Write;

use serde_json::{Value, json};

use super::anatomy::{self, Spot};
use super::catalog::Catalog;
use super::documents::Document;
use super::keys;
use super::protocol::{Answer, Position};
use super::references::{self, Target};
use super::tree::{Judged, PlanFile, Role, Tree};
use crate::plan::id::{PlanId, StepId};
use crate::plan::model::{Plan, Step};
use crate::plan::rules::{self, Obstacle};
use crate::plan::time::Time;

pub(super) fn hover(tree: &mut Tree, document: &Document, file: &PlanFile, position: Position) -> Answer {
    let at = document.offset(position);
    let named = references::all(&document.text, file);
    if let Some(named) = references::at(&named, at) {
        let judged = file.key.as_ref().and_then(|it| tree.judged(it).ok());
        let said = judged.and_then(|judged| match &named.target {
            Target::Step(step) => known_step(judged, step),
            Target::Plan(plan) => known_plan(judged, plan),
        });
        let said = said.or_else(|| from_catalog(tree.catalog.as_ref(), &named.target));
        // If the file belongs to no plan and not all plans are loaded, it is unknown whether the target exists.
        if said.is_none() && file.key.is_none() && tree.catalog.is_none() {
            return Ok(Value::Null);
        }
        let said = said.unwrap_or_else(|| missing(&named.target));
        return Ok(shown(document, &named.range, &said));
    }
    if file.role == Role::OutsidePlans {
        return Ok(Value::Null);
    }
    match anatomy::spot(&document.text, at) {
        Some(Spot::Key { word }) => {
            let meaning = keys::meaning(&file.role, &document.text[word.clone()]);
            Ok(meaning.map_or(Value::Null, |it| shown(document, &word, it)))
        }
        Some(Spot::Nested { word, .. } | Spot::Value { word, .. }) => {
            let time = document.text[word.clone()].parse::<Time>().ok();
            let now = tree.context().map(|it| it.now).ok();
            let said = time.zip(now).map(|(time, now)| format!("{}, {time}", ago(time, now)));
            Ok(said.map_or(Value::Null, |it| shown(document, &word, &it)))
        }
        _ => Ok(Value::Null),
    }
}

fn shown(document: &Document, range: &std::ops::Range<usize>, text: &str) -> Value {
    json!({"contents": {"kind": "markdown", "value": text}, "range": document.range(range)})
}

/// Escapes text from a file, so that Markdown in a title is shown literally.
pub(super) fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for c in text.chars() {
        if matches!(c, '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '#' | '~' | '|' | '&' | '!' | '$') {
            plain.push('\\');
        }
        plain.push(if c.is_control() { ' ' } else { c });
    }
    plain
}

fn known_step(judged: &Judged, id: &StepId) -> Option<String> {
    let plan = judged.plans.get(&id.plan)?;
    let step = plan.find(id)?;
    let mut said =
        format!("**{}** {}\n\n{}", plain(&id.to_string()), plain(&step.title), about(judged, plan, step));
    if step.tasks_total > 0 {
        write!(said, " · tasks {}/{}", step.tasks_done, step.tasks_total).ok()?;
    }
    if let Some(assignee) = &step.assignee {
        write!(said, " · {}", plain(assignee)).ok()?;
    }
    if let Some(attempt) = step.attempts.last() {
        let outcome = attempt.outcome.as_deref().map(plain).unwrap_or_default();
        let when = attempt.at.map(|it| ago(it, judged.now)).unwrap_or_default();
        write!(said, "\n\nLast attempt: {outcome} {when}").ok()?;
    }
    Some(said)
}

/// The status of a step; for an open step also whether it is ready, or why it is not.
fn about(judged: &Judged, plan: &Plan, step: &Step) -> String {
    let status = plain(step.standing().word());
    if step.is_closed() {
        return status;
    }
    if rules::is_ready(&judged.plans, plan, step, judged.now) {
        return format!("{status} · ready");
    }
    let why = waits(judged, plan, step);
    if why.is_empty() { status } else { format!("{status} · {}", plain(&why)) }
}

/// The obstacles of a step except its status, in a few words.
pub(super) fn waits(judged: &Judged, plan: &Plan, step: &Step) -> String {
    let obstacles = rules::obstacles(&judged.plans, plan, step, judged.now);
    let steps = |it: &Obstacle| match it {
        Obstacle::Dependency { step, .. } | Obstacle::Before { step } => {
            Some(if step.plan == plan.id { step.number.to_string() } else { step.to_string() })
        }
        _ => None,
    };
    let named: Vec<_> = obstacles.iter().filter_map(steps).collect();
    let other = |it: &Obstacle| match it {
        Obstacle::Confirmation => Some("waits for a confirmation".to_owned()),
        Obstacle::PhaseConfirmation { phase } => Some(format!("waits for the confirmation of `{phase}`")),
        Obstacle::Faulty { code } => Some(format!("has a problem: {code}")),
        Obstacle::PlanFaulty => Some("the plan has a problem".to_owned()),
        Obstacle::PlanClosed => Some("no step of the plan can be claimed".to_owned()),
        Obstacle::Claimed { by } => Some(format!("claimed by {}", by.as_deref().unwrap_or("another worker"))),
        Obstacle::Status(_) | Obstacle::Dependency { .. } | Obstacle::Before { .. } => None,
    };
    let mut said: Vec<_> = obstacles.iter().filter_map(other).collect();
    if !named.is_empty() {
        let few = named.iter().take(6).cloned().collect::<Vec<_>>().join(", ");
        let more = if named.len() > 6 { format!(" and {} more", named.len() - 6) } else { String::new() };
        said.insert(0, format!("waits for {few}{more}"));
    }
    said.join(", ")
}

fn known_plan(judged: &Judged, id: &PlanId) -> Option<String> {
    let plan = judged.plans.get(id)?;
    let progress = rules::progress(&judged.plans, plan, judged.now);
    let status = plan.shown_status().0;
    Some(format!(
        "**{}** {}\n\n{} · {}/{}",
        plain(id.as_str()),
        plain(&plan.title),
        plain(status.word()),
        progress.closed(),
        progress.total
    ))
}

/// Describes a step or plan from the catalog, which also contains plans that the open file does not depend on.
fn from_catalog(catalog: Option<&Catalog>, target: &Target) -> Option<String> {
    let catalog = catalog?;
    match target {
        Target::Step(id) => {
            let (_, step) = catalog.step(id)?;
            Some(format!(
                "**{}** {}\n\n{}",
                plain(&id.to_string()),
                plain(&step.title),
                plain(step.status.word())
            ))
        }
        Target::Plan(id) => {
            let it = catalog.get(id)?;
            let (status, closed, total) = (plain(it.status.word()), it.n_closed(), it.steps.len());
            Some(format!("**{}** {}\n\n{status} · {closed}/{total}", plain(id.as_str()), plain(&it.title)))
        }
    }
}

fn missing(target: &Target) -> String {
    match target {
        Target::Step(id) => format!("There is no step **{}**.", plain(&id.to_string())),
        Target::Plan(id) => format!("There is no plan **{}**.", plain(id.as_str())),
    }
}

/// The difference between a time and now, in words.
pub(super) fn ago(time: Time, now: Time) -> String {
    let seconds = now.seconds_since(time);
    let (n, unit) = match seconds.unsigned_abs() {
        0..60 => return "just now".to_owned(),
        it @ 60..3_600 => (it / 60, "minute"),
        it @ 3_600..86_400 => (it / 3_600, "hour"),
        it => (it / 86_400, "day"),
    };
    let s = if n == 1 { "" } else { "s" };
    if seconds > 0 { format!("{n} {unit}{s} ago") } else { format!("in {n} {unit}{s}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_said_in_words() {
        let now: Time = "2026-11-21T12:00:00Z".parse().unwrap();
        for (time, expected) in [
            ("2026-11-21T12:00:00Z", "just now"),
            ("2026-11-21T11:59:00Z", "1 minute ago"),
            ("2026-11-21T09:00:00Z", "3 hours ago"),
            ("2026-11-19T12:00:00Z", "2 days ago"),
            ("2026-11-23T12:00:00Z", "in 2 days"),
        ] {
            assert_eq!(ago(time.parse().unwrap(), now), expected, "{time}");
        }
    }

    #[test]
    fn markdown_in_a_title_is_escaped() {
        assert_eq!(plain("[x](y)\n`z`"), "\\[x\\](y) \\`z\\`");
    }
}
