//! Shows the text of plans and steps, and diffs, with few colours. Breaks long lines.

use unicode_width::UnicodeWidthStr;

use crate::output::escaped_lines;
use crate::screens::{BAD, BOLD, DIM, GOOD, READY};
use crate::table::paint;

/// Shows a Markdown text with bold headings. Lines that are too long break between words, but not in code and tables.
///
/// A first heading that only repeats `title` is left out.
pub(crate) fn markdown(body: &str, title: &str, width: Option<usize>) -> String {
    let body = body.trim_matches(['\n', '\r']);
    let mut is_code = false;
    let mut shown = String::new();
    for (nth, line) in body.lines().enumerate() {
        is_code ^= is_fence(line);
        let heading = line.trim_start_matches('#');
        let is_heading = !is_code && heading.len() < line.len() && heading.starts_with(' ');
        if nth == 0 && is_heading && heading.trim() == title {
            continue;
        }
        let escaped = escaped_lines(line);
        let line = if is_heading { paint(BOLD, &escaped) } else { escaped.into_owned() };
        let is_whole = is_code || is_fence(&line) || line.trim_start().starts_with('|');
        shown.push_str(&if is_whole { line } else { hanging(&line, width, start_of_text(&line)) });
        shown.push('\n');
    }
    shown.trim_start_matches('\n').to_owned()
}

/// The column where the text of a line begins, after the mark of a list or a quotation.
fn start_of_text(line: &str) -> usize {
    let text = line.trim_start();
    let mark = text.split_once(' ').map_or("", |(it, _)| it);
    let is_mark = match mark.as_bytes() {
        [b'-' | b'*' | b'+' | b'>'] => true,
        [digits @ .., b'.' | b')'] => !digits.is_empty() && digits.iter().all(u8::is_ascii_digit),
        _ => false,
    };
    let behind = if is_mark { mark.len() + 1 } else { 0 };
    line.len() - text.len() + behind
}

/// Shows a unified diff in the usual colours.
pub(crate) fn diff(diff: &str) -> String {
    let line = |line: &str| {
        // A carriage return at the end of a line is not escaped: it is harmless there, and `git apply` needs the line
        // ends of the file.
        let (line, end) = line.strip_suffix('\r').map_or((line, "\n"), |it| (it, "\r\n"));
        let shown = escaped_lines(line);
        let style = match line.as_bytes() {
            [b'-', b'-', b'-', ..] | [b'+', b'+', b'+', ..] => BOLD,
            [b'-', ..] => BAD,
            [b'+', ..] => GOOD,
            [b'@', ..] => READY,
            [b'd' | b'i' | b'n' | b'r' | b's', ..] => BOLD,
            [b'\\', ..] => DIM,
            _ => return format!("{shown}{end}"),
        };
        format!("{}{end}", paint(style, &shown))
    };
    diff.split_terminator('\n').map(line).collect()
}

/// A text below a heading, each line indented.
pub(crate) fn indented(text: &str, by: usize) -> String {
    let pad = " ".repeat(by);
    text.lines().map(|it| if it.is_empty() { "\n".to_owned() } else { format!("{pad}{it}\n") }).collect()
}

/// Breaks long lines between words. Two spaces separate columns in a line. Continuation lines begin where the line's last
/// column begins. If the line has no columns, or the last one begins beyond half of the width, continuation lines are
/// indented by two more than the line. A last column that fits on a continuation line is not broken.
///
/// Without a width nothing is broken. A word that is longer than a line stays whole, and so does a command to type, because
/// a line break could be copied with it, for example inside quotes.
pub(crate) fn fitted(text: &str, width: Option<usize>) -> String {
    broken(text, width, |line, width| {
        let line = anstream::adapter::strip_str(line).to_string();
        let indent = line.width() - line.trim_start().width();
        let column = line.rfind("  ").map_or(0, |at| line[..at + 2].width());
        if column > indent && column <= width / 2 { column } else { indent + 2 }
    })
}

/// Like [`fitted`], with continuation lines indented by `hang`.
pub(crate) fn hanging(text: &str, width: Option<usize>, hang: usize) -> String {
    broken(text, width, |_, _| hang)
}

fn broken(text: &str, width: Option<usize>, hang: impl Fn(&str, usize) -> usize) -> String {
    let Some(width) = width else { return text.to_owned() };
    let wrap =
        |line: &str| if seen(line) > width { wrap(line, width, hang(line, width)) } else { line.to_owned() };
    text.split('\n').map(wrap).collect::<Vec<_>>().join("\n")
}

fn wrap(line: &str, width: usize, hang: usize) -> String {
    let mut done = String::new();
    let (mut used, mut gap, mut is_begun) = (0, 0, false);
    let mut command = command(line).len();
    for (nth, word) in line.split(' ').enumerate() {
        gap += usize::from(nth > 0);
        let is_in_command = command > 0;
        command = command.saturating_sub(word.len() + 1);
        if word.is_empty() {
            continue;
        }
        let mut needed = seen(word);
        if gap > 1 && used + gap > hang {
            // A column begins here. It is not broken if it fits on a continuation line.
            let column = line.splitn(nth + 1, ' ').last().map_or(0, seen);
            needed = if hang + column <= width { column } else { needed };
        }
        let is_full = is_begun && !is_in_command && used + gap + needed > width;
        let before = if is_full { hang } else { gap };
        if is_full {
            done.push('\n');
            used = 0;
        }
        done.push_str(&" ".repeat(before));
        done.push_str(word);
        used += before + seen(word);
        (gap, is_begun) = (0, true);
    }
    done
}

/// The command at the beginning of a line, up to the spaces before its explanation; empty if the line has none.
fn command(line: &str) -> &str {
    let indent = line.len() - line.trim_start().len();
    let is_command = indent == 2 && line[indent..].starts_with("planwatch ");
    let end = line[indent..].find("   ").map_or(line.len(), |it| indent + it);
    if is_command { &line[..end] } else { "" }
}

/// How many lines a terminal of this width needs for a text.
pub(crate) fn rows(text: &str, width: Option<usize>) -> usize {
    let of_line = |line: &str| width.map_or(1, |width| seen(line).div_ceil(width.max(1)).max(1));
    text.lines().map(of_line).sum()
}

/// The width of a text, without its codes for colours.
fn seen(text: &str) -> usize {
    anstream::adapter::strip_str(text).to_string().width()
}

/// Leaves out sections with the heading `Steps` that contain nothing but a list.
pub(crate) fn without_steps_list(body: &str) -> String {
    let mut kept: Vec<&str> = Vec::new();
    let mut is_code = false;
    let mut section: Option<(usize, usize)> = None;
    for line in body.split_inclusive('\n') {
        let level = if is_code { None } else { heading_level(line) };
        if let (Some((start, own)), Some(level)) = (section, level)
            && level <= own
        {
            leave_out(&mut kept, start);
            section = None;
        }
        is_code ^= is_fence(line);
        if let Some(level) = level.filter(|_| section.is_none() && is_steps(line)) {
            section = Some((kept.len(), level));
        }
        kept.push(line);
    }
    if let Some((start, _)) = section {
        leave_out(&mut kept, start);
    }
    kept.concat()
}

/// Removes the section at `start` if the lines below its heading are list items, indented or empty.
fn leave_out(kept: &mut Vec<&str>, start: usize) {
    let is_list = |line: &&str| {
        let text = line.trim_end();
        let marked = text.trim_start_matches(|c: char| c.is_ascii_digit());
        text.is_empty()
            || text.starts_with([' ', '\t'])
            || ["- ", "* ", "+ "].iter().any(|it| text.starts_with(it))
            || (marked.len() < text.len() && (marked.starts_with(". ") || marked.starts_with(") ")))
    };
    let items = &kept[start + 1..];
    if items.iter().all(is_list) && items.iter().any(|it| !it.trim().is_empty()) {
        kept.truncate(start);
    }
}

fn heading_level(line: &str) -> Option<usize> {
    let level = line.len() - line.trim_start_matches('#').len();
    ((1..=6).contains(&level) && line[level..].starts_with(' ')).then_some(level)
}

fn is_steps(line: &str) -> bool {
    line.trim_matches(|c: char| c == '#' || c == ':' || c.is_whitespace()).eq_ignore_ascii_case("steps")
}

fn is_fence(line: &str) -> bool {
    line.trim_start().starts_with("```") || line.trim_start().starts_with("~~~")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_break_between_words_below_their_last_column() {
        assert_eq!(hanging("one two three\nfour", Some(8), 0), "one two\nthree\nfour");
        assert_eq!(hanging("one two three", Some(9), 2), "one two\n  three");
        assert_eq!(hanging("incomprehensibilities a", Some(8), 0), "incomprehensibilities\na");
        assert_eq!(fitted("one two three", None), "one two three");
        assert_eq!(fitted("  done 1  to complete it", Some(21)), "  done 1  to complete\n          it");
        assert_eq!(fitted("  done 1234567  to complete it", Some(20)), "  done 1234567\n    to complete it");
        assert_eq!(fitted("  - one two three\n", Some(12)), "  - one two\n    three\n");
        assert_eq!(
            fitted("  planwatch run --command 'a b'   to continue the run", Some(20)),
            "  planwatch run --command 'a b'\n    to continue the\n    run"
        );
        let painted = format!("{} three four", paint(BAD, "one two"));
        assert_eq!(fitted(&painted, Some(13)), format!("{} three\n  four", paint(BAD, "one two")));
    }

    #[test]
    fn a_list_of_steps_is_left_out_and_any_other_text_stays() {
        let without = |text: &str| without_steps_list(text);
        assert_eq!(without("# A\n\n## Steps\n\n1. One\n   more\n- Two\n\n## End\nx\n"), "# A\n\n## End\nx\n");
        for whole in [
            "## Steps\n\nRead this.\n\n1. One\n",
            "```\n## Steps\n- a\n```\n",
            "## Steps\n",
            "## Footsteps\n- a\n",
        ] {
            assert_eq!(without(whole), whole);
        }
    }

    #[track_caller]
    fn check(body: &str, title: &str, expected: &str) {
        assert_eq!(anstream::adapter::strip_str(&markdown(body, title, None)).to_string(), expected);
    }

    #[test]
    fn a_long_text_breaks_between_words_but_not_in_code_and_tables() {
        let plain = |body: &str| anstream::adapter::strip_str(&markdown(body, "", Some(12))).to_string();
        assert_eq!(plain("one two three four"), "one two\nthree four\n");
        assert_eq!(plain("- [ ] one two three"), "- [ ] one\n  two three\n");
        assert_eq!(plain("  10. one two three"), "  10. one\n      two\n      three\n");
        assert_eq!(plain("# A heading that goes on"), "# A heading\nthat goes on\n");
        for whole in ["```\none two three four\n```\n", "| one | two | three |\n"] {
            assert_eq!(plain(whole), whole);
        }
    }

    #[test]
    fn rows_count_what_a_terminal_breaks() {
        assert_eq!(rows("a\nbb\n", Some(2)), 2);
        assert_eq!(rows("abc\n\nde", Some(2)), 4);
        assert_eq!(rows(&format!("{}\n", paint(BAD, "ab")), Some(2)), 1);
        assert_eq!(rows("abc\n", None), 1);
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
