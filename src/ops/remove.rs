//! `remove`: moves a step or a plan to `_archive/<plan>/removed-<time>/`; nothing is deleted.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::api::context::Context;
use crate::api::error::{Error, few};
use crate::api::precondition;
use crate::disk::FileOp;
use crate::plan::change::NewAttempt;
use crate::plan::file_name::{self, FileName};
use crate::plan::id::PlanId;
use crate::plan::model::{Plan, Step};
use crate::plan::plans::Plans;
use crate::plan::read::STEP_KEYS;
use crate::store::change_one_by_one::change_one_by_one;
use crate::store::fencing::{self, Caller, Owner};
use crate::store::load::{self, LoadQuery};
use crate::store::relink::{self, Gone, Orphans};
use crate::store::resolve::{self, NamedStep, Target};
use crate::store::sync::foreign;
use crate::store::transaction::{self, ChangeReport, Changed, Mode, Transaction};
use crate::store::{leases, removed, step_file, steps_list_line};
use crate::text::typed::shell_word;

pub use crate::api::requests::RemoveRequest;

/// Moves steps or plans to the archive. Steps that depended on a removed step then depend on its dependencies.
pub fn remove(context: &Context, request: &RemoveRequest) -> Result<ChangeReport, Error> {
    foreign::refresh(context, request.mode);
    change_one_by_one(context, "remove", &request.ids, request.mode, |writing, id| {
        match resolve::target(context, id)? {
            Target::Step(step) => remove_step(context, writing, &step, request),
            Target::Plan(plan) => remove_plan(context, writing, &plan, request),
        }
    })
}

fn remove_step(
    context: &Context,
    writing: &mut Transaction<'_>,
    named: &NamedStep,
    request: &RemoveRequest,
) -> Result<Changed, Error> {
    let id = &named.id;
    foreign::refuse_live(context, [id], request.force)?;
    let ((plans, troubles), own) = load::settled_all(context, &id.plan)?;
    transaction::check_live(&own)?;
    let step = resolve::one_step(context, &own, named)?;
    precondition::check_step(context, &plans, &own, step)?;
    let who = Caller::of(context, id, request.by.as_deref(), request.claim.as_deref(), request.force);
    let plans = leases::Leases::of(context).annotate_for(plans, id);
    let owner = removed::refuse_worked_on(&plans, step, &who)?;
    if owner == Owner::Late {
        return step_file::update(context, writing, named, &|now| {
            Ok(fencing::late_result(context, now.step, &who, "remove", None))
        });
    }
    transaction::check_writable(context, &own.problems)?;
    let heirs: Vec<_> = own.spelled_out(step).into_iter().filter(|it| it != id).collect();
    let is_doubled = own.is_doubled(step);
    let gone = [Gone::removed(id.clone(), heirs, step.unclear_dependencies())];
    let left = if is_doubled {
        Orphans::of_own(&gone)
    } else {
        Orphans::of(context, (&plans, &troubles), &gone, &[])
    };
    left.allow(context, request.force)?;
    let directory = removed::removed_dir(context, &id.plan);
    let mut ops = Vec::new();
    if step.has_file() {
        let is_marked = owner == Owner::Forced && step.unreadable().is_none();
        ops.extend(is_marked.then(|| forced(context, &who, step)).transpose()?);
        let to = removed::free_name(context, &directory, &file_name::step_file(&id.number));
        ops.push(FileOp::Rename { from: PathBuf::from(&step.path), to });
    }
    if is_doubled {
        // Another file has the same number, so the line in the Steps list and the dependencies on the number stay.
        writing.batch("remove", ops)?;
        return Ok(Changed::new(context, &step.id, (&step.title, &step.path), "removed", Value::Null));
    }
    let (line, removed) = steps_list_line::taken_out(context, &own, &id.number, &gone[0].heirs)?;
    ops.extend(line.op);
    if !removed.is_empty() {
        let path = removed::free_name(context, &directory, &format!("steps-line-{}.md", id.number));
        ops.push(FileOp::Create { path, bytes: removed.into_bytes() });
    }
    let relinked = relink::dependants(context, &plans, &line.plan, &gone, (&[], &left))?;
    ops.extend(relinked.ops);
    writing.batch("remove", ops)?;
    if request.mode == Mode::Write {
        end_record(context, &own, step, owner);
    }
    writing.hints.extend(relinked.hints.into_iter().chain(left.hint()));
    writing.not_repointed.extend(left.names());
    Ok(Changed::new(context, &step.id, (&step.title, &step.path), "removed", Value::Null))
}

/// Ends the claim of a removed step. With [`Owner::Forced`], the claim may be another worker's. It then remains valid in
/// working trees that still have the step, because that worker may be active there.
fn end_record(context: &Context, plan: &Plan, step: &Step, owner: Owner) {
    match owner {
        Owner::Forced => leases::removed(context, plan, step),
        _ => leases::forget(context, &step.id),
    }
}

/// Records in the removed file that the step was removed with `--force` while another worker had claimed it.
fn forced(context: &Context, who: &Caller, step: &Step) -> Result<FileOp, Error> {
    let path = PathBuf::from(&step.path);
    let before = context.plans.read(&path)?.bytes;
    let notes = Some("removed".to_owned());
    let attempt = NewAttempt { notes, ..NewAttempt::new(context.now, &who.by, "forced") };
    let after = transaction::edit(&step.path, &before, &[attempt.change()], STEP_KEYS)?;
    Ok(FileOp::Change { path, before, after })
}

fn remove_plan(
    context: &Context,
    writing: &mut Transaction<'_>,
    id: &PlanId,
    request: &RemoveRequest,
) -> Result<Changed, Error> {
    let plan = load::settled_plan(context, id)?;
    transaction::check_live(&plan)?;
    precondition::check_plan(context, &Plans::new(vec![plan.clone()]), &plan)?;
    if !request.is_confirmed && request.mode == Mode::Write {
        let message = match plan.steps.len() {
            0 => format!("removing `{id}` needs a confirmation"),
            1 => format!("removing `{id}` with its step needs a confirmation"),
            n => format!("removing `{id}` with its {n} steps needs a confirmation"),
        };
        let hint = format!(
            "use --yes to remove it; `planwatch remove {} --yes` moves it below _archive/",
            shell_word(&id)
        );
        return Err(Error::usage(message, hint));
    }
    if !request.force {
        foreign::refuse_live(context, plan.steps.iter().map(|it| &it.id), false)?;
        fencing::refuse_live_claims(context, id)?;
    }
    // These plans include the recorded claims, also those of other working trees.
    let plans = LoadQuery::plan(id).load(context)?.plans;
    for step in &plan.steps {
        let who =
            Caller::of(context, &step.id, request.by.as_deref(), request.claim.as_deref(), request.force);
        // The request names at most one claim. Steps to which that claim does not belong are checked without it.
        let others = Caller { claim: None, ..who.clone() };
        fencing::check(&plans, step, &who).and_then(|it| match it {
            Owner::Late => fencing::check(&plans, step, &others),
            other => Ok(other),
        })?;
    }
    let directory = PathBuf::from(plan.path.trim_end_matches(file_name::PLAN_FILE).trim_end_matches('/'));
    let is_unknown = |it: &String| !matches!(file_name::classify(it), FileName::Plan | FileName::Step(_));
    let unknown: Vec<_> = context.plans.names(&directory).into_iter().filter(is_unknown).collect();
    if !unknown.is_empty() && !request.force {
        let message =
            format!("`{id}` also contains files that are not part of the plan: {}", unknown.join(", "));
        let hint = "move them out, or use --force to remove them too";
        return Err(Error::conflict("unknown-files", message, hint));
    }
    let left = relink::waiting_for_plan(context, &LoadQuery::all().load(context)?.plans, id);
    let to = free_directory(context, &removed::removed_dir(context, id));
    writing.batch("remove", vec![FileOp::Rename { from: directory, to }])?;
    if request.mode == Mode::Write {
        let owner = if request.force { Owner::Forced } else { Owner::Free };
        plan.steps.iter().for_each(|it| end_record(context, &plan, it, owner));
    }
    let hint = (!left.is_empty()).then(|| {
        format!(
            "steps of `{id}` are still in `depends` of {}",
            few(&relink::quoted(&left), relink::MOST_NAMED)
        )
    });
    writing.hints.extend(hint);
    writing.not_repointed.extend(left.iter().map(ToString::to_string));
    Ok(Changed::new(context, id, (&plan.title, &plan.path), "removed", Value::Null))
}

/// Finds a free name. The wanted one may be taken, for example if a step of the plan was removed in the same second.
fn free_directory(context: &Context, wanted: &Path) -> PathBuf {
    directories(wanted).find(|it| !context.plans.is_dir(it)).unwrap_or_default()
}

/// The directory to which [`remove`] has moved a plan in this context.
pub fn removed_to(context: &Context, id: &PlanId) -> Option<PathBuf> {
    directories(&removed::removed_dir(context, id)).take_while(|it| context.plans.is_dir(it)).last()
}

/// The names for the directory of a removal, in the order in which they are tried.
fn directories(wanted: &Path) -> impl Iterator<Item = PathBuf> {
    let name = wanted.file_name().unwrap_or_default().to_string_lossy();
    let numbered = (2_u32..).map(move |n| wanted.with_file_name(format!("{name}-{n}")));
    std::iter::once(wanted.to_path_buf()).chain(numbered)
}
