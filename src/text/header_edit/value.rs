//! A value that shall be written, and whether a node already means it.

use super::EditError;
use super::refusal::VALUE_INVALID;
use crate::text::yaml::resolve::plain_kind;
use crate::text::yaml::{self, Kind, Tree, View};

/// The longest key that every reader takes without a `?`.
const MAX_KEY: usize = 1000;

/// How often an alias in a typed value may be written out.
const MAX_NODES: usize = 10_000;

/// A value to be written.
#[derive(Debug, Clone, PartialEq)]
pub enum NewValue {
    /// Any text; quoted where it must be.
    Text(String),
    /// A plain token that is written as it is: a status, a timestamp, a number.
    Word(String),
    /// A block list, one item a line.
    List(Vec<Self>),
    /// A block mapping.
    Map(Vec<(String, Self)>),
    /// A mapping on one line; texts in it are always in double quotes.
    FlowMap(Vec<(String, Self)>),
    /// One YAML value that a person typed.
    Yaml(String),
}

impl NewValue {
    /// Refuses a typed value that is not one YAML value, and keys that no reader would take.
    pub(super) fn check(&self) -> Result<(), EditError> {
        match self {
            Self::Text(_) | Self::Word(_) => Ok(()),
            Self::List(items) => items.iter().try_for_each(Self::check),
            Self::Map(entries) | Self::FlowMap(entries) => entries.iter().try_for_each(|(key, value)| {
                check_key(key)?;
                value.check()
            }),
            Self::Yaml(text) => {
                let tree = typed(text).map_err(|it| EditError::new(VALUE_INVALID, 0, it))?;
                let nodes = tree.root().subtree_size(MAX_NODES);
                let is_small = nodes <= MAX_NODES || tree.aliases().next().is_none();
                let too_much = || EditError::new(VALUE_INVALID, 0, "its aliases stand for too much");
                is_small.then_some(()).ok_or_else(too_much)
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

    /// Whether a node has exactly this value; its own tag does not matter.
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

/// A word may stand in quotes, if it means a text without them too.
fn word_matches(word: &str, view: View<'_>) -> bool {
    let kind = plain_kind(word);
    view.kind() == kind && (kind == Kind::Null || view.text() == Some(word))
}

/// Parses what a person typed as a value.
pub(super) fn typed(text: &str) -> Result<Tree, String> {
    let tree = yaml::parse_node(text).map_err(|it| it.message)?;
    if tree.has_document_marks() {
        return Err("a value cannot hold document marks".to_owned());
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

pub(super) fn check_key(key: &str) -> Result<(), EditError> {
    if key.len() <= MAX_KEY {
        return Ok(());
    }
    Err(EditError::new(VALUE_INVALID, 0, format!("a key has more than {MAX_KEY} bytes")))
}
