//! Tests of the tools that create and change plans and their steps.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{answer, call, machine, refusal, tools_of};
use crate::disk::model::Machine;
use crate::serve::mcp::toolset::{Toolset, tools};

fn text(machine: &Arc<Machine>, path: &str) -> String {
    machine.text(path).unwrap_or_else(|| panic!("there is no {path}"))
}

#[test]
fn steps_are_given_as_texts_or_objects() {
    let machine = machine();
    let two = json!({"title": "Two", "text": "# Two\n\nDo it.", "depends": [1], "touches": ["src/**"], "verify": "make"});
    let steps = json!(["One", two, r#"{"title": "Three", "depends": ["2"]}"#]);
    answer(&machine, "create_plan", &json!({"title": "Typed", "steps": steps, "draft": true}));
    let plan = answer(&machine, "get_plan", &json!({"plan": "typed"}));
    let titles: Vec<_> =
        plan["steps"].as_array().unwrap().iter().map(|it| it["title"].as_str().unwrap()).collect();
    assert_eq!((titles, &plan["status"]), (vec!["One", "Two", "Three"], &json!("draft")));
    let step = text(&machine, "/plans/typed/step-2.md");
    assert!(step.ends_with("---\n# Two\n\nDo it.\n") && step.contains("depends:\n  - 1\n"), "{step}");
    assert!(step.contains("verify:\n  - make\n") && step.contains("touches:\n  - src/**\n"), "{step}");
    let more = json!({"title": "Typed", "steps": ["One", {"title": "Four", "text": "Last."}], "if_exists": "update"});
    answer(&machine, "create_plan", &more);
    assert!(text(&machine, "/plans/typed/step-4.md").ends_with("---\n# Four\n\nLast.\n"));
    answer(&machine, "update_plan", &json!({"plan": "typed", "status": "active"}));
    let draft = json!({"title": "Typed", "draft": true, "if_exists": "update"});
    let said = refusal(&machine, "create_plan", &draft);
    assert!(said.starts_with("usage: `typed` is not a draft; "), "{said}");
    let list = json!(["One", {"title": "Five", "text": "New.", "phase": "late"}]);
    answer(&machine, "restructure_plan", &json!({"plan": "typed", "op": "replace", "steps": list}));
    let step = text(&machine, "/plans/typed/step-2.md");
    assert!(step.contains("phase: late\n") && step.ends_with("# Five\n\nNew.\n"), "{step}");
    // `remove` takes the steps as `numbers`. Older prompts give them as `steps`, which is accepted, too.
    answer(&machine, "restructure_plan", &json!({"plan": "typed", "op": "remove", "numbers": [2]}));
    answer(&machine, "restructure_plan", &json!({"plan": "typed", "op": "remove", "steps": ["1"]}));
}

#[test]
fn steps_of_another_type_are_refused_in_a_sentence() {
    const FIELDS: &str = "title, text, depends, touches, verify";
    let machine = machine();
    let fields = "a step has title, text, depends, touches and verify; add_step and update_step set more";
    for (steps, refused) in [
        (
            json!([true]),
            format!("`steps[0]` has to be an object with the fields {FIELDS}; it was given as true"),
        ),
        (
            json!(["A", 3]),
            format!("`steps[1]` has to be an object with the fields {FIELDS}; it was given as 3"),
        ),
        (json!([{"text": "x"}]), "the argument `steps[0].title` is missing; give it".to_owned()),
        (
            json!(["A", {"title": ["x"]}]),
            "`steps[1].title` has to be a text; it was given as [\"x\"]".to_owned(),
        ),
        (
            json!([{"title": "A", "depends": [{}]}]),
            "`steps[0].depends[0]` has to be a text; it was given as {}".to_owned(),
        ),
        (json!([{"title": "A", "body": "x"}]), format!("`body` is not a field of a new step; {fields}")),
    ] {
        let said = refusal(&machine, "create_plan", &json!({"title": "Bad", "steps": steps}));
        assert_eq!(said, format!("usage: {refused}"));
    }
    let said = refusal(&machine, "create_plan", &json!({"title": "Bad", "goals": [{"a": 1}]}));
    assert_eq!(said, "usage: `goals[0]` has to be a text; it was given as {\"a\":1}");
    let cycle = json!([{"title": "A", "depends": [2]}, {"title": "B", "depends": [1]}]);
    let said = refusal(&machine, "create_plan", &json!({"title": "Bad", "steps": cycle}));
    assert!(said.starts_with("dependency-cycle: refused: "), "{said}");
    assert!(machine.text("/plans/bad/plan.md").is_none());
}

#[test]
fn a_step_gets_another_title_text_and_dependencies_and_keeps_the_rest() {
    let machine = machine();
    let change = json!({"step": "auth:3", "title": "Ship", "text": "Carefully.", "depends": ["auth:2", 1]});
    answer(&machine, "update_step", &change);
    let after = "---\nid: auth:3\nstatus: pending\ntitle: Ship\nphase: deploy\ndepends: [2, 1]\n---\n# Deploy\n\nCarefully.\n";
    assert_eq!(text(&machine, "/plans/auth/step-3.md"), after);
    let step = answer(&machine, "get_step", &json!({"step": "auth:3"}));
    assert_eq!((&step["title"], &step["depends"]), (&json!("Ship"), &json!(["auth:2", "auth:1"])));
    answer(&machine, "update_step", &json!({"step": "auth:3", "depends": []}));
    assert_eq!(answer(&machine, "get_step", &json!({"step": "auth:3"}))["depends"], Value::Null);
    let said = refusal(&machine, "update_step", &json!({"step": "auth:3", "depends": ["first"]}));
    assert_eq!(said, "usage: `first` is not a step; write a step's number, as 2, or its id, as auth:2");
    let said =
        refusal(&machine, "update_step", &json!({"step": "auth:3", "text": "---\nstatus: completed\n---\n"}));
    assert!(said.starts_with("usage: the text begins with front matter; "), "{said}");
    answer(&machine, "claim_next_step", &json!({"plan": "auth:1", "worker": "bob"}));
    let said = refusal(&machine, "update_step", &json!({"step": "auth:1", "text": "Another."}));
    assert!(said.starts_with("claimed: "), "{said}");
}

#[test]
fn lists_keep_their_comments_and_their_spelling() {
    let depends = "depends:\n  # the tables\n  - step-1 # why\n  - auth:2\n";
    let goals = "goals:\n  - fast # soon\n  - safe\n";
    let machine = Arc::new(Machine::with(&[
        ("/plans/auth/plan.md", &format!("---\n{goals}---\n# Sign in\n")),
        ("/plans/auth/step-1.md", "# Schema\n"),
        ("/plans/auth/step-2.md", "# Migrations\n"),
        ("/plans/auth/step-3.md", &format!("---\n{depends}---\n# Deploy\n")),
        ("/plans/auth/step-4.md", "# Mails\n"),
    ]));
    let depend = |on: Value| answer(&machine, "update_step", &json!({"step": "auth:3", "depends": on}));
    depend(json!([2, "auth:1", 4]));
    let after = "---\ndepends:\n  - auth:2\n  # the tables\n  - step-1 # why\n  - 4\n---\n# Deploy\n";
    assert_eq!(text(&machine, "/plans/auth/step-3.md"), after);
    depend(json!([]));
    let after = "---\ndepends: []\n  # the tables\n---\n# Deploy\n";
    assert_eq!(text(&machine, "/plans/auth/step-3.md"), after);
    answer(&machine, "update_plan", &json!({"plan": "auth", "goals": ["small", "fast"]}));
    let after = "---\ngoals:\n  - small\n  - fast # soon\n---\n# Sign in\n";
    assert_eq!(text(&machine, "/plans/auth/plan.md"), after);
}

#[test]
fn a_due_date_is_set_and_taken_out_of_steps_and_plans() {
    let machine = machine();
    let before = ["/plans/auth/plan.md", "/plans/auth/step-3.md"].map(|it| text(&machine, it));
    for (tool, what, id, path) in [
        ("update_plan", "plan", "auth", "/plans/auth/plan.md"),
        ("update_step", "step", "auth:3", "/plans/auth/step-3.md"),
    ] {
        answer(&machine, tool, &json!({what: id, "due": "2026-12-24"}));
        assert_eq!(text(&machine, path).matches("\ndue: 2026-12-24\n").count(), 1, "{tool}");
        let said = refusal(&machine, tool, &json!({what: id, "due": "soon"}));
        assert!(said.starts_with("usage: "), "{said}");
        answer(&machine, tool, &json!({what: id, "due": "none"}));
    }
    assert_eq!(["/plans/auth/plan.md", "/plans/auth/step-3.md"].map(|it| text(&machine, it)), before);
}

#[test]
fn every_text_of_an_update_is_in_the_file() {
    for given in [
        json!({"result": "text one", "attempt_notes": "text two"}),
        json!({"result": "text one", "attempt_notes": "text two", "attempt_outcome": "tried"}),
        json!({"result": "text one", "attempt_notes": "text two", "status": "completed"}),
        json!({"attempt_notes": "text one", "notes": "text two"}),
        json!({"result": "text one", "attempt_outcome": "text two"}),
    ] {
        let machine = machine();
        let mut change = json!({"step": "auth:1"});
        change.as_object_mut().unwrap().extend(given.as_object().cloned().unwrap());
        answer(&machine, "update_step", &change);
        let file = text(&machine, "/plans/auth/step-1.md");
        for text in ["text one", "text two"] {
            assert_eq!(file.matches(text).count(), 1, "{given}: {file}");
        }
    }
}

#[test]
fn a_text_in_the_place_of_the_steps_is_refused_with_their_form() {
    let machine = machine();
    let said = refusal(&machine, "create_plan", &json!({"title": "Bad", "steps": "A, B"}));
    assert_eq!(
        said,
        "usage: `steps` has to be a list, for example [\"Design\", \"Build\"]; it was given as \"A, B\""
    );
    answer(&machine, "create_plan", &json!({"title": "Good", "steps": "[\"A\"]"}));
}

#[test]
fn order_is_no_dependency_unless_the_plan_is_sequential() {
    let machine = machine();
    let made = |more: Value| {
        let mut given = json!({"title": format!("Plan {more}"), "steps": ["A", "B", "C"]});
        given.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap());
        let made = answer(&machine, "create_plan", &given);
        let plan = answer(&machine, "get_plan", &json!({"plan": made["id"]}));
        (plan["steps_ready"].clone(), made["hint"].as_str().unwrap().to_owned())
    };
    let (ready, hint) = made(json!({}));
    let says = "3 steps are ready at once; update_step with `depends` makes a step wait for others; claim_next_step `plan`";
    assert_eq!((ready, hint.as_str()), (json!(3), says));
    let (ready, hint) = made(json!({"sequential": true}));
    assert_eq!((ready, hint.contains("at once")), (json!(1), false));
    assert!(made(json!({"draft": true})).1.starts_with("update_plan `"));
}

#[test]
fn metadata_is_declared_as_text_and_taken_as_an_object_too() {
    let machine = machine();
    let schema = &tools_of(Toolset::All, false).into_iter().find(|it| it["name"] == "update_step").unwrap()["inputSchema"];
    assert_eq!(
        schema["properties"]["metadata"],
        json!({"type": "string", "description": "JSON object as text"})
    );
    for metadata in [json!({"a": [1, {"b": "c"}]}), json!(r#"{"a": [1, {"b": "c"}]}"#)] {
        answer(&machine, "update_step", &json!({"step": "auth:1", "metadata": {"a": null}}));
        answer(&machine, "update_step", &json!({"step": "auth:1", "metadata": metadata}));
        let step = answer(&machine, "get_step", &json!({"step": "auth:1"}));
        assert_eq!(step["metadata"], json!({"a": [1, {"b": "c"}]}));
    }
    let said = refusal(&machine, "update_step", &json!({"step": "auth:1", "metadata": "soon"}));
    assert_eq!(said, "usage: `metadata` has to be an object; it was given as \"soon\"");
}

#[test]
fn the_lease_that_is_named_is_the_default_one() {
    let tools = tools_of(Toolset::All, false);
    let claim = tools.iter().find(|it| it["name"] == "claim_next_step").unwrap();
    let says = claim["inputSchema"]["properties"]["lease_seconds"]["description"].as_str().unwrap();
    let default = crate::api::config::Config::default().lease();
    assert!(says.contains(&format!(" or {default};")), "{says}");
}

#[test]
fn a_plan_with_open_steps_is_completed_only_with_force_which_is_recorded() {
    let machine = machine();
    let complete = json!({"plan": "auth", "status": "completed"});
    let said = refusal(&machine, "update_plan", &complete);
    assert!(
        said.starts_with("steps-open: ") && said.ends_with("; finish or skip them, or give `force`"),
        "{said}"
    );
    let forced = json!({"title": "auth", "status": "completed", "force": true});
    assert!(refusal(&machine, "update_plan", &forced).contains("`plan` is missing"));
    let forced = json!({"plan": "auth", "status": "completed", "force": true});
    assert_eq!(answer(&machine, "update_plan", &forced)["status"], "completed");
    let plan = text(&machine, "/plans/auth/plan.md");
    assert!(plan.contains("status: completed\n") && plan.contains("forced: completed"), "{plan}");
}

#[test]
fn a_repeated_release_changes_nothing() {
    let machine = machine();
    let claimed = answer(&machine, "claim_next_step", &json!({"plan": "auth:1", "worker": "bob"}));
    let back = json!({"step": "auth:1", "status": "pending", "claim": claimed["claim"]["id"]});
    answer(&machine, "update_step", &back);
    let before = text(&machine, "/plans/auth/step-1.md");
    assert_eq!(answer(&machine, "update_step", &back)["written"], false);
    assert_eq!(text(&machine, "/plans/auth/step-1.md"), before);
}

#[test]
fn a_list_of_plans_marks_a_draft_that_is_incomplete() {
    let half = "---\nstatus: draft\ndraft:\n  incomplete: true\n---\n# Half\n";
    let machine =
        Arc::new(Machine::with(&[("/plans/half/plan.md", half), ("/plans/web/plan.md", "# Web\n")]));
    let listed = answer(&machine, "list_plans", &json!({}));
    let marks: Vec<_> =
        listed["plans"].as_array().unwrap().iter().map(|it| (&it["id"], &it["incomplete"])).collect();
    assert!(
        marks.contains(&(&json!("half"), &json!(true))) && marks.contains(&(&json!("web"), &Value::Null)),
        "{listed}"
    );
    assert_eq!(answer(&machine, "get_plan", &json!({"plan": "half"}))["incomplete"], true);
}

#[test]
fn a_plan_is_found_by_the_title_that_it_was_made_with() {
    let machine = machine();
    let made = json!({"title": "Sign in: v2", "body": "# People have accounts\n"});
    let id = answer(&machine, "create_plan", &made)["id"].clone();
    assert_eq!(answer(&machine, "get_plan", &json!({"plan": "sign in v2"}))["id"], id);
    assert_eq!(answer(&machine, "get_plan", &json!({"title": "Sign in: v2"}))["id"], id);
    assert!(refusal(&machine, "get_plan", &json!({"plan": "..."})).starts_with("not-found"));
}

#[test]
fn a_step_without_a_title_gets_the_heading_of_its_text() {
    let machine = machine();
    for (text, title) in [
        ("---\ntags: [x]\n---\n# Real title\n\ntext\n", "Real title"),
        ("<!-- c -->\n# Real\n\nx", "Real"),
        ("## Sub", "Sub"),
        ("first\nsecond", "first"),
    ] {
        let made = answer(&machine, "add_step", &json!({"plan": "auth", "description": text}));
        assert_eq!(answer(&machine, "get_step", &json!({"step": made["id"]}))["title"], title);
    }
}

#[test]
fn a_note_on_a_numbered_step_is_of_the_plan_that_is_named() {
    let machine = machine();
    let note = |plan: &str, step: &str| json!({"plan": plan, "step": step, "note": "n"});
    assert_eq!(answer(&machine, "add_note", &note("auth", "2"))["id"], "auth:2");
    assert_eq!(answer(&machine, "add_note", &note("auth", "auth:1"))["id"], "auth:1");
    let refused = refusal(&machine, "add_note", &note("web", "auth:1"));
    assert_eq!(refused, "usage: `auth:1` is not a step of the plan `web`; leave out one of them");
    assert_eq!(
        refusal(&machine, "add_note", &json!({"plan": "auth", "notes": "x"})),
        "usage: there is no argument `notes`; did you mean `note`? the arguments are plan, step, note, note_type, key",
    );
}

#[test]
fn a_text_with_a_confirmation_is_refused_in_every_toolset() {
    let machine = machine();
    let step = "---\nconfirm: required\nconfirmed: {by: ann}\n---\n# Go\n";
    let plan = "---\nconfirm_phases: [Ship]\nconfirmations: [{phase: Ship, by: ann}]\n---\n# Gate\n";
    for (toolset, name, arguments) in [
        (Toolset::All, "add_step", json!({"plan": "auth", "description": step})),
        (Toolset::Executor, "add_step", json!({"plan": "auth", "title": "Go", "description": step})),
        (Toolset::All, "create_plan", json!({"title": "Gate", "body": plan})),
        (Toolset::Compat, "add_step", json!({"plan_id": "auth", "description": step})),
        (Toolset::Compat, "add_step", json!({"plan_id": "auth", "title": "Go", "description": step})),
        (Toolset::Compat, "save_plan", json!({"title": "Gate", "body": plan})),
    ] {
        let tool = tools(toolset, false).into_iter().find(|it| it.name == name).unwrap();
        let refused = tool.run(&call(&machine), arguments.as_object().cloned().unwrap()).err().unwrap();
        let said = serde_json::to_value(refused.into_result()).unwrap()["content"][0]["text"].to_string();
        assert!(said.contains(r#"\"code\":\"confirmation-by-person\""#), "{toolset:?} {name}: {said}");
        assert!(said.contains("; a person confirms the step or the phase afterwards"), "{said}");
    }
}

#[test]
fn a_claim_that_found_no_ready_step_may_find_one_later_with_the_same_key() {
    let machine = machine();
    answer(&machine, "create_plan", &json!({"title": "Trap"}));
    let claim = json!({"plan": "trap", "key": "k"});
    let first = answer(&machine, "claim_next_step", &claim);
    assert_eq!(first["claim"], Value::Null, "{first}");
    answer(&machine, "add_step", &json!({"plan": "trap", "title": "One"}));
    let later = answer(&machine, "claim_next_step", &claim);
    assert_eq!(later["step"]["id"], "trap:1", "{later}");
    assert_eq!(answer(&machine, "claim_next_step", &claim), later);
}
