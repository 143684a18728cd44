//! Restricted permissions are kept when a command moves files, and when `undo` moves them back.
#![expect(clippy::disallowed_methods, reason = "tests set and read permissions")]

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::support::Place;

fn place() -> Place {
    let place = Place::new();
    place.run("new p A B -q").ok();
    for n in 1..=2 {
        let file = format!("plans/p/step-{n}.md");
        place.write(&file, place.text(&file) + "secret\n");
    }
    place.write("list.json", "[\"A\", \"N\"]");
    place
}

fn set(place: &Place, path: &str, mode: u32) {
    std::fs::set_permissions(place.file(path), std::fs::Permissions::from_mode(mode)).expect("it is ours");
}

fn mode(place: &Place, path: &str) -> u32 {
    place.file(path).metadata().expect("it is there").permissions().mode() & 0o7777
}

/// The files with the secret that every user may read.
fn disclosed(directory: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).expect("it can be read").flatten() {
        let metadata = entry.metadata().expect("it is there");
        let mode = metadata.permissions().mode();
        if metadata.is_dir() && mode & 0o001 != 0 {
            found.extend(disclosed(&entry.path()));
        } else if metadata.is_file() && mode & 0o004 != 0 {
            let text = std::fs::read_to_string(entry.path()).expect("it is text");
            found.extend(text.contains("secret").then(|| entry.path().display().to_string()));
        }
    }
    found
}

const VERBS: [&str; 6] = [
    "move p --to z",
    "remove p:2",
    "remove p --yes",
    "squash p 1 2 --title S",
    "replace p --file list.json",
    "archive p --force",
];

#[test]
fn a_private_plan_stays_private() {
    for verb in VERBS {
        let place = place();
        set(&place, "plans/p", 0o700);
        place.run(&format!("{verb} -q")).ok();
        assert_eq!(disclosed(&place.file("plans")), Vec::<String>::new(), "{verb}");
        place.run("undo -q").ok();
        assert_eq!(disclosed(&place.file("plans")), Vec::<String>::new(), "undo of {verb}");
        assert_eq!(mode(&place, "plans/p"), 0o700, "undo of {verb}");
    }
}

#[test]
fn private_steps_stay_private() {
    for verb in VERBS {
        let place = place();
        set(&place, "plans/p/step-1.md", 0o600);
        set(&place, "plans/p/step-2.md", 0o600);
        place.run(&format!("{verb} -q")).ok();
        assert_eq!(disclosed(&place.file("plans")), Vec::<String>::new(), "{verb}");
        place.run("undo -q").ok();
        assert_eq!(disclosed(&place.file("plans")), Vec::<String>::new(), "undo of {verb}");
    }
}

#[test]
fn a_renamed_plan_keeps_the_mode_of_a_shared_directory() {
    let place = place();
    set(&place, "plans/p", 0o2770);
    place.run("move p --to z -q").ok();
    assert_eq!(mode(&place, "plans/z"), 0o2770);
    place.run("undo -q").ok();
    assert_eq!(mode(&place, "plans/p"), 0o2770);
}

#[test]
fn a_private_step_is_not_squashed_into_one_that_everybody_may_read() {
    let place = place();
    set(&place, "plans/p/step-2.md", 0o600);
    let ran = place.run("squash p 1 2 --title S");
    assert_eq!(ran.code, 4, "{}", ran.stderr);
    assert!(ran.stderr.contains("error[permissions-differ]"), "{}", ran.stderr);
    set(&place, "plans/p/step-1.md", 0o600);
    place.run("squash p 1 2 --title S -q").ok();
    assert_eq!(mode(&place, "plans/p/step-1.md"), 0o600);
}

#[test]
fn a_private_step_is_not_squashed_into_one_without_a_file() {
    let place = place();
    let steps = "\n## Steps\n\n- step-0: Zero\n- step-2: Two\n";
    place.write("plans/p/plan.md", place.text("plans/p/plan.md") + steps);
    set(&place, "plans/p/step-2.md", 0o600);
    let ran = place.run("squash p 0 2 --title S");
    assert_eq!(ran.code, 4, "{}", ran.stderr);
    assert!(ran.stderr.contains("error[permissions-differ]"), "{}", ran.stderr);
    assert!(!place.file("plans/p/step-0.md").exists());
}
