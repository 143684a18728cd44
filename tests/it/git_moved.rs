//! `git resolve` where one side moved a step to a number that the other side gave to a new step, or added a step with the
//! number that a moved step had; and where one side archived or renamed the plan.

use crate::git_merge::{BASE, Driver, END, LIST, PLAN, Repository, STEP, attempt, attempts, with};
use crate::git_places::{NEW, NEXT, OUR_STEP, THEIR_STEP, done};

/// The merge of two branches. Each side first moves files, and then writes files.
struct Side<'a> {
    moves: &'a [(&'a str, &'a str)],
    files: &'a [(&'a str, &'a str)],
}

fn merged(driver: Driver, base: &[(&str, &str)], ours: &Side<'_>, theirs: &Side<'_>) -> Repository {
    let repository = Repository::new(driver, base);
    let change = |side: &Side<'_>| {
        for (from, to) in side.moves {
            repository.git(&format!("mv {from} {to}"));
        }
        repository.commit(side.files);
    };
    repository.git("checkout -q -b theirs");
    change(theirs);
    repository.git("checkout -q main");
    change(ours);
    assert_eq!(repository.try_git("merge -q --no-edit theirs").code, 1);
    repository
}

#[track_caller]
fn resolves_to(repository: &Repository, files: &[(&str, &str)]) {
    let ran = repository.planwatch("git resolve --renumber");
    assert_eq!(ran.code, 0, "{ran:?}");
    for (path, text) in files {
        assert_eq!(repository.place.text(path), *text, "{path}");
    }
    repository.git("commit -q --no-edit");
    assert_eq!(repository.git("status --porcelain"), "");
}

fn numbered(step: &str, number: &str) -> String {
    with(step, &[("id: auth:2", &format!("id: auth:{number}"))])
}

#[test]
fn the_work_on_a_moved_step_is_kept_if_its_new_number_is_taken() {
    let (moved, did) = (numbered(BASE, "9"), done());
    for driver in [Driver::None, Driver::Configured] {
        let repository = merged(
            driver,
            &[(STEP, BASE)],
            &Side { moves: &[], files: &[(STEP, &did), (NEW, OUR_STEP)] },
            &Side { moves: &[(STEP, NEW)], files: &[(NEW, &moved)] },
        );
        resolves_to(&repository, &[(NEW, OUR_STEP), (NEXT, &numbered(&did, "10"))]);
        assert!(!repository.place.file(STEP).exists());
        let repository = merged(
            driver,
            &[(STEP, BASE)],
            &Side { moves: &[(STEP, NEW)], files: &[(NEW, &moved)] },
            &Side { moves: &[], files: &[(STEP, &did), (NEW, THEIR_STEP)] },
        );
        let renumbered = with(THEIR_STEP, &[("auth:9", "auth:10")]);
        resolves_to(&repository, &[(NEW, &numbered(&did, "9")), (NEXT, &renumbered)]);
        assert!(!repository.place.file(STEP).exists());
    }
}

#[test]
fn a_moved_step_whose_lines_both_sides_changed_stays_a_conflict() {
    let of = |step: &str, words: &str| with(step, &[("Last words.", words)]);
    let (own, other) = (of(&done(), "Ours."), of(&numbered(BASE, "9"), "Theirs."));
    for driver in [Driver::None, Driver::Configured] {
        let repository = merged(
            driver,
            &[(STEP, BASE)],
            &Side { moves: &[], files: &[(STEP, &own), (NEW, OUR_STEP)] },
            &Side { moves: &[(STEP, NEW)], files: &[(NEW, &other)] },
        );
        let left = repository.place.text(NEW);
        let ran = repository.planwatch("git resolve --renumber");
        assert_eq!(ran.code, 1, "{ran:?}");
        assert!(ran.stdout.contains("both sides changed the same lines"), "{}", ran.stdout);
        assert_eq!(repository.conflicts(), format!("{NEW}\n"));
        assert_eq!(repository.place.text(NEW), left);
        assert!(!repository.place.file(NEXT).exists());
    }
}

#[test]
fn a_moved_step_that_does_not_merge_is_not_added_twice_if_its_old_number_is_taken() {
    const MOVED: &str = "plans/auth/step-1.5.md";
    let of = |step: &str, words: &str| with(step, &[("Last words.", words)]);
    let moved = numbered(&of(BASE, "One."), "1.5");
    let did = of(&done(), "Two.");
    let new = with(OUR_STEP, &[("auth:9", "auth:2")]);
    for driver in [Driver::None, Driver::Configured] {
        let mover = Side { moves: &[(STEP, MOVED)], files: &[(MOVED, &moved), (STEP, &new)] };
        let worker = Side { moves: &[], files: &[(STEP, &did)] };
        let sides = [
            (&mover, &worker, "their step is plans/auth/step-1.5.md here"),
            (&worker, &mover, "your step is plans/auth/step-1.5.md there"),
        ];
        for (ours, theirs, note) in sides {
            let repository = merged(driver, &[(STEP, BASE)], ours, theirs);
            let left = [STEP, MOVED].map(|it| repository.place.text(it));
            let ran = repository.planwatch("git resolve --renumber");
            assert_eq!(ran.code, 1, "{ran:?}");
            assert!(ran.stdout.contains(note), "{}", ran.stdout);
            assert_eq!(repository.conflicts(), format!("{STEP}\n"));
            assert_eq!([STEP, MOVED].map(|it| repository.place.text(it)), left);
            assert!(!repository.place.file("plans/auth/step-3.md").exists());
        }
        // If only one side changed the lines, the step is merged.
        let did = done();
        let worker = Side { moves: &[], files: &[(STEP, &did)] };
        let both = numbered(&of(&did, "One."), "1.5");
        resolves_to(&merged(driver, &[(STEP, BASE)], &mover, &worker), &[(STEP, &new), (MOVED, &both)]);
    }
}

#[test]
fn dependencies_between_two_steps_that_were_moved_to_one_number_follow_the_right_one() {
    const FIRST: &str = "plans/auth/step-1.md";
    let first = |number: &str| {
        let id = format!("id: auth:{number}");
        with(
            BASE,
            &[
                ("id: auth:2", &id),
                ("depends:\n  - 1\n", ""),
                ("title: Schema", "title: Server"),
                ("# Schema", "# Server"),
            ],
        )
    };
    let second =
        |number: &str, on: &str| with(&numbered(BASE, number), &[("  - 1\n", &format!("  - {on}\n"))]);
    let (base, moved, waits) = (first("1"), first("9"), second("2", "9"));
    let a = Side { moves: &[(FIRST, NEW)], files: &[(NEW, &moved), (STEP, &waits)] };
    let last = second("9", "1");
    let b = Side { moves: &[(STEP, NEW)], files: &[(NEW, &last)] };
    for driver in [Driver::None, Driver::Configured] {
        let base = [(FIRST, base.as_str()), (STEP, BASE)];
        let repository = merged(driver, &base, &a, &b);
        resolves_to(&repository, &[(NEW, &moved), (NEXT, &second("10", "9"))]);
        let repository = merged(driver, &base, &b, &a);
        resolves_to(&repository, &[(NEW, &second("9", "10")), (NEXT, &first("10"))]);
    }
}

/// The resolved merge of two branches of a plan with two steps.
fn resolved(ours: impl Fn(&Repository), theirs: impl Fn(&Repository)) -> Repository {
    let first = with(
        BASE,
        &[
            ("id: auth:2", "id: auth:1"),
            ("depends:\n  - 1\n", ""),
            ("title: Schema", "title: One"),
            ("# Schema", "# One"),
        ],
    );
    let files = [(PLAN, LIST), ("plans/auth/step-1.md", &first), (STEP, BASE)];
    let repository = Repository::new(Driver::None, &files);
    repository.git("checkout -q -b theirs");
    theirs(&repository);
    repository.commit(&[]);
    repository.git("checkout -q main");
    ours(&repository);
    repository.commit(&[]);
    assert_eq!(repository.try_git("merge -q --no-edit theirs").code, 1);
    let ran = repository.planwatch("git resolve");
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(repository.planwatch("check --json").json()["problems"], serde_json::json!([]));
    repository.git("commit -q --no-edit");
    assert_eq!(repository.git("status --porcelain"), "");
    repository
}

#[test]
fn a_moved_step_of_a_plan_that_the_other_side_archived_keeps_its_new_number() {
    let archives = |it: &Repository| it.planwatch("archive auth --force").ok_code();
    let moves = |it: &Repository| it.planwatch("move auth:2 --to 4").ok_code();
    for repository in [resolved(archives, moves), resolved(moves, archives)] {
        assert_eq!(repository.place.text("plans/_archive/auth/step-4.md"), numbered(BASE, "4"));
        assert!(!repository.place.file("plans/_archive/auth/step-2.md").exists());
        assert!(repository.place.text("plans/_archive/auth/plan.md").contains("step-4: Two"));
        assert_eq!(repository.planwatch("check --git --json").json()["problems"], serde_json::json!([]));
    }
}

#[test]
fn a_step_that_only_theirs_moved_has_the_new_number_if_git_sees_no_rename() {
    let body = |step: &str| {
        let end = step.find("First words.").unwrap();
        format!("{}{}", &step[..end], "As THEIRS describe it.\n".repeat(30))
    };
    let moved = |it: &Repository| {
        it.git(&format!("mv {STEP} plans/auth/step-4.md"));
        it.place.write("plans/auth/step-4.md", body(&numbered(BASE, "4")));
        it.place.write(PLAN, with(LIST, &[("step-2: Two", "step-4: Two")]));
    };
    let worked = |it: &Repository| it.place.write(STEP, with(BASE, &[("[db]", "[db, sql]")]));
    for repository in [resolved(moved, worked), resolved(worked, moved)] {
        assert_eq!(
            repository.place.text("plans/auth/step-4.md"),
            body(&numbered(&with(BASE, &[("[db]", "[db, sql]")]), "4"))
        );
        assert!(!repository.place.file(STEP).exists());
    }
}

#[test]
fn a_new_step_of_a_plan_that_the_other_side_renamed_gets_the_id_of_its_file() {
    let renames = |it: &Repository| it.planwatch("move auth --to login").ok_code();
    let adds = |it: &Repository| it.place.write(NEW, OUR_STEP);
    let new = with(OUR_STEP, &[("auth:9", "login:9")]);
    for repository in [resolved(renames, adds), resolved(adds, renames)] {
        assert_eq!(repository.place.text("plans/login/step-9.md"), new);
    }
}

#[test]
fn what_one_side_did_to_a_step_is_kept_if_the_other_side_renamed_the_plan_and_worked_on_the_step() {
    let body = |step: &str| with(step, &[("First words.\n", &"As the worker describes it.\n".repeat(30))]);
    let tried = attempts(&[&attempt("02", "ann", "failed")]);
    // The texts differ so much that git does not see that the worker's plan contains the step.
    let renames = |it: &Repository| {
        it.planwatch("move auth --to login").ok_code();
        let step = with(BASE, &[("id: auth:2", "id: login:2"), (END, &tried)]);
        it.place.write("plans/login/step-2.md", body(&step));
    };
    let copy = "plans/_archive/auth/removed-20261121T120000Z/step-2.md";
    for (line, home, id) in [
        ("move auth:2 --to 4", "plans/login/step-4.md", "login:4"),
        ("remove auth:2", copy, "login:2"),
        ("squash auth 1 2 --title Both", copy, "login:2"),
        ("archive auth --force", "plans/_archive/auth/step-2.md", "auth:2"),
        ("move auth --to account", "", ""),
    ] {
        let other = |it: &Repository| it.planwatch(line).ok_code();
        for is_renamer_ours in [true, false] {
            let repository =
                if is_renamer_ours { resolved(renames, other) } else { resolved(other, renames) };
            let (home, id) = match (home, is_renamer_ours) {
                ("", true) => ("plans/login/step-2.md", "login:2"),
                ("", false) => ("plans/account/step-2.md", "account:2"),
                _ => (home, id),
            };
            let step = repository.place.text(home);
            assert_eq!(
                step,
                body(&with(BASE, &[("id: auth:2", &format!("id: {id}")), (END, &tried)])),
                "{line}"
            );
            let files = repository.git("ls-files plans");
            let has_attempt = |it: &&str| repository.place.text(it).contains("by: ann");
            let both = line.starts_with("squash").then_some("plans/login/step-1.md");
            let expected: Vec<_> = [home].into_iter().chain(both).collect();
            assert_eq!(files.lines().filter(has_attempt).collect::<Vec<_>>(), expected, "{line}: {files}");
            let plans = if line.starts_with("archive") { 0 } else { 1 };
            let live = files.lines().filter(|it| it.ends_with("/plan.md") && !it.contains("_archive"));
            assert_eq!((live.count(), files.contains("plans/auth/")), (plans, false), "{line}: {files}");
        }
    }
}

#[test]
fn a_step_that_git_left_under_two_numbers_is_reported() {
    let body = |step: &str, words: &str| {
        let end = step.find("First words.").unwrap();
        format!("{}{}", &step[..end], format!("{words}\n").repeat(30))
    };
    let (own, other) = (body(&numbered(&done(), "8"), "Ours."), body(&numbered(BASE, "9"), "Theirs."));
    for driver in [Driver::None, Driver::Configured] {
        let repository = Repository::new(driver, &[(STEP, BASE)]);
        repository.git("checkout -q -b theirs");
        repository.git(&format!("mv {STEP} {NEW}"));
        repository.commit(&[(NEW, &other)]);
        repository.git("checkout -q main");
        let eight = "plans/auth/step-8.md";
        repository.git(&format!("mv {STEP} {eight}"));
        repository.commit(&[(eight, &own)]);
        repository.git("merge -q --no-edit theirs");
        let ran = repository.planwatch("git resolve");
        let reported = |it: &str| ran.stdout.contains(&format!("removed  {it}: both sides changed it"));
        assert!(ran.code == 1 && reported(NEW) && reported(eight), "{ran:?}");
        assert_eq!((repository.place.text(eight), repository.place.text(NEW)), (own.clone(), other.clone()));
        repository.git(&format!("rm -q {NEW}"));
        assert_eq!(repository.planwatch("git resolve").code, 0);
    }
}
