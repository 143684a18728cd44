//! The line of a step in its plan's Steps list, if the plan has one.

use std::path::{Path, PathBuf};

use crate::api::context::Context;
use crate::api::error::Error;
use crate::api::views::shown_path;
use crate::disk::{DiskError, FileOp};
use crate::plan::file_name::PLAN_FILE;
use crate::plan::id::StepId;
use crate::plan::model::{Plan, Step};
use crate::plan::read;
use crate::plan::step_number::StepNumber;
use crate::plan::steps_list;
use crate::store::decision::Decision;
use crate::store::idempotency;
use crate::store::relink::Gone;
use crate::store::transaction::{self, Transaction};
use crate::text::front_matter;

/// Adds a line for a step, in the list's own style; `None` if the plan has no list, or if the list names the step
/// already.
pub(crate) fn add(context: &Context, plan: &Plan, step: &Step) -> Result<Option<FileOp>, Error> {
    if plan.etag.is_none() || !steps_list::names_steps(&plan.id, &plan.body) {
        return Ok(None);
    }
    let path = PathBuf::from(&plan.path);
    let before = plan_file(context, &path)?;
    let now = read::read_plan_again(plan, content(context, &before), &context.config.words);
    transaction::check_writable(context, &now.problems)?;
    let after =
        steps_list::with_step(&plan.id, &before, &step.id.number, &step.title, step.depends_for_line());
    Ok((before != after).then_some(FileOp::Change { path, before, after }))
}

/// After a change of a step's `depends`, writes the new dependencies into the step's line, if the line states any. The step
/// is written already, so if the list cannot be changed, a hint says so.
pub(crate) fn follow_depends(context: &Context, writing: &mut Transaction<'_>, before: &Step, after: &Step) {
    let id = &after.id;
    let path = format!("{}/{PLAN_FILE}", id.plan);
    if before.depends == after.depends || context.plans.read(Path::new(&path)).is_err() {
        return;
    }
    idempotency::exclude_next_change(context);
    let written = writing.change(&path, &|now: &[u8]| {
        let with = steps_list::with_depends(&id.plan, now, &id.number, &after.depends);
        Ok(if with == now { Decision::Leave(()) } else { Decision::<_, (), ()>::Write(with, ()) })
    });
    if written.is_err() {
        let shown = shown_path(&context.root_name(), &path);
        writing.hints.push(format!(
            "the Steps list of {shown} could not be changed; it still has the old dependencies of {id}"
        ));
    }
}

/// Reads a `plan.md`, and refuses it while it is being saved: a partly saved file may lack the list.
fn plan_file(context: &Context, path: &Path) -> Result<Vec<u8>, Error> {
    let saves = context.plans.saves(context);
    let found = match context.plans.read(path) {
        Err(DiskError::NotFound { .. }) => {
            saves.refuse_vanished(path).and_then(|()| context.plans.read(path))
        }
        found => found,
    }?;
    saves.refuse_cut_short(&found)?;
    Ok(found.bytes)
}

fn content(context: &Context, bytes: &[u8]) -> read::Content {
    read::Content { bytes: bytes.to_vec(), etag: String::new(), modified: context.now }
}

/// A `plan.md` that is about to change together with other files.
pub(crate) struct Edited {
    /// `None` if the file stays as it is.
    pub(crate) op: Option<FileOp>,
    /// The plan with the text that its file will have.
    pub(crate) plan: Plan,
}

/// Removes a step's line and what belongs to it. Lines that waited for the step then wait for `heirs`. Also returns the
/// removed text.
pub(crate) fn taken_out(
    context: &Context,
    plan: &Plan,
    number: &StepNumber,
    heirs: &[StepId],
) -> Result<(Edited, String), Error> {
    let mut removed = String::new();
    let edited = edited(context, plan, |bytes| {
        let (after, lines) = steps_list::without_step(&plan.id, bytes, number, heirs);
        removed = lines;
        after
    })?;
    Ok((edited, removed))
}

/// Merges lines: the line of `kept` gets a title and dependencies, and the lines of `gone` are removed. Also returns
/// the text that was replaced or removed.
pub(crate) fn squashed(
    context: &Context,
    plan: &Plan,
    (kept, title, depends): (&StepId, &str, &[StepId]),
    gone: &[StepId],
) -> Result<(Edited, String), Error> {
    let mut removed = String::new();
    let edited = edited(context, plan, |bytes| {
        let heirs = std::slice::from_ref(kept);
        let mut file = bytes.to_vec();
        for id in gone {
            let (after, lines) = steps_list::without_step(&plan.id, &file, &id.number, heirs);
            file = after;
            removed.push_str(&lines);
        }
        let (_, line) = steps_list::without_line(&plan.id, &file, &kept.number);
        let after =
            steps_list::with_changed_line(&plan.id, &file, &kept.number, title, (Some(depends), true));
        if after != file {
            removed.insert_str(0, &line);
        }
        after
    })?;
    Ok((edited, removed))
}

pub(crate) enum LineEdit<'a> {
    /// Lines that waited for the step of this line then wait for `heirs`. The line is removed, unless a [`LineEdit::New`]
    /// with the same number rewrites it.
    Out {
        number: &'a StepNumber,
        heirs: &'a [StepId],
    },
    Moved {
        from: &'a StepNumber,
        to: &'a StepNumber,
    },
    /// The line gets another title and other dependencies; what is below the line usually stays (see
    /// [`steps_list::with_changed_line`]).
    Anew {
        number: &'a StepNumber,
        title: &'a str,
        /// `None` keeps the dependencies of the line.
        depends: Option<&'a [StepId]>,
    },
    New {
        number: &'a StepNumber,
        title: &'a str,
        depends: &'a [StepId],
    },
}

/// Makes the edits of the list, if the plan has one. Also returns the lines that are removed or rewritten.
pub(crate) fn replaced(
    context: &Context,
    plan: &Plan,
    edits: &[LineEdit<'_>],
) -> Result<(Edited, String), Error> {
    let mut removed = String::new();
    let id = &plan.id;
    if !steps_list::names_steps(id, &plan.body) {
        return Ok((Edited { op: None, plan: plan.clone() }, removed));
    }
    let is_taken_again = |number: &StepNumber| {
        edits.iter().any(|it| matches!(it, LineEdit::New { number: new, .. } if **new == *number))
    };
    let is_last = |it: &&LineEdit<'_>| matches!(it, LineEdit::Out { number, .. } if !is_taken_again(number));
    let before = |number: &'_ StepNumber| {
        let moved = edits.iter().find_map(|it| match it {
            LineEdit::Moved { from, to } if *to == number => Some((*from).clone()),
            _ => None,
        });
        moved.unwrap_or_else(|| number.clone())
    };
    // New lines follow the style of the lines that exist, so lines are removed last.
    let (last, first): (Vec<_>, Vec<_>) = edits.iter().partition(is_last);
    let edited = edited(context, plan, |bytes| {
        for edit in edits {
            let number = match edit {
                LineEdit::Out { number, .. } => (*number).clone(),
                LineEdit::Anew { number, .. } => before(number),
                LineEdit::Moved { .. } | LineEdit::New { .. } => continue,
            };
            removed.push_str(&steps_list::without_line(id, bytes, &number).1);
        }
        first.into_iter().chain(last).fold(bytes.to_vec(), |file, edit| match edit {
            LineEdit::Out { number, heirs } if is_taken_again(number) => {
                let old = StepId { plan: id.clone(), number: (*number).clone() };
                steps_list::relinked(id, &file, &old, heirs)
            }
            LineEdit::Out { number, heirs } => steps_list::without_step(id, &file, number, heirs).0,
            LineEdit::Moved { from, to } => steps_list::with_moved(id, &file, from, to),
            LineEdit::Anew { number, title, depends } => {
                steps_list::with_changed_line(id, &file, number, title, (*depends, false))
            }
            LineEdit::New { number, title, depends } => {
                steps_list::with_line(id, &file, number, title, depends)
            }
        })
    })?;
    Ok((edited, removed))
}

/// Changes the lines that wait for gone steps of another plan, so that they wait for the heirs of the gone steps.
pub(crate) fn relinked(context: &Context, plan: &Plan, gone: &[Gone]) -> Result<Edited, Error> {
    edited(context, plan, |bytes| {
        let relink = |file: Vec<u8>, it: &Gone| steps_list::relinked(&plan.id, &file, &it.id, &it.heirs);
        gone.iter().fold(bytes.to_vec(), relink)
    })
}

/// Makes an edit of a plan's file that concerns only its Steps list.
pub(crate) fn edited(
    context: &Context,
    plan: &Plan,
    edit: impl FnOnce(&[u8]) -> Vec<u8>,
) -> Result<Edited, Error> {
    if plan.etag.is_none() {
        return Ok(Edited { op: None, plan: plan.clone() });
    }
    let path = PathBuf::from(&plan.path);
    let before = plan_file(context, &path)?;
    let after = edit(&before);
    if before == after {
        return Ok(Edited { op: None, plan: plan.clone() });
    }
    transaction::check_writable(context, &plan.problems)?;
    let body = String::from_utf8_lossy(&after[front_matter::split(&after).body_start()..]).into_owned();
    let op = FileOp::Change { path, before, after };
    Ok(Edited { op: Some(op), plan: Plan { body, ..plan.clone() } })
}
