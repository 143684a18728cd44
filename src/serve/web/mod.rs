//! The pages for the browser. The server generates their HTML. They use the same operations as the other interfaces.
//!
//! Every page can be read and used without script. The script adds live updates, dragging of cards and keyboard
//! shortcuts. A handler reads a form, calls an operation, and returns a page. `guard` decides who may see a page.

mod actions;
mod aims;
mod assets;
mod board;
mod edit;
mod forms;
mod guard;
mod history;
mod image;
mod knowledge;
mod layout;
mod links;
mod listing;
mod memory;
mod overview;
mod pictures;
mod plan;
mod problems;
mod refusal;
mod search;
mod session;
mod sign_in;
mod stats;
mod step;
mod text;
mod undo;
mod visit;
mod ways;
mod words;

use std::path::Path;
use std::sync::Arc;

use axum::Router;
use axum::extract::FromRef;
use axum::middleware::from_fn_with_state;
use axum::routing::{any, get, post};

use crate::serve::http::{App, Pages, events};

pub use session::Sessions;

/// The state of the pages; clones share it.
#[derive(Clone)]
pub(in crate::serve::web) struct Web {
    pub(in crate::serve::web) app: App,
    pub(in crate::serve::web) sessions: Sessions,
    /// The name of the cookie. Browsers send cookies to every port of a host, so each plans directory has its own.
    pub(in crate::serve::web) cookie: Arc<str>,
    overview: Arc<overview::Kept>,
    layouts: Arc<pictures::Layouts>,
    names: Arc<search::Names>,
}

impl FromRef<Web> for App {
    fn from_ref(web: &Web) -> Self {
        web.app.clone()
    }
}

/// The pages of these plans; `root` is the absolute path of the plans directory.
pub fn pages(sessions: Sessions, root: &Path) -> Pages {
    let hash = blake3::hash(root.as_os_str().as_encoded_bytes()).to_hex();
    let cookie: Arc<str> = format!("planwatch-{}", &hash[..8]).into();
    Pages(Arc::new(move |app| {
        let (sessions, cookie) = (sessions.clone(), Arc::clone(&cookie));
        routes(Web {
            app: app.clone(),
            sessions,
            cookie,
            overview: Arc::default(),
            layouts: Arc::default(),
            names: Arc::default(),
        })
    }))
}

/// The path of the page of a plan or step. `of` is `plan` or `step`.
pub fn path(of: &str, id: &str) -> String {
    if of == "step" { links::step(id) } else { links::plan(id) }
}

fn routes(web: Web) -> Router {
    let guarded = Router::new()
        .route("/", get(overview::page))
        .route("/plan/{id}", get(plan::page))
        .route("/plan/{id}/edit", get(edit::page))
        .route("/plan/{id}/export", get(plan::exported))
        .route("/step/{id}", get(step::page))
        .route("/step/{id}/edit", get(edit::page))
        .route("/search", get(search::page))
        .route("/decisions", get(knowledge::decisions))
        .route("/insights", get(knowledge::insights))
        .route("/stats", get(stats::page))
        .route("/problems", get(problems::page))
        .route("/undo", get(undo::page))
        .route("/image/{*path}", get(image::image))
        .route("/events", get(events::events))
        .route("/do", post(actions::act))
        .route("/sign-out", post(sign_in::sign_out))
        .route_layer(from_fn_with_state(web.clone(), guard::guard));
    let open = Router::new()
        .route("/login", get(sign_in::by_code).post(sign_in::by_token))
        .route("/style.css", get(assets::style))
        .route("/app.js", get(assets::script))
        .route("/icon.svg", get(assets::icon))
        .route_layer(from_fn_with_state(web.clone(), guard::open));
    guarded.merge(open).route("/{*path}", any(guard::unknown)).with_state(web)
}
