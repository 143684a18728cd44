//! What screens have in common: marks, colours, bars, and the tables of plans and steps.

pub(crate) mod change;
pub(crate) mod history;
pub(crate) mod knowledge;
pub(crate) mod plans;
pub(crate) mod problems;
pub(crate) mod scripts;
pub(crate) mod steps;
pub(crate) mod text;

use anstyle::{AnsiColor, Style};
use planwatch::api::views::{PlanShape, StepShape};
use planwatch::plan::time::{self, Day, Time};
pub(crate) use planwatch::text::typed::shell_word as typed;

use crate::output::escaped;
use crate::table::{Cell, paint, styled};

pub(crate) const PLAIN: Style = Style::new();
pub(crate) const BOLD: Style = Style::new().bold();
pub(crate) const DIM: Style = Style::new().dimmed();
pub(crate) const GOOD: Style = AnsiColor::Green.on_default();
pub(crate) const BUSY: Style = AnsiColor::Yellow.on_default();
pub(crate) const BAD: Style = AnsiColor::Red.on_default();
pub(crate) const STUCK: Style = AnsiColor::Magenta.on_default();
pub(crate) const READY: Style = AnsiColor::Cyan.on_default();

/// The character for a status, which is readable without colour.
pub(crate) fn mark(status: &str) -> char {
    match status {
        "pending" => '○',
        "in_progress" => '◐',
        "completed" => '●',
        "failed" => '✗',
        "blocked" => '■',
        "skipped" => '–',
        _ => '?',
    }
}

pub(crate) fn colour(status: &str) -> Style {
    match status {
        "completed" => GOOD,
        "in_progress" => BUSY,
        "failed" => BAD,
        "blocked" => STUCK,
        "skipped" | "abandoned" | "draft" => DIM,
        _ => PLAIN,
    }
}

/// A step's status with its mark. A pending step that is ready is shown as `ready`.
pub(crate) fn state(step: &StepShape) -> Cell {
    if step.status == "in_progress" && step.lapsed {
        return styled(BUSY, "◐ in_progress (lapsed)").or_short("◐ lapsed");
    }
    if step.unverified {
        return styled(BUSY, "◐ completed (not verified)").or_short("◐ not verified");
    }
    let (word, style) = match step.status.as_str() {
        "pending" if step.ready => ("ready".to_owned(), READY),
        "?" => ("unreadable".to_owned(), BAD),
        status => (escaped(status).into_owned(), colour(status)),
    };
    styled(style, format!("{} {word}", mark(&step.status)))
}

/// Like [`state`], but shorter.
pub(crate) fn short_state(step: &StepShape) -> Cell {
    match step {
        it if it.lapsed => styled(BUSY, format!("{} lapsed", mark(&it.status))),
        it if it.unverified => styled(BUSY, format!("{} not verified", mark(&it.status))),
        it => state(it),
    }
}

/// The commands for a step. A step whose claim lapsed still has an owner, so it has to be taken over with `claim`.
pub(crate) fn for_next(step: &StepShape) -> Vec<(String, &'static str)> {
    let id = typed(&step.id);
    let show = (format!("planwatch show {id}"), "to read it");
    let done = (format!("planwatch done {id}"), "to complete it");
    if step.lapsed {
        return vec![show, (format!("planwatch claim {id}"), "to take it over")];
    }
    vec![show, (format!("planwatch start {id}"), "to begin it"), done]
}

/// The progress as a bar: `███░░ 3/5`.
pub(crate) fn bar(closed: usize, total: usize) -> String {
    const WIDTH: usize = 5;
    if total == 0 {
        return "no steps".to_owned();
    }
    let rounded = (2 * closed * WIDTH + total) / (2 * total);
    // The bar is full only if all steps are closed. If at least one step is closed, the bar is not empty.
    let full = if closed >= total { WIDTH } else { rounded.clamp(usize::from(closed > 0), WIDTH - 1) };
    format!("{}{} {closed}/{total}", "█".repeat(full), "░".repeat(WIDTH - full))
}

pub(crate) fn bar_of(plan: &PlanShape) -> String {
    bar(plan.steps_completed + plan.steps_skipped, plan.steps_total)
}

pub(crate) fn ago(now: Time, then: Option<Time>) -> String {
    then.map(|it| time::ago(now, it)).unwrap_or_default()
}

/// `2026-11-21, 2 days ago`: the date, and the age at the time of printing.
pub(crate) fn dated(now: Time, then: Option<Time>) -> String {
    let day = |it: Time| it.to_string().chars().take(10).collect::<String>();
    then.map(|it| format!("{}, {}", day(it), time::ago(now, it))).unwrap_or_default()
}

/// `due 2026-11-21`, in red if the day is over and the work is still open.
pub(crate) fn due(day: Day, is_open: bool, now: Time) -> Cell {
    let is_late = is_open && day.is_over(now);
    styled(if is_late { BAD } else { PLAIN }, format!("due {day}{}", if is_late { " (overdue)" } else { "" }))
}

/// Like [`due`], for a column of that name.
pub(crate) fn due_cell(day: Option<Day>, is_open: bool, now: Time) -> Cell {
    let style = |it: Day| if is_open && it.is_over(now) { BAD } else { PLAIN };
    day.map_or_else(Cell::default, |it| styled(style(it), it.to_string()))
}

/// `1 step`, `2 steps`.
pub(crate) fn count(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

/// A title, unless it only repeats the id next to it.
pub(crate) fn own_title<'a>(id: &str, title: &'a str) -> &'a str {
    let is_same = |it: &str| it.trim().to_lowercase().replace(' ', "-") == id.to_lowercase();
    if is_same(title) { "" } else { title }
}

/// The first line of a screen: the id, and the title if it differs.
pub(crate) fn heading(id: &str, title: &str) -> String {
    let title = own_title(id, title);
    let id = paint(BOLD, &escaped(id));
    if title.is_empty() { format!("{id}\n") } else { format!("{id}  {}\n", escaped(title)) }
}

/// What to type next: commands, each with what it does.
pub(crate) fn to_type(commands: &[(String, &str)]) -> String {
    let widest =
        commands.iter().map(|(it, _)| unicode_width::UnicodeWidthStr::width(it.as_str())).max().unwrap_or(0);
    let line = |(command, what): &(String, &str)| {
        let pad = " ".repeat(widest - unicode_width::UnicodeWidthStr::width(command.as_str()));
        format!(
            "  {command}{}\n",
            if what.is_empty() { String::new() } else { format!("{pad}   {}", paint(DIM, what)) }
        )
    };
    commands.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(closed: usize, total: usize, expected: &str) {
        assert_eq!(bar(closed, total), expected);
    }

    #[test]
    fn a_bar_is_full_only_at_the_end_and_begun_at_once() {
        check(3, 5, "███░░ 3/5");
        check(0, 4, "░░░░░ 0/4");
        check(4, 11, "██░░░ 4/11");
        check(1, 200, "█░░░░ 1/200");
        check(199, 200, "████░ 199/200");
        check(4, 4, "█████ 4/4");
        check(0, 0, "no steps");
    }

    #[test]
    fn words_are_quoted_where_a_shell_wants_it() {
        assert_eq!(typed("auth:2.5"), "auth:2.5");
        assert_eq!(typed("my plan:1"), "'my plan:1'");
    }
}
