//! A claimed step that is renumbered in one working tree stays claimed under its old number in the others.

use super::{HERE, LATER, OTHER, Repository, step_and_id};
use crate::support::Ran;

/// Another step, with a text that is long enough not to count as a partial save.
const ANOTHER: &str = "# Another\n\nThis step has nothing to do with the one that had its number before. It has a text of \
    its own, and that text is about as long as a step with a claim and an attempt in its front matter can be.\n\n\
    A second paragraph makes it longer still, so that planwatch takes it for a complete file.\n";

/// Claims a step as `carl`; returns the exit code and the message.
fn claim(repository: &Repository, tree: &str, step: &str) -> (i32, String) {
    let ran = repository.run(tree, &format!("claim {step} --by carl"));
    (ran.code, ran.stderr)
}

#[track_caller]
fn is_refused(repository: &Repository, tree: &str, step: &str, why: &str) {
    let (code, message) = claim(repository, tree, step);
    assert!(code == 4 && message.contains(why), "{tree} {step}: {code} {message}");
}

/// Three steps. Ann has claimed the first one and moved it behind the second.
fn moved() -> Repository {
    let repository = Repository::with(3);
    repository.place.write("plans/p/step-1.md", ANOTHER.replace("Another", "Step 1"));
    commit(&repository);
    repository.run(HERE, "claim p:1 --by ann").ok();
    repository.run(HERE, "move p:1 --after 2 --by ann").ok();
    repository
}

fn commit(repository: &Repository) {
    repository.git(HERE, "add -A plans");
    repository.git(HERE, "commit -q -m work");
}

#[test]
fn a_claim_of_a_moved_step_holds_under_both_numbers() {
    let repository = moved();
    is_refused(&repository, OTHER, "p:1", "claimed");
    is_refused(&repository, HERE, "p:2.5", "claimed");
    // The next claim in the other tree gets a different step.
    assert_eq!(repository.claims(OTHER).0, "p:2");
    // After a second move the first number is still claimed.
    repository.run(HERE, "move p:2.5 --after 3 --by ann").ok();
    is_refused(&repository, OTHER, "p:1", "claimed");
}

#[test]
fn a_claim_of_a_moved_step_holds_after_git_undid_the_move() {
    let repository = moved();
    repository.git(HERE, "stash -q -u -- plans");
    is_refused(&repository, HERE, "p:1", "claimed");
    // After the owner released it under the old number, both numbers are free.
    repository.run(HERE, "release p:1 --by ann").ok();
    assert_eq!(claim(&repository, OTHER, "p:1").0, 0);
}

#[test]
fn completed_work_is_not_claimed_again_under_the_old_number() {
    let repository = moved();
    repository.run(HERE, "done p:2.5 --by ann").ok();
    commit(&repository);
    is_refused(&repository, OTHER, "p:1", "closed on main");
    repository.run(HERE, "reopen p:2.5").ok();
    assert_eq!(claim(&repository, OTHER, "p:1").0, 0);
}

#[test]
fn a_released_step_is_free_under_both_numbers() {
    let repository = moved();
    repository.run(HERE, "release p:2.5 --by ann").ok();
    assert_eq!(claim(&repository, OTHER, "p:1").0, 0);
}

#[test]
fn another_step_with_the_old_number_can_be_claimed_in_the_tree_of_the_move() {
    for ends in [false, true] {
        let repository = moved();
        if ends {
            repository.run(HERE, "done p:2.5 --by ann").ok();
            commit(&repository);
        }
        repository.place.write("plans/p/step-1.md", ANOTHER);
        assert_eq!(claim(&repository, HERE, "p:1").0, 0, "{ends}");
        repository.run(HERE, "done p:1 --by carl").ok();
        assert_eq!(claim(&repository, OTHER, "p:1").0, 4, "{ends}");
    }
}

#[test]
fn a_step_that_moves_back_is_claimed_under_its_first_number() {
    let repository = moved();
    repository.run(HERE, "move p:2.5 --before 2 --by ann").ok();
    let back = repository.run(HERE, "list p --status in_progress --json=id").ok();
    assert!(!back.contains("2.5"), "{back}");
    is_refused(&repository, OTHER, "p:1", "claimed");
    let repository = moved();
    repository.run(HERE, "undo --by ann").ok();
    is_refused(&repository, HERE, "p:1", "claimed");
    is_refused(&repository, OTHER, "p:1", "claimed");
    repository.run(HERE, "done p:1 --by ann").ok();
    commit(&repository);
    is_refused(&repository, OTHER, "p:1", "closed on main");
}

fn later(repository: &Repository, tree: &str, line: &str) -> Ran {
    let mut command = repository.place.command();
    command.current_dir(repository.place.work().join(tree));
    Ran::of(command.args(line.split(' ')).env("PLANWATCH_NOW", LATER).output().expect("the binary starts"))
}

#[test]
fn a_lapsed_claim_is_taken_over_only_once_under_any_number() {
    let trees = [(HERE, "p:2.5", OTHER, "p:1"), (OTHER, "p:1", HERE, "p:2.5")];
    for (tree, step, other, its) in trees {
        let repository = moved();
        let taken = later(&repository, tree, &format!("claim {step} --by bob --json")).ok();
        assert!(step_and_id(&taken).is_some_and(|it| it.0 == step), "{tree}: {taken}");
        let refused = later(&repository, other, &format!("claim {its} --by carl"));
        assert!(refused.code == 4 && refused.stderr.contains("claimed"), "{tree}: {}", refused.stderr);
    }
}

#[test]
fn the_claim_of_a_step_that_was_removed_or_squashed_holds_until_it_ends() {
    for line in ["squash p 1 2 --title S --force --by bob", "remove p:2 --force --by bob"] {
        let repository = Repository::with(3);
        repository.run(HERE, "claim p:2 --by ann").ok();
        assert_eq!(repository.run(HERE, line).code, 0, "{line}");
        is_refused(&repository, OTHER, "p:2", "claimed");
        // In the tree without the step, another step with its number can be claimed.
        repository.place.write("plans/p/step-2.md", ANOTHER);
        assert_eq!(claim(&repository, HERE, "p:2").0, 0, "{line}");
        is_refused(&repository, OTHER, "p:2", "claimed");
        let repository = Repository::with(3);
        repository.run(HERE, "claim p:2 --by ann").ok();
        assert_eq!(repository.run(HERE, line).code, 0, "{line}");
        assert_eq!(later(&repository, OTHER, "claim p:2 --by bob").code, 0, "{line}");
    }
}

#[test]
fn claimed_steps_that_exchange_numbers_stay_claimed_under_all_their_numbers() {
    let repository = Repository::with(3);
    repository.run(HERE, "claim p:1 --by ann").ok();
    repository.run(HERE, "claim p:2 --by bob").ok();
    let list =
        r#"[{"id": "2", "title": "Step 2"}, {"id": "1", "title": "Step 1"}, {"id": "3", "title": "Step 3"}]"#;
    repository.place.write("list.json", list);
    assert_eq!(repository.run(HERE, "replace p --file list.json --force --by eve").code, 0);
    for step in ["p:1", "p:2"] {
        is_refused(&repository, OTHER, step, "claimed");
    }
    assert_eq!(repository.claims(OTHER).0, "p:3");
}

#[test]
fn a_claim_of_another_tree_holds_the_new_number_of_its_step() {
    let repository = Repository::with(3);
    repository.run(OTHER, "claim p:1 --by ann").ok();
    assert_eq!(repository.run(HERE, "move p:1 --after 2 --force --by bob").code, 0);
    is_refused(&repository, HERE, "p:2.5", "claimed");
    repository.run(OTHER, "done p:1 --by ann").ok();
    is_refused(&repository, HERE, "p:2.5", "closed on other");
}

#[test]
fn work_on_a_plan_that_was_renamed_in_one_tree_counts_under_both_names() {
    // The step is closed before or after the plan is renamed. It counts as closed under both names.
    for (tree, is_first) in [(OTHER, true), (OTHER, false), (HERE, false)] {
        let repository = Repository::with(3);
        let (id, here, other) = if tree == HERE { ("q:1", "q:1", "p:1") } else { ("p:1", "q:1", "p:1") };
        let rename = || repository.run(HERE, "move p --to q").ok();
        if !is_first {
            rename();
        }
        repository.run(tree, &format!("claim {id} --by ann")).ok();
        if !is_first {
            is_refused(&repository, HERE, here, "claimed");
            is_refused(&repository, OTHER, other, "claimed");
        }
        repository.run(tree, &format!("done {id} --by ann")).ok();
        if is_first {
            rename();
        }
        let (open, step) = if tree == HERE { (OTHER, other) } else { (HERE, here) };
        is_refused(&repository, open, step, "closed on");
        assert_eq!(claim(&repository, open, &step.replace('1', "2")).0, 0);
        repository.run(tree, &format!("reopen {id}")).ok();
        assert_eq!(claim(&repository, open, step).0, 0, "{tree} {is_first}");
    }
}

#[test]
fn another_plan_with_the_earlier_name_is_free() {
    let repository = Repository::with(2);
    repository.run(HERE, "move p --to q").ok();
    repository.run(HERE, "new p Other More").ok_code();
    repository.run(HERE, "claim q:1 --by ann").ok();
    assert_eq!(claim(&repository, HERE, "p:1").0, 0);
    is_refused(&repository, OTHER, "p:1", "claimed");
}

#[test]
fn a_step_that_was_closed_without_a_claim_is_not_claimed_on_another_branch() {
    for end in ["done p:1", "skip p:1 -m no", "set p:1 status completed"] {
        let repository = Repository::with(2);
        repository.run(OTHER, end).ok();
        is_refused(&repository, HERE, "p:1", "closed on other");
        assert_eq!(repository.claims(HERE).0, "p:2");
        repository.run(OTHER, "reopen p:1").ok();
        assert_eq!(claim(&repository, HERE, "p:1").0, 0, "{end}");
    }
    // With only one tree, steps that are closed without a claim are not recorded.
    let repository = Repository::with(1);
    repository.git(HERE, "worktree remove ../other");
    repository.run(HERE, "done p:1").ok();
    assert!(!repository.place.file(".git/planwatch").exists());
}
