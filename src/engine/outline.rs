//! A little of every plan, for whoever stays and remembers; and which commit of the index it comes from.

use crate::engine::context::Context;
use crate::engine::error::Error;
use crate::engine::load::{self, Wanted};
use crate::index::{Generation, Index, IndexError, Place};
use crate::plan::model::Plan;

/// Makes something of every plan as the files have it now, without bodies and in no order.
///
/// From the index the plans come one by one, so that they are never all in memory.
pub(crate) fn of_each<T>(context: &Context, make: impl Fn(Plan) -> T) -> Result<Vec<T>, Error> {
    let index = load::fresh(context, Wanted::Nothing).index;
    if let Some(made) = index.and_then(|it| from_index(it, &make).ok()) {
        return Ok(made);
    }
    Ok(load::all(context)?.into_vec().into_iter().map(make).collect())
}

fn from_index<T>(mut index: Index, make: &impl Fn(Plan) -> T) -> Result<Vec<T>, IndexError> {
    let snapshot = index.snapshot()?;
    snapshot.heads()?.iter().map(|it| snapshot.plan(it).map(make)).collect()
}

/// Returns the commit that the kept index shows; none if there is none that can be opened.
pub(crate) fn generation(context: &Context) -> Option<Generation> {
    let directory = context.plans.index_dir()?;
    let (mut index, _) = Index::open(Place::Directory(&directory)).ok()?;
    index.snapshot().ok()?.generation().ok()?
}
