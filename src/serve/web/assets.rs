//! The style sheet, the script and the icon, which are embedded in the program, and the policy for what a page may load.

use std::sync::LazyLock;

use axum::extract::Extension;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};

use crate::page::style;
use crate::serve::http::response_layer::Policy;

/// Allows only scripts, styles, images and requests of these pages, and no inline scripts. The referrer is sent only to
/// these pages. It must be sent there: without a referrer, browsers send forms with the origin `null`.
const PAGE: Policy = Policy {
    content: "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
              form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    referrer: "same-origin",
};

pub(super) fn policy() -> Extension<Policy> {
    Extension(PAGE)
}

static STYLE: LazyLock<String> =
    LazyLock::new(|| [style::MARKDOWN, style::DRAWINGS, include_str!("assets/style.css")].concat());
/// The script without indentation, blank lines and comment lines, which are a fifth of its source.
static SCRIPT: LazyLock<String> = LazyLock::new(|| {
    let lines = include_str!("assets/app.js").lines().map(str::trim);
    lines.filter(|it| !it.is_empty() && !it.starts_with("//")).flat_map(|it| [it, "\n"]).collect()
});
/// The address contains the script's hash, because a tab with a new script must not use the shared worker of an old one.
pub(super) static SCRIPT_ADDRESS: LazyLock<String> =
    LazyLock::new(|| format!("/app.js?{}", &blake3::hash(SCRIPT.as_bytes()).to_hex()[..16]));
const ICON: &str = include_str!("assets/icon.svg");

fn of(kind: &'static str, text: &'static str) -> Response {
    (policy(), [(CONTENT_TYPE, kind)], text).into_response()
}

pub(super) async fn style() -> Response {
    of("text/css; charset=utf-8", &STYLE)
}

pub(super) async fn script() -> Response {
    of("text/javascript; charset=utf-8", &SCRIPT)
}

pub(super) async fn icon() -> Response {
    of("image/svg+xml", ICON)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_script_is_small_and_loads_nothing_from_elsewhere() {
        assert!(SCRIPT.len() <= 20_000, "{}", SCRIPT.len());
        for text in [STYLE.as_str(), SCRIPT.as_str()] {
            assert!(!text.contains("http://") && !text.contains("https://") && !text.contains("@import"));
        }
    }
}
