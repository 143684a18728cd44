//! `git resolve` after merges and rebases in which git found no conflict, but paired the wrong files as renames.

use crate::git_merge::{
    BASE, DONE, Driver, END, LIST, PLAN, Repository, STATUS, STEP, attempt, attempts, with,
};
use crate::git_places::{NEW, NEXT, OUR_STEP, REMOVED, THEIR_STEP, done, with_heading};

const NOTE: &str = "notes:\n  - at: 2026-01-05T00:00:00Z\n    type: info\n    by: cy\n    text: Look here\n";

#[test]
fn a_step_that_the_merge_dropped_is_restored() {
    const NEW: &str = "plans/auth/step-9.md";
    let edits = [("id: auth:2", "id: auth:9"), ("# Schema", "# Next"), ("title: Schema", "title: Next")];
    let new = with(BASE, &edits);
    for commit in ["--no-commit", "--no-edit"] {
        let repository = Repository::new(Driver::None, &[(STEP, BASE)]);
        repository.git("checkout -q -b theirs");
        repository.commit(&[(NEW, &new)]);
        repository.git("checkout -q main");
        repository.commit(&[(STEP, &done())]);
        // The strategy `ours` drops everything of THEIRS, as git drops a file if two files are renamed to one name.
        repository.git(&format!("merge -q {commit} -s ours theirs"));
        assert!(!repository.place.file(NEW).exists());
        let ran = repository.planwatch("git resolve");
        assert_eq!(ran.code, 0, "{ran:?}");
        assert_eq!(repository.place.text(NEW), new);
        assert_eq!(repository.git("status --porcelain"), format!("A  {NEW}\n"));
    }
}

#[test]
fn a_title_that_a_person_dropped_in_a_conflict_is_not_a_dropped_step() {
    let titled = |title: &str| {
        let edits = [("# Schema", format!("# {title}")), ("title: Schema", format!("title: {title}"))];
        with(BASE, &edits.each_ref().map(|(from, to)| (*from, to.as_str())))
    };
    for chosen in ["Ours", "Theirs", "Schema", "Third"] {
        let repository = Repository::new(Driver::None, &[(STEP, BASE)]);
        repository.git("checkout -q -b theirs");
        repository.commit(&[(STEP, &titled("Theirs"))]);
        repository.git("checkout -q main");
        repository.commit(&[(STEP, &titled("Ours"))]);
        assert_eq!(repository.try_git("merge -q --no-edit theirs").code, 1);
        repository.place.write(STEP, titled(chosen));
        repository.git("add plans");
        for is_committed in [false, true] {
            if is_committed {
                repository.git("commit -q --no-edit");
            }
            let ran = repository.planwatch("git resolve");
            assert_eq!(ran.code, 0, "{chosen}: {ran:?}");
            assert!(!repository.git("status --porcelain").contains("A "), "{chosen}: {ran:?}");
            assert_eq!(repository.place.text(STEP), titled(chosen));
        }
    }
}

#[test]
fn a_completion_that_the_merge_dropped_is_restored_with_its_attempt() {
    let repository = Repository::new(Driver::None, &[(STEP, BASE)]);
    repository.git("checkout -q -b theirs");
    repository.commit(&[(STEP, &done())]);
    repository.git("checkout -q main");
    let noted = with(BASE, &[(END, &format!("{NOTE}{END}"))]);
    repository.commit(&[(STEP, &noted)]);
    repository.git("merge -q --no-edit -s ours theirs");
    assert_eq!(repository.place.text(STEP), noted);
    let ran = repository.planwatch("git resolve");
    assert_eq!(ran.code, 0, "{ran:?}");
    let did = attempts(&[&attempt("02", "ann", "completed")]);
    assert_eq!(repository.place.text(STEP), with(&noted, &[(STATUS, DONE), (END, &did)]));
}

#[test]
fn a_moved_step_is_restored_if_another_step_took_its_place() {
    let [fourth, fifth, sixth] = ["plans/auth/step-4.md", "plans/auth/step-5.md", "plans/auth/step-6.md"];
    let step = |number: u32, title: &str, day: u32, more: &str| {
        format!("---\nid: auth:{number}\ncreated_at: 2026-01-0{day}T00:00:00Z\n{more}---\n# {title}\n")
    };
    let did = attempts(&[&attempt("06", "ann", "completed")]).replace(END, "");
    let repository = Repository::new(
        Driver::None,
        &[(fourth, &step(4, "Schema", 1, "")), (fifth, &step(5, "Server", 2, ""))],
    );
    repository.git("checkout -q -b theirs");
    repository.git(&format!("rm -q {fourth}"));
    // Step 4 becomes step 5, the former step 5 becomes step 7, and step 6 is new.
    repository.commit(&[
        (fifth, &step(5, "Schema", 1, &did)),
        ("plans/auth/step-7.md", &step(7, "Server", 2, "")),
        (sixth, &step(6, "Tests", 3, "")),
    ]);
    repository.git("checkout -q main");
    repository.git(&format!("mv {fifth} {sixth}"));
    repository.commit(&[(sixth, &step(6, "Server", 2, ""))]);
    assert_eq!(repository.try_git("merge -q --no-edit theirs").code, 1);
    let ran = repository.planwatch("git resolve --renumber");
    assert_eq!(ran.code, 0, "{ran:?}");
    for title in ["# Schema", "# Server", "# Tests"] {
        assert_eq!(with_heading(&repository, title).len(), 1, "{title}");
    }
    assert_eq!(repository.place.text(fifth), step(5, "Schema", 1, &did));
    repository.git("commit -q --no-edit");
    assert_eq!(repository.git("status --porcelain"), "");
}

#[test]
fn a_step_with_two_numbers_after_a_merge_without_a_conflict_keeps_one() {
    let repository = Repository::new(Driver::None, &[(PLAN, LIST), (STEP, BASE)]);
    repository.git("checkout -q -b theirs");
    repository.commit(&[(NEW, THEIR_STEP)]);
    repository.git("checkout -q main");
    // As after a cherry-pick whose step got another number.
    let picked = with(THEIR_STEP, &[("auth:9", "auth:10")]);
    repository.commit(&[(NEXT, &picked)]);
    repository.git("merge -q --no-edit theirs");
    assert_eq!(with_heading(&repository, "# Theirs").len(), 2);
    // `git resolve` changes nothing if a plan file was edited after the merge, because the edit may resolve the merge.
    repository.place.write(PLAN, with(LIST, &[("Notes.", "More notes.")]));
    assert!(repository.planwatch("git resolve").stdout.contains("No plan file is in conflict"));
    repository.place.write(PLAN, LIST);
    let ran = repository.planwatch("git resolve");
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(with_heading(&repository, "# Theirs"), ["step-10.md"]);
    assert_eq!(repository.place.text(NEXT), picked);
    assert_eq!(repository.git("status --porcelain"), format!("D  {NEW}\n"));
    // After a rebase, the step of `theirs` is the earlier one, so its number is kept.
    repository.git("reset -q --hard HEAD^1");
    repository.git("rebase -q theirs");
    assert_eq!(with_heading(&repository, "# Theirs").len(), 2);
    let ran = repository.planwatch("git resolve");
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(with_heading(&repository, "# Theirs"), ["step-9.md"]);
    assert_eq!(repository.git("status --porcelain"), format!("D  {NEXT}\n"));
}

#[test]
fn a_cherry_picked_step_that_is_there_under_another_number_is_merged_into_it() {
    let picked = with(THEIR_STEP, &[("auth:9", "auth:10")]);
    let started = with(THEIR_STEP, &[("---\n# Theirs", "status: in_progress\ntags: [db]\n---\n# Theirs")]);
    let repository = Repository::new(Driver::None, &[(PLAN, LIST), (STEP, BASE)]);
    repository.git("checkout -q -b theirs");
    repository.commit(&[(NEW, &started)]);
    repository.git("checkout -q main");
    repository.commit(&[(NEXT, &picked)]);
    repository.git("cherry-pick theirs");
    assert_eq!(with_heading(&repository, "# Theirs").len(), 2);
    let ran = repository.planwatch("git resolve");
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(with_heading(&repository, "# Theirs"), ["step-10.md"]);
    let text = repository.place.text(NEXT);
    assert!(text.contains("in_progress") && text.contains("db"), "{text}");
    assert_eq!(repository.git("status --porcelain"), format!("M  {NEXT}\nD  {NEW}\n"));
}

#[test]
fn an_older_version_of_a_step_under_another_number_reverts_nothing() {
    let noted = with(THEIR_STEP, &[("---\n# Theirs", &format!("tags: [db]\n{NOTE}---\n# Theirs"))]);
    let repository = Repository::new(Driver::None, &[(PLAN, LIST), (STEP, BASE), (NEW, &noted)]);
    repository.git("checkout -q -b theirs");
    repository.commit(&[("plans/auth/step-11.md", &with(OUR_STEP, &[("auth:9", "auth:11")]))]);
    repository.git("checkout -q main");
    repository.commit(&[(STEP, &done())]);
    repository.git("merge -q --no-commit theirs");
    // As if a rebase had added the step once more.
    repository.place.write(NEXT, with(THEIR_STEP, &[("auth:9", "auth:10")]));
    repository.git("add -A");
    let ran = repository.planwatch("git resolve");
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(with_heading(&repository, "# Theirs"), ["step-9.md"]);
    assert_eq!(repository.place.text(NEW), noted);
}

#[test]
fn edits_that_a_person_staged_in_either_file_of_a_step_are_kept() {
    let picked = with(THEIR_STEP, &[("auth:9", "auth:10")]);
    let noted = with(&picked, &[("---\n# Theirs", &format!("status: blocked\n{NOTE}---\n# Theirs"))]);
    let repository = Repository::new(Driver::None, &[(PLAN, LIST), (STEP, BASE)]);
    repository.git("checkout -q -b theirs");
    repository.commit(&[(NEW, THEIR_STEP)]);
    repository.git("checkout -q main");
    repository.commit(&[(NEXT, &picked)]);
    repository.git("merge -q --no-commit theirs");
    for (path, edited) in [(NEXT, &noted), (NEW, &with(&noted, &[("auth:10", "auth:9")]))] {
        repository.place.write(path, edited);
        repository.git("add -A");
        let ran = repository.planwatch("git resolve");
        assert_eq!(ran.code, 0, "{ran:?}");
        assert_eq!(with_heading(&repository, "# Theirs"), ["step-10.md"]);
        let text = repository.place.text(NEXT);
        assert!(text.contains("Look here") && text.contains("blocked"), "{text}");
        repository.place.write(NEXT, &picked);
        repository.place.write(NEW, THEIR_STEP);
    }
}

#[test]
fn a_step_that_both_sides_added_and_one_side_removed_stays_removed() {
    const COPY: &str = "plans/_archive/auth/removed-20260104T000000Z/step-9.md";
    let tried = format!("status: completed\nattempts:\n{}---\n# Theirs", attempt("02", "ann", "completed"));
    let [did, tagged] =
        [&tried, "tags: [db]\n---\n# Theirs"].map(|it| with(THEIR_STEP, &[("---\n# Theirs", it)]));
    let repository = Repository::new(Driver::None, &[(PLAN, LIST), (STEP, BASE)]);
    repository.git("checkout -q -b theirs");
    repository.commit(&[(NEW, THEIR_STEP)]);
    repository.git(&format!("rm -q {NEW}"));
    repository.commit(&[(COPY, &did)]);
    repository.git("checkout -q main");
    // As after a cherry-pick of the first commit.
    repository.commit(&[(NEW, &tagged)]);
    repository.git("branch ours");
    for join in ["merge -q --no-edit", "rebase -q"] {
        repository.git(&format!("{join} theirs"));
        assert!(repository.place.file(NEW).exists() && repository.place.file(COPY).exists());
        let ran = repository.planwatch("git resolve");
        assert_eq!(ran.code, 0, "{ran:?}");
        assert!(!repository.place.file(NEW).exists());
        let text = repository.place.text(COPY);
        assert!(["completed", "by: ann", "db"].iter().all(|it| text.contains(it)), "{text}");
        assert_eq!(repository.git("status --porcelain"), format!("M  {COPY}\nD  {NEW}\n"));
        repository.git("reset -q --hard ours");
    }
    // A rebase can add the step under two numbers.
    repository.git("merge -q --no-commit theirs");
    let noted = with(&tagged, &[("auth:9", "auth:10"), ("tags: [db]\n", &format!("tags: [db]\n{NOTE}"))]);
    repository.place.write(NEXT, noted);
    repository.git("add -A");
    let ran = repository.planwatch("git resolve");
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(with_heading(&repository, "# Theirs"), [""; 0], "{ran:?}");
    let text = repository.place.text(COPY);
    assert!(["completed", "by: ann", "db", "Look here"].iter().all(|it| text.contains(it)), "{text}");
}

#[test]
fn a_step_that_git_dropped_in_a_rebase_is_restored() {
    const COPY: &str = "plans/_archive/auth/removed-20260104T000000Z/step-9.md";
    // Whether another branch is checked out when the rebase starts.
    for is_elsewhere in [false, true] {
        let repository = Repository::new(Driver::Configured, &[(PLAN, LIST), (STEP, BASE)]);
        repository.git("checkout -q -b theirs");
        repository.commit(&[(NEW, THEIR_STEP)]);
        repository.git("branch line");
        repository.git(&format!("rm -q {NEW}"));
        repository.commit(&[(COPY, THEIR_STEP)]);
        repository.git("checkout -q line");
        repository.git(&format!("rm -q {NEW}"));
        repository.commit(&[(COPY, THEIR_STEP), (STEP, &done())]);
        repository.git("checkout -q main");
        repository.commit(&[(NEW, OUR_STEP)]);
        repository.git("merge -q --no-edit line");
        // Git replays the removal of the step that had the number before.
        if is_elsewhere {
            repository.git("checkout -q -b third theirs");
        }
        repository.git("rebase -q theirs main");
        assert!(!repository.place.file(NEW).exists());
        let ran = repository.planwatch("git resolve");
        assert_eq!(ran.code, 0, "{ran:?}");
        assert_eq!([NEW, STEP].map(|it| repository.place.text(it)), [OUR_STEP.to_owned(), done()]);
        assert_eq!(repository.git("status --porcelain"), format!("A  {NEW}\n"));
    }
}

#[test]
fn work_that_both_sides_have_and_only_a_merge_kept_is_restored_after_a_rebase() {
    let noted = with(BASE, &[(END, &format!("{NOTE}{END}"))]);
    for (had, has_merge) in [(&noted, true), (&done(), true), (&noted, false)] {
        let repository = Repository::new(Driver::Configured, &[(PLAN, LIST), (STEP, had)]);
        repository.git("checkout -q -b theirs");
        repository.commit(&[(NEW, THEIR_STEP)]);
        repository.git("checkout -q -b side main");
        repository.commit(&[(NEXT, OUR_STEP)]);
        repository.git("checkout -q main");
        repository.git(&format!("rm -q {STEP}"));
        repository.commit(&[]);
        repository.commit(&[(STEP, BASE)]);
        if has_merge {
            repository.git("merge -q --no-commit -s ours side");
        }
        repository.commit(&[(STEP, had)]);
        // The rebase leaves out the merge. In the case without a merge, a person drops the last commit.
        repository.git(if has_merge { "rebase -q theirs" } else { "rebase -q --onto theirs HEAD~3 HEAD~1" });
        assert_eq!(repository.place.text(STEP), BASE);
        let ran = repository.planwatch("git resolve");
        assert_eq!(ran.code, 0, "{ran:?}");
        assert_eq!(repository.place.text(STEP), if has_merge { had } else { BASE });
    }
}

#[test]
fn a_status_that_a_person_chose_in_a_merge_stays() {
    let repository = Repository::new(Driver::None, &[(STEP, BASE)]);
    repository.git("checkout -q -b theirs");
    repository.commit(&[(STEP, &done())]);
    repository.git("checkout -q main");
    repository.commit(&[(NEW, OUR_STEP)]);
    repository.git("merge -q --no-commit theirs");
    let edited = with(BASE, &[("First words.", "Not done yet.")]);
    repository.place.write(STEP, &edited);
    repository.git("add -A");
    let ran = repository.planwatch("git resolve");
    assert_eq!(ran.code, 0, "{ran:?}");
    // Only the dropped attempt is added. The text and the status that the person wrote stay.
    let did = attempts(&[&attempt("02", "ann", "completed")]);
    assert_eq!(repository.place.text(STEP), with(&edited, &[(END, &did)]));
}

#[test]
fn live_steps_are_not_merged_into_the_removed_copy_of_another_step_with_their_title() {
    const COPY: &str = "plans/_archive/auth/removed-20260104T000000Z/step-11.md";
    let numbered = |n: u32| with(THEIR_STEP, &[("auth:9", &format!("auth:{n}"))]);
    let repository = Repository::new(Driver::None, &[(PLAN, LIST), (STEP, BASE)]);
    repository.git("checkout -q -b theirs");
    repository.commit(&[(NEW, THEIR_STEP), (NEXT, &numbered(10)), (COPY, &numbered(11))]);
    repository.git("checkout -q main");
    repository.commit(&[(NEW, THEIR_STEP), (STEP, &done())]);
    repository.git("merge -q --no-edit theirs");
    let ran = repository.planwatch("git resolve");
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!([NEW, NEXT].map(|it| repository.place.text(it)), [THEIR_STEP.to_owned(), numbered(10)]);
}

#[test]
fn a_commit_that_a_rebase_left_out_on_purpose_is_not_restored() {
    let repository = Repository::new(Driver::None, &[(PLAN, LIST), (STEP, BASE)]);
    repository.git("checkout -q -b theirs");
    repository.commit(&[(STEP, &done())]);
    repository.git("checkout -q main");
    repository.commit(&[(NEW, OUR_STEP)]);
    repository.commit(&[(NEXT, &with(THEIR_STEP, &[("auth:9", "auth:10")]))]);
    repository.git("rebase -q --onto theirs HEAD~1");
    let ran = repository.planwatch("git resolve");
    assert!(ran.stdout.contains("No plan file is in conflict"), "{ran:?}");
    assert!(!repository.place.file(NEW).exists());
}

#[test]
fn changes_that_git_merged_into_an_older_copy_go_to_the_moved_step() {
    const MOVED: &str = "plans/auth/step-5.md";
    let moved = |text: &str| with(text, &[("id: auth:2", "id: auth:5")]);
    let repository = Repository::new(Driver::Configured, &[(STEP, BASE)]);
    repository.git("checkout -q -b theirs");
    repository.git(&format!("rm -q {STEP}"));
    repository.commit(&[(MOVED, &moved(BASE)), (REMOVED, BASE)]);
    repository.git("checkout -q main");
    repository.commit(&[(STEP, &done())]);
    for join in ["merge -q --no-edit", "rebase -q"] {
        repository.git(&format!("{join} theirs"));
        // Git pairs the unchanged copy as the renamed file.
        assert_eq!([MOVED, REMOVED].map(|it| repository.place.text(it)), [moved(BASE), done()]);
        let ran = repository.planwatch("git resolve");
        assert_eq!(ran.code, 0, "{ran:?}");
        assert_eq!([MOVED, REMOVED].map(|it| repository.place.text(it)), [moved(&done()), done()]);
        assert_eq!(repository.git("status --porcelain"), format!("M  {MOVED}\n"));
        repository.git("reset -q --hard HEAD^1");
    }
}

#[test]
fn steps_whose_statuses_git_exchanged_get_their_own() {
    let [third, fourth, fifth] = ["plans/auth/step-3.md", "plans/auth/step-4.md", "plans/auth/step-5.md"];
    let step = |number: u32, title: &str, status: &str| {
        let common = "created_at: 2026-01-01T00:00:00Z\npriority: high\ntags: [db]\nfiles: []\n";
        format!("---\nid: auth:{number}\n{common}status: {status}\n---\n# {title}\n\nAs described.\n")
    };
    let tried = |outcome: &str, by: &str| format!("{outcome}\nattempts:\n{}", attempt("02", by, outcome));
    let [failed, completed] =
        [tried("failed", "ann"), tried("completed", "bob")].map(|it| it.trim().to_owned());
    let repository = Repository::new(
        Driver::None,
        &[(third, &step(3, "Schema", "pending")), (fourth, &step(4, "Server", "pending"))],
    );
    repository.git("checkout -q -b theirs");
    repository.commit(&[(third, &step(3, "Schema", &failed)), (fourth, &step(4, "Server", &completed))]);
    repository.git("checkout -q main");
    repository.git(&format!("rm -q {third}"));
    repository.commit(&[(fourth, &step(4, "Schema", "pending")), (fifth, &step(5, "Server", "pending"))]);
    // Git merges both versions of step-4.md, and pairs step 5 as the renamed step 3.
    repository.git("merge -q --no-commit theirs");
    let both = || [fourth, fifth].map(|it| repository.place.text(it));
    assert_eq!(both(), [step(4, "Schema", &completed), step(5, "Server", &failed)]);
    let ran = repository.planwatch("git resolve");
    assert_eq!(ran.code, 0, "{ran:?}");
    // Each step has its own status and attempt again, and not the other's.
    for (text, (title, own, other)) in both().iter().zip([
        ("Schema", ("failed", "ann"), ("completed", "bob")),
        ("Server", ("completed", "bob"), ("failed", "ann")),
    ]) {
        assert!(
            text.contains(&format!("# {title}\n")) && text.contains(&format!("\nstatus: {}\n", own.0)),
            "{text}"
        );
        assert!(text.contains(own.1) && !text.contains(other.1) && !text.contains(other.0), "{text}");
    }
    repository.git("commit -q --no-edit");
    assert_eq!(repository.git("status --porcelain"), "");
}

/// One of several steps that one command created, with more lines in its front matter.
fn created(plan: &str, number: u32, title: &str, more: &str) -> String {
    format!(
        "---\nid: {plan}:{number}\nstatus: pending\ncreated_at: 2026-01-01T00:00:00Z\n{more}---\n# {title}\n"
    )
}

const LONG_NOTE: &str = "notes:\n  - at: 2026-01-05T00:00:00Z\n    by: cy\n    text: a long note that says a lot about how the schema should look, and why\n";

#[test]
fn two_steps_that_git_took_for_one_moved_step_are_separated() {
    let [alpha, beta, seventh, eighth] = [1, 2, 7, 8].map(|it| format!("plans/p/step-{it}.md"));
    let steps = [(&*alpha, &*created("p", 1, "Alpha", "")), (&beta, &created("p", 2, "Beta", ""))];
    let work = "assignee: joe\nverify:\n  - make alpha\nnotes:\n  - at: 2026-01-06T00:00:00Z\n    by: ann\n    text: use the new server\n";
    for driver in [Driver::None, Driver::Configured] {
        for is_worker_ours in [true, false] {
            let repository = Repository::new(driver, &steps);
            repository.git("checkout -q -b mover");
            repository.git(&format!("mv {alpha} {seventh}"));
            repository.git(&format!("mv {beta} {eighth}"));
            repository.commit(&[
                (&seventh, &created("p", 7, "Alpha", LONG_NOTE)),
                (&eighth, &created("p", 8, "Beta", "")),
            ]);
            repository.git("checkout -q -b worker main");
            repository.commit(&[(&alpha, &created("p", 1, "Alpha", work))]);
            let (ours, theirs) = if is_worker_ours { ("worker", "mover") } else { ("mover", "worker") };
            repository.git(&format!("checkout -q {ours}"));
            let merged = repository.try_git(&format!("merge -q --no-edit {theirs}"));
            assert_eq!(merged.code, i32::from(driver == Driver::Configured), "{merged:?}");
            let ran = repository.planwatch("git resolve");
            assert_eq!(ran.code, 0, "{ran:?}");
            let [seventh, eighth] = [&seventh, &eighth].map(|it| repository.place.text(it));
            assert_eq!(eighth, created("p", 8, "Beta", ""), "{ran:?}");
            let has_it = |it: &&str| seventh.contains(it);
            let work =
                ["id: p:7\n", "# Alpha\n", "assignee: joe\n", "make alpha", "a long note", "the new server"];
            assert!(work.iter().all(has_it), "{ran:?}{seventh}");
            assert!(!repository.place.file(&alpha).exists() && !repository.place.file(&beta).exists());
            repository.git("commit -q --no-edit -m resolved");
            assert_eq!(repository.git("status --porcelain"), "");
        }
    }
}

#[test]
fn a_step_that_one_side_moved_and_retitled_stays_a_conflict() {
    const MOVED: &str = "plans/p/step-7.md";
    const FIRST: &str = "plans/p/step-1.md";
    let repository = Repository::new(Driver::Configured, &[(FIRST, &created("p", 1, "Alpha", LONG_NOTE))]);
    repository.git("checkout -q -b theirs");
    repository.git(&format!("mv {FIRST} {MOVED}"));
    repository.commit(&[(MOVED, &created("p", 7, "Alfa", LONG_NOTE))]);
    repository.git("checkout -q main");
    repository.commit(&[(FIRST, &created("p", 1, "Alpha", &format!("assignee: joe\n{LONG_NOTE}")))]);
    assert_eq!(repository.try_git("merge -q --no-edit theirs").code, 1);
    let left = repository.place.text(MOVED);
    let ran = repository.planwatch("git resolve --renumber");
    assert!(ran.code == 1 && ran.stdout.contains("has moved the step and changed its title"), "{ran:?}");
    assert_eq!((repository.place.text(MOVED), repository.conflicts()), (left, format!("{MOVED}\n")));
}
