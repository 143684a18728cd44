//! The files of all plans with their stamps, of which none is read.

use super::parallel;
use super::scan::{Walked, walk};
use crate::api::context::Context;
use crate::disk::PlanDir;
use crate::index::Stamp;

/// The files of all plans, sorted by path, as [`super::as_filed_for_now_and_files`] has them; none where something
/// cannot be looked at.
pub(crate) fn stamps_now(context: &Context) -> Option<Vec<(String, Stamp)>> {
    let (dirs, beside) = context.plans.plan_dirs();
    let stamped = |dir: &PlanDir| {
        let (walked, trouble) = walk(context, dir);
        trouble.is_empty().then(|| walked.map(Walked::into_stamps).unwrap_or_default())
    };
    // Of those who claim at once one looks, and the others wait for that.
    let all: Option<Vec<_>> = parallel::map(&dirs, stamped).into_iter().collect();
    let mut all: Vec<_> = all.filter(|_| beside.trouble.is_empty())?.into_iter().flatten().collect();
    all.sort_by(|a, b| a.0.cmp(&b.0));
    Some(all)
}
