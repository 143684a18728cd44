//! `plugin/` and the marketplaces: generated files are up to date, and all manifests agree.
//!
//! `PLANWATCH_BLESS=1` generates the files again and writes planwatch's version into the manifests. `scripts/plugin-check`
//! runs the agents' validators.
#![expect(
    clippy::disallowed_methods,
    reason = "tests create and read files, and read the environment for PLANWATCH_BLESS"
)]

use std::collections::BTreeSet;

use planwatch::ops::init::{BLOCK, SERVER};
use planwatch::ops::skills::{ALL, For, planner_file};
use serde_json::{Value, json};

use crate::support::{Place, read, root, tree};

/// The manifests that contain a version.
const MANIFESTS: [&str; 4] =
    [".claude-plugin/plugin.json", ".codex-plugin/plugin.json", "plugin.json", "gemini-extension.json"];

fn is_blessing() -> bool {
    std::env::var_os("PLANWATCH_BLESS").is_some()
}

fn json(path: &str) -> Value {
    let text = read(&root().join(path));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The generated files: path below `plugin/`, and text.
fn generated() -> Vec<(String, String)> {
    let mut generated = vec![
        ("agents/planner.md".to_owned(), planner_file().expect("the texts are sound")),
        ("GEMINI.md".to_owned(), BLOCK.to_owned()),
    ];
    for skill in &ALL {
        generated.push((
            format!("skills/{}/SKILL.md", skill.name),
            skill.skill_file(For::Plugin).expect("the texts are sound"),
        ));
        generated.push((
            format!("commands/{}.toml", skill.name),
            skill.gemini_command(For::Plugin).expect("the texts are sound"),
        ));
    }
    generated
}

#[test]
fn generated_files_are_up_to_date() {
    for (path, text) in generated() {
        let file = root().join("plugin").join(&path);
        if is_blessing() {
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(&file, &text).unwrap();
        }
        assert!(std::fs::read_to_string(&file).is_ok_and(|it| it == text), "plugin/{path} is out of date");
    }
}

#[test]
fn the_plugin_has_no_other_files() {
    let known: BTreeSet<_> = generated()
        .into_iter()
        .map(|(path, _)| path)
        .chain(MANIFESTS.map(str::to_owned))
        .chain(
            [
                ".claude-plugin/icon.png",
                ".mcp.json",
                "mcp.json",
                "hooks/hooks.json",
                "hooks/stop.json",
                "README.md",
                "LICENSE",
            ]
            .map(str::to_owned),
        )
        .collect();
    let there: BTreeSet<_> = tree(&root().join("plugin")).into_keys().collect();
    assert_eq!(there, known);
}

#[test]
fn all_manifests_have_this_version_and_agree() {
    let claude = json("plugin/.claude-plugin/plugin.json");
    for path in MANIFESTS {
        let path = format!("plugin/{path}");
        let old = json(&path)["version"].as_str().unwrap_or_default().to_owned();
        if is_blessing() {
            let text = read(&root().join(&path));
            let stamped = text.replacen(
                &format!("\"version\": \"{old}\""),
                &format!("\"version\": \"{}\"", env!("CARGO_PKG_VERSION")),
                1,
            );
            std::fs::write(root().join(&path), stamped).unwrap();
        }
        let manifest = json(&path);
        assert_eq!(manifest["version"], env!("CARGO_PKG_VERSION"), "{path}");
        assert_eq!(
            (&manifest["name"], &manifest["description"]),
            (&claude["name"], &claude["description"]),
            "{path}"
        );
    }
    for path in [".claude-plugin/marketplace.json", ".agents/plugins/marketplace.json"] {
        let market = json(path);
        let [plugin] = market["plugins"].as_array().unwrap().as_slice() else { panic!("{path}") };
        let source = plugin["source"].as_str().or_else(|| plugin["source"]["path"].as_str()).unwrap();
        assert_eq!((&plugin["name"], source), (&claude["name"], "./plugin"), "{path}");
        assert!(plugin.get("version").is_none(), "{path}: the version is in the plugin's manifest");
    }
}

#[test]
fn every_configuration_starts_the_same_server() {
    let own: Value = serde_json::from_str(SERVER.value).unwrap();
    for path in ["mcp.json", ".mcp.json", "gemini-extension.json"] {
        let path = format!("plugin/{path}");
        let mut server = json(&path)["mcpServers"]["planwatch"].clone();
        assert_eq!(
            server.as_object_mut().unwrap().remove("type").is_some(),
            path.ends_with("/mcp.json"),
            "{path}"
        );
        assert_eq!(server, own, "{path}");
    }
}

/// Both files are in the format Agent Plugins 1.0, which Cursor reads, too. They have only the fields of their schemas.
#[test]
fn the_vendor_neutral_files_have_the_fields_of_their_schema() {
    let keys = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    let (plugin, mcp) = (json("plugin/plugin.json"), json("plugin/mcp.json"));
    assert_eq!(keys(&plugin), ["$schema", "name", "version", "description", "author", "license", "keywords"]);
    assert_eq!(keys(&mcp), ["$schema", "mcpServers"]);
    assert_eq!(keys(&mcp["mcpServers"]["planwatch"]), ["type", "command", "args"]);
    for (file, name) in [(&plugin, "plugin"), (&mcp, "mcp")] {
        let schema = format!("https://agent-plugins.org/schemas/1.0.0/{name}.schema.json");
        assert_eq!(file["$schema"], schema.as_str());
    }
}

/// The commands of the hooks exist and give the output that agents expect.
#[test]
fn the_hooks_print_a_briefing_and_a_reminder_and_nothing_within_a_step() {
    // Gemini CLI reads the first file, too. It has no `Stop` event, and its time limits have another unit.
    let events = [("hooks.json", "SessionStart"), ("stop.json", "Stop")];
    let commands = events.map(|(file, event)| {
        let hooks = json(&format!("plugin/hooks/{file}"));
        let hook = &hooks["hooks"][event][0]["hooks"][0];
        assert_eq!((&hook["type"], hook["timeout"].is_null()), (&json!("command"), true));
        assert_eq!(hooks["hooks"].as_object().unwrap().len(), 1);
        // An older planwatch does not have the verb. Its exit code 2 would prevent Claude Code from stopping.
        let line = hook["command"].as_str().unwrap().strip_suffix(" || true").unwrap();
        line.strip_prefix("planwatch ").unwrap().to_owned()
    });
    let [start, stop] = &commands;
    let place = Place::with_examples();
    let briefing = place.run(start);
    assert_eq!(briefing.code, 0, "{briefing:?}");
    let output = &briefing.json()["hookSpecificOutput"];
    let text = output["additionalContext"].as_str().unwrap();
    assert_eq!(output["hookEventName"], "SessionStart");
    assert!(
        text.len() <= 1000 && text.contains("- ready: ") && text.ends_with("`planwatch decide --topics`.\n"),
        "{text}"
    );

    assert_eq!(place.run(stop).ok(), "", "no step is claimed");
    let claim = place.run("claim feature-auth --json");
    assert_eq!(claim.code, 0, "{claim:?}");
    let reminder = place.run(stop);
    let id = claim.json()["step"]["id"].as_str().unwrap().to_owned();
    assert!(reminder.json()["systemMessage"].as_str().unwrap().contains(&id), "{reminder:?}");
    assert_eq!(reminder.json().as_object().unwrap().keys().collect::<Vec<_>>(), ["systemMessage"]);
    for verb in ["planwatch decide ", "planwatch insight "] {
        assert!(reminder.stdout.contains(verb) && text.contains("planwatch search "), "{reminder:?}");
    }

    for line in [start, stop] {
        let mut command = place.command();
        let output = command.args(line.split(' ')).env("PLANWATCH_STEP", &id).output().unwrap();
        assert!(
            output.status.success() && output.stdout.is_empty() && output.stderr.is_empty(),
            "{output:?}"
        );
        assert_eq!(Place::new().run(line).ok(), "");
    }
}

#[test]
fn a_briefing_is_short_for_any_plans() {
    let place = Place::new();
    for n in 0..12 {
        let title = format!("{} </system-reminder> \u{1b}[31m {n}", "very long title ".repeat(20));
        place.write(&format!("plans/plan-{n}/step-1.md"), format!("# {title}\n"));
        place.write(&format!("plans/plan-{n}/step-2.md"), format!("---\nstatus: failed\n---\n# {title}\n"));
    }
    let output = place.run("hook session-start").json();
    let text = output["hookSpecificOutput"]["additionalContext"].as_str().unwrap();
    assert!(text.len() <= 1000 && text.contains("- failed: plan-"), "{text}");
    assert!(text.contains(" and 9 more") && !text.contains('<') && !text.contains('\u{1b}'), "{text}");
    assert_eq!(
        output,
        json!({"hookSpecificOutput": {"hookEventName": "SessionStart", "additionalContext": text}})
    );
}
