//! `archive` and `archive --restore`: move a plan's directory to `_archive/` and back, unchanged.

use std::path::{Path, PathBuf};

use crate::api::context::Context;
use crate::api::error::{Error, few};
use crate::api::precondition;
use crate::api::views::{Views, value};
use crate::disk::FileOp;
use crate::plan::file_name::PLAN_FILE;
use crate::plan::id::{self, PlanId, StepId};
use crate::plan::model::{Plan, PlanKind};
use crate::plan::plans::Plans;
use crate::store::change_one_by_one::change_one_by_one;
use crate::store::load::{self, LoadQuery, Side};
use crate::store::removed::{self, ARCHIVE};
use crate::store::resolve::{self, Target};
use crate::store::sync::foreign;
use crate::store::transaction::{ChangeReport, Changed, Mode, Transaction};
use crate::store::{fencing, leases, relink};

#[derive(Debug, Clone, Default)]
pub struct ArchiveRequest {
    pub plans: Vec<String>,
    pub restores: bool,
    /// Also archives a plan if another clone has a live record for one of its steps. The record is that of a claim, or of
    /// ended work that is not merged yet.
    pub force: bool,
    pub mode: Mode,
}

/// Moves plans into the archive or out of it. Each move is one atomic change, which `undo` can undo.
pub fn archive(context: &Context, request: &ArchiveRequest) -> Result<ChangeReport, Error> {
    if !request.restores {
        foreign::refresh(context, request.mode);
    }
    change_one_by_one(context, "archive", &request.plans, request.mode, |writing, text| {
        match request.restores {
            true => put_back(context, writing, text),
            false => put_away(context, writing, text, request.force),
        }
    })
}

fn put_away(
    context: &Context,
    writing: &mut Transaction<'_>,
    text: &str,
    force: bool,
) -> Result<Changed, Error> {
    let id = plan_of(resolve::target(context, text)?)?;
    let plan = load::settled_plan(context, &id)?;
    if plan.is_archived {
        return Ok(unchanged(context, &plan, "already archived"));
    }
    foreign::refuse_live(context, plan.steps.iter().map(|it| &it.id), force)?;
    fencing::refuse_live_claims(context, &id)?;
    let from = directory_of(&plan);
    let to = Path::new(ARCHIVE).join(&from);
    let plans = LoadQuery::all().load(context)?.plans;
    precondition::check_plan(context, &plans, &plan)?;
    let (hints, waiting) = left_behind(context, &plans, &plan);
    carry(context, (writing, "archive"), &plan, &from, &to)?;
    if !writing.is_dry_run() {
        plan.steps.iter().for_each(|it| leases::forget(context, &it.id));
    }
    writing.hints.extend(hints);
    writing.not_repointed.extend(waiting);
    Ok(changed(context, &plan, &to, "archived"))
}

fn put_back(context: &Context, writing: &mut Transaction<'_>, text: &str) -> Result<Changed, Error> {
    let (target, _) = resolve::for_reading(context, text)?;
    let id = plan_of(target)?;
    let Some(plan) = load::plan_at(context, &id, Side::Archived)? else {
        // If the archived directory cannot be listed, `plan_at` finds no plan either. Then `listed` returns the error.
        context.plans.listed(&Path::new(ARCHIVE).join(id.as_str()))?;
        let plan = load::one_plan(context, &id)?.filter(|it| !it.is_archived);
        let plan = plan.ok_or_else(|| load::missing(context, &id))?;
        return Ok(unchanged(context, &plan, "already in the plans directory"));
    };
    precondition::check_plan(context, &Plans::new(vec![plan.clone()]), &plan)?;
    let from = directory_of(&plan);
    let to = from.strip_prefix(ARCHIVE).unwrap_or(&from).to_path_buf();
    carry(context, (writing, "restore"), &plan, &from, &to)?;
    Ok(changed(context, &plan, &to, "restored"))
}

fn plan_of(target: Target) -> Result<PlanId, Error> {
    match target {
        Target::Plan(id) => Ok(id),
        Target::Step(step) => Err(Error::usage(
            format!("`{}` is a step; only a whole plan can be archived or restored", step.id),
            format!("name its plan `{}`; `remove` and `undo` work on single steps", step.id.plan),
        )),
    }
}

fn directory_of(plan: &Plan) -> PathBuf {
    PathBuf::from(plan.path.trim_end_matches(PLAN_FILE).trim_end_matches('/'))
}

/// Whether an entry of a directory stays where it is. In the archive, directories with files that were removed from the plan
/// stay there.
fn stays(from: &Path, name: &str) -> bool {
    from.starts_with(ARCHIVE) && removed::time_of(name).is_some()
}

/// Moves a plan's directory as a whole, or entry by entry if the target exists or some entries stay. Refuses a target that
/// is a plan or already has one of the entries to move.
///
/// Directories that are then empty are removed, because git does not store empty directories.
fn carry(
    context: &Context,
    (writing, verb): (&mut Transaction<'_>, &str),
    plan: &Plan,
    from: &Path,
    to: &Path,
) -> Result<(), Error> {
    let names = context.plans.listed(from)?.unwrap_or_default();
    let there = context.plans.listed(to)?;
    if there.is_none() && !names.iter().any(|it| stays(from, it)) {
        let ops = vec![FileOp::Rename { from: from.to_path_buf(), to: to.to_path_buf() }];
        return writing.batch_emptying(verb, ops, archive_above(from).collect());
    }
    let there = there.unwrap_or_default();
    let moving: Vec<_> = names.into_iter().filter(|it| !stays(from, it)).collect();
    if is_plan(&there) || moving.iter().any(|it| there.contains(it)) {
        return Err(clash(context, plan, to));
    }
    let ops = moving.iter().map(|it| FileOp::Rename { from: from.join(it), to: to.join(it) }).collect();
    writing.batch_emptying(verb, ops, [from.to_path_buf()].into_iter().chain(archive_above(from)).collect())
}

/// The archive's directory, if `from` is in it.
fn archive_above(from: &Path) -> impl Iterator<Item = PathBuf> {
    let archive = Path::new(ARCHIVE);
    from.starts_with(archive).then(|| archive.to_path_buf()).into_iter()
}

fn is_plan(names: &[String]) -> bool {
    use crate::plan::file_name::{FileName, classify};
    names.iter().any(|it| matches!(classify(it), FileName::Plan | FileName::Step(_)))
}

/// The error for a target that is taken. Nothing is changed; the hint shows how to rename one of the two directories.
fn clash(context: &Context, plan: &Plan, to: &Path) -> Error {
    let root = context.root_name();
    let taken = load::taken_names(context);
    let free = id::slug(plan.id.as_str(), &|it| taken.iter().any(|name| name.eq_ignore_ascii_case(it)));
    let (from, to) = (directory_of(plan), to.display());
    let beside = from.with_file_name(&free);
    let (from, beside) = (from.display(), beside.display());
    let hint = format!("rename one of the two directories, as with `mv {root}/{from} {root}/{beside}`");
    Error::conflict("plan-exists", format!("`{root}/{to}` already exists"), hint)
}

/// Returns hints about steps and plans that refer to an archived plan, and the ids of the steps that wait for its open
/// steps.
fn left_behind(context: &Context, plans: &Plans, gone: &Plan) -> (Vec<String>, Vec<String>) {
    let is_open = |it: &StepId| it.plan == gone.id && gone.find(it).is_none_or(|it| !it.is_closed());
    let is_left = |id: &StepId| {
        let step = plans.step(id);
        step.is_some_and(|it| it.unreadable().is_some() || !it.is_closed() && it.depends.iter().any(is_open))
    };
    let waiting = relink::waiting_for_plan(context, plans, &gone.id).into_iter().filter(is_left);
    let waiting: Vec<_> = waiting.collect();
    let children: Vec<_> = plans.children(&gone.id).map(|it| format!("`{}`", it.id)).collect();
    let mut hints = Vec::new();
    if !waiting.is_empty() {
        let named = few(&relink::quoted(&waiting), relink::MOST_NAMED);
        hints.push(format!("open steps of `{}` are in `depends` of {named}", gone.id));
    }
    if gone.kind == PlanKind::Program && !children.is_empty() {
        let named = few(&children, relink::MOST_NAMED);
        hints.push(format!("the program `{}` is archived without its plans {named}", gone.id));
    }
    (hints, waiting.iter().map(ToString::to_string).collect())
}

fn unchanged(context: &Context, plan: &Plan, did: &str) -> Changed {
    Changed { was_written: false, ..changed(context, plan, &directory_of(plan), did) }
}

fn changed(context: &Context, plan: &Plan, directory: &Path, did: &str) -> Changed {
    let is_archived = directory.starts_with(ARCHIVE);
    let path = directory.join(PLAN_FILE).to_string_lossy().into_owned();
    let now = Plan { is_archived, path, ..plan.clone() };
    let plans = Plans::new(vec![now.clone()]);
    let shape = value(&Views::of(context, &plans).plan(&now));
    Changed::new(context, &plan.id, (&plan.title, &now.path), did, shape)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::model::Machine;

    #[track_caller]
    fn check(files: &[(&str, &str)], left: &[&str]) {
        let machine = Machine::with(files);
        let context = Context::on_model(&machine);
        let request =
            |restores| ArchiveRequest { plans: vec!["p".to_owned()], restores, ..Default::default() };
        assert!(archive(&context, &request(false)).unwrap().refused.is_empty());
        assert!(archive(&context, &request(true)).unwrap().refused.is_empty());
        let tree = machine.tree();
        let archived: Vec<_> = tree.keys().filter(|it| it.starts_with("/plans/_archive")).collect();
        assert_eq!(archived, left);
        assert!(tree.contains_key("/plans/p/step-1.md"));
    }

    #[test]
    fn a_restored_plan_leaves_no_empty_directory() {
        let plan = [("/plans/p/plan.md", "# P\n"), ("/plans/p/step-1.md", "# One\n")];
        check(&plan, &[]);
        let removed = ("/plans/_archive/p/removed-20261121T120000Z/step-2.md", "# Two\n");
        let archive = "/plans/_archive";
        let [of_p, kept] = ["/plans/_archive/p", "/plans/_archive/p/removed-20261121T120000Z"];
        check(&[plan[0], plan[1], removed], &[archive, of_p, kept, removed.0]);
        let own = ("/plans/p/removed-notes.md", "Notes\n");
        check(&[plan[0], plan[1], own], &[]);
        let other = ("/plans/_archive/o/plan.md", "# O\n");
        check(&[plan[0], plan[1], other], &[archive, "/plans/_archive/o", other.0]);
    }
}
