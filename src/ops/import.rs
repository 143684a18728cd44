//! `import`: makes plans from documents, other tools' stores and directories of plans. The source is not changed.

mod again;
mod decisions;

use serde_json::{Map, Value, json};

use crate::api::context::Context;
use crate::api::error::Error;
use crate::api::views;
use crate::disk::{DiskError, Origin, OutsideFile, OutsideFiles};
use crate::plan::change::{set_text, set_word};
use crate::plan::file_name::{PLAN_FILE, step_file};
use crate::plan::id::{self, PlanId};
use crate::plan::import::{self, Draft, Form, Imported, ImportedPlan, Nothing, SourceFile, Unmapped};
use crate::plan::problem::{Code, Problem, Severity};
use crate::plan::read::{PLAN_KEYS, STEP_KEYS};
use crate::store::new_plan::{self, Files};
use crate::store::transaction::{self, ChangeReport, Transaction};
use crate::store::{idempotency, relink, typed_words};
use crate::text::header_edit::Change;
use crate::text::line_index::{self, line_text};
use crate::text::typed::shell_word;
use crate::text::{foreign, front_matter, word_loss};

pub use crate::api::requests::ImportRequest;

#[derive(Debug, Clone)]
pub struct ImportReport {
    pub form: Form,
    pub change: ChangeReport,
    /// The files that were made, plan by plan, with their bytes.
    pub plans: Vec<(PlanId, Files)>,
    pub unmapped: Vec<Unmapped>,
    /// Files that could not be read, although others could.
    pub unread: Vec<Problem>,
    /// Documents and plans that were imported before, each with the plan that was made from it. They were not imported
    /// again.
    pub already: Vec<(String, PlanId)>,
}

impl ImportReport {
    pub fn to_json(&self) -> Value {
        let more = report_keys(self.form, &self.unmapped, &self.already, &self.unread);
        views::with(&self.change.to_json(), more.into())
    }
}

/// The keys that the report has in addition to those of its change.
fn report_keys(
    form: Form,
    unmapped: &[Unmapped],
    already: &[(String, PlanId)],
    unread: &[Problem],
) -> Map<String, Value> {
    let one = |it: &Unmapped| json!({"path": it.path, "line": it.line, "why": it.why, "text": it.text});
    let unmapped = unmapped.iter().map(one).collect();
    let problems = unread.iter().map(|it| views::problem("", it)).collect();
    let already = already.iter().map(|(path, plan)| json!({"path": path, "plan": plan.as_str()})).collect();
    let keys =
        [("form", form.word().into()), ("unmapped", unmapped), ("already", already), ("problems", problems)];
    keys.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
}

/// Reads the source and makes the plans, either all of them or none. Every word of the source is in one of the new files
/// or is reported as unmapped.
pub fn import(context: &Context, request: &ImportRequest) -> Result<ImportReport, Error> {
    let heading = heading(request)?;
    let (mut sources, unread) = sources(context, request)?;
    let name = name_of(request);
    let mut imported =
        import::convert(&name, &sources, &context.config.words).map_err(|it| nothing(request, &it))?;
    imported.unread.extend(unread);
    let n_plans = imported.plans.len();
    for (of_one, what, option) in
        [(request.name.is_some(), "name", "--as"), (request.title.is_some(), "title", "--title")]
    {
        if n_plans > 1 && of_one {
            let message = format!("the source has {n_plans} plans, which cannot share one {what}");
            let hint = format!("leave {option} out, or import a source that has only one plan");
            return Err(Error::usage(message, hint));
        }
    }
    for plan in &mut imported.plans {
        head(plan, request, &heading);
    }
    let mut writing = Transaction::begin(context, "import", request.mode)?;
    let mut change = ChangeReport::new("import", request.mode);
    let found = new_sources(context, request, &mut imported, &mut sources)?;
    change.hints.extend(found.hints);
    let plans = made(context, request, &imported, &found.sources)?;
    let about = plans.first().map(|it| &it.0);
    let recorded = decisions::recorded(context, about, &imported.decisions, &mut imported.unmapped);
    let texts: Vec<_> = plans.iter().flat_map(|(_, files)| files).map(|it| it.1.as_slice()).collect();
    let texts: Vec<_> = texts.into_iter().chain(recorded.files.iter().map(|it| it.1.as_slice())).collect();
    let ids: Vec<_> = imported.plans.iter().flat_map(corrected_ids).collect();
    let is_read = |it: &&SourceFile| imported.unread.iter().all(|problem| problem.path != it.path);
    let readable: Vec<_> = sources.iter().filter(is_read).collect();
    let unmapped = with_lost_words(imported.form, &readable, (&texts, &ids), imported.unmapped);
    change.changes.extend(plans.iter().map(|(id, files)| new_plan::changed(context, id, files)));
    change.changes.extend(recorded.changes.iter().cloned());
    idempotency::record(context, || change.changes.clone());
    idempotency::record_import(context, || {
        report_keys(imported.form, &unmapped, &found.already, &imported.unread)
    });
    match plans.as_slice() {
        [(id, files)] if recorded.files.is_empty() => writing.create_directory(id.as_str(), files)?,
        several => {
            let create = |(id, files): &(PlanId, Files)| new_plan::operations(id, files);
            let ops = several.iter().flat_map(create).chain(recorded.operations());
            writing.batch("import", ops.collect())?;
        }
    }
    change.diff = writing.diff;
    change.hints.extend(hints(context, &plans));
    Ok(ImportReport {
        form: imported.form,
        change,
        plans,
        unmapped,
        unread: imported.unread,
        already: found.already,
    })
}

/// The part of a source that is new.
struct NewSources {
    /// For each plan that is to be made, its source.
    sources: Vec<Option<again::Source>>,
    already: Vec<(String, PlanId)>,
    hints: Vec<String>,
}

/// Leaves out what was imported before, unless the request imports it again.
///
/// # Errors
///
/// Fails if nothing is left.
fn new_sources(
    context: &Context,
    request: &ImportRequest,
    imported: &mut Imported,
    sources: &mut Vec<SourceFile>,
) -> Result<NewSources, Error> {
    let form = imported.form;
    let of = |plan: &ImportedPlan| again::Source::of(context, request, form, plan, sources);
    let origins: Vec<_> = imported.plans.iter().map(of).collect();
    let known = again::known(context, &imported.plans, &origins)?;
    let mut found = NewSources { sources: Vec::new(), already: Vec::new(), hints: Vec::new() };
    if request.again {
        let hint = |it: &PlanId| format!("`{it}` was already imported from this source");
        found.hints = known.iter().flatten().map(hint).collect();
        found.sources = origins;
        return Ok(found);
    }
    if known.iter().all(Option::is_some) {
        return Err(again::refused(request, &known.into_iter().flatten().collect::<Vec<_>>()));
    }
    let mut plans = Vec::new();
    for ((plan, origin), known) in std::mem::take(&mut imported.plans).into_iter().zip(origins).zip(known) {
        match known {
            None => {
                plans.push(plan);
                found.sources.push(origin);
            }
            Some(id) => {
                let own = plan.path.clone().unwrap_or_default();
                let is_of = |path: &str| path == own || path.rsplit_once('/').map_or("", |it| it.0) == own;
                sources.retain(|it| !is_of(&it.path));
                imported.unmapped.retain(|it| !is_of(&it.path));
                found.already.push((if own.is_empty() { plan.title } else { own }, id));
            }
        }
    }
    imported.plans = plans;
    Ok(found)
}

/// The title, category and priority of the request, as changes of a plan's front matter.
fn heading(request: &ImportRequest) -> Result<Vec<Change>, Error> {
    let mut changes = Vec::new();
    if let Some(title) = &request.title {
        if title.trim().is_empty() {
            return Err(Error::usage("the title is empty", "give the plan a title"));
        }
        changes.push(set_text("title", title.trim()));
    }
    if let Some(category) = &request.category {
        changes.push(set_word("category", &typed_words::category(category)?));
    }
    if let Some(priority) = &request.priority {
        changes.push(set_word("priority", typed_words::priority(priority)?.word()));
    }
    Ok(changes)
}

/// Gives a plan the title, category and priority of the request. A plan without a `plan.md` gets one for them.
fn head(plan: &mut ImportedPlan, request: &ImportRequest, heading: &[Change]) {
    if heading.is_empty() {
        return;
    }
    let draft = plan.plan.get_or_insert_default();
    draft.changes.retain(|it| heading.iter().all(|new| new.key() != it.key()));
    draft.changes.extend(heading.iter().cloned());
    if let Some(title) = &request.title {
        plan.title = title.trim().to_owned();
    }
}

/// The files to import. If the source is a directory, also a problem for each of its files that could not be read.
fn sources(context: &Context, request: &ImportRequest) -> Result<(Vec<SourceFile>, Vec<Problem>), Error> {
    if let Some(text) = &request.text {
        let file = SourceFile { path: request.shown.clone(), bytes: text.clone().into_bytes() };
        return Ok((vec![file], Vec::new()));
    }
    let is_wanted = |path: &str| {
        matches!(path, ".beads/" | ".backlog/")
            || [".md", ".markdown", ".jsonl"].iter().any(|it| path.ends_with(it))
            || matches!(path.rsplit('/').next(), Some("config.yml" | "backlog.config.yml"))
    };
    let reach = context.plans.reach(&context.here.root);
    let found =
        reach.read_all(&request.source, request.origin, &is_wanted).map_err(|error| match error.code() {
            "not-found" => {
                Error::NotFound { what: "file or directory", name: request.shown.clone(), nearest: None }
            }
            // A path that a person names is refused only because of a link that leads out of the repository.
            _ if request.origin == Origin::User && matches!(error, DiskError::OutsideRepository { .. }) => {
                Error::leads_out(&request.shown)
            }
            _ => Error::Disk(error),
        })?;
    let OutsideFiles { mut files, mut unread } = found;
    let all = files.iter().map(|it| it.relative.as_str());
    let all: Vec<_> = all.chain(unread.iter().map(|it| it.0.as_str())).map(str::to_owned).collect();
    let is_kept = narrowed(&all, request.source.ends_with(".beads"));
    files.retain(|it| is_kept(&it.relative));
    unread.retain(|it| is_kept(&it.0));
    if files.is_empty() && !unread.is_empty() {
        return Err(Error::Disk(unread.remove(0).1));
    }
    let file = |it: OutsideFile| SourceFile { path: it.relative, bytes: it.bytes };
    let problem = |(path, error): (String, DiskError)| {
        let (code, hint) = match error.code() {
            "too-large" => (Code::TooLarge, "split it, then import it"),
            _ => (Code::Unreadable, "make it readable, then import it"),
        };
        Problem::of_file(&path, code, error.to_string(), hint)
    };
    Ok((files.into_iter().map(file).collect(), unread.into_iter().map(problem).collect()))
}

/// The filter for the files of a directory. If the directory contains another tool's store, only the store's files count.
/// Otherwise, if the directory contains `.md` files, its JSON Lines files are left out. In the directory `.beads` itself,
/// the JSON Lines files are not left out.
fn narrowed(all: &[String], is_beads: bool) -> fn(&str) -> bool {
    let has = |part: &str| all.iter().any(|it| it.starts_with(part));
    let has_end = |end: &str| all.iter().any(|it| it.ends_with(end));
    if has(".beads/") {
        |it| it.starts_with(".beads/")
    } else if ["backlog/", ".backlog/"]
        .iter()
        .any(|it| has(&format!("{it}tasks/")) || has(&format!("{it}config.yml")))
    {
        |it| it.starts_with("backlog/") || it.starts_with(".backlog/") || it == "backlog.config.yml"
    } else if !is_beads && has_end(".jsonl") && has_end(".md") {
        |it| !it.ends_with(".jsonl")
    } else {
        |_| true
    }
}

fn name_of(request: &ImportRequest) -> String {
    if let Some(name) = &request.name {
        return name.clone();
    }
    if request.text.is_some() {
        return String::new();
    }
    let mut path = request.source.as_path();
    // A name that is the same for every store does not describe its content, so the directory above gives the name.
    while let Some(name) = path.file_name().and_then(|it| it.to_str()) {
        let is_plain = !matches!(name, ".beads" | "backlog" | ".backlog" | "issues.jsonl" | "beads.jsonl");
        match path.parent() {
            Some(parent) if !is_plain && parent.file_name().is_some() => path = parent,
            _ => break,
        }
    }
    path.file_stem().map(|it| it.to_string_lossy().into_owned()).unwrap_or_default()
}

fn nothing(request: &ImportRequest, error: &Nothing) -> Error {
    let source = &request.shown;
    let hint = match error {
        Nothing::NotJson { .. } => "correct this line",
        _ => "import a Markdown file, a directory of plans, or a store of Backlog.md or beads",
    };
    Error::failed("nothing-to-import", format!("`{source}` cannot be imported: {error}"), hint)
}

type Made = Vec<(PlanId, Files)>;

fn made(
    context: &Context,
    request: &ImportRequest,
    imported: &Imported,
    sources: &[Option<again::Source>],
) -> Result<Made, Error> {
    let mut taken: Vec<String> = crate::store::load::taken_names(context);
    let mut made = Vec::new();
    for (plan, source) in imported.plans.iter().zip(sources) {
        let is_taken = |it: &str| taken.iter().any(|name| name.eq_ignore_ascii_case(it));
        let wanted = request.name.as_deref().unwrap_or(&plan.title);
        let id = match &request.name {
            Some(name) if is_taken(&id::slug(name, &|_| false)) => {
                let hint = "choose another --as";
                return Err(Error::conflict(
                    "plan-exists",
                    format!("there is a plan `{name}` already"),
                    hint,
                ));
            }
            _ => PlanId::new(id::slug(wanted, &is_taken)),
        };
        taken.push(id.to_string());
        made.push((id.clone(), files(context, &id, plan, source.as_ref())?));
    }
    Ok(made)
}

fn files(
    context: &Context,
    id: &PlanId,
    plan: &ImportedPlan,
    source: Option<&again::Source>,
) -> Result<Files, Error> {
    let mut files = Vec::new();
    if let Some(draft) = &plan.plan {
        let mut changes = draft.changes.clone();
        let is_dated = relink::has_key(draft.text.as_bytes(), "created_at");
        changes.extend(
            (!draft.is_verbatim && !is_dated).then(|| set_word("created_at", &context.now.to_string())),
        );
        if let Some(source) = source {
            source.note(draft, &mut changes);
        }
        files.push((PLAN_FILE.to_owned(), bytes(PLAN_FILE, draft, &changes, PLAN_KEYS)?));
    }
    for (number, draft) in &plan.steps {
        let name = step_file(number);
        let own = format!("{id}:{number}");
        let mut changes = draft.changes.clone();
        let is_named = relink::has_key(draft.text.as_bytes(), "id");
        if !draft.is_verbatim || is_named {
            changes.push(set_text("id", &own));
        }
        if !draft.is_verbatim && !changes.iter().any(|it| it.key() == "created_at") {
            changes.push(set_word("created_at", &context.now.to_string()));
        }
        files.push((name.clone(), bytes(&name, draft, &changes, STEP_KEYS)?));
    }
    let read = new_plan::as_read(context, id, &files);
    let problems = read.problems.iter().chain(read.steps.iter().flat_map(|it| &it.problems));
    match problems.into_iter().find(|it| it.code.refuses_writing()) {
        Some(problem) => Err(Error::File { problem: Box::new(problem.clone()) }),
        None => Ok(files),
    }
}

fn bytes(name: &str, draft: &Draft, changes: &[Change], order: &[&str]) -> Result<Vec<u8>, Error> {
    transaction::edit(name, draft.text.as_bytes(), changes, order)
}

fn hints(context: &Context, plans: &Made) -> Vec<String> {
    let mut hints = Vec::new();
    for (id, files) in plans {
        let read = new_plan::as_read(context, id, files);
        let problems = read.problems.iter().chain(read.steps.iter().flat_map(|it| &it.problems));
        if problems.into_iter().any(|it| it.severity() == Severity::Error) {
            hints.push(format!("`{id}` has an error; `planwatch check` shows it"));
        }
    }
    if let [(id, _)] = plans.as_slice() {
        hints.push(format!("planwatch list {}", shell_word(id)));
    }
    hints
}

/// The ids in the files of steps that are copied. An id that does not fit the copy is corrected, so its words are not lost.
fn corrected_ids(plan: &ImportedPlan) -> impl Iterator<Item = String> {
    let copied = plan.steps.iter().filter(|(_, draft)| draft.is_verbatim);
    copied.filter_map(|(_, draft)| relink::written_id(draft.text.as_bytes()))
}

/// Enforces the rule that no import loses a word: reports each line of the source that has a word which is missing in the
/// new files, is not in a corrected id, and is not reported yet.
fn with_lost_words(
    form: Form,
    sources: &[&SourceFile],
    (made, corrected): (&[&[u8]], &[String]),
    mut unmapped: Vec<Unmapped>,
) -> Vec<Unmapped> {
    let result: Vec<_> = made.iter().map(|bytes| word_loss::text_of(bytes)).collect();
    let told: Vec<_> = unmapped.iter().map(|it| it.text.clone()).collect();
    let texts: Vec<(&SourceFile, String)> = sources.iter().map(|it| (*it, source_text(form, it))).collect();
    let whole: String = texts.iter().map(|(_, text)| format!("{text}\n")).collect();
    let kept = result.iter().chain(&told).chain(corrected).map(String::as_str);
    let mut lines: Vec<(usize, u32)> = Vec::new();
    for lost in word_loss::lost(&whole, kept) {
        let mut at = lost.at;
        let file = texts.iter().position(|(_, text)| {
            let is_here = at <= text.len();
            at -= if is_here { 0 } else { text.len() + 1 };
            is_here
        });
        let Some(file) = file else { continue };
        let line = line_index::place(texts[file].1.as_bytes(), at).line;
        if lines.last() != Some(&(file, line)) {
            lines.push((file, line));
        }
    }
    for (file, line) in lines {
        let (source, text) = &texts[file];
        let text = line_text(text.as_bytes(), line).unwrap_or_default();
        let why = "not all words of this line are in the result";
        unmapped.push(Unmapped { path: source.path.clone(), line: None, why, text });
    }
    unmapped
}

/// The text of a source. The names of a store's keys are left out, because they belong to the format.
pub fn source_text(form: Form, source: &SourceFile) -> String {
    let text = String::from_utf8_lossy(&source.bytes);
    match form {
        Form::Beads if source.path.ends_with(".jsonl") => {
            let values = text.lines().filter_map(|it| serde_json::from_str::<Value>(it).ok());
            values.map(|it| json_text(&it)).collect()
        }
        Form::Backlog => match foreign::keys(&source.bytes) {
            Some(keys) => {
                let body = front_matter::split(&source.bytes).body_start();
                keys.values().map(json_text).collect::<String>() + &text[body.min(text.len())..]
            }
            None => text.into_owned(),
        },
        _ => word_loss::text_of(&source.bytes),
    }
}

fn json_text(value: &Value) -> String {
    match value {
        Value::String(text) => format!("{text}\n"),
        Value::Number(number) => format!("{number}\n"),
        Value::Array(items) => items.iter().map(json_text).collect(),
        Value::Object(map) => map.values().map(json_text).collect(),
        _ => String::new(),
    }
}
