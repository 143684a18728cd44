//! `run` with scripts as agents, which succeed, fail, do not report, hang, flood, crash, report falsely, or change commands.
#![expect(clippy::disallowed_methods, reason = "tests start processes, and edit files as people do")]

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::{Lines, Place, Ran, lines_of};

/// Reports that the step is completed.
const GOOD: &str = "planwatch done \"$PLANWATCH_STEP\" -m 'did it' || exit 9";

fn place_with(steps: &[&str]) -> Place {
    let place = Place::new();
    place.write("plans/p/plan.md", "# P\n");
    for (at, header) in steps.iter().enumerate() {
        let n = at + 1;
        let header = if header.is_empty() { String::new() } else { format!("---\n{header}\n---\n") };
        place.write(&format!("plans/p/step-{n}.md"), format!("{header}# Step {n}\n\nDo it.\n"));
    }
    place
}

/// Writes an agent's script. `$n` is the number of the step, and `$tries` the number of earlier tries.
fn agent(place: &Place, name: &str, script: &str) {
    let head = "n=${PLANWATCH_STEP#*:}\ntries=$(cat \"tries-$n\" 2>/dev/null || echo 0)\necho $((tries + 1)) > \"tries-$n\"\n";
    place.write(name, format!("{head}{script}\n"));
}

fn run_command(place: &Place, more: &str) -> Command {
    let mut command = place.command();
    command.args(["run", "p", "--command", "sh ./agent.sh"]).args(more.split_whitespace());
    command
}

/// Runs the plan with one agent to its end.
fn run(place: &Place, script: &str, more: &str) -> Ran {
    agent(place, "agent.sh", script);
    Ran::of(run_command(place, more).output().expect("the binary starts"))
}

pub(crate) fn step(place: &Place, n: &str) -> Value {
    place.run_with(&["--json", "show", &format!("p:{n}")]).json()
}

pub(crate) fn outcomes(place: &Place, n: &str) -> Vec<String> {
    let step = step(place, n);
    let attempts = step["attempts"].as_array().expect("there is a list");
    attempts.iter().map(|it| it["outcome"].as_str().unwrap_or_default().to_owned()).collect()
}

fn status(place: &Place, n: &str) -> String {
    step(place, n)["status"].as_str().expect("it has one").to_owned()
}

/// The hash that `trust` needs for the verification of a step.
fn hash_of(place: &Place, name: &str) -> String {
    let list = place.run("trust --json").json();
    let items = list["items"].as_array().expect("there is a list").clone();
    let item = items.into_iter().find(|it| it["name"] == name).unwrap_or_else(|| panic!("{name} is missing"));
    item["hash"].as_str().expect("it has one").to_owned()
}

fn trust(place: &Place, name: &str) {
    place.run(&format!("trust {name} --trust-hash {}", hash_of(place, name))).ok();
}

/// Waits until a process has ended. A zombie counts as ended.
fn wait_until_gone(pid: &str) {
    let end = Instant::now() + Duration::from_secs(60);
    let is_there = || {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
        !stat.is_empty() && !stat.contains(") Z ")
    };
    while is_there() {
        assert!(Instant::now() < end, "the process {pid} is still there");
        std::thread::yield_now();
    }
}

fn signal(child: &Child, name: &str) {
    let pid = child.id().to_string();
    assert!(Command::new("kill").args(["-s", name, &pid]).status().expect("kill is there").success());
}

/// Starts a run and waits until its agent prints `ready`.
fn started(place: &Place, script: &str, more: &str) -> (Child, Lines) {
    agent(place, "agent.sh", script);
    let mut child = run_command(place, more)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    let mut lines = lines_of(child.stdout.take().expect("it is piped"));
    while lines.next() != "ready" {}
    (child, lines)
}

fn git(place: &Place) {
    let mut command = Command::new("git");
    place.close_environment(&mut command);
    assert!(command.args(["init", "-q"]).status().expect("git is installed").success());
}

#[test]
fn a_plan_is_executed_with_a_process_for_each_step() {
    let place = place_with(&["", "depends: [1]", "depends: [2]"]);
    let ran = run(&place, &format!("cat > \"prompt-$n\"; env > \"env-$n\"; {GOOD}"), "");
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{}", ran.stdout);
    assert!(ran.stdout.contains("complete: all steps are completed or skipped"), "{}", ran.stdout);
    let text = place.text("plans/p/step-2.md");
    let claim = step(&place, "2")["attempts"][0]["claim"].as_str().expect("it names the claim").to_owned();
    let expected = format!(
        "---\nstatus: completed\ndepends: [1]\nattempts:\n  - at: 2026-11-21T12:00:00Z\n    by: shell\n    outcome: completed\n    \
         notes: did it\n    claim: {claim}\n    seconds: 0\n    log: \".planwatch/logs/p-2-{claim}.log\"\n---\n# Step 2\n\nDo it.\n"
    );
    assert_eq!(text, expected);
    let prompt = place.text("prompt-2");
    assert!(prompt.contains("Do it.") && prompt.contains("planwatch done p:2") && !prompt.contains("Step 3"));
    let env = place.text("env-2");
    for line in [
        "PLANWATCH_PLAN=p".to_owned(),
        "PLANWATCH_STEP=p:2".to_owned(),
        format!("PLANWATCH_CLAIM={claim}"),
        format!("PLANS_DIR={}", place.file("plans").display()),
    ] {
        assert!(env.lines().any(|it| it == line), "{line} is missing in\n{env}");
    }
    // A complete plan stays complete.
    assert_eq!(run(&place, "exit 1", "").code, 0);
}

#[test]
fn a_step_without_a_report_is_tried_again_until_the_limit() {
    let place = place_with(&["", "depends: [1]"]);
    let ran = run(&place, "echo 'I am done, really'", "");
    assert_eq!(ran.code, 1, "{}", ran.stdout);
    assert!(ran.stdout.contains("planwatch reopen p:1"), "{}", ran.stdout);
    assert_eq!(outcomes(&place, "1"), ["no outcome reported"; 3]);
    assert_eq!((status(&place, "1"), status(&place, "2")), ("failed".to_owned(), "pending".to_owned()));
    let attempt = &step(&place, "1")["attempts"][0];
    assert_eq!((&attempt["exit_code"], &attempt["notes"]), (&0.into(), &"I am done, really".into()));
    // No step is started until a person reopens one.
    assert_eq!(run(&place, GOOD, "").code, 7);
    place.run("reopen p:1").ok();
    assert_eq!(run(&place, GOOD, "").code, 0);
}

#[test]
fn two_tries_without_a_result_or_a_change_stop_the_run() {
    let place = place_with(&[""]);
    git(&place);
    agent(&place, "agent.sh", "");
    place.write("tries-1", "0\n");
    place.write("agent.sh", "exit 3\n");
    let mut command = run_command(&place, "");
    let ran = Ran::of(command.args(["--max-attempts", "9"]).output().expect("the binary starts"));
    assert_eq!((ran.code, outcomes(&place, "1").len()), (1, 2), "{}", ran.stdout);
    assert!(ran.stdout.contains("twice"), "{}", ran.stdout);
    assert_eq!(status(&place, "1"), "pending");
    // If each try changes something, the run continues to the limit.
    place.run("reopen p:1 -m again").ok();
    let ran = run(&place, "exit 3", "--max-attempts 4");
    assert_eq!((ran.code, status(&place, "1").as_str()), (1, "failed"), "{}", ran.stdout);
    assert_eq!(place.text("tries-1"), "4\n");
}

#[test]
fn a_worker_that_reports_a_failure_is_followed_by_another() {
    let place = place_with(&["", ""]);
    let script =
        format!("if [ $tries = 0 ]; then planwatch fail $PLANWATCH_STEP -m 'not yet'; else {GOOD}; fi");
    let ran = run(&place, &script, "");
    assert_eq!(ran.code, 0, "{}", ran.stdout);
    assert_eq!(outcomes(&place, "1"), ["failed", "completed"]);
    assert_eq!(outcomes(&place, "2"), ["failed", "completed"]);
}

#[test]
fn a_blocked_step_stops_the_run_and_a_skipped_one_does_not() {
    let place = place_with(&["", "", ""]);
    let script = format!(
        "case $n in 1) planwatch skip $PLANWATCH_STEP -m 'not needed';; 2) planwatch block $PLANWATCH_STEP -m 'no access';; *) {GOOD};; esac"
    );
    let ran = run(&place, &script, "");
    assert_eq!(ran.code, 1, "{}", ran.stdout);
    let all: Vec<_> = ["1", "2", "3"].iter().map(|it| status(&place, it)).collect();
    assert_eq!(all, ["skipped", "blocked", "pending"]);
}

#[test]
fn steps_added_by_a_worker_are_executed_in_order() {
    let place = place_with(&["", ""]);
    let script = format!("echo $n >> order; [ $n = 1 ] && planwatch add p 'More' --after 1; {GOOD}");
    let ran = run(&place, &script, "");
    assert_eq!(ran.code, 0, "{}", ran.stdout);
    assert_eq!(place.text("order"), "1\n1.5\n2\n");
    assert_eq!(step(&place, "1.5")["created_by"], "agent");
}

#[test]
fn a_silent_or_slow_agent_is_killed_with_all_its_children() {
    let both = ["--idle 3s", "--timeout 3s"].map(|limit| {
        thread::spawn(move || {
            let place = place_with(&[""]);
            let script = "sh -c 'trap \"\" TERM; echo $$ > stubborn; sleep 600 & wait; sleep 600' &\nsleep 600 & echo $! > child\necho $$ > leader\nwait";
            let ran = run(&place, script, &format!("{limit} --max-attempts 1"));
            assert_eq!(ran.code, 1, "{}", ran.stdout);
            assert_eq!(
                (outcomes(&place, "1"), status(&place, "1").as_str()),
                (vec!["timed out".to_owned()], "failed")
            );
            ["leader", "child", "stubborn"].iter().for_each(|it| wait_until_gone(&place.text(it)));
        })
    });
    both.into_iter().for_each(|it| it.join().expect("the assertions hold"));
}

#[test]
fn a_flood_of_output_is_cut_and_does_not_prevent_the_report() {
    let place = place_with(&[""]);
    let ran = run(&place, &format!("yes flood | head -c 40000000; {GOOD}"), "-q");
    assert_eq!((ran.code, ran.stdout.as_str()), (0, ""));
    let log = step(&place, "1")["attempts"][0]["log"].as_str().expect("it names its log").to_owned();
    let log = place.bytes(&format!("plans/{log}"));
    assert!((16 << 20..17 << 20).contains(&log.len()), "{}", log.len());
    assert!(String::from_utf8_lossy(&log).trim_end().ends_with("is left out]"));
    let text = place.text("plans/p/step-1.md");
    assert!(text.len() < 1_000, "{text}");
    place.run("reopen p:1 -q").ok();
    let shown = Ran::of(run_command(&place, "").output().expect("the binary starts")).stdout;
    assert!(shown.contains(" is left out]\n✓ p:1 completed"), "{}", &shown[shown.len() - 300..]);
}

#[test]
fn a_crash_is_an_attempt_with_the_end_of_the_output() {
    let place = place_with(&[""]);
    let ran = run(
        &place,
        "yes 'a long line of words' | head -n 2000; echo last words; kill -9 $$",
        "--max-attempts 1",
    );
    assert_eq!(ran.code, 1);
    let attempt = step(&place, "1")["attempts"][0].clone();
    assert_eq!((&attempt["outcome"], &attempt["exit_code"]), (&"no outcome reported".into(), &137.into()));
    let notes = attempt["notes"].as_str().expect("there are notes");
    let is_cut = notes.starts_with("[cut; more is in .planwatch/logs/p-1-");
    assert!(is_cut && notes.contains("\nlast words"), "{notes}");
    assert!(notes.chars().count() < 4_200, "{}", notes.len());
}

#[test]
fn a_false_report_is_detected_by_the_verification() {
    let place = place_with(&[
        "verify: ['test -f made', {run: 'test -f here && env > verifying', dir: sub}]",
        "depends: [1]",
    ]);
    place.write("sub/here", "");
    let script = format!("[ $tries -gt 0 ] && touch made; {GOOD}");
    // Without trust, and without a terminal to ask at, the step is not started.
    let ran = run(&place, &script, "");
    assert_eq!((ran.code, status(&place, "1").as_str()), (5, "pending"), "{}", ran.stderr);
    assert!(ran.stderr.contains("planwatch trust p:1 --trust-hash"), "{}", ran.stderr);
    assert!(!place.file("tries-1").exists());
    let ran = run(&place, &script, &format!("--trust-hash {}", hash_of(&place, "p:1")));
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    assert_eq!(outcomes(&place, "1"), ["completed", "verify failed", "completed"]);
    let attempts = step(&place, "1")["attempts"].clone();
    assert_eq!(attempts[1]["notes"], "`test -f made` ended with exit code 1");
    // The variable identifies the process for the next run, if this one is killed.
    let mark = format!("PLANWATCH_VERIFY={}", attempts[2]["claim"].as_str().expect("it names the claim"));
    let env = place.text("sub/verifying");
    assert!(env.lines().any(|it| it == mark) && !env.contains("PLANWATCH_CLAIM"), "{env}");
    assert_eq!(outcomes(&place, "2"), ["completed"]);
}

#[test]
fn a_change_of_the_verification_stops_the_run() {
    for change in
        ["sed -i 's/test -f made/true/' plans/p/step-1.md", "printf '#!/bin/sh\\ntrue\\n' > check.sh"]
    {
        let place = place_with(&["verify: ['test -f made', './check.sh']", "depends: [1]"]);
        place.write("check.sh", "#!/bin/sh\ntest -f made\n");
        Command::new("chmod").arg("+x").arg(place.file("check.sh")).status().expect("chmod is there");
        trust(&place, "p:1");
        let ran = run(&place, &format!("touch made; {change}; {GOOD}"), "");
        assert_eq!(ran.code, 1, "{change}: {}", ran.stdout);
        assert_eq!(outcomes(&place, "1"), ["completed", "verify changed"], "{change}");
        assert_eq!(status(&place, "1"), "blocked");
    }
}

#[test]
fn a_forced_completion_of_a_step_with_verification_stops_the_run() {
    let place = place_with(&["verify: ['false']", "depends: [1]"]);
    trust(&place, "p:1");
    let force = "env -u PLANWATCH_CLAIM -u PLANWATCH_STEP PLANWATCH_BY=eve planwatch done p:1 --force";
    let ran = run(&place, force, "");
    assert_eq!((ran.code, status(&place, "2").as_str()), (1, "pending"), "{}", ran.stdout);
    assert!(ran.stdout.contains("`p:1` was completed with --force"), "{}", ran.stdout);
}

#[test]
fn a_save_of_an_older_text_neither_loses_the_step_nor_closes_it_unverified() {
    // The editor opened the file before the claim.
    let place = place_with(&["verify: ['test -f made']"]);
    trust(&place, "p:1");
    let save = "printf -- '---\\nstatus: completed\\nverify: [test -f made]\\n---\\n# Step 1\\n' > plans/p/step-1.md";
    let ran = run(&place, &format!("[ $tries -gt 0 ] && touch made; {save}"), "");
    assert_eq!(ran.code, 0, "{}", ran.stdout);
    // The second save removed the first attempt, as it would remove any text.
    assert_eq!(outcomes(&place, "1"), ["completed"]);
    let place = place_with(&[""]);
    let save = "printf '# Step 1\\n\\nchanged\\n' > plans/p/step-1.md";
    let ran = run(&place, &format!("if [ $tries = 0 ]; then {save}; else {GOOD}; fi"), "");
    assert_eq!(ran.code, 0, "{}", ran.stdout);
    assert_eq!(outcomes(&place, "1"), ["no outcome reported", "completed"]);
    assert!(place.text("plans/p/step-1.md").contains("changed"));
}

#[test]
fn a_status_edited_in_the_file_counts_as_a_report() {
    let place = place_with(&["", ""]);
    let script = "if [ $n = 1 ]; then word=completed; else word=failed; fi\nsed -i \"s/^status: in_progress/status: $word/\" plans/p/step-$n.md";
    let ran = run(&place, script, "--max-attempts 1");
    assert_eq!(ran.code, 1, "{}", ran.stdout);
    assert_eq!(
        (outcomes(&place, "1"), outcomes(&place, "2")),
        (vec!["completed".to_owned()], vec!["failed".to_owned()])
    );
    assert!(
        !place.text("plans/p/step-1.md").contains("claim: {")
            && !place.text("plans/p/step-2.md").contains("claim: {")
    );
}

#[test]
fn remaining_children_are_killed_and_detached_ones_are_not_waited_for() {
    let place = place_with(&[""]);
    let script = format!("sleep 600 & echo $! > child\nsetsid sleep 600 & echo $! > left\n{GOOD}");
    let ran = run(&place, &script, "");
    assert_eq!(ran.code, 0, "{}", ran.stdout);
    wait_until_gone(&place.text("child"));
    let left = place.text("left");
    assert!(Path::new(&format!("/proc/{}", left.trim())).exists());
    Command::new("kill").arg(left.trim()).status().expect("kill is there");
}

#[test]
fn a_gate_stops_the_run_and_an_agent_cannot_open_it() {
    let place = place_with(&["", "confirm: required\ndepends: [1]"]);
    let ran = run(&place, &format!("planwatch confirm p:2 && exit 8; {GOOD}"), "");
    assert_eq!(ran.code, 5, "{}", ran.stdout);
    assert!(ran.stdout.contains("planwatch confirm p:2"), "{}", ran.stdout);
    let place = place_with(&["", "confirm: required\ndepends: [1]"]);
    let write = "sed -i 's/^confirm: required/confirm: required\\nconfirmed: {by: ann, at: 2026-11-21T12:00:00Z}/' plans/p/step-2.md";
    let ran = run(&place, &format!("{write}; {GOOD}"), "");
    assert_eq!(ran.code, 5, "{}", ran.stdout);
    assert!(ran.stdout.contains("`p:2` was confirmed while"), "{}", ran.stdout);
    assert_eq!((status(&place, "1").as_str(), status(&place, "2").as_str()), ("completed", "pending"));
}

#[test]
fn the_next_run_continues_after_a_killed_one() {
    let place = place_with(&["", "depends: [1]"]);
    let (mut child, _lines) = started(&place, "echo $$ > leader\necho ready\nsleep 600", "");
    child.kill().expect("it runs");
    child.wait().expect("it ends");
    let ran = run(&place, GOOD, "");
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    wait_until_gone(&place.text("leader"));
    assert_eq!(outcomes(&place, "1"), ["interrupted", "completed"]);
    assert_eq!(outcomes(&place, "2"), ["completed"]);
}

#[test]
fn a_step_that_a_killed_run_did_not_verify_stays_open_and_is_verified_first() {
    let place = place_with(&["verify: ['test -f made']", "depends: [1]"]);
    trust(&place, "p:1");
    let (mut child, _lines) = started(&place, &format!("touch made; {GOOD}; echo ready; sleep 600"), "");
    // While the run exists, the step stays claimed, whatever the file says.
    assert!(place.text("plans/p/step-1.md").contains("status: completed\n"));
    assert_eq!((status(&place, "1").as_str(), place.run("claim p").code), ("in_progress", 7));
    child.kill().expect("it runs");
    child.wait().expect("it ends");
    let list = place.run("list p").ok();
    assert!(list.contains("completed (not verified)"), "{list}");
    assert_eq!((step(&place, "1")["unverified"].clone(), place.run("next p").code), (true.into(), 7));
    assert_eq!(place.run("note p:1 remark").code, 0);
    assert_eq!(step(&place, "1")["unverified"], true);
    let ran = run(&place, &format!("[ $n = 1 ] && exit 9; {GOOD}"), "");
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    assert_eq!(
        (outcomes(&place, "1"), outcomes(&place, "2")),
        (vec!["completed".to_owned()], vec!["completed".to_owned()])
    );
    assert!(!place.text("plans/p/step-1.md").contains("claim: {"));
}

#[test]
fn a_step_without_verification_is_completed_although_its_run_was_killed() {
    let place = place_with(&["", "depends: [1]"]);
    let (mut child, _lines) = started(&place, &format!("{GOOD}; echo ready; sleep 600"), "");
    assert_eq!(status(&place, "1"), "in_progress");
    child.kill().expect("it runs");
    child.wait().expect("it ends");
    assert_eq!(status(&place, "1"), "completed");
    let has_claim = || place.text("plans/p/step-1.md").contains("claim: {");
    assert!(has_claim());
    assert_eq!(run(&place, GOOD, "").code, 0);
    assert_eq!((outcomes(&place, "1"), has_claim()), (vec!["completed".to_owned()], false));
    assert_eq!(place.run("check").code, 0);
}

#[test]
fn a_person_decides_about_an_unverified_step() {
    for (verb, expected) in [("done", "completed"), ("reopen", "pending")] {
        let place = place_with(&[
            "status: completed\nclaim: {id: \"h4f09a21\", by: \"claude\", at: 2026-11-21T11:00:00Z}\nverify: ['false']",
        ]);
        assert_eq!(status(&place, "1"), "in_progress");
        assert_eq!(place.run("check").code, 0);
        place.run(&format!("{verb} p:1")).ok();
        assert_eq!(status(&place, "1"), expected);
        assert!(!place.text("plans/p/step-1.md").contains("claim: {"));
    }
}

#[test]
fn two_runs_on_one_plan_complete_each_step_once() {
    let place = place_with(&["touches: [a]", "touches: [b]", "touches: [c]", "", "", "depends: [1, 2, 3]"]);
    agent(&place, "agent.sh", GOOD);
    let start = || {
        let mut command = run_command(&place, "");
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the binary starts")
    };
    let (one, other) = (start(), start());
    for child in [one, other] {
        let ran = Ran::of(child.wait_with_output().expect("it ends"));
        assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{}", ran.stdout);
    }
    for n in ["1", "2", "3", "4", "5", "6"] {
        assert_eq!(
            (outcomes(&place, n), place.text(&format!("tries-{n}"))),
            (vec!["completed".to_owned()], "1\n".to_owned())
        );
    }
}

#[test]
fn steps_run_in_parallel_unless_they_change_the_same_files() {
    // Each agent waits until the other has started, so a single one would never end.
    let place = place_with(&["touches: [web/**]", "touches: [api/**]"]);
    let meet = "touch begun-$n; while [ ! -f begun-1 ] || [ ! -f begun-2 ]; do sleep 0.01; done";
    let ran = run(&place, &format!("{meet}; printf 'a\\nb\\n'; {GOOD}"), "--jobs 2 --timeout 50s");
    assert_eq!(ran.code, 0, "{}", ran.stdout);
    assert!(ran.stdout.contains("p:1 │ a\np:1 │ b\n"), "{}", ran.stdout);
    let alone = "mkdir alone || echo $n >> together; sleep 0.05; rmdir alone";
    let place = place_with(&["touches: [web/**]", "touches: [web/a.js]", "", ""]);
    let ran = run(&place, &format!("{alone}; {GOOD}"), "--jobs 3");
    assert_eq!(ran.code, 0, "{}", ran.stdout);
    assert!(!place.file("together").exists());
}

#[test]
fn ctrl_c_ends_the_agent_and_leaves_the_step_pending() {
    let place = place_with(&["", ""]);
    let (child, lines) = started(&place, "echo $$ > leader\necho ready\nsleep 600", "");
    signal(&child, "INT");
    let output = lines.end().join("\n");
    let ran = Ran::of(child.wait_with_output().expect("it ends"));
    assert_eq!(ran.code, 130, "{output}");
    assert!(output.contains("interrupted: the run was stopped"), "{output}");
    wait_until_gone(&place.text("leader"));
    assert_eq!(
        (outcomes(&place, "1"), status(&place, "1").as_str()),
        (vec!["interrupted".to_owned()], "pending")
    );
    assert_eq!(step(&place, "1")["attempts"][0]["exit_code"], 130);
    assert!(!place.text("plans/p/step-1.md").contains("claim: {"));
}

#[test]
fn the_limits_of_a_run_end_it() {
    let place = place_with(&["", "", ""]);
    let ran = run(&place, GOOD, "--max-steps 2");
    assert_eq!(
        (ran.code, status(&place, "2").as_str(), status(&place, "3").as_str()),
        (1, "completed", "pending")
    );
    assert_eq!(run(&place, "", "--budget 1").code, 2);
    place.write(
        "../home/config/planwatch/planwatch.toml",
        "[agents.mine]\ncommand = \"sh ./paid.sh\"\ncost = \"usd\"\n",
    );
    let place_of = |agent: &str| place.run_with(&["run", "p", "--agent", agent, "--budget", "1"]);
    place.write("paid.sh", format!("{GOOD}\necho '{{\"usd\": 0.6, \"result\": \"x\"}}'\n"));
    for n in ["1", "2", "3"] {
        place.run(&format!("set p:{n} status pending")).ok();
    }
    let ran = place_of("mine");
    assert_eq!(
        (ran.code, status(&place, "2").as_str(), status(&place, "3").as_str()),
        (1, "completed", "pending"),
        "{ran:?}"
    );
    assert!(ran.stdout.contains("the budget is spent: 1.20 US dollars"), "{}", ran.stdout);
    let ran = run(&place, "sleep 600", "--max-time 3s");
    assert_eq!(
        (ran.code, outcomes(&place, "3").last().map(String::as_str)),
        (1, Some("timed out")),
        "{ran:?}"
    );
    assert_eq!(run(&place, "", "--max-steps 0").code, 2);
}

#[test]
fn steps_of_other_workers_are_not_touched() {
    let place = place_with(&["", "depends: [1]"]);
    place.run("claim p:1").ok();
    let ran = run(&place, GOOD, "");
    assert_eq!(ran.code, 7, "{}", ran.stdout);
    assert!(ran.stdout.contains("step 1 (ann)"), "{}", ran.stdout);
    // A step that a person marked as failed with `fail` is not started either.
    place.run("fail p:1 -m no").ok();
    assert_eq!(run(&place, GOOD, "").code, 7);
}

#[test]
fn an_agent_of_the_repository_needs_trust_and_the_users_agent_takes_precedence() {
    let place = place_with(&["", ""]);
    place.write("planwatch.toml", "[agents.theirs]\ncommand = \"sh ./agent.sh\"\ntimeout = \"50s\"\n[agents.mine]\ncommand = \"touch evil\"\n");
    agent(&place, "agent.sh", GOOD);
    let run_as = |name: &str, more: &str| {
        let mut words = vec!["run", "p", "--agent", name];
        words.extend(more.split_whitespace());
        place.run_with(&words)
    };
    assert_eq!(run_as("theirs", "--max-steps 1").code, 5);
    trust(&place, "agent:theirs");
    assert_eq!(run_as("theirs", "--max-steps 1").code, 1);
    assert_eq!(status(&place, "1"), "completed");
    place.write(
        "../home/config/planwatch/planwatch.toml",
        "[agents.mine]\ncommand = \"cat {prompt} > read; sh ./agent.sh\"\nprompt = \"file\"\n",
    );
    assert_eq!(run_as("mine", "").code, 0);
    assert!(place.text("read").contains("planwatch done p:2") && !place.file("evil").exists());
    let ran = run_as("clod", "");
    assert_eq!(ran.code, 3, "{}", ran.stderr);
    assert_eq!(run_as("shell", "").code, 2);
    assert_eq!(run_as("shell", "--command true").code, 0);
}

#[test]
fn a_repository_can_only_shorten_the_limits_of_other_agents() {
    let place = place_with(&[""]);
    for (theirs, expected) in
        [("timeout = \"5h\"", 3600), ("timeout = \"10m\"", 600), ("idle = \"5h\"", 3600)]
    {
        place.write("planwatch.toml", format!("[agents.claude]\n{theirs}\n"));
        let ran = place.run_with(&["run", "p", "--agent", "claude", "--dry-run", "--json"]);
        assert!(
            ran.stdout.contains(&format!("\"timeout\":{expected}")),
            "{theirs}: {}{}",
            ran.stdout,
            ran.stderr
        );
    }
}

#[test]
fn a_name_with_shell_syntax_is_not_executed() {
    let place = Place::new();
    let id = "a $(touch evil) `touch evil`; touch evil";
    place.write(&format!("plans/{id}/plan.md"), "# P\n");
    place.write(&format!("plans/{id}/step-1.md"), "# $(touch evil)\n");
    place.write(
        "../home/config/planwatch/planwatch.toml",
        "[agents.a]\ncommand = \"cat {prompt} > read; sh ./agent.sh\"\nprompt = \"file\"\n",
    );
    place.write("agent.sh", GOOD);
    let ran = place.run_with(&["run", id, "--agent", "a"]);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    assert!(place.file("read").exists() && !place.file("evil").exists());
}

#[test]
fn an_agent_that_cannot_be_started_costs_no_attempt() {
    let place = place_with(&[""]);
    for command in ["no-such-program", "exit 127"] {
        let ran = place.run_with(&["run", "p", "--command", command]);
        assert_eq!((ran.code, status(&place, "1").as_str()), (1, "pending"), "{}", ran.stdout);
        assert_eq!(outcomes(&place, "1"), [""; 0]);
    }
}
