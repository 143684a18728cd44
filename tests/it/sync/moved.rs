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
    // The records are no longer needed, but `b` does not have the move yet.
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
    assert_eq!(team.records(), ["p/1 claimed ann", "p/4 claimed ann"], "`done` completed another step");
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
    assert_eq!(team.records(), ["p/1 completed ann", "p/4 completed ann"]);
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
    // This undo would restore the released claim, but `b` has claimed the step.
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
fn a_claim_that_is_pushed_without_its_move_keeps_both_numbers() {
    let team = Team::new();
    let (a, b) = (team.clone_of("a"), team.clone_of("b"));
    a.claim("p:1");
    a.commit_and_push();
    a.run("move p:1 --after 3").ok();
    b.run("sync").ok_code();
    assert_eq!(team.records(), ["p/1 claimed ann", "p/4 claimed ann"]);
    a.run("done p:4").ok();
}

#[test]
fn work_that_ends_under_the_earlier_number_ends_everywhere() {
    for how in ["checkout -q -f main", "reset -q --hard"] {
        let team = Team::new();
        let (a, b) = (team.clone_of("a"), team.clone_of("b"));
        a.claim("p:1");
        a.commit_and_push();
        if how.starts_with("checkout") {
            a.git("checkout -q -b feat");
        }
        a.run("move p:1 --after 3").ok();
        a.git("add plans");
        if how.starts_with("checkout") {
            a.git("commit -q -m Move");
        }
        a.git(how);
        a.run("done p:1").ok();
        a.run("sync").ok();
        assert_eq!(team.records(), ["p/1 completed ann", "p/4 completed ann"], "{how}");
        refused(&b.run("claim p:1"), "claimed");
    }
}

#[test]
fn a_file_that_another_program_renamed_keeps_its_claim() {
    let team = Team::new();
    let (a, b) = (team.clone_of("a"), team.clone_of("b"));
    a.claim("p:1");
    a.git("mv plans/p/step-1.md plans/p/step-9.md");
    a.run("done p:9").ok();
    assert_eq!(team.records(), ["p/1 completed ann", "p/9 completed ann"]);
    a.run("sync").ok();
    assert_eq!(team.records(), ["p/1 completed ann", "p/9 completed ann"]);
    refused(&b.run("claim p:1"), "claimed");
}

#[test]
fn a_move_takes_no_number_that_another_clone_has_claimed() {
    let team = Team::new();
    let (a, b) = (team.clone_of("a"), team.clone_of("b"));
    a.claim("p:1");
    b.run("add p Four").ok_code();
    b.claim("p:4");
    a.run("move p:1 --after 3").ok();
    assert!(a.step(5).contains("# Step 1"));
    refused(&a.run("move p:5 --to 4"), "claims-live");
    a.run("done p:5").ok();
    assert_eq!(team.records(), ["p/1 completed ann", "p/4 claimed bob", "p/5 completed ann"]);
}

#[test]
fn a_new_claim_of_a_moved_step_holds_its_earlier_number() {
    let team = moved();
    let (a, b) = (team.clone_of("a"), team.clone_of("b"));
    a.run("claim p:4 --force").ok();
    a.run("sync").ok();
    assert_eq!(team.records(), ["p/1 claimed ann", "p/4 claimed ann"]);
    refused(&b.run("claim p:1"), "claimed");
    a.run("done p:4").ok();
    assert_eq!(team.records(), ["p/1 completed ann", "p/4 completed ann"]);
}

#[test]
fn a_step_that_took_the_earlier_number_gives_it_back() {
    let team = moved();
    let (a, b) = (team.clone_of("a"), team.clone_of("b"));
    a.run("move p:2 --to 1").ok();
    a.claim("p:1");
    a.run("release p:1").ok();
    refused(&b.run("claim p:1"), "claimed");
    a.commit_and_push();
    b.run("sync").ok_code();
    // The branch has another step under the number.
    refused(&b.run("claim p:1"), "claimed");
}

#[test]
fn undone_moves_that_swapped_numbers_keep_both_claims() {
    let team = Team::new();
    let a = team.clone_of("a");
    a.claim("p:1");
    a.claim("p:2");
    a.run("move p:1 --to 9").ok();
    a.run("move p:2 --to 1").ok();
    a.run("move p:9 --to 2").ok();
    a.run("undo").ok();
    a.run("undo").ok();
    a.run("done p:2").ok();
    a.run("sync").ok();
    assert!(team.records().contains(&"p/2 completed ann".to_owned()), "{:?}", team.records());
}

#[test]
fn an_offline_claim_that_was_moved_and_lost_blocks_nothing() {
    let team = Team::new();
    let (a, b) = (team.clone_of("a"), team.clone_of("b"));
    team.fault("offline");
    a.run("claim p:2 --offline").ok_code();
    a.run("move p:2 --after 3").ok_code();
    team.heal();
    b.claim("p:2");
    assert!(a.run("sync").ok().contains("lost"));
    a.run("sync").ok();
    assert_eq!(a.claim("p").0, "p:1");
    assert_eq!(team.records(), ["p/1 claimed ann", "p/2 claimed bob"]);
}

#[test]
fn own_records_that_were_removed_are_not_taken_for_those_of_others() {
    let team = Team::new();
    let a = team.clone_of("a");
    for undo in ["release p:1", "undo"] {
        a.claim("p:1");
        a.run("sync").ok();
        a.run(undo).ok_code();
        a.run("done p:1").ok();
        a.run("undo").ok_code();
    }
}

#[test]
fn an_undone_release_of_another_clones_claim_stays_theirs() {
    let team = Team::new();
    let (a, b) = (team.clone_of("a"), team.clone_of("b"));
    b.claim("p:1");
    b.commit_and_push();
    a.git("pull -q");
    a.run("release p:1 --force").ok_code();
    a.run("undo --force").ok_code();
    assert!(team.records().is_empty(), "{:?}", team.records());
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
}

#[test]
fn steps_that_another_program_swaps_keep_both_claims() {
    let team = Team::new();
    let a = team.clone_of("a");
    a.claim("p:1");
    a.claim("p:2");
    for line in ["step-1.md plans/p/x", "step-2.md plans/p/step-1.md", "x plans/p/step-2.md"] {
        a.git(&format!("mv plans/p/{line}"));
    }
    let said = a.run("sync").ok();
    assert!(!said.contains("lost"), "{said}");
    assert_eq!(team.records(), ["p/1 claimed ann", "p/2 claimed ann"]);
    a.run("done p:1").ok();
    assert_eq!(team.records(), ["p/1 completed ann", "p/2 claimed ann"]);
    a.run("done p:2").ok();
    assert_eq!(team.records(), ["p/1 completed ann", "p/2 completed ann"]);
}

/// Two clones that have step 1 in `step-01.md`.
fn with_leading_zero() -> Team {
    let team = Team::new();
    let (a, b) = (team.clone_of("a"), team.clone_of("b"));
    a.git("mv plans/p/step-1.md plans/p/step-01.md");
    a.commit_and_push();
    b.git("pull -q");
    team
}

#[test]
fn a_step_that_is_closed_on_the_branch_is_recognized_under_any_file_name() {
    let team = with_leading_zero();
    let (a, b) = (team.clone_of("a"), team.clone_of("b"));
    a.claim("p:1");
    a.run("done p:1").ok();
    a.commit_and_push();
    b.run("sync").ok_code();
    assert!(team.records().is_empty(), "{:?}", team.records());
    refused(&b.run("claim p:1"), "claimed");
    b.git("pull -q");
    b.run("reopen p:1").ok();
    b.claim("p:1");
}

#[test]
fn a_step_that_is_moved_on_the_branch_is_recognized_under_any_file_name() {
    let team = with_leading_zero();
    let (a, b) = (team.clone_of("a"), team.clone_of("b"));
    a.claim("p:1");
    a.commit_and_push();
    b.run("sync").ok_code();
    assert_eq!(team.records(), ["p/1 claimed ann"], "the file is not that of a moved step");
    a.run("release p:1").ok();
    a.run("move p:1 --after 3").ok();
    a.commit_and_push();
    b.run("sync").ok_code();
    refused(&b.run("claim p:1"), "claimed");
}

#[test]
fn a_renamed_file_is_not_a_moved_step() {
    let team = Team::new();
    let (a, b) = (team.clone_of("a"), team.clone_of("b"));
    a.git("mv plans/p/step-1.md plans/p/step-01.md");
    a.commit_and_push();
    b.run("sync").ok_code();
    b.claim("p:1");
}

/// A plan of two steps, which have times of creation. In the clone `b`, step 1 has the number 9. In the clone `a`, it was
/// completed as step 1, and that is on the branch, but not in `b`.
fn completed_before_a_move(line: &str) -> Team {
    let team = Team::new();
    let (a, b) = (team.clone_of("a"), team.clone_of("b"));
    a.run("new q One Two -q").ok_code();
    a.commit_and_push();
    b.git("pull -q");
    a.claim("q:1");
    a.run("done q:1").ok();
    a.commit_and_push();
    a.run("sync").ok_code();
    b.run("sync").ok_code();
    refused(&b.run("claim q:1"), "claimed");
    b.run(line).ok_code();
    team
}

#[test]
fn a_step_that_is_closed_on_the_branch_is_not_claimed_after_a_move() {
    for (line, step, next) in [("move q:1 --to 9", "q:9", "q:2"), ("move q --to r", "r:1", "r:2")] {
        let team = completed_before_a_move(line);
        let b = team.clone_of("b");
        refused(&b.run(&format!("claim {step}")), "claimed");
        let plan = step.split(':').next().unwrap_or_default();
        assert_eq!(b.claim(plan).0, next, "{line}");
        b.run(&format!("release {next}")).ok();
        // The same holds after a commit of the move.
        b.git("add plans");
        b.git("commit -q -m Move");
        refused(&b.run(&format!("claim {step}")), "claimed");
    }
}

#[test]
fn a_step_with_the_number_of_a_moved_and_closed_one_can_be_claimed() {
    let team = completed_before_a_move("move q:1 --to 9");
    let b = team.clone_of("b");
    // This step has the title, but not the time of creation.
    b.write("plans/q/step-5.md", "---\ncreated_at: 2026-01-01T00:00:00Z\nstatus: pending\n---\n# One\n");
    assert_eq!(b.claim("q:5").0, "q:5");
    assert_eq!(b.claim("q:2").0, "q:2");
}

#[test]
fn a_changed_step_without_an_id_is_not_a_moved_step() {
    let team = Team::new();
    let (a, b) = (team.clone_of("a"), team.clone_of("b"));
    a.write("plans/q/plan.md", "# Q\n");
    a.write("plans/q/step-1.md", "# One\n");
    a.commit_and_push();
    b.git("pull -q");
    a.run("note q:1 Look").ok_code();
    a.commit_and_push();
    b.run("sync").ok_code();
    assert_eq!(b.claim("q:1").0, "q:1");
}
