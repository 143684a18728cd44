//! Requests that must be refused, one per row. None of them may change a file or claim a step.

use std::io::Write;

use serde_json::json;

use crate::support::{Place, tree};

use super::TOKEN;
use super::client::{Answer, Server, read_answer};

/// A request and its refusal. `TOKEN` and `PORT` are replaced by the daemon's, `|` by a line end.
struct Row {
    name: &'static str,
    line: &'static str,
    headers: &'static str,
    body: &'static str,
    status: u16,
    code: &'static str,
}

const fn row(
    name: &'static str,
    line: &'static str,
    headers: &'static str,
    body: &'static str,
    (status, code): (u16, &'static str),
) -> Row {
    Row { name, line, headers, body, status, code }
}

impl Row {
    /// The request sent to the MCP endpoint, for rows whose headers alone are the reason for the refusal.
    fn over_mcp(&self) -> Option<Self> {
        let is_about_headers = [HOST, ORIGIN, SITE, NO_TOKEN].contains(&(self.status, self.code));
        let is_about_line =
            self.line.contains("://") || self.line.contains('?') || self.line.starts_with("HEAD");
        (is_about_headers && !is_about_line).then_some(Self { line: "POST /mcp", body: INITIALIZE, ..*self })
    }
}

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"page","version":"1"}}}"#;
const NEXT: &str = "GET /api/plans/fence-repair/next-step";
const LIST: &str = "GET /api/plans";
const PATCH: &str = "PATCH /api/steps/fence-repair:4";
const NEW: &str = "POST /api/plans";
const NEXT_BY_POST: &str = "POST /api/plans/fence-repair/claim";
const REMOVE_BY: &str = "DELETE /api/steps/fence-repair:4?by=%20";
const OWN: &str = "Host: 127.0.0.1:PORT|Authorization: Bearer TOKEN";
const OWN_JSON: &str = "Host: 127.0.0.1:PORT|Authorization: Bearer TOKEN|Content-Type: application/json";
const DONE: &str = r#"{"status":"completed"}"#;
const PLAN: &str = r##"{"title":"Evil","body":"# Evil"}"##;

const CONFIRMED_PLAN: &str = r##"{"title":"Evil","body":"---\nconfirm_phases: [Ship]\nconfirmations:\n  - {phase: Ship, by: ann}\n---\n# Evil\n"}"##;

const HOST: (u16, &str) = (403, "host-refused");
const ORIGIN: (u16, &str) = (403, "origin-refused");
const SITE: (u16, &str) = (403, "cross-site-refused");
const NO_TOKEN: (u16, &str) = (401, "token-needed");
const NAME: (u16, &str) = (400, "name-invalid");
const PERSON: (u16, &str) = (403, "confirmation-by-person");
const MEDIA: (u16, &str) = (415, "media-type");

/// Foreign host names, and requests from other pages.
const FOREIGN: &[Row] = &[
    row("another name", NEXT, "Host: evil.example:PORT|Authorization: Bearer TOKEN", "", HOST),
    row("a name without a port", NEXT, "Host: evil.example|Authorization: Bearer TOKEN", "", HOST),
    row(
        "another name, writing",
        PATCH,
        "Host: evil.example:PORT|Authorization: Bearer TOKEN|Content-Type: application/json",
        DONE,
        HOST,
    ),
    row("another port", LIST, "Host: 127.0.0.1:1|Authorization: Bearer TOKEN", "", HOST),
    row("no port", LIST, "Host: localhost|Authorization: Bearer TOKEN", "", HOST),
    row("the unspecified address", LIST, "Host: 0.0.0.0:PORT|Authorization: Bearer TOKEN", "", HOST),
    row(
        "a name that starts with localhost",
        LIST,
        "Host: localhost.evil.example:PORT|Authorization: Bearer TOKEN",
        "",
        HOST,
    ),
    row(
        "a name that ends with localhost",
        LIST,
        "Host: evil-localhost:PORT|Authorization: Bearer TOKEN",
        "",
        HOST,
    ),
    row("a name with a trailing dot", LIST, "Host: localhost.:PORT|Authorization: Bearer TOKEN", "", HOST),
    row("a name with a user", LIST, "Host: evil@localhost:PORT|Authorization: Bearer TOKEN", "", HOST),
    row("a wildcard of addresses", LIST, "Host: 127.0.0.1.nip.io:PORT|Authorization: Bearer TOKEN", "", HOST),
    row("no host", LIST, "Authorization: Bearer TOKEN", "", HOST),
    row("two hosts", LIST, "Host: 127.0.0.1:PORT|Host: evil.example|Authorization: Bearer TOKEN", "", HOST),
    row("an empty host", LIST, "Host: |Authorization: Bearer TOKEN", "", HOST),
    row("another name in the first line", "GET http://evil.example/api/plans", OWN, "", HOST),
    row(
        "another origin",
        LIST,
        "Host: 127.0.0.1:PORT|Authorization: Bearer TOKEN|Origin: http://evil.example",
        "",
        ORIGIN,
    ),
    row(
        "another origin, claiming",
        NEXT,
        "Host: 127.0.0.1:PORT|Authorization: Bearer TOKEN|Origin: http://evil.example",
        "",
        ORIGIN,
    ),
    row(
        "an opaque origin",
        PATCH,
        "Host: 127.0.0.1:PORT|Authorization: Bearer TOKEN|Origin: null|Content-Type: application/json",
        DONE,
        ORIGIN,
    ),
    row("an empty origin", LIST, "Host: 127.0.0.1:PORT|Authorization: Bearer TOKEN|Origin: ", "", ORIGIN),
    row(
        "this machine on another port",
        PATCH,
        "Host: 127.0.0.1:PORT|Authorization: Bearer TOKEN|Origin: http://127.0.0.1:3000|Content-Type: application/json",
        DONE,
        ORIGIN,
    ),
    row(
        "this machine by https",
        LIST,
        "Host: 127.0.0.1:PORT|Authorization: Bearer TOKEN|Origin: https://127.0.0.1:PORT",
        "",
        ORIGIN,
    ),
    row(
        "this machine by another name",
        LIST,
        "Host: 127.0.0.1:PORT|Authorization: Bearer TOKEN|Origin: http://localhost:PORT",
        "",
        ORIGIN,
    ),
    row(
        "two origins",
        LIST,
        "Host: 127.0.0.1:PORT|Authorization: Bearer TOKEN|Origin: http://127.0.0.1:PORT|Origin: http://evil.example",
        "",
        ORIGIN,
    ),
    row(
        "an image on another page",
        NEXT,
        "Host: 127.0.0.1:PORT|Authorization: Bearer TOKEN|Sec-Fetch-Site: cross-site|Sec-Fetch-Mode: no-cors",
        "",
        SITE,
    ),
    row(
        "a page of the same site",
        NEXT,
        "Host: 127.0.0.1:PORT|Authorization: Bearer TOKEN|Sec-Fetch-Site: same-site",
        "",
        SITE,
    ),
    row(
        "a link on another page",
        LIST,
        "Host: 127.0.0.1:PORT|Authorization: Bearer TOKEN|Sec-Fetch-Site: cross-site|Sec-Fetch-Mode: navigate",
        "",
        SITE,
    ),
    row(
        "a value that no browser sends",
        LIST,
        "Host: 127.0.0.1:PORT|Authorization: Bearer TOKEN|Sec-Fetch-Site: none, cross-site",
        "",
        SITE,
    ),
    row(
        "events for another page",
        "GET /api/events",
        "Host: 127.0.0.1:PORT|Authorization: Bearer TOKEN|Sec-Fetch-Site: cross-site",
        "",
        SITE,
    ),
    row(
        "a preflight",
        "OPTIONS /api/steps/fence-repair:4",
        "Host: 127.0.0.1:PORT|Origin: http://evil.example|Access-Control-Request-Method: PATCH",
        "",
        ORIGIN,
    ),
    row(
        "a prefetch",
        NEXT,
        "Host: 127.0.0.1:PORT|Authorization: Bearer TOKEN|Purpose: prefetch",
        "",
        (403, "prefetch-refused"),
    ),
    row(
        "a prerender",
        NEXT,
        "Host: 127.0.0.1:PORT|Authorization: Bearer TOKEN|Sec-Purpose: prefetch;prerender",
        "",
        (403, "prefetch-refused"),
    ),
    row(
        "an old prefetch",
        NEXT,
        "Host: 127.0.0.1:PORT|Authorization: Bearer TOKEN|X-Moz: prefetch",
        "",
        (403, "prefetch-refused"),
    ),
];

/// Requests without the right token.
const STRANGERS: &[Row] = &[
    row("no token", LIST, "Host: 127.0.0.1:PORT", "", NO_TOKEN),
    row("no token, claiming", NEXT, "Host: 127.0.0.1:PORT", "", NO_TOKEN),
    row("no token, writing", PATCH, "Host: 127.0.0.1:PORT|Content-Type: application/json", DONE, NO_TOKEN),
    row("no token, a new plan", NEW, "Host: 127.0.0.1:PORT|Content-Type: application/json", PLAN, NO_TOKEN),
    row("no token, events", "GET /api/events", "Host: 127.0.0.1:PORT", "", NO_TOKEN),
    row("no token, no route", "GET /api/nothing", "Host: 127.0.0.1:PORT", "", NO_TOKEN),
    row("an empty token", LIST, "Host: 127.0.0.1:PORT|Authorization: Bearer ", "", NO_TOKEN),
    row("another token", LIST, "Host: 127.0.0.1:PORT|Authorization: Bearer 0123456789abcdef", "", NO_TOKEN),
    row("a token and more", LIST, "Host: 127.0.0.1:PORT|Authorization: Bearer TOKEN0", "", NO_TOKEN),
    row("another scheme", LIST, "Host: 127.0.0.1:PORT|Authorization: Basic TOKEN", "", NO_TOKEN),
    row("no scheme", LIST, "Host: 127.0.0.1:PORT|Authorization: TOKEN", "", NO_TOKEN),
    row(
        "two tokens",
        LIST,
        "Host: 127.0.0.1:PORT|Authorization: Bearer TOKEN|Authorization: Bearer x",
        "",
        NO_TOKEN,
    ),
    row("the token in the address", "GET /api/plans?token=TOKEN", "Host: 127.0.0.1:PORT", "", NO_TOKEN),
    row("a wrong one in the address", "GET /api/plans?token=0123", "Host: 127.0.0.1:PORT", "", NO_TOKEN),
    row("an empty one in the address", "GET /api/plans?token=", "Host: 127.0.0.1:PORT", "", NO_TOKEN),
    row(
        "one in the address, writing",
        "PATCH /api/steps/fence-repair:4?token=TOKEN",
        "Host: 127.0.0.1:PORT|Content-Type: application/json",
        DONE,
        NO_TOKEN,
    ),
    row("a cookie of another daemon", LIST, "Host: 127.0.0.1:PORT|Cookie: planwatch-1=TOKEN", "", NO_TOKEN),
    row("a cookie of this daemon", LIST, "Host: 127.0.0.1:PORT|Cookie: planwatch-PORT=TOKEN", "", NO_TOKEN),
    row("a cookie without a token", LIST, "Host: 127.0.0.1:PORT|Cookie: planwatch-PORT=", "", NO_TOKEN),
];

/// Paths and other texts that are not valid names.
const NAMES: &[Row] = &[
    row("the directory above", "GET /api/plans/..", OWN, "", NAME),
    row("the directory above, encoded", "GET /api/plans/%2e%2e", OWN, "", NAME),
    row("half encoded", "GET /api/plans/.%2E/steps", OWN, "", NAME),
    row("a slash", "GET /api/plans/..%2f..%2fetc", OWN, "", NAME),
    row("a slash in upper case", "GET /api/plans/a%2Fplan.md", OWN, "", NAME),
    row("a backslash", "GET /api/plans/..%5c..%5cetc", OWN, "", NAME),
    row("nothing between slashes", "GET /api/plans//next-step", OWN, "", NAME),
    row("an address elsewhere", "GET //evil.example/x", OWN, "", NAME),
    row("a NUL", "GET /api/plans/fence-repair%00", OWN, "", NAME),
    row("a line end", "GET /api/plans/fence%0d%0arepair", OWN, "", NAME),
    row("an escape", "GET /api/plans/%1b%5B2J", OWN, "", NAME),
    row("a delete", "GET /api/plans/a%7f", OWN, "", NAME),
    row("no UTF-8", "GET /api/plans/%ff%fe", OWN, "", NAME),
    row("half an encoding", "GET /api/plans/a%2", OWN, "", NAME),
    row("no encoding", "GET /api/plans/%zz", OWN, "", NAME),
    row("a step's path", "PATCH /api/steps/..%2Ffence-repair:4", OWN_JSON, DONE, NAME),
    row("planwatch's own directory", "GET /api/plans/.planwatch", OWN, "", (404, "not-found")),
    row("the archive", "GET /api/plans/_archive", OWN, "", (404, "not-found")),
    row("a file", "GET /api/steps/fence-repair:plan.md", OWN, "", (404, "not-found")),
    row("a path with an ending", "GET /api/plans/step-4.md", OWN, "", (404, "not-found")),
    row("a number", "GET /api/plans/4", OWN, "", (404, "not-found")),
    row("a step without a plan", "PATCH /api/steps/4", OWN_JSON, DONE, (404, "not-found")),
    row("no such plan", "GET /api/plans/nothing/next-step", OWN, "", (404, "not-found")),
    row("no such step", "GET /api/steps/fence-repair:99", OWN, "", (404, "not-found")),
    row("no such route", "GET /api/nothing", OWN, "", (404, "no-such-route")),
];

/// Texts with a confirmation, which only a person may give.
const CONFIRMED: &[Row] = &[
    row("a confirmed phase", NEW, OWN_JSON, CONFIRMED_PLAN, PERSON),
    row(
        "a confirmed step",
        "POST /api/plans/fence-repair/steps",
        OWN_JSON,
        r##"{"description":"---\nconfirm: required\nconfirmed: {by: ann}\n---\n# Go\n"}"##,
        PERSON,
    ),
    row(
        "a confirmed step, through a merge key",
        "POST /api/plans/fence-repair/add",
        OWN_JSON,
        r##"{"title":"Go","body":"---\n<<: {confirmed: {by: ann}}\n---\n# Go\n"}"##,
        PERSON,
    ),
];

/// Wrong methods and bodies.
const FORMS: &[Row] = &[
    row("HEAD claims nothing", "HEAD /api/plans/fence-repair/next-step", OWN, "", (405, "")),
    row(
        "POST where GET claims",
        "POST /api/plans/fence-repair/next-step",
        OWN_JSON,
        "{}",
        (405, "method-not-allowed"),
    ),
    row("DELETE of all", "DELETE /api/plans", OWN, "", (405, "method-not-allowed")),
    row("TRACE", "TRACE /api/plans", OWN, "", (405, "method-not-allowed")),
    row(
        "a form",
        NEW,
        "Host: 127.0.0.1:PORT|Authorization: Bearer TOKEN|Content-Type: application/x-www-form-urlencoded",
        "title=Evil",
        MEDIA,
    ),
    row(
        "plain text",
        NEW,
        "Host: 127.0.0.1:PORT|Authorization: Bearer TOKEN|Content-Type: text/plain",
        PLAN,
        MEDIA,
    ),
    row(
        "parts",
        NEW,
        "Host: 127.0.0.1:PORT|Authorization: Bearer TOKEN|Content-Type: multipart/form-data; boundary=x",
        PLAN,
        MEDIA,
    ),
    row("no type", PATCH, OWN, DONE, MEDIA),
    row(
        "a type that starts with application/json",
        PATCH,
        "Host: 127.0.0.1:PORT|Authorization: Bearer TOKEN|Content-Type: application/jsonx",
        DONE,
        MEDIA,
    ),
    row("no JSON", PATCH, OWN_JSON, "{status", (400, "json-invalid")),
    row("no body", PATCH, OWN_JSON, "", (400, "json-invalid")),
    row("another type of value", PATCH, OWN_JSON, r#"{"status":7}"#, (422, "body-invalid")),
    row("an unknown field", PATCH, OWN_JSON, r#"{"state":"completed"}"#, (422, "body-invalid")),
    row("a blank name", PATCH, OWN_JSON, r#"{"status":"completed","by":""}"#, (422, "body-invalid")),
    row("a name of white space", NEXT_BY_POST, OWN_JSON, r#"{"by":" \n"}"#, (422, "body-invalid")),
    row("a blank name in the query", REMOVE_BY, OWN, "", (400, "parameter-invalid")),
    row("a list", PATCH, OWN_JSON, "[]", (422, "body-invalid")),
    row("a missing field", NEW, OWN_JSON, "{}", (422, "body-invalid")),
    row("an unknown parameter", "GET /api/plans?titel=x", OWN, "", (400, "parameter-invalid")),
    row("an unknown status", PATCH, OWN_JSON, r#"{"status":"complted"}"#, (422, "usage")),
    row(
        "an etag without quotes",
        PATCH,
        "Host: 127.0.0.1:PORT|Authorization: Bearer TOKEN|Content-Type: application/json|If-Match: abc",
        DONE,
        (400, "etag-invalid"),
    ),
    row(
        "another etag",
        PATCH,
        "Host: 127.0.0.1:PORT|Authorization: Bearer TOKEN|Content-Type: application/json|If-Match: \"abc\"",
        DONE,
        (412, "file-changed"),
    ),
    row(
        "a weak etag",
        PATCH,
        "Host: 127.0.0.1:PORT|Authorization: Bearer TOKEN|Content-Type: application/json|If-Match: W/\"abc\"",
        DONE,
        (412, "file-changed"),
    ),
    row(
        "an empty key",
        NEW,
        "Host: 127.0.0.1:PORT|Authorization: Bearer TOKEN|Content-Type: application/json|Idempotency-Key: ",
        PLAN,
        (400, "idempotency-key-invalid"),
    ),
    row(
        "a body declared as huge",
        PATCH,
        "Host: 127.0.0.1:PORT|Authorization: Bearer TOKEN|Content-Type: application/json|Content-Length: 99999999",
        "",
        (413, "body-too-large"),
    ),
];

#[test]
fn every_request_in_the_table_is_refused_without_effect() {
    let place = Place::with_examples();
    let server = Server::start(&place);
    let before = tree(&place.file("plans"));
    let rows: Vec<_> = [FOREIGN, STRANGERS, NAMES, FORMS, CONFIRMED].into_iter().flatten().collect();
    assert!(rows.len() >= 60, "{}", rows.len());
    let over_mcp: Vec<_> = rows.iter().filter_map(|it| it.over_mcp()).collect();
    assert!(over_mcp.len() >= 20, "{}", over_mcp.len());
    // At most three failures are collected, because an event stream that is not refused never ends.
    let all = rows.iter().copied().chain(&over_mcp);
    let wrong: Vec<_> = all.filter_map(|it| wrong(&place, &server, it)).take(3).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    // A long body without a declared size.
    let long = format!("{{\"status\":\"{}\"}}", "x".repeat(2 << 20));
    let head = filled(&place, &server, PATCH, &format!("{OWN_JSON}|Transfer-Encoding: chunked"));
    let mut stream = server.connect();
    stream.write_all(format!("{head}\r\n{:x}\r\n{long}\r\n0\r\n\r\n", long.len()).as_bytes()).ok();
    assert_eq!(read_answer(&mut stream).problem(), (413, "body-too-large".to_owned()));
    // A head that is too long.
    let head = filled(&place, &server, LIST, &format!("{OWN}|X: {}", "x".repeat(20 << 10)));
    assert_eq!(server.raw(format!("{head}\r\n").as_bytes()).status, 431);
    assert_eq!(tree(&place.file("plans")), before);
    let leases = std::fs::read_dir(place.file("plans/.planwatch/leases")).map_or(0, Iterator::count);
    assert_eq!(leases, 0, "a step was claimed");
    // A permitted request of the same kind is answered.
    let fine = filled(
        &place,
        &server,
        NEXT,
        &format!("{OWN}|Origin: http://127.0.0.1:PORT|Sec-Fetch-Site: same-origin"),
    );
    assert_eq!(server.raw(format!("{fine}\r\n").as_bytes()).status, 200);
    println!("R16: {} requests over HTTP and {} over MCP refused, 0 let through", rows.len(), over_mcp.len());
}

fn filled(place: &Place, server: &Server, line: &str, headers: &str) -> String {
    let lines = format!("{line} HTTP/1.1|{headers}|Connection: close|");
    let lines = lines.replace('|', "\r\n").replace("TOKEN", place.text(TOKEN).trim());
    lines.replace("PORT", &server.address.port().to_string())
}

fn wrong(place: &Place, server: &Server, row: &Row) -> Option<String> {
    let Row { name, line, headers, body, status, code } = row;
    let says_length = headers.contains("Content-Length");
    let length = if says_length { String::new() } else { format!("|Content-Length: {}", body.len()) };
    let length = if body.is_empty() && !line.starts_with('P') { String::new() } else { length };
    let head = filled(place, server, line, &format!("{headers}{length}"));
    let answer = server.raw(format!("{head}\r\n{body}").as_bytes());
    let found = if line.starts_with("HEAD") { (answer.status, String::new()) } else { problem(&answer) };
    let is_plain = answer.headers.iter().any(|(key, _)| key.starts_with("access-control"));
    let is_safe = answer.header("cache-control") == Some("no-store")
        && answer.header("x-content-type-options") == Some("nosniff")
        && answer.header("content-security-policy").is_some_and(|it| it.starts_with("default-src 'none'"));
    let is_right = found == (*status, (*code).to_owned()) && is_safe && !is_plain;
    let has_allow = *status != 405 || answer.header("allow").is_some();
    (!is_right || !has_allow).then(|| format!("{name}: {answer:?}"))
}

fn problem(answer: &Answer) -> (u16, String) {
    let problem: serde_json::Value = serde_json::from_str(&answer.body).unwrap_or_default();
    let is_problem = answer.header("content-type") == Some("application/problem+json");
    (answer.status, problem["code"].as_str().filter(|_| is_problem).unwrap_or("no problem").to_owned())
}

#[test]
fn a_body_that_is_not_a_message_gets_a_json_rpc_error() {
    let place = Place::with_examples();
    let server = Server::open(&place);
    let accept = "Accept: application/json, text/event-stream\r\n";
    let (open, close) = ("[".repeat(200), "]".repeat(200));
    let deep =
        format!(r#"{{"jsonrpc":"2.0","id":"deep","method":"tools/list","params":{{"a":{open}{close}}}}}"#);
    let headers = format!("Content-Type: application/json; charset=utf-8\r\n{accept}");
    for (body, code, id) in [
        ("hello", -32700, json!(null)),
        ("[]", -32600, json!(null)),
        (r#"{"jsonrpc":"2.0","id":3}"#, -32600, json!(3)),
        (&deep, -32600, json!("deep")),
    ] {
        let answer = server.ask("POST", "/mcp", &headers, body);
        assert_eq!(
            (answer.status, answer.header("content-type")),
            (400, Some("application/json")),
            "{answer:?}"
        );
        let error = answer.json();
        let expected = json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": error["error"]["message"]}});
        assert_eq!(error, expected);
        assert!(error["error"]["message"].is_string(), "{error}");
    }
    let list = r#"{"jsonrpc":"2.0","id":3,"method":"tools/list"}"#;
    for (headers, status, said) in [
        ("Accept: */*\r\n", 200, "briefing"),
        (
            "Accept: application/json\r\n",
            406,
            "Client must accept both application/json and text/event-stream",
        ),
        (
            "Accept: */*\r\nMCP-Protocol-Version: 1999-01-01\r\n",
            400,
            "Unsupported MCP-Protocol-Version: 1999-01-01; supported are 2024-11-05, ",
        ),
    ] {
        let headers = format!("Content-Type: application/json\r\n{headers}");
        let answer = server.ask("POST", "/mcp", &headers, list);
        assert!(answer.status == status && answer.body.contains(said), "{answer:?}");
    }
    // A body with another media type is refused for that reason.
    let answer = server.ask("POST", "/mcp", &format!("Content-Type: text/plain\r\n{accept}"), "hello");
    assert_eq!(answer.status, 415, "{answer:?}");
}
