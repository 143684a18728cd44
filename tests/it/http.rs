//! HTTP, tested over TCP against a daemon on a free port.
#![expect(clippy::disallowed_methods, reason = "tests edit files as editors do, and start programs")]

pub(crate) mod client;
mod events;
mod limits;
mod once;
mod pages;
mod pages_of_plans;
mod refused;
mod scripts;
mod steps;

use std::os::unix::fs::PermissionsExt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Value, json};

use crate::support::Place;

use client::Server;

const TOKEN: &str = "plans/.planwatch/token";

#[test]
fn the_token_stays_the_same_until_a_new_one_is_requested() {
    let place = Place::with_examples();
    let server = Server::start(&place);
    let mode = place.file(TOKEN).metadata().expect("it is there").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let token = place.text(TOKEN).trim().to_owned();
    assert_eq!((token.len(), token.bytes().all(|it| it.is_ascii_hexdigit())), (64, true));
    let headers = format!("Authorization: Bearer {token}\r\n");
    assert_eq!(server.ask("GET", "/api/plans", &headers, "").status, 200);
    assert_eq!(server.ask("GET", "/api/plans", "", "").problem(), (401, "token-needed".to_owned()));
    server.stop(&place);
    let again = Server::start(&place);
    assert_eq!(place.text(TOKEN).trim(), token);
    assert_eq!(place.run("token").stdout.trim(), token);
    assert_eq!(place.run("token --json").json()["token"], token);
    assert_eq!(again.ask("GET", "/api/plans", &headers, "").status, 200);
    let refused = place.run("watch --detach --http --new-token");
    assert!(refused.code == 4 && refused.stderr.contains("planwatch watch --stop"), "{refused:?}");
    let port = again.port();
    for options in [format!("--http {}", port ^ 1), "--http --no-token".to_owned()] {
        let refused = place.run(&format!("watch --detach {options}"));
        assert!(refused.code == 4 && refused.stderr.contains("planwatch watch --stop"), "{refused:?}");
    }
    for options in ["--http", "--http 0", &format!("--http {port}")] {
        assert_eq!(place.run(&format!("watch --detach {options}")).code, 0, "{options}");
    }
    again.stop(&place);
    let renewed = Server::start_with(&place, &["--http", "0", "--new-token"], "");
    assert_ne!(place.text(TOKEN).trim(), token);
    assert_eq!(renewed.ask("GET", "/api/plans", &headers, "").status, 401);
}

#[test]
fn a_token_that_others_could_read_or_that_is_damaged_is_replaced() {
    let place = Place::with_examples();
    let start = || {
        Server::start(&place).stop(&place);
        place.run("token").stdout
    };
    let first = start();
    for spoil in [
        |place: &Place| {
            let permissions = std::fs::Permissions::from_mode(0o644);
            std::fs::set_permissions(place.file(TOKEN), permissions).expect("it is there");
        },
        |place: &Place| std::fs::write(place.file(TOKEN), "abc\n").expect("it can be written"),
        |place: &Place| std::fs::remove_file(place.file(TOKEN)).expect("it is there"),
    ] {
        let before = place.text(TOKEN);
        spoil(&place);
        assert_eq!(place.run("token").code, 3);
        let after = start();
        assert_eq!((after.len(), after != before), (first.len(), true));
    }
    // A token in a copied directory is not used.
    let copy = Place::new();
    crate::support::copy(&place.file("plans"), &copy.file("plans"));
    assert_eq!(copy.run("token").code, 3);
}

#[test]
fn routes_of_an_oauth_server_do_not_exist() {
    let place = Place::with_examples();
    let server = Server::start(&place);
    for path in [
        "/.well-known/oauth-protected-resource",
        "/.well-known/oauth-protected-resource/mcp",
        "/.well-known/oauth-authorization-server",
        "/.well-known/openid-configuration",
        "/mcp/.well-known/oauth-authorization-server",
        "/register",
    ] {
        for headers in ["", "Authorization: Bearer 0123\r\n"] {
            let answer = server.ask("GET", path, headers, "");
            assert_eq!(answer.problem(), (404, "no-such-route".to_owned()), "{path}");
            assert_eq!(answer.header("www-authenticate"), None, "{path}");
        }
    }
}

#[test]
fn the_token_is_accepted_as_a_password_but_not_in_a_cookie_or_an_address() {
    let place = Place::with_examples();
    let server = Server::start(&place);
    let token = place.text(TOKEN).trim().to_owned();
    let basic =
        |password: &str| format!("Authorization: Basic {}\r\n", BASE64.encode(format!("ann:{password}")));
    assert_eq!(server.ask("GET", "/api/plans", &basic(&token), "").status, 200);
    for headers in [
        basic(&token[1..]),
        basic(""),
        format!("Cookie: planwatch-{}={token}\r\n", server.address.port()),
        format!("Cookie: planwatch={token}\r\n"),
    ] {
        let answer = server.ask("GET", "/api/plans", &headers, "");
        assert_eq!((answer.status, answer.header("set-cookie")), (401, None), "{headers}");
        assert!(answer.header("www-authenticate").is_some_and(|it| it.contains("Basic")), "{headers}");
    }
    // A browser sends the stored password even with a request that a page of another site causes. Without `Sec-Fetch-Site`,
    // a browser's request with the password claims nothing.
    let browser = basic(&token) + "User-Agent: Mozilla/5.0 (X11)\r\n";
    let next = "/api/plans/feature-auth/next-step";
    assert_eq!(server.ask("GET", next, &browser, "").status, 403);
    assert_eq!(server.ask("GET", next, &(browser + "Sec-Fetch-Site: same-origin\r\n"), "").status, 200);
    let answer = server.ask("GET", &format!("/api/plans?token={token}"), "", "");
    assert_eq!((answer.status, answer.header("set-cookie"), answer.header("location")), (401, None, None));
}

#[test]
fn each_mcp_version_offers_only_features_that_work_over_http() {
    let place = Place::with_examples();
    let server = Server::open(&place);
    let ask = |method: &str, version: &str, params: &Value| {
        let headers = format!(
            "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n\
             MCP-Protocol-Version: {version}\r\nMcp-Method: {method}\r\n"
        );
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        server.ask("POST", "/mcp", &headers, &body.to_string()).json()
    };
    let client = json!({"name": "test", "version": "1"});
    let older = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client});
    let answer = ask("initialize", "2025-06-18", &older);
    assert_eq!(answer["result"]["capabilities"]["resources"], json!({}), "{answer}");
    let answer = ask("resources/subscribe", "2025-06-18", &json!({"uri": "planwatch:///briefing"}));
    assert_eq!(answer["error"]["code"], -32601, "{answer}");
    let newer = json!({"_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": client,
    }});
    let answer = ask("server/discover", "2026-07-28", &newer);
    let offered = &answer["result"]["capabilities"]["resources"];
    assert_eq!(offered, &json!({"subscribe": true, "listChanged": true}), "{answer}");
}

#[test]
fn doctor_status_and_watch_report_the_address() {
    let place = Place::with_examples();
    let server = Server::start(&place);
    let url = format!("http://{}", server.address);
    let doctor = place.run("doctor --json").json();
    let checks = doctor["checks"].as_array().expect("a list");
    let daemon = checks.iter().find(|it| it["name"] == "watching process").expect("doctor reports it");
    assert!(daemon["value"].as_str().is_some_and(|it| it.contains(&url)), "{daemon}");
    assert!(place.run("status").stdout.contains(&url));
    let running = place.run("watch --detach --http --json").json();
    assert_eq!((&running["state"], &running["http"]), (&"running".into(), &url.into()));
}

#[test]
fn a_daemon_without_http_is_not_used_for_http() {
    let place = Place::with_examples();
    assert_eq!(place.run("watch --detach").code, 0);
    let refused = place.run("watch --detach --http");
    assert_eq!(refused.code, 4, "{refused:?}");
    assert!(refused.stderr.contains("planwatch watch --stop"), "{refused:?}");
    assert_eq!(place.run("watch --http 0").code, 4);
    assert_eq!(place.run("watch --stop").code, 0);
    let begun = place.run("watch --detach --http 0 --json").json();
    assert!(begun["http"].as_str().is_some_and(|it| it.starts_with("http://127.0.0.1:")), "{begun}");
    assert_eq!(place.run("watch --stop").code, 0);
}

#[test]
fn other_machines_need_the_token_and_an_address_on_the_command_line() {
    let place = Place::with_examples();
    let refused = place.run("watch --http 0.0.0.0:0 --no-token");
    assert_eq!(refused.code, 2, "{refused:?}");
    let server = Server::start_with(&place, &["--http", "0.0.0.0:0"], "");
    server.stop(&place);
    assert!(server.log().contains("every request needs the token"), "{}", server.log());
    place.write("planwatch.toml", "[http]\naddress = \"0.0.0.0:0\"\n");
    assert!(place.run("check").stdout.contains("other machines"));
    place.write("planwatch.toml", "[http]\naddress = \"localhost:0\"\n");
    let server = Server::start_with(&place, &["--http"], "");
    assert!(server.address.ip().is_loopback() && server.address.port() != 4001);
    let taken = Place::with_examples();
    let second = taken.run(&format!("watch --http {}", server.address));
    assert!(second.code == 1 && second.stderr.contains("address-in-use"), "{second:?}");
    let detached = taken.run(&format!("watch --detach --http {}", server.address));
    assert_eq!(detached.code, 8, "{detached:?}");
    let (why, hint) =
        ("ended immediately: HTTP cannot listen on 127.0.0.1:", "hint: choose another address or port");
    assert!(detached.stderr.contains(why) && detached.stderr.contains(hint), "{detached:?}");
}

#[test]
fn requests_are_logged_only_if_asked_and_never_the_token() {
    let place = Place::with_examples();
    let server = Server::start_with(&place, &["--http", "0"], "planwatch=info");
    let token = place.text(TOKEN).trim().to_owned();
    server.ask("GET", &format!("/api/plans?token={token}"), "", "");
    server.ask("GET", "/api/plans/trip", &format!("Authorization: Bearer {token}\r\n"), "");
    server.stop(&place);
    let log = server.log();
    assert!(log.contains("path=\"/api/plans/trip\" status=404"), "{log}");
    assert!(log.contains("path=\"/api/plans\" status=401") && !log.contains(&token), "{log}");
    let server = Server::start(&place);
    server.ask("GET", "/api/plans", "", "");
    server.stop(&place);
    assert_eq!(server.log(), "");
}
