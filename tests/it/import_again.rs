//! `import` recognizes a source by its documents, even under another path. If a file cannot be read, the others are imported.

use serde_json::Value;

use crate::support::Place;

/// Creates the files of a source.
type Make<'a> = &'a dyn Fn(&Place);

const TASK: &str = "---\nid: task-1\ntitle: One\nstatus: To Do\n---\n## Description\n\nText\n";

fn store(make: Make<'_>) -> Place {
    let place = Place::new();
    place.write("plans/own/plan.md", "# Own\n");
    make(&place);
    place
}

#[test]
fn a_source_is_recognized_under_every_path() {
    let backlog = |place: &Place| {
        place.write("backlog/config.yml", "project_name: x\n");
        place.write("backlog/tasks/task-1 - One.md", TASK);
        place.write("notes.md", "# Notes\n");
    };
    let beads = |place: &Place| {
        place.write(".beads/issues.jsonl", r#"{"id":"a-1","title":"X","status":"open"}"#);
        place.write(".beads/README.md", "# Readme\n");
    };
    let documents = |place: &Place| {
        place.write("docs/a.md", "# A\n\n- [ ] one\n");
        place.write("docs/b.md", "# B\n\n- [ ] two\n");
    };
    let names: [(Make<'_>, &[&str]); 3] = [
        (&backlog, &[".", "backlog", "./backlog/", "backlog/tasks/.."]),
        (&beads, &[".", ".beads", ".beads/issues.jsonl"]),
        (&documents, &["docs", "docs/../docs", "docs/."]),
    ];
    for (make, names) in names {
        for first in names {
            for second in names {
                let place = store(make);
                place.run(&format!("import {first}")).ok();
                let again = place.run(&format!("import {second} --json"));
                assert_eq!(again.code, 4, "{first}, then {second}: {}{}", again.stdout, again.stderr);
                assert!(
                    again.stderr.contains("already-imported"),
                    "{first}, then {second}: {}",
                    again.stderr
                );
            }
        }
    }
}

#[test]
fn a_changed_document_is_recognized_through_a_symbolic_link() {
    let place = store(&|place| place.write("docs/a.md", "# A\n\n- [ ] one\n"));
    std::os::unix::fs::symlink("a.md", place.file("docs/link.md")).expect("it is new");
    place.run("import docs/link.md").ok();
    place.write("docs/a.md", "# A\n\n- [ ] one\n- [ ] two\n");
    for name in ["docs/link.md", "docs/a.md", "docs"] {
        assert_eq!(place.run(&format!("import {name}")).code, 4, "{name}");
    }
}

#[test]
fn an_oversized_file_of_a_directory_is_reported_and_the_others_are_imported() {
    let big = "x".repeat((4 << 20) + 1);
    let place = store(&|place| {
        place.write("docs/a.md", "# A\n\n- [ ] one\n");
        place.write("docs/big.md", &big);
        place.write("docs/below/c.md", "# C\n\n- [ ] three\n");
    });
    let report = place.run("import docs --json").json();
    let problems = report["problems"].as_array().cloned().unwrap_or_default();
    let reported: Vec<_> = problems.iter().map(|it| (&it["path"], &it["code"])).collect();
    assert_eq!(reported, [(&Value::from("big.md"), &Value::from("too-large"))]);
    assert_eq!(report["changes"].as_array().map(Vec::len), Some(2), "{report}");
    // As the only source, the file is an error.
    let alone = place.run("import docs/big.md");
    assert_eq!(alone.code, 6, "{}", alone.stderr);
    assert!(alone.stderr.contains("too-large"), "{}", alone.stderr);
}

#[test]
fn a_directory_without_a_readable_file_is_an_error() {
    let place = store(&|place| place.write("docs/big.md", "x".repeat((4 << 20) + 1)));
    let refused = place.run("import docs");
    assert!(refused.code != 0 && refused.stderr.contains("too-large"), "{}", refused.stderr);
}

#[test]
fn the_id_of_a_copied_step_is_corrected_and_not_reported_as_lost() {
    let place = store(&|place| {
        place.write("old/plan.md", "# Old\n");
        place.write("old/step-1.md", "---\nid: src:1\nstatus: pending\n---\n# One of src\n");
        place.write("old/step-2.md", "---\nid: \"src:2\" # ours\nstatus: pending\n---\n# Two\n");
    });
    let report = place.run("import old --as copy --json").json();
    assert_eq!(report["unmapped"], Value::Array(Vec::new()), "{report}");
    assert!(place.text("plans/copy/step-1.md").starts_with("---\nid: copy:1\n"));
    assert!(place.text("plans/copy/step-2.md").starts_with("---\nid: \"copy:2\" # ours\n"));
}
