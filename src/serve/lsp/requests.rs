//! Dispatches requests to the functions that answer them.

use lsp_server::{ErrorCode, RequestId};
use serde_json::{Value, json};

use super::protocol::{
    Answer, Failed, OfAction, OfCommand, OfDocument, OfRange, OfReferences, OfRename, OfSymbols,
    OfWorkspaceDiagnostics, RenamedFiles, TextDocumentPositionParams, read,
};
use super::server::Server;
use super::{actions, commands, completion, hints, hover, navigation, publish, rename, symbols, uri};
use crate::api::error::Error;
use crate::api::views;
use crate::ops::list::{self, ListRequest};

impl Server {
    /// Whether a request waits until all plans are loaded.
    pub(super) fn needs_all_plans(method: &str) -> bool {
        let is_about_all = matches!(method, "workspace/symbol" | "workspace/diagnostic" | "planwatch/status");
        is_about_all || matches!(method, "textDocument/references" | "textDocument/rename")
    }

    /// Answers a request. Returns `None` if a command was started, because the command's thread sends the response.
    pub(super) fn answer(&mut self, id: &RequestId, method: &str, params: Value) -> Option<Answer> {
        if method == "workspace/executeCommand" {
            return match read::<OfCommand>(params) {
                Ok(it) => commands::execute(self, id, &it.command, &it.arguments),
                Err(failed) => Some(Err(failed)),
            };
        }
        Some(self.answer_now(id, method, params))
    }

    fn answer_now(&mut self, id: &RequestId, method: &str, params: Value) -> Answer {
        match method {
            "textDocument/completion" => {
                let (uri, position) = place(params)?;
                self.with_document(&uri, |tree, document, file, client| {
                    completion::complete(tree, document, file, client, position)
                })
            }
            "textDocument/hover" => {
                let (uri, position) = place(params)?;
                self.with_document(&uri, |tree, document, file, _| {
                    hover::hover(tree, document, file, position)
                })
            }
            "textDocument/documentHighlight" => {
                let (uri, position) = place(params)?;
                self.with_document(&uri, |_, document, file, _| {
                    navigation::highlights(document, file, position)
                })
            }
            "textDocument/prepareRename" => {
                let (uri, position) = place(params)?;
                self.with_document(&uri, |_, document, file, _| rename::prepare(document, file, position))
            }
            "textDocument/inlayHint" => {
                let OfRange { text_document: of, range } = read(params)?;
                self.with_document(&of.uri, |tree, document, file, _| {
                    hints::inlay_hints(tree, document, file, &range)
                })
            }
            "workspace/symbol" => {
                let OfSymbols { query } = read(params)?;
                symbols::workspace_symbols((&self.pending, id), &self.trees, &query)
            }
            "workspace/diagnostic" => {
                let OfWorkspaceDiagnostics { previous_result_ids: previous } = read(params)?;
                let Self { pending, client, documents, trees, .. } = self;
                publish::pulled_workspace((pending, id), client, documents, trees, &previous)
            }
            "workspace/willRenameFiles" => {
                let RenamedFiles { files } = read(params)?;
                rename::will_rename(&self.trees, &self.documents, &self.client, &files)
            }
            "planwatch/plans" | "planwatch/plan" | "planwatch/status" => self.answer_own(method, &params),
            _ => self.answer_across(id, method, params),
        }
    }

    /// Answers requests about a whole document.
    fn answer_of_document(&mut self, method: &str, params: Value) -> Answer {
        let OfDocument { text_document: of, previous_result_id: previous } = read(params)?;
        self.with_document(&of.uri, |tree, document, file, client| match method {
            "textDocument/documentSymbol" => symbols::document_symbols(tree, document, file, client),
            "textDocument/foldingRange" => symbols::folding(tree, document, file),
            "textDocument/documentLink" => navigation::links(tree, document, file),
            "textDocument/codeLens" => hints::code_lenses(tree, document, file),
            _ => publish::pulled(tree, document, file, previous.as_deref()),
        })
        .map(|it| match (method, it) {
            ("textDocument/diagnostic", Value::Null) => json!({"kind": "full", "items": []}),
            (_, it) => it,
        })
    }

    /// Answers requests whose responses may refer to several documents, and passes on those about a whole document.
    fn answer_across(&mut self, id: &RequestId, method: &str, params: Value) -> Answer {
        let (uri, params) = (params["textDocument"]["uri"].as_str().unwrap_or_default().to_owned(), params);
        match method {
            "textDocument/documentSymbol"
            | "textDocument/foldingRange"
            | "textDocument/documentLink"
            | "textDocument/codeLens"
            | "textDocument/diagnostic" => return self.answer_of_document(method, params),
            "textDocument/definition"
            | "textDocument/references"
            | "textDocument/codeAction"
            | "textDocument/rename" => {}
            _ => return Err(Failed::new(ErrorCode::MethodNotFound, format!("`{method}` is not supported"))),
        }
        let Self { pending, client, documents, trees, .. } = self;
        let is_stopped = || pending.is_cancelled(id);
        let document = documents.get(&uri);
        let found = document.and_then(|document| {
            let found = trees.iter_mut().find_map(|it| it.file(&document.path).map(|file| (it, file)));
            found.map(|(tree, file)| (tree, file, document))
        });
        let encoding = client.encoding;
        let answer = match method {
            "textDocument/definition" => {
                let TextDocumentPositionParams { position, .. } = read(params)?;
                let Some((tree, file, document)) = found else { return Ok(Value::Null) };
                navigation::definition(tree, documents, document, &file, (position, encoding))
            }
            "textDocument/references" => {
                let OfReferences { position, context, .. } = read(params)?;
                let Some((tree, file, document)) = found else { return Ok(Value::Null) };
                let of = (document, &file);
                let place = (position, encoding);
                navigation::references(tree, documents, of, place, context.include_declaration, &is_stopped)
            }
            "textDocument/codeAction" => {
                let OfAction { range, context, .. } = read(params)?;
                let Some((tree, file, document)) = found else { return Ok(Value::Null) };
                actions::actions(
                    tree,
                    documents,
                    (document, &file),
                    client,
                    (&range, context.only.as_deref()),
                )
            }
            _ => {
                let OfRename { position, new_name, .. } = read(params)?;
                let Some((tree, file, document)) = found else { return Ok(Value::Null) };
                rename::rename(tree, documents, (document, &file), client, (position, &new_name))
            }
        };
        if is_stopped() { Err(Failed::cancelled()) } else { answer }
    }

    /// Answers planwatch's own requests, which are not part of the protocol. The response to `planwatch/plans` and
    /// `planwatch/plan` is the JSON of `planwatch list`.
    fn answer_own(&mut self, method: &str, params: &Value) -> Answer {
        let folder = params["folder"].as_str().and_then(uri::to_path);
        let is_in =
            |it: &&super::tree::Tree| folder.as_ref().is_none_or(|folder| it.root.starts_with(folder));
        let tree = self.trees.iter().find(is_in).ok_or_else(|| Failed::from(Error::NoPlansDir))?;
        let context = tree.context()?;
        match method {
            "planwatch/plans" => {
                let report = list::list(&context, &ListRequest::default())?;
                Ok(views::envelope(report.kind(), report.to_json()))
            }
            "planwatch/plan" => {
                let plan = Some(params["id"].as_str().unwrap_or_default().to_owned());
                let report = list::list(&context, &ListRequest { plan, ..ListRequest::default() })?;
                Ok(views::envelope(report.kind(), report.to_json()))
            }
            _ => Ok(status(tree, &context)),
        }
    }
}

/// The data for the editor's status bar.
fn status(tree: &super::tree::Tree, context: &crate::api::context::Context) -> Value {
    use crate::plan::words::StepStatus;
    // Claims and ready steps are those of the saved files: after a command, an editor can still show the old texts.
    let saved = tree.saved();
    let plans = tree.catalog.iter().flat_map(|it| it.live_with_keys());
    let plans = plans.map(|(key, it)| saved.get(key).unwrap_or(it));
    let mut claimed = Vec::new();
    let (mut n_ready, n_problems) = (0, tree.catalog.iter().flat_map(|it| it.problems()).count());
    for plan in plans {
        n_ready += plan.n_ready;
        for step in plan.steps.iter().filter(|it| it.status.is(StepStatus::InProgress)) {
            if let Some(by) = step.claimed_by.as_deref().filter(|by| *by == context.by) {
                let uri = uri::of_path(&tree.root.join(plan.step_path(step)));
                let id = format!("{}:{}", plan.id, step.number);
                claimed.push(json!({"id": id, "title": step.title, "uri": uri, "by": by}));
            }
        }
    }
    json!({"plans_dir": uri::of_path(&tree.root), "claimed": claimed, "ready": n_ready, "problems": n_problems})
}

fn place(params: Value) -> Result<(String, super::protocol::Position), Failed> {
    let params: TextDocumentPositionParams = read(params)?;
    Ok((params.text_document.uri.to_string(), params.position))
}
