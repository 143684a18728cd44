//! Scripts that were written for another plan tool run unchanged, with a shell script in place of the agent.

use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use crate::support::{Place, Ran, root, tree};

use super::client::Server;

/// Reports the result of a step, as an agent does. If the step's text contains `please fail`, it reports a failure. If the
/// text contains `please add`, it first adds a step.
const AGENT: &str = r##"#!/bin/bash
set -eu
[ "$1" = -p ]
id=$(grep -o "step_id='[^']*'" <<<"$2" | head -1 | cut -d"'" -f2)
send() { curl -sf -X "$1" "$POPSTASH_API/$2" -H 'Content-Type: application/json' -d "$3" >/dev/null; }
if grep -q 'please fail' <<<"$2"; then
  send PATCH "steps/$id" '{"status":"failed","result":"it cannot be done"}'
  exit
fi
if grep -q 'please add' <<<"$2"; then
  send POST "plans/${id%:*}/steps" "{\"description\":\"# Found on the way\\n\",\"after_step\":${id##*:},\"created_by\":\"agent\"}"
fi
send PATCH "steps/$id" '{"status":"completed","result":"it is done","metadata":{"by":"stand-in"}}'
"##;

fn script(place: &Place, server: &Server, name: &str, arguments: &[&str]) -> Ran {
    let mut command = Command::new("bash");
    command.arg(root().join("tests/script_api").join(name)).args(arguments);
    place.close_environment(&mut command);
    let path = format!("{}:/usr/bin:/bin", place.file("tools").display());
    command.env("PATH", path).env("POPSTASH_API", format!("http://localhost:{}/api", server.address.port()));
    Ran::of(command.output().expect("bash starts"))
}

fn with_agent(place: &Place) {
    place.write("tools/claude", AGENT);
    let may_run = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(place.file("tools/claude"), may_run).expect("it is there");
}

#[test]
fn the_scripts_execute_a_plan_step_by_step() {
    let place = Place::new();
    with_agent(&place);
    place.write("plans/feature-auth/plan.md", "# Feature: User Authentication\n\n## Steps\n- step-0: Schema\n- step-1: Migrations (depends: step-0)\n- step-2: Tests\n");
    place.write("plans/feature-auth/step-0.md", "# Step 0: Schema\n\nplease add a step\n");
    place.write("plans/feature-auth/step-1.md", "# Step 1: Migrations\n\n\"Quotes\" and $dollars\n");
    place.write("plans/feature-auth/step-2.md", "# Step 2: Tests\n\nplease fail\n");
    let server = Server::open(&place);
    let before = tree(&place.file("plans"));
    let listed = script(&place, &server, "ps-plans.sh", &[]);
    assert_eq!(listed.code, 0, "{listed:?}");
    assert!(listed.stdout.contains("feature-auth/  [in_progress] 0/3 steps"), "{listed:?}");
    assert_eq!(tree(&place.file("plans")), before, "the list changes nothing");
    let ran = script(&place, &server, "ps-execute.sh", &["feature-auth"]);
    assert_eq!(ran.code, 1, "{ran:?}");
    for line in [
        "Plan created: feature-auth",
        "Added step 2",
        "Executing step 0...",
        "Executing step 0.5...",
        "Step 1 complete",
        "Step 2 failed.",
    ] {
        assert!(ran.stdout.contains(line), "{line}: {}", ran.stdout);
    }
    let step = place.text("plans/feature-auth/step-0.md");
    assert!(step.contains("status: completed") && step.contains("notes: it is done"), "{step}");
    assert!(step.contains("by: stand-in"), "{step}");
    let listed = script(&place, &server, "ps-plans.sh", &[]);
    assert!(listed.stdout.contains("[has failures] 3/4 steps  (id: feature-auth)"), "{listed:?}");
    // A person corrects the step, and the script continues.
    let text = "They are written anew, with more words than the step had before it failed.\n".repeat(5);
    place.write("plans/feature-auth/step-2.md", format!("# Step 2: Tests\n\n{text}"));
    let ran = script(&place, &server, "ps-execute.sh", &["--resume", "feature-auth"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.stdout.contains("All steps complete!"), "{ran:?}");
    let listed = script(&place, &server, "ps-plans.sh", &[]);
    assert!(listed.stdout.contains("feature-auth/  [completed] 4/4 steps"), "{listed:?}");
    assert_eq!(place.run("check").code, 0);
}

#[test]
fn executing_a_completed_plan_again_changes_nothing() {
    let place = Place::new();
    with_agent(&place);
    place.write("plans/small/plan.md", "# Small\n");
    place.write("plans/small/step-1.md", "# One\n");
    let server = Server::open(&place);
    assert_eq!(script(&place, &server, "ps-execute.sh", &["small"]).code, 0);
    let before = tree(&place.file("plans"));
    let again = script(&place, &server, "ps-execute.sh", &["small"]);
    assert_eq!(again.code, 0, "{again:?}");
    assert_eq!(tree(&place.file("plans")), before);
}

#[test]
fn a_step_that_needs_a_confirmation_stops_the_script() {
    let place = Place::new();
    with_agent(&place);
    place.write("plans/small/plan.md", "# Small\n");
    place.write("plans/small/step-1.md", "---\nconfirm: true\n---\n# One\n");
    let server = Server::open(&place);
    let ran = script(&place, &server, "ps-execute.sh", &["small"]);
    assert_eq!(ran.code, 22, "curl reports that the server refused: {ran:?}");
    assert!(!ran.stdout.contains("Executing"), "{ran:?}");
}
