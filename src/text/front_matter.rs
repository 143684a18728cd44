//! Finds where the front matter of a file begins and ends.
//!
//! This module works on bytes, because a body need not be UTF-8. It does not parse YAML.

use std::ops::Range;

/// The largest front matter that is read, in bytes.
pub const MAX_FRONT_MATTER: usize = 1 << 20;

/// The largest file that is read, in bytes.
pub const MAX_FILE: usize = 4 << 20;

const BOM: &[u8] = b"\xEF\xBB\xBF";

/// A file, split into its byte order mark, front matter and body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parts<'a> {
    pub bytes: &'a [u8],
    pub has_bom: bool,
    pub header: Header,
}

/// The front matter of a file. The ranges of delimiter lines include the line ending. Offsets count from the start of the
/// file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Header {
    Absent,
    /// The first line opens a front matter that no line closes. Such a file must not be written.
    Unclosed,
    Present {
        open: Range<usize>,
        yaml: Range<usize>,
        close: Range<usize>,
    },
}

/// Splits a file at its delimiter lines; never fails.
///
/// A delimiter is `---` at the start of a line, followed only by blanks. `...` also closes a front matter. A lone carriage
/// return does not end a line, so a front matter with classic Mac line endings is `Unclosed`, and the file is not written.
pub fn split(bytes: &[u8]) -> Parts<'_> {
    let has_bom = bytes.starts_with(BOM);
    let start = if has_bom { BOM.len() } else { 0 };
    Parts { bytes, has_bom, header: header(bytes, start) }
}

impl<'a> Parts<'a> {
    /// The offset at which the body begins: after the byte order mark and the front matter. An unclosed front matter counts
    /// as part of the body.
    pub fn body_start(&self) -> usize {
        match &self.header {
            Header::Present { close, .. } => close.end,
            Header::Absent | Header::Unclosed if self.has_bom => BOM.len(),
            Header::Absent | Header::Unclosed => 0,
        }
    }

    pub fn body(&self) -> &'a [u8] {
        &self.bytes[self.body_start()..]
    }

    /// The bytes between the delimiter lines, which need not be UTF-8.
    pub fn yaml(&self) -> Option<&'a [u8]> {
        match &self.header {
            Header::Present { yaml, .. } => Some(&self.bytes[yaml.clone()]),
            Header::Absent | Header::Unclosed => None,
        }
    }
}

fn header(bytes: &[u8], start: usize) -> Header {
    let open = start..line_end(bytes, start);
    if !opens(&bytes[open.clone()]) {
        return Header::Absent;
    }
    let mut at = open.end;
    while at < bytes.len() {
        let end = line_end(bytes, at);
        if closes(&bytes[at..end]) {
            return Header::Present { yaml: open.end..at, open, close: at..end };
        }
        at = end;
    }
    Header::Unclosed
}

fn line_end(bytes: &[u8], start: usize) -> usize {
    let rest = bytes.get(start..).unwrap_or_default();
    rest.iter().position(|&it| it == b'\n').map_or(bytes.len(), |it| start + it + 1)
}

/// Whether a line opens a front matter. If lone carriage returns are the only line endings of a file, `line` is the whole
/// file.
fn opens(line: &[u8]) -> bool {
    let Some(rest) = line.strip_prefix(b"---") else { return false };
    let after = rest.iter().find(|it| !matches!(it, b' ' | b'\t'));
    matches!(after, None | Some(b'\r' | b'\n'))
}

fn closes(line: &[u8]) -> bool {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let rest = line.strip_prefix(b"---").or_else(|| line.strip_prefix(b"..."));
    rest.is_some_and(|it| it.iter().all(|byte| matches!(byte, b' ' | b'\t')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(file: &str, yaml: Option<&str>, body: &str) {
        let parts = split(file.as_bytes());
        assert_eq!(parts.yaml(), yaml.map(str::as_bytes), "yaml of {file:?}");
        assert_eq!(parts.body(), body.as_bytes(), "body of {file:?}");
    }

    #[test]
    fn delimiters_may_have_blanks_and_any_line_ending() {
        check("---\na: 1\n---\nbody", Some("a: 1\n"), "body");
        check("--- \t\r\na: 1\r\n--- \r\nbody", Some("a: 1\r\n"), "body");
        check("---\na: 1\n...\nbody\n---\n", Some("a: 1\n"), "body\n---\n");
        check("---\n---", Some(""), "");
        check("\u{feff}---\na: 1\n---\nbody", Some("a: 1\n"), "body");
    }

    #[test]
    fn text_that_resembles_a_delimiter_is_text() {
        check("----\na: 1\n----\n", None, "----\na: 1\n----\n");
        check(" ---\na: 1\n---\n", None, " ---\na: 1\n---\n");
        check("\n---\na: 1\n---\n", None, "\n---\na: 1\n---\n");
        check("---\na: |\n  ---\n ---\n--- x\n---\n", Some("a: |\n  ---\n ---\n--- x\n"), "");
        check("", None, "");
        check("\u{feff}# x", None, "# x");
    }

    #[test]
    fn an_unclosed_front_matter_differs_from_none() {
        for file in ["---\na: 1\n", "---", "---\n", "---\ra: 1\r---\r", "--- \ra\r"] {
            assert_eq!(split(file.as_bytes()).header, Header::Unclosed, "{file:?}");
        }
    }
}
