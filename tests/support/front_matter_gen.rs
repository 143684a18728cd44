//! Random files with front matters of all usual constructs, generated from a seed.
//!
//! The position of each entry is recorded, so that a test can check that an edit changes only its entry.

use crate::random::{COMMENTS, KEYS, Random, WORDS};
use std::collections::BTreeMap;
use std::ops::Range;

/// A file, and the positions of its entries.
pub(crate) struct Sample {
    pub(crate) bytes: Vec<u8>,
    /// The key and the range of each entry of a block mapping, up to the next entry.
    pub(crate) entries: Vec<(String, Range<usize>)>,
}

/// How often each construct was generated.
pub(crate) type Counts = BTreeMap<&'static str, usize>;

/// Generates one file.
pub(crate) fn sample(random: &mut Random, counts: &mut Counts) -> Sample {
    let mut writer = Writer { random, counts, anchors: Vec::new(), next_anchor: 0 };
    let lines = writer.lines();
    writer.file(lines)
}

struct Writer<'a> {
    random: &'a mut Random,
    counts: &'a mut Counts,
    /// Anchors that aliases can use, and whether each is a mapping.
    anchors: Vec<(String, bool)>,
    next_anchor: usize,
}

/// A line, and the key of the entry that begins there.
type Line = (String, Option<String>);

impl Writer<'_> {
    fn count(&mut self, construct: &'static str) {
        *self.counts.entry(construct).or_default() += 1;
    }

    fn lines(&mut self) -> Vec<Line> {
        match self.random.below(40) {
            0 => {
                self.count("empty front matter");
                Vec::new()
            }
            1 => {
                self.count("comments only");
                vec![(self.comment(), None), (String::new(), None), (self.comment(), None)]
            }
            2..=4 => self.flow_root(),
            _ => self.block_root(),
        }
    }

    fn flow_root(&mut self) -> Vec<Line> {
        self.count("flow root");
        let multi = self.random.one_in(2);
        let keys = self.keys();
        let mut lines = vec!["{".to_owned()];
        for (nth, key) in keys.iter().enumerate() {
            let value = self.flow_value(2);
            let colon = if key.starts_with('"') && self.random.one_in(2) { ":" } else { ": " };
            let text = match self.random.below(12) {
                0 => key.clone(),
                1 => format!("{key}:"),
                2 => format!("? {key} : {value}"),
                _ => format!("{key}{colon}{value}"),
            };
            let comma = if nth + 1 < keys.len() || self.random.one_in(4) { "," } else { "" };
            let last = lines.last_mut().expect("there is a line");
            last.push_str(&text);
            last.push_str(if text.ends_with(':') && comma.is_empty() { " " } else { comma });
            if multi && self.random.one_in(2) {
                self.count("flow root of several lines");
                let comment = if self.random.one_in(3) { " # c, d" } else { "" };
                last.push_str(comment);
                lines.push("  ".to_owned());
            } else {
                last.push(' ');
            }
        }
        lines.last_mut().expect("there is a line").push('}');
        lines.into_iter().map(|it| (it, None)).collect()
    }

    fn block_root(&mut self) -> Vec<Line> {
        self.count("block root");
        let column = if self.random.one_in(12) { 2 } else { 0 };
        if column > 0 {
            self.count("indented root");
        }
        let mut lines: Vec<Line> = Vec::new();
        self.between(&mut lines, 0);
        for key in self.keys() {
            let merge = self.merge(column);
            lines.extend(merge);
            let entry = self.entry(&key, column, 3);
            let name = key.trim_matches(['"', '\'']).to_owned();
            for (nth, line) in entry.into_iter().enumerate() {
                lines.push((line, (nth == 0).then(|| name.clone())));
            }
            self.between(&mut lines, column);
        }
        lines
    }

    fn keys(&mut self) -> Vec<String> {
        let mut keys: Vec<String> = Vec::new();
        for _ in 0..1 + self.random.below(6) {
            let key = self.random.pick(&KEYS);
            if keys.iter().any(|it| it.trim_matches(['"', '\'']) == key) {
                continue;
            }
            keys.push(match self.random.below(12) {
                0 => format!("\"{key}\""),
                1 => format!("'{key}'"),
                _ => key.to_owned(),
            });
            if keys.last().is_some_and(|it| it.starts_with(['"', '\''])) {
                self.count("quoted key");
            }
        }
        keys
    }

    /// A merge of an earlier mapping, once per file.
    fn merge(&mut self, column: usize) -> Option<Line> {
        let map = self.anchors.iter().find(|it| it.1).map(|it| it.0.clone());
        let name = map.filter(|_| self.random.one_in(3))?;
        self.anchors.retain(|it| it.0 != name);
        if self.counts.contains_key("merge of this file") {
            return None;
        }
        self.count("merge key");
        self.count("merge of this file");
        let value = if self.random.one_in(4) { format!("[*{name}]") } else { format!("*{name}") };
        Some((format!("{}<<: {value}", " ".repeat(column)), Some("<<".to_owned())))
    }

    fn between(&mut self, lines: &mut Vec<Line>, column: usize) {
        while self.random.one_in(4) {
            if self.random.one_in(2) {
                self.count("blank line between entries");
                lines.push((if self.random.one_in(4) { "  ".to_owned() } else { String::new() }, None));
            } else {
                self.count("comment between entries");
                let deeper = if self.random.one_in(3) { 2 } else { 0 };
                lines.push((format!("{}{}", " ".repeat(column + deeper), self.comment()), None));
            }
        }
    }

    fn comment(&mut self) -> String {
        self.random.pick(&COMMENTS).to_owned()
    }

    /// The lines of a key with its value, the first one indented.
    fn entry(&mut self, key: &str, column: usize, depth: usize) -> Vec<String> {
        let indent = " ".repeat(column);
        let mut value = self.value(column, depth);
        let first = value.remove(0);
        let head = match self.random.below(30) {
            0 => {
                self.count("explicit key");
                format!("{indent}? {key}\n{indent}:{first}")
            }
            1 => {
                self.count("blank before colon");
                format!("{indent}{key} :{first}")
            }
            2 => {
                self.count("anchor on key");
                self.next_anchor += 1;
                format!("{indent}&k{} {key}:{first}", self.next_anchor)
            }
            _ => format!("{indent}{key}:{first}"),
        };
        head.split('\n').map(str::to_owned).chain(value).collect()
    }

    /// The text after a colon: the rest of its line, then the lines below.
    fn value(&mut self, column: usize, depth: usize) -> Vec<String> {
        let mut lines = match self.random.below(if depth == 0 { 8 } else { 16 }) {
            0 => {
                self.count("empty value");
                vec![String::new()]
            }
            1 => self.alias().unwrap_or_else(|| vec![" x".to_owned()]),
            2 | 3 => return self.block_scalar(column),
            4 => self.several_lines(column),
            5 => {
                let flow = self.flow_lines(column);
                self.with_properties(flow, false)
            }
            6 | 7 => {
                let token = vec![format!(" {}", self.token(false))];
                self.with_properties(token, false)
            }
            8..=12 => return self.block_list(column, depth),
            _ => return self.block_map(column, depth),
        };
        let last = lines.last_mut().expect("a value has a line");
        match self.random.below(6) {
            0 => {
                self.count("comment behind value");
                let comment = self.random.pick(&COMMENTS);
                last.push_str(if self.random.one_in(2) { "  " } else { " " });
                last.push_str(comment);
            }
            1 => {
                self.count("trailing blanks");
                last.push_str("  ");
            }
            _ => {}
        }
        lines
    }

    fn alias(&mut self) -> Option<Vec<String>> {
        let names: Vec<String> = self.anchors.iter().map(|it| it.0.clone()).collect();
        let name = names.get(self.random.below(names.len()))?;
        self.count("alias");
        Some(vec![format!(" *{name}")])
    }

    /// Puts an anchor and a tag before a value that begins on the line of its key.
    fn with_properties(&mut self, mut lines: Vec<String>, is_map: bool) -> Vec<String> {
        let properties = self.properties(is_map);
        let first = lines.remove(0);
        lines.insert(0, format!("{properties}{first}"));
        lines
    }

    fn properties(&mut self, is_map: bool) -> String {
        let mut text = String::new();
        if self.random.one_in(5) {
            self.count("anchor");
            self.next_anchor += 1;
            let name = format!("a{}", self.next_anchor);
            text = format!(" &{name}");
            self.anchors.push((name, is_map));
        }
        if !is_map && self.random.one_in(10) {
            self.count("tag");
            let tag = self.random.pick(&["!local", "!", "!<tag:x.org,2026:y>"]);
            let before = self.random.one_in(2);
            text = if before { format!(" {tag}{text}") } else { format!("{text} {tag}") };
        }
        text
    }

    fn token(&mut self, in_flow: bool) -> String {
        let word = self.random.pick(&WORDS);
        match self.random.below(6) {
            0 => {
                self.count("single-quoted");
                format!("'{}'", word.replace('\'', "''").replace('\t', " "))
            }
            1 => {
                self.count("double-quoted");
                let escape = self.random.pick(&["", "\\n", "\\u00e9", "\\\"", "\\\\", "\\x41", "\\0"]);
                format!("\"{}{escape}\"", word.replace('\\', "\\\\").replace('"', "\\\""))
            }
            _ => {
                let is_unsafe =
                    word.starts_with(['"', '!', '?', ':']) || in_flow && word.contains([',', ']', ':', '?']);
                if is_unsafe || word.contains('\t') {
                    return "plain".to_owned();
                }
                self.count("plain");
                word.to_owned()
            }
        }
    }

    fn several_lines(&mut self, column: usize) -> Vec<String> {
        let indent = " ".repeat(column + 1 + self.random.below(4));
        match self.random.below(3) {
            0 => {
                self.count("plain of several lines");
                vec![
                    " plain words".to_owned(),
                    format!("{indent}go on"),
                    String::new(),
                    format!("{indent}and on"),
                ]
            }
            1 => {
                self.count("double-quoted of several lines");
                vec![" \"one".to_owned(), format!("{indent}# two \\"), format!("{indent}three: x\"")]
            }
            _ => {
                self.count("single-quoted of several lines");
                vec![" 'one''s".to_owned(), String::new(), format!("{indent}- status: x'")]
            }
        }
    }

    fn block_scalar(&mut self, column: usize) -> Vec<String> {
        let step = 1 + self.random.below(4);
        let literal = self.random.one_in(2);
        let explicit = self.random.one_in(4);
        let chomp = self.random.pick(&["", "-", "+"]);
        self.count(match (literal, chomp) {
            (true, "") => "literal, clipped",
            (true, "-") => "literal, stripped",
            (true, _) => "literal, kept",
            (false, "") => "folded, clipped",
            (false, "-") => "folded, stripped",
            (false, _) => "folded, kept",
        });
        let digit = if explicit { step.to_string() } else { String::new() };
        if explicit {
            self.count("indentation indicator");
        }
        let (first, second) =
            if self.random.one_in(2) { (digit.as_str(), chomp) } else { (chomp, digit.as_str()) };
        let comment = if self.random.one_in(6) { " # header" } else { "" };
        let properties = self.properties(false);
        let mut lines =
            vec![format!("{properties} {}{first}{second}{comment}", if literal { '|' } else { '>' })];
        let indent = " ".repeat(column + step);
        for nth in 0..self.random.below(5) {
            let line = self.random.pick(&[
                "text",
                "# no comment",
                "- item",
                "---",
                "...",
                "k: v",
                "",
                " deep",
                "end  ",
                "\ttab",
                "é",
            ]);
            let is_edge = nth == 0 && !explicit && line.starts_with([' ', '\t']);
            lines.push(if line.is_empty() || is_edge { String::new() } else { format!("{indent}{line}") });
        }
        for _ in 0..self.random.below(4) {
            self.count("blank line at the end of a block scalar");
            let width = self.random.below(column + step + 1);
            lines.push(if self.random.one_in(4) { " ".repeat(width) } else { String::new() });
        }
        lines
    }

    fn block_list(&mut self, column: usize, depth: usize) -> Vec<String> {
        let step = [0, 2, 2, 4][self.random.below(4)];
        self.count(match step {
            0 => "list without indent",
            2 => "list indented by 2",
            _ => "list indented by 4",
        });
        let dash = column + step;
        let properties =
            if self.random.one_in(2) { self.properties(true).replace("&a", "&l") } else { String::new() };
        for it in self.anchors.iter_mut().filter(|it| properties.contains(&it.0.replace('a', "l"))) {
            *it = (it.0.replace('a', "l"), false);
        }
        let comment = if self.random.one_in(6) { " # list" } else { "" };
        let mut lines = vec![format!("{properties}{comment}")];
        for _ in 0..1 + self.random.below(4) {
            if self.random.one_in(6) {
                self.count("comment between items");
                lines.push(format!("{}# between", " ".repeat(dash)));
            }
            if self.random.one_in(8) {
                self.count("blank line between items");
                lines.push(String::new());
            }
            lines.extend(self.item(dash, depth - 1));
        }
        lines
    }

    fn item(&mut self, dash: usize, depth: usize) -> Vec<String> {
        let indent = " ".repeat(dash);
        let gap = 1 + if self.random.one_in(4) { 2 } else { 0 };
        let inner = dash + 1 + gap;
        match self.random.below(if depth == 0 { 5 } else { 9 }) {
            0 => {
                self.count("item without value");
                vec![format!("{indent}-")]
            }
            1 => {
                let mut lines = self.block_scalar(dash);
                lines[0] = format!("{indent}-{}", lines[0]);
                lines
            }
            2..=4 => vec![format!("{indent}-{}{}", " ".repeat(gap), self.token(false))],
            5 | 6 => {
                self.count("mapping as item");
                let mut lines = self.map_lines(inner, depth);
                lines[0] = format!("{indent}-{}{}", " ".repeat(gap), lines[0].trim_start());
                lines
            }
            7 => {
                self.count("dash alone on its line");
                let mut lines = vec![format!("{indent}-")];
                lines.extend(self.map_lines(inner, depth));
                lines
            }
            _ => {
                self.count("list in a list");
                let mut lines = self.item(inner, depth - 1);
                lines[0] = format!("{indent}-{}{}", " ".repeat(gap), lines[0].trim_start());
                lines
            }
        }
    }

    fn map_lines(&mut self, column: usize, depth: usize) -> Vec<String> {
        let mut lines = Vec::new();
        for key in ["at", "by", "outcome"].iter().take(1 + self.random.below(3)) {
            lines.extend(self.entry(key, column, depth.saturating_sub(1)));
        }
        // Explicit keys and anchors are not generated after a dash.
        if lines[0].trim_start().starts_with(['?', '&']) {
            vec![format!("{}at: x", " ".repeat(column))]
        } else {
            lines
        }
    }

    fn block_map(&mut self, column: usize, depth: usize) -> Vec<String> {
        self.count("nested mapping");
        let properties = self.properties(true);
        let mut lines = vec![properties];
        let column = column + 1 + self.random.below(4);
        for key in ["status", "deep", "list"].iter().take(1 + self.random.below(3)) {
            lines.extend(self.entry(key, column, depth - 1));
        }
        lines
    }

    fn flow_value(&mut self, depth: usize) -> String {
        match self.random.below(if depth == 0 { 3 } else { 6 }) {
            0..=2 => self.token(true),
            3 => {
                self.count("empty flow");
                self.random.pick(&["[]", "{}", "[ ]", "{ }"]).to_owned()
            }
            4 => {
                self.count("flow list");
                let items: Vec<String> =
                    (0..1 + self.random.below(3)).map(|_| self.flow_value(depth - 1)).collect();
                let comma = if self.random.one_in(5) { "," } else { "" };
                format!("[{}{comma}]", items.join(self.random.pick(&[", ", " , ", ","])))
            }
            _ => {
                self.count("flow mapping");
                let first = self.flow_value(depth - 1);
                let second = self.flow_value(depth - 1);
                self.random
                    .pick(&["{at: A, by: B}", "{ at: A }", "{\"at\":\"x\", by: B, }", "[k: A, B]"])
                    .replace('A', &first)
                    .replace('B', &second)
            }
        }
    }

    fn flow_lines(&mut self, column: usize) -> Vec<String> {
        if self.random.one_in(2) {
            return vec![format!(" {}", self.flow_value(2))];
        }
        self.count("flow of several lines");
        let indent = " ".repeat(column + 1 + self.random.below(4));
        let mut lines = vec![" [".to_owned()];
        let count = self.random.below(4);
        for nth in 0..count {
            let comma = if nth + 1 < count || self.random.one_in(3) { "," } else { "" };
            let comment = if self.random.one_in(4) { " # c" } else { "" };
            lines.push(format!("{indent}{}{comma}{comment}", self.flow_value(1)));
        }
        lines.push(format!("{}]", " ".repeat(column + 1)));
        lines
    }

    fn file(&mut self, lines: Vec<Line>) -> Sample {
        let eols: &[&str] = match self.random.below(6) {
            0 => &["\r\n"],
            1 => &["\n", "\r\n"],
            _ => &["\n"],
        };
        self.count(if eols.len() > 1 {
            "mixed line endings"
        } else if eols[0] == "\n" {
            "LF"
        } else {
            "CRLF"
        });
        self.counts.remove("merge of this file");
        let mut text = String::new();
        if self.random.one_in(10) {
            self.count("byte order mark");
            text.push('\u{feff}');
        }
        text.push_str(if self.random.one_in(8) { "--- " } else { "---" });
        text.push_str(self.random.pick(eols));
        let mut starts: Vec<(String, usize)> = Vec::new();
        for (line, key) in lines {
            starts.extend(key.map(|it| (it, text.len())));
            text.push_str(&line);
            text.push_str(self.random.pick(eols));
        }
        let end = text.len();
        let ends: Vec<usize> = starts.iter().skip(1).map(|it| it.1).chain([end]).collect();
        let entries = starts.into_iter().zip(ends).map(|((key, start), end)| (key, start..end)).collect();
        text.push_str(self.random.pick(&["---", "---", "---", "...", "--- \t"]));
        let mut bytes = text.into_bytes();
        if self.random.one_in(8) {
            self.count("no final newline");
            return Sample { bytes, entries };
        }
        bytes.extend_from_slice(self.random.pick(eols).as_bytes());
        let bodies: [&[u8]; 5] =
            [b"", b"# Step\n\n---\nstatus: no yaml\n---\n", b"\xff\xfe\n", b"text\r\n---\r\n", b"\n\nx"];
        bytes.extend_from_slice(self.random.pick(&bodies));
        Sample { bytes, entries }
    }
}
