//! `Idempotency-Key`: who asks again with the same key, because the answer was lost, gets the same answer.
//!
//! What was done is kept for a day in `.planwatch/answers`, so that it holds over a restart. A refusal is not kept:
//! nothing was done, and it may go well the next time.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Request, State};
use axum::http::header::{CONTENT_TYPE, ETAG, LOCATION};
use axum::http::{HeaderName, HeaderValue, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};

use crate::disk::Records;
use crate::engine::context::Context;
use crate::plan::time::Time;
use crate::serve::http::app::App;
use crate::serve::http::connections::CONNECTION;
use crate::serve::http::guard::BODY_LIMIT;
use crate::serve::http::problem::Problem;

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
const REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");

/// How long an answer is kept, in seconds.
const KEPT: i64 = 24 * 60 * 60;

/// How many are kept; beyond that the older half goes.
const MOST: usize = 1024;

/// An answer that is not kept because it is too large for that.
const LARGEST: usize = 4 << 20;

/// The keys of requests that are being answered.
#[derive(Debug, Clone, Default)]
pub(super) struct InFlight(Arc<Mutex<HashSet<String>>>);

/// Takes the key out again, however the request ends.
struct Flying {
    all: InFlight,
    name: String,
}

impl InFlight {
    fn begin(&self, name: &str) -> Option<Flying> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.insert(name.to_owned()).then(|| Flying { all: self.clone(), name: name.to_owned() })
    }
}

impl Drop for Flying {
    fn drop(&mut self) {
        self.all.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.name);
    }
}

/// What is kept of an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Kept {
    /// Of the request: method, path and body.
    request: String,
    at: Time,
    status: u16,
    headers: Vec<(String, String)>,
    body: String,
}

/// Answers a request with a key once, and again with the same.
pub(super) async fn once(State(app): State<App>, request: Request, next: Next) -> Response {
    let is_claiming = request.method() == Method::GET && request.uri().path().ends_with("/next-step");
    let is_meant = (request.method() == Method::POST || is_claiming) && request.uri().path() != "/mcp";
    match request.headers().get(IDEMPOTENCY_KEY).cloned() {
        Some(key) if is_meant => {
            keyed(app, &key, request, next).await.unwrap_or_else(IntoResponse::into_response)
        }
        _ => next.run(request).await,
    }
}

async fn keyed(app: App, key: &HeaderValue, request: Request, next: Next) -> Result<Response, Problem> {
    let key = key.to_str().ok().filter(|it| !it.is_empty() && it.len() <= 255);
    let key = key.ok_or_else(|| {
        let detail = "`Idempotency-Key` is 1 to 255 letters, digits and signs";
        Problem::new(StatusCode::BAD_REQUEST, "idempotency-key-invalid", detail)
    })?;
    let name = blake3::hash(key.as_bytes()).to_hex()[..32].to_owned();
    let (parts, body) = request.into_parts();
    let body = to_bytes(body, usize::try_from(BODY_LIMIT).unwrap_or(usize::MAX)).await;
    let body = body.map_err(|_| Problem::of_status(StatusCode::PAYLOAD_TOO_LARGE))?;
    let asked = fingerprint(&parts.method, &parts.uri.to_string(), &body);
    let Some(flying) = app.in_flight().begin(&name) else {
        let detail = "a request with this key is being answered";
        let problem = Problem::new(StatusCode::CONFLICT, "request-in-flight", detail);
        return Err(problem.retry_after(1));
    };
    let look = {
        let name = name.clone();
        move |context: &Context| Ok(find(&records(context)?, &name, context.now))
    };
    if let Some(kept) = app.ask_or(look).await? {
        return if kept.request == asked { Ok(kept.answer()) } else { Err(other_request()) };
    }
    let request = Request::from_parts(parts, Body::from(body));
    // In a task of its own: what has begun is finished and kept, also when the asker goes away.
    let work = async move {
        let response = next.run(request).await;
        let answered = keep(&app, name, asked, response).await;
        drop(flying);
        answered
    };
    let done = match CONNECTION.try_with(Arc::clone) {
        Ok(connection) => tokio::spawn(CONNECTION.scope(connection, work)).await,
        Err(_) => tokio::spawn(work).await,
    };
    done.map_err(|_| Problem::internal())
}

fn fingerprint(method: &Method, target: &str, body: &[u8]) -> String {
    let mut hasher = blake3::Hasher::new();
    for part in [method.as_str().as_bytes(), target.as_bytes(), body] {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part);
    }
    hasher.finalize().to_hex()[..32].to_owned()
}

fn other_request() -> Problem {
    let detail = "this key belongs to another request";
    Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "idempotency-key-reused", detail).hint("take a new key")
}

fn records(context: &Context) -> Result<Records, Problem> {
    context.plans.answers().ok_or_else(|| {
        let detail = "answers cannot be kept here, because `.planwatch` cannot be used";
        Problem::new(StatusCode::SERVICE_UNAVAILABLE, "idempotency-unavailable", detail)
    })
}

fn read(bytes: &[u8]) -> Option<Kept> {
    serde_json::from_slice(bytes).ok()
}

fn find(records: &Records, name: &str, now: Time) -> Option<Kept> {
    read(&records.get(name)?).filter(|it| now.seconds_since(it.at) < KEPT)
}

async fn keep(app: &App, name: String, request: String, response: Response) -> Response {
    if !response.status().is_success() {
        return response;
    }
    let (parts, body) = response.into_parts();
    let Ok(body) = to_bytes(body, LARGEST).await else { return Problem::internal().into_response() };
    let header = |name: &HeaderName| {
        let value = parts.headers.get(name).and_then(|it| it.to_str().ok())?;
        Some((name.as_str().to_owned(), value.to_owned()))
    };
    let kept = Kept {
        request,
        at: Time::from_nanoseconds(0),
        status: parts.status.as_u16(),
        headers: [CONTENT_TYPE, ETAG, LOCATION].iter().filter_map(header).collect(),
        body: String::from_utf8_lossy(&body).into_owned(),
    };
    // It was done all the same if it cannot be kept.
    app.ask_or(move |context| {
        let records = records(context)?;
        put(&records, &name, &Kept { at: context.now, ..kept });
        Ok(())
    })
    .await
    .ok();
    Response::from_parts(parts, Body::from(body))
}

fn put(records: &Records, name: &str, kept: &Kept) {
    let Ok(Some(locked)) = records.lock() else { return };
    if records.names().len() >= MOST {
        let mut all: Vec<_> =
            records.all().into_iter().map(|(name, it)| (read(&it).map(|it| it.at), name)).collect();
        all.sort();
        for (_, name) in &all[..all.len() / 2] {
            locked.remove(name).ok();
        }
    }
    locked.put(name, &serde_json::to_vec(kept).unwrap_or_default()).ok();
}

impl Kept {
    fn answer(self) -> Response {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::OK);
        let mut response = (status, Bytes::from(self.body)).into_response();
        let headers = response.headers_mut();
        for (name, value) in self.headers {
            if let (Ok(name), Ok(value)) = (name.parse::<HeaderName>(), value.parse()) {
                headers.insert(name, value);
            }
        }
        headers.insert(REPLAYED, HeaderValue::from_static("true"));
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::model::Machine;

    #[test]
    fn what_belongs_to_a_request_makes_another_one_of_it() {
        let requests = [
            (Method::POST, "/api/plans", "{}"),
            (Method::GET, "/api/plans", "{}"),
            (Method::POST, "/api/plans?title=x", "{}"),
            (Method::POST, "/api/plans", "{ }"),
            // As one text it would be the first.
            (Method::POST, "/api/plans{", "}"),
        ];
        let prints = requests.map(|(method, target, body)| fingerprint(&method, target, body.as_bytes()));
        assert_eq!(HashSet::from(prints).len(), 5);
    }

    #[test]
    fn a_key_is_in_flight_until_its_request_ends() {
        let all = InFlight::default();
        let first = all.begin("a");
        assert!(first.is_some() && all.begin("a").is_none() && all.begin("b").is_some());
        drop(first);
        assert!(all.begin("a").is_some());
    }

    fn kept(at: Time) -> Kept {
        Kept { request: String::new(), at, status: 200, headers: Vec::new(), body: String::new() }
    }

    #[test]
    fn an_answer_is_kept_for_a_day_and_the_older_half_goes_when_there_are_too_many() {
        let machine = Machine::with(&[("/plans/p/plan.md", "# P\n")]);
        let plans = machine.plans();
        drop(plans.lock(&mut || {}).unwrap());
        let records = plans.answers().unwrap();
        let begin: Time = "2026-11-21T12:00:00Z".parse().unwrap();
        for n in 0..MOST {
            put(&records, &format!("k{n:04}"), &kept(begin.plus_seconds(n as i64)));
        }
        assert_eq!(records.names().len(), MOST);
        assert_eq!(find(&records, "k0000", begin.plus_seconds(KEPT - 1)), Some(kept(begin)));
        assert_eq!(find(&records, "k0000", begin.plus_seconds(KEPT)), None);
        let last = begin.plus_seconds(MOST as i64);
        put(&records, "last", &kept(last));
        assert_eq!(records.names().len(), MOST / 2 + 1);
        assert!(find(&records, "k0511", last).is_none() && find(&records, "k0512", last).is_some());
        assert_eq!(find(&records, "last", last), Some(kept(last)));
    }
}
