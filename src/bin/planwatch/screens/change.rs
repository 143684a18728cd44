//! What a writing verb did: a line for each change, or, for a dry run, the diff.

use planwatch::store::transaction::{ChangeReport, Changed};

use crate::context::Session;
use crate::failure::Failure;
use crate::fields;
use crate::output::escaped;
use crate::screens::{BOLD, DIM, PLAIN, colour, own_title, text};
use crate::table::paint;

/// Before anything is written, refuses fields of `--json` that the answer will not have.
pub(crate) fn check_fields(session: &Session) -> Result<(), Failure> {
    session.output.check_fields(fields::CHANGE)
}

/// Verbs whose line does not say all that they changed, so the diff is printed before the line.
const SHOWN: [&str; 7] = ["tick", "split", "move", "squash", "replace", "remove", "archive"];

/// Prints what was done and what was refused; returns the exit code.
pub(crate) fn print(session: &Session, report: &ChangeReport) -> Result<u8, Failure> {
    let output = &session.output;
    if output.is_json() {
        output.json("change", report.to_json())?;
        report.refused.iter().for_each(|it| output.failure(&Failure::of(&it.error)));
        return Ok(report.exit_code());
    }
    if report.is_dry_run {
        let nothing = || format!("{}\n", paint(DIM, "nothing would change"));
        let diff = if report.diff.is_empty() { nothing() } else { text::diff(&report.diff) };
        output.long(&diff)?;
    } else {
        if SHOWN.contains(&report.verb) && !report.diff.is_empty() {
            output.report(&format!("{}\n", text::diff(&report.diff)))?;
        }
        let lines: String = report.changes.iter().map(|it| line(report.verb, it)).collect();
        output.report(&text::hanging(&lines, output.width, 4))?;
    }
    for refused in &report.refused {
        output.failure(&Failure::of(&refused.error));
    }
    if !report.is_dry_run {
        for hint in &report.hints {
            match hint.strip_prefix("planwatch ") {
                Some(_) => drop(output.report(&text::hanging(&next_line(hint), output.width, 6))?),
                None => output.hint(hint),
            }
        }
    }
    Ok(report.exit_code())
}

/// `next: …`, after what was done.
pub(crate) fn next_line(what: &str) -> String {
    format!("{} {}\n", paint(DIM, "next:"), escaped(what))
}

/// The line for one file that `undo` changed.
fn undone(change: &Changed) -> String {
    let Changed { did, path, is_gone, .. } = change;
    let verb = did.strip_suffix(" undone").unwrap_or(did);
    let what = if *is_gone { "removed" } else { "restored" };
    format!("undid `{}`: {what} {}", escaped(verb), paint(BOLD, &escaped(path)))
}

/// One change in one line: `done auth:1 Schema (was pending)`, `auth:1 Schema: attempt recorded`.
pub(crate) fn line(verb: &str, change: &Changed) -> String {
    let Changed { id, title, was, status, did, was_written, .. } = change;
    let name = name(id, title);
    let style = status.as_deref().map_or(PLAIN, colour);
    let before = match (was, status) {
        (Some(was), Some(now)) if was != now => format!(" (was {})", escaped(was)),
        _ => String::new(),
    };
    let before = paint(DIM, &before);
    let said = match (verb, did.as_str()) {
        ("release", "claim ended") => format!("{name}: the claim has ended"),
        ("replace", "kept") => {
            let status = status.as_deref().unwrap_or_default();
            format!("kept {name} ({}, not in the given list)", escaped(status))
        }
        (_, "repeated") => format!("{name}: already recorded"),
        (_, did) if !was_written => {
            format!("{name}: {}", if did.starts_with("already") { did } else { "nothing to change" })
        }
        ("undo", _) => undone(change),
        ("done", "completed") => format!("{} {name}{before}", paint(style, "done")),
        ("new", did) => {
            let (word, rest) = did.split_once(' ').unwrap_or((did, ""));
            let title = own_title(id, title);
            let title = if title.is_empty() { String::new() } else { format!(" \"{}\"", escaped(title)) };
            format!("{word} {}{title} {}", paint(BOLD, &escaped(id)), escaped(rest))
        }
        ("decide" | "insight", _) => {
            let verb = if verb == "decide" { "decided" } else { "recorded" };
            format!("{verb} {} in {}", paint(BOLD, &escaped(title)), escaped(&change.path))
        }
        ("move" | "squash" | "replace", did) if did.contains(' ') => {
            let (word, rest) = did.split_once(' ').unwrap_or((did, ""));
            format!("{word} {name} {}", escaped(rest))
        }
        (_, did) if !did.contains(' ') => format!("{} {name}{before}", paint(style, &escaped(did))),
        (_, did) => format!("{name}: {}{before}", escaped(did)),
    };
    format!("{}\n", said.trim_end())
}

/// The id and the title; a title that only repeats the id is left out.
fn name(id: &str, title: &str) -> String {
    let name = format!("{} {}", paint(BOLD, &escaped(id)), escaped(own_title(id, title)));
    name.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[track_caller]
    fn check(verb: &str, did: &str, (was, status): (&str, &str), expected: &str) {
        let some = |it: &str| (!it.is_empty()).then(|| it.to_owned());
        let change = Changed {
            id: "auth:1".to_owned(),
            title: "Schema".to_owned(),
            path: "plans/auth/step-1.md".to_owned(),
            was_written: !did.starts_with("already"),
            was: some(was),
            status: some(status),
            did: did.to_owned(),
            is_gone: expected.contains(": removed "),
            now: Value::Null,
        };
        assert_eq!(anstream::adapter::strip_str(&line(verb, &change)).to_string(), format!("{expected}\n"));
    }

    #[test]
    fn one_line_says_what_was_done() {
        check("done", "completed", ("pending", "completed"), "done auth:1 Schema (was pending)");
        check("done", "already completed", ("completed", "completed"), "auth:1 Schema: already completed");
        check("done", "repeated", ("", "completed"), "auth:1 Schema: already recorded");
        check("fail", "failed", ("in_progress", "failed"), "failed auth:1 Schema (was in_progress)");
        check(
            "attempt",
            "attempt recorded",
            ("pending", "in_progress"),
            "auth:1 Schema: attempt recorded (was pending)",
        );
        check("add", "added", ("", "pending"), "added auth:1 Schema");
        check("move", "moved from 3", ("auth:3", ""), "moved auth:1 Schema from 3");
        check("undo", "add undone", ("", ""), "undid `add`: removed plans/auth/step-1.md");
        check("undo", "add undone", ("", ""), "undid `add`: restored plans/auth/step-1.md");
        check("new", "made with 4 files", ("", "active"), "made auth:1 \"Schema\" with 4 files");
    }
}
