//! Links to the files of a plan, when its directory gets another name.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use crate::api::context::Context;
use crate::api::error::few;
use crate::api::views::shown_path;
use crate::disk::FileOp;
use crate::plan::id::PlanId;
use crate::plan::model::Plan;
use crate::plan::plans::Plans;
use crate::plan::{decision, insight, references, script};
use crate::store::{knowledge, load};

/// The most files that a hint names.
const MOST_NAMED: usize = 6;

/// The directories of files that are written once, or by people alone.
const BESIDE: [&str; 4] = [decision::DIRECTORY, insight::DIRECTORY, script::DIRECTORY, "_prompts"];

/// Adds to `ops` that the links of live plans and steps follow a plan to its new name.
///
/// Returns a hint that names the files whose links stay: those that cannot be edited, and decisions and the like, which
/// planwatch never rewrites.
pub(crate) fn follow_links(
    context: &Context,
    plans: &Plans,
    (old, new): (&PlanId, &PlanId),
    ops: &mut Vec<FileOp>,
) -> Option<String> {
    let files: Vec<_> = plans.live().flat_map(files).collect();
    let read = |path: &str| context.plans.read(Path::new(path)).ok().map(|it| it.bytes);
    let follow = |(path, is_writable): &(&str, bool)| {
        let before = read(path)?;
        let after = references::followed_links(&before, old, new)?;
        Some((PathBuf::from(path), is_writable.then_some((before, after))))
    };
    let mut left = Vec::new();
    let changed: HashMap<PathBuf, usize> = ops.iter().enumerate().filter_map(changed).collect();
    for (path, edited) in load::map(&files, follow).into_iter().flatten() {
        match (edited, changed.get(&path)) {
            (None, _) => left.push(path.to_string_lossy().into_owned()),
            (Some(_), Some(nth)) => {
                if let FileOp::Change { after, .. } = &mut ops[*nth]
                    && let Some(followed) = references::followed_links(after, old, new)
                {
                    *after = followed;
                }
            }
            (Some((before, after)), None) => ops.push(FileOp::Change { path, before, after }),
        }
    }
    let beside = BESIDE.iter().flat_map(|it| knowledge::sources(context, it));
    let links = |bytes: &[u8]| references::followed_links(bytes, old, new).is_some();
    left.extend(beside.filter(|it| it.content.as_ref().is_ok_and(|it| links(&it.bytes))).map(|it| it.path));
    let shown: Vec<_> = left.iter().map(|it| shown_path(&context.root_name(), it)).collect();
    let them = if shown.len() == 1 { "it" } else { "them" };
    let said = || {
        format!(
            "links to `{old}` in {} stay, because planwatch does not edit {them}",
            few(&shown, MOST_NAMED)
        )
    };
    (!shown.is_empty()).then(said)
}

/// The files of a plan and its steps, each with whether it may be edited.
fn files(plan: &Plan) -> impl Iterator<Item = (&str, bool)> {
    let is_broken = plan.problems.iter().any(|it| it.path == plan.path && it.code.refuses_writing());
    let own = plan.etag.iter().map(move |_| (plan.path.as_str(), !is_broken));
    let steps = plan.steps.iter().filter(|it| it.has_file());
    own.chain(steps.map(|it| (it.path.as_str(), it.unreadable().is_none())))
}

fn changed((nth, op): (usize, &FileOp)) -> Option<(PathBuf, usize)> {
    match op {
        FileOp::Change { path, .. } => Some((path.clone(), nth)),
        _ => None,
    }
}
