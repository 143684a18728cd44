//! `undo`: takes back planwatch's own last write, if nobody has written since.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::{Value, json};

use crate::engine::context::{Context, Notice};
use crate::engine::error::Error;
use crate::engine::shape::shown_path;
use crate::engine::write::{self, ChangeReport, Changed, Mode};
use crate::engine::{leases, load};
use crate::plan::file_name::{self, FileName};
use crate::plan::id::{PlanId, StepId, read_step_id};
use crate::plan::model::Step;

/// A write that can be taken back, newest first in a list.
#[derive(Debug, Clone)]
pub struct UndoItem {
    pub verb: String,
    pub at: String,
    pub paths: Vec<String>,
}

impl UndoItem {
    pub fn to_json(&self) -> Value {
        json!({"verb": self.verb, "at": self.at, "paths": self.paths})
    }
}

pub fn list_to_json(items: &[UndoItem]) -> Value {
    json!({"changes": items.iter().map(UndoItem::to_json).collect::<Vec<_>>()})
}

/// Lists what `undo` would take back, one after the other.
pub fn undo_list(context: &Context) -> Vec<UndoItem> {
    let root = context.root_name();
    let item = |it: crate::disk::UndoEntry| UndoItem {
        paths: it.paths.iter().map(|path| shown_path(&root, &path.to_string_lossy())).collect(),
        verb: it.verb,
        at: it.at,
    };
    context.plans.undo_list().into_iter().map(item).collect()
}

/// Restores the files of the last write; a file that somebody changed since is left alone, and the undo refused.
pub fn undo(context: &Context, mode: Mode) -> Result<ChangeReport, Error> {
    let mut locked = context.plans.lock(&mut || (context.tell)(Notice::WaitingForLock))?;
    locked.sign(&context.by);
    let (verb, ops) = locked.undo_operations()?;
    if mode == Mode::Write {
        let ids: BTreeSet<_> = ops
            .iter()
            .filter_map(|it| id_of(write::path_of(it)))
            .filter_map(|it| read_step_id(&it))
            .collect();
        let closed: Vec<_> = ids.into_iter().filter(|it| is_closed(context, it)).collect();
        locked.undo()?;
        // What is done no more is done on no branch.
        closed.iter().filter(|it| !is_closed(context, it)).for_each(|it| leases::reopened(context, it));
    }
    let root = context.root_name();
    let mut report = ChangeReport::new("undo", mode);
    for op in &ops {
        report.diff.push_str(&write::describe(&root, op));
        let path = shown_path(&root, &write::path_of(op).to_string_lossy());
        let id = id_of(write::path_of(op)).unwrap_or_else(|| path.clone());
        let (title, did) = (String::new(), format!("{verb} taken back"));
        report.changes.push(Changed {
            id,
            title,
            path,
            was_written: true,
            was: None,
            status: None,
            did,
            now: Value::Null,
        });
    }
    Ok(report)
}

fn is_closed(context: &Context, id: &StepId) -> bool {
    let plan = load::one_plan(context, &id.plan).ok().flatten();
    plan.is_some_and(|it| it.find(id).is_some_and(Step::is_closed))
}

/// Returns the step or else the plan that a file below the plans directory belongs to.
fn id_of(path: &Path) -> Option<String> {
    let inside = path.strip_prefix("_archive").unwrap_or(path);
    let names: Vec<_> = inside.iter().filter_map(|it| it.to_str()).collect();
    let (plan, rest) = names.split_first().filter(|(it, _)| PlanId::is_plan_name(it))?;
    let plan = PlanId::new(*plan);
    match rest {
        [file] => match file_name::classify(file) {
            FileName::Step(number) => Some(StepId { plan, number }.to_string()),
            _ => Some(plan.to_string()),
        },
        _ => Some(plan.to_string()),
    }
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
