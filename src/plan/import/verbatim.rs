//! Imports directories with `plan.md` and `step-N.md`. They are plans already, so these files are copied unchanged, except
//! for a wrong `id`. Other documents are mapped.

use std::collections::{BTreeMap, BTreeSet};

use super::{Draft, Form, Imported, ImportedPlan, NO_STEPS, left, markdown};
use crate::plan::file_name::{FileName, PLAN_FILE, classify};
use crate::plan::words::Words;

pub(super) fn is_own(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    name == PLAN_FILE || is_step(name)
}

fn is_step(name: &str) -> bool {
    matches!(classify(name), FileName::Step(_))
}

fn split(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap_or(("", path))
}

/// Each directory with step files becomes a plan, and so does a directory with only a `plan.md` whose text has no steps. If
/// the files have no directory, the plan's title is `name`.
///
/// Any other file is mapped as a document if its text has steps.
pub(super) fn convert(name: &str, files: &[(&str, &str)], words: &Words) -> Imported {
    let with_steps: BTreeSet<&str> =
        files.iter().map(|it| split(it.0)).filter(|it| is_step(it.1)).map(|it| it.0).collect();
    let mut plans: BTreeMap<&str, ImportedPlan> = BTreeMap::new();
    let (mut documents, mut unmapped) = (Vec::new(), Vec::new());
    for (path, text) in files {
        let (directory, file) = split(path);
        if !is_own(path) || !with_steps.contains(directory) {
            let (plan, more) = markdown::convert(path, text, words);
            if !plan.steps.is_empty() {
                documents.push(plan);
                unmapped.extend(more);
                continue;
            }
        }
        if !is_own(path) {
            let is_document = [".md", ".markdown"].iter().any(|it| path.ends_with(it));
            unmapped.push(left(
                path,
                text,
                if is_document { NO_STEPS } else { "this file is not part of a plan" },
            ));
            continue;
        }
        let title = directory.rsplit('/').next().filter(|it| !it.is_empty()).unwrap_or(name);
        let plan = plans.entry(directory).or_insert_with(|| ImportedPlan {
            path: Some(directory.to_owned()),
            title: title.to_owned(),
            plan: None,
            steps: Vec::new(),
        });
        let draft = Draft { text: (*text).to_owned(), is_verbatim: true, ..Draft::default() };
        match classify(file) {
            FileName::Step(number) if plan.steps.iter().all(|(it, _)| *it != number) => {
                plan.steps.push((number, draft));
            }
            FileName::Step(_) => unmapped.push(left(path, text, "another file has the same number")),
            _ => plan.plan = Some(draft),
        }
    }
    for plan in plans.values_mut() {
        plan.steps.sort_by(|a, b| a.0.cmp(&b.0));
    }
    let plans = plans.into_values().chain(documents).collect();
    Imported { form: Form::Plans, plans, decisions: Vec::new(), unmapped, unread: Vec::new() }
}
