//! `run --worktrees` with real git: what is merged, what is kept, and what is never touched.
#![expect(clippy::disallowed_methods, reason = "tests start processes, and edit files as people do")]

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::run::{outcomes, step};
use crate::support::{Lines, Place, Ran, lines_of};

/// Skips a test if every git on the PATH is too old for `--worktrees`.
macro_rules! needs_new_git {
    () => {
        if $crate::run_trees::new_git().is_none() {
            eprintln!("skipped: no git from 2.41 on is on the PATH");
            return;
        }
    };
}

mod killed;
mod refused;

/// A directory on the machine's own PATH with a git that can merge without a working tree.
fn new_git() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).find(|it| {
        let version = Command::new(it.join("git")).arg("version").output().ok();
        let version = version.and_then(|it| String::from_utf8(it.stdout).ok()).unwrap_or_default();
        let mut numbers =
            version.trim_start_matches("git version ").split('.').map_while(|it| it.parse::<u32>().ok());
        (numbers.next(), numbers.next()) >= (Some(2), Some(41))
    })
}

/// Reports that the step is completed.
const GOOD: &str = "planwatch -q done \"$PLANWATCH_STEP\" -m 'did it' || exit 9";

/// Waits until both steps have begun, so that each tree is made before anything is merged.
const MEET: &str =
    "touch $AT/begun-$n; while [ ! -f $AT/begun-1 ] || [ ! -f $AT/begun-2 ]; do sleep 0.01; done";

/// A repository with a plan, and a file of ten lines, all committed. The agent is outside of it.
fn repository(headers: &[&str]) -> Place {
    let place = Place::new();
    place.write("plans/p/plan.md", "# P\n");
    for (at, header) in headers.iter().enumerate() {
        let n = at + 1;
        place.write(
            &format!("plans/p/step-{n}.md"),
            format!("---\nstatus: pending\n{header}\n---\n# Step {n}\n"),
        );
    }
    place.write("code", (1..=10).map(|it| format!("line {it}\n")).collect::<String>());
    place.write(".gitignore", "ignored\n");
    begin_git(&place);
    place
}

fn begin_git(place: &Place) {
    place.git_with(&["init", "-q", "-b", "main"]);
    for (key, value) in [("user.name", "Bob"), ("user.email", "bob@example.org")] {
        place.git_with(&["config", key, value]);
    }
    place.git_with(&["add", "-A"]);
    place.git_with(&["commit", "-q", "-m", "Begin"]);
}

/// Headers of two steps with separate areas. The steps can run at the same time, even if their agents change the same files.
const APART: [&str; 2] = ["touches: [a]", "touches: [b]"];

fn command(place: &Place, script: &str, more: &str) -> Command {
    let head = "n=${PLANWATCH_STEP#*:}\n";
    place.write("../agent.sh", format!("{head}{script}\n"));
    let mut command = place.command();
    command
        .args(["run", "p", "--worktrees", "--command", "sh \"$AT/agent.sh\""])
        .args(more.split_whitespace());
    set_environment(&mut command, place);
    command
}

fn set_environment(command: &mut Command, place: &Place) {
    let git = new_git().unwrap_or_default();
    command.env("AT", place.top()).env("PATH", format!("{}:/usr/bin:/bin", git.display()));
}

fn run(place: &Place, script: &str, more: &str) -> Ran {
    Ran::of(command(place, script, more).output().expect("the binary starts"))
}

/// Starts a run and waits until its agent prints `ready`.
fn started(place: &Place, script: &str) -> (Child, Lines) {
    let mut command = command(place, script, "");
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("the binary starts");
    let mut lines = lines_of(child.stdout.take().expect("it is piped"));
    while lines.next() != "ready" {}
    (child, lines)
}

fn kill(mut child: Child) {
    child.kill().expect("it runs");
    child.wait().expect("it ends");
}

fn statuses(place: &Place, n: usize) -> Vec<String> {
    let of = |n| step(place, &format!("{n}"))["status"].as_str().expect("it has one").to_owned();
    (1..=n).map(of).collect()
}

/// The branches of runs.
fn branches(place: &Place) -> Vec<String> {
    let text = place.git("for-each-ref --format=%(refname:short) refs/heads/planwatch-run/");
    text.lines().map(str::to_owned).collect()
}

fn count_trees(place: &Place) -> usize {
    place.git("worktree list").lines().count()
}

/// A file as it is in the checked-out branch.
fn committed(place: &Place, path: &str) -> String {
    place.git(&format!("show HEAD:{path}"))
}

#[track_caller]
fn ended(ran: &Ran, code: i32) {
    assert_eq!(ran.code, code, "{}{}", ran.stdout, ran.stderr);
}

#[track_caller]
fn is_tidy(place: &Place) {
    assert_eq!((branches(place), count_trees(place)), (Vec::new(), 1));
}

fn trust(place: &Place, name: &str) {
    let list = place.run("trust --json").json();
    let items = list["items"].as_array().expect("there is a list").clone();
    let item = items.into_iter().find(|it| it["name"] == name).expect("it needs trust");
    let hash = item["hash"].as_str().expect("it has one");
    place.run(&format!("trust {name} --trust-hash {hash}")).ok();
}

#[test]
fn two_workers_change_different_files_in_separate_worktrees() {
    needs_new_git!();
    let place = repository(&APART);
    place.write("mine", "uncommitted\n");
    // One worker commits, the other only writes; neither sees uncommitted files of the user.
    let script = format!(
        "{MEET}; [ -f mine ] && exit 8; pwd > $AT/cwd-$n; echo $n > file-$n; \
         [ $n = 1 ] && git add -A && git commit -q -m 'By the worker'; {GOOD}"
    );
    let ran = run(&place, &script, "--jobs 2 --timeout 50s");
    ended(&ran, 0);
    assert_eq!(
        (committed(&place, "file-1"), committed(&place, "file-2")),
        ("1\n".to_owned(), "2\n".to_owned())
    );
    assert_eq!((place.text("file-1"), place.text("mine")), ("1\n".to_owned(), "uncommitted\n".to_owned()));
    assert_ne!(place.text("../cwd-1"), place.text("../cwd-2"));
    let log = place.git("log --format=%s");
    assert!(log.contains("By the worker\n") && log.contains("Step 2\n"), "{log}");
    // The plan files are changed only in the working tree of the run.
    assert_eq!(place.git("status --porcelain"), " M plans/p/step-1.md\n M plans/p/step-2.md\n?? mine\n");
    assert_eq!(statuses(&place, 2), ["completed"; 2]);
    is_tidy(&place);
}

#[test]
fn a_step_gets_the_work_of_the_steps_that_it_waits_for() {
    needs_new_git!();
    let place = repository(&["touches: [a]", "depends: [1]"]);
    let script = format!("[ $n = 2 ] && cat one > two; echo 1 > one; {GOOD}");
    ended(&run(&place, &script, ""), 0);
    assert_eq!(committed(&place, "two"), "1\n");
}

#[test]
fn two_workers_change_one_file_at_different_places() {
    needs_new_git!();
    let place = repository(&APART);
    let script =
        format!("{MEET}; [ $n = 1 ] && line=1 || line=9; sed -i \"s/^line $line$/by $n/\" code; {GOOD}");
    ended(&run(&place, &script, "--jobs 2 --timeout 50s"), 0);
    let code = committed(&place, "code");
    assert!(code.starts_with("by 1\nline 2\n") && code.ends_with("by 2\nline 10\n"), "{code}");
    assert_eq!(place.text("code"), code);
    is_tidy(&place);
}

#[test]
fn attributes_are_read_from_the_commits_and_not_from_the_checked_out_files() {
    needs_new_git!();
    let place = repository(&APART);
    place.write(".gitattributes", "changes merge=union\n");
    place.write("changes", "first\n");
    place.git("add -A");
    place.git("commit -q -m Attributes");
    std::fs::remove_file(place.file(".gitattributes")).unwrap();
    ended(&run(&place, &format!("{MEET}; echo by $n >> changes; {GOOD}"), "--jobs 2 --timeout 50s"), 0);
    let changes = committed(&place, "changes");
    assert!(
        changes.contains("by 1\n") && changes.contains("by 2\n") && changes.lines().count() == 3,
        "{changes}"
    );
    assert_eq!(place.git("status --porcelain .gitattributes"), " D .gitattributes\n");
    is_tidy(&place);
}

#[test]
fn a_conflict_blocks_its_step_and_no_other_and_is_resolved_by_hand() {
    needs_new_git!();
    let place = repository(&["touches: [a]", "touches: [b]", "touches: [c]\ndepends: []"]);
    let script =
        format!("{MEET}; [ $n != 3 ] && sed -i \"s/^line 5$/by $n/\" code; echo $n > file-$n; {GOOD}");
    let ran = run(&place, &script, "--jobs 2 --timeout 50s");
    ended(&ran, 1);
    let all = statuses(&place, 3);
    let blocked = if all[0] == "blocked" { "1" } else { "2" };
    let other = if blocked == "1" { "2" } else { "1" };
    assert_eq!((all.iter().filter(|it| *it == "completed").count(), all[2].as_str()), (2, "completed"));
    assert_eq!(outcomes(&place, blocked), ["completed", "merge conflict"]);
    let [branch] = &branches(&place)[..] else { panic!("{:?}", branches(&place)) };
    assert!(branch.ends_with(&format!("/p/{blocked}")) && ran.stdout.contains(branch), "{}", ran.stdout);
    assert!(ran.stdout.contains("conflict with those of other steps in code"), "{}", ran.stdout);
    assert_eq!(
        (committed(&place, "file-3"), committed(&place, &format!("file-{other}"))),
        ("3\n".to_owned(), format!("{other}\n"))
    );
    assert!(committed(&place, "code").contains(&format!("by {other}\n")));
    // A person merges in the worktree and completes the step; the next run merges it.
    let list = place.git("worktree list --porcelain");
    let tree = list.lines().filter_map(|it| it.strip_prefix("worktree ")).nth(1).expect("it is kept");
    let tree = Path::new(tree);
    assert_eq!(
        std::fs::read_to_string(tree.join(format!("file-{blocked}"))).unwrap(),
        format!("{blocked}\n")
    );
    drop(place.git_command().current_dir(tree).args(["merge", "-q", "main"]).output().unwrap());
    std::fs::write(tree.join("code"), "both\n").unwrap();
    place.git_at(tree, 1, &["add", "-A"]);
    place.git_at(tree, 1, &["commit", "-q", "-m", "Both"]);
    assert_eq!(place.run(&format!("reopen p:{blocked}")).code, 0);
    assert_eq!(place.run(&format!("done p:{blocked}")).code, 0);
    ended(&run(&place, "exit 1", ""), 0);
    assert_eq!(
        (committed(&place, "code"), committed(&place, &format!("file-{blocked}"))),
        ("both\n".to_owned(), format!("{blocked}\n"))
    );
    is_tidy(&place);
}

#[test]
fn verification_runs_in_the_worktree_of_the_step() {
    needs_new_git!();
    let place = repository(&["verify: ['test -f made', 'test ! -f mine']"]);
    place.write("mine", "");
    trust(&place, "p:1");
    let script = format!("[ -f $AT/again ] && touch made; touch $AT/again; {GOOD}");
    let ran = run(&place, &script, "");
    ended(&ran, 0);
    assert_eq!(outcomes(&place, "1"), ["completed", "verify failed", "completed"]);
    assert_eq!(committed(&place, "made"), "");
    is_tidy(&place);
    // Work that never passes verification is not merged, and its worktree is kept.
    let place = repository(&["verify: ['test -f made']"]);
    trust(&place, "p:1");
    let ran = run(&place, &format!("echo 1 > work; {GOOD}"), "--max-attempts 1");
    ended(&ran, 1);
    assert!(!place.file("work").exists());
    assert_eq!((branches(&place).len(), count_trees(&place)), (1, 2));
}

#[test]
fn trust_must_cover_verify_as_it_is_in_the_worktree() {
    needs_new_git!();
    let place = repository(&["verify: ['sh ./check.sh']"]);
    place.write("check.sh", "exit 0\n");
    place.git("add check.sh");
    place.git("commit -q -m Check");
    place.write("check.sh", "exit 0 # other\n");
    trust(&place, "p:1");
    let ran = run(&place, GOOD, "");
    ended(&ran, 5);
    assert!(ran.stderr.contains("error[not-trusted]"), "{}", ran.stderr);
    assert_eq!((statuses(&place, 1), outcomes(&place, "1").len()), (vec!["pending".to_owned()], 0));
    place.git("add check.sh");
    place.git("commit -q -m Other");
    ended(&run(&place, GOOD, ""), 0);
}

#[test]
fn changes_of_plan_files_in_a_worktree_are_not_merged() {
    needs_new_git!();
    let place = repository(&["touches: [a]", "touches: [b]"]);
    let script = format!(
        "echo $n > file-$n; echo wrong >> plans/p/plan.md; echo new > plans/p/new.md; rm plans/p/step-2.md; \
         [ $n = 1 ] && git add -A && git commit -q -m all; {GOOD}"
    );
    let ran = run(&place, &script, "");
    ended(&ran, 0);
    assert!(
        ran.stderr.contains("changes of plan files") && ran.stderr.contains("plans/p/new.md"),
        "{}",
        ran.stderr
    );
    assert_eq!(committed(&place, "file-1"), "1\n");
    assert_eq!(
        (committed(&place, "plans/p/plan.md"), place.text("plans/p/plan.md")),
        ("# P\n".to_owned(), "# P\n".to_owned())
    );
    assert!(!place.file("plans/p/new.md").exists() && place.file("plans/p/step-2.md").exists());
    // Nothing is lost: the worker's own commit is in the history.
    assert!(place.git("log -p --format= -- plans/p/new.md").contains("+new"));
    is_tidy(&place);
}

#[test]
fn plan_files_are_committed_once_at_the_end() {
    needs_new_git!();
    let place = repository(&APART);
    ended(&run(&place, &format!("echo $n > file-$n; {GOOD}"), "--commit"), 0);
    assert_eq!(place.git("status --porcelain"), "");
    let last = place.git("show --format= --name-only HEAD");
    assert_eq!(last, "plans/p/step-1.md\nplans/p/step-2.md\n");
    assert_eq!(place.git("log --format=%s -- plans/p/step-1.md").lines().count(), 2);
    is_tidy(&place);
}

#[test]
fn worktrees_are_kept_on_request_and_removed_by_the_next_run() {
    needs_new_git!();
    let place = repository(&APART);
    let ran = run(&place, &format!("echo $n > file-$n; {GOOD}"), "--keep-worktrees --json");
    ended(&ran, 0);
    let last: Value = serde_json::from_str(ran.stdout.lines().last().unwrap()).unwrap();
    let trees = &last["worktrees"];
    assert_eq!((&trees["merged"], trees["kept"].as_array().map(Vec::len)), (&true.into(), Some(2)), "{last}");
    assert_eq!((branches(&place).len(), count_trees(&place)), (2, 3));
    // The branches of runs are not listed as branches of people, and step files in their worktrees reserve no numbers.
    assert_eq!(place.run("status --branches --json").json()["branches"], serde_json::json!([]));
    let tree = place.git("worktree list --porcelain");
    let tree = tree.lines().filter_map(|it| it.strip_prefix("worktree ")).next_back().unwrap();
    std::fs::write(format!("{tree}/plans/p/step-3.md"), "# Not here\n").unwrap();
    assert!(place.run("add p Three").ok().contains("p:3"));
    std::fs::remove_file(format!("{tree}/plans/p/step-3.md")).unwrap();
    ended(&run(&place, GOOD, ""), 0);
    is_tidy(&place);
}

#[test]
fn plans_may_be_in_a_subdirectory() {
    needs_new_git!();
    let place = Place::new();
    place.write("planwatch.toml", "plans_dir = \"docs/plans\"\n");
    place.write("docs/plans/main/plan.md", "# Main\n");
    // The plan has the same name as the last part of `planwatch-run/<run>/main`, the run's own branch.
    place.write("docs/plans/main/step-1.md", "---\nstatus: pending\n---\n# One\n");
    place.write("docs/text", "1\n");
    begin_git(&place);
    place.write("../agent.sh", format!("echo 2 > docs/text; echo x > docs/plans/main/plan.md; {GOOD}\n"));
    let mut command = place.command();
    command.args(["run", "main", "--worktrees", "--command", "sh \"$AT/agent.sh\""]);
    set_environment(&mut command, &place);
    let ran = Ran::of(command.output().unwrap());
    ended(&ran, 0);
    assert_eq!(
        (committed(&place, "docs/text"), place.text("docs/plans/main/plan.md")),
        ("2\n".to_owned(), "# Main\n".to_owned())
    );
    assert_eq!(place.git("status --porcelain"), " M docs/plans/main/step-1.md\n");
    is_tidy(&place);
}

#[test]
fn variables_of_the_users_repository_do_not_reach_a_worker() {
    needs_new_git!();
    let place = repository(&[""]);
    let script = format!("echo 1 > work; git add -A; git commit -q -m worker; {GOOD}");
    let mut command = command(&place, &script, "");
    command.env("GIT_DIR", place.file(".git")).env("GIT_WORK_TREE", place.work());
    command.env("GIT_INDEX_FILE", place.file(".git/index"));
    ended(&Ran::of(command.output().unwrap()), 0);
    assert_eq!(
        (committed(&place, "work"), place.git("status --porcelain")),
        ("1\n".to_owned(), " M plans/p/step-1.md\n".to_owned())
    );
}
