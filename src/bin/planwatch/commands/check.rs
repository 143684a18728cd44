//! `check`: prints every problem with its position, the line of the file, and what to do about the problem.

use planwatch::api::context::Context;
use planwatch::ops::check::{self, CheckReport, CheckRequest};
use planwatch::store::transaction::{ChangeReport, Mode};

use crate::args::look::Check;
use crate::context::Session;
use crate::failure::Failure;
use crate::output::Reader;
use crate::screens::{DIM, GOOD, count, problems, text};
use crate::table::paint;

pub(crate) fn run(session: &Session, args: &Check) -> Result<u8, Failure> {
    let workspace = session.workspace_to_check()?;
    let plans = session.plans_dir(&workspace)?;
    let context = session.context_in(&workspace, &plans)?;
    let mode = if args.dry_run { Mode::DryRun } else { Mode::Write };
    let request = CheckRequest { fix: args.fix, git: args.git, mode };
    let report = session.with_spinner(|| check::check(&context, &request))?;
    let output = &session.output;
    if output.is_json() {
        output.json("problem-list", report.to_json())?;
    } else {
        let fixable = if report.problems.is_empty() { 0 } else { fixable(session, &context, args)? };
        match &report.fixed {
            Some(fix) if fix.is_dry_run => output.long(&fixed(fix))?,
            Some(fix) => output.report(&fixed(fix))?,
            None => Reader::There,
        };
        output.long(&screen(&report, fixable, output.width))?;
    }
    if !output.is_json() {
        report.hints.iter().for_each(|it| output.hint(it));
    }
    for refused in report.fixed.iter().flat_map(|it| &it.refused) {
        output.failure(&Failure::of(&refused.error));
    }
    Ok(report.exit_code())
}

/// How many files `--fix` would fix; 0 if `--fix` was given.
fn fixable(session: &Session, context: &Context, args: &Check) -> Result<usize, Failure> {
    if args.fix {
        return Ok(0);
    }
    let trial = CheckRequest { fix: true, git: false, mode: Mode::DryRun };
    let trial = session.with_spinner(|| check::check(context, &trial))?;
    Ok(trial.fixed.as_ref().map_or(0, n_fixed))
}

fn n_fixed(report: &ChangeReport) -> usize {
    report.changes.iter().filter(|it| it.was_written).count()
}

fn screen(report: &CheckReport, fixable: usize, width: Option<usize>) -> String {
    let all = report.all();
    let mut said = String::new();
    for (path, problem, source) in &all {
        said.push_str(&problems::problem(problem, path, source.as_deref(), width));
        said.push('\n');
    }
    let sum = problems::sum(report.n_errors(), all.len() - report.n_errors());
    if sum.is_empty() {
        return format!("{}\n", paint(GOOD, "no problems"));
    }
    let fix = match fixable {
        0 => String::new(),
        n => format!("; `planwatch check --fix` fixes {}", count(n, "file")),
    };
    format!("{said}{sum}{fix}\n")
}

/// The fixes, as a diff.
fn fixed(report: &ChangeReport) -> String {
    let n = n_fixed(report);
    if n == 0 {
        return format!("{}\n\n", paint(DIM, "nothing to fix"));
    }
    let said = if report.is_dry_run { "would fix" } else { "fixed" };
    format!("{}\n{said} {}\n\n", text::diff(&report.diff), count(n, "file"))
}
