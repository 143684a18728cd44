//! `git resolve --restore`: restores a removed step whose file changed after the removal.
//!
//! A squashed step stays removed; its new attempts and notes go to the step that replaced it. A step of an archived or
//! removed plan is restored together with the plan.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::places::named_by;
use super::renumber::free_after;
use super::{GitResolveReport, ResolvedFile};
use crate::api::context::Context;
use crate::api::error::{Error, few};
use crate::api::requests::Mode;
use crate::api::views::shown_path;
use crate::disk::FileOp;
use crate::ops::archive::{ArchiveRequest, archive};
use crate::plan::file_name::{self, PLAN_FILE};
use crate::plan::id::{self, StepId};
use crate::plan::model::Plan;
use crate::plan::read;
use crate::plan::step_number::StepNumber;
use crate::plan::steps_list;
use crate::store::changed_after_removal::{self, Changed, Way};
use crate::store::transaction::{self, Transaction};
use crate::store::{load, steps_list_line};
use crate::text::front_matter;

pub(super) fn restore(context: &Context, name: &str, mode: Mode) -> Result<GitResolveReport, Error> {
    let found = named(context, name)?;
    if found.way == Way::Archived {
        return with_plan(context, &found, mode);
    }
    // A file that git wrote a moment ago looks as if an editor were still saving it.
    transaction::once_saved(context, || {
        let mut writing = Transaction::begin(context, "git resolve", mode)?;
        let (target, state) = match &found.way {
            Way::Squashed(successor) => (carry(&mut writing, context, &found, successor)?, "carried"),
            Way::WithPlan(directory) => (plan_back(&mut writing, context, &found, directory)?, "restored"),
            _ => (step_back(&mut writing, context, &found)?, "restored"),
        };
        let diff = std::mem::take(&mut writing.diff);
        Ok(report(context, mode, &found, (&target, state), diff))
    })
}

/// Finds the removed step by its id or the path of its file.
fn named(context: &Context, name: &str) -> Result<Changed, Error> {
    let shown = |it: &Path| shown_path(&context.root_name(), &it.to_string_lossy());
    let id = id::read_step_id(name);
    let is_named =
        |of: &StepId, path: &Path| Some(of) == id.as_ref() || shown(path) == name || path == Path::new(name);
    let mut search = changed_after_removal::find(context)?;
    let mut all: Vec<_> = search.changed.extract_if(.., |it| is_named(&it.id, &it.path)).collect();
    if all.len() > 1 {
        let paths: Vec<_> = all.iter().map(|it| format!("`{}`", shown(&it.path))).collect();
        let message = format!("{} removed files of `{name}` changed after their removal", all.len());
        return Err(Error::conflict(
            "which-step",
            message,
            format!("name one of {}", few(&paths, paths.len())),
        ));
    }
    if let Some(unchecked) = search.unchecked(&is_named).next().filter(|_| all.is_empty()) {
        return Err(Error::conflict("not-checked", unchecked.message, unchecked.hint));
    }
    let message = format!("no removed step `{name}` changed after its removal");
    let hint = "`planwatch check --git` lists the removed steps that changed; `planwatch undo` undoes a removal made on this machine";
    let found = all.pop().ok_or_else(|| Error::conflict("no-conflict", message, hint))?;
    if found.is_carried {
        let problem = found.problem(&search.plans);
        return Err(Error::conflict("no-conflict", problem.message, problem.hint));
    }
    Ok(found)
}

fn report(
    context: &Context,
    mode: Mode,
    found: &Changed,
    (target, state): (&Path, &'static str),
    diff: String,
) -> GitResolveReport {
    let shown = |it: &Path| shown_path(&context.root_name(), &it.to_string_lossy());
    let decided = match state {
        "carried" => format!("its attempts and notes are in {}", shown(target)),
        _ => format!("now {}", shown(target)),
    };
    let path = shown(&found.path);
    let file = ResolvedFile { path, state, decided: vec![decided], renumbered: None };
    let dry_run = mode == Mode::DryRun;
    GitResolveReport { dry_run, files: vec![file], diff, ..GitResolveReport::default() }
}

/// Restores the archived plan, as `archive --restore` does.
fn with_plan(context: &Context, found: &Changed, mode: Mode) -> Result<GitResolveReport, Error> {
    let request =
        ArchiveRequest { plans: vec![found.id.plan.to_string()], restores: true, force: false, mode };
    let mut done = archive(context, &request)?;
    if let Some(refused) = done.refused.pop() {
        return Err(refused.error);
    }
    let target = Path::new(found.id.plan.as_str()).join(file_name::step_file(&found.id.number));
    Ok(report(context, mode, found, (&target, "restored"), done.diff))
}

fn plan_back(
    writing: &mut Transaction<'_>,
    context: &Context,
    found: &Changed,
    directory: &Path,
) -> Result<PathBuf, Error> {
    let to = PathBuf::from(found.id.plan.as_str());
    if context.plans.is_dir(&to) {
        let shown = shown_path(&context.root_name(), &to.to_string_lossy());
        let hint = "rename that plan, or move the removed plan's directory out of `_archive` and give it another name";
        return Err(Error::conflict("plan-exists", format!("`{shown}` already exists"), hint));
    }
    writing.batch("git resolve", vec![FileOp::Rename { from: directory.to_path_buf(), to: to.clone() }])?;
    Ok(to.join(file_name::step_file(&found.id.number)))
}

fn carry(
    writing: &mut Transaction<'_>,
    context: &Context,
    found: &Changed,
    successor: &Path,
) -> Result<PathBuf, Error> {
    let path = successor.to_path_buf();
    let before = context.plans.read(&path)?.bytes;
    if let Some(after) = found.carried_into(&before) {
        writing.batch("git resolve", vec![FileOp::Change { path: path.clone(), before, after }])?;
    }
    Ok(path)
}

/// Moves the file back to its number, or to the next free one, and restores the step's line in the Steps list.
fn step_back(writing: &mut Transaction<'_>, context: &Context, found: &Changed) -> Result<PathBuf, Error> {
    let id = &found.id;
    let plan = load::one_plan(context, &id.plan)?.filter(|it| !it.is_archived);
    let plan = plan.ok_or_else(|| load::missing(context, &id.plan))?;
    transaction::check_writable(context, &plan.problems)?;
    let number = free(&plan, &id.number)?;
    let target = Path::new(&plan.path).with_file_name(file_name::step_file(&number));
    let before = context.plans.read(&found.path)?.bytes;
    let after = named_by(&target, before.clone())?;
    let mut ops = Vec::new();
    if after != before {
        ops.push(FileOp::Change { path: found.path.clone(), before, after: after.clone() });
    }
    ops.push(FileOp::Rename { from: found.path.clone(), to: target.clone() });
    ops.extend(line_back(context, &plan, found, (number, &target, after))?);
    let emptied = found.path.ancestors().skip(1).take(2).map(Path::to_path_buf).collect();
    writing.batch_emptying("git resolve", ops, emptied)?;
    Ok(target)
}

fn free(plan: &Plan, number: &StepNumber) -> Result<StepNumber, Error> {
    // Steps that are only in the Steps list are not counted: the one with this number is the removed step itself.
    let with_files = plan.steps.iter().filter(|it| it.has_file());
    let used: BTreeSet<_> = with_files.map(|it| it.id.number.clone()).collect();
    if !used.contains(number) {
        return Ok(number.clone());
    }
    free_after(&used, number, plan.id.as_str())
}

/// Restores the step's line in the Steps list, or else adds a new one, if the plan has such a list.
fn line_back(
    context: &Context,
    plan: &Plan,
    found: &Changed,
    (number, target, text): (StepNumber, &Path, Vec<u8>),
) -> Result<Vec<FileOp>, Error> {
    let kept = found.path.with_file_name(format!("steps-line-{}.md", found.id.number));
    let line = context.plans.read(&kept).ok().map(|it| it.bytes).filter(|_| number == found.id.number);
    let block = line.as_deref().and_then(|it| std::str::from_utf8(it).ok()).map(str::trim_end);
    let file = Path::new(&plan.path).with_file_name(PLAN_FILE);
    if let (Some(block), Ok(read)) = (block, context.plans.read(&file)) {
        let start = front_matter::split(&read.bytes).body_start();
        let body = std::str::from_utf8(&read.bytes[start..]).ok();
        let is_listed =
            body.is_some_and(|it| steps_list::blocks(&plan.id, it).iter().any(|it| it.0 == number));
        let body = body.and_then(|it| steps_list::with_block(&plan.id, it, &number, Some(block)));
        if let Some(body) = body.filter(|_| !is_listed) {
            let after = [&read.bytes[..start], body.as_bytes()].concat();
            let change = FileOp::Change { path: file, before: read.bytes, after };
            let before = line.unwrap_or_default();
            return Ok(vec![change, FileOp::Discard { path: kept, before }]);
        }
    }
    let id = StepId { plan: plan.id.clone(), number };
    let content = read::Content::new(text, context.now);
    let step = read::read_step_of(plan, &id, &target.to_string_lossy(), content, &context.config.words);
    Ok(steps_list_line::add(context, plan, &step)?.into_iter().collect())
}
