//! The errors of operations. Each has a code, a message and an exit code, and most have a hint, in the words of the command
//! line.

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::api::trust::Subject;
use crate::disk::{DiskError, UndoError};
use crate::git::GitError;
use crate::index::IndexError;
use crate::plan::id::read_step_id;
use crate::plan::problem::{Code, Problem};
use crate::text::header_edit::EditError;
use crate::text::placeholders::Broken;
use crate::text::typed::quoted;
use crate::text::typed::{escaped, shell_word};

/// Why a request failed. Nothing was changed, unless the message or an accompanying report says otherwise.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    #[error("there is no {what} `{name}`")]
    NotFound { what: &'static str, name: String, nearest: Option<String> },
    /// No plans directory at or above the working directory.
    #[error("there is no plans directory here")]
    NoPlansDir,
    #[error("there is no plans directory here: `{}` is {what}", path.display())]
    PlansDirTaken { path: PathBuf, what: &'static str },
    #[error("{message}")]
    Usage { message: String, hint: String },
    /// The request names a step by its number alone, and it is not clear which plan is meant.
    #[error("which plan? {}", which(candidates, *is_active))]
    WhichPlan { candidates: Vec<String>, is_active: bool, number: String },
    #[error("there is no step `{name}`")]
    NoSuchStep { name: String, steps: Vec<String> },
    /// No phase of this name needs a confirmation: `confirm_phases` does not list it, and no step of the phase needs one.
    #[error("there is no phase `{name}` to confirm")]
    NoSuchPhase { name: String, plan: String, nearest: Option<String>, known: Vec<String> },
    #[error("{message}")]
    Conflict { code: &'static str, message: String, hint: String },
    /// The change was conditional on a version that the caller had read, and that version is no longer current.
    #[error("`{id}` does not match the expected version")]
    NotExpected { id: String, etag: Option<String>, now: Box<Value> },
    #[error("`{id}` waits for {}", few(open, MOST_NAMED))]
    DependenciesOpen { id: String, open: Vec<String> },
    #[error("`{id}` waits for a person's confirmation")]
    ConfirmationNeeded { id: String, phase: Option<String> },
    /// Only a person may confirm, and it is not certain that the caller is one.
    #[error(
        "only a person at a terminal, in the browser or in an MCP client can confirm; a process that works on a claimed step cannot"
    )]
    PersonNeeded { command: String },
    /// A step cannot be changed, because another worker has claimed it.
    #[error("`{id}` is claimed by {by}")]
    Claimed { id: String, by: String },
    /// Like [`Self::Claimed`], in two other cases: the caller wants to claim the step, or the step's file in this working
    /// tree has no claim in force and the other worker's claim is recorded only outside the file.
    #[error("`{id}` is claimed by {by}")]
    Held {
        id: String,
        by: String,
        /// Another machine has the claim, so `claim --force` does not take it over.
        is_remote: bool,
    },
    /// A step has a live claim, so the operation is refused. `undo`, `squash`, `replace`, and `remove` of a whole plan ignore
    /// the claim with `--force`; the other operations do not. If the operation removes, archives or renames a whole plan,
    /// the claim can be the caller's own.
    #[error("`{id}` is claimed by {by}")]
    ClaimedWithin { id: String, by: String },
    /// Claims cannot be recorded where other working trees would see them, so two working trees could claim the same step.
    #[error("claims cannot be shared with the other working trees of this repository: `{path}`: {why}")]
    ClaimsNotShared { path: String, why: String },
    /// The claim that is to be renewed is no longer the current claim of its step.
    #[error("the claim `{claim}` is no longer valid")]
    ClaimGone { claim: String },
    /// The claim that the update names is no longer the current claim of its step.
    #[error("the claim `{claim}` of `{id}` is no longer valid")]
    ClaimLost { id: String, claim: String },
    /// A command that came with the repository is not trusted yet, or cannot be trusted.
    #[error(
        "{} {}: `{}` in {}",
        .0.what, untrusted(.0.fault.as_deref()), on_one_line(&.0.command), shown_directory(&.0.directory)
    )]
    NotTrusted(Box<Subject>),
    /// The file cannot be written safely.
    #[error("{}:{}:{}: {}", problem.path, problem.line, problem.column, problem.message)]
    File { problem: Box<Problem> },
    /// A step cannot be renumbered or removed, because dependencies on it cannot be updated.
    #[error("{}:{}:{}: {}{}", problem.path, problem.line, problem.column, problem.message, not_repointed(steps))]
    NotRelinked { problem: Box<Problem>, steps: Vec<String> },
    /// The file cannot be edited safely at the position of the change.
    #[error("{path}:{line}:{column}: {reason}")]
    Edit { code: &'static str, path: String, line: u32, column: u32, reason: String, by_hand: String },
    /// A template or a prompt cannot be read or filled in.
    #[error("{path}:{line}:{column}: {reason}")]
    Template { path: String, line: u32, column: u32, reason: String },
    #[error("{message}")]
    Failed { code: &'static str, message: String, hint: String },
    #[error("{0}")]
    Disk(#[from] DiskError),
    #[error("{0}")]
    Git(#[from] GitError),
    #[error("{0}")]
    Index(#[from] IndexError),
    #[error("{0}")]
    Undo(#[from] UndoError),
}

/// Splits an entry of [`Error::DependenciesOpen`], such as `a:1 (pending)`, into the id and the rest. A plan's name may
/// contain spaces and parentheses.
pub(crate) fn open_step(entry: &str) -> (&str, &str) {
    let mut parts = entry.match_indices(" (").map(|(at, _)| entry.split_at(at));
    parts.find(|(id, _)| read_step_id(id).is_some()).unwrap_or((entry, ""))
}

impl Error {
    pub(crate) fn usage(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::Usage { message: message.into(), hint: hint.into() }
    }

    pub(crate) fn conflict(code: &'static str, message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::Conflict { code, message: message.into(), hint: hint.into() }
    }

    pub(crate) fn failed(code: &'static str, message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::Failed { code, message: message.into(), hint: hint.into() }
    }

    pub(crate) fn template(path: String, Broken { line, column, reason }: Broken) -> Self {
        Self::Template { path, line, column, reason }
    }

    pub(crate) fn edit(path: &str, file: &[u8], error: EditError) -> Self {
        let place = crate::text::line_index::place(file, error.at);
        let EditError { code, reason, by_hand, .. } = error;
        Self::Edit { code, path: path.to_owned(), line: place.line, column: place.column, reason, by_hand }
    }

    /// Puts the plans directory's own name before the path in [`Self::Edit`], as in all paths that are shown.
    #[must_use]
    pub(crate) fn below(self, root: &str) -> Self {
        match self {
            Self::Edit { code, path, line, column, reason, by_hand } => {
                let path = crate::api::views::shown_path(root, &path);
                Self::Edit { code, path, line, column, reason, by_hand }
            }
            other => other,
        }
    }

    /// The error code. Every surface uses it, except that HTTP has its own code for [`Self::PersonNeeded`].
    pub fn code(&self) -> &'static str {
        match self {
            Self::NotFound { .. } | Self::NoSuchStep { .. } | Self::NoSuchPhase { .. } => "not-found",
            Self::NoPlansDir | Self::PlansDirTaken { .. } => "no-plans-directory",
            Self::Usage { .. } => "usage",
            Self::WhichPlan { .. } => "which-plan",
            Self::NotExpected { .. } => "file-changed",
            Self::DependenciesOpen { .. } => "dependencies-open",
            Self::ConfirmationNeeded { .. } | Self::PersonNeeded { .. } => "confirmation-needed",
            Self::Claimed { .. } | Self::Held { .. } | Self::ClaimedWithin { .. } => "claimed",
            Self::ClaimsNotShared { .. } => "claims-not-shared",
            Self::ClaimLost { .. } | Self::ClaimGone { .. } => "claim-lost",
            Self::NotTrusted(_) => "not-trusted",
            Self::File { problem } | Self::NotRelinked { problem, .. } => problem.code.text(),
            Self::Conflict { code, .. } | Self::Edit { code, .. } | Self::Failed { code, .. } => code,
            Self::Template { .. } => "template-invalid",
            Self::Disk(error) => error.code(),
            Self::Git(error) => error.code(),
            Self::Index(error) => error.code(),
            Self::Undo(error) => error.code(),
        }
    }

    /// The error for a path that a person names and that a symbolic link leads out of the repository.
    pub fn leads_out(shown: impl std::fmt::Display) -> Self {
        let message = format!("`{shown}` leads out of the repository through a symbolic link");
        Self::failed("bad-path", message, "name the target of the link instead")
    }

    /// The error of a verb that has no `--claim`, so its hint does not name this option.
    pub(crate) fn without_claim_option(self) -> Self {
        match self {
            Self::Claimed { id, by } => Self::ClaimedWithin { id, by },
            other => other,
        }
    }

    /// What to do about the error: a sentence, or a command to type. Characters that act on a terminal are escaped.
    pub fn hint(&self) -> Option<String> {
        self.advice().map(|it| escaped(&it).into_owned())
    }

    fn advice(&self) -> Option<String> {
        let hint = match self {
            Self::NotFound { nearest, what, .. } => match (nearest, *what) {
                (Some(it), _) => format!("did you mean `{it}`?"),
                (None, "plan") => "`planwatch list --all` lists the plans".to_owned(),
                (None, "template" | "prompt") => "`planwatch template list` lists them".to_owned(),
                (None, _) => return None,
            },
            Self::NoPlansDir => {
                "`planwatch new TITLE STEP…` creates one; --plans DIR selects another".to_owned()
            }
            Self::PlansDirTaken { .. } => {
                "remove or rename it, or select a directory: --plans DIR".to_owned()
            }
            Self::WhichPlan { candidates, number, .. } => match candidates.first() {
                Some(first) => {
                    let word = shell_word(&format!("{first}:{number}"));
                    format!("name it, as in `{word}`, or set PLANWATCH_PLAN")
                }
                None => "`planwatch new TITLE STEP…` creates one".to_owned(),
            },
            Self::NoSuchStep { steps, .. } if steps.is_empty() => "the plan has no steps".to_owned(),
            Self::NoSuchStep { steps, .. } => format!("the plan's steps are {}", few(steps, MOST_NAMED)),
            Self::NoSuchPhase { nearest: Some(it), .. } => format!("did you mean `{it}`?"),
            Self::NoSuchPhase { known, plan, .. } if known.is_empty() => {
                format!(
                    "no phase of `{plan}` needs a confirmation; to require one, add the phase to `confirm_phases`"
                )
            }
            Self::NoSuchPhase { known, .. } => {
                let named: Vec<_> = known.iter().map(|it| format!("`{it}`")).collect();
                format!("the phases to confirm are {}", few(&named, MOST_NAMED))
            }
            Self::NotExpected { .. } => "read the current version, then try again".to_owned(),
            Self::DependenciesOpen { open, .. } => {
                let (name, status) = open_step(open.first()?);
                match status.contains("does not exist") {
                    true => format!(
                        "correct the dependency: `planwatch check` shows its place; `{name}` is not a step"
                    ),
                    false => format!("finish `{name}` first, or use --force, which is recorded"),
                }
            }
            Self::ConfirmationNeeded { id, phase } => confirmation_hint(id, phase.as_deref()),
            Self::PersonNeeded { command } => format!("a person types `{command}`"),
            Self::Claimed { .. } => {
                "name the claim with --claim ID, or use --force, which is recorded".to_owned()
            }
            Self::Held { id, is_remote, .. } => held_hint(id, *is_remote),
            Self::ClaimedWithin { id, .. } => format!(
                "wait until the work is done, or release the claim: `planwatch release {}`, with --force if it is not yours",
                shell_word(id)
            ),
            Self::ClaimsNotShared { .. } => {
                "make the directory writable, or use --force if no other worker claims steps".to_owned()
            }
            Self::ClaimGone { .. } => "`planwatch claim` claims the next step".to_owned(),
            Self::ClaimLost { id, .. } => format!("see `planwatch show {}`", shell_word(id)),
            Self::NotTrusted(subject) => trust_hint(subject),
            Self::File { problem } => problem.hint.clone(),
            Self::NotRelinked { steps, .. } if steps.is_empty() => {
                "correct the file first, or use --force".to_owned()
            }
            Self::NotRelinked { steps, .. } => format!(
                "correct the file first, or use --force, which leaves `depends` of {} as it is",
                few(steps, MOST_NAMED)
            ),
            Self::Edit { by_hand, .. } => format!("by hand: {by_hand}"),
            Self::Usage { hint, .. } | Self::Conflict { hint, .. } | Self::Failed { hint, .. } => {
                hint.clone()
            }
            Self::Template { .. } => {
                "correct the template; `planwatch template render NAME TITLE` tests it".to_owned()
            }
            Self::Disk(error) => error.hint()?,
            Self::Git(error) => error.hint()?,
            Self::Index(error) => index_hint(error),
            Self::Undo(error) => undo_hint(error)?,
        };
        (!hint.is_empty()).then_some(hint)
    }

    /// The facts of the error as JSON, for programs.
    pub fn details(&self) -> Value {
        match self {
            Self::NotFound { name, nearest, .. } => json!({"name": name, "nearest": nearest}),
            Self::WhichPlan { candidates, .. } => {
                json!({"candidates": candidates.iter().take(MOST_PLANS).collect::<Vec<_>>()})
            }
            Self::NoSuchStep { name, steps } => {
                let more = steps.len().saturating_sub(MOST_NAMED);
                json!({"name": name, "steps": steps.iter().take(MOST_NAMED).collect::<Vec<_>>(), "more": more})
            }
            Self::NoSuchPhase { name, plan, nearest, known } => {
                json!({"name": name, "plan": plan, "nearest": nearest, "phases": known})
            }
            Self::NotExpected { id, etag, now } => json!({"id": id, "etag": etag, "now": now}),
            Self::DependenciesOpen { id, open } => json!({"id": id, "open": open}),
            Self::ConfirmationNeeded { id, phase } => json!({"id": id, "phase": phase}),
            Self::PersonNeeded { command } => json!({"command": command}),
            Self::Claimed { id, by } | Self::Held { id, by, .. } | Self::ClaimedWithin { id, by } => {
                json!({"id": id, "by": by})
            }
            Self::ClaimsNotShared { path, .. } => json!({"path": path}),
            Self::ClaimGone { claim } => json!({"claim": claim}),
            Self::ClaimLost { id, claim } => json!({"id": id, "claim": claim}),
            Self::NotTrusted(subject) => {
                let Subject { what, command, directory, hash, files, .. } = &**subject;
                json!({"what": what, "command": command, "directory": directory, "hash": hash, "files": files})
            }
            Self::File { problem } => {
                json!({"path": problem.path, "line": problem.line, "column": problem.column})
            }
            Self::NotRelinked { problem, steps } => json!({
                "path": problem.path, "line": problem.line, "column": problem.column, "not_repointed": steps,
            }),
            Self::Edit { path, line, column, .. } | Self::Template { path, line, column, .. } => {
                json!({"path": path, "line": line, "column": column})
            }
            Self::Disk(error) => json!({"path": error.path().to_string_lossy()}),
            Self::Undo(error) => match error.reason() {
                Some((change, path, later)) => json!({
                    "change": change.id, "path": path.to_string_lossy(), "by": later.map(|it| it.id.as_str()),
                }),
                None => json!({}),
            },
            _ => json!({}),
        }
    }

    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Usage { .. } | Self::WhichPlan { .. } => 2,
            Self::NotFound { .. }
            | Self::NoSuchStep { .. }
            | Self::NoSuchPhase { .. }
            | Self::NoPlansDir
            | Self::PlansDirTaken { .. } => 3,
            Self::Conflict { .. }
            | Self::NotExpected { .. }
            | Self::DependenciesOpen { .. }
            | Self::Claimed { .. }
            | Self::Held { .. }
            | Self::ClaimedWithin { .. }
            | Self::ClaimsNotShared { .. }
            | Self::ClaimGone { .. }
            | Self::ClaimLost { .. } => 4,
            Self::ConfirmationNeeded { .. } | Self::PersonNeeded { .. } | Self::NotTrusted(_) => 5,
            Self::File { .. } | Self::NotRelinked { .. } | Self::Template { .. } => 6,
            Self::Edit { code, .. } => {
                if matches!(*code, "file-full" | "no-room" | "bug") {
                    1
                } else {
                    6
                }
            }
            // The write would have made the file faulty. The exit code is the same as for a file that is already faulty.
            Self::Failed { code, .. } if Code::from_text(code).is_some() => 6,
            Self::Failed { .. } | Self::Index(_) => 1,
            Self::Undo(error) => match error {
                UndoError::Edited { .. }
                | UndoError::Taken { .. }
                | UndoError::Later { .. }
                | UndoError::OtherStep { .. }
                | UndoError::Unrecorded => 4,
                UndoError::Unknown { .. } => 3,
                UndoError::Disk(error) => disk_exit_code(error),
                _ => 1,
            },
            Self::Disk(error) => disk_exit_code(error),
            Self::Git(error) => error.exit_code(),
        }
    }

    /// The error as JSON, with its code, message, hint and details.
    pub fn to_json(&self) -> Value {
        json!({"error": {"code": self.code(), "message": self.to_string(), "hint": self.hint(), "details": self.details()}})
    }
}

/// The maximum number of names in a shortened list of steps or phases; see [`few`].
const MOST_NAMED: usize = 20;

/// The maximum number of names in a shortened list of plans or files; see [`few`].
const MOST_PLANS: usize = 12;

/// The first `most` names, and how many more there are.
pub(crate) fn few(names: &[String], most: usize) -> String {
    let shown = names[..names.len().min(most)].join(", ");
    match names.len().saturating_sub(most) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

fn undo_hint(error: &UndoError) -> Option<String> {
    match error {
        UndoError::Unrecorded | UndoError::Edited { .. } | UndoError::Taken { .. } | UndoError::Gone { .. } => Some(
            "nothing was changed; `planwatch undo ID` undoes an older change, `planwatch undo --list` lists the changes"
                .to_owned(),
        ),
        UndoError::Later { later, .. } | UndoError::OtherStep { later, .. } => {
            Some(format!("undo the later change first: `planwatch undo {}`", later.id))
        }
        UndoError::Unknown { .. } => Some("`planwatch undo --list` lists the changes".to_owned()),
        UndoError::Disk(error) => error.hint(),
        _ => None,
    }
}

fn not_repointed(steps: &[String]) -> String {
    match steps {
        [] => String::new(),
        steps => format!(", so `depends` of {} cannot be updated", few(steps, MOST_NAMED)),
    }
}

/// Escapes line breaks, so that lines of a command cannot look like output of planwatch.
fn on_one_line(command: &str) -> String {
    command.replace('\r', "\\r").replace('\n', "\\n")
}

fn trust_hint(subject: &Subject) -> String {
    if subject.fault.is_some() {
        return "write out the name of each file that the command runs, or put the command into a script file and run that file"
            .to_owned();
    }
    let Subject { name, hash, files, .. } = subject;
    let files = if files.is_empty() { String::new() } else { format!(" and {}", few(files, MOST_PLANS)) };
    format!(
        "read the command{files}, then trust it with `planwatch trust {} --trust-hash {hash}`",
        quoted(name)
    )
}

fn untrusted(fault: Option<&str>) -> String {
    fault.map_or_else(|| "is not trusted".to_owned(), |it| format!("cannot be trusted, because {it}"))
}

fn shown_directory(directory: &str) -> &str {
    if directory == "." { "the repository's root" } else { directory }
}

fn which(candidates: &[String], is_active: bool) -> String {
    let named: Vec<_> = candidates.iter().map(|it| format!("`{it}`")).collect();
    let named = few(&named, MOST_PLANS);
    match (candidates.is_empty(), is_active) {
        (true, _) => "there are none".to_owned(),
        (false, true) => format!("{named} are active"),
        (false, false) => {
            format!("none is active; there {} {named}", if candidates.len() == 1 { "is" } else { "are" })
        }
    }
}

fn held_hint(id: &str, is_remote: bool) -> String {
    let id = shell_word(&id);
    let end = match is_remote {
        true => format!("`planwatch release {id} --force` ends it"),
        false => "--force takes it over, which is recorded".to_owned(),
    };
    format!("`planwatch show {id}` shows the claim; {end}")
}

fn confirmation_hint(id: &str, phase: Option<&str>) -> String {
    let command = match (phase, id.rsplit_once(':')) {
        (Some(phase), Some((plan, _))) => {
            format!("planwatch confirm {} --phase {}", shell_word(plan), quoted(phase))
        }
        _ => format!("planwatch confirm {}", shell_word(id)),
    };
    format!("a person types `{command}`; --force overrides this, which is recorded")
}

fn disk_exit_code(error: &DiskError) -> u8 {
    match error.code() {
        "locked" | "file-changed" | "plan-exists" => 4,
        "not-found" => 3,
        "not-a-file" | "not-a-directory" | "too-large" | "unreadable" => 6,
        _ => 1,
    }
}

fn index_hint(error: &IndexError) -> String {
    match error.code() {
        "sql-refused" => "only read-only queries are allowed: SELECT, WITH, VALUES, EXPLAIN",
        "sql-error" => "`planwatch help sql` lists the views and their columns",
        _ => "--no-index reads the plan files instead of the index",
    }
    .to_owned()
}
