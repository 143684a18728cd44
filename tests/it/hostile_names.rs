//! Names and texts with control characters are shown as escapes, and suggested commands quote them correctly.
#![expect(clippy::disallowed_methods, reason = "a test runs the suggested commands in a shell")]

use std::process::Command;

use crate::support::{Place, Ran};

/// Changes the text direction, sets a colour, breaks the line, and ends a quote.
const NASTY: &str = "a\u{202e}b\u{61c}c\u{2066}d\u{200f}e'f;g $(touch evil) \u{9b}31m\u{2028}z";

fn place() -> Place {
    let place = Place::new();
    place.write(&format!("plans/{NASTY}/plan.md"), "# A\u{202e} \u{1b}[31mplan\u{7}\n");
    place.write(
        &format!("plans/{NASTY}/step-1.md"),
        "---\nstatus: pending\nphase: \"x\u{202e}\"\nverify: [\"echo \u{202e}\"]\n---\n# A \u{2067}step\u{1b}]0;x\u{7}\n",
    );
    place.write(
        &format!("plans/{NASTY}/step-2.md"),
        "---\nstatus: in_progress\nclaim: {id: h1, by: \"\u{202e}\"}\n---\n",
    );
    place.write(&format!("plans/{NASTY}/step-3.md"), "---\nstatus: pending\nconfirm: required\n---\n# C\n");
    place
        .write(&format!("plans/{NASTY}/step-4.md"), "---\nstatus: \u{202e}\ndepends: [\u{202e}]\n---\n# D\n");
    place.write(&format!("plans/_scripts/{NASTY}.md"), "---\ncommand: \"echo \u{202e} $X\"\n---\n");
    place.write("plans/_templates/t/plan.md", "# {{ title \u{202e} }}\n");
    place
}

#[track_caller]
fn is_harmless(ran: &Ran, command: &str) {
    for text in [&ran.stdout, &ran.stderr] {
        let acts = |c: char| {
            let turns = matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
            c != '\n' && (c.is_control() || turns)
        };
        assert!(!text.contains(acts), "{command}: {text:?}");
    }
}

#[test]
fn no_control_characters_are_printed() {
    let place = place();
    let step = |n: u32| format!("{NASTY}:{n}");
    for command in [
        vec!["status"],
        vec!["list"],
        vec!["list", NASTY],
        vec!["show", NASTY, "--full"],
        vec!["show", NASTY, "--graph", "text"],
        vec!["show", &step(1)],
        vec!["next"],
        vec!["next", NASTY],
        vec!["check"],
        vec!["search", "plan"],
        vec!["trust"],
        vec!["trust", &step(1)],
        vec!["script", "list"],
        vec!["script", "show", NASTY],
        vec!["script", "run", NASTY],
        vec!["template", "render", "t", NASTY],
        vec!["run", NASTY, "--command", "true", "--dry-run"],
        vec!["claim", &step(2), "--by", "bob"],
        vec!["claim", &step(4)],
        vec!["done", &step(3)],
        vec!["done", &step(2), "--by", "bob"],
        vec!["start", &step(9)],
        vec!["confirm", &step(3)],
        vec!["remove", NASTY],
        vec!["new", NASTY, "--dry-run"],
        vec!["insight", NASTY, "text", "--dry-run"],
        vec!["decide", NASTY, "text", "--dry-run"],
        vec!["claim", &step(1), "--dry-run"],
        vec!["fail", &step(1)],
        vec!["reopen", &step(1)],
        vec!["archive", NASTY, "--dry-run"],
        vec!["set", &step(1), "title", NASTY],
        vec!["undo", "--list"],
    ] {
        let shown = command.join(" ");
        is_harmless(&place.run_with(&command), &shown);
        let json: Vec<_> = command.iter().copied().chain(["--json"]).collect();
        is_harmless(&place.run_with(&json), &shown);
    }
    assert!(!place.file("evil").exists());
}

#[test]
fn a_suggested_command_refers_to_the_name() {
    let place = place();
    let mut commands = Vec::new();
    for ran in [place.run("next"), place.run("status"), place.run_with(&["next", NASTY]), place.run("trust")]
    {
        let lines = ran.stdout.lines().filter_map(|it| it.trim().strip_prefix("planwatch "));
        commands.extend(
            lines.filter(|it| it.contains("$'")).map(|it| it.split("   ").next().unwrap_or(it).to_owned()),
        );
    }
    let hint = place.run_with(&["remove", NASTY]).stderr;
    commands.extend(hint.split('`').filter_map(|it| it.strip_prefix("planwatch ")).map(str::to_owned));
    assert!(commands.len() > 3, "{commands:?}");
    for command in commands {
        let mut shell = Command::new("bash");
        place.close_environment(&mut shell);
        shell.args(["-c", &format!("\"$0\" {command} --json"), env!("CARGO_BIN_EXE_planwatch")]);
        let ran = Ran::of(shell.output().expect("bash starts"));
        // Each command refers to an existing plan, step or script.
        assert!(![2, 3].contains(&ran.code), "{command}: {ran:?}");
        is_harmless(&ran, &command);
    }
    assert!(!place.file("evil").exists());
}

#[test]
fn a_suggested_command_works_for_a_name_that_begins_with_a_dash() {
    let place = Place::new();
    place.write("plans/-x/plan.md", "# T\n");
    place.write("plans/-x/step-1.md", "# S\n");
    let shown = place.run("next").stdout;
    let commands: Vec<_> = shown.lines().filter_map(|it| it.trim().strip_prefix("planwatch ")).collect();
    assert_eq!(commands.len(), 3, "{shown}");
    for command in commands {
        let words = command.split("   ").next().unwrap_or_default().trim();
        place.run(words).ok();
    }
    assert!(place.text("plans/-x/step-1.md").contains("completed"));
    place.run("reopen ./-x:1").ok();
    let prompt = place.run_with(&["run", "./-x", "--command", "cat", "--dry-run"]).ok();
    assert!(prompt.contains("`planwatch done ./-x:1 --claim CLAIM"), "{prompt}");
    assert_eq!(place.run("list ./-x/ --json").json()["steps"][0]["id"], "-x:1");
    assert_eq!(place.run("show ./-x/step-1.md --json").json()["id"], "-x:1");
}

#[test]
fn a_name_that_is_not_utf8_is_a_problem() {
    use std::os::unix::ffi::OsStrExt;
    let place = Place::new();
    place.write("plans/p/step-1.md", "# One\n");
    place.write("plans/p/plan.md", "# P\n");
    let path = |name: &[u8]| place.file("plans").join(std::ffi::OsStr::from_bytes(name));
    std::fs::create_dir(path(b"caf\xe9")).unwrap();
    for name in [b"caf\xe9.txt".as_slice(), b"p/step-2\xe9.md", b"p/caf\xe9.png", b"caf\xe9/step-1.md"] {
        std::fs::write(path(name), "# Two\n").unwrap();
    }
    let found = place.run("check --json").json();
    let problems: Vec<_> = found["problems"].as_array().unwrap().iter().collect();
    let said: Vec<_> = problems.iter().map(|it| (it["code"].as_str(), it["path"].as_str())).collect();
    let code = Some("name-not-utf8");
    assert_eq!(said, [(code, Some("plans/caf\u{fffd}")), (code, Some("plans/p/step-2\u{fffd}.md"))]);
    assert_eq!(place.run("check").code, 0);
}

#[test]
fn a_file_whose_name_is_not_utf8_stays_and_is_named() {
    use std::os::unix::ffi::OsStrExt;
    let place = Place::new();
    place.write("plans/p/plan.md", "# P\n");
    let name = std::ffi::OsStr::from_bytes(b"caf\xe9.txt");
    std::fs::write(place.file("plans/p").join(name), "text").unwrap();
    let ran = place.run("move p --to q");
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.stderr.contains("plans/p stays: files in it have names that are not UTF-8"), "{ran:?}");
    assert_eq!(std::fs::read(place.file("plans/p").join(name)).unwrap(), b"text");
    assert!(place.file("plans/q/plan.md").exists());
}
