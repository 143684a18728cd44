//! The pages of the browser, over TCP: who may see them, and what their forms may do.

use super::client::{Answer, Server};
use crate::support::{Place, tree};

const FORM: &str = "Content-Type: application/x-www-form-urlencoded\r\n";

/// The path of the one-time address that `browser --print` prints.
fn code(place: &Place, more: &str) -> String {
    let said = place.run(&format!("browser --print -q {more}")).ok();
    let path =
        said.trim().split_once("//").and_then(|(_, it)| it.split_once('/')).expect("it is an address").1;
    format!("/{path}")
}

/// The headers of a session.
pub(super) fn signed_in(place: &Place, server: &Server, more: &str) -> String {
    let answer = server.ask("GET", &code(place, more), "", "");
    assert_eq!(answer.status, 303, "{answer:?}");
    let cookie = answer.header("set-cookie").expect("it has a cookie");
    assert!(cookie.contains("; HttpOnly; SameSite=Strict") && cookie.starts_with("planwatch-"), "{cookie}");
    format!("Cookie: {}\r\n", cookie.split(';').next().unwrap_or_default())
}

/// The token of a page's forms.
pub(super) fn page_token(page: &Answer) -> String {
    let at = page.body.split("name=\"page\" value=\"").nth(1).expect("it has a form");
    at.split('"').next().unwrap_or_default().to_owned()
}

pub(super) fn act(server: &Server, headers: &str, body: &str) -> Answer {
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
    // An address that does not exist is answered with a page, or with the sign-in.
    for path in ["/plans", "/plans/feature-auth", "/favicon.ico"] {
        let answer = server.ask("GET", path, &cookie, "");
        assert!(answer.status == 404 && answer.body.contains("There is no such page"), "{answer:?}");
        let unsigned = server.ask("GET", path, "", "");
        assert!(unsigned.status == 401 && unsigned.body.contains("planwatch browser"), "{unsigned:?}");
        assert!(unsigned.header("www-authenticate").is_none(), "{unsigned:?}");
    }
    let api = server.ask("GET", "/api/nothing", &cookie, "");
    assert!(api.status == 401 && api.header("www-authenticate").is_some(), "{api:?}");
    // The cookie is not the API's token, and the token opens no page.
    assert_eq!(server.ask("GET", "/api/plans", &cookie, "").status, 401);
    let token = place.text("plans/.planwatch/token");
    assert!(!cookie.contains(token.trim()));
    assert_eq!(server.ask("GET", &format!("/?token={}", token.trim()), "", "").status, 401);
    let bearer = format!("Authorization: Bearer {}\r\n", token.trim());
    assert_eq!(server.ask("GET", "/", &bearer, "").status, 401);
    // Sent in a form, the token signs in. `to` cannot lead to another host.
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
    // The page's script gets only the status, without a page.
    let part = server.ask("GET", "/", "X-Planwatch-Part: 1\r\n", "");
    assert_eq!((part.status, part.body.as_str()), (401, ""));
    assert_eq!(ask("/image/feature-auth/plan.md", "").status, 404);
    assert_eq!(ask("/image/.planwatch/token", "").status, 404);
    assert_eq!(ask("/image/..%2f..%2fetc/passwd", "").status, 400);
}

#[test]
fn forms_need_the_token_of_their_page_and_follow_the_rules_of_the_engine() {
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
    // The page shows the message of the refusal.
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
    assert!(refused.status == 403 && refused.body.contains("pages are read-only"), "{refused:?}");
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

/// The value of the first field of this name in a page.
pub(super) fn field(page: &Answer, name: &str) -> String {
    let at = page.body.split(&format!("name=\"{name}\"")).nth(1).expect("it has the field");
    at.split("value=\"").nth(1).and_then(|it| it.split('"').next()).unwrap_or_default().to_owned()
}

#[test]
fn a_plan_is_edited_and_ticked_like_a_step() {
    let place = Place::with_examples();
    let file = "plans/feature-auth/plan.md";
    let text = "---\r\nstatus: active\r\ngoals:\r\n  - \"[ ] fast\"\r\n---\r\n# Auth\r\n\r\n- [ ] one\r\n";
    place.write(file, text);
    let server = Server::start(&place);
    let cookie = signed_in(&place, &server, "");
    let page = server.ask("GET", "/plan/feature-auth?view=text", &cookie, "");
    let token = page_token(&page);
    let tick = |line: usize, ticked: bool| {
        let hash = format!("data-line=\"{line}\" data-hash=\"");
        let now = server.ask("GET", "/plan/feature-auth?view=text", &cookie, "");
        let hash = now.body.split(&hash).nth(1).and_then(|it| it.split('"').next());
        let hash = hash.expect("it has a box in this line").to_owned();
        let body =
            format!("page={token}&back=/&id=feature-auth&do=tick&line={line}&hash={hash}&ticked={ticked}");
        assert_eq!(act(&server, &cookie, &body).status, 303);
    };
    tick(4, true);
    tick(8, true);
    assert_eq!(place.text(file), text.replace("[ ]", "[x]"));
    tick(4, false);
    assert_eq!(place.text(file), text.replace("[ ] one", "[x] one"));
    let editor = server.ask("GET", "/plan/feature-auth/edit", &cookie, "");
    let etag = field(&editor, "etag");
    let save = |text: &str, etag: &str| {
        let body = format!("page={token}&back=/&id=feature-auth&do=text&etag={etag}&text={text}");
        act(&server, &cookie, &body)
    };
    place.write(file, place.text(file).replace("one", "theirs"));
    let changed = save("mine", &etag);
    let has_both = changed.body.contains("mine") && changed.body.contains("theirs");
    assert!(changed.status == 412 && has_both, "{changed:?}");
    assert!(place.text(file).contains("theirs"));
    assert_eq!(save("- [ ] mine", &field(&changed, "etag")).status, 303);
    assert_eq!(place.text(file), text.replace("- [ ] one", "- [ ] mine"));
}

#[test]
fn a_text_that_was_edited_without_a_file_does_not_replace_one() {
    let place = Place::with_examples();
    let (plan, step) = ("plans/early/plan.md", "plans/early/step-2.md");
    place.write("plans/early/step-1.md", "# One\n");
    let server = Server::start(&place);
    let cookie = signed_in(&place, &server, "");
    let save = |id: &str, etag: &str, text: &str| {
        let page = server.ask("GET", &format!("/plan/{}", id.split(':').next().unwrap()), &cookie, "");
        let body = format!("page={}&back=/&id={id}&do=text&etag={etag}&text={text}", page_token(&page));
        act(&server, &cookie, &body)
    };
    let editor = server.ask("GET", "/plan/early/edit", &cookie, "");
    assert_eq!(field(&editor, "etag"), "");
    place.write(plan, "# Early\n\ntheirs\n\n## Steps\n- step-1: One\n- step-2: Two\n- step-3: Three\n");
    let refused = save("early", "", "mine");
    assert!(refused.status == 412 && refused.body.contains("theirs"), "{refused:?}");
    assert!(place.text(plan).contains("theirs"));
    let editor = server.ask("GET", "/step/early:2/edit", &cookie, "");
    assert_eq!(field(&editor, "etag"), "");
    place.write(step, "# Two\n\ntheirs\n");
    assert_eq!(save("early:2", "", "mine").status, 412);
    assert_eq!(place.text(step), "# Two\n\ntheirs\n");
    assert_eq!(save("early:3", "", "mine").status, 303);
    assert!(place.text("plans/early/step-3.md").contains("mine"));
}

#[test]
fn every_action_has_a_notice_with_its_undo() {
    let place = Place::with_examples();
    place.write("plans/feature-auth/step-0.md", "---\nstatus: pending\n---\n# Schema\n\n- [ ] one\n");
    place.write("plans/_archive/old/plan.md", "# Old\n");
    let server = Server::start(&place);
    let cookie = signed_in(&place, &server, "");
    let page = server.ask("GET", "/step/feature-auth:0", &cookie, "");
    let (token, hash) = (page_token(&page), field(&page, "hash"));
    let before = tree(&place.file("plans"));
    let tick = format!("id=feature-auth:0&do=tick&line=6&hash={hash}&ticked=true");
    for body in [
        "id=feature-auth:0&do=claim",
        "id=feature-auth:0&do=start",
        "id=feature-auth:0&do=done&message=works",
        "id=feature-auth:0&do=fail&message=broken",
        "id=feature-auth:0&do=block",
        "id=feature-auth:0&do=skip",
        "id=feature-auth:0&do=note&text=careful&kind=warning",
        "id=feature-auth:0&do=attempt&outcome=tried&notes=half",
        "id=feature-auth:0&do=text&text=other",
        "id=feature-auth:0&do=renumber&after=2",
        tick.as_str(),
        "id=docs-onboarding:5&do=confirm",
        "id=feature-auth&do=add&title=New&after=0&waits=0",
        "id=feature-auth&do=text&text=other",
        "id=feature-auth&do=note&text=of+the+plan",
        "id=feature-auth&do=skip",
        "id=feature-auth&do=archive",
        "id=old&do=restore",
    ] {
        let headers = format!("{cookie}X-Planwatch-Part: 1\r\n");
        let done = act(&server, &headers, &format!("page={token}&back=/%3Fq%3Dx%23plans&{body}"));
        assert!(done.status == 200 && done.body.contains("data-act=\"undo\""), "{body}: {done:?}");
        // The next page offers to undo, too.
        let to = done.body.split("data-to=\"").nth(1).and_then(|it| it.split('"').next());
        let to = to.expect("it says where").replace("&amp;", "&");
        assert!(to.starts_with("/?q=x&notice=") && to.ends_with("#plans"), "{to}");
        let next = server.ask("GET", to.split('#').next().unwrap_or_default(), &cookie, "");
        assert!(next.body.contains("data-act=\"undo\""), "{body}");
        assert_ne!(tree(&place.file("plans")), before, "{body}");
        let undo = format!("page={token}&back=/&id={}&do=undo", field(&done, "id"));
        let undone = act(&server, &headers, &undo);
        assert_eq!(undone.status, 200, "{body}: {undone:?}");
        assert_eq!(tree(&place.file("plans")), before, "{body}");
    }
}

#[test]
fn the_page_of_a_step_links_to_its_dependencies_and_its_graph_and_shows_its_history() {
    let place = Place::with_examples();
    place.git("init -q");
    place.git("add -A");
    place.git("commit -q -m example");
    let server = Server::start(&place);
    let cookie = signed_in(&place, &server, "");
    let page = server.ask("GET", "/step/feature-auth:2", &cookie, "").body;
    let waits = page.split("id=\"head-waits\"").nth(1).expect("it says what it waits for");
    assert!(
        waits.contains("<a href=\"/step/feature-auth:1\"><bdi>step 1: Create migrations (pending)</bdi></a>"),
        "{waits}"
    );
    assert!(page.contains("/plan/feature-auth?view=graph&amp;around=feature-auth:2"), "{page}");
    let history = page.split("id=\"history\"").nth(1).expect("it has a history");
    assert!(history.contains("created") && history.contains("example"), "{history}");
    let around = server.ask("GET", "/plan/feature-auth?view=graph&around=2", &cookie, "").body;
    assert!(around.contains("<svg class=\"graph") && around.contains("href=\"/step/feature-auth:1\""));
}

#[test]
fn a_graph_of_many_steps_is_drawn_by_phase_or_around_a_step_and_never_whole() {
    let place = Place::new();
    let steps = |plan: &str, n: usize, has_phases: bool| {
        place.write(&format!("plans/{plan}/plan.md"), "---\nstatus: active\n---\n# P\n");
        for step in 1..=n {
            let phase = if has_phases { format!("phase: part {}\n", step / 30) } else { String::new() };
            let text =
                format!("---\ndepends: [{}]\n{phase}---\n# S{step}\n", if step > 1 { step - 1 } else { 1 });
            place.write(
                &format!("plans/{plan}/step-{step}.md"),
                text.replace("depends: [1]\n---\n# S1\n", "---\n# S1\n"),
            );
        }
    };
    steps("small", 60, false);
    steps("middle", 61, false);
    steps("phased", 61, true);
    steps("large", 201, false);
    let server = Server::start(&place);
    let cookie = signed_in(&place, &server, "");
    let nodes = |path: &str| {
        let page = server.ask("GET", path, &cookie, "").body;
        page.matches("class=\"node ").count()
    };
    assert_eq!(nodes("/plan/small?view=graph"), 60);
    assert_eq!(nodes("/plan/middle?view=graph"), 3);
    assert_eq!(nodes("/plan/middle?view=graph&whole=1"), 61);
    assert_eq!(nodes("/plan/middle?view=graph&around=30"), 5);
    assert_eq!(nodes("/plan/phased?view=graph"), 3);
    assert_eq!(nodes("/plan/phased?view=graph&phase=part%201"), 32);
    assert_eq!(nodes("/plan/large?view=graph"), 3);
    assert_eq!(nodes("/plan/large?view=graph&whole=1"), 3);
}

#[test]
fn the_last_change_is_offered_for_undo_while_it_can_be_undone() {
    let place = Place::with_examples();
    let server = Server::start(&place);
    let cookie = signed_in(&place, &server, "");
    let part = format!("{cookie}X-Planwatch-Part: 1\r\n");
    let last = || server.ask("GET", "/undo?last=1", &part, "").body;
    assert!(last().contains("There is nothing to undo."), "{}", last());
    let before = place.text("plans/feature-auth/step-0.md");
    place.run("start feature-auth:0 -q").ok();
    let asked = last();
    let says = "started <a href=\"/step/feature-auth:0\"><bdi>feature-auth:0</bdi></a>";
    assert!(asked.contains(says) && asked.contains("data-act=\"undo\""), "{asked}");
    assert!(
        server.ask("GET", "/", &cookie, "").body.contains("href=\"/undo\""),
        "pages without a script link to it"
    );
    let page = server.ask("GET", "/undo", &cookie, "");
    assert!(page.body.contains("started <a"), "{page:?}");
    let id = field(&page, "id");
    // A read-only session gets no form.
    let reading = signed_in(&place, &server, "--read-only");
    let read = server.ask("GET", "/undo?last=1", &format!("{reading}X-Planwatch-Part: 1\r\n"), "");
    assert!(!read.body.contains("<form"), "{read:?}");
    let edited = place.text("plans/feature-auth/step-0.md") + "\nmore\n";
    place.write("plans/feature-auth/step-0.md", &edited);
    assert!(last().contains("Nothing can be undone.") && last().contains("has changed since"), "{}", last());
    let undo = format!("page={}&back=/&id={id}&do=undo", page_token(&page));
    let refused = act(&server, &part, &undo);
    assert!(refused.status == 409 && refused.body.contains("href=\"/undo\""), "{refused:?}");
    assert!(!refused.body.contains('`') && !refused.body.contains("/api"), "{refused:?}");
    place.write(
        "plans/feature-auth/step-0.md",
        edited.trim_end_matches("more\n").trim_end_matches('\n').to_owned() + "\n",
    );
    assert_eq!(act(&server, &part, &undo).status, 200);
    assert_eq!(place.text("plans/feature-auth/step-0.md"), before);
}

#[test]
fn a_refusal_offers_buttons_and_names_no_command_option_or_route() {
    let place = Place::with_examples();
    let server = Server::start(&place);
    let cookie = signed_in(&place, &server, "");
    let token = page_token(&server.ask("GET", "/step/feature-auth:2", &cookie, ""));
    let part = format!("{cookie}X-Planwatch-Part: 1\r\n");
    let send = |body: &str| act(&server, &part, &format!("page={token}&back=/plan/feature-auth&{body}"));
    let refused = |body: &str, button: &str| {
        let answer = send(body);
        assert!((400..500).contains(&answer.status), "{body}: {answer:?}");
        assert!(
            answer.body.contains(&format!(">{button}</button>")),
            "{body} offers no {button}: {answer:?}"
        );
        for word in ["`", "--force", "/api/", "POST ", "terminal", "planwatch "] {
            assert!(!answer.body.contains(word), "{body} says {word}: {answer:?}");
        }
        answer.body
    };
    let waits = refused("id=feature-auth:2&do=done&message=by+hand", "Do it anyway");
    assert!(
        waits.contains("href=\"/step/feature-auth:1\"")
            && waits.contains("name=\"message\" value=\"by hand\"")
    );
    refused("id=docs-onboarding:5&do=start", "Confirm it");
    refused("id=ledger-migration:2.75&do=done", "Do it anyway");
    refused("id=ledger-migration:1&do=start", "Reopen it first");
    refused("id=feature-auth&do=done", "Complete it anyway");
    assert_eq!(send("id=feature-auth:2&do=done&message=by+hand&force=true").status, 200);
    let file = place.text("plans/feature-auth/step-2.md");
    assert!(file.contains("outcome: forced") && file.contains("completed: by hand"), "{file}");
    let closed = server.ask("GET", "/step/feature-auth:2", &cookie, "").body;
    assert!(
        closed.contains(">Waits for</h2><p class=\"none\">Nothing.</p><h2>Dependencies</h2>"),
        "{closed}"
    );
    // Without script, the refusal is a page with the same buttons and a link back.
    let page =
        act(&server, &cookie, &format!("page={token}&back=/plan/feature-auth&id=feature-auth:1&do=done"));
    assert!(
        page.body.contains(">Do it anyway</button>") && page.body.contains("href=\"/plan/feature-auth\""),
        "{page:?}"
    );
}

#[test]
fn a_completed_step_records_its_author_and_its_open_tasks_are_reported() {
    let place = Place::with_examples();
    place.write(
        "plans/feature-auth/step-0.md",
        "---\nstatus: pending\n---\n# Schema\n\n## Tasks\n\n- [x] one\n- [ ] two\n- [ ] three\n",
    );
    let server = Server::start(&place);
    let cookie = signed_in(&place, &server, "");
    let page = server.ask("GET", "/step/feature-auth:0", &cookie, "");
    assert!(page.body.contains("2 of 3 tasks are still open."), "{page:?}");
    let body = format!("page={}&back=/&id=feature-auth:0&do=done", page_token(&page));
    let done = act(&server, &format!("{cookie}X-Planwatch-Part: 1\r\n"), &body);
    assert!(done.body.contains("2 of its 3 tasks are open"), "{done:?}");
    let file = place.text("plans/feature-auth/step-0.md");
    let attempt = file.split("attempts:").nth(1).expect("it has an attempt");
    assert!(attempt.contains("    by: ") && attempt.contains("    outcome: completed\n"), "{file}");
    let by = attempt.split("by: ").nth(1).and_then(|it| it.lines().next()).unwrap_or_default();
    // Searching the name lists the step.
    let query: String = by.split(' ').next().unwrap_or_default().to_lowercase();
    let found = server.ask("GET", &format!("/search?q={query}"), &cookie, "").body;
    let steps = found.split("class=\"person\"").nth(1).expect("the name is found");
    assert!(steps.contains("href=\"/step/feature-auth:0\"") && steps.contains("completed it"), "{steps}");
    let codex = server.ask("GET", "/search?q=codex", &cookie, "").body;
    assert!(codex.contains("Steps of <bdi>codex</bdi>") && codex.contains("has claimed it"), "{codex}");
    assert!(codex.contains("href=\"/step/ledger-migration:2.75\""), "{codex}");
    let none = server.ask("GET", "/search?q=zzzznobody", &cookie, "").body;
    assert!(none.contains("Nothing was found."), "{none}");
}

#[test]
fn pages_name_what_a_step_waits_for_and_put_it_before_the_text() {
    let place = Place::with_examples();
    let server = Server::start(&place);
    let cookie = signed_in(&place, &server, "");
    let title = |path: &str| {
        let file = place.text(path);
        let line = file.lines().find(|it| it.starts_with("# ")).expect("it has a title").to_owned();
        line.trim_start_matches("# ")
            .split_once(": ")
            .map_or(line.trim_start_matches("# ").to_owned(), |it| it.1.to_owned())
    };
    let named = format!("step 1: {} (pending)", title("plans/feature-auth/step-1.md"));
    let step = server.ask("GET", "/step/feature-auth:2", &cookie, "").body;
    assert!(step.contains(&named), "{named}: {step}");
    let at = |what: &str| step.find(what).unwrap_or_else(|| panic!("there is no {what}"));
    assert!(at("id=\"update\"") < at("id=\"text\"") && at("id=\"head-waits\"") < at("id=\"text\""));
    assert!(at("id=\"text\"") < at("id=\"head-about\""));
    // The main button does not complete a step that waits.
    assert!(!step.contains("class=\"primary\">Done"), "{step}");
    for path in ["/plan/feature-auth", "/plan/feature-auth?view=list"] {
        let page = server.ask("GET", path, &cookie, "").body;
        assert!(page.contains(&format!("waits for {named}")), "{page}");
    }
    // The same for a step of another plan.
    let other = server.ask("GET", "/plan/ledger-migration", &cookie, "").body;
    assert!(other.contains("waits for feature-auth:1: Create migrations (pending)"), "{other}");
    let overview = server.ask("GET", "/", &cookie, "").body;
    assert!(overview.contains("The next step of each plan, sorted by priority"), "{overview}");
    assert!(!overview.contains("since just now"), "{overview}");
}
