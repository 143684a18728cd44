//! `watch --json` as a process: it reports every change, whoever makes it, and writes nothing.
#![expect(clippy::disallowed_methods, reason = "tests edit files as editors do")]

use std::process::{Child, Stdio};

use serde_json::{Value, json};

use crate::support::{Lines, Place, lines_of, tree};

/// A running `watch --json`, killed at the end of the test.
struct Watch {
    child: Child,
    events: Lines,
}

impl Watch {
    /// Starts it and waits until it is ready.
    fn start(place: &Place) -> Self {
        let mut command = place.command();
        let command = command.args(["watch", "--json"]).stdout(Stdio::piped());
        let mut child = command.spawn().expect("the binary starts");
        let events = lines_of(child.stdout.take().expect("it is piped"));
        let mut watch = Self { child, events };
        let ready = watch.object();
        assert_eq!((&ready["schema_version"], &ready["kind"]), (&json!(1), &json!("ready")), "{ready}");
        assert!(ready["plans_total"].is_u64() && ready["steps_total"].is_u64(), "{ready}");
        watch
    }

    fn object(&mut self) -> Value {
        let line = self.events.next();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"))
    }

    /// The next event, reduced to the fields that the tests compare.
    fn next(&mut self) -> Value {
        let event = self.object();
        assert_eq!((&event["schema_version"], &event["kind"]), (&json!(1), &json!("event")), "{event}");
        json!([event["event"], event["id"], event["old"], event["new"]])
    }

    #[track_caller]
    fn reports(&mut self, expected: &[Value]) {
        for event in expected {
            assert_eq!(self.next(), *event);
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        // It may have exited already.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

const STEP: &str = "plans/fence-repair/step-4.md";

/// Writes a new file and renames it over the old one, as `sed -i` and most editors do.
fn save_by_rename(place: &Place, path: &str, text: &str) {
    let beside = place.file(&format!("{path}.tmp"));
    std::fs::write(&beside, text).expect("it can be written");
    std::fs::rename(&beside, place.file(path)).expect("it can be renamed");
}

#[test]
fn every_kind_of_edit_is_reported() {
    let place = Place::with_examples();
    let mut watch = Watch::start(&place);
    let with = |status: &str| place.text(STEP).replacen("status: pending", &format!("status: {status}"), 1);
    let (wip, blocked) = (with("wip"), with("blocked"));
    save_by_rename(&place, STEP, &wip);
    watch.reports(&[json!(["status", "fence-repair:4", "pending", "in_progress"])]);
    place.write(STEP, &blocked);
    watch.reports(&[json!(["status", "fence-repair:4", "in_progress", "blocked"])]);
    assert_eq!(place.run("done fence-repair:4 -m over").code, 0);
    watch.reports(&[
        json!(["attempt", "fence-repair:4", null, null]),
        json!(["status", "fence-repair:4", "blocked", "completed"]),
    ]);
    assert_eq!(place.run("undo").code, 0);
    watch.reports(&[json!(["status", "fence-repair:4", "completed", "blocked"])]);
}

#[test]
fn a_save_through_a_hard_link_is_reported_and_in_answers() {
    let place = Place::with_examples();
    let link = place.file("link.md");
    std::fs::hard_link(place.file(STEP), &link).expect("it can be linked");
    let mut watch = Watch::start(&place);
    let text = place.text(STEP).replacen("status: pending", "status: blocked", 1);
    std::fs::write(&link, text).expect("it can be written");
    let shown = place.run("list --json").json();
    let fence = shown["plans"].as_array().expect("a list").iter().find(|it| it["id"] == "fence-repair");
    let n_blocked = fence.map(|it| it["steps_blocked"].clone());
    assert_eq!(n_blocked, Some(json!(1)), "{shown}");
    watch.reports(&[json!(["status", "fence-repair:4", "pending", "blocked"])]);
}

#[test]
fn an_added_moved_or_removed_plan_is_reported() {
    let place = Place::with_examples();
    let mut watch = Watch::start(&place);
    place.write("plans/trip/plan.md", "# Trip\n");
    place.write("plans/trip/step-1.md", "---\nstatus: done\n---\n# Book\n");
    place.write("plans/trip/step-2.md", "# Pack\n");
    // The files may be found in one scan or in several, so only the final statuses are compared.
    let mut statuses = std::collections::BTreeMap::new();
    while !statuses.contains_key("trip:2") || statuses.get("trip:1") != Some(&json!("completed")) {
        let event = watch.next();
        statuses.insert(event[1].as_str().expect("an id").to_owned(), event[3].clone());
    }
    assert_eq!(statuses.get("trip:2"), Some(&json!("pending")), "{statuses:?}");
    assert_eq!(statuses.get("trip"), Some(&json!("active")), "{statuses:?}");
    // The whole directory is moved, as `git checkout` and `mv` do.
    std::fs::create_dir(place.file("elsewhere")).expect("it is new");
    std::fs::rename(place.file("plans/trip"), place.file("elsewhere/trip")).expect("it can be moved");
    watch.reports(&[
        json!(["removed", "trip:1", "completed", null]),
        json!(["removed", "trip:2", "pending", null]),
        json!(["removed", "trip", "active", null]),
    ]);
    std::fs::rename(place.file("elsewhere/trip"), place.file("plans/trip")).expect("it can be moved");
    watch.reports(&[
        json!(["added", "trip", null, "active"]),
        json!(["added", "trip:1", null, "completed"]),
        json!(["added", "trip:2", null, "pending"]),
    ]);
    std::fs::remove_dir_all(place.file("plans/trip")).expect("it can be removed");
    watch.reports(&[
        json!(["removed", "trip:1", "completed", null]),
        json!(["removed", "trip:2", "pending", null]),
        json!(["removed", "trip", "active", null]),
    ]);
}

#[test]
fn files_that_planwatch_renames_are_reported_as_its_own_changes() {
    let place = Place::new();
    for step in ["plans/trip/step-1.md", "plans/trip/step-2.md"] {
        place.write(step, "# Pack\n");
    }
    let mut watch = Watch::start(&place);
    let mut check = |command: &str, verb: &str, expected: &[&str]| {
        assert_eq!(place.run(command).code, 0, "{command}");
        let mut events: Vec<_> = expected.iter().map(|_| watch.object()).collect();
        events.sort_by_key(|it| format!("{} {}", it["event"], it["id"]));
        for (event, expected) in events.iter().zip(expected) {
            let said = format!("{} {}", event["event"], event["id"]).replace('"', "");
            assert_eq!(
                (said.as_str(), &event["source"]),
                (*expected, &json!("engine")),
                "{command}: {event}"
            );
            assert_eq!((&event["verb"], &event["by"]), (&json!(verb), &json!("ann")), "{command}: {event}");
        }
    };
    check("move trip:2 --to 9 -q", "move", &["added trip:9", "removed trip:2"]);
    let added = ["added tour", "added tour:1", "added tour:9"];
    let moved = [&added[..], &["removed trip", "removed trip:1", "removed trip:9"]].concat();
    check("move trip --to tour -q", "move", &moved);
    check("remove tour:9 --yes -q", "remove", &["removed tour:9"]);
    check("undo -q", "undo", &["added tour:9"]);
    check("archive tour -q", "archive", &["removed tour", "removed tour:1", "removed tour:9"]);
    check("undo -q", "undo", &added);
}

#[test]
fn the_last_step_completes_its_plan() {
    let place = Place::with_examples();
    place.write("plans/trip/step-1.md", "# Book\n");
    let mut watch = Watch::start(&place);
    assert_eq!(place.run("done trip:1").code, 0);
    watch.reports(&[
        json!(["status", "trip:1", "pending", "completed"]),
        json!(["status", "trip", "active", "completed"]),
    ]);
}

#[test]
fn changes_by_a_merge_are_reported() {
    let place = Place::with_examples();
    let step = place.text(STEP);
    place.git("init -q");
    place.git("add -A");
    place.git("commit -q -m plans");
    place.git("checkout -q -b feature");
    place.write(STEP, step.replacen("status: pending", "status: blocked", 1));
    place.write("plans/new/step-1.md", "# One\n");
    place.git("add -A");
    place.git("commit -q -m blocked");
    place.git("checkout -q main");
    let mut watch = Watch::start(&place);
    place.git("merge -q --no-ff --no-edit feature");
    let mut events = [watch.next(), watch.next(), watch.next()];
    events.sort_by_key(Value::to_string);
    let expected = [
        json!(["added", "new", null, "active"]),
        json!(["added", "new:1", null, "pending"]),
        json!(["status", "fence-repair:4", "pending", "blocked"]),
    ];
    assert_eq!(events, expected);
}

#[test]
fn a_file_that_is_broken_for_a_moment_causes_no_event() {
    let place = Place::with_examples();
    let mut watch = Watch::start(&place);
    let text = place.text(STEP);
    place.write(STEP, "---\nstatus: [\n");
    place.write(STEP, &text);
    place.write("plans/fence-repair/step-3.md", "---\nstatus: wip\n---\n# Choose\n");
    watch.reports(&[json!(["status", "fence-repair:3", "pending", "in_progress"])]);
}

#[test]
fn watching_writes_nothing() {
    let place = Place::with_examples();
    let before = tree(&place.work());
    let mut watch = Watch::start(&place);
    assert_eq!(tree(&place.work()), before);
    let edited = place.text(STEP).replacen("status: pending", "status: wip", 1);
    place.write(STEP, &edited);
    watch.next();
    drop(watch);
    let mut expected = before;
    expected.insert(STEP.to_owned(), edited.into_bytes());
    assert_eq!(tree(&place.work()), expected);
}

#[test]
fn watching_ends_normally_without_a_reader() {
    let place = Place::with_examples();
    let mut command = place.command();
    let command = command.arg("watch").stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut watch = command.spawn().expect("the binary starts");
    let mut messages = lines_of(watch.stderr.take().expect("it is piped"));
    assert_eq!(messages.next(), "watching 5 plans with 31 steps; Ctrl-C ends it");
    drop(watch.stdout.take());
    assert_eq!(place.run("done feature-auth:0").code, 0);
    // Its stderr ends when the process ends.
    assert!(messages.end().is_empty());
    assert!(watch.wait().expect("it ended").success());
}

#[test]
fn a_status_changed_by_a_merge_is_reported() {
    let place = Place::new();
    place.write("plans/p/plan.md", "# P\n");
    place.write("plans/p/step-1.md", "---\nstatus: pending\n---\n# One\n");
    place.git_with(&["init", "-q", "-b", "main"]);
    let commit = |name: &str| {
        place.git_with(&["add", "plans"]);
        place.git_with(&["commit", "-q", "--allow-empty", "-m", name]);
    };
    commit("begin");
    place.git_with(&["checkout", "-q", "-b", "feature"]);
    place.write("plans/p/step-1.md", "---\nstatus: completed\n---\n# One\n");
    commit("done");
    place.git_with(&["checkout", "-q", "main"]);
    commit("other");
    let mut watch = Watch::start(&place);
    place.git_with(&["merge", "-q", "--no-edit", "feature"]);
    watch.reports(&[json!(["status", "p:1", "pending", "completed"])]);
}
