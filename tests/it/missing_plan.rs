//! A plan's file is missing for a moment, because an editor or git removes it before writing it again.
#![expect(clippy::disallowed_methods, reason = "tests edit files as editors do")]

use std::fs;

use crate::support::{Place, tree};

const DRAFT: &str = "---\nstatus: draft\n---\n# P\n\n## Steps\n\n- step-1: One\n- step-2: Two\n";

/// Plans written without planwatch, and their index.
fn place() -> Place {
    let place = Place::new();
    place.write("plans/p/plan.md", DRAFT);
    for n in [1, 2] {
        place.write(&format!("plans/p/step-{n}.md"), format!("# Number {n}\n"));
    }
    place.write("plans/q/plan.md", "# Q\n\n## Steps\n\n- step-1: Other (depends: p:2)\n");
    place.run("list").ok();
    place
}

#[test]
fn reading_while_the_plan_file_is_missing_does_not_make_a_draft_ready() {
    for watches in [false, true] {
        let place = place();
        if watches {
            place.run("watch --detach").ok();
        }
        for _ in 0..3 {
            fs::remove_file(place.file("plans/p/plan.md")).expect("it is there");
            place.run("list").ok();
            place.run("status").ok();
            let refused = place.run("claim p:1");
            assert_eq!(refused.code, 4, "{watches}: {refused:?}");
            assert!(refused.stderr.contains("file-changed"), "{watches}: {refused:?}");
            assert_ne!(place.run("claim").code, 0, "{watches}: nothing is ready");
            place.write("plans/p/plan.md", DRAFT);
            place.run("list").ok();
            assert_ne!(place.run("claim p:1").code, 0, "{watches}: it is a draft again");
        }
        if watches {
            place.run("watch --stop").ok();
        }
        assert_eq!(place.text("plans/p/step-1.md"), "# Number 1\n");
    }
}

#[test]
fn steps_are_not_renumbered_or_removed_while_a_list_of_steps_is_missing_or_unreadable() {
    let verbs = ["remove p:2", "move p:2 --before 1", "squash p 1 2 --title Both"];
    for verb in verbs {
        for plan in ["p", "q"] {
            let path = format!("plans/{plan}/plan.md");
            let place = place();
            place.run("set p status active").ok();
            place.run("set q priority high").ok();
            let text = place.text(&path);
            fs::remove_file(place.file(&path)).expect("it is there");
            place.run("list").ok();
            let before = tree(&place.work().join("plans/p"));
            let refused = place.run(verb);
            assert_eq!(refused.code, 4, "{verb} {path}: {refused:?}");
            assert_eq!(tree(&place.work().join("plans/p")), before, "{verb} {path}");
            place.write(&path, &text);
        }
        let place = place();
        place.write(
            "plans/q/plan.md",
            [b"# Q\n\n## Steps\n\n- step-1: Other (depends: p:2) ".as_slice(), &[0xff, 0xfe]].concat(),
        );
        let refused = place.run(verb);
        assert_ne!(refused.code, 0, "{verb}: {refused:?}");
        assert!(place.file("plans/p/step-2.md").exists(), "{verb}");
    }
}

#[test]
fn an_unknown_empty_directory_prevents_nothing() {
    let place = place();
    fs::create_dir(place.file("plans/fresh")).expect("a new directory");
    assert_eq!(place.run("remove p:2").code, 0);
    assert!(!place.file("plans/p/step-2.md").exists());
}

#[test]
fn steps_are_not_renumbered_or_removed_while_the_file_of_a_listed_step_is_missing() {
    for verb in [
        "remove p:2",
        "move p:2 --before 1",
        "squash p 1 2 --title Both",
        "replace p --file list.md",
        "check --fix",
    ] {
        for path in ["plans/p/step-2.md", "plans/q/step-1.md"] {
            let place = place();
            place.write("list.md", "- One\n- Two\n");
            place.write("plans/p/step-2.md", "---\nstatus: pending\ndepends: []\n---\n# Number 2\n");
            place.write("plans/q/step-1.md", "---\nstatus: pending\ndepends: [p:2]\n---\n# Other\n");
            place.run("list").ok();
            let text = place.text(path);
            fs::remove_file(place.file(path)).expect("it is there");
            place.run("list").ok();
            let before = tree(&place.work().join("plans"));
            let refused = place.run(verb);
            assert_eq!(refused.code, 4, "{verb} {path}: {refused:?}");
            assert!(refused.stderr.contains("file-changed"), "{verb} {path}: {refused:?}");
            assert_eq!(tree(&place.work().join("plans")), before, "{verb} {path}");
            place.write(path, &text);
            if verb != "check --fix" {
                let done = place.run(verb);
                assert_eq!(done.code, 0, "{verb} {path}: {done:?}");
            }
        }
    }
}

#[test]
fn a_step_that_planwatch_removed_does_not_count_as_being_saved() {
    let place = place();
    for line in
        ["remove p:2", "list", "add p Again", "remove p:2", "undo", "list", "squash p 1 2 --title Both"]
    {
        let done = place.run(line);
        assert_eq!(done.code, 0, "{line}: {done:?}");
    }
}
