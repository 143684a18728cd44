//! Problems as diagnostics: where each begins and ends in the text, and the related places.

use std::collections::HashSet;
use std::ops::Range;
use std::path::Path;

use serde_json::{Value, json};

use super::documents::Document;
use super::positions::offset_of_place;
use super::tree::Judged;
use super::uri;
use crate::plan::id::StepId;
use crate::plan::model::Step;
use crate::plan::plans::Plans;
use crate::plan::problem::{Code, Problem, Severity};
use crate::text::front_matter;
use crate::text::line_index::Place;
use crate::text::yaml::{Tree, View};

/// The diagnostics of a document. `judged` has the other places; without it there are none.
pub(super) fn all(
    document: &Document,
    root: &Path,
    problems: &[Problem],
    judged: Option<&Judged>,
) -> Vec<Value> {
    let tree = Tree::of_file(document.text.as_bytes());
    let one = |it: &Problem| {
        let mut diagnostic = json!({
            "range": document.range(&extent(&document.text, tree.as_ref(), it)),
            "severity": if it.severity() == Severity::Error { 1 } else { 2 },
            "code": it.code.text(),
            "source": "planwatch",
            "message": message(it),
        });
        let related = judged.map(|judged| related(root, judged, it)).unwrap_or_default();
        if !related.is_empty() {
            diagnostic["relatedInformation"] = related.into();
        }
        diagnostic
    };
    problems.iter().map(one).collect()
}

fn message(problem: &Problem) -> String {
    match problem.hint.as_str() {
        "" => problem.message.clone(),
        hint => format!("{}; {hint}", problem.message),
    }
}

/// The range of a problem: the YAML value that begins at its place, else the word there. One of the whole
/// file is shown at its first line.
pub(super) fn extent(text: &str, tree: Option<&Tree>, problem: &Problem) -> Range<usize> {
    let start = offset_of_place(text, Place { line: problem.line, column: problem.column });
    let line_end = start + text[start..].find(['\r', '\n']).unwrap_or(text.len() - start);
    if (problem.line, problem.column) == (1, 1) {
        return start..line_end;
    }
    let yaml = match front_matter::split(text.as_bytes()).header {
        front_matter::Header::Present { yaml, .. } => yaml.start,
        _ => 0,
    };
    let value = tree.and_then(|it| begins_at(it.root(), start.checked_sub(yaml)?));
    if let Some(end) = value.map(|it| yaml + it.end).filter(|it| *it > start && *it <= text.len()) {
        // A mark over several lines is not more helpful than one line.
        return start..end.min(line_end.max(start));
    }
    let is_end = |c: char| c.is_whitespace() || matches!(c, ',' | ']' | '}' | ')');
    let word = text[start..line_end].find(is_end).map_or(line_end, |it| start + it);
    if word > start { start..word } else { start..line_end }
}

/// The innermost value that begins at a byte.
fn begins_at(root: View<'_>, at: usize) -> Option<Range<usize>> {
    let mut open = vec![root];
    let mut found = None;
    while let Some(view) = open.pop() {
        let span = view.span();
        if view.is_alias() {
            continue;
        }
        if span.start == at && span.end > at {
            found = Some(span);
        }
        open.extend(view.items());
        open.extend(view.own_entries().flat_map(|(key, value)| [key, value]));
    }
    found
}

/// The other places that belong to a problem: the steps of a cycle, the other file with a number.
fn related(root: &Path, judged: &Judged, problem: &Problem) -> Vec<Value> {
    let Some((plan, step)) = judged.step(&problem.path) else { return Vec::new() };
    let place = |path: &str, at: Place, message: String| {
        let position = json!({"line": at.line.saturating_sub(1), "character": at.column.saturating_sub(1)});
        let range = json!({"start": position, "end": position});
        json!({"location": {"uri": uri::of_path(&root.join(path)), "range": range}, "message": message})
    };
    match problem.code {
        Code::DependencyCycle => {
            let partners = partners(&judged.plans, step).into_iter();
            partners
                .map(|(it, waits_for, at)| {
                    place(&it.path, at, format!("`{}` waits for `{waits_for}`", it.id))
                })
                .collect()
        }
        Code::DuplicateStepNumber => {
            let others =
                plan.steps.iter().filter(|it| it.id.number == step.id.number && it.path != step.path);
            others.map(|it| place(&it.path, Place::START, format!("`{}` is here, too", it.id))).collect()
        }
        _ => Vec::new(),
    }
}

/// The most steps that are followed from one step to another, and the most places that are shown.
const MOST_FOLLOWED: usize = 1_000;
const MOST_SHOWN: usize = 6;

/// The steps through which a step waits for itself, each with the dependency that leads on, and where it is written.
fn partners<'a>(plans: &'a Plans, step: &'a Step) -> Vec<(&'a Step, &'a StepId, Place)> {
    let leads_back = |from: &'a StepId| {
        let (mut seen, mut open) = (HashSet::new(), vec![from]);
        while let Some(id) = open.pop() {
            if *id == step.id {
                return true;
            }
            if seen.len() < MOST_FOLLOWED && seen.insert(id) {
                open.extend(plans.step(id).into_iter().flat_map(|it| &it.depends));
            }
        }
        false
    };
    let (mut found, mut seen, mut at) = (Vec::new(), HashSet::new(), step);
    while seen.insert(&at.id) && found.len() < MOST_SHOWN {
        let Some((nth, next)) = at.depends.iter().enumerate().find(|(_, it)| leads_back(it)) else { break };
        if at.id != step.id {
            found.push((at, next, at.depends_at.get(nth).copied().unwrap_or(Place::START)));
        }
        let Some(next) = plans.step(next) else { break };
        at = next;
    }
    found
}
