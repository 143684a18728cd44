//! `undo`: undoes a change, by default the last one, or lists the last changes.

use planwatch::ops::undo::{self, Blocked, UndoItem, UndoRequest};
use planwatch::plan::time::Time;

use crate::args::write::Undo;
use crate::context::Session;
use crate::failure::Failure;
use crate::output::escaped;
use crate::screens::{BAD, DIM, ago, change, count};
use crate::table::{Table, Yields, cell, column, styled};

pub(crate) fn run(session: &Session, args: &Undo) -> Result<u8, Failure> {
    if args.list {
        return list(session);
    }
    change::check_fields(session)?;
    let request = UndoRequest {
        id: args.id.clone(),
        by: args.by.by.clone(),
        claim: args.claim.clone(),
        force: args.force,
        mode: args.dry_run.mode(),
    };
    change::print(session, &undo::undo(&session.context()?, &request)?)
}

fn list(session: &Session) -> Result<u8, Failure> {
    let context = session.context()?;
    let items = undo::undo_list(&context);
    session.answer("undo-list", || undo::list_to_json(&items), |width| screen(&items, context.now, width))
}

fn screen(items: &[UndoItem], now: Time, width: Option<usize>) -> String {
    if items.is_empty() {
        return "There is nothing to undo.\n".to_owned();
    }
    let mut table = Table::new([
        column("id", Yields::Nothing),
        column("change", Yields::Nothing),
        column("when", Yields::Last),
        column("files", Yields::Text),
        column("cannot undo", Yields::Text),
    ]);
    for item in items {
        let files = match item.paths.as_slice() {
            [one] => escaped(one).into_owned(),
            [first, rest @ ..] => format!("{} and {}", escaped(first), count(rest.len(), "more file")),
            [] => String::new(),
        };
        let at = item.at.parse().ok();
        let blocked = item.blocked.as_ref().map(why).unwrap_or_default();
        table.row([
            cell(item.id.as_str()),
            cell(item.verb.as_str()),
            styled(DIM, ago(now, at)),
            cell(files),
            styled(BAD, blocked),
        ]);
    }
    table.draw(width)
}

fn why(blocked: &Blocked) -> String {
    let path = escaped(blocked.path.as_deref().unwrap_or("a file")).into_owned();
    match (&blocked.by, blocked.code) {
        (Some(by), _) => format!("change {by} changed {path} later"),
        (None, "file-changed") => format!("{path} was edited"),
        (None, "not-found") => format!("the text of {path} no longer exists"),
        (None, "not-recorded") => "it could not be recorded".to_owned(),
        (None, code) => format!("{code}: {path}"),
    }
}
