//! A value to write, and whether a node already has it.

use super::EditError;
use super::refusal::VALUE_INVALID;
use crate::text::scalar::{self, Place};
use crate::text::yaml::resolve::plain_kind;
use crate::text::yaml::{self, Kind, Tree, View};
use serde_json::Value;

/// The maximum length of a key as it is written, in bytes. For a key without `?`, YAML allows 1024 characters, and some
/// parsers allow only 1024 bytes.
const MAX_KEY: usize = 1000;

/// The maximum number of nodes of a value that a user typed, with its aliases expanded. There is no such limit for a value
/// without aliases.
const MAX_NODES: usize = 10_000;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NewValue {
    /// Any text; quoted where needed.
    Text(String),
    /// A plain token that is written as it is: a status, a timestamp, a number. If YAML reads the token as a text, it gets
    /// the quotes, if any, of the value that it replaces.
    Word(String),
    /// A list. Outside of brackets, it becomes a block list.
    List(Vec<Self>),
    Map(Vec<(String, Self)>),
    /// A mapping on one line; texts in it are always in double quotes.
    FlowMap(Vec<(String, Self)>),
    /// One YAML value as text, typed by a user or copied from a file.
    Yaml(String),
}

impl NewValue {
    /// Converts a JSON value. Its arrays and objects become lists and mappings over several lines.
    pub fn of_json(of: &Value) -> Self {
        match of {
            Value::String(text) => Self::Text(text.clone()),
            Value::Array(items) => Self::List(items.iter().map(Self::of_json).collect()),
            Value::Object(map) => {
                Self::Map(map.iter().map(|(key, it)| (key.clone(), Self::of_json(it))).collect())
            }
            // Numbers, true, false and null are written alike in YAML and in JSON.
            other => Self::Word(other.to_string()),
        }
    }

    /// The value of a node without its layout, aliases written out.
    pub fn of_view(view: View<'_>) -> Self {
        plain_value(view)
    }

    /// The source text of a node, with the indentation of its first line. If this text is not a valid value by itself, the
    /// node's value without its layout.
    pub fn as_written(of: View<'_>) -> Self {
        let (source, span) = (of.source(), of.outer_span());
        let start = source[..span.start].rfind('\n').map_or(0, |it| it + 1);
        let written = Self::Yaml(format!("{}{}", " ".repeat(span.start - start), &source[span]));
        if written.check().is_ok() { written } else { plain_value(of) }
    }

    /// Rejects a text that a user typed if it is not one YAML value, or if its aliases expand to too many nodes. Also
    /// rejects keys that are too long for some parsers.
    pub(super) fn check(&self) -> Result<(), EditError> {
        match self {
            Self::Text(_) | Self::Word(_) => Ok(()),
            Self::List(items) => items.iter().try_for_each(Self::check),
            Self::Map(entries) | Self::FlowMap(entries) => entries.iter().try_for_each(|(key, value)| {
                check_key(key)?;
                value.check()
            }),
            Self::Yaml(text) => {
                let tree = typed(text).map_err(|it| not_a_value(text, it))?;
                let nodes = tree.root().subtree_size(MAX_NODES);
                let is_small = nodes <= MAX_NODES || tree.aliases().next().is_none();
                let too_much = || {
                    EditError::new(VALUE_INVALID, 0, "the aliases in the new value expand to too many values")
                };
                is_small.then_some(()).ok_or_else(too_much)?;
                check_typed_keys(tree.root())
            }
        }
    }

    /// Whether the value is a list or mapping that is written over several lines.
    pub(super) fn is_block(&self) -> bool {
        match self {
            Self::List(items) => !items.is_empty(),
            Self::Map(entries) => !entries.is_empty(),
            Self::Yaml(text) => typed(text).is_ok_and(|tree| tree.root().style() == yaml::Style::Block),
            Self::Text(_) | Self::Word(_) | Self::FlowMap(_) => false,
        }
    }

    /// Whether a node has exactly this value. Only [`Self::Yaml`] compares tags. For the other variants, a tag matters only
    /// if it changes the node's kind.
    pub(super) fn matches(&self, view: View<'_>) -> bool {
        match self {
            Self::Text(text) => view.kind() == Kind::Text && view.text() == Some(text),
            Self::Word(word) => word_matches(word, view),
            Self::List(items) => {
                let same_shape = view.kind() == Kind::List && view.len() == items.len();
                same_shape && items.iter().zip(view.items()).all(|(item, view)| item.matches(view))
            }
            Self::Map(entries) | Self::FlowMap(entries) => {
                let same_shape = view.kind() == Kind::Map && view.len() == entries.len();
                same_shape
                    && entries.iter().zip(view.own_entries()).all(|((key, value), (own_key, own_value))| {
                        own_key.text() == Some(key)
                            && own_key.kind() == Kind::Text
                            && value.matches(own_value)
                    })
            }
            Self::Yaml(text) => typed(text).is_ok_and(|tree| yaml::same(tree.root(), view)),
        }
    }
}

/// Whether a node has the value of a word. If YAML reads the word as a text, the node may be in quotes.
fn word_matches(word: &str, view: View<'_>) -> bool {
    let kind = plain_kind(word);
    view.kind() == kind && (kind == Kind::Null || view.text() == Some(word))
}

pub(super) fn typed(text: &str) -> Result<Tree, String> {
    let tree = yaml::parse_node(text).map_err(|it| it.message)?;
    if tree.has_document_marks() {
        return Err("a value cannot contain document markers".to_owned());
    }
    Ok(tree)
}

/// The value of a node without its layout, aliases written out.
pub(super) fn plain_value(view: View<'_>) -> NewValue {
    match view.kind() {
        Kind::Null => NewValue::Word("~".to_owned()),
        Kind::Bool | Kind::Number => NewValue::Word(view.text().unwrap_or_default().to_owned()),
        Kind::Text => NewValue::Text(view.text().unwrap_or_default().to_owned()),
        Kind::List => NewValue::List(view.items().map(plain_value).collect()),
        Kind::Map => NewValue::Map(
            view.own_entries()
                .map(|(key, value)| (key.text().unwrap_or("~").to_owned(), plain_value(value)))
                .collect(),
        ),
    }
}

fn not_a_value(text: &str, reason: String) -> EditError {
    // If the text is JSON, the cause may be a key that is too long. The YAML parser's message does not mention this.
    let json = serde_json::from_str(text).ok();
    let long_key = json.and_then(|it| NewValue::of_json(&it).check().err());
    long_key.unwrap_or_else(|| EditError::new(VALUE_INVALID, 0, reason))
}

/// Refuses a key that is too long in the form in which it would be written.
pub(super) fn check_key(key: &str) -> Result<(), EditError> {
    check_key_len(scalar::inline(key, Place::Flow).len())
}

/// Checks the keys of a value that a user typed, both as they were typed and as planwatch would write them.
fn check_typed_keys(view: View<'_>) -> Result<(), EditError> {
    // The target of an alias is checked where it is defined.
    if view.is_alias() {
        return Ok(());
    }
    for (key, value) in view.own_entries() {
        check_key_len(key.outer_span().len())?;
        check_key(key.text().unwrap_or_default())?;
        check_typed_keys(key)?;
        check_typed_keys(value)?;
    }
    view.items().try_for_each(check_typed_keys)
}

fn check_key_len(len: usize) -> Result<(), EditError> {
    if len <= MAX_KEY {
        return Ok(());
    }
    let reason = format!("a key has more than {MAX_KEY} bytes as it is written in YAML");
    let by_hand = "choose a shorter key, or put the text into a value".to_owned();
    Err(EditError { by_hand, ..EditError::new(VALUE_INVALID, 0, reason) })
}
