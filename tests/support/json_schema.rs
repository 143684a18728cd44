//! Validates values with JSON Schemas, for the keywords that planwatch's schemas use.

use serde_json::{Map, Value};

/// The definitions for `$ref`, and the mode of validation.
pub(crate) struct Schemas {
    /// By the last part of the reference.
    pub(crate) parts: Map<String, Value>,
    /// Whether fields may be missing, as after `--json=FIELDS`.
    pub(crate) is_partial: bool,
}

/// Keywords that do not restrict values.
const SILENT: [&str; 7] = ["description", "format", "example", "examples", "default", "title", "deprecated"];

impl Schemas {
    /// The first fault of a value, with its place.
    pub(crate) fn fault(&self, schema: &Value, value: &Value) -> Option<String> {
        self.at("$", schema, value)
    }

    fn at(&self, place: &str, schema: &Value, value: &Value) -> Option<String> {
        let schema = match schema {
            Value::Bool(true) => return None,
            Value::Object(words) => words,
            other => return Some(format!("{place}: the schema is {other}")),
        };
        schema.iter().find_map(|(word, rule)| self.word(place, (word, rule), schema, value))
    }

    fn word(
        &self,
        place: &str,
        (word, rule): (&str, &Value),
        schema: &Map<String, Value>,
        value: &Value,
    ) -> Option<String> {
        let not = |what: &str| Some(format!("{place}: {value} is not {what} {rule}"));
        match word {
            "$ref" => {
                let name = rule.as_str()?.rsplit('/').next()?;
                let Some(part) = self.parts.get(name) else { return Some(format!("there is no `{name}`")) };
                self.at(place, part, value)
            }
            "type" => {
                if is_type(rule, value) {
                    None
                } else {
                    not("of the type")
                }
            }
            "const" => {
                if rule == value {
                    None
                } else {
                    not("")
                }
            }
            "enum" => {
                let is_one = rule.as_array().is_some_and(|it| it.contains(value));
                if is_one { None } else { not("one of") }
            }
            "minimum" => {
                let is_more = value.as_f64() >= rule.as_f64() || !value.is_number();
                if is_more { None } else { not("at least") }
            }
            "maximum" => {
                let is_less = value.as_f64() <= rule.as_f64() || !value.is_number();
                if is_less { None } else { not("at most") }
            }
            "anyOf" => {
                let all: Vec<_> = rule.as_array()?.iter().map(|it| self.at(place, it, value)).collect();
                let faults: Option<Vec<_>> = all.into_iter().collect();
                faults.map(|it| format!("{place}: no alternative matches: {}", it.join("; ")))
            }
            "items" => {
                let items = value.as_array()?.iter().enumerate();
                items.map(|(at, it)| self.at(&format!("{place}[{at}]"), rule, it)).find_map(|it| it)
            }
            "properties" => {
                let fields = value.as_object()?.iter();
                let known = fields.filter_map(|(name, it)| Some((name, rule.get(name)?, it)));
                let faults = known.map(|(name, schema, it)| self.at(&format!("{place}.{name}"), schema, it));
                faults.into_iter().find_map(|it| it)
            }
            "required" => {
                let object = value.as_object().filter(|_| !self.is_partial)?;
                let names = rule.as_array()?.iter().filter_map(Value::as_str);
                names
                    .map(str::to_owned)
                    .find(|it| !object.contains_key(it))
                    .map(|it| format!("{place}: no `{it}`"))
            }
            "additionalProperties" => {
                let known = schema.get("properties");
                let is_known = |name: &str| known.is_some_and(|it| it.get(name).is_some());
                let others = value.as_object()?.iter().filter(|(name, _)| !is_known(name));
                let fault = |(name, it): (&String, &Value)| match rule {
                    Value::Bool(false) => Some(format!("{place}: `{name}` is not expected")),
                    schema => self.at(&format!("{place}.{name}"), schema, it),
                };
                others.map(fault).find_map(|it| it)
            }
            silent if SILENT.contains(&silent) => None,
            unknown => Some(format!("{place}: `{unknown}` is not supported")),
        }
    }
}

fn is_type(rule: &Value, value: &Value) -> bool {
    let is_one = |name: &str| match name {
        "string" => value.is_string(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        "null" => value.is_null(),
        _ => false,
    };
    match rule {
        Value::String(name) => is_one(name),
        Value::Array(names) => names.iter().filter_map(Value::as_str).any(is_one),
        _ => false,
    }
}
