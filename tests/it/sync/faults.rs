//! Lost answers, refusals, crashes and deleted records.

use super::team::{Team, refused};

#[test]
fn a_push_without_an_answer_is_repeated_with_the_same_value() {
    for (fault, what) in [("answer-lost", "it was made"), ("request-lost", "it was not made")] {
        let team = Team::new();
        let a = team.clone_of("a");
        team.calls();
        team.fault(fault);
        let (step, claim) = a.claim("p:1");
        assert_eq!(step, "p:1", "{what}");
        let pushes: Vec<_> = team.calls().into_iter().filter(|it| it.contains(" push ")).collect();
        assert!(pushes.len() == 2 && pushes[0] == pushes[1], "{what}: {pushes:#?}");
        assert_eq!(team.records(), ["p/1 claimed ann"], "{what}");
        team.fault(fault);
        a.run(&format!("done p:1 --claim {claim}")).ok();
        assert_eq!(team.records(), ["p/1 completed ann"], "{what}");
        team.fault(fault);
        a.run("reopen p:1").ok();
        assert!(team.records().is_empty(), "{what}");
    }
}

#[test]
fn a_claim_that_cannot_be_settled_is_undone_and_its_record_removed_later() {
    for fault in ["answers-lost", "requests-lost"] {
        let team = Team::new();
        let (a, b) = (team.clone_of("a"), team.clone_of("b"));
        let before = a.step(1);
        team.fault(fault);
        refused(&a.run("claim p:1"), "remote-unreachable");
        assert_eq!(a.step(1), before);
        // Every command reports the unsettled claim. Reading verbs do not settle it.
        let list = a.run("list p");
        assert!(
            list.code == 0 && list.stderr.contains("p:1") && list.stderr.contains("planwatch sync"),
            "{list:?}"
        );
        a.run("sync").ok();
        assert!(team.records().is_empty());
        assert_eq!(a.run("list p").stderr, "");
        b.claim("p:1");
    }
}

#[test]
fn without_an_answer_of_the_remote_claims_are_refused_and_results_are_recorded() {
    let team = Team::new();
    let a = team.clone_of("a");
    let (_, claim) = a.claim("p:1");
    let before = a.step(2);
    team.fault("offline");
    let ran = a.run("claim");
    refused(&ran, "remote-unreachable");
    assert_eq!((ran.code, a.step(2)), (4, before));
    assert!(ran.stderr.contains("claim --offline"), "{ran:?}");
    let status = a.run("sync status");
    assert!(
        status.code == 0 && status.stdout.contains("unreachable") && status.stdout.contains("p:1"),
        "{status:?}"
    );
    team.calls();
    let done = a.run(&format!("done p:1 --claim {claim} -m made"));
    assert!(done.code == 0 && done.stderr.contains("not confirmed by the registry"), "{done:?}");
    assert_eq!(team.calls().len(), 1, "a second attempt would take as long again");
    assert!(a.step(1).contains("status: completed"));
    assert!(a.run("sync status").stdout.contains("unsettled"));
    for line in ["sync", "sync init", "release p:2 --force"] {
        let ran = a.run(line);
        refused(&ran, "remote-unreachable");
        assert!(ran.stderr.contains("try again later") && !ran.stderr.contains("--offline"), "{ran:?}");
    }
    team.heal();
    assert_eq!(team.records(), ["p/1 claimed ann"]);
    assert!(a.run("sync").ok().contains("confirmed"));
    assert_eq!(team.records(), ["p/1 completed ann"]);
    // The next writing verb settles such a result, too.
    let (_, claim) = a.claim("p:2");
    team.fault("offline");
    assert_eq!(a.run(&format!("done p:2 --claim {claim}")).code, 0);
    team.heal();
    let ran = a.run("claim p:3");
    assert!(ran.code == 0 && ran.stderr.contains("p:2"), "{ran:?}");
    assert_eq!(team.records(), ["p/1 completed ann", "p/2 completed ann", "p/3 claimed ann"]);
}

#[test]
fn rejected_credentials_are_not_treated_as_a_missing_answer() {
    let team = Team::new();
    let a = team.clone_of("a");
    let before = a.step(1);
    team.fault("refused");
    team.calls();
    refused(&a.run("claim"), "remote-refused");
    assert_eq!(team.calls().len(), 1, "hosts lock accounts after repeated attempts");
    assert_eq!(a.step(1), before);
}

#[test]
fn a_crash_between_the_fence_and_the_file_is_repaired() {
    // The command is killed after it has ended the record at the remote. The record says completed, but the file does not.
    let begin = || {
        let team = Team::new();
        let (_, claim) = team.clone_of("a").claim("p:1");
        team.fault("killed-after");
        assert_eq!(team.clone_of("a").run(&format!("done p:1 --claim {claim} -m made")).code, -1);
        assert_eq!(team.records(), ["p/1 completed ann"]);
        assert!(team.clone_of("a").step(1).contains("status: in_progress"));
        (team, claim)
    };
    // If the command is repeated, it completes the step.
    let (team, claim) = begin();
    team.clone_of("a").run(&format!("done p:1 --claim {claim} -m made")).ok_code();
    assert!(team.clone_of("a").step(1).contains("status: completed"));
    assert_eq!(team.records(), ["p/1 completed ann"]);
    // `sync` restores the claim instead, and its owner can report another result.
    let (team, claim) = begin();
    assert!(team.clone_of("a").run("sync").ok().contains("restored"));
    assert_eq!(team.records(), ["p/1 claimed ann"]);
    team.clone_of("a").run(&format!("fail p:1 --claim {claim} -m no")).ok();
    assert_eq!(team.records(), ["p/1 failed ann"]);
}

#[test]
fn a_killed_claim_leaves_no_step_that_cannot_be_claimed_again() {
    for fault in ["killed-after", "killed-before"] {
        let team = Team::new();
        let (a, b) = (team.clone_of("a"), team.clone_of("b"));
        team.fault(fault);
        assert_eq!(a.run("claim p:1").code, -1);
        assert!(a.step(1).contains("status: in_progress"));
        // The claim is in the file, so `sync` records it at the remote. Then its owner can release it.
        a.run("sync").ok_code();
        assert_eq!(team.records(), ["p/1 claimed ann"], "{fault}");
        a.run("release p:1").ok();
        assert_eq!(b.claim("p:1").0, "p:1");
    }
}

#[test]
fn a_result_that_cannot_be_written_is_refused_before_anything_is_pushed() {
    let team = Team::new();
    let a = team.clone_of("a");
    let (_, claim) = a.claim("p:1");
    team.calls();
    // The file cannot be written because of conflict markers.
    let broken = a.step(1).replace("# Step 1", "# Step 1\n<<<<<<< ours\n=======\n>>>>>>> theirs");
    a.write("plans/p/step-1.md", &broken);
    assert_ne!(a.run(&format!("done p:1 --claim {claim}")).code, 0);
    assert_eq!((team.records(), team.calls().len()), (vec!["p/1 claimed ann".to_owned()], 0));
    assert_eq!(a.step(1), broken);
}

#[test]
fn records_that_a_mirror_push_deleted_are_restored_until_the_work_is_merged() {
    let team = Team::new();
    let (a, b) = (team.clone_of("a"), team.clone_of("b"));
    a.claim("p:1");
    let (_, claim) = a.claim("p:2");
    a.run(&format!("done p:2 --claim {claim}")).ok();
    b.git("push -q --mirror origin");
    assert!(team.records().is_empty());
    assert!(a.run("sync").ok().contains("restored"));
    assert_eq!(team.records(), ["p/1 claimed ann", "p/2 completed ann"]);
}

#[test]
fn a_deleted_record_of_a_reopened_step_is_restored() {
    let team = Team::new();
    let (a, b) = (team.clone_of("a"), team.clone_of("b"));
    b.claim("p:1");
    b.run("done p:1").ok();
    b.commit_and_push();
    b.run("sync").ok_code();
    a.git("pull -q");
    a.run("reopen p:1").ok();
    for (line, record) in [("claim p:1", "p/1 claimed ann"), ("done p:1", "p/1 completed ann")] {
        a.run(line).ok();
        b.git("push -q --mirror origin");
        assert!(team.records().is_empty());
        assert!(a.run("sync").ok().contains("restored"), "{line}");
        assert_eq!(team.records(), [record]);
    }
}

#[test]
fn a_deleted_record_that_another_clone_creates_first_is_lost() {
    let team = Team::new();
    let (a, b) = (team.clone_of("a"), team.clone_of("b"));
    a.claim("p:1");
    // The names of claim records are 16 hexadecimal digits.
    let records = team.path("a/.git/planwatch");
    let is_claim = |it: &std::fs::DirEntry| it.file_name().len() == 16;
    let held = || std::fs::read_dir(&records).expect("it is there").flatten().filter(is_claim).count();
    assert_eq!(held(), 1);
    b.git("push -q --mirror origin");
    team.write(
        "race",
        &format!("cd \"$TEAM/b\" && exec {} claim p:1 --by bob", env!("CARGO_BIN_EXE_planwatch")),
    );
    team.fault("race");
    let ran = a.run("sync").ok();
    assert!(ran.contains("lost") && ran.contains("bob on "), "{ran}");
    assert_eq!(team.records(), ["p/1 claimed bob"]);
    assert_eq!(held(), 0, "the claim record of this machine is removed");
}

#[test]
fn a_clone_that_is_configured_for_another_registry_is_refused() {
    let team = Team::new();
    let b = team.clone_of("b");
    let path = team.path("b/planwatch.toml");
    let text = crate::support::read(&path);
    let id = text.lines().find(|it| it.starts_with("id")).unwrap().to_owned();
    b.write("planwatch.toml", &text.replace(&id, "id = \"00000000000000000000000000000000\""));
    refused(&b.run("claim"), "registry-differs");
    refused(&b.run("sync init"), "registry-differs");
    assert!(b.step(1).contains("pending"));
    // A clone without the configuration joins the existing registry.
    b.write("planwatch.toml", "by = \"bob\"\n");
    assert!(b.run("sync init").ok().starts_with("joined"));
    assert_eq!(crate::support::read(&path), format!("by = \"bob\"\n\n{text}"));
    b.claim("p:1");
}

#[test]
fn records_of_others_may_contain_anything() {
    let team = Team::new();
    let (a, b) = (team.clone_of("a"), team.clone_of("b"));
    let bodies = ["garbage", "{}", "\u{1b}[2J", &"x".repeat(100_000)];
    for (n, body) in bodies.iter().enumerate().take(3) {
        team.write("b/body", body);
        let oid = b.git("hash-object -w body");
        b.git(&format!("push -q origin {}:refs/planwatch/claims/plans/p/{}", oid.trim(), n + 1));
    }
    team.write("b/body", bodies[3]);
    let oid = b.git("hash-object -w body");
    for name in ["claims/plans/p/4", "claims/plans/p", "claims/x/../y", "claims/plans/P/1", "other"] {
        // git refuses some of these names itself.
        b.try_git(&["push", "-q", "origin", &format!("{}:refs/planwatch/{name}", oid.trim())]);
    }
    let status = a.run("sync status");
    assert_eq!(status.code, 0, "{status:?}");
    assert!(status.stdout.contains("unreadable") && !status.stdout.contains('\u{1b}'), "{}", status.stdout);
    let claim = a.run("claim --json");
    assert_eq!(claim.code, 7, "no step is free, and the command does not fail: {claim:?}");
    assert!(a.run("next p --json").stdout.contains("\"state\":\"waiting\""));
    a.run("release p:1 --force").ok_code();
    assert_eq!(a.claim("p:1").0, "p:1");
}
