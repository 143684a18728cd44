//! A request as a handler gets it, and the reply of the handler.

use axum::http::StatusCode;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::route::Parameter;
use crate::api::error::Error;
use crate::api::requests::{NOT_BLANK, is_blank};
use crate::api::views::envelope;
use crate::plan::words::nearest;
use crate::serve::http::extract::{invalid_body, not_json, plan_named, step_named};
use crate::serve::http::problem::Problem;
use crate::store::transaction::ChangeReport;

/// A request: the names in its path, the values of its query, its body.
#[derive(Debug, Clone, Default)]
pub(crate) struct Call {
    pub(crate) path: Vec<(String, String)>,
    pub(crate) query: Map<String, Value>,
    /// Null if the route takes no body.
    pub(crate) body: Value,
}

/// The reply to a successful request.
#[derive(Debug, Clone)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) body: Value,
    /// The cursor of the next page.
    pub(crate) next_cursor: Option<String>,
    /// A JSON pointer to the etag of the one file that the reply is about.
    pub(crate) etag_at: Option<&'static str>,
}

impl Reply {
    /// A reply whose body is the JSON object that the command line prints for this kind.
    pub(crate) fn of(kind: &str, report: Value) -> Self {
        Self { status: 200, body: envelope(kind, report), next_cursor: None, etag_at: None }
    }

    pub(crate) fn changed(report: &ChangeReport) -> Self {
        let etag_at = (report.changes.len() == 1).then_some("/changes/0/now/etag");
        Self { etag_at, ..Self::of("change", report.to_json()) }
    }

    /// Like [`Self::changed`], for a route that creates something: the status is 201, or 200 for a dry run.
    pub(crate) fn made(report: &ChangeReport) -> Self {
        let status = if report.is_dry_run { 200 } else { 201 };
        Self { status, ..Self::changed(report) }
    }
}

impl Call {
    pub(crate) fn name(&self, name: &str) -> &str {
        let found = self.path.iter().find(|(it, _)| it == name);
        found.map(|(_, value)| value.as_str()).unwrap_or_default()
    }

    /// The plan in the path, in the form in which requests of operations name a plan.
    pub(crate) fn plan(&self) -> Result<String, Problem> {
        plan_named(self.name("id"))
    }

    /// The step in the path, in the form in which requests of operations name a step.
    pub(crate) fn step(&self) -> Result<String, Problem> {
        step_named(self.name("id"))
    }

    pub(crate) fn text(&self, name: &str) -> Option<String> {
        self.query.get(name).and_then(Value::as_str).map(str::to_owned)
    }

    pub(crate) fn count(&self, name: &str) -> Option<u32> {
        self.query.get(name).and_then(Value::as_u64).and_then(|it| it.try_into().ok())
    }

    /// Reads the query as a request of an operation.
    pub(crate) fn asked<R: DeserializeOwned>(&self) -> Result<R, Problem> {
        serde_json::from_value(Value::Object(self.query.clone()))
            .map_err(|it| Problem::new(StatusCode::BAD_REQUEST, "parameter-invalid", it.to_string()))
    }

    /// Reads the body as a request of an operation.
    pub(crate) fn body<R: DeserializeOwned>(&self) -> Result<R, Problem> {
        serde_json::from_value(self.body.clone())
            .map_err(|error| invalid_body(error.to_string()).hint("GET /openapi.json describes it"))
    }
}

/// Reads a body, which must be a JSON object. `{}` is enough if no field is required.
pub(crate) fn read_body(bytes: &[u8], schema: &Value) -> Result<Value, Problem> {
    if bytes.is_empty() {
        let detail = "the body is empty; an object is needed, at least {}";
        return Err(Problem::new(StatusCode::BAD_REQUEST, "json-invalid", detail));
    }
    match serde_json::from_slice(bytes) {
        Ok(Value::Object(object)) => {
            match object.iter().find(|(name, it)| is_unsaid(&schema["properties"][name], it)) {
                None => Ok(Value::Object(object)),
                Some((name, _)) => Err(invalid_body(format!("`{name}` is empty"))),
            }
        }
        Ok(_) => Err(invalid_body("the body is not a JSON object")),
        Err(error) => Err(not_json(&error)),
    }
}

/// Whether a value is a blank text although its schema forbids blank texts.
fn is_unsaid(schema: &Value, value: &Value) -> bool {
    let is_wanted = schema["pattern"] == NOT_BLANK;
    is_wanted && value.as_str().is_some_and(is_blank)
}

/// Reads the query with the route's parameters. Unknown parameters are refused, so that a typo is noticed.
pub(crate) fn read_query(
    parameters: &[Parameter],
    pairs: Vec<(String, String)>,
) -> Result<Map<String, Value>, Error> {
    let mut read = Map::new();
    for (name, value) in pairs {
        let Some(parameter) = parameters.iter().find(|it| it.name == name) else {
            return Err(unknown(parameters, &name));
        };
        if parameter.schema["type"] == "array" {
            let words = listed(&parameter.schema["items"]);
            let texts: Vec<_> = value.split(',').filter(|it| !it.is_empty()).collect();
            if let Some(other) = texts.iter().find(|it| !words.is_empty() && !words.contains(it)) {
                let message = format!("invalid value `{other}` for `{name}`");
                return Err(Error::usage(message, format!("it takes {}", words.join(", "))));
            }
            let list = read.entry(name).or_insert_with(|| Value::Array(Vec::new()));
            list.as_array_mut().into_iter().for_each(|it| it.extend(texts.iter().map(|it| Value::from(*it))));
        } else if read.contains_key(&name) {
            return Err(Error::usage(format!("`{name}` occurs twice"), "give it once"));
        } else {
            let value = read_value(parameter, value)?;
            read.insert(name, value);
        }
    }
    match parameters.iter().find(|it| it.is_required && !read.contains_key(&it.name)) {
        Some(missing) => Err(Error::usage(format!("`{}` is missing", missing.name), for_example(missing))),
        None => Ok(read),
    }
}

fn unknown(parameters: &[Parameter], name: &str) -> Error {
    let known = parameters.iter().map(|it| it.name.as_str());
    let near = nearest(name, known.clone()).map(|it| format!("did you mean `{it}`?"));
    let all = || match known.collect::<Vec<_>>() {
        none if none.is_empty() => "the route takes no parameters".to_owned(),
        names => format!("the route takes {}", names.join(", ")),
    };
    Error::usage(format!("the parameter `{name}` is not known"), near.unwrap_or_else(all))
}

/// The hint for a parameter with a wrong value.
fn for_example(parameter: &Parameter) -> String {
    let Parameter { name, example, .. } = parameter;
    format!("for example {name}={}", example.as_str().map_or_else(|| example.to_string(), str::to_owned))
}

/// The words of an `enum`.
fn listed(schema: &Value) -> Vec<&str> {
    schema["enum"].as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

fn read_value(parameter: &Parameter, value: String) -> Result<Value, Error> {
    let Parameter { name, schema, .. } = parameter;
    let not = |what: String| Err(Error::usage(format!("`{name}` is not {what}"), for_example(parameter)));
    match schema["type"].as_str().unwrap_or_default() {
        "boolean" => match value.as_str() {
            "true" => Ok(true.into()),
            "false" => Ok(false.into()),
            _ => not("true or false".to_owned()),
        },
        "integer" => {
            let limit = |word: &str| schema[word].as_u64().unwrap_or_default();
            let (least, most) = (limit("minimum"), limit("maximum"));
            let is_plain = !value.is_empty() && value.bytes().all(|it| it.is_ascii_digit());
            let read = value.parse::<u64>().ok().filter(|it| is_plain && (least..=most).contains(it));
            read.map_or_else(|| not(format!("a whole number from {least} to {most}")), |it| Ok(it.into()))
        }
        _ => match listed(schema) {
            words if !words.is_empty() && !words.contains(&value.as_str()) => {
                not(format!("one of {}", words.join(", ")))
            }
            _ if schema["pattern"] == NOT_BLANK && is_blank(&value) => {
                Err(Error::usage(format!("`{name}` is blank"), for_example(parameter)))
            }
            _ => Ok(value.into()),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::schema::text;
    use crate::serve::http::routes::route::{form, query, words};
    use serde_json::json;

    fn parameters() -> Vec<Parameter> {
        let texts = json!({"type": "array", "items": text()});
        let count = json!({"type": "integer", "minimum": 1, "maximum": 200});
        vec![
            query("tag", text(), "", "a"),
            query("status", texts, "", "a"),
            query("all", json!({"type": "boolean"}), "say true", true),
            query("limit", count, "", 1),
            query("query", form(NOT_BLANK), "say what", "a"),
            query("form", words(&["text", "dot"]), "", "dot"),
        ]
    }

    #[track_caller]
    fn check(pairs: &[(&str, &str)], expected: Result<&str, &str>) {
        let pairs = pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let read = read_query(&parameters(), pairs);
        let said = read.map(|it| Value::Object(it).to_string()).map_err(|it| it.to_string());
        assert_eq!(said, expected.map(str::to_owned).map_err(str::to_owned));
    }

    #[test]
    fn a_query_is_read_by_the_types_of_its_parameters() {
        check(&[], Ok("{}"));
        check(&[("tag", "a,b"), ("all", "true")], Ok(r#"{"tag":"a,b","all":true}"#));
        check(&[("status", "a,b"), ("status", "c")], Ok(r#"{"status":["a","b","c"]}"#));
        check(&[("limit", "200"), ("form", "dot")], Ok(r#"{"limit":200,"form":"dot"}"#));
    }

    #[test]
    fn anything_else_is_refused() {
        check(&[("tga", "a")], Err("the parameter `tga` is not known"));
        check(&[("tag", "a"), ("tag", "b")], Err("`tag` occurs twice"));
        for all in ["1", "yes", "", "TRUE"] {
            check(&[("all", all)], Err("`all` is not true or false"));
        }
        for limit in ["0", "201", "-1", "+1", "1.0", "", "x", "99999999999999"] {
            check(&[("limit", limit)], Err("`limit` is not a whole number from 1 to 200"));
        }
        for said in ["", " ", "\u{c}\u{3000}\u{19}"] {
            check(&[("query", said)], Err("`query` is blank"));
        }
        check(&[("form", "svg")], Err("`form` is not one of text, dot"));
    }
}
