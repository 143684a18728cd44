//! Branches and working trees: new numbers are free on all of them, and `status --branches` lists differences.

#![expect(clippy::disallowed_methods, reason = "tests move files")]

use serde_json::{Value, json};

use crate::http::client::Server;
use crate::mcp::Client;
use crate::support::Place;

/// So short that a file that git restores to it is much shorter than the file with a claim and a result.
const STEP: &str = "---\nstatus: pending\n---\n# One\n\nText.\n";

/// A repository with a plan of two steps, committed on `main`.
fn repository() -> Place {
    let place = Place::new();
    place.write("plans/p/plan.md", "# P\n");
    place.write("plans/p/step-1.md", STEP);
    place.write("plans/p/step-2.md", STEP.replace("One", "Two"));
    place.git_with(&["init", "-q", "-b", "main"]);
    commit(&place, "Begin");
    place
}

fn commit(place: &Place, subject: &str) {
    place.git_with(&["add", "-A"]);
    place.git_with(&["commit", "-q", "-m", subject]);
}

/// Commits the result of a command on a new branch, and returns to `main`.
fn on_branch(place: &Place, branch: &str, line: &str) {
    place.git_with(&["checkout", "-q", "-b", branch, "main"]);
    assert_eq!(place.run(line).code, 0, "{line}");
    commit(place, branch);
    place.git_with(&["checkout", "-q", "main"]);
}

#[track_caller]
fn number(place: &Place, line: &str) -> String {
    let ran = place.run(&format!("{line} --json --dry-run"));
    assert_eq!(ran.code, 0, "{ran:?}");
    let answer = ran.json();
    let new = answer["changes"].as_array().into_iter().flatten().find(|it| it["did"] != "changed").cloned();
    new.unwrap_or_default()["id"].as_str().unwrap_or_default().to_owned()
}

fn branches(place: &Place) -> Value {
    let ran = place.run("status --branches --json");
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
    ran.json()["branches"].clone()
}

#[test]
fn a_number_of_an_unmerged_branch_is_not_used_again() {
    let place = repository();
    on_branch(&place, "a", "add p Three");
    on_branch(&place, "b", "add p Between --after 1 --no-branches");
    assert_eq!(number(&place, "add p New"), "p:4");
    assert_eq!(number(&place, "add p New --after 1"), "p:1.75");
    assert_eq!(number(&place, "move p:2 --after 1"), "p:2", "it is there already");
    assert_eq!(number(&place, "add p New --no-branches"), "p:3");
    assert_eq!(number(&place, "add p New --after 1 --no-branches"), "p:1.5");
    place.write("list", "- [ ] One\n- [ ] Two\n- [ ] New\n");
    assert_eq!(number(&place, "replace p --file list"), "p:4");
    assert_eq!(number(&place, "replace p --file list --no-branches"), "p:3");
    // After the merge, step 3 is in this tree. After it is removed, its number may be used again.
    place.git_with(&["merge", "-q", "--no-edit", "a"]);
    assert_eq!(number(&place, "add p New"), "p:4");
    place.git_with(&["rm", "-q", "plans/p/step-3.md"]);
    commit(&place, "remove");
    assert_eq!(number(&place, "add p New"), "p:3");
}

#[test]
fn a_number_of_another_tree_or_a_remote_is_not_used_again() {
    let place = repository();
    place.git_with(&["worktree", "add", "-q", "-b", "other", "tree"]);
    place.write(".git/info/exclude", "tree\nclone\n");
    place.run("-C tree add p Three").ok();
    assert_eq!(number(&place, "add p New"), "p:4");
    assert_eq!(number(&place, "-C tree add p New"), "p:4");
    place.git_with(&["clone", "-q", ".", "clone"]);
    on_branch(&place, "far", "add p Four");
    place.git_with(&["-C", "clone", "fetch", "-q"]);
    assert_eq!(
        number(&place, "-C clone add p New"),
        "p:3",
        "p:3 is in no commit, and the branch `far` has p:4"
    );
    place.git_with(&["branch", "-q", "-D", "far"]);
    assert_eq!(number(&place, "add p New"), "p:4");
    // A plan that exists in no other tree or branch has no reserved numbers.
    place.run("new Q One").ok();
    assert_eq!(number(&place, "add q New"), "q:2");
}

#[test]
fn branches_are_read_only_in_a_repository() {
    let place = Place::new();
    place.write("plans/p/plan.md", "# P\n");
    assert_eq!(number(&place, "add p New"), "p:1");
    let refused = place.run("status --branches");
    assert_eq!(refused.code, 3);
    assert!(refused.stderr.contains("error[not-a-repository]"), "{}", refused.stderr);
}

#[test]
fn statuses_that_differ_on_other_branches_are_listed() {
    let place = repository();
    assert_eq!(branches(&place), json!([]));
    on_branch(&place, "old", "note p:2 Before");
    on_branch(&place, "feature/x", "done p:1 -m Made --by bob");
    on_branch(&place, "feature/y", "start p:2");
    let said = json!([
        {"id": "p:1", "title": "One", "here": "pending", "there": "completed", "branch": "feature/x", "more": 0,
         "at": "2026-11-21T12:00:00Z", "by": "bob"},
        {"id": "p:2", "title": "Two", "here": "pending", "there": "in_progress", "branch": "feature/y", "more": 0,
         "at": "2026-11-21T12:00:00Z", "by": "Ann"},
    ]);
    assert_eq!(branches(&place), said);
    let text = place.run("status --branches").ok();
    assert!(text.contains("On other branches") && text.contains("on feature/x, bob"), "{text}");
    assert!(place.run("status --json").json().get("branches").is_none());
    // A branch is not listed for a step if it is only behind, or if it is merged.
    place.run("done p:2").ok();
    commit(&place, "done");
    assert_eq!(branches(&place)[1]["here"], "completed");
    place.git_with(&["merge", "-q", "--no-edit", "feature/x"]);
    let left = branches(&place);
    assert_eq!((left.as_array().unwrap().len(), &left[0]["branch"]), (1, &json!("feature/y")));
    place.git_with(&["branch", "-q", "-D", "feature/y"]);
    assert_eq!(branches(&place), json!([]));
}

#[test]
fn a_step_with_another_number_on_a_branch_is_compared_with_the_same_step_here() {
    let place = Place::new();
    place.git_with(&["init", "-q", "-b", "main"]);
    place.run("new p Alpha Beta Gamma Delta -q").ok();
    place.run("done p:3").ok();
    commit(&place, "Begin");
    place.git_with(&["checkout", "-q", "-b", "b"]);
    for line in [
        "move p:1 --to 9",
        "move p:2 --to 1",
        "done p:1",
        "move p:3 --to 8",
        "add p Theirs --at 5 --no-branches",
        "done p:5",
        "move p --to q",
        "skip q:4 -m later",
    ] {
        place.run(&format!("{line} -q")).ok();
    }
    commit(&place, "b");
    place.git_with(&["checkout", "-q", "main"]);
    place.write("plans/p/step-5.md", "---\nstatus: pending\ncreated_at: 2026-11-20T09:00:00Z\n---\n# Ours\n");
    place.run("reopen p:3").ok();
    let found: Vec<String> = branches(&place)
        .as_array()
        .into_iter()
        .flatten()
        .map(|it| ["id", "title", "here", "there"].map(|key| it[key].as_str().unwrap_or_default()).join(" "))
        .collect();
    assert_eq!(found, ["p:2 Beta pending completed", "p:4 Delta pending skipped"]);
}

#[test]
fn a_branch_and_its_remote_are_listed_once_and_hostile_files_are_not_listed() {
    let place = repository();
    on_branch(&place, "feature", "done p:1");
    let tip = place.git_with(&["rev-parse", "feature"]).trim().to_owned();
    place.git_with(&["update-ref", "refs/remotes/origin/feature", &tip]);
    place.git_with(&["update-ref", "refs/heads/planwatch-run/r/p/1", &tip]);
    place.git_with(&["checkout", "-q", "-b", "hostile"]);
    place.write("plans/p/step-2.md", b"---\nstatus: [\n---\n\xff");
    place.write("plans/p\n/step-1.md", STEP);
    place.write("plans/-x/step-1.md", STEP.replace("pending", "completed"));
    commit(&place, "hostile");
    place.git_with(&["checkout", "-q", "main"]);
    let said = branches(&place);
    assert_eq!(said.as_array().unwrap().len(), 1, "{said}");
    assert_eq!((&said[0]["branch"], &said[0]["more"]), (&json!("feature"), &json!(1)));
}

#[test]
fn a_number_in_the_steps_list_of_another_branch_or_tree_is_not_used_again() {
    let place = repository();
    let list = "# P\n\n## Steps\n- step-1: One\n- step-2: Two\n- step-3: Three\n";
    place.git_with(&["checkout", "-q", "-b", "listed"]);
    place.write("plans/p/plan.md", format!("---\nstatus: active\n---\n{list}"));
    commit(&place, "listed");
    place.git_with(&["checkout", "-q", "main"]);
    assert_eq!(number(&place, "add p New"), "p:4");
    assert_eq!(number(&place, "add p New --no-branches"), "p:3");
    place.git_with(&["worktree", "add", "-q", "-b", "other", "tree"]);
    place.write(".git/info/exclude", "tree\n");
    place.write("tree/plans/p/plan.md", format!("{list}- step-4: Four\n"));
    assert_eq!(number(&place, "add p New"), "p:5");
    assert_eq!(number(&place, "-C tree add p New --no-branches"), "p:5");
}

#[test]
fn http_and_mcp_report_branches_like_the_command_line() {
    let place = repository();
    on_branch(&place, "feature/x", "done p:1 -m Made --by bob");
    let expected = branches(&place);
    let mut client = Client::of(&place, &["mcp"], &json!({}));
    client.call("briefing", &json!({"branches": true}), &json!({}));
    let answer = client.receive();
    let said = json!([{"id": "p:1", "here": "pending", "there": "completed", "branch": "feature/x", "by": "bob",
                       "at": "2026-11-21T12:00:00Z"}]);
    assert_eq!(answer["result"]["structuredContent"]["branches"], said, "{answer}");
    client.call("briefing", &json!({}), &json!({}));
    assert!(client.receive()["result"]["structuredContent"].get("branches").is_none());
    assert_eq!(client.end(), 0);
    let server = Server::open(&place);
    let get = |path: &str| server.ask("GET", path, "", "");
    assert_eq!(get("/api/status?branches=true").json()["branches"], expected);
    assert!(get("/api/status").json().get("branches").is_none());
    std::fs::rename(place.file(".git"), place.top().join("git")).unwrap();
    assert_eq!(get("/api/status?branches=true").problem().1, "not-a-repository");
    server.stop(&place);
}
