//! Trust covers each file of the repository that a command names. A change of such a file needs new trust.
#![expect(clippy::disallowed_methods, reason = "tests create and change files")]

use std::os::unix::fs::PermissionsExt;

use crate::support::{Place, Ran};

const GOOD: &str = "#!/bin/sh\ntouch ran\n";
const EVIL: &str = "#!/bin/sh\ntouch ran evil\n";

fn place(command: &str) -> Place {
    let place = Place::new();
    for path in ["c.sh", "no space.sh", "tools/c.sh", "tools/Makefile"] {
        place.write(path, if path.ends_with("file") { "all:\n\ttouch ran\n" } else { GOOD });
        let executable = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(place.file(path), executable).expect("it is ours");
    }
    place.write("plans/a/plan.md", "# A\n");
    let command = serde_json::to_string(command).expect("a text is JSON");
    place.write("plans/_scripts/x.md", format!("---\ncommand: {command}\n---\n"));
    place
}

fn shown(place: &Place) -> serde_json::Value {
    place.run("script show x --json").json()
}

fn trust(place: &Place) -> Ran {
    let hash = shown(place)["hash"].as_str().expect("it has one").to_owned();
    place.run(&format!("trust x --trust-hash {hash}"))
}

/// Starts the script. Returns whether it was allowed.
fn runs(place: &Place) -> bool {
    let ran = place.run("script run x");
    let has_run = ran.code != 5;
    assert_eq!(ran.stderr.starts_with("error[not-trusted]"), !has_run, "{ran:?}");
    has_run
}

#[test]
fn a_change_of_a_file_that_a_command_names_needs_new_trust() {
    for (command, changed) in [
        ("\"./c.sh\"", "c.sh"),
        ("'./c.sh' a", "c.sh"),
        ("./c.sh; true", "c.sh"),
        ("./c.sh&&true", "c.sh"),
        ("./c.sh|cat", "c.sh"),
        ("./no\\ space.sh", "no space.sh"),
        ("sh c.sh", "c.sh"),
        ("sh -c './c.sh x'", "c.sh"),
        ("X=1 ./c.sh", "c.sh"),
        (". ./c.sh", "c.sh"),
        ("sh <./c.sh", "c.sh"),
        ("cat c.sh | sh", "c.sh"),
        ("cd tools && ./c.sh", "tools/c.sh"),
        ("cd tools; sh c.sh", "tools/c.sh"),
        ("X=./c.sh; $X", "c.sh"),
        ("sh $(echo c.sh)", "c.sh"),
        ("eval ./c'.'sh", "c.sh"),
        ("./c.s?", "c.sh"),
        ("cd tools && sh ../$(echo c.sh)", "c.sh"),
        ("mkdir -p build && cd build && ../c.sh", "c.sh"),
        ("mkdir -p build; (cd build; sh ../tools/c.sh)", "tools/c.sh"),
        ("mkdir -p build/x && cd build/x && ../../c.sh", "c.sh"),
        ("mkdir -p build; sh build/../c.sh", "c.sh"),
        ("cd .. && project/c.sh", "c.sh"),
        ("env -C .. project/c.sh", "c.sh"),
        ("env -S'./c.sh a'", "c.sh"),
        ("make -sC tools", "tools/Makefile"),
        ("make -sftools/Makefile", "tools/Makefile"),
        ("flock lock -c 'sh ./c*.sh'", "c.sh"),
    ] {
        let place = place(command);
        assert!(!runs(&place), "{command}");
        trust(&place).ok();
        for _ in 0..2 {
            assert!(runs(&place), "{command}");
            // If trust covers the whole repository, it also covers the files that the command created. So they are removed
            // before the next run.
            let made = ["ran", "tools/ran", "build/ran", "build/x/ran", "../ran"].map(|it| place.file(it));
            assert!(made.iter().any(|it| std::fs::remove_file(it).is_ok()), "{command}");
            std::fs::remove_file(place.file("lock")).ok();
        }
        place.write(changed, EVIL);
        assert!(!runs(&place), "{command}");
        assert!(!place.file("evil").exists() && !place.file("tools/evil").exists(), "{command}");
    }
}

#[test]
fn trust_shows_which_files_it_covers() {
    let place = place("make -C tools && ./c.sh $X");
    let script = shown(&place);
    assert_eq!(script["files"], serde_json::json!(["./", "c.sh", "tools/", "tools/c.sh"]), "{script}");
    let text = place.run("script show x").ok();
    assert!(text.contains("covers     ./, c.sh, tools/, tools/c.sh"), "{text}");
    let item = place.run("trust --json").json()["items"][0].clone();
    assert_eq!((&item["files"], &item["fault"]), (&script["files"], &serde_json::Value::Null), "{item}");
}

#[test]
fn a_command_that_covers_too_much_cannot_be_trusted() {
    let place = place("./c.s?");
    let huge = std::fs::File::create(place.file("huge")).expect("it is new");
    huge.set_len(1 << 40).expect("it is sparse");
    let script = shown(&place);
    assert!(script["fault"].as_str().is_some_and(|it| it.contains("64 MiB")), "{script}");
    for ran in [
        trust(&place),
        place.run("script run x"),
        place.run(&format!("script run x --trust-hash {}", script["hash"])),
    ] {
        assert_eq!(ran.code, 5, "{ran:?}");
        assert!(
            ran.stderr.contains("cannot be trusted, because") && ran.stderr.contains("name of each file"),
            "{ran:?}"
        );
    }
    std::fs::remove_file(place.file("huge")).expect("it is there");
    trust(&place).ok();
    assert!(runs(&place));
}

#[test]
fn verify_commands_and_agents_of_a_repository_are_covered_by_their_files() {
    let place = place("true");
    place.write("plans/a/step-1.md", "---\nverify: ['test -f made; \"./c.sh\"']\n---\n# One\n");
    place.write("planwatch.toml", "[agents.theirs]\ncommand = \"sh './c.sh' && planwatch done a:1\"\n");
    for (name, end) in [("a:1", "--command true"), ("agent:theirs", "--agent theirs")] {
        let hash = || {
            let list = place.run("trust --json").json();
            let items = list["items"].as_array().expect("a list").clone();
            let item = items.into_iter().find(|it| it["name"] == name).expect("it needs trust");
            assert!(item["files"].as_array().is_some_and(|it| it.contains(&"c.sh".into())), "{item}");
            item["hash"].as_str().expect("a text").to_owned()
        };
        let before = hash();
        place.run(&format!("trust {name} --trust-hash {before}")).ok();
        place.write("c.sh", EVIL);
        assert_ne!(hash(), before);
        let ran = place.run(&format!("run a {end}"));
        assert_eq!(ran.code, 5, "{ran:?}");
        assert!(ran.stderr.contains("not-trusted") && !place.file("evil").exists(), "{ran:?}");
        place.write("c.sh", GOOD);
        assert_eq!(hash(), before);
    }
}

#[test]
fn an_agent_that_changes_its_own_command_is_not_started_again() {
    let place = place("true");
    for n in [1, 2] {
        place.write(&format!("plans/a/step-{n}.md"), format!("# Step {n}\n"));
    }
    place.write("planwatch.toml", "[agents.theirs]\ncommand = \"sh './agent.sh'\"\n");
    let planwatch = env!("CARGO_BIN_EXE_planwatch");
    let script = format!("echo touch evil >>agent.sh\n{planwatch} done \"$PLANWATCH_STEP\"\nexit 0\n");
    place.write("agent.sh", script);
    let item = place.run("trust --json").json()["items"][1].clone();
    assert_eq!(item["name"], "agent:theirs", "{item}");
    place.run(&format!("trust agent:theirs --trust-hash {}", item["hash"].as_str().expect("a text"))).ok();
    let ran = place.run("run a --agent theirs");
    assert!(ran.stderr.contains("error[not-trusted]"), "{ran:?}");
    assert!(place.text("plans/a/step-1.md").contains("status: completed"), "{ran:?}");
    assert!(!place.text("plans/a/step-2.md").contains("claim"), "{ran:?}");
    assert!(!place.file("evil").exists());
}
