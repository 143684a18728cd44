//! Parses plan and step files into [`Plan`] and [`Step`]. Mistakes in a file become problems; reading never fails.

use std::collections::{BTreeSet, HashMap, HashSet};

use crate::plan::fields::{Fields, shorten};
use crate::plan::file_name;
use crate::plan::id::{PlanId, StepId};
use crate::plan::model::{Order, Plan, PlanKind, Step};
use crate::plan::problem::{Code, Problem};
use crate::plan::read_step::{missing_step, read_step};
use crate::plan::source::{self, parse, unread};
use crate::plan::step_number::StepNumber;
use crate::plan::steps_list::{self, Listed};
use crate::plan::words::{PlanStatus, Stated, Status, Words};
use crate::text::line_index::Lines;
use crate::text::markdown::{self, Outline};

pub use crate::plan::source::{Content, PlanSources, Source, Unread, etag};

/// Whether to keep the texts below the front matter, which most queries do not need.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bodies {
    Keep,
    Drop,
}

/// The keys of `plan.md` in the order in which planwatch places new ones.
pub const PLAN_KEYS: &[&str] = &[
    "status",
    "title",
    "description",
    "kind",
    "program",
    "category",
    "priority",
    "due",
    "tags",
    "files",
    "goals",
    "success_criteria",
    "order",
    "confirm_phases",
    "confirmations",
    "draft",
    "created_at",
    "metadata",
    "notes",
];

/// The keys of `step-N.md` in the order in which planwatch places new ones.
pub const STEP_KEYS: &[&str] = &[
    "id",
    "status",
    "claim",
    "title",
    "depends",
    "phase",
    "type",
    "assignee",
    "priority",
    "due",
    "tags",
    "created_at",
    "metadata",
    "created_by",
    "confirm",
    "confirmed",
    "verify",
    "touches",
    "result",
    "notes",
    "attempts",
];

pub(crate) type ReadStep<'a> = &'a (dyn Fn(&(StepNumber, Source)) -> Step + Sync);

/// Reads a plan directory. Whether the dependencies exist is checked later, when all plans are known (`Plans::judged`).
pub fn read_plan(
    id: &PlanId,
    is_archived: bool,
    sources: &PlanSources,
    words: &Words,
    bodies: Bodies,
) -> Plan {
    let map = |steps: &[_], read: ReadStep<'_>| steps.iter().map(read).collect();
    read_plan_by(map, (id, is_archived), sources, words, bodies)
}

/// Like [`read_plan`]; `map` reads all steps, in their order, possibly in several threads.
pub fn read_plan_by(
    map: impl Fn(&[(StepNumber, Source)], ReadStep<'_>) -> Vec<Step>,
    (id, is_archived): (&PlanId, bool),
    sources: &PlanSources,
    words: &Words,
    bodies: Bodies,
) -> Plan {
    let dir = if is_archived { format!("_archive/{id}") } else { id.to_string() };
    let (mut plan, listed) = read_plan_file(id, is_archived, &dir, sources.plan.as_ref(), words, bodies);
    let numbers = all_numbers(sources.steps.iter().map(|(number, _)| number), &listed);
    let lines = by_number(&listed);
    let read = |(number, source): &(StepNumber, Source)| {
        // Each step has its own copy of the name, which its dependencies share. If all steps shared one, the threads would
        // wait for each other whenever they count its references (benchmark T16).
        let id = StepId { plan: PlanId::new(id.as_str()), number: number.clone() };
        read_step(&id, source, (lines.get(number).copied(), &numbers), words, bodies)
    };
    plan.steps = map(&sources.steps, &read);
    add_listed(&mut plan, &dir, sources.steps.iter().map(|(number, _)| number), &listed);
    finish(&mut plan, sources);
    plan
}

/// Maps the number of each step to its line in the Steps list. If a step has several lines, the first one counts.
pub(super) fn by_number(listed: &[Listed]) -> HashMap<&StepNumber, &Listed> {
    let mut lines = HashMap::with_capacity(listed.len());
    for it in listed {
        lines.entry(&it.number).or_insert(it);
    }
    lines
}

/// Adds the steps that are only in the Steps list.
pub(super) fn add_listed<'a>(
    plan: &mut Plan,
    dir: &str,
    with_file: impl Iterator<Item = &'a StepNumber>,
    listed: &[Listed],
) {
    let with_file: HashSet<&StepNumber> = with_file.collect();
    let missing = listed.iter().filter(|it| !with_file.contains(&it.number));
    let missing: Vec<_> = missing.map(|it| missing_step(plan, dir, it)).collect();
    plan.steps.extend(missing);
}

/// The numbers of all steps, with a file or only in the Steps list, sorted.
pub(super) fn all_numbers<'a>(
    steps: impl Iterator<Item = &'a StepNumber>,
    listed: &'a [Listed],
) -> Vec<StepNumber> {
    let mut numbers: Vec<_> = steps.chain(listed.iter().map(|it| &it.number)).cloned().collect();
    numbers.sort_unstable();
    numbers.dedup();
    numbers
}

fn finish(plan: &mut Plan, sources: &PlanSources) {
    finish_steps(plan);
    report_names(plan, sources);
}

/// Sorts the steps, and reports numbers that several files have.
pub(super) fn finish_steps(plan: &mut Plan) {
    plan.steps.sort_by(|a, b| a.id.number.cmp(&b.id.number).then_with(|| a.path.cmp(&b.path)));
    report_duplicates(&mut plan.steps);
}

/// Reads only the step `wanted` of a plan, and the steps of the same plan on which it depends, directly or through others.
/// In a sequential plan, also reads the step before `wanted` and the dependencies of that step.
///
/// `steps` are the numbers that have files; `read` returns the files of one number. Properties of the plan as a whole,
/// such as progress, cannot be derived from the result. Bodies are included.
pub fn read_around(
    id: &PlanId,
    is_archived: bool,
    (sources, steps): (&PlanSources, &[StepNumber]),
    wanted: &StepNumber,
    read: &mut dyn FnMut(&StepNumber) -> Vec<Source>,
    words: &Words,
) -> Plan {
    let dir = if is_archived { format!("_archive/{id}") } else { id.to_string() };
    let (mut plan, listed) =
        read_plan_file(id, is_archived, &dir, sources.plan.as_ref(), words, Bodies::Keep);
    let numbers = all_numbers(steps.iter(), &listed);
    let mut work = vec![wanted.clone()];
    if plan.order == Order::Sequential {
        let all = steps.iter().chain(listed.iter().map(|it| &it.number));
        work.extend(all.filter(|it| *it < wanted).max().cloned());
    }
    // Ranges may overlap, but each of their steps is added only once.
    let mut unranged: BTreeSet<&StepNumber> = numbers.iter().collect();
    let mut seen = BTreeSet::new();
    while let Some(number) = work.pop() {
        if !seen.insert(number.clone()) {
            continue;
        }
        let line = listed.iter().find(|it| it.number == number);
        let sources = read(&number);
        if sources.is_empty() {
            let missing = line.map(|it| missing_step(&plan, &dir, it));
            plan.steps.extend(missing);
        }
        let step_id = StepId { plan: id.clone(), number };
        let read = |it: &Source| read_step(&step_id, it, (line, &numbers), words, Bodies::Keep);
        plan.steps.extend(sources.iter().map(read));
        // The files of this step are the ones that were read last.
        let same = plan.steps.iter().rev().take_while(|it| it.id == step_id);
        let named = same.flat_map(|it| &it.depends).filter(|it| it.plan == *id);
        work.extend(named.map(|it| it.number.clone()));
        let same = plan.steps.iter().rev().take_while(|it| it.id == step_id);
        for range in same.flat_map(|it| &it.ranges) {
            let held: Vec<_> = unranged.range::<StepNumber, _>(&range.first..=&range.last).copied().collect();
            for number in held {
                unranged.remove(number);
                work.push(number.clone());
            }
        }
    }
    finish(&mut plan, sources);
    plan
}

/// Reads a step's file again. `plan` must be loaded with its body.
///
/// In problems of the Steps list, the line numbers are counted from the beginning of that body. If the Dependencies section
/// names "all previous steps", these are steps of `plan`.
pub fn read_step_of(plan: &Plan, id: &StepId, path: &str, content: Content, words: &Words) -> Step {
    let mut listed = steps_list::read(&plan.id, &markdown::outline(&plan.body));
    let numbers = all_numbers(plan.steps.iter().map(|it| &it.id.number).chain([&id.number]), &listed);
    let listed = listed.iter_mut().find(|it| it.number == id.number);
    let listed = listed.map(|it| {
        it.locate(&plan.path, &Lines::of(plan.body.as_bytes()), 0);
        &*it
    });
    let source = Source { path: path.to_owned(), content: Ok(content) };
    read_step(id, &source, (listed, &numbers), words, Bodies::Keep)
}

/// Reads a step from its own file alone, without its line of the Steps list and without the plan's other numbers.
pub fn read_step_alone(id: &StepId, path: &str, content: Content, words: &Words) -> Step {
    let source = Source { path: path.to_owned(), content: Ok(content) };
    let own = std::slice::from_ref(&id.number);
    read_step(id, &source, (None, own), words, Bodies::Drop)
}

/// The text below the front matter, as in a plan's or step's `body`.
pub fn body(bytes: &[u8]) -> &str {
    source::body(bytes)
}

/// Reads `plan.md` again; the steps stay as they were read.
pub fn read_plan_again(plan: &Plan, content: Content, words: &Words) -> Plan {
    let source = Source { path: plan.path.clone(), content: Ok(content) };
    let directory = plan.path.trim_end_matches(file_name::PLAN_FILE).trim_end_matches('/');
    let (mut again, _) =
        read_plan_file(&plan.id, plan.is_archived, directory, Some(&source), words, Bodies::Keep);
    again.steps.clone_from(&plan.steps);
    again
}

/// Reports what is wrong with the names and links of a plan's files.
pub(crate) fn report_names(plan: &mut Plan, sources: &PlanSources) {
    for path in &sources.near_misses {
        let message = "the file's name resembles that of a step file, but the file is not read as a step";
        let hint = "rename it to step-<number>.md, or to something else";
        plan.problems.push(Problem::of_file(path, Code::LooksLikeAStep, message, hint));
    }
    for path in &sources.nested {
        let message = "a plan inside a plan is not read";
        let hint = "move it next to the other plans";
        plan.problems.push(Problem::of_file(path, Code::NestedPlan, message, hint));
    }
    for path in &sources.linked {
        let message = "the file has several hard links, so a change appears under all its names";
        let hint = "if that is not intended, copy the file and rename the copy over it";
        plan.problems.push(Problem::of_file(path, Code::HardLinked, message, hint));
    }
}

fn report_duplicates(steps: &mut [Step]) {
    for at in 1..steps.len() {
        let (before, behind) = steps.split_at_mut(at);
        let (first, second) = (&mut before[at - 1], &mut behind[0]);
        if first.id.number != second.id.number {
            continue;
        }
        let (first_path, second_path) = (first.path.clone(), second.path.clone());
        for (step, other) in [(first, second_path), (second, first_path)] {
            let message = format!("`{other}` has the same number {}", step.id.number);
            if step.problems.iter().all(|it| it.message != message) {
                let hint = "give one of them another number; neither is claimed until then";
                step.problems.push(Problem::of_file(&step.path, Code::DuplicateStepNumber, message, hint));
            }
        }
    }
}

pub(crate) fn status<S: Status>(fields: &mut Fields<'_>, default: S, words: &Words) -> Stated<S> {
    let Some(value) = fields.get("status") else { return Stated::Known(default) };
    let Some(text) = value.text() else {
        fields.wrong_type(value, "`status` is not a word".to_owned(), "write one word after `status:`");
        return Stated::Unknown("?".to_owned());
    };
    if let Some(status) = words.read(text) {
        return Stated::Known(status);
    }
    let known = || S::ALL.iter().map(|it| it.word()).collect::<Vec<_>>().join(", ");
    let hint = words
        .nearest::<S>(text)
        .map_or_else(|| format!("known words: {}", known()), |it| format!("did you mean `{it}`?"));
    fields.report(value, Code::UnknownStatus, format!("the status `{}` is not known", shorten(text)), &hint);
    Stated::Unknown(text.to_owned())
}

pub(super) fn read_plan_file(
    id: &PlanId,
    is_archived: bool,
    dir: &str,
    source: Option<&Source>,
    words: &Words,
    bodies: Bodies,
) -> (Plan, Vec<Listed>) {
    let path = source.map_or_else(|| format!("{dir}/{}", file_name::PLAN_FILE), |it| it.path.clone());
    let content = source.and_then(|it| it.content.as_ref().ok());
    let bytes = content.map_or(&[][..], |it| &it.bytes);
    let parsed = parse(&path, bytes);
    let outline = markdown::outline(parsed.body);
    let mut fields = Fields::of(&path, bytes, &parsed);
    let mut plan = plan_of(id, &mut fields, &outline, words);
    plan.is_archived = is_archived;
    plan.etag = content.map(|it| it.etag.clone());
    plan.modified = content.map(|it| it.modified);
    plan.problems = fields.problems;
    plan.problems.extend(parsed.problems);
    match source.map(|it| (it, &it.content)) {
        None => plan.problems.push(missing_plan_file(&path)),
        Some((source, Err(why))) => plan.problems.push(unread(source, why)),
        Some(_) => {}
    }
    if plan.is_faulty() && plan.problems.iter().any(|it| it.code.refuses_writing()) {
        plan.status = Stated::Unknown("?".to_owned());
    }
    let mut listed = steps_list::read(id, &outline);
    let lines = Lines::of(bytes);
    for it in &mut listed {
        it.locate(&path, &lines, bytes.len() - parsed.body.len());
    }
    if bodies == Bodies::Keep {
        plan.body = parsed.body.to_owned();
    }
    plan.path = path;
    (plan, listed)
}

fn missing_plan_file(path: &str) -> Problem {
    let message = "the plan has steps but no plan.md";
    Problem::of_file(path, Code::MissingPlanFile, message, "`planwatch check --fix` makes one").fixable()
}

fn plan_of(id: &PlanId, fields: &mut Fields<'_>, outline: &Outline, words: &Words) -> Plan {
    let kinds = |it: &str| match it {
        "plan" => Some(PlanKind::Plan),
        "program" => Some(PlanKind::Program),
        _ => None,
    };
    let orders = |it: &str| match it {
        "dependencies" => Some(Order::Dependencies),
        "sequential" => Some(Order::Sequential),
        _ => None,
    };
    let heading = || outline.title().filter(|it| !it.is_empty()).map(str::to_owned);
    Plan {
        id: id.clone(),
        is_archived: false,
        path: String::new(),
        etag: None,
        modified: None,
        status: status(fields, PlanStatus::Active, words),
        title: fields.text("title").or_else(heading).unwrap_or_else(|| id.to_string()),
        description: fields.text("description").or_else(|| outline.description.clone()),
        kind: fields.word("kind", kinds, &["plan", "program"]).unwrap_or_default(),
        program: fields.text("program").map(PlanId::new),
        program_at: fields.get("program").map(|it| fields.place(it)),
        category: fields.category(&CATEGORIES),
        priority: fields.priority().unwrap_or_default(),
        due: fields.day("due"),
        tags: fields.texts("tags").unwrap_or_default(),
        files: fields.texts("files").unwrap_or_default(),
        goals: fields.texts("goals").unwrap_or_default(),
        success_criteria: fields.texts("success_criteria").unwrap_or_default(),
        order: fields.word("order", orders, &["dependencies", "sequential"]).unwrap_or_default(),
        confirm_phases: fields.texts("confirm_phases").unwrap_or_default(),
        confirmations: fields.confirmations(),
        draft: match fields.mapping("draft") {
            map if map.is_empty() => serde_json::Value::Null,
            map => serde_json::Value::Object(map),
        },
        created_at: fields.time("created_at"),
        metadata: fields.mapping("metadata"),
        notes: fields.notes(),
        custom: fields.custom(PLAN_KEYS),
        body: String::new(),
        steps: Vec::new(),
        problems: Vec::new(),
        waits_inside: false,
    }
}

pub const CATEGORIES: [&str; 7] =
    ["feature", "bug", "change", "analysis", "debug", "refactor", "documentation"];

#[cfg(test)]
mod tests;
