//! The open plan: columns, list, graph and timeline.

use std::collections::HashMap;

use planwatch::api::views::{Awaited, StepShape};
use planwatch::plan::id::{StepId, read_step_id};
use planwatch::plan::model::Order;
use planwatch::plan::time::Time;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;

use super::prose::{cut, plain, wrap};
use super::{ACCENT, BOLD, DIM, SELECTED, colour, first_row, framed, highlight};
use crate::board::model::{Column, Focus, Hit, Model, View};
use crate::screens::{self, ago, steps as step_screen};

/// The minimum width of a column of cards.
const CARD: u16 = 15;

/// The minimum height of a column with gaps between its cards.
const TALL: u16 = 18;

/// Limits for the lines of a card's title. A column uses the first limit with which all its cards fit. The limit for
/// the text below the title is lower by one.
const CARD_ROWS: [usize; 4] = [9, 6, 4, 3];

/// The width of the frame in which all columns fit.
pub(super) const ALL_COLUMNS: u16 = 5 * (CARD + 1) + 1;

pub(super) fn draw(model: &mut Model, frame: &mut Frame<'_>, area: Rect) {
    let name = model.selected_plan().map(|it| plain(&it.title)).unwrap_or_default();
    let title = if name.is_empty() { String::new() } else { format!("{} · {name}", model.view.name()) };
    let title = cut(&title, usize::from(area.width).saturating_sub(6));
    let block = framed(&title, model.focus == Focus::Steps);
    let inner = block.inner(area);
    frame.render_widget(block, area);
    model.hits.push((area, Hit::Steps));
    if model.steps().is_empty() {
        let said = match &model.plan {
            None if model.plan_id.is_some() => "reading the plan",
            Some(it) if !it.children.is_empty() => "A program: its plans are at the left.",
            Some(_) => "The plan has no steps yet; + adds one.",
            None => "",
        };
        frame.render_widget(Paragraph::new(said).style(DIM), inner);
        return;
    }
    if model.shown().is_empty() {
        frame.render_widget(Paragraph::new("no match").style(DIM), inner);
        return;
    }
    match model.view {
        View::Columns => columns(model, frame, inner),
        View::List => lines(model, frame, inner, list_line),
        View::Graph => graph(model, frame, inner),
        View::Timeline => timeline(model, frame, inner),
    }
}

/// The columns in the order in which they are chosen if not all fit.
const BY_IMPORTANCE: [Column; 5] =
    [Column::Ready, Column::Doing, Column::Stuck, Column::Waiting, Column::Done];

/// The columns to draw: as many columns with steps as fit, always including the column of the selected step.
fn shown_columns(model: &Model, width: u16) -> Vec<Column> {
    let full: Vec<_> = BY_IMPORTANCE.into_iter().filter(|it| !model.column(*it).is_empty()).collect();
    let own = model.selected().map(Column::of);
    let others = full.iter().copied().filter(|it| Some(*it) != own);
    let fit = usize::from((width + 1) / (CARD + 1)).max(1);
    let mut shown: Vec<_> = own.into_iter().chain(others).take(fit).collect();
    shown.sort_unstable();
    shown
}

/// Draws as many columns with steps as fit. Below them, it lists the other columns with the number of their steps.
fn columns(model: &mut Model, frame: &mut Frame<'_>, area: Rect) {
    let shown = shown_columns(model, area.width);
    // If the area has few rows, cards matter more than counts.
    let rest = u16::from(shown.len() < Column::ALL.len() && area.height > 4);
    let [main, foot] = Layout::vertical([Constraint::Min(1), Constraint::Length(rest)]).areas(area);
    frame.render_widget(Paragraph::new("also:").style(DIM), foot);
    let mut x = foot.x + 6;
    // A card can be dropped on the name of a column that is not shown.
    for column in Column::ALL.iter().filter(|it| !shown.contains(it)) {
        let (name, style) = column_head(model, *column);
        let width = u16::try_from(name.len()).unwrap_or(0);
        let place = Rect { x, width, ..foot }.intersection(foot);
        frame.render_widget(Paragraph::new(name).style(style), place);
        model.hits.push((place, Hit::Column(*column)));
        x += width + 2;
    }
    let places = Layout::horizontal(vec![Constraint::Fill(1); shown.len()]).spacing(1).split(main);
    for (column, place) in shown.iter().zip(places.iter()) {
        one_column(model, frame, *column, *place);
    }
}

fn head_style(column: Column) -> Style {
    match column {
        Column::Waiting => Style::new(),
        Column::Ready => colour(screens::READY),
        Column::Doing => colour(screens::BUSY),
        Column::Stuck => colour(screens::BAD),
        Column::Done => colour(screens::GOOD),
    }
}

/// The name of a column with the number of its steps; reversed, if a card is dragged over it.
fn column_head(model: &Model, column: Column) -> (String, Style) {
    let is_target = model.dragged.as_ref().is_some_and(|it| it.1 == Some(column));
    let style = if is_target { SELECTED } else { head_style(column) };
    (format!("{} {}", column.name(), model.column(column).len()), style)
}

fn one_column(model: &mut Model, frame: &mut Frame<'_>, column: Column, area: Rect) {
    let steps = model.column(column);
    let [head, body] = Layout::vertical([Constraint::Length(1), Constraint::Min(0)]).areas(area);
    let (name, style) = column_head(model, column);
    let style = style.patch(BOLD);
    let style = if style.add_modifier.contains(Modifier::REVERSED) { style } else { style.underlined() };
    let head_line = Line::styled(cut(&name, head.width.into()), style);
    frame.render_widget(Paragraph::new(head_line), head);
    let mut hits = vec![(area, Hit::Column(column))];
    // In a tall column there are gaps between cards. Cards have as many lines as possible while all of them still fit.
    let is_tall = body.height >= TALL;
    let (least, gap) = if is_tall { (3, 1) } else { (2, 0) };
    let height = |rows: usize| {
        let all = steps.iter().map(|it| card(it, body.width.into(), rows).len() + usize::from(gap));
        all.sum::<usize>().saturating_sub(usize::from(gap))
    };
    // A card has at least one line, so more cards than lines never fit.
    let may_fit = steps.len() <= usize::from(body.height);
    let whole = CARD_ROWS.into_iter().find(|it| may_fit && height(*it) <= usize::from(body.height));
    let rows = whole.unwrap_or(least).max(least);
    let card = |nth: usize| card(steps[nth], body.width.into(), rows);
    let at = steps.iter().position(|it| Some(&it.id) == model.step_id.as_ref());
    let mut first = at.unwrap_or(0);
    // Cards above the selected one are drawn as long as these cards and the selected one take at most two thirds of the
    // height.
    let mut height = if steps.is_empty() { 0 } else { card(first).len() };
    while first > 0 {
        height += card(first - 1).len() + usize::from(gap);
        if height > usize::from(body.height) * 2 / 3 {
            break;
        }
        first -= 1;
    }
    let mut y = body.y;
    for (nth, step) in steps.iter().enumerate().skip(first) {
        let lines = card(nth);
        let height = u16::try_from(lines.len()).unwrap_or(1).min(body.bottom().saturating_sub(y));
        if height == 0 {
            break;
        }
        let place = Rect { y, height, ..body };
        let is_selected = Some(nth) == at;
        let style = if is_selected { BOLD } else { Style::new() };
        frame.render_widget(Paragraph::new(lines).style(style), place);
        if is_selected && model.focus != Focus::Plans {
            highlight(frame, place);
        }
        hits.push((place, Hit::Step(step.id.clone())));
        y += height + gap;
    }
    model.hits.append(&mut hits);
}

fn step_style(step: &StepShape) -> Style {
    let is_ready = step.ready && step.status == "pending";
    colour(if is_ready { screens::READY } else { screens::colour(&step.status) })
}

/// A card: the title in at most `rows` lines, and below it facts such as the worker, the tasks and what the step waits
/// for.
fn card(step: &StepShape, width: usize, rows: usize) -> Vec<Line<'static>> {
    let style = step_style(step);
    let head = format!("{} ", screens::mark(&step.status));
    let title = vec![
        Span::styled(head, style),
        Span::styled(format!("{} ", step.number), BOLD),
        Span::raw(plain(&step.title)),
    ];
    let mut lines = wrap(&Line::from(title), width, 2);
    shorten(&mut lines, rows, width);
    let is_unknown =
        Column::of(step) == Column::Stuck && !matches!(step.status.as_str(), "failed" | "blocked");
    let facts = [
        if is_unknown { "file has an error".to_owned() } else { String::new() },
        if step.lapsed { "lapsed".to_owned() } else { String::new() },
        if is_to_confirm(step) { "to confirm".to_owned() } else { String::new() },
        step_screen::worker(step).to_owned(),
        step_screen::tasks(step),
        if step.waits_for.is_empty() || is_to_confirm(step) {
            String::new()
        } else {
            format!("← {}", waits(step))
        },
    ];
    let facts: Vec<_> = facts.iter().filter(|it| !it.is_empty()).map(|it| plain(it)).collect();
    if !facts.is_empty() {
        let mut below = wrap(&Line::styled(format!("  {}", facts.join(" · ")), DIM), width, 2);
        shorten(&mut below, rows - 1, width);
        lines.extend(below);
    }
    lines
}

/// Keeps at most `rows` lines. If lines were removed, the last kept line ends with `…`.
fn shorten(lines: &mut Vec<Line<'static>>, rows: usize, width: usize) {
    if lines.len() > rows {
        lines.truncate(rows);
        let last = &mut lines[rows - 1];
        let text: String = last.spans.iter().map(|it| it.content.as_ref()).collect();
        let style = last.spans.last().map_or(Style::new(), |it| it.style);
        let text = format!("{}…", cut(&text, width.saturating_sub(1)).trim_end_matches('…'));
        *last = Line::styled(text, style);
    }
}

/// Whether the step waits only for a person's confirmation.
fn is_to_confirm(step: &StepShape) -> bool {
    matches!(step.waits_for.as_slice(), [Awaited::Confirmation])
}

/// What the step waits for, at most eight entries. Steps of its own plan are written as their number.
fn waits(step: &StepShape) -> String {
    step.shown_waits(8)
}

/// The texts at the right of a line; none if the line is too narrow.
fn joined(of: &[String], width: usize) -> String {
    let said: Vec<_> = of.iter().filter(|it| !it.is_empty()).map(|it| plain(it)).collect();
    if width > 50 && !said.is_empty() { format!(" {}", said.join(" · ")) } else { String::new() }
}

fn list_line(step: &StepShape, width: usize, now: Time) -> Line<'static> {
    let state = screens::short_state(step);
    let state = anstream::adapter::strip_str(&state.painted()).to_string();
    let style = step_style(step);
    let number = format!("{:>5} ", step.number);
    let title = plain(&step.title);
    let mut right =
        vec![step_screen::worker(step).to_owned(), step_screen::tasks(step), ago(now, step.last_activity)];
    // The title matters most: if it does not fit, the time is left out, then the tasks.
    let room = loop {
        let said = joined(&right, width);
        let room = width.saturating_sub(number.len() + 15 + Span::raw(&said).width());
        if right.len() < 2 || Span::raw(&title).width() <= room {
            break room;
        }
        right.pop();
    };
    let right = joined(&right, width);
    let title = cut(&title, room);
    let gap = " ".repeat(room.saturating_sub(Span::raw(&title).width()));
    Line::from(vec![
        Span::styled(number, BOLD),
        Span::styled(format!("{state:<15}"), style),
        Span::raw(title),
        Span::raw(gap),
        Span::styled(right, DIM),
    ])
}

fn lines(
    model: &mut Model,
    frame: &mut Frame<'_>,
    area: Rect,
    line: impl Fn(&StepShape, usize, Time) -> Line<'static>,
) {
    let steps = model.shown();
    let at = steps.iter().position(|it| Some(&it.id) == model.step_id.as_ref());
    let first = first_row(at.unwrap_or(0), area.height.into(), steps.len());
    let mut hits = Vec::new();
    for (nth, step) in steps.iter().enumerate().skip(first).take(area.height.into()) {
        let place = Rect { y: area.y + u16::try_from(nth - first).unwrap_or(0), height: 1, ..area };
        frame.render_widget(Paragraph::new(line(step, area.width.into(), model.now)), place);
        if Some(nth) == at && model.focus != Focus::Plans {
            highlight(frame, place);
        }
        hits.push((place, Hit::Step(step.id.clone())));
    }
    model.hits.append(&mut hits);
}

/// The steps that a step depends on, and the step before it, which `before` contains for a sequential plan.
fn awaited<'a>(step: &'a StepShape, before: &'a HashMap<String, StepId>) -> impl Iterator<Item = &'a StepId> {
    step.depends.iter().chain(before.get(&step.id))
}

/// Each step is indented by the length of its longest chain of dependencies, as far as there is room; what it waits
/// for comes after its title.
fn graph(model: &mut Model, frame: &mut Frame<'_>, area: Rect) {
    let steps = model.steps();
    let ids: Vec<_> = steps.iter().map(|it| read_step_id(&it.id)).collect();
    // In a sequential plan, each step also waits for the step before it.
    let is_sequential = model.plan.as_ref().is_some_and(|it| it.plan.order == Order::Sequential);
    let pairs = steps.iter().skip(1).zip(&ids).filter(|_| is_sequential);
    let before: HashMap<String, StepId> =
        pairs.filter_map(|(step, before)| Some((step.id.clone(), before.clone()?))).collect();
    let mut ranks: HashMap<&StepId, usize> = HashMap::new();
    // A step can depend on a later one, so ranks are computed again until they no longer change, at most 64 times.
    for _ in 0..steps.len().min(64) {
        let mut has_changed = false;
        for (step, id) in steps.iter().zip(&ids) {
            let Some(id) = id else { continue };
            let known = awaited(step, &before).filter_map(|it| ranks.get(it));
            let rank = known.max().map_or(0, |it| (it + 1).min(24));
            has_changed |= ranks.insert(id, rank) != Some(rank);
        }
        if !has_changed {
            break;
        }
    }
    let ranks: HashMap<String, usize> = ranks.into_iter().map(|(id, rank)| (id.to_string(), rank)).collect();
    let near = model.selected().map(|it| (it.id.clone(), awaited(it, &before).cloned().collect::<Vec<_>>()));
    lines(model, frame, area, |step, width, _| {
        let (id, selected) = near.clone().unwrap_or_default();
        let is_near = read_step_id(&step.id).is_some_and(|it| selected.contains(&it))
            || read_step_id(&id).is_some_and(|id| awaited(step, &before).any(|it| *it == id));
        let style = colour(screens::colour(&step.status));
        let own = format!("{}:", step.plan);
        let mut short: Vec<_> = step.shown_depends().iter().map(|it| it.replace(&own, "")).collect();
        let before = before.get(&step.id).map(|it| it.number.to_string());
        short.extend(before.filter(|it| !short.contains(it)));
        let arrow = if short.is_empty() { String::new() } else { format!("  ← {}", short.join(", ")) };
        let rank = ranks.get(&step.id).copied().unwrap_or(0);
        let indent = "  ".repeat(rank.min(width / 6));
        let room = width.saturating_sub(indent.len() + 2 + step.number.len() + 1);
        let title = cut(&plain(&step.title), room.saturating_sub(Span::raw(&arrow).width()).max(room / 2));
        Line::from(vec![
            Span::raw(indent),
            Span::styled(format!("{} ", screens::mark(&step.status)), style),
            Span::styled(format!("{} ", step.number), BOLD),
            Span::styled(title, if is_near { ACCENT } else { Style::new() }),
            Span::styled(plain(&arrow), if is_near { ACCENT } else { DIM }),
        ])
    });
}

/// The times recorded in a step's file, each with its mark in the timeline.
fn times(step: &StepShape) -> Vec<(Time, char)> {
    let created = step.created_at.map(|it| (it, '·'));
    let claimed = step.claim.as_ref().and_then(|it| it.at).map(|it| (it, '◐'));
    let word = |it: &str| match it {
        "completed" | "done" | "ok" => '●',
        "failed" => '✗',
        "blocked" => '■',
        "skipped" => '–',
        _ => '◐',
    };
    let attempts = step.attempts.iter();
    let attempts = attempts.filter_map(|it| Some((it.at?, word(it.outcome.as_deref().unwrap_or_default()))));
    let mut all: Vec<_> = created.into_iter().chain(attempts).chain(claimed).collect();
    all.sort_by_key(|it| it.0);
    all
}

/// Draws when steps were worked on. The left edge is the first recorded time of the plan, the right edge the last one.
fn timeline(model: &mut Model, frame: &mut Frame<'_>, area: Rect) {
    let all: Vec<_> = model.steps().iter().flat_map(times).map(|it| it.0).collect();
    let (Some(first), Some(last)) = (all.iter().min().copied(), all.iter().max().copied()) else {
        frame.render_widget(Paragraph::new("Nothing has been recorded yet.").style(DIM), area);
        return;
    };
    let name_width = usize::from(area.width) / 3;
    let chart = usize::from(area.width).saturating_sub(name_width + 1).max(1);
    let day = |it: Time| it.to_string().chars().take(10).collect::<String>();
    let [head, body] = Layout::vertical([Constraint::Length(1), Constraint::Min(0)]).areas(area);
    let (from, to) = (day(first), day(last));
    let gap = " ".repeat(chart.saturating_sub(from.len() + to.len()));
    let axis = format!("{}{from}{gap}{to}", " ".repeat(name_width + 1));
    frame.render_widget(Paragraph::new(cut(&axis, area.width.into())).style(DIM), head);
    let span = last.seconds_since(first).max(1);
    let column = move |at: Time| {
        let part =
            i128::from(at.seconds_since(first)) * i128::try_from(chart - 1).unwrap_or(0) / i128::from(span);
        usize::try_from(part).unwrap_or(0).min(chart - 1)
    };
    lines(model, frame, body, |step, _, _| {
        let times = times(step);
        let mut row = vec![' '; chart];
        if let (Some(from), Some(to)) = (times.first(), times.last()) {
            row[column(from.0)..=column(to.0)].fill('─');
        }
        times.iter().for_each(|(at, mark)| row[column(*at)] = *mark);
        let title = cut(&format!("{} {}", step.number, plain(&step.title)), name_width);
        let pad = " ".repeat((name_width + 1).saturating_sub(Span::raw(&title).width()));
        let style = colour(screens::colour(&step.status));
        Line::from(vec![
            Span::raw(title),
            Span::raw(pad),
            Span::styled(row.into_iter().collect::<String>(), style),
        ])
    });
}
