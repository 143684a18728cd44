//! Finds the plan that an earlier import made from the same source. A plan that was made from a document or a store has
//! the path and the hash of its source. A copy of a plan is recognized by its name and its steps.

use super::{Files, ImportRequest};

use std::path::Path;

use serde_json::{Map, Value, json};

use crate::api::context::Context;
use crate::api::error::Error;
use crate::plan::file_name::{FileName, classify, step_file};
use crate::plan::id::{self, PlanId};
use crate::plan::import::{Draft, Form, ImportedPlan, SourceFile, set_metadata, to_value};
use crate::plan::model::Plan;
use crate::plan::read;
use crate::store::load::{self, DecisionFiles, LoadQuery};
use crate::store::{new_plan, relink};
use crate::text::header_edit::{Change, NewValue};
use crate::text::typed::shell_word;

/// The key in `metadata`, or in the front matter if the source has its own `metadata`.
const KEY: &str = "imported_from";

/// The source from which a plan was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Source {
    /// Relative to the repository's root. None for a source that is given as a text, and for a source outside the root,
    /// whose path is valid only on this machine.
    path: Option<String>,
    hash: String,
}

impl Source {
    /// None for a directory of plans, because its files are copied unchanged.
    pub(super) fn of(
        context: &Context,
        request: &ImportRequest,
        form: Form,
        plan: &ImportedPlan,
        all: &[SourceFile],
    ) -> Option<Self> {
        let drafts = plan.plan.iter().chain(plan.steps.iter().map(|it| &it.1));
        if plan.plan.is_none() || drafts.into_iter().any(|it| it.is_verbatim) {
            return None;
        }
        let files: Vec<_> = match &plan.path {
            Some(path) => all.iter().filter(|it| it.path == *path).collect(),
            None => all.iter().filter(|it| is_of_store(form, &it.path)).collect(),
        };
        let relative: Vec<_> = files.iter().map(|it| it.path.as_str()).collect();
        let common = common_directory(&relative);
        let mut bytes = Vec::new();
        for file in &files {
            // The hash of a document does not depend on its name. The hash of a store depends on the names of its files.
            if plan.path.is_none() {
                let below = file.path.strip_prefix(common).unwrap_or(&file.path);
                bytes.extend_from_slice(below.trim_start_matches('/').as_bytes());
                bytes.push(0);
            }
            bytes.extend_from_slice(&file.bytes);
        }
        let hash = read::etag(&bytes);
        Some(Self { path: path(context, request, &relative), hash })
    }

    /// Adds the edit that records the source in the plan.
    pub(super) fn note(&self, draft: &Draft, changes: &mut Vec<Change>) {
        let mut inner = Map::new();
        inner.extend(self.path.iter().map(|it| ("path".to_owned(), it.as_str().into())));
        inner.insert("hash".to_owned(), self.hash.as_str().into());
        let value = json!({KEY: inner});
        let set = changes.iter_mut().find(|it| it.key() == "metadata");
        match (set, value.as_object()) {
            (Some(Change::Set { value: NewValue::Map(entries), .. }), Some(more)) => {
                entries.extend(more.iter().map(|(key, it)| (key.clone(), to_value(it))));
            }
            _ if relink::has_key(draft.text.as_bytes(), "metadata") => {
                changes.push(Change::Set { key: KEY.to_owned(), value: to_value(&value[KEY]) });
            }
            _ => changes.extend(set_metadata(KEY, &inner)),
        }
    }

    fn is_of(&self, plan: &Plan) -> bool {
        let noted = plan.metadata.get(KEY).or_else(|| plan.custom.get(KEY));
        let text = |key: &str| noted.and_then(|it| it.get(key)).and_then(Value::as_str);
        text("hash") == Some(&self.hash) || (self.path.is_some() && text("path") == self.path.as_deref())
    }
}

/// Whether a file counts for the path and the hash of a store. The same files are used whether the request names the store
/// or a directory that contains it.
fn is_of_store(form: Form, path: &str) -> bool {
    match form {
        Form::Beads => path.ends_with(".jsonl"),
        // The configuration next to the store is not part of it.
        _ => path != "backlog.config.yml",
    }
}

/// The directory that contains all files, without a `/` at its end.
fn common_directory<'a>(paths: &[&'a str]) -> &'a str {
    let directory = |path: &'a str| path.rsplit_once('/').map_or("", |it| it.0);
    let Some(mut common) = paths.first().map(|it| directory(it)) else { return "" };
    let is_below = |path: &str, common: &str| {
        common.is_empty() || path.strip_prefix(common).is_some_and(|it| it.starts_with('/'))
    };
    while !paths.iter().all(|it| is_below(it, common)) {
        common = directory(common);
    }
    common
}

/// The path of the source's file or, if it has several files, of the directory that contains all of them. The path is
/// relative to the repository's root, contains no symbolic links, and does not depend on how the source was named.
fn path(context: &Context, request: &ImportRequest, documents: &[&str]) -> Option<String> {
    if request.text.is_some() {
        return None;
    }
    let reach = context.plans.reach(&context.here.root);
    let real = reach.find(&request.source, request.origin).ok()?;
    let named = real.strip_prefix(reach.root()).ok()?;
    let whole = match documents {
        // The request names the file itself. `named` is used, because the typed name can be that of a symbolic link.
        [file] if request.source.file_name().is_some_and(|it| it == *file) => named.to_path_buf(),
        [file] => named.join(file),
        several => named.join(common_directory(several)),
    };
    let parts: Option<Vec<_>> = whole.iter().map(|it| it.to_str()).collect();
    let path = parts?.join("/");
    Some(if path.is_empty() { ".".to_owned() } else { path })
}

/// For each plan to be made, the existing plan that was made from the same source, if there is one.
pub(super) fn known(
    context: &Context,
    plans: &[ImportedPlan],
    sources: &[Option<Source>],
) -> Result<Vec<Option<PlanId>>, Error> {
    let there = LoadQuery::all().settled(DecisionFiles::All).load(context)?.plans;
    let found = plans.iter().zip(sources).map(|(plan, source)| match source {
        Some(source) => there.iter().find(|it| source.is_of(it)).map(|it| it.id.clone()),
        None => copied(context, plan),
    });
    Ok(found.collect())
}

/// Finds an earlier copy of a plan: it has a name that a copy would get, and its steps have the same numbers and titles.
fn copied(context: &Context, plan: &ImportedPlan) -> Option<PlanId> {
    let name = id::slug(&plan.title, &|_| false);
    let is_name = |it: &String| {
        let rest = it.strip_prefix(&name);
        rest.is_some_and(|it| {
            it.is_empty() || it.strip_prefix('-').is_some_and(|it| it.parse::<u32>().is_ok())
        })
    };
    let titles = |id: &PlanId, files: &Files| -> Vec<(String, String)> {
        let read = new_plan::as_read(context, id, files);
        read.steps.iter().map(|it| (it.id.number.to_string(), it.title.clone())).collect()
    };
    let ours =
        plan.steps.iter().map(|(number, it)| (step_file(number), it.text.clone().into_bytes())).collect();
    let is_same = |name: &String| {
        let id = PlanId::new(name);
        let is_step = |it: &String| matches!(classify(it), FileName::Step(_));
        let names = context.plans.names(Path::new(name)).into_iter().filter(is_step);
        let read = |file: String| {
            let path = Path::new(name).join(&file);
            Some((file, context.plans.read(&path).ok()?.bytes))
        };
        let theirs: Files = names.filter_map(read).collect();
        titles(&id, &theirs) == titles(&id, &ours)
    };
    let names = load::taken_names(context).into_iter().filter(is_name);
    names.filter(|_| !plan.steps.is_empty()).find(is_same).map(PlanId::new)
}

/// The error for an import in which nothing is new.
pub(super) fn refused(request: &ImportRequest, known: &[PlanId]) -> Error {
    let names: Vec<_> = known.iter().map(|it| format!("`{it}`")).collect();
    let message = format!("`{}` was already imported as {}", request.shown, names.join(", "));
    let word = shell_word(&request.shown);
    let hint = format!("change that plan, or make another one: planwatch import {word} --again");
    Error::conflict("already-imported", message, hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_common_directory_holds_all_files() {
        for (paths, expected) in [
            (&[][..], ""),
            (&["a.md"], ""),
            (&["x/a.md"], "x"),
            (&["x/y/a.md", "x/y/b/c.md"], "x/y"),
            (&["x/y/a.md", "x/yz/b.md"], "x"),
            (&["x/y/a.md", "z.md"], ""),
            (&["backlog/config.yml", "backlog/tasks/a.md"], "backlog"),
        ] {
            assert_eq!(common_directory(paths), expected, "{paths:?}");
        }
    }
}
