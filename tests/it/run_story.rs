//! A run of a whole plan with a failure, a missing report, a false report, an added step, a gate, and a `kill -9`, and
//! git's diff at the end.
#![expect(clippy::disallowed_methods, reason = "tests start processes, and edit files as people do")]

use std::process::{Command, Stdio};

use crate::support::{Place, Ran, lines_of};

const AGENT: &str = r#"n=${PLANWATCH_STEP#*:}
tries=$(cat "tries-$n" 2>/dev/null || echo 0)
echo $((tries + 1)) > "tries-$n"
case "$n-$tries" in
3-0) planwatch -q fail "$PLANWATCH_STEP" -m 'the schema was locked'; exit 1 ;;
4-0) planwatch -q add story 'Index for mails' --after 4 ;;
5-0) echo 'I forgot to say'; exit 0 ;;
6-1) touch made-6 ;;
12-0) echo ready; sleep 600 ;;
esac
planwatch -q done "$PLANWATCH_STEP" -m "step $n made"
"#;

fn command(place: &Place) -> Command {
    let mut command = place.command();
    command.args(["run", "story", "--command", "sh ./agent.sh"]);
    command
}

fn git(place: &Place, line: &str) -> String {
    let mut command = Command::new("git");
    place.close_environment(&mut command);
    command.args(["-c", "user.name=ann", "-c", "user.email=ann@example.org"]).args(line.split(' '));
    let ran = Ran::of(command.output().expect("git is installed"));
    assert_eq!(ran.code, 0, "git {line}: {}", ran.stderr);
    ran.stdout
}

fn outcomes(place: &Place, n: &str) -> Vec<String> {
    let step = place.run_with(&["--json", "show", &format!("story:{n}")]).json();
    let attempts = step["attempts"].as_array().expect("there is a list").clone();
    attempts.iter().map(|it| it["outcome"].as_str().unwrap_or_default().to_owned()).collect()
}

#[test]
fn a_plan_of_twenty_steps_is_completed_despite_failures() {
    let place = Place::new();
    place.write("agent.sh", AGENT);
    place.write("plans/story/plan.md", "---\norder: sequential\n---\n# Story\n");
    for n in 1..=20 {
        let more = match n {
            6 => "verify: ['test -f made-6']\n",
            9 => "confirm: required\n",
            _ => "",
        };
        place.write(
            &format!("plans/story/step-{n}.md"),
            format!("---\nstatus: pending\n{more}---\n# Step {n}\n"),
        );
    }
    git(&place, "init -q");
    git(&place, "add plans");
    git(&place, "commit -q -m plan");
    let items = place.run("trust --json").json();
    let hash = items["items"][0]["hash"].as_str().expect("it needs trust");
    place.run(&format!("trust story:6 --trust-hash {hash}")).ok();

    let ran = Ran::of(command(&place).output().expect("the binary starts"));
    assert_eq!(ran.code, 5, "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stdout.contains("`story:9` waits for a person's confirmation"), "{}", ran.stdout);
    // A person confirms the step in an editor.
    let gate = place.text("plans/story/step-9.md");
    let yes = "confirm: required\nconfirmed: {by: ann, at: 2026-11-21T12:00:00Z}\n";
    place.write("plans/story/step-9.md", gate.replace("confirm: required\n", yes));

    let mut killed = command(&place).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("it starts");
    let mut lines = lines_of(killed.stdout.take().expect("it is piped"));
    while lines.next() != "ready" {}
    killed.kill().expect("it runs");
    killed.wait().expect("it ends");

    let ran = Ran::of(command(&place).output().expect("the binary starts"));
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    for n in ["1", "2", "4", "4.5", "7", "8", "9", "10", "11", "13", "20"] {
        assert_eq!(outcomes(&place, n), ["completed"], "{n}");
    }
    assert_eq!(outcomes(&place, "3"), ["failed", "completed"]);
    assert_eq!(outcomes(&place, "5"), ["no outcome reported", "completed"]);
    assert_eq!(outcomes(&place, "6"), ["completed", "verify failed", "completed"]);
    assert_eq!(outcomes(&place, "12"), ["interrupted", "completed"]);
    // The diff contains the status, the confirmation and the attempts, and nothing else.
    let diff = git(&place, "diff --unified=0 plans");
    let removed = diff.lines().filter(|it| it.starts_with('-') && !it.starts_with("--- "));
    assert_eq!(removed.collect::<Vec<_>>(), ["-status: pending"; 20]);
    let keys = [
        "status: completed",
        "confirmed: {",
        "attempts:",
        "  - at: ",
        "    by: ",
        "    outcome: ",
        "    notes: ",
    ];
    let more = ["    claim: ", "    seconds: ", "    exit_code: ", "    log: "];
    for line in diff.lines().filter_map(|it| it.strip_prefix('+')).filter(|it| !it.starts_with("++ ")) {
        assert!(keys.iter().chain(&more).any(|it| line.starts_with(it)), "{line}");
    }
}
