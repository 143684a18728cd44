//! `git resolve` where one side removed, squashed, moved or deleted a step that the other side changed.

use crate::git_merge::{
    BASE, DONE, Driver, END, LIST, PLAN, Repository, STATUS, STEP, attempt, attempts, with,
};

pub(crate) const REMOVED: &str = "plans/_archive/auth/removed-20260103T000000Z/step-2.md";
const FIRST: &str = "plans/auth/step-1.md";
const LATER: &str = "plans/_archive/auth/removed-20260104T000000Z/step-2.md";

pub(crate) fn done() -> String {
    with(BASE, &[(STATUS, DONE), (END, &attempts(&[&attempt("02", "ann", "completed")]))])
}

/// The text with one line replaced by 60 others, so that git detects no rename between it and a version without these lines.
fn rewritten(of: &str) -> String {
    let lines: String = (0..60).map(|n| format!("Line {n}.\n")).collect();
    with(of, &[("Last words.\n", &lines)])
}

/// Merges `theirs` and resolves the merge. Each side first moves the step to the given path (`STEP`: the step stays) or
/// deletes it (`None`), and commits the given files.
fn resolved(
    base: &[(&str, &str)],
    ours: (Option<&str>, &[(&str, &str)]),
    theirs: (Option<&str>, &[(&str, &str)]),
) -> Repository {
    resolved_as("ort", base, ours, theirs)
}

/// As [`resolved`], with a merge strategy of git. The older strategy `resolve` detects no renames.
fn resolved_as(
    strategy: &str,
    base: &[(&str, &str)],
    ours: (Option<&str>, &[(&str, &str)]),
    theirs: (Option<&str>, &[(&str, &str)]),
) -> Repository {
    let repository = Repository::new(Driver::None, base);
    repository.git("checkout -q -b theirs");
    let side = |(place, files): (Option<&str>, &[(&str, &str)])| {
        match place {
            Some(STEP) => {}
            Some(place) => {
                let directory = place.rsplit_once('/').map_or("", |it| it.0);
                std::fs::create_dir_all(repository.place.file(directory)).expect("it is possible");
                repository.git(&format!("mv {STEP} {place}"));
            }
            None => drop(repository.git(&format!("rm -q {STEP}"))),
        }
        repository.commit(files);
    };
    side(theirs);
    repository.git("checkout -q main");
    side(ours);
    let merged = repository.try_git(&format!("merge -q --no-edit -s {strategy} theirs"));
    assert!(merged.code <= 1, "{merged:?}");
    let ran = repository.planwatch("git resolve --renumber");
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(repository.conflicts(), "");
    repository
}

#[track_caller]
fn check_only(repository: &Repository, place: &str, expected: &str) {
    assert_eq!(repository.place.text(place), expected);
    for other in [STEP, REMOVED, LATER].into_iter().filter(|it| *it != place) {
        assert!(!repository.place.file(other).exists(), "{other}");
    }
    // Where git merged without a conflict, there is nothing left to commit.
    if repository.place.file(".git/MERGE_HEAD").exists() {
        repository.git("commit -q --no-edit");
    }
    assert_eq!(repository.git("status --porcelain"), "");
}

#[test]
fn a_step_stays_removed_and_its_copy_gets_the_changes_of_the_other_side() {
    let long = rewritten(BASE);
    let (removed, did) = ((Some(REMOVED), &[][..]), done());
    for (base, text) in [(BASE, did.clone()), (BASE, rewritten(&did)), (&long, did)] {
        let files = [(STEP, text.as_str())];
        let changed = (Some(STEP), &files[..]);
        check_only(&resolved(&[(STEP, base)], removed, changed), REMOVED, &text);
        check_only(&resolved(&[(STEP, base)], changed, removed), REMOVED, &text);
    }
}

#[test]
fn of_two_removals_the_earlier_copy_is_kept_on_both_sides() {
    let text = done();
    let (early, late) = ((Some(REMOVED), &[][..]), [(LATER, text.as_str())]);
    let late = (Some(LATER), &late[..]);
    check_only(&resolved(&[(STEP, BASE)], early, late), REMOVED, &text);
    check_only(&resolved(&[(STEP, BASE)], late, early), REMOVED, &text);
}

#[test]
fn a_step_that_both_sides_moved_gets_the_number_of_ours_and_dependencies_on_it_follow() {
    const OURS: &str = "plans/auth/step-5.md";
    const THEIRS: &str = "plans/auth/step-6.md";
    const NEXT: &str = "plans/auth/step-9.md";
    let next =
        with(BASE, &[("id: auth:2", "id: auth:9"), ("# Schema", "# Next"), ("title: Schema", "title: Next")]);
    let waits = |on: &str| with(&next, &[("  - 1\n", &format!("  - {on}\n"))]);
    let moved = |to: &str| with(&done(), &[("id: auth:2", &format!("id: auth:{to}"))]);
    let base_next = waits("2");
    // Without rename detection, git sees two added files and no conflict between them.
    for strategy in ["ort", "resolve"] {
        let repository = resolved_as(
            strategy,
            &[(STEP, BASE), (NEXT, &base_next)],
            (Some(OURS), &[(OURS, &with(BASE, &[("id: auth:2", "id: auth:5")])), (NEXT, &waits("5"))]),
            (Some(THEIRS), &[(THEIRS, &moved("6")), (NEXT, &waits("6"))]),
        );
        assert!(!repository.place.file(THEIRS).exists());
        assert_eq!(repository.place.text(NEXT), waits("5"), "{strategy}");
        check_only(&repository, OURS, &moved("5"));
    }
}

#[test]
fn a_step_whose_file_the_same_command_has_changed_is_still_resolved() {
    const THIRD: &str = "plans/auth/step-3.md";
    const EARLY: &str = "plans/_archive/auth/removed-20260103T000000Z/step-3.md";
    const LATE: &str = "plans/_archive/auth/removed-20260104T000000Z/step-3.md";
    let third = with(&server(), &[("auth:1", "auth:3")]);
    // The copies differ so much from the steps that git detects no rename.
    let (removed, early) = (rewritten(BASE), rewritten(&third));
    let both = with(&early, &[("# Server", "# Both\n\n# Server"), ("Line 59.", "Line 59.\n\n# Schema")]);
    let tried = format!("attempts:\n{}---\n# Both", attempt("03", "bob", "failed"));
    let worked = with(&both, &[("---\n# Both", &tried)]);
    let repository = Repository::new(Driver::None, &[(STEP, BASE), (THIRD, &third)]);
    repository.git("checkout -q -b theirs");
    repository.commit(&[(STEP, &done()), (THIRD, &worked)]);
    repository.git("checkout -q main");
    repository.git(&format!("rm -q {STEP} {THIRD}"));
    repository.commit(&[(REMOVED, &removed), (EARLY, &early), (LATE, &both)]);
    assert_eq!(repository.try_git("merge -q --no-edit theirs").code, 1);
    // The attempt of step 2 goes to its copy; step 3 in the working tree looks like the step that replaced step 2.
    let ran = repository.planwatch("git resolve");
    assert_eq!(ran.code, 0, "{ran:?}");
    let removed = rewritten(&done());
    assert_eq!([REMOVED, EARLY, LATE].map(|it| repository.place.text(it)), [removed, early, worked]);
    assert!(!repository.place.file(STEP).exists() && !repository.place.file(THIRD).exists());
    repository.git("commit -q --no-edit");
    assert_eq!(repository.git("status --porcelain"), "");
}

#[test]
fn changes_go_to_the_moved_step_and_not_to_an_older_copy_of_it() {
    const MOVED: &str = "plans/auth/step-5.md";
    let moved = |text: &str| with(text, &[("id: auth:2", "id: auth:5")]);
    let (own, did) = (moved(BASE), done());
    let (both, changed) = ([(MOVED, own.as_str()), (REMOVED, BASE)], [(STEP, did.as_str())]);
    let sides = ((Some(MOVED), &both[..]), (Some(STEP), &changed[..]));
    let repository = resolved_as("resolve", &[(STEP, BASE)], sides.0, sides.1);
    assert_eq!([MOVED, REMOVED].map(|it| repository.place.text(it)), [moved(&did), BASE.to_owned()]);
    assert!(!repository.place.file(STEP).exists());
}

#[test]
fn a_step_that_was_deleted_without_a_copy_is_kept() {
    let text = done();
    let files = [(STEP, text.as_str())];
    check_only(&resolved(&[(STEP, BASE), (PLAN, LIST)], (None, &[]), (Some(STEP), &files)), STEP, &text);
    check_only(&resolved(&[(STEP, BASE), (PLAN, LIST)], (Some(STEP), &files), (None, &[])), STEP, &text);
}

/// The step that another one is squashed into.
fn server() -> String {
    let edits = [
        ("id: auth:2", "id: auth:1"),
        ("title: Schema\n", ""),
        ("depends:\n  - 1\n", ""),
        ("# Schema", "# Server"),
        ("First words.", "About the server."),
    ];
    with(BASE, &edits)
}

#[test]
fn a_completion_goes_to_the_step_that_the_other_side_squashed_its_step_into() {
    let (base, server) = (with(BASE, &[("depends:\n  - 1\n", "")]), server());
    let text = with(&base, &[(STATUS, DONE), (END, &attempts(&[&attempt("02", "ann", "completed")]))]);
    for done in [text.clone(), rewritten(&text)] {
        for is_ours in [true, false] {
            let repository = Repository::new(Driver::None, &[(PLAN, LIST), (STEP, &base), (FIRST, &server)]);
            repository.git("checkout -q -b other");
            repository.commit(&[(STEP, &done)]);
            repository.git("checkout -q main");
            repository.place.date_fixture();
            repository.planwatch("squash auth 1 2 --title Both").ok_code();
            repository.commit(&[]);
            let (own, other) = if is_ours { ("main", "other") } else { ("other", "main") };
            repository.git(&format!("checkout -q {own}"));
            if repository.try_git(&format!("merge -q --no-edit {other}")).code != 0 {
                assert_eq!(repository.planwatch("git resolve").code, 0);
                repository.git("commit -q --no-edit");
            } else {
                assert_eq!(repository.planwatch("git resolve --restore auth:2").code, 0);
            }
            let both = repository.place.text(FIRST);
            assert!(both.contains("by: ann") && both.contains("status: pending"), "{own}: {both}");
            assert!(both.contains("# Both") && !repository.place.file(STEP).exists(), "{own}: {both}");
            // The attempt is in the combined step; the other text is not.
            let left = repository.planwatch("check --git --json").json();
            let said: Vec<_> = left["problems"].as_array().unwrap().iter().map(|it| &it["message"]).collect();
            let text_changed = ["`auth:2` changed after it was squashed: the text changed"];
            assert_eq!(said, if done == text { &[][..] } else { &text_changed }, "{own}");
        }
    }
}

#[test]
fn a_removal_does_not_remove_text_that_the_other_side_squashed_into_the_step() {
    let long = rewritten(BASE);
    let squashed = with(
        &long,
        &[("# Schema", "# Both\n\n# Schema"), ("Line 59.", "Line 59.\n\n# Tests\n\nWhat is tested.")],
    );
    let files = [(STEP, squashed.as_str())];
    let (removed, grown) = ((Some(REMOVED), &[][..]), (Some(STEP), &files[..]));
    for (ours, theirs) in [(removed, grown), (grown, removed)] {
        let repository = resolved_as("resolve", &[(STEP, BASE)], ours, theirs);
        check_only(&repository, STEP, &squashed);
        // If git detects the rename, it merges the text into the copy and reports no conflict.
        let repository = resolved(&[(STEP, BASE), (PLAN, LIST)], ours, theirs);
        assert_eq!(repository.place.text(REMOVED), squashed);
        assert_eq!(repository.planwatch("git resolve --restore auth:2").code, 0);
        assert_eq!(repository.place.text(STEP), squashed);
    }
}

#[test]
fn a_removal_removes_text_that_both_sides_squashed_into_the_step() {
    let squashed = |more: &str| with(BASE, &[("# Schema", "# Both\n\n# Schema"), ("Last words.", more)]);
    let both = squashed("Last words.\n\n# Tests\n\nWhat is tested.");
    let (copy, step) = ([(REMOVED, both.as_str())], [(STEP, both.as_str())]);
    let (removed, grown) = ((Some(REMOVED), &copy[..]), (Some(STEP), &step[..]));
    for (ours, theirs) in [(removed, grown), (grown, removed)] {
        check_only(&resolved_as("resolve", &[(STEP, BASE)], ours, theirs), REMOVED, &both);
    }
}

/// A version of the step that `squash` made: with another title, and another step's text below its own.
fn squashed(of: &str, title: &str, other: &str) -> String {
    let title = format!("# {title}\n\n# Schema");
    let other = format!("Last words.\n\n# {other}\n\nAs described.");
    with(of, &[("# Schema", &title), ("Last words.", &other)])
}

#[test]
fn of_several_copies_the_one_that_the_other_side_changed_gets_its_changes() {
    let base = with(BASE, &[("title: Schema\n", "")]);
    let done = with(&base, &[(STATUS, DONE), (END, &attempts(&[&attempt("02", "ann", "completed")]))]);
    let [both, did] = [&base, &done].map(|it| squashed(it, "Both", "Tests"));
    // The earlier copy still has the title of the base.
    let earlier = with(&base, &[("Last words.", "Last words.\n\n# Data\n\nAs described.")]);
    let (copies, step) = ([(REMOVED, earlier.as_str()), (LATER, &both)], [(STEP, did.as_str())]);
    let (removed, grown) = ((Some(LATER), &copies[..]), (Some(STEP), &step[..]));
    for (ours, theirs) in [(removed, grown), (grown, removed)] {
        let repository = resolved_as("resolve", &[(STEP, &base)], ours, theirs);
        assert_eq!(repository.place.text(REMOVED), earlier);
        assert_eq!(repository.place.text(LATER), did);
        assert!(!repository.place.file(STEP).exists());
    }
}

#[test]
fn a_step_that_both_squashed_stays_beside_its_removed_copy_if_their_texts_do_not_merge() {
    let base = with(BASE, &[("title: Schema\n", "")]);
    let done = with(&base, &[(STATUS, DONE), (END, &attempts(&[&attempt("02", "ann", "completed")]))]);
    let copy = with(&squashed(&done, "Both", "Tests"), &[("First words.", "Our words.")]);
    let [step, kept] =
        [&base, &done].map(|it| with(&squashed(it, "All", "Data"), &[("First words.", "Their words.")]));
    let (copies, steps) = ([(REMOVED, copy.as_str())], [(STEP, step.as_str())]);
    let (removed, grown) = ((Some(REMOVED), &copies[..]), (Some(STEP), &steps[..]));
    for (ours, theirs) in [(removed, grown), (grown, removed)] {
        let repository = resolved_as("resolve", &[(STEP, &base)], ours, theirs);
        assert_eq!([STEP, REMOVED].map(|it| repository.place.text(it)), [&kept[..], &copy]);
        repository.git("commit -q --no-edit");
        assert_eq!(repository.git("status --porcelain"), "");
    }
}

#[test]
fn both_texts_of_a_removed_copy_are_kept_if_the_driver_left_a_conflict() {
    let repository = Repository::new(Driver::Configured, &[(PLAN, LIST)]);
    let of = |words: &str| with(BASE, &[("First words.", words)]);
    repository.git("checkout -q -b theirs");
    repository.commit(&[(REMOVED, &of("Their words."))]);
    repository.git("checkout -q main");
    repository.commit(&[(REMOVED, &of("Our words."))]);
    assert_eq!(repository.try_git("merge -q --no-edit theirs").code, 1);
    assert!(repository.place.text(REMOVED).contains("<<<<<<<"));
    let ran = repository.planwatch("git resolve");
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(repository.place.text(REMOVED), of("Our words.\nTheir words."));
}

/// Two branches, `main` and `theirs`, that have each added a step with the same number. They are not merged yet.
fn numbered_twice(own: &[(&str, &str)], other: &[(&str, &str)]) -> Repository {
    let repository = Repository::new(Driver::None, &[(PLAN, LIST), (STEP, BASE)]);
    repository.git("checkout -q -b theirs");
    repository.commit(&[&[(NEW, THEIR_STEP)], other].concat());
    repository.git("checkout -q main");
    repository.commit(&[&[(NEW, OUR_STEP)], own].concat());
    repository
}

pub(crate) const NEW: &str = "plans/auth/step-9.md";
pub(crate) const NEXT: &str = "plans/auth/step-10.md";
pub(crate) const OUR_STEP: &str = "---\nid: auth:9\ncreated_at: 2026-01-02T00:00:00Z\n---\n# Ours\n";
pub(crate) const THEIR_STEP: &str = "---\nid: auth:9\ncreated_at: 2026-01-03T00:00:00Z\n---\n# Theirs\n";

/// The files of the plan's steps that have this heading.
pub(crate) fn with_heading(repository: &Repository, heading: &str) -> Vec<String> {
    let all = std::fs::read_dir(repository.place.file("plans/auth")).expect("it is there");
    let names = all.map(|it| it.expect("it is there").file_name().to_string_lossy().into_owned());
    let has_it = |name: &String| {
        repository.place.text(&format!("plans/auth/{name}")).lines().any(|line| line == heading)
    };
    names.filter(has_it).collect()
}

#[test]
fn a_step_gets_its_new_number_once_if_the_command_is_interrupted_and_repeated() {
    let listed = |items: &str| with(LIST, &[("- step-2: Two\n", &format!("- step-2: Two\n{items}"))]);
    let (own, other) = (listed("- step-9: Ours\n"), listed("- step-9: Theirs\n"));
    let repository = numbered_twice(&[(PLAN, &own)], &[(PLAN, &other)]);
    assert_eq!(repository.try_git("merge -q --no-edit theirs").code, 1);
    // As after a kill before the files were staged.
    let renumbered = with(THEIR_STEP, &[("auth:9", "auth:10")]);
    let list = listed("- step-9: Ours\n- step-10: Theirs\n");
    for (path, text) in [(NEW, OUR_STEP), (NEXT, &renumbered), (PLAN, &list)] {
        repository.place.write(path, text);
    }
    let ran = repository.planwatch("git resolve --renumber");
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(with_heading(&repository, "# Theirs"), ["step-10.md"]);
    assert_eq!([NEW, NEXT, PLAN].map(|it| repository.place.text(it)), [OUR_STEP, &renumbered, &list]);
    repository.git("commit -q --no-edit");
    assert_eq!(repository.git("status --porcelain"), "");
}

#[test]
fn a_step_gets_its_new_number_once_if_a_file_was_saved_a_moment_ago() {
    const PICKED: &str = "plans/auth/step-7.md";
    let picked = "---\nid: auth:7\nstatus: pending\ncreated_at: 2026-01-04T00:00:00Z\n---\n# Picked\n";
    let repository = numbered_twice(&[(PICKED, picked)], &[(PICKED, picked)]);
    // The file of step 7 becomes longer before the step moves, so that the shorter file that git writes looks truncated.
    repository.planwatch(&format!("done auth:7 -m {}", "long".repeat(60))).ok_code();
    repository.planwatch("move auth:7 --before 2").ok_code();
    repository.commit(&[]);
    assert_eq!(repository.try_git("merge -q --no-edit theirs").code, 1);
    let ran = repository.planwatch("git resolve --renumber");
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(with_heading(&repository, "# Theirs"), ["step-10.md"]);
    assert_eq!(with_heading(&repository, "# Picked").len(), 1);
    assert_eq!(repository.conflicts(), "");
    repository.git("commit -q --no-edit");
    assert_eq!(repository.git("status --porcelain"), "");
}

#[test]
fn a_removed_copy_is_kept_beside_its_step_that_git_has_merged() {
    const COPY: &str = "plans/_archive/auth/removed-20260103T000000Z/step-1.md";
    let server = server();
    let squashed =
        with(&server, &[("# Server", "# Both\n\n# Server"), ("Last words.", "Last words.\n\n# Schema")]);
    let theirs = [(COPY, server.as_str()), (FIRST, squashed.as_str())];
    // Git takes the copy for the renamed step 2, which this branch deleted.
    let repository = resolved(&[(STEP, BASE), (FIRST, &server)], (None, &[]), (Some(COPY), &theirs));
    assert_eq!([COPY, FIRST].map(|it| repository.place.text(it)), [server, squashed]);
}

#[test]
fn a_file_with_conflict_markers_is_not_staged_because_its_dependencies_changed() {
    let step = |body: &str, depends: &str| with(BASE, &[("First words.", body), ("  - 1\n", depends)]);
    let (own, other) = (step("Our words.", "  - 1\n"), step("Their words.", "  - 1\n  - 9\n"));
    let repository = numbered_twice(&[(STEP, &own)], &[(STEP, &other)]);
    assert_eq!(repository.try_git("merge -q --no-edit theirs").code, 1);
    assert_eq!(repository.planwatch("git resolve --renumber").code, 1);
    let text = repository.place.text(STEP);
    assert!(text.contains("  - 10\n") && text.contains("<<<<<<<"), "{text}");
    assert_eq!(repository.conflicts().trim(), STEP);
}

#[test]
fn attempts_of_a_squashed_step_go_to_the_step_that_replaced_it_after_the_conflict_of_that_step() {
    const MOVED: &str = "plans/auth/step-5.md";
    // The path of step 10 sorts before that of step 2.
    let tenth = with(&server(), &[("auth:1", "auth:10")]);
    let base = with(BASE, &[("depends:\n  - 1\n", "")]);
    let tried = format!("attempts:\n{}---\n# Server", attempt("02", "ann", "completed"));
    let did = with(&tenth, &[(STATUS, DONE), ("---\n# Server", &tried)]);
    let repository = Repository::new(Driver::None, &[(PLAN, LIST), (STEP, &base), (NEXT, &tenth)]);
    repository.git("checkout -q -b theirs");
    repository.place.date_fixture();
    repository.planwatch("squash auth 2 10 --title Both").ok_code();
    repository.commit(&[]);
    repository.git("checkout -q main");
    repository.git(&format!("mv {STEP} {MOVED}"));
    repository.commit(&[(MOVED, &with(&base, &[("auth:2", "auth:5")])), (NEXT, &did)]);
    assert_eq!(repository.try_git("merge -q --no-edit -s resolve theirs").code, 1);
    let ran = repository.planwatch("git resolve");
    assert_eq!(ran.code, 0, "{ran:?}");
    let both = repository.place.text(MOVED);
    assert!(both.contains("# Both\n") && both.contains("by: ann"), "{both}");
    assert!(!repository.place.file(STEP).exists() && !repository.place.file(NEXT).exists());
    repository.git("commit -q --no-edit");
    assert_eq!(repository.git("status --porcelain"), "");
}
