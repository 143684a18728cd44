//! `undo`: takes back the last change, or lists what can be taken back.

use planwatch::engine::undo::{self, UndoItem};
use planwatch::plan::time::Time;

use crate::args::write::Undo;
use crate::context::Session;
use crate::failure::Failure;
use crate::output::escaped;
use crate::screens::{DIM, ago, change, count};
use crate::table::{Table, Yields, cell, column, styled};

pub(crate) fn run(session: &Session, args: &Undo) -> Result<u8, Failure> {
    if args.list {
        return list(session);
    }
    change::check_fields(session)?;
    change::print(session, &undo::undo(&session.context()?, args.dry_run.mode())?)
}

fn list(session: &Session) -> Result<u8, Failure> {
    let context = session.context()?;
    let items = undo::undo_list(&context);
    if session.output.is_json() {
        session.output.json("undo-list", undo::list_to_json(&items))?;
    } else {
        session.output.text(&screen(&items, context.now, session.output.width))?;
    }
    Ok(0)
}

fn screen(items: &[UndoItem], now: Time, width: Option<usize>) -> String {
    if items.is_empty() {
        return "There is nothing to take back.\n".to_owned();
    }
    let mut table = Table::new([
        column("change", Yields::Nothing),
        column("when", Yields::Last),
        column("files", Yields::Text),
    ]);
    for item in items {
        let files = match item.paths.as_slice() {
            [one] => escaped(one).into_owned(),
            [first, rest @ ..] => format!("{} and {}", escaped(first), count(rest.len(), "more file")),
            [] => String::new(),
        };
        let at = item.at.parse().ok();
        table.row([cell(item.verb.as_str()), styled(DIM, ago(now, at)), cell(files)]);
    }
    table.draw(width)
}
