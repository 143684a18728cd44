//! Problems of files, each with its source line and what to do.

use std::fmt::Write;

use planwatch::plan::problem::{Problem, Severity};
use serde_json::Value;
use unicode_width::UnicodeWidthStr;

use crate::output::escaped;
use crate::screens::{BAD, BUSY, DIM, count};
use crate::table::{cut, paint};

/// `path:line:column: code: message`, the source line with a caret, the hint.
pub(crate) fn problem(problem: &Problem, path: &str, source: Option<&str>) -> String {
    let Problem { line, column, message, hint, .. } = problem;
    let style = if problem.severity() == Severity::Error { BAD } else { BUSY };
    let code = paint(style, problem.code.text());
    let mut said = format!("{}:{line}:{column}: {code}: {}\n", escaped(path), escaped(message));
    if let Some(source) = source.filter(|it| !it.trim().is_empty()) {
        said.push_str(&marked(*line, *column, source));
    }
    if !hint.is_empty() {
        writeln!(said, "    {} {}", paint(DIM, "hint:"), escaped(hint)).ok();
    }
    said
}

/// The line as it is in the file, and a caret below the column.
fn marked(line: u32, column: u32, source: &str) -> String {
    let at = usize::try_from(column).unwrap_or(1).saturating_sub(1);
    let before: String = source.chars().take(at).collect();
    let gutter = paint(DIM, &format!("{line:>5} |"));
    let empty = paint(DIM, "      |");
    let caret = " ".repeat(escaped(&before).width());
    // What is far along a line is out of sight anyway; the place says where it is.
    let caret =
        if caret.len() < 100 { format!("{empty} {caret}{}\n", paint(BAD, "^")) } else { String::new() };
    format!("{gutter} {}\n{caret}", cut(&escaped(source), 120))
}

/// A problem of an answer that has it as JSON, in one line and its hint.
pub(crate) fn listed(problem: &Value) -> String {
    let text = |key: &str| escaped(problem.get(key).and_then(Value::as_str).unwrap_or_default()).into_owned();
    let number = |key: &str| problem.get(key).and_then(Value::as_u64).unwrap_or(1);
    let style = if text("severity") == "error" { BAD } else { BUSY };
    let place = format!("{}:{}:{}", text("path"), number("line"), number("column"));
    let hint = text("hint");
    let hint = if hint.is_empty() { String::new() } else { format!("    {} {hint}\n", paint(DIM, "hint:")) };
    format!("  {place}: {}: {}\n{hint}", paint(style, &text("code")), text("message"))
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
        let said = problem(&found, "plans/a/step-1.md", Some("status: complted"));
        let said = anstream::adapter::strip_str(&said).to_string();
        let expected = "plans/a/step-1.md:3:9: unknown-status: no\n    3 | status: complted\n      |         ^\n    hint: say done\n";
        assert_eq!(said, expected);
    }
}
