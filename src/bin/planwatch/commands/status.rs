//! `status`: what needs attention, who works on what, what is ready, what was finished.

use std::fmt::Write;

use planwatch::engine::context::Context;
use planwatch::engine::list::{self, ListReport, ListRequest};
use planwatch::engine::shape::StepShape;
use planwatch::engine::status::{self, Attention, Finished, Reason, Standing, StatusReport, StatusRequest};
use planwatch::plan::time::Time;
use planwatch::serve::client::Client;

use crate::args::look::Status;
use crate::commands::list::{after_all, none_open};
use crate::commands::welcome;
use crate::context::{self, Session};
use crate::failure::Failure;
use crate::output::escaped;
use crate::screens::text::fitted;
use crate::screens::{
    BAD, BOLD, BUSY, DIM, PLAIN, STUCK, ago, bar, colour, count, for_next, mark, problems, short_state,
    steps, to_type, typed,
};
use crate::table::{Cell, Table, Yields, cell, column, paint, styled};

/// A terminal shows this many lines of each part; a pipe all.
const LINES: usize = 10;

pub(crate) fn run(session: &Session, args: &Status) -> Result<u8, Failure> {
    let context = session.context()?;
    let report = session.patiently(|| status::status(&context, &StatusRequest { days: args.days }))?;
    let output = &session.output;
    if output.is_json() {
        output.json("status", report.to_json())?;
    } else if args.markdown {
        output.text(&markdown(&report))?;
    } else {
        let closed = if report.plans.is_empty() { n_plans(&context)? } else { 0 };
        let mut screen = screen(&report, closed, context.now, output.width);
        let client = Client::connect(&context.plans, &context::homes());
        let http = client.and_then(|mut it| it.status()).and_then(|it| it.http);
        screen.extend(http.map(|it| format!("\n{}\n", paint(DIM, &format!("answers on {it}")))));
        output.text(&screen)?;
    }
    Ok(0)
}

/// How many plans there are, closed and archived ones among them.
fn n_plans(context: &Context) -> Result<usize, Failure> {
    let all = ListRequest { all: true, ..ListRequest::default() };
    Ok(match list::list(context, &all)? {
        ListReport::Plans { plans, .. } => plans.len(),
        ListReport::Steps { .. } => 0,
    })
}

fn screen(report: &StatusReport, closed: usize, now: Time, width: Option<usize>) -> String {
    if report.plans.is_empty() && closed == 0 {
        return fitted(&format!("{}{}", welcome::screen(), troubles(report)), width);
    }
    let mut table = Table::new([
        column("", Yields::Nothing),
        column("", Yields::Name),
        column("", Yields::Text),
        column("", Yields::Extra),
        column("", Yields::Whole),
    ])
    .indented(2);
    for (name, lines, more) in parts(report, now) {
        let shown = if width.is_some() { LINES } else { lines.len() };
        let rest = lines.len().saturating_sub(shown);
        table.line(format!("\n{}", paint(BOLD, name)));
        lines.into_iter().take(shown).for_each(|it| table.row(it));
        if rest > 0 {
            table.line(paint(DIM, &format!("  {rest} more: {more}")));
        }
    }
    let parts = if table.is_empty() { String::new() } else { table.draw(width) };
    let sum = if report.plans.is_empty() { none_open(closed) } else { sum(report) };
    let below = format!("{}\n{}", troubles(report), what_next(report));
    fitted(&sum, width) + &parts + &fitted(&below, width)
}

/// All open plans in one line.
fn sum(report: &StatusReport) -> String {
    let total = report.plans.iter().map(|it| it.steps_total).sum();
    let closed = report.plans.iter().map(|it| it.steps_completed + it.steps_skipped).sum();
    format!("{}  {}\n", count(report.plans.len(), "open plan"), bar(closed, total))
}

type Part = (&'static str, Vec<Vec<Cell>>, &'static str);

fn parts(report: &StatusReport, now: Time) -> Vec<Part> {
    let attention = report.attention.iter().map(|it| attention(it, now)).collect();
    let standing = |it: &Standing, who: &str| line(short_state(&it.step), &it.step, who, it.since, now);
    let working = report.in_progress.iter().map(|it| standing(it, steps::worker(&it.step))).collect();
    let ready = report.ready.iter().map(|it| standing(it, "")).collect();
    let finished = report
        .finished
        .iter()
        .map(|it| line(short_state(&it.step), &it.step, by(it), Some(it.at), now))
        .collect();
    let parts: Vec<Part> = vec![
        ("Needs attention", attention, "planwatch status --json"),
        ("In progress", working, "planwatch list PLAN --status in_progress"),
        ("Ready", ready, "planwatch next"),
        ("Finished lately", finished, "planwatch list PLAN --status completed"),
    ];
    parts.into_iter().filter(|(_, lines, _)| !lines.is_empty()).collect()
}

fn line(state: Cell, step: &StepShape, said: &str, at: Option<Time>, now: Time) -> Vec<Cell> {
    vec![
        state,
        cell(escaped(&step.id)),
        cell(escaped(&step.title)),
        styled(DIM, escaped(said)),
        styled(DIM, ago(now, at)),
    ]
}

fn attention(it: &Attention, now: Time) -> Vec<Cell> {
    let style = match it.reason {
        Reason::Failed | Reason::Faulty => BAD,
        Reason::Blocked => STUCK,
        Reason::ToConfirm | Reason::NotVerified | Reason::Lapsed => BUSY,
        Reason::Stale => PLAIN,
    };
    let state = styled(style, format!("{} {}", mark(&it.step.status), it.reason.word()));
    // The reason says it already.
    let last = it.last.as_deref().unwrap_or_default();
    let last = last.strip_prefix(it.reason.word()).and_then(|it| it.strip_prefix(": ")).unwrap_or(last);
    let last = if it.reason == Reason::Faulty { it.step.problems.join(", ") } else { last.to_owned() };
    line(state, &it.step, &last, it.since, now)
}

fn by(it: &Finished) -> &str {
    it.by.as_deref().unwrap_or_default()
}

fn troubles(report: &StatusReport) -> String {
    let mut said = String::new();
    if report.n_errors + report.n_warnings > 0 {
        let style = if report.n_errors > 0 { BAD } else { colour("in_progress") };
        let sum = problems::sum(report.n_errors, report.n_warnings);
        writeln!(said, "\n{} in the files: planwatch check", paint(style, &sum)).ok();
    }
    if let Some(interrupted) = &report.interrupted {
        writeln!(said, "\n{}", escaped(&interrupted.sentence())).ok();
    }
    if !report.kept.is_empty() {
        writeln!(said, "\n{} kept beside the files:", count(report.kept.len(), "version")).ok();
        said.extend(report.kept.iter().map(|it| format!("  {}\n", escaped(it))));
    }
    said
}

fn what_next(report: &StatusReport) -> String {
    if report.plans.is_empty() {
        return after_all();
    }
    // The one that `next` names.
    if let Some(step) = report.ready.first() {
        return to_type(&for_next(&step.step));
    }
    if let Some(step) = report.in_progress.first() {
        return to_type(&[(
            format!("planwatch done {}", typed(&step.step.id)),
            "to complete what is in progress",
        )]);
    }
    if let Some(it) = report.attention.first() {
        return to_type(&[(format!("planwatch show {}", typed(&it.step.id)), "to see what happened")]);
    }
    to_type(&[
        ("planwatch next".to_owned(), "to see why nothing is ready"),
        ("planwatch list".to_owned(), "to list the plans"),
    ])
}

/// Dates stand in it, because a text that is kept must not say `yesterday`.
fn markdown(report: &StatusReport) -> String {
    let plain = |it: &str| escaped(it).into_owned();
    let mut text = "# Status\n".to_owned();
    if report.plans.is_empty() {
        text.push_str("\nNo plan is open.\n");
    }
    let mut part = |name: &str, lines: Vec<String>| {
        if !lines.is_empty() {
            writeln!(text, "\n## {name}\n\n{}", lines.join("\n")).ok();
        }
    };
    let plan = |it: &planwatch::engine::shape::PlanShape| {
        format!(
            "- `{}` {} ({}/{})",
            plain(&it.id),
            plain(&it.title),
            it.steps_completed + it.steps_skipped,
            it.steps_total
        )
    };
    let step = |it: &StepShape, more: String| {
        format!("- `{}` {}{}{more}", plain(&it.id), plain(&it.title), if more.is_empty() { "" } else { ": " })
    };
    let dated = |said: &str, at: Option<Time>| {
        let day = at.map(|it| it.to_string().chars().take(10).collect()).unwrap_or_default();
        let parts = [plain(said), day];
        parts.into_iter().filter(|it| !it.is_empty()).collect::<Vec<_>>().join(", ")
    };
    part("Plans", report.plans.iter().map(plan).collect());
    let attention = |it: &Attention| {
        step(
            &it.step,
            dated(
                &format!(
                    "{}{}",
                    it.reason.word(),
                    it.last.as_deref().map(|it| format!(" ({it})")).unwrap_or_default()
                ),
                it.since,
            ),
        )
    };
    part("Needs attention", report.attention.iter().map(attention).collect());
    part(
        "In progress",
        report
            .in_progress
            .iter()
            .map(|it| step(&it.step, dated(steps::worker(&it.step), it.since)))
            .collect(),
    );
    part("Ready", report.ready.iter().map(|it| step(&it.step, String::new())).collect());
    part(
        "Finished lately",
        report.finished.iter().map(|it| step(&it.step, dated(by(it), Some(it.at)))).collect(),
    );
    let sum = problems::sum(report.n_errors, report.n_warnings);
    part("Problems", if sum.is_empty() { Vec::new() } else { vec![format!("{sum}: `planwatch check`")] });
    text
}
