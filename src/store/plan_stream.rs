//! A little of every plan, for a process that remembers it, and which commit of the index it comes from.

use crate::api::context::Context;
use crate::api::error::Error;
use crate::index::{Generation, Index, IndexError, Place};
use crate::plan::model::Plan;
use crate::store::load::{Fresh, IndexCheck, LoadQuery, Refresh, Wanted};

/// How often the files are compared while other processes write into the index.
const MOST_LOOKS: usize = 4;

/// Makes something of every plan as the files have it now, without bodies and in no order.
///
/// From the index the plans come one by one, so that they are never all in memory.
pub(crate) fn of_each<T>(context: &Context, make: impl Fn(Plan) -> T) -> Result<Vec<T>, Error> {
    for _ in 0..MOST_LOOKS {
        let fresh = Refresh::new(Wanted::Nothing, IndexCheck::Attested).run(context);
        let Fresh { index: Some(index), commit, .. } = fresh else { break };
        match from_index(index, commit, &make) {
            Ok(Some(made)) => return Ok(made),
            Ok(None) => {}
            // Loading all plans finds the error again and repairs the index.
            Err(_) => break,
        }
    }
    Ok(LoadQuery::all().load(context)?.plans.into_vec().into_iter().map(make).collect())
}

/// None if the index shows another commit by now: another process wrote, perhaps from an older comparison.
fn from_index<T>(
    mut index: Index,
    commit: Option<Generation>,
    make: &impl Fn(Plan) -> T,
) -> Result<Option<Vec<T>>, IndexError> {
    let snapshot = index.snapshot()?;
    if snapshot.generation()? != commit {
        return Ok(None);
    }
    snapshot.heads()?.iter().map(|it| snapshot.plan(it).map(make)).collect::<Result<_, _>>().map(Some)
}

/// Returns the commit that the index shows; none if it cannot be opened.
pub(crate) fn generation(context: &Context) -> Option<Generation> {
    let directory = context.plans.index_dir()?;
    let (mut index, _) = Index::open(Place::Directory(&directory)).ok()?;
    index.snapshot().ok()?.generation().ok()?
}
