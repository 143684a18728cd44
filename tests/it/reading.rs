//! Verbs that only read start no program, neither of the system nor of the repository.
#![expect(clippy::disallowed_methods, reason = "tests create and change files")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use crate::support::Place;

const READING: [&str; 22] = [
    "list",
    "list p",
    "show p",
    "show p:2",
    "show p --graph text",
    "next",
    "next p",
    "status",
    "check",
    "search run",
    "trust",
    "script list",
    "script show evil",
    "decide",
    "insight",
    "doctor",
    "export p",
    "undo --list",
    "run p --command evil --dry-run",
    "claim --dry-run",
    "sql SELECT(1)",
    "--help",
];

/// The programs that planwatch or a repository could start.
const PROGRAMS: [&str; 12] =
    ["evil", "git", "sh", "bash", "env", "vi", "nano", "less", "more", "node", "python3", "claude"];

/// A repository that names programs wherever possible. Returns the file to which every started program writes.
fn hostile(place: &Place) -> PathBuf {
    let started = place.top().join("started");
    for name in PROGRAMS {
        place.write(
            &format!("bin/{name}"),
            format!("#!/bin/sh\necho \"{name} $*\" >> '{}'\n", started.display()),
        );
        let executable = fs::Permissions::from_mode(0o755);
        fs::set_permissions(place.file(&format!("bin/{name}")), executable).expect("it is ours");
    }
    let step = |status: &str| {
        format!("---\nstatus: {status}\nverify: [evil verify]\n---\n# Step\n\n- [x] run `evil`\n")
    };
    place.write("plans/p/plan.md", "---\nverify: [evil verify]\n---\n# P\n");
    for (n, status) in ["completed", "pending", "failed"].iter().enumerate() {
        place.write(&format!("plans/p/step-{}.md", n + 1), step(status));
    }
    place.write("plans/_scripts/evil.md", "---\ncommand: evil script\n---\n");
    place.write("planwatch.toml", "[agents.evil]\ncommand = \"evil agent\"\n");
    place.write(".git/HEAD", "ref: refs/heads/main\n");
    place.write(
        ".git/config",
        "[core]\n\tfsmonitor = evil\n\tpager = evil\n\teditor = evil\n\tsshCommand = evil\n",
    );
    started
}

#[test]
fn reading_starts_no_process() {
    let place = Place::new();
    let started = hostile(&place);
    let run = |line: &str| {
        let mut command = place.command();
        command.args(line.split(' ')).env("PATH", place.file("bin"));
        for name in ["EDITOR", "VISUAL", "PAGER", "GIT_PAGER", "BROWSER", "SHELL"] {
            command.env(name, "evil");
        }
        command.output().expect("it can be started")
    };
    for verb in READING {
        let ran = run(verb);
        assert!(ran.status.code().is_some_and(|it| it < 2), "{verb}: {ran:?}");
        assert!(!started.exists(), "{verb}: {}", fs::read_to_string(&started).unwrap_or_default());
    }
    // In the same place, a verb that starts a program does start it.
    let verb = run("edit p:2");
    assert!(started.exists(), "{verb:?}");
}
