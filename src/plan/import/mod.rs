//! Maps other forms of plans to plans of planwatch: what each file becomes, and what could not be mapped.
//!
//! Pure: the input is bytes of files, the output is texts and edits. Every word that is dropped is reported.

mod backlog;
mod beads;
mod label;
mod markdown;
mod own;
mod pieces;
mod statements;
mod verbatim;
mod waits;

pub use own::STEPS as EXPORTED_STEPS;

use serde_json::{Map, Value};

use crate::plan::change::set;
use crate::plan::id::StepId;
use crate::plan::problem::{Code, Problem};
use crate::plan::step_number::StepNumber;
use crate::plan::time::{Day, Time};
use crate::plan::words::Words;
use crate::text::header_edit::{Change, NewValue};

/// A file to import, with its path relative to the source that the caller named.
#[derive(Debug, Clone)]
pub struct SourceFile {
    pub path: String,
    pub bytes: Vec<u8>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// A document of any structure.
    Markdown,
    /// Directories with `plan.md` and `step-N.md`.
    Plans,
    Backlog,
    Beads,
}

impl Form {
    pub fn word(self) -> &'static str {
        match self {
            Self::Markdown => "markdown",
            Self::Plans => "plans",
            Self::Backlog => "backlog.md",
            Self::Beads => "beads",
        }
    }
}

#[derive(Debug, Clone)]
pub struct Imported {
    pub form: Form,
    pub plans: Vec<ImportedPlan>,
    /// The decisions in the source. Only Backlog.md has decisions; they belong to the plan that its tasks become.
    pub decisions: Vec<ImportedDecision>,
    pub unmapped: Vec<Unmapped>,
    /// Files that could not be read, although others could.
    pub unread: Vec<Problem>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct ImportedDecision {
    pub path: String,
    pub topic: String,
    pub text: String,
    pub reasoning: Option<String>,
    pub by: Option<String>,
    /// `None`: the source does not say when it was decided.
    pub at: Option<Time>,
    pub tags: Vec<String>,
    pub metadata: Map<String, Value>,
}

#[derive(Debug, Clone)]
pub struct ImportedPlan {
    /// The document or directory that became the plan; `None`: all files together did.
    pub path: Option<String>,
    /// The plan's id is made from its title.
    pub title: String,
    pub plan: Option<Draft>,
    pub steps: Vec<(StepNumber, Draft)>,
}

/// A file to be made: a text, and edits of its front matter.
#[derive(Debug, Clone, Default)]
pub struct Draft {
    pub text: String,
    pub changes: Vec<Change>,
    /// Whether the text stays unchanged, except for an `id` that would be wrong.
    pub is_verbatim: bool,
    /// Whether the source gives the status; otherwise the status is the default of a new step.
    pub has_own_status: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unmapped {
    pub path: String,
    /// Counted from 1; `None`: the whole file, or no line in particular.
    pub line: Option<u32>,
    pub why: &'static str,
    pub text: String,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Nothing {
    #[error("it contains no plan")]
    NoPlan,
    #[error("`{path}` is not UTF-8")]
    NotUtf8 { path: String },
    #[error("{path}:{line}: {reason}")]
    NotJson { path: String, line: usize, reason: String },
}

/// Recognizes files by their names and maps them; `name` is the source's name without its extension.
///
/// Files that are not UTF-8 are in [`Imported::unread`]; if no file is UTF-8, the result is an error.
pub fn convert(name: &str, files: &[SourceFile], words: &Words) -> Result<Imported, Nothing> {
    let (mut texts, mut unread, mut readable) = (Vec::new(), Vec::new(), Vec::new());
    for file in files {
        match std::str::from_utf8(&file.bytes) {
            Ok(text) => {
                texts.push((file.path.as_str(), text));
                readable.push(file);
            }
            Err(error) => unread.push(not_utf8(file, error.valid_up_to())),
        }
    }
    let first = || files.first().map(|it| it.path.clone()).unwrap_or_default();
    if texts.is_empty() && !unread.is_empty() {
        return Err(Nothing::NotUtf8 { path: first() });
    }
    let imported = match form(&readable) {
        Form::Beads => beads::convert(name, &texts)?,
        Form::Backlog => backlog::convert(name, &texts, words),
        Form::Plans => verbatim::convert(name, &texts, words),
        Form::Markdown => documents(&texts, words),
    };
    if imported.plans.is_empty() { Err(Nothing::NoPlan) } else { Ok(Imported { unread, ..imported }) }
}

/// Each document with steps becomes a plan; if no document has steps, each becomes a plan without steps.
fn documents(texts: &[(&str, &str)], words: &Words) -> Imported {
    let all: Vec<_> =
        texts.iter().map(|(path, text)| (path, text, markdown::convert(path, text, words))).collect();
    let has_steps = all.iter().any(|(_, _, (plan, _))| !plan.steps.is_empty());
    let (mut plans, mut unmapped) = (Vec::new(), Vec::new());
    for (path, text, (plan, more)) in all {
        if has_steps && plan.steps.is_empty() {
            unmapped.push(left(path, text, NO_STEPS));
            continue;
        }
        plans.push(plan);
        unmapped.extend(more);
    }
    Imported { form: Form::Markdown, plans, decisions: Vec::new(), unmapped, unread: Vec::new() }
}

/// Why a document without steps does not become a plan if others have steps; imported alone, it would become a plan.
const NO_STEPS: &str = "no steps were found in this document, so it is not a plan";

fn not_utf8(file: &SourceFile, at: usize) -> Problem {
    let hint = "save it as UTF-8, then import it";
    Problem::at_byte(&file.path, &file.bytes, at, Code::NotUtf8, "the file is not UTF-8 from here on", hint)
}

/// Maps a document without sections, in which every item is a step. The second value is the text around the list.
pub(crate) fn list(text: &str, words: &Words) -> (Vec<(StepNumber, Draft)>, String) {
    markdown::list(text, words)
}

fn form(files: &[&SourceFile]) -> Form {
    let any = |is: &dyn Fn(&str) -> bool| files.iter().any(|it| is(&it.path));
    if any(&|it| it.ends_with(".jsonl")) {
        Form::Beads
    } else if any(&backlog::is_task) && any(&backlog::is_config) {
        Form::Backlog
    } else if files.len() > 1 && any(&verbatim::is_own) {
        Form::Plans
    } else {
        Form::Markdown
    }
}

/// A whole file that was not mapped.
fn left(path: &str, text: &str, why: &'static str) -> Unmapped {
    Unmapped { path: path.to_owned(), line: None, why, text: text.to_owned() }
}

pub(crate) fn to_value(json: &Value) -> NewValue {
    match json {
        Value::Null => NewValue::Word("~".to_owned()),
        Value::Array(items) => NewValue::List(items.iter().map(to_value).collect()),
        Value::Object(map) => {
            NewValue::Map(map.iter().map(|(key, it)| (key.clone(), to_value(it))).collect())
        }
        other => NewValue::of_json(other),
    }
}

/// Keeps values without a key of their own below `metadata`, under the name of their source format.
pub(crate) fn set_metadata(from: &str, more: &Map<String, Value>) -> Option<Change> {
    let inner = to_value(&Value::Object(more.clone()));
    (!more.is_empty()).then(|| set("metadata", NewValue::Map(vec![(from.to_owned(), inner)])))
}

fn set_depends(numbers: &[StepNumber]) -> Option<Change> {
    set_all_depends(numbers, &[])
}

/// Like [`set_depends`], followed by steps of other plans.
fn set_all_depends(numbers: &[StepNumber], elsewhere: &[StepId]) -> Option<Change> {
    let own = numbers.iter().map(|it| NewValue::Word(it.to_string()));
    let items: Vec<_> = own.chain(elsewhere.iter().map(|it| NewValue::Text(it.to_string()))).collect();
    (!items.is_empty()).then(|| set("depends", NewValue::List(items)))
}

/// Why a date in a source was not mapped to `due`.
const NO_DAY: &str = "this is not a date such as 2026-11-21";

/// The day that a source names, alone or with a time after it.
fn day(text: &str) -> Option<Day> {
    let text = text.trim();
    let (day, time) = text.split_at_checked(10)?;
    let has_time = time.starts_with(['T', 't', ' ']);
    (time.is_empty() || has_time).then(|| day.parse().ok()).flatten()
}

#[cfg(test)]
mod tests;
