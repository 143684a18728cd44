//! `template`: the templates that `new --template` fills in. The project's own templates take precedence over built-in ones.

mod builtin;

use std::path::Path;

use serde::Serialize;
use serde_json::{Value, json};

use crate::api::context::Context;
use crate::api::error::Error;
use crate::api::views::{shown_path, value};
use crate::ops::create::{self, NewRequest};
use crate::plan::change::{NewPlan, NewStep, set_text, set_word};
use crate::plan::file_name::{FileName, PLAN_FILE, classify, step_file};
use crate::plan::id::{PlanId, StepId};
use crate::plan::problem::{Problem, Severity};
use crate::plan::read::{PLAN_KEYS, STEP_KEYS};
use crate::plan::step_number::StepNumber;
use crate::plan::words::nearest;
use crate::store::prompt::{self, Origin, Prompt};
use crate::store::{new_plan, new_step, relink, transaction};
use crate::text::header_edit::Change;
use crate::text::placeholders;
use crate::text::{front_matter, markdown};

/// The directory of the project's own templates, below the plans directory.
const OWN: &str = "_templates";

#[derive(Debug, Clone, Serialize)]
pub struct Template {
    pub name: String,
    /// The first comment of `plan.md`, in one line.
    pub description: Option<String>,
    pub source: Origin,
    pub files: Vec<TemplateFile>,
    /// Why the template cannot be used. [`list`] reports it; other functions fail with an error.
    #[serde(skip)]
    pub problem: Option<String>,
}

#[derive(Debug, Clone, Serialize)]
pub struct TemplateFile {
    pub name: String,
    /// For one of the project's own templates, the file's path. For a built-in template, the file's path in planwatch's
    /// source. After [`render`], the path at which `new` would create the file.
    pub path: String,
    pub text: String,
}

/// All templates: the project's own, then the built-in ones. If both have the same name, only the project's is listed. A
/// template that cannot be read has no files.
pub fn list(context: &Context) -> Vec<Template> {
    let unread = |name: String, error: Error| Template {
        name,
        description: None,
        source: Origin::Own,
        files: Vec::new(),
        problem: Some(error.to_string()),
    };
    let read = |name: String| own(context, &name).unwrap_or_else(|error| unread(name, error));
    let own: Vec<_> = own_names(context).into_iter().map(read).collect();
    let is_free = |name: &str| own.iter().all(|it| it.name != name);
    let built_in = builtin::ALL.iter().filter(|(name, _)| is_free(name));
    let built_in: Vec<_> = built_in.map(|(name, files)| built_in_template(name, files)).collect();
    own.into_iter().chain(built_in).collect()
}

/// A list of templates and prompts, without their texts. The key `of` is `plan` for a template and `prompt` for a prompt.
pub fn list_to_json(templates: &[Template], prompts: &[Prompt]) -> Value {
    let of_plans = templates.iter().map(|it| {
        let names: Vec<_> = it.files.iter().map(|it| it.name.as_str()).collect();
        json!({
            "name": it.name, "description": it.description, "source": it.source, "files": names,
            "of": "plan", "problem": it.problem,
        })
    });
    let of_prompts = prompts.iter().map(|it| {
        let file = format!("{}.pmt", it.name);
        json!({
            "name": it.name, "description": it.description, "source": it.source, "files": [file],
            "of": "prompt", "problem": it.complaint(),
        })
    });
    json!({"templates": of_plans.chain(of_prompts).collect::<Vec<_>>()})
}

#[derive(Debug, Clone)]
pub enum Named {
    Template(Template),
    Prompt(Prompt),
}

/// Finds the template or the prompt with this name. A template takes precedence over a prompt.
pub fn named(context: &Context, name: &str) -> Result<Named, Error> {
    match show(context, name) {
        Ok(it) => Ok(Named::Template(it)),
        Err(Error::NotFound { what, name, nearest: near }) => match prompt::show(context, &name) {
            Some(it) => Ok(Named::Prompt(it)),
            None => {
                let nearest = near.or_else(|| nearest(&name, prompt::names()));
                Err(Error::NotFound { what, name, nearest })
            }
        },
        Err(error) => Err(error),
    }
}

pub fn show(context: &Context, name: &str) -> Result<Template, Error> {
    let own_names = own_names(context);
    if own_names.iter().any(|it| it == name) {
        return own(context, name);
    }
    if let Some((name, files)) = builtin::ALL.iter().find(|(it, _)| *it == name) {
        return Ok(built_in_template(name, files));
    }
    let known = builtin::ALL.iter().map(|(it, _)| *it).chain(own_names.iter().map(String::as_str));
    let nearest = nearest(name, known);
    Err(Error::NotFound { what: "template", name: name.to_owned(), nearest })
}

impl Template {
    pub fn to_json(&self) -> Value {
        value(self)
    }
}

/// The files that `new` would make from a template, without making them.
pub fn render(context: &Context, request: &NewRequest) -> Result<Template, Error> {
    let Some(name) = &request.template else {
        return Err(Error::usage("no template is named", "`planwatch template list` lists them"));
    };
    let mut template = show(context, name)?;
    let (id, files) = create::files(context, request)?;
    let root = context.root_name();
    let file = |(name, bytes): (String, Vec<u8>)| TemplateFile {
        path: shown_path(&root, &format!("{id}/{name}")),
        text: String::from_utf8_lossy(&bytes).into_owned(),
        name,
    };
    template.files = files.into_iter().map(file).collect();
    Ok(template)
}

/// Fills a template in: the files of a new plan, `plan.md` first.
pub(crate) fn fill(
    context: &Context,
    request: &NewRequest,
    name: &str,
    id: &PlanId,
    plan: &NewPlan,
) -> Result<Vec<(String, Vec<u8>)>, Error> {
    let template = show(context, name)?;
    let mut files = Vec::new();
    for file in &template.files {
        let values = values(context, request, id, &file.name);
        let text = placeholders::fill_file(&file.text, &values)
            .map_err(|it| Error::template(file.path.clone(), it))?;
        let (name, changes, keys) = match classify(&file.name) {
            FileName::Step(number) => {
                let step = StepId { plan: id.clone(), number };
                (step_file(&step.number), step_changes(context, request, &text, &step), STEP_KEYS)
            }
            _ => (PLAN_FILE.to_owned(), plan_changes(context, &text, plan), PLAN_KEYS),
        };
        files.push((name, transaction::edit(&file.path, text.as_bytes(), &changes, keys)?));
    }
    check(context, &template, id, &files)?;
    Ok(files)
}

/// The highest step number among a template's files. Further steps are numbered after it.
pub(crate) fn last_number(files: &[(String, Vec<u8>)]) -> Option<StepNumber> {
    let numbers = files.iter().filter_map(|(name, _)| match classify(name) {
        FileName::Step(number) => Some(number),
        _ => None,
    });
    numbers.max()
}

/// The values of the placeholders. A value that the request does not give is empty, except `by`: it is then the caller's
/// name.
fn values(context: &Context, request: &NewRequest, id: &PlanId, file: &str) -> Value {
    let number = match classify(file) {
        FileName::Step(number) => number.to_string(),
        _ => String::new(),
    };
    let now = context.now.to_string();
    json!({
        "title": placeholders::one_line(&request.title),
        "description": request.description.as_deref().unwrap_or_default().trim_end(),
        "goals": request.goals,
        "criteria": request.criteria,
        "tags": request.tags,
        "category": request.category.as_deref().unwrap_or_default(),
        "priority": request.priority.as_deref().unwrap_or_default(),
        "program": request.program.as_deref().unwrap_or_default(),
        "by": request.by.as_deref().unwrap_or(&context.by),
        "date": now.get(..10).unwrap_or_default(),
        "plan": id.as_str(),
        "number": number,
    })
}

/// The values of the request replace those of the template. A status that the template has is replaced only if the request
/// is for a draft.
fn plan_changes(context: &Context, text: &str, plan: &NewPlan) -> Vec<Change> {
    let keeps_status = has_key(text, "status") && !plan.is_draft;
    let mut changes = plan.changes(context.now);
    changes.retain(|it| it.key() != "status" || !keeps_status);
    let says_title = has_key(text, "title") || has_heading(text);
    changes.extend((!says_title).then(|| set_text("title", &placeholders::one_line(&plan.title))));
    changes
}

fn step_changes(context: &Context, request: &NewRequest, text: &str, id: &StepId) -> Vec<Change> {
    let maker = new_step::maker(context, request.by.as_deref());
    let new = NewStep { created_by: maker, ..NewStep::default() };
    let mut changes = new.changes(id, true, context.now);
    changes.retain(|it| it.key() != "status" || !has_key(text, "status"));
    // The edit of `id` comes after that of `status`: it inserts the key directly above `status`, which must exist by
    // then.
    changes.sort_by_key(|it| it.key() == "id");
    if !has_key(text, "title") && !has_heading(text) {
        changes.push(set_word("title", &id.number.to_string()));
    }
    changes
}

fn has_key(text: &str, key: &str) -> bool {
    relink::has_key(text.as_bytes(), key)
}

fn has_heading(text: &str) -> bool {
    let body = front_matter::split(text.as_bytes()).body_start();
    markdown::outline(&text[body..]).title().is_some_and(|it| !it.is_empty())
}

/// Reads the files as every command will read them. An error in them is an error of the template.
fn check(
    context: &Context,
    template: &Template,
    id: &PlanId,
    files: &[(String, Vec<u8>)],
) -> Result<(), Error> {
    let plan = new_plan::as_read(context, id, files);
    let problems = plan.problems.iter().chain(plan.steps.iter().flat_map(|it| &it.problems));
    let mut errors = problems.filter(|it: &&Problem| it.severity() == Severity::Error);
    let Some(problem) = errors.next() else { return Ok(()) };
    let name = problem.path.rsplit('/').next().unwrap_or_default();
    let path = template.files.iter().find(|it| it.name == name).map_or(name, |it| &it.path);
    Err(Error::Template {
        path: path.to_owned(),
        line: problem.line,
        column: problem.column,
        reason: format!("once it is filled in, {}", problem.message),
    })
}

fn built_in_template(name: &str, files: &[(&str, &str)]) -> Template {
    let file = |(file, text): &(&str, &str)| TemplateFile {
        name: (*file).to_owned(),
        path: format!("templates/{name}/{file}"),
        text: (*text).to_owned(),
    };
    Template {
        name: name.to_owned(),
        description: files.first().and_then(|(_, text)| placeholders::comment(text)),
        source: Origin::BuiltIn,
        files: files.iter().map(file).collect(),
        problem: None,
    }
}

fn own_names(context: &Context) -> Vec<String> {
    let names = context.plans.names(Path::new(OWN));
    let is_template = |it: &String| !it.starts_with('.') && context.plans.is_dir(&Path::new(OWN).join(it));
    names.into_iter().filter(is_template).collect()
}

/// Reads one of the project's own templates. Files other than `plan.md` and steps are ignored.
fn own(context: &Context, name: &str) -> Result<Template, Error> {
    let directory = Path::new(OWN).join(name);
    let root = context.root_name();
    let is_file = |it: &String| it == PLAN_FILE || matches!(classify(it), FileName::Step(_));
    let mut names: Vec<_> = context.plans.names(&directory).into_iter().filter(is_file).collect();
    names.sort_by_key(|it| match classify(it) {
        FileName::Step(number) => Some(number),
        _ => None,
    });
    let mut files = Vec::new();
    for file in names {
        let path = shown_path(&root, &format!("{OWN}/{name}/{file}"));
        let bytes = context.plans.read(&directory.join(&file))?.bytes;
        let text = String::from_utf8(bytes).map_err(|error| {
            let at = error.utf8_error().valid_up_to();
            let place = crate::text::line_index::place(error.as_bytes(), at);
            let reason = "this is not UTF-8".to_owned();
            Error::Template { path: path.clone(), line: place.line, column: place.column, reason }
        })?;
        files.push(TemplateFile { name: file, path, text });
    }
    if files.first().is_none_or(|it| it.name != PLAN_FILE) {
        let path = shown_path(&root, &format!("{OWN}/{name}/{PLAN_FILE}"));
        return Err(Error::Template { path, line: 1, column: 1, reason: "this file is missing".to_owned() });
    }
    let description = files.first().and_then(|it| placeholders::comment(&it.text));
    Ok(Template { name: name.to_owned(), description, source: Origin::Own, files, problem: None })
}
