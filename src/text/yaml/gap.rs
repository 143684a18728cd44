//! Skips the text between the scalars of a YAML text: blanks, comments, indicators, anchors and tags.

use std::ops::Range;

pub(super) struct Gap<'a> {
    bytes: &'a [u8],
    /// Everything before this offset has been processed.
    pub(super) at: usize,
}

impl<'a> Gap<'a> {
    pub(super) fn new(source: &'a str) -> Self {
        Self { bytes: source.as_bytes(), at: 0 }
    }

    /// The next byte that is neither blank, nor a line ending, nor part of a comment.
    pub(super) fn peek(&self) -> usize {
        let mut at = self.at;
        loop {
            match self.bytes.get(at) {
                Some(b' ' | b'\t' | b'\r' | b'\n') => at += 1,
                Some(b'#') => at = self.end_of_line(at),
                // There may be a byte order mark before the first token.
                Some(0xEF) if self.bytes[at..].starts_with(b"\xEF\xBB\xBF") => at += 3,
                _ => return at,
            }
        }
    }

    /// Skips an indicator if it comes next, and returns its offset.
    pub(super) fn take(&mut self, indicator: u8) -> Option<usize> {
        let at = self.peek();
        if self.bytes.get(at) != Some(&indicator) {
            return None;
        }
        self.at = at + 1;
        Some(at)
    }

    /// Like [`Self::take`], but only if a blank, a line ending or the end of the text follows the indicator.
    pub(super) fn take_word(&mut self, indicator: u8) -> Option<usize> {
        let next = self.bytes.get(self.peek() + 1);
        matches!(next, None | Some(b' ' | b'\t' | b'\r' | b'\n')).then(|| self.take(indicator))?
    }

    pub(super) fn skip_commas(&mut self) {
        while self.take(b',').is_some() {}
    }

    /// Skips an anchor, if there is one, and the tag that the scanner reported at `tag`, in either order.
    pub(super) fn skip_properties(&mut self, mut anchor: bool, tag: &Range<usize>) {
        let mut has_tag = !tag.is_empty();
        while anchor || has_tag {
            let at = self.peek();
            match self.bytes.get(at) {
                Some(b'!') if has_tag => {
                    self.at = if at == tag.start { tag.end } else { self.end_of_word(at) };
                    has_tag = false;
                }
                Some(b'&') if anchor => {
                    self.at = self.end_of_word(at);
                    anchor = false;
                }
                _ => return,
            }
        }
    }

    /// The range of a block scalar whose header begins at `header`. `scanned` is the offset at which the scanner stopped;
    /// this is not necessarily the end of the scalar.
    ///
    /// Blank lines at the end belong to the scalar if it keeps them (`+` or `keeps`), or if they have more blanks than its
    /// indentation. The line ending of its last line never belongs to it.
    pub(super) fn block_scalar(
        &self,
        header: usize,
        scanned: usize,
        indent: Option<usize>,
        keeps: bool,
    ) -> Range<usize> {
        let header_end = self.end_of_line(header);
        let word = self.bytes[header..header_end].iter().take_while(|it| !matches!(it, b' ' | b'\t' | b'#'));
        let keeps = keeps || word.clone().any(|&it| it == b'+');
        let mut end = self.trim_blanks(header, header_end);
        let mut at = self.next_line(header_end);
        while at < scanned {
            let line_end = self.end_of_line(at);
            let indented = self.bytes[at..line_end].iter().take_while(|&&it| it == b' ').count();
            let is_blank = self.bytes[at + indented..line_end].iter().all(|it| matches!(it, b' ' | b'\t'));
            let has_content = if is_blank {
                indent.is_some_and(|it| indented >= it && line_end - at > it)
            } else {
                line_end <= scanned
            };
            if !is_blank && !has_content {
                break;
            }
            if has_content || (keeps && line_end <= scanned) {
                end = line_end;
            }
            at = self.next_line(line_end);
        }
        header..end
    }

    fn trim_blanks(&self, from: usize, to: usize) -> usize {
        let line = &self.bytes[from..to];
        from + line.iter().rposition(|it| !matches!(it, b' ' | b'\t')).map_or(0, |it| it + 1)
    }

    fn end_of_word(&self, from: usize) -> usize {
        let rest = &self.bytes[from + 1..];
        let stop = rest.iter().position(|it| b" \t\r\n,[]{}".contains(it));
        from + 1 + stop.unwrap_or(rest.len())
    }

    /// The start of the next line ending.
    fn end_of_line(&self, from: usize) -> usize {
        let rest = &self.bytes[from.min(self.bytes.len())..];
        from + rest.iter().position(|it| matches!(it, b'\r' | b'\n')).unwrap_or(rest.len())
    }

    fn next_line(&self, end: usize) -> usize {
        match self.bytes.get(end..) {
            Some([b'\r', b'\n', ..]) => end + 2,
            Some([_, ..]) => end + 1,
            _ => self.bytes.len().max(end),
        }
    }
}
