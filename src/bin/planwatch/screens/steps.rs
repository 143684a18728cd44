//! The table of one plan's steps.

use planwatch::api::views::StepShape;
use planwatch::plan::time::Time;

use crate::output::escaped;
use crate::screens::{BAD, DIM, ago, due_cell, state};
use crate::table::{Cell, Table, Yields, cell, column, numbers, styled};

/// The column `waits for` lists at most this many steps.
const MOST_WAITS: usize = 8;

pub(crate) fn table(steps: &[StepShape], now: Time) -> Table {
    let mut table = Table::new([
        numbers("", Yields::Nothing),
        column("status", Yields::Nothing),
        column("title", Yields::Text),
        column("phase", Yields::Whole),
        column("waits for", Yields::Extra),
        column("by", Yields::Extra),
        numbers("tasks", Yields::Spare),
        column("due", Yields::Whole),
        column("last change", Yields::Whole),
        column("", Yields::Extra),
    ]);
    for step in steps {
        table.row([
            cell(step.number.as_str()),
            state(step),
            title(step),
            styled(DIM, escaped(step.phase.as_deref().unwrap_or_default())),
            cell(escaped(&step.shown_waits(MOST_WAITS))),
            cell(escaped(worker(step))),
            cell(tasks(step)),
            due_cell(step.due, !matches!(step.status.as_str(), "completed" | "skipped"), now),
            styled(DIM, ago(now, step.last_activity)),
            styled(BAD, step.problems.join(", ")),
        ]);
    }
    table
}

fn title(step: &StepShape) -> Cell {
    styled(if matches!(step.status.as_str(), "skipped") { DIM } else { super::PLAIN }, escaped(&step.title))
}

/// Who works on a step, else its assignee.
pub(crate) fn worker(step: &StepShape) -> &str {
    let claimed = step.claim.as_ref().and_then(|it| it.by.as_deref());
    claimed.or(step.held_by.as_deref()).or(step.assignee.as_deref()).unwrap_or_default()
}

pub(crate) fn tasks(step: &StepShape) -> String {
    if step.tasks_total == 0 { String::new() } else { format!("{}/{}", step.tasks_done, step.tasks_total) }
}
