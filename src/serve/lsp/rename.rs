//! Renaming a step's number, in every place that names it; also when the editor renames the file.
//!
//! The edits are those of `move STEP --to N`, made on the open texts. A client that cannot rename files for a server gets
//! an error that names the command, never half a rename.

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
use crate::ops::renumber::{self, RenumberRequest};
use crate::plan::file_name::{self, FileName};
use crate::plan::id::{StepId, read_number, read_step_id};
use crate::plan::step_number::StepNumber;
use crate::store::transaction::Mode;
use crate::text::typed::shell_word;

pub(super) fn prepare(document: &Document, file: &PlanFile, position: Position) -> Answer {
    let at = document.offset(position);
    let Some((target, range)) = navigation::target_at(document, file, at) else { return Ok(Value::Null) };
    let Target::Step(id) = target else { return Ok(Value::Null) };
    Ok(json!({"range": document.range(&range), "placeholder": id.number.to_string()}))
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
        return Err(Failed::refused(
            "nothing-to-rename",
            "there is no step here",
            "place the cursor on a step's number",
        ));
    };
    let Target::Step(id) = target else {
        return Err(Failed::refused(
            "nothing-to-rename",
            "only steps are renamed",
            "place the cursor on a step's number",
        ));
    };
    let Some(number) = number(&id, new_name) else {
        let message = format!("`{new_name}` is not a step number");
        return Err(Failed::refused("usage", message, "write it as 2 or 2.5"));
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

/// Answers before the editor renames files: what else has to change.
pub(super) fn will_rename(
    trees: &[Tree],
    documents: &Documents,
    client: &Client,
    files: &[RenamedFile],
) -> Answer {
    // Several files at once may exchange their numbers, which no order of single changes does.
    let [renamed] = files else { return Ok(Value::Null) };
    let (Some(old), Some(new)) = (uri::to_path(&renamed.old_uri), uri::to_path(&renamed.new_uri)) else {
        return Ok(Value::Null);
    };
    let Some((tree, file)) = trees.iter().find_map(|it| Some((it, it.file(&old)?))) else {
        return Ok(Value::Null);
    };
    let (Role::Step(_), Some(id)) = (&file.role, file.step()) else { return Ok(Value::Null) };
    let Some(number) = new_number(&old, &new) else { return Ok(Value::Null) };
    moved(tree, documents, client, (&id, &number), Renames::LeftOut)
}

/// The number of a step's file under its new name, if it stays in its plan.
fn new_number(old: &Path, new: &Path) -> Option<StepNumber> {
    let name = new.file_name()?.to_str()?;
    match file_name::classify(name) {
        FileName::Step(number) if old.parent() == new.parent() => Some(number),
        _ => None,
    }
}
