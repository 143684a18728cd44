//! Fills in handlebars placeholders. Inserting a missing value is an error, but a block such as `{{#if x}}` treats it as
//! false. No value can break the front matter of a file.
//!
//! This module does not depend on plans. Partials and decorators are rejected, because they can recurse without end.

mod check;
mod compare;

use std::collections::BTreeMap;

use handlebars::{Handlebars, RenderError, Template, TemplateErrorReason, no_escape};
use serde_json::Value;

use crate::text::front_matter::{self, Header};
use crate::text::line_index::{self, Place as LinePlace};
use crate::text::scalar::{self, Place};
use crate::text::yaml::{self, Kind, View};

pub use check::check;

/// The maximum number of blocks in one text. Each block can be nested in the block before it.
const MAX_BLOCKS: usize = 200;

/// How deep calls in parentheses may be nested. Each level needs more of the parser's stack.
const MAX_CALLS: usize = 30;

/// How deep loops may be nested. The number of iterations is the product of the lengths of their lists.
const MAX_LOOPS: usize = 3;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct Broken {
    pub line: u32,
    pub column: u32,
    pub reason: String,
}

/// Fills in a Markdown file. The result always has a front matter, possibly an empty one.
///
/// In the front matter, each scalar with a placeholder is replaced by the resulting text, in quotes where needed. The
/// author of the file does not have to quote placeholders.
pub fn fill_file(source: &str, values: &Value) -> Result<String, Broken> {
    let parts = front_matter::split(source.as_bytes());
    let (yaml, body) = match &parts.header {
        Header::Present { yaml, .. } => (yaml.clone(), parts.body_start()),
        Header::Unclosed => return Err(broken(source, 0, "the front matter is not closed")),
        Header::Absent => (parts.body_start()..parts.body_start(), parts.body_start()),
    };
    let header = fill_yaml(source, &source[yaml.clone()], yaml.start, values)?;
    let body = fill_part(source, &source[body..], body, values)?;
    let has_crlf = source.split('\n').next().is_some_and(|it| it.ends_with('\r'));
    let eol = if has_crlf { "\r\n" } else { "\n" };
    Ok(format!("---{eol}{header}---{eol}{body}"))
}

pub fn fill(source: &str, values: &Value) -> Result<String, Broken> {
    fill_part(source, source, 0, values)
}

/// Returns the first handlebars comment of a text, joined into one line. In this comment, the author describes the text.
pub fn comment(source: &str) -> Option<String> {
    let start = source.find("{{!")? + 3;
    let rest = &source[start..];
    let said = match rest.strip_prefix("--") {
        Some(rest) => &rest[..rest.find("--}}")?],
        None => &rest[..rest.find("}}")?],
    };
    Some(one_line(said)).filter(|it| !it.is_empty())
}

pub fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn broken(whole: &str, at: usize, reason: impl Into<String>) -> Broken {
    let LinePlace { line, column } = line_index::place(whole.as_bytes(), at);
    Broken { line, column, reason: reason.into() }
}

/// Renders the part of `whole` that begins at `at`.
fn fill_part(whole: &str, part: &str, at: usize, values: &Value) -> Result<String, Broken> {
    render(Handlebars::new(), (whole, part, at), values)
}

fn render(
    mut handlebars: Handlebars<'_>,
    (whole, part, at): (&str, &str, usize),
    values: &Value,
) -> Result<String, Broken> {
    let template = compiled(whole, part, at)?;
    handlebars.set_strict_mode(true);
    handlebars.register_escape_fn(no_escape);
    handlebars.register_template("it", template);
    handlebars.render("it", values).map_err(|it| in_part(whole, at, it.line_no, it.column_no, why(&it)))
}

/// Parses the part of `whole` that begins at `at`, and rejects anything that could run without end.
fn compiled(whole: &str, part: &str, at: usize) -> Result<Template, Broken> {
    screen(whole, part, at)?;
    Template::compile(part).map_err(|it| {
        let (line, column) = it.pos().unzip();
        in_part(whole, at, line, column, why_unread(it.reason()))
    })
}

/// Makes an error. `line` counts from the line at `at`. The line of the error counts from the start of `whole`.
fn in_part(whole: &str, at: usize, line: Option<usize>, column: Option<usize>, reason: String) -> Broken {
    let first = line_index::place(whole.as_bytes(), at).line;
    let line = u32::try_from(line.unwrap_or(1)).unwrap_or(1).max(1);
    let column = u32::try_from(column.unwrap_or(1)).unwrap_or(1).max(1);
    Broken { line: first + line - 1, column, reason }
}

fn why(error: &RenderError) -> String {
    use handlebars::RenderErrorReason as Reason;
    match error.reason() {
        Reason::MissingVariable(Some(name)) => format!("there is no value `{name}`"),
        Reason::MissingVariable(None) => "there is no such value".to_owned(),
        Reason::HelperNotFound(name) => format!("there is no helper `{name}`"),
        other => other.to_string(),
    }
}

/// Explains a syntax error without the parser's list of expected tokens, because this list does not help users.
fn why_unread(reason: &TemplateErrorReason) -> String {
    match reason {
        TemplateErrorReason::InvalidSyntax(_) => {
            "a placeholder or block is not valid here, or is not closed".to_owned()
        }
        other => other.to_string(),
    }
}

/// Rejects partials and decorators, which could run without end, and nesting that is too deep.
fn screen(whole: &str, part: &str, at: usize) -> Result<(), Broken> {
    let (mut blocks, mut loops) = (0, 0_usize);
    for (open, _) in part.match_indices("{{") {
        let inside = part[open + 2..].trim_start_matches(['{', '~']).trim_start();
        let is_block = inside.starts_with('#');
        let inside = inside.trim_start_matches('#').trim_start();
        if inside.starts_with(['>', '*']) {
            return Err(broken(whole, at + open, "partials and decorators are not supported here"));
        }
        blocks += usize::from(is_block);
        match inside.strip_prefix('/').map(str::trim_start) {
            Some(closed) => loops = loops.saturating_sub(usize::from(closed.starts_with("each"))),
            None => loops += usize::from(is_block && inside.starts_with("each")),
        }
        if loops > MAX_LOOPS {
            return Err(broken(whole, at + open, format!("loops are nested more than {MAX_LOOPS} deep")));
        }
        if blocks > MAX_BLOCKS {
            return Err(broken(whole, at + open, format!("there are more than {MAX_BLOCKS} blocks")));
        }
    }
    match too_deep_call(part) {
        Some(call) => {
            let reason = format!("calls in parentheses are nested more than {MAX_CALLS} deep");
            Err(broken(whole, at + call, reason))
        }
        None => Ok(()),
    }
}

/// The offset of the first parenthesis that is nested deeper than [`MAX_CALLS`] within a placeholder.
fn too_deep_call(part: &str) -> Option<usize> {
    let (mut is_inside, mut quote, mut depth) = (false, None, 0_usize);
    let mut rest = part.bytes().enumerate().peekable();
    while let Some((at, byte)) = rest.next() {
        let is_doubled = rest.peek().is_some_and(|(_, next)| *next == byte);
        match (quote, byte) {
            (Some(_), b'\\') => drop(rest.next()),
            (Some(mark), _) if byte == mark => quote = None,
            (Some(_), _) => {}
            (None, b'{') if is_doubled => (is_inside, depth) = (!part[at + 2..].starts_with('!'), 0),
            (None, b'}') if is_doubled => is_inside = false,
            (None, b'"' | b'\'') if is_inside => quote = Some(byte),
            (None, b'(') if is_inside => depth += 1,
            (None, b')') => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > MAX_CALLS {
            return Some(at);
        }
    }
    None
}

/// Fills in YAML. While it is rendered and parsed, unique words stand for the values. Afterwards the values are inserted as
/// texts, in quotes where needed.
fn fill_yaml(whole: &str, part: &str, at: usize, values: &Value) -> Result<String, Broken> {
    let mut marks = Marks { prefix: free_prefix(part), texts: BTreeMap::new() };
    let marked = marks.mark(values);
    let mut handlebars = Handlebars::new();
    compare::register(&mut handlebars, &marks.texts);
    let rendered = render(handlebars, (whole, part, at), &marked)?;
    if marks.texts.is_empty() || !rendered.contains(&marks.prefix) {
        return Ok(with_line_end(rendered));
    }
    let tree = yaml::parse(&rendered).map_err(|it| {
        let first = line_index::place(whole.as_bytes(), at).line;
        let LinePlace { line, column } = line_index::place(rendered.as_bytes(), it.at);
        let reason = format!("the front matter is not YAML once it is filled in: {}", it.message);
        Broken { line: first + line - 1, column, reason }
    })?;
    let mut splices = Vec::new();
    marks.splices(tree.root(), &mut splices);
    splices.sort_by_key(|(span, _): &(std::ops::Range<usize>, String)| span.start);
    let mut filled = String::new();
    let mut from = 0;
    for (span, text) in splices {
        filled.push_str(&marks.in_comments(&rendered[from..span.start]));
        filled.push_str(&text);
        from = span.end;
    }
    filled.push_str(&marks.in_comments(&rendered[from..]));
    Ok(with_line_end(filled))
}

fn with_line_end(mut text: String) -> String {
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    text
}

/// A word that the text does not contain.
fn free_prefix(text: &str) -> String {
    (0_u32..).map(|n| format!("pwvalue{n}x")).find(|it| !text.contains(it)).unwrap_or_default()
}

/// Words that stand for the texts of values. The words have no meaning in YAML.
struct Marks {
    prefix: String,
    texts: BTreeMap<String, String>,
}

impl Marks {
    /// Empty texts are not replaced, so that `{{#if}}` still treats them as false.
    fn mark(&mut self, value: &Value) -> Value {
        match value {
            Value::String(text) if !text.is_empty() => {
                let mark = format!("{}{:06}z", self.prefix, self.texts.len());
                self.texts.insert(mark.clone(), text.clone());
                Value::String(mark)
            }
            Value::Array(items) => Value::Array(items.iter().map(|it| self.mark(it)).collect()),
            Value::Object(map) => {
                Value::Object(map.iter().map(|(key, it)| (key.clone(), self.mark(it))).collect())
            }
            other => other.clone(),
        }
    }

    fn text_of(&self, marked: &str) -> String {
        self.replaced(marked, |it| it.to_owned())
    }

    /// A comment ends with its line, so values in it must be on one line.
    fn in_comments(&self, between: &str) -> String {
        let printable = |c: char| if c.is_control() { ' ' } else { c };
        self.replaced(between, |it| one_line(it).chars().map(printable).collect())
    }

    fn replaced(&self, text: &str, with: impl Fn(&str) -> String) -> String {
        let mut done = String::new();
        let mut rest = text;
        while let Some(at) = rest.find(&self.prefix) {
            let end = (at + self.prefix.len() + 7).min(rest.len());
            done.push_str(&rest[..at]);
            let known = rest.get(at..end).and_then(|it| Some((with(self.texts.get(it)?), end)));
            let prefix = || (self.prefix.clone(), at + self.prefix.len());
            let (text, end) = known.unwrap_or_else(prefix);
            done.push_str(&text);
            rest = &rest[end..];
        }
        done + rest
    }

    fn splices(&self, view: View<'_>, splices: &mut Vec<(std::ops::Range<usize>, String)>) {
        if view.is_alias() {
            return;
        }
        match view.kind() {
            Kind::List => view.items().for_each(|it| self.splices(it, splices)),
            Kind::Map => view.own_entries().for_each(|(key, value)| {
                self.splices(key, splices);
                self.splices(value, splices);
            }),
            _ => {
                let text = view.text().unwrap_or_default();
                if text.contains(&self.prefix) {
                    splices.push((view.span(), scalar::inline(&self.text_of(text), Place::Flow)));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(source: &str, values: &Value, expected: &str) {
        assert_eq!(fill_file(source, values).as_deref(), Ok(expected));
    }

    #[test]
    fn values_come_into_a_front_matter_as_texts() {
        let values = json!({"title": "a: \"b\"\n# c", "tags": ["x, y", "yes"], "none": ""});
        let source = "---\ntitle: {{title}}\nq: \"{{title}}!\"\nl: |-\n  {{title}}\ntags: [{{#each tags}}{{this}}, {{/each}}]\n# {{title}}\n{{#if none}}\nnone: {{none}}\n{{/if}}\n---\n# {{title}}\n";
        check(
            source,
            &values,
            "---\ntitle: \"a: \\\"b\\\"\\n# c\"\nq: \"a: \\\"b\\\"\\n# c!\"\nl: \"a: \\\"b\\\"\\n# c\"\ntags: [\"x, y\", \"yes\", ]\n# a: \"b\" # c\n---\n# a: \"b\"\n# c\n",
        );
    }

    #[test]
    fn line_endings_stay() {
        let source = "---\r\ntags: [x]\r\n---\r\n# {{title}}\r\n";
        check(source, &json!({"title": "T"}), "---\r\ntags: [x]\r\n---\r\n# T\r\n");
        check("# {{title}}\r\n", &json!({"title": "T"}), "---\r\n---\r\n# T\r\n");
    }

    #[test]
    fn a_name_that_looks_like_a_mark_stays() {
        let values = json!({"pwvalue0xaaaaa漢漢": "x"});
        check("---\n# {{#each this}}{{@key}}{{/each}}\n---\n", &values, "---\n# pwvalue0xaaaaa漢漢\n---\n");
    }

    #[test]
    fn a_file_without_front_matter_cannot_get_one_from_a_value() {
        check(
            "{{t}}\n",
            &json!({"t": "---\nstatus: completed\n---"}),
            "---\n---\n---\nstatus: completed\n---\n",
        );
        check("plain\n", &json!({}), "---\n---\nplain\n");
    }

    #[track_caller]
    fn check_broken(source: &str, line: u32, column: u32, reason: &str) {
        let error = fill_file(source, &json!({"title": "T", "list": []})).expect_err("it is broken");
        assert_eq!((error.line, error.column), (line, column), "{error:?}");
        assert!(error.reason.contains(reason), "{error:?}");
    }

    #[test]
    fn errors_have_a_place() {
        check_broken("---\na: 1\n---\n# {{titel}}\n", 4, 3, "there is no value `titel`");
        check_broken("---\na: {{b}}\n---\n", 2, 4, "there is no value `b`");
        check_broken("a\n{{#if title}}\n", 3, 1, "not closed");
        check_broken("a {{> a}}", 1, 3, "partials");
        check_broken("a\n{{~ #*inline 'a'}}{{/inline}}", 2, 1, "decorators");
        check_broken("---\na: [{{title}}\n---\n", 2, 4, "not YAML");
        check_broken(&"{{#if title}}".repeat(300), 1, 2601, "more than 200 blocks");
        let nested = |n: usize| format!("{{{{{}title{}}}}}", "eq (".repeat(n), ")".repeat(n));
        check_broken(&nested(900), 1, 126, "more than 30 deep");
        let quoted = nested(40).replace("(eq", "(eq \"}} ' \\\" (\" ");
        check_broken(&quoted, 1, 516, "more than 30 deep");
        assert_eq!(too_deep_call(&nested(30)), None);
        assert_eq!(
            too_deep_call(&format!("{} {{{{! don't }}}} {}", "(".repeat(99), "{{title}} (".repeat(99))),
            None
        );
        let loops = |n: usize| format!("{}x{}", "{{#each tags}}".repeat(n), "{{/each}}".repeat(n));
        check_broken(&loops(4), 1, 43, "more than 3 deep");
        assert!(screen(&loops(3), &loops(3), 0).is_ok() && screen("", &loops(1).repeat(9), 0).is_ok());
        check_broken("---\na: 1\n", 1, 1, "not closed");
    }

    #[test]
    fn an_author_says_what_a_text_is_for() {
        assert_eq!(comment("---\n{{!-- For\n bugs. --}}\n---\n").as_deref(), Some("For bugs."));
        assert_eq!(comment("{{! Short }}").as_deref(), Some("Short"));
        assert_eq!(comment("none {{title}}"), None);
    }

    proptest! {
        #[test]
        fn a_value_stays_one_value(text in any::<String>()) {
            let source = "---\na: {{v}}\nb: '{{v}}'\nc:\n  - \"{{v}}\"\n# {{v}}\nd: 1\n---\n";
            let filled = fill_file(source, &json!({"v": text})).expect("it is sound");
            let parts = front_matter::split(filled.as_bytes());
            let yaml = std::str::from_utf8(parts.yaml().expect("it has one")).expect("it is text");
            let tree = yaml::parse(yaml).unwrap_or_else(|it| panic!("{it:?}: {filled}"));
            let root = tree.root();
            let got = |key| root.get(key).and_then(View::text).unwrap_or_default();
            prop_assert_eq!(got("b"), text.as_str());
            prop_assert_eq!(root.len(), 4);
            prop_assert_eq!(got("d"), "1");
            if !text.is_empty() {
                prop_assert_eq!(got("a"), text.as_str());
            }
        }
    }
}
