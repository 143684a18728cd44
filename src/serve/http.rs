//! HTTP on the machine's own address: the script API, a route for every verb, and live events.
//!
//! A handler translates: request in, engine, report out. What may ask at all is decided in one place (`guard`), what an
//! error looks like in one other (`problem`), who may keep a connection in a third (`connections`). One thread waits for
//! the network and never works; the engine's work goes to a few threads of the runtime's own.

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

/// All routes.
fn api() -> Router<App> {
    script_api::router().merge(events::router()).merge(routes::router())
}
