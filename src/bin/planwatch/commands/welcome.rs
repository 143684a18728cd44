//! `planwatch` without a verb: runs `status`. If there is no plans directory, prints the first commands to type. With
//! `--json`, always runs `status`.

use planwatch::api::error::Error;

use crate::args::look::Status;
use crate::commands::status;
use crate::context::Session;
use crate::failure::Failure;
use crate::screens::text::fitted;
use crate::screens::to_type;

pub(crate) fn run(session: &Session) -> Result<u8, Failure> {
    let is_missing = matches!(session.plans_dir(&session.workspace()?), Err(Error::NoPlansDir));
    if session.output.is_json() || !is_missing {
        return status::run(session, &Status { days: None, all: false, markdown: false, branches: false });
    }
    session.output.text(&fitted(&screen(), session.output.width))?;
    Ok(0)
}

/// What is shown where there are no plans yet.
pub(crate) fn screen() -> String {
    let commands = to_type(&[
        ("planwatch new auth Schema Migrations Tests".to_owned(), "to create a plan with three steps"),
        ("planwatch help".to_owned(), "to list the verbs"),
    ]);
    format!("No plans here yet. A plan is a directory of Markdown files, one per step.\n{commands}")
}
