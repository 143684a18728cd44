//! `--no-index`: every reading verb gives the same answer without the index.
#![expect(clippy::disallowed_methods, reason = "tests create and remove files")]

use crate::support::{Place, Ran};

/// Command lines of the verbs that read plans.
const QUESTIONS: &[&str] = &[
    "",
    "status",
    "status --json",
    "status --markdown --days 30",
    "list",
    "list --all",
    "list --all --json",
    "list --archived --json",
    "list --stale",
    "list --status active --tag house",
    "next",
    "next --json",
    "check",
    "check --json",
    "search step",
    "search invoices -- -page",
    "search the --json",
    "search the --since 2d --kind step",
    "search ivy --kind insight",
    "decide",
    "decide --topics",
    "insight --json",
    "script list",
    "stale",
    "stats",
    "stats --json",
    "log",
    "diff",
];

/// Command lines about one plan.
const QUESTIONS_OF_A_PLAN: &[&str] = &[
    "list PLAN",
    "list PLAN --json",
    "list PLAN --status pending",
    "list PLAN --stale",
    "show PLAN",
    "show PLAN --json",
    "show PLAN --full",
    "show PLAN --graph text",
    "show PLAN --graph mermaid",
    "next PLAN",
    "next PLAN --json",
    "export PLAN",
];

const VIEWS: [&str; 8] = ["plans", "steps", "dependencies", "attempts", "notes", "tags", "problems", "files"];

#[track_caller]
fn same(place: &Place, words: &[&str]) {
    let by_index = place.run_with(words);
    let by_files = place.run_with(&[&["--no-index"], words].concat());
    let parts = |it: &Ran| (it.code, it.stdout.clone(), it.stderr.clone());
    assert_eq!(parts(&by_index), parts(&by_files), "{words:?} with and without the index");
    assert!(by_index.code != 1 && by_index.code != 2, "{words:?}: {by_index:?}");
}

#[track_caller]
fn everything_is_the_same(place: &Place) {
    for question in QUESTIONS {
        same(place, &question.split_whitespace().collect::<Vec<_>>());
    }
    for view in VIEWS {
        same(place, &["sql", &format!("SELECT * FROM {view} ORDER BY 1, 2, 3, 4"), "--json"]);
    }
    let plans = place.run("list --all --json=id").json();
    let ids: Vec<_> = plans["plans"].as_array().expect("a list").iter().map(|it| text(&it["id"])).collect();
    assert!(!ids.is_empty());
    for plan in &ids {
        for question in QUESTIONS_OF_A_PLAN {
            let words: Vec<_> = question.split(' ').map(|it| if it == "PLAN" { plan } else { it }).collect();
            same(place, &words);
        }
        let steps = place.run_with(&["list", plan, "--json=id"]).json();
        for step in steps["steps"].as_array().expect("a list") {
            same(place, &["show", &text(&step["id"]), "--json"]);
        }
    }
}

fn text(value: &serde_json::Value) -> String {
    value.as_str().expect("a text").to_owned()
}

#[test]
fn answers_about_the_examples_are_the_same_without_the_index() {
    everything_is_the_same(&Place::with_examples());
}

#[test]
fn problems_are_the_same_without_the_index() {
    let place = Place::new();
    let files: &[(&str, &str)] = &[
        (
            "a/plan.md",
            "---\nprogram: nowhere\nstatus: actve\n---\n# A\n\n## Steps\n- step-1: One\n- step-7: Seven (depends: step-1, step-8)\n",
        ),
        (
            "a/step-1.md",
            "---\nid: b:1\nstatus: wip\nclaim: {id: h4f09a21, by: bob, at: 2026-11-20T09:00:00Z}\n---\n# One\n",
        ),
        ("a/step-01.md", "# One as well\n"),
        ("a/step-2.md", "---\nstatus: [\n---\n# Two\n"),
        ("a/step-3.md", "---\ndepends: [4]\ncolour: {deep: [1, ~, 2.50, yes]}\n---\n# Three\n"),
        ("a/step-4.md", "---\ndepends: [3]\nresult: |\n  two\n  lines\n---\n# Four\n"),
        ("a/step-5.md", "---\ncreated_at: soon\nattempts:\n  - outcome: 1\n  - 2\n  - at: 2099-01-01\n---\n"),
        (
            "a/step-6.10.md",
            "\u{feff}---\r\nstatus: done\r\n---\r\n# Six\r\n\r\n## Dependencies\r\nsomething\r\n",
        ),
        ("a/step_9.md", "# Nine\n"),
        ("a/deep/step-1.md", "# Deep\n"),
        ("b/step-1.md", "---\nstatus: open\n<<<<<<< x\n---\n"),
        ("b/step-2.md", "---\nno end\n"),
        ("_archive/old/plan.md", "# Old\n"),
        ("_archive/old/step-1.md", "# One\n"),
        ("empty/plan.md", ""),
        ("Ünïcode name/plan.md", "---\ntitle: 'x: y'\nstatus: draft\n---\n"),
        ("Ünïcode name/step-1.md", "text only\n"),
    ];
    for (path, text) in files {
        place.write(&format!("plans/{path}"), text);
    }
    place.date_fixture();
    everything_is_the_same(&place);
}

#[test]
fn an_edit_is_detected_at_once() {
    let place = Place::with_examples();
    same(&place, &["list", "--json"]);
    // The length and, on a coarse clock, the time are the same; only the content differs.
    let step = place.text("plans/fence-repair/step-4.md");
    place.write("plans/fence-repair/step-4.md", step.replace("pending", "blocked"));
    place.date_fixture();
    same(&place, &["list", "fence-repair", "--json"]);
    assert!(place.run("list fence-repair").ok().contains("■ blocked"));
    std::fs::remove_file(place.file("plans/fence-repair/step-4.md")).expect("it is there");
    same(&place, &["list", "fence-repair", "--json"]);
}

#[test]
fn a_damaged_index_is_rebuilt_and_reported_in_one_line() {
    let place = Place::with_examples();
    let before = place.run("list --all").ok();
    let index = format!("plans/.planwatch/{}", planwatch::index::Index::file_name());
    assert!(place.file(&index).exists(), "{index}");
    place.write(&index, "no database");
    let rebuilt = place.run("list --all");
    assert_eq!((rebuilt.code, rebuilt.stdout.as_str()), (0, before.as_str()));
    assert_eq!(rebuilt.stderr.lines().count(), 1, "{}", rebuilt.stderr);
    assert!(rebuilt.stderr.contains("the index was rebuilt"), "{}", rebuilt.stderr);
    assert_eq!(place.run("list --all").stderr, "");
}

fn names_in(directory: &std::path::Path) -> Vec<String> {
    let mut names: Vec<_> = directory
        .read_dir()
        .expect("it is there")
        .flatten()
        .map(|it| it.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

#[test]
fn without_its_own_directory_the_index_is_in_the_cache() {
    use std::os::unix::fs::PermissionsExt;
    let place = Place::with_examples();
    // A directory that came with a repository. Reading commands do not change it.
    place.write("plans/.planwatch/stamp", "0".repeat(64));
    let answer = place.run("list --all --json").ok();
    assert_eq!(answer, place.run("--no-index list --all --json").ok());
    assert_eq!(names_in(&place.file("plans/.planwatch")), ["stamp"]);
    let top = place.top().join("home/.cache/planwatch");
    let directories = names_in(&top);
    assert_eq!(directories.len(), 1);
    let directory = top.join(&directories[0]);
    assert!(names_in(&directory).iter().any(|it| it.starts_with("index-v") && it.ends_with(".db")));
    for it in [&top, &directory] {
        assert_eq!(it.metadata().expect("it is there").permissions().mode() & 0o777, 0o700);
    }
    assert!(place.run("doctor").stdout.contains(&directory.display().to_string()));
    assert_eq!(place.run("list").stderr, "");
    // If others can write to the cache directory, the index is in memory, which is reported once.
    std::fs::set_permissions(&top, PermissionsExt::from_mode(0o777)).expect("it is ours");
    let stderr = place.run("status").stderr;
    assert_eq!(stderr.matches("note: the index is in memory for this answer").count(), 1, "{stderr}");
    // A change creates planwatch's own directory, which then contains the index.
    assert_eq!(place.run("done fence-repair:4").code, 0);
    assert_eq!(place.run("status").stderr, "");
    assert_eq!(place.text("plans/.planwatch/stamp"), "0".repeat(64));
    let by = place.file("plans/.planwatch/by");
    assert!(names_in(&by.join(&names_in(&by)[0])).iter().any(|it| it.starts_with("index-v")));
}

#[test]
fn reading_creates_no_files_without_a_plan() {
    let place = Place::new();
    place.write("plans/src/main.c", "int main;");
    for line in ["list", "status", "check", "search main", "next", "sql SELECT+1", "doctor", "watch --stop"] {
        assert!(place.run(line).code < 10, "{line}");
        assert_eq!(names_in(&place.file("plans")), ["src"], "{line}");
    }
    let state = place.run("doctor").stdout;
    assert!(state.contains("none, as there is no plan yet"), "{state}");
    assert!(!place.top().join("home/.cache").exists());
}
