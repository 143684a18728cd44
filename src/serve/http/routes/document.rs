//! The table of routes as an OpenAPI 3.1 document (`GET /openapi.json`), and as the table in docs/http-routes.md.

use std::fmt::Write;

use serde_json::{Map, Value, json};

use super::answers;
use super::route::{Link, Parameter, Route};
use super::{script_api, table};
use crate::api::schema::{self, PLACE};

/// The error statuses that every route can answer with. In this order, they mean: a bad request; a missing or wrong
/// token; another origin; a body that is too large or not JSON; an invalid value; an internal error; a time limit, also for
/// a body that arrives too slowly.
const EVERY: [u16; 8] = [400, 401, 403, 413, 415, 422, 500, 503];

/// The document; `needs_token` says whether every request must have the daemon's token.
pub(crate) fn document(needs_token: bool) -> Value {
    let routes = table();
    let mut paths: Map<String, Value> = Map::new();
    for route in &routes {
        let item = paths.entry(route.path).or_insert_with(|| json!({}));
        if let Some(item) = item.as_object_mut() {
            item.insert(route.verb.as_str().to_lowercase(), operation(route, &routes));
        }
    }
    let mut document = json!({
        "openapi": "3.1.0",
        "info": {
            "title": "planwatch",
            "version": env!("CARGO_PKG_VERSION"),
            "description": ABOUT,
            "license": {"name": env!("CARGO_PKG_LICENSE"), "identifier": env!("CARGO_PKG_LICENSE")},
        },
        "servers": [{"url": "/"}],
        "paths": paths,
        "components": {
            "schemas": schemas(),
            "responses": refusals(),
            "headers": headers(),
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    });
    if needs_token {
        document["security"] = json!([{"token": []}]);
    }
    document
}

fn headers() -> Value {
    let header = |about: &str| json!({"description": about, "schema": {"type": "string"}});
    json!({
        "Link": header("The next page, as `rel=\"next\"`"),
        "ETag": header("The etag of this answer, for `If-None-Match`. For a plan or step, it also works in `If-Match`, because its first part is the etag of the file"),
        "Location": header("The path of what was created"),
    })
}

const ABOUT: &str = "Plans as Markdown files. Answers are the objects that `planwatch --json` prints; refusals are \
                     `application/problem+json` with the codes of the command line.";

fn schemas() -> Map<String, Value> {
    let own = schema::parts().into_iter().chain(script_api::parts()).chain([("Refusal", refusal())]);
    own.map(|(name, it)| (name.to_owned(), it)).chain(answers::all()).collect()
}

/// The schema of a refusal, as in RFC 9457.
fn refusal() -> Value {
    let words = json!({"type": "string"});
    schema::Object::new()
        .fields(["type", "title", "detail", "instance", "code"], &words)
        .field("status", json!({"type": "integer", "minimum": 400, "maximum": 599}))
        .field("hint", schema::maybe_text())
        .field("details", json!({"type": "object", "additionalProperties": true}))
        .closed()
}

/// The statuses of refusals, each with its description.
const REFUSALS: [(u16, &str); 14] = [
    (400, "The request is not understood"),
    (401, "The token is missing or wrong"),
    (403, "Not allowed: another host, origin or site; or only a person may do this"),
    (404, "The item does not exist"),
    (405, "The path does not support this method"),
    (406, "No form of the answer is acceptable to the client"),
    (409, "The request conflicts with the current state"),
    (412, "The file was changed in the meantime"),
    (413, "The body is larger than 1 MiB"),
    (415, "The body must be JSON"),
    (422, "The request is understood but cannot be carried out: an invalid value, body or resulting file"),
    (428, "A precondition is needed"),
    (500, "An internal error occurred"),
    (503, "Temporarily unavailable"),
];

fn refusals() -> Map<String, Value> {
    let schema = json!({"$ref": format!("{PLACE}Refusal")});
    let content = json!({"application/problem+json": {"schema": schema}});
    let one = |(status, about): &(u16, &str)| {
        (format!("Refused{status}"), json!({"description": about, "content": content}))
    };
    REFUSALS.iter().map(one).collect()
}

fn operation(route: &Route, routes: &[Route]) -> Value {
    let mut operation = json!({
        "operationId": route.name,
        "summary": route.about,
        "description": described(route),
        "tags": [route.path.split('/').nth(2).unwrap_or_default()],
        "parameters": parameters(route),
        "responses": responses(route, routes),
    });
    if let Some(body) = &route.body {
        operation["requestBody"] = json!({
            "required": true,
            "content": {"application/json": {"schema": body.schema, "example": body.example}},
        });
    }
    operation
}

/// Describes a route in words, with the headers that it takes.
fn described(route: &Route) -> String {
    let mut said = format!("As `planwatch {}`.", route.command);
    if route.handler.is_none() {
        said += " One of the routes for scripts.";
    }
    if route.takes_condition() {
        said += " With `If-Match`, it is done only if the target still has this `ETag`.";
    }
    if route.takes_key() {
        said += " With `Idempotency-Key`, it is done once: the same request with the same key gets the same answer.";
    }
    said
}

fn responses(route: &Route, routes: &[Route]) -> Map<String, Value> {
    let mut responses = Map::new();
    for (status, schema) in &route.success {
        let mut response = json!({
            "description": route.about, "content": {route.media: {"schema": schema}},
        });
        let named = [
            ("Link", route.parameters.iter().any(|it| it.name == "cursor")),
            ("ETag", route.is_conditional()),
            ("Location", *status == 201 && route.location.is_some()),
        ];
        let named = named.into_iter().filter(|(_, is_there)| *is_there);
        let named =
            named.map(|(it, _)| (it.to_owned(), json!({"$ref": format!("#/components/headers/{it}")})));
        let named: Map<_, _> = named.collect();
        if !named.is_empty() {
            response["headers"] = Value::Object(named);
        }
        let links = links(route, routes);
        // If a route answers 200 and 201, only 201 has links. An answer 200 can be that of a dry run, which creates
        // nothing that a link could lead to.
        let is_best = route.success.iter().map(|(it, _)| it).max() == Some(status);
        if !links.is_empty() && is_best {
            response["links"] = Value::Object(links);
        }
        responses.insert(status.to_string(), response);
    }
    if route.is_conditional() {
        let about = "The client has this answer, as `If-None-Match` says";
        let headers = json!({"ETag": {"$ref": "#/components/headers/ETag"}});
        responses.insert("304".to_owned(), json!({"description": about, "headers": headers}));
    }
    // The refusal if another request with the same key is in progress.
    let keyed: &[u16] = if route.takes_key() { &[409] } else { &[] };
    let mut refused: Vec<_> = EVERY.iter().chain(route.errors).chain(keyed).copied().collect();
    refused.sort_unstable();
    refused.dedup();
    for status in refused {
        let name = format!("#/components/responses/Refused{status}");
        responses.insert(status.to_string(), json!({"$ref": name}));
    }
    responses
}

/// The links of a route to existing routes.
fn links(route: &Route, routes: &[Route]) -> Map<String, Value> {
    let of = |it: &Link| {
        let (parameter, from) = (it.parameter, it.from);
        let there = it.to.iter().filter(|name| routes.iter().any(|route| route.name == **name));
        let one = move |name: &&str| {
            let link =
                json!({"operationId": name, "parameters": {parameter: format!("$response.body#{from}")}});
            ((*name).to_owned(), link)
        };
        there.map(one).collect::<Vec<_>>()
    };
    route.links.iter().flat_map(of).collect()
}

/// The pattern of a name in a path. It matches the names that a plan's directory can have, except those with a backslash or
/// a control character. `guard` refuses these characters in a path.
const NAME: &str = "^[^/\\\\\\x00-\\x1f\\x7f-\\x9f._][^/\\\\\\x00-\\x1f\\x7f-\\x9f]*$";
/// The pattern of a step's id: a plan's name and a step number, as
/// [`StepNumber`](crate::plan::step_number::StepNumber) reads it.
const STEP_ID: &str =
    "^[^/\\\\\\x00-\\x1f\\x7f-\\x9f._][^/\\\\\\x00-\\x1f\\x7f-\\x9f]*:[0-9]{1,9}(\\.[0-9]{1,100})?$";
/// The pattern of `If-Match`: `*`, or strong etags in the form in which answers contain them.
const ETAGS: &str = "^(\\*|\"[0-9a-f-]+\"(, \"[0-9a-f-]+\")*)$";
/// The pattern of a key that `idempotency::once` accepts.
const KEY: &str = "^[!-~]([ -~]{0,253}[!-~])?$";

fn parameters(route: &Route) -> Vec<Value> {
    let in_path = |name: &'static str| {
        let (about, pattern, example) = match (name, route.path) {
            ("claim", _) => ("The claim's id", "^[g-z][0-9a-f]{7}$", "h4f09a21"),
            ("name", path) if path.contains("scripts") => ("The script", NAME, "build"),
            ("name", _) => ("The template or prompt", NAME, "feature"),
            (_, path) if path.contains("/steps/{") => {
                ("The step, as `plan:number`", STEP_ID, "feature-auth:2")
            }
            (_, path) if path.contains("/show/") => {
                ("The plan, step, decision or insight", NAME, "feature-auth:2")
            }
            _ => ("The plan", NAME, "feature-auth"),
        };
        json!({
            "name": name, "in": "path", "required": true, "description": about,
            "schema": {"type": "string", "pattern": pattern}, "example": example,
        })
    };
    let query = route.parameters.iter().map(in_query);
    route.path_names().map(in_path).chain(query).chain(in_header(route)).collect()
}

/// The headers that a request may have in addition to those of every request.
fn in_header(route: &Route) -> Vec<Value> {
    let header = |name: &str, about: &str, pattern: &str| {
        json!({
            "name": name, "in": "header", "required": false, "description": about,
            "schema": {"type": "string", "pattern": pattern},
        })
    };
    let mut headers = Vec::new();
    if route.takes_condition() {
        let about = "Make the change only if the file still has this `ETag`, or one of those in a list";
        headers.push(header("If-Match", about, ETAGS));
    }
    if route.is_conditional() {
        let about = "Answer 304 without a body if this is the `ETag` of the answer";
        headers.push(json!({
            "name": "If-None-Match", "in": "header", "required": false, "description": about,
            "schema": {"type": "string"},
        }));
    }
    if route.takes_key() {
        let about = "Do it once: the same request with the same key gets the same answer for a day";
        headers.push(header("Idempotency-Key", about, KEY));
    }
    headers
}

fn in_query(it: &Parameter) -> Value {
    let is_list = it.schema["type"] == "array";
    let example = if is_list { json!([it.example]) } else { it.example.clone() };
    json!({
        "name": it.name, "in": "query", "required": it.is_required, "description": it.about, "schema": it.schema,
        "example": example,
    })
}

/// The routes as the table of docs/http-routes.md.
pub fn markdown() -> String {
    let mut text = "| route | what it does | as |\n|---|---|---|\n".to_owned();
    for it in table() {
        writeln!(text, "| `{} {}` | {} | `{}` |", it.verb, it.path, it.about, it.command).ok();
    }
    text
}
