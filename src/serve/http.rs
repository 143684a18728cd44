//! HTTP on the machine's own address: the routes that seed scripts know, every verb's, and live events.
//!
//! A handler translates: request in, engine, report out. What may ask at all is decided in one place (`guard`), what an
//! error looks like in one other (`problem`), who may keep a connection in a third (`connections`). One thread waits for
//! the network and never works; the engine's work goes to a few threads of the runtime's own.

mod app;
mod connections;
mod etag;
mod events;
mod extract;
mod finish;
mod guard;
mod once;
mod patient;
mod problem;
pub mod routes;
mod seed;
mod server;
mod token;

use axum::Router;
use utoipa::OpenApi;
use utoipa::openapi::OpenApi as Document;
use utoipa_axum::router::OpenApiRouter;

pub use server::{Bound, Serving, Settings, bind};

use app::App;

/// What is said of all routes together.
#[derive(OpenApi)]
#[openapi(info(
    title = "planwatch",
    description = "Plans and steps in Markdown files, asked and changed over HTTP.",
    license(name = "MIT OR Apache-2.0", identifier = "MIT OR Apache-2.0")
))]
struct Api;

/// All routes, and the document that is made from them.
fn api() -> (Router<App>, Document) {
    let routes = OpenApiRouter::with_openapi(Api::openapi());
    let (known, document) = routes.merge(seed::router()).merge(events::router()).split_for_parts();
    (known.merge(routes::router(&document)), document)
}
