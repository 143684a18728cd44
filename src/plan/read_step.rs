//! Parses the bytes of a step's file into a [`Step`].

use std::collections::HashSet;

use crate::plan::fields::{Fields, kind_name, shorten};
use crate::plan::file_name;
use crate::plan::id::{StepId, read_number, read_step_id};
use crate::plan::model::{Plan, Step};
use crate::plan::problem::{Code, Problem};
use crate::plan::ranges::StepRange;
use crate::plan::read::{Bodies, STEP_KEYS, status};
use crate::plan::references::unread::{self, Form, Unread};
use crate::plan::references::{self, Section};
use crate::plan::source::{Source, parse, unread};
use crate::plan::step_number::StepNumber;
use crate::plan::steps_list::Listed;
use crate::plan::words::{Stated, StepStatus, Words};
use crate::text::line_index::Place;
use crate::text::markdown::{self, Outline};

pub(crate) fn missing_step(plan: &Plan, dir: &str, listed: &Listed) -> Step {
    let id = StepId { plan: plan.id.clone(), number: listed.number.clone() };
    let path = format!("{dir}/{}", file_name::step_file(&listed.number));
    let mut step = step_of(&id, &mut no_fields(&path), &Outline::default(), Some(listed), &Words::default());
    let message = format!("step {} is listed, but there is no file `{path}`", listed.number);
    let hint = "`planwatch check --fix` creates the file, and so does the first change of the step";
    step.problems =
        vec![Problem::at(&plan.path, listed.place, Code::MissingStepFile, message, hint).fixable()];
    step.problems.extend(listed.problems.iter().cloned());
    step.path = path;
    step
}

fn no_fields(path: &str) -> Fields<'_> {
    Fields { path, file: &[], offset: 0, root: None, problems: Vec::new(), budget: None }
}

/// `numbers` are those of the plan's steps, sorted, including the step's own number.
pub(crate) fn read_step(
    id: &StepId,
    source: &Source,
    (listed, numbers): (Option<&Listed>, &[StepNumber]),
    words: &Words,
    bodies: Bodies,
) -> Step {
    let content = source.content.as_ref().ok();
    let bytes = content.map_or(&[][..], |it| &it.bytes);
    let parsed = parse(&source.path, bytes);
    let outline = markdown::sections(parsed.body);
    let mut fields = Fields::of(&source.path, bytes, &parsed);
    let mut step = step_of(id, &mut fields, &outline, listed, words);
    let from_body = body_dependencies(id, &mut fields, parsed.body, &outline, (listed, numbers));
    report_unread(id, &mut fields, (parsed.body, &outline), &from_body, numbers);
    let own = own_dependencies(id, &mut fields, &from_body, numbers);
    (step.depends, step.depends_at) = match own {
        Some(own) => own,
        None => {
            step.ranges = from_body.ranges;
            (from_body.all, Vec::new())
        }
    };
    report_id(id, &mut fields);
    report_claim(&step, &mut fields);
    let is_own_key = fields.root.is_some_and(|it| it.get("depends").is_some());
    step.problems = fields.problems;
    step.problems.extend(listed.into_iter().flat_map(|it| line_problems(it, is_own_key)));
    step.problems.extend(parsed.problems);
    step.problems.extend(source.content.as_ref().err().map(|why| unread(source, why)));
    report_version(&mut step, &source.path);
    if step.problems.iter().any(|it| it.code.refuses_writing()) {
        step.status = Stated::Unknown("?".to_owned());
    }
    step.path.clone_from(&source.path);
    // A file that cannot be read has a fixed word instead of a hash, because `None` would mean that no file exists.
    step.etag = Some(content.map_or_else(|| "unreadable".to_owned(), |it| it.etag.clone()));
    step.modified = content.map(|it| it.modified);
    if bodies == Bodies::Keep {
        parsed.body.clone_into(&mut step.body);
    }
    step
}

/// The problems of a step's line in the Steps list. An invalid reference in it blocks the step. But if the front matter has
/// `depends`, the problem is only a warning.
fn line_problems(listed: &Listed, is_own_key: bool) -> impl Iterator<Item = Problem> {
    let of = move |it: &Problem| {
        if is_own_key { Problem { code: Code::DependenciesUnclear, ..it.clone() } } else { it.clone() }
    };
    listed.problems.iter().map(of)
}

fn step_of(
    id: &StepId,
    fields: &mut Fields<'_>,
    outline: &Outline,
    listed: Option<&Listed>,
    words: &Words,
) -> Step {
    let heading = outline.title().map(without_step_prefix).filter(|it| !it.is_empty()).map(str::to_owned);
    let from_list = || listed.map(|it| it.title.clone()).filter(|it| !it.is_empty());
    let is_required = |it: &str| it.eq_ignore_ascii_case("required").then_some(());
    let kind = fields.text("type");
    let confirm = fields.word("confirm", is_required, &["required"]).is_some();
    let tasks = ["tasks", "acceptance", "acceptance criteria"].iter().filter_map(|name| {
        outline
            .section(|it| it.trim_end_matches(':').eq_ignore_ascii_case(name))
            .map(|it| outline.tasks_in(&it))
    });
    let (tasks_done, tasks_total) = tasks.fold((0, 0), |sum, it| (sum.0 + it.0, sum.1 + it.1));
    Step {
        id: id.clone(),
        path: String::new(),
        etag: None,
        modified: None,
        status: status(fields, StepStatus::Pending, words),
        claim: fields.claim().map(Box::new),
        title: fields
            .text("title")
            .or(heading)
            .or_else(from_list)
            .unwrap_or_else(|| format!("step-{}", id.number)),
        depends: listed.and_then(|it| it.depends.clone()).unwrap_or_default(),
        ranges: Vec::new(),
        depends_at: Vec::new(),
        phase: fields.text("phase"),
        needs_confirmation: confirm || kind.as_deref().is_some_and(is_user_validation),
        kind,
        assignee: fields.text("assignee"),
        priority: fields.priority(),
        due: fields.day("due"),
        tags: fields.texts("tags").unwrap_or_default(),
        created_at: fields.time("created_at"),
        created_by: fields.text("created_by").unwrap_or_else(|| "user".to_owned()),
        confirmed: fields.confirmed().map(Box::new),
        verify: fields.verify(),
        touches: fields.texts("touches"),
        result: fields.text("result"),
        notes: fields.notes(),
        attempts: fields.attempts(),
        metadata: fields.mapping("metadata"),
        custom: fields.custom(STEP_KEYS),
        tasks_done,
        tasks_total,
        body: String::new(),
        problems: Vec::new(),
        run: None,
    }
}

/// Whether a type is `user_validation`. Letters may be upper case, and `-` or a space may replace the `_`.
fn is_user_validation(kind: &str) -> bool {
    kind.to_lowercase().replace(['-', ' '], "_") == "user_validation"
}

/// Removes the prefix of `Step 2: Title`, `Step 2.5 – Title` or `step-2. Title`. A heading that is only `Step 2`
/// stays.
pub(crate) fn without_step_prefix(title: &str) -> &str {
    let rest = title.get(..4).filter(|it| it.eq_ignore_ascii_case("step")).map(|_| &title[4..]);
    let Some(rest) = rest.map(|it| it.trim_start_matches([' ', '-', '#'])) else { return title };
    let digits = references::number_at(rest);
    let behind = rest[digits.len()..].trim_start();
    let stripped = behind.strip_prefix([':', '.', '-', '–', '—', ')']).map(str::trim);
    stripped.filter(|it| !digits.is_empty() && !it.is_empty()).unwrap_or(title)
}

/// The dependencies in a step's line of the Steps list and in its Dependencies section, together.
struct BodyDependencies {
    all: Vec<StepId>,
    ranges: Vec<StepRange>,
    /// Whether the line or the section names at least one step.
    is_said: bool,
}

fn body_dependencies(
    id: &StepId,
    fields: &mut Fields<'_>,
    body: &str,
    outline: &Outline,
    (listed, numbers): (Option<&Listed>, &[StepNumber]),
) -> BodyDependencies {
    let from_line = listed.and_then(|it| it.depends.clone());
    let range = references::section(outline);
    let section = range.clone().map(|it| references::read_section(id, &body[it], numbers));
    let is_own_key = fields.get("depends").is_some();
    let body_at = fields.file.len() - body.len();
    let at = range.map_or(0, |it| body_at + it.start);
    if section == Some(Section::Unclear) && !is_own_key && from_line.is_none() {
        let said = body[at - body_at..].lines().map(str::trim).find(|it| !it.is_empty()).unwrap_or_default();
        let message = format!("the Dependencies section names no step: `{}`", shorten(said));
        let hint = "name the steps as step-N, write None, or add `depends: []` to the front matter";
        fields.report_at(at, Code::DependenciesUnclear, message, hint);
    }
    let from_section = match section {
        Some(Section::Steps(steps, ranges)) => Some((steps, ranges)),
        Some(Section::None) => Some((Vec::new(), Vec::new())),
        _ => None,
    };
    let (from_section, ranges) = from_section.map_or((None, Vec::new()), |(it, ranges)| (Some(it), ranges));
    if let (Some(line), Some(section), false) = (&from_line, &from_section, is_own_key)
        && !same(line, (section, &ranges), (id, numbers))
    {
        let message = "the Dependencies section and the plan's Steps list disagree; both count";
        let hint = "make them agree, or add `depends` to the front matter";
        fields.report_at(at, Code::DependenciesDisagree, message, hint);
    }
    let is_said = from_line.as_ref().is_some_and(|it| !it.is_empty())
        || from_section.as_ref().is_some_and(|it| !it.is_empty());
    let mut all = from_line.unwrap_or_default();
    let mut more = from_section.unwrap_or_default();
    if !all.is_empty() {
        let known: HashSet<&StepId> = all.iter().collect();
        more.retain(|it| !known.contains(it));
    }
    all.extend(more);
    BodyDependencies { all, ranges, is_said }
}

/// The maximum number of dependencies of a step whose positions in the file are stored.
const MOST_PLACES: usize = 100;

/// Keys that people write for `depends`. The comparison ignores upper case and separators.
const LIKE_DEPENDS: [&str; 6] =
    ["depends", "dependson", "dependencies", "dependency", "blockedby", "requires"];

/// Reports text and keys that look like a dependency but are not read as one. If the front matter has `depends`, reports
/// nothing, because only that key counts.
fn report_unread(
    id: &StepId,
    fields: &mut Fields<'_>,
    (body, outline): (&str, &Outline),
    from_body: &BodyDependencies,
    numbers: &[StepNumber],
) {
    let Some(root) = fields.root.map_or(Some(None), |it| it.get("depends").is_none().then_some(Some(it)))
    else {
        return;
    };
    for (key, value) in root.into_iter().flat_map(|it| it.entries()) {
        let Some(name) = key.text() else { continue };
        let folded: String = name.chars().filter(|it| it.is_alphanumeric()).collect();
        let is_like = LIKE_DEPENDS.iter().any(|it| folded.eq_ignore_ascii_case(it));
        let is_step = |it: &str| references::read_item(&id.plan, it).is_some();
        let names =
            || value.text().is_some_and(&is_step) || value.items().any(|it| it.text().is_some_and(&is_step));
        if is_like && names() {
            let message = format!("`{}` is not a key of steps, so it names no dependency", shorten(name));
            fields.report(key, Code::DependenciesUnclear, message, "the key is `depends`");
        }
    }
    let in_range =
        |it: &StepId| it.plan == id.plan && from_body.ranges.iter().any(|range| range.has(&it.number));
    let is_read = |it: &StepId| in_range(it) || from_body.all.contains(it);
    let body_at = fields.file.len() - body.len();
    for Unread { form, text } in unread::find(id, (body, outline), numbers, &is_read) {
        let said = shorten(&body[text.clone()]);
        let message = match form {
            Form::Line => format!("`{said}` is not read as a dependency"),
            Form::Heading => {
                format!("the section `{said}` is not read; only the first section `## Dependencies` is")
            }
            Form::Html => format!("`{said}` is not read, because Markdown parses the line as HTML"),
            Form::Id => format!("the id in `{said}` is not read as a dependency"),
        };
        let hint = if form == Form::Id {
            "name the steps in `depends`, or write `step-2` for a step of this plan"
        } else {
            "name the steps in `depends` or in a section `## Dependencies`; `depends: []` says that there are none"
        };
        fields.report_at(body_at + text.start, Code::DependenciesUnclear, message, hint);
    }
}

/// The dependencies in the front matter's `depends`, with their places. If the key exists, only it counts, even if
/// it is empty.
fn own_dependencies(
    id: &StepId,
    fields: &mut Fields<'_>,
    from_body: &BodyDependencies,
    numbers: &[StepNumber],
) -> Option<(Vec<StepId>, Vec<Place>)> {
    let key = fields.root?.get("depends")?;
    let items = fields.items("depends").unwrap_or_default();
    let (mut own, mut places) = (Vec::with_capacity(items.len()), Vec::new());
    let mut last = None;
    // The set finds steps that are named twice. Most lists are sorted and do not need it.
    let mut known: Option<HashSet<StepId>> = None;
    for item in items {
        match references::read_item(&id.plan, item.text().unwrap_or_default()) {
            Some(step) if is_named_before(&mut known, &own, &step) => {}
            Some(step) => {
                if own.len() < MOST_PLACES {
                    let place = fields.place_after(last, item);
                    last = Some((item, place));
                    places.push(place);
                }
                own.push(step);
            }
            None => {
                let text = item.text().map_or_else(|| kind_name(item).to_owned(), shorten);
                let message = format!("the dependency `{text}` is not a step");
                let hint = "write a step number, or <plan>:<number>";
                fields.report(item, Code::DependencyMissing, message, hint);
            }
        }
    }
    if from_body.is_said && !same(&own, (&from_body.all, &from_body.ranges), (id, numbers)) {
        let message = "`depends` and the text disagree; `depends` takes precedence".to_owned();
        let hint = "make the Steps list and the Dependencies section agree";
        fields.report(key, Code::DependenciesDisagree, message, hint);
    }
    Some((own, places))
}

/// Returns whether a list already contains a step. `known` is made at the first step that is not in ascending order.
fn is_named_before(known: &mut Option<HashSet<StepId>>, list: &[StepId], step: &StepId) -> bool {
    if known.is_none() && list.last().is_none_or(|it| it < step) {
        return false;
    }
    !known.get_or_insert_with(|| list.iter().cloned().collect()).insert(step.clone())
}

/// Returns whether a list names exactly the steps that the text names. `numbers` are the step numbers of the step's plan.
fn same(
    a: &[StepId],
    (b, ranges): (&[StepId], &[StepRange]),
    (own, numbers): (&StepId, &[StepNumber]),
) -> bool {
    if ranges.is_empty() {
        return a.len() == b.len() && (a == b || a.iter().collect::<HashSet<_>>() == b.iter().collect());
    }
    let in_range = |it: &StepId| it.plan == own.plan && ranges.iter().any(|range| range.has(&it.number));
    let held = ranges.iter().map(|it| {
        let first = numbers.partition_point(|number| *number < it.first);
        numbers.partition_point(|number| *number <= it.last) - first
    });
    let beside: HashSet<&StepId> = b.iter().filter(|it| !in_range(it)).collect();
    let listed: HashSet<&StepId> = a.iter().collect();
    listed.len() == held.sum::<usize>() + beside.len()
        && listed.iter().all(|it| in_range(it) || beside.contains(*it))
}

fn report_id(id: &StepId, fields: &mut Fields<'_>) {
    let Some(value) = fields.get("id") else { return };
    let Some(text) = value.text() else {
        let message = format!("`id` is a {}, not a text", kind_name(value));
        return fields.wrong_type(value, message, "the file's name is the id");
    };
    let step = read_number(text)
        .map(|number| StepId { plan: id.plan.clone(), number })
        .or_else(|| read_step_id(text));
    if step.as_ref() != Some(id) {
        let message =
            format!("`id: {}` differs from the id that the file's path gives, `{id}`", shorten(text));
        let hint = "the file's name takes precedence; `planwatch check --fix` corrects the line";
        fields.report_fixable(value, Code::IdDiffers, message, hint);
    }
}

fn report_claim(step: &Step, fields: &mut Fields<'_>) {
    let Some(value) = fields.get("claim").filter(|_| step.claim.is_some()) else { return };
    if step.has_void_claim() {
        let message = format!("the claim is void, because the status is `{}`", shorten(step.status.word()));
        fields.report_fixable(value, Code::StaleClaim, message, "the next write removes the line");
    }
}

fn report_version(step: &mut Step, path: &str) {
    let name = path.rsplit('/').next().unwrap_or_default();
    if file_name::looks_like_version(name) {
        let message = format!("step numbers are decimals, so this file is step {}", step.id.number);
        let hint = "the number after 1.9 is 1.91 or 2";
        step.problems.push(Problem::of_file(path, Code::LooksLikeAVersion, message, hint));
    }
}
