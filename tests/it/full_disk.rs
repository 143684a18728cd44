//! Processes with a limited file size: a verb writes all of its files or none, and reports which of the two it did.
#![expect(clippy::disallowed_methods, reason = "tests start processes")]

use std::process::Command;

use crate::support::{Place, Ran, tree};

/// Runs the binary with a limit on file sizes, in blocks of 512 bytes. A write beyond it fails, as on a full disk.
fn limited(place: &Place, blocks: u32, arguments: &[&str]) -> Ran {
    let mut command = Command::new("/bin/sh");
    place.close_environment(&mut command);
    let script = format!("ulimit -f {blocks}; exec \"$0\" \"$@\"");
    command.args(["-c", script.as_str(), env!("CARGO_BIN_EXE_planwatch")]).args(arguments);
    Ran::of(command.output().expect("a shell starts"))
}

#[test]
fn an_unrecorded_change_is_reported_and_undo_does_not_undo_another() {
    let place = place();
    place.run("note p:1 first").ok();
    let log = "plans/.planwatch/undo/log";
    place.write(log, place.text(log) + &"\n".repeat(8192));
    let ran = limited(&place, 8, &["done", "p:2"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.stderr.contains("its record could not be written, so `undo` cannot undo it"), "{ran:?}");
    let before = tree(&place.work());
    let refused = place.run("undo");
    assert_eq!(refused.code, 4, "{refused:?}");
    assert!(refused.stderr.contains("error[not-recorded]"), "{refused:?}");
    assert_eq!(tree(&place.work()), before);
    let changes = place.run("undo --list --json").json()["changes"].clone();
    assert_eq!(
        (&changes[0]["blocked"]["code"], &changes[1]["verb"]),
        (&"not-recorded".into(), &"note".into())
    );
    place.run(&format!("undo {}", changes[1]["id"].as_str().expect("an id"))).ok();
    assert_eq!(place.text("plans/p/step-1.md"), "# Number 1\n");
    assert!(place.text("plans/p/step-2.md").contains("completed"));
}

#[test]
fn an_answer_says_that_its_change_is_not_recorded() {
    let place = place();
    assert!(place.run("note p:1 first --json").json().get("not_recorded").is_none());
    let log = "plans/.planwatch/undo/log";
    place.write(log, place.text(log) + &"\n".repeat(8192));
    let answer = limited(&place, 8, &["done", "p:2", "--json"]).json();
    assert_eq!(answer["not_recorded"], true, "{answer}");
}

/// Runs the binary with a full device as standard output.
fn with_full_output(place: &Place, arguments: &[&str]) -> Ran {
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").expect("Linux has it");
    Ran::of(place.command().args(arguments).stdout(full).output().expect("the binary starts"))
}

#[test]
fn an_answer_that_cannot_be_written_says_whether_the_change_was_made() {
    let cases: [&[&str]; 16] = [
        &["note", "p:1", "x"],
        &["claim", "p:1"],
        &["done", "p:1"],
        &["undo"],
        &["add", "p", "New"],
        &["new", "Another"],
        &["remove", "p:4"],
        &["decide", "naming", "Words"],
        &["init", "--agent", "claude"],
        &["import", "documents"],
        // These change nothing.
        &["list"],
        &["done", "p:2", "--dry-run"],
        &["init", "--agent", "claude"],
        &["set", "p:3", "depends+=2"],
        &["undo", "--list"],
        &["status"],
    ];
    let place = place();
    let mut n_changed = 0;
    for arguments in cases {
        let before = tree(&place.work());
        let ran = with_full_output(&place, arguments);
        let has_changed = tree(&place.work()) != before;
        n_changed += u32::from(has_changed);
        assert_eq!(ran.code, 1, "{arguments:?}: {ran:?}");
        let message = "the change was made, but the answer could not be written";
        assert_eq!(ran.stderr.contains(message), has_changed, "{arguments:?}: {ran:?}");
        assert_eq!(ran.stderr.contains("planwatch undo --list"), has_changed, "{arguments:?}: {ran:?}");
    }
    assert_eq!(n_changed, 10);
    for (line, has_changed) in [("note p:2 x --json", true), ("list --json", false)] {
        let ran = with_full_output(&place, &line.split(' ').collect::<Vec<_>>());
        let error: serde_json::Value = serde_json::from_str(ran.stderr.trim()).expect("it is JSON");
        assert_eq!(error["error"]["details"]["changed"], has_changed, "{ran:?}");
    }
}

fn place() -> Place {
    let place = Place::new();
    let list: String = (1..=4).map(|it| format!("- step-{it}: Number {it}\n")).collect();
    place.write("plans/p/plan.md", format!("# P\n\n{}\n\n## Steps\n{list}", "Words. ".repeat(150)));
    for number in 1..=4 {
        place.write(&format!("plans/p/step-{number}.md"), format!("# Number {number}\n"));
    }
    place.write("plans/p/step-3.md", "---\ndepends: [2]\n---\n# Number 3\n");
    place.write("plans/q/plan.md", format!("# Q\n\n{}\n", "Words. ".repeat(300)));
    place.write("plans/_archive/o/plan.md", "# O\n");
    place.write("plans/_archive/o/removed-1/step-1.md", "# O\n");
    place.write("documents/a.md", format!("# A\n\n{}\n\n- [ ] one\n", "Words. ".repeat(20)));
    place.write("documents/b.md", format!("# B\n\n{}\n\n- [ ] one\n", "Words. ".repeat(300)));
    place.write("list.md", "- step-3: Number 3\n- New\n");
    place
}

#[track_caller]
fn check(arguments: &[&str]) {
    let mut answers = Vec::new();
    // The larger limits are for `init`, whose journal contains the texts of all its files.
    for blocks in (0..16).chain([32, 64, 128]) {
        let place = place();
        drop(place.run("list"));
        let before = tree(&place.work());
        let ran = limited(&place, blocks, arguments);
        // The next command completes or undoes an interrupted change.
        assert_eq!(place.run("check --fix --quiet").code, 0, "{arguments:?} {blocks}: {ran:?}");
        let is_same = tree(&place.work()) == before;
        assert_eq!(is_same, ran.code != 0, "{arguments:?} with {blocks} blocks: {ran:?}");
        answers.push(ran.code);
    }
    assert!(answers.contains(&0) && answers.contains(&1), "{arguments:?}: {answers:?}");
}

#[test]
fn a_step_and_its_line_are_added_together_or_not_at_all() {
    check(&["add", "p", "New"]);
}

#[test]
fn steps_are_restructured_completely_or_not_at_all() {
    check(&["remove", "p:2"]);
    check(&["squash", "p", "1", "2", "--title", "Both"]);
    check(&["move", "p:2", "--after", "3"]);
    check(&["replace", "p", "--file", "list.md"]);
}

#[test]
fn several_plans_are_created_together_or_not_at_all() {
    check(&["import", "documents"]);
    check(&["new", "Program", "--kind", "program", "--children", "p,q"]);
    check(&["archive", "--restore", "o"]);
}

#[test]
fn init_sets_a_project_up_completely_or_not_at_all() {
    check(&["init", "--agent", "claude", "--agent", "cursor"]);
}
