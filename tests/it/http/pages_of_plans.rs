//! Details of the browser's pages: timelines, boards, filters, details of steps, conflicts, and the exported file.

use super::client::Server;
use super::pages::{act, field, page_token, signed_in};
use crate::support::Place;

/// A plan `p` with these files, and a server.
fn with_plan(files: &[(&str, &str)]) -> (Place, Server, String) {
    let place = Place::new();
    place.write("plans/p/plan.md", "---\nstatus: active\npriority: high\n---\n# P\n");
    for (name, text) in files {
        place.write(&format!("plans/p/{name}"), text);
    }
    let server = Server::start(&place);
    let cookie = signed_in(&place, &server, "");
    (place, server, cookie)
}

/// `ann` completed step 1 long before the plan was committed.
const DONE: &str = "---\nstatus: completed\ncreated_at: 2026-10-10T08:00:00Z\nattempts:\n  - at: 2026-10-14T08:00:00Z\n    by: ann\n    outcome: completed\n---\n# One\n";

#[test]
fn a_timeline_shows_recorded_times_and_not_the_day_of_the_commit() {
    let partial = DONE
        .replace("status: completed", "status: pending")
        .replace("outcome: completed", "outcome: partial");
    let (place, server, cookie) = with_plan(&[("step-1.md", DONE), ("step-2.md", &partial)]);
    place.git("init -q");
    place.git("add .");
    place.git("-c user.name=Ann -c user.email=a@example.org commit -q -m plans");
    let page = server.ask("GET", "/plan/p?view=timeline", &cookie, "").body;
    assert!(page.contains("waiting from 2026-10-10T08:00:00Z to 2026-10-14T08:00:00Z"), "{page}");
    assert!(!page.contains("completed since") && !page.contains("completed from"), "{page}");
    assert!(page.contains("class=\"mark is-partial\"") && page.contains("partly done"), "{page}");
    let reported = place.run("log p --timeline --json").json();
    let spans = &reported["steps"][0]["spans"];
    assert_eq!(spans[0]["to"], "2026-10-14T08:00:00Z", "{reported}");
    assert_eq!(
        (&spans[1]["status"], &spans[1]["from"]),
        (&"completed".into(), &"2026-10-14T08:00:00Z".into())
    );
    // The exported page draws the same.
    let exported = place.run("export p --format html").ok();
    assert!(exported.contains("waiting from 2026-10-10T08:00:00Z to 2026-10-14T08:00:00Z"), "{exported}");
}

#[test]
fn the_export_is_the_one_of_the_command_line() {
    let (place, server, cookie) = with_plan(&[("step-1.md", DONE)]);
    let page = server.ask("GET", "/plan/p", &cookie, "");
    assert!(page.body.contains("href=\"/plan/p/export\""), "{page:?}");
    let file = server.ask("GET", "/plan/p/export", &cookie, "");
    assert_eq!(file.header("content-disposition"), Some("attachment; filename*=UTF-8''p.html"));
    assert!(file.header("content-security-policy").is_some_and(|it| it.contains("style-src 'self';")));
    assert_eq!(file.body, place.run("export p --format html").ok());
    assert_eq!(server.ask("GET", "/plan/p/export", "", "").status, 401);
    assert_eq!(server.ask("GET", "/plan/q/export", &cookie, "").status, 404);
}

#[test]
fn a_board_shows_some_closed_and_waiting_steps_and_all_ready_ones() {
    let names: Vec<String> = (1..=90).map(|it| format!("step-{it}.md")).collect();
    let texts: Vec<String> = (1..=90)
        .map(|it| match it {
            ..=30 => DONE.replace("# One", "# Old"),
            31..=60 => "# Ready\n".to_owned(),
            _ => "---\ndepends: [31]\nassignee: bob\n---\n# Later\n".to_owned(),
        })
        .collect();
    let files: Vec<(&str, &str)> =
        names.iter().map(String::as_str).zip(texts.iter().map(String::as_str)).collect();
    let (_place, server, cookie) = with_plan(&files);
    let page = |query: &str| server.ask("GET", &format!("/plan/p{query}"), &cookie, "").body;
    let cards = |query: &str| page(query).matches("class=\"card ").count();
    assert_eq!([cards(""), cards("?all=closed"), cards("?all=waiting")], [70, 80, 80]);
    assert!(page("").contains("?all=closed&amp;q=&amp;by=#column-closed\">Show all 30"), "{}", page(""));
    assert_eq!(
        [cards("?by=bob"), cards("?by=ann"), cards("?q=READY"), cards("?q=31"), cards("?q=none")],
        [20, 20, 30, 1, 0]
    );
    // A priority that all steps have from their plan is not repeated on each card.
    assert!(!page("").contains("high priority"), "{}", page(""));
}

#[test]
fn a_ready_column_that_is_too_long_links_to_the_list() {
    let names: Vec<String> = (1..=205).map(|it| format!("step-{it}.md")).collect();
    let files: Vec<(&str, &str)> = names.iter().map(|it| (it.as_str(), "# Ready\n")).collect();
    let (_place, server, cookie) = with_plan(&files);
    let page = server.ask("GET", "/plan/p", &cookie, "").body;
    assert_eq!(page.matches("class=\"card ").count(), 200);
    assert!(page.contains("?view=list\">All 205 in the list") && !page.contains("?all=ready"), "{page}");
}

#[test]
fn a_priority_is_shown_only_if_it_differs_from_that_of_the_plan() {
    let low = "---\npriority: low\n---\n# Low\n";
    let closed = DONE.replace("status:", "priority: critical\nstatus:");
    let (_place, server, cookie) =
        with_plan(&[("step-1.md", low), ("step-2.md", "# As the plan\n"), ("step-3.md", &closed)]);
    for query in ["", "?view=list"] {
        let page = server.ask("GET", &format!("/plan/p{query}"), &cookie, "").body;
        assert!(page.contains("low priority"), "{page}");
        assert!(!page.contains("high priority") && !page.contains("critical priority"), "{page}");
    }
}

#[test]
fn filtered_plans_are_shown_first() {
    let (_place, server, cookie) = with_plan(&[("step-1.md", "# One\n")]);
    let order = |path: &str| {
        let page = server.ask("GET", path, &cookie, "").body;
        assert!(page.contains("action=\"/#plans\"") && page.contains("href=\"/#plans\""), "{page}");
        page.find("id=\"plans\"") < page.find("id=\"panel-attention\"")
    };
    let found = ["/", "/?q=p", "/?status=all", "/?sort=title", "/?tag=x", "/?all=ready"].map(order);
    assert_eq!(found, [false, true, true, true, true, false]);
}

#[test]
fn details_of_a_step_are_set_as_the_command_line_sets_them() {
    let (place, server, cookie) = with_plan(&[("step-1.md", "# One\n"), ("step-2.md", "# Two\n")]);
    let token = page_token(&server.ask("GET", "/step/p:2", &cookie, ""));
    let set = |key: &str, value: &str| {
        let body = format!("page={token}&back=/&id=p:2&do=set&key={key}&value={value}");
        act(&server, &cookie, &body)
    };
    for (key, value, written) in [
        ("title", "Another", "Another"),
        ("assignee", "bob", "assignee: bob"),
        ("depends", "1", "depends:\n  - 1"),
        ("priority", "low", "priority: low"),
        ("due", "2026-12-24", "due: 2026-12-24"),
    ] {
        assert_eq!(set(key, value).status, 303, "{key}");
        let text = place.text("plans/p/step-2.md");
        assert!(text.contains(written), "{text}");
    }
    let page = server.ask("GET", "/step/p:2", &cookie, "").body;
    for shown in ["value=\"Another\"", "value=\"bob\"", "value=\"1\"", "value=\"2026-12-24\"", "selected>low"]
    {
        assert!(page.contains(shown), "{shown}: {page}");
    }
    let before = place.text("plans/p/step-2.md");
    for (key, value, says) in [
        ("depends", "7", "7"),
        ("depends", "2", "2"),
        ("due", "tomorrow", "tomorrow"),
        ("priority", "urgent", "urgent"),
        ("status", "completed", "not understood"),
    ] {
        let refused = set(key, value);
        assert!(refused.status >= 400 && refused.body.contains(says), "{key} {value}: {refused:?}");
    }
    assert_eq!(place.text("plans/p/step-2.md"), before);
    for key in ["assignee", "due", "priority", "depends"] {
        assert_eq!(set(key, "").status, 303, "{key}");
    }
    let text = place.text("plans/p/step-2.md");
    assert!(
        !text.contains("bob") && !text.contains("2026") && !text.contains("low") && !text.contains("[1]"),
        "{text}"
    );
}

/// The fields were filled before someone else changed the step.
#[test]
fn a_detail_that_changed_while_its_form_was_open_is_not_replaced() {
    let (place, server, cookie) = with_plan(&[
        ("step-1.md", "# One\n"),
        ("step-2.md", "# Two\n"),
        ("step-3.md", "---\nconfirm: required\ndepends: [1]\n---\n# Three\n"),
    ]);
    let page = server.ask("GET", "/step/p:3", &cookie, "");
    let (token, etag) = (page_token(&page), field(&page, "etag"));
    assert!(page.body.contains("name=\"was\" value=\"1\""), "{page:?}");
    let set = |key: &str, was: &str, value: &str| {
        let body = format!("page={token}&back=/&id=p:3&do=set&key={key}&was={was}&value={value}");
        act(&server, &cookie, &body)
    };
    place.run("set p:3 depends+=2 -q").ok();
    let before = place.text("plans/p/step-3.md");
    let refused = set("depends", "1", "1,0");
    assert!(refused.status == 409 && refused.body.contains("<bdi>1, 2</bdi> <bdi>now"), "{refused:?}");
    let confirm = |etag: &str| {
        let body = format!("page={token}&back=/&id=p:3&do=confirm&etag={etag}");
        act(&server, &cookie, &body).status
    };
    assert_eq!(confirm(&etag), 412, "the text may have changed");
    assert_eq!(place.text("plans/p/step-3.md"), before);
    assert_eq!(set("depends", "1,%202", "2").status, 303);
    assert_eq!(set("title", "Three", "Third").status, 303, "other details do not count");
    assert_eq!(confirm(&field(&server.ask("GET", "/step/p:3", &cookie, ""), "etag")), 303);
}

#[test]
fn a_text_that_is_saved_without_a_change_leaves_the_file_as_it_is() {
    for text in [
        "One\n===\n\nline a\n",
        "<!-- owner -->\n# One\n\nBody\n",
        "intro\n\n# One\n\na\n\n\n",
        "  # One\n\n    code\n",
        "#\tOne\na",
        "\r\n# One\r\n\r\na\r\n\r\n",
        "no heading\n",
    ] {
        let (place, server, cookie) = with_plan(&[("step-1.md", text)]);
        let editor = server.ask("GET", "/step/p:1/edit", &cookie, "");
        let shown = editor.body.split("autofocus>\n").nth(1).and_then(|it| it.split("</textarea>").next());
        let shown = shown.expect("it has a text area").replace('\n', "%0D%0A");
        let (token, etag) = (page_token(&editor), field(&editor, "etag"));
        let body = format!("page={token}&back=/&id=p:1&do=text&etag={etag}&text={shown}");
        assert_eq!(act(&server, &cookie, &body).status, 303, "{text:?}");
        assert_eq!(place.text("plans/p/step-1.md"), text);
    }
}

#[test]
fn undo_names_the_person_whose_work_it_undoes() {
    let (place, server, cookie) = with_plan(&[("step-1.md", "# One\n")]);
    place.run("claim p:1 --by codex -q").ok();
    place.run("done p:1 --by codex -m tested -q").ok();
    let part = format!("{cookie}X-Planwatch-Part: 1\r\n");
    let asked = server.ask("GET", "/undo?last=1", &part, "").body;
    assert!(asked.contains("<bdi>codex</bdi></strong> completed <a href=\"/step/p:1\">"), "{asked}");
    let page = server.ask("GET", "/undo", &cookie, "").body;
    assert!(page.contains("completed <a") && page.contains("</strong> claimed <a"), "{page}");
}

#[test]
fn a_conflict_marks_the_lines_that_differ() {
    let (place, server, cookie) = with_plan(&[("step-1.md", "# One\n\nsame\nold\n")]);
    let editor = server.ask("GET", "/step/p:1/edit", &cookie, "");
    let token = page_token(&editor);
    let etag = field(&editor, "etag");
    place.write("plans/p/step-1.md", "# One\n\nsame\ntheirs\n");
    let body = format!("page={token}&back=/&id=p:1&do=text&etag={etag}&text=same%0Amine%0A");
    let page = act(&server, &cookie, &body).body;
    let mine = page.split("<del>").nth(1).and_then(|it| it.split("</del>").next()).unwrap_or_default();
    let theirs = page.split("<ins>").nth(1).and_then(|it| it.split("</ins>").next()).unwrap_or_default();
    assert!(mine.contains("mi") && theirs.contains("the"), "{page}");
    assert!(!mine.contains("same") && page.contains("was changed after this page had read it"), "{page}");
    assert!(!page.contains("expected version"), "{page}");
}
