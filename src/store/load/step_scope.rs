//! One step with everything that a decision about it depends on: its plan's own file, and the steps that it waits for.
//!
//! The plan's other steps are not read, so a write costs about the same in a plan of ten steps as in one of a thousand.

use std::collections::{BTreeMap, BTreeSet};

use super::{Meaning, Side, directory_of, existing_plan, meaning_of, missing, one_plan, read_source};
use crate::api::context::Context;
use crate::api::error::Error;
use crate::plan::id::{PlanId, StepId};
use crate::plan::model::Plan;
use crate::plan::plans::Plans;
use crate::plan::read::{self, Content, PlanSources, Source};
use crate::plan::step_number::StepNumber;

/// The new content of a step's file, which is used instead of the one on disk.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Overlay<'a> {
    /// Relative to the plans directory; the file need not exist.
    pub(crate) path: &'a str,
    pub(crate) bytes: &'a [u8],
}

/// Loads a plan from its files, and the plans that are named in its steps or in its `program` key.
pub(super) fn load_plan(context: &Context, id: &PlanId) -> Result<Plans, Error> {
    let plan = existing_plan(context, id)?;
    Ok(Plans::judged(with_named(context, plan)?))
}

fn with_named(context: &Context, plan: Plan) -> Result<Vec<Plan>, Error> {
    let mut wanted: BTreeSet<PlanId> =
        plan.steps.iter().flat_map(|it| &it.depends).map(|it| it.plan.clone()).collect();
    wanted.extend(plan.program.clone());
    wanted.remove(&plan.id);
    let mut plans = vec![plan];
    for id in wanted {
        plans.extend(one_plan(context, &id)?);
    }
    Ok(plans)
}

/// Loads a step's plan with only this step and the steps that it waits for. Also loads the other plans that are named
/// in these steps or in the plan's own file.
pub(super) fn load(context: &Context, id: &StepId, own: Option<Overlay<'_>>) -> Result<Plans, Error> {
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
                Some(Overlay { bytes, .. }) => Ok(Content::new(bytes.to_vec(), context.now)),
                None => read_source(context, &path),
            };
            Source { path, content }
        };
        paths.map(source).collect::<Vec<_>>()
    };
    let words = &context.config.words;
    let plan = read::read_around(&plan_id, is_archived, (&sources, &steps), &id.number, &mut read, words);
    if plan.find(id).is_none() {
        return load_plan(context, &id.plan);
    }
    let mut named = plan.steps.iter().flat_map(|it| &it.depends);
    let is_missing = |it: &StepId| it.plan == plan.id && plan.find(it).is_none();
    // Only the hint for a missing step names the steps that were not read.
    let whole = named.any(is_missing).then(|| one_plan(context, &plan.id)).transpose()?.flatten();
    Ok(Plans::judged_in_part(with_named(context, plan)?, whole.as_ref()))
}
