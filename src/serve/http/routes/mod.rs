//! The routes for the verbs of the command line, except those of the script API, and the document that describes all routes.
//!
//! The function `table` lists all routes. `GET /openapi.json` and the table in docs/http-routes.md are made from this list,
//! and the router from the routes in it that have a handler here. Handlers only translate requests and reports; they run
//! in a thread that may block.

mod answers;
mod bodies;
mod call;
mod document;
mod documents;
mod knowledge;
mod pages;
mod read;
mod route;
mod script_api;
#[cfg(test)]
mod tests;
mod work;
mod write;

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use axum::Router;
use axum::body::Bytes;
use axum::extract::{FromRequest, FromRequestParts, Query, RawPathParams, Request, State};
use axum::http::header::{LINK, LOCATION};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodFilter, MethodRouter, get, on};
use serde_json::{Map, Value};

use crate::api::context::Context;
use crate::api::precondition;
use crate::api::sort::Sort;
use crate::page::address::encoded;
use crate::serve::http::etag::{IfMatch, tagged};
use crate::serve::http::extract::Written;
use crate::serve::http::problem::Problem;
use crate::serve::http::state::App;

use call::{Call, Reply};
use route::{Parameter, Route};

pub use document::markdown;

use document::document;

/// Every route, including those of the script API.
fn table() -> Vec<Route> {
    [
        script_api::routes(),
        read::routes(),
        work::routes(),
        write::routes(),
        knowledge::routes(),
        documents::routes(),
    ]
    .concat()
}

/// The verbs of the command line that have a route.
pub fn commands() -> Vec<&'static str> {
    table().iter().map(|it| it.command).collect()
}

/// Whether a route answers this method at this path.
pub(super) fn is_declared(method: &Method, path: &str) -> bool {
    declared(method, path).is_some()
}

/// The route that answers this method at this path.
fn declared(method: &Method, path: &str) -> Option<&'static Declared> {
    static ALL: LazyLock<Vec<Declared>> = LazyLock::new(|| {
        let of = |it: Route| Declared {
            verb: it.verb,
            path: it.path,
            parameters: it.parameters,
            is_handled: it.handler.is_some(),
        };
        table().into_iter().map(of).collect()
    });
    let is_at = |declared: &str| {
        let (mut own, mut asked) = (declared.split('/'), path.split('/'));
        own.by_ref().all(|it| asked.next().is_some_and(|name| it.starts_with('{') || it == name))
            && asked.next().is_none()
    };
    ALL.iter().find(|it| it.verb == *method && is_at(it.path))
}

/// A route, without what only its answers need.
struct Declared {
    verb: Method,
    path: &'static str,
    parameters: Vec<Parameter>,
    /// Whether it has a handler in this module.
    is_handled: bool,
}

/// Checks the query of a request to a route that another module handles. The routes with a handler here check it when they
/// read it.
pub(super) fn check_query(request: &Request) -> Result<(), Problem> {
    let method = if request.method() == Method::HEAD { &Method::GET } else { request.method() };
    match declared(method, request.uri().path()) {
        Some(it) if !it.is_handled => query_of(request.uri(), &it.parameters).map(drop),
        _ => Ok(()),
    }
}

fn query_of(uri: &Uri, parameters: &[Parameter]) -> Result<Map<String, Value>, Problem> {
    let Query(pairs) =
        Query::<Vec<(String, String)>>::try_from_uri(uri).map_err(|it| bad_query(&it.body_text()))?;
    call::read_query(parameters, pairs)
        .map_err(|it| bad_query(&it.to_string()).hint(it.hint().unwrap_or_default()))
}

/// The router of the routes that have a handler here.
pub(super) fn router() -> Router<App> {
    let mut paths: BTreeMap<&'static str, MethodRouter<App>> = BTreeMap::new();
    for route in table().into_iter().filter(|it| it.handler.is_some()) {
        let (path, method) = (route.path, method(Arc::new(route)));
        let methods = paths.remove(path).unwrap_or_default();
        paths.insert(path, methods.merge(method));
    }
    let described = get(|State(app): State<App>| async move { axum::Json(document(app.token.is_some())) });
    let routes = paths.into_iter().fold(Router::new(), |router, (path, methods)| router.route(path, methods));
    routes.route("/openapi.json", described)
}

fn method(route: Arc<Route>) -> MethodRouter<App> {
    // This fails only for a method that HTTP does not define.
    let Ok(filter) = MethodFilter::try_from(route.verb.clone()) else { return MethodRouter::new() };
    on(filter, move |State(app): State<App>, request: Request| async move {
        let uri = request.uri().clone();
        match answered(&app, &route, request).await {
            Ok(sent) => response(&uri, sent),
            Err(problem) => problem.into_response(),
        }
    })
}

async fn answered(app: &App, route: &Arc<Route>, request: Request) -> Result<Sent, Problem> {
    let (mut parts, body) = request.into_parts();
    let condition = IfMatch::from_request_parts(&mut parts, app).await?;
    if condition.0.is_some() && route.takes_key() && !route.takes_condition() {
        return Err(precondition::not_supported().into());
    }
    let path = RawPathParams::from_request_parts(&mut parts, app).await;
    let path = path.map_err(|it| Problem::new(StatusCode::BAD_REQUEST, "name-invalid", it.body_text()))?;
    let path = path.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    let query = query_of(&parts.uri, &route.parameters)?;
    let body = match &route.body {
        None => Value::Null,
        Some(wanted) => {
            let bytes = Bytes::from_request(Request::from_parts(parts, body), app).await;
            let bytes = bytes.map_err(|it| Problem::of_status(it.status()))?;
            call::read_body(&bytes, &wanted.schema)?
        }
    };
    let call = Call { path, query, body };
    let route = Arc::clone(route);
    let location = route.location;
    let Some(handler) = route.handler else { return Err(Problem::internal()) };
    let answer = move |context: &Context| {
        let mut reply = match repeated(context, &route) {
            Some(reply) => reply,
            None => handler(context, &call)?,
        };
        let kind = reply.body["kind"].as_str().unwrap_or_default().to_owned();
        context.kept.put_into_answer(&kind, &mut reply.body);
        Sent::of(reply, location)
    };
    app.ask_if(condition, answer).await
}

/// The reply to a repeated request, if an earlier request with the same idempotency key made the change, but its answer was
/// not stored. `None` for claims, whose operation itself repeats the answer.
fn repeated(context: &Context, route: &Route) -> Option<Reply> {
    let key = context.key.as_ref()?;
    let made = key.made().filter(|it| !it.is_claim())?;
    key.replay();
    let report = made.to_json(context);
    let etag_at = (report["changes"].as_array().map(Vec::len) == Some(1)).then_some("/changes/0/now/etag");
    let reply = if route.name == "import_plan" {
        Reply::of("import", made.imported(&report))
    } else {
        Reply::of("change", report)
    };
    let status = route.success.first().map_or(200, |it| it.0);
    let is_making = route.success.iter().any(|it| it.0 == 201);
    Some(Reply { status: if is_making { 201 } else { status }, etag_at, ..reply })
}

struct Sent {
    status: StatusCode,
    body: Written,
    next_cursor: Option<String>,
    etag: Option<String>,
    /// The path of the created plan, step or other item.
    location: Option<String>,
}

impl Sent {
    /// `made_at` is the path below which the route creates items.
    fn of(reply: Reply, made_at: Option<&str>) -> Result<Self, Problem> {
        let Reply { status, body, next_cursor, etag_at } = reply;
        let etag = etag_at.and_then(|it| body.pointer(it)?.as_str()).map(str::to_owned);
        let status = StatusCode::from_u16(status).unwrap_or(StatusCode::OK);
        let made = body.pointer("/changes/0/id").and_then(Value::as_str);
        let location = made_at.filter(|_| status == StatusCode::CREATED).zip(made);
        let location = location.map(|(path, id)| format!("{path}{}", encoded(id)));
        Ok(Self { status, body: Written::of(&body)?, next_cursor, etag, location })
    }
}

pub(super) fn bad_query(why: &str) -> Problem {
    let why = why.replace("Failed to deserialize query string: ", "");
    Problem::new(StatusCode::BAD_REQUEST, "parameter-invalid", why)
}

/// Reads the parameter `sort`.
pub(super) fn read_sort(text: &str) -> Result<Sort, Problem> {
    Sort::read(text).map_err(|it| bad_query(&it.to_string()).hint(it.hint().unwrap_or_default()))
}

fn response(uri: &Uri, sent: Sent) -> Response {
    let mut headers = HeaderMap::new();
    let next = sent.next_cursor.map(|cursor| next_page(uri, &cursor));
    if let Some(value) = next.and_then(|it| HeaderValue::from_str(&it).ok()) {
        headers.insert(LINK, value);
    }
    if let Some(value) = sent.location.and_then(|it| HeaderValue::from_str(&it).ok()) {
        headers.insert(LOCATION, value);
    }
    tagged(sent.etag.as_deref(), (sent.status, headers, sent.body))
}

/// Returns the value of the `Link` header (RFC 8288): the URL of the same request for the next page.
fn next_page(uri: &Uri, cursor: &str) -> String {
    let query = uri.query().unwrap_or_default();
    let others = query.split('&').filter(|it| !it.is_empty() && !it.starts_with("cursor="));
    let query: Vec<_> = others.map(str::to_owned).chain([format!("cursor={cursor}")]).collect();
    format!("<{}?{}>; rel=\"next\"", uri.path(), query.join("&"))
}
