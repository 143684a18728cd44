//! Converts byte offsets in a text to positions of the protocol, and back.
//!
//! In the protocol a line ends at LF, CRLF or a lone CR. Columns are counted in units that client and server agree on.

use std::ops::Range;

use super::protocol::{Position, Range as LspRange};
use crate::text::line_index::Place;

/// The unit in which positions count columns.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Encoding {
    Utf8,
    /// The only encoding that every client supports.
    #[default]
    Utf16,
    Utf32,
}

impl Encoding {
    /// Chooses from what a client offers. UTF-8 is preferred, because it needs no conversion.
    pub(super) fn choose<'a>(offered: impl IntoIterator<Item = &'a str>) -> Self {
        let known = offered.into_iter().filter_map(|it| match it {
            "utf-8" => Some(Self::Utf8),
            "utf-16" => Some(Self::Utf16),
            "utf-32" => Some(Self::Utf32),
            _ => None,
        });
        known.min_by_key(|it| *it as u8).unwrap_or_default()
    }

    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Utf8 => "utf-8",
            Self::Utf16 => "utf-16",
            Self::Utf32 => "utf-32",
        }
    }

    fn len(self, c: char) -> usize {
        match self {
            Self::Utf8 => c.len_utf8(),
            Self::Utf16 => c.len_utf16(),
            Self::Utf32 => 1,
        }
    }
}

/// The offsets at which the lines of a text begin.
#[derive(Debug, Clone, Default)]
pub(super) struct Lines {
    starts: Vec<usize>,
}

impl Lines {
    pub(super) fn of(text: &str) -> Self {
        let bytes = text.as_bytes();
        let ends = |(at, byte): (usize, &u8)| match byte {
            b'\n' => Some(at + 1),
            b'\r' if bytes.get(at + 1) != Some(&b'\n') => Some(at + 1),
            _ => None,
        };
        let starts = std::iter::once(0).chain(bytes.iter().enumerate().filter_map(ends)).collect();
        Self { starts }
    }

    #[cfg(test)]
    fn len(&self) -> usize {
        self.starts.len()
    }

    /// The number of the line that contains an offset. The first line has the number 0.
    pub(super) fn line_of(&self, at: usize) -> usize {
        self.starts.partition_point(|it| *it <= at).saturating_sub(1)
    }

    /// The range of a line without its line end. If there is no such line, an empty range at the end of the text.
    pub(super) fn line(&self, text: &str, line: usize) -> Range<usize> {
        let Some(start) = self.starts.get(line).copied() else { return text.len()..text.len() };
        let end = self.starts.get(line + 1).copied().unwrap_or(text.len());
        let whole = &text[start..end];
        start..start + whole.trim_end_matches(['\r', '\n']).len()
    }

    /// The position of an offset. An offset within a character or a line end counts as the start of the character or
    /// line end.
    pub(super) fn position(&self, text: &str, encoding: Encoding, at: usize) -> Position {
        let at = floor(text, at);
        let line = self.line_of(at);
        let whole = self.line(text, line);
        let before = &text[whole.start..at.min(whole.end)];
        let character = match before.is_ascii() {
            true => before.len(),
            false => before.chars().map(|it| encoding.len(it)).sum(),
        };
        Position { line: saturate(line), character: saturate(character) }
    }

    /// The offset of a position. A position beyond the end of its line counts as the end of the line. A position within a
    /// character counts as the start of the character.
    pub(super) fn offset(&self, text: &str, encoding: Encoding, position: Position) -> usize {
        let Ok(line) = usize::try_from(position.line) else { return text.len() };
        let whole = self.line(text, line);
        let wanted = usize::try_from(position.character).unwrap_or(usize::MAX);
        let line = &text[whole.clone()];
        if line.is_ascii() {
            return whole.start + wanted.min(line.len());
        }
        let mut units = 0;
        for (at, c) in line.char_indices() {
            units += encoding.len(c);
            if units > wanted {
                return whole.start + at;
            }
        }
        whole.end
    }

    pub(super) fn range(&self, text: &str, encoding: Encoding, range: &Range<usize>) -> LspRange {
        let place = |at| self.position(text, encoding, at);
        LspRange { start: place(range.start), end: place(range.end) }
    }

    /// The offsets of a range. If its end comes first, start and end are swapped.
    pub(super) fn offsets(&self, text: &str, encoding: Encoding, range: &LspRange) -> Range<usize> {
        let [a, b] = [range.start, range.end].map(|it| self.offset(text, encoding, it));
        a.min(b)..a.max(b)
    }
}

/// The offsets at which lines begin, for positions of problems. These positions count only LF as a line end.
#[derive(Debug)]
pub(super) struct Places<'a> {
    text: &'a str,
    starts: Vec<usize>,
}

impl<'a> Places<'a> {
    pub(super) fn of(text: &'a str) -> Self {
        let starts = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
        Self { text, starts }
    }

    /// The offset of a problem's position. Columns count characters, without a byte order mark.
    pub(super) fn offset(&self, place: Place) -> usize {
        let nth = place.line.saturating_sub(1) as usize;
        let Some(start) = self.starts.get(nth).copied() else { return self.text.len() };
        let line = self.text[start..].split('\n').next().unwrap_or_default();
        let mark = if start == 0 && line.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
        let characters = place.column.saturating_sub(1) as usize;
        let inside = line[mark..].char_indices().nth(characters).map_or(line.len() - mark, |(at, _)| at);
        start + mark + inside
    }
}

/// The offset of the first carriage return that no line feed follows. In the protocol, such a carriage return ends a line,
/// but not in all editors.
pub(super) fn lone_return(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    text.match_indices('\r').map(|(at, _)| at).find(|it| bytes.get(it + 1) != Some(&b'\n'))
}

/// Makes all line ends equal: CRLF if the text contains a CRLF, otherwise LF.
pub(super) fn with_equal_ends(text: &str) -> String {
    let end = if text.contains("\r\n") { "\r\n" } else { "\n" };
    text.replace("\r\n", "\n").replace('\r', "\n").replace('\n', end)
}

fn floor(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

fn saturate(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::text::line_index;

    const ALL: [Encoding; 3] = [Encoding::Utf8, Encoding::Utf16, Encoding::Utf32];

    fn at(line: u32, character: u32) -> Position {
        Position { line, character }
    }

    #[test]
    fn columns_are_counted_in_the_agreed_units() {
        let text = "depends: [\"🚀\", 77]\n";
        let (lines, offset) = (Lines::of(text), text.find("77").unwrap());
        for (encoding, character) in [(Encoding::Utf8, 18), (Encoding::Utf16, 16), (Encoding::Utf32, 15)] {
            assert_eq!(lines.position(text, encoding, offset), at(0, character));
            assert_eq!(lines.offset(text, encoding, at(0, character)), offset);
        }
    }

    #[test]
    fn lines_end_in_three_ways() {
        let text = "# x\ry\r\nz\nend";
        let lines = Lines::of(text);
        assert_eq!(lines.len(), 4);
        for (word, line) in [("# x", 0), ("y", 1), ("z", 2), ("end", 3)] {
            let offset = text.find(word).unwrap();
            assert_eq!(lines.position(text, Encoding::Utf16, offset), at(line, 0), "{word}");
            assert_eq!(&text[lines.line(text, line as usize)], word);
        }
        assert_eq!(Lines::of("").len(), 1);
    }

    #[test]
    fn lone_returns_are_found_and_replaced() {
        for (text, at, converted) in [
            ("a\rb\n", Some(1), "a\nb\n"),
            ("a\r\nb\r", Some(4), "a\r\nb\r\n"),
            ("a\r\nb\n", None, "a\r\nb\r\n"),
            ("a\r\r\n", Some(1), "a\r\n\r\n"),
            ("a", None, "a"),
        ] {
            assert_eq!(lone_return(text), at, "{text:?}");
            assert_eq!(with_equal_ends(text), converted, "{text:?}");
        }
    }

    #[test]
    fn positions_that_are_not_there_are_moved_to_the_nearest() {
        let text = "a🚀b\nc";
        let lines = Lines::of(text);
        assert_eq!(lines.offset(text, Encoding::Utf16, at(0, 2)), 1, "within a surrogate pair");
        assert_eq!(lines.offset(text, Encoding::Utf8, at(0, 3)), 1);
        assert_eq!(lines.offset(text, Encoding::Utf16, at(0, 99)), 6);
        assert_eq!(lines.offset(text, Encoding::Utf16, at(9, 0)), text.len());
        assert_eq!(lines.offset(text, Encoding::Utf16, at(u32::MAX, u32::MAX)), text.len());
        assert_eq!(lines.position(text, Encoding::Utf16, 2), at(0, 1));
        assert_eq!(lines.offsets(text, Encoding::Utf16, &LspRange { start: at(1, 0), end: at(0, 0) }), 0..7);
    }

    #[test]
    fn the_best_encoding_is_chosen() {
        assert_eq!(Encoding::choose([]), Encoding::Utf16);
        assert_eq!(Encoding::choose(["utf-7"]), Encoding::Utf16);
        assert_eq!(Encoding::choose(["utf-16", "utf-32", "utf-8"]), Encoding::Utf8);
        assert_eq!(Encoding::choose(["utf-32"]), Encoding::Utf32);
    }

    proptest! {
        #[test]
        fn every_offset_has_a_position(text in "[aé🚀\r\n]{0,20}") {
            let lines = Lines::of(&text);
            let is_divided = |at: usize| text[..at].ends_with('\r') && text[at..].starts_with('\n');
            for (offset, encoding) in (0..=text.len()).flat_map(|it| ALL.map(|encoding| (it, encoding))) {
                let position = lines.position(&text, encoding, offset);
                if text.is_char_boundary(offset) && !is_divided(offset) {
                    prop_assert_eq!(lines.offset(&text, encoding, position), offset);
                }
            }
        }

        #[test]
        fn a_place_of_a_problem_is_found_again(text in "\u{feff}?[aé🚀\r\n]{0,20}") {
            for offset in (0..=text.len()).filter(|it| text.is_char_boundary(*it)) {
                let place = line_index::place(text.as_bytes(), offset);
                let found = Places::of(&text).offset(place);
                prop_assert_eq!(line_index::place(text.as_bytes(), found), place);
            }
        }
    }
}
