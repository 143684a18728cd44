#[path = "../../../tests/support/json_schema.rs"]
mod json_schema;
mod steps;

use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::api::context::{Context, Here};
use crate::disk::model::Machine;
use crate::serve::mcp::result::Refusal;
use crate::serve::mcp::schema::Object;
use crate::serve::mcp::tool::{Call, Tool, Turn};
use crate::serve::mcp::toolset::{Toolset, tools};
use json_schema::Schemas;

/// The tools of a set, as the JSON that clients get.
fn tools_of(of: Toolset, is_read_only: bool) -> Vec<Value> {
    tools(of, is_read_only).iter().map(|it| serde_json::to_value(it.listed()).unwrap()).collect()
}

fn names(of: Toolset, is_read_only: bool) -> Vec<&'static str> {
    tools(of, is_read_only).iter().map(|it| it.name).collect()
}

#[test]
fn the_list_is_small_and_always_the_same() {
    let list = json!(tools_of(Toolset::All, false)).to_string();
    // A client gets the list inside an object.
    assert!(list.len() + r#"{"tools":}"#.len() <= 20_000, "the list has {} bytes", list.len());
    assert_eq!(list, json!(tools_of(Toolset::All, false)).to_string());
}

#[test]
fn every_tool_has_a_title_four_hints_and_schemas_that_all_clients_understand() {
    for tool in tools_of(Toolset::All, false) {
        let name = tool["name"].as_str().unwrap();
        assert!(!tool["title"].as_str().unwrap().is_empty(), "{name}");
        for hint in ["readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"] {
            assert!(tool["annotations"][hint].is_boolean(), "{name} has no {hint}");
        }
        for schema in ["inputSchema", "outputSchema"] {
            assert_eq!(tool[schema]["type"], "object", "{name}");
            check_plain(name, &tool[schema]);
        }
        assert!(tool["outputSchema"]["required"].as_array().is_some_and(|it| !it.is_empty()), "{name}");
        assert!(tool["description"].as_str().unwrap().len() < 400, "{name}");
    }
}

/// If a tool says that it is idempotent, a client may repeat its calls.
#[test]
fn only_a_tool_that_appends_nothing_is_idempotent() {
    let idempotent = |of| {
        let all = tools_of(of, false).into_iter().filter(|it| it["annotations"]["idempotentHint"] == true);
        let written = all.filter(|it| it["annotations"]["readOnlyHint"] == false);
        written.map(|it| it["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(idempotent(Toolset::All), ["update_plan"]);
    assert_eq!(idempotent(Toolset::Executor), Vec::<String>::new());
    assert_eq!(idempotent(Toolset::Compat), ["save_plan", "update_plan_status"]);
}

fn check_plain(name: &str, schema: &Value) {
    match schema {
        Value::Object(object) => {
            assert!(!object.contains_key("$defs") && !object.contains_key("$ref"), "{name}: {schema}");
            assert!(!object.contains_key("anyOf") && !object.contains_key("oneOf"), "{name}: {schema}");
            if object.get("type").is_some_and(|it| !it.is_object()) {
                assert!(object["type"].is_string(), "{name}: {schema}");
                assert!(!object.contains_key("format"), "{name}: {schema}");
            }
            object.values().for_each(|it| check_plain(name, it));
        }
        Value::Array(items) => items.iter().for_each(|it| check_plain(name, it)),
        _ => {}
    }
}

#[test]
fn sets_have_the_tools_that_they_promise() {
    let executor = [
        "get_plan",
        "get_step",
        "recall",
        "get_decisions",
        "add_step",
        "update_step",
        "add_note",
        "decide",
        "insight",
    ];
    assert_eq!(names(Toolset::Executor, false), executor);
    let reading = [
        "list_plans",
        "get_plan",
        "get_step",
        "peek_next_step",
        "briefing",
        "recall",
        "get_decisions",
        "list_assets",
    ];
    assert_eq!(names(Toolset::All, true), reading);
}

const PLAN: &str =
    "---\nid: auth\nstatus: active\nconfirm_phases: [deploy]\n---\n# Sign in\n\nAbout sessions.\n";

fn machine() -> Arc<Machine> {
    Arc::new(Machine::with(&[
        ("/plans/auth/plan.md", PLAN),
        ("/plans/auth/step-1.md", "---\nid: auth:1\nstatus: pending\n---\n# Schema\n\nTables.\n"),
        ("/plans/auth/step-2.md", "---\nid: auth:2\nstatus: pending\nconfirm: required\n---\n# Migrations\n"),
        (
            "/plans/auth/step-3.md",
            "---\nid: auth:3\nstatus: pending\nphase: deploy\ndepends: [1]\n---\n# Deploy\n",
        ),
        ("/plans/web/plan.md", "---\nstatus: active\n---\n# Web pages\n"),
    ]))
}

fn context(machine: &Machine) -> Context {
    Context {
        now: "2026-11-21T09:00:00Z".parse().unwrap(),
        by: "codex".to_owned(),
        here: Here { directory: "/".into(), root: "/".into(), ..Here::default() },
        ..Context::on_model(machine)
    }
}

pub(super) fn call(machine: &Arc<Machine>) -> Call {
    let again = Arc::clone(machine);
    let contexts = Arc::new(move || Ok(context(&again)));
    Call { context: context(machine), contexts, person: "ann".to_owned(), renews: false }
}

fn find(name: &str) -> Tool {
    tools(Toolset::All, false).into_iter().find(|it| it.name == name).unwrap()
}

/// Calls a tool as the server does. If the tool asks for a confirmation, it gets one.
fn run(machine: &Arc<Machine>, name: &str, arguments: &Value) -> Result<Value, Refusal> {
    let (tool, call) = (find(name), call(machine));
    let given: Object = arguments.as_object().cloned().unwrap();
    match tool.run(&call, given)? {
        Turn::Done(done) => Ok(done),
        Turn::Asks(question) => (question.act)(&call, Some("looks right".to_owned())),
    }
}

/// Calls a tool, and checks its answer against the tool's schema.
#[track_caller]
fn answer(machine: &Arc<Machine>, name: &str, arguments: &Value) -> Value {
    let answer = run(machine, name, arguments).unwrap_or_else(|it| panic!("{name}: {it:?}"));
    check_answer(&find(name), &answer);
    answer
}

/// Validates an answer with the output schema of its tool, and returns the schema.
#[track_caller]
pub(super) fn check_answer(tool: &Tool, answer: &Value) -> Value {
    let schema = serde_json::to_value(tool.listed()).unwrap()["outputSchema"].take();
    // Output schemas contain no `$ref`, so no definitions are needed.
    let fault = Schemas { parts: Map::new(), is_partial: false }.fault(&schema, answer);
    assert_eq!(fault, None, "{}: {answer}", tool.name);
    schema
}

#[track_caller]
fn refusal(machine: &Arc<Machine>, name: &str, arguments: &Value) -> String {
    let refusal = run(machine, name, arguments).unwrap_err();
    let answer = serde_json::to_value(refusal.into_result()).unwrap();
    assert_eq!(answer["isError"], true);
    let text: Value = serde_json::from_str(answer["content"][0]["text"].as_str().unwrap()).unwrap();
    let error = &text["error"];
    format!(
        "{}: {}; {}",
        error["code"].as_str().unwrap(),
        error["message"].as_str().unwrap(),
        error["hint"].as_str().unwrap_or_default()
    )
}

#[test]
fn the_answer_of_each_tool_matches_its_schema() {
    let machine = machine();
    let calls = [
        ("create_plan", json!({"title": "Billing", "steps": ["Invoices", "Dunning"], "goals": ["money"]})),
        ("create_plan", json!({"title": "Billing", "steps": ["Dunning", "Refunds"], "if_exists": "update"})),
        (
            "add_step",
            json!({"plan": "billing", "description": "# Taxes\n\nPer country.", "after_step": 1, "gate": true}),
        ),
        ("update_plan", json!({"plan": "Billing", "priority": "high", "tags": "money"})),
        ("list_plans", json!({})),
        ("get_plan", json!({"plan": "billing"})),
        ("get_plan", json!({"plan": "billing", "detail": "full", "status": "ready"})),
        ("peek_next_step", json!({})),
        ("peek_next_step", json!({"plan": "billing"})),
        ("claim_next_step", json!({"plan": "billing"})),
        ("claim_next_step", json!({"plan": "web"})),
        ("get_step", json!({"step": "billing:1"})),
        (
            "update_step",
            json!({"step": "billing:1", "status": "done", "result": "made", "metadata": {"a": 1}}),
        ),
        ("add_note", json!({"step": "billing:2", "note": "ask first", "note_type": "warning"})),
        (
            "restructure_plan",
            json!({"plan": "billing", "op": "consolidate", "steps": [2, 3], "task": "Both"}),
        ),
        ("restructure_plan", json!({"plan": "billing", "op": "remove", "steps": ["billing:2"]})),
        (
            "restructure_plan",
            json!({"plan": "billing", "op": "replace", "steps": ["Ledger", {"title": "Export"}]}),
        ),
        ("confirm_gate", json!({"step": "auth:2"})),
        ("confirm_gate", json!({"plan": "auth", "phase": "deploy", "decision": "reject"})),
        ("decide", json!({"topic": "store", "decision": "Redis", "reasoning": "it is there"})),
        ("insight", json!({"title": "Tokens are cached", "text": "For 60 s"})),
        ("manage_script", json!({"action": "add", "name": "build", "command": "make all"})),
        ("recall", json!({"query": "sessions"})),
        ("get_decisions", json!({"topic": "store"})),
        ("get_decisions", json!({"list_topics": true})),
        ("list_assets", json!({"kind": "scripts"})),
        ("list_assets", json!({"kind": "scripts", "name": "build"})),
        ("list_assets", json!({"kind": "templates"})),
        ("list_assets", json!({"kind": "prompts", "name": "step"})),
        ("manage_script", json!({"action": "delete", "name": "build"})),
        (
            "create_plan",
            json!({"title": "Search", "body": "# Search\n\nWith words.\n", "steps": ["Words"], "priority": "low"}),
        ),
        ("refine_draft", json!({"plan": "Mail", "conversation": "User: send mail."})),
        ("briefing", json!({})),
        ("delete_plan", json!({"plan": "web"})),
    ];
    for (name, arguments) in &calls {
        answer(&machine, name, arguments);
    }
    let all = names(Toolset::All, false);
    let uncalled: Vec<_> = all.iter().filter(|name| calls.iter().all(|(it, _)| it != *name)).collect();
    assert!(uncalled.is_empty(), "no call tests {uncalled:?}");
}

#[test]
fn a_call_that_is_sent_again_with_its_key_is_made_once() {
    let machine = machine();
    let calls = [
        ("create_plan", json!({"title": "Billing", "steps": ["Invoices"]})),
        ("add_step", json!({"plan": "auth", "title": "Taxes"})),
        ("add_note", json!({"step": "auth:1", "note": "once"})),
        ("claim_next_step", json!({"plan": "auth"})),
        (
            "update_step",
            json!({"step": "auth:1", "attempt_outcome": "partial", "notes": "half", "title": "T"}),
        ),
    ];
    for (nth, (name, arguments)) in calls.iter().enumerate() {
        let mut keyed = arguments.clone();
        keyed["key"] = format!("call {nth}").into();
        let first = answer(&machine, name, &keyed);
        let files = machine.tree();
        assert_eq!(answer(&machine, name, &keyed), first, "{name}");
        assert_eq!(machine.tree(), files, "{name}");
        // Another call cannot use the same key.
        let refused =
            refusal(&machine, "add_note", &json!({"step": "auth:1", "note": "x", "key": keyed["key"]}));
        assert!(refused.starts_with("idempotency-key-reused: "), "{name}: {refused}");
    }
    // Without a key, each call makes the change again.
    let (name, arguments) = &calls[2];
    answer(&machine, name, arguments);
    let shown = answer(&machine, "get_step", &json!({"step": "auth:1"}));
    let notes = shown["notes"].as_array().unwrap().iter().filter(|it| it["text"] == "once").count();
    assert_eq!(notes, 2, "{shown}");
    let refused = refusal(&machine, "add_note", &json!({"step": "auth:1", "note": "x", "key": 7}));
    assert!(refused.starts_with("usage: `key` has to be a text"), "{refused}");
}

#[test]
fn refusals_say_what_to_do_next() {
    let machine = machine();
    let check = |name: &str, arguments: Value, expected: &str| {
        assert_eq!(refusal(&machine, name, &arguments), expected);
    };
    check("get_plan", json!({"plan": "aut"}), "not-found: there is no plan `aut`; did you mean `auth`?");
    check(
        "get_plan",
        json!({"plan": "auth", "detial": "full"}),
        "usage: there is no argument `detial`; did you mean `detail`? the arguments are plan, detail, status, limit, cursor",
    );
    check(
        "get_plan",
        json!({"plan": "auth", "detail": "ful"}),
        "usage: `detail` cannot be `ful`; did you mean `full`? one of outline, full",
    );
    check(
        "delete_plan",
        json!({"plan": "auth:1"}),
        "usage: `auth:1` names a step; restructure_plan with op `remove` removes steps",
    );
    check("get_step", json!({}), "usage: the argument `step` is missing; `step`: Id, as auth:2");
    check(
        "list_plans",
        json!({"limit": "many"}),
        "usage: `limit` has to be a whole number; it was given as \"many\"",
    );
    check(
        "recall",
        json!({"query": "auth", "cursor": "18446744073709551615"}),
        "usage: `18446744073709551615` is not a cursor; use the next_cursor of the previous page, or none",
    );
    check(
        "update_step",
        json!({"step": "auth:3", "status": "completed"}),
        "dependencies-open: `auth:3` waits for auth:1 (pending); finish these steps first; claim_next_step claims a ready step",
    );
    check(
        "claim_next_step",
        json!({"plan": "auth:9"}),
        "not-found: there is no step `auth:9`; the plan's steps are 1, 2, 3",
    );
    let blank = "usage: the arguments cannot be read: the name to record is blank; ";
    let claim = refusal(&machine, "claim_next_step", &json!({"worker": " "}));
    let update = refusal(&machine, "update_step", &json!({"step": "auth:1", "notes": "x", "worker": "\n"}));
    assert!(claim.starts_with(blank) && update.starts_with(blank), "{claim} {update}");
    check(
        "get_plan",
        json!({"plan": "auth", "cursor": "x"}),
        "usage: the cursor `x` is no longer valid; start without a cursor",
    );
}

#[test]
fn a_preserved_save_is_reported_on_success_and_on_refusal() {
    let machine = machine();
    let kept = |of: &Value| {
        let named: Vec<_> = of["kept"].as_array().unwrap().iter().map(|it| it["why"].clone()).collect();
        assert!(
            of["kept"][0]["kept"].as_str().unwrap().starts_with(".planwatch/displaced/kept-late."),
            "{of}"
        );
        (named, of["kept"][0]["path"].clone())
    };
    let note = json!({"step": "auth:1", "note": "One."});
    assert!(run(&machine, "add_note", &note).unwrap().get("kept").is_none());
    machine.save_late("an editor's text\n");
    let done = run(&machine, "add_note", &note).unwrap();
    assert_eq!(kept(&done), (vec![json!("late")], json!("auth/step-1.md")));
    assert!(run(&machine, "add_note", &note).unwrap().get("kept").is_none());
    machine.save_late("another text\n");
    let refused = run(&machine, "update_step", &json!({"step": "auth:3", "status": "completed"}));
    let answer = serde_json::to_value(refused.unwrap_err().into_result()).unwrap();
    let answer: Value = serde_json::from_str(answer["content"][0]["text"].as_str().unwrap()).unwrap();
    assert_eq!(kept(&answer["error"]["details"]), (vec![json!("late")], json!("auth/step-1.md")));
}

#[test]
fn hints_name_tools_where_commands_do_the_same() {
    let machine = machine();
    let check = |name: &str, arguments: Value, expected: &str| {
        let refused = refusal(&machine, name, &arguments);
        assert!(refused.ends_with(expected), "{refused}");
    };
    answer(&machine, "update_step", &json!({"step": "auth:1", "status": "skipped"}));
    check(
        "update_step",
        json!({"step": "auth:1", "status": "failed"}),
        "; update_step `auth:1` with status `pending` first",
    );
    check(
        "add_step",
        json!({"plan": "auth", "title": "X", "step_number": 1}),
        "; after_step 1 inserts it after that step",
    );
    let unknown = json!({"step": "auth:1", "status": "completed", "claim": "c0000000"});
    check("update_step", unknown, "; get_step `auth:1` shows its owner");
    answer(&machine, "update_plan", &json!({"plan": "auth", "archived": true}));
    check(
        "add_step",
        json!({"plan": "auth", "title": "X"}),
        "; update_plan `auth` with archived `false` brings it back",
    );
    let titles = json!({"plan": "web", "op": "remove", "steps": ["Schema"]});
    check("restructure_plan", titles, "; write it as 2 or 2.5; get_plan names the steps");
    check(
        "peek_next_step",
        json!({"plan": "nothing-like-it"}),
        "; list_plans with status `all` lists the plans",
    );
    let made = answer(&machine, "create_plan", &json!({"title": "Billing", "steps": ["Invoices"]}));
    assert_eq!(made["hint"], "claim_next_step `billing`");
}

#[test]
fn a_plan_is_updated_whole_or_not_at_all() {
    let machine = machine();
    let check = |arguments: Value, why: &str| {
        let before = machine.tree();
        let refused = refusal(&machine, "update_plan", &arguments);
        assert!(refused.starts_with(why) && !refused.contains("before that"), "{refused}");
        assert_eq!(machine.tree(), before, "{arguments}");
    };
    answer(&machine, "claim_next_step", &json!({"plan": "auth"}));
    check(json!({"plan": "auth", "priority": "high", "archived": true}), "claimed: ");
    // `convert_to_program` is refused because of `program`.
    answer(&machine, "update_plan", &json!({"plan": "web", "convert_to_program": true}));
    check(json!({"plan": "auth", "program": "web", "convert_to_program": true}), "");
    answer(&machine, "update_plan", &json!({"plan": "web", "archived": true}));
    check(json!({"plan": "web", "priority": "huge", "archived": false}), "");
    let done =
        answer(&machine, "update_plan", &json!({"plan": "web", "priority": "high", "archived": false}));
    assert_eq!((&done["did"], &done["written"]), (&json!("priority = high"), &json!(true)));
    let arguments = json!({"plan": "web", "priority": "low", "tags": ["x"], "archived": true});
    assert_eq!(answer(&machine, "update_plan", &arguments)["did"], "archived");
    let plan = machine.text("/plans/_archive/web/plan.md").unwrap();
    assert!(plan.contains("priority: low\n") && plan.contains("tags:\n  - x\n"), "{plan}");
}

#[test]
fn a_plan_is_made_whole_or_not_at_all() {
    let machine = machine();
    let text = "---\npriority: low\n---\n# Other\n\nText.\n";
    let refused = [
        (
            json!({"title": "Mail", "body": text, "template": "feature"}),
            "a template and a text contradict each other",
        ),
        (json!({"title": "Mail", "body": text, "priority": "huge"}), "the priority `huge` is not known"),
        (json!({"title": "Mail", "body": text, "program": "nope"}), "there is no plan `nope`"),
        (json!({"title": "Mail", "from_file": "doc.md", "goals": ["g"]}), "a document brings its own text"),
    ];
    for (arguments, why) in refused {
        let refused = refusal(&machine, "create_plan", &arguments);
        assert!(refused.contains(why), "{refused}");
        assert!(refusal(&machine, "get_plan", &json!({"plan": "mail"})).starts_with("not-found"));
    }
    let arguments =
        json!({"title": "Mail", "body": text, "tags": ["x"], "steps": ["Send"], "priority": "high"});
    let made = answer(&machine, "create_plan", &arguments);
    assert_eq!(
        (&made["id"], &made["did"], &made["written"]),
        (&json!("mail"), &json!("made with 2 files"), &json!(true))
    );
    let plan = machine.text("/plans/mail/plan.md").unwrap();
    assert!(
        plan.contains("priority: high\n")
            && plan.contains("tags:\n  - x\n")
            && plan.ends_with("# Other\n\nText.\n"),
        "{plan}"
    );
}

#[test]
fn an_update_by_create_plan_returns_the_existing_plan() {
    let machine = machine();
    let update = json!({"title": "Sign in", "steps": ["Schema", "Rollout"], "if_exists": "update"});
    let done = answer(&machine, "create_plan", &update);
    let plan = answer(&machine, "get_plan", &json!({"plan": "auth"}));
    assert_eq!(
        (&done["title"], &done["etag"], &done["did"]),
        (&json!("Sign in"), &plan["etag"], &json!("added"))
    );
    assert_eq!(answer(&machine, "create_plan", &update)["written"], false);
    let other = json!({"title": "Sign in", "body": "# Sign in\n\nOther.\n", "if_exists": "update"});
    assert!(refusal(&machine, "create_plan", &other).contains("of an existing plan cannot be changed"));
}

#[test]
fn a_step_is_there_with_its_gate_from_the_first_moment() {
    let machine = machine();
    let added = answer(&machine, "add_step", &json!({"plan": "web", "title": "Go live", "gate": true}));
    assert_eq!(added["did"], "added");
    assert!(machine.text("/plans/web/step-1.md").unwrap().contains("\nconfirm: required\n"));
    let looked = json!({"plan": "auth", "op": "remove", "steps": [3], "dry_run": true});
    assert_eq!(answer(&machine, "restructure_plan", &looked).get("steps_after"), None);
}

#[test]
fn a_refused_update_writes_none_of_its_fields() {
    let machine = machine();
    let before = machine.text("/plans/auth/step-2.md");
    let arguments = json!({"step": "auth:2", "status": "completed", "notes": "half", "metadata": {"a": 1}});
    refusal(&machine, "update_step", &arguments);
    assert_eq!(machine.text("/plans/auth/step-2.md"), before);
}

#[test]
fn a_claim_belongs_to_the_client_and_completion_removes_it() {
    let machine = machine();
    let claimed = answer(&machine, "claim_next_step", &json!({"plan": "auth"}));
    assert_eq!(
        (&claimed["step"]["id"], &claimed["step"]["body"]),
        (&json!("auth:1"), &json!("# Schema\n\nTables.\n"))
    );
    let step = answer(&machine, "get_step", &json!({"step": "auth:1"}));
    assert_eq!(step["claim"]["by"], "codex");
    let done =
        json!({"step": "auth:1", "claim": claimed["claim"]["id"], "status": "completed", "result": "made"});
    assert_eq!(answer(&machine, "update_step", &done)["status"], "completed");
    let step = answer(&machine, "get_step", &json!({"step": "auth:1"}));
    assert_eq!((step.get("claim"), &step["attempts"][0]["by"]), (None, &json!("codex")));
}

#[test]
fn a_conditional_change_is_made_only_on_the_version_that_was_read() {
    let machine = machine();
    let read = answer(&machine, "get_step", &json!({"step": "auth:1"}));
    let update =
        |etag: &Value, key: &str| json!({"step": "auth:1", "metadata": {key: 1}, "notes": "n", "etag": etag});
    let done = answer(&machine, "update_step", &update(&read["etag"], "a"));
    assert_eq!(done["written"], true);
    let refused = refusal(&machine, "update_step", &update(&read["etag"], "b"));
    assert!(refused.starts_with("file-changed: `auth:1` does not match the expected version"), "{refused}");
    answer(&machine, "update_step", &json!({"step": "auth:1", "metadata": {"b": 2, "a": null}}));
    let step = answer(&machine, "get_step", &json!({"step": "auth:1"}));
    assert_eq!(step["metadata"], json!({"b": 2}));
    let refused =
        refusal(&machine, "update_plan", &json!({"plan": "auth", "priority": "high", "etag": "other"}));
    assert!(refused.starts_with("file-changed"), "{refused}");
}

#[test]
fn a_draft_is_refined_by_its_handle() {
    let machine = machine();
    let begun =
        answer(&machine, "refine_draft", &json!({"plan": "Mail", "conversation": "User: send mail."}));
    let next = json!({"draft": begun["draft"], "output": "# Mail\n\nIt is sent."});
    let asked = answer(&machine, "refine_draft", &next);
    assert_eq!(
        (&asked["plan"], &asked["pass"], &asked["state"]),
        (&json!("mail"), &json!(2), &json!("asking"))
    );
    let refused = refusal(&machine, "refine_draft", &json!({"draft": "nothing-1", "output": "x"}));
    assert!(refused.starts_with("not-found: there is no draft `nothing-1`; start again"), "{refused}");
}

#[test]
fn a_confirmed_gate_asks_no_question() {
    let machine = machine();
    answer(&machine, "confirm_gate", &json!({"step": "auth:2"}));
    let given = json!({"step": "auth:2"}).as_object().cloned().unwrap();
    assert!(matches!(find("confirm_gate").run(&call(&machine), given), Ok(Turn::Done(_))));
}

#[test]
fn a_confirmation_is_recorded_as_the_persons() {
    let machine = machine();
    answer(&machine, "confirm_gate", &json!({"step": "auth:2"}));
    let step = answer(&machine, "get_step", &json!({"step": "auth:2"}));
    assert_eq!(step["confirmation"]["by"], "ann");
    assert_eq!(step["confirmation"]["note"], "looks right");
}

#[test]
fn names_of_other_plan_tools_are_understood_and_empty_texts_are_not_given() {
    let machine = machine();
    assert_eq!(answer(&machine, "get_plan", &json!({"plan_id": "auth"}))["id"], "auth");
    assert_eq!(answer(&machine, "get_plan", &json!({"title": "Web pages"}))["id"], "web");
    assert!(
        refusal(&machine, "add_note", &json!({"title": "Web pages", "note": "x"})).contains("no argument")
    );
    for name in ["plan", "plan_id", "plan_name", "plan-name"] {
        let arguments = serde_json::Map::from_iter([(name.to_owned(), json!("auth"))]);
        let asked = rmcp::model::GetPromptRequestParams::new("ps-execute").with_arguments(arguments);
        let prompt = super::prompts::get(&asked).unwrap();
        assert!(json!(prompt).to_string().contains("Execute the plan `auth`"), "{name}");
    }
    assert_eq!(answer(&machine, "get_step", &json!({"step_id": "auth:1"}))["id"], "auth:1");
    let done = json!({"step_id": "auth:1", "status": "completed", "result": "made", "etag": "", "claim": ""});
    assert_eq!(answer(&machine, "update_step", &done)["status"], "completed");
    let listed = answer(&machine, "list_plans", &json!({"status": "", "query": "", "cursor": ""}));
    assert_eq!(listed["plans"].as_array().map(Vec::len), Some(2));
    // The list of tools does not contain the argument names of other plan tools, such as `step_id`. A call with both
    // `step_id` and `step` is refused.
    assert!(!json!(tools_of(Toolset::All, false)).to_string().contains("step_id"));
    assert!(
        refusal(&machine, "get_step", &json!({"step_id": "auth:1", "step": "auth:2", "plan_id": "x"}))
            .contains("no argument")
    );
}

#[test]
fn each_set_has_instructions_that_fit_and_name_its_own_tools_alone() {
    let all = super::tool_names(None);
    for (tools, is_read_only) in [Toolset::All, Toolset::Executor, Toolset::Compat]
        .into_iter()
        .flat_map(|it| [(it, false), (it, true)])
    {
        let text = super::instructions(super::Options { tools, is_read_only });
        assert!(text.len() <= 2_048, "{tools:?}");
        let own = names(tools, is_read_only);
        for word in text.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|it| it.contains('_')) {
            assert!(own.contains(&word) || !all.contains(&word), "{tools:?}, {is_read_only}: {word}");
        }
    }
}
