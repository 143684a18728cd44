//! `edit`: the user's editor on a file, and what is wrong with it afterwards.

use std::io::IsTerminal;

use planwatch::agent::editor;
use planwatch::engine::edit;
use planwatch::engine::shape::shown_path;
use planwatch::plan::problem::Severity;

use crate::args::write::Edit;
use crate::context::{self, Session};
use crate::failure::Failure;
use crate::screens::problems;

pub(crate) fn run(session: &Session, args: &Edit) -> Result<u8, Failure> {
    let context = session.context()?;
    let command = command()?;
    let file = edit::file(&context, &args.id)?;
    let name = command.first().cloned().unwrap_or_default();
    let failed =
        |what: String| Failure::failed("editor", what).with_hint("VISUAL or EDITOR names another one");
    let has_ended_well = editor::run(&command, &file)
        .map_err(|error| failed(format!("`{name}` could not be started: {error}")))?;
    if !has_ended_well {
        return Err(failed(format!("`{name}` ended with an error")));
    }
    let context = session.context()?;
    let found = edit::problems(&context, &args.id)?;
    let root = context.root_name();
    let said: String =
        found.iter().map(|it| problems::problem(it, &shown_path(&root, &it.path), None)).collect();
    session.output.text(&said)?;
    Ok(if found.iter().any(|it| it.severity() == Severity::Error) { 6 } else { 0 })
}

/// The editor's words; without a terminal none is guessed.
fn command() -> Result<Vec<String>, Failure> {
    let named = context::editor().or_else(|| std::io::stdout().is_terminal().then(|| "vi".to_owned()));
    let Some(named) = named else {
        return Err(Failure::usage(
            "no editor is named, and there is no terminal",
            "set EDITOR, as in EDITOR=vi",
        ));
    };
    shell_words::split(&named).map_err(|error| {
        Failure::usage(format!("the editor `{named}` cannot be read: {error}"), "check VISUAL and EDITOR")
    })
}
