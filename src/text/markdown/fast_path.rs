//! A fast path for typical bodies: headings with `#`, paragraphs, lists with one line per item, fenced code, tables.
//!
//! The fast path returns exactly the outline that results from the parser's events. Where the two could differ, the fast
//! path returns `None`, and the parser reads the body. Inline markup is parsed only in the description.

use std::ops::Range;

use super::{Builder, Outline, Parts, item, parsed};

/// Reads the structure of a body without the parser; `None` for a body with anything unusual in it.
pub(super) fn outline(body: &str, parts: Parts) -> Option<Outline> {
    let bytes = body.as_bytes();
    if holds(bytes, |it| it < b' ' && it != b'\n') || !(body.is_empty() || body.ends_with('\n')) {
        return None;
    }
    let definitions = bytes
        .iter()
        .zip(bytes.get(1..).unwrap_or_default())
        .fold(false, |any, (a, b)| any | (*a == b']' && *b == b':'));
    let may_be_more = definitions || holds(bytes, |it| it == b'|');
    let builder = Builder::new(body);
    let mut reader = Reader { builder, body, parts, may_be_more, lists: Vec::new(), state: State::Between };
    let mut at = 0;
    while at < body.len() {
        at = reader.line(at)?;
    }
    reader.end_block(body.len());
    Some(reader.builder.outline)
}

/// Whether any byte satisfies the condition. The loop does not stop early, so that the compiler can vectorize it.
fn holds(bytes: &[u8], is: impl Fn(u8) -> bool) -> bool {
    bytes.iter().fold(false, |any, it| any | is(*it))
}

struct Reader<'a> {
    builder: Builder<'a>,
    body: &'a str,
    parts: Parts,
    /// Whether some line may be part of a table or define a link.
    may_be_more: bool,
    /// The open lists, the outermost first.
    lists: Vec<List>,
    state: State,
}

/// What the next line may continue.
enum State {
    Between,
    /// A paragraph that begins at this offset.
    Paragraph(usize),
    List,
    /// A blank line after a list; another item would continue the list.
    AfterList,
}

struct List {
    /// The list mark; `.` for a numbered list.
    mark: u8,
    at: usize,
    /// The column of the last item's text, where a nested list would begin.
    text: usize,
    /// Where the last item begins, and its index in the outline if it is included there.
    begin: usize,
    kept: Option<usize>,
}

impl Reader<'_> {
    /// Reads one line, a block of code or a table, and returns where the next line begins.
    fn line(&mut self, at: usize) -> Option<usize> {
        let end = self.end_of_line(at);
        let line = &self.body[at..end];
        let next = end + 1;
        let indent = line.bytes().take_while(|it| *it == b' ').count();
        let text = &line[indent..];
        if text.is_empty() {
            if indent > 0 {
                return None;
            }
            self.blank(at);
            return Some(next);
        }
        if let Some(fence) = fence(line) {
            return self.code(at, next, fence);
        }
        if line.starts_with("| ") && matches!(self.state, State::Between | State::AfterList) {
            return self.table(at, next);
        }
        if self.may_be_more && (text.contains('|') || text.contains("]:")) {
            return None;
        }
        if let Some(mark) = mark(text) {
            self.item(at, indent, mark)?;
            return Some(next);
        }
        if indent > 0 {
            return None;
        }
        if text.starts_with('#') {
            self.heading(at, line)?;
            return Some(next);
        }
        if !begins_text(text) {
            return None;
        }
        match self.state {
            State::Paragraph(_) => {}
            // Without a blank line before it, this line would belong to the last item.
            State::List => return None,
            State::Between | State::AfterList => {
                self.end_block(at);
                self.state = State::Paragraph(at);
            }
        }
        Some(next)
    }

    fn blank(&mut self, at: usize) {
        match self.state {
            State::Paragraph(_) => self.end_block(at),
            // The next line that is not blank ends the last item of each open list.
            State::List => self.state = State::AfterList,
            State::Between | State::AfterList => {}
        }
    }

    /// Ends the open paragraph or lists before the line at `at`.
    fn end_block(&mut self, at: usize) {
        if let State::Paragraph(start) = self.state {
            self.describe(start..at);
        }
        self.end_items(0, at);
        self.lists.clear();
        self.state = State::Between;
    }

    /// If there is no description yet, the paragraph becomes the description. If it can contain markup, the parser
    /// determines its text.
    fn describe(&mut self, paragraph: Range<usize>) {
        let text = &self.body[paragraph];
        let outline = &mut self.builder.outline;
        if outline.description.is_some() || self.parts == Parts::Sections {
            return;
        }
        let is_marked = |it: u8| b"\\`*_[]<>&!~".contains(&it);
        outline.description = if text.bytes().any(is_marked) || text.contains(" \n") {
            parsed(text).description
        } else {
            Some(text.trim().replace('\n', " ")).filter(|it| !it.is_empty())
        };
    }

    fn heading(&mut self, at: usize, line: &str) -> Option<()> {
        let level = line.bytes().take_while(|it| *it == b'#').count();
        let text = line[level..].strip_prefix(' ')?;
        // Headings with trailing `#` marks or with backslashes are left to the parser. Such marks do not belong to the
        // text, and the parser's range of a text excludes a leading backslash.
        let is_usual = !text.starts_with([' ', '#']) && !text.ends_with([' ', '#']) && !text.contains('\\');
        if level > 6 || text.is_empty() || !is_usual {
            return None;
        }
        self.end_block(at);
        let end = at + line.len();
        let (level, inner) = (u8::try_from(level).ok()?, at + level + 1..end);
        self.builder.heading = Some((level, at..end + 1, Some(inner)));
        self.builder.end_heading();
        Some(())
    }

    /// Reads the line of an item. `behind` is the length of its mark, including the blank.
    fn item(&mut self, at: usize, indent: usize, (mark, behind): (u8, usize)) -> Option<()> {
        match self.state {
            State::AfterList => return None,
            State::Paragraph(_) => self.end_block(at),
            State::Between | State::List => {}
        }
        let depth = match self.lists.last() {
            None if indent == 0 => 0,
            None => return None,
            Some(last) if indent == last.text => self.lists.len(),
            Some(_) => self.lists.iter().position(|it| it.at == indent)?,
        };
        let start = at + indent;
        self.end_items(depth, at);
        let is_new = depth == self.lists.len();
        if is_new {
            // A numbered list that does not begin with 1 cannot interrupt a paragraph, so all such lists are left to the
            // parser.
            let begins = mark != b'.' || self.body[start..].starts_with("1.");
            if !begins {
                return None;
            }
            self.lists.push(List { mark, at: indent, text: 0, begin: 0, kept: None });
        }
        let line = &self.body[start..self.end_of_line(at)];
        let (tick, text) = tick(&line[behind..])?;
        if !begins_text(text) || line.ends_with([' ', '\\']) {
            return None;
        }
        let outline = &mut self.builder.outline;
        let kept = (depth < 2 && self.parts == Parts::All).then_some(outline.items.len());
        if kept.is_some() {
            let end = start + line.len();
            outline.items.push(item(self.body, start..end, depth > 0));
        }
        let list = self.lists.get_mut(depth).filter(|it| it.mark == mark)?;
        (list.text, list.begin, list.kept) = (indent + behind, start, kept);
        self.builder.open.push(kept);
        if let Some(ticked) = tick {
            self.builder.task(start + behind, ticked);
        }
        self.builder.open.pop();
        self.state = State::List;
        Some(())
    }

    /// Ends the last items of the lists at `depth` and deeper, and closes the lists deeper than `depth`.
    fn end_items(&mut self, depth: usize, at: usize) {
        for list in self.lists.iter_mut().skip(depth) {
            if let Some(item) = list.kept.take().and_then(|it| self.builder.outline.items.get_mut(it)) {
                item.span = list.begin..at;
            }
        }
        self.lists.truncate(depth + 1);
    }

    /// Reads a table that ends with a blank line or with the body. A table contains no headings and no items.
    fn table(&mut self, start: usize, from: usize) -> Option<usize> {
        let end = self.end_of_line(from);
        let (head, marks) = (&self.body[start..from - 1], self.body.get(from..end)?);
        let n_cells = |it: &str| it.matches('|').count();
        let is_head = head.ends_with(" |") && !head.contains(['\\', '`']);
        let is_marked = marks.starts_with("| -") && marks.ends_with("- |") && !marks.contains("| |");
        let is_plain = is_marked && marks.bytes().all(|it| matches!(it, b'|' | b'-' | b' '));
        if !is_head || !is_plain || marks.contains("- -") || n_cells(head) != n_cells(marks) {
            return None;
        }
        self.end_block(start);
        let mut at = end + 1;
        while self.body[at.min(self.body.len())..].starts_with("| ") {
            at = self.end_of_line(at) + 1;
        }
        let is_over = at >= self.body.len() || self.body[at..].starts_with('\n');
        is_over.then_some(at)
    }

    /// Reads fenced code whose first line ends before `from`, up to the closing line, which must equal `fence`.
    fn code(&mut self, start: usize, from: usize, fence: &str) -> Option<usize> {
        if matches!(self.state, State::List | State::AfterList) && self.lists.is_empty() {
            return None;
        }
        self.end_block(start);
        let mut at = from;
        while at < self.body.len() {
            let end = self.end_of_line(at);
            let line = &self.body[at..end];
            if line == fence {
                self.builder.outline.code.push(start..end);
                return Some(end + 1);
            }
            if line.trim_start().starts_with(fence) {
                return None;
            }
            at = end + 1;
        }
        None
    }

    fn end_of_line(&self, from: usize) -> usize {
        let rest = &self.body.as_bytes()[from..];
        from + rest.iter().position(|it| *it == b'\n').unwrap_or(rest.len())
    }
}

/// The mark of a list item, such as `- ` or `1. `, and its length including the blank.
fn mark(text: &str) -> Option<(u8, usize)> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let mark = *text.as_bytes().get(digits)?;
    let is_mark = if digits == 0 { matches!(mark, b'-' | b'*' | b'+') } else { mark == b'.' };
    (is_mark && digits < 10 && text[digits + 1..].starts_with(' ')).then_some((mark, digits + 2))
}

/// Removes the task box, if any, from the start of a text. `None` if the text begins with something that only resembles a
/// task box.
fn tick(text: &str) -> Option<(Option<bool>, &str)> {
    let boxed = |it: &str| text.strip_prefix(it);
    let (ticked, rest) = if let Some(rest) = boxed("[ ]") {
        (false, rest)
    } else if let Some(rest) = boxed("[x]").or_else(|| boxed("[X]")) {
        (true, rest)
    } else {
        return Some((None, text));
    };
    Some((Some(ticked), rest.strip_prefix(' ')?))
}

fn fence(line: &str) -> Option<&str> {
    let (fence, info) = line.split_at_checked(3)?;
    (fence == "```" && !info.contains('`')).then_some(fence)
}

/// Whether a line with this text can only begin or continue a paragraph.
fn begins_text(text: &str) -> bool {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    match text[digits..].bytes().next() {
        _ if digits > 0 => !text[digits..].starts_with(['.', ')']),
        Some(b'`') => !text.starts_with("```"),
        Some(b'*') => text.starts_with("**") && text[2..].starts_with(|c: char| c.is_ascii_alphanumeric()),
        Some(b'(' | b'[' | b'"' | b'\'' | b'/' | b'$' | b'@' | 128..) => true,
        first => first.is_some_and(|it| it.is_ascii_alphabetic()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const USUAL: &str = "\n# Add *it* to `x`\n\nFirst `one`,\nsecond é.\n\n## Tasks\n\n- [x] a\n- [ ] b [l](u)\n  - [ ] c\n    1. d\n\n\
        ## Steps\n1. [step 1](step-1.md)\n2. **two**\n\n```rust\n# no | [a]: b\n```\n\n| a | b |\n| --- | --- |\n| - | c |\n";

    /// Checks that the fast path agrees with the parser, and returns whether the fast path has read the body.
    fn is_same(body: &str) -> Result<bool, TestCaseError> {
        let (found, sections) = (outline(body, Parts::All), outline(body, Parts::Sections));
        prop_assert_eq!(found.is_some(), sections.is_some());
        let (Some(found), Some(sections)) = (found, sections) else { return Ok(false) };
        let expected = parsed(body);
        prop_assert_eq!(&found, &expected, "{:?}", body);
        prop_assert_eq!(sections, Outline { items: Vec::new(), description: None, ..expected }, "{:?}", body);
        Ok(true)
    }

    #[test]
    fn usual_bodies_are_read_without_the_parser() {
        for body in ["", "\n", "text\n", "* a\n  + b\n", "a\n- b\n# c\n", USUAL] {
            assert!(is_same(body).is_ok_and(|it| it), "{body:?}");
        }
    }

    #[test]
    fn ambiguous_bodies_are_left_to_the_parser() {
        for body in [
            "a",
            "a\r\n",
            "\ta\n",
            " a\n",
            "a\n===\n",
            "a\n---\n",
            "***\n",
            "<b>\n",
            "> a\n",
            "a | b\n- | -\n",
            "- a\nb\n",
            "- a\n\n- b\n",
            "- a\n\n  b\n",
            "-\n",
            "- # a\n",
            "- 1. a\n",
            "- [x]\n",
            "[a]: b\n",
            "```\na\n",
            "~~~\n~~~\n",
            "# a #\n",
            "# a\\*\n",
            "#\n",
            "2. a\n",
            "- a\n * b\n",
            "| a |\n| - | - |\n",
        ] {
            assert_eq!(outline(body, Parts::All), None, "{body:?}");
        }
    }

    fn line() -> impl Strategy<Value = String> {
        let indents = prop::sample::select(vec!["", "", "", "", "  ", "  ", "    ", "   ", "      ", " "]);
        let marks = prop::sample::select(vec![
            "", "", "", "- ", "- ", "* ", "1. ", "2. ", "- [x] ", "- [ ] ", "# ", "## ", "10. ", "-  ",
        ]);
        let texts = prop::sample::select(vec![
            "",
            "",
            "",
            "a",
            "b *c* `d`",
            "**e** f",
            "[g](h)",
            "[i]: j",
            "[x]",
            "[x] k",
            "é",
            "l ",
            "m\\",
            "n  ",
            "`o",
            "p`",
            "<q>",
            "<!--",
            "-->",
            "```",
            "````",
            "```r",
            "===",
            "---",
            "- - -",
            "| s |",
            "| - |",
            "| s | t |",
            "| - | --- |",
            "> u",
            "1. v",
            "3)",
            "~~~",
            "#",
            "w #",
            "&amp;",
            "![y](z)",
            "<https://a.b>",
            "*",
            "_a_",
            "\u{a0}",
            "# é",
            "\t",
        ]);
        (indents, marks, texts).prop_map(|(indent, mark, text)| format!("{indent}{mark}{text}\n"))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4096))]
        #[test]
        fn any_lines_are_read_as_by_the_parser(lines in prop::collection::vec(line(), 0..9)) {
            is_same(&lines.concat())?;
        }

        #[test]
        fn usual_bodies_with_one_change_are_too(at in any::<prop::sample::Index>(), len in 0..4_usize, new in line()) {
            let starts: Vec<_> = USUAL.char_indices().map(|(at, _)| at).collect();
            let (at, end) = (at.index(starts.len()), at.index(starts.len()) + len);
            let (start, end) = (starts[at], starts.get(end).copied().unwrap_or(USUAL.len()));
            for new in [new.as_str(), new.trim_end_matches('\n')] {
                is_same(&[&USUAL[..start], new, &USUAL[end..]].concat())?;
            }
        }
    }
}
