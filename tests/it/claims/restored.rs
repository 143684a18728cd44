//! Ended claims that are in a file again, and work that is no longer in its tree.

use std::fs::File;
use std::time::{Duration, UNIX_EPOCH};

use super::{HERE, LATER, OTHER, Repository, at, step_and_id};
use crate::support::NOW_SECONDS;

#[test]
fn a_restored_claim_is_void_while_another_one_is_in_force() {
    let repository = Repository::with(1);
    repository.run(HERE, "claim p:1 --by ann").ok();
    repository.run(HERE, "release p:1 --by ann").ok();
    repository.run(OTHER, "claim p:1 --by bob").ok();
    repository.run(HERE, "undo").ok();
    let refused = repository.run(HERE, "done p:1 --by ann");
    assert!(refused.stderr.contains("claimed"), "{}{}", refused.stdout, refused.stderr);
    repository.run(OTHER, "done p:1 --by bob").ok();
}

#[test]
fn a_claim_that_an_undo_restored_holds_in_all_working_trees() {
    for end in ["done", "fail", "release"] {
        let repository = Repository::with(1);
        let claim = repository.claims(HERE).1;
        repository.run(HERE, &format!("{end} p:1 -m Text")).ok();
        repository.run(HERE, "undo").ok();
        let refused = repository.run(OTHER, "claim p:1 --by bob");
        assert_eq!(refused.code, 4, "{end}: {refused:?}");
        repository.claims_nothing(OTHER);
        repository.run(HERE, &format!("claim --renew {claim}")).ok();
        repository.run(HERE, &format!("done p:1 --claim {claim}")).ok();
        repository.claims_nothing(OTHER);
        repository.run(HERE, "undo").ok();
        repository.run(HERE, "release p:1").ok();
        assert_eq!(repository.claims(OTHER).0, "p:1", "{end}");
    }
}

#[test]
fn a_claim_that_an_undo_restored_holds_under_the_number_before_a_move() {
    let repository = Repository::with(1);
    repository.claims(HERE);
    for line in ["move p:1 --to 5", "done p:5", "undo"] {
        repository.run(HERE, line).ok();
    }
    assert_eq!(repository.run(OTHER, "claim p:1 --by bob").code, 4);
    repository.run(HERE, "release p:5").ok();
    assert_eq!(repository.claims(OTHER).0, "p:1");
}

#[test]
fn a_restored_claim_whose_lease_has_ended_does_not_hold() {
    let repository = Repository::with(1);
    repository.run(HERE, "claim p:1 --lease 10m").ok();
    repository.run(HERE, "done p:1").ok();
    at(&repository.place, LATER, "undo").ok();
    assert_eq!(repository.claims(OTHER).0, "p:1");
}

#[test]
fn a_claim_from_which_the_step_was_taken_over_never_holds_again() {
    let repository = Repository::with(1);
    let place = &repository.place;
    let first =
        step_and_id(&place.run("claim p --by bob --lease 10m --json").ok()).expect("a step is claimed");
    let claimed = place.text("plans/p/step-1.md");
    at(place, LATER, "claim p:1 --by ann").ok();
    at(place, LATER, "release p:1 --by ann").ok();
    // As after a checkout of the earlier file.
    place.write("plans/p/step-1.md", claimed);
    assert!(at(place, LATER, "list p").stdout.contains("lapsed"));
    assert_eq!(at(place, LATER, &format!("claim --renew {}", first.1)).code, 4);
    let late = at(place, LATER, &format!("done p:1 --claim {}", first.1));
    assert!(late.stderr.contains("claim-lost"), "{}{}", late.stdout, late.stderr);
    assert_eq!(at(place, LATER, "claim p:1 --by ann").code, 0);
}

#[test]
fn work_that_is_no_longer_in_its_tree_and_branch_holds_the_step_for_a_minute() {
    let repository = Repository::with(1);
    repository.claims(HERE);
    repository.run(HERE, "done p:1").ok();
    repository.git(HERE, "checkout -q -- plans");
    let file =
        File::options().write(true).open(repository.place.file("plans/p/step-1.md")).expect("it is there");
    let is_at =
        |seconds: u64| file.set_modified(UNIX_EPOCH + Duration::from_secs(seconds)).expect("it is set");
    is_at(NOW_SECONDS - 10);
    repository.claims_nothing(HERE);
    let said = |tree: &str, line: &str, words: &str| {
        let ran = repository.run(tree, line);
        assert!(format!("{}{}", ran.stdout, ran.stderr).contains(words), "{line}: {ran:?}");
    };
    let why = "was closed on this branch, and its file was changed back less than a minute ago";
    said(HERE, "list p", "closed on this branch");
    said(HERE, "next p", &format!("Nothing is ready: step 1 {why}"));
    said(HERE, "claim p --json", &format!("\"why\":\"step 1 {why}\""));
    said(OTHER, "list p", "closed on another branch");
    said(OTHER, "next p", "Nothing is ready: step 1 was closed on main, which is not merged here");
    is_at(NOW_SECONDS - 60);
    repository.claims_nothing(OTHER);
    assert_eq!(repository.claims(HERE).0, "p:1");
}
