//! Lines of a front matter, with any line ending.

/// The text between the delimiter lines, with the line ending of the opening one.
#[derive(Debug, Clone, Copy)]
pub(super) struct Lines<'a> {
    pub(super) text: &'a str,
    /// What ends the line before the text.
    pub(super) first_eol: &'a str,
}

impl<'a> Lines<'a> {
    /// Where the line of a byte begins.
    pub(super) fn start(&self, at: usize) -> usize {
        let before = &self.text.as_bytes()[..at];
        before.iter().rposition(|it| matches!(it, b'\n' | b'\r')).map_or(0, |it| it + 1)
    }

    /// Where the text of a line ends, before its line ending.
    pub(super) fn text_end(&self, at: usize) -> usize {
        let rest = &self.text.as_bytes()[at..];
        at + rest.iter().position(|it| matches!(it, b'\n' | b'\r')).unwrap_or(rest.len())
    }

    /// Where the line after the one with this byte begins.
    pub(super) fn end(&self, at: usize) -> usize {
        let end = self.text_end(at);
        end + eol_at(self.text, end).len()
    }

    /// The line ending of the line before the one that begins at `at`.
    pub(super) fn eol_before(&self, at: usize) -> &'a str {
        let before = &self.text[..at];
        let trimmed = before.strip_suffix("\r\n").or_else(|| before.strip_suffix(['\n', '\r']));
        let trimmed = trimmed.unwrap_or(before);
        if trimmed.len() == before.len() { self.first_eol } else { &before[trimmed.len()..] }
    }

    /// The line ending of the line of a byte.
    pub(super) fn eol_of(&self, at: usize) -> &'a str {
        let eol = eol_at(self.text, self.text_end(at));
        if eol.is_empty() { self.first_eol } else { eol }
    }

    pub(super) fn column(&self, at: usize) -> usize {
        at - self.start(at)
    }

    /// Whether a line holds nothing but spaces before a byte; a tab is no indentation.
    pub(super) fn is_first_on_line(&self, at: usize) -> bool {
        self.text[self.start(at)..at].bytes().all(|it| it == b' ')
    }

    /// Whether a tab precedes a byte on its line, so that its column is no indentation.
    pub(super) fn is_behind_tab(&self, at: usize) -> bool {
        self.text[self.start(at)..at].contains('\t')
    }

    pub(super) fn on_one_line(&self, from: usize, to: usize) -> bool {
        self.text_end(from) >= to
    }

    /// How far a line that holds nothing but a comment is indented; tabs do not count.
    pub(super) fn comment_column(&self, line: usize) -> Option<usize> {
        let text = &self.text[line..self.text_end(line)];
        let is_comment = text.trim_start_matches([' ', '\t']).starts_with('#');
        is_comment.then(|| text.len() - text.trim_start_matches(' ').len())
    }

    /// Skips comment lines that are indented by more than `column`.
    pub(super) fn skip_deeper_comments(&self, mut line: usize, column: usize) -> usize {
        while line < self.text.len() && self.comment_column(line).is_some_and(|it| it > column) {
            line = self.end(line);
        }
        line
    }

    /// Goes back over the comment lines directly above a line, down from `floor`.
    pub(super) fn with_comments_above(&self, mut line: usize, floor: usize) -> usize {
        while line > floor {
            let above = self.start(line - self.eol_before(line).len());
            if above < floor || self.comment_column(above).is_none() {
                break;
            }
            line = above;
        }
        line
    }

    /// Goes back over the blanks before a byte, on its line.
    pub(super) fn before_blanks(&self, at: usize) -> usize {
        self.text[..at].trim_end_matches([' ', '\t']).len()
    }

    /// Skips the blanks after a byte, on its line.
    pub(super) fn after_blanks(&self, at: usize) -> usize {
        self.text.len() - self.text[at..].trim_start_matches([' ', '\t']).len()
    }
}

fn eol_at(text: &str, at: usize) -> &str {
    let rest = &text[at..];
    let len = if rest.starts_with("\r\n") { 2 } else { usize::from(!rest.is_empty()) };
    &rest[..len]
}
