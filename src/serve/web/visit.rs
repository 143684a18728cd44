//! Reads a `Visit` from a request for a page.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;

use super::layout::Visit;
use super::session::Session;
use super::{Web, guard, sign_in};
use crate::serve::http::problem::Problem;

impl FromRequestParts<Web> for Visit {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, web: &Web) -> Result<Self, Problem> {
        // The guard has stored the session in the extensions.
        let session = parts.extensions.get::<Session>().cloned().ok_or_else(Problem::internal)?;
        let query = parts.uri.query().unwrap_or_default();
        let (mut notice, mut rest) = (None, Vec::new());
        for part in query.split('&').filter(|it| !it.is_empty()) {
            match part.strip_prefix("notice=") {
                Some(nth) => notice = nth.parse().ok().and_then(|it| web.sessions.noticed(&session, it)),
                None => rest.push(part),
            }
        }
        let path = parts.uri.path();
        let here = if rest.is_empty() { path.to_owned() } else { format!("{path}?{}", rest.join("&")) };
        let is_part = parts.headers.contains_key(guard::PART);
        Ok(Self { session, here: sign_in::own_path(Some(here)), is_part, notice })
    }
}
