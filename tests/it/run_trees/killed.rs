//! Workers and runs that are killed, and what the next run finds.
#![expect(clippy::disallowed_methods, reason = "tests start processes, and edit files as people do")]

use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use super::{
    GOOD, branches, command, committed, count_trees, ended, is_tidy, kill, new_git, outcomes, repository,
    run, started, statuses, trust,
};
use crate::support::Place;

fn only_tree(place: &Place) -> PathBuf {
    let list = place.git("worktree list --porcelain");
    let mut trees = list.lines().filter_map(|it| it.strip_prefix("worktree ")).skip(1);
    let tree = trees.next().expect("there is one").into();
    assert_eq!(trees.next(), None);
    tree
}

#[test]
fn the_next_attempt_finds_what_a_killed_worker_left() {
    needs_new_git!();
    let place = repository(&[""]);
    let script =
        format!("if [ -f half ]; then cat half > whole; {GOOD}; else echo half > half; kill -9 $$; fi");
    ended(&run(&place, &script, ""), 0);
    assert_eq!(outcomes(&place, "1"), ["no outcome reported", "completed"]);
    assert_eq!(
        (committed(&place, "half"), committed(&place, "whole")),
        ("half\n".to_owned(), "half\n".to_owned())
    );
    is_tidy(&place);
}

#[test]
fn the_next_run_continues_in_the_worktrees_of_a_killed_one() {
    needs_new_git!();
    let place = repository(&["touches: [a]", "depends: [1]"]);
    let script =
        format!("echo $n > file-$n; [ $n = 1 ] && {{ {GOOD}; exit; }}; git add -A; echo ready; sleep 600");
    let (child, _lines) = started(&place, &script);
    kill(child);
    // Step 1 is merged into the run's branch only.
    assert!(!place.file("file-1").exists());
    assert_eq!(branches(&place).len(), 2);
    // The lock of a killed git does not stop the next attempt.
    let tree = only_tree(&place);
    let git_dir = place.git_with(&[
        "-C".as_ref(),
        tree.as_os_str(),
        "rev-parse".as_ref(),
        "--absolute-git-dir".as_ref(),
    ]);
    std::fs::write(PathBuf::from(git_dir.trim()).join("index.lock"), "").unwrap();
    let script = format!("[ -f file-1 ] && [ -f file-2 ] || exit 8; git add -A || exit 7; {GOOD}");
    ended(&run(&place, &script, ""), 0);
    assert_eq!(
        (committed(&place, "file-1"), committed(&place, "file-2")),
        ("1\n".to_owned(), "2\n".to_owned())
    );
    assert_eq!(outcomes(&place, "2"), ["interrupted", "completed"]);
    is_tidy(&place);
}

#[test]
fn work_that_was_reported_before_the_run_was_killed_is_merged_by_the_next() {
    needs_new_git!();
    for header in ["", "verify: ['test -f work']"] {
        let place = repository(&[header]);
        if !header.is_empty() {
            trust(&place, "p:1");
        }
        let (child, _lines) = started(&place, &format!("echo 1 > work; {GOOD}; echo ready; sleep 600"));
        kill(child);
        assert_eq!(count_trees(&place), 2);
        let ran = run(&place, "exit 1", "");
        ended(&ran, 0);
        assert_eq!(
            (committed(&place, "work"), outcomes(&place, "1")),
            ("1\n".to_owned(), vec!["completed".to_owned()]),
            "{header}"
        );
        is_tidy(&place);
    }
}

#[test]
fn reported_work_that_conflicts_blocks_its_step() {
    needs_new_git!();
    let place = repository(&[""]);
    let script = format!("sed -i 's/^line 5$/worker/' code; {GOOD}; echo ready; sleep 600");
    let (child, _lines) = started(&place, &script);
    kill(child);
    place.write("code", "line 5 of a person\n");
    place.git("commit -q -am Person");
    let ran = run(&place, "exit 1", "");
    ended(&ran, 1);
    assert!(ran.stdout.contains("`p:1` is not merged"), "{}", ran.stdout);
    assert_eq!((statuses(&place, 1), branches(&place).len()), (vec!["blocked".to_owned()], 1));
    assert_eq!(committed(&place, "code"), "line 5 of a person\n");
}

#[test]
fn an_incomplete_worktree_is_created_again() {
    needs_new_git!();
    let place = repository(&[""]);
    let (child, _lines) = started(&place, "echo ready; sleep 600");
    kill(child);
    // The state that git leaves when it is killed before it has written all files.
    let tree = only_tree(&place);
    std::fs::remove_file(tree.join("code")).unwrap();
    place.git_with(&[
        "worktree".as_ref(),
        "lock".as_ref(),
        "--reason".as_ref(),
        "initializing".as_ref(),
        tree.as_os_str(),
    ]);
    ended(&run(&place, &format!("echo 1 > work; {GOOD}"), ""), 0);
    assert!(committed(&place, "code").starts_with("line 1\n") && committed(&place, "work") == "1\n");
    is_tidy(&place);
}

#[test]
fn a_worktree_whose_directory_is_missing_is_created_again_from_its_branch() {
    needs_new_git!();
    let place = repository(&[""]);
    let (child, _lines) =
        started(&place, "echo 1 > work; git add -A; git commit -q -m work; echo ready; sleep 600");
    kill(child);
    std::fs::remove_dir_all(only_tree(&place)).unwrap();
    ended(&run(&place, &format!("[ -f work ] || exit 8; {GOOD}"), ""), 0);
    assert_eq!(committed(&place, "work"), "1\n");
    is_tidy(&place);
}

#[test]
fn a_worker_that_stops_in_the_middle_of_a_merge_is_not_merged() {
    needs_new_git!();
    let place = repository(&[""]);
    let script = format!(
        "git checkout -q -b side; echo side > code; git commit -q -am side; git checkout -q -; echo main > code; \
         git commit -q -am main; git merge -q side; {GOOD}"
    );
    let ran = run(&place, &script, "");
    ended(&ran, 1);
    assert!(ran.stdout.contains("git is in the middle of a merge"), "{}", ran.stdout);
    assert_eq!(statuses(&place, 1), ["blocked"]);
    assert_eq!(place.text("code").lines().count(), 10);
}

#[test]
fn ctrl_c_does_not_stop_git_in_the_middle_of_the_merge() {
    needs_new_git!();
    let place = repository(&[""]);
    // A git that is slow to merge.
    let real = new_git().expect("it was found").join("git");
    let slow =
        "case \"$*\" in *--ff-only*) touch $AT/merging; while [ ! -f $AT/go ]; do sleep 0.01; done;; esac";
    place.write("../bin/git", format!("#!/bin/sh\n{slow}\nexec {} \"$@\"\n", real.display()));
    assert!(Command::new("chmod").arg("+x").arg(place.file("../bin/git")).status().unwrap().success());
    let mut command = command(&place, &format!("echo 1 > work; {GOOD}"), "");
    command.env("PATH", format!("{}:/usr/bin:/bin", place.file("../bin").display())).process_group(0);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    while !place.file("../merging").exists() {
        std::thread::yield_now();
    }
    // Like a terminal, sends the signal to all processes of the group.
    let group = format!("-{}", child.id());
    assert!(Command::new("kill").args(["-s", "INT", "--", &group]).status().unwrap().success());
    place.write("../go", "");
    child.wait_with_output().unwrap();
    assert_eq!((committed(&place, "work"), place.text("work")), ("1\n".to_owned(), "1\n".to_owned()));
    is_tidy(&place);
}

#[test]
fn a_worker_may_change_branches() {
    needs_new_git!();
    let place = repository(&["touches: [a]", "touches: [b]"]);
    let script = format!(
        "[ $n = 1 ] && git checkout -q -b mine || git checkout -q --detach; echo $n > file-$n; git add -A; git commit -q -m $n; {GOOD}"
    );
    ended(&run(&place, &script, ""), 0);
    assert_eq!(
        (committed(&place, "file-1"), committed(&place, "file-2")),
        ("1\n".to_owned(), "2\n".to_owned())
    );
}
