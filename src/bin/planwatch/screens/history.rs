//! Changes of plans in words, for `log` and `diff`, and the rows of a timeline.

use std::fmt::Write;

use planwatch::ops::log::LogEvent;
use planwatch::ops::log::timeline::{StepTimeline, TimelineReport};
use planwatch::page::look::Look;
use planwatch::page::timeline::outcome_look;
use planwatch::plan::history::What;
use planwatch::plan::time::{self, Time};
use planwatch::text::placeholders::one_line;
use unicode_width::UnicodeWidthStr;

use crate::output::escaped;
use crate::screens::{BAD, BOLD, BUSY, DIM, GOOD, PLAIN, STUCK, colour, heading, mark};
use crate::table::{cut, paint};

/// The length of a commit's id on a screen.
const SHORT: usize = 8;

/// The width if the terminal's width is not known.
const WIDTH: usize = 80;

/// The narrowest bar of a timeline.
const LEAST_BAR: usize = 20;

/// The widest title next to a bar.
const MOST_TITLE: usize = 24;

pub(crate) fn short(oid: &str) -> &str {
    oid.get(..SHORT).unwrap_or(oid)
}

/// Events below the commits that made them, newest first.
pub(crate) fn events(events: &[LogEvent], now: Time, width: Option<usize>) -> String {
    let mut said = String::new();
    let mut last: Option<&Option<String>> = None;
    for event in events {
        if last != Some(&event.commit) {
            if last.is_some() {
                said.push('\n');
            }
            said.push_str(&commit(event, now, width));
            last = Some(&event.commit);
        }
        said.push_str(&line(event, width));
    }
    said
}

fn commit(event: &LogEvent, now: Time, width: Option<usize>) -> String {
    let Some(oid) = &event.commit else { return format!("{}\n", paint(BOLD, "not committed yet")) };
    let author = event.author.as_deref().unwrap_or_default();
    let age = event.committed_at.map(|it| format!(", {}", time::ago(now, it))).unwrap_or_default();
    let who = format!("  {}{age}", escaped(author));
    let subject = escaped(event.subject.as_deref().unwrap_or_default()).into_owned();
    let room = width.map(|it| it.saturating_sub(SHORT + 2 + who.width()).max(20));
    let subject = room.map_or(subject.clone(), |it| cut(&subject, it));
    format!("{}  {}{}\n", paint(BUSY, short(oid)), paint(BOLD, &subject), paint(DIM, &who))
}

fn line(event: &LogEvent, width: Option<usize>) -> String {
    let id = event.step.as_deref().or(event.plan.as_deref()).unwrap_or_default();
    let id = if id.is_empty() { String::new() } else { format!("{}  ", escaped(id)) };
    let by = event.by.as_deref().filter(|it| Some(*it) != event.author.as_deref());
    let by = by.map(|it| format!("  by {}", escaped(it))).unwrap_or_default();
    let text = escaped(&one_line(&event.words())).into_owned();
    let room = width.map(|it| it.saturating_sub(2 + id.width() + by.width()).max(20));
    let text = room.map_or(text.clone(), |it| cut(&text, it));
    format!("  {id}{}{}\n", paint(style(event), &text), paint(DIM, &by))
}

fn style(event: &LogEvent) -> anstyle::Style {
    match event.what {
        What::Status => event.to.as_deref().map_or(PLAIN, colour),
        What::Created => GOOD,
        What::Removed => BAD,
        What::Attempt => event.outcome.as_deref().map_or(PLAIN, colour),
        _ => PLAIN,
    }
}

/// A row for each step, all with the same axis of time.
pub(crate) fn timeline(report: &TimelineReport, now: Time, width: Option<usize>) -> String {
    let mut said = heading(&report.plan, &report.title);
    let (Some(from), Some(last)) = (report.from, report.to) else {
        return format!("{said}No changes to the plan's steps are recorded.\n");
    };
    let is_open =
        |it: &StepTimeline| it.spans.last().is_some_and(|it| it.to.is_none() && !is_closed(&it.status));
    let to = if report.steps.iter().any(is_open) { last.max(now) } else { last };
    let number = |it: &StepTimeline| it.step.rsplit(':').next().unwrap_or_default().to_owned();
    let numbers = report.steps.iter().map(|it| number(it).width()).max().unwrap_or(1);
    let titles = report.steps.iter().map(|it| escaped(&it.title).width()).max().unwrap_or(0).min(MOST_TITLE);
    let used = numbers + titles + 7;
    let bar = width.unwrap_or(WIDTH).saturating_sub(used).max(LEAST_BAR);
    for step in &report.steps {
        let title = cut(&escaped(&step.title), titles);
        let pad = " ".repeat(titles.saturating_sub(title.width()));
        let state = paint(colour(&step.status), &mark(&step.status).to_string());
        let cells = cells(step, Axis { from, to, width: bar });
        writeln!(said, "{:>numbers$}  {state} {title}{pad}  {cells}", number(step)).ok();
    }
    let day = |it: Time| it.to_string().chars().take(16).collect::<String>().replace('T', " ");
    let (first, end) = (day(from), day(to));
    let gap = bar.saturating_sub(first.width() + end.width());
    let axis = if gap > 0 { format!("{first}{}{end}", " ".repeat(gap)) } else { first };
    writeln!(said, "{}{}", " ".repeat(used - 1), paint(DIM, &axis)).ok();
    said.push_str(&paint(
        DIM,
        "· waiting  █ in progress  ─ failed  ■ blocked  ✗ failed attempt  ● completed\n",
    ));
    said
}

#[derive(Clone, Copy)]
struct Axis {
    from: Time,
    to: Time,
    width: usize,
}

impl Axis {
    /// The column of a time.
    fn at(self, time: Time) -> usize {
        let all = self.to.seconds_since(self.from).max(1);
        let part = time.seconds_since(self.from).clamp(0, all);
        let column = part.saturating_mul(i64::try_from(self.width - 1).unwrap_or_default()) / all;
        usize::try_from(column).unwrap_or_default()
    }
}

/// The status of a step at each column. An attempt that failed, was partial or has an unknown outcome is drawn over an open
/// status. The mark of a closed status is drawn over both, at the time when the step was closed.
fn cells(step: &StepTimeline, axis: Axis) -> String {
    let mut cells: Vec<(char, anstyle::Style)> = vec![(' ', PLAIN); axis.width];
    for span in step.spans.iter().filter(|it| !is_closed(&it.status)) {
        let start = axis.at(span.from);
        let end = axis.at(span.to.unwrap_or(axis.to));
        let cell = match span.status.as_str() {
            "pending" => ('·', DIM),
            "in_progress" => ('█', BUSY),
            "blocked" => ('■', STUCK),
            "failed" => ('─', BAD),
            _ => ('?', PLAIN),
        };
        cells[start..=end].fill(cell);
    }
    for attempt in &step.attempts {
        let outcome = attempt.outcome.as_deref().unwrap_or_default();
        let shown = match outcome_look(outcome) {
            Look::Failed => ('✗', BAD),
            Look::Partial => (Look::Partial.mark(), BUSY),
            Look::Unknown => ('?', PLAIN),
            // The bar already shows the other outcomes.
            _ => continue,
        };
        cells[axis.at(attempt.at)] = shown;
    }
    for span in step.spans.iter().filter(|it| is_closed(&it.status)) {
        cells[axis.at(span.from)] = (mark(&span.status), colour(&span.status));
    }
    cells.truncate(cells.iter().rposition(|it| it.0 != ' ').map_or(0, |it| it + 1));
    let mut said = String::new();
    for run in cells.chunk_by(|a, b| a.1 == b.1) {
        let text: String = run.iter().map(|it| it.0).collect();
        said.push_str(&paint(run[0].1, &text));
    }
    said
}

fn is_closed(status: &str) -> bool {
    matches!(status, "completed" | "skipped")
}

#[cfg(test)]
mod tests {
    use planwatch::ops::log::timeline::{Span, Try};

    use super::*;

    fn time(text: &str) -> Time {
        text.parse().unwrap()
    }

    fn span(status: &str, from: &str, to: Option<&str>) -> Span {
        Span { status: status.to_owned(), from: time(from), to: to.map(time) }
    }

    #[test]
    fn a_timeline_fits_its_width() {
        let (one, two, three) = ("2026-11-01T00:00:00Z", "2026-11-02T00:00:00Z", "2026-11-03T00:00:00Z");
        let step = |number: &str, status: &str, spans: Vec<Span>, attempts: Vec<Try>| StepTimeline {
            step: format!("a:{number}"),
            title: "A title that is rather too long for a row".to_owned(),
            status: status.to_owned(),
            spans,
            attempts,
        };
        let tried = |outcome: &str| Try { at: time(two), by: None, outcome: Some(outcome.to_owned()) };
        let report = TimelineReport {
            plan: "a".to_owned(),
            title: "A".to_owned(),
            from: Some(time(one)),
            to: Some(time(three)),
            steps: vec![
                step(
                    "1",
                    "completed",
                    vec![span("pending", one, Some(two)), span("completed", two, None)],
                    vec![],
                ),
                step("2.5", "in_progress", vec![span("in_progress", one, None)], vec![tried("failed")]),
                step("3", "in_progress", vec![span("in_progress", one, None)], vec![tried("partial")]),
            ],
            begins_at: None,
        };
        let said = anstream::adapter::strip_str(&timeline(&report, time(three), Some(60))).to_string();
        let rows: Vec<&str> = said.lines().collect();
        assert!(rows[1..5].iter().all(|it| it.width() <= 60), "{said}");
        assert!(rows[1].contains("·····") && rows[1].contains("● "), "{said}");
        assert!(rows[2].contains("█✗█"), "{said}");
        assert!(rows[3].contains("█◑█"), "{said}");
        assert!(rows[4].contains("2026-11-01 00:00"), "{said}");
    }
}
