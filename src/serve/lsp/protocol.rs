//! The parameters of the messages that the server reads, and its error responses.
//!
//! Of the server's modules, only this one uses `gen_lsp_types`, a library with the protocol's types. Responses are built
//! as JSON, and the tests parse each of them with these types.

pub(super) use gen_lsp_types::{Position, Range, TextDocumentPositionParams};
use lsp_server::ErrorCode;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::api::error::Error;

/// The error response to a request.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Failed {
    pub(super) code: i32,
    pub(super) message: String,
    /// The fields `code` and `hint`, as in the errors of every surface.
    pub(super) data: Option<Value>,
}

pub(super) type Answer = Result<Value, Failed>;

impl Failed {
    pub(super) fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code: code as i32, message: message.into(), data: None }
    }

    /// The error for a valid request that cannot be carried out. A client shows only the message, so the message contains
    /// the hint, which may be empty.
    pub(super) fn refused(code: &str, message: &str, hint: &str) -> Self {
        let message = if hint.is_empty() { message.to_owned() } else { format!("{message}; {hint}") };
        Self {
            data: Some(json!({"code": code, "hint": hint})),
            ..Self::new(ErrorCode::RequestFailed, message)
        }
    }

    pub(super) fn cancelled() -> Self {
        Self::new(ErrorCode::RequestCanceled, "the request was cancelled")
    }
}

impl From<Error> for Failed {
    fn from(error: Error) -> Self {
        Self::refused(error.code(), &error.to_string(), &error.hint().unwrap_or_default())
    }
}

/// Reads the parameters of a request.
pub(super) fn read<T: DeserializeOwned>(params: Value) -> Result<T, Failed> {
    serde_json::from_value(params).map_err(|error| {
        Failed::new(ErrorCode::InvalidParams, format!("the parameters are not valid: {error}"))
    })
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct OpenedText {
    pub(super) uri: String,
    #[serde(default)]
    pub(super) version: i32,
    pub(super) text: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct DidOpen {
    pub(super) text_document: OpenedText,
}

#[derive(Debug, Deserialize)]
pub(super) struct DocumentId {
    pub(super) uri: String,
    #[serde(default)]
    pub(super) version: Option<i32>,
}

/// The parameters of `didClose`, `didSave` and the requests about a whole document.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct OfDocument {
    pub(super) text_document: DocumentId,
    #[serde(default)]
    pub(super) previous_result_id: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(super) struct ContentChange {
    #[serde(default)]
    pub(super) range: Option<Range>,
    pub(super) text: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct DidChange {
    pub(super) text_document: DocumentId,
    pub(super) content_changes: Vec<ContentChange>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct OfRange {
    pub(super) text_document: DocumentId,
    pub(super) range: Range,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct ActionContext {
    #[serde(default)]
    pub(super) only: Option<Vec<String>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct OfAction {
    pub(super) range: Range,
    #[serde(default)]
    pub(super) context: ActionContext,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ReferenceContext {
    pub(super) include_declaration: bool,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct OfReferences {
    pub(super) position: Position,
    pub(super) context: ReferenceContext,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct OfRename {
    pub(super) position: Position,
    pub(super) new_name: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RenamedFile {
    pub(super) old_uri: String,
    pub(super) new_uri: String,
}

#[derive(Debug, Deserialize)]
pub(super) struct RenamedFiles {
    pub(super) files: Vec<RenamedFile>,
}

#[derive(Debug, Deserialize)]
pub(super) struct OfSymbols {
    pub(super) query: String,
}

#[derive(Debug, Deserialize)]
pub(super) struct PreviousResult {
    pub(super) uri: String,
    pub(super) value: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct OfWorkspaceDiagnostics {
    #[serde(default)]
    pub(super) previous_result_ids: Vec<PreviousResult>,
}

#[derive(Debug, Deserialize)]
pub(super) struct OfCommand {
    pub(super) command: String,
    #[serde(default)]
    pub(super) arguments: Vec<Value>,
}

#[derive(Debug, Deserialize)]
pub(super) struct FolderId {
    pub(super) uri: String,
}

#[derive(Debug, Deserialize)]
pub(super) struct FoldersChange {
    pub(super) added: Vec<FolderId>,
    pub(super) removed: Vec<FolderId>,
}

#[derive(Debug, Deserialize)]
pub(super) struct DidChangeFolders {
    pub(super) event: FoldersChange,
}
