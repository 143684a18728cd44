//! `list`: the plans, or the steps of one. `steps`: the steps of a plan. `stale`: the stale steps.

use std::mem::ManuallyDrop;

use planwatch::api::context::Context;
use planwatch::api::sort::Sort;
use planwatch::api::views::{PlanShape, Reason, StepShape};
use planwatch::ops::list::{self, ListReport, ListRequest};
use planwatch::ops::stale::{self, StaleRequest};
use planwatch::plan::model::PlanKind;
use planwatch::text::typed::quoted;

use crate::args::look::{List, Stale, Steps};
use crate::commands::welcome;
use crate::context::Session;
use crate::failure::Failure;
use crate::output::escaped;
use crate::screens::text::fitted;
use crate::screens::{DIM, bar_of, count, heading, plans, steps as step_table, to_type, typed};
use crate::table::{Table, Yields, cell, column, paint, styled};

pub(crate) fn run(session: &Session, args: List) -> Result<u8, Failure> {
    let List { plan, status, program, tag, stale, archived, all, sort } = args;
    let sort = sort.map(|it| Sort::read(&it)).transpose()?.unwrap_or_default();
    let request =
        ListRequest { plan, status, program, tag, stale, archived, all, sort, ..ListRequest::default() };
    print(session, &request)
}

pub(crate) fn steps(session: &Session, args: Steps) -> Result<u8, Failure> {
    let Steps { plan, status } = args;
    print(session, &ListRequest { plan: Some(plan), status, ..ListRequest::default() })
}

pub(crate) fn stale(session: &Session, args: Stale) -> Result<u8, Failure> {
    let seconds = args.days.as_deref().map(stale::read_length).transpose()?;
    let context = session.context()?;
    let request = StaleRequest { plan: args.plan, seconds };
    let report = session.with_spinner(|| stale::stale(&context, &request))?;
    if session.output.is_json() {
        session.output.json("stale-list", report.to_json())?;
        return Ok(0);
    }
    let width = session.output.width;
    if report.steps.is_empty() {
        session.output.text("No step is stale.\n")?;
        return Ok(0);
    }
    let mut table =
        Table::new([column("step", Yields::Name), column("title", Yields::Text), column("", Yields::Whole)]);
    for it in &report.steps {
        table.row([
            cell(escaped(&it.step.id)),
            cell(escaped(&it.step.title)),
            styled(DIM, escaped(&it.why).into_owned()),
        ]);
    }
    session.output.text(&fitted(&table.draw(width), width))?;
    Ok(0)
}

fn print(session: &Session, request: &ListRequest) -> Result<u8, Failure> {
    let context = session.context()?;
    // The answer is never freed: the process ends right after this, and freeing a long answer takes longer than writing
    // it.
    let report = ManuallyDrop::new(session.with_spinner(|| list::list(&context, request))?);
    if session.output.is_json() {
        session.output.json(report.kind(), report.to_json())?;
        return Ok(0);
    }
    let width = session.output.width;
    let text = match &*report {
        ListReport::Plans { plans, hidden } if plans.is_empty() => no_plans(request, *hidden),
        ListReport::Plans { plans, hidden } => {
            let table = if request.sort.is_given() {
                plans::sorted_table(plans, context.now)
            } else {
                plans::table(plans, context.now)
            };
            table.draw(width) + &more(request, *hidden) + &to_join(request, plans)
        }
        ListReport::Steps { plan, steps } => steps_of(&context, (plan, steps), width)?,
    };
    session.output.long(&fitted(&text, width))?;
    Ok(0)
}

/// The line that tells how many more plans `--all` would list. Empty if there are none.
fn more(request: &ListRequest, hidden: usize) -> String {
    let program = request.plan.as_deref().map(|it| format!("{} ", typed(it))).unwrap_or_default();
    match hidden {
        0 => String::new(),
        n => format!("\n{}\n", paint(DIM, &format!("{n} more: planwatch list {program}--all"))),
    }
}

/// The command that adds a plan to the listed program. Empty if the request names no program.
fn to_join(request: &ListRequest, plans: &[PlanShape]) -> String {
    let Some(asked) = &request.plan else { return String::new() };
    let program = plans.iter().find(|it| it.kind == PlanKind::Program).map(|it| it.id.as_str());
    let of_child = || plans.iter().find_map(|it| it.program.as_deref());
    format!("\n{}", to_type(&[joining(program.or_else(of_child).unwrap_or(asked))]))
}

fn joining(program: &str) -> (String, &'static str) {
    (format!("planwatch new TITLE --program {}", quoted(program)), "to put a plan into it")
}

fn no_plans(request: &ListRequest, hidden: usize) -> String {
    let is_filtered =
        !request.status.is_empty() || request.program.is_some() || request.tag.is_some() || request.stale;
    if let Some(program) = &request.plan {
        if is_filtered {
            let all = (format!("planwatch list {}", typed(program)), "to list all plans of the program");
            return format!("No plan matches.\n{}", to_type(&[all]));
        }
        if hidden > 0 {
            let all = (format!("planwatch list {} --all", typed(program)), "to list them");
            return format!("All plans of this program are archived.\n{}", to_type(&[all]));
        }
        return format!("No plan belongs to this program yet.\n{}", to_type(&[joining(program)]));
    }
    let open = ("planwatch list".to_owned(), "to list the open plans");
    let all = ("planwatch list --all".to_owned(), "to list every plan");
    match (is_filtered, hidden) {
        (true, _) => format!("No plan matches.\n{}", to_type(&[open, all])),
        (false, _) if request.archived => format!("No plan is archived.\n{}", to_type(&[open])),
        (false, 0) => welcome::screen(),
        (false, n) => format!("{}{}", none_open(n), after_all()),
    }
}

/// The sentence for plans that are all closed or archived.
pub(crate) fn none_open(n: usize) -> String {
    format!("No plan is open; {} closed or archived.\n", are(n))
}

/// What to type when no plan is open.
pub(crate) fn after_all() -> String {
    to_type(&[
        ("planwatch list --all".to_owned(), "to list every plan"),
        ("planwatch new TITLE STEP…".to_owned(), "to create a plan"),
    ])
}

fn are(n: usize) -> String {
    format!("{} {}", count(n, "plan"), if n == 1 { "is" } else { "are" })
}

fn steps_of(
    context: &Context,
    (plan, steps): (&PlanShape, &[StepShape]),
    width: Option<usize>,
) -> Result<String, Failure> {
    let stand = plans::painted_status(plan);
    let head = format!("{}{}  {stand}\n\n", heading(&plan.id, &plan.title), bar_of(plan));
    let id = typed(&plan.id);
    if steps.is_empty() {
        let check = ("planwatch check".to_owned(), "to see the error");
        let (said, commands) = match plan.steps_total {
            0 if plan.attention == Some(Reason::Faulty) => ("plan.md has an error.", vec![check]),
            0 if plan.kind == PlanKind::Program => {
                ("The program has no steps of its own.", vec![joining(&plan.id)])
            }
            0 => ("The plan has no steps yet.", vec![(format!("planwatch add {id} TITLE"), "to add one")]),
            _ => ("No step matches.", vec![(format!("planwatch list {id}"), "to list all of them")]),
        };
        return Ok(format!("{head}{said}\n{}", to_type(&commands)));
    }
    let rest = plan.steps_total.saturating_sub(steps.len());
    let rest = match rest {
        0 => String::new(),
        n if plan.kind == PlanKind::Program => {
            let list = format!("planwatch list --program {}", escaped(&id));
            format!("\n{}\n", paint(DIM, &format!("{n} more in the plans of the program: {list}")))
        }
        n => format!("\n{}\n", paint(DIM, &format!("{n} more: planwatch list {}", escaped(&id)))),
    };
    Ok(head + &step_table::table(steps, context.now).draw(width) + &rest)
}
