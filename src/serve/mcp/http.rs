//! MCP over HTTP: stateless requests, so that clients can continue after a restart of the server.

use std::sync::Arc;

use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::http::header::{ACCEPT, CONTENT_TYPE};
use axum::http::{HeaderValue, Method, StatusCode};
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use axum::{Json, Router};
use rmcp::model::ProtocolVersion;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};

use crate::serve::daemon::context_factory::ContextFactory;
use crate::serve::daemon::feed::Feed;
use crate::serve::mcp::{Options, Planwatch, Toolset, message};

/// The service at `/mcp`. Paths below it offer other sets of tools.
///
/// It does not check the host and the origin of requests, because the HTTP server that contains it checks them.
pub fn service(contexts: &ContextFactory, feed: &Feed) -> Router {
    let sets = [
        ("/", Toolset::All, false),
        ("/executor", Toolset::Executor, false),
        ("/compat", Toolset::Compat, false),
        ("/read-only", Toolset::All, true),
    ];
    let all = sets.into_iter().fold(Router::new(), |router, (path, tools, is_read_only)| {
        let options = Options { tools, is_read_only };
        router.route_service(path, one(Planwatch::new(Arc::clone(contexts), options).with_feed(feed.clone())))
    });
    all.layer(from_fn(refuse))
}

fn one(server: Planwatch) -> StreamableHttpService<Planwatch, NeverSessionManager> {
    let config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(false)
        .with_json_response(true)
        .disable_allowed_hosts()
        .disable_allowed_origins();
    let sessions = Arc::new(NeverSessionManager::default());
    StreamableHttpService::new(move || Ok(server.clone()), sessions, config)
}

/// If a JSON body is not a message, answers with a JSON-RPC error. The library would answer only that the body cannot be
/// read. `Accept: */*` counts as the two media types that a client has to accept.
async fn refuse(request: Request, next: Next) -> Response {
    if request.method() != Method::POST {
        return next.run(request).await;
    }
    let (mut head, body) = request.into_parts();
    // The library does not know ranges of media types.
    let accepts_all = |it: &HeaderValue| it.to_str().is_ok_and(|it| it.contains("*/*"));
    if head.headers.get_all(ACCEPT).iter().any(accepts_all) {
        head.headers.insert(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
    }
    // An outer layer has already limited the size of the body.
    let Ok(body) = to_bytes(body, usize::MAX).await else {
        return StatusCode::PAYLOAD_TOO_LARGE.into_response();
    };
    let is_json =
        head.headers.get(CONTENT_TYPE).is_some_and(|it| it.as_bytes().starts_with(b"application/json"));
    let answer = next.run(Request::from_parts(head, Body::from(body.clone()))).await;
    match (answer.status(), is_json) {
        (StatusCode::UNSUPPORTED_MEDIA_TYPE, true) => match message::read(&body) {
            Ok(_) => answer,
            Err(unread) => (StatusCode::BAD_REQUEST, Json(unread.answer())).into_response(),
        },
        (StatusCode::BAD_REQUEST | StatusCode::NOT_ACCEPTABLE, _) => with_reason(answer).await,
        _ => answer,
    }
}

/// Turns the sentence of a refusal by the library into a JSON-RPC error. An answer in JSON stays as it is.
async fn with_reason(answer: Response) -> Response {
    let (head, body) = answer.into_parts();
    let Ok(body) = to_bytes(body, usize::MAX).await else { return head.status.into_response() };
    match std::str::from_utf8(&body).map(|it| it.split_once(": ")) {
        Ok(Some(("Bad Request" | "Not Acceptable", why))) => {
            let versions: Vec<_> =
                ProtocolVersion::KNOWN_VERSIONS.iter().map(ProtocolVersion::as_str).collect();
            let known = match why.starts_with("Unsupported MCP-Protocol-Version") {
                true => format!("; supported are {}", versions.join(", ")),
                false => String::new(),
            };
            (head.status, Json(message::refusal(&format!("{why}{known}")))).into_response()
        }
        _ => Response::from_parts(head, Body::from(body)),
    }
}
