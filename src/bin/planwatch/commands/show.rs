//! `show`: one plan or step with its text, what it waits for, and what was recorded.

use std::fmt::Write;

use planwatch::engine::show::{self, ShowReport, ShowRequest, ShownPlan, ShownStep};
use planwatch::plan::records::{Attempt, Note, Priority};
use planwatch::plan::time::Time;
use serde_json::{Map, Value};

use crate::args::look::Show;
use crate::context::Session;
use crate::failure::Failure;
use crate::output::{escaped, escaped_lines};
use crate::screens::text::{indented, markdown, wrapped};
use crate::screens::{BOLD, DIM, ago, bar_of, heading, plans, problems, state, steps};
use crate::table::{Table, Yields, cell, column, paint, styled};

pub(crate) fn run(session: &Session, args: Show) -> Result<u8, Failure> {
    let context = session.context()?;
    let request = ShowRequest { id: args.id, full: args.full, graph: args.graph.map(|it| it.form()) };
    let report = session.patiently(|| show::show(&context, &request))?;
    if session.output.is_json() {
        session.output.json(report.kind(), report.to_json())?;
        return Ok(0);
    }
    let width = session.output.width;
    let text = match &report {
        ShowReport::Plan(shown) => plan(shown, context.now, width),
        ShowReport::Step(shown) => step(shown, context.now, width),
        ShowReport::Graph { text, .. } => escaped_lines(text).into_owned(),
    };
    session.output.text(&text)?;
    Ok(0)
}

fn plan(shown: &ShownPlan, now: Time, width: Option<usize>) -> String {
    let plan = &shown.plan;
    let (stand, style) = plans::stand(plan);
    let mut facts = vec![bar_of(plan), paint(style, &stand)];
    facts.extend(priority(plan.priority));
    facts.extend(plan.category.as_deref().map(|it| escaped(it).into_owned()));
    facts.extend(plan.program.as_deref().map(|it| format!("part of {}", escaped(it))));
    facts.extend(tags(&plan.tags));
    facts.extend(plan.created_at.map(|it| format!("made {}", ago(now, Some(it)))));
    let mut text = top(&heading(&plan.id, &plan.title), &facts, &plan.path);
    if let Some(description) = plan.description.as_deref().filter(|it| !repeats(&shown.body, it)) {
        writeln!(text, "\n{}", wrapped(&escaped_lines(description.trim()), width)).ok();
    }
    text.push_str(&list("Goals", &plan.goals));
    text.push_str(&list("Success criteria", &plan.success_criteria));
    text.push_str(&body(&markdown(&shown.body, &plan.title)));
    if !shown.steps.is_empty() {
        let table = steps::table(&shown.steps, &shown.steps, now).indented(2);
        text.push_str(&section("Steps", &table.draw(width)));
    }
    text.push_str(&records(&[], &plan.notes, now, width));
    text.push_str(&fields("Metadata", &plan.metadata));
    text.push_str(&fields("Other fields", &plan.custom));
    text.push_str(&problem_section(&shown.problems));
    for (step, its) in shown.steps.iter().zip(shown.bodies.iter().flatten()) {
        let head = format!("{} {}", step.number, escaped(&step.title));
        write!(text, "\n{}\n{}", paint(BOLD, &head), indented(&markdown(its, &step.title), 2)).ok();
    }
    text
}

fn step(shown: &ShownStep, now: Time, width: Option<usize>) -> String {
    let step = &shown.step;
    let mut facts = vec![state_text(step)];
    facts.extend(step.phase.as_deref().map(|it| format!("phase {}", escaped(it))));
    facts.extend(step.kind.as_deref().map(|it| escaped(it).into_owned()));
    facts.extend(priority(step.priority));
    facts.extend(tags(&step.tags));
    facts.extend((step.tasks_total > 0).then(|| format!("tasks {}", steps::tasks(step))));
    let mut text = top(&heading(&step.id, &step.title), &facts, &step.path);
    let mut table = Table::new([column("", Yields::Nothing), column("", Yields::Nothing)]);
    let mut fact = |name: &str, value: String| {
        if !value.is_empty() {
            table.row([styled(DIM, name), cell(value)]);
        }
    };
    fact("waits for", escaped(&shown.waits_for.join(", ")).into_owned());
    fact(
        "depends on",
        if shown.waits_for.is_empty() {
            escaped(&step.depends.join(", ")).into_owned()
        } else {
            String::new()
        },
    );
    fact("needed by", escaped(&shown.dependants.join(", ")).into_owned());
    let claim = step.claim.as_ref().map(|it| {
        let by = it.by.as_deref().unwrap_or("somebody");
        format!("{}, {} (claim {})", escaped(by), ago(now, it.at), escaped(&it.id))
    });
    fact("claimed by", claim.unwrap_or_default());
    fact("assignee", escaped(step.assignee.as_deref().unwrap_or_default()).into_owned());
    fact(
        "confirmed",
        if step.confirm { if step.confirmed.is_some() { "yes" } else { "not yet" } } else { "" }.to_owned(),
    );
    let result = step
        .result
        .as_deref()
        .filter(|_| step.attempts.last().and_then(|it| it.notes.as_deref()) != step.result.as_deref());
    fact("result", result.map(|it| escaped(it.trim()).into_owned()).unwrap_or_default());
    if !table.is_empty() {
        write!(text, "\n{}", table.draw(None)).ok();
    }
    text.push_str(&body(&markdown(&shown.body, &step.title)));
    text.push_str(&records(&step.attempts, &step.notes, now, width));
    text.push_str(&fields("Metadata", &step.metadata));
    text.push_str(&fields("Other fields", &step.custom));
    text + &problem_section(&shown.problems)
}

/// Whether a text holds another one, however the lines are broken.
fn repeats(body: &str, description: &str) -> bool {
    let words = |it: &str| it.split_whitespace().collect::<Vec<_>>().join(" ");
    words(body).contains(&words(description))
}

fn state_text(step: &planwatch::engine::shape::StepShape) -> String {
    state(step).painted()
}

fn top(heading: &str, facts: &[String], path: &str) -> String {
    let facts = facts.join(&paint(DIM, " · "));
    format!("{heading}{facts}\n{}\n", paint(DIM, &escaped(path)))
}

fn priority(priority: Priority) -> Option<String> {
    (priority != Priority::Medium).then(|| format!("priority {}", priority.word()))
}

fn tags(tags: &[String]) -> Option<String> {
    (!tags.is_empty())
        .then(|| tags.iter().map(|it| format!("#{}", escaped(it))).collect::<Vec<_>>().join(" "))
}

fn section(name: &str, text: &str) -> String {
    if text.is_empty() { String::new() } else { format!("\n{}\n{text}", paint(BOLD, name)) }
}

fn body(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!("\n{text}") }
}

fn list(name: &str, items: &[String]) -> String {
    section(name, &items.iter().map(|it| format!("  - {}\n", escaped(it))).collect::<String>())
}

/// Attempts and notes, oldest first; every line of a text is shown.
fn records(attempts: &[Attempt], notes: &[Note], now: Time, width: Option<usize>) -> String {
    let attempts = attempts.iter().map(|it| {
        let word = it.outcome.as_deref().unwrap_or("attempt");
        (it.at, it.by.as_deref(), word, it.notes.as_deref().unwrap_or_default())
    });
    let notes = notes.iter().map(|it| (it.at, it.by.as_deref(), it.kind.word(), it.text.as_str()));
    section("Attempts", &entries(attempts, now, width)) + &section("Notes", &entries(notes, now, width))
}

fn entries<'a>(
    of: impl Iterator<Item = (Option<Time>, Option<&'a str>, &'a str, &'a str)>,
    now: Time,
    width: Option<usize>,
) -> String {
    let entry = |(at, by, word, text): (Option<Time>, Option<&str>, &str, &str)| {
        let head = [ago(now, at), escaped(by.unwrap_or_default()).into_owned()];
        let head: Vec<_> = head.into_iter().filter(|it| !it.is_empty()).collect();
        let head = paint(DIM, &head.join(", "));
        let word = escaped(word);
        let text = escaped_lines(text.trim());
        let is_short =
            !text.contains('\n') && width.is_none_or(|it| text.len() + word.len() + head.len() < it);
        match (text.is_empty(), is_short) {
            (true, _) => format!("  {word}  {head}\n"),
            (false, true) => format!("  {word}: {text}  {head}\n"),
            (false, false) => format!("  {word}  {head}\n{}", indented(&text, 4)),
        }
    };
    of.map(entry).collect()
}

fn fields(name: &str, of: &Map<String, Value>) -> String {
    let line = |(key, value): (&String, &Value)| {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        format!("  {}: {}\n", escaped(key), escaped(&value))
    };
    section(name, &of.iter().map(line).collect::<String>())
}

fn problem_section(problems: &[Value]) -> String {
    section("Problems", &problems.iter().map(problems::listed).collect::<String>())
}
