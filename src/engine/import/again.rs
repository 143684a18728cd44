//! Which plan was made of a source before: a plan remembers the path and the hash of what it was made of.

use std::path::Path;

use serde_json::{Map, Value, json};

use super::{Files, ImportRequest, said_key};
use crate::engine::context::Context;
use crate::engine::create;
use crate::engine::error::Error;
use crate::engine::load;
use crate::plan::bring::{BroughtPlan, Draft, SourceFile, set_metadata, to_value};
use crate::plan::file_name::{FileName, classify, step_file};
use crate::plan::id::{self, PlanId};
use crate::plan::model::Plan;
use crate::text::header_edit::{Change, NewValue};
use crate::text::typed::shell_word;

/// The key of `metadata`, or of the front matter where `metadata` is the source's own.
const KEY: &str = "imported_from";

/// What a plan is made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Source {
    /// From the repository's root; none for what lies outside, as that path would be one of this machine.
    path: Option<String>,
    hash: String,
}

impl Source {
    /// None for a directory of plans, whose files stay as they are.
    pub(super) fn of(
        context: &Context,
        request: &ImportRequest,
        plan: &BroughtPlan,
        all: &[SourceFile],
    ) -> Option<Self> {
        let drafts = plan.plan.iter().chain(plan.steps.iter().map(|it| &it.1));
        if plan.plan.is_none() || drafts.into_iter().any(|it| it.is_verbatim) {
            return None;
        }
        let is_of = |it: &&SourceFile| plan.path.as_ref().is_none_or(|path| *path == it.path);
        let mut bytes = Vec::new();
        for file in all.iter().filter(is_of) {
            // A document is the same under another name; the files of a store have theirs.
            if plan.path.is_none() {
                bytes.extend_from_slice(file.path.as_bytes());
                bytes.push(0);
            }
            bytes.extend_from_slice(&file.bytes);
        }
        let hash = load::etag(&bytes);
        Some(Self { path: path(context, request, plan.path.as_deref()), hash })
    }

    /// The edit by which the plan remembers it.
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
            _ if said_key(&draft.text, "metadata") => {
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

fn path(context: &Context, request: &ImportRequest, document: Option<&str>) -> Option<String> {
    if request.text.is_some() {
        return None;
    }
    let named = request.source.strip_prefix(&context.here.root).unwrap_or(&request.source);
    let mut parts: Vec<&str> = Vec::new();
    let whole = match document {
        Some(document) if !named.ends_with(document) => named.join(document),
        _ => named.to_path_buf(),
    };
    for part in whole.components() {
        match part {
            std::path::Component::CurDir => {}
            std::path::Component::Normal(part) => parts.push(part.to_str()?),
            std::path::Component::ParentDir if !parts.is_empty() => drop(parts.pop()),
            _ => return None,
        }
    }
    let is_whole = parts.is_empty();
    Some(if is_whole { ".".to_owned() } else { parts.join("/") })
}

/// For each plan to be made the one that was made of the same source, if there is one.
pub(super) fn known(
    context: &Context,
    plans: &[BroughtPlan],
    sources: &[Option<Source>],
) -> Result<Vec<Option<PlanId>>, Error> {
    let there = load::all_light(context)?;
    let found = plans.iter().zip(sources).map(|(plan, source)| match source {
        Some(source) => there.iter().find(|it| source.is_of(it)).map(|it| it.id.clone()),
        None => copied(context, plan),
    });
    Ok(found.collect())
}

/// A plan with the name that a copy would get, whose steps have the same numbers and titles.
fn copied(context: &Context, plan: &BroughtPlan) -> Option<PlanId> {
    let name = id::slug(&plan.title, &|_| false);
    let is_name = |it: &String| {
        let rest = it.strip_prefix(&name);
        rest.is_some_and(|it| {
            it.is_empty() || it.strip_prefix('-').is_some_and(|it| it.parse::<u32>().is_ok())
        })
    };
    let titles = |id: &PlanId, files: &Files| -> Vec<(String, String)> {
        let read = create::as_read(context, id, files);
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

/// Refuses an import of which nothing new is left.
pub(super) fn refused(request: &ImportRequest, known: &[PlanId]) -> Error {
    let names: Vec<_> = known.iter().map(|it| format!("`{it}`")).collect();
    let message = format!("`{}` was already imported as {}", request.shown, names.join(", "));
    let word = shell_word(&request.shown);
    let hint = format!("change that plan, or make another one: planwatch import {word} --again");
    Error::Conflict { code: "already-imported", message, hint }
}
