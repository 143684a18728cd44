//! `run --budget` with agents that do not say what an attempt cost.

use crate::support::Place;

#[test]
fn a_run_with_a_budget_ends_at_an_attempt_whose_cost_is_not_known() {
    for (said, total) in [
        (r#"{"usd": -5}"#, None),
        (r#"{"usd": "0.5"}"#, None),
        (r#"{"usd": null}"#, None),
        (r#"{"usd": 1e999}"#, None),
        ("words", None),
        ("", None),
        (r#"{"usd": 0.1}"#, Some("for 0.20 US dollars")),
        (r#"{"usd": 0}"#, Some("for 0.00 US dollars")),
        // The last step spends the rest of the budget and completes the plan.
        (
            r#"{"usd": 0.5}"#,
            Some("complete: all steps are completed or skipped\n2 steps closed in 2 attempts, for 1.00"),
        ),
    ] {
        let place = Place::new();
        place.write("plans/p/plan.md", "# P\n");
        place.write("plans/p/step-1.md", "# One\n");
        place.write("plans/p/step-2.md", "# Two\n");
        let config = "[agents.mine]\ncommand = \"sh ./agent.sh\"\ncost = \"usd\"\n";
        place.write("../home/config/planwatch/planwatch.toml", config);
        place.write("agent.sh", format!("planwatch done $PLANWATCH_STEP -q\necho '{said}'\n"));
        let ran = place.run("run p --agent mine --budget 1");
        let why = "limit: the cost of an attempt at `p:1` is not known, so the budget cannot be checked";
        let (code, text, second) = total.map_or((1, why, "pending"), |it| (0, it, "completed"));
        assert!(ran.code == code && ran.stdout.contains(text), "{said}: {ran:?}");
        assert_eq!(place.run("show p:2 --json").json()["status"], second, "{said}");
        // Without a budget, the cost is only reported.
        assert_eq!(place.run("run p --agent mine").code, 0, "{said}");
    }
}
