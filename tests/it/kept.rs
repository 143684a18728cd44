//! On every interface, the next command reports a displaced save, even if the command itself fails.
#![expect(clippy::disallowed_methods, reason = "tests edit files as editors do")]

use std::fs;
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};

use crate::http::client::Server;
use crate::support::{Place, Ran};

/// Writes into the version that planwatch replaced last, like an editor that had the file open. The age of the lock makes
/// the next command check these versions.
fn save_late(place: &Place, text: &str) {
    save_late_in(place, "plans/.planwatch/displaced", text);
}

fn save_late_in(place: &Place, displaced: &str, text: &str) {
    let displaced = place.file(displaced);
    let versions = fs::read_dir(displaced).expect("it is there").flatten().map(|it| it.path());
    let is_kept = |it: &std::path::PathBuf| it.to_string_lossy().contains("kept-");
    let newest = versions.filter(|it| !is_kept(it)).max_by_key(|it| it.file_name().map(ToOwned::to_owned));
    fs::write(newest.expect("there is one"), text).expect("it can be written");
    let lock = fs::File::open(place.file("plans/.planwatch/lock")).expect("it is there");
    lock.set_modified(SystemTime::now() - Duration::from_secs(60)).expect("it can be set");
}

#[track_caller]
fn check(kept: &Value, place: &Place, text: &str) {
    assert_eq!(kept.as_array().map(Vec::len), Some(1), "{kept}");
    assert_eq!((&kept[0]["path"], &kept[0]["why"]), (&json!("p/step-1.md"), &json!("late")), "{kept}");
    assert_eq!(place.text(&format!("plans/{}", kept[0]["kept"].as_str().expect("a path"))), text);
}

fn place() -> Place {
    let place = Place::new();
    place.write("plans/p/step-1.md", "# One\n");
    place.write("plans/p/step-2.md", "---\ndepends: [1]\n---\n# Two\n");
    place
}

#[test]
fn the_command_line_reports_it_in_answers_and_errors() {
    let place = place();
    assert!(place.run("note p:1 first --json").json().get("kept").is_none());
    save_late(&place, "in time\n");
    let ran = place.run("note p:1 second --json");
    check(&ran.json()["kept"], &place, "in time\n");
    save_late(&place, "again\n");
    let refused = place.run("done p:2 --json");
    assert_eq!(refused.code, 4, "{refused:?}");
    let last = refused.stderr.lines().last().expect("an error");
    let error: Value = serde_json::from_str(last).expect("it is JSON");
    check(&error["error"]["details"]["kept"], &place, "again\n");
    assert_eq!(place.run("note p:1 third").code, 0);
    save_late(&place, "for people\n");
    let refused = place.run("done p:2");
    assert!(
        refused.stderr.starts_with("note: p/step-1.md was saved while planwatch wrote it"),
        "{refused:?}"
    );
    assert_eq!(
        place.run("note p:1 fourth --json=kept").json(),
        json!({"schema_version": 1, "kind": "change"})
    );
}

#[test]
fn http_reports_it_in_answers_and_problems() {
    let place = place();
    let server = Server::open(&place);
    let note = |text: &str| server.json("POST", "/api/steps/p:1/notes", &json!({"text": text}));
    assert!(note("first").get("kept").is_none());
    save_late(&place, "in time\n");
    check(&note("second")["kept"], &place, "in time\n");
    save_late(&place, "again\n");
    let refused = server.ask("POST", "/api/steps/p:2/done", "Content-Type: application/json\r\n", "{}");
    assert_eq!(refused.status, 409);
    check(&refused.json()["details"]["kept"], &place, "again\n");
}

#[test]
fn a_save_displaced_with_another_state_directory_is_reported_until_it_is_removed() {
    let place = place();
    place.run("note p:1 first").ok();
    let elsewhere = |line: &str| {
        let mut command = place.command();
        let state = place.file("../elsewhere");
        let command = command.env("XDG_STATE_HOME", state).args(line.split_whitespace());
        Ran::of(command.output().expect("the binary starts"))
    };
    assert_eq!(elsewhere("note p:1 second").code, 0);
    let by = fs::read_dir(place.file("plans/.planwatch/by")).expect("it is there").flatten().next();
    let name = by.expect("another state").file_name();
    let dir = format!("plans/.planwatch/by/{}/displaced", name.to_str().expect("a name"));
    assert!(!place.run("check").stderr.contains("stored outside"));
    save_late_in(&place, &dir, "late\n");
    // It is possible that the user of the other state directory never runs planwatch again.
    let kept = place.run("status --json").json()["kept"].clone();
    assert_eq!(kept.as_array().map(Vec::len), Some(1), "{kept}");
    let kept = kept[0].as_str().expect("a path").to_owned();
    assert_eq!(place.text(&format!("plans/{kept}")), "late\n");
    assert!(place.run("check").stderr.contains("1 stored text is missing from its file"));
    for verb in ["doctor", "status"] {
        assert!(place.run(verb).stdout.contains(&format!("plans/{kept}")), "{verb} {kept}");
    }
    // A command with that state directory reports the same text only once.
    assert_eq!(elsewhere("status --json").json()["kept"].as_array().map(Vec::len), Some(1));
    assert_eq!(elsewhere("note p:1 third").code, 0);
    let kept = place.run("status --json").json()["kept"].clone();
    let kept = kept[0].as_str().expect("a path").to_owned();
    assert_eq!(place.text(&format!("plans/{kept}")), "late\n");
    fs::remove_file(place.file(&format!("plans/{kept}"))).expect("it can be removed");
    assert_eq!(place.run("status --json").json()["kept"], json!([]));
}
