//! The directory of removed files, and whether a step may be removed.

use std::path::{Path, PathBuf};

use crate::api::context::Context;
use crate::api::error::Error;
use crate::plan::id::PlanId;
use crate::plan::model::Step;
use crate::plan::plans::Plans;
use crate::plan::time::Time;
use crate::plan::words::StepStatus;
use crate::store::fencing::{self, Caller, Owner};

/// The directory of archived plans and removed files.
pub(crate) const ARCHIVE: &str = "_archive";

/// The directory for the files that are removed from a plan. The name sorts by time and is a valid file name on every
/// system.
pub(crate) fn removed_dir(context: &Context, plan: &PlanId) -> PathBuf {
    let time = context.now.to_string().replace([':', '-'], "");
    PathBuf::from(ARCHIVE).join(plan.as_str()).join(format!("removed-{time}"))
}

/// Reads the time from the name of a removal's directory, such as `removed-20261121T120000Z`. A number may follow the
/// time.
pub(crate) fn time_of(directory: &str) -> Option<Time> {
    let digits = directory.strip_prefix("removed-")?.get(..16).filter(|it| it.is_ascii())?;
    let [date, time] = [&digits[..8], &digits[9..15]];
    let date = format!("{}-{}-{}", &date[..4], &date[4..6], &date[6..]);
    format!("{date}T{}:{}:{}Z", &time[..2], &time[2..4], &time[4..]).parse().ok()
}

/// Returns the path of a new file. If the directory already has the name, for example after another removal within the
/// same second, a number is appended to the name.
pub(crate) fn free_name(context: &Context, directory: &Path, name: &str) -> PathBuf {
    let stem = name.trim_end_matches(".md");
    let taken = context.plans.names(directory);
    let mut names = std::iter::once(name.to_owned()).chain((2_u32..).map(|n| format!("{stem}-{n}.md")));
    directory.join(names.find(|it| !taken.contains(it)).unwrap_or_default())
}

/// Refuses, without force, to remove a step that another worker has claimed, or that is in progress without a claim. The
/// owner of a claim may remove the step.
pub(crate) fn refuse_worked_on(plans: &Plans, step: &Step, who: &Caller) -> Result<Owner, Error> {
    let owner = fencing::check(plans, step, who)?;
    if owner == Owner::Free && step.claim.is_none() && step.status.is(StepStatus::InProgress) && !who.force {
        let hint = "end the work first, or use --force";
        return Err(Error::conflict("claimed", format!("`{}` is in progress", step.id), hint));
    }
    Ok(owner)
}
