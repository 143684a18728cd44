//! Converts byte offsets to lines and columns, counted as editors and compilers do.

use borsh::{BorshDeserialize, BorshSerialize};

/// A position in a file. The line and the column count from 1. A column is one character wide.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, BorshSerialize, BorshDeserialize)]
pub struct Place {
    pub line: u32,
    pub column: u32,
}

impl Place {
    /// Where a problem of the whole file is reported.
    pub const START: Self = Self { line: 1, column: 1 };
}

/// Returns the position of the byte at `at`. An offset past the end counts as the end.
///
/// A line ends with LF; the CR of a CRLF belongs to its line. Bytes that are not UTF-8 count one column each. A byte
/// order mark at the start of the file does not count.
pub fn place(bytes: &[u8], at: usize) -> Place {
    let before = &bytes[..at.min(bytes.len())];
    // The chunks are so small that the sum of each fits into one byte. This lets the compiler vectorize the count.
    let ends = |part: &[u8]| usize::from(part.iter().fold(0_u8, |n, it| n + u8::from(*it == b'\n')));
    let line = before.chunks(255).map(ends).sum::<usize>() + 1;
    let start = before.iter().rposition(|&it| it == b'\n').map_or(0, |it| it + 1);
    Place { line: saturate(line), column: column(&before[start..], start) }
}

/// The column after the bytes `before` of a line. `start` is the offset of the line in its file.
fn column(before: &[u8], start: usize) -> u32 {
    let before = if start == 0 { before.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(before) } else { before };
    saturate(columns(before) + 1)
}

/// Like [`place`], but faster if `at` is on the same line as `from`, whose position is known: only the characters between
/// them are counted. A line of the front matter can name hundreds of steps (benchmark T16).
pub fn place_after(bytes: &[u8], (from, known): (usize, Place), at: usize) -> Place {
    match bytes.get(from..at) {
        Some(between) if from > 0 && !between.contains(&b'\n') => {
            Place { column: known.column.saturating_add(saturate(columns(between))), ..known }
        }
        _ => place(bytes, at),
    }
}

/// The offsets at which the lines of a file begin, for finding the positions of many bytes.
#[derive(Debug, Clone)]
pub struct Lines<'a> {
    bytes: &'a [u8],
    starts: Vec<usize>,
}

impl<'a> Lines<'a> {
    pub fn of(bytes: &'a [u8]) -> Self {
        let ends = bytes.iter().enumerate().filter(|(_, it)| **it == b'\n');
        Self { bytes, starts: std::iter::once(0).chain(ends.map(|(at, _)| at + 1)).collect() }
    }

    /// Like [`place`].
    pub fn place(&self, at: usize) -> Place {
        let at = at.min(self.bytes.len());
        let line = self.starts.partition_point(|it| *it <= at);
        let start = self.starts.get(line.saturating_sub(1)).copied().unwrap_or_default();
        Place { line: saturate(line), column: column(&self.bytes[start..at], start) }
    }
}

/// Returns the text of a line without its line ending. `line` counts from 1.
pub fn line_text(bytes: &[u8], line: u32) -> Option<String> {
    let nth = usize::try_from(line.checked_sub(1)?).ok()?;
    let raw = bytes.split(|&it| it == b'\n').nth(nth)?;
    Some(String::from_utf8_lossy(raw.strip_suffix(b"\r").unwrap_or(raw)).into_owned())
}

fn columns(in_line: &[u8]) -> usize {
    if in_line.is_ascii() {
        return in_line.len();
    }
    in_line.utf8_chunks().map(|it| it.valid().chars().count() + it.invalid().len()).sum()
}

fn saturate(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(bytes: &[u8], at: usize, line: u32, column: u32) {
        assert_eq!(place(bytes, at), Place { line, column });
    }

    #[test]
    fn an_index_of_the_lines_finds_the_same_places() {
        let texts: [&[u8]; 4] =
            [b"", b"\n", "\u{feff}a: é,\r\n\n \u{1f600}b\nc".as_bytes(), b"a\n\xff\xfe\n"];
        for text in texts {
            let lines = Lines::of(text);
            for at in 0..=text.len() + 2 {
                assert_eq!(lines.place(at), place(text, at), "{text:?} {at}");
            }
        }
    }

    #[test]
    fn a_place_after_a_known_one_is_the_same() {
        let text = "\u{feff}a: [1, é,\r\n  2, \u{1f600}, 3]\nb\n".as_bytes();
        for from in 0..=text.len() {
            for at in from..=text.len() + 1 {
                let known = (from, place(text, from));
                // An offset inside a character has no position.
                let is_between = |at: usize| text.get(at).is_some_and(|it| (0x80..0xC0).contains(it));
                if !is_between(from) && !is_between(at) {
                    assert_eq!(place_after(text, known, at), place(text, at), "{from} {at}");
                }
            }
        }
    }

    #[test]
    fn places_count_characters_and_lf() {
        check(b"", 0, 1, 1);
        check(b"ab\ncd", 4, 2, 2);
        check(b"ab\r\ncd", 4, 2, 1);
        check("é: x".as_bytes(), 3, 1, 3);
        check(b"\xEF\xBB\xBF---\n", 3, 1, 1);
        check(b"a\xFFb", 2, 1, 3);
        check(b"ab", 99, 1, 3);
    }

    #[test]
    fn a_line_is_shown_without_its_end() {
        assert_eq!(line_text(b"a\r\nb\n", 1).as_deref(), Some("a"));
        assert_eq!(line_text(b"a\r\nb\n", 2).as_deref(), Some("b"));
        assert_eq!(line_text(b"a", 0), None);
        assert_eq!(line_text(b"a", 9), None);
    }
}
