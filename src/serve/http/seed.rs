//! The routes that plain curl-and-jq scripts know, in exactly their shapes.

mod plans;

use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::serve::http::app::App;

pub(super) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(plans::list))
}
