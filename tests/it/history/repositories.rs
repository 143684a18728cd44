//! `log` in merges, and in repositories of every kind: octopus merges, partial clones, other formats, linked worktrees.

use std::io::Write;

use serde_json::Value;

use super::{PLAN, STEP, check, commit, events, lines, repository, set, status};
use crate::support::Place;

#[test]
fn a_long_history_is_read_by_few_processes() {
    let place = Place::new();
    place.git("init -q");
    let mut stream = Vec::new();
    for at in 0..2_500 {
        let text = format!("---\nstatus: pending\n---\n# Step\n\n{at}\n");
        let who = format!("Ann <ann@example.org> {} +0000", 1_700_000_000 + at);
        let path = format!("plans/a/step-{}.md", at % 50);
        let change = format!("M 100644 inline {path}\ndata {}\n{text}\n", text.len());
        write!(stream, "commit refs/heads/main\nauthor {who}\ncommitter {who}\ndata 1\nx\n{change}").unwrap();
    }
    let mut import = place.git_command();
    let mut import =
        import.args(["fast-import", "--quiet"]).stdin(std::process::Stdio::piped()).spawn().unwrap();
    import.stdin.take().unwrap().write_all(&stream).unwrap();
    assert!(import.wait().unwrap().success());
    place.git("reset -q --hard");
    let n_reads = super::started(&place, "log --limit 1").iter().filter(|it| *it == "cat-file").count();
    assert!((1..10).contains(&n_reads), "{n_reads}");
    assert_eq!(events(&place, "log").len(), 2_500);
}

/// The status of a:1 at each time, from the timeline.
fn spans(place: &Place) -> Vec<String> {
    let answer = place.run("log a --timeline --json").json();
    let spans = answer["steps"][0]["spans"].as_array().expect("they are listed").clone();
    let time = |it: &Value| it.as_str().map_or_else(|| "now".to_owned(), |it| it[11..16].to_owned());
    let shown =
        |it: &Value| format!("{} {} {}", it["status"].as_str().unwrap(), time(&it["from"]), time(&it["to"]));
    spans.iter().map(shown).collect()
}

/// Two branches gave a:1 different statuses, `theirs` before `ours`. The merge is not committed yet.
fn in_conflict(ours: &str, theirs: &str) -> Place {
    let place = repository();
    place.git("checkout -q -b feature");
    status(&place, "pending", theirs);
    commit(&place, 2, "theirs");
    place.git("checkout -q main");
    status(&place, "pending", ours);
    commit(&place, 3, "ours");
    assert!(place.git_fails("merge -q feature").contains("CONFLICT"));
    place
}

#[test]
fn a_timeline_ends_with_what_the_merge_chose() {
    for chosen in ["completed", "failed", "blocked"] {
        let place = in_conflict("failed", "completed");
        place.write("plans/a/step-1.md", STEP.replace("pending", chosen));
        commit(&place, 4, "merge");
        let chosen_at_merge = format!("{chosen} 12:04 now");
        let last: &[&str] = match chosen {
            "failed" => &["failed 12:03 now"],
            _ => &["failed 12:03 12:04", &chosen_at_merge],
        };
        assert_eq!(spans(&place), [&["pending 09:00 12:02", "completed 12:02 12:03"], last].concat());
        let from = if chosen == "failed" { "completed" } else { "failed" };
        let merge = format!("merge: status a:1 {from} {chosen}");
        let reported =
            [merge.as_str(), "ours: status a:1 pending failed", "theirs: status a:1 pending completed"];
        check(&place, "log --what status", &reported);
    }
}

#[test]
fn a_merged_change_is_not_reported_for_the_merge() {
    let place = repository();
    place.git("checkout -q -b feature");
    status(&place, "pending", "completed");
    set(&place, "plans/a/step-1.md", "Text.", "Theirs.");
    commit(&place, 2, "theirs");
    place.git("checkout -q main");
    set(&place, "plans/a/step-1.md", "Text.", "Ours.");
    commit(&place, 3, "ours");
    // The texts are in conflict, the statuses are not.
    assert!(place.git_fails("merge -q feature").contains("CONFLICT"));
    place.write("plans/a/step-1.md", STEP.replace("pending", "completed").replace("Text", "Ours"));
    commit(&place, 4, "merge");
    check(&place, "log --what status", &["theirs: status a:1 pending completed"]);
    assert_eq!(spans(&place), ["pending 09:00 12:02", "completed 12:02 now"]);
}

#[test]
fn a_merged_change_of_a_moved_step_is_not_reported_for_the_merge() {
    let place = repository();
    place.write("plans/a/step-2.md", STEP.replace("a:1", "a:2").replace("One", "Two"));
    commit(&place, 2, "two");
    place.git("checkout -q -b feature");
    status(&place, "pending", "completed");
    commit(&place, 3, "theirs");
    place.git("checkout -q main");
    place.run("move a:1 --after a:2 --no-branches").ok_code();
    commit(&place, 4, "moved");
    assert!(place.git_fails("merge -q feature").contains("CONFLICT"));
    let moved = STEP.replace("a:1", "a:3").replace("pending", "completed");
    place.write("plans/a/step-3.md", moved);
    commit(&place, 5, "merge");
    check(&place, "log --what status", &["theirs: status a:1 pending completed"]);
}

#[test]
fn the_statuses_of_two_steps_that_had_one_number_are_not_reported_as_a_change() {
    let place = repository();
    let made = |day: u32, title: &str, status: &str| {
        format!("---\ncreated_at: 2026-01-0{day}T00:00:00Z\nstatus: {status}\n---\n# {title}\n")
    };
    place.git("checkout -q -b feature");
    place.write("plans/a/step-2.md", made(1, "Theirs", "completed"));
    commit(&place, 2, "theirs");
    place.git("checkout -q main");
    place.write("plans/a/step-2.md", made(2, "Ours", "failed"));
    commit(&place, 3, "ours");
    assert!(place.git_fails("merge -q feature").contains("CONFLICT"));
    place.write("plans/a/step-2.md", made(2, "Ours", "failed"));
    place.write("plans/a/step-3.md", made(1, "Theirs", "completed"));
    commit(&place, 4, "merge");
    check(&place, "log --what status", &[]);
}

#[test]
fn a_step_that_one_side_moved_to_the_number_of_another_has_no_new_status() {
    let place = repository();
    let made = |title: &str, status: &str| {
        format!("---\ncreated_at: 2026-01-01T00:00:00Z\nstatus: {status}\n---\n# {title}\n")
    };
    place.write("plans/a/step-2.md", made("Two", "completed"));
    place.write("plans/a/step-3.md", made("Three", "pending"));
    commit(&place, 2, "steps");
    place.git("checkout -q -b feature");
    place.write("plans/a/step-2.md", made("Three", "pending"));
    place.write("plans/a/step-3.md", made("Two", "completed"));
    commit(&place, 3, "swapped");
    place.git("checkout -q main");
    place.write("plans/a/step-2.md", made("Two", "completed") + "More.\n");
    commit(&place, 4, "text");
    assert!(place.git_fails("merge -q feature").contains("CONFLICT"));
    place.write("plans/a/step-2.md", made("Three", "pending"));
    place.write("plans/a/step-3.md", made("Two", "completed") + "More.\n");
    commit(&place, 5, "merge");
    check(&place, "log --what status,title", &[]);
}

#[test]
fn a_change_of_a_step_that_the_other_side_moved_is_not_reported_for_the_merge() {
    let place = repository();
    // The text of the moved step differs so much that git detects no rename.
    let text = |which: &str| (0..40).map(|n| format!("{which} {n}\n")).collect::<String>();
    let made = |status: &str, which: &str| {
        format!("---\ncreated_at: 2026-01-01T00:00:00Z\nstatus: {status}\n---\n# Two\n{}", text(which))
    };
    place.write("plans/a/step-2.md", made("pending", "first"));
    commit(&place, 2, "two");
    place.git("checkout -q -b feature");
    place.git("rm -q plans/a/step-2.md");
    place.write("plans/a/step-3.md", made("pending", "second"));
    commit(&place, 3, "moved");
    place.git("checkout -q main");
    set(&place, "plans/a/step-2.md", "pending", "completed");
    commit(&place, 4, "done");
    assert!(place.git_fails("merge -q feature").contains("CONFLICT"));
    place.git("rm -q plans/a/step-2.md");
    place.write("plans/a/step-3.md", made("completed", "second"));
    commit(&place, 5, "merge");
    check(&place, "log --what status,removed", &["done: status a:2 pending completed"]);
}

#[test]
fn a_removal_in_a_merge_is_reported_for_the_merge() {
    let place = repository();
    place.git("checkout -q -b feature");
    place.write("plans/a/step-2.md", "# Two\n");
    commit(&place, 2, "two");
    place.git("checkout -q main");
    place.write("plans/a/step-3.md", "# Three\n");
    commit(&place, 3, "three");
    place.git("merge -q --no-commit feature");
    place.git("rm -qf plans/a/step-2.md");
    commit(&place, 4, "merge");
    let created = ["three: created a:3 - pending", "two: created a:2 - pending"];
    let mut all = vec!["merge: removed a:2 pending -"];
    all.extend(created);
    all.extend([PLAN[0], PLAN[1]]);
    check(&place, "log", &all);
}

#[test]
fn the_merge_driver_of_a_clone_changes_nothing_in_its_history() {
    let place = in_conflict("failed", "completed");
    place.write("plans/a/step-1.md", STEP.replace("pending", "completed"));
    place.write(".gitattributes", "* merge=planwatch\n");
    commit(&place, 4, "merge");
    let before = lines(&place, "log");
    let ran = place.file("ran");
    let driver = format!("touch {}; cp %B %A", ran.display());
    place.git_at(&place.work(), 0, &["config", "merge.planwatch.driver", &driver]);
    place.write(".git/info/attributes", "* merge=planwatch\n");
    // `lines` also reads the log without the index.
    assert_eq!(lines(&place, "log"), before);
    assert!(!ran.exists(), "a driver ran");
}

#[test]
fn a_merge_of_many_branches_reports_only_its_own_changes() {
    let place = repository();
    for (minutes, name) in [(2, "x"), (3, "y")] {
        place.git(&format!("checkout -q -b {name} main"));
        place.write(&format!("plans/{name}/plan.md"), format!("# {name}\n"));
        commit(&place, minutes, name);
    }
    place.git("checkout -q main");
    place.git_at(&place.work(), 4, &["merge", "-q", "--no-ff", "-m", "merge", "x", "y"]);
    let parts = ["y: created y - active", "x: created x - active", PLAN[0], PLAN[1]];
    check(&place, "log", &parts);
    status(&place, "pending", "blocked");
    place.git("add -A");
    place.git_at(&place.work(), 5, &["commit", "-q", "--amend", "-m", "merge"]);
    let mut all = vec!["merge: status a:1 pending blocked"];
    all.extend(parts);
    check(&place, "log", &all);
    assert_eq!(place.git("rev-list --parents -1 HEAD").split_whitespace().count(), 4);
}

#[test]
fn a_partial_clone_fetches_nothing() {
    let place = repository();
    status(&place, "pending", "failed");
    commit(&place, 2, "failed");
    place.git("config uploadpack.allowFilter true");
    place.git("config uploadpack.allowAnySHA1InWant true");
    let origin = format!("file://{}", place.work().display());
    let clone = Place::new();
    clone.git(&format!("clone -q --no-checkout --filter=blob:none {origin} clone"));
    let missing = |clone: &Place| {
        let listed =
            clone.git_at(&clone.file("clone"), 0, &["rev-list", "--objects", "--all", "--missing=print"]);
        listed.lines().filter(|it| it.starts_with('?')).count()
    };
    assert_eq!(missing(&clone), 3);
    clone.write("clone/plans/b/plan.md", "# B\n");
    let refused = clone.run("-C clone log --json");
    assert_eq!((refused.code, refused.stdout.as_str()), (1, ""), "{refused:?}");
    assert!(refused.stderr.contains("git-failed") && refused.stderr.contains("partial clone"), "{refused:?}");
    assert_eq!(missing(&clone), 3);
    // Objects that a person has fetched are read.
    clone.git_at(&clone.file("clone"), 0, &["checkout", "-q", "main"]);
    clone.git_at(&clone.file("clone"), 0, &["log", "-p", "--quiet"]);
    let answer = clone.run("-C clone log --json");
    assert_eq!(answer.code, 0, "{answer:?}");
    // The events include the plan that was created in the clone.
    assert_eq!(answer.json()["events"].as_array().unwrap().len(), 4);
}

/// Creates a repository with an option. Returns false, and prints that the test is skipped, if this version of git
/// cannot do it.
#[expect(clippy::print_stderr, reason = "what is skipped is visible")]
fn made(place: &Place, option: &str) -> bool {
    let mut git = place.git_command();
    let ran = git.args(["-c", "init.defaultBranch=main", "init", "-q", option]).output().expect("git starts");
    if !ran.status.success() {
        eprintln!(
            "skipped: this git does not know {option}: {}",
            String::from_utf8_lossy(&ran.stderr).trim()
        );
    }
    ran.status.success()
}

#[test]
fn repositories_of_other_formats_are_read() {
    for option in ["--object-format=sha256", "--ref-format=reftable"] {
        let place = Place::new();
        if !made(&place, option) {
            continue;
        }
        place.write("plans/a/plan.md", "# A\n");
        place.write("plans/a/step-1.md", STEP);
        commit(&place, 1, "plan a");
        place.git("checkout -q -b feature");
        status(&place, "pending", "completed");
        commit(&place, 2, "theirs");
        place.git("checkout -q main");
        assert_eq!(
            place.run("status --branches --json").json()["branches"][0]["there"],
            "completed",
            "{option}"
        );
        status(&place, "pending", "failed");
        commit(&place, 3, "ours");
        assert!(place.git_fails("merge -q feature").contains("CONFLICT"));
        place.write("plans/a/step-1.md", STEP.replace("pending", "completed"));
        commit(&place, 4, "merge");
        let reported = [
            "merge: status a:1 failed completed",
            "ours: status a:1 pending failed",
            "theirs: status a:1 pending completed",
        ];
        check(&place, "log --what status", &reported);
        let digits = if option.contains("sha256") { 64 } else { 40 };
        assert_eq!(events(&place, "log")[0]["commit"].as_str().unwrap().len(), digits);
        let answer = place.run("diff HEAD~1 --json").json();
        assert_eq!(answer["differences"][0]["status"]["to"], "completed", "{option}");
    }
}

#[test]
fn a_linked_worktree_has_the_history_of_its_own_branch() {
    let place = repository();
    place.git("worktree add -q -b feature ../tree");
    let tree = place.top().join("tree");
    place.git_at(&tree, 0, &["checkout", "-q", "feature"]);
    let text = std::fs::read_to_string(tree.join("plans/a/step-1.md")).unwrap();
    std::fs::write(tree.join("plans/a/step-1.md"), text.replace("pending", "completed")).unwrap();
    place.git_at(&tree, 2, &["commit", "-q", "-a", "-m", "done"]);
    status(&place, "pending", "failed");
    let answer = |directory: &str| {
        let answer = place.run(&format!("-C {directory} log --what status --json")).json();
        let shown =
            |it: &Value| format!("{} {}", it["subject"].as_str().unwrap_or("-"), it["to"].as_str().unwrap());
        answer["events"].as_array().unwrap().iter().map(shown).collect::<Vec<_>>()
    };
    assert_eq!(answer("../tree"), ["done completed"]);
    assert_eq!(answer("."), ["- failed"]);
    place.git("checkout -q -f main");
    place.git("merge -q feature");
    assert_eq!(answer("."), ["done completed"]);
    let diff = place.run("-C ../tree diff main~1.. --json").json();
    assert_eq!(diff["differences"][0]["id"], "a:1", "{diff}");
}
