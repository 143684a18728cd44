//! Every verb respects a claim that was made in another working tree in the same way as a claim of its own tree.

use serde_json::Value;

use super::{HERE, OTHER, Repository};

/// Commands that only the owner of the step's claim may run.
const VERBS: [&str; 11] = [
    "start p:1",
    "done p:1",
    "fail p:1 -m broken",
    "block p:1 -m waits",
    "skip p:1",
    "attempt p:1 tried",
    "remove p:1",
    "claim p:1",
    "set p:1 status completed",
    "move p:1 --after 2",
    "squash p 1 2 --title Both",
];

/// More commands that are refused while another worker has the claim: commands that end the claim, and commands on the
/// plan, its list or several steps, which would end, move or hide it.
const REFUSED: [&str; 6] = [
    "release p:1",
    "reopen p:1",
    "archive p",
    "remove p --yes",
    "replace p --file list.json",
    "done p:1 p:2",
];

/// Commands that anyone may run while another worker has the claim.
const ALLOWED: [&str; 9] = [
    "note p:1 look",
    "set p:1 tags+=db",
    "set p:1 title New",
    "add p More --after 1",
    "move p:2 --before 1",
    "show p:1",
    "next p",
    "list p",
    "start p:2",
];

fn json(repository: &Repository, line: &str) -> Value {
    serde_json::from_str(&repository.run(HERE, line).ok()).expect("it is JSON")
}

#[test]
fn every_verb_refuses_a_step_claimed_by_another_worker_in_any_tree() {
    for tree in [HERE, OTHER] {
        let repository = Repository::with(2);
        repository.run(tree, "claim p:1 --by bob").ok();
        for verb in VERBS {
            let refused = repository.run(HERE, verb);
            assert_eq!(refused.code, 4, "{tree} {verb}: {}", refused.stdout);
            assert!(refused.stderr.contains("claimed"), "{tree} {verb}: {}", refused.stderr);
            let forced = repository.run(HERE, &format!("{verb} --force --dry-run"));
            assert_eq!(forced.code, 0, "{tree} {verb}: {}", forced.stderr);
        }
        // The owner may complete the step from any working tree.
        assert_eq!(repository.run(HERE, "done p:1 --by bob --dry-run").code, 0, "{tree}");
    }
}

#[test]
fn every_verb_refuses_a_claimed_step_whose_file_lost_the_claim() {
    let repository = Repository::with(2);
    // A text that is much shorter than what planwatch wrote would look half saved.
    let text = format!("# Step 1\n\n{}\n", "What is to be done. ".repeat(20));
    repository.place.write("plans/p/step-1.md", &text);
    repository.run(HERE, "claim p:1 --by bob").ok();
    repository.place.write("plans/p/step-1.md", &text);
    let before = crate::support::tree(&repository.place.top());
    for verb in VERBS {
        let refused = repository.run(HERE, &format!("{verb} --dry-run"));
        assert_eq!(refused.code, 4, "{verb}: {}", refused.stdout);
        assert!(refused.stderr.contains("claimed"), "{verb}: {}", refused.stderr);
        let forced = repository.run(HERE, &format!("{verb} --force --dry-run"));
        assert_eq!(forced.code, 0, "{verb}: {}", forced.stderr);
    }
    assert_eq!(repository.run(HERE, "done p:1 --by bob --dry-run").code, 0);
    assert_eq!(crate::support::tree(&repository.place.top()), before);
    // A person who closes the step in an editor ends the claim, too.
    repository.place.write("plans/p/step-1.md", format!("---\nstatus: failed\n---\n{text}"));
    repository.run(HERE, "reopen p:1 --dry-run").ok();
    // A file that cannot be read may still have the claim.
    repository.place.write("plans/p/step-1.md", format!("---\nstatus: [\n---\n{text}"));
    let found = repository.run(HERE, "check").stdout;
    assert!(found.contains("front-matter-invalid") && !found.contains("taken-back"), "{found}");
}

#[test]
fn a_write_by_others_does_not_end_a_claim_whose_step_an_editor_reset() {
    let repository = Repository::with(2);
    repository.run(HERE, "claim p:1 --by bob").ok();
    let claimed = repository.place.text("plans/p/step-1.md");
    for line in ["note p:1 seen", "set p:1 tags+=new", "check --fix", "undo"] {
        repository.place.write("plans/p/step-1.md", claimed.replace("in_progress", "pending"));
        let found = repository.run(HERE, "check").stdout;
        assert!(found.contains("taken-back") && !found.contains("stale-claim"), "{line}: {found}");
        drop(repository.run(HERE, line));
        let refused = repository.run(HERE, "claim p:1 --by eve");
        assert_eq!(refused.code, 4, "{line}: {}", refused.stdout);
        assert!(refused.stderr.contains("error[claimed]"), "{line}: {}", refused.stderr);
    }
    repository.run(HERE, "release p:1 --by bob").ok();
    repository.run(HERE, "claim p:1 --by eve").ok();
}

#[test]
fn force_ends_the_claim_of_another_working_tree() {
    let verbs = ["release", "done", "start", "block", "set p:1 status skipped"];
    for (verb, has_line) in verbs.into_iter().flat_map(|it| [(it, false), (it, true)]) {
        let repository = Repository::with(2);
        let claim = repository.run(OTHER, "claim p:1 --by bob --json").ok();
        let claim: Value = serde_json::from_str(&claim).expect("it is JSON");
        if has_line {
            let file = crate::support::read(&repository.place.work().join(OTHER).join("plans/p/step-1.md"));
            repository.place.write("plans/p/step-1.md", &file);
        }
        let line = if verb.contains(' ') { verb.to_owned() } else { format!("{verb} p:1") };
        repository.run(HERE, &format!("{line} --force")).ok_code();
        let shown = repository.run(HERE, "show p:1").stdout;
        assert!(!shown.contains("bob in"), "{verb}");
        // The claim's own file may not have it, but the override is recorded.
        assert!(shown.contains("forced: skipped") || !verb.starts_with("set"), "{verb}: {shown}");
        let late =
            repository.run(OTHER, &format!("done p:1 --claim {}", claim["claim"]["id"].as_str().unwrap()));
        assert!(late.code == 4 && late.stderr.contains("claim-lost"), "{verb}: {late:?}");
        if verb == "release" {
            repository.run(HERE, "claim p:1").ok();
        }
    }
}

#[test]
fn no_command_removes_a_claim_of_any_tree_and_other_steps_can_be_changed() {
    for tree in [HERE, OTHER] {
        let repository = Repository::with(2);
        repository.place.write("list.json", r#"[{"id": "2", "title": "Step 2"}]"#);
        repository.run(tree, "claim p:1 --by bob").ok();
        let before = crate::support::tree(&repository.place.top());
        for line in REFUSED {
            let refused = repository.run(HERE, &format!("{line} --dry-run"));
            assert_eq!(refused.code, 4, "{tree} {line}: {}", refused.stdout);
            assert!(refused.stderr.contains("claimed"), "{tree} {line}: {}", refused.stderr);
        }
        for line in ALLOWED {
            let is_reading = ["show", "next", "list"].iter().any(|it| line.starts_with(it));
            let ran = repository
                .run(HERE, &if is_reading { (*line).to_owned() } else { format!("{line} --dry-run") });
            assert_eq!(ran.code, 0, "{tree} {line}: {}", ran.stderr);
        }
        let next = json(&repository, "next p --json");
        assert_eq!(next["step"]["id"], "p:2", "{tree}: {next}");
        assert_eq!(crate::support::tree(&repository.place.top()), before, "{tree}");
        // The claim is still there for its owner.
        assert_eq!(repository.run(tree, "done p:1 --by bob --dry-run").code, 0, "{tree}");
    }
}

#[test]
fn a_claim_of_any_tree_is_shown_with_its_end() {
    for tree in [HERE, OTHER] {
        let repository = Repository::with(2);
        let (_, claim) =
            super::step_and_id(&repository.run(tree, "claim p:1 --by bob --lease 10m --json").ok())
                .expect("a claim");
        let shown = json(&repository, "show p:1 --json");
        let held = &shown["held"];
        assert_eq!((&held["claim"], &held["by"]), (&Value::from(claim), &Value::from("bob")), "{tree}");
        assert_eq!(held["until"], "2026-11-21T12:10:00Z", "{tree}");
        assert_eq!(held["worktree"].is_null(), tree == HERE, "{tree}");
        assert_eq!(shown["ready"], false, "{tree}");
        let text = repository.run(HERE, "show p:1").ok();
        assert!(text.contains("holds until 2026-11-21T12:10:00Z"), "{tree}: {text}");
        let list = repository.run(HERE, "list p").ok();
        let holder = if tree == HERE { "bob" } else { "bob in another working tree" };
        assert!(list.contains(holder), "{tree}: {list}");
        let ready = json(&repository, "list p --status ready --json");
        assert_eq!(ready["steps"].as_array().map(Vec::len), Some(1), "{tree}: {ready}");
        assert_eq!(ready["steps"][0]["id"], "p:2", "{tree}");
    }
}

#[test]
fn status_lists_a_claim_of_any_tree() {
    for tree in [HERE, OTHER] {
        let repository = Repository::with(2);
        let (_, claim) =
            super::step_and_id(&repository.run(tree, "claim p:1 --by bob --lease 10m --json").ok())
                .expect("a claim");
        let status = json(&repository, "status --json");
        let busy = &status["in_progress"];
        assert_eq!(busy.as_array().map(Vec::len), Some(1), "{tree}: {status}");
        assert_eq!(busy[0]["id"], "p:1", "{tree}");
        assert_eq!(busy[0]["since"], "2026-11-21T12:00:00Z", "{tree}");
        let held = &busy[0]["held"];
        if tree == HERE {
            assert_eq!((&busy[0]["claim"]["id"], held), (&Value::from(claim), &Value::Null));
        } else {
            assert_eq!((&held["claim"], &held["by"]), (&Value::from(claim), &Value::from("bob")));
            assert_eq!(held["until"], "2026-11-21T12:10:00Z");
            assert!(held["worktree"].is_string(), "{held}");
        }
        let text = repository.run(HERE, "status").ok();
        let holder = if tree == HERE { "bob" } else { "bob in another working tree" };
        assert!(text.contains("In progress") && text.contains(holder), "{tree}: {text}");
        // The step is not ready, and `done` is not suggested, because it would be refused.
        assert!(!text.contains("planwatch done p:1"), "{tree}: {text}");
        assert_eq!(status["ready"][0]["id"], "p:2", "{tree}");
    }
}

#[test]
fn ready_steps_have_no_open_dependencies() {
    let repository = Repository::with(2);
    repository.place.write("plans/p/step-3.md", "---\nstatus: pending\ndepends: [2]\n---\n# Step 3\n");
    let ids = |status: &str| {
        let listed = json(&repository, &format!("list p --status {status} --json"));
        let steps = listed["steps"].as_array().cloned().unwrap_or_default();
        steps.iter().map(|it| it["id"].as_str().unwrap_or_default().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(ids("ready"), ["p:1", "p:2"]);
    assert_eq!(ids("Ready"), ["p:1", "p:2"]);
    assert_eq!(ids("pending"), ["p:1", "p:2", "p:3"]);
    assert_eq!(ids("ready --status completed"), ["p:1", "p:2"]);
}

#[test]
fn a_report_on_a_step_that_another_tree_closed_by_force_says_where_and_not_that_it_is_claimed() {
    let repository = Repository::with(1);
    repository.run(HERE, "claim p:1 --by bo").ok();
    repository.run(OTHER, "done p:1 --force").ok();
    let refused = repository.run(HERE, "done p:1 --by bo");
    assert_eq!(refused.code, 4, "{refused:?}");
    assert!(refused.stderr.contains("`p:1` was closed on "), "{}", refused.stderr);
    assert!(refused.stderr.contains("hint: merge it"), "{}", refused.stderr);
}

#[test]
fn a_closed_step_does_not_keep_a_later_one_with_its_number_from_being_claimed() {
    let step = |day: &str| {
        let text = "What is to be done. ".repeat(40);
        format!("---\nstatus: pending\ncreated_at: {day}T12:00:00Z\n---\n# Step 1\n\n{text}\n")
    };
    for is_claimed in [false, true] {
        let repository = Repository::with(1);
        for tree in [HERE, OTHER] {
            repository.place.write(&format!("{tree}/plans/p/step-1.md"), step("2026-11-01"));
        }
        if is_claimed {
            repository.run(HERE, "claim p:1 --by bo").ok();
        }
        repository.run(HERE, "done p:1 --by bo").ok();
        assert_eq!(repository.run(OTHER, "next p").code, 7, "claimed: {is_claimed}");
        // Another plan gets the name of this one.
        for tree in [HERE, OTHER] {
            repository.place.write(&format!("{tree}/plans/p/step-1.md"), step("2026-11-20"));
            assert_eq!(repository.run(tree, "next p").code, 0, "{tree}, claimed: {is_claimed}");
        }
    }
}
