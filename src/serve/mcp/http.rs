//! The server over HTTP: each request by itself, without sessions, which clients keep past a restart.

use std::sync::Arc;

use axum::Router;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};

use crate::serve::contexts::Contexts;
use crate::serve::feed::Feed;
use crate::serve::mcp::{Options, Planwatch};

/// The service that answers at `/mcp`.
///
/// It does not look at the names that requests ask for and come from: whoever nests it has done that, with a guard that
/// knows the address.
pub fn service(contexts: Contexts, feed: Feed) -> Router {
    let server = Planwatch::new(contexts, Options::default()).with_feed(feed);
    let config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(false)
        .with_json_response(true)
        .disable_allowed_hosts()
        .disable_allowed_origins();
    let sessions = Arc::new(NeverSessionManager::default());
    let service = StreamableHttpService::new(move || Ok(server.clone()), sessions, config);
    Router::new().fallback_service(service)
}
