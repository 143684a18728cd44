//! `--dry-run` writes nothing, and prints the diff of the changes that the command would make.

use crate::support::{Place, tree};

const COMMANDS: &[&str] = &[
    "start feature-auth:0",
    "done fence-repair:2 -m over",
    "done switch-energy-provider:3 -m over",
    "done feature-auth:3 --force",
    "done ledger-migration:2.75 --by codex",
    "fail feature-auth:2 -m no",
    "block fence-repair:4 -m no",
    "skip ledger-migration:6",
    "skip feature-auth",
    "reopen fence-repair:1 -m again",
    "attempt fence-repair:4 tried --notes=",
    "note docs-onboarding text",
    "new Garden Sow Water --tag house",
    "add fence-repair Paint --after 4 --depends 4",
    "add switch-energy-provider Celebrate",
    "set ledger-migration tags+=finance",
    "set fence-repair:4 assignee --unset",
    "move ledger-migration:2.75 --after 4.5 --force",
    "move switch-energy-provider:1 --after 2",
    "remove ledger-migration:4.5",
    "remove feature-auth --yes",
    "archive feature-auth",
    "squash ledger-migration 4 4.5 --title Entries",
    "replace docs-onboarding --file plans/fence-repair/plan.md --force",
    "new Launch --kind program --children fence-repair,feature-auth",
    "done fence-repair:4 feature-auth:3 feature-auth:0",
    "tick switch-energy-provider:3 1 4",
    "split fence-repair:5 2",
];

#[test]
fn a_dry_run_writes_nothing_and_shows_the_changes_of_the_command() {
    for line in COMMANDS {
        let place = Place::with_examples();
        let before = tree(&place.work());
        let dry = place.run(&format!("{line} --dry-run --json")).json();
        let printed = place.run(&format!("{line} --dry-run"));
        assert_eq!(tree(&place.work()), before, "{line}");
        let wet = place.run(&format!("{line} --json")).json();
        assert_ne!(tree(&place.work()), before, "{line}");
        assert_eq!((&dry["diff"], &dry["refused"]), (&wet["diff"], &wet["refused"]), "{line}");
        assert_eq!((&dry["dry_run"], &wet["dry_run"]), (&true.into(), &false.into()), "{line}");
        let diff = wet["diff"].as_str().expect("a text");
        assert_eq!(printed.stdout, diff, "{line}");
    }
}

#[test]
fn replace_with_the_output_of_list_changes_nothing() {
    let plans =
        ["docs-onboarding", "feature-auth", "fence-repair", "ledger-migration", "switch-energy-provider"];
    for plan in plans {
        let place = Place::with_examples();
        let before = tree(&place.work());
        let listed = place.run(&format!("list {plan} --json")).ok();
        place.write("steps.json", listed);
        let answer = place.run(&format!("replace {plan} --file steps.json --json")).json();
        assert_eq!(answer["diff"], "", "{plan}");
        let mut after = tree(&place.work());
        after.retain(|path, _| path != "steps.json");
        assert_eq!(after, before, "{plan}");
    }
}

#[test]
fn undo_restores_every_byte() {
    for line in COMMANDS {
        let place = Place::with_examples();
        let before = tree(&place.work());
        let ran = place.run(line);
        assert!(ran.code == 0 || ran.code == 4, "{line}: {ran:?}");
        let undone = place.run("undo");
        assert_eq!(undone.code, 0, "{line}: {undone:?}");
        let files = |it: crate::support::Tree| {
            it.into_iter().filter(|(path, _)| !path.ends_with('/')).collect::<Vec<_>>()
        };
        assert_eq!(files(tree(&place.work())), files(before), "{line}");
    }
}

#[test]
fn a_dry_run_names_the_variable_of_the_prompt_only_for_agents_that_read_a_file() {
    let place = Place::new();
    place.write("plans/p/step-1.md", "# A\n");
    for (agent, expected) in [("aider", serde_json::json!("PROMPT")), ("claude", serde_json::json!(null))] {
        let shown = place.run_with(&["run", "p", "--agent", agent, "--dry-run", "--json"]).json();
        assert_eq!(shown["environment"]["PLANWATCH_PROMPT"], expected, "{shown}");
    }
}
