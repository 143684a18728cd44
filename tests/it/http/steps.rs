//! Plans and steps over HTTP: their JSON, etags, and repeated requests.

use serde_json::{Value, json};

use crate::support::{Place, tree};

use super::client::Server;

const STEP: &str = "plans/fence-repair/step-4.md";

#[test]
fn plans_and_steps_have_the_fields_that_scripts_use() {
    let place = Place::with_examples();
    assert_eq!(place.run("archive docs-onboarding").code, 0);
    let server = Server::open(&place);
    let plans = server.json("GET", "/api/plans", &Value::Null);
    let ids: Vec<_> = plans.as_array().expect("an array").iter().map(|it| it["id"].clone()).collect();
    assert!(ids.contains(&json!("fence-repair")) && !ids.contains(&json!("docs-onboarding")), "{ids:?}");
    assert_eq!(server.json("GET", "/api/plans/docs-onboarding", &Value::Null)["archived"], true);
    let one = server.json("GET", "/api/plans?title=fence-repair", &Value::Null);
    let title = one[0]["title"].as_str().expect("a title").replace(' ', "%20");
    assert_eq!(server.json("GET", &format!("/api/plans?title={title}"), &Value::Null), one);
    assert_eq!(server.json("GET", "/api/plans?title=fence", &Value::Null), json!([]));
    assert!(one[0]["inserted_at"].is_string() && one[0]["status"] == "active", "{one}");
    let steps = server.json("GET", "/api/plans/fence-repair/steps", &Value::Null);
    let steps = steps.as_array().expect("an array");
    let fourth = steps.iter().find(|it| it["id"] == "fence-repair:4").expect("it is there");
    assert_eq!((&fourth["step_number"], &fourth["status"]), (&json!(4), &json!("pending")));
    let text = place.text(STEP);
    let body = text.splitn(3, "---\n").nth(2).expect("a body");
    assert_eq!(fourth["description"], body);
    assert_eq!(server.json("GET", "/api/steps/fence-repair:4", &Value::Null), *fourth);
}

#[test]
fn a_plan_with_a_text_is_created_once() {
    let place = Place::new();
    place.write("plans/old/plan.md", "---\nstatus: active\n---\n# Old\n");
    let server = Server::open(&place);
    let new = json!({"title": "New Thing", "body": "# Its heading\n\nText"});
    let made = server.json_with("POST", "/api/plans", "", &new);
    assert_eq!((made.status, made.header("location")), (201, Some("/api/plans/new-thing")));
    assert_eq!((&made.json()["id"], &made.json()["title"]), (&json!("new-thing"), &json!("Its heading")));
    let file = place.text("plans/new-thing/plan.md");
    assert!(file.ends_with("---\n# Its heading\n\nText\n") && !file.contains("title:"), "{file}");
    let empty = json!({"title": "Without Text", "body": ""});
    let made = server.json_with("POST", "/api/plans", "", &empty);
    let again = server.json_with("POST", "/api/plans", "", &empty);
    assert_eq!((made.status, again.status, &again.json()["id"]), (201, 200, &json!("without-text")));
    let before = tree(&place.file("plans"));
    for same in ["# Its heading\n\nText", "# Its heading\n\nText\n\n", &file] {
        let body = json!({"title": "New Thing", "body": same});
        assert_eq!(server.json_with("POST", "/api/plans", "", &body).status, 200, "{same}");
    }
    let other = json!({"title": "New Thing", "body": "# Another"});
    assert_eq!(server.json_with("POST", "/api/plans", "", &other).problem(), (409, "plan-exists".to_owned()));
    let by_id = json!({"title": "old", "body": "# Old"});
    assert_eq!(server.json_with("POST", "/api/plans", "", &by_id).status, 200);
    assert_eq!(tree(&place.file("plans")), before);
    let plain = json!({"title": "Plain", "body": "---\nstatus: draft\nowner: ann\n---\nno heading"});
    assert_eq!(server.json_with("POST", "/api/plans", "", &plain).json()["status"], "draft");
    let file = place.text("plans/plain/plan.md");
    assert!(
        file.contains("title: Plain\n") && file.contains("owner: ann\n") && file.ends_with("\nno heading\n"),
        "{file}"
    );
    assert_eq!(server.json_with("POST", "/api/plans", "", &plain).status, 200);
    let changed = json!({"title": "Plain", "body": "---\nstatus: draft\nowner: bo\n---\nno heading"});
    assert_eq!(server.json_with("POST", "/api/plans", "", &changed).problem().1, "plan-exists");
    let broken = json!({"title": "Broken", "body": "---\nstatus: [\n---\n# X"});
    assert_eq!(server.json_with("POST", "/api/plans", "", &broken).status, 422);
    assert!(!place.file("plans/broken").exists());
}

#[test]
fn a_step_with_a_text_is_added_once() {
    let place = Place::new();
    place.write("plans/p/plan.md", "# P\n\n## Steps\n- step-1: First\n- step-2: Second\n");
    place.write("plans/p/step-1.md", "---\nstatus: completed\n---\n# First\n\nText\n");
    let server = Server::open(&place);
    let add = |body: Value| server.json_with("POST", "/api/plans/p/steps", "", &body);
    assert_eq!(add(json!({"description": "# First\n\nText", "step_number": 1})).status, 200);
    assert_eq!(
        add(json!({"description": "# Other", "step_number": 1})).problem(),
        (409, "step-exists".to_owned())
    );
    let second = || {
        let text = "---\ntags: [db]\n---\n# Second\n\nMore";
        add(json!({"description": text, "step_number": 2, "created_by": "user"}))
    };
    let (made, again) = (second(), second());
    assert_eq!((made.status, &made.json()["title"]), (201, &json!("Second")), "it was only in the list");
    assert_eq!((again.status, again.json()), (200, made.json()));
    let between = add(
        json!({"description": "plain first line\nand more", "after_step": 1, "metadata": {"a": 1, "b": "x: y"}}),
    );
    let between = between.json();
    assert_eq!((&between["id"], &between["step_number"]), (&json!("p:1.5"), &json!(1.5)));
    assert_eq!(
        (&between["title"], &between["metadata"]),
        (&json!("plain first line"), &json!({"a": 1, "b": "x: y"}))
    );
    assert_eq!(between["description"], "plain first line\nand more\n");
    let last = add(json!({"description": "---\ntype: test\nstatus: blocked\n---\n# Last"}));
    assert_eq!((&last.json()["id"], &last.json()["status"]), (&json!("p:3"), &json!("blocked")));
    assert_eq!(add(json!({"description": "# X", "step_number": "two"})).status, 422);
    assert_eq!(add(json!({"description": "  "})).status, 422);
    assert_eq!(place.run("check").code, 0);
}

#[test]
fn an_update_is_one_write_and_keeps_other_fields() {
    let place = Place::new();
    place.write("plans/p/plan.md", "# P\n");
    place
        .write("plans/p/step-1.md", "---\nstatus: pending # mine\nmetadata:\n  a: 1\n  b: two\n---\n# One\n");
    place.write("plans/p/step-2.md", "---\nmetadata:\n  a: 1 # why\n---\n# Two\n");
    let server = Server::open(&place);
    let patch = |id: &str, body: Value| server.json_with("PATCH", &format!("/api/steps/{id}"), "", &body);
    let now = patch(
        "p:1",
        json!({"status": "done", "result": "well", "metadata": {"b": "three", "c": [1, {"d": null}], "a": null}}),
    );
    let now = now.json();
    assert_eq!((&now["status"], &now["result"]), (&json!("completed"), &json!("well")));
    assert_eq!(now["metadata"], json!({"b": "three", "c": [1, {"d": null}]}));
    assert_eq!(
        (&now["attempts"][0]["outcome"], &now["attempts"][0]["by"]),
        (&json!("completed"), &json!("ann"))
    );
    assert!(place.text("plans/p/step-1.md").contains("status: completed # mine\n"));
    assert_eq!(place.run("undo").code, 0);
    assert!(
        place
            .text("plans/p/step-1.md")
            .contains("status: pending # mine\nmetadata:\n  a: 1\n  b: two\n---\n")
    );
    let patched = patch("p:1", json!({"result": "so far", "by": "bob"})).json();
    assert_eq!((&patched["status"], &patched["result"]), (&json!("pending"), &json!("so far")));
    assert_eq!(patched["attempts"][0]["by"], "bob");
    let before = tree(&place.file("plans"));
    assert_eq!(patch("p:1", json!({})).status, 200);
    assert_eq!(patch("p:1", json!({"metadata": {"a": 1}})).status, 200);
    assert_eq!(tree(&place.file("plans")), before);
    let commented = place.text("plans/p/step-2.md");
    assert_eq!(patch("p:2", json!({"metadata": {"a": 2}})).status, 200);
    assert_eq!(place.text("plans/p/step-2.md"), commented.replace("a: 1", "a: 2"));
}

#[test]
fn metadata_may_be_any_json() {
    let place = Place::new();
    place.write("plans/p/plan.md", "# P\n");
    place.write("plans/p/step-1.md", "# One\n");
    let server = Server::open(&place);
    let metadata = json!({
        "õQy]a\u{8d}#\u{9c}\u{c7ea3}": [null, [], [-1.5024920540636636e+102]], "7½: \u{c}P|e": {}, "": [{}, "# no comment", "1e5"],
    });
    let long = json!({"metadata": {"\u{8d}".repeat(300): 1}});
    let refused = server.json_with("PATCH", "/api/steps/p:1", "", &long);
    assert_eq!(refused.problem(), (422, "value-invalid".to_owned()), "the key is too long for YAML");
    let patched = server.json_with("PATCH", "/api/steps/p:1", "", &json!({"metadata": metadata}));
    assert_eq!((patched.status, &patched.json()["metadata"]), (200, &metadata));
    let again =
        server.json_with("PATCH", "/api/steps/p:1", "", &json!({"metadata": {"a": "# no comment either"}}));
    assert_eq!((again.status, &again.json()["metadata"]["a"]), (200, &json!("# no comment either")));
    let text = json!({"description": "# Two", "metadata": metadata});
    let added = server.json_with("POST", "/api/plans/p/steps", "", &text);
    assert_eq!((added.status, &added.json()["metadata"]), (201, &metadata));
    assert_eq!(place.run("check").code, 0);
}

#[test]
fn a_change_with_if_match_applies_only_to_that_version() {
    let place = Place::with_examples();
    let server = Server::open(&place);
    let seen = server.ask("GET", "/api/steps/fence-repair:4", "", "");
    let etag = seen.header("etag").expect("there is one").to_owned();
    let file = seen.json()["etag"].as_str().expect("there is one").to_owned();
    assert!(etag.starts_with(&format!("\"{file}-")), "{etag}");
    place.write(STEP, place.text(STEP) + "More.\n");
    let before = tree(&place.file("plans"));
    let on = |etag: &str| {
        let header = format!("If-Match: {etag}\r\n");
        server.json_with("PATCH", "/api/steps/fence-repair:4", &header, &json!({"status": "blocked"}))
    };
    let refused = on(&etag);
    assert_eq!(refused.problem(), (412, "file-changed".to_owned()));
    let details = &refused.json()["details"];
    assert_eq!((&details["id"], &details["now"]["status"]), (&json!("fence-repair:4"), &json!("pending")));
    assert_eq!(details["now"]["etag"], details["etag"]);
    assert_eq!(tree(&place.file("plans")), before);
    let read = server.ask("GET", "/api/steps/fence-repair:4", "", "");
    let now = format!("\"x\", \"{}\"", details["etag"].as_str().expect("a text"));
    assert_eq!(on(read.header("etag").expect("there is one")).status, 200);
    assert_eq!(on(&now).status, 412, "it was changed just now");
    assert_eq!(on("*").status, 200);
    let plan = server.ask("GET", "/api/plans/fence-repair", "", "");
    let old = format!("If-Match: {}\r\n", plan.header("etag").expect("there is one"));
    let add = |header: &str| {
        server.json_with(
            "POST",
            "/api/plans/fence-repair/steps",
            header,
            &json!({"description": "# One more"}),
        )
    };
    let with_list = plan.json()["body"].as_str().is_some_and(|it| it.contains("step-1"));
    assert_eq!(add(&old).status, 201);
    // The new line in the Steps list has changed the file.
    assert_eq!(add(&old).status, if with_list { 412 } else { 201 });
}

#[test]
fn an_unchanged_answer_is_not_sent_again() {
    let place = Place::with_examples();
    let server = Server::open(&place);
    for path in [
        "/api/plans",
        "/api/list?all=true",
        "/api/steps/feature-auth:2",
        "/api/plans/feature-auth",
        "/api/show/feature-auth",
    ] {
        let get = |headers: &str| server.ask("GET", path, headers, "");
        let first = get("");
        let etag = first.header("etag").unwrap_or_else(|| panic!("{path} has none")).to_owned();
        let head = server.ask("HEAD", path, "", "");
        let length = head.header("content-length").and_then(|it| it.parse().ok());
        let said = (head.status, head.body.as_str(), head.header("etag"), length);
        assert_eq!(said, (200, "", Some(etag.as_str()), Some(first.body.len())), "{path}");
        for same in [
            etag.clone(),
            "*".to_owned(),
            format!("\"x\", {etag}"),
            format!("W/{}", etag.trim_start_matches("W/")),
        ] {
            let again = get(&format!("If-None-Match: {same}\r\n"));
            let answer =
                (again.status, again.body.as_str(), again.header("etag"), again.header("content-type"));
            assert_eq!(answer, (304, "", Some(etag.as_str()), None), "{path} {same}");
        }
        for other in ["\"x\"", "x", ""] {
            let again = get(&format!("If-None-Match: {other}\r\n"));
            assert_eq!((again.status, &again.body), (200, &first.body), "{path} {other}");
        }
    }
    // A change of another file changes the answer, although the step's file is the same.
    place.write("plans/p/plan.md", "# P\n");
    place.write("plans/p/step-1.md", "# One\n");
    place.write("plans/p/step-2.md", "---\ndepends: [1]\n---\n# Two\n");
    let before = server.ask("GET", "/api/steps/p:2", "", "");
    server.json("PATCH", "/api/steps/p:1", &json!({"status": "completed"}));
    let known = format!("If-None-Match: {}\r\n", before.header("etag").expect("there is one"));
    let after = server.ask("GET", "/api/steps/p:2", &known, "");
    assert_eq!((after.status, &after.json()["etag"]), (200, &before.json()["etag"]));
    // This route claims the step, so it has no etag.
    let next = server.ask("GET", "/api/plans/fence-repair/next-step", "If-None-Match: *\r\n", "");
    assert_eq!((next.status, next.header("etag")), (200, None));
}

#[test]
fn created_objects_have_a_location() {
    let place = Place::with_examples();
    place.write("plans/Prüfung 1/plan.md", "# Exam\n");
    let server = Server::open(&place);
    let new = json!({"title": "Sign in", "steps": ["One"]});
    let document = json!({"text": "# Trip\n\n- [ ] Book\n"});
    for (path, body, expected) in [
        ("/api/new", new, "/api/plans/sign-in"),
        ("/api/import", document, "/api/plans/trip"),
        ("/api/plans/Pr%C3%BCfung%201/add", json!({"title": "Read"}), "/api/steps/Pr%C3%BCfung%201:1"),
        (
            "/api/plans/Pr%C3%BCfung%201/steps",
            json!({"description": "# Write"}),
            "/api/steps/Pr%C3%BCfung%201:2",
        ),
        (
            "/api/plans/Pr%C3%BCfung%201/steps",
            json!({"description": "# Both\n\n- [ ] This\n"}),
            "/api/steps/Pr%C3%BCfung%201:3",
        ),
        ("/api/steps/Pr%C3%BCfung%201:3/split", json!({"task": 1}), "/api/steps/Pr%C3%BCfung%201:"),
        ("/api/scripts", json!({"name": "build", "command": "make"}), "/api/scripts/build"),
        ("/api/insights", json!({"title": "a", "text": "b"}), "/api/show/"),
        ("/api/decisions", json!({"topic": "a", "decision": "b"}), "/api/show/"),
    ] {
        let made = server.json_with("POST", path, "", &body);
        let at = made.header("location").unwrap_or_else(|| panic!("{path}: {made:?}")).to_owned();
        assert!(made.status == 201 && at.starts_with(expected), "{path}: {at}");
        assert_eq!(server.ask("GET", &at, "", "").status, 200, "{at}");
    }
    let tried = server.json_with("POST", "/api/new", "", &json!({"title": "Later", "dry_run": true}));
    assert_eq!((tried.status, tried.header("location")), (200, None));
}

#[test]
fn lists_are_sorted_and_filtered() {
    let place = Place::with_examples();
    place.write("plans/p/plan.md", "# P\n");
    place.write("plans/p/step-1.md", "---\nassignee: ann\n---\n# b\n");
    place.write("plans/p/step-2.md", "---\nassignee: bo\n---\n# a\n");
    let server = Server::open(&place);
    let ids = |path: &str| {
        let answer = server.ask("GET", path, "", "").json();
        let items = answer["steps"].as_array().or(answer["plans"].as_array()).expect("a list").iter();
        items.map(|it| it["id"].as_str().expect("an id").to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(ids("/api/list/p?sort=title"), ["p:2", "p:1"]);
    assert_eq!(ids("/api/list/p?assignee=bo"), ["p:2"]);
    assert_eq!(ids("/api/list/p?updated_since=2999-01-01"), [""; 0]);
    assert_eq!(ids("/api/list?assignee=ann&all=true"), ["p"]);
    let mut all = ids("/api/list?all=true&sort=id");
    assert!(all.len() > 4 && all.is_sorted());
    all.reverse();
    assert_eq!(ids("/api/list?all=true&sort=-id"), all);
    let first = server.ask("GET", "/api/list?all=true&sort=-id&limit=2", "", "").json();
    let cursor = first["next_cursor"].as_str().expect("there is more");
    assert_eq!(ids(&format!("/api/list?all=true&sort=-id&limit=2&cursor={cursor}")), all[2..4]);
    for wrong in ["sort=age", "updated_since=yesterday"] {
        let refused = server.ask("GET", &format!("/api/list?{wrong}"), "", "");
        assert!(refused.status == 400 || refused.status == 422, "{refused:?}");
    }
}

#[test]
fn a_refused_request_may_succeed_later_with_the_same_key() {
    let place = Place::with_examples();
    let server = Server::open(&place);
    let body = json!({"title": "Thing", "body": "# Thing"});
    let make = || server.json_with("POST", "/api/plans", "Idempotency-Key: k\r\n", &body);
    place.write("plans/thing/plan.md", "# Another\n");
    assert_eq!(make().problem(), (409, "plan-exists".to_owned()));
    std::fs::remove_dir_all(place.file("plans/thing")).expect("it is there");
    let made = make();
    assert_eq!((made.status, made.header("idempotent-replayed")), (201, None), "{made:?}");
    let again = make();
    assert_eq!((again.status, again.header("idempotent-replayed")), (201, Some("true")), "{again:?}");
}

#[test]
fn the_same_key_gets_the_same_claim_even_after_a_restart() {
    let place = Place::with_examples();
    let server = Server::open(&place);
    let key = "Idempotency-Key: worker-7-1\r\n";
    let next =
        |server: &Server, headers: &str| server.ask("GET", "/api/plans/fence-repair/next-step", headers, "");
    let first = next(&server, key);
    assert_eq!((first.status, first.header("idempotent-replayed")), (200, None));
    assert!(first.json()["claim"]["id"].is_string(), "{first:?}");
    let again = next(&server, key);
    assert_eq!((&again.body, again.header("idempotent-replayed")), (&first.body, Some("true")));
    server.stop(&place);
    let server = Server::open(&place);
    assert_eq!(next(&server, key).body, first.body);
    let other = server.json_with("POST", "/api/plans", key, &json!({"title": "x"}));
    assert_eq!(other.problem(), (422, "idempotency-key-reused".to_owned()));
    let before = tree(&place.file("plans"));
    let refused = || server.json_with("POST", "/api/plans", "Idempotency-Key: k\r\n", &json!({"title": ""}));
    assert_eq!((refused().status, refused().status), (422, 422), "a refusal is not stored");
    assert_eq!(tree(&place.file("plans")), before);
    let steps = server.json("GET", "/api/plans/fence-repair/steps", &Value::Null);
    let taken = steps.as_array().expect("an array").iter().filter(|it| it["claim"].is_object()).count();
    let claimed_before = Place::with_examples().run("list fence-repair --json").json();
    let claimed_before = claimed_before["steps"]
        .as_array()
        .expect("a list")
        .iter()
        .filter(|it| it["claim"].is_object())
        .count();
    assert_eq!(taken, claimed_before + 1);
}

#[test]
fn a_claim_that_found_no_ready_step_may_find_one_later_with_the_same_key() {
    let place = Place::new();
    place.write("plans/p/plan.md", "# P\n");
    let server = Server::open(&place);
    let claim = || server.json_with("POST", "/api/plans/p/claim", "Idempotency-Key: k\r\n", &json!({}));
    let first = claim();
    assert_eq!((first.status, &first.json()["claim"]), (200, &Value::Null), "{first:?}");
    place.write("plans/p/step-1.md", "# One\n");
    let later = claim();
    assert_eq!((&later.json()["step"]["id"], later.header("idempotent-replayed")), (&json!("p:1"), None));
    let again = claim();
    assert_eq!((&again.body, again.header("idempotent-replayed")), (&later.body, Some("true")));
}

#[test]
fn no_ready_step_is_a_refusal_with_a_reason() {
    let place = Place::new();
    place.write("plans/p/plan.md", "# P\n");
    place.write("plans/p/step-1.md", "# One\n");
    let server = Server::open(&place);
    let next = || server.ask("GET", "/api/plans/p/next-step", "", "");
    let first = next().json();
    assert_eq!(
        (&first["status"], &first["step_id"], &first["step_number"]),
        (&json!("next"), &json!("p:1"), &json!(1))
    );
    assert_eq!(first["description"], "# One\n");
    let waiting = next();
    assert_eq!(waiting.problem(), (409, "nothing-ready".to_owned()));
    assert!(
        waiting.header("retry-after").is_some() && waiting.json()["details"]["state"] == "waiting",
        "{waiting:?}"
    );
    let claim = first["claim"]["id"].clone();
    server.json("PATCH", "/api/steps/p:1", &json!({"status": "completed", "claim": claim}));
    assert_eq!(next().json(), json!({"status": "complete"}));
}
