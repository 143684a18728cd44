//! `planwatch lsp` as a process: the order of messages, the types of answers, typing, commands, and random input.

#![expect(clippy::disallowed_methods, reason = "a test removes a file as a person does")]

mod noise;

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::Place;

/// Only a server that hangs takes this long.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct Editor {
    child: Child,
    input: ChildStdin,
    output: Receiver<Value>,
    next: i32,
    /// Notifications and requests of the server, in their order.
    received: Vec<Value>,
    root: String,
}

fn read_frame(from: &mut impl BufRead) -> Option<Value> {
    let mut length = None;
    loop {
        let mut line = String::new();
        if from.read_line(&mut line).ok()? == 0 {
            return None;
        }
        match line.trim_end() {
            "" => break,
            line => length = line.strip_prefix("Content-Length: ").and_then(|it| it.parse().ok()).or(length),
        }
    }
    let mut body = vec![0; length?];
    from.read_exact(&mut body).ok()?;
    Some(serde_json::from_slice(&body).expect("the server writes JSON"))
}

impl Editor {
    /// Starts the server, without sending a message.
    fn start(place: &Place) -> Self {
        let mut command = place.command();
        let mut child = command
            .arg("lsp")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the binary starts");
        let input = child.stdin.take().expect("it is piped");
        let mut from = BufReader::new(child.stdout.take().expect("it is piped"));
        let (sender, output) = channel();
        std::thread::spawn(move || {
            while let Some(message) = read_frame(&mut from) {
                if sender.send(message).is_err() {
                    return;
                }
            }
        });
        let root = place.work().display().to_string();
        Self { child, input, output, next: 0, received: Vec::new(), root }
    }

    fn with(place: &Place, capabilities: &Value) -> Self {
        let mut editor = Self::start(place);
        let folders = json!([{"uri": format!("file://{}", editor.root), "name": "work"}]);
        let answer =
            editor.ask("initialize", json!({"capabilities": capabilities, "workspaceFolders": folders}));
        is_a::<gen_lsp_types::InitializeResult>(&answer);
        editor.notify("initialized", json!({}));
        editor
    }

    fn uri(&self, relative: &str) -> String {
        format!("file://{}/{relative}", self.root)
    }

    fn send_bytes(&mut self, bytes: &[u8]) {
        self.input.write_all(bytes).and_then(|()| self.input.flush()).expect("the server reads");
    }

    fn send(&mut self, message: &Value) {
        let body = message.to_string();
        self.send_bytes(format!("Content-Length: {}\r\n\r\n{body}", body.len()).as_bytes());
    }

    fn notify(&mut self, method: &str, params: Value) {
        let mut message = json!({"jsonrpc": "2.0", "method": method});
        message["params"] = params;
        self.send(&message);
    }

    fn request(&mut self, method: &str, params: Value) -> i32 {
        self.next += 1;
        let mut message = json!({"jsonrpc": "2.0", "id": self.next, "method": method});
        message["params"] = params;
        self.send(&message);
        self.next
    }

    /// The whole reply to a request.
    fn reply(&mut self, method: &str, params: Value) -> Value {
        let id = self.request(method, params);
        loop {
            let message =
                self.output.recv_timeout(PATIENCE).unwrap_or_else(|_| panic!("no reply to {method}"));
            if message["id"] == id && message.get("method").is_none() {
                return message;
            }
            self.received.push(message);
        }
    }

    fn ask(&mut self, method: &str, params: Value) -> Value {
        let reply = self.reply(method, params);
        assert!(reply.get("error").is_none(), "{method}: {reply}");
        reply["result"].clone()
    }

    fn refused(&mut self, method: &str, params: Value) -> i64 {
        let reply = self.reply(method, params);
        reply["error"]["code"].as_i64().unwrap_or_else(|| panic!("{method}: {reply}"))
    }

    fn open(&mut self, relative: &str, text: &str) {
        let document =
            json!({"uri": self.uri(relative), "languageId": "markdown", "version": 1, "text": text});
        self.notify("textDocument/didOpen", json!({"textDocument": document}));
    }

    fn change(&mut self, relative: &str, version: i32, changes: Value) {
        let document = json!({"uri": self.uri(relative), "version": version});
        let mut params = json!({"textDocument": document});
        params["contentChanges"] = changes;
        self.notify("textDocument/didChange", params);
    }

    /// Waits until the diagnostics that the server sends for a file have these codes.
    fn wait_for_codes(&mut self, relative: &str, expected: &[&str]) {
        let uri = self.uri(relative);
        let codes = |it: &Value| {
            let is_of_file = it["method"] == "textDocument/publishDiagnostics" && it["params"]["uri"] == uri;
            let all = it["params"]["diagnostics"].as_array().filter(|_| is_of_file)?;
            Some(all.iter().map(|it| it["code"].as_str().unwrap_or_default().to_owned()).collect::<Vec<_>>())
        };
        let mut last = self.received.drain(..).filter_map(|it| codes(&it)).next_back();
        while last.as_deref().is_none_or(|it| it != expected) {
            let message = self.output.recv_timeout(PATIENCE);
            let message = message.unwrap_or_else(|_| panic!("{relative}: {last:?}, not {expected:?}"));
            last = codes(&message).or(last);
        }
    }

    fn at(&self, relative: &str, text: &str, mark: &str) -> Value {
        let at = text.find(mark).unwrap_or_else(|| panic!("no {mark}"));
        let line = text[..at].matches('\n').count();
        let character = text[..at].rsplit('\n').next().unwrap_or_default().encode_utf16().count();
        json!({"textDocument": {"uri": self.uri(relative)}, "position": {"line": line, "character": character}})
    }

    fn end(mut self) -> i32 {
        assert_eq!(self.ask("shutdown", Value::Null), Value::Null);
        self.notify("exit", Value::Null);
        self.child.wait().expect("it ends").code().expect("no signal ends it")
    }
}

#[track_caller]
fn read_as<T: serde::de::DeserializeOwned>(answer: &Value) -> T {
    serde_json::from_value(answer.clone()).unwrap_or_else(|error| panic!("{error}: {answer}"))
}

#[track_caller]
fn is_a<T: serde::de::DeserializeOwned>(answer: &Value) {
    drop(read_as::<T>(answer));
}

/// The capabilities of Neovim 0.11 and VS Code.
fn able() -> Value {
    json!({
        "general": {"positionEncodings": ["utf-16"]},
        "workspace": {"workspaceEdit": {"documentChanges": true, "resourceOperations": ["create", "rename"]}},
        "textDocument": {
            "codeAction": {"codeActionLiteralSupport": {}},
            "documentSymbol": {"hierarchicalDocumentSymbolSupport": true},
        },
    })
}

const PLAN: &str =
    "---\nstatus: active\n---\n# Auth\n\n## Steps\n\n- step-1: Schema\n- step-2: Migrate (depends: step-1)\n";
const ONE: &str = "---\nid: auth:1\nstatus: completed\n---\n# Schema\n";
const TWO: &str =
    "---\nid: auth:2\nstatus: pending\ndepends: [1]\n---\n# Migrate 🚀\n\n## Tasks\n\n- [ ] one\n";
const PAGE: &str = "---\ndepends: [\"auth:2\"]\n---\n# Page\n";

fn place() -> Place {
    let place = Place::new();
    for (path, text) in
        [("auth/plan.md", PLAN), ("auth/step-1.md", ONE), ("auth/step-2.md", TWO), ("web/step-1.md", PAGE)]
    {
        place.write(&format!("plans/{path}"), text);
    }
    place.write("plans/web/plan.md", "# Web\n");
    place
}

const STEP: &str = "plans/auth/step-2.md";

#[test]
fn messages_in_the_wrong_order_are_refused() {
    let place = place();
    let mut editor = Editor::start(&place);
    assert_eq!(editor.refused("textDocument/hover", json!({})), -32002);
    editor.ask("initialize", json!({"capabilities": {}}));
    assert_eq!(editor.refused("initialize", json!({})), -32600);
    assert_eq!(editor.refused("no/such", json!({})), -32601);
    assert_eq!(editor.refused("textDocument/hover", json!({"position": 7})), -32602);
    assert_eq!(editor.refused("workspace/executeCommand", json!({"command": "rm"})), -32602);
    editor.notify("$/setTrace", json!({"value": "off"}));
    editor.notify(
        "textDocument/didChange",
        json!({"textDocument": {"uri": "file:///dev/zero", "version": 1}, "contentChanges": []}),
    );
    let nothing =
        json!({"textDocument": {"uri": "file:///dev/zero"}, "position": {"line": 0, "character": 0}});
    assert_eq!(editor.ask("textDocument/hover", nothing), Value::Null);
    editor.ask("shutdown", Value::Null);
    assert_eq!(editor.refused("textDocument/hover", json!({})), -32600);
    editor.notify("exit", Value::Null);
    assert_eq!(editor.child.wait().expect("it ends").code(), Some(0));

    let mut editor = Editor::start(&place);
    editor.notify("exit", Value::Null);
    assert_eq!(editor.child.wait().expect("it ends").code(), Some(1));
    let editor = Editor::with(&place, &able());
    drop(editor.input);
    let mut child = editor.child;
    assert_eq!(child.wait().expect("it ends with its input").code(), Some(1));
}

#[test]
fn a_proposed_name_is_quoted_where_yaml_requires_it() {
    let place = place();
    place.write(
        "plans/auth/step-8.md",
        "---\nphase: 'Phase 1: Base'\ntags: ['a, b']\nassignee: 'Ann: lead'\n---\n# Eight\n",
    );
    let mut editor = Editor::with(&place, &able());
    let text = "---\nphase: P\nassignee: A\ntags: [a]\nconfirm_phases: P\n---\n# Nine\n";
    editor.open("plans/auth/step-9.md", text);
    for (mark, label, written) in [
        ("P\n", "Phase 1: Base", r#""Phase 1: Base""#),
        ("A\n", "Ann: lead", r#""Ann: lead""#),
        ("a]", "a, b", r#""a, b""#),
    ] {
        let begun = std::time::Instant::now();
        let list = loop {
            // The server answers before it has read all plans.
            let list = editor.ask("textDocument/completion", editor.at("plans/auth/step-9.md", text, mark));
            if list["items"] != json!([]) || begun.elapsed() > PATIENCE {
                break list;
            }
        };
        let item = list["items"].as_array().expect("a list").iter().find(|it| it["label"] == label);
        assert_eq!(item.unwrap_or_else(|| panic!("{list}"))["textEdit"]["newText"], written);
    }
}

#[test]
fn every_answer_has_the_type_that_the_protocol_defines() {
    let place = place();
    let mut editor = Editor::with(&place, &able());
    editor.open(STEP, TWO);
    editor.open("plans/auth/plan.md", PLAN);
    let of = json!({"textDocument": {"uri": editor.uri(STEP)}});
    let of_plan = json!({"textDocument": {"uri": editor.uri("plans/auth/plan.md")}});
    let with = |of: &Value, more: Value| {
        let mut of = of.clone();
        for (key, value) in more.as_object().expect("an object") {
            of[key] = value.clone();
        }
        of
    };
    let all = json!({"start": {"line": 0, "character": 0}, "end": {"line": 99, "character": 0}});
    let dependency = editor.at(STEP, TWO, "1]");

    let list: gen_lsp_types::CompletionList =
        read_as(&editor.ask("textDocument/completion", dependency.clone()));
    assert_eq!(list.items[0].label, "1");
    assert_eq!(list.items[0].detail.as_deref(), Some("Schema · completed"));
    is_a::<gen_lsp_types::Hover>(&editor.ask("textDocument/hover", dependency.clone()));
    let found: gen_lsp_types::Location = read_as(&editor.ask("textDocument/definition", dependency.clone()));
    assert_eq!(found.range.start.line, 4);
    let params = with(&dependency, json!({"context": {"includeDeclaration": true}}));
    let found: Vec<gen_lsp_types::Location> = read_as(&editor.ask("textDocument/references", params));
    assert_eq!(
        found.len(),
        5,
        "the heading, the id, the Steps list twice, and the step that waits for it: {found:?}"
    );
    is_a::<Vec<gen_lsp_types::DocumentHighlight>>(
        &editor.ask("textDocument/documentHighlight", dependency.clone()),
    );
    for of in [&of, &of_plan] {
        is_a::<Vec<gen_lsp_types::DocumentSymbol>>(&editor.ask("textDocument/documentSymbol", of.clone()));
        is_a::<Vec<gen_lsp_types::FoldingRange>>(&editor.ask("textDocument/foldingRange", of.clone()));
        is_a::<Vec<gen_lsp_types::DocumentLink>>(&editor.ask("textDocument/documentLink", of.clone()));
        let lenses: Vec<gen_lsp_types::CodeLens> = read_as(&editor.ask("textDocument/codeLens", of.clone()));
        assert!(!lenses.is_empty());
        let params = with(of, json!({"range": all}));
        let hints: Vec<gen_lsp_types::InlayHint> = read_as(&editor.ask("textDocument/inlayHint", params));
        assert!(!hints.is_empty());
        let params = with(of, json!({"range": all, "context": {"diagnostics": []}}));
        is_a::<Vec<gen_lsp_types::CodeAction>>(&editor.ask("textDocument/codeAction", params));
    }
    let symbols: Vec<gen_lsp_types::SymbolInformation> =
        read_as(&editor.ask("workspace/symbol", json!({"query": "mig"})));
    assert_eq!(symbols.len(), 1);
    is_a::<gen_lsp_types::PrepareRenamePlaceholder>(
        &editor.ask("textDocument/prepareRename", dependency.clone()),
    );
    let params = with(&dependency, json!({"newName": "1.5"}));
    assert_eq!(
        editor.refused("textDocument/rename", with(&dependency, json!({"newName": "2"}))),
        -32803,
        "it is taken"
    );
    let edit: gen_lsp_types::WorkspaceEdit = read_as(&editor.ask("textDocument/rename", params));
    assert_eq!(edit.document_changes.expect("they are versioned").len(), 4);
    is_a::<gen_lsp_types::PublishDiagnosticsParams>(
        &editor
            .received
            .iter()
            .find(|it| it["method"] == "textDocument/publishDiagnostics")
            .expect("they are sent")["params"],
    );
    assert_eq!(editor.end(), 0);
}

#[test]
fn a_typo_is_marked_while_it_is_typed_and_a_quick_fix_corrects_it() {
    let place = place();
    let mut editor = Editor::with(&place, &able());
    editor.open(STEP, TWO);
    editor.wait_for_codes(STEP, &[]);
    let word = json!({"start": {"line": 2, "character": 8}, "end": {"line": 2, "character": 15}});
    editor.change(STEP, 2, json!([{"range": word, "text": "pendign"}]));
    editor.wait_for_codes(STEP, &["unknown-status"]);
    let of =
        json!({"textDocument": {"uri": editor.uri(STEP)}, "range": word, "context": {"diagnostics": []}});
    let actions = editor.ask("textDocument/codeAction", of.clone());
    let first = &actions[0];
    assert_eq!((&first["title"], &first["isPreferred"]), (&json!("Change to `pending`"), &json!(true)));
    let edit = &first["edit"]["documentChanges"][0];
    assert_eq!(edit["textDocument"]["version"], 2);
    assert_eq!(edit["edits"][0], json!({"range": word, "newText": "pending"}));
    editor.change(STEP, 3, json!([{"range": word, "text": "pending"}]));
    editor.wait_for_codes(STEP, &[]);
    // *Complete step* makes the same edit as `done`, on a text that is not saved.
    let actions = editor.ask("textDocument/codeAction", of);
    let done = actions
        .as_array()
        .expect("a list")
        .iter()
        .find(|it| it["title"] == "Complete step")
        .expect("it is offered");
    let edits = &done["edit"]["documentChanges"][0]["edits"];
    assert_eq!(edits, &json!([{"range": word, "newText": "completed"}]));
    assert_eq!(place.text(STEP), TWO, "only commands write files");
    assert_eq!(editor.end(), 0);
}

#[test]
fn a_decision_links_to_its_plan_and_step_and_the_step_refers_to_it() {
    const DECISION: &str = "plans/_decisions/20261121T091403.250Z-schema.md";
    let text = "---\nplan: auth\nstep: auth:2\n---\n# Schema\n\nSee [the page](../web/step-1.md).\n";
    let place = place();
    place.write(DECISION, text);
    let mut editor = Editor::with(&place, &able());
    editor.ask("workspace/symbol", json!({"query": "x"}));
    editor.open(DECISION, text);
    for (mark, file, title) in [
        ("auth\n", "auth/plan.md", "Auth"),
        ("auth:2", "auth/step-2.md", "Migrate"),
        ("the page", "web/step-1.md", "Page"),
    ] {
        let at = editor.at(DECISION, text, mark);
        let found = editor.ask("textDocument/definition", at.clone());
        assert_eq!(found["uri"], editor.uri(&format!("plans/{file}")), "{mark}");
        let hover = editor.ask("textDocument/hover", at);
        assert!(hover["contents"]["value"].as_str().is_some_and(|it| it.contains(title)), "{hover}");
    }
    let of = json!({"textDocument": {"uri": editor.uri(DECISION)}});
    assert_eq!(editor.ask("textDocument/documentLink", of.clone()).as_array().map(Vec::len), Some(3));
    editor.notify("textDocument/didClose", of);
    editor.open(STEP, TWO);
    let mut params = editor.at(STEP, TWO, "# Migrate");
    params["context"] = json!({"includeDeclaration": false});
    let found = editor.ask("textDocument/references", params);
    let uri = editor.uri(DECISION);
    assert!(found.as_array().is_some_and(|it| it.iter().any(|it| it["uri"] == uri)), "{found}");
    assert_eq!(editor.end(), 0);
}

#[test]
fn a_lone_carriage_return_is_marked_and_converted() {
    let place = place();
    let mut editor = Editor::with(&place, &able());
    let text = TWO.replace("## Tasks\n\n", "## Tasks\r\r\n");
    editor.open(STEP, &text);
    editor.wait_for_codes(STEP, &["lone-carriage-return"]);
    let here = json!({"start": {"line": 7, "character": 0}, "end": {"line": 7, "character": 0}});
    let of =
        json!({"textDocument": {"uri": editor.uri(STEP)}, "range": here, "context": {"diagnostics": []}});
    let actions = editor.ask("textDocument/codeAction", of);
    let first = &actions[0];
    assert_eq!(first["title"], "Convert line ends", "{actions}");
    let edit = &first["edit"]["documentChanges"][0]["edits"][0];
    editor.change(STEP, 2, json!([{"range": edit["range"], "text": edit["newText"]}]));
    editor.wait_for_codes(STEP, &[]);
    assert_eq!(edit["newText"], TWO.replace('\n', "\r\n"), "the file has one CRLF");
    assert_eq!(editor.end(), 0);
}

#[test]
fn a_change_by_another_program_updates_diagnostics_without_a_keystroke() {
    let place = place();
    let mut editor = Editor::with(&place, &able());
    editor.open("plans/web/step-1.md", "---\nstatus: completed\ndepends: [\"auth:2\"]\n---\n# Page\n");
    editor.wait_for_codes("plans/web/step-1.md", &["waits-for-open"]);
    editor.ask("workspace/symbol", json!({"query": "x"}));
    place.run("done auth:2").ok_code();
    editor.wait_for_codes("plans/web/step-1.md", &[]);
    place.write("plans/auth/step-7.md", "---\nstatus: what\n---\n# Seven\n");
    editor.wait_for_codes("plans/auth/step-7.md", &["unknown-status"]);
    std::fs::remove_file(place.file("plans/auth/step-7.md")).expect("it is there");
    editor.wait_for_codes("plans/auth/step-7.md", &[]);
    // A folder that the editor removes has no diagnostics any more.
    place.write("plans/auth/step-7.md", "---\nstatus: what\n---\n# Seven\n");
    editor.wait_for_codes("plans/auth/step-7.md", &["unknown-status"]);
    let uri = editor.uri("plans/web/step-1.md");
    editor.notify("textDocument/didClose", json!({"textDocument": {"uri": uri}}));
    let folder = json!({"uri": format!("file://{}", editor.root), "name": "work"});
    editor
        .notify("workspace/didChangeWorkspaceFolders", json!({"event": {"added": [], "removed": [folder]}}));
    editor.wait_for_codes("plans/auth/step-7.md", &[]);
    assert_eq!(editor.end(), 0);
}

#[test]
fn a_client_that_pulls_diagnostics_is_sent_none() {
    let place = place();
    let mut capabilities = able();
    capabilities["textDocument"]["diagnostic"] = json!({});
    capabilities["workspace"]["diagnostics"] = json!({"refreshSupport": true});
    let mut editor = Editor::with(&place, &capabilities);
    editor.open(STEP, &TWO.replace("pending", "what"));
    let of = json!({"textDocument": {"uri": editor.uri(STEP)}});
    let report: gen_lsp_types::RelatedFullDocumentDiagnosticReport =
        read_as(&editor.ask("textDocument/diagnostic", of.clone()));
    let id = report.full_document_diagnostic_report.result_id.expect("it has an id");
    assert_eq!(report.full_document_diagnostic_report.items.len(), 1);
    let again = json!({"textDocument": of["textDocument"], "previousResultId": id});
    assert_eq!(editor.ask("textDocument/diagnostic", again)["kind"], "unchanged");
    place.write("plans/auth/step-9.md", "---\nstatus: what\n---\n# Nine\n");
    let all = editor.ask("workspace/diagnostic", json!({"previousResultIds": []}));
    is_a::<gen_lsp_types::WorkspaceDiagnosticReport>(&all);
    let previous: Vec<_> = all["items"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|it| json!({"uri": it["uri"], "value": it["resultId"]}))
        .collect();
    let params = json!({"previousResultIds": previous});
    let mut again = editor.ask("workspace/diagnostic", params.clone());
    // It is possible that the server has found the new file in between.
    if again["items"] != json!([]) {
        assert_eq!(again["items"][0]["uri"], editor.uri("plans/auth/step-9.md"));
        again = editor.ask("workspace/diagnostic", params);
    }
    assert!(again["items"].as_array().expect("a list").len() <= 1);
    assert!(
        editor.received.iter().all(|it| it["method"] != "textDocument/publishDiagnostics"),
        "{:?}",
        editor.received
    );
    assert_eq!(editor.end(), 0);
}

#[test]
fn commands_refuse_files_with_unsaved_changes() {
    let place = place();
    let mut editor = Editor::with(&place, &able());
    editor.open(STEP, &TWO.replace("one", "two"));
    let done = |of: Value| json!({"command": "planwatch.done", "arguments": [of]});
    let of = json!({"uri": editor.uri(STEP)});
    let reply = editor.reply("workspace/executeCommand", done(of.clone()));
    assert_eq!(reply["error"]["data"]["code"], "unsaved-changes", "{reply}");
    editor.change(STEP, 2, json!([{"text": TWO}]));
    let answer = editor.ask("workspace/executeCommand", done(of));
    assert_eq!((&answer["kind"], &answer["changes"][0]["status"]), (&json!("change"), &json!("completed")));
    assert_eq!(place.text(STEP), TWO.replace("pending", "completed"));
    let reply = editor.reply("workspace/executeCommand", done(json!({"id": "auth:9"})));
    assert_eq!(reply["error"]["data"]["code"], "not-found", "{reply}");
    let arguments = json!([{"plan": "auth", "title": "Test", "after": "1"}]);
    let added =
        editor.ask("workspace/executeCommand", json!({"command": "planwatch.add", "arguments": arguments}));
    assert_eq!(added["changes"][0]["id"], "auth:1.5");
    assert!(place.text("plans/auth/plan.md").contains("step-1.5: Test"));
    assert_eq!(
        editor.ask("planwatch/plan", json!({"id": "auth"}))["steps"].as_array().map(Vec::len),
        Some(3)
    );
    assert_eq!(editor.end(), 0);
}

#[test]
fn a_client_that_cannot_rename_files_gets_the_command_to_run() {
    let place = place();
    let mut editor = Editor::with(&place, &json!({}));
    editor.open(STEP, TWO);
    let mut params = editor.at(STEP, TWO, "# Migrate");
    params["newName"] = "1.5".into();
    let reply = editor.reply("textDocument/rename", params);
    assert!(
        reply["error"]["message"].as_str().is_some_and(|it| it.contains("planwatch move auth:2 --to 1.5")),
        "{reply}"
    );
    let files = json!([{"oldUri": editor.uri(STEP), "newUri": editor.uri("plans/auth/step-1.5.md")}]);
    let edit = editor.ask("workspace/willRenameFiles", json!({"files": files}));
    let changes = edit["changes"].as_object().expect("edits without versions");
    assert_eq!(changes.len(), 3, "the plan, the step itself, and the step that waits: {edit}");
    assert_eq!(editor.end(), 0);
}
