//! `search` while files, the index and the full-text index change.
#![expect(clippy::disallowed_methods, reason = "tests create and remove files")]

use crate::support::Place;

fn texts() -> String {
    format!("plans/.planwatch/{}", planwatch::index::FullText::file_name())
}

/// Asserts the ids that a search finds, and that `--no-index` gives the same answer. Returns what the first search wrote to
/// stderr.
#[track_caller]
fn check(place: &Place, query: &str, ids: &[&str]) -> String {
    let found = place.run(&format!("search {query} --json"));
    let hits = found.json();
    let hits = hits["hits"].as_array().expect("a list");
    assert_eq!(hits.iter().map(|it| it["id"].as_str().unwrap_or("")).collect::<Vec<_>>(), ids, "{query}");
    assert_eq!(found.stdout, place.run(&format!("--no-index search {query} --json")).stdout);
    found.stderr
}

fn with_plans() -> Place {
    let place = Place::with_examples();
    place.write("plans/quay/plan.md", "# Quay\n\nBuilt of granite, by a xylophone.\n");
    place.write("plans/quay/step-1.md", "# Drive the piles\n\nUntil they hold.\n");
    check(&place, "granite", &["quay"]);
    place
}

/// Edits, new and removed files, and a renamed plan, with a search after each.
fn follow_edits(place: &Place) {
    place.write("plans/quay/step-1.md", "# Drive the piles\n\nOf granite, too.\n");
    check(place, "granite", &["quay", "quay:1"]);
    place.write("plans/quay/step-2.md", "# Lay the granite\n");
    check(place, "granite", &["quay:2", "quay", "quay:1"]);
    std::fs::remove_file(place.file("plans/quay/step-2.md")).expect("it is there");
    check(place, "granite", &["quay", "quay:1"]);
    std::fs::rename(place.file("plans/quay"), place.file("plans/pier")).expect("it can be moved");
    check(place, "granite", &["pier", "pier:1"]);
    std::fs::remove_dir_all(place.file("plans/pier")).expect("it is there");
    check(place, "granite", &[]);
}

#[test]
fn an_edit_is_found_at_once() {
    follow_edits(&with_plans());
}

#[cfg(target_os = "linux")]
#[test]
fn an_edit_is_found_at_once_with_a_daemon() {
    let place = with_plans();
    assert_eq!(place.run("watch --detach").code, 0);
    follow_edits(&place);
    assert_eq!(place.run("watch --stop").code, 0);
}

#[test]
fn either_index_file_may_be_removed() {
    let place = with_plans();
    for gone in [format!("plans/.planwatch/{}", planwatch::index::Index::file_name()), texts()] {
        place.write("plans/quay/step-1.md", format!("# Drive the piles\n\nXebec of {gone}.\n"));
        std::fs::remove_file(place.file(&gone)).expect("it is there");
        assert_eq!(check(&place, "granite", &["quay"]), "");
        assert_eq!(check(&place, "xebec", &["quay:1"]), "");
    }
}

#[test]
fn a_damaged_full_text_index_is_rebuilt_and_reported_in_one_line() {
    let place = with_plans();
    // This search verifies the file. Afterwards only the file's modification time shows the damage.
    assert_eq!(check(&place, "granite", &["quay"]), "");
    let path = place.file(&texts());
    let mut bytes = std::fs::read(&path).expect("it is there");
    let at = bytes.windows(4).position(|it| it == b"loph").expect("the end of the word is in it");
    bytes[at] = b'A';
    std::fs::write(&path, bytes).expect("there is room");
    let stderr = check(&place, "granite", &["quay"]);
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
    assert!(stderr.contains("the index was rebuilt"), "{stderr}");
    assert_eq!(check(&place, "granite", &["quay"]), "");
    std::fs::write(&path, "no database").expect("there is room");
    let stderr = check(&place, "granite", &["quay"]);
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
    assert_eq!(check(&place, "granite", &["quay"]), "");
}
