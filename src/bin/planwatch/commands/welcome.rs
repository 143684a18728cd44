//! Bare `planwatch`: what to type where there are no plans, else `status`.

use planwatch::engine::list::{self, ListReport, ListRequest};

use crate::args::look::Status;
use crate::commands::status;
use crate::context::Session;
use crate::failure::Failure;
use crate::screens::to_type;

pub(crate) fn run(session: &Session) -> Result<u8, Failure> {
    if session.output.is_json() || has_plans(session)? {
        return status::run(session, &Status { days: None, markdown: false });
    }
    session.output.text(&screen())?;
    Ok(0)
}

fn has_plans(session: &Session) -> Result<bool, Failure> {
    let workspace = session.workspace()?;
    let Some(plans) = &workspace.plans_dir else { return Ok(false) };
    let context = session.context_in(&workspace, plans)?;
    let all = ListRequest { all: true, ..ListRequest::default() };
    Ok(!matches!(list::list(&context, &all)?, ListReport::Plans { plans, .. } if plans.is_empty()))
}

/// The three lines that a first day begins with.
pub(crate) fn screen() -> String {
    format!("No plans here yet: a plan is a folder of Markdown files, one a step.\n{}", commands())
}

pub(crate) fn commands() -> String {
    to_type(&[
        ("planwatch new auth Schema Migrations Tests".to_owned(), "to make a plan with three steps"),
        ("planwatch help".to_owned(), "to see the verbs"),
    ])
}
