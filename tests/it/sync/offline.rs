//! Claims without a connection, and how they are settled later.

use super::team::{Team, refused};

#[test]
fn of_two_offline_claims_the_first_at_the_remote_holds() {
    let team = Team::new();
    let (a, b) = (team.clone_of("a"), team.clone_of("b"));
    let before = b.step(1);
    team.fault("offline");
    for clone in [&a, &b] {
        let ran = clone.run("claim p:1 --offline");
        assert!(ran.code == 0 && ran.stdout.contains("on this machine alone"), "{ran:?}");
        assert!(clone.run("list p").stderr.contains("p:1"));
    }
    team.heal();
    assert!(a.run("sync").ok().contains("confirmed"));
    assert_eq!(team.records(), ["p/1 claimed ann"]);
    let lost = b.run("sync");
    assert!(lost.stdout.contains("lost") && lost.stdout.contains("ann on "), "{lost:?}");
    assert_eq!(b.step(1), before, "restored byte for byte");
    assert_eq!(team.records(), ["p/1 claimed ann"]);
    assert_eq!(b.run("list p").stderr, "");
}

#[test]
fn an_offline_claim_loses_against_a_result_that_is_merged_already() {
    let team = Team::new();
    let (a, b) = (team.clone_of("a"), team.clone_of("b"));
    let before = b.step(1);
    b.run("claim p:1 --offline").ok_code();
    a.claim("p:1");
    a.run("done p:1").ok();
    a.commit_and_push();
    a.run("sync").ok_code();
    assert!(team.records().is_empty());
    let lost = b.run("sync").ok();
    assert!(lost.contains("lost  p:1: ann (merged into main)"), "{lost}");
    assert_eq!(b.step(1), before);
    assert!(team.records().is_empty());
}

#[test]
fn an_offline_result_that_loses_is_undone_or_leaves_a_late_note() {
    for (end, is_edited) in [("done p:1", false), ("done p:1 -m mine", false), ("fail p:1 -m mine", true)] {
        let team = Team::new();
        let (a, b) = (team.clone_of("a"), team.clone_of("b"));
        let before = b.step(1);
        team.fault("offline");
        b.run("claim p:1 --offline").ok_code();
        let ended = b.run(end);
        assert!(ended.code == 0 && ended.stderr.contains("not confirmed by the registry"), "{ended:?}");
        team.heal();
        a.claim("p:1");
        if is_edited {
            b.write("plans/p/step-1.md", &(b.step(1) + "\nMore words.\n"));
        }
        assert!(b.run("sync").stdout.contains("lost"));
        let after = b.step(1);
        if end.contains("mine") {
            assert!(after.contains("status: pending") && after.contains("late result"), "{after}");
            assert!(after.contains("notes: mine") && after.contains("More words.") == is_edited, "{after}");
        } else {
            assert_eq!(after, before);
        }
        assert_eq!(team.records(), ["p/1 claimed ann"]);
        b.run("sync").ok();
        assert_eq!(b.step(1), after);
    }
}

#[test]
fn a_step_whose_offline_result_was_undone_can_be_claimed_again() {
    for is_edited in [false, true] {
        let team = Team::new();
        let (a, b) = (team.clone_of("a"), team.clone_of("b"));
        b.git("worktree add -q -b other ../w");
        b.run("claim p:1 --offline").ok_code();
        a.claim("p:1");
        b.run("done p:1").ok_code();
        if is_edited {
            b.write("plans/p/step-1.md", &(b.step(1) + "\nMore words.\n"));
        }
        assert!(b.run("sync").stdout.contains("lost"));
        a.run("release p:1").ok();
        assert_eq!(team.clone_of("w").claim("p:1").0, "p:1");
        team.clone_of("w").run("release p:1").ok();
        assert_eq!(b.claim("p:1").0, "p:1");
    }
}

#[test]
fn an_offline_claim_that_another_tree_finds_lost_is_undone_in_its_own_tree() {
    for (is_done, is_edited) in [(false, false), (true, false), (true, true)] {
        let team = Team::new();
        let (a, b) = (team.clone_of("a"), team.clone_of("b"));
        b.git("worktree add -q -b other ../w");
        let w = team.clone_of("w");
        let before = w.step(1);
        w.run("claim p:1 --offline").ok_code();
        if is_edited {
            // The file is no longer the one that the claim wrote, so its old bytes cannot be restored.
            w.write("plans/p/step-1.md", &(w.step(1) + "\nMore words.\n"));
        }
        a.claim("p:1");
        if is_done {
            w.run("done p:1").ok_code();
        }
        let made = w.step(1);
        for _ in 0..2 {
            b.run("sync").ok_code();
            assert_eq!((b.step(1), w.step(1)), (before.clone(), made.clone()));
            assert!(b.run("sync status").stdout.contains("taken over"));
        }
        assert_eq!(b.run("list p").stderr, "", "nothing is left to be settled with the remote");
        assert!(w.run("sync").ok().contains("lost"));
        match is_edited {
            true => assert!(w.step(1).contains("status: pending") && w.step(1).contains("late result")),
            false => assert_eq!(w.step(1), before),
        }
        assert_eq!(team.records(), ["p/1 claimed ann"]);
        for clone in [&b, &w] {
            assert_eq!(clone.run("sync").ok().matches("lost").count(), 0);
            assert_eq!(clone.run("sync status").stdout.matches("taken over").count(), 0);
        }
        a.run("release p:1").ok();
        assert_eq!(b.claim("p:1").0, "p:1");
    }
}

#[test]
fn a_lost_claim_of_a_tree_that_is_removed_leaves_nothing_behind() {
    let team = Team::new();
    let (a, b) = (team.clone_of("a"), team.clone_of("b"));
    b.git("worktree add -q -b other ../w");
    team.clone_of("w").run("claim p:1 --offline").ok_code();
    a.claim("p:1");
    team.clone_of("w").run("done p:1").ok_code();
    assert!(b.run("sync").ok().contains("lost"));
    // While the tree `w` exists, its lost claim does not affect a claim in the tree of `b`.
    a.run("release p:1").ok();
    b.run("sync").ok_code();
    b.run("start p:1 --force").ok_code();
    assert!(b.run("sync").code == 0 && b.step(1).contains("in_progress"));
    b.run("done p:1").ok();
    b.git("worktree remove --force ../w");
    b.run("sync").ok();
    assert!(!b.run("sync status").stdout.contains("taken over"), "{:?}", b.run("sync status"));
    assert!(b.step(1).contains("completed"));
}

#[test]
fn offline_work_without_a_rival_is_confirmed() {
    let team = Team::new();
    let (a, b) = (team.clone_of("a"), team.clone_of("b"));
    team.fault("offline");
    b.run("claim p:1 --offline").ok_code();
    let done = b.run("done p:1 -m made");
    assert_eq!((done.code, done.stderr.matches("not confirmed").count()), (0, 1), "{done:?}");
    team.heal();
    assert!(b.run("sync").ok().contains("confirmed"));
    assert_eq!(team.records(), ["p/1 completed bob"]);
    refused(&a.run("claim p:1"), "claimed");
}

#[test]
fn claims_from_before_the_setup_are_shared() {
    let team = Team::without_sync(&[]);
    let a = team.clone_of("a");
    let (_, claim) = a.claim("p:1");
    a.run("sync init").ok_code();
    a.run("sync").ok_code();
    assert_eq!(team.records(), ["p/1 claimed ann"]);
    a.run(&format!("done p:1 --claim {claim}")).ok();
    assert_eq!(team.records(), ["p/1 completed ann"]);
}

#[test]
fn a_step_can_be_closed_although_the_clone_lacks_the_remote() {
    for (line, state) in [("done p:1 -m made", "completed"), ("fail p:1 -m no", "failed")] {
        let team = Team::new();
        let (a, b) = (team.clone_of("a"), team.clone_of("b"));
        a.claim("p:1");
        a.git("remote rename origin up");
        let ended = a.run(line);
        assert!(ended.code == 0 && ended.stderr.contains("not confirmed by the registry"), "{ended:?}");
        assert!(a.step(1).contains(&format!("status: {state}")), "{}", a.step(1));
        assert!(a.run("list p").stderr.contains("p:1"), "every command lists it");
        let again = a.run(line);
        assert_eq!((again.code, a.step(1).matches("outcome:").count()), (0, 1), "{again:?}");
        assert_eq!(team.records(), ["p/1 claimed ann"]);
        a.git("remote rename up origin");
        assert!(a.run("sync").ok().contains("confirmed"));
        assert_eq!(team.records(), [format!("p/1 {state} ann")]);
        assert_eq!(a.run("list p").stderr, "");
        refused(&b.run("claim p:1"), "claimed");
    }
}

#[test]
fn a_result_without_the_remote_is_late_if_another_clone_took_the_step_over() {
    let team = Team::new();
    let (a, b) = (team.clone_of("a"), team.clone_of("b"));
    a.claim("p:1");
    b.run("sync").ok_code();
    b.mark_as_lapsed();
    assert_eq!(b.claim("").0, "p:1");
    a.git("remote rename origin up");
    assert_eq!(a.run("done p:1 -m mine").code, 0);
    a.git("remote rename up origin");
    assert!(a.run("sync").stdout.contains("lost"));
    let after = a.step(1);
    assert!(after.contains("status: pending") && after.contains("late result"), "{after}");
    assert_eq!(team.records(), ["p/1 claimed bob"]);
}
