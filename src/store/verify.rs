//! The `verify` commands of steps: the exact command lines, and whether they are trusted.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use crate::api::context::Context;
use crate::api::error::Error;
use crate::api::trust::{self, Subject};
use crate::plan::model::Step;
use crate::plan::records::Verify;
use crate::plan::{script as script_file, time};
use crate::store::load::{self, LoadQuery};
use crate::store::resolve::{self, Target};

/// The default time limit of a command.
const TIMEOUT: Duration = Duration::from_secs(10 * 60);

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    /// One line for a shell, as the file has it.
    pub command: String,
    /// Absolute. `None` if it is not a directory of the repository, or belongs to git or planwatch.
    pub directory: Option<PathBuf>,
    pub timeout: Duration,
}

pub(crate) fn checks(context: &Context, step: &Step) -> Vec<Check> {
    let of = |it: &Verify| {
        let timeout = it.timeout.as_deref().and_then(time::read_seconds);
        let timeout = timeout.and_then(|it| u64::try_from(it).ok()).map(Duration::from_secs);
        let directory = directory(context, it);
        Check { command: it.run.clone(), directory, timeout: timeout.unwrap_or(TIMEOUT) }
    };
    step.verify.iter().map(of).collect()
}

fn directory(context: &Context, verify: &Verify) -> Option<PathBuf> {
    let root = &context.here.root;
    let relative = script_file::inside(root, verify.dir.as_deref().unwrap_or("."))?;
    context.plans.directory_below(root, &relative).ok()
}

/// What must be trusted before a step's commands run; `None` if it has no commands.
///
/// The hash covers all commands in their order, with the files of the repository that they name.
pub fn subject(context: &Context, step: &Step) -> Option<Subject> {
    if step.verify.is_empty() {
        return None;
    }
    let covered = |it: &Verify| {
        let shown = it.dir.as_deref().unwrap_or(".");
        trust::covered(context, &it.run, shown, directory(context, it).as_deref())
    };
    let all: Vec<_> = step.verify.iter().map(covered).collect();
    let hashes: Vec<_> = all.iter().map(|it| it.hash.as_str()).chain(["verify"]).collect();
    let files: BTreeSet<_> = all.iter().flat_map(|it| it.files.iter().cloned()).collect();
    let lines: Vec<_> = step.verify.iter().map(shown).collect();
    Some(Subject {
        what: format!("the verification of `{}`", step.id),
        name: step.id.to_string(),
        path: context.plans.root().join(&step.path),
        command: lines.join("\n"),
        directory: ".".to_owned(),
        hash: trust::hash(&hashes),
        files: files.into_iter().collect(),
        fault: all.iter().find_map(|it| it.fault.clone()),
    })
}

fn shown(verify: &Verify) -> String {
    match &verify.dir {
        Some(dir) => format!("{}   (in {dir})", verify.run),
        None => verify.run.clone(),
    }
}

/// Refuses untrusted commands. `given` are hashes that the user typed to trust commands once.
pub(crate) fn check(context: &Context, step: &Step, given: &[String]) -> Result<(), Error> {
    let Some(subject) = subject(context, step) else { return Ok(()) };
    if trust::may_run(context, &subject, given) { Ok(()) } else { Err(trust::refused(&subject)) }
}

/// What must be trusted for the named step, or for all open steps of the named plan.
pub fn named(context: &Context, name: &str) -> Result<Vec<Subject>, Error> {
    let target = resolve::target(context, name)?;
    let plans = LoadQuery::plan(target.plan()).load(context)?.plans;
    let plan = plans.get(target.plan()).ok_or_else(|| load::missing(context, target.plan()))?;
    let found: Vec<_> = match &target {
        Target::Step(named) => vec![resolve::one_step(context, plan, named)?],
        Target::Plan(_) => plan.steps.iter().filter(|it| !it.is_closed()).collect(),
    };
    let subjects: Vec<_> = found.iter().filter_map(|it| subject(context, it)).collect();
    if subjects.is_empty() {
        let message = match target {
            Target::Step(_) => format!("the step `{name}` has no `verify` commands"),
            Target::Plan(_) => format!("no open step of the plan `{name}` has `verify` commands"),
        };
        let hint = "`planwatch trust` lists what needs trust here".to_owned();
        return Err(Error::Failed { code: "nothing-to-trust", message, hint });
    }
    Ok(subjects)
}

/// What must be trusted for all open steps of live plans.
pub fn wanting_trust(context: &Context) -> Result<Vec<Subject>, Error> {
    let plans = LoadQuery::all().load(context)?.plans;
    let steps = plans.live().flat_map(|it| &it.steps).filter(|it| !it.is_closed());
    Ok(steps.filter_map(|it| subject(context, it)).collect())
}

/// The absolute paths of the files of a plan's steps, or of one step's file. Used to revoke trust.
pub fn files_of(context: &Context, name: &str) -> Result<Vec<PathBuf>, Error> {
    let target = resolve::target(context, name)?;
    let plan = target.plan();
    let plans = LoadQuery::plan(plan).load(context)?.plans;
    let found = plans.get(plan).ok_or_else(|| load::missing(context, plan))?;
    let steps: Vec<_> = match &target {
        Target::Step(named) => vec![resolve::one_step(context, found, named)?],
        Target::Plan(_) => found.steps.iter().collect(),
    };
    Ok(steps.iter().map(|it| context.plans.root().join(&it.path)).collect())
}
