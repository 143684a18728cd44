//! The table of plans.

use std::collections::{HashMap, HashSet};

use anstyle::Style;
use planwatch::api::views::{PlanShape, Reason};
use planwatch::plan::model::PlanKind;
use planwatch::plan::records::Priority;
use planwatch::plan::time::Time;

use crate::output::escaped;
use crate::screens::{BAD, BUSY, DIM, PLAIN, READY, STUCK, ago, bar_of, colour, due_cell, mark, own_title};
use crate::table::{Cell, Table, Yields, cell, column, in_parts, paint, styled};

/// Draws one line per plan; the children of a program are below it.
pub(crate) fn table(plans: &[PlanShape], now: Time) -> Table {
    drawn(plans, &in_programs(plans), now)
}

/// Draws one line per plan, in the given order.
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
        let parts = status_parts(plan);
        let id = format!("{}{}", if *is_child { "  " } else { "" }, escaped(&plan.id));
        table.row([
            cell(id),
            cell(bar_of(plan)),
            in_parts(parts, worst(plan)).or_short(short_stand(plan)),
            styled(if plan.priority == Priority::Critical { BAD } else { PLAIN }, priority(plan.priority)),
            due_cell(plan.due, !matches!(plan.status.as_str(), "completed" | "abandoned"), now),
            styled(DIM, ago(now, plan.last_activity)),
            if has_titles { title(plan) } else { cell("") },
        ]);
    }
    table
}

/// A title that only repeats the id is dimmed.
fn title(plan: &PlanShape) -> Cell {
    let is_own = !own_title(&plan.id, &plan.title).is_empty();
    styled(if is_own { PLAIN } else { DIM }, escaped(&plan.title))
}

/// Programs are followed by their children; otherwise, the order stays.
fn in_programs(plans: &[PlanShape]) -> Vec<(&PlanShape, bool)> {
    let (tops, children) = nested(plans);
    let mut sorted = Vec::new();
    for top in tops.into_iter().map(|it| &plans[it]) {
        sorted.push((top, false));
        let below = children.get(top.id.as_str()).into_iter().flatten();
        sorted.extend(below.map(|it| (&plans[*it], true)));
    }
    sorted
}

/// Returns the indexes of the plans on the top level, and those of the plans below each program. There are no more levels:
/// if the program of a plan is missing or itself names a program, the plan is on the top level, so that no plan is hidden.
pub(crate) fn nested(plans: &[PlanShape]) -> (Vec<usize>, HashMap<&str, Vec<usize>>) {
    let is_top = |it: &PlanShape| it.program.as_ref().is_none_or(|program| *program == it.id);
    let programs = plans.iter().filter(|it| it.kind == PlanKind::Program && is_top(it));
    let programs: HashSet<_> = programs.map(|it| it.id.as_str()).collect();
    let (mut tops, mut children) = (Vec::new(), HashMap::<_, Vec<_>>::new());
    for (at, plan) in plans.iter().enumerate() {
        match plan.program.as_deref().filter(|it| !is_top(plan) && programs.contains(it)) {
            Some(program) => children.entry(program).or_default().push(at),
            None => tops.push(at),
        }
    }
    (tops, children)
}

fn priority(priority: Priority) -> &'static str {
    if priority == Priority::Medium { "" } else { priority.word() }
}

/// The counts of an active plan's steps; each has its colour.
fn counts(plan: &PlanShape) -> Vec<(usize, &'static str, Style)> {
    plan.counts().into_iter().map(|(n, what)| (n, what, count_style(what))).collect()
}

fn count_style(what: &str) -> Style {
    match what {
        "ready" => READY,
        "in progress" | "lapsed" => BUSY,
        "failed" => BAD,
        "blocked" => STUCK,
        _ => PLAIN,
    }
}

/// The state of a plan in one line with colours.
pub(crate) fn painted_status(plan: &PlanShape) -> String {
    let parts = status_parts(plan);
    parts.iter().map(|(text, style)| paint(*style, text)).collect::<Vec<_>>().join(", ")
}

/// The state of a plan; for an active one, the counts of its steps, each in its own colour.
pub(crate) fn status_parts(plan: &PlanShape) -> Vec<(String, Style)> {
    if plan.archived {
        return vec![("archived".to_owned(), DIM)];
    }
    if plan.status != "active" {
        let incomplete = if plan.incomplete { ", incomplete" } else { "" };
        return vec![(format!("{}{incomplete}", escaped(&plan.status)), colour(&plan.status))];
    }
    let mut parts: Vec<_> =
        counts(plan).iter().map(|(n, what, style)| (format!("{n} {what}"), *style)).collect();
    parts.extend(plan.incomplete.then(|| ("draft incomplete".to_owned(), DIM)));
    if parts.is_empty() {
        parts.push((plan.state.to_owned(), DIM));
    }
    parts
}

/// The sign of a plan in a list: the most urgent reason why it needs attention, or else its progress. If the plan is only
/// stale, its progress is shown. If it is only overdue, its progress is shown in two cases: the plan is closed, or it has
/// steps in progress.
pub(crate) fn sign(plan: &PlanShape) -> (char, Style) {
    let is_closed = |n: usize| n > 0 && plan.steps_completed + plan.steps_skipped == n;
    match plan.attention {
        Some(Reason::Failed) => (mark("failed"), BAD),
        Some(Reason::Blocked) => (mark("blocked"), STUCK),
        Some(Reason::ToConfirm) => (TO_CONFIRM, BUSY),
        Some(Reason::Faulty) => (FAULTY, BAD),
        Some(Reason::NotVerified | Reason::Lapsed) => (mark("in_progress"), BUSY),
        _ if plan.status == "abandoned" => (mark("skipped"), DIM),
        _ if plan.status == "completed" || is_closed(plan.steps_total) => {
            (mark("completed"), colour("completed"))
        }
        _ if plan.steps_in_progress > 0 => (mark("in_progress"), BUSY),
        Some(Reason::Overdue) => (mark("pending"), BAD),
        _ if plan.steps_ready > 0 => (mark("pending"), READY),
        _ => ('·', DIM),
    }
}

/// The signs of a plan that waits for a person to confirm a step, and of one whose files have errors.
pub(crate) const TO_CONFIRM: char = '◇';
pub(crate) const FAULTY: char = '!';

/// The colour of the most urgent count.
fn worst(plan: &PlanShape) -> Style {
    let of = |what: &str| (plan.count_of(what) > 0).then(|| count_style(what));
    let of_work = || of("in progress").or(of("lapsed")).or(of("ready"));
    of("failed").or(of("blocked")).or_else(of_work).unwrap_or(PLAIN)
}

/// The short form of [`status_parts`] for an active plan: every count, with the mark of its status. Empty if there is
/// no shorter form.
fn short_stand(plan: &PlanShape) -> String {
    if plan.archived || plan.status != "active" {
        return String::new();
    }
    let counts = counts(plan);
    if counts.len() < 2 { String::new() } else { marked(&counts) }
}

/// `○2 ◐1 ✗1`. Lapsed steps count as in progress, as in their files.
fn marked(counts: &[(usize, &'static str, Style)]) -> String {
    let status = |what: &'static str| match what {
        "ready" => "pending",
        "in progress" | "lapsed" => "in_progress",
        itself => itself,
    };
    let mut marks: Vec<(char, usize)> = Vec::new();
    for (n, what, _) in counts {
        let sign = mark(status(what));
        match marks.iter_mut().find(|it| it.0 == sign) {
            Some((_, sum)) => *sum += n,
            None => marks.push((sign, *n)),
        }
    }
    marks.iter().map(|(sign, n)| format!("{sign}{n}")).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_counts_leave_nothing_out() {
        let counts = [
            (12, "ready", READY),
            (1, "lapsed", BUSY),
            (1, "in progress", BUSY),
            (3, "failed", BAD),
            (1, "blocked", STUCK),
        ];
        assert_eq!(marked(&counts), "○12 ◐2 ✗3 ■1");
    }
}
