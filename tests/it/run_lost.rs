//! `run` with agents that move or remove their own step, or change its claim.

use crate::run::outcomes;
use crate::support::{Place, Ran};

/// A run of two steps. The agent of the first step runs `script`. If the run waited for the claim that its own agent lost,
/// it would end only at the time limit.
fn run(script: &str) -> (Place, Ran) {
    let place = Place::new();
    place.write("plans/p/plan.md", "# P\n");
    place.write("plans/p/step-1.md", "# Step 1\n\nDo it.\n");
    place.write("plans/p/step-2.md", "# Step 2\n\nDo it.\n");
    let done = "planwatch done \"$PLANWATCH_STEP\" -q";
    place.write("agent.sh", format!("case $PLANWATCH_STEP in p:1) {script};; *) {done};; esac\n"));
    let mut command = place.command();
    command.args(["run", "p", "--command", "sh ./agent.sh", "--max-attempts", "1", "--max-time", "60s"]);
    let ran = Ran::of(command.output().expect("the binary starts"));
    (place, ran)
}

#[test]
fn a_step_that_its_agent_moves_is_settled_under_its_new_number() {
    let (place, ran) = run("planwatch move p:1 --after p:2 -q");
    assert!(ran.code == 1 && ran.stdout.contains("`p:3` was tried once"), "{ran:?}");
    assert_eq!(outcomes(&place, "3"), ["no outcome reported"]);
    let (place, ran) =
        run("planwatch move p:1 --after p:2 -q; planwatch done p:3 --claim $PLANWATCH_CLAIM -q");
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(outcomes(&place, "3"), ["completed"]);
}

#[test]
fn a_run_does_not_wait_for_a_claim_that_its_own_agent_lost() {
    let (_, ran) = run("rm plans/p/step-1.md");
    assert!(ran.code == 0 && ran.stdout.contains("claim lost  (0 s, log: "), "{ran:?}");
    let (place, ran) = run("sed -i 's/^claim: {id: \"[^\"]*\"/claim: {id: \"h0000000\"/' plans/p/step-1.md");
    assert!(ran.code == 7 && ran.stdout.contains("claim lost"), "{ran:?}");
    assert_eq!(outcomes(&place, "2"), ["completed"]);
}
