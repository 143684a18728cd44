//! JSON Schemas of what the shapes and reports look like, for surfaces that have to say so beforehand.
//!
//! Each object is closed: what is not named in it does not come, but in `custom`, `metadata` and `values`, which are the
//! user's own. What is named comes always, unless it is said to be left out. A test compares every recorded answer of the
//! command line with them. A part that comes in several places has a name, and is meant by `$ref`.

mod bring;
mod changes;
mod knowledge;
mod looks;
mod plans;

pub use plans::{plan, step};

use serde_json::{Map, Value, json};

use crate::api::views::SCHEMA_VERSION;

/// Where the named parts are found by those who refer to them; OpenAPI's own place.
pub const PLACE: &str = "#/components/schemas/";

/// Every named part, by its name.
pub fn parts() -> Vec<(&'static str, Value)> {
    let all = [plans::parts(), changes::parts(), knowledge::parts()];
    all.into_iter().flatten().collect()
}

/// What a verb answers, with its envelope.
#[derive(Debug, Clone)]
pub struct Answer {
    /// As the kind, but where answers of one kind differ.
    pub name: &'static str,
    pub kind: &'static str,
    pub schema: Value,
}

/// Every answer.
pub fn answers() -> Vec<Answer> {
    let all = [looks::answers(), changes::answers(), knowledge::answers(), bring::answers()];
    let named = |(name, object): (&'static str, Object)| {
        let kind = match name {
            "rendered-prompt" => "prompt",
            "export-text" => "export",
            kind => kind,
        };
        Answer { name, kind, schema: object.answer(kind) }
    };
    all.into_iter().flatten().map(named).collect()
}

/// By their names.
type Answers = Vec<(&'static str, Object)>;

/// A closed object under construction.
#[derive(Debug, Clone, Default)]
pub struct Object {
    properties: Map<String, Value>,
    required: Vec<Value>,
}

impl Object {
    pub fn new() -> Self {
        Self::default()
    }

    /// A field that always comes.
    #[must_use]
    pub fn field(mut self, name: &str, schema: Value) -> Self {
        self.required.push(name.into());
        self.optional(name, schema)
    }

    /// A field that may be left out.
    #[must_use]
    pub fn optional(mut self, name: &str, schema: Value) -> Self {
        self.properties.insert(name.to_owned(), schema);
        self
    }

    /// Several fields of the same schema that always come.
    #[must_use]
    pub fn fields<const N: usize>(self, names: [&str; N], schema: &Value) -> Self {
        names.into_iter().fold(self, |object, name| object.field(name, schema.clone()))
    }

    /// The same object with the fields of another one behind its own.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        self.properties.extend(other.properties);
        self.required.extend(other.required);
        self
    }

    /// The object, with nothing beside its fields.
    pub fn closed(self) -> Value {
        self.with_others(json!(false))
    }

    /// The object, with fields of any name beside its own.
    fn with_others(self, others: Value) -> Value {
        words([
            ("type", "object".into()),
            ("properties", Value::Object(self.properties)),
            ("required", Value::Array(self.required)),
            ("additionalProperties", others),
        ])
    }

    /// The object in its envelope.
    fn answer(self, kind: &str) -> Value {
        let mut envelope = Self::new()
            .field("schema_version", json!({"const": SCHEMA_VERSION}))
            .field("kind", json!({"const": kind}));
        // The envelope's own `kind` stands for that of a shape.
        let is_own = |name: &str| name == "kind" || name == "schema_version";
        envelope.properties.extend(self.properties.into_iter().filter(|(name, _)| !is_own(name)));
        envelope.required.extend(self.required.into_iter().filter(|it| !it.as_str().is_some_and(is_own)));
        envelope.closed()
    }
}

fn words<const N: usize>(of: [(&str, Value); N]) -> Value {
    Value::Object(of.into_iter().map(|(name, it)| (name.to_owned(), it)).collect())
}

pub fn text() -> Value {
    json!({"type": "string"})
}

pub fn maybe_text() -> Value {
    json!({"type": ["string", "null"]})
}

/// RFC 3339, UTC.
pub fn maybe_time() -> Value {
    json!({"type": ["string", "null"], "format": "date-time"})
}

fn count() -> Value {
    json!({"type": "integer", "minimum": 0})
}

fn flag() -> Value {
    json!({"type": "boolean"})
}

pub fn list(of: Value) -> Value {
    words([("type", "array".into()), ("items", of)])
}

fn word<const N: usize>(words: [&str; N]) -> Value {
    json!({"type": "string", "enum": words.to_vec()})
}

/// Whatever the user's own keys hold.
fn open_object() -> Value {
    json!({"type": "object", "additionalProperties": true})
}

/// A named part.
pub fn part(name: &str) -> Value {
    json!({"$ref": format!("{PLACE}{name}")})
}

fn maybe(of: Value) -> Value {
    words([("anyOf", Value::Array(vec![of, json!({"type": "null"})]))])
}
