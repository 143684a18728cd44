//! `move PLAN --to NAME` renames a plan: its id, its directory, and all references to it.

use std::path::{Path, PathBuf};

use crate::api::context::Context;
use crate::api::error::Error;
use crate::api::precondition;
use crate::api::views::{Views, shown_path, value};
use crate::disk::{DiskError, FileOp};
use crate::plan::change::set_text;
use crate::plan::file_name::PLAN_FILE;
use crate::plan::id::{PlanId, StepId, read_number};
use crate::plan::model::{Plan, Step};
use crate::plan::plans::{self, Plans};
use crate::plan::read::{PLAN_KEYS, STEP_KEYS, etag};
use crate::plan::{references, steps_list};
use crate::store::relink::{self, Gone, Orphans, Renamed, Waits};
use crate::store::sync::{foreign, moved};
use crate::store::transaction::{self, ChangeReport, Changed, Mode, Transaction};
use crate::store::{fencing, leases, load, resolve, steps_list_line};
use crate::text::header_edit::{Change, NewValue};
use crate::text::yaml::Tree;

#[derive(Debug, Clone, Default)]
pub struct RenameRequest {
    pub id: String,
    pub to: String,
    /// Rename the plan even if another clone has claimed one of its steps.
    pub force: bool,
    pub mode: Mode,
}

/// Whether an id means a plan, not a step.
pub fn is_plan(context: &Context, id: &str) -> Result<bool, Error> {
    Ok(matches!(resolve::target(context, id)?, resolve::Target::Plan(_)))
}

/// Renames the plan's directory. Also updates ids, dependencies in other plans, the `program` of the plan's children, and
/// links to the plan's files. Either all of these changes are made, or none.
pub fn rename(context: &Context, request: &RenameRequest) -> Result<ChangeReport, Error> {
    let id = resolve::plan(context, &request.id)?;
    foreign::refresh(context, request.mode);
    let mut writing = Transaction::begin(context, "move", request.mode)?;
    let ((plans, troubles), own) = load::settled_all(context, &id)?;
    transaction::check_live(&own)?;
    precondition::check_plan(context, &plans, &own)?;
    let new = checked_name(context, &own, &request.to)?;
    let mut report = ChangeReport::new("move", request.mode);
    if own.id.as_str() == new.as_str() {
        report.changes.push(Changed { was_written: false, ..changed(context, &own, &new, "already there") });
        return Ok(report);
    }
    fencing::refuse_live_claims(context, &id)?;
    foreign::refuse_live(context, own.steps.iter().map(|it| &it.id), request.force)?;
    let moved = |it: &StepId| StepId { plan: new.clone(), number: it.number.clone() };
    let gone: Vec<_> = own.steps.iter().map(|it| Gone::moved(it.id.clone(), moved(&it.id))).collect();
    let steps: Vec<_> = own.steps.iter().map(|it| it.id.clone()).collect();
    let left = Orphans::of(context, (&plans, &troubles), &gone, &steps);
    left.allow(context, false)?;
    let relinked = relink::dependants(context, &plans, &own, &gone, (&steps, &left))?;
    let mut ops = relinked.ops;
    for child in plans.children(&id).filter(|it| it.id != id) {
        name_program(context, child, &new, &mut ops)?;
    }
    let from = PathBuf::from(own.path.trim_end_matches(PLAN_FILE).trim_end_matches('/'));
    let to = PathBuf::from(new.as_str());
    own_files(context, &own, &new, &mut ops)?;
    let left_links = relink::follow_links(context, &plans, Renamed::Plan { old: &id, new: &new }, &mut ops);
    let names = context.plans.listed(&from)?.unwrap_or_default();
    check_listed(context, &own, &from, &names)?;
    ops.extend(names.iter().map(|it| FileOp::Rename { from: from.join(it), to: to.join(it) }));
    let has_other_names = !context.plans.other_names(&from).is_empty();
    writing.batch_emptying("move", ops, vec![from.clone()])?;
    report.changes.push(changed(context, &own, &new, &format!("moved from {id}")));
    report.diff = std::mem::take(&mut writing.diff);
    report.hints = relinked.hints;
    report.hints.extend(left_links);
    if has_other_names {
        let shown = shown_path(&context.root_name(), &from.to_string_lossy());
        report.hints.push(format!("{shown} stays: files in it have names that are not UTF-8"));
    }
    if request.mode == Mode::Write {
        leases::renamed(context, &own, &new);
    }
    // No lock is held while the registry is contacted.
    drop(writing);
    if request.mode == Mode::Write {
        let moves: Vec<_> = own.steps.iter().map(|it| (it.id.clone(), moved(&it.id))).collect();
        moved::moved(context, &moves);
    }
    Ok(report)
}

/// Replaces the plan's old name in its own files: in ids, in `depends`, and in its Steps list. If the text below a step's
/// front matter names dependencies with the old name, the step gets a `depends`.
fn own_files(context: &Context, own: &Plan, new: &PlanId, ops: &mut Vec<FileOp>) -> Result<(), Error> {
    let moved = |it: &StepId| match it.plan == own.id {
        true => StepId { plan: new.clone(), number: it.number.clone() },
        false => it.clone(),
    };
    // The list is read as the list of the renamed plan. Ids with the old name are replaced, and bare numbers stay.
    let relinked = |file: Vec<u8>, it: &Step| steps_list::relinked(new, &file, &it.id, &[moved(&it.id)]);
    let list = steps_list_line::edited(context, own, |it| own.steps.iter().fold(it.to_vec(), relinked))?;
    ops.extend(list.op);
    let mut then = Plan { id: new.clone(), ..list.plan };
    then.steps.iter_mut().for_each(|it| it.id = moved(&it.id));
    for step in own.steps.iter().filter(|it| it.has_file()) {
        if step.unreadable().is_some() {
            if relink::may_name_plan(context, step, &own.id) {
                transaction::check_writable(context, &step.problems)?;
            }
            continue;
        }
        let path = PathBuf::from(&step.path);
        let before = context.plans.read(&path)?.bytes;
        // In a half-saved file, references to the plan could be missed.
        if step.etag.as_ref().is_some_and(|it| *it != etag(&before)) {
            return Err(DiskError::FileChanged { path }.into());
        }
        let after = transaction::edit(&step.path, &before, &own_changes(step, &before, new), STEP_KEYS)?;
        let depends: Vec<_> = step.depends.iter().map(&moved).collect();
        let wanted = Waits { steps: &depends, ranges: &step.ranges, gone: &[] };
        let after = relink::kept_waiting(context, &then, (&moved(&step.id), &step.path), after, &wanted)?;
        if before != after {
            ops.push(FileOp::Change { path, before, after });
        }
    }
    Ok(())
}

/// Fails if another program has moved files away since they were read, for example the whole directory.
fn check_listed(context: &Context, own: &Plan, from: &Path, names: &[String]) -> Result<(), Error> {
    let steps = own.steps.iter().filter(|it| it.has_file()).map(|it| &it.path);
    let mut files = own.etag.iter().map(|_| &own.path).chain(steps);
    let is_listed = |path: &&String| names.iter().any(|it| from.join(it) == Path::new(path.as_str()));
    match files.find(|it| !is_listed(it)) {
        Some(path) => Err(DiskError::FileChanged { path: context.plans.root().join(path) }.into()),
        None => Ok(()),
    }
}

/// Checks that the name is valid and free.
fn checked_name(context: &Context, own: &Plan, name: &str) -> Result<PlanId, Error> {
    let is_bad = !PlanId::is_plan_name(name)
        || name.chars().any(char::is_control)
        || name.trim() != name
        || name.len() > 255
        || read_number(name).is_some()
        || [".md", ".lock"].iter().any(|it| name.ends_with(it));
    if is_bad {
        let hint = "write a name such as `feature-auth`";
        return Err(Error::usage(format!("`{name}` cannot be the name of a plan"), hint));
    }
    let folded = plans::folded_name(name);
    let is_taken = |it: &String| plans::folded_name(it) == folded && it != own.id.as_str();
    match load::taken_names(context).iter().any(is_taken) {
        true => Err(Error::conflict("plan-exists", format!("`{name}` exists"), "choose another name")),
        false => Ok(PlanId::new(name)),
    }
}

/// Sets `program` in a child to the new id. If `ops` already changes the child's file, that operation is extended.
fn name_program(context: &Context, child: &Plan, new: &PlanId, ops: &mut Vec<FileOp>) -> Result<(), Error> {
    let change = [set_text("program", new.as_str())];
    let edit = |bytes: &[u8]| transaction::edit(&child.path, bytes, &change, PLAN_KEYS);
    for op in ops.iter_mut() {
        if let FileOp::Change { path, after, .. } = op
            && *path == Path::new(&child.path)
        {
            *after = edit(after)?;
            return Ok(());
        }
    }
    let path = PathBuf::from(&child.path);
    let before = context.plans.read(&path)?.bytes;
    let after = edit(&before)?;
    ops.push(FileOp::Change { path, before, after });
    Ok(())
}

/// The changes of the front matter of a step: of its `id`, and of items in `depends` that contain the plan's old name.
fn own_changes(step: &Step, file: &[u8], new: &PlanId) -> Vec<Change> {
    let Some(tree) = Tree::of_file(file) else { return Vec::new() };
    let id = StepId { plan: new.clone(), number: step.id.number.clone() };
    let mut changes: Vec<_> =
        relink::has_key(file, "id").then(|| set_text("id", &id.to_string())).into_iter().collect();
    let items = tree.root().get("depends").into_iter().flat_map(|it| it.items()).enumerate();
    for (index, item) in items {
        let Some(text) = item.text().filter(|it| it.contains([':', '/'])) else { continue };
        let Some(named) = references::read_item(&step.id.plan, text).filter(|it| it.plan == step.id.plan)
        else {
            continue;
        };
        let named = StepId { plan: new.clone(), number: named.number };
        let value = NewValue::Text(references::respelled(&step.id.plan, text, &named));
        changes.push(Change::SetItem { key: "depends".to_owned(), index, value });
    }
    changes
}

fn changed(context: &Context, plan: &Plan, new: &PlanId, did: &str) -> Changed {
    let path = format!("{new}/{PLAN_FILE}");
    let now = Plan { id: new.clone(), path: path.clone(), ..plan.clone() };
    let plans = Plans::new(vec![now.clone()]);
    let shape = value(&Views::of(context, &plans).plan(&now));
    let change = Changed::new(context, new, (&plan.title, &path), did, shape);
    Changed { was: Some(plan.id.to_string()), ..change }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::model::Machine;

    /// An editor renames plan.md away while the command runs, and writes it again later.
    #[test]
    fn a_plan_without_its_file_is_not_reported_as_renamed() {
        const PLAN: &str = "/plans/p/plan.md";
        let machine = Machine::with(&[(PLAN, "# P\n"), ("/plans/p/step-1.md", "# One\n")]);
        // After this change, the undo log contains the file. So if the file is missing when a command begins, it counts as
        // being saved.
        let plans = machine.plans();
        let mut locked = plans.lock(&mut || {}).unwrap();
        locked.change(Path::new("p/plan.md"), &mut |_, _| Some(b"# Plan\n".to_vec())).unwrap();
        drop(locked);
        let run = |it: &Machine| {
            let request =
                RenameRequest { id: "p".to_owned(), to: "z".to_owned(), ..RenameRequest::default() };
            rename(&Context::on_model(it), &request).is_ok()
        };
        let quiet = machine.after_kill();
        assert!(run(&quiet));
        for begun in 1..=quiet.calls() {
            let saving = machine.renamed_away_at(PLAN, begun, begun + 1000);
            let is_renamed = run(&saving);
            assert_eq!(is_renamed, saving.text("/plans/z/plan.md").is_some(), "{begun}: {:?}", saving.tree());
        }
    }

    /// A plan is renamed even if one of its steps cannot be parsed, unless that step's text has the plan's name as a word.
    #[test]
    fn a_broken_step_that_may_name_the_plan_prevents_the_renaming() {
        for (text, expected) in [("---\na: [\n---\n# Step\n", true), ("---\na: [p:1\n---\n# Step\n", false)] {
            let machine = Machine::with(&[("/plans/p/plan.md", "# P\n"), ("/plans/p/step-1.md", text)]);
            let request =
                RenameRequest { id: "p".to_owned(), to: "z".to_owned(), ..RenameRequest::default() };
            assert_eq!(rename(&Context::on_model(&machine), &request).is_ok(), expected, "{text}");
        }
    }

    #[test]
    fn a_plan_whose_files_are_gone_is_not_renamed() {
        let machine = Machine::with(&[("/plans/p/plan.md", "# P\n"), ("/plans/p/step-1.md", "# One\n")]);
        let context = Context::on_model(&machine);
        let own = load::existing_plan(&context, &PlanId::new("p")).unwrap();
        let check = |names: &[&str]| {
            let names: Vec<_> = names.iter().map(ToString::to_string).collect();
            check_listed(&context, &own, Path::new("p"), &names).map_err(|it| it.code())
        };
        assert_eq!(check(&["notes.txt", "plan.md", "step-1.md"]), Ok(()));
        for names in [&[][..], &["plan.md"], &["step-1.md"]] {
            assert_eq!(check(names), Err("file-changed"));
        }
    }

    /// Dependencies in the plan's own files may contain its name. A bare number stays as it is.
    #[test]
    fn steps_of_the_plan_wait_for_the_same_steps() {
        let machine = Machine::with(&[
            (
                "/plans/p/plan.md",
                "# P\n\n## Steps\n\n- step-1: A\n- step-2: B (depends: p:1)\n- step-3: C (depends: 1)\n- step-4: D\n",
            ),
            ("/plans/p/step-1.md", "# A\n"),
            ("/plans/p/step-2.md", "# B\n"),
            ("/plans/p/step-3.md", "# C\n\n## Dependencies\n\nstep-1\n"),
            ("/plans/p/step-4.md", "# D\n\n## Dependencies\n\nNeeds p/step-1.\n"),
        ]);
        let context = Context::on_model(&machine);
        let request = RenameRequest { id: "p".to_owned(), to: "z".to_owned(), ..RenameRequest::default() };
        rename(&context, &request).unwrap();
        let waits: Vec<_> = load::existing_plan(&context, &PlanId::new("z")).unwrap().steps;
        let waits: Vec<_> =
            waits.iter().map(|it| it.depends.iter().map(ToString::to_string).collect::<Vec<_>>()).collect();
        let one = vec!["z:1".to_owned()];
        assert_eq!(waits, [Vec::new(), one.clone(), one.clone(), one]);
        let plan = machine.text("/plans/z/plan.md").unwrap();
        assert!(plan.contains("B (depends: z:1)\n- step-3: C (depends: 1)\n"), "{plan}");
        assert_eq!(machine.text("/plans/z/step-3.md").unwrap(), "# C\n\n## Dependencies\n\nstep-1\n");
        assert_eq!(
            machine.text("/plans/z/step-4.md").unwrap(),
            "---\ndepends:\n  - 1\n---\n# D\n\n## Dependencies\n\nNeeds p/step-1.\n"
        );
    }

    #[test]
    fn references_to_a_renamed_plan_are_updated() {
        let machine = Machine::with(&[
            ("/plans/big/plan.md", "---\nkind: program\n---\n# Big\n"),
            ("/plans/big/step-1.md", "---\nid: big:1\nstatus: completed\n---\n# One\n"),
            ("/plans/big/step-2.md", "---\ndepends: [1, \"big:1\"]\n---\n# Two\n"),
            ("/plans/big/notes.txt", "kept"),
            (
                "/plans/child/plan.md",
                "---\nprogram: big\n---\n# C\n\n## Steps\n- step-1: X (depends: big:1)\n",
            ),
            ("/plans/child/step-1.md", "---\ndepends:\n  - big/step-1   # first\n---\n# X\n"),
        ]);
        let context = Context::on_model(&machine);
        let ask = |to: &str| {
            let request =
                RenameRequest { id: "big".to_owned(), to: to.to_owned(), ..RenameRequest::default() };
            rename(&context, &request).map(|it| it.changes[0].id.clone())
        };
        for (name, code) in [
            ("child", "plan-exists"),
            ("CHILD", "plan-exists"),
            ("_x", "usage"),
            ("a/b", "usage"),
            ("7", "usage"),
            ("x.md", "usage"),
        ] {
            assert_eq!(ask(name).unwrap_err().code(), code, "{name}");
        }
        assert_eq!(ask("large").unwrap(), "large");
        let text = |path: &str| String::from_utf8(context.plans.read(path.as_ref()).unwrap().bytes).unwrap();
        assert!(!context.plans.is_dir("big".as_ref()));
        assert_eq!(text("large/notes.txt"), "kept");
        assert_eq!(text("large/step-1.md"), "---\nid: large:1\nstatus: completed\n---\n# One\n");
        assert_eq!(text("large/step-2.md"), "---\ndepends: [1, \"large:1\"]\n---\n# Two\n");
        assert_eq!(
            text("child/plan.md"),
            "---\nprogram: large\n---\n# C\n\n## Steps\n- step-1: X (depends: large:1)\n"
        );
        assert_eq!(text("child/step-1.md"), "---\ndepends:\n  - large/step-1   # first\n---\n# X\n");
    }

    #[test]
    fn a_step_that_is_half_saved_is_not_left_with_the_old_id() {
        let machine = Machine::with(&[
            ("/plans/p/plan.md", "# P\n"),
            ("/plans/p/step-1.md", "---\nid: p:1\n---\n# One\n"),
            ("/plans/p/step-2.md", "---\nid: p:2\n---\n# Two\n"),
        ]);
        let request = RenameRequest { id: "p".to_owned(), to: "z".to_owned(), ..RenameRequest::default() };
        let calls = {
            let machine = machine.after_kill();
            rename(&Context::on_model(&machine), &request).unwrap();
            machine.calls()
        };
        let (mut n_moved, mut n_refused) = (0, 0);
        for (begun, written) in (1..calls).flat_map(|it| [1, 2, 4, 8].map(|more| (it, it + more))) {
            let machine = machine.saved_slowly_at("/plans/p/step-2.md", begun, written);
            if rename(&Context::on_model(&machine), &request).is_err() {
                n_refused += 1;
                continue;
            }
            n_moved += 1;
            let text = machine.text("/plans/z/step-2.md").unwrap();
            assert!(!text.contains("id: p:2"), "{begun} to {written}: {text}");
        }
        assert!(n_moved > 10 && n_refused > 10, "{n_moved} {n_refused}");
    }

    #[test]
    fn links_to_the_files_of_a_plan_follow_it() {
        let broken = "---\nstatus: [\n---\n[a](../old/)\n";
        let decision = "# Topic\n\nSee [the step](../old/step-1.md).\n";
        let machine = Machine::with(&[
            ("/plans/old/plan.md", "# Old\n\nSee [one](step-1.md) and [two](../old/step-2.md).\n"),
            ("/plans/old/step-1.md", "---\nid: old:1\n---\n# One\n\n[up](../old/plan.md) old/step-2\n"),
            ("/plans/other/plan.md", "\u{feff}# O\r\n\r\n![p](../old/p.png) `[x](../old/)` old\r\n"),
            (
                "/plans/other/step-1.md",
                "---\ndepends: [\"old:1\"]\n---\n# X\n\n[r]: <../old/step-1.md> 'old'\n",
            ),
            ("/plans/other/step-2.md", broken),
            ("/plans/_archive/gone/step-1.md", "[a](../old/)\n"),
            ("/plans/_decisions/20261121T091403.250Z-topic.md", decision),
        ]);
        let context = Context::on_model(&machine);
        let request =
            RenameRequest { id: "old".to_owned(), to: "new".to_owned(), ..RenameRequest::default() };
        let report = rename(&context, &request).unwrap();
        let text = |path: &str| String::from_utf8(context.plans.read(path.as_ref()).unwrap().bytes).unwrap();
        assert_eq!(text("new/plan.md"), "# Old\n\nSee [one](step-1.md) and [two](../new/step-2.md).\n");
        assert_eq!(text("new/step-1.md"), "---\nid: new:1\n---\n# One\n\n[up](../new/plan.md) old/step-2\n");
        assert_eq!(text("other/plan.md"), "\u{feff}# O\r\n\r\n![p](../new/p.png) `[x](../old/)` old\r\n");
        assert_eq!(
            text("other/step-1.md"),
            "---\ndepends: [\"new:1\"]\n---\n# X\n\n[r]: <../new/step-1.md> 'old'\n"
        );
        assert_eq!(text("other/step-2.md"), broken);
        assert_eq!(text("_archive/gone/step-1.md"), "[a](../old/)\n");
        assert_eq!(text("_decisions/20261121T091403.250Z-topic.md"), decision);
        let hint = "links to `old` in plans/other/step-2.md, plans/_decisions/20261121T091403.250Z-topic.md stay: planwatch does not edit these files";
        assert_eq!(report.hints, [hint]);
    }
}
