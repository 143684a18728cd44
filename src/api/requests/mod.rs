//! The requests of the verbs, one type for all surfaces.
//!
//! The command line constructs a request itself. HTTP reads it from a body or a query string, and MCP reads it from the
//! arguments of a tool. Both publish the JSON Schema of the request's type. In that schema, the doc comment of a field is
//! its description. A field has `serde(skip)` if these surfaces do not set it, or set it in another way, for example from
//! the id in a URL's path.

mod knowledge;
mod plans;
mod queries;
mod steps;

pub use knowledge::{DecideRequest, ImportRequest, InsightRequest, NewScriptRequest};
pub use plans::{NewRequest, PlanText, ReplaceRequest, SquashRequest, StepRequest, UndoRequest};
pub use queries::{
    DecisionsRequest, DiffRequest, InsightsRequest, ListRequest, LogRequest, NextRequest, ProblemsRequest,
    RemoveRequest, SearchRequest, ShowRequest, StaleRequest, StatsRequest, StatusRequest,
};
pub use steps::{
    AddRequest, Answer, AttemptRequest, ClaimRequest, ConfirmRequest, Confirmer, MoveRequest, NoteRequest,
    PatchRequest, ReleaseRequest, RenewRequest, RenumberRequest, StepText,
};

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Error;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use crate::api::error;
use crate::plan::time::read_seconds;
use crate::text::scalar;

/// The pattern of a text with at least one character that is neither white space nor a control character below U+0020.
pub(crate) const NOT_BLANK: &str = "[^\\s\\x00-\\x1f]";
/// The pattern of a date, or of a time with seconds. A time without an offset is in UTC. The pattern accepts February 29 in
/// every year; the operation checks the year.
const TIME: &str = "^(000[1-9]|00[1-9][0-9]|0[1-9][0-9]{2}|[1-8][0-9]{3}|9[0-8][0-9]{2}|99[0-8][0-9]|999[0-8])-((0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-9])|(0[13-9]|1[0-2])-30|(0[13578]|1[02])-31)(T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\\.[0-9]{1,9})?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])?)?$";
/// The pattern of the duration of a claim.
const LEASE: &str = "^[1-9][0-9]{0,3}[smhd]$";

/// Whether a change is made or only shown; in JSON the boolean `dry_run`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(from = "bool")]
#[schemars(inline)]
pub enum Mode {
    #[default]
    Write,
    /// Nothing is written and no lock is taken.
    DryRun,
}

impl From<bool> for Mode {
    fn from(is_dry_run: bool) -> Self {
        if is_dry_run { Self::DryRun } else { Self::Write }
    }
}

/// Whether a text has no visible character. The schemas of requests have the same rule as a pattern.
pub fn is_blank(text: &str) -> bool {
    text.chars().all(|it| it.is_whitespace() || it < ' ')
}

/// Reads the name of an author or worker. A blank name is an error.
pub fn author_name(text: &str) -> Result<String, error::Error> {
    if is_blank(text) {
        return Err(error::Error::usage("the name to record is blank", "give a name, or leave it out"));
    }
    Ok(text.to_owned())
}

/// The schema of a request as an object. Only `step_status` adds a reference to another schema.
pub(crate) fn schema<R: JsonSchema>() -> Map<String, Value> {
    object(generator().into_root_schema_for::<R>())
}

// These two are functions of their own, because `schema` is compiled once for each type.
fn generator() -> SchemaGenerator {
    let settings = SchemaSettings::draft2020_12().with(|it| {
        it.inline_subschemas = true;
        it.meta_schema = None;
    });
    settings.into_generator()
}

fn object(schema: Schema) -> Map<String, Value> {
    match schema.to_value() {
        Value::Object(schema) => schema,
        _ => Map::new(),
    }
}

/// Reads a field that is required in JSON, but optional on the command line.
fn given<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    String::deserialize(from).map(Some)
}

/// Reads the name of an author or worker ([`author_name`]).
pub(crate) fn author<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    Option::<String>::deserialize(from)?.map(|it| author_name(&it).map_err(D::Error::custom)).transpose()
}

/// Reads an object with user-defined keys, and returns it as a text that the operation parses as YAML.
fn yaml<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    Ok(Option::<Value>::deserialize(from)?.map(|it| scalar::json(&it)))
}

/// The duration of a claim in seconds, from a text such as `30m`.
fn seconds<'de, D: Deserializer<'de>>(from: D) -> Result<Option<i64>, D::Error> {
    let read = |it: String| {
        read_seconds(&it).ok_or_else(|| {
            D::Error::custom(format!(
                "`{it}` is not a lease; write one such as 90s, 30m, 2h or 1d, at most 366d"
            ))
        })
    };
    Option::<String>::deserialize(from)?.map(read).transpose()
}

/// The number of a step, from a JSON number or a text.
fn number<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    match Option::<Value>::deserialize(from)? {
        None => Ok(None),
        Some(Value::Number(number)) => Ok(Some(number.to_string())),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(D::Error::custom("a step number is a number or a text, for example 2 or 2.5")),
    }
}

/// A status of a step. Other texts are allowed, because the configuration may define additional words.
fn step_status(_: &mut SchemaGenerator) -> Schema {
    let known = format!("{}StepStatus", crate::api::schema::PLACE);
    json_schema!({"anyOf": [{"$ref": known}, {"type": "string"}, {"type": "null"}]})
}

#[cfg(test)]
mod tests {
    use proptest::strategy::{Strategy, ValueTree};
    use proptest::string::string_regex;
    use proptest::test_runner::TestRunner;

    use super::*;
    use crate::plan::time::Time;

    #[test]
    fn each_text_that_the_schema_declares_as_a_time_is_read() {
        let texts = string_regex(TIME.trim_matches(['^', '$'])).unwrap();
        let mut runner = TestRunner::deterministic();
        let mut n_dates = 0;
        for _ in 0..1000 {
            let text = texts.new_tree(&mut runner).unwrap().current();
            assert!(text.contains("-02-29") || text.parse::<Time>().is_ok(), "{text}");
            n_dates += usize::from(text.len() == "2026-11-30".len());
        }
        assert!((1..1000).contains(&n_dates), "{n_dates}");
    }
}
