//! Changes a step's number or a plan's id in all references, at the client's request or when the editor renames the file
//! or directory.
//!
//! The edits are those of `move ID --to NAME`, made on the open texts. If they have to rename a file, but the client does
//! not support file renames in workspace edits, the request fails with an error that names the command, and no text is
//! changed.

use std::path::Path;

use serde_json::{Value, json};

use super::client::Client;
use super::documents::{Document, Documents};
use super::edits::{Renames, workspace_edit};
use super::navigation;
use super::protocol::{Answer, Failed, Position, RenamedFile};
use super::references::Target;
use super::tree::{PlanFile, Role, Tree};
use super::uri;
use crate::disk::FileOp;
use crate::ops::rename::{self as rename_op, RenameRequest};
use crate::ops::renumber::{self, RenumberRequest};
use crate::plan::file_name::{self, FileName};
use crate::plan::id::{PlanId, StepId, read_number, read_step_id};
use crate::plan::step_number::StepNumber;
use crate::store::transaction::Mode;
use crate::text::typed::{quoted, shell_word};

pub(super) fn prepare(document: &Document, file: &PlanFile, position: Position) -> Answer {
    let at = document.offset(position);
    let Some((target, range)) = navigation::target_at(document, file, at) else { return Ok(Value::Null) };
    let name = match target {
        Target::Step(id) => id.number.to_string(),
        Target::Plan(id) => id.to_string(),
    };
    Ok(json!({"range": document.range(&range), "placeholder": name}))
}

pub(super) fn rename(
    tree: &mut Tree,
    documents: &Documents,
    (document, file): (&Document, &PlanFile),
    client: &Client,
    (position, new_name): (Position, &str),
) -> Answer {
    let at = document.offset(position);
    let Some((target, _)) = navigation::target_at(document, file, at) else {
        let hint = "place the cursor on a step's number, a plan's id or the first heading";
        return Err(Failed::refused("nothing-to-rename", "there is no step or plan here", hint));
    };
    let id = match target {
        Target::Step(id) => id,
        Target::Plan(id) => {
            return moved_plan(tree, documents, client, (&id, new_name.trim()), Renames::Included);
        }
    };
    let Some(number) = number(&id, new_name) else {
        let message = format!("`{new_name}` is not a step number");
        return Err(Failed::refused("usage", &message, "write it as 2 or 2.5"));
    };
    moved(tree, documents, client, (&id, &number), Renames::Included)
}

/// Reads the new number of a step: `2.5`, `step-2.5`, `plan:2.5`.
fn number(id: &StepId, text: &str) -> Option<StepNumber> {
    let text = text.trim();
    read_number(text).or_else(|| read_step_id(text).filter(|it| it.plan == id.plan).map(|it| it.number))
}

fn moved(
    tree: &Tree,
    documents: &Documents,
    client: &Client,
    (id, number): (&StepId, &StepNumber),
    renames: Renames,
) -> Answer {
    if id.number == *number {
        return Ok(Value::Null);
    }
    let (context, planned) = tree.planning()?;
    let request = RenumberRequest {
        id: id.to_string(),
        to: Some(number.to_string()),
        mode: Mode::DryRun,
        ..RenumberRequest::default()
    };
    renumber::renumber(&context, &request)?;
    let command = format!("move {} --to {number}", shell_word(id));
    workspace_edit(tree, documents, client, &planned.take(), (renames, &command))
}

fn moved_plan(
    tree: &Tree,
    documents: &Documents,
    client: &Client,
    (id, to): (&PlanId, &str),
    renames: Renames,
) -> Answer {
    let (context, planned) = tree.planning()?;
    let request = RenameRequest { id: id.to_string(), to: to.to_owned(), force: false, mode: Mode::DryRun };
    rename_op::rename(&context, &request)?;
    let command = format!("move {} --to {}", shell_word(id), quoted(to));
    // The editor renames the plan's directory instead of each file in it.
    let mut ops = planned.take();
    let n_before = ops.len();
    ops.retain(|it| !matches!(it, FileOp::Rename { .. }));
    if ops.len() < n_before {
        ops.push(FileOp::Rename { from: id.as_str().into(), to: to.into() });
    }
    workspace_edit(tree, documents, client, &ops, (renames, &command))
}

/// Returns the text edits that are needed when files are renamed. The editor requests them before it renames the files.
pub(super) fn will_rename(
    trees: &[Tree],
    documents: &Documents,
    client: &Client,
    files: &[RenamedFile],
) -> Answer {
    // Renames of several files at once get no edits: the files could exchange their numbers, and a series of single renames
    // cannot do that.
    let [renamed] = files else { return Ok(Value::Null) };
    let (Some(old), Some(new)) = (uri::to_path(&renamed.old_uri), uri::to_path(&renamed.new_uri)) else {
        return Ok(Value::Null);
    };
    if let Some((tree, id, to)) = trees.iter().find_map(|it| renamed_plan(it, &old, &new)) {
        return moved_plan(tree, documents, client, (&id, &to), Renames::LeftOut);
    }
    let Some((tree, file)) = trees.iter().find_map(|it| Some((it, it.file(&old)?))) else {
        return Ok(Value::Null);
    };
    let (Role::Step(_), Some(id)) = (&file.role, file.step()) else { return Ok(Value::Null) };
    let Some(number) = new_number(&old, &new) else { return Ok(Value::Null) };
    moved(tree, documents, client, (&id, &number), Renames::LeftOut)
}

/// The plan whose directory is renamed, and its new id.
fn renamed_plan<'a>(tree: &'a Tree, old: &Path, new: &Path) -> Option<(&'a Tree, PlanId, String)> {
    let context = tree.context().ok()?;
    let relative = context.plans.relative_of(old)?;
    let name =
        relative.to_str().filter(|it| PlanId::is_plan_name(it) && context.plans.is_dir(Path::new(it)))?;
    let to = new.file_name()?.to_str().filter(|_| new.parent() == old.parent())?;
    Some((tree, PlanId::new(name), to.to_owned()))
}

/// The number in the new name of a step's file, if the file stays in the same directory.
fn new_number(old: &Path, new: &Path) -> Option<StepNumber> {
    let name = new.file_name()?.to_str()?;
    match file_name::classify(name) {
        FileName::Step(number) if old.parent() == new.parent() => Some(number),
        _ => None,
    }
}
