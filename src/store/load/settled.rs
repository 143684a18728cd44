//! Loads the plans on which a decision depends, and makes sure that none of their files is in the middle of a save.
//!
//! Only files that were modified a moment ago are read a second time. The decision is made on the bytes that were
//! checked: if a file has changed since it was loaded, the plans are loaded again.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use super::existing_plan;
use super::lengths::{LengthsOf, lengths_of, place};
use super::query::{LoadQuery, Loaded};
use crate::api::context::Context;
use crate::api::error::Error;
use crate::disk::{DiskError, FileRecords, PlanDir};
use crate::index::Key;
use crate::plan::file_name::PLAN_FILE;
use crate::plan::id::{PlanId, StepId};
use crate::plan::model::{Plan, Step};
use crate::plan::plans::Plans;
use crate::plan::problem::{Code, Problem};
use crate::plan::read::etag;
use crate::plan::time::Time;

/// How many times plans are loaded, at most, if their files change between loading and checking.
const LOADS: usize = 5;

/// The files on which a decision depends.
#[derive(Clone, Copy)]
pub(crate) enum DecisionFiles<'a> {
    /// All loaded files of one plan; of the other plans, each `plan.md`, and the steps that this plan's steps name as
    /// dependencies.
    Plan(&'a PlanId),
    /// The files of `Plan` for the step's plan, except the step's own file, which is checked when it is changed.
    Step(&'a StepId),
    /// The files of `Plan`, except the plan's own file, which is checked when it is changed. If that file does not exist,
    /// it is not left out.
    PlanFile(&'a PlanId),
    /// All files that were loaded.
    All,
    /// All files that were loaded, except the step's file with this path, which is checked when it is changed.
    Others(&'a str),
}

/// Loads the plans on which a decision depends, and fails while one of their files is being saved.
pub(super) fn settled<T>(
    context: &Context,
    load: impl Fn() -> Result<T, Error>,
    files: impl Fn(&T) -> Files<'_>,
) -> Result<T, Error> {
    let mut changed = None;
    for _ in 0..LOADS {
        let loaded = load()?;
        changed = changed_since(context, &files(&loaded))?;
        if changed.is_none() {
            return Ok(loaded);
        }
    }
    Err(in_motion(context, changed))
}

/// Loads all plans, and this plan with its texts, for a change of several files. Also returns the loaded problems that
/// belong to no plan and say that something could not be read.
pub(crate) fn settled_all(context: &Context, id: &PlanId) -> Result<((Plans, Vec<Problem>), Plan), Error> {
    let load = || {
        refuse_emptied(context)?;
        let Loaded { plans, mut problems, .. } = LoadQuery::all().load(context)?;
        problems.retain(|it| it.code == Code::Unreadable);
        Ok(((plans, problems), existing_plan(context, id)?))
    };
    settled(context, load, |((plans, _), own)| {
        let mut files = Files::of(plans, DecisionFiles::All);
        files.add_whole(own);
        files
    })
}

/// Like [`existing_plan`], but fails while a file of the plan is being saved.
pub(crate) fn settled_plan(context: &Context, id: &PlanId) -> Result<Plan, Error> {
    let load = || existing_plan(context, id);
    settled(context, load, |plan| {
        let mut files = Files::default();
        files.add_whole(plan);
        files
    })
}

/// Fails while the `plan.md` of a plan without other files is missing for a moment. Without this check, the plan would
/// not be loaded, and loading all plans would remove the plan from the index.
fn refuse_emptied(context: &Context) -> Result<(), DiskError> {
    let records = Remembered { context, known: Mutex::default() };
    let saves = context.plans.saves(&records);
    let (dirs, _) = context.plans.plan_dirs();
    let is_live = |it: &&PlanDir| it.relative.to_str().is_some_and(PlanId::is_plan_name);
    let emptied = dirs.iter().filter(is_live).filter(|it| context.plans.is_just_emptied(it));
    emptied.map(|it| it.relative.join(PLAN_FILE)).try_for_each(|it| saves.refuse_vanished(&it))
}

fn in_motion(context: &Context, changed: Option<String>) -> Error {
    Error::Disk(DiskError::FileChanged { path: context.plans.root().join(changed.unwrap_or_default()) })
}

/// Files as they were loaded.
#[derive(Default)]
pub(super) struct Files<'a> {
    /// Path, hash and when it was modified.
    there: Vec<(&'a str, &'a str, Time)>,
    /// The paths of files that were missing or could not be read.
    not_there: Vec<&'a str>,
}

impl<'a> Files<'a> {
    pub(super) fn of(plans: &'a Plans, decision: DecisionFiles<'_>) -> Self {
        let mut files = Self::default();
        let is_changed =
            |it: &Plan| matches!(decision, DecisionFiles::PlanFile(id) if it.id == *id) && it.etag.is_some();
        plans.iter().filter(|it| !is_changed(it)).for_each(|it| files.add_plan(it));
        let (own, skipped) = match decision {
            DecisionFiles::All | DecisionFiles::Others(_) => {
                let is_other =
                    |it: &&Step| !matches!(decision, DecisionFiles::Others(path) if it.path == path);
                plans.iter().flat_map(|it| &it.steps).filter(is_other).for_each(|it| files.add_step(it));
                return files;
            }
            DecisionFiles::Plan(id) | DecisionFiles::PlanFile(id) => (id, None),
            DecisionFiles::Step(id) => (&id.plan, Some(id)),
        };
        let mut elsewhere = BTreeSet::new();
        for step in plans.iter().filter(|it| it.id == *own).flat_map(|it| &it.steps) {
            elsewhere.extend(step.depends.iter().filter(|it| it.plan != *own));
            if skipped != Some(&step.id) {
                files.add_step(step);
            }
        }
        elsewhere.into_iter().filter_map(|it| plans.step(it)).for_each(|it| files.add_step(it));
        files
    }

    fn add_whole(&mut self, plan: &'a Plan) {
        self.add_plan(plan);
        plan.steps.iter().for_each(|it| self.add_step(it));
    }

    fn add_plan(&mut self, plan: &'a Plan) {
        self.add(&plan.path, plan.etag.as_deref(), plan.modified);
    }

    fn add_step(&mut self, step: &'a Step) {
        self.add(&step.path, step.etag.as_deref(), step.modified);
    }

    fn add(&mut self, path: &'a str, etag: Option<&'a str>, modified: Option<Time>) {
        match (etag, modified) {
            (Some(etag), Some(modified)) => self.there.push((path, etag, modified)),
            _ => self.not_there.push(path),
        }
    }
}

/// Returns the path of a file that has changed since it was loaded; an error if a file is being saved.
fn changed_since(context: &Context, files: &Files<'_>) -> Result<Option<String>, Error> {
    let records = Remembered { context, known: Mutex::default() };
    let saves = context.plans.saves(&records);
    for (path, loaded, _) in files.there.iter().filter(|it| context.plans.is_young(it.2.as_nanoseconds())) {
        let found = match context.plans.read(Path::new(path)) {
            Ok(found) if etag(&found.bytes) == *loaded => found,
            _ => return Ok(Some((*path).to_owned())),
        };
        saves.refuse_cut_short(&found)?;
    }
    // There may be many steps without a file, so each directory is checked first: few directories were modified a
    // moment ago.
    let mut young = HashMap::new();
    for path in files.not_there.iter().map(Path::new) {
        let dir = path.parent().unwrap_or(path);
        if *young.entry(dir).or_insert_with(|| context.plans.is_young_dir(dir)) {
            match context.plans.read(path) {
                Ok(_) => return Ok(Some(path.to_string_lossy().into_owned())),
                Err(DiskError::NotFound { .. }) => saves.refuse_vanished(path)?,
                // The file exists but cannot be read. This error is reported elsewhere.
                Err(_) => {}
            }
        }
    }
    Ok(None)
}

/// The lengths of each plan's files in the index, read once.
struct Remembered<'a> {
    context: &'a Context,
    known: Mutex<HashMap<Key, LengthsOf>>,
}

impl FileRecords for Remembered<'_> {
    fn length(&self, relative: &Path) -> Option<u64> {
        let (key, name) = place(relative)?;
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let files = known.entry(key).or_insert_with_key(|key| lengths_of(self.context, key));
        files.get(&name).copied()
    }

    fn is_checked_out(&self, relative: &Path, bytes: &[u8]) -> bool {
        self.context.is_checked_out(relative, bytes)
    }
}
