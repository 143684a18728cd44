//! `mcp` with a client: confirmations by a person in both protocol versions, pages of long plans, and disconnected clients.

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

use crate::http::client::Server;
use crate::support::Place;

/// A client over standard input and output.
pub(crate) struct Client {
    child: Child,
    input: Option<ChildStdin>,
    output: Option<BufReader<ChildStdout>>,
}

impl Client {
    fn new(place: &Place) -> Self {
        Self::with(place, &["mcp"])
    }

    fn with(place: &Place, arguments: &[&str]) -> Self {
        Self::spawn(place.command(), arguments)
    }

    fn spawn(mut command: Command, arguments: &[&str]) -> Self {
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().expect("the binary starts");
        let (input, output) = (child.stdin.take(), child.stdout.take().map(BufReader::new));
        Self { child, input, output }
    }

    /// A client with an earlier protocol version. Its capabilities say whether it can ask a person.
    fn legacy(place: &Place, capabilities: &Value) -> Self {
        Self::of(place, &["mcp"], capabilities)
    }

    /// As [`Self::legacy`], with arguments for the server.
    pub(crate) fn of(place: &Place, arguments: &[&str], capabilities: &Value) -> Self {
        Self::of_command(place.command(), arguments, capabilities)
    }

    /// As [`Self::of`]. `command` is the binary, with its directory and environment.
    pub(crate) fn of_command(command: Command, arguments: &[&str], capabilities: &Value) -> Self {
        Self::named("codex", command, arguments, capabilities)
    }

    /// As [`Self::of_command`], by a client of this name.
    pub(crate) fn named(name: &str, command: Command, arguments: &[&str], capabilities: &Value) -> Self {
        let mut client = Self::spawn(command, arguments);
        let hello = json!({
            "protocolVersion": "2025-06-18", "capabilities": capabilities,
            "clientInfo": {"name": name, "version": "1"},
        });
        client.send(&json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello}));
        assert_eq!(client.receive()["result"]["serverInfo"]["name"], "planwatch");
        client.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        client
    }

    fn send(&mut self, message: &Value) {
        let input = self.input.as_mut().expect("it is open");
        writeln!(input, "{message}").expect("it reads");
    }

    pub(crate) fn receive(&mut self) -> Value {
        let mut line = String::new();
        self.output.as_mut().expect("it is open").read_line(&mut line).expect("it writes");
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"))
    }

    pub(crate) fn call(&mut self, name: &str, arguments: &Value, more: &Value) {
        let mut params = json!({"name": name, "arguments": arguments});
        for (key, value) in more.as_object().into_iter().flatten() {
            params[key] = value.clone();
        }
        self.send(&json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params}));
    }

    /// Closes the server's input, and waits for its exit.
    pub(crate) fn end(mut self) -> i32 {
        drop(self.input.take());
        self.child.wait().expect("it ends").code().unwrap_or(-1)
    }
}

/// The metadata of a request of the newer protocol.
fn modern() -> Value {
    json!({"_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "claude-code", "version": "2"},
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}},
    }})
}

fn is_there(place: &Place) -> bool {
    place.file("plans/feature-auth/plan.md").exists()
}

#[test]
fn with_the_older_protocol_the_person_is_asked_during_the_call() {
    for (answer, is_deleted) in [
        (json!({"action": "decline"}), false),
        (json!({"action": "cancel"}), false),
        (json!({"action": "accept"}), false),
        (json!({"action": "accept", "content": {"yes": false}}), false),
        (json!({"action": "accept", "content": {"yes": true}}), true),
    ] {
        let place = Place::with_examples();
        let mut client = Client::legacy(&place, &json!({"elicitation": {}}));
        client.call("delete_plan", &json!({"plan": "feature-auth"}), &json!({}));
        let question = client.receive();
        assert_eq!(question["method"], "elicitation/create", "{question}");
        assert!(question["params"]["message"].as_str().unwrap().contains("feature-auth"), "{question}");
        client.send(&json!({"jsonrpc": "2.0", "id": question["id"], "result": answer}));
        let done = client.receive();
        let expected = if is_deleted { "done" } else { "declined" };
        let done = &done["result"]["structuredContent"];
        assert_eq!(done["state"], expected, "{answer}: {done}");
        assert_eq!(is_there(&place), !is_deleted, "{answer}");
        if is_deleted {
            let path = done["path"].as_str().expect("a path");
            assert!(place.file(path).join("plan.md").exists(), "{path}");
            assert!(done["hint"].as_str().expect("a hint").contains("`undo`"), "{done}");
        }
        assert_eq!(client.end(), 0);
    }
}

#[test]
fn with_the_newer_protocol_the_client_calls_again_with_the_answer() {
    let place = Place::with_examples();
    let mut client = Client::new(&place);
    let arguments = json!({"plan": "Feature: User Authentication"});
    client.call("delete_plan", &arguments, &modern());
    let asked = client.receive()["result"].clone();
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    assert!(asked["inputRequests"]["person"]["params"]["message"].as_str().is_some(), "{asked}");
    let again = |state: &Value, content: &Value| {
        let mut more = modern();
        more["requestState"] = state.clone();
        more["inputResponses"] = json!({"person": {"action": "accept", "content": content}});
        more
    };
    let yes = || json!({"yes": true});
    let state = &asked["requestState"];
    // With an invented state, or that of another request, the person is asked again.
    for (arguments, state) in
        [(&arguments, json!("rs1.made.up")), (&json!({"plan": "fence-repair"}), state.clone())]
    {
        client.call("delete_plan", arguments, &again(&state, &yes()));
        assert_eq!(client.receive()["result"]["resultType"], "input_required", "{arguments}");
    }
    client.call("delete_plan", &arguments, &again(state, &json!({"yes": false})));
    assert_eq!(client.receive()["result"]["structuredContent"]["state"], "declined");
    assert!(is_there(&place) && place.file("plans/fence-repair/plan.md").exists());
    client.call("delete_plan", &arguments, &again(state, &yes()));
    assert_eq!(client.receive()["result"]["structuredContent"]["state"], "done");
    assert!(!is_there(&place));
    assert_eq!(client.end(), 0);
}

#[test]
fn a_line_that_is_not_a_request_gets_an_error() {
    let place = Place::with_examples();
    let mut client = Client::legacy(&place, &json!({}));
    let (open, close) = ("[".repeat(200), "]".repeat(200));
    let note = |id: &str| {
        format!(
            r#"{{"jsonrpc":"2.0",{id}"method":"tools/call","params":{{"name":"add_note","arguments":{{"plan":"fence-repair","note":{open}{close}}}}}}}"#
        )
    };
    for (line, code, id) in [
        ("hello".to_owned(), -32700, json!(null)),
        (r#"{"jsonrpc":"2.0","id":1,"method":"#.to_owned(), -32700, json!(null)),
        ("[]".to_owned(), -32600, json!(null)),
        (r#"{"jsonrpc":"2.0","id":"a"}"#.to_owned(), -32600, json!("a")),
        (note(r#""id":12,"#), -32600, json!(12)),
        (note(r#""id":null,"#), -32600, json!(null)),
    ] {
        writeln!(client.input.as_mut().expect("it is open"), "{line}").expect("it reads");
        let answer = client.receive();
        assert_eq!((&answer["error"]["code"], &answer["id"]), (&json!(code), &id), "{line}: {answer}");
        assert!(answer.as_object().expect("an object").contains_key("id"), "{answer}");
    }
    // A notification never gets an answer, so the next answer is that of the call.
    writeln!(client.input.as_mut().expect("it is open"), "{}", note("")).expect("it reads");
    client.call("list_plans", &json!({}), &json!({}));
    assert_eq!(client.receive()["id"], 7);
    assert_eq!(client.end(), 0);
}

#[test]
fn a_page_of_three_thousand_steps_is_small_and_has_a_cursor() {
    let place = Place::new();
    place.write("plans/big/plan.md", "---\nstatus: active\n---\n# Big\n");
    for n in 1..=3_000 {
        let text = format!("---\nstatus: pending\n---\n# The step that has the number {n}\n");
        place.write(&format!("plans/big/step-{n}.md"), text);
    }
    let mut client = Client::legacy(&place, &json!({}));
    let mut ask = |name: &str, arguments: &Value| {
        client.call(name, arguments, &json!({}));
        let answer = client.receive()["result"].clone();
        let text = answer["content"][0]["text"].as_str().unwrap().to_owned();
        // A token of JSON has at least three bytes on average.
        assert!(text.len() < 6_000, "{name}: {} bytes", text.len());
        answer["structuredContent"].clone()
    };
    let first = ask("get_plan", &json!({"plan": "big"}));
    let n = first["steps"].as_array().unwrap().len();
    let second = ask("get_plan", &json!({"plan": "big", "cursor": first["next_cursor"]}));
    assert_eq!(second["steps"][0]["id"], format!("big:{}", n + 1));
    assert_eq!(ask("get_plan", &json!({"plan": "big", "limit": 3}))["steps"].as_array().unwrap().len(), 3);
    assert_eq!(ask("get_plan", &json!({"plan": "big", "status": "completed"}))["steps"], json!([]));
    ask("briefing", &json!({}));
    ask("peek_next_step", &json!({"plan": "big"}));
    ask("get_step", &json!({"step": "big:1500"}));
    ask("claim_next_step", &json!({"plan": "big"}));
    ask("recall", &json!({"query": "number"}));
}

#[test]
fn calls_do_not_run_after_the_client_stopped_reading() {
    let place = Place::with_examples();
    let mut client = Client::legacy(&place, &json!({}));
    // From now on the client does not read answers.
    drop(client.output.take());
    for _ in 0..200 {
        let note = json!({"step": "feature-auth:0", "note": "again"});
        let params = json!({"name": "add_note", "arguments": note});
        let message = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params});
        // The server may have exited already.
        if writeln!(client.input.as_mut().expect("it is open"), "{message}").is_err() {
            break;
        }
    }
    client.end();
    let n = place.text("plans/feature-auth/step-0.md").matches("again").count();
    assert!(n < 20, "{n} notes were written after the client stopped reading");
}

#[test]
fn a_script_that_writes_and_closes_gets_all_its_answers() {
    const N: u64 = 200;
    let place = Place::with_examples();
    let mut client = Client::legacy(&place, &json!({"elicitation": {}}));
    for id in 1..=N {
        let note = json!({"step": "feature-auth:0", "note": "again"});
        let params = json!({"name": "add_note", "arguments": note});
        client.send(&json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}));
    }
    // No person can confirm this.
    let params = json!({"name": "delete_plan", "arguments": {"plan": "feature-auth"}});
    client.send(&json!({"jsonrpc": "2.0", "id": N + 1, "method": "tools/call", "params": params}));
    drop(client.input.take());
    let output = client.output.take().expect("it is open");
    let messages = output.lines().map(|it| serde_json::from_str(&it.expect("a line")).expect("an object"));
    let answers: Vec<Value> = messages.filter(|it: &Value| it["method"].is_null()).collect();
    let ids: Vec<_> = answers.iter().filter_map(|it| it["id"].as_u64()).collect();
    assert_eq!(ids, (1..=N + 1).collect::<Vec<_>>());
    assert_eq!(answers[N as usize]["result"]["isError"], true, "{}", answers[N as usize]);
    let n = place.text("plans/feature-auth/step-0.md").matches("again").count();
    assert_eq!((n as u64, is_there(&place)), (N, true));
    assert_eq!(client.end(), 0);
}

#[test]
fn a_wrong_first_message_is_reported_in_one_sentence() {
    let place = Place::with_examples();
    let mut command = place.command();
    command.arg("mcp").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the binary starts");
    let mut input = child.stdin.take().expect("it is piped");
    writeln!(input, "{}", json!({"jsonrpc": "2.0", "id": 1, "result": {}})).expect("it reads");
    drop(input);
    let ended = child.wait_with_output().expect("it ends");
    let stderr = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert!(stderr.starts_with("error[protocol]: the first message must be"), "{stderr}");
    assert!(stderr.lines().count() <= 2 && ended.stdout.is_empty(), "{stderr}");
}

#[test]
fn a_notification_before_the_session_is_ignored() {
    let place = Place::with_examples();
    let mut client = Client::new(&place);
    let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    let initialize = |version: &Value| {
        let info = json!({"name": "x", "version": "1"});
        let params = json!({"protocolVersion": version, "capabilities": {}, "clientInfo": info});
        json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params})
    };
    let cancelled = json!({"requestId": 9});
    client.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancelled}));
    client.send(&initialized);
    client.send(&initialize(&json!(5)));
    assert_eq!(client.receive()["error"]["code"], -32602);
    client.send(&initialized);
    client.send(&initialize(&json!("2025-06-18")));
    assert_eq!(client.receive()["result"]["protocolVersion"], "2025-06-18");
    client.send(&initialized);
    client.call("list_plans", &json!({}), &json!({}));
    assert_eq!(client.receive()["id"], 7);
    assert_eq!(client.end(), 0);
    // A session without `initialize` begins with its first call, so a later cancellation reaches the library.
    let mut client = Client::new(&place);
    client.send(&initialized);
    let mut listen = modern();
    listen["notifications"] = json!({"toolsListChanged": true});
    client.send(&json!({"jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen", "params": listen}));
    assert_eq!(client.receive()["method"], "notifications/subscriptions/acknowledged");
    let cancelled = json!({"requestId": 1});
    client.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancelled}));
    client.call("list_plans", &json!({}), &modern());
    assert_eq!(client.receive()["id"], 7);
    assert_eq!(client.end(), 0);
}

#[test]
fn invalid_parameters_of_a_known_method_are_reported_as_such() {
    let place = Place::with_examples();
    let mut client = Client::legacy(&place, &json!({}));
    let argument = json!({"name": "plan", "value": "f"});
    for (method, params, code, message) in [
        ("tools/call", None, -32602, "the parameters of tools/call are not valid"),
        ("tools/call", Some(json!([1])), -32602, "`params` has to be an object"),
        ("tools/list", Some(json!("x")), -32602, "`params` has to be an object"),
        ("tools/call", Some(json!({"name": 5})), -32602, "tools/call"),
        ("tools/call", Some(json!({"name": "briefing", "arguments": [1]})), -32602, "tools/call"),
        ("tools/call", Some(json!({"name": "briefing", "arguments": "x"})), -32602, "tools/call"),
        ("resources/read", Some(json!({})), -32602, "resources/read"),
        ("resources/subscribe", Some(json!({"uri": 1})), -32602, "resources/subscribe"),
        ("prompts/get", Some(json!({})), -32602, "prompts/get"),
        (
            "completion/complete",
            Some(json!({"ref": {"type": "x"}, "argument": argument})),
            -32602,
            "completion/complete",
        ),
        ("initialize", Some(json!({"protocolVersion": 5})), -32602, "the parameters of initialize"),
        ("no/such", Some(json!({})), -32601, "no/such"),
        ("logging/setLevel", Some(json!({})), -32601, "logging/setLevel"),
    ] {
        let mut request = json!({"jsonrpc": "2.0", "id": 3, "method": method});
        if let Some(params) = params {
            request["params"] = params;
        }
        client.send(&request);
        let error = client.receive()["error"].clone();
        assert_eq!(error["code"], code, "{request}: {error}");
        assert!(error["message"].as_str().is_some_and(|it| it.contains(message)), "{request}: {error}");
    }
    assert_eq!(client.end(), 0);
}

/// Whether a call is refused, and its answer.
fn answer_of(client: &mut Client, name: &str, arguments: &Value) -> (bool, Value) {
    client.call(name, arguments, &json!({}));
    let answer = client.receive();
    let text = answer["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}"));
    (answer["result"]["isError"] == true, serde_json::from_str(text).expect("it is JSON"))
}

#[test]
fn before_the_first_plan_reading_tools_find_nothing_and_writing_tools_create_the_directory() {
    for (tool, arguments, expected) in [
        ("list_plans", json!({}), json!({"plans": []})),
        ("briefing", json!({}), json!({"plans": 0})),
        ("peek_next_step", json!({}), json!({"state": "empty"})),
        ("claim_next_step", json!({}), json!({"state": "empty"})),
        ("recall", json!({"query": "x"}), json!({"hits": []})),
        ("get_decisions", json!({}), json!({"decisions": []})),
        ("list_assets", json!({"kind": "scripts"}), json!({"items": []})),
    ] {
        let place = Place::new();
        let mut client = Client::legacy(&place, &json!({}));
        let (is_refused, answer) = answer_of(&mut client, tool, &arguments);
        assert!(!is_refused, "{tool}: {answer}");
        for (key, value) in expected.as_object().expect("an object") {
            assert_eq!(&answer[key], value, "{tool}: {answer}");
        }
        assert!(!place.file("plans").exists(), "{tool} creates nothing");
        client.end();
    }
    for (tool, arguments) in [
        ("create_plan", json!({"title": "Auth"})),
        ("decide", json!({"topic": "db", "decision": "Use SQLite."})),
        ("insight", json!({"title": "Cache", "text": "The cache is cold."})),
        ("manage_script", json!({"action": "add", "name": "build", "command": "make"})),
    ] {
        let place = Place::new();
        let mut client = Client::legacy(&place, &json!({}));
        let hint = |it: &Value| it["error"]["hint"].as_str().unwrap_or_default().to_owned();
        let (is_refused, answer) = answer_of(&mut client, tool, &arguments);
        assert!(!is_refused, "{tool}: {answer} {}", hint(&answer));
        assert_eq!(answer["written"], true, "{tool}: {answer}");
        assert!(place.file("plans").is_dir(), "{tool}");
        client.end();
    }
    // A tool that needs a plan is refused and creates nothing.
    let place = Place::new();
    let mut client = Client::legacy(&place, &json!({}));
    let (is_refused, answer) =
        answer_of(&mut client, "add_step", &json!({"plan": "auth", "title": "Schema"}));
    assert!(is_refused && answer["error"]["code"] == "no-plans-directory", "{answer}");
    assert!(!place.file("plans").exists());
    client.end();
}

#[test]
fn no_plans_directory_is_created_in_a_bare_repository() {
    let place = Place::new();
    place.write("bare.git/HEAD", "ref: refs/heads/main\n");
    for directory in ["objects", "refs", "hooks"] {
        std::fs::create_dir_all(place.file(&format!("bare.git/{directory}"))).expect("it is made");
    }
    for line in ["new Auth Schema", "new Auth --dry-run", "init", "decide db SQLite"] {
        for within in ["bare.git", "bare.git/hooks"] {
            let ran = place.run(&format!("-C {within} {line}"));
            assert!(ran.stderr.contains("bare-repository") && ran.code == 1, "{line}: {ran:?}");
        }
    }
    // A working tree within it can have plans.
    place.write("bare.git/main/.git", "gitdir: ../worktrees/main\n");
    place.run("-C bare.git/main new Auth Schema").ok();
    assert!(place.file("bare.git/main/plans/auth/plan.md").is_file());
    assert!(!place.file("bare.git/plans").exists());
}

#[test]
fn a_daemon_serves_each_set_of_tools_at_a_separate_path() {
    let place = Place::new();
    place.run("new Auth Schema").ok();
    let server = Server::open(&place);
    let list = |path: &str| {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": modern()});
        let headers = "Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/list\r\n";
        let answer = server.json_with("POST", path, headers, &body);
        if answer.status != 200 {
            return vec![answer.status.to_string()];
        }
        let tools = answer.json()["result"]["tools"].as_array().cloned().unwrap_or_default();
        tools.iter().map(|it| it["name"].as_str().unwrap_or_default().to_owned()).collect()
    };
    assert!(list("/mcp").contains(&"claim_next_step".to_owned()), "{:?}", list("/mcp"));
    assert!(list("/mcp/compat").contains(&"save_plan".to_owned()));
    let executor = list("/mcp/executor");
    assert!(executor.contains(&"update_step".to_owned()) && !executor.contains(&"create_plan".to_owned()));
    let reading = list("/mcp/read-only");
    assert!(reading.contains(&"briefing".to_owned()) && !reading.contains(&"update_step".to_owned()));
    assert_eq!(list("/mcp/nothing"), ["404"]);
    server.stop(&place);
}

/// A call that makes several changes is killed before its answer is stored, and sent again with the same key.
#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "the test removes the stored answer, as if it had never been written"
)]
fn several_changes_of_a_call_are_made_once_for_its_key() {
    let place = Place::new();
    place.run("new Auth Schema").ok();
    let arguments = json!({
        "step": "auth:1", "title": "The schema", "attempt_outcome": "partly", "attempt_notes": "first try",
        "status": "completed", "result": "it works", "notes": "look at the indexes", "key": "k",
    });
    let call = |place: &Place| {
        let mut client = Client::legacy(place, &json!({}));
        let (is_refused, answer) = answer_of(&mut client, "update_step", &arguments);
        assert!(!is_refused, "{answer}");
        client.end();
    };
    call(&place);
    let text = place.text("plans/auth/step-1.md");
    for part in ["first try", "it works", "look at the indexes"] {
        assert_eq!(text.matches(part).count(), 1, "{part}: {text}");
    }
    // The stored answer is removed. Only the records of the changes remain.
    let records = walkdir::WalkDir::new(place.file("plans/.planwatch/answers"));
    let records = records.into_iter().map(|it| it.expect("it can be read").into_path());
    let has_answer =
        |it: &PathBuf| it.is_file() && place.text(it.to_str().expect("it is text")).contains("\"answer\":");
    let answers: Vec<_> = records.filter(has_answer).collect();
    assert_eq!(answers.len(), 1);
    std::fs::remove_file(&answers[0]).expect("it can be removed");
    call(&place);
    assert_eq!(place.text("plans/auth/step-1.md"), text);
}
