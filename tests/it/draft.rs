//! `draft` with scripts as agents, which are started as real agents are.
#![expect(clippy::disallowed_methods, reason = "tests create and read files, and start the binary")]

use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use crate::support::{Place, Ran, read};

const TALK: &str = "User: I want to sign in.\nAssistant: How?\nUser: With {{a password}}.\n";

/// A place with a conversation and an agent. The agent is the shell script `body`, in which `$n` is the prompt's number.
fn place(body: &str) -> Place {
    let place = Place::new();
    place.write("talk.md", TALK);
    std::fs::create_dir(place.file(".git")).expect("it is new");
    agent(&place, body);
    place
}

fn agent(place: &Place, body: &str) {
    let count = "n=$(($(cat asked 2>/dev/null || echo 0) + 1)); echo $n > asked; cat > prompt.$n";
    place.write("ask", format!("#!/bin/sh\n{count}\n{body}\n"));
    let mode = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(place.file("ask"), mode).expect("its mode can be set");
}

const BEGIN: [&str; 6] = ["draft", "sign-in", "--from", "talk.md", "--command", "./ask"];
const GO_ON: [&str; 5] = ["draft", "sign-in", "--continue", "--command", "./ask"];
const STEPS: [&str; 5] = ["draft", "sign-in", "--steps", "--command", "./ask"];
const PLAN: &str = "plans/sign-in/plan.md";

fn run(place: &Place, words: &[&str], more: &[&str]) -> Ran {
    place.run_with(&[words, more].concat())
}

/// The printed objects except `asking`, reduced to three values: the state or event, the pass, and the result.
fn events(ran: &Ran) -> Vec<Value> {
    let objects =
        ran.stdout.lines().map(|it| serde_json::from_str::<Value>(it).expect("each line is an object"));
    let shown = objects.filter(|it| it["event"] != "asking");
    shown
        .map(|it| match it["kind"].as_str() {
            Some("draft") => json!([it["state"], it["pass"], it["incomplete"]]),
            _ => json!([it["event"], it["pass"], it["change"]]),
        })
        .collect()
}

fn file(pass: u32, incomplete: bool, text: &str) -> String {
    format!(
        "---\nstatus: draft\ndraft:\n  pass: {pass}\n  incomplete: {incomplete}\n  source: talk.md\ncreated_at: 2026-11-21T12:00:00Z\n---\n# Sign in\n\n{text}\n"
    )
}

#[test]
fn passes_end_when_the_text_stays_the_same() {
    let place = place(
        "case $n in 1) echo '## Goal'; echo; echo in;; 2) echo '## Goal'; echo; echo out;; *) echo CONVERGED;; esac",
    );
    let ran = run(&place, &BEGIN, &["--json"]);
    assert_eq!(
        events(&ran),
        [
            json!(["pass", 1, "made"]),
            json!(["pass", 2, "changed"]),
            json!(["pass", 3, "unchanged"]),
            json!(["pass", 4, "unchanged"]),
            json!(["converged", 4, false]),
        ]
    );
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
    assert_eq!(place.text(PLAN), file(4, false, "## Goal\n\nout"));
    let first = place.text("prompt.1");
    assert!(first.contains(TALK.trim()) && first.contains("completeness"), "{first}");
    let third = place.text("prompt.3");
    assert!(
        third.contains("edge cases")
            && third.contains("<document>\n# Sign in\n\n## Goal\n\nout\n</document>"),
        "{third}"
    );
    assert!(!place.file("prompt.5").exists());
    // A finished draft causes no further prompt.
    assert_eq!(events(&run(&place, &GO_ON, &["--json"])), [json!(["finished", 4, false])]);
    assert_eq!(place.run("check").ok(), "no problems\n");
    assert_eq!(place.run("undo").code, 0);
    assert_eq!(place.text(PLAN), file(3, true, "## Goal\n\nout"));
}

#[test]
fn passes_end_when_an_earlier_text_returns() {
    let place = place("echo version $((n % 2))");
    let ran = run(&place, &BEGIN, &["--json"]);
    assert_eq!(events(&ran).last(), Some(&json!(["oscillates", 3, false])), "{ran:?}");
    assert_eq!(place.text(PLAN), file(3, false, "version 1"));
}

#[test]
fn the_last_pass_reviews_everything_if_the_text_still_changes() {
    let place = place("echo version $n");
    let ran = run(&place, &BEGIN, &["--json"]);
    assert_eq!(events(&ran).last(), Some(&json!(["finished", 6, false])), "{ran:?}");
    let last = place.text("prompt.6");
    assert!(
        last.contains("everything together")
            && last.contains("non-goals")
            && last.contains("read in two ways")
    );
}

#[test]
fn an_agent_that_exceeds_the_timeout_is_started_once_more() {
    let place = place("[ $n -ne 2 ] || sleep 1000; echo text");
    let ran = run(&place, &BEGIN, &["--timeout", "3s", "--json"]);
    assert_eq!(events(&ran).last(), Some(&json!(["converged", 3, false])), "{ran:?}");
    assert_eq!(place.text("asked"), "4\n");
}

#[test]
fn a_second_timeout_keeps_the_draft_for_a_later_continue() {
    let place = place("[ $n -eq 1 ] || sleep 1000; echo text");
    let ran = run(&place, &BEGIN, &["--timeout", "3s"]);
    assert_eq!(ran.code, 124, "{ran:?}");
    assert!(ran.stderr.contains("error[timed-out]: the draft is incomplete after pass 1"), "{ran:?}");
    assert!(ran.stderr.contains("planwatch draft sign-in --continue"), "{ran:?}");
    assert_eq!(place.text(PLAN), file(1, true, "text"));
    let early = run(&place, &STEPS, &[]);
    assert!(early.code == 4 && early.stderr.contains("error[draft-incomplete]"), "{early:?}");
    agent(&place, "echo CONVERGED");
    let ran = run(&place, &GO_ON, &["--json"]);
    assert_eq!(
        events(&ran),
        [json!(["pass", 2, "unchanged"]), json!(["pass", 3, "unchanged"]), json!(["converged", 3, false])]
    );
    assert_eq!(place.text(PLAN), file(3, false, "text"));
    assert!(place.text("prompt.4").contains("{{a password}}"), "the conversation is read again");
}

#[test]
fn nothing_is_created_if_the_first_pass_has_no_answer() {
    for (body, code, why) in [
        ("exit 3", 1, "exit code 3"),
        ("true", 1, "gave an empty answer three times"),
        ("echo busy: rate limit, retry after 2h >&2; exit 1", 1, "the agent's usage limit ends in 7200 s"),
    ] {
        let place = place(body);
        let ran = run(&place, &BEGIN, &[]);
        assert!(ran.code == code && ran.stderr.contains(why), "{ran:?}");
        assert!(ran.stderr.contains("there is no draft yet"), "{ran:?}");
        assert!(!place.file("plans").exists(), "{body}");
    }
}

#[test]
fn an_empty_answer_is_retried_and_a_limit_is_waited_for() {
    let place = place(
        "[ $n -gt 2 ] || exit 0; [ $n -gt 3 ] || { echo '429: retry after 1s' >&2; exit 1; }; echo text",
    );
    let ran = run(&place, &BEGIN, &["--json"]);
    let events = events(&ran);
    assert_eq!(
        events[..4],
        [
            json!(["again", 1, null]),
            json!(["again", 1, null]),
            json!(["waiting", 1, null]),
            json!(["pass", 1, "made"])
        ],
        "{ran:?}"
    );
    assert_eq!(events.last(), Some(&json!(["converged", 3, false])));
}

#[test]
fn an_edit_between_passes_stays_and_the_answer_goes_into_another_file() {
    let place = place(&format!("[ $n -ne 2 ] || echo 'mine' >> {PLAN}; echo version $n"));
    let ran = run(&place, &BEGIN, &[]);
    assert_eq!(ran.code, 4, "{ran:?}");
    assert!(
        ran.stderr.contains("error[draft-edited]") && ran.stderr.contains("plans/sign-in/draft-pass-2.md"),
        "{ran:?}"
    );
    assert_eq!(place.text(PLAN), file(1, true, "version 1\nmine"));
    assert_eq!(place.text("plans/sign-in/draft-pass-2.md"), "# Sign in\n\nversion 2\n");
    assert_eq!(place.text("asked"), "2\n");
    // The next pass starts from the edited text.
    agent(&place, "echo CONVERGED");
    assert_eq!(events(&run(&place, &GO_ON, &["--json"])).last(), Some(&json!(["converged", 3, false])));
    assert!(place.text("prompt.3").contains("version 1\nmine\n</document>"));
    assert_eq!(place.text(PLAN), file(3, false, "version 1\nmine"));
    assert_eq!(place.run("check").ok(), "no problems\n");
}

#[test]
fn a_removed_draft_is_not_created_again() {
    let place = place(&format!("[ $n -ne 2 ] || rm {PLAN}; echo version $n"));
    let ran = run(&place, &BEGIN, &[]);
    assert_eq!(ran.code, 4, "{ran:?}");
    assert!(!place.file(PLAN).exists());
    assert_eq!(place.text("plans/sign-in/draft-pass-2.md"), "# Sign in\n\nversion 2\n");
}

/// Begins a draft whose agent hangs in the second pass, and returns once it does.
fn hanging(place: &Place) -> Child {
    let fifo = place.file("ready");
    assert!(Command::new("mkfifo").arg(&fifo).status().expect("mkfifo runs").success());
    agent(place, "[ $n -ne 2 ] || { echo > ready; sleep 1000; }; echo version $n");
    let child = place.command().args(BEGIN).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let child = child.expect("the binary starts");
    assert_eq!(read(&fifo), "\n");
    child
}

#[test]
fn ctrl_c_keeps_the_draft() {
    let place = place("");
    let child = hanging(&place);
    let sent = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(sent.expect("kill runs").success());
    let ran = Ran::of(child.wait_with_output().expect("it ends"));
    assert_eq!(ran.code, 130, "{ran:?}");
    assert!(ran.stderr.contains("the draft is incomplete after pass 1: it was interrupted"), "{ran:?}");
    assert_eq!(place.text(PLAN), file(1, true, "version 1"));
    agent(&place, "echo CONVERGED");
    assert_eq!(run(&place, &GO_ON, &[]).code, 0);
    assert_eq!(place.text(PLAN), file(3, false, "version 1"));
}

#[test]
fn a_draft_can_be_continued_after_a_kill() {
    let place = place("");
    let mut child = hanging(&place);
    child.kill().expect("it can be killed");
    child.wait().expect("it ends");
    assert_eq!(place.text(PLAN), file(1, true, "version 1"));
    agent(&place, "echo CONVERGED");
    assert_eq!(run(&place, &GO_ON, &[]).code, 0);
    assert_eq!(place.text(PLAN), file(3, false, "version 1"));
}

#[test]
fn a_draft_that_failed_in_a_late_pass_can_be_finished() {
    let place = place("[ $n -lt 8 ] || exit 1; echo version $n");
    assert_eq!(run(&place, &BEGIN, &["--passes", "9"]).code, 1);
    assert_eq!(place.text(PLAN), file(7, true, "version 7"));
    agent(&place, "echo CONVERGED");
    assert_eq!(
        events(&run(&place, &GO_ON, &["--json"])),
        [json!(["pass", 8, "unchanged"]), json!(["finished", 8, false])]
    );
}

#[test]
fn the_last_turns_of_a_long_conversation_are_used() {
    let place = place("echo text");
    let talk: String = (1..=100).map(|n| format!("User: wish {n} {}\n", "x".repeat(5000))).collect();
    place.write("talk.md", talk);
    let ran = run(&place, &BEGIN, &[]);
    assert!(ran.stderr.contains("the last 10 of its 100 turns are used"), "{ran:?}");
    let prompt = place.text("prompt.1");
    assert!(prompt.contains("User: wish 91 x") && !prompt.contains("User: wish 90 x"));
}

#[test]
fn a_broken_prompt_of_the_project_is_reported_and_the_built_in_one_is_used() {
    let place = place("echo text");
    place.write("plans/_prompts/draft-requirements.pmt", "Read {{talk}}.\n");
    place.write("plans/_prompts/draft-review.pmt", "Ours: {{focus_area}}\n");
    let ran = run(&place, &BEGIN, &[]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(
        ran.stderr.contains("plans/_prompts/draft-requirements.pmt:1:6: there is no value `talk`"),
        "{ran:?}"
    );
    assert!(place.text("prompt.1").contains("## Non-Goals"));
    assert_eq!(place.text("prompt.2"), "Ours: correctness\n");
}

/// An agent that always answers with the same steps.
const LIST: &str =
    "printf '## Step 1: Schema\\n\\nTables.\\n\\n## Step 2: Form (depends: step-1)\\n\\nA form.\\n'";

fn drafted(list: &str) -> Place {
    let place = place("echo CONVERGED; echo '## Goal'");
    assert_eq!(run(&place, &BEGIN, &[]).code, 0);
    std::fs::remove_file(place.file("asked")).expect("it is there");
    agent(&place, list);
    place
}

#[test]
fn a_finished_draft_becomes_steps() {
    let place = drafted(LIST);
    let ran = run(&place, &STEPS, &["--json"]);
    assert_eq!(events(&ran).last(), Some(&json!(["converged", 3, false])), "{ran:?}");
    let step = place.text("plans/sign-in/step-2.md");
    assert!(step.contains("depends:\n  - 1\n") && step.ends_with("# Form\n\nA form.\n"), "{step}");
    assert!(place.text("prompt.2").contains("<steps>\n## Step 1: Schema"));
    assert_eq!(place.run("next sign-in").code, 7, "a draft has no ready step");
    assert_eq!(place.run("start sign-in").code, 0);
    assert!(place.run("next sign-in").ok().contains("sign-in:1"));
}

#[test]
fn an_answer_without_a_usable_list_of_steps_is_retried() {
    for (answer, why) in [
        ("echo I cannot do that.", "not a list of steps"),
        ("echo '## Step 1: Form (depends: step-9)'", "`sign-in:9` does not exist"),
    ] {
        let place = drafted(answer);
        let ran = run(&place, &STEPS, &[]);
        assert!(ran.code == 1 && ran.stderr.contains(why), "{ran:?}");
        assert!(ran.stderr.contains("there are no steps yet: "), "{ran:?}");
        assert_eq!(place.text("asked"), "3\n");
        assert!(!place.file("plans/sign-in/step-1.md").exists());
    }
}

#[test]
fn steps_of_a_plan_that_was_edited_meanwhile_go_into_another_file() {
    let place = drafted(&format!("[ $n -ne 3 ] || echo '# Mine' > plans/sign-in/step-1.md; {LIST}"));
    let ran = run(&place, &STEPS, &[]);
    assert!(ran.code == 4 && ran.stderr.contains("--file plans/sign-in/draft-steps.md"), "{ran:?}");
    assert_eq!(place.text("plans/sign-in/step-1.md"), "# Mine\n");
    let list = "## Step 1: Schema\n\nTables.\n\n## Step 2: Form (depends: step-1)\n\nA form.\n";
    assert_eq!(place.text("plans/sign-in/draft-steps.md"), list);
}

#[test]
fn the_last_list_of_steps_is_saved_after_a_failure() {
    let place = drafted(&format!("[ $n -eq 1 ] || exit 9; {LIST}"));
    let ran = run(&place, &STEPS, &[]);
    assert!(
        ran.code == 1 && ran.stderr.contains("replace sign-in --file plans/sign-in/draft-steps.md"),
        "{ran:?}"
    );
    assert!(!place.file("plans/sign-in/step-1.md").exists());
    assert_eq!(place.run("replace sign-in --file plans/sign-in/draft-steps.md").code, 0);
    assert!(place.file("plans/sign-in/step-2.md").exists());
}

#[test]
fn an_answer_that_would_break_the_file_is_refused() {
    let place = place("[ $n -eq 1 ] || printf '<<<<<<< a\\nx\\n=======\\ny\\n>>>>>>> b\\n'; echo text");
    let ran = run(&place, &BEGIN, &[]);
    assert!(ran.code == 1 && ran.stderr.contains("would make the file faulty"), "{ran:?}");
    assert_eq!((place.text(PLAN), place.text("asked")), (file(1, true, "text"), "4\n".to_owned()));
}

#[test]
fn an_agent_of_the_users_configuration_is_used() {
    let place = Place::new();
    place.write("talk.md", "User: I want to sign in.\n");
    let config = "[agents.mine]\ncommand = \"./ask.sh --quietly\"\n\n[agents.filed]\ncommand = \"x {prompt}\"\nprompt = \"file\"\n";
    place.write("../home/config/planwatch/planwatch.toml", config);
    let shown = place.run("draft sign-in --from talk.md --agent mine --dry-run --json=command").json();
    assert_eq!(shown["command"], "./ask.sh --quietly");
    assert_eq!(place.run("draft sign-in --from talk.md --agent filed --dry-run").code, 2);
}

#[test]
fn standard_input_in_a_subdirectory_is_not_recorded_as_a_file() {
    let place = place("echo version $n");
    place.write("plans/p/plan.md", "# P\n");
    std::fs::create_dir(place.file("sub")).expect("it is new");
    let talk = std::fs::File::open(place.file("talk.md")).expect("it exists");
    let words = ["draft", "sign-in", "--from", "-", "--command", "./ask", "--passes", "1"];
    let mut command = place.command();
    command.current_dir(place.file("sub")).stdin(talk).args(words);
    Ran::of(command.output().expect("the binary starts")).ok_code();
    assert!(!place.text(PLAN).contains("sub/-"), "{}", place.text(PLAN));
    let refused = run(&place, &GO_ON, &["--passes", "2"]);
    assert!(refused.stderr.contains("the draft records no file with its conversation"), "{refused:?}");
}
