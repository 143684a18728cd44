//! `edit`: opens a file in the user's editor, and reports its problems afterwards.

use std::io::IsTerminal;

use planwatch::api::context::Context;
use planwatch::api::views::shown_path;
use planwatch::ops::edit::{self, Before};
use planwatch::ops::show::{self, ShowReport, ShowRequest};
use planwatch::plan::problem::{Problem, Severity};
use planwatch::process::editor;
use planwatch::text::line_index::line_text;

use crate::args::write::Edit;
use crate::context::{self, Session};
use crate::failure::{self, Failure};
use crate::output::escaped;
use crate::screens::{BOLD, problems};
use crate::table::paint;

pub(crate) fn run(session: &Session, args: &Edit) -> Result<u8, Failure> {
    let context = session.context()?;
    let command = command()?;
    let file = edit::file(&context, &args.id).map_err(|error| {
        // The id may be that of an insight, for which `full_id` has another error.
        full_id(&context, &args.id).err().unwrap_or_else(|| error.into())
    })?;
    let before = Before::of(&context, &file);
    let name = command.first().cloned().unwrap_or_default();
    let failed = |what: String| {
        Failure::failed("editor", what).with_hint("set VISUAL or EDITOR to use another editor")
    };
    let has_ended_well = editor::run(&command, &file)
        .map_err(|error| failed(format!("`{name}` could not be started: {}", failure::system(&error))))?;
    let context = session.context()?;
    let after = edit::read(&context, &file);
    let is_unchanged = after.as_deref().unwrap_or_default() == before.bytes();
    for verb in after.iter().flat_map(|it| before.overwritten(&context, &file, it)) {
        let message = format!(
            "`{verb}` changed the file while the editor was open, and what the editor saved does not have that change"
        );
        session.output.note("overwritten", &message);
    }
    if !has_ended_well {
        let saved = if is_unchanged { "the file is unchanged" } else { "the file has been changed" };
        return Err(failed(format!("`{name}` ended with an error; {saved}")));
    }
    let found = edit::problems(&context, &args.id)?;
    let (root, width) = (context.root_name(), session.output.width);
    let shown = |it: &Problem| {
        let line = after.as_deref().filter(|_| it.line > 1 || it.column > 1);
        let line = line.and_then(|bytes| line_text(bytes, it.line));
        problems::problem(it, &shown_path(&root, &it.path), line.as_deref(), width)
    };
    if found.is_empty() {
        let did = if is_unchanged { "unchanged" } else { "edited" };
        let id = full_id(&context, &args.id)?;
        session.output.report(&format!("{did} {}\n", paint(BOLD, &escaped(&id))))?;
    } else {
        session.output.text(&found.iter().map(shown).collect::<String>())?;
    }
    Ok(if found.iter().any(|it| it.severity() == Severity::Error) { 6 } else { 0 })
}

fn full_id(context: &Context, typed: &str) -> Result<String, Failure> {
    let request = ShowRequest { id: typed.to_owned(), ..ShowRequest::default() };
    Ok(match show::show(context, &request)? {
        ShowReport::Step(it) => it.step.id,
        ShowReport::Plan(it) => it.plan.id,
        ShowReport::Graph { plan, .. } => plan,
        ShowReport::Decision(_) => {
            let hint = "decisions are not edited; `planwatch decide` records a new one";
            return Err(Failure::usage(format!("`{typed}` is not a plan or step"), hint));
        }
        ShowReport::Insight(_) => {
            let hint = "open the file of the insight in an editor";
            return Err(Failure::usage(format!("`{typed}` is not a plan or step"), hint));
        }
    })
}

/// The editor's command line; `vi` is the default only at a terminal.
pub(crate) fn command() -> Result<Vec<String>, Failure> {
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
