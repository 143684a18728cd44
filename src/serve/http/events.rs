//! `GET /api/events`: changes as server-sent events. A viewer can resume after the last event that it received.
//!
//! The daemon does not wait for a slow viewer. A viewer that missed events gets a `reset` and must read everything again.
//! Without viewers, no task runs.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, HeaderName, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use hyper::body::Frame;
use serde_json::{Value, json};
use tokio::sync::{OwnedSemaphorePermit, broadcast, mpsc, watch};

use crate::api::views::envelope;
use crate::serve::daemon::feed::{Since, Subscription};
use crate::serve::http::connections::{self, Busy};
use crate::serve::http::problem::Problem;
use crate::serve::http::state::App;
use crate::serve::ipc::event::Notification;

const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// The interval of keep-alive messages, which detect closed connections.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// How many unsent events wait in the channel of a slow viewer. If the channel is full, further events wait in the feed, up
/// to the length of its history.
const WAITING: usize = 64;

pub(super) fn router() -> Router<App> {
    Router::new().route("/api/events", get(events))
}

/// Sends changes as they happen. The first event is `ready`. `changed` is sent at once when a plan changes, even if a save
/// is still in progress. Once the plan's files have settled, each status change, attempt, addition or removal is sent as an
/// `event`. `reset` means that events were lost.
pub(in crate::serve) async fn events(
    State(app): State<App>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let Ok(permit) = app.streams.clone().try_acquire_owned() else {
        let detail = "too many viewers follow the events already";
        let problem = Problem::new(StatusCode::SERVICE_UNAVAILABLE, "too-many-streams", detail);
        return Err(problem.hint("close some, or try again later").retry_after(5));
    };
    let last = headers.get(LAST_EVENT_ID).map(|it| it.to_str().ok().and_then(|it| it.trim().parse().ok()));
    // An invalid id becomes 0, which is never in the history, so the viewer gets a reset.
    let last = last.map(|it| it.unwrap_or(0));
    let following = app.feed.follow(last);
    let (sender, receiver) = mpsc::channel(WAITING);
    let stream =
        EventStream { sender, is_ending: app.is_ending.clone(), _permit: permit, _busy: connections::busy() };
    tokio::spawn(stream.run(following, last));
    let headers = [(CONTENT_TYPE, "text/event-stream"), (HeaderName::from_static("x-accel-buffering"), "no")];
    Ok((headers, Body::new(Stream(receiver))).into_response())
}

struct EventStream {
    sender: mpsc::Sender<Bytes>,
    is_ending: watch::Receiver<bool>,
    _permit: OwnedSemaphorePermit,
    _busy: Busy,
}

impl EventStream {
    async fn run(mut self, following: Subscription, asked: Option<u64>) {
        let Subscription { since, last, mut receiver } = following;
        let (mut last, mut missed) = (last, Vec::new());
        // The id of `ready` is that of the last event that the viewer has received. For a new viewer, it is that of the last
        // event before the stream. If the connection breaks right after `ready`, the viewer therefore misses nothing. Before
        // a reset, `ready` has no id, so a viewer that reconnects sends its old id again and gets the reset.
        let id = match since {
            Since::TooFar => {
                missed.push(reset(last));
                None
            }
            Since::Events(told) => {
                missed.extend(told.iter().map(|(id, it)| line(*id, it)));
                asked.or(Some(last))
            }
        };
        let ready = format!("retry: 1000\n{}", written(id, "ready", &envelope("ready", json!({}))));
        for part in std::iter::once(Bytes::from(ready)).chain(missed) {
            if self.sender.send(part).await.is_err() {
                return;
            }
        }
        loop {
            let part = tokio::select! {
                told = receiver.recv() => match told {
                    Ok((id, told)) => { last = id; line(id, &told) }
                    Err(broadcast::error::RecvError::Lagged(n)) => { last += n; reset(last) }
                    Err(broadcast::error::RecvError::Closed) => return,
                },
                () = tokio::time::sleep(KEEP_ALIVE) => Bytes::from_static(b": alive\n\n"),
                () = self.sender.closed() => return,
                _ = self.is_ending.wait_for(|it| *it) => return,
            };
            let is_ending = self.is_ending.wait_for(|it| *it);
            tokio::select! {
                sent = self.sender.send(part) => if sent.is_err() { return },
                _ = is_ending => return,
            }
        }
    }
}

fn line(id: u64, told: &Notification) -> Bytes {
    written(Some(id), told.kind(), &told.to_json()).into()
}

/// The event that makes a viewer read everything again.
fn reset(id: u64) -> Bytes {
    written(Some(id), "reset", &envelope("reset", json!({}))).into()
}

fn written(id: Option<u64>, kind: &str, data: &Value) -> String {
    let id = id.map(|it| format!("id: {it}\n")).unwrap_or_default();
    // `Value` writes line ends only inside strings, where they are escaped.
    format!("{id}event: {kind}\ndata: {data}\n\n")
}

/// A body that continues until its sender is dropped.
struct Stream(mpsc::Receiver<Bytes>);

impl hyper::body::Body for Stream {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        self.0.poll_recv(context).map(|it| it.map(|it| Ok(Frame::data(it))))
    }
}
