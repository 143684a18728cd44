//! `status`: what needs attention, who works on what, what is ready, what was finished.

use std::fmt::Write;

use planwatch::api::context::Context;
use planwatch::api::views::{Reason, StepShape, shown_path};
use planwatch::ops::list::{self, ListReport, ListRequest};
use planwatch::ops::status::{self, Attention, Finished, OnBranch, Standing, StatusReport, StatusRequest};
use planwatch::plan::time::Time;
use planwatch::serve::ipc::client::Client;

use crate::args::look::Status;
use crate::commands::list::{after_all, none_open};
use crate::commands::welcome;
use crate::context::{self, Session};
use crate::failure::Failure;
use crate::output::escaped;
use crate::screens::text::{fitted, rows};
use crate::screens::{
    BAD, BOLD, BUSY, DIM, PLAIN, STUCK, ago, bar, colour, count, for_next, mark, problems, short_state,
    steps, to_type, typed,
};
use crate::table::{Cell, Table, Yields, cell, column, paint, styled};

/// Where there is no terminal, each section has at most this many lines, except with `--all`, `--json` or `--markdown`.
const LINES: usize = 10;
/// On a terminal, a section shows at least this many of its lines. It shows fewer only if the whole output then fits on the
/// terminal.
const LEAST: usize = 3;

pub(crate) fn run(session: &Session, args: &Status) -> Result<u8, Failure> {
    let context = session.context()?;
    let request = &StatusRequest { days: args.days, branches: args.branches };
    let output = &session.output;
    let (width, height, more) = (output.width, output.height, args.more());
    let room = Room { width, height, more, plans: context.root_name() };
    let is_screen = !output.is_json() && !args.markdown;
    let most = if is_screen { room.most() } else { usize::MAX };
    let report = session.with_spinner(|| status::with_most(&context, request, most))?;
    if !is_screen {
        session.answer("status", || report.to_json(), |_| markdown(&report))?;
    } else {
        let closed = if report.plans.is_empty() { n_plans(&context)? } else { 0 };
        let client = Client::connect(&context.plans, &context::socket_dirs());
        let http = client.and_then(|mut it| it.status()).and_then(|it| it.http);
        let http = http.map(|it| format!("\n{}\n", paint(DIM, &format!("the daemon answers on {it}"))));
        let below = http.unwrap_or_default();
        output.long(&screen(&report, closed, context.now, &room, &below))?;
    }
    Ok(0)
}

/// How many plans there are, including closed and archived ones.
fn n_plans(context: &Context) -> Result<usize, Failure> {
    let all = ListRequest { all: true, ..ListRequest::default() };
    Ok(match list::list(context, &all)? {
        ListReport::Plans { plans, .. } => plans.len(),
        ListReport::Steps { .. } => 0,
    })
}

/// How much a screen may show.
struct Room {
    width: Option<usize>,
    /// `None` without a terminal.
    height: Option<usize>,
    /// The command that shows the lines that do not fit; `None` if everything is to be shown.
    more: Option<String>,
    /// The name of the plans directory.
    plans: String,
}

impl Room {
    /// The maximum number of lines in a section.
    fn most(&self) -> usize {
        if self.more.is_none() { usize::MAX } else { self.height.unwrap_or(0).max(LINES) }
    }

    /// How many of its `wanted` lines each section shows, if the rest of the screen takes `others` lines.
    fn shares(&self, wanted: &[usize], others: usize) -> Vec<usize> {
        match (&self.more, self.height) {
            (None, _) => wanted.to_vec(),
            (Some(_), None) => wanted.iter().map(|it| *it.min(&LINES)).collect(),
            (Some(_), Some(height)) => shares(wanted, height.saturating_sub(others)),
        }
    }
}

/// Divides lines among sections. Each section that is cut gets the same number of lines, or one more.
///
/// A section that is cut needs another line, which says how many are missing.
fn shares(wanted: &[usize], lines: usize) -> Vec<usize> {
    let used = |shares: &[usize]| {
        shares.iter().zip(wanted).map(|(it, wanted)| it + usize::from(it < wanted)).sum::<usize>()
    };
    let at_least = |least: usize| wanted.iter().map(|it| *it.min(&least)).collect::<Vec<_>>();
    // Each section gets `LEAST` lines at first, or fewer if that makes everything fit.
    let fits = |least: &usize| used(&at_least(*least)) <= lines;
    let mut shares = at_least((1..=LEAST).rev().find(fits).unwrap_or(LEAST));
    loop {
        let cut = (0..shares.len()).filter(|at| shares[*at] < wanted[*at]);
        let Some(least) = cut.min_by_key(|at| shares[*at]) else { return shares };
        shares[least] += 1;
        if used(&shares) > lines {
            shares[least] -= 1;
            return shares;
        }
    }
}

fn screen(report: &StatusReport, closed: usize, now: Time, room: &Room, last: &str) -> String {
    let width = room.width;
    let troubles = troubles(report, room);
    if report.plans.is_empty() && closed == 0 {
        return fitted(&format!("{}{troubles}", welcome::screen()), width) + last;
    }
    let sum = if report.plans.is_empty() { none_open(closed) } else { sum(report) };
    let above = fitted(&sum, width);
    let below = fitted(&format!("{troubles}\n{}", what_next(report)), width) + last;
    let mut table = Table::new([
        column("", Yields::Nothing),
        column("", Yields::Name),
        column("", Yields::Text),
        column("", Yields::Extra),
        column("", Yields::Whole),
    ])
    .indented(2);
    let parts = parts(report, now);
    let wanted: Vec<_> = parts.iter().map(|it| it.total).collect();
    // Each section has a heading below an empty line, and the prompt needs a line.
    let others = rows(&above, width) + rows(&below, width) + 2 * parts.len() + 1;
    for (Part { name, lines, total }, shown) in parts.into_iter().zip(room.shares(&wanted, others)) {
        let rest = total.saturating_sub(shown);
        table.line(format!("\n{}", paint(BOLD, name)));
        lines.into_iter().take(shown).for_each(|it| table.row(it));
        if let Some(more) = room.more.as_ref().filter(|_| rest > 0) {
            table.line(paint(DIM, &format!("  and {rest} more: {more}")));
        }
    }
    let parts = if table.is_empty() { String::new() } else { table.draw(width) };
    above + &parts + &below
}

/// The progress of all open plans in one line, and the number of drafts.
fn sum(report: &StatusReport) -> String {
    let (closed, total) = report.n_steps(|it| !status::is_draft(it));
    let n_open = report.plans.len() - report.n_drafts();
    let sum = format!("{}  {}", count(n_open, "open plan"), bar(closed, total));
    let incomplete = report.plans.iter().filter(|it| status::is_draft(it) && it.incomplete).count();
    match (report.n_drafts(), incomplete) {
        (0, _) => format!("{sum}\n"),
        (n, 0) => format!("{sum}  {}\n", count(n, "draft")),
        (n, incomplete) => format!("{sum}  {} ({incomplete} incomplete)\n", count(n, "draft")),
    }
}

struct Part {
    name: &'static str,
    /// The lines that were loaded: the first ones, or all.
    lines: Vec<Vec<Cell>>,
    total: usize,
}

fn parts(report: &StatusReport, now: Time) -> Vec<Part> {
    let attention = report.attention.iter().map(|it| attention(it, now)).collect();
    let standing = |it: &Standing, who: &str| line(short_state(&it.step), &it.step, who, it.since, now);
    let working = report.in_progress.iter().map(|it| standing(it, steps::worker(&it.step))).collect();
    let more = |n: usize| if n == 0 { String::new() } else { format!("+{n} ready") };
    let ready = report.ready.iter().map(|it| standing(it, &more(it.more_ready))).collect();
    let finished = report
        .finished
        .iter()
        .map(|it| line(short_state(&it.step), &it.step, by(it), Some(it.at), now))
        .collect();
    let branches: Vec<_> = report.branches.iter().flatten().map(|it| on_branch(it, now)).collect();
    let (totals, n_branches) = (report.totals, branches.len());
    let parts = [
        ("Needs attention", attention, totals.attention),
        ("In progress", working, totals.in_progress),
        ("Ready", ready, totals.ready),
        ("Finished recently", finished, totals.finished),
        ("On other branches", branches, n_branches),
    ];
    let parts = parts.into_iter().filter(|it| it.2 > 0);
    parts.map(|(name, lines, total)| Part { name, lines, total }).collect()
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

fn on_branch(it: &OnBranch, now: Time) -> Vec<Cell> {
    let OnBranch { id, title, there, branch, more, at, by, .. } = it;
    let more = if *more > 0 { format!(" and {more} more") } else { String::new() };
    vec![
        styled(colour(there), format!("{} {}", mark(there), there.replace('_', " "))),
        cell(escaped(id)),
        cell(escaped(title)),
        styled(DIM, escaped(&format!("on {branch}{more}, {by}")).into_owned()),
        styled(DIM, ago(now, *at)),
    ]
}

fn attention(it: &Attention, now: Time) -> Vec<Cell> {
    let style = match it.reason {
        Reason::Failed | Reason::Faulty | Reason::Overdue => BAD,
        Reason::Blocked => STUCK,
        Reason::ToConfirm | Reason::NotVerified | Reason::Lapsed => BUSY,
        Reason::Stale => PLAIN,
    };
    let state = styled(style, format!("{} {}", mark(&it.step.status), it.reason.word()));
    // The text does not repeat the reason.
    let last = it.last.as_deref().unwrap_or_default();
    let last = last.strip_prefix(it.reason.word()).and_then(|it| it.strip_prefix(": ")).unwrap_or(last);
    let last = if it.reason == Reason::Faulty { it.step.problems.join(", ") } else { last.to_owned() };
    let last = if it.reason == Reason::Overdue { due(&it.step) } else { last };
    line(state, &it.step, &last, it.since, now)
}

/// When an overdue step was due. For a step without a due day of its own, the text says that the plan is overdue.
fn due(step: &StepShape) -> String {
    step.due.map_or_else(|| "its plan is overdue".to_owned(), |it| format!("due {it}"))
}

fn by(it: &Finished) -> &str {
    it.by.as_deref().unwrap_or_default()
}

fn troubles(report: &StatusReport, room: &Room) -> String {
    let more = room.more.as_deref();
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
        writeln!(said, "\n{} stored separately:", count(report.kept.len(), "file version")).ok();
        let shown = if more.is_some() { LEAST } else { report.kept.len() };
        // The paths of the project's saves do not begin in the plans directory.
        let path = |it: &String| match it.strip_prefix("../") {
            Some(beside) => beside.to_owned(),
            None if it.starts_with('/') => it.clone(),
            None => shown_path(&room.plans, it),
        };
        said.extend(report.kept.iter().take(shown).map(|it| format!("  {}\n", escaped(&path(it)))));
        let rest = report.kept.len().saturating_sub(shown);
        if let Some(more) = more.filter(|_| rest > 0) {
            said.push_str(&paint(DIM, &format!("  and {rest} more: {more}\n")));
        }
    }
    said
}

fn what_next(report: &StatusReport) -> String {
    if report.plans.is_empty() {
        return after_all();
    }
    // The step that `next` names.
    if let Some(step) = report.ready.first() {
        return to_type(&for_next(&step.step));
    }
    // `done` would refuse a step that was claimed in another working tree or on another machine.
    if let Some(step) = report.in_progress.iter().find(|it| it.held.is_none()) {
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

/// The report as Markdown. It contains dates instead of ages, because `yesterday` becomes wrong in a text that is stored.
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
    let plan = |it: &planwatch::api::views::PlanShape| {
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
        "Finished recently",
        report.finished.iter().map(|it| step(&it.step, dated(by(it), Some(it.at)))).collect(),
    );
    let sum = problems::sum(report.n_errors, report.n_warnings);
    part("Problems", if sum.is_empty() { Vec::new() } else { vec![format!("{sum}: `planwatch check`")] });
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_share_the_lines_of_a_screen() {
        for (wanted, lines, expected) in [
            (&[2, 3][..], 20, &[2, 3][..]),
            (&[500, 2, 500, 0], 24, &[10, 2, 10, 0]),
            (&[500, 500], 9, &[4, 3]),
            // If only one line had to be left out, it is shown instead of the line with the number of missing lines.
            (&[5], 5, &[5]),
            (&[6], 5, &[4]),
            (&[500, 500, 500], 9, &[2, 2, 2]),
            (&[500, 500, 500], 7, &[2, 1, 1]),
            (&[500, 500, 500], 1, &[3, 3, 3]),
        ] {
            let shares = shares(wanted, lines);
            assert_eq!(shares, expected, "{wanted:?} in {lines}");
        }
    }

    #[test]
    fn without_a_terminal_each_section_has_a_fixed_number_of_lines() {
        let room = |more: Option<&str>| Room {
            width: None,
            height: None,
            more: more.map(str::to_owned),
            plans: "plans".to_owned(),
        };
        assert_eq!(room(Some("more")).shares(&[500, 7], 99), [LINES, 7]);
        assert_eq!(room(None).shares(&[500, 7], 99), [500, 7]);
    }
}
