//! Maps plans in other formats to plans of planwatch, and reports the parts that were not mapped. `ops::import` then reports
//! each line with a word that is neither in the result nor reported here.
//!
//! The functions are pure: they receive the bytes of files, and return texts and edits of these texts.

mod backlog;
mod beads;
mod label;
mod markdown;
mod own;
mod pieces;
mod statements;
mod verbatim;
mod waits;

pub use own::{FILE_ERROR, STEPS as EXPORTED_STEPS};

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
    /// The decisions in the source. Only Backlog.md has decisions. They belong to the plan that is made from its tasks.
    pub decisions: Vec<ImportedDecision>,
    pub unmapped: Vec<Unmapped>,
    /// Files that are not UTF-8. If no file is UTF-8, [`convert`] returns an error instead.
    pub unread: Vec<Problem>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct ImportedDecision {
    pub path: String,
    pub topic: String,
    pub text: String,
    pub reasoning: Option<String>,
    pub by: Option<String>,
    /// `None`: the source contains no date of the decision.
    pub at: Option<Time>,
    pub tags: Vec<String>,
    pub metadata: Map<String, Value>,
}

#[derive(Debug, Clone)]
pub struct ImportedPlan {
    /// The document or directory that became the plan. `None`: all files together became the plan.
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
    /// Whether the text is written unchanged, except for a wrong `id`.
    pub is_verbatim: bool,
    /// For a step in a Markdown document: whether the document states the status. Otherwise the status in `changes` is a
    /// default. In other sources this is false.
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
    #[error("{path}:{line}:{column}: {reason}")]
    NotJson { path: String, line: usize, column: usize, reason: String },
}

/// Recognizes the format by the names of the files, and maps the files. `name` is the source's name without its extension.
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

/// The reason that is reported for a document without steps if other files of the source become plans. A document that is
/// imported alone becomes a plan even without steps.
const NO_STEPS: &str = "no steps were found in this document, so it is not a plan";

fn not_utf8(file: &SourceFile, at: usize) -> Problem {
    let hint = "save it as UTF-8, then import it";
    Problem::at_byte(&file.path, &file.bytes, at, Code::NotUtf8, "the file is not UTF-8 from here on", hint)
}

/// Maps a document without sections, in which every item is a step. The second value is the text around the list.
pub(crate) fn list(text: &str, words: &Words) -> (Vec<(StepNumber, Draft)>, String) {
    markdown::list(text, words)
}

/// Maps a document with sections. If some items of a list have task boxes, all items of this list are steps. The second
/// value is the plan's text.
pub(crate) fn sections(text: &str, words: &Words) -> (Vec<(StepNumber, Draft)>, String) {
    markdown::sections(text, words)
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

/// Reports a whole file that was not mapped.
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

/// Stores the values of `more` in `metadata`, below the key `from`. `None`: there are no values.
pub(crate) fn set_metadata(from: &str, more: &Map<String, Value>) -> Option<Change> {
    let inner = to_value(&Value::Object(more.clone()));
    (!more.is_empty()).then(|| set("metadata", NewValue::Map(vec![(from.to_owned(), inner)])))
}

fn set_depends(numbers: &[StepNumber]) -> Option<Change> {
    set_all_depends(numbers, &[])
}

/// Like [`set_depends`], but adds the steps of other plans after those of this plan.
fn set_all_depends(numbers: &[StepNumber], elsewhere: &[StepId]) -> Option<Change> {
    let own = numbers.iter().map(|it| NewValue::Word(it.to_string()));
    let items: Vec<_> = own.chain(elsewhere.iter().map(|it| NewValue::Text(it.to_string()))).collect();
    (!items.is_empty()).then(|| set("depends", NewValue::List(items)))
}

/// Why a date in a source was not mapped to `due`.
const NO_DAY: &str = "this is not a date such as 2026-11-21";

/// Reads a date, which may be followed by a time.
fn day(text: &str) -> Option<Day> {
    let text = text.trim();
    let (day, time) = text.split_at_checked(10)?;
    let has_time = time.starts_with(['T', 't', ' ']);
    (time.is_empty() || has_time).then(|| day.parse().ok()).flatten()
}

#[cfg(test)]
mod tests;
