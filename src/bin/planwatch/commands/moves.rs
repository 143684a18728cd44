//! `start`, `done`, `fail`, `block`, `skip`, `reopen`, `attempt`, `note`.

use std::io::IsTerminal;

use planwatch::api::context::Context;
use planwatch::ops::next::{self, NextRequest};
use planwatch::ops::note::{self, NoteRequest};
use planwatch::ops::update::{self, AttemptRequest, MoveRequest};
use planwatch::plan::transitions::Verb;
use planwatch::store::transaction::{ChangeReport, Mode};

use crate::args::work::{Attempt, Move, Note};
use crate::context::Session;
use crate::failure::Failure;
use crate::screens::text::hanging;
use crate::screens::{change, typed};

pub(crate) fn run(session: &Session, verb: Verb, args: Move) -> Result<u8, Failure> {
    change::check_fields(session)?;
    let Move { ids, message, by, claim, force, key, dry_run } = args;
    let wants_reason = message.is_none() && matches!(verb, Verb::Fail | Verb::Block);
    let request =
        MoveRequest { is_signed: false, verb, ids, message, by: by.by, claim, force, mode: dry_run.mode() };
    let context = session.context_once(&key, &request)?;
    let report = update::move_steps(&context, &request)?;
    let code = change::print(session, &report)?;
    if let Some(changed) = report.changes.first().filter(|_| wants_reason && request.mode == Mode::Write) {
        session.output.hint(&format!(
            "give the reason: planwatch {} {} -m TEXT",
            verb.word(),
            typed(&changed.id)
        ));
    }
    if matches!(verb, Verb::Done | Verb::Skip) {
        say_next(session, &context, &report)?;
    }
    Ok(code)
}

/// Prints the plan's next step, but only on a terminal, so that scripts do not wait until the plan is loaded again.
fn say_next(session: &Session, context: &Context, report: &ChangeReport) -> Result<(), Failure> {
    let is_for_person = !session.output.is_json() && std::io::stdout().is_terminal();
    let step = report.changes.last().and_then(|it| it.now.get("plan")).and_then(serde_json::Value::as_str);
    let Some(plan) = step.filter(|_| is_for_person && !report.is_dry_run) else { return Ok(()) };
    let Ok(next) = next::next(context, &NextRequest { plan: Some(plan.to_owned()), most: Some(1) }) else {
        return Ok(());
    };
    let said = match &next.step {
        Some(step) => format!("{} {}", step.id, step.title),
        None => next.why,
    };
    let line = hanging(&change::next_line(&said), session.output.width, 6);
    session.output.report(&line).map(drop)
}

pub(crate) fn attempt(session: &Session, args: Attempt) -> Result<u8, Failure> {
    change::check_fields(session)?;
    let Attempt { id, outcome, notes, at, status, keep_status, by, claim, force, key, dry_run } = args;
    let mode = dry_run.mode();
    let request =
        AttemptRequest { id, outcome, notes, by: by.by, at, status, keep_status, claim, force, mode };
    change::print(session, &update::attempt(&session.context_once(&key, &request)?, &request)?)
}

pub(crate) fn note(session: &Session, args: Note) -> Result<u8, Failure> {
    change::check_fields(session)?;
    let Note { id, text, kind, by, key, dry_run } = args;
    let request = NoteRequest { id, text, kind, by: by.by, mode: dry_run.mode() };
    change::print(session, &note::note(&session.context_once(&key, &request)?, &request)?)
}
