//! The table of plans.

use anstyle::Style;
use planwatch::engine::shape::PlanShape;
use planwatch::plan::model::PlanKind;
use planwatch::plan::records::Priority;
use planwatch::plan::time::Time;

use crate::output::escaped;
use crate::screens::{BAD, BUSY, DIM, PLAIN, READY, STUCK, ago, bar_of, colour, own_title};
use crate::table::{Cell, Table, Yields, cell, column, styled};

/// Draws one line a plan; the children of a program stand below it.
pub(crate) fn table(plans: &[PlanShape], now: Time) -> Table {
    let mut table = Table::new([
        column("plan", Yields::Name),
        column("progress", Yields::Last),
        column("now", Yields::Last),
        column("priority", Yields::Whole),
        column("last change", Yields::Whole),
        column("title", Yields::Text),
    ]);
    // A column of titles that all repeat the ids tells nothing.
    let has_titles = plans.iter().any(|it| !own_title(&it.id, &it.title).is_empty());
    for (plan, is_child) in in_programs(plans) {
        let (now_text, style) = stand(plan);
        // The first count is the one that matters most.
        let short = now_text.split(',').next().unwrap_or_default().to_owned();
        let id = format!("{}{}", if is_child { "  " } else { "" }, escaped(&plan.id));
        table.row([
            cell(id),
            cell(bar_of(plan)),
            styled(style, now_text).or_short(short),
            styled(if plan.priority == Priority::Critical { BAD } else { PLAIN }, priority(plan.priority)),
            styled(DIM, ago(now, plan.last_activity)),
            if has_titles { title(plan) } else { cell("") },
        ]);
    }
    table
}

/// A title that only repeats the id is there, but does not ask to be read.
fn title(plan: &PlanShape) -> Cell {
    let is_own = !own_title(&plan.id, &plan.title).is_empty();
    styled(if is_own { PLAIN } else { DIM }, escaped(&plan.title))
}

/// Programs are followed by their children; all else keeps its order.
fn in_programs(plans: &[PlanShape]) -> Vec<(&PlanShape, bool)> {
    let is_program = |id: &str| plans.iter().any(|it| it.id == id && it.kind == PlanKind::Program);
    let parent =
        |it: &PlanShape| it.program.clone().filter(|program| *program != it.id && is_program(program));
    let mut sorted = Vec::new();
    for plan in plans.iter().filter(|it| parent(it).is_none()) {
        sorted.push((plan, false));
        if plan.kind == PlanKind::Program {
            sorted
                .extend(plans.iter().filter(|it| parent(it).as_ref() == Some(&plan.id)).map(|it| (it, true)));
        }
    }
    sorted
}

fn priority(priority: Priority) -> &'static str {
    if priority == Priority::Medium { "" } else { priority.word() }
}

/// Where a plan stands: of an active one what its steps are about.
pub(crate) fn stand(plan: &PlanShape) -> (String, Style) {
    if plan.archived {
        return ("archived".to_owned(), DIM);
    }
    if plan.status != "active" {
        return (escaped(&plan.status).into_owned(), colour(&plan.status));
    }
    let counts = [
        (plan.steps_failed, "failed", BAD),
        (plan.steps_blocked, "blocked", STUCK),
        (plan.steps_in_progress, "in progress", BUSY),
        (plan.steps_ready, "ready", READY),
    ];
    let mut said = counts.into_iter().filter(|(n, _, _)| *n > 0).take(2).peekable();
    let style = said.peek().map_or(PLAIN, |(_, _, style)| *style);
    let said: Vec<_> = said.map(|(n, what, _)| format!("{n} {what}")).collect();
    match (said.is_empty(), plan.steps_total) {
        (false, _) => (said.join(", "), style),
        (true, 0) => ("empty".to_owned(), DIM),
        (true, _) => (plan.state.to_owned(), DIM),
    }
}
