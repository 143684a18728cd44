//! `new`: creates a plan with its steps.

use planwatch::api::context::Context;
use planwatch::api::error::Error;
use planwatch::api::workspace;
use planwatch::ops::create::{self, NewRequest};
use planwatch::plan::id;
use planwatch::store::transaction::Mode;

use crate::args::write::{Kind, New};
use crate::context::{EmptyPlans, Session};
use crate::failure::Failure;
use crate::screens::change;
use planwatch::text::typed::shell_word;

pub(crate) fn run(session: &Session, args: New) -> Result<u8, Failure> {
    change::check_fields(session)?;
    let mode = args.dry_run.mode();
    let request = NewRequest {
        title: args.title,
        steps: args.steps.into_iter().map(Into::into).collect(),
        description: args.description,
        goals: args.goals,
        criteria: args.criteria,
        tags: args.tags,
        category: args.category,
        priority: args.priority,
        program: args.program,
        is_program: args.kind == Kind::Program,
        children: args.children,
        is_draft: args.draft,
        is_sequential: args.sequential,
        by: args.by.by,
        template: args.template,
        body: None,
        mode,
    };
    let mut report = match mode {
        Mode::Write => create::new(&session.context_to_make()?, &request)?,
        Mode::DryRun => dry_run(session, |context| create::new(context, &request))?,
    };
    if let Some(program) = report.changes.first().filter(|_| request.is_program && request.steps.is_empty()) {
        report.hints = vec![match request.children.is_empty() {
            true => format!("planwatch new TITLE --program {}", shell_word(&program.id)),
            false => format!("planwatch next {}", shell_word(&program.id)),
        }];
    }
    let code = change::print(session, &report)?;
    if let Some(made) = report.changes.first() {
        let name = id::slug(&request.title, &|_| false);
        if name != made.id && !report.is_dry_run {
            session.output.hint(&format!("the name `{name}` is taken, so this plan is `{}`", made.id));
        }
    }
    Ok(code)
}

/// Does a dry run. Like a write, it is refused if there is no plans directory and none can be made here.
pub(crate) fn dry_run<T>(
    session: &Session,
    ask: impl FnOnce(&Context) -> Result<T, Error>,
) -> Result<T, Failure> {
    let workspace = session.workspace()?;
    if workspace.plans_dir.is_none() {
        workspace::check_place(&*session.disk(), &workspace)?;
    }
    in_plans_or_empty_dir(session, ask)
}

/// Runs `ask`, which must not write. If there is no plans directory, `ask` gets an empty temporary one.
pub(crate) fn in_plans_or_empty_dir<T>(
    session: &Session,
    ask: impl FnOnce(&Context) -> Result<T, Error>,
) -> Result<T, Failure> {
    let workspace = session.workspace()?;
    if let Some(plans) = &workspace.plans_dir {
        return Ok(ask(&session.context_in(&workspace, plans)?)?);
    }
    let empty = EmptyPlans::make(&*session.disk())?;
    Ok(ask(&session.context_in(&workspace, &empty.path())?)?)
}
