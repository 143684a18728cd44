//! Problems of files, each with its source line and what to do.

use planwatch::plan::problem::{Problem, Severity};
use serde_json::Value;
use unicode_width::UnicodeWidthStr;

use crate::output::escaped;
use crate::screens::text::hanging;
use crate::screens::{BAD, BUSY, DIM, count};
use crate::table::{cut, paint};

/// `path:line:column: code: message`, the source line with a caret, the hint.
pub(crate) fn problem(problem: &Problem, path: &str, source: Option<&str>, width: Option<usize>) -> String {
    let Problem { line, column, message, hint, .. } = problem;
    let style = if problem.severity() == Severity::Error { BAD } else { BUSY };
    let code = paint(style, problem.code.text());
    let head = format!("{}:{line}:{column}: {code}: {}\n", escaped(path), escaped(message));
    let mut said = hanging(&head, width, 4);
    if let Some(source) = source.filter(|it| !it.trim().is_empty()) {
        said.push_str(&marked(*line, *column, source, width));
    }
    if !hint.is_empty() {
        let hint = format!("    {} {}\n", paint(DIM, "hint:"), escaped(hint));
        said.push_str(&hanging(&hint, width, 10));
    }
    said
}

/// The source line, cut to the width, and a caret below the column.
fn marked(line: u32, column: u32, source: &str, width: Option<usize>) -> String {
    let at = usize::try_from(column).unwrap_or(1).saturating_sub(1);
    let before: String = source.chars().take(at).collect();
    let gutter = paint(DIM, &format!("{line:>5} |"));
    let empty = paint(DIM, "      |");
    let caret = " ".repeat(escaped(&before).width());
    // A caret beyond the visible part of the line is left out; the first line of the problem names the column.
    let room = width.map_or(120, |it| it.saturating_sub(8)).min(120);
    let caret =
        if caret.len() < room { format!("{empty} {caret}{}\n", paint(BAD, "^")) } else { String::new() };
    format!("{gutter} {}\n{caret}", cut(&escaped(source), room))
}

/// A problem that an answer contains as JSON: one line, and the hint below it.
pub(crate) fn listed(problem: &Value, width: Option<usize>) -> String {
    let text = |key: &str| escaped(problem.get(key).and_then(Value::as_str).unwrap_or_default()).into_owned();
    let number = |key: &str| problem.get(key).and_then(Value::as_u64).unwrap_or(1);
    let style = if text("severity") == "error" { BAD } else { BUSY };
    let place = format!("{}:{}:{}", text("path"), number("line"), number("column"));
    let hint = text("hint");
    let hint = if hint.is_empty() { String::new() } else { format!("    {} {hint}\n", paint(DIM, "hint:")) };
    let head = format!("  {place}: {}: {}\n", paint(style, &text("code")), text("message"));
    hanging(&head, width, 4) + &hanging(&hint, width, 10)
}

/// `2 errors, 1 warning`.
pub(crate) fn sum(errors: usize, warnings: usize) -> String {
    let parts = [(errors, "error"), (warnings, "warning")];
    let parts: Vec<_> = parts.into_iter().filter(|(n, _)| *n > 0).map(|(n, what)| count(n, what)).collect();
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use planwatch::plan::problem::Code;
    use planwatch::text::line_index::Place;

    use super::*;

    #[test]
    fn the_caret_stands_below_the_column() {
        let found =
            Problem::at("a/step-1.md", Place { line: 3, column: 9 }, Code::UnknownStatus, "no", "say done");
        let said = problem(&found, "plans/a/step-1.md", Some("status: complted"), None);
        let said = anstream::adapter::strip_str(&said).to_string();
        let expected = "plans/a/step-1.md:3:9: unknown-status: no\n    3 | status: complted\n      |         ^\n    hint: say done\n";
        assert_eq!(said, expected);
    }
}
