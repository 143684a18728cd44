//! `confirm`: the caller counts as a person if standard input is a terminal.

use std::io::IsTerminal;

use planwatch::ops::confirm::{self, Answer, ConfirmRequest, Confirmer};

use crate::args::work::Confirm;
use crate::context::Session;
use crate::failure::Failure;
use crate::screens::change;

pub(crate) fn run(session: &Session, args: Confirm) -> Result<u8, Failure> {
    change::check_fields(session)?;
    let Confirm { id, phase, reject, note, by, dry_run } = args;
    let confirmer = if std::io::stdin().is_terminal() { Confirmer::Person } else { Confirmer::Unknown };
    let answer = if reject { Answer::No } else { Answer::Yes };
    let request = ConfirmRequest { id, phase, answer, note, by: by.by, confirmer, mode: dry_run.mode() };
    change::print(session, &confirm::confirm(&session.context()?, &request)?)
}
