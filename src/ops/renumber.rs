//! `move STEP --after N`, `--before N` or `--to N`: moves a step to another position in its plan by changing its number.
//! Dependencies on the step and links to its file are updated.

use std::path::{Path, PathBuf};

use crate::api::context::Context;
use crate::api::error::Error;
use crate::api::precondition;
use crate::api::views::{Views, value};
use crate::disk::FileOp;
use crate::plan::change::{dependency_item, set_text};
use crate::plan::file_name;
use crate::plan::id::StepId;
use crate::plan::model::{Order, Plan, Step};
use crate::plan::plans::Plans;
use crate::plan::read::{self, STEP_KEYS};
use crate::plan::references::{self, MovedFile};
use crate::plan::step_number::StepNumber;
use crate::plan::steps_list;
use crate::store::fencing::{self, Caller, Owner};
use crate::store::load::{LoadQuery, Overlay};
use crate::store::relink::{self, Gone, Orphans, Renamed, Waits};
use crate::store::sync::{foreign, moved};
use crate::store::transaction::{self, ChangeReport, Changed, Mode, Refused, Transaction};
use crate::store::{branches, cycles, leases, load, new_step, resolve, step_file, steps_list_line};
use crate::text::header_edit::Change;

pub use crate::api::requests::RenumberRequest;

/// Renames a step's file. Also updates the `id` in the file, the step's line in the Steps list, dependencies on the step,
/// and links to the file.
pub fn renumber(context: &Context, request: &RenumberRequest) -> Result<ChangeReport, Error> {
    let named = resolve::step(context, &request.id)?;
    let id = named.id.clone();
    foreign::refresh(context, request.mode);
    let elsewhere = branches::numbers_elsewhere(context, &id.plan, !request.ignores_branches);
    foreign::refuse_live(context, [&id], request.force)?;
    let mut writing = Transaction::begin(context, "move", request.mode)?;
    let ((plans, troubles), own) = load::settled_all(context, &id.plan)?;
    let step = resolve::one_step(context, &own, &named)?;
    let is_doubled = own.is_doubled(step);
    let moved = Some(&id.number).filter(|_| !is_doubled);
    let place = place(&own, request, moved)?;
    transaction::check_live(&own)?;
    precondition::check_step(context, &plans, &own, step)?;
    transaction::check_writable(context, &step.problems)?;
    transaction::check_writable(context, &own.problems)?;
    let no_room = |_| {
        let message = match &place {
            Place::After(after) => format!("there is no room after {after}"),
            Place::First(before) => format!("there is no room before {before}"),
            Place::At(number) => format!("there is no room at {number}"),
        };
        let hint = "choose another position, or first give a step next to it another number: planwatch move STEP --to N";
        Error::failed("no-room", message, hint)
    };
    let number = match &place {
        Place::After(after) => new_step::number_after(&own, after, moved, &elsewhere)?,
        Place::First(before) => before.below(),
        Place::At(number) => Ok(number.clone()),
    };
    let number = number.map_err(no_room)?;
    let new = StepId { plan: own.id.clone(), number };
    let mut report = ChangeReport::new("move", request.mode);
    if is_in_place(&own, &id, &place) && !is_doubled {
        report.changes.push(changed(context, &plans, &own, step, &id, "already there"));
        return Ok(report);
    }
    foreign::refuse_live(context, [&new], request.force)?;
    let who = Caller::of(context, &id, request.by.as_deref(), request.claim.as_deref(), request.force);
    let plans = leases::Leases::of(context).annotate_for(plans, &id);
    let owner = fencing::check(&plans, step, &who)?;
    if owner == Owner::Late {
        let late = step_file::update(context, &mut writing, &named, &|now| {
            Ok(fencing::late_result(context, now.step, &who, "move", None))
        });
        let Err(error) = late else { return Ok(report) };
        if request.mode == Mode::Write || writing.diff.is_empty() {
            return Err(error);
        }
        report.refused.push(Refused { id: id.to_string(), error });
        report.diff = writing.diff;
        return Ok(report);
    }
    let forced = (owner == Owner::Forced).then(|| forced(context, &who, step, &new)).transpose()?;
    // If two files have the same number, dependencies on the number stay, and now mean the file that keeps the number.
    let file = step.has_file().then(|| moved_file(step, &new));
    let as_gone = || Gone::moved(id.clone(), new.clone()).with_file(file.clone());
    let gone: Vec<_> = (!is_doubled).then(as_gone).into_iter().collect();
    let left = Orphans::of(context, (&plans, &troubles), &gone, &[]);
    left.allow(context, request.force)?;
    let (plan, hints) =
        move_files(context, &mut writing, &plans, (&own, step), (&new, file), (forced, &gone, &left))?;
    report.changes.push(changed(context, &plans, &plan, step, &new, &format!("moved from {}", id.number)));
    report.diff = std::mem::take(&mut writing.diff);
    report.hints = hints;
    report.hints.extend(left.hint());
    report.not_repointed = left.names();
    // No lock is held while the registry is contacted.
    drop(writing);
    if request.mode == Mode::Write {
        moved::moved(context, &[(id, new)]);
    }
    Ok(report)
}

fn forced(context: &Context, who: &Caller, step: &Step, new: &StepId) -> Result<Change, Error> {
    let file = context.plans.read(Path::new(&step.path))?.bytes;
    let text = format!("moved with --force from {} to {}", step.id.number, new.number);
    Ok(fencing::override_record(context, who, &file, text))
}

enum Place {
    After(StepNumber),
    /// Before this step, which is the first step in the plan if the moved step is not counted.
    First(StepNumber),
    /// At this number, which no other step has.
    At(StepNumber),
}

/// Reads the requested position. `moved` is the step's own number, or `None` if another file has the same number.
fn place(plan: &Plan, request: &RenumberRequest, moved: Option<&StepNumber>) -> Result<Place, Error> {
    let itself = |where_to: &str| {
        Error::usage(format!("a step cannot be moved {where_to} itself"), "name another step")
    };
    if let Some(to) = &request.to {
        return free(plan, new_step::own_number(plan, to)?, moved).map(Place::At);
    }
    let Some(before) = &request.before else {
        let after = new_step::own_number(plan, &request.after)?;
        return if Some(&after) == moved { Err(itself("after")) } else { Ok(Place::After(after)) };
    };
    let before = new_step::own_number(plan, before)?;
    if Some(&before) == moved {
        return Err(itself("before"));
    }
    let wanted = StepId { plan: plan.id.clone(), number: before.clone() };
    resolve::find_step(&Plans::new(vec![plan.clone()]), &wanted)?;
    let others = plan.steps.iter().map(|it| &it.id.number).filter(|it| Some(*it) != moved);
    Ok(match others.filter(|it| **it < before).max() {
        Some(last) => Place::After(last.clone()),
        None => Place::First(before),
    })
}

fn free(plan: &Plan, number: StepNumber, moved: Option<&StepNumber>) -> Result<StepNumber, Error> {
    let is_taken = |it: &&Step| it.id.number == number && Some(&it.id.number) != moved;
    match plan.steps.iter().find(is_taken) {
        None => Ok(number),
        Some(taken) => {
            let hint = format!("--after {number} moves it after that step");
            Err(Error::conflict("step-exists", format!("`{}` exists", taken.id), hint))
        }
    }
}

fn is_in_place(plan: &Plan, id: &StepId, place: &Place) -> bool {
    let mut others = plan.steps.iter().map(|it| &it.id.number);
    match place {
        Place::After(after) => others.rfind(|it| **it < id.number) == Some(after),
        Place::First(before) => others.find(|it| **it > id.number) == Some(before),
        Place::At(number) => *number == id.number,
    }
}

/// Edits and renames the files. Returns the plan as it is after the change, and hints on what a person has to do.
fn move_files(
    context: &Context,
    writing: &mut Transaction<'_>,
    plans: &Plans,
    (plan, step): (&Plan, &Step),
    (new, file): (&StepId, Option<MovedFile>),
    (more, gone, left): (Option<Change>, &[Gone], &Orphans),
) -> Result<(Plan, Vec<String>), Error> {
    let is_doubled = plan.is_doubled(step);
    let linked = |bytes: Vec<u8>| match &file {
        Some(file) => references::followed_step_links(&bytes, Some(&plan.id), file).unwrap_or(bytes),
        None => bytes,
    };
    let line = steps_list_line::edited(context, plan, |bytes| match is_doubled {
        // The existing line belongs to the other file with the same number.
        true => steps_list::with_step(&plan.id, bytes, &new.number, &step.title, step.depends_for_line()),
        false => steps_list::with_moved(&plan.id, bytes, &step.id.number, &new.number),
    })?;
    let path = Path::new(&step.path).with_file_name(file_name::step_file(&new.number));
    let path = path.to_string_lossy().into_owned();
    let mut ops = Vec::new();
    let mut file_after = Vec::new();
    if step.has_file() {
        let from = PathBuf::from(&step.path);
        let to = from.with_file_name(file_name::step_file(&new.number));
        let before = context.plans.read(&from)?.bytes;
        let changes: Vec<_> = id_change(&before, new).into_iter().chain(more).collect();
        let after = linked(transaction::edit(&step.path, &before, &changes, STEP_KEYS)?);
        // If the text of a step names a step with a higher number, that is not a dependency. So if a step gets another
        // number, its unchanged text may mean other dependencies.
        let wanted: Vec<_> = step.depends.iter().filter(|it| **it != step.id).cloned().collect();
        let wanted = Waits { steps: &wanted, ranges: &step.ranges, gone };
        let after = relink::kept_waiting(context, &line.plan, (new, &path), after, &wanted)?;
        file_after.clone_from(&after);
        if before != after {
            ops.push(FileOp::Change { path: from.clone(), before, after });
        }
        ops.push(FileOp::Rename { from, to });
    }
    ops.extend(line.op);
    let relinked = relink::dependants(context, plans, &line.plan, gone, (&[], left))?;
    ops.extend(relinked.ops);
    let mut hints = relinked.hints;
    if let Some(file) = &file {
        hints.extend(relink::follow_links(context, plans, Renamed::Step(file), &mut ops));
    }
    refuse_cycle(context, (plans, &line.plan), (step, new), (&path, file_after))?;
    writing.batch("move", ops)?;
    if !writing.is_dry_run() {
        leases::moved(context, &[leases::Move { plan, step, to: new.clone(), file: path }]);
    }
    Ok((line.plan, hints))
}

/// Refuses a position in which the step would wait for itself, unless it already does so. For example, if it waits for a
/// step that depends on "all previous steps", it must not become one of these. `file` is the step's file after the move.
fn refuse_cycle(
    context: &Context,
    (plans, plan): (&Plans, &Plan),
    (step, new): (&Step, &StepId),
    (path, file): (&str, Vec<u8>),
) -> Result<(), Error> {
    let hint = "choose another place, or remove a dependency first";
    if plan.order == Order::Sequential {
        let after = in_new_order(plans, step, new, plan.is_doubled(step));
        let old = |it: &StepId| if it == new { step.id.clone() } else { it.clone() };
        cycles::refuse_new(after, |it| cycles::has(plans, &old(it)), hint)?;
    }
    let content = read::Content::new(file.clone(), context.now);
    let now = read::read_step_of(plan, new, path, content, &context.config.words);
    if now.depends.is_empty() && now.ranges.is_empty() || cycles::has(plans, &step.id) {
        return Ok(());
    }
    // The line for the new number is not in the plan's file on disk yet. So its dependencies are written into `depends` of
    // the text that is checked.
    let from_line = !relink::has_key(&file, "depends") && now.ranges.is_empty();
    let bytes = match from_line {
        true => {
            let items = now.depends.iter().map(|it| dependency_item(&new.plan, it)).collect();
            transaction::edit(path, &file, &[relink::set_depends(&[&file], &new.plan, items)], STEP_KEYS)?
        }
        false => file,
    };
    let own = Overlay { path, bytes: &bytes };
    let after = LoadQuery::step_with(new, own).load(context)?.plans;
    cycles::refuse(after.step(new), hint)
}

/// Returns all plans. In them, the step has its new number. If another file keeps the old number, dependencies on that
/// number stay.
fn in_new_order(plans: &Plans, step: &Step, new: &StepId, is_doubled: bool) -> Vec<Plan> {
    let mut all = plans.clone().into_vec();
    for plan in all.iter_mut().filter(|it| !it.is_archived) {
        for other in &mut plan.steps {
            if other.path == step.path {
                other.id.clone_from(new);
            }
            let named = other.depends.iter_mut().filter(|it| **it == step.id && !is_doubled);
            named.for_each(|it| it.clone_from(new));
        }
        plan.steps.sort_by(|a, b| a.id.number.cmp(&b.id.number));
    }
    all
}

/// The old and the new name of a step's file.
fn moved_file(step: &Step, new: &StepId) -> MovedFile {
    let from = step.path.rsplit('/').next().unwrap_or_default().to_owned();
    MovedFile { plan: step.id.plan.clone(), from, to: file_name::step_file(&new.number) }
}

fn id_change(file: &[u8], new: &StepId) -> Option<Change> {
    relink::has_key(file, "id").then(|| set_text("id", &new.to_string()))
}

fn changed(context: &Context, plans: &Plans, plan: &Plan, step: &Step, new: &StepId, did: &str) -> Changed {
    let directory = plan.path.trim_end_matches(file_name::PLAN_FILE);
    let path = format!("{directory}{}", file_name::step_file(&new.number));
    let moved = context.plans.read(std::path::Path::new(&path)).ok().map(|it| {
        let content = read::Content::new(it.bytes, context.now);
        read::read_step_of(plan, new, &path, content, &context.config.words)
    });
    let moved = moved.unwrap_or_else(|| Step { id: new.clone(), path: path.clone(), ..step.clone() });
    let now = value(&Views::of(context, plans).step(plan, &moved));
    let (was_written, was) = (*new != step.id, Some(step.id.to_string()));
    Changed { was_written, was, ..Changed::new(context, new, (&moved.title, &path), did, now) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::model::Machine;

    #[test]
    fn links_to_a_step_follow_it() {
        let decision = "# Topic\n\nSee [the step](../p/step-1.md).\n";
        let section = "\n## Dependencies\n\n[the first one](./step-1.md#tasks)\n";
        let machine = Machine::with(&[
            (
                "/plans/p/plan.md",
                "# P\n\nSee [one](step-1.md), [two](step-2.md).\n\n## Steps\n- [step-1](step-1.md): One\n- step-2: Two\n",
            ),
            ("/plans/p/step-1.md", "---\nid: p:1\n---\n# One\n\n[me](../p/step-1.md) `[x](step-1.md)`\n"),
            ("/plans/p/step-2.md", "---\ndepends: [1]\n---\n# Two\n\n[it](step-1.md)\n"),
            ("/plans/p/step-4.md", &format!("# Four\n{section}")),
            ("/plans/q/plan.md", "# Q\r\n\r\n[a](../p/step-1.md?x) [b](step-1.md)\r\n"),
            ("/plans/_decisions/20261121T091403.250Z-topic.md", decision),
        ]);
        let context = Context::on_model(&machine);
        let request =
            RenumberRequest { id: "p:1".to_owned(), to: Some("3".to_owned()), ..RenumberRequest::default() };
        let report = renumber(&context, &request).unwrap();
        let text = |path: &str| machine.text(&format!("/plans/{path}")).unwrap();
        assert_eq!(
            text("p/plan.md"),
            "# P\n\nSee [one](step-3.md), [two](step-2.md).\n\n## Steps\n- step-2: Two\n- [step-3](step-3.md): One\n"
        );
        assert_eq!(
            text("p/step-3.md"),
            "---\nid: p:3\n---\n# One\n\n[me](../p/step-3.md) `[x](step-1.md)`\n"
        );
        assert_eq!(text("p/step-2.md"), "---\ndepends: [3]\n---\n# Two\n\n[it](step-3.md)\n");
        assert_eq!(text("p/step-4.md"), format!("# Four\n{}", section.replace("step-1", "step-3")));
        assert_eq!(text("q/plan.md"), "# Q\r\n\r\n[a](../p/step-3.md?x) [b](step-1.md)\r\n");
        assert_eq!(text("_decisions/20261121T091403.250Z-topic.md"), decision);
        let hint = "links to `p/step-1.md` in plans/_decisions/20261121T091403.250Z-topic.md stay: planwatch does not edit this file";
        assert_eq!(report.hints, [hint]);
    }
}
