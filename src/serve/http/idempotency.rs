//! `Idempotency-Key`: if the answer to a request was lost, the client sends the request again with the same key and gets
//! the same answer.
//!
//! The change that a request makes is recorded together with the key (`store::idempotency`). Then the answer is stored in
//! the record, so that the answer can be repeated even after a restart. If the process was killed before the answer was
//! stored, the answer is made from the record. A refusal is not stored: nothing was changed, and the request may succeed
//! the next time.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Request, State};
use axum::http::header::{CONTENT_TYPE, ETAG, LOCATION};
use axum::http::{HeaderName, HeaderValue, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::api::context::Context;
use crate::api::request_key::{Answer, Record, RequestKey};
use crate::serve::http::connections::CONNECTION;
use crate::serve::http::guard::BODY_LIMIT;
use crate::serve::http::problem::Problem;
use crate::serve::http::state::App;
use crate::serve::http::{etag, routes};
use crate::store::idempotency;

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
const REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");

/// The size limit of a day's records, in bytes. When it is reached, new keys are refused, because no record is removed
/// early.
const MOST_BYTES: u64 = 2 << 30;

/// After how many seconds to try again if there is no room. All records of an hour are removed together.
const ROOM_AFTER: u64 = 60 * 60;

/// The maximum size of a stored answer, in bytes. For a larger answer, only the record of the change is stored.
const LARGEST: usize = 4 << 20;

tokio::task_local! {
    /// The key of the request that the current task answers.
    pub(super) static KEY: Arc<RequestKey>;
}

/// The keys of requests in progress, and the total size of the records.
#[derive(Debug, Clone, Default)]
pub(super) struct InFlight(Arc<Mutex<InFlightState>>);

#[derive(Debug, Default)]
struct InFlightState {
    names: HashSet<String>,
    /// `None` if the total size has not been measured yet.
    bytes: Option<u64>,
}

/// A key of a request in progress. Dropping it removes the key, however the request ends.
struct InFlightKey {
    all: InFlight,
    name: String,
}

impl InFlight {
    fn state(&self) -> std::sync::MutexGuard<'_, InFlightState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begin(&self, name: &str) -> Option<InFlightKey> {
        let is_new = self.state().names.insert(name.to_owned());
        is_new.then(|| InFlightKey { all: self.clone(), name: name.to_owned() })
    }

    /// Whether another key can be stored. The total size is measured with the first key, and again before a refusal.
    fn has_room(&self, count: impl FnOnce() -> Result<u64, Problem>) -> Result<bool, Problem> {
        let known = self.state().bytes;
        if known.is_some_and(|it| it < MOST_BYTES) {
            return Ok(true);
        }
        let counted = count()?;
        self.state().bytes = Some(counted);
        Ok(counted < MOST_BYTES)
    }

    fn add(&self, added: u64) {
        if let Some(bytes) = &mut self.state().bytes {
            *bytes += added;
        }
    }
}

impl Drop for InFlightKey {
    fn drop(&mut self) {
        self.all.state().names.remove(&self.name);
    }
}

/// Lets a request with a key take effect only once. If the key was used before, repeats the stored answer.
pub(super) async fn once(State(app): State<App>, request: Request, next: Next) -> Response {
    let is_claiming = request.method() == Method::GET && etag::claims_next_step(request.uri().path());
    let is_writing = [Method::POST, Method::PATCH, Method::DELETE].contains(request.method());
    let is_mcp = request.uri().path() == "/mcp" || request.uri().path().starts_with("/mcp/");
    // If the route does not exist, the request is refused for that reason, even if its key was used before.
    let has_key = request.headers().contains_key(IDEMPOTENCY_KEY);
    let is_declared = has_key && routes::is_declared(request.method(), request.uri().path());
    let is_meant = (is_writing || is_claiming) && !is_mcp && is_declared;
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
        let detail = "`Idempotency-Key` must have 1 to 255 ASCII characters";
        Problem::new(StatusCode::BAD_REQUEST, "idempotency-key-invalid", detail)
    })?;
    let name = idempotency::name_of(key);
    let (parts, body) = request.into_parts();
    let body = to_bytes(body, usize::try_from(BODY_LIMIT).unwrap_or(usize::MAX)).await;
    let body = body.map_err(|_| Problem::of_status(StatusCode::PAYLOAD_TOO_LARGE))?;
    let asked = fingerprint(&parts.method, &parts.uri.to_string(), &body);
    let in_flight_key = app.in_flight.begin(&name).ok_or_else(is_in_flight)?;
    let (named, in_flight) = (name.clone(), app.in_flight.clone());
    let look = move |context: &Context| {
        // A command or another daemon may be using the key.
        let lock = idempotency::lock(context, &named, Duration::ZERO)?.ok_or_else(is_in_flight)?;
        Ok::<_, Problem>((look(context, &in_flight, &named)?, lock, context.now))
    };
    let (earlier, lock, now) = app.ask(look).await?;
    if let Some(record) = &earlier {
        if record.request != asked {
            return Err(other_request());
        }
        if let Some(answer) = &record.answer {
            return Ok(answered(answer.clone()));
        }
    }
    let key = Arc::new(RequestKey::new(&name, &asked, now, earlier).locked(lock));
    let request = Request::from_parts(parts, Body::from(body));
    // The work runs in a separate task, so that it is finished and recorded even if the client disconnects.
    let work = KEY.scope(Arc::clone(&key), async move {
        let mut response = next.run(request).await;
        if key.is_replayed() && response.status().is_success() {
            response.headers_mut().insert(REPLAYED, HeaderValue::from_static("true"));
        }
        let response = match key.is_answer_dropped() {
            true => response,
            false => keep(&app, name, asked, response).await,
        };
        drop(in_flight_key);
        response
    });
    let done = match CONNECTION.try_with(Arc::clone) {
        Ok(connection) => tokio::spawn(CONNECTION.scope(connection, work)).await,
        Err(_) => tokio::spawn(work).await,
    };
    done.map_err(|_| Problem::internal())
}

fn is_in_flight() -> Problem {
    let detail = "a request with this key is being answered";
    Problem::new(StatusCode::CONFLICT, "request-in-flight", detail).retry_after(1)
}

/// Finds the record of a key; a new key is refused if there is no room for it.
fn look(context: &Context, in_flight: &InFlight, name: &str) -> Result<Option<Record>, Problem> {
    let found = idempotency::find(context, name)?;
    if found.is_none() && !in_flight.has_room(|| Ok(idempotency::bytes(context)?))? {
        let detail =
            "the stored answers of the last day have reached their size limit, and none is removed early";
        let problem = Problem::new(StatusCode::SERVICE_UNAVAILABLE, "idempotency-full", detail);
        return Err(problem.hint("send the request without a key, or later").retry_after(ROOM_AFTER));
    }
    Ok(found)
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
    Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "idempotency-key-reused", detail).hint("use a new key")
}

async fn keep(app: &App, name: String, request: String, response: Response) -> Response {
    if !response.status().is_success() {
        return response;
    }
    let (parts, body) = response.into_parts();
    let Ok(body) = to_bytes(body, usize::MAX).await else { return Problem::internal().into_response() };
    let header = |name: &HeaderName| {
        let value = parts.headers.get(name).and_then(|it| it.to_str().ok())?;
        Some((name.as_str().to_owned(), value.to_owned()))
    };
    let answer = Answer {
        status: parts.status.as_u16(),
        headers: [CONTENT_TYPE, ETAG, LOCATION].iter().filter_map(header).collect(),
        body: String::from_utf8_lossy(&body).into_owned(),
    };
    let in_flight = app.in_flight.clone();
    if body.len() <= LARGEST {
        // An error is ignored: the change has been made and recorded even if the answer cannot be stored.
        app.ask(move |context| {
            in_flight.add(idempotency::keep(context, &name, &request, answer)?);
            Ok::<_, Problem>(())
        })
        .await
        .ok();
    }
    Response::from_parts(parts, Body::from(body))
}

fn answered(answer: Answer) -> Response {
    let status = StatusCode::from_u16(answer.status).unwrap_or(StatusCode::OK);
    let mut response = (status, Bytes::from(answer.body)).into_response();
    let headers = response.headers_mut();
    for (name, value) in answer.headers {
        if let (Ok(name), Ok(value)) = (name.parse::<HeaderName>(), value.parse()) {
            headers.insert(name, value);
        }
    }
    headers.insert(REPLAYED, HeaderValue::from_static("true"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_of_a_request_distinguishes_it() {
        let requests = [
            (Method::POST, "/api/plans", "{}"),
            (Method::GET, "/api/plans", "{}"),
            (Method::POST, "/api/plans?title=x", "{}"),
            (Method::POST, "/api/plans", "{ }"),
            // If the parts were joined without their lengths, this request would equal the first one.
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
}
