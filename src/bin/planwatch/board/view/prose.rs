//! Prepares text for the screen: escapes control characters, cuts text at a width, and wraps long lines between words.

use planwatch::text::typed::escaped;
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use tui_markdown::{Options, StyleSheet};
use unicode_width::UnicodeWidthChar;

use super::{ACCENT, BOLD, DIM};

/// [`visible`] without spaces at the end.
pub(super) fn plain(text: &str) -> String {
    visible(text.trim_end())
}

/// The text in one line, with control characters escaped. Terminals and this program measure the width of some characters
/// differently. So a flag is replaced by its two letters, and a character that only changes the look of another one is left
/// out.
pub(super) fn visible(text: &str) -> String {
    let shown = escaped(text);
    let letter = |c: char| match u32::from(c) {
        it @ 0x1F1E6..=0x1F1FF => char::from_u32(it - 0x1F1E6 + u32::from('A')),
        0xFE0F | 0x200D | 0x1F3FB..=0x1F3FF => None,
        _ => Some(c),
    };
    shown.chars().filter_map(letter).collect()
}

/// The beginning of a text, at most `width` columns wide. It ends with `…` if the text was cut.
pub(super) fn cut(text: &str, width: usize) -> String {
    let all: usize = text.chars().filter_map(UnicodeWidthChar::width).sum();
    if all <= width {
        return text.to_owned();
    }
    let mut used = 0;
    let fits = |c: &char| {
        used += c.width().unwrap_or(0);
        used < width
    };
    let kept: String = text.chars().take_while(fits).collect();
    if width == 0 { String::new() } else { format!("{kept}…") }
}

/// The end of a text, at most `width` columns wide.
pub(super) fn tail(text: &str, width: usize) -> String {
    let mut used = 0;
    let fits = |c: &char| {
        used += c.width().unwrap_or(0);
        used <= width
    };
    let kept: Vec<_> = text.chars().rev().take_while(fits).collect();
    kept.into_iter().rev().collect()
}

/// Breaks a line between words; the following rows are indented by `hang`. A word that is too long breaks anywhere.
pub(super) fn wrap(line: &Line<'_>, width: usize, hang: usize) -> Vec<Line<'static>> {
    let (width, hang) = (width.max(1), if hang + 4 < width { hang } else { 0 });
    let cells: Vec<(char, Style)> = line
        .spans
        .iter()
        .flat_map(|span| span.content.chars().map(|c| (c, line.style.patch(span.style))).collect::<Vec<_>>())
        .collect();
    let mut rows: Vec<Vec<(char, Style)>> = vec![Vec::new()];
    let (mut used, mut last_gap) = (0, None);
    for (c, style) in cells {
        let own = c.width().unwrap_or(0);
        if used + own > width && used > 0 {
            let row = rows.last_mut().expect("there is always one row");
            // What follows the last gap moves to the next row. If `c` is itself a space, nothing moves.
            let gap = last_gap.filter(|_| c != ' ');
            let rest = gap.map_or_else(Vec::new, |at: usize| row.split_off(at));
            while row.last().is_some_and(|(c, _)| *c == ' ') {
                row.pop();
            }
            let mut next: Vec<_> = std::iter::repeat_n((' ', Style::new()), hang).collect();
            next.extend(rest);
            used = next.iter().map(|(c, _)| c.width().unwrap_or(0)).sum();
            rows.push(next);
            last_gap = None;
            if c == ' ' {
                continue;
            }
        }
        let row = rows.last_mut().expect("there is always one row");
        row.push((c, style));
        used += own;
        // East Asian text breaks between any characters.
        if (c == ' ' && row.iter().any(|(c, _)| *c != ' ')) || own == 2 {
            last_gap = Some(row.len());
        }
    }
    rows.into_iter().map(line_of).collect()
}

fn line_of(row: Vec<(char, Style)>) -> Line<'static> {
    let mut spans: Vec<Span<'static>> = Vec::new();
    for (c, style) in row {
        match spans.last_mut() {
            Some(last) if last.style == style => last.content.to_mut().push(c),
            _ => spans.push(Span::styled(c.to_string(), style)),
        }
    }
    Line::from(spans)
}

/// The styles for Markdown: few, and readable without colours and on any background.
#[derive(Clone)]
struct Sheet;

impl StyleSheet for Sheet {
    fn heading(&self, _: u8) -> Style {
        ACCENT.patch(BOLD)
    }

    fn heading_marker(&self, _: u8) -> &str {
        ""
    }

    fn code(&self) -> Style {
        Style::new().fg(ratatui::style::Color::Yellow)
    }

    fn code_block_fence(&self) -> &str {
        ""
    }

    fn blockquote(&self) -> Style {
        DIM
    }

    fn list_marker(&self) -> Style {
        ACCENT
    }
}

/// A body as lines of this width, without a first heading that repeats the title.
pub(super) fn markdown(body: &str, title: &str, width: usize) -> Vec<Line<'static>> {
    let body = body.trim_matches(['\n', '\r']);
    let first = body.lines().next().unwrap_or_default();
    let repeats = first.starts_with('#') && first.trim_end().ends_with(title) && !title.is_empty();
    let body = if repeats { body.split_once('\n').map_or("", |it| it.1) } else { body };
    let clean: String = body.lines().map(|it| plain(&it.replace('\t', "    ")) + "\n").collect();
    let text = tui_markdown::from_str_with_options(&clean, &Options::new(Sheet));
    let mut lines: Vec<Line<'static>> = Vec::new();
    for line in &text.lines {
        let styled = Line { style: text.style.patch(line.style), ..line.clone() };
        let shown: String = line.spans.iter().map(|it| it.content.as_ref()).collect();
        let indent = shown.len() - shown.trim_start().len();
        let is_item = shown.trim_start().starts_with(['-', '*', '•', '>']);
        lines.extend(wrap(&styled, width, indent + if is_item { 2 } else { 0 }));
    }
    let is_empty = |it: &Line<'_>| it.spans.iter().all(|it| it.content.trim().is_empty());
    lines.dedup_by(|a, b| is_empty(a) && is_empty(b));
    while lines.first().is_some_and(is_empty) {
        lines.remove(0);
    }
    lines
}
