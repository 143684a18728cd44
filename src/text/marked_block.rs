//! Appends a block of lines between two markers to a text file of the user. Removing the block restores the old bytes.
//!
//! ```text
//! <!-- planwatch:begin claude 1f0c9e77a2b34d58 -->
//! …
//! <!-- planwatch:end -->
//! ```
//!
//! The first marker contains the owners of the block (the agents, the editor or the tool that it was written for, such as
//! `claude`) and a hash of the lines between the markers. Callers do not remove a block whose lines were edited
//! ([`Block::is_sealed`]).
//!
//! If the file existed before, a blank line precedes the block. If the file's last line had no line end, the block has none
//! either, so that removing the block restores the same bytes.

use std::ops::Range;

use crate::text::line_index::{self, Place};
use crate::text::seal;

/// The text of the two markers, which are comments in the format of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Marks {
    begin: &'static str,
    close: &'static str,
    end: &'static str,
}

/// Comments of Markdown.
pub const MARKDOWN: Marks =
    Marks { begin: "<!-- planwatch:begin", close: " -->", end: "<!-- planwatch:end -->" };

/// Comments of Lua.
pub const LUA: Marks = Marks { begin: "-- planwatch:begin", close: "", end: "-- planwatch:end" };

/// Comments of git's own files, and of TOML.
pub const HASH: Marks = Marks { begin: "# planwatch:begin", close: "", end: "# planwatch:end" };

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    /// From the first marker to the end of the second one, with its line end.
    span: Range<usize>,
    line_end: &'static str,
    /// The owners in the first marker.
    pub of: Vec<String>,
    /// The lines between the markers, each with LF.
    pub lines: String,
    /// Whether the lines are unchanged since they were written.
    pub is_sealed: bool,
    marks: Marks,
}

/// A marker without its counterpart, or the marker of a second block, and its position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unpaired {
    pub place: Place,
    pub reason: &'static str,
}

/// Finds the block of a Markdown text. A second block is an error.
pub fn find(text: &str) -> Result<Option<Block>, Unpaired> {
    find_marked(&MARKDOWN, text)
}

/// Like [`find`], for another kind of file.
pub fn find_marked(marks: &Marks, text: &str) -> Result<Option<Block>, Unpaired> {
    let mut found: Option<Block> = None;
    let mut open: Option<(usize, &str)> = None;
    let unpaired = |at: usize, reason| Unpaired { place: line_index::place(text.as_bytes(), at), reason };
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let said = line.trim_end();
        if said.starts_with(marks.begin) && said.ends_with(marks.close) {
            if open.is_some() || found.is_some() {
                return Err(unpaired(at, "a second block of planwatch begins here"));
            }
            open = Some((at, line));
        } else if said == marks.end {
            let Some((start, first)) = open.take() else {
                return Err(unpaired(at, "a block of planwatch ends here, but does not begin"));
            };
            let inside = &text[start + first.len()..at];
            found = Some(block(marks, start..at + line.len(), first, inside));
        }
        at += line.len();
    }
    match open {
        Some((start, _)) => Err(unpaired(start, "a block of planwatch begins here, but does not end")),
        None => Ok(found),
    }
}

fn block(marks: &Marks, span: Range<usize>, first: &str, inside: &str) -> Block {
    let line_end = if first.ends_with("\r\n") { "\r\n" } else { "\n" };
    let words = first.trim_end().trim_start_matches(marks.begin).trim_end_matches(marks.close);
    let mut of: Vec<_> = words.split_whitespace().map(str::to_owned).collect();
    let seal = of.pop().unwrap_or_default();
    let lines = inside.replace("\r\n", "\n");
    let is_sealed = seal::of(&lines) == seal;
    Block { span, line_end, of, lines, is_sealed, marks: *marks }
}

pub fn put(text: Option<&str>, of: &[&str], lines: &str) -> String {
    put_marked(&MARKDOWN, text, of, lines)
}

/// Like [`put`], for another kind of file.
pub fn put_marked(marks: &Marks, text: Option<&str>, of: &[&str], lines: &str) -> String {
    let end = text.map_or("\n", first_line_end);
    let block = written(marks, of, lines, end);
    match text {
        None => block + end,
        Some(text) if text.is_empty() || text.ends_with('\n') => format!("{text}{end}{block}{end}"),
        Some(text) => format!("{text}{end}{end}{block}"),
    }
}

pub fn renew(text: &str, block: &Block, of: &[&str], lines: &str) -> String {
    let Range { start, end } = block.span;
    let last = if text[..end].ends_with('\n') { block.line_end } else { "" };
    format!("{}{}{last}{}", &text[..start], written(&block.marks, of, lines, block.line_end), &text[end..])
}

/// Removes the block; `None` if the file contains nothing else. Such a file was created for the block.
pub fn take(text: &str, block: &Block) -> Option<String> {
    let Range { start, end } = block.span;
    let (before, after) = (&text[..start], &text[end..]);
    if before.is_empty() && after.is_empty() {
        return None;
    }
    let one = before.strip_suffix(block.line_end);
    let kept = if text[start..end].ends_with('\n') {
        one.filter(|it| it.is_empty() || it.ends_with('\n'))
    } else {
        // The block was written without a final line end, because the text before it had none. In this case, two line ends
        // were inserted before the block.
        one.and_then(|it| it.strip_suffix(block.line_end)).or(one)
    };
    Some(kept.unwrap_or(before).to_owned() + after)
}

fn written(marks: &Marks, of: &[&str], lines: &str, end: &str) -> String {
    let names: String = of.iter().map(|it| format!(" {it}")).collect();
    let Marks { begin, close, end: last } = marks;
    format!("{begin}{names} {}{close}\n{lines}{last}", seal::of(lines)).replace('\n', end)
}

fn first_line_end(text: &str) -> &'static str {
    match text.find('\n') {
        Some(at) if text[..at].ends_with('\r') => "\r\n",
        _ => "\n",
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const END: &str = MARKDOWN.end;
    const LINES: &str = "## Plans\nOurs.\n";

    #[track_caller]
    fn check(before: Option<&str>, after: &str) {
        let put = put(before, &["claude"], LINES);
        let marks = format!("<!-- planwatch:begin claude {} -->", seal::of(LINES));
        assert_eq!(
            put.replace(&marks, "<<").replace(END, ">>").escape_debug().to_string(),
            after.escape_debug().to_string()
        );
        let block = find(&put).unwrap().unwrap();
        assert!(block.is_sealed && block.of == ["claude"] && block.lines == LINES, "{block:?}");
        assert_eq!(renew(&put, &block, &["claude"], LINES), put);
        assert_eq!(take(&put, &block).as_deref(), before);
    }

    #[test]
    fn a_block_is_appended_and_removed_without_a_trace() {
        check(None, "<<\n## Plans\nOurs.\n>>\n");
        check(Some(""), "\n<<\n## Plans\nOurs.\n>>\n");
        check(Some("\n"), "\n\n<<\n## Plans\nOurs.\n>>\n");
        check(Some("# A\n"), "# A\n\n<<\n## Plans\nOurs.\n>>\n");
        check(Some("# A"), "# A\n\n<<\n## Plans\nOurs.\n>>");
        check(Some("\u{feff}# A\r\nb\r\n"), "\u{feff}# A\r\nb\r\n\r\n<<\r\n## Plans\r\nOurs.\r\n>>\r\n");
        check(Some("a\r\nb"), "a\r\nb\r\n\r\n<<\r\n## Plans\r\nOurs.\r\n>>");
        check(Some("a\nb\r\n"), "a\nb\r\n\n<<\n## Plans\nOurs.\n>>\n");
        check(Some("a\r\nb\n"), "a\r\nb\n\r\n<<\r\n## Plans\r\nOurs.\r\n>>\r\n");
        check(Some("a\r"), "a\r\n\n<<\n## Plans\nOurs.\n>>");
    }

    #[test]
    fn marks_of_another_kind_of_file_are_read_back() {
        let put = put_marked(&HASH, Some("*.png binary\n"), &["git"], "plans/**/*.md merge=planwatch\n");
        assert!(
            put.lines().all(|it| it.is_empty() || it.starts_with('#') || !it.contains("planwatch:")),
            "{put}"
        );
        let block = find_marked(&HASH, &put).unwrap().unwrap();
        assert!(block.is_sealed && block.of == ["git"]);
        assert_eq!(take(&put, &block).as_deref(), Some("*.png binary\n"));
        assert_eq!(find(&put), Ok(None));
    }

    #[test]
    fn text_around_the_block_stays() {
        let put = put(Some("a\n"), &["claude"], LINES);
        let edited = format!("# New\n\n{put}\nmore");
        let block = find(&edited).unwrap().unwrap();
        assert_eq!(take(&edited, &block).unwrap(), "# New\n\na\n\nmore");
        let alone = super::put(None, &["claude"], LINES) + "more\n";
        assert_eq!(take(&alone, &find(&alone).unwrap().unwrap()).unwrap(), "more\n");
    }

    #[test]
    fn a_changed_line_breaks_the_seal_and_other_line_ends_do_not() {
        let put = put(Some("a\n"), &["claude", "codex"], LINES);
        assert!(!find(&put.replace("Ours", "Mine")).unwrap().unwrap().is_sealed);
        let crlf = find(&put.replace('\n', "\r\n")).unwrap().unwrap();
        assert!(crlf.is_sealed && crlf.of == ["claude", "codex"]);
        let renewed = renew(&put, &find(&put).unwrap().unwrap(), &["codex"], "Other.\n");
        let block = find(&renewed).unwrap().unwrap();
        assert!(block.is_sealed && block.of == ["codex"] && block.lines == "Other.\n");
        assert_eq!(take(&renewed, &block).unwrap(), "a\n");
    }

    #[test]
    fn unpaired_marks_are_reported_with_their_place() {
        let begin = "<!-- planwatch:begin claude 0 -->";
        let place = |text: &str| find(text).unwrap_err().place.line;
        assert_eq!(place(&format!("a\n{begin}\nb\n")), 2);
        assert_eq!(place(&format!("a\n{END}\n")), 2);
        assert_eq!(place(&format!("{begin}\n{begin}\n{END}\n")), 2);
        assert_eq!(place(&format!("{begin}\n{END}\n{begin}\n{END}\n")), 3);
        assert_eq!(find(&format!("see `{begin}` and {END}\n")), Ok(None));
    }

    proptest! {
        /// Inserting and removing a block restores any file byte for byte.
        #[test]
        fn put_and_take_is_nothing(text in "\u{feff}?([a-z#<>! -]{0,5}(\r\n|\n|\r)?){0,6}") {
            let put = put(Some(&text), &["claude"], LINES);
            let block = find(&put).unwrap().unwrap();
            prop_assert!(block.is_sealed);
            prop_assert_eq!(take(&put, &block), Some(text));
        }
    }
}
