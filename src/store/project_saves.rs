//! Checks changes that planwatch made to the project's files outside of the plans directory, for example by `init`. Finds
//! saves by other programs that came during or after such a change. Completes or rolls back a change that was interrupted.

use std::path::{Path, PathBuf};

use crate::api::context::{Context, Notice};
use crate::disk::{Kept, Project, ProjectReport};
use crate::store::transaction;

/// What was found, with paths from the project's root.
#[derive(Debug, Default)]
pub(crate) struct LeftSaves {
    pub(crate) kept: Vec<Kept>,
    /// A change of several files that is neither completed nor rolled back.
    pub(crate) interrupted: Option<String>,
}

/// Completes or rolls back a change that a crash interrupted, then finds saves that came during or after a change.
pub(crate) fn settle(context: &Context) -> LeftSaves {
    let Some(project) = project(context) else { return LeftSaves::default() };
    let mut report = ProjectReport::default();
    // A change that cannot be completed remains, and is reported below.
    project.settle(&mut || (context.on_notice)(Notice::WaitingForLock), &mut report).ok();
    if let Some(recovered) = &report.recovered {
        (context.on_notice)(transaction::recovered(recovered));
    }
    let interrupted = project.pending().map(|it| format!("`{}` of {}", it.verb, it.at));
    LeftSaves { kept: project.kept(), interrupted }
}

/// The paths of the texts that [`LeftSaves::kept`] lists, relative to the plans directory. They are absolute if that
/// directory is outside the project.
pub(crate) fn kept(context: &Context) -> Vec<String> {
    let Some(project) = project(context) else { return Vec::new() };
    let from_plans = |it: Kept| shown(&project.root().join(it.kept), context.plans.root(), project.root());
    project.kept().into_iter().map(from_plans).collect()
}

fn project(context: &Context) -> Option<Project> {
    context.plans.project(&context.here.root).ok()
}

fn shown(path: &Path, plans: &Path, root: &Path) -> String {
    let path = match (path.strip_prefix(plans), plans.strip_prefix(root), path.strip_prefix(root)) {
        (Ok(below), ..) => below.to_path_buf(),
        (_, Ok(down), Ok(below)) => down.components().map(|_| "..").collect::<PathBuf>().join(below),
        _ => path.to_path_buf(),
    };
    path.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_shown_from_the_plans_directory() {
        for (path, plans, expected) in [
            ("/shop/plans/.planwatch/a", "/shop/plans", ".planwatch/a"),
            ("/shop/.planwatch-init/a", "/shop/plans", "../.planwatch-init/a"),
            ("/shop/.planwatch-init/a", "/shop/docs/plans", "../../.planwatch-init/a"),
            ("/shop/.planwatch-init/a", "/elsewhere", "/shop/.planwatch-init/a"),
        ] {
            assert_eq!(
                shown(Path::new(path), Path::new(plans), Path::new("/shop")),
                expected,
                "{path} {plans}"
            );
        }
    }
}
