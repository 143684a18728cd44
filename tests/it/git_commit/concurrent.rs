//! Commits of planwatch while a user edits, stages and commits; `scripts/git-trials` does the same with more commits.

use std::sync::atomic::{AtomicBool, Ordering};

use super::{Place, repository};

/// Commits of planwatch.
const COMMITS: usize = 4;

/// The maximum number of commits of the user. With this limit, planwatch's commits succeed on a slow machine, too.
const MOST_USER_COMMITS: usize = 60;

/// The user edits, stages and commits until planwatch's commits are done. Returns how many commits succeeded.
fn user(place: &Place, is_over: &AtomicBool) -> usize {
    let mut made = 0;
    for n in 0..MOST_USER_COMMITS {
        if is_over.load(Ordering::Relaxed) {
            break;
        }
        place.write("code", format!("{n}\n"));
        place.write("staged", format!("{n}\n"));
        let git =
            |words: &[&str]| place.git_command().args(words).output().is_ok_and(|it| it.status.success());
        // A commit of the user that collides with one of planwatch fails. It does not count, and the next round tries
        // again.
        made += usize::from(
            git(&["add", "staged"]) && git(&["commit", "-q", "-m", "user", "--", "code", "staged"]),
        );
    }
    made
}

#[test]
fn neither_side_reverts_the_work_of_the_other() {
    let place = repository();
    place.write("staged", "");
    place.git_with(&["add", "staged"]);
    place.git_with(&["commit", "-q", "-m", "staged"]);
    let is_over = AtomicBool::new(false);
    let n_user = std::thread::scope(|scope| {
        let user = scope.spawn(|| user(&place, &is_over));
        for n in 0..COMMITS {
            let verb = if n % 2 == 0 { "done" } else { "reopen" };
            place.run(&format!("{verb} p:1 -m {n}")).ok();
            // `git commit` is repeated until it succeeds, because the user's git may hold the index.
            while place.run("git commit p:1").code != 0 {}
        }
        is_over.store(true, Ordering::Relaxed);
        user.join().unwrap()
    });
    let history = place.git_with(&["log", "--format=%H", "--", "plans/p/step-1.md"]);
    let mut texts: Vec<String> = Vec::new();
    for commit in history.lines().rev() {
        let text = place.git_with(&["show", &format!("{commit}:plans/p/step-1.md")]);
        let n_before = texts.last().map_or(0, |it| it.matches("- at:").count());
        assert!(
            text.matches("- at:").count() >= n_before,
            "a commit of the user reverted an attempt: {text}"
        );
        texts.push(text);
    }
    assert_eq!(place.git_with(&["show", "HEAD:plans/p/step-1.md"]), place.text("plans/p/step-1.md"));
    // No commit of planwatch contains a file of the user.
    for commit in place.git_with(&["log", "--format=%H", "--grep=^plan(p)"]).lines() {
        let files = place.git_with(&["show", "--format=", "--name-only", commit]);
        assert_eq!(files, "plans/p/step-1.md\n", "{commit}");
    }
    let all = place.git_with(&["rev-list", "--count", "HEAD"]).trim().parse::<usize>().unwrap();
    assert!(all >= n_user + 2 && texts.len() > 1, "{all} {n_user}");
}
