//! `archive` and `archive --restore`: a plan's directory goes to `_archive/` and comes back, as it is.

use std::path::{Path, PathBuf};

use crate::disk::FileOp;
use crate::engine::context::Context;
use crate::engine::error::Error;
use crate::engine::expected;
use crate::engine::resolve::{self, Side, Target};
use crate::engine::shape::{Shaper, value};
use crate::engine::update;
use crate::engine::write::{ChangeReport, Changed, Mode, Writing};
use crate::engine::{leases, load, owner};
use crate::plan::file_name::PLAN_FILE;
use crate::plan::id::{self, PlanId, StepId};
use crate::plan::model::{Plan, PlanKind};
use crate::plan::plans::Plans;

/// Where archived plans are.
pub(crate) const ARCHIVE: &str = "_archive";

const MOST_NAMED: usize = 10;

#[derive(Debug, Clone, Default)]
pub struct ArchiveRequest {
    pub plans: Vec<String>,
    /// Brings them back.
    pub restores: bool,
    pub mode: Mode,
}

/// Moves plans into the archive or out of it; each is one change, which a crash leaves whole and `undo` takes back.
pub fn archive(context: &Context, request: &ArchiveRequest) -> Result<ChangeReport, Error> {
    let mut hints = Vec::new();
    let mut report = update::each(context, "archive", &request.plans, request.mode, |writing, text| {
        let (changed, more) = match request.restores {
            true => put_back(context, writing, text)?,
            false => put_away(context, writing, text)?,
        };
        hints.extend(more);
        Ok(changed)
    })?;
    report.hints.extend(hints);
    Ok(report)
}

fn put_away(
    context: &Context,
    writing: &mut Writing<'_>,
    text: &str,
) -> Result<(Changed, Vec<String>), Error> {
    let id = plan_of(resolve::target(context, text)?)?;
    let plan = load::one_plan(context, &id)?.ok_or_else(|| load::missing(context, &id))?;
    if plan.is_archived {
        return Ok((unchanged(context, &plan, "already archived"), Vec::new()));
    }
    owner::refuse_live_claims(context, &id)?;
    let from = directory_of(&plan);
    let to = Path::new(ARCHIVE).join(&from);
    let plans = load::all(context)?;
    expected::check_plan(context, &plans, &plan)?;
    let hints = left_behind(&plans, &plan);
    carry(context, (writing, "archive"), &plan, &from, &to)?;
    if !writing.is_dry_run() {
        plan.steps.iter().for_each(|it| leases::forget(context, &it.id));
    }
    Ok((changed(context, &plan, &to, "archived"), hints))
}

fn put_back(
    context: &Context,
    writing: &mut Writing<'_>,
    text: &str,
) -> Result<(Changed, Vec<String>), Error> {
    let (target, _) = resolve::for_reading(context, text)?;
    let id = plan_of(target)?;
    let Some(plan) = load::plan_at(context, &id, Side::Archived)? else {
        let plan = load::one_plan(context, &id)?.ok_or_else(|| load::missing(context, &id))?;
        return Ok((unchanged(context, &plan, "already there, not archived"), Vec::new()));
    };
    let from = directory_of(&plan);
    let to = from.strip_prefix(ARCHIVE).unwrap_or(&from).to_path_buf();
    carry(context, (writing, "restore"), &plan, &from, &to)?;
    Ok((changed(context, &plan, &to, "restored"), Vec::new()))
}

fn plan_of(target: Target) -> Result<PlanId, Error> {
    match target {
        Target::Plan(id) => Ok(id),
        Target::Step(step) => Err(Error::usage(
            format!("`{}` is a step; plans are archived", step.id),
            format!("name the plan `{}`, or `planwatch remove {}`", step.id.plan, step.id),
        )),
    }
}

fn directory_of(plan: &Plan) -> PathBuf {
    PathBuf::from(plan.path.trim_end_matches(PLAN_FILE).trim_end_matches('/'))
}

/// What was removed from a plan stays in the archive, also while the plan is not there.
fn stays(name: &str) -> bool {
    name.starts_with("removed-")
}

/// Moves a plan's directory. Where there is one of its name already, which is no plan, its files go there one by one.
fn carry(
    context: &Context,
    (writing, verb): (&mut Writing<'_>, &str),
    plan: &Plan,
    from: &Path,
    to: &Path,
) -> Result<(), Error> {
    let names = context.plans.names(from);
    let there = context.plans.names(to);
    if !context.plans.is_dir(to) && there.is_empty() && !names.iter().any(|it| stays(it)) {
        return writing.batch(verb, vec![FileOp::Rename { from: from.to_path_buf(), to: to.to_path_buf() }]);
    }
    let moving: Vec<_> = names.into_iter().filter(|it| !stays(it)).collect();
    if is_plan(&there) || moving.iter().any(|it| there.contains(it)) {
        return Err(clash(context, plan, to));
    }
    let ops = moving.iter().map(|it| FileOp::Rename { from: from.join(it), to: to.join(it) }).collect();
    writing.batch(verb, ops)?;
    writing.remove_empty_dir(from);
    Ok(())
}

fn is_plan(names: &[String]) -> bool {
    use crate::plan::file_name::{FileName, classify};
    names.iter().any(|it| matches!(classify(it), FileName::Plan | FileName::Step(_)))
}

/// Neither of two plans with one name is touched; the way out is a name of its own for one of them.
fn clash(context: &Context, plan: &Plan, to: &Path) -> Error {
    let root = context.root_name();
    let taken = load::taken_names(context);
    let free = id::slug(plan.id.as_str(), &|it| taken.iter().any(|name| name.eq_ignore_ascii_case(it)));
    let (from, to) = (directory_of(plan), to.display());
    let beside = from.with_file_name(&free);
    Error::Conflict {
        code: "plan-exists",
        message: format!("`{root}/{to}` is there already"),
        hint: format!(
            "give one of them another name, as with `mv {root}/{} {root}/{}`",
            from.display(),
            beside.display()
        ),
    }
}

/// Tells who waits for steps that nobody can finish any more, and which plans lose their program.
fn left_behind(plans: &Plans, gone: &Plan) -> Vec<String> {
    let is_open = |it: &StepId| it.plan == gone.id && gone.find(it).is_none_or(|it| !it.is_closed());
    let steps = plans.live().filter(|it| it.id != gone.id).flat_map(|it| &it.steps);
    let waiting = steps.filter(|it| !it.is_closed() && it.depends.iter().any(is_open));
    let waiting = named(waiting.map(|it| it.id.to_string()));
    let children = plans.children(&gone.id).map(|it| it.id.to_string());
    let children = if gone.kind == PlanKind::Program { named(children) } else { String::new() };
    let told = [
        (waiting, format!("open steps of `{}` are in `depends` of", gone.id)),
        (children, format!("the program `{}` is archived without its plans", gone.id)),
    ];
    told.into_iter()
        .filter(|(names, _)| !names.is_empty())
        .map(|(names, head)| format!("{head} {names}"))
        .collect()
}

fn named(ids: impl Iterator<Item = String>) -> String {
    let mut names: Vec<_> = ids.map(|it| format!("`{it}`")).collect();
    let more = names.len().saturating_sub(MOST_NAMED);
    names.truncate(MOST_NAMED);
    names.extend((more > 0).then(|| format!("{more} more")));
    names.join(", ")
}

fn unchanged(context: &Context, plan: &Plan, did: &str) -> Changed {
    Changed { was_written: false, ..changed(context, plan, &directory_of(plan), did) }
}

fn changed(context: &Context, plan: &Plan, directory: &Path, did: &str) -> Changed {
    let root = context.root_name();
    let is_archived = directory.starts_with(ARCHIVE);
    let path = directory.join(PLAN_FILE).to_string_lossy().into_owned();
    let now = Plan { is_archived, path, ..plan.clone() };
    let plans = Plans::new(vec![now.clone()]);
    let shaper = Shaper { plans: &plans, now: context.now, root: &root };
    Changed {
        id: plan.id.to_string(),
        title: plan.title.clone(),
        path: shaper.path(&now.path),
        was_written: true,
        was: None,
        status: None,
        did: did.to_owned(),
        now: value(&shaper.plan(&now)),
    }
}
