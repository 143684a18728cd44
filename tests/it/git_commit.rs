//! `git commit` with real git: what is committed, what stays unchanged, and when nothing is committed.
#![expect(clippy::disallowed_methods, reason = "tests remove files as people do")]

use serde_json::Value;

use crate::support::{Place, Ran};

mod concurrent;

const STEP: &str = "---\nstatus: pending\n---\n# One\n";

/// A repository with a plan of two steps and a file outside of the plans, all committed.
fn repository() -> Place {
    repository_of(&[])
}

fn repository_of(options: &[&str]) -> Place {
    let place = Place::new();
    place.write("plans/p/plan.md", "# P\n");
    place.write("plans/p/step-1.md", STEP);
    place.write("plans/p/step-2.md", STEP.replace("One", "Two"));
    place.write("code", "one\n");
    place.git_with(&[&["init", "-q", "-b", "main"], options].concat());
    for (key, value) in [("user.name", "Bob"), ("user.email", "bob@example.org")] {
        place.git_with(&["config", key, value]);
    }
    place.git_with(&["add", "plans", "code"]);
    place.git_with(&["commit", "-q", "-m", "Begin"]);
    place
}

fn commit(place: &Place) -> Value {
    let ran = place.run("git commit --json");
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{}", ran.stdout);
    ran.json()
}

/// The files of the last commit.
fn last(place: &Place) -> Vec<String> {
    let files = place.git_with(&["show", "--format=", "--name-only", "--no-renames", "HEAD"]);
    files.lines().map(str::to_owned).collect()
}

fn status(place: &Place) -> String {
    place.git_with(&["status", "--porcelain", "--untracked-files=no"])
}

#[track_caller]
fn refused(ran: &Ran, why: &str) {
    assert_eq!(ran.code, 4, "{ran:?}");
    assert!(ran.stderr.contains("error[commit-refused]") && ran.stderr.contains(why), "{}", ran.stderr);
}

#[test]
fn only_the_changed_plan_file_is_committed() {
    for options in [&[][..], &["--object-format=sha256"]] {
        let place = repository_of(options);
        place.write("code", "two\n");
        place.git_with(&["add", "code"]);
        place.run("done p:1 -m Made").ok();
        let answer = commit(&place);
        assert_eq!(last(&place), ["plans/p/step-1.md"]);
        assert_eq!(answer["commit"].as_str(), Some(place.git_with(&["rev-parse", "HEAD"]).trim()));
        assert_eq!(status(&place), "M  code\n", "what was staged stays staged");
        let message = place.git_with(&["show", "-s", "--format=%an%n%B", "HEAD"]);
        let expected = "Bob\nplan(p): step 1 completed\n\nPlan: p\nStep: p:1\nStatus: pending -> completed\n\
                        Attempt: 2026-11-21T12:00:00Z\n";
        assert_eq!(message.trim_end(), expected.trim_end());
        // The user's next commit reverts nothing.
        place.git_with(&["commit", "-q", "-m", "code"]);
        assert_eq!(last(&place), ["code"]);
        assert_eq!((status(&place), commit(&place)["commit"].is_null()), (String::new(), true));
    }
}

#[test]
fn the_message_says_that_a_step_was_moved() {
    let place = repository();
    place.run("add p New").ok();
    commit(&place);
    for (line, expected) in [
        ("move p:3 --to 9", "plan(p): step 3 moved to 9\n\nPlan: p\nStep: p:3\nStep: p:9\n"),
        (
            "move p:9 --to 7 && done p:7",
            "plan(p): step 7 completed\n\nPlan: p\nStep: p:9\nStep: p:7\nStatus: pending -> completed\n",
        ),
    ] {
        line.split(" && ").for_each(|it| drop(place.run(it).ok()));
        commit(&place);
        let message = place.git_with(&["show", "-s", "--format=%B", "HEAD"]);
        assert_eq!(message.trim_end(), expected.trim_end(), "{line}");
    }
}

#[test]
fn a_decision_and_an_insight_are_not_called_plans() {
    let place = repository();
    for (lines, expected) in [
        (&["decide db Postgres"][..], "plan(decisions): decision added\n"),
        (&["insight Slow text"], "plan(insights): insight added\n"),
        (&["undo", "decide db MySQL"], "plan(decisions, insights): 2 files changed\n"),
        (
            &["done p:1", "insight Fast text"],
            "plan(p): step 1 completed\n\nPlan: p\nStep: p:1\nStatus: pending -> completed\n",
        ),
    ] {
        lines.iter().for_each(|it| place.run(it).ok_code());
        commit(&place);
        let message = place.git_with(&["show", "-s", "--format=%B", "HEAD"]);
        assert_eq!(message.trim_end(), expected.trim_end(), "{lines:?}");
    }
}

#[test]
fn a_partly_staged_file_is_not_committed() {
    let place = repository();
    place.write("plans/p/step-1.md", STEP.replace("# One", "# One\n\nMine."));
    place.git_with(&["add", "plans/p/step-1.md"]);
    place.run("done p:1").ok();
    let before = (status(&place), place.git_with(&["rev-parse", "HEAD"]));
    let answer = commit(&place);
    assert_eq!(answer["left"][0]["why"], "staged", "{answer}");
    assert_eq!((status(&place), place.git_with(&["rev-parse", "HEAD"])), before);
    // A file that is staged completely is committed.
    place.git_with(&["add", "plans/p/step-1.md"]);
    commit(&place);
    assert_eq!((last(&place), status(&place)), (vec!["plans/p/step-1.md".to_owned()], String::new()));
}

#[test]
fn a_file_that_is_removed_only_from_the_index_is_not_committed() {
    let place = repository();
    place.run("done p:1").ok();
    place.git_with(&["rm", "-q", "--cached", "plans/p/step-1.md"]);
    let before = (status(&place), place.git_with(&["rev-parse", "HEAD"]));
    let answer = commit(&place);
    assert_eq!(answer["left"].as_array().map(Vec::len), Some(1), "{answer}");
    assert_eq!(answer["left"][0]["why"], "staged", "{answer}");
    assert_eq!((status(&place), place.git_with(&["rev-parse", "HEAD"])), before);
}

#[test]
fn plans_that_git_ignores_are_named_if_nothing_else_is_committed() {
    let place = repository();
    let ignored = |line: &str| {
        let left = place.run(line).json()["left"].clone();
        let files = left.as_array().unwrap().iter();
        files.map(|it| format!("{} {}", it["path"], it["why"]).replace('"', "")).collect::<Vec<_>>()
    };
    place.write(".gitignore", "plans/new/\nplans/**/*.tmp\n");
    place.write("plans/other.tmp", "not by planwatch");
    assert!(ignored("git commit --json").is_empty());
    place.run("new New One").ok_code();
    assert_eq!(ignored("git commit --json"), ["plans/new ignored"]);
    assert!(ignored("git commit p --json").is_empty());
    let named = place.run("git commit new:1");
    assert_eq!(named.code, 4, "{named:?}");
    assert!(named.stderr.contains("`plans/new` is ignored by git"), "{}", named.stderr);
    place.run("done p:1").ok();
    assert!(ignored("git commit --json").is_empty());
    assert_eq!(last(&place), ["plans/p/step-1.md"]);
    place.write(".gitignore", "*\n");
    place.git_with(&["rm", "-rq", "--cached", "plans"]);
    place.git_with(&["commit", "-qm", "Ignore the plans"]);
    let said = place.run("git commit");
    assert_eq!(said.stdout, "Nothing to commit.\n");
    assert!(said.stderr.contains("not committed: `plans` is ignored by git"), "{}", said.stderr);
}

#[test]
fn edits_of_other_programs_are_not_committed() {
    let place = repository();
    place.run("done p:1").ok();
    let own = place.text("plans/p/step-1.md");
    place.write("plans/p/step-1.md", format!("{own}More.\n"));
    place.write("plans/p/step-2.md", STEP.replace("pending", "completed"));
    let answer = commit(&place);
    let left: Vec<_> = answer["left"].as_array().unwrap().iter().map(|it| &it["why"]).collect();
    assert_eq!((answer["commit"].is_null(), left), (true, vec![&Value::from("edited"); 2]));
    let named = place.run("git commit p:1");
    assert_eq!(named.code, 4, "{named:?}");
    assert!(named.stderr.contains("error[file-changed]"), "{}", named.stderr);
    place.write("plans/p/step-1.md", own);
    commit(&place);
    assert_eq!(last(&place), ["plans/p/step-1.md"]);
}

#[test]
fn new_removed_and_archived_files_are_committed() {
    let place = repository();
    place.run("add p Three").ok();
    assert_eq!(place.run("remove p:2").code, 0);
    commit(&place);
    let files = last(&place);
    assert!(files.contains(&"plans/p/step-3.md".to_owned()), "{files:?}");
    assert!(files.contains(&"plans/p/step-2.md".to_owned()), "{files:?}");
    place.run("done p:1 --force").ok();
    place.run("archive p").ok();
    let answer = commit(&place);
    assert_eq!(answer["left"], serde_json::json!([]), "{answer}");
    assert_eq!(place.git_with(&["status", "--porcelain"]), "");
    let tree =
        place.git_with(&["ls-tree", "-r", "--name-only", "HEAD", "plans/p", "plans/_archive/p/plan.md"]);
    assert_eq!(tree, "plans/_archive/p/plan.md\n");
}

#[test]
fn a_plan_of_a_branch_without_commits_is_committed() {
    let place = Place::new();
    place.write("plans/.keep", "");
    place.git_with(&["init", "-q", "-b", "main"]);
    place.git_with(&["config", "user.name", "Bob"]);
    place.git_with(&["config", "user.email", "bob@example.org"]);
    place.run("new P One").ok();
    let answer = commit(&place);
    assert_eq!(answer["files"].as_array().map(Vec::len), Some(2), "{answer}");
    assert_eq!(place.git_with(&["rev-list", "--count", "HEAD"]), "1\n");
    assert_eq!(place.git_with(&["diff", "--cached", "HEAD", "--name-only"]), "");
}

#[test]
fn nothing_is_committed_during_an_operation() {
    let begin: [(&[&[&str]], &str); 5] = [
        (&[&["merge", "-q", "--no-ff", "--no-commit", "side"]], "merge"),
        (&[&["cherry-pick", "side"]], "cherry-pick"),
        (&[&["revert", "--no-edit", "side"]], "revert"),
        (&[&["rebase", "-q", "side"]], "rebase"),
        (&[&["bisect", "start"]], "bisect"),
    ];
    for (commands, what) in begin {
        let place = repository();
        place.git_with(&["checkout", "-q", "-b", "side"]);
        place.write("code", "theirs\n");
        place.git_with(&["commit", "-q", "-am", "theirs"]);
        place.git_with(&["checkout", "-q", "main"]);
        place.write("code", "ours\n");
        place.git_with(&["commit", "-q", "-am", "ours"]);
        for words in commands {
            // Most of these commands stop at the conflict, as intended.
            drop(place.git_command().args(*words).output().unwrap());
        }
        place.run("done p:1").ok();
        let before = (place.git_with(&["rev-parse", "HEAD"]), status(&place));
        refused(&place.run("git commit"), what);
        assert_eq!((place.git_with(&["rev-parse", "HEAD"]), status(&place)), before, "{what}");
    }
}

#[test]
fn nothing_is_committed_on_a_detached_head_in_jj_or_with_a_locked_index() {
    let place = repository();
    place.run("done p:1").ok();
    place.git_with(&["checkout", "-q", "--detach"]);
    refused(&place.run("git commit"), "HEAD is detached");
    place.git_with(&["checkout", "-q", "main"]);
    place.write(".jj/x", "");
    refused(&place.run("git commit"), "jj");
    std::fs::remove_dir_all(place.file(".jj")).unwrap();
    place.write(".git/index.lock", "");
    let before = place.git_with(&["rev-parse", "HEAD"]);
    refused(&place.run("git commit"), "more than 3 seconds");
    assert_eq!(place.git_with(&["rev-parse", "HEAD"]), before);
    std::fs::remove_file(place.file(".git/index.lock")).unwrap();
    commit(&place);
}

#[test]
fn a_signature_that_fails_leaves_everything_uncommitted() {
    let place = repository();
    place.git_with(&["config", "commit.gpgsign", "true"]);
    place.git_with(&["config", "gpg.program", "/bin/false"]);
    place.run("done p:1").ok();
    let before = (place.git_with(&["rev-parse", "HEAD"]), status(&place));
    let ran = place.run("git commit");
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.stderr.contains("error[git-failed]"), "{}", ran.stderr);
    assert_eq!((place.git_with(&["rev-parse", "HEAD"]), status(&place)), before);
}

/// A `git commit` of the user reads the index before planwatch writes it. It then writes the old entries back, and fails
/// because the branch has moved.
#[test]
fn an_index_that_another_commit_writes_back_does_not_revert_the_committed_files() {
    let place = repository();
    let program = "#!/bin/sh\n\
        for word; do test \"$word\" = update-index && test -z \"$GIT_INDEX_FILE\" && cp .git/index .git/before; done\n\
        PATH=/usr/bin:/bin git \"$@\"; code=$?\n\
        for word; do test \"$word\" = update-ref && cp .git/before .git/index; done\n\
        exit $code\n";
    place.write("slow/git", program);
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(place.file("slow/git"), mode).unwrap();
    place.run("done p:1").ok();
    let mut command = place.command();
    command.args(["git", "commit"]).env("PATH", format!("{}:/usr/bin:/bin", place.file("slow").display()));
    let ran = Ran::of(command.output().unwrap());
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(place.file(".git/before").exists());
    assert_eq!(status(&place), "", "the index has the committed file");
}

#[test]
fn a_commit_is_signed_as_git_is_configured() {
    let place = repository();
    // The program prints a signature on standard output and the status that git expects on stderr, as gpg does.
    let program = "#!/bin/sh\ncat > /dev/null\necho '[GNUPG:] SIG_CREATED ' >&2\n\
                   printf -- '-----BEGIN PGP SIGNATURE-----\\n\\nmade\\n-----END PGP SIGNATURE-----\\n'\n";
    place.write("sign", program);
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(place.file("sign"), mode).unwrap();
    place.git_with(&["config", "gpg.program", &place.file("sign").to_string_lossy()]);
    for is_signed in [false, true] {
        place.git_with(&["config", "commit.gpgsign", if is_signed { "true" } else { "false" }]);
        place.run(if is_signed { "done p:2" } else { "done p:1" }).ok();
        commit(&place);
        let object = place.git_with(&["cat-file", "commit", "HEAD"]);
        assert_eq!(object.contains("gpgsig -----BEGIN PGP SIGNATURE-----"), is_signed, "{object}");
    }
}

#[test]
fn hooks_do_not_run_and_line_endings_are_filtered() {
    let place = repository();
    place.write(".gitattributes", "*.md text eol=crlf\n");
    place.write("plans/p/step-1.md", STEP.replace('\n', "\r\n"));
    place.git_with(&["add", "-A", ".gitattributes", "plans"]);
    place.git_with(&["commit", "-q", "-m", "attributes"]);
    for hook in ["pre-commit", "commit-msg", "post-commit", "reference-transaction", "post-index-change"] {
        let path = format!(".git/hooks/{hook}");
        place.write(&path, "#!/bin/sh\ntouch hook-ran\nexit 1\n");
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(place.file(&path), mode).unwrap();
    }
    place.run("done p:1").ok();
    commit(&place);
    assert!(!place.file("hook-ran").exists());
    let stored = place.git_with(&["cat-file", "blob", "HEAD:plans/p/step-1.md"]);
    assert!(stored.contains("status: completed\n") && !stored.contains('\r'), "{stored:?}");
    assert!(place.text("plans/p/step-1.md").contains("status: completed\r\n"));
    assert_eq!(status(&place), "");
}

#[test]
fn an_intent_to_add_becomes_the_committed_file() {
    let place = repository();
    place.run("add p Three").ok();
    place.git_with(&["add", "--intent-to-add", "plans/p/step-3.md"]);
    commit(&place);
    place.write("code", "two\n");
    place.git_with(&["commit", "-q", "-am", "code"]);
    assert_eq!(last(&place), ["code"], "the user's commit does not revert the file");
}

#[test]
fn a_repository_inside_the_plans_keeps_its_files() {
    let place = repository();
    place.write("plans/q/plan.md", "# Q\n");
    place.write("plans/q/step-1.md", STEP);
    place.git_with(&["-C", "plans/q", "init", "-q"]);
    place.run("done q:1").ok();
    place.run("done p:1").ok();
    let answer = commit(&place);
    assert_eq!(last(&place), ["plans/p/step-1.md"]);
    assert_eq!(answer["left"], serde_json::json!([{"path": "plans/q", "why": "submodule"}]));
}

#[test]
fn plans_in_a_submodule_are_committed_there() {
    let place = repository();
    place.git_with(&["init", "-q", "-b", "main", "sub"]);
    place.git_with(&["-C", "sub", "config", "user.name", "Bob"]);
    place.git_with(&["-C", "sub", "config", "user.email", "bob@example.org"]);
    place.write("sub/plans/s/plan.md", "# S\n");
    place.write("sub/plans/s/step-1.md", STEP);
    place.git_with(&["-C", "sub", "add", "-A"]);
    place.git_with(&["-C", "sub", "commit", "-q", "-m", "Begin"]);
    place.git_with(&["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", "./sub", "sub"]);
    place.git_with(&["commit", "-q", "-m", "sub"]);
    place.run("-C sub done s:1").ok();
    let outer = place.git_with(&["rev-parse", "HEAD"]);
    place.run("-C sub git commit -q").ok();
    assert_eq!(place.git_with(&["-C", "sub", "rev-list", "--count", "HEAD"]), "2\n");
    assert_eq!(place.git_with(&["rev-parse", "HEAD"]), outer);
}

#[test]
fn an_undo_after_the_commit_names_it_and_rewrites_nothing() {
    let place = repository();
    place.run("done p:1").ok();
    let head = commit(&place)["commit"].clone();
    let undone = place.run("undo --json").json();
    assert_eq!(undone["committed"], head);
    assert_eq!(place.text("plans/p/step-1.md"), STEP);
    assert_eq!(place.git_with(&["rev-parse", "HEAD"]).trim(), head.as_str().unwrap());
    let again = commit(&place);
    assert!(again["message"].as_str().unwrap().starts_with("plan(p): step 1 pending\n"), "{again}");
    assert_eq!(place.git_with(&["diff", "HEAD~2", "--name-only", "--", "plans"]), "");
    // The undo of a change that is not committed names no commit.
    place.run("done p:2").ok();
    assert!(place.run("undo --json").json().get("committed").is_none());
    // Nor does that of a change that another change took back before the commit, so that the file is as in an older commit.
    place.git("commit -q --amend --no-edit");
    place.run("set p:1 priority high").ok();
    place.run("set p:1 priority --unset").ok();
    assert_eq!(place.git_with(&["status", "--porcelain", "--", "plans"]), "");
    assert!(place.run("undo --json").json().get("committed").is_none());
}

#[test]
fn variables_of_a_hook_select_no_other_repository() {
    let place = repository();
    place.git_with(&["init", "-q", "other"]);
    place.run("done p:1").ok();
    let mut command = place.command();
    command.args(["git", "commit"]);
    for (name, path) in
        [("GIT_DIR", "other/.git"), ("GIT_INDEX_FILE", "other/index"), ("GIT_WORK_TREE", "other")]
    {
        command.env(name, place.file(path));
    }
    assert_eq!(Ran::of(command.output().unwrap()).code, 0);
    assert_eq!(last(&place), ["plans/p/step-1.md"]);
    assert!(!place.file("other/index").exists());
}

#[test]
fn without_git_or_with_an_old_git_only_git_commit_is_refused() {
    let place = repository();
    place.run("done p:1").ok();
    place.write("bin/git", "#!/bin/sh\necho git version 2.29.1\n");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(place.file("bin/git"), mode).unwrap();
    for (path, code, error) in [("bin", 1, "git-too-old"), ("none", 3, "git-missing")] {
        let run = |words: &[&str]| {
            let path = place.file(path);
            Ran::of(place.command().env("PATH", path).args(words).output().unwrap())
        };
        let ran = run(&["git", "commit"]);
        assert_eq!((ran.code, ran.stderr.contains(error)), (code, true), "{ran:?}");
        assert_eq!(run(&["undo", "--dry-run"]).code, 0);
        assert_eq!(run(&["add", "p", "Three", "--dry-run"]).code, 0);
    }
}

#[test]
fn a_run_commits_each_step_and_continues_if_a_commit_is_refused() {
    let place = repository();
    let binary = env!("CARGO_BIN_EXE_planwatch");
    place.write("work.sh", format!("{binary} -q done \"$PLANWATCH_STEP\" -m made\n"));
    place.git_with(&["add", "work.sh"]);
    place.git_with(&["commit", "-q", "-m", "work"]);
    let run = |words: &[&str]| place.run_with(&[&["run", "p", "--command", "sh work.sh"], words].concat());
    assert_eq!(run(&["--commit"]).code, 0);
    let subjects = place.git_with(&["log", "--format=%s", "-2"]);
    assert_eq!(subjects, "plan(p): step 2 completed\nplan(p): step 1 completed\n");
    assert_eq!(last(&place), ["plans/p/step-2.md"]);
    place.run("reopen p:1").ok();
    place.git_with(&["checkout", "-q", "--detach"]);
    let ran = run(&["--commit"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(format!("{}{}", ran.stdout, ran.stderr).contains("`p:1` is not committed"), "{ran:?}");
    assert_eq!(place.git_with(&["log", "--format=%s", "-2"]), subjects);
}
