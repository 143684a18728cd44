//! `planwatch mcp` as a process: the tools in docs/mcp.md, and notifications of subscribed resources.
#![expect(clippy::disallowed_methods, reason = "tests edit files as editors do, and update a page")]

use std::fmt::Write as _;
use std::io::Write as _;
use std::process::{Child, ChildStdin, Stdio};

use serde_json::{Value, json};

use crate::support::{Lines, Place, lines_of, read, root};

/// A client with an earlier protocol version, and its server.
struct Client {
    child: Child,
    input: Option<ChildStdin>,
    output: Lines,
    n_asked: u64,
    /// Notifications received while waiting for an answer.
    notifications: Vec<Value>,
}

impl Client {
    /// A client that has not sent a message yet.
    fn uninitialized(place: &Place, arguments: &[&str]) -> Self {
        let mut command = place.command();
        let command = command.arg("mcp").args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("the binary starts");
        let output = lines_of(child.stdout.take().expect("it is piped"));
        let input = child.stdin.take();
        Self { child, input, output, n_asked: 0, notifications: Vec::new() }
    }

    fn start(place: &Place, arguments: &[&str]) -> Self {
        let mut client = Self::uninitialized(place, arguments);
        let who = json!({"name": "test", "version": "1"});
        let begin = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": who});
        client.ask("initialize", &begin);
        client.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        client
    }

    fn send(&mut self, message: &Value) {
        let input = self.input.as_mut().expect("it is open");
        writeln!(input, "{message}").and_then(|()| input.flush()).expect("the server reads");
    }

    fn ask(&mut self, method: &str, params: &Value) -> Value {
        self.n_asked += 1;
        let id = self.n_asked;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        loop {
            let message = self.message();
            if message["id"] == id {
                assert!(message["error"].is_null(), "{message}");
                return message["result"].clone();
            }
            self.notifications.push(message);
        }
    }

    fn message(&mut self) -> Value {
        serde_json::from_str(&self.output.next()).expect("a line is a message")
    }

    /// Waits for the update of a resource. Returns all resources that were updated until then, each once.
    fn wait_for_update(&mut self, uri: &str) -> Vec<String> {
        let mut updated = Vec::new();
        loop {
            let message =
                if self.notifications.is_empty() { self.message() } else { self.notifications.remove(0) };
            if message["method"] != "notifications/resources/updated" {
                continue;
            }
            let of = message["params"]["uri"].as_str().expect("it names a resource").to_owned();
            let is_it = of == uri;
            if !updated.contains(&of) {
                updated.push(of);
            }
            if is_it {
                return updated;
            }
        }
    }

    /// Closes the input, and waits for the server to end.
    fn end(mut self) -> i32 {
        drop(self.input.take());
        self.child.wait().expect("it ends").code().unwrap_or(-1)
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // It may have exited already.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

const PLAN: &str = "planwatch:///plans/fence-repair";
const STEP: &str = "planwatch:///plans/fence-repair/steps/4";

fn text(client: &mut Client, uri: &str) -> String {
    let read = client.ask("resources/read", &json!({"uri": uri}));
    read["contents"][0]["text"].as_str().expect("it is a text").to_owned()
}

#[test]
fn a_subscribed_client_gets_every_edit_with_a_daemon_and_without() {
    let place = Place::with_examples();
    let path = "plans/fence-repair/step-4.md";
    let mut client = Client::start(&place, &[]);
    assert_eq!(text(&mut client, STEP), place.text(path));
    for uri in [STEP, PLAN] {
        client.ask("resources/subscribe", &json!({"uri": uri}));
    }
    let edited = place.text(path) + "\nMind the gate.\n";
    place.write(path, &edited);
    assert_eq!(client.wait_for_update(STEP), [STEP]);
    assert_eq!(text(&mut client, STEP), edited);
    // The first server watches the files now, so the second one receives changes from it.
    let mut other = Client::start(&place, &["--tools", "compat"]);
    for uri in [STEP, PLAN] {
        other.ask("resources/subscribe", &json!({"uri": uri}));
    }
    place.write(path, edited.replace("gate", "dog"));
    assert_eq!(other.wait_for_update(STEP), [STEP]);
    assert_eq!(client.wait_for_update(STEP), [STEP]);
    let plan = "plans/fence-repair/plan.md";
    place.write(plan, place.text(plan) + "\nAsk the neighbour.\n");
    assert_eq!(other.wait_for_update(PLAN), [PLAN], "an edit of one file updates only its resource");
    assert_eq!(client.wait_for_update(PLAN), [PLAN]);
    assert_eq!(client.end(), 0);
    assert_eq!(other.end(), 0);
}

/// Before the first subscription no process watches the files, so the server must read the resources before it acknowledges.
#[test]
fn an_edit_right_after_a_subscription_is_acknowledged_is_notified() {
    let place = Place::with_examples();
    let path = "plans/fence-repair/step-4.md";
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let params = json!({"_meta": meta, "notifications": {"resourceSubscriptions": [STEP]}});
    for _ in 0..5 {
        let mut client = Client::uninitialized(&place, &[]);
        client.send(&json!({"jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen", "params": params}));
        let acknowledged = client.message();
        assert_eq!(acknowledged["method"], "notifications/subscriptions/acknowledged", "{acknowledged}");
        place.write(path, place.text(path) + "\nMind the gate.\n");
        assert_eq!(client.wait_for_update(STEP), [STEP]);
        // A subscription is answered when it ends, even if the client leaves right after a notification.
        drop(client.input.take());
        while client.message()["id"] != 1 {}
        assert_eq!(client.end(), 0);
    }
}

#[test]
fn a_watching_server_is_replaced_by_a_daemon_with_http() {
    let place = Place::with_examples();
    let path = "plans/fence-repair/step-4.md";
    let mut client = Client::start(&place, &[]);
    client.ask("resources/subscribe", &json!({"uri": STEP}));
    let edit = |with: &str| place.write(path, place.text(path) + with);
    edit("\nMind the gate.\n");
    client.wait_for_update(STEP);
    let server = place.run("watch --detach --http 0 --json").json();
    assert_eq!(server["state"], "started");
    assert!(server["http"].as_str().is_some_and(|it| it.starts_with("http://127.0.0.1:")), "{server}");
    // From now on the MCP server receives changes from the daemon, including those made in between.
    edit("\nMind the dog.\n");
    client.wait_for_update(STEP);
    edit("\nMind the step.\n");
    client.wait_for_update(STEP);
    let stopped = place.run("watch --stop --json").json();
    assert_eq!((&stopped["state"], &stopped["pid"]), (&json!("stopped"), &server["pid"]));
    assert_eq!(client.end(), 0);
}

#[test]
fn a_server_watches_again_after_watch_stop() {
    let place = Place::with_examples();
    let mut client = Client::start(&place, &[]);
    let path = "plans/fence-repair/step-4.md";
    client.ask("resources/subscribe", &json!({"uri": STEP}));
    place.write(path, place.text(path) + "\nMind the gate.\n");
    client.wait_for_update(STEP);
    let stopped = place.run("watch --stop").ok();
    assert!(stopped.contains("no longer watches"), "{stopped}");
    place.write(path, place.text(path) + "\nMind the dog.\n");
    assert_eq!(text(&mut client, STEP), place.text(path));
    // Two seconds later the server watches again.
    client.wait_for_update(STEP);
    assert_eq!(client.end(), 0);
}

/// A row for each tool in the server's list.
fn table(tools: &Value, executor: Option<&Value>) -> String {
    let mut table = String::new();
    let names = |it: &Value| -> Vec<String> {
        it["tools"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|it| it["name"].as_str().unwrap_or_default().to_owned())
            .collect()
    };
    let few = executor.map(names);
    let heads = if few.is_some() { ("| effect | in `executor` ", "|---|---") } else { ("| effect ", "|---") };
    let _ = writeln!(table, "| tool | what it does {}|\n|---|---{}|", heads.0, heads.1);
    for tool in tools["tools"].as_array().into_iter().flatten() {
        let hints = &tool["annotations"];
        let effect = match (&hints["readOnlyHint"], &hints["destructiveHint"]) {
            (Value::Bool(true), _) => "reads",
            (_, Value::Bool(true)) => "removes",
            _ => "writes",
        };
        let name = tool["name"].as_str().unwrap_or_default();
        let description = tool["description"].as_str().unwrap_or_default().replace('|', "\\|");
        let _ = write!(table, "| `{name}` | {description} | {effect} |");
        if let Some(few) = &few {
            let _ = write!(table, " {} |", if few.iter().any(|it| it == name) { "yes" } else { "" });
        }
        table.push('\n');
    }
    table
}

#[test]
fn the_page_lists_the_tools_of_the_server() {
    let place = Place::with_examples();
    let list = |set: &str| Client::start(&place, &["--tools", set]).ask("tools/list", &json!({}));
    let (all, executor, compat) = (list("all"), list("executor"), list("compat"));
    let path = root().join("docs/mcp.md");
    let mut page = read(&path);
    for (name, table) in [("all", table(&all, Some(&executor))), ("compat", table(&compat, None))] {
        let (begin, end) = (format!("<!-- tools: {name} -->\n"), format!("<!-- end: {name} -->"));
        let from = page.find(&begin).expect("the page has a place for the table") + begin.len();
        let to = page.find(&end).expect("the table ends");
        page.replace_range(from..to, &table);
    }
    if std::env::var_os("PLANWATCH_BLESS").is_some() {
        std::fs::write(&path, &page).expect("the page can be written");
    }
    assert_eq!(read(&path), page, "PLANWATCH_BLESS=1 updates the tables");
}
