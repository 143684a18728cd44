//! JSON Schemas of arguments and results in the keywords that every client supports, and the check of arguments.
//!
//! The schema of arguments is made from the type that they are read into, or from a notation that names fields of a
//! request ([`arguments_of`]). Results are parts of the operations' JSON, so they have no types of their own, and a short
//! notation describes them. For example, `id title? steps:line[] total:int` describes four fields. The field `title` is
//! optional, and `steps` is a list of the shape `line` (`SHAPES`). The type of a field is `str` (the default), `strs`,
//! `int`, `num`, `bool`, `obj`, `list` (of objects), `any`, or a shape or a list of a shape.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use crate::api::requests;
use crate::plan::words::nearest;
use crate::serve::mcp::result::Refusal;

pub(super) type Object = Map<String, Value>;

/// The schema of a type of arguments. It has no `$defs`, no number formats and no lists of types.
///
/// Arguments are checked against this schema. Clients get the schema that [`common`] makes from it.
pub(super) fn of_arguments<A: JsonSchema>() -> Arc<Object> {
    Arc::new(simplified(requests::schema::<A>()))
}

/// A function of its own, because [`of_arguments`] is compiled once for each type.
fn simplified(schema: Object) -> Object {
    let mut schema = Value::Object(schema);
    simplify(&mut schema);
    let mut object = schema.as_object().cloned().unwrap_or_default();
    object.remove("title");
    object.remove("description");
    object.entry("properties").or_insert_with(|| json!({}));
    object
}

/// An argument of a tool, and the field of a request that it fills.
#[derive(Debug, Clone, Copy)]
pub(super) struct Argument {
    pub(super) name: &'static str,
    pub(super) field: &'static str,
    /// The type of an argument that is not a field of the request: a type in this module's notation, `texts`, or the
    /// allowed words with `|` between them. For a field of the request, it is empty.
    kind: &'static str,
    is_optional: bool,
    description: &'static str,
}

/// Reads the notation of arguments: `name=field:kind?(description)`. Only the name is required.
pub(super) fn arguments_of(notation: &'static str) -> Vec<Argument> {
    let mut all = Vec::new();
    let mut rest = notation.trim_start();
    while !rest.is_empty() {
        let (word, behind) = rest.split_at(rest.find([' ', '(']).unwrap_or(rest.len()));
        let (description, behind) = match behind.strip_prefix('(') {
            Some(inside) => inside.split_once(')').unwrap_or((inside, "")),
            None => ("", behind),
        };
        let (word, is_optional) = (word.trim_end_matches('?'), word.ends_with('?'));
        let (word, kind) = word.split_once(':').unwrap_or((word, ""));
        let (name, field) = word.split_once('=').unwrap_or((word, word));
        all.push(Argument { name, field, kind, is_optional, description });
        rest = behind.trim_start();
    }
    all
}

/// The schema of arguments that fill the fields of a request, in the order of the arguments.
pub(super) fn of_request<R: JsonSchema>(arguments: &[Argument]) -> Arc<Object> {
    of_fields(requests::schema::<R>(), arguments)
}

/// A function of its own, because [`of_request`] is compiled once for each type.
fn of_fields(request: Object, arguments: &[Argument]) -> Arc<Object> {
    let request = simplified(request);
    let needed = request.get("required").and_then(Value::as_array);
    let (mut properties, mut required) = (Map::new(), Vec::new());
    for it in arguments {
        let field = request["properties"].get(it.field);
        let is_needed = field.is_none() || needed.is_some_and(|all| all.iter().any(|name| name == it.field));
        required.extend((is_needed && !it.is_optional).then(|| Value::from(it.name)));
        let mut property = field.cloned().unwrap_or_else(|| match it.kind {
            "str" => json!({"type": "string"}),
            "texts" => json!({"type": "array", "items": {"type": "string"}}),
            words if words.contains('|') => {
                json!({"type": "string", "enum": words.split('|').collect::<Vec<_>>()})
            }
            // The field is misspelt. The argument then has no type, and the tests refuse such arguments.
            "" => json!({}),
            kind => of_kind(kind),
        });
        if let Some(object) = property.as_object_mut() {
            object.remove("default");
            object.remove("description");
            if !it.description.is_empty() {
                object.insert("description".to_owned(), it.description.into());
            }
        }
        properties.insert(it.name.to_owned(), property);
    }
    let mut object = Map::from_iter([("type".to_owned(), "object".into())]);
    object.insert("properties".to_owned(), properties.into());
    if !required.is_empty() {
        object.insert("required".to_owned(), required.into());
    }
    Arc::new(object)
}

/// Reads a request, or an argument that is not part of it.
pub(super) fn read<R: DeserializeOwned>(given: impl Into<Value>) -> Result<R, Refusal> {
    let unread =
        |error| Refusal::usage(format!("the arguments cannot be read: {error}"), "check their types");
    serde_json::from_value(given.into()).map_err(unread)
}

/// Removes an argument from the given ones, and reads it.
pub(super) fn take<T: DeserializeOwned>(given: &mut Object, name: &str) -> Result<Option<T>, Refusal> {
    given.remove(name).map(read).transpose()
}

/// The schema of arguments in the keywords that every vendor's function calling supports.
///
/// No vendor's strict mode supports objects with arbitrary keys, and one vendor's library fails on
/// `additionalProperties`. Therefore an object with arbitrary keys is declared as a text that contains JSON. [`arguments`]
/// also accepts the object itself.
pub(super) fn common(schema: &Object) -> Arc<Object> {
    let mut schema = Value::Object(schema.clone());
    closed(&mut schema);
    Arc::new(schema.as_object().cloned().unwrap_or_default())
}

fn closed(schema: &mut Value) {
    let Some(object) = schema.as_object_mut() else { return };
    object.remove("additionalProperties");
    if let Some(properties) = object.get_mut("properties").and_then(Value::as_object_mut) {
        properties.values_mut().for_each(closed);
    } else if object.get("type").is_some_and(|it| it == "object") {
        let what = object.get("description").and_then(Value::as_str).map(|it| format!("{it}; "));
        let what = format!("{}JSON object as text", what.unwrap_or_default());
        object.insert("type".to_owned(), "string".into());
        object.insert("description".to_owned(), what.into());
    }
    object.get_mut("items").into_iter().for_each(closed);
}

/// Removes from a schema the keywords that some clients do not support.
fn simplify(schema: &mut Value) {
    match schema {
        Value::Object(object) => {
            const LIMITS: [&str; 6] = ["format", "minimum", "maximum", "pattern", "minLength", "minItems"];
            object.retain(|word, _| !LIMITS.contains(&word.as_str()));
            if object.get("default") == Some(&Value::Null) {
                object.remove("default");
            }
            if let Some(Value::Array(types)) = object.get("type") {
                let first = types.iter().find(|it| *it != "null").cloned();
                object.insert("type".to_owned(), first.unwrap_or(Value::Null));
            }
            if let Some(Value::Array(words)) = object.get_mut("enum") {
                words.retain(|it| !it.is_null());
            }
            if let Some(Value::Array(choices)) = object.remove("anyOf") {
                let some = choices.into_iter().find(|it| it["type"] != "null");
                object.extend(some.and_then(|it| it.as_object().cloned()).unwrap_or_default());
            }
            object.values_mut().for_each(simplify);
        }
        Value::Array(items) => items.iter_mut().for_each(simplify),
        _ => {}
    }
}

/// Shapes that results are made of, in the notation of this module.
const SHAPES: [(&str, &str); 5] = [
    ("plan", PLAN),
    ("line", LINE),
    ("task", TASK),
    ("decision", "id topic decision reasoning? by? decided_at? path"),
    ("hit", "kind id plan? title path snippet"),
];

/// A plan in one line.
pub(super) const PLAN: &str = "id title status state kind priority? due? program? steps_total:int steps_completed:int \
                               steps_ready:int? incomplete:bool? last_activity? path etag?";

/// A step in one line.
pub(super) const LINE: &str = "id title status ready:bool? waits_for:strs? phase? claimed_by?";

/// A claimed step.
const TASK: &str = "id plan title status path etag? body? attempts:list? verify:list? touches:strs?";

/// A step with everything that its worker needs.
pub(super) const STEP: &str = "id plan title status ready:bool? unverified:bool? depends:strs? waits_for:strs? phase? type? \
                               assignee? due? created_by claim:obj? confirm:bool? confirmed:obj? verify:list? touches:strs? \
                               result? attempts:list? notes:list? metadata:obj? tasks_done:int? tasks_total:int? path \
                               etag? body? more? problems:strs?";

/// The schema of a result. The result of a tool that writes can also contain preserved saves of other programs (`kept`).
pub(super) fn of_result(notation: &str, writes: bool) -> Arc<Object> {
    let notation = if writes { format!("{notation} kept?") } else { notation.to_owned() };
    Arc::new(object(&notation).as_object().cloned().unwrap_or_default())
}

fn object(notation: &str) -> Value {
    let (mut properties, mut required) = (Map::new(), Vec::new());
    for field in notation.split_whitespace() {
        let is_required = !field.ends_with('?');
        let (name, kind) =
            field.trim_end_matches('?').split_once(':').unwrap_or((field.trim_end_matches('?'), "str"));
        let is_one_value = !kind.ends_with(']') && SHAPES.iter().all(|(shape, _)| *shape != kind);
        // An optional field without a shape is listed without a type: clients need only its name.
        let kind = if is_required || !is_one_value { kind } else { "any" };
        properties.insert(name.to_owned(), of_kind(kind));
        required.extend(is_required.then(|| Value::from(name)));
    }
    json!({"type": "object", "properties": properties, "required": required})
}

fn of_kind(kind: &str) -> Value {
    if let Some(item) = kind.strip_suffix("[]") {
        return json!({"type": "array", "items": of_kind(item)});
    }
    let word = match kind {
        "list" | "strs" => "array",
        "any" => return json!({}),
        "int" => "integer",
        "num" => "number",
        "bool" => "boolean",
        "obj" => "object",
        _ => match SHAPES.iter().find(|(name, _)| *name == kind) {
            Some((_, notation)) => {
                // For a shape, the schema has only the names of the fields.
                let properties: Map<_, _> =
                    fields(notation).map(|(it, _)| (it.to_owned(), json!({}))).collect();
                return json!({"type": "object", "properties": properties});
            }
            // `str` has no type in the schema, to keep the list of tools small.
            None => return json!({}),
        },
    };
    json!({"type": word})
}

/// The names of the fields of a notation, each with whether the field is required.
pub(super) fn fields(notation: &str) -> impl Iterator<Item = (&str, bool)> {
    notation.split_whitespace().map(|field| {
        let name = field.trim_end_matches('?').split(':').next().unwrap_or_default();
        (name, !field.ends_with('?'))
    })
}

/// Reads arguments; an error explains how to correct the call.
///
/// Agents write numbers as texts and texts as numbers. This is accepted if it is unambiguous. Unknown arguments are refused
/// here, because no schema forbids them. The error names the nearest known argument.
pub(super) fn arguments<A: DeserializeOwned>(schema: &Object, given: Object) -> Result<A, Refusal> {
    let held = held_to_all(schema, "", given)?;
    let unread = |error| Refusal::usage(format!("the arguments cannot be read: {error}"), all(schema));
    serde_json::from_value(Value::Object(held)).map_err(unread)
}

/// Checks an object, and converts its values. `path` is the object's path in the arguments; it is empty for the arguments
/// themselves.
fn held_to_all(schema: &Object, path: &str, given: Object) -> Result<Object, Refusal> {
    let property = |name: &str| schema.get("properties").and_then(|it| it.get(name));
    let inside = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
    let is_open = schema.get("additionalProperties").is_some_and(|it| *it == true);
    let mut read = Map::new();
    for (name, value) in given {
        match property(&name) {
            Some(_) if value.is_null() => {}
            Some(property) => {
                let value = held_to(property, &inside(&name), value)?;
                read.insert(name, value);
            }
            None if is_open => drop(read.insert(name, value)),
            None => return Err(unknown(&name, &inside(&name), schema)),
        }
    }
    let required = schema.get("required").and_then(Value::as_array);
    let missing = required.into_iter().flatten().filter_map(Value::as_str).find(|it| !read.contains_key(*it));
    if let Some(missing) = missing {
        let what = property(missing).and_then(|it| it["description"].as_str()).unwrap_or_default();
        let hint = if what.is_empty() { "give it".to_owned() } else { format!("`{missing}`: {what}") };
        return Err(Refusal::usage(format!("the argument `{}` is missing", inside(missing)), hint));
    }
    Ok(read)
}

fn unknown(name: &str, path: &str, schema: &Object) -> Refusal {
    let all = if name == path { all(schema) } else { format!("its fields are {}", listed(schema)) };
    let near = nearest(name, names(schema));
    let hint = near.map_or_else(|| all.clone(), |it| format!("did you mean `{it}`? {all}"));
    Refusal::usage(format!("there is no argument `{path}`"), hint)
}

fn all(schema: &Object) -> String {
    format!("the arguments are {}", listed(schema))
}

fn listed(schema: &Object) -> String {
    names(schema).collect::<Vec<_>>().join(", ")
}

fn names(schema: &Object) -> impl Iterator<Item = &str> {
    let properties = schema.get("properties").and_then(Value::as_object);
    properties.into_iter().flat_map(Map::keys).map(String::as_str)
}

/// Converts a value to the type in the schema, if that is unambiguous.
fn held_to(property: &Value, name: &str, value: Value) -> Result<Value, Refusal> {
    let kind = property["type"].as_str().unwrap_or_default();
    let fields = property.as_object().filter(|it| it.contains_key("properties"));
    let value = match (kind, value) {
        ("string", Value::Number(number)) => Value::from(number.to_string()),
        ("integer" | "number" | "boolean", Value::String(text)) => {
            serde_json::from_str(text.trim()).unwrap_or(Value::String(text))
        }
        ("array", Value::Array(items)) => {
            let items = items.into_iter().enumerate();
            let held = items.map(|(nth, it)| held_to(&property["items"], &format!("{name}[{nth}]"), it));
            Value::Array(held.collect::<Result<_, _>>()?)
        }
        // A list or an object may be written as text, and a single item may be given instead of a list.
        ("array" | "object", Value::String(text)) => match serde_json::from_str::<Value>(&text) {
            Ok(parsed) if parsed.is_array() && kind == "array" || parsed.is_object() && kind == "object" => {
                return held_to(property, name, parsed);
            }
            _ if kind == "array" && name != STEPS => {
                return held_to(property, name, Value::Array(vec![text.into()]));
            }
            _ => alone(fields, name, text.into())?,
        },
        ("object", value @ Value::Number(_)) => alone(fields, name, value)?,
        ("object", Value::Object(given)) => match fields {
            Some(fields) => Value::Object(held_to_all(fields, name, given)?),
            None => Value::Object(given),
        },
        (_, value) => value,
    };
    let is_right = match kind {
        "string" => value.is_string(),
        "integer" => value.is_u64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => true,
    };
    if !is_right {
        return Err(wrong_type(kind, fields, name, &value));
    }
    let words: Vec<_> = property["enum"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    if let Some(word) = value.as_str().filter(|it| !words.is_empty() && !words.contains(it)) {
        let near = nearest(word, words.iter().copied()).map(|it| format!("did you mean `{it}`? "));
        let hint = format!("{}one of {}", near.unwrap_or_default(), words.join(", "));
        return Err(Refusal::usage(format!("`{name}` cannot be `{word}`"), hint));
    }
    Ok(value)
}

/// The argument that is a list of steps. A text in its place could mean several steps, so it is not read as one title.
const STEPS: &str = "steps";

/// If an object has exactly one required field, a text or number in its place is read as that field.
fn alone(fields: Option<&Object>, name: &str, value: Value) -> Result<Value, Refusal> {
    let required = fields.and_then(|it| it.get("required")).and_then(Value::as_array);
    match (fields, required.map(Vec::as_slice)) {
        (Some(fields), Some([Value::String(field)])) => {
            let given = Map::from_iter([(field.clone(), value)]);
            Ok(Value::Object(held_to_all(fields, name, given)?))
        }
        _ => Ok(value),
    }
}

fn wrong_type(kind: &str, fields: Option<&Object>, name: &str, value: &Value) -> Refusal {
    let what = match (kind, fields) {
        ("array", _) if name == STEPS => "a list, for example [\"Design\", \"Build\"]".to_owned(),
        ("integer", _) => "a whole number".to_owned(),
        ("array", _) => "a list".to_owned(),
        ("object", Some(fields)) => format!("an object with the fields {}", listed(fields)),
        ("object", None) => "an object".to_owned(),
        ("string", _) => "a text".to_owned(),
        ("boolean", _) => "true or false".to_owned(),
        (other, _) => other.to_owned(),
    };
    Refusal::usage(format!("`{name}` has to be {what}"), format!("it was given as {value}"))
}

#[cfg(test)]
mod tests {
    use super::arguments_of;

    #[test]
    fn the_notation_of_arguments_is_read() {
        let all = arguments_of("plan:str? note=text(In brief; in one line) limit:int?(At most) depends");
        let all = all.iter().map(|it| (it.name, it.field, it.kind, it.is_optional, it.description));
        let expected = [
            ("plan", "plan", "str", true, ""),
            ("note", "text", "", false, "In brief; in one line"),
            ("limit", "limit", "int", true, "At most"),
            ("depends", "depends", "", false, ""),
        ];
        assert_eq!(all.collect::<Vec<_>>(), expected);
    }
}
