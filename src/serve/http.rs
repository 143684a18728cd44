//! The HTTP server: the script API, the routes of the verbs, and live events.
//!
//! A handler translates a request into a call of an operation, and the operation's report into an answer. `guard` decides
//! which requests are allowed, `problem` formats errors, and `connections` decides which connections stay open. One thread
//! does all network I/O. Operations never run in this thread, but in the runtime's blocking threads.

pub(super) mod connections;
pub(super) mod etag;
pub(super) mod events;
pub(super) mod extract;
pub(super) mod guard;
mod idempotency;
pub(super) mod problem;
pub(super) mod response_layer;
pub mod routes;
mod script_api;
mod server;
pub(super) mod state;
pub(super) mod token;

use axum::Router;

pub use server::{Bound, Pages, Serving, Settings, bind};
pub use state::App;

/// The routes below `/api`, and `/openapi.json`.
fn api() -> Router<App> {
    script_api::router().merge(events::router()).merge(routes::router())
}
