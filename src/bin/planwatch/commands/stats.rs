//! `stats`: how the work went, with small bars.

use std::fmt::Write;

use planwatch::ops::stats::{self, Effort, StatsReport, StatsRequest};
use planwatch::plan::time::{Time, span};

use crate::args::look::Stats;
use crate::context::Session;
use crate::failure::Failure;
use crate::output::escaped;
use crate::screens::text::fitted;
use crate::screens::{BOLD, DIM, count};
use crate::table::{Table, Yields, cell, column, paint, styled};

/// The width of the longest bar in columns.
const BAR: usize = 24;
/// The screen shows at most this many weeks, the newest ones. `--json` prints all.
const WEEKS: usize = 16;

pub(crate) fn run(session: &Session, args: Stats) -> Result<u8, Failure> {
    let context = session.context()?;
    let request = StatsRequest { plan: args.plan, since: args.since, by_agent: args.by_agent };
    let report = session.with_spinner(|| stats::stats(&context, &request))?;
    if session.output.is_json() {
        session.output.json("stats", report.to_json())?;
        return Ok(0);
    }
    let width = session.output.width;
    session.output.long(&fitted(&screen(&report, context.now, width), width))?;
    Ok(0)
}

fn screen(report: &StatsReport, now: Time, width: Option<usize>) -> String {
    let mut text = format!("{} of {} closed\n", report.closed, count(report.steps, "step"));
    let weeks: Vec<_> = report.weeks.iter().map(|it| (it.week.clone(), it.closed)).collect();
    let newest = &weeks[weeks.len().saturating_sub(WEEKS)..];
    text += &section("Steps closed, by week", newest, width);
    let times = &report.ready_to_closed;
    if let Some((median, p90)) = times.median_seconds.zip(times.p90_seconds) {
        let length = |seconds: i64| span(now.plus_seconds(seconds), now);
        let of = count(times.steps, "step");
        writeln!(text, "\n{}", paint(BOLD, "From ready to closed")).ok();
        writeln!(text, "  median {}, 90 % within {} ({of})", length(median), length(p90)).ok();
    }
    let tries: Vec<_> = report.tries.iter().map(|it| (it.tries.to_string(), it.steps)).collect();
    text += &section("Steps, by number of tries", &tries, width);
    let outcomes: Vec<_> = report.outcomes.iter().map(|it| (it.outcome.clone(), it.attempts)).collect();
    text += &section("Outcomes of attempts", &outcomes, width);
    if report.total.attempts > 0 {
        writeln!(text, "\n{}", paint(BOLD, "Work")).ok();
        writeln!(text, "  {}", effort(&report.total)).ok();
    }
    if let Some(workers) = &report.workers {
        writeln!(text, "\n{}", paint(BOLD, "By worker")).ok();
        let mut table = Table::new([column("worker", Yields::Name), column("", Yields::Text)]);
        for it in workers {
            let by = it.by.as_deref().unwrap_or("not recorded");
            table.row([cell(escaped(by)), cell(effort(&it.effort))]);
        }
        text += &table.draw(width);
    }
    if !report.waiting.is_empty() {
        writeln!(text, "\n{}", paint(BOLD, "Ready for the longest time")).ok();
        let columns =
            [column("step", Yields::Name), column("title", Yields::Text), column("", Yields::Whole)];
        let mut table = Table::new(columns);
        for it in &report.waiting {
            let since = it.since.to_string();
            let day = since.get(..10).unwrap_or(&since).to_owned();
            table.row([cell(escaped(&it.id)), cell(escaped(&it.title)), styled(DIM, format!("since {day}"))]);
        }
        text += &table.draw(width);
    }
    text
}

fn effort(of: &Effort) -> String {
    let mut text = count(of.attempts, "attempt");
    write!(text, ", {} completed", of.completed).ok();
    if of.verify_failed > 0 {
        write!(text, ", {} with a failed verify command", of.verify_failed).ok();
    }
    if of.seconds > 0 {
        write!(text, ", {} seconds", of.seconds).ok();
    }
    if of.cost > 0.0 {
        write!(text, ", cost {:.2}", of.cost).ok();
    }
    text
}

/// A heading and a bar for each row; nothing without rows.
fn section(heading: &str, rows: &[(String, usize)], width: Option<usize>) -> String {
    let most = rows.iter().map(|it| it.1).max().unwrap_or(0);
    if rows.is_empty() {
        return String::new();
    }
    let mut table =
        Table::new([column("", Yields::Name), column("", Yields::Name), column("", Yields::Whole)]);
    for (label, value) in rows {
        let bar = (value * BAR).div_ceil(most.max(1));
        table.row([cell(escaped(label)), cell(value.to_string()), styled(DIM, "█".repeat(bar))]);
    }
    format!("\n{}\n{}", paint(BOLD, heading), table.draw(width))
}
