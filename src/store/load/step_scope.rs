//! One step with what its write is decided on: its plan's own file, and the steps that it waits for.
//!
//! The other steps are not even looked at, so a write costs the same in a plan of ten steps and of a thousand.

use std::collections::BTreeMap;

use super::{
    Meaning, Side, directory_of, meaning_of, missing, plan_with_dependencies, read_source, with_named,
};
use crate::api::context::Context;
use crate::api::error::Error;
use crate::plan::id::{PlanId, StepId};
use crate::plan::plans::Plans;
use crate::plan::read::{self, Content, PlanSources, Source};
use crate::plan::step_number::StepNumber;

/// What a step's file holds, or is to hold, whatever the disk says.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Own<'a> {
    /// Below the plans directory; the file need not exist.
    pub(crate) path: &'a str,
    pub(crate) bytes: &'a [u8],
}

/// Loads a step's plan, and of its steps this one and all that it waits for; other plans that those name come whole.
///
/// What is said of the step, its problems included, is the same from here as from the whole plan. Where there is no
/// such step, the whole plan comes.
pub(crate) fn around(context: &Context, id: &StepId, own: Option<Own<'_>>) -> Result<Plans, Error> {
    let (directory, is_archived) =
        directory_of(context, &id.plan, Side::LiveFirst).ok_or_else(|| missing(context, &id.plan))?;
    let plan_id = PlanId::new(directory.file_name().and_then(|it| it.to_str()).unwrap_or(id.plan.as_str()));
    let mut sources = PlanSources::default();
    let mut files: BTreeMap<StepNumber, Vec<String>> = BTreeMap::new();
    for name in context.plans.names(&directory) {
        let path = format!("{}/{name}", directory.display());
        match meaning_of(&name, &path) {
            Some(Meaning::Plan) => {
                let content = read_source(context, &path);
                sources.plan = Some(Source { path, content });
            }
            Some(Meaning::Step(number)) => files.entry(number).or_default().push(path),
            Some(Meaning::NearMiss) => sources.near_misses.push(path),
            Some(Meaning::Nested(_)) | None => {}
        }
    }
    if let Some(own) = own.filter(|own| files.values().flatten().all(|it| it != own.path)) {
        files.entry(id.number.clone()).or_default().push(own.path.to_owned());
    }
    let steps: Vec<_> = files.keys().cloned().collect();
    let mut read = |number: &StepNumber| {
        let paths = files.remove(number).unwrap_or_default().into_iter();
        let source = |path: String| {
            let content = match own.filter(|own| own.path == path) {
                Some(Own { bytes, .. }) => Ok(Content::new(bytes.to_vec(), context.now)),
                None => read_source(context, &path),
            };
            Source { path, content }
        };
        paths.map(source).collect::<Vec<_>>()
    };
    let words = &context.config.words;
    let plan = read::read_around(&plan_id, is_archived, (&sources, &steps), &id.number, &mut read, words);
    if plan.find(id).is_none() {
        return plan_with_dependencies(context, &id.plan);
    }
    with_named(context, plan)
}
