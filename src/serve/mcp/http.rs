//! MCP over HTTP: stateless requests, so that clients can continue after a restart of the server.

use std::sync::Arc;

use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::http::header::CONTENT_TYPE;
use axum::http::{Method, StatusCode};
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use axum::{Json, Router};
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
/// read.
async fn refuse(request: Request, next: Next) -> Response {
    if request.method() != Method::POST {
        return next.run(request).await;
    }
    let (head, body) = request.into_parts();
    // An outer layer has already limited the size of the body.
    let Ok(body) = to_bytes(body, usize::MAX).await else {
        return StatusCode::PAYLOAD_TOO_LARGE.into_response();
    };
    let is_json =
        head.headers.get(CONTENT_TYPE).is_some_and(|it| it.as_bytes().starts_with(b"application/json"));
    let answer = next.run(Request::from_parts(head, Body::from(body.clone()))).await;
    if !is_json || answer.status() != StatusCode::UNSUPPORTED_MEDIA_TYPE {
        return answer;
    }
    match message::read(&body) {
        Ok(_) => answer,
        Err(unread) => (StatusCode::BAD_REQUEST, Json(unread.answer())).into_response(),
    }
}
