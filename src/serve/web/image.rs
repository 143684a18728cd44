//! Serves the images in the plans directory, and no other files.

use std::path::Path as FilePath;

use axum::extract::{Extension, Path, State};
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};

use super::Web;
use crate::api::context::Context;
use crate::page::images::media_type;
use crate::serve::http::problem::Problem;
use crate::serve::http::response_layer::Policy;

/// Prevents an SVG that is opened as a page from running scripts and loading files.
const IMAGE: Policy = Policy {
    content: "default-src 'none'; style-src 'unsafe-inline'; sandbox; frame-ancestors 'none'",
    referrer: "no-referrer",
};

/// The media type follows from the bytes of the file, never from its name.
pub(super) async fn image(State(web): State<Web>, Path(path): Path<String>) -> Response {
    let read = move |context: &Context| -> Result<_, Problem> {
        let none = || Problem::of_status(StatusCode::NOT_FOUND);
        // The guard has already refused `..`. Names that begin with a dot belong to planwatch's own state.
        if path.split('/').any(|it| it.is_empty() || it.starts_with('.')) {
            return Err(none());
        }
        let bytes = context.plans.read(FilePath::new(&path)).map_err(|_| none())?.bytes;
        let kind = media_type(&bytes).ok_or_else(none)?;
        Ok((kind, bytes))
    };
    match web.app.ask(read).await {
        Ok((kind, bytes)) => (Extension(IMAGE), [(CONTENT_TYPE, kind)], bytes).into_response(),
        Err(problem) => problem.into_response(),
    }
}
