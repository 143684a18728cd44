//! Updates links to the files of a plan when its directory or a step's file is renamed.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use crate::api::context::Context;
use crate::api::error::few;
use crate::api::views::shown_path;
use crate::disk::FileOp;
use crate::plan::id::PlanId;
use crate::plan::model::Plan;
use crate::plan::plans::Plans;
use crate::plan::references::{self, MovedFile};
use crate::plan::{decision, insight, script};
use crate::store::{knowledge, load};

/// The most files that a hint names.
const MOST_NAMED: usize = 6;

/// The directories whose files planwatch does not rewrite: they are written once, or only by people.
const NOT_RELINKED: [&str; 3] = [decision::DIRECTORY, insight::DIRECTORY, script::DIRECTORY];

/// The plan or the step's file that is renamed.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Renamed<'a> {
    Plan { old: &'a PlanId, new: &'a PlanId },
    Step(&'a MovedFile),
}

impl Renamed<'_> {
    /// Returns the file with changed links; `None` if it has no link to the renamed plan or step. `own` is the plan
    /// whose directory contains the file.
    fn followed(self, file: &[u8], own: Option<&PlanId>) -> Option<Vec<u8>> {
        match self {
            Self::Plan { old, new } => references::followed_links(file, old, new),
            Self::Step(moved) => references::followed_step_links(file, own, moved),
        }
    }

    fn name(self) -> String {
        match self {
            Self::Plan { old, .. } => old.to_string(),
            Self::Step(moved) => format!("{}/{}", moved.plan, moved.from),
        }
    }
}

/// Adds to `ops` the edits that change links in live plans and steps when a plan or a step is renamed.
///
/// Returns a hint that names the files whose links are not changed: files that cannot be edited, and files in
/// [`NOT_RELINKED`].
pub(crate) fn follow_links(
    context: &Context,
    plans: &Plans,
    renamed: Renamed<'_>,
    ops: &mut Vec<FileOp>,
) -> Option<String> {
    let files: Vec<_> = plans.live().flat_map(files).collect();
    let read = |path: &str| context.plans.read(Path::new(path)).ok().map(|it| it.bytes);
    let follow = |(own, path, is_writable): &(&PlanId, &str, bool)| {
        let before = read(path)?;
        let after = renamed.followed(&before, Some(own))?;
        Some(((*own).clone(), PathBuf::from(path), is_writable.then_some((before, after))))
    };
    let mut left = Vec::new();
    let changed: HashMap<PathBuf, usize> = ops.iter().enumerate().filter_map(changed).collect();
    for (own, path, edited) in load::map(&files, follow).into_iter().flatten() {
        match (edited, changed.get(&path)) {
            (None, _) => left.push(path.to_string_lossy().into_owned()),
            (Some(_), Some(nth)) => {
                if let FileOp::Change { after, .. } = &mut ops[*nth]
                    && let Some(followed) = renamed.followed(after, Some(&own))
                {
                    *after = followed;
                }
            }
            (Some((before, after)), None) => ops.push(FileOp::Change { path, before, after }),
        }
    }
    let read_only = NOT_RELINKED.iter().flat_map(|it| knowledge::sources(context, it));
    let links = |bytes: &[u8]| renamed.followed(bytes, None).is_some();
    left.extend(
        read_only.filter(|it| it.content.as_ref().is_ok_and(|it| links(&it.bytes))).map(|it| it.path),
    );
    let shown: Vec<_> = left.iter().map(|it| shown_path(&context.root_name(), it)).collect();
    let these = if shown.len() == 1 { "this file" } else { "these files" };
    let said = || {
        let (name, files) = (renamed.name(), few(&shown, MOST_NAMED));
        format!("links to `{name}` in {files} stay: planwatch does not edit {these}")
    };
    (!shown.is_empty()).then(said)
}

/// The files of a plan and its steps, each with its plan and whether it may be edited.
fn files(plan: &Plan) -> impl Iterator<Item = (&PlanId, &str, bool)> {
    let is_broken = plan.problems.iter().any(|it| it.path == plan.path && it.code.refuses_writing());
    let own = plan.etag.iter().map(move |_| (&plan.id, plan.path.as_str(), !is_broken));
    let steps = plan.steps.iter().filter(|it| it.has_file());
    own.chain(steps.map(|it| (&plan.id, it.path.as_str(), it.unreadable().is_none())))
}

fn changed((nth, op): (usize, &FileOp)) -> Option<(PathBuf, usize)> {
    match op {
        FileOp::Change { path, .. } => Some((path.clone(), nth)),
        _ => None,
    }
}
