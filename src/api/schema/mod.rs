//! JSON Schemas of answers, for surfaces that publish them.
//!
//! Most objects are closed: they can have only the fields that the schema names. The exceptions are the details of an
//! error, the rows of a table, and objects with keys that the user defined, such as `custom` and `metadata`. A field is
//! always present unless it is optional. A part that several answers share has a name, and `$ref` refers to it. The schemas
//! of views are derived from their types. If a recorded answer of the command line has a schema, a test checks the answer.

mod changes;
mod documents;
mod knowledge;
mod plans;
mod queries;

pub(crate) use plans::{activity, plan_status, state, step_number, step_status};
pub use plans::{plan, step};

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value, json};

use crate::api::views::SCHEMA_VERSION;

/// The prefix of a `$ref` to a named part, as in OpenAPI.
pub const PLACE: &str = "#/components/schemas/";

pub fn parts() -> Vec<(&'static str, Value)> {
    let all = [plans::parts(), changes::parts(), knowledge::parts()];
    all.into_iter().flatten().collect()
}

/// The schema of a verb's answer, including the envelope.
#[derive(Debug, Clone)]
pub struct Answer {
    /// Usually the kind. If one kind has several schemas, only the first is named after the kind.
    pub name: &'static str,
    pub kind: &'static str,
    pub schema: Value,
}

pub fn answers() -> Vec<Answer> {
    let all = [queries::answers(), changes::answers(), knowledge::answers(), documents::answers()];
    let named = |(name, object): (&'static str, Object)| {
        let kind = match name {
            "rendered-prompt" => "prompt",
            "export-text" | "export-site" => "export",
            kind => kind,
        };
        Answer { name, kind, schema: object.answer(kind) }
    };
    all.into_iter().flatten().map(named).collect()
}

/// The schema of a type's serialized form, with references to the named parts.
fn of<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().for_serialize().with(|it| {
        it.definitions_path = "/components/schemas".into();
    });
    let mut schema = T::json_schema(&mut settings.into_generator()).to_value();
    close(&mut schema);
    schema
}

/// Closes the objects of a schema that do not define `additionalProperties`, and removes descriptions, titles, defaults
/// and the formats of unsigned integers.
fn close(schema: &mut Value) {
    let Some(object) = schema.as_object_mut() else { return };
    object.retain(|word, it| {
        let is_width = word == "format" && it.as_str().is_some_and(|it| it.starts_with("uint"));
        !["description", "title", "default"].contains(&word.as_str()) && !is_width
    });
    // If the variants of an enum have comments, `schemars` makes a separate schema for each word. These are joined into one
    // list of words.
    if let Some(Value::Array(variants)) = object.remove("oneOf") {
        let words = |it: &Value| it["enum"].as_array().cloned().unwrap_or_else(|| vec![it["const"].clone()]);
        object.insert("type".to_owned(), "string".into());
        object.insert("enum".to_owned(), variants.iter().flat_map(words).collect());
    }
    if object.contains_key("properties") {
        object.entry("additionalProperties").or_insert(false.into());
    }
    object.get_mut("items").into_iter().for_each(close);
    let properties = object.get_mut("properties").and_then(Value::as_object_mut);
    properties.into_iter().flat_map(Map::values_mut).for_each(close);
}

type Answers = Vec<(&'static str, Object)>;

/// A builder for the schema of a closed object.
#[derive(Debug, Clone, Default)]
pub struct Object {
    properties: Map<String, Value>,
    required: Vec<Value>,
}

impl Object {
    pub fn new() -> Self {
        Self::default()
    }

    /// An object with the fields of a type. Other fields can be added to it.
    fn of<T: JsonSchema>() -> Self {
        let mut schema = of::<T>();
        let properties = schema["properties"].as_object_mut().map(std::mem::take).unwrap_or_default();
        let required = schema["required"].as_array_mut().map(std::mem::take).unwrap_or_default();
        Self { properties, required }
    }

    /// A field that is always present.
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

    /// Several fields of the same schema that are always present.
    #[must_use]
    pub fn fields<const N: usize>(self, names: [&str; N], schema: &Value) -> Self {
        names.into_iter().fold(self, |object, name| object.field(name, schema.clone()))
    }

    /// The same object with the fields of another one after its own.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        self.properties.extend(other.properties);
        self.required.extend(other.required);
        self
    }

    /// The schema of the object, which allows no other fields.
    pub fn closed(self) -> Value {
        words([
            ("type", "object".into()),
            ("properties", Value::Object(self.properties)),
            ("required", Value::Array(self.required)),
            ("additionalProperties", false.into()),
        ])
    }

    /// The schema of the object with the fields of the envelope, `schema_version` and `kind`.
    fn answer(self, kind: &str) -> Value {
        let mut envelope = Self::new()
            .field("schema_version", json!({"const": SCHEMA_VERSION}))
            .field("kind", json!({"const": kind}));
        // The envelope's own `kind` replaces that of a view.
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

/// A time in RFC 3339 format and in UTC, or null.
pub fn maybe_time() -> Value {
    json!({"type": ["string", "null"], "format": "date-time"})
}

/// The state of a plan, as `next` reports it.
fn state_word() -> Value {
    state(&mut SchemaGenerator::default()).to_value()
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

/// An object with any keys.
fn open_object() -> Value {
    json!({"type": "object", "additionalProperties": true})
}

pub fn part(name: &str) -> Value {
    json!({"$ref": format!("{PLACE}{name}")})
}

fn maybe(of: Value) -> Value {
    words([("anyOf", Value::Array(vec![of, json!({"type": "null"})]))])
}
