//! Converts the file changes of a dry run to a workspace edit.
//!
//! Each text gets small edits. If one edit replaced the whole text, the editor would lose the cursor, the folds and the
//! undo steps.

use std::path::Path;

use serde_json::{Map, Value, json};

use super::client::Client;
use super::documents::{Document, Documents};
use super::protocol::Failed;
use super::tree::Tree;
use super::uri;
use crate::disk::FileOp;
use crate::text::diff;

/// Whether a workspace edit renames files. It does not if the editor itself renames them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Renames {
    Included,
    LeftOut,
}

/// The edits that turn a document's text into `after`.
pub(super) fn text_edits(document: &Document, after: &str) -> Vec<Value> {
    let edits = diff::edits(&document.text, after).into_iter();
    edits.map(|(range, text)| json!({"range": document.range(&range), "newText": text})).collect()
}

/// Converts the changes of a dry run to a workspace edit. If an edit cannot express them, the error names the command
/// that makes them.
pub(super) fn workspace_edit(
    tree: &Tree,
    documents: &Documents,
    client: &Client,
    ops: &[FileOp],
    (renames, command): (Renames, &str),
) -> Result<Value, Failed> {
    let refused =
        |why: &str| Err(Failed::refused("needs-command", why, &format!("run `planwatch {command}`")));
    let (mut changed, mut renamed) = (Vec::new(), Vec::new());
    for op in ops {
        match op {
            FileOp::Change { path, before, after } => {
                let Ok(after) = std::str::from_utf8(after) else { return refused("the file is not UTF-8") };
                let Some(document) = document(tree, documents, client, path, before) else {
                    return refused("the file is not UTF-8");
                };
                let edits = text_edits(&document.0, after);
                if !edits.is_empty() {
                    changed.push((document, edits));
                }
            }
            FileOp::Rename { from, to } if renames == Renames::Included => {
                if !client.renames_files || !client.has_document_changes {
                    return refused("this editor cannot rename files for a language server");
                }
                let old = uri_of(tree, documents, from);
                let new = uri::of_path(&tree.root.join(to));
                renamed.push(json!({"kind": "rename", "oldUri": old, "newUri": new}));
            }
            FileOp::Rename { .. } => {}
            FileOp::Create { .. } | FileOp::Remove { .. } | FileOp::Discard { .. } => {
                return refused("only a command can create or remove files");
            }
        }
    }
    if !client.has_document_changes {
        let changes: Map<_, _> = changed.into_iter().map(|((it, _), edits)| (it.uri, edits.into())).collect();
        return Ok(json!({"changes": changes}));
    }
    // The edits use the old names of files, so they come before the renames.
    let edit = |((document, version), edits): ((Document, Option<i32>), Vec<Value>)| json!({"textDocument": {"uri": document.uri, "version": version}, "edits": edits});
    let changes: Vec<_> = changed.into_iter().map(edit).chain(renamed).collect();
    Ok(json!({"documentChanges": changes}))
}

/// The text to edit, with its version if it is open.
fn document(
    tree: &Tree,
    documents: &Documents,
    client: &Client,
    relative: &Path,
    before: &[u8],
) -> Option<(Document, Option<i32>)> {
    let open = relative.to_str().and_then(|it| tree.open_path(it)).and_then(|it| documents.at(it));
    if let Some(document) = open {
        return Some((document.clone(), Some(document.version)));
    }
    let (path, text) = (tree.root.join(relative), String::from_utf8(before.to_vec()).ok()?);
    Some((Document::new(uri::of_path(&path), path, 0, text, client.encoding), None))
}

/// The URI of a file. If the file is open, it is the URI that the client uses.
fn uri_of(tree: &Tree, documents: &Documents, relative: &Path) -> String {
    let open = relative.to_str().and_then(|it| tree.open_path(it)).and_then(|it| documents.at(it));
    open.map_or_else(|| uri::of_path(&tree.root.join(relative)), |it| it.uri.clone())
}
