//! `search` while files, the index and the full text change under it.
#![expect(clippy::disallowed_methods, reason = "tests make and remove their own files")]

use crate::support::Place;

fn texts() -> String {
    format!("plans/.planwatch/{}", planwatch::index::FullText::file_name())
}

/// Asserts what a search finds, and that the files alone say the same; returns what it said on stderr.
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

/// What other processes do: an editor, one that searched between two edits, and a checkout.
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
fn an_edit_is_found_at_once_where_somebody_watches() {
    let place = with_plans();
    assert_eq!(place.run("watch --detach").code, 0);
    follow_edits(&place);
    assert_eq!(place.run("watch --stop").code, 0);
}

#[test]
fn one_of_the_two_files_may_go() {
    let place = with_plans();
    for gone in [format!("plans/.planwatch/{}", planwatch::index::Index::file_name()), texts()] {
        place.write("plans/quay/step-1.md", format!("# Drive the piles\n\nXebec of {gone}.\n"));
        std::fs::remove_file(place.file(&gone)).expect("it is there");
        assert_eq!(check(&place, "granite", &["quay"]), "");
        assert_eq!(check(&place, "xebec", &["quay:1"]), "");
    }
}

#[test]
fn a_damaged_full_text_is_made_anew_and_told_of_in_one_line() {
    let place = with_plans();
    // Found whole, so that only the file's time tells.
    assert_eq!(check(&place, "granite", &["quay"]), "");
    let path = place.file(&texts());
    let mut bytes = std::fs::read(&path).expect("it is there");
    let at = bytes.windows(4).position(|it| it == b"loph").expect("the end of the word is in it");
    bytes[at] = b'A';
    std::fs::write(&path, bytes).expect("there is room");
    let said = check(&place, "granite", &["quay"]);
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(said.contains("the index was rebuilt"), "{said}");
    assert_eq!(check(&place, "granite", &["quay"]), "");
    std::fs::write(&path, "no database").expect("there is room");
    let said = check(&place, "granite", &["quay"]);
    assert_eq!(said.lines().count(), 1, "{said}");
    assert_eq!(check(&place, "granite", &["quay"]), "");
}
