//! Routes: method, path, parameters, body, responses and handler. The router and the OpenAPI document are made from the
//! same table, so that they cannot differ.

use axum::http::Method;
use schemars::JsonSchema;
use serde_json::{Map, Value, json};

use super::call::{Call, Reply};
use crate::api::context::Context;
use crate::api::requests;
use crate::serve::http::etag::claims_next_step;
use crate::serve::http::problem::Problem;

/// Translates an HTTP request into a request of an operation, and the operation's report into a reply.
pub(crate) type Handler = fn(&Context, &Call) -> Result<Reply, Problem>;

/// A parameter in the query.
#[derive(Debug, Clone)]
pub(crate) struct Parameter {
    pub(crate) name: String,
    /// The schema of the value: a string, an array of strings, a boolean, or an integer with its limits.
    pub(crate) schema: Value,
    pub(crate) about: String,
    pub(crate) is_required: bool,
    pub(crate) example: Value,
}

/// A value that a successful answer contains, and that other routes take as a parameter.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Link {
    /// The parameter of the other route.
    pub(crate) parameter: &'static str,
    /// A JSON pointer into the body.
    pub(crate) from: &'static str,
    /// The operation ids of the other routes.
    pub(crate) to: &'static [&'static str],
}

#[derive(Debug, Clone)]
pub(crate) struct Body {
    pub(crate) schema: Value,
    pub(crate) example: Value,
}

/// One method of one path.
#[derive(Debug, Clone)]
pub(crate) struct Route {
    pub(crate) verb: Method,
    pub(crate) path: &'static str,
    /// The operation's id.
    pub(crate) name: &'static str,
    /// The verb of the command line that does the same.
    pub(crate) command: &'static str,
    pub(crate) about: &'static str,
    pub(crate) parameters: Vec<Parameter>,
    pub(crate) body: Option<Body>,
    /// The statuses of success, each with the schema of its body.
    pub(crate) success: Vec<(u16, Value)>,
    /// The media type of these bodies.
    pub(crate) media: &'static str,
    /// The error statuses of this route, in addition to those of every route.
    pub(crate) errors: &'static [u16],
    pub(crate) links: Vec<Link>,
    /// The path below which the route creates items; see [`Self::makes_at`].
    pub(crate) location: Option<&'static str>,
    /// `None` if another module of the server handles the route. Such a route is only described here.
    pub(crate) handler: Option<Handler>,
}

/// The errors of a write: nothing found, a conflict, a failed precondition.
pub(crate) const WRITING: &[u16] = &[404, 409, 412];
/// Like [`WRITING`], for routes that take no `If-Match`.
pub(crate) const MAKING: &[u16] = &[404, 409];
/// The errors of a route that only reads.
pub(crate) const LOOKING: &[u16] = &[404];

impl Route {
    fn new(verb: Method, path: &'static str, name: &'static str, command: &'static str) -> Self {
        Self {
            verb,
            path,
            name,
            command,
            about: "",
            parameters: Vec::new(),
            body: None,
            success: Vec::new(),
            media: "application/json",
            errors: &[],
            links: Vec::new(),
            location: None,
            handler: None,
        }
    }

    /// Sets the description of what the route does: one sentence, whose full stop is left out.
    pub(crate) fn about(mut self, about: &'static str) -> Self {
        self.about = about;
        self
    }

    pub(crate) fn takes(mut self, parameters: impl IntoIterator<Item = Parameter>) -> Self {
        self.parameters.extend(parameters);
        self
    }

    /// Adds parameters for some fields of the request type `R`. `examples` maps the names of these fields to examples.
    pub(crate) fn asks<R: JsonSchema>(self, examples: &Value) -> Self {
        self.with_parameters(&requests::schema::<R>(), examples)
    }

    /// A function of its own, because [`Self::asks`] is compiled once for each type.
    fn with_parameters(mut self, schema: &Map<String, Value>, examples: &Value) -> Self {
        let required = schema.get("required").and_then(Value::as_array);
        for (name, example) in examples.as_object().into_iter().flatten() {
            let mut it = schema["properties"][name].clone();
            describe(name, &mut it);
            let about = it.as_object_mut().and_then(|it| it.remove("description"));
            let about = about.as_ref().and_then(Value::as_str).unwrap_or_default();
            let is_required = required.is_some_and(|all| all.iter().any(|it| it == name));
            self.parameters.push(Parameter { is_required, ..query(name, sent(it), about, example.clone()) });
        }
        self
    }

    /// Sets the type of the body, and an example of a body.
    pub(crate) fn body<T: JsonSchema>(self, example: Value) -> Self {
        self.with_body(requests::schema::<T>(), example)
    }

    /// A function of its own, because [`Self::body`] is compiled once for each type.
    fn with_body(mut self, mut schema: Map<String, Value>, example: Value) -> Self {
        // The name and the doc comment of the type are for readers of the code, so they are left out.
        schema.retain(|word, _| word != "title" && word != "description");
        for (name, it) in schema.get_mut("properties").and_then(Value::as_object_mut).into_iter().flatten() {
            describe(name, it);
        }
        self.body = Some(Body { schema: schema.into(), example });
        self
    }

    pub(crate) fn answers(mut self, status: u16, schema: Value) -> Self {
        self.success.push((status, schema));
        self
    }

    pub(crate) fn media(mut self, media: &'static str) -> Self {
        self.media = media;
        self
    }

    pub(crate) fn refuses(mut self, errors: &'static [u16]) -> Self {
        self.errors = errors;
        self
    }

    pub(crate) fn links(
        mut self,
        parameter: &'static str,
        from: &'static str,
        to: &'static [&'static str],
    ) -> Self {
        self.links.push(Link { parameter, from, to });
        self
    }

    /// Sets the path below which new items are found. The `Location` of a 201 answer is this path with the item's id.
    pub(crate) fn makes_at(mut self, path: &'static str) -> Self {
        self.location = Some(path);
        self
    }

    pub(crate) fn by(mut self, handler: Handler) -> Self {
        self.handler = Some(handler);
        self
    }

    /// Sets the schema of the answer 200, the error statuses, and the handler.
    pub(crate) fn does(self, schema: Value, errors: &'static [u16], handler: Handler) -> Self {
        self.answers(200, schema).refuses(errors).by(handler)
    }

    /// Like [`Self::does`], for a route that creates something below `path`: it answers 201, or 200 for a dry run.
    pub(crate) fn makes(self, schema: Value, path: &'static str, handler: Handler) -> Self {
        self.answers(201, schema.clone()).makes_at(path).does(schema, MAKING, handler)
    }

    /// Whether it takes `If-Match`.
    pub(crate) fn takes_condition(&self) -> bool {
        self.errors.contains(&412)
    }

    /// Whether its answer has an etag that a client can send as `If-None-Match`.
    pub(crate) fn is_conditional(&self) -> bool {
        self.verb == Method::GET && self.media == "application/json" && !self.takes_key()
    }

    /// Whether it takes `Idempotency-Key`. Every route that writes does.
    pub(crate) fn takes_key(&self) -> bool {
        self.verb != Method::GET || claims_next_step(self.path)
    }

    pub(crate) fn path_names(&self) -> impl Iterator<Item = &'static str> {
        self.path.split('/').filter_map(|it| it.strip_prefix('{')?.strip_suffix('}'))
    }
}

/// The descriptions of the fields that many bodies and queries have.
const COMMON: [(&str, &str); 4] = [
    ("by", "The name to record; by default the daemon's user"),
    ("claim", "The claim that this update belongs to"),
    ("force", "Override the checks; this is recorded"),
    ("dry_run", "Answer with the diff and write nothing"),
];

/// The description of a common field.
fn about_common(name: &str) -> Option<&'static str> {
    COMMON.iter().find(|(it, _)| *it == name).map(|(_, about)| *about)
}

/// Adapts the schema of a field to the document: removes the default, and adds the description of a common field.
fn describe(name: &str, schema: &mut Value) {
    let Some(object) = schema.as_object_mut() else { return };
    object.remove("default");
    if let Some(about) = about_common(name) {
        object.entry("description").or_insert_with(|| about.into());
    }
}

/// The schema of a field as a query parameter. It does not allow null, because the client leaves the parameter out instead.
fn sent(mut schema: Value) -> Value {
    if let Some(object) = schema.as_object_mut() {
        object.remove("format");
        if let Some(Value::Array(types)) = object.get("type") {
            let kind = types.iter().find(|it| *it != "null").cloned();
            object.insert("type".to_owned(), kind.unwrap_or_default());
        }
        if let Some(Value::Array(words)) = object.get_mut("enum") {
            words.retain(|it| !it.is_null());
        }
    }
    schema
}

pub(crate) fn get(path: &'static str, name: &'static str, command: &'static str) -> Route {
    Route::new(Method::GET, path, name, command)
}

pub(crate) fn post(path: &'static str, name: &'static str, command: &'static str) -> Route {
    Route::new(Method::POST, path, name, command)
}

pub(crate) fn patch(path: &'static str, name: &'static str, command: &'static str) -> Route {
    Route::new(Method::PATCH, path, name, command)
}

pub(crate) fn delete(path: &'static str, name: &'static str, command: &'static str) -> Route {
    Route::new(Method::DELETE, path, name, command)
}

/// An optional parameter in the query.
pub(crate) fn query(name: &str, schema: Value, about: &str, example: impl Into<Value>) -> Parameter {
    let (name, about, example) = (name.to_owned(), about.to_owned(), example.into());
    Parameter { name, schema, about, is_required: false, example }
}

/// The schema of a text that is one of these words.
pub(crate) fn words(words: &[&str]) -> Value {
    json!({"type": "string", "enum": words})
}

/// The schema of a text that matches this pattern.
pub(crate) fn form(pattern: &str) -> Value {
    json!({"type": "string", "pattern": pattern})
}

impl Parameter {
    pub(crate) fn required(mut self) -> Self {
        self.is_required = true;
        self
    }
}
