//! Reads a plan again after a few of its files changed; for the other files, the earlier results are reused.
//!
//! The result is the same as that of [`read_plan`](super::read::read_plan) for these files, except that the caller has
//! to add the problems of the directory itself (`read::report_names`).

use std::collections::HashMap;

use crate::plan::id::{PlanId, StepId};
use crate::plan::model::{Plan, Step};
use crate::plan::problem::Problem;
use crate::plan::read::{self, Bodies, ReadStep, Source};
use crate::plan::read_step::read_step;
use crate::plan::references;
use crate::plan::step_number::StepNumber;
use crate::plan::steps_list::Listed;
use crate::plan::words::Words;
use crate::text::markdown;

/// A file of a plan.
#[derive(Debug, Clone)]
pub(crate) struct File {
    /// Relative to the plans directory, with `/`.
    pub(crate) path: String,
    /// Whether the file is certainly unchanged since it was last read.
    pub(crate) is_same: bool,
}

/// The files of a plan's directory.
#[derive(Debug, Clone, Default)]
pub(crate) struct Files {
    pub(crate) plan: Option<File>,
    pub(crate) steps: Vec<(StepNumber, File)>,
}

/// What was read from a plan's files.
#[derive(Debug)]
pub(crate) struct Kept {
    /// The plan as described in `plan.md`, without steps.
    plan: Plan,
    listed: Vec<Listed>,
    numbers: Vec<StepNumber>,
    /// By path, the problems that were found when each step's file was read.
    problems: HashMap<String, Vec<Problem>>,
    /// The steps by path; empty until [`Kept::take_back`] moves the steps here. They are not copied, because each can
    /// name hundreds of others.
    steps: HashMap<String, Step>,
}

impl Kept {
    /// Moves those steps of the plan that have a file into `self`, and drops the problems that later checks have added.
    pub(crate) fn take_back(&mut self, plan: Plan) {
        for mut step in plan.steps {
            let Some(problems) = self.problems.get(&step.path) else { continue };
            step.problems.clone_from(problems);
            step.run = None;
            self.steps.insert(step.path.clone(), step);
        }
    }

    /// Returns the plan and the listed steps of `plan.md` if the file is unchanged; `None` if it has to be parsed.
    fn plan_file(&self, file: &File, source: Option<&Source>) -> Option<(Plan, Vec<Listed>)> {
        let mut plan = Some(&self.plan).filter(|it| it.path == file.path && it.etag.is_some())?.clone();
        if let Some(source) = source {
            let content = source.content.as_ref().ok()?;
            plan.modified = (plan.etag.as_ref() == Some(&content.etag)).then_some(Some(content.modified))?;
        }
        Some((plan, self.listed.clone()))
    }
}

/// Reads the files that may have changed, and the files of steps that such a change affects.
///
/// `read` reads a file. `map` parses many steps and returns them in the same order. Problems of the directory itself are
/// not reported.
pub(crate) fn read_again(
    earlier: Option<Kept>,
    (name, is_archived): (&str, bool),
    files: &Files,
    read: &mut dyn FnMut(&str) -> Source,
    map: impl Fn(&[(StepNumber, Source)], ReadStep<'_>) -> Vec<Step>,
    (words, bodies): (&Words, Bodies),
) -> (Plan, Kept) {
    let id = earlier.as_ref().map_or_else(|| PlanId::new(name), |it| it.plan.id.clone());
    let dir = if is_archived { format!("_archive/{id}") } else { id.to_string() };
    let source = files.plan.as_ref().filter(|it| !it.is_same || earlier.is_none()).map(|it| read(&it.path));
    let known = files.plan.as_ref().and_then(|file| earlier.as_ref()?.plan_file(file, source.as_ref()));
    let (mut plan, listed) = known.unwrap_or_else(|| {
        let source = source.or_else(|| files.plan.as_ref().map(|it| read(&it.path)));
        read::read_plan_file(&id, is_archived, &dir, source.as_ref(), words, bodies)
    });
    let numbers = read::all_numbers(files.steps.iter().map(|(number, _)| number), &listed);
    let mut kept = Kept {
        plan: plan.clone(),
        listed: Vec::new(),
        numbers: Vec::new(),
        problems: HashMap::with_capacity(files.steps.len()),
        steps: HashMap::new(),
    };
    let lines = read::by_number(&listed);
    let (mut found, changed) = same_steps(earlier, files, (&lines, &numbers), read);
    let (nths, sources): (Vec<_>, Vec<_>) = changed.into_iter().unzip();
    let read_one = |(number, source): &(StepNumber, Source)| {
        // Each step has its own copy of the name, as in `read_plan_by`.
        let id = StepId { plan: PlanId::new(id.as_str()), number: number.clone() };
        read_step(&id, source, (lines.get(number).copied(), &numbers), words, bodies)
    };
    for (nth, step) in nths.into_iter().zip(map(&sources, &read_one)) {
        found[nth] = Some(step);
    }
    plan.steps = found.into_iter().flatten().collect();
    kept.problems.extend(plan.steps.iter().map(|it| (it.path.clone(), it.problems.clone())));
    read::add_listed(&mut plan, &dir, files.steps.iter().map(|(number, _)| number), &listed);
    read::finish_steps(&mut plan);
    (kept.listed, kept.numbers) = (listed, numbers);
    (plan, kept)
}

type Lines<'a> = HashMap<&'a StepNumber, &'a Listed>;

/// Files of steps that have to be parsed, each with its index among the files.
type ToParse = Vec<(usize, (StepNumber, Source))>;

/// Returns the unchanged steps, each at the index of its file, and the files that have to be parsed.
fn same_steps(
    earlier: Option<Kept>,
    files: &Files,
    (lines, numbers): (&Lines<'_>, &[StepNumber]),
    read: &mut dyn FnMut(&str) -> Source,
) -> (Vec<Option<Step>>, ToParse) {
    let (mut steps, listed, before) =
        earlier.map_or_else(Default::default, |it| (it.steps, it.listed, it.numbers));
    let lines_before = read::by_number(&listed);
    let has_same_numbers = before == numbers;
    let mut known = |number: &StepNumber, file: &File| {
        let step = steps.remove(&file.path).filter(|it| it.id.number == *number)?;
        let is_same = match (lines.get(number), lines_before.get(number)) {
            (Some(line), Some(before)) => line.reads_same(before),
            (None, None) => true,
            _ => false,
        };
        (is_same && (has_same_numbers || !may_name_numbers(&step))).then_some(step)
    };
    let (mut found, mut changed) = (Vec::with_capacity(files.steps.len()), Vec::new());
    for (nth, (number, file)) in files.steps.iter().enumerate() {
        let known = known(number, file);
        if known.is_some() && file.is_same {
            found.push(known);
            continue;
        }
        let source = read(&file.path);
        let content = source.content.as_ref().ok();
        let modified = content.map(|it| it.modified);
        match known.filter(|it| content.is_some_and(|content| it.etag.as_ref() == Some(&content.etag))) {
            Some(step) => found.push(Some(Step { modified, ..step })),
            None => {
                found.push(None);
                changed.push((nth, (number.clone(), source)));
            }
        }
    }
    (found, changed)
}

/// Whether the dependencies of a step may change with the numbers of the plan's other steps, as with "all previous
/// steps".
fn may_name_numbers(step: &Step) -> bool {
    // Without the step's text this cannot be known.
    step.body.is_empty() || references::section(&markdown::sections(&step.body)).is_some()
}
