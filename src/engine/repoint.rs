//! `depends` of other steps when a step gets another number or goes; prose is left to people.

use std::path::PathBuf;

use crate::disk::FileOp;
use crate::engine::context::Context;
use crate::engine::error::Error;
use crate::engine::write;
use crate::plan::change::dependency_item;
use crate::plan::id::{self, StepId};
use crate::plan::model::Step;
use crate::plan::plans::Plans;
use crate::plan::read::STEP_KEYS;
use crate::text::header_edit::{Change, NewValue};
use crate::text::{front_matter, yaml};

/// Returns the edits that make every `depends` which names `old` name `heirs` instead.
///
/// Only front matters: where a dependency is said in prose, `check` reports it as missing afterwards.
pub(crate) fn dependants(
    context: &Context,
    plans: &Plans,
    old: &StepId,
    heirs: &[StepId],
) -> Result<Vec<FileOp>, Error> {
    let steps = plans.live().flat_map(|it| &it.steps);
    let named = steps.filter(|it| it.id != *old && it.has_file() && it.depends.contains(old));
    let mut ops = Vec::new();
    for step in named {
        ops.extend(repointed(context, step, old, heirs)?);
    }
    Ok(ops)
}

fn repointed(
    context: &Context,
    step: &Step,
    old: &StepId,
    heirs: &[StepId],
) -> Result<Option<FileOp>, Error> {
    write::check_writable(context, &step.problems)?;
    let path = PathBuf::from(&step.path);
    let before = context.plans.read(&path)?.bytes;
    let changes = changes(&before, step, old, heirs);
    let after = write::edit(&step.path, &before, &changes, STEP_KEYS)?;
    Ok((before != after).then_some(FileOp::Change { path, before, after }))
}

/// The first heir takes the old one's item, the others come behind; without an heir the item goes.
fn changes(file: &[u8], step: &Step, old: &StepId, heirs: &[StepId]) -> Vec<Change> {
    let key = || "depends".to_owned();
    let items = listed(file, step);
    let Some(index) = items.iter().position(|it| it.as_ref() == Some(old)) else { return Vec::new() };
    let new: Vec<_> =
        heirs.iter().filter(|it| **it != step.id && !items.iter().flatten().any(|own| own == *it)).collect();
    let item = |it: &StepId| -> NewValue { dependency_item(&step.id.plan, it) };
    match new.split_first() {
        None => vec![Change::RemoveItem { key: key(), index }],
        Some((first, rest)) => {
            let mut changes = vec![Change::SetItem { key: key(), index, value: item(first) }];
            changes.extend(rest.iter().map(|it| Change::Append { key: key(), item: item(it) }));
            changes
        }
    }
}

fn listed(file: &[u8], step: &Step) -> Vec<Option<StepId>> {
    let text = front_matter::split(file).yaml().and_then(|it| std::str::from_utf8(it).ok());
    let Some(tree) = text.and_then(|it| yaml::parse(it).ok()) else { return Vec::new() };
    let Some(list) = tree.root().get("depends") else { return Vec::new() };
    let read = |text: &str| {
        let own = id::read_number(text).map(|number| StepId { plan: step.id.plan.clone(), number });
        own.or_else(|| id::read_step_id(text))
    };
    list.items().map(|it| it.text().and_then(read)).collect()
}
