//! `log` and `diff` on real repositories: linear ones, merges, rewritten and shallow history, and hostile names.
#![expect(clippy::disallowed_methods, reason = "tests change and move files")]
#![expect(clippy::unwrap_used, reason = "a failure ends the test")]

mod repositories;
mod table;

use serde_json::Value;

use crate::random::Random;
use crate::support::{Place, Ran};

const STEP: &str =
    "---\nid: \"a:1\"\nstatus: pending\ncreated_at: 2026-11-20T09:00:00Z\n---\n# One\n\nText.\n";

/// A repository with a plan of one step, committed.
fn repository() -> Place {
    let place = Place::new();
    place.git("init -q");
    place.write("plans/a/plan.md", "# A\n");
    place.write("plans/a/step-1.md", STEP);
    commit(&place, 1, "plan a");
    place
}

fn commit(place: &Place, minutes: u32, message: &str) {
    place.git("add -A");
    place.git_at(&place.work(), minutes, &["commit", "-q", "--allow-empty", "-m", message]);
}

fn set(place: &Place, path: &str, old: &str, new: &str) {
    let text = place.text(path);
    assert!(text.contains(old), "{text}");
    place.write(path, text.replacen(old, new, 1));
}

fn status(place: &Place, old: &str, new: &str) {
    set(place, "plans/a/step-1.md", &format!("status: {old}"), &format!("status: {new}"));
}

fn events(place: &Place, line: &str) -> Vec<Value> {
    let answer = place.run(&format!("{line} --json"));
    assert_eq!(answer.code, 0, "{answer:?}");
    answer.json()["events"].as_array().expect("it is a list").clone()
}

/// Events in one line each: subject, what, id, from and to. Also checks that they are the same without the index.
#[track_caller]
fn lines(place: &Place, line: &str) -> Vec<String> {
    let text = |it: &Value, key: &str| it[key].as_str().unwrap_or("-").to_owned();
    let shown = |it: &Value| {
        let id = it["step"].as_str().or(it["plan"].as_str()).unwrap_or("-");
        format!("{}: {} {id} {} {}", text(it, "subject"), text(it, "what"), text(it, "from"), text(it, "to"))
    };
    let stored = events(place, line);
    assert_eq!(stored, events(place, line), "the second answer differs");
    assert_eq!(stored, events(place, &format!("{line} --no-index")), "the answer without the index differs");
    stored.iter().map(shown).collect()
}

#[track_caller]
fn check(place: &Place, line: &str, expected: &[&str]) {
    assert_eq!(lines(place, line), expected);
}

const PLAN: [&str; 2] = ["plan a: created a:1 - pending", "plan a: created a - active"];

#[test]
fn the_newest_change_comes_first_below_uncommitted_changes() {
    let place = repository();
    check(&place, "log", &PLAN);
    status(&place, "pending", "in_progress");
    commit(&place, 2, "start");
    // This commit changes no plan.
    place.write("code.rs", "fn main() {}\n");
    commit(&place, 3, "code");
    status(&place, "in_progress", "completed");
    let start = "start: status a:1 pending in_progress";
    check(&place, "log a:1", &["-: status a:1 in_progress completed", start, PLAN[0]]);
    check(&place, "log --what status", &["-: status a:1 in_progress completed", start]);
    check(&place, "log --limit 1", &["-: status a:1 in_progress completed"]);
    check(&place, "log HEAD~2..HEAD", &[start]);
    check(&place, "log a --rev HEAD~1", &[start, PLAN[0], PLAN[1]]);
    check(&place, "log --by Bob", &[]);
    check(&place, "log --by ANN --what status", &[start]);
    check(&place, "log --until 2026-11-20T12:01:30Z --what status", &[]);
    commit(&place, 4, "done");
    check(&place, "log --what status", &["done: status a:1 in_progress completed", start]);
}

#[test]
fn a_merged_change_is_reported_once() {
    let place = repository();
    place.git("checkout -q -b feature");
    status(&place, "pending", "completed");
    commit(&place, 2, "done");
    place.git("checkout -q main");
    place.write("plans/a/step-2.md", "# Two\n");
    commit(&place, 3, "two");
    // The index has seen only one side.
    check(&place, "log --what status,created", &["two: created a:2 - pending", PLAN[0], PLAN[1]]);
    place.git_at(&place.work(), 4, &["merge", "-q", "--no-edit", "feature"]);
    let done = "done: status a:1 pending completed";
    check(&place, "log", &["two: created a:2 - pending", done, PLAN[0], PLAN[1]]);
    place.git("checkout -q feature");
    check(&place, "log", &[done, PLAN[0], PLAN[1]]);
    check(&place, "log feature..main", &["two: created a:2 - pending"]);
}

#[test]
fn a_change_made_only_by_a_conflict_resolution_is_reported_for_the_merge() {
    let place = repository();
    place.git("checkout -q -b feature");
    status(&place, "pending", "completed");
    commit(&place, 2, "done");
    place.git("checkout -q main");
    status(&place, "pending", "failed");
    commit(&place, 3, "failed");
    let conflict = place.git_fails("merge -q feature");
    assert!(conflict.contains("CONFLICT"), "{conflict}");
    place.write("plans/a/step-1.md", STEP.replace("pending", "blocked"));
    commit(&place, 4, "merge feature");
    let expected = [
        "merge feature: status a:1 failed blocked",
        "failed: status a:1 pending failed",
        "done: status a:1 pending completed",
    ];
    check(&place, "log --what status", &expected);
}

#[test]
fn a_side_that_a_merge_dropped_is_reported() {
    let place = repository();
    place.git("checkout -q -b feature");
    status(&place, "pending", "completed");
    commit(&place, 2, "done");
    place.git("checkout -q main");
    place.write("plans/a/step-2.md", "# Two\n");
    commit(&place, 3, "two");
    place.git_at(&place.work(), 4, &["merge", "-q", "-s", "ours", "-m", "ours", "feature"]);
    check(
        &place,
        "log --what status",
        &["ours: status a:1 completed pending", "done: status a:1 pending completed"],
    );
}

#[test]
fn the_log_is_right_after_history_was_rewritten() {
    let place = repository();
    status(&place, "pending", "failed");
    commit(&place, 2, "failed");
    check(&place, "log --what status", &["failed: status a:1 pending failed"]);
    status(&place, "failed", "completed");
    place.git("add -A");
    place.git_at(&place.work(), 3, &["commit", "-q", "--amend", "-m", "done"]);
    check(&place, "log --what status", &["done: status a:1 pending completed"]);
    place.git("checkout -q -b other HEAD~1");
    place.write("plans/a/step-2.md", "# Two\n");
    commit(&place, 4, "two");
    check(&place, "log", &["two: created a:2 - pending", PLAN[0], PLAN[1]]);
    place.git_at(&place.work(), 5, &["rebase", "-q", "main"]);
    let done = "done: status a:1 pending completed";
    check(&place, "log", &["two: created a:2 - pending", done, PLAN[0], PLAN[1]]);
}

#[test]
fn the_log_of_a_shallow_clone_reports_where_its_history_begins() {
    let place = repository();
    for (minutes, (old, new)) in [("pending", "failed"), ("failed", "completed")].into_iter().enumerate() {
        status(&place, old, new);
        commit(&place, 2 + u32::try_from(minutes).unwrap(), new);
    }
    let origin = format!("file://{}", place.work().display());
    let clone = Place::new();
    clone.git(&format!("clone -q --depth 2 {origin} clone"));
    let log = |clone: &Place| clone.run("-C clone log --json").json();
    let begins = clone.git_at(&clone.file("clone"), 0, &["rev-parse", "HEAD~1"]);
    let answer = log(&clone);
    assert_eq!(answer["begins_at"], begins.trim());
    assert_eq!(answer["events"].as_array().unwrap().len(), 1, "{answer}");
    assert!(clone.run("-C clone log").ok().contains("its history begins at"));
    clone.git_at(&clone.file("clone"), 0, &["fetch", "-q", "--unshallow"]);
    let answer = log(&clone);
    assert_eq!((&answer["begins_at"], answer["events"].as_array().unwrap().len()), (&Value::Null, 4));
}

#[test]
fn moves_archives_and_restores_keep_the_history() {
    let place = repository();
    place.write(
        "plans/a/step-2.md",
        "---\nid: \"a:2\"\nstatus: failed\ncreated_at: 2026-11-20T09:00:00Z\n---\n# Two\n",
    );
    commit(&place, 2, "two");
    place.run("move a:1 --after a:2").ok_code();
    let moved = place.run("list a --json").json()["steps"][1]["id"].as_str().unwrap().to_owned();
    commit(&place, 3, "moved");
    assert_eq!(lines(&place, &format!("log {moved}"))[0], format!("moved: moved {moved} a:1 {moved}"));
    assert!(lines(&place, &format!("log {moved}")).contains(&PLAN[0].to_owned()));
    place.run("archive a").ok_code();
    commit(&place, 4, "archived");
    place.run("archive a --restore").ok_code();
    commit(&place, 5, "restored");
    let expected = ["restored: restored a a a", "archived: archived a a a"];
    assert_eq!(lines(&place, "log a")[..2], expected);
    let removed = place.run("remove a --yes");
    assert_eq!(removed.code, 0, "{removed:?}");
    commit(&place, 6, "gone");
    assert!(lines(&place, "log a").iter().any(|it| it.starts_with("gone: removed a ")));
    let unknown = place.run("log nothing");
    assert_eq!(unknown.code, 3, "{unknown:?}");
}

#[test]
fn line_endings_are_no_change() {
    let place = repository();
    place.write("plans/a/step-1.md", STEP.replace('\n', "\r\n"));
    commit(&place, 2, "crlf");
    check(&place, "log", &PLAN);
    status(&place, "pending", "failed");
    commit(&place, 3, "failed");
    check(&place, "log --what status,text", &["failed: status a:1 pending failed"]);
    let shown = place.run("diff -p HEAD~2").ok();
    let changed: Vec<_> = shown.lines().filter(|it| it.starts_with(['-', '+'])).collect();
    assert_eq!(changed, ["-status: pending", "+status: failed"], "{shown}");
}

#[test]
fn a_file_that_was_broken_for_a_while_loses_nothing() {
    let place = repository();
    let good = place.text("plans/a/step-1.md");
    place.write("plans/a/step-1.md", good.replace("status: pending", "status: [").replace("# One", "# 1"));
    commit(&place, 2, "broken");
    place.write("plans/a/step-1.md", good.replace("Text", "<<<<<<< a\nText\n=======\n>>>>>>> b"));
    commit(&place, 3, "still broken");
    place.write("plans/a/step-1.md", good.replace("pending", "completed"));
    commit(&place, 4, "repaired");
    check(
        &place,
        "log --what status,text",
        &["repaired: status a:1 pending completed", "still broken: text a:1 - -", "broken: text a:1 - -"],
    );
    assert_eq!(events(&place, "log")[2]["notes"], "not readable: front-matter-invalid");
}

/// The subcommands of the git processes that a command starts.
fn started(place: &Place, line: &str) -> Vec<String> {
    let bin = place.top().join("bin");
    if !bin.exists() {
        std::fs::create_dir(&bin).unwrap();
        let path = std::env::var_os("PATH").unwrap();
        let real = std::env::split_paths(&path).map(|it| it.join("git")).find(|it| it.is_file()).unwrap();
        let (list, shim) = (bin.join("started"), bin.join("git"));
        let (list, real) = (list.display(), real.display());
        std::fs::write(&shim, format!("#!/bin/sh\necho \"$*\" >>'{list}'\nexec '{real}' \"$@\"\n")).unwrap();
        std::process::Command::new("chmod").arg("+x").arg(&shim).status().unwrap();
    }
    std::fs::write(bin.join("started"), "").unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let ran = Ran::of(place.command().args(line.split(' ')).env("PATH", path).output().unwrap());
    assert_eq!(ran.code, 0, "{ran:?}");
    let list = std::fs::read_to_string(bin.join("started")).unwrap();
    let is_word = |it: &&str| !it.starts_with('-') && !it.contains('=');
    list.lines().filter_map(|it| it.split(' ').find(is_word).map(str::to_owned)).collect()
}

/// The benchmark T13 is fast because a commit is read only once.
#[test]
fn commits_that_were_read_are_not_read_again() {
    let place = repository();
    for minutes in 2..30 {
        let (old, new) = if minutes % 2 == 0 { ("pending", "failed") } else { ("failed", "pending") };
        status(&place, old, new);
        commit(&place, minutes, new);
    }
    let reads = |line: &str| -> Vec<String> {
        started(&place, line).into_iter().filter(|it| it == "log" || it == "cat-file").collect()
    };
    assert_eq!(reads("log --limit 3"), ["log", "cat-file"]);
    for line in ["log --limit 3", "log", "log a:1", "log a --timeline"] {
        assert!(reads(line).is_empty(), "{line}");
    }
    assert_eq!(reads("log --no-index"), ["log", "cat-file"]);
    status(&place, "pending", "completed");
    commit(&place, 31, "done");
    assert_eq!(reads("log"), ["log", "cat-file"]);
    assert!(reads("log").is_empty());
    assert_eq!(
        lines(&place, "log --limit 2"),
        ["done: status a:1 pending completed", "pending: status a:1 failed pending"]
    );
}

#[test]
fn log_starts_no_program_of_a_repository_and_reads_every_name() {
    let place = repository();
    for name in ["-p", "a b", "q\"uote", "new\nline", ":(glob)x", "caf\u{e9}", "--output=x"] {
        place.write(&format!("plans/{name}/step-1.md"), "# One\n");
    }
    place.write("plans/a/code.rs", "");
    let evil = place.file("evil");
    place.write("evil", format!("#!/bin/sh\ntouch {}\n", place.file("started").display()));
    std::process::Command::new("chmod").arg("+x").arg(&evil).status().unwrap();
    let evil = evil.to_str().unwrap();
    for key in
        ["core.fsmonitor", "diff.external", "core.pager", "diff.x.textconv", "core.sshCommand", "pager.log"]
    {
        place.git_at(&place.work(), 0, &["config", key, evil]);
    }
    place.git("config log.showSignature true");
    place.git("config diff.noprefix true");
    place.git("config color.ui always");
    place.write(".gitattributes", "*.md diff=x\n");
    let git = [
        ("GIT_DIR", "/nowhere"),
        ("GIT_INDEX_FILE", "/nowhere"),
        ("GIT_EXTERNAL_DIFF", evil),
        ("GIT_PAGER", evil),
    ];
    let names = |place: &Place| {
        let answer = place.command().args(["log", "--json"]).envs(git).output().unwrap();
        let answer = Ran::of(answer);
        assert_eq!(answer.code, 0, "{answer:?}");
        let plans: Vec<_> =
            answer.json()["events"].as_array().unwrap().iter().map(|it| it["plan"].clone()).collect();
        plans
    };
    let before = names(&place);
    for name in ["-p", "a b", "q\"uote", "new\nline", ":(glob)x", "caf\u{e9}", "--output=x"] {
        assert!(before.contains(&Value::from(name)), "{name:?}");
    }
    std::process::Command::new("mv").arg(place.file("evil")).arg(place.top().join("evil")).status().unwrap();
    place.git_at(&place.work(), 0, &["-c", "core.fsmonitor=false", "-c", "diff.external=", "add", "-A"]);
    place.git_at(
        &place.work(),
        2,
        &["-c", "core.fsmonitor=false", "commit", "-q", "-m", "subject\u{1b}[31m"],
    );
    let mut after = names(&place);
    let mut before = before;
    after.sort_by_key(Value::to_string);
    before.sort_by_key(Value::to_string);
    assert_eq!(after, before);
    assert!(!place.run("log").ok().contains('\u{1b}'));
    assert!(!place.file("started").exists());
    for rev in ["--output=x", "-p", "nothing", "HEAD..nothing", "a..b..c"] {
        let refused = place.run_with(&["log", &format!("--rev={rev}")]);
        assert_eq!(refused.code, 3, "{refused:?}");
    }
    assert!(!place.file("x").exists());
}

#[test]
fn the_plans_may_be_anywhere_in_the_repository() {
    for root in [".", "deep/er"] {
        let place = Place::new();
        place.git("init -q");
        place.write(&format!("{root}/a/plan.md"), "# A\n");
        place.write("other/step-1.md", "# no plan\n");
        commit(&place, 1, "plan a");
        place.write(&format!("{root}/a/step-1.md"), "# One\n");
        let found = lines(&place, &format!("--plans {root} log a"));
        assert_eq!(found, ["-: created a:1 - pending", "plan a: created a - active"], "{root}");
    }
}

#[test]
fn log_without_a_repository_is_refused_and_without_a_commit_lists_the_files() {
    let place = Place::new();
    place.write("plans/a/plan.md", "# A\n");
    let refused = place.run("log --json");
    assert_eq!(refused.code, 3);
    assert!(refused.stderr.contains("not-a-repository"), "{refused:?}");
    place.git("init -q");
    check(&place, "log", &["-: created a - active"]);
    place.git("add -A");
    check(&place, "log", &["-: created a - active"]);
    let staged = place.run("diff --staged --json").json();
    assert_eq!(staged["differences"][0]["change"], "created");
    let missing = Ran::of(place.command().arg("log").env("PATH", "/nowhere").output().unwrap());
    assert_eq!(missing.code, 3);
    assert!(missing.stderr.contains("git-missing"), "{missing:?}");
}

#[test]
fn a_diff_compares_any_two_states() {
    let place = repository();
    place.git("checkout -q -b feature");
    place.write("plans/a/step-2.md", "---\ndepends: [1]\n---\n# Two\n");
    commit(&place, 2, "two");
    place.git("checkout -q main");
    status(&place, "pending", "failed");
    commit(&place, 3, "failed");
    let ids = |line: &str| -> Vec<String> {
        let answer = place.run(&format!("{line} --json")).json();
        let shown = |it: &Value| format!("{} {}", it["id"].as_str().unwrap(), it["change"].as_str().unwrap());
        answer["differences"].as_array().unwrap().iter().map(shown).collect()
    };
    assert!(ids("diff").is_empty());
    assert_eq!(ids("diff HEAD~1"), ["a:1 changed"]);
    assert_eq!(ids("diff main..feature"), ["a:1 changed", "a:2 created"]);
    assert_eq!(ids("diff main...feature"), ["a:2 created"]);
    assert_eq!(ids("diff a HEAD~1..HEAD"), ["a:1 changed"]);
    assert_eq!(ids("diff main feature"), ["a:1 changed", "a:2 created"]);
    status(&place, "failed", "completed");
    place.git("add -A");
    status(&place, "completed", "blocked");
    let turn =
        |line: &str| place.run(&format!("{line} --json")).json()["differences"][0]["status"]["to"].clone();
    assert_eq!((turn("diff --staged"), turn("diff")), (Value::from("completed"), Value::from("blocked")));
    assert_eq!(place.run("diff --staged main..feature").code, 2);
    assert_eq!(place.run("diff nothing").code, 3);
}

#[test]
fn a_diff_of_a_plan_says_if_no_state_has_the_plan() {
    let place = repository();
    place.write("plans/b/plan.md", "# B\n");
    commit(&place, 2, "plan b");
    place.write("code.rs", "");
    commit(&place, 3, "code");
    std::fs::remove_dir_all(place.file("plans/b")).unwrap();
    commit(&place, 4, "without plan b");
    for (line, code, said) in [
        ("diff b HEAD~1", 0, "b  B  removed, was active\n"),
        ("diff b HEAD~2..HEAD~1", 0, "The plans do not differ.\n"),
        ("diff c HEAD~1", 3, "error[not-found]: there is no plan `c`\n"),
        ("diff c HEAD~1 --staged", 3, "error[not-found]: there is no plan `c`\n"),
        ("diff main c", 3, "error[not-found]: there is no revision `c`\n"),
        ("diff a c", 3, "error[not-found]: there is no revision `c`\n"),
        ("diff c c", 3, "error[not-found]: there is no revision `c`\n"),
    ] {
        let ran = place.run(line);
        assert_eq!(ran.code, code, "{line}: {ran:?}");
        assert!((ran.stdout.clone() + &ran.stderr).starts_with(said), "{line}: {ran:?}");
    }
}

/// A week of a team: people change statuses of steps on their own branches, and merge the branches into main.
#[test]
fn the_log_reports_exactly_the_changes_of_a_team() {
    let place = Place::new();
    place.git("init -q");
    let people = ["ann", "bob", "cy", "dee"];
    for who in people {
        place.write(&format!("plans/{who}/plan.md"), format!("# {who}\n"));
        for number in 1..4 {
            place.write(
                &format!("plans/{who}/step-{number}.md"),
                format!("---\nstatus: pending\n---\n# {who} {number}\n"),
            );
        }
    }
    commit(&place, 0, "plans");
    people.iter().for_each(|it| drop(place.git(&format!("branch {it}"))));
    let mut random = Random::new(19);
    let mut expected: Vec<String> = Vec::new();
    let words = ["pending", "in_progress", "completed", "failed", "blocked"];
    for minutes in 1..60 {
        let who = people[random.below(people.len())];
        place.git(&format!("checkout -q {who}"));
        let path = format!("plans/{who}/step-{}.md", 1 + random.below(3));
        let text = place.text(&path);
        let old = words.iter().find(|it| text.contains(&format!("status: {it}\n"))).unwrap();
        let new = words[random.below(words.len())];
        if *old != new {
            place.write(&path, text.replace(&format!("status: {old}\n"), &format!("status: {new}\n")));
            commit(&place, minutes, &format!("{who} {minutes}"));
            let step = path.trim_start_matches("plans/").trim_end_matches(".md").replace("/step-", ":");
            expected.push(format!("{who} {minutes}: status {step} {old} {new}"));
        }
        if random.below(4) == 0 {
            place.git("checkout -q main");
            place.git_at(&place.work(), minutes, &["merge", "-q", "--no-ff", "-m", "merge", who]);
            // Brings the index up to date after each merge.
            drop(events(&place, "log"));
        }
    }
    place.git("checkout -q main");
    for who in people {
        place.git_at(&place.work(), 61, &["merge", "-q", "--no-ff", "-m", "merge", who]);
    }
    let mut found = lines(&place, "log --what status");
    assert!(found.len() > 30);
    found.sort();
    expected.sort();
    assert_eq!(found, expected);
}
