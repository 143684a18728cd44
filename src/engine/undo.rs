//! `undo`: takes back planwatch's own last write, if nobody has written since.

use serde_json::{Value, json};

use crate::engine::context::{Context, Notice};
use crate::engine::error::Error;
use crate::engine::shape::shown_path;
use crate::engine::write::{self, ChangeReport, Changed, Mode};

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
        locked.undo()?;
    }
    let root = context.root_name();
    let mut report = ChangeReport::new("undo", mode);
    for op in &ops {
        report.diff.push_str(&write::describe(&root, op));
        let path = shown_path(&root, &write::path_of(op).to_string_lossy());
        let (id, title, did) = (path.clone(), String::new(), format!("{verb} taken back"));
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
