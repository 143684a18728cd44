//! The directory of removed files, and whether a step may be removed.

use std::path::{Path, PathBuf};

use crate::api::context::Context;
use crate::api::error::Error;
use crate::plan::id::PlanId;
use crate::plan::model::Step;
use crate::plan::plans::Plans;
use crate::plan::words::StepStatus;
use crate::store::fencing::{self, Caller, Owner};

/// The directory of archived plans and removed files.
pub(crate) const ARCHIVE: &str = "_archive";

/// Where removed files of a plan go. The name sorts by time and is a valid file name on every system.
pub(crate) fn removed_dir(context: &Context, plan: &PlanId) -> PathBuf {
    let time = context.now.to_string().replace([':', '-'], "");
    PathBuf::from(ARCHIVE).join(plan.as_str()).join(format!("removed-{time}"))
}

/// Appends a number to the name if it is taken, as in a second removal within the same second.
pub(crate) fn free_name(context: &Context, directory: &Path, name: &str) -> PathBuf {
    let stem = name.trim_end_matches(".md");
    let taken = context.plans.names(directory);
    let mut names = std::iter::once(name.to_owned()).chain((2_u32..).map(|n| format!("{stem}-{n}.md")));
    directory.join(names.find(|it| !taken.contains(it)).unwrap_or_default())
}

/// Refuses to remove a step that another worker has claimed, or that is in progress without a claim. The owner of a
/// claim may remove its step.
pub(crate) fn refuse_worked_on(plans: &Plans, step: &Step, who: &Caller) -> Result<Owner, Error> {
    let owner = fencing::check(plans, step, who)?;
    if owner == Owner::Free && step.claim.is_none() && step.status.is(StepStatus::InProgress) && !who.force {
        let hint = "end the work first, or use --force";
        return Err(Error::conflict("claimed", format!("`{}` is in progress", step.id), hint));
    }
    Ok(owner)
}
