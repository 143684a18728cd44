//! Lines of a front matter, with any line ending.

/// The text between the delimiter lines.
#[derive(Debug, Clone, Copy)]
pub(super) struct Lines<'a> {
    pub(super) text: &'a str,
    /// The line ending of the opening delimiter line.
    pub(super) first_eol: &'a str,
}

impl<'a> Lines<'a> {
    /// The start of the line that contains the byte at `at`.
    pub(super) fn start(&self, at: usize) -> usize {
        let before = &self.text.as_bytes()[..at];
        before.iter().rposition(|it| matches!(it, b'\n' | b'\r')).map_or(0, |it| it + 1)
    }

    /// The end of the line that contains the byte at `at`, without its line ending.
    pub(super) fn text_end(&self, at: usize) -> usize {
        let rest = &self.text.as_bytes()[at..];
        at + rest.iter().position(|it| matches!(it, b'\n' | b'\r')).unwrap_or(rest.len())
    }

    /// The start of the line after the one that contains the byte at `at`.
    pub(super) fn end(&self, at: usize) -> usize {
        let end = self.text_end(at);
        end + eol_at(self.text, end).len()
    }

    /// The line ending of the line before the one that begins at `at`; [`Self::first_eol`] for the first line.
    pub(super) fn eol_before(&self, at: usize) -> &'a str {
        let before = &self.text[..at];
        let trimmed = before.strip_suffix("\r\n").or_else(|| before.strip_suffix(['\n', '\r']));
        let trimmed = trimmed.unwrap_or(before);
        if trimmed.len() == before.len() { self.first_eol } else { &before[trimmed.len()..] }
    }

    /// The line ending of the line that contains the byte at `at`; [`Self::first_eol`] if it has none.
    pub(super) fn eol_of(&self, at: usize) -> &'a str {
        let eol = eol_at(self.text, self.text_end(at));
        if eol.is_empty() { self.first_eol } else { eol }
    }

    pub(super) fn column(&self, at: usize) -> usize {
        at - self.start(at)
    }

    /// Whether only spaces precede the byte at `at` on its line. Tabs do not count as indentation.
    pub(super) fn is_first_on_line(&self, at: usize) -> bool {
        self.text[self.start(at)..at].bytes().all(|it| it == b' ')
    }

    /// Whether a tab precedes the byte at `at` on its line. If so, the byte's column is not an indentation.
    pub(super) fn is_behind_tab(&self, at: usize) -> bool {
        self.text[self.start(at)..at].contains('\t')
    }

    pub(super) fn on_one_line(&self, from: usize, to: usize) -> bool {
        self.text_end(from) >= to
    }

    /// The number of spaces at the start of a line that contains only a comment; `None` for any other line.
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

    /// Goes up from a line over the comment lines directly above it, but not above `floor`.
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

    /// Skips the blanks that begin at `at`.
    pub(super) fn after_blanks(&self, at: usize) -> usize {
        self.text.len() - self.text[at..].trim_start_matches([' ', '\t']).len()
    }
}

fn eol_at(text: &str, at: usize) -> &str {
    let rest = &text[at..];
    let len = if rest.starts_with("\r\n") { 2 } else { usize::from(!rest.is_empty()) };
    &rest[..len]
}
