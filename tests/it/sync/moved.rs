//! Claimed steps that get another number, and claims that `undo` changes, as other clones see them.

use super::team::{Team, refused};

/// Two clones, of which `a` has claimed step 1 and moved it to the end, as step 4.
fn moved() -> Team {
    let team = Team::new();
    let a = team.clone_of("a");
    a.claim("p:1");
    a.run("move p:1 --after 3").ok();
    assert!(a.step(4).contains("# Step 1"));
    team
}

#[test]
fn a_moved_step_stays_claimed_under_the_number_that_other_clones_have() {
    let team = moved();
    let (a, b) = (team.clone_of("a"), team.clone_of("b"));
    assert_eq!(team.records(), ["p/1 claimed ann", "p/4 claimed ann"]);
    refused(&b.run("claim p:1"), "claimed");
    assert!(a.run("sync").ok().contains("p:4"));
    a.run("done p:4").ok();
    assert_eq!(team.records(), ["p/1 completed ann", "p/4 completed ann"]);
    refused(&b.run("claim p:1"), "claimed");
    a.commit_and_push();
    // The records are no longer needed, but this clone does not have the move yet.
    b.run("sync").ok_code();
    assert!(team.records().is_empty(), "{:?}", team.records());
    refused(&b.run("claim p:1"), "claimed");
    assert_eq!(b.claim("p").0, "p:2");
    b.run("release p:2").ok();
    b.git("pull -q");
    assert_eq!(b.claim("p").0, "p:2");
}

#[test]
fn the_earlier_number_is_free_once_the_move_is_on_the_branch() {
    let team = moved();
    let (a, b) = (team.clone_of("a"), team.clone_of("b"));
    a.commit_and_push();
    b.git("pull -q");
    b.run("sync").ok_code();
    assert_eq!(team.records(), ["p/4 claimed ann"]);
    assert!(a.run("sync").ok().contains("p:4"));
    assert_eq!(team.records(), ["p/4 claimed ann"]);
    a.run("done p:4").ok();
    assert_eq!(team.records(), ["p/4 completed ann"]);
}

#[test]
fn releasing_a_moved_step_frees_both_numbers() {
    let team = moved();
    team.clone_of("a").run("release p:4").ok();
    assert!(team.records().is_empty(), "{:?}", team.records());
    team.clone_of("b").claim("p:1");
}

#[test]
fn a_moved_step_can_be_taken_over_under_its_earlier_number() {
    let team = moved();
    let (a, b) = (team.clone_of("a"), team.clone_of("b"));
    b.run("release p:1 --force").ok();
    b.claim("p:1");
    refused(&a.run("done p:4"), "claim-lost");
    assert!(a.step(4).contains("late result"));
    assert_eq!(team.records(), ["p/1 claimed bob"]);
    a.run("sync").ok_code();
    assert_eq!(team.records(), ["p/1 claimed bob"]);
}

#[test]
fn a_step_with_the_earlier_number_of_a_claimed_one_has_its_own_claim() {
    let team = moved();
    let a = team.clone_of("a");
    a.run("move p:2 --to 1").ok();
    assert!(a.step(1).contains("# Step 2"));
    a.run("start p:1").ok();
    a.run("done p:1").ok();
    assert_eq!(team.records(), ["p/1 claimed ann", "p/4 claimed ann"], "the end is of another step");
    a.run("done p:4").ok();
    assert_eq!(team.records(), ["p/1 completed ann", "p/4 completed ann"]);
}

#[test]
fn an_undone_move_keeps_the_claim_everywhere() {
    let team = moved();
    let (a, b) = (team.clone_of("a"), team.clone_of("b"));
    a.run("undo").ok();
    refused(&b.run("claim p:1"), "claimed");
    a.run("done p:1").ok();
    refused(&b.run("claim p:1"), "claimed");
}

#[test]
fn undo_changes_the_records_at_the_remote() {
    let team = Team::new();
    let (a, b) = (team.clone_of("a"), team.clone_of("b"));
    let unclaimed = a.step(1);
    a.claim("p:1");
    let claimed = a.step(1);
    a.run("done p:1").ok();
    a.run("undo").ok();
    assert_eq!((a.step(1), team.records()), (claimed.clone(), vec!["p/1 claimed ann".to_owned()]));
    a.run("release p:1").ok();
    assert!(team.records().is_empty());
    a.run("undo").ok_code();
    assert_eq!((a.step(1), team.records()), (claimed, vec!["p/1 claimed ann".to_owned()]));
    refused(&b.run("claim p:1"), "claimed");
    // The release, the claim: their undo is undone by the next one.
    a.run("release p:1").ok();
    b.claim("p:1");
    refused(&a.run("undo"), "claims-live");
    assert_eq!((a.step(1), team.records()), (unclaimed, vec!["p/1 claimed bob".to_owned()]));
}

#[test]
fn an_undone_claim_is_free_for_other_clones() {
    let team = Team::new();
    let (a, b) = (team.clone_of("a"), team.clone_of("b"));
    a.claim("p:1");
    a.run("undo").ok();
    assert!(team.records().is_empty(), "{:?}", team.records());
    b.claim("p:1");
}

#[test]
fn work_that_ended_in_one_working_tree_stays_ended_for_the_others() {
    let team = Team::new();
    let (a, b) = (team.clone_of("a"), team.clone_of("b"));
    a.claim("p:1");
    a.git("add plans");
    a.git("commit -q -m Claim");
    a.git("worktree add -q -b other ../w");
    let w = team.clone_of("w");
    a.run("done p:1").ok();
    w.run("sync").ok_code();
    assert_eq!(team.records(), ["p/1 completed ann"]);
    refused(&b.run("claim p:1"), "claimed");
    // If that working tree is gone, its result is lost with it, and the files that remain decide.
    a.git("stash -q");
    assert!(a.step(1).contains("claim:"));
    a.run("sync").ok_code();
    assert_eq!(team.records(), ["p/1 claimed ann"]);
}
