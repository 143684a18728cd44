//! Claims on the shared git remote, with real git: two clones, lost connections, crashes, and records of other clones.

mod faults;
mod host;
mod moved;
mod offline;
mod surfaces;
mod team;
mod watching;

use team::{Team, refused};

#[test]
fn two_clones_work_through_a_plan_and_no_step_is_claimed_twice() {
    let team = Team::new();
    let (a, b) = (team.clone_of("a"), team.clone_of("b"));
    let (one, claim) = a.claim("");
    assert_eq!((one.as_str(), b.claim("").0.as_str()), ("p:1", "p:2"));
    assert_eq!(team.records(), ["p/1 claimed ann", "p/2 claimed bob"]);
    // The commands of each clone show the claims of the other one.
    a.run("sync status").ok_code();
    assert!(b.run("show p:1").stdout.contains("held by  ann on "), "{:?}", b.run("show p:1"));
    assert!(b.run("list p").stdout.contains("ann on "));
    assert!(a.run("list p").stdout.contains("bob on "));
    assert!(b.run("status").stdout.contains("ann on "));
    assert!(b.run("next p --json").stdout.contains("\"id\":\"p:3\""));
    refused(&b.run("claim p:1"), "claimed");
    refused(&b.run("start p:1"), "claimed");
    refused(&b.run("done p:1"), "claimed");
    // The result is shared: other clones treat the step as completed even before the work is merged.
    a.run(&format!("done p:1 --claim {claim} -m made")).ok();
    assert_eq!(team.records(), ["p/1 completed ann", "p/2 claimed bob"]);
    assert_eq!(b.claim("").0, "p:3");
    assert!(b.run("show p:1").stdout.contains("completed by ann"), "{:?}", b.run("show p:1"));
    assert_eq!(b.run("claim").code, 7);
    a.commit_and_push();
    assert!(a.run("sync").ok().contains("removed"));
    assert_eq!(team.records(), ["p/2 claimed bob", "p/3 claimed bob"]);
    // The completed step is on the remote's branch, but not in `b`.
    refused(&b.run("claim p:1"), "claimed");
    b.git("pull -q");
    refused(&b.run("claim p:1"), "not-allowed");
    b.run("done p:2").ok();
    b.run("release p:3").ok();
    assert_eq!(a.claim("").0, "p:3");
    assert_eq!(team.records(), ["p/2 completed bob", "p/3 claimed ann"]);
    let others: Vec<_> = team.pushed().into_iter().filter(|it| !it.starts_with("refs/planwatch/")).collect();
    assert_eq!(others, ["refs/heads/main"], "only a person pushed the branch");
}

#[test]
fn the_refusal_of_a_claim_names_the_command_that_ends_the_other_one() {
    let team = Team::new();
    let (a, b) = (team.clone_of("a"), team.clone_of("b"));
    b.claim("p:1");
    for line in ["claim p:1", "claim p:1", "claim p:1 --force", "done p:1"] {
        let ran = a.run(line);
        refused(&ran, "claimed");
        assert!(ran.stderr.contains("; `planwatch release p:1 --force` ends it"), "{line}: {ran:?}");
    }
    a.run("release p:1 --force").ok_code();
    a.claim("p:1");
}

#[test]
fn a_claim_that_another_clone_makes_first_is_undone_byte_for_byte() {
    let team = Team::new();
    let (a, b) = (team.clone_of("a"), team.clone_of("b"));
    // The file has no front matter, so removing only the claim and the status would not restore its bytes.
    a.write("plans/p/step-1.md", "# Step 1\n");
    let before = [a.step(1), a.step(2)];
    let bin = env!("CARGO_BIN_EXE_planwatch");
    team.write("race", &format!("cd \"$TEAM/b\" && PLANWATCH_BY=bob {bin} claim p:1"));
    team.fault("race");
    let (step, _) = a.claim("");
    assert_ne!(step, "p:1");
    assert_eq!(a.step(1), before[0]);
    assert!(b.step(1).contains("bob"));
    assert_eq!(team.records().len(), 2);
    assert!(team.records().contains(&"p/1 claimed bob".to_owned()));
    // A named step is not replaced by another one.
    a.run(&format!("release {step}")).ok();
    team.write("race", &format!("cd \"$TEAM/b\" && PLANWATCH_BY=bob {bin} claim p:2"));
    team.fault("race");
    refused(&a.run("claim p:2"), "claimed");
    assert_eq!(a.step(2), before[1]);
    // The lost claim left no lease.
    assert_eq!(a.claim("").0, "p:3");
}

#[test]
fn a_claim_needs_two_connections_and_its_result_one() {
    let team = Team::new();
    let a = team.clone_of("a");
    team.calls();
    a.claim("p:1");
    let calls = team.calls();
    assert_eq!(calls.len(), 2, "{calls:#?}");
    // Only `--force-with-lease` decides whether the push succeeds: `+` or `--force` would disable it.
    let push = calls.iter().find(|it| it.contains(" push ")).unwrap();
    assert!(push.contains("--force-with-lease=refs/planwatch/claims/plans/p/1: "), "{push}");
    assert!(!push.contains(" +") && !push.contains("--force "), "{push}");
    assert!(push.contains("--no-verify"), "{push}");
    // Records are fetched, not listed, so that the server does not send all its refs.
    assert!(!calls.iter().any(|it| it.contains("ls-remote")), "{calls:#?}");
    a.run("done p:1").ok();
    assert_eq!(team.calls().len(), 1);
    a.run("done p:1").ok();
    assert_eq!(team.calls().len(), 0, "a repeated report contacts no remote");
}

#[test]
fn a_late_result_of_a_claim_that_was_taken_over_adds_only_a_note() {
    let team = Team::new();
    let (a, b) = (team.clone_of("a"), team.clone_of("b"));
    let (_, claim) = a.claim("p:1");
    b.run("sync").ok_code();
    b.mark_as_lapsed();
    assert!(b.run("next --json").stdout.contains("\"id\":\"p:1\""), "a lapsed claim counts as ready");
    assert_eq!(b.claim("").0, "p:1");
    assert_eq!(team.records(), ["p/1 claimed bob"]);
    let late = a.run(&format!("done p:1 --claim {claim} -m late"));
    refused(&late, "claim-lost");
    let step = a.step(1);
    assert!(step.contains("status: in_progress") && step.contains("late result of the claim"), "{step}");
    assert_eq!(step.matches("late result").count(), 1);
    team.calls();
    refused(&a.run(&format!("done p:1 --claim {claim} -m late")), "claim-lost");
    let attempt = a.run(&format!("attempt p:1 late --status completed --claim {claim}"));
    refused(&attempt, "claim-lost");
    assert_eq!((a.step(1), team.calls().len()), (step, 0), "the clone knows that the claim is lost");
    assert_eq!(team.records(), ["p/1 claimed bob"]);
    b.run("done p:1").ok();
    assert_eq!(team.records(), ["p/1 completed bob"]);
    // The owner of a lapsed claim can still complete the step if no other clone took it over.
    let (_, claim) = a.claim("p:2");
    b.run("sync").ok_code();
    b.mark_as_lapsed();
    a.run(&format!("done p:2 --claim {claim}")).ok();
    refused(&b.run("claim p:2"), "claimed");
}

#[test]
fn a_claim_that_was_lost_counts_only_while_the_file_has_it() {
    let team = Team::new();
    let (a, b) = (team.clone_of("a"), team.clone_of("b"));
    let (_, claim) = a.claim("p:1");
    b.run("release p:1 --force").ok_code();
    b.claim("p:1");
    refused(&a.run(&format!("done p:1 --claim {claim} -m late")), "claim-lost");
    b.run("release p:1").ok();
    a.run("sync").ok_code();
    // The file still has the lost claim. No other clone has claimed the step now.
    refused(&a.run(&format!("claim --renew {claim} --dry-run")), "claim-lost");
    refused(&a.run(&format!("claim --renew {claim}")), "claim-lost");
    refused(&a.run("done p:1"), "claim-lost");
    a.run("release p:1").ok();
    let released = a.step(1);
    refused(&a.run(&format!("done p:1 --claim {claim} -m late")), "claim-lost");
    assert_eq!(a.step(1), released, "the late result is noted already");
    a.run("done p:1 --by cy -m made").ok();
    assert!(a.step(1).contains("status: completed"), "{}", a.step(1));
}

/// `b` has taken over step 1 from `a` and ended it, the work is on the shared branch, and the record was removed. Returns the
/// claim of `a`.
fn taken_over_and_merged(team: &Team, end: &str) -> String {
    let (a, b) = (team.clone_of("a"), team.clone_of("b"));
    let (_, claim) = a.claim("p:1");
    b.run("release p:1 --force").ok_code();
    b.claim("p:1");
    b.run(&format!("{end} p:1")).ok_code();
    b.commit_and_push();
    assert!(b.run("sync").ok().contains("removed"));
    assert!(team.records().is_empty());
    claim
}

#[test]
fn a_claim_stays_lost_after_the_other_result_was_merged() {
    for end in ["done", "fail"] {
        let team = Team::new();
        let claim = taken_over_and_merged(&team, end);
        let a = team.clone_of("a");
        refused(&a.run(&format!("done p:1 --claim {claim} -m late")), "claim-lost");
        let step = a.step(1);
        assert!(step.contains("status: in_progress") && step.contains(": completed: late"), "{step}");
        refused(&a.run(&format!("claim --renew {claim}")), "claim-lost");
        assert!(team.records().is_empty());
        // A renewal and `sync` find the loss, too.
        let team = Team::new();
        let claim = taken_over_and_merged(&team, end);
        refused(&team.clone_of("a").run(&format!("claim --renew {claim}")), "claim-lost");
        assert!(team.records().is_empty());
        let team = Team::new();
        taken_over_and_merged(&team, end);
        let ran = team.clone_of("a").run("sync").ok();
        assert!(ran.contains("lost  p:1: bob (merged into main)"), "{ran}");
        assert!(team.records().is_empty());
    }
}

#[test]
fn a_moved_claim_stays_lost_after_the_other_result_was_merged() {
    let team = Team::new();
    let (a, b) = (team.clone_of("a"), team.clone_of("b"));
    a.claim("p:1");
    a.run("move p:1 --after 3").ok();
    b.run("release p:1 --force").ok_code();
    b.claim("p:1");
    b.run("done p:1").ok();
    b.commit_and_push();
    b.run("sync").ok_code();
    refused(&a.run("done p:4 -m late"), "claim-lost");
    assert!(a.step(4).contains("late result"));
    assert!(team.records().is_empty(), "{:?}", team.records());
}

#[test]
fn a_renewal_asks_whether_the_step_was_taken_over() {
    let team = Team::new();
    let (a, b) = (team.clone_of("a"), team.clone_of("b"));
    let (_, claim) = a.claim("p:1");
    team.calls();
    a.run(&format!("claim --renew {claim}")).ok();
    assert_eq!(team.calls().len(), 1);
    team.fault("offline");
    a.run(&format!("claim --renew {claim}")).ok();
    team.heal();
    b.run("release p:1 --force").ok_code();
    b.claim("p:1");
    refused(&a.run(&format!("claim --renew {claim}")), "claim-lost");
    assert_eq!(team.records(), ["p/1 claimed bob"]);
}

#[test]
fn of_two_take_overs_one_succeeds() {
    let team = Team::new();
    let (a, b) = (team.clone_of("a"), team.clone_of("b"));
    team.place.git_at(&team.place.top(), 0, &["clone", "-q", "hub.git", "c"]);
    let c = team.clone_of("c");
    a.claim("p:1");
    for other in [&b, &c] {
        other.run("sync").ok_code();
        other.mark_as_lapsed();
    }
    let bin = env!("CARGO_BIN_EXE_planwatch");
    team.write("race", &format!("cd \"$TEAM/c\" && PLANWATCH_BY=cy {bin} claim p:1"));
    team.fault("race");
    let before = b.step(1);
    refused(&b.run("claim p:1"), "claimed");
    assert_eq!(b.step(1), before);
    assert_eq!(team.records(), ["p/1 claimed cy"]);
}

#[test]
fn steps_that_other_clones_have_claimed_are_not_restructured_without_force() {
    let team = Team::new();
    let (a, b) = (team.clone_of("a"), team.clone_of("b"));
    a.claim("p:1");
    b.run("sync").ok_code();
    for line in [
        "remove p:1",
        "remove p --yes",
        "archive p",
        "move p:1 --after 3",
        "move p --to q",
        "squash p 1 2 --title x",
    ] {
        let before = [b.step(1), b.step(2)];
        refused(&b.run(line), "claims-live");
        assert_eq!([b.step(1), b.step(2)], before, "{line}");
    }
    b.run("remove p:1 --force").ok_code();
}

#[test]
fn the_record_of_ended_work_follows_the_plan_to_its_new_name() {
    let team = Team::new();
    let a = team.clone_of("a");
    for step in ["p:1", "p:2"] {
        a.claim(step);
        a.run(&format!("done {step}")).ok();
    }
    team.calls();
    a.run("move p --to q").ok();
    // Clones that do not have the new name yet must not repeat the work.
    let expected = ["p/1", "p/2", "q/1", "q/2"].map(|it| format!("{it} completed ann"));
    assert_eq!(team.records(), expected);
    assert_eq!(team.calls().len(), 2, "a fetch, and one push for all records");
}

#[test]
fn release_removes_the_record_and_with_force_also_that_of_another_clone() {
    let team = Team::new();
    let (a, b) = (team.clone_of("a"), team.clone_of("b"));
    a.claim("p:1");
    b.run("sync").ok_code();
    refused(&b.run("release p:1"), "claimed");
    a.run("release p:1").ok();
    assert!(team.records().is_empty());
    a.claim("p:1");
    a.run("done p:1").ok();
    b.run("sync").ok_code();
    refused(&b.run("release p:1"), "claimed");
    let freed = b.run("release p:1 --force");
    assert!(freed.code == 0 && freed.stdout.contains("the claim of ann on "), "{freed:?}");
    assert!(team.records().is_empty());
    b.claim("p:1");
    // A reopened step can be claimed by everyone.
    b.run("done p:1").ok();
    b.run("reopen p:1").ok();
    assert!(team.records().is_empty());
}

#[test]
fn a_result_on_a_missing_branch_is_reported_and_freed_only_by_release() {
    let team = Team::new();
    let (a, b) = (team.clone_of("a"), team.clone_of("b"));
    a.claim("p:1");
    // The branch of the result counts, not that of the claim.
    a.git("checkout -q -b feature");
    a.run("done p:1").ok();
    b.run("sync").ok_code();
    let report = b.run("check --git");
    assert!(report.stdout.contains("ended-nowhere") && report.stdout.contains("feature"), "{report:?}");
    assert!(b.run("sync status").stdout.contains("its branch is not at the remote"));
    a.commit_and_push();
    b.run("sync").ok_code();
    assert!(!b.run("check --git").stdout.contains("ended-nowhere"));
    assert_eq!(team.records(), ["p/1 completed ann"]);
    a.git("push -q origin :feature");
    b.run("sync").ok_code();
    assert!(b.run("check --git").stdout.contains("ended-nowhere"));
    refused(&b.run("claim p:1"), "claimed");
    b.run("release p:1 --force").ok_code();
    assert!(!b.run("check --git").stdout.contains("ended-nowhere"));
}

#[test]
fn work_that_arrives_by_a_squash_merge_is_recognized() {
    let team = Team::new();
    let (a, b) = (team.clone_of("a"), team.clone_of("b"));
    a.git("checkout -q -b feature");
    a.claim("p:1");
    a.run("done p:1").ok();
    a.commit_and_push();
    b.run("sync").ok_code();
    assert_eq!(team.records(), ["p/1 completed ann"]);
    b.git("fetch -q origin feature");
    b.git("merge -q --squash FETCH_HEAD");
    b.git("commit -q -m Squashed");
    b.git("push -q origin main");
    assert!(b.run("sync").ok().contains("removed"));
    assert!(team.records().is_empty());
    a.run("sync").ok_code();
    assert!(a.run("sync status").stdout.contains("No step is claimed"), "{:?}", a.run("sync status"));
}

#[test]
fn a_lapsed_record_is_removed_when_its_step_is_closed_on_the_branch_and_here() {
    let team = Team::new();
    let (a, b) = (team.clone_of("a"), team.clone_of("b"));
    a.claim("p:1");
    b.run("sync").ok_code();
    b.mark_as_lapsed();
    b.run("set p:1 status completed").ok();
    b.commit_and_push();
    b.run("reopen p:1").ok();
    b.run("sync").ok_code();
    assert_eq!(team.records(), ["p/1 claimed ann"], "the step was reopened here");
    b.git("checkout -q plans");
    assert!(b.run("sync").ok().contains("removed"));
    assert!(team.records().is_empty());
}

#[test]
fn a_lapsed_record_of_this_clone_stays_although_its_step_is_closed_on_the_branch() {
    let team = Team::new();
    let (a, b) = (team.clone_of("a"), team.clone_of("b"));
    a.claim("p:1");
    b.run("set p:1 status completed").ok();
    b.commit_and_push();
    a.run("sync").ok_code();
    a.mark_as_lapsed();
    a.run("sync").ok_code();
    assert_eq!(team.records(), ["p/1 claimed ann"]);
}
