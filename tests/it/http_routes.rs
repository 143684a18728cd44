//! The routes of every verb: they match openapi.json, and their answers match the command line.
#![expect(clippy::disallowed_methods, reason = "a test updates a page if PLANWATCH_BLESS is set")]

use std::collections::BTreeSet;

use planwatch::serve::http::routes;
use serde_json::{Map, Value, json};

use crate::http::client::{Answer, Server};
use crate::json_schema::Schemas;
use crate::support::{Place, read, root, tree};

fn document(server: &Server) -> Value {
    server.json("GET", "/openapi.json", &Value::Null)
}

/// The operations of the document: method, path, operation.
fn operations(document: &Value) -> Vec<(String, String, &Value)> {
    let paths = document["paths"].as_object().expect("it has paths").iter();
    let methods =
        paths.flat_map(|(path, item)| item.as_object().into_iter().flatten().map(move |it| (path, it)));
    methods.map(|(path, (method, it))| (method.to_uppercase(), path.clone(), it)).collect()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

/// The path and query with the examples of the parameters.
fn example_path(path: &str, operation: &Value) -> String {
    let mut path = path.to_owned();
    let mut query = Vec::new();
    for parameter in list(&operation["parameters"]) {
        let name = parameter["name"].as_str().expect("it has a name");
        let example = match &parameter["example"] {
            Value::String(text) => text.clone(),
            Value::Array(items) => items.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(","),
            other => other.to_string(),
        };
        match parameter["in"].as_str() {
            Some("path") => path = path.replace(&format!("{{{name}}}"), &example),
            Some("query") => query.push(format!("{name}={}", encoded(&example))),
            _ => {}
        }
    }
    if query.is_empty() { path } else { format!("{path}?{}", query.join("&")) }
}

fn encoded(text: &str) -> String {
    let plain = |it: u8| it.is_ascii_alphanumeric() || b"-_.~".contains(&it);
    text.bytes().map(|it| if plain(it) { (it as char).to_string() } else { format!("%{it:02X}") }).collect()
}

/// The response that an operation declares for this status.
fn response<'a>(document: &'a Value, operation: &'a Value, status: u16) -> Option<&'a Value> {
    let found = operation["responses"].get(status.to_string())?;
    match found["$ref"].as_str() {
        Some(reference) => document.pointer(reference.trim_start_matches('#')),
        None => Some(found),
    }
}

/// Asserts that the operation declares the answer with this status, media type and schema.
#[track_caller]
fn check(document: &Value, (method, path, operation): (&str, &str, &Value), answer: &Answer) {
    let shown = format!("{method} {path}: {} {}", answer.status, answer.body);
    let declared =
        response(document, operation, answer.status).unwrap_or_else(|| panic!("undeclared: {shown}"));
    let media_type = answer.header("content-type").expect("it has a type");
    let schema = &declared["content"][media_type]["schema"];
    assert!(schema.is_object(), "{media_type} is undeclared: {shown}");
    let parts = document["components"]["schemas"].as_object().cloned().unwrap_or_default();
    let fault = Schemas { parts, is_partial: false }.fault(schema, &answer.json());
    assert!(fault.is_none(), "{fault:?}: {shown}");
}

#[test]
fn every_route_answers_its_example_as_declared() {
    let place = Place::with_examples();
    let server = Server::open(&place);
    let document = document(&server);
    let before = tree(&place.work());
    let operations = operations(&document);
    assert!(operations.len() > 60, "{}", operations.len());
    for (method, path, operation) in &operations {
        // The routes for scripts have no `dry_run`. The next test covers them.
        if is_of_scripts(operation) {
            continue;
        }
        let body = &operation["requestBody"]["content"]["application/json"]["example"];
        assert!(method == "GET" || method == "DELETE" || body.is_object(), "{method} {path} has no example");
        let answer = server.json_with(method, &example_path(path, operation), "", body);
        check(&document, (method, path, operation), &answer);
        assert!(answer.status < 500 && answer.status != 405 && answer.status != 400, "{path}: {answer:?}");
        if answer.status == 404 {
            assert_ne!(answer.problem().1, "no-such-route", "{path}");
        }
    }
    assert_eq!(tree(&place.work()), before, "examples are dry runs, which write nothing");
}

fn is_of_scripts(operation: &Value) -> bool {
    operation["description"].as_str().is_some_and(|it| it.contains("scripts"))
}

#[test]
fn the_routes_for_scripts_answer_their_examples_as_declared() {
    let place = Place::with_examples();
    let server = Server::open(&place);
    let document = document(&server);
    let operations = operations(&document);
    // The event stream never ends. Other tests cover it.
    let checked =
        operations.iter().filter(|(_, path, it)| is_of_scripts(it) && path != "/api/events").map(|it| {
            let (method, path, operation) = it;
            let body = &operation["requestBody"]["content"]["application/json"]["example"];
            assert_eq!(method == "GET", body.is_null(), "{method} {path}");
            let answer = server.json_with(method, &example_path(path, operation), "", body);
            check(&document, (method, path, operation), &answer);
            assert!(answer.status < 300, "{method} {path}: {answer:?}");
            let closed =
                &operation["requestBody"]["content"]["application/json"]["schema"]["additionalProperties"];
            assert!(body.is_null() || closed == &json!(false), "{method} {path} accepts undeclared fields");
        });
    assert_eq!(checked.count(), 8);
}

#[test]
fn every_route_refuses_an_unknown_parameter() {
    let place = Place::with_examples();
    let server = Server::open(&place);
    let before = tree(&place.work());
    for (method, path, operation) in operations(&document(&server)) {
        let body = &operation["requestBody"]["content"]["application/json"]["example"];
        let url = example_path(&path, operation);
        let url = format!("{url}{}bye=ann", if url.contains('?') { '&' } else { '?' });
        let answer = server.json_with(&method, &url, "", body);
        assert_eq!(answer.problem(), (400, "parameter-invalid".to_owned()), "{method} {url}: {answer:?}");
        assert_eq!(answer.json()["detail"], "the parameter `bye` is not known", "{method} {url}");
    }
    assert_eq!(tree(&place.work()), before);
}

/// Method, route, path, body; status and code.
type Refusal = (&'static str, &'static str, &'static str, Value, (u16, &'static str));

#[test]
fn refusals_are_as_declared() {
    let place = Place::with_examples();
    let server = Server::open(&place);
    let document = document(&server);
    let (route, done) = ("/api/steps/{id}/done", "/api/steps/feature-auth:2/done");
    let next = ("/api/plans/{id}/next-step", "/api/plans/feature-auth/next-step?by=ann");
    let cases: [Refusal; 19] = [
        ("GET", next.0, next.1, Value::Null, (400, "parameter-invalid")),
        ("GET", "/api/list/{id}", "/api/list/nowhere", Value::Null, (404, "not-found")),
        ("GET", "/api/list/{id}", "/api/list/feature-auth:2", Value::Null, (404, "not-found")),
        ("GET", "/api/list", "/api/list?limit=0", Value::Null, (400, "parameter-invalid")),
        ("GET", "/api/list", "/api/list?limit=201", Value::Null, (400, "parameter-invalid")),
        ("GET", "/api/list", "/api/list?cursor=x", Value::Null, (400, "parameter-invalid")),
        ("GET", "/api/list", "/api/list?tga=a", Value::Null, (400, "parameter-invalid")),
        ("GET", "/api/search", "/api/search", Value::Null, (400, "parameter-invalid")),
        ("GET", "/api/sql", "/api/sql?query=delete%20from%20steps", Value::Null, (422, "sql-refused")),
        ("DELETE", "/api/plans/{id}", "/api/plans/feature-auth", Value::Null, (400, "parameter-invalid")),
        ("POST", route, "/api/steps/feature-auth/done", json!({}), (404, "not-found")),
        ("POST", route, done, json!({}), (409, "dependencies-open")),
        ("POST", route, done, json!({"by": 1}), (422, "body-invalid")),
        ("POST", route, done, json!({"bye": "a"}), (422, "body-invalid")),
        (
            "POST",
            "/api/plans/{id}/archive",
            "/api/plans/feature-auth/archive",
            json!({"by": "bo"}),
            (422, "body-invalid"),
        ),
        ("POST", route, done, json!([]), (422, "body-invalid")),
        (
            "POST",
            "/api/steps/{id}/notes",
            "/api/steps/feature-auth:2/notes",
            json!({"text": " "}),
            (422, "body-invalid"),
        ),
        (
            "POST",
            "/api/steps/{id}/set",
            "/api/steps/feature-auth:2/set",
            json!({"key": "id", "value": "a"}),
            (422, "usage"),
        ),
        (
            "POST",
            "/api/steps/{id}/confirm",
            "/api/steps/feature-auth:2/confirm",
            json!({}),
            (403, "confirmation-by-person"),
        ),
    ];
    let before = tree(&place.work());
    for (method, path, url, body, expected) in cases {
        let answer = server.json_with(method, url, "", &body);
        assert_eq!(answer.problem(), (expected.0, expected.1.to_owned()), "{url} {body}");
        let operation = &document["paths"][path][method.to_lowercase()];
        check(&document, (method, path, operation), &answer);
    }
    let confirm =
        server.json_with("POST", "/api/steps/feature-auth:2/confirm", "", &json!({"note": "it's fine"}));
    // The command is for a person; the hint is for the client.
    let refusal = confirm.json();
    assert_eq!(
        refusal["details"]["command"], "planwatch confirm feature-auth:2 --note 'it'\\''s fine'",
        "{refusal}"
    );
    assert_eq!(refusal["hint"], "a person has to confirm it at a terminal", "{refusal}");
    assert_eq!(tree(&place.work()), before);
}

/// Requests, and the command lines with the same answers.
const SAME: &[(&str, &str, &str, &str)] = &[
    ("GET", "/api/status", "", "status"),
    ("GET", "/api/status?days=30", "", "status --days 30"),
    ("GET", "/api/stale?days=2", "", "stale --days 2"),
    ("GET", "/api/stats?since=2026-01-01&by_agent=true", "", "stats --since 2026-01-01 --by-agent"),
    ("GET", "/api/list", "", "list"),
    ("GET", "/api/list?all=true&limit=200", "", "list --all"),
    ("GET", "/api/list?status=active,draft&tag=web", "", "list --status active --status draft --tag web"),
    ("GET", "/api/list/ledger-migration", "", "list ledger-migration"),
    (
        "GET",
        "/api/list/ledger-migration?status=failed&status=blocked",
        "",
        "list ledger-migration --status failed,blocked",
    ),
    ("GET", "/api/show/feature-auth", "", "show feature-auth"),
    ("GET", "/api/show/feature-auth?full=true", "", "show feature-auth --full"),
    ("GET", "/api/show/feature-auth?graph=mermaid", "", "show feature-auth --graph mermaid"),
    ("GET", "/api/show/ledger-migration:2.75", "", "show ledger-migration:2.75"),
    ("GET", "/api/next", "", "next"),
    ("GET", "/api/next?plan=fence-repair", "", "next fence-repair"),
    ("GET", "/api/search?query=invoice&limit=20", "", "search invoice"),
    ("GET", "/api/search?query=the&kind=step&limit=3", "", "search the --kind step --limit 3"),
    ("GET", "/api/problems", "", "check"),
    ("GET", "/api/problems?git=false", "", "check"),
    ("GET", "/api/decisions", "", "decide"),
    ("GET", "/api/decisions/topics", "", "decide --topics"),
    ("GET", "/api/insights", "", "insight"),
    ("GET", "/api/scripts", "", "script list"),
    ("GET", "/api/templates", "", "template list"),
    ("GET", "/api/templates/bugfix", "", "template show bugfix"),
    ("GET", "/api/templates/step", "", "template show step"),
    ("POST", "/api/templates/bugfix/render", r#"{"title":"A fault"}"#, "template|render|bugfix|A fault"),
    ("GET", "/api/instructions?topic=claims", "", "instructions claims"),
    ("GET", "/api/undo", "", "undo --list"),
    ("GET", "/api/plans/feature-auth/export?format=json", "", "export feature-auth --format json"),
    ("GET", "/api/plans/feature-auth/export?format=adr", "", "export feature-auth --format adr"),
    (
        "GET",
        "/api/sql?query=select%20id%20from%20plans%20order%20by%20id",
        "",
        "sql|select id from plans order by id",
    ),
    ("POST", "/api/claim", r#"{"dry_run":true}"#, "claim --dry-run"),
    (
        "POST",
        "/api/plans/fence-repair/claim",
        r#"{"dry_run":true,"by":"bo"}"#,
        "claim fence-repair --dry-run --by bo",
    ),
    (
        "POST",
        "/api/steps/feature-auth:0/done",
        r#"{"dry_run":true,"message":"m"}"#,
        "done feature-auth:0 --dry-run -m m",
    ),
    (
        "POST",
        "/api/steps/feature-auth:0/fail",
        r#"{"dry_run":true,"by":"bo"}"#,
        "fail feature-auth:0 --dry-run --by bo",
    ),
    ("POST", "/api/plans/feature-auth/skip", r#"{"dry_run":true}"#, "skip feature-auth --dry-run"),
    (
        "POST",
        "/api/steps/feature-auth:1/attempts",
        r#"{"dry_run":true,"outcome":"so","notes":""}"#,
        "attempt feature-auth:1 so --notes= --dry-run",
    ),
    (
        "POST",
        "/api/plans/feature-auth/notes",
        r#"{"dry_run":true,"text":"hm","type":"warning"}"#,
        "note feature-auth hm --type warning --dry-run",
    ),
    (
        "POST",
        "/api/new",
        r#"{"title":"Sign in","steps":["A","B"],"goals":["g"],"dry_run":true}"#,
        "new|Sign in|A|B|--goal|g|--dry-run",
    ),
    (
        "POST",
        "/api/new",
        r#"{"title":"Sign in","template":"bugfix","draft":true,"dry_run":true}"#,
        "new|Sign in|--template|bugfix|--draft|--dry-run",
    ),
    (
        "POST",
        "/api/plans/feature-auth/add",
        r#"{"title":"T","after":"2","metadata":{"a":1},"dry_run":true}"#,
        "add feature-auth T --after 2 --metadata {\"a\":1} --dry-run",
    ),
    (
        "POST",
        "/api/steps/feature-auth:2/set",
        r#"{"key":"title","value":"T: 1","dry_run":true}"#,
        "set|feature-auth:2|title|T: 1|--dry-run",
    ),
    (
        "POST",
        "/api/steps/feature-auth:2/set",
        r#"{"key":"tags","value":"web","op":"add","dry_run":true}"#,
        "set feature-auth:2 tags+=web --dry-run",
    ),
    (
        "POST",
        "/api/steps/feature-auth:2/set",
        r#"{"key":"tags","value":["a","b"],"dry_run":true}"#,
        "set|feature-auth:2|tags|\n- a\n- b|--yaml|--dry-run",
    ),
    (
        "POST",
        "/api/plans/feature-auth/unset",
        r#"{"key":"priority","dry_run":true}"#,
        "set feature-auth priority --unset --dry-run",
    ),
    (
        "POST",
        "/api/steps/fence-repair:4/move",
        r#"{"after":"1","dry_run":true}"#,
        "move fence-repair:4 --after 1 --dry-run",
    ),
    ("POST", "/api/plans/fence-repair/archive", r#"{"dry_run":true}"#, "archive fence-repair --dry-run"),
    ("DELETE", "/api/steps/fence-repair:4?dry_run=true", "", "remove fence-repair:4 --dry-run"),
    ("DELETE", "/api/plans/fence-repair?dry_run=true&yes=true", "", "remove fence-repair --yes --dry-run"),
    (
        "POST",
        "/api/decisions",
        r#"{"topic":"t","decision":"d","reasoning":"r","dry_run":true}"#,
        "decide t d --because r --dry-run",
    ),
    ("POST", "/api/insights", r#"{"title":"t","text":"d","dry_run":true}"#, "insight t d --dry-run"),
    (
        "POST",
        "/api/scripts",
        r#"{"name":"deploy","command":"make all","dry_run":true}"#,
        "script|add|deploy|make all|--dry-run",
    ),
    ("POST", "/api/problems/fix", r#"{"dry_run":true}"#, "check --fix --dry-run"),
    ("POST", "/api/release-expired", r#"{"dry_run":true}"#, "release --expired --dry-run"),
];

#[test]
fn answers_match_the_command_line() {
    let place = Place::with_examples();
    assert_eq!(place.run("decide cache yes --because fast").code, 0);
    assert_eq!(place.run("insight slow it").code, 0);
    assert_eq!(place.run("script add build make").code, 0);
    place.date_changes();
    let server = Server::open(&place);
    for (method, path, body, line) in SAME {
        let body: Value =
            if body.is_empty() { Value::Null } else { serde_json::from_str(body).expect("it is JSON") };
        let words: Vec<_> = line.split(if line.contains('|') { '|' } else { ' ' }).collect();
        let typed = place.run_with(&[words.as_slice(), &["--json"]].concat());
        let answer = server.json_with(method, path, "", &body);
        assert_eq!(answer.status, 200, "{path}: {answer:?}; typed: {typed:?}");
        let mut answered = answer.json();
        let next = answered.as_object_mut().and_then(|it| it.remove("next_cursor"));
        assert!(next.is_none_or(|it| it.is_null()), "{path} has another page");
        let mut typed = typed.json();
        // The command line prints the whole list.
        for object in [&mut answered, &mut typed] {
            if let Some(more) = object.get_mut("more") {
                *more = json!(0);
            }
        }
        assert_eq!(answered, typed, "{path} and `{line}`");
    }
}

#[test]
fn writing_routes_write_the_same_as_the_command_line() {
    let place = Place::with_examples();
    let server = Server::open(&place);
    let ask = |method: &str, path: &str, body: Value| server.json_with(method, path, "", &body);
    let made = ask("POST", "/api/new", json!({"title": "Sign in", "steps": ["Schema", "Tests"]}));
    assert_eq!((made.status, &made.json()["changes"][0]["id"]), (201, &json!("sign-in")));
    assert!(place.text("plans/sign-in/step-2.md").contains("Tests"));
    let claimed = ask("POST", "/api/plans/sign-in/claim", json!({"by": "bo", "lease": "2h"})).json();
    assert_eq!(claimed["step"]["id"], "sign-in:1");
    let claim = claimed["claim"]["id"].as_str().expect("a claim").to_owned();
    let renewed = ask("POST", &format!("/api/claims/{claim}/renew"), json!({"lease": "3h"})).json();
    assert_eq!(renewed["claim"]["until"], "2026-11-21T15:00:00Z");
    let refused = ask("POST", "/api/steps/sign-in:1/done", json!({"by": "eve"}));
    assert_eq!(refused.problem(), (409, "claimed".to_owned()));
    let done =
        ask("POST", "/api/steps/sign-in:1/done", json!({"by": "bo", "claim": claim, "message": "made"}));
    assert_eq!(done.json()["changes"][0]["now"]["status"], "completed");
    assert!(place.text("plans/sign-in/step-1.md").contains("status: completed"));
    let again = ask("POST", "/api/steps/sign-in:1/done", json!({"by": "eve", "claim": "g0000000"}));
    assert_eq!(again.problem().0, 409);
    let undone = ask("POST", "/api/undo", json!({}));
    assert_eq!((undone.status, &undone.json()["verb"]), (200, &json!("undo")), "{undone:?}");
    let document = "# Trip\n\n- [ ] Book\n- [ ] Pack\n";
    let imported = ask("POST", "/api/import", json!({"text": document}));
    assert_eq!(
        (imported.status, &imported.json()["changes"][0]["id"]),
        (201, &json!("trip")),
        "{imported:?}"
    );
    assert!(place.text("plans/trip/step-2.md").contains("Pack"));
    let refused = ask("POST", "/api/import", json!({"text": document}));
    assert_eq!(refused.problem(), (409, "already-imported".to_owned()));
    assert!(refused.json()["hint"].as_str().is_some_and(|it| it.contains("`again`")), "{refused:?}");
    let second = ask("POST", "/api/import", json!({"text": document, "again": true}));
    assert_eq!((second.status, &second.json()["changes"][0]["id"]), (201, &json!("trip-2")), "{second:?}");
    let twice = ask("POST", "/api/import", json!({"text": document, "name": "trip", "again": true}));
    assert_eq!(twice.problem(), (409, "plan-exists".to_owned()));
    assert_eq!(ask("DELETE", "/api/plans/trip?yes=true", Value::Null).status, 200);
    assert!(!place.file("plans/trip").exists());
    assert_eq!(ask("GET", "/api/list/trip", Value::Null).problem(), (404, "not-found".to_owned()));
}

#[test]
fn lists_have_pages() {
    let place = Place::with_examples();
    let server = Server::open(&place);
    let whole = server.json("GET", "/api/list/ledger-migration", &Value::Null);
    let all: Vec<_> = list(&whole["steps"]).iter().map(|it| it["id"].clone()).collect();
    let (mut path, mut read) = ("/api/list/ledger-migration?limit=2".to_owned(), Vec::new());
    loop {
        let page = server.json_with("GET", &path, "", &Value::Null);
        read.extend(list(&page.json()["steps"]).iter().map(|it| it["id"].clone()));
        let Some(link) = page.header("link") else {
            assert_eq!(page.json()["next_cursor"], Value::Null);
            break;
        };
        let (next, relation) = link.split_once("; ").expect("a link has a relation");
        assert_eq!(relation, "rel=\"next\"");
        path = next.trim_matches(['<', '>']).to_owned();
        assert!(path.starts_with("/api/list/ledger-migration?limit=2&cursor="), "{path}");
    }
    assert!(all.len() > 4);
    assert_eq!(read, all);
}

/// Whether an operation declares this header.
fn takes_header(operation: &Value, name: &str) -> bool {
    list(&operation["parameters"]).iter().any(|it| it["in"] == "header" && it["name"] == name)
}

#[test]
fn if_match_is_checked_or_refused() {
    let place = Place::with_examples();
    let server = Server::open(&place);
    let document = document(&server);
    let before = tree(&place.work());
    let mut n_decided = 0;
    for (method, path, operation) in operations(&document).iter().filter(|(method, ..)| method != "GET") {
        let mut body = operation["requestBody"]["content"]["application/json"]["example"].clone();
        if let Some(body) = body.as_object_mut() {
            body.remove("dry_run");
        }
        let path_and_query = example_path(path, operation).replace("dry_run=true", "dry_run=false");
        let answer = server.json_with(method, &path_and_query, "If-Match: \"0123\"\r\n", &body);
        check(&document, (method, path, operation), &answer);
        let is_refused = answer.body.contains("cannot have an etag as a condition");
        assert_eq!(is_refused, !takes_header(operation, "If-Match"), "{method} {path}: {}", answer.body);
        n_decided += usize::from(answer.status == 412);
    }
    assert!(n_decided > 8, "{n_decided}");
    assert_eq!(tree(&place.work()), before);
}

#[test]
fn the_document_is_complete_and_consistent() {
    let place = Place::with_examples();
    let server = Server::open(&place);
    let document = document(&server);
    assert_eq!((&document["openapi"], document.get("security")), (&json!("3.1.0"), None));
    let mut names = BTreeSet::new();
    for (method, path, operation) in operations(&document) {
        let name = operation["operationId"].as_str().expect("it has a name").to_owned();
        assert!(names.insert(name.clone()), "{name} twice");
        assert!(
            operation["summary"].as_str().is_some_and(|it| !it.is_empty() && !it.ends_with('.')),
            "{path}"
        );
        let responses = operation["responses"].as_object().expect("it answers");
        for status in ["400", "401", "403", "500", "503"] {
            assert!(responses.contains_key(status), "{method} {path}: {status}");
        }
        assert!(responses.keys().any(|it| it.starts_with('2')), "{method} {path}");
        assert!(!responses.contains_key("408"), "{method} {path}: a slow request is answered with 503");
        assert_eq!(takes_header(operation, "If-Match"), responses.contains_key("412"), "{method} {path}");
        assert_eq!(
            takes_header(operation, "If-None-Match"),
            responses.contains_key("304"),
            "{method} {path}"
        );
        let is_keyed = method != "GET" || path.ends_with("/next-step");
        assert_eq!(takes_header(operation, "Idempotency-Key"), is_keyed, "{method} {path}");
        let made = responses.get("201").is_none_or(|it| it["headers"]["Location"].is_object());
        assert!(made, "{method} {path}");
        assert!(
            responses.keys().all(|it| it.len() == 3 && !it.contains('X')),
            "{method} {path}: a range of statuses"
        );
    }
    let linked = document.to_string();
    for part in linked.split("\"operationId\":\"").skip(1) {
        let name = part.split('"').next().unwrap_or_default();
        assert!(names.contains(name), "a link leads to {name}");
    }
    let guarded = Place::with_examples();
    let server = Server::start(&guarded);
    let token = guarded.text("plans/.planwatch/token");
    let headers = format!("Authorization: Bearer {}\r\n", token.trim());
    let document = server.ask("GET", "/openapi.json", &headers, "").json();
    assert_eq!(document["security"], json!([{"token": []}]));
    let empty = Map::new();
    let references = document["components"]["schemas"].as_object().unwrap_or(&empty);
    for part in document.to_string().split("#/components/schemas/").skip(1) {
        let name = part.split('"').next().unwrap_or_default();
        assert!(references.contains_key(name), "there is no schema {name}");
    }
}

/// Verbs that need no route: they start processes, need a terminal, or set up a machine. `steps` is a hidden verb for
/// `list`.
const WITHOUT_ROUTE: [&str; 16] = [
    "board",
    "browser",
    "completions",
    "draft",
    "edit",
    "git",
    "help",
    "hook",
    "init",
    "lsp",
    "man",
    "mcp",
    "run",
    "steps",
    "token",
    "trust",
];

#[test]
fn every_other_verb_of_the_command_line_has_a_route() {
    let source = read(&root().join("src/bin/planwatch/args.rs"));
    let names = source.lines().filter_map(|it| it.split_once(") = \"")?.1.split('"').next());
    let verbs: BTreeSet<_> = names.collect();
    let commands = routes::commands();
    let routed: BTreeSet<_> = commands.iter().filter_map(|it| it.split(' ').next()).collect();
    assert!(verbs.difference(&routed).eq(&WITHOUT_ROUTE), "{verbs:?} and {routed:?}");
    for script in ["add", "list", "show", "remove"] {
        assert!(commands.contains(&format!("script {script}").as_str()), "{script}");
    }
}

const BEGIN: &str = "<!-- generated from the routes; `PLANWATCH_BLESS=1 cargo test` updates it -->\n";

#[test]
fn the_page_lists_every_route() {
    let path = root().join("docs/http-routes.md");
    let page = read(&path);
    let (before, after) = page.split_once(BEGIN).expect("the table has a beginning");
    let rest = after.split_once("\n\n").map_or("", |(_, rest)| rest);
    let wanted = format!("{before}{BEGIN}{}\n{rest}", routes::markdown());
    if std::env::var_os("PLANWATCH_BLESS").is_some() {
        std::fs::write(&path, &wanted).expect("it can be written");
    }
    assert!(
        page == wanted || std::env::var_os("PLANWATCH_BLESS").is_some(),
        "the table is not that of the routes"
    );
}
