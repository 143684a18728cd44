//! Collects the problems that loading the plans found, and adds those that only later checks find.

use std::collections::BTreeSet;
use std::path::Path;

use crate::api::context::Context;
use crate::plan::merge::CLAIMED_TWICE;
use crate::plan::model::{Plan, Step};
use crate::plan::plans::Plans;
use crate::plan::problem::{Code, Problem};
use crate::plan::records::Attempt;
use crate::plan::rules;
use crate::plan::time::Time;
use crate::plan::words::{self, PlanStatus, StepStatus};
use crate::store::{knowledge, prompt};
use crate::text::front_matter::{self, Header};
use crate::text::yaml::{self, View};

/// All problems that `check` reports, sorted. Exceptions: problems of the configuration, of git's history, of shared claims,
/// and of names that are not UTF-8.
///
/// `found` contains those that loading all plans found and that belong to no plan.
pub(crate) fn all(context: &Context, plans: &Plans, mut found: Vec<Problem>) -> Vec<Problem> {
    found.extend(plans.iter().flat_map(|it| of_plan(context, plans, it)));
    found.extend(outside_plans(context));
    found.sort_unstable();
    found.dedup();
    found
}

/// The problems of a plan and its steps, in no particular order.
pub(crate) fn of_plan(context: &Context, plans: &Plans, plan: &Plan) -> Vec<Problem> {
    let mut found = plan.problems.clone();
    found.extend(missing_phases(context, plan));
    for step in &plan.steps {
        found.extend(step.problems.iter().cloned());
        found.extend(future_time(context, step));
        found.extend(claimed_twice(step));
        found.extend(waits_for_open(plans, plan, step));
    }
    found
}

/// The problems of decisions, insights, scripts and prompts.
pub(crate) fn outside_plans(context: &Context) -> Vec<Problem> {
    [knowledge::problems(context), prompt::problems(context)].concat()
}

/// Reports each entry of `confirm_phases` that is the phase of no step: it is probably misspelled, and then the steps that it
/// should hold back can be claimed. A plan without steps is not reported, and neither is a closed or archived plan.
fn missing_phases(context: &Context, plan: &Plan) -> Vec<Problem> {
    let is_open = matches!(plan.shown_status().0.known(), Some(PlanStatus::Draft | PlanStatus::Active));
    if plan.confirm_phases.is_empty() || plan.steps.is_empty() || plan.is_archived || !is_open {
        return Vec::new();
    }
    let phases: BTreeSet<_> = plan.steps.iter().filter_map(|it| it.phase.as_deref()).collect();
    let missing = plan.confirm_phases.iter().filter(|it| !phases.contains(it.as_str()));
    let problem = |name: &String| {
        let message = format!("no step has the phase `{name}`, so no step waits for its confirmation");
        let nearest = words::nearest(name, phases.iter().copied());
        let hint = nearest.map(|it| format!("did you mean `{it}`?"));
        let hint = hint.unwrap_or_else(|| "correct the name, or remove it".to_owned());
        let file = context.plans.read(Path::new(&plan.path)).map(|it| it.bytes).unwrap_or_default();
        let at = place_of_phase(&file, name).unwrap_or(0);
        Problem::at_byte(&plan.path, &file, at, Code::PhaseMissing, message, &hint)
    };
    missing.map(problem).collect()
}

/// The byte offset of an entry of `confirm_phases` in the file.
fn place_of_phase(file: &[u8], name: &str) -> Option<usize> {
    let (tree, start) = header(file)?;
    let phases = tree.root().get("confirm_phases")?;
    let listed = phases.items().find(|it| it.text() == Some(name)).map(|it| it.span().start);
    Some(start + listed.unwrap_or_else(|| phases.span().start))
}

/// Reports a step that two branches claimed at once, until it is closed.
fn claimed_twice(step: &Step) -> Option<Problem> {
    let is_lost = |it: &&Attempt| it.notes.as_deref() == Some(CLAIMED_TWICE);
    let lost = step.attempts.iter().rfind(is_lost).filter(|_| !step.is_closed())?;
    let by = lost.by.as_deref().unwrap_or("another worker");
    let message = format!("two branches claimed it at the same time; the claim of {by} ended");
    let hint = "both may have worked on it: compare what they did before you close it";
    Some(Problem::of_file(&step.path, Code::ClaimedTwice, message, hint))
}

/// Reports a completed step with an open dependency. A merge of two branches can cause this even if neither branch has
/// such a step.
fn waits_for_open(plans: &Plans, plan: &Plan, step: &Step) -> Option<Problem> {
    if !step.status.is(StepStatus::Completed) {
        return None;
    }
    let open = rules::open_dependency_ids(plans, plan, step).find_map(|it| it.1)?;
    let message = format!("it is completed, but depends on the open step `{}`", open.id);
    let hint = "reopen it, or remove the dependency";
    Some(Problem::of_file(&step.path, Code::WaitsForOpen, message, hint))
}

/// The clocks of machines differ, so a time up to five minutes in the future is not a problem.
const TOLERATED_SECONDS: i64 = 300;

fn future_time(context: &Context, step: &Step) -> Option<Problem> {
    let attempts = step.attempts.iter().filter_map(|it| it.at);
    let claim = step.claim.iter().filter_map(|it| it.at);
    let latest =
        attempts.chain(claim).max().filter(|at| at.seconds_since(context.now) > TOLERATED_SECONDS)?;
    let message = format!("{latest} is in the future");
    let hint = "correct the time, or the clock of the machine that wrote it";
    let file = context.plans.read(Path::new(&step.path)).map(|it| it.bytes).unwrap_or_default();
    let at = place_of_time(&file, latest).unwrap_or(0);
    Some(Problem::at_byte(&step.path, &file, at, Code::TimeInFuture, message, hint))
}

/// Finds a time among the `at` values of the claim and the attempts. Returns the position of the first value that equals it.
fn place_of_time(file: &[u8], time: Time) -> Option<usize> {
    let (tree, start) = header(file)?;
    let attempts = tree.root().get("attempts").into_iter().flat_map(View::items);
    let times = tree.root().get("claim").into_iter().chain(attempts).filter_map(|it| it.get("at"));
    let is_it = |it: &View<'_>| it.text().and_then(|it| it.parse().ok()) == Some(time);
    times.into_iter().find(is_it).map(|it| start + it.span().start)
}

/// The front matter, and the byte offset in the file at which its YAML begins.
fn header(file: &[u8]) -> Option<(yaml::Tree, usize)> {
    let Header::Present { yaml: range, .. } = front_matter::split(file).header else { return None };
    Some((yaml::parse(std::str::from_utf8(&file[range.clone()]).ok()?).ok()?, range.start))
}
