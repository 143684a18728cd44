//! Converts problems to diagnostics: finds the range of each problem in the text, and related locations.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::path::Path;

use serde_json::{Value, json};

use super::documents::Document;
use super::positions::{Places, lone_return};
use super::uri;
use crate::plan::file_name;
use crate::plan::id::{PlanId, StepId, read_step_id};
use crate::plan::model::{Plan, Step};
use crate::plan::plans::{self, Plans};
use crate::plan::problem::{Code, Problem, Severity};
use crate::plan::references;
use crate::plan::rules;
use crate::text::front_matter;
use crate::text::line_index::{self, Place};
use crate::text::markdown;
use crate::text::yaml::{Tree, View};

/// The diagnostics of a document. `related` returns the related locations of a problem.
pub(super) fn all(
    document: &Document,
    root: &Path,
    problems: &[Problem],
    related: impl Fn(&Problem) -> Vec<Related>,
) -> Vec<Value> {
    if problems.is_empty() {
        return Vec::new();
    }
    let extents = Extents::of(&document.text);
    let one = |it: &Problem| {
        let mut diagnostic = json!({
            "range": document.range(&extents.at(it)),
            "severity": if it.severity() == Severity::Error { 1 } else { 2 },
            "code": it.code.text(),
            "source": "planwatch",
            "message": message(it),
        });
        let information: Vec<_> = related(it).iter().map(|it| it.to_json(root)).collect();
        if !information.is_empty() {
            diagnostic["relatedInformation"] = information.into();
        }
        diagnostic
    };
    problems.iter().map(one).collect()
}

/// A hint for a text with a carriage return that no line feed follows. In the protocol, such a carriage return ends a
/// line, but not in all editors. Therefore all diagnostics below it may be shown at the wrong line.
pub(super) fn line_ends(document: &Document) -> Option<Value> {
    let line = document.line_of(lone_return(&document.text)?);
    Some(json!({
        "range": document.range(&document.line(line)),
        "severity": 4,
        "code": "lone-carriage-return",
        "source": "planwatch",
        "message": "this line ends with a carriage return alone, which only some programs treat as a line end; convert the line ends",
    }))
}

fn message(problem: &Problem) -> String {
    match problem.hint.as_str() {
        "" => problem.message.clone(),
        hint => format!("{}; {hint}", problem.message),
    }
}

/// Finds the byte ranges of problems. One `Extents` serves all problems of a text, because there may be hundreds.
pub(super) struct Extents<'a> {
    text: &'a str,
    places: Places<'a>,
    /// For each offset at which a YAML key or value begins: the end of the innermost one that begins there.
    values: HashMap<usize, usize>,
}

impl<'a> Extents<'a> {
    pub(super) fn of(text: &'a str) -> Self {
        let yaml = match front_matter::split(text.as_bytes()).header {
            front_matter::Header::Present { yaml, .. } => yaml.start,
            _ => 0,
        };
        let values = Tree::of_file(text.as_bytes()).map_or_else(HashMap::new, |it| values(it.root(), yaml));
        Self { text, places: Places::of(text), values }
    }

    pub(super) fn offset(&self, problem: &Problem) -> usize {
        self.places.offset(Place { line: problem.line, column: problem.column })
    }

    /// The byte range of a problem: the YAML key or value that begins at the problem's position. If none begins there, it is
    /// the range of the word there. A problem of the whole file has the range of the first line.
    pub(super) fn at(&self, problem: &Problem) -> Range<usize> {
        let (text, start) = (self.text, self.offset(problem));
        let line_end = start + text[start..].find(['\r', '\n']).unwrap_or(text.len() - start);
        if (problem.line, problem.column) == (1, 1) {
            return start..line_end;
        }
        let value = self.values.get(&start).copied();
        if let Some(end) = value.filter(|it| *it > start && *it <= text.len()) {
            // If a value has several lines, only the first line is marked.
            return start..end.min(line_end.max(start));
        }
        let is_end = |c: char| c.is_whitespace() || matches!(c, ',' | ']' | '}' | ')');
        let word = text[start..line_end].find(is_end).map_or(line_end, |it| start + it);
        if word > start { start..word } else { start..line_end }
    }
}

/// The end of each key and value of a front matter, by its start. If several have the same start, the innermost is used.
fn values(root: View<'_>, yaml: usize) -> HashMap<usize, usize> {
    let mut open = vec![root];
    let mut found = HashMap::new();
    while let Some(view) = open.pop() {
        let span = view.span();
        if view.is_alias() {
            continue;
        }
        if span.end > span.start {
            found.insert(yaml + span.start, yaml + span.end);
        }
        open.extend(view.items());
        open.extend(view.own_entries().flat_map(|(key, value)| [key, value]));
    }
    found
}

/// A location that is related to a problem elsewhere, with an explanation.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Related {
    /// Relative to the plans directory.
    path: String,
    at: Place,
    message: String,
}

impl Related {
    fn new(path: impl Into<String>, at: Place, message: impl Into<String>) -> Self {
        Self { path: path.into(), at, message: message.into() }
    }

    fn to_json(&self, root: &Path) -> Value {
        let position =
            json!({"line": self.at.line.saturating_sub(1), "character": self.at.column.saturating_sub(1)});
        let range = json!({"start": position, "end": position});
        let location = json!({"uri": uri::of_path(&root.join(&self.path)), "range": range});
        json!({"location": location, "message": self.message})
    }
}

/// The related locations of a problem, such as the steps of a cycle, the plan that lacks a step, or another file with the
/// same step number. A related location that requires the file's text is found by [`in_text`].
pub(super) fn related(plans: &Plans, plan: &Plan, problem: &Problem) -> Vec<Related> {
    match problem.code {
        Code::ProgramMissing => plan.program.iter().filter_map(|it| of_program(plans, it)).collect(),
        Code::NameClash => spelled_alike(plans, plan),
        Code::DependencyMissing => missing(plans, problem).into_iter().collect(),
        Code::DependencyCycle | Code::DuplicateStepNumber | Code::WaitsForOpen => {
            let step = plan.steps.iter().find(|it| it.path == problem.path);
            step.map(|it| of_step(plans, (plan, it), problem)).unwrap_or_default()
        }
        _ => Vec::new(),
    }
}

/// The related location of [`Code::DependenciesDisagree`]: the Dependencies section of the step's text. If there is no such
/// section, or if the problem itself is at the start of this section, the location is the file of the step's plan. `plan` is
/// that file's path and the plan's id. `None` for a problem with another code.
pub(super) fn in_text(text: &str, plan: (&str, &PlanId), problem: &Problem) -> Option<Related> {
    (problem.code == Code::DependenciesDisagree).then(|| {
        match section(text).filter(|it| *it != (problem.line, problem.column)) {
            Some((line, column)) => {
                Related::new(&problem.path, Place { line, column }, "the Dependencies section is here")
            }
            None => Related::new(plan.0, Place::START, format!("the Steps list of `{}` is here", plan.1)),
        }
    })
}

fn of_step(plans: &Plans, (plan, step): (&Plan, &Step), problem: &Problem) -> Vec<Related> {
    match problem.code {
        Code::DependencyCycle => partners(plans, step)
            .into_iter()
            .map(|(it, waits_for, at)| {
                Related::new(&it.path, at, format!("`{}` waits for `{waits_for}`", it.id))
            })
            .collect(),
        Code::DuplicateStepNumber => {
            let others =
                plan.steps.iter().filter(|it| it.id.number == step.id.number && it.path != step.path);
            let here = |it: &Step| Related::new(&it.path, Place::START, format!("`{}` is here, too", it.id));
            others.map(here).collect()
        }
        Code::WaitsForOpen => {
            let open = rules::open_dependency_ids(plans, plan, step).filter_map(|it| it.1);
            let open = open.take(MOST_SHOWN).filter_map(|it| Some((it, file_of(plans, it)?)));
            open.map(|(it, path)| Related::new(path, Place::START, format!("`{}` is open", it.id))).collect()
        }
        _ => Vec::new(),
    }
}

/// The file that contains a step: the step's own file if it has one, otherwise its plan's file.
fn file_of<'a>(plans: &'a Plans, step: &'a Step) -> Option<&'a str> {
    if step.has_file() { Some(&step.path) } else { plans.get(&step.id.plan).map(|it| it.path.as_str()) }
}

/// The line and column of the start of the Dependencies section, counted as in problems.
fn section(text: &str) -> Option<(u32, u32)> {
    let body = front_matter::split(text.as_bytes()).body_start();
    let section = references::section(&markdown::outline(&text[body..]))?;
    let Place { line, column } = line_index::place(text.as_bytes(), body + section.start);
    Some((line, column))
}

/// The location for a problem that names a missing step: the file of that step's plan.
fn missing(plans: &Plans, problem: &Problem) -> Option<Related> {
    let step = problem.message.split('`').nth(1).and_then(read_step_id)?;
    let message = match plans.get(&step.plan) {
        Some(_) => format!("the plan `{}` has no step {}", step.plan, step.number),
        None => format!("there is no plan `{}` here", step.plan),
    };
    place_of_plan(plans, &step.plan, message)
}

fn of_program(plans: &Plans, program: &PlanId) -> Option<Related> {
    let message = match plans.get(program) {
        Some(_) => format!("the plan `{program}` is here"),
        None => format!("there is no plan `{program}` here"),
    };
    place_of_plan(plans, program, message)
}

/// The file of a plan. If there is no such plan, the path that its file would have.
fn place_of_plan(plans: &Plans, id: &PlanId, message: String) -> Option<Related> {
    let known = plans.get(id).map(|it| it.path.clone());
    let new = || PlanId::is_plan_name(id.as_str()).then(|| format!("{id}/{}", file_name::PLAN_FILE));
    known.or_else(new).map(|path| Related::new(path, Place::START, message))
}

fn spelled_alike(plans: &Plans, plan: &Plan) -> Vec<Related> {
    let folded = plans::folded_name(plan.id.as_str());
    let is_like = |it: &&Plan| {
        it.path != plan.path
            && it.is_archived == plan.is_archived
            && plans::folded_name(it.id.as_str()) == folded
    };
    let here = |it: &Plan| Related::new(&it.path, Place::START, format!("`{}` is here", it.id));
    plans.iter().filter(is_like).take(MOST_SHOWN).map(here).collect()
}

/// The maximum number of steps that the search for a cycle visits.
const MOST_FOLLOWED: usize = 1_000;
/// The maximum number of steps or plans that are listed as related to a cycle, an open dependency or a name clash.
const MOST_SHOWN: usize = 6;

/// The steps of the shortest dependency cycle through `step`, without `step` itself, and at most `MOST_SHOWN` of them. Each
/// step has the dependency that continues the cycle, and the position of this dependency in the step's file.
fn partners<'a>(plans: &'a Plans, step: &'a Step) -> Vec<(&'a Step, &'a StepId, Place)> {
    // Each found step with two indexes. The first is the index, in this list, of the step that waits for it. The second
    // is the index of the dependency in the waiting step's `depends`.
    let mut found: Vec<(&Step, usize, usize)> = vec![(step, 0, 0)];
    let mut seen = HashSet::new();
    let mut at = 0;
    while let Some((from, ..)) = found.get(at).copied() {
        for (nth, next) in from.depends.iter().enumerate() {
            if *next == step.id {
                return way(&found, (at, nth));
            }
            if found.len() < MOST_FOLLOWED
                && seen.insert(next)
                && let Some(next) = plans.step(next)
            {
                found.push((next, at, nth));
            }
        }
        at += 1;
    }
    Vec::new()
}

/// The path from the first found step to the step with the index `at`, without the first step. `nth` is the index of the
/// dependency that closes the cycle.
fn way<'a>(
    found: &[(&'a Step, usize, usize)],
    (mut at, mut nth): (usize, usize),
) -> Vec<(&'a Step, &'a StepId, Place)> {
    let mut way = Vec::new();
    while at > 0 {
        let (step, before, leads) = found[at];
        let place = step.depends_at.get(nth).copied().unwrap_or(Place::START);
        way.push((step, &step.depends[nth], place));
        (at, nth) = (before, leads);
    }
    way.reverse();
    way.truncate(MOST_SHOWN);
    way
}
