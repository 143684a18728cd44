//! Random input: incremental and full changes of a text, and messages of every kind.
#![expect(clippy::disallowed_methods, reason = "the tests take their size from the environment")]

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{Editor, STEP, TWO, able, place};
use crate::random::Random;

fn wanted(name: &str, otherwise: usize) -> usize {
    std::env::var(name).ok().and_then(|it| it.parse().ok()).unwrap_or(otherwise)
}

/// Random edits, sent as ranges to one server and as whole texts to another, give the same diagnostics.
/// `PLANWATCH_LSP_EDITS` sets the number of edits.
#[test]
fn incremental_and_full_changes_give_the_same_diagnostics() {
    let place = place();
    let mut capabilities = able();
    capabilities["textDocument"]["diagnostic"] = json!({});
    let (mut pieces, mut whole) = (Editor::with(&place, &capabilities), Editor::with(&place, &capabilities));
    let of = json!({"textDocument": {"uri": pieces.uri(STEP)}});
    let mut text: Vec<u16> = TWO.encode_utf16().collect();
    pieces.open(STEP, TWO);
    whole.open(STEP, TWO);
    let mut random = Random::new(7);
    let parts = [
        "\n",
        "\r\n",
        "---\n",
        "status: ",
        "done",
        "depends: [",
        "1",
        "]",
        "é",
        "🚀",
        "- ",
        "## Tasks\n",
        "",
        "x: y\n",
        "\"",
        "q:1",
        "\u{feff}",
    ];
    for n in 0..wanted("PLANWATCH_LSP_EDITS", 150) {
        let said = String::from_utf16_lossy(&text);
        let ends = |at: usize| {
            // An edit splits neither a surrogate pair nor a CRLF.
            let is_low = text.get(at).is_some_and(|it| (0xDC00..0xE000).contains(it));
            let is_end = at > 0 && text.get(at) == Some(&10) && text[at - 1] == 13;
            if is_low || is_end { at - 1 } else { at }
        };
        let mut from = ends(random.below(text.len() + 1));
        let mut to = ends((from + random.below(6)).min(text.len()));
        (from, to) = (from.min(to), from.max(to));
        let position = |at: usize| {
            let before = String::from_utf16_lossy(&text[..at]).replace("\r\n", "\n").replace('\r', "\n");
            let line = before.matches('\n').count();
            json!({"line": line, "character": before.rsplit('\n').next().unwrap_or_default().encode_utf16().count()})
        };
        let new = if said.len() > 400 { "" } else { random.pick(&parts) };
        let change = json!([{"range": {"start": position(from), "end": position(to)}, "text": new}]);
        text.splice(from..to, new.encode_utf16());
        let now = String::from_utf16_lossy(&text);
        let version = n as i32 + 2;
        pieces.change(STEP, version, change);
        whole.change(STEP, version, json!([{"text": now}]));
        let [a, b] = [&mut pieces, &mut whole].map(|it| it.ask("textDocument/diagnostic", of.clone()));
        assert_eq!(a, b, "{now:?}");
    }
    assert_eq!((pieces.end(), whole.end()), (0, 0));
}

/// The requests that the server answers, an unknown one, `initialize` at the wrong time, and a notification that is sent
/// as a request.
const METHODS: [&str; 24] = [
    "textDocument/completion",
    "textDocument/hover",
    "textDocument/definition",
    "textDocument/references",
    "textDocument/documentHighlight",
    "textDocument/documentSymbol",
    "textDocument/foldingRange",
    "textDocument/documentLink",
    "textDocument/codeLens",
    "textDocument/inlayHint",
    "textDocument/codeAction",
    "textDocument/prepareRename",
    "textDocument/rename",
    "textDocument/diagnostic",
    "workspace/symbol",
    "workspace/diagnostic",
    "workspace/executeCommand",
    "workspace/willRenameFiles",
    "planwatch/plans",
    "planwatch/plan",
    "planwatch/status",
    "no/such",
    "initialize",
    "textDocument/didOpen",
];

/// Parameters with the fields of every request. Some have numbers or types that no client sends, or are `null` or `[]`.
fn noisy_params(random: &mut Random, n: usize, uris: &[String]) -> String {
    let number = random
        .pick(&["0", "3", "7", "4294967295", "18446744073709551616", "-5", "1.5", "null", "\"x\""])
        .to_owned();
    let uri = &uris[random.below(uris.len())];
    let place = format!("{{\"line\":{number},\"character\":{}}}", random.below(20));
    let params = format!(
        "{{\"textDocument\":{{\"uri\":\"{uri}\",\"version\":{n},\"text\":\"---\\nstatus: x\\n---\\n\"}},\"position\":{place},\"range\":{{\"start\":{place},\"end\":{place}}},\
             \"context\":{{\"includeDeclaration\":true}},\"newName\":\"{number}\",\"query\":\"a\",\"command\":\"planwatch.start\",\"arguments\":[{{\"id\":\"auth:{n}\"}}],\
             \"files\":[{{\"oldUri\":\"{uri}\",\"newUri\":\"{uri}\"}}],\"previousResultIds\":[],\"contentChanges\":[{{\"range\":{{\"start\":{place},\"end\":{place}}},\"text\":\"é\"}}]}}"
    );
    match random.below(8) {
        0 => "null".to_owned(),
        1 => "[]".to_owned(),
        _ => params.replace("\"newName\":\"\"x\"\"", "\"newName\":\"x\""),
    }
}

/// Sends valid and invalid requests, cancellations, and frames without a message. `PLANWATCH_LSP_NOISE` sets the number of
/// messages.
#[test]
fn every_request_has_exactly_one_reply_whatever_else_is_sent() {
    let place = place();
    let mut editor = Editor::with(&place, &able());
    editor.open(STEP, TWO);
    let uris = [
        editor.uri(STEP),
        editor.uri("plans/auth/plan.md"),
        "file:///dev/zero".to_owned(),
        "untitled:1".to_owned(),
        String::new(),
    ];
    let mut random = Random::new(11);
    let mut asked = BTreeMap::new();
    for n in 0..wanted("PLANWATCH_LSP_NOISE", 400) {
        let params = noisy_params(&mut random, n, &uris);
        match random.below(10) {
            0 => {
                let frame: &[u8] = match random.below(7) {
                    0 => b"Content-Length: 2\r\n\r\n{}",
                    1 => b"Content-Length: 3\r\n\r\n[[[",
                    2 => b"garbage\r\n\r\n",
                    3 => b"Content-Length: -1\r\n\r\n",
                    4 => b"content-length:4\n\nnull",
                    5 => b"Content-Length: 2\r\n\r\n\xff\xfe",
                    _ => b"Content-Length: 24\r\n\r\n{\"id\":null,\"method\":\"x\"} ",
                };
                editor.send_bytes(frame);
            }
            1 => editor.notify("$/cancelRequest", json!({"id": random.below(n + 1)})),
            2 => {
                let body = format!("{{\"method\":\"textDocument/didChange\",\"params\":{params}}}");
                editor.send_bytes(format!("Content-Length: {}\r\n\r\n{body}", body.len()).as_bytes());
            }
            _ => {
                let method = random.pick(&METHODS);
                let id = 1000 + n as i64;
                let body = format!(
                    "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"{method}\",\"params\":{params}}}"
                );
                editor.send_bytes(format!("Content-Length: {}\r\n\r\n{body}", body.len()).as_bytes());
                if serde_json::from_str::<Value>(&body).is_ok() {
                    asked.insert(id, 0);
                }
            }
        }
    }
    editor.ask("shutdown", Value::Null);
    editor.notify("exit", Value::Null);
    assert_eq!(editor.child.wait().expect("it ends").code(), Some(0));
    editor.received.extend(editor.output.iter());
    for reply in editor.received.iter().filter(|it| it.get("method").is_none()) {
        assert!(reply["error"]["code"] != -32603, "{reply}");
        if let Some(n) = reply["id"].as_i64().and_then(|it| asked.get_mut(&it)) {
            *n += 1;
        }
    }
    let wrong: Vec<_> = asked.iter().filter(|it| *it.1 != 1).collect();
    assert!(wrong.is_empty(), "{wrong:?}");
}
