//! Conditions that stop a run with worktrees before it begins, or its merge at the end. The user's files never change.
#![expect(clippy::disallowed_methods, reason = "tests start processes, and edit files as people do")]

use std::collections::BTreeMap;

use super::{
    APART, GOOD, branches, command, committed, count_trees, ended, is_tidy, kill, repository, run, started,
    statuses,
};
use crate::support::{Place, Ran, Tree, tree};

/// Everything that is not committed: files, staged changes and unstaged changes.
fn uncommitted(place: &Place) -> (Tree, String, String) {
    let mut files: BTreeMap<_, _> = tree(&place.work());
    // Leaves out the run's own work.
    files.retain(|path, _| !path.starts_with("plans/") && !path.starts_with("file-"));
    (files, place.git("diff --cached"), place.git("diff --binary -- :!plans"))
}

/// Uncommitted work of each kind.
fn edit(place: &Place) {
    place.write("staged", "staged\n");
    place.git("add staged");
    place.write("staged", "staged and edited\n");
    place.write("code", place.text("code").replace("line 9", "mine"));
    place.write("untracked", "mine\n");
    place.write("ignored", "mine\n");
}

#[test]
fn uncommitted_work_stays_unchanged() {
    needs_new_git!();
    let place = repository(&APART);
    edit(&place);
    let before = uncommitted(&place);
    ended(&run(&place, &format!("echo $n > file-$n; {GOOD}"), "--jobs 2"), 0);
    assert_eq!(committed(&place, "file-2"), "2\n");
    assert_eq!(uncommitted(&place), before);
    is_tidy(&place);
}

#[test]
fn a_merge_that_would_overwrite_uncommitted_work_is_not_made() {
    needs_new_git!();
    let works = [
        "echo theirs > untracked",
        "sed -i 's/^line 1$/theirs/' code",
        "echo theirs > ignored; git add -f ignored",
        "echo theirs > staged",
    ];
    for work in works {
        let place = repository(&[""]);
        edit(&place);
        place.git("config merge.autoStash true");
        let (before, head) = (uncommitted(&place), place.git("rev-parse HEAD"));
        let ran = run(&place, &format!("{work}; {GOOD}"), "--commit");
        ended(&ran, 1);
        assert_eq!((uncommitted(&place), place.git("rev-parse HEAD")), (before, head), "{work}");
        let [branch] = &branches(&place)[..] else { panic!("{work}: {:?}", branches(&place)) };
        assert!(
            branch.ends_with("/main") && ran.stdout.contains(&format!("git merge {branch}")),
            "{}",
            ran.stdout
        );
        assert_eq!(statuses(&place, 1), ["completed"]);
        // Once nothing would be overwritten, the next run merges the branch.
        place.git("reset -q");
        place.git("checkout -q -- code");
        for path in ["staged", "untracked", "ignored"] {
            std::fs::remove_file(place.file(path)).unwrap();
        }
        ended(&run(&place, "exit 1", ""), 0);
        assert_ne!(place.git("diff --name-only HEAD~1"), "", "{work}");
        is_tidy(&place);
    }
}

#[test]
fn nothing_is_merged_if_head_has_moved() {
    needs_new_git!();
    let place = repository(&[""]);
    place.write("mine", "mine\n");
    let commit = "git -C \"$AT/project\" add mine; git -C \"$AT/project\" commit -q -m Mine";
    let ran = run(&place, &format!("echo 1 > file-1; {commit}; {GOOD}"), "--commit");
    ended(&ran, 1);
    let [branch] = &branches(&place)[..] else { panic!("{:?}", branches(&place)) };
    assert!(ran.stdout.contains("HEAD has moved") && ran.stdout.contains(branch), "{}", ran.stdout);
    assert_eq!(
        (place.git("log -1 --format=%s"), place.file("file-1").exists()),
        ("Mine\n".to_owned(), false)
    );
    // The next run does not start before the work on the branch is merged.
    let ran = run(&place, GOOD, "");
    ended(&ran, 4);
    assert!(ran.stderr.contains("error[run-not-merged]") && ran.stderr.contains(branch), "{}", ran.stderr);
    place.git(&format!("merge -q --no-edit {branch}"));
    ended(&run(&place, GOOD, ""), 0);
    assert_eq!(committed(&place, "file-1"), "1\n");
    is_tidy(&place);
}

#[test]
fn another_branch_is_never_moved() {
    needs_new_git!();
    let place = repository(&[""]);
    place.git("branch other");
    let ran = run(&place, &format!("echo 1 > file-1; git -C \"$AT/project\" checkout -q other; {GOOD}"), "");
    ended(&ran, 1);
    assert_eq!(place.git("rev-parse other"), place.git("rev-parse main"));
    place.git("checkout -q main");
    ended(&run(&place, GOOD, ""), 0);
    assert_eq!(committed(&place, "file-1"), "1\n");
}

#[test]
fn a_second_run_in_the_same_tree_is_refused_while_the_first_one_runs() {
    needs_new_git!();
    let place = repository(&APART);
    let (child, _lines) = started(&place, "echo ready; sleep 600");
    let ran = run(&place, GOOD, "");
    ended(&ran, 4);
    assert!(ran.stderr.contains("error[run-in-progress]"), "{}", ran.stderr);
    kill(child);
    ended(&run(&place, GOOD, ""), 0);
}

#[track_caller]
fn refused(ran: &Ran, code: i32, word: &str) {
    ended(ran, code);
    assert!(ran.stderr.contains(&format!("error[{word}]")), "{}", ran.stderr);
}

#[test]
fn a_run_that_could_not_merge_does_not_begin() {
    needs_new_git!();
    let place = Place::new();
    place.write("plans/p/plan.md", "# P\n");
    place.write("plans/p/step-1.md", "# One\n");
    refused(&run(&place, GOOD, ""), 3, "not-a-repository");
    place.git_with(&["init", "-q", "-b", "main"]);
    refused(&run(&place, GOOD, ""), 4, "no-commits");
    let place = repository(&[""]);
    let mut command = command(&place, GOOD, "");
    refused(&Ran::of(command.env("PATH", "/nowhere").output().unwrap()), 3, "git-missing");
    place.write(
        "../bin/git",
        "#!/bin/sh\ncase \"$*\" in *version) echo git version 2.40.1;; *) exec /usr/bin/git \"$@\";; esac\n",
    );
    place.git_with(&["update-index", "--refresh"]);
    let mut chmod = std::process::Command::new("chmod");
    assert!(chmod.arg("+x").arg(place.file("../bin/git")).status().unwrap().success());
    let path = format!("{}:/usr/bin:/bin", place.file("../bin").display());
    let ran = Ran::of(command.env("PATH", path).output().unwrap());
    refused(&ran, 1, "git-too-old");
    assert!(ran.stderr.contains("2.41"), "{}", ran.stderr);
    place.git("checkout -q --detach");
    refused(&run(&place, GOOD, ""), 4, "worktrees-refused");
    refused(&run(&place, GOOD, "--dry-run"), 4, "worktrees-refused");
    place.git("checkout -q main");
    place.git("config user.useConfigOnly true");
    place.git("config --unset user.email");
    refused(&run(&place, GOOD, ""), 4, "worktrees-refused");
    assert_eq!((statuses(&place, 1), count_trees(&place)), (vec!["pending".to_owned()], 1));
    assert_eq!(place.run("run p --keep-worktrees --command true").code, 2);
}

#[test]
fn a_worktree_is_kept_if_a_worker_made_a_repository_in_it() {
    needs_new_git!();
    let make = "git init -q lib; echo work > lib/work; git -C lib add work; git -C lib -c user.name=a -c user.email=a@example.org commit -qm work";
    // The worker leaves `lib` for the run to commit, or commits it.
    for (more, code) in [("", 1), ("git add lib; git commit -qm lib;", 0)] {
        let place = repository(&[""]);
        let ran = run(&place, &format!("{make}; {more} {GOOD}"), "");
        ended(&ran, code);
        let trees = place.git("worktree list --porcelain");
        let tree = trees.lines().filter_map(|it| it.strip_prefix("worktree ")).nth(1);
        let tree = std::path::Path::new(tree.unwrap_or_else(|| panic!("{more}: {ran:?}")));
        assert_eq!(std::fs::read_to_string(tree.join("lib/work")).expect("it is there"), "work\n", "{more}");
        let text = format!("{}{}", ran.stdout, ran.stderr);
        if code == 1 {
            assert!(text.contains("`lib/` is a git repository of its own"), "{text}");
        }
    }
}

#[test]
fn a_worktree_is_kept_if_it_has_a_change_that_git_is_told_to_ignore() {
    needs_new_git!();
    let ran = |mark: &str, change: &str| {
        let place = repository(&[""]);
        place.write("settings", "theirs\n");
        place.git("add settings");
        place.git("commit -q -m settings");
        let ran = run(&place, &format!("git update-index {mark} settings; {change}; {GOOD}"), "");
        ended(&ran, 0);
        place
    };
    for mark in ["--skip-worktree", "--assume-unchanged"] {
        let place = ran(mark, "echo mine > settings");
        let trees = place.git("worktree list --porcelain");
        let tree = trees.lines().filter_map(|it| it.strip_prefix("worktree ")).nth(1);
        let tree = std::path::Path::new(tree.unwrap_or_else(|| panic!("{mark}: {trees}")));
        assert_eq!(std::fs::read_to_string(tree.join("settings")).expect("it is there"), "mine\n", "{mark}");
        // The mark stays, so that nothing commits the file later.
        assert_eq!(place.git_at(tree, 0, &["status", "--porcelain"]), "", "{mark}");
        assert_eq!(
            count_trees(&ran(mark, "touch settings")),
            1,
            "{mark}: a worktree without a change is removed"
        );
    }
    assert_eq!(count_trees(&ran("--assume-unchanged", "rm settings")), 2, "a deletion is a change");
    assert_eq!(count_trees(&ran("--skip-worktree", "rm settings")), 1, "a sparse checkout has no such file");
}
