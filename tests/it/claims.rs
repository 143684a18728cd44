//! Claims by several processes, some of which are killed, and in several working trees of one repository.
#![expect(clippy::disallowed_methods, reason = "tests start processes, and edit files as people do")]

use std::collections::{HashMap, HashSet};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::Duration;

use serde_json::Value;

use crate::random::Random;
use crate::support::{NOW, Place, Ran};

mod elsewhere;
mod renumbered;
mod restored;

const LATER: &str = "2026-11-21T13:00:00Z";

fn place_with(steps: usize) -> Place {
    let place = Place::new();
    place.write("plans/p/plan.md", "# P\n");
    for n in 1..=steps {
        place.write(&format!("plans/p/step-{n}.md"), format!("# Step {n}\n"));
    }
    place.write("planwatch.toml", "max_attempts = 1000\n");
    place
}

/// The step and the id of a claim, from the command's output.
fn step_and_id(answer: &str) -> Option<(String, String)> {
    let answer: Value = serde_json::from_str(answer).ok()?;
    Some((answer["step"]["id"].as_str()?.to_owned(), answer["claim"]["id"].as_str()?.to_owned()))
}

/// Runs `claim` and kills it after a while, if it still runs then.
fn claim(place: &Place, now: &str, kill_after: Option<Duration>) -> (Option<(String, String)>, Option<i32>) {
    let mut command = place.command();
    command.args(["claim", "p", "--json", "--lease", "10m"]).env("PLANWATCH_NOW", now);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("the binary starts");
    if let Some(time) = kill_after {
        std::thread::park_timeout(time);
        child.kill().ok();
    }
    let mut answer = String::new();
    child.stdout.take().expect("it is piped").read_to_string(&mut answer).ok();
    let code = child.wait().expect("it ends").code();
    (step_and_id(&answer), code)
}

fn done(place: &Place, now: &str, (step, id): &(String, String)) -> Ran {
    let message = format!("result of {id}");
    let mut command = place.command();
    command.args(["done", step, "--claim", id, "-m", &message]).env("PLANWATCH_NOW", now);
    Ran::of(command.output().expect("the binary starts"))
}

/// Eight workers claim and complete steps until none is ready. Returns the claims that were completed.
fn work(place: &Place, now: &str, is_killing: bool) -> Vec<(String, String)> {
    let all = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for worker in 0..8 {
            let all = &all;
            scope.spawn(move || {
                let mut random = Random::new(worker);
                loop {
                    let kills = is_killing && random.below(3) == 0;
                    let time = Duration::from_micros(1_000 + random.below(30_000) as u64);
                    let (got, code) = claim(place, now, kills.then_some(time));
                    match got {
                        Some(got) => {
                            assert_eq!(done(place, now, &got).code, 0);
                            all.lock().expect("no worker panics").push(got);
                        }
                        None if code == Some(7) => break,
                        None => assert_eq!(code, None, "a claim failed without being killed"),
                    }
                }
            });
        }
    });
    all.into_inner().expect("no worker panics")
}

#[test]
fn each_step_is_completed_once_although_some_claimers_are_killed() {
    const STEPS: usize = 24;
    let place = place_with(STEPS);
    let mut all = work(&place, NOW, true);
    // The steps of killed processes can be claimed after their leases.
    all.extend(work(&place, LATER, false));
    let steps: HashSet<_> = all.iter().map(|(step, _)| step).collect();
    assert_eq!((all.len(), steps.len()), (STEPS, STEPS), "{all:?}");
    for (step, id) in &all {
        let text = place.text(&format!("plans/p/step-{}.md", &step[2..]));
        assert!(text.starts_with("---\nstatus: completed\n"), "{text}");
        assert_eq!(text.matches("outcome: completed").count(), 1, "{text}");
        assert_eq!(text.matches(&format!("result of {id}")).count(), 1, "{text}");
    }
}

#[test]
fn a_claim_ends_with_its_process_and_not_before() {
    let place = place_with(1);
    let mut worker = Command::new("sleep").arg("600").spawn().expect("sleep starts");
    let pid = worker.id().to_string();
    let first =
        step_and_id(&place.run(&format!("claim p --json --pid {pid}")).ok()).expect("a step is claimed");
    let later = |line: &str| {
        let mut command = place.command();
        command.args(line.split(' ')).env("PLANWATCH_NOW", LATER);
        Ran::of(command.output().expect("the binary starts"))
    };
    assert_eq!(later("claim p").code, 7);
    worker.kill().expect("it runs");
    worker.wait().expect("it ends");
    let second = step_and_id(&place.run("claim p --json").ok()).expect("a step is claimed");
    assert_eq!(first.0, second.0);
    assert!(place.text("plans/p/step-1.md").contains("outcome: interrupted"));
    assert_eq!(done(&place, NOW, &first).code, 4);
    assert_eq!(done(&place, NOW, &second).code, 0);
}

/// A process that ends with the test, or earlier.
struct Worker(std::process::Child);

impl Worker {
    fn start() -> Self {
        Self(Command::new("sleep").arg("600").stdout(Stdio::null()).spawn().expect("sleep starts"))
    }

    fn end(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.end();
    }
}

/// The prefix that starts a command in a time namespace with a shifted boot time; `None` if this machine does not permit it.
fn in_shifted_time() -> Option<Vec<&'static str>> {
    let prefixes = [
        "unshare --time --boottime 1000 --fork",
        "unshare --user --map-root-user --time --boottime 1000 --fork",
    ];
    let words = prefixes.map(|it| it.split(' ').collect::<Vec<_>>());
    let works = |it: &Vec<&str>| {
        let run = Command::new(it[0]).args(&it[1..]).arg("true").output();
        run.is_ok_and(|it| it.status.success())
    };
    words.into_iter().find(works)
}

#[test]
fn a_running_process_holds_its_claim_in_another_time_namespace() {
    let place = place_with(1);
    let mut worker = Worker::start();
    let claim = format!("claim p --json --pid {}", worker.0.id());
    let first = step_and_id(&place.run(&claim).ok()).expect("a step is claimed");
    let run = |prefix: &[&str], now: &str, line: &str| {
        let words = prefix.iter().copied().chain([env!("CARGO_BIN_EXE_planwatch")]).chain(line.split(' '));
        let words: Vec<_> = words.collect();
        let mut command = Command::new(words[0]);
        place.close_environment(&mut command);
        Ran::of(command.args(&words[1..]).env("PLANWATCH_NOW", now).output().expect("it starts"))
    };
    match in_shifted_time() {
        Some(prefix) => {
            assert_eq!(run(&prefix, NOW, "claim p").code, 7);
            let shown: Value =
                serde_json::from_str(&run(&prefix, NOW, "show p:1 --json").ok()).expect("JSON");
            assert_eq!(
                (&shown["claim"]["id"], &shown["lapsed"]),
                (&first.1.into(), &false.into()),
                "{shown}"
            );
        }
        None => {
            eprintln!("time namespaces are not permitted here; only a record of another namespace is tested");
        }
    }
    // The record as it would have been written in another namespace.
    let leases = place.file("plans/.planwatch/leases");
    let records =
        std::fs::read_dir(&leases).expect("there are records").map(|it| it.expect("readable").path());
    let record = records.into_iter().find(|it| it.file_name().is_some_and(|it| it.len() == 16)).expect("one");
    let original = std::fs::read(&record).expect("it can be read");
    let parsed: Value = serde_json::from_slice(&original).expect("JSON");
    let start = parsed["process"]["start"].as_u64().expect("a number");
    for (key, value) in [("clock", "time:[1]"), ("space", "pid:[1]")] {
        let mut other = parsed.clone();
        other["process"]["start"] = (start + 100_000).into();
        other["process"][key] = value.into();
        std::fs::write(&record, other.to_string()).expect("it can be written");
        assert_eq!(run(&[], NOW, "claim p").code, 7, "{key}");
        // If the process cannot be observed, the claim ends with its lease.
        assert_eq!(run(&[], LATER, "claim p --dry-run").code, 0, "{key}");
    }
    std::fs::write(&record, &original).expect("it can be written");
    assert_eq!(run(&[], LATER, "claim p").code, 7);
    worker.end();
    assert_eq!(run(&[], NOW, "claim p").code, 0);
}

fn git(place: &Place, directory: &Path, line: &str) {
    let mut command = Command::new("git");
    place.close_environment(&mut command);
    command.env("GIT_CONFIG_NOSYSTEM", "1").current_dir(directory);
    command.args(["-c", "user.name=ann", "-c", "user.email=ann@example.org"]).args(line.split(' '));
    let ran = Ran::of(command.output().expect("git is installed"));
    assert_eq!(ran.code, 0, "git {line}: {}", ran.stderr);
}

/// A repository with a second working tree, `other`, on a separate branch.
struct Repository {
    place: Place,
}

impl Repository {
    fn with(steps: usize) -> Self {
        let place = place_with(steps);
        let repository = Self { place };
        repository.git(".", "init -q -b main");
        repository.git(".", "add plans planwatch.toml");
        repository.git(".", "commit -q -m plans");
        repository.git(".", "worktree add -q -b other ../other");
        repository
    }

    fn git(&self, tree: &str, line: &str) {
        git(&self.place, &self.place.work().join(tree), line);
    }

    fn run(&self, tree: &str, line: &str) -> Ran {
        let mut command = self.place.command();
        command.current_dir(self.place.work().join(tree)).args(line.split(' '));
        Ran::of(command.output().expect("the binary starts"))
    }

    #[track_caller]
    fn claims(&self, tree: &str) -> (String, String) {
        step_and_id(&self.run(tree, "claim p --json").ok()).expect("a step is claimed")
    }

    #[track_caller]
    fn claims_nothing(&self, tree: &str) {
        let ran = self.run(tree, "claim p --json=state,why");
        assert_eq!(ran.code, 7, "{} {}", ran.stdout, ran.stderr);
    }
}

const HERE: &str = ".";
const OTHER: &str = "../other";

#[test]
fn two_working_trees_never_claim_the_same_step() {
    let repository = Repository::with(3);
    assert_eq!(repository.claims(HERE).0, "p:1");
    assert_eq!(repository.claims(OTHER).0, "p:2");
    assert_eq!(repository.claims(HERE).0, "p:3");
    repository.claims_nothing(OTHER);
    let named = repository.run(OTHER, "claim p:1");
    assert_eq!(named.code, 4);
    assert!(named.stderr.contains("in the working tree"), "{}", named.stderr);
    // A step that is released in one tree can be claimed in the other.
    repository.run(HERE, "release p:1").ok();
    assert_eq!(repository.claims(OTHER).0, "p:1");
}

#[test]
fn a_step_completed_on_another_branch_cannot_be_claimed_while_the_branch_exists() {
    let repository = Repository::with(1);
    repository.claims(OTHER);
    repository.run(OTHER, "done p:1").ok();
    repository.claims_nothing(HERE);
    // The branch still exists after its ref is packed and after its working tree is removed.
    repository.git(OTHER, "commit -q -am done");
    repository.git(HERE, "pack-refs --all");
    repository.claims_nothing(HERE);
    repository.git(HERE, "worktree remove --force ../other");
    repository.claims_nothing(HERE);
    repository.git(HERE, "branch -q -D other");
    assert_eq!(repository.claims(HERE).0, "p:1");
}

#[test]
fn a_step_counts_as_closed_on_the_branch_on_which_its_work_ended() {
    let repository = Repository::with(1);
    repository.claims(HERE);
    repository.git(HERE, "checkout -q -b feature");
    repository.run(HERE, "done p:1").ok();
    repository.git(HERE, "commit -q -am done");
    repository.git(HERE, "checkout -q main");
    let claim = "claim p:1 --by bob";
    for refused in [at(&repository.place, LATER, claim), repository.run(OTHER, claim)] {
        assert_eq!(refused.code, 4, "{refused:?}");
        assert!(refused.stderr.contains("closed on feature"), "{refused:?}");
    }
}

#[test]
fn a_step_completed_on_another_branch_cannot_be_claimed_even_with_a_long_log() {
    let repository = Repository::with(2);
    repository.claims(OTHER);
    repository.run(OTHER, "done p:1").ok();
    let records = repository.place.file(".git/planwatch");
    let names =
        std::fs::read_dir(&records).expect("there are records").map(|it| it.expect("readable").path());
    let is_log = |it: &PathBuf| it.to_string_lossy().contains("closed");
    let log = names.into_iter().find(is_log).expect("the log has the claim");
    let line = std::fs::read_to_string(&log).expect("it is text");
    let other = |nth: usize| line.replace("\"p:1\"", &format!("\"q:{nth}\""));
    let others: String = (0..80_000).map(other).collect();
    assert!(others.len() > 16 << 20, "more than any record may hold");
    // The name of the log in this release, and in earlier ones.
    for name in [&log, &records.join("closed")] {
        std::fs::write(name, format!("{others}{line}")).expect("it can be written");
        let ran = repository.run(HERE, "claim p:1");
        assert_eq!(ran.code, 4, "{}", ran.stdout);
        assert!(ran.stderr.contains("was closed on other"), "{}", ran.stderr);
        std::fs::remove_file(name).expect("it is there");
    }
    assert_eq!(repository.claims(HERE).0, "p:1");
}

#[test]
fn a_step_completed_on_a_merged_branch_can_be_reopened() {
    let repository = Repository::with(1);
    repository.claims(OTHER);
    repository.run(OTHER, "done p:1").ok();
    repository.git(OTHER, "commit -q -am done");
    repository.git(HERE, "merge -q other");
    assert_eq!(repository.run(HERE, "claim p --json=state").stdout.matches("complete").count(), 1);
    repository.run(HERE, "reopen p:1").ok();
    assert_eq!(repository.claims(HERE).0, "p:1");
}

#[test]
fn a_lapsed_claim_that_another_tree_took_over_is_lost() {
    let repository = Repository::with(1);
    let (_, old) = repository.claims(HERE);
    let later = |tree: &str, line: &str| {
        let mut command = repository.place.command();
        command.current_dir(repository.place.work().join(tree)).env("PLANWATCH_NOW", LATER);
        Ran::of(command.args(line.split(' ')).output().expect("the binary starts"))
    };
    assert_eq!(step_and_id(&later(OTHER, "claim p --json --by bob").ok()).expect("it has lapsed").0, "p:1");
    for line in ["claim --renew", "done p:1 -m late --claim", "attempt p:1 tried --claim"] {
        let refused = later(HERE, &format!("{line} {old}"));
        assert_eq!(refused.code, 4, "{line}: {}", refused.stdout);
        assert!(refused.stderr.contains("claim-lost"), "{line}: {}", refused.stderr);
    }
    let refused = later(HERE, "done p:1");
    assert!(refused.stderr.contains("`p:1` is claimed by bob"), "{}", refused.stderr);
    // The old claim stays lost after the step was completed in the other tree.
    assert_eq!(later(OTHER, "done p:1 --by bob").code, 0);
    assert!(later(HERE, &format!("claim --renew {old}")).stderr.contains("claim-lost"));
    assert!(later(HERE, "done p:1").stderr.contains("`p:1` was closed on "));
}

#[test]
fn a_claim_is_not_taken_over_if_an_editor_completed_its_step_in_another_tree() {
    let repository = Repository::with(1);
    repository.claims(OTHER);
    let file = repository.place.work().join(OTHER).join("plans/p/step-1.md");
    std::fs::write(&file, "---\nstatus: completed\n---\n# Step 1\n").expect("it can be written");
    let mut command = repository.place.command();
    command.args(["claim", "p"]).env("PLANWATCH_NOW", LATER);
    assert_eq!(Ran::of(command.output().expect("the binary starts")).code, 7);
}

#[test]
fn a_detached_head_counts_while_its_working_tree_exists() {
    let repository = Repository::with(1);
    repository.git(OTHER, "checkout -q --detach");
    repository.claims(OTHER);
    repository.run(OTHER, "done p:1").ok();
    repository.claims_nothing(HERE);
    repository.git(HERE, "worktree remove --force ../other");
    assert_eq!(repository.claims(HERE).0, "p:1");
}

#[test]
fn a_branch_without_a_commit_counts_while_its_working_tree_exists() {
    let repository = Repository::with(1);
    repository.git(OTHER, "symbolic-ref HEAD refs/heads/unborn");
    repository.claims(OTHER);
    repository.run(OTHER, "done p:1").ok();
    repository.claims_nothing(HERE);
    repository.git(HERE, "worktree remove --force ../other");
    assert_eq!(repository.claims(HERE).0, "p:1");
}

#[test]
fn claims_that_cannot_be_shared_are_refused_if_there_is_another_working_tree() {
    let repository = Repository::with(2);
    // A file in place of the directory prevents writing even for an administrator.
    repository.place.write(".git/planwatch", "");
    let refused = repository.run(OTHER, "claim p --json");
    assert_eq!(refused.code, 4);
    assert!(refused.stderr.contains("claims-not-shared"), "{}", refused.stderr);
    let doctor = |directory| {
        let report = repository.run(directory, "doctor --json").json();
        let checks = report["checks"].as_array().expect("a list").clone();
        checks.into_iter().find(|it| it["name"] == "claims").expect("doctor reports it")
    };
    let check = doctor(OTHER);
    assert_eq!(check["state"], "problem");
    assert!(check["value"].as_str().expect("a text").starts_with("claims-not-shared: "), "{check}");
    assert_eq!(repository.run(OTHER, "claim p:1 --force").code, 0);
    repository.git(HERE, "worktree remove --force ../other");
    assert_eq!(doctor(HERE)["state"], "note");
    let alone = repository.run(HERE, "claim p");
    assert_eq!(alone.code, 0);
    assert!(alone.stderr.contains("will not see claims"), "{}", alone.stderr);
    assert_eq!(repository.run(HERE, "claim p:1").code, 4);
}

#[test]
fn eight_claimers_in_two_working_trees_get_different_steps() {
    let repository = Repository::with(8);
    let children = (0..8).map(|n| {
        let mut command = repository.place.command();
        command.current_dir(repository.place.work().join([HERE, OTHER][n % 2]));
        command.args(["claim", "p", "--json"]).stdout(Stdio::piped()).spawn().expect("the binary starts")
    });
    let children: Vec<_> = children.collect();
    let mut steps = HashMap::new();
    for child in children {
        let answer = child.wait_with_output().expect("it ends").stdout;
        let (step, id) = step_and_id(&String::from_utf8_lossy(&answer)).expect("a step is claimed");
        assert_eq!(steps.insert(step, id), None);
    }
}

fn at(place: &Place, now: &str, line: &str) -> Ran {
    let mut command = place.command();
    command.args(line.split(' ')).env("PLANWATCH_NOW", now);
    Ran::of(command.output().expect("the binary starts"))
}

#[test]
fn an_unknown_claim_is_an_error_and_changes_nothing() {
    let place = place_with(1);
    place.run("claim p").ok();
    let before = place.text("plans/p/step-1.md");
    for line in ["done p:1 -m x", "attempt p:1 tried", "release p:1 -m x", "set p:1 status blocked"] {
        let refused = place.run(&format!("{line} --claim hffffffff"));
        assert_eq!(refused.code, 4, "{line}");
        assert!(refused.stderr.contains("unknown-claim"), "{line}: {}", refused.stderr);
        assert_eq!(place.text("plans/p/step-1.md"), before, "{line}");
    }
}

#[test]
fn the_late_result_of_a_released_claim_is_recorded() {
    let place = place_with(1);
    let first = step_and_id(&place.run("claim p --json").ok()).expect("a step is claimed");
    place.run("release p:1").ok();
    assert!(done(&place, NOW, &first).stderr.contains("claim-lost"));
    place.run("claim p --by bob").ok();
    assert!(done(&place, NOW, &first).stderr.contains("claim-lost"));
    let text = place.text("plans/p/step-1.md");
    assert_eq!(text.matches(&format!("late result of the claim {}", first.1)).count(), 1, "{text}");
}

#[test]
fn undo_restores_a_claim_for_the_rest_of_its_lease() {
    for is_in_git in [false, true] {
        let repository = Repository::with(1);
        if !is_in_git {
            std::fs::remove_dir_all(repository.place.file(".git")).expect("it is there");
        }
        let place = &repository.place;
        let claim = step_and_id(&place.run("claim p --json").ok()).expect("a step is claimed");
        assert_eq!(done(place, NOW, &claim).code, 0);
        place.run("undo").ok();
        assert_eq!(place.run("claim p --by bob").code, 7, "it holds");
        assert!(at(place, LATER, "list p").stdout.contains("lapsed"));
        assert_eq!(at(place, LATER, "claim p --by bob --dry-run").code, 0, "its lease is over");
        // After the release the step is not closed in any tree.
        place.run("release p:1").ok();
        assert_eq!(place.run("claim p --by bob").code, 0);
    }
}

#[test]
fn the_claim_of_a_removed_working_tree_can_be_ended() {
    let repository = Repository::with(1);
    repository.claims(OTHER);
    repository.git(HERE, "worktree remove --force ../other");
    let refused = repository.run(HERE, "claim p:1");
    assert!(refused.stderr.contains("which no longer exists"), "{}", refused.stderr);
    assert_eq!(repository.run(HERE, "release p:1 --by bob").code, 4, "the claim is not bob's");
    repository.run(HERE, "release p:1").ok();
    assert_eq!(repository.claims(HERE).0, "p:1");
}

#[test]
fn next_skips_a_step_that_claim_would_fail() {
    let place = place_with(2);
    place.write("planwatch.toml", "max_attempts = 1\n");
    place.run("claim p:1 --lease 10m").ok();
    assert_eq!(at(&place, NOW, "next p --json=step").json()["step"]["id"], "p:2");
    // The claim of the first step has lapsed, and no further attempt is allowed.
    assert_eq!(at(&place, LATER, "next p --json").json()["step"]["id"], "p:2");
    assert_eq!(step_and_id(&at(&place, LATER, "claim p --json").ok()).expect("one is left").0, "p:2");
    assert!(place.text("plans/p/step-1.md").contains("status: failed"));
    let other = place_with(1);
    other.write("planwatch.toml", "max_attempts = 1\n");
    other.run("claim p:1 --lease 10m").ok();
    let next = at(&other, LATER, "next p");
    assert_eq!(next.code, 7);
    assert!(next.stdout.contains("step 1 has used all its attempts"), "{}", next.stdout);
}

#[test]
fn a_step_that_undo_reopened_can_be_claimed_again() {
    let repository = Repository::with(1);
    repository.claims(HERE);
    repository.run(HERE, "done p:1").ok();
    repository.run(HERE, "undo").ok();
    repository.run(HERE, "undo").ok();
    assert_eq!(repository.claims(HERE).0, "p:1");
}

#[test]
fn a_claim_moves_with_a_step_that_a_list_renumbers() {
    let place = place_with(3);
    let (step, claim) = step_and_id(&place.run("claim p:3 --json").ok()).expect("a step is claimed");
    assert_eq!(step, "p:3");
    place.write("list.md", "- Step 3\n- Step 1\n- Step 2\n");
    assert_eq!(place.run("replace p --file list.md").code, 0);
    // The lease is unchanged. Without a record the claim would last for a day.
    assert_eq!(place.run("claim p:0 --by bob").code, 4);
    assert_eq!(at(&place, LATER, "claim p:0 --by bob --dry-run").code, 0);
    assert_eq!(place.run(&format!("done p:0 --claim {claim}")).code, 0);
    assert_eq!(place.run("claim p:2 --by bob").code, 0);
    place.write("list.md", "- Step 2\n- Step 1\n");
    assert_eq!(place.run("replace p --file list.md").code, 4, "it is bob's");
    assert_eq!(place.run("replace p --file list.md --force").code, 0);
    assert!(place.text("plans/p/step-0.5.md").contains("text: moved with --force from 2 to 0.5"));
}
