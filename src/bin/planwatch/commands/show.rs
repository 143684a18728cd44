//! `show`: one plan or step with its text, what it waits for, and what was recorded.

use std::fmt::Write;

use planwatch::ops::show::{self, ShowReport, ShowRequest, ShownPlan, ShownStep};
use planwatch::plan::claims::InForce;
use planwatch::plan::decision::Decision;
use planwatch::plan::records::{Attempt, Confirmation, Note, Priority};
use planwatch::plan::time::Time;
use serde_json::{Map, Value};

use crate::args::look::Show;
use crate::context::Session;
use crate::failure::Failure;
use crate::output::{escaped, escaped_lines};
use crate::screens::text::{hanging, indented, markdown, without_steps_list};
use crate::screens::{BOLD, DIM, ago, bar_of, dated, due, heading, knowledge, plans, problems, state, steps};
use crate::table::paint;

pub(crate) fn run(session: &Session, args: Show) -> Result<u8, Failure> {
    let context = session.context()?;
    let request = ShowRequest { id: args.id, full: args.full, graph: args.graph.map(|it| it.form()) };
    let report = session.with_spinner(|| show::show(&context, &request))?;
    let screen = |width| match &report {
        ShowReport::Plan(shown) => plan(shown, context.now, width),
        ShowReport::Step(shown) => step(shown, context.now, width),
        ShowReport::Decision(shown) => knowledge::decisions(shown, None, context.now, width),
        ShowReport::Insight(shown) => knowledge::insights(shown, None, context.now, width),
        ShowReport::Graph { text, .. } => escaped_lines(text).into_owned(),
    };
    session.answer(report.kind(), || report.to_json(), screen)
}

fn plan(shown: &ShownPlan, now: Time, width: Option<usize>) -> String {
    let plan = &shown.plan;
    let mut facts = vec![bar_of(plan), plans::painted_status(plan)];
    facts.extend(priority(plan.priority));
    let is_open = !matches!(plan.status.as_str(), "completed" | "abandoned");
    facts.extend(plan.due.map(|it| due(it, is_open, now).painted()));
    facts.extend(plan.category.as_deref().map(|it| escaped(it).into_owned()));
    facts.extend(plan.program.as_deref().map(|it| format!("part of {}", escaped(it))));
    facts.extend(tags(&plan.tags));
    facts.extend(plan.created_at.map(|it| format!("made {}", ago(now, Some(it)))));
    let mut text = top(&heading(&plan.id, &plan.title), &facts, &plan.path, width);
    if let Some(description) = plan.description.as_deref().filter(|it| !repeats(&shown.body, it)) {
        writeln!(text, "\n{}", hanging(&escaped_lines(description.trim()), width, 0)).ok();
    }
    text.push_str(&list("Goals", &plan.goals, width));
    text.push_str(&list("Success criteria", &plan.success_criteria, width));
    // The table of steps contains more than the Steps list in the text. Therefore the list is shown only with `--full`.
    let is_told_twice = shown.bodies.is_none() && !shown.steps.is_empty();
    let own = if is_told_twice { without_steps_list(&shown.body) } else { shown.body.clone() };
    text.push_str(&body(&markdown(&own, &plan.title, width)));
    if !shown.steps.is_empty() {
        let table = steps::table(&shown.steps, now).indented(2);
        text.push_str(&section("Steps", &table.draw(width)));
    }
    if !shown.children.is_empty() {
        let table = plans::table(&shown.children, now).indented(2);
        text.push_str(&section("Plans", &table.draw(width)));
    }
    text.push_str(&decisions(&shown.decisions, now, width));
    text.push_str(&records(&[], &plan.notes, now, width));
    text.push_str(&fields("Metadata", &plan.metadata, width));
    text.push_str(&fields("Other fields", &plan.custom, width));
    text.push_str(&problem_section(&shown.problems, width));
    for (step, its) in shown.steps.iter().zip(shown.bodies.iter().flatten()) {
        let head = format!("{} {}", step.number, escaped(&step.title));
        let head = hanging(&paint(BOLD, &head), width, 2);
        let narrow = width.map(|it| it.saturating_sub(2));
        write!(text, "\n{head}\n{}", indented(&markdown(its, &step.title, narrow), 2)).ok();
        text.push_str(&indented(&records(&step.attempts, &step.notes, now, narrow), 2));
    }
    text
}

fn step(shown: &ShownStep, now: Time, width: Option<usize>) -> String {
    let step = &shown.step;
    let mut facts = vec![state_text(step)];
    facts.extend(step.phase.as_deref().map(|it| format!("phase {}", escaped(it))));
    facts.extend(step.kind.as_deref().map(|it| escaped(it).into_owned()));
    facts.extend(priority(step.priority));
    let is_open = !matches!(step.status.as_str(), "completed" | "skipped");
    facts.extend(step.due.map(|it| due(it, is_open, now).painted()));
    facts.extend(tags(&step.tags));
    facts.extend((step.tasks_total > 0).then(|| format!("tasks {}", steps::tasks(step))));
    let mut text = top(&heading(&step.id, &step.title), &facts, &step.path, width);
    text.push_str(&facts_below(shown, now, width));
    text.push_str(&body(&markdown(&shown.body, &step.title, width)));
    text.push_str(&decisions(&shown.decisions, now, width));
    text.push_str(&records(&step.attempts, &step.notes, now, width));
    text.push_str(&fields("Metadata", &step.metadata, width));
    text.push_str(&fields("Other fields", &step.custom, width));
    text + &problem_section(&shown.problems, width)
}

/// The step's dependencies, claim, confirmation and result: a name and a value on each line.
fn facts_below(shown: &ShownStep, now: Time, width: Option<usize>) -> String {
    let step = &shown.step;
    let is_shown = shown.waits_for.is_empty() || !step.depends_ranges.is_empty();
    let depends = if is_shown { step.shown_depends().join(", ") } else { String::new() };
    let claim = step.claim.as_ref().map(|it| {
        let by = it.by.as_deref().unwrap_or("another worker");
        let until = shown.held.as_ref().filter(|held| held.claim == it.id).map(holds);
        format!("{by}, {} (claim {}){}", dated(now, it.at), it.id, until.unwrap_or_default())
    });
    let held = shown.held.as_ref().filter(|it| step.claim.as_ref().is_none_or(|own| own.id != it.claim));
    let held = held.map(|it| {
        let by = it.by.as_deref().unwrap_or("unknown");
        let place = it.worktree.as_ref().map(|it| format!(" in the working tree {it}"));
        let place = place.or_else(|| it.host.as_ref().map(|it| format!(" on {it}")));
        format!("{by}{} (claim {}){}", place.unwrap_or_default(), it.claim, holds(it))
    });
    let confirmed = match (shown.is_gated, &shown.confirmation) {
        (false, _) => String::new(),
        (true, Some(it)) => said_yes(it, now),
        (true, None) => "not yet".to_owned(),
    };
    let last_notes = step.attempts.last().and_then(|it| it.notes.as_deref());
    let result = step.result.as_deref().filter(|it| last_notes != Some(*it));
    let facts = [
        ("waits for", shown.waits_for.join(", ")),
        ("depends on", depends),
        ("needed by", shown.dependants.join(", ")),
        ("claimed by", claim.unwrap_or_default()),
        ("held by", held.or_else(|| ended_elsewhere(shown)).unwrap_or_default()),
        ("assignee", step.assignee.clone().unwrap_or_default()),
        ("confirmed", confirmed),
        ("result", result.unwrap_or_default().trim().to_owned()),
    ];
    let facts: Vec<_> = facts.into_iter().filter(|(_, value)| !value.is_empty()).collect();
    let widest = facts.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let line = |(name, value): &(&str, String)| {
        let line = format!("{}{}  {}\n", paint(DIM, name), " ".repeat(widest - name.len()), escaped(value));
        hanging(&line, width, widest + 2)
    };
    body(&facts.iter().map(line).collect::<String>())
}

/// A text about the claim of a step that was closed on another branch, or whose work has ended on another machine. `None`
/// if there is no such claim, or if another claim on the step is in force.
fn ended_elsewhere(shown: &ShownStep) -> Option<String> {
    shown.step.held_by.clone().filter(|_| shown.held.is_none())
}

fn holds(held: &InForce) -> String {
    match held.until {
        Some(until) => format!(", holds until {}", until.whole_seconds()),
        None => ", holds while its process runs".to_owned(),
    }
}

/// Who confirmed, when, and the note.
fn said_yes(it: &Confirmation, now: Time) -> String {
    let phase = it.phase.as_ref().map(|it| format!("with the phase {it}"));
    let parts = [phase, it.by.clone(), it.at.map(|at| dated(now, Some(at)))];
    let said = parts.into_iter().flatten().fold("yes".to_owned(), |all, it| format!("{all}, {it}"));
    match it.note.as_deref().map(str::trim).filter(|it| !it.is_empty()) {
        Some(note) => format!("{said}: {note}"),
        None => said,
    }
}

/// Whether `body` contains the words of `description` in sequence, regardless of line breaks, punctuation and case.
fn repeats(body: &str, description: &str) -> bool {
    let words = |it: &str| {
        let words = it.split(|c: char| !c.is_alphanumeric()).filter(|it| !it.is_empty());
        words.fold(" ".to_owned(), |all, it| all + &it.to_lowercase() + " ")
    };
    words(body).contains(&words(description))
}

fn state_text(step: &planwatch::api::views::StepShape) -> String {
    state(step).painted()
}

fn top(heading: &str, facts: &[String], path: &str, width: Option<usize>) -> String {
    let facts = facts.join(&paint(DIM, " · "));
    hanging(&format!("{heading}{facts}\n{}\n", paint(DIM, &escaped(path))), width, 2)
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

fn list(name: &str, items: &[String], width: Option<usize>) -> String {
    let items: String = items.iter().map(|it| format!("  - {}\n", escaped(it))).collect();
    section(name, &hanging(&items, width, 4))
}

/// The decisions about a plan or a step, newest first; `planwatch decide TOPIC` shows the reasons.
fn decisions(of: &[Decision], now: Time, width: Option<usize>) -> String {
    let line = |it: &Decision| {
        let head = paint(DIM, &dated(now, it.decided_at));
        let first = it.decision.trim().lines().next().unwrap_or_default();
        format!("  {}: {}  {head}\n", escaped(&it.topic), escaped(first))
    };
    section("Decisions", &hanging(&of.iter().map(line).collect::<String>(), width, 4))
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
        let head = [dated(now, at), escaped(by.unwrap_or_default()).into_owned()];
        let head: Vec<_> = head.into_iter().filter(|it| !it.is_empty()).collect();
        let head = paint(DIM, &head.join(", "));
        let word = escaped(word);
        let text = escaped_lines(text.trim());
        let short = format!("  {word}: {text}  {head}\n");
        let is_short = !text.contains('\n') && hanging(&short, width, 0) == short;
        match (text.is_empty(), is_short) {
            (true, _) => hanging(&format!("  {word}  {head}\n"), width, 4),
            (false, true) => short,
            (false, false) => hanging(&format!("  {word}  {head}\n{}", indented(&text, 4)), width, 4),
        }
    };
    of.map(entry).collect()
}

fn fields(name: &str, of: &Map<String, Value>, width: Option<usize>) -> String {
    let line = |(key, value): (&String, &Value)| {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        format!("  {}: {}\n", escaped(key), escaped(&value))
    };
    section(name, &hanging(&of.iter().map(line).collect::<String>(), width, 4))
}

fn problem_section(problems: &[Value], width: Option<usize>) -> String {
    section("Problems", &problems.iter().map(|it| problems::listed(it, width)).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_description_that_the_text_holds_is_found_in_it() {
        assert!(repeats("# A\n\nPort *the* data,\nthen stop.\n", "Port the data, then stop"));
        assert!(!repeats("Report the data", "port the data"));
    }

    #[test]
    fn a_long_attempt_stands_below_its_outcome() {
        let entry = || [(None, Some("ann"), "failed", "one two three four")].into_iter();
        let plain = |width| {
            let said = entries(entry(), Time::from_nanoseconds(0), width);
            anstream::adapter::strip_str(&said).to_string()
        };
        assert_eq!(plain(None), "  failed: one two three four  ann\n");
        assert_eq!(plain(Some(14)), "  failed  ann\n    one two\n    three four\n");
    }
}
