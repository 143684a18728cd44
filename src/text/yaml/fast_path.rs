//! A fast path for typical front matters, about ten times as fast as the scanner.
//!
//! It reads block mappings and lists, scalars on one line (plain or quoted, without escapes), lists in brackets and
//! mappings in braces on one line, and literal block scalars. It returns exactly the tree that results from the scanner's
//! events. For any other form and for every error it returns `None`, and the scanner reads the text.

use super::resolve::plain_kind;
use super::{Kind, NONE, Node, NodeId, Style, Tree, keys};

/// More deeply nested values are left to the scanner.
const MAX_NESTED: usize = 8;

/// Longer keys are left to the scanner. YAML allows 1024 characters.
const MAX_KEY: usize = 100;

/// Returns the tree of a front matter that is a plain mapping.
pub(super) fn read(yaml: &str) -> Option<Tree> {
    if !yaml.ends_with('\n') || !yaml.chars().all(is_usual) {
        return None;
    }
    let tree = Tree { nodes: Vec::with_capacity(yaml.len() / 16 + 8), root: 0, ..Tree::new(yaml) };
    let mut reader = Reader { yaml, bytes: yaml.as_bytes(), at: 0, tree };
    let first = reader.line().filter(|it| it.indent == 0)?;
    reader.map(&first, NONE, MAX_NESTED)?;
    reader.line().is_none().then_some(reader.tree)
}

/// Whether the fast path reads this character. Tabs, carriage returns, other line ends and unprintable characters may have
/// a meaning for the scanner.
fn is_usual(c: char) -> bool {
    match c {
        '\n' | ' '..='~' => true,
        '\u{2028}' | '\u{2029}' => false,
        _ => matches!(c, '\u{a1}'..='\u{d7ff}' | '\u{10000}'..='\u{1ffff}'),
    }
}

struct Reader<'a> {
    yaml: &'a str,
    bytes: &'a [u8],
    /// Everything before this offset has been read. Between values, this is the start of a line.
    at: usize,
    tree: Tree,
}

/// A line that is neither blank nor only a comment.
#[derive(Clone, Copy)]
struct Line {
    indent: usize,
    /// The first byte that is not blank.
    start: usize,
}

/// The next line of the same collection, or the end of the collection.
enum Next {
    Line(Line),
    End,
}

impl Reader<'_> {
    /// The next line that is neither blank nor a comment; does not advance.
    fn line(&self) -> Option<Line> {
        let mut at = self.at;
        loop {
            let indent = self.bytes.get(at..)?.iter().take_while(|it| **it == b' ').count();
            let start = at + indent;
            match self.bytes.get(start)? {
                b'\n' => at = start + 1,
                b'#' => at = self.end_of_line(start) + 1,
                _ => return Some(Line { indent, start }),
            }
        }
    }

    /// The next line of a collection with this indentation. `None` if the next line is indented deeper.
    fn next(&self, indent: usize) -> Option<Next> {
        match self.line() {
            Some(line) if line.indent > indent => None,
            Some(line) if line.indent == indent => Some(Next::Line(line)),
            _ => Some(Next::End),
        }
    }

    /// Reads a mapping; `first` is its first line, or the text after a dash.
    fn map(&mut self, first: &Line, lead: u32, depth: usize) -> Option<NodeId> {
        let depth = depth.checked_sub(1)?;
        let map = self.add(Kind::Map, Style::Block, (first.start, first.start), lead)?;
        let (mut line, mut last) = (*first, NONE);
        loop {
            let colon = self.key_end(line.start)?;
            let kind = plain_kind(&self.yaml[line.start..colon]);
            let key = self.scalar(kind, Style::Plain, (line.start, colon), NONE)?;
            self.append(map, last, key);
            self.at = colon + 1;
            let value = self.value(line.indent, u32::try_from(colon).ok()?, depth)?;
            self.append(map, key, value);
            last = value;
            match self.next(first.indent)? {
                Next::Line(next) => line = next,
                Next::End => break,
            }
        }
        self.close(map, last);
        keys::check(&mut self.tree, map).ok()?;
        Some(map)
    }

    /// Reads a list; `first` is the line of its first dash. `is_below_key` means that the list has the same indentation as
    /// its key. Such a list ends at the first line without a dash.
    fn list(&mut self, first: &Line, lead: u32, is_below_key: bool, depth: usize) -> Option<NodeId> {
        let depth = depth.checked_sub(1)?;
        let list = self.add(Kind::List, Style::Block, (first.start, first.start), lead)?;
        let (mut line, mut last) = (*first, NONE);
        loop {
            self.at = line.start + 1;
            let dash = u32::try_from(line.start).ok()?;
            let start = self.skip_blanks();
            let item = if self.key_end(start).is_some() {
                self.map(&Line { indent: line.indent + (start - line.start), start }, dash, depth)?
            } else {
                self.inline(line.indent, dash)?
            };
            self.append(list, last, item);
            last = item;
            match self.next(first.indent)? {
                Next::Line(next) if self.is_dash(next.start) => line = next,
                Next::Line(_) if !is_below_key => return None,
                _ => break,
            }
        }
        self.close(list, last);
        Some(list)
    }

    fn value(&mut self, indent: usize, colon: u32, depth: usize) -> Option<NodeId> {
        let behind = self.at;
        let start = self.skip_blanks();
        let is_over = match self.bytes.get(start)? {
            b'\n' => true,
            b'#' => start > behind,
            _ => false,
        };
        if !is_over {
            return self.inline(indent, colon);
        }
        self.at = self.end_of_line(start) + 1;
        match self.line() {
            Some(line) if line.indent > indent && self.is_dash(line.start) => {
                self.list(&line, colon, false, depth)
            }
            Some(line) if line.indent == indent && self.is_dash(line.start) => {
                self.list(&line, colon, true, depth)
            }
            Some(line) if line.indent > indent => {
                self.key_end(line.start)?;
                self.map(&line, colon, depth)
            }
            _ => self.scalar(Kind::Null, Style::Plain, (behind, behind), colon),
        }
    }

    /// Reads the value at the current offset and the rest of its line.
    fn inline(&mut self, indent: usize, lead: u32) -> Option<NodeId> {
        let start = self.at;
        let node = match self.bytes.get(start)? {
            b'[' => self.flow(Kind::List, b']', lead)?,
            b'{' => self.flow(Kind::Map, b'}', lead)?,
            b'"' | b'\'' => self.quoted(lead)?,
            // `literal` reads all lines of the text itself.
            b'|' => return self.literal(indent, lead),
            _ => {
                let end = self.plain_end(start, self.end_of_line(start))?;
                self.at = end;
                let kind = plain_kind(&self.yaml[start..end]);
                self.scalar(kind, Style::Plain, (start, end), lead)?
            }
        };
        let behind = self.at;
        let rest = self.skip_blanks();
        match self.bytes.get(rest)? {
            b'\n' => {}
            b'#' if rest > behind => {}
            _ => return None,
        }
        self.at = self.end_of_line(rest) + 1;
        Some(node)
    }

    /// A list in brackets or a mapping in braces, on one line, whose items or values are plain or quoted scalars.
    fn flow(&mut self, kind: Kind, end: u8, lead: u32) -> Option<NodeId> {
        let start = self.at;
        let collection = self.add(kind, Style::Flow, (start, start), lead)?;
        let mut last = NONE;
        self.at = start + 1;
        if self.bytes.get(self.skip_blanks()) != Some(&end) {
            loop {
                let from = self.skip_blanks();
                let lead = match kind {
                    Kind::Map => {
                        let colon = self.key_end(from)?;
                        let word = plain_kind(&self.yaml[from..colon]);
                        let key = self.scalar(word, Style::Plain, (from, colon), NONE)?;
                        self.append(collection, last, key);
                        last = key;
                        self.at = colon + 1;
                        u32::try_from(colon).ok()?
                    }
                    _ => NONE,
                };
                let from = self.skip_blanks();
                let item = match self.bytes.get(from)? {
                    b'"' | b'\'' => self.quoted(lead)?,
                    _ => self.plain_item(from, lead)?,
                };
                self.append(collection, last, item);
                last = item;
                let behind = self.skip_blanks();
                match self.bytes.get(behind)? {
                    b',' => self.at = behind + 1,
                    it if *it == end => break,
                    _ => return None,
                }
            }
        }
        self.at += 1;
        self.tree.nodes[collection as usize].end = u32::try_from(self.at).ok()?;
        if kind == Kind::Map {
            keys::check(&mut self.tree, collection).ok()?;
        }
        Some(collection)
    }

    fn plain_item(&mut self, from: usize, lead: u32) -> Option<NodeId> {
        // Only the item is scanned, not the rest of the line, because a line may contain a hundred thousand items.
        let rest = &self.bytes[from..];
        let len = rest.iter().position(|it| matches!(it, b',' | b']' | b'}' | b'\n'))?;
        let limit = from + len;
        // In brackets and braces more characters have a meaning, and a comment hides the rest of the line.
        let is_indicator = |(at, it): (usize, &u8)| match it {
            b'[' | b'{' | b'#' | b'?' => true,
            // A colon inside a word, as in a time, has no meaning.
            b':' => !rest[at + 1].is_ascii_alphanumeric(),
            _ => false,
        };
        if rest[len] == b'\n' || rest[..len].iter().enumerate().any(is_indicator) {
            return None;
        }
        let end = self.plain_end(from, limit)?;
        let text = &self.yaml[from..end];
        self.at = limit;
        self.scalar(plain_kind(text), Style::Plain, (from, end), lead)
    }

    /// The end of a plain text that begins at `start` and ends at `limit` or before. A comment and trailing blanks do not
    /// belong to it.
    fn plain_end(&self, start: usize, limit: usize) -> Option<usize> {
        let text = &self.bytes[start..limit];
        let is_plain =
            |it: &u8| it.is_ascii_alphanumeric() || matches!(it, b'_' | b'/' | b'(' | b'+' | 128..);
        text.first().filter(|it| is_plain(it))?;
        let mut end = text.len();
        for (at, byte) in text.iter().enumerate() {
            match byte {
                b':' if matches!(text.get(at + 1), None | Some(b' ')) => return None,
                b'#' if text[at - 1] == b' ' => {
                    end = at;
                    break;
                }
                _ => {}
            }
        }
        let end = text[..end].iter().rposition(|it| *it != b' ')? + 1;
        Some(start + end)
    }

    /// A text in quotes on one line, without escapes.
    fn quoted(&mut self, lead: u32) -> Option<NodeId> {
        let (start, quote) = (self.at, self.bytes[self.at]);
        let rest = &self.bytes[start + 1..];
        let len = rest.iter().position(|it| *it == quote || *it == b'\n').filter(|it| rest[*it] == quote)?;
        let is_double = quote == b'"';
        // Two single quotes stand for one.
        if (is_double && rest[..len].contains(&b'\\')) || rest.get(len + 1) == Some(&quote) {
            return None;
        }
        let end = start + 1 + len;
        self.at = end + 1;
        let style = if is_double { Style::Double } else { Style::Single };
        let node = self.add(Kind::Text, style, (start, end + 1), lead)?;
        let yaml = self.yaml;
        self.decode(node, |text| text.push_str(&yaml[start + 1..end]))?;
        Some(node)
    }

    /// A literal block scalar that is indented by more than `indent`; its last line ending is clipped or stripped.
    fn literal(&mut self, indent: usize, lead: u32) -> Option<NodeId> {
        let start = self.at;
        let header_end = self.end_of_line(start);
        let is_clipped = match &self.yaml[start..header_end] {
            "|" => true,
            "|-" => false,
            _ => return None,
        };
        let first = header_end + 1;
        let column = self.bytes[first..].iter().take_while(|it| **it == b' ').count();
        if column <= indent || matches!(self.bytes.get(first + column), None | Some(b'\n')) {
            return None;
        }
        let (mut end, mut at) = (header_end, first);
        while at < self.bytes.len() {
            let line_end = self.end_of_line(at);
            let blanks = self.bytes[at..line_end].iter().take_while(|it| **it == b' ').count();
            match line_end - at {
                // A line of blanks alone may or may not be text.
                len if len == blanks && len > 0 => return None,
                0 => {}
                _ if blanks < column => break,
                _ => end = line_end,
            }
            at = line_end + 1;
        }
        self.at = at;
        let node = self.add(Kind::Text, Style::Literal, (start, end), lead)?;
        self.tree.nodes[node as usize].text_column = u32::try_from(column).ok()?;
        let yaml = self.yaml;
        self.decode(node, |text| {
            for (nth, line) in yaml[first..end].split('\n').enumerate() {
                if nth > 0 {
                    text.push('\n');
                }
                text.push_str(line.get(column..).unwrap_or_default());
            }
            if is_clipped {
                text.push('\n');
            }
        })?;
        Some(node)
    }

    /// The offset of the colon after a key that consists of ASCII letters, digits, `_` and `-`.
    fn key_end(&self, start: usize) -> Option<usize> {
        let rest = &self.bytes[start..];
        rest.first().filter(|it| it.is_ascii_alphabetic() || **it == b'_')?;
        let is_word = |it: &u8| it.is_ascii_alphanumeric() || matches!(it, b'_' | b'-');
        let len = rest.iter().take(MAX_KEY).position(|it| !is_word(it))?;
        (rest[len] == b':' && matches!(rest.get(len + 1), Some(b' ' | b'\n'))).then_some(start + len)
    }

    /// Whether an item of a list begins at `at` and continues on the line of its dash.
    fn is_dash(&self, at: usize) -> bool {
        self.bytes[at] == b'-' && self.bytes.get(at + 1) == Some(&b' ')
    }

    fn skip_blanks(&mut self) -> usize {
        self.at += self.bytes[self.at..].iter().take_while(|it| **it == b' ').count();
        self.at
    }

    fn end_of_line(&self, from: usize) -> usize {
        let rest = &self.bytes[from..];
        from + rest.iter().position(|it| *it == b'\n').unwrap_or(rest.len())
    }

    fn scalar(&mut self, kind: Kind, style: Style, at: (usize, usize), lead: u32) -> Option<NodeId> {
        let id = self.add(kind, style, at, lead)?;
        let node = &mut self.tree.nodes[id as usize];
        node.content = (node.start, node.end);
        Some(id)
    }

    fn decode(&mut self, node: NodeId, text: impl FnOnce(&mut String)) -> Option<()> {
        let from = u32::try_from(self.tree.decoded.len()).ok()?;
        text(&mut self.tree.decoded);
        let node = &mut self.tree.nodes[node as usize];
        node.content = (from, u32::try_from(self.tree.decoded.len()).ok()?);
        node.is_decoded = true;
        Some(())
    }

    fn add(&mut self, kind: Kind, style: Style, (start, end): (usize, usize), lead: u32) -> Option<NodeId> {
        let id = NodeId::try_from(self.tree.nodes.len()).ok()?;
        let span = (u32::try_from(start).ok()?, u32::try_from(end).ok()?);
        self.tree.nodes.push(Node::new(kind, style, span, lead));
        Some(id)
    }

    /// Appends a complete node to a collection; `last` is the last node of the collection so far.
    fn append(&mut self, parent: NodeId, last: NodeId, child: NodeId) {
        let height = self.tree.nodes[child as usize].height + 1;
        let parent = &mut self.tree.nodes[parent as usize];
        if parent.count == 0 {
            parent.first = child;
        }
        parent.count += 1;
        parent.height = parent.height.max(height);
        if let Some(last) = self.tree.nodes.get_mut(last as usize) {
            last.next = child;
        }
    }

    fn close(&mut self, collection: NodeId, last: NodeId) {
        let end = self.tree.nodes.get(last as usize).map_or(0, |it| it.end);
        let node = &mut self.tree.nodes[collection as usize];
        node.end = end.max(node.start);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::yaml::parse::scanned;
    use proptest::prelude::*;

    const USUAL: &str = "title: \"Add: it\"  # why\nstatus: in_progress\n\n# a comment\ndepends: [1, 'two', a-3, b:2]\ntags: []\nclaim: {id: \"h4\", by: 'x y', at: 2026-01-02T03:04:05Z}\nmore: {}\nat: 2026-01-02T03:04:05Z\n\
        phase:\ngoals:\n- é one\n- 2 # c\nmetadata:\n  a: 1.5\n  b:\n    - c\nattempts:\n  - at: 2026-01-02\n    notes: |\n      first\n\n        deeper # text\n\
        \x20   by: 'x y'\n  - notes: |-\n      last: one\n\nverify:\n  - cargo test -- a:b\n";

    /// Checks that the scanner gives the same tree, and returns whether the fast path has read the text.
    fn is_same(yaml: &str) -> Result<bool, TestCaseError> {
        let Some(found) = read(yaml) else { return Ok(false) };
        let scanned = scanned(yaml).map_err(|it| TestCaseError::fail(format!("{it} in {yaml:?}")))?;
        prop_assert_eq!(&found.nodes, &scanned.nodes, "{:?}", yaml);
        prop_assert_eq!((&found.source, &found.decoded), (&scanned.source, &scanned.decoded), "{:?}", yaml);
        prop_assert_eq!((found.root, found.has_marks), (scanned.root, scanned.has_marks), "{:?}", yaml);
        prop_assert!(scanned.tags.is_empty() && scanned.aliases.is_empty(), "{:?}", yaml);
        Ok(true)
    }

    #[test]
    fn usual_front_matters_are_read_without_the_scanner() {
        for yaml in [
            "a: b\n",
            "a:\nb:  'c'\n",
            "a: |\n  b\n",
            "\n# c\na: []\n",
            "a: {b: c}\n",
            "a:\n- {b: c:d}\n",
            USUAL,
        ] {
            assert!(is_same(yaml).is_ok_and(|it| it), "{yaml:?}");
        }
    }

    #[test]
    fn ambiguous_front_matters_are_left_to_the_scanner() {
        for yaml in [
            "",
            "\n",
            "# c\n",
            "a: b",
            "a: b\r\n",
            "a:\tb\n",
            " a: b\n",
            "a: b\n c\n",
            "a: b: c\n",
            "a: &b c\n",
            "a: *b\n",
            "a: !b c\n",
            "a: {b}\n",
            "a: {b: }\n",
            "a: {b: c,}\n",
            "a: {b: {c: d}}\n",
            "a: {b: c: d}\n",
            "a: {b: c, b: d}\n",
            "a: {b: c,\n d: e}\n",
            "a: [b: c]\n",
            "a: [b,]\n",
            "a: [[b]]\n",
            "a: [b,\n c]\n",
            "a: \"b\\n\"\n",
            "a: 'b''c'\n",
            "a: 'b' c\n",
            "a: >\n  b\n",
            "a: |2\n  b\n",
            "a: |\n\n  b\n",
            "a: |\n  b\n  \n",
            "a: 1\na: 2\n",
            "<<: b\n",
            "? a\n: b\n",
            "- a\n",
            "---\na: b\n",
            "a: b\n...\n",
            "a:\n  - - b\n",
            "a:\n- b\n - c\n",
            "a: - b\n",
            "a: b\nc\n",
            "\"a\": b\n",
            "a: \u{feff}b\n",
        ] {
            assert!(read(yaml).is_none(), "{yaml:?}");
        }
    }

    fn line() -> impl Strategy<Value = String> {
        let indents = prop::sample::select(vec!["", "", "", "", "  ", "  ", "    ", "   ", "      ", " "]);
        let marks = prop::sample::select(vec!["", "", "", "- ", "- ", "-  ", "-"]);
        let keys = prop::sample::select(vec![
            "", "a: ", "b: ", "c: ", "d: ", "e: ", "f:", "g:  ", "h : ", "null: ", "1: ", "<<: ", "'k': ",
            "? ", "k-l_2: ", "a b: ",
        ]);
        let values = prop::sample::select(vec![
            "",
            "",
            "",
            "x",
            "x y",
            "é: z",
            "1.5",
            "null",
            "~",
            "true",
            "'q'",
            "'q''r'",
            "\"s\"",
            "\"t\\n\"",
            "[u, v]",
            "[]",
            "[ 'w' ,x ]",
            "[y",
            "z]",
            "{}",
            "{u: v}",
            "{ u: 'v',w:x:y , y: 2026-01-02T03:04:05Z }",
            "{u:v}",
            "{u: , v: w}",
            "{u: [v]}",
            "{u, v: w}",
            "{\"u\": v}",
            "{u: v]",
            "{u: v",
            "[u}",
            "{u: v:}",
            "{u: -v}",
            "{<<: v}",
            "|",
            "|-",
            "|+",
            "|2",
            ">",
            "x # c",
            "x #",
            "x#c",
            "# c",
            "#",
            "&n m",
            "*n",
            "!t u",
            "---",
            "...",
            "x: y",
            "a:b",
            "x ",
            "'",
            "\"",
            "-1",
            "- x",
            "<<<<<<< x",
            "\u{85}",
            "\t",
            "@x",
            "[a:b]",
            "[a: b]",
            "[a #b]",
            "'a' #",
            "'a'#",
            "(x)",
            "/x",
            "+1",
            "[,]",
            "[a,]",
        ]);
        (indents, marks, keys, values)
            .prop_map(|(indent, mark, key, value)| format!("{indent}{mark}{key}{value}\n"))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4096))]
        #[test]
        fn any_lines_are_read_as_by_the_scanner(lines in prop::collection::vec(line(), 0..7)) {
            is_same(&format!("first: 1\n{}", lines.concat()))?;
        }

        #[test]
        fn usual_front_matters_with_one_change_are_too(at in any::<prop::sample::Index>(), len in 0..4_usize, new in line()) {
            let starts: Vec<_> = USUAL.char_indices().map(|(at, _)| at).collect();
            let (at, end) = (at.index(starts.len()), at.index(starts.len()) + len);
            let (start, end) = (starts[at], starts.get(end).copied().unwrap_or(USUAL.len()));
            for new in [new.as_str(), new.trim_end_matches('\n')] {
                is_same(&[&USUAL[..start], new, &USUAL[end..]].concat())?;
            }
        }
    }
}
