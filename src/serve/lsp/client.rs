//! The client's capabilities from `initialize`. A capability that is missing or has a wrong type counts as not supported.

use std::path::PathBuf;

use serde_json::Value;

use super::positions::Encoding;
use super::protocol::FolderId;
use super::uri;

#[derive(Debug, Clone, Default)]
pub(super) struct Client {
    pub(super) encoding: Encoding,
    /// Requests (pulls) diagnostics, and supports refreshing them. To other clients, the server pushes diagnostics.
    pub(super) pulls_diagnostics: bool,
    pub(super) refreshes_hints: bool,
    pub(super) refreshes_lenses: bool,
    /// Supports file renames in workspace edits.
    pub(super) renames_files: bool,
    /// Supports `documentChanges` in workspace edits. Only `documentChanges` can contain document versions and file renames.
    pub(super) has_document_changes: bool,
    pub(super) has_action_literals: bool,
    /// Shows actions that are not possible now, with the reason.
    pub(super) has_disabled_actions: bool,
    pub(super) has_snippets: bool,
    /// Completion can show a text next to each label.
    pub(super) has_label_details: bool,
    /// Document symbols may be nested.
    pub(super) nests_symbols: bool,
    /// Implements the `planwatch.ui.*` commands, which ask the user for a text.
    pub(super) asks_for_texts: bool,
    /// Wants a notification when plans change.
    pub(super) follows_plans: bool,
    pub(super) folders: Vec<PathBuf>,
}

impl Client {
    pub(super) fn of(params: &Value) -> Self {
        let capabilities = &params["capabilities"];
        let is = |pointer: &str| capabilities.pointer(pointer).and_then(Value::as_bool).unwrap_or_default();
        let has = |pointer: &str| capabilities.pointer(pointer).is_some_and(Value::is_object);
        let words = |pointer: &str| {
            let list = capabilities.pointer(pointer).and_then(Value::as_array);
            list.into_iter().flatten().filter_map(Value::as_str).collect::<Vec<_>>()
        };
        let wants = |name: &str| params["initializationOptions"][name].as_bool().unwrap_or_default();
        Self {
            encoding: Encoding::choose(words("/general/positionEncodings")),
            // A client that pulls learns of changes by other programs only through refreshes.
            pulls_diagnostics: has("/textDocument/diagnostic") && is("/workspace/diagnostics/refreshSupport"),
            refreshes_hints: is("/workspace/inlayHint/refreshSupport"),
            refreshes_lenses: is("/workspace/codeLens/refreshSupport"),
            renames_files: words("/workspace/workspaceEdit/resourceOperations").contains(&"rename"),
            // File operations exist only in `documentChanges`. A client that declares only the operations is assumed to
            // support both.
            has_document_changes: is("/workspace/workspaceEdit/documentChanges")
                || !words("/workspace/workspaceEdit/resourceOperations").is_empty(),
            has_action_literals: has("/textDocument/codeAction/codeActionLiteralSupport"),
            has_disabled_actions: is("/textDocument/codeAction/disabledSupport"),
            has_snippets: is("/textDocument/completion/completionItem/snippetSupport"),
            has_label_details: is("/textDocument/completion/completionItem/labelDetailsSupport"),
            nests_symbols: is("/textDocument/documentSymbol/hierarchicalDocumentSymbolSupport"),
            asks_for_texts: wants("prompts"),
            follows_plans: wants("changes"),
            folders: folders(params),
        }
    }
}

/// The paths of the workspace folders. If no folders are listed, the path of the root.
fn folders(params: &Value) -> Vec<PathBuf> {
    let listed: Vec<FolderId> =
        serde_json::from_value(params["workspaceFolders"].clone()).unwrap_or_default();
    if !listed.is_empty() {
        return listed.iter().filter_map(|it| uri::to_path(&it.uri)).collect();
    }
    let root = params["rootUri"].as_str().and_then(uri::to_path);
    root.or_else(|| params["rootPath"].as_str().map(PathBuf::from)).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_client_that_says_nothing_supports_nothing() {
        for params in [json!({}), json!(null), json!([1]), json!({"capabilities": {"general": 7}})] {
            let client = Client::of(&params);
            assert_eq!(client.encoding, Encoding::Utf16);
            assert!(!client.pulls_diagnostics && !client.renames_files && client.folders.is_empty());
        }
    }

    #[test]
    fn what_it_says_is_read() {
        let client = Client::of(&json!({
            "capabilities": {
                "general": {"positionEncodings": ["utf-16", "utf-8"]},
                "textDocument": {"diagnostic": {}},
                "workspace": {
                    "diagnostics": {"refreshSupport": true},
                    "workspaceEdit": {"resourceOperations": ["create", "rename"]},
                },
            },
            "initializationOptions": {"prompts": true},
            "workspaceFolders": [{"uri": "file:///a%20b", "name": "x"}, {"uri": "untitled:1", "name": "y"}],
            "rootUri": "file:///c",
        }));
        assert_eq!(client.encoding, Encoding::Utf8);
        assert!(client.pulls_diagnostics && client.renames_files && client.has_document_changes);
        assert!(client.asks_for_texts && !client.follows_plans);
        assert_eq!(client.folders, [PathBuf::from("/a b")]);
        assert_eq!(Client::of(&json!({"rootUri": "file:///c"})).folders, [PathBuf::from("/c")]);
    }
}
