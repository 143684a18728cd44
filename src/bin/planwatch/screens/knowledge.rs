//! Decisions, insights and topics as people read them.

use planwatch::ops::decide::{DecisionsReport, Topic};
use planwatch::ops::insight::InsightsReport;
use planwatch::plan::time::Time;
use planwatch::text::typed::quoted;

use crate::output::{escaped, escaped_lines};
use crate::screens::text::{fitted, hanging, indented};
use crate::screens::{BOLD, DIM, count, dated, to_type};
use crate::table::{Table, Yields, cell, column, paint, styled};

/// What is shown of a decision or an insight.
struct About<'a> {
    title: &'a str,
    /// The date, the author, the plan or step that it belongs to, and its tags.
    said: Vec<String>,
    /// Further lines: the path, superseded and superseding decisions, and problems.
    more: Vec<String>,
    /// Texts, each with a leading word, which may be empty.
    texts: Vec<(&'a str, &'a str)>,
}

fn entry(about: &About<'_>, width: Option<usize>) -> String {
    let mut text = hanging(&format!("{}\n", paint(BOLD, &escaped(about.title))), width, 4);
    let said = about.said.iter().filter(|it| !it.is_empty()).cloned().collect::<Vec<_>>().join(", ");
    for line in std::iter::once(&said).chain(&about.more).filter(|it| !it.is_empty()) {
        text += &hanging(&format!("  {}\n", paint(DIM, &escaped(line))), width, 4);
    }
    for (word, body) in about.texts.iter().filter(|(_, it)| !it.is_empty()) {
        let lead = if word.is_empty() { String::new() } else { format!("{word} ") };
        text += "\n";
        text += &fitted(&indented(&format!("{lead}{}", escaped_lines(body)), 2), width);
    }
    text
}

fn joined(entries: &[String], n_more: usize) -> String {
    let entries = entries.join("\n");
    if n_more == 0 {
        return entries;
    }
    format!("{entries}\n{}\n", paint(DIM, &format!("{n_more} more; --limit shows them")))
}

pub(crate) fn decisions(
    report: &DecisionsReport,
    topic: Option<&str>,
    now: Time,
    width: Option<usize>,
) -> String {
    if report.decisions.is_empty() {
        let near =
            report.near.iter().map(|it| (format!("planwatch decide {}", quoted(it)), "to show that topic"));
        let what = topic.map_or_else(|| "TOPIC".to_owned(), quoted);
        let record = (format!("planwatch decide {what} TEXT"), "to record one");
        let said = match topic {
            Some(topic) => format!("No decision was found on {}.\n", escaped(topic)),
            None => "No decision was found.\n".to_owned(),
        };
        return fitted(&format!("{said}{}", to_type(&near.chain([record]).collect::<Vec<_>>())), width);
    }
    let shown = report.decisions.iter().map(|it| {
        let of = it.step.as_ref().or(it.plan.as_ref()).map(|it| format!("for {it}"));
        let by = it.by.clone().unwrap_or_default();
        let mut more = vec![report.path(it)];
        more.extend(it.supersedes.as_ref().map(|it| format!("supersedes {it}")));
        more.extend(report.superseded_by(&it.id).iter().map(|it| format!("superseded by {it}")));
        more.extend(it.problems.iter().map(|it| format!("{}: {}", it.code.text(), it.message)));
        let about = About {
            title: &it.topic,
            said: vec![dated(now, it.decided_at), by, of.unwrap_or_default(), tags(&it.tags)],
            more,
            texts: vec![("", &it.decision), ("Because:", it.reasoning.as_deref().unwrap_or_default())],
        };
        entry(&about, width)
    });
    joined(&shown.collect::<Vec<_>>(), report.n_more)
}

pub(crate) fn insights(
    report: &InsightsReport,
    title: Option<&str>,
    now: Time,
    width: Option<usize>,
) -> String {
    if report.insights.is_empty() {
        let near = report
            .nearest
            .as_deref()
            .map(|it| (format!("planwatch insight {}", quoted(it)), "to show that insight"));
        let what = title.map_or_else(|| "TITLE".to_owned(), quoted);
        let record = (format!("planwatch insight {what} TEXT"), "to record one");
        let said = match title {
            Some(title) => format!("No insight has the title {}.\n", escaped(title)),
            None => "No insight was found.\n".to_owned(),
        };
        return fitted(
            &format!("{said}{}", to_type(&near.into_iter().chain([record]).collect::<Vec<_>>())),
            width,
        );
    }
    let shown = report.insights.iter().map(|it| {
        let of = it.plan.as_ref().map(|it| format!("for {it}"));
        let mut more = vec![report.path(it)];
        more.extend(it.problems.iter().map(|it| format!("{}: {}", it.code.text(), it.message)));
        let by = it.by.clone().unwrap_or_default();
        let said = vec![dated(now, it.at), by, of.unwrap_or_default(), tags(&it.tags)];
        entry(&About { title: &it.title, said, more, texts: vec![("", &it.text)] }, width)
    });
    joined(&shown.collect::<Vec<_>>(), report.n_more)
}

fn tags(tags: &[String]) -> String {
    tags.iter().map(|it| format!("#{it}")).collect::<Vec<_>>().join(" ")
}

pub(crate) fn topics(topics: &[Topic], now: Time, width: Option<usize>) -> String {
    if topics.is_empty() {
        let record = ("planwatch decide TOPIC TEXT".to_owned(), "to record a decision");
        return format!("There are no decisions yet.\n{}", to_type(&[record]));
    }
    let mut table = Table::new([
        column("topic", Yields::Text),
        column("", Yields::Nothing),
        column("last", Yields::Last),
    ]);
    for topic in topics {
        let n = styled(DIM, count(topic.n_decisions, "decision"));
        table.row([cell(topic.topic.as_str()), n, styled(DIM, dated(now, topic.last))]);
    }
    table.draw(width)
}
