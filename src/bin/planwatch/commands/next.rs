//! `next`: the step to do now, why, and what to type.

use std::fmt::Write;
use std::mem::ManuallyDrop;

use planwatch::ops::next::{self, Candidate, NextReport, NextRequest};
use planwatch::plan::rules::State;
use planwatch::plan::time::Time;

use crate::args::look::Next;
use crate::context::Session;
use crate::failure::Failure;
use crate::output::escaped;
use crate::screens::text::fitted;
use crate::screens::{BOLD, DIM, ago, for_next, heading, state, steps, to_type, typed};
use crate::table::{Table, Yields, cell, column, paint, styled};

/// The maximum number of other candidates on the screen. `--json` prints all of them.
const ALSO: usize = 9;

pub(crate) fn run(session: &Session, args: Next) -> Result<u8, Failure> {
    let context = session.context()?;
    let most = (!session.output.is_json()).then_some(1 + ALSO);
    let request = NextRequest { plan: args.plan, most };
    // The answer is never freed: the process ends right after this, and freeing a long answer takes longer than writing
    // it.
    let report = ManuallyDrop::new(session.with_spinner(|| next::next(&context, &request))?);
    session.answer("next", || report.to_json(), |width| screen(&report, context.now, width))?;
    Ok(report.exit_code())
}

fn screen(report: &NextReport, now: Time, width: Option<usize>) -> String {
    let Some(step) = &report.step else { return fitted(&nothing(report), width) };
    let mut text = heading(&step.id, &step.title);
    let mut facts = vec![state(step).painted()];
    facts.extend(step.phase.as_deref().map(|it| format!("phase {}", escaped(it))));
    facts.extend((step.tasks_total > 0).then(|| format!("tasks {}", steps::tasks(step))));
    writeln!(text, "{}", facts.join(&paint(DIM, " · "))).ok();
    writeln!(text, "{}", paint(DIM, &escaped(&step.path))).ok();
    writeln!(text, "why: {}\n", escaped(&report.why)).ok();
    text.push_str(&to_type(&for_next(step)));
    let others = report.candidates.as_deref().unwrap_or_default();
    let others: Vec<_> = others.iter().filter(|it| it.step.id != step.id).collect();
    fitted(&text, width) + &also(&others, report.n_candidates.saturating_sub(1), now, width)
}

/// The next steps of other plans; there are `n_others` in all.
fn also(others: &[&Candidate], n_others: usize, now: Time, width: Option<usize>) -> String {
    if others.is_empty() {
        return String::new();
    }
    let mut table =
        Table::new([column("", Yields::Name), column("", Yields::Text), column("", Yields::Whole)])
            .indented(2);
    for it in others.iter().take(ALSO) {
        table.row([
            cell(escaped(&it.step.id)),
            cell(escaped(&it.step.title)),
            styled(DIM, ago(now, it.step.last_activity)),
        ]);
    }
    if n_others > ALSO {
        table.line(paint(DIM, &format!("  and {} more: planwatch status --all", n_others - ALSO)));
    }
    format!("\n{}\n{}", paint(BOLD, "Also ready"), table.draw(width))
}

fn nothing(report: &NextReport) -> String {
    let plan = report.plan.as_deref().map(typed);
    let command = |verb: &str| {
        plan.as_deref().map_or_else(|| format!("planwatch {verb}"), |it| format!("planwatch {verb} {it}"))
    };
    let status = ("planwatch status".to_owned(), "to see what needs attention");
    let list = (command("list"), if plan.is_some() { "to list its steps" } else { "to list the plans" });
    let new = ("planwatch new TITLE STEP…".to_owned(), "to create a plan");
    let (said, commands) = match (report.state, &plan) {
        (State::Next | State::Waiting | State::Blocked, None) => ("Nothing is ready", vec![status, list]),
        (State::Next | State::Waiting | State::Blocked, Some(_)) => ("Nothing is ready", vec![list, status]),
        (State::Draft, Some(_)) => {
            ("No step can be claimed", vec![(command("start"), "to make the plan active")])
        }
        (State::Draft, None) => (
            "No step can be claimed",
            vec![("planwatch start PLAN".to_owned(), "to make a plan active"), list],
        ),
        (State::Complete, _) => {
            ("All steps are done", vec![new, ("planwatch list --all".to_owned(), "to list every plan")])
        }
        (State::Abandoned, Some(_)) if report.is_archived => (
            "No step can be claimed",
            vec![(format!("{} --restore", command("archive")), "to restore the plan")],
        ),
        (State::Abandoned, Some(_)) => {
            ("No step can be claimed", vec![(command("reopen"), "to make the plan active again")])
        }
        // Candidates are listed for a program. It gets its steps through its plans.
        (State::Empty, Some(_)) if report.candidates.is_some() => {
            ("There are no steps", vec![(command("list"), "to list its plans")])
        }
        (State::Empty, Some(_)) => {
            ("There are no steps", vec![(format!("{} TITLE", command("add")), "to add a step")])
        }
        (State::Abandoned | State::Empty, None) => ("There is nothing to do", vec![new, list]),
    };
    format!("{said}: {}\n\n{}", escaped(&report.why), to_type(&commands))
}
