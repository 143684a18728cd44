//! `log` and `diff`: what happened to plans, and how they differ.

use std::fmt::Write;

use planwatch::api::context::Context;
use planwatch::api::error::Error;
use planwatch::ops::diff::{self, Added, DiffReport, DiffRequest, Difference, FileDiff};
use planwatch::ops::log::timeline::timeline;
use planwatch::ops::log::{self, LogReport, LogRequest};
use planwatch::text::diff::{LineKind, lines, unified};
use planwatch::text::placeholders::one_line;

use crate::args::look::{Diff, Log};
use crate::context::Session;
use crate::failure::Failure;
use crate::output::{escaped, escaped_lines};
use crate::screens::text::hanging;
use crate::screens::{BAD, BOLD, DIM, GOOD, PLAIN, READY, colour, count, history};
use crate::table::paint;

pub(crate) fn run(session: &Session, args: Log) -> Result<u8, Failure> {
    let context = session.context()?;
    let Log { of, since, until, by, what, limit, rev, timeline: is_timeline } = args;
    let (id, range) = split(of, |it| !it.contains("..") || diff::names_plan(&context, it));
    let rev = rev.or(range);
    if is_timeline {
        let Some(plan) = id.filter(|_| rev.is_none()) else {
            let hint = "for example planwatch log auth --timeline";
            return Err(Failure::usage("--timeline shows the steps of one plan", hint));
        };
        let report = session.with_spinner(|| timeline(&context, &plan))?;
        let screen =
            |width| history::timeline(&report, context.now, width) + &begins(report.begins_at.as_deref());
        return session.answer("timeline", || report.to_json(), screen);
    }
    let request = LogRequest { id, since, until, by, what, rev, limit, words: Vec::new() };
    let report = session.with_spinner(|| log::log(&context, &request))?;
    session.answer("log", || report.to_json(), |width| screen(&report, &context, width))
}

fn screen(report: &LogReport, context: &Context, width: Option<usize>) -> String {
    if report.events.is_empty() {
        return format!("No changes were found.\n{}", begins(report.begins_at.as_deref()));
    }
    let said = history::events(&report.events, context.now, width);
    let more = if report.has_more {
        format!("\n{}\n", paint(DIM, "there are more changes; --limit N shows them"))
    } else {
        String::new()
    };
    said + &more + &begins(report.begins_at.as_deref())
}

fn begins(at: Option<&str>) -> String {
    let said = |it: &str| format!("\nThe clone is shallow: its history begins at {}.\n", history::short(it));
    at.map(said).unwrap_or_default()
}

/// Splits at most two arguments into the plan and the revision.
fn split(words: Vec<String>, is_plan: impl Fn(&str) -> bool) -> (Option<String>, Option<String>) {
    let mut words = words.into_iter();
    match (words.next(), words.next()) {
        (Some(plan), Some(rev)) => (Some(plan), Some(rev)),
        (Some(word), None) if is_plan(&word) => (Some(word), None),
        (word, _) => (None, word),
    }
}

pub(crate) fn diff(session: &Session, args: Diff) -> Result<u8, Failure> {
    let context = session.context()?;
    let Diff { of, staged, patch, rev, markdown } = args;
    let n_words = of.len();
    let is_plan = |it: &str| diff::names_plan(&context, it);
    let (plan, named) = match &of[..] {
        [old, new] if !new.contains("..") && !is_plan(old) && diff::names_revision(&context, old)? => {
            (None, Some(format!("{old}..{new}")))
        }
        _ => split(of, |it| rev.is_some() || is_plan(it)),
    };
    let request = DiffRequest { plan, rev: rev.or_else(|| named.clone()), staged, patch };
    let is_not_found = |it: &Error| it.code() == "not-found";
    let report = session.with_spinner(|| match (diff::diff(&context, &request), named) {
        (Err(error), Some(name)) if n_words == 1 && is_not_found(&error) => {
            // The word may also name a plan that is only in the older state.
            let removed = DiffRequest { plan: Some(name.clone()), rev: None, ..request };
            diff::diff(&context, &removed).map_err(|error| match is_not_found(&error) {
                true => Error::NotFound { what: "plan or revision", name, nearest: None },
                false => error,
            })
        }
        (answer, _) => answer,
    })?;
    let screen = |width| if markdown { as_markdown(&report) } else { as_text(&report, width) };
    session.answer("diff", || report.to_json(), screen)
}

fn as_text(report: &DiffReport, width: Option<usize>) -> String {
    if report.differences.is_empty() {
        return "The plans do not differ.\n".to_owned();
    }
    let mut said = String::new();
    for it in &report.differences {
        let style = match it.change {
            "created" => GOOD,
            "removed" => BAD,
            _ => it.status.as_ref().and_then(|it| it.to.as_deref()).map_or(PLAIN, colour),
        };
        let title = if it.title == it.id { String::new() } else { format!("  {}", escaped(&it.title)) };
        let line = format!(
            "{}{title}  {}",
            paint(BOLD, &escaped(&it.id)),
            paint(style, &escaped(&parts(it).join(", ")))
        );
        writeln!(said, "{}", hanging(&line, width, 4)).ok();
    }
    for file in report.files.iter().flatten() {
        said.push('\n');
        said.push_str(&patch(file));
    }
    said
}

/// The differences, each in a few words.
fn parts(of: &Difference) -> Vec<String> {
    let mut parts = Vec::new();
    let status = of.status.as_ref();
    let word = |it: &Option<String>| it.clone().unwrap_or_default();
    match (of.change, status) {
        ("changed", Some(status)) => parts.push(format!("{} → {}", word(&status.from), word(&status.to))),
        ("changed", None) => {}
        ("created", Some(status)) => parts.push(format!("new, {}", word(&status.to))),
        ("created", None) => parts.push("new".to_owned()),
        ("removed", Some(status)) => parts.push(format!("removed, was {}", word(&status.from))),
        (change, status) => {
            let was = of.was.as_ref().map(|it| format!(", was {it}")).unwrap_or_default();
            parts.push(format!("{change}{was}"));
            parts.extend(status.map(|it| format!("{} → {}", word(&it.from), word(&it.to))));
        }
    }
    if let Some(renamed) = &of.renamed {
        parts.push(format!("title was `{}`", word(&renamed.from)));
    }
    parts.extend(of.attempts.iter().map(attempt));
    parts.extend(of.claims.iter().map(|it| format!("claimed{}", by(it))));
    parts.extend(of.released.iter().map(|it| format!("released {it}")));
    parts.extend(of.confirmations.iter().map(|it| format!("confirmed{}", by(it))));
    if !of.notes.is_empty() {
        parts.push(count(of.notes.len(), "note"));
    }
    let listed =
        |sign: &str, list: &[String]| list.iter().map(|it| format!("{sign}{it}")).collect::<Vec<_>>();
    let depends = [listed("+", &of.depends_added), listed("−", &of.depends_removed)].concat();
    if !depends.is_empty() {
        parts.push(format!("depends {}", depends.join(" ")));
    }
    let lines = (of.lines_added, of.lines_removed);
    if lines != (0, 0) || !of.keys.is_empty() || of.problem.is_some() {
        parts.push(log::changed(Some(lines), &of.keys, of.problem.as_deref()));
    }
    parts
}

fn attempt(of: &Added) -> String {
    format!("attempt {}{}", of.outcome.as_deref().unwrap_or("without an outcome"), by(of))
}

fn by(of: &Added) -> String {
    of.by.as_ref().map(|it| format!(" by {it}")).unwrap_or_default()
}

/// The differences of a file, line by line; within changed lines, the words that differ are marked.
fn patch(file: &FileDiff) -> String {
    let text = |it: &Option<Vec<u8>>| String::from_utf8_lossy(it.as_deref().unwrap_or_default()).into_owned();
    let (old, new) = (text(&file.old), text(&file.new));
    let mut said = format!("{}\n", paint(BOLD, &escaped(&file.path)));
    for line in lines(&old, &new) {
        let (sign, style) = match line.kind {
            LineKind::Head => ("", READY),
            LineKind::Removed => ("-", BAD),
            LineKind::Added => ("+", GOOD),
            LineKind::Same => (" ", PLAIN),
        };
        said.push_str(&paint(style, sign));
        for (differs, text) in &line.parts {
            let style = if *differs { style.bold().underline() } else { style };
            said.push_str(&paint(style, &escaped_lines(text)));
        }
        said.push('\n');
    }
    said
}

/// The report as a Markdown list, for example for a comment on a pull request.
fn as_markdown(report: &DiffReport) -> String {
    if report.differences.is_empty() {
        return "The plans do not differ.\n".to_owned();
    }
    let mut said = String::new();
    for it in &report.differences {
        let parts = parts(it).join(", ");
        writeln!(said, "- **{}** {}: {}", plain(&it.id), plain(&it.title), plain(&parts)).ok();
    }
    let text = |it: &FileDiff| unified(&it.path, it.old.as_deref(), it.new.as_deref());
    let texts: String = report.files.iter().flatten().map(text).collect();
    if !texts.is_empty() {
        // The fence must be longer than every run of backticks in the text.
        let longest = texts.split(|it| it != '`').map(str::len).max().unwrap_or_default().max(2);
        let fence = "`".repeat(longest + 1);
        write!(said, "\n{fence}diff\n{}{fence}\n", escaped_lines(&texts)).ok();
    }
    said
}

/// Escapes a text so that Markdown shows it unchanged.
fn plain(text: &str) -> String {
    let text = escaped(&one_line(text)).into_owned();
    let special =
        |c: char| matches!(c, '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '#' | '|' | '~' | '@' | '!');
    text.chars().flat_map(|c| special(c).then_some('\\').into_iter().chain([c])).collect()
}
