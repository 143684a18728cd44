//! `undo` of single changes out of order, and its effect on claims.
#![expect(clippy::disallowed_methods, reason = "tests make links and edit files as editors do")]

use serde_json::json;

use crate::http::client::Server;
use crate::support::Place;

fn place() -> Place {
    let place = Place::new();
    for plan in ["p", "q"] {
        place.write(&format!("plans/{plan}/plan.md"), format!("# {plan}\n"));
        for step in 1..=3 {
            place.write(&format!("plans/{plan}/step-{step}.md"), format!("# Step {step}\n"));
        }
    }
    place
}

/// The id of the newest change with this verb.
fn id_of(place: &Place, verb: &str) -> String {
    let list = place.run("undo --list --json").json();
    let changes = list["changes"].as_array().expect("a list");
    let found = changes.iter().find(|it| it["verb"] == verb);
    found.unwrap_or_else(|| panic!("{list}"))["id"].as_str().expect("a text").to_owned()
}

#[test]
fn an_edited_file_does_not_prevent_undoing_other_changes() {
    let place = place();
    assert_eq!(place.run("note p:1 first").code, 0);
    assert_eq!(place.run("done q:1").code, 0);
    let edited = place.text("plans/q/step-1.md") + "More.\n";
    place.write("plans/q/step-1.md", &edited);
    let (note, done) = (id_of(&place, "note"), id_of(&place, "done"));
    let refused = place.run("undo --json");
    assert_eq!(refused.code, 4, "{refused:?}");
    assert!(
        refused.stderr.contains(&format!("({done}) cannot be undone: `q/step-1.md` was edited")),
        "{refused:?}"
    );
    let list = place.run("undo --list");
    assert!(list.stdout.contains("plans/q/step-1.md was edited"), "{list:?}");
    place.run(&format!("undo {note} --dry-run")).ok();
    assert!(place.text("plans/p/step-1.md").contains("first"));
    place.run(&format!("undo {note}")).ok();
    assert_eq!(place.text("plans/p/step-1.md"), "# Step 1\n");
    assert_eq!(place.text("plans/q/step-1.md"), edited);
    assert_eq!(id_of(&place, "done"), done, "the id stays the same");
    assert_eq!(place.run(&format!("undo {note}")).code, 3);
}

#[test]
fn the_list_shows_that_a_dependency_cannot_be_restored() {
    let place = place();
    place.run("set p:3 depends+=2 -q").ok();
    place.run("set p:3 depends-=2 -q").ok();
    let set = id_of(&place, "set");
    place.run("remove p:2 -q").ok();
    place.run("add p New --at 2 -q").ok();
    let remove = id_of(&place, "remove");
    let list = place.run("undo --list --json").json();
    let changes = list["changes"].as_array().expect("a list");
    let of_set = changes.iter().find(|it| it["id"] == *set).expect("it is listed");
    let expected = json!({"code": "later-change", "path": "plans/p/step-2.md", "by": remove});
    assert_eq!(of_set["blocked"], expected, "{list}");
    let refused = place.run(&format!("undo {set}"));
    assert_eq!(refused.code, 4, "{refused:?}");
    let words =
        "it would restore a dependency on `p/step-2.md`, which is another step since the later `remove`";
    assert!(refused.stderr.contains(words), "{refused:?}");
}

#[test]
fn a_change_of_a_linked_file_is_not_undone_after_an_editor_replaced_the_link() {
    let place = place();
    let (link, behind) = ("plans/p/step-1.md", "plans/q/step-1.md");
    std::fs::remove_file(place.file(link)).expect("it is there");
    std::os::unix::fs::symlink("../q/step-1.md", place.file(link)).expect("links can be made");
    assert_eq!(place.run("note p:1 first").code, 0);
    let noted = place.text(behind);
    place.run("undo --dry-run").ok();
    std::fs::remove_file(place.file(link)).expect("it is there");
    place.write(link, noted.clone() + "An editor's.\n");
    let refused = place.run("undo");
    assert_eq!(refused.code, 4, "{refused:?}");
    assert!(refused.stderr.contains("cannot be undone: `p/step-1.md` was edited"), "{refused:?}");
    assert_eq!((place.text(link), place.text(behind)), (noted.clone() + "An editor's.\n", noted));
}

#[test]
fn a_change_that_a_later_one_builds_on_is_refused_over_http_too() {
    let place = place();
    let server = Server::open(&place);
    assert_eq!(place.run("note p:1 first").code, 0);
    assert_eq!(place.run("attempt p:1 tried").code, 0);
    let (note, attempt) = (id_of(&place, "note"), id_of(&place, "attempt"));
    let undo = |id: &str| {
        let body = json!({"id": id}).to_string();
        server.ask("POST", "/api/undo", "Content-Type: application/json\r\n", &body)
    };
    let refused = undo(&note);
    assert_eq!(refused.problem(), (409, "later-change".to_owned()));
    let details = json!({"change": note, "path": "p/step-1.md", "by": attempt});
    assert_eq!(refused.json()["details"], details);
    assert_eq!(place.run(&format!("undo {note}")).code, 4);
    assert_eq!((undo(&attempt).status, undo(&note).status), (200, 200));
    assert_eq!(place.text("plans/p/step-1.md"), "# Step 1\n");
}

#[test]
fn a_claim_stays_with_a_step_whose_move_is_undone() {
    let place = place();
    // `move` changes the `id`, too, so the step has two operations.
    place.write("plans/p/step-2.md", "---\nid: p:2\n---\n# Step 2\n");
    let claim = place.run("claim p:2 --json").json()["claim"]["id"].as_str().expect("an id").to_owned();
    assert_eq!(place.run("move p:2 --after 3").code, 0);
    // The claim stays in the file, so another user may undo the move.
    let undone = place.run("undo --by bob --json");
    assert_eq!(undone.code, 0);
    let paths: Vec<_> =
        undone.json()["changes"].as_array().expect("a list").iter().map(|it| it["path"].clone()).collect();
    assert_eq!(paths, ["plans/p/step-2.md"]);
    assert_eq!(place.run("claim p:2 --by bob").code, 4, "it is ann's");
    assert_eq!(place.run(&format!("done p:2 --claim {claim}")).code, 0);
}

#[test]
fn another_user_cannot_archive_a_plan_with_a_claimed_step_by_undo() {
    let place = place();
    assert_eq!(place.run("archive p --quiet").code, 0);
    assert_eq!(place.run("archive --restore p --quiet").code, 0);
    let restored = id_of(&place, "restore");
    // The claim comes from a checkout, so that planwatch has no change in between.
    let claimed = "---\nstatus: in_progress\nclaim: {id: \"h4f09a21\", by: \"wen\", at: 2026-11-21T11:50:00Z}\n---\n# A\n";
    place.write("plans/p/step-1.md", claimed);
    assert!(place.run("undo").stderr.contains("claimed by wen"));
    assert_eq!(place.run(&format!("undo {restored} --by wen")).code, 0);
    assert_eq!(place.text("plans/_archive/p/step-1.md"), claimed);
}

/// If the dependency were restored, the step that has it would count as ready, because the number is now that of a
/// completed step.
#[test]
fn a_dependency_on_a_number_that_another_step_has_now_is_not_brought_back() {
    for verb in ["remove", "set"] {
        let place = place();
        assert_eq!(place.run("set q:1 depends+=p:2").code, 0);
        let line = if verb == "set" { "set q:1 depends-=p:2" } else { "remove q:1" };
        assert_eq!(place.run(line).code, 0);
        let taken = id_of(&place, verb);
        assert_eq!(place.run("move p:2 --to 9").code, 0);
        let moved = id_of(&place, "move");
        // No step has the number, so the restored dependency would be on a missing step.
        assert_eq!(place.run(&format!("undo {taken} --dry-run")).code, 0);
        assert_eq!(place.run("move p:3 --to 2").code, 0);
        assert_eq!(place.run("done p:2").code, 0);
        let refused = place.run(&format!("undo {taken}"));
        assert_eq!(refused.code, 4, "{refused:?}");
        let reason =
            "it would restore a dependency on `p/step-2.md`, which is another step since the later `move`";
        assert!(refused.stderr.contains(&moved), "{refused:?}");
        assert!(refused.stderr.contains(reason), "{refused:?}");
    }
}
