//! Directories of `plan.md` and `step-N.md`: plans already, taken over byte for byte.

use std::collections::BTreeMap;

use super::{Brought, BroughtPlan, Draft, Form, left};
use crate::plan::file_name::{FileName, PLAN_FILE, classify};

/// Whether a path is that of a file of a plan.
pub(super) fn is_own(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    name == PLAN_FILE || matches!(classify(name), FileName::Step(_))
}

/// Each directory that holds such files is a plan; the top one is called `name`.
pub(super) fn bring(name: &str, files: &[(&str, &str)]) -> Brought {
    let mut plans: BTreeMap<&str, BroughtPlan> = BTreeMap::new();
    let mut unmapped = Vec::new();
    for (path, text) in files {
        let (directory, file) = path.rsplit_once('/').unwrap_or(("", path));
        if !is_own(path) {
            unmapped.push(left(path, text, "this file is no part of a plan"));
            continue;
        }
        let title = directory.rsplit('/').next().filter(|it| !it.is_empty()).unwrap_or(name);
        let plan = plans.entry(directory).or_insert_with(|| BroughtPlan {
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
    Brought { form: Form::Plans, plans: plans.into_values().collect(), unmapped }
}
