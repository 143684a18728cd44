//! Sends diagnostics to the client: when they change (push), or when the client requests them (pull).
//!
//! A client that pulls gets no pushed diagnostics, because it would show every problem twice. If it requests the diagnostics
//! of the whole workspace, it also gets those of files that are not open. To other clients, the server pushes the
//! diagnostics of open files and, for each plans directory, of at most 1,000 files that are not open.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use lsp_server::RequestId;
use serde_json::{Value, json};

use super::catalog::{self, PlanEntry};
use super::client::Client;
use super::diagnostics::{self, Related};
use super::documents::{Document, Documents};
use super::positions::Encoding;
use super::protocol::{Answer, Failed, PreviousResult};
use super::queues::{Outbox, Pending};
use super::tree::{PlanFile, Tree};
use super::uri;
use crate::plan::problem::{Code, Problem, Severity};

/// For each plans directory, the maximum number of files that are not open and whose diagnostics are pushed.
const MOST_OTHERS: usize = 1_000;

/// A hash of diagnostics. An equal hash means that the client already has these diagnostics.
fn result_id(items: &[Value]) -> String {
    let hash = blake3::hash(Value::from(items.to_vec()).to_string().as_bytes());
    hash.to_hex()[..16].to_owned()
}

#[derive(Debug, Default)]
pub(super) struct Published {
    /// The files that are not open and for which diagnostics were sent, with the hash of the problems that were sent last.
    others: HashMap<PathBuf, blake3::Hash>,
}

impl Published {
    /// Sends those diagnostics of a tree that may have changed since the last call. Sends nothing if the client requests
    /// diagnostics itself.
    pub(super) fn publish(
        &mut self,
        outbox: &Outbox,
        client: &Client,
        documents: &Documents,
        tree: &mut Tree,
    ) {
        let dirty = tree.take_dirty();
        if client.pulls_diagnostics {
            return;
        }
        for document in dirty.iter().filter_map(|it| documents.at(it)) {
            let Some(file) = tree.file(&document.path) else { continue };
            let items = of_document(tree, document, &file);
            self.others.remove(&document.path);
            let params = json!({"uri": document.uri, "version": document.version, "diagnostics": items});
            outbox.publish(&document.uri, &params);
        }
        if std::mem::take(&mut tree.are_others_dirty) {
            self.publish_others(outbox, client.encoding, tree);
        }
    }

    fn publish_others(&mut self, outbox: &Outbox, encoding: Encoding, tree: &Tree) {
        let chosen = others(tree);
        self.clear(outbox, tree, |it| !chosen.contains_key(it));
        for (path, problems) in chosen {
            let related = problems.iter().map(|it| related_of(tree, it)).collect::<Vec<_>>();
            let hash = blake3::hash(format!("{problems:?} {related:?}").as_bytes());
            if self.others.insert(path.clone(), hash) == Some(hash) {
                continue;
            }
            let problems: Vec<_> = problems.into_iter().cloned().collect();
            let (uri, items) = of_file(tree, encoding, &path, &problems);
            outbox.publish(&uri, &json!({"uri": uri, "diagnostics": items}));
        }
    }

    /// Clears the diagnostics of a tree that the server no longer serves. No file of the tree is open.
    pub(super) fn removed(&mut self, outbox: &Outbox, tree: &Tree) {
        self.clear(outbox, tree, |_| true);
    }

    /// Clears the diagnostics of those files of a tree that are not open and for which `is_gone` returns true.
    fn clear(&mut self, outbox: &Outbox, tree: &Tree, is_gone: impl Fn(&PathBuf) -> bool) {
        let is_gone = |it: &&PathBuf| it.starts_with(&tree.root) && is_gone(it);
        let gone: Vec<_> = self.others.keys().filter(is_gone).cloned().collect();
        for path in gone {
            self.others.remove(&path);
            if !tree.is_open(&path) {
                let uri = uri::of_path(&path);
                outbox.publish(&uri, &json!({"uri": uri, "diagnostics": []}));
            }
        }
    }

    /// Clears the diagnostics of a closed document, unless the client requests diagnostics itself. The diagnostics of the
    /// saved file are sent later, together with the other files that are not open.
    pub(super) fn closed(&mut self, outbox: &Outbox, client: &Client, uri: &str) {
        if !client.pulls_diagnostics {
            outbox.publish(uri, &json!({"uri": uri, "diagnostics": []}));
        }
    }
}

/// The files that are not open and have problems. If there are more than [`MOST_OTHERS`], files of plans with open files
/// are chosen first, then files with errors.
fn others(tree: &Tree) -> BTreeMap<PathBuf, Vec<&Problem>> {
    let Some(catalog) = &tree.catalog else { return BTreeMap::new() };
    let mut by_path: BTreeMap<&str, Vec<&Problem>> = BTreeMap::new();
    for problem in catalog.problems() {
        by_path.entry(&problem.path).or_default().push(problem);
    }
    let open: Vec<_> = tree.open_files().map(|(_, file)| file).collect();
    by_path.retain(|path, _| open.iter().all(|it| it.relative != *path));
    let is_near = |path: &str| {
        let plan = |it: &str| it.rsplit_once('/').map(|it| it.0.to_owned());
        open.iter().any(|it| plan(&it.relative) == plan(path))
    };
    let rank = |(path, problems): &(&str, Vec<&Problem>)| {
        let is_error = problems.iter().any(|it| it.severity() == Severity::Error);
        (!is_near(path), !is_error)
    };
    let mut ranked: Vec<_> = by_path.into_iter().collect();
    if ranked.len() > MOST_OTHERS {
        ranked.sort_by_cached_key(rank);
        ranked.truncate(MOST_OTHERS);
    }
    ranked.into_iter().map(|(path, problems)| (tree.root.join(path), problems)).collect()
}

fn of_document(tree: &mut Tree, document: &Document, file: &PlanFile) -> Vec<Value> {
    let (root, problems) = (tree.root.clone(), tree.problems_of(file));
    let judged = file.key.as_ref().and_then(|it| tree.judged(it).ok());
    let related = |it: &Problem| {
        let Some((judged, plan)) = judged.and_then(|it| Some((it, it.plan()?))) else { return Vec::new() };
        let in_text = diagnostics::in_text(&document.text, (&plan.path, &plan.id), it);
        diagnostics::related(&judged.plans, plan, it).into_iter().chain(in_text).collect()
    };
    let mut items = diagnostics::all(document, &root, &problems, related);
    // A file that is too large gets no hint about its line ends.
    if problems.iter().all(|it| it.code != Code::TooLarge) {
        items.extend(diagnostics::line_ends(document));
    }
    items
}

/// The URI of a file that is not open, and its diagnostics.
pub(super) fn of_file(
    tree: &Tree,
    encoding: Encoding,
    path: &Path,
    problems: &[Problem],
) -> (String, Vec<Value>) {
    let relative = path.strip_prefix(&tree.root).unwrap_or(path);
    // Problems of a whole file are shown at its first line, so only other problems need the text.
    let needs_text = problems.iter().any(|it| (it.line, it.column) != (1, 1));
    let read = || tree.context().ok()?.plans.read(relative).ok();
    let bytes = if needs_text { read().map(|it| it.bytes).unwrap_or_default() } else { Vec::new() };
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let uri = uri::of_path(path);
    let document = Document::new(uri.clone(), path.to_path_buf(), 0, text, encoding);
    let related = |it: &Problem| {
        let plan = plan_of(tree, it);
        let in_text = plan.and_then(|plan| diagnostics::in_text(&document.text, (&plan.path, &plan.id), it));
        related_of(tree, it).iter().cloned().chain(in_text).collect()
    };
    let items = diagnostics::all(&document, &tree.root, problems, related);
    (uri, items)
}

fn plan_of<'a>(tree: &'a Tree, problem: &Problem) -> Option<&'a PlanEntry> {
    let (key, _) = catalog::place(Path::new(&problem.path))?;
    tree.catalog.as_ref()?.at(&key)
}

/// The related locations of a problem in a file that is not open.
fn related_of<'a>(tree: &'a Tree, problem: &Problem) -> &'a [Related] {
    plan_of(tree, problem).map_or(&[], |it| it.related(problem))
}

/// Answers the request for the diagnostics of one document.
pub(super) fn pulled(
    tree: &mut Tree,
    document: &Document,
    file: &PlanFile,
    previous: Option<&str>,
) -> Answer {
    let items = of_document(tree, document, file);
    let id = result_id(&items);
    Ok(match previous == Some(id.as_str()) {
        true => json!({"kind": "unchanged", "resultId": id}),
        false => json!({"kind": "full", "resultId": id, "items": items}),
    })
}

/// Answers the request for the diagnostics of all files. The response omits files whose diagnostics the client has.
pub(super) fn pulled_workspace(
    (pending, id): (&Pending, &RequestId),
    client: &Client,
    documents: &Documents,
    trees: &mut [Tree],
    previous: &[PreviousResult],
) -> Answer {
    let had: HashMap<PathBuf, &str> =
        previous.iter().filter_map(|it| Some((uri::to_path(&it.uri)?, it.value.as_str()))).collect();
    let mut found: BTreeMap<PathBuf, (String, Option<i32>, Vec<Value>)> = BTreeMap::new();
    for tree in trees {
        let open: Vec<_> = tree.open_files().map(|(path, file)| (path.clone(), file.clone())).collect();
        for (path, file) in &open {
            if let Some(document) = documents.at(path) {
                let items = of_document(tree, document, file);
                found.insert(path.clone(), (document.uri.clone(), Some(document.version), items));
            }
        }
        let mut by_path: BTreeMap<PathBuf, Vec<Problem>> = BTreeMap::new();
        for problem in tree.catalog.iter().flat_map(|it| it.problems()) {
            by_path.entry(tree.root.join(&problem.path)).or_default().push(problem.clone());
        }
        for (path, problems) in by_path {
            if pending.is_cancelled(id) {
                return Err(Failed::cancelled());
            }
            if !tree.is_open(&path) {
                let (uri, items) = of_file(tree, client.encoding, &path, &problems);
                found.insert(path, (uri, None, items));
            }
        }
    }
    let mut reports = Vec::new();
    for (path, (uri, version, items)) in &found {
        let id = result_id(items);
        if had.get(path) != Some(&id.as_str()) {
            reports.push(
                json!({"kind": "full", "uri": uri, "version": version, "resultId": id, "items": items}),
            );
        }
    }
    // Clears the diagnostics of files that no longer have problems.
    let empty = result_id(&[]);
    for it in previous.iter().filter(|it| it.value != empty) {
        if uri::to_path(&it.uri).is_none_or(|path| !found.contains_key(&path)) {
            reports.push(
                json!({"kind": "full", "uri": it.uri, "version": null, "resultId": empty, "items": []}),
            );
        }
    }
    Ok(json!({"items": reports}))
}
