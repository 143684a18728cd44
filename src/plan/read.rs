//! Bytes of plan and step files to [`Plan`] and [`Step`]; what is wrong becomes problems, nothing is an error.

use crate::plan::fields::{Fields, shorten};
use crate::plan::file_name;
use crate::plan::id::{PlanId, StepId, read_number, read_step_id};
use crate::plan::model::{Order, Plan, PlanKind, Step};
use crate::plan::problem::{Code, Problem};
use crate::plan::references::{self, Section};
use crate::plan::step_number::StepNumber;
use crate::plan::steps_list::{self, Listed};
use crate::plan::time::Time;
use crate::plan::words::{PlanStatus, Stated, Status, StepStatus, Words};
use crate::text::front_matter::{self, Header};
use crate::text::markdown::{self, Outline};
use crate::text::yaml::{self, Tree};

/// A file as the disk gave it.
#[derive(Debug, Clone)]
pub struct Source {
    /// Relative to the plans directory, with `/`.
    pub path: String,
    pub content: Result<Content, Unread>,
}

/// What a file holds.
#[derive(Debug, Clone)]
pub struct Content {
    pub bytes: Vec<u8>,
    /// Hexadecimal content hash.
    pub etag: String,
    pub modified: Time,
}

/// Why a file could not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unread {
    pub code: Code,
    pub message: String,
}

/// The files of one plan directory.
#[derive(Debug, Clone, Default)]
pub struct PlanSources {
    /// `plan.md`, if there is one.
    pub plan: Option<Source>,
    /// Files that the exact grammar takes as steps.
    pub steps: Vec<(StepNumber, Source)>,
    /// Paths of near misses.
    pub near_misses: Vec<String>,
    /// Paths of directories below that look like plans themselves.
    pub nested: Vec<String>,
}

/// Whether the texts below the front matter are wanted, which most questions are answered without.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bodies {
    Keep,
    Drop,
}

/// The keys of `plan.md` in the order in which planwatch places new ones.
pub const PLAN_KEYS: &[&str] = &[
    "status", "title", "description", "kind", "program", "category", "priority", "tags", "files", "goals",
    "success_criteria", "order", "confirm_phases", "confirmations", "draft", "created_at", "metadata", "notes",
];

/// The keys of `step-N.md` in the order in which planwatch places new ones.
pub const STEP_KEYS: &[&str] = &[
    "id", "status", "claim", "title", "depends", "phase", "type", "assignee", "priority", "tags", "created_at",
    "metadata", "created_by", "confirm", "confirmed", "verify", "touches", "result", "notes", "attempts",
];

/// Reads a plan directory. Dependencies across plans are judged later, where all plans are known.
pub fn read_plan(id: &PlanId, is_archived: bool, sources: &PlanSources, words: &Words, bodies: Bodies) -> Plan {
    let dir = if is_archived { format!("_archive/{id}") } else { id.to_string() };
    let (mut plan, listed) = read_plan_file(id, is_archived, &dir, sources.plan.as_ref(), words, bodies);
    let read = |(number, source): &(StepNumber, Source)| {
        let listed = listed.iter().find(|it| it.number == *number);
        read_step(&StepId { plan: id.clone(), number: number.clone() }, source, listed, words, bodies)
    };
    plan.steps = sources.steps.iter().map(read).collect();
    let missing = listed.iter().filter(|it| sources.steps.iter().all(|(number, _)| *number != it.number));
    let missing: Vec<_> = missing.map(|it| missing_step(&plan, &dir, it)).collect();
    plan.steps.extend(missing);
    plan.steps.sort_by(|a, b| a.id.number.cmp(&b.id.number).then_with(|| a.path.cmp(&b.path)));
    report_duplicates(&mut plan.steps);
    report_names(&mut plan, sources);
    plan
}

/// Reads a step's file again, in a plan that is known with its body.
pub fn read_step_of(plan: &Plan, id: &StepId, path: &str, content: Content, words: &Words) -> Step {
    let listed = steps_list::read(&plan.id, &markdown::outline(&plan.body));
    let listed = listed.iter().find(|it| it.number == id.number);
    let source = Source { path: path.to_owned(), content: Ok(content) };
    read_step(id, &source, listed, words, Bodies::Keep)
}

/// Reads `plan.md` again; the steps stay as they were read.
pub fn read_plan_again(plan: &Plan, content: Content, words: &Words) -> Plan {
    let source = Source { path: plan.path.clone(), content: Ok(content) };
    let directory = plan.path.trim_end_matches(file_name::PLAN_FILE).trim_end_matches('/');
    let (mut again, _) = read_plan_file(&plan.id, plan.is_archived, directory, Some(&source), words, Bodies::Keep);
    again.steps.clone_from(&plan.steps);
    again
}

fn report_names(plan: &mut Plan, sources: &PlanSources) {
    for path in &sources.near_misses {
        let message = "the name looks like a step's, but is not read as one";
        plan.problems.push(Problem::of_file(path, Code::LooksLikeAStep, message, "rename it to step-<number>.md, or to something else"));
    }
    for path in &sources.nested {
        let message = "a plan inside a plan is not read";
        plan.problems.push(Problem::of_file(path, Code::NestedPlan, message, "move it next to the other plans"));
    }
}

fn report_duplicates(steps: &mut [Step]) {
    for at in 1..steps.len() {
        let (before, behind) = steps.split_at_mut(at);
        let (first, second) = (&mut before[at - 1], &mut behind[0]);
        if first.id.number != second.id.number {
            continue;
        }
        for (step, other) in [(&mut *first, second.path.clone()), (second, first.path.clone())] {
            let message = format!("`{other}` has the same number {}", step.id.number);
            if step.problems.iter().all(|it| it.message != message) {
                let hint = "give one of them another number; neither is claimed until then";
                step.problems.push(Problem::of_file(&step.path, Code::DuplicateStepNumber, message, hint));
            }
        }
    }
}

/// A file's front matter and body, or what makes it unreadable.
struct Parsed<'a> {
    tree: Option<(Tree, usize)>,
    body: &'a str,
    problems: Vec<Problem>,
}

fn parse<'a>(path: &str, bytes: &'a [u8]) -> Parsed<'a> {
    let mut parsed = Parsed { tree: None, body: "", problems: Vec::new() };
    if bytes.len() > front_matter::MAX_FILE {
        let message = format!("the file has {} bytes; the limit is 4 MiB", bytes.len());
        parsed.problems.push(Problem::of_file(path, Code::TooLarge, message, "split it, or move long logs elsewhere"));
        return parsed;
    }
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => {
            let message = "the file is not UTF-8 from here on";
            let hint = "save it as UTF-8";
            parsed.problems.push(Problem::at_byte(path, bytes, error.valid_up_to(), Code::NotUtf8, message, hint));
            return parsed;
        }
    };
    let parts = front_matter::split(bytes);
    let body_start = parts.body_start();
    parsed.body = &text[body_start..];
    if let Some(at) = conflict_marker(text, body_start) {
        let message = "the file holds a merge conflict";
        parsed.problems.push(Problem::at_byte(path, bytes, at, Code::ConflictMarkers, message, "resolve it and save"));
        return parsed;
    }
    match &parts.header {
        Header::Absent => {}
        Header::Unclosed => {
            parsed.body = "";
            let message = "the front matter has no closing `---` line";
            parsed.problems.push(Problem::of_file(path, Code::FrontMatterUnclosed, message, "add a line `---` below it"));
        }
        Header::Present { yaml, .. } => match yaml::parse(&text[yaml.clone()]) {
            Ok(tree) => parsed.tree = Some((tree, yaml.start)),
            Err(error) => {
                let code = Code::from_text(error.code).unwrap_or(Code::FrontMatterInvalid);
                let at = yaml.start + error.at;
                parsed.problems.push(Problem::at_byte(path, bytes, at, code, error.message, hint_for(code)));
            }
        },
    }
    parsed
}

fn hint_for(code: Code) -> &'static str {
    match code {
        Code::DuplicateKey => "keep one of the two lines",
        Code::NotAMapping => "write `key: value` lines between the `---` lines",
        Code::TooLarge => "move long texts into the body",
        _ => "mend the YAML; values with `: ` or ` #` need quotes",
    }
}

/// Finds a conflict marker at a line's start, outside code.
fn conflict_marker(text: &str, body_start: usize) -> Option<usize> {
    if !text.contains("<<<<<<<") && !text.contains(">>>>>>>") {
        return None;
    }
    let outline = markdown::outline(&text[body_start..]);
    let mut line_start = 0;
    let mut middle = false;
    for line in text.split_inclusive('\n') {
        let at = line_start;
        line_start += line.len();
        let line = line.trim_end();
        let is_marker = |mark: &str| line.strip_prefix(mark).is_some_and(|it| it.is_empty() || it.starts_with(' '));
        let in_code = at >= body_start && outline.is_code(at - body_start);
        middle |= line == "=======";
        if !in_code && (is_marker("<<<<<<<") || (middle && is_marker(">>>>>>>"))) {
            return Some(at);
        }
    }
    None
}

fn unread(source: &Source, unread: &Unread) -> Problem {
    Problem::of_file(&source.path, unread.code, unread.message.clone(), "make it a readable regular file")
}

fn status<S: Status>(fields: &mut Fields<'_>, default: S, words: &Words) -> Stated<S> {
    let Some(value) = fields.get("status") else { return Stated::Known(default) };
    let Some(text) = value.text() else {
        fields.wrong_type(value, "`status` is not a word".to_owned(), "write one word behind `status:`");
        return Stated::Unknown("?".to_owned());
    };
    if let Some(status) = words.read(text) {
        return Stated::Known(status);
    }
    let known = || S::ALL.iter().map(|it| it.word()).collect::<Vec<_>>().join(", ");
    let hint = words.nearest::<S>(text).map_or_else(|| format!("known words: {}", known()), |it| format!("did you mean `{it}`?"));
    fields.report(value, Code::UnknownStatus, format!("the status `{}` is not known", shorten(text)), &hint);
    Stated::Unknown(text.to_owned())
}

fn read_plan_file(
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
    let root = parsed.tree.as_ref().map(|(tree, _)| tree.root());
    let offset = parsed.tree.as_ref().map_or(0, |(_, at)| *at);
    let mut fields = Fields { path: &path, file: bytes, offset, root, problems: Vec::new() };
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
    let listed = steps_list::read(id, &outline);
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
        kind: fields.word("kind", kinds, "plan, program").unwrap_or_default(),
        program: fields.text("program").map(PlanId::new),
        category: fields.word("category", category, &CATEGORIES.join(", ")),
        priority: fields.priority().unwrap_or_default(),
        tags: fields.texts("tags").unwrap_or_default(),
        files: fields.texts("files").unwrap_or_default(),
        goals: fields.texts("goals").unwrap_or_default(),
        success_criteria: fields.texts("success_criteria").unwrap_or_default(),
        order: fields.word("order", orders, "dependencies, sequential").unwrap_or_default(),
        confirm_phases: fields.texts("confirm_phases").unwrap_or_default(),
        confirmations: fields.confirmations(),
        draft: fields.json("draft"),
        created_at: fields.time("created_at"),
        metadata: fields.mapping("metadata"),
        notes: fields.notes(),
        custom: fields.custom(PLAN_KEYS),
        body: String::new(),
        steps: Vec::new(),
        problems: Vec::new(),
    }
}

/// The categories that a plan can have.
pub const CATEGORIES: [&str; 7] = ["feature", "bug", "change", "analysis", "debug", "refactor", "documentation"];

fn category(word: &str) -> Option<String> {
    CATEGORIES.iter().find(|it| it.eq_ignore_ascii_case(word)).map(|it| (*it).to_owned())
}

fn missing_step(plan: &Plan, dir: &str, listed: &Listed) -> Step {
    let id = StepId { plan: plan.id.clone(), number: listed.number.clone() };
    let path = format!("{dir}/{}", file_name::step_file(&listed.number));
    let mut step = step_of(&id, &mut no_fields(&path), &Outline::default(), Some(listed), &Words::default());
    let message = format!("`{}` lists step {}, but there is no such file", plan.path, listed.number);
    let hint = "`planwatch check --fix` makes it; so does the first write to it";
    step.problems = vec![Problem::of_file(&path, Code::MissingStepFile, message, hint).fixable()];
    step.path = path;
    step
}

fn no_fields(path: &str) -> Fields<'_> {
    Fields { path, file: &[], offset: 0, root: None, problems: Vec::new() }
}

fn read_step(id: &StepId, source: &Source, listed: Option<&Listed>, words: &Words, bodies: Bodies) -> Step {
    let content = source.content.as_ref().ok();
    let bytes = content.map_or(&[][..], |it| &it.bytes);
    let parsed = parse(&source.path, bytes);
    let outline = markdown::outline(parsed.body);
    let root = parsed.tree.as_ref().map(|(tree, _)| tree.root());
    let offset = parsed.tree.as_ref().map_or(0, |(_, at)| *at);
    let mut fields = Fields { path: &source.path, file: bytes, offset, root, problems: Vec::new() };
    let mut step = step_of(id, &mut fields, &outline, listed, words);
    let from_body = body_dependencies(id, &mut fields, parsed.body, &outline, listed);
    step.depends = own_dependencies(id, &mut fields, &from_body).unwrap_or(from_body.all);
    report_id(id, &mut fields);
    report_claim(&step, &mut fields);
    step.problems = fields.problems;
    step.problems.extend(parsed.problems);
    step.problems.extend(source.content.as_ref().err().map(|why| unread(source, why)));
    report_version(&mut step, &source.path);
    if step.problems.iter().any(|it| it.code.refuses_writing()) {
        step.status = Stated::Unknown("?".to_owned());
    }
    step.path.clone_from(&source.path);
    // An unreadable file is there all the same, so it has a mark of its own instead of a hash.
    step.etag = Some(content.map_or_else(|| "unreadable".to_owned(), |it| it.etag.clone()));
    step.modified = content.map(|it| it.modified);
    if bodies == Bodies::Keep {
        parsed.body.clone_into(&mut step.body);
    }
    step
}

fn step_of(id: &StepId, fields: &mut Fields<'_>, outline: &Outline, listed: Option<&Listed>, words: &Words) -> Step {
    let heading = outline.title().map(without_step_prefix).filter(|it| !it.is_empty()).map(str::to_owned);
    let from_list = || listed.map(|it| it.title.clone()).filter(|it| !it.is_empty());
    let is_required = |it: &str| it.eq_ignore_ascii_case("required").then_some(());
    let kind = fields.text("type");
    let confirm = fields.word("confirm", is_required, "required").is_some();
    let tasks = ["tasks", "acceptance", "acceptance criteria"].iter().filter_map(|name| {
        outline.section(|it| it.trim_end_matches(':').eq_ignore_ascii_case(name)).map(|it| outline.tasks_in(&it))
    });
    let (tasks_done, tasks_total) = tasks.fold((0, 0), |sum, it| (sum.0 + it.0, sum.1 + it.1));
    Step {
        id: id.clone(),
        path: String::new(),
        etag: None,
        modified: None,
        status: status(fields, StepStatus::Pending, words),
        claim: fields.claim(),
        title: fields.text("title").or(heading).or_else(from_list).unwrap_or_else(|| format!("step-{}", id.number)),
        depends: listed.and_then(|it| it.depends.clone()).unwrap_or_default(),
        phase: fields.text("phase"),
        needs_confirmation: confirm || kind.as_deref() == Some("user_validation"),
        kind,
        assignee: fields.text("assignee"),
        priority: fields.priority(),
        tags: fields.texts("tags").unwrap_or_default(),
        created_at: fields.time("created_at"),
        created_by: fields.text("created_by").unwrap_or_else(|| "user".to_owned()),
        confirmed: fields.confirmed(),
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
    }
}

/// `Step 2: Title`, `Step 2.5 – Title`, `step-2. Title`; a heading that is only `Step 2` stays.
fn without_step_prefix(title: &str) -> &str {
    let rest = title.get(..4).filter(|it| it.eq_ignore_ascii_case("step")).map(|_| &title[4..]);
    let Some(rest) = rest.map(|it| it.trim_start_matches([' ', '-', '#'])) else { return title };
    let digits = references::number_at(rest);
    let behind = rest[digits.len()..].trim_start();
    let stripped = behind.strip_prefix([':', '.', '-', '–', '—', ')']).map(str::trim);
    stripped.filter(|it| !digits.is_empty() && !it.is_empty()).unwrap_or(title)
}

/// What the Steps line and the Dependencies section say together.
struct BodyDependencies {
    all: Vec<StepId>,
    /// Whether either says anything at all, None included.
    is_said: bool,
}

fn body_dependencies(id: &StepId, fields: &mut Fields<'_>, body: &str, outline: &Outline, listed: Option<&Listed>) -> BodyDependencies {
    let from_line = listed.and_then(|it| it.depends.clone());
    let range = outline.section(|it| it.trim_end_matches(':').eq_ignore_ascii_case("dependencies"));
    let section = range.clone().map(|it| references::read_section(id, &body[it]));
    let is_own_key = fields.get("depends").is_some();
    let body_at = fields.file.len() - body.len();
    let at = range.map_or(0, |it| body_at + it.start);
    if section == Some(Section::Unclear) && !is_own_key && from_line.is_none() {
        let message = "the Dependencies section names no `step-N`";
        let hint = "name the steps as step-N, write None, or add `depends: []` to the front matter";
        fields.problems.push(Problem::at_byte(fields.path, fields.file, at, Code::DependenciesUnclear, message, hint));
    }
    let from_section = match section {
        Some(Section::Steps(steps)) => Some(steps),
        Some(Section::None) => Some(Vec::new()),
        _ => None,
    };
    if let (Some(line), Some(section), false) = (&from_line, &from_section, is_own_key)
        && !same(line, section)
    {
        let message = "the Dependencies section and the plan's Steps list disagree; both count";
        let hint = "make them say the same, or add `depends` to the front matter";
        fields.problems.push(Problem::at_byte(fields.path, fields.file, at, Code::DependenciesDisagree, message, hint));
    }
    let is_said = from_line.as_ref().is_some_and(|it| !it.is_empty()) || from_section.as_ref().is_some_and(|it| !it.is_empty());
    let mut all = from_line.unwrap_or_default();
    for step in from_section.unwrap_or_default() {
        if !all.contains(&step) {
            all.push(step);
        }
    }
    BodyDependencies { all, is_said }
}

/// The front matter's `depends`: the whole truth if the key is there, also when it is empty.
fn own_dependencies(id: &StepId, fields: &mut Fields<'_>, from_body: &BodyDependencies) -> Option<Vec<StepId>> {
    let key = fields.root?.get("depends")?;
    let mut own: Vec<StepId> = Vec::new();
    for item in fields.items("depends").unwrap_or_default() {
        let text = item.text().unwrap_or_default();
        match references::read_item(&id.plan, text) {
            Some(step) if own.contains(&step) => {}
            Some(step) => own.push(step),
            None if item.is_null() => {}
            None => {
                let message = format!("the dependency `{}` is no step", shorten(text));
                fields.report(item, Code::DependencyMissing, message, "write a step number, or <plan>:<number>");
            }
        }
    }
    if from_body.is_said && !same(&own, &from_body.all) {
        let message = "`depends` and the text disagree; `depends` counts".to_owned();
        fields.report(key, Code::DependenciesDisagree, message, "make the Steps list and the Dependencies section say the same");
    }
    Some(own)
}

fn same(a: &[StepId], b: &[StepId]) -> bool {
    a.len() == b.len() && a.iter().all(|it| b.contains(it))
}

fn report_id(id: &StepId, fields: &mut Fields<'_>) {
    let Some(value) = fields.get("id") else { return };
    let text = value.text().unwrap_or_default();
    let step = read_number(text).map(|number| StepId { plan: id.plan.clone(), number }).or_else(|| read_step_id(text));
    if step.as_ref() != Some(id) {
        let message = format!("`id: {}` differs from the file's place, which is `{id}`", shorten(text));
        fields.report(value, Code::IdDiffers, message, "the file's name counts; `planwatch check --fix` corrects the line");
        if let Some(it) = fields.problems.last_mut() {
            it.is_fixable = true;
        }
    }
}

fn report_claim(step: &Step, fields: &mut Fields<'_>) {
    let Some(value) = fields.get("claim").filter(|_| step.claim.is_some()) else { return };
    if !step.status.is(StepStatus::InProgress) {
        let message = format!("the claim is void, because the status is `{}`", shorten(step.status.word()));
        fields.report(value, Code::StaleClaim, message, "the next write takes the line out");
    }
}

fn report_version(step: &mut Step, path: &str) {
    let name = path.rsplit('/').next().unwrap_or_default();
    if file_name::looks_like_version(name) {
        let message = format!("step numbers are decimals: this is step {}", step.id.number);
        step.problems.push(Problem::of_file(path, Code::LooksLikeAVersion, message, "after 1.9 comes 1.91, or 2"));
    }
}
