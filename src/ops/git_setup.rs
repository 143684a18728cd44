//! `git setup`: adds the merge driver to this clone's configuration and its attribute to
//! `.gitattributes`; `--undo` removes both.

use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::{Value, json};

use crate::api::context::{Context, Notice};
use crate::api::error::Error;
use crate::api::requests::Mode;
use crate::disk::{FileOp, ProjectReport};
use crate::git::{Git, MERGE_DRIVER, Output};
use crate::store::transaction;
use crate::text::diff;
use crate::text::marked_block::{self, HASH, Unpaired};

const ATTRIBUTES: &str = ".gitattributes";
const SECTION: &str = "merge.planwatch";
const NAME: &str = "merge by meaning";

/// Lines for the user's configuration of jj.
const JJ: &str = r#"[merge-tools.planwatch]
program = "planwatch"
merge-args = ["git", "merge-driver", "$base", "$left", "$right", "$marker_length", "$path", "--output", "$output"]
merge-conflict-exit-codes = [1]
merge-tool-edits-conflict-markers = true
"#;

#[derive(Debug, Clone, Default)]
pub struct GitSetupRequest {
    pub is_undo: bool,
    pub mode: Mode,
}

#[derive(Debug, Clone, Serialize)]
pub struct GitSetupReport {
    pub undo: bool,
    pub dry_run: bool,
    /// `made`, `removed` or `unchanged`.
    pub driver: &'static str,
    /// `made`, `changed`, `removed` or `unchanged`.
    pub attributes: &'static str,
    pub diff: String,
    /// Lines for the configuration of jj; empty with `--undo`.
    pub jj: &'static str,
    /// A plan file for which git does not use the driver, because another line takes precedence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overridden: Option<Overridden>,
}

#[derive(Debug, Clone, Serialize)]
pub struct Overridden {
    /// Relative to the repository's root.
    pub path: String,
    /// The value of the attribute `merge`, as `git check-attr` prints it.
    pub merge: String,
}

impl GitSetupReport {
    pub fn to_json(&self) -> Value {
        json!(self)
    }
}

/// Adds the driver to the clone's configuration and its attribute to `.gitattributes`, or removes both.
pub fn git_setup(context: &Context, request: &GitSetupRequest) -> Result<GitSetupReport, Error> {
    let git = Git::at(context.plans.root())?;
    let (before, after) = attributes(context, &git, request.is_undo)?;
    let driver_before = git.config("merge.planwatch.driver")?;
    let wants = (!request.is_undo).then(|| MERGE_DRIVER.to_owned());
    let driver = match (&driver_before, &wants) {
        (before, after) if before == after => "unchanged",
        (_, None) => "removed",
        _ => "made",
    };
    let attributes = match (&before, &after) {
        (before, after) if before == after => "unchanged",
        (None, _) => "made",
        (_, None) => "removed",
        _ => "changed",
    };
    let bytes = |it: &Option<String>| it.clone().map(String::into_bytes);
    let diff = diff::unified(ATTRIBUTES, bytes(&before).as_deref(), bytes(&after).as_deref());
    if request.mode == Mode::Write {
        let path = PathBuf::from(ATTRIBUTES);
        let op = match (bytes(&before), bytes(&after)) {
            (before, after) if before == after => None,
            (Some(before), Some(after)) => Some(FileOp::Change { path, before, after }),
            (None, Some(bytes)) => Some(FileOp::Create { path, bytes }),
            (Some(before), None) => Some(FileOp::Discard { path, before }),
            (None, None) => None,
        };
        write(context, &git.root, op)?;
        if driver == "made" {
            configure(&git, "merge.planwatch.name", NAME)?;
            configure(&git, "merge.planwatch.driver", MERGE_DRIVER)?;
        } else if driver == "removed" {
            git.call(&["config", "--local", "--remove-section", SECTION]).writes_index().run()?;
        }
    }
    let jj = if request.is_undo { "" } else { JJ };
    let is_dry_run = request.mode == Mode::DryRun;
    // A dry run has not written the lines, so they can be examined only if they were there before.
    let is_written = !request.is_undo && (!is_dry_run || attributes == "unchanged");
    let overridden = if is_written { overridden(context, &git)? } else { None };
    Ok(GitSetupReport {
        undo: request.is_undo,
        dry_run: is_dry_run,
        driver,
        attributes,
        diff,
        jj,
        overridden,
    })
}

fn overridden(context: &Context, git: &Git) -> Result<Option<Overridden>, Error> {
    let plans = git.relative(context.plans.root()).unwrap_or_default();
    // Before the first commit, git knows no plan file.
    let mut paths = plans.join("plan/step-1.md").into_os_string().into_vec();
    for entry in git.index_entries(&[&plans])?.into_iter().filter(|it| it.path.ends_with(b".md")) {
        paths.extend([b"\0", &entry.path[..]].concat());
    }
    let found = git.call(&["check-attr", "-z", "--stdin", "merge"]).input(paths).run()?;
    let words: Vec<_> = found.split(|it| *it == 0).map(String::from_utf8_lossy).collect();
    let other = words.chunks_exact(3).find(|it| it[2] != "planwatch");
    Ok(other.map(|it| Overridden { path: it[0].to_string(), merge: it[2].to_string() }))
}

fn configure(git: &Git, key: &str, value: &str) -> Result<(), Error> {
    let Output { code, stderr, .. } =
        git.call(&["config", "--local", "--replace-all"]).arg(key).arg(value).output()?;
    if code == 0 {
        return Ok(());
    }
    let message = format!("git config could not be written: {}", stderr.trim());
    Err(Error::Failed { code: "git-failed", message, hint: String::new() })
}

/// `.gitattributes` before and after.
fn attributes(
    context: &Context,
    git: &Git,
    is_undo: bool,
) -> Result<(Option<String>, Option<String>), Error> {
    let project = context.plans.project(&git.root)?;
    let before = project.read(Path::new(ATTRIBUTES))?;
    let unreadable = || {
        let message = format!("`{ATTRIBUTES}` is not UTF-8");
        Error::Failed { code: "not-utf8", message, hint: "save it as UTF-8".to_owned() }
    };
    let before = before.map(String::from_utf8).transpose().map_err(|_| unreadable())?;
    let block = match &before {
        Some(text) => marked_block::find_marked(&HASH, text).map_err(|it| unpaired(&it))?,
        None => None,
    };
    let plans = git.relative(context.plans.root()).unwrap_or_default();
    let line = format!("{} merge=planwatch\n", pattern(&plans.to_string_lossy()));
    let after = match (&before, block) {
        (Some(_), Some(block)) if !block.is_sealed => {
            let message = format!("planwatch's lines in `{ATTRIBUTES}` were changed");
            let hint = "restore them, or remove them by hand together with the two marker lines".to_owned();
            return Err(Error::Failed { code: "file-changed", message, hint });
        }
        (Some(text), Some(block)) if is_undo => marked_block::take(text, &block),
        (Some(text), Some(block)) => Some(marked_block::renew(text, &block, &["git"], &line)),
        (text, None) if is_undo => text.clone(),
        (text, None) => Some(marked_block::put_marked(&HASH, text.as_deref(), &["git"], &line)),
        (None, Some(_)) => None,
    };
    Ok((before, after))
}

fn unpaired(of: &Unpaired) -> Error {
    let message = format!("{ATTRIBUTES}:{}:{}: {}", of.place.line, of.place.column, of.reason);
    Error::Failed {
        code: "file-changed",
        message,
        hint: "remove the marker that has no counterpart, or the second block".to_owned(),
    }
}

/// The Markdown files below a directory, as a pattern of `.gitattributes`.
fn pattern(directory: &str) -> String {
    let mut escaped = String::new();
    for c in directory.chars() {
        if matches!(c, '*' | '?' | '[' | ']' | '\\') {
            escaped.push('\\');
        }
        escaped.push(c);
    }
    let pattern = if escaped.is_empty() { "*.md".to_owned() } else { format!("/{escaped}/**/*.md") };
    let is_plain = !pattern.contains([' ', '\t', '"', '\n', '\r']);
    if is_plain { pattern } else { serde_json::Value::from(pattern).to_string() }
}

fn write(context: &Context, root: &Path, op: Option<FileOp>) -> Result<(), Error> {
    let project = context.plans.project(root)?;
    let mut report = ProjectReport::default();
    let at = context.now.to_string();
    let waiting = &mut || context.notify(Notice::WaitingForLock);
    let written = project.write(("git setup", &at), op.into_iter().collect(), waiting, &mut report);
    if let Some(recovered) = &report.recovered {
        context.notify(transaction::recovered(recovered));
    }
    for it in &report.kept {
        context.notify(transaction::kept(it));
    }
    Ok(written?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_name_the_directory_literally() {
        for (directory, expected) in [
            ("", "*.md"),
            ("plans", "/plans/**/*.md"),
            ("a/[b]*", "/a/\\[b\\]\\*/**/*.md"),
            ("my plans", "\"/my plans/**/*.md\""),
        ] {
            assert_eq!(pattern(directory), expected);
        }
    }
}
