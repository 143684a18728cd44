//! The table of plans.

use anstyle::Style;
use planwatch::api::views::PlanShape;
use planwatch::plan::model::PlanKind;
use planwatch::plan::records::Priority;
use planwatch::plan::time::Time;

use crate::output::escaped;
use crate::screens::{BAD, BUSY, DIM, PLAIN, READY, STUCK, ago, bar_of, colour, due_cell, mark, own_title};
use crate::table::{Cell, Table, Yields, cell, column, styled};

/// Draws one line a plan; the children of a program stand below it.
pub(crate) fn table(plans: &[PlanShape], now: Time) -> Table {
    drawn(plans, &in_programs(plans), now)
}

/// Draws one line a plan, in their order.
pub(crate) fn sorted_table(plans: &[PlanShape], now: Time) -> Table {
    let lines: Vec<_> = plans.iter().map(|it| (it, false)).collect();
    drawn(plans, &lines, now)
}

fn drawn(plans: &[PlanShape], lines: &[(&PlanShape, bool)], now: Time) -> Table {
    let mut table = Table::new([
        column("plan", Yields::Name),
        column("progress", Yields::Last),
        column("now", Yields::Last),
        column("priority", Yields::Whole),
        column("due", Yields::Whole),
        column("last change", Yields::Whole),
        column("title", Yields::Text),
    ]);
    // A column of titles that all repeat the ids is left out.
    let has_titles = plans.iter().any(|it| !own_title(&it.id, &it.title).is_empty());
    for (plan, is_child) in lines {
        let (now_text, style) = status_cell(plan);
        let id = format!("{}{}", if *is_child { "  " } else { "" }, escaped(&plan.id));
        table.row([
            cell(id),
            cell(bar_of(plan)),
            styled(style, now_text).or_short(short_stand(plan)),
            styled(if plan.priority == Priority::Critical { BAD } else { PLAIN }, priority(plan.priority)),
            due_cell(plan.due, !matches!(plan.status.as_str(), "completed" | "abandoned"), now),
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

/// The state of a plan; for an active one, the counts of its steps.
pub(crate) fn status_cell(plan: &PlanShape) -> (String, Style) {
    if plan.archived {
        return ("archived".to_owned(), DIM);
    }
    let incomplete = if plan.incomplete { ", incomplete" } else { "" };
    if plan.status != "active" {
        return (format!("{}{incomplete}", escaped(&plan.status)), colour(&plan.status));
    }
    let mut said: Vec<_> = counts(plan).iter().map(|(n, what, _)| format!("{n} {what}")).collect();
    said.extend(plan.incomplete.then(|| "draft incomplete".to_owned()));
    match (said.is_empty(), plan.steps_total) {
        (false, _) => (said.join(", "), worst(plan)),
        (true, 0) => ("empty".to_owned(), DIM),
        (true, _) => (plan.state.to_owned(), DIM),
    }
}

/// The order of plans: work in progress comes before work that waits.
fn counts(plan: &PlanShape) -> Vec<(usize, &'static str, Style)> {
    let counts = [
        (plan.steps_ready, "ready", READY),
        (plan.steps_in_progress, "in progress", BUSY),
        (plan.steps_failed, "failed", BAD),
        (plan.steps_blocked, "blocked", STUCK),
    ];
    counts.into_iter().filter(|(n, _, _)| *n > 0).collect()
}

/// The colour of what needs a person most.
fn worst(plan: &PlanShape) -> Style {
    let counts = counts(plan);
    let of = |what: &str| counts.iter().find(|(_, it, _)| *it == what).map(|(_, _, style)| *style);
    of("failed").or(of("blocked")).or(of("in progress")).or(of("ready")).unwrap_or(PLAIN)
}

/// As [`stand`], where there is little room: nothing is left out, each count has the mark of its status.
fn short_stand(plan: &PlanShape) -> String {
    if plan.archived || plan.status != "active" {
        return String::new();
    }
    let counts = counts(plan);
    if counts.len() < 2 { String::new() } else { marked(&counts) }
}

/// `○2 ◐1 ✗1`.
fn marked(counts: &[(usize, &'static str, Style)]) -> String {
    let status = |what: &'static str| match what {
        "ready" => "pending",
        "in progress" => "in_progress",
        itself => itself,
    };
    let marked = counts.iter().map(|(n, what, _)| format!("{}{n}", mark(status(what))));
    marked.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_counts_leave_nothing_out() {
        let counts =
            [(12, "ready", READY), (1, "in progress", BUSY), (3, "failed", BAD), (1, "blocked", STUCK)];
        assert_eq!(marked(&counts), "○12 ◐1 ✗3 ■1");
    }
}
