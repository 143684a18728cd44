//! Aligned tables that are fitted to the width of the terminal. Without a width, as in a pipe, nothing is cut.
//!
//! The texts of cells are escaped here. The short forms of cells, and lines across all columns, are not: the caller must
//! escape them with `output::escaped`.

use anstyle::Style;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::output::escaped;
use crate::screens::text::fitted;

/// The spaces between two columns.
const GAP: usize = 2;
/// [`Yields::Whole`] columns are left out only if the table does not fit with text columns of this width.
const TEXT_LEAST: usize = 24;
/// [`Yields::Extra`] and text columns are cut down to this width before further columns are left out.
const LEAST: usize = 10;
/// If the table is drawn without a width, a [`Yields::Extra`] column that is wider than this is not padded.
const FILLED: usize = 60;
/// The separator between two parts of a cell.
const BETWEEN: &str = ", ";
/// Used instead of a width for a column that is not padded.
const UNFILLED: usize = usize::MAX;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Cell {
    text: String,
    /// A shorter form of the text for narrow terminals; empty if there is none.
    short: String,
    style: Style,
    /// The colours of the parts of the text; empty if the whole text has `style`.
    parts: Vec<Style>,
}

impl Cell {
    /// Returns the whole text with its colours, for use outside a table.
    pub(crate) fn painted(&self) -> String {
        self.paint(&self.text, Words::Whole)
    }

    /// Adds a shorter form of the text, for narrow tables.
    #[must_use]
    pub(crate) fn or_short(self, short: impl Into<String>) -> Self {
        Self { short: short.into(), ..self }
    }

    /// Colours `text`, which is the cell's text or its short form, possibly cut.
    fn paint(&self, text: &str, words: Words) -> String {
        if self.parts.is_empty() || words == Words::Short && !self.short.is_empty() {
            return paint(self.style, text);
        }
        // If a part contains the separator, there are more pieces than colours. The remaining pieces get the last
        // colour.
        let style = |nth: usize| self.parts.get(nth).or(self.parts.last()).copied().unwrap_or_default();
        let parts = text.split(BETWEEN).enumerate();
        parts.map(|(nth, it)| paint(style(nth), it)).collect::<Vec<_>>().join(BETWEEN)
    }

    fn text(&self, words: Words) -> &str {
        if words == Words::Short && !self.short.is_empty() { &self.short } else { &self.text }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Words {
    Whole,
    Short,
}

/// Makes a cell without colour.
pub(crate) fn cell(text: impl Into<String>) -> Cell {
    Cell { text: text.into(), ..Cell::default() }
}

/// Makes a cell of several parts, each with its colour. `style` is the colour of the short form.
pub(crate) fn in_parts(parts: Vec<(String, Style)>, style: Style) -> Cell {
    let (texts, parts): (Vec<_>, Vec<_>) = parts.into_iter().unzip();
    Cell { text: texts.join(BETWEEN), parts, style, ..Cell::default() }
}

pub(crate) fn styled(style: Style, text: impl Into<String>) -> Cell {
    Cell { text: text.into(), style, ..Cell::default() }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Align {
    Left,
    Right,
}

/// What happens to a column if the terminal is too narrow. `Table::fitted` describes the order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Yields {
    /// Left out, not cut.
    Whole,
    /// Left out before a text column is cut to [`TEXT_LEAST`].
    Spare,
    /// Cut before any other column, and left out if that is not enough.
    Extra,
    /// Free text, which is cut. It is left out only if the table also has a [`Self::Name`] column, after all columns of the
    /// other kinds that can be left out.
    Text,
    /// Left out if cutting text columns is not enough.
    Last,
    /// A name that people copy and that distinguishes the rows. It is never cut or left out, even if the line becomes
    /// wider than the terminal. If a long name in the first column leaves no room for other columns, they are on the next
    /// line.
    Name,
    Nothing,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Column {
    head: &'static str,
    align: Align,
    yields: Yields,
}

/// Makes a column. It is not shown if all its cells are empty.
pub(crate) fn column(head: &'static str, yields: Yields) -> Column {
    Column { head, align: Align::Left, yields }
}

pub(crate) fn numbers(head: &'static str, yields: Yields) -> Column {
    Column { head, align: Align::Right, yields }
}

#[derive(Debug, Clone)]
enum Row {
    Cells(Vec<Cell>),
    /// A line of text across all columns.
    Line(String),
}

#[derive(Debug, Clone)]
pub(crate) struct Table {
    columns: Vec<Column>,
    rows: Vec<Row>,
    indent: usize,
}

impl Table {
    pub(crate) fn new(columns: impl IntoIterator<Item = Column>) -> Self {
        Self { columns: columns.into_iter().collect(), rows: Vec::new(), indent: 0 }
    }

    #[must_use]
    pub(crate) fn indented(self, indent: usize) -> Self {
        Self { indent, ..self }
    }

    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = Cell>) {
        // A line break in a text would end the row.
        let safe = |it: Cell| Cell { text: escaped(&it.text).into_owned(), ..it };
        self.rows.push(Row::Cells(cells.into_iter().map(safe).collect()));
    }

    /// Adds a line of text across all columns. The rows before and after it stay aligned with each other.
    pub(crate) fn line(&mut self, line: impl Into<String>) {
        self.rows.push(Row::Line(line.into()));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Draws the table; without a width nothing is cut.
    pub(crate) fn draw(&self, width: Option<usize>) -> String {
        let (words, mut widths) = self.fitted(width);
        if width.is_none() {
            let is_long =
                |(at, it): &&mut (usize, usize)| *it > FILLED && self.columns[*at].yields == Yields::Extra;
            widths.iter_mut().filter(is_long).for_each(|(_, it)| *it = UNFILLED);
        }
        let mut drawn = String::new();
        if widths.iter().any(|(at, _)| !self.columns[*at].head.is_empty()) {
            let heads =
                self.columns.iter().map(|it| styled(Style::new().dimmed(), it.head)).collect::<Vec<_>>();
            self.draw_row(&mut drawn, &heads, &widths, words);
        }
        for row in &self.rows {
            match row {
                Row::Cells(cells) => self.draw_row(&mut drawn, cells, &widths, words),
                Row::Line(line) => {
                    drawn.push_str(&fitted(line, width));
                    drawn.push('\n');
                }
            }
        }
        drawn
    }

    fn cells(&self) -> impl Iterator<Item = &Vec<Cell>> {
        self.rows.iter().filter_map(|it| match it {
            Row::Cells(cells) => Some(cells),
            Row::Line(_) => None,
        })
    }

    /// The columns that have a text in some row: the index and the width of each. The width is that of the widest text or
    /// that of the head, whichever is larger. Names in the first column that are wider than `names` do not count.
    fn shown_columns(&self, words: Words, names: usize) -> Vec<(usize, usize)> {
        let wanted = |at: usize| {
            let most = if self.is_names(at) { names } else { usize::MAX };
            let widths = self.cells().filter_map(|it| it.get(at)).map(|it| it.text(words).width());
            let (counted, longer): (Vec<_>, Vec<_>) = widths.partition(|it| *it <= most);
            let widest = counted.into_iter().max().unwrap_or(0);
            (widest > 0 || !longer.is_empty()).then(|| widest.max(self.columns[at].head.width()))
        };
        (0..self.columns.len()).filter_map(|at| Some((at, wanted(at)?))).collect()
    }

    /// Fits the table into the width. Uses short forms if the table does not fit with text columns of [`TEXT_LEAST`], then
    /// leaves columns out. Then cuts [`Yields::Extra`] columns first, then text columns, then all except names and numbers.
    ///
    /// Columns are left out in the order [`Yields::Whole`], [`Yields::Spare`], [`Yields::Extra`], [`Yields::Last`],
    /// [`Yields::Text`], and within each kind from right to left.
    ///
    /// If names leave no room for a [`Yields::Last`] column, those that are wider than half a line do not count.
    fn fitted(&self, width: Option<usize>) -> (Words, Vec<(usize, usize)>) {
        let Some(width) = width.map(|it| it.saturating_sub(self.indent)) else {
            return (Words::Whole, self.shown_columns(Words::Whole, usize::MAX));
        };
        let lasting = |columns: &[(usize, usize)]| {
            columns.iter().filter(|(at, _)| self.columns[*at].yields == Yields::Last).count()
        };
        let whole = self.fitted_with(width, usize::MAX);
        if lasting(&whole.1) == lasting(&self.shown_columns(whole.0, usize::MAX)) {
            return whole;
        }
        let broken = self.fitted_with(width, width / 2);
        if lasting(&broken.1) > lasting(&whole.1) { broken } else { whole }
    }

    fn is_names(&self, at: usize) -> bool {
        at == 0 && self.columns[at].yields == Yields::Name
    }

    fn fitted_with(&self, width: usize, names: usize) -> (Words, Vec<(usize, usize)>) {
        let columns = self.shown_columns(Words::Whole, names);
        let yields = |at: usize| self.columns[at].yields;
        let with_texts_cut = |columns: &[(usize, usize)]| {
            let is_text = |at: usize| yields(at) == Yields::Text;
            total(columns.iter().map(|(at, it)| if is_text(*at) { TEXT_LEAST.min(*it) } else { *it }))
        };
        let (words, mut columns) = if with_texts_cut(&columns) <= width {
            (Words::Whole, columns)
        } else {
            (Words::Short, self.shown_columns(Words::Short, names))
        };
        while with_texts_cut(&columns) > width {
            let Some(at) = columns.iter().rposition(|(at, _)| yields(*at) == Yields::Whole) else { break };
            columns.remove(at);
        }
        let with_extras_cut = |columns: &[(usize, usize)]| {
            total(columns.iter().map(|(at, it)| match yields(*at) {
                Yields::Extra => LEAST.min(*it),
                Yields::Text => (TEXT_LEAST + 1).min(*it),
                _ => *it,
            }))
        };
        while with_extras_cut(&columns) > width {
            let Some(at) = columns.iter().rposition(|(at, _)| yields(*at) == Yields::Spare) else { break };
            columns.remove(at);
        }
        let with_all_cut = |columns: &[(usize, usize)]| {
            let is_cut = |at: usize| matches!(yields(at), Yields::Extra | Yields::Text);
            total(columns.iter().map(|(at, it)| if is_cut(*at) { LEAST.min(*it) } else { *it }))
        };
        while with_all_cut(&columns) > width {
            let last = |what: Yields| columns.iter().rposition(|(at, _)| yields(*at) == what);
            let text = || last(Yields::Name).and_then(|_| last(Yields::Text));
            let Some(at) = last(Yields::Extra).or_else(|| last(Yields::Last)).or_else(text) else { break };
            columns.remove(at);
        }
        self.cut_columns(&mut columns, width);
        (words, columns)
    }

    fn cut_columns(&self, columns: &mut [(usize, usize)], width: usize) {
        let rounds = [(Some(Yields::Extra), LEAST), (Some(Yields::Text), LEAST), (None, 1)];
        for (what, least) in rounds {
            while total(columns.iter().map(|(_, it)| *it)) > width {
                let can_shrink = |(at, it): &&mut (usize, usize)| {
                    let of = &self.columns[*at];
                    // Right-aligned columns contain numbers. Like names, they are not cut.
                    let is_name = of.yields == Yields::Name || of.align == Align::Right;
                    what.map_or(!is_name, |what| of.yields == what) && *it > least
                };
                let Some((_, widest)) = columns.iter_mut().filter(can_shrink).max_by_key(|(_, it)| *it)
                else {
                    break;
                };
                *widest -= 1;
            }
        }
    }

    fn draw_row(&self, drawn: &mut String, cells: &[Cell], widths: &[(usize, usize)], words: Words) {
        let mut line = " ".repeat(self.indent);
        let mut owed = 0;
        let empty = Cell::default();
        for (at, width) in widths {
            let cell = cells.get(*at).unwrap_or(&empty);
            if self.is_names(*at) && cell.text(words).width() > *width {
                line.push_str(&cell.paint(cell.text(words), words));
                if widths.iter().skip(1).any(|(at, _)| cells.get(*at).is_some_and(|it| !it.text.is_empty())) {
                    drawn.push_str(&line);
                    drawn.push('\n');
                    line = " ".repeat(self.indent);
                    owed = *width + GAP;
                }
                continue;
            }
            let text = cut(cell.text(words), *width);
            let pad = if *width == UNFILLED { 0 } else { width.saturating_sub(text.width()) };
            if self.columns[*at].align == Align::Right {
                owed += pad;
            }
            if text.is_empty() && *width == UNFILLED {
                continue;
            }
            if !text.is_empty() {
                line.push_str(&" ".repeat(owed));
                owed = 0;
                line.push_str(&cell.paint(&text, words));
            }
            if self.columns[*at].align == Align::Left {
                owed += pad;
            }
            owed += GAP;
        }
        drawn.push_str(&line);
        drawn.push('\n');
    }
}

fn total(widths: impl Iterator<Item = usize>) -> usize {
    widths.map(|it| it + GAP).sum::<usize>().saturating_sub(GAP)
}

/// Puts the codes of a style around a text. `Output` removes the codes if colours are off.
pub(crate) fn paint(style: Style, text: &str) -> String {
    if style.is_plain() || text.is_empty() { text.to_owned() } else { format!("{style}{text}{style:#}") }
}

/// Cuts a text to a width in columns of the terminal. A cut text ends with `…`.
pub(crate) fn cut(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut kept = String::new();
    let mut used = 1;
    for c in text.chars() {
        used += c.width().unwrap_or(0);
        if used > width {
            break;
        }
        kept.push(c);
    }
    let mut kept = kept.trim_end().to_owned();
    kept.push('…');
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(rows: &[[&str; 4]]) -> Table {
        let mut table = Table::new([
            column("plan", Yields::Name),
            numbers("n", Yields::Nothing),
            column("title", Yields::Text),
            column("last", Yields::Whole),
        ]);
        for row in rows {
            table.row(row.map(cell));
        }
        table
    }

    fn plain(table: &Table, width: Option<usize>) -> String {
        anstream::adapter::strip_str(&table.draw(width)).to_string()
    }

    #[track_caller]
    fn check(rows: &[[&str; 4]], width: Option<usize>, expected: &str) {
        assert_eq!(plain(&table(rows), width), expected);
    }

    #[test]
    fn columns_are_aligned_and_lines_have_no_trailing_spaces() {
        let rows = [["auth", "1", "Schema", ""], ["billing", "12", "", "today"]];
        check(&rows, None, "plan      n  title   last\nauth      1  Schema\nbilling  12          today\n");
    }

    #[test]
    fn a_spare_column_makes_room_for_the_text_beside_it() {
        let mut table = Table::new([
            numbers("", Yields::Nothing),
            column("title", Yields::Text),
            numbers("tasks", Yields::Spare),
        ]);
        table.row([cell("1"), cell("Inventory of what reads and writes"), cell("12/14")]);
        assert_eq!(
            plain(&table, Some(36)),
            "   title                       tasks\n1  Inventory of what reads a…  12/14\n"
        );
        assert_eq!(plain(&table, Some(34)), "   title\n1  Inventory of what reads and wr…\n");
    }

    #[test]
    fn parts_of_a_cell_have_their_own_colours() {
        let (red, green) = (anstyle::AnsiColor::Red.on_default(), anstyle::AnsiColor::Green.on_default());
        let cell = in_parts(vec![("1 ready".to_owned(), green), ("2 failed".to_owned(), red)], red);
        assert_eq!(cell.painted(), format!("{}, {}", paint(green, "1 ready"), paint(red, "2 failed")));
        let cell = in_parts(vec![("draft, incomplete".to_owned(), green)], green);
        assert_eq!(anstream::adapter::strip_str(&cell.painted()).to_string(), "draft, incomplete");
    }

    #[test]
    fn a_line_break_in_a_text_ends_no_row() {
        check(&[["a", "1", "one\ntwo", ""]], None, "plan  n  title\na     1  one\\ntwo\n");
    }

    #[test]
    fn an_empty_column_is_left_out() {
        check(&[["auth", "", "Schema", ""]], None, "plan  title\nauth  Schema\n");
    }

    #[test]
    fn wide_characters_take_two_columns() {
        check(
            &[["計画", "1", "x", ""], ["abcd", "2", "y", ""]],
            None,
            "plan  n  title\n計画  1  x\nabcd  2  y\n",
        );
    }

    #[test]
    fn a_pipe_is_never_cut() {
        let long = "word ".repeat(100);
        assert!(plain(&table(&[["auth", "1", long.trim(), "today"]]), None).contains(long.trim()));
    }

    #[test]
    fn a_pipe_gets_no_padding_for_long_cells_of_other_rows() {
        let long = "word ".repeat(20);
        let columns =
            [column("plan", Yields::Name), column("said", Yields::Extra), column("at", Yields::Whole)];
        let mut table = Table::new(columns);
        for row in [["auth", long.trim(), "today"], ["b", "", "later"], ["b", "one", "then"]] {
            table.row(row.map(cell));
        }
        let drawn = plain(&table, None).replace(long.trim(), "LONG");
        assert_eq!(drawn, "plan  said  at\nauth  LONG  today\nb     later\nb     one  then\n");
    }

    #[test]
    fn optional_columns_are_dropped_first_then_texts_are_cut_and_names_never() {
        let rows = [[
            "a-rather-long-plan-name",
            "1",
            "A title that is a good deal longer than its column",
            "3 days ago",
        ]];
        let drawn = plain(&table(&rows), Some(60));
        assert!(
            !drawn.contains("last") && drawn.contains("a-rather-long-plan-name") && drawn.contains('…'),
            "{drawn}"
        );
        for width in 26..80 {
            let drawn = plain(&table(&rows), Some(width));
            assert!(drawn.contains("a-rather-long-plan-name"), "{width}:\n{drawn}");
            assert!(drawn.lines().all(|it| it.width() <= width), "{width}:\n{drawn}");
        }
    }

    #[test]
    fn short_words_come_before_a_column_goes_or_a_title_is_cut() {
        let title = "A title of more than 24 columns";
        let mut table = Table::new([
            column("status", Yields::Nothing),
            column("title", Yields::Text),
            column("at", Yields::Whole),
        ]);
        table.row([cell("in_progress (lapsed)").or_short("lapsed"), cell(title), cell("today")]);
        let drawn = |width| plain(&table, Some(width));
        assert!(drawn(80).contains("in_progress (lapsed)"));
        assert_eq!(
            drawn(50),
            format!("status  title                            at\nlapsed  {title}  today\n")
        );
        assert_eq!(drawn(33), "status  title\nlapsed  A title of more than 24…\n");
    }

    #[test]
    fn where_cuts_do_not_help_columns_go() {
        let mut table = Table::new([
            column("plan", Yields::Name),
            column("progress", Yields::Last),
            column("title", Yields::Text),
            column("waits for", Yields::Extra),
        ]);
        table.row([
            cell("a-long-plan-name"),
            cell("███░░ 3/5"),
            cell("A long title too"),
            cell("1, 2, 3, 4, 5, 6"),
        ]);
        assert_eq!(plain(&table, Some(34)), "plan              title\na-long-plan-name  A long title too\n");
        for width in 1..80 {
            let drawn = plain(&table, Some(width));
            assert!(width < 16 || drawn.lines().all(|it| it.width() <= width), "{width}:\n{drawn}");
        }
    }

    #[test]
    fn the_columns_beside_a_long_name_are_on_the_next_line() {
        let mut table = Table::new([
            column("plan", Yields::Name),
            column("progress", Yields::Last),
            column("now", Yields::Last),
            column("title", Yields::Text),
        ]);
        let long = "a-plan-name-of-more-than-half-a-line";
        table.row([cell(long), cell("███░░ 3/5"), cell("1 ready"), cell("A long title")]);
        table.row([cell("auth"), cell("░░░░░ 0/5"), cell("2 ready"), cell("Login")]);
        let broken = format!(
            "plan  progress   now      title\n{long}\n      ███░░ 3/5  1 ready  A long title\n\
             auth  ░░░░░ 0/5  2 ready  Login\n"
        );
        assert_eq!(plain(&table, Some(44)), broken);
        assert!(plain(&table, Some(70)).contains(&format!("{long}  ███░░ 3/5  1 ready")));
        assert!(plain(&table, None).contains(&format!("{long}  ███░░ 3/5  1 ready  A long title")));
    }

    #[test]
    fn two_long_names_never_look_alike() {
        let mut table = Table::new([column("", Yields::Nothing), column("", Yields::Name)]);
        let name = |end: &str| format!("{}-{end}:2.75", "migrate-the-ledger".repeat(4));
        for end in ["one", "two"] {
            table.row([cell("○ ready"), cell(name(end))]);
        }
        for width in 1..100 {
            let drawn = plain(&table, Some(width));
            assert!(drawn.contains(&name("one")) && drawn.contains(&name("two")), "{width}:\n{drawn}");
        }
    }

    #[test]
    fn a_cut_never_splits_a_wide_character() {
        assert_eq!(cut("計画書", 4), "計…");
        assert_eq!(cut("計画書", 6), "計画書");
        assert_eq!(cut("abc def", 5), "abc…");
    }
}
