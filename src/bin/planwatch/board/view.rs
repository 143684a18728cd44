//! Draws the model: the plans, the open plan in one of four ways, the details, the last event and the keys.

mod details;
mod prose;
mod steps;

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Borders, Clear, Paragraph};

use super::keys;
use super::model::{Focus, Hit, Model, Severity};
use super::prompt::PromptKind;
use crate::screens::{ago, plans as plan_screen};
use prose::{plain, visible};

pub(super) const DIM: Style = Style::new().add_modifier(Modifier::DIM);
pub(super) const BOLD: Style = Style::new().add_modifier(Modifier::BOLD);
const SELECTED: Style = Style::new().add_modifier(Modifier::REVERSED);
const ACCENT: Style = Style::new().fg(Color::Cyan);

/// The width and the height below which only the part with the focus is shown.
const SMALL: (u16, u16) = (60, 12);

/// The minimum width at which the details are drawn at the right.
const WIDE: u16 = 120;

/// The width of a column of the list of keys.
const HELP_COLUMN: u16 = 39;

/// The minimum width of the details at the right if the columns take more than 62 percent of the width.
const DETAILS: u16 = 36;

pub(crate) fn draw(model: &mut Model, frame: &mut Frame<'_>, is_coloured: bool) {
    model.hits.clear();
    let all = frame.area();
    let is_small = all.width < SMALL.0 || all.height < SMALL.1;
    let lines = foot(model, all.width.into(), all.height >= SMALL.1);
    let height = u16::try_from(lines.len()).unwrap_or(1);
    let [body, foot] = Layout::vertical([Constraint::Min(1), Constraint::Length(height)]).areas(all);
    if is_small {
        match model.focus {
            Focus::Plans => plans(model, frame, body),
            Focus::Steps => steps::draw(model, frame, body),
            Focus::Details => beside(model, frame, body),
        }
    } else {
        let left = if all.width >= WIDE { 32 } else { 22 };
        let [left, middle] = Layout::horizontal([Constraint::Length(left), Constraint::Min(1)]).areas(body);
        plans(model, frame, left);
        if all.width >= WIDE {
            // The columns get 62 percent of the width. They get more, at most `steps::ALL_COLUMNS`, if `DETAILS`
            // is left for the details.
            let columns =
                (middle.width * 62 / 100).max(middle.width.saturating_sub(DETAILS).min(steps::ALL_COLUMNS));
            let parts = [Constraint::Length(columns), Constraint::Min(1)];
            let [middle, right] = Layout::horizontal(parts).areas(middle);
            steps::draw(model, frame, middle);
            beside(model, frame, right);
        } else {
            let rows = if model.focus == Focus::Details { 75 } else { 42 };
            let parts = [Constraint::Percentage(100 - rows), Constraint::Percentage(rows)];
            let [middle, below] = Layout::vertical(parts).areas(middle);
            steps::draw(model, frame, middle);
            beside(model, frame, below);
        }
    }
    frame.render_widget(Paragraph::new(lines), foot);
    if model.help.is_some() {
        help(model, frame, all);
    }
    if !is_coloured {
        for cell in &mut frame.buffer_mut().content {
            (cell.fg, cell.bg) = (Color::Reset, Color::Reset);
        }
    }
}

/// Draws the details. If there is a worker, its output is drawn above them.
fn beside(model: &mut Model, frame: &mut Frame<'_>, area: Rect) {
    if model.run.is_none() && model.output.is_none() {
        return details::draw(model, frame, area);
    }
    let [above, below] =
        Layout::vertical([Constraint::Percentage(50), Constraint::Percentage(50)]).areas(area);
    details::run(model, frame, above);
    details::draw(model, frame, below);
}

/// A frame with a title; the part with the focus stands out.
pub(super) fn framed(title: &str, has_focus: bool) -> Block<'_> {
    let style = if has_focus { ACCENT } else { DIM };
    let title_style = if has_focus { ACCENT.patch(BOLD) } else { Style::new() };
    Block::new()
        .borders(Borders::ALL)
        .border_style(style)
        .title(Span::styled(if title.is_empty() { String::new() } else { format!(" {title} ") }, title_style))
}

/// Highlights what is already drawn: reverses it, and removes the colours of the text, which would become background
/// colours.
pub(super) fn highlight(frame: &mut Frame<'_>, area: Rect) {
    for position in area.positions() {
        if let Some(cell) = frame.buffer_mut().cell_mut(position) {
            cell.set_fg(Color::Reset);
            cell.modifier.remove(Modifier::DIM);
            cell.modifier.insert(Modifier::REVERSED);
        }
    }
}

/// A style of the command line as a style of ratatui.
pub(super) fn colour(of: anstyle::Style) -> Style {
    let mut style = Style::new();
    if let Some(anstyle::Color::Ansi(it)) = of.get_fg_color() {
        style = style.fg(match it {
            anstyle::AnsiColor::Red => Color::Red,
            anstyle::AnsiColor::Green => Color::Green,
            anstyle::AnsiColor::Yellow => Color::Yellow,
            anstyle::AnsiColor::Magenta => Color::Magenta,
            _ => Color::Cyan,
        });
    }
    let effects = of.get_effects();
    if effects.contains(anstyle::Effects::DIMMED) { style.patch(DIM) } else { style }
}

/// The first row to draw. It is chosen so that the selected row is among the `height` rows that are drawn.
pub(super) fn first_row(selected: usize, height: usize, total: usize) -> usize {
    selected.saturating_sub(height / 2).min(total.saturating_sub(height))
}

fn plans(model: &mut Model, frame: &mut Frame<'_>, area: Rect) {
    let rows = model.plan_rows();
    let title = format!("Plans {}", rows.len());
    let block = framed(&title, model.focus == Focus::Plans);
    let inner = block.inner(area);
    frame.render_widget(block, area);
    if rows.is_empty() {
        let said = match (model.is_loaded, model.search.is_empty()) {
            (false, _) => "reading the plans",
            (true, true) => "No plan is open.\n\n:new TITLE STEP… creates one",
            (true, false) => "no match",
        };
        let said = Paragraph::new(said).style(DIM).wrap(ratatui::widgets::Wrap { trim: true });
        frame.render_widget(said, inner);
        return;
    }
    let at = rows.iter().position(|(it, _)| Some(&it.id) == model.plan_id.as_ref());
    let first = first_row(at.unwrap_or(0), inner.height.into(), rows.len());
    let mut hits = Vec::new();
    for (nth, (plan, is_child)) in rows.iter().enumerate().skip(first).take(inner.height.into()) {
        let y = inner.y + u16::try_from(nth - first).unwrap_or(0);
        let place = Rect { y, height: 1, ..inner };
        let (mark, style) = plan_screen::sign(plan);
        let closed = plan.steps_completed + plan.steps_skipped;
        let progress =
            if plan.steps_total == 0 { String::new() } else { format!(" {closed}/{}", plan.steps_total) };
        let indent = if *is_child { "  " } else { "" };
        let room = usize::from(inner.width).saturating_sub(indent.len() + 2 + progress.len());
        let name = prose::cut(&plain(&plan.id), room);
        let gap = " ".repeat(room.saturating_sub(Span::raw(&name).width()));
        let line = Line::from(vec![
            Span::raw(indent),
            Span::styled(format!("{mark} "), colour(style)),
            Span::styled(name, if Some(nth) == at { BOLD } else { Style::new() }),
            Span::raw(gap),
            Span::styled(progress, DIM),
        ]);
        frame.render_widget(Paragraph::new(line), place);
        if Some(nth) == at && model.focus == Focus::Plans {
            highlight(frame, place);
        }
        hits.push((place, Hit::Plan(plan.id.clone())));
    }
    model.hits.append(&mut hits);
}

/// The most lines that a message may take.
const MOST_OF_MESSAGE: usize = 4;

/// The foot of the screen: what happened last, and below it the prompt or, if there is none, the keys. Without
/// `has_room`, it is one line: the prompt or, if there is none, what happened last.
fn foot(model: &Model, width: usize, has_room: bool) -> Vec<Line<'static>> {
    let mut lines = match (&model.message, &model.dragged) {
        (_, Some((id, Some(to)))) => {
            vec![Line::styled(format!("move {} to {}", plain(id), to.name()), ACCENT)]
        }
        (Some((severity, text)), _) => {
            let colour = if *severity == Severity::Success { Color::Green } else { Color::Red };
            // A message is wrapped, not cut at the width, so that a refusal can be read with its hint.
            prose::wrap(&Line::styled(plain(text), Style::new().fg(colour)), width, 0)
        }
        (None, _) => vec![what_happened(model, width)],
    };
    lines.truncate(if has_room { MOST_OF_MESSAGE } else { 1 });
    match &model.prompt {
        Some(_) if !has_room => prompt_lines(model, width, 1),
        Some(_) => {
            lines.extend(prompt_lines(model, width, 2));
            lines
        }
        None if has_room => {
            lines.push(Line::styled(foot_keys(model.is_plan_target(), width), DIM));
            lines
        }
        None => lines,
    }
}

fn what_happened(model: &Model, width: usize) -> Line<'static> {
    let is_searching = model.prompt.as_ref().is_some_and(|it| it.kind == PromptKind::Search);
    if !model.search.is_empty() && !is_searching {
        return Line::styled(
            prose::cut(&format!("search: {} (Esc ends it)", plain(&model.search)), width),
            ACCENT,
        );
    }
    if let Some(event) = &model.event {
        return Line::styled(prose::cut(&plain(event), width), DIM);
    }
    let ago = ago(model.now, model.selected_plan().and_then(|it| it.last_activity));
    Line::styled(if ago.is_empty() { String::new() } else { format!("last change {ago}") }, DIM)
}

/// The prompt, in at most `most` lines. If a question and its keys do not both fit, the question is cut.
fn prompt_lines(model: &Model, width: usize, most: usize) -> Vec<Line<'static>> {
    let Some(prompt) = model.prompt.as_ref() else { return Vec::new() };
    if !matches!(prompt.kind, PromptKind::Yes(_)) {
        return vec![prompt_line(model, width)];
    }
    let (label, keys) = (plain(&prompt.label), &prompt.keys);
    let style = ACCENT.patch(BOLD);
    let room = width.saturating_sub(Span::raw(keys).width() + 1);
    if most > 1 && Span::raw(&label).width() > room {
        return vec![
            Line::styled(prose::cut(&label, width), style),
            Line::styled(prose::cut(keys, width), style),
        ];
    }
    // In a narrow terminal the question still gets half of the width, because it matters as much as the keys.
    let label = prose::cut(&label, room.max(width / 2));
    vec![Line::styled(format!("{label} {keys}"), style)]
}

/// The line of a prompt, with the cursor, which is always visible.
fn prompt_line(model: &Model, width: usize) -> Line<'static> {
    let Some(prompt) = &model.prompt else { return Line::default() };
    let label = format!("{} › ", plain(&prompt.label));
    // A long label is cut to leave room for the typed text.
    let label = prose::cut(&label, width.saturating_sub(12).max(width / 2));
    let (before, after) = prompt.parts();
    let room = width.saturating_sub(Span::raw(&label).width() + 1);
    let mut after = visible(after).chars().collect::<Vec<_>>().into_iter();
    let cursor = after.next().unwrap_or(' ').to_string();
    Line::from(vec![
        Span::styled(label, ACCENT.patch(BOLD)),
        Span::raw(prose::tail(&visible(before), room)),
        Span::styled(cursor, SELECTED),
        Span::raw(after.collect::<String>()),
    ])
}

fn foot_keys(is_plan: bool, width: usize) -> String {
    let mut line = String::new();
    for key in keys::foot(is_plan) {
        let gap = if line.is_empty() { "" } else { "  " };
        if line.len() + gap.len() + key.len() > width {
            break;
        }
        line.extend([gap, key]);
    }
    line
}

/// The list of keys: in two columns if one column is too high and the width allows two. If the list still does not fit,
/// it can be scrolled.
fn help(model: &mut Model, frame: &mut Frame<'_>, all: Rect) {
    let is_plan = model.is_plan_target();
    let keys = keys::keys(is_plan);
    let n = keys.len();
    let is_high = n + 2 > usize::from(all.height);
    let n_columns: u16 = if is_high && all.width >= 2 * HELP_COLUMN + 2 { 2 } else { 1 };
    let n_rows = n.div_ceil(usize::from(n_columns));
    let width = if n_columns == 2 { (2 * HELP_COLUMN + 2).max(all.width.min(88)) } else { 44 };
    let height = u16::try_from(n_rows + 2).unwrap_or(u16::MAX);
    let area = all.centered(Constraint::Max(width), Constraint::Max(height));
    frame.render_widget(Clear, area);
    let block = framed(if is_plan { "keys for a plan" } else { "keys for a step" }, true);
    let inner = block.inner(area);
    frame.render_widget(block, area);
    let most = n_rows.saturating_sub(inner.height.into());
    let first = model.help.unwrap_or(0).min(most);
    model.help = Some(first);
    let columns = Layout::horizontal(vec![Constraint::Fill(1); usize::from(n_columns)]).split(inner);
    for (place, keys) in columns.iter().zip(keys.chunks(n_rows)) {
        // In a narrow box the names of the keys are not aligned, so that more of their descriptions is visible.
        let pad = if inner.width < 30 { 0 } else { 9 };
        let line = |(key, what): &(&'static str, &'static str)| {
            Line::from(vec![Span::styled(format!("{key:>pad$}  "), ACCENT), Span::raw(*what)])
        };
        let lines: Vec<_> = keys.iter().skip(first).map(line).collect();
        frame.render_widget(Paragraph::new(lines), *place);
    }
    for (is_there, sign, y) in
        [(first > 0, " ↑ ", area.y), (first < most, " ↓ ", area.bottom().saturating_sub(1))]
    {
        if is_there && area.width > 8 {
            let place = Rect { x: area.right() - 5, y, width: 3, height: 1 };
            frame.render_widget(Paragraph::new(sign).style(ACCENT), place);
        }
    }
}
