//! The server's capabilities.

use serde_json::{Value, json};

use super::client::Client;
use super::commands;

pub(super) fn result(client: &Client) -> Value {
    let mut capabilities = json!({
        "positionEncoding": client.encoding.word(),
        "textDocumentSync": {"openClose": true, "change": 2, "save": {"includeText": false}},
        "completionProvider": {"triggerCharacters": [":", "-", "[", ",", " ", "("], "resolveProvider": false},
        "hoverProvider": true,
        "definitionProvider": true,
        "referencesProvider": true,
        "documentHighlightProvider": true,
        "documentSymbolProvider": true,
        "workspaceSymbolProvider": true,
        "documentLinkProvider": {"resolveProvider": false},
        "foldingRangeProvider": true,
        "inlayHintProvider": {"resolveProvider": false},
        "codeLensProvider": {"resolveProvider": false},
        "codeActionProvider": {"codeActionKinds": ["quickfix", "refactor", "refactor.rewrite"]},
        "renameProvider": {"prepareProvider": true},
        "executeCommandProvider": {"commands": commands::NAMES},
        "workspace": {
            "workspaceFolders": {"supported": true, "changeNotifications": true},
            "fileOperations": {"willRename": {"filters": [
                {"scheme": "file", "pattern": {"glob": "**/step-*.md", "matches": "file"}},
                {"scheme": "file", "pattern": {"glob": "**/*", "matches": "folder"}},
            ]}},
        },
    });
    if client.pulls_diagnostics {
        capabilities["diagnosticProvider"] =
            json!({"identifier": "planwatch", "interFileDependencies": true, "workspaceDiagnostics": true});
    }
    json!({"capabilities": capabilities, "serverInfo": {"name": "planwatch", "version": env!("CARGO_PKG_VERSION")}})
}
