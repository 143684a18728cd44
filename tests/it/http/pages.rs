//! The pages of the browser, over TCP: who may see them, and what their forms may do.

use super::client::{Answer, Server};
use crate::support::Place;

const FORM: &str = "Content-Type: application/x-www-form-urlencoded\r\n";

/// The path of the one-time address that `browser --print` prints.
fn code(place: &Place, more: &str) -> String {
    let said = place.run(&format!("browser --print -q {more}")).ok();
    let path =
        said.trim().split_once("//").and_then(|(_, it)| it.split_once('/')).expect("it is an address").1;
    format!("/{path}")
}

/// The headers of a session.
fn signed_in(place: &Place, server: &Server, more: &str) -> String {
    let answer = server.ask("GET", &code(place, more), "", "");
    assert_eq!(answer.status, 303, "{answer:?}");
    let cookie = answer.header("set-cookie").expect("it has a cookie");
    assert!(cookie.contains("; HttpOnly; SameSite=Strict") && cookie.starts_with("planwatch-"), "{cookie}");
    format!("Cookie: {}\r\n", cookie.split(';').next().unwrap_or_default())
}

/// The token of a page's forms.
fn page_token(page: &Answer) -> String {
    let at = page.body.split("name=\"page\" value=\"").nth(1).expect("it has a form");
    at.split('"').next().unwrap_or_default().to_owned()
}

fn act(server: &Server, headers: &str, body: &str) -> Answer {
    server.ask("POST", "/do", &format!("{headers}{FORM}"), body)
}

#[test]
fn a_code_signs_in_once_and_opens_only_the_pages() {
    let place = Place::with_examples();
    let server = Server::start(&place);
    let unsigned = server.ask("GET", "/plan/feature-auth", "", "");
    assert!(unsigned.status == 401 && unsigned.body.contains("planwatch browser"), "{unsigned:?}");
    assert!(!unsigned.body.contains("User Authentication") && unsigned.header("www-authenticate").is_none());
    let path = code(&place, "feature-auth");
    let first = server.ask("GET", &path, "", "");
    assert_eq!((first.status, first.header("location")), (303, Some("/plan/feature-auth")));
    let again = server.ask("GET", &path, "", "");
    assert!(again.status == 403 && again.body.contains("used already"), "{again:?}");
    let cookie = signed_in(&place, &server, "");
    let page = server.ask("GET", "/plan/feature-auth", &cookie, "");
    assert!(page.status == 200 && page.body.contains("User Authentication"), "{page:?}");
    let policy = page.header("content-security-policy").unwrap_or_default();
    assert_eq!(
        policy,
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
         form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    );
    assert_eq!(page.headers.iter().filter(|it| it.0 == "content-security-policy").count(), 1);
    // The cookie is not the API's token, and that opens no page.
    assert_eq!(server.ask("GET", "/api/plans", &cookie, "").status, 401);
    let token = place.text("plans/.planwatch/token");
    assert!(!cookie.contains(token.trim()));
    assert_eq!(server.ask("GET", &format!("/?token={}", token.trim()), "", "").status, 401);
    let bearer = format!("Authorization: Bearer {}\r\n", token.trim());
    assert_eq!(server.ask("GET", "/", &bearer, "").status, 401);
    // As a form it signs in, and leads to no other host.
    let form = format!("token={}&to=//evil.example/", token.trim());
    let by_token = server.ask("POST", "/login", FORM, &form);
    assert_eq!((by_token.status, by_token.header("location")), (303, Some("/")));
    assert_eq!(server.ask("POST", "/login", FORM, "token=abc").status, 403);
}

#[test]
fn pages_are_only_for_requests_of_their_own_site() {
    let place = Place::with_examples();
    let server = Server::start(&place);
    let cookie = signed_in(&place, &server, "");
    let ask = |path: &str, more: &str| server.ask("GET", path, &format!("{cookie}{more}"), "");
    let followed = "Sec-Fetch-Mode: navigate\r\nSec-Fetch-Dest: document\r\n";
    for site in ["cross-site", "same-site"] {
        let stranger = ask("/plan/feature-auth?view=list", &format!("Sec-Fetch-Site: {site}\r\n{followed}"));
        assert!(stranger.status == 200 && stranger.body.contains("href=\"/plan/feature-auth?view=list\""));
        assert!(!stranger.body.contains("User Authentication"), "{stranger:?}");
        for path in ["/", "/events", "/image/feature-auth/plan.md", "/app.js"] {
            assert_eq!(
                ask(path, &format!("Sec-Fetch-Site: {site}\r\nSec-Fetch-Dest: image\r\n")).status,
                403
            );
        }
    }
    for fine in ["same-origin", "none"] {
        assert_eq!(ask("/", &format!("Sec-Fetch-Site: {fine}\r\n{followed}")).status, 200);
    }
    assert_eq!(ask("/", "Sec-Purpose: prefetch\r\n").status, 403);
    assert_eq!(ask(&code(&place, ""), "Purpose: prefetch\r\n").status, 403);
    assert_eq!(ask("/", "Origin: http://127.0.0.1:1\r\n").status, 403);
    assert_eq!(ask("/", "Origin: null\r\n").status, 403);
    // The script is told by the status alone.
    let part = server.ask("GET", "/", "X-Planwatch-Part: 1\r\n", "");
    assert_eq!((part.status, part.body.as_str()), (401, ""));
    assert_eq!(ask("/image/feature-auth/plan.md", "").status, 404);
    assert_eq!(ask("/image/.planwatch/token", "").status, 404);
    assert_eq!(ask("/image/..%2f..%2fetc/passwd", "").status, 400);
}

#[test]
fn forms_need_the_token_of_their_page_and_do_what_the_engine_allows() {
    let place = Place::with_examples();
    let server = Server::start(&place);
    let cookie = signed_in(&place, &server, "");
    let page = server.ask("GET", "/step/feature-auth:0", &cookie, "");
    let token = page_token(&page);
    let before = place.text("plans/feature-auth/step-0.md");
    let start =
        |token: &str| act(&server, &cookie, &format!("page={token}&back=/&id=feature-auth:0&do=start"));
    assert_eq!(start("").status, 403);
    assert_eq!(start(&page_token(&server.ask("GET", "/", &signed_in(&place, &server, ""), ""))).status, 403);
    assert_eq!(act(&server, "", &format!("page={token}&id=feature-auth:0&do=start")).status, 401);
    let json = server.ask("POST", "/do", &format!("{cookie}Content-Type: application/json\r\n"), "{}");
    assert_eq!(json.status, 415);
    assert_eq!(place.text("plans/feature-auth/step-0.md"), before);
    let done = start(&token);
    let back = done.header("location").unwrap_or_default();
    assert!(done.status == 303 && back.starts_with("/?notice="), "{done:?}");
    assert!(place.text("plans/feature-auth/step-0.md").contains("in_progress"));
    let shown = server.ask("GET", back, &cookie, "");
    let undo = shown.body.split("name=\"id\" value=\"").nth(1).and_then(|it| it.split('"').next());
    let undo = undo.expect("it can be undone").to_owned();
    assert_eq!(act(&server, &cookie, &format!("page={token}&back=/&id={undo}&do=undo")).status, 303);
    assert_eq!(place.text("plans/feature-auth/step-0.md"), before);
    // A refusal has the engine's sentence.
    let refused = act(&server, &cookie, &format!("page={token}&back=/&id=feature-auth:2&do=done"));
    assert!(refused.status == 409 && refused.body.contains("waits for"), "{refused:?}");
    // `back` leads to no other host.
    let away = act(&server, &cookie, &format!("page={token}&back=//evil.example&id=feature-auth:0&do=start"));
    assert!(away.header("location").is_some_and(|it| it.starts_with("/?notice=")), "{away:?}");
}

#[test]
fn a_person_confirms_and_pages_for_reading_change_nothing() {
    let place = Place::with_examples();
    let server = Server::start(&place);
    let cookie = signed_in(&place, &server, "");
    let token = page_token(&server.ask("GET", "/step/docs-onboarding:5", &cookie, ""));
    let body = format!("page={token}&back=/&id=docs-onboarding:5&do=confirm&note=fine");
    assert_eq!(act(&server, &cookie, &body).status, 303);
    assert!(place.text("plans/docs-onboarding/step-5.md").contains("confirmed"));
    let reading = signed_in(&place, &server, "--read-only");
    let page = server.ask("GET", "/step/docs-onboarding:5", &reading, "");
    assert!(page.status == 200 && !page.body.contains("action=\"/do\""), "{page:?}");
    let body = format!("page={}&id=feature-auth:0&do=start", page_token(&page));
    let refused = act(&server, &reading, &body);
    assert!(refused.status == 403 && refused.body.contains("only for reading"), "{refused:?}");
}

#[test]
fn a_tick_changes_one_character_and_a_text_only_the_version_that_was_shown() {
    let place = Place::with_examples();
    let file = "plans/feature-auth/step-0.md";
    place.write(file, "---\r\nstatus: pending\r\n---\r\n# Schema\r\n\r\n- [ ] one\r\n- [ ] two\r\n");
    let server = Server::start(&place);
    let cookie = signed_in(&place, &server, "");
    let page = server.ask("GET", "/step/feature-auth:0", &cookie, "");
    let token = page_token(&page);
    let hash =
        page.body.split("value=\"7\"").nth(1).and_then(|it| it.split("value=\"").nth(1)?.split('"').next());
    let hash = hash.expect("the second task has a form").to_owned();
    let before = place.text(file);
    let tick = |hash: &str, ticked: bool| {
        let body =
            format!("page={token}&back=/&id=feature-auth:0&do=tick&line=7&hash={hash}&ticked={ticked}");
        act(&server, &cookie, &body).status
    };
    assert_eq!(tick("0000000000000000", true), 409);
    assert_eq!(tick(&hash, true), 303);
    assert_eq!(place.text(file), before.replace("[ ] two", "[x] two"));
    assert_eq!(tick(&hash, true), 303, "it is ticked already");
    let editor = server.ask("GET", "/step/feature-auth:0/edit", &cookie, "");
    let etag = editor
        .body
        .split("name=\"etag\"")
        .nth(1)
        .and_then(|it| it.split("value=\"").nth(1)?.split('"').next());
    let etag = etag.expect("it has an etag").to_owned();
    place.write(file, place.text(file).replace("one", "theirs"));
    let save = |text: &str, etag: &str| {
        let body = format!("page={token}&back=/&id=feature-auth:0&do=text&etag={etag}&text={text}");
        act(&server, &cookie, &body)
    };
    let changed = save("mine", &etag);
    assert!(
        changed.status == 412 && changed.body.contains("mine") && changed.body.contains("theirs"),
        "{changed:?}"
    );
    assert!(place.text(file).contains("theirs"));
    let now = changed
        .body
        .split("name=\"etag\"")
        .nth(1)
        .and_then(|it| it.split("value=\"").nth(1)?.split('"').next());
    assert_eq!(save("mine", now.expect("the new one")).status, 303);
    assert_eq!(place.text(file), "---\r\nstatus: pending\r\n---\r\n# Schema\r\n\r\nmine\r\n");
}
