use std::sync::Arc;

use serde_json::{Value, json};

use crate::disk::model::Machine;
use crate::serve::mcp::tests::{call, check_answer};
use crate::serve::mcp::tool::{Tool, Turn};
use crate::serve::mcp::toolset::{Toolset, tools};

/// The outcome of a call.
enum Came {
    Done(Value),
    /// The question to the person, and the result of the action after the person confirmed.
    Asked(String, Value),
    Refused(String),
}

fn find(name: &str) -> Tool {
    tools(Toolset::Compat, false).into_iter().find(|it| it.name == name).unwrap()
}

fn run(machine: &Arc<Machine>, name: &str, arguments: &Value) -> Came {
    let (tool, call) = (find(name), call(machine));
    let given = arguments.as_object().cloned().unwrap();
    let done = match tool.run(&call, given) {
        Ok(Turn::Done(done)) => Ok((None, done)),
        Ok(Turn::Asks(question)) => {
            let message = question.message.clone();
            (question.act)(&call, None).map(|it| (Some(message), it))
        }
        Err(refusal) => Err(refusal),
    };
    match done {
        Ok((None, done)) => Came::Done(done),
        Ok((Some(message), done)) => Came::Asked(message, done),
        Err(refusal) => {
            let refused = serde_json::to_value(refusal.into_result()).unwrap();
            let text: Value = serde_json::from_str(refused["content"][0]["text"].as_str().unwrap()).unwrap();
            let of = |key: &str| text["error"][key].as_str().unwrap_or_default().to_owned();
            Came::Refused(format!("{}: {}; {}", of("code"), of("message"), of("hint")))
        }
    }
}

/// Calls a tool, and checks its answer against the tool's schema and the expected fields.
#[track_caller]
#[expect(clippy::needless_pass_by_value, reason = "calls are shorter so")]
fn check(machine: &Arc<Machine>, name: &str, arguments: Value, expected: Value) -> Value {
    let answer = match run(machine, name, &arguments) {
        Came::Done(answer) | Came::Asked(_, answer) => answer,
        Came::Refused(why) => panic!("{name} {arguments}: {why}"),
    };
    let schema = check_answer(&find(name), &answer);
    let is_cover = !super::SAME.contains(&name);
    let unknown: Vec<_> =
        answer.as_object().unwrap().keys().filter(|it| schema["properties"].get(it).is_none()).collect();
    assert!(unknown.is_empty() || !is_cover, "{name}: the schema has no {unknown:?}");
    contains(&answer, &expected).unwrap_or_else(|at| panic!("{name} {arguments}: {at} in {answer:#}"));
    answer
}

/// Checks that `found` has each field of `expected` with the same value, and that lists have the same length.
fn contains(found: &Value, expected: &Value) -> Result<(), String> {
    match (found, expected) {
        (Value::Object(found), Value::Object(expected)) => expected.iter().try_for_each(|(key, it)| {
            contains(found.get(key).unwrap_or(&Value::Null), it).map_err(|at| format!("{key}: {at}"))
        }),
        (Value::Array(found), Value::Array(expected)) if found.len() == expected.len() => {
            found.iter().zip(expected).try_for_each(|(found, it)| contains(found, it))
        }
        (found, expected) if found == expected => Ok(()),
        (found, expected) => Err(format!("{expected} is expected, not {found}")),
    }
}

#[track_caller]
#[expect(clippy::needless_pass_by_value, reason = "calls are shorter so")]
fn check_refused(machine: &Arc<Machine>, name: &str, arguments: Value, expected: &str) {
    let before = machine.text("/plans/other/plan.md");
    match run(machine, name, &arguments) {
        Came::Refused(why) => assert_eq!(why, expected, "{name} {arguments}"),
        Came::Done(answer) | Came::Asked(_, answer) => panic!("{name} {arguments}: {answer}"),
    }
    assert_eq!(machine.text("/plans/other/plan.md"), before, "a refusal writes nothing");
}

fn empty() -> Arc<Machine> {
    Arc::new(Machine::with(&[("/plans/other/plan.md", "---\nstatus: active\n---\n# Other\n")]))
}

/// Stores a plan and its steps with `save_plan` and `add_step`, as a script does.
fn save_plan_and_steps(it: &Arc<Machine>) {
    let body = "# Feature: User Authentication\n\n## Overview\nAdd JWT-based authentication\n";
    let saved = check(
        it,
        "save_plan",
        json!({"title": "feature-auth", "body": body}),
        json!({
            "plan_id": "feature-auth", "title": "Feature: User Authentication", "written": true,
        }),
    );
    let again = json!({"title": "feature-auth", "body": body});
    check(
        it,
        "save_plan",
        again,
        json!({"plan_id": "feature-auth", "written": false, "etag": saved["etag"]}),
    );
    check_refused(
        it,
        "save_plan",
        json!({"title": "feature-auth", "body": "# Another\n"}),
        "plan-exists: `feature-auth` exists, with another text; change the existing plan, or choose another title",
    );
    let id = "feature-auth";
    for (number, title) in [(0, "Setup database schema"), (1, "Create migrations"), (2, "Add business logic")]
    {
        let text = format!("# Step {number}: {title}\n\n## Context\nMore.\n");
        let given = json!({"plan_id": id, "description": text, "step_number": number, "created_by": "user"});
        let expected = json!({
            "step_id": format!("{id}:{number}"), "plan_id": id, "step_number": number, "title": title,
            "status": "pending", "created_by": "user", "written": true,
        });
        check(it, "add_step", given.clone(), expected);
        check(it, "add_step", given, json!({"step_number": number, "written": false}));
    }
    let found = json!({"plan_id": id, "description": "Add missing index", "after_step": 1.0});
    check(
        it,
        "add_step",
        found,
        json!({"step_id": "feature-auth:1.5", "step_number": 1.5, "created_by": "agent"}),
    );
    let last =
        json!({"plan_id": id, "description": "Write tests", "notes": "For both.", "metadata": {"n": 1}});
    check(it, "add_step", last, json!({"step_number": 3, "metadata": {"n": 1}}));
    let made = it.text(&format!("/plans/{id}/step-3.md")).unwrap();
    assert!(made.contains("Write tests") && made.contains("For both."), "{made}");
}

#[test]
fn a_plan_is_saved_and_worked_on_step_by_step() {
    let it = &empty();
    save_plan_and_steps(it);
    let id = "feature-auth";
    check(
        it,
        "get_plan_steps",
        json!({"plan_id": id}),
        json!({
            "plan_id": id, "title": "Feature: User Authentication", "steps": [
                {"step_number": 0, "status": "pending", "created_by": "user", "step_id": "feature-auth:0"},
                {"step_number": 1}, {"step_number": 1.5, "created_by": "agent"}, {"step_number": 2}, {"step_number": 3},
            ],
        }),
    );
    check(
        it,
        "peek_next_step",
        json!({"plan_id": id}),
        json!({
            "state": "next", "step_id": "feature-auth:0", "step_number": 0,
            "description": "# Step 0: Setup database schema\n\n## Context\nMore.\n",
        }),
    );
    let done = json!({"step_id": "feature-auth:0", "status": "completed", "result": "Schemas compile"});
    check(
        it,
        "update_step",
        done,
        json!({"status": "completed", "result": "Schemas compile", "written": true}),
    );
    let failed = json!({"step_id": "feature-auth:1", "status": "failed", "result": "No database", "metadata": {"b": 2}});
    check(it, "update_step", failed, json!({"status": "failed", "metadata": {"b": 2}}));
    check(
        it,
        "get_step",
        json!({"step_id": "feature-auth:1"}),
        json!({
            "plan_id": id, "step_number": 1, "description": "# Step 1: Create migrations\n\n## Context\nMore.\n",
            "status": "failed", "result": "No database", "metadata": {"b": 2},
        }),
    );
    check(
        it,
        "get_plan_steps",
        json!({"plan_id": id, "status": "completed"}),
        json!({
            "steps": [{"step_id": "feature-auth:0"}],
        }),
    );
    check(it, "get_plan", json!({"title": "feature-auth"}), json!({"plan_id": id, "steps_total": 5}));
    check(it, "search_plans", json!({"query": "JWT"}), json!({"hits": [{"kind": "plan", "id": id}]}));
}

/// The plan of this test is not about code, and its steps need several attempts.
#[test]
fn attempts_are_logged_and_kept() {
    let it = &empty();
    let given =
        json!({"title": "Fence repair", "steps": ["Get quotes", "Hire contractor", "Supervise work"]});
    check(it, "create_plan", given, json!({"plan_id": "fence-repair", "status": "active", "written": true}));
    let pending = json!({"status": "pending"});
    check(
        it,
        "get_plan",
        json!({"title": "fence"}),
        json!({"plan_id": "fence-repair", "steps": [pending, pending, pending]}),
    );
    let step = "fence-repair:1";
    let first =
        json!({"step_id": step, "attempt_outcome": "left voicemail", "attempt_notes": "for Jim's Fencing"});
    check(it, "update_plan_step", first, json!({"step_id": step, "status": "in_progress"}));
    let second = json!({"step_id": step, "attempt_outcome": "no answer"});
    check(it, "update_plan_step", second, json!({"status": "in_progress"}));
    let done = json!({"step_id": step, "status": "done", "attempt_outcome": "booked", "attempt_notes": "Jim on Friday"});
    check(it, "update_plan_step", done, json!({"status": "completed"}));
    let blocked = json!({"step_id": "fence-repair:2", "status": "blocked", "attempt_notes": "waiting on council approval"});
    check(it, "update_plan_step", blocked, json!({"status": "blocked"}));
    check(
        it,
        "get_plan",
        json!({"plan_id": "fence-repair"}),
        json!({"steps": [
            {"attempts": [
                {"outcome": "left voicemail", "notes": "for Jim's Fencing"}, {"outcome": "no answer"},
                {"outcome": "booked", "notes": "Jim on Friday"},
            ]},
            {"attempts": [{"outcome": "blocked", "notes": "waiting on council approval"}]}, {"status": "pending"},
        ]}),
    );
    let added = json!({"plan_id": "fence-repair", "position": 4, "title": "Paint it", "notes": "Green."});
    check(it, "add_step", added, json!({"step_number": 4, "title": "Paint it"}));
    check(it, "get_step", json!({"step_id": "fence-repair:4"}), json!({"description": "Green."}));
    check(it, "list_plans", json!({}), json!({"plans": [{"id": "fence-repair"}, {"id": "other"}]}));
    let complete = json!({"plan_id": "fence-repair", "status": "complete"});
    let refused = run(it, "update_plan_status", &complete);
    assert!(
        matches!(refused, Came::Refused(why) if why.starts_with("steps-open: ") && why.ends_with("; finish or skip them, or give `force`"))
    );
    for number in 1..=4 {
        // For a completed step the call is refused; that step stays completed.
        run(
            it,
            "update_plan_step",
            &json!({"step_id": format!("fence-repair:{number}"), "status": "skipped"}),
        );
    }
    check(it, "update_plan_status", complete, json!({"status": "completed"}));
    check(
        it,
        "update_plan_status",
        json!({"plan_id": "other", "status": "abandoned"}),
        json!({"status": "abandoned"}),
    );
    check(it, "list_plans", json!({}), json!({"plans": []}));
    check(it, "list_plans", json!({"status": "complete"}), json!({"plans": [{"id": "fence-repair"}]}));
    check(it, "list_plans", json!({"status": "abandoned"}), json!({"plans": [{"id": "other"}]}));
    // Each status can be one of planwatch's words, or a word of another plan tool.
    for word in ["completed", "done", "Closed"] {
        check(it, "list_plans", json!({"status": word}), json!({"plans": [{"id": "fence-repair"}]}));
        let close = json!({"plan_id": "fence-repair", "status": word});
        check(it, "update_plan_status", close, json!({"status": "completed"}));
    }
    for (word, status) in [("complete", "completed"), ("onhold", "blocked"), ("cancelled", "skipped")] {
        let added = json!({"plan_id": "fence-repair", "title": word});
        let Came::Done(step) = run(it, "add_step", &added) else { panic!("{word}") };
        let update = json!({"step_id": step["step_id"], "status": word, "attempt_outcome": "x"});
        check(it, "update_plan_step", update, json!({"status": status}));
    }
    let refused = run(it, "update_plan_status", &json!({"plan_id": "fence-repair", "status": "active"}));
    assert!(
        matches!(refused, Came::Refused(why) if why.starts_with("usage: `active` does not close a plan"))
    );
}

#[test]
fn memory_plan_does_all_that_its_actions_promise() {
    let it = &empty();
    let memory = |arguments: Value, expected: Value| check(it, "memory_plan", arguments, expected);
    let plan = memory(
        json!({
            "action": "create", "workspace_path": "/", "title": "Add user authentication",
            "description": "Implement JWT-based authentication with login/logout", "category": "feature",
            "priority": "high", "goals": ["Users can log in with email/password", "Logout invalidates the session"],
            "success_criteria": ["All auth endpoints return correct status codes"],
            "categorization": {"suggested_workflow": "standard"},
        }),
        json!({"plan_id": "add-user-authentication", "written": true}),
    );
    let id = plan["plan_id"].as_str().unwrap();
    let steps = json!([
        {"phase": "Phase 1: Setup", "task": "Install dependencies", "assignee": "Executor"},
        {"phase": "Phase 1: Setup", "task": "Create database schema", "assignee": "Executor", "type": "standard"},
        {"phase": "Phase 2: Testing", "task": "Write unit tests", "assignee": "Tester", "status": "pending", "notes": "fast ones"},
    ]);
    memory(
        json!({"action": "update", "plan_id": id, "steps": steps}),
        json!({"plan_id": id, "steps_after": 3}),
    );
    memory(
        json!({"action": "get", "plan_id": id}),
        json!({"written": false, "plan": {
            "id": id, "priority": "high", "category": "feature", "success_criteria": ["All auth endpoints return correct status codes"],
            "steps": [{"assignee": "Executor"}, {"phase": "Phase 1: Setup"}, {"title": "Write unit tests", "notes": [{"text": "fast ones"}]}],
        }}),
    );
    memory(
        json!({"action": "find", "plan_id": id}),
        json!({"plan": {"id": id}, "workspace": {"workspace_path": "/"}}),
    );
    memory(
        json!({"action": "add_note", "plan_id": id, "note": "mind the tokens", "note_type": "warning"}),
        json!({"plan_id": id}),
    );
    memory(json!({"action": "set_goals", "plan_id": id, "goals": ["Fast"]}), json!({"written": true}));
    memory(
        json!({"action": "get", "plan_id": id}),
        json!({"plan": {"goals": ["Fast"], "notes": [{"text": "mind the tokens"}]}}),
    );
    let merged = json!({"action": "consolidate", "plan_id": id, "step_indices": [2, 3], "consolidated_task": "Schema and tests"});
    memory(merged, json!({"steps_before": 3, "steps_after": 2}));
    memory(json!({"action": "list"}), json!({"plans": [{"id": id}, {"id": "other"}]}));
    memory(json!({"action": "archive", "plan_id": "other"}), json!({"plan_id": "other", "written": true}));
    memory(json!({"action": "list"}), json!({"plans": [{"id": id}]}));
    memory(
        json!({"action": "list", "include_archived": true}),
        json!({"plans": [{"id": id}, {"id": "other"}]}),
    );
    let listed = memory(json!({"action": "list_templates"}), json!({}));
    let names: Vec<_> =
        listed["templates"].as_array().unwrap().iter().map(|it| it["name"].as_str().unwrap()).collect();
    for template in ["feature", "bugfix", "refactor", "documentation", "analysis", "investigation"] {
        assert!(names.contains(&template), "{names:?}");
        let title = format!("From {template}");
        memory(
            json!({"action": "create_from_template", "title": title, "template": template, "category": "change"}),
            json!({"plan_id": format!("from-{template}"), "written": true}),
        );
    }
}

#[test]
fn programs_hold_plans() {
    let it = &empty();
    let memory = |arguments: Value, expected: Value| check(it, "memory_plan", arguments, expected);
    let program = json!({"action": "create_program", "title": "Launch", "description": "All of it", "priority": "high"});
    memory(program, json!({"plan_id": "launch", "is_program": true}));
    let added = json!({"action": "add_plan_to_program", "program_id": "launch", "plan_id": "other"});
    memory(
        added,
        json!({"plan": {"id": "other", "program": "launch"}, "program": {"id": "launch", "kind": "program"}}),
    );
    memory(
        json!({"action": "list_program_plans", "program_id": "launch"}),
        json!({"plans": [{"id": "other"}]}),
    );
    check(it, "create_plan", json!({"title": "Billing", "steps": ["Invoices"]}), json!({}));
    memory(
        json!({"action": "upgrade_to_program", "plan_id": "billing"}),
        json!({
            "plan_id": "billing-program", "is_program": true, "plan": {"id": "billing", "program": "billing-program"},
        }),
    );
    memory(
        json!({"action": "list_program_plans", "program_id": "billing-program"}),
        json!({"plans": [{"id": "billing"}]}),
    );
}

#[test]
fn an_update_moves_steps_and_signs_new_ones() {
    let it = &Arc::new(Machine::with(&[
        ("/plans/a/plan.md", "# A\n"),
        ("/plans/a/step-1.md", "---\nstatus: completed\n---\n# One\n"),
        ("/plans/a/step-2.md", "# Two\n"),
        ("/plans/a/step-3.md", "# Three\n"),
    ]));
    let update = |steps: Value| json!({"action": "update", "plan_id": "a", "steps": steps});
    let steps =
        json!([{"task": "Two", "status": "done"}, {"task": "Three", "status": "blocked"}, {"task": "Four"}]);
    let changes = json!([
        {"id": "a:1", "did": "kept"}, {"id": "a:2", "did": "completed"}, {"id": "a:3", "did": "blocked"},
        {"id": "a:4", "did": "added"},
    ]);
    check(it, "memory_plan", update(steps), json!({"written": true, "changes": changes}));
    let status =
        |path: &str| it.text(path).unwrap().lines().find(|it| it.starts_with("status")).map(str::to_owned);
    assert_eq!(status("/plans/a/step-2.md").as_deref(), Some("status: completed"));
    assert_eq!(status("/plans/a/step-3.md").as_deref(), Some("status: blocked"));
    assert!(it.text("/plans/a/step-4.md").unwrap().contains("\ncreated_by: agent\n"));
    let back = json!([{"task": "Two", "status": "in_progress"}, {"task": "Three"}, {"task": "Four"}]);
    match run(it, "memory_plan", &update(back)) {
        Came::Refused(why) => assert!(why.starts_with("not-allowed: `a:2` is completed;"), "{why}"),
        Came::Done(answer) | Came::Asked(_, answer) => panic!("{answer}"),
    }
}

#[test]
fn scripts_are_kept_and_named_and_never_run() {
    let it = &Arc::new(Machine::with(&[("/plans/a/plan.md", "# A\n"), ("/server/package.json", "{}")]));
    let memory = |arguments: Value, expected: Value| check(it, "memory_plan", arguments, expected);
    let given = json!({
        "action": "add_build_script", "script_name": "build-server", "script_description": "Build the TypeScript server",
        "script_command": "npm run build", "script_directory": "/server",
    });
    memory(given, json!({"id": "build-server", "written": true}));
    let script = json!({"id": "build-server", "name": "build-server", "command": "npm run build", "directory_path": "/server"});
    memory(json!({"action": "list_build_scripts"}), json!({"scripts": [script]}));
    memory(json!({"action": "list_build_scripts", "plan_id": "a"}), json!({"scripts": []}));
    memory(
        json!({"action": "run_build_script", "script_id": "build-server"}),
        json!({
            "command": "npm run build", "directory_path": "/server", "script_name": "build-server", "trusted": false,
            "run": "a person must trust it first: planwatch trust build-server; then planwatch script run build-server",
        }),
    );
    memory(json!({"action": "delete_build_script", "script_id": "build-server"}), json!({"written": true}));
    memory(json!({"action": "list_build_scripts"}), json!({"scripts": []}));
}

#[test]
fn documents_are_imported_from_the_workspace_alone() {
    let it = &Arc::new(Machine::with(&[
        ("/plans/a/plan.md", "# A\n"),
        ("/docs/login.md", "# Log in\n\n- [ ] Schema\n- [ ] Form\n"),
    ]));
    let given = json!({
        "action": "import", "plan_file_path": "docs/login.md", "category": "feature", "title": "Sign in", "priority": "low",
    });
    check(it, "memory_plan", given, json!({"plan_id": "sign-in", "title": "Sign in", "written": true}));
    let again = |again: Value| json!({"action": "import", "plan_file_path": "docs/login.md", "category": "bug", "again": again});
    match run(it, "memory_plan", &again(json!(false))) {
        Came::Refused(why) => assert!(why.contains("already-imported") && why.contains("`again`"), "{why}"),
        Came::Done(done) | Came::Asked(_, done) => panic!("{done}"),
    }
    check(it, "memory_plan", again(json!(true)), json!({"plan_id": "log-in", "written": true}));
    for path in ["/etc/passwd.md", "docs/none.md", "docs/../.."] {
        match run(it, "memory_plan", &json!({"action": "import", "plan_file_path": path, "category": "bug"}))
        {
            Came::Refused(why) => {
                let expected = format!("usage: `{path}` is not a document of this repository");
                assert!(why.starts_with(&expected), "{why}");
            }
            Came::Done(done) | Came::Asked(_, done) => panic!("{path}: {done}"),
        }
    }
    let expected = json!({"plan": {"category": "feature", "priority": "low", "steps": [{}, {}]}});
    check(it, "memory_plan", json!({"action": "get", "plan_id": "sign-in"}), expected);
}

#[test]
fn deleting_and_confirming_ask_the_person() {
    let it = &Arc::new(Machine::with(&[
        ("/plans/auth/plan.md", "---\nstatus: active\nconfirm_phases: [deploy]\n---\n# Sign in\n"),
        ("/plans/auth/step-1.md", "---\nstatus: pending\nconfirm: required\n---\n# Schema\n"),
        ("/plans/auth/step-2.md", "---\nstatus: pending\nphase: deploy\n---\n# Deploy\n"),
    ]));
    let asked = |arguments: Value, expected: &str| match run(it, "memory_plan", &arguments) {
        Came::Asked(message, done) => {
            assert_eq!(message, expected);
            assert_eq!(done["state"], "done");
        }
        Came::Done(done) => panic!("{arguments}: the person was not asked: {done}"),
        Came::Refused(why) => panic!("{arguments}: {why}"),
    };
    let step = json!({"action": "confirm", "plan_id": "auth", "confirmation_scope": "step", "confirm_step_index": 1, "confirmed_by": "user"});
    asked(step, "Confirm `auth:1` (Schema)?");
    let phase = json!({"action": "confirm", "plan_id": "auth", "confirmation_scope": "phase", "confirm_phase": "deploy"});
    asked(phase, "Confirm the phase deploy of `auth` (Sign in)?");
    let not = json!({"action": "delete", "plan_id": "auth", "confirm": false});
    check_refused(it, "memory_plan", not, "usage: `confirm` must be true; the server then asks the person");
    let delete = json!({"action": "delete", "plan_id": "auth", "confirm": true});
    asked(delete, "Delete the plan `auth` (Sign in) with all its steps? `planwatch undo` can bring it back.");
}

#[test]
fn an_unknown_id_is_refused_with_valid_ones() {
    let it = &empty();
    let plan_form = "a plan's id is the name of its directory, such as `auth`; list_plans shows it";
    let check = |name: &str, arguments: Value, expected: &str| check_refused(it, name, arguments, expected);
    check(
        "get_plan",
        json!({"plan_id": 7}),
        &format!("usage: `plan_id` cannot be a number; it was given as 7; {plan_form}"),
    );
    let step_form = "a step's id is its plan and its number, such as `auth:2`; get_plan_steps shows it";
    for id in [json!(12), json!("12"), json!(" 2.5 ")] {
        let expected = format!("usage: `step_id` cannot be a number; it was given as {id}; {step_form}");
        check("update_plan_step", json!({"step_id": id, "status": "done"}), &expected);
    }
    check(
        "memory_plan",
        json!({"action": "get", "plan_id": "other", "workspace_id": "my-project-652c624f8f59"}),
        "other-workspace: `my-project-652c624f8f59` is another workspace; this server serves /; leave workspace_id and workspace_path out, or use the server of that workspace",
    );
    check(
        "memory_plan",
        json!({"action": "list", "workspace_path": "/home/user/my-project"}),
        "other-workspace: `/home/user/my-project` is another workspace; this server serves /; leave workspace_id and workspace_path out, or use the server of that workspace",
    );
    check(
        "memory_plan",
        json!({"action": "add_note", "plan_id": "other"}),
        "usage: the argument `note` is missing; `add_note` takes plan_id, note, and may have note_type",
    );
    check(
        "memory_plan",
        json!({"action": "archive", "plan_id": "other", "note": "done"}),
        "usage: `archive` does not take `note`; `archive` takes plan_id",
    );
    check(
        "memory_plan",
        json!({"action": "delet", "plan_id": "other"}),
        "usage: `action` cannot be `delet`; did you mean `delete`? one of list, get, create, update, archive, import, find, add_note, delete, consolidate, set_goals, add_build_script, list_build_scripts, run_build_script, delete_build_script, create_from_template, list_templates, confirm, create_program, add_plan_to_program, upgrade_to_program, list_program_plans",
    );
}

#[test]
fn a_report_ends_only_the_claim_of_the_servers_user() {
    let claimed = |by: &str| {
        format!(
            "---\nstatus: in_progress\nclaim: {{id: c1, by: {by}, at: 2026-11-21T08:59:00Z}}\n---\n# Schema\n"
        )
    };
    let (ann, bob) = (claimed("ann"), claimed("bob"));
    let it = &Arc::new(Machine::with(&[
        ("/plans/auth/plan.md", "---\nstatus: active\n---\n# Sign in\n"),
        ("/plans/auth/step-1.md", &ann),
        ("/plans/auth/step-2.md", &bob),
    ]));
    let done = |step: &str| json!({"step_id": step, "status": "failed", "result": "no"});
    check(it, "update_step", done("auth:1"), json!({"status": "failed"}));
    check_refused(
        it,
        "update_step",
        done("auth:2"),
        "claimed: `auth:2` is claimed by bob; another worker has claimed it; peek_next_step names a step other than `auth:2`",
    );
}

#[test]
fn the_set_has_the_names_that_prompts_use_and_each_can_be_called() {
    let names: Vec<_> = tools(Toolset::Compat, false).iter().map(|it| it.name).collect();
    let expected = [
        "save_plan",
        "create_plan",
        "get_plan",
        "list_plans",
        "search_plans",
        "update_plan_status",
        "add_step",
        "update_step",
        "update_plan_step",
        "peek_next_step",
        "get_plan_steps",
        "get_step",
        "memory_plan",
        "recall",
        "get_decisions",
        "decide",
        "insight",
    ];
    assert_eq!(names, expected);
    let it = &empty();
    let decided =
        json!({"topic": "Authentication", "decision": "Use Guardian for JWT", "reasoning": "It is simple"});
    check(it, "decide", decided, json!({"written": true}));
    let found = json!({"decisions": [{"topic": "Authentication", "decision": "Use Guardian for JWT"}]});
    check(it, "get_decisions", json!({"topic": "AUTHENTICATION", "limit": 2}), found);
    check(it, "get_decisions", json!({"list_topics": true}), json!({"topics": [{}]}));
    check(it, "insight", json!({"title": "Tokens", "text": "They are cached"}), json!({"written": true}));
    check(it, "recall", json!({"query": "cached"}), json!({"hits": [{"kind": "insight"}]}));
}

#[test]
fn the_list_of_tools_is_short() {
    let listed: Vec<_> =
        tools(Toolset::Compat, false).iter().map(|it| serde_json::to_value(it.listed()).unwrap()).collect();
    let list = json!(listed).to_string();
    assert!(list.len() <= 20_000, "the list has {} bytes", list.len());
    assert!(super::INSTRUCTIONS.len() <= 2_048);
    for tool in &listed {
        assert_eq!(tool["annotations"].as_object().unwrap().len(), 4, "{tool}");
        assert!(
            !tool["title"].as_str().unwrap().is_empty() && !tool["outputSchema"]["required"].is_null(),
            "{tool}"
        );
    }
    let memory = listed.iter().find(|it| it["name"] == "memory_plan").unwrap();
    let hints = &memory["annotations"];
    assert_eq!((&hints["destructiveHint"], &hints["readOnlyHint"]), (&json!(true), &json!(false)));
    assert!(tools(Toolset::Compat, true).iter().all(|it| it.name != "memory_plan"));
}
