//! `check`: every problem with its place, its line and what to do about it.

use planwatch::engine::check::{self, CheckReport, CheckRequest};
use planwatch::engine::shape::shown_path;
use planwatch::engine::write::{ChangeReport, Mode};

use crate::args::look::Check;
use crate::context::Session;
use crate::failure::Failure;
use crate::screens::change;
use crate::screens::{DIM, GOOD, problems, text};
use crate::table::paint;

pub(crate) fn run(session: &Session, args: &Check) -> Result<u8, Failure> {
    let context = session.context()?;
    let mode = if args.dry_run { Mode::DryRun } else { Mode::Write };
    let report = session.patiently(|| check::check(&context, &CheckRequest { fix: args.fix, mode }))?;
    let output = &session.output;
    if output.is_json() {
        output.json("problem-list", report.to_json())?;
        return Ok(report.exit_code());
    }
    let fixed = report.fixed.as_ref().map(fixed).unwrap_or_default();
    output.text(&format!("{fixed}{}", screen(&report)))?;
    for refused in report.fixed.iter().flat_map(|it| &it.refused) {
        output.failure(&Failure::of(&refused.error));
    }
    Ok(report.exit_code())
}

fn fixed(report: &ChangeReport) -> String {
    let said = if report.is_dry_run {
        text::diff(&report.diff)
    } else {
        report.changes.iter().map(|it| change::line("fix", it)).collect()
    };
    if said.is_empty() { format!("{}\n\n", paint(DIM, "nothing to mend")) } else { format!("{said}\n") }
}

fn screen(report: &CheckReport) -> String {
    let mut said = String::new();
    for (problem, source) in report.problems.iter().zip(&report.lines) {
        said.push_str(&problems::problem(
            problem,
            &shown_path(&report.root, &problem.path),
            source.as_deref(),
        ));
        said.push('\n');
    }
    let sum = problems::sum(report.n_errors(), report.problems.len() - report.n_errors());
    let fixable = report.problems.iter().filter(|it| it.is_fixable).count();
    if sum.is_empty() {
        return format!("{}\n", paint(GOOD, "no problems"));
    }
    let fix = match fixable {
        0 => String::new(),
        n => format!("; `planwatch check --fix` mends {n}"),
    };
    format!("{said}{sum}{fix}\n")
}
