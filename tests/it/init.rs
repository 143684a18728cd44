//! `init` while other programs save the project's files: no save is lost.
#![expect(clippy::disallowed_methods, reason = "tests edit files as editors do")]

use std::fs::{self, File, OpenOptions};
use std::io::{Seek as _, Write as _};
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};

use crate::support::Place;

const TEXT: &str = "# Rules\n\nKeep it short.\n";

fn place() -> Place {
    let place = Place::new();
    place.write("plans/p/step-1.md", "# One\n");
    place.write("CLAUDE.md", TEXT);
    place
}

fn opened(place: &Place) -> File {
    OpenOptions::new().write(true).open(place.file("CLAUDE.md")).expect("it can be opened")
}

/// Makes the lock of `init` old. It is in the state directory of the plans directory if that exists, otherwise in
/// `.planwatch-init` in the project's root. If this lock has not been used for a while, the next command compares replaced
/// versions again.
fn make_lock_older(place: &Place) {
    let state =
        fs::read_dir(place.file("plans/.planwatch")).into_iter().flatten().flatten().map(|it| it.path());
    let project = state.into_iter().find(|it| it.to_string_lossy().contains("/project-"));
    let lock = project.unwrap_or_else(|| place.file(".planwatch-init")).join("lock");
    let lock = File::open(lock).expect("it is there");
    lock.set_modified(SystemTime::now() - Duration::from_secs(60)).expect("it can be set");
}

#[test]
fn a_file_that_is_being_saved_is_refused_and_stays_complete() {
    let place = place();
    let mut editor = opened(&place);
    editor.set_len(0).expect("it can be cut");
    let refused = place.run("init --agent claude --json");
    assert_eq!(refused.code, 4, "{refused:?}");
    assert!(refused.stderr.contains(r#""code":"file-changed""#), "{refused:?}");
    assert!(!place.file(".claude").exists(), "no other file for the agent was written");
    editor.write_all(TEXT.as_bytes()).expect("it can be written");
    assert_eq!(place.text("CLAUDE.md"), TEXT);

    assert_eq!(place.run("init --agent claude").code, 0);
    let written = place.text("CLAUDE.md");
    assert!(written.starts_with(TEXT) && written.len() > TEXT.len(), "{written}");
    assert_eq!(place.run("init --undo").code, 0);
    assert_eq!(place.text("CLAUDE.md"), TEXT);
}

#[test]
fn a_save_through_a_file_opened_earlier_is_stored_and_reported() {
    check_late_save(&place());
    let with_state = place();
    assert_eq!(with_state.run("note p:1 first").code, 0);
    check_late_save(&with_state);
}

fn check_late_save(place: &Place) {
    let mut editor = opened(place);
    assert_eq!(place.run("init --agent claude").code, 0);
    let written = place.text("CLAUDE.md");
    editor.rewind().expect("it can be rewound");
    editor.write_all(b"# Mine, saved late\n").expect("it can be written");
    editor.set_len(19).expect("it can be cut");
    drop(editor);
    make_lock_older(place);

    let answer = place.run("init --agent claude --json").json();
    assert_eq!(place.text("CLAUDE.md"), written, "the text that init wrote is still there");
    let kept: Vec<&Value> = answer["kept"].as_array().expect("saves are reported").iter().collect();
    assert_eq!(kept.len(), 1, "{answer}");
    assert_eq!(kept[0]["why"], json!("late"), "{answer}");
    let version = kept[0]["kept"].as_str().expect("a path");
    let found =
        [format!("plans/{version}"), version.to_owned()].into_iter().find(|it| place.file(it).exists());
    assert_eq!(
        place.text(&found.expect("the file is where the answer says")),
        "# Mine, saved late\n",
        "{answer}"
    );
}
