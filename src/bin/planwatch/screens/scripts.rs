//! The screens of `script` and `trust`.

use planwatch::api::trust::{Subject, Trusted};
use planwatch::ops::script::Resolved;
use planwatch::plan::time::Time;

use crate::output::escaped;
use crate::screens::text::{fitted, hanging};
use crate::screens::{BAD, BOLD, BUSY, DIM, GOOD, ago, own_title, to_type, typed};
use crate::table::{Cell, Table, Yields, cell, column, paint, styled};

const NONE: &str = "There are no scripts.\n";

fn how_to_add() -> String {
    to_type(&[("planwatch script add NAME COMMAND".to_owned(), "to add a named command")])
}

fn state(found: &Resolved) -> Cell {
    match (found.script.problems.is_empty(), found.is_trusted) {
        (false, _) => styled(BAD, "faulty"),
        (true, true) => styled(GOOD, "trusted"),
        (true, false) => styled(DIM, "not trusted"),
    }
}

pub(crate) fn list(found: &[Resolved], width: Option<usize>) -> String {
    if found.is_empty() {
        return fitted(&format!("{NONE}{}", how_to_add()), width);
    }
    let mut table = Table::new([
        column("script", Yields::Nothing),
        column("command", Yields::Text),
        column("in", Yields::Text),
        column("", Yields::Last),
        column("about", Yields::Extra),
    ]);
    for it in found {
        let directory = styled(DIM, it.subject.directory.clone());
        let about = styled(DIM, it.script.description.clone().unwrap_or_default());
        table.row([
            cell(it.script.id.as_str()),
            cell(it.script.command.as_str()),
            directory,
            state(it),
            about,
        ]);
    }
    table.draw(width)
}

pub(crate) fn one(found: &Resolved, width: Option<usize>) -> String {
    let script = &found.script;
    let name = own_title(&script.id, &script.name);
    let mut text =
        format!("{}  {}\n", paint(BOLD, &escaped(&script.id)), escaped(name)).replace("  \n", "\n");
    let mut line = |word: &str, what: &str| {
        if !what.is_empty() {
            text +=
                &hanging(&format!("  {} {}\n", paint(DIM, &format!("{word:<10}")), escaped(what)), width, 13);
        }
    };
    let shown =
        |it: &Option<std::path::PathBuf>| it.as_ref().map(|it| it.display().to_string()).unwrap_or_default();
    line("command", &script.command);
    let directory = shown(&found.directory_path);
    line("runs in", if directory.is_empty() { "a directory that does not exist" } else { &directory });
    line("program", &shown(&found.command_path));
    line("about", script.description.as_deref().unwrap_or_default());
    line("plan", script.plan.as_deref().unwrap_or_default());
    line("handle", script.mcp_handle.as_deref().unwrap_or_default());
    line("file", &found.path());
    line("hash", &found.subject.hash);
    line("covers", &found.subject.files.join(", "));
    line("trust", &standing(found));
    for problem in &script.problems {
        line("problem", &format!("{}: {}", problem.code.text(), problem.message));
    }
    text
}

fn standing(found: &Resolved) -> String {
    match (&found.subject.fault, found.is_trusted) {
        (Some(why), _) => format!("it cannot be trusted, because {why}"),
        (None, true) => "it may run".to_owned(),
        (None, false) => "it has to be trusted before it runs".to_owned(),
    }
}

/// The text that the user reads before trusting `subject`.
pub(crate) fn subject(subject: &Subject) -> String {
    let Subject { what, command, directory, path, hash, files, .. } = subject;
    let files = match files.as_slice() {
        [] => "The command names no file of the repository.".to_owned(),
        files => format!("Trust covers {}.", escaped(&files.join(", "))),
    };
    format!(
        "{} would run\n  {}\nin {}, as defined in {} (hash {hash}).\n{files}\n",
        escaped(what),
        escaped(command),
        if directory == "." { "the repository's root".into() } else { escaped(directory) },
        escaped(&path.to_string_lossy()),
    )
}

/// Lists scripts, and other commands that run only if they are trusted, and shows whether each one is trusted.
pub(crate) fn wanting(found: &[Resolved], others: &[(&Subject, bool)], width: Option<usize>) -> String {
    if others.is_empty() {
        return wanting_scripts(found, width);
    }
    let mut table = Table::new([
        column("trust", Yields::Whole),
        column("of", Yields::Name),
        column("command", Yields::Text),
    ]);
    for (it, is_trusted) in others {
        let trust = if *is_trusted { styled(GOOD, "trusted") } else { styled(BUSY, "not trusted") };
        table.row([trust, cell(it.name.as_str()), cell(it.command.replace('\n', "; "))]);
    }
    let scripts = if found.is_empty() { String::new() } else { wanting_scripts(found, width) + "\n" };
    let first = others.iter().find(|(_, is_trusted)| !is_trusted);
    let hint =
        first.map(|(it, _)| (format!("planwatch trust {}", typed(&it.name)), "to review and trust it"));
    let hint = hint.map_or_else(String::new, |it| format!("\n{}", fitted(&to_type(&[it]), width)));
    format!("{scripts}{}{hint}", table.draw(width))
}

fn wanting_scripts(found: &[Resolved], width: Option<usize>) -> String {
    if found.is_empty() {
        return fitted(&format!("Nothing here needs trust. {NONE}{}", how_to_add()), width);
    }
    let untrusted = found.iter().find(|it| !it.is_trusted && it.script.problems.is_empty());
    let listed = list(found, width);
    if let Some(it) = untrusted {
        let id = typed(&it.script.id);
        let show = (format!("planwatch script show {id}"), "to read what would run");
        let trust = (format!("planwatch trust {id}"), "to let it run");
        return format!("{listed}\n{}", fitted(&to_type(&[show, trust]), width));
    }
    listed
}

pub(crate) fn trusted(all: &[Trusted], now: Time, width: Option<usize>) -> String {
    if all.is_empty() {
        return "Nothing is trusted on this machine.\n".to_owned();
    }
    let mut table = Table::new([
        column("command", Yields::Text),
        column("in", Yields::Text),
        column("since", Yields::Last),
        column("as", Yields::Text),
    ]);
    for it in all {
        let (directory, path) = (it.directory.clone(), it.path.display().to_string());
        table.row([cell(it.command.as_str()), cell(directory), styled(DIM, ago(now, it.at)), cell(path)]);
    }
    table.draw(width)
}
