//! Authorization: decided on the head of a request, before its body is read.
//!
//! Any web page in the user's browser can make the browser send requests to this server. The request may name the page's own
//! host, if that name resolves to this server's address (DNS rebinding). It may come from a form or an image, which need no
//! preflight. It may contain a password that the browser has stored. So the host name and the origin are checked on every
//! route, and the token on every route except the pages, which have sessions instead. This includes `GET` routes:
//! `next-step` claims a step.

use std::borrow::Cow;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use axum::body::HttpBody;
use axum::extract::{Request, State};
use axum::http::header::{AUTHORIZATION, CONTENT_LENGTH, CONTENT_TYPE, HOST, ORIGIN, USER_AGENT};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Uri};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;

use crate::serve::http::connections::Connection;
use crate::serve::http::problem::Problem;
use crate::serve::http::routes::check_query;
use crate::serve::http::state::App;
use crate::serve::http::token::Token;

pub(in crate::serve) const BODY_LIMIT: u64 = 1 << 20;

pub(in crate::serve) const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

pub(super) async fn guard(State(app): State<App>, request: Request, next: Next) -> Response {
    match check(&app, &request) {
        Ok(()) => next.run(request).await,
        Err(problem) => problem.into_response(),
    }
}

/// The refusal of a request of an API client for a path that does not exist.
pub(in crate::serve) fn no_route(app: &App, request: &Request) -> Problem {
    check(app, request).err().unwrap_or_else(|| Problem::of_status(StatusCode::NOT_FOUND))
}

/// Whether a request for a path that does not exist belongs to a client of the API: it sends a token, or the path is in the
/// part of the addresses that the API uses.
pub(in crate::serve) fn is_of_api(request: &Request) -> bool {
    let first = request.uri().path().trim_start_matches('/').split('/').next().unwrap_or_default();
    request.headers().contains_key(AUTHORIZATION)
        || ["api", "mcp", ".well-known"].contains(&first)
        || is_discovery(request.uri())
}

/// Checks the host, the origin and the names in the path, for the pages. [`guard`] checks them for the other routes.
pub(in crate::serve) fn check_address(app: &App, request: &Request) -> Result<(), Problem> {
    let local = request.extensions().get::<Arc<Connection>>().map_or(app.address, |it| it.local);
    let host = host(request, local)?;
    origin(request.headers(), &host)?;
    path(request.uri())
}

fn check(app: &App, request: &Request) -> Result<(), Problem> {
    let local = request.extensions().get::<Arc<Connection>>().map_or(app.address, |it| it.local);
    let host = host(request, local)?;
    origin(request.headers(), &host)?;
    fetch_site(request.headers())?;
    if is_discovery(request.uri()) {
        return Err(Problem::of_status(StatusCode::NOT_FOUND));
    }
    token(app.token.as_ref(), request.headers())?;
    path(request.uri())?;
    check_query(request)?;
    body(request)
}

/// Returns the host of the request in lower case. Refuses a host that is not one of this machine's own names with the
/// server's port.
fn host(request: &Request, local: SocketAddr) -> Result<String, Problem> {
    let refused = || {
        let detail = "the requested host is not this daemon's";
        let hint = format!("ask for http://127.0.0.1:{}", local.port());
        Problem::new(StatusCode::FORBIDDEN, "host-refused", detail).hint(hint)
    };
    let mut hosts = request.headers().get_all(HOST).iter();
    let (Some(host), None) = (hosts.next(), hosts.next()) else { return Err(refused()) };
    let host = host.to_str().ok().filter(|it| is_own(it, local)).ok_or_else(refused)?;
    // An absolute URI in the request line takes precedence over `Host`, so its host must be the same.
    let is_same = request.uri().authority().is_none_or(|it| it.as_str().eq_ignore_ascii_case(host));
    if is_same { Ok(host.to_ascii_lowercase()) } else { Err(refused()) }
}

fn is_own(host: &str, local: SocketAddr) -> bool {
    let (name, port) = match host.rsplit_once(':') {
        Some((name, port)) if !port.ends_with(']') => (name, port),
        _ => (host, "80"),
    };
    if port != local.port().to_string() {
        return false;
    }
    let own = match local.ip().to_canonical() {
        IpAddr::V4(it) => it.to_string(),
        IpAddr::V6(it) => format!("[{it}]"),
    };
    ["localhost", "127.0.0.1", "[::1]", &own].iter().any(|it| it.eq_ignore_ascii_case(name))
}

/// Checks that `Origin`, if it is given, is `http://` followed by the host of the request.
fn origin(headers: &HeaderMap, host: &str) -> Result<(), Problem> {
    let own = format!("http://{host}");
    let is_own = |it: &HeaderValue| it.as_bytes().eq_ignore_ascii_case(own.as_bytes());
    let mut origins = headers.get_all(ORIGIN).iter();
    match (origins.next(), origins.next()) {
        (None, _) => Ok(()),
        (Some(origin), None) if is_own(origin) => Ok(()),
        _ => {
            let detail = "requests from other origins are refused";
            Err(Problem::new(StatusCode::FORBIDDEN, "origin-refused", detail))
        }
    }
}

/// Refuses a request if its `Sec-Fetch-Site` says that a page of another origin caused it. Only browsers send this header.
pub(in crate::serve) fn fetch_site(headers: &HeaderMap) -> Result<(), Problem> {
    let is_fine = |it: &HeaderValue| it == "none" || it == "same-origin";
    if headers.get_all(SEC_FETCH_SITE).iter().all(is_fine) {
        return Ok(());
    }
    let detail = "requests from other sites are refused, including links and images";
    Err(Problem::new(StatusCode::FORBIDDEN, "cross-site-refused", detail))
}

/// Whether a browser prefetches a page.
pub(in crate::serve) fn is_prefetch(headers: &HeaderMap) -> bool {
    let names = ["purpose", "sec-purpose", "x-purpose", "x-moz"];
    let says = |it: &HeaderValue| it.to_str().is_ok_and(|it| it.to_ascii_lowercase().contains("pre"));
    names.iter().any(|name| headers.get_all(*name).iter().any(says))
}

/// Whether a browser sends a stored password (`Authorization: Basic`) without `Sec-Fetch-Site`. Old browsers never
/// send `Sec-Fetch-Site`, and no browser sends it to another machine without TLS. Any web page may have caused such a
/// request.
pub(super) fn is_of_any_page(headers: &HeaderMap) -> bool {
    let begins = |name: HeaderName, with: &str| {
        headers
            .get(name)
            .and_then(|it| it.to_str().ok()?.get(..with.len()))
            .is_some_and(|it| it.eq_ignore_ascii_case(with))
    };
    !headers.contains_key(SEC_FETCH_SITE) && begins(AUTHORIZATION, "basic ") && begins(USER_AGENT, "mozilla/")
}

/// Whether a client looks for an OAuth server at this address, as MCP clients do before they send a token.
///
/// There is no OAuth server. From a 401, the client would conclude that the server's description exists but needs the
/// token, and would give up.
fn is_discovery(uri: &Uri) -> bool {
    let path = uri.path().strip_prefix("/mcp").unwrap_or(uri.path());
    // A client that finds no description requests these paths.
    if ["/register", "/authorize", "/token"].contains(&path) {
        return true;
    }
    let name = path.strip_prefix("/.well-known/").unwrap_or_default();
    name.starts_with("oauth-") || name.starts_with("openid-configuration")
}

/// Checks the token in the `Authorization` header, where it is sent alone or as a password. The token is not read from
/// the URL, because URLs are stored in histories and logs. It is not read from a cookie either, because a browser sends
/// cookies to every port of this machine.
fn token(expected: Option<&Token>, headers: &HeaderMap) -> Result<(), Problem> {
    let Some(expected) = expected else { return Ok(()) };
    let mut given = headers.get_all(AUTHORIZATION).iter();
    let (first, second) = (given.next(), given.next());
    let is_right = first.and_then(credential).is_some_and(|it| expected.is(&it)) && second.is_none();
    if is_right { Ok(()) } else { Err(Problem::no_token()) }
}

/// Returns the text after `Bearer`, or the password after `Basic`. Any user name is accepted.
fn credential(header: &HeaderValue) -> Option<Vec<u8>> {
    let at = header.as_bytes().iter().position(|it| *it == b' ')?;
    let (scheme, given) = header.as_bytes().split_at(at);
    let given = given.trim_ascii();
    match scheme.to_ascii_lowercase().as_slice() {
        b"bearer" => Some(given.to_vec()),
        b"basic" => {
            let both = BASE64.decode(given).ok()?;
            let colon = both.iter().position(|it| *it == b':')?;
            Some(both[colon + 1..].to_vec())
        }
        _ => None,
    }
}

/// Checks each segment of the path: percent-encoded UTF-8, not empty unless it is the last, not `.` or `..`, and
/// without slashes, backslashes and control characters.
fn path(uri: &Uri) -> Result<(), Problem> {
    let invalid = |detail: String| Err(Problem::new(StatusCode::BAD_REQUEST, "name-invalid", detail));
    let refused = |why: &str| invalid(format!("a name in the path {why}"));
    let Some(inside) = uri.path().strip_prefix('/') else {
        return invalid("the path does not begin with /".to_owned());
    };
    let n_segments = inside.split('/').count();
    for (at, segment) in inside.split('/').enumerate() {
        let Some(name) = decoded(segment) else { return refused("is not percent-encoded UTF-8") };
        match &*name {
            "" if at + 1 < n_segments => return refused("is empty"),
            "." | ".." => return refused("is `.` or `..`"),
            it if it.contains(['/', '\\']) => return refused("contains a slash or a backslash"),
            it if it.chars().any(char::is_control) => return refused("contains a control character"),
            _ => {}
        }
    }
    Ok(())
}

/// Decodes percent-encoding; `None` if it is invalid or the bytes are not UTF-8.
pub(in crate::serve) fn decoded(text: &str) -> Option<Cow<'_, str>> {
    if !text.contains('%') {
        return Some(Cow::Borrowed(text));
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        if *first != b'%' {
            bytes.push(*first);
            rest = tail;
            continue;
        }
        let digits = std::str::from_utf8(tail.get(..2)?).ok()?;
        if !digits.bytes().all(|it| it.is_ascii_hexdigit()) {
            return None;
        }
        bytes.push(u8::from_str_radix(digits, 16).ok()?);
        rest = &tail[2..];
    }
    String::from_utf8(bytes).ok().map(Cow::Owned)
}

/// Checks that a body has the media type of JSON and that its declared length is within the limit. Forms and images cannot
/// send that media type. An empty body passes; the routes that need a body refuse it later.
fn body(request: &Request) -> Result<(), Problem> {
    let has_body = !request.body().is_end_stream();
    let media_type = request.headers().get(CONTENT_TYPE).and_then(|it| it.to_str().ok()).unwrap_or_default();
    let essence = media_type.split(';').next().unwrap_or_default().trim();
    if has_body && !essence.eq_ignore_ascii_case("application/json") {
        return Err(Problem::of_status(StatusCode::UNSUPPORTED_MEDIA_TYPE));
    }
    let length = request.headers().get(CONTENT_LENGTH).and_then(|it| it.to_str().ok()?.parse::<u64>().ok());
    if length.is_some_and(|it| it > BODY_LIMIT) {
        return Err(Problem::of_status(StatusCode::PAYLOAD_TOO_LARGE));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::address::encoded;

    #[test]
    fn a_host_is_own_by_name_and_port() {
        let local: SocketAddr = ([127, 0, 0, 1], 4001).into();
        for host in ["localhost:4001", "LocalHost:4001", "127.0.0.1:4001", "[::1]:4001"] {
            assert!(is_own(host, local), "{host}");
        }
        let others = [
            "",
            "localhost",
            "localhost:80",
            "localhost.:4001",
            "127.0.0.1:40010",
            "0.0.0.0:4001",
            "evil.example:4001",
            "localhost:4001.evil.example",
            "127.0.0.1.nip.io:4001",
            "[::1]",
            "::1:4001",
            "user@localhost:4001",
            "localhost:04001",
            "127.1:4001",
            "[::ffff:127.0.0.1]:4001",
        ];
        for host in others {
            assert!(!is_own(host, local), "{host}");
        }
        assert!(is_own("localhost", ([127, 0, 0, 1], 80).into()));
        assert!(is_own("192.168.7.7:4001", ([192, 168, 7, 7], 4001).into()));
        assert!(is_own("[fe80::7]:4001", "[fe80::7]:4001".parse().unwrap()));
    }

    #[test]
    fn only_descriptions_of_oauth_servers_are_discovery() {
        for (path, expected) in [
            ("/.well-known/oauth-protected-resource", true),
            ("/.well-known/oauth-protected-resource/mcp", true),
            ("/.well-known/oauth-authorization-server?x=1", true),
            ("/.well-known/openid-configuration", true),
            ("/mcp/.well-known/oauth-authorization-server", true),
            ("/register", true),
            ("/authorize?client_id=x", true),
            ("/token", true),
            ("/api/token", false),
            ("/.well-known/", false),
            ("/.well-known/security.txt", false),
            ("/api/plans/.well-known/oauth-x", false),
            ("/mcp", false),
            ("/", false),
        ] {
            assert_eq!(is_discovery(&path.parse().unwrap()), expected, "{path}");
        }
    }

    #[test]
    fn paths_hold_names() {
        for fine in [
            "/",
            "/api/plans",
            "/api/plans/",
            "/api/plans/caf%C3%A9",
            "/api/steps/a:2.5",
            "/a..b/...",
            "/a%20b",
        ] {
            assert!(path(&fine.parse().unwrap()).is_ok(), "{fine}");
        }
        let refused = [
            "/api/plans/..",
            "/api/plans/%2e%2e",
            "/api/plans/.%2E/x",
            "/api/./plans",
            "/api//plans",
            "//evil.example/x",
            "/api/plans/a%2fb",
            "/api/plans/a%2Fb",
            "/api/plans/a%5Cb",
            "/api/plans/a\\b",
            "/api/plans/%00",
            "/api/plans/a%0a",
            "/api/plans/%7f",
            "/api/plans/%C2%85",
            "/api/plans/%ff",
            "/api/plans/%",
            "/api/plans/%2",
            "/api/plans/%zz",
            "/a/%+1",
        ];
        for bad in refused {
            let Ok(uri) = bad.parse() else { continue };
            assert!(path(&uri).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_name_in_a_path_is_read_as_it_was() {
        for name in ["auth", "auth:2.5", "Prüfung 1", "50%", "a+b?c#d", "名"] {
            assert_eq!(decoded(&encoded(name)).as_deref(), Some(name));
            assert!(path(&format!("/api/plans/{}", encoded(name)).parse().unwrap()).is_ok(), "{name}");
        }
        assert_eq!(encoded("é:2.5"), "%C3%A9:2.5");
    }

    #[test]
    fn a_token_is_read_in_any_spelling_of_its_scheme() {
        let of = |text: &str| credential(&HeaderValue::from_str(text).unwrap());
        assert_eq!(of("Bearer abc"), Some(b"abc".to_vec()));
        assert_eq!(of("bearer  abc "), Some(b"abc".to_vec()));
        assert_eq!(of("Bearer"), None);
        assert_eq!(of("Basic YW5uOmFiYw=="), Some(b"abc".to_vec()));
        assert_eq!(of("basic OmE6Yg=="), Some(b"a:b".to_vec()));
        for none in ["Basic abc", "Basic YWJj", "Basic ", "Basic !", "Digest abc", "abc", ""] {
            assert_eq!(of(none), None, "{none}");
        }
    }
}
