//! `export`: a plan with all its steps as one document, for people and tools that do not know planwatch.

mod html;

use std::borrow::Cow;
use std::fmt::Write;
use std::ops::Range;

use serde_json::{Value, json};

use crate::api::context::Context;
use crate::api::error::Error;
use crate::api::views::{PlanShape, StepShape, envelope};
use crate::ops::run::Outcome;
use crate::ops::show::{GraphForm, ShowReport, ShowRequest, ShownPlan, show};
use crate::page::look::Look;
use crate::plan::decision::Decision;
use crate::plan::import::{EXPORTED_STEPS, FILE_ERROR};
use crate::plan::model::Order;
use crate::plan::records::Attempt;
use crate::plan::transitions::Verb;
use crate::plan::without_step_prefix;
use crate::plan::words::{Status, StepStatus, Words};
use crate::text::markdown;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExportForm {
    Json,
    Markdown,
    Mermaid,
    /// An architecture decision record: context, decision, consequences.
    Adr,
    /// One page without script.
    Html,
}

impl ExportForm {
    pub fn word(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::Markdown => "markdown",
            Self::Mermaid => "mermaid",
            Self::Adr => "adr",
            Self::Html => "html",
        }
    }
}

#[derive(Debug, Clone)]
pub struct ExportRequest {
    pub plan: String,
    pub form: ExportForm,
}

#[derive(Debug, Clone)]
pub struct ExportReport {
    pub plan: String,
    pub form: ExportForm,
    pub text: String,
    /// The number of errors in the plan's files. Content that an error makes unreadable is missing from the document.
    pub n_errors: usize,
    /// The plan with its steps, as the JSON document.
    object: Value,
}

impl ExportReport {
    /// The document itself if it is JSON, else an object with the plan, the form and the text.
    pub fn to_json(&self) -> Value {
        match self.form {
            ExportForm::Json => self.object.clone(),
            form => json!({"plan": self.plan, "form": form.word(), "text": self.text}),
        }
    }
}

/// Makes the document. The same files give the same bytes, except for what depends on the time or on recorded claims.
pub fn export(context: &Context, request: &ExportRequest) -> Result<ExportReport, Error> {
    let ask = |graph| show(context, &ShowRequest { id: request.plan.clone(), full: true, graph });
    let whole = ask(None)?;
    let object = envelope("plan", whole.to_json());
    let ShowReport::Plan(plan) = whole else {
        let hint = "name its plan: plans are exported whole";
        return Err(Error::usage(format!("`{}` is a step", request.plan), hint));
    };
    let n_errors = plan.problems.iter().filter(|it| it["severity"] == "error").count();
    let text = match request.form {
        ExportForm::Json => {
            let text = serde_json::to_string_pretty(&object).unwrap_or_default();
            format!("{text}\n")
        }
        ExportForm::Markdown => document(&plan),
        ExportForm::Mermaid => match ask(Some(GraphForm::Mermaid))? {
            ShowReport::Graph { text, .. } => text,
            _ => String::new(),
        },
        ExportForm::Adr => record(&plan, &context.config.words),
        ExportForm::Html => html::page(context, &plan, None)?,
    };
    Ok(ExportReport { plan: plan.plan.id.clone(), form: request.form, text, n_errors, object })
}

/// A directory of HTML pages: an index, and a page for each plan that is not archived.
#[derive(Debug)]
pub struct Site(html::Index);

impl Site {
    pub fn of(context: &Context) -> Result<Self, Error> {
        html::Index::of(context).map(Self)
    }

    /// The paths of the files, relative to the directory and with `/` as the separator. The index comes first.
    pub fn files(&self) -> impl Iterator<Item = String> {
        let pages = self.0.ids().map(|id| format!("plans/{id}.html"));
        ["index.html".to_owned()].into_iter().chain(pages)
    }

    /// The content of each file, in the order of [`Self::files`]. The pages are made one at a time, because all of them
    /// together may be large.
    pub fn pages<'a>(&'a self, context: &'a Context) -> impl Iterator<Item = Result<String, Error>> {
        let page = |id: &str| {
            let request = ShowRequest { id: format!("{id}/"), full: true, graph: None };
            match show(context, &request)? {
                ShowReport::Plan(plan) => html::page(context, &plan, Some(&self.0.known)),
                _ => Err(Error::usage(format!("`{id}` is not a plan"), "")),
            }
        };
        [Ok(self.0.page(context))].into_iter().chain(self.0.ids().map(page))
    }
}

/// The plan and, below it, each step with its text and its attempts.
fn document(shown: &ShownPlan) -> String {
    let plan = &shown.plan;
    let mut text = format!("{}\n\n", markdown::heading(1, &plan.title));
    let closed = plan.steps_completed + plan.steps_skipped;
    write!(text, "Status: {}, {closed} of {} steps", plan.status, plan.steps_total).ok();
    text.push_str(". Priority: ");
    text.push_str(plan.priority.word());
    text.extend(plan.due.map(|it| format!(". Due: {it}")));
    text.push_str(if plan.order == Order::Sequential { ". Order: sequential.\n" } else { ".\n" });
    text.push_str(&list("## Goals", &plan.goals));
    text.push_str(&list("## Success criteria", &plan.success_criteria));
    text.push_str(&lowered(&without_list(&shown.body), &plan.title, 0));
    text.push_str(&list("## Plans", &shown.children.iter().map(child).collect::<Vec<_>>()));
    let bodies = shown.bodies.as_deref().unwrap_or_default();
    let mut phase = None;
    // Without a heading of their own, the steps would belong to the last section of the plan's text.
    if shown.steps.first().is_some_and(|it| it.phase.is_none()) {
        write!(text, "\n## {EXPORTED_STEPS}\n").ok();
    }
    for (step, body) in shown.steps.iter().zip(bodies) {
        if step.phase != phase {
            phase.clone_from(&step.phase);
            write!(text, "\n{}\n", markdown::heading(2, phase.as_deref().unwrap_or(EXPORTED_STEPS))).ok();
        }
        text.push_str(&one_step(step, body));
    }
    text
}

/// A plan of a program, in one line.
fn child(plan: &PlanShape) -> String {
    let closed = plan.steps_completed + plan.steps_skipped;
    format!("{} (`{}`): {}, {closed} of {} steps", plan.title, plan.id, plan.status, plan.steps_total)
}

fn one_step(step: &StepShape, body: &str) -> String {
    let mark = if matches!(step.status.as_str(), "completed" | "skipped") { 'x' } else { ' ' };
    let status = readable_status(step);
    let heading = markdown::heading(3, &format!("{}. {}", step.number, step.title));
    let mut text = format!("\n{heading}\n\n- [{mark}] {status}");
    let depends = step.shown_depends();
    if !depends.is_empty() {
        let own = format!("{}:", step.plan);
        let short: Vec<_> = depends.iter().map(|it| without_plan(it, &own)).collect();
        write!(text, ", after {}", short.join(", ")).ok();
    }
    text.extend(step.due.map(|it| format!(", due {it}")));
    if let Some(assignee) = &step.assignee {
        write!(text, ", {assignee}").ok();
    }
    text.push('\n');
    text.push_str(&lowered(body, &step.title, 2));
    text.push_str(&attempts(&step.attempts));
    text
}

/// A step's status, or the statement that its file has an error.
fn readable_status(step: &StepShape) -> Cow<'_, str> {
    match (Look::of(step), step.status.as_str()) {
        (Look::Unknown, "?") => FILE_ERROR.into(),
        (Look::Unknown, word) => format!("{FILE_ERROR}: the status `{word}` is not known").into(),
        (_, word) => word.into(),
    }
}

/// A dependency without `own`, the prefix of the step's own plan: `3` for `own:3`, `3 to 200` for `own:3 to own:200`.
fn without_plan(depends: &str, own: &str) -> String {
    let ids = depends.split(" to ").map(|it| it.strip_prefix(own).unwrap_or(it));
    ids.collect::<Vec<_>>().join(" to ")
}

fn attempts(all: &[Attempt]) -> String {
    let mut text = String::new();
    for it in all {
        let at = it.at.map(|it| it.to_string()).unwrap_or_default();
        let (by, outcome) = (it.by.as_deref().unwrap_or_default(), it.outcome.as_deref().unwrap_or_default());
        write!(text, "- {}", [at.as_str(), by, outcome].join(" ").trim()).ok();
        if let Some(notes) = &it.notes {
            write!(text, ": {}", notes.trim().replace('\n', "\n  ")).ok();
        }
        text.push('\n');
    }
    if text.is_empty() { text } else { format!("\n#### Attempts\n\n{text}") }
}

fn list(heading: &str, items: &[String]) -> String {
    let lines: String = items.iter().map(|it| format!("- {}\n", it.replace('\n', "\n  "))).collect();
    if lines.is_empty() { lines } else { format!("\n{heading}\n\n{lines}") }
}

/// A plan's text without its Steps section, because the document has the steps in full. A section that contains more than
/// the list of steps stays.
fn without_list(body: &str) -> String {
    let outline = markdown::outline(body);
    let Some(section) = outline.section(|it| it == "Steps") else { return body.to_owned() };
    let items = outline.items.iter().filter(|it| section.contains(&it.span.start));
    let end = items.clone().map(|it| it.span.end).max().unwrap_or(section.start);
    let is_list = items.clone().all(|it| it.text.contains("step-"));
    let first = items.map(|it| it.span.start).min().unwrap_or(end);
    let says_more =
        !body[section.start..first].trim().is_empty() || !body[end..section.end].trim().is_empty();
    let heading = outline.headings.iter().find(|it| it.span.end == section.start);
    match heading {
        Some(heading) if is_list && !says_more => {
            format!("{}{}", &body[..heading.span.start], &body[section.end..])
        }
        _ => body.to_owned(),
    }
}

/// Lowers the `#` headings of a body by the number of levels in `by`, to level 6 at most. A first heading of level 1 that
/// repeats the title or a part of it, or that contains the title, is left out.
fn lowered(body: &str, title: &str, by: usize) -> String {
    let outline = markdown::outline(body);
    let mut text = String::new();
    let mut from = 0;
    for (nth, heading) in outline.headings.iter().enumerate() {
        text.push_str(&body[from..heading.span.start]);
        from = heading.span.start;
        let is_same = without_step_prefix(&heading.text) == title || title.contains(heading.text.as_str());
        if nth == 0 && heading.level == 1 && is_same {
            from = heading.span.end;
            continue;
        }
        let more = by.min(6 - usize::from(heading.level.min(6)));
        if body[from..].starts_with('#') {
            text.push_str(&"#".repeat(more));
        } else if let Some(underlined) = underlined(body, &heading.span).filter(|_| more > 0) {
            // An underlined heading has level 1 or 2, so it gets marks instead.
            writeln!(text, "{} {underlined}", "#".repeat(usize::from(heading.level) + more)).ok();
            from = heading.span.end;
        }
    }
    text.push_str(&body[from..]);
    let text = text.trim();
    let end = end_of_open_block(text).map(|it| format!("{it}\n")).unwrap_or_default();
    if text.is_empty() { String::new() } else { format!("\n{text}\n{end}") }
}

/// The text of an underlined heading, as Markdown on one line. `None`: the heading is not underlined, or it is in a list or a
/// quotation.
fn underlined(body: &str, span: &Range<usize>) -> Option<String> {
    let (text, line) = body[span.clone()].trim_end().rsplit_once('\n')?;
    let is_underline = line.trim_matches([' ', '-']).is_empty() || line.trim_matches([' ', '=']).is_empty();
    let is_whole = body[..span.start].is_empty() || body[..span.start].ends_with('\n');
    (is_underline && is_whole).then(|| text.lines().map(str::trim).collect::<Vec<_>>().join(" "))
}

/// The line that ends a code block, comment or other block of HTML that `text` leaves open. Without this line, what follows
/// the text would belong to the block.
fn end_of_open_block(text: &str) -> Option<String> {
    if !text.contains(['`', '~', '<']) {
        return None;
    }
    let is_ended = |text: &str| {
        let followed = format!("{text}\n\n# Next\n");
        markdown::sections(&followed).headings.last().is_some_and(|it| it.span.start > text.len())
    };
    let fences = (3..=20).flat_map(|n| ["`".repeat(n), "~".repeat(n)]);
    let others =
        ["-->", "</pre>", "</script>", "</style>", "</textarea>", "?>", ">", "]]>"].map(str::to_owned);
    let mut ends = fences.chain(others);
    if is_ended(text) { None } else { ends.find(|it| is_ended(&format!("{text}\n{it}"))) }
}

/// A decision record of the plan: why it was made, what was decided, and the result.
fn record(shown: &ShownPlan, words: &Words) -> String {
    let plan = &shown.plan;
    let status = match plan.status.as_str() {
        "draft" => "Proposed",
        "active" => "Accepted, in progress",
        "completed" => "Accepted, done",
        "abandoned" => "Rejected",
        other => other,
    };
    let mut text = format!("{}\n", markdown::heading(1, &plan.title));
    let date = plan.created_at.map(|it| it.to_string()).unwrap_or_default();
    if let Some(date) = date.get(..10) {
        write!(text, "\nDate: {date}\n").ok();
    }
    write!(text, "\n## Status\n\n{status}\n").ok();
    text.push_str("\n## Context\n");
    let context = lowered(&without_list(&shown.body), &plan.title, 1);
    let description = plan.description.as_deref().map(str::trim).unwrap_or_default();
    let is_told = description.is_empty() || context.contains(description);
    let context = if is_told { context } else { format!("\n{description}\n{context}") };
    text.push_str(if context.is_empty() { "\nNothing was written down.\n" } else { &context });
    text.push_str("\n## Decision\n");
    text.push_str(&list("We want:", &plan.goals));
    text.push_str(&list("We decided:", &shown.decisions.iter().rev().map(decided).collect::<Vec<_>>()));
    text.push_str("\nThe work is done in these steps:\n\n");
    for step in &shown.steps {
        writeln!(text, "{}. {} ({})", step.number, step.title, readable_status(step)).ok();
    }
    text.push_str("\n## Consequences\n");
    text.push_str(&list("It is a success when:", &plan.success_criteria));
    let completed = shown.steps.iter().filter(|it| it.status == StepStatus::Completed.word());
    let outcomes = completed.filter_map(|it| Some(format!("{}: {}", it.title, it.result.as_deref()?.trim())));
    let outcomes = list("Done so far:", &outcomes.collect::<Vec<_>>());
    text.push_str(if outcomes.is_empty() { "\nNo completed step has a result yet.\n" } else { &outcomes });
    let failed = shown.steps.iter().flat_map(|step| {
        let last = step.attempts.len().saturating_sub(1);
        let of = step.attempts.iter().enumerate();
        of.filter_map(move |(nth, it)| failed(step, it, nth == last, words))
    });
    let skipped = shown.steps.iter().filter(|it| it.status == StepStatus::Skipped.word());
    let reasons = skipped.filter_map(|it| Some(format!("{}: {}", it.title, it.result.as_deref()?.trim())));
    text.push_str(&list("Left out:", &reasons.collect::<Vec<_>>()));
    text.push_str(&list("## Failed and blocked attempts", &failed.collect::<Vec<_>>()));
    text
}

fn decided(it: &Decision) -> String {
    let because = it.reasoning.as_deref().map(|it| format!("\n\nBecause: {}", it.trim()));
    format!("{}: {}{}", it.topic, it.decision.trim(), because.unwrap_or_default())
}

/// A line about an attempt that failed or was blocked; none for other attempts.
fn failed(step: &StepShape, attempt: &Attempt, is_last: bool, words: &Words) -> Option<String> {
    let own = attempt.more.get("status").and_then(Value::as_str);
    let outcome = attempt.outcome.as_deref().or(own).unwrap_or(&step.status);
    let is_stuck = |word: &str| matches!(words.read(word), Some(StepStatus::Failed | StepStatus::Blocked));
    // A person may write any word as an outcome. On the last attempt of a failed or blocked step, a word that is neither a
    // status nor the outcome of `reopen` counts as a failure.
    let is_other = words.read::<StepStatus>(outcome).is_none() && outcome != Verb::Reopen.outcome();
    let has_ended = is_last && is_stuck(&step.status) && is_other;
    let of_run = [Outcome::VerifyFailed, Outcome::TimedOut, Outcome::NoOutcome];
    let is_failed = is_stuck(outcome)
        || own.is_some_and(is_stuck)
        || has_ended
        || of_run.iter().any(|it| it.word() == outcome);
    let notes = attempt.notes.as_deref().map(|it| format!(": {}", it.trim())).unwrap_or_default();
    is_failed.then(|| format!("{} ({outcome}){notes}", step.title))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::model::Machine;

    #[test]
    fn a_text_ends_its_open_blocks_and_has_no_heading_of_the_level_of_steps_or_phases() {
        for (body, expected) in [
            ("# One\n\n```sh\nls\n", "\n```sh\nls\n```\n"),
            ("````\n```\nls", "\n````\n```\nls\n````\n"),
            ("~~~\n```\n", "\n~~~\n```\n~~~\n"),
            ("<!-- todo\n", "\n<!-- todo\n-->\n"),
            ("<pre>\na\n\nb\n", "\n<pre>\na\n\nb\n</pre>\n"),
            ("```sh\nls\n```\n", "\n```sh\nls\n```\n"),
            ("a < b, `c`\n", "\na < b, `c`\n"),
            ("One\n===\n\nBack\nground\n---\n\nwhy\n", "\n#### Back ground\n\nwhy\n"),
            ("# Step 1: One\n\na\n", "\na\n"),
            ("# One more thing\n\na\n", "\n### One more thing\n\na\n"),
        ] {
            assert_eq!(lowered(body, "One", 2), expected, "{body:?}");
        }
    }

    #[test]
    fn a_document_says_which_files_have_errors() {
        let files = [
            ("/plans/p/plan.md", "# P\n"),
            ("/plans/p/step-1.md", "---\nstatus: pendng\n---\n# One\n"),
            ("/plans/p/step-2.md", "---\nstatus: [\n---\n# Two\n"),
            ("/plans/p/step-3.md", "# Three\n"),
        ];
        for (form, expected) in [
            (
                ExportForm::Markdown,
                ["- [ ] file has an error: the status `pendng` is not known\n", "- [ ] file has an error\n"],
            ),
            (
                ExportForm::Adr,
                ["1. One (file has an error: the status `pendng`", "2. Two (file has an error)"],
            ),
            (ExportForm::Html, ["<bdi>file has an error: the status", "<bdi>file has an error<"]),
        ] {
            let request = ExportRequest { plan: "p".to_owned(), form };
            let report = export(&Context::on_model(&Machine::with(&files)), &request).unwrap();
            assert!(report.n_errors > 1, "{}", report.n_errors);
            for it in expected {
                assert!(report.text.contains(it), "{it}: {}", report.text);
            }
        }
    }

    #[test]
    fn a_decision_record_has_the_description_and_why_steps_were_skipped() {
        let skipped = "---\nstatus: skipped\nattempts:\n  - {outcome: skipped, notes: the vendor does it}\n---\n# Rate limits\n";
        let check = |plan: &str, expected: &str| {
            let machine = Machine::with(&[("/plans/p/plan.md", plan), ("/plans/p/step-1.md", skipped)]);
            let request = ExportRequest { plan: "p".to_owned(), form: ExportForm::Adr };
            let text = export(&Context::on_model(&machine), &request).unwrap().text;
            let context = text.split_once("## Context\n").unwrap().1.split_once("\n## Decision").unwrap().0;
            assert_eq!(context, expected, "{plan}");
            assert!(text.contains("\nLeft out:\n\n- Rate limits: the vendor does it\n"), "{text}");
        };
        check("---\ndescription: Calls cost money.\n---\n# P\n", "\nCalls cost money.\n");
        check("---\ndescription: Calls cost money.\n---\n# P\n\nMore.\n", "\nCalls cost money.\n\nMore.\n");
        check(
            "---\ndescription: Calls cost money.\n---\n# P\n\nCalls cost money. Yes.\n",
            "\nCalls cost money. Yes.\n",
        );
        check("# P\n", "\nNothing was written down.\n");
    }

    #[test]
    fn a_decision_record_lists_every_attempt_that_failed_whatever_its_outcome_is_called() {
        let step = |status: &str, attempts: &str| {
            format!("---\nstatus: {status}\nattempts:\n{attempts}---\n# Step\n\nText\n")
        };
        for (status, attempts, expected) in [
            ("failed", "  - {outcome: no luck, notes: cold}\n", &["Step (no luck): cold"][..]),
            ("blocked", "  - {notes: waits}\n", &["Step (blocked): waits"]),
            ("failed", "  - {outcome: started}\n  - {outcome: tried}\n", &["Step (tried)"]),
            ("completed", "  - {outcome: red, status: failed}\n  - {outcome: completed}\n", &["Step (red)"]),
            ("completed", "  - {outcome: Blocked}\n  - {outcome: completed}\n", &["Step (Blocked)"]),
            (
                "pending",
                "  - {outcome: verify failed}\n  - {outcome: timed out}\n  - {outcome: no outcome reported}\n",
                &["Step (verify failed)", "Step (timed out)", "Step (no outcome reported)"],
            ),
            ("failed", "  - {outcome: failed}\n  - {outcome: reopened}\n", &["Step (failed)"]),
            ("completed", "  - {outcome: partial}\n  - {outcome: completed}\n", &[]),
        ] {
            let text = step(status, attempts);
            let machine = Machine::with(&[("/plans/p/plan.md", "# P\n"), ("/plans/p/step-1.md", &text)]);
            let request = ExportRequest { plan: "p".to_owned(), form: ExportForm::Adr };
            let text = export(&Context::on_model(&machine), &request).unwrap().text;
            let list = text.split_once("## Failed and blocked attempts\n\n").map_or("", |it| it.1);
            let lines: Vec<_> = list.lines().filter_map(|it| it.strip_prefix("- ")).collect();
            assert_eq!(lines, expected, "{status} {attempts}");
        }
    }
}
