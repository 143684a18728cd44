//! `undo`: undoes changes that planwatch made, if their files were not edited since.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::{Value, json};

use crate::api::context::Context;
use crate::api::error::Error;
use crate::api::views::shown_path;
use crate::disk::{FileOp, UndoChange, UndoError};
use crate::plan::id::{PlanId, StepId, read_step_id};
use crate::plan::model::{Plan, Step};
use crate::plan::plans::Plans;
use crate::plan::read;
use crate::store::fencing::{self, Caller};
use crate::store::load::{self, LoadQuery};
use crate::store::removed::ARCHIVE;
use crate::store::sync::{foreign, moved, settling};
use crate::store::transaction::{self, ChangeReport, Changed, Mode, Transaction};
use crate::store::{commit, idempotency, leases};

pub use crate::api::requests::UndoRequest;

/// A change in the undo log. In lists, the newest change comes first.
#[derive(Debug, Clone, Serialize)]
pub struct UndoItem {
    pub id: String,
    pub verb: String,
    pub at: String,
    pub paths: Vec<String>,
    pub blocked: Option<Blocked>,
    /// Who made the change; empty if that was not recorded. The changed file may name another person, on whose behalf the
    /// change was made.
    #[serde(skip)]
    pub by: String,
    /// The step or plan whose file was changed, if only one file was changed.
    #[serde(skip)]
    pub of: Option<String>,
}

#[derive(Debug, Clone, Serialize)]
pub struct Blocked {
    pub code: &'static str,
    /// The file that prevents the undo. `None`: the reason is not a file.
    pub path: Option<String>,
    /// The id of the later change that wrote the file.
    pub by: Option<String>,
}

pub fn list_to_json(items: &[UndoItem]) -> Value {
    json!({"changes": items})
}

/// Lists the changes in the undo log. [`UndoItem::blocked`] says why a change cannot be undone.
pub fn undo_list(context: &Context) -> Vec<UndoItem> {
    let root = context.root_name();
    let shown = |path: &Path| shown_path(&root, &path.to_string_lossy());
    let item = |it: crate::disk::UndoEntry| UndoItem {
        blocked: it.blocked.as_ref().map(|error| {
            let reason = error.reason();
            let path = reason.map(|(_, path, _)| shown(path));
            Blocked { code: error.code(), path, by: reason.and_then(|it| it.2).map(|it| it.id.clone()) }
        }),
        of: it.paths.first().filter(|_| it.paths.len() == 1).and_then(|it| id_of(it)),
        paths: it.paths.iter().map(|path| shown(path)).collect(),
        by: it.by,
        id: it.id,
        verb: it.verb,
        at: it.at,
    };
    let check =
        |change: &UndoChange, ops: &[FileOp], moved: &[_]| check_dependencies(context, change, ops, moved);
    context.plans.undo_list_with(&check).into_iter().map(item).collect()
}

/// A verb in the past tense. In a sentence, it stands between the author of the change and the id of the step or plan.
pub fn done_words(verb: &str) -> Cow<'static, str> {
    Cow::Borrowed(match verb {
        "done" => "completed",
        "start" => "started",
        "fail" => "failed",
        "block" => "blocked",
        "skip" => "skipped",
        "reopen" => "reopened",
        "claim" => "claimed",
        "release" => "released",
        "confirm" => "confirmed",
        "note" => "wrote a note on",
        "attempt" => "recorded an attempt at",
        "tick" => "ticked a task of",
        "add" => "added",
        "new" => "created",
        "remove" => "removed",
        "move" => "moved",
        "archive" => "archived",
        "restore" => "restored",
        "set" | "update" | "edit" | "text" => "changed",
        other => return format!("used “{other}” on").into(),
    })
}

/// Restores the files of a change. If one of them was edited since, the undo is refused.
///
/// A claim that the change made is released. A live claim can be undone only by its owner, or with `--force`.
pub fn undo(context: &Context, request: &UndoRequest) -> Result<ChangeReport, Error> {
    let mode = request.mode;
    // This contacts the registry, so it comes before the lock is taken.
    foreign::refresh(context, mode);
    let mut writing = Transaction::begin(context, "undo", mode)?;
    let id = request.id.as_deref();
    let (change, ops) = context.plans.undo_operations(id)?;
    check_dependencies(context, &change, &ops, &context.plans.moved_since(id)?)?;
    let claimed = claimed(context, &ops)?;
    claimed.iter().try_for_each(|it| it.check(context, request))?;
    let of_records = of_records(context, &ops);
    foreign::refuse_live(context, &of_records.steps, request.force)?;
    // Git has the text under the real path of the file, without symbolic links.
    let real = |it: &Path| context.plans.read(it).map_or_else(|_| it.to_path_buf(), |found| found.real);
    let paths: Vec<_> = ops.iter().filter_map(source_of).map(real).collect();
    let paths: Vec<_> = paths.iter().map(PathBuf::as_path).collect();
    let committed = change.at.parse().ok().and_then(|at| commit::commit_of(context, &paths, at));
    let mut hints = Vec::new();
    if mode == Mode::Write {
        let step = |it: &FileOp| read_step_id(&id_of(transaction::path_of(it))?);
        let ids: BTreeSet<_> = ops.iter().filter_map(step).collect();
        let closed: Vec<_> = ids.iter().filter(|it| is_closed(context, it)).collect();
        writing.undo(id)?;
        // The log of ended claims must no longer say that a step is closed if the undo reopens it.
        closed.iter().filter(|it| !is_closed(context, it)).for_each(|it| leases::reopened(context, it));
        claimed.iter().for_each(|it| it.follow(context));
        ids.iter().for_each(|it| leases::restored(context, it));
        drop(writing);
        hints = of_records.follow(context);
    }
    let root = context.root_name();
    let mut report = ChangeReport { hints, ..ChangeReport::new("undo", mode) };
    if let Some(commit) = &committed {
        let short = &commit[..commit.len().min(10)];
        report.hints.push(format!(
            "the change is in the commit {short}, which stays; to undo the change in git as well, commit the changed files"
        ));
    }
    report.committed = committed;
    for op in &ops {
        report.diff.push_str(&transaction::describe(&root, op));
        let path = transaction::path_of(op);
        let shown = shown_path(&root, &path.to_string_lossy());
        let id = id_of(path).unwrap_or_else(|| shown.clone());
        let did = format!("{} undone", change.verb);
        // A step that `move` or `archive` renamed may have another operation for its text.
        if report.changes.iter().any(|it| it.id == id && it.path == shown) {
            continue;
        }
        let of = ("", &*path.to_string_lossy());
        let is_gone = matches!(op, FileOp::Discard { .. });
        report.changes.push(Changed { is_gone, ..Changed::new(context, &id, of, did, Value::Null) });
    }
    Ok(report)
}

/// Refuses to restore a dependency on a step whose number has been given to another step since. `moved` are the files that
/// later changes renamed or removed.
fn check_dependencies(
    context: &Context,
    change: &UndoChange,
    ops: &[FileOp],
    moved: &[(UndoChange, PathBuf)],
) -> Result<(), UndoError> {
    if moved.is_empty() {
        return Ok(());
    }
    for step in ops.iter().flat_map(|op| restored(context, op)) {
        let is_its = |path: &Path| id_of(path).and_then(|it| read_step_id(&it)).as_ref() == Some(&step);
        let is_other = |path: &Path| is_its(path) && context.plans.read(path).is_ok();
        if let Some((later, path)) = moved.iter().find(|it| is_other(&it.1)) {
            let (change, later, path) = (Box::new(change.clone()), Box::new(later.clone()), path.clone());
            return Err(UndoError::OtherStep { change, later, path });
        }
    }
    Ok(())
}

/// The dependencies that an operation brings back.
fn restored(context: &Context, op: &FileOp) -> Vec<StepId> {
    let depends = |path: &Path, bytes: &[u8]| {
        let Some(id) = id_of(path).and_then(|it| read_step_id(&it)) else { return Vec::new() };
        let content = read::Content::new(bytes.to_vec(), context.now);
        read::read_step_alone(&id, &path.to_string_lossy(), content, &context.config.words).depends
    };
    let of_file = |at: &Path, path: &Path| {
        context.plans.read(at).map_or_else(|_| Vec::new(), |it| depends(path, &it.bytes))
    };
    match op {
        FileOp::Create { path, bytes } => depends(path, bytes),
        FileOp::Change { path, before, after } => {
            let before = depends(path, before);
            depends(path, after).into_iter().filter(|it| !before.contains(it)).collect()
        }
        FileOp::Rename { from, to } if context.plans.is_dir(from) => {
            let names = context.plans.names(from);
            names.iter().flat_map(|it| of_file(&from.join(it), &to.join(it))).collect()
        }
        FileOp::Rename { from, to } => of_file(from, to),
        FileOp::Discard { .. } | FileOp::Remove { .. } => Vec::new(),
    }
}

/// A claim in a file that the undo changes, moves or removes.
struct Claimed {
    plans: Plans,
    step: Step,
    /// Whether the file no longer has the claim after the undo.
    is_lost: bool,
}

/// Finds the claims in the files that the operations are about.
fn claimed(context: &Context, ops: &[FileOp]) -> Result<Vec<Claimed>, Error> {
    let top = |it: &Path| it.iter().next().and_then(|it| it.to_str()).map(PlanId::new);
    let named: BTreeSet<_> = ops.iter().filter_map(|it| top(source_of(it)?)).collect();
    let mut found = Vec::new();
    for id in named.iter().filter(|it| PlanId::is_plan_name(it.as_str()) && load::is_live(context, it)) {
        let plans = LoadQuery::plan(id).load(context)?.plans;
        let Some(plan) = plans.get(id) else { continue };
        for step in plan.steps.iter().filter(|it| it.claim_in_force().is_some()) {
            let Some(is_lost) = is_lost(context, plan, step, ops) else { continue };
            found.push(Claimed { plans: plans.clone(), step: step.clone(), is_lost });
        }
    }
    Ok(found)
}

/// The existing file that an operation changes, moves or removes.
fn source_of(op: &FileOp) -> Option<&Path> {
    match op {
        FileOp::Create { .. } => None,
        FileOp::Change { path, .. } | FileOp::Discard { path, .. } => Some(path),
        FileOp::Rename { from, .. } | FileOp::Remove { path: from, .. } => Some(from),
    }
}

/// Whether a step's file loses its claim. `None`: the operations do not change, move or remove the file.
fn is_lost(context: &Context, plan: &Plan, step: &Step, ops: &[FileOp]) -> Option<bool> {
    let mut path = PathBuf::from(&step.path);
    let mut touched = None;
    for op in ops.iter().filter(|it| source_of(it).is_some_and(|it| Path::new(&step.path).starts_with(it))) {
        if let FileOp::Rename { from, to } | FileOp::Remove { path: from, to } = op {
            path = path.strip_prefix(from).map_or_else(|_| to.clone(), |rest| to.join(rest));
        }
        touched = Some(matches!(op, FileOp::Discard { .. }) || path.starts_with(ARCHIVE));
    }
    let changed = ops.iter().find_map(|it| match it {
        FileOp::Change { path: at, after, .. } if *at == path || *at == Path::new(&step.path) => Some(after),
        _ => None,
    });
    let Some(after) = changed else { return touched };
    let content = read::Content::new(after.clone(), context.now);
    let then = read::read_step_of(plan, &step.id, &step.path, content, &context.config.words);
    let id = |it: &Step| it.claim.as_ref().map(|it| it.id.clone());
    Some(touched == Some(true) || id(&then) != id(step))
}

impl Claimed {
    /// Refuses to take a live claim away from its owner.
    fn check(&self, context: &Context, request: &UndoRequest) -> Result<(), Error> {
        let step = &self.step;
        if !self.is_lost || self.plans.claims().lapse(step, context.now).is_some() {
            return Ok(());
        }
        let (by, claim) = (request.by.as_deref(), request.claim.as_deref());
        let who = Caller::of(context, &step.id, by, claim, request.force);
        // The named claim may belong to another step.
        let is_own = step.claim.as_ref().is_some_and(|it| who.claim.as_ref() == Some(&it.id));
        let who = Caller { claim: who.claim.clone().filter(|_| is_own), ..who };
        fencing::check(&self.plans, step, &who).map(drop).map_err(Error::without_claim_option)
    }

    /// Updates the record of the claim: moves it to the step's new number, or ends it.
    fn follow(&self, context: &Context) {
        let before = &self.step;
        let plan = load::one_plan(context, &before.id.plan).ok().flatten().filter(|it| !it.is_archived);
        let steps = plan.as_ref().map(|it| it.steps.as_slice()).unwrap_or_default();
        let claim = |it: &Step| it.claim.as_ref().map(|it| it.id.clone());
        let same = steps.iter().find(|it| claim(it) == claim(before));
        match (same, steps.iter().find(|it| it.id == before.id)) {
            (Some(step), _) if step.id == before.id => {}
            (Some(step), _) => {
                let moved = plan.as_ref().map(|plan| {
                    let (to, file) = (step.id.clone(), step.path.clone());
                    leases::Move { plan, step: before, to, file }
                });
                leases::moved(context, moved.as_slice());
            }
            (None, Some(after)) => {
                leases::changed(&leases::Leases::of(context), before, after, leases::Effect::default());
            }
            (None, None) => leases::forget(context, &before.id),
        }
    }
}

/// The steps for which an undo can change the record at the shared registry.
#[derive(Default)]
struct OfRecords {
    /// The steps whose status, claim or id changes, or whose file is created or removed.
    steps: Vec<StepId>,
    moves: Vec<(StepId, StepId)>,
}

/// Empty if claims are not shared.
fn of_records(context: &Context, ops: &[FileOp]) -> OfRecords {
    let mut of = OfRecords::default();
    if context.config.sync.is_none() {
        return of;
    }
    let step = |it: &Path| id_of(it).and_then(|it| read_step_id(&it));
    for op in ops {
        match op {
            FileOp::Change { path, before, after } => {
                let Some(id) = step(path) else { continue };
                let read = |bytes: &Vec<u8>| {
                    let content = read::Content::new(bytes.clone(), context.now);
                    read::read_step_alone(&id, &path.to_string_lossy(), content, &context.config.words)
                };
                let (before, after) = (read(before), read(after));
                if before.status != after.status || before.claim != after.claim {
                    of.steps.push(id);
                }
            }
            FileOp::Rename { from, to } | FileOp::Remove { path: from, to } if context.plans.is_dir(from) => {
                for name in context.plans.names(from) {
                    of.moves.extend(step(&from.join(&name)).zip(step(&to.join(&name))));
                }
            }
            FileOp::Rename { from, to } | FileOp::Remove { path: from, to } => {
                let (from, to) = (step(from), step(to));
                of.moves.extend(from.clone().zip(to.clone()));
                of.steps.extend(from.into_iter().chain(to));
            }
            FileOp::Create { path, .. } | FileOp::Discard { path, .. } => of.steps.extend(step(path)),
        }
    }
    let named = of.moves.iter().flat_map(|(from, to)| [from.clone(), to.clone()]);
    of.steps.extend(named.collect::<Vec<_>>());
    of.steps.sort_unstable();
    of.steps.dedup();
    of
}

impl OfRecords {
    /// Updates the records of the restored steps. Returns a hint for each claim that another machine has now.
    fn follow(&self, context: &Context) -> Vec<String> {
        moved::moved(context, &self.moves);
        let lost = settling::restored(context, &self.steps).into_iter();
        let hint = |it: settling::Settled| {
            let holder = it.why.unwrap_or_else(|| "another machine".to_owned());
            format!("the claim of `{}` was not restored: it is held by {holder}", it.step)
        };
        lost.map(hint).collect()
    }
}

fn is_closed(context: &Context, id: &StepId) -> bool {
    let plan = load::one_plan(context, &id.plan).ok().flatten();
    plan.is_some_and(|it| it.find(id).is_some_and(Step::is_closed))
}

/// Returns the step or else the plan that a file below the plans directory belongs to.
fn id_of(path: &Path) -> Option<String> {
    let (plan, step) = idempotency::read_path(&path.to_string_lossy())?;
    let id = step.map_or_else(|| plan.to_string(), |it| it.to_string());
    PlanId::is_plan_name(plan.as_str()).then_some(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(path: &str, expected: Option<&str>) {
        assert_eq!(id_of(Path::new(path)).as_deref(), expected);
    }

    #[test]
    fn files_belong_to_their_step_or_plan() {
        check("p/step-02.5.md", Some("p:2.5"));
        check("p/plan.md", Some("p"));
        check("p", Some("p"));
        check("_archive/p/step-1.md", Some("p:1"));
        check("_archive/p/removed-20261121T120000Z/step-1.md", Some("p"));
        check("_decisions/20261121T091403.250Z-a.md", None);
    }
}
