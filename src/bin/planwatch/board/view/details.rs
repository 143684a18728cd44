//! The details of the selected step or plan, and the output of a run.

use std::borrow::Cow;

use planwatch::ops::show::{ShownPlan, ShownStep};
use planwatch::plan::records::{Attempt, Note};
use planwatch::plan::time::{self, Time};
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::{Color, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;

use super::prose::{cut, markdown, plain, wrap};
use super::{BOLD, DIM, colour, framed};
use crate::board::model::{Focus, Hit, Model};
use crate::screens::{self, plans as plan_screen, steps as step_screen};

struct Text {
    width: usize,
    lines: Vec<Line<'static>>,
}

impl Text {
    fn push(&mut self, spans: Vec<Span<'static>>, hang: usize) {
        self.lines.extend(wrap(&Line::from(spans), self.width, hang));
    }

    fn gap(&mut self) {
        if self.lines.last().is_some_and(|it| it.width() > 0) {
            self.lines.push(Line::default());
        }
    }

    fn fact(&mut self, name: &'static str, value: &str, style: Style) {
        if !value.is_empty() {
            let name = format!("{name:<11}");
            self.push(vec![Span::styled(name, DIM), Span::styled(plain(value), style)], 11);
        }
    }

    fn heading(&mut self, name: &'static str) {
        self.gap();
        self.push(vec![Span::styled(name, BOLD)], 0);
    }

    fn items(&mut self, name: &'static str, of: &[String], style: Style) {
        if !of.is_empty() {
            self.heading(name);
            of.iter().for_each(|it| self.push(vec![Span::raw("- "), Span::styled(plain(it), style)], 2));
        }
    }

    fn records(&mut self, attempts: &[Attempt], notes: &[Note], now: Time) {
        let mut entry = |word: &str, text: &str, at: Option<Time>, by: Option<&str>| {
            let ago = at.map(|it| time::ago(now, it));
            let head = [by.map(str::to_owned), ago].into_iter().flatten().collect::<Vec<_>>().join(", ");
            let style = colour(screens::colour(word));
            let spans =
                vec![Span::styled(plain(word), style), Span::styled(format!("  {}", plain(&head)), DIM)];
            self.push(spans, 2);
            text.trim().lines().for_each(|it| self.push(vec![Span::raw(format!("  {}", plain(it)))], 2));
        };
        for (nth, it) in attempts.iter().rev().enumerate() {
            if nth == 0 {
                entry("Attempts", "", None, None);
            }
            let word = it.outcome.as_deref().unwrap_or("attempt");
            entry(word, it.notes.as_deref().unwrap_or_default(), it.at, it.by.as_deref());
        }
        for (nth, it) in notes.iter().rev().enumerate() {
            if nth == 0 {
                entry("Notes", "", None, None);
            }
            entry(it.kind.word(), &it.text, it.at, it.by.as_deref());
        }
    }

    fn problems(&mut self, of: &[serde_json::Value]) {
        let said = |it: &serde_json::Value| {
            let text = |key: &str| it[key].as_str().unwrap_or_default().to_owned();
            format!("{}:{}: {}", text("path"), it["line"], text("message"))
        };
        let all: Vec<_> = of.iter().map(said).collect();
        self.items("Problems", &all, Style::new().fg(Color::Red));
    }
}

pub(super) fn draw(model: &mut Model, frame: &mut Frame<'_>, area: Rect) {
    let block = framed("Details", model.focus == Focus::Details);
    let inner = block.inner(area);
    frame.render_widget(block, area);
    let mut text = Text { width: inner.width.into(), lines: Vec::new() };
    match (&model.step, &model.plan) {
        _ if model.focus == Focus::Plans => model.plan.iter().for_each(|it| plan(&mut text, it, model.now)),
        (Some(shown), _) => step(&mut text, shown, model.now),
        // The step's text is still being read.
        (None, Some(_)) if model.step_id.is_some() => {
            if let Some(step) = model.selected() {
                title(&mut text, &step.id, &step.title);
            }
        }
        (None, Some(shown)) => plan(&mut text, shown, model.now),
        (None, None) => {}
    }
    let most = text.lines.len().saturating_sub(inner.height.into());
    model.scroll = model.scroll.min(most);
    let shown: Vec<_> = text.lines.into_iter().skip(model.scroll).take(inner.height.into()).collect();
    frame.render_widget(Paragraph::new(shown), inner);
    if most > model.scroll && area.width > 12 {
        let more = Rect { x: area.right() - 9, y: area.bottom() - 1, width: 7, height: 1 };
        frame.render_widget(Paragraph::new(" more ↓").style(DIM), more);
    }
    model.hits.push((area, Hit::Details));
}

fn title(text: &mut Text, id: &str, title: &str) {
    let title = plain(screens::own_title(id, title));
    text.push(vec![Span::styled(plain(id), super::ACCENT), Span::raw("  "), Span::styled(title, BOLD)], 2);
}

fn step(text: &mut Text, shown: &ShownStep, now: Time) {
    let step = &shown.step;
    title(text, &step.id, &step.title);
    let word = if step.ready && step.status == "pending" { "ready" } else { step.status.as_str() };
    let style = if word == "ready" { colour(screens::READY) } else { colour(screens::colour(word)) };
    let mut facts = vec![Span::styled(format!("{} {}", screens::mark(&step.status), plain(word)), style)];
    let more = [
        step.lapsed.then(|| "the claim lapsed".to_owned()),
        step.unverified.then(|| "not verified".to_owned()),
        step.phase.as_ref().map(|it| format!("phase {it}")),
        (step.tasks_total > 0).then(|| format!("tasks {}", step_screen::tasks(step))),
        step.due.map(|it| format!("due {it}")),
        (!step.tags.is_empty()).then(|| format!("#{}", step.tags.join(" #"))),
    ];
    facts.extend(more.into_iter().flatten().map(|it| Span::raw(format!(" · {}", plain(&it)))));
    text.push(facts, 2);
    text.gap();
    text.fact("waits for", &shown.waits_for.join(", "), Style::new().fg(Color::Yellow));
    if shown.waits_for.is_empty() {
        text.fact("depends on", &step.shown_depends().join(", "), Style::new());
    }
    text.fact("needed by", &shown.dependants.join(", "), Style::new());
    text.fact("worker", step_screen::worker(step), Style::new());
    let until = shown.held.as_ref().and_then(|it| it.until).map(|it| it.whole_seconds().to_string());
    text.fact("until", &until.unwrap_or_default(), Style::new());
    let gate = match (shown.is_gated, &shown.confirmation) {
        (false, _) => String::new(),
        (true, None) => "not yet (y confirms)".to_owned(),
        (true, Some(it)) => format!("yes, {}", it.by.as_deref().unwrap_or_default()),
    };
    text.fact("confirmed", &gate, Style::new());
    // The attempts below contain all lines of the result.
    let result = step.result.as_deref().unwrap_or_default().trim();
    let (first, has_more) = result.split_once('\n').map_or((result, ""), |(first, _)| (first.trim(), " …"));
    text.fact("result", &format!("{first}{has_more}"), Style::new());
    text.problems(&shown.problems);
    text.gap();
    let body = markdown(&shown.body, &step.title, text.width);
    text.lines.extend(body);
    text.gap();
    text.records(&step.attempts, &step.notes, now);
    let decided = |it: &planwatch::plan::decision::Decision| {
        format!("{}: {}", it.topic, it.decision.trim().lines().next().unwrap_or_default())
    };
    text.items("Decisions", &shown.decisions.iter().map(decided).collect::<Vec<_>>(), Style::new());
}

fn plan(text: &mut Text, shown: &ShownPlan, now: Time) {
    let plan = &shown.plan;
    title(text, &plan.id, &plan.title);
    let mut facts = vec![Span::raw(format!("{} ", screens::bar_of(plan)))];
    for (nth, (said, style)) in plan_screen::status_parts(plan).into_iter().enumerate() {
        facts.extend([
            Span::raw(if nth == 0 { " " } else { ", " }),
            Span::styled(plain(&said), colour(style)),
        ]);
    }
    text.push(facts, 2);
    text.gap();
    text.fact("program", plan.program.as_deref().unwrap_or_default(), Style::new());
    text.fact("due", &plan.due.map(|it| it.to_string()).unwrap_or_default(), Style::new());
    text.items("Goals", &plan.goals, Style::new());
    text.items("Success criteria", &plan.success_criteria, Style::new());
    text.problems(&shown.problems);
    text.gap();
    let own = crate::screens::text::without_steps_list(&shown.body);
    let body = markdown(&own, &plan.title, text.width);
    text.lines.extend(body);
    text.gap();
    text.records(&[], &plan.notes, now);
}

/// Draws the output and the elapsed time of a worker: the worker of the run that this board started, with the cost of that
/// run, or else the worker of a run in another process.
pub(super) fn run(model: &Model, frame: &mut Frame<'_>, area: Rect) {
    let clock = |seconds: u64| format!("{}:{:02}", seconds / 60, seconds % 60);
    let (title, output, end) = match (&model.run, &model.output) {
        (Some(run), _) => {
            let cost = run.cost.map(|it| format!(" · ${it:.2}")).unwrap_or_default();
            let title = format!("Run {}", plain(&run.step));
            let title = format!("{} · {}{cost}", title.trim_end(), clock(run.elapsed()));
            (title, Cow::Borrowed(run.output.as_str()), run.end.as_deref())
        }
        (None, Some(output)) => {
            let seconds = output.since.map_or(0, |it| model.now.seconds_since(it));
            let by = plain(output.by.as_deref().unwrap_or("a worker"));
            let title = format!("{by}, in another process · {}", clock(u64::try_from(seconds).unwrap_or(0)));
            (title, String::from_utf8_lossy(&output.tail), None)
        }
        (None, None) => return,
    };
    let title = cut(&title, usize::from(area.width).saturating_sub(6));
    let block = framed(&title, end.is_none());
    let inner = block.inner(area);
    frame.render_widget(block, area);
    let text = output.lines().chain(end);
    let without_codes = |it: &str| plain(&anstream::adapter::strip_str(it).to_string());
    // Only the last lines are shown, so only these are wrapped.
    let last: Vec<_> = text.collect();
    let from = last.len().saturating_sub(inner.height.into());
    let lines =
        last[from..].iter().flat_map(|it| wrap(&Line::from(without_codes(it)), inner.width.into(), 0));
    let lines: Vec<_> = lines.collect();
    let from = lines.len().saturating_sub(inner.height.into());
    frame.render_widget(Paragraph::new(lines[from..].to_vec()), inner);
}
