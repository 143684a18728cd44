//! An editor saves a step under its old name while a command moves it.

use std::process::Stdio;

use crate::support::{Place, Ran};

const SAVED: &str = "# B\n\nThe editor's text.\n";

fn place() -> Place {
    let place = Place::new();
    assert_eq!(place.run_with(&["new", "p", "A", "B", "C"]).code, 0);
    let plan = place.text("plans/p/plan.md");
    place.write("plans/p/plan.md", format!("{plan}\n## Steps\n\n- step-1: A\n- step-2: B\n- step-3: C\n"));
    place
}

/// The names in the directory of the plan.
fn names(place: &Place) -> Vec<String> {
    let dir = std::fs::read_dir(place.file("plans/p")).expect("it is there");
    let mut names: Vec<_> =
        dir.map(|it| it.expect("it is there").file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[test]
fn a_move_during_a_save_is_completed_or_undone_as_a_whole() {
    for _ in 0..12 {
        let place = place();
        let plan = place.text("plans/p/plan.md");
        let mut command = place.command();
        command.args(["move", "p:2", "--after", "3"]).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut moving = command.spawn().expect("the binary starts");
        // Waits for the moment at which the step has its new name but the list does not contain it yet.
        while !place.file("plans/p/step-4.md").exists() && moving.try_wait().expect("it runs").is_none() {
            std::hint::spin_loop();
        }
        place.write("plans/p/step-2.md", SAVED);
        place.write("plans/p/plan.md", format!("{plan}\nThe editor's line.\n"));
        let ran = Ran::of(moving.wait_with_output().expect("it ends"));
        assert_eq!(place.run("status").code, 0);
        assert_eq!(place.run("note p:1 later").code, 0);
        let left = names(&place);
        assert_eq!(place.text("plans/p/step-2.md"), SAVED, "{ran:?}");
        if ran.code != 0 {
            assert_eq!(left, ["plan.md", "step-1.md", "step-2.md", "step-3.md"], "{ran:?}");
            assert!(place.text("plans/p/plan.md").contains("The editor's line."), "{ran:?}");
        }
    }
}
