//! Renders new values as YAML text.

use super::value::{NewValue, plain_value, typed};
use crate::text::scalar::{self, Place};
use crate::text::yaml::{Kind, Style, Tree};

#[derive(Debug, Clone, Copy)]
pub(super) struct Renderer<'a> {
    pub(super) eol: &'a str,
    /// The indentation of the dashes of a list relative to their key, in columns.
    pub(super) dash_step: usize,
    /// Whether a text of several lines may be written as a block scalar.
    pub(super) has_literals: bool,
}

impl Renderer<'_> {
    pub(super) fn plain() -> Self {
        Self { eol: "\n", dash_step: 2, has_literals: true }
    }

    /// A key with its value; the first line is not indented, the others are indented for a key at `column`.
    pub(super) fn entry(&self, key: &str, value: &NewValue, column: usize) -> String {
        format!("{}:{}", scalar::inline(key, Place::Flow), self.after_key(value, column))
    }

    /// The text after the colon of a key at `column`.
    pub(super) fn after_key(&self, value: &NewValue, column: usize) -> String {
        match self.token(value, column) {
            Some(token) => format!(" {token}"),
            None => format!("{}{}", self.eol, self.below_key(value, column)),
        }
    }

    /// The lines of a list or mapping below its key at `column`, without the last line ending.
    pub(super) fn below_key(&self, value: &NewValue, column: usize) -> String {
        let column = column + if is_list(value) { self.dash_step } else { 2 };
        format!("{}{}", spaces(column), self.block(value, column))
    }

    /// A list item from its dash on; the lines after the first are indented for a dash at `column`.
    pub(super) fn item(&self, item: &NewValue, column: usize, gap: &str) -> String {
        let body = self.token(item, column).unwrap_or_else(|| self.block(item, column + 1 + gap.len()));
        format!("-{gap}{body}")
    }

    /// A value that begins on the line of its key or dash; `None` if it is a block collection. `column` is the column of the
    /// key or dash.
    pub(super) fn token(&self, value: &NewValue, column: usize) -> Option<String> {
        match value {
            NewValue::Text(text) => Some(match scalar::literal(text).filter(|_| self.has_literals) {
                Some(literal) => self.literal(&literal, column + 2),
                None => scalar::inline(text, Place::Block),
            }),
            NewValue::Yaml(text) => {
                let tree = typed(text).ok()?;
                (tree.root().style() != Style::Block).then(|| self.typed_token(&tree, column))
            }
            _ if value.is_block() => None,
            _ => Some(flow(value)),
        }
    }

    /// The lines of a list or mapping whose first line begins at `column`.
    pub(super) fn block(&self, value: &NewValue, column: usize) -> String {
        let lines: Vec<String> = match value {
            NewValue::List(items) => items.iter().map(|it| self.item(it, column, " ")).collect(),
            NewValue::Map(entries) => {
                entries.iter().map(|(key, value)| self.entry(key, value, column)).collect()
            }
            NewValue::Yaml(text) => return self.typed_block(text, column),
            NewValue::Text(_) | NewValue::Word(_) | NewValue::FlowMap(_) => vec![flow(value)],
        };
        lines.join(&format!("{}{}", self.eol, spaces(column)))
    }

    pub(super) fn literal(&self, literal: &scalar::Literal<'_>, column: usize) -> String {
        let mut text = literal.header.to_owned();
        for line in &literal.lines {
            text.push_str(self.eol);
            if !line.is_empty() {
                text.push_str(&spaces(column));
                text.push_str(line);
            }
        }
        text
    }

    /// A scalar or flow collection as the user typed it. The lines after the first are indented by `column + 2` more
    /// columns. A block scalar is rendered from its value.
    fn typed_token(&self, tree: &Tree, column: usize) -> String {
        let root = tree.root();
        let text = &tree.source()[root.outer_span()];
        if text.is_empty() {
            return "~".to_owned();
        }
        if matches!(root.style(), Style::Literal | Style::Folded) {
            return self.token(&plain_value(root), column).unwrap_or_default();
        }
        text.lines().collect::<Vec<_>>().join(&format!("{}{}", self.eol, spaces(column + 2)))
    }

    /// A block collection as the user typed it, but indented so that its first line begins at `column`. If block scalars are
    /// not allowed and the text may contain one, the collection is rendered from its value.
    fn typed_block(&self, text: &str, column: usize) -> String {
        let Ok(tree) = typed(text) else { return String::new() };
        if !self.has_literals && text.contains(['|', '>']) {
            return self.block(&plain_value(tree.root()), column);
        }
        let span = tree.root().outer_span();
        let line = tree.source()[..span.start].rfind('\n').map_or(0, |it| it + 1);
        let base = span.start - line;
        let mut out = String::new();
        for (nth, line) in tree.source()[span].lines().enumerate() {
            if nth == 0 {
                out.push_str(line);
                continue;
            }
            out.push_str(self.eol);
            let own = line.len() - line.trim_start_matches(' ').len();
            let rest = &line[own.min(base)..];
            if !rest.trim().is_empty() || own > base {
                out.push_str(&spaces(column));
                out.push_str(rest);
            }
        }
        out
    }
}

/// A value on one line, in a form that is valid inside brackets.
pub(super) fn flow(value: &NewValue) -> String {
    match value {
        NewValue::Text(text) => scalar::inline(text, Place::Flow),
        NewValue::Word(word) => word.clone(),
        NewValue::List(items) => format!("[{}]", join(items.iter().map(flow))),
        NewValue::Map(entries) => flow_map(entries, flow),
        NewValue::FlowMap(entries) => flow_map(entries, quoted_flow),
        NewValue::Yaml(text) => typed_flow(text),
    }
}

fn quoted_flow(value: &NewValue) -> String {
    match value {
        NewValue::Text(text) => scalar::double(text),
        NewValue::List(items) => format!("[{}]", join(items.iter().map(quoted_flow))),
        NewValue::Map(entries) => flow_map(entries, quoted_flow),
        _ => flow(value),
    }
}

fn flow_map(entries: &[(String, NewValue)], value: impl Fn(&NewValue) -> String) -> String {
    let entries =
        entries.iter().map(|(key, it)| format!("{}: {}", scalar::inline(key, Place::Flow), value(it)));
    format!("{{{}}}", join(entries))
}

/// A value as the user typed it, if that is one line and valid inside brackets. Otherwise it is rendered from the value.
fn typed_flow(text: &str) -> String {
    let Ok(tree) = typed(text) else { return String::new() };
    let root = tree.root();
    let source = &tree.source()[root.outer_span()];
    let is_safe = match root.style() {
        Style::Single | Style::Double | Style::Flow => true,
        Style::Plain => root.kind() != Kind::Text || scalar::is_plain(source, Place::Flow),
        Style::Literal | Style::Folded | Style::Block | Style::Alias => false,
    };
    if is_safe && !source.is_empty() && !source.contains(['\n', '\r']) {
        return source.to_owned();
    }
    flow(&plain_value(root))
}

fn is_list(value: &NewValue) -> bool {
    match value {
        NewValue::List(_) => true,
        NewValue::Yaml(text) => typed(text).is_ok_and(|it| it.root().kind() == Kind::List),
        _ => false,
    }
}

fn join(parts: impl Iterator<Item = String>) -> String {
    parts.collect::<Vec<_>>().join(", ")
}

pub(super) fn spaces(count: usize) -> String {
    " ".repeat(count)
}
