//! The text of plans and steps, and diffs, with sparing colours.

use unicode_width::UnicodeWidthStr;

use crate::output::escaped_lines;
use crate::screens::{BAD, BOLD, DIM, GOOD, READY};
use crate::table::paint;

/// Shows a Markdown text as it stands; headings are bold.
///
/// A first heading that only repeats `title` is left out.
pub(crate) fn markdown(body: &str, title: &str) -> String {
    let body = body.trim_matches(['\n', '\r']);
    let mut is_code = false;
    let mut shown = String::new();
    for (nth, line) in body.lines().enumerate() {
        let is_fence = line.trim_start().starts_with("```") || line.trim_start().starts_with("~~~");
        is_code ^= is_fence;
        let heading = line.trim_start_matches('#');
        let is_heading = !is_code && heading.len() < line.len() && heading.starts_with(' ');
        if nth == 0 && is_heading && heading.trim() == title {
            continue;
        }
        let escaped = escaped_lines(line);
        shown.push_str(&if is_heading { paint(BOLD, &escaped) } else { escaped.into_owned() });
        shown.push('\n');
    }
    shown.trim_start_matches('\n').to_owned()
}

/// Shows a unified diff in the colours that everybody knows.
pub(crate) fn diff(diff: &str) -> String {
    let line = |line: &str| {
        let shown = escaped_lines(line);
        let style = match line.as_bytes() {
            [b'-', b'-', b'-', ..] | [b'+', b'+', b'+', ..] => BOLD,
            [b'-', ..] => BAD,
            [b'+', ..] => GOOD,
            [b'@', ..] => READY,
            [b'r', ..] => BOLD,
            [b'\\', ..] => DIM,
            _ => return format!("{shown}\n"),
        };
        format!("{}\n", paint(style, &shown))
    };
    diff.split_terminator('\n').map(line).collect()
}

/// A text below a heading, each line set in.
pub(crate) fn indented(text: &str, by: usize) -> String {
    let pad = " ".repeat(by);
    text.lines().map(|it| if it.is_empty() { "\n".to_owned() } else { format!("{pad}{it}\n") }).collect()
}

/// Breaks long lines between words where a terminal would break them anywhere.
pub(crate) fn wrapped(text: &str, width: Option<usize>) -> String {
    let Some(width) = width else { return text.to_owned() };
    let wrap = |line: &str| {
        let mut broken = String::new();
        let mut used = 0;
        for word in line.split(' ') {
            if used > 0 {
                let fits = used + 1 + word.width() <= width;
                broken.push(if fits { ' ' } else { '\n' });
                used = if fits { used + 1 } else { 0 };
            }
            broken.push_str(word);
            used += word.width();
        }
        broken
    };
    text.lines().map(wrap).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_break_between_words() {
        assert_eq!(wrapped("one two three\nfour", Some(8)), "one two\nthree\nfour");
        assert_eq!(wrapped("incomprehensibilities a", Some(8)), "incomprehensibilities\na");
        assert_eq!(wrapped("one two three", None), "one two three");
    }

    #[track_caller]
    fn check(body: &str, title: &str, expected: &str) {
        assert_eq!(anstream::adapter::strip_str(&markdown(body, title)).to_string(), expected);
    }

    #[test]
    fn a_text_is_shown_as_it_stands_without_a_second_title() {
        check("\n# Schema\n\nMake *tables*.\n", "Schema", "Make *tables*.\n");
        check("# Other\n\ttext\n", "Schema", "# Other\n\ttext\n");
        check("```\n# Schema\n```\n", "Schema", "```\n# Schema\n```\n");
        check("a \u{1b}[2J b\r\n", "", "a \\u{1b}[2J b\n");
        check("", "Schema", "");
    }

    #[test]
    fn a_diff_keeps_every_line() {
        let text = "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n c\n";
        assert_eq!(anstream::adapter::strip_str(&diff(text)).to_string(), text);
    }
}
