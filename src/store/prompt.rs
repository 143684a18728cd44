//! Prompts for agents. A prompt of the project takes precedence over the built-in one.
//!
//! If a prompt of the project has an error, the error is reported with its position, and the built-in prompt is used. A
//! mistake in a prompt must not stop the work on a plan.

use std::path::Path;

use serde::Serialize;
use serde_json::{Value, json};

use crate::api::context::Context;
use crate::api::error::Error;
use crate::api::views::{shown_path, with};
use crate::plan::model::{Plan, Step};
use crate::plan::problem::{Code, Problem};
use crate::plan::words::nearest;
use crate::store::load;
use crate::store::resolve::{self, Target};
use crate::text::line_index::Place;
use crate::text::placeholders::{self, Broken};
use crate::text::typed::shell_word;

/// The directory of the project's own prompts, in the plans directory.
const OWN: &str = "_prompts";

const ENDING: &str = ".pmt";

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    /// In the project's `_prompts/`, or `_templates/` for a template.
    Own,
    BuiltIn,
}

#[derive(Debug, Clone)]
pub struct Prompt {
    pub name: String,
    /// The first comment in its text, in one line.
    pub description: Option<String>,
    pub source: Origin,
    /// The path of its file; for a built-in prompt, the path in planwatch's own source.
    pub path: String,
    pub text: String,
    /// The error that makes the prompt unusable. The built-in prompt is then used instead.
    pub problem: Option<Broken>,
    pub variables: Vec<String>,
}

impl Rendered {
    pub fn to_json(&self, name: &str) -> Value {
        json!({"name": name, "text": self.text, "notes": self.notes})
    }
}

impl Prompt {
    pub fn to_json(&self) -> Value {
        let files = json!([{"name": format!("{}{ENDING}", self.name), "path": self.path, "text": self.text}]);
        json!({
            "name": self.name, "description": self.description, "source": self.source, "files": files,
            "variables": self.variables, "problem": self.complaint(),
        })
    }

    /// The problem with its position, as `path:line:column: reason`.
    pub fn complaint(&self) -> Option<String> {
        self.problem.as_ref().map(|it| format!("{}:{}:{}: {}", self.path, it.line, it.column, it.reason))
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rendered {
    pub text: String,
    /// Warnings: why the project's own prompt could not be used.
    pub notes: Vec<String>,
}

struct BuiltIn {
    name: &'static str,
    text: &'static str,
    /// A sample value for each variable, to check the prompt and to try it out. Each list has one item.
    sample: fn() -> Value,
}

macro_rules! built_in {
    ($($name:literal $sample:ident),* $(,)?) => {
        &[$(BuiltIn {
            name: $name,
            text: include_str!(concat!("../../templates/prompts/", $name, ".pmt")),
            sample: $sample,
        }),*]
    };
}

const ALL: &[BuiltIn] = built_in! {
    "step" of_step,
    "draft-requirements" of_requirements,
    "draft-review" of_review,
    "draft-steps" of_steps,
};

/// The variables of the prompt `step`, with sample values.
fn of_step() -> Value {
    json!({
        "plan": "auth",
        "plan_word": "auth",
        "plan_title": "Sign in",
        "step": "auth:2",
        "step_word": "auth:2",
        "number": "2",
        "title": "Migrations",
        "body": "The text of the step's file.",
        "path": "plans/auth/step-2.md",
        "claim": "h4f09a21",
        "touches": ["db/**"],
        "verify": ["make test"],
        "attempts": [
            {"at": "2026-11-21T09:14:03Z", "by": "ann", "outcome": "failed", "notes": "the table is locked"}
        ],
    })
}

/// Sample values of the variables that all prompts of a draft have, together with the values in `more`. Of the boolean
/// variables `focus_…`, only the one for `focus` is true.
fn of_draft(focus: &str, more: Value) -> Value {
    let is = |it: &str| Value::Bool(it == focus);
    let values = json!({
        "title": "Sign in",
        "pass_number": 2,
        "passes": 5,
        "focus_area": focus.replace('_', " "),
        "is_first_pass": false,
        "focus_completeness": is("completeness"),
        "focus_correctness": is("correctness"),
        "focus_edge_cases": is("edge_cases"),
        "focus_scope": is("scope"),
        "focus_clarity": is("clarity"),
    });
    with(&values, more)
}

fn of_requirements() -> Value {
    let texts = json!({"conversation": "The conversation.", "previous_output": ""});
    of_draft("completeness", with(&json!({"pass_number": 1, "is_first_pass": true}), texts))
}

fn of_review() -> Value {
    let texts = json!({"conversation": "The conversation.", "previous_output": "The document so far."});
    of_draft("correctness", texts)
}

fn of_steps() -> Value {
    let texts = json!({"requirements": "The requirements.", "previous_output": "The steps so far."});
    of_draft("correctness", texts)
}

/// Fills in a prompt. A variable for which `values` has no value is empty, false or zero.
pub fn render(context: &Context, name: &str, values: &Value) -> Result<Rendered, Error> {
    let built_in = find(name)?;
    let values = with_all(&(built_in.sample)(), values);
    let mut notes = Vec::new();
    if let Some(own) = own(context, built_in) {
        let filled = match own.problem.clone() {
            Some(problem) => Err(problem),
            None => placeholders::fill(&own.text, &values),
        };
        match filled {
            Ok(text) => return Ok(Rendered { text, notes }),
            Err(problem) => {
                let complaint = Prompt { problem: Some(problem), ..own }.complaint().unwrap_or_default();
                notes.push(format!("{complaint}; the built-in prompt `{name}` is used"));
            }
        }
    }
    let text =
        placeholders::fill(built_in.text, &values).map_err(|it| Error::template(built_in_path(name), it))?;
    Ok(Rendered { text, notes })
}

/// All prompts. Each is the project's own version if there is one, even if it cannot be used. Otherwise it is the built-in
/// version.
pub fn list(context: &Context) -> Vec<Prompt> {
    ALL.iter().map(|it| own(context, it).unwrap_or_else(|| shown(it))).collect()
}

/// One prompt, not filled in. `None`: no prompt has that name.
pub fn show(context: &Context, name: &str) -> Option<Prompt> {
    let built_in = ALL.iter().find(|it| it.name == name)?;
    Some(own(context, built_in).unwrap_or_else(|| shown(built_in)))
}

/// A built-in prompt filled in with its sample values. `None`: no prompt has that name, or its text cannot be filled in.
pub fn sample_text(name: &str) -> Option<String> {
    let built_in = find(name).ok()?;
    placeholders::fill(built_in.text, &(built_in.sample)()).ok()
}

pub fn names() -> impl Iterator<Item = &'static str> {
    ALL.iter().map(|it| it.name)
}

/// Fills in a prompt with sample values, to show it. For the prompt `step`, `about` names an existing step, and the values
/// of that step are used instead. For the other prompts, `about` is the title.
pub fn try_out(context: &Context, name: &str, about: Option<&str>) -> Result<Rendered, Error> {
    let built_in = find(name)?;
    let sample = (built_in.sample)();
    let values = match about {
        None => sample,
        Some(id) if name == "step" => match resolve::target(context, id)? {
            Target::Step(named) => {
                let plan = load::existing_plan(context, &named.id.plan)?;
                let step = resolve::one_step(context, &plan, &named)?;
                step_values(context, &plan, step, step.claim.as_ref().map(|it| it.id.as_str()))
            }
            Target::Plan(_) => {
                let step = shell_word(&format!("{id}:1"));
                let hint = format!("name a step, as in `planwatch template render step {step}`");
                return Err(Error::usage(format!("`{id}` is a plan"), hint));
            }
        },
        Some(title) => {
            let mut values = sample;
            values["title"] = title.into();
            values
        }
    };
    render(context, name, &values)
}

/// The values for the prompt `step`.
pub fn step_values(context: &Context, plan: &Plan, step: &Step, claim: Option<&str>) -> Value {
    let path = shown_path(&context.root_name(), &step.path);
    let read = context.plans.read(Path::new(&step.path)).map(|it| it.bytes).unwrap_or_default();
    let start = crate::text::front_matter::split(&read).body_start();
    let body = String::from_utf8_lossy(read.get(start..).unwrap_or_default());
    let attempt = |it: &crate::plan::records::Attempt| {
        json!({
            "at": it.at.map(|it| it.to_string()).unwrap_or_default(),
            "by": it.by.as_deref().unwrap_or_default(),
            "outcome": it.outcome.as_deref().unwrap_or_default(),
            "notes": it.notes.as_deref().map(placeholders::one_line).unwrap_or_default(),
        })
    };
    json!({
        "plan": plan.id.as_str(),
        "plan_word": shell_word(&plan.id),
        "plan_title": placeholders::one_line(&plan.title),
        "step": step.id.to_string(),
        "step_word": shell_word(&step.id),
        "number": step.id.number.to_string(),
        "title": placeholders::one_line(&step.title),
        "body": body.trim(),
        "path": path,
        "claim": claim.unwrap_or_default(),
        "touches": step.touches.as_deref().unwrap_or_default(),
        "verify": step.verify.iter().map(|it| it.run.as_str()).collect::<Vec<_>>(),
        "attempts": step.attempts.iter().map(attempt).collect::<Vec<_>>(),
    })
}

pub(crate) fn problems(context: &Context) -> Vec<Problem> {
    let mut problems = Vec::new();
    for file in context.plans.names(Path::new(OWN)) {
        let Some(name) = file.strip_suffix(ENDING).filter(|it| !it.starts_with('.')) else { continue };
        let path = format!("{OWN}/{file}");
        let Some(built_in) = ALL.iter().find(|it| it.name == name) else {
            let near = nearest(name, names()).map(|it| format!("did you mean `{it}{ENDING}`?"));
            let known = || format!("the prompts are {}", names().collect::<Vec<_>>().join(", "));
            let message = format!("no prompt is named `{name}`");
            let hint = near.unwrap_or_else(known);
            problems.push(Problem::of_file(&path, Code::PromptInvalid, message, hint));
            continue;
        };
        if let Some(Broken { line, column, reason }) = own(context, built_in).and_then(|it| it.problem) {
            let message = format!("{reason}; the built-in prompt is used");
            let hint = format!(
                "`planwatch template render {name}` tries it; its variables: {}",
                variables(built_in).join(", ")
            );
            let place = Place { line, column };
            problems.push(Problem::at(&path, place, Code::PromptInvalid, message, hint));
        }
    }
    problems
}

fn variables(of: &BuiltIn) -> Vec<String> {
    (of.sample)().as_object().map(|it| it.keys().cloned().collect()).unwrap_or_default()
}

fn find(name: &str) -> Result<&'static BuiltIn, Error> {
    let missing =
        || Error::NotFound { what: "prompt", name: name.to_owned(), nearest: nearest(name, names()) };
    ALL.iter().find(|it| it.name == name).ok_or_else(missing)
}

fn built_in_path(name: &str) -> String {
    format!("templates/prompts/{name}{ENDING}")
}

fn shown(of: &BuiltIn) -> Prompt {
    Prompt {
        name: of.name.to_owned(),
        description: placeholders::comment(of.text),
        source: Origin::BuiltIn,
        path: built_in_path(of.name),
        text: of.text.to_owned(),
        problem: None,
        variables: variables(of),
    }
}

/// The project's own prompt that replaces a built-in one, if there is a file of that name.
fn own(context: &Context, built_in: &BuiltIn) -> Option<Prompt> {
    let file = format!("{}{ENDING}", built_in.name);
    if !context.plans.names(Path::new(OWN)).contains(&file) {
        return None;
    }
    let relative = format!("{OWN}/{file}");
    let (text, problem) = match context.plans.read(Path::new(&relative)) {
        Err(error) => (String::new(), Some(at_start(error.to_string()))),
        Ok(read) => match String::from_utf8(read.bytes) {
            Ok(text) => {
                let problem = placeholders::check(&text, &(built_in.sample)()).err();
                let is_empty = problem.is_none() && text.trim().is_empty();
                (text, problem.or_else(|| is_empty.then(|| at_start("the file is empty".to_owned()))))
            }
            Err(error) => {
                let place =
                    crate::text::line_index::place(error.as_bytes(), error.utf8_error().valid_up_to());
                let reason = "this is not UTF-8".to_owned();
                let text = String::from_utf8_lossy(error.as_bytes()).into_owned();
                (text, Some(Broken { line: place.line, column: place.column, reason }))
            }
        },
    };
    Some(Prompt {
        name: built_in.name.to_owned(),
        description: placeholders::comment(&text),
        source: Origin::Own,
        path: shown_path(&context.root_name(), &relative),
        text,
        problem,
        variables: variables(built_in),
    })
}

fn at_start(reason: String) -> Broken {
    Broken { line: 1, column: 1, reason }
}

/// The values that were given. Every other variable gets an empty value of its type, such as false, 0 or an empty text.
fn with_all(sample: &Value, given: &Value) -> Value {
    let empty = |it: &Value| match it {
        Value::Bool(_) => json!(false),
        Value::Number(_) => json!(0),
        Value::Array(_) => json!([]),
        Value::Object(_) => json!({}),
        _ => json!(""),
    };
    let Some(sample) = sample.as_object() else { return given.clone() };
    let one =
        |(key, it): (&String, &Value)| (key.clone(), given.get(key).cloned().unwrap_or_else(|| empty(it)));
    Value::Object(sample.iter().map(one).collect())
}

#[cfg(test)]
mod tests;
