//! The scripts of the project: `--help` prints their usage, and an unknown argument is an error.
#![expect(clippy::disallowed_methods, reason = "tests start the scripts")]

use std::process::{Command, Output};

use crate::support::root;

fn run(script: &str, argument: &str) -> Output {
    let mut command = Command::new(root().join("scripts").join(script));
    // Without cargo on the PATH, a script that does not stop after it has read its arguments fails at once.
    command.arg(argument).env("PATH", "/usr/bin:/bin").env("PYTHONDONTWRITEBYTECODE", "1");
    command.output().unwrap_or_else(|it| panic!("{script}: {it}"))
}

fn scripts() -> Vec<String> {
    let all = std::fs::read_dir(root().join("scripts")).expect("it is there");
    let names = all.map(|it| it.expect("it is there").file_name().to_string_lossy().into_owned());
    names.filter(|it| !it.contains('.') && root().join("scripts").join(it).is_file()).collect()
}

#[test]
fn help_prints_the_usage_of_each_script() {
    let all = scripts();
    assert!(all.len() > 20, "{all:?}");
    for script in all {
        let ran = run(&script, "--help");
        let text = String::from_utf8_lossy(&ran.stdout).into_owned();
        assert!(ran.status.success() && text.contains(&script), "{script}: {ran:?}");
    }
}

#[test]
fn an_unknown_argument_is_an_error_before_anything_starts() {
    for script in scripts() {
        // These pass their arguments to other programs.
        if ["bench", "schemathesis"].contains(&script.as_str()) {
            continue;
        }
        let ran = run(&script, "--no-such-option");
        assert_eq!(ran.status.code(), Some(2), "{script}: {ran:?}");
        assert!(ran.stdout.is_empty() && !ran.stderr.is_empty(), "{script}: {ran:?}");
    }
}
