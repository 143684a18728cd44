//! What a writing verb did: a calm line for each change, or the diff of what it would do.

use planwatch::engine::write::{ChangeReport, Changed};

use crate::context::Session;
use crate::failure::Failure;
use crate::fields;
use crate::output::{Form, escaped};
use crate::screens::{BOLD, DIM, GOOD, text};
use crate::table::paint;

/// Refuses fields of `--json` that the answer will not have, before anything is written.
pub(crate) fn check_fields(session: &Session) -> Result<(), Failure> {
    match &session.output.form {
        Form::Json(wanted) => fields::known(wanted, &fields::CHANGE),
        Form::Text => Ok(()),
    }
}

/// Prints what was done and what was refused; returns the exit code.
pub(crate) fn print(session: &Session, report: &ChangeReport) -> Result<u8, Failure> {
    let output = &session.output;
    if output.is_json() {
        output.json("change", report.to_json())?;
        return Ok(report.exit_code());
    }
    if report.is_dry_run {
        let nothing = || format!("{}\n", paint(DIM, "nothing would change"));
        let diff = if report.diff.is_empty() { nothing() } else { text::diff(&report.diff) };
        output.text(&diff)?;
    } else {
        output.told(&report.changes.iter().map(|it| line(report.verb, it)).collect::<String>())?;
    }
    for refused in &report.refused {
        output.failure(&Failure::of(&refused.error));
    }
    if !report.is_dry_run {
        for hint in &report.hints {
            match hint.strip_prefix("planwatch ") {
                Some(_) => drop(output.told(&next_line(hint))?),
                None => output.hint(hint),
            }
        }
    }
    Ok(report.exit_code())
}

/// `next: …`, behind what was done.
pub(crate) fn next_line(what: &str) -> String {
    format!("{} {}\n", paint(DIM, "next:"), escaped(what))
}

/// The verbs that say what they did by their own name.
const MOVES: [&str; 6] = ["start", "done", "fail", "block", "skip", "reopen"];

/// One change in one line.
pub(crate) fn line(verb: &str, change: &Changed) -> String {
    let Changed { id, title, was, status, did, was_written, .. } = change;
    let name = format!("{} {}", paint(BOLD, &escaped(id)), escaped(title));
    let name = name.trim_end();
    let has_moved = was.is_some() && status.is_some() && was != status;
    let is_move = MOVES.contains(&verb) && has_moved;
    let did = if is_move { verb } else { did };
    if !was_written {
        let did = if did.starts_with("already") { did } else { "nothing to change" };
        return format!("{name}: {}\n", escaped(did));
    }
    let before = match (was, status) {
        (Some(was), Some(_)) if is_move => paint(DIM, &format!(" (was {})", escaped(was))),
        (Some(was), Some(now)) if has_moved => paint(DIM, &format!(" ({} → {})", escaped(was), escaped(now))),
        _ => String::new(),
    };
    format!("{} {name}{before}\n", paint(GOOD, &escaped(did)))
}
